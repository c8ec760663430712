/* A ledger in a PostgreSQL database, open on any number of machines.
 *
 * Writers take turns: a transaction begins by locking the one row of ledger_head and keeps it until
 * it has committed, which is also when its events become visible. So offsets are given, committed
 * and seen in one order, whatever the timing. The price is that commits of different processes do
 * not overlap; each of them carries a whole group.
 *
 * Readers take connections from a small pool and hold them for one question at a time. */
#include "ledger/postgres/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "ledger/core/chain.h"
#include "store/schemas.h"

enum {
    STATEMENT_MS_MAX = 300000, /* counting a long log takes a while */
    /* A writer that stopped (a suspended machine) holds the others up for no longer than this; it
     * finds its transaction gone and its caller appends again. */
    IDLE_MS_MAX = 15000,
    FIRST_PAGE_ROWS = 512,
    INSERT_EVENTS_MAX = 10000, /* in one statement, ... */
};
#define INSERT_BYTES_MAX ((size_t)4 << 20) /* ... unless they have more bytes than this */
#define ARRAY_BYTES_SPARE 64U              /* what an array needs beside its one element */

/* --- writing --- */

static pawl_status lock_head(struct postgres_backend *backend,
                             pawl_ledger_head *ret_head,
                             pawl_error *reterr)
{
    pawl_status status = pawl__pg_store_borrow_writer(&backend->pg, reterr);

    if (status == PAWL_OK) {
        status = pawl__pg_begin(backend->pg.writer, PAWL__PG_READ_COMMITTED, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__ledger_pg_head(backend->pg.writer, LEDGER_PG_HEAD_LOCK, ret_head, reterr);
    }
    return status == PAWL_BUSY ? pawl__fail_context(reterr, status, "another process is writing")
                               : status;
}

static void postgres_rollback(struct ledger_backend *base)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);

    pawl__pg_rollback(backend->pg.writer);
    pawl__pg_store_release_writer(&backend->pg);
}

static pawl_status postgres_begin(struct ledger_backend *base,
                                  pawl_ledger_head *ret_head,
                                  pawl_error *reterr)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);
    pawl_status status = lock_head(backend, ret_head, reterr);

    if (status == PAWL_UNAVAILABLE) {
        /* The link died with the first word on it: nothing was written, so begin on a new one. */
        postgres_rollback(base);
        status = lock_head(backend, ret_head, reterr);
    }
    return status;
}

static pawl_status postgres_lookup(struct ledger_backend *base,
                                   const pawl_view *ids,
                                   size_t count,
                                   ledger_event_sink sink,
                                   void *context,
                                   pawl_error *reterr)
{
    return pawl__ledger_pg_lookup(
        pawl__ledger_pg_of(base)->pg.writer, ids, count, sink, context, reterr);
}

/* How many of the events go into one statement; at least one. */
static size_t chunk_of(const pawl_event *events, size_t count)
{
    size_t bytes = 0;
    size_t chunk = 0;

    while (chunk < MIN(count, (size_t)INSERT_EVENTS_MAX)) {
        bytes += events[chunk].payload.len;
        if (chunk > 0 && bytes > INSERT_BYTES_MAX) {
            break;
        }
        chunk++;
    }
    return chunk;
}

static pawl_status add_chunk(struct postgres_backend *backend,
                             const pawl_event *events,
                             size_t count,
                             pawl_error *reterr)
{
    static const char letters[PG_INSERT_ARRAYS] = { 'T', 'T', 'I', 'T', 'T', 'T', 'Z', 'I', 'X' };
    struct pawl__pg_array *arrays = backend->arrays;
    struct pawl__pg_value values[1 + PG_INSERT_ARRAYS];

    for (size_t i = 0; i < PG_INSERT_ARRAYS; i++) {
        pawl__pg_array_start(&arrays[i], letters[i], count);
    }
    for (size_t i = 0; i < count; i++) {
        const pawl_event *event = &events[i];
        REQUIRE(event->offset == events[0].offset + i);
        pawl__pg_array_add_view(&arrays[0], event->id);
        pawl__pg_array_add_view(&arrays[1], event->run_id);
        pawl__pg_array_add_i64(&arrays[2], event->turn);
        pawl__pg_array_add_view(&arrays[3], event->kind);
        pawl__pg_array_add_view(&arrays[4], event->actor);
        pawl__pg_array_add_view(&arrays[5], event->payload);
        pawl__pg_array_add_time(&arrays[6], event->created_at_us);
        pawl__pg_array_add_i64(&arrays[7], event->schema_version);
        pawl__pg_array_add_view(&arrays[8],
                                (pawl_view){ (const char *)event->hash, sizeof(event->hash) });
    }
    values[0] = pawl__pg_i64((int64_t)events[0].offset);
    for (size_t i = 0; i < PG_INSERT_ARRAYS; i++) {
        values[1 + i] = pawl__pg_array_value(&arrays[i]);
    }
    return pawl__pg_pipeline_add(
        backend->pg.writer, LEDGER_PG_INSERT, values, COUNT_OF(values), reterr);
}

