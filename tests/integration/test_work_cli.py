#!/usr/bin/env python3
"""`pawl work` as people and programs meet it: verbs, bad input, and a run that is killed.

PAWL_WORK_LINES says how many lines the killed run has; 600 if it is not set."""
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment, wait_until  # noqa: E402
from tap import done, it  # noqa: E402

LINES = int(os.environ.get("PAWL_WORK_LINES", "600"))
TOP = tempfile.mkdtemp(prefix="pawl-work-")
ENV = environment(TOP)
WAIT_S = 240


def place():
    return tempfile.mkdtemp(dir=TOP)


def command(data, *args):
    return [PAWL, "work", *args[:1], "--data", data, *args[1:]]


def work(data, *args, code=0, text=b"", env=None):
    result = subprocess.run(command(data, *args), input=text, env={**ENV, **(env or {})}, cwd=data,
                            timeout=WAIT_S, capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:],
                                       result.stderr[-800:])
    return check_advice(result)


def rows(data, *args, **more):
    return [json.loads(line) for line in work(data, *args, "--json", **more).stdout.splitlines()]


def refused(data, *args, code=2, says="", text=b""):
    result = work(data, *args, code=code, text=text)
    assert says in result.stderr.decode(), result.stderr
    return result


def start(data, *args):
    return subprocess.Popen(command(data, *args), env=ENV, cwd=data, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# --- the verbs ---


def verbs():
    data = place()
    one = rows(data, "submit", "--type", "mail", "--task", "t", "--id", "m", "--input", '{"a":1}')
    assert one == [{"work_item_id": "m", "task_id": "t", "duplicate": False}], one
    again = rows(data, "submit", "--type", "mail", "--task", "t", "--id", "m", "--input",
                 '{ "a" : 1 }')
    assert again[0]["duplicate"] is True
    refused(data, "submit", "--type", "mail", "--task", "t", "--id", "m", "--input", "2", code=4)
    item = rows(data, "claim", "--holder", "ada", "--type", "mail")[0]
    assert (item["work_item_id"], item["token"], item["attempts"]) == ("m", 1, 1), item
    assert item["input_data"] == {"a": 1}
    refused(data, "claim", "--holder", "bob", code=3)
    refused(data, "heartbeat", "m", "--token", "2", code=4)
    assert rows(data, "heartbeat", "m", "--token", "1", "--lease", "1h")[0]["lease_expires_at"]
    assert rows(data, "release", "m", "--token", "1")[0]["status"] == "pending"
    refused(data, "complete", "m", "--token", "1", code=4)
    assert rows(data, "claim", "--holder", "bob")[0]["token"] == 2
    failed = rows(data, "fail", "m", "--token", "2", "--error", "no network")[0]
    assert failed["status"] == "waiting", failed
    item = rows(data, "claim", "--holder", "bob", "--wait", "2m")[0]
    assert (item["token"], item["retry_count"]) == (3, 1), item
    assert rows(data, "complete", "m", "--token", "3", "--output", "null")[0]["status"] == \
        "completed"
    work(data, "complete", "m", "--token", "3", "--output", "null")  # as the first was
    refused(data, "cancel", "m", code=4)
    shown = rows(data, "show", "m")[0]
    assert shown["status"] == "completed", shown
    steps = [(event["from"], event["to"]) for event in shown["history"]]
    assert steps[0] == (None, "pending") and steps[-1] == ("in_progress", "completed"), steps
    assert b"in_progress" in work(data, "show", "m").stdout
    work(data, "submit", "--type", "mail", "--id", "n", "--after", "m", "--task", "t")
    assert rows(data, "cancel", "n")[0]["status"] == "failed"
    assert [row["work_item_id"] for row in rows(data, "list", "--status", "failed")] == ["n"]
    refused(data, "list", "--task", "none", code=3)
    refused(data, "show", "none", code=3)
    assert rows(data, "sweep")[0]["expired"] == 0


def left_expired():
    """By a statement of SQL: a sweep is one transaction, and leaves none."""
    data = place()
    work(data, "submit", "--type", "mail", "--id", "m")
    work(data, "submit", "--type", "mail", "--id", "n")
    work(data, "claim", "--holder", "ada", "-n", "1")
    assert rows(data, "list", "--status", "expired") == []
    store = sqlite3.connect(os.path.join(data, "work.sqlite"))
    with store:
        store.execute("UPDATE work_items SET status = 'expired', lease_holder = NULL,"
                      " lease_expires_at = NULL WHERE work_item_id = 'm'")
    store.close()
    found = rows(data, "list", "--status", "expired")
    assert [(row["work_item_id"], row["status"]) for row in found] == [("m", "expired")], found
    both = rows(data, "list", "--status", "expired", "--status", "pending")
    assert sorted(row["work_item_id"] for row in both) == ["m", "n"], both
    assert rows(data, "sweep")[0]["retried"] == 1
    assert rows(data, "list", "--status", "expired") == []
    assert b"expired" in work(data, "list", "--help").stdout


def tasks():
    data = place()

    def task(*args, code=0):
        result = subprocess.run([PAWL, "work", "task", args[0], "--data", data, *args[1:], "--json"],
                                env=ENV, cwd=data, capture_output=True, check=False)
        assert result.returncode == code, (args, result)
        return [json.loads(line) for line in result.stdout.splitlines()]

    task("create", "--id", "t", "--title", "T", "--metadata", '{"k":1}')
    task("create", "--id", "t", "--title", "T", "--metadata", '{"k":1}')
    task("create", "--id", "t", "--title", "U", code=4)
    work(data, "submit", "--type", "a", "--task", "t")
    assert task("list")[0]["pending"] == 1
    assert task("show", "t")[0]["metadata"] == {"k": 1}
    assert task("cancel", "t")[0]["failed_items"] == 1
    assert task("list", "--status", "cancelled")[0]["task_id"] == "t"
    refused(data, "submit", "--type", "a", "--task", "t", code=4)
    task("create", "--id", "u", "--title", "U")
    assert task("set-status", "u", "succeeded")[0]["status"] == "succeeded"
    assert task("show", "u")[0]["set_by_user"] is True
    task("show", "none", code=3)
    task("set-status", "u", "wonderful", code=2)


def bad_input():
    data = place()
    refused(data, "list", code=3)  # there is none, and none is made
    assert os.listdir(data) == []
    refused(data, "submit", code=2, says="--type")
    refused(data, "submit", "--type", "a", "--input", "{", says="--input")
    refused(data, "submit", "--type", "a", "--priority", "1000001", says="priority")
    refused(data, "submit", "--type", "a", "--dedupe", says="--lines")
    refused(data, "submit", "--type", "a", "--lines", "--dedupe", says="--task")
    refused(data, "submit", "--type", "a", "--lines", "--id", "x", says="--id")
    refused(data, "submit", "--type", "a", "--delay", "soon", says="--delay")
    refused(data, "submit", "--type", "t" * 201, says="200")
    refused(data, "submit", "--type", "a", "--task", "", says="--task")
    assert os.listdir(data) == []
    refused(data, "submit", "--type", "a", "--lines", text=b"\xff", says="line 1")
    left = subprocess.run([PAWL, "work", "task", "list", "--data", data], env=ENV, cwd=data,
                          check=True, capture_output=True)
    assert left.stdout == b"", left.stdout
    refused(data, "submit", "--type", "a", "--after", "none", code=3)
    for more in (("--id", "a\tb"), ("--id", "i" * 201), ("--id", ""), ("--after", "none"),
                 ("--input", "{")):
        for task in ((), ("--task", "new")):
            result = work(data, "submit", "--type", "a", *more, *task,
                          code=3 if more[0] == "--after" else 2)
            assert b"item 0" not in result.stderr, result.stderr
    left = subprocess.run([PAWL, "work", "task", "list", "--data", data], env=ENV, cwd=data,
                          check=True, capture_output=True)
    assert left.stdout == b"", left.stdout
    work(data, "submit", "--type", "a", "--task", "t", "--id", "x")
    refused(data, "submit", "--type", "a", "--task", "u", "--id", "x", code=4, says="another task")
    refused(data, "submit", "--type", "a", "--task", "u", "--after", "x", says="another task")
    refused(data, "submit", "--type", "a", "--task", "t", "--after", "none", code=3,
            says="pawl: after: no item 'none'")
    refused(data, "run", "--type", "a", "--exec", "false", "--task", "u", code=3, says="no task 'u'")
    refused(data, "list", "--task", "u", code=3, says="no task 'u'")
    refused(data, "claim", "--holder", "ada", "--task", "u", code=3, says="no task 'u'")
    refused(data, "run", "--type", "a", "--exec", "false", "-I", "", says="--replace")
    refused(data, "run", "--type", "a", "--exec", "echo $[{}]", says="$[...]")
    refused(data, "list", "--status", "wonderful", says="status")
    refused(data, "claim", "--holder", "a", "--lease", "0", says="--lease")
    refused(data, "run", "--type", "a", "--exec", "sh -c '{}'", says="inside of quotes")
    refused(data, "run", "--type", "a", "--exec", "true", "-j", "0", says="jobs")
    refused(data, "run", "--type", "a", "--exec", "true", "--work", "memory:", says="memory:")


def lines_of_every_kind():
    data = place()
    odd = ["", " a  b ", "it's", '"q"', "back\\slash", "tab\there", "ünïcödé 😀", "-rf", "{}"]
    work(data, "submit", "--type", "a", "--lines", text="\n".join(odd).encode())
    assert [row["input_data"] for row in rows(data, "list", "--type", "a")] == odd
    out = work(data, "run", "--type", "a", "--exec", "printf '%s|' {}; cat", "-k").stdout.decode()
    assert out == "".join(f"{text}|{text}\n" if text else "|" for text in odd), out
    work(data, "submit", "--type", "c", "--lines", text=b"\xef\xbb\xbfa\r\nb\rc\n")
    assert [row["input_data"] for row in rows(data, "list", "--type", "c")] == ["a", "b\rc"]
    work(data, "submit", "--type", "j", "--lines", "--json-lines", text=b'{"a":1}\n\n[2]\n"x"\n')
    out = work(data, "run", "--type", "j", "--exec", "echo {}", "-k").stdout.decode()
    assert out == '{"a":1}\n[2]\nx\n', out


def json_in_columns():
    data = place()
    odd = 'a\tb\nc"d\\e\x7f\u202eü'
    for text in (json.dumps({"k": odd}, ensure_ascii=False), '{ "k":\n\t' + json.dumps(odd) + '}'):
        work(data, "submit", "--type", "a", "--input", "-", text=text.encode())
    for verb in (("list", ), ("claim", "--holder", "ada", "-n", "2")):
        lines = work(data, *verb).stdout.decode().split("\n")[:-1]
        found = [json.loads(next(cell for cell in line.split("\t") if cell[:1] == "{"))
                 for line in lines]
        assert found == [{"k": odd}] * 2, lines
        assert not any(sign in line for sign in "\x7f\u202e" for line in lines)


def bad_lines():
    for bad, says in ((b"\0", "NUL"), (b"\xff", "UTF-8"), (b"x" * (1 << 20), "bytes")):
        data = place()
        refused(data, "submit", "--type", "a", "--lines", "--task", "t", text=b"1\n2\n" + bad +
                b"\n4\n", says="line 3")
        refused(data, "submit", "--type", "a", "--lines", "--task", "t", text=b"\n" + bad,
                says=says)
        kept = [row["input_data"] for row in rows(data, "list", "--type", "a")]
        assert kept == ["1", "2", ""], kept
        refused(data, "submit", "--type", "b", "--lines", "--atomic", "--task", "t",
                text=b"1\n2\n" + bad, says="line 3")
        assert rows(data, "list", "--type", "b") == []
    data = place()
    refused(data, "submit", "--type", "a", "--lines", "--json-lines", text=b"1\n{\n", says="line 2")


def lines_at_the_limit():
    """1 MiB is what is stored: a string with quotes and escapes, no line end, no byte order mark."""
    limit = 1 << 20
    kinds = ((("--lines", ), lambda size: b"x" * (size - 2)),
             (("--lines", ), lambda size: b'"' + b"x" * (size - 4)),
             (("--lines", "--json-lines"), lambda size: b'"' + b"x" * (size - 2) + b'"'))
    for flags, line_of in kinds:
        for mark, end in ((b"", b""), (b"", b"\n"), (b"\xef\xbb\xbf", b"\r\n")):
            data = place()
            for size in (limit - 1, limit):
                work(data, "submit", "--type", "a", *flags, text=mark + line_of(size) + end)
            refused(data, "submit", "--type", "a", *flags, text=mark + line_of(limit + 1) + end,
                    says="line 1: ")
            sizes = [len(json.dumps(row["input_data"])) for row in rows(data, "list")]
            assert sizes == [limit - 1, limit], (flags, mark, sizes)


def lines_once():
    data = place()
    text = "".join(f"line {n}\n" for n in range(25000)).encode()
    first = rows(data, "submit", "--type", "a", "--task", "t", "--lines", "--dedupe", text=text)
    assert first[0]["submitted"] == 25000, first
    again = rows(data, "submit", "--type", "a", "--task", "t", "--lines", "--dedupe",
                 text=text + b"more\n")
    assert (again[0]["submitted"], again[0]["duplicates"]) == (1, 25000), again
    twice = rows(data, "submit", "--type", "a", "--task", "t", "--lines", text=b"line 0\n")
    assert (twice[0]["submitted"], twice[0]["duplicates"]) == (1, 0), twice
    order = [row["input_data"] for row in rows(data, "list", "--type", "a", "-n", "25001")]
    assert order == [f"line {n}" for n in range(25000)] + ["more"]


def checkpoints():
    data = place()

    def point(*args, code=0):
        result = subprocess.run(
            [PAWL, "work", "checkpoint", args[0], "--data", data, *args[1:], "--json"], env=ENV,
            cwd=data, capture_output=True, check=False)
        assert result.returncode == code, (args, result)
        return [json.loads(line) for line in result.stdout.splitlines()]

    work(data, "submit", "--type", "a", "--task", "t", "--id", "x")
    with open(os.path.join(data, "page"), "w", encoding="utf-8") as file:
        file.write("one")
    first = point("add", "--task", "t", "--type", "iteration_end", "--id", "c1", "--snapshot",
                  '{"page":1,"of":9}', "--evidence", "file_sha256=page", "--evidence",
                  "command_exit=3:exit 3")
    assert first == [{"checkpoint_id": "c1", "sequence_number": 1}], first
    rows(data, "claim", "--holder", "ada")
    point("add", "--item", "x", "--token", "2", "--snapshot", "{}", code=4)
    assert point("add", "--item", "x", "--token", "1", "--snapshot", '{"page":2}', "--id",
                 "c2")[0]["sequence_number"] == 2
    point("add", "--item", "x", "--snapshot", "{}", code=2)
    point("add", "--task", "t", "--snapshot", "{", code=2)
    point("add", "--task", "t", "--snapshot", "{}", "--evidence", "file_exists=none", code=2)
    point("add", "--task", "t", "--snapshot", "{}", "--evidence", "wonder=x", code=2)
    point("add", "--task", "t", "--snapshot", "{}", "--type", "wonder", code=2)
    assert [row["checkpoint_id"] for row in point("list", "t")] == ["c1", "c2"]
    assert [row["checkpoint_id"] for row in point("list", "t", "--item", "x")] == ["c2"]
    assert point("latest", "t")[0]["snapshot_data"] == {"page": 2}
    assert point("latest", "t", "--type", "iteration_end")[0]["evidence"][1]["expected"] == "3"
    point("latest", "none", code=3)
    changes = {row["path"]: (row["from"], row["to"]) for row in point("diff", "c1", "c2")}
    assert changes == {"/page": (1, 2), "/of": (9, None)}, changes
    assert point("verify", "c1")[0]["verified"] is True
    with open(os.path.join(data, "page"), "w", encoding="utf-8") as file:
        file.write("two")
    assert point("verify", "c1", code=6)[0]["verified"] is False
    point("verify", "c2")
    kept = point("list", "t")[0]["evidence"]
    assert kept[0]["subject"] == os.path.join(data, "page"), kept
    gone = os.path.join(data, "gone")
    for number, kind in ((3, "iteration_end"), (4, "manual_checkpoint")):
        with open(gone, "w", encoding="utf-8"):
            pass
        point("add", "--task", "t", "--type", kind, "--id", f"c{number}", "--snapshot", "{}",
              "--evidence", "file_exists=gone")
    elsewhere = subprocess.run([PAWL, "work", "checkpoint", "verify", "--data", data, "c3"], env=ENV,
                               cwd="/", capture_output=True, check=False)
    assert elsewhere.returncode == 0, elsewhere
    os.remove(gone)
    lines = [line.split("\t") for line in work(data, "recover", "t").stdout.decode().splitlines()]
    said = [tuple(line[:3]) for line in lines if line[0] not in ("task", "item")]
    assert said == [("passed_over", "c3", "iteration_end"),
                    ("passed_over", "c4", "manual_checkpoint"),
                    ("resume", "c2", "manual_checkpoint"),
                    ("iteration_end", "c3", "does_not_hold")], lines
    assert gone in lines[1][3], lines
    found = rows(data, "recover", "t")[0]
    assert found["resume"]["checkpoint_id"] == "c2", found
    assert [item["work_item_id"] for item in found["items"]] == ["x"]
    assert b"resume\tc2" in work(data, "recover", "t").stdout
    refused(data, "recover", "none", code=3)


def keys():
    data = place()

    def idem(*args, code=0):
        result = subprocess.run([PAWL, "idem", args[0], "--data", data, *args[1:], "--json"],
                                env=ENV, cwd=data, capture_output=True, check=False)
        assert result.returncode == code, (args, result)
        return [json.loads(line) for line in result.stdout.splitlines()]

    assert idem("hash", '{"b":1,"a":2.0}') == idem("hash", '{ "a": 2, "b": 1 }')
    idem("begin", "k", code=2)
    idem("begin", "k", "--hash", "md5:1", code=2)
    first = idem("begin", "k", "--request", '{"a":1}', "--owner", "ada", "--lease", "1h")[0]
    assert first["answer"] == "new" and first["owner_token"] > 0, first
    token = str(first["owner_token"])
    busy = idem("begin", "k", "--request", '{"a":1}', code=5)[0]
    assert (busy["answer"], busy["owner"]) == ("in_flight", "ada"), busy
    assert idem("begin", "k", "--request", '{"a":2}', code=4)[0]["answer"] == "hash_conflict"
    idem("complete", "k", "--token", "7", code=4)
    idem("complete", "k", "--token", token, "--response", '{"paid":5}')
    done_row = idem("begin", "k", "--request", '{"a":1}')[0]
    assert (done_row["answer"], done_row["response"]) == ("done", {"paid": 5}), done_row
    assert idem("begin", "k", "--request", '{"a":1}', "--only-new", code=3) == [done_row]
    assert idem("begin", "n", "--request", "1", "--only-new")[0]["answer"] == "new"
    idem("begin", "n", "--request", "1", "--hash", "sha256:1", code=2)
    idem("fail", "k", "--token", token, code=4)
    assert idem("get", "k")[0]["answer"] == "done"
    idem("get", "none", code=3)
    token = idem("begin", "f", "--request", "1")[0]["owner_token"]
    idem("fail", "f", "--token", str(token), "--response", '"no"')
    assert idem("begin", "f", "--request", "1", code=1)[0]["response"] == "no"
    assert idem("begin", "f", "--request", "1", "--take-over")[0]["owner_token"] == token + 1
    idem("release", "f", "--token", str(token + 1))
    assert idem("begin", "f", "--request", "1")[0]["answer"] == "new"
    idem("begin", "d", "--request", "1", "--lease", "1ms")
    wait_until(lambda: idem("get", "d")[0]["answer"] == "in_doubt", "the lease runs out")
    assert idem("begin", "d", "--request", "1", code=4)[0]["answer"] == "in_doubt"


def schedules_and_care():
    data = place()

    def schedule(*args, code=0):
        result = subprocess.run(
            [PAWL, "work", "schedule", args[0], "--data", data, *args[1:], "--json"], env=ENV,
            cwd=data, capture_output=True, check=False)
        assert result.returncode == code, (args, result)
        return [json.loads(line) for line in result.stdout.splitlines()]

    work(data, "submit", "--type", "a", "--task", "t", "--id", "x")
    schedule("put", "s", "--cron", "61 * * * *", "--type", "b", "--task", "t", code=2)
    schedule("put", "s", "--cron", "0 3 * * *", "--type", "b", "--task", "t", "--input", "[1]")
    listed = schedule("list")[0]
    assert listed["next_slot"].endswith("T03:00:00.000000Z") and listed["input_data"] == [1], listed
    assert schedule("fire") == [{"fired": 0}]
    schedule("put", "alone", "--cron", "0 3 * * *", "--type", "b")
    assert schedule("list")[0]["task_id"] in ("", None)
    schedule("remove", "alone")
    schedule("remove", "s")
    schedule("remove", "s", code=3)
    stats = rows(data, "stats")
    counts = {(row["what"], row["name"], row["status"]): row["count"] for row in stats}
    assert counts[("items", None, "pending")] == 1 and counts[("type", "a", "pending")] == 1, counts
    gone = rows(data, "retention", "--dry-run")[0]
    assert gone["items"] == 0, gone
    rows(data, "claim", "--holder", "ada")
    rows(data, "complete", "x", "--token", "1")
    wait_until(lambda: rows(data, "retention", "--item-days", "0", "--dry-run")[0]["items"] == 1,
               "it is old enough")
    assert rows(data, "retention", "--item-days", "0")[0]["items"] == 1
    assert rows(data, "list") == []


# --- run ---


def fails_and_retries():
    data = place()
    work(data, "submit", "--type", "a", "--lines", "--retries", "1", text=b"1\n2\n3\n")
    script = ('echo out {}; echo err {} >&2; test {} != 2 || exit 3; '
              'test {} != 3 || test "$PAWL_RETRY" = 1 || exit 4')
    result = work(data, "run", "--type", "a", "--exec", script, "-k", "--logs", "logs", code=1)
    printed = sorted(result.stdout.decode().splitlines())  # of failed tries nothing but errors
    assert printed == ["out 1", "out 2", "out 3"], printed
    assert b"1 item has failed" in result.stderr
    items = {row["input_data"]: row for row in rows(data, "list", "--type", "a")}
    assert [items[n]["status"] for n in "123"] == ["completed", "failed", "completed"]
    assert items["2"]["error_message"] == "exit code 3" and items["2"]["attempts"] == 2
    assert items["2"]["output_data"]["exit_code"] == 3
    assert items["1"]["output_data"]["stdout"] == "out 1\n"
    assert items["3"]["output_data"]["stderr"] == "err 3\n" and items["3"]["retry_count"] == 1
    logs = sorted(os.listdir(os.path.join(data, "logs")))
    assert len(logs) == 10, logs
    name = f"{items['3']['work_item_id']}.2.err"
    assert read(os.path.join(data, "logs", name)) == "err 3\n"
    work(data, "run", "--type", "a", "--exec", "false")  # nothing is left: fine
    work(data, "submit", "--type", "b", "--lines", "--task", "t", text=b"1\n")
    work(data, "run", "--type", "b", "--exec", "kill -9 $$", "--retries", "0", code=1)
    assert rows(data, "list", "--type", "b")[0]["error_message"] == "ended by signal 9 (Killed)"
    work(data, "run", "--type", "b", "--task", "t", "--exec", "true", code=1)  # of the whole task


def environment_and_output():
    data = place()
    item = rows(data, "submit", "--type", "a", "--id", "x/1", "--task", "t", "--input", '"in"')[0]
    assert item["work_item_id"] == "x/1"
    env = {"PAWL_INPUT": "mine", "COLOUR": "green"}
    out = work(data, "run", "--type", "a", "--exec", "env; seq 1 200000", env=env).stdout.decode()
    for line in ("PAWL_INPUT=in", "PAWL_WORK_ITEM_ID=x/1", "PAWL_TASK_ID=t", "PAWL_ATTEMPT=1",
                 "PAWL_TOKEN=1", "PAWL_RETRY=0", "PAWL_WORK_TYPE=a", "COLOUR=green"):
        assert f"\n{line}\n" in "\n" + out, line
    assert out.endswith("199999\n200000\n") and "\n1\n2\n3\n" in out
    output = rows(data, "show", "x/1")[0]["output_data"]
    assert output["truncated"] is True and output["stdout"].endswith("200000\n")
    assert output["stdout_bytes"] == len(out.encode())
    long = json.dumps("x" * 200000)
    work(data, "submit", "--type", "b", "--input", "-", text=long.encode())
    work(data, "submit", "--type", "b", "--input", "-", text=long.encode())
    result = rows(data, "run", "--type", "b", "--exec", "wc -c", "--limit", "1")
    assert result[0]["output"]["stdout"] == "200001\n" and result[0]["status"] == "completed"
    result = rows(data, "run", "--type", "b", "--exec", "echo {}", code=1)
    assert "too long" in result[0]["error_message"] and result[0]["status"] == "failed", result


def timeouts():
    data = place()
    work(data, "submit", "--type", "a", "--retries", "0")
    result = rows(data, "run", "--type", "a", "--exec", "trap '' TERM; sleep 1000 & wait; wait",
                  "--timeout", "50ms", "--grace", "50ms", code=1)
    assert result[0]["error_message"] == "timed out, ended by signal 9 (Killed)", result
    # Exit code 0 after the time was up says that it tidied up.
    work(data, "submit", "--type", "b", "--retries", "0")
    result = rows(data, "run", "--type", "b", "--exec",
                  "trap 'exit 0' TERM; while :; do sleep 0.01; done", "--timeout", "300ms", code=1)
    assert result[0]["status"] == "failed", result
    assert result[0]["error_message"].startswith("timed out, "), result


def dependencies():
    data = place()
    work(data, "submit", "--type", "a", "--task", "t", "--id", "one")
    work(data, "submit", "--type", "a", "--task", "t", "--id", "two", "--after", "one")
    work(data, "submit", "--type", "b", "--task", "t", "--id", "three", "--after", "two")
    result = work(data, "run", "--type", "b", "--exec", "true", code=1)
    assert b"1 item is left that waits for items of other types" in result.stderr
    out = work(data, "run", "--type", "a", "--type", "b", "--exec", "echo $PAWL_WORK_ITEM_ID",
               "-j", "4").stdout
    assert out == b"one\ntwo\nthree\n", out


def interrupted():
    data = place()
    work(data, "submit", "--type", "a", "--lines", text=b"1\n2\n3\n4\n")
    run = start(data, "run", "--type", "a", "--exec", "echo $$ >{}.pid; exec sleep 1000", "-j", "3",
                "--grace", "1m")
    files = [os.path.join(data, f"{n}.pid") for n in (1, 2, 3)]
    wait_until(lambda: all(os.path.exists(file) and read(file).endswith("\n") for file in files),
               "the commands run")
    run.send_signal(signal.SIGINT)
    err = run.communicate(timeout=WAIT_S)[1]
    assert run.returncode == 1 and b"interrupted" in err and b"3 given back" in err, err
    assert not any(alive(read(file).strip()) for file in files)
    items = rows(data, "list")
    assert [row["status"] for row in items] == ["pending"] * 4
    assert [row["retry_count"] for row in items] == [0] * 4
    assert not os.path.exists(os.path.join(data, "4.pid"))


def interrupted_while_tidying_up():
    data = place()
    # The outer shell ends at once; the inner one has its grace, and ends with 0.
    inner = "trap \"sleep 0.3; : >tidy; exit 0\" TERM; : >ready; while :; do sleep 0.01; done"
    for kind, script in (("a", f"sh -c '{inner}'; true"), ("b", inner)):
        work(data, "submit", "--type", kind, "--id", kind)
        run = start(data, "run", "--type", kind, "--exec", script, "--grace", "1m")
        wait_until(lambda: os.path.exists(os.path.join(data, "ready")), "the command runs")
        run.send_signal(signal.SIGINT)
        err = run.communicate(timeout=WAIT_S)[1]
        assert run.returncode == 1 and b"1 given back" in err, err
        assert os.path.exists(os.path.join(data, "tidy"))
        item = rows(data, "show", kind)[0]
        assert (item["status"], item["retry_count"]) == ("pending", 0), item
        os.remove(os.path.join(data, "ready"))
        os.remove(os.path.join(data, "tidy"))
    # It has no more than its grace.
    work(data, "submit", "--type", "c")
    run = start(data, "run", "--type", "c", "--grace", "50ms", "--exec",
                "sh -c 'trap \"\" TERM; echo $$ >pid; sleep 1000; true'; true")
    pid = os.path.join(data, "pid")
    wait_until(lambda: os.path.exists(pid) and read(pid).endswith("\n"), "the command runs")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=WAIT_S)
    assert not alive(read(pid).strip())


