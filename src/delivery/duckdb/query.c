/* Foreign SQL on the file of a data directory: one statement, reading only, within limits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/delivery.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/os/fs.h"
#include "delivery/duckdb/internal.h"

enum {
    SQL_BYTES_MAX = 1 << 20,
    ROW_TEXT_BYTES_MAX = 128 << 20,
    COLUMNS_MAX = PAWL__DUCK_COLUMNS_MAX,
};

struct query {
    struct delivery_duckdb_file *file; /* that is open already; NULL: `db` is ours */
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
    struct pawl__duck_rows *rows;
    struct pawl__buf sql;
    struct pawl__buf text; /* of the cells of a row that are no text by themselves */
    const char **names;
    pawl_query_cell *cells;
    size_t *ends; /* of cells in `text` */
};

static void query_done(struct query *query)
{
    pawl__duck_rows_free(query->rows);
    if (query->file != NULL) {
        pawl__delivery_duckdb_end_reading(query->file, STEAL(query->conn));
    }
    pawl__duck_disconnect(query->conn);
    pawl__duck_close(query->db);
    pawl__buf_done(&query->sql);
    pawl__buf_done(&query->text);
    free(query->names);
    free(query->cells);
    free(query->ends);
}

static pawl_status begin(struct query *query,
                         const pawl_query_options *options,
                         struct pawl__clock *clock,
                         pawl_error *reterr)
{
    pawl__duck_set_deadline(query->conn,
                            pawl__monotonic_ns(clock) + options->timeout_ms * NS_PER_MS);
    return pawl__duck_begin(query->conn, PAWL__DUCK_READ_ONLY, reterr);
}

static pawl_status open_file(struct query *query,
                             const char *dir,
                             const pawl_query_options *options,
                             struct pawl__clock *given,
                             pawl_error *reterr)
{
    struct pawl__clock *clock = pawl__clock_or_real(given);
    AUTO(pawl__text_free) char *path = pawl__fs_join(dir, "analytics.duckdb");
    const struct pawl__duck_options duck = { .memory_bytes_max = options->memory_max,
                                             .read_only = true,
                                             .clock = clock };

    TRY(pawl__fs_check_path(path, reterr));
    if (access(path, F_OK) != 0) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "'%s' is not there: nothing was delivered yet", path);
    }
    TRY(pawl__duck_open(path, &duck, &query->db, reterr));
    TRY(pawl__duck_connect(query->db, &query->conn, reterr));
    return begin(query, options, clock, reterr);
}

/* --- types that have to be cast --- */

static void add_name(struct pawl__buf *sql, const char *name)
{
    pawl__buf_add_char(sql, '"');
    for (const char *c = name; *c != '\0'; c++) {
        pawl__buf_add_text(sql, *c == '"' ? "\"" : "");
        pawl__buf_add_char(sql, *c);
    }
    pawl__buf_add_char(sql, '"');
}

/* Lists, structs, decimals and the like as their text. Columns are named by place: two may have one name. */
static void wrap(struct query *query, const char *sql, size_t len)
{
    size_t count = pawl__duck_column_count(query->rows);

    pawl__buf_add_text(&query->sql, "SELECT ");
    for (size_t i = 0; i < count; i++) {
        bool casts = pawl__duck_column_type(query->rows, i) == '?';
        pawl__buf_add_format(&query->sql,
                             casts ? "%sCAST(c%zu AS VARCHAR) AS " : "%sc%zu AS ",
                             i > 0 ? ", " : "",
                             i);
        add_name(&query->sql, pawl__duck_column_name(query->rows, i));
    }
    pawl__buf_add_text(&query->sql, " FROM (");
    pawl__buf_add(&query->sql, (pawl_view){ sql, len });
    pawl__buf_add_text(&query->sql, "\n) AS q(");
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(&query->sql, "%sc%zu", i > 0 ? ", " : "", i);
    }
    pawl__buf_add_char(&query->sql, ')');
}

static bool must_cast(const struct query *query)
{
    bool must = false;

    for (size_t i = 0; i < pawl__duck_column_count(query->rows); i++) {
        must |= pawl__duck_column_type(query->rows, i) == '?';
    }
    return must;
}

static size_t len_without_end(const char *sql)
{
    size_t len = strlen(sql);

    while (len > 0 && strchr("; \t\r\n", sql[len - 1]) != NULL) {
        len--;
    }
    return len;
}

static pawl_status run_sql(struct query *query, const char *sql, pawl_error *reterr)
{
    TRY(pawl__duck_query_text(query->conn, sql, DUCK_NO_ARGS, &query->rows, reterr));
    if (!must_cast(query)) {
        return PAWL_OK;
    }
    wrap(query, sql, len_without_end(sql));
    TRY(pawl__buf_check(&query->sql, "the statement", reterr));
    pawl__duck_rows_free(STEAL(query->rows));
    return pawl__duck_query_text(query->conn, query->sql.data, DUCK_NO_ARGS, &query->rows, reterr);
}

/* --- rows --- */

static pawl_query_kind kind_of(char type)
{
    switch (type) {
    case 'i':
    case 'u':
    case 'd':
        return PAWL_QUERY_NUMBER;
    case 'b':
        return PAWL_QUERY_BOOLEAN;
    default:
        return PAWL_QUERY_TEXT;
    }
}

static void add_bytes(struct pawl__buf *text, pawl_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        pawl__buf_add_format(text, "%02x", (unsigned char)bytes.data[i]);
    }
}

