#!/usr/bin/env python3
"""`pawl deliver`, `pipeline`, `wal` and `sql` as people and programs meet them: files, ledgers and streams into DuckDB,
killed, run again, refused; rows are counted by SQL."""
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
import nats  # noqa: E402
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


def is_running(data):
    """Whether a `pawl deliver` has the pipelines, and answers other commands."""
    looked = subprocess.run([PAWL, "pipeline", "list", *data, "--json"], env=ENV, cwd=TOP, timeout=WAIT_S, text=True,
                            capture_output=True, check=False)
    return os.path.exists(f"{data[1]}/deliver.sock") and '"state":"running"' in looked.stdout


def sql(data, statement):
    return [json.loads(line) for line in run("sql", "--json", *data, statement).stdout.splitlines()]


def numbers_in(data, table):
    """How many rows, how many different numbers, and the largest."""
    row = sql(data, f"SELECT count(*) AS rows, count(DISTINCT payload->>'n') AS different, "
                    f"max((payload->>'n')::BIGINT) AS largest FROM {table}")[0]
    return row["rows"], row["different"], row["largest"]


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
    assert numbers_in(data, "orders") == (1000, 1000, 999)


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
            (["--name", "x"], 2, "--from")]:
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
    wait_until(lambda: is_running(data), "it has not started")
    # One process has the directory; others ask it, also to wait, and hear of the line without its end.
    assert "no line feed" in run("deliver", *data, "--from", path, "--drain", code=2).stderr
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
    write(path, range(20000))
    args = [PAWL, "deliver", *data, "--from", path, "--into", "events", "--drain"]
    for points in ["rocksdb.write.after=kill@3", "duckdb.commit.before=kill@2", "duckdb.commit.after=kill@2",
                   "rocksdb.write.before=kill@7", "duckdb.checkpoint.after=kill"]:
        killed = subprocess.run(args, env={**ENV, "PAWL_FAILPOINTS": points}, cwd=TOP, timeout=WAIT_S,
                                capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, (points, killed.returncode, killed.stderr)
    status = deliver(*args[2:])
    assert status["accepted"] == status["delivered"] == 20000, status
    assert status["pending"] == 0, status
    assert numbers_in(data, "events") == (20000, 20000, 19999)


def delivers_a_ledger():
    directory, data = place()
    event = {"run_id": "village", "turn": 1, "kind": "say", "actor": "ada"}
    lines = [json.dumps({**event, "id": f"e-{n}", "payload": {"n": n}}) for n in range(50)]
    run("ledger", "append", *data, text="\n".join(lines[:30]) + "\n")
    args = [*data, "--from", f"ledger:{directory}/data/ledger.sqlite", "--into", "said", "--source", "village", "--drain"]
    assert deliver(*args)["delivered"] == 30
    run("ledger", "append", *data, text="\n".join(lines) + "\n")
    status = deliver(*args)
    assert (status["delivered"], status["sequence"]) == (50, 50), status
    assert numbers_in(data, "said") == (50, 50, 49)
    ids = sql(data, "SELECT transaction_id, subject FROM said ORDER BY (payload->>'n')::BIGINT LIMIT 1")
    assert ids == [{"transaction_id": "village:e-0:0", "subject": "say"}], ids


def delivers_a_stream():
    directory, data = place()
    server = nats.Server(directory)
    try:
        args = [*data, "--from", server.url, "--stream", "ORDERS", "--into", "orders", "--drain"]
        assert "stream" in run("deliver", *args, code=3).stderr
        make = ["--create-stream", "--subject", "orders.>"]
        assert deliver(*args, *make)["accepted"] == 0
        server.publish("orders.a", [(f"o-{n}", b'{"n": %d}' % n) for n in range(2000)])
        server.publish("orders.b", [(None, b'{"n": 2000}'), (None, b"poison"), ("o-7", b'{"n": 7}')])
        status = deliver(*args, *make)
        assert (status["delivered"], status["failed"], status["pending"]) == (2001, 1, 0), status
        assert numbers_in(data, "orders") == (2001, 2001, 2000)
        # The server forgets that it had these: the ids are known here.
        assert sql(data, "SELECT count(*) AS n FROM failed_events WHERE failure_reason = 'not_json'") == [{"n": 1}]
        one = sql(data, "SELECT transaction_id FROM orders WHERE payload->>'n' = '7'")
        assert one == [{"transaction_id": "ORDERS:o-7:0"}], one
    finally:
        server.stop()


def delivers_a_stream_while_both_sides_are_killed():
    directory, data = place()
    server = nats.Server(directory)
    try:
        args = [*data, "--from", server.url, "--stream", "S", "--into", "events", "--create-stream", "--subject", "s"]
        deliver(*args, "--drain")
        for round_number, points in enumerate(["rocksdb.write.after=kill@4", "duckdb.commit.before=kill@2",
                                               "duckdb.commit.after=kill@2", "rocksdb.write.before=kill@5"]):
            first = round_number * 2500
            server.publish("s", [(f"e-{n}", b'{"n": %d}' % n) for n in range(first, first + 2500)])
            killed = subprocess.run([PAWL, "deliver", *args, "--drain"], env={**ENV, "PAWL_FAILPOINTS": points}, cwd=TOP,
                                    timeout=WAIT_S, capture_output=True, check=False)
            assert killed.returncode == -signal.SIGKILL, (points, killed.returncode, killed.stderr)
            server.kill(signal.SIGTERM if round_number % 2 else signal.SIGKILL)
            server.start()
        child = subprocess.Popen([PAWL, "deliver", "--json", *args], env=ENV, cwd=TOP, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: is_running(data), "it has not started")
        server.kill(signal.SIGTERM)  # away while it runs, and back
        server.start()
        server.publish("s", [(f"e-{n}", b'{"n": %d}' % n) for n in range(10000, 10100)])
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=WAIT_S)
        assert child.returncode == 0, (child.returncode, out, err)
        status = deliver(*args, "--drain")
        assert status["accepted"] == status["delivered"] + status["filtered"] + status["failed"], status
        rows, different, largest = numbers_in(data, "events")
        losses = sql(data, "SELECT count(*) AS n FROM delivery_losses")[0]["n"]
        assert rows == different and largest == 10099, (rows, different, largest)
        assert rows == 10100 or losses > 0, (rows, losses)  # a server killed with -9 may lose its own tail
    finally:
        server.stop()


