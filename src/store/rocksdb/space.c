/* Whether a write fits: free space on the disk against what flushes and compactions may still need. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/rocksdb/internal.h"

static const uint64_t measure_every_bytes = UINT64_C(1) << 20;
static const int64_t measure_every_ns = 100 * NS_PER_MS;

#define PAY_BYTES_MIN (UINT64_C(1) << 20) /* of memtables that are worth a flush */
#define PAY_NS_MIN NS_PER_S               /* between two of them */

uint64_t pawl__rocks_property_sum(struct pawl__rocks *db, const char *name)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < db->family_count; i++) {
        uint64_t value = 0;

        if (rocksdb_property_int_cf(db->native, db->families[i], name, &value) == 0) {
            sum += value;
        }
    }
    return sum;
}

/* Bytes in levels 0 and 1, which one compaction may rewrite whole before it removes the old files.
 * The engine tells them only as text, in rounded MB: "level files size" under two lines of title. */
static uint64_t upper_levels_bytes(struct pawl__rocks *db, size_t family)
{
    char *text = rocksdb_property_value_cf(db->native, db->families[family], "rocksdb.levelstats");
    pawl_view rest = pawl_view_of(text);
    pawl_view line;
    uint64_t megabytes = 0;

    for (int i = 0; i < 4 && pawl__view_split(&rest, '\n', &line); i++) {
        if (i >= 2) {
            char *at = NULL;

            (void)strtoull(line.data, &at, 10);
            (void)strtoull(at, &at, 10);
            megabytes += strtoull(at, NULL, 10) + 1;
        }
    }
    rocksdb_free(text);
    return megabytes << 20;
}

/* What may still be written for what was already taken: memtables become files, and those files are
 * compacted together with the upper levels. Both copies are there until the compaction is done. */
static uint64_t owed_bytes(struct pawl__rocks *db)
{
    uint64_t upper = 0;

    for (size_t i = 0; i < db->family_count; i++) {
        upper += upper_levels_bytes(db, i);
    }
    return 2 * pawl__rocks_property_sum(db, "rocksdb.cur-size-all-mem-tables")
           + MAX(upper, pawl__rocks_property_sum(db, "rocksdb.estimate-pending-compaction-bytes"));
}

static pawl_status measure_locked(struct pawl__rocks *db, int64_t now_ns, pawl_error *reterr)
    REQUIRES_LOCK(db->space.lock)
{
    struct rocks_space *space = &db->space;
    pawl_status status = pawl__fs_free_bytes(db->dir, &space->free_bytes, reterr);

    space->known = status == PAWL_OK;
    space->measured_ns = now_ns;
    space->spent_bytes = 0;
    space->owed_bytes = owed_bytes(db);
    atomic_store(&db->share.unflushed_bytes, pawl__rocks_unflushed_bytes(db));
    return status;
}

uint64_t pawl__rocks_unflushed_bytes(struct pawl__rocks *db)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < db->family_count; i++) {
        uint64_t entries = 0;
        uint64_t bytes = 0;
        /* Those that a flush has taken already are not counted. An empty one has its filter, no more. */
        if (rocksdb_property_int_cf(
                db->native, db->families[i], "rocksdb.num-entries-active-mem-table", &entries)
                == 0
            && entries > 0
            && rocksdb_property_int_cf(
                   db->native, db->families[i], "rocksdb.cur-size-active-mem-table", &bytes)
                   == 0) {
            sum += bytes;
        }
    }
    return sum;
}

/* Nobody writes while there is too little room, so no memtable becomes full and is flushed by itself, and
 * the debt would stay for ever: begin to pay it. A flush makes a file of the memtables, for which there is
 * room, and gives their log back. */
static bool should_pay_locked(struct pawl__rocks *db, int64_t now_ns) REQUIRES_LOCK(db->space.lock)
{
    struct rocks_space *space = &db->space;
    uint64_t memtables = pawl__rocks_property_sum(db, "rocksdb.cur-size-all-mem-tables");

    if (memtables < PAY_BYTES_MIN || space->free_bytes < memtables + db->free_space_min / 2
        || (space->paid_ns != 0 && now_ns - space->paid_ns < PAY_NS_MIN)) {
        return false;
    }
    space->paid_ns = now_ns;
    return true;
}

struct reserve_outcome { /* what is to be done once the lock is free */
    bool measured;
    bool pay;
};

static pawl_status reserve_locked(struct pawl__rocks *db,
                                  uint64_t bytes,
                                  bool only_deletes,
                                  struct reserve_outcome *ret_outcome,
                                  pawl_error *reterr) REQUIRES_LOCK(db->space.lock)
{
    struct rocks_space *space = &db->space;
    uint64_t reserve = only_deletes ? db->free_space_min / 2 : db->free_space_min;
    int64_t now_ns = pawl__monotonic_ns(db->clock);

    if (!space->known || space->spent_bytes >= measure_every_bytes
        || now_ns - space->measured_ns >= measure_every_ns) {
        pawl_status status = measure_locked(db, now_ns, reterr);
        ret_outcome->measured = true;
        if (status != PAWL_OK) {
            return status;
        }
    }
    /* The log, the file that a flush makes of it, and the one that a compaction makes of that. */
    uint64_t spent = space->spent_bytes + 3 * bytes;
    if (space->free_bytes < reserve || space->free_bytes - reserve < space->owed_bytes + spent) {
        space->known = false; /* the next write measures again: somebody may have made room */
        ret_outcome->pay = should_pay_locked(db, now_ns);
        return pawl__fail(reterr,
                          PAWL_NO_SPACE,
                          "%llu MiB free at '%s', %llu are kept back (store.free_space_min) and "
                          "%llu are needed for flushes and compactions",
                          (unsigned long long)(space->free_bytes >> 20),
                          db->dir,
                          (unsigned long long)(reserve >> 20),
                          (unsigned long long)((space->owed_bytes + spent) >> 20));
    }
    space->spent_bytes = spent;
    return PAWL_OK;
}

pawl_status pawl__rocks_reserve(struct pawl__rocks *db,
                                uint64_t bytes,
                                bool only_deletes,
                                pawl_error *reterr)
{
    struct reserve_outcome outcome = { 0 };

    pawl__lock(&db->space.lock);
    pawl_status status = reserve_locked(db, bytes, only_deletes, &outcome, reterr);
    pawl__unlock(&db->space.lock);
    if (outcome.pay) {
        pawl__rocks_memory_flush(db);
    }
    if (outcome.measured && status == PAWL_OK) {
        pawl__rocks_memory_relieve(); /* as often as that, for it costs about as much */
    }
    return status;
}
