/* pawl app records, wlog and plog */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/app/app.h"

/* A table that visitors fill; with --json lines instead. */
struct rows {
    pawl_error error; /* of a row; PAWL_OK: none */
    const struct pawl__cli_run *run;
    const pawl_app *app;
    struct pawl__table table;
};

static void rows_done(struct rows *rows)
{
    pawl__table_done(&rows->table);
}

static pawl_status print_json(const struct pawl__cli_run *run, const char *json, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);

    pawl__cli_out_add_value(run, &out, pawl_view_of(json));
    pawl__buf_add_char(&out, '\n');
    TRY(pawl__cli_out_add(&out, reterr));
    return pawl__cli_out_check(reterr);
}

static pawl_status put_record(struct rows *rows, const pawl_app_record *record, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (rows->run->json) {
        pawl_status status = pawl_app_record_to_json(record, &json, &len, reterr);
        return status == PAWL_OK ? print_json(rows->run, json, reterr) : status;
    }
    const struct pawl__cell cells[] = {
        pawl__cell_integer((int64_t)record->id),
        pawl__cell_text(pawl_view_of(pawl_app_class_word(record->record_class))),
        pawl__cell_text(record->table),
        pawl__cell_text(record->data),
    };
    return pawl__table_add(&rows->table, cells, reterr);
}

static pawl_status add_event_row(struct rows *rows, const pawl_app_event *event, pawl_error *reterr)
{
    const struct pawl__cell cells[] = {
        pawl__cell_integer((int64_t)event->plog_offset),
        pawl__cell_integer((int64_t)event->workspace),
        pawl__cell_integer((int64_t)event->wlog_offset),
        pawl__cell_integer((int64_t)event->record_count),
        event->key.len == 0 ? pawl__cell_none() : pawl__cell_text(event->key),
    };
    return pawl__table_add(&rows->table, cells, reterr);
}

static pawl_status put_event(struct rows *rows, const pawl_app_event *event, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (rows->run->json) {
        TRY(pawl_app_event_to_json(rows->app, event, &json, &len, reterr));
        return print_json(rows->run, json, reterr);
    }
    return add_event_row(rows, event, reterr);
}

/* --- what a node answers --- */

static pawl_app_class class_of(const char *word)
{
    int i = PAWL_APP_SINGLETON;

    while (i < PAWL_APP_W_RECORD && strcmp(pawl_app_class_word((pawl_app_class)i), word) != 0) {
        i++;
    }
    return (pawl_app_class)i;
}

static pawl_view text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return (pawl_view){ json_string_value(value), json_string_length(value) };
}

static pawl_status add_remote_record(void *context, json_t *item, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf data = BUF_INIT(SIZE_MAX / 2);
    const char *word = json_string_value(json_object_get(item, "class"));

    TRY(pawl__json_dump(json_object_get(item, "data"), &data, reterr));
    const pawl_app_record record = {
        .size = sizeof(record),
        .record_class = class_of(word == NULL ? "" : word),
        .id = pawl__cli_remote_number(item, "id"),
        .table = text_of(item, "table"),
        .data = pawl__buf_view(&data),
    };
    return put_record(context, &record, reterr);
}

static pawl_status add_remote_event(void *context, json_t *item, pawl_error *reterr)
{
    struct rows *rows = context;
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(SIZE_MAX / 2);

    if (rows->run->json) {
        TRY(pawl__json_dump(item, &json, reterr));
        return print_json(rows->run, json.data, reterr);
    }
    return add_event_row(rows,
                         &(const pawl_app_event){
                             .size = sizeof(pawl_app_event),
                             .plog_offset = pawl__cli_remote_number(item, "plog_offset"),
                             .workspace = pawl__cli_remote_number(item, "workspace"),
                             .wlog_offset = pawl__cli_remote_number(item, "wlog_offset"),
                             .record_count = json_array_size(json_object_get(item, "records")),
                             .key = text_of(item, "key"),
                         },
                         reterr);
}

