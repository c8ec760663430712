/* Databases of the original schema: the same table without hashes, times as ISO-8601 in whatever
 * form its writer's language has, ids that are UUIDs. They are only read. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "ledger/transfer/statements.h"
#include "ledger/transfer/transfer.h"
#include "store/sqlite/inspect.h"
#include "store/sqlite/sqlite.h"

enum { SEED_COLUMNS = 9, TIME_SIZE = 64, TELL_EVERY = 1000 };

static pawl_status open_foreign(const char *path,
                                size_t statement_count,
                                struct pawl__sqlite **ret_db,
                                pawl_error *reterr)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    options.mode = PAWL__SQLITE_READ_ONLY;
    options.application_id = PAWL__SQLITE_UNMARKED;
    options.statements = pawl__ledger_seed_statements;
    options.statement_count = statement_count;
    return pawl__sqlite_open(path, &options, ret_db, reterr);
}

bool pawl__ledger_begins_like_sqlite(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* and its NUL */
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char start[sizeof(magic)];

    return fd >= 0 && read(fd, start, sizeof(start)) == sizeof(start)
           && memcmp(start, magic, sizeof(magic)) == 0;
}

bool pawl__ledger_is_seed(const char *path)
{
    return pawl__sqlite_answers(path, pawl__ledger_seed_original_schema)
           && !pawl__sqlite_answers(path, pawl__ledger_seed_hashed_schema);
}

static pawl_status query_count(struct pawl__sqlite *db,
                               size_t statement,
                               int64_t *ret_count,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, statement);
    bool row = false;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_count = row ? pawl__sqlite_i64(&stmt, 0) : 0;
    return PAWL_OK;
}

/* PAWL_OK when the table is there, with all of its columns. */
static pawl_status check_table(const char *path, pawl_error *reterr)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *db = NULL;
    int64_t columns = 0;
    pawl_status status = open_foreign(path, LEDGER_SEED_COLUMNS + 1, &db, reterr);

    if (status == PAWL_CORRUPT && !pawl__ledger_begins_like_sqlite(path)) {
        return pawl__fail(reterr, PAWL_INVALID, "it is no SQLite database");
    }
    if (status == PAWL_INVALID && pawl__sqlite_answers(path, pawl__ledger_seed_hashed_schema)) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "it is a ledger already: open it with --ledger, or import what `pawl ledger "
            "export` writes of it");
    }
    if (status == PAWL_OK) {
        status = query_count(db, LEDGER_SEED_COLUMNS, &columns, reterr);
    }
    if (status == PAWL_OK && columns != SEED_COLUMNS) {
        status =
            pawl__fail(reterr, PAWL_INVALID, "it has no table of events with the nine columns");
    }
    return status;
}

/* --- times --- */

