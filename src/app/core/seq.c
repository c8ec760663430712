#include "app/core/seq.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/core/batch.h"
#include "app/definition/descriptor.h"
#include "base/core/error.h"

/* --- numbers --- */

static struct app_key key_of(const struct app_seq *seq, const pawl_seq_value *value)
{
    return pawl__app_key_seq(seq->app, seq->partition, value->workspace, value->sequence);
}

/* 0 where none is. */
static pawl_status number_of(const struct app_seq *seq,
                             uint16_t sequence,
                             pawl_view key,
                             const struct app_value *value,
                             uint64_t *ret_number,
                             pawl_error *reterr)
{
    struct app_stored stored = { 0, 0 };
    const char *name =
        seq->descriptor == NULL ? NULL : pawl__app_sequence_name(seq->descriptor, sequence);
    TRY(value->found ? pawl__app_stored_decode(
            APP_SEQ, key, value->bytes, seq->short_too, name, &stored, reterr)
                     : PAWL_OK);
    *ret_number = stored.number;
    return PAWL_OK;
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
        family, view, value.bytes, seq->short_too, NULL, ret_stored, reterr);
}

/* The stored numbers, 0 where none is, of the sequences that `values` name. What is damaged fails it, or
 * counts as none where it is about to be written anew. */
static pawl_status read_stored(const struct app_seq *seq,
                               const pawl_seq_value *values,
                               size_t count,
                               int64_t deadline_ns,
                               bool damaged_too,
                               uint64_t *ret_numbers,
                               pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view *keys = pawl__arena_take(&arena, (count + 1) * sizeof(*keys));
    struct app_value *found = pawl__arena_take(&arena, (count + 1) * sizeof(*found));
    bool copied = keys != NULL && found != NULL;

    for (size_t i = 0; i < count && copied; i++) {
        struct app_key key = key_of(seq, &values[i]);
        copied = pawl__arena_copy(&arena, pawl__app_key_view(&key), &keys[i]);
    }
    if (!copied) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    const struct app_lookup lookup = {
        .family = APP_SEQ, .keys = keys, .count = count, .deadline_ns = deadline_ns
    };
    pawl_status status = seq->store->ops->get_many(seq->store, &lookup, &arena, found, reterr);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        ret_numbers[i] = 0;
        status = number_of(seq,
                           values[i].sequence,
                           keys[i],
                           &found[i],
                           &ret_numbers[i],
                           damaged_too ? NULL : reterr);
        status = status == PAWL_CORRUPT && damaged_too ? PAWL_OK : status;
    }
    return status;
}

static pawl_status read_numbers(void *context,
                                uint64_t workspace,
                                const uint16_t *sequences,
                                size_t count,
                                int64_t deadline_ns,
                                uint64_t *ret_numbers,
                                pawl_error *reterr)
{
    pawl_seq_value *values = malloc((count + 1) * sizeof(*values));

    if (values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = (pawl_seq_value){ .workspace = workspace, .sequence = sequences[i] };
    }
    pawl_status status =
        read_stored(context, values, count, deadline_ns, false, ret_numbers, reterr);
    free(values);
    return status;
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

static pawl_status fill_batch(const struct app_seq *seq,
                              const pawl_seq_value *values,
                              const uint64_t *stored,
                              size_t count,
                              uint64_t next_offset,
                              struct app_batch *batch,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct app_key key = key_of(seq, &values[i]);
        const struct app_stored row = { values[i].value, next_offset };
        if (values[i].value > stored[i]) {
            TRY(add_number(batch, APP_SEQ, &key, &row, reterr));
        }
    }
    return PAWL_OK;
}

/* A damaged number is replaced: what comes from the log is the truth, and one bad row must not keep all the
 * others from being stored. */
static pawl_status write_numbers(void *context,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 uint64_t next_offset,
                                 pawl_error *reterr)
{
    const struct app_seq *seq = context;
    AUTO(pawl__app_batch_done) struct app_batch batch = { .count = 0 };
    struct app_key offset_key = pawl__app_key_offset(seq->app, seq->partition);
    uint64_t *stored = calloc(count + 1, sizeof(*stored));

    if (stored == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", count);
    }
    const struct app_stored offset = { next_offset, next_offset };
    pawl_status status = read_stored(seq, values, count, 0, true, stored, reterr);
    if (status == PAWL_OK) {
        status = fill_batch(seq, values, stored, count, next_offset, &batch, reterr);
    }
    free(stored);
    if (status == PAWL_OK) {
        status = add_number(&batch, APP_OFFSETS, &offset_key, &offset, reterr);
    }
    return status == PAWL_OK
               ? seq->store->ops->write(seq->store, batch.entries, batch.count, reterr)
               : status;
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

static pawl_status read_page(const struct app_seq *seq,
                             uint64_t from,
                             bool backwards,
                             struct pawl__arena *arena,
                             struct app_entry *ret_entries,
                             size_t *ret_count,
                             pawl_error *reterr)
{
    struct app_key first = pawl__app_key_plog(seq->app, seq->partition, from);
    struct app_key last = pawl__app_key_plog(seq->app, seq->partition, UINT64_MAX);
    struct app_range range = {
        .family = APP_PLOG,
        .from = pawl__app_key_view(&first),
        .until = pawl__app_key_view(&last), /* which is never an event's */
        .backwards = backwards,
        .limit = backwards ? 1 : APP_PAGE_ENTRIES,
        .bytes_max = APP_PAGE_BYTES_MAX,
    };

    return seq->store->ops->scan(seq->store, &range, arena, ret_entries, ret_count, reterr);
}

static pawl_status visit_page(const struct app_entry *entries,
                              size_t count,
                              struct pawl__arena *arena,
                              app_event_visitor visitor,
                              void *context,
                              uint64_t *ret_last,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        pawl_app_event event;
        TRY(pawl__app_seq_event_of(&entries[i], arena, &event, reterr));
        TRY(visitor(context, &event, reterr));
        *ret_last = event.plog_offset;
    }
    return PAWL_OK;
}