static bool add_record(void *context, const pawl_app_record *record)
{
    struct rows *rows = context;

    return put_record(rows, record, &rows->error) == PAWL_OK;
}

static bool add_event(void *context, const pawl_app_event *event)
{
    struct rows *rows = context;

    return put_event(rows, event, &rows->error) == PAWL_OK;
}

/* A row that could not be added ended the walk. */
static pawl_status end_rows(struct rows *rows, pawl_error *reterr)
{
    return rows->error.status == PAWL_OK
               ? pawl__table_end(&rows->table, reterr)
               : pawl__fail_with(reterr, rows->error.status, &rows->error);
}

static const struct pawl__column record_columns[] = {
    { "id", true },
    { "class", false },
    { "table", false },
    { "data", false },
};
static const struct pawl__column event_columns[] = {
    { "plog_offset", true }, { "workspace", true }, { "wlog_offset", true },
    { "records", false },    { "key", false },
};

static void start(struct rows *rows,
                  const struct pawl__cli_run *run,
                  const struct pawl__column *columns,
                  size_t count)
{
    struct pawl__table_options options = pawl__cli_out_table(run);

    rows->run = run;
    pawl__table_init(&rows->table, columns, count, &options);
}

static uint64_t number(const struct pawl__cli_run *run, const char *flag)
{
    return (uint64_t)pawl__cli_args_number(run->args, flag);
}

static pawl_page page_of(const struct pawl__cli_run *run)
{
    pawl_page page = PAWL_PAGE_INIT;

    page.from = number(run, "from");
    page.limit = number(run, "limit");
    return page;
}

static pawl_status read_local_records(const struct pawl__cli_run *run,
                                      pawl_app *app,
                                      struct rows *rows,
                                      pawl_error *reterr)
{
    uint64_t workspace = number(run, "workspace");
    pawl_page page = page_of(run);

    return pawl__cli_args_has(run->args, "id")
               ? pawl_app_read_record(app, workspace, number(run, "id"), add_record, rows, reterr)
               : pawl_app_read_c_records(app, workspace, &page, add_record, rows, reterr);
}

enum { TARGET_SIZE = 128 };

static pawl_status read_remote_records(const struct pawl__cli_run *run,
                                       struct pawl__cli_remote *remote,
                                       struct rows *rows,
                                       pawl_error *reterr)
{
    uint64_t workspace = number(run, "workspace");
    char target[TARGET_SIZE];
    json_auto_t *record = NULL;

    if (!pawl__cli_args_has(run->args, "id")) {
        (void)snprintf(target, sizeof(target), "/workspaces/%" PRIu64 "/records", workspace);
        const struct pawl__cli_pages pages = { target, number(run, "from"), number(run, "limit") };
        return pawl__cli_remote_pages(remote, &pages, add_remote_record, rows, reterr);
    }
    (void)snprintf(target,
                   sizeof(target),
                   "/workspaces/%" PRIu64 "/records/%" PRIu64,
                   workspace,
                   number(run, "id"));
    const struct pawl__cli_ask ask = { .method = "GET", .target = target };
    TRY(pawl__cli_remote_ask(remote, &ask, &record, reterr));
    return add_remote_record(rows, record, reterr);
}

static pawl_status records_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };
    AUTO(rows_done) struct rows rows = { .error = PAWL_ERROR_INIT };

    TRY(pawl__cli_app_open_to_read(run, &app, reterr));
    start(&rows, run, record_columns, COUNT_OF(record_columns));
    TRY(app.remote == NULL ? read_local_records(run, app.local, &rows, reterr)
                           : read_remote_records(run, app.remote, &rows, reterr));
    return end_rows(&rows, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_records = {
    .name = "records",
    .summary = "list the C-records of a workspace, or show one record",
    .description = "Only C-records are listed; there may be too many of the others, which are read "
                   "one by one with --id. The columns are id, class, table and data; --json names "
                   "them.",
    .flags = FLAGS(APP_WORKSPACE_FLAG,
                   NUMBER_FLAG("id", "N", 1, INT64_MAX, "Only this record, of any class."),
                   APP_FROM_FLAG("From this id on."),
                   APP_LIMIT_FLAG),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl app records --data ./data orders --workspace 7",
                                           "what a workspace has")),
    .run = records_run,
    .only_prints = true,
};

