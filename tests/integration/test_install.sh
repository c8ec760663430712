#!/usr/bin/env bash
# A stranger's program builds against the installed library through pkg-config and runs.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

prefix=$tap_dir/usr/local
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig

cat >"$tap_dir/hello.c" <<'C'
#include <pawl/pawl.h>
#include <stdio.h>

int main(void)
{
    printf("%s %s %d\n", pawl_version(), pawl_status_name(PAWL_LEASE_LOST),
           pawl_status_exit_code(PAWL_CORRUPT));
    return 0;
}
C

it "installs" env DESTDIR="$tap_dir" meson install -C "$PAWL_BUILD" --no-rebuild --quiet
it "pkg-config knows it" pkg-config --define-prefix --exists pawl
version=$(pkg-config --define-prefix --modversion pawl)

# shellcheck disable=SC2046 # flags are words
compile() { "${CC:-cc}" -Wall -Werror -o "$tap_dir/hello" "$tap_dir/hello.c" $(pkg-config --define-prefix --cflags --libs pawl); }
it "a program outside the tree compiles" compile
runs() { [ "$(LD_LIBRARY_PATH=$prefix/lib "$tap_dir/hello")" = "$version LEASE_LOST 6" ]; }
it "and runs" runs

# shellcheck disable=SC2046
compile_static() {
    "${CC:-cc}" -Wall -Werror -o "$tap_dir/village-static" "$PAWL_SOURCE/examples/village.c" $(pkg-config --define-prefix --cflags pawl) \
        "$prefix/lib/libpawl.a" $(pkg-config --define-prefix --static --libs pawl)
}
it "the archive links too" compile_static
without_the_library() { ! readelf -d "$tap_dir/village-static" | grep 'NEEDED.*libpawl'; }
it "and needs no shared one" without_the_library
it "and runs" env LD_LIBRARY_PATH="$prefix/lib/pawl" "$tap_dir/village-static" --turns 1 "sqlite:$tap_dir/static.sqlite"

# shellcheck disable=SC2046
compile_example() {
    "${CC:-cc}" -Wall -Werror -o "$tap_dir/$1" "$PAWL_SOURCE/examples/$1.c" $(pkg-config --define-prefix --cflags --libs pawl)
}
for example in "$PAWL_SOURCE"/examples/*.c; do
    name=$(basename "$example" .c)
    it "the example '$name' compiles outside the tree" compile_example "$name"
done
it "and runs" env LD_LIBRARY_PATH="$prefix/lib" "$tap_dir/village" --turns 1 memory:

no_foreign_symbols() {
    local names
    names=$(nm -D --defined-only "$prefix/lib/libpawl.so" | awk '{print $3}')
    grep -q '^pawl_version$' <<<"$names" && ! grep -vE '^pawl_[^_]' <<<"$names"
}
it "exports only pawl_ names" no_foreign_symbols
it "finds its own parts wherever it is put" fails grep -q 'not found' <(ldd "$prefix/lib/libpawl.so")
command_runs() { env -u LD_LIBRARY_PATH "$prefix/bin/pawl" --version | grep -q "^pawl $version "; }
it "the command runs from where it was put" command_runs
readable() {
    local file
    for file in "$@"; do
        if [ ! -s "$file" ] || [ "$(stat -c %a "$file")" != 644 ]; then
            echo "$file"
            return 1
        fi
    done
}
it "its manual is readable by everybody" readable "$prefix"/share/man/man1/pawl{,-doctor,-config}.1
it "so is the directory" test "$(stat -c %a "$prefix/share/man/man1")" = 755
it "its completions are where shells look" readable "$prefix/share/bash-completion/completions/pawl.bash" \
    "$prefix/share/zsh/site-functions/_pawl" "$prefix/share/fish/vendor_completions.d/pawl.fish"
tap_done
