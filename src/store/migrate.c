#include "store/migrate.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"

enum { VERSION_SIZE = 40 }; /* of a version that is shown to people; a longer one is cut */

/* What the rows of a store told so far. */
struct recorded {
    const struct pawl__schema *schema;
    size_t count; /* rows seen; they are numbered 1 .. count */
    char version[VERSION_SIZE];
};

const char *pawl__schema_version(const struct pawl__schema *schema)
{
    return schema->count == 0 ? "none" : schema->migrations[schema->count - 1].version;
}

/* A row that we know must be the one we would have written. */
static pawl_status check_row(void *context, const struct pawl__schema_row *row, pawl_error *reterr)
{
    struct recorded *seen = context;
    const struct pawl__schema *schema = seen->schema;

    if (row->migration < 1 || (size_t)row->migration != seen->count + 1) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "schema_version records migration %d of '%s' where %zu was expected",
                          row->migration,
                          schema->component,
                          seen->count + 1);
    }
    if (seen->count < schema->count
        && strcmp(row->name, schema->migrations[seen->count].name) != 0) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "migration %d of '%s' is '%s' in this store and '%s' in this program: it "
                          "was made by another program; nothing was changed",
                          row->migration,
                          schema->component,
                          row->name,
                          schema->migrations[seen->count].name);
    }
    seen->count++;
    snprintf(seen->version, sizeof(seen->version), "%s", row->version);
    return PAWL_OK;
}

pawl_status pawl__migrate_pending(const struct pawl__migrate_ops *ops,
                                  void *store,
                                  const struct pawl__schema *schema,
                                  size_t *ret_pending,
                                  pawl_error *reterr)
{
    struct recorded seen = { .schema = schema };
    bool has = false;

    TRY(ops->has_table(store, &has, reterr));
    if (has) {
        TRY(ops->each(store, schema->component, check_row, &seen, reterr));
    }
    if (seen.count > schema->count) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the schema of '%s' is version %s (migration %zu), this program knows "
                          "version %s (migration %zu): use a newer pawl; nothing was changed",
                          schema->component,
                          seen.version,
                          seen.count,
                          pawl__schema_version(schema),
                          schema->count);
    }
    *ret_pending = schema->count - seen.count;
    return PAWL_OK;
}

static pawl_status apply_one(const struct pawl__migrate_ops *ops,
                             void *store,
                             const char *component,
                             const struct pawl__migration *migration,
                             pawl_error *reterr)
{
    char applied_at[PAWL__TIME_SIZE];

    FAILPOINT("migrate.apply.before", reterr);
    pawl_status status = ops->exec(store, migration->sql, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(
            reterr, status, "migration %d '%s'", migration->number, migration->name);
    }
    pawl__time_store(pawl__wall_us(ops->clock(store)), applied_at);
    return ops->record(store,
                       &(struct pawl__schema_row){
                           .component = component,
                           .version = migration->version,
                           .migration = migration->number,
                           .name = migration->name,
                           .applied_at = applied_at,
                       },
                       reterr);
}

/* Everything between begin and commit. What is pending is read again: another process may have been
 * quicker while we waited for it. */
static pawl_status apply_pending(const struct pawl__migrate_ops *ops,
                                 void *store,
                                 const struct pawl__schema *schema,
                                 pawl_error *reterr)
{
    size_t pending = 0;

    TRY(pawl__migrate_pending(ops, store, schema, &pending, reterr));
    if (pending > 0) {
        TRY(ops->exec(store, ops->table_sql, reterr));
    }
    for (size_t i = schema->count - pending; i < schema->count; i++) {
        REQUIRE((size_t)schema->migrations[i].number == i + 1);
        TRY(apply_one(ops, store, schema->component, &schema->migrations[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status commit(const struct pawl__migrate_ops *ops, void *store, pawl_error *reterr)
{
    FAILPOINT("migrate.commit.before", reterr);
    TRY(ops->commit(store, reterr));
    FAILPOINT("migrate.commit.after", reterr);
    return PAWL_OK;
}

pawl_status pawl__migrate(const struct pawl__migrate_ops *ops,
                          void *store,
                          const struct pawl__schema *schema,
                          pawl_error *reterr)
{
    size_t pending = 0;
    /* Without a lock first: opening a store that is up to date must not wait for its writers. */
    pawl_status status = pawl__migrate_pending(ops, store, schema, &pending, reterr);

    if (status != PAWL_OK || pending == 0) {
        return status;
    }
    status = ops->begin(store, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "migrate '%s'", schema->component);
    }
    status = apply_pending(ops, store, schema, reterr);
    if (status == PAWL_OK) {
        status = commit(ops, store, reterr);
    }
    if (status != PAWL_OK) {
        ops->rollback(store);
        return pawl__fail_context(reterr, status, "migrate '%s'", schema->component);
    }
    return PAWL_OK;
}
