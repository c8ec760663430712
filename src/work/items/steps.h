/* The state machine of an item as a table: state and command in, the next state out, or none. Every change of an
 * item's status comes from here (decide.c, submit.c); docs/work.md shows the same table, and
 * the triggers of both stores allow what is in it (tests hold all of them together). */
#ifndef PAWL_WORK_ITEMS_STEPS_H
#define PAWL_WORK_ITEMS_STEPS_H

#include "work/core/backend.h"

/* A state is a pawl_item_status, or this. */
enum { WORK_NO_ITEM = PAWL_ITEM_WAITING + 1, WORK_STATES };

enum work_step {
    WORK_STEP_SUBMIT,
    WORK_STEP_SUBMIT_LATER, /* with a delay, or after other items */
    WORK_STEP_ENTER,        /* nothing is left to wait for */
    WORK_STEP_CLAIM,
    WORK_STEP_HEARTBEAT,
    WORK_STEP_COMPLETE,
    WORK_STEP_FAIL,       /* for good, or without a retry left */
    WORK_STEP_FAIL_RETRY, /* with a retry, after its backoff */
    WORK_STEP_RELEASE,
    WORK_STEP_EXPIRE,
    WORK_STEP_EXPIRED_RETRY,
    WORK_STEP_EXPIRED_FAIL, /* without a retry left */
    WORK_STEP_CANCEL,       /* its task was cancelled, or an item that it comes after failed */
    WORK_STEPS
};

/* False: the state has no such step. */
bool pawl__work_step(int state, enum work_step step, pawl_item_status *ret_next);

/* As docs/work.md has it. */
const char *pawl__work_step_text(enum work_step step);

#endif
