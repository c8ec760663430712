#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "base/os/lines.h"
#include "base/thread/inside.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"
#include "ledger/transfer/event_json.h"
#include "ledger/transfer/transfer.h"

/* --- batches --- */

static void count_results(struct ledger_import *import, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++) {
        import->report.duplicates += import->results[i].duplicate;
        import->report.appended += !import->results[i].duplicate;
    }
}

static pawl_status fail_at(const struct ledger_import *import,
                           uint64_t place,
                           pawl_status status,
                           pawl_error *reterr)
{
    return pawl__fail_context(reterr, status, "%s %llu", import->unit, (unsigned long long)place);
}

/* A batch is all or nothing. One that is refused is halved until only the event that is at fault
 * stays outside, so that everything before it is in the ledger, whatever the batches were. */
static pawl_status append_range(struct ledger_import *import,
                                size_t from,
                                size_t count,
                                pawl_error *reterr)
{
    pawl_error refused = PAWL_ERROR_INIT;

    import->results[from].size = sizeof(import->results[from]);
    pawl_status status = pawl__ledger_copy(
        import->ledger, &import->events[from], count, &import->results[from], &refused);

    if (status == PAWL_OK) {
        count_results(import, from, count);
        return PAWL_OK;
    }
    if (count == 1 || (status != PAWL_INVALID && status != PAWL_CONFLICT)) {
        (void)pawl__fail_with(reterr, status, &refused);
        return fail_at(import, import->places[from], status, reterr);
    }
    size_t half = count / 2;
    TRY(append_range(import, from, half, reterr));
    return append_range(import, from + half, count - half, reterr);
}

pawl_status pawl__ledger_import_flush(struct ledger_import *import, pawl_error *reterr)
{
    size_t count = import->count;

    if (count == 0) {
        return PAWL_OK;
    }
    import->count = 0;
    import->bytes = 0;
    pawl_status status = append_range(import, 0, count, reterr);
    pawl__arena_clear(&import->texts);
    return status;
}

pawl_status pawl__ledger_import_add(struct ledger_import *import,
                                    const pawl_event *event,
                                    uint64_t place,
                                    pawl_error *reterr)
{
    if (!pawl__ledger_event_copy(&import->texts, event, &import->events[import->count])) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    import->places[import->count++] = place;
    import->bytes += pawl__ledger_event_text_bytes(event);
    return import->count == IMPORT_EVENTS_MAX || import->bytes >= IMPORT_BYTES_MAX
               ? pawl__ledger_import_flush(import, reterr)
               : PAWL_OK;
}

pawl_status pawl__ledger_import_stop(struct ledger_import *import,
                                     uint64_t place,
                                     pawl_status status,
                                     pawl_error *reterr)
{
    pawl_error earlier = PAWL_ERROR_INIT;
    pawl_status flushed = pawl__ledger_import_flush(import, &earlier);

    return flushed != PAWL_OK ? pawl__fail_with(reterr, flushed, &earlier) /* it came first */
                              : fail_at(import, place, status, reterr);
}

/* --- JSONL --- */

static bool is_blank(pawl_view line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r') {
            return false;
        }
    }
    return true;
}

static pawl_status import_line(struct ledger_import *import,
                               pawl_view line,
                               struct pawl__lines *lines,
                               pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena scratch = ARENA_INIT;
    const pawl_event defaults = {
        .size = sizeof(pawl_event),
        .turn = -1,
        .created_at_us = pawl__wall_us(import->ledger->engine.clock),
        .schema_version = 1,
    };
    pawl_event event;
    pawl_status status = pawl__ledger_event_read_json(line, &defaults, &scratch, &event, reterr);

    if (status != PAWL_OK) {
        return pawl__ledger_import_stop(import, lines->number, status, reterr);
    }
    return pawl__ledger_import_add(import, &event, lines->number, reterr);
}

static uint64_t size_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

static pawl_status import_lines(struct ledger_import *import, int fd, pawl_error *reterr)
{
    /* A payload as a string with every byte escaped, and the other fields. */
    size_t bytes_max = (size_t)import->ledger->options.payload_bytes_max * 12 + (1 << 16);
    AUTO(pawl__lines_done) struct pawl__lines lines = pawl__lines_of(fd, bytes_max);
    uint64_t total = size_of(fd);
    pawl_error end = PAWL_ERROR_INIT;
    pawl_view line;
    pawl_status status;

    while ((status = pawl__lines_next(&lines, &line, &end)) == PAWL_OK) {
        if (!is_blank(line)) {
            TRY(import_line(import, line, &lines, reterr));
        }
        if (import->count == 0) { /* a batch was appended */
            TRY(pawl__ledger_progress_tell(&import->watch, lines.bytes, total, reterr));
        }
    }
    TRY(pawl__ledger_import_flush(import, reterr));
    return status == PAWL_NOT_FOUND ? PAWL_OK : pawl__fail_with(reterr, status, &end);
}

static pawl_status import_jsonl(struct ledger_import *import, const char *path, pawl_error *reterr)
{
    if (strcmp(path, "-") == 0) {
        return import_lines(import, STDIN_FILENO, reterr);
    }
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? pawl__fail_errno(reterr, errno, "open") : import_lines(import, fd, reterr);
}

/* --- the call --- */

static const struct {
    const char *unit;
    pawl_status (*import)(struct ledger_import *import, const char *path, pawl_error *reterr);
} formats[] = {
    [PAWL_FORMAT_JSONL] = { "line", import_jsonl },
    [PAWL_FORMAT_PARQUET] = { "row", pawl__ledger_import_parquet },
    [PAWL_FORMAT_SEED_SQLITE] = { "offset", pawl__ledger_import_seed },
};

static void import_free(struct ledger_import **import)
{
    if (*import != NULL) {
        pawl__arena_done(&(*import)->texts);
        free(*import);
    }
}

pawl_status pawl_ledger_import(pawl_ledger *ledger,
                               const char *path,
                               pawl_file_format format,
                               const pawl_watch *watch,
                               pawl_import_report *ret_report,
                               pawl_error *reterr)
{
    NEED(ledger, reterr);
    NEED_TEXT(path, reterr);
    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    if ((size_t)format >= COUNT_OF(formats)) {
        return pawl__fail(reterr, PAWL_INVALID, "format: is %d, which is none", (int)format);
    }
    INSIDE(ledger);
    AUTO(import_free) struct ledger_import *import = calloc(1, sizeof(*import));
    if (import == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to import");
    }
    import->ledger = ledger;
    import->watch = (pawl_watch)PAWL_WATCH_INIT;
    TRY(pawl__take_sized("watch", watch, &import->watch, sizeof(import->watch), reterr));
    import->texts = (struct pawl__arena)ARENA_INIT;
    import->unit = formats[format].unit;
    pawl_status status = formats[format].import(import, path, reterr);
    pawl__give_sized(&import->report, sizeof(import->report), ret_report);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "import '%s'", path);
}
