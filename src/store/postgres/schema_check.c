/* Whether a database still has the schema that its migrations made.
 *
 * A trigger or rule of somebody else's can drop or change what is written while every statement
 * reports success, row security hides rows, without its unique index a table takes duplicates for new,
 * and a crash of the server empties an UNLOGGED one. An index is compared by its columns, a function by
 * its body, and a trigger by what pg_get_triggerdef says: when it fires, WHEN, its function and arguments.
 * Parentheses are not compared, because the server writes its own. */
#include <stdio.h>

#include "base/core/error.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

static size_t count_of(const struct pawl__schema *schema, enum pawl__schema_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < schema->object_count; i++) {
        count += schema->objects[i].kind == kind ? 1 : 0;
    }
    return count;
}

static void add_names(struct pawl__pg_array *array,
                      const struct pawl__schema *schema,
                      enum pawl__schema_kind kind)
{
    pawl__pg_array_start(array, 'T', count_of(schema, kind));
    for (size_t i = 0; i < schema->object_count; i++) {
        const struct pawl__schema_object *object = &schema->objects[i];
        char name[5 * (PAWL__PG_NAME_BYTES_MAX + 1)]; /* an index has three columns at most */

        if (object->kind != kind) {
            continue;
        }
        snprintf(name,
                 sizeof(name),
                 "%s%s%s%s%s",
                 object->table,
                 object->table[0] == '\0' || object->name[0] == '\0' ? "" : ".",
                 object->name,
                 object->detail[0] == '\0' ? "" : ".",
                 object->detail);
        pawl__pg_array_add_view(array, pawl_view_of(name));
    }
}

static pawl_status refuse(const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    pawl_view what = pawl__pg_get_text(rows, 0, 0);
    pawl_view table = pawl__pg_get_text(rows, 0, 1);
    pawl_view name = pawl__pg_get_text(rows, 0, 2);

    if (pawl__view_is(what, "no table")) {
        return pawl__fail(reterr, PAWL_CORRUPT, "table '%.*s' does not exist", VIEW_ARGS(name));
    }
    if (pawl__view_is(what, "no log")) {
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "table '%.*s' is UNLOGGED: a crash of the server empties it; run ALTER TABLE "
            "\"%.*s\" SET LOGGED",
            VIEW_ARGS(table),
            VIEW_ARGS(table));
    }
    if (pawl__view_is(what, "no index") || pawl__view_is(what, "no trigger")
        || pawl__view_is(what, "no function")) {
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "there is %.*s '%.*s', or it was changed; create it as pawl did, or restore "
            "the database",
            VIEW_ARGS(what),
            VIEW_ARGS(name));
    }
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "%.*s that is not pawl's, '%.*s' on '%.*s': it can drop, change or hide what is "
        "written; to continue, remove it",
        VIEW_ARGS(what),
        VIEW_ARGS(name),
        VIEW_ARGS(table));
}

pawl_status pawl__pg_check_schema(struct pawl__pg *pg,
                                  const struct pawl__schema *schema,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    AUTO(pawl__pg_array_done) struct pawl__pg_array tables = PG_ARRAY_INIT;
    AUTO(pawl__pg_array_done) struct pawl__pg_array triggers = PG_ARRAY_INIT;
    AUTO(pawl__pg_array_done) struct pawl__pg_array uniques = PG_ARRAY_INIT;
    AUTO(pawl__pg_array_done) struct pawl__pg_array functions = PG_ARRAY_INIT;

    add_names(&tables, schema, PAWL__SCHEMA_TABLE);
    add_names(&triggers, schema, PAWL__SCHEMA_TRIGGER);
    add_names(&uniques, schema, PAWL__SCHEMA_UNIQUE);
    add_names(&functions, schema, PAWL__SCHEMA_FUNCTION);
    TRY(pawl__pg_ready(pg, reterr));
    TRY(pawl__pg_query(pg,
                       &pawl__store_pg_statements[STORE_PG_FIND_ODD],
                       PG_ARGS(pawl__pg_text(pawl_view_of(pg->namespace)),
                               pawl__pg_array_value(&tables),
                               pawl__pg_array_value(&triggers),
                               pawl__pg_array_value(&uniques),
                               pawl__pg_array_value(&functions)),
                       &rows,
                       reterr));
    return rows.count == 0 ? PAWL_OK : refuse(&rows, reterr);
}

/* --- whether the migrations are recorded --- */

static pawl_status find_any_table(struct pawl__pg *pg,
                                  const struct pawl__schema *schema,
                                  struct pawl__pg_rows *ret_rows,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_array_done) struct pawl__pg_array tables = PG_ARRAY_INIT;

    add_names(&tables, schema, PAWL__SCHEMA_TABLE);
    TRY(pawl__pg_ready(pg, reterr));
    return pawl__pg_query(
        pg,
        &pawl__store_pg_statements[STORE_PG_FIND_TABLE],
        PG_ARGS(pawl__pg_text(pawl_view_of(pg->namespace)), pawl__pg_array_value(&tables)),
        ret_rows,
        reterr);
}

pawl_status pawl__pg_pending(struct pawl__pg *pg,
                             const struct pawl__schema *schema,
                             size_t *ret_pending,
                             pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__migrate_pending(&pawl__pg_migrate_ops, pg, schema, ret_pending, reterr));
    if (*ret_pending < schema->count) {
        return PAWL_OK;
    }
    TRY(find_any_table(pg, schema, &rows, reterr));
    if (rows.count == 0) {
        return PAWL_OK;
    }
    /* Another process may have made both meanwhile, in one transaction. */
    TRY(pawl__migrate_pending(&pawl__pg_migrate_ops, pg, schema, ret_pending, reterr));
    return *ret_pending < schema->count
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "schema '%s' has the table '%.*s', but schema_version has no row of '%s': the "
                   "rows were removed, or the table is not pawl's; restore the database, or use "
                   "another schema",
                   pg->namespace,
                   VIEW_ARGS(pawl__pg_get_text(&rows, 0, 0)),
                   schema->component);
}
