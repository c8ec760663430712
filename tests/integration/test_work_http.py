#!/usr/bin/env python3
"""Work over HTTP as processes: `pawl serve` and `pawl work` on one store, nodes that are killed, and
several of them. The argument says which store: `sqlite` or `postgres`."""
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
import answers  # noqa: E402
from tap import done, it  # noqa: E402
from work_node import POSTGRES, TOP, WAIT_S, Node, Store, mail  # noqa: E402

NODES = 2
CLIENTS = 8
ITEMS = 500


def test_same_objects():
    store = Store()
    node = Node(store)
    node.good("POST", "tasks", {"task_id": "t", "title": "Träume \u202e", "metadata": {"a": [1, None, 2.5]}})
    node.good("POST", "items", {"items": [mail("a", input_data={"to": ["ada", "\n"]}, priority=5), mail("b"),
                                          mail("c", after=["b"]), mail("d", delay="1h")]})
    token = node.claim()[0]["token"]
    node.good("POST", "tasks/t/checkpoints", {"snapshot_data": {"page": 1}, "checkpoint_type": "iteration_end",
                                              "work_item_id": "a", "token": token})
    node.good("POST", "items/a/fail", {"token": token, "error_message": "no net\nat all", "output_data": [1],
                                      "permanent": True})
    node.good("POST", "tasks/t/checkpoints", {"snapshot_data": None, "metadata": {"x": "y"}})
    for name in "abcd":
        assert node.good("GET", f"items/{name}") == store.work("show", name)[0], name
    by_id = sorted(store.work("list"), key=lambda item: item["work_item_id"])
    assert node.good("GET", "items") == {"items": by_id, "next": None}
    assert node.good("GET", "tasks/t") == store.work("task", "show", "t")[0]
    assert node.good("GET", "tasks")["items"] == store.work("task", "list")
    assert node.good("GET", "tasks/t/checkpoints")["items"] == store.work("checkpoint", "list", "t")
    assert node.good("GET", "tasks/t/checkpoints/latest") == store.work("checkpoint", "latest", "t")[0]
    assert node.good("GET", "tasks/t/recovery") == store.work("recover", "t")[0]
    told = node.claim("bob", types=["mail"])[0]
    shown = store.work("show", told["work_item_id"])[0]
    assert told == {key: shown[key] for key in told} and set(shown) - set(told) == {"history"}, (told, shown)
    assert node.end()[0] == 0


def test_recovery_runs_no_command():
    store = Store()
    node = Node(store)
    ran = os.path.join(tempfile.mkdtemp(dir=TOP), "ran")

    def times():
        with open(ran, encoding="utf-8") as file:
            return len(file.readlines())

    node.good("POST", "tasks", {"task_id": "t", "title": "t"})
    store.work("checkpoint", "add", "--task", "t", "--snapshot", "1", "--evidence", f"command_exit=echo x >>{ran}")
    assert times() == 1
    assert node.good("GET", "tasks/t/recovery")["resume"]["sequence_number"] == 1
    assert times() == 1
    store.work("recover", "t")
    assert times() == 2
    items = [mail(f"m{number:04}") for number in range(1001)]
    node.good("POST", "items", {"items": items})
    recovery = node.good("GET", "tasks/t/recovery")
    assert len(recovery["items"]) == 1000 and recovery["more"] and recovery["task"]["pending"] == 1001
    assert len(store.work("recover", "t")[0]["items"]) == 1001
    assert node.end()[0] == 0


def test_lost_leases():
    """What the command line says with exit code 4 is 409 here."""
    store = Store()
    node = Node(store)
    node.good("POST", "tasks", {"task_id": "t"})
    node.good("POST", "items", mail("a"))
    token = node.claim(lease="1h")[0]["token"]
    for call in ("heartbeat", "complete", "release"):
        code, body = node.ask("POST", f"items/a/{call}", {"token": token + 1})
        assert (code, body["code"]) == (409, "LEASE_LOST"), body
        store.work(call, "a", "--token", str(token + 1), code=4)
    store.work("release", "a", "--token", str(token))
    assert store.work("claim", "--holder", "bob")[0]["token"] == token + 1
    code, body = node.ask("POST", "items/a/complete", {"token": token})
    assert (code, body["code"]) == (409, "LEASE_LOST") and "'a'" in body["detail"], body
    node.good("POST", "items/a/complete", {"token": token + 1, "output_data": 1})
    code, body = node.ask("POST", "items/a/complete", {"token": token + 1, "output_data": 2})
    assert (code, body["code"]) == (409, "LEASE_LOST"), body
    assert node.end()[0] == 0


def test_kill():
    store = Store()
    node = Node(store)
    node.good("POST", "tasks", {"task_id": "t"})
    node.good("POST", "items", {"items": [mail("a"), mail("b")]})
    held = {item["work_item_id"]: item["token"] for item in node.claim(count=2)}
    node.good("POST", "items/a/complete", {"token": held["a"], "output_data": "done"})
    node.end(signal.SIGKILL)
    node = Node(store)
    node.good("POST", "items/b/heartbeat", {"token": held["b"]})
    node.good("POST", "items/b/complete", {"token": held["b"]})
    node.good("POST", "items/a/complete", {"token": held["a"], "output_data": "done"})  # as it was answered before
    assert node.good("GET", "items/a")["output_data"] == "done"
    assert node.good("GET", "tasks/t")["status"] == "succeeded"
    assert node.end()[0] == 0


