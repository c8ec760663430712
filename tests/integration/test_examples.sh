#!/usr/bin/env bash
# The example programs: the same village on every backend, killed again and again, watched by a
# monitor that sees each event once. The script runs itself once more with DATABASE_URL set to a
# PostgreSQL server of its own.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

village=$PAWL_BUILD/examples/village
monitor=$PAWL_BUILD/examples/monitor
mkfifo "$tap_dir/never"

story() { # what the village is in the end: the lines behind the heading
    sed -n "/^village '/,\$p"
}

told_by() { # location, or nothing for DATABASE_URL
    "$village" --turns 40 "$@" >"$tap_dir/said" && story <"$tap_dir/said" | tee "$tap_dir/story" &&
        cmp "$tap_dir/expected" "$tap_dir/story"
}

seen() { # file, how many events at least; within half a minute
    local deadline=$((SECONDS + 30))
    until [ "$(wc -l <"$1")" -ge "$2" ]; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        read -r -t 0.01 <>"$tap_dir/never" || true
    done
}

# The conductor is killed with -9 when the monitor has seen so many events more; the monitor is ended
# politely and goes on from its own offset the next time.
killed_after() { # name, events, location
    local conductor watcher code=0 log=$tap_dir/$1.seen events=$2
    shift 2
    "$village" --turns 40 --pause 2 "$@" >>"$log.said" &
    conductor=$!
    "$monitor" --keep "$log.offset" "$@" >>"$log" &
    watcher=$!
    seen "$log" $(($(wc -l <"$log") + events)) || code=1
    kill -9 "$conductor"
    kill -TERM "$watcher"
    wait "$conductor"
    [ $? -eq 137 ] && wait "$watcher" && [ "$code" -eq 0 ]
}

each_once() { # name, location
    local log=$tap_dir/$1.seen
    shift
    "$monitor" --once --keep "$log.offset" "$@" >>"$log" &&
        awk '$1 != NR {print "line " NR ": offset " $1; exit 1}' "$log" &&
        [ "$(wc -l <"$log")" -eq "$("$monitor" --once "$@" | wc -l)" ]
}

killed_and_watched() { # name, location
    local name=$1 events
    shift
    touch "$tap_dir/$name.seen"
    "$village" --turns 0 "$@" >/dev/null
    for events in 9 23 14 31 20; do
        it "$name: the conductor is killed after $events more events" killed_after "$name" "$events" "$@"
    done
    it "$name: half a turn was left and tried again" \
        grep -q 'was half written; this is attempt' "$tap_dir/$name.seen.said"
    it "$name: the killed village tells the same story" told_by "$@"
    it "$name: the monitor saw each event once" each_once "$name" "$@"
}

"$village" --turns 40 memory: | story >"$tap_dir/expected"
it "a village in memory has a story" grep -q 'digest [0-9a-f]\{16\}$' "$tap_dir/expected"

if [ -n "${DATABASE_URL:-}" ]; then
    killed_and_watched PostgreSQL
    tap_done
    exit
fi

it "SQLite tells the same" told_by "$tap_dir/plain.db"
it "and again, without playing a turn twice" told_by "$tap_dir/plain.db"
export DATABASE_URL=sqlite:$tap_dir/plain.db
it "DATABASE_URL names it as well" told_by
unset DATABASE_URL
killed_and_watched SQLite "$tap_dir/killed.db"

only_complete() { # an open turn is held back
    local conductor watcher found=1 before
    before=$("$monitor" --once "$tap_dir/killed.db" | wc -l)
    "$village" --turns 41 --pause 60000 "$tap_dir/killed.db" >/dev/null &
    conductor=$!
    "$monitor" "$tap_dir/killed.db" >"$tap_dir/all" &
    watcher=$!
    seen "$tap_dir/all" $((before + 2)) && # its begin, and what the first villager did
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

it_or_skip "all of it on PostgreSQL, unchanged" "$PAWL_BUILD/tests/with_postgres" bash "$0"
tap_done
