#!/usr/bin/env python3
"""scripts/embed-sql refuses what cannot be right, and says what. Its good output is what test_migrate
compiles. Usage: test_embed_sql.py EMBED_SQL; prints TAP."""
import os
import subprocess
import sys
import tempfile

GOOD = "-- version: 0.30.0\nCREATE TABLE t (a);\n"

# description, files of the tree, what the message must say; None: it is accepted
CASES = [
    ("a tree without components is fine", {"README.md": "x"}, None),
    ("numbers from one without gaps are fine",
     {"sqlite/work/0001_a.sql": GOOD, "sqlite/work/0002_b.sql": GOOD, "duckdb/work/0001_a.sql": GOOD}, None),
    ("a trigger's BEGIN is no transaction",
     {"sqlite/w/0001_a.sql": GOOD + "CREATE TRIGGER x AFTER INSERT ON t\nBEGIN\n  SELECT 1;\nEND;\n"}, None),
    ("named statements and shared fragments are no migrations",
     {"sqlite/work/0001_a.sql": GOOD, "sqlite/work/statements/items.sql": "x", "sqlite/fragments.sql": "x"}, None),
    ("an upper case name is refused", {"sqlite/work/0001_A.sql": GOOD}, "0001_A.sql: a migration is called NNNN_name.sql"),
    ("a short number is refused", {"sqlite/work/1_a.sql": GOOD}, "1_a.sql: a migration is called"),
    ("a stray file is refused", {"sqlite/work/0001_a.sql": GOOD, "sqlite/work/notes.txt": "x"}, "notes.txt: a migration"),
    ("a gap is refused", {"sqlite/work/0001_a.sql": GOOD, "sqlite/work/0003_b.sql": GOOD}, "number 0002 is missing"),
    ("a first number above one is refused", {"sqlite/work/0002_b.sql": GOOD}, "number 0001 is missing"),
    ("number zero is refused", {"sqlite/work/0000_b.sql": GOOD}, "0000_b.sql: number 0000"),
    ("a number used twice is refused",
     {"sqlite/work/0001_a.sql": GOOD, "sqlite/work/0001_b.sql": GOOD}, "0001_b.sql: number 0001 is taken twice"),
    ("an unknown engine is refused", {"oracle/work/0001_a.sql": GOOD}, "unknown engine; known: sqlite, postgres, duckdb"),
    ("a file where a component belongs is refused", {"sqlite/0001_a.sql": GOOD}, "expected a folder named after a component"),
    ("a file without a version is refused", {"sqlite/w/0001_a.sql": "CREATE TABLE t (a);\n"}, "must be '-- version: X.Y.Z'"),
    ("a file without SQL is refused", {"sqlite/w/0001_a.sql": "-- version: 1.0.0\n-- later\n"}, "no SQL in it"),
    ("a transaction of its own is refused", {"sqlite/w/0001_a.sql": GOOD + "COMMIT;\n"}, "'COMMIT' cannot stand in a migration"),
    ("a BEGIN of its own is refused", {"postgres/w/0001_a.sql": GOOD + " begin;\n"}, "cannot stand in a migration"),
    ("bytes that are not UTF-8 are refused", {"sqlite/w/0001_a.sql": b"-- version: 1.0.0\nSELECT '\xff';\n"}, "utf-8"),
]


def embed(program, files, work):
    tree = os.path.join(work, "sql")
    os.mkdir(tree)
    for path, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
        with open(os.path.join(tree, path), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    outputs = [os.path.join(work, name) for name in ("out.c", "out.h", "out.d")]
    result = subprocess.run([program, tree, *outputs], capture_output=True, text=True, check=False)
    return result.returncode, result.stderr, [path for path in outputs if os.path.exists(path)]


def main(program):
    failures = 0
    print(f"1..{len(CASES)}")
    for number, (description, files, expected) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as work:
            code, said, made = embed(program, files, work)
        if expected is None:
            good = code == 0 and len(made) == 3
        else:
            good = code != 0 and expected in said and not made
        print(f"{'ok' if good else 'not ok'} {number} - {description}")
        if not good:
            failures += 1
            print(f"# exit {code}, made {made}, said: {said.strip()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
