/* WAL and sink know each other. When a pipeline opens, this decides from what each says of itself whether they
 * belong together, and what has to be done when they do not. Nothing is admitted before it is done.
 *
 *   pairing   when                                              what follows
 *   FIRST     neither knows anything                            new ids, epoch 1, LSN 1
 *   RESUME    they agree                                        nothing
 *   REPLAY    the sink is older than what it had confirmed,     entries above its applied LSN are pending again
 *             and the WAL still holds all of the difference
 *   REBUILD   the sink is lost, or older than the WAL reaches   new epoch, index made anew from WAL and sink, entries
 *                                                               that the sink does not have are pending again; the
 *                                                               source from the sink's place on
 *   ADOPT     the WAL is lost, older, or another one            the same, and a new wal_id
 *
 * Where both hold something, LSNs alone do not tell what the sink has: it may have got it from another WAL, or under
 * an LSN of an earlier life. Then each entry is looked up, and those that are missing become exceptions. */
#ifndef PAWL_DELIVERY_CORE_RECONCILE_H
#define PAWL_DELIVERY_CORE_RECONCILE_H

#include "delivery/core/cursor.h"
#include "delivery/core/wal.h"

enum delivery_pairing {
    DELIVERY_FIRST,
    DELIVERY_RESUME,
    DELIVERY_REPLAY,
    DELIVERY_REBUILD,
    DELIVERY_ADOPT,
};
const char *pawl__delivery_pairing_name(enum delivery_pairing pairing);

/* What both sides say. */
struct delivery_sides {
    bool wal_found;
    struct delivery_wal_meta meta;
    struct delivery_wal_stats stats;
    bool sink_found;
    struct delivery_cursor cursor; /* without a row: sink_id alone */
    bool exception_missing;        /* the sink waits for an entry that the WAL does not have */
};

struct delivery_plan {
    enum delivery_pairing pairing;
    const char *why; /* for the log; static */
    bool new_wal_id;
    bool look_up;        /* each entry of the WAL in the sink; `applied` is then above them all */
    bool make_index;     /* anew, under `epoch` */
    bool restart_source; /* at the place of the sink's cursor row */
    uint64_t epoch;
    uint64_t fence;        /* ours from now on */
    delivery_lsn applied;  /* of the cursor row from now on */
    delivery_lsn next_lsn; /* the first that may be given out */
};

struct delivery_plan pawl__delivery_reconcile(const struct delivery_sides *sides);

#endif