static pawl_status add_head(struct pawl__pg *pg,
                            const pawl_event *first,
                            const pawl_event *last,
                            pawl_error *reterr)
{
    pawl_view hash = { (const char *)last->hash, sizeof(last->hash) };
    int64_t offset = (int64_t)last->offset;

    TRY(pawl__pg_pipeline_add(
        pg, LEDGER_PG_HEAD_SET, PG_ARGS(pawl__pg_i64(offset), pawl__pg_bytes(hash)), reterr));
    TRY(pawl__pg_pipeline_add(
        pg,
        LEDGER_PG_NOTIFY,
        PG_ARGS(pawl__pg_text(pawl_view_of(PAWL__LEDGER_CHANNEL)), pawl__pg_i64(offset)),
        reterr));
    return pawl__pg_pipeline_add(
        pg,
        LEDGER_PG_READ_BACK,
        PG_ARGS(pawl__pg_i64((int64_t)first->offset - 1), pawl__pg_i64(offset)),
        reterr);
}

/* What the pipeline was told to write. */
struct written {
    const pawl_event *last;
    size_t count;
    size_t inserts; /* statements that insert; after them: the head, the notification, the check */
    int64_t rows;   /* that they report */
};

static bool is_hash(pawl_view hash, const pawl_event *event)
{
    return hash.len == sizeof(event->hash) && memcmp(hash.data, event->hash, hash.len) == 0;
}

/* A rule or a trigger can make an INSERT do nothing and report success, or take back what it did. */
static pawl_status check_written(void *context,
                                 size_t index,
                                 const struct pawl__pg_rows *rows,
                                 pawl_error *reterr)
{
    struct written *written = context;
    size_t after = index < written->inserts ? 0 : 1 + index - written->inserts;
    bool good = true;

    if (after == 0) {
        written->rows += rows->affected;
    } else if (after == 1) {
        good = written->rows == (int64_t)written->count && rows->affected == 1;
    } else if (after == 3) {
        good = rows->count == 1 && pawl__pg_get_i64(rows, 0, 0) == (int64_t)written->count
               && is_hash(pawl__pg_get_bytes(rows, 0, 1), written->last)
               && pawl__pg_get_i64(rows, 0, 2) == (int64_t)written->last->offset
               && is_hash(pawl__pg_get_bytes(rows, 0, 3), written->last)
               && !pawl__pg_get_bool(rows, 0, 4);
    }
    return good ? PAWL_OK
                : pawl__fail_advised(
                    reterr,
                    PAWL_CORRUPT,
                    "%zu events were written, and reading them back shows others: look for "
                    "a trigger or rule that is not pawl's; nothing was appended",
                    written->count);
}

/* One round trip: the events, the new head, the notification that goes out with the commit, and the
 * check of what is stored now. */
static pawl_status postgres_insert(struct ledger_backend *base,
                                   const pawl_event *events,
                                   size_t count,
                                   pawl_error *reterr)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);
    struct pawl__pg *pg = backend->pg.writer;
    struct written written = { .last = &events[count - 1], .count = count };

    for (size_t done = 0; done < count; written.inserts++) {
        done += chunk_of(&events[done], count - done);
    }
    TRY(pawl__pg_pipeline_begin(pg, check_written, &written, reterr));
    AUTO(pawl__pg_pipeline_abandon_p) struct pawl__pg *guard = pg;
    for (size_t done = 0; done < count;) {
        size_t chunk = chunk_of(&events[done], count - done);
        TRY(add_chunk(backend, &events[done], chunk, reterr));
        done += chunk;
    }
    TRY(add_head(pg, &events[0], &events[count - 1], reterr));
    return pawl__pg_pipeline_end(guard, reterr);
}

