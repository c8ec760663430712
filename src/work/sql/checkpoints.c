/* Checkpoints of both databases. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/core/copy.h"
#include "work/sql/sql.h"

enum { PIECES_AT_ONCE = 8 };

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a checkpoint");
}

/* --- Rows: one for each piece of evidence, or a single one --- */

static pawl_status read_row(const struct work_columns *row,
                            pawl_checkpoint *ret_checkpoint,
                            pawl_error *reterr)
{
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .checkpoint_id = col_text(row, 0),
        .task_id = col_text(row, 1),
        .work_item_id = col_text(row, 2),
        .sequence_number = col_int(row, 4),
        .snapshot_data = col_text(row, 5),
        .metadata = col_text(row, 6),
        .created_at_us = col_time(row, 7),
        .verified = col_bool(row, 8),
    };
    pawl_view type = col_text(row, 3);

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

static bool is_gathered(const struct gathered *gathered, const struct work_columns *row)
{
    return gathered->any && pawl__view_equal(gathered->checkpoint.checkpoint_id, col_text(row, 0));
}

static pawl_status gather_piece(struct gathered *gathered,
                                const struct work_columns *row,
                                pawl_error *reterr)
{
    pawl_checkpoint *checkpoint = &gathered->checkpoint;

    if (col_is_null(row, 9)) {
        return PAWL_OK;
    }
    if (checkpoint->evidence_count == PAWL_EVIDENCE_MAX
        || !pawl__work_evidence_kind_parse(col_text(row, 9),
                                           &gathered->pieces[checkpoint->evidence_count].kind)) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "checkpoint '%.*s' has evidence of no kind, or too much",
                          VIEW_ARGS(checkpoint->checkpoint_id));
    }
    pawl_evidence *piece = &gathered->pieces[checkpoint->evidence_count];
    piece->size = sizeof(*piece);
    if (!pawl__arena_copy(&gathered->arena, col_text(row, 10), &piece->subject)
        || !pawl__arena_copy(&gathered->arena, col_text(row, 11), &piece->expected)) {
        return no_memory(reterr);
    }
    checkpoint->evidence_count++;
    checkpoint->evidence = gathered->pieces;
    return PAWL_OK;
}

static pawl_status gather(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct gathered *gathered = context;

    if (!is_gathered(gathered, row)) {
        pawl_checkpoint checkpoint;
        TRY(read_row(row, &checkpoint, reterr));
        pawl__arena_clear(&gathered->arena);
        if (!pawl__work_copy_checkpoint(&gathered->arena, &checkpoint, &gathered->checkpoint)) {
            return no_memory(reterr);
        }
        gathered->any = true;
    }
    return gather_piece(gathered, row, reterr);
}

static void gathered_done(struct gathered *gathered)
{
    pawl__arena_done(&gathered->arena);
}

/* --- Inside of a transaction --- */

static pawl_status sql_find(struct work_backend *base,
                            pawl_view checkpoint_id,
                            struct pawl__arena *arena,
                            pawl_checkpoint **ret_checkpoint,
                            pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    AUTO(gathered_done) struct gathered gathered = { .arena = ARENA_INIT };
    struct work_step steps[] = {
        /* An id is unique within its task by the table, and in all by this lock. */
        SQL_STEP(WORK_STMT_CHECKPOINT_ID_LOCK, sql_text(checkpoint_id)),
        SQL_STEP(WORK_STMT_CHECKPOINT_GET, sql_text(checkpoint_id)),
    };

    steps[1].on_row = gather;
    steps[1].context = &gathered;
    *ret_checkpoint = NULL;
    TRY(sql->ops->run(sql, steps, COUNT_OF(steps), reterr));
    if (!gathered.any) {
        return PAWL_OK;
    }
    pawl_checkpoint *copy = pawl__arena_take(arena, sizeof(*copy));
    if (copy == NULL || !pawl__work_copy_checkpoint(arena, &gathered.checkpoint, copy)) {
        return no_memory(reterr);
    }
    *ret_checkpoint = copy;
    return PAWL_OK;
}

/* A step with values of its own. */
struct piece_step {
    struct work_value values[6];
    enum work_statement statement;
};

static struct piece_step evidence_step(const pawl_checkpoint *checkpoint, size_t ordinal)
{
    const pawl_evidence *piece = &checkpoint->evidence[ordinal];

    return (struct piece_step){
        .statement = WORK_STMT_EVIDENCE_ADD,
        .values = { sql_text(checkpoint->task_id),
                    sql_text(checkpoint->checkpoint_id),
                    sql_int((int64_t)ordinal),
                    sql_name(pawl__work_evidence_kind_text(piece->kind)),
                    sql_text(piece->subject),
                    sql_optional(piece->expected) },
    };
}

static struct piece_step result_step(const struct work_now *now,
                                     const pawl_checkpoint *checkpoint,
                                     const struct work_checkpoint_result *result)
{
    return (struct piece_step){
        .statement = WORK_STMT_EVIDENCE_RESULT,
        .values = { sql_text(checkpoint->task_id),
                    sql_text(checkpoint->checkpoint_id),
                    sql_int((int64_t)result->ordinal),
                    sql_time(now->wall_us),
                    sql_bool(result->ok),
                    sql_optional(result->detail) },
    };
}

