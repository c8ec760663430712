/* The interface of a store that holds tasks and their items: SQLite and PostgreSQL, which share most of
 * it (sql/), and the model that tests compare them with (tests/model).
 *
 * It has one table of operations per subject. The tables hold no decisions: items/decide.c decides what
 * becomes of a row, from rows and a time, and knows no store.
 *
 * Writing: begin ... commit or rollback, from the committer's thread alone (group.h), which calls
 * nothing else in between. The operations take many rows at once, because a group of callers is
 * served by one transaction. Ids are given in ascending order where it says so: two nodes that lock
 * the same rows do so in the same order.
 *
 * Reading (the operations that say so): from any thread, at any time, on what was committed; never
 * waits for the writer.
 *
 * Which clock decides: `struct work_now` is read by begin, and every deadline in a row is on its
 * `ns`. SQLite and memory: the machine's boot clock; a deadline of another boot is read as one that
 * has passed. PostgreSQL: the server's clock, in nanoseconds since 1970. A lease that foreign SQL
 * took has no deadline in our columns: its lease_expires_at is turned into one by the wall time. */
#ifndef PAWL_WORK_CORE_BACKEND_H
#define PAWL_WORK_CORE_BACKEND_H

#include <pawl/work.h>

#include "base/core/arena.h"
#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "engine/open.h"

struct work_backend;
struct work_checkpoint_ops;  /* work/checkpoints/backend.h */
struct work_key_ops;         /* work/keys/backend.h */
struct work_schedule_ops;    /* work/schedules/backend.h */
struct work_maintenance_ops; /* work/core/backend_maintenance.h */

struct work_now {
    int64_t wall_us; /* what is written into columns for people; decides nothing */
    int64_t ns;      /* what decides */
    int64_t age_us;  /* the wall time that ages are counted to: no step forward is in it */
};

enum work_home {
    WORK_NOWHERE,    /* not stored yet */
    WORK_IN_ITEMS,   /* a row of work_items */
    WORK_IN_WAITING, /* a row of work_waiting: not claimable yet */
};

enum work_reason { WORK_REASON_NONE, WORK_DELAY, WORK_BACKOFF, WORK_DEPENDENCY };

/* An item as it is stored, or as it is to be stored. */
struct work_row {
    pawl_item item; /* texts live in the arena that the row was loaded into */
    enum work_home home;
    int64_t handle;      /* the backend's own, to find the row again within the transaction */
    int64_t deadline_ns; /* IN_PROGRESS: the lease has run out from this moment on */
    int64_t entries;     /* how often it came back from work_waiting */
    int64_t submission;  /* its number, in the order of submissions; NOWHERE: its index among those
                          * of this call, and put makes a number of it */
    /* WAITING: */
    enum work_reason reason;
    int64_t due_ns;    /* not before; INT64_MIN: any time (item.due_at_us is then 0) */
    int64_t waits_for; /* items that have to complete first */
};

struct work_task {
    pawl_task task;
    bool known; /* there is one */
};

/* Which items may be claimed. No types: any. */
struct work_filter {
    const pawl_view *work_types;
    size_t work_type_count;
    pawl_view task_id; /* empty: any */
};

/* `work_item_id` comes after `after_id`. */
struct work_edge {
    pawl_view work_item_id;
    pawl_view after_id;
};

/* Sees a row; its texts are borrowed for the call. False ends the walk. */
typedef bool (*work_row_visit)(void *context, const struct work_row *row);

/* An id and a number that belongs to it. False ends the walk. */
typedef bool work_count_visit(void *context, pawl_view id, uint64_t count);

/* What a transaction will ask for first. */
struct work_prefetch_plan {
    const pawl_view *ids; /* to be loaded, in any order */
    size_t id_count;
    const struct work_filter *filter; /* to be picked: `pick_count` rows; 0: none */
    size_t pick_count;
};

/* A call that a store may carry out by its fast path: it completes an item, or leases the next one,
 * or both. */
struct work_fast_call {
    pawl_view id; /* empty: completes nothing. Each but once in a group */
    uint64_t token;
    pawl_view output_data;
    pawl_view holder; /* empty: leases nothing */
    uint32_t lease_ms;
    void *owner;          /* the caller's own */
    bool ended;           /* answer: it has completed the item */
    struct work_row *row; /* answer: what it has leased; NULL: nothing */
};

