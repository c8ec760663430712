/* Parquet, written and read by DuckDB in a directory of its own that is gone afterwards.
 *
 * Written: the events are collected in a scratch database beside the target, because a Parquet file
 * has its index at the end and DuckDB writes it from a query; a checkpoint now and then keeps that
 * out of memory. Read: DuckDB sees a link with a plain name, so that a '*' in the real one is no
 * pattern. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "ledger/core/internal.h"
#include "ledger/transfer/parquet_columns.h"
#include "ledger/transfer/parquet_statements.h"
#include "ledger/transfer/transfer.h"
#include "store/duckdb/duckdb.h"

enum { CHECKPOINT_ROWS = 500000, TELL_EVERY = 2000, PATH_BYTES_MAX = 2 * PATH_MAX };

/* --- the scratch directory --- */

struct scratch {
    char dir[PATH_BYTES_MAX]; /* empty: none */
    char file[PATH_BYTES_MAX + 32];
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
};

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *level)
{
    (void)info;
    (void)type;
    (void)level;
    (void)remove(path);
    return 0;
}

static void scratch_done(struct scratch *scratch)
{
    pawl__duck_disconnect(scratch->conn);
    pawl__duck_close(scratch->db);
    if (scratch->dir[0] != '\0') {
        (void)nftw(scratch->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static pawl_status open_database(struct scratch *scratch, pawl_error *reterr)
{
    const char *const dirs[] = { scratch->dir };
    struct pawl__duck_options options = {
        .threads = 1, /* rows stay in their order, and one is quick enough */
        .allowed_dirs = dirs,
        .allowed_dir_count = COUNT_OF(dirs),
        .unsafe_no_sync = true, /* nobody looks for it after a power cut */
    };
    char path[sizeof(scratch->file)];

    snprintf(path, sizeof(path), "%s/scratch.duckdb", scratch->dir);
    TRY(pawl__duck_open(path, &options, &scratch->db, reterr));
    return pawl__duck_connect(scratch->db, &scratch->conn, reterr);
}

/* A new directory whose name is `prefix` and something random, with a database in it. */
static pawl_status scratch_open(struct scratch *scratch, const char *prefix, pawl_error *reterr)
{
    char dir[PATH_BYTES_MAX];
    char real[PATH_MAX];

    if ((size_t)snprintf(dir, sizeof(dir), "%s.XXXXXX", prefix) >= sizeof(dir)) {
        return pawl__fail(reterr, PAWL_INVALID, "the path is too long");
    }
    if (mkdtemp(dir) == NULL) {
        return pawl__fail_errno(reterr, errno, "create directory '%s'", dir);
    }
    if (realpath(dir, real) == NULL) { /* DuckDB allows absolute ones only */
        (void)rmdir(dir);
        return pawl__fail_errno(reterr, errno, "look at '%s'", dir);
    }
    snprintf(scratch->dir, sizeof(scratch->dir), "%s", real);
    snprintf(scratch->file, sizeof(scratch->file), "%s/events.parquet", real);
    return open_database(scratch, reterr);
}

/* --- writing --- */

struct table {
    struct scratch *scratch;
    struct pawl__duck_appender *appender; /* NULL: no transaction is open */
    uint64_t rows;                        /* in it */
};

static pawl_status table_begin(struct table *table, pawl_error *reterr)
{
    struct pawl__duck_conn *conn = table->scratch->conn;

    TRY(pawl__duck_begin(conn, PAWL__DUCK_WRITE, reterr));
    table->rows = 0;
    return pawl__duck_appender_open(conn, "events", &table->appender, reterr);
}

static pawl_status table_end(struct table *table, pawl_error *reterr)
{
    if (table->appender == NULL) {
        return PAWL_OK;
    }
    pawl_status status = pawl__duck_appender_finish(table->appender, reterr);
    pawl__duck_appender_free(STEAL(table->appender));
    TRY(status);
    TRY(pawl__duck_commit(table->scratch->conn, reterr));
    return pawl__duck_checkpoint(table->scratch->db, PAWL__DUCK_CHECKPOINT_TRY, reterr);
}

static void table_done(struct table *table)
{
    pawl__duck_appender_free(table->appender);
}

static pawl_status table_add(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct table *table = context;

    TRY(pawl__duck_check_text(event->payload, reterr));
    if (table->appender == NULL) {
        TRY(table_begin(table, reterr));
    }
    struct pawl__duck_appender *row = table->appender;
    pawl__duck_append_u64(row, event->offset);
    pawl__duck_append_text(row, event->id);
    pawl__duck_append_text(row, event->run_id);
    pawl__duck_append_i64(row, event->turn);
    pawl__duck_append_text(row, event->kind);
    pawl__duck_append_text(row, event->actor);
    pawl__duck_append_text(row, event->payload);
    pawl__duck_append_time(row, event->created_at_us);
    pawl__duck_append_i64(row, event->schema_version);
    pawl__duck_append_bytes(row, (pawl_view){ (const char *)event->hash, sizeof(event->hash) });
    TRY(pawl__duck_append_row_end(row, reterr));
    return ++table->rows == CHECKPOINT_ROWS ? table_end(table, reterr) : PAWL_OK;
}

/* COPY takes no parameters. The path is ours but for the directory it is in. */
static pawl_status copy_out(struct scratch *scratch, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT((size_t)4 * PATH_BYTES_MAX);

    pawl__buf_add_text(&sql, "COPY events TO ");
    pawl__ledger_parquet_add_quoted(&sql, scratch->file);
    pawl__buf_add_text(&sql, " (FORMAT parquet, COMPRESSION zstd)");
    TRY(pawl__buf_check(&sql, "a path", reterr));
    return pawl__duck_script(scratch->conn, sql.data, reterr);
}

pawl_status pawl__ledger_export_parquet(struct ledger_export *export,
                                        const char *path,
                                        pawl_error *reterr)
{
    AUTO(scratch_done) struct scratch scratch = { .db = NULL };
    AUTO(table_done) struct table table = { .scratch = &scratch };

    TRY(scratch_open(&scratch, path, reterr));
    TRY(pawl__duck_script(scratch.conn, pawl__ledger_parquet_events, reterr));
    TRY(pawl__ledger_export_each(export, table_add, &table, reterr));
    TRY(table_end(&table, reterr));
    TRY(copy_out(&scratch, reterr));
    return pawl__fs_publish(scratch.file, path, reterr);
}

/* --- reading --- */

/* A whole number; `ret_number` keeps its default when there is none. */
static pawl_status read_whole(const struct pawl__duck_rows *rows,
                              size_t column,
                              const char *field,
                              int64_t *ret_number,
                              pawl_error *reterr)
{
    if (!pawl__duck_is_null(rows, column + 1)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: is %.*s, must be a whole number of 64 bits",
                          field,
                          VIEW_ARGS(pawl__duck_get_text(rows, column + 1)));
    }
    if (!pawl__duck_is_null(rows, column)) {
        *ret_number = pawl__duck_get_i64(rows, column);
    }
    return PAWL_OK;
}

static pawl_status read_time(const struct pawl__duck_rows *rows,
                             int64_t *ret_us,
                             pawl_error *reterr)
{
    if (!pawl__duck_is_null(rows, PARQUET_CREATED_AT_TEXT)) {
        pawl_view text = pawl__duck_get_text(rows, PARQUET_CREATED_AT_TEXT);
        pawl_status status = pawl__time_parse(text, ret_us, reterr);
        return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "created_at");
    }
    if (!pawl__duck_is_null(rows, PARQUET_CREATED_AT)) {
        *ret_us = pawl__duck_get_i64(rows, PARQUET_CREATED_AT);
    }
    return PAWL_OK;
}

/* What is NULL, or has no column, is left out: the same as in a line of JSON. */
static pawl_status read_row(const struct pawl__duck_rows *rows,
                            int64_t now_us,
                            pawl_event *ret_event,
                            pawl_error *reterr)
{
    *ret_event = (pawl_event){
        .size = sizeof(pawl_event),
        .id = pawl__duck_get_text(rows, PARQUET_ID),
        .run_id = pawl__duck_get_text(rows, PARQUET_RUN_ID),
        .kind = pawl__duck_get_text(rows, PARQUET_KIND),
        .actor = pawl__duck_get_text(rows, PARQUET_ACTOR),
        .payload = pawl__duck_get_text(rows, PARQUET_PAYLOAD),
        .created_at_us = now_us,
        .schema_version = 1,
    };
    if (pawl__duck_is_null(rows, PARQUET_TURN) && pawl__duck_is_null(rows, PARQUET_TURN_TEXT)) {
        return pawl__fail(reterr, PAWL_INVALID, "turn: missing");
    }
    TRY(read_whole(rows, PARQUET_TURN, "turn", &ret_event->turn, reterr));
    TRY(read_whole(
        rows, PARQUET_SCHEMA_VERSION, "schema_version", &ret_event->schema_version, reterr));
    return read_time(rows, &ret_event->created_at_us, reterr);
}

static pawl_status import_row(struct ledger_import *import,
                              const struct pawl__duck_rows *rows,
                              uint64_t number,
                              pawl_error *reterr)
{
    pawl_event event;
    pawl_status status =
        read_row(rows, pawl__wall_us(import->ledger->engine.clock), &event, reterr);

    return status == PAWL_OK ? pawl__ledger_import_add(import, &event, number, reterr)
                             : pawl__ledger_import_stop(import, number, status, reterr);
}

static pawl_status count_rows(struct scratch *scratch, uint64_t *ret_count, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(scratch->conn,
                              pawl__ledger_parquet_statements[LEDGER_PARQUET_ROWS],
                              DUCK_ARGS(pawl__duck_text(pawl_view_of(scratch->file))),
                              &rows,
                              reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_count = pawl__duck_has_row(rows) ? (uint64_t)pawl__duck_get_i64(rows, 0) : 0;
    return PAWL_OK;
}

static pawl_status import_rows(struct ledger_import *import,
                               struct scratch *scratch,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT((size_t)8 * PATH_BYTES_MAX);
    uint64_t total = 0;
    uint64_t number = 0;

    TRY(count_rows(scratch, &total, reterr));
    TRY(pawl__ledger_parquet_add_query(scratch->conn, scratch->file, &sql, reterr));
    TRY(pawl__duck_query_text(scratch->conn, sql.data, NULL, 0, &rows, reterr));
    for (;;) {
        TRY(pawl__duck_next(rows, reterr));
        if (!pawl__duck_has_row(rows)) {
            return pawl__ledger_import_flush(import, reterr);
        }
        TRY(import_row(import, rows, ++number, reterr));
        if (number % TELL_EVERY == 0) {
            TRY(pawl__ledger_progress_tell(&import->watch, number, total, reterr));
        }
    }
}

pawl_status pawl__ledger_import_parquet(struct ledger_import *import,
                                        const char *path,
                                        pawl_error *reterr)
{
    AUTO(scratch_done) struct scratch scratch = { .db = NULL };
    char real[PATH_MAX];

    if (realpath(path, real) == NULL || access(real, R_OK) != 0) {
        return pawl__fail_errno(reterr, errno, "open");
    }
    TRY(scratch_open(&scratch, "/tmp/pawl-import", reterr));
    if (symlink(real, scratch.file) != 0) {
        return pawl__fail_errno(reterr, errno, "link '%s'", scratch.file);
    }
    return import_rows(import, &scratch, reterr);
}
