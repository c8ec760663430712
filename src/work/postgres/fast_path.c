/* The short way of a group: items completed and the next ones leased by one statement, which is a
 * transaction of its own, or by two at once. A statement decides as decide.c does, for the one case
 * that needs no other row; what it leaves undone goes the long way. */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

#define CALM_NS_MAX NS_PER_S /* between two looks at a task that goes on */

enum { TWO_CALLS_MIN = 64 }; /* of each kind, before a group is split over two connections */
enum { COLUMN_CALL = 25, COLUMN_IS_CLAIM = 26 };

/* --- tasks --- */

/* A task that was running a moment ago, and of which an item has been leased since, is running. */
static bool is_calm(const struct work_postgres *backend, pawl_view task_id)
{
    const struct work_pg_calm *calm = &backend->calm;

    return pawl__view_equal(calm->task_id, task_id)
           && pawl__pg_store_now_ns(&backend->pg) - calm->looked_ns < CALM_NS_MAX;
}

/* With the tasks of what was completed; all of them when there is one that is not running on. */
static pawl_status look_at_tasks(struct work_postgres *backend, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct work_pg_look look = { .backend = backend };
    pawl_view first = backend->touched[0];
    pawl_status status = pawl__pg_exec(
        backend->pg.writer,
        WORK_PG_TASK_FACTS,
        PG_ARGS(pawl__work_pg_ids(backend, 0, backend->touched, backend->touched_count)),
        &rows,
        reterr);

    if (status == PAWL_OK) {
        status = pawl__work_pg_saw_tasks(&look, &rows, reterr);
    }
    if (status != PAWL_OK) {
        return status; /* what is touched stays so, for the next look */
    }
    backend->calm = (struct work_pg_calm){ .looked_ns = 0 };
    if (look.changes) {
        pawl__work_pg_settle_touched(backend);
        return PAWL_OK;
    }
    if (backend->touched_count == 1 && rows.count == 1 && pawl__pg_get_bool(&rows, 0, 2)
        && pawl__work_pg_fits(first)) {
        backend->calm.task_id = pawl__work_pg_keep_name(backend->calm.text, first);
        backend->calm.looked_ns = pawl__pg_store_now_ns(&backend->pg);
    }
    pawl__work_pg_forget_touched(backend);
    return PAWL_OK;
}

/* --- what came of it --- */

struct quick_task {
    pawl_view id;
    struct quick_task *next;
};

/* A group on its way. The calls stand in this order: those that complete, those that only lease. */
struct quick_walk {
    struct work_postgres *backend;
    struct work_fast_call *calls;
    size_t count;
    size_t ends;
    size_t claimed;
    struct quick_task *tasks; /* of what was completed or leased */
    struct pawl__arena *arena;
};

/* Calls of one statement, which counts them from 1. */
struct quick_part {
    struct quick_walk *walk;
    size_t first;
    size_t count;
    bool leases;
};

static struct work_fast_call *call_of(const struct quick_part *part, int64_t number)
{
    REQUIRE(number >= 1 && (size_t)number <= part->count);
    return &part->walk->calls[part->first + (size_t)number - 1];
}

/* What follows is durable already, so no lack of memory may make it a failure: a task that is not
 * noted is found by the sweep, a lease that nobody is told of runs out. */

static void note_task(struct quick_walk *walk, pawl_view task_id)
{
    if (walk->tasks != NULL && pawl__view_equal(walk->tasks->id, task_id)) {
        return;
    }
    struct quick_task *task = pawl__arena_take(walk->arena, sizeof(*task));
    if (task == NULL || !pawl__arena_copy(walk->arena, task_id, &task->id)) {
        return;
    }
    task->next = walk->tasks;
    walk->tasks = task;
}

static void take_claim(const struct quick_part *part,
                       const struct pawl__pg_rows *rows,
                       size_t index)
{
    struct quick_walk *walk = part->walk;
    struct work_fast_call *call = call_of(part, pawl__pg_get_i64(rows, index, COLUMN_CALL));
    struct work_pg_front *front = &walk->backend->front;

    call->row = pawl__work_pg_keep_row(walk->arena, rows, index);
    if (call->row == NULL) {
        return;
    }
    /* A whole walk may end before the old front: what it has taken came in there. */
    if ((front->walks_whole && walk->claimed == 0) || !pawl__work_pg_is_before(call->row, front)) {
        pawl__work_pg_move_front(front, call->row);
    }
    walk->claimed++;
    front->claimed++;
}

static void take_rows(const struct quick_part *part, const struct pawl__pg_rows *rows)
{
    size_t call_at = part->leases ? COLUMN_CALL : 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (part->leases && pawl__pg_get_bool(rows, i, COLUMN_IS_CLAIM)) {
            take_claim(part, rows, i);
        } else {
            call_of(part, pawl__pg_get_i64(rows, i, call_at))->ended = true;
        }
        note_task(part->walk, pawl__pg_get_text(rows, i, 1));
    }
}

