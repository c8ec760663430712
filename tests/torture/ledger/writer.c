/* The process that is killed.
 *
 *   ledger_writer STORE LOCATION write FIRST CALLS [unsafe]
 *   ledger_writer STORE LOCATION check [unsafe]
 *   ledger_writer STORE LOCATION drop
 *
 * LOCATION is a directory or a postgres:// URL; STORE says the same and is not read. Unsafe is
 * durability=normal. `write` makes the calls FIRST, FIRST + 1, ... from
 * several threads and says, when a call has returned, "CALL PLACE OFFSET OFFSET ...": the offsets of
 * its events from PLACE on; a committed turn is one more such line. In between it takes snapshots.
 * After CALLS of them it prints "end" and waits, the ledger open, for its standard input to close.
 *
 * `check` opens, verifies and prints "CALL PLACE OFFSET" for each event and each committed turn, and
 * "anchor OFFSET" as it was before; anything that is not as it should be is an error. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/thread/thread.h"
#include "ledger/core/anchor.h"
#include "store/postgres/postgres.h"
#include "torture/ledger/plan.h"

enum {
    THREADS = 4,
    CALLS_BETWEEN_SNAPSHOTS = 40,
    CALLS_BETWEEN_CLOSES = 64, /* closing moves the log: a good moment for a cut */
    CALLS_BETWEEN_VISITS = 8,  /* a second handle that is closed moves the anchor alone */
    LINE_SIZE = 512,
};

struct writer {
    pawl_ledger *ledger;
    char location[600];
    char snapshots[512]; /* a directory; empty: none are taken */
    uint64_t first;
    uint64_t end; /* of the calls until the ledger is closed */
    atomic_uint_fast64_t next;
    atomic_bool failed;
    pawl_error error; /* of the thread that failed first */
};

struct thread {
    struct pawl__thread thread;
    struct writer *writer;
    char payloads[CALL_EVENTS_MAX][CALL_PAYLOAD_MAX];
    char ids[CALL_EVENTS_MAX][64];
};

/* Unbuffered and in one piece: what was written is with the driver even if we die now. */
static pawl_status say(const char *line, pawl_error *reterr)
{
    ssize_t put = write(STDOUT_FILENO, line, strlen(line));

    return put == (ssize_t)strlen(line) ? PAWL_OK
                                        : pawl__fail_errno(reterr, errno, "tell the driver");
}

static pawl_status acknowledge(uint64_t call,
                               uint32_t place,
                               const pawl_append_result *results,
                               size_t count,
                               pawl_error *reterr)
{
    char space[LINE_SIZE];
    struct pawl__buf line = BUF_OVER(space);

    pawl__buf_add_format(&line, "%" PRIu64 " %u", call, place);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(&line, " %" PRIu64, results[i].offset);
    }
    pawl__buf_add_char(&line, '\n');
    REQUIRE(!line.broken);
    return say(line.data, reterr);
}

/* --- the calls --- */

static void fill_in(struct thread *thread,
                    uint64_t call,
                    uint32_t first_place,
                    uint32_t count,
                    bool with_ids,
                    pawl_event *ret_events)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t len = ledger_call_payload(call, first_place + i, thread->payloads[i]);
        snprintf(thread->ids[i], sizeof(thread->ids[i]), "e-%" PRIu64 "-%u", call, first_place + i);
        ret_events[i] = (pawl_event){
            .size = sizeof(pawl_event),
            .id = pawl_view_of(with_ids ? thread->ids[i] : ""),
            .run_id = pawl_view_of("village"),
            .turn = (int64_t)call,
            .kind = pawl_view_of("did"),
            .actor = pawl_view_of("ada"),
            .payload = { thread->payloads[i], len },
        };
    }
}

static pawl_status append(struct thread *thread, const struct ledger_call *call, pawl_error *reterr)
{
    pawl_event events[CALL_EVENTS_MAX];
    pawl_append_result results[CALL_EVENTS_MAX] = { PAWL_APPEND_RESULT_INIT };

    fill_in(thread, call->original, 0, call->count, true, events);
    pawl_status status =
        pawl_ledger_append_many(thread->writer->ledger, events, call->count, results, reterr);
    return status == PAWL_OK ? acknowledge(call->original, 0, results, call->count, reterr)
                             : status;
}

