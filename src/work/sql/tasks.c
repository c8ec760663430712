/* Tasks of both databases. When their status is derived from their items differs: sqlite/tasks.c,
 * postgres/tasks.c. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/items/decide.h"
#include "work/items/item.h"
#include "work/sql/sql.h"

/* --- inside of a transaction --- */

static pawl_task task_of(const struct work_columns *row)
{
    pawl_task task = {
        .size = sizeof(pawl_task),
        .task_id = col_text(row, 0),
        .title = col_text(row, 1),
        .set_by_user = pawl__view_is(col_text(row, 3), "user"),
        .created_at_us = col_time(row, 4),
        .updated_at_us = col_time(row, 5),
        .metadata = col_text(row, 6),
    };

    (void)!pawl__work_task_status_parse(col_text(row, 2), &task.status);
    return task;
}

struct task_load {
    const pawl_view *ids; /* ascending, as the rows are */
    size_t count;
    size_t at;
    struct pawl__arena *arena;
    struct work_task *tasks;
};

static pawl_status add_task(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct task_load *load = context;
    pawl_task task = task_of(row);

    while (load->at < load->count && !pawl__view_equal(load->ids[load->at], task.task_id)) {
        load->at++;
    }
    REQUIRE(load->at < load->count);
    struct work_task *loaded = &load->tasks[load->at];
    loaded->known = true;
    return pawl__work_copy_task(load->arena, &task, &loaded->task)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for tasks");
}

pawl_status pawl__work_sql_tasks(struct work_backend *base,
                                 const pawl_view *ids,
                                 size_t count,
                                 struct pawl__arena *arena,
                                 struct work_task *ret_tasks,
                                 pawl_error *reterr)
{
    struct task_load load = { .ids = ids, .count = count, .arena = arena, .tasks = ret_tasks };

    for (size_t i = 0; i < count; i++) {
        ret_tasks[i].known = false;
    }
    return pawl__work_sql_ask(
        base, SQL_STEP(WORK_STMT_TASK_LOAD, sql_texts(ids, count)), add_task, &load, reterr);
}

pawl_status pawl__work_sql_task_insert(struct work_backend *base,
                                       const struct work_now *now,
                                       const pawl_task *task,
                                       pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_TASK_INSERT,
                                       sql_text(task->task_id),
                                       sql_optional(task->title),
                                       sql_name(pawl__work_task_status_text(task->status)),
                                       sql_name(task->set_by_user ? "user" : "items"),
                                       sql_time(now->wall_us),
                                       sql_optional(task->metadata)),
                              reterr);
}

pawl_status pawl__work_sql_task_set(struct work_backend *base,
                                    const struct work_now *now,
                                    pawl_view task_id,
                                    pawl_task_status status,
                                    bool by_user,
                                    pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_TASK_SET,
                                       sql_text(task_id),
                                       sql_name(pawl__work_task_status_text(status)),
                                       sql_name(by_user ? "user" : "items"),
                                       sql_time(now->wall_us)),
                              reterr);
}

bool pawl__work_sql_task_changes(const struct work_columns *row, pawl_task_status *ret_status)
{
    const struct work_task_facts facts = {
        .unfinished = col_bool(row, 2),
        .started = col_bool(row, 3),
        .failed = col_bool(row, 4),
        .any = col_bool(row, 5),
    };
    pawl_task_status status;

    if (!pawl__work_task_status_parse(col_text(row, 1), &status)) {
        return false;
    }
    *ret_status = pawl__work_decide_task(status, &facts);
    return *ret_status != status;
}

/* --- reading --- */

static pawl_status show_task(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    pawl_task task = task_of(row);

    (void)reterr;
    task.pending = col_count(row, 7);
    task.in_progress = col_count(row, 8);
    task.completed = col_count(row, 9);
    task.failed = col_count(row, 10);
    task.waiting = col_count(row, 11);
    return pawl__work_go_on(walk->visit.task(walk->context, &task));
}

pawl_status pawl__work_sql_task_read(struct work_backend *base,
                                     const struct work_task_query *query,
                                     pawl_task_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    struct work_walk walk = { .visit.task = visit, .context = context };
    const char *status = query->status == NULL ? "" : pawl__work_task_status_text(*query->status);
    const struct work_value page[] = {
        sql_optional(pawl_view_of(status)),
        sql_text(query->from_id),
        sql_limit(query->limit),
    };

    if (query->id.len > 0) {
        return pawl__work_sql_read(
            base, SQL_STEP(WORK_STMT_TASK_GET, sql_text(query->id)), show_task, &walk, reterr);
    }
    return pawl__work_sql_read(
        base,
        pawl__work_step(query->by_id ? WORK_STMT_TASKS_PAGE : WORK_STMT_TASKS,
                        page,
                        query->by_id ? COUNT_OF(page) : 1),
        show_task,
        &walk,
        reterr);
}
