/* What the files of the WAL on RocksDB share; for nobody else. */
#ifndef PAWL_DELIVERY_ROCKSDB_INTERNAL_H
#define PAWL_DELIVERY_ROCKSDB_INTERNAL_H

#include "base/thread/thread.h"
#include "delivery/rocksdb/format.h"
#include "delivery/rocksdb/wal.h"
#include "store/rocksdb/rocksdb.h"

/* Locks are taken in this order. None is held while append waits for the disk. */
struct rocksdb_wal {
    struct delivery_wal base;
    struct pawl__lock
        fates_lock; /* one mark or clean_up at a time: both move rows of family fates */
    struct pawl__lock files_lock; /* dropping files against opening iterators on a snapshot */
    struct pawl__lock lock;       /* covers counters, epoch and moves */

    struct wal_counters counters;
    uint64_t epoch; /* of the meta row */
    uint64_t moves; /* odd while a mark is being written; see pawl__delivery_rocksdb_stats */

    struct pawl__rocks *db; /* set once, like all below */
    struct pawl__clock *clock;
    int64_t close_timeout_ns;
};

static inline struct rocksdb_wal *as_rocksdb(struct delivery_wal *wal)
{
    return (struct rocksdb_wal *)wal; /* base is its first member */
}

struct wal_counters pawl__delivery_rocksdb_counters(struct rocksdb_wal *wal);

/* Puts the row of a part of the counters. */
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_put_counter(struct pawl__rocks_batch *batch,
                                                             enum wal_counter counter,
                                                             const struct wal_counters *counters,
                                                             pawl_error *reterr);

/* --- fates.c --- */

/* What is known of an entry by now. *ret_found false: it is not there. */
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_fate(struct rocksdb_wal *wal,
                                                      delivery_lsn lsn,
                                                      struct delivery_fate *ret_fate,
                                                      bool *ret_found,
                                                      pawl_error *reterr);

/* Puts the mark into the batch and writes it, with whatever else is in it. */
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_mark_with(struct rocksdb_wal *wal,
                                                           struct pawl__rocks_batch *batch,
                                                           delivery_lsn lsn,
                                                           const struct delivery_fate *fate,
                                                           bool sync,
                                                           pawl_error *reterr)
    REQUIRES_LOCK(wal->fates_lock);

/* --- index.c --- */

enum { WAL_LOOKUP_STEP = 128 };

/* One row per key. ret_found says which are there. Up to WAL_LOOKUP_STEP keys. */
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_index_rows(struct rocksdb_wal *wal,
                                                            const struct delivery_hash *keys,
                                                            size_t count,
                                                            struct wal_index_row *ret_rows,
                                                            bool *ret_found,
                                                            pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_put_index_row(struct pawl__rocks_batch *batch,
                                                               const struct delivery_hash *key,
                                                               const struct wal_index_row *row,
                                                               pawl_error *reterr);

/* The calls of wal.h. */
pawl_status pawl__delivery_rocksdb_lookup(struct delivery_wal *base,
                                          const struct delivery_key *keys,
                                          size_t count,
                                          struct delivery_hit *ret_hits,
                                          pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_put_index(struct delivery_wal *base,
                                             const struct delivery_key *keys,
                                             size_t count,
                                             uint64_t epoch,
                                             pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_reindex(struct delivery_wal *base,
                                           uint64_t epoch,
                                           pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_read(struct delivery_wal *base,
                                        const struct delivery_range *range,
                                        struct delivery_page *page,
                                        pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_mark(struct delivery_wal *base,
                                        const delivery_lsn *lsns,
                                        const struct delivery_fate *fates,
                                        size_t count,
                                        pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_decide(struct delivery_wal *base,
                                          const struct delivery_decision *decisions,
                                          size_t count,
                                          pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_decided(struct delivery_wal *base,
                                           delivery_lsn after,
                                           delivery_lsn *ret_lsns,
                                           size_t room,
                                           size_t *ret_count,
                                           pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_read_decision(struct delivery_wal *base,
                                                 delivery_lsn lsn,
                                                 struct pawl__arena *arena,
                                                 struct delivery_decision *ret_decision,
                                                 bool *ret_found,
                                                 pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_clean_up(struct delivery_wal *base,
                                            delivery_lsn to,
                                            pawl_error *reterr);
pawl_status pawl__delivery_rocksdb_stats(struct delivery_wal *base,
                                         struct delivery_wal_stats *ret_stats,
                                         pawl_error *reterr);
void pawl__delivery_rocksdb_held_bytes(struct delivery_wal *base,
                                       uint64_t ret_bytes[DELIVERY_STATE_COUNT]);

#endif
