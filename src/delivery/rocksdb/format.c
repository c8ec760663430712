#include "delivery/rocksdb/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/crc32c.h"
#include "base/core/error.h"
#include "base/core/hex.h"

enum { SEAL_BYTES = 4, LSN_BYTES = 8, HASH_BYTES = sizeof(struct delivery_hash) };

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

/* --- what every value has --- */

static void begin(struct pawl__buf *value)
{
    pawl__buf_clear(value);
    pawl__buf_add_u8(value, WAL_FORMAT);
}

static void seal(struct pawl__buf *value, const struct wal_key *key)
{
    if (!value->broken) {
        pawl__buf_add_u32be(
            value, pawl__crc32c(pawl__buf_view(value)) ^ pawl__crc32c(pawl__delivery_wal_key(key)));
    }
}

/* What is left of a value, and whether everything so far was there and legal. */
struct reader {
    pawl_view rest;
    bool ok;
};

/* `name` is how messages call the row. */
static pawl_status unseal(pawl_view value,
                          const struct wal_key *key,
                          const char *name,
                          struct reader *ret_reader,
                          pawl_error *reterr)
{
    pawl_view rest = value;
    pawl_view body = value;
    uint32_t crc = 0;
    uint8_t version = 0;

    if (value.len <= SEAL_BYTES || !pawl__view_take(&rest, value.len - SEAL_BYTES, &body)
        || !pawl__view_take_u32be(&rest, &crc)
        || crc != (pawl__crc32c(body) ^ pawl__crc32c(pawl__delivery_wal_key(key)))
        || !pawl__view_take_u8(&body, &version)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "%s is damaged: its checksum does not fit", name);
    }
    if (version != WAL_FORMAT) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "%s has format %u, this pawl knows %d: use a newer one",
                          name,
                          version,
                          WAL_FORMAT);
    }
    *ret_reader = (struct reader){ .rest = body, .ok = true };
    return PAWL_OK;
}

static pawl_status finish(const struct reader *in, const char *name, pawl_error *reterr)
{
    return in->ok && in->rest.len == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CORRUPT, "%s is damaged: its fields do not fit", name);
}

static uint8_t take_u8(struct reader *in, uint8_t max)
{
    uint8_t value = 0;

    in->ok = in->ok && pawl__view_take_u8(&in->rest, &value) && value <= max;
    return value;
}

static uint32_t take_u32(struct reader *in)
{
    uint32_t value = 0;

    in->ok = in->ok && pawl__view_take_u32be(&in->rest, &value);
    return value;
}

static uint64_t take_u64(struct reader *in)
{
    uint64_t value = 0;

    in->ok = in->ok && pawl__view_take_u64be(&in->rest, &value);
    return value;
}

static void take_bytes(struct reader *in, void *ret_bytes, size_t len)
{
    pawl_view bytes;

    in->ok = in->ok && pawl__view_take(&in->rest, len, &bytes);
    if (in->ok) {
        memcpy(ret_bytes, bytes.data, len);
    }
}

static pawl_view take_text(struct reader *in)
{
    pawl_view text = { NULL, 0 };
    uint32_t len = take_u32(in);

    in->ok = in->ok && pawl__view_take(&in->rest, len, &text);
    return text;
}

static void add_text(struct pawl__buf *value, pawl_view text)
{
    if (text.len > WAL_VALUE_BYTES_MAX) {
        value->broken = true;
        return;
    }
    pawl__buf_add_u32be(value, (uint32_t)text.len);
    pawl__buf_add(value, text);
}

static void add_hash(struct pawl__buf *value, const struct delivery_hash *hash)
{
    pawl__buf_add(value, (pawl_view){ (const char *)hash->bytes, HASH_BYTES });
}

/* Texts of fixed room: up to 255 bytes, none of them NUL. */
static void add_short(struct pawl__buf *value, const char *text, size_t size)
{
    size_t len = strnlen(text, MIN(size - 1, (size_t)UINT8_MAX));

    pawl__buf_add_u8(value, (uint8_t)len);
    pawl__buf_add(value, (pawl_view){ text, len });
}

static void take_short(struct reader *in, char *ret_text, size_t size)
{
    size_t len = take_u8(in, (uint8_t)MIN(size - 1, (size_t)UINT8_MAX));

    memset(ret_text, 0, size);
    if (in->ok) {
        take_bytes(in, ret_text, len);
    }
    in->ok = in->ok && strnlen(ret_text, size) == len;
}

static void add_place(struct pawl__buf *value, const struct delivery_place *place)
{
    pawl__buf_add_u64be(value, (uint64_t)place->created_ns);
    pawl__buf_add_u64be(value, place->sequence);
    pawl__buf_add_u64be(value, (uint64_t)place->stored_ns);
}