static pawl_status attempt(struct thread *thread,
                           const struct ledger_call *call,
                           uint32_t number,
                           pawl_error *reterr)
{
    pawl_event events[CALL_TURN_EVENTS];
    pawl_append_result results[CALL_TURN_EVENTS] = { PAWL_APPEND_RESULT_INIT };
    pawl_turn *turn = NULL;
    uint32_t place = number * CALL_TURN_EVENTS;

    pawl_status status = pawl_turn_begin(
        thread->writer->ledger, pawl_view_of("village"), (int64_t)call->original, &turn, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    fill_in(thread, call->original, place, CALL_TURN_EVENTS, false, events);
    status = pawl_turn_append(turn, events, CALL_TURN_EVENTS, results, reterr);
    if (status == PAWL_OK) {
        status = acknowledge(call->original, place, results, CALL_TURN_EVENTS, reterr);
    }
    if (status == PAWL_OK && number + 1 == call->attempts) {
        pawl_append_result committed = { .size = sizeof(pawl_append_result),
                                         .offset = 1 }; /* only that it is there counts */
        status = pawl_turn_commit(turn, reterr);
        if (status == PAWL_OK) {
            status = acknowledge(call->original, CALL_COMMITTED, &committed, 1, reterr);
        }
    }
    pawl_turn_free(turn);
    return status;
}

static pawl_status make_call(struct thread *thread, uint64_t number, pawl_error *reterr)
{
    const struct writer *writer = thread->writer;
    struct ledger_call call = ledger_call_of(number, writer->first);
    pawl_status status = PAWL_OK;

    if (call.kind != CALL_TURN) {
        return append(thread, &call, reterr);
    }
    for (uint32_t i = 0; i < call.attempts && status == PAWL_OK; i++) {
        status = attempt(thread, &call, i, reterr);
    }
    return status;
}

static pawl_status visit(const struct writer *writer, pawl_error *reterr)
{
    pawl_ledger *ledger = NULL;
    pawl_status status = pawl_ledger_open(writer->location, NULL, &ledger, reterr);

    pawl_ledger_close(ledger, 0, NULL);
    return status;
}

/* What else goes on around the appends. */
static pawl_status look_after(const struct writer *writer, uint64_t number, pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    if (number % CALLS_BETWEEN_VISITS == 0) {
        status = visit(writer, reterr);
    }
    if (status == PAWL_OK && writer->snapshots[0] != '\0'
        && number % CALLS_BETWEEN_SNAPSHOTS == 0) {
        status =
            pawl_ledger_snapshot_schedule(writer->ledger, writer->snapshots, 1, 2, NULL, reterr);
        status = status == PAWL_BUSY ? PAWL_OK : status; /* another thread's */
    }
    return status;
}

static void run_thread(void *context)
{
    struct thread *thread = context;
    struct writer *writer = thread->writer;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && !atomic_load(&writer->failed)) {
        uint64_t number = atomic_fetch_add(&writer->next, 1);
        if (number >= writer->end) {
            return;
        }
        status = make_call(thread, number, &error);
        if (status == PAWL_OK) {
            status = look_after(writer, number, &error);
        }
    }
    if (status != PAWL_OK && !atomic_exchange(&writer->failed, true)) {
        writer->error = error; /* read when all threads have ended */
    }
}

static pawl_status run_threads(struct writer *writer, pawl_error *reterr)
{
    static struct thread threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        threads[i].writer = writer;
        pawl_status status =
            pawl__thread_start(&threads[i].thread, "writer", run_thread, &threads[i], reterr);
        REQUIRE(status == PAWL_OK);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i].thread);
    }
    if (atomic_load(&writer->failed)) {
        *reterr = writer->error;
        return writer->error.status;
    }
    return PAWL_OK;
}

static pawl_status write_calls(struct writer *writer, uint64_t calls, pawl_error *reterr)
{
    uint64_t last = writer->first + calls;
    pawl_status status = PAWL_OK;
    char c;

    for (uint64_t next = writer->first; status == PAWL_OK && next < last; next = writer->end) {
        writer->end = MIN(next + CALLS_BETWEEN_CLOSES, last);
        atomic_store(&writer->next, next);
        status = run_threads(writer, reterr);
        if (status == PAWL_OK && writer->end < last) {
            pawl_ledger_close(STEAL(writer->ledger), 0, NULL);
            status = pawl_ledger_open(writer->location, NULL, &writer->ledger, reterr);
        }
    }
    if (status == PAWL_OK) {
        status = say("end\n", reterr);
    }
    while (status == PAWL_OK && read(STDIN_FILENO, &c, 1) > 0) {
    }
    return status;
}

/* --- the check --- */

static pawl_status check_payload(const pawl_event *event,
                                 uint64_t *ret_call,
                                 uint32_t *ret_place,
                                 pawl_error *reterr)
{
    static char expected[CALL_PAYLOAD_MAX];
    pawl_view rest = event->payload;
    pawl_view part = { NULL, 0 };
    uint64_t numbers[2] = { 0, 0 }; /* {"call":N,"place":N,... */

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (!pawl__view_split(&rest, ':', &part) || rest.len == 0) {
            return pawl__fail(
                reterr, PAWL_CORRUPT, "offset %" PRIu64 " is not ours", event->offset);
        }
        numbers[i] = strtoull(rest.data, NULL, 10); /* ends at the comma, which is there below */
    }
    uint64_t call = numbers[0];
    uint32_t place = (uint32_t)MIN(numbers[1], (uint64_t)CALL_PLACES);
    size_t len = ledger_call_payload(call, place, expected);
    if (!pawl__view_equal(event->payload, (pawl_view){ expected, len })) {
        return pawl__fail(reterr, PAWL_CORRUPT, "offset %" PRIu64 " is damaged", event->offset);
    }
    *ret_call = call;
    *ret_place = place;
    return PAWL_OK;
}