static pawl_status run_pieces(struct work_backend *base,
                              const struct piece_step *pieces,
                              size_t count,
                              pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct work_step steps[2 * PIECES_AT_ONCE];

    REQUIRE(count <= COUNT_OF(steps));
    for (size_t i = 0; i < count; i++) {
        steps[i] =
            pawl__work_step(pieces[i].statement, pieces[i].values, COUNT_OF(pieces[i].values));
    }
    return sql->ops->run(sql, steps, count, reterr);
}

/* Evidence with one good result each. */
static pawl_status add_evidence(struct work_backend *base,
                                const struct work_now *now,
                                const pawl_checkpoint *checkpoint,
                                pawl_error *reterr)
{
    for (size_t first = 0; first < checkpoint->evidence_count; first += PIECES_AT_ONCE) {
        struct piece_step pieces[2 * PIECES_AT_ONCE];
        size_t end = MIN(checkpoint->evidence_count, first + PIECES_AT_ONCE);
        size_t count = 0;
        for (size_t i = first; i < end; i++) {
            struct work_checkpoint_result good = { .ordinal = i, .ok = true };
            pieces[count++] = evidence_step(checkpoint, i);
            pieces[count++] = result_step(now, checkpoint, &good);
        }
        TRY(run_pieces(base, pieces, count, reterr));
    }
    return PAWL_OK;
}

static pawl_status sql_add(struct work_backend *base,
                           const struct work_now *now,
                           const pawl_checkpoint *checkpoint,
                           int64_t *ret_sequence,
                           pawl_error *reterr)
{
    TRY(pawl__work_sql_ask(base,
                           SQL_STEP(WORK_STMT_CHECKPOINT_ADD,
                                    sql_text(checkpoint->checkpoint_id),
                                    sql_text(checkpoint->task_id),
                                    sql_optional(checkpoint->work_item_id),
                                    sql_name(pawl__work_checkpoint_type_text(checkpoint->type)),
                                    sql_text(checkpoint->snapshot_data),
                                    sql_optional(checkpoint->metadata),
                                    sql_time(now->wall_us)),
                           pawl__work_sql_read_int,
                           ret_sequence,
                           reterr));
    return add_evidence(base, now, checkpoint, reterr);
}

static pawl_status sql_record(struct work_backend *base,
                              const struct work_now *now,
                              const pawl_checkpoint *checkpoint,
                              const struct work_checkpoint_result *results,
                              size_t count,
                              pawl_error *reterr)
{
    uint64_t changed = 0;
    bool verified = true;

    for (size_t i = 0; i < count; i++) {
        verified = verified && results[i].ok;
    }
    struct work_step step = SQL_STEP(WORK_STMT_CHECKPOINT_VERIFIED,
                                     sql_text(checkpoint->task_id),
                                     sql_text(checkpoint->checkpoint_id),
                                     sql_bool(verified));
    step.changed = &changed;
    TRY(pawl__work_sql_run(base, step, reterr));
    for (size_t first = 0; first < count && changed > 0; first += PIECES_AT_ONCE) {
        struct piece_step pieces[PIECES_AT_ONCE];
        size_t end = MIN(count, first + PIECES_AT_ONCE);
        for (size_t i = first; i < end; i++) {
            pieces[i - first] = result_step(now, checkpoint, &results[i]);
        }
        TRY(run_pieces(base, pieces, end - first, reterr));
    }
    return PAWL_OK;
}

static pawl_status show_light(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    pawl_checkpoint_type type;

    if (!pawl__work_checkpoint_type_parse(col_text(row, 1), &type)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a checkpoint has no type");
    }
    return pawl__work_go_on(
        walk->visit.checkpoint(walk->context, col_text(row, 0), type, col_bool(row, 2)));
}

static pawl_status sql_walk(struct work_backend *base,
                            pawl_view task_id,
                            work_checkpoint_light_visit visit,
                            void *context,
                            pawl_error *reterr)
{
    struct work_walk walk = { .visit.checkpoint = visit, .context = context };

    return pawl__work_sql_ask(
        base, SQL_STEP(WORK_STMT_CHECKPOINT_WALK, sql_text(task_id)), show_light, &walk, reterr);
}

static pawl_status sql_remove(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view task_id,
                              const pawl_view *ids,
                              size_t count,
                              bool archive,
                              pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    const struct work_step steps[] = {
        SQL_STEP(WORK_STMT_CHECKPOINT_ARCHIVE,
                 sql_text(task_id),
                 sql_texts(ids, count),
                 sql_time(now->wall_us)),
        SQL_STEP(WORK_STMT_CHECKPOINT_REMOVE, sql_text(task_id), sql_texts(ids, count)),
    };

    return sql->ops->run(sql, &steps[archive ? 0 : 1], archive ? 2 : 1, reterr);
}

/* --- Reading --- */

