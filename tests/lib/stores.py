"""Small stores of every kind, filled through the command line: what tests of upgrades and of damage begin with.

    fill(Pawl("build/pawl", ["--data", "data"], env))     a data directory
    fill(Pawl("build/pawl", ["--work", url], env), ...)   or a database; see Places
"""
import json
import subprocess

TIMEOUT_S = 120

APPS = [
    {"name": "orders", "id": 1, "partitions": 2, "trust": 0,
     "kinds": [{"name": "shop", "id": 1, "sequences": [{"name": "invoice", "id": 16, "initial": 1000}]}]},
    {"name": "receipts", "id": 2, "partitions": 1, "trust": 2,
     "kinds": [{"name": "till", "id": 1, "sequences": [{"name": "receipt", "id": 16, "initial": 1}]}]},
]


class Places:
    """Flags that say where each capability's store is: one data directory, or one database for all."""

    def __init__(self, data=None, url=None):
        self.ledger = ["--data", data] if data else ["--ledger", url]
        self.work = ["--data", data] if data else ["--work", url]
        self.apps = ["--data", data] if data else ["--apps", url]

    def of(self, command):
        return {"ledger": self.ledger, "work": self.work, "idem": self.work,
                "app": self.apps, "seq": self.apps}[command]


class Pawl:
    """The command, with its store's flags put in."""

    def __init__(self, program, places, env):
        self.program, self.places, self.env = program, places, env

    def try_(self, *args, text=""):
        """`pawl ledger turn begin --run x` has its flags behind the verbs: put the place at the end."""
        return subprocess.run([self.program, *args, *self.places.of(args[0])], input=text, env=self.env,
                              timeout=TIMEOUT_S, text=True, capture_output=True, check=False)

    def run(self, *args, text="", code=0):
        result = self.try_(*args, text=text)
        assert result.returncode == code, (args, result.returncode, result.stdout[-800:], result.stderr[-800:])
        return result.stdout

    def rows(self, *args, text=""):
        return [json.loads(line) for line in self.run(*args, "--json", text=text).splitlines()]


def lines(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


def event(number, **more):
    return {"id": f"e-{number}", "run_id": "village", "turn": 0, "kind": "said", "actor": "Ada",
            "payload": {"text": f"hello {number}"}, "created_at": f"2026-01-29T10:20:{number % 60:02}.123456Z", **more}


def fill_ledger(pawl):
    pawl.run("ledger", "append", text=lines(*[event(n) for n in range(1, 9)]))
    for turn in (1, 2):
        pawl.run("ledger", "turn", "begin", "--run", "village", "--turn", str(turn))
        pawl.run("ledger", "append", "--run", "village", "--turn", str(turn), "--attempt", "1",
                 text=lines({"kind": "said", "actor": "Bob", "payload": turn},
                            {"kind": "did", "actor": "Bob", "payload": {"Ä": "ö\u0001"}}))
    pawl.run("ledger", "turn", "commit", "--run", "village", "--turn", "1", "--attempt", "1")


def fill_work(pawl):
    """An item in every state, checkpoints, keys and a schedule."""
    pawl.run("work", "task", "create", "--id", "books", "--title", "Read books")
    for name in ("done", "broken", "given-up", "held", "waits", "next"):
        pawl.run("work", "submit", "--type", "read", "--task", "books", "--id", name, "--input", f'{{"book":"{name}"}}',
                 *(["--delay", "3650d"] if name == "waits" else []))
    pawl.run("work", "submit", "--type", "read", "--task", "books", "--id", "later", "--after", "next")
    for name in ("done", "broken", "given-up", "held"):
        assert pawl.rows("work", "claim", "--holder", "ada", "--lease", "7d")[0]["work_item_id"] == name
    pawl.run("work", "complete", "done", "--token", "1", "--output", '{"pages":12}')
    pawl.run("work", "fail", "broken", "--token", "1", "--error", "no such book", "--permanent")
    pawl.run("work", "cancel", "given-up")
    pawl.run("work", "checkpoint", "add", "--task", "books", "--type", "iteration_end", "--id", "c-1",
             "--snapshot", '{"page":1}')
    pawl.run("work", "checkpoint", "add", "--item", "held", "--token", "1", "--id", "c-2", "--snapshot", '{"page":2}')
    tokens = {}
    for key in ("pay-1", "pay-2"):
        tokens[key] = pawl.rows("idem", "begin", key, "--request", '{"euro":5}', "--ttl", "3650d")[0]["owner_token"]
    pawl.run("idem", "complete", "pay-1", "--token", str(tokens["pay-1"]), "--response", '{"paid":true}')
    pawl.run("work", "schedule", "put", "nightly", "--cron", "0 3 * * *", "--type", "read", "--task", "books")


def command(app, workspace, number):
    kind = app["kinds"][0]
    return {"workspace": workspace, "kind": kind["name"], "key": f"k-{number}",
            "creates": [{"class": "c", "raw_id": 1, "table": "order", "data": {"no": {"$next": kind["sequences"][0]["name"]}}},
                        {"class": "o", "raw_id": 2, "table": "line", "data": {"order": {"$raw": 1}, "n": number}}]}


def fill_apps(pawl, commands=6):
    for app in APPS:
        pawl.run("app", "create", "--descriptor", json.dumps(app))
        for workspace in (7, 8):
            pawl.run("app", "exec", app["name"], text=lines(*[command(app, workspace, n) for n in range(commands)]))


def fill(pawl):
    fill_ledger(pawl)
    fill_work(pawl)
    fill_apps(pawl)
