#!/usr/bin/env python3
"""Settings and data directories that are wrong: a clear message, the right exit code, and nothing
changed on disk."""
import hashlib
import json
import os
import pwd
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment, powerless as without_power  # noqa: E402
from tap import done, it, skip  # noqa: E402

ROOT = os.geteuid() == 0
TOP = tempfile.mkdtemp(prefix="pawl-bad-")
os.chmod(TOP, 0o755)
ENV = environment(TOP)

LEDGER_ID = 0x5061774C


def place():
    return tempfile.mkdtemp(dir=TOP)


def listing(top):
    """Everything below `top`: kind, mode, size, time of change and content."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for entry in [b"."] + folders + files:
            if entry.endswith(b"-shm"):  # where readers of SQLite write down that they are there
                continue
            path = os.path.join(folder, entry)
            info = os.lstat(path)
            digest = ""
            if stat.S_ISREG(info.st_mode) and os.access(path, os.R_OK):
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
            found[path] = (info.st_mode, info.st_uid, info.st_size if digest else 0,
                           info.st_mtime_ns, digest)
    return found


def run(*args, code, env=None, cwd=TOP, powerless=False, unchanged=TOP):
    """Runs pawl, checks its exit code, and that nothing below `unchanged` changed."""
    before = listing(unchanged)
    command = without_power([PAWL, *args]) if powerless else [PAWL, *args]
    result = subprocess.run(command, env={**ENV, **(env or {})}, cwd=cwd, capture_output=True,
                            check=False, timeout=60)
    assert result.returncode == code, (args, result.returncode, result.stdout, result.stderr)
    check_advice(result)
    after = listing(unchanged)
    assert before == after, {path: (before.get(path), after.get(path))
                             for path in before.keys() | after.keys()
                             if before.get(path) != after.get(path)}
    return result


def findings(*args, code, **more):
    """What doctor finds, by the name of the check; the verdict must fit the exit code."""
    result = run("doctor", "--json", *args, code=code, **more)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    if code != 0:
        assert json.loads(result.stderr)["error"]["exit_code"] == code, result.stderr
    for row in rows:
        if row.get("verdict", "ok") != "ok":
            assert row["cost"] and row["fix"], row
    return {row["check"]: row for row in rows if "check" in row}


def problem(check, status, says, found):
    row = found[check]
    assert row["verdict"] == "problem" and row["status"] == status and says in row["says"], row


def write(path, content, mode=0o600):
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    return path


def wrong_settings():
    folder = place()
    config = os.path.join(folder, "pawl.yaml")

    def refuses(says, content, *args, code=2, **more):
        write(config, content)
        for command in (["config", "check"], ["config", "show"]):
            result = run(*command, *args, "--config", config, code=code, **more)
            assert says in result.stderr.decode(), result.stderr
            assert result.stdout == b"", result.stdout
        found = findings(*args, "--config", config, code=code, **more)
        assert says in found["settings"]["says"], found["settings"]
        assert "data directory" not in found  # nothing is made before the settings are known
    refuses("pawl.yaml:2", b"log:\n  level: loud\n")
    refuses("did you mean 'log.level'", b"log:\n  levle: info\n")
    refuses("pawl.yaml:1", b"nonsense: 1\n")
    refuses("pawl.yaml", b"log: [unclosed\n")
    refuses("UTF-8", b"data: \xff\xfe\n")
    refuses("pawl.yaml:2", b"store:\n  busy_timeout: 5 parsecs\n")
    refuses("PAWL_LOG_LEVEL", b"", env={"PAWL_LOG_LEVEL": "loud"})
    refuses("PAWL_LOG_LEVLE", b"", env={"PAWL_LOG_LEVLE": "info"})
    refuses("--store-busy-timeout", b"", "--store-busy-timeout=-1")
    refuses("--database-url", b"", "--database-url=mysql://h/d")


def every_problem_is_listed():
    config = write(os.path.join(place(), "two.yaml"), b"log:\n  level: loud\n  format: x\n")
    lines = run("config", "check", "--config", config, code=2).stderr.decode().splitlines()
    assert len(lines) == 3 and "two.yaml:2" in lines[0] and "two.yaml:3" in lines[1], lines
    assert lines[2].startswith("pawl: 2 problems"), lines


def config_file_that_cannot_be_read():
    folder = place()
    assert b"nothing.yaml" in run("config", "check", "--config", f"{folder}/nothing.yaml",
                                  code=2).stderr
    assert folder.encode() in run("config", "check", "--config", folder, code=2).stderr
    secret = write(f"{folder}/secret.yaml", b"")
    give_away(secret)
    assert b"ermission denied" in run("config", "check", "--config", secret, code=1,
                                      powerless=True).stderr


def give_away(path):
    """Leaves to its owner only what others have: by another owner for root, by mode for the rest."""
    if ROOT:
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    else:
        os.chmod(path, 0o500 if os.path.isdir(path) else 0)


def take_back(top):
    for folder, folders, _ in os.walk(top):
        for entry in folders:
            os.chmod(os.path.join(folder, entry), 0o700)


def data_that_is_no_directory():
    path = write(os.path.join(place(), "file"), b"mine")
    problem("data directory", "INVALID", "ot a directory", findings("--data", path, code=2))
    problem("data directory", "INVALID", "ot a directory",
            findings("--data", f"{path}/below", code=2))


def data_that_is_read_only():
    folder = place()
    os.mkdir(f"{folder}/data")
    for path in (f"{folder}/data", folder):
        os.chmod(path, 0o755)
        give_away(path)
    problem("data directory", "DENIED", "ermission denied",
            findings("--data", f"{folder}/data", code=1, powerless=True))
    problem("data directory", "DENIED", "ermission denied",
            findings("--data", f"{folder}/new", code=1, powerless=True))


def mounted(options, test):
    """Calls test(directory) with a small file system of its own."""
    if not ROOT:
        skip("needs root, to mount")
    folder = place()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
                          capture_output=True, check=False)
    if made.returncode != 0:
        skip("may not mount: " + made.stderr.decode().strip())
    try:
        test(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def file_system_that_is_read_only():
    def test(folder):
        found = findings("--data", folder, code=1)
        problem("data directory", "DENIED", "ead-only", found)
        problem("data directory", "DENIED", "ead-only", findings("--data", f"{folder}/x", code=1))
    mounted("ro,mode=700", test)


def disk_that_is_full():
    def test(folder):
        os.mkdir(f"{folder}/data", 0o700)
        with open(f"{folder}/filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        problem("disk space", "NO_SPACE", "0 MiB are free", findings("--data", f"{folder}/data", code=5))
    mounted("size=64k,mode=700", test)


def full_disk_for_a_new_directory():
    def test(folder):
        problem("data directory", "NO_SPACE", "No space left", findings("--data", f"{folder}/new", code=5))
    mounted("nr_inodes=1,mode=700", test)


HOLDER = """
import fcntl, struct, sys
file = open(sys.argv[1], "w+b")
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
fcntl.lockf(file, fcntl.LOCK_EX, 1, 1)
print("held", flush=True)
sys.stdin.read()
"""


def hold(path):
    """A process that holds a store's lock as store/lock.h describes it: byte 0 by the open file,
    byte 1 by the process. It ends when its input does."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    return holder


