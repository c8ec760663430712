"""The broker, the producer and the consumer of a run. Whatever is killed here, the producer's memory stays."""
import json
import os
import select
import signal
import subprocess
import time

import events
import jetstream
from command import PAWL

STREAM = "S"
SUBJECT = "s"
WAIT_S = 600
WINDOW = 500  # messages on their way


class Broker(jetstream.Server):
    """A server with its store in a directory of its own. `sync` is its sync_interval; None: as it comes."""

    def __init__(self, directory, store, sync=None, newer=False):
        self.store = store
        self.sync = sync
        if newer:
            os.environ["PAWL_NATS_SERVER"] = newer
        super().__init__(directory)

    def start(self):
        interval = f", sync_interval: {self.sync}" if self.sync else ""
        with open(f"{self.directory}/nats.conf", "w", encoding="utf-8") as file:
            file.write(f'host: 127.0.0.1\nport: {self.port}\njetstream {{ store_dir: "{self.store}"{interval} }}\n')
        with open(f"{self.directory}/nats.log", "ab") as log:
            self.child = subprocess.Popen([self.program, "-c", f"{self.directory}/nats.conf"], stdout=log, stderr=log)
        end = time.monotonic() + WAIT_S
        while True:
            try:
                self.connect().close()
                return
            except OSError:
                assert time.monotonic() < end and self.child.poll() is None, "nats-server does not start"
                time.sleep(0.02)

    def state(self):
        """(created, state) of the stream; None: JetStream does not answer, or there is no stream."""
        try:
            info = self.ask(f"STREAM.INFO.{STREAM}")
        except (OSError, AssertionError, ValueError):
            return None
        return None if "error" in info else (info["created"], info["state"])

    def make(self):
        """The stream; the server finds a message by its id for a tenth of a second only."""
        end = time.monotonic() + WAIT_S
        while True:
            answer = self.ask(f"STREAM.CREATE.{STREAM}", {
                "name": STREAM, "subjects": [SUBJECT], "storage": "file", "retention": "limits", "discard": "old",
                "duplicate_window": 100_000_000})
            if "error" not in answer or answer["error"].get("err_code") == 10058:
                return
            assert time.monotonic() < end, answer
            time.sleep(0.05)

    def acknowledged(self, consumer="pawl-events"):
        """The sequence up to which the consumer has acknowledged all; 0: nobody knows."""
        try:
            return self.ask(f"CONSUMER.INFO.{STREAM}.{consumer}")["ack_floor"]["stream_seq"]
        except (OSError, AssertionError, ValueError, KeyError):
            return 0

    def purge_acknowledged(self):
        """The server keeps nothing that was acknowledged: what we say we have, we must have."""
        floor = self.acknowledged()
        if floor > 0:
            self.ask(f"STREAM.PURGE.{STREAM}", {"seq": floor + 1})


