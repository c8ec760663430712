/* Shared by the files of the PostgreSQL backend: backend.c (open, transactions, connections), trip.c
 * (round trips), run.c (how the statements of both databases run), and one file per subject that SQLite
 * has otherwise.
 *
 * Round trips are what a call costs, so they are counted: a group of calls takes two. The first begins
 * the transaction and prefetches what the group said it would ask for (prefetch_plan.c). Rows to store
 * are collected until the next question or the commit, and go out with it (write_items.c). */
#ifndef PAWL_WORK_POSTGRES_BACKEND_H
#define PAWL_WORK_POSTGRES_BACKEND_H

#include "base/thread/cancel.h"
#include "store/postgres/store.h"
#include "work/postgres/statements.h"
#include "work/sql/sql.h"

#define WORK_CHANNEL "pawl_work" /* NOTIFY: the payload is the sender's name */

enum {
    WORK_PG_ARRAYS = 18, /* of the statement that has the most */
    WORK_PG_LISTS = 4,   /* texts of one statement of both databases, at most */
    WORK_PG_VALUES = 16,
    WORK_PG_STEPS_MAX = 18, /* statements of one trip whose rows are read */
};

/* Where a row goes when it is stored. */
enum work_pg_move {
    WORK_PG_INSERT,         /* nowhere -> items */
    WORK_PG_INSERT_WAITING, /* nowhere -> waiting */
    WORK_PG_UPDATE,         /* items -> items */
    WORK_PG_MOVE_OUT,       /* items -> waiting */
    WORK_PG_UPDATE_WAITING, /* waiting -> waiting */
    WORK_PG_MOVE_IN,        /* waiting -> items */
};

/* A row that the next trip stores. */
struct work_pg_write {
    struct work_row row; /* as it was when `put` was called */
    enum work_pg_move move;
};

/* What the first trip of a transaction has prefetched: each answer serves the first question. */
struct work_pg_prefetched {
    const struct work_prefetch_plan *plan; /* of the next transaction; NULL: none */
    const pawl_view *ids;                  /* its ids in order */
    size_t id_count;
    bool loaded; /* `rows` are those of these ids, in the same order */
    bool edges_known;
    bool picked;
    bool next_due_known;
    struct work_rows rows;
    struct work_edge *edges;
    size_t edge_count;
    struct work_rows picks;
    int64_t next_due_us; /* INT64_MAX: never */
};

/* The last item that was claimed: see queue_head.c. */
struct work_pg_queue_head {
    bool known;
    int32_t priority; /* of the last item that was claimed, ... */
    int64_t submission;
    pawl_view type;    /* ... of this type; empty: of any */
    bool walks_whole;  /* the next walk starts at the first item, ... */
    int64_t walked_ns; /* ... as the one at this monotonic time did */
    uint64_t claimed;  /* items in a row, since a claim last found too few */
    char type_text[PAWL_WORK_NAME_BYTES_MAX];
};

/* A task that had unfinished items, and the right status, at a monotonic time: see fast_path.c. */
struct work_pg_running_task {
    pawl_view task_id;
    int64_t checked_ns;
    char text[PAWL_WORK_NAME_BYTES_MAX];
};

struct work_postgres {
    struct work_sql_backend
        sql;               /* its clock is the real one; a test's stands in for the server's, ... */
    int64_t clock_zero_us; /* ... which does not step with this machine's wall clock */
    char sender[PAWL_WORK_NAME_BYTES_MAX + 1]; /* tells our own notifications from others' */
    struct pawl__pg_store pg;                  /* its pool is the readers' */

