#include "delivery/rocksdb/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "delivery/rocksdb/row.h"

enum { LSN_BYTES = 8, HASH_BYTES = sizeof(struct delivery_hash) };

/* --- keys --- */

static const char *const prefixes[DELIVERY_STATE_COUNT] = {
    [DELIVERY_PENDING] = "consumer:pending:",
    [DELIVERY_CONFIRMED] = "consumer:confirmed:",
    [DELIVERY_FAILED] = "consumer:failed:",
};

const char *pawl__delivery_state_name(enum delivery_entry_state state)
{
    static const char *const names[DELIVERY_STATE_COUNT] = {
        [DELIVERY_PENDING] = "pending",
        [DELIVERY_CONFIRMED] = "confirmed",
        [DELIVERY_FAILED] = "failed",
    };
    return names[state];
}

pawl_view pawl__delivery_wal_key(const struct wal_key *key)
{
    return (pawl_view){ key->bytes, key->len };
}

static struct wal_key make_key(const char *text, const delivery_lsn *lsn)
{
    struct wal_key key;
    struct pawl__buf buf = BUF_OVER(key.bytes);

    pawl__buf_add_text(&buf, text);
    if (lsn != NULL) {
        pawl__buf_add_u64be(&buf, *lsn);
    }
    REQUIRE(!buf.broken);
    key.len = buf.len;
    return key;
}

struct wal_key pawl__delivery_wal_text_key(const char *name)
{
    return make_key(name, NULL);
}

struct wal_key pawl__delivery_wal_entry_key(delivery_lsn lsn)
{
    return make_key("", &lsn);
}

struct wal_key pawl__delivery_wal_fate_key(enum delivery_entry_state state, delivery_lsn lsn)
{
    return make_key(prefixes[state], &lsn);
}

struct wal_key pawl__delivery_wal_fate_end(enum delivery_entry_state state)
{
    struct wal_key key = make_key(prefixes[state], NULL);

    key.bytes[key.len - 1]++;
    return key;
}

static const char decided_prefix[] = "consumer:decided:";

struct wal_key pawl__delivery_wal_decision_key(delivery_lsn lsn)
{
    return make_key(decided_prefix, &lsn);
}

struct wal_key pawl__delivery_wal_decision_end(void)
{
    struct wal_key key = make_key(decided_prefix, NULL);

    key.bytes[key.len - 1]++;
    return key;
}

struct wal_key pawl__delivery_wal_index_key(const struct delivery_hash *hash)
{
    struct wal_key key = { .len = HASH_BYTES };

    memcpy(key.bytes, hash->bytes, HASH_BYTES);
    return key;
}

static bool parse_key(pawl_view key, const char *prefix, delivery_lsn *ret_lsn)
{
    pawl_view text;
    delivery_lsn lsn = 0;

    if (key.len != strlen(prefix) + LSN_BYTES || !pawl__view_take(&key, strlen(prefix), &text)
        || !pawl__view_is(text, prefix) || !pawl__view_take_u64be(&key, &lsn) || lsn == 0
        || lsn == UINT64_MAX) { /* which stands for "no end" */
        return false;
    }
    *ret_lsn = lsn;
    return true;
}

pawl_status pawl__delivery_wal_parse_fate_key(pawl_view key,
                                              enum delivery_entry_state state,
                                              delivery_lsn *ret_lsn,
                                              pawl_error *reterr)
{
    return parse_key(key, prefixes[state], ret_lsn)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "a key of %zu bytes after '%s' is not an LSN",
                            key.len,
                            prefixes[state]);
}

pawl_status pawl__delivery_wal_parse_decision_key(pawl_view key,
                                                  delivery_lsn *ret_lsn,
                                                  pawl_error *reterr)
{
    return parse_key(key, decided_prefix, ret_lsn)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "a key of %zu bytes after '%s' is not an LSN",
                            key.len,
                            decided_prefix);
}

pawl_status pawl__delivery_wal_parse_entry_key(pawl_view key,
                                               delivery_lsn *ret_lsn,
                                               pawl_error *reterr)
{
    return parse_key(key, "", ret_lsn)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "a key of %zu bytes among the entries is not an LSN",
                            key.len);
}

/* --- what several values have --- */

