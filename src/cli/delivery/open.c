#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/terminal/display.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/input.h"
#include "cli/frame/location.h"
#include "config/config.h"

enum { SAMPLE_MAX = 10 };

static uint64_t number_of(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return (uint64_t)pawl__config_number(run->config, id);
}

static uint32_t ms_of(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return (uint32_t)(pawl__config_number(run->config, id) / NS_PER_MS);
}

static void apply_settings(const struct pawl__cli_run *run, pawl_delivery_options *options)
{
    const char *wal_dir = pawl__config_text(run->config, PAWL__CONSUMER_WAL_PATH);

    options->free_space_min = number_of(run, PAWL__STORE_FREE_SPACE_MIN);
    options->memory_max = number_of(run, PAWL__DELIVERY_MEMORY_MAX);
    options->wal_dir = wal_dir[0] == '\0' ? NULL : wal_dir;
    options->unsafe_no_sync = number_of(run, PAWL__CONSUMER_WAL_SYNC_WRITES) == 0;
    options->retry_interval_ms = ms_of(run, PAWL__CONSUMER_WAL_RETRY_INTERVAL);
    options->retries_max = (uint32_t)number_of(run, PAWL__CONSUMER_WAL_MAX_RETRIES);
    options->retry_backoff_ms = ms_of(run, PAWL__CONSUMER_WAL_RETRY_BACKOFF);
    options->entry_ttl_ms = number_of(run, PAWL__CONSUMER_WAL_ENTRY_TTL) / (uint64_t)NS_PER_MS;
    options->memtable_bytes = number_of(run, PAWL__CONSUMER_WAL_MEMTABLE_SIZE);
    options->blob_file_bytes = number_of(run, PAWL__CONSUMER_WAL_VLOG_SIZE);
    options->compactors = (uint32_t)number_of(run, PAWL__CONSUMER_WAL_NUM_COMPACTORS);
    options->no_compression = number_of(run, PAWL__CONSUMER_WAL_COMPRESSION) == 0;
    options->close_ms_max = ms_of(run, PAWL__CONSUMER_WAL_CLOSE_TIMEOUT);
    options->lease_ms = ms_of(run, PAWL__CONSUMER_WAL_LEASE_DURATION);
    options->pending_bytes_max = number_of(run, PAWL__CONSUMER_WAL_MAX_PENDING);
    options->failed_bytes_max = number_of(run, PAWL__CONSUMER_WAL_MAX_FAILED);
}

pawl_delivery_options pawl__cli_delivery_options(const struct pawl__cli_run *run)
{
    pawl_delivery_options options = PAWL_DELIVERY_OPTIONS_INIT;

    apply_settings(run, &options);
    if (options.unsafe_no_sync) {
        LOG_WARNING("a power cut may lose events", LOG_TEXT("setting", "consumer_wal.sync_writes"));
    }
    return options;
}

pawl_status pawl__cli_delivery_open(const struct pawl__cli_run *run,
                                    pawl_delivery **ret_delivery,
                                    pawl_error *reterr)
{
    pawl_delivery_options options = pawl__cli_delivery_options(run);

    options.busy_ms_max = pawl__cli_busy_ms(run);
    return pawl_delivery_open(
        pawl__config_text(run->config, PAWL__DATA), &options, ret_delivery, reterr);
}

pawl_status pawl__cli_delivery_close(pawl_delivery *delivery,
                                     pawl_status status,
                                     pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status closed = pawl_delivery_close(delivery, 0, &error);

    return status != PAWL_OK || closed == PAWL_OK ? status
                                                  : pawl__fail_with(reterr, closed, &error);
}

/* --- a pipeline from flags --- */

