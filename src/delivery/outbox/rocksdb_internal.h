/* What the files of the outbox on RocksDB share; for nobody else. */
#ifndef PAWL_DELIVERY_OUTBOX_ROCKSDB_INTERNAL_H
#define PAWL_DELIVERY_OUTBOX_ROCKSDB_INTERNAL_H

#include "base/thread/thread.h"
#include "delivery/outbox/rocksdb.h"
#include "delivery/outbox/rows.h"
#include "store/rocksdb/rocksdb.h"

/* Statistics are in two rows, each written by one kind of call in the batch that makes it true: so they are right
 * after every crash, and no call waits for another's fsync. Differences may be "negative", modulo 2^64. */
struct outbox_appended {
    uint64_t last;
    uint64_t entries;
    uint64_t bytes;
    uint64_t running_ns;
    uint64_t hour; /* the newest in family hours, and one; 0: none */
};

struct outbox_moved {
    uint64_t pending; /* out of pending */
    uint64_t pending_bytes;
    uint64_t kept; /* into kept, and so on */
    uint64_t kept_bytes;
    uint64_t failed;
    uint64_t failed_bytes;
    uint64_t trimmed;
};

/* Locks are taken in this order. */
struct outbox_rocksdb {
    struct outbox_store base;
    struct pawl__lock move_lock; /* one change of what is there at a time */
    struct pawl__lock lock;      /* covers the next two */
    struct outbox_appended appended;
    struct outbox_moved moved;
    uint64_t id; /* of the outbox; set once, like all below */
    struct pawl__rocks *db;
    struct pawl__clock *clock;
    int64_t close_timeout_ns;
};

static inline struct outbox_rocksdb *pawl__delivery_outbox_as_rocksdb(struct outbox_store *store)
{
    return (struct outbox_rocksdb *)store; /* base is its first member */
}

struct outbox_moved pawl__delivery_outbox_moved(struct outbox_rocksdb *outbox);

/* Writes the batch with the row of statistics that it makes true. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_write_moved(struct outbox_rocksdb *outbox,
                                                            struct pawl__rocks_batch *batch,
                                                            const struct outbox_moved *moved,
                                                            bool durable,
                                                            pawl_error *reterr);

struct outbox_appended pawl__delivery_outbox_appended(struct outbox_rocksdb *outbox);
void pawl__delivery_outbox_set_appended(struct outbox_rocksdb *outbox,
                                        const struct outbox_appended *appended);

/* Puts a new entry, which must have the next number, and the statistics with it. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_put_new(struct pawl__rocks_batch *batch,
                                                        const struct outbox_entry *entry,
                                                        struct outbox_appended *appended,
                                                        pawl_error *reterr);

/* --- rocksdb_read.c --- */

pawl_status pawl__delivery_outbox_rocksdb_next_subject(struct outbox_store *store,
                                                       pawl_view after,
                                                       struct pawl__buf *subject,
                                                       bool *ret_found,
                                                       pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_next_stream(struct outbox_store *store,
                                                      pawl_view after,
                                                      struct pawl__buf *stream,
                                                      bool *ret_found,
                                                      pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_head(struct outbox_store *store,
                                               pawl_view subject,
                                               uint64_t from,
                                               struct outbox_read *read,
                                               bool *ret_found,
                                               pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_read(struct outbox_store *store,
                                               uint64_t number,
                                               struct outbox_read *read,
                                               bool *ret_found,
                                               pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_first_kept(struct outbox_store *store,
                                                     pawl_view stream,
                                                     uint64_t sequence,
                                                     struct outbox_kept *ret_kept,
                                                     bool *ret_found,
                                                     pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_last_kept(struct outbox_store *store,
                                                    pawl_view stream,
                                                    uint64_t sequence,
                                                    struct outbox_kept *ret_kept,
                                                    bool *ret_found,
                                                    pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_next_failed(struct outbox_store *store,
                                                      uint64_t from,
                                                      struct outbox_failed *ret_failed,
                                                      bool *ret_found,
                                                      pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_accepted_before(struct outbox_store *store,
                                                          int64_t running_ns,
                                                          uint64_t *ret_number,
                                                          pawl_error *reterr);

/* A kept row of the key and value that an iterator stands on. */
struct outbox_kept_row {
    struct outbox_kept kept;
    uint64_t bytes;
};
PAWL_MUST_USE pawl_status pawl__delivery_outbox_kept_row(pawl_view key,
                                                         pawl_view value,
                                                         struct outbox_kept_row *ret_row,
                                                         pawl_error *reterr);

/* Bytes of a pending row. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_pending_bytes(pawl_view key,
                                                              pawl_view value,
                                                              uint64_t *ret_bytes,
                                                              pawl_error *reterr);

/* --- rocksdb_move.c --- */

pawl_status pawl__delivery_outbox_rocksdb_keep(struct outbox_store *store,
                                               pawl_view stream,
                                               const struct outbox_kept *kept,
                                               size_t count,
                                               pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_requeue(struct outbox_store *store,
                                                  pawl_view stream,
                                                  uint64_t sequence,
                                                  uint64_t *ret_count,
                                                  pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_adopt(struct outbox_store *store,
                                                pawl_view stream,
                                                uint64_t session,
                                                int64_t acked_ns,
                                                pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_forget(struct outbox_store *store,
                                                 pawl_view stream,
                                                 uint64_t sequence,
                                                 uint64_t *ret_count,
                                                 pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_fail(struct outbox_store *store,
                                               const struct outbox_failed *failed,
                                               pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_retry(struct outbox_store *store,
                                                uint64_t *ret_count,
                                                pawl_error *reterr);
pawl_status pawl__delivery_outbox_rocksdb_trim(struct outbox_store *store,
                                               uint64_t number,
                                               uint64_t max,
                                               uint64_t *ret_count,
                                               pawl_error *reterr);

#endif