static void take_place(struct reader *in, struct delivery_place *ret_place)
{
    ret_place->created_ns = (int64_t)take_u64(in);
    ret_place->sequence = take_u64(in);
    ret_place->stored_ns = (int64_t)take_u64(in);
}

/* --- entries --- */

void pawl__delivery_wal_entry_encode(const struct delivery_entry *entry, struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_entry_key(entry->lsn);

    begin(value);
    pawl__buf_add_u8(value, (uint8_t)entry->admitted);
    pawl__buf_add_u8(value, entry->by_place ? 1 : 0);
    add_hash(value, &entry->key);
    add_hash(value, &entry->payload_hash);
    add_place(value, &entry->place);
    pawl__buf_add_u64be(value, (uint64_t)entry->created_us);
    pawl__buf_add_u64be(value, entry->sequence);
    add_text(value, entry->transaction_id);
    add_text(value, entry->source);
    add_text(value, entry->event_id);
    add_text(value, entry->subject);
    add_text(value, entry->message_id);
    pawl__buf_add_u32be(value, (uint32_t)entry->header_count);
    for (size_t i = 0; i < entry->header_count; i++) {
        add_text(value, entry->headers[i].name);
        add_text(value, entry->headers[i].value);
    }
    add_text(value, entry->payload);
    seal(value, &key);
}

