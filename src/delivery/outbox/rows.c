#include "delivery/outbox/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "delivery/rocksdb/row.h"

enum { NUMBER_BYTES = 8, HASH_BYTES = sizeof(struct delivery_hash), ROW_NAME_SIZE = 64 };

/* --- keys --- */

pawl_view pawl__delivery_outbox_key(const struct outbox_key *key)
{
    return (pawl_view){ key->bytes, key->len };
}

/* `end` comes after the name: NUL before numbers, and the byte above it after all of them. */
static struct outbox_key name_key(pawl_view name, char end, const uint64_t *numbers, size_t count)
{
    struct outbox_key key;
    struct pawl__buf buf = BUF_OVER(key.bytes);

    pawl__buf_add(&buf, name);
    pawl__buf_add_char(&buf, end);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_u64be(&buf, numbers[i]);
    }
    REQUIRE(!buf.broken);
    key.len = buf.len;
    return key;
}

struct outbox_key pawl__delivery_outbox_text_key(const char *name)
{
    struct outbox_key key = { .len = strlen(name) };

    REQUIRE(key.len <= sizeof(key.bytes));
    memcpy(key.bytes, name, key.len);
    return key;
}

struct outbox_key pawl__delivery_outbox_number_key(uint64_t number)
{
    struct outbox_key key;
    struct pawl__buf buf = BUF_OVER(key.bytes);

    pawl__buf_add_u64be(&buf, number);
    key.len = buf.len;
    return key;
}

struct outbox_key pawl__delivery_outbox_hash_key(const struct delivery_hash *hash)
{
    struct outbox_key key = { .len = HASH_BYTES };

    memcpy(key.bytes, hash->bytes, HASH_BYTES);
    return key;
}

struct outbox_key pawl__delivery_outbox_pending_key(pawl_view subject, uint64_t number)
{
    return name_key(subject, '\0', &number, 1);
}

struct outbox_key pawl__delivery_outbox_kept_key(pawl_view stream,
                                                 uint64_t sequence,
                                                 uint64_t number)
{
    const uint64_t numbers[] = { sequence, number };

    return name_key(stream, '\0', numbers, COUNT_OF(numbers));
}

struct outbox_key pawl__delivery_outbox_name_end(pawl_view name)
{
    return name_key(name, '\1', NULL, 0);
}

pawl_status pawl__delivery_outbox_parse_number(pawl_view key,
                                               uint64_t *ret_number,
                                               pawl_error *reterr)
{
    return key.len == NUMBER_BYTES && pawl__view_take_u64be(&key, ret_number)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "a key of %zu bytes is not a number of the outbox",
                            key.len);
}

static pawl_status parse_name(
    pawl_view key, pawl_view *ret_name, uint64_t *ret_numbers, size_t count, pawl_error *reterr)
{
    size_t tail = 1 + count * NUMBER_BYTES;
    pawl_view rest = key;
    pawl_view nul;
    bool ok = key.len > tail && pawl__view_take(&rest, key.len - tail, ret_name)
              && pawl__view_take(&rest, 1, &nul) && nul.data[0] == '\0'
              && memchr(ret_name->data, '\0', ret_name->len) == NULL;

    for (size_t i = 0; ok && i < count; i++) {
        ok = pawl__view_take_u64be(&rest, &ret_numbers[i]);
    }
    return ok ? PAWL_OK
              : pawl__fail(
                  reterr, PAWL_CORRUPT, "a key of %zu bytes is not one of the outbox", key.len);
}

pawl_status pawl__delivery_outbox_parse_pending(pawl_view key,
                                                pawl_view *ret_subject,
                                                uint64_t *ret_number,
                                                pawl_error *reterr)
{
    return parse_name(key, ret_subject, ret_number, 1, reterr);
}

pawl_status pawl__delivery_outbox_parse_kept(pawl_view key,
                                             pawl_view *ret_stream,
                                             uint64_t *ret_sequence,
                                             uint64_t *ret_number,
                                             pawl_error *reterr)
{
    uint64_t numbers[2] = { 0, 0 };

    TRY(parse_name(key, ret_stream, numbers, COUNT_OF(numbers), reterr));
    *ret_sequence = numbers[0];
    *ret_number = numbers[1];
    return PAWL_OK;
}

/* --- entries --- */

