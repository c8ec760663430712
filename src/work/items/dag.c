#include "work/items/dag.h"

#include <stdlib.h>
#include <string.h>

static int by_from(const void *a, const void *b)
{
    const struct work_arrow *one = a;
    const struct work_arrow *other = b;

    return (one->from > other->from) - (one->from < other->from);
}

/* Every node that is left waits for another one that is left: following them back reaches a cycle. */
static size_t on_the_cycle(size_t left,
                           size_t node_count,
                           const struct work_arrow *arrows,
                           size_t arrow_count,
                           const size_t *open,
                           size_t *before)
{
    for (size_t i = 0; i < arrow_count; i++) {
        if (open[arrows[i].from] > 0) {
            before[arrows[i].to] = arrows[i].from;
        }
    }
    for (size_t step = 0; step < node_count; step++) {
        left = before[left];
    }
    return left;
}

size_t pawl__work_dag_cycle(size_t node_count,
                            struct work_arrow *arrows,
                            size_t arrow_count,
                            size_t *scratch)
{
    size_t *open = scratch;                    /* how many a node still waits for */
    size_t *ready = scratch + node_count;      /* nodes that wait for none */
    size_t *starts = scratch + 2 * node_count; /* where a node's arrows begin */
    size_t ready_count = 0;
    size_t done = 0;

    qsort(arrows, arrow_count, sizeof(*arrows), by_from);
    memset(scratch, 0, (3 * node_count + 1) * sizeof(*scratch));
    for (size_t i = 0; i < arrow_count; i++) {
        open[arrows[i].to]++;
        starts[arrows[i].from + 1]++;
    }
    for (size_t i = 0; i < node_count; i++) {
        starts[i + 1] += starts[i];
        if (open[i] == 0) {
            ready[ready_count++] = i;
        }
    }
    /* Kahn: removes nodes that wait for none, which frees others. */
    while (done < ready_count) {
        size_t node = ready[done++];
        for (size_t i = starts[node]; i < starts[node + 1]; i++) {
            if (--open[arrows[i].to] == 0) {
                ready[ready_count++] = arrows[i].to;
            }
        }
    }
    for (size_t i = 0; i < node_count; i++) {
        if (open[i] > 0) {
            return on_the_cycle(i, node_count, arrows, arrow_count, open, ready);
        }
    }
    return node_count;
}
