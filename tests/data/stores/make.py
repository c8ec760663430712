#!/usr/bin/env python3
"""Makes the stores of one version, for later versions to open: a data directory, a database, and what was read
from them. Run once for each version that changes a format, with the binary of that version:

  tests/with_postgres tests/data/stores/make.py PAWL tests/data/stores/VERSION

(`with_postgres` of the build directory starts a server and sets DATABASE_URL.)
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from stores import APPS, Pawl, Places, fill  # noqa: E402

# What a version could read, every later one reads alike.
READS = [
    ["ledger", "tail"], ["ledger", "turns"], ["ledger", "stats"], ["ledger", "verify"],
    ["work", "list"], ["work", "task", "list"], ["work", "checkpoint", "list", "books"],
    ["work", "schedule", "list"], ["idem", "get", "pay-1"], ["idem", "get", "pay-2"],
    *[["work", "show", name] for name in ("done", "broken", "given-up", "held", "waits", "next", "later")],
    *[[*verb, app["name"], "--workspace", str(workspace)] for app in APPS for workspace in (7, 8)
      for verb in (["app", "records"], ["app", "wlog"], ["app", "seq"])],
    *[["app", "plog", app["name"], "--partition", str(p)] for app in APPS for p in range(app["partitions"])],
]


def read(pawl):
    return [{"command": command, "rows": pawl.rows(*command)} for command in READS]


def main(program, out):
    os.makedirs(out, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", "PAWL_STORE_FREE_SPACE_MIN": "0"}
    with tempfile.TemporaryDirectory() as top:
        pawl = Pawl(program, Places(data=f"{top}/data"), env)
        fill(pawl)
        pawl.run("ledger", "snapshot")
        expected = {"data": read(pawl)}
        subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "-czf", f"{out}/data.tar.gz",
                        "-C", top, "--exclude=LOG*", "--exclude=LOCK", "--exclude=OPTIONS*", "--exclude=*-shm", "data"], check=True)
    url = os.environ["DATABASE_URL"]
    pawl = Pawl(program, Places(url=url), env)
    fill(pawl)
    expected["database"] = read(pawl)
    dump = subprocess.run(["pg_dump", "--no-owner", "--no-privileges", url], check=True, capture_output=True).stdout
    with gzip.GzipFile(f"{out}/database.sql.gz", "wb", mtime=0) as file:
        file.write(dump)
    with open(f"{out}/expected.json", "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f'"{place}": [\n' + ",\n".join(
            json.dumps(each, sort_keys=True, ensure_ascii=False) for each in reads) + "\n]"
            for place, reads in expected.items()) + "\n}\n")  # a line for each command


if __name__ == "__main__":
    main(*sys.argv[1:])
