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
 * request's own outcome (pawl__work_refuse) while nothing was written yet, and PAWL_OK is returned.
 * Whatever it returns otherwise is a failure of the store, and all that are in the group get it. A
 * CONFLICT (another node came in between) takes the group back and runs it again request by request:
 * `run` may be called more than once and has to begin anew each time. */
#ifndef PAWL_WORK_CORE_GROUP_H
#define PAWL_WORK_CORE_GROUP_H

#include "base/core/random.h"
#include "engine/committer.h"
#include "work/core/backend.h"
#include "work/items/decide.h"

struct work_group; /* the committer thread's memory */

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
    struct pawl__prng *prng;      /* for jitter */
};

enum work_request_kind { WORK_RUN, WORK_LEASED, WORK_CLAIM };

struct work_request {
    struct pawl__commit_item item; /* `bytes`: about what it writes. item.outcome: its answer */
    enum work_request_kind kind;
    bool served; /* by the fast path: items/fast_path.c */
    pawl_status (*run)(struct work_tx *tx, struct work_request *request, pawl_error *reterr);
};

/* A refusal of one request; returns PAWL_OK, for `return pawl__work_refuse(...)` in `run`. */
PRINTF_LIKE(3, 4)
pawl_status pawl__work_refuse(struct work_request *request,
                              pawl_status status,
                              const char *format,
                              ...);

/* Puts a request through the group commit and returns its own answer. The request may live on the
 * stack: the committer's waits are bounded, and so is this one. */
PAWL_MUST_USE pawl_status pawl__work_submit_request(pawl_work *work,
                                                    struct work_request *request,
                                                    pawl_error *reterr);

/* The same without waiting: request->item.done is called once, with the answer in item.outcome. Not
 * called when this does not return PAWL_OK. */
PAWL_MUST_USE pawl_status pawl__work_submit_request_async(pawl_work *work,
                                                          struct work_request *request,
                                                          pawl_error *reterr);

/* --- for `run` --- */

/* The item of a lease, when the lease is live. A lease that is not refuses the request, and
 * *ret_row is NULL. */
PAWL_MUST_USE pawl_status pawl__work_tx_lease(struct work_tx *tx,
                                              struct work_request *request,
                                              const pawl_lease *lease,
                                              struct work_row **ret_row,
                                              pawl_error *reterr);

/* Stores rows (see `put`) and draws the consequences: what comes after an item that has ended is
 * freed or fails, too; tasks are marked for derivation, waiting claims are woken. */
PAWL_MUST_USE pawl_status pawl__work_tx_put(struct work_tx *tx,
                                            struct work_row *const *rows,
                                            size_t count,
                                            pawl_error *reterr);

/* Fails a row that has not ended because of one that it comes after. To be stored by the caller. */
PAWL_MUST_USE pawl_status pawl__work_tx_fail_after(struct work_tx *tx,
                                                   struct work_row *row,
                                                   pawl_view after_id,
                                                   bool *ret_changed,
                                                   pawl_error *reterr);

/* Submits items inside of a transaction, all or none, as pawl_work_submit does it: a refusal stands
 * in the request's outcome. The submissions are checked already (pawl__work_submission_check) and have
 * their ids; those with fresh[i] (may be NULL) were made for them, and are not looked up. */
PAWL_MUST_USE pawl_status pawl__work_tx_submit(struct work_tx *tx,
                                               struct work_request *request,
                                               const pawl_submission *submissions,
                                               const bool *fresh,
                                               size_t count,
                                               pawl_submit_result *ret_results,
                                               pawl_error *reterr);

/* --- inside of the group --- */

/* A call that wants items. */
struct work_claiming {
    struct work_request request;
    pawl_claim claim;   /* as given, with every default filled in */
    uint32_t prefetch;  /* items to lease in addition, once every claim has what it asked for */
    size_t calls_at;    /* fast_path.c's: where its calls begin, ... */
    size_t prefetch_at; /* ... and those that prefetch */
    struct work_filter filter;
    pawl_claimed *claimed; /* answer; NULL: none */
    int64_t next_due_ns;   /* answer: when to look again, on the store's clock; INT64_MAX: never */
    int64_t now_ns;        /* answer: what that clock said */
};

