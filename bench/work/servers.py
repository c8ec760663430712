"""The servers that the peers need: each in a directory and on a free loopback port of its own.

A server ends with its `with` block, and with this process however that ends. What keeps a server from
starting is a Missing, with a sentence that says what to do.
"""
import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

START_S_MAX = 60
STOP_S_MAX = 60
PORT_ATTEMPTS_MAX = 5
PR_SET_PDEATHSIG = 1


class Missing(Exception):
    """A peer, or something it needs, is not installed."""


def program(name, hint="scripts/bootstrap --all installs it"):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Missing(f"no {name}; {hint}")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def launch(argv, directory, user, end_signal):
    libc = ctypes.CDLL(None)
    log = open(f"{directory}/log", "ab")  # pylint: disable=consider-using-with
    with log:
        return subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=user,
                                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, end_signal))


def stop(process, end_signal):
    if process.poll() is None:
        process.send_signal(end_signal)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def became_ready(process, port):
    deadline = time.monotonic() + START_S_MAX
    while process.poll() is None and time.monotonic() < deadline:
        if answers(port):
            return True
        time.sleep(0.01)
    return False


@contextlib.contextmanager
def serving(make_argv, directory, user=None, end_signal=signal.SIGTERM):
    """Runs make_argv(port). Somebody may take the port before the server does: then on another one."""
    process = None
    try:
        for attempt in range(PORT_ATTEMPTS_MAX):
            port = free_port()
            process = launch(make_argv(port), directory, user, end_signal)
            if became_ready(process, port):
                break
            stop(process, end_signal)
            if attempt == PORT_ATTEMPTS_MAX - 1:
                with open(f"{directory}/log", encoding="utf-8", errors="replace") as log:
                    raise RuntimeError(f"{make_argv(port)[0]} does not start; its log ends: {log.read()[-400:]}")
        yield port
    finally:
        if process is not None:
            stop(process, end_signal)


def beanstalkd(directory):
    """Every change is fsynced to the binlog before it is answered."""
    name = program("beanstalkd")
    return serving(lambda port: [name, "-l", "127.0.0.1", "-p", str(port), "-b", directory, "-f", "0"], directory)


def redis(directory, durable=True):
    """Every change is fsynced to the append-only file before it is answered; or nothing is ever written."""
    name = program("redis-server")
    keeping = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]
    return serving(lambda port: [name, "--bind", "127.0.0.1", "--port", str(port), "--dir", directory, "--save", "",
                                 *(keeping if durable else ["--appendonly", "no"])], directory)


def unprivileged_user():
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise Missing("neither user 'postgres' nor 'nobody' exists, and PostgreSQL does not run as root")


def postgres_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: int(p.split("/")[4]))
    if found:
        return os.path.dirname(found[-1])
    return os.path.dirname(program("initdb", "install PostgreSQL's server"))


@contextlib.contextmanager
def postgres(directory):
    """A cluster with fsync and synchronous_commit on, as it comes but for its address; yields a URL without the
    database's name."""
    programs, user = postgres_programs(), unprivileged_user()
    data = f"{directory}/data"
    if user is not None:
        shutil.chown(directory, user)
    made = subprocess.run([f"{programs}/initdb", "--username=pawl", "--auth=trust", "--encoding=UTF8", "--locale=C",
                           "--no-instructions", data], cwd=directory, user=user, capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        raise RuntimeError(f"initdb: {made.stderr}")
    with open(f"{data}/postgresql.conf", "a", encoding="utf-8") as settings:
        settings.write(f"listen_addresses = '127.0.0.1'\nunix_socket_directories = '{directory}'\n"
                       "fsync = on\nsynchronous_commit = on\nmax_connections = 100\n")

    def argv(port):
        return [f"{programs}/postgres", "-D", data, "-p", str(port)]

    with serving(argv, directory, user, signal.SIGINT) as port:
        url = f"postgresql://pawl@127.0.0.1:{port}"
        wait_for_queries(url)
        yield url


def wait_for_queries(url):
    """The port answers before recovery has ended."""
    deadline = time.monotonic() + START_S_MAX
    while subprocess.run([program("psql"), "-XqAt", "-d", f"{url}/postgres?sslmode=disable", "-c", "SELECT 1"],
                         capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:
            raise RuntimeError("PostgreSQL does not become ready")
        time.sleep(0.05)