struct work_store_ops {
    const char *name;
    int64_t gather_ns; /* how long a group may wait for the callers that the last one answered */
    void (*close)(struct work_backend *base); /* also of a half-built backend */

    /* Says what the transaction that begins next will load (once, all of these ids or some) and pick
     * (with this very filter and count, before anything else could change those rows), so that a
     * store that is a round trip away prefetches all of it with the begin. `plan` lives until the
     * transaction ends. NULL: the store has no use for it. */
    void (*plan)(struct work_backend *base, const struct work_prefetch_plan *plan);

    /* Carries out what it can of these calls, durably, in a transaction of its own. It completes an
     * item when the token holds it and nobody waits for it; a call whose item it did not complete
     * leases nothing. What it does not do is left as it was, and goes through the transaction. All that
     * lease have this filter; NULL: none does. On failure nothing has happened, or it is not known.
     * NULL: the store has no fast path. */
    pawl_status (*fast_path)(struct work_backend *base,
                             const struct work_filter *filter,
                             struct work_fast_call *calls,
                             size_t count,
                             struct pawl__arena *arena,
                             pawl_error *reterr);

    /* Starts a transaction. On one machine it takes the write lock at once: nobody else changes
     * anything until it ends. On PostgreSQL only what is loaded and picked is locked; `ret_now` is
     * then a first reading, and `now` gives a fresh one after the locks. */
    pawl_status (*begin)(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr);

    /* The time again, after rows were locked: waiting for a lock may have outlasted a lease. NULL:
     * begin's holds for the whole transaction. */
    pawl_status (*now)(struct work_backend *base, struct work_now *ret_now, pawl_error *reterr);

    /* PAWL_OK: durable. CONFLICT: another node came in between and nothing happened; the group is
     * run again, request by request. */
    pawl_status (*commit)(struct work_backend *base, pawl_error *reterr);
    void (*rollback)(struct work_backend *base); /* nothing without a transaction */

    /* CORRUPT names a trigger or rule that somebody has added since the store was opened. Any thread. NULL: every
     * write finds it out by itself. */
    pawl_status (*check_schema)(struct work_backend *base, pawl_error *reterr);

    /* The time, for readers. Any thread. */
    pawl_status (*read_now)(struct work_backend *base,
                            struct work_now *ret_now,
                            pawl_error *reterr);

    /* Returns when another process or node has committed something, at the monotonic deadline or
     * when `cancel` is cancelled; sooner does no harm. On the watcher's thread alone. NULL: nobody
     * else can. */
    pawl_status (*watch)(struct work_backend *base,
                         int64_t deadline_ns,
                         struct pawl__cancel *cancel,
                         pawl_error *reterr);

    /* Inside of a transaction: gives up to `pages` free pages back to the file system; *ret_bytes is 0
     * when there are no more. NULL: the store does not, or does it by itself. */
    pawl_status (*give_back)(struct work_backend *base,
                             size_t pages,
                             uint64_t *ret_bytes,
                             pawl_error *reterr);
    /* Reading: what give_back has left to give, in bytes. NULL with it. */
    pawl_status (*free_bytes)(struct work_backend *base, uint64_t *ret_bytes, pawl_error *reterr);

    /* Reading: runs one SELECT that cannot change anything, for a bounded time. INVALID: it is none, or
     * SQL refused it. UNSUPPORTED: the store has no SQL. */
    pawl_status (*row_exists)(struct work_backend *base,
                              pawl_view select,
                              bool *ret_exists,
                              pawl_error *reterr);
};

/* Which tasks. */
struct work_task_query {
    pawl_view id;                   /* this one; empty: all that the rest allows */
    const pawl_task_status *status; /* NULL: any */
    bool by_id;                     /* in order of their ids, else of creation */
    pawl_view from_id;              /* with by_id: from this one on */
    uint64_t limit;                 /* with by_id; 0: none */
};

/* Which items. */
struct work_item_query {
    pawl_item_filter filter;
    pawl_view from_id; /* with filter.by_id: from this one on */
    uint64_t limit;    /* 0: none */
};

/* Rows that an operation finds: it adds them after those that are there, up to `room`. */
struct work_rows {
    struct pawl__arena *arena;
    struct work_row **rows;
    size_t room;
    size_t count;
};

