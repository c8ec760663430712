#!/usr/bin/env python3
"""Delivery by the real program, from a real nats-server, while things fail.

  torture_deliver.py kill            server and `pawl deliver` are killed with -9, 20,000 events between two kills
  torture_deliver.py power consumer  the disk under WAL and DuckDB loses its power
  torture_deliver.py power broker    the disk under the server does; what it loses is on record
  torture_deliver.py power broker outbox   the same with `pawl publish`, which publishes it again
  torture_deliver.py stdin           cat events.jsonl | pawl deliver --from -, killed and run again
    --rounds N   faults
    --sync TIME  the server's sync_interval, or "always"; as it comes: two minutes
    --events N   in all, of `kill`
    --control    without fsync: it has to lose

Events are numbered; 1 % is poison, some come twice, some with another payload (deliver/events.py). What is there in the
end is compared with what the producer knows to be published.
"""
import argparse
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("PAWL_SOURCE", os.path.join(HERE, "..", ".."))
os.environ.setdefault("PAWL_BUILD", os.path.join(HERE, "..", "..", "build-plain"))
sys.path[:0] = [os.path.join(HERE, "deliver"), os.path.join(HERE, "..", "lib")]
import rounds  # noqa: E402
from command import environment  # noqa: E402
from tap import Skip  # noqa: E402

RUNS = {"kill": rounds.kill, "power consumer": rounds.power_consumer, "power broker": rounds.power_broker,
        "power broker outbox": rounds.power_broker_outbox, "stdin": rounds.stdin}
BAD = ("lost", "duplicated", "invented", "broken", "aborted", "void")


def passed(totals, control):
    if control:
        return totals["lost"] > 0 and totals["duplicated"] == 0 and totals["aborted"] == 0
    return totals["faults"] > 0 and not any(totals[name] for name in BAD)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int)
    parser.add_argument("--longest", type=float, default=4, help="seconds until a kill, at most")
    parser.add_argument("--sync")
    parser.add_argument("--random", action="store_true", help="power consumer: any subset of the writes may survive")
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    name = " ".join(options.what)
    if name not in RUNS:
        parser.error(f"no run is called '{name}'")
    top = tempfile.mkdtemp(prefix="pawl-torture-deliver-")
    env = environment(top, PAWL_STORE_FREE_SPACE_MIN="0", PAWL_LOG_LEVEL="warning")
    print("1..1", flush=True)
    try:
        totals = RUNS[name](top, env, options)
    except Skip as reason:
        print(f"ok 1 - deliver {name} # SKIP {reason}")
        return 0
    finally:
        if not os.environ.get("PAWL_KEEP"):
            shutil.rmtree(top, ignore_errors=True)
    print("# result " + " ".join(f"{key}={value}" for key, value in totals.items()))
    is_ok = passed(totals, options.control)
    what = "loses without fsync, as it must" if options.control else "loses and doubles nothing"
    print(f"{'ok' if is_ok else 'not ok'} 1 - deliver {name} {what}")
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
