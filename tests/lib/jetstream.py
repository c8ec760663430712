"""A real nats-server with JetStream on a free port of loopback, and just enough of a client to ask it."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time


def program():
    return os.environ.get("PAWL_NATS_SERVER") or shutil.which("nats-server") or next(
        (path for path in ("/usr/sbin/nats-server", "/usr/local/bin/nats-server") if os.access(path, os.X_OK)), None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Its store outlives a kill; `save` and `put_back` copy it aside and restore it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-nats-")
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        config = os.path.join(self.dir, "nats.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.dir}/store" }}\n')
        with open(os.path.join(self.dir, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([program(), "-c", config], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
                    if link.recv(4) == b"INFO":
                        return
            except OSError:
                assert time.monotonic() < deadline, "nats-server does not answer"
                time.sleep(0.02)

    def end(self, kill=True):
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait(60)
            self.process = None

    def save(self):
        shutil.rmtree(f"{self.dir}/saved", ignore_errors=True)
        shutil.copytree(f"{self.dir}/store", f"{self.dir}/saved")

    def put_back(self):
        shutil.rmtree(f"{self.dir}/store")
        shutil.copytree(f"{self.dir}/saved", f"{self.dir}/store")

    def ask(self, subject, question=None):
        """The answer of JetStream's API."""
        payload = b"" if question is None else json.dumps(question).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as link:
            file = link.makefile("rb")
            file.readline()
            link.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB answer 1\r\nPUB $JS.API.'
                         + f"{subject} answer {len(payload)}\r\n".encode() + payload + b"\r\n")
            while True:
                line = file.readline().split()
                if line[0] == b"PING":
                    link.sendall(b"PONG\r\n")
                elif line[0] == b"MSG":
                    return json.loads(file.read(int(line[-1])))

    def make_stream(self, name, *subjects):
        answer = self.ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": list(subjects), "storage": "file"})
        assert "error" not in answer, answer

    def messages(self, name):
        """(subject, headers as text, payload) of all."""
        state = self.ask(f"STREAM.INFO.{name}")["state"]
        return [self.message(name, n) for n in range(state["first_seq"], state["last_seq"] + 1)]

    def message(self, name, sequence):
        message = self.ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})["message"]
        return (message["subject"], base64.b64decode(message.get("hdrs", "")).decode(),
                base64.b64decode(message.get("data", "")).decode())

    def remove(self):
        self.end()
        shutil.rmtree(self.dir, ignore_errors=True)
