/* Schedules: what is due is submitted, once a slot.
 *
 * A slot is due by the wall clock, as people mean it. That it fires once does not depend on any
 * clock: its row is stored in the transaction of its item, whose id is made of schedule and slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "work/core/copy.h"
#include "work/core/internal.h"
#include "work/items/item.h"
#include "work/schedules/backend.h"
#include "work/schedules/cron.h"

enum { RETRIES_DEFAULT = 3 };

/* How long the store remembers which slots have fired. Only a wall clock that was set back asks for an old
 * slot: a year of that (a wrong date, last year's image) and a month on top are covered. The table has no more
 * rows than a schedule has slots in that time. */
#define FIRES_KEPT_US (400 * INT64_C(86400) * US_PER_S)

/* --- Put and remove --- */

struct put_request {
    struct work_request request; /* first */
    const pawl_schedule *given;
    struct work_cron cron;
};

static pawl_status run_put(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct put_request *put = (struct put_request *)request;
    const struct work_schedule_ops *schedules = tx->backend->schedules;
    pawl_schedule *stored = NULL;
    pawl_schedule whole = *put->given;
    pawl_task task;

    if (whole.task_id.len > 0) {
        TRY(pawl__work_tx_task(tx, request, whole.task_id, &task, reterr));
    }
    if (pawl__work_is_refused(request)) {
        return PAWL_OK;
    }
    TRY(schedules->load(tx->backend, whole.schedule_id, tx->arena, &stored, reterr));
    if (stored != NULL && pawl__view_equal(stored->cron, whole.cron)) {
        whole.next_slot_us = stored->next_slot_us; /* a slot that is due stays due */
    } else if (!pawl__work_cron_next(&put->cron, tx->now.wall_us, &whole.next_slot_us)) {
        return pawl__work_refuse(request, PAWL_INVALID, "cron: no slot comes any more");
    }
    return schedules->put(tx->backend, &tx->now, &whole, reterr);
}

/* The item that a slot would submit, without its slot. */
static pawl_submission submission_of(const pawl_schedule *schedule, pawl_view item_id)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = item_id;
    submission.task_id = schedule->task_id.len > 0 ? schedule->task_id : item_id;
    submission.work_type = schedule->work_type;
    submission.input_data = schedule->input_data;
    submission.priority = schedule->priority;
    submission.max_retries = schedule->max_retries;
    return submission;
}

static pawl_status check_schedule(const pawl_work *work,
                                  const pawl_schedule *schedule,
                                  struct work_cron *ret_cron,
                                  pawl_error *reterr)
{
    pawl_submission item = submission_of(schedule, pawl_view_of("item"));
    TRY(pawl__work_check_name("schedule_id", schedule->schedule_id, reterr));
    TRY(pawl__check_limit(
        "schedule_id:", schedule->schedule_id.len, " bytes", PAWL_SCHEDULE_ID_BYTES_MAX, reterr));
    pawl_status status = pawl__work_cron_parse(schedule->cron, ret_cron, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "cron");
    }
    return pawl__work_submission_check(&item, &work->options, reterr);
}

pawl_status pawl_schedule_put(pawl_work *work, const pawl_schedule *schedule, pawl_error *reterr)
{
    pawl_schedule given = PAWL_SCHEDULE_INIT;

    NEED(work, schedule, reterr);
    TRY(pawl__take_sized("schedule", schedule, &given, sizeof(given), reterr));
    NEED_VIEW(given.cron, reterr);
    struct put_request put = {
        .request = { .item = { .bytes = given.input_data.len }, .run = run_put },
        .given = &given,
    };

    given.max_retries = given.max_retries < 0 ? RETRIES_DEFAULT : given.max_retries;
    TRY(check_schedule(work, &given, &put.cron, reterr));
    return pawl__work_submit_request(work, &put.request, reterr);
}

struct remove_request {
    struct work_request request; /* first */
    pawl_view schedule_id;
};

static pawl_status run_remove(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    pawl_view id = ((struct remove_request *)request)->schedule_id;
    bool removed = false;
    TRY(tx->backend->schedules->remove(tx->backend, id, &removed, reterr));
    return !removed
               ? pawl__work_refuse(request, PAWL_NOT_FOUND, "no schedule '%.*s'", VIEW_ARGS(id))
               : PAWL_OK;
}

