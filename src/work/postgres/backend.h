/* Shared by the files of the PostgreSQL backend: postgres_store.c (open, transactions, connections),
 * postgres_trip.c (round trips) and one file a subject.
 *
 * Round trips are what a call costs, so they are counted: a group of calls takes two. The first
 * brings everything that the group said it would ask for (`wish`), behind a BEGIN. What is put is
 * kept until somebody asks something or commits, and goes out with that. */
#ifndef PAWL_WORK_POSTGRES_BACKEND_H
#define PAWL_WORK_POSTGRES_BACKEND_H

#include "base/thread/cancel.h"
#include "store/postgres/store.h"
#include "work/core/backend.h"
#include "work/postgres/statements.h"

#define WORK_CHANNEL "pawl_work" /* NOTIFY: the payload is the sender's name */

enum {
    WORK_PG_ARRAYS = 18, /* of the statement that has the most */
    WORK_PG_ASKED = 2,
    WORK_PG_STEPS_MAX = 16, /* statements of one trip whose rows somebody wants */
};

/* Where a row that was put has to go. */
enum work_pg_move {
    WORK_PG_INSERT,         /* nowhere -> items */
    WORK_PG_INSERT_WAITING, /* nowhere -> waiting */
    WORK_PG_UPDATE,         /* items -> items */
    WORK_PG_MOVE_OUT,       /* items -> waiting */
    WORK_PG_UPDATE_WAITING, /* waiting -> waiting */
    WORK_PG_MOVE_IN,        /* waiting -> items */
};

struct work_pg_put {
    struct work_row row; /* as it was when it was put */
    enum work_pg_move move;
};

/* What the first trip of a transaction brought, for whoever asks for it first. */
struct work_pg_brought {
    const struct work_prefetch_plan *wish; /* of the next transaction; NULL: none */
    const pawl_view *ids;                  /* its ids in order */
    size_t id_count;
    bool loaded; /* rows of these ids, in the same order */
    bool edges_known;
    bool picked;
    bool next_due_known;
    struct work_row **rows;
    size_t row_count;
    struct work_edge *edges;
    size_t edge_count;
    struct work_row **picks;
    size_t pick_count;
    int64_t next_due_us; /* INT64_MAX: never */
};

/* How far claims have come: see postgres_front.c. */
struct work_pg_front {
    bool known;
    int32_t priority; /* of the last item that was claimed, ... */
    int64_t submission;
    pawl_view type;    /* ... of this type; empty: of any */
    bool walks_whole;  /* from the beginning, ... */
    int64_t walked_ns; /* ... as it did at this monotonic time */
    uint64_t claimed;  /* since there was nothing left the last time */
    char type_text[PAWL_WORK_NAME_BYTES_MAX];
};

/* A task that was unfinished, and had the right status, at a monotonic time. */
struct work_pg_calm {
    pawl_view task_id;
    int64_t looked_ns;
    char text[PAWL_WORK_NAME_BYTES_MAX];
};

struct work_postgres {
    struct work_backend base;
    struct pawl__clock *clock; /* the real one; a test's stands in for the server's, ... */
    int64_t clock_zero_us;     /* ... which does not step with this machine's wall clock */
    char sender[PAWL_WORK_NAME_BYTES_MAX + 1]; /* tells our own notifications from others' */
    struct pawl__pg_store pg;                  /* its pool is the readers' */

    /* The committer's, as is the writer of `pg`. */
    struct pawl__pg *leaser;  /* leases while the writer completes; NULL: not wanted yet, or none */
    int64_t leaser_again_ns;  /* no other try to get one before this */
    struct pawl__arena arena; /* cleared when a transaction begins */
    struct work_now now;
    struct work_pg_brought brought;
    struct work_pg_put *puts;
    size_t put_count;
    size_t put_room;
    int64_t put_new; /* numbers that those among them take which are new */
    int64_t serial;  /* rows with this handle are among the puts */
    bool notify;     /* something may have become claimable */
    struct work_pg_front front;
    struct work_pg_calm calm;
    struct pawl__pg_array arrays[WORK_PG_ARRAYS]; /* of what is put, and between two trips */
    struct pawl__pg_array asked[WORK_PG_ASKED];   /* of what is asked: see pawl__work_pg_ids */

