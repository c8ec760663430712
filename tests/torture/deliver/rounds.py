"""Kinds of runs. Each returns what it counted, and says on standard output what is wrong."""
import calendar
import json
import os
import random
import signal
import subprocess
import threading
import time

import events
import lossfs
import rig
from command import PAWL
from tap import skip

KILL_EVENTS = 20000  # published between two kills


class Totals(dict):
    def __init__(self):
        super().__init__(rounds=0, faults=0, acknowledged=0, lost=0, duplicated=0, invented=0, broken=0, aborted=0, void=0)


def say(*words):
    print("#", *words, flush=True)


def judge(totals, consumer, count, questions=events.questions):
    """Compares source, table and failed_events with what was published: events 0..count-1."""
    status = consumer.drain()
    if status["pending"] != 0 or status["accepted"] != status["delivered"] + status["filtered"] + status["failed"]:
        say("the counters do not add up:", json.dumps(status))
        totals["broken"] += 1
    for what, question in questions(count).items():
        wrong = consumer.sql(f"SELECT count(*) AS n, list(id || ': ' || why)[:5]::TEXT AS some FROM ({question})")[0]
        totals[what] += wrong["n"]
        if wrong["n"]:
            say(what, wrong["n"], wrong["some"])
    return status


def audit(totals, consumer, broker):
    """`pawl audit deliver` has to find the same."""
    done = subprocess.run([PAWL, "audit", "deliver", "--data", consumer.data], env=consumer.env, capture_output=True,
                          text=True, timeout=rig.WAIT_S, check=False)
    if "no command 'audit'" in done.stderr:
        return
    say("audit:", done.stdout.strip().replace("\n", " | "))
    if done.returncode != 0:
        say("pawl audit deliver: exit code", done.returncode, done.stderr.strip())
        totals["broken"] += 1


# --- kill -9 of both sides ---

class Killer:
    """Draws when who is killed. The producer is one event range ahead of it at most."""

    def __init__(self, seed, broker, consumer):
        self.random = random.Random(seed)
        self.broker = broker
        self.consumer = consumer

    def strike(self, longest_s):
        rig.sleep(self.random.uniform(0.05, longest_s))
        victims = self.random.choices(["consumer", "broker", "both"], [5, 2, 3])[0]
        if victims != "broker":
            self.consumer.kill()
        if victims != "consumer":
            self.broker.kill(signal.SIGKILL)
            self.broker.start()
        if not self.consumer.is_running():
            self.consumer.start()


def kill(top, env, options):
    """Events flow through a server while it and `pawl deliver` are killed with -9."""
    totals = Totals()
    broker = rig.Broker(top, f"{top}/jetstream")
    consumer = rig.Consumer(f"{top}/data", env, broker, f"{top}/deliver.log")
    producer = rig.Producer(broker)
    killer = Killer(options.seed, broker, consumer)
    each = (options.events or KILL_EVENTS * options.rounds) // options.rounds
    failures = []

    def produce(first):
        try:
            producer.publish(first, first + each)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    try:
        broker.make()
        consumer.start()
        for number in range(options.rounds):
            worker = threading.Thread(target=produce, args=[number * each])
            worker.start()
            killer.strike(options.longest)
            worker.join()
            assert not failures, failures
            totals["faults"] += 1
            totals["rounds"] += 1
        consumer.kill()
        producer.settle()
        judge(totals, consumer, options.rounds * each)
        slowest = consumer.sql(events.SLOWEST_FAILURE)[0]
        losses = consumer.losses()
        say(f"failed_events {slowest['n']}, each within {slowest['seconds']:.1f} s of its arrival;",
            f"published again {producer.republished}; delivery_losses {len(losses)}")
        if slowest["seconds"] > 60:
            say("poison was not in failed_events within a minute")
            totals["broken"] += 1
        audit(totals, consumer, broker)
    finally:
        consumer.kill()
        broker.stop()
    totals["acknowledged"] = len(producer.acknowledged)
    totals["aborted"] = consumer.aborted
    return totals


# --- power ---

POWER_EVENTS = 400
# Not "random": it keeps a write and loses an earlier one of the same page, which no page cache does. DuckDB's log does not
# open after that (1 of 330 cuts); --random adds it.
CONSUMER_CUTS = ("drop", "keep", "prefix", "torn")
COMPARE_EVERY = 10


def wait_for_cut(disk, broker, draw, longest_s):
    """Until the power goes by itself, or long enough. Meanwhile the server forgets what was acknowledged."""
    end = time.monotonic() + draw.uniform(1, longest_s)
    while time.monotonic() < end and not disk.is_cut():
        broker.purge_acknowledged()
        rig.sleep(0.05)