static pawl_status postgres_turn_get(struct ledger_backend *base,
                                     pawl_view run_id,
                                     int64_t turn,
                                     struct ledger_turn *ret_turn,
                                     pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct ledger_turn found = { .run_id = run_id, .turn = turn };

    TRY(pawl__pg_exec(pawl__ledger_pg_of(base)->pg.writer,
                      LEDGER_PG_TURN_GET,
                      PG_ARGS(pawl__pg_text(run_id), pawl__pg_i64(turn)),
                      &rows,
                      reterr));
    if (rows.count == 1) {
        found.attempt = (uint32_t)pawl__pg_get_i64(&rows, 0, 0);
        found.state = (pawl_turn_state)pawl__pg_get_i64(&rows, 0, 1);
        found.begin_offset = (uint64_t)pawl__pg_get_i64(&rows, 0, 2);
        found.end_offset = (uint64_t)pawl__pg_get_i64(&rows, 0, 3);
    }
    *ret_turn = found;
    return PAWL_OK;
}

static pawl_status postgres_turn_put(struct ledger_backend *base,
                                     const struct ledger_turn *turn,
                                     pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_exec(pawl__ledger_pg_of(base)->pg.writer,
                      LEDGER_PG_TURN_PUT,
                      PG_ARGS(pawl__pg_text(turn->run_id),
                              pawl__pg_i64(turn->turn),
                              pawl__pg_i64(turn->attempt),
                              pawl__pg_i64(turn->state),
                              pawl__pg_i64((int64_t)turn->begin_offset),
                              pawl__pg_i64((int64_t)turn->end_offset)),
                      &rows,
                      reterr));
    if (rows.affected == 1) {
        return PAWL_OK;
    }
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "one row was written to 'turns' and %lld were stored: look for a trigger or "
        "rule that is not pawl's; nothing was appended",
        (long long)rows.affected);
}

static pawl_status postgres_commit(struct ledger_backend *base, pawl_error *reterr)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);
    pawl_status status = pawl__pg_commit(backend->pg.writer, reterr);

    pawl__pg_store_release_writer(&backend->pg);
    return status;
}

/* --- the whole --- */

/* The row that writers lock says how long the log is: events that went missing at its end without
 * it are noticed here. */
static pawl_status postgres_check(struct ledger_backend *base,
                                  uint64_t *ret_bad,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    TRY(pawl__pg_exec(borrowed.pg, LEDGER_PG_HEAD_AND_LAST, PG_NO_ARGS, &rows, reterr));
    if (rows.count != 1) {
        *ret_bad = 1;
        return pawl__fail(
            reterr, PAWL_CORRUPT, "ledger_head has %zu rows instead of one", rows.count);
    }
    if (!pawl__pg_is_null(&rows, 0, 4)) {
        TRY(pawl__ledger_check_first(pawl__pg_get_i64(&rows, 0, 4), ret_bad, reterr));
    }
    int64_t head = pawl__pg_get_i64(&rows, 0, 0);
    int64_t last = pawl__pg_get_i64(&rows, 0, 2); /* 0 when there is none */
    if (head != last) {
        *ret_bad = (uint64_t)MIN(head, last) + 1;
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "the log ends at offset %lld, its head is at %lld: acknowledged events "
                          "are gone or others were put behind them",
                          (long long)last,
                          (long long)head);
    }
    if (head > 0
        && !pawl__view_equal(pawl__pg_get_bytes(&rows, 0, 1), pawl__pg_get_bytes(&rows, 0, 3))) {
        *ret_bad = (uint64_t)head;
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "offset %lld has another hash than the head: events were changed",
                          (long long)head);
    }
    return PAWL_OK;
}

static pawl_status postgres_watch(struct ledger_backend *base,
                                  int64_t deadline_ns,
                                  struct pawl__cancel *cancel,
                                  pawl_error *reterr)
{
    return pawl__pg_store_watch(&pawl__ledger_pg_of(base)->pg, deadline_ns, cancel, reterr);
}

static pawl_status postgres_schema(struct ledger_backend *base, pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    return pawl__pg_check_schema(borrowed.pg, &pawl__schema_postgres_ledger, reterr);
}

