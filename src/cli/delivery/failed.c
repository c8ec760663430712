/* pawl failed list|show|export|retry|resolve|abandon */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/input.h"
#include "cli/work/work.h"
#include "records/delivery.h"

enum { PAYLOAD_BYTES_MAX = 16 << 20 };

#define FAILED_EXAMPLE                                                                     \
    "echo '{\"order\":' > orders.jsonl && pawl deliver --data ./data --from orders.jsonl " \
    "--into orders --drain && "

/* --- what the flags say --- */

static pawl_view value_of(const struct pawl__cli_run *run, const char *flag)
{
    const char *value = pawl__cli_args_value(run->args, flag);

    return value == NULL ? (pawl_view){ NULL, 0 } : pawl_view_of(value);
}

static pawl_status take_time(const struct pawl__cli_run *run,
                             const char *flag,
                             int64_t *ret_us,
                             pawl_error *reterr)
{
    pawl_view text = value_of(run, flag);

    if (text.len == 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl__time_parse(text, ret_us, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "'--%s'", flag);
}

static pawl_status take_filter(const struct pawl__cli_run *run,
                               pawl_failed_filter *ret_filter,
                               pawl_error *reterr)
{
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    size_t index = 0;
    const char *name = NULL;

    while ((name = pawl__cli_args_next(run->args, "status", &index)) != NULL) {
        unsigned status = 0; /* the table allows nothing but the names */
        while (strcmp(pawl__failed_status_names[status], name) != 0) {
            status++;
        }
        filter.statuses |= 1U << status;
    }
    filter.reason = value_of(run, "reason");
    filter.source = value_of(run, "source");
    filter.transaction_id = value_of(run, "transaction-id");
    TRY(take_time(run, "since", &filter.since_us, reterr));
    TRY(take_time(run, "until", &filter.until_us, reterr));
    *ret_filter = filter;
    return PAWL_OK;
}

#define FILTER_FLAGS                                                                           \
    FLAG("pipeline", "NAME", "Only of this pipeline."),                                        \
        FLAG("reason", "REASON", "Only these: not_json, unmappable, conflict, rejected, ..."), \
        FLAG("source", "NAME", "Only events of this source."),                                 \
        FLAG("transaction-id", "ID", "Only the event of this id."),                            \
        FLAG("since", "TIME", "Only what failed then or later, 2026-01-29T10:00:00Z."),        \
        FLAG("until", "TIME", "Only what failed before.")
#define STATUS_FLAG                                                          \
    FLAG("status",                                                           \
         "STATUS",                                                           \
         "Only events in this state.",                                       \
         .choices = CHOICES("pending", "retrying", "resolved", "abandoned"), \
         .repeats = true)
#define ID_OPERAND                                                       \
    {                                                                    \
        .name = "ID", .help = "Of the failed event, as 'list' shows it." \
    }

/* --- pipelines --- */

struct names {
    char **items;
    size_t count;
    size_t room;
    bool is_short; /* of memory */
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

static bool add_name(void *context, const pawl_pipeline_status *status)
{
    struct names *names = context;
    char **items = pawl__grow(names->items, names->count, &names->room, sizeof(*items));
    char *name = items == NULL ? NULL : pawl__view_dup(status->name);

    names->items = items == NULL ? names->items : items;
    names->is_short = name == NULL;
    if (name != NULL) {
        names->items[names->count++] = name;
    }
    return name != NULL;
}

/* The one that is named, or all. */
static pawl_status find_pipelines(const struct pawl__cli_run *run,
                                  struct pawl__cli_delivery *delivery,
                                  struct names *names,
                                  pawl_error *reterr)
{
    const char *only = pawl__cli_args_value(run->args, "pipeline");

    TRY(pawl__cli_pipeline_visit(delivery, only, add_name, names, reterr));
    return names->is_short ? pawl__fail(reterr, PAWL_NOMEM, "no memory for names") : PAWL_OK;
}

typedef pawl_status act_fn(const struct pawl__cli_run *run,
                           struct pawl__cli_delivery *delivery,
                           const struct names *names,
                           pawl_error *reterr);

static pawl_status act_opened(const struct pawl__cli_run *run,
                              struct pawl__cli_delivery *delivery,
                              act_fn *act,
                              pawl_error *reterr)
{
    AUTO(names_done) struct names names = { .items = NULL };

    TRY(find_pipelines(run, delivery, &names, reterr));
    return act(run, delivery, &names, reterr);
}

static pawl_status with_delivery(struct pawl__cli_run *run, act_fn *act, pawl_error *reterr)
{
    struct pawl__cli_delivery delivery;

    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    return pawl__cli_delivery_leave(&delivery, act_opened(run, &delivery, act, reterr), reterr);
}

/* --- list --- */

static const struct pawl__column list_columns[] = {
    { "id", true },        { "pipeline", false },      { "status", true },
    { "failed_at", true }, { "failure_reason", true }, { "retry_count", false },
    { "event_id", false }, { "last_error", false },
};

static bool add_event(void *context, const pawl_failed_event *event)
{
    return pawl__cli_rows_add_record(context, event);
}

static pawl_status list_events(const struct pawl__cli_run *run,
                               struct pawl__cli_delivery *delivery,
                               const struct names *names,
                               pawl_error *reterr)
{
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    pawl_failed_filter filter;
    pawl_status status = PAWL_OK;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__failed_event_record, list_columns, COUNT_OF(list_columns), reterr);
    TRY(take_filter(run, &filter, reterr));
    filter.newest_first = !pawl__cli_args_has(run->args, "oldest-first");
    for (size_t i = 0; i < names->count && status == PAWL_OK && rows.status == PAWL_OK; i++) {
        pawl_page page = PAWL_PAGE_INIT;
        page.limit = (uint64_t)pawl__cli_args_number(run->args, "limit");
        status = pawl__cli_failed_list(
            delivery, names->items[i], &filter, &page, add_event, &rows, reterr);
    }
    return pawl__cli_rows_end(&rows, status);
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, list_events, reterr);
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list failed events, newest first",
    .description =
        "Prints one line per event, pipeline by pipeline; with --json everything that is "
        "known of it, the payload too.",
    .flags = FLAGS(FILTER_FLAGS,
                   STATUS_FLAG,
                   { .name = "oldest-first", .help = "In the order in which they arrived." },
                   NUMBER_FLAG("limit",
                               "N",
                               0,
                               INT64_MAX,
                               "Up to this many of each pipeline; 0 is all.",
                               .letter = 'n',
                               .fallback = "100")),
    .examples = EXAMPLES(TESTED(FAILED_EXAMPLE "pawl failed list --data ./data --status pending",
                                "what waits for a person?")),
    .run = list_run,
    .only_prints = true,
};

