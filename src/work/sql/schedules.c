/* Schedules of both databases. */
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/sql/sql.h"

static pawl_schedule schedule_of(const struct work_columns *row)
{
    return (pawl_schedule){
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
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct schedule_load load = { .arena = arena };
    const struct work_value values[] = { sql_text(schedule_id) };
    const struct work_step step = { .statement = WORK_STMT_SCHEDULE_LOAD,
                                    .values = values,
                                    .value_count = COUNT_OF(values),
                                    .on_row = load_row,
                                    .context = &load,
                                    .locks = true };
    pawl_status status = sql->ops->run(sql, &step, 1, reterr);

    *ret_schedule = load.schedule;
    return status;
}

static pawl_status sql_put(struct work_backend *base,
                           const struct work_now *now,
                           const pawl_schedule *schedule,
                           pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              WORK_STMT_SCHEDULE_PUT,
                              SQL_ARGS(sql_text(schedule->schedule_id),
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
                              WORK_STMT_SCHEDULE_REMOVE,
                              SQL_ARGS(sql_text(schedule_id)),
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
    return pawl__work_sql_ask(base,
                              WORK_STMT_SCHEDULE_FIRED,
                              SQL_ARGS(sql_text(schedule_id), sql_time(slot_us)),
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
    return pawl__work_sql_run(
        base,
        WORK_STMT_SCHEDULE_FIRE,
        SQL_ARGS(sql_text(schedule_id), sql_time(slot_us), sql_text(work_item_id)),
        reterr);
}

static pawl_status sql_forget(struct work_backend *base,
                              pawl_view schedule_id,
                              int64_t before_us,
                              pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              WORK_STMT_SCHEDULE_FORGET,
                              SQL_ARGS(sql_text(schedule_id), sql_time(before_us)),
                              reterr);
}

static pawl_status sql_move(struct work_backend *base,
                            const struct work_now *now,
                            pawl_view schedule_id,
                            int64_t next_slot_us,
                            pawl_error *reterr)
{
    return pawl__work_sql_run(
        base,
        WORK_STMT_SCHEDULE_MOVE,
        SQL_ARGS(sql_text(schedule_id), sql_optional_time(next_slot_us), sql_time(now->wall_us)),
        reterr);
}

struct schedule_walk {
    pawl_schedule_visit visit;
    void *context;
};

static pawl_status show_schedule(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct schedule_walk *walk = context;
    const pawl_schedule schedule = schedule_of(row);

    (void)reterr;
    return pawl__work_go_on(walk->visit(walk->context, &schedule));
}

static pawl_status sql_list(struct work_backend *base,
                            pawl_schedule_visit visit,
                            void *context,
                            pawl_error *reterr)
{
    struct schedule_walk walk = { .visit = visit, .context = context };

    return pawl__work_sql_read(
        base, WORK_STMT_SCHEDULE_LIST, SQL_NO_ARGS, show_schedule, &walk, reterr);
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
