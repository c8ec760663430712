#!/usr/bin/env bash
# The example programs of work: a worker that dies between its effect and its completion, a task that
# dies in an iteration, a watchdog that takes back what was left.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
. "$PAWL_SOURCE/tests/lib/tap.sh"

worker=$PAWL_BUILD/examples/worker
recover_task=$PAWL_BUILD/examples/recover_task
watchdog=$PAWL_BUILD/examples/lease_watchdog
store=$tap_dir/work.sqlite
mkfifo "$tap_dir/never"
mkdir "$tap_dir/results"

sql() { # statement: with what other programs would use
    python3 - "$store" "$1" <<'PYTHON'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
db.execute("PRAGMA foreign_keys = ON")
for row in db.execute(sys.argv[2]).fetchall():
    print(*row)
db.commit()
PYTHON
}

dies() { # arguments: exit code 9
    local code=0
    "$@" >"$tap_dir/said" || code=$?
    [ "$code" -eq 9 ]
}

says() { # what, arguments
    local expected=$1
    shift
    "$@" >"$tap_dir/said" && grep -qx "$expected" "$tap_dir/said"
}

# --- a task that dies
it "a task dies in its third iteration" \
    dies "$recover_task" --task squares --until 10 --die-at 3 "$store"
it "and in its ninth" dies "$recover_task" --task squares --until 10 --die-at 9 "$store"
it "it went on behind the second" grep -qx "goes on behind iteration 2" "$tap_dir/said"
it "the sum has every square once" says "sum 385" "$recover_task" --task squares --until 10 "$store"
it "a finished task has nothing left to do" \
    says "goes on behind iteration 10" "$recover_task" --task squares --until 10 "$store"

# --- a worker that dies behind its effect
sql "INSERT INTO tasks (task_id, title) VALUES ('t', 'files')"
for name in one two three; do
    sql "INSERT INTO work_items (work_item_id, task_id, work_type, input_data)
         VALUES ('$name', 't', 'file', '{\"name\": \"$name\"}')"
done
it "a worker dies behind its first effect" \
    dies "$worker" --dir "$tap_dir/results" --lease 1 --die-after-work "$store"
it "its effect is there" test "$(find "$tap_dir/results" -type f | wc -l)" -eq 1

taken_back() { # until the lease has run out; within half a minute
    local deadline=$((SECONDS + 30))
    until "$watchdog" --once "$store" | grep -qx "1 leases ran out: 1 tried again, 0 failed"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        read -r -t 0.05 <>"$tap_dir/never" || true
    done
}
it "the watchdog takes its lease back" taken_back
boundary() {
    [ "$(sql "SELECT count(*) FROM checkpoints WHERE checkpoint_type = 'error_boundary'")" = 1 ]
}
it "with a checkpoint that says so" boundary
it "another worker does the rest" says "three done" "$worker" --dir "$tap_dir/results" "$store"
it "what had its effect is done without a second one" grep -qx "one done" "$tap_dir/said"
all_done() {
    [ "$(sql "SELECT count(*) FROM work_items WHERE status = 'completed'")" = 3 ] &&
        [ "$(sql "SELECT count(*) FROM idempotency_keys WHERE status = 'completed'")" = 3 ] &&
        [ "$(find "$tap_dir/results" -type f | wc -l)" -eq 3 ]
}
it "every item is completed, every effect there once" all_done
it "nothing is left to do" test -z "$("$worker" --dir "$tap_dir/results" "$store")"
it "the task has succeeded" test "$(sql "SELECT status FROM tasks WHERE task_id = 't'")" = succeeded

# --- the watchdog as a service
ended_politely() {
    local pid code=0
    "$watchdog" --every 60 "$store" >"$tap_dir/watched" &
    pid=$!
    local deadline=$((SECONDS + 30))
    until [ -s "$tap_dir/watched" ]; do
        [ "$SECONDS" -lt "$deadline" ] || break
        read -r -t 0.05 <>"$tap_dir/never" || true
    done
    kill -TERM "$pid"
    wait "$pid" || code=$?
    [ "$code" -eq 0 ] && grep -qx "0 leases ran out: 0 tried again, 0 failed" "$tap_dir/watched"
}
it "the watchdog ends when it is told to" ended_politely

usage() { # arguments: exit code 2, and how to call it
    local code=0
    "$@" >/dev/null 2>"$tap_dir/said" || code=$?
    [ "$code" -eq 2 ] && grep -q "^usage: " "$tap_dir/said"
}
it "the worker refuses to go without a directory" usage "$worker" "$store"
it "the task refuses a number that is none" usage "$recover_task" --task t --until 1x "$store"
it "the watchdog refuses a second location" usage "$watchdog" --once "$store" "$store"
tap_done
