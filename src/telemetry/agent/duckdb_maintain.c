/* Retention and checkpoints. Rows are removed beside intake; only the checkpoint makes it wait. */
#include "base/core/error.h"
#include "telemetry/agent/internal.h"

static const size_t remove_statements[TELEMETRY_TYPE_COUNT] = {
    [TELEMETRY_SPANS] = TELEMETRY_AGENT_REMOVE_TELEMETRY,
    [TELEMETRY_BEYLA_HTTP] = TELEMETRY_AGENT_REMOVE_BEYLA_HTTP,
    [TELEMETRY_BEYLA_GRPC] = TELEMETRY_AGENT_REMOVE_BEYLA_GRPC,
    [TELEMETRY_BEYLA_SQL] = TELEMETRY_AGENT_REMOVE_BEYLA_SQL,
    [TELEMETRY_BEYLA_TRACES] = TELEMETRY_AGENT_REMOVE_BEYLA_TRACES,
    [TELEMETRY_SYSTEM_METRICS] = TELEMETRY_AGENT_REMOVE_SYSTEM_METRICS,
    [TELEMETRY_CPU_PROFILE] = TELEMETRY_AGENT_REMOVE_CPU_PROFILE,
    [TELEMETRY_MEMORY_PROFILE] = TELEMETRY_AGENT_REMOVE_MEMORY_PROFILE,
};

static pawl_status remove_rows(struct telemetry_duckdb_agent *agent,
                               enum telemetry_type type,
                               uint64_t up_to,
                               uint64_t *removed,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = agent->maintain.conn;
    int64_t gone = 0;
    int64_t changed = 0;

    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(pawl__duck_run(
        guard, remove_statements[type], DUCK_ARGS(pawl__duck_u64(up_to)), &gone, reterr));
    TRY(pawl__duck_run(guard,
                       TELEMETRY_AGENT_REMOVED_SET,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(pawl__telemetry_type(type)->counter)),
                                 pawl__duck_u64(up_to)),
                       &changed,
                       reterr));
    if (changed != 1) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a counter is missing");
    }
    TRY(pawl__duck_commit(guard, reterr));
    pawl__lock(&agent->state_lock);
    pawl__telemetry_state_removed(&agent->state, type, up_to);
    pawl__unlock(&agent->state_lock);
    *removed += (uint64_t)gone;
    return PAWL_OK;
}

static pawl_status remove_by_age(struct telemetry_duckdb_agent *agent,
                                 uint64_t *removed,
                                 pawl_error *reterr)
{
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        enum telemetry_type type = (enum telemetry_type)t;
        pawl__lock(&agent->state_lock);
        uint64_t up_to =
            pawl__telemetry_state_aged(&agent->state, type, pawl__boot_ns(agent->clock));
        bool is_due = up_to > agent->state.removed[type];
        pawl__unlock(&agent->state_lock);
        if (is_due) {
            TRY(remove_rows(agent, type, up_to, removed, reterr));
        }
    }
    return PAWL_OK;
}

/* Between transactions and pages: beside them DuckDB would refuse it. */
static pawl_status checkpoint(struct telemetry_duckdb_agent *agent, pawl_error *reterr)
{
    pawl__lock(&agent->write.lock);
    pawl__lock(&agent->read.lock);
    pawl_status status = pawl__duck_checkpoint(agent->db, PAWL__DUCK_CHECKPOINT_TRY, reterr);
    if (status == PAWL_OK) {
        pawl__lock(&agent->state_lock);
        agent->appended = 0;
        pawl__unlock(&agent->state_lock);
    }
    pawl__unlock(&agent->read.lock);
    pawl__unlock(&agent->write.lock);
    return status;
}

pawl_status pawl__telemetry_agent_used(struct telemetry_duckdb_agent *agent,
                                       uint64_t *ret_used,
                                       pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(
        agent->maintain.conn, TELEMETRY_AGENT_USED_BYTES, DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_used = pawl__duck_has_row(rows) ? pawl__duck_get_u64(rows, 0) : 0;
    return PAWL_OK;
}

/* Used blocks fall only with a checkpoint, so there is one after every step. */
static pawl_status remove_by_size(struct telemetry_duckdb_agent *agent,
                                  uint64_t *removed,
                                  pawl_error *reterr)
{
    enum telemetry_type type;
    uint64_t up_to = 0;
    uint64_t used = 0;

    for (;;) {
        TRY(pawl__telemetry_agent_used(agent, &used, reterr));
        pawl__lock(&agent->state_lock);
        bool is_due = pawl__telemetry_state_oversized(&agent->state, used, &type, &up_to);
        pawl__unlock(&agent->state_lock);
        if (!is_due) {
            return PAWL_OK;
        }
        TRY(remove_rows(agent, type, up_to, removed, reterr));
        TRY(checkpoint(agent, reterr));
    }
}

static bool wants_checkpoint(struct telemetry_duckdb_agent *agent)
{
    pawl__lock(&agent->state_lock);
    bool wants = agent->appended >= agent->checkpoint_rows;
    pawl__unlock(&agent->state_lock);
    return wants;
}

static pawl_status maintain_locked(struct telemetry_duckdb_agent *agent,
                                   uint64_t *removed,
                                   pawl_error *reterr)
{
    TRY(remove_by_age(agent, removed, reterr));
    if (*removed > 0 || wants_checkpoint(agent)) {
        TRY(checkpoint(agent, reterr));
    }
    return remove_by_size(agent, removed, reterr);
}

pawl_status pawl__telemetry_agent_maintain(struct telemetry_agent_store *base,
                                           uint64_t *ret_removed,
                                           pawl_error *reterr)
{
    struct telemetry_duckdb_agent *agent = as_duckdb(base);
    uint64_t removed = 0;

    pawl__lock(&agent->maintain.lock);
    pawl_status status = maintain_locked(agent, &removed, reterr);
    pawl__unlock(&agent->maintain.lock);
    if (status == PAWL_OK && ret_removed != NULL) {
        *ret_removed = removed;
    }
    return status;
}
