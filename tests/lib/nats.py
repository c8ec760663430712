"""A real nats-server with JetStream for one test, and the little of its protocol that a publisher needs.

    server = Server(directory)       started; server.url
    server.publish("orders.a", [("id-1", b"{}"), ...])
    server.kill(); server.start()    kill -9, and again on the same store
    server.stop()
"""
import os
import shutil
import signal
import socket
import subprocess
import time

from tap import skip

START_S = 60


def program():
    given = os.environ.get("PAWL_NATS_SERVER")
    found = given or shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/bin:/usr/local/sbin")
    if not found:
        skip("no nats-server is installed")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, directory):
        self.directory = directory
        self.program = program()
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.child = None
        self.start()

    def start(self):
        with open(f"{self.directory}/nats.log", "ab") as log:
            self.child = subprocess.Popen([self.program, "-a", "127.0.0.1", "-p", str(self.port), "-js",
                                           "-sd", f"{self.directory}/jetstream"], stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while True:
            try:
                self.connect().close()
                return
            except OSError:
                assert time.monotonic() < end and self.child.poll() is None, "nats-server does not start"
                time.sleep(0.02)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=START_S)
        connection.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true}\r\nPING\r\n')
        self.await_pong(connection)
        return connection

    @staticmethod
    def await_pong(connection):
        seen = b""
        while b"PONG\r\n" not in seen:
            more = connection.recv(65536)
            if not more:
                raise OSError("the server closed the connection")
            seen = (seen + more)[-65536:]

    def publish(self, subject, messages):
        """(id or None, payload) each. Returns when the server has read them all."""
        with self.connect() as connection:
            for message_id, payload in messages:
                if message_id is None:
                    connection.sendall(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
                    continue
                header = b"NATS/1.0\r\nNats-Msg-Id: %s\r\n\r\n" % message_id.encode()
                connection.sendall(b"HPUB %s %d %d\r\n%s%s\r\n" % (
                    subject.encode(), len(header), len(header) + len(payload), header, payload))
            connection.sendall(b"PING\r\n")
            self.await_pong(connection)

    def kill(self, number=signal.SIGKILL):
        self.child.send_signal(number)
        self.child.wait(timeout=START_S)

    def stop(self):
        if self.child.poll() is None:
            self.kill(signal.SIGTERM)
