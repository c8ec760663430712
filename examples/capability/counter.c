#include "counter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "counter_schemas.h"
#include "statements.h"

struct addition {
    struct pawl__commit_item item;
    struct change *change;
};

/* Runs a statement whose first value is the name, or the id where there is no name. */
static pawl_status run(struct pawl__sqlite_stmt *row, struct change *change, pawl_error *reterr)
{
    bool any = false;

    pawl__sqlite_bind_i64(row, 1, (int64_t)change->id);
    if (change->name[0] != '\0') {
        pawl__sqlite_bind_text(row, 1, pawl_view_of(change->name));
    }
    TRY(pawl__sqlite_next(row, &any, reterr));
    TRY(any ? PAWL_OK : pawl__fail(reterr, PAWL_NOT_FOUND, "no such counter"));
    change->id = (uint64_t)pawl__sqlite_i64(row, 0);
    (void)snprintf(change->name, sizeof(change->name), "%s", pawl__sqlite_text(row, 1).data);
    change->value = pawl__sqlite_i64(row, 2);
    return pawl__sqlite_next(row, &any, reterr);
}

/* On the committer's thread. */
static pawl_status commit(void *context,
                          struct pawl__commit_item *const *items,
                          size_t count,
                          pawl_error *reterr)
{
    struct pawl__sqlite *db = ((struct counter *)context)->writer;
    pawl_status status = pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, reterr);

    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        struct change *change = ((const struct addition *)items[i])->change;
        AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt row = pawl__sqlite_use(db, COUNTER_ADD);

        pawl__sqlite_bind_i64(&row, 2, change->value);
        status = run(&row, change, reterr);
    }
    status = status == PAWL_OK ? pawl__sqlite_commit(db, reterr) : status;
    pawl__sqlite_rollback(db); /* nothing after a commit */
    return status;
}

pawl_status counter_add(struct counter *counter, struct change *change, pawl_error *reterr)
{
    struct addition addition = { .item.bytes = sizeof(addition), .change = change };

    pawl__calls_enter(&counter->engine.calls);
    pawl_status status = pawl__engine_submit(&counter->engine, &addition.item, reterr);
    pawl__calls_leave(&counter->engine.calls);
    return status;
}

pawl_status counter_read(struct counter *counter, struct change *change, pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    size_t statement = change->name[0] != '\0' ? COUNTER_NEWEST : COUNTER_AFTER;

    TRY(pawl__sqlite_ask(&counter->readers, statement, &asked, reterr));
    return run(&asked.stmt, change, reterr);
}

static pawl_status fill(struct counter *counter, const char *dir, pawl_error *reterr)
{
    struct pawl__commit_options commits = { .name = "counter", .commit = commit };
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    commits.context = counter;
    commits.limits = (struct pawl__commit_limits)PAWL__COMMIT_LIMITS_DEFAULT;
    options.application_id = 0x636e7472; /* "cntr" */
    options.schema = &pawl__schema_sqlite_counter;
    options.statements = pawl__counter_statements;
    options.statement_count = COUNTER_COUNT;
    options.interrupted = &counter->engine.interrupted;
    (void)snprintf(counter->path, sizeof(counter->path), "%s/counter.sqlite", dir);
    pawl__sqlite_pool_init(&counter->readers, &options, PAWL__SQLITE_MUST_EXIST);
    counter->readers.path = counter->path;
    pawl__engine_watch(&counter->engine, NULL, NULL);
    TRY(pawl__sqlite_open(counter->path, &options, &counter->writer, reterr));
    return pawl__engine_start(&counter->engine, &commits, reterr);
}

pawl_status counter_open(const char *dir, struct counter **ret_counter, pawl_error *reterr)
{
    struct counter *counter = calloc(1, sizeof(*counter));

    TRY(pawl__check_memory(counter, "counters", reterr));
    pawl__engine_init(&counter->engine, "the counters", NULL);
    pawl_status status = fill(counter, dir, reterr);
    if (status != PAWL_OK) {
        (void)!counter_close(counter, NULL);
        return status;
    }
    *ret_counter = counter;
    return PAWL_OK;
}

pawl_status counter_close(struct counter *counter, pawl_error *reterr)
{
    TRY(pawl__engine_close(&counter->engine, 0, NULL, NULL, reterr));
    pawl__engine_done(&counter->engine);
    pawl__sqlite_close(counter->writer);
    pawl__sqlite_pool_done(&counter->readers);
    free(counter);
    return PAWL_OK;
}
