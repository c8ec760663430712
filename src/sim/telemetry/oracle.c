/* What must be true when everything has settled:
 *
 *   - no row is stored twice, under whatever name
 *   - every row that the agent still has is stored, or rejected because it cannot be decoded. Only a row that came back
 *     with an older database, after it was recorded as lost, may be on record instead
 *   - every row that is gone and that the colony knew of is stored, rejected or on record
 *   - in every generation each id from its first to its last is exactly one of: stored, rejected, in a gap
 *   - no gap is open, nothing good was rejected, nothing bad was stored */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/telemetry/model.h"

static size_t place_of(enum telemetry_type type)
{
    return type == TELEMETRY_SPANS ? 0 : 1;
}

/* It has met the mark of the database that is live now. */
static bool is_drained(const struct telemetry_feed *feed, const struct telemetry_agent_state *state)
{
    if (feed->status != PAWL_OK || feed->cursor.generation_count == 0) {
        return false;
    }
    struct telemetry_id known = pawl__telemetry_known_epoch(&feed->cursor);
    return pawl__telemetry_id_equal(&known, &state->epochs.at[state->epochs.count - 1].id)
           && pawl__telemetry_current(&feed->cursor)->last == state->counters[feed->type];
}

bool pawl__sim_telemetry_is_settled(struct sim_telemetry *sim)
{
    if (!sim->is_alive) {
        return false;
    }
    for (size_t i = 0; i < SIM_FEEDS; i++) {
        if (!is_drained(&sim->feeds[i], &sim->agents[i / SIM_TYPES].live.store.state)) {
            return false;
        }
    }
    for (size_t i = 0; i < sim->disk.gap_count; i++) {
        if (pawl__telemetry_gap_is_open(sim->disk.gaps[i].gap.status)) {
            return false;
        }
    }
    return true;
}

/* --- every row --- */

struct tally {
    size_t stored[SIM_GIVEN_MAX];
    size_t rejected[SIM_GIVEN_MAX];
    bool is_present[SIM_GIVEN_MAX]; /* at the agent */
};

/* A stored row says which one it is; a rejected one is known only by its name. */
static bool serial_of(const struct telemetry_memory_stored *row, size_t *ret_serial)
{
    struct pawl__arena arena = ARENA_INIT;
    struct telemetry_values values;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t seq_id = 0;
    bool is_good =
        pawl__telemetry_row_decode(
            row->type, (pawl_view){ row->bytes, row->len }, &arena, &seq_id, &values, &error)
        == PAWL_OK;

    if (is_good) {
        char text[24] = "";
        memcpy(text, values.at[1].as.text.data, MIN(values.at[1].as.text.len, sizeof(text) - 1));
        *ret_serial = (size_t)strtoull(&text[4], NULL, 10);
    }
    pawl__arena_done(&arena);
    return is_good;
}

/* The rows that were given under this name: in several lines of one session there may be several. */
static void tally_rejected(struct sim_telemetry *sim,
                           const struct telemetry_memory_stored *row,
                           struct tally *tally)
{
    for (size_t i = 0; i < sim->given_count; i++) {
        const struct sim_given *given = &sim->given[i];
        if (given->type == row->type && given->seq_id == row->seq_id && given->is_bad
            && strcmp(sim->agents[given->agent].name, row->agent) == 0
            && pawl__telemetry_id_equal(&given->session, &row->session)) {
            tally->rejected[i]++;
        }
    }
}

static void count_rows(struct sim_telemetry *sim, struct tally *tally)
{
    for (size_t i = 0; i < sim->disk.row_count; i++) {
        const struct telemetry_memory_stored *row = &sim->disk.rows[i];
        size_t serial = 0;
        if (row->is_rejected) {
            tally_rejected(sim, row, tally);
        } else if (serial_of(row, &serial)) {
            tally->stored[serial]++;
        }
    }
    for (size_t a = 0; a < SIM_AGENTS; a++) {
        for (size_t t = 0; t < SIM_TYPES; t++) {
            const struct telemetry_memory_rows *rows =
                &sim->agents[a].live.store.rows[pawl__sim_telemetry_type(t)];
            for (size_t i = 0; i < rows->count; i++) {
                tally->is_present[sim->agents[a].live.line[t][rows->at[i].seq_id - 1]] = true;
            }
        }
    }
}

static bool is_on_record(const struct sim_telemetry *sim,
                         const struct sim_given *row,
                         bool by_identity)
{
    for (size_t i = 0; i < sim->disk.gap_count; i++) {
        const struct telemetry_memory_gap *at = &sim->disk.gaps[i];
        if (at->type == row->type && strcmp(at->agent, sim->agents[row->agent].name) == 0
            && pawl__telemetry_id_equal(&at->gap.session, &row->session)
            && at->gap.start <= row->seq_id && row->seq_id <= at->gap.end
            && at->gap.status == TELEMETRY_GAP_PERMANENT
            && (!by_identity || at->gap.reason == TELEMETRY_GAP_FORK
                || at->gap.reason == TELEMETRY_GAP_SESSION
                || at->gap.reason == TELEMETRY_GAP_RETENTION)) {
            return true;
        }
    }
    return false;
}

