/* Work in a PostgreSQL database, open on any number of machines.
 *
 * One connection writes and belongs to the committer. What it loads and picks is locked, row by row,
 * so nodes that work on different items do not wait for each other. Readers take connections from a
 * small pool and hold them for one question at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "store/location.h"
#include "store/schemas.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum {
    CONNECTIONS_DEFAULT = 8,
    CONNECTIONS_OF_TWO_WRITERS = 4, /* two of them, the watcher's and one for readers */
    STATEMENT_MS_MAX = 300000,      /* counting a long list takes a while */
    /* A node that stopped (a suspended machine) holds rows up for no longer than this; it finds its
     * transaction gone and its callers try again. */
    IDLE_MS_MAX = 15000,
};
/* A group costs a round trip, a sync of the server's log and the start of a statement, however small
 * it is: some wake-ups of this machine's threads are little beside it. */
#define GATHER_NS NS_PER_MS
#define LEASER_AGAIN_NS (10 * NS_PER_S) /* between two tries to get a second connection */
#define DATA_BYTES_SPARE 64U            /* what an array needs beside its one element */

/* One plan, whatever the statistics say: a queue's tables are empty when they are analyzed and full a
 * minute later, and a plan that reads or sorts them would be kept. */
#define WRITER_SETTINGS                                                                    \
    "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off;"   \
    " SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;" \
    " SET enable_sort = off; SET enable_incremental_sort = off"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

/* --- transactions --- */

pawl_status pawl__work_pg_take_writer(struct work_postgres *backend, pawl_error *reterr)
{
    if (backend->writer != NULL) {
        return PAWL_OK;
    }
    int64_t deadline_ns =
        pawl__monotonic_ns(pawl__clock_real()) + backend->options.lock_ms_max * NS_PER_MS;
    return pawl__pg_pool_take(backend->pool, deadline_ns, &backend->writer, reterr);
}

void pawl__work_pg_release_writer(struct work_postgres *backend)
{
    if (backend->connections_max == 1) {
        pawl__pg_pool_give(backend->pool, STEAL(backend->writer));
    }
}

struct pawl__pg *pawl__work_pg_leaser(struct work_postgres *backend)
{
    struct pawl__pg_options writing = backend->options;
    int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());

    if (backend->leaser != NULL || backend->connections_max < CONNECTIONS_OF_TWO_WRITERS
        || now_ns < backend->leaser_again_ns) {
        return backend->leaser;
    }
    writing.settings = WRITER_SETTINGS;
    writing.application_name = "pawl work, leasing";
    if (pawl__pg_open(backend->url, &writing, &backend->leaser, NULL) != PAWL_OK) {
        backend->leaser = NULL; /* one after the other, then */
        backend->leaser_again_ns = now_ns + LEASER_AGAIN_NS;
    }
    return backend->leaser;
}

static void pg_wish(struct work_backend *base, const struct work_wish *wish)
{
    of(base)->brought.wish = wish;
}

