/* POST /v1/sql: one statement that only reads, on a connection of the file that pipelines write to. */
#include "base/core/error.h"
#include "base/terminal/display.h"
#include "server/delivery/delivery.h"

#define ROWS_BYTES_MAX ((size_t)64 << 20)

struct result {
    struct pawl__arena *arena;
    pawl_view *columns;
    size_t column_count;
    struct pawl__buf rows; /* [[...],... */
    uint64_t count;
    uint64_t limit;
    bool truncated;
    bool no_memory;
};

static void result_done(struct result *result)
{
    pawl__buf_done(&result->rows);
}

static bool take_columns(struct result *result, const pawl_query_row *row)
{
    result->columns = pawl__arena_take(result->arena, (row->count + 1) * sizeof(pawl_view));
    if (result->columns == NULL) {
        return false;
    }
    for (size_t i = 0; i < row->count; i++) {
        if (!pawl__arena_copy(result->arena, pawl_view_of(row->names[i]), &result->columns[i])) {
            return false;
        }
    }
    result->column_count = row->count;
    return true;
}

static void add_cell(struct pawl__buf *rows, const pawl_query_cell *cell)
{
    switch (cell->kind) {
    case PAWL_QUERY_NULL:
        pawl__buf_add_text(rows, "null");
        return;
    case PAWL_QUERY_NUMBER:
    case PAWL_QUERY_BOOLEAN:
        pawl__buf_add(rows, cell->text);
        return;
    case PAWL_QUERY_TEXT:
        break;
    }
    pawl__display_add_json(rows, cell->text);
}

static bool add_row(void *context, const pawl_query_row *row)
{
    struct result *result = context;

    if (result->count == result->limit || result->rows.len > ROWS_BYTES_MAX / 2) {
        result->truncated = true;
        return false;
    }
    if (result->columns == NULL && !take_columns(result, row)) {
        result->no_memory = true;
        return false;
    }
    pawl__buf_add_text(&result->rows, result->count++ == 0 ? "[[" : ",[");
    for (size_t i = 0; i < row->count; i++) {
        pawl__buf_add_text(&result->rows, i == 0 ? "" : ",");
        add_cell(&result->rows, &row->cells[i]);
    }
    pawl__buf_add_char(&result->rows, ']');
    return !result->rows.broken;
}

/* What is wrong with the statement is the fault of whoever wrote it, also when DuckDB says so. On the socket errors are told
 * as they are. */
static pawl_status blame(struct pawl__serve_call *call,
                         pawl_status status,
                         const pawl_error *error,
                         pawl_error *reterr)
{
    bool is_theirs = (status == PAWL_INVALID || status == PAWL_CONFLICT || status == PAWL_DENIED)
                     && !pawl__http_is_trusted(call->request);

    return is_theirs ? pawl__serve_refuse(
               call, pawl__http_problem_of(status), reterr, "%s", error->message)
                     : pawl__fail_with(reterr, status, error);
}

pawl_status pawl__serve_sql(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct sql_body *body = call->body;
    AUTO(result_done)
    struct result result = { .arena = &call->arena,
                             .rows = BUF_INIT(ROWS_BYTES_MAX),
                             .limit = body->limit };
    pawl_query_options options = PAWL_QUERY_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_delivery *delivery = NULL;
    pawl_view sql;

    if (!pawl__arena_copy(&call->arena, body->sql, &sql)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a statement");
    }
    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    options.timeout_ms = (uint32_t)body->timeout_ms;
    pawl_status status =
        pawl_delivery_select(delivery, sql.data, &options, add_row, &result, &error);
    if (status != PAWL_OK) {
        return blame(call, status, &error, reterr);
    }
    pawl__buf_add_text(&result.rows, result.count == 0 ? "[]" : "]");
    if (result.no_memory) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a result");
    }
    TRY(pawl__buf_check(&result.rows, "the result", reterr));
    pawl__serve_answer(call,
                       200,
                       &(struct sql_answer){ .columns = result.columns,
                                             .column_count = result.column_count,
                                             .rows = pawl__buf_view(&result.rows),
                                             .truncated = result.truncated });
    return PAWL_OK;
}
