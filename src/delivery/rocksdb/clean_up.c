/* Forgetting confirmed entries, and giving their space back.
 *
 *   1. Rows of `consumer:confirmed:` up to the LSN go, with the index rows of ids by place. From here on the entries
 *      are forgotten: the row `cleaned` says up to where one without a fate row counts for nothing. On disk
 *      before 2, because files that are dropped stay dropped.
 *   2. Files that hold nothing but forgotten entries are dropped, unread.
 *   3. What is left in other files is deleted by range, and compaction gives it back later. In this order: a
 *      dropped file takes its range deletions along.
 *
 * A crash between them leaves forgotten entries: the next clean_up begins at `swept`, which only 3 raises. Entries that
 * stay (pending, failed) divide the range; one of them that is confirmed later is deleted by itself. */
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "delivery/rocksdb/internal.h"

enum {
    CLEAN_STEP = WAL_LOOKUP_STEP,
    STEPS_A_BATCH = 32,
    GAPS_A_BATCH = 1000,
    DROP_LSNS_MIN = 1000, /* a smaller gap has no file of its own */
};

struct clean {
    struct rocksdb_wal *wal;
    delivery_lsn to;
    struct wal_counters next; /* of its part of the counters, `cleaned` */
    struct pawl__rocks_batch *batch;
    size_t steps; /* in the batch */
};

static void clean_done(struct clean *clean)
{
    pawl__rocks_batch_free(clean->batch);
}

static pawl_status write_clean(struct clean *clean, bool sync, pawl_error *reterr)
{
    struct rocksdb_wal *wal = clean->wal;

    TRY(pawl__delivery_rocksdb_put_counter(clean->batch, WAL_CLEANED, &clean->next, reterr));
    FAILPOINT("delivery.wal.clean.before", reterr);
    TRY(sync ? pawl__rocks_write(wal->db, clean->batch, reterr)
             : pawl__rocks_write_unsynced(wal->db, clean->batch, reterr));
    pawl__lock(&wal->lock);
    wal->counters.cleaned = clean->next.cleaned;
    pawl__unlock(&wal->lock);
    clean->steps = 0;
    FAILPOINT("delivery.wal.clean.after", reterr);
    return PAWL_OK;
}

/* --- 1: rows --- */

/* A few confirmed rows one after another. */
struct rows {
    delivery_lsn lsns[CLEAN_STEP];
    size_t count;
    struct delivery_hash places[CLEAN_STEP]; /* keys of those by place */
    delivery_lsn place_lsns[CLEAN_STEP];
    size_t place_count;
};

static pawl_status take_rows(struct clean *clean,
                             struct pawl__rocks_iter *iter,
                             struct rows *rows,
                             pawl_error *reterr)
{
    struct wal_fate_row row;

    rows->count = 0;
    rows->place_count = 0;
    while (iter->valid && rows->count < CLEAN_STEP) {
        delivery_lsn lsn = 0;
        TRY(pawl__delivery_wal_parse_fate_key(iter->key, DELIVERY_CONFIRMED, &lsn, reterr));
        TRY(pawl__delivery_wal_fate_decode(DELIVERY_CONFIRMED, lsn, iter->value, &row, reterr));
        rows->lsns[rows->count++] = lsn;
        clean->next.cleaned.entries++;
        clean->next.cleaned.bytes += row.bytes;
        if (row.by_place) {
            rows->place_lsns[rows->place_count] = lsn;
            rows->places[rows->place_count++] = row.key;
        }
        TRY(pawl__rocks_iter_next(iter, reterr));
    }
    return PAWL_OK;
}

/* Those that still speak of the entry: a sink's row under the same key stays. */
static pawl_status delete_places(struct clean *clean, const struct rows *rows, pawl_error *reterr)
{
    struct wal_index_row found_rows[CLEAN_STEP];
    bool found[CLEAN_STEP];

    TRY(pawl__delivery_rocksdb_index_rows(
        clean->wal, rows->places, rows->place_count, found_rows, found, reterr));
    for (size_t i = 0; i < rows->place_count; i++) {
        struct wal_key key = pawl__delivery_wal_index_key(&rows->places[i]);
        if (found[i] && found_rows[i].by_place && found_rows[i].lsn == rows->place_lsns[i]) {
            pawl__rocks_delete(clean->batch, WAL_INDEX, pawl__delivery_wal_key(&key));
        }
    }
    return PAWL_OK;
}

