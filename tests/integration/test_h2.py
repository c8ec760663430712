#!/usr/bin/env python3
"""net/h2 with clients and servers that are not ours: @grpc/grpc-js both ways, curl, nghttp and h2load."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from tap import done, it, skip  # noqa: E402

PEER = os.path.join(os.environ["PAWL_BUILD"], "tests", "h2_peer")
GRPC = os.path.join(os.environ["PAWL_SOURCE"], "tests", "grpc")
TOP = tempfile.mkdtemp(prefix="pawl-h2-")
WAIT_S = 240
MESSAGE = os.path.join(TOP, "message")


class Server:
    """A process that prints its address and ends with its standard input."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        assert self.address, "it did not start"
        return self.address

    def __exit__(self, *_):
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        assert code == 0, f"ended with {code}"


def run(*command):
    result = subprocess.run(command, text=True, capture_output=True, check=False, timeout=WAIT_S, errors="replace")
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def node(*arguments):
    if not os.path.isdir(os.path.join(GRPC, "node_modules")):
        skip("tests/grpc/node_modules is not there: scripts/bootstrap --test")
    return ("node", os.path.join(GRPC, "peer.mjs"), *arguments)


def command(name):
    if shutil.which(name) is None:
        skip(f"no {name}: scripts/bootstrap --test")
    return name


def test_js_client():
    arguments = node()
    with Server(PEER, "serve") as address:
        run(*arguments, "client", address)


def test_js_client_tls():
    arguments = node()
    with Server(PEER, "serve", TOP) as address:
        run(*arguments, "client", address, TOP)


def check_calls(lines, deadline):
    expected = [
        r"/test.Echo/Unary 5 hello", r"/test.Echo/Big 3000000 b+", r"/test.Echo/Fail 9 .*FAILED_PRECONDITION \(what 100% ü\)",
        deadline, r"/test.Echo/Nothing 12 .*", r"/test.Echo/Count code 0 messages 2000 bytes 2000000 details 0",
        r"/test.Echo/Join code 0 messages 1 bytes 200 details 0", r"/test.Echo/Chat code 0 messages 101 bytes 203 details 0",
        r"/test.Echo/Fail code 9 messages 0 bytes 0 details 3"]
    assert len(lines) == len(expected), lines
    for line, pattern in zip(lines, expected):
        assert re.fullmatch(pattern, line), f"'{line}' is not '{pattern}'"


def test_js_server():
    with Server(*node("server")) as address:
        check_calls(run(PEER, "call", address).splitlines(), r"/test.Echo/Who 18 Bearer secret true")


def test_js_server_tls():
    with Server(*node("server", TOP)) as address:
        check_calls(run(PEER, "call", address, TOP).splitlines(), r"/test.Echo/Who 18 Bearer secret true")


def early(*arguments):
    """curl 7.88 may wait for ever when its answer is whole before it has sent its own bytes: it is asked again."""
    for _ in range(20):
        result = subprocess.run((arguments[0], "--max-time", "3", *arguments[1:]), text=True, capture_output=True, check=False,
                                timeout=WAIT_S, errors="replace")
        if result.returncode == 0:
            return result.stdout
    raise AssertionError(f"{arguments}: {result.stdout}{result.stderr}")


def test_curl():
    curl = (command("curl"), "-s", "-i", "--http2-prior-knowledge", "-H", "content-type: application/grpc")
    with Server(PEER, "serve") as address:
        out = run(*curl, "-H", "te: trailers", "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/Unary")
        assert "HTTP/2 200" in out and "hello" in out and "grpc-status: 0" in out, out
        out = early(*curl, "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/None")
        assert "grpc-status: 12" in out, out
        out = early(*curl, "-X", "GET", f"http://{address}/test.Echo/Unary")
        assert "HTTP/2 405" in out, out
        out = early(*curl[:-1], "content-type: text/plain", "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/Unary")
        assert "HTTP/2 415" in out, out
        out = early(*curl, "-H", "grpc-timeout: soon", "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/Unary")
        assert "grpc-status: 13" in out and "grpc-timeout" in out, out
        out = early(*curl, "-H", "grpc-timeout: 20m", "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/Hold")
        assert "grpc-status: 4" in out, out
        out = early(*curl, "-H", "grpc-encoding: br", "--data-binary", "@" + MESSAGE, f"http://{address}/test.Echo/Unary")
        assert "grpc-status: 12" in out and "grpc-accept-encoding: identity,gzip" in out, out


def test_curl_tls():
    with Server(PEER, "serve", TOP) as address:
        port = address.rpartition(":")[2]
        curl = (command("curl"), "-s", "-i", "--cacert", os.path.join(TOP, "ca.pem"), "-H", "content-type: application/grpc",
                "--data-binary", "@" + MESSAGE, f"https://localhost:{port}/test.Echo/Who")
        identity = ("--cert", os.path.join(TOP, "client.pem"), "--key", os.path.join(TOP, "client.key"))
        out = run(curl[0], *identity, *curl[1:])
        assert "HTTP/2 200" in out and "peer=agent-7" in out, out
        result = subprocess.run(curl, capture_output=True, check=False, timeout=WAIT_S)
        assert result.returncode != 0, "it was served without a certificate"
        result = subprocess.run((curl[0], "--http1.1", *identity, *curl[1:]), capture_output=True, check=False, timeout=WAIT_S)
        assert result.returncode != 0, "HTTP/1.1 was served"


def test_nghttp():
    with Server(PEER, "serve") as address:
        out = run(command("nghttp"), "-v", "-H", "content-type: application/grpc", "-d", MESSAGE, f"http://{address}/test.Echo/Unary")
        assert "grpc-status: 0" in out and "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):128" in out, out
        assert "SETTINGS_MAX_HEADER_LIST_SIZE(0x06):16384" in out, out


def test_h2load():
    with Server(PEER, "serve") as address:
        out = run(command("h2load"), "-n", "20000", "-c", "8", "-m", "50", "-d", MESSAGE,
                  "-H", "content-type: application/grpc", f"http://{address}/test.Echo/Unary")
        assert "20000 succeeded, 0 failed" in out, out


with open(MESSAGE, "wb") as file:
    file.write(b"\0\0\0\0\5hello")
run(PEER, "certificates", TOP)
it("serves @grpc/grpc-js: unary, streams, statuses, deadlines, gzip, health, reflection", test_js_client)
it("serves @grpc/grpc-js with mutual TLS", test_js_client_tls)
it("calls a server of @grpc/grpc-js", test_js_server)
it("calls a server of @grpc/grpc-js with mutual TLS", test_js_server_tls)
it("serves curl, and refuses what is not gRPC", test_curl)
it("serves curl with mutual TLS, and nobody without a certificate", test_curl_tls)
it("announces its limits to nghttp", test_nghttp)
it("loses no call under h2load", test_h2load)
shutil.rmtree(TOP, ignore_errors=True)
done()
