#include "torture/store/store.h"

#include <stdlib.h>

#include "store/postgres/postgres.h"
#include "test_schemas.h"
#include "torture/oracle.h"

enum { SQL_INSERT, SQL_LIST, SQL_CHECKPOINT, SQL_COUNT };

static const struct pawl__pg_statement sql_table[SQL_COUNT] = {
    [SQL_INSERT] = { "INSERT INTO record (number, body) VALUES ($1, $2)", "it", NULL },
    [SQL_LIST] = { "SELECT number, body FROM record", NULL, "it" },
    [SQL_CHECKPOINT] = { "CHECKPOINT", NULL, NULL },
};

struct postgres_store {
    struct torture_store base;
    struct pawl__pg *pg;
};

static void close_store(struct torture_store *store)
{
    struct postgres_store *self = (struct postgres_store *)store;

    if (self != NULL) {
        pawl__pg_close(self->pg);
        free(self);
    }
}

static pawl_status open_store(const char *location,
                              bool unsafe,
                              struct torture_store **ret_store,
                              pawl_error *reterr)
{
    struct pawl__pg_options options = {
        .schema = &pawl__schema_postgres_torture,
        .statements = sql_table,
        .statement_count = SQL_COUNT,
        .reconnect_ms_max = 200, /* a server that died here does not come back by itself */
        .unsafe_async_commit = unsafe,
    };
    struct postgres_store *self = calloc(1, sizeof(*self));

    REQUIRE(self != NULL);
    self->base.ops = &torture_postgres;
    pawl_status status = pawl__pg_open(location, &options, &self->pg, reterr);
    if (status != PAWL_OK) {
        close_store(&self->base);
        return status;
    }
    *ret_store = &self->base;
    return PAWL_OK;
}

static pawl_status append(struct torture_store *store,
                          uint64_t first,
                          uint64_t count,
                          pawl_error *reterr)
{
    struct postgres_store *self = (struct postgres_store *)store;
    AUTO(pawl__pg_rollback_p) struct pawl__pg *guard = self->pg;
    pawl_status status = pawl__pg_begin(guard, PAWL__PG_READ_COMMITTED, reterr);

    for (uint64_t n = first; status == PAWL_OK && n < first + count; n++) {
        char text[RECORD_BYTES_MAX];
        size_t len = record_text(n, text);
        status = pawl__pg_exec(
            guard,
            SQL_INSERT,
            PG_ARGS(pawl__pg_i64((int64_t)n), pawl__pg_text((pawl_view){ text, len })),
            NULL,
            reterr);
    }
    return status != PAWL_OK ? status : pawl__pg_commit(guard, reterr);
}

static pawl_status list(struct torture_store *store,
                        torture_visit *visit,
                        void *context,
                        pawl_error *reterr)
{
    struct postgres_store *self = (struct postgres_store *)store;
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_status status = pawl__pg_exec(self->pg, SQL_LIST, PG_NO_ARGS, &rows, reterr);

    for (size_t i = 0; status == PAWL_OK && i < rows.count; i++) {
        uint64_t number = (uint64_t)pawl__pg_get_i64(&rows, i, 0);
        status = visit(context, number, pawl__pg_get_text(&rows, i, 1), reterr);
    }
    return status;
}

static pawl_status drop(const char *location, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_open(location, NULL, &pg, reterr);

    return status != PAWL_OK ? status
                             : pawl__pg_script(pg, "DROP SCHEMA IF EXISTS pawl CASCADE", reterr);
}

static pawl_status tidy(struct torture_store *store, pawl_error *reterr)
{
    struct postgres_store *self = (struct postgres_store *)store;

    return pawl__pg_exec(self->pg, SQL_CHECKPOINT, PG_NO_ARGS, NULL, reterr);
}

const struct torture_store_ops torture_postgres = {
    .name = "postgres",
    .open = open_store,
    .close = close_store,
    .append = append,
    .list = list,
    .drop = drop,
    .tidy = tidy,
};
