#include "delivery/duckdb/expressions.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/crc32c.h"
#include "base/core/error.h"
#include "store/duckdb/duckdb.h"

enum {
    SQL_BYTES_MAX = 1 << 20,
    MEMORY_BYTES_MAX = 256 << 20,
};

/* Values of one event of the last batch. */
struct computed {
    delivery_lsn lsn;
    uint32_t crc;                  /* of the payload: an edited one has the same LSN */
    struct delivery_value *values; /* NULL: it has none */
};

struct delivery_expressions {
    const struct delivery_mapping *mapping;
    struct pawl__clock *clock;
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
    const struct delivery_column *columns[DELIVERY_COLUMNS_MAX]; /* those that are computed */
    size_t column_count;
    char *filter_sql;         /* NULL: no filter */
    char *columns_sql;        /* NULL: nothing is computed */
    struct pawl__arena arena; /* of what was computed */
    struct computed *computed;
    size_t computed_count;
    size_t computed_room;
    size_t asked; /* where the last one was found: rows are appended in their order */
};

/* --- opening --- */

/* A line feed behind the expression ends a comment in it. */
static void add_column(struct pawl__buf *sql, const struct delivery_column *column)
{
    const char *cast = column->is_lenient ? "TRY_CAST" : "CAST";

    if (column->type == DELIVERY_JSON) { /* the getter wants text */
        pawl__buf_add_format(
            sql, ", CAST(%s((%s\n) AS JSON) AS VARCHAR)", cast, column->expression);
    } else {
        pawl__buf_add_format(sql,
                             ", %s((%s\n) AS %s)",
                             cast,
                             column->expression,
                             pawl__delivery_type_name(column->type));
    }
}

static pawl_status try_sql(struct delivery_expressions *expressions,
                           const char *sql,
                           size_t columns,
                           pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(expressions->conn, sql, DUCK_NO_ARGS, &rows, reterr));
    if (pawl__duck_column_count(rows) != columns) {
        return pawl__fail(reterr, PAWL_INVALID, "it is more than one expression");
    }
    return pawl__duck_next(rows, reterr);
}

/* One at a time, so that the message can say which. */
static pawl_status check_one(struct delivery_expressions *expressions,
                             const char *name,
                             const struct pawl__buf *sql,
                             pawl_error *reterr)
{
    TRY(pawl__buf_check(sql, "an expression", reterr));
    pawl_status status = try_sql(expressions, sql->data, 2, reterr);
    if (status == PAWL_OK || status == PAWL_NOMEM || status == PAWL_IO) {
        return status;
    }
    return pawl__fail_context(reterr, PAWL_INVALID, "the expression of '%s'", name);
}

static pawl_status make_filter(struct delivery_expressions *expressions, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(SQL_BYTES_MAX);

    if (expressions->mapping->filter == NULL) {
        return PAWL_OK;
    }
    pawl__buf_add_format(&sql,
                         "SELECT n, coalesce(CAST((%s\n) AS BOOLEAN), false) FROM input ORDER BY n",
                         expressions->mapping->filter);
    TRY(check_one(expressions, "filter", &sql, reterr));
    expressions->filter_sql = pawl__buf_steal(&sql);
    return pawl__check_memory(expressions->filter_sql, "an expression", reterr);
}

