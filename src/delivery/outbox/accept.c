/* From events of a caller to entries of the outbox: checked, named, and only those that are new. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/sha256.h"
#include "base/core/sized.h"
#include "delivery/outbox/publisher.h"
#include "net/nats/publish.h"

struct batch {
    struct pawl_publisher *publisher;
    const pawl_outgoing *events;
    size_t count;
    struct outbox_entry *entries; /* of each event; the new ones are moved to the front */
    struct delivery_hash *keys;
    struct outbox_hit *hits;
    struct delivery_batch_keys seen;
    struct pawl__arena arena;
};

static void batch_done(struct batch *batch)
{
    free(batch->entries);
    free(batch->keys);
    free(batch->hits);
    pawl__delivery_batch_keys_done(&batch->seen);
    pawl__arena_done(&batch->arena);
}

static pawl_status batch_begin(struct batch *batch, pawl_error *reterr)
{
    batch->entries = calloc(batch->count, sizeof(*batch->entries));
    batch->keys = calloc(batch->count, sizeof(*batch->keys));
    batch->hits = calloc(batch->count, sizeof(*batch->hits));
    if (batch->entries == NULL || batch->keys == NULL || batch->hits == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch");
    }
    return pawl__delivery_batch_keys_begin(&batch->seen, batch->count, reterr);
}

/* --- checking --- */

/* Goes into a header as it is. */
static pawl_status check_name(const char *what, pawl_view text, pawl_error *reterr)
{
    TRY(pawl__check_view(text, what, reterr));
    if (text.len == 0) {
        return pawl__fail_detail(
            reterr, PAWL_INVALID, PAWL_DETAIL_NULL_ARGUMENT, "%s: is empty", what);
    }
    TRY(pawl__check_bytes(what, text.len, PAWL_PUBLISHER_ID_BYTES_MAX, reterr));
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == '\x7f') {
            return pawl__fail(reterr, PAWL_INVALID, "%s: has a control character in it", what);
        }
    }
    return pawl__view_is_utf8(text) ? PAWL_OK
                                    : pawl__fail(reterr, PAWL_INVALID, "%s: is not UTF-8", what);
}

pawl_status pawl__delivery_publisher_check_source(pawl_view source, pawl_error *reterr)
{
    TRY(check_name("source", source, reterr));
    return memchr(source.data, ':', source.len) == NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "source: must not contain ':'");
}

static bool begins_with(pawl_view name, const char *prefix)
{
    return name.len >= strlen(prefix) && strncasecmp(name.data, prefix, strlen(prefix)) == 0;
}

static pawl_status take_headers(struct batch *batch,
                                const pawl_outgoing *event,
                                struct outbox_entry *entry,
                                pawl_error *reterr)
{
    static const pawl_outgoing_header none = PAWL_OUTGOING_HEADER_INIT;
    const pawl_outgoing_header *given = event->headers;
    size_t count = event->header_count;

    NEED_ARRAY(event->headers, event->header_count, reterr);
    TRY(pawl__check_limit("headers: there are", count, "", PAWL_PUBLISHER_HEADERS_MAX, reterr));
    TRY(pawl__widen_sized(
        "headers", (const void **)&given, count, &none, sizeof(none), &batch->arena, reterr));
    struct delivery_header *headers =
        count == 0 ? NULL : pawl__arena_take(&batch->arena, count * sizeof(*headers));
    if (count > 0) {
        TRY(pawl__check_memory(headers, "headers", reterr));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__nats_check_header(given[i].name, given[i].value, reterr));
        if (begins_with(given[i].name, "Nats-") || begins_with(given[i].name, "Pawl-")) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "header '%.*s': names of 'Nats-' and 'Pawl-' are reserved",
                              VIEW_ARGS(given[i].name));
        }
        headers[i] = (struct delivery_header){ given[i].name, given[i].value };
    }
    entry->headers = headers;
    entry->header_count = count;
    return PAWL_OK;
}