def wait_for_acks(broker, before, longest_s):
    """Until more was acknowledged than before: without fsync, the disk has none of it."""
    end = time.monotonic() + longest_s
    while time.monotonic() < end and broker.acknowledged() <= before:
        rig.sleep(0.005)


def cut_consumer(disk, broker, consumer, draw, options):
    """One fault; true when it came while something was written."""
    before = broker.acknowledged()
    cuts = lossfs.CUTS if options.random else CONSUMER_CUTS
    if options.control:
        disk.tell("slow-fsync 1000000")  # those that are left are DuckDB's
    else:
        disk.arm(draw.randint(1, 400), draw.choice(cuts), draw.randrange(1 << 30))
    consumer.start()
    if options.control:
        wait_for_acks(broker, before, 60)
    else:
        wait_for_cut(disk, broker, draw, 6)
    was_cut = disk.is_cut() or options.control
    disk.cut("drop" if options.control else draw.choice(cuts), draw.randrange(1 << 30))
    broker.purge_acknowledged()
    consumer.kill(disk_is_gone=True)
    disk.strict = draw.random() < 0.5
    disk.replace()
    return was_cut


def power_consumer(top, env, options):
    """The disk under WAL and DuckDB loses its power; the server keeps nothing that was acknowledged."""
    totals = Totals()
    draw = random.Random(options.seed)
    if options.control:
        env = {**env, "CONSUMER_WAL_SYNC_WRITES": "false"}
    broker = rig.Broker(top, f"{top}/jetstream")
    disk = lossfs.Disk(top)
    consumer = rig.Consumer(f"{disk.path}/data", env, broker, f"{top}/deliver.log")
    producer = rig.Producer(broker)
    try:
        broker.make()
        consumer.drain()  # the tables and the consumer are made in peace
        for number in range(options.rounds):
            producer.publish(number * POWER_EVENTS, (number + 1) * POWER_EVENTS)
            totals["faults"] += cut_consumer(disk, broker, consumer, draw, options)
            totals["rounds"] += 1
            if options.control or (number + 1) % COMPARE_EVERY == 0 or number + 1 == options.rounds:
                judge(totals, consumer, (number + 1) * POWER_EVENTS)
            if options.control and totals["lost"]:
                break  # the rest cannot be compared
        losses = consumer.losses()
        if losses and not options.control:
            # A duplicate leaves no entry: when the server forgets it at once, nobody knows what was at its place.
            say(f"{len(losses)} places of duplicates are on record, and every event is there")
    finally:
        consumer.kill()
        broker.stop()
        disk.end()
    totals["acknowledged"] = len(producer.acknowledged)
    totals["aborted"] = consumer.aborted
    return totals


# --- the broker's power ---

BROKER_EVENTS = 100


def newer_server():
    """One whose sync_interval can be set."""
    path = os.path.join(os.environ["PAWL_SOURCE"], ".deps", "nats-server", "usr", "sbin", "nats-server")
    if not os.path.exists(path):
        skip("no newer nats-server: run scripts/bootstrap --all")
    return path


class BrokerRun:
    """A server on a disk that loses its power, `pawl deliver` beside it, and what each of them knows."""

    def __init__(self, top, env, options, sync):
        self.totals = Totals()
        self.draw = random.Random(options.seed)
        self.disk = lossfs.Disk(top)
        self.broker = rig.Broker(top, f"{self.disk.path}/jetstream", sync, newer_server())
        self.consumer = rig.Consumer(f"{top}/data", env, self.broker, f"{top}/deliver.log")
        self.broker.make()
        self.consumer.drain()
        self.disk.tell("sync")  # stream and consumer are there for good; their messages are not
        self.consumer.start()

    def await_delivery(self):
        """Until the consumer has acknowledged what the stream has now."""
        _, state = self.broker.state()
        end = time.monotonic() + rig.WAIT_S
        while self.broker.acknowledged() < state["last_seq"]:
            assert time.monotonic() < end, "the events are not delivered"
            rig.sleep(0.02)

    def lose_power(self, modes=("drop", "prefix", "keep")):
        self.totals["faults"] += 1
        self.totals["rounds"] += 1
        self.disk.cut(self.draw.choice(modes), self.draw.randrange(1 << 30))
        self.broker.kill(signal.SIGKILL)
        self.disk.replace()
        self.broker.start()
        if not self.consumer.is_running():
            self.consumer.start()

    def end(self):
        self.consumer.kill()
        self.broker.stop()
        self.disk.end()
        self.totals["aborted"] = self.consumer.aborted


