/* How the migration runner works on SQLite. */
#include "store/sqlite/internal.h"

#include <limits.h>

#include "base/core/error.h"
#include "store/sqlite/statements.h"

static pawl_status schema_begin(void *store, pawl_error *reterr)
{
    return pawl__sqlite_begin(store, PAWL__SQLITE_IMMEDIATE, reterr);
}

static pawl_status has_table(void *db, bool *ret_has, pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };

    TRY(pawl__sqlite_prepare_once(
        db, pawl__store_sql_statements[STORE_SQL_HAS_VERSIONS], &stmt, reterr));
    return pawl__sqlite_next(&stmt, ret_has, reterr);
}

static const char *column_text(struct pawl__sqlite_stmt *stmt, int column)
{
    pawl_view text = pawl__sqlite_text(stmt, column);

    return text.data == NULL ? "" : text.data; /* SQLite ends it with a NUL */
}

pawl_status pawl__sqlite_refuse_unrecorded(struct pawl__sqlite *db,
                                           const struct pawl__schema *schema,
                                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    bool row = false;

    TRY(has_table(db, &row, reterr));
    if (row) {
        TRY(pawl__sqlite_prepare_once(
            db, pawl__store_sql_statements[STORE_SQL_ANY_COMPONENT], &stmt, reterr));
        TRY(pawl__sqlite_next(&stmt, &row, reterr));
    }
    return row ? pawl__fail_advised(reterr,
                                    PAWL_CORRUPT,
                                    "it has tables, but schema_version records those of '%s' and "
                                    "none of '%s': restore it from a copy",
                                    column_text(&stmt, 0),
                                    schema->component)
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "it has tables, but the record of them, schema_version, is empty or gone: "
                   "restore it from a copy");
}

static pawl_status visit_row(struct pawl__sqlite_stmt *stmt,
                             const char *component,
                             pawl__schema_visit *visit,
                             void *context,
                             pawl_error *reterr)
{
    int64_t migration = pawl__sqlite_i64(stmt, 1);

    return visit(context,
                 &(struct pawl__schema_row){
                     .component = component,
                     .version = column_text(stmt, 0),
                     .migration = (int)MAX(0, MIN(migration, INT_MAX)),
                     .name = column_text(stmt, 2),
                 },
                 reterr);
}

static pawl_status schema_each(void *store,
                               const char *component,
                               pawl__schema_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    bool more = false;

    TRY(pawl__sqlite_prepare_once(
        store, pawl__store_sql_statements[STORE_SQL_VERSIONS], &stmt, reterr));
    pawl__sqlite_bind_text(&stmt, 1, pawl_view_of(component));
    TRY(pawl__sqlite_next(&stmt, &more, reterr));
    while (more) {
        TRY(visit_row(&stmt, component, visit, context, reterr));
        TRY(pawl__sqlite_next(&stmt, &more, reterr));
    }
    return PAWL_OK;
}

static pawl_status schema_exec(void *store, const char *sql, pawl_error *reterr)
{
    struct pawl__sqlite *db = store;

    TRY(pawl__sqlite_exec(db, sql, reterr));
    if (sqlite3_get_autocommit(db->native)) {
        return pawl__fail(reterr, PAWL_FAILED, "the script ended the transaction it ran in");
    }
    return PAWL_OK;
}

static pawl_status schema_record(void *store,
                                 const struct pawl__schema_row *row,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };

    TRY(pawl__sqlite_prepare_once(
        store, pawl__store_sql_statements[STORE_SQL_ADD_VERSION], &stmt, reterr));
    pawl__sqlite_bind_text(&stmt, 1, pawl_view_of(row->component));
    pawl__sqlite_bind_text(&stmt, 2, pawl_view_of(row->version));
    pawl__sqlite_bind_i64(&stmt, 3, row->migration);
    pawl__sqlite_bind_text(&stmt, 4, pawl_view_of(row->name));
    pawl__sqlite_bind_text(&stmt, 5, pawl_view_of(row->applied_at));
    return pawl__sqlite_run(&stmt, reterr);
}

DEFINE_MIGRATE_METHODS(struct pawl__sqlite, pawl__sqlite_commit, pawl__sqlite_rollback, clock)

const struct pawl__migrate_ops pawl__sqlite_migrate_ops = {
    .table_sql = pawl__store_sql_version_table,
    .begin = schema_begin,
    .has_table = has_table,
    .each = schema_each,
    .exec = schema_exec,
    .record = schema_record,
    .commit = migrate_commit,
    .rollback = migrate_rollback,
    .clock = migrate_clock,
};