/* "subject", or "subject.{p}". */
static pawl_status take_subject(struct batch *batch,
                                const pawl_outgoing *event,
                                struct outbox_entry *entry,
                                pawl_error *reterr)
{
    char text[OUTBOX_SUBJECT_SIZE];
    struct pawl__buf buf = BUF_OVER(text);
    uint32_t partitions = batch->publisher->options.partitions;
    uint32_t partition = 0;

    NEED_VIEW(event->subject, reterr);
    NEED_VIEW(event->key, reterr);
    pawl__buf_add_text(&buf, "");
    pawl__buf_add(&buf, event->subject);
    if (partitions > 0) {
        TRY(pawl__delivery_outbox_partition(
            event->key.len > 0 ? event->key : event->event_id, partitions, &partition, reterr));
        pawl__buf_add_format(&buf, ".%u", partition);
    }
    TRY(pawl__buf_check(&buf, "subject", reterr));
    if (memchr(text, '\0', buf.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "subject: has a NUL in it");
    }
    TRY(pawl__nats_check_subject(buf.len == 0 ? "" : text, reterr));
    return pawl__arena_copy(&batch->arena, pawl__buf_view(&buf), &entry->subject)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a subject");
}

static pawl_status take_event(struct batch *batch,
                              const pawl_outgoing *event,
                              struct outbox_entry *entry,
                              pawl_error *reterr)
{
    const pawl_publisher_options *options = &batch->publisher->options;

    NEED_VIEW(event->source, reterr);
    NEED_VIEW(event->payload, reterr);
    entry->source = event->source.len > 0 ? event->source : pawl_view_of(options->source);
    entry->event_id = event->event_id;
    entry->sequence = event->sequence;
    entry->payload = event->payload;
    TRY(pawl__delivery_publisher_check_source(entry->source, reterr));
    TRY(check_name("event_id", event->event_id, reterr));
    if (event->sequence > INT64_MAX) {
        return pawl__fail_detail(
            reterr, PAWL_INVALID, PAWL_DETAIL_OUT_OF_RANGE, "sequence: must be below 2^63");
    }
    TRY(pawl__check_bytes("payload", event->payload.len, options->payload_max, reterr));
    TRY(take_subject(batch, event, entry, reterr));
    return take_headers(batch, event, entry, reterr);
}

/* --- naming --- */

static pawl_status name_entry(struct outbox_entry *entry, pawl_error *reterr)
{
    char room[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf id = BUF_OVER(room);
    struct pawl__sha256 hash;

    pawl__delivery_outbox_add_id(entry, &id);
    TRY(pawl__buf_check(&id, "a transaction id", reterr));
    TRY(pawl__delivery_given_key(pawl__buf_view(&id), &entry->key, reterr));
    TRY(pawl__sha256_parts(&entry->payload, 1, &hash, reterr));
    memcpy(entry->payload_hash.bytes, hash.bytes, sizeof(entry->payload_hash.bytes));
    return PAWL_OK;
}

static pawl_status take_events(struct batch *batch, pawl_error *reterr)
{
    int64_t now_us = pawl__wall_us(batch->publisher->clock);

    for (size_t i = 0; i < batch->count; i++) {
        struct outbox_entry *entry = &batch->entries[i];
        pawl_status status = take_event(batch, &batch->events[i], entry, reterr);
        status = status == PAWL_OK ? name_entry(entry, reterr) : status;
        if (status != PAWL_OK) {
            return pawl__mark_index(reterr, i, status);
        }
        entry->created_us = now_us;
        batch->keys[i] = entry->key;
    }
    return PAWL_OK;
}

/* --- only what is new --- */

/* One that is in the outbox, or earlier in the batch. */
static struct outbox_hit find(struct batch *batch, size_t i)
{
    struct delivery_hit in_batch = { .found = false };

    if (!batch->hits[i].found
        && pawl__delivery_batch_keys_find(&batch->seen, &batch->keys[i], 0, &in_batch)) {
        return (struct outbox_hit){ true, in_batch.lsn, in_batch.payload_hash };
    }
    return batch->hits[i];
}

static pawl_status admit(struct batch *batch,
                         uint64_t last,
                         pawl_published *results,
                         size_t *ret_new,
                         pawl_error *reterr)
{
    size_t new = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct outbox_entry entry = batch->entries[i];
        const struct outbox_hit hit = find(batch, i);
        enum outbox_admission admission = pawl__delivery_outbox_admit(&hit, &entry.payload_hash);
        if (admission == OUTBOX_CONFLICT) {
            pawl_status status = pawl__fail_detail(reterr,
                                                   PAWL_CONFLICT,
                                                   PAWL_DETAIL_ID_TAKEN,
                                                   "event '%.*s:%.*s:%llu' was published with "
                                                   "another payload",
                                                   VIEW_ARGS(entry.source),
                                                   VIEW_ARGS(entry.event_id),
                                                   (unsigned long long)entry.sequence);
            return pawl__mark_index(reterr, i, status);
        }
        bool is_new = admission == OUTBOX_NEW;
        results[i] = (pawl_published)PAWL_PUBLISHED_INIT;
        results[i].number = is_new ? last + new + 1 : hit.number;
        results[i].duplicate = !is_new;
        if (is_new) {
            const struct delivery_key key = { entry.key, entry.payload_hash };
            entry.number = results[i].number;
            pawl__delivery_batch_keys_add(&batch->seen, &key, entry.number);
            batch->entries[new ++] = entry;
        }
    }
    *ret_new = new;
    return PAWL_OK;
}