static pawl_status read_local_log(const struct pawl__cli_run *run,
                                  bool of_workspace,
                                  struct rows *rows,
                                  pawl_app *app,
                                  pawl_error *reterr)
{
    pawl_page page = page_of(run);

    return of_workspace
               ? pawl_app_read_wlog(app, number(run, "workspace"), &page, add_event, rows, reterr)
               : pawl_app_read_plog(
                   app, (uint16_t)number(run, "partition"), &page, add_event, rows, reterr);
}

static pawl_status read_remote_log(const struct pawl__cli_run *run,
                                   bool of_workspace,
                                   struct rows *rows,
                                   struct pawl__cli_remote *remote,
                                   pawl_error *reterr)
{
    char target[TARGET_SIZE];

    (void)snprintf(target,
                   sizeof(target),
                   of_workspace ? "/workspaces/%" PRIu64 "/wlog" : "/partitions/%" PRIu64 "/plog",
                   number(run, of_workspace ? "workspace" : "partition"));
    const struct pawl__cli_pages pages = { target, number(run, "from"), number(run, "limit") };
    pawl_status status = pawl__cli_remote_pages(remote, &pages, add_remote_event, rows, reterr);
    /* An address that is not there is a number that is wrong here. */
    if (status == PAWL_NOT_FOUND && !of_workspace) {
        reterr->status = PAWL_INVALID;
        return PAWL_INVALID;
    }
    return status;
}

static pawl_status log_run(struct pawl__cli_run *run, bool of_workspace, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };
    AUTO(rows_done) struct rows rows = { .error = PAWL_ERROR_INIT };

    TRY(pawl__cli_app_open_to_read(run, &app, reterr));
    start(&rows, run, event_columns, COUNT_OF(event_columns));
    rows.app = app.local;
    TRY(app.remote == NULL ? read_local_log(run, of_workspace, &rows, app.local, reterr)
                           : read_remote_log(run, of_workspace, &rows, app.remote, reterr));
    return end_rows(&rows, reterr);
}

#define LOG_COLUMNS                                                                          \
    "The columns are plog_offset, workspace, wlog_offset, records (how many) and key. With " \
    "--json the events are whole, with their records and numbers."

static pawl_status wlog_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return log_run(run, true, reterr);
}

static pawl_status plog_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return log_run(run, false, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_wlog = {
    .name = "wlog",
    .summary = "show the events of a workspace",
    .description = LOG_COLUMNS,
    .flags = FLAGS(APP_WORKSPACE_FLAG, APP_FROM_FLAG("From this offset on."), APP_LIMIT_FLAG),
    .operands = OPERANDS(APP_OPERAND),
    .examples =
        EXAMPLES(APP_EXAMPLE_AFTER("pawl app wlog --data ./data orders --workspace 7 --json",
                                   "all that happened in a workspace")),
    .run = wlog_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_app_plog = {
    .name = "plog",
    .summary = "show the events of a partition",
    .description = LOG_COLUMNS,
    .flags =
        FLAGS(NUMBER_FLAG(
                  "partition", "N", 0, PAWL_APP_PARTITIONS_MAX - 1, "From 0 on.", .fallback = "0"),
              APP_FROM_FLAG("From this offset on."),
              APP_LIMIT_FLAG),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl app plog --data ./data orders --limit 10",
                                           "the first events of a partition")),
    .run = plog_run,
    .only_prints = true,
};