def store_in_use():
    folder = place()
    write(f"{folder}/analytics.duckdb", b"")
    os.makedirs(f"{folder}/wal/consumer/orders", 0o700)
    os.makedirs(f"{folder}/apps/shop", 0o700)
    assert findings("--data", folder, code=0)["analytics.duckdb"]["verdict"] == "ok"
    for name, path in (("analytics.duckdb", "analytics.duckdb.lock"),
                       ("wal/consumer", "wal/consumer/orders/pawl.lock"),
                       ("apps", "apps/shop/pawl.lock")):
        holder = hold(f"{folder}/{path}")
        problem(name, "BUSY", f"in use by process {holder.pid}", findings("--data", folder, code=5))
        holder.communicate(timeout=60)
        assert findings("--data", folder, code=0)[name]["verdict"] == "ok"


def store_that_cannot_be_reached():
    folder = place()
    write(f"{folder}/wal", b"a file where a directory belongs")
    write(f"{folder}/apps", b"the same")
    found = findings("--data", folder, code=2)
    problem("wal/producer", "INVALID", "Not a directory", found)
    problem("apps", "INVALID", "Not a directory", found)


def ledger(folder, application_id=LEDGER_ID, rows=()):
    path = f"{folder}/ledger.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"PRAGMA application_id={application_id}")
        database.execute("CREATE TABLE schema_version (component TEXT, version TEXT,"
                         " migration INTEGER, name TEXT, applied_at TEXT,"
                         " PRIMARY KEY (component, migration))")
        database.executemany("INSERT INTO schema_version VALUES (?, ?, ?, ?, ?)", rows)
    database.close()
    os.chmod(path, 0o600)
    return path


def store_of_a_newer_version():
    folder = place()
    subprocess.run([PAWL, "ledger", "append", "--data", folder], env=ENV, input=b"", check=True)
    with sqlite3.connect(f"{folder}/ledger.sqlite") as database:
        database.execute("INSERT INTO schema_version (component, version, migration, name, applied_at)"
                         " SELECT 'ledger', '99.0.0', max(migration) + 1, 'future', '2099-01-01'"
                         " FROM schema_version")
    database.close()
    found = findings("--data", folder, code=2)
    problem("ledger.sqlite", "UNSUPPORTED", "99.0.0", found)


def store_of_somebody_else():
    folder = place()
    ledger(folder, application_id=7)
    problem("ledger.sqlite", "INVALID", "not made by pawl", findings("--data", folder, code=2))
    folder = place()
    write(f"{folder}/ledger.sqlite", b"Dear diary,\n")
    problem("ledger.sqlite", "CORRUPT", "not an SQLite database",
            findings("--data", folder, code=6))
    folder = place()
    os.mkdir(f"{folder}/work.sqlite")
    problem("work.sqlite", "INVALID", "not a regular file", findings("--data", folder, code=2))


