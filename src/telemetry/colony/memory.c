#include "telemetry/colony/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

static struct telemetry_memory_colony *as_memory(struct telemetry_colony_store *store)
{
    return (struct telemetry_memory_colony *)store; /* base is its first member */
}

static struct telemetry_memory_cursor *find_cursor(const struct telemetry_memory_colony *colony,
                                                   const char *agent,
                                                   enum telemetry_type type,
                                                   const struct telemetry_id *session)
{
    for (size_t i = 0; i < colony->cursor_count; i++) {
        struct telemetry_memory_cursor *at = &colony->cursors[i];
        if (at->type == type && strcmp(at->agent, agent) == 0
            && (session == NULL ? at->is_current
                                : pawl__telemetry_id_equal(&at->cursor.session, session))) {
            return at;
        }
    }
    return NULL;
}

static pawl_status load(struct telemetry_colony_store *base,
                        const char *agent,
                        enum telemetry_type type,
                        const struct telemetry_id *session,
                        struct telemetry_cursor *cursor,
                        pawl_error *reterr)
{
    const struct telemetry_memory_cursor *found =
        find_cursor(as_memory(base), agent, type, session);

    if (found == NULL) {
        pawl__telemetry_cursor_done(cursor);
        return PAWL_OK;
    }
    return pawl__telemetry_cursor_copy(cursor, &found->cursor, reterr);
}

/* --- one transaction --- */

static pawl_status put_cursor(struct telemetry_memory_colony *colony,
                              const struct telemetry_commit *commit,
                              const struct telemetry_cursor *cursor,
                              bool is_current,
                              pawl_error *reterr)
{
    struct telemetry_memory_cursor *at =
        find_cursor(colony, commit->agent, commit->type, &cursor->session);

    if (at == NULL) {
        struct telemetry_memory_cursor *cursors = pawl__grow(
            colony->cursors, colony->cursor_count, &colony->cursor_room, sizeof(*cursors));
        TRY(pawl__check_memory(cursors, "a checkpoint", reterr));
        colony->cursors = cursors;
        char *agent = strdup(commit->agent);
        TRY(pawl__check_memory(agent, "a checkpoint", reterr));
        at = &cursors[colony->cursor_count++];
        *at = (struct telemetry_memory_cursor){ .agent = agent, .type = commit->type };
    }
    at->is_current = is_current;
    return pawl__telemetry_cursor_copy(&at->cursor, cursor, reterr);
}

static pawl_status put_row(struct telemetry_memory_colony *colony,
                           const struct telemetry_commit *commit,
                           const struct telemetry_row *row,
                           pawl_error *reterr)
{
    struct telemetry_memory_stored *rows =
        pawl__grow(colony->rows, colony->row_count, &colony->row_room, sizeof(*rows));

    TRY(pawl__check_memory(rows, "a row", reterr));
    colony->rows = rows;
    struct telemetry_memory_stored stored = {
        .agent = strdup(commit->agent),
        .type = commit->type,
        .session = commit->session,
        .generation = commit->generation,
        .seq_id = row->seq_id,
        .bytes = pawl__view_dup(row->bytes),
        .len = row->bytes.len,
        .is_rejected = row->reason != NULL,
    };
    if (stored.agent == NULL || stored.bytes == NULL) {
        free(stored.agent);
        free(stored.bytes);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a row");
    }
    rows[colony->row_count++] = stored;
    return PAWL_OK;
}