def cancelled_at_its_end():
    data = place()
    work(data, "submit", "--type", "a", "--id", "x")
    cancel = f"{PAWL} work cancel --data {data} x >cancelled; : >end"
    result = work(data, "run", "--type", "a", "--exec", cancel)
    assert b"ended by itself" in result.stderr, result.stderr
    assert os.path.exists(os.path.join(data, "end"))
    assert rows(data, "show", "x")[0]["error_message"] == "cancelled"


def no_retry_left():
    data = place()
    for kind in ("a", "b"):
        work(data, "submit", "--type", kind, "--id", kind, "--retries", "0")
        run = start(data, "run", "--type", kind, "--exec", ": >ready; exec sleep 1000")
        ready = os.path.join(data, "ready")
        wait_until(lambda path=ready: os.path.exists(path), "the command runs")
        run.kill()
        run.communicate()
        os.remove(ready)
    found = rows(data, "run", "--type", "a", "--exec", "true", code=1)
    assert [(row["work_item_id"], row["status"]) for row in found] == [("a", "failed")], found
    assert found[0]["error_message"] == "the process that ran it was killed", found
    err = work(data, "run", "--type", "b", "--exec", "true", code=1).stderr
    assert b"item failed" in err and b"1 item has failed" in err, err


def lost_lease():
    data = place()
    work(data, "submit", "--type", "a", "--id", "x")
    run = start(data, "run", "--type", "a", "--exec", "echo $$ >pid; exec sleep 1000", "--lease",
                "5s")
    file = os.path.join(data, "pid")
    wait_until(lambda: os.path.exists(file) and read(file).endswith("\n"), "the command runs")
    work(data, "cancel", "x")
    err = run.communicate(timeout=WAIT_S)[1]
    assert run.returncode == 0 and b"lease lost" in err, (run.returncode, err)
    assert not alive(read(file).strip())


