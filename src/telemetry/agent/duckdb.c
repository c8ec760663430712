/* The file: opened, its session and epochs, closed. */
#include "telemetry/agent/duckdb.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "store/schemas.h"
#include "telemetry/agent/internal.h"

enum { CHECKPOINT_ROWS = 100000, EPOCHS_BYTES_MAX = 1 << 20 };

/* --- session and epochs --- */

static pawl_status read_number(struct pawl__duck_conn *conn,
                               size_t statement,
                               uint64_t *ret_number,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(conn, statement, DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_number = pawl__duck_has_row(rows) ? (uint64_t)pawl__duck_get_i64(rows, 0) : 0;
    return PAWL_OK;
}

static pawl_status set_metadata(struct pawl__duck_conn *conn,
                                size_t statement,
                                const char *key,
                                pawl_view value,
                                pawl_error *reterr)
{
    int64_t changed = 0;

    TRY(pawl__duck_run(conn,
                       statement,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(key)), pawl__duck_text(value)),
                       &changed,
                       reterr));
    return changed == 1 ? PAWL_OK
                        : pawl__fail(reterr, PAWL_CORRUPT, "db_metadata has no '%s'", key);
}

/* A new file: session, counters and an empty list of epochs, in the caller's transaction. */
static pawl_status make_session(struct pawl__duck_conn *conn,
                                const uint8_t random[16],
                                pawl_error *reterr)
{
    struct telemetry_id session = pawl__telemetry_id_of(random);

    TRY(set_metadata(
        conn, TELEMETRY_AGENT_METADATA_ADD, "session_id", pawl_view_of(session.text), reterr));
    TRY(set_metadata(conn, TELEMETRY_AGENT_METADATA_ADD, "epochs", pawl_view_of(""), reterr));
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        pawl_view counter = pawl_view_of(pawl__telemetry_type((enum telemetry_type)t)->counter);
        TRY(pawl__duck_run(
            conn, TELEMETRY_AGENT_COUNTER_ADD, DUCK_ARGS(pawl__duck_text(counter)), NULL, reterr));
        TRY(pawl__duck_run(
            conn, TELEMETRY_AGENT_REMOVED_ADD, DUCK_ARGS(pawl__duck_text(counter)), NULL, reterr));
    }
    return PAWL_OK;
}

static pawl_status read_session(struct pawl__duck_conn *conn,
                                struct telemetry_id *ret_session,
                                pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(conn,
                         TELEMETRY_AGENT_METADATA_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of("session_id"))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    if (!pawl__duck_has_row(rows) || pawl__duck_get_text(rows, 0).len == 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the database has no session_id");
    }
    return pawl__telemetry_id_parse(pawl__duck_get_text(rows, 0), ret_session, reterr);
}

static pawl_status read_epochs(struct pawl__duck_conn *conn,
                               struct telemetry_epochs *epochs,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(conn,
                         TELEMETRY_AGENT_METADATA_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of("epochs"))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    if (!pawl__duck_has_row(rows)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the database has no list of epochs");
    }
    return pawl__telemetry_epochs_read(pawl__duck_get_text(rows, 0), epochs, reterr);
}

static pawl_status write_epochs(struct telemetry_duckdb_agent *agent, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(EPOCHS_BYTES_MAX);

    pawl__telemetry_epochs_write(&agent->state.epochs, &text);
    TRY(pawl__buf_check(&text, "the list of epochs", reterr));
    return set_metadata(
        agent->write.conn, TELEMETRY_AGENT_METADATA_SET, "epochs", pawl__buf_view(&text), reterr);
}

/* One transaction: a session where there is none, and another epoch. */
static pawl_status begin_epoch(struct telemetry_duckdb_agent *agent,
                               struct pawl__random *random,
                               bool *ret_new,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = agent->write.conn;
    uint8_t bytes[2][16];
    uint64_t known = 0;

    TRY(pawl__random_bytes(random, bytes, sizeof(bytes), reterr));
    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(read_number(guard, TELEMETRY_AGENT_METADATA_COUNT, &known, reterr));
    *ret_new = known == 0;
    if (*ret_new) {
        TRY(make_session(guard, bytes[0], reterr));
    }
    TRY(read_session(guard, &agent->state.session, reterr));
    TRY(read_epochs(guard, &agent->state.epochs, reterr));
    TRY(pawl__telemetry_agent_read_counters(
        guard, agent->state.counters, agent->state.removed, reterr));
    TRY(pawl__telemetry_state_open(&agent->state, bytes[1], pawl__boot_ns(agent->clock), reterr));
    TRY(write_epochs(agent, reterr));
    return pawl__duck_commit(guard, reterr);
}

/* --- the window of names --- */

