#!/usr/bin/env bash
# The library without DuckDB, NATS, PostgreSQL, RocksDB, gRPC and node: what it links, and that it is a ledger still.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

build=$tap_dir/build
prefix=$tap_dir/usr
compiler=${CC:-cc}
! command -v ccache >/dev/null || compiler="ccache ${compiler#ccache }"
# Another directory every time, which ccache is told to overlook.
export CCACHE_BASEDIR=$tap_dir CCACHE_NOHASHDIR=1

set_up() {
    CC=$compiler meson setup "$build" "$PAWL_SOURCE" --buildtype=debug --prefix="$prefix" --libdir=lib \
        -Dduckdb=disabled -Dnats=disabled -Dpostgres=disabled -Drocksdb=disabled -Dnode=disabled -Dh2=disabled -Dbench=false -Dfailpoints=true
}
it "is set up without DuckDB, NATS, PostgreSQL, RocksDB, gRPC and node" set_up

# All that the library and its tests need; the command follows.
targets() {
    ninja -C "$build" -t targets all | sed -nE 's/^(tests\/smallest\/test_[a-z_]+|src\/libpawl\.(a|so\.[0-9.]*)): .*/\1/p'
}
build_them() {
    mapfile -t wanted < <(targets)
    [ "${#wanted[@]}" -ge 10 ] && ninja -C "$build" "${wanted[@]}"
}
it "builds" build_them

links_only() { # library, allowed names as a regular expression
    local names
    names=$(readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
    echo "$names"
    grep -q '^libsqlite3\.' <<<"$names" && ! grep -vE "^($2)\.so" <<<"$names"
}
library=$(find "$build/src" -maxdepth 1 -name 'libpawl.so.*.*.*' -type f)
it "links SQLite, jansson, libcrypto and the C library" \
    links_only "$library" 'libsqlite3|libjansson|libcrypto|libc|libm|libpthread|ld-linux-[a-z0-9_-]+'
none_behind() {
    local behind
    behind=$(ldd "$library") && ! grep -E 'duckdb|rocksdb|libpq|libnats|yaml|microhttpd|nghttp2|protobuf|libssl|stdc\+\+' <<<"$behind"
}
it "has neither DuckDB, RocksDB, libpq, cnats, YAML, nghttp2, protobuf-c nor C++ behind it" none_behind

passes() { meson test -C "$build" --no-rebuild --print-errorlogs; }
it "passes the contract of the ledger, and says UNSUPPORTED for the rest" passes

# Every part that is left out has something in its place, once: a symbol that is there twice shows here.
it "links the command, too" ninja -C "$build" pawl
it "which says what is not in it" bash -c "'$build/pawl' version | grep -q 'DuckDB  *not in this build'"
it "and keeps a ledger" bash -c "cd '$tap_dir' && '$build/pawl' ledger append --data ./data --id new --run r1 --turn 1 --kind note --actor kim --payload '{}'"

it "installs what a developer needs" meson install -C "$build" --no-rebuild --quiet --tags devel
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046 # flags are words
static_example() {
    $compiler -Wall -static -o "$tap_dir/village" "$PAWL_SOURCE/examples/village.c" \
        $(pkg-config --cflags pawl) $(pkg-config --static --libs pawl)
}
it "links an example statically through pkg-config" static_example
is_static() { ! readelf -d "$tap_dir/village" | grep NEEDED; }
it "which needs no library at all" is_static
it "and runs" "$tap_dir/village" --turns 1 "sqlite:$tap_dir/village.sqlite"
tap_done
