/* Schedules of both databases. */
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/sql/sql.h"

static pawl_schedule schedule_of(const struct work_columns *row)
{
    return (pawl_schedule){
        .size = sizeof(pawl_schedule),
        .schedule_id = col_text(row, 0),
        .cron = col_text(row, 1),
        .task_id = col_text(row, 2),
        .work_type = col_text(row, 3),
        .input_data = col_text(row, 4),
        .priority = (int32_t)col_int(row, 5),
        .max_retries = (int32_t)col_int(row, 6),
        .next_slot_us = col_time(row, 7),
        .last_slot_us = col_time(row, 8),
    };
}

struct schedule_load {
    struct pawl__arena *arena;
    pawl_schedule *schedule;
};

static pawl_status load_row(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct schedule_load *load = context;
    pawl_schedule schedule = schedule_of(row);
    pawl_schedule *copy = pawl__arena_take(load->arena, sizeof(*copy));

    if (copy == NULL || !pawl__work_copy_schedule(load->arena, &schedule, copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a schedule");
    }
    load->schedule = copy;
    return PAWL_OK;
}

static pawl_status sql_load(struct work_backend *base,
                            pawl_view schedule_id,
                            struct pawl__arena *arena,
                            pawl_schedule **ret_schedule,
                            pawl_error *reterr)
{
    struct schedule_load load = { .arena = arena };
    pawl_status status = pawl__work_sql_lock(
        base, SQL_STEP(WORK_STMT_SCHEDULE_LOAD, sql_text(schedule_id)), load_row, &load, reterr);

    *ret_schedule = load.schedule;
    return status;
}

static pawl_status sql_put(struct work_backend *base,
                           const struct work_now *now,
                           const pawl_schedule *schedule,
                           pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_SCHEDULE_PUT,
                                       sql_text(schedule->schedule_id),
                                       sql_text(schedule->cron),
                                       sql_optional(schedule->task_id),
                                       sql_text(schedule->work_type),
                                       sql_optional(schedule->input_data),
                                       sql_int(schedule->priority),
                                       sql_int(schedule->max_retries),
                                       sql_optional_time(schedule->next_slot_us),
                                       sql_time(now->wall_us)),
                              reterr);
}

static pawl_status note_any(void *context, const struct work_columns *row, pawl_error *reterr)
{
    bool *any = context;

    (void)row;
    (void)reterr;
    *any = true;
    return PAWL_OK;
}

static pawl_status sql_remove(struct work_backend *base,
                              pawl_view schedule_id,
                              bool *ret_removed,
                              pawl_error *reterr)
{
    *ret_removed = false;
    return pawl__work_sql_ask(base,
                              SQL_STEP(WORK_STMT_SCHEDULE_REMOVE, sql_text(schedule_id)),
                              note_any,
                              ret_removed,
                              reterr);
}

static pawl_status sql_fired(struct work_backend *base,
                             pawl_view schedule_id,
                             int64_t slot_us,
                             bool *ret_fired,
                             pawl_error *reterr)
{
    *ret_fired = false;
    return pawl__work_sql_ask(
        base,
        SQL_STEP(WORK_STMT_SCHEDULE_FIRED, sql_text(schedule_id), sql_time(slot_us)),
        note_any,
        ret_fired,
        reterr);
}

static pawl_status sql_fire(struct work_backend *base,
                            pawl_view schedule_id,
                            int64_t slot_us,
                            pawl_view work_item_id,
                            pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_SCHEDULE_FIRE,
                                       sql_text(schedule_id),
                                       sql_time(slot_us),
                                       sql_text(work_item_id)),
                              reterr);
}

static pawl_status sql_forget(struct work_backend *base,
                              pawl_view schedule_id,
                              int64_t before_us,
                              pawl_error *reterr)
{
    return pawl__work_sql_run(
        base,
        SQL_STEP(WORK_STMT_SCHEDULE_FORGET, sql_text(schedule_id), sql_time(before_us)),
        reterr);
}

static pawl_status sql_move(struct work_backend *base,
                            const struct work_now *now,
                            pawl_view schedule_id,
                            int64_t next_slot_us,
                            pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_SCHEDULE_MOVE,
                                       sql_text(schedule_id),
                                       sql_optional_time(next_slot_us),
                                       sql_time(now->wall_us)),
                              reterr);
}

static pawl_status show_schedule(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    const pawl_schedule schedule = schedule_of(row);

    (void)reterr;
    return pawl__work_go_on(walk->visit.schedule(walk->context, &schedule));
}

static pawl_status sql_list(struct work_backend *base,
                            pawl_schedule_visit visit,
                            void *context,
                            pawl_error *reterr)
{
    struct work_walk walk = { .visit.schedule = visit, .context = context };

    return pawl__work_sql_read(
        base, SQL_STEP_ALONE(WORK_STMT_SCHEDULE_LIST), show_schedule, &walk, reterr);
}

const struct work_schedule_ops pawl__work_sql_schedules = {
    .load = sql_load,
    .put = sql_put,
    .remove = sql_remove,
    .fired = sql_fired,
    .fire = sql_fire,
    .forget = sql_forget,
    .move = sql_move,
    .list = sql_list,
};
