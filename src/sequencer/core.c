#include "sequencer/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* --- the sequences it knows --- */

static int compare_types(const void *left, const void *right)
{
    const pawl_seq_type *a = left;
    const pawl_seq_type *b = right;

    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static pawl_status check_types(const pawl_seq_type *types, size_t count, pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (types[i].initial == 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "types: kind %u, sequence %u: the initial value is 0; it must be at "
                              "least 1",
                              types[i].kind,
                              types[i].sequence);
        }
        if (i > 0 && compare_types(&types[i - 1], &types[i]) == 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "types: kind %u has sequence %u twice",
                              types[i].kind,
                              types[i].sequence);
        }
    }
    return PAWL_OK;
}

static void copy_types(struct seq_core *core, const pawl_seq_type *types, size_t count)
{
    struct seq_kind *kind = NULL;

    for (size_t i = 0; i < count; i++) {
        core->sequences[i] = types[i].sequence;
        core->initials[i] = types[i].initial;
        if (kind == NULL || kind->kind != types[i].kind) {
            kind = &core->kinds[core->kind_count++];
            *kind = (struct seq_kind){
                .kind = types[i].kind,
                .sequences = &core->sequences[i],
                .initials = &core->initials[i],
            };
        }
        kind->count++;
        core->types_of_kind_max = MAX(core->types_of_kind_max, kind->count);
    }
}

static void free_types(pawl_seq_type **types)
{
    free(*types);
}

static pawl_status init_types(struct seq_core *core,
                              const pawl_sequencer_options *options,
                              pawl_error *reterr)
{
    size_t count = options->type_count;
    AUTO(free_types) pawl_seq_type *sorted = malloc(count * sizeof(*sorted));

    core->kinds = calloc(count, sizeof(*core->kinds));
    core->sequences = calloc(count, sizeof(*core->sequences));
    core->initials = calloc(count, sizeof(*core->initials));
    if (sorted == NULL || core->kinds == NULL || core->sequences == NULL
        || core->initials == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu sequences", count);
    }
    memcpy(sorted, options->types, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_types);
    TRY(check_types(sorted, count, reterr));
    copy_types(core, sorted, count);
    return PAWL_OK;
}

static pawl_status check_options(const pawl_sequencer_options *options, pawl_error *reterr)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { "unflushed_max", options->unflushed_max },
        { "flush_interval_ms", options->flush_interval_ms },
        { "cache_size", options->cache_size },
        { "batcher_delay_ms", options->batcher_delay_ms },
        { "retry_ms", options->retry_ms },
        { "read_ms_max", options->read_ms_max },
        { "close_ms_max", options->close_ms_max },
    };

    if (options->types == NULL || options->type_count == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "types: there are none");
    }
    if (options->storage == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "storage: there is none");
    }
    if (options->type_count > SEQ_TYPES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "types: more than %d", SEQ_TYPES_MAX);
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (numbers[i].value == 0) {
            return pawl__fail(reterr, PAWL_INVALID, "%s is 0", numbers[i].name);
        }
    }
    return PAWL_OK;
}

/* Either is empty when it becomes the one that is filled, maybe in the middle of a transaction, and
 * has room for it then. */
static pawl_status init_table(const struct seq_core *core,
                              struct seq_table *table,
                              pawl_error *reterr)
{
    TRY(pawl__seq_table_init(table, reterr));
    return pawl__seq_table_reserve(table, core->types_of_kind_max, reterr);
}

pawl_status pawl__seq_core_init(struct seq_core *core,
                                const pawl_sequencer_options *options,
                                pawl_error *reterr)
{
    *core = (struct seq_core){ .unflushed_max = options->unflushed_max };
    TRY(check_options(options, reterr));
    TRY(init_types(core, options, reterr));
    core->transaction.given = calloc(core->types_of_kind_max, sizeof(uint64_t));
    core->transaction.cached = calloc(core->types_of_kind_max, sizeof(uint64_t *));
    core->pending = calloc(core->types_of_kind_max, sizeof(uint64_t));
    core->stored = calloc(core->types_of_kind_max, sizeof(uint64_t));
    if (core->transaction.given == NULL || core->transaction.cached == NULL || core->pending == NULL
        || core->stored == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a transaction");
    }
    core->shared.actualizing = true;
    TRY(init_table(core, &core->transaction.earlier, reterr));
    TRY(init_table(core, &core->shared.filling, reterr));
    TRY(init_table(core, &core->shared.flushing, reterr));
    return pawl__lru_new(options->cache_size, &core->cache, reterr);
}

