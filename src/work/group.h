/* One transaction for everybody who waits: all writes of a handle go through one committer thread.
 *
 * A request says what it is by its kind:
 *
 *   LEASED   a call with a token. The rows of all of them are loaded at once, each is decided by
 *            itself (decide.h), and what changed is written at once.
 *   CLAIM    wants items. Claims with the same filter are served by one walk.
 *   RUN      anything else: `run` is called inside of the transaction.
 *
 * A group is carried out in this order: LEASED, RUN in the order of arrival, CLAIM.
 *
 * A request fails alone or not at all. So `run` decides before it writes: a refusal is put into the
 * request's own outcome (pawl__refuse) while nothing was written yet, and PAWL_OK is returned.
 * Whatever it returns otherwise is a failure of the store, and all that are in the group get it. A
 * CONFLICT (another node came in between) takes the group back and runs it again request by request:
 * `run` may be called more than once and has to begin anew each time. */
#ifndef PAWL_WORK_GROUP_H
#define PAWL_WORK_GROUP_H

#include "base/commit.h"
#include "work/backend.h"
#include "work/decide.h"

enum { WORK_GROUP_MAX = 1000 };                /* requests that one transaction serves, ... */
#define WORK_GROUP_BYTES_MAX ((size_t)8 << 20) /* ... and their bytes */

/* A transaction under way; the committer thread's. */
struct work_tx {
    struct work_backend *backend;
    const pawl_work_options *options;
    struct work_now now;
    struct pawl__arena *arena;    /* for everything that lives until the end of the group */
    bool wake;                    /* something may have become claimable */
    struct work_touched *touched; /* tasks whose status has to be derived */
};

enum work_request_kind { WORK_RUN, WORK_LEASED, WORK_CLAIM };

struct work_request {
    struct pawl__commit_item item; /* `bytes`: about what it writes. item.outcome: its answer */
    enum work_request_kind kind;
    pawl_status (*run)(struct work_tx *tx, struct work_request *request, pawl_error *reterr);
};

/* A refusal of one request; returns PAWL_OK, for `return pawl__refuse(...)` in `run`. */
PRINTF_LIKE(3, 4)
pawl_status pawl__refuse(struct work_request *request, pawl_status status, const char *format, ...);

/* Puts a request through the group commit and returns its own answer. The request may live on the
 * stack: the committer's waits are bounded, and so is this one. */
PAWL_MUST_USE pawl_status pawl__work_submit_request(pawl_work *work,
                                                    struct work_request *request,
                                                    pawl_error *reterr);

/* --- for `run` --- */

/* The item of a lease, when the lease is live. A lease that is not refuses the request, and
 * *ret_row is NULL. */
PAWL_MUST_USE pawl_status pawl__tx_lease(struct work_tx *tx,
                                         struct work_request *request,
                                         const pawl_lease *lease,
                                         struct work_row **ret_row,
                                         pawl_error *reterr);

/* Stores rows (see `put`) and draws the consequences: what comes after an item that has ended is
 * freed or fails, too; tasks are marked for derivation, waiting claims are woken. */
PAWL_MUST_USE pawl_status pawl__tx_put(struct work_tx *tx,
                                       struct work_row *const *rows,
                                       size_t count,
                                       pawl_error *reterr);

/* Submits items inside of a transaction, all or none, as pawl_work_submit does it: a refusal stands
 * in the request's outcome. The submissions are checked already (pawl__submission_check) and have
 * their ids. */
PAWL_MUST_USE pawl_status pawl__tx_submit(struct work_tx *tx,
                                          struct work_request *request,
                                          const pawl_submission *submissions,
                                          size_t count,
                                          pawl_submit_result *ret_results,
                                          pawl_error *reterr);

#endif
