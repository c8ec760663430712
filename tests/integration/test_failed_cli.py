#!/usr/bin/env python3
"""`pawl failed` as people and programs meet it: listed, shown, mended, resolved, given up."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from command import PAWL, check_advice, environment  # noqa: E402
from tap import done, it  # noqa: E402

TOP = tempfile.mkdtemp(prefix="pawl-failed-")
ENV = environment(TOP)
WAIT_S = 240
COLUMNS = '[{"name": "n", "type": "BIGINT", "required": true}]'


def run(*args, code=0):
    result = subprocess.run([PAWL, *args], env=ENV, cwd=TOP, timeout=WAIT_S, text=True, capture_output=True,
                            check=False)
    assert result.returncode == code, (args, result.returncode, result.stdout[-500:], result.stderr[-500:])
    return check_advice(result)


def lines(*args):
    return [json.loads(line) for line in run(*args).stdout.splitlines()]


def place(name="orders", data=None):
    """A pipeline of four lines, two of which failed."""
    directory = tempfile.mkdtemp(dir=TOP)
    data = data or ["--data", f"{directory}/data"]
    with open(f"{directory}/{name}.jsonl", "w", encoding="utf-8") as file:
        file.write('{"n": 1}\nbroken\n{"n": "two"}\n{"n": 4}\n')
    deliver(data, f"{directory}/{name}.jsonl", name)
    return data, f"{directory}/{name}.jsonl"


def deliver(data, path, name="orders"):
    return json.loads(run("deliver", "--json", *data, "--from", path, "--into", name, "--columns", COLUMNS,
                          "--drain").stdout)


def lists_and_shows():
    data, _ = place()
    events = lines("failed", "list", *data, "--json")
    assert [event["failure_reason"] for event in events] == ["unmappable", "not_json"], events
    assert lines("failed", "list", *data, "--json", "--oldest-first")[0]["failure_reason"] == "not_json"
    assert events[0]["event_payload"] == {"n": "two"} and events[0]["status"] == "pending", events[0]
    assert events[1]["payload_encoding"] == "base64", events[1]
    assert len(lines("failed", "list", *data, "--json", "-n", "1")) == 1
    assert len(lines("failed", "list", *data, "--json", "--reason", "not_json")) == 1
    assert not lines("failed", "list", *data, "--json", "--status", "resolved")
    assert not lines("failed", "list", *data, "--json", "--until", "2026-01-01T00:00:00Z")
    assert lines("failed", "export", *data, "--since", "2026-01-01T00:00:00Z") == events[::-1]
    people = run("failed", "list", *data).stdout
    assert events[0]["id"] in people and "unmappable" in people, people
    shown = run("failed", "show", *data, events[0]["id"]).stdout
    assert '{"n": "two"}' in shown and "failure_layer" in shown, shown
    assert lines("failed", "show", *data, "--json", events[0]["id"]) == [events[0]]


def mends_and_delivers_one():
    data, path = place()
    event = lines("failed", "list", *data, "--json")[0]
    again = run("failed", "retry", *data, event["id"], code=1)
    assert "failed again 1" in again.stdout and "1 of 1 failed again" in again.stderr, again
    result = lines("failed", "retry", *data, "--json", event["id"], "--payload", '{"n": 2}', "--by", "kim",
                   "--notes", "spelled out")[0]
    assert (result["delivered"], result["refused"]) == (1, 0), result
    after = lines("failed", "show", *data, "--json", event["id"])[0]
    assert (after["status"], after["resolution"], after["resolved_by"]) == ("resolved", "delivered", "kim"), after
    assert after["event_payload"] == {"n": "two"} and after["edited_payload"] == {"n": 2}, after
    assert (after["retry_count"], after["resolution_notes"]) == (2, "spelled out"), after
    assert "resolved already" in run("failed", "retry", *data, event["id"], code=4).stderr
    status = deliver(data, path)
    assert (status["delivered"], status["failed"], status["accepted"]) == (3, 1, 4), status


def reads_a_payload_from_a_file():
    data, _ = place()
    event = lines("failed", "list", *data, "--json")[1]
    with open(f"{TOP}/mended.json", "w", encoding="utf-8") as file:
        file.write('{"n": 2}\n')
    run("failed", "retry", *data, event["id"], "--payload", f"@{TOP}/mended.json")
    assert lines("failed", "show", *data, "--json", event["id"])[0]["edited_payload"] == {"n": 2}


def counts_before_it_acts_on_many():
    data, _ = place()
    assert lines("failed", "abandon", *data, "--json", "--all") == [{"matched": 2}]
    assert "2 match, and nothing was done" in run("failed", "abandon", *data, "--all").stdout
    run("failed", "abandon", *data, "--all", "--expect", "3", code=4)
    assert [event["status"] for event in lines("failed", "list", *data, "--json")] == ["pending", "pending"]
    assert "closed 1" in run("failed", "abandon", *data, "--all", "--reason", "not_json", "--expect", "1").stdout
    assert "closed 2" in run("failed", "resolve", *data, "--all", "--expect", "2").stdout
    after = lines("failed", "list", *data, "--json")
    assert {event["status"] for event in after} == {"resolved"} and after[0]["resolved_by"], after


def finds_the_pipeline_of_an_event():
    data, _ = place()
    place("bills", data)
    events = lines("failed", "list", *data, "--json")
    assert sorted({event["pipeline"] for event in events}) == ["bills", "orders"], events
    run("failed", "resolve", *data, events[-1]["id"])
    assert len(lines("failed", "list", *data, "--json", "--status", "pending")) == 3
    assert "say which with --pipeline" in run("failed", "abandon", *data, "--all", "--expect", "3", code=2).stderr
    run("failed", "abandon", *data, "--all", "--pipeline", "bills", "--expect", "2")


def refuses_what_makes_no_sense():
    data, _ = place()
    event = lines("failed", "list", *data, "--json")[0]
    run("failed", "show", *data, "nothing", code=2)
    run("failed", "show", *data, "0198f0a0-5c2e-8000-8000-000000000000", code=3)
    run("failed", "list", *data, "--pipeline", "nosuch", code=3)
    run("failed", "list", *data, "--since", "yesterday", code=2)
    run("failed", "list", *data, "--status", "lost", code=2)
    run("failed", "retry", *data, code=2)
    run("failed", "retry", *data, event["id"], "--all", code=2)
    run("failed", "retry", *data, event["id"], "--payload", "{", code=2)
    run("failed", "retry", *data, event["id"], "--notes", "x" * 4097, code=2)
    run("failed", "retry", *data, "--all", "--expect", "2", "--payload", "{}", code=2)
    assert lines("failed", "show", *data, "--json", event["id"])[0]["retry_count"] == 0


it("lists and shows", lists_and_shows)
it("mends and delivers one", mends_and_delivers_one)
it("reads a payload from a file", reads_a_payload_from_a_file)
it("counts before it acts on many", counts_before_it_acts_on_many)
it("finds the pipeline of an event", finds_the_pipeline_of_an_event)
it("refuses what makes no sense", refuses_what_makes_no_sense)
done()
