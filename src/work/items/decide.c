#include "work/items/decide.h"

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/decide/lease.h"
#include "base/json/json.h"
#include "work/items/item.h"
#include "work/items/steps.h"

static pawl_view text_of(const char *text)
{
    return pawl_view_of(text);
}

/* The new time always differs from the last one: stores detect a change by it. */
static void stamp(struct work_row *row, const struct work_now *now)
{
    row->item.updated_at_us = now->wall_us + (row->item.updated_at_us == now->wall_us);
}

static int64_t add_ns(int64_t now_ns, int64_t ns)
{
    return now_ns > INT64_MAX - ns ? INT64_MAX : now_ns + ns;
}

static int64_t wall_at(const struct work_now *now, int64_t ns)
{
    int64_t us = (ns - now->ns) / NS_PER_US;

    return us > PAWL__WALL_US_MAX - now->wall_us ? PAWL__WALL_US_MAX : now->wall_us + us;
}

/* Every change of status comes from the table of steps. */
static void apply_step(struct work_row *row, enum work_step step)
{
    pawl_item_status next = row->item.status;

    REQUIRE(pawl__work_step((int)row->item.status, step, &next));
    row->item.status = next;
}

static void drop_lease(struct work_row *row)
{
    row->item.lease_holder = (pawl_view){ NULL, 0 };
    row->item.lease_expires_at_us = 0;
    row->deadline_ns = 0;
}

static struct pawl__lease lease_of(const struct work_row *row)
{
    return (struct pawl__lease){
        .owner = row->item.status == PAWL_ITEM_IN_PROGRESS,
        .token = row->item.token,
        .deadline_ns = row->deadline_ns,
    };
}

static pawl_status lost(const struct work_row *row, uint64_t token, pawl_error *reterr)
{
    if (token != row->item.token) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "item '%.*s': token %llu is not the newest, which is %llu",
                          VIEW_ARGS(row->item.work_item_id),
                          (unsigned long long)token,
                          (unsigned long long)row->item.token);
    }
    if (row->item.status == PAWL_ITEM_IN_PROGRESS) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "item '%.*s': the lease has run out",
                          VIEW_ARGS(row->item.work_item_id));
    }
    return pawl__fail(reterr,
                      PAWL_LEASE_LOST,
                      "item '%.*s': it is %s",
                      VIEW_ARGS(row->item.work_item_id),
                      pawl__work_item_status_text(row->item.status));
}

pawl_status pawl__work_decide_held(const struct work_row *row,
                                   uint64_t token,
                                   const struct work_now *now,
                                   pawl_error *reterr)
{
    struct pawl__lease lease = lease_of(row);

    return pawl__lease_check(&lease, token, now->ns, NULL) == PAWL_OK ? PAWL_OK
                                                                      : lost(row, token, reterr);
}

/* Without memory for the comparison the values count as different: the caller gets LEASE_LOST. */
static bool is_same_json(pawl_view a, pawl_view b)
{
    bool same = false;

    return pawl__json_same(a, b, &same, NULL) == PAWL_OK && same;
}

/* Whether this token has ended its lease with this same command already: the caller missed the answer, and gets
 * it now. An expiry or a cancellation leaves another status or another message. */
static bool done_before(const struct work_row *row, const struct work_command *command)
{
    if (command->token == 0 || command->token != row->item.token) {
        return false;
    }
    switch (command->kind) {
    case WORK_COMPLETE:
        return row->item.status == PAWL_ITEM_COMPLETED
               && is_same_json(row->item.output_data, command->output_data);
    case WORK_FAIL:
        return (row->item.status == PAWL_ITEM_FAILED || row->item.status == PAWL_ITEM_WAITING
                || row->item.status == PAWL_ITEM_PENDING)
               && pawl__view_equal(row->item.error_message, command->error_message);
    case WORK_RELEASE:
        return row->item.status == PAWL_ITEM_PENDING && row->item.error_message.len == 0;
    case WORK_HEARTBEAT:
        break;
    }
    return false;
}

static void heartbeat(struct work_row *row, int64_t lease_ns, const struct work_now *now)
{
    int64_t deadline_ns = add_ns(now->ns, lease_ns);

    apply_step(row, WORK_STEP_HEARTBEAT);
    if (deadline_ns > row->deadline_ns) {
        row->deadline_ns = deadline_ns;
        row->item.lease_expires_at_us = wall_at(now, deadline_ns);
    }
    row->item.heartbeat_at_us = now->wall_us;
}

static void end(struct work_row *row, enum work_step step, const struct work_now *now)
{
    apply_step(row, step);
    drop_lease(row);
    row->item.completed_at_us = now->wall_us;
}

static void fail(struct work_row *row,
                 const struct work_command *command,
                 const struct work_now *now)
{
    row->item.error_message = command->error_message;
    if (!command->retryable || row->item.retry_count >= row->item.max_retries) {
        row->item.output_data = command->output_data;
        end(row, WORK_STEP_FAIL, now);
        return;
    }
    apply_step(row, WORK_STEP_FAIL_RETRY);
    drop_lease(row);
    row->item.retry_count++;
    row->reason = WORK_BACKOFF;
    row->waits_for = 0;
    row->due_ns = add_ns(
        now->ns,
        pawl__backoff_ns(&command->backoff, (uint64_t)row->item.retry_count, command->random));
    row->item.due_at_us = wall_at(now, row->due_ns);
}

