/* One budget for the memory of all RocksDB stores of the process.
 *
 * The cache of blocks has the whole budget, and memtables count as content of it, up to half of the budget:
 * what many writers need for their memtables is taken from what readers have cached, and given back.
 *
 * The engine flushes memtables when they reach their half, but only those of the store that writes at that
 * moment. Idle stores would keep theirs, and a busy one would flush after every few writes. So at less than
 * that half the largest store is told to flush, whichever store is written to.
 *
 * A store whose disk hangs must not hold up the others. So nothing here calls into a store with the lock
 * held: stores are compared by what their own threads last said, and a flush runs on a thread of its
 * store, for which only the closing of that store waits.
 *
 * Memtables without content cannot be flushed away. What they take, their filters, is limited: beyond
 * that, stores are opened without filters. */
#include <limits.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "store/rocksdb/internal.h"
#include "store/rocksdb/shim.h"

#define MEMORY_BYTES_DEFAULT ((uint64_t)128 << 20)
#define MEMORY_BYTES_MIN ((uint64_t)16 << 20)
#define MEMTABLE_BYTES_MIN ((size_t)1 << 20)
#define MEMTABLE_BYTES_MAX ((size_t)16 << 20)
#define MEMTABLES_OF_BUDGET 8 /* a memtable is so small a part of it */
#define FILTERS_OF_BUDGET 8   /* and the filters of all empty ones together */

/* For as long as the process lives. */
static struct {
    struct pawl__lock lock; /* covers all below */
    uint64_t bytes_max;     /* 0: nobody said */
    rocksdb_cache_t *cache; /* NULL: no store was opened yet */
    struct pawl__rocks_buffers *buffers;
    struct pawl__rocks *stores; /* those that are open, a list */
    uint64_t filter_bytes;      /* of all of them */
} memory = { .lock = { PTHREAD_MUTEX_INITIALIZER } };

static uint64_t bytes_max_locked(void) REQUIRES_LOCK(memory.lock)
{
    return memory.bytes_max == 0 ? MEMORY_BYTES_DEFAULT : memory.bytes_max;
}

void pawl__rocks_set_memory_max(uint64_t bytes)
{
    pawl__lock(&memory.lock);
    memory.bytes_max = MIN(MAX(bytes, MEMORY_BYTES_MIN), (uint64_t)SIZE_MAX / 2);
    if (memory.cache != NULL) {
        rocksdb_cache_set_capacity(memory.cache, memory.bytes_max);
        pawl__rocks_shim_buffers_resize(memory.buffers, memory.bytes_max / 2);
    }
    pawl__unlock(&memory.lock);
}

uint64_t pawl__rocks_memory_used(void)
{
    pawl__lock(&memory.lock);
    uint64_t used = memory.cache == NULL ? 0 : rocksdb_cache_get_usage(memory.cache);
    pawl__unlock(&memory.lock);
    return used;
}

static void say(const char *text)
{
    LOG_DEBUG("RocksDB", LOG_TEXT("text", text));
}

static void make_locked(void) REQUIRES_LOCK(memory.lock)
{
    if (memory.cache == NULL) {
        memory.cache = rocksdb_cache_create_lru(bytes_max_locked());
        memory.buffers = pawl__rocks_shim_buffers_new(bytes_max_locked() / 2, memory.cache);
    }
}

rocksdb_cache_t *pawl__rocks_memory_share(rocksdb_options_t *options, size_t *ret_memtable_bytes)
{
    pawl__rocks_shim_set_logger(options, say);
    pawl__lock(&memory.lock);
    make_locked();
    pawl__rocks_shim_set_buffers(options, memory.buffers);
    size_t memtable = (size_t)(bytes_max_locked() / MEMTABLES_OF_BUDGET);
    pawl__unlock(&memory.lock);
    *ret_memtable_bytes = MIN(MAX(memtable, MEMTABLE_BYTES_MIN), MEMTABLE_BYTES_MAX);
    return memory.cache; /* set once */
}

bool pawl__rocks_memory_reserve_filters(struct pawl__rocks *db, size_t bytes)
{
    pawl__lock(&memory.lock);
    bool fits = memory.filter_bytes + bytes <= bytes_max_locked() / FILTERS_OF_BUDGET;
    if (fits) {
        memory.filter_bytes += bytes;
        db->share.filter_bytes += bytes;
    }
    pawl__unlock(&memory.lock);
    return fits;
}

void pawl__rocks_memory_join(struct pawl__rocks *db)
{
    pawl__lock(&memory.lock);
    db->share.joined = true;
    db->share.next = memory.stores;
    memory.stores = db;
    pawl__unlock(&memory.lock);
}

void pawl__rocks_memory_leave(struct pawl__rocks *db)
{
    pawl__lock(&memory.lock);
    for (struct pawl__rocks **at = &memory.stores; *at != NULL; at = &(*at)->share.next) {
        if (*at == db) {
            *at = db->share.next;
            break;
        }
    }
    db->share.joined = false;
    memory.filter_bytes -= db->share.filter_bytes;
    db->share.filter_bytes = 0;
    pawl__unlock(&memory.lock);
}

static void run_flush(void *context)
{
    struct pawl__rocks *db = context;

    if (pawl__rocks_check_place(db, NULL) == PAWL_OK) { /* an idle store has not looked for long */
        pawl__rocks_begin_flush(db);
    }
    atomic_store(&db->share.unflushed_bytes, pawl__rocks_unflushed_bytes(db));
    atomic_store(&db->share.flushing,
                 false); /* the last thing: it may be joined under the lock now */
}

static void flush_aside_locked(struct pawl__rocks *db) REQUIRES_LOCK(memory.lock)
{
    struct rocks_share *share = &db->share;

    if (!share->joined || atomic_load(&share->flushing)) {
        return;
    }
    pawl__thread_join(&share->flusher); /* the one before, which has ended */
    atomic_store(&share->flushing, true);
    if (pawl__thread_start(&share->flusher, "rocks-relief", run_flush, db, NULL) != PAWL_OK) {
        atomic_store(&share->flushing, false); /* tried again by the next one that writes */
    }
}

void pawl__rocks_memory_flush(struct pawl__rocks *db)
{
    pawl__lock(&memory.lock);
    flush_aside_locked(db);
    pawl__unlock(&memory.lock);
}

/* Of those that have more than a flush is worth and are not at it. */
static struct pawl__rocks *largest_locked(void) REQUIRES_LOCK(memory.lock)
{
    struct pawl__rocks *largest = NULL;
    uint64_t most = MEMTABLE_BYTES_MIN;

    for (struct pawl__rocks *db = memory.stores; db != NULL; db = db->share.next) {
        uint64_t bytes = atomic_load(&db->share.unflushed_bytes);
        if (!db->read_only && !atomic_load(&db->poisoned) && !atomic_load(&db->share.flushing)
            && bytes > most) {
            most = bytes;
            largest = db;
        }
    }
    return largest;
}

void pawl__rocks_memory_relieve(void)
{
    pawl__lock(&memory.lock);
    size_t used = memory.buffers == NULL ? 0 : pawl__rocks_shim_buffers_used(memory.buffers);
    if (used > bytes_max_locked() * 3 / 8) {
        struct pawl__rocks *largest = largest_locked();
        if (largest != NULL) {
            flush_aside_locked(largest);
        }
    }
    pawl__unlock(&memory.lock);
}
