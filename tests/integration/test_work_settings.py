#!/usr/bin/env python3
"""Lease, heartbeat, stale and sweep of `pawl work`: by pawl.yaml, by variable, by flag, and refused;
and the numbers as metrics."""
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, environment, wait_until  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-work-settings-")
ENV = environment(TOP)
WAIT_S = 240
RUN = ("run", "--type", "a", "--exec", "true")


def place(yaml=None):
    data = tempfile.mkdtemp(dir=TOP)
    if yaml is not None:
        with open(os.path.join(data, "pawl.yaml"), "w", encoding="utf-8") as file:
            file.write(yaml)
    return data


def command(data, *args):
    return [PAWL, "work", *args[:1], "--data", data, *args[1:]]


def work(data, *args, code=0, env=None):
    result = subprocess.run(command(data, *args), env={**ENV, **(env or {})}, cwd=data,
                            timeout=WAIT_S, capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:],
                                       result.stderr[-800:])
    return result


def rows(data, *args, **more):
    return [json.loads(line) for line in work(data, *args, "--json", **more).stdout.splitlines()]


def refused(data, *args, says, env=None):
    said = work(data, *args, code=2, env=env).stderr.decode()
    assert all(word in said for word in says), (says, said)


def start(data, *args, env=None):
    return subprocess.Popen(command(data, *args), env={**ENV, **(env or {})}, cwd=data,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def stop(run):
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=WAIT_S)


def lease_hours(data, *flags, env=None):
    """How long the lease of a new item is, from its claim on."""
    work(data, "submit", "--type", "a", env=env)
    item = rows(data, "claim", "--holder", "ada", *flags, env=env)[0]
    ends, began = (datetime.datetime.fromisoformat(item[key].replace("Z", "+00:00"))
                   for key in ("lease_expires_at", "heartbeat_at"))
    return round((ends - began).total_seconds() / 3600, 3)


def leases():
    assert lease_hours(place()) == round(5 / 60, 3)
    data = place("work:\n  lease: 2h\n")
    assert lease_hours(data) == 2
    assert lease_hours(data, env={"PAWL_WORK_LEASE": "3h"}) == 3
    assert lease_hours(data, "--work-lease", "4h", env={"PAWL_WORK_LEASE": "3h"}) == 4
    assert lease_hours(data, "--lease", "5h", env={"PAWL_WORK_LEASE": "3h"}) == 5
    key = subprocess.run([PAWL, "idem", "begin", "--data", data, "k", "--request", "1", "--json"],
                         env=ENV, cwd=data, check=True, capture_output=True)
    ends = datetime.datetime.fromisoformat(
        json.loads(key.stdout)["lease_expires_at"].replace("Z", "+00:00"))
    left = ends - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(hours=1) < left <= datetime.timedelta(hours=2), left


def stale_count(data, *flags, env=None):
    return [row["count"] for row in rows(data, "stats", *flags, env=env)
            if (row["what"], row["status"]) == ("leases", "stale")][0]


def stale():
    data = place("work:\n  stale: 1s\n")
    work(data, "submit", "--type", "a")
    work(data, "claim", "--holder", "ada", "--lease", "1h")
    wait_until(lambda: stale_count(data) == 1, "the lease is stale by pawl.yaml")
    assert stale_count(data, env={"PAWL_WORK_STALE": "1h"}) == 0
    assert stale_count(data, "--stale", "500ms", env={"PAWL_WORK_STALE": "1h"}) == 1
    assert stale_count(data, "--stale", "2h", env={"PAWL_WORK_STALE": "1s"}) == 0


# Six in WAIT_S are not to be had at the default of a minute.
ENOUGH = 6


def beats_of(data, *flags, env=None):
    work(data, "submit", "--type", "a", "--id", "x")
    run = start(data, "run", "--type", "a", "--exec", "exec sleep 1000", "--lease", "1h", *flags,
                env=env)
    seen = set()

    def beaten():
        seen.add(rows(data, "show", "x")[0]["heartbeat_at"])
        return len(seen - {None}) > ENOUGH
    wait_until(beaten, "the lease is extended often")
    stop(run)


def heartbeats():
    beats_of(place(), "--heartbeat", "200ms")
    beats_of(place(), env={"PAWL_WORK_HEARTBEAT": "200ms"})
    beats_of(place("work:\n  heartbeat: 200ms\n"))


