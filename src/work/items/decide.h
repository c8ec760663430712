/* Decides what happens to an item. Pure: row, command and time in, row and answer out. Texts are borrowed. */
#ifndef PAWL_WORK_ITEMS_DECIDE_H
#define PAWL_WORK_ITEMS_DECIDE_H

#include "base/decide/backoff.h"
#include "work/core/backend.h"

enum work_command_kind { WORK_HEARTBEAT, WORK_COMPLETE, WORK_FAIL, WORK_RELEASE };

/* A command of the holder of a lease. */
struct work_command {
    enum work_command_kind kind;
    uint64_t token;
    int64_t lease_ns;        /* HEARTBEAT */
    pawl_view output_data;   /* COMPLETE, FAIL */
    pawl_view error_message; /* FAIL */
    bool retryable;          /* FAIL */
    struct pawl__backoff backoff;
    uint64_t random; /* for the backoff's jitter */
};

/* PAWL_OK with *ret_changed: the row has its new state. PAWL_OK unchanged: this token has done the same before.
 * LEASE_LOST: the row is unchanged. */
PAWL_MUST_USE pawl_status pawl__work_decide_leased(struct work_row *row,
                                                   const struct work_command *command,
                                                   const struct work_now *now,
                                                   bool *ret_changed,
                                                   pawl_error *reterr);

/* PAWL_OK while `token` holds the item. */
PAWL_MUST_USE pawl_status pawl__work_decide_held(const struct work_row *row,
                                                 uint64_t token,
                                                 const struct work_now *now,
                                                 pawl_error *reterr);

/* Leases a pending row under its next token. FAILED when the tokens are used up. */
PAWL_MUST_USE pawl_status pawl__work_decide_claim(struct work_row *row,
                                                  pawl_view holder,
                                                  int64_t lease_ns,
                                                  const struct work_now *now,
                                                  pawl_error *reterr);

/* False, nothing changed: its lease is live, or it has none. True: the row is EXPIRED, as foreign SQL
 * may have left it before. */
bool pawl__work_decide_expire(struct work_row *row, const struct work_now *now);

/* What an expired row becomes: pending with a retry counted, or failed. */
void pawl__work_decide_after_expiry(struct work_row *row, const struct work_now *now);

/* Fails a row that has not ended. False: it has, and nothing is changed. */
bool pawl__work_decide_cancel(struct work_row *row, pawl_view message, const struct work_now *now);

/* A predecessor of a waiting row has completed. True: the row is pending. False: it still waits. */
bool pawl__work_decide_freed(struct work_row *row, const struct work_now *now);

/* Makes a waiting row pending if its time has come. False: it has not, and nothing changed. */
bool pawl__work_decide_due(struct work_row *row, const struct work_now *now);

/* What a task's status is derived from. */
struct work_task_facts {
    bool any;        /* it has an item */
    bool unfinished; /* one that has not ended, waiting ones included */
    bool started;    /* one that was claimed */
    bool failed;     /* one that failed */
};

/* The status of a task that the user has not set: running from the first claim on, succeeded or failed when all
 * items have ended, running again when something new is submitted. */
pawl_task_status pawl__work_decide_task(pawl_task_status status,
                                        const struct work_task_facts *facts);

#define WORK_EXPIRED_MESSAGE "Lease expired - no heartbeat received"
#define WORK_CANCELLED_MESSAGE "cancelled"

#endif
