#!/usr/bin/env python3
"""`pawl app` and `pawl seq` as people and programs meet them. With the argument `postgres` applications
are in databases, else in directories."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, SHOP, check_advice, environment, new_database, powerless, wants_postgres  # noqa: E402
from tap import done, it  # noqa: E402

POSTGRES = wants_postgres()
TOP = tempfile.mkdtemp(prefix="pawl-app-")
ENV = environment(TOP)
WAIT_S = 120


def place():
    """Where no application is yet: the flags that say so, and what --apps would be."""
    directory = tempfile.mkdtemp(dir=TOP)
    if not POSTGRES:
        return ["--data", directory], f"{directory}/apps"
    url = new_database(directory)
    return ["--apps", url], url


def run(*args, code=0, text="", env=ENV):
    result = subprocess.run([PAWL, *args], input=text, env=env, cwd=TOP, timeout=WAIT_S, text=True,
                            capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-500:])
    return check_advice(result)


def rows(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def shop(**changes):
    data, _ = place()
    run("app", "create", *data, "--descriptor", json.dumps({**SHOP, **changes}))
    return data


def order(workspace, raw_id=1, **more):
    return {"workspace": workspace, "kind": "shop", **more,
            "creates": [{"class": "c", "raw_id": raw_id, "table": "order",
                         "data": {"no": {"$next": "invoice"}, "me": {"$raw": raw_id}}}]}


def lines(*commands):
    return "".join(json.dumps(command) + "\n" for command in commands)


def creates_once():
    data = shop()
    again = rows(run("app", "create", *data, "--json", "--descriptor", json.dumps(SHOP)))
    assert again == [{"name": "orders", "id": 1, "partitions": 2, "trust": 0, "kinds": 1}], again
    assert POSTGRES or os.path.isdir(f"{data[1]}/apps/orders")
    other = run("app", "create", *data, "--descriptor", json.dumps({**SHOP, "trust": 2}), code=4)
    assert "another descriptor" in other.stderr, other.stderr


def refuses_descriptors():
    data, apps = place()
    for bad, says in [("{}", "descriptor.name: missing"), ("x", "line 1"),
                      (json.dumps({**SHOP, "name": "../x"}), "may contain only a-z, 0-9, - and _"),
                      (json.dumps({**SHOP, "trust": 3}), "trust"),
                      (json.dumps({**SHOP, "kinds": []}), "0 kinds")]:
        assert says in run("app", "create", *data, "--descriptor", bad, code=2).stderr, bad
    assert not os.path.exists(apps)


def answers_lines():
    data = shop()
    answers = rows(run("app", "exec", *data, "orders",
                       text=lines(order(7), order(8), order(7, 9, key="k"), order(7, 9, key="k"))))
    assert [a["plog_offset"] for a in answers] == [1, 1, 2, 2], answers
    assert [a["wlog_offset"] for a in answers] == [1, 1, 2, 2], answers
    assert [a["duplicate"] for a in answers] == [False, False, False, True], answers
    assert answers[2]["ids"] == {"9": 2**40 + 1} == answers[3]["ids"], answers
    assert answers[2]["numbers"] == [{"sequence": "invoice", "number": 1001}], answers
    one = rows(run("app", "exec", *data, "orders", "--command", json.dumps(order(7))))
    assert one[0]["wlog_offset"] == 3, one


def shows_what_is_there():
    data = shop()
    run("app", "exec", *data, "orders", text=lines(order(7), order(7), order(9)))
    records = rows(run("app", "records", *data, "orders", "--workspace", "7", "--json"))
    assert records == [{"id": 2**40 + i, "class": "c", "table": "order",
                        "data": {"no": 1000 + i, "me": 2**40 + i}} for i in range(2)], records
    plain = run("app", "records", *data, "orders", "--workspace", "7", "--from", str(2**40 + 1)).stdout
    assert plain == f'{2**40 + 1}\tc\torder\t{{"no":1001,"me":{2**40 + 1}}}\n', plain
    one = run("app", "records", *data, "orders", "--workspace", "9", "--id", str(2**40))
    assert one.stdout.startswith(str(2**40)), one.stdout
    run("app", "records", *data, "orders", "--workspace", "9", "--id", str(2**40 + 1), code=3)
    run("app", "records", *data, "orders", "--workspace", "9", "--id", "5", code=2)
    events = rows(run("app", "wlog", *data, "orders", "--workspace", "9", "--json"))
    assert [(e["plog_offset"], e["wlog_offset"], e["kind"]) for e in events] == [(3, 1, "shop")], events
    assert run("app", "plog", *data, "orders", "--partition", "1", "--from", "2",
               "--limit", "1").stdout == "2\t7\t2\t1\t\n"
    run("app", "plog", *data, "orders", "--partition", "2", code=2)


def names_the_bad_line():
    data = shop()
    refused = run("app", "exec", *data, "orders", code=2,
                  text=lines(order(7), {**order(7), "kind": "cafe"}, order(7)))
    assert "line 2" in refused.stderr and "cafe" in refused.stderr, refused.stderr
    assert len(rows(refused)) == 1
    assert "line 1" in run("app", "exec", *data, "orders", code=2, text="nonsense\n").stderr
    conflict = run("app", "exec", *data, "orders", code=4,
                   text=lines(order(7, key="k"), order(7, 2, key="k")))
    assert "another command" in conflict.stderr, conflict.stderr


def executes_many_at_a_time():
    data = shop()
    commands = [order(1 + i % 5, key=f"k{i}") for i in range(1500)]
    commands.insert(700, order(9))  # without a key: it waits for those before it
    answers = rows(run("app", "exec", *data, "orders", text=lines(*commands)))
    assert len(answers) == len(commands)
    given = {}
    for command, answer in zip(commands, answers):
        given.setdefault(command["workspace"], []).append(answer["wlog_offset"])
    assert all(offsets == list(range(1, len(offsets) + 1)) for offsets in given.values())
    del commands[700], answers[700]
    again = rows(run("app", "exec", *data, "orders", text=lines(*commands)))
    assert again == [{**answer, "duplicate": True} for answer in answers]
    changes = [{"workspace": 1, "kind": "shop", "key": f"u{i}", "updates": [{"id": 2**40, "data": {"i": i}}]}
               for i in range(600)]
    run("app", "exec", *data, "orders", text=lines(*changes))
    one = rows(run("app", "records", *data, "orders", "--workspace", "1", "--id", str(2**40), "--json"))
    assert one[0]["data"] == {"i": 599}, one


def names_the_bad_line_of_many():
    data = shop()
    good = [order(1 + i % 3, key=f"k{i}") for i in range(100)]
    for bad, code, says in [({"workspace": 1, "kind": "shop", "key": "bad", "updates": [{"id": 200001, "data": {}}]},
                             3, "line 51"), ({**order(1, key="bad"), "kind": "cafe"}, 2, "line 51"),
                            (order(1, 2, key="k0"), 4, "line 51")]:
        refused = run("app", "exec", *data, "orders", code=code, text=lines(*good[:50], bad, *good[50:]))
        assert says in refused.stderr, refused.stderr
        assert len(rows(refused)) == 50
    known = rows(run("app", "exec", *data, "orders", text=lines(*good)))
    assert len(known) == 100 and all(answer["duplicate"] for answer in known[:50])
    for workspace in "123":
        run("seq", "verify", *data, "orders", "--workspace", workspace)


def answers_whoever_waits():
    data = shop()
    with subprocess.Popen([PAWL, "app", "exec", *data, "orders"], env=ENV, cwd=TOP, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        for i in range(3):
            child.stdin.write(lines(order(7, key=f"k{i}")))
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["wlog_offset"] == i + 1
        child.stdin.close()
        assert child.wait(WAIT_S) == 0


def proves_numbers():
    data = shop()
    run("app", "exec", *data, "orders", text=lines(*[order(7) for _ in range(5)]))
    proof = rows(run("seq", "verify", *data, "orders", "--workspace", "7", "--json"))
    assert [(p["sequence"], p["initial"], p["last"], p["used"], p["whole"]) for p in proof] == [
        ("wlog_offset", 1, 5, 5, True), ("c_record", 2**40, 2**40 + 4, 5, True),
        ("ow_record", 200001, None, 0, True), ("invoice", 1000, 1004, 5, True)], proof
    only = rows(run("app", "seq", *data, "orders", "--workspace", "7", "--sequence", "invoice", "--json"))
    assert [p["last"] for p in only] == [1004], only
    run("seq", "verify", *data, "orders", "--workspace", "7", "--sequence", "none", code=2)
    status = rows(run("seq", "status", *data, "orders", "--json"))
    assert [(s["partition"], s["log_end"], s["next_offset"], s["actualizing"]) for s in status] == [
        (0, 0, 1, False), (1, 5, 6, False)], status


def shows_what_is_damaged():
    if not POSTGRES:
        return  # other tests change the bytes of RocksDB; here it is a statement
    data = shop()
    run("app", "exec", *data, "orders", text=lines(order(7), order(7), order(7), order(8)))
    run("seq", "verify", *data, "orders", "--workspace", "7")

    def sql(statement):
        subprocess.run(["psql", "-q", "-c", statement, data[1]], check=True)

    def lose(offset):
        key = f"000000010001{offset:016x}"
        sql(f"DELETE FROM pawl.app_entries WHERE family = 1 AND key = '\\x{key}'")

    for _ in range(100):  # whoever opens it to write stores the numbers, in its own time
        if all(row["stored_offset"] == row["next_offset"]
               for row in rows(run("seq", "status", *data, "orders", "--json"))):
            break
    row = "family = 4 AND key = '\\x00000001000100000000000000070010'"
    sql(f"UPDATE pawl.app_entries SET value = set_byte(value, 7, get_byte(value, 7) - 1) WHERE {row}")
    damaged = run("seq", "verify", *data, "orders", "--workspace", "7", "--json", code=6)
    found = {row["sequence"]: row["findings"] for row in rows(damaged)}
    assert found == {"wlog_offset": None, "c_record": None, "ow_record": None,
                     "invoice": "what is stored of it is damaged"}, found
    assert "pawl seq rebuild" in damaged.stderr, damaged.stderr
    refused = run("app", "exec", *data, "orders", "--command", json.dumps(order(7)), code=6)
    assert "sequence 'invoice' of workspace 7: what is stored is damaged" in refused.stderr, refused.stderr
    sql(f"UPDATE pawl.app_entries SET value = set_byte(value, 7, get_byte(value, 7) + 1) WHERE {row}")
    lose(2)
    found = run("seq", "verify", *data, "orders", "--workspace", "7", "--sequence", "invoice", "--json", code=6)
    assert "no event at PLog offsets 2-2" in rows(found)[0]["findings"], found.stdout
    assert "missing 1001-1001" in rows(found)[0]["findings"], found.stdout
    assert not rows(found)[0]["whole"] and "missing" in found.stderr, found
    run("app", "seq", *data, "orders", "--workspace", "7")  # shows, does not judge
    lose(3)
    for args in (["app", "exec", *data, "orders", "--command", json.dumps(order(8))], ["seq", "status", *data, "orders"]):
        assert "the log of partition 1 ends at offset 1, its anchor is at 3" in run(*args, code=6).stderr, args
    sql("UPDATE pawl.apps SET anchor = ''")  # somebody goes on with what is left
    # Commands of that partition are refused; the other one goes on; all of it can be read.
    refused = run("app", "exec", *data, "orders", "--command", json.dumps(order(7)), code=6)
    assert "partition 1" in refused.stderr, refused.stderr
    assert run("app", "plog", *data, "orders", "--partition", "1").stdout.startswith("1\t7\t1\t")
    assert len(rows(run("app", "records", *data, "orders", "--workspace", "7", "--json"))) == 3
    status = rows(run("seq", "status", *data, "orders", "--json", code=6))
    assert [r["partition"] for r in status] == [0, 1] and "ends at 1" in status[1]["last_error"], status


def misses_what_is_not_there():
    data, apps = place()
    for verb in (["app", "exec"], ["app", "plog"], ["seq", "status"]):
        assert "no application" in run(*verb, *data, "orders", code=3).stderr
    assert not os.path.exists(apps)
    run("app", "plog", *data, "../x", code=2)


def orders(apps, count, code=0):
    result = subprocess.run([f"{os.environ['PAWL_BUILD']}/examples/orders", "--orders", str(count), "--workspaces",
                             "20", apps], env=ENV, timeout=WAIT_S, text=True, capture_output=True,
                            check=False)
    assert result.returncode == code, (result.returncode, result.stdout[-500:], result.stderr[-500:])
    made = next(line for line in result.stdout.splitlines() if "orders made" in line).split()
    return int(made[0]), int(made[3])


def survives_kill():
    data, apps = place()
    if not POSTGRES:
        os.mkdir(apps)
    with subprocess.Popen([f"{os.environ['PAWL_BUILD']}/examples/orders", "--orders", "1000000", "--workspaces", "20",
                           apps], env=ENV, stdout=subprocess.PIPE) as shop_keeper:
        assert shop_keeper.stdout.readline() == b"order 1000\n"
        shop_keeper.kill()
    made, known = orders(apps, 2000)
    assert made + known == 2000 and known >= 900, (made, known)
    assert orders(apps, 2000) == (0, 2000)
    for workspace in range(1, 21):
        run("seq", "verify", *data, "orders", "--workspace", str(workspace))


def is_where_it_is_said_to_be():
    """--apps, else --data, else DATABASE_URL, else the settings."""
    flags, apps = place()
    descriptor = ["--descriptor", json.dumps(SHOP)]
    run("app", "create", "--apps", apps, *descriptor)
    run("app", "exec", *flags, "orders", text=lines(order(7)))
    url = {**ENV, "DATABASE_URL": apps if POSTGRES else "postgres://nobody@127.0.0.1:1/none"}
    there = subprocess.run([PAWL, "app", "wlog", "orders", "--workspace", "7"], env=url, cwd=TOP, timeout=WAIT_S,
                           text=True, capture_output=True, check=False)
    assert there.returncode == (0 if POSTGRES else 5), there
    assert POSTGRES or "127.0.0.1" in there.stderr, there.stderr
    run("app", "wlog", "--data", tempfile.mkdtemp(dir=TOP), "--apps", apps, "orders", "--workspace", "7")
    assert "memory:" in run("app", "create", "--apps", "memory:", *descriptor, code=2).stderr
    for elsewhere in ("ftp://x", "sqlite:x"):
        assert f"'{elsewhere}'" in run("app", "create", "--apps", elsewhere, *descriptor, code=2).stderr
        assert not os.path.exists(os.path.join(TOP, elsewhere))


def keeps_space_free():
    """An engine that does not survive a full disk stops before; a server looks after its own."""
    data = shop()
    full = {**ENV, "PAWL_STORE_FREE_SPACE_MIN": "900TiB"}
    descriptor = ["--descriptor", json.dumps({**SHOP, "name": "more", "id": 2})]
    said = [run("app", "exec", *data, "orders", text=lines(order(7)), env=full, code=0 if POSTGRES else 5),
            run("app", "create", *data, *descriptor, env=full, code=0 if POSTGRES else 5)]
    assert POSTGRES or all("store.free_space_min" in result.stderr for result in said), said
    if not POSTGRES:  # neither the application nor the place of it
        assert sorted(os.listdir(os.path.join(data[1], "apps"))) == ["orders", "orders.anchor"]
        nowhere = os.path.join(TOP, "no-room")
        run("app", "create", "--data", nowhere, *descriptor, env=full, code=5)
        assert not os.path.exists(nowhere)
    run("app", "exec", *data, "orders", text=lines(order(7)))
    run("app", "exec", *data, "orders", "--store-free-space-min", "1MiB", text=lines(order(7)))
    for reader in (["app", "plog"], ["app", "records"], ["app", "wlog"], ["app", "seq"], ["seq", "verify"]):
        which = ["--partition", "1"] if reader[1] == "plog" else ["--workspace", "7"]
        assert run(*reader, *data, "orders", *which, env=full).stdout, reader


def tells_what_is_in_the_way():
    """Readers and `create` say the same of a directory that is none, is closed, or has lost a file."""
    if POSTGRES:
        return
    data = shop()
    create = ["app", "create", *data, "--descriptor", json.dumps(SHOP)]
    readers = [["app", "plog", *data, "orders"], ["seq", "verify", *data, "orders", "--workspace", "7"]]
    directory = f"{data[1]}/apps/orders"
    os.rename(f"{directory}/CURRENT", f"{directory}/gone")
    for args in [create, *readers]:
        assert "no file 'CURRENT'" in run(*args, code=6).stderr, args
    os.rename(f"{directory}/gone", f"{directory}/CURRENT")
    os.chmod(data[1], 0)
    for args in [create, *readers]:
        result = subprocess.run(powerless([PAWL, *args]), env=ENV, cwd=TOP, timeout=WAIT_S, text=True,
                                capture_output=True, check=False)
        assert result.returncode == 1 and "denied" in result.stderr, result
    os.chmod(data[1], 0o700)
    shutil.rmtree(directory)
    with open(directory, "w", encoding="utf-8"):
        pass
    for args in [create, *readers]:
        assert "directory" in run(*args, code=2).stderr, args


def says_what_a_database_refuses():
    if not POSTGRES:
        return
    url = shop()[1]
    both = run("app", "exec", "--apps", f"{url}&app=other", "orders", text=lines(order(7)), code=2)
    assert "app=other" in both.stderr and "app=orders" in both.stderr, both.stderr
    run("app", "exec", "--apps", f"{url}&app=orders", "orders", text=lines(order(7)))
    subprocess.run(["psql", "-q", "-c", "CREATE ROLE guest LOGIN", url], check=True)
    guest = url.replace("//pawl@", "//guest@")
    denied = run("app", "plog", "--apps", guest, "orders", code=1)
    assert "'guest' has no USAGE on schema 'pawl'" in denied.stderr, denied.stderr


def names_its_columns():
    data = shop()
    run("app", "exec", *data, "orders", text=lines(order(7)))
    with open(os.path.join(os.environ["PAWL_SOURCE"], "docs", "app.md"), encoding="utf-8") as file:
        document = file.read()
    for verb in (["app", "records"], ["app", "seq"], ["seq", "verify"]):
        columns = list(rows(run(*verb, *data, "orders", "--workspace", "7", "--json"))[0])
        text = " ".join(run(*verb, "--help").stdout.split())
        assert all(name in text for name in columns), (columns, text)
        row = next(line for line in document.splitlines() if line.startswith("|") and f"`{' '.join(verb)}`" in line)
        assert all(name in row for name in columns), (columns, row)


def checks_everything():
    """seq verify --all: a row a part, one a finding; exit code 6, and 5 when it cannot be checked."""
    data = shop()
    run("app", "exec", *data, "orders", text=lines(order(7), order(8), order(9), order(7, key="k")))
    whole = rows(run("seq", "verify", *data, "orders", "--all", "--json"))
    assert {row["part"]: row["entries"] for row in whole}["plog"] == 4, whole
    assert all(row["whole"] for row in whole) and len(whole) == 9, whole
    text = " ".join(run("seq", "verify", "--help").stdout.split())
    assert all(name in text for name in whole[0]), text
    assert "'--workspace N' or '--all'" in run("seq", "verify", *data, "orders", code=2).stderr
    run("seq", "verify", *data, "orders", "--all", "--workspace", "7", code=2)
    rebuilt = rows(run("seq", "rebuild", *data, "orders", "--json"))
    assert [row["partition"] for row in rebuilt] == [0, 1] and rebuilt[1]["log_end"] == 3, rebuilt
    run("seq", "verify", *data, "orders", "--all")
    if POSTGRES:
        return
    with open(f"{data[1]}/apps/orders.anchor", "a", encoding="utf-8") as file:
        file.write("x")
    wrong = run("seq", "verify", *data, "orders", "--all", "--json", code=6)
    assert [row["part"] for row in rows(wrong) if not row["whole"]] == ["anchor"], wrong.stdout
    assert "orders.anchor" in run("seq", "rebuild", *data, "orders", code=6).stderr


def refuses_copies():
    """An application lives in the directory of its name: a copy beside it is another's."""
    if POSTGRES:
        return
    data = shop()
    run("app", "exec", *data, "orders", text=lines(order(7)))
    apps = f"{data[1]}/apps"
    shutil.copytree(f"{apps}/orders", f"{apps}/backup-orders")
    for args in (["app", "exec", *data, "backup-orders"], ["app", "plog", *data, "backup-orders"],
                 ["seq", "verify", *data, "backup-orders", "--all"]):
        assert "'backup-orders' holds application 'orders'" in run(*args, text=lines(order(7)), code=4).stderr, args
    second = run("app", "create", *data, "--descriptor", json.dumps({**SHOP, "name": "bills"}), code=4)
    assert "application 'orders'" in second.stderr and not os.path.exists(f"{apps}/bills"), second.stderr
    assert rows(run("app", "exec", *data, "orders", text=lines(order(7))))[0]["plog_offset"] == 2
    os.rename(f"{apps}/orders.anchor", f"{apps}/anchor")
    second = run("app", "create", *data, "--descriptor", json.dumps({**SHOP, "name": "bills"}), code=4)
    assert "in the same directory" in second.stderr and not os.path.exists(f"{apps}/bills"), second.stderr
    os.rename(f"{apps}/anchor", f"{apps}/orders.anchor")
    shutil.rmtree(f"{apps}/orders")
    again = run("app", "create", *data, "--descriptor", json.dumps(SHOP), code=6)
    assert f"{apps}/orders.anchor" in again.stderr, again.stderr
    os.unlink(f"{apps}/orders.anchor")
    os.rename(f"{apps}/backup-orders", f"{apps}/orders")
    assert rows(run("app", "exec", *data, "orders", text=lines(order(7))))[0]["plog_offset"] == 2