def sweeps():
    """Also while there is no room for another command."""
    data = place("work:\n  sweep: 200ms\n")
    work(data, "submit", "--type", "a", "--id", "x")
    run = start(data, "run", "--type", "a", "--exec", ": >ready; exec sleep 1000")
    wait_until(lambda: os.path.exists(os.path.join(data, "ready")), "the command runs")
    taken_back = []

    def lose():
        item = f"b{len(taken_back)}"
        work(data, "submit", "--type", "b", "--id", item)
        work(data, "claim", "--holder", "ada", "--type", "b", "--lease", "1ms")
        return item

    lost = [lose()]

    def swept():
        if rows(data, "show", lost[0])[0]["status"] != "in_progress":
            taken_back.append(lost[0])
            if len(taken_back) < ENOUGH:
                work(data, "cancel", lost[0])
                lost[0] = lose()
        return len(taken_back) == ENOUGH
    wait_until(swept, "leases that ran out are taken back often")
    stop(run)


def bad_values():
    data = place()
    work(data, "submit", "--type", "a")
    for flag in ("--lease", "--heartbeat", "--sweep"):
        for value in ("0", "0s", "8d", "-1s", "soon", "5"):
            refused(data, *RUN, flag, value, says=[flag])
    refused(data, *RUN, "--lease", "4999ms", "--heartbeat", "1s",
            says=["'--lease' is '4999ms'; allowed: a duration from 5s to 7d"])
    refused(data, "claim", "--holder", "ada", "--lease", "0s", says=["'--lease'", "from 1ms to 7d"])
    for verb, least in (("run", "5s"), ("claim", "1ms"), ("heartbeat", "1ms")):
        told = " ".join(work(data, verb, "--help").stdout.decode().split())
        assert f"from {least} to 7d; instead of work.lease" in told, told
    for value in ("0", "8d", "soon"):
        refused(data, "stats", "--stale", value, says=["--stale"])
    for key in ("lease", "heartbeat", "stale", "sweep"):
        name = "PAWL_WORK_" + key.upper()
        for value in ("0", "0s", "8d", "soon"):
            refused(data, "stats", env={name: value}, says=[name, "allowed: a duration from"])
            yaml = place(f"work:\n  {key}: {value}\n")
            refused(yaml, "stats", says=["pawl.yaml:2", f"work.{key}", "allowed: a duration from"])
    assert rows(data, "list", "--status", "pending")  # nothing has run


def heartbeats_that_come_too_late():
    data = place()
    work(data, "submit", "--type", "a")
    late = "is not shorter than the lease"
    refused(data, *RUN, "--heartbeat", "5m", says=["'--heartbeat' is 5m, which " + late, "of 5m"])
    refused(data, *RUN, "--heartbeat", "10s", "--lease", "10s", says=["'--heartbeat' is 10s", late])
    refused(data, *RUN, env={"PAWL_WORK_HEARTBEAT": "10m"},
            says=["environment variable PAWL_WORK_HEARTBEAT: work.heartbeat is 10m", late])
    yaml = place("work:\n  heartbeat: 1m\n")
    refused(yaml, *RUN, "--lease", "1m", says=["pawl.yaml:2: work.heartbeat is 1m", late])
    assert rows(data, "list", "--status", "pending")
    work(data, *RUN, "--lease", "5s")  # what nobody chose fits the lease
    assert rows(data, "list", "--status", "completed")


def metrics():
    data = place()
    work(data, "stats", "--prometheus", code=3)  # there is no store, and none is made
    assert os.listdir(data) == []
    work(data, "submit", "--type", "a")
    work(data, "claim", "--holder", "ada")
    said = work(data, "stats", "--prometheus").stdout.decode()
    assert '\npawl_work_items{work_type="a",status="in_progress"} 1\n' in said, said
    assert "\npawl_work_stale_leases 0\n" in said, said
    wait_until(lambda: b"\npawl_work_stale_leases 1\n" in work(
        data, "stats", "--prometheus", "--stale", "1ms").stdout, "the lease is stale")
    refused(data, "stats", "--prometheus", "--json", says=["'--prometheus' and '--json'"])


it("leases for as long as the settings say", leases)
it("counts stale leases by the settings", stale)
it("sends heartbeats as often as the settings say", heartbeats)
it("takes leases back as often as the settings say", sweeps)
it("refuses bad values by name", bad_values)
it("refuses a heartbeat that would come too late", heartbeats_that_come_too_late)
it("prints metrics", metrics)
done()
