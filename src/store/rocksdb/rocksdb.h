/* RocksDB: ordered keys in column families, written in atomic batches that are on disk when the
 * call returns.
 *
 *   Owner       One process owns a directory, and in it one handle. Another one gets BUSY.
 *   Threads     A handle serves any number of threads at once; RocksDB joins their writes into one
 *               fsync. A batch, an iterator and a value belong to one thread at a time. All of them
 *               end before the handle is closed.
 *   Conditions  A write is unconditional. "Insert when absent" is a get and a write by the one
 *               thread that writes that family; with several writers the caller brings a lock.
 *   Full disk   Every write first checks the free space and stops, with PAWL_NO_SPACE and nothing
 *               written, at `free_space_min` above what flushes and compactions of the data already
 *               taken may need: the engine does not survive ENOSPC, it may abort the process. It
 *               goes on by itself when space is back. A store that is only read needs no space.
 *   Failure     After a write that failed inside the engine nobody knows what is on disk. From then
 *               on every write returns PAWL_IO until the store is closed and opened again; reads go
 *               on.
 *   Recovery    A torn end of the log is a crash and is cut. Damage before it (a flipped bit) is
 *               PAWL_CORRUPT at open: the engine's default would drop all that follows, silently.
 *
 * Failpoints: rocksdb.{write,flush,drop,checkpoint}.{before,after}. */
#ifndef PAWL_STORE_ROCKSDB_ROCKSDB_H
#define PAWL_STORE_ROCKSDB_ROCKSDB_H

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

struct pawl__rocks;
struct pawl__rocks_batch;
struct pawl__rocks_snapshot;

#define PAWL__ROCKS_KEY_BYTES_MAX ((size_t)64 << 10)
#define PAWL__ROCKS_BATCH_BYTES_MAX ((size_t)256 << 20) /* keys, values and a few bytes each */
#define PAWL__ROCKS_FAMILIES_MAX 64

struct pawl__rocks_options {
    /* The column families, in the caller's order; calls name one by its index here. Missing ones
     * are made, one in the store that is not listed is UNSUPPORTED. "default" may be listed. */
    const char *const *families;
    size_t family_count;
    uint64_t sure_families; /* bit by index: keys that are looked up are there, but for a few. They
                             * need a tenth of the memory for filters, and an absent one a read */

    uint64_t
        later_families; /* bit by index: an older version made stores without it. It is empty for
                              * one that only reads, and made by one that writes */

    size_t memtable_bytes;    /* a family; 0: 16 MiB, less with little memory */
    int background_jobs;      /* flushes and compactions; 0: 2 */
    size_t blob_bytes_min;    /* values from this size on live in blob files; 0: none do */
    uint64_t blob_file_bytes; /* of one blob file; 0: 256 MiB */
    uint64_t free_space_min;  /* no default: that is the setting's */
    bool read_only;      /* it must be there, and a full disk is no hindrance; writes are DENIED */
    bool no_compression; /* snappy otherwise */
    bool unsafe_no_sync; /* a power cut loses what was acknowledged: control of its own test */
    struct pawl__clock *clock; /* NULL: the real one */
};

/* Bytes of memory for all stores of the process together, open ones too: blocks read, with indexes and
 * filters, and memtables. 128 MiB unless somebody says so, 16 MiB at the least. What flushes, compactions
 * and open files need for the moment comes on top. */
void pawl__rocks_set_memory_max(uint64_t bytes);
uint64_t pawl__rocks_memory_used(void);

/* Whether a store is there. Makes nothing and changes nothing. DENIED, INVALID (something that is no
 * directory), CORRUPT: its data files are there, but what names them is not. */
PAWL_MUST_USE pawl_status pawl__rocks_inspect(const char *dir,
                                              bool *ret_exists,
                                              pawl_error *reterr);

/* Creates the directory when it is missing, but NOT_FOUND for one that only reads. DENIED when it cannot be written, NO_SPACE when there
 * is no room to recover, BUSY when another handle has it, CORRUPT when it is damaged; nothing is
 * changed in any of these cases. */
