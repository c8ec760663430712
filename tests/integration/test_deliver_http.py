#!/usr/bin/env python3
"""Delivery as a part of the node: intake, pipelines, failed events and SQL over HTTP, bad input, kill -9 under intake; and the
commands beside a node and beside a `pawl deliver` that runs, which say the same as without."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, environment, wait_until  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-deliver-http-")
ENV = environment(TOP, PAWL_STORE_FREE_SPACE_MIN="0")
WAIT_S = 240
EVENTS = "/v1/pipelines/orders/events"


class Node:
    """A running `pawl serve`."""

    def __init__(self, data, *args):
        self.data = data
        self.process = subprocess.Popen([PAWL, "serve", "--data", data, "--listen", "127.0.0.1:0", "--json", *args],
                                        env=ENV, cwd=TOP, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        assert line, "it did not start"
        self.port = int(json.loads(line)["url"].rpartition(":")[2])

    def raw(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent: the answer is there
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, text

    def ask(self, method, path, body=None):
        answer, text = self.raw(method, path, json.dumps(body) if body is not None else None)
        return answer.status, json.loads(text or b"null")

    def good(self, method, path, body=None):
        code, answer = self.ask(method, path, body)
        assert code == 200, (method, path, code, answer)
        return answer

    def post(self, event_id, payload):
        return self.ask("POST", EVENTS, {"event_id": event_id, "payload": payload})

    def rows(self, statement):
        return self.good("POST", "/v1/sql", {"sql": statement})["rows"]

    def settled(self, accepted):
        """What it shows is as old as its last round: an event that was accepted may not be counted yet."""
        shown = self.good("GET", "/v1/pipelines/orders")
        return shown["accepted"] >= accepted and shown["pending"] == 0

    def add_orders(self, **more):
        self.good("POST", "/v1/pipelines", {"name": "orders", "from": "http", "into": "orders", **more})
        self.await_running()

    def await_running(self):
        wait_until(lambda: self.ask("GET", "/v1/pipelines/orders")[1].get("state") == "running", "it does not run", WAIT_S)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=WAIT_S)
        self.process.stdout.close()


def check(name):
    return lambda test: it(name, test)


def place():
    return tempfile.mkdtemp(dir=TOP)


def pawl(*args, text=""):
    return subprocess.run([PAWL, *args], input=text, env=ENV, cwd=TOP, timeout=WAIT_S, text=True, capture_output=True,
                          check=False)


@check("makes nothing for pipelines that nobody has declared")
def _():
    node = Node(place())
    assert node.good("GET", "/v1/pipelines") == {"items": [], "next": None}
    assert node.ask("GET", "/v1/pipelines/orders")[0] == 404
    assert node.ask("POST", "/v1/sql", {"sql": "SELECT 1"})[0] == 404
    assert node.good("GET", "/readyz")["ready"]
    assert not {"pipelines", "analytics.duckdb", "wal"} & set(os.listdir(node.data)), os.listdir(node.data)
    node.stop()


@check("accepts an event once, tells duplicates and conflicts, and delivers")
def _():
    node = Node(place())
    node.add_orders()
    assert node.post("17", {"euro": 5}) == (200, {"results": [{"result": "accepted"}]})
    assert node.post("17", {"euro": 5}) == (200, {"results": [{"result": "duplicate"}]})
    code, problem = node.post("17", {"euro": 6})
    assert (code, problem["code"], problem["reason"]) == (409, "CONFLICT", "ID_TAKEN"), problem
    batch = {"events": [{"event_id": "18", "payload": 1}, {"event_id": "19", "sequence": 2, "payload": [1]}]}
    assert [r["result"] for r in node.good("POST", EVENTS, batch)["results"]] == ["accepted", "accepted"]
    wait_until(lambda: node.settled(4), "not settled", WAIT_S)
    assert node.rows("SELECT transaction_id FROM orders ORDER BY 1") == [["orders:17:0"], ["orders:18:0"], ["orders:19:2"]]
    assert node.rows("SELECT failure_reason, count(*) FROM failed_events GROUP BY 1") == [["conflict", 1]]
    shown = node.good("GET", "/v1/pipelines/orders")
    assert shown["accepted"] == 4 == shown["delivered"] + shown["filtered"] + shown["failed"] + shown["pending"], shown
    node.stop()


@check("refuses bad input by name and accepts nothing of it")
def _():
    node = Node(place())
    node.add_orders()
    for body, code, word in (
            ('{"event_id":', 400, "INVALID"), ("[]", 400, "INVALID"), ('{"events": []}', 400, "INVALID"),
            ('{"payload": {}}', 400, "INVALID"), ('{"event_id": "", "payload": {}}', 400, "INVALID"),
            ('{"event_id": "1"}', 400, "INVALID"), ('{"event_id": "1", "payload": {}, "extra": 1}', 400, "INVALID"),
            ('{"event_id": "%s", "payload": {}}' % ("x" * 201), 400, "INVALID"),
            ('{"event_id": "a:b", "source": "x:y", "payload": {}}', 400, "INVALID"),
            ('{"event_id": "1", "sequence": -1, "payload": {}}', 400, "INVALID"),
            ('{"events": [{"event_id": "1", "payload": 1}, {"payload": 2}]}', 400, "INVALID"),
            ('{"event_id": "1", "payload": "%s"}' % ("x" * (20 << 20)), 413, "TOO_LARGE")):
        answer, text = node.raw("POST", EVENTS, body)
        assert (answer.status, json.loads(text)["code"]) == (code, word), (body[:60], answer.status, text[:200])
    assert node.ask("POST", "/v1/pipelines/nosuch/events", {"event_id": "1", "payload": {}})[0] == 404
    assert node.ask("POST", "/v1/pipelines", {"name": "x y", "from": "http"})[0] == 400
    assert node.ask("POST", "/v1/pipelines", {"name": "orders", "from": "http", "into": "orders", "id_field": "x"})[0] == 409
    assert node.good("GET", "/v1/pipelines/orders")["accepted"] == 0
    node.stop()


@check("answers 503 with Retry-After while a pipeline is paused")
def _():
    node = Node(place())
    node.add_orders()
    assert node.good("POST", "/v1/pipelines/orders/pause", {})["state"] == "paused"
    answer, text = node.raw("POST", EVENTS, json.dumps({"event_id": "1", "payload": {}}))
    assert (answer.status, json.loads(text)["code"]) == (503, "UNAVAILABLE"), text
    assert answer.getheader("Retry-After"), answer.getheaders()
    node.good("POST", "/v1/pipelines/orders/resume", {})
    node.await_running()
    assert node.post("1", {})[0] == 200
    node.stop()


@check("takes the actions of people on failed events, with a count first")
def _():
    node = Node(place())
    node.add_orders(columns=[{"name": "euro", "type": "INTEGER", "required": True}])
    for i in range(5):
        assert node.post(str(i), {"euro": "much"})[0] == 200
    wait_until(lambda: node.good("GET", "/v1/pipelines/orders")["failed"] == 5, "not failed", WAIT_S)
    failed = "/v1/pipelines/orders/failed"
    page = node.good("GET", f"{failed}?limit=2")
    assert len(page["items"]) == 2 and page["next"], page
    rest = node.good("GET", f"{failed}?limit=100&from={page['next']}")
    assert len(rest["items"]) == 3 and rest["next"] is None, rest
    one = page["items"][0]
    assert node.good("GET", f"{failed}/{one['id']}") == one
    assert node.ask("GET", f"{failed}/5b0f1c9e-7a34-8c1d-9e55-0c6d1f2a3b4c")[0] == 404
    assert node.ask("GET", f"{failed}/nonsense")[0] == 400
    again = node.good("POST", f"{failed}/{one['id']}/retry", {"by": "kim"})
    assert again["refused"] == 1 and "euro" in again["error"], again
    mended = node.good("POST", f"{failed}/{one['id']}/retry", {"by": "kim", "payload": {"euro": 7}})
    assert mended["delivered"] == 1, mended
    assert node.rows("SELECT euro FROM orders") == [[7]]
    assert node.ask("POST", f"{failed}/{one['id']}/retry", {"by": "kim"})[0] == 409
    assert node.ask("POST", f"{failed}/{one['id']}/resolve", {})[0] == 400
    count = node.good("GET", f"{failed}/count?action=abandon")["count"]
    assert count == 4, count
    assert node.ask("POST", f"{failed}/actions", {"action": "abandon", "expected": 3, "by": "kim"})[0] == 409
    assert node.good("POST", f"{failed}/actions", {"action": "abandon", "expected": 4, "by": "kim"})["closed"] == 4
    _, lines = node.raw("GET", f"{failed}/export?status=abandoned")
    exported = [json.loads(line) for line in lines.splitlines()]
    assert len(exported) == 4 and {e["resolved_by"] for e in exported} == {"kim"}, exported
    log = node.good("GET", "/v1/pipelines/orders/wal")
    assert log["last_lsn"] == 5, log
    assert node.good("GET", "/v1/pipelines/orders/wal/entries?limit=2")["next"] == "3"
    assert node.good("GET", "/v1/pipelines/orders/wal/entries/2")["event_payload"] == {"euro": "much"}
    assert node.ask("GET", "/v1/pipelines/orders/wal/entries/77")[0] == 404
    node.stop()


@check("runs SQL that only reads, within limits")
def _():
    node = Node(place())
    node.add_orders()
    assert node.ask("POST", "/v1/sql", {"sql": "DELETE FROM orders"})[0] == 403
    assert node.ask("POST", "/v1/sql", {"sql": "SELECT * FROM read_csv('/etc/passwd')"})[0] in (400, 403)
    assert node.ask("POST", "/v1/sql", {"sql": "SELEKT"})[0] == 400
    assert node.ask("POST", "/v1/sql", {"sql": ""})[0] == 400
    few = node.good("POST", "/v1/sql", {"sql": "SELECT * FROM range(10)", "limit": 3})
    assert few == {"columns": ["range"], "rows": [[0], [1], [2]], "truncated": True}, few
    slow = {"sql": "SELECT count(*) FROM range(100000000) a, range(1000) b", "timeout": "100ms"}
    assert node.ask("POST", "/v1/sql", slow)[0] == 503
    assert node.post("1", {})[0] == 200
    node.stop()


@check("tells followers of every pipeline that changes")
def _():
    node = Node(place())
    node.add_orders()
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=WAIT_S)
    connection.request("GET", "/v1/pipelines/changes")
    stream = connection.getresponse()

    def await_change(wanted):
        while True:
            line = stream.readline().decode()
            assert line, "the stream ended"
            if line.startswith("data: ") and wanted(json.loads(line[6:])):
                return

    await_change(lambda c: c["pipeline"]["name"] == "orders" and c["pipeline"]["state"] == "running")
    node.post("1", {})
    await_change(lambda c: c["pipeline"]["delivered"] == 1)
    node.good("POST", "/v1/pipelines/orders/pause", {})
    await_change(lambda c: c["pipeline"]["state"] == "paused")
    node.good("DELETE", "/v1/pipelines/orders")
    await_change(lambda c: c["removed"])
    connection.close()
    node.stop()


@check("counts pipelines in /metrics and /healthz")
def _():
    node = Node(place())
    node.add_orders()
    node.post("1", {})
    wait_until(lambda: node.good("GET", "/v1/pipelines/orders")["delivered"] == 1, "not delivered", WAIT_S)
    text = node.raw("GET", "/metrics")[1].decode()
    for name in ("writes_total", "confirms_total", "retries_total", "failures_total", "recoveries_total",
                 "pending_entries"):
        assert f'consumer_wal_{name}{{pipeline="orders"}}' in text, name
    assert 'pawl_delivery_events{pipeline="orders",state="delivered"} 1' in text, text
    health = node.good("GET", "/healthz")
    assert (health["pipelines"], health["pipelines_running"]) == (1, 1), health
    node.stop()


def kill_under_intake(node, sender_count, answered):
    """Posts until the node is gone; what was answered with 200 is noted."""
    def send(number):
        for i in range(100000):
            event_id = f"{node.process.pid}-{number}-{i}"
            try:
                code, answer = node.post(event_id, {"n": i})
            except (OSError, http.client.HTTPException):
                return
            if code == 200 and answer["results"][0]["result"] == "accepted":
                answered.append(event_id)

    before = len(answered)
    senders = [threading.Thread(target=send, args=(n,)) for n in range(sender_count)]
    for sender in senders:
        sender.start()
    wait_until(lambda: len(answered) > before + 100, "nothing is accepted", WAIT_S)
    node.stop(signal.SIGKILL)
    for sender in senders:
        sender.join(timeout=WAIT_S)


@check("has every event that it answered with 200 exactly once, however often it is killed")
def _():
    data = place()
    answered = []
    node = Node(data)
    node.add_orders()
    for _round in range(3):
        kill_under_intake(node, 4, answered)
        node = Node(data)
        node.await_running()
    wait_until(lambda: node.settled(len(answered)), "not settled", WAIT_S)
    rows = node.good("POST", "/v1/sql", {"sql": "SELECT event_id, count(*) FROM (SELECT event_id FROM orders UNION ALL "
                                                "SELECT event_id FROM failed_events) GROUP BY 1", "limit": 100000})
    counts = dict(rows["rows"])
    assert not rows["truncated"]
    assert [e for e in answered if counts.get(e) != 1] == [], "lost or doubled"
    assert set(counts.values()) == {1}, "doubled"
    node.stop()


@check("says that another process has the pipelines, and takes them when it ends")
def _():
    data = place()
    with open(f"{TOP}/follow.jsonl", "w", encoding="utf-8") as file:
        file.write('{"n": 1}\n')
    other = subprocess.Popen([PAWL, "deliver", "--data", data, "--from", "follow.jsonl", "--into", "lines"], env=ENV,
                             cwd=TOP, stdout=subprocess.DEVNULL)
    wait_until(lambda: pawl("pipeline", "show", "--data", data, "lines").returncode == 0, "it does not run", WAIT_S)
    node = Node(data)
    wait_until(lambda: node.good("GET", "/readyz")["degraded"] == [{"store": "delivery", "why": "BUSY"}], "not degraded",
               WAIT_S)
    assert node.ask("GET", "/v1/pipelines")[0] == 503
    shown = pawl("sql", "--data", data, "--json", "SELECT count(*) AS n FROM lines")
    assert (shown.returncode, shown.stdout) == (0, '{"n":1}\n'), shown
    other.send_signal(signal.SIGTERM)
    other.wait(timeout=WAIT_S)
    wait_until(lambda: node.ask("GET", "/v1/pipelines/lines")[1].get("state") == "running", "not taken", WAIT_S)
    assert node.good("GET", "/readyz")["degraded"] == []
    node.stop()


def session(data):
    """The commands of one day, with what must differ taken out of their output."""
    at = ["--data", data]
    lines = f"{TOP}/lines.jsonl"
    with open(lines, "w", encoding="utf-8") as file:
        file.write('{"order":17, "euro": 5}\n{"order":\n')
    said = []

    def say(*args):
        result = pawl(*args, *at)
        text = result.stdout + result.stderr
        for pattern, word in ((re.escape(data), "DATA"), (r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID"), (r"20\d\d-[^\"\s]*Z", "TIME"),
                              (r"\d+@\d+@\d+", "PLACE"), (r"running|stopped", "STATE"), (r"\"duration_us\":\d+", "DURATION")):
            text = re.sub(pattern, word, text)
        shown = [re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", arg) for arg in args]
        said.append((shown, result.returncode, text))
        return result.stdout

    say("pipeline", "list")
    say("deliver", "--from", lines, "--into", "orders", "--drain")
    say("pipeline", "list", "--json")
    say("wal", "show", "orders", "2")
    say("wal", "show", "orders", "99")
    say("wal", "pending", "orders")
    event = json.loads(say("failed", "list", "--json"))["id"]
    say("failed", "show", event)
    say("failed", "show", "5b0f1c9e-7a34-8c1d-9e55-0c6d1f2a3b4c")
    say("failed", "export")
    say("failed", "retry", "--all", "--reason", "not_json")
    say("failed", "retry", event)
    say("failed", "resolve", "--all", "--expect", "3")
    say("failed", "retry", event, "--payload", '{"order":18}', "--by", "kim", "--notes", "cut off")
    say("failed", "retry", event)
    say("sql", "SELECT payload, 1.5::DOUBLE AS d, true AS b, NULL AS n, [1, 2] AS l FROM orders ORDER BY 1")
    say("sql", "SELEKT")
    say("pipeline", "pause", "orders")
    say("deliver", "--from", lines, "--into", "orders", "--drain")
    say("pipeline", "resume", "orders")
    say("pipeline", "add", "--from", lines, "--into", "other", "orders")
    say("pipeline", "remove", "nosuch")
    say("pipeline", "remove", "orders")
    say("pipeline", "list")
    return said


@check("answers commands with and without a node in the same words")
def _():
    alone = session(tempfile.mkdtemp(dir=place()))
    node = Node(tempfile.mkdtemp(dir=place()))
    beside = session(node.data)
    node.stop()
    for one, other in zip(alone, beside):
        assert one == other, (one, other)
    assert len(alone) == len(beside)


@check("replays as a call, and audits as a job")
def _():
    node = Node(place())
    assert node.ask("POST", "/v1/jobs", {"kind": "delivery.audit", "parameters": {}})[0] == 404
    node.add_orders()
    assert node.post("1", {})[0] == 200
    wait_until(lambda: node.settled(1), "not settled", WAIT_S)
    traced = node.good("GET", "/v1/trace?id=orders:1:0")
    assert {"table"} <= {step["place"] for step in traced["steps"]}, traced
    assert node.ask("GET", "/v1/trace?id=nosuch")[0] == 404
    replayed = node.good("POST", "/v1/pipelines/orders/replay", {"by": "lsn", "from": 1, "to": 1})
    assert replayed["present"] + replayed["gone"] == 1 and replayed["delivered"] == 0, replayed
    assert node.ask("POST", "/v1/pipelines/orders/replay", {"by": "colour"})[0] == 400
    assert node.ask("POST", "/v1/pipelines/nosuch/replay", {})[0] == 404
    code, job = node.ask("POST", "/v1/jobs", {"kind": "delivery.audit", "parameters": {"pipeline": "orders"}})
    assert code == 202, job
    wait_until(lambda: node.good("GET", f"/v1/jobs/{job['job_id']}")["ended_at"], "the audit does not end", WAIT_S)
    ended = node.good("GET", f"/v1/jobs/{job['job_id']}")
    assert ended["state"] == "done" and ended["result"]["lost"] == 0 == ended["result"]["duplicated"], ended
    node.stop()


@check("refuses to hand standard input to another process")
def _():
    node = Node(place())
    node.add_orders()
    refused = pawl("deliver", "--data", node.data, "--from", "-", "--source", "nightly", "--into", "lines", text="{}\n")
    assert refused.returncode == 5 and "standard input" in refused.stderr, refused
    node.stop()


done()
