#include "lib/wal_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const struct delivery_rocksdb_options wal_options = {
    .memtable_bytes = 1 << 20,
    .free_space_min = 1 << 20,
};

static void open_wal(struct wal_fixture *f)
{
    if (f->in_memory) {
        f->wal = &f->memory.base;
        return;
    }
    assert_ok(pawl__delivery_rocksdb_wal_open(f->path, &wal_options, &f->wal, &f->error),
              &f->error);
}

void wal_fixture_open(struct wal_fixture *f, bool in_memory)
{
    *f = (struct wal_fixture){ .in_memory = in_memory, .meta = { .epoch = 1 } };
    f->memory = pawl__delivery_memory_wal();
    assert_ok(tempdir_make(f->dir, "wal", &f->error), &f->error);
    snprintf(f->path, sizeof(f->path), "%s/orders", f->dir);
    open_wal(f);
}

void wal_fixture_close(struct wal_fixture *f)
{
    if (f->wal != NULL) {
        f->wal->ops->close(f->wal);
    }
    pawl__delivery_memory_wal_done(&f->memory);
    pawl__delivery_page_done(&f->page);
    tempdir_remove(f->dir);
}

void wal_reopen(struct wal_fixture *f)
{
    f->wal->ops->close(f->wal);
    f->wal = NULL;
    open_wal(f);
}

static struct delivery_hash hash_of(uint64_t number, uint8_t kind)
{
    struct delivery_hash hash = { { 0 } };

    for (size_t i = 0; i < sizeof(hash.bytes); i++) {
        hash.bytes[i] = (uint8_t)((number * 0x9E3779B97F4A7C15U) >> (8 * (i % 8)));
    }
    hash.bytes[8] = kind;
    memcpy(&hash.bytes[9], &number, 7);
    return hash;
}

struct delivery_key wal_key_of(uint64_t number)
{
    return (struct delivery_key){ hash_of(number, 1), hash_of(number, 2) };
}

void wal_sample(struct wal_sample *sample, delivery_lsn lsn, uint64_t number)
{
    struct delivery_key key = wal_key_of(number);

    snprintf(sample->id, sizeof(sample->id), "order-%" PRIu64, number);
    snprintf(sample->transaction, sizeof(sample->transaction), "shop:%s:0", sample->id);
    snprintf(sample->payload,
             sizeof(sample->payload),
             "{\"order\":%" PRIu64 ",\"note\":\"%.*s\"}",
             number,
             (int)(number % 90),
             "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiii"
             "iiiii");
    sample->headers[0] =
        (struct delivery_header){ pawl_view_of("Nats-Msg-Id"), pawl_view_of(sample->id) };
    sample->headers[1] = (struct delivery_header){ pawl_view_of("Trace"), pawl_view_of("") };
    sample->entry = (struct delivery_entry){
        .lsn = lsn,
        .key = key.key,
        .payload_hash = key.payload_hash,
        .place = { .created_ns = 77, .sequence = number, .stored_ns = -5 },
        .created_us = 1700000000000000,
        .sequence = number,
        .transaction_id = pawl_view_of(sample->transaction),
        .source = pawl_view_of("shop"),
        .event_id = pawl_view_of(sample->id),
        .subject = pawl_view_of("orders.new"),
        .message_id = pawl_view_of(sample->id),
        .headers = sample->headers,
        .header_count = number % 3,
        .payload = pawl_view_of(sample->payload),
    };
}

void wal_append(struct wal_fixture *f, delivery_lsn first, delivery_lsn last)
{
    size_t count = (size_t)(last - first + 1);
    struct wal_sample *samples = calloc(count, sizeof(*samples));
    struct delivery_entry *entries = calloc(count, sizeof(*entries));

    assert_non_null(samples);
    assert_non_null(entries);
    for (size_t i = 0; i < count; i++) {
        wal_sample(&samples[i], first + i, first + i);
        entries[i] = samples[i].entry;
    }
    assert_ok(f->wal->ops->append(f->wal, entries, count, &f->meta, &f->error), &f->error);
    free(entries);
    free(samples);
}

void wal_mark(struct wal_fixture *f, delivery_lsn lsn, enum delivery_entry_state state)
{
    struct delivery_fate fate = { .state = state, .attempts = 1 };

    assert_ok(f->wal->ops->mark(f->wal, &lsn, &fate, 1, &f->error), &f->error);
}

const char *wal_lsns(struct wal_fixture *f, delivery_lsn from, delivery_lsn to, unsigned states)
{
    static char text[1024];
    static const char *const letters[] = { "", "c", "f" };
    size_t len = 0;
    struct delivery_range range = {
        .from = from, .to = to, .states = states, .entries_max = 100, .bytes_max = SIZE_MAX
    };

    assert_ok(f->wal->ops->read(f->wal, &range, &f->page, &f->error), &f->error);
    text[0] = '\0';
    for (size_t i = 0; i < f->page.count && len < sizeof(text); i++) {
        const struct delivery_entry *entry = &f->page.entries[i];
        len += (size_t)snprintf(&text[len],
                                sizeof(text) - len,
                                "%s%" PRIu64 "%s",
                                i == 0 ? "" : " ",
                                entry->lsn,
                                letters[entry->fate.state]);
    }
    return text;
}

static void assert_view(pawl_view a, pawl_view b)
{
    assert_int_equal(a.len, b.len);
    if (a.len > 0) {
        assert_memory_equal(a.data, b.data, a.len);
    }
}

void wal_assert_entry(const struct delivery_entry *entry, delivery_lsn lsn, uint64_t number)
{
    struct wal_sample sample;

    wal_sample(&sample, lsn, number);
    assert_int_equal(entry->lsn, lsn);
    assert_int_equal(entry->admitted, sample.entry.admitted);
    assert_true(pawl__delivery_hash_equal(&entry->key, &sample.entry.key));
    assert_true(pawl__delivery_hash_equal(&entry->payload_hash, &sample.entry.payload_hash));
    assert_memory_equal(&entry->place, &sample.entry.place, sizeof(entry->place));
    assert_int_equal(entry->created_us, sample.entry.created_us);
    assert_int_equal(entry->sequence, number);
    assert_view(entry->transaction_id, sample.entry.transaction_id);
    assert_view(entry->source, sample.entry.source);
    assert_view(entry->event_id, sample.entry.event_id);
    assert_view(entry->subject, sample.entry.subject);
    assert_view(entry->message_id, sample.entry.message_id);
    assert_view(entry->payload, sample.entry.payload);
    assert_int_equal(entry->header_count, sample.entry.header_count);
    for (size_t i = 0; i < entry->header_count; i++) {
        assert_view(entry->headers[i].name, sample.headers[i].name);
        assert_view(entry->headers[i].value, sample.headers[i].value);
    }
}

struct delivery_wal_stats wal_stats(struct wal_fixture *f)
{
    struct delivery_wal_stats stats;

    assert_ok(f->wal->ops->stats(f->wal, &stats, &f->error), &f->error);
    return stats;
}