    /* The committer's, as is the writer of `pg`. */
    struct pawl__pg *second;  /* claims while the writer completes; NULL: not needed yet, or none */
    int64_t second_retry_ns;  /* no other try to open it before this */
    struct pawl__arena arena; /* cleared when a transaction begins */
    struct work_pg_prefetched prefetched;
    struct work_pg_write *writes;
    size_t write_count;
    size_t write_room;
    int64_t new_count; /* numbers that the new rows among them take */
    int64_t serial;    /* rows with this handle are among the writes */
    bool notify;       /* something may have become claimable */
    struct work_pg_queue_head queue_head;
    struct work_pg_running_task running_task;
    struct pawl__pg_array arrays[WORK_PG_ARRAYS]; /* of rows to store, and between two trips */
    struct pawl__pg_array lists[WORK_PG_LISTS];   /* see pawl__work_pg_list */

    /* Tasks whose status is checked after the commit. They have an arena of their own, because the next
     * check makes up for one that failed. */
    struct pawl__arena touched_arena;
    pawl_view *touched;
    size_t touched_count;
    size_t touched_room;
};

static inline struct work_postgres *pawl__work_pg_of(struct work_backend *base)
{
    return (struct work_postgres *)base; /* it is its first member's first member */
}

/* The committer's second connection, opened when it is first needed; NULL when there may be none. */
struct pawl__pg *pawl__work_pg_second(struct work_postgres *backend);

/* --- round trips on the writer's connection --- */

/* Sees the rows of one statement. */
typedef pawl_status work_pg_on_rows(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr);

struct work_pg_trip {
    struct work_postgres *backend;
    pawl_status status; /* after a failure nothing is added, and _end returns it */
    pawl_error *reterr;
    bool open;
    size_t first; /* statements before the first step: those of write_items.c */
    size_t count;
    struct {
        work_pg_on_rows *on_rows;
        void *context;
    } steps[WORK_PG_STEPS_MAX];
};

/* Begins a transaction if there is none, and stores the rows that wait for it. */
void pawl__work_pg_trip_start(struct work_pg_trip *trip,
                              struct work_postgres *backend,
                              pawl_error *reterr);
void pawl__work_pg_trip_add(struct work_pg_trip *trip,
                            size_t statement,
                            const struct pawl__pg_value *values,
                            size_t value_count,
                            work_pg_on_rows *on_rows,
                            void *context);
/* Adds the server's clock, which tells the transaction's time from then on: after statements that
 * lock. */
void pawl__work_pg_trip_add_clock(struct work_pg_trip *trip);
PAWL_MUST_USE pawl_status pawl__work_pg_trip_end(struct work_pg_trip *trip);

/* What a failure means for a group of calls: a deadlock or a serialization failure is a CONFLICT,
 * after which the group is run again. */
pawl_status pawl__work_pg_outcome(pawl_status status, pawl_error *reterr);

/* --- values and rows --- */

/* Texts as one parameter, made before the trip or during it. `which` of WORK_PG_LISTS such parameters:
 * they live until the next with this number. */
struct pawl__pg_value pawl__work_pg_list(struct work_postgres *backend,
                                         size_t which,
                                         const pawl_view *texts,
                                         size_t count);

/* Adds one row's values to arrays, one each. */
void pawl__work_pg_add_row(struct pawl__pg_array *arrays,
                           const struct work_value *values,
                           size_t count);

/* $1 of the statements that tell or use the time: null, for the server's clock, unless a test has
 * its own. No statement reads the time in any other way, so both run the same path. */
struct pawl__pg_value pawl__work_pg_given_time(const struct work_postgres *backend);

/* What such a statement answered. */
struct work_now pawl__work_pg_now(int64_t server_us);

/* A time of a column on the clock that decides; what does not fit is far away. */
int64_t pawl__work_pg_ns(int64_t wall_us);

union work_cell pawl__work_pg_cell(const struct work_columns *row,
                                   size_t column,
                                   enum work_cell_kind kind);
extern const struct work_sql_ops pawl__work_pg_sql;

/* Shows rows one by one. */
PAWL_MUST_USE pawl_status pawl__work_pg_each_row(const struct pawl__pg_rows *rows,
                                                 work_on_row *on_row,
                                                 void *context,
                                                 pawl_error *reterr);
