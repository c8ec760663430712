/* Any bytes as rows of a consumer WAL or an outbox: no crash, nothing but CORRUPT or UNSUPPORTED, and what decodes encodes to the
 * same bytes. A checksum keeps random bytes out, so the input is tried again between a version and a checksum that fit.
 * Its first byte says which kind of row. */
#include "fuzz/fuzz.h"

#include "base/core/crc32c.h"
#include "delivery/outbox/rows.h"
#include "delivery/rocksdb/format.h"

enum { LSN = 7, KINDS = 10 };

static const struct delivery_hash hash = { { 1, 2, 3 } };

static pawl_status try_entry(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_entry entry;
    pawl_status status = pawl__delivery_wal_entry_decode(LSN, value, &arena, &entry, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_entry_encode(&entry, again);
    }
    return status;
}

static pawl_status try_fate(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct wal_fate_row row;
    pawl_status status = pawl__delivery_wal_fate_decode(DELIVERY_FAILED, LSN, value, &row, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_fate_encode(LSN, &row, again);
    }
    return status;
}

static pawl_status try_index(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct wal_index_row row;
    pawl_status status = pawl__delivery_wal_index_decode(&hash, value, &row, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_index_encode(&hash, &row, again);
    }
    return status;
}

static pawl_status try_meta(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct delivery_wal_meta meta;
    pawl_status status = pawl__delivery_wal_meta_decode(value, &meta, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_meta_encode(&meta, again);
    }
    return status;
}

static pawl_status try_counters(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct wal_counters counters = { .appended = { 0 } };
    pawl_status status = pawl__delivery_wal_counter_decode(WAL_MARKED, value, &counters, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_counter_encode(WAL_MARKED, &counters, again);
    }
    return status;
}

static pawl_status try_format(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    pawl_status status = pawl__delivery_wal_format_decode(value, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_format_encode(WAL_FORMAT, again);
    }
    return status;
}

static pawl_status try_decision(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct delivery_decision decision;
    pawl_status status = pawl__delivery_wal_decision_decode(LSN, value, &decision, error);

    if (status == PAWL_OK) {
        pawl__delivery_wal_decision_encode(&decision, again);
    }
    return status;
}

static pawl_status try_outbox_entry(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct outbox_entry entry;
    pawl_status status = pawl__delivery_outbox_entry_decode(LSN, value, &arena, &entry, error);

    if (status == PAWL_OK) {
        pawl__delivery_outbox_entry_encode(&entry, again);
    }
    return status;
}

static pawl_status try_outbox_failed(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct outbox_failed_row row;
    pawl_status status = pawl__delivery_outbox_failed_decode(LSN, value, &row, error);

    if (status == PAWL_OK) {
        pawl__delivery_outbox_failed_encode(&row, again);
    }
    return status;
}

static pawl_status try_outbox_index(pawl_view value, struct pawl__buf *again, pawl_error *error)
{
    struct outbox_hit hit;
    pawl_status status = pawl__delivery_outbox_index_decode(&hash, value, &hit, error);

    if (status == PAWL_OK) {
        pawl__delivery_outbox_index_encode(&hash, &hit, again);
    }
    return status;
}

static pawl_status (*const tries[KINDS])(pawl_view, struct pawl__buf *, pawl_error *) = {
    try_entry,  try_fate,     try_index,        try_meta,          try_counters,
    try_format, try_decision, try_outbox_entry, try_outbox_failed, try_outbox_index,
};

static struct wal_key key_of(uint8_t kind)
{
    switch (kind) {
    case 0:
    case 7:
    case 8: /* a number of the outbox is stored alike */
        return pawl__delivery_wal_entry_key(LSN);
    case 1:
        return pawl__delivery_wal_fate_key(DELIVERY_FAILED, LSN);
    case 2:
    case 9:
        return pawl__delivery_wal_index_key(&hash);
    case 3:
        return pawl__delivery_wal_text_key("meta");
    case 4:
        return pawl__delivery_wal_text_key("marked");
    case 5:
        return pawl__delivery_wal_text_key("format");
    default:
        return pawl__delivery_wal_decision_key(LSN);
    }
}

static void decode(uint8_t kind, pawl_view value)
{
    AUTO(pawl__buf_done) struct pawl__buf again = BUF_INIT(WAL_VALUE_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = tries[kind](value, &again, &error);

    if (status == PAWL_OK) {
        CHECK(pawl__view_equal(pawl__buf_view(&again), value));
    } else {
        CHECK(status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
        CHECK(error.message[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pawl__buf_done) struct pawl__buf sealed = BUF_INIT(WAL_VALUE_BYTES_MAX);
    pawl_view body = { (const char *)data, size };
    uint8_t kind = 0;
    delivery_lsn lsn = 0;
    uint64_t sequence = 0;
    pawl_view name;

    if (!pawl__view_take_u8(&body, &kind)) {
        return 0;
    }
    kind %= KINDS;
    decode(kind, body);
    (void)!pawl__delivery_wal_parse_entry_key(body, &lsn, NULL);
    (void)!pawl__delivery_wal_parse_fate_key(body, DELIVERY_PENDING, &lsn, NULL);
    (void)!pawl__delivery_wal_parse_decision_key(body, &lsn, NULL);
    (void)!pawl__delivery_outbox_parse_pending(body, &name, &lsn, NULL);
    (void)!pawl__delivery_outbox_parse_kept(body, &name, &sequence, &lsn, NULL);
    struct wal_key key = key_of(kind);
    pawl__buf_add_u8(&sealed, WAL_FORMAT);
    pawl__buf_add(&sealed, body);
    pawl__buf_add_u32be(&sealed,
                        pawl__crc32c(pawl__buf_view(&sealed))
                            ^ pawl__crc32c(pawl__delivery_wal_key(&key)));
    if (!sealed.broken) {
        decode(kind, pawl__buf_view(&sealed));
    }
    return 0;
}
