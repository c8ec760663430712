/* <pawl/work.h>: jobs that resume where they stopped.
 *
 * A task owns work items. Workers lease items, and every lease carries a fencing token: a worker that comes
 * back too late gets LEASE_LOST and changes nothing. Checkpoints record how far a task came. Idempotency keys
 * keep a side effect from happening twice.
 *
 * The same program runs on three stores, chosen by location:
 *
 *   memory:                      SQLite in the memory of this process: every handle has a store of its
 *                                own, gone when it is closed
 *   data/work.sqlite             SQLite, any number of processes of one machine; also sqlite:...
 *   postgres://user@host/db      PostgreSQL, any number of machines; in the schema `pawl`.
 *                                ?connections=N: the most it opens; 8
 *
 * Time. On SQLite leases, delays and backoffs run on the machine's boot clock, on PostgreSQL on the
 * server's. A step of the wall clock changes neither, nor the order of claims, the TTL of a key or what
 * retention removes; slots of schedules are wall-clock times. Times in results (`..._us`) are UTC
 * microseconds since 1970, for reading.
 *
 * Threads: a pawl_work may be used by any number of threads at once; calls that wait at the same time
 * share one transaction and one fsync. Only the caller uses what a call returns to it.
 *
 * Arguments: NULL for a required argument, a view of bytes at NULL or a number that is no value of its enum is
 * INVALID, and the message names it. Visitors run on the caller's thread and may call anything except
 * pawl_work_close.
 *
 * Unknown outcome: after TIMEOUT, UNAVAILABLE and IO a call may or may not have happened. submit and
 * the calls with a token may be repeated: the same complete, fail or release by the same token returns what
 * the first one did. With another output or message it is LEASE_LOST, as is any other call with that
 * token. */
#ifndef PAWL_WORK_H
#define PAWL_WORK_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_WORK_NAME_BYTES_MAX 200 /* ids, types, holders, schedules, keys */
#define PAWL_WORK_TITLE_BYTES_MAX 1000
#define PAWL_WORK_ERROR_BYTES_MAX 65536 /* longer messages are cut at a character */
#define PAWL_WORK_BATCH_MAX 10000       /* items in one submit or claim */
#define PAWL_WORK_AFTER_MAX 1000        /* items that one item waits for */
#define PAWL_WORK_PRIORITY_MIN (-1000000)
#define PAWL_WORK_PRIORITY_MAX 1000000
#define PAWL_WORK_RETRIES_MAX 1000000

typedef struct pawl_work pawl_work;

typedef struct pawl_work_options {
    size_t size;             /* sizeof(pawl_work_options): PAWL_WORK_OPTIONS_INIT sets it */
    uint32_t data_bytes_max; /* one input, output, snapshot, response; 1 MiB */
    uint32_t busy_ms_max;    /* how long to wait for another process's lock; 5000 */
    uint32_t lease_ms;       /* of a claim or heartbeat that names none; 5 minutes */
    uint32_t retry_first_ms; /* backoff before the first retry; 1 second ... */
    uint32_t retry_max_ms;   /* ... doubling up to 5 minutes, with jitter */
    bool must_exist;         /* do not create; NOT_FOUND when it does not exist */
    uint32_t claim_ahead;    /* items that a claim may prefetch, up to 1000; 0. See below */
    uint32_t stale_ms;       /* a lease without a heartbeat for longer is stale; 2 minutes */
    uint32_t answer_ms_max;  /* a PostgreSQL server silent for longer has stalled; 10,000 */
} pawl_work_options;

#define PAWL_WORK_OPTIONS_INIT                                                                    \
    {                                                                                             \
        sizeof(pawl_work_options), 1U << 20, 5000, 300000, 1000, 300000, false, 0, 120000, 10000, \
    }

/* claim_ahead is for many small items: a claim prefetches more items than it asks for, as many as the holder
 * recently used, and the holder's next claims for the same types and task get them without asking the store.
 * Items not claimed within a second, or an eighth of the lease, are released without counting a retry; a lease
 * may be that old when its item is handed out. A new item waits until the prefetched ones are done, whatever
 * its priority. NOT_FOUND does not mean that no other holder has prefetched items. `attempts` and the history
 * also count items that were prefetched and released. A crash costs each prefetched item a retry, as it costs
 * a running one. */

/* Opens the store at `location`, creating or migrating it. NULL takes DATABASE_URL from the
 * environment. `options` may be NULL. UNSUPPORTED: made by a newer pawl. INVALID: no work store,
 * or an option is out of its range; the message names it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_open(const char *location,
                                                  const pawl_work_options *options,
                                                  pawl_work **ret_work,
                                                  pawl_error *reterr);

/* Closes it in bounded time: `timeout_ms`, or 10 seconds (0), when the store hangs, interrupting it
 * (pawl_work_interrupt) after half of that. Calls under way that write or wait finish or fail first, and a waiting
 * claim is CANCELLED. No thread may be reading, and no call may start once this one has. Leases stay as they are,
 * except those of prefetched items (claim_ahead). INVALID, and it stays open: there is a subscription to changes.
 * See Closing in pawl.h. */
PAWL_API pawl_status pawl_work_close(pawl_work *work, uint32_t timeout_ms, pawl_error *reterr);

/* --- Tasks ------------------------------------------------------------------------------------ */

typedef enum pawl_task_status {
    PAWL_TASK_PENDING,
    PAWL_TASK_RUNNING,
    PAWL_TASK_SUCCEEDED,
    PAWL_TASK_FAILED,
    PAWL_TASK_CANCELLED
} pawl_task_status;

