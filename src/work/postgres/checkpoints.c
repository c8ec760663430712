/* Checkpoints in PostgreSQL. Their numbers are given by the table's own trigger, behind the lock of
 * the task's counter. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/checkpoints/backend.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/core/copy.h"
#include "work/postgres/backend.h"

enum { ROW_EXISTS_MS_MAX = 10000, RESULTS_AT_ONCE = WORK_PG_STEPS_MAX / 2 };

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a checkpoint");
}

/* --- Rows: one for each piece of evidence, or a single one --- */

static pawl_status read_row(const struct pawl__pg_rows *rows,
                            size_t index,
                            pawl_checkpoint *ret_checkpoint,
                            pawl_error *reterr)
{
    pawl_checkpoint checkpoint = {
        .checkpoint_id = pawl__pg_get_text(rows, index, 0),
        .task_id = pawl__pg_get_text(rows, index, 1),
        .work_item_id = pawl__pg_get_text(rows, index, 2),
        .sequence_number = pawl__pg_get_i64(rows, index, 4),
        .snapshot_data = pawl__pg_get_text(rows, index, 5),
        .metadata = pawl__pg_get_text(rows, index, 6),
        .created_at_us = pawl__pg_get_time(rows, index, 7),
        .verified = pawl__pg_get_bool(rows, index, 8),
    };
    pawl_view type = pawl__pg_get_text(rows, index, 3);

    if (!pawl__work_checkpoint_type_parse(type, &checkpoint.type)) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "checkpoint '%.*s' has the type '%.*s'",
                          VIEW_ARGS(checkpoint.checkpoint_id),
                          VIEW_ARGS(type));
    }
    *ret_checkpoint = checkpoint;
    return PAWL_OK;
}

/* A checkpoint that is being put together from its rows. */
struct gathered {
    struct pawl__arena arena;
    pawl_checkpoint checkpoint;
    pawl_evidence pieces[PAWL_EVIDENCE_MAX];
    bool any;
};

static bool is_gathered(const struct gathered *gathered,
                        const struct pawl__pg_rows *rows,
                        size_t index)
{
    return gathered->any
           && pawl__view_equal(gathered->checkpoint.checkpoint_id,
                               pawl__pg_get_text(rows, index, 0));
}

static pawl_status gather_piece(struct gathered *gathered,
                                const struct pawl__pg_rows *rows,
                                size_t index,
                                pawl_error *reterr)
{
    pawl_checkpoint *checkpoint = &gathered->checkpoint;

    if (pawl__pg_is_null(rows, index, 9)) {
        return PAWL_OK;
    }
    if (checkpoint->evidence_count == PAWL_EVIDENCE_MAX
        || !pawl__work_evidence_kind_parse(pawl__pg_get_text(rows, index, 9),
                                           &gathered->pieces[checkpoint->evidence_count].kind)) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "checkpoint '%.*s' has evidence of no kind, or too much",
                          VIEW_ARGS(checkpoint->checkpoint_id));
    }
    pawl_evidence *piece = &gathered->pieces[checkpoint->evidence_count];
    if (!pawl__arena_copy(&gathered->arena, pawl__pg_get_text(rows, index, 10), &piece->subject)
        || !pawl__arena_copy(
            &gathered->arena, pawl__pg_get_text(rows, index, 11), &piece->expected)) {
        return no_memory(reterr);
    }
    checkpoint->evidence_count++;
    checkpoint->evidence = gathered->pieces;
    return PAWL_OK;
}

static pawl_status gather(struct gathered *gathered,
                          const struct pawl__pg_rows *rows,
                          size_t index,
                          pawl_error *reterr)
{
    if (!is_gathered(gathered, rows, index)) {
        pawl_checkpoint row;
        TRY(read_row(rows, index, &row, reterr));
        pawl__arena_clear(&gathered->arena);
        if (!pawl__work_copy_checkpoint(&gathered->arena, &row, &gathered->checkpoint)) {
            return no_memory(reterr);
        }
        gathered->any = true;
    }
    return gather_piece(gathered, rows, index, reterr);
}

/* --- Inside of a transaction --- */

static pawl_status gather_all(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct gathered *gathered = context;
    for (size_t i = 0; i < rows->count; i++) {
        TRY(gather(gathered, rows, i, reterr));
    }
    return PAWL_OK;
}

