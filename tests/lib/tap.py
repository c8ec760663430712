"""TAP for tests that are Python programs.

    from tap import it, skip, done

    it("says what must hold", lambda: check())   # passes unless it raises
    done()                                       # at the end
"""
import sys
import traceback

_count = 0
_failed = 0


class Skip(Exception):
    """Raised by a test that cannot run here; with CI set a skip is a failure (scripts/test)."""


def skip(reason):
    raise Skip(reason)


def it(name, test):
    global _count, _failed
    _count += 1
    try:
        test()
    except Skip as reason:
        print(f"ok {_count} - {name} # SKIP {reason}", flush=True)
    except Exception:  # noqa: BLE001 - whatever it raised, the test failed and the next one runs
        _failed += 1
        print(f"not ok {_count} - {name}", flush=True)
        for line in traceback.format_exc().splitlines():
            print(f"# {line}", flush=True)
    else:
        print(f"ok {_count} - {name}", flush=True)


def done():
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)