    /* Tasks whose status has to be looked at after the commit; in an arena of their own, because a
     * look that failed is made up for by the next. */
    struct pawl__arena touched_arena;
    pawl_view *touched;
    size_t touched_count;
    size_t touched_room;
};

static inline struct work_postgres *pawl__work_pg_of(struct work_backend *base)
{
    return (struct work_postgres *)base; /* base is its first member */
}

/* A second connection for the committer, made when it is first wanted; NULL when there may be none. */
struct pawl__pg *pawl__work_pg_leaser(struct work_postgres *backend);

/* --- round trips on the writer's connection --- */

/* Sees the rows of one statement. */
typedef pawl_status work_pg_on_rows(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr);

struct work_pg_trip {
    struct work_postgres *backend;
    bool open;
    size_t first; /* statements before the first step: what had been put */
    size_t count;
    struct {
        work_pg_on_rows *on_rows;
        void *context;
    } steps[WORK_PG_STEPS_MAX];
};

/* Begins a transaction if there is none, and takes along what was put. */
PAWL_MUST_USE pawl_status pawl__work_pg_trip_start(struct work_pg_trip *trip,
                                                   struct work_postgres *backend,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_pg_trip_add(struct work_pg_trip *trip,
                                                 size_t statement,
                                                 const struct pawl__pg_value *values,
                                                 size_t value_count,
                                                 work_pg_on_rows *on_rows,
                                                 void *context,
                                                 pawl_error *reterr);
/* With `status` not OK, that of an add, it only cleans up and returns it. */
PAWL_MUST_USE pawl_status pawl__work_pg_trip_end(struct work_pg_trip *trip,
                                                 pawl_status status,
                                                 pawl_error *reterr);

/* A trip with one statement. */
PAWL_MUST_USE pawl_status pawl__work_pg_ask(struct work_postgres *backend,
                                            size_t statement,
                                            const struct pawl__pg_value *values,
                                            size_t value_count,
                                            work_pg_on_rows *on_rows,
                                            void *context,
                                            pawl_error *reterr);

/* The same with the server's clock behind it, which backend->now then is: for statements that
 * lock. */
PAWL_MUST_USE pawl_status pawl__work_pg_ask_and_clock(struct work_postgres *backend,
                                                      size_t statement,
                                                      const struct pawl__pg_value *values,
                                                      size_t value_count,
                                                      work_pg_on_rows *on_rows,
                                                      void *context,
                                                      pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_pg_add_clock(struct work_pg_trip *trip, pawl_error *reterr);

/* Texts as one parameter, made before the trip or during it. `which` of WORK_PG_ASKED such
 * parameters: they live until the next with this number. */
struct pawl__pg_value pawl__work_pg_ids(struct work_postgres *backend,
                                        size_t which,
                                        const pawl_view *ids,
                                        size_t count);

/* What a failure means for a group of calls: a deadlock or a serialization failure is a CONFLICT,
 * after which the group is run again. */
pawl_status pawl__work_pg_outcome(pawl_status status, pawl_error *reterr);

/* --- values --- */

/* An empty view is null, and so is the time 0. */
struct pawl__pg_value pawl__work_pg_optional(pawl_view text);
struct pawl__pg_value pawl__work_pg_time(int64_t wall_us);
void pawl__work_pg_add_optional(struct pawl__pg_array *array, pawl_view text);
void pawl__work_pg_add_time(struct pawl__pg_array *array, int64_t wall_us);

/* $1 of the statements that tell or use the time: null, for the server's clock, unless a test has
 * brought one. No statement reads the time in any other way, so both run the same path. */
struct pawl__pg_value pawl__work_pg_given_time(const struct work_postgres *backend);

/* What such a statement answered. */
struct work_now pawl__work_pg_now(int64_t server_us);

/* A time of a column on the clock that decides; what does not fit is far away. */
int64_t pawl__work_pg_ns(int64_t wall_us);

/* --- rows --- */

/* Row `index` as it came: its texts are those of `rows`. */
void pawl__work_pg_row(const struct pawl__pg_rows *rows, size_t index, struct work_row *ret_row);

/* Rows of items that are kept in an arena. */
struct work_pg_kept {
    struct pawl__arena *arena;
    struct work_row **rows;
    size_t room;
    size_t count;
};
pawl_status pawl__work_pg_keep(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr);
struct work_row *pawl__work_pg_keep_row(struct pawl__arena *arena,
                                        const struct pawl__pg_rows *rows,
                                        size_t index); /* NULL: no memory */

/* Adds what was put to a pipeline: *ret_count statements. */
PAWL_MUST_USE pawl_status pawl__work_pg_add_puts(struct work_postgres *backend,
                                                 size_t *ret_count,
                                                 pawl_error *reterr);

/* --- the short way --- */

/* A whole walk for `wanted` rows has found `count` of them, in order. */
void pawl__work_pg_walked(struct work_postgres *backend,
                          const struct work_filter *filter,
                          size_t wanted,
                          struct work_row *const *rows,
                          size_t count);
/* An item is, or may be, pending that was not. */
void pawl__work_pg_came_in(struct work_postgres *backend, const struct work_row *row);
/* There was enough for everybody at the last walk: one statement will do. */
bool pawl__work_pg_has_more(const struct work_pg_front *front, const struct work_filter *filter);
/* From where the next walk goes. */
void pawl__work_pg_prepare_walk(struct work_pg_front *front, int64_t now_ns);
/* Whether a row is claimed before the front's. One that is new comes last among its equals. */
bool pawl__work_pg_is_before(const struct work_row *row, const struct work_pg_front *front);
void pawl__work_pg_move_front(struct work_pg_front *front, const struct work_row *row);
/* A name in memory of our own, of PAWL_WORK_NAME_BYTES_MAX, which foreign SQL may exceed. */
bool pawl__work_pg_fits(pawl_view name);
pawl_view pawl__work_pg_keep_name(char *to, pawl_view name);

pawl_status pawl__work_pg_quick(struct work_backend *base,
                                const struct work_filter *filter,
                                struct work_fast_call *calls,
                                size_t count,
                                struct pawl__arena *arena,
                                pawl_error *reterr);

/* --- tasks --- */

/* Adds the look at the touched tasks behind a COMMIT, and what came of it. */
struct work_pg_look {
    struct work_postgres *backend;
    bool seen;    /* it was answered */
    bool changes; /* a status is not what it should be */
};
pawl_status pawl__work_pg_saw_tasks(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_pg_touch(struct work_postgres *backend,
                                              const pawl_view *task_ids,
                                              size_t count,
                                              pawl_error *reterr);

/* Brings the status of the touched tasks up to date in a transaction of its own. What fails is left
 * for the next time. */
void pawl__work_pg_settle_touched(struct work_postgres *backend);
void pawl__work_pg_forget_touched(struct work_postgres *backend);

/* --- reading --- */

static inline pawl_status pawl__work_pg_borrow(struct work_backend *base,
                                               struct pawl__pg_borrowed *ret_borrowed,
                                               pawl_error *reterr)
{
    return pawl__pg_store_borrow(&pawl__work_pg_of(base)->pg, ret_borrowed, reterr);
}

/* Shows the rows of one statement one after the other, on a borrowed connection. False ends it. */
typedef bool work_pg_visit(void *context, const struct pawl__pg_rows *rows);
PAWL_MUST_USE pawl_status pawl__work_pg_walk(struct work_backend *base,
                                             size_t statement,
                                             const struct pawl__pg_value *values,
                                             size_t value_count,
                                             work_pg_visit *visit,
                                             void *context,
                                             pawl_error *reterr);

/* --- methods that are in files of their own --- */

pawl_status pawl__work_pg_comes_after(struct work_backend *base,
                                      pawl_view id,
                                      struct pawl__arena *arena,
                                      pawl_view *ret_ids,
                                      size_t room,
                                      size_t *ret_count,
                                      pawl_error *reterr);
pawl_status pawl__work_pg_orphans(struct work_backend *base,
                                  size_t count,
                                  struct pawl__arena *arena,
                                  pawl_view *ret_ids,
                                  size_t *ret_count,
                                  pawl_error *reterr);
pawl_status pawl__work_pg_edges(struct work_backend *base,
                                const pawl_view *after_ids,
                                size_t count,
                                void (*visit)(void *context, const struct work_edge *edge),
                                void *context,
                                pawl_error *reterr);
pawl_status pawl__work_pg_add_edges(struct work_backend *base,
                                    const struct work_edge *edges,
                                    size_t count,
                                    pawl_error *reterr);
pawl_status pawl__work_pg_put(struct work_backend *base,
                              const struct work_now *now,
                              struct work_row *const *rows,
                              size_t count,
                              pawl_error *reterr);
pawl_status pawl__work_pg_load(struct work_backend *base,
                               const pawl_view *ids,
                               size_t count,
                               struct pawl__arena *arena,
                               struct work_row **ret_rows,
                               pawl_error *reterr);
pawl_status pawl__work_pg_tasks(struct work_backend *base,
                                const pawl_view *ids,
                                size_t count,
                                struct pawl__arena *arena,
                                struct work_task *ret_tasks,
                                pawl_error *reterr);
pawl_status pawl__work_pg_task_insert(struct work_backend *base,
                                      const struct work_now *now,
                                      const pawl_task *task,
                                      pawl_error *reterr);
pawl_status pawl__work_pg_task_set(struct work_backend *base,
                                   const struct work_now *now,
                                   pawl_view task_id,
                                   pawl_task_status status,
                                   bool by_user,
                                   pawl_error *reterr);
pawl_status pawl__work_pg_derive(struct work_backend *base,
                                 const struct work_now *now,
                                 const pawl_view *task_ids,
                                 size_t count,
                                 pawl_error *reterr);
pawl_status pawl__work_pg_settle(struct work_backend *base,
                                 const struct work_now *now,
                                 size_t count,
                                 uint64_t *ret_settled,
                                 pawl_error *reterr);
pawl_status pawl__work_pg_get(struct work_backend *base,
                              pawl_view id,
                              work_row_visit visit,
                              void *context,
                              pawl_error *reterr);
pawl_status pawl__work_pg_list(struct work_backend *base,
                               const pawl_item_filter *filter,
                               work_row_visit visit,
                               void *context,
                               pawl_error *reterr);
pawl_status pawl__work_pg_history(struct work_backend *base,
                                  pawl_view id,
                                  pawl_item_event_visit visit,
                                  void *context,
                                  pawl_error *reterr);
pawl_status pawl__work_pg_task_read(struct work_backend *base,
                                    const struct work_task_query *query,
                                    pawl_task_visit visit,
                                    void *context,
                                    pawl_error *reterr);

/* Adds a walk that picks rows; and says what follows from what it found. */
PAWL_MUST_USE pawl_status pawl__work_pg_add_pick(struct work_pg_trip *trip,
                                                 const struct work_filter *filter,
                                                 size_t count,
                                                 work_pg_on_rows *on_rows,
                                                 void *context,
                                                 pawl_error *reterr);
void pawl__work_pg_note_rest(struct work_postgres *backend,
                             const struct work_filter *filter,
                             size_t count,
                             size_t found);

/* Adds the questions of the wish to the trip that begins a transaction. */
PAWL_MUST_USE pawl_status pawl__work_pg_add_wish(struct work_pg_trip *trip, pawl_error *reterr);
/* All of these ids were in the wish, so what was brought tells everything about them. */
bool pawl__work_pg_was_wished(const struct work_postgres *backend,
                              const pawl_view *ids,
                              size_t count);

extern const struct work_item_ops pawl__work_pg_items;
extern const struct work_checkpoint_ops pawl__work_pg_checkpoints;
extern const struct work_key_ops pawl__work_pg_keys;
extern const struct work_schedule_ops pawl__work_pg_schedules;
extern const struct work_maintenance_ops pawl__work_pg_maintenance;

#endif