static void delete_rows(struct clean *clean, const struct rows *rows)
{
    struct wal_key from = pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, rows->lsns[0]);
    struct wal_key until =
        pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, rows->lsns[rows->count - 1] + 1);

    pawl__rocks_delete_range(
        clean->batch, WAL_FATES, pawl__delivery_wal_key(&from), pawl__delivery_wal_key(&until));
    for (size_t i = 0; i < rows->count && rows->lsns[i] < clean->next.cleaned.swept; i++) {
        struct wal_key entry = pawl__delivery_wal_entry_key(rows->lsns[i]);
        pawl__rocks_delete(clean->batch, WAL_ENTRIES, pawl__delivery_wal_key(&entry));
    }
    clean->next.cleaned.cleaned = MAX(clean->next.cleaned.cleaned, rows->lsns[rows->count - 1]);
}

/* Those whose entry is forgotten; the batch that says so may have been written before. */
static pawl_status forget_decisions(struct clean *clean, pawl_error *reterr)
{
    struct rocksdb_wal *wal = clean->wal;
    delivery_lsn after = 0;
    delivery_lsn lsns[CLEAN_STEP];
    size_t count = 0;

    do {
        TRY(wal->base.ops->decided(&wal->base, after, lsns, CLEAN_STEP, &count, reterr));
        for (size_t i = 0; i < count && lsns[i] <= clean->to; i++) {
            struct wal_key key = pawl__delivery_wal_decision_key(lsns[i]);
            struct delivery_fate fate = { .state = DELIVERY_PENDING };
            bool is_found = false;
            TRY(pawl__delivery_rocksdb_fate(wal, lsns[i], &fate, &is_found, reterr));
            if (!is_found || fate.state == DELIVERY_CONFIRMED) {
                pawl__rocks_delete(clean->batch, WAL_FATES, pawl__delivery_wal_key(&key));
            }
            after = lsns[i];
        }
    } while (count == CLEAN_STEP && after == lsns[count - 1]);
    return PAWL_OK;
}

static pawl_status forget_rows(struct clean *clean, delivery_lsn floor, pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct wal_key from = pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, floor);
    struct wal_key until = clean->to == UINT64_MAX
                               ? pawl__delivery_wal_fate_end(DELIVERY_CONFIRMED)
                               : pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, clean->to + 1);
    struct pawl__rocks_range range = { pawl__delivery_wal_key(&from),
                                       pawl__delivery_wal_key(&until) };
    const struct wal_cleaned before = clean->next.cleaned;
    struct rows rows;

    TRY(pawl__rocks_iter_open(clean->wal->db, NULL, WAL_FATES, range, &iter, reterr));
    TRY(pawl__rocks_iter_first(iter, reterr));
    while (iter->valid) {
        TRY(take_rows(clean, iter, &rows, reterr));
        TRY(delete_places(clean, &rows, reterr));
        delete_rows(clean, &rows);
        if (++clean->steps == STEPS_A_BATCH) {
            TRY(write_clean(clean, false, reterr));
        }
    }
    if (clean->next.cleaned.entries == before.entries && before.cleaned >= clean->to) {
        return PAWL_OK; /* nothing new to forget */
    }
    TRY(forget_decisions(clean, reterr));
    clean->next.cleaned.cleaned = MAX(clean->next.cleaned.cleaned, clean->to);
    return write_clean(clean, true, reterr);
}

/* --- 2 and 3: entries --- */

