# Source this: TAP for tests that are shell scripts.
#
#   it "says what must hold" command arg ...     passes when the command succeeds
#   it_or_skip ...                               the same; 77 means that something is not installed
#   tap_done                                     at the end

tap_count=0
tap_failed=0
tap_dir=$(mktemp -d)
trap 'rm -rf "$tap_dir"' EXIT

it() {
    local name=$1 code=0
    shift
    tap_count=$((tap_count + 1))
    "$@" >"$tap_dir/.output" 2>&1 || code=$?
    if [ "$code" -eq 0 ]; then
        echo "ok $tap_count - $name"
    elif [ "$code" -eq 77 ] && [ -n "${tap_may_skip:-}" ]; then
        echo "ok $tap_count - $name # SKIP $(tail -n 1 "$tap_dir/.output")"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $name"
        sed 's/^/# /' "$tap_dir/.output"
    fi
}

it_or_skip() { tap_may_skip=1 it "$@"; }

fails() { ! "$@"; }

tap_done() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
}
