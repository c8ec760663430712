/* Flushes, also the last one before a store is closed; compactions and copies. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "store/rocksdb/internal.h"

#define GIVE_UP_NS_MAX NS_PER_S /* a flush that is told to needs so long */

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

static pawl_status flush_families(struct pawl__rocks *db, pawl_error *reterr)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *text = NULL;

    rocksdb_flushoptions_set_wait(options, 1);
    for (size_t i = 0; i < db->family_count && text == NULL; i++) {
        rocksdb_flush_cf(db->native, options, db->families[i], &text);
    }
    rocksdb_flushoptions_destroy(options);
    return text != NULL ? pawl__rocks_poison(db, text, reterr) : PAWL_OK;
}

static pawl_status may_write(struct pawl__rocks *db, pawl_error *reterr)
{
    TRY(pawl__rocks_refuse_write(db, reterr));
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
    if (pawl__rocks_refuse_write(db, NULL) != PAWL_OK || pawl__rocks_unflushed_bytes(db) == 0) {
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
    uint64_t before = pawl__rocks_property_sum(db, "rocksdb.background-errors");

    REQUIRE(family < db->family_count);
    TRY(may_write(db, reterr));
    /* NULL is "no bound" here; the call itself reports nothing. */
    rocksdb_compact_range_cf(db->native,
                             db->families[family],
                             range.from.len == 0 ? NULL : range.from.data,
                             range.from.len,
                             range.until.len == 0 ? NULL : range.until.data,
                             range.until.len);
    if (pawl__rocks_property_sum(db, "rocksdb.background-errors") != before) {
        return pawl__fail(
            reterr, PAWL_IO, "compaction failed in '%s': the debug log says why", db->dir);
    }
    return PAWL_OK;
}

pawl_status pawl__rocks_drop_files(
    struct pawl__rocks *db, size_t family, pawl_view first, pawl_view last, pawl_error *reterr)
{
    char *text = NULL;

    REQUIRE(family < db->family_count);
    REQUIRE(first.len > 0 && last.len > 0); /* NULL would be "no bound": everything */
    TRY(may_write(db, reterr));
    FAILPOINT("rocksdb.drop.before", reterr);
    rocksdb_delete_file_in_range_cf(
        db->native, db->families[family], first.data, first.len, last.data, last.len, &text);
    if (text != NULL) {
        return pawl__rocks_poison(db, text, reterr);
    }
    FAILPOINT("rocksdb.drop.after", reterr);
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
