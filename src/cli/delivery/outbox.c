/* pawl outbox: what waits in the outbox of `pawl publish`. */
#include "cli/delivery/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "config/config.h"

enum { LINE_BYTES_MAX = 1 << 20 };

/* --- opening --- */

static uint32_t setting_ms(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return (uint32_t)(pawl__config_number(run->config, id) / NS_PER_MS);
}

static uint64_t setting(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return (uint64_t)pawl__config_number(run->config, id);
}

pawl_publisher_options pawl__cli_outbox_options(const struct pawl__cli_run *run)
{
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;

    options.unsafe_no_sync = setting(run, PAWL__PRODUCER_WAL_SYNC_WRITES) == 0;
    options.check_ms = setting_ms(run, PAWL__PRODUCER_WAL_RETRY_INTERVAL);
    options.attempts_max = (uint32_t)setting(run, PAWL__PRODUCER_WAL_MAX_RETRIES);
    options.retry_ms = setting_ms(run, PAWL__PRODUCER_WAL_RETRY_BACKOFF);
    options.memtable_bytes = setting(run, PAWL__PRODUCER_WAL_MEMTABLE_SIZE);
    options.blob_file_bytes = setting(run, PAWL__PRODUCER_WAL_VLOG_SIZE);
    options.background_jobs = (uint32_t)setting(run, PAWL__PRODUCER_WAL_NUM_COMPACTORS);
    options.no_compression = setting(run, PAWL__PRODUCER_WAL_COMPRESSION) == 0;
    options.close_ms_max = setting_ms(run, PAWL__PRODUCER_WAL_CLOSE_TIMEOUT);
    options.keep_ms = setting_ms(run, PAWL__PRODUCER_WAL_KEEP);
    options.bytes_max = setting(run, PAWL__PRODUCER_WAL_MAX_BYTES);
    options.dedupe_ms = setting(run, PAWL__PRODUCER_WAL_DEDUPE_HORIZON) / NS_PER_MS;
    options.dedupe_bytes_max = setting(run, PAWL__PRODUCER_WAL_DEDUPE_MAX_BYTES);
    options.free_space_min = setting(run, PAWL__STORE_FREE_SPACE_MIN);
    return options;
}

static pawl_status directory_of(const struct pawl__cli_run *run,
                                char **ret_directory,
                                pawl_error *reterr)
{
    const char *given = pawl__config_text(run->config, PAWL__PRODUCER_WAL_PATH);

    *ret_directory = given[0] != '\0' ? strdup(given)
                                      : pawl__fs_join(pawl__config_text(run->config, PAWL__DATA),
                                                      "wal/producer");
    return pawl__fs_check_path(*ret_directory, reterr);
}

pawl_status pawl__cli_outbox_open(const struct pawl__cli_run *run,
                                  const pawl_publisher_options *options,
                                  pawl_publisher **ret_publisher,
                                  pawl_error *reterr)
{
    AUTO(pawl__text_free) char *directory = NULL;

    TRY(directory_of(run, &directory, reterr));
    if (!options->read_only) {
        TRY(pawl__fs_make_dir(directory, reterr));
    }
    return pawl_publisher_open(directory, options, ret_publisher, reterr);
}

pawl_status pawl__cli_outbox_close(pawl_publisher *publisher,
                                   pawl_status status,
                                   pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status closed = pawl_publisher_close(publisher, 0, &error);

    return status != PAWL_OK || closed == PAWL_OK ? status
                                                  : pawl__fail_with(reterr, closed, &error);
}

static pawl_status open_existing(const struct pawl__cli_run *run,
                                 bool read_only,
                                 pawl_publisher **ret_publisher,
                                 pawl_error *reterr)
{
    pawl_publisher_options options = pawl__cli_outbox_options(run);

    options.read_only = read_only;
    return pawl__cli_outbox_open(run, &options, ret_publisher, reterr);
}

/* --- status --- */

static pawl_status print_status(const struct pawl__cli_run *run,
                                const pawl_publisher_status *status,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(LINE_BYTES_MAX);
    const struct {
        const char *key;
        uint64_t number;
    } rows[] = {
        { "accepted", status->accepted },           { "pending", status->pending },
        { "pending_bytes", status->pending_bytes }, { "kept", status->kept },
        { "kept_bytes", status->kept_bytes },       { "failed", status->failed },
        { "failed_bytes", status->failed_bytes },   { "ids", status->ids },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pawl__buf_add_format(&text,
                             run->json ? "%s\"%s\":%llu" : "%s%-14s %llu\n",
                             !run->json ? ""
                             : i == 0   ? "{"
                                        : ",",
                             rows[i].key,
                             (unsigned long long)rows[i].number);
    }
    pawl__buf_add_text(&text, run->json ? "}\n" : "");
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;
    pawl_publisher *publisher = NULL;

    TRY(open_existing(run, true, &publisher, reterr));
    pawl_status found = pawl_publisher_get_status(publisher, &status, reterr);
    found = found == PAWL_OK ? print_status(run, &status, reterr) : found;
    return pawl__cli_outbox_close(publisher, found, reterr);
}