static pawl_status open_row(pawl_view value,
                            const struct wal_key *key,
                            const char *name,
                            struct delivery_row *ret_row,
                            pawl_error *reterr)
{
    return pawl__delivery_row_open(
        WAL_FORMAT, pawl__delivery_wal_key(key), name, value, ret_row, reterr);
}

static void add_place(struct pawl__buf *value, const struct delivery_place *place)
{
    pawl__buf_add_u64be(value, (uint64_t)place->created_ns);
    pawl__buf_add_u64be(value, place->sequence);
    pawl__buf_add_u64be(value, (uint64_t)place->stored_ns);
}

static void take_place(struct delivery_row *in, struct delivery_place *ret_place)
{
    ret_place->created_ns = (int64_t)pawl__delivery_row_take_u64(in);
    ret_place->sequence = pawl__delivery_row_take_u64(in);
    ret_place->stored_ns = (int64_t)pawl__delivery_row_take_u64(in);
}

/* --- entries --- */

void pawl__delivery_wal_entry_encode(const struct delivery_entry *entry, struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_entry_key(entry->lsn);

    pawl__delivery_row_begin(WAL_FORMAT, value);
    pawl__buf_add_u8(value, (uint8_t)entry->admitted);
    pawl__buf_add_u8(value, entry->by_place ? 1 : 0);
    pawl__delivery_row_add_hash(value, &entry->key);
    pawl__delivery_row_add_hash(value, &entry->payload_hash);
    add_place(value, &entry->place);
    pawl__buf_add_u64be(value, (uint64_t)entry->created_us);
    pawl__buf_add_u64be(value, entry->sequence);
    pawl__delivery_row_add_text(value, entry->transaction_id);
    pawl__delivery_row_add_text(value, entry->source);
    pawl__delivery_row_add_text(value, entry->event_id);
    pawl__delivery_row_add_text(value, entry->subject);
    pawl__delivery_row_add_text(value, entry->message_id);
    pawl__buf_add_u32be(value, (uint32_t)entry->header_count);
    for (size_t i = 0; i < entry->header_count; i++) {
        pawl__delivery_row_add_text(value, entry->headers[i].name);
        pawl__delivery_row_add_text(value, entry->headers[i].value);
    }
    pawl__delivery_row_add_text(value, entry->payload);
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

/* A header takes 8 bytes at least, so that a wrong count cannot ask for more memory than the value's own. */
static pawl_status take_headers(struct delivery_row *in,
                                struct pawl__arena *arena,
                                struct delivery_entry *entry,
                                pawl_error *reterr)
{
    enum { HEADER_BYTES_MIN = 8 };
    uint32_t count = pawl__delivery_row_take_u32(in);

    in->ok = in->ok && count <= in->rest.len / HEADER_BYTES_MIN;
    if (!in->ok || count == 0) {
        return PAWL_OK;
    }
    struct delivery_header *headers = pawl__arena_take(arena, count * sizeof(*headers));
    TRY(pawl__check_memory(headers, "the headers of an entry", reterr));
    for (uint32_t i = 0; i < count; i++) {
        headers[i].name = pawl__delivery_row_take_text(in);
        headers[i].value = pawl__delivery_row_take_text(in);
    }
    entry->headers = headers;
    entry->header_count = count;
    return PAWL_OK;
}

pawl_status pawl__delivery_wal_entry_decode(delivery_lsn lsn,
                                            pawl_view value,
                                            struct pawl__arena *arena,
                                            struct delivery_entry *ret_entry,
                                            pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_entry_key(lsn);
    struct delivery_entry entry = { .lsn = lsn };
    struct delivery_row in;
    char name[64];

    snprintf(name, sizeof(name), "the entry of LSN %" PRIu64, lsn);
    TRY(open_row(value, &key, name, &in, reterr));
    entry.admitted = (enum delivery_admitted)pawl__delivery_row_take_u8(&in, DELIVERY_AS_BAD_ID);
    entry.by_place = pawl__delivery_row_take_u8(&in, 1) != 0;
    pawl__delivery_row_take_bytes(&in, entry.key.bytes, HASH_BYTES);
    pawl__delivery_row_take_bytes(&in, entry.payload_hash.bytes, HASH_BYTES);
    take_place(&in, &entry.place);
    entry.created_us = (int64_t)pawl__delivery_row_take_u64(&in);
    entry.sequence = pawl__delivery_row_take_u64(&in);
    entry.transaction_id = pawl__delivery_row_take_text(&in);
    entry.source = pawl__delivery_row_take_text(&in);
    entry.event_id = pawl__delivery_row_take_text(&in);
    entry.subject = pawl__delivery_row_take_text(&in);
    entry.message_id = pawl__delivery_row_take_text(&in);
    TRY(take_headers(&in, arena, &entry, reterr));
    entry.payload = pawl__delivery_row_take_text(&in);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_entry = entry;
    return PAWL_OK;
}

/* --- fates --- */

void pawl__delivery_wal_fate_encode(delivery_lsn lsn,
                                    const struct wal_fate_row *row,
                                    struct pawl__buf *value)
{
    const struct delivery_fate *fate = &row->fate;
    struct wal_key key = pawl__delivery_wal_fate_key(fate->state, lsn);

    pawl__delivery_row_begin(WAL_FORMAT, value);
    pawl__buf_add_u64be(value, row->bytes);
    pawl__buf_add_u32be(value, fate->attempts);
    pawl__buf_add_u64be(value, (uint64_t)fate->last_attempt_us);
    pawl__buf_add_u64be(value, (uint64_t)fate->ended_us);
    pawl__delivery_row_add_short(value, fate->last_error, sizeof(fate->last_error));
    pawl__delivery_row_add_short(value, fate->failure_reason, sizeof(fate->failure_reason));
    pawl__buf_add_u8(value, row->by_place ? 1 : 0);
    if (row->by_place) {
        pawl__delivery_row_add_hash(value, &row->key);
    }
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

pawl_status pawl__delivery_wal_fate_decode(enum delivery_entry_state state,
                                           delivery_lsn lsn,
                                           pawl_view value,
                                           struct wal_fate_row *ret_row,
                                           pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_fate_key(state, lsn);
    struct wal_fate_row row = { .fate = { .state = state } };
    struct delivery_row in;
    char name[64];

    snprintf(
        name, sizeof(name), "the %s row of LSN %" PRIu64, pawl__delivery_state_name(state), lsn);
    TRY(open_row(value, &key, name, &in, reterr));
    row.bytes = pawl__delivery_row_take_u64(&in);
    row.fate.attempts = pawl__delivery_row_take_u32(&in);
    row.fate.last_attempt_us = (int64_t)pawl__delivery_row_take_u64(&in);
    row.fate.ended_us = (int64_t)pawl__delivery_row_take_u64(&in);
    pawl__delivery_row_take_short(&in, row.fate.last_error, sizeof(row.fate.last_error));
    pawl__delivery_row_take_short(&in, row.fate.failure_reason, sizeof(row.fate.failure_reason));
    row.by_place = pawl__delivery_row_take_u8(&in, 1) != 0;
    if (row.by_place) {
        pawl__delivery_row_take_bytes(&in, row.key.bytes, HASH_BYTES);
    }
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_row = row;
    return PAWL_OK;
}

/* --- decisions --- */

void pawl__delivery_wal_decision_encode(const struct delivery_decision *decision,
                                        struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_decision_key(decision->lsn);

    pawl__delivery_row_begin(WAL_FORMAT, value);
    pawl__buf_add_u8(value, (uint8_t)decision->status);
    pawl__buf_add_u8(value, (uint8_t)decision->resolution);
    pawl__buf_add_u64be(value, (uint64_t)decision->at_us);
    pawl__delivery_row_add_text(value, decision->who);
    pawl__delivery_row_add_text(value, decision->notes);
    pawl__delivery_row_add_text(value, decision->edited_payload);
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

pawl_status pawl__delivery_wal_decision_decode(delivery_lsn lsn,
                                               pawl_view value,
                                               struct delivery_decision *ret_decision,
                                               pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_decision_key(lsn);
    struct delivery_decision decision = { .lsn = lsn };
    struct delivery_row in;
    char name[64];

    snprintf(name, sizeof(name), "the decision on LSN %" PRIu64, lsn);
    TRY(open_row(value, &key, name, &in, reterr));
    decision.status = (enum delivery_failed_status)pawl__delivery_row_take_u8(
        &in, DELIVERY_FAILED_STATUS_COUNT - 1);
    decision.resolution =
        (enum delivery_resolution)pawl__delivery_row_take_u8(&in, DELIVERY_RESOLUTION_COUNT - 1);
    decision.at_us = (int64_t)pawl__delivery_row_take_u64(&in);
    decision.who = pawl__delivery_row_take_text(&in);
    decision.notes = pawl__delivery_row_take_text(&in);
    decision.edited_payload = pawl__delivery_row_take_text(&in);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_decision = decision;
    return PAWL_OK;
}

/* --- the index --- */

void pawl__delivery_wal_index_encode(const struct delivery_hash *hash,
                                     const struct wal_index_row *row,
                                     struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_index_key(hash);

    pawl__delivery_row_begin(WAL_FORMAT, value);
    pawl__buf_add_u8(value, row->by_place ? 1 : 0);
    pawl__buf_add_u64be(value, row->epoch);
    pawl__buf_add_u64be(value, row->lsn);
    pawl__delivery_row_add_hash(value, &row->payload_hash);
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

/* "the index row of 00ff…" */
static void name_index_row(const struct delivery_hash *hash, char ret_name[64])
{
    char digits[2 * HASH_BYTES + 1] = "";

    for (size_t i = 0; i < HASH_BYTES; i++) {
        pawl__hex_byte(hash->bytes[i], &digits[2 * i]);
    }
    snprintf(ret_name, 64, "the index row of key %.32s", digits);
}

pawl_status pawl__delivery_wal_index_decode(const struct delivery_hash *hash,
                                            pawl_view value,
                                            struct wal_index_row *ret_row,
                                            pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_index_key(hash);
    struct wal_index_row row = { .lsn = 0 };
    struct delivery_row in;
    char name[64];

    name_index_row(hash, name);
    TRY(open_row(value, &key, name, &in, reterr));
    row.by_place = pawl__delivery_row_take_u8(&in, 1) != 0;
    row.epoch = pawl__delivery_row_take_u64(&in);
    row.lsn = pawl__delivery_row_take_u64(&in);
    pawl__delivery_row_take_bytes(&in, row.payload_hash.bytes, HASH_BYTES);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_row = row;
    return PAWL_OK;
}

/* --- rows of family meta --- */

#define META_NAME "the row 'meta' of the WAL"

/* A field that is added to the struct and not here would be lost with every restart. */
_Static_assert(sizeof(struct delivery_wal_meta) == 216, "encode the new field of the meta row");

void pawl__delivery_wal_meta_encode(const struct delivery_wal_meta *meta, struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_text_key("meta");

    pawl__delivery_row_begin(WAL_FORMAT, value);
    pawl__buf_add(value, (pawl_view){ (const char *)meta->wal_id.bytes, sizeof(meta->wal_id) });
    pawl__buf_add(value, (pawl_view){ (const char *)meta->sink_id.bytes, sizeof(meta->sink_id) });
    pawl__buf_add_u64be(value, meta->epoch);
    pawl__buf_add_u64be(value, meta->fence);
    pawl__buf_add_u64be(value, meta->applied);
    pawl__buf_add_u8(value, meta->restart_source ? 1 : 0);
    pawl__buf_add_u64be(value, meta->rewound.lsn);
    pawl__buf_add_u64be(value, meta->rewound.sequence);
    pawl__buf_add_u64be(value, meta->rewound.fence);
    pawl__buf_add_u64be(value, meta->rewound.version);
    pawl__buf_add_u64be(value, meta->doubt_to);
    pawl__buf_add_u64be(value, meta->begun_at);
    pawl__buf_add_u64be(value, (uint64_t)meta->running_ns);
    add_place(value, &meta->stream);
    pawl__delivery_row_add_short(value, meta->lease_holder, sizeof(meta->lease_holder));
    pawl__buf_add_u64be(value, (uint64_t)meta->lease_until_us);
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

pawl_status pawl__delivery_wal_meta_decode(pawl_view value,
                                           struct delivery_wal_meta *ret_meta,
                                           pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_text_key("meta");
    struct delivery_wal_meta meta = { .epoch = 0 };
    struct delivery_row in;

    TRY(open_row(value, &key, META_NAME, &in, reterr));
    pawl__delivery_row_take_bytes(&in, meta.wal_id.bytes, sizeof(meta.wal_id));
    pawl__delivery_row_take_bytes(&in, meta.sink_id.bytes, sizeof(meta.sink_id));
    meta.epoch = pawl__delivery_row_take_u64(&in);
    meta.fence = pawl__delivery_row_take_u64(&in);
    meta.applied = pawl__delivery_row_take_u64(&in);
    meta.restart_source = pawl__delivery_row_take_u8(&in, 1) != 0;
    meta.rewound.lsn = pawl__delivery_row_take_u64(&in);
    meta.rewound.sequence = pawl__delivery_row_take_u64(&in);
    meta.rewound.fence = pawl__delivery_row_take_u64(&in);
    meta.rewound.version = pawl__delivery_row_take_u64(&in);
    meta.doubt_to = pawl__delivery_row_take_u64(&in);
    meta.begun_at = pawl__delivery_row_take_u64(&in);
    meta.running_ns = (int64_t)pawl__delivery_row_take_u64(&in);
    take_place(&in, &meta.stream);
    pawl__delivery_row_take_short(&in, meta.lease_holder, sizeof(meta.lease_holder));
    meta.lease_until_us = (int64_t)pawl__delivery_row_take_u64(&in);
    TRY(pawl__delivery_row_finish(&in, META_NAME, reterr));
    *ret_meta = meta;
    return PAWL_OK;
}

const char *pawl__delivery_wal_counter_name(enum wal_counter counter)
{
    static const char *const names[WAL_COUNTER_COUNT] = { "appended", "marked", "cleaned" };

    return names[counter];
}

/* Each part of the counters is nothing but 64-bit numbers. */
static uint64_t *numbers_of(struct wal_counters *counters,
                            enum wal_counter counter,
                            size_t *ret_count)
{
    switch (counter) {
    case WAL_APPENDED:
        *ret_count = sizeof(counters->appended) / sizeof(uint64_t);
        return &counters->appended.last;
    case WAL_MARKED:
        *ret_count = sizeof(counters->marked) / sizeof(uint64_t);
        return counters->marked.entries;
    default:
        *ret_count = sizeof(counters->cleaned) / sizeof(uint64_t);
        return &counters->cleaned.cleaned;
    }
}

void pawl__delivery_wal_counter_encode(enum wal_counter counter,
                                       const struct wal_counters *counters,
                                       struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_text_key(pawl__delivery_wal_counter_name(counter));
    struct wal_counters copy = *counters;
    size_t count = 0;
    const uint64_t *numbers = numbers_of(&copy, counter, &count);

    pawl__delivery_row_begin(WAL_FORMAT, value);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_u64be(value, numbers[i]);
    }
    pawl__delivery_row_seal(pawl__delivery_wal_key(&key), value);
}

pawl_status pawl__delivery_wal_counter_decode(enum wal_counter counter,
                                              pawl_view value,
                                              struct wal_counters *counters,
                                              pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_text_key(pawl__delivery_wal_counter_name(counter));
    struct wal_counters copy = *counters;
    size_t count = 0;
    uint64_t *numbers = numbers_of(&copy, counter, &count);
    struct delivery_row in;
    char name[64];

    snprintf(
        name, sizeof(name), "the row '%s' of the WAL", pawl__delivery_wal_counter_name(counter));
    TRY(open_row(value, &key, name, &in, reterr));
    for (size_t i = 0; i < count; i++) {
        numbers[i] = pawl__delivery_row_take_u64(&in);
    }
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *counters = copy;
    return PAWL_OK;
}

#define FORMAT_MAGIC "pawl consumer WAL"

void pawl__delivery_wal_format_encode(uint32_t format, struct pawl__buf *value)
{
    pawl__delivery_row_format_encode(FORMAT_MAGIC, format, value);
}

pawl_status pawl__delivery_wal_format_decode(pawl_view value, pawl_error *reterr)
{
    return pawl__delivery_row_format_decode(FORMAT_MAGIC, WAL_FORMAT, value, reterr);
}
