#!/usr/bin/env python3
"""The pawl command as its users meet it: exit codes, messages, pipes, help, completion."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PAWL_SOURCE"], "tests", "lib"))
from tap import done, it, skip  # noqa: E402

BUILD = os.environ["PAWL_BUILD"]
PAWL = os.path.join(BUILD, "pawl")
HOME = tempfile.mkdtemp(prefix="pawl-cli-")
ENV = {"PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": HOME, "LANG": "C.UTF-8"}
for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        ENV[name] = os.environ[name]


def run(*args, code=0, env=None, **more):
    """Runs pawl in an empty home and checks its exit code."""
    done_run = subprocess.run([PAWL, *args], env={**ENV, **(env or {})}, cwd=HOME, timeout=60,
                              capture_output=True, check=False, **more)
    assert done_run.returncode == code, (args, done_run.returncode, done_run.stdout, done_run.stderr)
    return done_run


def refuses(text, *args, code=2, **more):
    """One line on standard error that has `text` in it, nothing on standard output."""
    result = run(*args, code=code, **more)
    error = result.stderr.decode()
    assert text in error, error
    assert error.startswith("pawl: ") and error.count("\n") == 1 and error.endswith("\n"), error
    assert result.stdout == b"", result.stdout


def bad_usage():
    refuses("no command 'confg' in 'pawl'; did you mean 'config'?", "confg")
    refuses("no command 'shwo' in 'pawl config'; did you mean 'show'?", "config", "shwo")
    refuses("no flag '--jsno' in 'pawl version'; did you mean '--json'?", "version", "--jsno")
    refuses("it is a flag of 'pawl doctor'", "--strict", "version")
    refuses("'--data' needs a value", "doctor", "--data")
    refuses("'--data' is empty", "doctor", "--data=")
    refuses("'--json' takes no value", "version", "--json=1")
    refuses("'--log-level' is 'loud'; allowed: debug, info, warning, error", "version",
            "--log-level", "loud")
    refuses("SHELL is 'tcsh'; allowed: bash, zsh, fish", "completion", "tcsh")
    refuses("'pawl completion' needs SHELL", "completion")
    refuses("'pawl version' takes no arguments, but got 'x'", "version", "x")
    refuses("no command 'nothing' in 'pawl config'", "help", "config", "nothing")
    refuses("no command 'x' in 'pawl version', which has no commands", "help", "version", "x")
    refuses("no command 'x' in 'pawl config show', which has no commands", "help", "config", "show",
            "x", "y")


def odd_arguments():
    refuses(r"no command '\x1B[31mred'", "\x1b[31mred")
    refuses(r"no command '\xFF'", b"\xff")
    refuses(r"no flag '--a\xFF'", b"--a\xff")
    refuses("no command ''", "")
    refuses("no command 'x", "x" * 100000)
    refuses(r"COMMAND is not UTF-8: '\xC3('", "help", b"\xc3(")


def json_errors():
    error = json.loads(run("confg", "--json", code=2).stderr)["error"]
    assert error["status"] == "INVALID" and error["exit_code"] == 2, error
    assert "did you mean" in error["message"], error
    error = json.loads(run(b"\xff\"\\", "--json", code=2).stderr)["error"]
    assert r'\xFF"' in error["message"], error
    error = json.loads(run("--json", code=2).stderr)["error"]
    assert "needs a command" in error["message"], error


def short_help():
    result = run(code=2)
    assert b"Commands:" in result.stderr and result.stdout == b"", result
    assert b"pawl: 'pawl' needs a command" in result.stderr, result.stderr
    assert b"check" in run("config", code=2).stderr


def commands():
    """Every command that is not hidden, by the path that help wants."""
    rows = [json.loads(line) for line in run("__examples").stdout.splitlines()]
    return rows, sorted({row["command"] for row in rows})


def help_everywhere():
    for command in commands()[1]:
        words = command.split()[1:]
        asked = run(*words, "--help").stdout
        assert asked.startswith(b"Usage: " + command.encode()), asked
        assert asked == run("help", *words).stdout == run("-h", *words).stdout
        assert b"\nExamples:\n" in asked, command
        for line in run(*words, "--help", env={"COLUMNS": "60"}).stdout.decode().splitlines():
            assert len(line) <= 60 or line.startswith(("Usage:", "  echo", "  ls", "  pawl", "  seq", "  source")), line
    assert b"--store-busy-timeout" in run("help", "settings").stdout


def examples():
    ran = 0
    for row in commands()[0]:
        assert row["line"] is not None, f"{row['command']} has no example"
        if row["runs"]:
            place = tempfile.mkdtemp(dir=HOME)
            result = subprocess.run(["bash", "-c", row["line"]], env=ENV, cwd=place, timeout=60,
                                    capture_output=True, check=False)
            assert result.returncode == 0, (row, result.stderr)
            ran += 1
    assert ran >= 8, ran


def versions():
    text = run("version").stdout.decode()
    assert text == run("--version").stdout.decode() == run("doctor", "--version").stdout.decode()
    answer = json.loads(run("version", "--json").stdout)
    assert re.fullmatch(r"\d+\.\d+\.\d+", answer["version"]), answer
    for part in ("SQLite", "libpq", "DuckDB", "RocksDB", "jansson", "libyaml", "OpenSSL",
                 "libmicrohttpd"):
        assert re.match(r"\d+\.\d+", answer["parts"][part]), answer
        assert part in text
    assert list(answer["parts"])[-1] == "compiler", answer


def closed_output():
    def ends(redirection, code, error):
        result = subprocess.run(["bash", "-c", f"exec '{PAWL}' help settings {redirection}"],
                                env=ENV, capture_output=True, check=False, timeout=60)
        assert result.returncode == code, (redirection, result)
        assert error in result.stderr, (redirection, result.stderr)
    ends(">/dev/full", 1, b"pawl: write standard output: No space left on device\n")
    ends(">&-", 1, b"pawl: write standard output: Bad file descriptor\n")
    ends("<&- 2>&-", 0, b"")
    ends(">&- 2>&-", 1, b"")
    ends(">/dev/full 2>/dev/full", 1, b"")


def reader_that_leaves():
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([PAWL, "help", "settings"], env=ENV, stdout=write, check=False,
                            stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert result.returncode == 0 and result.stderr == b"", result


def manual():
    pages = sorted(os.listdir(os.path.join(BUILD, "man1")))
    top = sorted({command.split()[1] for command in commands()[1] if " " in command})
    assert pages == sorted(["pawl.1"] + [f"pawl-{name}.1" for name in top]), pages
    for page in pages:
        shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l",
                                os.path.join(BUILD, "man1", page)],
                               env=ENV, capture_output=True, check=False, timeout=60)
        assert shown.returncode == 0 and shown.stderr == b"", (page, shown.stderr)
        assert len(shown.stdout) > 500, page


BASH = """
source "$1"
words=("${@:2}")
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
_pawl 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash_completion():
    script = os.path.join(BUILD, "pawl.bash")
    subprocess.run(["bash", "-n", script], check=True)

    def complete(*words):
        result = subprocess.run(["bash", "-c", BASH, "bash", script, *words], env=ENV, check=True,
                                capture_output=True, timeout=60)
        return result.stdout.decode().split()
    assert complete("pawl", "conf") == ["config"]
    assert complete("pawl", "config", "") == ["check", "show"]
    assert complete("pawl", "doctor", "--str") == ["--strict"]
    assert complete("pawl", "--log-level", "de") == ["debug"]
    assert complete("pawl", "--log-level", "=", "w") == ["warning"]  # as bash splits --log-level=w
    assert complete("pawl", "--log-level", "=") == ["debug", "info", "warning", "error"]
    assert complete("pawl", "--json", "completion", "z") == ["zsh"]
    assert complete("pawl", "help", "config", "s") == ["show"]
    assert complete("pawl", "nonsense", "--x", "") != []
    assert complete("pawl", "__") == []