# An effect that is there once: the file is made with O_EXCL. Whoever comes second notes it.
EFFECT = "set -C; n={}; echo $$ >run/$n.$PAWL_ATTEMPT; if ! (: >done/$n) 2>/dev/null; then " \
         "echo $n >>again.txt; fi; : >ended/$n.$PAWL_ATTEMPT"


def killed():
    data = place()
    for name in ("run", "done", "ended"):
        os.mkdir(os.path.join(data, name))
    text = "".join(f"{n}\n" for n in range(1, LINES + 1)).encode()
    work(data, "submit", "--type", "t", "--lines", text=text)
    count = 0
    for kill in range(1, 4):
        run = start(data, "run", "--type", "t", "--exec", EFFECT, "-j", "4")
        wait_until(lambda goal=LINES * kill // 4: len(os.listdir(os.path.join(data, "done"))) >= goal
                   or run.poll() is not None, "the run gets on")
        run.kill()
        run.communicate()
        count += 1
    work(data, "run", "--type", "t", "--exec", EFFECT, "-j", "4")
    assert len(os.listdir(os.path.join(data, "done"))) == LINES
    items = rows(data, "list", "--type", "t")
    assert all(row["status"] == "completed" for row in items)
    # A second try only for what was running: at most four commands, and four whose end the store
    # had not heard of yet, at each kill.
    again = [row for row in items if row["attempts"] > 1]
    assert len(again) <= count * 8, [(row["input_data"], row["attempts"]) for row in again]
    tries = {}
    for name in os.listdir(os.path.join(data, "run")):
        tries[name.split(".")[0]] = tries.get(name.split(".")[0], 0) + 1
    known = {row["input_data"] for row in again}
    assert {n for n, often in tries.items() if often > 1} <= known