work_pg_on_rows pawl__work_pg_add_items; /* its context is a struct work_found */

/* Adds the rows to store to a pipeline: *ret_count statements. */
PAWL_MUST_USE pawl_status pawl__work_pg_add_writes(struct work_postgres *backend,
                                                   size_t *ret_count,
                                                   pawl_error *reterr);

/* --- the queue's head --- */

/* A whole walk for `wanted` rows has found `found`, in order. */
void pawl__work_pg_walked(struct work_postgres *backend,
                          const struct work_filter *filter,
                          size_t wanted,
                          const struct work_rows *found);
/* An item is, or may be, pending that was not. */
void pawl__work_pg_came_in(struct work_postgres *backend, const struct work_row *row);
/* The last walk found enough for all who claimed: the fast path may serve this filter. */
bool pawl__work_pg_has_more(const struct work_pg_queue_head *head,
                            const struct work_filter *filter);
/* Decides where the next walk starts. */
void pawl__work_pg_prepare_walk(struct work_pg_queue_head *head, int64_t now_ns);
/* Whether a row is claimed before the head. One that is new comes last among its equals. */
bool pawl__work_pg_is_before(const struct work_row *row, const struct work_pg_queue_head *head);
void pawl__work_pg_move_head(struct work_pg_queue_head *head, const struct work_row *row);
/* A copy of a name in `to`, PAWL_WORK_NAME_BYTES_MAX bytes. False: it is longer, by foreign SQL. */
PAWL_MUST_USE bool pawl__work_pg_copy_name(char *to, pawl_view name, pawl_view *ret_copy);

/* Carries out what it can of a group's calls: see struct work_store_ops. */
pawl_status pawl__work_pg_fast_path(struct work_backend *base,
                                    const struct work_filter *filter,
                                    struct work_fast_call *calls,
                                    size_t count,
                                    struct pawl__arena *arena,
                                    pawl_error *reterr);

/* --- the prefetch plan --- */

/* Adds the questions of the plan to the trip that begins a transaction. */
void pawl__work_pg_add_plan(struct work_pg_trip *trip);
/* All of these ids were in the plan, so what was prefetched tells everything about them. */
bool pawl__work_pg_was_planned(const struct work_postgres *backend,
                               const pawl_view *ids,
                               size_t count);

/* Adds a walk that picks rows; pawl__work_pg_walked says what follows from what it found. */
void pawl__work_pg_add_pick(struct work_pg_trip *trip,
                            const struct work_filter *filter,
                            size_t count,
                            work_pg_on_rows *on_rows,
                            void *context);

/* --- the status of tasks --- */

/* Whether the status of the touched tasks is what their items say. */
struct work_pg_task_check {
    bool answered;
    bool changes; /* one is not */
};
work_pg_on_rows pawl__work_pg_check_tasks; /* its context is a struct work_pg_task_check */
PAWL_MUST_USE pawl_status pawl__work_pg_touch(struct work_postgres *backend,
                                              const pawl_view *task_ids,
                                              size_t count,
                                              pawl_error *reterr);

/* Brings the status of the touched tasks up to date in a transaction of its own. What fails is left
 * for the next time. */
void pawl__work_pg_settle_touched(struct work_postgres *backend);
void pawl__work_pg_forget_touched(struct work_postgres *backend);

/* --- operations --- */

static inline pawl_status pawl__work_pg_borrow(struct work_backend *base,
                                               struct pawl__pg_borrowed *ret_borrowed,
                                               pawl_error *reterr)
{
    return pawl__pg_store_borrow(&pawl__work_pg_of(base)->pg, ret_borrowed, reterr);
}

work_put_fn pawl__work_pg_put;
work_derive_fn pawl__work_pg_derive;
work_settle_fn pawl__work_pg_settle;

extern const struct work_item_ops pawl__work_pg_items;

#endif
