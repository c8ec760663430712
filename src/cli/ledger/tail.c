/* pawl ledger tail|show */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/log/log.h"
#include "cli/frame/out_watch.h"
#include "cli/frame/text.h"
#include "cli/ledger/ledger.h"

/* Between two reads when no event comes; any event ends the wait at once. A server that is away is
 * named after it. */
enum { WAIT_MS = 5000 };

/* Prints what there is, at most *left events. NOT_FOUND: nothing more for now. */
static pawl_status print_there(const struct pawl__cli_run *run,
                               pawl_reader *reader,
                               uint64_t *left,
                               pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    const pawl_event *event;

    while (*left > 0 && !pawl__cli_interrupted()
           && (status = pawl_reader_next(reader, &event, reterr)) == PAWL_OK) {
        TRY(pawl__cli_ledger_print(run, event, reterr));
        (*left)--;
    }
    return status;
}

static void wake_reader(void *reader)
{
    pawl_reader_cancel(reader);
}

/* The server of the ledger cannot be reached, or has stalled. It may come back: that is said once each
 * time, and waited for. */
static void note_away(bool is_away, const pawl_error *error, bool *away)
{
    if (is_away && !*away) {
        LOG_WARNING("the ledger cannot be reached; trying again until it can",
                    LOG_TEXT("error", error->message));
    }
    *away = is_away;
}

/* Prints all there is; OK as well when the server is away. */
static pawl_status print_more(const struct pawl__cli_run *run,
                              pawl_reader *reader,
                              uint64_t *left,
                              bool *away,
                              pawl_error *reterr)
{
    pawl_status status = print_there(run, reader, left, reterr);
    bool is_away = status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT;

    note_away(is_away, reterr, away);
    return is_away || status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

/* OK: it is time to look, whether there is an event or not. */
static pawl_status wait_for_more(pawl_reader *reader, bool *away, pawl_error *reterr)
{
    pawl_status status = pawl_reader_wait(reader, WAIT_MS, reterr);

    note_away(status == PAWL_UNAVAILABLE, reterr, away);
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT ? PAWL_OK : status;
}

static pawl_status follow_on(const struct pawl__cli_run *run,
                             pawl_reader *reader,
                             uint64_t left,
                             pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    bool away = false;

    while (status == PAWL_OK && left > 0 && !pawl__cli_interrupted()) {
        status = print_more(run, reader, &left, &away, reterr);
        if (status == PAWL_OK) {
            status = pawl__cli_out_check(reterr); /* the reader sees it before we wait */
        }
        if (status == PAWL_OK && left > 0) {
            status = wait_for_more(reader, &away, reterr);
        }
    }
    return pawl__cli_interrupted() ? PAWL_OK : status;
}

static pawl_status follow(const struct pawl__cli_run *run,
                          pawl_reader *reader,
                          uint64_t left,
                          pawl_error *reterr)
{
    const struct pawl__cli_wakeable woken = { wake_reader, reader };
    struct pawl__cli_out_watch output;

    pawl__cli_out_watch_start(&output, &woken);
    return pawl__cli_out_watch_end(&output, follow_on(run, reader, left, reterr), reterr);
}

static pawl_status tail_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(pawl__cli_reader_close_p) pawl_reader *reader = NULL;
    pawl_event_filter filter;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    uint64_t left = pawl__cli_args_has(run->args, "limit")
                        ? (uint64_t)pawl__cli_args_number(run->args, "limit")
                        : UINT64_MAX;

    TRY(pawl__cli_ledger_filter(run, &filter, reterr));
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    options.from = (uint64_t)pawl__cli_args_number(run->args, "from");
    options.complete_turns = pawl__cli_args_has(run->args, "complete-turns");
    options.filter = &filter;
    TRY(pawl_reader_open(ledger, &options, &reader, reterr));
    if (pawl__cli_args_has(run->args, "follow")) {
        return follow(run, reader, left, reterr);
    }
    pawl_status status = print_there(run, reader, &left, reterr);
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

const struct pawl__cli_command pawl__cli_cmd_ledger_tail = {
    .name = "tail",
    .summary = "print events in order, and wait for more",
    .description =
        "Prints every event after an offset, in order, each once: as JSON, one object per line, "
        "into a pipe or with --json, and as a short line on a terminal. A program that follows "
        "keeps the last offset it has dealt with and hands it in as --from when it starts "
        "again. An offset after the end of the ledger is exit code 2: this is another ledger, or "
        "an "
        "older copy of it.\n\n"
        "With --follow it waits for more, from whatever process they come, until Ctrl-C, which is "
        "exit code 0. It ends when nobody reads its output any more, and when the file of the "
        "ledger is replaced or deleted; a PostgreSQL server that is away is waited for. With "
        "--complete-turns it shows only what is outside turns or in a turn that "
        "was committed, and holds back at the first turn that is still open.",
    .flags = FLAGS(
        LEDGER_FROM_FLAG,
        NUMBER_FLAG("limit", "N", 1, INT64_MAX, "End after this many events.", .letter = 'n'),
        { .name = "follow", .letter = 'f', .help = "Wait for more." },
        { .name = "complete-turns", .help = "Only events outside turns or in committed turns." },
        LEDGER_FILTER_FLAGS),
    .examples =
        EXAMPLES({ .line = "pawl ledger tail --data ./data --from 100 --limit 10",
                   .says = "events 101 to 110" },
                 { .line = "pawl ledger tail --data ./data --follow --kind say | jq .payload",
                   .says = "what is said, as it is said" }),
    .run = tail_run,
    .only_prints = true,
};

/* --- show --- */

static pawl_status find(pawl_ledger *ledger,
                        const char *text,
                        pawl_event **ret_event,
                        pawl_error *reterr)
{
    int64_t offset = 0;
    pawl_status status = PAWL_NOT_FOUND;

    if (pawl__integer_parse(pawl_view_of(text), &offset, NULL) == PAWL_OK && offset > 0) {
        status = pawl_ledger_get(ledger, pawl_view_of(NULL), (uint64_t)offset, ret_event, reterr);
    }
    if (status == PAWL_NOT_FOUND) {
        status = pawl_ledger_get(ledger, pawl_view_of(text), 0, ret_event, reterr);
    }
    return status == PAWL_NOT_FOUND ? pawl__fail(reterr,
                                                 PAWL_NOT_FOUND,
                                                 "no event has the offset or id %s",
                                                 pawl__cli_quote(text).text)
                                    : status;
}

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(pawl__cli_event_free_p) pawl_event *event = NULL;
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);

    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    TRY(find(ledger, pawl__cli_args_operand(run->args, 0), &event, reterr));
    TRY(pawl__cli_ledger_add_json(run, event, &out, reterr));
    pawl__buf_add_char(&out, '\n');
    return pawl__cli_out_add(&out, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_show = {
    .name = "show",
    .summary = "print one event whole",
    .description = "Prints the event with this offset or id as JSON. A number is taken for an "
                   "offset first. Exit code 3 when no event has it.",
    .operands = OPERANDS({ .name = "ID|OFFSET", .help = "Which event." }),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger show "
                                                      "--data ./data e-1",
                                "by id"),
                         { .line = "pawl ledger show --data ./data 12", .says = "by offset" }),
    .run = show_run,
    .only_prints = true,
};
