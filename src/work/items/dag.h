/* Who comes after whom, within one submit. An item can only come after items that are there or that
 * come with it, and its edges never change: so a cycle can only be among those of one call. */
#ifndef PAWL_WORK_ITEMS_DAG_H
#define PAWL_WORK_ITEMS_DAG_H

#include <stddef.h>

struct work_arrow {
    size_t from; /* comes first */
    size_t to;   /* comes after it */
};

/* A node on a cycle; `node_count` when there is none. `arrows` are sorted by `from` as a side
 * effect; `scratch` has room for 3 * node_count + 1 numbers. */
size_t pawl__work_dag_cycle(size_t node_count,
                            struct work_arrow *arrows,
                            size_t arrow_count,
                            size_t *scratch);

#endif
