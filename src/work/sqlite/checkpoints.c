/* Checkpoints in SQLite. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/checkpoints/backend.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/core/copy.h"
#include "work/sqlite/backend.h"

enum { ROW_EXISTS_MS_MAX = 10000 };

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* --- Rows --- */

static pawl_status read_row(struct pawl__sqlite_stmt *stmt,
                            pawl_checkpoint *ret_checkpoint,
                            pawl_error *reterr)
{
    pawl_checkpoint checkpoint = {
        .checkpoint_id = pawl__sqlite_text(stmt, 0),
        .task_id = pawl__sqlite_text(stmt, 1),
        .work_item_id = pawl__sqlite_text(stmt, 2),
        .sequence_number = pawl__sqlite_i64(stmt, 4),
        .snapshot_data = pawl__sqlite_text(stmt, 5),
        .metadata = pawl__sqlite_text(stmt, 6),
        .created_at_us = pawl__work_time(stmt, 7),
        .verified = pawl__sqlite_i64(stmt, 8) != 0,
    };
    pawl_view type = pawl__sqlite_text(stmt, 3);

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

/* Its evidence, kept in the arena. */
static pawl_status read_evidence(struct pawl__sqlite *db,
                                 struct pawl__arena *arena,
                                 pawl_checkpoint *checkpoint,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_EVIDENCE_GET);
    pawl_evidence *pieces = NULL;
    size_t room = 0;
    bool more = false;

    pawl__sqlite_bind_text(&stmt, 1, checkpoint->checkpoint_id);
    TRY(pawl__sqlite_next(&stmt, &more, reterr));
    while (more) {
        if (checkpoint->evidence_count == room) {
            size_t larger = room == 0 ? 4 : 2 * room;
            pawl_evidence *moved = pawl__arena_take(arena, larger * sizeof(*moved));
            if (moved == NULL) {
                return pawl__fail(reterr, PAWL_NOMEM, "evidence");
            }
            for (size_t i = 0; i < room; i++) {
                moved[i] = pieces[i];
            }
            pieces = moved;
            room = larger;
        }
        pawl_evidence *piece = &pieces[checkpoint->evidence_count];
        if (!pawl__work_evidence_kind_parse(pawl__sqlite_text(&stmt, 0), &piece->kind)) {
            return pawl__fail(reterr,
                              PAWL_CORRUPT,
                              "checkpoint '%.*s' has evidence of no kind",
                              VIEW_ARGS(checkpoint->checkpoint_id));
        }
        if (!pawl__arena_copy(arena, pawl__sqlite_text(&stmt, 1), &piece->subject)
            || !pawl__arena_copy(arena, pawl__sqlite_text(&stmt, 2), &piece->expected)) {
            return pawl__fail(reterr, PAWL_NOMEM, "evidence");
        }
        checkpoint->evidence_count++;
        checkpoint->evidence = pieces;
        TRY(pawl__sqlite_next(&stmt, &more, reterr));
    }
    return PAWL_OK;
}

/* Shows the rows of `stmt` until `visit` says no. */
static pawl_status walk_rows(struct pawl__sqlite *db,
                             struct pawl__sqlite_stmt *stmt,
                             pawl_checkpoint_visit visit,
                             void *context,
                             bool *ret_any,
                             pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    pawl_status status = PAWL_OK;

    for (bool goes_on = true; goes_on && status == PAWL_OK;) {
        pawl_checkpoint checkpoint;
        bool more = false;
        pawl__arena_clear(&arena);
        status = pawl__sqlite_next(stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            break;
        }
        status = read_row(stmt, &checkpoint, reterr);
        if (status == PAWL_OK) {
            status = read_evidence(db, &arena, &checkpoint, reterr);
        }
        if (status == PAWL_OK) {
            *ret_any = true;
            goes_on = visit(context, &checkpoint);
        }
    }
    pawl__arena_done(&arena);
    return status;
}

/* --- Inside of a transaction --- */

