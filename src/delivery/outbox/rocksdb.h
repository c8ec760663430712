/* The outbox in a RocksDB directory of its own. What is stored: rows.h. */
#ifndef PAWL_DELIVERY_OUTBOX_ROCKSDB_H
#define PAWL_DELIVERY_OUTBOX_ROCKSDB_H

#include "delivery/outbox/store.h"
#include "delivery/rocksdb/wal.h"

/* Creates it when it is missing. BUSY: another process has it. INVALID: a directory with other things in it.
 * UNSUPPORTED: a newer format, or a store of something else. CORRUPT, DENIED, NO_SPACE, NOT_FOUND (read_only).
 * `options` NULL: all zeroes. */
PAWL_MUST_USE pawl_status
pawl__delivery_outbox_rocksdb_open(const char *dir,
                                   const struct delivery_rocksdb_options *options,
                                   struct outbox_store **ret_store,
                                   pawl_error *reterr);

#endif