PAWL_MUST_USE pawl_status pawl__rocks_open(const char *dir,
                                           const struct pawl__rocks_options *options,
                                           struct pawl__rocks **ret_db,
                                           pawl_error *reterr);
DEFINE_AUTO(struct pawl__rocks *, pawl__rocks_close)

/* A batch is filled, then written. An entry that is over a limit breaks the batch, and the write
 * says so. */
PAWL_MUST_USE pawl_status pawl__rocks_batch_new(struct pawl__rocks *db,
                                                struct pawl__rocks_batch **ret_batch,
                                                pawl_error *reterr);
DEFINE_AUTO(struct pawl__rocks_batch *, pawl__rocks_batch_free)
void pawl__rocks_batch_clear(struct pawl__rocks_batch *batch);

void pawl__rocks_put(struct pawl__rocks_batch *batch,
                     size_t family,
                     pawl_view key,
                     pawl_view value);
void pawl__rocks_delete(struct pawl__rocks_batch *batch, size_t family, pawl_view key);

/* Everything in [from, until). Two and a half times as fast as single deletes, and a later scan
 * does not have to step over each of them. */
void pawl__rocks_delete_range(struct pawl__rocks_batch *batch,
                              size_t family,
                              pawl_view from,
                              pawl_view until);

/* All of the batch or nothing, and on disk when it returns PAWL_OK; the batch is then empty. An
 * empty one is PAWL_OK at once. A batch that only deletes may use half of the free-space reserve:
 * that is how room is made. */
PAWL_MUST_USE pawl_status pawl__rocks_write(struct pawl__rocks *db,
                                            struct pawl__rocks_batch *batch,
                                            pawl_error *reterr);

/* The same without waiting for the disk. It survives kill -9. A power cut may lose it, with every write
 * after it: the next pawl__rocks_write makes it durable too. */
PAWL_MUST_USE pawl_status pawl__rocks_write_unsynced(struct pawl__rocks *db,
                                                     struct pawl__rocks_batch *batch,
                                                     pawl_error *reterr);

/* What the store was at one moment. Held long, it keeps compaction from dropping old entries. */
PAWL_MUST_USE pawl_status pawl__rocks_snapshot_open(struct pawl__rocks *db,
                                                    struct pawl__rocks_snapshot **ret_snapshot,
                                                    pawl_error *reterr);
DEFINE_AUTO(struct pawl__rocks_snapshot *, pawl__rocks_snapshot_close)

/* A value as it lies in the engine's memory, pinned there until _done. */
struct pawl__rocks_value {
    bool found;
    pawl_view view;
    void *pin;
};

void pawl__rocks_value_done(struct pawl__rocks_value *value);

/* `snapshot` NULL: the latest. A key that is not there is NOT_FOUND. */
PAWL_MUST_USE pawl_status pawl__rocks_get(struct pawl__rocks *db,
                                          const struct pawl__rocks_snapshot *snapshot,
                                          size_t family,
                                          pawl_view key,
                                          struct pawl__rocks_value *ret_value,
                                          pawl_error *reterr);

/* Many keys of one family, quicker than one by one. A key that is not there has found = false; any
 * other failure fails the call and leaves nothing pinned. */
PAWL_MUST_USE pawl_status pawl__rocks_get_many(struct pawl__rocks *db,
                                               const struct pawl__rocks_snapshot *snapshot,
                                               size_t family,
                                               const pawl_view *keys,
                                               size_t count,
                                               struct pawl__rocks_value *ret_values,
                                               pawl_error *reterr);

/* Keys in [from, until); an empty `from` is the first key, an empty `until` has no end. */
struct pawl__rocks_range {
    pawl_view from;
    pawl_view until;
};

/* The keys that begin with `prefix`. `space` has room for prefix.len bytes and outlives the range.
 */
struct pawl__rocks_range pawl__rocks_prefix(pawl_view prefix, char *space);

