#!/usr/bin/env python3
"""scripts/embed-statements writes what C expects, and refuses what cannot be right.
Usage: test_embed_statements.py EMBED_STATEMENTS; prints TAP."""
import os
import subprocess
import sys
import tempfile

ALL = "X_PG_ONE X_PG_TWO pawl__x_pg_setup"  # names that the C files mention
ONE = "-- name: one\nSELECT 1;\n"

# description, engine, {file: text}, what the table must hold (None: refused), what the message must say
CASES = [
    ("comments and line ends are left out, quoted text is kept", "sqlite",
     {"a.sql": "-- a comment\n\n-- name: one\n-- why\nSELECT  'a  --b', \"c  d\" -- more\n  FROM t;\n"},
     '"SELECT \'a  --b\', \\"c  d\\" FROM t"', None),
    ("a fragment is put in where it is named", "sqlite",
     {"a.sql": "-- fragment: columns\na, b\n-- name: one\nSELECT {columns} FROM t;\n"}, '"SELECT a, b FROM t"', None),
    ("a fragment has arguments, which may be fragments", "sqlite",
     {"a.sql": "-- fragment: of(table, rest)\nFROM {table} {rest}\n-- fragment: t\nsome\n"
               "-- name: one\nSELECT 1 {of: {t}; WHERE a = 'x' };\n-- name: two\nSELECT 2 {of: u; };\n"},
     "\"SELECT 1 FROM some WHERE a = 'x'\"", None),
    ("a fragment may be in another file", "sqlite",
     {"b.sql": "-- fragment: c\na\n", "a.sql": "-- name: one\nSELECT {c};\n"}, '"SELECT a"', None),
    ("an engine's shared fragments are known, used or not", "sqlite",
     {"../../fragments.sql": "-- fragment: c\na\n-- fragment: d\nb\n", "a.sql": "-- name: one\nSELECT {c};\n"},
     '"SELECT a"', None),
    ("types stand beside PostgreSQL's statements", "postgres",
     {"a.sql": "-- fragment: row_types\nti\n-- name: one (iT) -> ({row_types} b)\nSELECT $1, $2;\n"},
     '"SELECT $1, $2",\n        "iT", "tib"', None),
    ("a statement without types has none", "postgres", {"a.sql": ONE}, '"SELECT 1",\n        NULL, NULL', None),
    ("a script may be several statements", "sqlite",
     {"a.sql": "-- script: setup\nCREATE TABLE a (b);\nCREATE TABLE c (d);\n" + ONE},
     'const char pawl__x_pg_setup[] =\n    "CREATE TABLE a (b); CREATE TABLE c (d)"', None),
    ("a question mark makes no trigraph", "sqlite", {"a.sql": "-- name: one\nSELECT '??/', ?1;\n"}, "'\\?\\?/', \\?1", None),
    ("a brace inside of quotes is text", "postgres", {"a.sql": "-- name: one\nSELECT '{}'::text[];\n"}, "'{}'::text[]", None),
    ("a name given twice is refused", "sqlite", {"a.sql": ONE, "b.sql": ONE}, None, "b.sql:1: 'one' is also at"),
    ("a fragment given twice is refused", "sqlite",
     {"a.sql": "-- fragment: c\na\n-- fragment: c\nb\n" + ONE}, None, "a.sql:3: fragment 'c' is also at"),
    ("an unknown fragment is refused", "sqlite", {"a.sql": "-- name: one\nSELECT {c};\n"}, None, "a.sql:1: no fragment 'c'"),
    ("an unused fragment is refused", "sqlite", {"a.sql": "-- fragment: c\na\n" + ONE}, None, "nobody uses fragment 'c'"),
    ("an unused name is refused", "sqlite", {"a.sql": ONE + "-- name: three\nSELECT 3;\n"}, None,
     "a.sql:3: nobody uses 'three' (X_PG_THREE)"),
    ("a fragment of itself is refused", "sqlite",
     {"a.sql": "-- fragment: c\n{d}\n-- fragment: d\n{c}\n-- name: one\nSELECT {c};\n"}, None, "is made of itself"),
    ("too few arguments are refused", "sqlite",
     {"a.sql": "-- fragment: c(a, b)\n{a}{b}\n-- name: one\nSELECT {c: x};\n"}, None, "has 2 arguments, 1 were given"),
    ("a brace without an end is refused", "sqlite",
     {"a.sql": "-- fragment: c(a)\n{a}\n-- name: one\nSELECT {c: x;\n"}, None, "never closed"),
    ("a stray brace is refused", "sqlite", {"a.sql": "-- name: one\nSELECT { 1 };\n"}, None, "a brace that is no reference"),
    ("a quote without an end is refused", "sqlite", {"a.sql": "-- name: one\nSELECT 'a;\n"}, None, "a quote that is never closed"),
    ("a parenthesis without an end is refused", "sqlite", {"a.sql": "-- name: one\nSELECT (1;\n"}, None, "has 1 '(' and 0 ')'"),
    ("two statements under one name are refused", "sqlite",
     {"a.sql": "-- name: one\nSELECT 1;\nSELECT 2;\n"}, None, "more than one statement"),
    ("a name without SQL is refused", "sqlite", {"a.sql": "-- name: one\n-- later\n"}, None, "has no SQL"),
    ("SQL without a name is refused", "sqlite", {"a.sql": "SELECT 1;\n" + ONE}, None, "a.sql:1: SQL that has no"),
    ("an upper case name is refused", "sqlite", {"a.sql": "-- name: One\nSELECT 1;\n"}, None, "cannot be read as the head"),
    ("a placeholder without a number is refused", "sqlite", {"a.sql": "-- name: one\nSELECT ?;\n"}, None, "'?' without a number"),
    ("a placeholder without a type is refused", "postgres", {"a.sql": "-- name: one (i)\nSELECT $1, $2;\n"}, None,
     "has types of 1 parameters, and uses $1, $2"),
    ("a type without a placeholder is refused", "postgres", {"a.sql": "-- name: one (ii)\nSELECT $1;\n"}, None, "uses $1"),
    ("an unknown type is refused", "postgres", {"a.sql": "-- name: one -> (q)\nSELECT 1;\n"}, None, "'q' is no type of a column"),
    ("an array as a column is refused", "postgres", {"a.sql": "-- name: one -> (T)\nSELECT 1;\n"}, None, "'T' is no type"),
    ("types in SQLite are refused", "sqlite", {"a.sql": "-- name: one (i)\nSELECT ?1;\n"}, None, "only statements for PostgreSQL"),
    ("a folder without statements is refused", "sqlite", {"a.sql": "-- nothing\n"}, None, "no statements"),
]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def embed(program, engine, files, work):
    folder = os.path.join(work, "sql", engine, "x", "statements")
    for name, text in files.items():
        write(os.path.normpath(os.path.join(folder, name)), text)
    write(os.path.join(work, "src", "user.c"), "".join(f"{one}\n" for one in ALL.split()
                                                       if one[5:].lower() in "".join(files.values()) or "__" in one))
    outputs = [os.path.join(work, name) for name in ("out.c", "out.h", "out.d")]
    result = subprocess.run([program, folder, "x_pg", *outputs, os.path.join(work, "src")],
                            capture_output=True, text=True, check=False)
    texts = []
    for path in outputs:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
    return result.returncode, result.stderr, texts


def main(program):
    failures = 0
    print(f"1..{len(CASES)}")
    for number, (description, engine, files, expected, message) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as work:
            code, said, texts = embed(program, engine, files, work)
        if expected is not None:
            good = code == 0 and len(texts) == 3 and expected in texts[0] and "X_PG_ONE,\n" in texts[1]
        else:
            good = code != 0 and message in said and not texts
        print(f"{'ok' if good else 'not ok'} {number} - {description}")
        if not good:
            failures += 1
            print(f"# exit {code}, said: {said.strip()}\n# " + "".join(texts).replace("\n", "\n# "))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