/* --- export --- */

static pawl_status export_events(const struct pawl__cli_run *run,
                                 struct pawl__cli_delivery *delivery,
                                 const struct names *names,
                                 pawl_error *reterr)
{
    struct pawl__cli_run as_json = *run;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    pawl_failed_filter filter;
    pawl_status status = PAWL_OK;

    as_json.json = true;
    pawl__cli_rows_start_records(
        &rows, &as_json, &pawl__failed_event_record, list_columns, COUNT_OF(list_columns), reterr);
    TRY(take_filter(run, &filter, reterr));
    for (size_t i = 0; i < names->count && status == PAWL_OK && rows.status == PAWL_OK; i++) {
        status = pawl__cli_failed_list(
            delivery, names->items[i], &filter, NULL, add_event, &rows, reterr);
    }
    return pawl__cli_rows_end(&rows, status);
}

static pawl_status export_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, export_events, reterr);
}

static const struct pawl__cli_command export_command = {
    .name = "export",
    .summary = "print failed events as JSON, all of them",
    .description =
        "One object per line in the order of arrival, with payload, headers and what was "
        "decided. A payload that is not JSON is {\"base64\": ...}; payload_encoding says "
        "which it is.",
    .flags = FLAGS(FILTER_FLAGS, STATUS_FLAG),
    .examples = EXAMPLES(TESTED(FAILED_EXAMPLE "pawl failed export --data ./data > failed.jsonl",
                                "to keep them, or to mend them elsewhere")),
    .run = export_run,
    .only_prints = true,
};

/* --- show --- */

struct showing {
    const struct pawl__cli_run *run;
    const char *pipeline; /* NULL: not found yet */
    bool is_printed;      /* what is found is printed */
    pawl_status status;
    pawl_error *reterr;
};

