#!/usr/bin/env bash
# The checks that guard the tree are themselves seen to fail.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

tree=$tap_dir/tree
mkdir -p "$tree/src" "$tree/include/pawl" "$tree/scripts"
cp "$PAWL_SOURCE/scripts/check-layers" "$tree/scripts/"
mkdir "$tree"/src/{base,store,ledger,work,cli}
echo '#include <stddef.h>' >"$tree/include/pawl/pawl.h"
echo '#include "base/x.h"' >"$tree/src/store/good.c"
echo '#include "base/x.h"' >"$tree/src/ledger/good.c"

it "allows includes along the arrows" "$tree/scripts/check-layers"

planted() { # file, line
    echo "$2" >"$tree/$1"
    local code=0
    "$tree/scripts/check-layers" >"$tap_dir/said" 2>&1 || code=$?
    rm "$tree/$1"
    [ "$code" -ne 0 ] && grep -qF "$1" "$tap_dir/said"
}
it "refuses base including store" planted src/base/bad.c '#include "store/sqlite/sqlite.h"'
it "refuses store including a capability" planted src/store/bad.h '#  include "ledger/core/event.h"'
it "refuses one capability including another" planted src/work/bad.c '#include "ledger/core/event.h"'
it "refuses the command including a capability" planted src/cli/bad.c '#include "work/items/item.h"'
it "refuses a public header including a private one" planted include/pawl/bad.h '#include "base/core/buf.h"'
unlisted() { mkdir "$tree/src/extra"; ! "$tree/scripts/check-layers"; }
it "refuses a folder without a place" unlisted

# Two functions of 4 and 6 lines and a struct in one room, SQL apart; the commit has the first alone.
sized=$tap_dir/sized
mkdir -p "$sized/scripts" "$sized/src/ledger/core" "$sized/sql"
cp "$PAWL_SOURCE/scripts/size" "$sized/scripts/"
printf 'static int a(void)\n{\n    return 1;\n}\n' >"$sized/src/ledger/core/a.c"
printf 'SELECT 1;\nSELECT 2;\n' >"$sized/sql/0001_first.sql"
git -C "$sized" init -q && git -C "$sized" add . &&
    git -C "$sized" -c user.name=a -c user.email=a@b commit -q -m first
printf 'struct b {\n    int c;\n};\n\nstatic int b(int c,\n             int d)\n{\n    a();\n    return c;\n}\n' \
    >"$sized/src/ledger/core/b.c"
size_says() { # line of the table, blanks made one
    "$sized/scripts/size" "${@:2}" | tr -s ' ' | grep -qxF -- "$1"
}
it "size counts the lines of a room" size_says " core 14"
it "size counts SQL apart" size_says "all SQL 2"
it "size measures functions" size_says "pawl, here 10 / 10 6 / 6"
it "size puts a commit beside the tree" size_says "all C 4 14 +250.0 %" HEAD
it "size names a commit it does not know" grep -q "no commit 'nowhere'" <("$sized/scripts/size" nowhere 2>&1)

it "bootstrap lists without installing" grep -q '^libsqlite3-dev$' <("$PAWL_SOURCE/scripts/bootstrap" --list)
run_only() {
    "$PAWL_SOURCE/scripts/bootstrap" --list >"$tap_dir/run"
    ! grep -E '^(clang|postgresql|libcmocka-dev|nats-server|chromium|PGlite.*)$' "$tap_dir/run"
}
it "bootstrap alone brings nothing that only tests need" run_only
for_tests() {
    "$PAWL_SOURCE/scripts/bootstrap" --test --list >"$tap_dir/test"
    grep -q '^libcmocka-dev$' "$tap_dir/test" && grep -q '^postgresql$' "$tap_dir/test" &&
        ! grep '^chromium$' "$tap_dir/test" && grep -q '^chromium$' <("$PAWL_SOURCE/scripts/bootstrap" --all --list)
}
it "bootstrap --test brings it, and --all the rest" for_tests
it "bootstrap names an unknown argument" \
    grep -q "unknown argument '--al'" <("$PAWL_SOURCE/scripts/bootstrap" --al 2>&1)

# A system without apt-get: the list, and a failure.
no_apt() {
    mkdir "$tap_dir/bin"
    local name
    for name in bash dirname fold printf env; do ln -s "$(command -v $name)" "$tap_dir/bin/$name"; done
    PATH=$tap_dir/bin bash "$PAWL_SOURCE/scripts/bootstrap" >"$tap_dir/said" 2>&1 && return 1
    grep -q 'no apt-get' "$tap_dir/said" && grep -q 'librocksdb-dev' "$tap_dir/said"
}
it "bootstrap lists what to install on another system" no_apt

it "torture lists what it would run" grep -qx 'sqlite power control' <("$PAWL_SOURCE/scripts/torture" --list)
it "torture names what it does not know" \
    grep -q "nothing is called 'oracle'" <("$PAWL_SOURCE/scripts/torture" oracle 2>&1)

nothing_ran() {
    mkdir -p "$tap_dir/t/scripts" "$tap_dir/t/build-plain"
    cp "$PAWL_SOURCE/scripts/test" "$tap_dir/t/scripts/"
    printf '#!/bin/sh\n' >"$tap_dir/t/scripts/build"
    chmod +x "$tap_dir/t/scripts/build"
    ! "$tap_dir/t/scripts/test" plain >"$tap_dir/said" 2>&1 && tail -n 1 "$tap_dir/said" | grep -q '^0 passed'
}
it "a run of no tests fails" nothing_ran

# A program that dies between two cases leaves no failed case: its name and last words are shown.
dies_silently() {
    mkdir -p "$tap_dir/d/scripts" "$tap_dir/d/build-plain"
    cp "$PAWL_SOURCE/scripts/test" "$tap_dir/d/scripts/"
    cat >"$tap_dir/d/scripts/build" <<'END'
#!/bin/sh
cd "$(dirname "$0")/.." && [ -e build-plain/build.ninja ] || meson setup build-plain
END
    chmod +x "$tap_dir/d/scripts/build"
    printf '#!/bin/sh\necho 1..2\necho ok 1 - a\necho last words\nkill -9 $$\n' >"$tap_dir/d/dies.sh"
    chmod +x "$tap_dir/d/dies.sh"
    printf "project('d')\ntest('dies', find_program('dies.sh'), protocol: 'tap')\n" >"$tap_dir/d/meson.build"
    ! "$tap_dir/d/scripts/test" plain >"$tap_dir/said" 2>&1 &&
        grep -q '^FAILED: plain: dies' "$tap_dir/said" &&
        sed -n '/^FAILED: plain: dies/,$p' "$tap_dir/said" | grep -q 'last words'
}
it "a program that died is named with its last words" dies_silently
times_shown() { grep -qE '^plain +[0-9]+ s +[0-9]+ s +all [0-9]+ s$' "$tap_dir/said" && grep -qE '^slowest: plain: dies [0-9]+ s$' "$tap_dir/said"; }
it "the time of each build and of the slowest programs is shown" times_shown
tap_done