typedef struct pawl_task {
    size_t size;
    pawl_view task_id;
    pawl_view title;
    pawl_task_status status; /* from its items, unless set_by_user */
    bool set_by_user;
    int64_t created_at_us;
    int64_t updated_at_us;
    pawl_view metadata; /* a JSON object; empty: none */
    /* Counts of its items, from calls that say so. */
    uint64_t waiting, pending, in_progress, completed, failed;
} pawl_task;

#define PAWL_TASK_INIT                                                                            \
    {                                                                                             \
        sizeof(pawl_task), { NULL, 0 }, { NULL, 0 }, PAWL_TASK_PENDING, false, 0, 0, { NULL, 0 }, \
            0, 0, 0, 0, 0                                                                         \
    }

/* Creates a task from task_id (empty: a new UUIDv7), title and metadata. The same task again is no error;
 * another title or metadata under its id is a CONFLICT. `ret_id`, or NULL, has
 * `room` bytes; INVALID when the id and a NUL do not fit (PAWL_WORK_NAME_BYTES_MAX + 1 is enough). */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_create(
    pawl_work *work, const pawl_task *task, char *ret_id, size_t room, pawl_error *reterr);

/* A copy with its items counted, ended with pawl_task_free. NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_get(pawl_work *work,
                                                 pawl_view task_id,
                                                 pawl_task **ret_task,
                                                 pawl_error *reterr);
PAWL_API void pawl_task_free(pawl_task *task);

typedef bool (*pawl_task_visit)(void *context, const pawl_task *task);

/* Tasks with their items counted: a page in order of their ids, without one all in order of creation. `status` NULL:
 * any. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_list(pawl_work *work,
                                                  const pawl_task_status *status,
                                                  pawl_page *page,
                                                  pawl_task_visit visit,
                                                  void *context,
                                                  pawl_error *reterr);

/* Sets the status by hand; from then on it is not derived from the items. To cancel, call
 * pawl_task_cancel. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_set_status(pawl_work *work,
                                                        pawl_view task_id,
                                                        pawl_task_status status,
                                                        pawl_error *reterr);

/* Ends a task for good: items that have not ended fail with "cancelled", their holders get LEASE_LOST from
 * their next call, and nothing more can be submitted to it. Cancelling again is fine;
 * CONFLICT when it has succeeded or failed already. `ret_items` (how many it failed) may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_cancel(pawl_work *work,
                                                    pawl_view task_id,
                                                    uint64_t *ret_items,
                                                    pawl_error *reterr);

/* --- Items ------------------------------------------------------------------------------------ */

typedef enum pawl_item_status {
    PAWL_ITEM_PENDING,
    PAWL_ITEM_IN_PROGRESS,
    PAWL_ITEM_COMPLETED,
    PAWL_ITEM_FAILED,
    PAWL_ITEM_EXPIRED, /* passing: a watchdog's transaction ends at pending or failed */
    PAWL_ITEM_WAITING  /* not claimable yet: a delay, a backoff, an item it comes after */
} pawl_item_status;

typedef struct pawl_submission {
    size_t size;
    pawl_view work_item_id; /* empty: a new UUIDv7 */
    pawl_view task_id;      /* must be there */
    pawl_view work_type;
    pawl_view input_data; /* a JSON value; empty: none */
    int32_t priority;     /* higher first */
    int32_t max_retries;  /* retries after the first try; negative: 3 */
    int64_t delay_ms;     /* before it can be claimed; 0: none */
    const pawl_view
        *after; /* ids of items of the same task that must complete first; they may stand
                             * in the same call, in any order. When one fails, this one fails, too. */
    size_t after_count;
} pawl_submission;

#define PAWL_SUBMISSION_INIT                                                                   \
    {                                                                                          \
        sizeof(pawl_submission), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, -1, 0, \
            NULL, 0                                                                            \
    }

typedef struct pawl_submit_result {
    size_t size;
    char work_item_id[PAWL_WORK_NAME_BYTES_MAX + 1];
    bool duplicate; /* it was there already, with the same content */
} pawl_submit_result;

#define PAWL_SUBMIT_RESULT_INIT               \
    {                                         \
        sizeof(pawl_submit_result), "", false \
    }

/* Submits `count` items, all or none. Idempotent by work_item_id: type, task, input (as canonical
 * JSON), priority and max_retries are compared, and that it comes after those in `after`; other
 * content is a CONFLICT. INVALID names the item
 * by its index, and the field; a cycle among `after` is INVALID and names an item of it. NOT_FOUND:
 * no such task, or an item in `after`. CONFLICT: the task is cancelled. `ret_results` has `count`
 * entries, or is NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_submit(pawl_work *work,
                                                    const pawl_submission *submissions,
                                                    size_t count,
                                                    pawl_submit_result *ret_results,
                                                    pawl_error *reterr);

/* One item as it is stored, and as a claim returns it. */
typedef struct pawl_item {
    size_t size;
    pawl_view work_item_id;
    pawl_view task_id;
    pawl_view work_type;
    pawl_item_status status;
    int32_t priority;
    int32_t retry_count; /* retries so far */
    int32_t max_retries;
    int64_t attempts; /* claims so far */
    uint64_t token;   /* of the newest lease; 0: never leased. No token comes twice for an id */
    pawl_view lease_holder;
    pawl_view input_data;
    pawl_view output_data;
    pawl_view error_message;
    int64_t created_at_us;
    int64_t started_at_us; /* 0: not yet; as all below */
    int64_t completed_at_us;
    int64_t updated_at_us;
    int64_t lease_acquired_at_us;
    int64_t lease_expires_at_us;
    int64_t heartbeat_at_us;
    int64_t due_at_us; /* of a waiting item with a delay or backoff */
} pawl_item;