struct checkpoint_walk {
    struct gathered gathered;
    pawl_checkpoint_visit visit;
    void *context;
    uint64_t limit;
    uint64_t shown;
};

/* A checkpoint is whole when the next one begins, or after the last row. */
static pawl_status show_gathered(struct checkpoint_walk *walk)
{
    if (!walk->gathered.any) {
        return PAWL_OK;
    }
    walk->gathered.any = false;
    walk->shown++;
    return pawl__work_go_on(walk->visit(walk->context, &walk->gathered.checkpoint)
                            && walk->shown != walk->limit);
}

static pawl_status on_checkpoint_row(void *context,
                                     const struct work_columns *row,
                                     pawl_error *reterr)
{
    struct checkpoint_walk *walk = context;

    if (!is_gathered(&walk->gathered, row)) {
        TRY(show_gathered(walk));
    }
    return gather(&walk->gathered, row, reterr);
}

static pawl_status walk_checkpoints(struct work_backend *base,
                                    enum work_statement statement,
                                    const struct work_value *values,
                                    size_t value_count,
                                    struct checkpoint_walk *walk,
                                    pawl_error *reterr)
{
    pawl_status status = pawl__work_sql_read(
        base, pawl__work_step(statement, values, value_count), on_checkpoint_row, walk, reterr);

    if (status == PAWL_OK) {
        (void)show_gathered(walk);
    }
    gathered_done(&walk->gathered);
    return status;
}

static pawl_status sql_get(struct work_backend *base,
                           pawl_view checkpoint_id,
                           pawl_checkpoint_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct checkpoint_walk walk = { .visit = visit, .context = context };

    TRY(walk_checkpoints(
        base, WORK_STMT_CHECKPOINT_GET, SQL_ARGS(sql_text(checkpoint_id)), &walk, reterr));
    return walk.shown > 0
               ? PAWL_OK
               : pawl__fail(
                   reterr, PAWL_NOT_FOUND, "no checkpoint '%.*s'", VIEW_ARGS(checkpoint_id));
}

static enum work_statement list_statement(const struct work_checkpoint_query *query)
{
    if (query->newest_first) {
        return query->type != NULL ? WORK_STMT_CHECKPOINT_NEWEST_TYPE : WORK_STMT_CHECKPOINT_NEWEST;
    }
    return query->type != NULL ? WORK_STMT_CHECKPOINT_LIST_TYPE : WORK_STMT_CHECKPOINT_LIST;
}

static pawl_status sql_list(struct work_backend *base,
                            const struct work_checkpoint_query *query,
                            pawl_checkpoint_visit visit,
                            void *context,
                            pawl_error *reterr)
{
    struct checkpoint_walk walk = { .visit = visit, .context = context, .limit = query->limit };
    int64_t exactly = query->exactly;
    int64_t below = exactly != 0 && exactly < INT64_MAX ? exactly + 1 : query->below;
    int64_t from = exactly != 0 ? exactly : query->from;
    const struct work_value values[] = {
        sql_text(query->task_id),
        sql_optional(query->work_item_id),
        sql_bool(query->verified_only),
        sql_int(below == 0 ? INT64_MAX : below),
        sql_int(from == 0 ? INT64_MIN : from),
        sql_limit(query->limit),
        sql_name(query->type == NULL ? "" : pawl__work_checkpoint_type_text(*query->type)),
    };

    return walk_checkpoints(base,
                            list_statement(query),
                            values,
                            COUNT_OF(values) - (query->type == NULL),
                            &walk,
                            reterr);
}

static pawl_status sql_crowded(struct work_backend *base,
                               uint64_t more_than,
                               work_count_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    struct work_walk walk = { .visit.count = visit, .context = context };

    return pawl__work_sql_read(base,
                               SQL_STEP(WORK_STMT_CHECKPOINT_CROWDED,
                                        sql_int((int64_t)MIN(more_than, (uint64_t)INT64_MAX))),
                               pawl__work_sql_show_count,
                               &walk,
                               reterr);
}

/* --- Error boundaries: what the sweep leaves of a lease that ran out --- */

pawl_status pawl__work_sql_boundaries(struct work_backend *base,
                                      const struct work_now *now,
                                      const struct work_boundary *boundaries,
                                      size_t count,
                                      pawl_error *reterr)
{
    const size_t stride = sizeof(*boundaries);

    if (count == 0) {
        return PAWL_OK;
    }
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_BOUNDARY,
                                       sql_field_of(&boundaries->checkpoint_id, stride, count),
                                       sql_field_of(&boundaries->task_id, stride, count),
                                       sql_field_of(&boundaries->work_item_id, stride, count),
                                       sql_field_of(&boundaries->snapshot, stride, count),
                                       sql_time(now->wall_us)),
                              reterr);
}

const struct work_checkpoint_ops pawl__work_sql_checkpoints = {
    .find = sql_find,
    .add = sql_add,
    .record = sql_record,
    .walk = sql_walk,
    .remove = sql_remove,
    .get = sql_get,
    .list = sql_list,
    .crowded = sql_crowded,
};
