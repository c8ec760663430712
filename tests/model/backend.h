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

/* Rows of any kind that a rollback puts back (list.h); NULL where one was removed. */
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

/* --- put.c --- */

void work_model_cut(struct work_model *backend, size_t history_count, size_t edge_count);
void work_model_free_items(struct work_model *backend);
work_put_fn work_model_put;
work_add_edges_fn work_model_add_edges;

/* --- tasks.c --- */

work_tasks_fn work_model_tasks;
work_task_insert_fn work_model_task_insert;
work_task_set_fn work_model_task_set;
work_derive_fn work_model_derive;
work_settle_fn work_model_settle;
work_task_read_fn work_model_task_read;

/* --- inspect.c --- */

work_get_fn work_model_get;
work_list_fn work_model_list;
work_history_fn work_model_history;

extern const struct work_item_ops work_model_items;

/* --- checkpoints.c, keys.c, schedules.c, maintenance.c --- */

void work_model_set_up(struct work_model *backend); /* lists and tables of all of these */
void work_model_checkpoints_set_up(struct work_model *backend);
void work_model_keys_set_up(struct work_model *backend);
void work_model_schedules_set_up(struct work_model *backend);
void work_model_maintenance_done(struct work_model *backend);

#endif
