#!/usr/bin/env python3
"""A store that does not answer: every command ends within its limit, says which store, and Ctrl-C does not
queue behind it. `postgres`: all processes of a server are stopped (SIGSTOP); `sqlite`: another process has
the file locked."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, SHOP, StalledPostgres, environment, new_database, wait_until, wants_postgres  # noqa: E402
from tap import done, it  # noqa: E402

POSTGRES = wants_postgres()
TOP = tempfile.mkdtemp(prefix="pawl-stalls-")
ENV = environment(TOP, PAWL_STORE_FREE_SPACE_MIN="0", PAWL_STORE_ANSWER_TIMEOUT="2s", PAWL_STORE_BUSY_TIMEOUT="1s")
SOON_S = 30  # no command here may take longer; the machine may be busy, and without a bound it is minutes
BUSY = 5


class Stalled:
    """While it lasts, no store answers."""

    def __init__(self, store):
        self.store = store

    def __enter__(self):
        if POSTGRES:
            self.server = StalledPostgres()
            self.server.__enter__()
        else:
            self.lock = sqlite3.connect(self.store.file, isolation_level=None)
            self.lock.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_):
        if POSTGRES:
            self.server.__exit__()
        else:
            self.lock.execute("ROLLBACK")
            self.lock.close()


class Store:
    """A store of its own, and commands on it."""

    def __init__(self):
        directory = tempfile.mkdtemp(dir=TOP)
        self.file = os.path.join(directory, "store.sqlite")
        self.location = new_database(directory) if POSTGRES else "sqlite:" + self.file

    def command(self, *args):
        """A command, started; `work` and `ledger` take the location by that name, `app` and `seq` as --apps."""
        return subprocess.Popen([PAWL, *args, "--apps" if args[0] in ("app", "seq") else "--" + args[0], self.location],
                                env=ENV, cwd=TOP, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, *args, code=0, text=None):
        process = self.command(*args)
        out, err = process.communicate(text, timeout=SOON_S)
        assert process.returncode == code, (args, process.returncode, out, err)
        return out, err

    def submit(self, *ids):
        for item in ids:
            self.run("work", "submit", "--type", "mail", "--id", item)

    def status(self, item):
        return json.loads(self.run("work", "show", item, "--json")[0].splitlines()[0])["status"]


def ends(process, *codes, soon=SOON_S):
    out, err = process.communicate(timeout=soon)
    assert process.returncode in codes, (process.returncode, out, err)
    return out, err


def names_the_store(store, err):
    if POSTGRES:
        assert "127.0.0.1" in err and "s3cret" not in err, err
    else:
        assert os.path.basename(store.file) in err, err


def test_single_commands():
    store = Store()
    store.submit("a", "b")
    store.run("work", "claim", "--holder", "ada")
    writes = [("work", "submit", "--type", "mail"), ("work", "claim", "--holder", "bob"),
              ("work", "complete", "a", "--token", "1"), ("work", "heartbeat", "a", "--token", "1"),
              ("work", "sweep"), ("idem", "begin", "k", "--hash", "sha256:" + "0" * 64)]
    reads = [("work", "list"), ("work", "stats")]
    with Stalled(store):
        started = [(args, store.command(args[0], *args[1:]) if args[0] != "idem" else idem(store, *args))
                   for args in writes + (reads if POSTGRES else [])]
        for args, process in started:
            _, err = ends(process, BUSY)
            names_the_store(store, err)


def idem(store, *args):
    return subprocess.Popen([PAWL, *args, "--work", store.location], env=ENV, cwd=TOP, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_ledger():
    store = Store()
    store.run("ledger", "append", text=lines(1, 1))
    follower = store.command("ledger", "tail", "--follow")
    assert "e1" in follower.stdout.readline()
    with Stalled(store):
        append = store.command("ledger", "append")
        append.stdin.write(lines(2, 2))
        append.stdin.close()
        append.stdin = None
        others = [store.command("ledger", *args) for args in (["tail"], ["verify"], ["stats"])] if POSTGRES else []
        for process in [append, *others]:
            _, err = ends(process, BUSY)
            names_the_store(store, err)
        if POSTGRES:
            assert "the ledger cannot be reached" in follower.stderr.readline()
        follower.send_signal(signal.SIGTERM)
        _, err = ends(follower, 0)
        assert "the ledger cannot be reached" not in err, "once each time"


def lines(first, last):
    return "".join(json.dumps({"id": f"e{i}", "run_id": "r", "turn": 1, "kind": "k", "actor": "a", "payload": {}}) + "\n"
                   for i in range(first, last + 1))


def hold_up_appends(store):
    """Whoever appends waits for a lock, until the answer is ended."""
    holder = subprocess.Popen(["psql", "-qAt", store.location], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    holder.stdin.write("BEGIN; SELECT 1 FROM pawl.ledger_head FOR UPDATE;\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "1\n"
    return holder


def catches_signals(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1 == 1


def waits_for_the_lock(store, process):
    if POSTGRES:
        sql = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        return subprocess.run(["psql", "-qAtc", sql, store.location], capture_output=True, text=True,
                              check=True).stdout != "0\n"
    files = [os.path.realpath(entry.path) for entry in os.scandir(f"/proc/{process.pid}/fd")]
    return store.file + "-wal" in files and catches_signals(process)


def test_ctrl_c_in_a_long_command():
    store = Store()
    store.run("ledger", "append", text=lines(1, 1))
    path = os.path.join(TOP, "events.jsonl")
    with open(path, "w", encoding="ascii") as file:
        file.write(lines(2, 100))
    holder = hold_up_appends(store) if POSTGRES else None
    patient = {**ENV, "PAWL_STORE_ANSWER_TIMEOUT": "10m", "PAWL_STORE_BUSY_TIMEOUT": "10m"}
    command = [PAWL, "ledger", "import", path, "--ledger", store.location]
    with Stalled(store) if not POSTGRES else contextlib.nullcontext():
        process = subprocess.Popen(command, env=patient, cwd=TOP, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: waits_for_the_lock(store, process), "the import waits")
        with Stalled(store) if POSTGRES else contextlib.nullcontext():
            process.send_signal(signal.SIGINT)
            ends(process, 1)
    if holder:
        holder.communicate("ROLLBACK;\n", timeout=SOON_S)


def test_claim_waits_no_longer_than_asked():
    store = Store()
    store.submit("a")
    store.run("work", "claim", "--holder", "ada")
    process = store.command("work", "claim", "--holder", "bob", "--wait", "5s")
    waiting = store.command("work", "claim", "--holder", "bob", "--wait", "1h")
    wait_until(lambda: catches_signals(process) and catches_signals(waiting), "both wait")
    with Stalled(store):
        start = time.monotonic()
        ends(process, BUSY)
        assert time.monotonic() - start < 20, "what was asked, and some seconds"
        start = time.monotonic()
        started = store.command("work", "claim", "--holder", "bob", "--wait", "4s")
        _, err = ends(started, BUSY)
        assert time.monotonic() - start >= 3.5, "not before what was asked"
        names_the_store(store, err)
        waiting.send_signal(signal.SIGINT)
        ends(waiting, 1)


def running(store, *args):
    """A run that has an item: its command says so in a file, and goes on until it is ended."""
    mark = os.path.join(tempfile.mkdtemp(dir=TOP), "runs")
    process = store.command("work", "run", "--type", "mail", "--exec", f"touch {mark}; sleep 600", *args)
    wait_until(lambda: os.path.exists(mark), "the command runs")
    return process


FUTEX = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine)  # where a thread sleeps that has nothing to do


def waits_for_the_store(process):
    """The thread that writes is in the store: it sleeps, and not since it has nothing to write."""
    for task in os.scandir(f"/proc/{process.pid}/task"):
        with open(os.path.join(task.path, "comm"), encoding="utf-8") as comm:
            if comm.read().strip() != "work":
                continue
        with open(os.path.join(task.path, "syscall"), encoding="ascii") as call:
            word = call.read().split()[0]
        return word.isdigit() and int(word) != FUTEX
    return False


def test_run_ends_on_a_signal():
    store = Store()
    store.submit("a", "b")
    process = running(store, "--heartbeat", "200ms", "--lease", "1m")
    with Stalled(store):
        wait_until(lambda: waits_for_the_store(process), "a heartbeat is on its way")
        process.send_signal(signal.SIGTERM if POSTGRES else signal.SIGINT)
        _, err = ends(process, BUSY)
        assert "lease runs out" in err, err
    assert store.status("a") == "in_progress", "its lease runs out by itself"


def test_idle_run_ends_on_a_signal():
    store = Store()
    store.submit("a")
    store.run("work", "claim", "--holder", "ada")
    process = store.command("work", "run", "--type", "mail", "--exec", "true", "--wait")
    wait_until(lambda: catches_signals(process), "it runs")
    with Stalled(store):
        process.send_signal(signal.SIGTERM)
        ends(process, 0)


def test_run_outlasts_a_stall():
    store = Store()
    store.submit("a")
    before = store.command("work", "run", "--type", "mail", "--exec", "true", "--wait")
    wait_until(lambda: store.status("a") == "completed", "the first item runs")
    with Stalled(store):
        meanwhile = store.command("work", "run", "--type", "post", "--exec", "true", "--wait")
        for process in (before, before, meanwhile, meanwhile):
            line = process.stderr.readline()
            assert "the store cannot be asked now" in line, line
    store.submit("b")
    wait_until(lambda: store.status("b") == "completed", "the item that came after it")
    for process in (before, meanwhile):
        process.send_signal(signal.SIGTERM)
        ends(process, 0)


def test_applications():
    store = Store()
    create_shop(store)
    with Stalled(store):
        started = [store.command(*args) for args in (("app", "plog", "orders"), ("seq", "status", "orders"),
                                                     ("seq", "verify", "orders", "--workspace", "1"))]
        for process in started:
            _, err = ends(process, BUSY)
            names_the_store(store, err)


def order(number):
    return json.dumps({"workspace": 7, "kind": "shop", "key": f"k{number}",
                       "creates": [{"class": "c", "raw_id": 1, "table": "order", "data": {}}]}) + "\n"


def create_shop(store):
    shop = os.path.join(TOP, "shop.json")
    with open(shop, "w", encoding="ascii") as file:
        json.dump(SHOP, file)
    store.run("app", "create", "--descriptor", "@" + shop)


def answer_of(process, number):
    process.stdin.write(order(number))
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_application_under_way():
    store = Store()
    create_shop(store)
    process = store.command("app", "exec", "orders")
    answer_of(process, 1)
    with Stalled(store):
        process.stdin.write(order(2))
        process.stdin.flush()
        _, err = ends(process, BUSY)
        names_the_store(store, err)


def test_stopped_owner():
    store = Store()
    create_shop(store)
    first = store.command("app", "exec", "orders")
    assert answer_of(first, 1)["plog_offset"]
    first.send_signal(signal.SIGSTOP)
    try:
        store.run("app", "exec", "orders", code=BUSY, text=order(2))
        subprocess.run(["psql", "-q", "-c", "UPDATE pawl.apps SET lease_until = clock_timestamp() - interval '1 s'",
                        store.location], check=True)
        out, _ = store.run("app", "exec", "orders", text=order(2))
        second = json.loads(out)
    finally:
        first.send_signal(signal.SIGCONT)
    first.stdin.write(order(3))
    first.stdin.flush()
    _, err = ends(first, 4)
    assert "another process has taken the application over" in err, err
    third = json.loads(store.run("app", "exec", "orders", text=order(3))[0])
    assert third["ids"]["1"] == second["ids"]["1"] + 1, (second, third)


it("ends each command on work with a named error", test_single_commands)
it("ends each command on the ledger with a named error", test_ledger)
it("ends a long command on Ctrl-C though the store hangs", test_ctrl_c_in_a_long_command)
it("lets a claim wait no longer than asked", test_claim_waits_no_longer_than_asked)
it("ends a run on a signal though its heartbeat hangs", test_run_ends_on_a_signal)
it("ends a run that waits for items on a signal", test_idle_run_ends_on_a_signal)
it("keeps a run that waits for items through a stall", test_run_outlasts_a_stall)
if POSTGRES:
    it("ends each command on applications with a named error", test_applications)
    it("ends commands for an application that are under way", test_application_under_way)
    it("gives the application of a stopped owner to another, and tells it", test_stopped_owner)
shutil.rmtree(TOP, ignore_errors=True)
done()
