#include "app/core/seq.h"

#include <inttypes.h>

#include "app/core/batch.h"
#include "app/definition/descriptor.h"
#include "base/core/error.h"

/* --- numbers --- */

static struct app_key key_of(const struct app_seq *seq, const pawl_seq_value *value)
{
    return pawl__app_key_seq(seq->app, seq->partition, value->workspace, value->sequence);
}

pawl_status pawl__app_seq_stored(const struct app_seq *seq,
                                 enum app_family family,
                                 const struct app_key *key,
                                 struct app_stored *ret_stored,
                                 pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view view = pawl__app_key_view(key);
    struct app_value value;

    TRY(pawl__app_store_get(seq->store, family, view, &arena, &value, reterr));
    if (!value.found) {
        *ret_stored = (struct app_stored){ 0, 0 };
        return PAWL_OK;
    }
    return pawl__app_stored_decode(
        family, view, value.bytes, seq->accepts_short, NULL, ret_stored, reterr);
}

/* The sequences whose stored numbers are wanted. */
struct wanted_numbers {
    const pawl_seq_value *values; /* only workspace and sequence count */
    size_t count;
    int64_t deadline_ns;
    bool skip_damaged; /* what is damaged counts as nothing: it is about to be written anew */
};

static pawl_status decode_number(const struct app_seq *seq,
                                 const pawl_seq_value *of,
                                 pawl_view key,
                                 const struct app_value *value,
                                 uint64_t *ret_number,
                                 pawl_error *reterr)
{
    struct app_stored stored = { 0, 0 };
    const char *name =
        seq->descriptor == NULL ? NULL : pawl__app_sequence_name(seq->descriptor, of->sequence);

    TRY(value->found ? pawl__app_stored_decode(
            APP_SEQ, key, value->bytes, seq->accepts_short, name, &stored, reterr)
                     : PAWL_OK);
    *ret_number = stored.number;
    return PAWL_OK;
}

/* The stored numbers, 0 where nothing is stored. */
static pawl_status read_stored(const struct app_seq *seq,
                               const struct wanted_numbers *wanted,
                               uint64_t *ret_numbers,
                               pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    size_t count = wanted->count;
    pawl_view *keys = pawl__arena_take(&arena, (count + 1) * sizeof(*keys));
    struct app_value *found = pawl__arena_take(&arena, (count + 1) * sizeof(*found));
    bool copied = keys != NULL && found != NULL;

    for (size_t i = 0; i < count && copied; i++) {
        struct app_key key = key_of(seq, &wanted->values[i]);
        copied = pawl__arena_copy(&arena, pawl__app_key_view(&key), &keys[i]);
    }
    if (!copied) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    const struct app_lookup lookup = {
        .family = APP_SEQ, .keys = keys, .count = count, .deadline_ns = wanted->deadline_ns
    };
    TRY(seq->store->ops->get_many(seq->store, &lookup, &arena, found, reterr));
    for (size_t i = 0; i < count; i++) {
        ret_numbers[i] = 0;
        pawl_status status = decode_number(seq,
                                           &wanted->values[i],
                                           keys[i],
                                           &found[i],
                                           &ret_numbers[i],
                                           wanted->skip_damaged ? NULL : reterr);
        TRY(status == PAWL_CORRUPT && wanted->skip_damaged ? PAWL_OK : status);
    }
    return PAWL_OK;
}

static pawl_status read_numbers(void *context,
                                uint64_t workspace,
                                const uint16_t *sequences,
                                size_t count,
                                int64_t deadline_ns,
                                uint64_t *ret_numbers,
                                pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_seq_value *values = pawl__arena_take(&arena, (count + 1) * sizeof(*values));
    const struct wanted_numbers wanted = { .values = values,
                                           .count = count,
                                           .deadline_ns = deadline_ns };

    if (values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = (pawl_seq_value){ .workspace = workspace, .sequence = sequences[i] };
    }
    return read_stored(context, &wanted, ret_numbers, reterr);
}

