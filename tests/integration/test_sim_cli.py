#!/usr/bin/env python3
"""`pawl sim` as people meet it: a verdict with counts, a trace of what failed, the same for the same seed."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-sim-")
ENV = environment(TOP)
FAULTS = ["kill", "power", "calls", "connection", "outage", "clock", "stream", "stores"]
DEFECTS = {"ack-before-fsync": 5, "process-counter-id": 5, "confirm-before-commit": 5, "no-fencing": 60, "ack-all": 250,
           "same-epoch": 250, "wal-replaced": 250, "conflict-as-duplicate": 5}


def run(*args, code=0, env=None):
    result = subprocess.run([PAWL, "sim", *args], env={**ENV, **(env or {})}, cwd=TOP, timeout=240, text=True,
                            capture_output=True, check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-500:])
    return check_advice(result)


def counts_and_repeats():
    first, again = [json.loads(run("--seeds", "30", "--json").stdout) for _ in range(2)]
    assert first == again, (first, again)
    assert (first["seeds"], first["broken"], first["violations"], first["trace"]) == (30, 0, [], ""), first
    assert first["published"] > 30 * 15 and first["delivered"] > 0 and first["failed"] > 0 and first["faults"] > 300, first
    assert json.loads(run("--seeds", "30", "--seed", "31", "--json").stdout)["trace_hash"] != first["trace_hash"]
    people = run("--seeds", "30").stdout
    assert "broken     0" in people and first["trace_hash"] in people, people


def lets_people_choose_faults():
    calm = json.loads(run("--seeds", "10", "--faults", "none", "--json").stdout)
    assert (calm["faults"], calm["on_record"]) == (0, 0), calm
    for fault in FAULTS:
        told = json.loads(run("--seeds", "10", "--faults", fault, "--json").stdout)
        assert told["broken"] == 0 and told["faults"] + (fault == "clock") > 0, (fault, told)
    assert "no fault is called 'fire'" in run("--faults", "kill,fire", code=2).stderr
    run("--seeds", "0", code=2)


def finds_what_is_planted_and_prints_its_trace():
    for defect, seeds in DEFECTS.items():
        result = run("--plant", defect, "--seeds", str(seeds), "--json", code=6)
        told = json.loads(result.stdout)
        assert told["broken"] > 0 and told["violations"][0]["violation"], (defect, told)
        assert "published" in told["trace"], told["trace"][:200]
    people = run("--plant", "process-counter-id", "--seeds", "2", code=6)
    assert "WAL appends" in people.stdout and "seed 1: " in people.stdout, people.stdout[-500:]
    assert "run 'pawl sim --seed 1 --seeds 1'" in people.stderr, people.stderr


def judges_the_settings_of_this_node():
    unsafe = json.loads(run("--seeds", "10", "--json", code=6, env={"CONSUMER_WAL_SYNC_WRITES": "false"}).stdout)
    assert unsafe["broken"] == 10, unsafe
    # An event that only needs a minute is given up after one retry.
    hasty = json.loads(run("--seeds", "30", "--json", code=6, env={"CONSUMER_WAL_MAX_RETRIES": "1"}).stdout)
    assert any("only needed time" in each["violation"] for each in hasty["violations"]), hasty["violations"]
    assert not os.path.exists(os.path.join(TOP, ".local")), "it touched a data directory"


it("counts what it did, the same for the same seeds", counts_and_repeats)
it("lets people choose the faults", lets_people_choose_faults)
it("finds what is planted, and prints the trace", finds_what_is_planted_and_prints_its_trace)
it("judges the settings of this node", judges_the_settings_of_this_node)
done()
