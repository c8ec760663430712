#include "telemetry/colony/duckdb.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "store/schemas.h"
#include "telemetry/colony/duckdb_internal.h"

enum { CHECKPOINT_ROWS = 100000 };

static pawl_status get_id(const struct pawl__duck_rows *rows,
                          size_t column,
                          struct telemetry_id *ret_id,
                          pawl_error *reterr)
{
    return pawl__telemetry_id_parse(pawl__duck_get_text(rows, column), ret_id, reterr);
}

pawl_status pawl__telemetry_colony_checkpoint(struct telemetry_duckdb_colony *colony,
                                              const char *agent,
                                              enum telemetry_type type,
                                              struct telemetry_checkpoint *ret_checkpoint,
                                              uint64_t *ret_high_water,
                                              pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct telemetry_checkpoint checkpoint = { .last = 0 };

    TRY(pawl__duck_query(colony->conn,
                         TELEMETRY_COLONY_CHECKPOINT_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(agent)), duck_type(type)),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    if (pawl__duck_has_row(rows)) {
        TRY(get_id(rows, 0, &checkpoint.session, reterr));
        TRY(get_id(rows, 1, &checkpoint.generation, reterr));
        checkpoint.last = pawl__duck_get_u64(rows, 2);
        *ret_high_water = pawl__duck_get_u64(rows, 3);
    }
    *ret_checkpoint = checkpoint;
    return PAWL_OK;
}

/* --- load --- */

