/* The backend in memory: the reference that the contract suites run on, too. One lock covers all
 * of it; a transaction holds it from begin to its end. Nothing here is quick. */
#ifndef PAWL_WORK_MEMORY_BACKEND_H
#define PAWL_WORK_MEMORY_BACKEND_H

#include "base/map.h"
#include "base/thread.h"
#include "work/backend.h"

/* What a rollback puts back. A part adds a step before each change. */
struct work_undo {
    struct work_undo *next;
    void (*undo)(struct work_undo *step);   /* puts the old state back */
    void (*forget)(struct work_undo *step); /* after a commit: frees the old state */
};

struct work_memory {
    struct work_backend base;
    struct pawl__lock lock;
    struct pawl__clock *clock;
    struct work_undo *undo; /* newest first */
    struct pawl__map *items;
    struct pawl__map *tasks;
    struct work_memory_history *history; /* oldest first */
    size_t history_count;
    size_t history_room;
    struct work_memory_edge *edges;
    size_t edge_count;
    size_t edge_room;
};

static inline struct work_memory *pawl__work_memory_of(struct work_backend *base)
{
    return (struct work_memory *)base; /* base is its first member */
}

/* Remembers a step; it is the backend's from here on. */
void pawl__work_memory_remember(struct work_memory *backend, struct work_undo *step);

extern const struct work_item_ops pawl__work_memory_items;

#endif
