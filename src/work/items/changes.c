/* The feed of changes: reading it from a position on, and learning that there is more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "work/core/internal.h"
#include "work/items/item.h"

enum { CHANGES_MAX = 10000 };

/* --- positions --- */

pawl_status pawl_work_position_format(const pawl_work_position *position,
                                      char *ret_text,
                                      size_t room,
                                      pawl_error *reterr)
{
    char text[PAWL_WORK_POSITION_SIZE];

    NEED(position, ret_text, reterr);
    int len =
        snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, position->transaction, position->seq);
    TRY(pawl__check_room("ret_text", ret_text, room, (size_t)len + 1, reterr));
    memcpy(ret_text, text, (size_t)len + 1);
    return PAWL_OK;
}

/* Digits up to INT64_MAX, which is all that a store has. */
static bool read_number(pawl_view text, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (number > ((uint64_t)INT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret_number = number;
    return text.len > 0;
}

pawl_status pawl_work_position_parse(pawl_view text,
                                     pawl_work_position *ret_position,
                                     pawl_error *reterr)
{
    NEED(ret_position, reterr);
    NEED_VIEW(text, reterr);
    pawl_work_position position = { 0, 0 };
    const char *dash = text.len == 0 ? NULL : memchr(text.data, '-', text.len);
    size_t before = dash == NULL ? 0 : (size_t)(dash - text.data);
    if (dash == NULL || !read_number((pawl_view){ text.data, before }, &position.transaction)
        || !read_number((pawl_view){ dash + 1, text.len - before - 1 }, &position.seq)) {
        return pawl__fail(reterr, PAWL_INVALID, "position: is not one, as 0-17 is");
    }
    *ret_position = position;
    return PAWL_OK;
}

static bool is_before(const pawl_work_position *a, const pawl_work_position *b)
{
    return a->transaction != b->transaction ? a->transaction < b->transaction : a->seq < b->seq;
}

/* --- reading --- */

struct change_walk {
    pawl_change_filter filter;
    pawl_work_change_visit visit;
    void *context;
    struct work_changes_bounds bounds;
    pawl_work_position from;
    pawl_work_position at;
    uint64_t count;
};

static bool passes(const pawl_change_filter *filter, const pawl_work_change *change)
{
    pawl_item_status to = PAWL_ITEM_PENDING;

    return (filter->task_id.len == 0 || pawl__view_equal(filter->task_id, change->task_id))
           && (filter->work_type.len == 0 || pawl__view_equal(filter->work_type, change->work_type))
           && (filter->statuses == 0
               || (pawl__work_item_status_parse(pawl_view_of(change->to), &to)
                   && (filter->statuses >> to & 1) != 0));
}

static pawl_status check_position(const pawl_work_position *position,
                                  const struct work_changes_bounds *bounds,
                                  pawl_error *reterr)
{
    bool beginning = position->transaction == 0 && position->seq == 0;

    if (!beginning && is_before(position, &bounds->floor)) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "changes after this position were removed: begin anew");
    }
    if (is_before(&bounds->end, position)) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "the store has not reached this position: begin anew");
    }
    return PAWL_OK;
}

static bool show_change(void *context, const pawl_work_change *change)
{
    struct change_walk *walk = context;

    if (check_position(&walk->from, &walk->bounds, NULL) != PAWL_OK) {
        return false; /* the caller is told */
    }
    walk->at = change->position;
    walk->count++;
    return change->work_item_id.len == 0 /* the place of a row that was removed */
           || !passes(&walk->filter, change) || walk->visit(walk->context, change);
}

static pawl_status check_filter(const pawl_change_filter *filter, pawl_error *reterr)
{
    TRY(pawl__work_check_optional_name("filter: task_id", filter->task_id, reterr));
    TRY(pawl__work_check_optional_name("filter: work_type", filter->work_type, reterr));
    if (filter->statuses >> (PAWL_ITEM_WAITING + 1) != 0) {
        return pawl__fail(reterr, PAWL_INVALID, "filter: statuses: has bits of no status");
    }
    return PAWL_OK;
}

