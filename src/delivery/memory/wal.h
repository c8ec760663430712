/* A consumer WAL in memory: the reference of wal.h. What it holds outlives close, as a disk would. */
#ifndef PAWL_DELIVERY_MEMORY_WAL_H
#define PAWL_DELIVERY_MEMORY_WAL_H

#include "delivery/core/wal.h"
#include "delivery/memory/stored.h"

struct delivery_memory_wal_entry {
    struct delivery_stored *stored;
    struct delivery_fate fate;
    struct delivery_stored_decision *decision; /* NULL: nobody has decided */
};

struct delivery_memory_wal {
    struct delivery_wal base;
    bool has_meta;
    struct delivery_wal_meta meta;
    struct delivery_memory_wal_entry *entries; /* ascending by LSN */
    size_t count;
    size_t room;
    struct delivery_table index; /* a: epoch, b: LSN */
    delivery_lsn last;
    delivery_lsn cleaned;
};

struct delivery_memory_wal pawl__delivery_memory_wal(void);
void pawl__delivery_memory_wal_done(struct delivery_memory_wal *wal);

/* Replaces `wal` by a copy of `from`. NOMEM leaves it alone. */
PAWL_MUST_USE pawl_status pawl__delivery_memory_wal_copy(struct delivery_memory_wal *wal,
                                                         const struct delivery_memory_wal *from,
                                                         pawl_error *reterr);

#endif