def shows_and_changes_pipelines():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(5), more="no\n")
    assert run("pipeline", "list", *data, "--json").stdout == ""
    added = json.loads(run("pipeline", "add", *data, "--json", "--from", f"{directory}/a.jsonl", "--into", "t", "p").stdout)
    assert (added["state"], added["accepted"], added["into"]) == ("stopped", 0, "t"), added
    run("pipeline", "pause", *data, "p")
    assert "is paused" in run("deliver", *data, "--from", f"{directory}/a.jsonl", "--into", "t", "--name", "p",
                              "--drain", code=4).stderr
    run("pipeline", "resume", *data, "p")
    deliver(*data, "--from", f"{directory}/a.jsonl", "--into", "t", "--name", "p", "--drain")
    listed = [json.loads(line) for line in run("pipeline", "list", *data, "--json").stdout.splitlines()]
    assert [(p["name"], p["state"], p["accepted"], p["delivered"], p["failed"], p["pending"])
            for p in listed] == [("p", "stopped", 6, 5, 1, 0)], listed
    assert "failed     1" in run("pipeline", "show", *data, "p").stdout
    status = json.loads(run("wal", "status", *data, "--json", "p").stdout)
    assert (status["pending"], status["failed"], status["last_lsn"]) == (0, 1, 6), status
    assert run("wal", "pending", *data, "p").stdout == ""
    entry = json.loads(run("wal", "show", *data, "p", "6").stdout)
    assert (entry["state"], entry["failure_reason"], entry["event_payload"]) == ("failed", "not_json", "no"), entry
    run("wal", "show", *data, "p", "7", code=3)
    run("pipeline", "remove", *data, "p")
    for gone in [["pipeline", "show"], ["pipeline", "remove"], ["pipeline", "pause"], ["wal", "status"]]:
        assert "no pipeline 'p'" in run(*gone, *data, "p", code=3).stderr, gone
    assert numbers_in(data, "t") == (5, 5, 4)


