/* What people decided about failed events, beside the fates of the entries. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "delivery/rocksdb/internal.h"

static pawl_status put_decision(struct pawl__rocks_batch *batch,
                                const struct delivery_decision *decision,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(WAL_VALUE_BYTES_MAX);
    struct wal_key key = pawl__delivery_wal_decision_key(decision->lsn);

    pawl__delivery_wal_decision_encode(decision, &value);
    TRY(pawl__buf_check(&value, "a decision", reterr));
    pawl__rocks_put(batch, WAL_FATES, pawl__delivery_wal_key(&key), pawl__buf_view(&value));
    return PAWL_OK;
}

/* The decision and the mark in one batch: an entry that is confirmed without it would be cleaned up as if it had
 * never failed. */
static pawl_status write_decision(struct rocksdb_wal *wal,
                                  struct pawl__rocks_batch *batch,
                                  const struct delivery_decision *decision,
                                  bool sync,
                                  pawl_error *reterr) REQUIRES_LOCK(wal->fates_lock)
{
    struct delivery_fate fate;
    bool is_found = false;

    TRY(pawl__delivery_rocksdb_fate(wal, decision->lsn, &fate, &is_found, reterr));
    REQUIRE(is_found); /* clean_up waits for the lock */
    TRY(put_decision(batch, decision, reterr));
    fate.state = DELIVERY_CONFIRMED;
    FAILPOINT("delivery.wal.decide.before", reterr);
    TRY(pawl__delivery_rocksdb_mark_with(wal, batch, decision->lsn, &fate, sync, reterr));
    FAILPOINT("delivery.wal.decide.after", reterr);
    return PAWL_OK;
}

/* Each is written when the next one is found, and only the last waits for the disk, which makes all of them durable. */
static pawl_status decide_locked(struct rocksdb_wal *wal,
                                 const struct delivery_decision *decisions,
                                 size_t count,
                                 pawl_error *reterr) REQUIRES_LOCK(wal->fates_lock)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    const struct delivery_decision *last = NULL;

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    for (size_t i = 0; i < count; i++) {
        struct delivery_fate fate;
        bool is_found = false;
        TRY(pawl__delivery_rocksdb_fate(wal, decisions[i].lsn, &fate, &is_found, reterr));
        if (is_found && last != NULL) {
            TRY(write_decision(wal, batch, last, false, reterr));
        }
        last = is_found ? &decisions[i] : last;
    }
    return last == NULL ? PAWL_OK : write_decision(wal, batch, last, true, reterr);
}

pawl_status pawl__delivery_rocksdb_decide(struct delivery_wal *base,
                                          const struct delivery_decision *decisions,
                                          size_t count,
                                          pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);

    pawl__lock(&wal->fates_lock);
    pawl_status status = decide_locked(wal, decisions, count, reterr);
    pawl__unlock(&wal->fates_lock);
    return status;
}

pawl_status pawl__delivery_rocksdb_decided(struct delivery_wal *base,
                                           delivery_lsn after,
                                           delivery_lsn *ret_lsns,
                                           size_t room,
                                           size_t *ret_count,
                                           pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct wal_key from = pawl__delivery_wal_decision_key(MIN(after, UINT64_MAX - 1) + 1);
    struct wal_key until = pawl__delivery_wal_decision_end();
    struct pawl__rocks_range range = { pawl__delivery_wal_key(&from),
                                       pawl__delivery_wal_key(&until) };
    size_t count = 0;

    TRY(pawl__rocks_iter_open(as_rocksdb(base)->db, NULL, WAL_FATES, range, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    while (iter->valid && count < room) {
        TRY(pawl__delivery_wal_parse_decision_key(iter->key, &ret_lsns[count++], reterr));
        TRY(pawl__rocks_iter_next(iter, reterr));
    }
    *ret_count = count;
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_read_decision(struct delivery_wal *base,
                                                 delivery_lsn lsn,
                                                 struct pawl__arena *arena,
                                                 struct delivery_decision *ret_decision,
                                                 bool *ret_found,
                                                 pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_decision_key(lsn);
    struct delivery_decision decision;
    struct pawl__rocks_value value;

    pawl_view view = pawl__delivery_wal_key(&key);
    TRY(pawl__rocks_get_many(as_rocksdb(base)->db, NULL, WAL_FATES, &view, 1, &value, reterr));
    *ret_found = value.found;
    pawl_status status = PAWL_OK;
    if (value.found) {
        status = pawl__delivery_wal_decision_decode(lsn, value.view, &decision, reterr);
    }
    if (value.found && status == PAWL_OK) {
        status = pawl__delivery_decision_copy(&decision, arena, ret_decision, reterr);
    }
    pawl__rocks_value_done(&value);
    return status;
}
