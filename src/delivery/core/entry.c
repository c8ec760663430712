#include "delivery/core/entry.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/sha256.h"

void pawl__delivery_entry_of(const struct delivery_message *message,
                             const struct delivery_identity *identity,
                             const struct delivery_hash *key,
                             bool is_conflict,
                             struct delivery_entry *ret_entry)
{
    bool is_bad = identity->kind == DELIVERY_ID_BAD;

    *ret_entry = (struct delivery_entry){
        .admitted = is_conflict ? DELIVERY_AS_CONFLICT
                    : is_bad    ? DELIVERY_AS_BAD_ID
                                : DELIVERY_AS_EVENT,
        .by_place = identity->kind != DELIVERY_ID_GIVEN,
        .key = *key,
        .payload_hash = identity->payload,
        .place = message->place,
        .sequence = identity->sequence,
        .transaction_id = identity->transaction_id,
        .source = identity->source,
        .event_id = identity->event_id,
        .subject = message->subject,
        .message_id = pawl__delivery_header(message, DELIVERY_HEADER_MESSAGE_ID),
        .headers = message->headers,
        .header_count = message->header_count,
        .payload = message->payload,
    };
}

pawl_status pawl__delivery_entry_id(const struct delivery_uuid *wal_id,
                                    delivery_lsn lsn,
                                    struct delivery_uuid *ret_id,
                                    pawl_error *reterr)
{
    char number[9];
    struct pawl__buf lsn_bytes = BUF_OVER(number);
    struct pawl__sha256 hash;

    pawl__buf_add_u64be(&lsn_bytes, lsn);
    pawl_view parts[] = {
        { (const char *)wal_id->bytes, sizeof(wal_id->bytes) },
        pawl__buf_view(&lsn_bytes),
    };
    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &hash, reterr));
    memcpy(ret_id->bytes, hash.bytes, sizeof(ret_id->bytes));
    ret_id->bytes[6] = (uint8_t)(0x80 | (ret_id->bytes[6] & 0x0f)); /* version 8 */
    ret_id->bytes[8] = (uint8_t)(0x80 | (ret_id->bytes[8] & 0x3f)); /* variant of RFC 9562 */
    return PAWL_OK;
}

enum { ENTRY_OVERHEAD = 200 }; /* of what has a fixed size */

pawl_status pawl__delivery_entry_names(const struct delivery_entry *entry,
                                       struct delivery_names *ret_names,
                                       pawl_error *reterr)
{
    struct delivery_names names = { .id = entry->key };

    if (entry->admitted == DELIVERY_AS_CONFLICT && !entry->by_place) {
        TRY(pawl__delivery_given_key(entry->transaction_id, &names.id, reterr));
    }
    TRY(pawl__delivery_conflict_key(&names.id, &entry->payload_hash, &names.conflict, reterr));
    *ret_names = names;
    return PAWL_OK;
}

size_t pawl__delivery_entry_bytes(const struct delivery_entry *entry)
{
    size_t bytes = ENTRY_OVERHEAD + entry->transaction_id.len + entry->source.len
                   + entry->event_id.len + entry->subject.len + entry->message_id.len
                   + entry->payload.len;

    for (size_t i = 0; i < entry->header_count; i++) {
        bytes += entry->headers[i].name.len + entry->headers[i].value.len;
    }
    return bytes;
}

static bool copy_headers(const struct delivery_entry *entry,
                         struct pawl__arena *arena,
                         struct delivery_entry *copy)
{
    struct delivery_header *headers =
        pawl__arena_take(arena, (entry->header_count + 1) * sizeof(*headers));

    if (headers == NULL) {
        return false;
    }
    for (size_t i = 0; i < entry->header_count; i++) {
        if (!pawl__arena_copy(arena, entry->headers[i].name, &headers[i].name)
            || !pawl__arena_copy(arena, entry->headers[i].value, &headers[i].value)) {
            return false;
        }
    }
    copy->headers = headers;
    return true;
}

pawl_status pawl__delivery_entry_copy(const struct delivery_entry *entry,
                                      struct pawl__arena *arena,
                                      struct delivery_entry *ret_copy,
                                      pawl_error *reterr)
{
    struct delivery_entry copy = *entry;

    if (!pawl__arena_copy(arena, entry->transaction_id, &copy.transaction_id)
        || !pawl__arena_copy(arena, entry->source, &copy.source)
        || !pawl__arena_copy(arena, entry->event_id, &copy.event_id)
        || !pawl__arena_copy(arena, entry->subject, &copy.subject)
        || !pawl__arena_copy(arena, entry->message_id, &copy.message_id)
        || !pawl__arena_copy(arena, entry->payload, &copy.payload)
        || !copy_headers(entry, arena, &copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an entry of the WAL");
    }
    *ret_copy = copy;
    return PAWL_OK;
}

void pawl__delivery_page_clear(struct delivery_page *page)
{
    pawl__arena_clear(&page->arena);
    page->count = 0;
    page->bytes = 0;
}

void pawl__delivery_page_done(struct delivery_page *page)
{
    pawl__arena_done(&page->arena);
    free(page->entries);
    *page = (struct delivery_page){ .entries = NULL };
}

pawl_status pawl__delivery_page_add(struct delivery_page *page,
                                    const struct delivery_entry *entry,
                                    pawl_error *reterr)
{
    struct delivery_entry *entries =
        pawl__grow(page->entries, page->count, &page->room, sizeof(*entries));

    TRY(pawl__check_memory(entries, "a page of the WAL", reterr));
    page->entries = entries;
    TRY(pawl__delivery_entry_copy(entry, &page->arena, &entries[page->count], reterr));
    page->count++;
    page->bytes += pawl__delivery_entry_bytes(entry);
    return PAWL_OK;
}
