#!/usr/bin/env python3
"""The public headers as programs see them.

docs/api.md names every function of include/pawl, and none that does not exist. Programs of the last release
(tests/data/api/VERSION) are compiled against today's headers: changes.txt there says, for each name that a
compiler complains of, what a program has to change. An unlisted break fails, and so does a listed one that is none.

  test_api.py          both
  test_api.py --show   what the compiler complains of, as lines for changes.txt
"""
import glob
import os
import re
import shlex
import subprocess
import sys

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
from tap import done, it  # noqa: E402

COMPILER = shlex.split(os.environ.get("CC", "gcc"))
NAME = re.compile(r"[‘'\"](?:struct |const )?((?:pawl|PAWL)_\w+)")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def functions(header):
    """The names of its functions, in order."""
    text = re.sub(r"/\*.*?\*/", " ", text_of(header), flags=re.DOTALL)
    return re.findall(r"PAWL_API\s+(?:PAWL_MUST_USE\s+)?[\w\s*]*?\b(pawl_\w+)\(", text)


def check_documented():
    documented = set(re.findall(r"`(pawl_\w+)`", text_of(f"{SOURCE}/docs/api.md")))
    public = {name for header in glob.glob(f"{SOURCE}/include/pawl/*.h") for name in functions(header)}
    assert len(public) > 100, "the headers were not read"
    missing = sorted(public - documented)
    assert not missing, f"not in docs/api.md: {', '.join(missing)}"
    types = {name for name in documented - public if not is_in_headers(name)}
    assert not types, f"docs/api.md names what no header has: {', '.join(sorted(types))}"


def is_in_headers(name):
    return any(re.search(rf"\b{name}\b", text_of(header)) for header in glob.glob(f"{SOURCE}/include/pawl/*.h"))


def complaints(program):
    """The names of pawl that an error or warning is about: those that it quotes, else those of the line."""
    command = COMPILER + ["-std=gnu17", "-Wall", "-Wextra", "-fsyntax-only", "-fno-diagnostics-show-caret",
                          "-fdiagnostics-color=never", f"-I{SOURCE}/include", program]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    lines = text_of(program).splitlines()
    found = set()
    for match in re.finditer(r"^(.*?):(\d+):\d+: (?:error|warning): (.*)$", said.stderr, flags=re.MULTILINE):
        if os.path.basename(match[1]) != os.path.basename(program):
            continue
        names = NAME.findall(match[3]) or re.findall(r"\bpawl_\w+(?=\()", lines[int(match[2]) - 1])
        found.add(names[0] if names else "initializer" if match[3].startswith("initializ") else match[3])
    return found


def listed(directory):
    """{(program, name): what to change}"""
    changes = {}
    for line in text_of(f"{directory}/changes.txt").splitlines():
        if line and not line.startswith("#"):
            program, name, what = (part.strip() for part in line.split(":", 2))
            assert what, f"changes.txt does not say what to change for {name}"
            changes[program, name] = what
    return changes


def check_release(directory):
    programs = sorted(glob.glob(f"{directory}/*.c"))
    assert programs, "no program of that release"
    broken = {(os.path.basename(p), name) for p in programs for name in complaints(p)}
    expected = {key for key in listed(directory) if key[0] != "*"}
    unlisted = sorted(broken - expected)
    assert not unlisted, "breaks that changes.txt does not list: " + "; ".join(map(": ".join, unlisted))
    gone = sorted(expected - broken)
    assert not gone, "changes.txt lists what compiles: " + "; ".join(map(": ".join, gone))


RELEASES = sorted(glob.glob(f"{SOURCE}/tests/data/api/*/"))
if sys.argv[1:] == ["--show"]:
    for release in RELEASES:
        for source in sorted(glob.glob(f"{release}/*.c")):
            for complaint in sorted(complaints(source)):
                print(f"{os.path.basename(source)}: {complaint}:")
    sys.exit(0)
it("docs/api.md names every public function", check_documented)
for release in RELEASES:
    it(f"programs of {os.path.basename(release.rstrip('/'))} compile, but for the listed changes",
       lambda directory=release.rstrip("/"): check_release(directory))
done()
