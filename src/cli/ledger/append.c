/* pawl ledger append: one event from flags, or one per line of standard input.
 *
 * Lines are appended in batches, as many as are there without waiting, so that a million of them is
 * quick and a program that writes one and waits gets its answer at once. A line is answered only
 * when it is durable, in the order of the input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/map.h"
#include "base/core/quantity.h"
#include "base/core/uuid.h"
#include "base/os/clock.h"
#include "base/os/lines.h"
#include "base/terminal/display.h"
#include "cli/frame/input.h"
#include "cli/frame/text.h"
#include "cli/ledger/ledger.h"

enum {
    BATCH_EVENTS_MAX = 2000,
    BATCH_BYTES_MAX = 4 << 20,
    PAYLOAD_BYTES_MAX = 1 << 20, /* the ledger's own limit, checked there */
    /* A payload as a string with every byte escaped, and the other fields. */
    LINE_BYTES_MAX = 12 * PAYLOAD_BYTES_MAX + (1 << 16),
    ATOMIC_BYTES_MAX = 256 << 20,
};

struct held {
    pawl_event *event;
    uint64_t line; /* it came from; 0: from flags */
};

struct append {
    const struct pawl__cli_run *run;
    pawl_ledger *ledger; /* NULL: there is none yet; made when there is something to append */
    pawl_turn *turn;     /* NULL: outside turns */
    pawl_event defaults;
    bool new_ids;
    bool atomic;

    size_t cap; /* of the arrays */
    size_t count;
    size_t bytes;
    struct held *held;
    pawl_event *events; /* the same, as the ledger takes them */
    pawl_append_result *results;
};

static void drop_events(struct append *append)
{
    for (size_t i = 0; i < append->count; i++) {
        pawl_event_free(append->held[i].event);
    }
    append->count = 0;
    append->bytes = 0;
}

static void append_done(struct append *append)
{
    drop_events(append);
    free(append->held);
    free(append->events);
    free(append->results);
    pawl_turn_free(append->turn);
    pawl__cli_ledger_close_p(&append->ledger);
}

static pawl_status make_room(struct append *append, pawl_error *reterr)
{
    append->cap = append->atomic ? PAWL_LEDGER_BATCH_MAX : BATCH_EVENTS_MAX;
    append->held = calloc(append->cap, sizeof(*append->held));
    append->events = calloc(append->cap, sizeof(*append->events));
    append->results = calloc(append->cap, sizeof(*append->results));
    if (append->held == NULL || append->events == NULL || append->results == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch");
    }
    for (size_t i = 0; i < append->cap; i++) {
        append->results[i].size = sizeof(append->results[i]);
    }
    return PAWL_OK;
}

/* --- a batch --- */

/* {"offset":7,"id":"e-1","duplicate":false} */
static pawl_status answer(const struct append *append,
                          size_t from,
                          size_t count,
                          pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);

    for (size_t i = from; i < from + count; i++) {
        const pawl_append_result *result = &append->results[i];
        bool derived = result->derived_id[0] != '\0';

        pawl__buf_add_format(&out, "{\"offset\":%llu,\"id\":", (unsigned long long)result->offset);
        pawl__display_add_json(&out,
                               derived ? pawl_view_of(result->derived_id) : append->events[i].id);
        pawl__buf_add_format(&out, ",\"duplicate\":%s}\n", result->duplicate ? "true" : "false");
    }
    TRY(pawl__cli_out_add(&out, reterr));
    return pawl__cli_out_check(reterr);
}

/* Whether two of the events have one id. */
static pawl_status find_repeated_id(const pawl_event *events,
                                    size_t count,
                                    bool *ret_repeated,
                                    pawl_error *reterr)
{
    AUTO(pawl__map_free_p) struct pawl__map *ids = NULL;
    char there = 1; /* the value of every id */
    void *before = NULL;

    TRY(pawl__map_new(count, &ids, reterr));
    for (size_t i = 0; i < count && before == NULL; i++) {
        TRY(pawl__map_put(ids, events[i].id, &there, &before, reterr));
    }
    *ret_repeated = before != NULL;
    return PAWL_OK;
}

/* Only a ledger compares the content of events that have one id: one in memory does. */
static pawl_status try_out(const pawl_event *events, size_t count, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;

    TRY(pawl_ledger_open("memory:", NULL, &ledger, reterr));
    return pawl_ledger_append_many(ledger, events, count, NULL, reterr);
}

/* Events that would be refused must not leave a new, empty ledger: they are checked before it is made. */
static pawl_status check_events(const pawl_event *events, size_t count, pawl_error *reterr)
{
    bool repeated = false;

    for (size_t i = 0; i < count; i++) {
        pawl_status status = pawl_event_check(&events[i], NULL, reterr);
        if (status != PAWL_OK) {
            return pawl__mark_index(
                reterr,
                i,
                count == 1 ? status : pawl__fail_context(reterr, status, "event %zu", i));
        }
    }
    TRY(find_repeated_id(events, count, &repeated, reterr));
    return repeated ? try_out(events, count, reterr) : PAWL_OK;
}

