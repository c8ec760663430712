#!/usr/bin/env python3
"""Documentation cannot rot: what it shows is run, and what it says comes out is compared.

A block fenced as ```console test is a session. Lines that start with "$ " are typed (go on with
"> "), the lines behind them are what must come out, standard error included. "..." stands for anything
within a line, a line of its own for any lines. All blocks of a file are one session in an empty
directory, where $? is the last command's. A block fenced as ```c test is a program that must compile
and run without output.

  test_docs.py            every document
  test_docs.py --show F   what really comes out, to be pasted
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PAWL_BUILD") or f"{SOURCE}/build-plain"
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
from tap import done, it  # noqa: E402

MARK = "\x01"


class Command:
    """One command of a session, where it stands, and what must come out of it."""

    def __init__(self, text, line):
        self.text = text
        self.line = line
        self.expected = []


def blocks(text, kind):
    """(number of its first line, lines) of each block that is fenced as ```KIND test."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.strip() == f"```{kind} test"]
    return [(start + 2, lines[start + 1:lines.index("```", start + 1)]) for start in starts]


def commands(text):
    found = []
    for first, lines in blocks(text, "console"):
        for number, line in enumerate(lines, first):
            if line.startswith("$ "):
                found.append(Command(line[2:], number))
            elif line.startswith("> ") and not found[-1].expected:
                found[-1].text += "\n" + line[2:]
            else:
                found[-1].expected.append(line)
    return found


def session(session_commands, directory):
    """What comes out of each command."""
    script = "set -uo pipefail\nstatus=0\n"
    for command in session_commands:
        script += f"printf '{MARK}\\n'\n(exit $status)\neval {shlex.quote(command.text)} 2>&1\nstatus=$?\n"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PAWL_", "DATABASE_URL"))}
    env.update(PATH=f"{BUILD}:{BUILD}/examples:{env['PATH']}", HOME=directory, NO_COLOR="1", COLUMNS="100",
               LC_ALL="C.UTF-8")
    run = subprocess.run(["bash", "-c", script], cwd=directory, env=env, timeout=240, text=True, check=False,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    outputs = run.stdout.split(f"{MARK}\n")[1:]
    assert len(outputs) == len(session_commands), run.stdout
    return outputs


def pattern(expected):
    """"..." alone stands for any lines, within a line for anything in it."""
    whole = ""
    for line in expected:
        whole += r"(?:[^\n]*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", "[^\n]*") + "\n"
    return re.compile(whole)


def check_session(path):
    with open(path, encoding="utf-8") as file:
        found = commands(file.read())
    outputs = in_scratch(session, found)
    for command, output in zip(found, outputs):
        assert pattern(command.expected).fullmatch(output), (
            f"{os.path.relpath(path, SOURCE)}:{command.line}: $ {command.text}\n"
            f"the document says\n{chr(10).join(command.expected)}\nbut it is\n{output}")


def check_program(lines, directory):
    with open(f"{directory}/program.c", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    flags = [f"-I{SOURCE}/include", f"-L{BUILD}/src", "-lpawl", f"-Wl,-rpath,{BUILD}/src",
             "-Wl,--allow-shlib-undefined"]
    subprocess.run(["cc", "-Wall", "-Werror", "-o", f"{directory}/program", f"{directory}/program.c", *flags],
                   check=True)
    run = subprocess.run([f"{directory}/program"], cwd=directory, check=True, text=True, timeout=60,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert run.stdout == "", run.stdout


def check_links(path, text):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert os.path.exists(os.path.join(os.path.dirname(path), target)), f"{path}: no file '{target}'"


def in_scratch(function, *arguments):
    directory = tempfile.mkdtemp(prefix="pawl-docs-")
    try:
        return function(*arguments, directory)
    finally:
        shutil.rmtree(directory)


def rots():
    """The test itself must notice: another output, a missing line, another exit code."""
    assert in_scratch(session, [Command("echo one; echo two", 1)]) == ["one\ntwo\n"]
    assert pattern(["one", "two"]).fullmatch("one\ntwo\n")
    for wrong in (["one"], ["one", "three"], ["one", "two", "three"], []):
        assert not pattern(wrong).fullmatch("one\ntwo\n"), wrong
    assert pattern(["...", "t...o"]).fullmatch("one\ntwo\n")
    assert not pattern(["t...o"]).fullmatch("t\no\n")
    assert in_scratch(session, [Command("false", 1), Command("echo $?", 2)]) == ["", "1\n"]


def show(path):
    with open(path, encoding="utf-8") as file:
        found = commands(file.read())
    for command, output in zip(found, in_scratch(session, found)):
        print(f"$ {command.text}\n{output}", end="")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--show":
        show(sys.argv[2])
        return
    it("notices what differs", rots)
    documents = sorted(glob.glob(f"{SOURCE}/*.md") + glob.glob(f"{SOURCE}/docs/*.md"))
    plain = os.environ.get("PAWL_TEST_VARIANT", "plain") == "plain"  # a sanitizer's runtime must come first
    for path in documents:
        name = os.path.relpath(path, SOURCE)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        it(f"{name}: links lead somewhere", lambda p=path, t=text: check_links(p, t))
        if commands(text):
            it(f"{name}: commands do what it says", lambda p=path: check_session(p))
        for first, lines in blocks(text, "c") if plain else []:
            it(f"{name}:{first}: the program works", lambda p=lines: in_scratch(check_program, p))
    done()


if __name__ == "__main__":
    main()
