/* The short way of a group: items completed and the next ones leased by one statement, which is a
 * transaction of its own. The statement decides as decide.c does, for the one case that needs no
 * other row; what it leaves undone goes the long way.
 *
 * The front: claims walk along an index whose first pages hold what was claimed before, until a
 * vacuum. So while a handle claims a lot, a walk begins where the last one ended, and only now and
 * then at the beginning. What this handle puts before the front takes it back; what another node
 * does is seen at the next whole walk. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "work/item.h"
#include "work/postgres_backend.h"

enum { BUSY_ITEMS_MIN = 512 }; /* that a handle has claimed in a row before it uses the front */
#define FRONT_NS_MAX (50 * NS_PER_MS) /* between two whole walks */
#define CALM_NS_MAX NS_PER_S          /* between two looks at a task that goes on */

enum { COLUMN_CALL = 24, COLUMN_IS_CLAIM = 25 };

/* --- the front --- */

static bool fits(pawl_view name)
{
    return name.len <= PAWL_WORK_NAME_BYTES_MAX;
}

static pawl_view keep_name(char *to, pawl_view name)
{
    if (name.len > 0) {
        memcpy(to, name.data, name.len);
    }
    return (pawl_view){ to, name.len };
}

static pawl_view type_of(const struct work_filter *filter)
{
    return filter->work_type_count == 1 ? filter->work_types[0] : (pawl_view){ NULL, 0 };
}

static bool has_front(const struct work_filter *filter)
{
    return filter->task_id.len == 0 && filter->work_type_count <= 1;
}

/* Whether `item` is claimed before the front's. */
static bool is_before(const pawl_item *item, const struct work_pg_front *front)
{
    if (item->priority != front->priority) {
        return item->priority > front->priority;
    }
    return item->created_at_us != front->created_at_us
               ? item->created_at_us < front->created_at_us
               : pawl__view_order(item->work_item_id, front->id) < 0;
}

static void move_front(struct work_pg_front *front, const struct work_row *row)
{
    front->priority = row->item.priority;
    front->created_at_us = row->item.created_at_us;
    front->id = keep_name(front->id_text, row->item.work_item_id);
}

void pawl__work_pg_walked(struct work_postgres *backend,
                          const struct work_filter *filter,
                          size_t wanted,
                          struct work_row *const *rows,
                          size_t count)
{
    struct work_pg_front *front = &backend->front;

    if (!has_front(filter) || count < wanted || count == 0
        || !fits(rows[count - 1]->item.work_item_id)) {
        front->known = false;
        front->claimed = 0;
        return;
    }
    if (!pawl__view_equal(front->type, type_of(filter))) {
        front->claimed = 0;
    }
    front->known = true;
    front->type = keep_name(front->type_text, type_of(filter));
    front->walked_ns = pawl__monotonic_ns(pawl__clock_real());
    front->claimed += count;
    move_front(front, rows[count - 1]);
}

void pawl__work_pg_came_in(struct work_postgres *backend, const pawl_item *item)
{
    struct work_pg_front *front = &backend->front;

    if (front->known && is_before(item, front)) {
        front->known = false;
    }
}

/* There was enough for everybody at the last walk: one statement will do. */
static bool has_more(const struct work_pg_front *front, const struct work_filter *filter)
{
    return front->known && has_front(filter) && pawl__view_equal(front->type, type_of(filter));
}

static void prepare_walk(struct work_pg_front *front, int64_t now_ns)
{
    front->walks_whole =
        front->claimed < BUSY_ITEMS_MIN || now_ns - front->walked_ns >= FRONT_NS_MAX;
    if (front->walks_whole) {
        front->walked_ns = now_ns;
    }
}

/* --- tasks --- */

/* A task that was running a moment ago, and of which an item has been leased since, is running. */
static bool is_calm(const struct work_postgres *backend, pawl_view task_id)
{
    const struct work_pg_calm *calm = &backend->calm;

    return pawl__view_equal(calm->task_id, task_id)
           && pawl__monotonic_ns(pawl__clock_real()) - calm->looked_ns < CALM_NS_MAX;
}

/* With the tasks of what was completed; all of them when there is one that is not running on. */
static pawl_status look_at_tasks(struct work_postgres *backend, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct work_pg_look look = { .backend = backend };
    pawl_view first = backend->touched[0];
    pawl_status status = pawl__pg_exec(
        backend->writer,
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
        && fits(first)) {
        backend->calm.task_id = keep_name(backend->calm.text, first);
        backend->calm.looked_ns = pawl__monotonic_ns(pawl__clock_real());
    }
    pawl__work_pg_forget_touched(backend);
    return PAWL_OK;
}

/* --- the statement --- */