static pawl_status load_generations(struct telemetry_duckdb_colony *colony,
                                    const struct pawl__duck_value key[3],
                                    struct telemetry_cursor *cursor,
                                    pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(colony->conn, TELEMETRY_COLONY_SESSIONS_READ, key, 3, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        struct telemetry_generation generation = { .first = pawl__duck_get_u64(rows, 2),
                                                   .last = pawl__duck_get_u64(rows, 3),
                                                   .high_water = pawl__duck_get_u64(rows, 4) };
        TRY(get_id(rows, 0, &generation.id, reterr));
        TRY(get_id(rows, 1, &generation.parent, reterr));
        cursor->current = pawl__duck_get_bool(rows, 5) ? cursor->generation_count : cursor->current;
        TRY(pawl__telemetry_cursor_add(cursor, &generation, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status load_epochs(struct telemetry_duckdb_colony *colony,
                               const struct pawl__duck_value key[3],
                               struct telemetry_cursor *cursor,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(colony->conn, TELEMETRY_COLONY_EPOCHS_READ, key, 3, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        struct telemetry_epoch epoch = { .first = pawl__duck_get_u64(rows, 1) };
        struct telemetry_id generation;
        TRY(get_id(rows, 0, &epoch.id, reterr));
        TRY(get_id(rows, 2, &generation, reterr));
        TRY(pawl__telemetry_cursor_see(cursor, &epoch, &generation, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status load_locked(struct telemetry_duckdb_colony *colony,
                               const char *agent,
                               enum telemetry_type type,
                               const struct telemetry_id *session,
                               struct telemetry_cursor *cursor,
                               pawl_error *reterr)
{
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor loaded = { .current = 0 };
    struct telemetry_checkpoint checkpoint;
    uint64_t high_water = 0;

    TRY(pawl__telemetry_colony_checkpoint(colony, agent, type, &checkpoint, &high_water, reterr));
    loaded.session = session == NULL ? checkpoint.session : *session;
    bool is_polled = pawl__telemetry_id_equal(&loaded.session, &checkpoint.session);
    const struct pawl__duck_value key[] = { pawl__duck_text(pawl_view_of(agent)),
                                            duck_type(type),
                                            duck_id(&loaded.session) };
    TRY(load_generations(colony, key, &loaded, reterr));
    TRY(load_epochs(colony, key, &loaded, reterr));
    if (loaded.generation_count == 0) {
        if (is_polled && !pawl__telemetry_id_is_none(&checkpoint.session)) {
            return pawl__fail(
                reterr, PAWL_CORRUPT, "a checkpoint of '%s' without its session", agent);
        }
        loaded.session = (struct telemetry_id){ "" };
    } else if (is_polled) {
        pawl__telemetry_current(&loaded)->last = checkpoint.last;
        pawl__telemetry_current(&loaded)->high_water = high_water;
    }
    pawl__telemetry_cursor_done(cursor);
    *cursor = loaded;
    loaded = (struct telemetry_cursor){ .current = 0 };
    return PAWL_OK;
}

static pawl_status load(struct telemetry_colony_store *base,
                        const char *agent,
                        enum telemetry_type type,
                        const struct telemetry_id *session,
                        struct telemetry_cursor *cursor,
                        pawl_error *reterr)
{
    struct telemetry_duckdb_colony *colony = as_duckdb(base);

    pawl__lock(&colony->lock);
    pawl_status status = load_locked(colony, agent, type, session, cursor, reterr);
    pawl__unlock(&colony->lock);
    return status;
}

static pawl_status commit(struct telemetry_colony_store *base,
                          const struct telemetry_commit *commits,
                          size_t count,
                          pawl_error *reterr)
{
    struct telemetry_duckdb_colony *colony = as_duckdb(base);

    pawl__lock(&colony->lock);
    pawl_status status = pawl__telemetry_colony_commit(colony, commits, count, reterr);
    pawl__unlock(&colony->lock);
    return status;
}

/* --- gaps --- */

static void write_statuses(unsigned statuses, struct pawl__buf *buf)
{
    for (unsigned i = 0; i < TELEMETRY_GAP_STATUS_COUNT; i++) {
        if ((statuses & 1u << i) != 0) {
            pawl__buf_add_text(buf, buf->len == 0 ? "" : ",");
            pawl__buf_add_text(buf, pawl__telemetry_gap_status_name((enum telemetry_gap_status)i));
        }
    }
}

static pawl_status get_gap(const struct pawl__duck_rows *rows,
                           struct telemetry_gap *ret_gap,
                           pawl_error *reterr)
{
    struct telemetry_gap gap = {
        .id = pawl__duck_get_u64(rows, 0),
        .start = pawl__duck_get_u64(rows, 3),
        .end = pawl__duck_get_u64(rows, 4),
        .attempts = (uint32_t)pawl__duck_get_u64(rows, 7),
        .run = pawl__duck_get_u64(rows, 8),
        .seen_ns = pawl__duck_get_i64(rows, 9),
    };

    TRY(get_id(rows, 1, &gap.session, reterr));
    TRY(get_id(rows, 2, &gap.generation, reterr));
    TRY(pawl__telemetry_gap_status_parse(pawl__duck_get_text(rows, 5), &gap.status, reterr));
    TRY(pawl__telemetry_gap_reason_parse(pawl__duck_get_text(rows, 6), &gap.reason, reterr));
    *ret_gap = gap;
    return PAWL_OK;
}

static pawl_status read_gaps_locked(struct telemetry_duckdb_colony *colony,
                                    const struct telemetry_gap_query *query,
                                    struct telemetry_gaps *gaps,
                                    pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    char statuses[64] = "";
    struct pawl__buf buf = BUF_OVER(statuses);
    struct telemetry_gap gap;

    write_statuses(query->statuses, &buf);
    TRY(pawl__duck_query(colony->conn,
                         TELEMETRY_COLONY_GAPS_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(query->agent)),
                                   duck_type(query->type),
                                   pawl__duck_text(pawl__buf_view(&buf)),
                                   duck_id(&query->session),
                                   pawl__duck_u64(query->after_id),
                                   pawl__duck_i64((int64_t)MIN(query->limit, (size_t)INT32_MAX))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(get_gap(rows, &gap, reterr));
        TRY(pawl__telemetry_gaps_add(gaps, &gap, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status read_gaps(struct telemetry_colony_store *base,
                             const struct telemetry_gap_query *query,
                             struct telemetry_gaps *gaps,
                             pawl_error *reterr)
{
    struct telemetry_duckdb_colony *colony = as_duckdb(base);

    pawl__lock(&colony->lock);
    pawl_status status = read_gaps_locked(colony, query, gaps, reterr);
    pawl__unlock(&colony->lock);
    return status;
}

static pawl_status clean_gaps(struct telemetry_colony_store *base,
                              int64_t before_us,
                              pawl_error *reterr)
{
    struct telemetry_duckdb_colony *colony = as_duckdb(base);

    pawl__lock(&colony->lock);
    pawl_status status = pawl__duck_run(colony->conn,
                                        TELEMETRY_COLONY_GAPS_CLEAN,
                                        DUCK_ARGS(pawl__duck_time(before_us)),
                                        NULL,
                                        reterr);
    pawl__unlock(&colony->lock);
    return status;
}

/* --- the rest --- */

static pawl_status read_count(struct telemetry_duckdb_colony *colony,
                              size_t statement,
                              const struct pawl__duck_value *values,
                              size_t value_count,
                              uint64_t *ret_count,
                              pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(colony->conn, statement, values, value_count, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_count = (uint64_t)pawl__duck_get_i64(rows, 0);
    return PAWL_OK;
}

static pawl_status count_rows(struct telemetry_colony_store *base,
                              const char *agent,
                              enum telemetry_type type,
                              const struct telemetry_id *session,
                              const struct telemetry_id *generation,
                              uint64_t *ret_rows,
                              uint64_t *ret_rejected,
                              pawl_error *reterr)
{
    static const size_t statements[TELEMETRY_TYPE_COUNT] = {
        [TELEMETRY_SPANS] = TELEMETRY_COLONY_COUNT_TELEMETRY,
        [TELEMETRY_BEYLA_HTTP] = TELEMETRY_COLONY_COUNT_BEYLA_HTTP,
        [TELEMETRY_BEYLA_GRPC] = TELEMETRY_COLONY_COUNT_BEYLA_GRPC,
        [TELEMETRY_BEYLA_SQL] = TELEMETRY_COLONY_COUNT_BEYLA_SQL,
        [TELEMETRY_BEYLA_TRACES] = TELEMETRY_COLONY_COUNT_BEYLA_TRACES,
        [TELEMETRY_SYSTEM_METRICS] = TELEMETRY_COLONY_COUNT_SYSTEM_METRICS,
        [TELEMETRY_CPU_PROFILE] = TELEMETRY_COLONY_COUNT_CPU_PROFILE,
        [TELEMETRY_MEMORY_PROFILE] = TELEMETRY_COLONY_COUNT_MEMORY_PROFILE,
    };
    struct telemetry_duckdb_colony *colony = as_duckdb(base);
    const struct pawl__duck_value key[] = {
        pawl__duck_text(pawl_view_of(agent)), duck_id(session), duck_id(generation), duck_type(type)
    };

    pawl__lock(&colony->lock);
    pawl_status status = read_count(colony, statements[type], key, 3, ret_rows, reterr);
    if (status == PAWL_OK) {
        status = read_count(colony, TELEMETRY_COLONY_COUNT_REJECTED, key, 4, ret_rejected, reterr);
    }
    pawl__unlock(&colony->lock);
    return status;
}

static pawl_status maintain(struct telemetry_colony_store *base, pawl_error *reterr)
{
    struct telemetry_duckdb_colony *colony = as_duckdb(base);
    pawl_status status = PAWL_OK;

    pawl__lock(&colony->lock);
    if (colony->committed >= colony->checkpoint_rows) {
        status = pawl__duck_checkpoint(colony->db, PAWL__DUCK_CHECKPOINT_TRY, reterr);
        colony->committed = status == PAWL_OK ? 0 : colony->committed;
    }
    pawl__unlock(&colony->lock);
    return status;
}

/* --- life --- */

static void colony_free(struct telemetry_duckdb_colony *colony)
{
    if (colony != NULL) {
        pawl__duck_disconnect(colony->conn);
        pawl__duck_close(colony->db);
        pawl__lock_done(&colony->lock);
        free(colony);
    }
}

static void colony_free_p(struct telemetry_duckdb_colony **colony)
{
    colony_free(*colony);
}

static void close_store(struct telemetry_colony_store *base)
{
    colony_free((struct telemetry_duckdb_colony *)base);
}

static pawl_status open_colony(struct telemetry_duckdb_colony *colony,
                               const struct telemetry_duckdb_colony_options *options,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_open(options->path, &options->duck, &colony->db, reterr));
    TRY(pawl__duck_connect(colony->db, &colony->conn, reterr));
    TRY(pawl__migrate(
        &pawl__duck_migrate_ops, colony->conn, &pawl__schema_duckdb_telemetry_colony, reterr));
    TRY(pawl__duck_prepare(
        colony->conn, pawl__telemetry_colony_statements, TELEMETRY_COLONY_COUNT, reterr));
    TRY(pawl__duck_query(colony->conn, TELEMETRY_COLONY_GAP_ID_MAX, DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    colony->gap_ids = pawl__duck_get_u64(rows, 0);
    return PAWL_OK;
}

pawl_status pawl__telemetry_duckdb_colony(const struct telemetry_duckdb_colony_options *options,
                                          struct telemetry_colony_store **ret_store,
                                          pawl_error *reterr)
{
    static const struct telemetry_colony_ops ops = {
        .load = load,
        .commit = commit,
        .gaps = read_gaps,
        .clean_gaps = clean_gaps,
        .count = count_rows,
        .maintain = maintain,
        .close = close_store,
    };
    AUTO(colony_free_p) struct telemetry_duckdb_colony *colony = calloc(1, sizeof(*colony));

    TRY(pawl__check_memory(colony, "a colony's store", reterr));
    colony->base.ops = &ops;
    pawl__lock_init(&colony->lock);
    colony->clock = pawl__clock_or_real(options->duck.clock);
    colony->checkpoint_rows =
        options->checkpoint_rows == 0 ? CHECKPOINT_ROWS : options->checkpoint_rows;
    pawl_status status = open_colony(colony, options, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "open '%s'", options->path);
    }
    *ret_store = &STEAL(colony)->base;
    return PAWL_OK;
}