def power_broker(top, env, options):
    """What the server lost before we had it is on record in delivery_losses. The control does not look there."""
    run = BrokerRun(top, env, options, options.sync)
    producer = rig.Producer(run.broker, republishes=False)
    try:
        for number in range(options.rounds):
            first, half = number * BROKER_EVENTS, number * BROKER_EVENTS + BROKER_EVENTS // 2
            producer.publish(first, half)
            run.await_delivery()  # a tail that nobody has seen leaves no trace when it is lost
            producer.publish(half, first + BROKER_EVENTS)
            run.lose_power(("drop",))
        run.consumer.kill()
        run.consumer.drain()
        losses = run.consumer.losses()
        missing = run.consumer.sql("SELECT id FROM (" + events.questions(options.rounds * BROKER_EVENTS)["lost"] + ")")
        silent = []
        for row in missing:
            n = int(row["id"].split("-")[1].split(":")[0])
            places = [place for (event, _), place in producer.acknowledged.items() if event == n]
            if options.control or not any(covers(losses, created, sequence) for created, sequence in places):
                silent.append(row["id"])
        say(f"the server lost {len(missing)} events before they were delivered; {len(losses)} rows of delivery_losses")
        if silent:
            say("lost, and not on record:", silent[:5])
        run.totals["lost"] = len(silent)
        found = events.questions(options.rounds * BROKER_EVENTS)["duplicated"]
        run.totals["duplicated"] = len(run.consumer.sql(found))
        run.totals["void"] = int(options.sync is None and not missing and not losses)
    finally:
        run.end()
    run.totals["acknowledged"] = len(producer.acknowledged)
    return run.totals


def power_broker_outbox(top, env, options):
    """`pawl publish` is the producer: what the server lost is published again, and everything is in the table."""
    run = BrokerRun(top, env, options, options.sync)
    args = [PAWL, "publish", rig.SUBJECT, "-", "--to", run.broker.url, "--source", rig.STREAM, "--data", f"{top}/outbox",
            "--json", "--wait", "5m"]
    republished = 0
    try:
        for number in range(options.rounds + 1):
            lines = [events.line(n) for n in range(number * BROKER_EVENTS, (number + 1) * BROKER_EVENTS)]
            done = subprocess.run(args, input="".join(lines), env=env, text=True, capture_output=True, check=False,
                                  timeout=rig.WAIT_S)
            assert done.returncode == 0, done.stderr
            republished += json.loads(done.stdout)["republished"]
            rig.sleep(run.draw.uniform(0, 0.3))
            if number < options.rounds:
                run.lose_power()
        run.consumer.kill()
        judge(run.totals, run.consumer, (options.rounds + 1) * BROKER_EVENTS, events.plain_questions)
        say(f"published again {republished}")
        run.totals["void"] = int(republished == 0)
    finally:
        run.end()
    run.totals["acknowledged"] = (options.rounds + 1) * BROKER_EVENTS
    return run.totals


def covers(losses, created, sequence):
    """The stream's creation as the server tells it: RFC 3339 with up to nine digits."""
    whole, _, fraction = created.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    created_ns = seconds * 10**9 + int((fraction or "0").ljust(9, "0"))
    return any(loss["created"] == created_ns and loss["first"] <= sequence
               and (loss["last"] is None or sequence <= loss["last"]) for loss in losses)


# --- standard input ---

def stdin(top, env, options):
    """cat events.jsonl | pawl deliver --from - --source nightly --into events, killed anywhere and run again."""
    totals = Totals()
    draw = random.Random(options.seed)
    count = options.events or 20000
    path = f"{top}/events.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(events.line(n) for n in range(count))
    command = f"cat {path} | exec {PAWL} deliver --json --data {top}/data --from - --source nightly --into events " \
        f"--columns '{events.columns()}'"
    for _ in range(options.rounds):
        child = subprocess.Popen(["bash", "-c", command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
        rig.sleep(draw.uniform(0.01, options.longest / 4))
        totals["faults"] += child.poll() is None
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        code = child.wait(rig.WAIT_S)
        totals["aborted"] += code in (-signal.SIGABRT, -signal.SIGSEGV)
        totals["rounds"] += 1
    consumer = rig.Consumer(f"{top}/data", env, None, f"{top}/deliver.log")
    consumer.drain = lambda: json.loads(subprocess.run(["bash", "-c", command], env=env, check=True, text=True,
                                                       capture_output=True, timeout=rig.WAIT_S).stdout)
    for _ in range(2):  # once more: nothing comes twice
        status = judge(totals, consumer, count, events.plain_questions)
    totals["acknowledged"] = status["accepted"]
    return totals
