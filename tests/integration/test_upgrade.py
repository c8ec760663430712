#!/usr/bin/env python3
"""Data directories and databases that earlier versions wrote (tests/data/stores): this version opens them, reads what
they read, verifies them and writes on. With the argument `postgres` the databases, else the directories."""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, environment, new_database, wants_postgres  # noqa: E402
from stores import APPS, Pawl, Places, command, event, lines  # noqa: E402
from tap import done, it  # noqa: E402

POSTGRES = wants_postgres()
TOP = tempfile.mkdtemp(prefix="pawl-upgrade-")
ENV = environment(TOP, PAWL_STORE_FREE_SPACE_MIN="0")
STORES = os.path.join(os.environ["PAWL_SOURCE"], "tests", "data", "stores")
VERSIONS = sorted(entry for entry in os.listdir(STORES) if os.path.isdir(os.path.join(STORES, entry)))

# What depends on the moment of reading: the next slot of a schedule, whether a lease has run out meanwhile.
VOLATILE = {"next_slot", "answer"}


def unpacked(version):
    """The stores of a version, in a place of their own."""
    directory = tempfile.mkdtemp(dir=TOP)
    if not POSTGRES:
        subprocess.run(["tar", "-xzf", f"{STORES}/{version}/data.tar.gz", "-C", directory], check=True)
        return Pawl(PAWL, Places(data=f"{directory}/data"), ENV)
    url = new_database(directory)
    with gzip.open(f"{STORES}/{version}/database.sql.gz") as file:
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", url], input=file.read(), check=True)
    return Pawl(PAWL, Places(url=url), ENV)


def expected(version):
    with open(f"{STORES}/{version}/expected.json", encoding="utf-8") as file:
        return json.load(file)["database" if POSTGRES else "data"]


def stays(old, new, where):
    """Later versions may add fields; what was there reads as before."""
    if isinstance(old, dict):
        for key in old.keys() - VOLATILE:
            assert key in new, (where, key)
            stays(old[key], new[key], f"{where}.{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), (where, old, new)
        for i, each in enumerate(old):
            stays(each, new[i], f"{where}[{i}]")
    else:
        assert old == new, (where, old, new)


def reads_as_before(version):
    pawl = unpacked(version)
    for each in expected(version):
        stays(each["rows"], pawl.rows(*each["command"]), " ".join(each["command"]))


def verifies(pawl):
    pawl.run("ledger", "verify")
    for app in APPS:
        pawl.run("seq", "verify", app["name"], "--all")


def verifies_before_and_after_writing(version):
    pawl = unpacked(version)
    verifies(pawl)
    assert pawl.rows("ledger", "append", text=lines(event(1), event(100))) == [
        {"offset": 1, "id": "e-1", "duplicate": True}, {"offset": 16, "id": "e-100", "duplicate": False}]
    for app in APPS:
        first = app["kinds"][0]["sequences"][0]["initial"]
        for workspace in (7, 8):
            answers = pawl.rows("app", "exec", app["name"],
                                text=lines(command(app, workspace, 5), command(app, workspace, 6)))
            assert [(a["duplicate"], [n["number"] for n in a["numbers"]]) for a in answers] \
                == [(True, [first + 5]), (False, [first + 6])], answers
    verifies(pawl)


def work_goes_on(version):
    pawl = unpacked(version)
    claimed = {item["work_item_id"]: item["token"] for item in pawl.rows("work", "claim", "--holder", "bob", "-n", "5")}
    assert claimed.pop("held", 2) == 2 and list(claimed) == ["next"], claimed  # its lease has run out by now
    pawl.run("work", "complete", "next", "--token", str(claimed["next"]))
    assert [item["work_item_id"] for item in pawl.rows("work", "claim", "--holder", "bob", "-n", "5")] == ["later"]
    assert pawl.rows("idem", "begin", "pay-1", "--request", '{"euro":5}')[0]["response"] == {"paid": True}
    assert "hash_conflict" in pawl.run("idem", "begin", "pay-1", "--request", '{"euro":6}', code=4)


def snapshot_restores(version):
    if POSTGRES:
        return
    pawl = unpacked(version)
    data = pawl.places.ledger[1]
    pawl.run("ledger", "restore", f"{data}/snapshots", "--to", f"{data}/restored.sqlite")
    assert len(pawl.rows("ledger", "tail", "--ledger", f"{data}/restored.sqlite")) == 15


try:
    assert VERSIONS, STORES
    for name in VERSIONS:
        it(f"stores of {name} read as before", lambda v=name: reads_as_before(v))
        it(f"stores of {name} verify and take new writes", lambda v=name: verifies_before_and_after_writing(v))
        it(f"work of {name} goes on", lambda v=name: work_goes_on(v))
        it(f"a snapshot of {name} restores", lambda v=name: snapshot_restores(v))
finally:
    shutil.rmtree(TOP, ignore_errors=True)
done()