static pawl_status create_for(struct append *append,
                              const pawl_event *events,
                              size_t count,
                              pawl_error *reterr)
{
    if (append->ledger != NULL) {
        return PAWL_OK;
    }
    TRY(check_events(events, count, reterr));
    return pawl__cli_ledger_open(append->run, LEDGER_TO_CREATE, &append->ledger, reterr);
}

static pawl_status submit(struct append *append, size_t from, size_t count, pawl_error *reterr)
{
    const pawl_event *events = &append->events[from];
    pawl_append_result *results = &append->results[from];

    TRY(create_for(append, events, count, reterr));
    return append->turn != NULL
               ? pawl_turn_append(append->turn, events, count, results, reterr)
               : pawl_ledger_append_many(append->ledger, events, count, results, reterr);
}

static pawl_status fail_at_line(uint64_t line, pawl_status status, pawl_error *reterr)
{
    return line == 0 ? status
                     : pawl__fail_context(reterr, status, "line %llu", (unsigned long long)line);
}

/* The library names an event by its index; whoever wrote it knows the line. */
static pawl_status fail_atomic(const struct append *append, pawl_status status, pawl_error *reterr)
{
    char named[32];

    if (reterr->index < 0 || (uint64_t)reterr->index >= append->count) {
        return status;
    }
    (void)snprintf(named, sizeof(named), "event %lld: ", (long long)reterr->index);
    if (strncmp(reterr->message, named, strlen(named)) == 0) {
        const char *rest = reterr->message + strlen(named);
        memmove(reterr->message, rest, strlen(rest) + 1);
    }
    return fail_at_line(append->held[reterr->index].line, status, reterr);
}

/* A batch that is refused is halved, until only what is at fault stays outside: everything before
 * it is appended and answered, whatever the batches were. */
static pawl_status append_range(struct append *append,
                                size_t from,
                                size_t count,
                                pawl_error *reterr)
{
    pawl_status status = submit(append, from, count, reterr);
    bool refused = status == PAWL_INVALID || status == PAWL_CONFLICT;

    if (status == PAWL_OK) {
        return answer(append, from, count, reterr);
    }
    if (append->atomic && count > 1) {
        return fail_atomic(append, status, reterr);
    }
    if (count == 1 || !refused) {
        return fail_at_line(append->held[from].line, status, reterr);
    }
    size_t half = count / 2;
    TRY(append_range(append, from, half, reterr));
    return append_range(append, from + half, count - half, reterr);
}

static pawl_status flush(struct append *append, pawl_error *reterr)
{
    pawl_status status =
        append->count == 0 ? PAWL_OK : append_range(append, 0, append->count, reterr);

    drop_events(append);
    return status;
}

/* --- lines --- */

static pawl_status read_event(struct append *append,
                              pawl_view line,
                              pawl_event **ret_event,
                              pawl_error *reterr)
{
    char text[PAWL__UUID_TEXT_SIZE];
    struct pawl__uuid uuid;
    pawl_event *event = NULL;

    if (append->new_ids) {
        TRY(pawl__uuid_next(pawl__uuid_process(), &uuid, reterr));
        pawl__uuid_text(&uuid, text);
        append->defaults.id = pawl_view_of(text);
    }
    pawl_status status = pawl_event_from_json(line, &append->defaults, &event, reterr);
    append->defaults.id = (pawl_view){ NULL, 0 };
    if (status != PAWL_OK) {
        return status;
    }
    if (append->turn != NULL && event->turn != append->defaults.turn) {
        pawl_event_free(event);
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "turn: is not %lld, the one of --turn",
                          (long long)append->defaults.turn);
    }
    *ret_event = event;
    return PAWL_OK;
}