def keeps_what_is_pending():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(3000))
    args = [PAWL, "deliver", *data, "--from", f"{directory}/a.jsonl", "--drain"]
    run("pipeline", "add", *data, "--from", f"{directory}/a.jsonl", "events")
    shown = {"pending": 0}
    for commit in range(1, 20):  # the first commits are not those of rows
        if shown["pending"] == 0:
            killed = subprocess.run(args, env={**ENV, "PAWL_FAILPOINTS": f"duckdb.commit.before=kill@{commit}"}, cwd=TOP,
                                    timeout=WAIT_S, capture_output=True, check=False)
            assert killed.returncode == -signal.SIGKILL, (killed.returncode, killed.stderr)
            shown = json.loads(run("pipeline", "show", *data, "--json", "events").stdout)
    assert shown["pending"] == 3000 and shown["accepted"] == shown["pending"] + shown["delivered"], shown
    pending = [json.loads(line) for line in run("wal", "pending", *data, "--limit", "2", "events").stdout.splitlines()]
    assert [entry["event_payload"] for entry in pending] == [{"n": 0}, {"n": 1}], pending
    assert "only in its write-ahead log" in run("pipeline", "remove", *data, "events", code=4).stderr
    status = deliver(*args[2:])
    assert status["recovery"]["total_pending"] == status["recovery"]["recovered"] == shown["pending"], status
    assert numbers_in(data, "events") == (3000, 3000, 2999)


def maps_filters_and_shows_it_first():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(20), more='{"n": "x"}\n')
    columns = [{"name": "n", "type": "BIGINT", "required": True},
               {"name": "half", "type": "DOUBLE", "expression": "(payload->>'n')::DOUBLE / 2"}]
    args = [*data, "--from", f"{directory}/a.jsonl", "--columns", json.dumps(columns),
            "--filter", "try_cast(payload->>'n' AS BIGINT) IS NULL OR try_cast(payload->>'n' AS BIGINT) >= 5"]
    rows = [json.loads(line) for line in run("deliver", *args, "--dry-run").stdout.splitlines()]
    assert [row["verdict"] for row in rows] == ["filtered"] * 5 + ["row"] * 5, rows
    assert rows[5]["row"] == {"n": 5, "half": 2.5}, rows[5]
    assert not os.path.exists(f"{directory}/data")
    status = deliver(*args, "--drain")
    assert (status["filtered"], status["delivered"], status["failed"]) == (5, 15, 1), status
    assert sql(data, "SELECT min(n) AS n, max(half) AS h FROM events") == [{"n": 5, "h": 9.5}]


def asks_only_and_within_limits():
    directory, data = place()
    assert "nothing was delivered yet" in run("sql", *data, "SELECT 1", code=3).stderr
    write(f"{directory}/a.jsonl", range(3))
    deliver(*data, "--from", f"{directory}/a.jsonl", "--drain")
    for statement, code, says in [("DELETE FROM events", 1, "read-only"), ("SELEKT", 2, "SELEKT"),
                                  ("SELECT * FROM nowhere", 2, "nowhere"),
                                  ("SELECT * FROM read_csv('/etc/passwd')", 1, "disabled"),
                                  ("COPY events TO 'x.csv'", 1, ""), ("ATTACH 'y.duckdb'", 1, "")]:
        assert says in run("sql", *data, statement, code=code).stderr, statement
    slow = "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b"
    assert "deadline" in run("sql", *data, "--timeout", "100ms", slow, code=5).stderr
    assert "'--timeout'" in run("sql", *data, "--timeout", "soon", "SELECT 1", code=2).stderr
    kinds = sql(data, "SELECT 1.50::DECIMAL(4,2) AS d, [1, 2] AS l, NULL AS n, TRUE AS b, 'x' AS \"a \"\" b\", "
                      "1.5 AS dd, TIMESTAMP '2026-01-29 10:20:30' AS t;")
    assert kinds == [{"d": "1.50", "l": "[1, 2]", "n": None, "b": True, 'a " b': "x", "dd": "1.5",
                      "t": "2026-01-29T10:20:30.000000Z"}], kinds
    assert run("sql", *data, "-", text="SELECT count(*) FROM events").stdout.strip() == "3"


