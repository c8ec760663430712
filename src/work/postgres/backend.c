/* Work in a PostgreSQL database, open on any number of machines.
 *
 * One connection writes and belongs to the committer. What it loads and picks is locked, row by row,
 * so nodes that work on different items do not wait for each other. Readers take connections from a
 * small pool and hold them for one question at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/location.h"
#include "store/schemas.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum {
    CONNECTIONS_OF_TWO_WRITERS = 4, /* two of them, the watcher's and one for readers */
    STATEMENT_MS_MAX = 300000,      /* counting a long list takes a while */
    /* A node that stopped (a suspended machine) holds rows up for no longer than this; it finds its
     * transaction gone and its callers try again. */
    IDLE_MS_MAX = 15000,
};
/* A group costs a round trip, a sync of the server's log and the start of a statement, however small
 * it is: some wake-ups of this machine's threads are little beside it. Workers that wait for each answer
 * take 1.27 times as long to drain a queue without it (bench/work/README.md). */
#define GATHER_NS NS_PER_MS
#define SECOND_RETRY_NS (10 * NS_PER_S) /* between two tries to open the second connection */
#define DATA_BYTES_SPARE 64U            /* what an array needs beside its one element */

/* One plan, whatever the statistics say: a queue's tables are empty when they are analyzed and full a
 * minute later, and the server would still use a plan that reads or sorts them. */
#define WRITER_SETTINGS                                                                    \
    "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off;"   \
    " SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;" \
    " SET enable_sort = off; SET enable_incremental_sort = off"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

/* --- transactions --- */

struct pawl__pg *pawl__work_pg_second(struct work_postgres *backend)
{
    struct pawl__pg_options writing = backend->pg.options;
    int64_t now_ns = pawl__pg_store_now_ns(&backend->pg);

    if (backend->second != NULL || backend->pg.connections_max < CONNECTIONS_OF_TWO_WRITERS
        || now_ns < backend->second_retry_ns) {
        return backend->second;
    }
    writing.settings = WRITER_SETTINGS;
    writing.application_name = "pawl work, leasing";
    if (pawl__pg_open(backend->pg.url, &writing, &backend->second, NULL) != PAWL_OK) {
        backend->second = NULL; /* the writer does both, then */
        backend->second_retry_ns = now_ns + SECOND_RETRY_NS;
    }
    return backend->second;
}

static void pg_plan(struct work_backend *base, const struct work_prefetch_plan *plan)
{
    of(base)->prefetched.plan = plan;
}

static pawl_status begin_once(struct work_postgres *backend, pawl_error *reterr)
{
    struct work_pg_trip trip;

    TRY(pawl__pg_store_borrow_writer(&backend->pg, reterr));
    backend->prefetched =
        (struct work_pg_prefetched){ .plan = backend->prefetched.plan, .next_due_us = INT64_MAX };
    pawl__arena_clear(&backend->arena);
    backend->write_count = 0;
    backend->new_count = 0;
    backend->serial++;
    backend->notify = false;
    pawl__work_pg_trip_start(&trip, backend, reterr);
    pawl__work_pg_add_plan(&trip);
    return pawl__work_pg_trip_end(&trip);
}

static void pg_rollback(struct work_backend *base)
{
    struct work_postgres *backend = of(base);

    backend->write_count = 0;
    backend->new_count = 0;
    backend->prefetched.plan = NULL;
    backend->queue_head.known = false; /* what was picked is pending again */
    pawl__pg_rollback(backend->pg.writer);
    pawl__pg_store_release_writer(&backend->pg);
}

static pawl_status pg_begin(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr)
{
    struct work_postgres *backend = of(base);
    const struct work_prefetch_plan *plan = backend->prefetched.plan;
    pawl_status status = begin_once(backend, reterr);

    if (status == PAWL_UNAVAILABLE) {
        /* The link died with the first words on it: nothing was written, so begin on a new one. */
        pg_rollback(base);
        backend->prefetched.plan = plan;
        status = begin_once(backend, reterr);
    }
    *ret_now = backend->sql.now;
    return status;
}

