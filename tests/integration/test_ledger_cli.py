#!/usr/bin/env python3
"""`pawl ledger` as people and programs meet it: pipes, bad input, other processes, kills, full disks.

PAWL_LEDGER_LINES says how many lines the large input has; 50000 if it is not set."""
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment, powerless  # noqa: E402
from tap import done, it, skip  # noqa: E402

ROOT = os.geteuid() == 0
LINES = int(os.environ.get("PAWL_LEDGER_LINES", "50000"))
TOP = tempfile.mkdtemp(prefix="pawl-ledger-")
ENV = environment(TOP)
SANITIZED = os.environ.get("PAWL_TEST_VARIANT") == "asan"
WAIT_S = 120


def place():
    return tempfile.mkdtemp(dir=TOP)


def command(*args):
    return [PAWL, "ledger", *args]


def run(*args, code=0, text=b"", env=None):
    """Runs a verb; returns its output as objects, when all lines are some."""
    result = subprocess.run(command(*args), input=text, env={**ENV, **(env or {})}, cwd=TOP,
                            timeout=WAIT_S, capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:],
                                       result.stderr[-500:])
    return check_advice(result)


def rows(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def event(name, payload=1, **more):
    return {"id": name, "run_id": "r", "turn": 0, "kind": "k", "actor": "a", "payload": payload,
            **more}


def lines(*events):
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n"
                    for line in events)


def append(data, *events, code=0, args=()):
    return run("append", "--data", data, *args, text=lines(*events), code=code)


def tail(data, *args):
    return rows(run("tail", "--data", data, *args))


def database(data, sql):
    with sqlite3.connect(f"{data}/ledger.sqlite") as connection:
        connection.execute(sql)
    connection.close()


def says(result, *texts):
    error = result.stderr.decode()
    for text in texts:
        assert text in error, error
    assert error.startswith("pawl: ") and error.count("\n") == 1, error


# --- append ---


def duplicates_and_conflicts():
    data = place()
    line = lines(event("e-1", {"text": "hello", "n": 1}))
    first = run("append", "--data", data, text=line)
    assert first.stdout == b'{"offset":1,"id":"e-1","duplicate":false}\n', first.stdout
    again = run("append", "--data", data, text=line)
    assert again.stdout == b'{"offset":1,"id":"e-1","duplicate":true}\n', again.stdout
    same = lines(b'{"payload": {"n":1.0,"text":"h\\u0065llo"}, "id":"e-1","run_id":"r","turn":0,'
                 b'"kind":"k","actor":"a","created_at":"2001-01-01T00:00:00Z"}')
    assert rows(run("append", "--data", data, text=same))[0]["duplicate"]
    for other in ({"payload": 2}, {"turn": 1}, {"kind": "x"}, {"actor": "x"}, {"run_id": "x"},
                  {"schema_version": 2}):
        refused = append(data, {**event("e-1", {"text": "hello", "n": 1}), **other}, code=4)
        says(refused, "line 1: id 'e-1' is taken by offset 1", next(iter(other)))
    assert len(tail(data)) == 1


def one_event_from_flags():
    data = place()
    flags = ["--run", "r", "--turn", "3", "--kind", "k", "--actor", "a"]
    answer = rows(run("append", "--data", data, "--id", "x", *flags, "--payload", '{"a": 1}',
                      "--created-at", "2026-01-29T12:20:30+02:00", "--schema-version", "7"))
    assert answer == [{"offset": 1, "id": "x", "duplicate": False}], answer
    stored = rows(run("show", "--data", data, "x"))[0]
    assert stored["created_at"] == "2026-01-29T10:20:30.000000Z", stored
    assert (stored["turn"], stored["schema_version"], stored["payload"]) == (3, 7, {"a": 1}), stored
    ids = {rows(run("append", "--data", data, "--id", "new", *flags, "--payload", "1"))[0]["id"]
           for _ in range(3)}
    assert len(ids) == 3 and all(len(name) == 36 and name[14] == "7" for name in ids), ids
    path = os.path.join(data, "payload.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[1,\n 2]\n")
    run("append", "--data", data, "--id", "file", *flags, "--payload", f"@{path}")
    assert rows(run("show", "--data", data, "file"))[0]["payload_text"] == "[1,\n 2]"
    run("append", "--data", data, "--id", "pipe", *flags, "--payload", "-", text=b"[3]\n")
    assert rows(run("show", "--data", data, "pipe"))[0]["payload"] == [3]
    says(run("append", "--data", data, *flags, "--payload", "1", code=2), "id: missing")
    says(run("append", "--data", data, "--id", "y", "--payload", "1", code=2), "turn: missing")
    says(run("append", "--data", data, "--id", "y", code=2), "'--id' is for one event")
    says(run("append", "--data", data, "--id", "y", *flags, "--payload", "@/nowhere", code=3),
         "/nowhere")


def flags_fill_lines():
    data = place()
    append(data, {"id": "a", "kind": "k", "payload": 1}, {"id": "b", "kind": "k", "actor": "own",
                                                          "payload": 2, "turn": 9},
           args=("--run", "r", "--turn", "4", "--actor", "ada"))
    stored = tail(data)
    assert [(row["run_id"], row["turn"], row["actor"]) for row in stored] == [
        ("r", 4, "ada"), ("r", 9, "own")], stored
    append(data, {"payload": 1}, {"payload": 1}, args=("--id", "new", "--run", "r", "--turn", "0",
                                                       "--kind", "k", "--actor", "a"))
    assert len({row["id"] for row in tail(data)}) == 4