def waits_for_another_process():
    data = shop()
    with subprocess.Popen([PAWL, "app", "exec", *data, "orders"], env=ENV, cwd=TOP, text=True, bufsize=1,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdin.write(lines(order(7)))
        assert json.loads(holder.stdout.readline())["plog_offset"] == 1
        refused = run("app", "wlog", *data, "orders", "--workspace", "7", "--store-busy-timeout", "0s", code=5)
        assert str(holder.pid) in refused.stderr, refused.stderr
        with subprocess.Popen([PAWL, "app", "wlog", *data, "orders", "--workspace", "7", "--store-busy-timeout",
                               f"{WAIT_S}s"], env=ENV, cwd=TOP, text=True, stdout=subprocess.PIPE) as reader:
            try:
                reader.wait(0.3)
                raise AssertionError("it did not wait")
            except subprocess.TimeoutExpired:
                holder.stdin.close()
            assert reader.communicate(timeout=WAIT_S)[0].count("\n") == 1
            assert reader.returncode == 0 == holder.wait(WAIT_S)


it("an application is created once, and again only as it was", creates_once)
it("a bad descriptor is refused and leaves nothing behind", refuses_descriptors)
it("each command is answered by a line, one with the same key the same", answers_lines)
it("records and logs are shown", shows_what_is_there)
it("a line that is refused is named, and those before it are done", names_the_bad_line)
it("lines with keys are executed many at a time, and answered in their order", executes_many_at_a_time)
it("a line that is refused is named, and those behind it are known by their keys", names_the_bad_line_of_many)
it("whoever waits for an answer before the next line gets it", answers_whoever_waits)
it("numbers are proven from the log", proves_numbers)
it("what is damaged is named, and the rest can be read", shows_what_is_damaged)
it("an application that is not there is not found, and not made", misses_what_is_not_there)
it("orders that were made are known after a kill, and no number is missing", survives_kill)
it("applications are where --apps, --data or DATABASE_URL says", is_where_it_is_said_to_be)
it("commands are refused when less space is free than the settings say", keeps_space_free)
it("what is in the way of an application is named", tells_what_is_in_the_way)
it("what a database refuses is named", says_what_a_database_refuses)
it("help and documentation name the columns", names_its_columns)
it("everything is checked against everything, and numbers are made anew", checks_everything)
it("a copy of an application and a second one with its id are refused by name", refuses_copies)
it("an application that another process has is waited for", waits_for_another_process)
shutil.rmtree(TOP)
done()