static pawl_status read_changes(pawl_work *work,
                                uint64_t limit,
                                struct change_walk *walk,
                                pawl_error *reterr)
{
    walk->at = walk->from;
    if (work->backend->items->changes == NULL) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "this store has no feed of changes");
    }
    AUTO(pawl__inside_leave) struct pawl__inside inside;
    pawl__inside_enter(&inside, work);
    return work->backend->items->changes(
        work->backend, &walk->from, limit, &walk->bounds, show_change, walk, reterr);
}

static bool stop_at_once(void *context, const pawl_work_change *change)
{
    (void)context;
    (void)change;
    return false;
}

pawl_status pawl_work_changes_end(pawl_work *work,
                                  pawl_work_position *ret_position,
                                  pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(ret_position, reterr);
    struct change_walk walk = { .visit = stop_at_once, .from = { INT64_MAX, INT64_MAX } };
    TRY(read_changes(work, 1, &walk, reterr));
    *ret_position = walk.bounds.end;
    return PAWL_OK;
}

pawl_status pawl_work_changes(pawl_work *work,
                              const pawl_change_filter *filter,
                              uint32_t limit,
                              pawl_work_position *position,
                              pawl_work_change_visit visit,
                              void *context,
                              uint64_t *ret_count,
                              pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(position, reterr);
    NEED(visit, reterr);
    struct change_walk walk = {
        .filter = PAWL_CHANGE_FILTER_INIT, .visit = visit, .context = context, .from = *position
    };
    TRY(pawl__take_sized("filter", filter, &walk.filter, sizeof(walk.filter), reterr));
    TRY(check_filter(&walk.filter, reterr));
    TRY(pawl__check_range("limit", limit, 1, CHANGES_MAX, reterr));
    TRY(read_changes(work, limit, &walk, reterr));
    TRY(check_position(position, &walk.bounds, reterr));
    *position = walk.at;
    if (ret_count != NULL) {
        *ret_count = walk.count;
    }
    return PAWL_OK;
}

/* --- learning of more --- */

struct pawl_work_subscription {
    pawl_work *work;
    void (*notify)(void *context);
    void *context;
    struct pawl__watch_subscriber subscriber;
};

/* It may end its subscription, which is not looked at afterwards. */
static void tell_subscriber(void *context)
{
    const struct pawl_work_subscription *subscription = context;

    INSIDE(subscription->work);
    subscription->notify(subscription->context);
}

/* Something was committed elsewhere. */
static void pass_on(void *context)
{
    pawl_work *work = context;

    pawl__watch_bump(&work->changes);
}

/* What other processes change is found by the watch that wakes claims. */
static pawl_status follow_locked(pawl_work *work, pawl_error *reterr)
    REQUIRES_LOCK(work->waiters.lock)
{
    if (work->elsewhere.watch == NULL) {
        TRY(pawl__watch_outside(&work->engine.watch, reterr));
        TRY(pawl__watch_subscribe(&work->engine.watch, &work->elsewhere, pass_on, work, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl_work_changes_subscribe(pawl_work *work,
                                        void (*notify)(void *context),
                                        void *context,
                                        pawl_work_subscription **ret_subscription,
                                        pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(notify, reterr);
    NEED(ret_subscription, reterr);
    struct pawl_work_subscription *subscription = calloc(1, sizeof(*subscription));
    if (subscription == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a subscription");
    }
    *subscription = (struct pawl_work_subscription){ work, notify, context, { .fd = -1 } };
    pawl__lock(&work->waiters.lock);
    pawl_status status = follow_locked(work, reterr);
    pawl__unlock(&work->waiters.lock);
    if (status == PAWL_OK) {
        status = pawl__watch_subscribe(
            &work->changes, &subscription->subscriber, tell_subscriber, subscription, reterr);
    }
    if (status != PAWL_OK) {
        free(subscription);
        return status;
    }
    atomic_fetch_add(&work->followers, 1);
    *ret_subscription = subscription;
    return PAWL_OK;
}

void pawl_work_changes_unsubscribe(pawl_work_subscription *subscription)
{
    if (subscription != NULL) {
        atomic_fetch_sub(&subscription->work->followers, 1);
        pawl__watch_unsubscribe(&subscription->subscriber);
        free(subscription);
    }
}

void pawl__work_changes_init(pawl_work *work)
{
    pawl__watch_init(&work->changes, NULL, NULL);
}

void pawl__work_changes_done(pawl_work *work)
{
    pawl__watch_unsubscribe(&work->elsewhere);
    pawl__watch_done(&work->changes);
}
