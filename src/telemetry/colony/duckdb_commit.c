/* One transaction: rows, rejected rows, gaps, checkpoint, sessions and epochs of each part. */
#include <inttypes.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "telemetry/colony/duckdb_internal.h"

/* --- rows --- */

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

static void append_name(struct pawl__duck_appender *appender,
                        const struct telemetry_commit *commit,
                        uint64_t seq_id)
{
    pawl__duck_append_text(appender, pawl_view_of(commit->session.text));
    pawl__duck_append_text(appender, pawl_view_of(commit->generation.text));
    pawl__duck_append_u64(appender, seq_id);
}

static pawl_status append_rows(struct telemetry_duckdb_colony *colony,
                               const struct telemetry_commit *commit,
                               pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(commit->type);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    TRY(pawl__duck_appender_open(colony->conn, info->colony_table, &appender, reterr));
    for (size_t i = 0; i < commit->row_count; i++) {
        const struct telemetry_row *row = &commit->rows[i];
        if (row->reason != NULL) {
            continue;
        }
        pawl__duck_append_text(appender, pawl_view_of(commit->agent));
        append_name(appender, commit, row->seq_id);
        for (size_t c = 0; c < info->column_count; c++) {
            append_value(appender, info->columns[c].kind, &row->values->at[c]);
        }
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

static pawl_status append_rejected(struct telemetry_duckdb_colony *colony,
                                   const struct telemetry_commit *commit,
                                   pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;
    int64_t now_us = pawl__wall_us(colony->clock);

    TRY(pawl__duck_appender_open(colony->conn, "rejected_rows", &appender, reterr));
    for (size_t i = 0; i < commit->row_count; i++) {
        const struct telemetry_row *row = &commit->rows[i];
        if (row->reason == NULL) {
            continue;
        }
        pawl__duck_append_text(appender, pawl_view_of(commit->agent));
        pawl__duck_append_text(appender, pawl_view_of(pawl__telemetry_type(commit->type)->name));
        append_name(appender, commit, row->seq_id);
        pawl__duck_append_bytes(appender, row->bytes);
        pawl__duck_append_text(appender, pawl_view_of(row->reason));
        pawl__duck_append_time(appender, now_us);
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

static pawl_status put_rows(struct telemetry_duckdb_colony *colony,
                            const struct telemetry_commit *commit,
                            pawl_error *reterr)
{
    size_t rejected = 0;

    for (size_t i = 0; i < commit->row_count; i++) {
        rejected += commit->rows[i].reason != NULL;
    }
    if (rejected < commit->row_count) {
        TRY(append_rows(colony, commit, reterr));
    }
    return rejected == 0 ? PAWL_OK : append_rejected(colony, commit, reterr);
}

/* --- gaps --- */

static pawl_status add_gap(struct telemetry_duckdb_colony *colony,
                           const struct telemetry_commit *commit,
                           const struct telemetry_gap *gap,
                           uint64_t id,
                           pawl_error *reterr)
{
    return pawl__duck_run(
        colony->conn,
        TELEMETRY_COLONY_GAP_ADD,
        DUCK_ARGS(pawl__duck_u64(id),
                  pawl__duck_text(pawl_view_of(commit->agent)),
                  duck_type(commit->type),
                  pawl__duck_u64(gap->start),
                  pawl__duck_u64(gap->end),
                  pawl__duck_time(pawl__wall_us(colony->clock)),
                  pawl__duck_text(pawl_view_of(pawl__telemetry_gap_status_name(gap->status))),
                  pawl__duck_u64(gap->attempts),
                  duck_id(&gap->session),
                  duck_id(&gap->generation),
                  pawl__duck_text(pawl_view_of(pawl__telemetry_gap_reason_name(gap->reason))),
                  pawl__duck_u64(gap->run),
                  pawl__duck_i64(gap->seen_ns)),
        NULL,
        reterr);
}

static pawl_status set_gap(struct telemetry_duckdb_colony *colony,
                           const struct telemetry_gap *gap,
                           pawl_error *reterr)
{
    int64_t changed = 0;

    TRY(pawl__duck_run(
        colony->conn,
        TELEMETRY_COLONY_GAP_SET,
        DUCK_ARGS(pawl__duck_u64(gap->id),
                  pawl__duck_u64(gap->start),
                  pawl__duck_u64(gap->end),
                  pawl__duck_time(pawl__wall_us(colony->clock)),
                  pawl__duck_text(pawl_view_of(pawl__telemetry_gap_status_name(gap->status))),
                  pawl__duck_text(pawl_view_of(pawl__telemetry_gap_reason_name(gap->reason))),
                  pawl__duck_u64(gap->attempts)),
        &changed,
        reterr));
    return changed == 1 ? PAWL_OK : pawl__fail(reterr, PAWL_NOT_FOUND, "no gap %" PRIu64, gap->id);
}

/* New gaps take the ids after `ids`, which moves. They get them when the transaction is committed. */
static pawl_status put_gaps(struct telemetry_duckdb_colony *colony,
                            const struct telemetry_commit *commit,
                            uint64_t *ids,
                            pawl_error *reterr)
{
    for (size_t i = 0; i < commit->gap_count; i++) {
        const struct telemetry_gap *gap = &commit->gaps[i];
        TRY(gap->id == 0 ? add_gap(colony, commit, gap, ++*ids, reterr)
                         : set_gap(colony, gap, reterr));
    }
    return PAWL_OK;
}

static void give_ids(struct telemetry_duckdb_colony *colony, const struct telemetry_commit *commit)
{
    for (size_t i = 0; i < commit->gap_count; i++) {
        if (commit->gaps[i].id == 0) {
            commit->gaps[i].id = ++colony->gap_ids;
        }
    }
}

/* --- cursors --- */

static pawl_status put_checkpoint(struct telemetry_duckdb_colony *colony,
                                  const struct telemetry_commit *commit,
                                  bool is_there,
                                  pawl_error *reterr)
{
    const struct telemetry_generation *current = pawl__telemetry_current(commit->cursor);
    int64_t changed = 0;

    TRY(pawl__duck_run(colony->conn,
                       is_there ? TELEMETRY_COLONY_CHECKPOINT_SET : TELEMETRY_COLONY_CHECKPOINT_ADD,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(commit->agent)),
                                 duck_type(commit->type),
                                 duck_id(&commit->cursor->session),
                                 duck_id(&current->id),
                                 pawl__duck_u64(current->last),
                                 pawl__duck_u64(current->high_water),
                                 pawl__duck_time(pawl__wall_us(colony->clock))),
                       &changed,
                       reterr));
    return changed == 1
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CORRUPT, "%" PRId64 " checkpoints were changed", changed);
}

static void append_key(struct pawl__duck_appender *appender,
                       const struct telemetry_commit *commit,
                       const struct telemetry_cursor *cursor)
{
    pawl__duck_append_text(appender, pawl_view_of(commit->agent));
    pawl__duck_append_text(appender, pawl_view_of(pawl__telemetry_type(commit->type)->name));
    pawl__duck_append_text(appender, pawl_view_of(cursor->session.text));
}

static pawl_status append_generations(struct telemetry_duckdb_colony *colony,
                                      const struct telemetry_commit *commit,
                                      const struct telemetry_cursor *cursor,
                                      pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    TRY(pawl__duck_appender_open(colony->conn, "polling_sessions", &appender, reterr));
    for (size_t i = 0; i < cursor->generation_count; i++) {
        const struct telemetry_generation *generation = &cursor->generations[i];
        append_key(appender, commit, cursor);
        pawl__duck_append_text(appender, pawl_view_of(generation->id.text));
        pawl__duck_append_text(appender, pawl_view_of(generation->parent.text));
        pawl__duck_append_u64(appender, generation->first);
        pawl__duck_append_u64(appender, generation->last);
        pawl__duck_append_u64(appender, generation->high_water);
        pawl__duck_append_bool(appender, i == cursor->current);
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

static pawl_status append_epochs(struct telemetry_duckdb_colony *colony,
                                 const struct telemetry_commit *commit,
                                 const struct telemetry_cursor *cursor,
                                 pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    TRY(pawl__duck_appender_open(colony->conn, "polling_epochs", &appender, reterr));
    for (size_t i = 0; i < cursor->seen_count; i++) {
        append_key(appender, commit, cursor);
        pawl__duck_append_u64(appender, i);
        pawl__duck_append_text(appender, pawl_view_of(cursor->seen[i].epoch.id.text));
        pawl__duck_append_u64(appender, cursor->seen[i].epoch.first);
        pawl__duck_append_text(appender, pawl_view_of(cursor->seen[i].generation.text));
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

/* Writes everything that is known of a session again; it changes seldom. */
static pawl_status put_session(struct telemetry_duckdb_colony *colony,
                               const struct telemetry_commit *commit,
                               const struct telemetry_cursor *cursor,
                               pawl_error *reterr)
{
    const struct pawl__duck_value key[] = { pawl__duck_text(pawl_view_of(commit->agent)),
                                            duck_type(commit->type),
                                            duck_id(&cursor->session) };

    TRY(pawl__duck_run(
        colony->conn, TELEMETRY_COLONY_SESSIONS_DELETE, key, COUNT_OF(key), NULL, reterr));
    TRY(pawl__duck_run(
        colony->conn, TELEMETRY_COLONY_EPOCHS_DELETE, key, COUNT_OF(key), NULL, reterr));
    TRY(append_generations(colony, commit, cursor, reterr));
    return append_epochs(colony, commit, cursor, reterr);
}

static pawl_status put_cursor(struct telemetry_duckdb_colony *colony,
                              const struct telemetry_commit *commit,
                              pawl_error *reterr)
{
    struct telemetry_checkpoint stored;
    uint64_t high_water = 0;

    if (commit->cursor == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__telemetry_colony_checkpoint(
        colony, commit->agent, commit->type, &stored, &high_water, reterr));
    TRY(pawl__telemetry_commit_check(commit, &stored, reterr));
    if (commit->ended != NULL) {
        TRY(put_session(colony, commit, commit->ended, reterr));
    }
    if (commit->identity_changed) {
        TRY(put_session(colony, commit, commit->cursor, reterr));
    }
    return put_checkpoint(colony, commit, !pawl__telemetry_id_is_none(&stored.session), reterr);
}

pawl_status pawl__telemetry_colony_commit(struct telemetry_duckdb_colony *colony,
                                          const struct telemetry_commit *commits,
                                          size_t count,
                                          pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = colony->conn;
    uint64_t ids = colony->gap_ids;

    FAILPOINT("telemetry.commit.before", reterr);
    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(put_cursor(colony, &commits[i], reterr));
        TRY(put_rows(colony, &commits[i], reterr));
        TRY(put_gaps(colony, &commits[i], &ids, reterr));
    }
    TRY(pawl__duck_commit(guard, reterr));
    for (size_t i = 0; i < count; i++) {
        give_ids(colony, &commits[i]);
        colony->committed += commits[i].row_count;
    }
    FAILPOINT("telemetry.commit.after", reterr);
    return PAWL_OK;
}
