/* An outbox in memory: the reference that the contract suite and the traces of the loop run on. */
#ifndef PAWL_DELIVERY_OUTBOX_MEMORY_H
#define PAWL_DELIVERY_OUTBOX_MEMORY_H

#include "delivery/outbox/store.h"

/* What it holds outlives its close: opened again, it is all there. Ended with _done. */
struct outbox_memory {
    struct outbox_store base;
    struct outbox_memory_entry *entries; /* by number - 1, also forgotten ones */
    size_t count;
    size_t room;
    int64_t running_ns;
};

struct outbox_store *pawl__delivery_outbox_memory_open(struct outbox_memory *memory);
void pawl__delivery_outbox_memory_done(struct outbox_memory *memory);

#endif
