#!/usr/bin/env python3
"""Every verb of `pawl app` and `pawl seq`, with and without a node that has the application open: the same output,
the same errors, the same exit codes. With the argument `postgres` applications are in databases, else in directories."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, SHOP, environment, new_database, wait_until, wants_postgres  # noqa: E402
from tap import done, it  # noqa: E402

POSTGRES = wants_postgres()
TOP = tempfile.mkdtemp(prefix="pawl-socket-")
ENV = environment(TOP, PAWL_STORE_FREE_SPACE_MIN="0")
WAIT_S = 120


class Place:
    """A data directory, and a database when applications are there."""

    def __init__(self):
        self.data = tempfile.mkdtemp(dir=TOP)
        self.url = new_database(self.data) if POSTGRES else None
        self.flags = ["--data", self.data, *(["--apps", self.url] if POSTGRES else [])]
        self.socket = f"{self.data}/pawl.sock"

    def pawl(self, *args, text="", env=None, flags=None):
        return subprocess.run([PAWL, *args[:2], *(flags or self.flags), *args[2:]], input=text, env=env or ENV, cwd=TOP,
                              timeout=WAIT_S, text=True, capture_output=True, check=False)

    def normal(self, text):
        """Without what must differ: the names of this place."""
        for name in (self.url, self.data):
            text = text.replace(name, "PLACE") if name else text
        return re.sub(r"d[0-9a-zx_]*(?=')", "DB", text) if POSTGRES else text

    def said(self, *args, **more):
        result = self.pawl(*args, **more)
        return result.returncode, self.normal(result.stdout), self.normal(result.stderr)


class Node:
    """`pawl serve` of a place, ready."""

    def __init__(self, place, *args, flags=None):
        self.place = place
        self.process = subprocess.Popen([PAWL, "serve", *(flags or place.flags), "--listen", "127.0.0.1:0", "--json", *args],
                                        env=ENV, cwd=TOP, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        assert line, "it did not start"
        self.port = int(json.loads(line)["url"].rpartition(":")[2])
        wait_until(lambda: self.ask("GET", "/readyz")[0] == 200, "not ready")

    def ask(self, method, path, body=None, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.process.wait(WAIT_S)
        self.process.stdout.close()


def order(workspace, **more):
    return {"workspace": workspace, "kind": "shop", **more,
            "creates": [{"class": "c", "raw_id": 1, "table": "order",
                         "data": {"no": {"$next": "invoice"}, "me": {"$raw": 1}, "sum": 1.50, "name": "Ä\u2028\"x\\"}}]}


def lines(*commands):
    return "".join((c if isinstance(c, str) else json.dumps(c)) + "\n" for c in commands)


W7 = ["orders", "--workspace", "7"]
MANY = [order(i % 20 + 1, key=f"k{i}") for i in range(600)]
OTHER = {**SHOP, "trust": 2}

# In this order, on one application: (what is typed, standard input).
TABLE = [
    (["app", "create", "--descriptor", json.dumps({**SHOP, "name": "second", "id": 2})], ""),
    (["app", "create", "--descriptor", json.dumps({**SHOP, "name": "second", "id": 2}), "--json"], ""),
    (["app", "create", "--descriptor", json.dumps({**OTHER, "name": "second", "id": 2})], ""),
    (["app", "create", "--descriptor", json.dumps({**SHOP, "name": "third"})], ""),
    (["app", "create", "--descriptor", "{}"], ""),
    (["app", "create", "--descriptor", "x"], ""),
    (["app", "create", "--descriptor", "-"], json.dumps({**SHOP, "name": "fourth", "id": 4})),
    (["app", "exec", "orders", "--command", json.dumps(order(7))], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, key="a")), "--json"], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, key="a"))], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, key="a", updates=[]))], ""),
    (["app", "exec", "orders", "--command", json.dumps({**order(7, key="a"), "creates": []})], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, updates=[{"id": 1 << 40, "data": {"x": 1}}]))], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, updates=[{"id": 5 << 40, "data": {}}]))], ""),
    (["app", "exec", "orders", "--command", json.dumps({**order(7), "kind": "none"})], ""),
    (["app", "exec", "orders", "--command", "nonsense"], ""),
    (["app", "exec", "orders", "--command", "{}"], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(0))], ""),
    (["app", "exec", "orders", "--command", json.dumps({**order(7), "more": 1})], ""),
    (["app", "exec", "nosuch", "--command", json.dumps(order(7))], ""),
    (["app", "exec", "../x", "--command", json.dumps(order(7))], ""),
    (["app", "exec", "orders"], lines(order(7), "", order(8), " \t", order(7, key="b"))),
    (["app", "exec", "orders"], lines(*MANY)),
    (["app", "exec", "orders", "--json"], lines(*MANY[:5])),
    (["app", "exec", "orders"], lines(order(7, key="c"), order(8, key="d"), {**order(7), "kind": "none"}, order(9, key="e"))),
    (["app", "exec", "orders"], lines(order(7, key="f"), {**order(7, key="g"), "kind": "none"}, order(9, key="h"))),
    (["app", "exec", "orders"], lines(order(7, key="i"), "broken", order(9, key="j"))),
    (["app", "exec", "orders"], lines(order(7, key="i"), order(7, key="i", updates=[{"id": 1 << 40, "data": {}}]))),
    (["app", "exec", "orders"], ""),
    (["app", "records", *W7], ""),
    (["app", "records", *W7, "--json"], ""),
    (["app", "records", *W7, "--from", str((1 << 40) + 3), "--limit", "2"], ""),
    (["app", "records", *W7, "--id", str(1 << 40), "--json"], ""),
    (["app", "records", *W7, "--id", str(9 << 40)], ""),
    (["app", "records", *W7, "--id", "5"], ""),
    (["app", "records", "orders", "--workspace", "99999"], ""),
    (["app", "records", "orders"], ""),
    (["app", "records", "nosuch", "--workspace", "7"], ""),
    (["app", "wlog", *W7], ""),
    (["app", "wlog", *W7, "--json", "--limit", "3"], ""),
    (["app", "wlog", *W7, "--from", "30"], ""),
    (["app", "wlog", "orders", "--workspace", "0"], ""),
    (["app", "plog", "orders"], ""),
    (["app", "plog", "orders", "--partition", "1", "--json", "--from", "250"], ""),
    (["app", "plog", "orders", "--partition", "2"], ""),
    (["app", "plog", "nosuch"], ""),
    (["app", "seq", *W7], ""),
    (["app", "seq", *W7, "--json", "--sequence", "invoice"], ""),
    (["app", "seq", *W7, "--sequence", "none"], ""),
    (["app", "seq", "nosuch", "--workspace", "1"], ""),
    (["seq", "verify", *W7], ""),
    (["seq", "verify", *W7, "--json"], ""),
    (["seq", "verify", *W7, "--sequence", "c_record"], ""),
    (["seq", "verify", "orders", "--all"], ""),
    (["seq", "verify", "orders", "--all", "--json"], ""),
    (["seq", "verify", "orders"], ""),
    (["seq", "verify", "orders", "--all", "--sequence", "invoice"], ""),
    (["seq", "verify", "nosuch", "--all"], ""),
    (["seq", "status", "orders", "--json"], ""),
    (["seq", "status", "nosuch"], ""),
    (["seq", "rebuild", "orders", "--json"], ""),
    (["seq", "rebuild", "nosuch"], ""),
    (["seq", "verify", "orders", "--all"], ""),
    (["app", "exec", "orders", "--command", json.dumps(order(7, key="last"))], ""),
]

# Counts of the process that has the application open, which is another one and has done other things.
COUNTS = re.compile(r'"(stored_offset|unflushed|hits|misses|actualizations|flushes)":\d+')


def leaf_verbs():
    """What the help names."""
    verbs = set()
    for group in ("app", "seq"):
        text = subprocess.run([PAWL, group, "--help"], env=ENV, text=True, capture_output=True, check=True).stdout
        listed = text.partition("Commands")[2] or text.partition("commands")[2]
        verbs |= {(group, word) for word in re.findall(r"^\s+([a-z]+)  ", listed, re.MULTILINE)}
    return verbs


def says_the_same():
    tried = {tuple(args[:2]) for args, _ in TABLE}
    assert leaf_verbs() and leaf_verbs() <= tried, leaf_verbs() - tried
    alone, asked = Place(), Place()
    for place in (alone, asked):
        assert place.said("app", "create", "--descriptor", json.dumps(SHOP))[0] == 0
    with Node(asked):
        for args, text in TABLE:
            wanted, got = alone.said(*args, text=text), asked.said(*args, text=text)
            if args[:2] in (["seq", "status"], ["seq", "rebuild"]):
                wanted, got = ((code, COUNTS.sub("", out), err) for code, out, err in (wanted, got))
            assert got == wanted, f"{args}\n without a node: {wanted}\n with a node:    {got}"
    for place in (alone, asked):  # and what was done through it is there
        assert place.said("seq", "verify", "orders", "--all")[0] == 0
    assert alone.said("app", "wlog", *W7, "--json") == asked.said("app", "wlog", *W7, "--json")


def says_the_same_of_damage():
    alone, asked = Place(), Place()
    for place in (alone, asked):
        place.said("app", "create", "--descriptor", json.dumps(SHOP))
        place.said("app", "exec", "orders", text=lines(order(7), order(8)))
    with Node(asked):
        for place in (alone, asked):
            with open(f"{place.data}/apps/orders.anchor", "a", encoding="utf-8") as file:
                file.write("x")
        for args in (["--all"], ["--all", "--json"], ["--workspace", "7"]):
            wanted, got = alone.said("seq", "verify", "orders", *args), asked.said("seq", "verify", "orders", *args)
            assert got == wanted and got[0] == 6, (wanted, got)


def opens_what_the_node_has_not():
    """A damaged application is not open in the node: the command sees for itself."""
    place = Place()
    for name in ("orders", "bills"):
        place.said("app", "create", "--descriptor", json.dumps({**SHOP, "name": name, "id": len(name)}))
    with open(f"{place.data}/apps/bills.anchor", "a", encoding="utf-8") as file:
        file.write("x")
    alone = place.said("seq", "status", "bills")
    with Node(place):
        assert place.said("seq", "status", "bills") == alone and alone[0] == 6, alone
        assert place.said("seq", "status", "orders")[0] == 0


def shares_one_lock():
    """While commands go through the node, others use it too: nobody is refused."""
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    with Node(place) as node:
        results = []

        def use(workspace):
            for i in range(5):
                results.append(place.said("app", "exec", "orders", "--command", json.dumps(order(workspace, key=f"x{i}")))[0])
                results.append(0 if node.ask("GET", f"/v1/apps/orders/workspaces/{workspace}/wlog")[0] == 200 else 1)
        threads = [threading.Thread(target=use, args=(n,)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [0] * 40, results


def waits_for_a_node_that_stops():
    """Commands run while nodes start and stop; each either asks one or opens the store."""
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    stop = threading.Event()
    failed = []

    def use():
        i = 0
        while not stop.is_set():
            i += 1
            code, _, err = place.said("app", "exec", "orders", "--command", json.dumps(order(7, key=f"n{i}")),
                                      env={**ENV, "PAWL_STORE_BUSY_TIMEOUT": "60s"})
            if code != 0:
                # the node ended before it answered: the same command with the same key says
                again = place.said("app", "exec", "orders", "--command", json.dumps(order(7, key=f"n{i}")),
                                   env={**ENV, "PAWL_STORE_BUSY_TIMEOUT": "60s"})
                if "ended the connection" not in err and "stopp" not in err or again[0] != 0:
                    failed.append((code, err, again))
    thread = threading.Thread(target=use)
    thread.start()
    for i in range(4):
        with Node(place, "--store-busy-timeout", "60s") as node:
            time.sleep(0.2)
            if i % 2:
                node.process.kill()
    stop.set()
    thread.join()
    assert not failed, failed
    assert place.said("seq", "verify", "orders", "--all")[0] == 0


def tells_of_a_stopped_node():
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    with Node(place) as node:
        node.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        for args in (["app", "records", *W7], ["app", "create", "--descriptor", json.dumps({**SHOP, "name": "n", "id": 9})]):
            code, _, err = place.said(*args, "--store-busy-timeout", "0")
            assert code == 5 and "does not answer" in err, (args, code, err)
        assert time.monotonic() - began < 60
        node.process.send_signal(signal.SIGCONT)
        assert place.said("app", "records", *W7)[0] == 0


def passes_over_what_is_no_node():
    """A socket that kill -9 left, a file, and one where something else listens."""
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    with Node(place) as node:
        node.process.kill()
        node.process.wait()
        assert os.path.exists(place.socket)
        wait_until(lambda: place.said("app", "records", *W7)[0] == 0, "a socket nobody listens on")
    with Node(place):
        pass
    assert not os.path.exists(place.socket)
    with open(place.socket, "w", encoding="utf-8"):
        assert place.said("app", "records", *W7)[0] == 0
        refused = subprocess.run([PAWL, "serve", *place.flags, "--listen", "127.0.0.1:0"], env=ENV, cwd=TOP, text=True,
                                 capture_output=True, timeout=WAIT_S, check=False)
        assert refused.returncode == 4 and "not a socket" in refused.stderr, refused
    os.unlink(place.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(place.socket)
        other.listen()
        assert place.said("app", "records", *W7)[0] == 0  # it opens the store: nobody else has it
    os.unlink(place.socket)


def asks_the_right_node():
    """A node of other applications that has the socket is not asked."""
    here, there = Place(), Place()
    for place in (here, there):
        place.said("app", "create", "--descriptor", json.dumps(SHOP))
    there.said("app", "exec", "orders", "--command", json.dumps(order(7)))
    with Node(here), Node(there):
        flags = ["--data", here.data, "--apps", f"{there.data}/apps"]
        code, out, err = here.said("app", "wlog", *W7, flags=flags)
        assert code == 0 and out.count("\n") == 1, (code, out, err)
    alone = Place()
    os.rename(f"{there.data}/apps", f"{alone.data}/place")
    where = ["--apps", f"{alone.data}/place"]
    with Node(alone, flags=where):
        code, out, err = alone.said("app", "wlog", *W7, flags=where)
        assert code == 0 and out.count("\n") == 1, (code, out, err)


def needs_no_token():
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    secret = subprocess.run([PAWL, "token", "create", "--data", place.data, "--scope", "read", "reader"], env=ENV, cwd=TOP,
                            text=True, capture_output=True, check=True).stdout.strip()
    process = subprocess.Popen([PAWL, "serve", *place.flags, "--listen", "127.0.0.1:0", "--json"], env=ENV, cwd=TOP,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    node = Node.__new__(Node)
    node.process, node.place = process, place
    node.port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
    with node:
        wait_until(lambda: node.ask("GET", "/readyz")[0] == 200, "not ready")
        assert node.ask("GET", "/v1/apps")[0] == 401
        assert node.ask("GET", "/v1/apps", token=secret)[0] == 200
        assert place.said("seq", "rebuild", "orders")[0] == 0
        status, problem = node.ask("POST", "/v1/jobs", {"kind": "apps.rebuild", "parameters": {"app": "orders"}}, secret)
        assert status == 403 and problem["code"] == "WRONG_SCOPE", (status, problem)
        status, job = node.ask("POST", "/v1/jobs", {"kind": "apps.verify", "parameters": {"app": "orders"}}, secret)
        assert status == 202 and job["kind"] == "apps.verify", (status, job)
        assert os.stat(place.socket).st_mode & 0o777 == 0o600


def reaches_long_paths():
    place = Place()
    place.data = os.path.join(place.data, "x" * 120)
    os.mkdir(place.data)
    place.flags = ["--data", place.data, *(["--apps", place.url] if POSTGRES else [])]
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    with Node(place):
        assert place.said("app", "exec", "orders", "--command", json.dumps(order(7)))[0] == 0


def keeps_jobs():
    """A job's result outlives its node; one that ran when the node was killed is interrupted."""
    place = Place()
    place.said("app", "create", "--descriptor", json.dumps(SHOP))
    place.said("app", "exec", "orders", text=lines(*MANY))
    with Node(place) as node:
        for body, says in (({"kind": "nothing"}, "apps.verify"), ({}, "kind"), ({"kind": "apps.verify"}, "app"),
                           ({"kind": "apps.verify", "parameters": {"app": "orders", "workspace": -1}}, "workspace"),
                           ({"kind": "apps.verify", "parameters": {"app": "orders", "x": 1}}, "x"),
                           ({"kind": "apps.certificate", "parameters": {"app": "orders"}}, "workspace"),
                           ({"kind": "apps.certificate", "parameters": {"app": "orders", "workspace": 7, "sequence": "x"}},
                            "has no sequence 'x'")):
            status, problem = node.ask("POST", "/v1/jobs", body)
            assert status == 400 and says in problem["detail"], (body, status, problem)
        assert node.ask("POST", "/v1/jobs", {"kind": "apps.verify", "parameters": {"app": "nosuch"}})[0] == 404
        assert node.ask("GET", "/v1/jobs/none")[0] == 404
        assert node.ask("POST", "/v1/jobs/none/cancel", {})[0] == 404
        status, job = node.ask("POST", "/v1/jobs", {"kind": "apps.verify", "parameters": {"app": "orders"}})
        assert status == 202, job
        path = f"/v1/jobs/{job['job_id']}"
        wait_until(lambda: node.ask("GET", path)[1]["ended_at"], "it does not end")
        ended = node.ask("GET", path)[1]
        assert ended["state"] == "done" and ended["result"]["whole"] is True, ended
        assert ended["result"]["entries"]["plog"] == 600 and ended["done"] == ended["total"] > 0, ended
        assert node.ask("POST", f"{path}/cancel", {})[0] == 409
        status, second = node.ask("POST", "/v1/jobs", {"kind": "apps.certificate",
                                                       "parameters": {"app": "orders", "workspace": 7}})
        assert status == 202
        node.process.kill()
        node.process.wait()
    with Node(place, "--store-busy-timeout", "60s") as node:
        listed = node.ask("GET", "/v1/jobs")[1]["items"]
        assert [job["job_id"] for job in listed] == [second["job_id"], ended["job_id"]], listed
        assert listed[0]["state"] in ("interrupted", "done"), listed
        assert node.ask("GET", path)[1] == ended
        one = node.ask("GET", "/v1/jobs?limit=1")[1]
        assert one["items"] == listed[:1] and node.ask("GET", f"/v1/jobs?from={one['next']}")[1]["items"] == listed[1:]


it("every verb says the same with and without a node", says_the_same)
if not POSTGRES:  # there the anchor is a row, and no directory decides which applications a node has
    it("damage is told in the same words", says_the_same_of_damage)
    it("an application that the node could not open is opened by the command", opens_what_the_node_has_not)
    it("a node that serves other applications is not asked", asks_the_right_node)
it("many commands and requests use one application at a time", shares_one_lock)
it("commands continue while nodes start, stop and are killed", waits_for_a_node_that_stops)
it("a stopped node is exit code 5, in bounded time", tells_of_a_stopped_node)
it("a stale socket, a file and a foreign listener are in nobody's way", passes_over_what_is_no_node)
it("the socket needs no token, and only its user may use it", needs_no_token)
it("a path that is too long for a socket works", reaches_long_paths)
it("jobs are kept across a restart", keeps_jobs)
shutil.rmtree(TOP)
done()