BAD_LINES = [
    (b"hello", "line 2: column 1: expected an object"),
    (b'{"id":"x"', "line 2: column 10: it ends here"),
    (b'{"id":"x",}', "expected a name"),
    (b'["x"]', "expected an object"),
    (b'{"id":"x"} 1', "nothing may follow"),
    (b"\xff\xfe{\x00}\x00", "NUL byte"),
    (lines(event("x"))[:-2] + b',"more":1}', "'more' is no field"),
    (lines(event("x"))[:-2] + b',"id":"y"}', "id: is there twice"),
    (lines({**event("x"), "id": 7})[:-1], "id: expected a string, found"),
    (lines({**event("x"), "id": ""})[:-1], "id: missing"),
    (lines({**event("x"), "id": "i" * 201})[:-1], "id: has 201 bytes, the limit is 200"),
    (lines({**event("x"), "kind": "é" * 101})[:-1], "kind: has 202 bytes, the limit is 200"),
    (lines({**event("x"), "actor": "a\0b"})[:-1], "actor:"),
    (lines(event("x")).replace(b'"actor": "a"', b'"actor": "\xc3("')[:-1], "actor: is not UTF-8"),
    (lines(event("x")).replace(b'"actor": "a"', b'"actor": "a\tb"')[:-1], "actor:"),
    (lines({**event("x"), "turn": -1})[:-1], "turn: is -1, must be 0 or more"),
    (lines({**event("x"), "turn": 1.5})[:-1], "turn: expected"),
    (lines({**event("x"), "turn": "1"})[:-1], "turn: expected"),
    (lines({**event("x"), "turn": 2 ** 63})[:-1], "turn:"),
    (lines({**event("x"), "schema_version": 0})[:-1], "schema_version: is 0"),
    (lines({**event("x"), "schema_version": 2 ** 31})[:-1], "schema_version: is 2147483648"),
    (lines({**event("x"), "created_at": "yesterday"})[:-1], "created_at: 'yesterday' is no time"),
    (lines({**event("x"), "kind": "pawl.turn.begin"})[:-1], "kind: 'pawl.turn.begin' is reserved"),
    (lines(event("x")).replace(b'"payload": 1', b'"payload": {x}')[:-1], "payload: "),
    (lines(event("x")).replace(b'"payload": 1', b'"payload": NaN')[:-1], "payload: "),
    (lines(event("x")).replace(b'"payload": 1', b'"payload": "\xff"')[:-1], "payload: "),
    (lines(event("x")).replace(b'"payload": 1', b'"payload": "\\u0000"')[:-1], "payload: "),
    (lines(event("x")).replace(b'"payload": 1', b'"payload": "\\ud800"')[:-1], "payload: "),
    (lines(event("x")).replace(b'"payload": 1', b'"payload":')[:-1], "payload: has no value"),
] + [
    (lines({key: value for key, value in event("x").items() if key != missing})[:-1],
     f"{missing}: missing") for missing in event("x")
]


def bad_lines():
    data = place()
    for bad, message in BAD_LINES:
        result = append(data, event("before"), bad, event("behind"), code=2)
        assert message in result.stderr.decode(), (bad, result.stderr)
        assert b"line 2: " in result.stderr, result.stderr
        assert rows(result)[0]["id"] == "before" and len(rows(result)) == 1, result.stdout
        assert [row["id"] for row in tail(data)] == ["before"], bad


def odd_but_good_lines():
    data = place()
    text = (b"\xef\xbb\xbf" + lines(event("bom")) + b"\r\n \t\n"
            + lines(event("crlf"))[:-1] + b"\r\n"
            + lines({**event("null"), "created_at": None, "schema_version": None})
            + lines(event("é漢🎉", {"é": "漢🎉\u2028"}))
            + lines({**event("i" * 200), "turn": 2 ** 63 - 1, "schema_version": 2 ** 31 - 1})
            + lines(event("last"))[:-1])
    answers = rows(run("append", "--data", data, text=text))
    assert [row["offset"] for row in answers] == [1, 2, 3, 4, 5, 6], answers
    stored = tail(data)
    assert stored[3]["id"] == "é漢🎉" and stored[3]["payload"] == {"é": "漢🎉\u2028"}, stored[3]
    deep = "[" * 64 + "]" * 64
    append(data, lines(event("deep")).replace(b'"payload": 1', b'"payload": ' + deep.encode())[:-1])
    too_deep = lines(event("deeper")).replace(b'"payload": 1', b'"payload": [' + deep.encode() + b"]")
    says(append(data, too_deep[:-1], code=2), "payload", "64 levels")
    assert rows(run("append", "--data", data, text=b"")) == []


def payload_limit():
    data = place()
    edge = "x" * ((1 << 20) - 2)  # and its quotes
    append(data, event("edge", edge))
    says(append(data, event("over", edge + "x"), code=2),
         "line 1: payload: has 1048577 bytes, the limit is 1048576")
    for count, code in ((1 << 20, 0), ((1 << 20) + 1, 2)):
        run("append", "--data", data, "--id", f"stdin-{count}", "--run", "r", "--turn", "0", "--kind",
            "k", "--actor", "a", "--payload", "-", text=b'"' + b"y" * (count - 2) + b'"', code=code)
    says(run("append", "--data", data, text=b"z" * (13 << 20), code=2), "line 1: over")
    assert len(tail(data)) == 2


def atomic_input():
    data = place()
    append(data, event("taken"))
    result = append(data, event("a"), b"", event("b"), event("taken", 2), code=4, args=("--atomic",))
    says(result, "line 4: id 'taken' is taken")
    assert result.stdout == b"", result.stdout
    result = append(data, event("a"), event("b"), event("c", turn=-1), code=2, args=("--atomic",))
    says(result, "line 3: turn: is -1")
    says(append(data, event("a"), b"{", code=2, args=("--atomic",)), "line 2: column 2")
    assert len(tail(data)) == 1
    append(data, event("a"), event("b"), args=("--atomic",))
    assert len(tail(data)) == 3


def a_conflict_deep_in_the_input():
    data = place()
    append(data, event("e-777"))
    result = append(data, *(event(f"e-{i}", 1 if i != 777 else 2) for i in range(1000)), code=4)
    says(result, "line 778: id 'e-777' is taken")
    assert [row["id"] for row in rows(result)] == [f"e-{i}" for i in range(777)]
    assert len(tail(data)) == 778


