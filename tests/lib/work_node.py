"""A work store and nodes on it, as processes. The program's argument says which store: `sqlite` or `postgres`; for the
latter it starts itself again with a server."""
import json
import os
import signal
import subprocess
import sys
import tempfile

import answers

PAWL = os.path.join(os.environ["PAWL_BUILD"], "pawl")
TOP = tempfile.mkdtemp(prefix="pawl-work-http-")
ENV = {"PATH": os.environ["PATH"], "HOME": TOP, "LANG": "C.UTF-8", "PAWL_STORE_FREE_SPACE_MIN": "0"}
for variable in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if variable in os.environ:
        ENV[variable] = os.environ[variable]
WAIT_S = 120

POSTGRES = "postgres" in sys.argv[1:]
if POSTGRES and "DATABASE_URL" not in os.environ:
    os.rmdir(TOP)
    again = subprocess.run([os.path.join(os.environ["PAWL_BUILD"], "tests", "with_postgres"), *sys.argv], check=False)
    if again.returncode == 77:
        print("1..0 # SKIP no PostgreSQL is installed")
    sys.exit(0 if again.returncode == 77 else again.returncode)


class Store:
    """A work store of its own, and what `pawl work` says of it."""

    def __init__(self):
        directory = tempfile.mkdtemp(dir=TOP)
        if POSTGRES:
            name = "d" + os.path.basename(directory).lower().replace("_", "x")
            subprocess.run(["psql", "-q", "-c", f'CREATE DATABASE "{name}"', os.environ["DATABASE_URL"]], check=True)
            base, _, rest = os.environ["DATABASE_URL"].partition("?")
            self.location = base.rpartition("/")[0] + "/" + name + ("?" + rest if rest else "")
        else:
            self.location = "sqlite:" + os.path.join(directory, "work.sqlite")

    def work(self, *args, code=0):
        result = subprocess.run([PAWL, "work", *args, "--work", self.location, "--json"], env=ENV, cwd=TOP, text=True,
                                timeout=WAIT_S, capture_output=True, check=False)
        assert result.returncode == code, result
        return [json.loads(line) for line in result.stdout.splitlines()]


class Node:
    """A running `pawl serve`; its applications are its own, the work store may be others', too."""

    def __init__(self, store, *args, env=None):
        env = {**ENV, **(env or {}), "DATABASE_URL": store.location, "PAWL_DATA": tempfile.mkdtemp(dir=TOP)}
        self.process = subprocess.Popen([PAWL, "serve", "--listen", "127.0.0.1:0", "--json", *args], env=env, cwd=TOP,
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=WAIT_S)
        self.port = int(json.loads(line)["url"].rpartition(":")[2])

    def connect(self):
        return answers.Connection("127.0.0.1", self.port, timeout=WAIT_S)

    def ask(self, method, path, body=None, connection=None):
        """The code and the JSON of an answer."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection = connection or self.connect()
        connection.request(method, "/v1/work/" + path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def good(self, *args):
        code, body = self.ask(*args)
        assert code in (200, 201), (args, code, body)
        return body

    def claim(self, holder="ada", **more):
        return self.good("POST", "claims", {"holder": holder, **more})["items"]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, out, err


def mail(name, **more):
    return {"work_item_id": name, "task_id": "t", "work_type": "mail", **more}