static bool is_blank(pawl_view line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (strchr(" \t\r", line.data[i]) == NULL || line.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

static pawl_status hold(struct append *append, pawl_event *event, uint64_t line, pawl_error *reterr)
{
    if (append->count == append->cap || append->bytes > ATOMIC_BYTES_MAX) {
        pawl_event_free(event);
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "--atomic takes at most %d events and %d MiB",
                          PAWL_LEDGER_BATCH_MAX,
                          ATOMIC_BYTES_MAX >> 20);
    }
    append->held[append->count] = (struct held){ event, line };
    append->events[append->count++] = *event;
    append->bytes += event->payload.len;
    return PAWL_OK;
}

static pawl_status add_line(struct append *append,
                            pawl_view line,
                            struct pawl__lines *lines,
                            pawl_error *reterr)
{
    pawl_event *event = NULL;
    pawl_error bad = PAWL_ERROR_INIT;

    if (is_blank(line)) {
        return PAWL_OK;
    }
    pawl_status status = read_event(append, line, &event, &bad);
    if (status == PAWL_OK) {
        status = hold(append, event, lines->number, &bad);
    }
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    /* What came before it is appended and answered first; it may itself be refused. */
    if (!append->atomic) {
        TRY(flush(append, reterr));
    }
    *reterr = bad;
    return fail_at_line(lines->number, status, reterr);
}

static bool is_full(const struct append *append)
{
    return append->count == append->cap || append->bytes >= BATCH_BYTES_MAX;
}

static pawl_status append_lines(struct append *append, pawl_error *reterr)
{
    AUTO(pawl__lines_done) struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, LINE_BYTES_MAX);
    pawl_error end = PAWL_ERROR_INIT;
    pawl_view line;
    pawl_status status;

    while ((status = pawl__lines_next(&lines, &line, &end)) == PAWL_OK) {
        TRY(add_line(append, line, &lines, reterr));
        if (!append->atomic && (is_full(append) || !pawl__lines_ready(&lines))) {
            TRY(flush(append, reterr));
        }
    }
    bool whole = status == PAWL_NOT_FOUND;
    pawl_status flushed = append->atomic && !whole ? PAWL_OK : flush(append, reterr);
    if (whole || flushed != PAWL_OK) {
        return flushed;
    }
    *reterr = end;
    return pawl__fail_context(reterr, status, "standard input");
}

/* --- one event --- */

static pawl_status append_one(struct append *append,
                              const struct pawl__cli_run *run,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *payload = NULL;
    const char *id = pawl__cli_args_value(run->args, "id");
    char text[PAWL__UUID_TEXT_SIZE];
    struct pawl__uuid uuid;
    pawl_event *event = &append->events[0];

    TRY(pawl__cli_input_read("payload",
                             pawl__cli_args_value(run->args, "payload"),
                             PAYLOAD_BYTES_MAX,
                             &payload,
                             reterr));
    *event = append->defaults;
    event->id = pawl_view_of(id);
    event->payload = pawl_view_of(payload);
    if (append->new_ids) {
        TRY(pawl__uuid_next(pawl__uuid_process(), &uuid, reterr));
        pawl__uuid_text(&uuid, text);
        event->id = pawl_view_of(text);
    }
    if (event->turn < 0) {
        return pawl__fail(reterr, PAWL_INVALID, "turn: missing");
    }
    return append_range(append, 0, 1, reterr);
}

/* --- the command --- */

static pawl_status parse_flags(struct append *append,
                               const struct pawl__cli_run *run,
                               pawl_error *reterr)
{
    const struct pawl__cli_args *args = run->args;
    const char *id = pawl__cli_args_value(args, "id");
    const char *created_at = pawl__cli_args_value(args, "created-at");
    pawl_event *defaults = &append->defaults;

    defaults->run_id = pawl_view_of(pawl__cli_args_value(args, "run"));
    defaults->kind = pawl_view_of(pawl__cli_args_value(args, "kind"));
    defaults->actor = pawl_view_of(pawl__cli_args_value(args, "actor"));
    defaults->turn = pawl__cli_args_has(args, "turn") ? pawl__cli_args_number(args, "turn") : -1;
    defaults->schema_version = pawl__cli_args_number(args, "schema-version");
    append->new_ids = id != NULL && strcmp(id, "new") == 0;
    append->atomic = pawl__cli_args_has(args, "atomic");
    if (id != NULL && !append->new_ids && !pawl__cli_args_has(args, "payload")) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--id' is for one event, with --payload; lines bring their own, or all "
                          "get a random one with --id new");
    }
    if (created_at != NULL) {
        TRY(pawl__cli_ledger_time(run, "created-at", created_at, &defaults->created_at_us, reterr));
    }
    if (pawl__cli_args_has(args, "attempt") && (defaults->run_id.len == 0 || defaults->turn < 0)) {
        return pawl__fail(reterr, PAWL_INVALID, "'--attempt' needs --run and --turn beside it");
    }
    if (pawl__cli_args_has(args, "ordinal") && !pawl__cli_args_has(args, "attempt")) {
        return pawl__fail(reterr, PAWL_INVALID, "'--ordinal' needs --attempt beside it");
    }
    return PAWL_OK;
}

