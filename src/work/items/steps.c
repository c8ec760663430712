#include "work/items/steps.h"

#define TO(state) ((state) + 1) /* 0: no such step */

static const struct {
    const char *text;
    unsigned char next[WORK_STATES]; /* by the state before */
} steps[WORK_STEPS] = {
    [WORK_STEP_SUBMIT] = { "submit", { [WORK_NO_ITEM] = TO(PAWL_ITEM_PENDING) } },
    [WORK_STEP_SUBMIT_LATER] = { "submit with a delay or `after`",
                                 { [WORK_NO_ITEM] = TO(PAWL_ITEM_WAITING) } },
    [WORK_STEP_ENTER] = { "the delay or backoff is over, the last item before it completed",
                          { [PAWL_ITEM_WAITING] = TO(PAWL_ITEM_PENDING) } },
    [WORK_STEP_CLAIM] = { "claim", { [PAWL_ITEM_PENDING] = TO(PAWL_ITEM_IN_PROGRESS) } },
    [WORK_STEP_HEARTBEAT] = { "heartbeat",
                              { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_IN_PROGRESS) } },
    [WORK_STEP_COMPLETE] = { "complete", { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_COMPLETED) } },
    [WORK_STEP_FAIL] = { "fail, permanent or without a retry left",
                         { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_FAILED) } },
    [WORK_STEP_FAIL_RETRY] = { "fail, to be retried after its backoff",
                               { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_WAITING) } },
    [WORK_STEP_RELEASE] = { "release", { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_PENDING) } },
    [WORK_STEP_EXPIRE] = { "sweep: the lease has run out",
                           { [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_EXPIRED),
                             [PAWL_ITEM_EXPIRED] = TO(PAWL_ITEM_EXPIRED) } },
    [WORK_STEP_EXPIRED_RETRY] = { "sweep, with a retry left",
                                  { [PAWL_ITEM_EXPIRED] = TO(PAWL_ITEM_PENDING) } },
    [WORK_STEP_EXPIRED_FAIL] = { "sweep, without a retry left",
                                 { [PAWL_ITEM_EXPIRED] = TO(PAWL_ITEM_FAILED) } },
    [WORK_STEP_CANCEL] = { "the task is cancelled, or an item before it failed",
                           { [PAWL_ITEM_PENDING] = TO(PAWL_ITEM_FAILED),
                             [PAWL_ITEM_IN_PROGRESS] = TO(PAWL_ITEM_FAILED),
                             [PAWL_ITEM_EXPIRED] = TO(PAWL_ITEM_FAILED),
                             [PAWL_ITEM_WAITING] = TO(PAWL_ITEM_FAILED) } },
};

bool pawl__work_step(int state, enum work_step step, pawl_item_status *ret_next)
{
    if (state < 0 || state >= WORK_STATES || steps[step].next[state] == 0) {
        return false;
    }
    *ret_next = (pawl_item_status)(steps[step].next[state] - 1);
    return true;
}

const char *pawl__work_step_text(enum work_step step)
{
    return steps[step].text;
}
