"""Applications under sabotage: entries are edited below pawl, then pawl goes on, and an oracle outside compares."""
import itertools
import json
import os
import shutil
import subprocess

from command import new_database
from entries import kinds
from stores import Pawl, Places, lines

WORKSPACES = (7, 8)
SEQUENCE = "invoice"
ROUNDS = itertools.count()


def descriptor(level):
    return {"name": "orders", "id": 1, "partitions": 2, "trust": level,
            "kinds": [{"name": "shop", "id": 1, "sequences": [{"name": SEQUENCE, "id": 16, "initial": 1000}]}]}


def order(workspace, key, updates=()):
    return {"workspace": workspace, "kind": "shop", "key": key, "updates": list(updates),
            "creates": [{"class": "c", "raw_id": 1, "table": "order", "data": {"no": {"$next": SEQUENCE}}},
                        {"class": "o", "raw_id": 2, "table": "line", "data": {"order": {"$raw": 1}, "key": key}}]}


class Directories:
    """Applications in RocksDB directories, edited by app_edit."""

    def __init__(self, program, env, top):
        self.program, self.env, self.top = program, env, top
        self.editor = os.path.join(os.environ["PAWL_BUILD"], "tests", "torture", "app_edit")

    def new(self, name):
        return Pawl(self.program, Places(data=os.path.join(self.top, name)), self.env)

    def copy(self, pawl, name):
        target = os.path.join(self.top, name)
        shutil.copytree(pawl.places.apps[1], target)
        return self.new(name)

    def forget(self, pawl):
        shutil.rmtree(pawl.places.apps[1])

    def _edit(self, pawl, verb, text=""):
        directory = os.path.join(pawl.places.apps[1], "apps", "orders")
        return subprocess.run([self.editor, directory, verb], input=text, text=True, check=True, capture_output=True).stdout

    def dump(self, pawl):
        entries = {}
        for row in self._edit(pawl, "dump").splitlines():
            family, key, value = row.split(" ")
            entries.setdefault(family, {})[bytes.fromhex(key)] = b"" if value == "-" else bytes.fromhex(value)
        return entries

    def apply(self, pawl, changes):
        self._edit(pawl, "apply", "".join(
            f"put {family} {key.hex()} {value.hex() or '-'}\n" if verb == "put" else f"delete {family} {key.hex()}\n"
            for verb, family, key, value in changes))


class Databases:
    """Applications in PostgreSQL, edited by psql."""

    def __init__(self, program, env, top):
        self.program, self.env, self.top = program, env, top
        self.families = {}

    def _pawl(self, url):
        return Pawl(self.program, Places(url=url), self.env)

    def new(self, name):
        return self._pawl(new_database(os.path.join(self.top, name)))

    def copy(self, pawl, name):
        template = pawl.places.apps[1].partition("?")[0].rpartition("/")[2]
        return self._pawl(new_database(os.path.join(self.top, name), template))

    def forget(self, pawl):
        name = pawl.places.apps[1].partition("?")[0].rpartition("/")[2]
        subprocess.run(["psql", "-q", "-c", f'DROP DATABASE "{name}" WITH (FORCE)', os.environ["DATABASE_URL"]], check=True)

    def _psql(self, pawl, sql):
        return subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-F", " ", pawl.places.apps[1]], input=sql,
                              text=True, check=True, capture_output=True).stdout

    def dump(self, pawl):
        entries = {}
        for row in self._psql(pawl, "SELECT family, encode(key, 'hex'), encode(value, 'hex') FROM pawl.app_entries;").splitlines():
            family, key, value = row.split(" ")
            entries.setdefault(FAMILIES[int(family)], {})[bytes.fromhex(key)] = bytes.fromhex(value)
        return entries

    def apply(self, pawl, changes):
        statements = []
        for verb, family, key, value in changes:
            number = FAMILIES.index(family)
            at = f"family = {number} AND key = '\\x{key.hex()}'"
            statements.append(f"DELETE FROM pawl.app_entries WHERE {at};")
            if verb == "put":
                statements.append(f"INSERT INTO pawl.app_entries VALUES ({number}, '\\x{key.hex()}', '\\x{value.hex()}');")
        self._psql(pawl, "BEGIN;" + "".join(statements) + "COMMIT;")


# The column `family`, from 0 on: src/app/core/keys.h.
FAMILIES = ["meta", "plog", "wlog", "records", "seq", "offsets", "keys", "numbers"]


