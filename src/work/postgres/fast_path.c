/* The fast path of a group: one statement completes items and claims the next ones, and is a transaction
 * of its own. It decides as items/decide.c does, for the one case that needs no other row; what it leaves
 * undone goes through the transaction. A drain takes 2.47 times as long without it, 1.41 times with workers
 * that wait for each answer. Two layers of it have figures of their own (bench/work/README.md):
 *
 *   second connection   claims of a large group run beside its completions. Without it: 1.50
 *   running task        a task that was running a moment ago is not checked again. Without it, and with
 *                       workers that wait: 1.15 */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

#define RUNNING_NS_MAX NS_PER_S /* between two checks of a running task */

enum { TWO_CALLS_MIN = 64 }; /* of each kind, before a group is split over two connections */
enum { COLUMN_CALL = 25, COLUMN_IS_CLAIM = 26 };

/* --- tasks --- */

/* A task that was running a moment ago, and of which an item has been leased since, is running. */
static bool is_running(const struct work_postgres *backend, pawl_view task_id)
{
    const struct work_pg_running_task *task = &backend->running_task;

    return pawl__view_equal(task->task_id, task_id)
           && pawl__pg_store_now_ns(&backend->pg) - task->checked_ns < RUNNING_NS_MAX;
}

/* Checks the touched tasks, and settles all of them when one has the wrong status. */
static pawl_status check_tasks(struct work_postgres *backend, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct work_pg_task_check check = { .answered = false };
    struct work_pg_running_task *running = &backend->running_task;

    /* After a failure the tasks stay touched, for the next check. */
    TRY(pawl__pg_exec(
        backend->pg.writer,
        WORK_PG_TASK_FACTS,
        PG_ARGS(pawl__work_pg_list(backend, 0, backend->touched, backend->touched_count)),
        &rows,
        reterr));
    TRY(pawl__work_pg_check_tasks(&check, &rows, reterr));
    *running = (struct work_pg_running_task){ .checked_ns = 0 };
    if (check.changes) {
        pawl__work_pg_settle_touched(backend);
        return PAWL_OK;
    }
    if (backend->touched_count == 1 && rows.count == 1 && pawl__pg_get_bool(&rows, 0, 2)
        && pawl__work_pg_copy_name(running->text, backend->touched[0], &running->task_id)) {
        running->checked_ns = pawl__pg_store_now_ns(&backend->pg);
    }
    pawl__work_pg_forget_touched(backend);
    return PAWL_OK;
}

/* --- answers --- */

struct fast_task {
    pawl_view id;
    struct fast_task *next;
};

/* A group on its way. The calls stand in this order: those that complete, those that only claim. */
struct fast_group {
    struct work_postgres *backend;
    struct work_fast_call *calls;
    size_t count;
    size_t completions;
    size_t claimed;
    struct fast_task *tasks; /* of what was completed or claimed */
    struct pawl__arena *arena;
};

/* Calls of one statement, which counts them from 1. */
struct fast_part {
    struct fast_group *group;
    size_t first;
    size_t count;
    bool claims;
};

static struct work_fast_call *call_of(const struct fast_part *part, int64_t number)
{
    REQUIRE(number >= 1 && (size_t)number <= part->count);
    return &part->group->calls[part->first + (size_t)number - 1];
}

/* What follows is durable already, so no lack of memory may make it a failure: a task that is not
 * noted is found by the sweep, a lease that nobody is told of runs out. */

static void note_task(struct fast_group *group, pawl_view task_id)
{
    if (group->tasks != NULL && pawl__view_equal(group->tasks->id, task_id)) {
        return;
    }
    struct fast_task *task = pawl__arena_take(group->arena, sizeof(*task));
    if (task == NULL || !pawl__arena_copy(group->arena, task_id, &task->id)) {
        return;
    }
    task->next = group->tasks;
    group->tasks = task;
}

static void read_claim(const struct fast_part *part, const struct pawl__pg_rows *rows, size_t index)
{
    struct fast_group *group = part->group;
    struct work_fast_call *call = call_of(part, pawl__pg_get_i64(rows, index, COLUMN_CALL));
    struct work_pg_queue_head *head = &group->backend->queue_head;
    const struct work_columns row = { pawl__work_pg_cell, rows, index };

    call->row = pawl__work_sql_copy_item(&group->backend->sql, &row, group->arena);
    if (call->row == NULL) {
        return;
    }
    /* A whole walk may end before the old head: what it has claimed came in there. */
    if ((head->walks_whole && group->claimed == 0) || !pawl__work_pg_is_before(call->row, head)) {
        pawl__work_pg_move_head(head, call->row);
    }
    group->claimed++;
    head->claimed++;
}

