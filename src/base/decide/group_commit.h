/* The decisions of a group commit: which of the items that wait go into the next batch, when, and
 * what becomes of each. State, event and time in, actions out; no thread, no clock, no I/O. The
 * threads are in engine/committer.h, which is what users include.
 *
 *   an item:   idle -> waiting -> in flight -> answered
 *                         |           |
 *                         |           +- given up: answered to nobody, and freed by the committer
 *                         +- given up: idle again, nothing happened
 *
 * Items are taken in the order in which they were submitted, each exactly once. */
#ifndef PAWL_BASE_DECIDE_GROUP_COMMIT_H
#define PAWL_BASE_DECIDE_GROUP_COMMIT_H

#include <semaphore.h>
#include <stdatomic.h>

#include <pawl/pawl.h>

enum pawl__commit_state {
    PAWL__COMMIT_IDLE,
    PAWL__COMMIT_WAITING,
    PAWL__COMMIT_IN_FLIGHT,
    PAWL__COMMIT_ANSWERED,
};

/* One caller's part of a commit: the first member, or any other, of a struct that holds what is to
 * be written. Start with zeroes. */
struct pawl__commit_item {
    /* The caller's, set before submitting. */
    size_t bytes; /* its share of a batch; at most batch_bytes_max */
    void (*done)(struct pawl__commit_item *item); /* asynchronous form only */
    void (*free)(struct pawl__commit_item *item); /* see pawl__commit_submit */

    /* The answer, PAWL_OK unless somebody fails it. */
    pawl_error outcome;

    /* Ours. */
    enum pawl__commit_state state;
    bool given_up; /* nobody waits: the committer frees it */
    int64_t submitted_ns;
    struct pawl__commit_item *next;
    struct pawl__commit_item *before;
    struct pawl__commit_item *children[4]; /* whom this caller wakes once it has its own answer */
    atomic_bool answered; /* publishes the outcome to the thread that `wake` wakes */
    sem_t wake;
};

struct pawl__commit_limits {
    size_t batch_items_max; /* 1 .. PAWL__COMMIT_BATCH_MAX */
    size_t batch_bytes_max; /* at least 1 */
    size_t waiting_max;     /* at least 1; one more is refused as BUSY */
    int64_t linger_ns;      /* how long the oldest item waits for company; 0: not at all */
    bool
        only_for_recent_callers; /* ... from when the last batch was answered, and no longer than until as
                             * many wait as there were callers then: a caller alone never waits */
    size_t async_max;       /* waiting_max of items that nobody waits for, so that there is room for
                             * those that somebody does; 0: no other limit */
    size_t async_bytes_max; /* the same for the bytes of all that wait; 0: no limit */
};

#define PAWL__COMMIT_BATCH_MAX 65536

struct pawl__commit_core {
    struct pawl__commit_limits limits;
    struct pawl__commit_item *first; /* waiting, oldest first */
    struct pawl__commit_item *last;
    size_t waiting;
    size_t waiting_bytes;
    size_t in_flight;
    size_t recent_callers; /* in the last batch, and waiting when it was answered ... */
    int64_t answered_ns;   /* ... which was then */
    bool closed;
    uint64_t batches; /* answered so far, and the items in them */
    uint64_t items;
};

/* INVALID names the limit that is wrong. */
PAWL_MUST_USE pawl_status pawl__commit_core_init(struct pawl__commit_core *core,
                                                 const struct pawl__commit_limits *limits,
                                                 pawl_error *reterr);

/* Puts an item behind the others. CLOSED, BUSY when waiting_max wait, INVALID when it could never
 * fit a batch; the item is then as it was. *ret_wake: the committer, if it waits, has to look
 * again; false when it will look anyway. */
PAWL_MUST_USE pawl_status pawl__commit_core_submit(struct pawl__commit_core *core,
                                                   struct pawl__commit_item *item,
                                                   int64_t now_ns,
                                                   bool *ret_wake,
                                                   pawl_error *reterr);

enum pawl__commit_step {
    PAWL__COMMIT_WAIT,       /* for a submit or a close */
    PAWL__COMMIT_WAIT_UNTIL, /* the same, or *ret_until_ns */
    PAWL__COMMIT_TAKE,       /* a batch is ready */
    PAWL__COMMIT_STOP,       /* closed, and nothing waits */
};

/* What the committer has to do now. */
enum pawl__commit_step pawl__commit_core_next(const struct pawl__commit_core *core,
                                              int64_t now_ns,
                                              int64_t *ret_until_ns);

/* The next batch into `ret_items`, which has room for batch_items_max: the oldest items up to the
 * limits. They are in flight; there must be no batch in flight already. */
size_t pawl__commit_core_begin_batch(struct pawl__commit_core *core,
                                     struct pawl__commit_item **ret_items);

/* The batch came back. `failure` NULL: each item keeps the outcome it was given; otherwise all of
 * them failed with that. They are answered now and no longer known to the core. */
void pawl__commit_core_answer(struct pawl__commit_core *core,
                              struct pawl__commit_item *const *items,
                              size_t count,
                              int64_t now_ns,
                              const pawl_error *failure);

/* Its caller does not want to wait any longer. Returns the state that the item was in:
 *   WAITING    it is idle again and the caller's; nothing was or will be committed
 *   IN_FLIGHT  the outcome is unknown, and the item the committer's to free
 *   ANSWERED   too late: the answer is there */
enum pawl__commit_state pawl__commit_core_give_up(struct pawl__commit_core *core,
                                                  struct pawl__commit_item *item);

/* No more submits. What waits is committed without lingering. */
void pawl__commit_core_close(struct pawl__commit_core *core);

/* Answers everything that still waits with CLOSED and returns it, oldest first, linked by `next`;
 * NULL when nothing does. The core is closed by this as well. */
struct pawl__commit_item *pawl__commit_core_fail_waiting(struct pawl__commit_core *core);

#endif
