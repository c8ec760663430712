#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "store/rocksdb/internal.h"

static const uint64_t look_bytes = UINT64_C(1) << 20;
static const int64_t look_ns = 100 * NS_PER_MS;

#define PAY_BYTES_MIN (UINT64_C(1) << 20) /* of memtables that are worth a flush */
#define PAY_NS_MIN NS_PER_S               /* between two of them */
#define GIVE_UP_NS_MAX NS_PER_S           /* a flush that is told to needs so long */

struct pawl__rocks_batch {
    struct pawl__rocks *db;
    rocksdb_writebatch_t *native;
    size_t bytes;
    bool has_puts;
    pawl_error broken; /* what the first entry over a limit was; PAWL_OK: none */
};

pawl_status pawl__rocks_batch_new(struct pawl__rocks *db,
                                  struct pawl__rocks_batch **ret_batch,
                                  pawl_error *reterr)
{
    struct pawl__rocks_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch");
    }
    batch->db = db;
    batch->native = rocksdb_writebatch_create();
    *ret_batch = batch;
    return PAWL_OK;
}

void pawl__rocks_batch_free(struct pawl__rocks_batch *batch)
{
    if (batch != NULL) {
        rocksdb_writebatch_destroy(batch->native);
        free(batch);
    }
}

void pawl__rocks_batch_clear(struct pawl__rocks_batch *batch)
{
    rocksdb_writebatch_clear(batch->native);
    batch->bytes = 0;
    batch->has_puts = false;
    batch->broken.status = PAWL_OK;
}

/* Counts an entry in; false when it does not fit and the batch is broken. */
static bool take_entry(struct pawl__rocks_batch *batch, size_t family, pawl_view key, size_t more)
{
    enum { ENTRY_OVERHEAD = 16 }; /* tag, family and two lengths as varints */

    REQUIRE(family < batch->db->family_count);
    if (batch->broken.status != PAWL_OK) {
        return false;
    }
    if (key.len > PAWL__ROCKS_KEY_BYTES_MAX) {
        pawl__fail(&batch->broken,
                   PAWL_INVALID,
                   "key has %zu bytes, the limit is %zu",
                   key.len,
                   PAWL__ROCKS_KEY_BYTES_MAX);
        return false;
    }
    size_t bytes = key.len + more + ENTRY_OVERHEAD;
    if (more > PAWL__ROCKS_BATCH_BYTES_MAX || bytes > PAWL__ROCKS_BATCH_BYTES_MAX - batch->bytes) {
        pawl__fail(&batch->broken,
                   PAWL_INVALID,
                   "batch has more than %zu bytes",
                   PAWL__ROCKS_BATCH_BYTES_MAX);
        return false;
    }
    batch->bytes += bytes;
    return true;
}

void pawl__rocks_put(struct pawl__rocks_batch *batch, size_t family, pawl_view key, pawl_view value)
{
    if (take_entry(batch, family, key, value.len)) {
        batch->has_puts = true;
        rocksdb_writebatch_put_cf(batch->native,
                                  batch->db->families[family],
                                  rocks_bytes(key),
                                  key.len,
                                  rocks_bytes(value),
                                  value.len);
    }
}

void pawl__rocks_delete(struct pawl__rocks_batch *batch, size_t family, pawl_view key)
{
    if (take_entry(batch, family, key, 0)) {
        rocksdb_writebatch_delete_cf(
            batch->native, batch->db->families[family], rocks_bytes(key), key.len);
    }
}

void pawl__rocks_delete_range(struct pawl__rocks_batch *batch,
                              size_t family,
                              pawl_view from,
                              pawl_view until)
{
    size_t common = MIN(from.len, until.len);
    int order = common == 0 ? 0 : memcmp(from.data, until.data, common);

    if (order > 0 || (order == 0 && from.len >= until.len)) {
        return; /* an empty range; the engine would keep a tombstone that makes no sense */
    }
    if (take_entry(batch, family, from, until.len)) {
        rocksdb_writebatch_delete_range_cf(batch->native,
                                           batch->db->families[family],
                                           rocks_bytes(from),
                                           from.len,
                                           rocks_bytes(until),
                                           until.len);
    }
}

static uint64_t property_sum(struct pawl__rocks *db, const char *name)
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
    return 2 * property_sum(db, "rocksdb.cur-size-all-mem-tables")
           + MAX(upper, property_sum(db, "rocksdb.estimate-pending-compaction-bytes"));
}

static pawl_status look_locked(struct pawl__rocks *db, int64_t now_ns, pawl_error *reterr)
    REQUIRES_LOCK(db->space.lock)
{
    struct rocks_space *space = &db->space;
    pawl_status status = pawl__fs_free_bytes(db->dir, &space->free_bytes, reterr);

    space->known = status == PAWL_OK;
    space->looked_ns = now_ns;
    space->spent_bytes = 0;
    space->owed_bytes = owed_bytes(db);
    atomic_store(&db->share.unflushed_bytes, pawl__rocks_unflushed_bytes(db));
    return status;
}

