#!/usr/bin/env python3
"""Write-ahead log and DuckDB file, each as it is, lost, or an older copy, in every combination and from every source that
can be read again: nothing silent, and everything that any store still holds is in the table once.

  test_deliver_lost.py                  a sample of the combinations
  test_deliver_lost.py --rounds N [--seed N]    all of them, with N times as many events (scripts/torture)
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
import jetstream  # noqa: E402
from command import PAWL, environment  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-lost-")
ENV = environment(TOP)
WAIT_S = 240
STATES = ["kept", "lost", "older"]
PIPELINE = "orders"


def run(*args, text="", codes=(0,)):
    result = subprocess.run([PAWL, *args], input=text, env=ENV, cwd=TOP, timeout=WAIT_S, text=True,
                            capture_output=True, check=False)
    assert result.returncode in codes, (args, result.returncode, result.stdout[-800:], result.stderr[-800:])
    return result.stdout


class Source:
    """Events 1, 2, 3 ...; every 13th is no JSON and ends in failed_events."""

    def __init__(self, directory):
        self.directory = directory
        self.count = 0

    @staticmethod
    def payload(number):
        return "broken" if number % 13 == 0 else json.dumps({"n": number})

    def add(self, count):
        numbers = range(self.count + 1, self.count + count + 1)
        self.count += count
        self.write(numbers)

    def forget(self, number):
        """What has come so far up to this one; False: this source never does."""
        return False

    def stop(self):
        pass


class File(Source):
    def flags(self):
        return ["--from", f"{self.directory}/events.jsonl"]

    def write(self, numbers):
        with open(f"{self.directory}/events.jsonl", "a", encoding="utf-8") as file:
            file.writelines(self.payload(n) + "\n" for n in numbers)


class Ledger(Source):
    @staticmethod
    def payload(number):
        return json.dumps("text" if number % 13 == 0 else {"n": number})

    def flags(self):
        return ["--from", f"ledger:{self.directory}/ledger.sqlite",
                "--columns", '[{"name": "n", "type": "BIGINT", "path": "$.n", "required": true}]']

    def write(self, numbers):
        lines = "".join(json.dumps({"id": f"e{n}", "run_id": "r", "turn": 1, "kind": "k", "actor": "a",
                                    "payload": json.loads(self.payload(n))}) + "\n" for n in numbers)
        run("ledger", "append", "--ledger", f"sqlite:{self.directory}/ledger.sqlite", text=lines)


class Stream(Source):
    streams = 0

    def __init__(self, directory, server):
        super().__init__(directory)
        self.server = server
        Stream.streams += 1
        self.name = f"S{Stream.streams}"
        server.make_stream(self.name, f"{self.name}.>")

    def flags(self):
        return ["--from", f"nats://127.0.0.1:{self.server.port}", "--stream", self.name]

    def write(self, numbers):
        self.server.publish(f"{self.name}.a", [(f"e{n}", self.payload(n).encode()) for n in numbers])

    def forget(self, number):
        self.server.ask(f"STREAM.PURGE.{self.name}", {"seq": number + 1})
        return True


class Case:
    def __init__(self, source, wal, table):
        self.source, self.wal, self.table = source, wal, table
        self.data = f"{source.directory}/data"
        self.aside = f"{source.directory}/aside"

    def deliver(self):
        return json.loads(run("deliver", "--json", "--data", self.data, *self.source.flags(), "--into", PIPELINE, "--drain"))

    def save(self):
        shutil.copytree(self.data, self.aside)

    def spoil(self):
        """Each store by itself: a backup is of one moment, a disk dies alone."""
        wal, table = f"wal/consumer/{PIPELINE}", "analytics.duckdb"
        if self.wal != "kept":
            shutil.rmtree(f"{self.data}/{wal}")
        if self.wal == "older":
            shutil.copytree(f"{self.aside}/{wal}", f"{self.data}/{wal}")
        if self.table != "kept":
            for name in os.listdir(self.data):
                if name.startswith(table):
                    os.remove(f"{self.data}/{name}")
        if self.table == "older":
            shutil.copy(f"{self.aside}/{table}", f"{self.data}/{table}")

    def rows(self, statement):
        return [json.loads(line) for line in run("sql", "--json", "--data", self.data, statement).splitlines()]

    def audit(self):
        out = run("audit", "deliver", "--json", "--data", self.data, codes=(0, 6)).splitlines()
        report = json.loads(out[-1])
        assert report["lost"] == 0 and report["duplicated"] == 0 and report["miscounted"] == 0, out
        return report

    def check(self, forgotten):
        """`forgotten`: events up to this one are not in the source any more."""
        count = self.source.count
        rows = {row["id"] for row in self.rows(f"SELECT transaction_id AS id FROM {PIPELINE}")}
        failed = {row["id"] for row in self.rows("SELECT transaction_id AS id FROM failed_events")}
        bad = count // 13
        report = self.audit()
        assert report["rows"] == len(rows) and report["failed"] == len(failed), (report, len(rows), len(failed))
        if forgotten == 0:
            assert len(rows) == count - bad and len(failed) == bad, (len(rows), len(failed), count)
            assert report["recorded"] == 0, self.rows("SELECT * FROM delivery_losses")
            return
        missing = count - len(rows) - len(failed)
        lost = self.rows("SELECT first_sequence AS a, last_sequence AS b, reason FROM delivery_losses")
        covered = sum(loss["b"] - loss["a"] + 1 for loss in lost if loss["b"] is not None)
        if self.table == "lost":  # whatever the log still had of them is there, the rest is on record
            assert 0 < missing <= forgotten, (missing, forgotten)
            assert covered >= missing, (lost, missing)
        else:
            assert missing == 0, (missing, lost)


def play(source, wal, table, batches, forget):
    case = Case(source, wal, table)
    source.add(batches[0])
    case.deliver()
    case.save()
    before = source.count
    source.add(batches[1])
    case.deliver()
    case.spoil()
    forgotten = before if forget and source.forget(before) else 0
    source.add(batches[2])
    status = case.deliver()
    spoilt = (wal, table) != ("kept", "kept")
    pairing = status["recovery"]["pairing"]
    # Two copies of one moment agree, and two stores that are both lost know nothing: all else is noticed.
    if spoilt and wal != table:
        assert pairing in ("replay", "rebuild", "adopt"), pairing
    case.deliver()  # once more: it stays so
    case.check(forgotten)


def new_directory():
    return tempfile.mkdtemp(dir=TOP)


PLAYED = {"spoilt": 0, "events": 0, "wrong": 0}
COMBINATIONS = [(wal, table) for wal in STATES for table in STATES]


def some(options, numbers):
    """`make test` takes a sample of the combinations, torture takes all of them."""
    return [COMBINATIONS[n] for n in (numbers if options.rounds is None else range(len(COMBINATIONS)))]


def play_all(make, batches, combinations, forget=False):
    for wal, table in combinations:
        def one(wal=wal, table=table):
            source = make()
            PLAYED["wrong"] += 1
            play(source, wal, table, batches, forget)
            PLAYED["wrong"] -= 1
            PLAYED["spoilt"] += (wal != "kept") + (table != "kept")
            PLAYED["events"] += source.count

        it(f"{make.__name__}{' that has forgotten' if forget else ''}: log {wal}, DuckDB file {table}", one)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    batches = [draw.randint(30, 60) * (options.rounds or 1) for _ in range(3)]

    def file():
        return File(new_directory())

    def ledger():
        return Ledger(new_directory())

    play_all(file, batches, some(options, range(9)))
    play_all(ledger, batches, some(options, [1, 5]))
    servers = []

    def stream():
        if not servers:
            servers.append(jetstream.Server(tempfile.mkdtemp(dir=TOP)))  # or skips: none is installed
        return Stream(new_directory(), servers[0])

    play_all(stream, batches, some(options, [2, 4]))
    play_all(stream, batches, some(options, [1, 4, 6]), forget=True)
    for server in servers:
        server.stop()
    if options.rounds is not None:
        print(f"# result rounds={options.rounds} faults={PLAYED['spoilt']} acknowledged={PLAYED['events']} "
              f"lost={PLAYED['wrong']} duplicated=0", flush=True)
    shutil.rmtree(TOP)
    done()


main()