typedef struct pawl_claim {
    size_t size;
    pawl_view holder;            /* who; 1 to 200 bytes */
    const pawl_view *work_types; /* any of these; none: any */
    size_t work_type_count;
    pawl_view task_id;  /* empty: any */
    uint32_t count_max; /* 1 */
    uint32_t lease_ms;  /* 0: that of the options */
    uint32_t wait_ms;   /* how long to wait for the first item; 0: not at all */
} pawl_claim;

#define PAWL_CLAIM_INIT                                                \
    {                                                                  \
        sizeof(pawl_claim), { NULL, 0 }, NULL, 0, { NULL, 0 }, 1, 0, 0 \
    }

/* Items that were claimed together. */
typedef struct pawl_claimed {
    size_t size;
    const pawl_item *items;
    size_t count;
    bool waited; /* nothing was there at once */
} pawl_claimed;

/* Leases up to count_max items, by priority, then in the order of submission. NOT_FOUND: none until wait_ms passed;
 * new and released items, also of other processes, end the wait. Ended with pawl_claimed_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_claim(pawl_work *work,
                                                   const pawl_claim *claim,
                                                   pawl_claimed **ret_claimed,
                                                   pawl_error *reterr);
PAWL_API void pawl_claimed_free(pawl_claimed *claimed);

/* Gets what a claim leased, for pawl_claimed_free; or NULL, and outcome->status is what pawl_work_claim would
 * have returned. */
typedef void (*pawl_work_claim_done)(void *context,
                                     pawl_claimed *claimed,
                                     const pawl_error *outcome);

/* pawl_work_claim without a thread that waits: thousands of claims may wait at a time, each for about a kilobyte.
 * PAWL_OK: `done` is called exactly once, by the time wait_ms has passed. If the store hangs then, it is called 5 seconds
 * later with TIMEOUT, and whatever the store still leases is released; without wait_ms it is called when the store
 * returns. Of claims that wait for the same types and task, the oldest gets
 * the first item. BUSY: 65,536 wait already. claim_ahead does not count here: such a claim neither prefetches nor gets
 * prefetched items. pawl_work_close and pawl_work_cancel_waits end the wait with CANCELLED; a claim that a `done` makes
 * while the store is being closed may be refused at once. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_claim_async(pawl_work *work,
                                                         const pawl_claim *claim,
                                                         pawl_work_claim_done done,
                                                         void *context,
                                                         pawl_error *reterr);

/* Ends the waits of claims with this `done` and `context`: they are answered soon, CANCELLED or with the items
 * that were leased just then. Does not wait, and does nothing when they are answered already. NULL is fine. */
PAWL_API void pawl_work_cancel_claim(pawl_work *work, pawl_work_claim_done done, void *context);

/* Ends every wait of claims with CANCELLED, now and in future. From any thread or signal handler. */
PAWL_API void pawl_work_cancel_waits(pawl_work *work);

/* For a store that does not answer: every call under way and every later one ends with CANCELLED
 * within about two seconds, whatever the store does. Only pawl_work_close may follow. A write under way may or
 * may not be stored. From any thread or signal handler. NULL is fine. */
PAWL_API void pawl_work_interrupt(pawl_work *work);

/* Proves that a worker holds an item. */
typedef struct pawl_lease {
    size_t size;
    pawl_view work_item_id;
    uint64_t token;
} pawl_lease;

#define PAWL_LEASE_INIT                    \
    {                                      \
        sizeof(pawl_lease), { NULL, 0 }, 0 \
    }

/* All of these: LEASE_LOST when the token is not the newest, the lease has run out, the item has
 * ended, or its task was cancelled; NOT_FOUND when there is no such item. Nothing is changed then. */

/* Extends the lease to `lease_ms` (0: that of the options) from now, never back. `ret_expires_at_us`
 * may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_heartbeat(pawl_work *work,
                                                       const pawl_lease *lease,
                                                       uint32_t lease_ms,
                                                       int64_t *ret_expires_at_us,
                                                       pawl_error *reterr);

/* `output_data`: a JSON value, or empty. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_complete(pawl_work *work,
                                                      const pawl_lease *lease,
                                                      pawl_view output_data,
                                                      pawl_error *reterr);

/* pawl_work_complete without waiting: the worker starts its next item, and many completions share one
 * transaction. PAWL_OK: `done` is called exactly once (pawl.h, Async), when the completion is durable or refused; until then
 * the item may run again, as after a crash. pawl_work_close waits for them, and calls those that it cannot
 * wait for on its own thread; only calls that a hanging store is carrying out are answered later, if ever. Any
 * other status: the call is wrong, or BUSY (32,768 calls or 64 MiB wait), and `done` is not called. Arguments
 * are copied. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_complete_async(pawl_work *work,
                                                            const pawl_lease *lease,
                                                            pawl_view output_data,
                                                            pawl_done done,
                                                            void *context,
                                                            pawl_error *reterr);

/* pawl_work_complete and pawl_work_claim in one transaction: a worker that completes an item gets the next one
 * with the answer, for one commit instead of two. (With claim_ahead the next item is usually prefetched, and the
 * claim is a call of its own.) Nothing is claimed when the item could not be completed. PAWL_OK with *ret_claimed NULL: completed, and there was nothing to claim
 * until claim->wait_ms passed. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_complete_and_claim(pawl_work *work,
                                                                const pawl_lease *lease,
                                                                pawl_view output_data,
                                                                const pawl_claim *claim,
                                                                pawl_claimed **ret_claimed,
                                                                pawl_error *reterr);

/* With `retryable` the item waits for its backoff and is pending again while it has retries left,
 * otherwise it has failed for good. `ret_status` (WAITING or FAILED) may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_fail(pawl_work *work,
                                                  const pawl_lease *lease,
                                                  pawl_view error_message,
                                                  pawl_view output_data,
                                                  bool retryable,
                                                  pawl_item_status *ret_status,
                                                  pawl_error *reterr);

/* Makes the item pending again at once, without counting a retry. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_release(pawl_work *work,
                                                     const pawl_lease *lease,
                                                     pawl_error *reterr);

/* pawl_work_release without waiting, as pawl_work_complete_async. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_release_async(
    pawl_work *work, const pawl_lease *lease, pawl_done done, void *context, pawl_error *reterr);

/* Fails one item that has not ended, with "cancelled", even if it is leased. CONFLICT: it has ended. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_cancel(pawl_work *work,
                                                    pawl_view work_item_id,
                                                    pawl_error *reterr);

/* A copy, ended with pawl_item_free. NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_get(pawl_work *work,
                                                 pawl_view work_item_id,
                                                 pawl_item **ret_item,
                                                 pawl_error *reterr);
PAWL_API void pawl_item_free(pawl_item *item);

typedef struct pawl_item_filter {
    size_t size;
    pawl_view task_id;   /* empty: any */
    pawl_view work_type; /* empty: any */
    pawl_view lease_holder;
    uint32_t statuses; /* bits 1 << pawl_item_status; 0: any */
    bool by_id;        /* in order of their ids, else of creation */
} pawl_item_filter;