static struct pawl__pg_value add_calls(struct work_postgres *backend,
                                       const struct work_quick_call *calls,
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

static pawl_status send(struct work_postgres *backend,
                        const struct work_filter *filter,
                        const struct work_quick_call *calls,
                        size_t count,
                        struct pawl__pg_rows *ret_rows,
                        pawl_error *reterr)
{
    const struct work_pg_front *front = &backend->front;
    struct pawl__pg_value values[9] = {
        add_calls(backend, calls, count, filter != NULL), pawl__pg_array_value(&backend->arrays[1]),
        pawl__pg_array_value(&backend->arrays[2]),        pawl__pg_array_value(&backend->arrays[3]),
        pawl__pg_array_value(&backend->arrays[4]),
    };
    size_t value_count = 5;
    bool typed = front->type.len > 0;
    size_t statement = typed ? WORK_PG_QUICK_TYPE : WORK_PG_QUICK;

    if (filter == NULL) {
        return pawl__pg_exec(backend->writer, WORK_PG_QUICK_END, values, 3, ret_rows, reterr);
    }
    if (typed) {
        values[value_count++] = pawl__pg_text(front->type);
    }
    if (!front->walks_whole) {
        statement = typed ? WORK_PG_QUICK_FRONT_TYPE : WORK_PG_QUICK_FRONT;
        values[value_count++] = pawl__pg_i64(front->priority);
        values[value_count++] = pawl__pg_time(front->created_at_us);
        values[value_count++] = pawl__pg_text(front->id);
    }
    return pawl__pg_exec(backend->writer, statement, values, value_count, ret_rows, reterr);
}

static pawl_status send_durably(struct work_postgres *backend,
                                const struct work_filter *filter,
                                const struct work_quick_call *calls,
                                size_t count,
                                struct pawl__pg_rows *ret_rows,
                                pawl_error *reterr)
{
    FAILPOINT("work.commit.before", reterr);
    pawl_status status = send(backend, filter, calls, count, ret_rows, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    FAILPOINT("work.commit.after", reterr);
    return PAWL_OK;
}

/* --- what came of it --- */

struct quick_walk {
    struct work_postgres *backend;
    struct work_quick_call *calls;
    size_t count;
    size_t wanted;
    size_t claimed;
    struct pawl__arena *arena;
};

static struct work_quick_call *call_of(const struct quick_walk *walk, int64_t number)
{
    REQUIRE(number >= 1 && (size_t)number <= walk->count);
    return &walk->calls[number - 1];
}

static pawl_status take_claim(struct quick_walk *walk,
                              const struct pawl__pg_rows *rows,
                              size_t index,
                              pawl_error *reterr)
{
    struct work_quick_call *call = call_of(walk, pawl__pg_get_i64(rows, index, COLUMN_CALL));
    struct work_pg_front *front = &walk->backend->front;

    call->row = pawl__work_pg_keep_row(walk->arena, rows, index);
    if (call->row == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
    }
    /* A whole walk may end before the old front: what it has taken came in there. */
    if ((front->walks_whole && walk->claimed == 0) || !is_before(&call->row->item, front)) {
        move_front(front, call->row);
    }
    walk->claimed++;
    front->claimed++;
    return PAWL_OK;
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

static pawl_status touch(struct quick_walk *walk, pawl_view task_id, pawl_error *reterr)
{
    struct work_postgres *backend = walk->backend;

    if (backend->touched_count > 0
        && pawl__view_equal(backend->touched[backend->touched_count - 1], task_id)) {
        return PAWL_OK;
    }
    return is_calm(backend, task_id) && is_claimed_of(walk, task_id)
               ? PAWL_OK
               : pawl__work_pg_touch(backend, &task_id, 1, reterr);
}

static pawl_status take_rows(struct quick_walk *walk,
                             const struct pawl__pg_rows *rows,
                             bool with_claims,
                             pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    size_t call_at = with_claims ? COLUMN_CALL : 0;

    for (size_t i = 0; i < rows->count && status == PAWL_OK; i++) {
        if (with_claims && pawl__pg_get_bool(rows, i, COLUMN_IS_CLAIM)) {
            status = take_claim(walk, rows, i, reterr);
        } else {
            call_of(walk, pawl__pg_get_i64(rows, i, call_at))->ended = true;
        }
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct work_quick_call *call = &walk->calls[i];
        walk->wanted += call->holder.len > 0 && (call->id.len == 0 || call->ended);
    }
    for (size_t i = 0; i < rows->count && status == PAWL_OK; i++) {
        status = touch(walk, pawl__pg_get_text(rows, i, 1), reterr);
    }
    return status;
}

/* Nothing happened, or it is not known: the long way finds out what did. A completion is answered as
 * the first time. A lease that nobody was told of runs out. */
static bool is_for_the_long_way(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_CONFLICT || status == PAWL_INVALID;
}

pawl_status pawl__work_pg_quick(struct work_backend *base,
                                const struct work_filter *filter,
                                struct work_quick_call *calls,
                                size_t count,
                                struct pawl__arena *arena,
                                pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct quick_walk walk = {
        .backend = backend,
        .calls = calls,
        .count = count,
        .arena = arena,
    };
    int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());

    if (backend->clock != pawl__clock_real()
        || (filter != NULL && !has_more(&backend->front, filter))) {
        return PAWL_OK;
    }
    pawl_status status = pawl__work_pg_take_writer(backend, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    prepare_walk(&backend->front, now_ns);
    status = send_durably(backend, filter, calls, count, &rows, reterr);
    if (status == PAWL_OK) {
        status = take_rows(&walk, &rows, filter != NULL, reterr);
    }
    if (filter != NULL && walk.claimed < walk.wanted) {
        backend->front.known = false; /* the end, or something is due: look at everything */
    }
    if (status == PAWL_OK && backend->touched_count > 0) {
        pawl_error error = PAWL_ERROR_INIT;
        (void)!look_at_tasks(backend, &error);
    }
    pawl__work_pg_release_writer(backend);
    return is_for_the_long_way(pawl__work_pg_outcome(status, reterr)) ? PAWL_OK : status;
}
