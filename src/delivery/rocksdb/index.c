/* The index: from keys of events to where they are. Entries by place have a row here only as long as the entry is
 * there; it says so (by_place), and clean_up removes both. */
#include "base/core/error.h"
#include "delivery/rocksdb/internal.h"

enum { REINDEX_ENTRIES = 1000, REINDEX_BYTES = 4 << 20 };

pawl_status pawl__delivery_rocksdb_put_index_row(struct pawl__rocks_batch *batch,
                                                 const struct delivery_hash *key,
                                                 const struct wal_index_row *row,
                                                 pawl_error *reterr)
{
    char space[64];
    struct pawl__buf value = BUF_OVER(space);
    struct wal_key stored = pawl__delivery_wal_index_key(key);

    pawl__delivery_wal_index_encode(key, row, &value);
    TRY(pawl__buf_check(&value, "a row of the index", reterr));
    pawl__rocks_put(batch, WAL_INDEX, pawl__delivery_wal_key(&stored), pawl__buf_view(&value));
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_index_rows(struct rocksdb_wal *wal,
                                              const struct delivery_hash *keys,
                                              size_t count,
                                              struct wal_index_row *ret_rows,
                                              bool *ret_found,
                                              pawl_error *reterr)
{
    pawl_view views[WAL_LOOKUP_STEP] = { { NULL, 0 } };
    struct pawl__rocks_value values[WAL_LOOKUP_STEP];
    pawl_status status = PAWL_OK;

    REQUIRE(count <= WAL_LOOKUP_STEP);
    for (size_t i = 0; i < count; i++) {
        views[i] = (pawl_view){ (const char *)keys[i].bytes, sizeof(keys[i].bytes) };
    }
    TRY(pawl__rocks_get_many(wal->db, NULL, WAL_INDEX, views, count, values, reterr));
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = values[i].found;
        if (values[i].found && status == PAWL_OK) {
            status =
                pawl__delivery_wal_index_decode(&keys[i], values[i].view, &ret_rows[i], reterr);
        }
        pawl__rocks_value_done(&values[i]);
    }
    return status;
}

/* An entry that is there speaks for itself, whatever the epoch was when it came. */
static struct delivery_hit hit_of(bool found, const struct wal_index_row *row, uint64_t epoch)
{
    return found ? (struct delivery_hit){ .found = true,
                                          .epoch = row->by_place ? epoch : row->epoch,
                                          .lsn = row->lsn,
                                          .payload_hash = row->payload_hash }
                 : (struct delivery_hit){ .found = false };
}

pawl_status pawl__delivery_rocksdb_lookup(struct delivery_wal *base,
                                          const struct delivery_key *keys,
                                          size_t count,
                                          struct delivery_hit *ret_hits,
                                          pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    struct delivery_hash hashes[WAL_LOOKUP_STEP];
    struct wal_index_row rows[WAL_LOOKUP_STEP];
    bool found[WAL_LOOKUP_STEP];

    pawl__lock(&wal->lock);
    uint64_t epoch = wal->epoch;
    pawl__unlock(&wal->lock);
    for (size_t done = 0; done < count; done += WAL_LOOKUP_STEP) {
        size_t step = MIN(count - done, (size_t)WAL_LOOKUP_STEP);
        for (size_t i = 0; i < step; i++) {
            hashes[i] = keys[done + i].key;
        }
        TRY(pawl__delivery_rocksdb_index_rows(wal, hashes, step, rows, found, reterr));
        for (size_t i = 0; i < step; i++) {
            ret_hits[done + i] = hit_of(found[i], &rows[i], epoch);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_put_index(struct delivery_wal *base,
                                             const struct delivery_key *keys,
                                             size_t count,
                                             uint64_t epoch,
                                             pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    for (size_t i = 0; i < count; i++) {
        struct wal_index_row row = { .epoch = epoch, .payload_hash = keys[i].payload_hash };
        TRY(pawl__delivery_rocksdb_put_index_row(batch, &keys[i].key, &row, reterr));
    }
    return pawl__rocks_write_unsynced(wal->db, batch, reterr);
}

/* What the sink said about a key by place stays when the entry goes: its row is not replaced. */
static pawl_status put_again(struct rocksdb_wal *wal,
                             struct pawl__rocks_batch *batch,
                             const struct delivery_entry *entry,
                             uint64_t epoch,
                             pawl_error *reterr)
{
    struct wal_index_row row = {
        .by_place = entry->by_place,
        .epoch = epoch,
        .lsn = entry->lsn,
        .payload_hash = entry->payload_hash,
    };
    struct wal_index_row stored = { 0 };
    bool found = false;

    if (entry->by_place) {
        TRY(pawl__delivery_rocksdb_index_rows(wal, &entry->key, 1, &stored, &found, reterr));
    }
    return found && !stored.by_place && stored.epoch >= epoch
               ? PAWL_OK
               : pawl__delivery_rocksdb_put_index_row(batch, &entry->key, &row, reterr);
}

pawl_status pawl__delivery_rocksdb_reindex(struct delivery_wal *base,
                                           uint64_t epoch,
                                           pawl_error *reterr)
{
    struct rocksdb_wal *wal = as_rocksdb(base);
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_range range = {
        .from = 1,
        .to = UINT64_MAX,
        .states = DELIVERY_STATES_ALL,
        .entries_max = REINDEX_ENTRIES,
        .bytes_max = REINDEX_BYTES,
    };

    TRY(pawl__rocks_batch_new(wal->db, &batch, reterr));
    do {
        TRY(pawl__delivery_rocksdb_read(base, &range, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            TRY(put_again(wal, batch, &page.entries[i], epoch, reterr));
            range.from = page.entries[i].lsn + 1;
        }
        TRY(pawl__rocks_write_unsynced(wal->db, batch, reterr));
    } while (page.count > 0);
    return PAWL_OK;
}
