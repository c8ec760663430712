"""Checks what a node answers against its own description (OpenAPI), whatever else a test wants of the answers.

    connection = answers.Connection("127.0.0.1", port)   # an http.client.HTTPConnection
    it("answers what its OpenAPI document declares", answers.check)
"""
import http.client
import json
import os
import subprocess
import tempfile

from tap import skip

TOOLS = os.path.join(os.environ["PAWL_SOURCE"], "tests", "openapi")
_seen = []


class _Answer:
    """A response whose body was read."""

    def __init__(self, response):
        self._response = response
        self._body = response.read()

    def __getattr__(self, name):
        return getattr(self._response, name)

    def read(self):
        return self._body


class Connection(http.client.HTTPConnection):
    _asked = None

    def putrequest(self, method, url, *args, **kwargs):
        self._asked = (method, url)
        return super().putrequest(method, url, *args, **kwargs)

    def getresponse(self):
        response = super().getresponse()
        kind = response.getheader("Content-Type") or ""
        if kind.startswith("text/event-stream"):
            return response
        answer = _Answer(response)
        method, target = self._asked
        _seen.append({"method": method, "target": target, "status": answer.status, "type": kind,
                      "body": answer.read().decode()})
        return answer


def tool(name, *args):
    """Runs a program of tests/openapi; what it prints."""
    if not os.path.isdir(os.path.join(TOOLS, "node_modules")):
        skip("tests/openapi/node_modules is not there: scripts/bootstrap --test")
    result = subprocess.run(["node", os.path.join(TOOLS, name), *args], text=True, capture_output=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def document(path):
    """Writes the description of the API there."""
    pawl = os.path.join(os.environ["PAWL_BUILD"], "pawl")
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run([pawl, "serve", "--openapi"], stdout=file, check=True, timeout=120)
    return path


def check():
    assert _seen, "no answer was recorded"
    with tempfile.TemporaryDirectory(prefix="pawl-answers-") as top:
        lines = os.path.join(top, "answers")
        with open(lines, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(answer) + "\n" for answer in _seen)
        tool("check.mjs", document(os.path.join(top, "openapi.json")), lines)