def no_command_outlives_its_runner():
    data = place()
    work(data, "submit", "--type", "a", "--lines", text=b"1\n2\n")
    script = "trap '' TERM INT HUP; echo $$ >{}.$PAWL_ATTEMPT; " \
             'test "$PAWL_ATTEMPT" = 2 || { sleep 1000; touch late; }'
    run = start(data, "run", "--type", "a", "--exec", script, "-j", "2")
    files = [os.path.join(data, f"{n}.1") for n in (1, 2)]
    wait_until(lambda: all(os.path.exists(file) and read(file).endswith("\n") for file in files),
               "the commands run")
    run.kill()
    run.communicate()
    work(data, "run", "--type", "a", "--exec", script, "-j", "2")  # does not wait for the leases
    assert not any(alive(read(file).strip()) for file in files)
    assert not os.path.exists(os.path.join(data, "late"))
    assert [row["retry_count"] for row in rows(data, "list")] == [1, 1]


def two_at_once():
    data = place()
    os.mkdir(os.path.join(data, "done"))
    work(data, "submit", "--type", "a", "--lines", text="".join(f"{n}\n" for n in range(200)).encode())
    runs = [start(data, "run", "--type", "a", "--exec", "set -C; : >done/{}", "-j", "2", "--retries",
                  "0") for _ in range(2)]
    for run in runs:
        err = run.communicate(timeout=WAIT_S)[1]
        assert run.returncode == 0, err
    assert len(os.listdir(os.path.join(data, "done"))) == 200
    assert all(row["attempts"] == 1 for row in rows(data, "list"))