static const struct {
    const char *flag;
    const char *field;
    bool is_switch;
    bool is_path;
} fields[] = {
    { "into", "into", false, false },
    { "source", "source", false, false },
    { "generation", "generation", false, false },
    { "id-field", "id_field", false, false },
    { "filter", "filter", false, false },
    { "unique-index", "unique_index", true, false },
    { "stream", "stream", false, false },
    { "consumer", "consumer", false, false },
    { "subject", "subject", false, false },
    { "create-stream", "create_stream", true, false },
    { "creds", "creds_file", false, true },
    { "nkey", "nkey_file", false, true },
    { "tls-ca", "tls_ca", false, true },
    { "tls-certificate", "tls_certificate", false, true },
    { "tls-key", "tls_key", false, true },
    { "complete-turns", "complete_turns", true, false },
};

static bool names_a_file(const char *from)
{
    return strcmp(from, "-") != 0 && strcmp(from, "http") != 0 && strstr(from, "://") == NULL
           && strncmp(from, "ledger:", 7) != 0 && strncmp(from, "file:", 5) != 0;
}

/* Another process starts in another directory. */
static pawl_status add_path(const char *prefix,
                            const char *path,
                            struct pawl__buf *text,
                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *here = NULL;

    pawl__buf_add_text(text, prefix);
    if (path[0] != '/') {
        here = getcwd(NULL, 0);
        TRY(pawl__check_memory(here, "a path", reterr));
        pawl__buf_add_format(text, "%s/", here);
    }
    pawl__buf_add_text(text, path);
    return pawl__buf_check(text, "a path", reterr);
}

static bool is_plain_ledger(const char *from)
{
    return strncmp(from, "ledger:", 7) == 0 && strstr(from, "://") == NULL
           && strncmp(&from[7], "sqlite:", 7) != 0 && strncmp(&from[7], "memory:", 7) != 0;
}

static pawl_status add_from(const char *given, struct pawl__buf *from, pawl_error *reterr)
{
    if (names_a_file(given) || strncmp(given, "file:", 5) == 0) {
        return add_path("file:", names_a_file(given) ? given : &given[5], from, reterr);
    }
    if (is_plain_ledger(given)) {
        return add_path("ledger:", &given[7], from, reterr);
    }
    pawl__buf_add_text(from, given);
    return pawl__buf_check(from, "'--from'", reterr);
}

static pawl_status add_columns(const struct pawl__cli_run *run, json_t *object, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = NULL;
    const char *given = pawl__cli_args_value(run->args, "columns");
    json_t *columns = NULL;

    if (given == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__cli_input_read("columns", given, PAWL_DECLARATION_BYTES_MAX, &text, reterr));
    pawl_status status =
        pawl__json_parse(pawl_view_of(text), PAWL_DECLARATION_BYTES_MAX, &columns, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "'--columns'");
    }
    json_object_set_new(object, "columns", columns);
    return PAWL_OK;
}

static pawl_status add_field(json_t *object, size_t index, const char *value, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf path = BUF_INIT(PAWL_DECLARATION_BYTES_MAX);

    if (fields[index].is_path) {
        TRY(add_path("", value, &path, reterr));
        value = path.data;
    }
    json_object_set_new(
        object, fields[index].field, fields[index].is_switch ? json_true() : json_string(value));
    return PAWL_OK;
}

static pawl_status declaration_of(const struct pawl__cli_run *run,
                                  const char *name,
                                  struct pawl__buf *json,
                                  pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf from = BUF_INIT(PAWL_DECLARATION_BYTES_MAX);
    const char *given = pawl__cli_args_value(run->args, "from");
    json_auto_t *object = json_object();

    TRY(add_from(given, &from, reterr));
    json_object_set_new(object, "name", json_string(name));
    json_object_set_new(object, "from", json_string(from.data));
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const char *value = pawl__cli_args_value(run->args, fields[i].flag);
        if (value != NULL) {
            TRY(add_field(object, i, value, reterr));
        }
    }
    TRY(add_columns(run, object, reterr));
    if (json_object_get(object, "from") == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "'--from' is not UTF-8");
    }
    return pawl__json_dump(object, json, reterr);
}

