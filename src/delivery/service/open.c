/* The parts of a pipeline, made from its declaration: write-ahead log, sink, source, and the pipeline on them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "delivery/rocksdb/wal.h"
#include "delivery/service/internal.h"
#include "delivery/sources/file.h"
#include "delivery/sources/jetstream.h"
#include "delivery/sources/ledger.h"

enum { BLOB_BYTES_MIN = 16 << 10, BACKOFF_MS_MAX = 300000 };

pawl_status pawl__delivery_open_wal(const struct pawl_delivery *delivery,
                                    const struct delivery_declared *declared,
                                    bool read_only,
                                    struct delivery_wal **ret_wal,
                                    pawl_error *reterr)
{
    const pawl_delivery_options *options = &delivery->options;
    AUTO(pawl__text_free)
    char *dir = pawl__fs_join(delivery->wal_dir, declared->is.name.data);
    const struct delivery_rocksdb_options wal = {
        .memtable_bytes = (size_t)options->memtable_bytes,
        .background_jobs = (int)options->compactors,
        .blob_bytes_min = BLOB_BYTES_MIN,
        .blob_file_bytes = options->blob_file_bytes,
        .no_compression = options->no_compression,
        .unsafe_no_sync = options->unsafe_no_sync,
        .read_only = read_only,
        .free_space_min = options->free_space_min,
        .close_timeout_ns = options->close_ms_max * NS_PER_MS,
        .clock = delivery->clock,
    };

    TRY(pawl__fs_check_path(dir, reterr));
    if (!read_only) {
        TRY(pawl__fs_make_dir(delivery->wal_dir, reterr));
    }
    return pawl__delivery_rocksdb_wal_open(dir, &wal, ret_wal, reterr);
}

pawl_status pawl__delivery_open_sink(struct pawl_delivery *delivery,
                                     const struct delivery_declared *declared,
                                     struct delivery_sink **ret_sink,
                                     pawl_error *reterr)
{
    struct delivery_duckdb_file *file = NULL;

    TRY(pawl__delivery_directory_file(delivery, &file, reterr));
    return pawl__delivery_duckdb_sink(
        file, declared->is.name.data, &declared->mapping, ret_sink, reterr);
}

/* --- sources --- */

static const char *text_or_null(pawl_view text)
{
    return text.len == 0 ? NULL : text.data;
}

/* Who opens a source: its pipeline, or somebody who reads beside it. */
struct opener {
    struct pawl_delivery *delivery;
    const struct delivery_declared *declared;
    struct delivery_opened *opened;
    struct pawl__cancel *cancel;
    struct delivery_inbox *inbox; /* of a pipeline */
    bool is_reader;
};

static pawl_status open_nats(const struct opener *opener, pawl_error *reterr)
{
    const struct delivery_declaration *is = &opener->declared->is;
    struct delivery_opened *opened = opener->opened;
    struct delivery_jetstream_options options = {
        .url = opener->declared->location,
        .connection = &opened->connection,
        .stream = is->stream.data,
        .consumer = opener->is_reader ? opened->consumer : is->consumer.data,
        .filter = text_or_null(is->subject),
        .create_stream = is->create_stream && !opener->is_reader,
        .subjects = opened->subjects,
        .subject_count = is->subject.len > 0 ? 1 : 0,
        .is_temporary = opener->is_reader,
        .cancel = opener->cancel,
        .clock = opener->delivery->clock,
    };

    opened->subjects[0] = is->subject.data;
    opened->connection = (struct pawl__nats_options){
        .name = is->name.data,
        .nkey_seed_file = text_or_null(is->nkey_file),
        .creds_file = text_or_null(is->creds_file),
        .tls = { .ca_file = text_or_null(is->tls_ca),
                 .cert_file = text_or_null(is->tls_certificate),
                 .key_file = text_or_null(is->tls_key) },
        .clock = opener->delivery->clock,
    };
    return pawl__delivery_jetstream_open(&options, &opened->source, reterr);
}

pawl_status pawl__delivery_open_ledger(const char *location,
                                       pawl_ledger **ret_ledger,
                                       pawl_error *reterr)
{
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    options.read_only = true;
    return pawl_ledger_open(location, &options, ret_ledger, reterr);
}

static pawl_status open_ledger(const struct opener *opener, pawl_error *reterr)
{
    struct delivery_opened *opened = opener->opened;
    struct delivery_ledger_options options = {
        .complete_turns = opener->declared->is.complete_turns,
        .cancel = opener->cancel,
        .clock = opener->delivery->clock,
    };

    TRY(pawl__delivery_open_ledger(opener->declared->location, &opened->ledger, reterr));
    options.ledger = opened->ledger;
    return pawl__delivery_ledger_open(&options, &opened->source, reterr);
}

/* A file is compared with what the sink has of it before anything is read. */
static pawl_status open_file(const struct opener *opener, pawl_error *reterr)
{
    const struct delivery_declared *declared = opener->declared;
    struct delivery_sink *sink = opener->opened->sink;
    struct delivery_cursor cursor;
    bool is_found = false;
    struct delivery_file_options options = {
        .path = declared->kind == DELIVERY_KIND_STDIN ? NULL : declared->location,
        .fd = STDIN_FILENO,
        .generation = declared->is.generation.data,
        .cancel = opener->cancel,
        .clock = opener->delivery->clock,
    };

    TRY(sink->ops->read_cursor(sink, &cursor, &is_found, reterr));
    if (is_found) {
        options.applied = cursor.stream;
    }
    return pawl__delivery_file_open(&options, &opener->opened->source, reterr);
}

