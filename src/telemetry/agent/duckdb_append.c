/* One batch: rows and counter in one transaction. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "telemetry/agent/internal.h"

static void append_value(struct pawl__duck_appender *appender,
                         char kind,
                         const struct telemetry_value *value)
{
    switch (kind) {
    case 'z':
        pawl__duck_append_time(appender, value->as.i64);
        break;
    case 'i':
        pawl__duck_append_i64(appender, value->as.i64);
        break;
    case 'd':
        pawl__duck_append_double(appender, value->as.real);
        break;
    case 'b':
        pawl__duck_append_bool(appender, value->as.flag);
        break;
    default:
        pawl__duck_append_text(appender, value->as.text);
    }
}

static pawl_status append_rows(struct telemetry_duckdb_agent *agent,
                               enum telemetry_type type,
                               const struct telemetry_values *rows,
                               const struct telemetry_admitted *admitted,
                               uint64_t seq_id,
                               pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    TRY(pawl__duck_appender_open(agent->write.conn, info->agent_table, &appender, reterr));
    for (size_t i = 0; i < admitted->count; i++) {
        const struct telemetry_values *row = &rows[admitted->places[i]];
        pawl__duck_append_u64(appender, ++seq_id);
        for (size_t c = 0; c < info->column_count; c++) {
            append_value(appender, info->columns[c].kind, &row->at[c]);
        }
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

static pawl_status set_counter(struct telemetry_duckdb_agent *agent,
                               enum telemetry_type type,
                               uint64_t last,
                               pawl_error *reterr)
{
    int64_t changed = 0;

    TRY(pawl__duck_run(agent->write.conn,
                       TELEMETRY_AGENT_COUNTER_SET,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(pawl__telemetry_type(type)->counter)),
                                 pawl__duck_u64(last)),
                       &changed,
                       reterr));
    return changed == 1 ? PAWL_OK : pawl__fail(reterr, PAWL_CORRUPT, "a counter is missing");
}

static pawl_status store_rows(struct telemetry_duckdb_agent *agent,
                              enum telemetry_type type,
                              const struct telemetry_values *rows,
                              const struct telemetry_admitted *admitted,
                              pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = agent->write.conn;
    uint64_t before = agent->state.counters[type]; /* changes only under write.lock */

    if (admitted->count == 0) {
        return PAWL_OK;
    }
    FAILPOINT("telemetry.append.before", reterr);
    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(append_rows(agent, type, rows, admitted, before, reterr));
    TRY(set_counter(agent, type, before + admitted->count, reterr));
    TRY(pawl__duck_commit(guard, reterr));
    FAILPOINT("telemetry.append.after", reterr);
    return PAWL_OK;
}

static void free_places(size_t **places)
{
    free(*places);
}

static pawl_status append_locked(struct telemetry_duckdb_agent *agent,
                                 enum telemetry_type type,
                                 const struct telemetry_values *rows,
                                 size_t count,
                                 struct telemetry_appended *ret_appended,
                                 pawl_error *reterr)
{
    AUTO(free_places) size_t *places = calloc(count + 1, sizeof(*places));
    struct telemetry_admitted admitted = { .places = places };

    TRY(pawl__check_memory(places, "a batch", reterr));
    pawl__lock(&agent->state_lock);
    pawl_status status =
        pawl__telemetry_state_admit(&agent->state, type, rows, count, &admitted, reterr);
    pawl__unlock(&agent->state_lock);
    TRY(status);
    status = store_rows(agent, type, rows, &admitted, reterr);
    pawl__lock(&agent->state_lock);
    if (status == PAWL_OK) {
        *ret_appended = pawl__telemetry_state_stored(
            &agent->state, type, &admitted, count, pawl__boot_ns(agent->clock));
        agent->appended += admitted.count;
    } else {
        pawl__telemetry_state_undo(&agent->state, type, &admitted);
    }
    pawl__unlock(&agent->state_lock);
    return status;
}

pawl_status pawl__telemetry_agent_append(struct telemetry_agent_store *base,
                                         enum telemetry_type type,
                                         const struct telemetry_values *rows,
                                         size_t count,
                                         struct telemetry_appended *ret_appended,
                                         pawl_error *reterr)
{
    struct telemetry_duckdb_agent *agent = as_duckdb(base);

    pawl__lock(&agent->write.lock);
    pawl_status status = append_locked(agent, type, rows, count, ret_appended, reterr);
    pawl__unlock(&agent->write.lock);
    return status;
}