def drain(node, holder, finished, failures):
    try:
        connection = node.connect()
        while True:
            code, body = node.ask("POST", "claims", {"holder": holder, "count": 3}, connection)
            assert code == 200, body
            if not body["items"]:
                return
            for item in body["items"]:
                code, said = node.ask("POST", f"items/{item['work_item_id']}/complete",
                                      {"token": item["token"], "output_data": holder}, connection)
                assert code == 200, said
                finished.append(item["work_item_id"])
    except Exception as error:  # noqa: BLE001 - of a thread: the test says it
        failures.append(repr(error))


def test_two_nodes():
    store = Store()
    nodes = [Node(store) for _ in range(NODES)]
    nodes[0].good("POST", "tasks", {"task_id": "t"})
    nodes[1].good("POST", "items", {"items": [mail(f"i-{number:03}") for number in range(ITEMS)]})
    finished, failures = [], []
    threads = [threading.Thread(target=drain, args=(node, f"c{index}-{number}", finished, failures))
               for index, node in enumerate(nodes) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert sorted(finished) == [f"i-{number:03}" for number in range(ITEMS)], len(finished)
    items = store.work("list")
    assert all((item["status"], item["attempts"]) == ("completed", 1) for item in items)
    assert [node.end()[0] for node in nodes] == [0] * NODES


def waiting(node, **more):
    """A claim that waits, on a thread: it and where its answer will be."""
    answer = []
    thread = threading.Thread(target=lambda: answer.append(
        node.ask("POST", "claims", {"holder": "ada", "wait": "50s", **more})))
    thread.start()
    return thread, answer


def test_long_poll():
    store = Store()
    node = Node(store)
    node.good("POST", "tasks", {"task_id": "t"})
    thread, answer = waiting(node)
    store.work("submit", "--type", "mail", "--task", "t", "--id", "a")
    thread.join(40)  # before it would have ended by itself
    assert answer and answer[0][0] == 200, answer
    assert [item["work_item_id"] for item in answer[0][1]["items"]] == ["a"], answer
    assert node.end()[0] == 0


def taken(node):
    """Connections that the node has accepted and read from."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return sum(row[1].endswith(f":{node.port:04X}") and row[3] == "01" and row[4].endswith(":00000000") and row[9] != "0"
               for row in rows)


def test_stop():
    node = Node(Store())
    node.good("POST", "tasks", {"task_id": "t"})
    waits = [node.connect() for _ in range(3)]
    for wait in waits:
        wait.request("POST", "/v1/work/claims", json.dumps({"holder": "ada", "wait": "50s"}),
                     {"Content-Type": "application/json"})
    deadline = time.monotonic() + WAIT_S
    while taken(node) < len(waits) and time.monotonic() < deadline:
        pass
    code, _, err = node.end()
    for wait in waits:
        answer = wait.getresponse()
        assert answer.status == 503 and json.loads(answer.read())["code"] == "STOPPING", answer.read()
    assert code == 0, err


def test_sweep():
    store = Store()
    node = Node(store, "--work-sweep", "100ms")
    node.good("POST", "tasks", {"task_id": "t"})
    node.good("POST", "items", mail("a"))
    assert node.claim("ada", lease="1ms")
    assert [item["token"] for item in node.claim("bob", wait="50s")] == [2]
    assert node.end()[0] == 0


def test_locked():
    """Another process has the file locked: what it holds up is told so, and the node ends with 0 in time."""
    store = Store()
    node = Node(store, "--server-stop-timeout", "2s")
    node.good("POST", "tasks", {"task_id": "t"})
    holder = sqlite3.connect(store.location.partition(":")[2], isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    asking = node.connect()
    asking.request("POST", "/v1/work/items", json.dumps({"task_id": "t", "work_type": "mail"}),
                   {"Content-Type": "application/json"})
    node.good("GET", "items")  # behind it: the request has arrived
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    _, err = node.process.communicate(timeout=WAIT_S)
    took = time.monotonic() - began
    answer = asking.getresponse()
    holder.execute("ROLLBACK")
    holder.close()
    assert node.process.returncode == 0, (node.process.returncode, err)
    assert took < 40, (took, err)
    assert answer.status == 503, answer.read()


it("shows the objects that `pawl work --json` shows, field for field", test_same_objects)
it("runs no command and lists a thousand items when it tells where a task continues", test_recovery_runs_no_command)
it("says 409 where the command line has exit code 4", test_lost_leases)
it("takes the token that was given before a kill -9", test_kill)
it("completes each item once with two nodes and many clients", test_two_nodes)
it("wakes a claim that waits when another process submits", test_long_poll)
it("tells whoever waits that it stops, and ends with 0", test_stop)
it("gives an item whose lease ran out to whoever waits", test_sweep)
if not POSTGRES:
    it("ends with 0 while another process has the file locked", test_locked)
it("answers what its OpenAPI document declares", answers.check)
shutil.rmtree(TOP, ignore_errors=True)
done()