/* Only one that is there. A turn that is gone on with is in one. */
static pawl_status open_existing(struct append *append,
                                 const struct pawl__cli_run *run,
                                 pawl_error *reterr)
{
    pawl_error missing = PAWL_ERROR_INIT;

    if (pawl__cli_ledger_is_memory(run)) {
        return pawl__cli_ledger_open(run, LEDGER_TO_CREATE, &append->ledger, reterr);
    }
    pawl_status status = pawl__cli_ledger_open(run, LEDGER_TO_WRITE, &append->ledger, &missing);
    if (status == PAWL_OK
        || (status == PAWL_NOT_FOUND && !pawl__cli_args_has(run->args, "attempt"))) {
        return PAWL_OK;
    }
    *reterr = missing;
    return status;
}

static pawl_status resume_turn(struct append *append,
                               const struct pawl__cli_run *run,
                               pawl_error *reterr)
{
    if (!pawl__cli_args_has(run->args, "attempt")) {
        return PAWL_OK;
    }
    return pawl_turn_resume(append->ledger,
                            append->defaults.run_id,
                            append->defaults.turn,
                            (uint32_t)pawl__cli_args_number(run->args, "attempt"),
                            pawl__cli_args_has(run->args, "ordinal")
                                ? (uint64_t)pawl__cli_args_number(run->args, "ordinal")
                                : PAWL_ORDINAL_FIRST,
                            &append->turn,
                            reterr);
}

static pawl_status append_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(append_done) struct append append = { .run = run, .defaults = PAWL_EVENT_INIT };

    TRY(parse_flags(&append, run, reterr));
    TRY(make_room(&append, reterr));
    TRY(open_existing(&append, run, reterr));
    TRY(resume_turn(&append, run, reterr));
    TRY(pawl__cli_args_has(run->args, "payload") ? append_one(&append, run, reterr)
                                                 : append_lines(&append, reterr));
    /* No lines at all: an empty ledger is what was asked for. */
    return append.ledger == NULL
               ? pawl__cli_ledger_open(run, LEDGER_TO_CREATE, &append.ledger, reterr)
               : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_ledger_append = {
    .name = "append",
    .summary = "append events, each once",
    .description =
        "Appends one event from flags when --payload is given, and otherwise one per line from "
        "standard input: JSON objects with the fields id, run_id, turn, kind, actor, payload and, "
        "if you like, created_at and schema_version. Flags fill in what lines leave out; only the "
        "flag "
        "--id knows the word 'new', in a line it is an id like any other.\n\n"
        "Each event is answered, in order and only when it is on disk, by a line "
        "{\"offset\":7,\"id\":\"e-1\",\"duplicate\":false}. The same event again is a duplicate "
        "with its first offset, so a program that got no answer just appends it again. The same id "
        "with "
        "other content (created_at does not count) is a conflict, exit code 4.\n\n"
        "A line that cannot be appended ends the command with its number: everything before it is "
        "appended and answered, nothing after it is. With --atomic the whole input, up to 100000 "
        "events, is appended or nothing of it.\n\n"
        "While a turn is open, an event of it is appended with --attempt, and refused without. "
        "None "
        "is appended when another attempt has begun (exit code 4).\n\n"
        "With --attempt events may come without ids: these follow from run, turn, attempt, actor, "
        "kind and ordinal. --ordinal says how many events without ids the attempt already has of "
        "the actor and kind. The right number appends, a lower one repeats: the same content is a "
        "duplicate, other content a conflict. A higher one is refused. Only the first call may "
        "leave it out; a later one without it is refused, and the message names the number. All of "
        "these are exit code 4.",
    .flags = FLAGS(
        FLAG("id",
             "ID",
             "Of the event, up to 200 bytes; 'new' makes a random one, which no retry finds."),
        FLAG("run", "RUN", "The run it belongs to."),
        NUMBER_FLAG("turn", "N", 0, INT64_MAX, "The turn of the run."),
        FLAG("kind", "KIND", "What happened."),
        FLAG("actor", "ACTOR", "Who did it."),
        FLAG("payload", "JSON", "What it says; @FILE reads a file, - standard input."),
        NUMBER_FLAG("schema-version", "N", 1, INT32_MAX, "Of the payload.", .fallback = "1"),
        FLAG("created-at", "TIME", "When; now if it is left out."),
        NUMBER_FLAG("attempt", "N", 1, UINT32_MAX, "Append to this attempt at the turn."),
        NUMBER_FLAG("ordinal",
                    "N",
                    0,
                    INT64_MAX,
                    "How many events without ids the attempt already has of this actor and kind."),
        { .name = "atomic", .help = "All of the input or nothing." }),
    .examples = EXAMPLES(
        TESTED("pawl ledger append --data ./data --id e-1 --run village --turn 1 --kind say "
               "--actor ada --payload '{\"text\":\"hello\"}'",
               "one event"),
        TESTED("echo '{\"id\":\"e-1\",\"turn\":1,\"kind\":\"say\",\"actor\":\"ada\","
               "\"payload\":\"hello\"}' | pawl ledger append --data ./data --run village",
               "what a program writes, one event per line")),
    .run = append_run,
};
