#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sink.h"
#include "base/os/fs.h"
#include "base/thread/inside.h"
#include "ledger/core/internal.h"
#include "ledger/transfer/event_json.h"
#include "ledger/transfer/transfer.h"

enum { CHUNK_BYTES = 1 << 18, TELL_EVERY = 512 };

static void close_reader(pawl_reader **reader)
{
    pawl_reader_free(*reader);
}

pawl_status pawl__ledger_progress_tell(const pawl_watch *watch,
                                       uint64_t done,
                                       uint64_t total,
                                       pawl_error *reterr)
{
    return watch->progress == NULL || watch->progress(watch->context, done, total)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CANCELLED, "stopped by the caller");
}

/* --- walking --- */

static pawl_status walk(struct ledger_export *export,
                        pawl_reader *reader,
                        ledger_event_sink sink,
                        void *context,
                        uint64_t total,
                        pawl_error *reterr)
{
    pawl_error end = PAWL_ERROR_INIT;
    const pawl_event *event;
    pawl_status status;

    while ((status = pawl_reader_next(reader, &event, &end)) == PAWL_OK) {
        TRY(sink(context, event, reterr));
        if (export->count++ % TELL_EVERY == 0) {
            TRY(pawl__ledger_progress_tell(&export->watch, event->offset, total, reterr));
        }
    }
    return status == PAWL_NOT_FOUND
               ? pawl__ledger_progress_tell(&export->watch, total, total, reterr)
               : pawl__fail_with(reterr, status, &end);
}

pawl_status pawl__ledger_export_each(struct ledger_export *export,
                                     ledger_event_sink sink,
                                     void *context,
                                     pawl_error *reterr)
{
    AUTO(close_reader) pawl_reader *reader = NULL;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;

    TRY(pawl_ledger_latest_offset(export->ledger, &options.up_to, reterr));
    if (options.up_to == 0) {
        return PAWL_OK;
    }
    options.filter = export->filter;
    TRY(pawl_reader_open(export->ledger, &options, &reader, reterr));
    return walk(export, reader, sink, context, options.up_to, reterr);
}

/* --- JSONL --- */

struct jsonl {
    struct pawl__buf buf;
    struct pawl__sink sink;
};

static void jsonl_done(struct jsonl *jsonl)
{
    pawl__buf_done(&jsonl->buf);
}

static pawl_status flush(struct jsonl *jsonl, pawl_error *reterr)
{
    pawl_status status = pawl__buf_check(&jsonl->buf, "a line", reterr);

    if (status == PAWL_OK) {
        status = pawl__sink_write(&jsonl->sink, pawl__buf_view(&jsonl->buf), reterr);
    }
    pawl__buf_clear(&jsonl->buf);
    return status;
}

static pawl_status add_line(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct jsonl *jsonl = context;

    TRY(pawl__ledger_event_add_json(event, &jsonl->buf, reterr));
    pawl__buf_add_char(&jsonl->buf, '\n');
    return jsonl->buf.len >= CHUNK_BYTES || jsonl->buf.broken ? flush(jsonl, reterr) : PAWL_OK;
}

static pawl_status write_jsonl(struct ledger_export *export, int fd, pawl_error *reterr)
{
    AUTO(jsonl_done)
    struct jsonl jsonl = { .buf = BUF_INIT(SIZE_MAX / 2), .sink = pawl__sink_fd(&fd) };

    TRY(pawl__ledger_export_each(export, add_line, &jsonl, reterr));
    return flush(&jsonl, reterr);
}

static pawl_status export_jsonl(struct ledger_export *export, const char *path, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *temporary = NULL;
    AUTO(pawl__fs_close) int fd = -1;

    if (strcmp(path, "-") == 0) {
        return write_jsonl(export, STDOUT_FILENO, reterr);
    }
    TRY(pawl__fs_create_beside(path, ".", &temporary, &fd, reterr));
    pawl_status status = write_jsonl(export, fd, reterr);
    if (status == PAWL_OK) {
        status = pawl__fs_publish(temporary, path, reterr);
    }
    if (status != PAWL_OK) {
        unlink(temporary);
    }
    return status;
}

/* --- the call --- */

/* Found out before hours of work, and once more when the file gets its name. */
static pawl_status check_target(const char *path, pawl_error *reterr)
{
    bool exists = strcmp(path, "-") != 0 && access(path, F_OK) == 0;

    return exists ? pawl__fail_detail(
               reterr, PAWL_CONFLICT, PAWL_DETAIL_FILE_EXISTS, "'%s' exists", path)
                  : PAWL_OK;
}

pawl_status pawl_ledger_export(pawl_ledger *ledger,
                               const char *path,
                               pawl_file_format format,
                               const pawl_event_filter *filter,
                               const pawl_watch *watch,
                               uint64_t *ret_count,
                               pawl_error *reterr)
{
    pawl_event_filter whole = PAWL_EVENT_FILTER_INIT;
    struct ledger_export export = { ledger, &whole, PAWL_WATCH_INIT, 0 };

    NEED(ledger, reterr);
    NEED_TEXT(path, reterr);
    TRY(pawl__ledger_check_filter(filter, &whole, reterr));
    TRY(pawl__take_sized("watch", watch, &export.watch, sizeof(export.watch), reterr));
    if (format != PAWL_FORMAT_JSONL && format != PAWL_FORMAT_PARQUET) {
        return pawl__fail(reterr, PAWL_INVALID, "format: only JSONL and Parquet are written");
    }
    if (format == PAWL_FORMAT_PARQUET && strcmp(path, "-") == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "path: Parquet needs a file, not '-'");
    }
    INSIDE(ledger);
    export.ledger = ledger;
    pawl_status status = check_target(path, reterr);
    if (status == PAWL_OK) {
        status = format == PAWL_FORMAT_JSONL ? export_jsonl(&export, path, reterr)
                                             : pawl__ledger_export_parquet(&export, path, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "export to '%s'", path);
    }
    if (ret_count != NULL) {
        *ret_count = export.count;
    }
    return PAWL_OK;
}