void pawl__seq_core_done(struct seq_core *core)
{
    free(core->kinds);
    free(core->sequences);
    free(core->initials);
    free(core->transaction.given);
    free(core->transaction.cached);
    free(core->pending);
    free(core->stored);
    pawl__lru_free(core->cache);
    pawl__seq_table_done(&core->transaction.earlier);
    pawl__seq_table_done(&core->shared.filling);
    pawl__seq_table_done(&core->shared.flushing);
    *core = (struct seq_core){ 0 };
}

static int compare_kind(const void *key, const void *element)
{
    return (int)*(const uint16_t *)key - (int)((const struct seq_kind *)element)->kind;
}

static const struct seq_kind *find_kind(const struct seq_core *core, uint16_t kind)
{
    return core->kind_count == 0
               ? NULL
               : bsearch(&kind, core->kinds, core->kind_count, sizeof(*core->kinds), compare_kind);
}

/* A kind has a handful of them: a walk beats a search. */
static bool find_sequence(const struct seq_kind *kind, uint16_t sequence, size_t *ret_place)
{
    for (size_t i = 0; i < kind->count; i++) {
        if (kind->sequences[i] == sequence) {
            *ret_place = i;
            return true;
        }
    }
    return false;
}

/* --- transactions --- */

/* Of a transaction whose last event was dropped. */
static const struct seq_kind no_kind = { .count = 0 };

size_t pawl__seq_core_unflushed(const struct seq_core *core)
{
    return core->shared.filling.count + core->shared.flushing.count;
}

/* A workspace that an earlier event of the write had continues after it. */
static void begin_event(struct seq_core *core, const struct seq_kind *kind, uint64_t workspace)
{
    struct seq_transaction *transaction = &core->transaction;

    pawl__lru_expect(core->cache, (struct pawl__lru_key){ workspace, kind->sequences[0] });
    pawl__seq_table_expect(&core->shared.filling, workspace, kind->sequences[0]);
    transaction->kind = kind;
    transaction->workspace = workspace;
    memset(transaction->given, 0, kind->count * sizeof(*transaction->given));
    memset(transaction->cached, 0, kind->count * sizeof(*transaction->cached));
}

static pawl_status find_workspace(const struct seq_core *core,
                                  uint16_t kind,
                                  uint64_t workspace,
                                  const struct seq_kind **ret_kind,
                                  pawl_error *reterr)
{
    *ret_kind = find_kind(core, kind);
    if (*ret_kind == NULL) {
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_UNKNOWN_KIND,
                                 "no sequence is defined for workspaces of kind %u",
                                 kind);
    }
    return workspace == 0 ? pawl__fail(reterr, PAWL_INVALID, "0 is no workspace") : PAWL_OK;
}

pawl_status pawl__seq_core_start(struct seq_core *core,
                                 uint16_t kind,
                                 uint64_t workspace,
                                 uint64_t *ret_offset,
                                 pawl_error *reterr)
{
    struct seq_shared *shared = &core->shared;
    const struct seq_kind *found = NULL;

    REQUIRE(!core->transaction.open);
    TRY(find_workspace(core, kind, workspace, &found, reterr));
    if (shared->actualizing) {
        return pawl__fail(reterr, PAWL_BUSY, "the sequences are being actualized");
    }
    if (pawl__seq_core_unflushed(core) > core->unflushed_max) {
        return pawl__fail(
            reterr, PAWL_BUSY, "%zu numbers wait to be written", pawl__seq_core_unflushed(core));
    }
    if (shared->next_offset == PAWL_SEQ_NUMBER_MAX) {
        return pawl__fail_detail(
            reterr, PAWL_FAILED, PAWL_DETAIL_EXHAUSTED, "the last offset of the log is used");
    }
    /* So that the flush cannot fail: the event is in the log by then. */
    TRY(pawl__seq_table_reserve(&shared->filling, found->count, reterr));
    begin_event(core, found, workspace);
    core->transaction.open = true;
    core->transaction.events = 1;
    pawl__seq_table_clear(&core->transaction.earlier);
    *ret_offset = shared->next_offset;
    return PAWL_OK;
}

