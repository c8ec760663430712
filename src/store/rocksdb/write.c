/* Batches, and what happens when the engine cannot write one. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "store/rocksdb/internal.h"

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

    TRY(pawl__check_memory(batch, "a batch", reterr));
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

pawl_status pawl__rocks_refuse_write(struct pawl__rocks *db, pawl_error *reterr)
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
pawl_status pawl__rocks_poison(struct pawl__rocks *db, char *text, pawl_error *reterr)
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

static void add_note(struct pawl__rocks_batch *batch)
{
    char note[ROCKS_NOTE_LEN];

    pawl__rocks_note(atomic_load(&batch->db->synced), note);
    rocksdb_writebatch_put_log_data(batch->native, note, sizeof(note));
}

/* Others may have written in between: then it reaches further than that. Too low is safe. */
static void note_synced(struct pawl__rocks *db, uint64_t to)
{
    uint64_t known = atomic_load(&db->synced);

    while (known < to && !atomic_compare_exchange_weak(&db->synced, &known, to)) {
    }
}

static pawl_status write_batch(struct pawl__rocks *db,
                               struct pawl__rocks_batch *batch,
                               const rocksdb_writeoptions_t *options,
                               pawl_error *reterr)
{
    char *text = NULL;

    REQUIRE(batch->db == db);
    if (batch->broken.status != PAWL_OK) {
        return pawl__fail(reterr, batch->broken.status, "%s", batch->broken.message);
    }
    pawl_status status = pawl__rocks_refuse_write(db, reterr);
    if (status != PAWL_OK || batch->bytes == 0) {
        return status;
    }
    TRY(pawl__rocks_reserve(db, batch->bytes, !batch->has_puts, reterr));
    FAILPOINT("rocksdb.write.before", reterr);
    uint64_t before = rocksdb_get_latest_sequence_number(db->native);
    uint64_t entries = (uint64_t)rocksdb_writebatch_count(batch->native);
    add_note(batch);
    rocksdb_write(db->native, options, batch->native, &text);
    if (text != NULL) {
        return pawl__rocks_poison(db, text, reterr);
    }
    if (db->syncs && options == db->write_options) {
        note_synced(db, before + entries);
    }
    atomic_fetch_add(&db->share.unflushed_bytes, batch->bytes); /* until space is measured again */
    pawl__rocks_batch_clear(batch);
    FAILPOINT("rocksdb.write.after", reterr);
    return PAWL_OK;
}

pawl_status pawl__rocks_write(struct pawl__rocks *db,
                              struct pawl__rocks_batch *batch,
                              pawl_error *reterr)
{
    return write_batch(db, batch, db->write_options, reterr);
}

pawl_status pawl__rocks_write_unsynced(struct pawl__rocks *db,
                                       struct pawl__rocks_batch *batch,
                                       pawl_error *reterr)
{
    return write_batch(db, batch, db->unsynced_options, reterr);
}