static void release(struct work_row *row)
{
    apply_step(row, WORK_STEP_RELEASE);
    drop_lease(row);
    row->item.error_message = (pawl_view){ NULL, 0 }; /* its own try had none: see done_before */
}

pawl_status pawl__work_decide_leased(struct work_row *row,
                                     const struct work_command *command,
                                     const struct work_now *now,
                                     bool *ret_changed,
                                     pawl_error *reterr)
{
    *ret_changed = false;
    if (done_before(row, command)) {
        return PAWL_OK;
    }
    TRY(pawl__work_decide_held(row, command->token, now, reterr));
    switch (command->kind) {
    case WORK_HEARTBEAT:
        heartbeat(row, command->lease_ns, now);
        break;
    case WORK_COMPLETE:
        row->item.output_data = command->output_data;
        row->item.error_message = (pawl_view){ NULL, 0 };
        end(row, WORK_STEP_COMPLETE, now);
        break;
    case WORK_FAIL:
        fail(row, command, now);
        break;
    case WORK_RELEASE:
        release(row);
        break;
    }
    stamp(row, now);
    *ret_changed = true;
    return PAWL_OK;
}

pawl_status pawl__work_decide_claim(struct work_row *row,
                                    pawl_view holder,
                                    int64_t lease_ns,
                                    const struct work_now *now,
                                    pawl_error *reterr)
{
    struct pawl__lease lease = lease_of(row);

    TRY(pawl__lease_claim(&lease, 1, now->ns, lease_ns, reterr));
    REQUIRE(lease.token > row->item.token); /* or an earlier holder could still end the item */
    apply_step(row, WORK_STEP_CLAIM);
    row->item.token = lease.token;
    row->item.attempts++;
    row->item.lease_holder = holder;
    row->item.lease_acquired_at_us = now->wall_us;
    row->item.heartbeat_at_us = now->wall_us;
    row->deadline_ns = lease.deadline_ns;
    row->item.lease_expires_at_us = wall_at(now, lease.deadline_ns);
    if (row->item.started_at_us == 0) {
        row->item.started_at_us = now->wall_us;
    }
    stamp(row, now);
    return PAWL_OK;
}

bool pawl__work_decide_expire(struct work_row *row, const struct work_now *now)
{
    struct pawl__lease lease = lease_of(row);

    if (row->item.status != PAWL_ITEM_EXPIRED && !pawl__lease_expire(&lease, now->ns)) {
        return false;
    }
    apply_step(row, WORK_STEP_EXPIRE);
    drop_lease(row);
    row->item.error_message = text_of(WORK_EXPIRED_MESSAGE);
    stamp(row, now);
    return true;
}

void pawl__work_decide_after_expiry(struct work_row *row, const struct work_now *now)
{
    if (row->item.retry_count < row->item.max_retries) {
        apply_step(row, WORK_STEP_EXPIRED_RETRY);
        row->item.retry_count++;
    } else {
        end(row, WORK_STEP_EXPIRED_FAIL, now);
    }
    stamp(row, now);
}

bool pawl__work_decide_cancel(struct work_row *row, pawl_view message, const struct work_now *now)
{
    if (pawl__work_item_has_ended(row->item.status)) {
        return false;
    }
    row->item.error_message = message;
    end(row, WORK_STEP_CANCEL, now);
    stamp(row, now);
    return true;
}

static void enter(struct work_row *row, const struct work_now *now)
{
    apply_step(row, WORK_STEP_ENTER);
    row->item.due_at_us = 0;
    row->reason = WORK_REASON_NONE;
    row->due_ns = INT64_MIN;
    stamp(row, now);
}

bool pawl__work_decide_freed(struct work_row *row, const struct work_now *now)
{
    REQUIRE(row->item.status == PAWL_ITEM_WAITING);
    row->waits_for -= row->waits_for > 0;
    if (row->waits_for > 0) {
        stamp(row, now);
        return false;
    }
    row->reason = WORK_DELAY;
    if (!pawl__work_decide_due(row, now)) {
        stamp(row, now);
        return false;
    }
    return true;
}

bool pawl__work_decide_due(struct work_row *row, const struct work_now *now)
{
    REQUIRE(row->item.status == PAWL_ITEM_WAITING);
    if (row->waits_for > 0 || row->due_ns > now->ns) {
        return false;
    }
    enter(row, now);
    return true;
}

/* A task has ended when none of its items is unfinished. */
pawl_task_status pawl__work_decide_task(pawl_task_status status,
                                        const struct work_task_facts *facts)
{
    if (facts->unfinished) {
        return facts->started || status == PAWL_TASK_SUCCEEDED || status == PAWL_TASK_FAILED
                   ? PAWL_TASK_RUNNING
                   : status;
    }
    if (!facts->any) {
        return status;
    }
    return facts->failed ? PAWL_TASK_FAILED : PAWL_TASK_SUCCEEDED;
}