static pawl_status read_next_offset(void *context, uint64_t *ret_offset, pawl_error *reterr)
{
    const struct app_seq *seq = context;
    struct app_key key = pawl__app_key_offset(seq->app, seq->partition);
    struct app_stored stored = { 0, 0 };

    TRY(pawl__app_seq_stored(seq, APP_OFFSETS, &key, &stored, reterr));
    *ret_offset = stored.number;
    return PAWL_OK;
}

static pawl_status add_number(struct app_batch *batch,
                              enum app_family family,
                              const struct app_key *key,
                              const struct app_stored *stored,
                              pawl_error *reterr)
{
    char bytes[APP_STORED_BYTES];

    pawl__app_stored_encode(key, stored, bytes);
    return pawl__app_batch_add(
        batch, family, APP_PUT, key, (pawl_view){ bytes, sizeof(bytes) }, reterr);
}

/* A damaged number is replaced: what comes from the log is the truth, and one bad row must not keep the others
 * from being stored. */
static pawl_status write_numbers(void *context,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 uint64_t next_offset,
                                 pawl_error *reterr)
{
    const struct app_seq *seq = context;
    AUTO(pawl__app_batch_done) struct app_batch batch = { .count = 0 };
    const struct wanted_numbers wanted = { .values = values, .count = count, .skip_damaged = true };
    struct app_key offset_key = pawl__app_key_offset(seq->app, seq->partition);
    const struct app_stored offset = { next_offset, next_offset };
    uint64_t *stored = pawl__arena_take(&batch.arena, (count + 1) * sizeof(*stored));

    if (stored == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    TRY(read_stored(seq, &wanted, stored, reterr));
    for (size_t i = 0; i < count; i++) {
        struct app_key key = key_of(seq, &values[i]);
        const struct app_stored row = { values[i].value, next_offset };
        if (values[i].value > stored[i]) {
            TRY(add_number(&batch, APP_SEQ, &key, &row, reterr));
        }
    }
    TRY(add_number(&batch, APP_OFFSETS, &offset_key, &offset, reterr));
    return seq->store->ops->write(seq->store, batch.entries, batch.count, reterr);
}

/* --- the log --- */

pawl_status pawl__app_seq_event_of(const struct app_entry *entry,
                                   struct pawl__arena *arena,
                                   pawl_app_event *ret_event,
                                   pawl_error *reterr)
{
    pawl_app_event event;
    uint64_t offset = 0;
    pawl_status status = pawl__app_event_decode(entry->value, arena, &event, reterr);

    if (status == PAWL_OK
        && (!pawl__app_key_number(APP_PLOG, entry->key, &offset) || event.plog_offset != offset)) {
        status = pawl__fail(
            reterr, PAWL_CORRUPT, "the event belongs at offset %" PRIu64, event.plog_offset);
    }
    if (status != PAWL_OK) {
        char space[128];
        struct pawl__buf place = BUF_OVER(space);
        pawl__app_key_describe(APP_PLOG, entry->key, &place);
        return pawl__fail_context(reterr, status, "%s", place.broken ? "PLog" : space);
    }
    *ret_event = event;
    return PAWL_OK;
}

struct event_walk {
    struct pawl__arena arena;
    app_event_visitor *visitor;
    void *context;
};

static pawl_status visit_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct event_walk *walk = context;
    pawl_app_event event;

    pawl__arena_clear(&walk->arena);
    TRY(pawl__app_seq_event_of(entry, &walk->arena, &event, reterr));
    return walk->visitor(walk->context, &event, reterr);
}

/* No event has the last offset of all. */
static struct app_range range_of(struct app_key *first, struct app_key *end)
{
    return (struct app_range){ .family = APP_PLOG,
                               .from = pawl__app_key_view(first),
                               .until = pawl__app_key_view(end) };
}

