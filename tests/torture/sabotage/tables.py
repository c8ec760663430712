"""Ledger and work store under sabotage: rows of every table are edited with SQL, then pawl goes on.

A kind is a statement; the database's own tables say which there are, so that a new column is edited, too.
"""
import itertools
import json
import os
import shutil
import sqlite3
import subprocess

from command import new_database
from stores import Pawl, Places, event, fill_ledger, fill_work, lines

ROUNDS = itertools.count()


class Refused(Exception):
    """The database itself does not let the edit through: a constraint or a guard."""


class Files:
    """Stores of SQLite in data directories."""
    not_utf8 = {"not UTF-8": "CAST(x'fffe' AS TEXT)"}

    def __init__(self, program, env, top):
        self.program, self.env, self.top = program, env, top

    def new(self, name):
        return Pawl(self.program, Places(data=os.path.join(self.top, name)), self.env)

    def copy(self, pawl, name):
        shutil.copytree(pawl.places.work[1], os.path.join(self.top, name))
        return self.new(name)

    def forget(self, pawl):
        shutil.rmtree(pawl.places.work[1])

    def _connect(self, pawl, store):
        return sqlite3.connect(os.path.join(pawl.places.work[1], f"{store}.sqlite"), isolation_level=None)

    def edit(self, pawl, store, sql):
        """Without the guards, which are there again afterwards; returns how many rows were changed."""
        database = self._connect(pawl, store)
        try:
            guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                database.execute(f"DROP TRIGGER {name}")
            changes = database.execute(sql).rowcount
            for _, guard in guards:
                database.execute(guard)
            return changes
        except sqlite3.Error as error:
            raise Refused(str(error)) from error
        finally:
            database.close()

    def columns(self, pawl, store):
        """(table, what names a row of it, column, type)"""
        database = self._connect(pawl, store)
        tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"
                                                     " AND name NOT LIKE 'sqlite_%' ORDER BY 1")]
        found = []
        for table in tables:
            columns = database.execute(f"SELECT name, type, pk FROM pragma_table_info('{table}')").fetchall()
            row = ", ".join(f'"{name}"' for name, _, pk in columns if pk) or "rowid"
            found += [(table, row, name, kind.lower()) for name, kind, _ in columns]
        database.close()
        return found


class Databases:
    """Stores of PostgreSQL."""
    not_utf8 = {}  # the server itself takes none

    def __init__(self, program, env, top):
        self.program, self.env, self.top = program, env, top

    def _pawl(self, url):
        return Pawl(self.program, Places(url=url), self.env)

    def new(self, name):
        return self._pawl(new_database(os.path.join(self.top, name)))

    def copy(self, pawl, name):
        template = pawl.places.work[1].partition("?")[0].rpartition("/")[2]
        return self._pawl(new_database(os.path.join(self.top, name), template))

    def forget(self, pawl):
        name = pawl.places.work[1].partition("?")[0].rpartition("/")[2]
        subprocess.run(["psql", "-q", "-c", f'DROP DATABASE "{name}" WITH (FORCE)', os.environ["DATABASE_URL"]], check=True)

    def _ask(self, pawl, sql):
        done = subprocess.run(["psql", "-AtX", "-v", "ON_ERROR_STOP=1", "-F", "\t", pawl.places.work[1]],
                              input=f"SET search_path = pawl, public; SET session_replication_role = replica; {sql};",
                              text=True, check=False, capture_output=True)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout.splitlines()[2:]

    def edit(self, pawl, store, sql):
        """Without guards and foreign keys, which a replica does not check."""
        tag = self._ask(pawl, sql)[-1]
        return int(tag.split()[-1]) if tag.split()[-1].isdigit() else 1

    def columns(self, pawl, store):
        rows = self._ask(pawl, "SELECT table_name, 'ctid', column_name, data_type FROM information_schema.columns"
                               " WHERE table_schema = 'pawl' ORDER BY 1, ordinal_position")
        return [tuple(row.split("\t")) for row in rows]


def changed(column, kind, not_utf8):
    """Other values for a column of this type, as SQL."""
    if "int" in kind or "double" in kind or "real" in kind:
        return {"one more": f"{column} + 1", "negative": f"-{column} - 1", "huge": "9223372036854775000"}
    if "bool" in kind:
        return {"the opposite": f"NOT {column}"}
    if "time" in kind:
        return {"another time": "'2001-01-01 00:00:00.000000'", "in the future": "'2999-01-01 00:00:00.000000'"}
    if "json" in kind:
        return {"forged": "'{\"forged\":true}'"}
    if "blob" in kind or "bytea" in kind:
        return {"empty": "''"}
    return {"longer": f"{column} || 'x'", "empty": "''", **not_utf8}


def row_kinds(columns, not_utf8):
    """{name: SQL} of every edit of rows: deleted, and each column set to something else."""
    found = {}
    for table, row in sorted({(table, row) for table, row, _, _ in columns}):
        ordered = f"SELECT {row} FROM {table} ORDER BY {row}"
        middle = f"WHERE ({row}) IN ({ordered} LIMIT 1 OFFSET (SELECT count(*) / 2 FROM {table}))"
        found[f"{table}: delete the first"] = f"DELETE FROM {table} WHERE ({row}) IN ({ordered} LIMIT 1)"
        found[f"{table}: delete one in the middle"] = f"DELETE FROM {table} {middle}"
        found[f"{table}: delete the last"] = (f"DELETE FROM {table} WHERE ({row}) IN ({ordered} LIMIT 1"
                                              f" OFFSET (SELECT count(*) - 1 FROM {table}))")
        found[f"{table}: delete all"] = f"DELETE FROM {table}"
        for _, _, column, kind in [c for c in columns if c[0] == table]:
            quoted = f'"{column}"'
            for how, value in {"null": "NULL", **changed(quoted, kind, not_utf8)}.items():
                found[f"{table}.{column}: {how}"] = f"UPDATE {table} SET {quoted} = {value} {middle}"
            found[f"{table}.{column}: that of the first"] = (
                f"UPDATE {table} SET {quoted} = (SELECT {quoted} FROM {table} ORDER BY {row} LIMIT 1) {middle}")
    return found