void pawl__rocks_begin_flush(struct pawl__rocks *db)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();

    rocksdb_flushoptions_set_wait(options, 0);
    for (size_t i = 0; i < db->family_count; i++) {
        char *text = NULL;
        rocksdb_flush_cf(db->native, options, db->families[i], &text);
        rocksdb_free(text); /* one that cannot begin is tried again */
    }
    rocksdb_flushoptions_destroy(options);
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
    uint64_t memtables = property_sum(db, "rocksdb.cur-size-all-mem-tables");

    if (memtables < PAY_BYTES_MIN || space->free_bytes < memtables + db->free_space_min / 2
        || (space->paid_ns != 0 && now_ns - space->paid_ns < PAY_NS_MIN)) {
        return false;
    }
    space->paid_ns = now_ns;
    return true;
}

struct reserve_outcome { /* what is to be done once the lock is free */
    bool looked;
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

    if (!space->known || space->spent_bytes >= look_bytes || now_ns - space->looked_ns >= look_ns) {
        pawl_status status = look_locked(db, now_ns, reterr);
        ret_outcome->looked = true;
        if (status != PAWL_OK) {
            return status;
        }
    }
    /* The log, the file that a flush makes of it, and the one that a compaction makes of that. */
    uint64_t spent = space->spent_bytes + 3 * bytes;
    if (space->free_bytes < reserve || space->free_bytes - reserve < space->owed_bytes + spent) {
        space->known = false; /* the next write looks again: somebody may have made room */
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
    if (outcome.looked && status == PAWL_OK) {
        pawl__rocks_memory_relieve(); /* as often as that, for it costs about as much */
    }
    return status;
}

/* What the first failure was, for those that come after it. */
static void keep_poison(struct pawl__rocks *db, const pawl_error *error)
{
    pawl__lock(&db->space.lock);
    if (!atomic_load(&db->poisoned)) {
        db->poison = *error;
        atomic_store(&db->poisoned, true);
    }
    pawl__unlock(&db->space.lock);
}

/* Closing looks for files that the engine does not know, and would remove those of the other store. */
static void stop_engine(struct pawl__rocks *db)
{
    char *text = NULL;

    rocksdb_disable_file_deletions(db->native, &text);
    rocksdb_free(text);
    rocksdb_cancel_all_background_work(db->native, 0);
}

pawl_status pawl__rocks_check_place(struct pawl__rocks *db, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__store_lock_in_place(db->lock)) {
        return PAWL_OK;
    }
    pawl_status status =
        pawl__fail(&error,
                   PAWL_IO,
                   "'%s' was moved, replaced or deleted while it was open: open it again",
                   db->dir);
    keep_poison(db, &error);
    stop_engine(db);
    return pawl__fail_with(reterr, status, &error);
}

static pawl_status refuse_write(struct pawl__rocks *db, pawl_error *reterr)
{
    if (db->read_only) {
        return pawl__fail(reterr, PAWL_DENIED, "store '%s' was opened for reading", db->dir);
    }
    if (!atomic_load(&db->poisoned)) {
        return pawl__rocks_check_place(db, reterr);
    }
    return pawl__fail(reterr,
                      PAWL_IO,
                      "store '%s' failed earlier and takes no more writes until it is opened "
                      "again: %s",
                      db->dir,
                      db->poison.message);
}

/* The engine could not write. What is on disk now only recovery can tell, so it is IO whatever the
 * reason: NO_SPACE says that nothing was written, and only pawl__rocks_reserve knows that. */
static pawl_status poison(struct pawl__rocks *db, char *text, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__rocks_fail(text, &error);
    error.status = PAWL_IO;
    error.retryable = false;
    keep_poison(db, &error);
    if (reterr != NULL) {
        *reterr = error;
    }
    return PAWL_IO;
}

pawl_status pawl__rocks_write(struct pawl__rocks *db,
                              struct pawl__rocks_batch *batch,
                              pawl_error *reterr)
{
    char *text = NULL;

    REQUIRE(batch->db == db);
    if (batch->broken.status != PAWL_OK) {
        return pawl__fail(reterr, batch->broken.status, "%s", batch->broken.message);
    }
    pawl_status status = refuse_write(db, reterr);
    if (status != PAWL_OK || batch->bytes == 0) {
        return status;
    }
    status = pawl__rocks_reserve(db, batch->bytes, !batch->has_puts, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    FAILPOINT("rocksdb.write.before", reterr);
    rocksdb_write(db->native, db->write_options, batch->native, &text);
    if (text != NULL) {
        return poison(db, text, reterr);
    }
    atomic_fetch_add(&db->share.unflushed_bytes, batch->bytes); /* until the next look */
    pawl__rocks_batch_clear(batch);
    FAILPOINT("rocksdb.write.after", reterr);
    return PAWL_OK;
}

static pawl_status flush_families(struct pawl__rocks *db, pawl_error *reterr)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *text = NULL;

    rocksdb_flushoptions_set_wait(options, 1);
    for (size_t i = 0; i < db->family_count && text == NULL; i++) {
        rocksdb_flush_cf(db->native, options, db->families[i], &text);
    }
    rocksdb_flushoptions_destroy(options);
    return text != NULL ? poison(db, text, reterr) : PAWL_OK;
}

