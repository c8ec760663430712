/* Every call walks all entries: it is the reference, and says in the plainest way what is meant. */
#include "delivery/outbox/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/os/clock.h"

enum outbox_state { OUTBOX_PENDING, OUTBOX_KEPT, OUTBOX_FAILED, OUTBOX_FORGOTTEN };

struct outbox_memory_entry {
    enum outbox_state state;
    struct outbox_read read;
    char *stream; /* of a kept one */
    struct outbox_kept kept;
    struct outbox_failed failed;
    int64_t running_ns;
    bool has_id; /* not trimmed */
};

static struct outbox_memory *as_memory(struct outbox_store *store)
{
    return (struct outbox_memory *)store; /* base is its first member */
}

/* --- entries --- */

static pawl_status add_one(struct outbox_memory *memory,
                           const struct outbox_entry *entry,
                           int64_t running_ns,
                           pawl_error *reterr)
{
    struct outbox_memory_entry *entries =
        pawl__grow(memory->entries, memory->count, &memory->room, sizeof(*entries));

    TRY(pawl__check_memory(entries, "the outbox", reterr));
    memory->entries = entries;
    struct outbox_memory_entry *added = &entries[memory->count];
    *added = (struct outbox_memory_entry){ .running_ns = running_ns, .has_id = true };
    TRY(pawl__delivery_outbox_read_copy(&added->read, entry, reterr));
    memory->count++;
    return PAWL_OK;
}

static void drop_from(struct outbox_memory *memory, size_t count)
{
    while (memory->count > count) {
        struct outbox_memory_entry *entry = &memory->entries[--memory->count];
        pawl__delivery_outbox_read_done(&entry->read);
        free(entry->stream);
    }
}

static pawl_status append(struct outbox_store *store,
                          const struct outbox_entry *entries,
                          size_t count,
                          int64_t running_ns,
                          pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);
    size_t before = memory->count;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        REQUIRE(entries[i].number == memory->count + 1);
        status = add_one(memory, &entries[i], running_ns, reterr);
    }
    if (status != PAWL_OK) {
        drop_from(memory, before);
        return status;
    }
    memory->running_ns = MAX(memory->running_ns, running_ns);
    return PAWL_OK;
}

static pawl_status lookup(struct outbox_store *store,
                          const struct delivery_hash *keys,
                          size_t count,
                          struct outbox_hit *ret_hits,
                          pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        ret_hits[i] = (struct outbox_hit){ .found = false };
        for (size_t k = 0; k < memory->count; k++) {
            const struct outbox_memory_entry *entry = &memory->entries[k];
            if (entry->has_id && pawl__delivery_hash_equal(&entry->read.entry.key, &keys[i])) {
                ret_hits[i] = (struct outbox_hit){ true, k + 1, entry->read.entry.payload_hash };
            }
        }
    }
    return PAWL_OK;
}

