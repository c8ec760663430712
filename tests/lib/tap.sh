# Source this: TAP for tests that are shell scripts.
#
#   it "says what must hold" command arg ...     passes when the command succeeds
#   tap_done                                     at the end

tap_count=0
tap_failed=0
tap_dir=$(mktemp -d)
trap 'rm -rf "$tap_dir"' EXIT

it() {
    local name=$1
    shift
    tap_count=$((tap_count + 1))
    if "$@" >"$tap_dir/.output" 2>&1; then
        echo "ok $tap_count - $name"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $name"
        sed 's/^/# /' "$tap_dir/.output"
    fi
}

fails() { ! "$@"; }

tap_done() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
}