#define PAWL_ITEM_FILTER_INIT                                                     \
    {                                                                             \
        sizeof(pawl_item_filter), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, false \
    }

typedef bool (*pawl_item_visit)(void *context, const pawl_item *item);

/* Items in order of creation, unless the filter says by_id. `filter` may be NULL. Only a list by id can be resumed:
 * in order of creation from_id must be empty and stays so. A page by id costs what is in it and what the filter
 * passes over; on PostgreSQL one of a task sorts that task. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_list(pawl_work *work,
                                                  const pawl_item_filter *filter,
                                                  pawl_page *page,
                                                  pawl_item_visit visit,
                                                  void *context,
                                                  pawl_error *reterr);

/* One change of an item's state. Append-only, written with the change. */
typedef struct pawl_item_event {
    size_t size;
    uint64_t seq;
    const char *from; /* empty: submitted */
    const char *to;
    uint64_t token;
    pawl_view lease_holder;
    int32_t retry_count;
    pawl_view message;
    int64_t at_us;
} pawl_item_event;

typedef bool (*pawl_item_event_visit)(void *context, const pawl_item_event *event);

/* In order of `seq`, from the seq page->from on. An item that does not exist has none. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_history(pawl_work *work,
                                                     pawl_view work_item_id,
                                                     pawl_page *page,
                                                     pawl_item_event_visit visit,
                                                     void *context,
                                                     pawl_error *reterr);

/* --- Changes ---------------------------------------------------------------------------------- */

/* The history of all items as one feed: each change once, in an order that a reader can resume. On SQLite that
 * is the order of the commits. On PostgreSQL it is the order in which their transactions began to write, and a change
 * is shown once no older transaction is open: one that stays open for long holds the feed up.
 *
 * Changes are kept as long as the history of their item (pawl_work_retention). */

/* Where a reader is: after which change. Positions are ordered by transaction, then seq; { 0, 0 } is the
 * beginning. A position means nothing in another store. */
typedef struct pawl_work_position {
    uint64_t transaction; /* 0 on SQLite */
    uint64_t seq;
} pawl_work_position;

#define PAWL_WORK_POSITION_SIZE 48 /* of its text, with the NUL */

/* "0-17" for SQLite's 17th change. `room` is the size of ret_text; PAWL_WORK_POSITION_SIZE is enough. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_position_format(const pawl_work_position *position,
                                                             char *ret_text,
                                                             size_t room,
                                                             pawl_error *reterr);
/* Anything else is INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_position_parse(pawl_view text,
                                                            pawl_work_position *ret_position,
                                                            pawl_error *reterr);

typedef struct pawl_work_change {
    size_t size;
    pawl_work_position position;
    pawl_view work_item_id;
    pawl_view task_id;
    pawl_view work_type; /* empty: foreign SQL has removed the item */
    const char *from;    /* empty: submitted */
    const char *to;
    uint64_t token;
    pawl_view lease_holder; /* who has it, or had it until then */
    int32_t retry_count;
    pawl_view message;
    int64_t at_us;
} pawl_work_change;

typedef struct pawl_change_filter {
    size_t size;
    pawl_view task_id;   /* empty: any */
    pawl_view work_type; /* empty: any */
    uint32_t statuses;   /* bits 1 << pawl_item_status of what an item became; 0: any */
} pawl_change_filter;

#define PAWL_CHANGE_FILTER_INIT                                  \
    {                                                            \
        sizeof(pawl_change_filter), { NULL, 0 }, { NULL, 0 }, 0U \
    }

typedef bool (*pawl_work_change_visit)(void *context, const pawl_work_change *change);

/* The position of a reader that wants only what changes from now on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_changes_end(pawl_work *work,
                                                         pawl_work_position *ret_position,
                                                         pawl_error *reterr);

/* Shows changes after *position and moves it past what it has read, also past changes that the filter (NULL:
 * none) leaves out. Reads up to `limit` changes (1 to 10,000); *ret_count (may be NULL) is how many it read: 0 when the
 * reader has seen all. If `visit` returns false, the position is that of the change it was shown. NOT_FOUND: changes
 * after this position were removed, or it is not one of this store: begin anew, at { 0, 0 } or at the end. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_changes(pawl_work *work,
                                                     const pawl_change_filter *filter,
                                                     uint32_t limit,
                                                     pawl_work_position *position,
                                                     pawl_work_change_visit visit,
                                                     void *context,
                                                     uint64_t *ret_count,
                                                     pawl_error *reterr);

/* {"work_item_id": ..., "to": "pending", ...}, without its position. *ret_json is
 * NUL-terminated, for pawl_free. `ret_len` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_change_to_json(const pawl_work_change *change,
                                                            char **ret_json,
                                                            size_t *ret_len,
                                                            pawl_error *reterr);

typedef struct pawl_work_subscription pawl_work_subscription;

/* Calls notify(context) soon after something has changed; several changes may be one call, and some calls bring
 * nothing new. It runs on a thread of the handle that serves all subscribers: wake somebody and return. Changes of
 * other processes may take a second. */