pawl_status pawl_schedule_remove(pawl_work *work, pawl_view schedule_id, pawl_error *reterr)
{
    NEED(work, reterr);
    struct remove_request remove = {
        .request.run = run_remove,
        .schedule_id = schedule_id,
    };
    TRY(pawl__work_check_name("schedule_id", schedule_id, reterr));
    return pawl__work_submit_request(work, &remove.request, reterr);
}

struct schedule_walk {
    struct pawl__page page;
    char from_id[PAWL_PAGE_ID_SIZE];
    pawl_schedule_visit visit;
    void *context;
};

/* Schedules are few: those before the page are read and passed over. */
static bool show_schedule(void *context, const pawl_schedule *schedule)
{
    struct schedule_walk *walk = context;

    return pawl__view_compare(schedule->schedule_id, pawl_view_of(walk->from_id)) < 0
           || (pawl__page_admits_id(&walk->page, schedule->schedule_id)
               && pawl__page_show(&walk->page, walk->visit(walk->context, schedule)));
}

pawl_status pawl_schedule_list(
    pawl_work *work, pawl_page *page, pawl_schedule_visit visit, void *context, pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct schedule_walk walk = { .visit = visit, .context = context };

    TRY(pawl__page_take(page, &walk.page, reterr));
    memcpy(walk.from_id, walk.page.page.from_id, sizeof(walk.from_id));
    INSIDE(work);
    TRY(work->backend->schedules->list(work->backend, show_schedule, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

/* --- Firing --- */

/* What to do about a schedule now. */
struct turn {
    bool move;       /* next_slot_us is not where it should be */
    bool fire;       /* slot_us is due */
    int64_t slot_us; /* the newest of those that are */
    int64_t next_us; /* INT64_MAX: never again */
};

/* Pure. A stored next slot later than the next one by the clock was set while the clock was ahead: the
 * schedule moves back, and its rows say which slots have fired. */
static struct turn decide_turn(const struct work_cron *cron, int64_t next_slot_us, int64_t wall_us)
{
    struct turn turn = { .next_us = PAWL__WALL_US_MAX };

    if (!pawl__work_cron_next(cron, wall_us, &turn.next_us)) {
        turn.next_us = PAWL__WALL_US_MAX;
    }
    turn.move = next_slot_us != turn.next_us;
    /* 0: foreign SQL put it there and left it to us. */
    turn.fire = next_slot_us != 0 && next_slot_us <= wall_us
                && pawl__work_cron_newest(cron, next_slot_us, wall_us, &turn.slot_us);
    return turn;
}

static void item_id_of(pawl_view schedule_id,
                       int64_t slot_us,
                       char ret_id[PAWL_WORK_NAME_BYTES_MAX + 1])
{
    char time[PAWL__TIME_SIZE];

    pawl__time_rfc3339(slot_us, time);
    (void)snprintf(
        ret_id, PAWL_WORK_NAME_BYTES_MAX + 1, "%.*s@%.16sZ", VIEW_ARGS(schedule_id), time);
}

struct fire_request {
    struct work_request request; /* first */
    pawl_view schedule_id;
    bool fired; /* answer */
};

/* Without a task of the schedule's, the slot's has the id of its item. */
static pawl_status make_task(struct work_tx *tx,
                             const pawl_schedule *schedule,
                             const pawl_submission *item,
                             pawl_error *reterr)
{
    struct work_task known = { .known = true };
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = item->task_id,
                       .title = schedule->schedule_id };
    TRY(schedule->task_id.len > 0
            ? PAWL_OK
            : tx->backend->items->tasks(tx->backend, &item->task_id, 1, tx->arena, &known, reterr));
    return !known.known ? tx->backend->items->task_insert(tx->backend, &tx->now, &task, reterr)
                        : PAWL_OK;
}

static pawl_status fire_slot(struct work_tx *tx,
                             struct fire_request *fire,
                             const pawl_schedule *schedule,
                             int64_t slot_us,
                             pawl_error *reterr)
{
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_view item_id;
    bool fired = false;
    TRY(tx->backend->schedules->fired(tx->backend, schedule->schedule_id, slot_us, &fired, reterr));
    if (fired) {
        return PAWL_OK;
    }
    item_id_of(schedule->schedule_id, slot_us, id);
    if (!pawl__arena_copy(tx->arena, pawl_view_of(id), &item_id)) {
        return pawl__fail(reterr, PAWL_NOMEM, "slot");
    }
    pawl_submission item = submission_of(schedule, item_id);
    struct work_row *there = NULL; /* left by a schedule of this name that was removed */
    TRY(tx->backend->items->load(tx->backend, &item_id, 1, tx->arena, &there, reterr));
    if (there == NULL) {
        TRY(make_task(tx, schedule, &item, reterr));
        TRY(pawl__work_tx_submit(tx, &fire->request, &item, NULL, 1, NULL, reterr));
    }
    if (pawl__work_is_refused(&fire->request)) {
        return PAWL_OK;
    }
    fire->fired = there == NULL;
    TRY(tx->backend->schedules->fire(tx->backend, schedule->schedule_id, slot_us, item_id, reterr));
    return tx->backend->schedules->forget(
        tx->backend, schedule->schedule_id, tx->now.age_us - FIRES_KEPT_US, reterr);
}

static pawl_status run_fire(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct fire_request *fire = (struct fire_request *)request;
    const struct work_schedule_ops *schedules = tx->backend->schedules;
    pawl_schedule *schedule = NULL;
    struct work_cron cron;

    fire->fired = false;
    TRY(schedules->load(tx->backend, fire->schedule_id, tx->arena, &schedule, reterr));
    if (schedule == NULL) {
        return PAWL_OK;
    }
    if (pawl__work_cron_parse(schedule->cron, &cron, &request->item.outcome) != PAWL_OK) {
        return PAWL_OK; /* foreign SQL put it there */
    }
    struct turn turn = decide_turn(&cron, schedule->next_slot_us, tx->now.wall_us);
    if (turn.fire) {
        REQUIRE(turn.slot_us <= tx->now.wall_us); /* a slot never fires before its time */
        TRY(fire_slot(tx, fire, schedule, turn.slot_us, reterr));
    }
    return turn.move && !pawl__work_is_refused(request)
               ? schedules->move(tx->backend, &tx->now, fire->schedule_id, turn.next_us, reterr)
               : PAWL_OK;
}

/* Schedules that are due, found by a reader, which blocks no writer. */
struct due {
    int64_t wall_us;
    struct work_id_list ids;
};

static bool note_due(void *context, const pawl_schedule *schedule)
{
    struct due *due = context;
    struct work_cron cron;

    if (pawl__work_cron_parse(schedule->cron, &cron, NULL) == PAWL_OK) {
        struct turn turn = decide_turn(&cron, schedule->next_slot_us, due->wall_us);
        if (!turn.fire && !turn.move) {
            return true;
        }
    }
    return pawl__work_id_list_add(&due->ids, schedule->schedule_id);
}

static pawl_status fire_all(pawl_work *work,
                            const struct work_id *first,
                            uint64_t *ret_fired,
                            pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status worst = PAWL_OK;

    for (const struct work_id *at = first; at != NULL; at = at->next) {
        struct fire_request fire = {
            .request.run = run_fire,
            .schedule_id = at->id,
        };
        pawl_status status = pawl__work_submit_request(work, &fire.request, &error);
        if (status == PAWL_OK) {
            *ret_fired += fire.fired;
        } else if (worst == PAWL_OK) {
            worst = pawl__fail_context(&error, status, "schedule '%.*s'", VIEW_ARGS(at->id));
            if (reterr != NULL) {
                *reterr = error;
            }
        }
    }
    return worst;
}

pawl_status pawl_schedule_fire(pawl_work *work, uint64_t *ret_fired, pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_backend *backend = work->backend;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct due due = { .ids.arena = &arena };
    struct work_now now;
    uint64_t fired = 0;

    TRY(backend->store->read_now(backend, &now, reterr));
    due.wall_us = now.wall_us;
    TRY(backend->schedules->list(backend, note_due, &due, reterr));
    if (due.ids.nomem) {
        return pawl__fail(reterr, PAWL_NOMEM, "schedules");
    }
    TRY(fire_all(work, due.ids.first, &fired, reterr));
    if (ret_fired != NULL) {
        *ret_fired = fired;
    }
    return PAWL_OK;
}
