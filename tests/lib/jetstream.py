"""The server of nats.py, with the questions of JetStream's API that a test asks, and an older store to put back."""
import base64
import json
import shutil

import nats


class Server(nats.Server):
    def ask(self, subject, question=None):
        """The answer of JetStream's API."""
        payload = b"" if question is None else json.dumps(question).encode()
        with self.connect() as link, link.makefile("rb") as answers:
            link.sendall(b"SUB answer 1\r\nPUB $JS.API.%s answer %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
            while True:
                line = answers.readline().split()
                assert line, "the server closed the connection"
                if line[0] == b"PING":
                    link.sendall(b"PONG\r\n")
                elif line[0] == b"MSG":
                    return json.loads(answers.read(int(line[-1])))

    def make_stream(self, name, *subjects):
        answer = self.ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": list(subjects), "storage": "file"})
        assert "error" not in answer, answer

    def message(self, name, sequence):
        """(subject, headers as text, payload)"""
        message = self.ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})["message"]
        return (message["subject"], base64.b64decode(message.get("hdrs", "")).decode(),
                base64.b64decode(message.get("data", "")).decode())

    def messages(self, name):
        state = self.ask(f"STREAM.INFO.{name}")["state"]
        return [self.message(name, n) for n in range(state["first_seq"], state["last_seq"] + 1)]

    def save(self):
        """Of a server that was stopped: copies its store aside; put_back makes that copy its store."""
        shutil.copytree(f"{self.directory}/jetstream", f"{self.directory}/saved")

    def put_back(self):
        shutil.rmtree(f"{self.directory}/jetstream")
        shutil.copytree(f"{self.directory}/saved", f"{self.directory}/jetstream")