/* --- failed --- */

struct shown {
    const struct pawl__cli_run *run;
    struct pawl__buf text;
};

static bool add_failed(void *context, const pawl_failed_outgoing *failed)
{
    struct shown *shown = context;
    struct pawl__buf *text = &shown->text;

    if (!shown->run->json) {
        pawl__buf_add_format(text, "%llu  ", (unsigned long long)failed->number);
        pawl__display_add(text, failed->subject);
        pawl__buf_add_text(text, "  ");
        pawl__display_add(text, failed->event_id);
        pawl__buf_add_text(text, "  ");
        pawl__display_add(text, failed->reason);
        pawl__buf_add_char(text, '\n');
        return !text->broken;
    }
    pawl__buf_add_format(text, "{\"number\":%llu,\"subject\":", (unsigned long long)failed->number);
    pawl__display_add_json(text, failed->subject);
    pawl__buf_add_text(text, ",\"source\":");
    pawl__display_add_json(text, failed->source);
    pawl__buf_add_text(text, ",\"event_id\":");
    pawl__display_add_json(text, failed->event_id);
    pawl__buf_add_format(
        text, ",\"sequence\":%llu,\"reason\":", (unsigned long long)failed->sequence);
    pawl__display_add_json(text, failed->reason);
    pawl__buf_add_text(text, ",\"payload\":");
    pawl__display_add_json(text, failed->payload);
    pawl__buf_add_text(text, "}\n");
    return !text->broken;
}

static pawl_status failed_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    struct shown shown = { .run = run, .text = BUF_INIT(SIZE_MAX / 2) };
    pawl_publisher *publisher = NULL;

    TRY(open_existing(run, true, &publisher, reterr));
    pawl_status status = pawl_publisher_list_failed(publisher, NULL, add_failed, &shown, reterr);
    status = status == PAWL_OK ? pawl__cli_out_add(&shown.text, reterr) : status;
    pawl__buf_done(&shown.text);
    return pawl__cli_outbox_close(publisher, status, reterr);
}

/* --- retry --- */

static pawl_status print_retried(const struct pawl__cli_run *run,
                                 uint64_t count,
                                 pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(LINE_BYTES_MAX);

    pawl__buf_add_format(&text,
                         run->json ? "{\"pending_again\":%llu}\n"
                                   : "%llu events are pending again; run 'pawl publish' to send "
                                     "them\n",
                         (unsigned long long)count);
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status retry_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_publisher *publisher = NULL;
    uint64_t count = 0;

    TRY(open_existing(run, false, &publisher, reterr));
    pawl_status status = pawl_publisher_retry_failed(publisher, &count, reterr);
    status = status == PAWL_OK ? print_retried(run, count, reterr) : status;
    return pawl__cli_outbox_close(publisher, status, reterr);
}

static const struct pawl__cli_command status_command = {
    .name = "status",
    .summary = "count what waits in the outbox",
    .description =
        "Prints how many events were accepted, are pending (not acknowledged), are kept "
        "(acknowledged, "
        "but the server may not have synced them), and failed (refused for a reason of their own). "
        "'ids' is how many ids find duplicates.",
    .examples = EXAMPLES({ .line = "pawl outbox status --data ./data",
                           .says = "does anything wait for the broker?" }),
    .only_prints = true,
    .run = status_run,
};

static const struct pawl__cli_command failed_command = {
    .name = "failed",
    .summary = "list events that the server refuses",
    .description = "One event per line: its number, subject, id and the reason. With --json the "
                   "payload, too.",
    .examples = EXAMPLES(
        { .line = "pawl outbox failed --data ./data --json", .says = "with their payloads" }),
    .only_prints = true,
    .run = failed_run,
};

static const struct pawl__cli_command retry_command = {
    .name = "retry",
    .summary = "try refused events again",
    .description =
        "Makes all failed events pending again, as if they were published now. The next 'pawl "
        "publish' sends them; an input that is empty is enough.",
    .examples = EXAMPLES({ .line = "pawl outbox retry --data ./data",
                           .says = "after the server's limit was raised" }),
    .run = retry_run,
};

const struct pawl__cli_command pawl__cli_cmd_outbox = {
    .name = "outbox",
    .summary = "what waits in the outbox of 'pawl publish'",
    .description =
        "The outbox is wal/producer in the data directory, or where producer_wal.path says. One "
        "process has it open at a time; another one is exit code 5.",
    .commands = COMMANDS(&status_command, &failed_command, &retry_command),
    .examples = EXAMPLES({ .line = "pawl outbox status --data ./data",
                           .says = "does anything wait for the broker?" }),
};
