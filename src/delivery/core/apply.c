#include "delivery/core/apply.h"

enum delivery_blame pawl__delivery_blame(pawl_status status)
{
    switch (status) {
    case PAWL_INVALID:
    case PAWL_CONFLICT:
        return DELIVERY_BLAME_EVENT;
    case PAWL_LEASE_LOST:
        return DELIVERY_BLAME_FENCED;
    case PAWL_CANCELLED:
    case PAWL_CLOSED:
        return DELIVERY_BLAME_STOP;
    case PAWL_NOMEM:
    case PAWL_IO:
    case PAWL_NO_SPACE:
    case PAWL_CORRUPT:
    case PAWL_DENIED:
    case PAWL_UNSUPPORTED:
    case PAWL_UNAVAILABLE:
    case PAWL_TIMEOUT:
    case PAWL_BUSY:
        return DELIVERY_BLAME_OUTAGE;
    default:
        return DELIVERY_BLAME_RETRY;
    }
}

bool pawl__delivery_commit_in_doubt(enum delivery_blame blame)
{
    return blame == DELIVERY_BLAME_OUTAGE;
}

struct delivery_window pawl__delivery_window(size_t max)
{
    return (struct delivery_window){ MAX(max, (size_t)1), MAX(max, (size_t)1) };
}

void pawl__delivery_window_halve(struct delivery_window *window, size_t tried)
{
    window->size = MAX(tried / 2, (size_t)1);
}

void pawl__delivery_window_grow(struct delivery_window *window)
{
    window->size = window->size > window->max / 2 ? window->max : window->size * 2;
}

static void fail_event(struct delivery_outcome *outcome,
                       enum delivery_layer layer,
                       const char *reason)
{
    outcome->kind = DELIVERY_TO_FAILED;
    outcome->layer = layer;
    outcome->reason = reason;
}

void pawl__delivery_pin(const struct delivery_retry_rule *rule,
                        const struct delivery_exception *exception,
                        enum delivery_blame blame,
                        int64_t running_ns,
                        uint64_t random,
                        struct delivery_outcome *outcome)
{
    struct delivery_exception next = *exception;

    next.lsn = outcome->entry->lsn;
    next.sequence = outcome->entry->place.sequence;
    next.attempts++;
    if (next.first_failed_running_ns < 0) {
        next.first_failed_running_ns = running_ns;
    }
    next.due_running_ns = running_ns + pawl__backoff_ns(&rule->backoff, next.attempts, random);
    outcome->exception = next; /* also of what fails for good: its attempts are shown there */
    if (blame == DELIVERY_BLAME_EVENT) {
        fail_event(outcome, DELIVERY_LAYER_INSERT, DELIVERY_REASON_REJECTED);
    } else if (next.attempts > rule->attempts_max) {
        fail_event(outcome, DELIVERY_LAYER_INSERT, DELIVERY_REASON_RETRIES);
        outcome->retries_exceeded = true;
    } else if (running_ns - next.first_failed_running_ns >= rule->ttl_ns) {
        fail_event(outcome, DELIVERY_LAYER_INSERT, DELIVERY_REASON_EXPIRED);
    } else {
        outcome->kind = DELIVERY_DEFERRED;
    }
}

void pawl__delivery_outcome_of(const struct delivery_entry *entry,
                               const struct delivery_verdict *verdict,
                               struct delivery_outcome *ret_outcome)
{
    *ret_outcome = (struct delivery_outcome){
        .entry = entry,
        .kind = verdict->kind,
        .exception = { .first_failed_running_ns = -1 },
        .layer = DELIVERY_LAYER_VALIDATION,
        .reason = verdict->reason,
        .error = verdict->error,
    };
    if (entry->admitted == DELIVERY_AS_CONFLICT) {
        fail_event(ret_outcome, DELIVERY_LAYER_VALIDATION, DELIVERY_REASON_CONFLICT);
    } else if (entry->admitted == DELIVERY_AS_BAD_ID) {
        fail_event(ret_outcome, DELIVERY_LAYER_VALIDATION, DELIVERY_REASON_BAD_ID);
    }
}

void pawl__delivery_count(struct delivery_counters *counters,
                          const struct delivery_outcome *outcomes,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        counters->delivered += outcomes[i].kind == DELIVERY_ROW;
        counters->filtered += outcomes[i].kind == DELIVERY_FILTERED;
        counters->failed += outcomes[i].kind == DELIVERY_TO_FAILED;
        counters->failed -= outcomes[i].was_failed;
    }
}