pawl_status pawl__cli_delivery_add(const struct pawl__cli_run *run,
                                   struct pawl__cli_delivery *delivery,
                                   const char *name,
                                   pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(PAWL_DECLARATION_BYTES_MAX);

    TRY(declaration_of(run, name, &json, reterr));
    return pawl__cli_pipeline_add(delivery, pawl__buf_view(&json), reterr);
}

/* --- dry run --- */

struct sample {
    pawl_status status;
    pawl_error *reterr;
};

static bool print_sample(void *context, const pawl_view *json)
{
    struct sample *sample = context;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT((size_t)256 << 20);

    pawl__buf_add(&line, *json);
    pawl__buf_add_char(&line, '\n');
    sample->status = pawl__cli_out_add(&line, sample->reterr);
    return sample->status == PAWL_OK;
}

pawl_status pawl__cli_delivery_preview(const struct pawl__cli_run *run,
                                       const char *name,
                                       pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(PAWL_DECLARATION_BYTES_MAX);
    struct sample sample = { .reterr = reterr };

    TRY(declaration_of(run, name, &json, reterr));
    TRY(pawl_pipeline_preview(pawl__buf_view(&json), SAMPLE_MAX, print_sample, &sample, reterr));
    return sample.status;
}

/* --- shown --- */

struct shown {
    const struct pawl__cli_run *run;
    pawl_status status;
    pawl_error *reterr;
};

static pawl_status print_json(const pawl_pipeline_status *status, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(2 * PAWL_DECLARATION_BYTES_MAX);
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_pipeline_to_json(status, &json, &len, reterr));
    pawl__buf_add(&line, (pawl_view){ json, len });
    pawl__buf_add_char(&line, '\n');
    pawl_free(json);
    return pawl__cli_out_add(&line, reterr);
}

static void add_number(struct pawl__buf *text, const char *what, uint64_t number)
{
    pawl__buf_add_format(text, "%s %llu\n", what, (unsigned long long)number);
}

static pawl_status print_lines(const pawl_pipeline_status *status, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);

    pawl__buf_add_format(&text, "pipeline   %.*s, ", VIEW_ARGS(status->name));
    pawl__buf_add_text(&text, pawl_pipeline_state_name(status->state));
    pawl__buf_add_text(&text, "\nfrom       ");
    pawl__display_add(&text, status->from);
    if (status->generation.len > 0) {
        pawl__buf_add_text(&text, ", generation ");
        pawl__display_add(&text, status->generation);
    }
    pawl__buf_add_format(&text, "\ninto       %.*s\n", VIEW_ARGS(status->into));
    add_number(&text, "accepted  ", status->accepted);
    add_number(&text, "delivered ", status->delivered);
    add_number(&text, "filtered  ", status->filtered);
    add_number(&text, "failed    ", status->failed);
    add_number(&text, "pending   ", status->pending);
    if (status->duplicates > 0) {
        add_number(&text, "duplicates", status->duplicates);
    }
    if (status->losses > 0) {
        add_number(&text, "losses    ", status->losses);
    }
    if (status->recovery != NULL && status->recovery->total_pending > 0) {
        add_number(&text, "recovered ", status->recovery->recovered);
    }
    if (status->last_error.len > 0) {
        pawl__buf_add_text(&text, "error      ");
        pawl__display_add_message(&text, status->last_error);
        pawl__buf_add_char(&text, '\n');
    }
    return pawl__cli_out_add(&text, reterr);
}

static bool print_one(void *context, const pawl_pipeline_status *status)
{
    struct shown *shown = context;

    shown->status =
        shown->run->json ? print_json(status, shown->reterr) : print_lines(status, shown->reterr);
    return true;
}

pawl_status pawl__cli_delivery_print(const struct pawl__cli_run *run,
                                     struct pawl__cli_delivery *delivery,
                                     const char *name,
                                     pawl_error *reterr)
{
    struct shown shown = { .run = run, .reterr = reterr };

    TRY(pawl__cli_pipeline_visit(delivery, name, print_one, &shown, reterr));
    return shown.status;
}
