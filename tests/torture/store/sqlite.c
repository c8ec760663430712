#include "torture/store/store.h"

#include <stdlib.h>

#include "base/os/fs.h"
#include "store/sqlite/sqlite.h"
#include "test_schemas.h"
#include "torture/oracle.h"

#define APPLICATION_ID 0x746f7274 /* "tort" */

enum { SQL_INSERT, SQL_LIST, SQL_COUNT };

static const char *const sql_text[SQL_COUNT] = {
    [SQL_INSERT] = "INSERT INTO record (number, body) VALUES (?1, ?2)",
    [SQL_LIST] = "SELECT number, body FROM record",
};

struct sqlite_store {
    struct torture_store base;
    struct pawl__sqlite *db;
};

static void free_text(char **text)
{
    free(*text);
}

static void close_store(struct torture_store *store)
{
    struct sqlite_store *self = (struct sqlite_store *)store;

    if (self != NULL) {
        pawl__sqlite_close(self->db);
        free(self);
    }
}

static pawl_status open_store(const char *location,
                              bool unsafe,
                              struct torture_store **ret_store,
                              pawl_error *reterr)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;
    AUTO(free_text) char *path = pawl__fs_join(location, "store.sqlite");
    struct sqlite_store *self = calloc(1, sizeof(*self));

    REQUIRE(self != NULL && path != NULL);
    options.application_id = APPLICATION_ID;
    options.schema = &pawl__schema_sqlite_torture;
    options.statements = sql_text;
    options.statement_count = SQL_COUNT;
    options.unsafe_skip_sync = unsafe;
    self->base.ops = &torture_sqlite;
    pawl_status status = pawl__sqlite_open(path, &options, &self->db, reterr);
    if (status != PAWL_OK) {
        close_store(&self->base);
        return status;
    }
    *ret_store = &self->base;
    return PAWL_OK;
}

static pawl_status insert(struct pawl__sqlite *db, uint64_t number, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, SQL_INSERT);
    char text[RECORD_BYTES_MAX];
    size_t len = record_text(number, text);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)number);
    pawl__sqlite_bind_text(&stmt, 2, (pawl_view){ text, len });
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status append(struct torture_store *store,
                          uint64_t first,
                          uint64_t count,
                          pawl_error *reterr)
{
    struct pawl__sqlite *db = ((struct sqlite_store *)store)->db;
    pawl_status status = pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, reterr);

    for (uint64_t n = first; status == PAWL_OK && n < first + count; n++) {
        status = insert(db, n, reterr);
    }
    if (status != PAWL_OK) {
        pawl__sqlite_rollback(db);
        return status;
    }
    return pawl__sqlite_commit(db, reterr);
}

static pawl_status list(struct torture_store *store,
                        torture_visit *visit,
                        void *context,
                        pawl_error *reterr)
{
    struct pawl__sqlite *db = ((struct sqlite_store *)store)->db;
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, SQL_LIST);
    bool row = false;
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && (status = pawl__sqlite_next(&stmt, &row, reterr)) == PAWL_OK
           && row) {
        uint64_t number = (uint64_t)pawl__sqlite_i64(&stmt, 0);
        status = visit(context, number, pawl__sqlite_text(&stmt, 1), reterr);
    }
    return status;
}

static pawl_status tidy(struct torture_store *store, pawl_error *reterr)
{
    struct pawl__sqlite *db = ((struct sqlite_store *)store)->db;

    return pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, NULL, reterr);
}

const struct torture_store_ops torture_sqlite = {
    .name = "sqlite",
    .open = open_store,
    .close = close_store,
    .append = append,
    .list = list,
    .tidy = tidy,
};
