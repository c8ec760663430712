#include <inttypes.h>

#include "base/core/error.h"
#include "delivery/outbox/store.h"

enum { ENTRY_BYTES = 128 }; /* of the rows of an entry, beside its texts */

uint64_t pawl__delivery_outbox_bytes(const struct outbox_entry *entry)
{
    uint64_t bytes = ENTRY_BYTES + entry->source.len + entry->event_id.len + entry->subject.len
                     + entry->payload.len;

    for (size_t i = 0; i < entry->header_count; i++) {
        bytes += entry->headers[i].name.len + entry->headers[i].value.len;
    }
    return bytes;
}

void pawl__delivery_outbox_add_id(const struct outbox_entry *entry, struct pawl__buf *text)
{
    pawl__buf_add(text, entry->source);
    pawl__buf_add_char(text, ':');
    pawl__buf_add(text, entry->event_id);
    pawl__buf_add_format(text, ":%" PRIu64, entry->sequence);
}

void pawl__delivery_outbox_read_done(struct outbox_read *read)
{
    pawl__arena_done(&read->arena);
    read->entry = (struct outbox_entry){ .number = 0 };
}

static bool copy_headers(struct outbox_read *read, const struct outbox_entry *entry)
{
    struct delivery_header *headers = NULL;
    bool ok = true;

    if (entry->header_count > 0) {
        headers = pawl__arena_take(&read->arena, entry->header_count * sizeof(*headers));
        ok = headers != NULL;
    }
    for (size_t i = 0; ok && i < entry->header_count; i++) {
        ok = pawl__arena_copy(&read->arena, entry->headers[i].name, &headers[i].name)
             && pawl__arena_copy(&read->arena, entry->headers[i].value, &headers[i].value);
    }
    read->entry.headers = headers;
    return ok;
}

pawl_status pawl__delivery_outbox_read_copy(struct outbox_read *read,
                                            const struct outbox_entry *entry,
                                            pawl_error *reterr)
{
    pawl__arena_clear(&read->arena);
    read->entry = *entry;
    bool ok = pawl__arena_copy(&read->arena, entry->source, &read->entry.source)
              && pawl__arena_copy(&read->arena, entry->event_id, &read->entry.event_id)
              && pawl__arena_copy(&read->arena, entry->subject, &read->entry.subject)
              && pawl__arena_copy(&read->arena, entry->payload, &read->entry.payload)
              && copy_headers(read, entry);
    return ok ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for an entry of the outbox");
}