/* Stands on an entry, or behind the last one, or before the first.
 *
 *     status = pawl__rocks_iter_first(iter, reterr);
 *     for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, reterr)) {
 *         use(iter->key, iter->value);      both until the next step
 *     }
 *     if (status != PAWL_OK) { return status; }      it stopped on an error, not at the end
 *
 * It sees the store as of its opening (or of the snapshot). */
struct pawl__rocks_iter {
    bool valid;
    pawl_view key;
    pawl_view value;
};

PAWL_MUST_USE pawl_status pawl__rocks_iter_open(struct pawl__rocks *db,
                                                const struct pawl__rocks_snapshot *snapshot,
                                                size_t family,
                                                struct pawl__rocks_range range,
                                                struct pawl__rocks_iter **ret_iter,
                                                pawl_error *reterr);
DEFINE_AUTO(struct pawl__rocks_iter *, pawl__rocks_iter_close)

PAWL_MUST_USE pawl_status pawl__rocks_iter_first(struct pawl__rocks_iter *iter, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__rocks_iter_last(struct pawl__rocks_iter *iter, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__rocks_iter_next(struct pawl__rocks_iter *iter, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__rocks_iter_prev(struct pawl__rocks_iter *iter, pawl_error *reterr);

/* The first entry at or behind `key`; the last one at or before it. After a great many single
 * deletes seek the first live key instead of iter_first, which steps over every deleted one. */
PAWL_MUST_USE pawl_status pawl__rocks_iter_seek(struct pawl__rocks_iter *iter,
                                                pawl_view key,
                                                pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__rocks_iter_seek_back(struct pawl__rocks_iter *iter,
                                                     pawl_view key,
                                                     pawl_error *reterr);

/* IO when the directory is no longer the one that was opened. The engine writes and removes files by their
 * names, which are another's now: it is stopped, and the store takes no more writes. Every write, flush,
 * checkpoint and close asks this itself. */
PAWL_MUST_USE pawl_status pawl__rocks_check_place(struct pawl__rocks *db, pawl_error *reterr);

/* Memtables of all families into files. Not needed for durability: the log has it all. */
PAWL_MUST_USE pawl_status pawl__rocks_flush(struct pawl__rocks *db, pawl_error *reterr);

/* The same before a close, so that the next open finds no log to read. At the deadline it is given up and
 * nothing but close may follow; PAWL_OK then too, as after a flush that failed: the log has it all. TIMEOUT:
 * the disk does not answer. The store is still in use, for ever, and must not be closed. */
PAWL_MUST_USE pawl_status pawl__rocks_flush_last(struct pawl__rocks *db,
                                                 int64_t deadline_ns,
                                                 pawl_error *reterr);

/* Rewrites a range now, which gives back the space of what was deleted in it. */
PAWL_MUST_USE pawl_status pawl__rocks_compact(struct pawl__rocks *db,
                                              size_t family,
                                              struct pawl__rocks_range range,
                                              pawl_error *reterr);

/* Removes the files that hold nothing but keys from `first` to `last`, both included, without reading them; keys in
 * other files stay. At once and for good, also for an open snapshot (iterators keep their files). Do it before
 * delete_range of the same keys: a dropped file takes its range deletions along, and would bring back what they
 * hide. */
PAWL_MUST_USE pawl_status pawl__rocks_drop_files(
    struct pawl__rocks *db, size_t family, pawl_view first, pawl_view last, pawl_error *reterr);

/* A numeric property of a family, "rocksdb.estimate-num-keys"; NOT_FOUND when there is none of that
 * name. For metrics. */
PAWL_MUST_USE pawl_status pawl__rocks_property(struct pawl__rocks *db,
                                               size_t family,
                                               const char *name,
                                               uint64_t *ret_value,
                                               pawl_error *reterr);

/* A copy that opens as a store of its own, in a new directory `dir` (CONFLICT when it is there).
 * On the same file system it costs hard links. On disk when it returns. */
PAWL_MUST_USE pawl_status pawl__rocks_checkpoint(struct pawl__rocks *db,
                                                 const char *dir,
                                                 pawl_error *reterr);

#endif
