/* The group commit of a handle: one committer thread carries out all waiting calls in one transaction.
 *
 * A request says what it is by its kind:
 *
 *   LEASED   a call with a token. The group loads the rows of all such calls at once, decides each call
 *            (decide.h) and writes all changed rows at once.
 *   CLAIM    wants items. Claims with the same filter share one walk.
 *   RUN      anything else: the group calls `run` inside the transaction.
 *
 * A group carries out LEASED calls first, then RUN requests in the order of arrival, then claims.
 *
 * A request must not fail others. So `run` decides before it writes: while nothing is written, it may refuse
 * the request (pawl__work_refuse sets the request's own outcome) and return PAWL_OK. Any other status is a
 * failure of the store, and every request of the group gets it. After a CONFLICT (another node changed the same
 * rows) the group runs again, one request per transaction: `run` may be called more than once, and starts from
 * the beginning each time. */
#ifndef PAWL_WORK_CORE_GROUP_H
#define PAWL_WORK_CORE_GROUP_H

#include "base/core/random.h"
#include "engine/committer.h"
#include "work/core/backend.h"
#include "work/items/decide.h"

struct work_group; /* memory of the committer thread */

enum { WORK_GROUP_MAX = 1000 };                /* requests of one transaction, ... */
#define WORK_GROUP_BYTES_MAX ((size_t)8 << 20) /* ... and their bytes */

/* A transaction under way; the committer thread's. */
struct work_tx {
    struct work_backend *backend;
    const pawl_work_options *options;
    struct work_now now;
    struct pawl__arena *arena;    /* lives until the group ends */
    bool wake;                    /* something may have become claimable */
    struct work_touched *touched; /* tasks whose status must be derived */
    struct pawl__prng *prng;      /* for jitter */
};

enum work_request_kind { WORK_RUN, WORK_LEASED, WORK_CLAIM };

struct work_request;
typedef pawl_status work_run_fn(struct work_tx *tx,
                                struct work_request *request,
                                pawl_error *reterr);

/* { .run = fn } is a complete RUN request. */
struct work_request {
    struct pawl__commit_item item; /* `bytes`: about what it writes. item.outcome: its answer */
    enum work_request_kind kind;
    bool served; /* by the fast path: items/fast_path.c */
    work_run_fn *run;
};

/* Refuses one request. Returns PAWL_OK, for `return pawl__work_refuse(...)` in `run`. */
PRINTF_LIKE(3, 4)
pawl_status pawl__work_refuse(struct work_request *request,
                              pawl_status status,
                              const char *format,
                              ...);