class Producer:
    """Publishes events and remembers which message the server acknowledged at which place."""

    def __init__(self, broker, republishes=True):
        self.broker = broker
        self.republishes = republishes  # what the server has lost, as an outbox would
        self.acknowledged = {}  # (n, which of its messages): (created, sequence)
        self.link = None
        self.created = None  # of the stream
        self.lost_by_broker = set()
        self.republished = 0
        self.seen = b""

    def _open(self):
        end = time.monotonic() + WAIT_S
        while True:
            try:
                self.link = self.broker.connect()
                self.link.settimeout(5)
                self.link.sendall(b"SUB answer.> 1\r\n")
                self.seen = b""
                found = self.broker.state()
                if found is not None:
                    return found
            except OSError:
                pass
            self._close()
            assert time.monotonic() < end, "the server is away"
            time.sleep(0.05)

    def _close(self):
        if self.link is not None:
            self.link.close()
        self.link = None

    def _lost_tail(self, created, state):
        """What the server acknowledged and no longer has."""
        return [key for key, (at, sequence) in self.acknowledged.items()
                if at == created and sequence > state["last_seq"] and key not in self.lost_by_broker]

    def look(self):
        """Connects and compares with the stream. Returns the messages that have to be published again."""
        self.created, state = self._open()
        lost = sorted(self._lost_tail(self.created, state))
        if not self.republishes:
            self.lost_by_broker.update(lost)
            return []
        for key in lost:
            del self.acknowledged[key]
        self.republished += len(lost)
        return lost

    def _send(self, keys):
        out = []
        for n, which in keys:
            has_id, payload = events.messages(n)[which]
            header = events.headers(n, has_id)
            out.append(b"HPUB %s answer.%d.%d %d %d\r\n%s%s\r\n" % (
                SUBJECT.encode(), n, which, len(header), len(header) + len(payload), header, payload))
        self.link.sendall(b"".join(out))

    def _take_answer(self):
        """((n, which), answer); blocks for a while."""
        while True:
            head, found, rest = self.seen.partition(b"\r\n")
            if found and head.startswith(b"MSG "):
                words = head.split()
                size = int(words[-1])
                if len(rest) >= size + 2:
                    self.seen = rest[size + 2:]
                    _, n, which = words[1].split(b".")
                    return (int(n), int(which)), json.loads(rest[:size])
            elif found:
                self.seen = rest
                if head == b"PING":
                    self.link.sendall(b"PONG\r\n")
                continue
            more = self.link.recv(1 << 18)
            if not more:
                raise OSError("the server closed the connection")
            self.seen += more

    def _publish_over_link(self, queue):
        waiting = set()
        at = 0
        while at < len(queue) or waiting:
            if at < len(queue) and len(waiting) < WINDOW // 2:
                batch = queue[at:at + WINDOW - len(waiting)]
                self._send(batch)
                waiting.update(batch)
                at += len(batch)
            key, answer = self._take_answer()
            waiting.discard(key)
            if "error" in answer:
                raise OSError(answer["error"])
            self.acknowledged[key] = (self.created, answer["seq"])

    def publish(self, first, last):
        """Events first..last-1; returns once the server has acknowledged every message of them."""
        wanted = [(n, which) for n in range(first, last) for which in range(len(events.messages(n)))]
        end = time.monotonic() + WAIT_S
        while True:
            again = self.look() if self.link is None else []
            queue = again + [key for key in wanted if key not in self.acknowledged and key not in again]
            if not queue:
                return
            try:
                self._publish_over_link(queue)
            except (OSError, ValueError):
                self._close()
            assert time.monotonic() < end, "the server does not take events"

    def settle(self):
        """After a fault: what the server has lost is published again."""
        self._close()
        self.publish(0, 0)
        self._close()


class Consumer:
    """`pawl deliver` from the broker into data, as a process that can be killed."""

    def __init__(self, data, env, broker, log):
        self.data = data
        self.env = env
        self.log = log
        self.args = ["deliver", "--json", "--data", data, "--from", broker.url if broker else "-", "--stream", STREAM, "--into", "events",
                     "--columns", events.columns(), "--store-busy-timeout", "60s"]
        self.child = None
        self.aborted = 0

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([PAWL, *self.args], env=self.env, stdout=log, stderr=log)

    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def kill(self, disk_is_gone=False):
        """An abort counts, but not of a process whose disk answers nothing but EIO: there DuckDB terminates by itself."""
        if self.child is None:
            return
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        code = self.child.wait(WAIT_S)
        self.aborted += not disk_is_gone and code in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL)
        self.child = None

    def drain(self):
        """To the end; its status."""
        with open(self.log, "ab") as log:
            done = subprocess.run([PAWL, *self.args, "--drain"], env=self.env, stdout=subprocess.PIPE, stderr=log,
                                  timeout=WAIT_S, check=False)
        assert done.returncode == 0, f"deliver --drain: exit code {done.returncode}: {self._last_words()}"
        return json.loads(done.stdout)

    def _last_words(self):
        with open(self.log, "rb") as file:
            return file.read()[-1500:].decode(errors="replace")

    def sql(self, statement):
        done = subprocess.run([PAWL, "sql", "--json", "--data", self.data, "--timeout", "5m", statement], env=self.env,
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, (statement, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def losses(self):
        return self.sql("SELECT stream_created_ns AS created, first_sequence AS first, last_sequence AS last, reason "
                        "FROM delivery_losses")


def sleep(seconds):
    select.select([], [], [], seconds)