def runs_the_pipelines_of_the_settings():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(10))
    write(f"{directory}/b.jsonl", range(20))
    with open(f"{directory}/pawl.yaml", "w", encoding="utf-8") as file:
        file.write(f"""
pipelines:
  orders:
    from: file:{directory}/a.jsonl
    into: orders
    filter: (payload->>'n')::INT >= 4
    columns:
      - name: n
        type: BIGINT
        required: true
      - name: twice
        type: BIGINT
        expression: 2 * (payload->>'n')::BIGINT
  visits:
    from: file:{directory}/b.jsonl
    into: visits
consumer_wal:
  path: {directory}/logs
""")
    lines = run("deliver", *data, "--json", "--drain", cwd=directory).stdout.splitlines()
    found = {p["name"]: (p["delivered"], p["filtered"]) for p in map(json.loads, lines)}
    assert found == {"orders": (6, 4), "visits": (20, 0)}, found
    assert sorted(os.listdir(f"{directory}/logs")) == ["orders", "visits"]
    assert sql(data, "SELECT sum(twice)::BIGINT AS s FROM orders") == [{"s": 78}]
    # A running set of them ends with Ctrl-C.
    child = subprocess.Popen([PAWL, "deliver", *data, "--json"], env=ENV, cwd=directory, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: is_running(data), "it has not started")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0 and len(out.splitlines()) == 2, (child.returncode, out, err)
    _, empty = place()
    assert "no pipeline to run" in run("deliver", *empty, "--drain", code=3).stderr


def refuses_wrong_settings():
    directory, data = place()
    write(f"{directory}/a.jsonl", range(3))
    args = ["deliver", *data, "--from", "a.jsonl", "--drain"]
    for name, value in [("RETRY_INTERVAL", "soon"), ("MAX_RETRIES", "0"), ("RETRY_BACKOFF", "-1s"), ("ENTRY_TTL", "1ms"),
                        ("MEMTABLE_SIZE", "1"), ("VLOG_SIZE", "x"), ("NUM_COMPACTORS", "1"), ("COMPRESSION", "maybe"),
                        ("CLOSE_TIMEOUT", "0s"), ("LEASE_DURATION", "1ms"), ("SYNC_WRITES", "2")]:
        wrong = subprocess.run([PAWL, *args], env={**ENV, f"CONSUMER_WAL_{name}": value}, cwd=directory, text=True,
                               timeout=WAIT_S, capture_output=True, check=False)
        assert wrong.returncode == 2 and f"CONSUMER_WAL_{name}" in wrong.stderr, (name, wrong)
    seed = {"PATH": f"{directory}/wal", "SYNC_WRITES": "false", "RETRY_INTERVAL": "30s", "MAX_RETRIES": "100",
            "RETRY_BACKOFF": "5s", "ENTRY_TTL": "168h", "MEMTABLE_SIZE": "16777216", "VLOG_SIZE": "67108864",
            "NUM_COMPACTORS": "2", "COMPRESSION": "false", "CLOSE_TIMEOUT": "30s", "LEASE_DURATION": "2m"}
    told = subprocess.run([PAWL, *args, "--json"], env={**ENV, **{f"CONSUMER_WAL_{k}": v for k, v in seed.items()}},
                          cwd=directory, text=True, timeout=WAIT_S, capture_output=True, check=False)
    assert told.returncode == 0 and json.loads(told.stdout)["delivered"] == 3, told
    assert "a power cut may lose events" in told.stderr, told.stderr
    assert os.listdir(f"{directory}/wal") == ["events"]
    with open(f"{directory}/pawl.yaml", "w", encoding="utf-8") as file:
        file.write("pipelines:\n  orders:\n    frm: file:x\n")
    wrong = run("deliver", *data, "--drain", code=2, cwd=directory).stderr
    assert "pawl.yaml:3" in wrong and "frm" in wrong, wrong
    with open(f"{directory}/pawl.yaml", "w", encoding="utf-8") as file:
        file.write("pipelines:\n  orders:\n    from: http://x\n")
    wrong = run("deliver", *data, "--drain", code=2, cwd=directory).stderr
    assert "pawl.yaml:2: pipelines.orders: from: allowed are" in wrong, wrong