static pawl_status print_event(const struct pawl__cli_run *run,
                               const pawl_failed_event *event,
                               pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "field", true }, { "value", true } };
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    bool more = true;

    if (run->json) {
        pawl__cli_rows_start_records(
            &rows, run, &pawl__failed_event_record, list_columns, COUNT_OF(list_columns), reterr);
        (void)pawl__cli_rows_add_record(&rows, event);
        return pawl__cli_rows_end(&rows, PAWL_OK);
    }
    pawl__cli_rows_start(&rows, run, columns, COUNT_OF(columns), reterr);
    for (size_t i = 0; i < pawl__failed_event_record.count && more; i++) {
        const struct pawl__field *field = &pawl__failed_event_record.fields[i];
        char time[PAWL__TIME_SIZE];
        const struct pawl__cell cells[] = {
            pawl__cell_text(pawl_view_of(field->name)),
            pawl__record_cell(field, event, time),
        };
        more = cells[1].kind == PAWL__CELL_NONE || pawl__cli_rows_add(&rows, cells);
    }
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

static bool show_event(void *context, const pawl_failed_event *event)
{
    struct showing *showing = context;

    if (showing->is_printed) {
        showing->status = print_event(showing->run, event, showing->reterr);
    }
    showing->pipeline = ""; /* of whom, the caller knows */
    return true;
}

/* Which pipeline has it, and prints it on the way when that is wanted. */
static pawl_status find_event(const struct pawl__cli_run *run,
                              struct pawl__cli_delivery *delivery,
                              const struct names *names,
                              bool is_printed,
                              const char **ret_pipeline,
                              pawl_error *reterr)
{
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    struct showing showing = { .run = run, .is_printed = is_printed, .reterr = reterr };
    const char *id = pawl__cli_args_operand(run->args, 0);

    filter.id = pawl_view_of(id);
    for (size_t i = 0; i < names->count && showing.pipeline == NULL; i++) {
        TRY(pawl__cli_failed_list(
            delivery, names->items[i], &filter, NULL, show_event, &showing, reterr));
        *ret_pipeline = names->items[i];
    }
    return showing.pipeline != NULL
               ? showing.status
               : pawl__fail(reterr, PAWL_NOT_FOUND, "no failed event '%s'", id);
}

static pawl_status show_found(const struct pawl__cli_run *run,
                              struct pawl__cli_delivery *delivery,
                              const struct names *names,
                              pawl_error *reterr)
{
    const char *pipeline = NULL;

    return find_event(run, delivery, names, true, &pipeline, reterr);
}

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, show_found, reterr);
}

static const struct pawl__cli_command show = {
    .name = "show",
    .summary = "print one failed event whole",
    .description =
        "Its payload and headers, why it failed, and what was decided about it. Exit code "
        "3 when no failed event has this id.",
    .flags = FLAGS(FLAG("pipeline", "NAME", "Look only in this pipeline.")),
    .operands = OPERANDS(ID_OPERAND),
    .examples = EXAMPLES({ .line = "pawl failed show 5b0f1c9e-7a34-8c1d-9e55-0c6d1f2a3b4c",
                           .says = "why did it fail?" }),
    .run = show_run,
    .only_prints = true,
};

/* --- retry, resolve, abandon --- */

static pawl_view who_am_i(const struct pawl__cli_run *run, char *room, size_t size)
{
    pawl_view given = value_of(run, "by");
    struct passwd entry;
    struct passwd *user = NULL;
    char texts[4096];

    if (given.len > 0) {
        return given;
    }
    if (getpwuid_r(geteuid(), &entry, texts, sizeof(texts), &user) == 0 && user != NULL
        && user->pw_name != NULL) {
        snprintf(room, size, "%s", user->pw_name);
    } else {
        snprintf(room, size, "uid %lu", (unsigned long)geteuid());
    }
    return pawl_view_of(room);
}

static pawl_status print_result(const struct pawl__cli_run *run,
                                const pawl_failed_result *result,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        { "delivered", result->delivered },
        { "filtered", result->filtered },
        { "failed again", result->refused },
        { "closed", result->closed },
    };

    if (run->json) {
        pawl__record_write(&pawl__failed_result_record, result, &text);
        pawl__buf_add_char(&text, '\n');
        return pawl__cli_out_add(&text, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        if (counts[i].count > 0) {
            pawl__buf_add_format(
                &text, "%s %llu\n", counts[i].name, (unsigned long long)counts[i].count);
        }
    }
    return pawl__cli_out_add(&text, reterr);
}