static pawl_status check_room(struct batch *batch,
                              const struct outbox_stats *stats,
                              size_t new,
                              pawl_error *reterr)
{
    uint64_t bytes = stats->pending_bytes + stats->kept_bytes + stats->failed_bytes;
    uint64_t max = batch->publisher->options.bytes_max;

    for (size_t i = 0; i < new; i++) {
        bytes += pawl__delivery_outbox_bytes(&batch->entries[i]);
    }
    if (new == 0 || bytes <= max) {
        return PAWL_OK;
    }
    pawl__fail_detail(
        reterr,
        PAWL_BUSY,
        PAWL_DETAIL_QUEUE_FULL,
        "the outbox is full: it would hold %llu bytes, the limit is %llu; %llu events "
        "wait for the broker, %llu are kept until it has synced them",
        (unsigned long long)bytes,
        (unsigned long long)max,
        (unsigned long long)stats->pending,
        (unsigned long long)stats->kept);
    return PAWL_BUSY;
}

static pawl_status append_new(struct batch *batch, pawl_published *results, pawl_error *reterr)
{
    struct pawl_publisher *publisher = batch->publisher;
    struct outbox_store *store = publisher->store;
    int64_t running_ns =
        publisher->ran_ns + pawl__monotonic_ns(publisher->clock) - publisher->opened_ns;
    struct outbox_stats stats;
    size_t new = 0;

    TRY(store->ops->stats(store, &stats, reterr));
    TRY(store->ops->lookup(store, batch->keys, batch->count, batch->hits, reterr));
    TRY(admit(batch, stats.last, results, &new, reterr));
    TRY(check_room(batch, &stats, new, reterr));
    return new == 0 ? PAWL_OK : store->ops->append(store, batch->entries, new, running_ns, reterr);
}

pawl_status pawl__delivery_publisher_accept(struct pawl_publisher *publisher,
                                            const pawl_outgoing *events,
                                            size_t count,
                                            pawl_published *results,
                                            pawl_error *reterr)
{
    AUTO(batch_done)
    struct batch batch = { .publisher = publisher, .events = events, .count = count };

    TRY(batch_begin(&batch, reterr));
    TRY(take_events(&batch, reterr));
    pawl__lock(&publisher->append_lock);
    pawl_status status = append_new(&batch, results, reterr);
    pawl__unlock(&publisher->append_lock);
    return status;
}