static void name_row(const char *what, uint64_t number, char ret_name[ROW_NAME_SIZE])
{
    snprintf(ret_name, ROW_NAME_SIZE, "%.24s %" PRIu64 " of the outbox", what, number);
}

void pawl__delivery_outbox_entry_encode(const struct outbox_entry *entry, struct pawl__buf *value)
{
    struct outbox_key key = pawl__delivery_outbox_number_key(entry->number);

    pawl__delivery_row_begin(OUTBOX_FORMAT, value);
    pawl__delivery_row_add_hash(value, &entry->key);
    pawl__delivery_row_add_hash(value, &entry->payload_hash);
    pawl__buf_add_u64be(value, (uint64_t)entry->created_us);
    pawl__buf_add_u64be(value, entry->sequence);
    pawl__delivery_row_add_text(value, entry->source);
    pawl__delivery_row_add_text(value, entry->event_id);
    pawl__delivery_row_add_text(value, entry->subject);
    pawl__buf_add_u8(value, (uint8_t)entry->header_count);
    for (size_t i = 0; i < entry->header_count; i++) {
        pawl__delivery_row_add_text(value, entry->headers[i].name);
        pawl__delivery_row_add_text(value, entry->headers[i].value);
    }
    pawl__delivery_row_add_text(value, entry->payload);
    pawl__delivery_row_seal(pawl__delivery_outbox_key(&key), value);
}

