#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "store/duckdb/internal.h"
#include "store/duckdb/statements.h"

static pawl_status migrate_begin(void *store, pawl_error *reterr)
{
    /* One process owns the file; two threads of it meet in a write-write conflict: BUSY. */
    return pawl__duck_begin(store, PAWL__DUCK_WRITE, reterr);
}

static pawl_status has_table(void *conn, bool *ret_has, pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(
        conn, pawl__store_duck_statements[STORE_DUCK_HAS_VERSIONS], DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_has = pawl__duck_has_row(rows);
    return PAWL_OK;
}

/* The visitor wants C strings; DuckDB's are not terminated. */
static pawl_status visit_row(const struct pawl__duck_rows *rows,
                             const char *component,
                             pawl__schema_visit *visit,
                             void *context,
                             pawl_error *reterr)
{
    enum { NAME_BYTES_MAX = 4096 };
    AUTO(pawl__buf_done) struct pawl__buf version = BUF_INIT(NAME_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf name = BUF_INIT(NAME_BYTES_MAX);

    pawl__buf_add(&version, pawl__duck_get_text(rows, 0));
    pawl__buf_add(&name, pawl__duck_get_text(rows, 2));
    TRY(pawl__buf_check(&version, "version of a migration", reterr));
    TRY(pawl__buf_check(&name, "name of a migration", reterr));
    const struct pawl__schema_row row = {
        .component = component,
        .version = version.data != NULL ? version.data : "",
        .migration = (int)pawl__duck_get_i64(rows, 1),
        .name = name.data != NULL ? name.data : "",
    };
    return visit(context, &row, reterr);
}

static pawl_status migrate_each(void *store,
                                const char *component,
                                pawl__schema_visit *visit,
                                void *context,
                                pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(store,
                              pawl__store_duck_statements[STORE_DUCK_VERSIONS],
                              DUCK_ARGS(pawl__duck_text(pawl_view_of(component))),
                              &rows,
                              reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(visit_row(rows, component, visit, context, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status migrate_exec(void *store, const char *sql, pawl_error *reterr)
{
    return pawl__duck_script(store, sql, reterr);
}

static pawl_status migrate_record(void *store,
                                  const struct pawl__schema_row *row,
                                  pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    return pawl__duck_query_text(store,
                                 pawl__store_duck_statements[STORE_DUCK_ADD_VERSION],
                                 DUCK_ARGS(pawl__duck_text(pawl_view_of(row->component)),
                                           pawl__duck_text(pawl_view_of(row->version)),
                                           pawl__duck_i64(row->migration),
                                           pawl__duck_text(pawl_view_of(row->name)),
                                           pawl__duck_text(pawl_view_of(row->applied_at))),
                                 &rows,
                                 reterr);
}

DEFINE_MIGRATE_METHODS(struct pawl__duck_conn,
                       pawl__duck_commit,
                       pawl__duck_rollback,
                       db->watch.clock)

const struct pawl__migrate_ops pawl__duck_migrate_ops = {
    .table_sql = pawl__store_duck_version_table,
    .begin = migrate_begin,
    .has_table = has_table,
    .each = migrate_each,
    .exec = migrate_exec,
    .record = migrate_record,
    .commit = migrate_commit,
    .rollback = migrate_rollback,
    .clock = migrate_clock,
};
