/* The model: the reference that the contract suites run on, too. One lock covers all
 * of it; a transaction holds it from begin to its end. Nothing here is quick. */
#ifndef TESTS_MODEL_BACKEND_H
#define TESTS_MODEL_BACKEND_H

#include "base/core/map.h"
#include "base/thread/thread.h"
#include "work/core/backend.h"

/* What a rollback puts back. A part adds a step before each change. */
struct work_undo {
    struct work_undo *next;
    void (*undo)(struct work_undo *step);   /* puts the old state back */
    void (*forget)(struct work_undo *step); /* after a commit: frees the old state */
};

/* An item as it is stored: never changed, only replaced. Texts are in `copy`. */
struct work_model_item {
    struct work_row row;
    pawl_item *copy;
};

struct work_model_event {
    pawl_item *item; /* whose ids and messages these are */
    const char *from;
    const char *to;
    int64_t at_us;
};

struct work_model_edge {
    char *work_item_id;
    char *after_id;
};

/* Rows of any kind that a rollback puts back (model_list.h); NULL where one was removed. */
struct work_model_list {
    void **rows;
    size_t count;
    size_t room;
    void (*free_row)(void *row);
};

struct work_model {
    struct work_backend base;
    struct pawl__lock lock;
    struct pawl__clock *clock;
    _Atomic int64_t lowest_us;        /* see work/core/age.h */
    bool open;                        /* in a transaction; the committer's */
    struct work_undo *undo;           /* newest first */
    struct pawl__map *items;          /* struct work_model_item, by id */
    struct pawl__map *tasks;          /* pawl_task, by id */
    struct work_model_event *history; /* oldest first */
    size_t history_count;
    size_t history_room;
    size_t history_before; /* the transaction */
    struct work_model_edge *edges;
    size_t edge_count;
    size_t edge_room;
    size_t edges_before;        /* the transaction */
    uint64_t token_floor;       /* of items that were removed */
    uint64_t owner_token_floor; /* of keys that were */
    int64_t submissions;        /* the last number given */
    struct work_model_list checkpoints;
    struct work_model_list counters; /* of checkpoints */
    struct work_model_list keys;
    struct work_model_list schedules;
    struct work_model_list fires; /* of schedules */
};

static inline struct work_model *work_model_of(struct work_backend *base)
{
    return (struct work_model *)base; /* base is its first member */
}

/* Remembers a step; it is the backend's from here on. */
void work_model_remember(struct work_model *backend, struct work_undo *step);

/* --- model_put.c --- */

void work_model_cut(struct work_model *backend, size_t history_count, size_t edge_count);
void work_model_free_items(struct work_model *backend);
pawl_status work_model_put(struct work_backend *base,
                           const struct work_now *now,
                           struct work_row *const *rows,
                           size_t count,
                           pawl_error *reterr);
pawl_status work_model_add_edges(struct work_backend *base,
                                 const struct work_edge *edges,
                                 size_t count,
                                 pawl_error *reterr);

/* --- model_tasks.c --- */

pawl_status work_model_tasks(struct work_backend *base,
                             const pawl_view *ids,
                             size_t count,
                             struct pawl__arena *arena,
                             struct work_task *ret_tasks,
                             pawl_error *reterr);
pawl_status work_model_task_insert(struct work_backend *base,
                                   const struct work_now *now,
                                   const pawl_task *task,
                                   pawl_error *reterr);
pawl_status work_model_task_set(struct work_backend *base,
                                const struct work_now *now,
                                pawl_view task_id,
                                pawl_task_status status,
                                bool by_user,
                                pawl_error *reterr);
pawl_status work_model_derive(struct work_backend *base,
                              const struct work_now *now,
                              const pawl_view *task_ids,
                              size_t count,
                              pawl_error *reterr);
pawl_status work_model_settle(struct work_backend *base,
                              const struct work_now *now,
                              size_t count,
                              uint64_t *ret_settled,
                              pawl_error *reterr);
pawl_status work_model_task_read(struct work_backend *base,
                                 const struct work_task_query *query,
                                 pawl_task_visit visit,
                                 void *context,
                                 pawl_error *reterr);

/* --- model_look.c --- */

pawl_status work_model_get(struct work_backend *base,
                           pawl_view id,
                           work_row_visit visit,
                           void *context,
                           pawl_error *reterr);
pawl_status work_model_list(struct work_backend *base,
                            const pawl_item_filter *filter,
                            work_row_visit visit,
                            void *context,
                            pawl_error *reterr);
pawl_status work_model_history(struct work_backend *base,
                               pawl_view id,
                               pawl_item_event_visit visit,
                               void *context,
                               pawl_error *reterr);

extern const struct work_item_ops work_model_items;

/* --- model_checkpoints.c, model_keys.c, model_schedules.c, model_care.c --- */

void work_model_set_up(struct work_model *backend); /* lists and tables of all of these */
void work_model_checkpoints_set_up(struct work_model *backend);
void work_model_keys_set_up(struct work_model *backend);
void work_model_schedules_set_up(struct work_model *backend);
void work_model_maintenance_done(struct work_model *backend);

#endif