static void read_rows(const struct fast_part *part, const struct pawl__pg_rows *rows)
{
    size_t call_at = part->claims ? COLUMN_CALL : 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (part->claims && pawl__pg_get_bool(rows, i, COLUMN_IS_CLAIM)) {
            read_claim(part, rows, i);
        } else {
            call_of(part, pawl__pg_get_i64(rows, i, call_at))->ended = true;
        }
        note_task(part->group, pawl__pg_get_text(rows, i, 1));
    }
}

/* --- a statement --- */

static struct pawl__pg_value add_calls(struct work_postgres *backend,
                                       const struct work_fast_call *calls,
                                       size_t count,
                                       bool claims)
{
    struct pawl__pg_array *arrays = backend->arrays;
    const char *letters = claims ? "TITTI" : "TIT";

    for (size_t i = 0; letters[i] != '\0'; i++) {
        pawl__pg_array_start(&arrays[i], letters[i], count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct work_value row[] = {
            sql_optional(calls[i].id),
            sql_int((int64_t)calls[i].token),
            sql_optional(calls[i].output_data),
            sql_optional(calls[i].holder),
            sql_int((int64_t)calls[i].lease_ms * (NS_PER_MS / NS_PER_US)),
        };
        pawl__work_pg_add_row(arrays, row, strlen(letters));
    }
    return pawl__pg_array_value(&arrays[0]);
}

/* A statement with its values. */
struct fast_statement {
    size_t number;
    struct pawl__pg_value values[9];
    size_t value_count;
};

static struct fast_statement make_completion(struct work_postgres *backend,
                                             const struct work_fast_call *calls,
                                             size_t count)
{
    return (struct fast_statement){
        .number = WORK_PG_FAST_END,
        .values = { pawl__work_pg_given_time(backend),
                    add_calls(backend, calls, count, false),
                    pawl__pg_array_value(&backend->arrays[1]),
                    pawl__pg_array_value(&backend->arrays[2]) },
        .value_count = 4,
    };
}

static struct fast_statement make_claim(struct work_postgres *backend,
                                        const struct work_fast_call *calls,
                                        size_t count)
{
    const struct work_pg_queue_head *head = &backend->queue_head;
    bool typed = head->type.len > 0;
    struct fast_statement made = {
        .number = typed ? WORK_PG_FAST_TYPE : WORK_PG_FAST,
        .values = { pawl__work_pg_given_time(backend),
                    add_calls(backend, calls, count, true),
                    pawl__pg_array_value(&backend->arrays[1]),
                    pawl__pg_array_value(&backend->arrays[2]),
                    pawl__pg_array_value(&backend->arrays[3]),
                    pawl__pg_array_value(&backend->arrays[4]) },
        .value_count = 6,
    };

    if (typed) {
        made.values[made.value_count++] = pawl__pg_text(head->type);
    }
    if (!head->walks_whole) {
        made.number = typed ? WORK_PG_FAST_HEAD_TYPE : WORK_PG_FAST_HEAD;
        made.values[made.value_count++] = pawl__pg_i64(head->priority);
        made.values[made.value_count++] = pawl__pg_i64(head->submission);
    }
    return made;
}

static struct fast_statement make_statement(const struct fast_part *part)
{
    const struct fast_group *group = part->group;

    return part->claims ? make_claim(group->backend, &group->calls[part->first], part->count)
                        : make_completion(group->backend, &group->calls[part->first], part->count);
}

static pawl_status run_part(const struct fast_part *part, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct fast_statement statement = make_statement(part);

    FAILPOINT("work.commit.before", reterr);
    TRY(pawl__pg_exec(part->group->backend->pg.writer,
                      statement.number,
                      statement.values,
                      statement.value_count,
                      &rows,
                      reterr));
    FAILPOINT("work.commit.after", reterr);
    read_rows(part, &rows);
    return PAWL_OK;
}

/* --- on two connections --- */

static pawl_status on_claimed(void *context,
                              size_t index,
                              const struct pawl__pg_rows *rows,
                              pawl_error *reterr)
{
    (void)index;
    (void)reterr;
    read_rows(context, rows);
    return PAWL_OK;
}

static pawl_status start_claiming(struct pawl__pg *second,
                                  struct fast_part *part,
                                  pawl_error *reterr)
{
    struct fast_statement statement = make_statement(part);

    TRY(pawl__pg_pipeline_begin_transaction(second, on_claimed, part, reterr));
    TRY(pawl__pg_pipeline_add(
        second, statement.number, statement.values, statement.value_count, reterr));
    TRY(pawl__pg_pipeline_commit(second, reterr));
    return pawl__pg_pipeline_push(second, reterr);
}

/* Nobody has leased them, or it is not known: the transaction leases others. */
static void forget_claims(const struct fast_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        part->group->calls[part->first + i].row = NULL;
    }
    part->group->claimed = 0;
}

