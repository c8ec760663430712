/* The table that a mapping names. Its SQL is made here: no parameter can name a table or a column. The names are
 * letters, digits and '_' (pawl__delivery_mapping_check). */
#include <string.h>

#include "base/core/error.h"
#include "delivery/duckdb/internal.h"

enum { SQL_BYTES_MAX = 64 << 10 };

static const struct delivery_column *find_wanted(const struct delivery_duckdb_sink *sink,
                                                 pawl_view name)
{
    for (size_t i = 0; i < sink->wanted_count; i++) {
        if (pawl__view_is(name, sink->wanted[i].name)) {
            return &sink->wanted[i];
        }
    }
    return NULL;
}

static pawl_status check_type(const struct delivery_duckdb_sink *sink,
                              const struct delivery_column *column,
                              pawl_view type,
                              pawl_error *reterr)
{
    if (column == NULL || pawl__view_is(type, pawl__delivery_type_name(column->type))) {
        return PAWL_OK;
    }
    return pawl__fail_advised(reterr,
                              PAWL_INVALID,
                              "column '%s' of table '%s' is %.*s, the mapping says %s: name a new "
                              "column, or rebuild into a new table",
                              column->name,
                              sink->mapping->table,
                              VIEW_ARGS(type),
                              pawl__delivery_type_name(column->type));
}

static pawl_status add_to_order(struct delivery_duckdb_sink *sink,
                                const struct pawl__duck_rows *rows,
                                pawl_error *reterr)
{
    const struct delivery_column *column = find_wanted(sink, pawl__duck_get_text(rows, 0));

    TRY(check_type(sink, column, pawl__duck_get_text(rows, 1), reterr));
    if (sink->order_count == COUNT_OF(sink->order)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "table '%s' has too many columns", sink->mapping->table);
    }
    sink->order[sink->order_count++] = column;
    return PAWL_OK;
}

static pawl_status read_order(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    sink->order_count = 0;
    TRY(pawl__duck_query_text(sink->conn,
                              pawl__delivery_duck_statements[DELIVERY_DUCK_TABLE_COLUMNS],
                              DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->mapping->table))),
                              &rows,
                              reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(add_to_order(sink, rows, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static bool has_column(const struct delivery_duckdb_sink *sink,
                       const struct delivery_column *column)
{
    for (size_t i = 0; i < sink->order_count; i++) {
        if (sink->order[i] == column) {
            return true;
        }
    }
    return false;
}

static void add_create(struct pawl__buf *sql, const struct delivery_duckdb_sink *sink)
{
    pawl__buf_add_format(sql, "CREATE TABLE \"%s\" (", sink->mapping->table);
    for (size_t i = 0; i < sink->wanted_count; i++) {
        pawl__buf_add_format(sql,
                             "%s\"%s\" %s",
                             i == 0 ? "" : ", ",
                             sink->wanted[i].name,
                             pawl__delivery_type_name(sink->wanted[i].type));
    }
    pawl__buf_add_text(sql, ");");
}

static pawl_status add_alter(struct pawl__buf *sql,
                             const struct delivery_duckdb_sink *sink,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < sink->wanted_count; i++) {
        const struct delivery_column *column = &sink->wanted[i];
        if (has_column(sink, column)) {
            continue;
        }
        bool is_free =
            column->from == DELIVERY_FROM_PATH || column->from == DELIVERY_FROM_EXPRESSION;
        if (column->is_required || !is_free) {
            return pawl__fail_advised(
                reterr,
                PAWL_INVALID,
                "table '%s' has no column '%s', and only an optional one can be "
                "added to it: name another table",
                sink->mapping->table,
                column->name);
        }
        pawl__buf_add_format(sql,
                             "ALTER TABLE \"%s\" ADD COLUMN \"%s\" %s;",
                             sink->mapping->table,
                             column->name,
                             pawl__delivery_type_name(column->type));
    }
    return PAWL_OK;
}

/* Made again it would be empty, and the cursor row would say that its rows are there. */
static pawl_status check_not_gone(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(sink->conn,
                              pawl__delivery_duck_statements[DELIVERY_DUCK_TABLE_WAS_USED],
                              DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline))),
                              &rows,
                              reterr));
    TRY(pawl__duck_next(rows, reterr));
    return pawl__duck_has_row(rows) ? pawl__fail(reterr,
                                                 PAWL_CORRUPT,
                                                 "table '%s' is gone, with %llu rows in it",
                                                 sink->mapping->table,
                                                 (unsigned long long)pawl__duck_get_u64(rows, 0))
                                    : PAWL_OK;
}

static pawl_status change_table(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = sink->conn;
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(SQL_BYTES_MAX);

    if (sink->order_count == 0) {
        TRY(check_not_gone(sink, reterr));
        add_create(&sql, sink);
    } else {
        TRY(add_alter(&sql, sink, reterr));
    }
    TRY(pawl__buf_check(&sql, "the definition of a table", reterr));
    if (sql.len == 0) {
        return PAWL_OK;
    }
    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(pawl__duck_script(sink->conn, sql.data, reterr));
    TRY(pawl__duck_commit(sink->conn, reterr));
    return read_order(sink, reterr);
}

static pawl_status make_view(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(SQL_BYTES_MAX);

    pawl__buf_add_format(&sql,
                         "CREATE TEMP VIEW delivery_rows AS SELECT event_key, payload_hash, "
                         "transaction_id FROM main.\"%s\";",
                         sink->mapping->table);
    if (sink->mapping->has_unique_index) {
        pawl__buf_add_format(&sql,
                             "CREATE UNIQUE INDEX IF NOT EXISTS \"%s_transaction_id\" ON "
                             "main.\"%s\" (transaction_id);",
                             sink->mapping->table,
                             sink->mapping->table);
    }
    TRY(pawl__buf_check(&sql, "the definition of a view", reterr));
    return pawl__duck_script(sink->conn, sql.data, reterr);
}

static pawl_status check_owner(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(sink->conn,
                              pawl__delivery_duck_statements[DELIVERY_DUCK_TABLE_OWNER],
                              DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                        pawl__duck_text(pawl_view_of(sink->mapping->table))),
                              &rows,
                              reterr));
    TRY(pawl__duck_next(rows, reterr));
    if (!pawl__duck_has_row(rows)) {
        return PAWL_OK;
    }
    return pawl__fail_advised(
        reterr,
        PAWL_CONFLICT,
        "pipeline '%.*s' writes to table '%.*s': pipeline '%s' cannot write to "
        "'%s'; name another table or pipeline",
        VIEW_ARGS(pawl__duck_get_text(rows, 0)),
        VIEW_ARGS(pawl__duck_get_text(rows, 1)),
        sink->pipeline,
        sink->mapping->table);
}

pawl_status pawl__delivery_duckdb_fit_table(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    TRY(check_owner(sink, reterr));
    TRY(read_order(sink, reterr));
    TRY(change_table(sink, reterr));
    return make_view(sink, reterr);
}