PAWL_API PAWL_MUST_USE pawl_status
pawl_work_changes_subscribe(pawl_work *work,
                            void (*notify)(void *context),
                            void *context,
                            pawl_work_subscription **ret_subscription,
                            pawl_error *reterr);

/* After this notify does not run any more, unless it is the caller: then it is the last time. Before
 * pawl_work_close. NULL is fine. */
PAWL_API void pawl_work_changes_unsubscribe(pawl_work_subscription *subscription);

/* --- The watchdog ----------------------------------------------------------------------------- */

typedef struct pawl_sweep_report {
    size_t size;
    uint64_t expired; /* leases that had run out ... */
    uint64_t retried; /* ... whose item is pending again */
    uint64_t failed;  /* ... or has no retry left */
    uint64_t due;     /* waiting items that became pending */
    uint64_t settled; /* tasks whose status was updated */
} pawl_sweep_report;

#define PAWL_SWEEP_REPORT_INIT                   \
    {                                            \
        sizeof(pawl_sweep_report), 0, 0, 0, 0, 0 \
    }

/* Takes back every expired lease: the item becomes expired, then pending or failed, with an error_boundary
 * checkpoint, in one transaction; a heartbeat that came in time always wins. Makes due items pending, as claims
 * do. Completes what foreign SQL left undone: items that it left expired, dependents of items that it ended, and
 * the status of their tasks. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_sweep(pawl_work *work,
                                                   pawl_sweep_report *ret_report,
                                                   pawl_error *reterr);

/* --- Checkpoints ------------------------------------------------------------------------------ */

#define PAWL_CHECKPOINT_TYPES(X)            \
    X(ITERATION_START, iteration_start)     \
    X(ITERATION_END, iteration_end)         \
    X(TOOL_EXECUTED, tool_executed)         \
    X(LLM_RESPONSE, llm_response)           \
    X(APPROVAL_POINT, approval_point)       \
    X(STATE_TRANSITION, state_transition)   \
    X(MANUAL_CHECKPOINT, manual_checkpoint) \
    X(ERROR_BOUNDARY, error_boundary)

typedef enum pawl_checkpoint_type {
#define PAWL_CHECKPOINT_ENUM_(name, text) PAWL_CHECKPOINT_##name,
    PAWL_CHECKPOINT_TYPES(PAWL_CHECKPOINT_ENUM_)
#undef PAWL_CHECKPOINT_ENUM_
} pawl_checkpoint_type;

typedef enum pawl_evidence_kind {
    PAWL_EVIDENCE_FILE_EXISTS,  /* subject: a path */
    PAWL_EVIDENCE_FILE_SHA256,  /* subject: a path; expected: sha256:<64 hex digits> */
    PAWL_EVIDENCE_COMMAND_EXIT, /* subject: a shell command; expected: its exit code */
    PAWL_EVIDENCE_ROW_EXISTS    /* subject: one SELECT on the work store; a row must come back */
} pawl_evidence_kind;

#define PAWL_EVIDENCE_MAX 100        /* pieces of one checkpoint */
#define PAWL_EVIDENCE_BYTES_MAX 4096 /* of a subject */

/* Commands run as /bin/sh -c with the rights of the calling program, for a minute at the most. */
typedef struct pawl_evidence {
    size_t size;
    pawl_evidence_kind kind;
    pawl_view subject;
    pawl_view expected; /* empty where the kind has none */
} pawl_evidence;

#define PAWL_EVIDENCE_INIT                                             \
    {                                                                  \
        sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_EXISTS, { NULL, 0 }, \
        {                                                              \
            NULL, 0                                                    \
        }                                                              \
    }

typedef struct pawl_checkpoint {
    size_t size;
    pawl_view checkpoint_id; /* to add: empty is a new UUIDv7 */
    pawl_view task_id;
    pawl_view work_item_id; /* empty: of the task itself */
    pawl_checkpoint_type type;
    int64_t sequence_number; /* given by the store: 1, 2, 3, ... within the task */
    pawl_view snapshot_data; /* a JSON value */
    pawl_view metadata;      /* a JSON value; empty: none */
    int64_t created_at_us;
    bool verified; /* its evidence held when it was last checked; true without evidence */
    size_t evidence_count;
    const pawl_evidence *evidence;
} pawl_checkpoint;

#define PAWL_CHECKPOINT_INIT                                                                \
    {                                                                                       \
        sizeof(pawl_checkpoint), { NULL, 0 }, { NULL, 0 }, { NULL, 0 },                     \
            PAWL_CHECKPOINT_ITERATION_START, 0, { NULL, 0 }, { NULL, 0 }, 0, false, 0, NULL \
    }

