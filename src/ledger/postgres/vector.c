/* Embeddings on PostgreSQL.
 *
 * Every embedding is stored as bytes, as on the other backends. Where the extension pgvector can be
 * had, the table gets a second column of its type, and the server finds the candidates by itself.
 * The bytes stay what counts: a writer without pgvector (an older process, a user without rights)
 * replaces a row by deleting and inserting it, which leaves the second column empty, and while a
 * row is without it the search is done here. The next writer with pgvector fills it in.
 *
 * The extension may live in any schema and ours is alone in the search path, so two small functions
 * stand between it and the statements. Who drops the extension has to open the ledger again. */
#include <string.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "ledger/postgres/backend.h"
#include "ledger/recall/recall.h"

enum {
    FILL_PAGE = 200,
    /* pgvector adds up in single precision, we in a wider one: what it puts on one of the first
     * places, we put at the most a few places lower. That many more candidates are asked for. */
    CANDIDATES_MORE = 32,
    VECTOR_TEXT_BYTES_MAX = PAWL_EMBEDDING_DIMENSIONS_MAX * 32,
};

/* --- set-up --- */

static bool is_about_the_link(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT || status == PAWL_CANCELLED
           || status == PAWL_BUSY;
}

pawl_status pawl__ledger_pg_vector_setup(struct postgres_backend *backend,
                                         struct pawl__pg *pg,
                                         bool read_only,
                                         pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        read_only ? PAWL_OK : pawl__pg_script(pg, pawl__ledger_pg_vector_column, &error);

    if (status == PAWL_OK) {
        status = pawl__pg_script(pg, pawl__ledger_pg_vector_probe, &error);
    }
    if (is_about_the_link(status)) {
        if (reterr != NULL) {
            *reterr = error;
        }
        return status;
    }
    backend->has_vector = status == PAWL_OK;
    LOG_DEBUG("pgvector", LOG_BOOLEAN("used", backend->has_vector), LOG_TEXT("why", error.message));
    return PAWL_OK;
}

/* [0.6,0.8], with as many digits as a float needs to come back the same. */
static pawl_status vector_text(pawl_view vector, struct pawl__buf *text, pawl_error *reterr)
{
    pawl_view bits;
    float value;

    pawl__buf_add_char(text, '[');
    while (pawl__view_take(&vector, sizeof(value), &bits)) {
        memcpy(&value, bits.data, sizeof(value));
        pawl__buf_add_real(text, (double)value);
        pawl__buf_add_char(text, vector.len == 0 ? ']' : ',');
    }
    return pawl__buf_check(text, "an embedding", reterr);
}

static pawl_status fill_page(struct pawl__pg *pg, size_t *ret_filled, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(VECTOR_TEXT_BYTES_MAX);

    TRY(pawl__pg_exec(
        pg, LEDGER_PG_VECTOR_MISSING, PG_ARGS(pawl__pg_i64(FILL_PAGE)), &rows, reterr));
    for (size_t i = 0; i < rows.count; i++) {
        pawl_view vector = pawl__pg_get_bytes(&rows, i, 1);
        pawl__buf_clear(&text);
        TRY(vector_text(vector, &text, reterr));
        TRY(pawl__pg_exec(pg,
                          LEDGER_PG_VECTOR_FILL,
                          PG_ARGS(pawl__pg_i64(pawl__pg_get_i64(&rows, i, 0)),
                                  pawl__pg_bytes(vector),
                                  pawl__pg_text(pawl__buf_view(&text))),
                          NULL,
                          reterr));
    }
    *ret_filled = rows.count;
    return PAWL_OK;
}

pawl_status pawl__ledger_pg_vector_fill(struct postgres_backend *backend, pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__ledger_pg_borrow(&backend->base, &borrowed, reterr));
    for (size_t filled = FILL_PAGE; filled == FILL_PAGE;) {
        TRY(fill_page(borrowed.pg, &filled, reterr));
    }
    return PAWL_OK;
}

/* --- writing --- */

/* A failed statement would take the transaction with it, so nothing is tried that can fail. */
static pawl_status check_dimensions(struct pawl__pg *pg, size_t dimensions, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_exec(pg, LEDGER_PG_EMBED_ANY, PG_NO_ARGS, &rows, reterr));
    size_t stored_bytes = rows.count == 0 ? 0 : (size_t)pawl__pg_get_i64(&rows, 0, 0);
    return pawl__ledger_check_dimensions(dimensions * sizeof(float), stored_bytes, reterr);
}