/* Every trip that locks reads the time after it. */
static pawl_status pg_now(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr)
{
    (void)reterr;
    *ret_now = of(base)->sql.now;
    return PAWL_OK;
}

/* One trip: the rows to store, the notification, the COMMIT, and after it the check of the tasks. */
static pawl_status commit_trip(struct work_postgres *backend,
                               struct work_pg_task_check *check,
                               pawl_error *reterr)
{
    struct work_pg_trip trip;

    pawl__work_pg_trip_start(&trip, backend, reterr);
    if (backend->notify) {
        pawl__work_pg_trip_add(&trip,
                               WORK_PG_NOTIFY,
                               PG_ARGS(pawl__pg_text(pawl_view_of(WORK_CHANNEL)),
                                       pawl__pg_text(pawl_view_of(backend->sender))),
                               NULL,
                               NULL);
    }
    if (trip.status == PAWL_OK) {
        trip.status = pawl__pg_pipeline_commit(backend->pg.writer, reterr);
    }
    if (trip.status == PAWL_OK && backend->touched_count > 0) {
        trip.reterr = NULL; /* that a check fails is not the transaction's failure */
        pawl__work_pg_trip_add(
            &trip,
            WORK_PG_TASK_FACTS,
            PG_ARGS(pawl__work_pg_list(backend, 0, backend->touched, backend->touched_count)),
            pawl__work_pg_check_tasks,
            check);
        trip.reterr = reterr;
        trip.status = PAWL_OK;
    }
    return pawl__work_pg_trip_end(&trip);
}

static pawl_status pg_commit(struct work_backend *base, pawl_error *reterr)
{
    struct work_postgres *backend = of(base);
    struct work_pg_task_check check = { .answered = false };
    pawl_status status = commit_trip(backend, &check, reterr);

    backend->prefetched.plan = NULL;
    TRY(status);
    if (check.answered && !check.changes) {
        pawl__work_pg_forget_touched(backend);
    } else if (backend->touched_count > 0) {
        pawl__work_pg_settle_touched(backend);
    }
    pawl__pg_store_release_writer(&backend->pg);
    return PAWL_OK;
}

static pawl_status pg_check_schema(struct work_backend *base, pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__pg_store_borrow(&of(base)->pg, &borrowed, reterr));
    return pawl__pg_check_schema(borrowed.pg, &pawl__schema_postgres_work, reterr);
}

static pawl_status pg_read_now(struct work_backend *base,
                               struct work_now *ret_now,
                               pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__work_pg_borrow(base, &borrowed, reterr));
    TRY(pawl__pg_exec(
        borrowed.pg, WORK_PG_CLOCK, PG_ARGS(pawl__work_pg_given_time(of(base))), &rows, reterr));
    *ret_now = pawl__work_pg_now(pawl__pg_get_time(&rows, 0, 0));
    return PAWL_OK;
}

static pawl_status pg_watch(struct work_backend *base,
                            int64_t deadline_ns,
                            struct pawl__cancel *cancel,
                            pawl_error *reterr)
{
    return pawl__pg_store_watch(&of(base)->pg, deadline_ns, cancel, reterr);
}

static pawl_status pg_row_exists(struct work_backend *base,
                                 pawl_view select,
                                 bool *ret_exists,
                                 pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__work_pg_borrow(base, &borrowed, reterr));
    return pawl__pg_row_exists(borrowed.pg, select, WORK_ROW_EXISTS_MS_MAX, ret_exists, reterr);
}

static void pg_close(struct work_backend *base)
{
    struct work_postgres *backend = of(base);

    pawl__pg_close(backend->second);
    pawl__pg_store_done(&backend->pg);
    for (size_t i = 0; i < WORK_PG_ARRAYS; i++) {
        pawl__pg_array_done(&backend->arrays[i]);
    }
    for (size_t i = 0; i < WORK_PG_LISTS; i++) {
        pawl__pg_array_done(&backend->lists[i]);
    }
    pawl__arena_done(&backend->arena);
    pawl__arena_done(&backend->touched_arena);
    free(backend->touched);
    free(backend->writes);
    free(backend);
}