/* Adds a checkpoint. With a `lease` (NULL: none) it belongs to that item, and a lost lease is refused
 * as above. The evidence is verified first: INVALID names the piece that does not hold. The same
 * checkpoint_id again with the same content is a duplicate and returns its number; with other content it is a
 * CONFLICT. `ret_sequence` and `ret_id` (as in pawl_task_create) may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_add(pawl_work *work,
                                                       const pawl_checkpoint *checkpoint,
                                                       const pawl_lease *lease,
                                                       int64_t *ret_sequence,
                                                       char *ret_id,
                                                       size_t room,
                                                       pawl_error *reterr);

/* By its id, or by task and number when the id is empty. A copy, ended with pawl_checkpoint_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_get(pawl_work *work,
                                                       pawl_view checkpoint_id,
                                                       pawl_view task_id,
                                                       int64_t sequence_number,
                                                       pawl_checkpoint **ret_checkpoint,
                                                       pawl_error *reterr);

/* The newest of a task: of any type when `type` is NULL, verified ones only when asked. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_latest(pawl_work *work,
                                                          pawl_view task_id,
                                                          const pawl_checkpoint_type *type,
                                                          bool verified_only,
                                                          pawl_checkpoint **ret_checkpoint,
                                                          pawl_error *reterr);
PAWL_API void pawl_checkpoint_free(pawl_checkpoint *checkpoint);

typedef bool (*pawl_checkpoint_visit)(void *context, const pawl_checkpoint *checkpoint);

/* In order of their numbers, from page->from on. `type` NULL: all; `work_item_id` empty: all. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_list(pawl_work *work,
                                                        pawl_view task_id,
                                                        pawl_view work_item_id,
                                                        const pawl_checkpoint_type *type,
                                                        pawl_page *page,
                                                        pawl_checkpoint_visit visit,
                                                        void *context,
                                                        pawl_error *reterr);

typedef struct pawl_difference {
    size_t size;
    pawl_view path; /* RFC 6901 */
    pawl_view from; /* empty: not there */
    pawl_view to;
} pawl_difference;

typedef bool (*pawl_difference_visit)(void *context, const pawl_difference *difference);

/* How `to` differs from `from`: one call for each value that was added, removed or changed. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_diff(const pawl_checkpoint *from,
                                                        const pawl_checkpoint *to,
                                                        pawl_difference_visit visit,
                                                        void *context,
                                                        pawl_error *reterr);

/* Checks the evidence again and records the result. `ret_verified` false: `ret_what` (of `room` bytes;
 * may be NULL) names the first piece that does not hold, cut to what fits. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_verify(pawl_work *work,
                                                          pawl_view checkpoint_id,
                                                          bool *ret_verified,
                                                          char *ret_what,
                                                          size_t room,
                                                          pawl_error *reterr);

/* --- Idempotency ------------------------------------------------------------------------------ */

#define PAWL_REQUEST_HASH_SIZE 72 /* "sha256:", 64 hex digits, NUL */

/* SHA-256 over the request's canonical JSON. INVALID: `room` is less than PAWL_REQUEST_HASH_SIZE. */
PAWL_API PAWL_MUST_USE pawl_status pawl_request_hash(pawl_view request,
                                                     char *ret_hash,
                                                     size_t room,
                                                     pawl_error *reterr);

typedef enum pawl_idem_answer {
    PAWL_IDEM_NEW,           /* do it: the key is yours until the lease runs out */
    PAWL_IDEM_IN_FLIGHT,     /* another caller does it: `owner`, until `lease_expires_at_us` */
    PAWL_IDEM_DONE,          /* it was done; `response` is its result */
    PAWL_IDEM_FAILED,        /* it failed for good; `response` says how */
    PAWL_IDEM_HASH_CONFLICT, /* the key stands for another request */
    PAWL_IDEM_IN_DOUBT       /* its owner's lease ran out: it may have happened. See `take_over` */
} pawl_idem_answer;

typedef struct pawl_idem_request {
    size_t size;
    pawl_view key;
    pawl_view request_hash; /* sha256:<64 hex digits> */
    pawl_view owner;        /* a name for people; empty: none */
    pawl_view task_id;      /* optional links */
    pawl_view work_item_id;
    uint32_t lease_ms; /* 0: that of the options */
    int64_t ttl_ms;    /* how long the answer is kept; 0: 24 hours */
    bool take_over;    /* the caller has decided: instead of IN_DOUBT (or FAILED) the key is NEW */
} pawl_idem_request;

#define PAWL_IDEM_REQUEST_INIT                                                         \
    {                                                                                  \
        sizeof(pawl_idem_request), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, \
            { NULL, 0 }, 0, 0, false                                                   \
    }

typedef struct pawl_idem {
    size_t size;
    pawl_idem_answer answer;
    uint64_t owner_token; /* NEW: for complete, fail and release */
    pawl_view owner;
    pawl_view request_hash; /* of the stored request */
    pawl_view response;     /* DONE, FAILED: JSON, "null" included */
    int64_t created_at_us;
    int64_t completed_at_us; /* 0: not yet */
    int64_t lease_expires_at_us;
    int64_t expires_at_us; /* of the key itself */
} pawl_idem;

/* Atomic: of many callers at once exactly one gets NEW. A copy, ended with pawl_idem_free. A key
 * past its TTL is NEW again, whatever it held, unless its owner's lease is live. A key that foreign
 * SQL began has no lease: it is IN_DOUBT until it is ended. NOT_FOUND: no such task or item. */
PAWL_API PAWL_MUST_USE pawl_status pawl_idem_begin(pawl_work *work,
                                                   const pawl_idem_request *request,
                                                   pawl_idem **ret_idem,
                                                   pawl_error *reterr);

/* Stores the response: terminal until the TTL. LEASE_LOST when the token is not the newest, or its
 * lease ran out and the key was taken over, or the key was ended; the same end again by the same
 * token is fine. `response`: a JSON value; empty is null. */
