/* The migration runner (store/migrate.h) on PostgreSQL. The schema is the connection's; it is
 * created when it is not there. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "store/migrate.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

/* "pawl" and a number that nobody else will think of. The lock is per database: migrations of two
 * schemas in one database wait for each other, which costs nobody anything. */
#define MIGRATE_LOCK INT64_C(0x7061776c00000001)

static pawl_status take_lock(struct pawl__pg *pg, pawl_error *reterr)
{
    pawl_status status = pawl__pg_query(pg,
                                        &pawl__store_pg_statements[STORE_PG_MIGRATE_LOCK],
                                        PG_ARGS(pawl__pg_i64(MIGRATE_LOCK)),
                                        NULL,
                                        reterr);

    return status == PAWL_BUSY
               ? pawl__fail_context(reterr, status, "another process is migrating this database")
               : status;
}

static pawl_status has_schema(struct pawl__pg *pg, bool *ret_has, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_query(pg,
                       &pawl__store_pg_statements[STORE_PG_HAS_SCHEMA],
                       PG_ARGS(pawl__pg_text(pawl_view_of(pg->namespace))),
                       &rows,
                       reterr));
    *ret_has = rows.count == 1;
    return PAWL_OK;
}

static pawl_status create_schema(struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(512);
    char *quoted = PQescapeIdentifier(pg->conn, pg->namespace, strlen(pg->namespace));

    if (quoted == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "schema '%s' is no name", pg->namespace);
    }
    pawl__buf_add_format(&sql, "CREATE SCHEMA %s", quoted); /* no parameter can be a name */
    PQfreemem(quoted);
    TRY(pawl__buf_check(&sql, "CREATE SCHEMA", reterr));
    pawl_status status = pawl__pg_simple(pg, sql.data, reterr);
    return status == PAWL_OK ? PAWL_OK
                             : pawl__fail_context(reterr, status, "schema '%s'", pg->namespace);
}

static pawl_status migrate_begin(void *store, pawl_error *reterr)
{
    struct pawl__pg *pg = store;
    bool has = false;

    TRY(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, reterr));
    pawl_status status = take_lock(pg, reterr);
    status = status != PAWL_OK ? status : has_schema(pg, &has, reterr);
    if (status == PAWL_OK && !has) {
        status = create_schema(pg, reterr);
    }
    if (status != PAWL_OK) {
        pawl__pg_rollback(pg);
    }
    return status;
}

static pawl_status has_table(void *store, bool *ret_has, pawl_error *reterr)
{
    struct pawl__pg *pg = store;
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_ready(pg, reterr));
    TRY(pawl__pg_query(pg,
                       &pawl__store_pg_statements[STORE_PG_HAS_VERSIONS],
                       PG_ARGS(pawl__pg_text(pawl_view_of(pg->namespace))),
                       &rows,
                       reterr));
    *ret_has = rows.count == 1;
    return *ret_has && !pawl__pg_get_bool(&rows, 0, 0)
               ? pawl__fail(reterr,
                            PAWL_DENIED,
                            "permission denied: role '%s' has no USAGE on schema '%s'",
                            PQuser(pg->conn),
                            pg->namespace)
               : PAWL_OK;
}

static pawl_status visit_row(const struct pawl__pg_rows *rows,
                             size_t row,
                             pawl__schema_visit *visit,
                             void *context,
                             pawl_error *reterr)
{
    char *component = pawl__view_dup(pawl__pg_get_text(rows, row, 0));
    char *version = pawl__view_dup(pawl__pg_get_text(rows, row, 1));
    char *name = pawl__view_dup(pawl__pg_get_text(rows, row, 3));
    bool copied = component != NULL && version != NULL && name != NULL;
    pawl_status status =
        !copied ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a row of schema_version")
                : visit(context,
                        &(struct pawl__schema_row){
                            .component = component,
                            .version = version,
                            .migration = (int)pawl__pg_get_i64(rows, row, 2),
                            .name = name,
                        },
                        reterr);

    free(component);
    free(version);
    free(name);
    return status;
}

static pawl_status migrate_each(void *store,
                                const char *component,
                                pawl__schema_visit *visit,
                                void *context,
                                pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_query(store,
                       &pawl__store_pg_statements[STORE_PG_VERSIONS],
                       PG_ARGS(pawl__pg_text(pawl_view_of(component))),
                       &rows,
                       reterr));
    for (size_t i = 0; i < rows.count; i++) {
        TRY(visit_row(&rows, i, visit, context, reterr));
    }
    return PAWL_OK;
}

static pawl_status migrate_exec(void *store, const char *sql, pawl_error *reterr)
{
    return pawl__pg_script(store, sql, reterr);
}

static pawl_status migrate_record(void *store,
                                  const struct pawl__schema_row *row,
                                  pawl_error *reterr)
{
    return pawl__pg_query(store,
                          &pawl__store_pg_statements[STORE_PG_ADD_VERSION],
                          PG_ARGS(pawl__pg_text(pawl_view_of(row->component)),
                                  pawl__pg_text(pawl_view_of(row->version)),
                                  pawl__pg_i64(row->migration),
                                  pawl__pg_text(pawl_view_of(row->name)),
                                  pawl__pg_text(pawl_view_of(row->applied_at))),
                          NULL,
                          reterr);
}

DEFINE_MIGRATE_METHODS(struct pawl__pg, pawl__pg_commit, pawl__pg_rollback, options.clock)

const struct pawl__migrate_ops pawl__pg_migrate_ops = {
    .table_sql = pawl__store_pg_version_table,
    .begin = migrate_begin,
    .has_table = has_table,
    .each = migrate_each,
    .exec = migrate_exec,
    .record = migrate_record,
    .commit = migrate_commit,
    .rollback = migrate_rollback,
    .clock = migrate_clock,
};