/* A call with a token. */
struct work_leased {
    struct work_request request;
    pawl_lease lease;
    struct work_command command;
    struct work_claiming *next; /* wants this one when the item is completed; NULL: no */
    bool done;                  /* the fast path completed the item, and did not serve `next` */
    pawl_item_status status;    /* answer: what the item is now */
    int64_t expires_at_us;      /* answer */
};

PAWL_MUST_USE pawl_status pawl__work_group_leased(struct work_tx *tx,
                                                  struct work_leased *const *calls,
                                                  size_t count,
                                                  pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_group_claims(struct work_tx *tx,
                                                  struct work_claiming *const *claims,
                                                  size_t count,
                                                  pawl_error *reterr);

/* The claim that a request is, or brings along; NULL: none. */
struct work_claiming *pawl__work_claim_in(struct work_request *request);

bool pawl__work_filter_equal(const struct work_filter *a, const struct work_filter *b);

/* Checks a claim as it was given, and makes it a call. */
PAWL_MUST_USE pawl_status pawl__work_claim_parse(pawl_work *work,
                                                 const pawl_claim *given,
                                                 struct work_claiming *claiming,
                                                 pawl_error *reterr);

/* Has the store carry out what its fast path can: those are `served`. */
PAWL_MUST_USE pawl_status pawl__work_group_fast_path(struct work_backend *backend,
                                                     struct pawl__arena *arena,
                                                     struct work_request *const *requests,
                                                     size_t count,
                                                     pawl_error *reterr);

/* What these claims will pick first. */
void pawl__work_claims_plan(struct work_claiming *const *claims,
                            size_t count,
                            struct work_prefetch_plan *wish);

/* Waiting rows whose time has come are let in. *ret_next_ns: when the next one's comes. */
PAWL_MUST_USE pawl_status pawl__work_tx_admit_due(struct work_tx *tx,
                                                  uint64_t *ret_count,
                                                  int64_t *ret_next_ns,
                                                  pawl_error *reterr);

/* Marks a task whose status has to be looked at. */
PAWL_MUST_USE pawl_status pawl__work_tx_touch(struct work_tx *tx,
                                              pawl_view task_id,
                                              pawl_error *reterr);

/* The time again, after rows were locked: waiting for a lock may have outlasted a lease. */
PAWL_MUST_USE pawl_status pawl__work_tx_refresh_now(struct work_tx *tx, pawl_error *reterr);

/* `count` elements of `size` bytes, all zero, that live until the group ends. Without memory the calling
 * function returns NOMEM. */
#define TX_ALLOC(tx, count, size, reterr)                                        \
    __extension__({                                                              \
        void *allocated_ = pawl__work_tx_alloc((tx), (count), (size), (reterr)); \
        if (allocated_ == NULL) {                                                \
            return PAWL_NOMEM;                                                   \
        }                                                                        \
        allocated_;                                                              \
    })
void *pawl__work_tx_alloc(struct work_tx *tx, size_t count, size_t size, pawl_error *reterr);

/* The memory of a committer. */
PAWL_MUST_USE pawl_status pawl__work_group_new(struct work_backend *backend,
                                               const pawl_work_options *options,
                                               struct work_group **ret_group,
                                               pawl_error *reterr);
void pawl__work_group_free(struct work_group *group);

/* For tests, between two groups: from here on jitter is what this seed draws. */
void pawl__work_group_seed(struct work_group *group, uint64_t seed);

/* Carries out requests as one transaction. PAWL_OK: each has its own answer in item.outcome.
 * *ret_wake: something may have become claimable. */
PAWL_MUST_USE pawl_status pawl__work_group_run(struct work_group *group,
                                               struct work_request *const *requests,
                                               size_t count,
                                               bool *ret_wake,
                                               pawl_error *reterr);

#endif
