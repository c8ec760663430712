#!/usr/bin/env python3
"""`pawl deliver` as people and programs meet it: files into DuckDB, killed, run again, refused."""
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment, wait_until  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-deliver-")
ENV = environment(TOP)
WAIT_S = 240


def place():
    directory = tempfile.mkdtemp(dir=TOP)
    return directory, ["--data", f"{directory}/data"]


def run(*args, code=0, text="", cwd=TOP):
    result = subprocess.run([PAWL, *args], input=text, env=ENV, cwd=cwd, timeout=WAIT_S, text=True,
                            capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-500:])
    return check_advice(result)


def deliver(*args, **more):
    return json.loads(run("deliver", "--json", *args, **more).stdout)


def write(path, numbers, more=""):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f'{{"n": {n}}}\n' for n in numbers)
        file.write(more)


def delivers_a_file_once():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(1000))
    for _ in range(2):
        status = deliver(*data, "--from", f"{directory}/a.jsonl", "--into", "orders", "--drain")
        assert status["accepted"] == status["delivered"] == 1000, status
        assert (status["pending"], status["failed"], status["name"]) == (0, 0, "orders"), status
    people = run("deliver", *data, "--from", "a.jsonl", "--into", "orders", "--drain", cwd=directory).stdout
    assert "delivered  1000" in people, people


def reads_standard_input_to_its_end():
    _, data = place()
    text = "".join(f'{{"n": {n}}}\n' for n in range(100))
    args = [*data, "--from", "-", "--source", "nightly", "--into", "events"]
    assert deliver(*args, text=text)["delivered"] == 100
    assert deliver(*args, text=text + '{"n": 100}\n')["delivered"] == 101
    assert "source: missing" in run("deliver", *data, "--from", "-", "--into", "other", code=2, text=text).stderr
    longer = "".join(f'{{"n": {n}}}\n' for n in range(200))
    other = run("deliver", *args, text=longer.replace("7", "8"), code=4).stderr
    assert "has changed" in other and "--generation" in other, other
    shorter = run("deliver", *args, text='{"n": 0}\n', code=4).stderr
    assert "ended after line 1, and 101 were delivered before" in shorter, shorter


def tells_bad_lines():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(3), more="not json\n\n[1, 2\n")
    status = deliver(*data, "--from", f"{directory}/a.jsonl", "--drain")
    assert (status["delivered"], status["failed"], status["into"]) == (3, 2, "events"), status
    with open(f"{directory}/a.jsonl", "a", encoding="utf-8") as file:
        file.write('{"n": 3}')
    error = run("deliver", *data, "--from", f"{directory}/a.jsonl", "--drain", code=2).stderr
    assert "(8 bytes) has no line feed" in error, error


def refuses_what_cannot_be():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(3))
    for args, code, says in [
            (["--from", "nope.jsonl"], 3, "nope.jsonl"),
            (["--from", directory], 2, "is a directory"),
            (["--from", "http://x/y"], 2, "from: allowed are"),
            (["--from", "nats://127.0.0.1:1"], 2, "stream: missing"),
            (["--from", "nats://127.0.0.1:1", "--stream", "S"], 5, "cannot connect"),
            (["--from", "ledger:nope.sqlite"], 3, "nope.sqlite"),
            (["--from", "a.jsonl", "--columns", "[{}]"], 2, "columns[0].name: missing"),
            (["--from", "a.jsonl", "--columns", "{"], 2, "'--columns'"),
            (["--from", "a.jsonl", "--into", "a b"], 2, "name"),
            (["--from", "a.jsonl", "--name", "A"], 2, "a pipeline's name has"),
            ([], 2, "--from")]:
        error = run("deliver", *data, "--drain", *args, code=code, cwd=directory).stderr
        assert says in error, (args, error)
    # None of them stands in the way of what works.
    assert deliver(*data, "--from", "a.jsonl", "--drain", cwd=directory)["delivered"] == 3


def follows_a_file_until_it_is_told_to_end():
    directory, data = place()
    path = f"{directory}/a.jsonl"
    write(path, range(10), more='{"n": ')
    child = subprocess.Popen([PAWL, "deliver", *data, "--json", "--from", path], env=ENV, cwd=TOP, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: os.path.exists(f"{directory}/data/wal/consumer/events/CURRENT"), "it has not started")
    # One process has the directory.
    busy = run("deliver", *data, "--store-busy-timeout", "0s", "--from", path, "--drain", code=5).stderr
    assert f"process {child.pid}" in busy or str(child.pid) in busy, busy
    with open(path, "a", encoding="utf-8") as file:
        file.write("10}\n")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, (child.returncode, err)
    assert json.loads(out)["pending"] == 0, out
    assert deliver(*data, "--from", path, "--drain")["delivered"] == 11


def loses_and_doubles_nothing_when_killed():
    directory, data = place()
    path = f"{directory}/a.jsonl"
    write(path, range(60000))
    args = [PAWL, "deliver", *data, "--from", path, "--into", "events", "--drain"]
    for points in ["rocksdb.write.after=kill@3", "duckdb.commit.before=kill@2", "duckdb.commit.after=kill@2",
                   "rocksdb.write.before=kill@7", "duckdb.checkpoint.after=kill"]:
        killed = subprocess.run(args, env={**ENV, "PAWL_FAILPOINTS": points}, cwd=TOP, timeout=WAIT_S,
                                capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, (points, killed.returncode, killed.stderr)
    status = deliver(*args[2:])
    assert status["accepted"] == status["delivered"] == 60000, status
    assert status["pending"] == 0, status


it("delivers a file once, however often it is run", delivers_a_file_once)
it("reads standard input to its end, and passes over what it delivered", reads_standard_input_to_its_end)
it("tells lines that are no events, and a last one without its end", tells_bad_lines)
it("refuses what cannot be, with its reason and exit code", refuses_what_cannot_be)
it("follows a file until it is told to end, and has the directory alone", follows_a_file_until_it_is_told_to_end)
it("loses nothing and doubles nothing when it is killed", loses_and_doubles_nothing_when_killed)
done()