/* The same of ids. */
struct work_ids {
    struct pawl__arena *arena;
    pawl_view *ids;
    size_t room;
    size_t count;
};

/* --- items, inside of a transaction --- */

/* The rows with these ids (ascending, each once) in ret_rows[i], NULL where there is none, from
 * either home, locked against other nodes. */
typedef pawl_status work_load_fn(struct work_backend *base,
                                 const pawl_view *ids,
                                 size_t count,
                                 struct pawl__arena *arena,
                                 struct work_row **ret_rows,
                                 pawl_error *reterr);

/* Pending rows by priority and submission; rows that another node has locked are passed over. One walk
 * along an index for each type, whatever else is stored. Their token is at least that of every row
 * that was ever removed: a lease takes the next. */
typedef pawl_status work_pick_fn(struct work_backend *base,
                                 const struct work_filter *filter,
                                 struct work_rows *found,
                                 pawl_error *reterr);

/* Rows whose lease has run out at now->ns, or that foreign SQL left expired. */
typedef pawl_status work_expired_fn(struct work_backend *base,
                                    const struct work_now *now,
                                    struct work_rows *found,
                                    pawl_error *reterr);

/* Waiting rows that wait for nothing but time, whose time has come. *ret_next_ns: when the next one
 * comes, INT64_MAX for never. */
typedef pawl_status work_due_fn(struct work_backend *base,
                                const struct work_now *now,
                                struct work_rows *found,
                                int64_t *ret_next_ns,
                                pawl_error *reterr);

/* Items of a task that have not ended, from both homes, locked. */
typedef pawl_status work_unfinished_fn(struct work_backend *base,
                                       pawl_view task_id,
                                       struct work_rows *found,
                                       pawl_error *reterr);

/* Stores rows as they are now: item.status WAITING belongs in work_waiting, all others in
 * work_items; `home` says where the row is now, and is updated.
 *   nowhere -> items     insert (pending)
 *   nowhere -> waiting   insert
 *   items   -> items     update
 *   items   -> waiting   the step back to pending is in the history, then it moves
 *   waiting -> waiting   update
 *   waiting -> items     moves with entries + 1; checkpoints and keys are linked again; any
 *                        status but pending is reached from pending, which is in the history
 * CONFLICT: another node has stored one of the ids. */
typedef pawl_status work_put_fn(struct work_backend *base,
                                struct work_row *const *rows,
                                size_t count,
                                pawl_error *reterr);

/* An error_boundary checkpoint of an item whose lease ran out. */
struct work_boundary {
    pawl_view checkpoint_id;
    pawl_view task_id;
    pawl_view work_item_id;
    pawl_view snapshot; /* JSON */
};

/* Stores them; their numbers come from the counters of their tasks. */
typedef pawl_status work_boundaries_fn(struct work_backend *base,
                                       const struct work_now *now,
                                       const struct work_boundary *boundaries,
                                       size_t count,
                                       pawl_error *reterr);

typedef void work_edge_visit(void *context, const struct work_edge *edge);

/* Calls `visit` for every edge to one of these ids: who comes after them. */
typedef pawl_status work_edges_fn(struct work_backend *base,
                                  const pawl_view *after_ids,
                                  size_t count,
                                  work_edge_visit *visit,
                                  void *context,
                                  pawl_error *reterr);
typedef pawl_status work_add_edges_fn(struct work_backend *base,
                                      const struct work_edge *edges,
                                      size_t count,
                                      pawl_error *reterr);

/* What an item comes after, ascending. */
typedef pawl_status work_comes_after_fn(struct work_backend *base,
                                        pawl_view id,
                                        struct work_ids *found,
                                        pawl_error *reterr);

/* --- items, reading --- */

/* Items that wait for one that has ended, or is gone: foreign SQL leaves them so. */
typedef pawl_status work_orphans_fn(struct work_backend *base,
                                    struct work_ids *found,
                                    pawl_error *reterr);

/* NOT_FOUND */
typedef pawl_status work_get_fn(struct work_backend *base,
                                pawl_view id,
                                work_row_visit visit,
                                void *context,
                                pawl_error *reterr);
typedef pawl_status work_list_fn(struct work_backend *base,
                                 const struct work_item_query *query,
                                 work_row_visit visit,
                                 void *context,
                                 pawl_error *reterr);
