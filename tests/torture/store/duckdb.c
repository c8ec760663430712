#include "torture/store/store.h"

#include <stdlib.h>

#include "base/os/fs.h"
#include "store/duckdb/duckdb.h"
#include "test_schemas.h"
#include "torture/oracle.h"

enum { SQL_LIST, SQL_COUNT };

static const char *const sql_text[SQL_COUNT] = {
    [SQL_LIST] = "SELECT number, body FROM record",
};

struct duckdb_store {
    struct torture_store base;
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
};

static void free_text(char **text)
{
    free(*text);
}

static void close_store(struct torture_store *store)
{
    struct duckdb_store *self = (struct duckdb_store *)store;

    if (self != NULL) {
        pawl__duck_disconnect(self->conn);
        pawl__duck_close(self->db);
        free(self);
    }
}

static pawl_status open_parts(struct duckdb_store *self,
                              const char *path,
                              bool unsafe,
                              pawl_error *reterr)
{
    struct pawl__duck_options options = { .threads = 1, .unsafe_no_sync = unsafe };
    pawl_status status = pawl__duck_open(path, &options, &self->db, reterr);

    if (status == PAWL_OK) {
        status = pawl__duck_connect(self->db, &self->conn, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__migrate(
            &pawl__duck_migrate_ops, self->conn, &pawl__schema_duckdb_torture, reterr);
    }
    return status != PAWL_OK ? status : pawl__duck_prepare(self->conn, sql_text, SQL_COUNT, reterr);
}

static pawl_status open_store(const char *location,
                              bool unsafe,
                              struct torture_store **ret_store,
                              pawl_error *reterr)
{
    AUTO(free_text) char *path = pawl__fs_join(location, "store.duckdb");
    struct duckdb_store *self = calloc(1, sizeof(*self));

    REQUIRE(self != NULL && path != NULL);
    self->base.ops = &torture_duckdb;
    pawl_status status = open_parts(self, path, unsafe, reterr);
    if (status != PAWL_OK) {
        close_store(&self->base);
        return status;
    }
    *ret_store = &self->base;
    return PAWL_OK;
}

static pawl_status append_rows(struct duckdb_store *self,
                               uint64_t first,
                               uint64_t count,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;
    pawl_status status = pawl__duck_appender_open(self->conn, "record", &appender, reterr);

    for (uint64_t n = first; status == PAWL_OK && n < first + count; n++) {
        char text[RECORD_BYTES_MAX];
        size_t len = record_text(n, text);
        pawl__duck_append_i64(appender, (int64_t)n);
        pawl__duck_append_text(appender, (pawl_view){ text, len });
        status = pawl__duck_append_row_end(appender, reterr);
    }
    return status != PAWL_OK ? status : pawl__duck_appender_finish(appender, reterr);
}

static pawl_status append(struct torture_store *store,
                          uint64_t first,
                          uint64_t count,
                          pawl_error *reterr)
{
    struct duckdb_store *self = (struct duckdb_store *)store;
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = self->conn;
    pawl_status status = pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr);

    if (status == PAWL_OK) {
        status = append_rows(self, first, count, reterr);
    }
    return status != PAWL_OK ? status : pawl__duck_commit(guard, reterr);
}

static pawl_status list(struct torture_store *store,
                        torture_visit *visit,
                        void *context,
                        pawl_error *reterr)
{
    struct duckdb_store *self = (struct duckdb_store *)store;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    pawl_status status = pawl__duck_query(self->conn, SQL_LIST, DUCK_NO_ARGS, &rows, reterr);

    while (status == PAWL_OK && (status = pawl__duck_next(rows, reterr)) == PAWL_OK
           && pawl__duck_has_row(rows)) {
        uint64_t number = (uint64_t)pawl__duck_get_i64(rows, 0);
        status = visit(context, number, pawl__duck_get_text(rows, 1), reterr);
    }
    return status;
}

static pawl_status tidy(struct torture_store *store, pawl_error *reterr)
{
    struct duckdb_store *self = (struct duckdb_store *)store;

    return pawl__duck_checkpoint(self->db, PAWL__DUCK_CHECKPOINT_TRY, reterr);
}

const struct torture_store_ops torture_duckdb = {
    .name = "duckdb",
    .open = open_store,
    .close = close_store,
    .append = append,
    .list = list,
    .tidy = tidy,
};