/* --- a statement --- */

static struct pawl__pg_value add_calls(struct work_postgres *backend,
                                       const struct work_fast_call *calls,
                                       size_t count,
                                       bool claims)
{
    struct pawl__pg_array *a = backend->arrays;
    static const char letters[] = "TITTI";

    for (size_t i = 0; i < (claims ? 5U : 3U); i++) {
        pawl__pg_array_start(&a[i], letters[i], count);
    }
    for (size_t i = 0; i < count; i++) {
        pawl__work_pg_add_optional(&a[0], calls[i].id);
        pawl__pg_array_add_i64(&a[1], (int64_t)calls[i].token);
        pawl__work_pg_add_optional(&a[2], calls[i].output_data);
        if (claims) {
            pawl__work_pg_add_optional(&a[3], calls[i].holder);
            pawl__pg_array_add_i64(&a[4], (int64_t)calls[i].lease_ms * (NS_PER_MS / NS_PER_US));
        }
    }
    return pawl__pg_array_value(&a[0]);
}

/* A statement with its values. */
struct quick_statement {
    size_t number;
    struct pawl__pg_value values[9];
    size_t value_count;
};

static struct quick_statement make_end(struct work_postgres *backend,
                                       const struct work_fast_call *calls,
                                       size_t count)
{
    return (struct quick_statement){
        .number = WORK_PG_QUICK_END,
        .values = { pawl__work_pg_given_time(backend),
                    add_calls(backend, calls, count, false),
                    pawl__pg_array_value(&backend->arrays[1]),
                    pawl__pg_array_value(&backend->arrays[2]) },
        .value_count = 4,
    };
}

static struct quick_statement make_claim(struct work_postgres *backend,
                                         const struct work_fast_call *calls,
                                         size_t count)
{
    const struct work_pg_front *front = &backend->front;
    bool typed = front->type.len > 0;
    struct quick_statement made = {
        .number = typed ? WORK_PG_QUICK_TYPE : WORK_PG_QUICK,
        .values = { pawl__work_pg_given_time(backend),
                    add_calls(backend, calls, count, true),
                    pawl__pg_array_value(&backend->arrays[1]),
                    pawl__pg_array_value(&backend->arrays[2]),
                    pawl__pg_array_value(&backend->arrays[3]),
                    pawl__pg_array_value(&backend->arrays[4]) },
        .value_count = 6,
    };

    if (typed) {
        made.values[made.value_count++] = pawl__pg_text(front->type);
    }
    if (!front->walks_whole) {
        made.number = typed ? WORK_PG_QUICK_FRONT_TYPE : WORK_PG_QUICK_FRONT;
        made.values[made.value_count++] = pawl__pg_i64(front->priority);
        made.values[made.value_count++] = pawl__pg_i64(front->submission);
    }
    return made;
}

static struct quick_statement make_statement(const struct quick_part *part)
{
    const struct quick_walk *walk = part->walk;

    return part->leases ? make_claim(walk->backend, &walk->calls[part->first], part->count)
                        : make_end(walk->backend, &walk->calls[part->first], part->count);
}

static pawl_status run_part(const struct quick_part *part, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct quick_statement statement = make_statement(part);

    FAILPOINT("work.commit.before", reterr);
    TRY(pawl__pg_exec(part->walk->backend->pg.writer,
                      statement.number,
                      statement.values,
                      statement.value_count,
                      &rows,
                      reterr));
    FAILPOINT("work.commit.after", reterr);
    take_rows(part, &rows);
    return PAWL_OK;
}

/* --- two at once --- */

static pawl_status take_leased(void *context,
                               size_t index,
                               const struct pawl__pg_rows *rows,
                               pawl_error *reterr)
{
    (void)index;
    (void)reterr;
    take_rows(context, rows);
    return PAWL_OK;
}

static pawl_status start_leasing(struct pawl__pg *leaser,
                                 struct quick_part *part,
                                 pawl_error *reterr)
{
    struct quick_statement statement = make_statement(part);

    TRY(pawl__pg_pipeline_begin_transaction(leaser, take_leased, part, reterr));
    TRY(pawl__pg_pipeline_add(
        leaser, statement.number, statement.values, statement.value_count, reterr));
    TRY(pawl__pg_pipeline_commit(leaser, reterr));
    return pawl__pg_pipeline_push(leaser, reterr);
}

/* They are leased by nobody, or it is not known: the long way leases others. */
static void forget_leased(const struct quick_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        part->walk->calls[part->first + i].row = NULL;
    }
    part->walk->claimed = 0;
}