static pawl_status fill_window(struct telemetry_duckdb_agent *agent,
                               enum telemetry_type type,
                               uint64_t names,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    uint64_t last = agent->state.counters[type];
    struct telemetry_values row;

    TRY(pawl__duck_query(
        agent->read.conn,
        pawl__telemetry_agent_page_statement(type),
        DUCK_ARGS(pawl__duck_u64(last > names ? last - names : 0), pawl__duck_u64(last)),
        &rows,
        reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        pawl__telemetry_agent_read_row(type, rows, 1, &row);
        TRY(pawl__telemetry_state_remember(&agent->state, type, &row, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

/* --- life --- */

static void lane_done(struct agent_lane *lane)
{
    pawl__duck_disconnect(STEAL(lane->conn));
    pawl__lock_done(&lane->lock);
}

static void agent_free(struct telemetry_duckdb_agent *agent)
{
    if (agent == NULL) {
        return;
    }
    lane_done(&agent->maintain);
    lane_done(&agent->write);
    lane_done(&agent->read);
    pawl__duck_close(agent->db);
    pawl__lock_done(&agent->state_lock);
    pawl__telemetry_state_done(&agent->state);
    free(agent);
}

static void agent_free_p(struct telemetry_duckdb_agent **agent)
{
    agent_free(*agent);
}

static void close_store(struct telemetry_agent_store *base)
{
    agent_free((struct telemetry_duckdb_agent *)base);
}

static pawl_status status_of(struct telemetry_agent_store *base,
                             struct telemetry_agent_status *ret_status,
                             pawl_error *reterr)
{
    struct telemetry_duckdb_agent *agent = as_duckdb(base);
    uint64_t used = 0;

    pawl__lock(&agent->maintain.lock);
    pawl_status status = pawl__telemetry_agent_used(agent, &used, reterr);
    pawl__unlock(&agent->maintain.lock);
    TRY(status);
    pawl__lock(&agent->state_lock);
    pawl__telemetry_state_status(&agent->state, ret_status);
    pawl__unlock(&agent->state_lock);
    ret_status->used_bytes = used;
    return PAWL_OK;
}

static pawl_status connect_lane(struct telemetry_duckdb_agent *agent,
                                struct agent_lane *lane,
                                pawl_error *reterr)
{
    TRY(pawl__duck_connect(agent->db, &lane->conn, reterr));
    return pawl__duck_prepare(
        lane->conn, pawl__telemetry_agent_statements, TELEMETRY_AGENT_COUNT, reterr);
}

static pawl_status migrate(struct telemetry_duckdb_agent *agent, pawl_error *reterr)
{
    struct pawl__duck_conn *conn = NULL;

    TRY(pawl__duck_connect(agent->db, &conn, reterr));
    pawl_status status =
        pawl__migrate(&pawl__duck_migrate_ops, conn, &pawl__schema_duckdb_telemetry_agent, reterr);
    pawl__duck_disconnect(conn);
    return status;
}

/* Only a file that DuckDB itself cannot open is moved aside. */
static pawl_status open_or_quarantine(struct telemetry_duckdb_agent *agent,
                                      const struct telemetry_duckdb_agent_options *options,
                                      struct telemetry_duckdb_agent_opened *opened,
                                      pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__duck_open(options->path, &options->duck, &agent->db, &error);

    if (status == PAWL_CORRUPT) {
        opened->why = error;
        TRY(pawl__duck_quarantine(options->path, &opened->quarantined, reterr));
        TRY(pawl__duck_open(options->path, &options->duck, &agent->db, reterr));
    } else if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    opened->cut_bytes = pawl__duck_cut_bytes(agent->db);
    return PAWL_OK;
}

static pawl_status open_agent(struct telemetry_duckdb_agent *agent,
                              const struct telemetry_duckdb_agent_options *options,
                              struct telemetry_duckdb_agent_opened *opened,
                              pawl_error *reterr)
{
    size_t names = options->window_names == 0 ? TELEMETRY_WINDOW_NAMES : options->window_names;

    TRY(open_or_quarantine(agent, options, opened, reterr));
    TRY(migrate(agent, reterr));
    TRY(connect_lane(agent, &agent->maintain, reterr));
    TRY(connect_lane(agent, &agent->write, reterr));
    TRY(connect_lane(agent, &agent->read, reterr));
    TRY(pawl__telemetry_state_init(&agent->state, &options->retention, names, reterr));
    TRY(begin_epoch(agent,
                    options->random == NULL ? pawl__random_real() : options->random,
                    &opened->is_new,
                    reterr));
    agent->appended =
        opened->is_new ? 0 : agent->checkpoint_rows; /* the log that the last run left */
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        TRY(fill_window(agent, (enum telemetry_type)t, names, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_duckdb_agent(const struct telemetry_duckdb_agent_options *options,
                                         struct telemetry_agent_store **ret_store,
                                         struct telemetry_duckdb_agent_opened *ret_opened,
                                         pawl_error *reterr)
{
    static const struct telemetry_agent_ops ops = {
        .append = pawl__telemetry_agent_append,
        .query = pawl__telemetry_agent_query,
        .maintain = pawl__telemetry_agent_maintain,
        .status = status_of,
        .close = close_store,
    };
    AUTO(agent_free_p) struct telemetry_duckdb_agent *agent = calloc(1, sizeof(*agent));
    struct telemetry_duckdb_agent_opened opened = { .why = PAWL_ERROR_INIT };

    TRY(pawl__check_memory(agent, "an agent's store", reterr));
    agent->base.ops = &ops;
    agent->clock = pawl__clock_or_real(options->duck.clock);
    agent->checkpoint_rows =
        options->checkpoint_rows == 0 ? CHECKPOINT_ROWS : options->checkpoint_rows;
    pawl__lock_init(&agent->maintain.lock);
    pawl__lock_init(&agent->write.lock);
    pawl__lock_init(&agent->read.lock);
    pawl__lock_init(&agent->state_lock);
    pawl_status status = open_agent(agent, options, &opened, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "open '%s'", options->path);
    }
    if (ret_opened != NULL) {
        *ret_opened = opened;
    }
    *ret_store = &STEAL(agent)->base;
    return PAWL_OK;
}
