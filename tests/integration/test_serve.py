#!/usr/bin/env python3
"""`pawl serve` as a process: what it prints, refuses and survives. With the argument `postgres`
applications are in databases, else in directories."""
import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, SHOP, StalledPostgres, environment, new_database, wants_postgres  # noqa: E402
import answers  # noqa: E402
from tap import done, it  # noqa: E402

POSTGRES = wants_postgres()
TOP = tempfile.mkdtemp(prefix="pawl-serve-")
ENV = environment(TOP, PAWL_STORE_FREE_SPACE_MIN="0")
WAIT_S = 120
ROUNDS = 5
CLIENTS = 16


def place():
    """Where no application is yet: the flags that say so."""
    directory = tempfile.mkdtemp(dir=TOP)
    if not POSTGRES:
        return ["--data", directory]
    return ["--apps", new_database(directory)]


class Node:
    """A running `pawl serve`."""

    def __init__(self, where, *args, env=None, preexec=None):
        self.process = subprocess.Popen([PAWL, "serve", *where, *(() if "--listen" in args else ("--listen", "127.0.0.1:0")), "--json", *args],
                                        env={**ENV, **(env or {})}, cwd=TOP, text=True, preexec_fn=preexec,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=WAIT_S)
        self.said = json.loads(line)
        self.port = int(self.said["url"].rpartition(":")[2])

    def connect(self):
        return answers.Connection("127.0.0.1", self.port, timeout=WAIT_S)

    def ask(self, method, path, body=None, key=None, connection=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        connection = connection or self.connect()
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer, json.loads(answer.read())

    def create(self):
        answer, _ = self.ask("PUT", "/v1/apps/orders", SHOP)
        assert answer.status in (200, 201), answer.status

    def await_ready(self):
        deadline = time.monotonic() + WAIT_S
        while self.ask("GET", "/readyz")[0].status != 200:
            assert time.monotonic() < deadline, self.ask("GET", "/readyz")
            time.sleep(0.02)

    def await_not_ready(self, wanted):
        """Until exactly these applications are waited for, for these reasons."""
        deadline = time.monotonic() + WAIT_S
        while True:
            answer, body = self.ask("GET", "/readyz")
            if answer.status == 503 and {entry["app"]: entry["why"] for entry in body["waiting"]} == wanted:
                return
            assert time.monotonic() < deadline, body
            time.sleep(0.02)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, out, err


def order(**more):
    return {"kind": "shop", **more,
            "creates": [{"class": "c", "raw_id": 1, "table": "order", "data": {"no": {"$next": "invoice"}}}]}


def refused(*args, env=None):
    return subprocess.run([PAWL, "serve", *args], env={**ENV, **(env or {})}, cwd=TOP, timeout=WAIT_S, text=True,
                          capture_output=True, check=False)


def pawl(*args):
    return subprocess.run([PAWL, *args], env=ENV, cwd=TOP, timeout=WAIT_S, text=True, capture_output=True, check=True).stdout


def certificate(directory):
    """A key, and a certificate for localhost that it signed itself."""
    key, made = f"{directory}/key.pem", f"{directory}/certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
                    made], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return {"PAWL_SERVER_TLS_CERTIFICATE": made, "PAWL_SERVER_TLS_KEY": key}


def test_tls():
    data = tempfile.mkdtemp(dir=TOP)
    tls = certificate(data)
    token = pawl("token", "create", "test", "--data", data, "--scope", "read").strip()
    node = Node(["--data", data], "--listen", "0.0.0.0:0", env=tls)
    assert node.said["url"].startswith("https://0.0.0.0:"), node.said
    trusted = ssl.create_default_context(cafile=tls["PAWL_SERVER_TLS_CERTIFICATE"])
    for headers, status in (({}, 401), ({"Authorization": "Bearer pawl_0"}, 401), ({"Authorization": f"Bearer {token}"}, 200)):
        connection = http.client.HTTPSConnection("localhost", node.port, context=trusted, timeout=WAIT_S)
        connection.request("GET", "/v1/apps", headers=headers)
        assert connection.getresponse().status == status, (headers, status)
        assert connection.sock.version() in ("TLSv1.2", "TLSv1.3")
        connection.close()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", node.port), timeout=WAIT_S) as plain:
        try:
            old.wrap_socket(plain)
            raise AssertionError("TLS 1.1 was taken")
        except OSError:
            pass
    with socket.create_connection(("127.0.0.1", node.port), timeout=WAIT_S) as plain:  # no TLS at all
        plain.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert b"HTTP/1.1" not in plain.recv(4096)
        except ConnectionResetError:
            pass
    assert node.end()[0] == 0