/* An id is unique within its task by the table, and in all by this lock. */
static pawl_status find_in(struct work_postgres *backend,
                           pawl_view checkpoint_id,
                           struct gathered *gathered,
                           pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_CHECKPOINT_ID_LOCK,
                                        PG_ARGS(pawl__pg_text(checkpoint_id)),
                                        NULL,
                                        NULL,
                                        reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_CHECKPOINT_GET,
                                        PG_ARGS(pawl__pg_text(checkpoint_id)),
                                        gather_all,
                                        gathered,
                                        reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

static pawl_status pg_find(struct work_backend *base,
                           pawl_view checkpoint_id,
                           struct pawl__arena *arena,
                           pawl_checkpoint **ret_checkpoint,
                           pawl_error *reterr)
{
    struct gathered gathered = { .arena = ARENA_INIT };
    pawl_status status = find_in(of(base), checkpoint_id, &gathered, reterr);
    pawl_checkpoint *kept = NULL;

    if (status == PAWL_OK && gathered.any) {
        kept = pawl__arena_take(arena, sizeof(*kept));
        if (kept == NULL || !pawl__work_copy_checkpoint(arena, &gathered.checkpoint, kept)) {
            status = no_memory(reterr);
        }
    }
    pawl__arena_done(&gathered.arena);
    *ret_checkpoint = kept;
    return status;
}

static pawl_status on_sequence(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    int64_t *sequence = context;

    (void)reterr;
    if (rows->count == 1) {
        *sequence = pawl__pg_get_i64(rows, 0, 0);
    }
    return PAWL_OK;
}

static pawl_status add_result(struct work_pg_trip *trip,
                              const struct work_now *now,
                              const pawl_checkpoint *checkpoint,
                              const struct work_checkpoint_result *result,
                              pawl_error *reterr)
{
    return pawl__work_pg_trip_add(trip,
                                  WORK_PG_EVIDENCE_RESULT,
                                  PG_ARGS(pawl__pg_text(checkpoint->task_id),
                                          pawl__pg_text(checkpoint->checkpoint_id),
                                          pawl__pg_i64((int64_t)result->ordinal),
                                          pawl__pg_time(now->wall_us),
                                          pawl__pg_bool(result->ok),
                                          pawl__work_pg_optional(result->detail)),
                                  NULL,
                                  NULL,
                                  reterr);
}

static pawl_status add_evidence(struct work_pg_trip *trip,
                                const pawl_checkpoint *checkpoint,
                                size_t ordinal,
                                pawl_error *reterr)
{
    const pawl_evidence *piece = &checkpoint->evidence[ordinal];

    return pawl__work_pg_trip_add(
        trip,
        WORK_PG_EVIDENCE_ADD,
        PG_ARGS(pawl__pg_text(checkpoint->task_id),
                pawl__pg_text(checkpoint->checkpoint_id),
                pawl__pg_i64((int64_t)ordinal),
                pawl__pg_text(pawl_view_of(pawl__work_evidence_kind_text(piece->kind))),
                pawl__pg_text(piece->subject),
                pawl__work_pg_optional(piece->expected)),
        NULL,
        NULL,
        reterr);
}

/* A few pieces of evidence with their good results: one trip. */
static pawl_status add_pieces(struct work_postgres *backend,
                              const struct work_now *now,
                              const pawl_checkpoint *checkpoint,
                              size_t first,
                              pawl_error *reterr)
{
    size_t end = MIN(checkpoint->evidence_count, first + RESULTS_AT_ONCE);
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    for (size_t i = first; i < end && status == PAWL_OK; i++) {
        struct work_checkpoint_result good = { .ordinal = i, .ok = true };
        status = add_evidence(&trip, checkpoint, i, reterr);
        if (status == PAWL_OK) {
            status = add_result(&trip, now, checkpoint, &good, reterr);
        }
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

static pawl_status pg_add(struct work_backend *base,
                          const struct work_now *now,
                          const pawl_checkpoint *checkpoint,
                          int64_t *ret_sequence,
                          pawl_error *reterr)
{
    const char *type = pawl__work_checkpoint_type_text(checkpoint->type);

    TRY(pawl__work_pg_ask(of(base),
                          WORK_PG_CHECKPOINT_ADD,
                          PG_ARGS(pawl__pg_text(checkpoint->checkpoint_id),
                                  pawl__pg_text(checkpoint->task_id),
                                  pawl__work_pg_optional(checkpoint->work_item_id),
                                  pawl__pg_text(pawl_view_of(type)),
                                  pawl__pg_text(checkpoint->snapshot_data),
                                  pawl__work_pg_optional(checkpoint->metadata),
                                  pawl__pg_time(now->wall_us)),
                          on_sequence,
                          ret_sequence,
                          reterr));
    for (size_t i = 0; i < checkpoint->evidence_count; i += RESULTS_AT_ONCE) {
        TRY(add_pieces(of(base), now, checkpoint, i, reterr));
    }
    return PAWL_OK;
}

static pawl_status pg_record(struct work_backend *base,
                             const struct work_now *now,
                             const pawl_checkpoint *checkpoint,
                             const struct work_checkpoint_result *results,
                             size_t count,
                             pawl_error *reterr)
{
    bool verified = true;

    for (size_t i = 0; i < count; i++) {
        verified = verified && results[i].ok;
    }
    pawl_status status = pawl__work_pg_ask(of(base),
                                           WORK_PG_CHECKPOINT_VERIFIED,
                                           PG_ARGS(pawl__pg_text(checkpoint->task_id),
                                                   pawl__pg_text(checkpoint->checkpoint_id),
                                                   pawl__pg_bool(verified)),
                                           NULL,
                                           NULL,
                                           reterr);
    for (size_t i = 0; i < count && status == PAWL_OK; i += RESULTS_AT_ONCE) {
        struct work_pg_trip trip;
        status = pawl__work_pg_trip_start(&trip, of(base), reterr);
        for (size_t k = i; k < MIN(count, i + RESULTS_AT_ONCE) && status == PAWL_OK; k++) {
            status = add_result(&trip, now, checkpoint, &results[k], reterr);
        }
        status = pawl__work_pg_trip_end(&trip, status, reterr);
    }
    return status;
}

struct light_walk {
    work_checkpoint_light_visit visit;
    void *context;
};

static pawl_status show_light(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct light_walk *walk = context;

    for (size_t i = 0; i < rows->count; i++) {
        pawl_checkpoint_type type;
        if (!pawl__work_checkpoint_type_parse(pawl__pg_get_text(rows, i, 1), &type)) {
            return pawl__fail(reterr, PAWL_CORRUPT, "a checkpoint has no type");
        }
        if (!walk->visit(walk->context,
                         pawl__pg_get_text(rows, i, 0),
                         type,
                         pawl__pg_get_bool(rows, i, 2))) {
            break;
        }
    }
    return PAWL_OK;
}

static pawl_status pg_walk(struct work_backend *base,
                           pawl_view task_id,
                           work_checkpoint_light_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct light_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_ask(of(base),
                             WORK_PG_CHECKPOINT_WALK,
                             PG_ARGS(pawl__pg_text(task_id)),
                             show_light,
                             &walk,
                             reterr);
}

static pawl_status pg_remove(struct work_backend *base,
                             const struct work_now *now,
                             pawl_view task_id,
                             const pawl_view *ids,
                             size_t count,
                             bool archive,
                             pawl_error *reterr)
{
    struct pawl__pg_value given = pawl__work_pg_ids(of(base), 0, ids, count);
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, of(base), reterr);

    if (status == PAWL_OK && archive) {
        status = pawl__work_pg_trip_add(
            &trip,
            WORK_PG_CHECKPOINT_ARCHIVE,
            PG_ARGS(pawl__pg_text(task_id), given, pawl__pg_time(now->wall_us)),
            NULL,
            NULL,
            reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_CHECKPOINT_REMOVE,
                                        PG_ARGS(pawl__pg_text(task_id), given),
                                        NULL,
                                        NULL,
                                        reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

/* --- Reading --- */

struct checkpoint_walk {
    struct gathered gathered;
    pawl_checkpoint_visit visit;
    void *context;
    bool shown_any;
    bool stopped;
    pawl_status status;
    pawl_error *reterr;
};

static void show_gathered(struct checkpoint_walk *walk)
{
    if (walk->gathered.any && !walk->stopped && walk->status == PAWL_OK) {
        walk->shown_any = true;
        walk->stopped = !walk->visit(walk->context, &walk->gathered.checkpoint);
        walk->gathered.any = false;
    }
}

static bool on_checkpoint_row(void *context, const struct pawl__pg_rows *rows)
{
    struct checkpoint_walk *walk = context;

    if (walk->gathered.any && !is_gathered(&walk->gathered, rows, 0)) {
        show_gathered(walk);
    }
    if (!walk->stopped) {
        walk->status = gather(&walk->gathered, rows, 0, walk->reterr);
    }
    return !walk->stopped && walk->status == PAWL_OK;
}

static pawl_status walk_checkpoints(struct work_backend *base,
                                    size_t statement,
                                    const struct pawl__pg_value *values,
                                    size_t value_count,
                                    struct checkpoint_walk *walk,
                                    pawl_error *reterr)
{
    walk->reterr = reterr;
    pawl_status status =
        pawl__work_pg_walk(base, statement, values, value_count, on_checkpoint_row, walk, reterr);

    if (status == PAWL_OK) {
        show_gathered(walk);
        status = walk->status;
    }
    pawl__arena_done(&walk->gathered.arena);
    return status;
}

static pawl_status pg_get(struct work_backend *base,
                          pawl_view checkpoint_id,
                          pawl_checkpoint_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    struct checkpoint_walk walk = { .visit = visit, .context = context };
    pawl_status status = walk_checkpoints(
        base, WORK_PG_CHECKPOINT_GET, PG_ARGS(pawl__pg_text(checkpoint_id)), &walk, reterr);

    return status == PAWL_OK && !walk.shown_any ? pawl__fail(
               reterr, PAWL_NOT_FOUND, "no checkpoint '%.*s'", VIEW_ARGS(checkpoint_id))
                                                : status;
}

static pawl_status pg_list(struct work_backend *base,
                           const struct work_checkpoint_query *query,
                           pawl_checkpoint_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct checkpoint_walk walk = { .visit = visit, .context = context };
    int64_t exactly = query->exactly;
    int64_t below = exactly != 0 && exactly < INT64_MAX ? exactly + 1 : query->below;
    int64_t from = exactly != 0 ? exactly : query->from;
    bool limited = query->limit > 0 && query->limit <= INT64_MAX;
    const char *type = query->type == NULL ? "" : pawl__work_checkpoint_type_text(*query->type);

    return walk_checkpoints(
        base,
        query->newest_first ? WORK_PG_CHECKPOINT_NEWEST : WORK_PG_CHECKPOINT_LIST,
        PG_ARGS(pawl__pg_text(query->task_id),
                pawl__work_pg_optional(query->work_item_id),
                pawl__work_pg_optional(pawl_view_of(type)),
                pawl__pg_bool(query->verified_only),
                pawl__pg_i64(below == 0 ? INT64_MAX : below),
                pawl__pg_i64(from == 0 ? INT64_MIN : from),
                limited ? pawl__pg_i64((int64_t)query->limit) : pawl__pg_null()),
        &walk,
        reterr);
}

struct crowded_walk {
    work_checkpoint_task_visit visit;
    void *context;
};

static bool show_crowded(void *context, const struct pawl__pg_rows *rows)
{
    const struct crowded_walk *walk = context;

    return walk->visit(
        walk->context, pawl__pg_get_text(rows, 0, 0), (uint64_t)pawl__pg_get_i64(rows, 0, 1));
}

static pawl_status pg_crowded(struct work_backend *base,
                              uint64_t more_than,
                              work_checkpoint_task_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct crowded_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(base,
                              WORK_PG_CHECKPOINT_CROWDED,
                              PG_ARGS(pawl__pg_i64((int64_t)MIN(more_than, (uint64_t)INT64_MAX))),
                              show_crowded,
                              &walk,
                              reterr);
}

static pawl_status pg_row_exists(struct work_backend *base,
                                 pawl_view select,
                                 bool *ret_exists,
                                 pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__work_pg_borrow(base, &borrowed, reterr));
    return pawl__pg_row_exists(borrowed.pg, select, ROW_EXISTS_MS_MAX, ret_exists, reterr);
}

const struct work_checkpoint_ops pawl__work_pg_checkpoints = {
    .find = pg_find,
    .add = pg_add,
    .record = pg_record,
    .walk = pg_walk,
    .remove = pg_remove,
    .get = pg_get,
    .list = pg_list,
    .crowded = pg_crowded,
    .row_exists = pg_row_exists,
};