/* Leases on a second connection while the first one completes: two processors of the server have
 * something to do. Each is a transaction by itself, and what one does not do is left to the long
 * way, whatever became of the other. */
static pawl_status run_both(struct pawl__pg *leaser,
                            const struct quick_part *ends,
                            struct quick_part *claims,
                            pawl_error *reterr)
{
    pawl_status leased = start_leasing(leaser, claims, NULL);
    pawl_status status = run_part(ends, reterr);

    if (leased == PAWL_OK) {
        leased = pawl__pg_pipeline_end(leaser, NULL);
    } else {
        pawl__pg_pipeline_abandon(leaser);
    }
    if (leased == PAWL_OK) {
        return PAWL_OK; /* these are handed out, whatever becomes of the ends on the long way */
    }
    pawl__pg_rollback(leaser);
    forget_leased(claims);
    return status;
}

/* --- a group --- */

/* A small group is served best by one commit; a large one by two processors. */
static bool is_for_two(const struct quick_walk *walk)
{
    size_t both = 0;

    for (size_t i = 0; i < walk->ends; i++) {
        both += walk->calls[i].holder.len > 0;
    }
    return both == 0 && walk->ends >= TWO_CALLS_MIN && walk->count - walk->ends >= TWO_CALLS_MIN;
}

static pawl_status run_walk(struct quick_walk *walk, bool leases, pawl_error *reterr)
{
    struct pawl__pg *leaser = is_for_two(walk) ? pawl__work_pg_leaser(walk->backend) : NULL;
    struct quick_part all = { .walk = walk, .count = walk->count, .leases = leases };
    struct quick_part ends = { .walk = walk, .count = walk->ends };
    struct quick_part claims = {
        .walk = walk,
        .first = walk->ends,
        .count = walk->count - walk->ends,
        .leases = true,
    };

    return leaser == NULL ? run_part(&all, reterr) : run_both(leaser, &ends, &claims, reterr);
}

static bool is_claimed_of(const struct quick_walk *walk, pawl_view task_id)
{
    for (size_t i = 0; i < walk->count; i++) {
        if (walk->calls[i].row != NULL
            && pawl__view_equal(walk->calls[i].row->item.task_id, task_id)) {
            return true;
        }
    }
    return false;
}

static void look_after_tasks(const struct quick_walk *walk)
{
    struct work_postgres *backend = walk->backend;
    pawl_error error = PAWL_ERROR_INIT;

    for (const struct quick_task *task = walk->tasks; task != NULL; task = task->next) {
        if (!(is_calm(backend, task->id) && is_claimed_of(walk, task->id))) {
            (void)!pawl__work_pg_touch(backend, &task->id, 1, &error);
        }
    }
    if (backend->touched_count > 0) {
        (void)!look_at_tasks(backend, &error);
    }
}

/* Nothing happened, or it is not known: the long way finds out what did. A completion is answered as
 * the first time. A lease that nobody was told of runs out. */
static bool is_for_the_long_way(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_CONFLICT || status == PAWL_INVALID
           || status == PAWL_NOMEM;
}

static struct quick_walk walk_of(struct work_postgres *backend,
                                 struct work_fast_call *calls,
                                 size_t count,
                                 struct pawl__arena *arena)
{
    struct quick_walk walk = { .backend = backend, .calls = calls, .count = count, .arena = arena };

    while (walk.ends < count && calls[walk.ends].id.len > 0) {
        walk.ends++;
    }
    return walk;
}

static size_t count_wanted(const struct quick_walk *walk)
{
    size_t wanted = 0;

    for (size_t i = 0; i < walk->count; i++) {
        const struct work_fast_call *call = &walk->calls[i];
        wanted += call->holder.len > 0 && (call->id.len == 0 || call->ended);
    }
    return wanted;
}

pawl_status pawl__work_pg_quick(struct work_backend *base,
                                const struct work_filter *filter,
                                struct work_fast_call *calls,
                                size_t count,
                                struct pawl__arena *arena,
                                pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);
    struct quick_walk walk = walk_of(backend, calls, count, arena);

    if (filter != NULL && !pawl__work_pg_has_more(&backend->front, filter)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__pg_store_take_writer(&backend->pg, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    pawl__work_pg_prepare_walk(&backend->front, pawl__pg_store_now_ns(&backend->pg));
    status = run_walk(&walk, filter != NULL, reterr);
    if (filter != NULL && walk.claimed < count_wanted(&walk)) {
        backend->front.known = false; /* the end, or something is due: look at everything */
    }
    if (status == PAWL_OK) {
        look_after_tasks(&walk);
    }
    pawl__pg_store_release_writer(&backend->pg);
    return is_for_the_long_way(pawl__work_pg_outcome(status, reterr)) ? PAWL_OK : status;
}