static int compare(pawl_view a, pawl_view b)
{
    int order = memcmp(a.len == 0 ? "" : a.data, b.len == 0 ? "" : b.data, MIN(a.len, b.len));

    return order != 0 ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* The lowest name above `after` among entries of a state. */
static pawl_status next_name(struct outbox_memory *memory,
                             enum outbox_state state,
                             pawl_view after,
                             struct pawl__buf *name,
                             bool *ret_found,
                             pawl_error *reterr)
{
    pawl_view best = { NULL, 0 };

    for (size_t i = 0; i < memory->count; i++) {
        const struct outbox_memory_entry *entry = &memory->entries[i];
        pawl_view mine =
            state == OUTBOX_KEPT ? pawl_view_of(entry->stream) : entry->read.entry.subject;
        if (entry->state == state && compare(mine, after) > 0
            && (best.data == NULL || compare(mine, best) < 0)) {
            best = mine;
        }
    }
    *ret_found = best.data != NULL;
    pawl__buf_clear(name);
    pawl__buf_add(name, best);
    return pawl__buf_check(name, "a name of the outbox", reterr);
}

static pawl_status next_subject(struct outbox_store *store,
                                pawl_view after,
                                struct pawl__buf *subject,
                                bool *ret_found,
                                pawl_error *reterr)
{
    return next_name(as_memory(store), OUTBOX_PENDING, after, subject, ret_found, reterr);
}

static pawl_status next_stream(struct outbox_store *store,
                               pawl_view after,
                               struct pawl__buf *stream,
                               bool *ret_found,
                               pawl_error *reterr)
{
    return next_name(as_memory(store), OUTBOX_KEPT, after, stream, ret_found, reterr);
}

static pawl_status head(struct outbox_store *store,
                        pawl_view subject,
                        uint64_t from,
                        struct outbox_read *read,
                        bool *ret_found,
                        pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    *ret_found = false;
    for (size_t i = 0; i < memory->count && !*ret_found; i++) {
        const struct outbox_memory_entry *entry = &memory->entries[i];
        if (entry->state == OUTBOX_PENDING && i + 1 >= from
            && pawl__view_equal(entry->read.entry.subject, subject)) {
            TRY(pawl__delivery_outbox_read_copy(read, &entry->read.entry, reterr));
            *ret_found = true;
        }
    }
    return PAWL_OK;
}

static pawl_status read_entry(struct outbox_store *store,
                              uint64_t number,
                              struct outbox_read *read,
                              bool *ret_found,
                              pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    *ret_found = number >= 1 && number <= memory->count
                 && memory->entries[number - 1].state != OUTBOX_FORGOTTEN;
    return *ret_found ? pawl__delivery_outbox_read_copy(
               read, &memory->entries[number - 1].read.entry, reterr)
                      : PAWL_OK;
}

/* --- kept ones --- */

static bool is_kept(const struct outbox_memory_entry *entry, pawl_view stream)
{
    return entry->state == OUTBOX_KEPT && pawl__view_is(stream, entry->stream);
}

static pawl_status keep(struct outbox_store *store,
                        pawl_view stream,
                        const struct outbox_kept *kept,
                        size_t count,
                        pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    for (size_t i = 0; i < count; i++) {
        uint64_t number = kept[i].number;
        if (number == 0 || number > memory->count
            || memory->entries[number - 1].state != OUTBOX_PENDING) {
            continue;
        }
        struct outbox_memory_entry *entry = &memory->entries[number - 1];
        char *name = pawl__view_dup(stream);
        TRY(pawl__check_memory(name, "the name of a stream", reterr));
        free(entry->stream);
        entry->stream = name;
        entry->kept = kept[i];
        entry->state = OUTBOX_KEPT;
    }
    return PAWL_OK;
}

static bool is_before(const struct outbox_kept *a, const struct outbox_kept *b)
{
    return a->sequence != b->sequence ? a->sequence < b->sequence : a->number < b->number;
}

static pawl_status first_kept(struct outbox_store *store,
                              pawl_view stream,
                              uint64_t sequence,
                              struct outbox_kept *ret_kept,
                              bool *ret_found,
                              pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_found = false;
    for (size_t i = 0; i < memory->count; i++) {
        const struct outbox_memory_entry *entry = &memory->entries[i];
        if (is_kept(entry, stream) && entry->kept.sequence >= sequence
            && (!*ret_found || is_before(&entry->kept, ret_kept))) {
            *ret_kept = entry->kept;
            *ret_found = true;
        }
    }
    return PAWL_OK;
}

static pawl_status last_kept(struct outbox_store *store,
                             pawl_view stream,
                             uint64_t sequence,
                             struct outbox_kept *ret_kept,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_found = false;
    for (size_t i = 0; i < memory->count; i++) {
        const struct outbox_memory_entry *entry = &memory->entries[i];
        if (is_kept(entry, stream) && entry->kept.sequence <= sequence
            && (!*ret_found || is_before(ret_kept, &entry->kept))) {
            *ret_kept = entry->kept;
            *ret_found = true;
        }
    }
    return PAWL_OK;
}

static pawl_status requeue(struct outbox_store *store,
                           pawl_view stream,
                           uint64_t sequence,
                           uint64_t *ret_count,
                           pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_count = 0;
    for (size_t i = 0; i < memory->count; i++) {
        struct outbox_memory_entry *entry = &memory->entries[i];
        if (is_kept(entry, stream) && entry->kept.sequence >= sequence) {
            entry->state = OUTBOX_PENDING;
            (*ret_count)++;
        }
    }
    return PAWL_OK;
}

static pawl_status adopt(struct outbox_store *store,
                         pawl_view stream,
                         uint64_t session,
                         int64_t acked_ns,
                         pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    for (size_t i = 0; i < memory->count; i++) {
        struct outbox_memory_entry *entry = &memory->entries[i];
        if (is_kept(entry, stream) && entry->kept.session != session) {
            entry->kept.session = session;
            entry->kept.acked_ns = acked_ns;
        }
    }
    return PAWL_OK;
}

static pawl_status forget(struct outbox_store *store,
                          pawl_view stream,
                          uint64_t sequence,
                          uint64_t *ret_count,
                          pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_count = 0;
    for (size_t i = 0; i < memory->count; i++) {
        struct outbox_memory_entry *entry = &memory->entries[i];
        if (is_kept(entry, stream) && entry->kept.sequence <= sequence) {
            entry->state = OUTBOX_FORGOTTEN;
            (*ret_count)++;
        }
    }
    return PAWL_OK;
}

/* --- failed ones --- */

static pawl_status set_aside(struct outbox_store *store,
                             const struct outbox_failed *failed,
                             pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    for (size_t i = 0; i < memory->count; i++) {
        struct outbox_memory_entry *entry = &memory->entries[i];
        if (i + 1 == failed->number && entry->state == OUTBOX_PENDING) {
            entry->failed = *failed;
            entry->state = OUTBOX_FAILED;
        }
    }
    return PAWL_OK;
}

static pawl_status next_failed(struct outbox_store *store,
                               uint64_t from,
                               struct outbox_failed *ret_failed,
                               bool *ret_found,
                               pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_found = false;
    for (size_t i = 0; i < memory->count && !*ret_found; i++) {
        if (memory->entries[i].state == OUTBOX_FAILED && i + 1 >= from) {
            *ret_failed = memory->entries[i].failed;
            *ret_found = true;
        }
    }
    return PAWL_OK;
}

static pawl_status retry(struct outbox_store *store, uint64_t *ret_count, pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);
    size_t before = memory->count;

    *ret_count = 0;
    for (size_t i = 0; i < before; i++) {
        if (memory->entries[i].state == OUTBOX_FAILED) {
            struct outbox_entry entry = memory->entries[i].read.entry;
            entry.number = memory->count + 1;
            TRY(add_one(memory, &entry, memory->running_ns, reterr));
            memory->entries[i].state = OUTBOX_FORGOTTEN;
            memory->entries[i].has_id = false;
            (*ret_count)++;
        }
    }
    return PAWL_OK;
}

