#!/usr/bin/env python3
"""The feed of changes as processes follow it: many of them, clients that come back, and a node that is killed. The
argument says which store: `sqlite` or `postgres`."""
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from tap import done, it  # noqa: E402
from work_node import TOP, WAIT_S, Node, Store, mail  # noqa: E402

FOLLOWERS = 2000
ROUNDS = 20
KILLS = 4
# AddressSanitizer keeps up to 256 MiB of what was freed, which looks like memory that grows.
KEEP_NOTHING_FREED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                      + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}


class Follower:
    """A client of the feed that remembers the id of the last event."""

    def __init__(self, node, query="", last=None):
        self.last = last
        self.socket = socket.create_connection(("127.0.0.1", node.port), timeout=WAIT_S)
        header = f"Last-Event-ID: {last}\r\n" if last is not None else ""
        self.socket.sendall(f"GET /v1/work/changes{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n".encode())
        self.head, self.rest, self.chunk = None, b"", b""
        self.events = []

    def read_head(self):
        while self.head is None and self.receive():
            pass
        return self.head

    def receive(self):
        """False at the end."""
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        self.rest += data
        if self.head is None and b"\r\n\r\n" in self.rest:
            head, _, self.rest = self.rest.partition(b"\r\n\r\n")
            self.head = head.decode()
        if self.head is not None and "text/event-stream" in self.head:
            self.take_chunks()
        return bool(data)

    def take_chunks(self):
        while b"\r\n" in self.rest:
            size, _, after = self.rest.partition(b"\r\n")
            length = int(size, 16)
            if len(after) < length + 2:
                break
            self.chunk += after[:length]
            self.rest = after[length + 2:]
        while b"\n\n" in self.chunk:
            event, _, self.chunk = self.chunk.partition(b"\n\n")
            self.take_event(event.decode())

    def take_event(self, text):
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        if "id" in fields:
            data = json.loads(fields["data"])
            assert fields["event"] == data["to"], text
            self.last = fields["id"]
            self.events.append((data["work_item_id"], data.get("from") or "", data["to"]))

    def wait_for(self, count):
        deadline = time.monotonic() + WAIT_S
        while len(self.events) < count:
            assert time.monotonic() < deadline and self.receive(), (len(self.events), count, self.head)
        return self.events

    def close(self):
        self.socket.close()


def steps(name, end="completed"):
    return [(name, "", "pending"), (name, "pending", "in_progress"), (name, "in_progress", end)]


def work_off(node, name):
    node.good("POST", "items", mail(name))
    item = node.claim(types=["mail"])[0]
    node.good("POST", f"items/{item['work_item_id']}/complete", {"token": item["token"]})


def test_follow():
    node = Node(Store())
    node.good("POST", "tasks", {"task_id": "t", "title": "T"})
    node.good("POST", "tasks", {"task_id": "u", "title": "U"})
    live = Follower(node)
    assert "200" in live.read_head() and "text/event-stream" in live.head, live.head
    work_off(node, "a")
    assert live.wait_for(3) == steps("a")
    node.good("POST", "items", {"work_item_id": "b", "task_id": "u", "work_type": "print"})
    live.wait_for(4)
    resumed = Follower(node, last=live.last)
    work_off(node, "c")
    live.wait_for(7)
    assert resumed.wait_for(3) == live.events[4:]
    everything = Follower(node, "?from=start")
    assert everything.wait_for(7) == live.events
    for query, part in (("?type=print&from=start", [e for e in live.events if e[0] == "b"]),
                        ("?task=u&from=start", [e for e in live.events if e[0] == "b"]),
                        ("?status=completed,failed&from=start", [e for e in live.events if e[2] == "completed"])):
        some = Follower(node, query)
        assert some.wait_for(len(part)) == part, (query, some.events, part)
        some.close()
    assert node.end()[0] == 0
    for one in (live, resumed, everything):  # the node ends its streams
        while one.receive():
            pass


def test_refused():
    node = Node(Store())
    early = Follower(node)
    assert "404" in early.read_head(), early.head
    node.good("POST", "tasks", {"task_id": "t", "title": "T"})
    for last, query, code in (("17", "", "400"), ("0-x", "", "400"), (None, "?from=yesterday", "400"),
                              (None, "?status=done", "400"), (None, "?status=failed,waiting", "400"), (None, "?limit=5", "400"),
                              ("999999999-1", "", "410"), (None, "?from=999999999-1", "410")):
        follower = Follower(node, query, last)
        assert f" {code} " in follower.read_head(), (last, query, follower.head)
        assert "application/problem+json" in follower.head, follower.head
        follower.close()
    assert node.end()[0] == 0


def test_gone():
    store = Store()
    node = Node(store)
    node.good("POST", "tasks", {"task_id": "t", "title": "T"})
    follower = Follower(node)
    follower.read_head()
    work_off(node, "a")
    follower.wait_for(3)
    first = Follower(node, "?from=start&status=pending")
    first.wait_for(1)
    time.sleep(0.01)
    store.work("retention", "--item-days", "0")
    behind = Follower(node, last=first.last)
    assert " 410 " in behind.read_head(), behind.head
    while b'"code":"GONE"' not in behind.rest:
        assert behind.receive(), behind.rest
    work_off(node, "b")
    assert follower.wait_for(6)[3:] == steps("b")
    assert node.end()[0] == 0