static void add_real(struct pawl__buf *text, double value, pawl_query_kind *kind)
{
    if (__builtin_isfinite(value)) {
        pawl__buf_add_real(text, value);
    } else { /* no JSON number */
        *kind = PAWL_QUERY_TEXT;
        pawl__buf_add_text(text, __builtin_isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
}

static void add_cell(struct query *query, size_t i)
{
    struct pawl__buf *text = &query->text;
    char type = pawl__duck_column_type(query->rows, i);
    pawl_query_cell *cell = &query->cells[i];
    char time[PAWL__TIME_SIZE];

    cell->kind = pawl__duck_is_null(query->rows, i) ? PAWL_QUERY_NULL : kind_of(type);
    cell->text = (pawl_view){ NULL, 0 };
    if (cell->kind != PAWL_QUERY_NULL) {
        switch (type) {
        case 'i':
            pawl__buf_add_format(text, "%" PRId64, pawl__duck_get_i64(query->rows, i));
            break;
        case 'u':
            pawl__buf_add_format(text, "%" PRIu64, pawl__duck_get_u64(query->rows, i));
            break;
        case 'd':
            add_real(text, pawl__duck_get_double(query->rows, i), &cell->kind);
            break;
        case 'b':
            pawl__buf_add_text(text, pawl__duck_get_bool(query->rows, i) ? "true" : "false");
            break;
        case 'z':
            pawl__time_rfc3339(pawl__duck_get_time(query->rows, i), time);
            pawl__buf_add_text(text, time);
            break;
        case 'x':
            add_bytes(text, pawl__duck_get_bytes(query->rows, i));
            break;
        default:
            cell->text = pawl__duck_get_text(query->rows, i);
            break;
        }
    }
    query->ends[i] = text->len;
}

/* The buffer may have moved while the row was made. */
static pawl_status make_row(struct query *query, size_t count, pawl_error *reterr)
{
    pawl__buf_clear(&query->text);
    for (size_t i = 0; i < count; i++) {
        add_cell(query, i);
    }
    TRY(pawl__buf_check(&query->text, "a row", reterr));
    pawl_view rest = pawl__buf_view(&query->text);
    for (size_t i = 0; i < count; i++) {
        size_t len = query->ends[i] - (i > 0 ? query->ends[i - 1] : 0);
        if (len > 0) {
            REQUIRE(pawl__view_take(&rest, len, &query->cells[i].text));
        }
    }
    return PAWL_OK;
}

static pawl_status make_room(struct query *query, size_t count, pawl_error *reterr)
{
    query->names = calloc(count + 1, sizeof(*query->names));
    query->cells = calloc(count + 1, sizeof(*query->cells));
    query->ends = calloc(count + 1, sizeof(*query->ends));
    TRY(pawl__check_memory(query->names, "a row", reterr));
    TRY(pawl__check_memory(query->cells, "a row", reterr));
    TRY(pawl__check_memory(query->ends, "a row", reterr));
    for (size_t i = 0; i < count; i++) {
        query->names[i] = pawl__duck_column_name(query->rows, i);
    }
    return PAWL_OK;
}

static pawl_status visit_rows(struct query *query,
                              pawl_query_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    size_t count = pawl__duck_column_count(query->rows);
    const pawl_query_row row = { sizeof(row), count, query->names, query->cells };

    TRY(pawl__duck_next(query->rows, reterr));
    while (pawl__duck_has_row(query->rows)) {
        TRY(make_row(query, count, reterr));
        if (!visit(context, &row)) {
            return PAWL_OK;
        }
        TRY(pawl__duck_next(query->rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status check(const char *sql, const pawl_query_options *options, pawl_error *reterr)
{
    TRY(pawl__check_range("memory_max",
                          (int64_t)MIN(options->memory_max, (uint64_t)INT64_MAX),
                          16 << 20,
                          INT64_C(1) << 44,
                          reterr));
    TRY(pawl__check_range("timeout_ms", options->timeout_ms, 1, 86400000, reterr));
    return pawl__check_bytes("sql", strlen(sql), SQL_BYTES_MAX, reterr);
}

static pawl_status run(
    struct query *query, const char *sql, pawl_query_visit visit, void *context, pawl_error *reterr)
{
    TRY(run_sql(query, sql, reterr));
    TRY(make_room(query, pawl__duck_column_count(query->rows), reterr));
    return visit_rows(query, visit, context, reterr);
}

/* Beside the pipelines that write to the file, on a connection of the same database. */
pawl_status pawl__delivery_duckdb_query(struct delivery_duckdb_file *file,
                                        const char *sql,
                                        const pawl_query_options *options,
                                        pawl_query_visit visit,
                                        void *context,
                                        pawl_error *reterr)
{
    AUTO(query_done)
    struct query query = { .sql = BUF_INIT((size_t)4 * SQL_BYTES_MAX),
                           .text = BUF_INIT(ROW_TEXT_BYTES_MAX) };

    TRY(check(sql, options, reterr));
    TRY(pawl__delivery_duckdb_begin_reading(file, &query.conn, reterr));
    query.file = file;
    TRY(begin(&query, options, file->clock, reterr));
    return run(&query, sql, visit, context, reterr);
}

pawl_status pawl_delivery_query(const char *dir,
                                const char *sql,
                                const pawl_query_options *options,
                                pawl_query_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    NEED_TEXT(dir, reterr);
    NEED_TEXT(sql, reterr);
    NEED(visit, reterr);
    AUTO(query_done)
    struct query query = { .sql = BUF_INIT((size_t)4 * SQL_BYTES_MAX),
                           .text = BUF_INIT(ROW_TEXT_BYTES_MAX) };
    pawl_query_options taken = PAWL_QUERY_OPTIONS_INIT;

    TRY(pawl__take_sized("options", options, &taken, sizeof(taken), reterr));
    TRY(check(sql, &taken, reterr));
    TRY(open_file(&query, dir, &taken, NULL, reterr));
    return run(&query, sql, visit, context, reterr);
}