pawl_status pawl__app_seq_walk(const struct app_seq *seq,
                               uint64_t offset,
                               app_event_visitor visitor,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_entry *entries = malloc(APP_PAGE_ENTRIES * sizeof(*entries));
    size_t count = 1;
    pawl_status status =
        entries == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a page") : PAWL_OK;

    while (status == PAWL_OK && count > 0) {
        uint64_t last = 0;
        pawl__arena_clear(&arena);
        status = read_page(seq, offset, false, &arena, entries, &count, reterr);
        if (status == PAWL_OK) {
            status = visit_page(entries, count, &arena, visitor, context, &last, reterr);
        }
        offset = last + 1;
    }
    free(entries);
    return status;
}

pawl_status pawl__app_seq_last(const struct app_seq *seq,
                               struct pawl__arena *arena,
                               bool *ret_found,
                               pawl_app_event *ret_event,
                               pawl_error *reterr)
{
    struct app_entry entry;
    size_t count = 0;

    TRY(read_page(seq, 0, true, arena, &entry, &count, reterr));
    if (count > 0) {
        TRY(pawl__app_seq_event_of(&entry, arena, ret_event, reterr));
    }
    *ret_found = count > 0;
    return PAWL_OK;
}

pawl_status pawl__app_seq_end(const struct app_seq *seq, uint64_t *ret_offset, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_entry entry;
    size_t count = 0;
    uint64_t offset = 0;

    TRY(read_page(seq, 0, true, &arena, &entry, &count, reterr));
    if (count > 0 && !pawl__app_key_number(APP_PLOG, entry.key, &offset)) {
        TRY(pawl__fail(reterr, PAWL_CORRUPT, "the log has a key that is none"));
    }
    *ret_offset = offset;
    return PAWL_OK;
}

/* --- actualization --- */

struct walk {
    pawl_seq_batcher batcher;
    void *context;
    pawl_seq_value *values;
    size_t room;
};

static pawl_status hand_on(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct walk *walk = context;

    if (event->number_count > walk->room) {
        pawl_seq_value *values = realloc(walk->values, event->number_count * sizeof(*values));
        if (values == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", event->number_count);
        }
        walk->values = values;
        walk->room = event->number_count;
    }
    for (size_t i = 0; i < event->number_count; i++) {
        walk->values[i] = (pawl_seq_value){ event->workspace,
                                            event->numbers[i].sequence,
                                            event->numbers[i].number };
    }
    return walk->batcher(
        walk->context, walk->values, event->number_count, event->plog_offset, reterr);
}

/* Numbers are stored behind the log, never ahead of it: events that they cover were lost, and going
 * on would leave a hole. */
static pawl_status check_end(const struct app_seq *seq, uint64_t offset, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_app_event last = { .plog_offset = 0 };
    bool found = false;
    pawl_status status =
        offset <= 1 ? PAWL_OK : pawl__app_seq_last(seq, &arena, &found, &last, reterr);

    if (status == PAWL_OK && offset > 1 && (!found || last.plog_offset < offset - 1)) {
        status = pawl__fail_advised(reterr,
                                    PAWL_CORRUPT,
                                    "numbers are stored up to offset %" PRIu64
                                    ", the log of partition %u ends at %" PRIu64
                                    ": restore the log from a backup",
                                    offset - 1,
                                    seq->partition,
                                    found ? last.plog_offset : 0);
    }
    return status;
}

static pawl_status actualize(void *context,
                             uint64_t offset,
                             pawl_seq_batcher batcher,
                             void *batcher_context,
                             pawl_error *reterr)
{
    struct walk walk = { .batcher = batcher, .context = batcher_context };
    pawl_status status = check_end(context, offset, reterr);

    if (status == PAWL_OK) {
        status = pawl__app_seq_walk(context, offset, hand_on, &walk, reterr);
    }
    free(walk.values);
    return status;
}

pawl_seq_storage pawl__app_seq_storage(struct app_seq *seq)
{
    return (pawl_seq_storage){
        .context = seq,
        .read_numbers = read_numbers,
        .read_next_offset = read_next_offset,
        .write = write_numbers,
        .actualize = actualize,
    };
}