/* The same with the sub-code that programs branch on. */
#define pawl__work_refuse_detail(request, status, detail, ...) \
    pawl__work_mark_detail(                                    \
        request, PAWL_DETAIL_##detail, pawl__work_refuse(request, status, __VA_ARGS__))
pawl_status pawl__work_mark_detail(struct work_request *request,
                                   pawl_detail detail,
                                   pawl_status status);

/* Submits a request to the group commit, waits and returns its own answer. The request may live on the stack:
 * the committer's waits are bounded, and so is this one. */
PAWL_MUST_USE pawl_status pawl__work_submit_request(pawl_work *work,
                                                    struct work_request *request,
                                                    pawl_error *reterr);

/* The same without waiting: calls request->item.done once, with the answer in item.outcome; not if this fails. */
PAWL_MUST_USE pawl_status pawl__work_submit_request_async(pawl_work *work,
                                                          struct work_request *request,
                                                          pawl_error *reterr);

static inline bool pawl__work_is_refused(const struct work_request *request)
{
    return request->item.outcome.status != PAWL_OK;
}

/* --- for `run` --- */

/* A task, or an item (locked), that must exist: if it does not, the request is refused with NOT_FOUND. */
PAWL_MUST_USE pawl_status pawl__work_tx_task(struct work_tx *tx,
                                             struct work_request *request,
                                             pawl_view task_id,
                                             pawl_task *ret_task,
                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_tx_item(struct work_tx *tx,
                                             struct work_request *request,
                                             pawl_view work_item_id,
                                             struct work_row **ret_row,
                                             pawl_error *reterr);

/* The item of a live lease. Otherwise it refuses the request, and *ret_row is NULL. */
PAWL_MUST_USE pawl_status pawl__work_tx_lease(struct work_tx *tx,
                                              struct work_request *request,
                                              const pawl_lease *lease,
                                              struct work_row **ret_row,
                                              pawl_error *reterr);

/* Stores rows (see `put`) and applies the consequences: dependents of ended items are freed or fail, tasks are
 * marked for derivation, waiting claims wake up. */
PAWL_MUST_USE pawl_status pawl__work_tx_put(struct work_tx *tx,
                                            struct work_row *const *rows,
                                            size_t count,
                                            pawl_error *reterr);

/* Fails a row that has not ended because an item it depends on failed. The caller stores the row. */
PAWL_MUST_USE pawl_status pawl__work_tx_fail_after(struct work_tx *tx,
                                                   struct work_row *row,
                                                   pawl_view after_id,
                                                   bool *ret_changed,
                                                   pawl_error *reterr);

/* Submits items inside a transaction, all or none, as pawl_work_submit does, or refuses the request. The
 * submissions are checked (pawl__work_submission_check) and have ids. fresh[i] (may be NULL): the id is a new
 * UUID, which is not looked up. */
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
    int64_t next_due_ns;   /* answer: when to ask again, on the store's clock; INT64_MAX: never */
    int64_t now_ns;        /* answer: what that clock said */
    int64_t
        *ret_asked_ns; /* of one that waits: set to when the store was asked; NULL: nobody asks */
};

/* A call with a token. */
struct work_leased {
    struct work_request request;
    pawl_lease lease;
    struct work_command command;
    struct work_claiming *next; /* claims after the item is completed; NULL: none */
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

/* The claim that a request is, or contains; NULL: none. */
struct work_claiming *pawl__work_claim_in(struct work_request *request);

bool pawl__work_filter_equal(const struct work_filter *a, const struct work_filter *b);

/* Checks the caller's claim and fills in the defaults. */
PAWL_MUST_USE pawl_status pawl__work_claim_parse(pawl_work *work,
                                                 const pawl_claim *given,
                                                 struct work_claiming *claiming,
                                                 pawl_error *reterr);

/* Lets the store carry out what its fast path can: those requests are `served`. */
PAWL_MUST_USE pawl_status pawl__work_group_fast_path(struct work_backend *backend,
                                                     struct pawl__arena *arena,
                                                     struct work_request *const *requests,
                                                     size_t count,
                                                     pawl_error *reterr);

/* Plans what these claims pick first. */
void pawl__work_claims_plan(struct work_claiming *const *claims,
                            size_t count,
                            struct work_prefetch_plan *plan);

/* Makes waiting rows pending whose time has come. *ret_next_ns: when the next one is due. */
PAWL_MUST_USE pawl_status pawl__work_tx_admit_due(struct work_tx *tx,
                                                  uint64_t *ret_count,
                                                  int64_t *ret_next_ns,
                                                  pawl_error *reterr);

/* Marks a task whose status may have changed. */
PAWL_MUST_USE pawl_status pawl__work_tx_touch(struct work_tx *tx,
                                              pawl_view task_id,
                                              pawl_error *reterr);

/* Reads the time again after rows were locked: a lease may have expired while it waited for the lock. */
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

/* Memory of a committer. */
PAWL_MUST_USE pawl_status pawl__work_group_new(struct work_backend *backend,
                                               const pawl_work_options *options,
                                               struct work_group **ret_group,
                                               pawl_error *reterr);
void pawl__work_group_free(struct work_group *group);

/* For tests, between two groups: makes jitter repeatable. */
void pawl__work_group_seed(struct work_group *group, uint64_t seed);

/* Carries out requests as one transaction. PAWL_OK: each has its own answer in item.outcome.
 * *ret_wake: something may have become claimable. */
PAWL_MUST_USE pawl_status pawl__work_group_run(struct work_group *group,
                                               struct work_request *const *requests,
                                               size_t count,
                                               bool *ret_wake,
                                               pawl_error *reterr);

#endif