def rss_kib(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def threads(node):
    return len(os.listdir(f"/proc/{node.process.pid}/task"))


def drain(followers, count):
    """Until each has so many events."""
    waiting = selectors.DefaultSelector()
    for follower in followers:
        if len(follower.events) < count:
            waiting.register(follower.socket, selectors.EVENT_READ, follower)
    deadline = time.monotonic() + WAIT_S
    while waiting.get_map():
        assert time.monotonic() < deadline, "some have not got all"
        for key, _ in waiting.select(1):
            assert key.data.receive()
            if len(key.data.events) >= count:
                waiting.unregister(key.data.socket)


def test_many():
    node = Node(Store(), "--server-connections-max", str(2 * FOLLOWERS + 200), env=KEEP_NOTHING_FREED)
    node.good("POST", "tasks", {"task_id": "t", "title": "T"})
    Follower(node).read_head()
    before = threads(node)
    followers = [Follower(node) for _ in range(FOLLOWERS)]
    for i, follower in enumerate(followers):
        while " 503 " in follower.read_head():  # 2,000 at once on a busy machine: it asks to come back
            follower.close()
            time.sleep(1)
            follower = followers[i] = Follower(node)
        assert " 200 " in follower.head, follower.head
    assert threads(node) <= before + 4, (threads(node), before)
    sizes = []
    for i in range(ROUNDS):
        node.good("POST", "items", {"items": [mail(f"{i}-{j}") for j in range(10)]})
        drain(followers, 10 * (i + 1))
        sizes.append(rss_kib(node))
    expected = [(f"{i}-{j}", "", "pending") for i in range(ROUNDS) for j in range(10)]
    assert all(follower.events == expected for follower in followers)
    settled = max(sizes[:ROUNDS // 4])  # buffers that are used again have grown by then
    assert sizes[-1] <= settled * 1.15 + 4096, sizes
    print(f"# {FOLLOWERS} followers: {sizes[0]} KiB after the first round, {sizes[-1]} KiB after the last")
    for follower in followers:
        follower.close()
    assert node.end()[0] == 0


def load(node, number, stop, failures):
    """Submits, claims and completes until the node is gone."""
    i = 0
    try:
        while not stop.is_set():
            node.good("POST", "items", mail(f"{number}-{i}"))
            for item in node.claim(f"w{number}", count=3):
                node.good("POST", f"items/{item['work_item_id']}/complete", {"token": item["token"]})
            i += 1
    except (OSError, ValueError, AssertionError) as error:
        if not stop.is_set():
            failures.append(error)
    except Exception as error:  # http.client has many
        if not stop.is_set():
            failures.append(error)


def follow_until(node, follower_of, last, stop):
    follower = Follower(node, "?from=start", last)
    follower_of.append(follower)
    while follower.receive():
        pass


def test_kill():
    store = Store()
    seen, last = [], None
    for kill in range(KILLS):
        node = Node(store)
        if kill == 0:
            node.good("POST", "tasks", {"task_id": "t", "title": "T"})
        stop, failures, following = threading.Event(), [], []
        workers = [threading.Thread(target=load, args=(node, f"{kill}.{i}", stop, failures)) for i in range(3)]
        reader = threading.Thread(target=follow_until, args=(node, following, last, stop))
        for thread in [reader, *workers]:
            thread.start()
        deadline = time.monotonic() + WAIT_S
        while not (following and len(following[0].events) > 60) and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        node.end(signal.SIGKILL)
        for thread in [reader, *workers]:
            thread.join(WAIT_S)
        assert not failures, failures
        assert len(following[0].events) > 60, following[0].head
        seen += following[0].events
        last = following[0].last
    node = Node(store)
    history = []
    for item in store.work("list"):
        for event in store.work("show", item["work_item_id"])[0]["history"]:
            history.append((item["work_item_id"], event.get("from") or "", event["to"]))
    rest = Follower(node, last=last)
    seen += rest.wait_for(len(history) - len(seen))
    assert sorted(seen) == sorted(history), (len(seen), len(history), set(history) ^ set(seen))
    assert len(set(seen)) == len(seen)
    by_item = {}
    for name, old, new in seen:
        assert by_item.get(name, "") == old, (name, old, new)  # in the order in which they happened
        by_item[name] = new
    assert node.end()[0] == 0


it("sends each change once, from an id on and through filters", test_follow)
it("refuses what is no id, and says 410 to one that the store has not reached", test_refused)
it("says 410 when changes after an id were removed", test_gone)
it(f"serves {FOLLOWERS} followers without a thread each and with flat memory", test_many)
it("loses nothing and repeats nothing over kill -9 of the node, for a client that sends Last-Event-ID", test_kill)
shutil.rmtree(TOP, ignore_errors=True)
done()