static pawl_status open_source(const struct opener *opener, pawl_error *reterr)
{
    switch (opener->declared->kind) {
    case DELIVERY_KIND_NATS:
        return open_nats(opener, reterr);
    case DELIVERY_KIND_LEDGER:
        return open_ledger(opener, reterr);
    case DELIVERY_KIND_HTTP:
        return pawl__delivery_inbox_open(opener->inbox,
                                         opener->cancel,
                                         opener->delivery->clock,
                                         &opener->opened->source,
                                         reterr);
    case DELIVERY_KIND_FILE:
    case DELIVERY_KIND_STDIN:
        break;
    }
    return open_file(opener, reterr);
}

bool pawl__delivery_is_readable(const struct delivery_declared *declared)
{
    return declared->kind != DELIVERY_KIND_STDIN && declared->kind != DELIVERY_KIND_HTTP;
}

pawl_status pawl__delivery_open_to_read(struct pawl_delivery *delivery,
                                        const struct delivery_declared *declared,
                                        struct delivery_opened *opened,
                                        pawl_error *reterr)
{
    const struct opener opener = {
        .delivery = delivery, .declared = declared, .opened = opened, .is_reader = true
    };

    if (!pawl__delivery_is_readable(declared)) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the source of pipeline '%s' cannot be read again",
                          declared->is.name.data);
    }
    snprintf(opened->consumer, sizeof(opened->consumer), "%s-reader", declared->is.consumer.data);
    return open_source(&opener, reterr);
}

/* --- the pipeline --- */

static struct delivery_settings settings_of(const struct delivery_runner *runner)
{
    const pawl_delivery_options *options = &runner->delivery->options;
    struct delivery_settings settings = pawl__delivery_settings_default();

    settings.identity = runner->declared.identity;
    settings.apply_entries_max = options->batch_max;
    settings.pending_bytes_max = options->pending_bytes_max;
    settings.failed_bytes_max = options->failed_bytes_max;
    settings.retry.attempts_max = options->retries_max;
    settings.retry.ttl_ns = (int64_t)options->entry_ttl_ms * NS_PER_MS;
    settings.retry.backoff =
        (struct pawl__backoff){ options->retry_backoff_ms * NS_PER_MS,
                                MAX(options->retry_backoff_ms, (uint32_t)BACKOFF_MS_MAX)
                                    * NS_PER_MS };
    settings.outage = settings.retry.backoff;
    settings.retry_interval_ns = options->retry_interval_ms * NS_PER_MS;
    settings.lease_ns = options->lease_ms * NS_PER_MS;
    snprintf(settings.holder, sizeof(settings.holder), "pid %ld", (long)getpid());
    return settings;
}

/* Under wal_lock, so that nobody who looks at the log opens it a second time meanwhile. */
static pawl_status open_shown_wal(struct delivery_runner *runner, pawl_error *reterr)
{
    pawl__lock(&runner->wal_lock);
    pawl_status status = pawl__delivery_open_wal(
        runner->delivery, &runner->declared, false, &runner->opened.wal, reterr);
    runner->wal = runner->opened.wal;
    pawl__unlock(&runner->wal_lock);
    return status;
}

static void close_shown_wal(struct delivery_runner *runner)
{
    struct delivery_wal *wal = STEAL(runner->opened.wal);

    pawl__lock(&runner->wal_lock);
    runner->wal = NULL;
    if (wal != NULL) {
        wal->ops->close(wal);
    }
    pawl__unlock(&runner->wal_lock);
}

static pawl_status open_pipeline(struct delivery_runner *runner, pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;
    struct delivery_opened *opened = &runner->opened;
    const struct delivery_settings settings = settings_of(runner);

    TRY(open_shown_wal(runner, reterr));
    const struct delivery_parts parts = {
        .source = opened->source,
        .wal = opened->wal,
        .sink = opened->sink,
        .clock = delivery->clock,
        .random = pawl__random_real(),
    };
    return pawl__delivery_pipeline_open(&runner->pipeline, &settings, &parts, reterr);
}

pawl_status pawl__delivery_open_stores(struct delivery_runner *runner, pawl_error *reterr)
{
    TRY(pawl__delivery_open_sink(
        runner->delivery, &runner->declared, &runner->opened.sink, reterr));
    return open_pipeline(runner, reterr);
}

/* The sink first: a table that cannot be had, and a file that has changed, are found before anything is made. */
pawl_status pawl__delivery_open_parts(struct delivery_runner *runner, pawl_error *reterr)
{
    TRY(pawl__delivery_open_sink(
        runner->delivery, &runner->declared, &runner->opened.sink, reterr));
    const struct opener opener = { .delivery = runner->delivery,
                                   .declared = &runner->declared,
                                   .opened = &runner->opened,
                                   .cancel = &runner->stop_intake,
                                   .inbox = &runner->inbox };
    TRY(open_source(&opener, reterr));
    return open_pipeline(runner, reterr);
}

void pawl__delivery_close_opened(struct delivery_opened *opened)
{
    if (opened->source != NULL) {
        opened->source->ops->close(opened->source);
    }
    pawl_ledger_close(opened->ledger, 0, NULL);
    if (opened->wal != NULL) {
        opened->wal->ops->close(opened->wal);
    }
    if (opened->sink != NULL) {
        opened->sink->ops->close(opened->sink);
    }
    *opened = (struct delivery_opened){ .source = NULL };
}

void pawl__delivery_close_parts(struct delivery_runner *runner)
{
    pawl__delivery_pipeline_close(&runner->pipeline);
    close_shown_wal(runner);
    pawl__delivery_close_opened(&runner->opened);
}