PAWL_API PAWL_MUST_USE pawl_status pawl_idem_complete(
    pawl_work *work, pawl_view key, uint64_t owner_token, pawl_view response, pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_idem_fail(
    pawl_work *work, pawl_view key, uint64_t owner_token, pawl_view response, pawl_error *reterr);

/* Releases a key whose work did not happen: the next begin is NEW, for any request. Releasing again is fine. */
PAWL_API PAWL_MUST_USE pawl_status pawl_idem_release(pawl_work *work,
                                                     pawl_view key,
                                                     uint64_t owner_token,
                                                     pawl_error *reterr);

/* Reads a key: never NEW or HASH_CONFLICT. NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_idem_get(pawl_work *work,
                                                 pawl_view key,
                                                 pawl_idem **ret_idem,
                                                 pawl_error *reterr);
PAWL_API void pawl_idem_free(pawl_idem *idem);

/* Does the work. PAWL_OK with a JSON value in *ret_response (pawl_copy_text makes it; freed by the
 * caller of this function; NULL is null) completes the key; INVALID, CONFLICT and FAILED fail it for good with the
 * error's message. TIMEOUT, UNAVAILABLE and IO say that it may have happened: the key stays, and is
 * in doubt once its lease runs out. Any other status (BUSY, CANCELLED, ...) says that it did not, and
 * releases the key, so that a repetition does it again. */
typedef pawl_status (*pawl_idem_work)(void *context, char **ret_response, pawl_error *reterr);

/* Runs `fn` unless it was done: begin, fn, complete. DONE: the stored response in *ret_response.
 * BUSY: in flight. CONFLICT: another request under this key (detail KEY_REUSED), or in doubt (KEY_IN_DOUBT).
 * FAILED: it failed for good earlier. *ret_response is NUL-terminated, for pawl_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_execute_with_idempotency(pawl_work *work,
                                                                 const pawl_idem_request *request,
                                                                 pawl_idem_work fn,
                                                                 void *context,
                                                                 char **ret_response,
                                                                 bool *ret_cached,
                                                                 pawl_error *reterr);

/* --- Recovery --------------------------------------------------------------------------------- */

typedef struct pawl_recovery {
    size_t size;
    const pawl_task *task;
    /* The last verified checkpoint; NULL: start at the beginning. Error boundaries, which hold an
     * error and no progress, are not among them. */
    const pawl_checkpoint *resume;
    const pawl_checkpoint *iteration_end; /* the last one; NULL: none */
    uint64_t passed_over;                 /* newer checkpoints whose evidence does not hold */
    size_t item_count;                    /* unfinished ones */
    const pawl_item *items;
    size_t key_count; /* cached answers of the task's idempotency keys */
    const pawl_view *keys;
    const pawl_view *responses;
    /* There are more items or keys than `list_max` or `bytes_max` allow; `task` has the counts of
     * items. */
    bool more;
} pawl_recovery;

/* Where a task resumes: verifies checkpoints from the newest on until one holds. Freed with
 * pawl_recovery_free. NOT_FOUND: no such task. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_recover(pawl_work *work,
                                                     pawl_view task_id,
                                                     pawl_recovery **ret_recovery,
                                                     pawl_error *reterr);

typedef struct pawl_recover_options {
    size_t size;
    /* Uses the recorded results instead of checking evidence, which runs commands and reads files. */
    bool as_recorded;
    uint32_t list_max; /* most items, and most keys; 0: all of them */
    size_t bytes_max;  /* of the texts of items, and of keys, about; 0: no limit */
} pawl_recover_options;

#define PAWL_RECOVER_OPTIONS_INIT                  \
    {                                              \
        sizeof(pawl_recover_options), false, 0, 0, \
    }

/* The same with options, which may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_recover_with(pawl_work *work,
                                                          pawl_view task_id,
                                                          const pawl_recover_options *options,
                                                          pawl_recovery **ret_recovery,
                                                          pawl_error *reterr);
PAWL_API void pawl_recovery_free(pawl_recovery *recovery);

/* --- As JSON ---------------------------------------------------------------------------------- */

/* One JSON object on one line, as `pawl work --json` prints it and a node answers. *ret_json is
 * NUL-terminated, for pawl_free; `ret_len` may be NULL. Times are RFC 3339, missing values are null.
 * INVALID: a pointer is NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_item_to_json(const pawl_item *item,
                                                     char **ret_json,
                                                     size_t *ret_len,
                                                     pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_task_to_json(const pawl_task *task,
                                                     char **ret_json,
                                                     size_t *ret_len,
                                                     pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_to_json(const pawl_checkpoint *checkpoint,
                                                           char **ret_json,
                                                           size_t *ret_len,
                                                           pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_recovery_to_json(const pawl_recovery *recovery,
                                                         char **ret_json,
                                                         size_t *ret_len,
                                                         pawl_error *reterr);
/* An item with its history in it: {..., "history": [...]}. NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_show_json(
    pawl_work *work, pawl_view work_item_id, char **ret_json, size_t *ret_len, pawl_error *reterr);

/* "pending", "in_progress", ...; "iteration_end", ...; "unknown" for any other number.
 * Parsing another name is INVALID, and the message lists the names. */
