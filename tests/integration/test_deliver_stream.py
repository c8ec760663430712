#!/usr/bin/env python3
"""Each event once: `pawl deliver` from a real nats-server whose stream, connection or nodes are not what they were."""
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
import nats  # noqa: E402
from command import PAWL, check_advice, environment, wait_until  # noqa: E402
from jetstream import Server  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-stream-")
ENV = environment(TOP)
WAIT_S = 240
WINDOW_NS = 100_000_000  # for which a server finds a message by its id


def run(*args, code=0, env=ENV):
    result = subprocess.run([PAWL, *args], env=env, cwd=TOP, timeout=WAIT_S, text=True, capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-800:])
    return check_advice(result)


class World:
    """A server with a stream, and a data directory beside it."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(dir=TOP)
        self.data = f"{self.directory}/data"
        self.server = Server(self.directory)
        self.make()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def make(self):
        answer = self.server.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s"], "storage": "file",
                                                     "duplicate_window": WINDOW_NS})
        assert "error" not in answer, answer

    def publish(self, numbers, with_id=True):
        self.server.publish("s", [(f"e-{n}" if with_id else None, b'{"n": %d}' % n) for n in numbers])

    def args(self, url=None):
        return ["deliver", "--json", "--data", self.data, "--from", url or self.server.url, "--stream", "S"]

    def drain(self, url=None):
        return json.loads(run(*self.args(url), "--drain").stdout)

    def sql(self, statement):
        return [json.loads(line) for line in run("sql", "--json", "--data", self.data, statement).stdout.splitlines()]

    def rows(self):
        return [row["n"] for row in self.sql("SELECT (payload->>'n')::BIGINT AS n FROM events ORDER BY n")]

    def losses(self):
        return [row["reason"] for row in self.sql("SELECT reason FROM delivery_losses ORDER BY seen_at")]


def survives_a_retry_after_the_duplicate_window():
    with World() as world:
        world.publish(range(500))
        assert world.drain()["delivered"] == 500
        time.sleep(2 * WINDOW_NS / 1e9)
        world.publish(range(400, 600))
        assert world.server.ask("STREAM.INFO.S")["state"]["messages"] == 700, "the server still knew the ids"
        status = world.drain()
        assert (status["accepted"], status["delivered"]) == (600, 600), status
        assert world.rows() == list(range(600))


def survives_a_stream_that_is_recreated():
    with World() as world:
        world.publish(range(300))
        world.drain()
        assert world.server.ask("STREAM.DELETE.S")["success"]
        world.make()
        world.publish(range(250, 450))
        status = world.drain()
        assert status["delivered"] == 450, status
        assert world.rows() == list(range(450))
        assert world.losses() == ["recreated"], world.losses()


def survives_a_stream_that_is_rolled_back():
    with World() as world:
        world.publish(range(100))
        world.drain()
        world.server.stop()
        world.server.save()
        world.server.start()
        world.publish(range(100, 200))
        world.drain()
        world.server.kill()
        world.server.put_back()
        world.server.start()
        world.publish(range(150, 260))  # at sequences that were handed out before
        status = world.drain()
        assert status["delivered"] == 260, status
        assert world.rows() == list(range(260))
        assert "rolled_back" in world.losses(), world.losses()


class Proxy:
    """Passes bytes on, and cuts each connection after so many from the server."""

    def __init__(self, port, bytes_each):
        self.port, self.bytes_each, self.cuts = port, itertools.chain(bytes_each, itertools.repeat(None)), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self._pass, args=[client, server, None], daemon=True).start()
            threading.Thread(target=self._pass, args=[server, client, next(self.bytes_each)], daemon=True).start()

    def _pass(self, source, target, left):
        try:
            while left is None or left > 0:
                data = source.recv(65536 if left is None else min(65536, left))
                if not data:
                    break
                target.sendall(data)
                left = None if left is None else left - len(data)
        except OSError:
            pass
        self.cuts += left == 0
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def survives_a_connection_cut_in_the_middle_of_a_batch():
    with World() as world:
        world.publish(range(3000))
        world.publish(range(3000, 3100), with_id=False)
        # The first bytes are the greeting and answers; then come messages, and the cut falls into one of them.
        proxy = Proxy(world.server.port, [6000, 20011, 50023, 90001, 150007])
        child = subprocess.Popen([PAWL, *world.args(proxy.url)], env=ENV, cwd=TOP, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        wait_until(lambda: proxy.cuts >= 5 or child.poll() is not None, "the connection is not made again")
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=WAIT_S)
        assert child.returncode == 0 and proxy.cuts >= 5, (child.returncode, proxy.cuts, out, err)
        status = world.drain()  # the first URL again: a pipeline's server may move
        proxy.close()
        assert status["accepted"] == status["delivered"] == 3100, status
        assert world.rows() == list(range(3100))


def survives_lost_and_older_stores():
    """The WAL, the DuckDB file, or both: lost, or put back from an older copy."""
    for wal, sink in itertools.product(["kept", "lost", "older"], repeat=2):
        if (wal, sink) == ("kept", "kept"):
            continue
        with World() as world:
            world.publish(range(50))
            world.publish(range(50, 60), with_id=False)
            world.drain()
            shutil.copytree(world.data, f"{world.directory}/older")
            world.publish(range(60, 120))
            world.publish(range(120, 130), with_id=False)
            world.drain()
            for what, fate in [("wal", wal), ("analytics.duckdb", sink)]:
                change(f"{world.data}/{what}", f"{world.directory}/older/{what}", fate)
            world.publish(range(130, 150))
            world.drain()
            assert world.rows() == list(range(150)), (wal, sink, len(world.rows()), world.losses())


def change(path, older, fate):
    if fate == "kept":
        return
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        for each in (path, f"{path}.wal"):
            if os.path.exists(each):
                os.remove(each)
    if fate == "older":
        (shutil.copytree if os.path.isdir(older) else shutil.copy)(older, path)


class Cluster:
    """Three servers, and a stream with three replicas."""

    def __init__(self, directory):
        self.directory = directory
        self.program = nats.program()
        self.ports = [nats.free_port() for _ in range(3)]
        self.routes = [nats.free_port() for _ in range(3)]
        self.children = [None] * 3
        for n in range(3):
            self.start(n)
        self.url = ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)

    def start(self, n):
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes)
        with open(f"{self.directory}/n{n}.conf", "w", encoding="utf-8") as file:
            file.write(f'server_name: n{n}\nhost: 127.0.0.1\nport: {self.ports[n]}\n'
                       f'jetstream {{ store_dir: "{self.directory}/n{n}" }}\n'
                       f'cluster {{ name: c, listen: "127.0.0.1:{self.routes[n]}", routes: [{routes}] }}\n')
        with open(f"{self.directory}/n{n}.log", "ab") as log:
            self.children[n] = subprocess.Popen([self.program, "-c", f"{self.directory}/n{n}.conf"], stdout=log, stderr=log)

    def kill(self, n, number=signal.SIGKILL):
        self.children[n].send_signal(number)
        self.children[n].wait(WAIT_S)

    def stop(self):
        for n in range(3):
            if self.children[n].poll() is None:
                self.kill(n)

    def try_(self, subject, question, headers=None):
        """The answer of any node that has one within a second or two."""
        payload = json.dumps(question).encode()
        head = headers or b""
        verb = b"HPUB %s answer %d %d\r\n" % (subject.encode(), len(head), len(head) + len(payload)) if head else \
            b"PUB %s answer %d\r\n" % (subject.encode(), len(payload))
        for port in self.ports:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=2) as link, link.makefile("rb") as answers:
                    link.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB answer 1\r\n' + verb + head + payload + b"\r\n")
                    while line := answers.readline().split():
                        if line[0] == b"PING":
                            link.sendall(b"PONG\r\n")
                        elif line[0] == b"MSG":
                            answer = json.loads(answers.read(int(line[-1])))
                            if "error" not in answer:
                                return answer
                            break
            except (OSError, ValueError):
                pass
        return None

    def insist(self, subject, question, headers=None):
        answers = []
        wait_until(lambda: answers.append(self.try_(subject, question, headers)) or answers[-1] is not None,
                   f"no node answers {subject}", WAIT_S)
        return answers[-1]

    def publish(self, numbers):
        for n in numbers:
            self.insist("s", {"n": n}, b"NATS/1.0\r\nNats-Msg-Id: e-%d\r\n\r\n" % n)


def delivers_from_a_cluster_that_loses_a_node():
    directory = tempfile.mkdtemp(dir=TOP)
    cluster = Cluster(directory)
    try:
        cluster.insist("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"], "storage": "file", "num_replicas": 3})
        cluster.publish(range(20))
        data = ["--data", f"{directory}/data"]
        child = subprocess.Popen([PAWL, "deliver", "--json", *data, "--from", cluster.url, "--stream", "S"], env=ENV,
                                 cwd=TOP, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: child.poll() is not None or cluster_is_read(cluster, 20), "the first events do not arrive")
        for n in range(3):  # one after the other: one of them had our connection, one led the stream
            cluster.kill(n)
            cluster.publish(range(20 + 20 * n, 40 + 20 * n))
            cluster.start(n)
        wait_until(lambda: child.poll() is not None or cluster_is_read(cluster, 80), "the events do not arrive")
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=WAIT_S)
        assert child.returncode == 0, (child.returncode, out, err)
        found = run("sql", "--json", *data, "SELECT count(*) AS n, count(DISTINCT payload->>'n') AS different, "
                                            "max((payload->>'n')::INT) AS largest FROM events").stdout
        assert json.loads(found) == {"n": 80, "different": 80, "largest": 79}, found
    finally:
        cluster.stop()


def cluster_is_read(cluster, count):
    info = cluster.try_("$JS.API.CONSUMER.INFO.S.pawl-events", {})
    return info is not None and info["num_pending"] == 0 and info["num_ack_pending"] == 0 \
        and info["ack_floor"]["stream_seq"] >= count


it("each event once when a producer retries after the duplicate window", survives_a_retry_after_the_duplicate_window)
it("each event once when the stream is recreated", survives_a_stream_that_is_recreated)
it("each event once when the stream is rolled back", survives_a_stream_that_is_rolled_back)
it("each event once when the connection is cut in the middle of a batch",
   survives_a_connection_cut_in_the_middle_of_a_batch)
it("each event once when WAL and DuckDB file are lost or older, in every combination", survives_lost_and_older_stores)
it("each event once from a cluster of three that loses any one node", delivers_from_a_cluster_that_loses_a_node)
done()