/* --- ids --- */

static int64_t hour_of(int64_t running_ns)
{
    return running_ns / (3600 * NS_PER_S);
}

static pawl_status accepted_before(struct outbox_store *store,
                                   int64_t running_ns,
                                   uint64_t *ret_number,
                                   pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);
    size_t i = 0;

    (void)reterr;
    while (i < memory->count && hour_of(memory->entries[i].running_ns) < hour_of(running_ns)) {
        i++;
    }
    *ret_number = i + 1;
    return PAWL_OK;
}

static pawl_status trim(struct outbox_store *store,
                        uint64_t number,
                        uint64_t max,
                        uint64_t *ret_count,
                        pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);

    (void)reterr;
    *ret_count = 0;
    for (size_t i = 0; i < memory->count && i + 1 < number && *ret_count < max; i++) {
        struct outbox_memory_entry *entry = &memory->entries[i];
        if (entry->state == OUTBOX_FORGOTTEN && entry->has_id) {
            entry->has_id = false;
            (*ret_count)++;
        }
    }
    return PAWL_OK;
}

/* --- the rest --- */

static pawl_status sync_nothing(struct outbox_store *store, pawl_error *reterr)
{
    (void)store;
    (void)reterr;
    return PAWL_OK;
}

static pawl_status stats(struct outbox_store *store,
                         struct outbox_stats *ret_stats,
                         pawl_error *reterr)
{
    struct outbox_memory *memory = as_memory(store);
    struct outbox_stats sum = { .outbox = 1,
                                .last = memory->count,
                                .running_ns = memory->running_ns };

    (void)reterr;
    for (size_t i = 0; i < memory->count; i++) {
        const struct outbox_memory_entry *entry = &memory->entries[i];
        uint64_t bytes = pawl__delivery_outbox_bytes(&entry->read.entry);
        sum.pending += entry->state == OUTBOX_PENDING;
        sum.pending_bytes += entry->state == OUTBOX_PENDING ? bytes : 0;
        sum.kept += entry->state == OUTBOX_KEPT;
        sum.kept_bytes += entry->state == OUTBOX_KEPT ? bytes : 0;
        sum.failed += entry->state == OUTBOX_FAILED;
        sum.failed_bytes += entry->state == OUTBOX_FAILED ? bytes : 0;
        sum.ids += entry->has_id;
    }
    *ret_stats = sum;
    return PAWL_OK;
}

static void close_memory(struct outbox_store *store)
{
    (void)store;
}

static const struct outbox_store_ops ops = {
    .append = append,
    .lookup = lookup,
    .next_subject = next_subject,
    .head = head,
    .read = read_entry,
    .keep = keep,
    .next_stream = next_stream,
    .first_kept = first_kept,
    .last_kept = last_kept,
    .requeue = requeue,
    .adopt = adopt,
    .forget = forget,
    .set_aside = set_aside,
    .next_failed = next_failed,
    .retry = retry,
    .accepted_before = accepted_before,
    .trim = trim,
    .sync = sync_nothing,
    .stats = stats,
    .close = close_memory,
};

struct outbox_store *pawl__delivery_outbox_memory_open(struct outbox_memory *memory)
{
    memory->base.ops = &ops;
    return &memory->base;
}

void pawl__delivery_outbox_memory_done(struct outbox_memory *memory)
{
    drop_from(memory, 0);
    free(memory->entries);
    *memory = (struct outbox_memory){ .count = 0 };
}
