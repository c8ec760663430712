#include "lib/outbox_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/sha256.h"

const struct delivery_rocksdb_options outbox_options = { .memtable_bytes = 1 << 20,
                                                         .background_jobs = 1 };

static void open_store(struct outbox_fixture *f)
{
    if (f->in_memory) {
        f->store = pawl__delivery_outbox_memory_open(&f->memory);
        return;
    }
    assert_ok(pawl__delivery_outbox_rocksdb_open(f->path, &outbox_options, &f->store, &f->error),
              &f->error);
}

void outbox_fixture_open(struct outbox_fixture *f, bool in_memory)
{
    f->in_memory = in_memory;
    assert_ok(tempdir_make(f->dir, "pawl-outbox", &f->error), &f->error);
    snprintf(f->path, sizeof(f->path), "%s/outbox", f->dir);
    open_store(f);
}

void outbox_fixture_close(struct outbox_fixture *f)
{
    f->store->ops->close(f->store);
    pawl__delivery_outbox_memory_done(&f->memory);
    pawl__delivery_outbox_read_done(&f->read);
    tempdir_remove(f->dir);
}

void outbox_reopen(struct outbox_fixture *f)
{
    f->store->ops->close(f->store);
    open_store(f);
}

void outbox_sample(struct outbox_sample *sample, uint64_t number, const char *subject)
{
    pawl_error error = PAWL_ERROR_INIT;
    char text[64];
    struct pawl__buf id = BUF_OVER(text);
    struct pawl__sha256 hash;

    snprintf(sample->id, sizeof(sample->id), "e%" PRIu64, number);
    snprintf(sample->payload, sizeof(sample->payload), "{\"n\":%" PRIu64 "}", number);
    sample->header = (struct delivery_header){ pawl_view_of("Kind"), pawl_view_of("test") };
    sample->entry = (struct outbox_entry){ .number = number,
                                           .created_us = 1000,
                                           .sequence = 7,
                                           .source = pawl_view_of("s"),
                                           .event_id = pawl_view_of(sample->id),
                                           .subject = pawl_view_of(subject),
                                           .headers = &sample->header,
                                           .header_count = 1,
                                           .payload = pawl_view_of(sample->payload) };
    pawl__delivery_outbox_add_id(&sample->entry, &id);
    assert_ok(pawl__delivery_given_key(pawl__buf_view(&id), &sample->entry.key, &error), &error);
    assert_ok(pawl__sha256_parts(&sample->entry.payload, 1, &hash, &error), &error);
    memcpy(sample->entry.payload_hash.bytes, hash.bytes, sizeof(sample->entry.payload_hash));
}

void outbox_append(struct outbox_fixture *f, uint64_t last, const char *subject)
{
    uint64_t first = outbox_stats(f).last + 1;
    size_t count = (size_t)(last + 1 - first);
    struct outbox_sample *samples = calloc(count, sizeof(*samples));
    struct outbox_entry *entries = calloc(count, sizeof(*entries));

    for (size_t i = 0; i < count; i++) {
        outbox_sample(&samples[i], first + i, subject);
        entries[i] = samples[i].entry;
    }
    assert_ok(f->store->ops->append(f->store, entries, count, 0, &f->error), &f->error);
    free(samples);
    free(entries);
}

void outbox_keep(struct outbox_fixture *f, const char *stream, uint64_t number, uint64_t sequence)
{
    const struct outbox_kept kept = {
        .number = number, .sequence = sequence, .created_ns = 3, .session = 4, .acked_ns = 5
    };

    assert_ok(f->store->ops->keep(f->store, pawl_view_of(stream), &kept, 1, &f->error), &f->error);
}

const char *outbox_pending(struct outbox_fixture *f, const char *subject, uint64_t from)
{
    static char text[1024];
    struct pawl__buf buf = BUF_OVER(text);
    bool found = true;

    pawl__buf_add_text(&buf, "");
    text[0] = '\0';
    for (;;) {
        assert_ok(
            f->store->ops->head(f->store, pawl_view_of(subject), from, &f->read, &found, &f->error),
            &f->error);
        if (!found) {
            return text;
        }
        from = f->read.entry.number + 1;
        pawl__buf_add_format(&buf, "%s%" PRIu64, buf.len == 0 ? "" : " ", from - 1);
    }
}

const char *outbox_kept(struct outbox_fixture *f, const char *stream)
{
    static char text[1024];
    struct pawl__buf buf = BUF_OVER(text);
    struct outbox_kept kept = { .sequence = 0 };
    bool found = true;
    uint64_t from = 0;

    text[0] = '\0';
    for (;;) { /* entries that share a sequence are shown by their last */
        assert_ok(f->store->ops->first_kept(
                      f->store, pawl_view_of(stream), from, &kept, &found, &f->error),
                  &f->error);
        if (!found) {
            return text;
        }
        from = kept.sequence + 1;
        assert_ok(f->store->ops->last_kept(
                      f->store, pawl_view_of(stream), kept.sequence, &kept, &found, &f->error),
                  &f->error);
        pawl__buf_add_format(
            &buf, "%s%" PRIu64 "@%" PRIu64, buf.len == 0 ? "" : " ", kept.number, kept.sequence);
    }
}

struct outbox_stats outbox_stats(struct outbox_fixture *f)
{
    struct outbox_stats stats;

    assert_ok(f->store->ops->stats(f->store, &stats, &f->error), &f->error);
    return stats;
}
