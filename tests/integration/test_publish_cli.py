#!/usr/bin/env python3
"""`pawl publish` and `pawl outbox` as people and programs meet them, with a real nats-server."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment  # noqa: E402
from jetstream import Server  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-publish-")
ENV = {**environment(TOP), "PRODUCER_WAL_RETRY_BACKOFF": "20ms", "PRODUCER_WAL_RETRY_INTERVAL": "100ms"}
WAIT_S = 240


def new_server():
    return Server(tempfile.mkdtemp(dir=TOP))


def run(*args, code=0, text="", more=None):
    result = subprocess.run([PAWL, *args], input=text, env={**ENV, **(more or {})}, cwd=TOP, timeout=WAIT_S,
                            text=True, capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-500:])
    return check_advice(result)


def publish(server, subject, *args, **more):
    return json.loads(run("publish", subject, "--to", server.url, "--wait", "2m", "--json", *args, **more).stdout)


def lines(numbers):
    return "".join(f'{{"id": "e-{n}", "n": {n}, "customer": {n % 5}}}\n' for n in numbers)


def place(server, name):
    """A data directory, and a stream for `name` and what is below it."""
    server.make_stream(name.upper(), name, f"{name}.>")
    return ["--data", tempfile.mkdtemp(dir=TOP)]


def numbers(server, name):
    return [json.loads(payload)["n"] for _, _, payload in server.messages(name.upper())]


def publishes_a_file_and_standard_input_once():
    data = place(SERVER, "orders")
    path = os.path.join(TOP, "orders.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines(range(100)))
    first = publish(SERVER, "orders", path, *data)
    assert first == {"accepted": 100, "duplicates": 0, "published": 100, "republished": 0, "pending": 0, "failed": 0}, first
    again = publish(SERVER, "orders", *data, text=lines(range(110)))
    assert (again["accepted"], again["duplicates"], again["pending"]) == (10, 100, 0), again
    assert numbers(SERVER, "orders") == list(range(110))
    subject, headers, payload = SERVER.message("ORDERS", 8)
    assert (subject, payload) == ("orders", '{"id": "e-7", "n": 7, "customer": 2}'), (subject, payload)
    for header in ("Nats-Msg-Id: orders:e-7:0", "Pawl-Source: orders", "Pawl-Event-Id: e-7", "Pawl-Sequence: 0"):
        assert header in headers, headers
    people = run("publish", "orders", "--to", SERVER.url, "--source", "till", "--id-field", "n", *data,
                 text='{"n": 7}\n').stdout
    assert people.startswith("accepted 1, duplicates 0, published 1"), people
    assert "Nats-Msg-Id: till:7:0" in SERVER.message("ORDERS", 111)[1]


def splits_by_a_key():
    data = place(SERVER, "split")
    publish(SERVER, "split", "--partitions", "4", "--key", "customer", *data, text=lines(range(40)))
    where = {}
    for subject, _, payload in SERVER.messages("SPLIT"):
        assert re.fullmatch(r"split\.[0-3]", subject), subject
        where.setdefault(json.loads(payload)["customer"], set()).add(subject)
    assert len(where) == 5 and all(len(subjects) == 1 for subjects in where.values()), where
    assert "'--key' needs --partitions" in run("publish", "split", "--to", SERVER.url, "--key", "customer", *data,
                                               code=2).stderr


def names_the_line_that_is_no_event():
    data = place(SERVER, "bad")
    for text, code, says in [
        ("not json\n", 2, "line 4: "),
        ("[1]\n", 2, "line 4: event: expected an object"),
        ('{"n": 1}\n', 2, "line 4: event.id: missing"),
        ('{"id": 1.5}\n', 2, "line 4: event.id: expected"),
        ('{"id": ""}\n', 2, "line 4: event_id: is empty"),
        ('{"id": "e-1", "n": 99}\n', 4, "line 4: event 'bad:e-1:0' was published with another payload"),
    ]:
        result = run("publish", "bad", "--to", SERVER.url, "--json", *data, text=lines(range(3)) + text + lines([9]),
                     code=code)
        assert says in result.stderr, (says, result.stderr)
    assert numbers(SERVER, "bad") == [0, 1, 2]


def keeps_events_while_there_is_no_broker():
    server = new_server()
    data = ["--data", tempfile.mkdtemp(dir=TOP)]
    try:
        server.kill()
        late = run("publish", "later", "--to", server.url, "--wait", "50ms", *data, text=lines(range(50)), code=5)
        assert "50 events still wait in the outbox" in late.stderr, late.stderr
        status = json.loads(run("outbox", "status", "--json", *data).stdout)
        assert (status["accepted"], status["pending"], status["kept"]) == (50, 50, 0), status
        assert "pending        50" in run("outbox", "status", *data).stdout
        server.start()
        server.make_stream("LATER", "later")
        assert publish(server, "later", *data)["published"] == 50
        assert numbers(server, "later") == list(range(50))
    finally:
        server.stop()


def killed_anywhere_publishes_each_line_once():
    data = place(SERVER, "killed")
    path = os.path.join(TOP, "killed.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines(range(3000)))
    command = [PAWL, "publish", "killed", path, "--to", SERVER.url, "--partitions", "3", "--key", "customer", *data]
    for wait_s in (0.03, 0.06, 0.1, 0.2, 0.4):
        process = subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_S)
    run(*command[1:], "--wait", "2m")
    seen = {}
    for subject, _, payload in SERVER.messages("KILLED"):
        seen.setdefault(subject, []).append(json.loads(payload)["n"])
    assert sorted(n for all_of in seen.values() for n in all_of) == list(range(3000))
    assert all(all_of == sorted(all_of) for all_of in seen.values())


def publishes_again_what_the_server_lost():
    server = new_server()
    data = ["--data", tempfile.mkdtemp(dir=TOP)]
    try:
        server.make_stream("TAIL", "tail")
        publish(server, "tail", *data, text=lines(range(20)))
        server.stop()
        server.save()
        server.start()
        publish(server, "tail", *data, text=lines(range(20, 60)))
        server.kill()
        server.put_back()
        server.start()
        assert len(server.messages("TAIL")) == 20
        again = publish(server, "tail", *data, text=lines(range(60, 70)))
        assert (again["republished"], again["pending"]) == (40, 0), again
        assert numbers(server, "tail") == list(range(70))
    finally:
        server.stop()


def shows_and_retries_what_the_server_refuses():
    data = place(SERVER, "large")
    answer = SERVER.ask("STREAM.UPDATE.LARGE", {"name": "LARGE", "subjects": ["large", "large.>"], "storage": "file",
                                                "max_msg_size": 1000})
    assert "error" not in answer, answer
    big = json.dumps({"id": "big", "n": 1, "text": "x" * 2000}) + "\n"
    refused = run("publish", "large", "--to", SERVER.url, *data, text=big + lines([2]), code=1)
    assert "the server refuses 1 events" in refused.stderr, refused.stderr
    assert numbers(SERVER, "large") == [2]
    failed = json.loads(run("outbox", "failed", "--json", *data).stdout)
    assert (failed["number"], failed["event_id"], failed["subject"]) == (1, "big", "large"), failed
    assert "1  large  big  " in run("outbox", "failed", *data).stdout
    SERVER.ask("STREAM.UPDATE.LARGE", {"name": "LARGE", "subjects": ["large", "large.>"], "storage": "file"})
    assert "1 events are pending again" in run("outbox", "retry", *data).stdout
    assert publish(SERVER, "large", *data)["failed"] == 0
    assert numbers(SERVER, "large") == [2, 1]


def refuses_what_cannot_be():
    data = ["--data", tempfile.mkdtemp(dir=TOP)]
    to = ["--to", SERVER.url]
    for args, code, says in [
        (["publish", "a"], 2, "needs --to URL"),
        (["publish", "a.*", *to, *data], 2, "subject"),
        (["publish", "a", "no-such-file", *to, *data], 3, "no-such-file"),
        (["publish", "a", *to, "--source", "a:b", *data], 2, "source: must not contain ':'"),
        (["publish", "a", *to, "--wait", "soon", *data], 2, "'--wait'"),
        (["outbox", "status", "--data", f"{TOP}/nothing"], 3, "outbox"),
    ]:
        error = run(*args, code=code, text=lines([1])).stderr
        assert says in error, (args, error)
    bad = run("publish", "a", *to, *data, code=2, more={"PRODUCER_WAL_KEEP": "soon"}).stderr
    assert "PRODUCER_WAL_KEEP" in bad, bad


SERVER = new_server()
try:
    it("publishes a file and standard input, each line once", publishes_a_file_and_standard_input_once)
    it("splits a subject by a key", splits_by_a_key)
    it("names the line that is no event", names_the_line_that_is_no_event)
    it("keeps events while there is no broker", keeps_events_while_there_is_no_broker)
    it("killed anywhere, publishes each line once and in order", killed_anywhere_publishes_each_line_once)
    it("publishes again what the server lost", publishes_again_what_the_server_lost)
    it("shows and retries what the server refuses", shows_and_retries_what_the_server_refuses)
    it("refuses what cannot be", refuses_what_cannot_be)
finally:
    SERVER.stop()
done()
