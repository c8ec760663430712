#include "cli/run/step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

static int64_t later(int64_t from_ns, int64_t by_ns)
{
    return by_ns > INT64_MAX - from_ns ? INT64_MAX : from_ns + by_ns;
}

struct runner_step pawl__cli_step_start(int64_t now_ns, int64_t timeout_ns, int64_t grace_ns)
{
    return (struct runner_step){
        .timeout_at_ns = later(now_ns, timeout_ns),
        .grace_ns = grace_ns,
        .kill_at_ns = INT64_MAX,
    };
}

static enum runner_action ask_to_end(struct runner_step *step,
                                     enum runner_reason reason,
                                     int64_t now_ns)
{
    bool asked = step->reason != RUNNER_RUNS;

    if (!asked || reason == RUNNER_WAS_LOST) {
        step->reason = reason;
    }
    if (asked) {
        return RUNNER_NOTHING;
    }
    step->kill_at_ns = later(now_ns, step->grace_ns);
    return RUNNER_TERM;
}

static enum runner_action on_tick(struct runner_step *step, int64_t now_ns)
{
    if (step->reason != RUNNER_RUNS) {
        if (step->killed || now_ns < step->kill_at_ns) {
            return RUNNER_NOTHING;
        }
        step->killed = true;
        return RUNNER_KILL;
    }
    return now_ns >= step->timeout_at_ns ? ask_to_end(step, RUNNER_TIMED_OUT, now_ns)
                                         : RUNNER_NOTHING;
}

enum runner_action pawl__cli_step(struct runner_step *step, enum runner_event event, int64_t now_ns)
{
    switch (event) {
    case RUNNER_LOST:
        return ask_to_end(step, RUNNER_WAS_LOST, now_ns);
    case RUNNER_STOP:
        return ask_to_end(step, RUNNER_WAS_STOPPED, now_ns);
    case RUNNER_TICK:
        return on_tick(step, now_ns);
    case RUNNER_EXITED:
        step->kill_at_ns = INT64_MAX;
        step->timeout_at_ns = INT64_MAX;
        step->killed = true;
        return RUNNER_NOTHING;
    }
    return RUNNER_NOTHING;
}

int64_t pawl__cli_step_wake_ns(const struct runner_step *step)
{
    if (step->killed) {
        return INT64_MAX;
    }
    return step->reason == RUNNER_RUNS ? step->timeout_at_ns : step->kill_at_ns;
}

enum runner_verdict pawl__cli_step_verdict(const struct runner_step *step,
                                           const struct runner_exit *exit,
                                           bool may_retry)
{
    if (step->reason == RUNNER_WAS_LOST) {
        return RUNNER_FORGET;
    }
    if (!exit->started) {
        /* Too long for the kernel: no other try will be shorter. */
        return exit->code == E2BIG ? RUNNER_FAIL : RUNNER_RELEASE;
    }
    if (step->reason == RUNNER_WAS_STOPPED) {
        return RUNNER_RELEASE;
    }
    if (step->reason == RUNNER_RUNS && exit->signal == 0 && exit->code == 0) {
        return RUNNER_COMPLETE;
    }
    return may_retry ? RUNNER_RETRY : RUNNER_FAIL;
}

void pawl__cli_step_message(const struct runner_step *step,
                            const struct runner_exit *exit,
                            char ret_message[RUNNER_MESSAGE_SIZE])
{
    const char *why = step->reason == RUNNER_TIMED_OUT ? "timed out, " : "";

    if (!exit->started) {
        snprintf(ret_message,
                 RUNNER_MESSAGE_SIZE,
                 "the command could not be started: %s",
                 exit->code == E2BIG ? "its input is too long for a command line; take {} out and "
                                       "read standard input"
                                     : strerrordesc_np(exit->code));
    } else if (exit->signal != 0) {
        const char *name = sigdescr_np(exit->signal);
        snprintf(ret_message,
                 RUNNER_MESSAGE_SIZE,
                 "%sended by signal %d (%s)",
                 why,
                 exit->signal,
                 name == NULL ? "unknown" : name);
    } else {
        snprintf(ret_message, RUNNER_MESSAGE_SIZE, "%sexit code %d", why, exit->code);
    }
}

/* --- heartbeats --- */

struct runner_beat pawl__cli_beat_start(int64_t asked_at_ns, int64_t lease_ns, int64_t every_ns)
{
    return (struct runner_beat){
        .lease_ns = lease_ns,
        .every_ns = every_ns,
        .next_ns = later(asked_at_ns, every_ns),
        .until_ns = later(asked_at_ns, lease_ns),
    };
}

enum runner_beat_answer pawl__cli_beat_answered(struct runner_beat *beat,
                                                pawl_status status,
                                                int64_t asked_at_ns,
                                                int64_t now_ns)
{
    if (status == PAWL_OK) {
        *beat = pawl__cli_beat_start(asked_at_ns, beat->lease_ns, beat->every_ns);
        return RUNNER_BEAT_FINE;
    }
    if (status == PAWL_LEASE_LOST || status == PAWL_NOT_FOUND || now_ns >= beat->until_ns) {
        return RUNNER_BEAT_LOST;
    }
    beat->next_ns = MIN(later(now_ns, MIN(beat->lease_ns / 20 + 1, NS_PER_S)), beat->until_ns);
    return RUNNER_BEAT_FINE;
}

int64_t pawl__cli_beat_fitting_ms(int64_t heartbeat_ms, int64_t lease_ms)
{
    return MIN(heartbeat_ms, lease_ms / 3);
}

int64_t pawl__cli_sweep_fitting_ms(int64_t sweep_ms, int64_t lease_ms)
{
    return MIN(sweep_ms, lease_ms / 2);
}

/* --- the run as a whole --- */

#define FAILING_NS_MAX (60 * NS_PER_S) /* a store that cannot be asked for longer ends the run */

bool pawl__cli_plan_outlasts(const struct runner_plan *plan, int64_t failing_ns)
{
    return plan->stays || failing_ns < FAILING_NS_MAX;
}

uint64_t pawl__cli_plan_want(const struct runner_plan *plan)
{
    uint64_t free_jobs = plan->jobs > plan->running ? plan->jobs - plan->running : 0;
    uint64_t busy = plan->running + plan->finishing;
    uint64_t free_threads = plan->threads > busy ? plan->threads - busy : 0;
    uint64_t allowed = plan->limit > plan->taken ? plan->limit - plan->taken : 0;

    return plan->stopping ? 0 : MIN(MIN(free_jobs, free_threads), allowed);
}

enum runner_next pawl__cli_plan_next(const struct runner_plan *plan, const struct runner_left *left)
{
    if (plan->running > 0 || plan->finishing > 0) {
        return RUNNER_GO_ON;
    }
    if (plan->stopping || plan->taken >= plan->limit) {
        return RUNNER_END;
    }
    if (plan->stays || left->pending > 0 || left->in_progress > 0 || left->delayed > 0) {
        return RUNNER_WAIT;
    }
    return left->held_back > 0 ? RUNNER_STUCK : RUNNER_END;
}