def audits_traces_replays_and_rebuilds():
    directory, data = place()
    write(f"{directory}/events.jsonl", range(1, 31), "broken\n")
    deliver(*data, "--from", f"{directory}/events.jsonl", "--id-field", "n", "--into", "orders", "--drain")
    assert run("audit", "deliver", *data).stdout.endswith("lost 0, duplicated 0\n")
    report = json.loads(run("audit", "deliver", *data, "--json", "orders").stdout)
    assert (report["rows"], report["failed"], report["source_events"], report["lost"]) == (30, 1, 31, 0), report
    run("audit", "deliver", *data, "nosuch", code=3)
    steps = [json.loads(line) for line in run("trace", *data, "--json", "orders:17:0").stdout.splitlines()]
    assert [step["place"] for step in steps] == ["source", "wal", "table"] and steps[0]["sequence"] == 17, steps
    run("trace", *data, "nosuch", code=3)
    replayed = json.loads(run("pipeline", "replay", *data, "--json", "--from", "3", "--to", "9", "orders").stdout)
    assert (replayed["from_source"], replayed["delivered"]) == (7, 0), replayed
    run("pipeline", "replay", *data, "--from", "9", "--to", "3", "orders", code=2)
    run("pipeline", "replay", *data, "--from", "9", "--since", "2026-01-01T00:00:00Z", "orders", code=2)
    with open(f"{directory}/data/analytics.duckdb", "wb") as file:
        file.write(b"no database" * 1000)
    wrong = run("deliver", *data, "--drain", code=6).stderr
    assert "pawl rebuild" in wrong, wrong
    loud = run("rebuild", *data)
    assert "quarantined-1" in loud.stdout and "did not open" in loud.stderr, loud
    assert sql(data, "SELECT count(*) AS n FROM orders") == [{"n": 30}]
    assert run("audit", "deliver", *data).stdout.endswith("lost 0, duplicated 0\n")
    os.rename(f"{directory}/events.jsonl", f"{directory}/aside.jsonl")
    assert "could not check" in run("audit", "deliver", *data, code=5).stderr
    run("rebuild", *data, "--replace", code=5)
    os.rename(f"{directory}/aside.jsonl", f"{directory}/events.jsonl")
    run("rebuild", *data)
    assert run("audit", "deliver", *data).stdout.endswith("lost 0, duplicated 0\n")


def refuses_a_stream_that_is_not_there():
    directory, data = place()
    server = nats.Server(directory)
    try:
        wrong = run("deliver", *data, "--from", server.url, "--stream", "NOSUCH", "--into", "a", "--drain", code=3).stderr
        assert "NOSUCH" in wrong, wrong
        wrong = run("deliver", *data, "--from", server.url, "--stream", "S", "--creds", "/nowhere/user.creds", "--into", "b",
                    "--drain", code=3).stderr
        assert "/nowhere/user.creds" in wrong, wrong
    finally:
        server.stop()


it("audits, traces, replays and rebuilds", audits_traces_replays_and_rebuilds)
it("refuses a stream that is not there, and credentials that are not", refuses_a_stream_that_is_not_there)
it("delivers a file once, however often it is run", delivers_a_file_once)
it("reads standard input to its end, and passes over what it delivered", reads_standard_input_to_its_end)
it("tells lines that are no events, and a last one without its end", tells_bad_lines)
it("refuses what cannot be, with its reason and exit code", refuses_what_cannot_be)
it("follows a file until it is told to end, and has the directory alone", follows_a_file_until_it_is_told_to_end)
it("loses nothing and doubles nothing when it is killed", loses_and_doubles_nothing_when_killed)
it("delivers a ledger, and continues", delivers_a_ledger)
it("delivers a stream, with the producer's ids", delivers_a_stream)
it("delivers a stream while both sides are killed", delivers_a_stream_while_both_sides_are_killed)
it("shows and changes pipelines and their logs", shows_and_changes_pipelines)
it("keeps what is pending, and recovers it", keeps_what_is_pending)
it("maps and filters, and shows it first", maps_filters_and_shows_it_first)
it("asks only, and within limits", asks_only_and_within_limits)
it("runs the pipelines of the settings", runs_the_pipelines_of_the_settings)
it("refuses wrong settings, and takes those of the original", refuses_wrong_settings)
done()