static void merge_given(struct seq_core *core, struct seq_table *table)
{
    const struct seq_transaction *transaction = &core->transaction;

    for (size_t i = 0; i < transaction->kind->count; i++) {
        if (transaction->given[i] != 0) {
            pawl__seq_table_merge(table,
                                  &(pawl_seq_value){
                                      .workspace = transaction->workspace,
                                      .sequence = transaction->kind->sequences[i],
                                      .value = transaction->given[i],
                                  });
        }
    }
}

static struct pawl__lru_key key_of(const struct seq_transaction *transaction, size_t place)
{
    return (struct pawl__lru_key){ transaction->workspace, transaction->kind->sequences[place] };
}

void pawl__seq_core_fetch(const struct seq_core *core)
{
    const struct seq_transaction *transaction = &core->transaction;

    for (size_t i = 0; i < transaction->kind->count; i++) {
        pawl__lru_fetch(core->cache, key_of(transaction, i));
    }
}

/* Those that stand where they stood first: a put may make the cache forget one of them. */
static void update_cache(struct seq_core *core)
{
    struct seq_transaction *transaction = &core->transaction;

    for (size_t i = 0; i < transaction->kind->count; i++) {
        if (transaction->given[i] != 0 && transaction->cached[i] != NULL) {
            *transaction->cached[i] = transaction->given[i];
        }
    }
    for (size_t i = 0; i < transaction->kind->count; i++) {
        if (transaction->given[i] != 0 && transaction->cached[i] == NULL) {
            pawl__lru_put(core->cache, key_of(transaction, i), transaction->given[i], NULL);
        }
    }
}

pawl_status pawl__seq_core_also(struct seq_core *core,
                                uint16_t kind,
                                uint64_t workspace,
                                uint64_t *ret_offset,
                                pawl_error *reterr)
{
    struct seq_transaction *transaction = &core->transaction;
    const struct seq_kind *found = NULL;

    REQUIRE(transaction->open);
    TRY(find_workspace(core, kind, workspace, &found, reterr));
    size_t more = transaction->earlier.count + core->types_of_kind_max;
    if (pawl__seq_core_unflushed(core) + more > core->unflushed_max) {
        return pawl__fail(reterr, PAWL_BUSY, "%zu numbers would wait to be written", more);
    }
    if (transaction->events >= PAWL_SEQ_NUMBER_MAX - core->shared.next_offset) {
        return pawl__fail_detail(
            reterr, PAWL_FAILED, PAWL_DETAIL_EXHAUSTED, "the last offset of the log is used");
    }
    TRY(pawl__seq_table_reserve(&transaction->earlier, transaction->kind->count, reterr));
    merge_given(core, &transaction->earlier);
    update_cache(core);
    begin_event(core, found, workspace);
    *ret_offset = core->shared.next_offset + transaction->events++;
    return PAWL_OK;
}

/* The cache never heard of its numbers. */
bool pawl__seq_core_drop(struct seq_core *core)
{
    struct seq_transaction *transaction = &core->transaction;

    REQUIRE(transaction->open);
    if (transaction->kind != &no_kind) {
        transaction->kind = &no_kind;
        transaction->events--;
    }
    transaction->open = transaction->events > 0;
    return transaction->open;
}