def in_order():
    data = place()
    work(data, "submit", "--type", "a", "--lines", text="".join(f"{n}\n" for n in range(60)).encode())
    # The first waits for the last: everything else is held back, some of it on disk.
    script = "if test {} = 0; then while ! test -e last; do sleep 0.01; done; fi; echo {}; " \
             "if test {} = 30; then seq 1 50000; fi; if test {} = 59; then touch last; fi"
    out = work(data, "run", "--type", "a", "--exec", script, "-j", "3", "-k").stdout.decode()
    numbers = "".join(f"{n}\n" for n in range(1, 50001))
    expected = "".join(f"{n}\n" + (numbers if n == 30 else "") for n in range(60))
    assert out == expected, out[:200]


def progress():
    data = place()
    work(data, "submit", "--type", "a", "--lines", text=b"1\n2\n3\n")
    ours, theirs = pty.openpty()
    run = subprocess.Popen(command(data, "run", "--type", "a", "--exec", "sleep 0.6"), cwd=data,
                           env={**ENV, "TERM": "xterm"}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert run.wait(timeout=WAIT_S) == 0
    assert b"run" in seen and b"%" in seen and b"left" in seen, seen


def foreign_trigger():
    data = place()
    work(data, "submit", "--type", "a")
    with sqlite3.connect(os.path.join(data, "work.sqlite")) as connection:
        connection.execute("CREATE TRIGGER eve BEFORE INSERT ON work_items BEGIN SELECT RAISE(IGNORE); END")
    connection.close()
    result = work(data, "submit", "--type", "a", code=6)
    assert b"'eve' on 'work_items'" in result.stderr and b"; to continue, run DROP TRIGGER" in result.stderr, result
    assert b"verify" not in result.stderr, result.stderr  # 'pawl work' has no such command


def stays():
    data = place()
    work(data, "submit", "--type", "a")
    run = start(data, "run", "--type", "a", "--exec", "touch done-$PAWL_WORK_ITEM_ID", "--wait")
    item = rows(data, "submit", "--type", "a")[0]["work_item_id"]
    wait_until(lambda: os.path.exists(os.path.join(data, f"done-{item}")), "it takes new items")
    run.terminate()
    err = run.communicate(timeout=WAIT_S)[1]
    assert run.returncode == 0, (run.returncode, err)


it("has every verb of a worker", verbs)
it("lists what a statement of SQL left expired", left_expired)
it("makes, lists and ends tasks", tasks)
it("refuses bad input by name and exit code", bad_input)
it("queues lines to the letter", lines_of_every_kind)
it("prints JSON as JSON in columns", json_in_columns)
it("refuses bad lines by number", bad_lines)
it("counts what is stored against the limit", lines_at_the_limit)
it("queues the same lines of a task once when asked to", lines_once)
it("adds, finds, compares and verifies checkpoints", checkpoints)
it("answers for idempotency keys", keys)
it("has schedules, counts and removes what is old", schedules_and_care)
it("runs, fails, retries, logs and says what failed", fails_and_retries)
it("gives commands their input and keeps their output", environment_and_output)
it("ends a command that takes too long", timeouts)
it("runs what comes after, after", dependencies)
it("gives items back after Ctrl-C", interrupted)
it("gives what tidies up its grace, and its item back", interrupted_while_tidying_up)
it("says when a lease was lost of a command that had ended", cancelled_at_its_end)
it("counts what failed with its runner", no_retry_left)
it("ends a command whose lease was lost", lost_lease)
it("goes on after kill -9, three times", killed)
it("lets no command outlive its runner", no_command_outlives_its_runner)
it("shares the items between two runs", two_at_once)
it("keeps the order of output", in_order)
it("shows progress on a terminal", progress)
it("names a trigger that is not its own, and how to remove it", foreign_trigger)
it("stays for more with --wait", stays)
done()
