/* What the files of the RocksDB wrapper share; for nobody else. */
#ifndef PAWL_STORE_ROCKSDB_INTERNAL_H
#define PAWL_STORE_ROCKSDB_INTERNAL_H

#include <rocksdb/c.h>

#include <stdatomic.h>

#include "base/thread/thread.h"
#include "store/lock.h"
#include "store/rocksdb/rocksdb.h"

/* Free space as last seen. Measuring costs a system call and the engine's mutex for each family, so
 * it is taken again only after LOOK_BYTES were written or LOOK_NS have passed, or when the last one
 * said no. */
struct rocks_space {
    struct pawl__lock lock; /* covers all below */
    bool known;
    int64_t measured_ns;
    uint64_t free_bytes;
    uint64_t owed_bytes; /* what flushes and compactions of data already taken may still write */
    uint64_t spent_bytes;
    int64_t paid_ns; /* when a flush was last begun because of it; 0: never */
};

/* A store as one of all that are open; of memory.c, under its lock but for the atomics. */
struct rocks_share {
    struct pawl__rocks *next;
    bool joined;
    size_t filter_bytes;
    atomic_uint_least64_t unflushed_bytes; /* as its own threads last saw it */
    atomic_bool flushing;                  /* `flusher` is at it */
    struct pawl__thread
        flusher; /* joined by the thread that made the store leave, without the lock */
};

struct pawl__rocks {
    struct rocks_share share;
    char *dir;
    struct pawl__store_lock *lock;
    struct pawl__clock *clock;
    uint64_t free_space_min;
    bool read_only;
    bool syncs; /* each write, but for those that say otherwise */
    size_t family_count;

    rocksdb_t *native;
    rocksdb_options_t *options;
    rocksdb_options_t *sure_options; /* of the sure families */
    /* family_count of them, in the caller's order */
    rocksdb_column_family_handle_t *families[PAWL__ROCKS_FAMILIES_MAX];
    uint64_t absent_families; /* bit by index: "default" stands in, which is always empty */
    rocksdb_column_family_handle_t *default_family; /* NULL when the caller listed it */
    rocksdb_writeoptions_t *write_options;
    rocksdb_writeoptions_t *unsynced_options;
    rocksdb_readoptions_t *read_options; /* of the latest state; never changed after open */

    atomic_uint_least64_t synced; /* sequence number up to which the log surely is; see tail.c */
    struct rocks_space space;
    atomic_bool poisoned; /* set once, after `poison` is filled under space.lock */
    pawl_error poison;
};

struct pawl__rocks_snapshot {
    struct pawl__rocks *db;
    const rocksdb_snapshot_t *native;
    rocksdb_readoptions_t *read_options;
};

/* Turns the engine's text into our error and frees it. RocksDB's C interface gives no codes. */
pawl_status pawl__rocks_fail(char *text, pawl_error *reterr);

/* The note that each batch carries into the log: up to where it is synced. */
enum { ROCKS_NOTE_LEN = 19 };
void pawl__rocks_note(uint64_t synced, char ret_note[ROCKS_NOTE_LEN]);

/* Cuts the end of the log when it is a write that a power cut left without its beginning (see
 * tail.c), and nothing else is wrong with it. The store must not be open. */
PAWL_MUST_USE pawl_status pawl__rocks_mend_log(const char *dir,
                                               bool *ret_mended,
                                               pawl_error *reterr);

/* NO_SPACE when a batch of `bytes` could run into the reserve. */
PAWL_MUST_USE pawl_status pawl__rocks_reserve(struct pawl__rocks *db,
                                              uint64_t bytes,
                                              bool only_deletes,
                                              pawl_error *reterr);

/* --- memory.c: what all stores of the process share --- */

/* Gives the options their logger and their part of the budget. Returns the cache, and how large a memtable
 * should be. */
rocksdb_cache_t *pawl__rocks_memory_share(rocksdb_options_t *options, size_t *ret_memtable_bytes);

/* Whether there is room for the filters of its memtables, `bytes` for as long as it is open: every
 * memtable has its filter from the beginning, also one that stays empty. */
bool pawl__rocks_memory_reserve_filters(struct pawl__rocks *db, size_t bytes);

/* From open to close: a store that may be asked to flush. After leave, which may be called again, nobody
 * begins a flush of it; share.flusher may still run one. */
void pawl__rocks_memory_join(struct pawl__rocks *db);
void pawl__rocks_memory_leave(struct pawl__rocks *db);

/* Has the largest store flush when memtables take most of their part. Now and then, on the thread that writes;
 * without any lock of a store. Waits for no store: the flush has a thread of its own. */
void pawl__rocks_memory_relieve(void);
void pawl__rocks_memory_flush(struct pawl__rocks *db); /* this one, in the same way */

/* --- write.c --- */

/* DENIED for a store that is only read, IO for one that failed before or is not in its place any more. */
PAWL_MUST_USE pawl_status pawl__rocks_refuse_write(struct pawl__rocks *db, pawl_error *reterr);

/* The engine could not write: IO, with its text, which is freed; and so is every write after this. */
pawl_status pawl__rocks_poison(struct pawl__rocks *db, char *text, pawl_error *reterr);

/* --- space.c, flush.c --- */

/* Of all families together. */
uint64_t pawl__rocks_property_sum(struct pawl__rocks *db, const char *name);

/* Of memtables with something in them. Asks the engine, which may wait for a disk. */
uint64_t pawl__rocks_unflushed_bytes(struct pawl__rocks *db);

/* Does not wait for the files, but for a writer that is in the middle of its fsync, and while a flush more
 * would make writers wait: for ever when the disk hangs. Not under a lock. */
void pawl__rocks_begin_flush(struct pawl__rocks *db);

static inline const char *rocks_bytes(pawl_view view)
{
    return view.len == 0 ? "" : view.data;
}

#endif