static pawl_status take_headers(struct delivery_row *in,
                                struct pawl__arena *arena,
                                struct outbox_entry *entry,
                                pawl_error *reterr)
{
    size_t count = pawl__delivery_row_take_u8(in, DELIVERY_HEADERS_MAX);

    if (!in->ok || count == 0) {
        return PAWL_OK;
    }
    struct delivery_header *headers = pawl__arena_take(arena, count * sizeof(*headers));
    TRY(pawl__check_memory(headers, "the headers of an entry", reterr));
    for (size_t i = 0; i < count; i++) {
        headers[i].name = pawl__delivery_row_take_text(in);
        headers[i].value = pawl__delivery_row_take_text(in);
    }
    entry->headers = headers;
    entry->header_count = count;
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_entry_decode(uint64_t number,
                                               pawl_view value,
                                               struct pawl__arena *arena,
                                               struct outbox_entry *ret_entry,
                                               pawl_error *reterr)
{
    struct outbox_key key = pawl__delivery_outbox_number_key(number);
    struct outbox_entry entry = { .number = number };
    struct delivery_row in;
    char name[ROW_NAME_SIZE];

    name_row("entry", number, name);
    TRY(pawl__delivery_row_open(
        OUTBOX_FORMAT, pawl__delivery_outbox_key(&key), name, value, &in, reterr));
    pawl__delivery_row_take_bytes(&in, entry.key.bytes, HASH_BYTES);
    pawl__delivery_row_take_bytes(&in, entry.payload_hash.bytes, HASH_BYTES);
    entry.created_us = (int64_t)pawl__delivery_row_take_u64(&in);
    entry.sequence = pawl__delivery_row_take_u64(&in);
    entry.source = pawl__delivery_row_take_text(&in);
    entry.event_id = pawl__delivery_row_take_text(&in);
    entry.subject = pawl__delivery_row_take_text(&in);
    TRY(take_headers(&in, arena, &entry, reterr));
    entry.payload = pawl__delivery_row_take_text(&in);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_entry = entry;
    return PAWL_OK;
}

/* --- small rows --- */

void pawl__delivery_outbox_numbers_encode(const struct outbox_key *key,
                                          const struct outbox_numbers *numbers,
                                          struct pawl__buf *value)
{
    pawl__delivery_row_begin(OUTBOX_FORMAT, value);
    for (size_t i = 0; i < numbers->count; i++) {
        pawl__buf_add_u64be(value, numbers->at[i]);
    }
    pawl__delivery_row_seal(pawl__delivery_outbox_key(key), value);
}

pawl_status pawl__delivery_outbox_numbers_decode(pawl_view key,
                                                 const char *name,
                                                 pawl_view value,
                                                 struct outbox_numbers *numbers,
                                                 pawl_error *reterr)
{
    struct delivery_row in;

    TRY(pawl__delivery_row_open(OUTBOX_FORMAT, key, name, value, &in, reterr));
    for (size_t i = 0; i < numbers->count; i++) {
        numbers->at[i] = pawl__delivery_row_take_u64(&in);
    }
    return pawl__delivery_row_finish(&in, name, reterr);
}

void pawl__delivery_outbox_failed_encode(const struct outbox_failed_row *row,
                                         struct pawl__buf *value)
{
    struct outbox_key key = pawl__delivery_outbox_number_key(row->failed.number);

    pawl__delivery_row_begin(OUTBOX_FORMAT, value);
    pawl__buf_add_u64be(value, row->bytes);
    pawl__buf_add_u64be(value, (uint64_t)row->failed.failed_us);
    pawl__delivery_row_add_short(value, row->failed.reason, sizeof(row->failed.reason));
    pawl__delivery_row_seal(pawl__delivery_outbox_key(&key), value);
}

pawl_status pawl__delivery_outbox_failed_decode(uint64_t number,
                                                pawl_view value,
                                                struct outbox_failed_row *ret_row,
                                                pawl_error *reterr)
{
    struct outbox_key key = pawl__delivery_outbox_number_key(number);
    struct outbox_failed_row row = { .failed = { .number = number } };
    struct delivery_row in;
    char name[ROW_NAME_SIZE];

    name_row("failed row", number, name);
    TRY(pawl__delivery_row_open(
        OUTBOX_FORMAT, pawl__delivery_outbox_key(&key), name, value, &in, reterr));
    row.bytes = pawl__delivery_row_take_u64(&in);
    row.failed.failed_us = (int64_t)pawl__delivery_row_take_u64(&in);
    pawl__delivery_row_take_short(&in, row.failed.reason, sizeof(row.failed.reason));
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_row = row;
    return PAWL_OK;
}

void pawl__delivery_outbox_index_encode(const struct delivery_hash *key,
                                        const struct outbox_hit *hit,
                                        struct pawl__buf *value)
{
    struct outbox_key stored = pawl__delivery_outbox_hash_key(key);

    pawl__delivery_row_begin(OUTBOX_FORMAT, value);
    pawl__buf_add_u64be(value, hit->number);
    pawl__delivery_row_add_hash(value, &hit->payload_hash);
    pawl__delivery_row_seal(pawl__delivery_outbox_key(&stored), value);
}

pawl_status pawl__delivery_outbox_index_decode(const struct delivery_hash *key,
                                               pawl_view value,
                                               struct outbox_hit *ret_hit,
                                               pawl_error *reterr)
{
    static const char name[] = "an index row of the outbox";
    struct outbox_key stored = pawl__delivery_outbox_hash_key(key);
    struct outbox_hit hit = { .found = true };
    struct delivery_row in;

    TRY(pawl__delivery_row_open(
        OUTBOX_FORMAT, pawl__delivery_outbox_key(&stored), name, value, &in, reterr));
    hit.number = pawl__delivery_row_take_u64(&in);
    pawl__delivery_row_take_bytes(&in, hit.payload_hash.bytes, HASH_BYTES);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_hit = hit;
    return PAWL_OK;
}

void pawl__delivery_outbox_id_encode(uint64_t number,
                                     const struct delivery_hash *key,
                                     struct pawl__buf *value)
{
    struct outbox_key stored = pawl__delivery_outbox_number_key(number);

    pawl__delivery_row_begin(OUTBOX_FORMAT, value);
    pawl__delivery_row_add_hash(value, key);
    pawl__delivery_row_seal(pawl__delivery_outbox_key(&stored), value);
}

pawl_status pawl__delivery_outbox_id_decode(uint64_t number,
                                            pawl_view value,
                                            struct delivery_hash *ret_key,
                                            pawl_error *reterr)
{
    struct outbox_key stored = pawl__delivery_outbox_number_key(number);
    struct delivery_row in;
    struct delivery_hash key = { { 0 } };
    char name[ROW_NAME_SIZE];

    name_row("id row", number, name);
    TRY(pawl__delivery_row_open(
        OUTBOX_FORMAT, pawl__delivery_outbox_key(&stored), name, value, &in, reterr));
    pawl__delivery_row_take_bytes(&in, key.bytes, HASH_BYTES);
    TRY(pawl__delivery_row_finish(&in, name, reterr));
    *ret_key = key;
    return PAWL_OK;
}
