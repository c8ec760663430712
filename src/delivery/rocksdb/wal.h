/* The consumer WAL in a RocksDB directory of its own. What is stored: format.h.
 *
 * append and write_meta are on disk when they return. mark, put_index, reindex and most of clean_up are written
 * without waiting for the disk: kill -9 loses none of it, a power cut may, and the next durable call settles it.
 *
 * The disk is full: NO_SPACE with nothing written, and the WAL can be used again once there is room. Any other
 * failed write: IO from then on, until it is closed and opened again. */
#ifndef PAWL_DELIVERY_ROCKSDB_WAL_H
#define PAWL_DELIVERY_ROCKSDB_WAL_H

#include "base/os/clock.h"
#include "delivery/core/wal.h"

#define DELIVERY_WAL_CLOSE_NS_DEFAULT (30 * NS_PER_S)

struct delivery_rocksdb_options {
    size_t memtable_bytes;    /* 0: as store/rocksdb decides */
    int background_jobs;      /* 0: 2 */
    size_t blob_bytes_min;    /* payloads from this size on live in blob files; 0: none do */
    uint64_t blob_file_bytes; /* of one blob file; 0: 256 MiB */
    bool no_compression;
    bool unsafe_no_sync;       /* a power cut loses what was acknowledged */
    bool read_only;            /* it must be there */
    uint64_t free_space_min;   /* see store/rocksdb */
    int64_t close_timeout_ns;  /* of the flush before the close; 0: DELIVERY_WAL_CLOSE_NS_DEFAULT */
    struct pawl__clock *clock; /* NULL: the real one */
};

/* Creates it when it is missing. BUSY: another process has it. INVALID: a directory with other things in it.
 * UNSUPPORTED: a newer format, or a store of something else. CORRUPT, DENIED, NO_SPACE, NOT_FOUND (read_only).
 * `options` NULL: all zeroes. */
PAWL_MUST_USE pawl_status
pawl__delivery_rocksdb_wal_open(const char *dir,
                                const struct delivery_rocksdb_options *options,
                                struct delivery_wal **ret_wal,
                                pawl_error *reterr);

/* Reads everything: every entry has its one fate row and its place in the index, and the statistics are what is
 * there. CORRUPT names the first LSN, or the sum, that does not fit. For people, and for a WAL that nobody changes
 * meanwhile. */
PAWL_MUST_USE pawl_status pawl__delivery_rocksdb_wal_verify(struct delivery_wal *wal,
                                                            pawl_error *reterr);

#endif