/* What a command decides, from its flags. */
struct deciding {
    const struct pawl__cli_run *run;
    struct pawl__cli_delivery *delivery;
    pawl_failed_action action;
    pawl_failed_filter filter;
    pawl_failed_decision decision;
};

static pawl_status decide(struct deciding *deciding, const char *pipeline, pawl_error *reterr)
{
    pawl_failed_result result = PAWL_FAILED_RESULT_INIT;

    TRY(pawl__cli_failed_act(deciding->delivery,
                             pipeline,
                             deciding->action,
                             &deciding->filter,
                             &deciding->decision,
                             &result,
                             reterr));
    TRY(print_result(deciding->run, &result, reterr));
    return result.refused == 0 ? PAWL_OK
                               : pawl__fail(reterr,
                                            PAWL_FAILED,
                                            "%llu of %llu failed again, the last with: %s",
                                            (unsigned long long)result.refused,
                                            (unsigned long long)result.matched,
                                            result.error);
}

/* Without --expect it only says how many there are. */
static pawl_status decide_many(struct deciding *deciding,
                               const struct names *names,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    const struct pawl__cli_run *run = deciding->run;
    uint64_t count = 0;

    if (names->count != 1) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "there are %zu pipelines: say which with --pipeline",
                          names->count);
    }
    TRY(take_filter(run, &deciding->filter, reterr));
    if (pawl__cli_args_has(run->args, "expect")) {
        deciding->decision.expected = (uint64_t)pawl__cli_args_number(run->args, "expect");
        return decide(deciding, names->items[0], reterr);
    }
    TRY(pawl__cli_failed_count(
        deciding->delivery, names->items[0], deciding->action, &deciding->filter, &count, reterr));
    pawl__buf_add_format(&text,
                         run->json ? "{\"matched\":%llu}\n"
                                   : "%llu match, and nothing was done: --expect says how many\n",
                         (unsigned long long)count);
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status decide_flags(const struct pawl__cli_run *run,
                                struct pawl__cli_delivery *delivery,
                                const struct names *names,
                                pawl_failed_action action,
                                pawl_error *reterr)
{
    AUTO(pawl__text_free) char *payload = NULL;
    struct deciding deciding = { .run = run,
                                 .delivery = delivery,
                                 .action = action,
                                 .filter = PAWL_FAILED_FILTER_INIT,
                                 .decision = PAWL_FAILED_DECISION_INIT };
    const char *id = pawl__cli_args_operand(run->args, 0);
    const char *given =
        action == PAWL_FAILED_RETRY ? pawl__cli_args_value(run->args, "payload") : NULL;
    const char *pipeline = NULL;
    char user[256];

    if ((id != NULL) == pawl__cli_args_has(run->args, "all")) {
        return pawl__fail(reterr, PAWL_INVALID, "name one failed event, or --all with filters");
    }
    if (given != NULL) {
        TRY(pawl__cli_input_read("payload", given, PAYLOAD_BYTES_MAX, &payload, reterr));
        deciding.decision.edited_payload = pawl_view_of(payload);
    }
    deciding.decision.by = who_am_i(run, user, sizeof(user));
    deciding.decision.notes = value_of(run, "notes");
    if (id == NULL) {
        return decide_many(&deciding, names, reterr);
    }
    TRY(find_event(run, delivery, names, false, &pipeline, reterr));
    deciding.filter.id = pawl_view_of(id);
    return decide(&deciding, pipeline, reterr);
}

static pawl_status retry_flags(const struct pawl__cli_run *run,
                               struct pawl__cli_delivery *delivery,
                               const struct names *names,
                               pawl_error *reterr)
{
    return decide_flags(run, delivery, names, PAWL_FAILED_RETRY, reterr);
}

static pawl_status resolve_flags(const struct pawl__cli_run *run,
                                 struct pawl__cli_delivery *delivery,
                                 const struct names *names,
                                 pawl_error *reterr)
{
    return decide_flags(run, delivery, names, PAWL_FAILED_RESOLVE, reterr);
}