/* Claims on the second connection while the writer completes: two processors of the server have
 * something to do. Each is a transaction by itself, and what one does not do is left to the group's
 * transaction, whatever became of the other. */
static pawl_status run_both(struct pawl__pg *second,
                            const struct fast_part *completions,
                            struct fast_part *claims,
                            pawl_error *reterr)
{
    pawl_status claimed = start_claiming(second, claims, NULL);
    pawl_status status = run_part(completions, reterr);

    if (claimed == PAWL_OK) {
        claimed = pawl__pg_pipeline_end(second, NULL);
    } else {
        pawl__pg_pipeline_abandon(second);
    }
    if (claimed == PAWL_OK) {
        return PAWL_OK; /* these are handed out, whatever becomes of the completions */
    }
    pawl__pg_rollback(second);
    forget_claims(claims);
    return status;
}

/* --- a group --- */

/* A small group is served best by one commit; a large one by two processors. */
static bool is_worth_two(const struct fast_group *group)
{
    size_t both = 0;

    for (size_t i = 0; i < group->completions; i++) {
        both += group->calls[i].holder.len > 0;
    }
    return both == 0 && group->completions >= TWO_CALLS_MIN
           && group->count - group->completions >= TWO_CALLS_MIN;
}

static pawl_status run_group(struct fast_group *group, bool claims_any, pawl_error *reterr)
{
    struct pawl__pg *second = is_worth_two(group) ? pawl__work_pg_second(group->backend) : NULL;
    struct fast_part all = { .group = group, .count = group->count, .claims = claims_any };
    struct fast_part completions = { .group = group, .count = group->completions };
    struct fast_part claims = {
        .group = group,
        .first = group->completions,
        .count = group->count - group->completions,
        .claims = true,
    };

    return second == NULL ? run_part(&all, reterr)
                          : run_both(second, &completions, &claims, reterr);
}

static bool has_claimed_of(const struct fast_group *group, pawl_view task_id)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->calls[i].row != NULL
            && pawl__view_equal(group->calls[i].row->item.task_id, task_id)) {
            return true;
        }
    }
    return false;
}

static void check_group_tasks(const struct fast_group *group)
{
    struct work_postgres *backend = group->backend;
    pawl_error error = PAWL_ERROR_INIT;

    for (const struct fast_task *task = group->tasks; task != NULL; task = task->next) {
        if (!(is_running(backend, task->id) && has_claimed_of(group, task->id))) {
            (void)!pawl__work_pg_touch(backend, &task->id, 1, &error);
        }
    }
    if (backend->touched_count > 0) {
        (void)!check_tasks(backend, &error);
    }
}

/* Nothing happened, or it is not known: the transaction finds out. It answers a completion as the first
 * time. A lease that nobody was told of runs out. */
static bool is_for_the_transaction(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_CONFLICT || status == PAWL_INVALID
           || status == PAWL_NOMEM;
}

static struct fast_group group_of(struct work_postgres *backend,
                                  struct work_fast_call *calls,
                                  size_t count,
                                  struct pawl__arena *arena)
{
    struct fast_group group = {
        .backend = backend, .calls = calls, .count = count, .arena = arena
    };

    while (group.completions < count && calls[group.completions].id.len > 0) {
        group.completions++;
    }
    return group;
}

static size_t count_wanted(const struct fast_group *group)
{
    size_t wanted = 0;

    for (size_t i = 0; i < group->count; i++) {
        const struct work_fast_call *call = &group->calls[i];
        wanted += call->holder.len > 0 && (call->id.len == 0 || call->ended);
    }
    return wanted;
}

pawl_status pawl__work_pg_fast_path(struct work_backend *base,
                                    const struct work_filter *filter,
                                    struct work_fast_call *calls,
                                    size_t count,
                                    struct pawl__arena *arena,
                                    pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);
    struct fast_group group = group_of(backend, calls, count, arena);

    if (filter != NULL && !pawl__work_pg_has_more(&backend->queue_head, filter)) {
        return PAWL_OK;
    }
    TRY(pawl__pg_store_borrow_writer(&backend->pg, reterr));
    pawl__work_pg_prepare_walk(&backend->queue_head, pawl__pg_store_now_ns(&backend->pg));
    pawl_status status = run_group(&group, filter != NULL, reterr);
    if (filter != NULL && group.claimed < count_wanted(&group)) {
        backend->queue_head.known = false; /* the end, or an item is due: start at the first */
    }
    if (status == PAWL_OK) {
        check_group_tasks(&group);
    }
    pawl__pg_store_release_writer(&backend->pg);
    return is_for_the_transaction(pawl__work_pg_outcome(status, reterr)) ? PAWL_OK : status;
}
