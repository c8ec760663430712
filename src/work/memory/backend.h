/* The backend in memory: the reference that the contract suites run on, too. One lock covers all
 * of it; a transaction holds it from begin to its end. Nothing here is quick. */
#ifndef PAWL_WORK_MEMORY_BACKEND_H
#define PAWL_WORK_MEMORY_BACKEND_H

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
struct work_memory_item {
    struct work_row row;
    pawl_item *copy;
};

struct work_memory_event {
    pawl_item *item; /* whose ids and messages these are */
    const char *from;
    const char *to;
    int64_t at_us;
};

struct work_memory_edge {
    char *work_item_id;
    char *after_id;
};

/* Rows of any kind that a rollback puts back (memory_list.h); NULL where one was removed. */
struct work_memory_list {
    void **rows;
    size_t count;
    size_t room;
    void (*free_row)(void *row);
};

struct work_memory {
    struct work_backend base;
    struct pawl__lock lock;
    struct pawl__clock *clock;
    _Atomic int64_t lowest_us;         /* see work/core/age.h */
    bool open;                         /* in a transaction; the committer's */
    struct work_undo *undo;            /* newest first */
    struct pawl__map *items;           /* struct work_memory_item, by id */
    struct pawl__map *tasks;           /* pawl_task, by id */
    struct work_memory_event *history; /* oldest first */
    size_t history_count;
    size_t history_room;
    size_t history_before; /* the transaction */
    struct work_memory_edge *edges;
    size_t edge_count;
    size_t edge_room;
    size_t edges_before;        /* the transaction */
    uint64_t token_floor;       /* of items that were removed */
    uint64_t owner_token_floor; /* of keys that were */
    int64_t submissions;        /* the last number given */
    struct work_memory_list checkpoints;
    struct work_memory_list counters; /* of checkpoints */
    struct work_memory_list keys;
    struct work_memory_list schedules;
    struct work_memory_list fires; /* of schedules */
};

static inline struct work_memory *pawl__work_memory_of(struct work_backend *base)
{
    return (struct work_memory *)base; /* base is its first member */
}

/* Remembers a step; it is the backend's from here on. */
void pawl__work_memory_remember(struct work_memory *backend, struct work_undo *step);

/* --- memory_put.c --- */

void pawl__work_memory_cut(struct work_memory *backend, size_t history_count, size_t edge_count);
void pawl__work_memory_free_items(struct work_memory *backend);
pawl_status pawl__work_memory_put(struct work_backend *base,
                                  const struct work_now *now,
                                  struct work_row *const *rows,
                                  size_t count,
                                  pawl_error *reterr);
pawl_status pawl__work_memory_add_edges(struct work_backend *base,
                                        const struct work_edge *edges,
                                        size_t count,
                                        pawl_error *reterr);

/* --- memory_tasks.c --- */

pawl_status pawl__work_memory_tasks(struct work_backend *base,
                                    const pawl_view *ids,
                                    size_t count,
                                    struct pawl__arena *arena,
                                    struct work_task *ret_tasks,
                                    pawl_error *reterr);
pawl_status pawl__work_memory_task_insert(struct work_backend *base,
                                          const struct work_now *now,
                                          const pawl_task *task,
                                          pawl_error *reterr);
pawl_status pawl__work_memory_task_set(struct work_backend *base,
                                       const struct work_now *now,
                                       pawl_view task_id,
                                       pawl_task_status status,
                                       bool by_user,
                                       pawl_error *reterr);
pawl_status pawl__work_memory_derive(struct work_backend *base,
                                     const struct work_now *now,
                                     const pawl_view *task_ids,
                                     size_t count,
                                     pawl_error *reterr);
pawl_status pawl__work_memory_settle(struct work_backend *base,
                                     const struct work_now *now,
                                     size_t count,
                                     uint64_t *ret_settled,
                                     pawl_error *reterr);
pawl_status pawl__work_memory_task_read(struct work_backend *base,
                                        const struct work_task_query *query,
                                        pawl_task_visit visit,
                                        void *context,
                                        pawl_error *reterr);

/* --- memory_look.c --- */

pawl_status pawl__work_memory_get(struct work_backend *base,
                                  pawl_view id,
                                  work_row_visit visit,
                                  void *context,
                                  pawl_error *reterr);
pawl_status pawl__work_memory_list(struct work_backend *base,
                                   const pawl_item_filter *filter,
                                   work_row_visit visit,
                                   void *context,
                                   pawl_error *reterr);
pawl_status pawl__work_memory_history(struct work_backend *base,
                                      pawl_view id,
                                      pawl_item_event_visit visit,
                                      void *context,
                                      pawl_error *reterr);

extern const struct work_item_ops pawl__work_memory_items;

/* --- memory_checkpoints.c, memory_keys.c, memory_schedules.c, memory_care.c --- */

void pawl__work_memory_set_up(struct work_memory *backend); /* lists and tables of all of these */
void pawl__work_memory_checkpoints_set_up(struct work_memory *backend);
void pawl__work_memory_keys_set_up(struct work_memory *backend);
void pawl__work_memory_schedules_set_up(struct work_memory *backend);
void pawl__work_memory_maintenance_done(struct work_memory *backend);

#endif