static pawl_status put_gap(struct telemetry_memory_colony *colony,
                           const struct telemetry_commit *commit,
                           struct telemetry_gap *gap,
                           pawl_error *reterr)
{
    struct telemetry_memory_gap *at = NULL;

    for (size_t i = 0; gap->id != 0 && i < colony->gap_count; i++) {
        at = colony->gaps[i].gap.id == gap->id ? &colony->gaps[i] : at;
    }
    if (gap->id != 0 && at == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no gap %" PRIu64, gap->id);
    }
    if (at == NULL) {
        struct telemetry_memory_gap *gaps =
            pawl__grow(colony->gaps, colony->gap_count, &colony->gap_room, sizeof(*gaps));
        TRY(pawl__check_memory(gaps, "a gap", reterr));
        colony->gaps = gaps;
        char *agent = strdup(commit->agent);
        TRY(pawl__check_memory(agent, "a gap", reterr));
        at = &gaps[colony->gap_count++];
        *at = (struct telemetry_memory_gap){ .agent = agent, .type = commit->type };
        gap->id = ++colony->gap_ids;
    }
    at->gap = *gap;
    at->closed_us = pawl__telemetry_gap_is_open(gap->status) ? 0 : pawl__wall_us(colony->clock);
    return PAWL_OK;
}