pawl_status pawl__app_seq_walk(const struct app_seq *seq,
                               uint64_t offset,
                               size_t limit,
                               app_event_visitor *visitor,
                               void *context,
                               pawl_error *reterr)
{
    struct app_key first = pawl__app_key_plog(seq->app, seq->partition, offset);
    struct app_key end = pawl__app_key_plog(seq->app, seq->partition, UINT64_MAX);
    struct app_range range = range_of(&first, &end);
    struct event_walk walk = { .visitor = visitor, .context = context };

    range.limit = limit;
    pawl_status status = pawl__app_store_walk(seq->store, &range, visit_entry, &walk, reterr);
    pawl__arena_done(&walk.arena);
    return status;
}

static pawl_status read_last(const struct app_seq *seq, struct app_page *page, pawl_error *reterr)
{
    struct app_key first = pawl__app_key_plog(seq->app, seq->partition, 0);
    struct app_key end = pawl__app_key_plog(seq->app, seq->partition, UINT64_MAX);
    struct app_range range = range_of(&first, &end);

    range.backwards = true;
    range.limit = 1;
    return pawl__app_store_scan(seq->store, &range, page, reterr);
}

pawl_status pawl__app_seq_last(const struct app_seq *seq,
                               struct app_page *page,
                               bool *ret_found,
                               pawl_app_event *ret_event,
                               pawl_error *reterr)
{
    TRY(read_last(seq, page, reterr));
    *ret_found = page->count > 0;
    return page->count == 0
               ? PAWL_OK
               : pawl__app_seq_event_of(page->entries, &page->arena, ret_event, reterr);
}

pawl_status pawl__app_seq_end(const struct app_seq *seq, uint64_t *ret_offset, pawl_error *reterr)
{
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    uint64_t offset = 0;

    TRY(read_last(seq, &page, reterr));
    if (page.count > 0 && !pawl__app_key_number(APP_PLOG, page.entries[0].key, &offset)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the log has a key that is none");
    }
    *ret_offset = offset;
    return PAWL_OK;
}

/* --- actualization --- */

struct actualization {
    pawl_seq_batcher batcher;
    void *context;
    struct pawl__arena arena;
};

static pawl_status batch_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct actualization *to = context;

    pawl__arena_clear(&to->arena);
    pawl_seq_value *values =
        pawl__arena_take(&to->arena, (event->number_count + 1) * sizeof(*values));
    if (values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", event->number_count);
    }
    for (size_t i = 0; i < event->number_count; i++) {
        values[i] = (pawl_seq_value){ event->workspace,
                                      event->numbers[i].sequence,
                                      event->numbers[i].number };
    }
    return to->batcher(to->context, values, event->number_count, event->plog_offset, reterr);
}

/* Numbers are stored after the log has them, never before. When they are ahead of it, events were lost, and
 * continuing would leave a hole. */
static pawl_status check_end(const struct app_seq *seq, uint64_t offset, pawl_error *reterr)
{
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    pawl_app_event last = { .size = sizeof(pawl_app_event), .plog_offset = 0 };
    bool found = false;

    TRY(offset <= 1 ? PAWL_OK : pawl__app_seq_last(seq, &page, &found, &last, reterr));
    return offset <= 1 || last.plog_offset >= offset - 1
               ? PAWL_OK
               : pawl__fail_advised(reterr,
                                    PAWL_CORRUPT,
                                    "numbers are stored up to offset %" PRIu64
                                    ", the log of partition %u ends at %" PRIu64
                                    ": restore the log from a backup",
                                    offset - 1,
                                    seq->partition,
                                    last.plog_offset);
}

static pawl_status actualize(void *context,
                             uint64_t offset,
                             pawl_seq_batcher batcher,
                             void *batcher_context,
                             pawl_error *reterr)
{
    struct actualization to = { .batcher = batcher, .context = batcher_context };

    TRY(check_end(context, offset, reterr));
    pawl_status status = pawl__app_seq_walk(context, offset, 0, batch_event, &to, reterr);
    pawl__arena_done(&to.arena);
    return status;
}

pawl_seq_storage pawl__app_seq_storage(struct app_seq *seq)
{
    return (pawl_seq_storage){
        .size = sizeof(pawl_seq_storage),
        .context = seq,
        .read_numbers = read_numbers,
        .read_next_offset = read_next_offset,
        .write = write_numbers,
        .actualize = actualize,
    };
}