def answers_come_at_once():
    """A program that writes one line and waits for its answer is not kept waiting."""
    data = place()
    with subprocess.Popen(command("append", "--data", data), env=ENV, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        for i in range(5):
            process.stdin.write(lines(event(f"e-{i}")))
            process.stdin.write(b'{"id":')  # half of the next line holds nothing back
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["offset"] == i + 1
            process.stdin.write(lines(event(f"e-{i}"))[6:])
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["duplicate"]
        process.stdin.close()
        assert process.wait(WAIT_S) == 0


def many_lines():
    """Quick, and in memory that does not grow."""
    data = place()
    path = os.path.join(data, "lines")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(LINES):
            file.write(f'{{"id":"e-{i:08}","run_id":"r","turn":{i // 100},"kind":"k","actor":"a",'
                       f'"payload":{{"n":{i},"text":"as long as usual, about a hundred bytes"}}}}\n')
    started = time.monotonic()
    with open(path, "rb") as file, open(os.path.join(data, "answers"), "wb") as answers:
        with subprocess.Popen(command("append", "--data", data), env=ENV, stdin=file,
                              stdout=answers) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - started
    assert process.returncode == 0
    print(f"# {LINES} lines in {took:.1f} s, {LINES / took:.0f}/s, {usage.ru_maxrss} KiB", flush=True)
    with open(os.path.join(data, "answers"), encoding="utf-8") as answers:
        offsets = [json.loads(line)["offset"] for line in answers]
    assert offsets == list(range(1, LINES + 1))
    assert SANITIZED or usage.ru_maxrss < 100 << 10, usage.ru_maxrss
    run("verify", "--data", data)


# --- turns ---


def turns():
    data = place()
    where = ["--data", data, "--run", "r", "--turn", "1"]
    assert rows(run("turn", "begin", *where))[0]["attempt"] == 1
    lost = lines({"kind": "k", "actor": "a", "payload": 1}, {"kind": "k", "actor": "a", "payload": 2})
    first = rows(run("append", *where, "--attempt", "1", text=lost))
    assert len({row["id"] for row in first}) == 2, first
    says(run("append", *where, "--attempt", "1", text=lost, code=4), "line 1", "ordinal: missing", "is 2")
    again = rows(run("append", *where, "--attempt", "1", "--ordinal", "0", text=lost))
    assert [row["id"] for row in again] == [row["id"] for row in first]
    assert all(row["duplicate"] for row in again), again
    more = lines({"kind": "k", "actor": "a", "payload": 3})
    says(run("append", *where, "--attempt", "1", "--ordinal", "0", text=more, code=4), "taken")
    says(run("append", *where, "--attempt", "1", "--ordinal", "3", text=more, code=4), "is 3, but", "is 2")
    says(run("append", *where, "--kind", "k", "--actor", "a", "--id", "x", "--payload", "0", code=4),
         "turn 1 of run 'r' is open", "attempt, which is 1")
    assert not rows(run("append", *where, "--attempt", "1", "--ordinal", "2", text=more))[0]["duplicate"]
    assert rows(run("turn", "begin", *where))[0]["attempt"] == 2  # the conductor came back
    says(run("append", *where, "--attempt", "1", text=more, code=4), "attempt 1 at turn 1")
    says(run("turn", "commit", *where, "--attempt", "1", code=4), "is over")
    run("append", *where, "--attempt", "2", text=lines({"kind": "k", "actor": "a", "payload": 9}))
    says(run("append", *where, "--attempt", "2", text=lines(event("x", turn=2)), code=2), "turn:")
    assert tail(data, "--complete-turns", "--kind", "k") == []
    assert rows(run("replay", "--data", data)) == []
    run("turn", "commit", *where, "--attempt", "2")
    run("turn", "commit", *where, "--attempt", "2")
    says(run("turn", "begin", *where, code=4), "committed already")
    assert [row["payload"] for row in rows(run("replay", "--data", data))] == [9]
    assert [row["payload"] for row in tail(data, "--complete-turns", "--kind", "k")] == [9]
    listed = rows(run("turns", "--data", data, "--json"))
    assert [(row["attempt"], row["state"]) for row in listed] == [(1, "abandoned"), (2, "committed")]
    run("turn", "begin", "--data", data, "--run", "r", "--turn", "2")
    run("turn", "abandon", "--data", data, "--run", "r", "--turn", "2", "--attempt", "1",
        "--reason", "no quorum")
    assert tail(data)[-1]["payload"] == {"attempt": 1, "reason": "no quorum"}
    says(run("append", "--data", data, "--attempt", "1", text=more, code=2), "--run and --turn")
    run("verify", "--data", data)


# --- reading ---


def reading():
    data = place()
    append(data, *(event(f"e-{i}", i, turn=i, actor="ab"[i % 2], kind="k" if i < 5 else "l",
                         created_at=f"2026-01-0{i + 1}T00:00:00Z") for i in range(8)))
    assert [row["payload"] for row in tail(data, "--from", "3", "--limit", "2")] == [3, 4]
    assert [row["payload"] for row in tail(data, "--actor", "b", "--turn", "2..6")] == [3, 5]
    assert [row["payload"] for row in tail(data, "--kind", "l", "--until", "2026-01-08T00:00:00Z",
                                           "--since", "2026-01-06T00:00:00Z")] == [5, 6]
    assert tail(data, "--run", "none") == []
    assert rows(run("show", "--data", data, "3"))[0]["id"] == "e-2"
    assert rows(run("show", "--data", data, "e-2"))[0]["offset"] == 3
    says(run("show", "--data", data, "99", code=3), "no event has the offset or id '99'")
    counts = {(row["what"], row["name"]): row["value"]
              for row in rows(run("stats", "--data", data, "--json"))}
    assert counts["kind", "k"] == 5 and counts["actor", "b"] == 4, counts
    assert counts["latest_offset", None] == 8 and counts["bytes", None] > 4096, counts
    plain = run("stats", "--data", data).stdout.decode().splitlines()
    assert "run\tr\t8" in plain, plain
    assert [row["payload"] for row in rows(run("replay", "--data", data, "--at-offset", "2"))] == [0, 1]
    assert [row["payload"] for row in rows(
        run("replay", "--data", data, "--at-time", "2026-01-02T00:00:00Z"))] == [0, 1]
    assert {"what": "kind", "name": "k", "value": 3} in rows(
        run("replay", "--data", data, "--count", "--at-offset", "3", "--json"))
    for flag, value, message in (("--turn", "x", "no turn"), ("--turn", "5..2", "no turn"),
                                 ("--since", "soon", "no time"), ("--from", "-1", "allowed")):
        says(run("tail", "--data", data, flag, value, code=2), message)


def reader_that_leaves():
    data = place()
    append(data, *(event(f"e-{i}", "x" * 200) for i in range(3000)))
    for verb in (["tail"], ["tail", "--follow"], ["export"], ["replay"]):
        line = " ".join(command(*verb, "--data", data)) + " | head -n 1; exit ${PIPESTATUS[0]}"
        result = subprocess.run(["bash", "-c", line], env=ENV, capture_output=True, check=False,
                                timeout=WAIT_S)
        assert result.stderr == b"" and result.returncode == 0, (verb, result)
        assert json.loads(result.stdout)["offset"] == 1, result.stdout
    # What writes has an answer that got lost.
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(command("append", "--data", data), env=ENV, input=lines(event("last")), stdout=write,
                            stderr=subprocess.PIPE, check=False, timeout=WAIT_S)
    os.close(write)
    assert result.returncode == 1 and b"nobody reads standard output any more" in result.stderr, result
    result = subprocess.run(["bash", "-c", " ".join(command("tail", "--data", data)) + " >/dev/full"],
                            env=ENV, capture_output=True, check=False, timeout=WAIT_S)
    assert result.returncode == 1 and b"No space left" in result.stderr, result


class Follower:
    def __init__(self, data, *args):
        self.process = subprocess.Popen(command("tail", "--follow", "--data", data, *args), env=ENV,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.seen = []
        self.grew = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.grew:
                self.seen.append(json.loads(line))
                self.grew.notify_all()

    def wait_for(self, count):
        with self.grew:
            assert self.grew.wait_for(lambda: len(self.seen) >= count, WAIT_S), len(self.seen)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        code = self.process.wait(WAIT_S)
        self.thread.join(WAIT_S)
        return code, self.process.stderr.read()


def following():
    data = place()
    append(data, event("e-0"))
    followers = [Follower(data), Follower(data, "--from", "1"), Follower(data, "--complete-turns")]
    followers[0].wait_for(1)
    for i in range(1, 20):
        append(data, event(f"e-{i}"))
    where = ["--data", data, "--run", "r", "--turn", "1"]
    run("turn", "begin", *where)
    run("append", *where, "--attempt", "1", text=lines({"kind": "k", "actor": "a", "payload": 0}))
    append(data, event("behind"))
    followers[0].wait_for(23)
    followers[1].wait_for(22)
    followers[2].wait_for(20)
    assert len(followers[2].seen) == 20, followers[2].seen[20:]
    run("turn", "commit", *where, "--attempt", "1")
    followers[2].wait_for(24)
    followers[0].wait_for(24)
    assert [row["offset"] for row in followers[0].seen] == list(range(1, 25))
    assert followers[0].end() == (0, b"")
    assert followers[1].end(signal.SIGTERM) == (0, b"")
    assert followers[2].end() == (0, b"")
    limited = Follower(data, "--limit", "3")
    assert limited.process.wait(WAIT_S) == 0


def followers_end():
    data = place()
    append(data, event("e-0"))
    # Nothing comes any more: only the reader that leaves can end it, or the file that goes.
    for verb, store in ((["tail", "--follow"], data), (["tail", "--follow", "--from", "1"], data)):
        process = subprocess.Popen(command(*verb, "--data", store), env=ENV, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        if "--from" not in verb:
            assert json.loads(process.stdout.readline())["offset"] == 1
        process.stdout.close()
        assert process.wait(WAIT_S) == 0, verb
        assert process.stderr.read() == b"", verb
        process.stderr.close()
    follower = Follower(data)
    follower.wait_for(1)
    other = place()
    append(other, event("other"))
    os.rename(f"{other}/ledger.sqlite", f"{data}/ledger.sqlite")
    assert follower.process.wait(WAIT_S) == 1
    assert b"was moved, replaced or deleted" in follower.process.stderr.read()


def sabotaged():
    data = place()
    append(data, *(event(f"e-{i}", {"n": i}) for i in range(10)))
    # The anchor is at 10, which is gone, and 5 was changed before: the walk says so.
    database(data, "UPDATE events SET payload = '{}' WHERE offset = 5")
    database(data, "DELETE FROM events WHERE offset = 10")
    says(run("stats", "--data", data, code=6), "cut off: the log ends at offset 9, its anchor is at 10; ",
         "; to continue with what is left, run `pawl ledger restore DIR --tail LEDGER --accept-older`")
    says(run("verify", "--data", data, code=6), "its content does not give its hash; stop the writers",
         "`pawl ledger restore DIR`")
    result = run("verify", "--data", data, "--json", code=6)
    assert rows(result)[0]["first_bad_offset"] == 5, result.stdout
    with open(f"{data}/ledger.sqlite.anchor", "w", encoding="ascii") as anchor:
        anchor.write("no anchor")
    assert rows(run("verify", "--data", data, "--json", code=6))[0]["first_bad_offset"] == 5

    data = place()
    append(data, event("e-0"))
    database(data, "CREATE TRIGGER eve AFTER INSERT ON events BEGIN DELETE FROM events; END")
    result = append(data, event("e-1"), code=6)
    says(result, "'eve' on 'events'", "; to continue, run DROP TRIGGER \"eve\"")
    assert b"restore" not in result.stderr, result.stderr
    result = run("verify", "--data", data, "--json", code=6)
    assert rows(result)[0]["first_bad_offset"] is None and "eve" in rows(result)[0]["what"], result.stdout
    database(data, "DROP TRIGGER eve")
    append(data, event("e-1"))
    assert run("verify", "--data", data).stdout.startswith(b"ok: 2 events")
    with open(f"{data}/ledger.sqlite.anchor", "w", encoding="ascii") as anchor:
        anchor.write("no anchor")
    says(run("verify", "--data", data, code=6), "anchor")


def writers_at_once():
    """Several processes append overlapping ids while one follows: 1..n, each once."""
    data = place()
    append(data, event("first"))
    follower = Follower(data)
    count = 400
    processes = [subprocess.Popen(command("append", "--data", data), env=ENV, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) for _ in range(4)]
    outputs = [None] * len(processes)

    def feed(index):
        text = lines(*(event(f"e-{i + index * count // 2}") for i in range(count)))
        outputs[index] = processes[index].communicate(text, WAIT_S)[0]
    threads = [threading.Thread(target=feed, args=(i,)) for i in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert [process.returncode for process in processes] == [0] * len(processes)
    answers = [json.loads(line) for output in outputs for line in output.splitlines()]
    by_id = {}
    for answer in answers:
        assert by_id.setdefault(answer["id"], answer["offset"]) == answer["offset"], answer
    assert sum(not answer["duplicate"] for answer in answers) == len(by_id)
    follower.wait_for(len(by_id) + 1)
    assert follower.end()[0] == 0
    assert [row["offset"] for row in follower.seen] == list(range(1, len(by_id) + 2))


def killed_and_resumed():
    """What was answered is there after kill -9, and the same input again finishes the rest."""
    data = place()
    text = lines(*(event(f"e-{i}", "x" * 100) for i in range(20000)))
    for kill_after in (1, 500, 5000):
        process = subprocess.Popen(command("append", "--data", data), env=ENV, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def feed():
            try:
                process.stdin.write(text)
                process.stdin.close()
            except OSError:
                pass  # it was killed
        writer = threading.Thread(target=feed)
        writer.start()
        answered = [json.loads(process.stdout.readline()) for _ in range(kill_after)]
        process.kill()
        answered += [json.loads(line) for line in process.stdout.read().splitlines()
                     if line.endswith(b"}")]
        process.wait(WAIT_S)
        writer.join(WAIT_S)
        stored = {row["id"]: row["offset"] for row in tail(data)}
        assert all(stored[answer["id"]] == answer["offset"] for answer in answered)
    answers = rows(run("append", "--data", data, text=text))
    assert [answer["offset"] for answer in answers] == list(range(1, 20001))
    run("verify", "--data", data)


# --- proof, snapshots, files ---


def head_of(data):
    return next(row["name"] for row in rows(run("stats", "--data", data, "--json"))
                if row["what"] == "head")


def verifying():
    data = place()
    append(data, *(event(f"e-{i}", {"n": i}) for i in range(10)))
    early = head_of(data)
    append(data, event("later"))
    assert run("verify", "--data", data).stdout.startswith(b"ok: 11 events, head 11:")
    report = rows(run("verify", "--data", data, "--expect", early, "--json"))[0]
    assert report["ok"] and report["events"] == 11 and report["head"] == head_of(data), report
    assert not report["anchor_missing"], report
    os.rename(f"{data}/ledger.sqlite.anchor", f"{data}/anchor")
    assert b"no anchor" in run("verify", "--data", data).stdout
    assert rows(run("verify", "--data", data, "--json"))[0]["anchor_missing"]
    os.rename(f"{data}/anchor", f"{data}/ledger.sqlite.anchor")
    assert b"no anchor" not in run("verify", "--data", data).stdout
    run("verify", "--data", data, "--resume", early)
    says(run("verify", "--data", data, "--expect", early.replace(":", ":" + "00", 1)[:len(early)],
             code=6), "10")
    says(run("verify", "--data", data, "--expect", "nonsense", code=2), "OFFSET:HASH")
    with sqlite3.connect(f"{data}/ledger.sqlite") as database:
        database.execute("UPDATE events SET payload = '{\"n\":5}' WHERE offset = 5")
    database.close()
    result = run("verify", "--data", data, "--json", code=6)
    assert rows(result)[0]["first_bad_offset"] == 5, result.stdout
    assert json.loads(result.stderr)["error"]["status"] == "CORRUPT", result.stderr
    says(run("verify", "--data", data, code=6), "5")


def refused_appends_leave_nothing():
    flags = ["--id", "x", "--run", "r", "--kind", "k", "--actor", "a"]
    for more, code in ((["--turn", "1", "--payload", "{"], 2), (["--payload", "1"], 2),
                       (["--turn", "1", "--payload", "@nowhere"], 3),
                       (["--turn", "1", "--attempt", "1", "--payload", "1"], 3)):
        data = os.path.join(place(), "new")
        run("append", "--data", data, *flags, *more, code=code)
        assert not os.path.exists(data), os.listdir(data)
    data = os.path.join(place(), "new")
    for bad in (b"nonsense", {"id": "x"}, event("x" * 201), event("x", kind="pawl.turn.begin")):
        append(data, bad, code=2)
        append(data, event("good"), bad, code=2, args=["--atomic"])
        assert not os.path.exists(data), os.listdir(data)
    result = append(data, event("x"), event("y"), event("x", 2), code=4, args=["--atomic"])
    says(result, "line 3: id 'x'")
    assert not os.path.exists(data), os.listdir(data)
    append(data, event("good"), event("x" * 201), code=2)
    assert len(tail(data)) == 1
    twice = os.path.join(place(), "new")
    append(twice, event("x"), event("y"), event("x"), args=["--atomic"])
    assert len(tail(twice)) == 2


def messages_that_say_what_to_do():
    data = place()
    append(data, event("e-1"))
    says(run("import", "--data", place(), f"{data}/ledger.sqlite", code=2), "it is a ledger already")
    says(run("tail", "--data", data, "--from", "9" * 30, code=2), "out of range")
    says(run("append", "--data", data, "--turn", "9" * 30, code=2), "out of range")
    append(data, event("new"))
    assert rows(run("show", "--data", data, "new"))[0]["id"] == "new"


def parts_that_are_missing():
    data = place()
    append(data, event("e-1"))
    database(data, "DROP INDEX idx_kind")
    says(run("verify", "--data", data, code=6), "no such index: idx_kind")


def a_question_mark_in_the_data_directory():
    data = os.path.join(place(), "why?not=so")
    append(data, event("e-1"))
    assert os.listdir(data) != [], data
    assert len(tail(data)) == 1
    run("verify", "--data", data)


def malformed_embeddings():
    for bad in ("x'00'", "x''", "zeroblob(12)", "x'0000c07f0000c07f'", "x'0000204100002041'"):
        data = place()
        append(data, *(event(f"e-{i}") for i in range(3)))
        run("embed", "--data", data, text=lines({"id": "e-0", "embedding": [1, 2]},
                                                {"id": "e-1", "embedding": [2, 1]}))
        database(data, f"UPDATE embeddings SET vector = {bad} WHERE offset = 2")
        says(run("recall", "--data", data, "--vector", "[1,1]", code=6), "of offset 2")


def snapshots():
    data = place()
    append(data, *(event(f"e-{i}") for i in range(5)))
    path = os.path.join(data, "copy.db")
    assert rows(run("snapshot", "--data", data, path))[0]["head"] == head_of(data)
    says(run("snapshot", "--data", data, path, code=4), "exists")
    assert len(rows(run("tail", "--ledger", path))) == 5
    append(data, event("behind"))
    restored = run("restore", path, "--tail", f"{data}/ledger.sqlite").stdout.decode().strip()
    assert restored.endswith(".restored-1.db"), restored
    assert len(rows(run("tail", "--ledger", restored))) == 6
    says(run("restore", path, "--to", restored, code=4), "exists")
    for turn in range(1, 4):
        where = ["--data", data, "--run", "r", "--turn", str(turn)]
        run("turn", "begin", *where)
        run("turn", "commit", *where, "--attempt", "1")
        run("snapshot", "--data", data, "--schedule", "--every", "1", "--keep", "2")
    assert not rows(run("snapshot", "--data", data, "--schedule", "--every", "1"))[0]["taken"]
    kept = [name for name in os.listdir(f"{data}/snapshots") if name.endswith(".db")]
    assert len(kept) == 2, kept
    says(run("prove", "--data", data, "--last", code=3), "")
    proof = rows(run("prove", "--data", data))[0]
    assert proof["head"] == head_of(data), proof
    assert rows(run("prove", "--data", data, "--last"))[0]["head"] == proof["head"]
    assert rows(run("prune", "--data", data, "--keep", "1"))[0]["removed"] == 1
    newest = os.path.join(data, "snapshots", max(os.listdir(f"{data}/snapshots")))
    with open(newest, "wb") as file:
        file.write(b"not a snapshot at all")
    says(run("prove", "--data", data, code=6), "no proof", newest)
    again = run("snapshot", "--data", data)
    assert rows(again)[0]["taken"], again.stdout
    assert b"moved aside" in again.stderr and b".damaged-1" in again.stderr, again.stderr
    run("prove", "--data", data)


def files():
    data = place()
    append(data, *(event(f"e-{i}", {"n": i}) for i in range(5)))
    where = ["--data", data, "--run", "r", "--turn", "1"]
    run("turn", "begin", *where)
    run("turn", "commit", *where, "--attempt", "1")
    for name in ("out.jsonl", "out.parquet"):
        path, copy = os.path.join(data, name), place()
        assert rows(run("export", "--data", data, path))[0] == {"exported": 7}
        says(run("export", "--data", data, path, code=4), "exists")
        assert rows(run("import", "--data", copy, path))[0] == {"appended": 7, "duplicates": 0}
        assert rows(run("import", "--data", copy, path))[0] == {"appended": 0, "duplicates": 7}
        assert head_of(copy) == head_of(data)
        run("verify", "--data", copy)
    copy = place()
    piped = run("export", "--data", data).stdout
    assert piped == run("tail", "--data", data).stdout
    run("import", "--data", copy, "-", text=piped)
    assert head_of(copy) == head_of(data)
    assert len(rows(run("export", "--data", data, "--kind", "k"))) == 5
    assert not os.path.exists(os.path.join(TOP, "memory:"))
    assert rows(run("import", "--ledger", "memory:", "-", text=piped))[0]["appended"] == 7
    bad = piped.replace(b'{"n": 3}', b'{"n": 4}')
    result = run("import", "--data", copy, "-", text=bad, code=4)
    says(result, "line 4: id 'e-3' is taken")
    assert rows(result)[0] == {"appended": 0, "duplicates": 3}, result.stdout
    says(run("import", "--data", copy, "/nowhere", code=3), "/nowhere")
    for name, text in (("events.csv", "id,run_id,turn\ne,r,1\n"), ("events.gz", "\x1f\x08")):
        path = os.path.join(data, name)
        with open(path, "w", encoding="utf-8") as other:
            other.write(text)
        says(run("import", "--data", copy, path, code=2), name, "begins with neither JSON lines", "CSV")


def seed_database():
    data = place()
    path = os.path.join(data, "old.db")
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE events (offset INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
            " run_id TEXT NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL,"
            " payload TEXT NOT NULL, created_at TEXT NOT NULL,"
            " schema_version INTEGER NOT NULL DEFAULT 1);"
            "INSERT INTO events (id, run_id, turn, kind, actor, payload, created_at) VALUES"
            " ('a', 'r', 1, 'k', 'x', '{\"n\": 1}', '2026-01-29T10:20:30.5+00:00');")
    database.close()
    says(run("tail", "--ledger", path, code=2), "original schema", "pawl ledger import")
    assert rows(run("import", "--data", data, path))[0] == {"appended": 1, "duplicates": 0}
    assert tail(data)[0]["created_at"] == "2026-01-29T10:20:30.500000Z"


def recall():
    data = place()
    append(data, *(event(f"e-{i}", i, actor="ab"[i % 2]) for i in range(4)))
    vectors = [[1, 0], [0.9, 0.1], [0, 1], [-1, 0]]
    run("embed", "--data", data, text=lines(*({"offset": i + 1, "embedding": vector}
                                              for i, vector in enumerate(vectors))))
    found = rows(run("recall", "--data", data, "--vector", "[1, 0]", "-k", "3"))
    assert [row["event"]["offset"] for row in found] == [1, 2, 3], found
    assert abs(found[0]["similarity"] - 1) < 1e-6, found
    found = rows(run("recall", "--data", data, "--like", "3", "--actor", "b"))
    assert [row["event"]["offset"] for row in found] == [2, 4], found
    says(run("recall", "--data", data, "--like", "99", code=3), "no embedding")
    says(run("recall", "--data", data, code=2), "--vector or --like")
    says(run("recall", "--data", data, "--vector", "[1,2,3]", code=2), "dimensions")
    says(run("embed", "--data", data, text=b'{"id":"none","embedding":[1,2]}\n', code=3),
         "line 1: id 'none'")
    says(run("embed", "--data", data, text=b'{"offset":1,"embedding":[]}\n', code=2), "line 1")


POSTGRES = r"""
set -eu
line='{"id":"e-1","run_id":"r","turn":0,"kind":"k","actor":"a","payload":{"n": 1}}'
answer() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2'" >&2; exit 1; }; }
code=0; "$PAWL" ledger tail || code=$?
answer "$code" 3                                                    # nothing there yet
answer "$(echo "$line" | "$PAWL" ledger append)" '{"offset":1,"id":"e-1","duplicate":false}'
answer "$(echo "$line" | "$PAWL" ledger append)" '{"offset":1,"id":"e-1","duplicate":true}'
code=0; echo "${line/1\}/2\}}" | "$PAWL" ledger append || code=$?
answer "$code" 4
"$PAWL" ledger turn begin --run r --turn 1
echo '{"kind":"k","actor":"a","payload":2}' | "$PAWL" ledger append --run r --turn 1 --attempt 1
"$PAWL" ledger turn commit --run r --turn 1 --attempt 1
answer "$("$PAWL" ledger tail --follow --limit 4 | wc -l)" 4
answer "$("$PAWL" ledger replay | wc -l)" 2
"$PAWL" ledger verify
"$PAWL" ledger snapshot copy.db
"$PAWL" ledger export | "$PAWL" ledger import --ledger other.db -
head() { "$PAWL" ledger stats "$@" --json | grep '"head"'; }
answer "$(head)" "$(head --ledger copy.db)"
answer "$(head)" "$(head --ledger other.db)"
"$PAWL" ledger export --ledger other.db out.parquet
answer "$("$PAWL" ledger import out.parquet)" '{"appended":0,"duplicates":4}'
"""


def on_postgres():
    result = subprocess.run([os.path.join(os.environ["PAWL_BUILD"], "tests", "with_postgres"), "bash",
                             "-c", POSTGRES], env={**ENV, "PAWL": PAWL}, cwd=place(),
                            capture_output=True, check=False, timeout=WAIT_S)
    if result.returncode == 77:
        skip("no PostgreSQL is installed")
    assert result.returncode == 0, (result.stdout[-1000:], result.stderr[-1000:])


# --- which ledger, and what cannot be one ---


def damage(path):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content[content.rindex(b"e-1") + 2] ^= 1
    with open(path, "wb") as file:
        file.write(content)


def a_damaged_newest_snapshot():
    data = place()
    for i in range(2):
        append(data, event(f"e-{i}"))
        run("snapshot", "--data", data)
    older, newest = (f"snapshot-{offset:020}.db" for offset in (1, 2))
    damage(f"{data}/snapshots/{newest}")
    target = f"{data}/restored.db"
    says(run("restore", f"{data}/snapshots", "--to", target, code=6), newest, older,
         "add --accept-older")
    assert not os.path.exists(target)
    result = run("restore", f"{data}/snapshots", "--to", target, "--accept-older", "--json")
    answer = rows(result)[0]
    assert answer["path"] == target and answer["snapshot"].endswith(older), answer
    assert answer["passed_over"].endswith(newest) and answer["head"].startswith("1:"), answer
    assert newest.encode() in result.stderr and b"warning" in result.stderr, result.stderr
    assert answer["lost"] == 1 and b'"first_lost_offset":2' in result.stderr, result
    append(data, event("e-2"), event("e-3"))
    database(data, "DELETE FROM events WHERE offset = 4")  # the tail is cut, and its anchor knows of 4
    cut = ("restore", f"{data}/snapshots/{older}", "--tail", f"{data}/ledger.sqlite")
    says(run(*cut, code=6), "it ends at offset 3, its anchor is at 4", "add --accept-older")
    result = run(*cut, "--accept-older", "--json")
    assert rows(result)[0]["lost"] == 1 and rows(result)[0]["head"].startswith("3:"), result.stdout
    assert b'"lost":1,"first_lost_offset":4,"last_known_offset":4' in result.stderr, result.stderr
    wrong = f"{data}/snapshots/snapshot-{77:020}.db"
    shutil.copy(f"{data}/snapshots/{older}", wrong)
    says(run("restore", wrong, code=6), "it ends at offset 1, its name says 77")


def hear_hangup():
    """The tests may run under nohup, and then pawl ignores it too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def interrupt_in_the_middle(directory, *verb):
    """The signals come while the command is held up with its files half made: it must end with 1 and leave none."""
    before = sorted(os.listdir(directory))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        log = os.path.join(place(), "passed")
        env = {**ENV, "PAWL_FAILPOINTS": "sqlite.backup.sync.before=delay:100000",  # the signal ends it
               "PAWL_FAILPOINTS_LOG": log}
        process = subprocess.Popen(command(*verb), env=env, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=hear_hangup)
        deadline = time.monotonic() + WAIT_S
        while not os.path.exists(log) or "sqlite.backup.sync.before" not in open(log, encoding="utf-8").read():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.005)
        assert any(".tmp-" in name for name in os.listdir(directory)), os.listdir(directory)
        process.send_signal(number)
        _, error = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1, (process.returncode, error)
        assert b"cancelled" in error or b"interrupted" in error, error
        assert sorted(os.listdir(directory)) == before, os.listdir(directory)


def an_interrupted_restore():
    data = place()
    append(data, *(event(f"e-{i}") for i in range(50)))
    run("snapshot", "--data", data, f"{data}/copy.db")
    interrupt_in_the_middle(data, "restore", f"{data}/copy.db")


def an_interrupted_snapshot_and_proof():
    data = place()
    append(data, *(event(f"e-{i}") for i in range(50)))
    run("snapshot", "--data", data)
    run("prove", "--data", data)
    proven = open(f"{data}/snapshots/proof.json", encoding="utf-8").read()
    append(data, event("later"))
    interrupt_in_the_middle(f"{data}/snapshots", "snapshot", "--data", data)
    interrupt_in_the_middle(f"{data}/snapshots", "prove", "--data", data)
    assert open(f"{data}/snapshots/proof.json", encoding="utf-8").read() == proven


def from_after_the_end():
    data = place()
    append(data, *(event(f"e-{i}") for i in range(5)))
    for verb in (["tail"], ["tail", "--follow"], ["replay"], ["replay", "--count"]):
        says(run(*verb, "--data", data, "--from", "6", code=2),
             "from: is 6, but the ledger ends at offset 5")
    assert tail(data, "--from", "5") == []
    assert rows(run("replay", "--data", data, "--from", "5")) == []
    says(run("replay", "--data", data, "--at-offset", "6", code=2), "ends at offset 5")


def which_ledger():
    data, other = place(), os.path.join(place(), "own.db")
    url = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}
    run("append", "--ledger", other, text=lines(event("own")), env=url)
    run("append", "--data", data, text=lines(event("data")), env=url)
    assert rows(run("tail", "--ledger", f"sqlite:{other}"))[0]["id"] == "own"
    assert rows(run("tail", "--data", data, "--ledger", other))[0]["id"] == "own"
    refused = run("tail", env=url, code=5)
    assert b"127.0.0.1" in refused.stderr, refused.stderr
    run("append", text=lines(event("default")), env={"PAWL_DATA": f"{data}/new/deep"})
    assert os.path.exists(f"{data}/new/deep/ledger.sqlite")
    says(run("tail", "--ledger", "memory:", code=2), "memory:")
    says(run("tail", "--ledger", "mysql://x", code=2), "unknown kind of store")
    says(run("append", "--ledger", f"{other}?durability=none", code=2), "durability")
    result = run("append", "--ledger", f"{other}?durability=normal", text=lines(event("weak")))
    assert b"power cut" in result.stderr, result.stderr


def what_is_no_ledger():
    data = place()
    missing = os.path.join(data, "none", "x.db")
    for verb in (["tail"], ["stats"], ["verify"], ["turns"], ["show", "1"], ["replay"], ["export"],
                 ["snapshot"], ["embed"]):
        run(*verb, "--ledger", missing, code=3)
        run(*verb, "--data", os.path.join(data, "none"), code=3)
    assert os.listdir(data) == []
    text = os.path.join(data, "text.db")
    with open(text, "w", encoding="utf-8") as file:
        file.write("Dear diary,\n" * 1000)
    with open(text, "rb") as file:
        before = file.read()
    for verb in (["append"], ["tail"], ["verify"]):
        says(run(*verb, "--ledger", text, code=2), "no ledger")
    says(run("restore", text, code=2), "")
    with open(text, "rb") as file:
        assert file.read() == before
    run("append", "--ledger", data, code=2)
    good = os.path.join(data, "good.db")
    run("append", "--ledger", good, text=lines(event("x")))
    with sqlite3.connect(good) as database:
        database.execute("INSERT INTO schema_version (component, version, migration, name, applied_at)"
                         " SELECT 'ledger', '99.0', max(migration) + 1, 'future', '2099-01-01'"
                         " FROM schema_version")
    database.close()
    for verb in (["append"], ["tail"], ["verify"]):
        says(run(*verb, "--ledger", good, code=2), "99.0")


def without_permission():
    data = place()
    append(data, event("x"))
    os.chmod(f"{data}/ledger.sqlite", 0o400)
    os.chmod(data, 0o500)
    try:
        result = subprocess.run(powerless(command("append", "--data", data)), input=lines(event("y")),
                                env=ENV, capture_output=True, check=False, timeout=WAIT_S)
        assert result.returncode == 1 and result.stdout == b"", result
        assert b"permission" in result.stderr.lower() or b"may not be written" in result.stderr, result
        result = subprocess.run(powerless(command("append", "--data", f"{data}/new")), env=ENV,
                                input=b"", capture_output=True, check=False, timeout=WAIT_S)
        assert result.returncode == 1 and b"ermission denied" in result.stderr, result
    finally:
        os.chmod(data, 0o700)
        os.chmod(f"{data}/ledger.sqlite", 0o600)
    assert len(tail(data)) == 1


def disk_that_fills():
    """What was answered is there, the rest is not, and it goes on when there is room again."""
    if not ROOT:
        skip("mounting needs root")
    data = place()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", data], check=False,
                      capture_output=True).returncode != 0:
        skip("no tmpfs can be mounted here")
    try:
        text = lines(*(event(f"e-{i}", "x" * 1000) for i in range(20000)))
        result = run("append", "--data", data, text=text, code=5)
        error = result.stderr.decode()
        assert "line " in error and ("full" in error or "space" in error), error
        answered = rows(result)
        assert answered, "it was full from the start"
        subprocess.run(["mount", "-o", "remount,size=200m", data], check=True)
        stored = tail(data)
        assert [row["offset"] for row in stored] == list(range(1, len(stored) + 1))
        assert len(stored) >= len(answered) and stored[len(answered) - 1]["id"] == answered[-1]["id"]
        assert len(rows(run("append", "--data", data, text=text))) == 20000
        run("verify", "--data", data)
    finally:
        subprocess.run(["umount", data], check=True)


def small_limits():
    """A process that may open few files or use little memory fails with a message."""
    data = place()
    append(data, event("x"))

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    result = subprocess.run(command("append", "--data", data), input=lines(event("y")), env=ENV,
                            preexec_fn=limit, capture_output=True, check=False, timeout=WAIT_S)
    assert result.returncode in (0, 1, 5), result
    assert result.returncode == 0 or result.stderr.startswith(b"pawl: "), result


try:
    it("answers duplicates with their first offset, conflicts with exit code 4",
       duplicates_and_conflicts)
    it("appends one event from flags", one_event_from_flags)
    it("fills lines up from flags", flags_fill_lines)
    it("refuses a bad line by its number and field, and keeps what came before", bad_lines)
    it("takes lines that are odd but good", odd_but_good_lines)
    it("takes a payload of the limit and refuses one byte more", payload_limit)
    it("appends all of an atomic input or nothing", atomic_input)
    it("finds a conflict in the middle of a batch", a_conflict_deep_in_the_input)
    it("answers a line without waiting for the next", answers_come_at_once)
    it(f"appends {LINES} lines in memory that does not grow", many_lines)
    it("runs turns from a shell, with ids that follow from them", turns)
    it("reads by offset, filter and moment", reading)
    it("ends quietly when nobody reads any more", reader_that_leaves)
    it("follows other processes and ends on Ctrl-C with 0", following)
    it("ends a follower whose reader or file is gone", followers_end)
    it("takes several writers at once", writers_at_once)
    it("loses nothing that was answered to kill -9", killed_and_resumed)
    it("verifies, and names the first bad offset", verifying)
    it("refuses a sabotaged ledger, and verify still names the first bad offset", sabotaged)
    it("leaves no empty ledger behind when it refuses", refused_appends_leave_nothing)
    it("says what to do instead", messages_that_say_what_to_do)
    it("says which part of a ledger is missing", parts_that_are_missing)
    it("takes a question mark in a directory for what it is", a_question_mark_in_the_data_directory)
    it("notices embeddings that are none", malformed_embeddings)
    it("takes, keeps, proves and restores snapshots", snapshots)
    it("names a damaged newest snapshot, and restores an older one when told to",
       a_damaged_newest_snapshot)
    it("leaves nothing behind when a signal stops a restore", an_interrupted_restore)
    it("leaves nothing behind when a signal stops a snapshot or a proof", an_interrupted_snapshot_and_proof)
    it("refuses to read on from after the end", from_after_the_end)
    it("moves ledgers through files and pipes", files)
    it("imports a database of the original schema", seed_database)
    it("recalls by embedding", recall)
    it("does the same on PostgreSQL", on_postgres)
    it("chooses the ledger by flag, data directory and environment", which_ledger)
    it("leaves alone what is no ledger, and creates nothing to read", what_is_no_ledger)
    it("says so without permission", without_permission)
    it("stops in order when the disk is full, and goes on", disk_that_fills)
    it("fails with a message under small limits", small_limits)
finally:
    shutil.rmtree(TOP, ignore_errors=True)
done()