static pawl_status may_write(struct pawl__rocks *db, pawl_error *reterr)
{
    TRY(refuse_write(db, reterr));
    return pawl__rocks_reserve(db, 0, true, reterr);
}

pawl_status pawl__rocks_flush(struct pawl__rocks *db, pawl_error *reterr)
{
    TRY(may_write(db, reterr));
    FAILPOINT("rocksdb.flush.before", reterr);
    TRY(flush_families(db, reterr));
    FAILPOINT("rocksdb.flush.after", reterr);
    return PAWL_OK;
}

struct last_flush {
    struct pawl__rocks *db;
    pawl_error error;
};

static void run_last_flush(void *context)
{
    struct last_flush *last = context;

    (void)!pawl__rocks_flush(last->db, &last->error);
}

/* Until the deadline, and a moment more after it was told to give up. False: it does not end, and keeps what
 * it uses. */
static bool end_by(struct pawl__rocks *db, struct pawl__thread *thread, int64_t deadline_ns)
{
    if (pawl__thread_join_until(thread, deadline_ns)) {
        return true;
    }
    rocksdb_cancel_all_background_work(db->native, 0);
    int64_t now_ns = pawl__monotonic_ns(db->clock);
    if (pawl__thread_join_until(thread, MAX(deadline_ns, now_ns) + GIVE_UP_NS_MAX)) {
        return true;
    }
    pthread_detach(thread->id);
    thread->started = false;
    return false;
}

/* The engine has no flush with a deadline: a thread waits for it, and is told to give up. Without memory for
 * one, or a thread, there is no flush. */
pawl_status pawl__rocks_flush_last(struct pawl__rocks *db, int64_t deadline_ns, pawl_error *reterr)
{
    struct pawl__thread thread = { .started = false };
    struct last_flush *last = NULL;

    pawl__rocks_memory_leave(db);
    if (!end_by(db, &db->share.flusher, deadline_ns)) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "the disk under '%s' does not answer", db->dir);
    }
    if (refuse_write(db, NULL) != PAWL_OK || pawl__rocks_unflushed_bytes(db) == 0) {
        return PAWL_OK;
    }
    last = calloc(1, sizeof(*last));
    if (last == NULL) {
        return PAWL_OK;
    }
    last->db = db;
    if (pawl__thread_start(&thread, "rocks-flush", run_last_flush, last, NULL) == PAWL_OK
        && !end_by(db, &thread, deadline_ns)) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "the disk under '%s' does not answer", db->dir);
    }
    free(last);
    return PAWL_OK;
}

pawl_status pawl__rocks_compact(struct pawl__rocks *db,
                                size_t family,
                                struct pawl__rocks_range range,
                                pawl_error *reterr)
{
    uint64_t before = property_sum(db, "rocksdb.background-errors");

    REQUIRE(family < db->family_count);
    TRY(may_write(db, reterr));
    /* NULL is "no bound" here; the call itself reports nothing. */
    rocksdb_compact_range_cf(db->native,
                             db->families[family],
                             range.from.len == 0 ? NULL : range.from.data,
                             range.from.len,
                             range.until.len == 0 ? NULL : range.until.data,
                             range.until.len);
    if (property_sum(db, "rocksdb.background-errors") != before) {
        return pawl__fail(
            reterr, PAWL_IO, "compaction failed in '%s': the debug log says why", db->dir);
    }
    return PAWL_OK;
}

static pawl_status checkpoint_to(struct pawl__rocks *db, const char *dir, pawl_error *reterr)
{
    char *text = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(db->native, &text);

    if (text != NULL) {
        return pawl__rocks_fail(text, reterr);
    }
    rocksdb_checkpoint_create(checkpoint, dir, 0, &text);
    rocksdb_checkpoint_object_destroy(checkpoint);
    if (text != NULL) {
        return pawl__rocks_fail(text, reterr);
    }
    return pawl__fs_sync_parent(dir, reterr);
}

pawl_status pawl__rocks_checkpoint(struct pawl__rocks *db, const char *dir, pawl_error *reterr)
{
    TRY(may_write(db, reterr));
    FAILPOINT("rocksdb.checkpoint.before", reterr);
    pawl_status status = checkpoint_to(db, dir, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "copy '%s' to '%s'", db->dir, dir);
    }
    FAILPOINT("rocksdb.checkpoint.after", reterr);
    return PAWL_OK;
}

pawl_status pawl__rocks_property(struct pawl__rocks *db,
                                 size_t family,
                                 const char *name,
                                 uint64_t *ret_value,
                                 pawl_error *reterr)
{
    REQUIRE(family < db->family_count);
    if (rocksdb_property_int_cf(db->native, db->families[family], name, ret_value) != 0) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "RocksDB has no numeric property '%s'", name);
    }
    return PAWL_OK;
}
