#!/usr/bin/env bash
# The example programs: the same village on every backend, killed again and again, watched by a
# monitor that sees each event once.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

village=$PAWL_BUILD/examples/village
monitor=$PAWL_BUILD/examples/monitor
unset DATABASE_URL

story() { # what the village is in the end: the lines behind the heading
    sed -n "/^village '/,\$p"
}

told_by() { # location, or nothing for DATABASE_URL
    "$village" --turns 40 "$@" >"$tap_dir/said" && story <"$tap_dir/said" | tee "$tap_dir/story" &&
        cmp "$tap_dir/expected" "$tap_dir/story"
}

"$village" --turns 40 memory: | story >"$tap_dir/expected"
it "a village in memory has a story" grep -q 'digest [0-9a-f]\{16\}$' "$tap_dir/expected"
it "SQLite tells the same" told_by "$tap_dir/plain.db"
it "and again, without playing a turn twice" told_by "$tap_dir/plain.db"
it "DATABASE_URL names it too" env DATABASE_URL="sqlite:$tap_dir/plain.db" bash -c "$(declare -f story told_by);
    village=$village tap_dir=$tap_dir; told_by"

# The conductor is killed with -9 each time the monitor has seen so many events more; the monitor is
# ended politely and goes on from its own offset.
touch "$tap_dir/seen"
"$village" --turns 0 "$tap_dir/killed.db" >/dev/null

seen() { # how many events at least, within half a minute
    local deadline=$((SECONDS + 30))
    until [ "$(wc -l <"$tap_dir/seen")" -ge "$1" ]; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        read -r -t 0.01 <>"$tap_dir/never" || true
    done
}

mkfifo "$tap_dir/never"
killed_after() { # events
    local conductor watcher code=0
    "$village" --turns 40 --pause 2 "$tap_dir/killed.db" >>"$tap_dir/killed.said" &
    conductor=$!
    "$monitor" --keep "$tap_dir/offset" "$tap_dir/killed.db" >>"$tap_dir/seen" &
    watcher=$!
    seen $(($(wc -l <"$tap_dir/seen") + $1)) || code=1
    kill -9 "$conductor"
    kill -TERM "$watcher"
    wait "$conductor"
    [ $? -eq 137 ] && wait "$watcher" && [ "$code" -eq 0 ]
}
for events in 9 23 14 31 20; do
    it "the conductor is killed after $events more events" killed_after "$events"
done
it "half a turn was left and tried again" grep -q 'was half written; this is attempt' "$tap_dir/killed.said"
it "the killed village tells the same story" told_by "$tap_dir/killed.db"

each_once() {
    "$monitor" --once --keep "$tap_dir/offset" "$tap_dir/killed.db" >>"$tap_dir/seen" &&
        awk '$1 != NR {print "line " NR ": offset " $1; exit 1}' "$tap_dir/seen" &&
        [ "$(wc -l <"$tap_dir/seen")" -eq "$("$monitor" --once "$tap_dir/killed.db" | wc -l)" ]
}
it "the monitor saw each event once" each_once

only_complete() { # an open turn is held back
    "$village" --turns 41 --pause 60000 "$tap_dir/killed.db" >/dev/null &
    local conductor=$! found=1
    "$monitor" "$tap_dir/killed.db" >"$tap_dir/seen" &
    local watcher=$!
    seen "$(($(cut -c 1-20 "$tap_dir/offset" | sed 's/^0*//') + 2))" &&
        "$monitor" --once --complete-turns "$tap_dir/killed.db" >"$tap_dir/complete" &&
        grep -q 'turn 40 ' "$tap_dir/complete" && ! grep -q 'turn 41 ' "$tap_dir/complete" && found=0
    kill -9 "$conductor"
    kill -TERM "$watcher"
    wait "$conductor" "$watcher"
    return "$found"
}
it "who asks for complete turns sees nothing of an open one" only_complete

usage() { # arguments: exit code 2, and how to call it
    local code=0
    "$@" >/dev/null 2>"$tap_dir/said" || code=$?
    [ "$code" -eq 2 ] && grep -q "^usage: " "$tap_dir/said"
}
it "the village refuses a number that is none" usage "$village" --turns 4x memory:
it "the village refuses a second location" usage "$village" memory: memory:
it "the monitor refuses an unknown option" usage "$monitor" --all "$tap_dir/killed.db"
no_ledger() {
    local code=0
    "$monitor" "$tap_dir/none.db" 2>"$tap_dir/said" || code=$?
    [ "$code" -eq 3 ] && grep -q "none.db" "$tap_dir/said" && [ ! -e "$tap_dir/none.db" ]
}
it "the monitor makes no ledger where there is none" no_ledger
tap_done
