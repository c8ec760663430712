#include "base/decide/group_commit.h"

#include <inttypes.h>

#include "base/core/error.h"

pawl_status pawl__commit_core_init(struct pawl__commit_core *core,
                                   const struct pawl__commit_limits *limits,
                                   pawl_error *reterr)
{
    if (limits->batch_items_max < 1 || limits->batch_items_max > PAWL__COMMIT_BATCH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "batch_items_max is %zu; allowed are 1 to %d",
                          limits->batch_items_max,
                          PAWL__COMMIT_BATCH_MAX);
    }
    if (limits->batch_bytes_max < 1) {
        return pawl__fail(reterr, PAWL_INVALID, "batch_bytes_max is 0; at least 1 is allowed");
    }
    if (limits->waiting_max < 1) {
        return pawl__fail(reterr, PAWL_INVALID, "waiting_max is 0; at least 1 is allowed");
    }
    if (limits->linger_ns < 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "linger_ns is %" PRId64 "; it cannot be negative",
                          limits->linger_ns);
    }
    *core = (struct pawl__commit_core){ .limits = *limits };
    return PAWL_OK;
}

static pawl_status check_submit(const struct pawl__commit_core *core,
                                const struct pawl__commit_item *item,
                                pawl_error *reterr)
{
    if (core->closed) {
        return pawl__fail(reterr, PAWL_CLOSED, "nothing is committed any more: shutting down");
    }
    if (item->bytes > core->limits.batch_bytes_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "one item of %zu bytes, a batch holds %zu",
                          item->bytes,
                          core->limits.batch_bytes_max);
    }
    bool async = item->done != NULL;
    if (core->waiting >= core->limits.waiting_max
        || (async && core->limits.async_max != 0 && core->waiting >= core->limits.async_max)) {
        return pawl__fail_detail(reterr,
                                 PAWL_BUSY,
                                 PAWL_DETAIL_QUEUE_FULL,
                                 "%zu items wait already, the limit",
                                 core->waiting);
    }
    if (async && core->limits.async_bytes_max != 0 && core->waiting > 0
        && core->waiting_bytes + item->bytes > core->limits.async_bytes_max) {
        return pawl__fail_detail(reterr,
                                 PAWL_BUSY,
                                 PAWL_DETAIL_QUEUE_FULL,
                                 "%zu bytes wait already, near the limit",
                                 core->waiting_bytes);
    }
    return PAWL_OK;
}

static bool batch_is_full(const struct pawl__commit_core *core)
{
    return core->waiting >= core->limits.batch_items_max
           || core->waiting_bytes >= core->limits.batch_bytes_max;
}

/* Who was answered comes back soon, as a rule: then all of them share the next batch. */
static bool company_is_here(const struct pawl__commit_core *core)
{
    return core->limits.only_for_recent_callers && core->waiting >= core->recent_callers;
}