class Ledger:
    name = "ledger"

    def __init__(self, store):
        self.store = store
        self.pawl = store.new("ledgerx0")
        fill_ledger(self.pawl)
        self.events = self.pawl.rows("ledger", "tail")
        self.turns = self.pawl.rows("ledger", "turns")
        columns = [c for c in store.columns(self.pawl, "ledger") if c[0] != "schema_version"]
        self.kinds = list({**row_kinds(columns, store.not_utf8), **self._schema_kinds()}.items())

    def _schema_kinds(self):
        if isinstance(self.store, Files):
            return {
                "trigger that ignores inserts": "CREATE TRIGGER quiet BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
                "trigger that deletes what was inserted":
                    'CREATE TRIGGER gone AFTER INSERT ON events BEGIN DELETE FROM events WHERE "offset" = NEW."offset"; END',
                "trigger that changes what was inserted":
                    "CREATE TRIGGER forge AFTER INSERT ON events BEGIN UPDATE events SET actor = 'Eve'"
                    ' WHERE "offset" = NEW."offset"; END',
            }
        return {
            "rule that drops inserts": "CREATE RULE quiet AS ON INSERT TO events DO INSTEAD NOTHING",
            "trigger that drops inserts": "CREATE FUNCTION quiet() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql;"
                                          "CREATE TRIGGER quiet BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION quiet()",
            "trigger that deletes what was inserted":
                "CREATE FUNCTION gone() RETURNS trigger AS 'BEGIN DELETE FROM pawl.events WHERE \"offset\" = NEW.\"offset\";"
                " RETURN NULL; END' LANGUAGE plpgsql;"
                "CREATE TRIGGER gone AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION gone()",
        }

    def round(self, name, sql):
        pawl = self.store.copy(self.pawl, f"ledgerr{next(ROUNDS)}")
        try:
            try:
                if self.store.edit(pawl, "ledger", sql) == 0:
                    return None
            except Refused:
                return None
            before = pawl.try_("ledger", "verify")
            seen = pawl.try_("ledger", "tail", "--json"), pawl.try_("ledger", "turns", "--json")
            appended = pawl.try_("ledger", "append", "--json", text=lines(event(100)))
            after = pawl.try_("ledger", "tail", "--json")
            verified = pawl.try_("ledger", "verify")
        finally:
            self.store.forget(pawl)
        return [*ended_badly([before, *seen, appended, after, verified]), *self._unnoticed(before, seen),
                *self._lost(appended, after)]

    def _unnoticed(self, before, seen):
        if before.returncode == 6:
            return []
        same = [parsed(seen[0]) == self.events, parsed(seen[1]) == self.turns]
        return [] if all(same) and before.returncode == 0 else [
            f"verify: exit code {before.returncode}, and it reads otherwise: {before.stdout}{before.stderr}"]

    def _lost(self, appended, after):
        if appended.returncode != 0 or after.returncode == 6:
            return []
        found = [e for e in parsed(after) if e["id"] == "e-100"]
        return [] if len(found) == 1 else [f"appended, and stored {len(found)} times"]


class Work:
    """Raw SQL is outside of what work promises of its items; it must not hang, crash or give a token twice."""
    name = "work"
    AFTER = [["work", "list", "--json"], ["work", "task", "list"], ["work", "stats"], ["work", "sweep"],
             ["work", "checkpoint", "list", "books"], ["work", "schedule", "list"], ["work", "recover", "books"],
             ["idem", "get", "pay-1"], ["work", "claim", "--holder", "eve", "-n", "10", "--json"],
             ["work", "retention", "--dry-run"], ["work", "complete", "held", "--token", "1"],
             ["work", "show", "next"], ["work", "submit", "--type", "read", "--task", "books", "--id", "fresh"]]

    def __init__(self, store):
        self.store = store
        self.pawl = store.new("workx0")
        fill_work(self.pawl)
        self.tokens = {item["work_item_id"]: item["token"] for item in self.pawl.rows("work", "list")}
        columns = [c for c in store.columns(self.pawl, "work") if c[0] != "schema_version"]
        self.kinds = list(row_kinds(columns, store.not_utf8).items())

    def round(self, name, sql):
        pawl = self.store.copy(self.pawl, f"workr{next(ROUNDS)}")
        try:
            try:
                if self.store.edit(pawl, "work", sql) == 0:
                    return None
            except Refused:
                return None
            results = [pawl.try_(*command) for command in self.AFTER]
        finally:
            self.store.forget(pawl)
        claimed = parsed(results[8])
        edited_token = "token" in name or "floor" in name
        twice = [f"{item['work_item_id']}: token {item['token']} given twice" for item in claimed
                 if not edited_token and item["token"] <= self.tokens.get(item["work_item_id"], 0)]
        return [*ended_badly(results), *twice]


def parsed(result):

    return [json.loads(line) for line in result.stdout.splitlines()]


def ended_badly(results):
    return [f"{' '.join(r.args[1:4])}: exit code {r.returncode}: {r.stderr[-300:]}" for r in results
            if not 0 <= r.returncode <= 6]