def test_tls_settings():
    data = tempfile.mkdtemp(dir=TOP)
    tls = certificate(data)
    where = ["--data", data, "--listen", "127.0.0.1:0"]
    half = refused(*where, env={"PAWL_SERVER_TLS_KEY": tls["PAWL_SERVER_TLS_KEY"]})
    doctor = subprocess.run([PAWL, "doctor", "--data", data], env={**ENV, "PAWL_SERVER_TLS_KEY": tls["PAWL_SERVER_TLS_KEY"]},
                            cwd=TOP, timeout=WAIT_S, text=True, capture_output=True, check=False)
    assert doctor.returncode == 2 and "server.tls_certificate is not set" in " ".join(doctor.stdout.split()), doctor
    assert half.returncode == 2 and "server.tls_certificate is not set" in half.stderr, half
    swapped = refused(*where, env={"PAWL_SERVER_TLS_KEY": tls["PAWL_SERVER_TLS_CERTIFICATE"],
                                   "PAWL_SERVER_TLS_CERTIFICATE": tls["PAWL_SERVER_TLS_KEY"]})
    assert swapped.returncode == 2 and "has no certificate in PEM" in swapped.stderr, swapped
    locked = f"{data}/locked.pem"
    with open(locked, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    encrypted = refused(*where, env={**tls, "PAWL_SERVER_TLS_KEY": locked})
    assert encrypted.returncode == 2 and "locked.pem' is encrypted" in encrypted.stderr, encrypted
    missing = refused(*where, env={**tls, "PAWL_SERVER_TLS_CERTIFICATE": f"{data}/none.pem"})
    assert missing.returncode == 3 and "none.pem" in missing.stderr, missing
    os.chmod(tls["PAWL_SERVER_TLS_KEY"], 0o644)
    open_key = refused(*where, env=tls)
    assert open_key.returncode == 2 and "everybody on this machine may read the key" in open_key.stderr, open_key


def test_other_machines():
    data = tempfile.mkdtemp(dir=TOP)
    where = ["--data", data, "--listen", "0.0.0.0:0"]
    nobody = refused(*where)
    assert nobody.returncode == 2 and "pawl token create" in nobody.stderr, nobody
    assert not os.path.exists(f"{data}/tokens.sqlite")
    token = pawl("token", "create", "test", "--data", data, "--scope", "read").strip()
    plain = refused(*where)
    assert plain.returncode == 2 and "--unsafe-plain" in plain.stderr, plain
    node = Node(["--data", data], "--listen", "0.0.0.0:0", "--unsafe-plain")
    assert node.ask("GET", "/v1/apps")[0].status == 401
    connection = node.connect()
    connection.request("GET", "/v1/apps", headers={"Authorization": f"Bearer {token}"})
    assert connection.getresponse().status == 200
    assert node.end()[0] == 0


def test_lines():
    where = place()
    process = subprocess.Popen([PAWL, "serve", *where, "--listen", "localhost:0"], env=ENV, cwd=TOP, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines[0].startswith("listening on http://127.0.0.1:"), lines
    assert lines[1].startswith("0 applications in "), lines
    assert POSTGRES or where[1] + "/apps" in lines[1], lines
    assert lines[2] == f"stop it with Ctrl-C or 'kill {process.pid}'\n", lines
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out, err) == (0, "", ""), (process.returncode, out, err)


def test_settings():
    node = Node(place(), env={"PAWL_SERVER_BODY_MAX": "1KiB"})
    node.create()
    answer, body = node.ask("POST", "/v1/apps/orders/workspaces/7/commands", order(key="k" * 2000))
    assert (answer.status, body["code"]) == (413, "TOO_LARGE"), body
    assert node.end()[0] == 0
    result = refused(*place(), "--server-body-max", "1")
    assert result.returncode == 2 and "server-body-max" in result.stderr, result


def test_foreign_address():
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:80"):
        result = refused(*place(), "--listen", address)
        assert result.returncode == 2, result
        assert address in result.stderr and "no token keeps strangers out" in result.stderr, result
    result = refused(*place(), env={"PAWL_SERVER_LISTEN": "everywhere"})
    assert result.returncode == 2 and "'everywhere'" in result.stderr, result


def test_used_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = refused(*place(), "--listen", address)
    assert result.returncode == 5 and address in result.stderr, result


def test_takes_over():
    """On a database a second node waits for the applications of the first."""
    where = place()
    node = Node(where)
    node.create()
    second = Node(where, "--store-busy-timeout", "0")
    second.await_not_ready({"orders": "BUSY"})
    answer, body = second.ask("POST", "/v1/apps/orders/workspaces/7/commands", order())
    assert (answer.status, body["code"]) == (503, "NOT_OPEN"), body
    assert node.end()[0] == 0
    second.await_ready()
    answer, body = second.ask("POST", "/v1/apps/orders/workspaces/7/commands", order())
    assert answer.status == 200, body
    assert second.end()[0] == 0


def test_second():
    where = place()
    node = Node(where)
    node.create()
    result = refused(*where, "--listen", "127.0.0.1:0", "--store-busy-timeout", "0")
    assert result.returncode == 5, result
    assert str(node.process.pid) in result.stderr, result
    assert node.end()[0] == 0


def test_cli_beside():
    """The CLI asks the node that has the application, and has it itself when the node is gone."""
    where = place()
    node = Node(where)
    node.create()
    node.ask("POST", "/v1/apps/orders/workspaces/7/commands", order(key="k"))
    command = [PAWL, "app", "records", *where, "orders", "--workspace", "7", "--json"]
    for end in (lambda: None, node.end):
        end()
        result = subprocess.run(command, env=ENV, cwd=TOP, timeout=WAIT_S, text=True, capture_output=True, check=False)
        assert json.loads(result.stdout)["data"] == {"no": 1000}, result


class Clients:
    """Threads that send commands, and what went wrong in them."""

    def __init__(self, node, answers):
        self.node, self.answers, self.failed = node, answers, []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        try:
            client(self.node, number, self.answers, 10000)
        except Exception as error:  # pylint: disable=broad-except
            self.failed.append(error)

    def await_answers(self, wanted):
        deadline = time.monotonic() + WAIT_S
        while len(self.answers) < wanted:
            assert not self.failed, self.failed
            assert time.monotonic() < deadline, len(self.answers)
            self.threads[0].join(0.01)

    def join(self):
        for thread in self.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        assert not self.failed, self.failed


def test_stop_in_flight():
    """What was answered before the end is there, once; what was not may be asked again."""
    where = place()
    node = Node(where)
    node.create()
    answers = {}
    clients = Clients(node, answers)
    clients.await_answers(50)  # they are at it
    code, _, _ = node.end()
    clients.join()
    assert code == 0, code
    node = Node(where)
    check(node, answers)
    assert node.end()[0] == 0


def client(node, number, answers, count):
    """Commands of a workspace of its own, until the server goes away. A refusal is no answer."""
    connection = node.connect()
    for i in range(count):
        key = f"{number}-{i}-{node.process.pid}"
        try:
            answer, body = node.ask("POST", f"/v1/apps/orders/workspaces/{100 + number}/commands", order(), key,
                                    connection)
        except (OSError, http.client.HTTPException, ValueError):
            return
        if answer.status == 503:
            connection.close()
            if body["code"] in ("STOPPING", "INTERRUPTED"):
                return
            continue
        assert answer.status == 200, (answer.status, body)
        answers[number, key] = body


def wlog(node, workspace):
    events, after = [], 0
    while after is not None:
        _, page = node.ask("GET", f"/v1/apps/orders/workspaces/{workspace}/wlog?limit=1000&from={after}")
        events += page["items"]
        after = page["next"]
    return events


def check(node, answers):
    """Every answered command is in the log once, where its answer says, and the same again is the same answer."""
    for number in range(CLIENTS):
        events = wlog(node, 100 + number)
        assert [event["wlog_offset"] for event in events] == list(range(1, len(events) + 1))
        keys = [event["key"] for event in events]
        assert len(keys) == len(set(keys))
        by_key = {event["key"]: event for event in events}
        invoices = [record["data"]["no"] for event in events for record in event["records"]]
        assert invoices == list(range(1000, 1000 + len(events))), invoices
        mine = {key: body for (owner, key), body in answers.items() if owner == number}
        for key, body in mine.items():
            assert by_key[key]["plog_offset"] == body["plog_offset"], (key, body)
        for key in random.sample(sorted(mine), min(len(mine), 5)):
            answer, body = node.ask("POST", f"/v1/apps/orders/workspaces/{100 + number}/commands", order(), key)
            assert answer.status == 200, (answer.status, body)
            assert answer.getheader("Idempotent-Replayed") == "true"
            assert {**body, "duplicate": False} == {**mine[key], "duplicate": False}, (body, mine[key])


def test_kill():
    where = place()
    answers = {}
    for _ in range(ROUNDS):
        node = Node(where)
        node.create()
        before = len(answers)
        clients = Clients(node, answers)
        clients.await_answers(before + random.randrange(20, 200))
        node.end(signal.SIGKILL)
        clients.join()
    node = Node(where)
    check(node, answers)
    assert node.end()[0] == 0


def test_large_page():
    """A page ends behind the item that makes it large, and the next one goes on there."""
    node = Node(place())
    node.create()
    large = {"kind": "shop", "creates": [{"class": "c", "raw_id": 1, "table": "t", "data": {"a": "x" * 3000000}}]}
    for _ in range(4):
        answer, body = node.ask("POST", "/v1/apps/orders/workspaces/7/commands", large)
        assert answer.status == 200, body
    _, page = node.ask("GET", "/v1/apps/orders/workspaces/7/records")
    assert len(page["items"]) == 3 and page["next"] == str(page["items"][2]["id"] + 1), page["next"]
    _, rest = node.ask("GET", "/v1/apps/orders/workspaces/7/records?from=" + page["next"])
    assert len(rest["items"]) == 1 and rest["next"] is None, rest["next"]
    assert node.end()[0] == 0


def test_hung_stores():
    """Four stores that hang: commands are 504, the stores are given up together, and the log tells."""
    where = place()
    node = Node(where)
    for i in range(4):
        answer, body = node.ask("PUT", f"/v1/apps/a{i}", {**SHOP, "name": f"a{i}", "id": 1 + i})
        assert answer.status == 201, body
    assert node.end()[0] == 0
    node = Node(where, "--server-stop-timeout", "50ms", "--server-answer-timeout", "300ms",
                env={"PAWL_FAILPOINTS": "app.write.before=delay:600000",
                     "ASAN_OPTIONS": ENV.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})  # what hangs stays
    for i in range(4):
        answer, body = node.ask("POST", f"/v1/apps/a{i}/workspaces/7/commands", order(), "key")
        assert (answer.status, body["code"]) == (504, "TIMEOUT") and "same idempotency key" in body["detail"], body
    node.await_not_ready({f"a{i}": "TIMEOUT" for i in range(4)})
    code, _, err = node.end()
    assert code == 0, (code, err)
    assert all(f"'a{i}'" in err for i in range(4)), err
    assert err.count("without waiting any longer") == 1, err
    node = Node(where)
    answer, body = node.ask("POST", "/v1/apps/a0/workspaces/7/commands", order(), "key")
    assert (answer.status, body["duplicate"]) == (200, False), body
    assert node.end()[0] == 0


def test_stalled_database():
    """It is not ready within 5 s, requests are 503 in time, it ends with 0, and the log says why."""
    where = place()
    node = Node(where, "--store-answer-timeout", "3s")
    node.create()
    node.await_ready()
    with StalledPostgres():
        began = time.monotonic()
        while node.ask("GET", "/readyz")[0].status != 503:
            assert time.monotonic() - began < 10
            time.sleep(0.02)
        for method, path, body in (("POST", "/v1/apps/orders/workspaces/7/commands", order()),
                                   ("GET", "/v1/apps/orders/workspaces/7/records", None),
                                   ("GET", "/v1/work/items", None)):
            began = time.monotonic()
            answer, problem = node.ask(method, path, body)
            assert answer.status == 503, (path, answer.status, problem)
            assert time.monotonic() - began < 15, (path, time.monotonic() - began)
        assert node.ask("GET", "/livez")[0].status == 200
    node.await_ready()
    answer, problem = node.ask("POST", "/v1/apps/orders/workspaces/7/commands", order())
    assert answer.status == 200, problem
    with StalledPostgres():
        began = time.monotonic()
        code, _, err = node.end()
        assert time.monotonic() - began < 40, err
    assert code == 0, (code, err)


def test_lost_database():
    """What a database says goes into the log, not to whoever asks."""
    where = place()
    node = Node(where)
    node.create()
    name = where[1].partition("?")[0].rpartition("/")[2]
    subprocess.run(["psql", "-q", "-c", f'DROP DATABASE "{name}" WITH (FORCE)', os.environ["DATABASE_URL"]],
                   check=True)
    for method, path, body in (("POST", "/v1/apps/orders/workspaces/7/commands", order()),
                               ("GET", "/v1/apps/orders/workspaces/7/records", None),
                               ("PUT", "/v1/apps/other", {**SHOP, "name": "other", "id": 2})):
        answer, problem = node.ask(method, path, body)
        assert answer.status >= 500 and name not in json.dumps(problem), (method, answer.status, problem)
    _, _, err = node.end()
    assert name in err, err


def test_open_files():
    """The soft limit is raised; connections that do not fit into the hard one are fewer, and that is said."""
    def limits(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    node = Node(place(), "--log-format", "json", preexec=limits(100, 200))
    with open(f"/proc/{node.process.pid}/limits", encoding="ascii") as file:
        assert [line.split()[3] for line in file if line.startswith("Max open files")] == ["200"]
    node.create()
    code, _, err = node.end()
    said = json.loads(err.splitlines()[0])
    assert code == 0 and "server.connections_max" in said["msg"], err
    assert (said["connections_max"], said["lowered_to"], said["open_files"]) == (4096, 100, 200), said
    few = subprocess.run([PAWL, "serve", *place(), "--listen", "127.0.0.1:0"], env=ENV, cwd=TOP, timeout=WAIT_S,
                         text=True, capture_output=True, check=False, preexec_fn=limits(30, 30))
    assert few.returncode == 2 and "30 files" in few.stderr, few


def test_log():
    node = Node(place(), "--log-level", "debug", "--log-format", "json")
    node.ask("GET", "/livez")
    node.ask("GET", "/nowhere?secret")
    _, _, err = node.end()
    lines = [json.loads(line) for line in err.splitlines()]
    requests = [line for line in lines if line.get("msg", line.get("message")) == "request"]
    assert [line["code"] for line in requests] == [200, 404], lines
    assert requests[0]["method"] == "GET" and requests[0]["target"] == "/livez", requests


def test_work_metrics():
    where = place()
    node = Node(where)

    def metrics():
        connection = node.connect()
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    assert "\npawl_work_up 0\n" in metrics()
    store = ["--work", where[1]] if POSTGRES else where
    missing = subprocess.run([PAWL, "work", "stats", *store], env=ENV, check=False, capture_output=True)
    assert missing.returncode == 3, missing  # the node has made none
    subprocess.run([PAWL, "work", "submit", "--type", "mail", *store], env=ENV, check=True, capture_output=True)
    said = metrics()
    assert "\npawl_work_up 1\n" in said, said
    assert '\npawl_work_items{work_type="mail",status="pending"} 1\n' in said, said
    assert node.end()[0] == 0


it("says where it listens, what it has and how to stop it, and ends with 0", test_lines)
it("takes its limits from the settings", test_settings)
it("refuses an address that other machines can reach", test_foreign_address)
it("names an address that is in use", test_used_address)
if not POSTGRES:
    it("is the only one of its place", test_second)
it("is asked by the command line while it runs", test_cli_beside)
it("logs a line for each request at debug", test_log)
it("takes as many connections as open files allow", test_open_files)
it("ends a page that is large, and goes on behind it", test_large_page)
if POSTGRES:
    it("waits for the applications of another node", test_takes_over)
    it("says that a database has stalled, and ends in time with 0", test_stalled_database)
    it("keeps to itself what a database says", test_lost_database)
else:
    it("gives up stores that hang together, names them and ends with 0", test_hung_stores)
    it("listens to other machines with a token and TLS, or plain when told so", test_other_machines)
    it("speaks TLS 1.2 and 1.3 and nothing else when it has a certificate", test_tls)
    it("refuses a key that everybody may read, and one that does not fit", test_tls_settings)
it("ends on SIGTERM with commands on their way, and loses none that it answered", test_stop_in_flight)
it("loses nothing that it answered to kill -9, and answers the same again", test_kill)
it("shows the metrics of the work store beside it", test_work_metrics)
it("answers what its OpenAPI document declares", answers.check)
shutil.rmtree(TOP, ignore_errors=True)
done()