static pawl_status make_columns(struct delivery_expressions *expressions, pawl_error *reterr)
{
    const struct delivery_mapping *mapping = expressions->mapping;
    AUTO(pawl__buf_done) struct pawl__buf all = BUF_INIT(SQL_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf one = BUF_INIT(SQL_BYTES_MAX);

    pawl__buf_add_text(&all, "SELECT n");
    for (size_t i = 0; i < mapping->count; i++) {
        const struct delivery_column *column = &mapping->columns[i];
        if (column->from != DELIVERY_FROM_EXPRESSION) {
            continue;
        }
        pawl__buf_clear(&one);
        pawl__buf_add_text(&one, "SELECT n");
        add_column(&one, column);
        pawl__buf_add_text(&one, " FROM input ORDER BY n");
        TRY(check_one(expressions, column->name, &one, reterr));
        add_column(&all, column);
        expressions->columns[expressions->column_count++] = column;
    }
    if (expressions->column_count == 0) {
        return PAWL_OK;
    }
    pawl__buf_add_text(&all, " FROM input ORDER BY n");
    TRY(pawl__buf_check(&all, "the expressions", reterr));
    expressions->columns_sql = pawl__buf_steal(&all);
    return pawl__check_memory(expressions->columns_sql, "the expressions", reterr);
}

pawl_status pawl__delivery_expressions_open(const struct delivery_mapping *mapping,
                                            struct pawl__clock *clock,
                                            struct delivery_expressions **ret_expressions,
                                            pawl_error *reterr)
{
    AUTO(pawl__delivery_expressions_close_p)
    struct delivery_expressions *expressions = calloc(1, sizeof(*expressions));
    const struct pawl__duck_options options = { .threads = 1,
                                                .memory_bytes_max = MEMORY_BYTES_MAX,
                                                .clock = clock };

    TRY(pawl__check_memory(expressions, "expressions", reterr));
    expressions->mapping = mapping;
    expressions->clock = clock;
    TRY(pawl__duck_open_memory(&options, &expressions->db, reterr));
    TRY(pawl__duck_connect(expressions->db, &expressions->conn, reterr));
    TRY(pawl__duck_script(
        expressions->conn,
        "CREATE TABLE input (n BIGINT, payload JSON, headers JSON, subject VARCHAR, "
        "source VARCHAR, event_id VARCHAR, transaction_id VARCHAR, received_at "
        "TIMESTAMP)",
        reterr));
    TRY(make_filter(expressions, reterr));
    TRY(make_columns(expressions, reterr));
    *ret_expressions = STEAL(expressions);
    return PAWL_OK;
}

void pawl__delivery_expressions_close(struct delivery_expressions *expressions)
{
    if (expressions == NULL) {
        return;
    }
    pawl__duck_disconnect(expressions->conn);
    pawl__duck_close(expressions->db);
    pawl__arena_done(&expressions->arena);
    free(expressions->computed);
    free(expressions->filter_sql);
    free(expressions->columns_sql);
    free(expressions);
}

/* --- running one statement over some events --- */

/* Which of a batch. */
struct chosen {
    const struct delivery_entry *entries;
    const size_t *places; /* in the batch */
    size_t count;
};

static pawl_status append_text(struct pawl__duck_appender *appender,
                               pawl_view text,
                               struct pawl__arena *arena,
                               pawl_error *reterr)
{
    pawl_view clean;

    TRY(pawl__delivery_clean_text(text, arena, &clean, reterr));
    pawl__duck_append_text(appender, clean);
    return PAWL_OK;
}

static pawl_status append_entry(struct pawl__duck_appender *appender,
                                const struct delivery_entry *entry,
                                size_t place,
                                struct pawl__arena *arena,
                                pawl_error *reterr)
{
    pawl_view headers = { NULL, 0 };

    pawl__duck_append_i64(appender, (int64_t)place);
    pawl__duck_append_text(appender, entry->payload);
    if (entry->header_count == 0) {
        pawl__duck_append_null(appender);
    } else {
        TRY(pawl__delivery_headers_json(
            entry->headers, entry->header_count, arena, &headers, reterr));
        pawl__duck_append_text(appender, headers);
    }
    TRY(append_text(appender, entry->subject, arena, reterr));
    TRY(append_text(appender, entry->source, arena, reterr));
    TRY(append_text(appender, entry->event_id, arena, reterr));
    TRY(append_text(appender, entry->transaction_id, arena, reterr));
    pawl__duck_append_time(appender, entry->created_us);
    return pawl__duck_append_row_end(appender, reterr);
}

static pawl_status load(struct delivery_expressions *expressions,
                        const struct chosen *chosen,
                        pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    TRY(pawl__duck_appender_open(expressions->conn, "input", &appender, reterr));
    for (size_t i = 0; i < chosen->count; i++) {
        size_t place = chosen->places[i];
        TRY(append_entry(appender, &chosen->entries[place], place, &arena, reterr));
        pawl__arena_clear(&arena);
    }
    return pawl__duck_appender_finish(appender, reterr);
}

struct query;

/* Called with each row: its event's place in the batch. */
typedef pawl_status row_taker(struct delivery_expressions *expressions,
                              const struct query *query,
                              const struct pawl__duck_rows *rows,
                              size_t place,
                              pawl_error *reterr);

struct query {
    const char *sql;
    row_taker *take;
    const struct delivery_entry *entries; /* the batch */
    struct delivery_verdict *verdicts;
};

static pawl_status take_rows(struct delivery_expressions *expressions,
                             const struct query *query,
                             pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(expressions->conn, query->sql, DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        size_t place = (size_t)pawl__duck_get_i64(rows, 0);
        TRY(query->take(expressions, query, rows, place, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status attempt(struct delivery_expressions *expressions,
                           const struct query *query,
                           const struct chosen *chosen,
                           pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = expressions->conn;
    uint32_t limit_ms = expressions->mapping->expression_ms_max;
    int64_t limit_ns =
        (int64_t)(limit_ms == 0 ? DELIVERY_EXPRESSION_MS_DEFAULT : limit_ms) * NS_PER_MS;

    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(load(expressions, chosen, reterr));
    pawl__duck_set_deadline(guard, pawl__monotonic_ns(expressions->clock) + limit_ns);
    pawl_status status = take_rows(expressions, query, reterr);
    pawl__duck_set_deadline(guard, 0);
    return status;
}

/* Memory counts: it is the expression's, and has a limit of its own. */
static bool is_an_events_fault(pawl_status status)
{
    switch (status) {
    case PAWL_INVALID:
    case PAWL_CONFLICT:
    case PAWL_FAILED:
    case PAWL_TIMEOUT:
    case PAWL_NOMEM:
    case PAWL_NO_SPACE:
        return true;
    default:
        return false;
    }
}

/* Halves what fails down to the one event that is to blame. */
static pawl_status run(struct delivery_expressions *expressions,
                       const struct query *query,
                       const struct chosen *chosen,
                       pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    size_t half = chosen->count / 2;

    if (chosen->count == 0) {
        return PAWL_OK;
    }
    pawl_status status = attempt(expressions, query, chosen, &error);
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (!is_an_events_fault(status)) {
        return pawl__fail_with(reterr, status, &error);
    }
    if (chosen->count == 1) {
        pawl__delivery_verdict_refuse(
            &query->verdicts[chosen->places[0]], DELIVERY_REASON_UNMAPPABLE, &error);
        return PAWL_OK;
    }
    const struct chosen first = { chosen->entries, chosen->places, half };
    const struct chosen second = { chosen->entries, &chosen->places[half], chosen->count - half };
    TRY(run(expressions, query, &first, reterr)); /* as deep as log2 of a batch */
    return run(expressions, query, &second, reterr);
}

/* --- the filter --- */

static pawl_status take_filter(struct delivery_expressions *expressions,
                               const struct query *query,
                               const struct pawl__duck_rows *rows,
                               size_t place,
                               pawl_error *reterr)
{
    (void)expressions;
    (void)reterr;
    query->verdicts[place].kind = pawl__duck_get_bool(rows, 1) ? DELIVERY_ROW : DELIVERY_FILTERED;
    return PAWL_OK;
}

/* --- columns --- */

static pawl_status get_value(struct delivery_expressions *expressions,
                             const struct pawl__duck_rows *rows,
                             size_t index,
                             struct delivery_value *value,
                             pawl_error *reterr)
{
    const struct delivery_column *column = expressions->columns[index];
    size_t at = index + 1;

    *value =
        (struct delivery_value){ .type = column->type, .is_null = pawl__duck_is_null(rows, at) };
    if (value->is_null) {
        return column->is_required ? pawl__fail(reterr, PAWL_INVALID, "%s: is NULL", column->name)
                                   : PAWL_OK;
    }
    switch (column->type) {
    case DELIVERY_BIGINT:
    case DELIVERY_INTEGER:
        value->as.i64 = pawl__duck_get_i64(rows, at);
        return PAWL_OK;
    case DELIVERY_DOUBLE:
        value->as.real = pawl__duck_get_double(rows, at);
        return PAWL_OK;
    case DELIVERY_BOOLEAN:
        value->as.boolean = pawl__duck_get_bool(rows, at);
        return PAWL_OK;
    case DELIVERY_TIMESTAMP:
        value->as.i64 = pawl__duck_get_time(rows, at);
        return PAWL_OK;
    default:
        return pawl__arena_copy(&expressions->arena, pawl__duck_get_text(rows, at), &value->as.text)
                   ? PAWL_OK
                   : pawl__fail(reterr, PAWL_NOMEM, "no memory for a value");
    }
}

static pawl_status take_columns(struct delivery_expressions *expressions,
                                const struct query *query,
                                const struct pawl__duck_rows *rows,
                                size_t place,
                                pawl_error *reterr)
{
    const struct delivery_entry *entry = &query->entries[place];
    size_t size = expressions->column_count * sizeof(struct delivery_value);
    struct delivery_value *values = pawl__arena_take(&expressions->arena, size);

    TRY(pawl__check_memory(values, "values", reterr));
    for (size_t i = 0; i < expressions->column_count; i++) {
        TRY(get_value(expressions, rows, i, &values[i], reterr));
    }
    expressions->computed[place] = (struct computed){ .lsn = entry->lsn,
                                                      .crc = pawl__crc32c(entry->payload),
                                                      .values = values };
    return PAWL_OK;
}

static pawl_status make_room(struct delivery_expressions *expressions,
                             size_t count,
                             pawl_error *reterr)
{
    pawl__arena_clear(&expressions->arena);
    expressions->computed_count = 0;
    expressions->asked = 0;
    if (count > expressions->computed_room) {
        struct computed *computed = realloc(expressions->computed, count * sizeof(*computed));
        TRY(pawl__check_memory(computed, "values", reterr));
        expressions->computed = computed;
        expressions->computed_room = count;
    }
    expressions->computed_count = count;
    for (size_t i = 0; i < count; i++) {
        expressions->computed[i] = (struct computed){ .values = NULL };
    }
    return PAWL_OK;
}

/* --- a batch --- */

static size_t choose_rows(const struct delivery_verdict *verdicts, size_t count, size_t *places)
{
    size_t chosen = 0;

    for (size_t i = 0; i < count; i++) {
        if (verdicts[i].kind == DELIVERY_ROW) {
            places[chosen++] = i;
        }
    }
    return chosen;
}

static pawl_status judge_batch(struct delivery_expressions *expressions,
                               const struct delivery_entry *entries,
                               size_t count,
                               size_t *places,
                               struct delivery_verdict *verdicts,
                               pawl_error *reterr)
{
    struct chosen chosen = { .entries = entries, .places = places };
    const struct query filter = { expressions->filter_sql, take_filter, entries, verdicts };
    const struct query columns = { expressions->columns_sql, take_columns, entries, verdicts };

    for (size_t i = 0; i < count; i++) {
        TRY(pawl__delivery_map_readable(expressions->mapping, &entries[i], &verdicts[i], reterr));
    }
    if (filter.sql != NULL) {
        chosen.count = choose_rows(verdicts, count, places);
        TRY(run(expressions, &filter, &chosen, reterr));
    }
    for (size_t i = 0; i < count; i++) { /* an event that nobody wants need not fit */
        if (verdicts[i].kind == DELIVERY_ROW) {
            TRY(pawl__delivery_map_columns(
                expressions->mapping, &entries[i], &verdicts[i], reterr));
        }
    }
    if (columns.sql == NULL) {
        return PAWL_OK;
    }
    chosen.count = choose_rows(verdicts, count, places);
    return run(expressions, &columns, &chosen, reterr);
}

pawl_status pawl__delivery_expressions_judge(struct delivery_expressions *expressions,
                                             const struct delivery_entry *entries,
                                             size_t count,
                                             struct delivery_verdict *ret_verdicts,
                                             pawl_error *reterr)
{
    size_t *places = malloc((count + 1) * sizeof(*places));

    TRY(pawl__check_memory(places, "a batch", reterr));
    pawl_status status = make_room(expressions, count, reterr);
    if (status == PAWL_OK) {
        status = judge_batch(expressions, entries, count, places, ret_verdicts, reterr);
    }
    free(places);
    return status;
}

/* --- what was computed --- */

static const struct computed *find(struct delivery_expressions *expressions,
                                   const struct delivery_entry *entry)
{
    uint32_t crc = pawl__crc32c(entry->payload);

    for (size_t tries = 0; tries < expressions->computed_count; tries++) {
        size_t at = (expressions->asked + tries) % expressions->computed_count;
        const struct computed *computed = &expressions->computed[at];
        if (computed->values != NULL && computed->lsn == entry->lsn && computed->crc == crc) {
            expressions->asked = at;
            return computed;
        }
    }
    return NULL;
}

pawl_status pawl__delivery_expressions_value(struct delivery_expressions *expressions,
                                             const struct delivery_column *column,
                                             const struct delivery_entry *entry,
                                             struct delivery_value *ret_value,
                                             pawl_error *reterr)
{
    const struct computed *computed = find(expressions, entry);
    struct delivery_verdict verdict;
    size_t index = 0;

    if (computed == NULL) { /* nobody judged it before */
        TRY(pawl__delivery_expressions_judge(expressions, entry, 1, &verdict, reterr));
        computed = find(expressions, entry);
    }
    if (computed == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s cannot be computed", column->name);
    }
    while (index < expressions->column_count
           && strcmp(expressions->columns[index]->name, column->name) != 0) {
        index++;
    }
    REQUIRE(index < expressions->column_count);
    *ret_value = computed->values[index];
    return PAWL_OK;
}