static pawl_status sqlite_find(struct work_backend *base,
                               pawl_view checkpoint_id,
                               struct pawl__arena *arena,
                               pawl_checkpoint **ret_checkpoint,
                               pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_GET);
    pawl_checkpoint row;
    bool more = false;

    *ret_checkpoint = NULL;
    pawl__sqlite_bind_text(&stmt, 1, checkpoint_id);
    pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
    if (status != PAWL_OK || !more) {
        return status;
    }
    status = read_row(&stmt, &row, reterr);
    if (status == PAWL_OK) {
        status = read_evidence(db, arena, &row, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    pawl_checkpoint *kept = pawl__arena_take(arena, sizeof(*kept));
    if (kept == NULL || !pawl__work_copy_checkpoint(arena, &row, kept)) {
        return pawl__fail(reterr, PAWL_NOMEM, "checkpoint");
    }
    *ret_checkpoint = kept;
    return PAWL_OK;
}

static pawl_status insert(struct pawl__sqlite *db,
                          const struct work_now *now,
                          const pawl_checkpoint *checkpoint,
                          int64_t *ret_sequence,
                          pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_ADD);
    bool row = false;

    pawl__sqlite_bind_text(&stmt, 1, checkpoint->checkpoint_id);
    pawl__sqlite_bind_text(&stmt, 2, checkpoint->task_id);
    pawl__work_bind_optional(&stmt, 3, checkpoint->work_item_id);
    pawl__sqlite_bind_text(
        &stmt, 4, pawl_view_of(pawl__work_checkpoint_type_text(checkpoint->type)));
    pawl__sqlite_bind_text(&stmt, 5, checkpoint->snapshot_data);
    pawl__work_bind_optional(&stmt, 6, checkpoint->metadata);
    pawl__work_bind_time(&stmt, 7, now->wall_us);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_sequence = pawl__sqlite_i64(&stmt, 0);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    return PAWL_OK;
}

static pawl_status insert_evidence(struct pawl__sqlite *db,
                                   const pawl_checkpoint *checkpoint,
                                   size_t ordinal,
                                   pawl_error *reterr)
{
    const pawl_evidence *piece = &checkpoint->evidence[ordinal];
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_EVIDENCE_ADD);

    pawl__sqlite_bind_text(&stmt, 1, checkpoint->task_id);
    pawl__sqlite_bind_text(&stmt, 2, checkpoint->checkpoint_id);
    pawl__sqlite_bind_i64(&stmt, 3, (int64_t)ordinal);
    pawl__sqlite_bind_text(&stmt, 4, pawl_view_of(pawl__work_evidence_kind_text(piece->kind)));
    pawl__sqlite_bind_text(&stmt, 5, piece->subject);
    pawl__work_bind_optional(&stmt, 6, piece->expected);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status insert_result(struct pawl__sqlite *db,
                                 const struct work_now *now,
                                 const pawl_checkpoint *checkpoint,
                                 const struct work_checkpoint_result *result,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_EVIDENCE_RESULT);

    pawl__sqlite_bind_text(&stmt, 1, checkpoint->task_id);
    pawl__sqlite_bind_text(&stmt, 2, checkpoint->checkpoint_id);
    pawl__sqlite_bind_i64(&stmt, 3, (int64_t)result->ordinal);
    pawl__work_bind_time(&stmt, 4, now->wall_us);
    pawl__sqlite_bind_i64(&stmt, 5, result->ok);
    pawl__work_bind_optional(&stmt, 6, result->detail);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_add(struct work_backend *base,
                              const struct work_now *now,
                              const pawl_checkpoint *checkpoint,
                              int64_t *ret_sequence,
                              pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;

    TRY(insert(db, now, checkpoint, ret_sequence, reterr));
    for (size_t i = 0; i < checkpoint->evidence_count; i++) {
        struct work_checkpoint_result good = { .ordinal = i, .ok = true };
        TRY(insert_evidence(db, checkpoint, i, reterr));
        TRY(insert_result(db, now, checkpoint, &good, reterr));
    }
    return PAWL_OK;
}

static pawl_status set_verified(struct pawl__sqlite *db,
                                pawl_view checkpoint_id,
                                bool verified,
                                pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_VERIFIED);

    pawl__sqlite_bind_text(&stmt, 1, checkpoint_id);
    pawl__sqlite_bind_i64(&stmt, 2, verified);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_record(struct work_backend *base,
                                 const struct work_now *now,
                                 const pawl_checkpoint *checkpoint,
                                 const struct work_checkpoint_result *results,
                                 size_t count,
                                 pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;
    bool verified = true;

    for (size_t i = 0; i < count; i++) {
        verified = verified && results[i].ok;
    }
    pawl_status status = set_verified(db, checkpoint->checkpoint_id, verified, reterr);
    if (status != PAWL_OK || pawl__sqlite_changes(db) == 0) {
        return status;
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = insert_result(db, now, checkpoint, &results[i], reterr);
    }
    return status;
}

static pawl_status sqlite_walk(struct work_backend *base,
                               pawl_view task_id,
                               work_checkpoint_light_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_CHECKPOINT_WALK);

    pawl__sqlite_bind_text(&stmt, 1, task_id);
    for (;;) {
        pawl_checkpoint_type type;
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        if (!pawl__work_checkpoint_type_parse(pawl__sqlite_text(&stmt, 1), &type)) {
            return pawl__fail(reterr, PAWL_CORRUPT, "a checkpoint has no type");
        }
        if (!visit(context, pawl__sqlite_text(&stmt, 0), type, pawl__sqlite_i64(&stmt, 2) != 0)) {
            return PAWL_OK;
        }
    }
}