static pawl_status give_out(
    struct seq_core *core, size_t place, uint64_t last, uint64_t *ret_number, pawl_error *reterr)
{
    if (last == PAWL_SEQ_NUMBER_MAX) {
        return pawl__fail_detail(reterr,
                                 PAWL_FAILED,
                                 PAWL_DETAIL_EXHAUSTED,
                                 "workspace %" PRIu64 ": the last number of sequence %u is used",
                                 core->transaction.workspace,
                                 core->transaction.kind->sequences[place]);
    }
    core->transaction.given[place] = last + 1;
    *ret_number = last + 1;
    return PAWL_OK;
}

/* The cache is read once per event and sequence, and written once, at the end of the event; in between the
 * transaction has the number. */
pawl_status pawl__seq_core_next(struct seq_core *core,
                                uint16_t sequence,
                                bool *ret_known,
                                uint64_t *ret_number,
                                pawl_error *reterr)
{
    struct seq_transaction *transaction = &core->transaction;
    size_t place = 0;

    REQUIRE(transaction->open);
    if (!find_sequence(transaction->kind, sequence, &place)) {
        if (transaction->kind == &no_kind) {
            return pawl__fail_detail(reterr,
                                     PAWL_INVALID,
                                     PAWL_DETAIL_NO_TRANSACTION,
                                     "the event of the transaction is dropped");
        }
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                 "workspaces of kind %u have no sequence %u",
                                 transaction->kind->kind,
                                 sequence);
    }
    *ret_known = true;
    if (transaction->given[place] != 0) {
        return give_out(core, place, transaction->given[place], ret_number, reterr);
    }
    transaction->cached[place] = pawl__lru_get(core->cache, key_of(transaction, place));
    if (transaction->cached[place] == NULL) {
        *ret_known = false;
        return PAWL_OK;
    }
    return give_out(core, place, *transaction->cached[place], ret_number, reterr);
}

void pawl__seq_core_read_pending(const struct seq_core *core, uint64_t *ret_numbers)
{
    const struct seq_transaction *transaction = &core->transaction;
    const struct seq_shared *shared = &core->shared;

    for (size_t i = 0; i < transaction->kind->count; i++) {
        uint16_t sequence = transaction->kind->sequences[i];
        uint64_t filling = pawl__seq_table_get(&shared->filling, transaction->workspace, sequence);
        uint64_t flushing =
            pawl__seq_table_get(&shared->flushing, transaction->workspace, sequence);
        uint64_t earlier =
            pawl__seq_table_get(&transaction->earlier, transaction->workspace, sequence);
        ret_numbers[i] = MAX(earlier, MAX(filling, flushing));
    }
}

/* All numbers of the workspace enter the cache, not only the one asked for: they are read together.
 * Each is the highest of what any place knows, and never below the first number less one. What this
 * event has used comes in at its end, since it may be dropped. */
static void supply(struct seq_core *core, size_t place, uint64_t pending, uint64_t stored)
{
    const struct seq_transaction *transaction = &core->transaction;
    uint64_t last = MAX(transaction->kind->initials[place] - 1, MAX(stored, pending));

    pawl__lru_put(core->cache, key_of(transaction, place), last, NULL);
}

void pawl__seq_core_supply(struct seq_core *core,
                           uint16_t wanted,
                           const uint64_t *pending,
                           const uint64_t *stored)
{
    size_t last = 0;

    REQUIRE(find_sequence(core->transaction.kind, wanted, &last));
    /* What is put may push out what was found before. */
    memset(core->transaction.cached, 0, core->transaction.kind->count * sizeof(uint64_t *));
    for (size_t i = 0; i < core->transaction.kind->count; i++) {
        if (i != last) {
            supply(core, i, pending[i], stored[i]);
        }
    }
    supply(core, last, pending[last], stored[last]); /* a small cache forgets the others */
    core->misses++;
}

