"""A PostgreSQL server that is there and answers nothing (SIGSTOP): every command ends by itself, soon, and says why."""
import os
import signal
import subprocess
import time

from command import new_database
from stores import APPS, Pawl, Places, command, event, fill, lines

ANSWER_S = 1  # store.answer_timeout
BOUND_S = 20  # of a command: connecting, a retry, closing

APP = APPS[0]["name"]

# With what they read from standard input. Each needs the server.
COMMANDS = [
    (["ledger", "append"], lines(event(200))),
    (["ledger", "tail"], ""), (["ledger", "show", "1"], ""), (["ledger", "stats"], ""), (["ledger", "turns"], ""),
    (["ledger", "verify"], ""), (["ledger", "replay"], ""), (["ledger", "turn", "begin", "--run", "r", "--turn", "1"], ""),
    (["work", "submit", "--type", "read"], ""), (["work", "submit", "--type", "read", "--lines"], "a\nb\n"),
    (["work", "claim", "--holder", "eve"], ""), (["work", "claim", "--holder", "eve", "--wait", "3s"], ""),
    (["work", "heartbeat", "held", "--token", "1"], ""), (["work", "complete", "held", "--token", "1"], ""),
    (["work", "fail", "held", "--token", "1", "--error", "x"], ""), (["work", "release", "held", "--token", "1"], ""),
    (["work", "list"], ""), (["work", "show", "held"], ""), (["work", "cancel", "next"], ""), (["work", "sweep"], ""),
    (["work", "stats"], ""), (["work", "retention"], ""), (["work", "task", "list"], ""), (["work", "recover", "books"], ""),
    (["work", "checkpoint", "list", "books"], ""), (["work", "checkpoint", "latest", "books"], ""),
    (["work", "schedule", "list"], ""), (["work", "schedule", "fire"], ""),
    (["idem", "begin", "pay-9", "--request", "1"], ""), (["idem", "get", "pay-1"], ""),
    (["app", "exec", APP], lines(command(APPS[0], 7, 100))), (["app", "records", APP, "--workspace", "7"], ""),
    (["app", "wlog", APP, "--workspace", "7"], ""), (["app", "plog", APP], ""),
    (["app", "seq", APP, "--workspace", "7"], ""), (["seq", "status", APP], ""), (["seq", "verify", APP, "--all"], ""),
]


# Started before, with one line answered; the next line meets the stopped server.
CONVERSATIONS = [
    (["ledger", "append"], [lines(event(201)), lines(event(202))]),
    (["app", "exec", APP], [lines({k: v for k, v in command(APPS[0], 7, n).items() if k != "key"}) for n in (101, 102)]),
]


class Server:
    """The processes of the server behind DATABASE_URL."""

    def __init__(self):
        path = subprocess.run(["psql", "-qAtX", "-c", "SHOW data_directory", os.environ["DATABASE_URL"]],
                              check=True, text=True, capture_output=True).stdout.strip()
        with open(os.path.join(path, "postmaster.pid"), encoding="utf-8") as file:
            self.pid = int(file.readline())

    def _processes(self):
        found = [self.pid]
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == self.pid:
                found.append(int(entry))
        return found

    def send(self, number):
        for pid in self._processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


class Stall:
    def __init__(self, program, env, top):
        env = {**env, "PAWL_STORE_ANSWER_TIMEOUT": f"{ANSWER_S}s"}
        self.pawl = Pawl(program, Places(url=new_database(os.path.join(top, "stalled"))), env)
        fill(self.pawl)
        self.server = Server()
        self.kinds = [(f"stopped before '{' '.join(args)}'", (self._stopped_before, args, text)) for args, text in COMMANDS]
        self.kinds += [(f"stopped while '{' '.join(args)}' runs", (self._stopped_while, args, texts))
                       for args, texts in CONVERSATIONS]

    def round(self, name, what):
        play, args, text = what
        try:
            code, said, seconds = play(args, text)
        except subprocess.TimeoutExpired:
            return ["it hangs"]
        finally:
            self.server.send(signal.SIGCONT)
        wrong = [] if seconds < BOUND_S else [f"took {seconds:.1f} s"]
        wrong += [] if code == 5 else [f"exit code {code}"]
        wrong += [] if said.startswith("pawl: ") else ["no error message"]
        return [*wrong, said[-300:]] if wrong else []

    def _stopped_before(self, args, text):
        self.server.send(signal.SIGSTOP)
        start = time.monotonic()
        result = self.pawl.try_(*args, text=text)
        return result.returncode, result.stderr, time.monotonic() - start

    def _stopped_while(self, args, texts):
        with subprocess.Popen([self.pawl.program, *args, *self.pawl.places.of(args[0])], env=self.pawl.env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdin.write(texts[0])
            process.stdin.flush()
            assert process.stdout.readline(), process.communicate(timeout=BOUND_S)
            self.server.send(signal.SIGSTOP)
            start = time.monotonic()
            try:
                _, said = process.communicate(texts[1], timeout=3 * BOUND_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, said, time.monotonic() - start