static const struct work_store_ops pg_store = {
    .name = "postgres",
    .gather_ns = GATHER_NS,
    .close = pg_close,
    .plan = pg_plan,
    .fast_path = pawl__work_pg_fast_path,
    .begin = pg_begin,
    .now = pg_now,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .check_schema = pg_check_schema,
    .read_now = pg_read_now,
    .watch = pg_watch,
    .row_exists = pg_row_exists,
};

/* --- open --- */

static pawl_status connect_all(struct work_postgres *backend,
                               const pawl_work_options *options,
                               pawl_error *reterr)
{
    const struct pawl__pg_setup setup = {
        .schema = &pawl__schema_postgres_work,
        .missing = "there is no work store in this database",
        .warning = "this PostgreSQL server may lose acknowledged work in a power cut",
        .needs_utf8 = "work",
        .must_exist = options->must_exist,
    };
    struct pawl__pg_options writing = backend->pg.options;
    size_t connections = backend->pg.connections_max;

    TRY(pawl__pg_store_set_up(&backend->pg, &setup, NULL, reterr));
    writing.settings = WRITER_SETTINGS;
    if (connections == 1) {
        backend->pg.options = writing;
        return pawl__pg_store_open_pool(&backend->pg, 1, reterr);
    }
    TRY(pawl__pg_open(backend->pg.url, &writing, &backend->pg.writer, reterr));
    backend->pg.writer_is_apart = true;
    size_t writers = connections >= CONNECTIONS_OF_TWO_WRITERS ? 2 : 1;
    return pawl__pg_store_open_pool(
        &backend->pg, MAX(connections, (size_t)3) - 1 - writers, reterr);
}

pawl_status pawl__work_postgres_open(const struct pawl__location *location,
                                     const void *given,
                                     void *ret_backend,
                                     pawl_error *reterr)
{
    const struct work_setup *setup = given;
    const pawl_work_options *options = setup->options;
    struct pawl__pg_options connections =
        pawl__pg_store_options(location, options->answer_ms_max, options->busy_ms_max);

    connections.application_name = "pawl work";
    connections.statements = pawl__work_pg_statements;
    connections.statement_count = WORK_PG_COUNT;
    connections.statement_ms_max = STATEMENT_MS_MAX;
    connections.idle_ms_max = IDLE_MS_MAX;
    TRY(pawl__pg_store_check_bytes(
        "data_bytes_max", options->data_bytes_max, DATA_BYTES_SPARE, reterr));
    struct work_postgres *backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    backend->sql = (struct work_sql_backend){
        .base = { .store = &pg_store, .items = &pawl__work_pg_items, WORK_SQL_SUBJECT_OPS },
        .ops = &pawl__work_pg_sql,
        .clock = setup->clock,
        .boot_id = setup->boot_id,
    };
    backend->clock_zero_us = pawl__wall_us(setup->clock) - pawl__boot_ns(setup->clock) / NS_PER_US;
    backend->pg.listener_name = "pawl work watch";
    backend->pg.channel = WORK_CHANNEL;
    backend->pg.own_payload = backend->sender;
    for (size_t i = 0; i < WORK_PG_ARRAYS; i++) {
        backend->arrays[i] = (struct pawl__pg_array)PG_ARRAY_INIT;
    }
    for (size_t i = 0; i < WORK_PG_LISTS; i++) {
        backend->lists[i] = (struct pawl__pg_array)PG_ARRAY_INIT;
    }
    pawl_status status = pawl__pg_store_init(&backend->pg, location, &connections, reterr);
    if (status == PAWL_OK) {
        status = pawl__work_id((pawl_view){ NULL, 0 }, backend->sender, reterr);
    }
    if (status == PAWL_OK) {
        status = connect_all(backend, options, reterr);
    }
    if (status != PAWL_OK) {
        pg_close(&backend->sql.base);
        return status;
    }
    *(struct work_backend **)ret_backend = &backend->sql.base;
    return PAWL_OK;
}