static const char *judge_row(const struct sim_telemetry *sim, const struct tally *tally, size_t i)
{
    const struct sim_given *row = &sim->given[i];

    if (tally->stored[i] > 1) {
        return "stored twice";
    }
    if (row->is_bad && tally->stored[i] > 0) {
        return "stored, though it cannot be decoded";
    }
    if (tally->stored[i] + tally->rejected[i] > 0) {
        return NULL;
    }
    if (tally->is_present[i]) {
        return is_on_record(sim, row, true) ? NULL : "at the agent, and not in the colony";
    }
    return !row->is_known || is_on_record(sim, row, false) ? NULL : "lost, and not on record";
}

/* --- every id --- */

struct generation_name {
    const char *agent;
    enum telemetry_type type;
    const struct telemetry_id *session;
    const struct telemetry_id *generation;
};

static void mark_rows(const struct sim_telemetry *sim,
                      const struct generation_name *name,
                      uint8_t *marks)
{
    for (size_t i = 0; i < sim->disk.row_count; i++) {
        const struct telemetry_memory_stored *row = &sim->disk.rows[i];
        if (row->type == name->type && strcmp(row->agent, name->agent) == 0
            && pawl__telemetry_id_equal(&row->session, name->session)
            && pawl__telemetry_id_equal(&row->generation, name->generation)) {
            marks[row->seq_id]++;
        }
    }
}

static void mark_gaps(const struct sim_telemetry *sim,
                      const struct generation_name *name,
                      uint8_t *marks)
{
    for (size_t i = 0; i < sim->disk.gap_count; i++) {
        const struct telemetry_memory_gap *at = &sim->disk.gaps[i];
        if (at->type == name->type && strcmp(at->agent, name->agent) == 0
            && at->gap.status != TELEMETRY_GAP_RECOVERED
            && pawl__telemetry_id_equal(&at->gap.session, name->session)
            && pawl__telemetry_id_equal(&at->gap.generation, name->generation)) {
            for (uint64_t seq_id = at->gap.start; seq_id <= at->gap.end; seq_id++) {
                marks[seq_id]++;
            }
        }
    }
}

static const char *judge_id(const struct telemetry_generation *generation,
                            uint64_t seq_id,
                            unsigned marks)
{
    bool is_due = generation->first <= seq_id && seq_id <= generation->last;

    if (marks > 1) {
        return "accounted for twice";
    }
    if (is_due && marks == 0) {
        return "passed by the checkpoint, and nowhere";
    }
    return !is_due && marks != 0 ? "outside of its generation" : NULL;
}

static bool judge_generation(const struct sim_telemetry *sim,
                             const struct telemetry_memory_cursor *cursor,
                             const struct telemetry_generation *generation,
                             char *violation,
                             size_t size)
{
    uint8_t marks[SIM_GIVEN_MAX * 2] = { 0 };
    const struct generation_name name = {
        cursor->agent, cursor->type, &cursor->cursor.session, &generation->id
    };

    mark_rows(sim, &name, marks);
    mark_gaps(sim, &name, marks);
    for (uint64_t seq_id = 1; seq_id < COUNT_OF(marks); seq_id++) {
        const char *why = judge_id(generation, seq_id, marks[seq_id]);
        if (why != NULL) {
            snprintf(violation,
                     size,
                     "id %" PRIu64 " of %s, type %zu, session %.8s, generation '%.8s': %s",
                     seq_id,
                     name.agent,
                     place_of(name.type),
                     name.session->text,
                     name.generation->text,
                     why);
            return false;
        }
    }
    return true;
}

static bool judge_ids(const struct sim_telemetry *sim, char *violation, size_t size)
{
    for (size_t i = 0; i < sim->disk.cursor_count; i++) {
        const struct telemetry_memory_cursor *cursor = &sim->disk.cursors[i];
        for (size_t j = 0; j < cursor->cursor.generation_count; j++) {
            if (!judge_generation(sim, cursor, &cursor->cursor.generations[j], violation, size)) {
                return false;
            }
        }
    }
    return true;
}

bool pawl__sim_telemetry_judge(struct sim_telemetry *sim, char *violation, size_t size)
{
    struct tally tally = { .stored = { 0 } };
    const char *why = sim->broken;

    if (why != NULL) {
        snprintf(violation, size, "%s", why);
        return false;
    }
    if (!judge_ids(sim, violation, size)) {
        return false;
    }
    count_rows(sim, &tally);
    for (size_t i = 0; i < sim->given_count; i++) {
        why = judge_row(sim, &tally, i);
        if (why != NULL) {
            snprintf(violation,
                     size,
                     "row %zu (agent %zu, type %zu, id %" PRIu64 "): %s",
                     i,
                     sim->given[i].agent,
                     place_of(sim->given[i].type),
                     sim->given[i].seq_id,
                     why);
            return false;
        }
    }
    return true;
}