ZSH = """
compdef() { }
_describe() { print -l -- ${(P)3} }
_files() { print files }
source $1
words=("${(@)argv[2,-1]}") CURRENT=$#words
_pawl
"""


def zsh_completion():
    if shutil.which("zsh") is None:
        skip("zsh is not installed")
    script = os.path.join(BUILD, "_pawl")
    subprocess.run(["zsh", "-n", script], check=True)

    def complete(*words):
        result = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", script, *words], env=ENV,
                                check=False, capture_output=True, timeout=60)
        return result.stdout.decode().splitlines(), result.stderr
    assert complete("pawl", "conf")[0] == ["config:check and show the settings"], complete("pawl", "conf")
    assert complete("pawl", "--log-level", "de")[0] == ["debug:"]
    assert complete("pawl", "--config", "")[0] == ["files"]


def fish_completion():
    if shutil.which("fish") is None:
        skip("fish is not installed")
    script = os.path.join(BUILD, "pawl.fish")
    subprocess.run(["fish", "-n", script], check=True, env=ENV)

    def complete(line):
        result = subprocess.run(["fish", "--no-config", "-c", f"source '{script}'; complete -C '{line}'"],
                                env=ENV, check=True, capture_output=True, timeout=60)
        return result.stdout.decode().splitlines()
    assert complete("pawl conf") == ["config\tcheck and show the settings"], complete("pawl conf")
    assert complete("pawl --log-level de") == ["debug"], complete("pawl --log-level de")
    assert complete("pawl --log-level=de") == ["--log-level=debug"]


it("refuses bad usage with one helpful line", bad_usage)
it("shows odd arguments harmlessly", odd_arguments)
it("reports errors as JSON when asked for JSON", json_errors)
it("prints short help for a command that is not finished", short_help)
it("has help for every command, by every way to ask", help_everywhere)
it("has examples for every command, and they work", examples)
it("tells the version of every part", versions)
it("says so when its output cannot be written", closed_output)
it("ends quietly when nobody reads any more", reader_that_leaves)
it("has a manual page for every command that man accepts", manual)
it("completes in bash", bash_completion)
it("completes in zsh", zsh_completion)
it("completes in fish", fish_completion)
shutil.rmtree(HOME)
done()