class Apps:
    """One trust level: an application, an older copy of it, and every answer it gave."""

    def __init__(self, store, level):
        self.store, self.level = store, level
        self.pawl = store.new(f"level{level}")
        self.pawl.run("app", "create", "--descriptor", json.dumps(descriptor(level)))
        self.answers = self._execute(self.pawl, range(0, 4))
        older = store.copy(self.pawl, f"older{level}")
        self.older = store.dump(older)
        self.answers += self._execute(self.pawl, range(4, 8), updates=True)
        self.entries = store.dump(self.pawl)
        self.kinds = kinds(self.entries, self.older)

    def _execute(self, pawl, numbers, updates=False):
        answers = []
        for workspace in WORKSPACES:
            changed = [{"id": 200001, "data": {"changed": True}}] if updates else []
            rows = pawl.rows("app", "exec", "orders",
                             text=lines(*[order(workspace, f"k-{n}", changed) for n in numbers]))
            answers += [(workspace, answer) for answer in rows]
        return answers

    def round(self, name, changes):
        """Edits a copy, goes on with it, and says what is wrong then; nothing: []."""
        pawl = self.store.copy(self.pawl, f"round{self.level}x{next(ROUNDS)}")
        try:
            self.store.apply(pawl, changes)
            edited = self.store.dump(pawl)
            before = pawl.try_("seq", "verify", "orders", "--all")
            executed = self._go_on(pawl)
            after = pawl.try_("seq", "verify", "orders", "--all")
            left = self.store.dump(pawl)
        finally:
            self.store.forget(pawl)
        return [*self._ended_badly([before, after, *[e for _, e in executed]]),
                *self._again(executed, self.level), *self._overwritten(edited, left, self.level),
                *self._unnoticed(name, edited, left, before, after, executed)]

    def _go_on(self, pawl):
        executed = []
        for workspace in WORKSPACES:
            for n in range(3):
                executed.append((workspace, pawl.try_("app", "exec", "orders", "--json",
                                                      text=lines(order(workspace, f"s-{n}")))))
        return executed

    def _ended_badly(self, results):
        return [f"exit code {r.returncode}: {r.stderr[-300:]}" for r in results if not 0 <= r.returncode <= 6]

    def _new_answers(self, executed):
        return [(workspace, json.loads(line)) for workspace, result in executed for line in result.stdout.splitlines()
                if '"error"' not in line]

    def _again(self, executed, level):
        """Numbers of the application's own sequence, and ids, that were given before."""
        if level == 2:
            return []
        numbers = [(w, n["number"]) for w, a in self.answers for n in a["numbers"]]
        ids = [(w, i) for w, a in self.answers for i in a["ids"].values()]
        wrong = []
        for workspace, answer in self._new_answers(executed):
            for number in (n["number"] for n in answer["numbers"]):
                if (workspace, number) in numbers:
                    wrong.append(f"workspace {workspace}: number {number} given twice")
                numbers.append((workspace, number))
            for each in answer["ids"].values():
                if level == 0 and (workspace, each) in ids:
                    wrong.append(f"workspace {workspace}: id {each} given twice")
                ids.append((workspace, each))
        return wrong

    def _overwritten(self, edited, left, level):
        """Entries that were there and are another now, other than what they were before the edit."""
        guarded = {0: ["plog", "wlog", "records"], 1: ["plog", "wlog"], 2: []}[level]
        return [f"{family} {key.hex()} overwritten" for family in guarded
                for key, value in edited.get(family, {}).items()
                if left.get(family, {}).get(key) not in (value, self.entries[family].get(key))]

    def _unnoticed(self, name, edited, left, before, after, executed):
        """What the edit changed must be named. Numbers that were put back together with their offset are what a crash
        may leave: at level 2, too, such an edit may go unnamed when no harm comes of it."""
        harm = self._again(executed, 0) + self._overwritten(edited, left, 0)
        # The first byte says the version: a newer one could not be checked.
        named = before.returncode == 6 or (before.returncode == 5 and "first byte" in name)
        if self.level == 2 and not named and (harm or before.returncode != 0):
            return [f"verify: exit code {before.returncode} after the edit: {before.stdout[-200:]}", *harm]
        lost = [key.hex() for key, value in self.entries["plog"].items() if left.get("plog", {}).get(key) != value]
        noticed = [r for r in (before, after) if r.returncode in (5, 6)]
        return [f"events {lost} lost, and nobody says so"] if lost and not noticed else []