bool pawl__seq_core_flush(struct seq_core *core, bool *ret_forgotten)
{
    struct seq_transaction *transaction = &core->transaction;
    struct seq_shared *shared = &core->shared;

    REQUIRE(transaction->open);
    /* The start made room for the numbers of its own event alone. */
    if (transaction->events > 1
        && pawl__seq_table_reserve(
               &shared->filling, transaction->earlier.count + transaction->kind->count, NULL)
               != PAWL_OK) {
        *ret_forgotten = true;
        return false;
    }
    for (size_t i = 0; i < transaction->earlier.count; i++) {
        pawl__seq_table_merge(&shared->filling, &transaction->earlier.values[i]);
    }
    merge_given(core, &shared->filling);
    update_cache(core);
    shared->next_offset += transaction->events;
    shared->filling_offset = shared->next_offset;
    transaction->open = false;
    return pawl__seq_core_unflushed(core) >= core->unflushed_max;
}

/* --- actualization --- */

void pawl__seq_core_actualize(struct seq_core *core)
{
    core->transaction.open = false;
    core->shared.actualizing = true;
    core->shared.next_offset = 0;
    pawl__lru_clear(core->cache);
}

void pawl__seq_core_forget(struct seq_core *core)
{
    struct seq_shared *shared = &core->shared;

    pawl__seq_table_clear(&shared->filling);
    pawl__seq_table_clear(&shared->flushing);
    shared->filling_offset = 0;
    shared->flushing_offset = 0;
}

uint64_t pawl__seq_core_read_from(struct seq_core *core, uint64_t stored_offset)
{
    struct seq_shared *shared = &core->shared;

    shared->stored_offset = stored_offset;
    shared->next_offset = stored_offset == 0 ? 1 : stored_offset;
    return shared->next_offset;
}

static pawl_status check_event(const struct seq_shared *shared, uint64_t offset, pawl_error *reterr)
{
    if (offset != shared->next_offset) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          offset > shared->next_offset ? "the log has a hole: offset %" PRIu64
                                                         " follows where %" PRIu64 " should stand"
                                                       : "the log goes back: offset %" PRIu64
                                                         " follows where %" PRIu64 " should stand",
                          offset,
                          shared->next_offset);
    }
    if (offset == PAWL_SEQ_NUMBER_MAX) {
        return pawl__fail_detail(
            reterr, PAWL_FAILED, PAWL_DETAIL_EXHAUSTED, "the last offset of the log is used");
    }
    return PAWL_OK;
}

pawl_status pawl__seq_core_event(struct seq_core *core,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 uint64_t offset,
                                 pawl_error *reterr)
{
    struct seq_shared *shared = &core->shared;

    TRY(check_event(shared, offset, reterr));
    if (pawl__seq_core_unflushed(core) >= core->unflushed_max) {
        return pawl__fail(
            reterr, PAWL_BUSY, "%zu numbers wait to be written", pawl__seq_core_unflushed(core));
    }
    TRY(pawl__seq_table_reserve(&shared->filling, count, reterr));
    for (size_t i = 0; i < count; i++) {
        pawl__seq_table_merge(&shared->filling, &values[i]);
    }
    shared->next_offset = offset + 1;
    /* a second walk starts further back */
    shared->filling_offset = MAX(shared->filling_offset, shared->next_offset);
    return PAWL_OK;
}

void pawl__seq_core_actualized(struct seq_core *core)
{
    core->shared.actualizing = false;
}

/* --- writing --- */

bool pawl__seq_core_begin_write(struct seq_core *core,
                                const pawl_seq_value **ret_values,
                                size_t *ret_count,
                                uint64_t *ret_offset)
{
    struct seq_shared *shared = &core->shared;

    if (shared->flushing_offset == 0 && shared->filling_offset != 0) {
        struct seq_table empty = shared->flushing;
        shared->flushing = shared->filling;
        shared->flushing_offset = shared->filling_offset;
        shared->filling = empty;
        shared->filling_offset = 0;
    }
    *ret_values = shared->flushing.values;
    *ret_count = shared->flushing.count;
    *ret_offset = shared->flushing_offset;
    return shared->flushing_offset != 0;
}

void pawl__seq_core_written(struct seq_core *core)
{
    struct seq_shared *shared = &core->shared;

    REQUIRE(shared->flushing_offset != 0);
    shared->stored_offset = shared->flushing_offset;
    shared->flushing_offset = 0;
    pawl__seq_table_clear(&shared->flushing);
}