pawl_status pawl__commit_core_submit(struct pawl__commit_core *core,
                                     struct pawl__commit_item *item,
                                     int64_t now_ns,
                                     bool *ret_wake,
                                     pawl_error *reterr)
{
    REQUIRE(item->state == PAWL__COMMIT_IDLE || item->state == PAWL__COMMIT_ANSWERED);
    pawl_status status = check_submit(core, item, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    bool was_full = batch_is_full(core) || (core->waiting > 0 && company_is_here(core));
    item->outcome.status = PAWL_OK;
    item->outcome.message[0] = '\0';
    item->state = PAWL__COMMIT_WAITING;
    item->given_up = false;
    item->submitted_ns = now_ns;
    item->next = NULL;
    item->before = core->last;
    if (core->last != NULL) {
        core->last->next = item;
    } else {
        core->first = item;
    }
    core->last = item;
    core->waiting++;
    core->waiting_bytes += item->bytes;
    /* A waiting committer has something to decide at the first item and when the batch becomes
     * full; one that is in flight looks again by itself. */
    bool becomes_full = !was_full && (batch_is_full(core) || company_is_here(core));
    *ret_wake = core->in_flight == 0 && (core->waiting == 1 || becomes_full);
    return PAWL_OK;
}

enum pawl__commit_step pawl__commit_core_next(const struct pawl__commit_core *core,
                                              int64_t now_ns,
                                              int64_t *ret_until_ns)
{
    int64_t until_ns;

    REQUIRE(core->in_flight == 0);
    if (core->waiting == 0) {
        return core->closed ? PAWL__COMMIT_STOP : PAWL__COMMIT_WAIT;
    }
    if (core->closed || batch_is_full(core) || company_is_here(core)) {
        return PAWL__COMMIT_TAKE;
    }
    /* Who submitted during a batch has waited long enough by then, but those whom the batch answered
     * had no time to come back: without it two halves of the callers take turns, and every batch is
     * half as large as it could be. */
    int64_t from_ns = core->first->submitted_ns;
    if (core->limits.only_for_recent_callers) {
        from_ns = MAX(from_ns, core->answered_ns);
    }
    if (__builtin_add_overflow(from_ns, core->limits.linger_ns, &until_ns)) {
        until_ns = INT64_MAX;
    }
    if (now_ns >= until_ns) {
        return PAWL__COMMIT_TAKE;
    }
    *ret_until_ns = until_ns;
    return PAWL__COMMIT_WAIT_UNTIL;
}

static void unlink_waiting(struct pawl__commit_core *core, struct pawl__commit_item *item)
{
    REQUIRE(item->state == PAWL__COMMIT_WAITING);
    if (item->before != NULL) {
        item->before->next = item->next;
    } else {
        core->first = item->next;
    }
    if (item->next != NULL) {
        item->next->before = item->before;
    } else {
        core->last = item->before;
    }
    item->next = NULL;
    item->before = NULL;
    core->waiting--;
    core->waiting_bytes -= item->bytes;
}

size_t pawl__commit_core_begin_batch(struct pawl__commit_core *core,
                                     struct pawl__commit_item **ret_items)
{
    size_t count = 0;
    size_t bytes = 0;

    REQUIRE(core->in_flight == 0);
    while (core->first != NULL && count < core->limits.batch_items_max
           && core->first->bytes <= core->limits.batch_bytes_max - bytes) {
        struct pawl__commit_item *item = core->first;
        unlink_waiting(core, item);
        item->state = PAWL__COMMIT_IN_FLIGHT;
        bytes += item->bytes;
        ret_items[count++] = item;
    }
    REQUIRE(count > 0);
    core->in_flight = count;
    return count;
}

static void answer(struct pawl__commit_item *item, const pawl_error *failure)
{
    if (failure != NULL) {
        item->outcome = *failure;
    }
    item->state = PAWL__COMMIT_ANSWERED;
}

void pawl__commit_core_answer(struct pawl__commit_core *core,
                              struct pawl__commit_item *const *items,
                              size_t count,
                              int64_t now_ns,
                              const pawl_error *failure)
{
    REQUIRE(count == core->in_flight);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(items[i]->state == PAWL__COMMIT_IN_FLIGHT);
        answer(items[i], failure);
    }
    core->in_flight = 0;
    core->recent_callers = count + core->waiting;
    core->answered_ns = now_ns;
    core->batches++;
    core->items += count;
}

enum pawl__commit_state pawl__commit_core_give_up(struct pawl__commit_core *core,
                                                  struct pawl__commit_item *item)
{
    enum pawl__commit_state was = item->state;

    REQUIRE(was != PAWL__COMMIT_IDLE);
    if (was == PAWL__COMMIT_WAITING) {
        unlink_waiting(core, item);
        item->state = PAWL__COMMIT_IDLE;
    } else if (was == PAWL__COMMIT_IN_FLIGHT) {
        item->given_up = true;
    }
    return was;
}

void pawl__commit_core_close(struct pawl__commit_core *core)
{
    core->closed = true;
}

struct pawl__commit_item *pawl__commit_core_fail_waiting(struct pawl__commit_core *core)
{
    struct pawl__commit_item *failed = core->first;
    pawl_error closed = PAWL_ERROR_INIT;

    pawl__fail(&closed, PAWL_CLOSED, "not committed: shutting down");
    for (struct pawl__commit_item *item = failed; item != NULL; item = item->next) {
        answer(item, &closed);
    }
    core->closed = true;
    core->first = NULL;
    core->last = NULL;
    core->waiting = 0;
    core->waiting_bytes = 0;
    return failed;
}