static pawl_status remove_one(struct pawl__sqlite *db, pawl_view checkpoint_id, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_REMOVE);

    pawl__sqlite_bind_text(&stmt, 1, checkpoint_id);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status archive_one(struct pawl__sqlite *db,
                               const struct work_now *now,
                               pawl_view checkpoint_id,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_ARCHIVE);

    pawl__sqlite_bind_text(&stmt, 1, checkpoint_id);
    pawl__work_bind_time(&stmt, 2, now->wall_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_remove(struct work_backend *base,
                                 const struct work_now *now,
                                 pawl_view task_id,
                                 const pawl_view *ids,
                                 size_t count,
                                 bool archive,
                                 pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;
    (void)task_id;
    for (size_t i = 0; i < count; i++) {
        if (archive) {
            TRY(archive_one(db, now, ids[i], reterr));
        }
        TRY(remove_one(db, ids[i], reterr));
    }
    return PAWL_OK;
}

/* --- Reading --- */

static pawl_status get_in(struct pawl__sqlite *db,
                          pawl_view checkpoint_id,
                          pawl_checkpoint_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_GET);
    bool any = false;

    pawl__sqlite_bind_text(&stmt, 1, checkpoint_id);
    pawl_status status = walk_rows(db, &stmt, visit, context, &any, reterr);
    return status == PAWL_OK && !any ? pawl__fail(
               reterr, PAWL_NOT_FOUND, "no checkpoint '%.*s'", VIEW_ARGS(checkpoint_id))
                                     : status;
}

static pawl_status sqlite_get(struct work_backend *base,
                              pawl_view checkpoint_id,
                              pawl_checkpoint_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return get_in(reader.db, checkpoint_id, visit, context, reterr);
}

static size_t statement_of(const struct work_checkpoint_query *query)
{
    if (query->newest_first) {
        return query->type != NULL ? WORK_SQL_CHECKPOINT_NEWEST_TYPE : WORK_SQL_CHECKPOINT_NEWEST;
    }
    return query->type != NULL ? WORK_SQL_CHECKPOINT_LIST_TYPE : WORK_SQL_CHECKPOINT_LIST;
}

static pawl_status list_in(struct pawl__sqlite *db,
                           const struct work_checkpoint_query *query,
                           pawl_checkpoint_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, statement_of(query));
    int64_t exactly = query->exactly;
    int64_t below = exactly != 0 && exactly < INT64_MAX ? exactly + 1 : query->below;
    int64_t from = exactly != 0 ? exactly : query->from;
    bool any = false;

    pawl__sqlite_bind_text(&stmt, 1, query->task_id);
    pawl__work_bind_optional(&stmt, 2, query->work_item_id);
    if (query->type != NULL) {
        pawl__sqlite_bind_text(
            &stmt, 3, pawl_view_of(pawl__work_checkpoint_type_text(*query->type)));
    }
    pawl__sqlite_bind_i64(&stmt, 4, query->verified_only);
    pawl__sqlite_bind_i64(&stmt, 5, below == 0 ? INT64_MAX : below);
    pawl__sqlite_bind_i64(&stmt, 6, from == 0 ? INT64_MIN : from);
    pawl__sqlite_bind_i64(
        &stmt, 7, query->limit == 0 || query->limit > INT64_MAX ? -1 : (int64_t)query->limit);
    return walk_rows(db, &stmt, visit, context, &any, reterr);
}

static pawl_status sqlite_list(struct work_backend *base,
                               const struct work_checkpoint_query *query,
                               pawl_checkpoint_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return list_in(reader.db, query, visit, context, reterr);
}

static pawl_status crowded_in(struct pawl__sqlite *db,
                              uint64_t more_than,
                              work_checkpoint_task_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_CHECKPOINT_CROWDED);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)more_than);
    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        if (!visit(context, pawl__sqlite_text(&stmt, 0), (uint64_t)pawl__sqlite_i64(&stmt, 1))) {
            return PAWL_OK;
        }
    }
}

static pawl_status sqlite_crowded(struct work_backend *base,
                                  uint64_t more_than,
                                  work_checkpoint_task_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return crowded_in(reader.db, more_than, visit, context, reterr);
}

static pawl_status sqlite_row_exists(struct work_backend *base,
                                     pawl_view select,
                                     bool *ret_exists,
                                     pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = pawl__view_dup(select);
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "evidence");
    }
    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return pawl__sqlite_row_exists(reader.db, text, ROW_EXISTS_MS_MAX, ret_exists, reterr);
}

const struct work_checkpoint_ops pawl__work_sqlite_checkpoints = {
    .find = sqlite_find,
    .add = sqlite_add,
    .record = sqlite_record,
    .walk = sqlite_walk,
    .remove = sqlite_remove,
    .get = sqlite_get,
    .list = sqlite_list,
    .crowded = sqlite_crowded,
    .row_exists = sqlite_row_exists,
};