static pawl_status print_events(pawl_ledger *ledger, pawl_error *reterr)
{
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;
    uint64_t expected = 1;
    pawl_status status = pawl_reader_open(ledger, NULL, &reader, reterr);

    while (status == PAWL_OK && (status = pawl_reader_next(reader, &event, reterr)) == PAWL_OK) {
        uint64_t call = 0;
        uint32_t place = 0;
        if (event->offset != expected++) {
            status = pawl__fail(reterr, PAWL_CORRUPT, "a hole before %" PRIu64, event->offset);
        } else if (pawl__view_is(event->kind, "did")) {
            status = check_payload(event, &call, &place, reterr);
            if (status == PAWL_OK) {
                printf("%" PRIu64 " %u %" PRIu64 "\n", call, place, event->offset);
            }
        }
    }
    pawl_reader_free(reader);
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static bool print_turn(void *context, const pawl_turn_info *info)
{
    (void)context;
    if (info->state == PAWL_TURN_COMMITTED) {
        printf("%lld %d 1\n", (long long)info->turn, (int)CALL_COMMITTED);
    }
    return true;
}

/* What stands under a snapshot's name is whole, whatever happened while it was made. */
static bool check_snapshot(void *context, const pawl_snapshot_info *info)
{
    pawl_error *error = context;

    if (info->status != PAWL_OK) {
        (void)pawl__fail(error, info->status, "%s: %s", info->path, info->problem);
    }
    return info->status == PAWL_OK;
}

static pawl_status check_snapshots(const char *directory, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (directory[0] == '\0' || access(directory, F_OK) != 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl_snapshot_list(directory, NULL, check_snapshot, &error, reterr);
    if (status == PAWL_OK && error.status != PAWL_OK) {
        *reterr = error;
        return error.status;
    }
    return status;
}

static pawl_status check(pawl_ledger *ledger, const char *snapshots, pawl_error *reterr)
{
    pawl_status status = pawl_ledger_verify(ledger, NULL, NULL, reterr);

    if (status == PAWL_OK) {
        status = print_events(ledger, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl_ledger_turns(ledger, pawl_view_of("village"), NULL, print_turn, NULL, reterr);
    }
    return status == PAWL_OK ? check_snapshots(snapshots, reterr) : status;
}

/* --- the whole --- */

static void print_anchor(const char *path)
{
    pawl_ledger_head anchor = { 0 };
    char *name = pawl__ledger_anchor_path(path);

    REQUIRE(name != NULL);
    if (pawl__ledger_anchor_read(name, &anchor, NULL) == PAWL_OK) {
        printf("anchor %" PRIu64 "\n", anchor.offset);
    }
    free(name);
}

static pawl_status drop(const char *url, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_open(url, NULL, &pg, reterr);

    return status != PAWL_OK ? status
                             : pawl__pg_script(pg, "DROP SCHEMA IF EXISTS pawl CASCADE", reterr);
}

static pawl_status run(int argc, char **argv, pawl_error *reterr)
{
    static struct writer writer;
    bool server = strncmp(argv[2], "postgres", 8) == 0;
    bool normal = strcmp(argv[argc - 1], "unsafe") == 0;
    char path[512];

    if (strcmp(argv[3], "drop") == 0) {
        return server ? drop(argv[2], reterr) : PAWL_OK;
    }
    snprintf(path, sizeof(path), "%s/ledger.db", argv[2]);
    snprintf(writer.location,
             sizeof(writer.location),
             "%s%s",
             server ? argv[2] : path,
             normal && !server ? "?durability=normal" : "");
    if (!server) {
        snprintf(writer.snapshots, sizeof(writer.snapshots), "%s/snapshots", argv[2]);
    }
    if (strcmp(argv[3], "check") == 0) {
        print_anchor(path);
    }
    pawl_status status = pawl_ledger_open(writer.location, NULL, &writer.ledger, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (strcmp(argv[3], "check") == 0) {
        status = check(writer.ledger, writer.snapshots, reterr);
    } else {
        writer.first = strtoull(argv[4], NULL, 10);
        status = write_calls(&writer, strtoull(argv[5], NULL, 10), reterr);
    }
    pawl_ledger_close(writer.ledger, 0, NULL);
    return status;
}

int main(int argc, char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool writes = argc >= 6 && strcmp(argv[3], "write") == 0;

    if (!writes
        && !(argc >= 4 && (strcmp(argv[3], "check") == 0 || strcmp(argv[3], "drop") == 0))) {
        fprintf(stderr,
                "usage: ledger_writer STORE LOCATION write FIRST CALLS [unsafe]|check|drop\n");
        return 2;
    }
    pawl_status status = run(argc, argv, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "ledger_writer: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}
