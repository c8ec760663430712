/* Cycles among the items of one submit. An item only comes after items that are stored or submitted with it, and
 * edges never change: so a cycle is always within one call. */
#ifndef PAWL_WORK_ITEMS_DAG_H
#define PAWL_WORK_ITEMS_DAG_H

#include <stddef.h>

struct work_arrow {
    size_t from; /* comes first */
    size_t to;   /* comes after it */
};

/* A node on a cycle; `node_count`: no cycle. `arrows` are sorted by `from` as a side
 * effect; `scratch` has room for 3 * node_count + 1 numbers. */
size_t pawl__work_dag_cycle(size_t node_count,
                            struct work_arrow *arrows,
                            size_t arrow_count,
                            size_t *scratch);

#endif
