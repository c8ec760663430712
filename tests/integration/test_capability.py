#!/usr/bin/env python3
"""The example of a capability (examples/capability): command, routes, stream, metric, and how short it is."""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from tap import done, it  # noqa: E402

COUNTER = os.path.join(os.environ["PAWL_BUILD"], "examples", "capability", "counter")
SOURCE = os.path.join(os.environ["PAWL_SOURCE"], "examples", "capability")
TOP = tempfile.mkdtemp(prefix="pawl-capability-")
WAIT_S = 60
LINES_MAX = 300


class Node:
    """A running `counter serve`."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.process = subprocess.Popen([COUNTER, "serve", directory], text=True, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(WAIT_S) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json", **(headers or {})} if body is not None else headers or {})
        return connection.getresponse()

    def good(self, *args):
        answer = self.ask(*args)
        text = answer.read()
        assert answer.status == 200, text
        return json.loads(text)

    def follow(self, after=None):
        """The events of the stream, as (id, data)."""
        answer = self.ask("GET", "/v1/counters/changes", headers={} if after is None else {"Last-Event-ID": str(after)})
        assert answer.status == 200 and answer.getheader("Content-Type") == "text/event-stream", answer.status
        number = None
        while True:
            line = answer.readline().decode().rstrip("\n")
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                yield number, json.loads(line[6:])


def command(*args, code=0):
    result = subprocess.run([COUNTER, *args], text=True, capture_output=True, check=False, timeout=WAIT_S)
    assert result.returncode == code, result
    return result.stdout + result.stderr


def test_command():
    directory = os.path.join(TOP, "command")
    os.makedirs(directory)
    assert command("add", directory, "visits") == "visits 1\n"
    assert command("add", directory, "visits", "--by", "41") == "visits 42\n"
    assert "by" in command("add", directory, "visits", "--by", "9999999", code=2)


def test_routes():
    with Node(os.path.join(TOP, "routes")) as node:
        assert node.good("POST", "/v1/counters/visits", {}) == {"id": 1, "name": "visits", "value": 1}
        assert node.good("POST", "/v1/counters/visits", {"by": -3})["value"] == -2
        assert node.good("GET", "/v1/counters/visits")["value"] == -2
        assert node.ask("GET", "/v1/counters/nobody").status == 404
        wrong = node.ask("POST", "/v1/counters/visits", {"by": 1000001})
        assert wrong.status == 400 and b"by: 1000001 is not within" in wrong.read()
        assert node.ask("POST", "/v1/counters/visits", {"step": 1}).status == 400
        assert b"counter_added_total 2" in node.ask("GET", "/metrics").read()
        assert node.good("GET", "/readyz")["ready"]
        described = node.good("GET", "/v1/openapi.json")
        assert described["paths"]["/v1/counters/{name}"]["post"]["operationId"] == "counterAdd"


def test_stream():
    directory = os.path.join(TOP, "stream")
    with Node(directory) as node:
        events = node.follow()
        for value in (1, 2):
            node.good("POST", "/v1/counters/a", {})
            assert next(events) == (value, {"id": value, "name": "a", "value": value})
    node = Node(directory)
    node.good("POST", "/v1/counters/a", {})
    node.kill()
    with Node(directory) as node:  # nothing is missed, nothing comes twice
        assert next(node.follow(after=2)) == (3, {"id": 3, "name": "a", "value": 3})
        assert node.ask("GET", "/v1/counters/changes", headers={"Last-Event-ID": "x"}).status == 400


def test_length():
    lines = 0
    for path in glob.glob(os.path.join(SOURCE, "**"), recursive=True):
        if re.search(r"\.(c|h|sql)$", path):
            with open(path, encoding="utf-8") as file:
                lines += sum(1 for line in file if line.strip() and not re.match(r"\s*(/\*|\*|--)", line))
    assert 100 < lines < LINES_MAX, lines


it("adds by its command", test_command)
it("answers by its routes, counts and describes them", test_routes)
it("is followed across a kill -9", test_stream)
it(f"has fewer than {LINES_MAX} lines of code", test_length)
shutil.rmtree(TOP, ignore_errors=True)
done()