def store_that_is_damaged():
    folder = place()
    path = ledger(folder)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (os.path.getsize(path) - 4096))
    problem("ledger.sqlite", "CORRUPT", "ledger.sqlite", findings("--data", folder, code=6))


def store_that_works_is_left_alone():
    folder = place()
    path = ledger(folder)
    row = findings("--data", folder, code=0)["ledger.sqlite"]
    assert row["verdict"] == "ok" and "no damage found" in row["says"], row
    held = sqlite3.connect(path)  # in use, with a log
    held.execute("INSERT INTO schema_version VALUES ('other', '1', 1, '', '')")
    held.commit()
    held.execute("BEGIN IMMEDIATE")
    assert findings("--data", folder, code=0)["ledger.sqlite"]["verdict"] == "ok"
    held.rollback()
    held.close()


def warnings_fail_only_with_strict():
    folder = place()
    os.chmod(folder, 0o755)
    row = findings("--data", folder, code=0)["data directory"]
    assert row["verdict"] == "warning" and "0755" in row["says"] and "chmod 700" in row["fix"], row
    findings("--data", folder, "--strict", code=1)


def server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"postgresql://me:hunter2@127.0.0.1:{free.getsockname()[1]}/db"
        env = {"DATABASE_URL": url, "PAWL_DATA": place()}
        found = findings(code=5, env=env)
        problem("PostgreSQL", "UNAVAILABLE", "127.0.0.1", found)
        assert "DATABASE_URL" in found["store"]["says"], found["store"]
        result = run("doctor", code=5, env=env)
        assert b"hunter2" not in result.stdout + result.stderr
        found = findings("--data", place(), code=0, env=env)  # a path given wins
        assert "because --data was given" in found["store"]["says"] and "PostgreSQL" not in found


def file_that_a_variable_names():
    path = f"{place()}/events.db"
    env = {"DATABASE_URL": f"sqlite:{path}", "PAWL_DATA": place()}
    event = b'{"id":"e","run_id":"r","turn":1,"kind":"k","actor":"a","payload":1}\n'
    subprocess.run([PAWL, "ledger", "append"], env=ENV | env, input=event, stdout=subprocess.DEVNULL, check=True)
    assert os.path.exists(path)
    found = findings(code=0, env=env)
    assert path in found["store"]["says"] and found["durability"]["verdict"] == "ok", found
    env["DATABASE_URL"] += "?durability=normal"
    assert findings(code=0, env=env)["durability"]["verdict"] == "warning"
    findings("--strict", code=1, env=env)
    run("doctor", code=2, env={"DATABASE_URL": "sqlite:"})


def odd_names():
    folder = os.path.join(place(), "a b'\"\\x?mode=rwc#%41 \u00fc\U0001f512")
    os.mkdir(folder, 0o700)
    ledger(folder)
    found = findings("--data", folder, code=0)
    assert found["ledger.sqlite"]["verdict"] == "ok", found
    assert folder in found["data directory"]["says"], found
    for name in (b"\xff", b"\x1b[31m", b"line\nbreak"):
        found = findings("--data", os.path.join(os.fsencode(place()), name), code=2)
        assert "--data" in found["settings"]["says"], found
        shown = run("doctor", "--data", name, code=2)
        assert not set(b"\x1b\xff") & set(shown.stdout + shown.stderr), shown


def new_directory_is_private():
    folder = os.path.join(place(), "a", "b")
    result = subprocess.run([PAWL, "doctor", "--data", folder], env=ENV, capture_output=True,
                            check=False, timeout=60)
    assert result.returncode == 0 and b"created now" in result.stdout, result
    assert os.stat(folder).st_mode & 0o777 == 0o700 and os.listdir(folder) == []
    assert b"What works today" in result.stdout, result.stdout


it("refuses wrong settings and touches nothing", wrong_settings)
it("lists every problem of the settings", every_problem_is_listed)
it("refuses a config file that cannot be read", config_file_that_cannot_be_read)
it("refuses a data directory that is none", data_that_is_no_directory)
it("refuses a data directory that may not be written", data_that_is_read_only)
it("refuses a file system mounted read-only", file_system_that_is_read_only)
it("finds that the disk is full", disk_that_is_full)
it("finds no room for a new directory", full_disk_for_a_new_directory)
it("names the process that holds a store", store_in_use)
it("does not take a store that cannot be reached for a missing one", store_that_cannot_be_reached)
it("refuses a store of a newer version", store_of_a_newer_version)
it("refuses a store of somebody else", store_of_somebody_else)
it("finds a damaged store", store_that_is_damaged)
it("leaves a good store as it is, also one in use", store_that_works_is_left_alone)
it("fails on warnings only with --strict", warnings_fail_only_with_strict)
it("says that a server is not there, without the password", server_that_is_not_there)
it("takes a file from DATABASE_URL, and warns of one that may lose", file_that_a_variable_names)
it("takes odd names of directories and shows them harmlessly", odd_names)
it("makes a new data directory, private and empty", new_directory_is_private)
take_back(TOP)
shutil.rmtree(TOP)
done()
