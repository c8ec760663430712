#!/usr/bin/env python3
"""scripts/run, which is `make run`: what it shows is true, and Ctrl-C leaves nothing behind."""
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from tap import done, it  # noqa: E402

RUN = f"{os.environ['PAWL_SOURCE']}/scripts/run"
DEADLINE_S = 120


def start(*args, tmp):
    """In a group of its own, as from a terminal: Ctrl-C goes to all of it."""
    env = {**os.environ, "TMPDIR": tmp}
    env.pop("DATABASE_URL", None)
    return subprocess.Popen([RUN, "--pause", "5", *args], env=env, text=True, start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


def read_until(process, text):
    """What it printed up to a line with `text`."""
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(f"it ended without '{text}':\n{said}")


def is_alone(process):
    """Nothing of its group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def with_run(test, *args):
    with tempfile.TemporaryDirectory(prefix="pawl-test-run-") as tmp:
        process = start(*args, tmp=tmp)
        try:
            test(process, tmp)
        finally:
            if not is_alone(process):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def shows_everything(process, tmp):
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, said
    offsets = [int(n) for n in re.findall(r"^ *(\d+)  turn ", said, re.MULTILINE)]
    assert offsets == list(range(1, len(offsets) + 1)), said  # each event once
    assert re.search(r"turn \d+ was half written; this is attempt 2", said), said
    assert "pawl.turn.abandon" in said, said
    assert f"monitor: {len(offsets)} events" in said, said
    assert re.search(r'"replayed":[1-9]', said), said
    assert f"\nok: {len(offsets)} events" in said, said
    assert re.search(r"^  yes +ledger ", said, re.MULTILINE), said
    assert os.listdir(tmp) == [], os.listdir(tmp)
    assert is_alone(process)


def keeps_its_data(process, tmp):
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, said
    kept = re.search(r"^kept: (.*)$", said, re.MULTILINE).group(1)
    assert os.path.dirname(kept) == tmp and "ledger.sqlite" in os.listdir(kept), said


def interrupted_at(text):
    def test(process, tmp):
        read_until(process, text)
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130, (process.returncode, rest)
        assert os.listdir(tmp) == [], os.listdir(tmp)
        assert is_alone(process)
    return test


def forever_ends_with_a_proof(process, tmp):
    read_until(process, "kill -9")
    read_until(process, "pawl ledger prove")
    read_until(process, "kill -9")  # and again
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, (process.returncode, rest)
    saw = int(re.search(r"^monitor: (\d+) events", rest, re.MULTILINE).group(1))
    # A commit that kill -9 met between its sync and its index is seen by whoever opens the ledger next: one
    # event, or two of an action.
    assert int(re.search(r"^ok: (\d+) events", rest, re.MULTILINE).group(1)) - saw in (0, 1, 2), rest
    assert "What works today" in rest, rest
    assert os.listdir(tmp) == [], os.listdir(tmp)
    assert is_alone(process)


def refuses(process, tmp):
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2 and "unknown argument '--fast'" in said, said
    assert os.listdir(tmp) == []


it("shows a village that is killed, resumes, is proven and verified", lambda: with_run(shows_everything))
it("keeps its data when asked to", lambda: with_run(keeps_its_data, "--keep"))
it("Ctrl-C while the village is founded leaves nothing", lambda: with_run(interrupted_at("A village on")))
it("Ctrl-C in the middle of a turn leaves nothing", lambda: with_run(interrupted_at("turn 2 ")))
it("Ctrl-C behind the kill leaves nothing", lambda: with_run(interrupted_at("kill -9")))
it("Ctrl-C while it proves leaves nothing", lambda: with_run(interrupted_at("pawl ledger prove")))
it("--forever goes on until Ctrl-C and closes with a proof", lambda: with_run(forever_ends_with_a_proof, "--forever"))
it("names an unknown argument", lambda: with_run(refuses, "--fast"))
done()
