#!/usr/bin/env python3
"""Edits stored rows below pawl, one kind at a time, and judges what pawl makes of it.

  torture_sabotage.py app rocksdb|postgres         every trust level
  torture_sabotage.py ledger|work sqlite|postgres
  torture_sabotage.py stall postgres               the server is stopped before each command
    --rounds N   only so many kinds, drawn by --seed N
    --list       the kinds

Every command ends with one of pawl's exit codes. What an edit changed is named by verify, or reads as it did. What was
acknowledged after it is there. Applications: at trust levels 0 and 1 no number of their own sequence is given twice and
no event overwritten, at level 0 no record either, and at level 2 `seq verify --all` names every edit.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "sabotage"), os.path.join(HERE, "..", "lib")]
os.environ.setdefault("PAWL_BUILD", os.path.join(HERE, "..", "..", "build-plain"))
import apps  # noqa: E402
import stall  # noqa: E402
import tables  # noqa: E402
from command import PAWL, environment, wants_postgres  # noqa: E402

SUBJECTS = {"ledger": tables.Ledger, "work": tables.Work}


def subjects(what, store, env, top):
    """Those with their kinds: (label, subject)."""
    if what == "app":
        kept = (apps.Databases if store == "postgres" else apps.Directories)(PAWL, env, top)
        return [(f"level {level}: ", apps.Apps(kept, level)) for level in (0, 1, 2)]
    if what == "stall":
        return [("", stall.Stall(PAWL, env, top))]
    kept = (tables.Databases if store == "postgres" else tables.Files)(PAWL, env, top)
    return [("", SUBJECTS[what](kept))]


def judge(subject, kind):
    try:
        return subject.round(*kind)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as error:
        return [f"{type(error).__name__}: {error} {getattr(error, 'stderr', '')}"]


def play(rounds, jobs):
    """TAP, a line a kind; (kinds that were tried, refused by the database, judged wrong)."""
    tried, refused, wrong = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (label, _, kind), found in zip(rounds, pool.map(lambda r: judge(r[1], r[2]), rounds)):
            tried += 1
            refused += found is None
            wrong += bool(found)
            print(f"{'not ok' if found else 'ok'} {tried} - {label}{kind[0]}{' (refused)' if found is None else ''}")
            for each in found or []:
                print(f"#   {each}".replace("\n", "\n#   "), flush=True)
    return tried, refused, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["app", "ledger", "stall", "work"])
    parser.add_argument("store", choices=["rocksdb", "sqlite", "postgres"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    wants_postgres()
    top = tempfile.mkdtemp(prefix="pawlsabotage")
    env = environment(top, PAWL_STORE_FREE_SPACE_MIN="0", PAWL_LOG_LEVEL="error")
    try:
        rounds = [(label, subject, kind) for label, subject in subjects(options.what, options.store, env, top)
                  for kind in subject.kinds if options.only in label + kind[0]]
        if options.list:
            print("\n".join(label + kind[0] for label, _, kind in rounds))
            return 0
        if options.rounds:
            rounds = random.Random(options.seed).sample(rounds, min(options.rounds, len(rounds)))
        tried, refused, wrong = play(rounds, 1 if options.what == "stall" else os.cpu_count())
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"1..{tried}")
    print(f"# result rounds={tried} faults={tried - refused} lost={wrong}")
    return 1 if wrong or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
