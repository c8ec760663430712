/* Schedules in PostgreSQL. */
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/postgres/backend.h"
#include "work/schedules/backend.h"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

static pawl_schedule row_of(const struct pawl__pg_rows *rows)
{
    return (pawl_schedule){
        .schedule_id = pawl__pg_get_text(rows, 0, 0),
        .cron = pawl__pg_get_text(rows, 0, 1),
        .task_id = pawl__pg_get_text(rows, 0, 2),
        .work_type = pawl__pg_get_text(rows, 0, 3),
        .input_data = pawl__pg_get_text(rows, 0, 4),
        .priority = (int32_t)pawl__pg_get_i64(rows, 0, 5),
        .max_retries = (int32_t)pawl__pg_get_i64(rows, 0, 6),
        .next_slot_us = pawl__pg_get_time(rows, 0, 7),
        .last_slot_us = pawl__pg_get_time(rows, 0, 8),
    };
}

struct schedule_load {
    struct pawl__arena *arena;
    pawl_schedule *schedule;
};

static pawl_status keep_schedule(void *context,
                                 const struct pawl__pg_rows *rows,
                                 pawl_error *reterr)
{
    struct schedule_load *load = context;

    if (rows->count == 0) {
        return PAWL_OK;
    }
    pawl_schedule row = row_of(rows);
    pawl_schedule *kept = pawl__arena_take(load->arena, sizeof(*kept));
    if (kept == NULL || !pawl__work_copy_schedule(load->arena, &row, kept)) {
        return pawl__fail(reterr, PAWL_NOMEM, "schedule");
    }
    load->schedule = kept;
    return PAWL_OK;
}

static pawl_status pg_load(struct work_backend *base,
                           pawl_view schedule_id,
                           struct pawl__arena *arena,
                           pawl_schedule **ret_schedule,
                           pawl_error *reterr)
{
    struct schedule_load load = { .arena = arena };
    pawl_status status = pawl__work_pg_ask_and_clock(of(base),
                                                     WORK_PG_SCHEDULE_LOAD,
                                                     PG_ARGS(pawl__pg_text(schedule_id)),
                                                     keep_schedule,
                                                     &load,
                                                     reterr);

    *ret_schedule = load.schedule;
    return status;
}

static pawl_status pg_put(struct work_backend *base,
                          const struct work_now *now,
                          const pawl_schedule *schedule,
                          pawl_error *reterr)
{
    return pawl__work_pg_ask(of(base),
                             WORK_PG_SCHEDULE_PUT,
                             PG_ARGS(pawl__pg_text(schedule->schedule_id),
                                     pawl__pg_text(schedule->cron),
                                     pawl__work_pg_optional(schedule->task_id),
                                     pawl__pg_text(schedule->work_type),
                                     pawl__work_pg_optional(schedule->input_data),
                                     pawl__pg_i64(schedule->priority),
                                     pawl__pg_i64(schedule->max_retries),
                                     pawl__work_pg_time(schedule->next_slot_us),
                                     pawl__pg_time(now->wall_us)),
                             NULL,
                             NULL,
                             reterr);
}

static pawl_status has_rows(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    bool *any = context;

    (void)reterr;
    *any = rows->count > 0;
    return PAWL_OK;
}

static pawl_status pg_remove(struct work_backend *base,
                             pawl_view schedule_id,
                             bool *ret_removed,
                             pawl_error *reterr)
{
    return pawl__work_pg_ask(of(base),
                             WORK_PG_SCHEDULE_REMOVE,
                             PG_ARGS(pawl__pg_text(schedule_id)),
                             has_rows,
                             ret_removed,
                             reterr);
}

static pawl_status pg_fired(struct work_backend *base,
                            pawl_view schedule_id,
                            int64_t slot_us,
                            bool *ret_fired,
                            pawl_error *reterr)
{
    return pawl__work_pg_ask(of(base),
                             WORK_PG_SCHEDULE_FIRED,
                             PG_ARGS(pawl__pg_text(schedule_id), pawl__pg_time(slot_us)),
                             has_rows,
                             ret_fired,
                             reterr);
}

static pawl_status pg_fire(struct work_backend *base,
                           pawl_view schedule_id,
                           int64_t slot_us,
                           pawl_view work_item_id,
                           pawl_error *reterr)
{
    return pawl__work_pg_ask(
        of(base),
        WORK_PG_SCHEDULE_FIRE,
        PG_ARGS(pawl__pg_text(schedule_id), pawl__pg_time(slot_us), pawl__pg_text(work_item_id)),
        NULL,
        NULL,
        reterr);
}

static pawl_status pg_forget(struct work_backend *base,
                             pawl_view schedule_id,
                             int64_t before_us,
                             pawl_error *reterr)
{
    return pawl__work_pg_ask(of(base),
                             WORK_PG_SCHEDULE_FORGET,
                             PG_ARGS(pawl__pg_text(schedule_id), pawl__pg_time(before_us)),
                             NULL,
                             NULL,
                             reterr);
}

static pawl_status pg_move(struct work_backend *base,
                           const struct work_now *now,
                           pawl_view schedule_id,
                           int64_t next_slot_us,
                           pawl_error *reterr)
{
    return pawl__work_pg_ask(of(base),
                             WORK_PG_SCHEDULE_MOVE,
                             PG_ARGS(pawl__pg_text(schedule_id),
                                     pawl__work_pg_time(next_slot_us),
                                     pawl__pg_time(now->wall_us)),
                             NULL,
                             NULL,
                             reterr);
}

struct schedule_walk {
    pawl_schedule_visit visit;
    void *context;
};

static bool show_schedule(void *context, const struct pawl__pg_rows *rows)
{
    const struct schedule_walk *walk = context;
    pawl_schedule row = row_of(rows);

    return walk->visit(walk->context, &row);
}

static pawl_status pg_list(struct work_backend *base,
                           pawl_schedule_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct schedule_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(
        base, WORK_PG_SCHEDULE_LIST, PG_NO_ARGS, show_schedule, &walk, reterr);
}

const struct work_schedule_ops pawl__work_pg_schedules = {
    .load = pg_load,
    .put = pg_put,
    .remove = pg_remove,
    .fired = pg_fired,
    .fire = pg_fire,
    .forget = pg_forget,
    .move = pg_move,
    .list = pg_list,
};