static bool has_zone(pawl_view clock)
{
    for (size_t i = 0; i < clock.len; i++) {
        if (strchr("Zz+-", clock.data[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* "+0530" is "+05:30", "+00" is "+00:00". */
static void add_zone(struct pawl__buf *text, pawl_view clock)
{
    size_t len = clock.len;
    size_t sign = 0;

    while (sign < len && clock.data[sign] != '+' && clock.data[sign] != '-') {
        sign++;
    }
    size_t digits = len - sign;
    pawl__buf_add(text, (pawl_view){ clock.data, len });
    if (digits == sizeof("+00") - 1) {
        pawl__buf_add_text(text, ":00");
    } else if (digits == sizeof("+0000") - 1) {
        pawl__buf_cut(text, text->len - 2);
        pawl__buf_add_char(text, ':');
        pawl__buf_add(text, (pawl_view){ &clock.data[len - 2], 2 });
    }
}

/* What ISO-8601 leaves open, decided: a blank for the T, no seconds, no clock at all, a zone
 * without colon; and no zone means UTC. */
static pawl_status parse_time(pawl_view given, int64_t *ret_us, pawl_error *reterr)
{
    char space[TIME_SIZE];
    struct pawl__buf text = BUF_OVER(space);
    pawl_view clock = given;
    pawl_view date;

    if (!pawl__view_take(&clock, sizeof("2026-01-29") - 1, &date)) {
        return pawl__time_parse(given, ret_us, reterr);
    }
    pawl__buf_add(&text, date);
    pawl__buf_add_char(&text, 'T');
    pawl_view between;
    if (!pawl__view_take(&clock, 1, &between)) {
        pawl__buf_add_text(&text, "00:00:00Z");
    } else if (strchr("Tt ", between.data[0]) == NULL) {
        return pawl__time_parse(given, ret_us, reterr);
    } else if (clock.len == sizeof("10:20") - 1) {
        pawl__buf_add(&text, clock);
        pawl__buf_add_text(&text, ":00Z");
    } else if (has_zone(clock)) {
        add_zone(&text, clock);
    } else {
        pawl__buf_add(&text, clock);
        pawl__buf_add_char(&text, 'Z');
    }
    return text.broken ? pawl__time_parse(given, ret_us, reterr)
                       : pawl__time_parse(pawl__buf_view(&text), ret_us, reterr);
}

/* --- rows --- */

static pawl_status fail_whole(const char *field, pawl_view given, pawl_error *reterr)
{
    return given.len == 0 ? pawl__fail(reterr, PAWL_INVALID, "%s: missing", field)
                          : pawl__fail(reterr,
                                       PAWL_INVALID,
                                       "%s: is '%.*s', must be a whole number",
                                       field,
                                       (int)MIN(given.len, (size_t)40),
                                       given.data);
}

static pawl_status read_row(struct pawl__sqlite_stmt *stmt,
                            pawl_event *ret_event,
                            pawl_error *reterr)
{
    *ret_event = (pawl_event){
        .size = sizeof(pawl_event),
        .id = pawl__sqlite_text(stmt, 1),
        .run_id = pawl__sqlite_text(stmt, 2),
        .kind = pawl__sqlite_text(stmt, 4),
        .actor = pawl__sqlite_text(stmt, 5),
        .payload = pawl__sqlite_text(stmt, 6),
        .schema_version = 1,
    };
    /* SQLite keeps what it cannot take for a whole number as it was given, and rounds when it is
     * read as one. */
    if (!pawl__sqlite_as_i64(stmt, 3, &ret_event->turn)) {
        return fail_whole("turn", pawl__sqlite_text(stmt, 3), reterr);
    }
    if (!pawl__sqlite_is_null(stmt, 8)
        && !pawl__sqlite_as_i64(stmt, 8, &ret_event->schema_version)) {
        return fail_whole("schema_version", pawl__sqlite_text(stmt, 8), reterr);
    }
    pawl_status status = parse_time(pawl__sqlite_text(stmt, 7), &ret_event->created_at_us, reterr);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "created_at");
}

static pawl_status import_row(struct ledger_import *import,
                              struct pawl__sqlite_stmt *stmt,
                              pawl_error *reterr)
{
    uint64_t offset = (uint64_t)pawl__sqlite_i64(stmt, 0);
    pawl_event event;
    pawl_status status = read_row(stmt, &event, reterr);

    return status == PAWL_OK ? pawl__ledger_import_add(import, &event, offset, reterr)
                             : pawl__ledger_import_stop(import, offset, status, reterr);
}

static pawl_status import_rows(struct ledger_import *import,
                               struct pawl__sqlite *db,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = { 0 };
    uint64_t done = 0;
    int64_t total = 0;
    bool row = false;

    TRY(query_count(db, LEDGER_SEED_TOTAL, &total, reterr));
    stmt = pawl__sqlite_use(db, LEDGER_SEED_EVENTS);
    for (;;) {
        TRY(pawl__sqlite_next(&stmt, &row, reterr));
        if (!row) {
            return pawl__ledger_import_flush(import, reterr);
        }
        TRY(import_row(import, &stmt, reterr));
        if (++done % TELL_EVERY == 0) {
            TRY(pawl__ledger_progress_tell(&import->watch, done, (uint64_t)total, reterr));
        }
    }
}

pawl_status pawl__ledger_import_seed(struct ledger_import *import,
                                     const char *path,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *db = NULL;

    TRY(check_table(path, reterr));
    TRY(open_foreign(path, LEDGER_SEED_COUNT, &db, reterr));
    return import_rows(import, db, reterr);
}
