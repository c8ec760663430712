/* Schedules in SQLite. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/schedules/backend.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

static pawl_schedule row_of(struct pawl__sqlite_stmt *stmt)
{
    return (pawl_schedule){
        .schedule_id = pawl__sqlite_text(stmt, 0),
        .cron = pawl__sqlite_text(stmt, 1),
        .task_id = pawl__sqlite_text(stmt, 2),
        .work_type = pawl__sqlite_text(stmt, 3),
        .input_data = pawl__sqlite_text(stmt, 4),
        .priority = (int32_t)pawl__sqlite_i64(stmt, 5),
        .max_retries = (int32_t)pawl__sqlite_i64(stmt, 6),
        .next_slot_us = pawl__work_time(stmt, 7),
        .last_slot_us = pawl__work_time(stmt, 8),
    };
}

static pawl_status sqlite_load(struct work_backend *base,
                               pawl_view schedule_id,
                               struct pawl__arena *arena,
                               pawl_schedule **ret_schedule,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_GET);
    bool more = false;

    *ret_schedule = NULL;
    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
    if (status != PAWL_OK || !more) {
        return status;
    }
    pawl_schedule row = row_of(&stmt);
    pawl_schedule *kept = pawl__arena_take(arena, sizeof(*kept));
    if (kept == NULL || !pawl__work_copy_schedule(arena, &row, kept)) {
        return pawl__fail(reterr, PAWL_NOMEM, "schedule");
    }
    *ret_schedule = kept;
    return PAWL_OK;
}

static pawl_status sqlite_put(struct work_backend *base,
                              const struct work_now *now,
                              const pawl_schedule *schedule,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_PUT);

    pawl__sqlite_bind_text(&stmt, 1, schedule->schedule_id);
    pawl__sqlite_bind_text(&stmt, 2, schedule->cron);
    pawl__work_bind_optional(&stmt, 3, schedule->task_id);
    pawl__sqlite_bind_text(&stmt, 4, schedule->work_type);
    pawl__work_bind_optional(&stmt, 5, schedule->input_data);
    pawl__sqlite_bind_i64(&stmt, 6, schedule->priority);
    pawl__sqlite_bind_i64(&stmt, 7, schedule->max_retries);
    pawl__work_bind_time(&stmt, 8, schedule->next_slot_us);
    pawl__work_bind_time(&stmt, 9, now->wall_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_remove(struct work_backend *base,
                                 pawl_view schedule_id,
                                 bool *ret_removed,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_REMOVE);

    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    TRY(pawl__sqlite_run(&stmt, reterr));
    *ret_removed = pawl__sqlite_changes(of(base)->writer) > 0;
    return PAWL_OK;
}

static pawl_status sqlite_fired(struct work_backend *base,
                                pawl_view schedule_id,
                                int64_t slot_us,
                                bool *ret_fired,
                                pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_FIRED);

    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    pawl__work_bind_time(&stmt, 2, slot_us);
    return pawl__sqlite_next(&stmt, ret_fired, reterr);
}

static pawl_status sqlite_fire(struct work_backend *base,
                               pawl_view schedule_id,
                               int64_t slot_us,
                               pawl_view work_item_id,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_FIRE);

    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    pawl__work_bind_time(&stmt, 2, slot_us);
    pawl__sqlite_bind_text(&stmt, 3, work_item_id);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_forget(struct work_backend *base,
                                 pawl_view schedule_id,
                                 int64_t before_us,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_FORGET);

    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    pawl__work_bind_time(&stmt, 2, before_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_move(struct work_backend *base,
                               const struct work_now *now,
                               pawl_view schedule_id,
                               int64_t next_slot_us,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_SCHEDULE_MOVE);

    pawl__sqlite_bind_text(&stmt, 1, schedule_id);
    pawl__work_bind_time(&stmt, 2, next_slot_us);
    pawl__work_bind_time(&stmt, 3, now->wall_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status list_in(struct pawl__sqlite *db,
                           pawl_schedule_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_SCHEDULE_LIST);

    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        pawl_schedule row = row_of(&stmt);
        if (!visit(context, &row)) {
            return PAWL_OK;
        }
    }
}

static pawl_status sqlite_list(struct work_backend *base,
                               pawl_schedule_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return list_in(reader.db, visit, context, reterr);
}

const struct work_schedule_ops pawl__work_sqlite_schedules = {
    .load = sqlite_load,
    .put = sqlite_put,
    .remove = sqlite_remove,
    .fired = sqlite_fired,
    .fire = sqlite_fire,
    .forget = sqlite_forget,
    .move = sqlite_move,
    .list = sqlite_list,
};