/* LSNs first..last belong to nobody any more. */
static pawl_status sweep_gap(struct clean *clean,
                             delivery_lsn first,
                             delivery_lsn last,
                             pawl_error *reterr)
{
    struct rocksdb_wal *wal = clean->wal;
    struct wal_key from = pawl__delivery_wal_entry_key(first);
    struct wal_key to = pawl__delivery_wal_entry_key(last);
    struct wal_key until = pawl__delivery_wal_entry_key(last + 1);
    pawl_status status = PAWL_OK;

    if (last - first >= DROP_LSNS_MIN) {
        pawl__lock(&wal->files_lock);
        status = pawl__rocks_drop_files(wal->db,
                                        WAL_ENTRIES,
                                        pawl__delivery_wal_key(&from),
                                        pawl__delivery_wal_key(&to),
                                        reterr);
        pawl__unlock(&wal->files_lock);
    }
    TRY(status);
    pawl__rocks_delete_range(
        clean->batch, WAL_ENTRIES, pawl__delivery_wal_key(&from), pawl__delivery_wal_key(&until));
    clean->next.cleaned.swept = last + 1;
    return ++clean->steps == GAPS_A_BATCH ? write_clean(clean, false, reterr) : PAWL_OK;
}

static pawl_status kept_open(struct clean *clean,
                             enum delivery_entry_state state,
                             delivery_lsn from,
                             delivery_lsn to,
                             struct pawl__rocks_iter **ret_iter,
                             pawl_error *reterr)
{
    struct wal_key first = pawl__delivery_wal_fate_key(state, from);
    struct wal_key until = pawl__delivery_wal_fate_key(state, to + 1);
    struct pawl__rocks_range range = { pawl__delivery_wal_key(&first),
                                       pawl__delivery_wal_key(&until) };

    TRY(pawl__rocks_iter_open(clean->wal->db, NULL, WAL_FATES, range, ret_iter, reterr));
    return pawl__rocks_iter_first(*ret_iter, reterr);
}

/* The lower one of two rows that stay; UINT64_MAX: neither has one. Moves on. */
static pawl_status next_kept(struct pawl__rocks_iter *pending,
                             struct pawl__rocks_iter *failed,
                             delivery_lsn *ret_lsn,
                             pawl_error *reterr)
{
    delivery_lsn a = UINT64_MAX;
    delivery_lsn b = UINT64_MAX;

    TRY(pending->valid
            ? pawl__delivery_wal_parse_fate_key(pending->key, DELIVERY_PENDING, &a, reterr)
            : PAWL_OK);
    TRY(failed->valid ? pawl__delivery_wal_parse_fate_key(failed->key, DELIVERY_FAILED, &b, reterr)
                      : PAWL_OK);
    *ret_lsn = MIN(a, b);
    if (a == b) {
        return PAWL_OK; /* both at their end: a row is in one state, which reads check */
    }
    return pawl__rocks_iter_next(a < b ? pending : failed, reterr);
}

static pawl_status sweep(struct clean *clean, delivery_lsn to, pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *pending = NULL;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *failed = NULL;
    delivery_lsn at = MAX(clean->next.cleaned.swept, (delivery_lsn)1);
    delivery_lsn kept = 0;

    TRY(kept_open(clean, DELIVERY_PENDING, at, to, &pending, reterr));
    TRY(kept_open(clean, DELIVERY_FAILED, at, to, &failed, reterr));
    while (at <= to) {
        TRY(next_kept(pending, failed, &kept, reterr));
        if (kept > at) {
            TRY(sweep_gap(clean, at, MIN(kept - 1, to), reterr));
        }
        at = kept >= to ? to + 1 : kept + 1;
    }
    clean->next.cleaned.swept = MAX(clean->next.cleaned.swept, to + 1);
    return write_clean(clean, false, reterr);
}

static pawl_status clean_locked(struct rocksdb_wal *wal, delivery_lsn to, pawl_error *reterr)
    REQUIRES_LOCK(wal->fates_lock)
{
    AUTO(clean_done)
    struct clean clean = {
        .wal = wal,
        .to = to,
        .next = pawl__delivery_rocksdb_counters(wal),
    };
    delivery_lsn last = MIN(to, clean.next.appended.last);

    TRY(pawl__rocks_batch_new(wal->db, &clean.batch, reterr));
    TRY(forget_rows(&clean, clean.next.marked.floors[DELIVERY_CONFIRMED], reterr));
    return last >= clean.next.cleaned.swept && last > 0 ? sweep(&clean, last, reterr) : PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_clean_up(struct delivery_wal *base,
                                            delivery_lsn to,
                                            pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);

    pawl__lock(&wal->fates_lock);
    pawl_status status = clean_locked(wal, to, reterr);
    pawl__unlock(&wal->fates_lock);
    return status;
}