static pawl_status run(struct telemetry_memory_colony *colony,
                       const struct telemetry_commit *commit,
                       pawl_error *reterr)
{
    if (commit->cursor != NULL) {
        struct telemetry_checkpoint stored = { .last = 0 };
        const struct telemetry_memory_cursor *at =
            find_cursor(colony, commit->agent, commit->type, NULL);
        if (at != NULL) {
            const struct telemetry_generation *current = pawl__telemetry_current(&at->cursor);
            stored =
                (struct telemetry_checkpoint){ at->cursor.session, current->id, current->last };
        }
        TRY(pawl__telemetry_commit_check(commit, &stored, reterr));
        if (commit->ended != NULL) {
            TRY(put_cursor(colony, commit, commit->ended, false, reterr));
        }
        TRY(put_cursor(colony, commit, commit->cursor, true, reterr));
    }
    for (size_t i = 0; i < commit->row_count; i++) {
        TRY(put_row(colony, commit, &commit->rows[i], reterr));
    }
    for (size_t i = 0; i < commit->gap_count; i++) {
        TRY(put_gap(colony, commit, &commit->gaps[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status copy_into(struct telemetry_memory_colony *copy,
                             const struct telemetry_memory_colony *from,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < from->cursor_count; i++) {
        const struct telemetry_commit commit = { .agent = from->cursors[i].agent,
                                                 .type = from->cursors[i].type };
        TRY(put_cursor(
            copy, &commit, &from->cursors[i].cursor, from->cursors[i].is_current, reterr));
    }
    for (size_t i = 0; i < from->gap_count; i++) {
        const struct telemetry_commit commit = { .agent = from->gaps[i].agent,
                                                 .type = from->gaps[i].type };
        struct telemetry_gap gap = from->gaps[i].gap;
        gap.id = 0;
        TRY(put_gap(copy, &commit, &gap, reterr));
        copy->gaps[i].gap.id = from->gaps[i].gap.id;
        copy->gaps[i].closed_us = from->gaps[i].closed_us;
    }
    copy->gap_ids = from->gap_ids;
    return PAWL_OK;
}

static void cut_rows(struct telemetry_memory_colony *colony, size_t count)
{
    while (colony->row_count > count) {
        struct telemetry_memory_stored *row = &colony->rows[--colony->row_count];
        free(row->agent);
        free(row->bytes);
    }
}

/* Rows only ever grow, so a failed transaction cuts them; cursors and gaps are changed in a copy. */
static pawl_status commit_all(struct telemetry_colony_store *base,
                              const struct telemetry_commit *commits,
                              size_t count,
                              pawl_error *reterr)
{
    struct telemetry_memory_colony *colony = as_memory(base);
    struct telemetry_memory_colony next = pawl__telemetry_memory_colony(colony->clock);
    size_t row_count = colony->row_count;
    pawl_status status = copy_into(&next, colony, reterr);

    next.rows = colony->rows;
    next.row_count = colony->row_count;
    next.row_room = colony->row_room;
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = run(&next, &commits[i], reterr);
    }
    if (status != PAWL_OK) {
        cut_rows(&next, row_count);
    }
    colony->rows = status == PAWL_OK ? NULL : next.rows;
    colony->row_room = status == PAWL_OK ? 0 : next.row_room;
    colony->row_count = status == PAWL_OK ? 0 : next.row_count;
    if (status != PAWL_OK) {
        next.rows = NULL;
        next.row_count = 0;
        pawl__telemetry_memory_colony_done(&next);
        return status;
    }
    pawl__telemetry_memory_colony_done(colony);
    *colony = next;
    return PAWL_OK;
}

/* --- the rest --- */

static pawl_status read_gaps(struct telemetry_colony_store *base,
                             const struct telemetry_gap_query *query,
                             struct telemetry_gaps *gaps,
                             pawl_error *reterr)
{
    const struct telemetry_memory_colony *colony = as_memory(base);
    size_t found = 0;

    for (size_t i = 0; i < colony->gap_count && found < query->limit; i++) {
        const struct telemetry_memory_gap *at = &colony->gaps[i];
        if (at->type == query->type && strcmp(at->agent, query->agent) == 0
            && at->gap.id > query->after_id && (query->statuses & 1u << at->gap.status) != 0
            && (pawl__telemetry_id_is_none(&query->session)
                || pawl__telemetry_id_equal(&query->session, &at->gap.session))) {
            TRY(pawl__telemetry_gaps_add(gaps, &at->gap, reterr));
            found++;
        }
    }
    return PAWL_OK;
}

static pawl_status clean_gaps(struct telemetry_colony_store *base,
                              int64_t before_us,
                              pawl_error *reterr)
{
    struct telemetry_memory_colony *colony = as_memory(base);
    size_t kept = 0;

    (void)reterr;
    for (size_t i = 0; i < colony->gap_count; i++) {
        if (colony->gaps[i].closed_us != 0 && colony->gaps[i].closed_us < before_us) {
            free(colony->gaps[i].agent);
        } else {
            colony->gaps[kept++] = colony->gaps[i];
        }
    }
    colony->gap_count = kept;
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
    const struct telemetry_memory_colony *colony = as_memory(base);

    (void)reterr;
    *ret_rows = *ret_rejected = 0;
    for (size_t i = 0; i < colony->row_count; i++) {
        const struct telemetry_memory_stored *row = &colony->rows[i];
        if (row->type == type && strcmp(row->agent, agent) == 0
            && pawl__telemetry_id_equal(&row->session, session)
            && pawl__telemetry_id_equal(&row->generation, generation)) {
            *ret_rows += !row->is_rejected;
            *ret_rejected += row->is_rejected;
        }
    }
    return PAWL_OK;
}

static pawl_status maintain(struct telemetry_colony_store *base, pawl_error *reterr)
{
    (void)base;
    (void)reterr;
    return PAWL_OK;
}

static void close_store(struct telemetry_colony_store *base)
{
    (void)base;
}

struct telemetry_memory_colony pawl__telemetry_memory_colony(struct pawl__clock *clock)
{
    static const struct telemetry_colony_ops ops = {
        .load = load,
        .commit = commit_all,
        .gaps = read_gaps,
        .clean_gaps = clean_gaps,
        .count = count_rows,
        .maintain = maintain,
        .close = close_store,
    };

    return (struct telemetry_memory_colony){ .base = { &ops }, .clock = clock };
}

void pawl__telemetry_memory_colony_done(struct telemetry_memory_colony *colony)
{
    cut_rows(colony, 0);
    for (size_t i = 0; i < colony->cursor_count; i++) {
        pawl__telemetry_cursor_done(&colony->cursors[i].cursor);
        free(colony->cursors[i].agent);
    }
    for (size_t i = 0; i < colony->gap_count; i++) {
        free(colony->gaps[i].agent);
    }
    free(colony->rows);
    free(colony->cursors);
    free(colony->gaps);
    *colony = (struct telemetry_memory_colony){ .base = colony->base, .clock = colony->clock };
}