static pawl_status begin_once(struct work_postgres *backend, pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_take_writer(backend, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    backend->brought =
        (struct work_pg_brought){ .wish = backend->brought.wish, .next_due_us = INT64_MAX };
    pawl__arena_clear(&backend->arena);
    backend->put_count = 0;
    backend->put_new = 0;
    backend->serial++;
    backend->notify = false;
    status = pawl__work_pg_trip_start(&trip, backend, reterr);
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_wish(&trip, reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

static void pg_rollback(struct work_backend *base)
{
    struct work_postgres *backend = of(base);

    backend->put_count = 0;
    backend->put_new = 0;
    backend->brought.wish = NULL;
    backend->front.known = false; /* what was picked is pending again */
    pawl__pg_rollback(backend->writer);
    pawl__work_pg_release_writer(backend);
}

static pawl_status pg_begin(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr)
{
    struct work_postgres *backend = of(base);
    const struct work_wish *wish = backend->brought.wish;
    pawl_status status = begin_once(backend, reterr);

    if (status == PAWL_UNAVAILABLE) {
        /* The link died with the first words on it: nothing was written, so begin on a new one. */
        pg_rollback(base);
        backend->brought.wish = wish;
        status = begin_once(backend, reterr);
    }
    *ret_now = backend->now;
    return status;
}

/* Every trip that locks brings the time along. */
static pawl_status pg_now(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr)
{
    (void)reterr;
    *ret_now = of(base)->now;
    return PAWL_OK;
}

/* What was put, the notification, the COMMIT, and behind it the look at the tasks: one trip. */
static pawl_status commit_trip(struct work_postgres *backend,
                               struct work_pg_look *look,
                               pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    if (status == PAWL_OK && backend->notify) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_NOTIFY,
                                        PG_ARGS(pawl__pg_text(pawl_view_of(backend->sender))),
                                        NULL,
                                        NULL,
                                        reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__pg_pipeline_commit(backend->writer, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__work_pg_trip_end(&trip, status, reterr);
    }
    if (backend->touched_count > 0) {
        struct pawl__pg_value ids =
            pawl__work_pg_ids(backend, 0, backend->touched, backend->touched_count);
        (void)!pawl__work_pg_trip_add(
            &trip, WORK_PG_TASK_FACTS, PG_ARGS(ids), pawl__work_pg_saw_tasks, look, NULL);
    }
    return pawl__work_pg_trip_end(&trip, PAWL_OK, reterr);
}

static pawl_status pg_commit(struct work_backend *base, pawl_error *reterr)
{
    struct work_postgres *backend = of(base);
    struct work_pg_look look = { .backend = backend };
    pawl_status status = commit_trip(backend, &look, reterr);

    backend->brought.wish = NULL;
    if (status != PAWL_OK) {
        return status;
    }
    if (look.seen && !look.changes) {
        pawl__work_pg_forget_touched(backend);
    } else if (backend->touched_count > 0) {
        pawl__work_pg_settle_touched(backend);
    }
    pawl__work_pg_release_writer(backend);
    return PAWL_OK;
}

static pawl_status pg_read_now(struct work_backend *base,
                               struct work_now *ret_now,
                               pawl_error *reterr)
{
    AUTO(pawl__work_pg_give_back) struct work_pg_borrowed borrowed = { NULL, NULL };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_status status = pawl__work_pg_borrow(base, &borrowed, reterr);

    if (status == PAWL_OK) {
        status = pawl__pg_exec(
            borrowed.pg, WORK_PG_CLOCK, PG_ARGS(pawl__work_pg_given_time(of(base))), &rows, reterr);
    }
    if (status == PAWL_OK) {
        *ret_now = pawl__work_pg_now(pawl__pg_get_time(&rows, 0, 0));
    }
    return status;
}

static void pg_close(struct work_backend *base)
{
    struct work_postgres *backend = of(base);

    pawl__pg_close(backend->watcher);
    if (backend->stop_ready) {
        pawl__cancel_done(&backend->stop);
    }
    pawl__pg_close(backend->writer);
    pawl__pg_close(backend->leaser);
    pawl__pg_pool_close(backend->pool);
    for (size_t i = 0; i < WORK_PG_ARRAYS; i++) {
        pawl__pg_array_done(&backend->arrays[i]);
    }
    for (size_t i = 0; i < WORK_PG_ASKED; i++) {
        pawl__pg_array_done(&backend->asked[i]);
    }
    pawl__arena_done(&backend->arena);
    pawl__arena_done(&backend->touched_arena);
    free(backend->touched);
    free(backend->puts);
    free(backend->url);
    free(backend);
}

static const struct work_store_ops pg_store = {
    .name = "postgres",
    .gather_ns = GATHER_NS,
    .close = pg_close,
    .wish = pg_wish,
    .quick = pawl__work_pg_quick,
    .begin = pg_begin,
    .now = pg_now,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .read_now = pg_read_now,
    .watch = pawl__work_pg_watch,
};

/* --- open --- */

enum { SETUP_ENCODING };

static const struct pawl__pg_statement setup_statements[] = {
    [SETUP_ENCODING] = { "SELECT current_setting('server_encoding')", NULL, "t" },
};

/* In another encoding the server would refuse some texts and change others. */
static pawl_status check_encoding(struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_status status = pawl__pg_exec(pg, SETUP_ENCODING, PG_NO_ARGS, &rows, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    pawl_view encoding = pawl__pg_get_text(&rows, 0, 0);
    return pawl__view_is(encoding, "UTF8") ? PAWL_OK
                                           : pawl__fail(reterr,
                                                        PAWL_UNSUPPORTED,
                                                        "the database's encoding is '%.*s', work "
                                                        "needs UTF8",
                                                        VIEW_ARGS(encoding));
}

static pawl_status bring_schema(struct pawl__pg *pg,
                                const pawl_work_options *options,
                                pawl_error *reterr)
{
    const struct pawl__schema *schema = &pawl__schema_postgres_work;
    size_t pending = 0;

    pawl_status status = pawl__migrate_pending(&pawl__pg_migrate_ops, pg, schema, &pending, reterr);
    if (status != PAWL_OK || pending == 0) {
        return status;
    }
    if (pending == schema->count && options->must_exist) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "there is no work store in this database");
    }
    return pawl__migrate(&pawl__pg_migrate_ops, pg, schema, reterr);
}

/* A server that does not sync loses acknowledged work when its machine does; it is the
 * administrator's choice, but nobody shall make it without knowing. */
static void warn_of_promises(const struct pawl__pg_server *server)
{
    if (!server->fsync || !server->full_page_writes
        || strcmp(server->synchronous_commit, "off") == 0) {
        LOG_WARNING("this PostgreSQL server may lose acknowledged work in a power cut",
                    LOG_TEXT("server", server->location),
                    LOG_BOOLEAN("fsync", server->fsync),
                    LOG_BOOLEAN("full_page_writes", server->full_page_writes),
                    LOG_TEXT("synchronous_commit", server->synchronous_commit));
    }
}

static pawl_status set_up(struct work_postgres *backend,
                          const pawl_work_options *options,
                          pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    struct pawl__pg_options setup = backend->options;

    setup.statements = setup_statements;
    setup.statement_count = COUNT_OF(setup_statements);
    pawl_status status = pawl__pg_open(backend->url, &setup, &pg, reterr);
    if (status == PAWL_OK) {
        warn_of_promises(pawl__pg_server_of(pg));
        status = check_encoding(pg, reterr);
    }
    if (status == PAWL_OK) {
        status = bring_schema(pg, options, reterr);
    }
    return status == PAWL_OK ? pawl__pg_check_schema(pg, &pawl__schema_postgres_work, reterr)
                             : status;
}

static pawl_status connect_all(struct work_postgres *backend,
                               const pawl_work_options *options,
                               pawl_error *reterr)
{
    pawl_status status = pawl__cancel_init(&backend->stop, NULL, reterr);
    struct pawl__pg_options writing = backend->options;

    backend->stop_ready = status == PAWL_OK;
    if (status == PAWL_OK) {
        status = set_up(backend, options, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    writing.settings = WRITER_SETTINGS;
    if (backend->connections_max == 1) {
        return pawl__pg_pool_open(backend->url, &writing, 1, &backend->pool, reterr);
    }
    size_t writers = backend->connections_max >= CONNECTIONS_OF_TWO_WRITERS ? 2 : 1;
    status = pawl__pg_open(backend->url, &writing, &backend->writer, reterr);
    return status == PAWL_OK
               ? pawl__pg_pool_open(backend->url,
                                    &backend->options,
                                    MAX(backend->connections_max, (size_t)3) - 1 - writers,
                                    &backend->pool,
                                    reterr)
               : status;
}

static pawl_status check_options(const pawl_work_options *options, pawl_error *reterr)
{
    uint32_t limit = PAWL__PG_VALUE_BYTES_MAX - DATA_BYTES_SPARE;

    return options->data_bytes_max <= limit
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "data_bytes_max: is %u, on PostgreSQL the limit is %u",
                            options->data_bytes_max,
                            limit);
}

pawl_status pawl__work_postgres_open(const struct pawl__location *location,
                                     const struct work_setup *setup,
                                     struct work_backend **ret_backend,
                                     pawl_error *reterr)
{
    pawl_status status = check_options(setup->options, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    struct work_postgres *backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    backend->base.store = &pg_store;
    backend->base.items = &pawl__work_pg_items;
    backend->base.checkpoints = &pawl__work_pg_checkpoints;
    backend->base.keys = &pawl__work_pg_keys;
    backend->base.schedules = &pawl__work_pg_schedules;
    backend->base.care = &pawl__work_pg_care;
    backend->clock = setup->clock;
    backend->clock_zero_us = pawl__wall_us(setup->clock) - pawl__boot_ns(setup->clock) / NS_PER_US;
    backend->connections_max =
        location->connections == 0 ? CONNECTIONS_DEFAULT : location->connections;
    backend->options = (struct pawl__pg_options){
        .application_name = "pawl work",
        .statements = pawl__work_pg_statements,
        .statement_count = WORK_PG_COUNT,
        .statement_ms_max = STATEMENT_MS_MAX,
        .idle_ms_max = IDLE_MS_MAX,
        .interrupted = location->interrupted,
        .answer_ms_max = (int)MIN(setup->options->answer_ms_max, (uint32_t)INT32_MAX),
        /* 0 would be the wrapper's default, and the server's "for ever". */
        .lock_ms_max = (int)MIN(MAX(setup->options->busy_ms_max, 1U), (uint32_t)INT32_MAX),
    };
    for (size_t i = 0; i < WORK_PG_ARRAYS; i++) {
        backend->arrays[i] = (struct pawl__pg_array)PG_ARRAY_INIT;
    }
    for (size_t i = 0; i < WORK_PG_ASKED; i++) {
        backend->asked[i] = (struct pawl__pg_array)PG_ARRAY_INIT;
    }
    backend->url = strdup(location->path);
    status = backend->url == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a URL")
                                  : pawl__work_id((pawl_view){ NULL, 0 }, backend->sender, reterr);
    if (status == PAWL_OK) {
        status = connect_all(backend, setup->options, reterr);
    }
    if (status != PAWL_OK) {
        pg_close(&backend->base);
        return status;
    }
    *ret_backend = &backend->base;
    return PAWL_OK;
}
