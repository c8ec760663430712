"""What tests of the command `pawl` begin with: where it is, what it runs in, and a PostgreSQL server.

    from command import PAWL, environment, wait_until

    TOP = tempfile.mkdtemp(prefix="pawl-work-")
    ENV = environment(TOP)
"""
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time

PAWL = os.path.join(os.environ["PAWL_BUILD"], "pawl")

# An application for tests, which are about something else.
SHOP = {"name": "orders", "id": 1, "partitions": 2,
        "kinds": [{"name": "shop", "id": 1, "sequences": [{"name": "invoice", "id": 16, "initial": 1000}]}]}

_KEPT = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH")


def environment(home, **more):
    """Nothing of this machine's settings: only what programs need, and what sanitizers are told."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", **kept, **more}


def powerless(command):
    """The command without root's right to pass over permissions. It stays the same user: another one may
    not be able to read the program or its libraries, where the checkout is in a closed directory."""
    caps = "-dac_override,-dac_read_search"
    drop = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"] if os.geteuid() == 0 else []
    return [*drop, *command]


def check_advice(result):
    """Exit code 6 stops a person: its message ends with what to do next, once."""
    if result.returncode == 6:
        error = result.stderr if isinstance(result.stderr, str) else result.stderr.decode(errors="replace")
        advice = re.search(r"[;:] [^;]*\b(run|restore|remove|repairs|add|create|reset|go on|look for|fix)\b", error)
        assert advice, f"exit code 6 without advice: {error}"
        assert error.count("restore DIR") <= 1, f"advice twice: {error}"
    return result


def wants_postgres():
    """Whether the test was started with `postgres`; then it goes on beside a server, with DATABASE_URL."""
    if "postgres" not in sys.argv[1:]:
        return False
    if "DATABASE_URL" not in os.environ:
        server = os.path.join(os.environ["PAWL_BUILD"], "tests", "with_postgres")
        again = subprocess.run([server, *sys.argv], check=False)
        if again.returncode == 77:
            print("1..0 # SKIP no PostgreSQL is installed")
        sys.exit(0 if again.returncode == 77 else again.returncode)
    return True


def new_database(directory, template=None):
    """The URL of an empty database, or of a copy of another one, which is called as the directory is."""
    name = "d" + os.path.basename(directory).lower().replace("_", "x")
    copied = f' TEMPLATE "{template}"' if template else ""
    subprocess.run(["psql", "-q", "-c", f'CREATE DATABASE "{name}"{copied}', os.environ["DATABASE_URL"]], check=True)
    base, _, rest = os.environ["DATABASE_URL"].partition("?")
    return base.rpartition("/")[0] + "/" + name + ("?" + rest if rest else "")


class StalledPostgres:
    """The server of these tests with all its processes stopped: it takes connections and answers nothing."""

    def __enter__(self):
        first = int(os.environ["PAWL_TEST_POSTGRES_PID"])
        os.kill(first, signal.SIGSTOP)  # it starts no more children then
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as file:
            self.pids = [first, *map(int, file.read().split())]
        self.tell(self.pids[1:], signal.SIGSTOP)

    def __exit__(self, *_):
        self.tell(reversed(self.pids), signal.SIGCONT)

    @staticmethod
    def tell(pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was on its way out
                os.kill(pid, number)


def wait_until(holds, what, seconds=240):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        select.select([], [], [], 0.01)
