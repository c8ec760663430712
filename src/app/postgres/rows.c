/* Entries of an application as rows: a look-up, a page or a whole batch is one round trip. */
#include <stdlib.h>
#include <string.h>

#include "app/postgres/backend.h"
#include "base/core/error.h"

enum { CHUNK_ROWS_MAX = 5000 };
#define CHUNK_BYTES_MAX ((size_t)4 << 20) /* of one statement, unless one row has more */

/* --- reading --- */

static pawl_status query(struct app_postgres *self,
                         int64_t deadline_ns,
                         enum app_pg_statement statement,
                         const struct pawl__pg_value *values,
                         size_t count,
                         struct pawl__pg_rows *ret_rows,
                         pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__app_pg_borrow(self, deadline_ns, &borrowed, &error);

    if (status == PAWL_OK) {
        status = pawl__pg_exec(borrowed.pg, statement, values, count, ret_rows, &error);
        status = status == PAWL_OK ? PAWL_OK : pawl__app_pg_failed(self, status, &error);
    }
    if (status != PAWL_OK && reterr != NULL) {
        *reterr = error;
    }
    return status;
}

pawl_status pawl__app_pg_get_many(struct app_store *store,
                                  const struct app_lookup *lookup,
                                  struct pawl__arena *arena,
                                  struct app_value *ret_values,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_array_done) struct pawl__pg_array keys = PG_ARRAY_INIT;
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    pawl__pg_array_start(&keys, 'X', lookup->count);
    for (size_t i = 0; i < lookup->count; i++) {
        pawl__pg_array_add_view(&keys, lookup->keys[i]);
        ret_values[i] = (struct app_value){ .found = false };
    }
    if (lookup->count == 0) {
        return PAWL_OK;
    }
    TRY(query((struct app_postgres *)store,
              lookup->deadline_ns == 0 ? INT64_MAX : lookup->deadline_ns,
              APP_PG_GET,
              PG_ARGS(pawl__pg_i64(lookup->family), pawl__pg_array_value(&keys)),
              &rows,
              reterr));
    for (size_t i = 0; i < rows.count; i++) {
        pawl_view value = pawl__pg_get_bytes(&rows, i, 1);
        TRY(pawl__app_value_copy(
            &ret_values[pawl__pg_get_i64(&rows, i, 0) - 1], &value, arena, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__app_pg_scan(struct app_store *store,
                              const struct app_range *range,
                              struct app_page *page,
                              pawl_error *reterr)
{
    struct app_postgres *self = (struct app_postgres *)store;
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    /* Others share the table: what has no end, ends with the application. */
    struct app_key first = pawl__app_key_meta(self->app);
    char last[APP_KEY_SIZE + 1];
    memset(last, 0xFF, sizeof(last));
    memcpy(last, first.bytes, first.len);
    pawl_view from = range->from.len == 0 ? pawl__app_key_view(&first) : range->from;
    pawl_view until = range->until.len == 0 ? (pawl_view){ last, sizeof(last) } : range->until;

    TRY(query(self,
              INT64_MAX,
              range->backwards ? APP_PG_SCAN_BACK : APP_PG_SCAN,
              PG_ARGS(pawl__pg_i64(range->family),
                      pawl__pg_bytes(from),
                      pawl__pg_bytes(until),
                      pawl__pg_i64((int64_t)MIN(range->limit, (size_t)INT32_MAX)),
                      pawl__pg_i64((int64_t)MIN(range->bytes_max, (size_t)INT64_MAX))),
              &rows,
              reterr));
    for (size_t i = 0; i < rows.count; i++) {
        TRY(pawl__app_page_add(page,
                               range->family,
                               pawl__pg_get_bytes(&rows, i, 0),
                               pawl__pg_get_bytes(&rows, i, 1),
                               reterr));
    }
    return PAWL_OK;
}

/* --- the anchor, in a table of its own --- */

pawl_status pawl__app_pg_read_anchor(struct app_store *store,
                                     struct pawl__buf *text,
                                     pawl_error *reterr)
{
    struct app_postgres *self = (struct app_postgres *)store;
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(query(self, INT64_MAX, APP_PG_ANCHOR, PG_ARGS(pawl__pg_i64(self->app)), &rows, reterr));
    if (rows.count > 0) {
        pawl__buf_add(text, pawl__pg_get_text(&rows, 0, 0));
        TRY(pawl__buf_check(text, "the anchor", reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__app_pg_write_anchor(struct app_store *store, pawl_view text, pawl_error *reterr)
{
    struct app_postgres *self = (struct app_postgres *)store;

    return query(self,
                 INT64_MAX,
                 APP_PG_SET_ANCHOR,
                 PG_ARGS(pawl__pg_i64(self->app), pawl__pg_text(text)),
                 NULL,
                 reterr);
}

/* --- writing --- */

/* A key of the batch, once: the value is that of its last entry. */
struct row {
    const struct app_entry *entry;
    enum app_mode mode; /* INSERT when one of its entries is; else that of the last one */
};

static int by_key(const void *left, const void *right)
{
    const struct app_entry *a = ((const struct row *)left)->entry;
    const struct app_entry *b = ((const struct row *)right)->entry;
    size_t len = MIN(a->key.len, b->key.len);
    int order = (a->family > b->family) - (a->family < b->family);

    order = order == 0 && len > 0 ? memcmp(a->key.data, b->key.data, len) : order;
    order = order == 0 ? (a->key.len > b->key.len) - (a->key.len < b->key.len) : order;
    return order == 0 ? (a > b) - (a < b) : order;
}

static bool same_key(const struct app_entry *a, const struct app_entry *b)
{
    return a->family == b->family && pawl__view_equal(a->key, b->key);
}

/* In the order of keys, which is also that of the index. */
static size_t make_rows(const struct app_entry *entries, size_t count, struct row *rows)
{
    size_t made = 0;

    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct row){ &entries[i], entries[i].mode };
    }
    qsort(rows, count, sizeof(*rows), by_key);
    for (size_t i = 0; i < count; i++) {
        if (made > 0 && same_key(rows[made - 1].entry, rows[i].entry)) {
            rows[made - 1].entry = rows[i].entry;
            rows[made - 1].mode = rows[made - 1].mode == APP_INSERT ? APP_INSERT : rows[i].mode;
        } else {
            rows[made++] = rows[i];
        }
    }
    return made;
}

/* The rows that are inserted, those that are put, or those that are deleted. */
struct part {
    const struct row *rows;
    size_t count;
    enum app_mode mode;
};

struct arrays {
    struct pawl__pg_array families;
    struct pawl__pg_array keys;
    struct pawl__pg_array values;
};

#define ARRAYS_INIT                                  \
    {                                                \
        PG_ARRAY_INIT, PG_ARRAY_INIT, PG_ARRAY_INIT, \
    }

static void arrays_done(struct arrays *arrays)
{
    pawl__pg_array_done(&arrays->families);
    pawl__pg_array_done(&arrays->keys);
    pawl__pg_array_done(&arrays->values);
}

/* Fills the arrays with the part's rows from `*at` on, as many as one statement takes. */
static size_t fill(struct arrays *arrays, const struct part *part, size_t *at)
{
    size_t bytes = 0;
    size_t filled = 0;
    size_t end = *at;

    for (; end < part->count && filled < CHUNK_ROWS_MAX && bytes < CHUNK_BYTES_MAX; end++) {
        if (part->rows[end].mode == part->mode) {
            bytes += part->rows[end].entry->key.len + part->rows[end].entry->value.len;
            filled++;
        }
    }
    pawl__pg_array_start(&arrays->families, 'I', filled);
    pawl__pg_array_start(&arrays->keys, 'X', filled);
    pawl__pg_array_start(&arrays->values, 'X', filled);
    for (; *at < end; (*at)++) {
        const struct app_entry *entry = part->rows[*at].entry;
        if (part->rows[*at].mode == part->mode) {
            pawl__pg_array_add_i64(&arrays->families, entry->family);
            pawl__pg_array_add_view(&arrays->keys, entry->key);
            pawl__pg_array_add_view(&arrays->values, entry->value);
        }
    }
    return filled;
}

static pawl_status add_part(struct pawl__pg *pg, const struct part *part, pawl_error *reterr)
{
    static const enum app_pg_statement statements[] = {
        [APP_INSERT] = APP_PG_INSERT, [APP_PUT] = APP_PG_PUT, [APP_DELETE] = APP_PG_DELETE
    };
    AUTO(arrays_done) struct arrays arrays = ARRAYS_INIT;
    for (size_t at = 0; at < part->count;) {
        if (fill(&arrays, part, &at) > 0) {
            const struct pawl__pg_value values[] = { pawl__pg_array_value(&arrays.families),
                                                     pawl__pg_array_value(&arrays.keys),
                                                     pawl__pg_array_value(&arrays.values) };
            TRY(pawl__pg_pipeline_add(
                pg, statements[part->mode], values, part->mode == APP_DELETE ? 2 : 3, reterr));
        }
    }
    return PAWL_OK;
}

/* One transaction, the pipeline's own. */
static pawl_status send_rows(struct pawl__pg *pg,
                             const struct row *rows,
                             size_t count,
                             pawl_error *reterr)
{
    AUTO(pawl__pg_pipeline_abandon_p) struct pawl__pg *guard = pg;
    static const enum app_mode modes[] = { APP_INSERT, APP_PUT, APP_DELETE };
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        const struct part part = { rows, count, modes[i] };
        TRY(add_part(pg, &part, reterr));
    }
    return pawl__pg_pipeline_end(guard, reterr);
}

static pawl_status write_rows(struct app_postgres *self,
                              struct pawl__pg *pg,
                              const struct row *rows,
                              size_t count,
                              pawl_error *reterr)
{
    pawl_status status = pawl__pg_pipeline_begin(pg, NULL, NULL, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    int64_t session = pawl__pg_session(pg);
    status = send_rows(pg, rows, count, reterr);
    if (status != PAWL_OK && pawl__pg_is_broken(pg)) {
        pawl__app_pg_add_orphan(self, session);
    }
    return status;
}

/* The server refused an insert and has undone all of it. It does not tell which key it was in a form
 * that is good for anything. */
static pawl_status find_conflict(struct pawl__pg *pg,
                                 const struct row *rows,
                                 size_t count,
                                 pawl_error *reterr)
{
    AUTO(arrays_done) struct arrays arrays = ARRAYS_INIT;
    const struct part inserts = { rows, count, APP_INSERT };

    for (size_t at = 0; at < count;) {
        AUTO(pawl__pg_rows_done) struct pawl__pg_rows found = { 0 };
        size_t from = at;
        (void)fill(&arrays, &inserts, &at);
        pawl_status status = pawl__pg_exec(
            pg,
            APP_PG_TAKEN,
            PG_ARGS(pawl__pg_array_value(&arrays.families), pawl__pg_array_value(&arrays.keys)),
            &found,
            reterr);
        if (status != PAWL_OK) {
            break;
        }
        int64_t place = pawl__pg_get_i64(&found, 0, 0); /* 0: none of these */
        for (size_t i = from; i < at && place > 0; i++) {
            place -= rows[i].mode == APP_INSERT;
            if (place == 0) {
                return pawl__app_store_conflict(rows[i].entry, reterr);
            }
        }
    }
    return pawl__fail(reterr, PAWL_CONFLICT, "a key that is to be new is there already");
}

pawl_status pawl__app_pg_write(struct app_store *store,
                               const struct app_entry *entries,
                               size_t count,
                               pawl_error *reterr)
{
    struct app_postgres *self = (struct app_postgres *)store;
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    pawl_error error = PAWL_ERROR_INIT;

    if (count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__app_pg_unaltered(self, reterr));
    struct row *rows = malloc(count * sizeof(*rows));
    if (rows == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", count);
    }
    count = make_rows(entries, count, rows);
    pawl_status status = pawl__app_pg_borrow(self, INT64_MAX, &borrowed, &error);
    if (status == PAWL_OK) {
        status = write_rows(self, borrowed.pg, rows, count, &error);
        status = status == PAWL_OK ? PAWL_OK : pawl__app_pg_failed(self, status, &error);
        status = status == PAWL_CONFLICT ? find_conflict(borrowed.pg, rows, count, &error) : status;
    }
    free(rows);
    if (status != PAWL_OK && reterr != NULL) {
        *reterr = error;
    }
    return status;
}