PAWL_API const char *pawl_item_status_name(pawl_item_status status);
PAWL_API const char *pawl_task_status_name(pawl_task_status status);
PAWL_API const char *pawl_checkpoint_type_name(pawl_checkpoint_type type);
PAWL_API PAWL_MUST_USE pawl_status pawl_item_status_parse(pawl_view name,
                                                          pawl_item_status *ret_status,
                                                          pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_task_status_parse(pawl_view name,
                                                          pawl_task_status *ret_status,
                                                          pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_type_parse(pawl_view name,
                                                              pawl_checkpoint_type *ret_type,
                                                              pawl_error *reterr);

/* --- Schedules -------------------------------------------------------------------------------- */

typedef struct pawl_schedule {
    size_t size;
    pawl_view schedule_id;
    pawl_view cron; /* five fields (minute hour day month weekday), or @hourly, @daily, ...; UTC */
    pawl_view task_id; /* empty: each slot creates its own task, with the id of its item */
    pawl_view work_type;
    pawl_view input_data;
    int32_t priority;
    int32_t max_retries;  /* negative: 3 */
    int64_t next_slot_us; /* read only */
    int64_t last_slot_us; /* read only; 0: never */
} pawl_schedule;

#define PAWL_SCHEDULE_INIT                                                                         \
    {                                                                                              \
        sizeof(pawl_schedule), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, \
            -1, 0, 0                                                                               \
    }

#define PAWL_SCHEDULE_ID_BYTES_MAX 180

/* Adds or replaces a schedule. INVALID names the field of the expression that is wrong. NOT_FOUND: no
 * such task. A slot's item has an id made of schedule and slot ("nightly@2026-01-29T10:20Z"), so it
 * exists once, however many nodes fire. The first slot is the next one; put again with the same
 * expression, a schedule keeps its place. */
PAWL_API PAWL_MUST_USE pawl_status pawl_schedule_put(pawl_work *work,
                                                     const pawl_schedule *schedule,
                                                     pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_schedule_remove(pawl_work *work,
                                                        pawl_view schedule_id,
                                                        pawl_error *reterr);
typedef bool (*pawl_schedule_visit)(void *context, const pawl_schedule *schedule);
/* In order of their ids, from page->from_id on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_schedule_list(
    pawl_work *work, pawl_page *page, pawl_schedule_visit visit, void *context, pawl_error *reterr);

/* Submits the item of every slot that is due. Only the latest missed slot is caught up. After the wall clock is
 * set back no slot fires twice, and slots that were skipped while it was ahead fire at their time. A schedule
 * that cannot fire (its task was cancelled) does not stop the others: its error, the first one, is returned after
 * all others have fired. `ret_fired` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_schedule_fire(pawl_work *work,
                                                      uint64_t *ret_fired,
                                                      pawl_error *reterr);

/* --- Maintenance ------------------------------------------------------------------------------ */

typedef struct pawl_work_stats {
    size_t size;
    uint64_t waiting, pending, in_progress, completed, failed;
    uint64_t active_leases;
    uint64_t stale_leases; /* no heartbeat for longer than stale_ms of the options */
    double avg_minutes_since_heartbeat;
    uint64_t checkpoints;
    uint64_t keys_pending, keys_completed, keys_failed;
    int64_t oldest_pending_us; /* created_at; 0: none */
} pawl_work_stats;

#define PAWL_WORK_STATS_INIT                                             \
    {                                                                    \
        sizeof(pawl_work_stats), 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0 \
    }

PAWL_API PAWL_MUST_USE pawl_status pawl_work_get_stats(pawl_work *work,
                                                       pawl_work_stats *ret_stats,
                                                       pawl_error *reterr);

typedef struct pawl_type_stats {
    size_t size;
    pawl_view work_type;
    pawl_item_status status;
    uint64_t count;
    double avg_age_hours;
} pawl_type_stats;

typedef bool (*pawl_type_stats_visit)(void *context, const pawl_type_stats *stats);
PAWL_API PAWL_MUST_USE pawl_status pawl_work_type_stats(pawl_work *work,
                                                        pawl_type_stats_visit visit,
                                                        void *context,
                                                        pawl_error *reterr);

typedef struct pawl_checkpoint_growth {
    size_t size;
    pawl_view task_id;
    uint64_t checkpoint_count;
    int64_t max_sequence;
    int64_t first_at_us;
    int64_t last_at_us;
} pawl_checkpoint_growth;

typedef bool (*pawl_checkpoint_growth_visit)(void *context, const pawl_checkpoint_growth *growth);
/* The ten tasks with the most checkpoints. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_checkpoint_growth(pawl_work *work,
                                                               pawl_checkpoint_growth_visit visit,
                                                               void *context,
                                                               pawl_error *reterr);

/* All of these numbers as metrics, in the text format of Prometheus: pawl_work_items,
 * pawl_work_item_age_seconds, pawl_work_active_leases and so on, up to 1,000 types with their statuses.
 * *ret_text is NUL-terminated, for pawl_free. `ret_len` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_get_metrics(pawl_work *work,
                                                         char **ret_text,
                                                         size_t *ret_len,
                                                         pawl_error *reterr);

typedef struct pawl_retention {
    size_t size;
    uint32_t item_days; /* ended items and their history; 30 */
    uint32_t
        checkpoints_per_task; /* 100; besides the newest of each type and the newest verified */
    uint32_t key_days; /* completed keys, also with a longer TTL; 7. Expired ones go at once */
    uint32_t batch;    /* rows in one transaction; 500 */
    bool archive;      /* checkpoints go to checkpoints_archive first */
    bool dry_run;      /* count, and change nothing */
} pawl_retention;

#define PAWL_RETENTION_INIT                                   \
    {                                                         \
        sizeof(pawl_retention), 30, 100, 7, 500, false, false \
    }

typedef struct pawl_retention_report {
    size_t size;
    uint64_t items;
    uint64_t history;
    uint64_t checkpoints;
    uint64_t archived;
    uint64_t keys;
    uint64_t bytes_freed; /* given back to the file system; 0 on PostgreSQL */
} pawl_retention_report;

#define PAWL_RETENTION_REPORT_INIT                      \
    {                                                   \
        sizeof(pawl_retention_report), 0, 0, 0, 0, 0, 0 \
    }

/* Removes old items, checkpoints and keys in small transactions, so that workers never wait, and returns the space
 * to the file system. `retention` may be NULL. In a dry run bytes_freed is the space that is free already. */
PAWL_API PAWL_MUST_USE pawl_status pawl_work_retention(pawl_work *work,
                                                       const pawl_retention *retention,
                                                       pawl_retention_report *ret_report,
                                                       pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