typedef pawl_status work_history_fn(struct work_backend *base,
                                    pawl_view id,
                                    pawl_item_event_visit visit,
                                    void *context,
                                    pawl_error *reterr);

/* What there is of the feed of changes, at one moment. */
struct work_changes_bounds {
    pawl_work_position floor; /* up to here some were removed */
    pawl_work_position end;   /* what comes later has a higher position */
};

/* Up to `limit` changes after a position, in order, with the bounds at that moment. */
typedef pawl_status work_changes_fn(struct work_backend *base,
                                    const pawl_work_position *after,
                                    uint64_t limit,
                                    struct work_changes_bounds *ret_bounds,
                                    pawl_work_change_visit visit,
                                    void *context,
                                    pawl_error *reterr);

/* --- tasks, inside of a transaction --- */

/* Tasks with these ids (ascending, each once), without their items counted. PostgreSQL locks them
 * against a change of status (FOR SHARE). */
typedef pawl_status work_tasks_fn(struct work_backend *base,
                                  const pawl_view *ids,
                                  size_t count,
                                  struct pawl__arena *arena,
                                  struct work_task *ret_tasks,
                                  pawl_error *reterr);
/* CONFLICT: another node has stored this id meanwhile. Status and set_by_user are stored as they are. */
typedef pawl_status work_task_insert_fn(struct work_backend *base,
                                        const struct work_now *now,
                                        const pawl_task *task,
                                        pawl_error *reterr);
typedef pawl_status work_task_set_fn(struct work_backend *base,
                                     const struct work_now *now,
                                     pawl_view task_id,
                                     pawl_task_status status,
                                     bool by_user,
                                     pawl_error *reterr);

/* Brings the status of these tasks up to date with their items, unless the user has set it: running as
 * soon as one was claimed, succeeded or failed when none is unfinished, running again when something
 * new was submitted. Each once. Where the transaction does not see what others do at the same time,
 * the backend keeps the ids and does it after its commit. */
typedef pawl_status work_derive_fn(struct work_backend *base,
                                   const struct work_now *now,
                                   const pawl_view *task_ids,
                                   size_t count,
                                   pawl_error *reterr);

/* Brings up to `count` tasks that need it up to date, no matter which process left them so. */
typedef pawl_status work_settle_fn(struct work_backend *base,
                                   const struct work_now *now,
                                   size_t count,
                                   uint64_t *ret_settled,
                                   pawl_error *reterr);

/* --- tasks, reading --- */

/* With their items counted. */
typedef pawl_status work_task_read_fn(struct work_backend *base,
                                      const struct work_task_query *query,
                                      pawl_task_visit visit,
                                      void *context,
                                      pawl_error *reterr);

struct work_item_ops {
    work_load_fn *load;
    work_pick_fn *pick;
    work_expired_fn *expired;
    work_due_fn *due;
    work_unfinished_fn *unfinished;
    work_put_fn *put;
    work_boundaries_fn *boundaries;
    work_edges_fn *edges;
    work_add_edges_fn *add_edges;
    work_comes_after_fn *comes_after; /* NULL with orphans, ... */
    work_orphans_fn *orphans;         /* ... where no foreign SQL can leave any */
    work_get_fn *get;
    work_list_fn *list;
    work_history_fn *history;
    work_changes_fn *changes; /* NULL: the store has no feed */
    work_tasks_fn *tasks;
    work_task_insert_fn *task_insert;
    work_task_set_fn *task_set;
    work_derive_fn *derive;
    work_settle_fn *settle;
    work_task_read_fn *task_read;
};

/* The first member of a store's own struct. NULL tables: that part is not built yet. */
struct work_backend {
    const struct work_store_ops *store;
    const struct work_item_ops *items;
    const struct work_checkpoint_ops *checkpoints;
    const struct work_key_ops *keys;
    const struct work_schedule_ops *schedules;
    const struct work_maintenance_ops *maintenance;
    bool without_fast_path; /* tests only: every call goes through the transaction */
};

/* What a backend is opened with; everything outlives it. */
struct work_setup {
    const pawl_work_options *options;
    struct pawl__clock *clock;
    const char *boot_id;
};

PAWL_MUST_USE pawl__backend_open pawl__work_sqlite_open; /* also in memory */
PAWL_MUST_USE pawl__backend_open pawl__work_postgres_open;

#endif