static pawl_status insert_embedding(struct postgres_backend *backend,
                                    uint64_t offset,
                                    pawl_view vector,
                                    struct pawl__pg_rows *ret_rows,
                                    pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(VECTOR_TEXT_BYTES_MAX);
    struct pawl__pg_value at = pawl__pg_i64((int64_t)offset);

    if (!backend->has_vector) {
        return pawl__pg_exec(backend->pg.writer,
                             LEDGER_PG_EMBED,
                             PG_ARGS(at, pawl__pg_bytes(vector)),
                             ret_rows,
                             reterr);
    }
    TRY(vector_text(vector, &text, reterr));
    return pawl__pg_exec(backend->pg.writer,
                         LEDGER_PG_VECTOR_EMBED,
                         PG_ARGS(at, pawl__pg_bytes(vector), pawl__pg_text(pawl__buf_view(&text))),
                         ret_rows,
                         reterr);
}

pawl_status pawl__ledger_pg_embed(struct ledger_backend *base,
                                  uint64_t offset,
                                  pawl_view vector,
                                  pawl_error *reterr)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(check_dimensions(backend->pg.writer, vector.len / sizeof(float), reterr));
    if (offset <= INT64_MAX) {
        TRY(pawl__pg_exec(backend->pg.writer,
                          LEDGER_PG_EMBED_DELETE,
                          PG_ARGS(pawl__pg_i64((int64_t)offset)),
                          NULL,
                          reterr));
        TRY(insert_embedding(backend, offset, vector, &rows, reterr));
    }
    if (rows.affected == 0) {
        return pawl__ledger_fail_no_offset(offset, reterr);
    }
    return PAWL_OK;
}

/* --- reading --- */

struct vector_walk {
    ledger_vector_sink visit;
    void *context;
};

static pawl_status walk_vector(void *context,
                               size_t index,
                               const struct pawl__pg_rows *rows,
                               pawl_error *reterr)
{
    struct vector_walk *walk = context;

    (void)index;
    return walk->visit(walk->context,
                       (uint64_t)pawl__pg_get_i64(rows, 0, 0),
                       pawl__pg_get_bytes(rows, 0, 1),
                       reterr);
}

pawl_status pawl__ledger_pg_embeddings(struct ledger_backend *base,
                                       const pawl_event_filter *filter,
                                       ledger_vector_sink visit,
                                       void *context,
                                       pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    struct vector_walk walk = { visit, context };
    struct pawl__pg_value values[PG_FILTER_VALUES];

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    pawl__ledger_pg_filter(filter, values);
    return pawl__pg_each(borrowed.pg,
                         filter == NULL ? LEDGER_PG_EMBEDDINGS : LEDGER_PG_EMBEDDINGS_FILTER,
                         values,
                         filter == NULL ? 0 : COUNT_OF(values),
                         walk_vector,
                         &walk,
                         reterr);
}

/* --- the server's own search --- */

static pawl_status is_complete(struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_exec(pg, LEDGER_PG_VECTOR_MISSING, PG_ARGS(pawl__pg_i64(1)), &rows, reterr));
    if (rows.count == 0) {
        return PAWL_OK;
    }
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "not every embedding is one of pgvector's");
}

static pawl_status ask_nearest(struct pawl__pg *pg,
                               pawl_view vector,
                               const pawl_event_filter *filter,
                               size_t count,
                               struct pawl__pg_rows *ret_rows,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(VECTOR_TEXT_BYTES_MAX);
    struct pawl__pg_value values[PG_FILTER_VALUES + 2];

    TRY(vector_text(vector, &text, reterr));
    pawl__ledger_pg_filter(filter, values);
    values[PG_FILTER_VALUES] = pawl__pg_text(pawl__buf_view(&text));
    values[PG_FILTER_VALUES + 1] = pawl__pg_i64((int64_t)count);
    return filter == NULL
               ? pawl__pg_exec(
                   pg, LEDGER_PG_VECTOR_NEAREST, &values[PG_FILTER_VALUES], 2, ret_rows, reterr)
               : pawl__pg_exec(
                   pg, LEDGER_PG_VECTOR_NEAREST_FILTER, values, COUNT_OF(values), ret_rows, reterr);
}

pawl_status pawl__ledger_pg_nearest(struct ledger_backend *base,
                                    const float *values,
                                    size_t dimensions,
                                    const pawl_event_filter *filter,
                                    struct recall_top *top,
                                    pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_view query = { (const char *)values, dimensions * sizeof(*values) };

    if (!pawl__ledger_pg_of(base)->has_vector) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "this server has no pgvector");
    }
    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    TRY(check_dimensions(borrowed.pg, dimensions, reterr));
    TRY(is_complete(borrowed.pg, reterr));
    TRY(ask_nearest(borrowed.pg, query, filter, top->cap + CANDIDATES_MORE, &rows, reterr));
    /* Scored again by the same arithmetic as everywhere, so that the answer is the same, too. */
    for (size_t i = 0; i < rows.count; i++) {
        double similarity =
            pawl__ledger_recall_similarity(values, pawl__pg_get_bytes(&rows, i, 1), dimensions);
        pawl__ledger_recall_offer(
            top, (pawl_recalled){ (uint64_t)pawl__pg_get_i64(&rows, i, 0), similarity });
    }
    pawl__ledger_recall_sort(top);
    return PAWL_OK;
}
