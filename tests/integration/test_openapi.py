#!/usr/bin/env python3
"""The description of the API (OpenAPI 3.1), read by tools that are not ours: a validator, and a generator of clients."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
import answers  # noqa: E402
from tap import done, it, skip  # noqa: E402

PAWL = os.path.join(os.environ["PAWL_BUILD"], "pawl")
TOP = tempfile.mkdtemp(prefix="pawl-openapi-")
ENV = {**os.environ, "PAWL_STORE_FREE_SPACE_MIN": "0"}
WAIT_S = 120
DOCUMENT = answers.document(os.path.join(TOP, "openapi.json"))


class Node:
    """A running `pawl serve`."""

    def __init__(self):
        self.process = subprocess.Popen([PAWL, "serve", "--data", os.path.join(TOP, "data"), "--listen", "127.0.0.1:0", "--json"],
                                        env=ENV, cwd=TOP, text=True, stdout=subprocess.PIPE)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(WAIT_S) == 0


def run(*command):
    result = subprocess.run(command, cwd=TOP, env=ENV, text=True, capture_output=True, check=False, timeout=WAIT_S)
    assert result.returncode == 0, result.stdout + result.stderr


def test_valid():
    answers.tool("validate.mjs", DOCUMENT)


def test_invalid():
    """The validator is one: it refuses a document that is wrong."""
    with open(DOCUMENT, encoding="utf-8") as file:
        wrong = json.load(file)
    wrong["paths"]["/livez"]["get"]["responses"]["200"] = {"content": 7}
    path = os.path.join(TOP, "wrong.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(wrong, file)
    try:
        answers.tool("validate.mjs", path)
    except AssertionError:
        return
    raise AssertionError("a wrong document passed")


def test_same():
    with Node() as node, urllib.request.urlopen(node.url + "/v1/openapi.json", timeout=WAIT_S) as answer:
        with open(DOCUMENT, encoding="utf-8") as file:
            assert json.load(answer) == json.load(file)


def test_client():
    tools = os.path.join(answers.TOOLS, "node_modules")
    if not os.path.isdir(tools):
        skip("tests/openapi/node_modules is not there: scripts/bootstrap --test")
    os.symlink(tools, os.path.join(TOP, "node_modules"))
    shutil.copy(os.path.join(answers.TOOLS, "client.ts"), TOP)
    with open(os.path.join(TOP, "package.json"), "w", encoding="utf-8") as file:
        file.write('{"type": "module"}\n')
    run(os.path.join(tools, ".bin", "openapi-typescript"), DOCUMENT, "--default-non-nullable=false", "-o", os.path.join(TOP, "api.d.ts"))
    run(os.path.join(tools, ".bin", "tsc"), "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
        "--skipLibCheck", "--types", "node", "client.ts")
    with Node() as node:
        run("node", "client.js", node.url)


it("is valid", test_valid)
it("is read by a validator that notices mistakes", test_invalid)
it("is the same from a node and from the command line", test_same)
it("makes a client that drives work and applications", test_client)
shutil.rmtree(TOP, ignore_errors=True)
done()