static void postgres_close(struct ledger_backend *base)
{
    struct postgres_backend *backend = pawl__ledger_pg_of(base);

    pawl__pg_store_done(&backend->pg);
    for (size_t i = 0; i < PG_INSERT_ARRAYS; i++) {
        pawl__pg_array_done(&backend->arrays[i]);
    }
    free(backend);
}

static const struct ledger_backend_ops postgres_ops = {
    .name = "postgres",
    .close = postgres_close,
    .begin = postgres_begin,
    .lookup = postgres_lookup,
    .insert = postgres_insert,
    .turn_get = postgres_turn_get,
    .open_turns = pawl__ledger_pg_open_turns,
    .turn_put = postgres_turn_put,
    .embed = pawl__ledger_pg_embed,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .read = pawl__ledger_pg_read,
    .head = pawl__ledger_pg_get_head,
    .get = pawl__ledger_pg_get,
    .turn_of = pawl__ledger_pg_turn_of,
    .counts = pawl__ledger_pg_counts,
    .turns = pawl__ledger_pg_turns,
    .unfinished = pawl__ledger_pg_unfinished,
    .embeddings = pawl__ledger_pg_embeddings,
    .watch = postgres_watch,
    .check = postgres_check,
    .schema = postgres_schema,
    .nearest = pawl__ledger_pg_nearest,
};

/* --- open --- */

static pawl_status connect_all(struct postgres_backend *backend,
                               const pawl_ledger_options *options,
                               pawl_error *reterr)
{
    const struct pawl__pg_setup setup = {
        .schema = &pawl__schema_postgres_ledger,
        .missing = "there is no ledger in this database",
        .warning = "this PostgreSQL server may lose acknowledged events in a power cut",
        .needs_utf8 = "a ledger",
        .must_exist = options->must_exist,
        .read_only = options->read_only,
        .unchecked = options->accept_damage,
    };
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;

    TRY(pawl__pg_store_set_up(&backend->pg, &setup, &pg, reterr));
    TRY(pawl__ledger_pg_vector_setup(backend, pg, options->read_only, reterr));
    pawl__pg_close(STEAL(pg));
    backend->pg.options.statement_count =
        backend->has_vector ? LEDGER_PG_COUNT : LEDGER_PG_COUNT_PLAIN;
    TRY(pawl__pg_store_open_pool(&backend->pg, backend->pg.connections_max, reterr));
    return backend->has_vector && !options->read_only ? pawl__ledger_pg_vector_fill(backend, reterr)
                                                      : PAWL_OK;
}

pawl_status pawl__ledger_postgres_open(const struct pawl__location *location,
                                       const void *setup,
                                       void *ret_backend,
                                       pawl_error *reterr)
{
    const pawl_ledger_options *options = setup;
    struct pawl__pg_options connections =
        pawl__pg_store_options(location, options->answer_ms_max, options->busy_ms_max);

    connections.application_name = "pawl ledger";
    connections.statements = pawl__ledger_pg_statements;
    connections.statement_ms_max = STATEMENT_MS_MAX;
    connections.idle_ms_max = IDLE_MS_MAX;
    TRY(pawl__pg_store_check_bytes(
        "payload_bytes_max", options->payload_bytes_max, ARRAY_BYTES_SPARE, reterr));
    struct postgres_backend *backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a ledger");
    }
    backend->base.ops = &postgres_ops;
    backend->pg.listener_name = "pawl ledger watch";
    backend->pg.channel = PAWL__LEDGER_CHANNEL;
    atomic_init(&backend->page_rows, FIRST_PAGE_ROWS);
    for (size_t i = 0; i < PG_INSERT_ARRAYS; i++) {
        backend->arrays[i] = (struct pawl__pg_array)PG_ARRAY_INIT;
    }
    pawl_status status = pawl__pg_store_init(&backend->pg, location, &connections, reterr);
    if (status == PAWL_OK) {
        status = connect_all(backend, options, reterr);
    }
    if (status != PAWL_OK) {
        postgres_close(&backend->base);
        return status == PAWL_CORRUPT ? pawl__fail_advise_default(
                   reterr, status, "restore the database, or a snapshot of this ledger")
                                      : status;
    }
    *(struct ledger_backend **)ret_backend = &backend->base;
    return PAWL_OK;
}
