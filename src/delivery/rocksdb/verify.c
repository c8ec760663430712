#include <inttypes.h>

#include "base/core/error.h"
#include "delivery/rocksdb/internal.h"

enum { VERIFY_ENTRIES = 1000, VERIFY_BYTES = 4 << 20 };

static pawl_status check_indexed(struct delivery_wal *wal,
                                 const struct delivery_entry *entry,
                                 pawl_error *reterr)
{
    struct delivery_key key = { entry->key, entry->payload_hash };
    struct delivery_hit hit;

    TRY(wal->ops->lookup(wal, &key, 1, &hit, reterr));
    return hit.found ? PAWL_OK
                     : pawl__fail(
                         reterr, PAWL_CORRUPT, "LSN %" PRIu64 " is not in the index", entry->lsn);
}

static pawl_status compare(const struct delivery_wal_stats *stored,
                           const struct delivery_wal_stats *counted,
                           pawl_error *reterr)
{
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        if (stored->entries[i] != counted->entries[i] || stored->bytes[i] != counted->bytes[i]) {
            return pawl__fail(reterr,
                              PAWL_CORRUPT,
                              "%" PRIu64 " %s entries of %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64
                              " were counted",
                              stored->entries[i],
                              pawl__delivery_state_name((enum delivery_entry_state)i),
                              stored->bytes[i],
                              counted->entries[i],
                              counted->bytes[i]);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_rocksdb_wal_verify(struct delivery_wal *wal, pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_wal_stats stored;
    struct delivery_wal_stats counted = { .first = 0 };
    struct delivery_range range = {
        .from = 1,
        .to = UINT64_MAX,
        .states = DELIVERY_STATES_ALL,
        .entries_max = VERIFY_ENTRIES,
        .bytes_max = VERIFY_BYTES,
    };

    TRY(wal->ops->stats(wal, &stored, reterr));
    do {
        TRY(wal->ops->read(wal, &range, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            const struct delivery_entry *entry = &page.entries[i];
            TRY(check_indexed(wal, entry, reterr));
            counted.entries[entry->fate.state]++;
            counted.bytes[entry->fate.state] += pawl__delivery_entry_bytes(entry);
            range.from = entry->lsn + 1;
        }
    } while (page.count > 0);
    return compare(&stored, &counted, reterr);
}