/* A header takes 8 bytes at least, so that a wrong count cannot ask for more memory than the value's own. */
static pawl_status take_headers(struct reader *in,
                                struct pawl__arena *arena,
                                struct delivery_entry *entry,
                                pawl_error *reterr)
{
    enum { HEADER_BYTES_MIN = 8 };
    uint32_t count = take_u32(in);

    in->ok = in->ok && count <= in->rest.len / HEADER_BYTES_MIN;
    if (!in->ok || count == 0) {
        return PAWL_OK;
    }
    struct delivery_header *headers = pawl__arena_take(arena, count * sizeof(*headers));
    TRY(pawl__check_memory(headers, "the headers of an entry", reterr));
    for (uint32_t i = 0; i < count; i++) {
        headers[i].name = take_text(in);
        headers[i].value = take_text(in);
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
    struct reader in;
    char name[64];

    snprintf(name, sizeof(name), "the entry of LSN %" PRIu64, lsn);
    TRY(unseal(value, &key, name, &in, reterr));
    entry.admitted = (enum delivery_admitted)take_u8(&in, DELIVERY_AS_BAD_ID);
    entry.by_place = take_u8(&in, 1) != 0;
    take_bytes(&in, entry.key.bytes, HASH_BYTES);
    take_bytes(&in, entry.payload_hash.bytes, HASH_BYTES);
    take_place(&in, &entry.place);
    entry.created_us = (int64_t)take_u64(&in);
    entry.sequence = take_u64(&in);
    entry.transaction_id = take_text(&in);
    entry.source = take_text(&in);
    entry.event_id = take_text(&in);
    entry.subject = take_text(&in);
    entry.message_id = take_text(&in);
    TRY(take_headers(&in, arena, &entry, reterr));
    entry.payload = take_text(&in);
    TRY(finish(&in, name, reterr));
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

    begin(value);
    pawl__buf_add_u64be(value, row->bytes);
    pawl__buf_add_u32be(value, fate->attempts);
    pawl__buf_add_u64be(value, (uint64_t)fate->last_attempt_us);
    pawl__buf_add_u64be(value, (uint64_t)fate->ended_us);
    add_short(value, fate->last_error, sizeof(fate->last_error));
    add_short(value, fate->failure_reason, sizeof(fate->failure_reason));
    pawl__buf_add_u8(value, row->by_place ? 1 : 0);
    if (row->by_place) {
        add_hash(value, &row->key);
    }
    seal(value, &key);
}

pawl_status pawl__delivery_wal_fate_decode(enum delivery_entry_state state,
                                           delivery_lsn lsn,
                                           pawl_view value,
                                           struct wal_fate_row *ret_row,
                                           pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_fate_key(state, lsn);
    struct wal_fate_row row = { .fate = { .state = state } };
    struct reader in;
    char name[64];

    snprintf(
        name, sizeof(name), "the %s row of LSN %" PRIu64, pawl__delivery_state_name(state), lsn);
    TRY(unseal(value, &key, name, &in, reterr));
    row.bytes = take_u64(&in);
    row.fate.attempts = take_u32(&in);
    row.fate.last_attempt_us = (int64_t)take_u64(&in);
    row.fate.ended_us = (int64_t)take_u64(&in);
    take_short(&in, row.fate.last_error, sizeof(row.fate.last_error));
    take_short(&in, row.fate.failure_reason, sizeof(row.fate.failure_reason));
    row.by_place = take_u8(&in, 1) != 0;
    if (row.by_place) {
        take_bytes(&in, row.key.bytes, HASH_BYTES);
    }
    TRY(finish(&in, name, reterr));
    *ret_row = row;
    return PAWL_OK;
}

/* --- the index --- */

void pawl__delivery_wal_index_encode(const struct delivery_hash *hash,
                                     const struct wal_index_row *row,
                                     struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_index_key(hash);

    begin(value);
    pawl__buf_add_u8(value, row->by_place ? 1 : 0);
    pawl__buf_add_u64be(value, row->epoch);
    pawl__buf_add_u64be(value, row->lsn);
    add_hash(value, &row->payload_hash);
    seal(value, &key);
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
    struct reader in;
    char name[64];

    name_index_row(hash, name);
    TRY(unseal(value, &key, name, &in, reterr));
    row.by_place = take_u8(&in, 1) != 0;
    row.epoch = take_u64(&in);
    row.lsn = take_u64(&in);
    take_bytes(&in, row.payload_hash.bytes, HASH_BYTES);
    TRY(finish(&in, name, reterr));
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

    begin(value);
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
    add_short(value, meta->lease_holder, sizeof(meta->lease_holder));
    pawl__buf_add_u64be(value, (uint64_t)meta->lease_until_us);
    seal(value, &key);
}

pawl_status pawl__delivery_wal_meta_decode(pawl_view value,
                                           struct delivery_wal_meta *ret_meta,
                                           pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_text_key("meta");
    struct delivery_wal_meta meta = { .epoch = 0 };
    struct reader in;

    TRY(unseal(value, &key, META_NAME, &in, reterr));
    take_bytes(&in, meta.wal_id.bytes, sizeof(meta.wal_id));
    take_bytes(&in, meta.sink_id.bytes, sizeof(meta.sink_id));
    meta.epoch = take_u64(&in);
    meta.fence = take_u64(&in);
    meta.applied = take_u64(&in);
    meta.restart_source = take_u8(&in, 1) != 0;
    meta.rewound.lsn = take_u64(&in);
    meta.rewound.sequence = take_u64(&in);
    meta.rewound.fence = take_u64(&in);
    meta.rewound.version = take_u64(&in);
    meta.doubt_to = take_u64(&in);
    meta.begun_at = take_u64(&in);
    meta.running_ns = (int64_t)take_u64(&in);
    take_place(&in, &meta.stream);
    take_short(&in, meta.lease_holder, sizeof(meta.lease_holder));
    meta.lease_until_us = (int64_t)take_u64(&in);
    TRY(finish(&in, META_NAME, reterr));
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

    begin(value);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_u64be(value, numbers[i]);
    }
    seal(value, &key);
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
    struct reader in;
    char name[64];

    snprintf(
        name, sizeof(name), "the row '%s' of the WAL", pawl__delivery_wal_counter_name(counter));
    TRY(unseal(value, &key, name, &in, reterr));
    for (size_t i = 0; i < count; i++) {
        numbers[i] = take_u64(&in);
    }
    TRY(finish(&in, name, reterr));
    *counters = copy;
    return PAWL_OK;
}

#define FORMAT_NAME "the row 'format' of the WAL"
#define FORMAT_MAGIC "pawl consumer WAL"

/* Not versioned like the others: every version can read which one it is. */
void pawl__delivery_wal_format_encode(uint32_t format, struct pawl__buf *value)
{
    struct wal_key key = pawl__delivery_wal_text_key("format");

    begin(value);
    pawl__buf_add_text(value, FORMAT_MAGIC);
    pawl__buf_add_u32be(value, format);
    seal(value, &key);
}

pawl_status pawl__delivery_wal_format_decode(pawl_view value, pawl_error *reterr)
{
    struct wal_key key = pawl__delivery_wal_text_key("format");
    struct reader in;
    pawl_view magic = { NULL, 0 };

    TRY(unseal(value, &key, FORMAT_NAME, &in, reterr));
    in.ok = pawl__view_take(&in.rest, strlen(FORMAT_MAGIC), &magic)
            && pawl__view_is(magic, FORMAT_MAGIC);
    uint32_t format = take_u32(&in);
    TRY(finish(&in, FORMAT_NAME, reterr));
    if (format != WAL_FORMAT) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the WAL has format %" PRIu32 ", this pawl knows %d: use a newer one",
                          format,
                          WAL_FORMAT);
    }
    return PAWL_OK;
}