static pawl_status abandon_flags(const struct pawl__cli_run *run,
                                 struct pawl__cli_delivery *delivery,
                                 const struct names *names,
                                 pawl_error *reterr)
{
    return decide_flags(run, delivery, names, PAWL_FAILED_ABANDON, reterr);
}

static pawl_status retry_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, retry_flags, reterr);
}

static pawl_status resolve_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, resolve_flags, reterr);
}

static pawl_status abandon_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_delivery(run, abandon_flags, reterr);
}

#define DECISION_FLAGS                                                                          \
    FILTER_FLAGS, STATUS_FLAG, { .name = "all", .help = "Every event that the filters mean." }, \
        NUMBER_FLAG("expect",                                                                   \
                    "N",                                                                        \
                    0,                                                                          \
                    INT64_MAX,                                                                  \
                    "With --all: act, if it is this many. Without it they are only counted."),  \
        FLAG("by", "NAME", "Who decides; the user of this process if it is left out."),         \
        FLAG("notes", "TEXT", "Why.")
#define DECISION_OPERAND                                                                   \
    {                                                                                      \
        .name = "ID", .help = "Of the failed event, as 'list' shows it.", .optional = true \
    }
#define BULK_NOTE                                                                                \
    "\n\nWith --all the filters choose the events, of one pipeline. The first run counts them; " \
    "the "                                                                                       \
    "second acts when --expect is still right, and is exit code 4 when it is not."

static const struct pawl__cli_command retry = {
    .name = "retry",
    .summary = "deliver failed events after all",
    .description =
        "Tries each event once more: its row, and that it is resolved, become visible together. "
        "--payload delivers another JSON value in its place; the original is kept in "
        "failed_events, "
        "and the event stays known by its id. One that fails again is pending, with the new error, "
        "and makes exit code 1. An id that is in the table already is never doubled." BULK_NOTE,
    .flags =
        FLAGS(DECISION_FLAGS, FLAG("payload", "JSON", "Deliver this instead; @FILE reads a file.")),
    .operands = OPERANDS(DECISION_OPERAND),
    .examples = EXAMPLES(
        TESTED(FAILED_EXAMPLE "pawl failed retry --data ./data \"$(pawl failed list --data ./data "
                              "--json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\" --payload "
                              "'{\"order\":17}' --notes 'cut off by the producer'",
               "mend one event and deliver it"),
        TESTED(FAILED_EXAMPLE "pawl failed retry --data ./data --all --reason not_json",
               "how many would it be?")),
    .run = retry_run,
};

static const struct pawl__cli_command resolve = {
    .name = "resolve",
    .summary = "note that somebody has dealt with failed events",
    .description = "Nothing is delivered; who, when and why are kept." BULK_NOTE,
    .flags = FLAGS(DECISION_FLAGS),
    .operands = OPERANDS(DECISION_OPERAND),
    .examples = EXAMPLES(TESTED(FAILED_EXAMPLE "pawl failed resolve --data ./data --all --expect 1 "
                                               "--notes 'booked by hand'",
                                "the one that there is")),
    .run = resolve_run,
};

static const struct pawl__cli_command abandon = {
    .name = "abandon",
    .summary = "give failed events up",
    .description = "Nothing is delivered. They stay in failed_events, and can still be retried or "
                   "resolved." BULK_NOTE,
    .flags = FLAGS(DECISION_FLAGS),
    .operands = OPERANDS(DECISION_OPERAND),
    .examples = EXAMPLES(TESTED(FAILED_EXAMPLE "pawl failed abandon --data ./data --all --reason "
                                               "not_json --expect 1 --by kim",
                                "nobody will mend these")),
    .run = abandon_run,
};

const struct pawl__cli_command pawl__cli_cmd_failed = {
    .name = "failed",
    .summary = "events that could not be delivered",
    .description =
        "An event that cannot be a row of its table (not JSON, a value that its column cannot "
        "hold, "
        "an id that another payload has, too many retries) becomes a row of failed_events in "
        "analytics.duckdb, with its payload and the reason. There it is pending until somebody "
        "retries, resolves or abandons it. Its write-ahead log keeps it, and what was decided, "
        "until "
        "the DuckDB file itself has both.",
    .commands = COMMANDS(&list, &show, &export_command, &retry, &resolve, &abandon),
    .examples =
        EXAMPLES(TESTED(FAILED_EXAMPLE "pawl failed list --data ./data", "what went wrong?")),
};
