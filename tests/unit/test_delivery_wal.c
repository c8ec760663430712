/* What every consumer WAL promises (delivery/core/wal.h). The argument says which one: memory, rocksdb. Memory is
 * the reference, and the last test plays both against each other. */
#include "lib/wal_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/random.h"
#include "lib/fault.h"

#define PENDING (1U << DELIVERY_PENDING)
#define CONFIRMED (1U << DELIVERY_CONFIRMED)
#define FAILED (1U << DELIVERY_FAILED)

static bool in_memory;

static int set_up(void **state)
{
    struct wal_fixture *f = calloc(1, sizeof(*f));

    *state = f;
    wal_fixture_open(f, in_memory);
    return 0;
}

static int tear_down(void **state)
{
    wal_fixture_close(*state);
    free(*state);
    return 0;
}

static struct delivery_hit lookup(struct wal_fixture *f, uint64_t number)
{
    struct delivery_key key = wal_key_of(number);
    struct delivery_hit hit;

    assert_ok(f->wal->ops->lookup(f->wal, &key, 1, &hit, &f->error), &f->error);
    return hit;
}

static void clean_up(struct wal_fixture *f, delivery_lsn to)
{
    assert_ok(f->wal->ops->clean_up(f->wal, to, &f->error), &f->error);
}

static void test_a_new_wal_knows_nothing(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_wal_meta meta;
    struct delivery_wal_stats stats = wal_stats(f);
    bool found = true;

    assert_ok(f->wal->ops->read_meta(f->wal, &meta, &found, &f->error), &f->error);
    assert_false(found);
    assert_int_equal(stats.first, 1);
    assert_int_equal(stats.last, 0);
    assert_int_equal(stats.cleaned, 0);
    assert_int_equal(stats.entries[DELIVERY_PENDING], 0);
    assert_string_equal(wal_lsns(f, 0, UINT64_MAX, DELIVERY_STATES_ALL), "");
    assert_false(lookup(f, 1).found);
}

static void test_metadata_is_read_back_as_it_was_written(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_wal_meta meta;
    struct delivery_wal_meta read;
    bool found = false;

    memset(&meta, 0, sizeof(meta));
    memset(meta.wal_id.bytes, 0xA1, sizeof(meta.wal_id.bytes));
    memset(meta.sink_id.bytes, 0xB2, sizeof(meta.sink_id.bytes));
    meta.epoch = 3;
    meta.fence = UINT64_MAX;
    meta.applied = 12;
    meta.restart_source = true;
    meta.rewound = (struct delivery_rewound){ 21, 22, 23, 24 };
    meta.doubt_to = 25;
    meta.begun_at = 26;
    meta.running_ns = -1;
    meta.stream = (struct delivery_place){ INT64_MIN, 9, INT64_MAX };
    memset(meta.lease_holder, 'h', sizeof(meta.lease_holder) - 1);
    meta.lease_until_us = 5;
    assert_ok(f->wal->ops->write_meta(f->wal, &meta, &f->error), &f->error);
    wal_reopen(f);
    assert_ok(f->wal->ops->read_meta(f->wal, &read, &found, &f->error), &f->error);
    assert_true(found);
    assert_memory_equal(&read.wal_id, &meta.wal_id, sizeof(meta.wal_id));
    assert_memory_equal(&read.sink_id, &meta.sink_id, sizeof(meta.sink_id));
    assert_int_equal(read.epoch, 3);
    assert_true(read.fence == UINT64_MAX);
    assert_int_equal(read.applied, 12);
    assert_true(read.restart_source);
    assert_memory_equal(&read.rewound, &meta.rewound, sizeof(meta.rewound));
    assert_int_equal(read.doubt_to, 25);
    assert_int_equal(read.begun_at, 26);
    assert_int_equal(read.running_ns, -1);
    assert_memory_equal(&read.stream, &meta.stream, sizeof(meta.stream));
    assert_string_equal(read.lease_holder, meta.lease_holder);
    assert_int_equal(read.lease_until_us, 5);
}

static void test_entries_are_read_back_byte_for_byte(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 40);
    wal_reopen(f);
    (void)wal_lsns(f, 1, 100, DELIVERY_STATES_ALL);
    assert_int_equal(f->page.count, 40);
    for (size_t i = 0; i < 40; i++) {
        wal_assert_entry(&f->page.entries[i], i + 1, i + 1);
        assert_int_equal(f->page.entries[i].fate.state, DELIVERY_PENDING);
        assert_int_equal(f->page.entries[i].fate.attempts, 0);
    }
}

static void test_a_payload_may_hold_any_byte_or_none(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_sample samples[2];
    char bytes[256];
    struct delivery_entry entries[2];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)i;
    }
    for (size_t i = 0; i < 2; i++) {
        wal_sample(&samples[i], i + 1, i + 1);
        entries[i] = samples[i].entry;
    }
    entries[0].payload = (pawl_view){ bytes, sizeof(bytes) };
    entries[0].admitted = DELIVERY_AS_CONFLICT;
    entries[1].payload = (pawl_view){ NULL, 0 };
    entries[1].admitted = DELIVERY_AS_BAD_ID;
    assert_ok(f->wal->ops->append(f->wal, entries, 2, &f->meta, &f->error), &f->error);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, 2, DELIVERY_STATES_ALL), "1 2");
    assert_int_equal(f->page.entries[0].payload.len, sizeof(bytes));
    assert_memory_equal(f->page.entries[0].payload.data, bytes, sizeof(bytes));
    assert_int_equal(f->page.entries[0].admitted, DELIVERY_AS_CONFLICT);
    assert_int_equal(f->page.entries[1].payload.len, 0);
    assert_int_equal(f->page.entries[1].admitted, DELIVERY_AS_BAD_ID);
}

static void test_lsns_may_leave_gaps(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 3, 4);
    wal_append(f, UINT64_C(1) << 40, UINT64_C(1) << 40);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, UINT64_MAX, DELIVERY_STATES_ALL), "3 4 1099511627776");
    assert_int_equal(wal_stats(f).first, 3);
    assert_int_equal(wal_stats(f).last, UINT64_C(1) << 40);
}

static void test_append_writes_metadata_too(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_wal_meta meta;
    bool found = false;

    f->meta.applied = 31;
    wal_append(f, 1, 1);
    wal_reopen(f);
    assert_ok(f->wal->ops->read_meta(f->wal, &meta, &found, &f->error), &f->error);
    assert_true(found);
    assert_int_equal(meta.applied, 31);
}

static void test_a_read_keeps_its_range_and_limits(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_range range = {
        .from = 2, .to = 9, .states = DELIVERY_STATES_ALL, .entries_max = 3, .bytes_max = SIZE_MAX
    };

    wal_append(f, 1, 10);
    assert_string_equal(wal_lsns(f, 4, 6, DELIVERY_STATES_ALL), "4 5 6");
    assert_string_equal(wal_lsns(f, 6, 4, DELIVERY_STATES_ALL), "");
    assert_ok(f->wal->ops->read(f->wal, &range, &f->page, &f->error), &f->error);
    assert_int_equal(f->page.count, 3);
    assert_int_equal(f->page.entries[2].lsn, 4);
    range.bytes_max = 0; /* the entry that exceeds it still comes */
    assert_ok(f->wal->ops->read(f->wal, &range, &f->page, &f->error), &f->error);
    assert_int_equal(f->page.count, 1);
    assert_int_equal(f->page.entries[0].lsn, 2);
}

static void test_a_mark_moves_an_entry_to_another_state(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 6);
    wal_mark(f, 2, DELIVERY_CONFIRMED);
    wal_mark(f, 3, DELIVERY_FAILED);
    wal_mark(f, 5, DELIVERY_CONFIRMED);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2c 3f 4 5c 6");
    assert_string_equal(wal_lsns(f, 1, 9, PENDING), "1 4 6");
    assert_string_equal(wal_lsns(f, 1, 9, CONFIRMED), "2c 5c");
    assert_string_equal(wal_lsns(f, 1, 9, FAILED | PENDING), "1 3f 4 6");
    wal_mark(f, 2, DELIVERY_PENDING); /* as after a sink was lost */
    wal_mark(f, 3, DELIVERY_CONFIRMED);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2 3c 4 5c 6");
    wal_assert_entry(&f->page.entries[2], 3, 3);
}

static void test_a_fate_is_kept_whole(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_fate fate = {
        .state = DELIVERY_FAILED,
        .attempts = UINT32_MAX,
        .last_attempt_us = 1700000000000001,
        .ended_us = INT64_MAX,
    };
    delivery_lsn lsn = 1;

    memset(fate.last_error, 'e', sizeof(fate.last_error) - 1);
    snprintf(fate.failure_reason, sizeof(fate.failure_reason), "max_retries_exceeded");
    wal_append(f, 1, 1);
    assert_ok(f->wal->ops->mark(f->wal, &lsn, &fate, 1, &f->error), &f->error);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, 1, DELIVERY_STATES_ALL), "1f");
    const struct delivery_fate *read = &f->page.entries[0].fate;
    assert_int_equal(read->attempts, UINT32_MAX);
    assert_int_equal(read->last_attempt_us, fate.last_attempt_us);
    assert_true(read->ended_us == INT64_MAX);
    assert_string_equal(read->last_error, fate.last_error);
    assert_string_equal(read->failure_reason, "max_retries_exceeded");
}

static void test_marks_of_absent_entries_are_left_out_and_the_last_of_two_counts(void **state)
{
    struct wal_fixture *f = *state;
    const delivery_lsn lsns[] = { 99, 2, 1, 2, 0 };
    const struct delivery_fate fates[] = { { .state = DELIVERY_FAILED },
                                           { .state = DELIVERY_CONFIRMED },
                                           { .state = DELIVERY_CONFIRMED },
                                           { .state = DELIVERY_FAILED },
                                           { .state = DELIVERY_FAILED } };

    wal_append(f, 1, 3);
    assert_ok(f->wal->ops->mark(f->wal, lsns, fates, 5, &f->error), &f->error);
    assert_string_equal(wal_lsns(f, 0, UINT64_MAX, DELIVERY_STATES_ALL), "1c 2f 3");
    assert_int_equal(wal_stats(f).entries[DELIVERY_FAILED], 1);
}

static void test_many_are_marked_and_looked_up_at_once(void **state)
{
    struct wal_fixture *f = *state;
    enum { COUNT = 700 };
    delivery_lsn lsns[COUNT];
    struct delivery_fate *fates = calloc(COUNT, sizeof(*fates));
    struct delivery_key keys[COUNT];
    struct delivery_hit hits[COUNT];

    assert_non_null(fates);
    wal_append(f, 1, COUNT / 2);
    for (size_t i = 0; i < COUNT; i++) {
        lsns[i] = i + 1;
        fates[i].state = i % 7 == 0 ? DELIVERY_FAILED : DELIVERY_CONFIRMED;
        keys[i] = wal_key_of(i + 1);
    }
    assert_ok(f->wal->ops->mark(f->wal, lsns, fates, COUNT, &f->error), &f->error);
    assert_ok(f->wal->ops->lookup(f->wal, keys, COUNT, hits, &f->error), &f->error);
    free(fates);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(hits[i].found, i < COUNT / 2);
        assert_int_equal(hits[i].lsn, i < COUNT / 2 ? i + 1 : 0);
    }
    assert_int_equal(wal_stats(f).entries[DELIVERY_FAILED], 50);
    assert_int_equal(wal_stats(f).entries[DELIVERY_CONFIRMED], 300);
}

static void test_the_index_names_epoch_lsn_and_payload(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_key fresh = wal_key_of(50);
    struct delivery_key second = wal_key_of(2);

    f->meta.epoch = 4;
    wal_append(f, 1, 3);
    assert_ok(f->wal->ops->put_index(f->wal, &fresh, 1, 3, &f->error), &f->error);
    wal_reopen(f);
    struct delivery_hit hit = lookup(f, 2);
    assert_true(hit.found);
    assert_int_equal(hit.epoch, 4);
    assert_int_equal(hit.lsn, 2);
    assert_memory_equal(&hit.payload_hash, &second.payload_hash, sizeof(hit.payload_hash));
    hit = lookup(f, 50);
    assert_true(hit.found);
    assert_int_equal(hit.epoch, 3);
    assert_int_equal(hit.lsn, 0);
    assert_false(lookup(f, 51).found);
}

static void test_reindexing_puts_what_is_there_under_a_new_epoch(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 4);
    wal_mark(f, 1, DELIVERY_CONFIRMED);
    wal_mark(f, 2, DELIVERY_FAILED);
    clean_up(f, 4);
    assert_ok(f->wal->ops->reindex(f->wal, 9, &f->error), &f->error);
    f->meta.epoch = 9;
    assert_ok(f->wal->ops->write_meta(f->wal, &f->meta, &f->error), &f->error);
    wal_reopen(f);
    assert_int_equal(lookup(f, 1).epoch, 1); /* its entry is gone */
    assert_int_equal(lookup(f, 2).epoch, 9);
    assert_int_equal(lookup(f, 4).epoch, 9);
    assert_int_equal(lookup(f, 4).lsn, 4);
}

static void append_by_place(struct wal_fixture *f, delivery_lsn lsn)
{
    struct wal_sample sample;

    wal_sample(&sample, lsn, lsn);
    sample.entry.by_place = true;
    assert_ok(f->wal->ops->append(f->wal, &sample.entry, 1, &f->meta, &f->error), &f->error);
}

static void test_an_entry_by_place_is_found_while_it_is_there(void **state)
{
    struct wal_fixture *f = *state;

    append_by_place(f, 1);
    append_by_place(f, 2);
    wal_mark(f, 2, DELIVERY_CONFIRMED);
    wal_reopen(f);
    assert_int_equal(lookup(f, 1).lsn, 1);
    assert_int_equal(lookup(f, 2).lsn, 2);
    assert_int_equal(lookup(f, 1).epoch, 1);
    clean_up(f, 2);
    assert_int_equal(lookup(f, 1).lsn, 1);
    assert_false(lookup(f, 2).found); /* its place is below what the sink has applied */
    f->meta.epoch = 5;
    assert_ok(f->wal->ops->write_meta(f->wal, &f->meta, &f->error), &f->error);
    assert_int_equal(lookup(f, 1).epoch, 5); /* the entry speaks for itself */
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1");
    assert_true(f->page.entries[0].by_place);
}

static void test_cleaning_up_forgets_confirmed_entries_and_keeps_their_keys(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 8);
    for (delivery_lsn lsn = 1; lsn <= 6; lsn++) {
        wal_mark(f, lsn, lsn == 3 ? DELIVERY_FAILED : DELIVERY_CONFIRMED);
    }
    wal_mark(f, 4, DELIVERY_PENDING);
    clean_up(f, 5);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, 99, DELIVERY_STATES_ALL), "3f 4 6c 7 8");
    assert_int_equal(wal_stats(f).first, 3);
    assert_int_equal(wal_stats(f).cleaned, 5);
    assert_int_equal(lookup(f, 1).lsn, 1);
    clean_up(f, 2); /* lower than before */
    assert_int_equal(wal_stats(f).cleaned, 5);
    wal_mark(f, 3, DELIVERY_CONFIRMED); /* somebody has resolved it */
    wal_mark(f, 4, DELIVERY_CONFIRMED);
    clean_up(f, 8);
    assert_string_equal(wal_lsns(f, 1, 99, DELIVERY_STATES_ALL), "7 8");
    wal_mark(f, 7, DELIVERY_CONFIRMED);
    wal_mark(f, 8, DELIVERY_CONFIRMED);
    clean_up(f, 8);
    wal_reopen(f);
    assert_int_equal(wal_stats(f).first, 9);
    assert_int_equal(wal_stats(f).last, 8);
    wal_append(f, 9, 9);
    assert_string_equal(wal_lsns(f, 1, 99, DELIVERY_STATES_ALL), "9");
}

static void test_cleaning_up_reaches_any_lsn(void **state)
{
    struct wal_fixture *f = *state;

    clean_up(f, 10);
    wal_append(f, 1, 3);
    wal_mark(f, 2, DELIVERY_CONFIRMED);
    clean_up(f, UINT64_MAX);
    wal_reopen(f);
    assert_string_equal(wal_lsns(f, 1, UINT64_MAX, DELIVERY_STATES_ALL), "1 3");
    assert_true(wal_stats(f).cleaned == UINT64_MAX);
    wal_append(f, 4, 5);
    assert_string_equal(wal_lsns(f, 1, UINT64_MAX, DELIVERY_STATES_ALL), "1 3 4 5");
}

static void test_statistics_count_entries_and_bytes_of_each_state(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_sample sample;
    uint64_t bytes[4];

    for (uint64_t i = 1; i <= 3; i++) {
        wal_sample(&sample, i, i);
        bytes[i] = pawl__delivery_entry_bytes(&sample.entry);
    }
    wal_append(f, 1, 3);
    wal_mark(f, 1, DELIVERY_CONFIRMED);
    wal_mark(f, 2, DELIVERY_FAILED);
    wal_reopen(f);
    struct delivery_wal_stats stats = wal_stats(f);
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        assert_int_equal(stats.entries[i], 1);
    }
    assert_int_equal(stats.bytes[DELIVERY_CONFIRMED], bytes[1]);
    assert_int_equal(stats.bytes[DELIVERY_FAILED], bytes[2]);
    assert_int_equal(stats.bytes[DELIVERY_PENDING], bytes[3]);
    assert_true(stats.index_entries >= 3);
    assert_true(stats.index_bytes > 0);
    clean_up(f, 1);
    stats = wal_stats(f);
    assert_int_equal(stats.entries[DELIVERY_CONFIRMED], 0);
    assert_int_equal(stats.bytes[DELIVERY_CONFIRMED], 0);
}

static void test_without_memory_a_call_changes_nothing(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_sample sample;
    struct delivery_fate fate = { .state = DELIVERY_CONFIRMED };
    delivery_lsn lsn = 1;

    wal_sample(&sample, 1, 1);
    FAULT_WALK (walk) {
        pawl_status status = f->wal->ops->append(f->wal, &sample.entry, 1, &f->meta, &f->error);
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), fired ? "" : "1");
        assert_int_equal(wal_stats(f).entries[DELIVERY_PENDING], fired ? 0 : 1);
        assert_int_equal(lookup(f, 1).found, !fired);
    }
    FAULT_WALK (walk) {
        pawl_status status = f->wal->ops->mark(f->wal, &lsn, &fate, 1, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    FAULT_WALK (walk) {
        struct delivery_range range = {
            .from = 1, .to = 9, .states = 7, .entries_max = 9, .bytes_max = 9
        };
        struct delivery_page page = { .count = 0 };
        pawl_status status = f->wal->ops->read(f->wal, &range, &page, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__delivery_page_done(&page);
    }
    FAULT_WALK (walk) {
        pawl_status status = f->wal->ops->reindex(f->wal, 2, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    FAULT_WALK (walk) {
        pawl_status status = f->wal->ops->clean_up(f->wal, 1, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "");
    assert_int_equal(wal_stats(f).entries[DELIVERY_CONFIRMED], 0);
}

/* --- against the reference --- */

enum { STEPS = 3000 };

struct play {
    struct wal_fixture *f;
    struct delivery_memory_wal reference;
    struct pawl__prng prng;
    delivery_lsn last;
    uint64_t epoch;
};

static void both_append(struct play *play)
{
    struct wal_sample samples[6];
    struct delivery_entry entries[6];
    size_t count = (size_t)pawl__prng_below(&play->prng, 6);

    for (size_t i = 0; i < count; i++) {
        play->last += pawl__prng_below(&play->prng, 20) == 0 ? 6U : 1U;
        wal_sample(&samples[i], play->last, play->last);
        entries[i] = samples[i].entry;
        entries[i].by_place = pawl__prng_below(&play->prng, 4) == 0;
    }
    play->f->meta.epoch = play->epoch;
    play->f->meta.applied = play->last;
    assert_ok(
        play->f->wal->ops->append(play->f->wal, entries, count, &play->f->meta, &play->f->error),
        &play->f->error);
    assert_ok(play->reference.base.ops->append(
                  &play->reference.base, entries, count, &play->f->meta, &play->f->error),
              &play->f->error);
}

static void both_mark(struct play *play)
{
    delivery_lsn lsns[8];
    struct delivery_fate fates[8];
    size_t count = 1 + (size_t)pawl__prng_below(&play->prng, 8);

    for (size_t i = 0; i < count; i++) {
        uint64_t kind = pawl__prng_below(&play->prng, 10);
        lsns[i] = 1 + pawl__prng_below(&play->prng, play->last + 2);
        fates[i] = (struct delivery_fate){
            .state = kind < 6   ? DELIVERY_CONFIRMED
                     : kind < 8 ? DELIVERY_FAILED
                                : DELIVERY_PENDING,
            .attempts = (uint32_t)pawl__prng_below(&play->prng, 100),
        };
        snprintf(fates[i].last_error, sizeof(fates[i].last_error), "error %u", fates[i].attempts);
    }
    assert_ok(play->f->wal->ops->mark(play->f->wal, lsns, fates, count, &play->f->error),
              &play->f->error);
    assert_ok(
        play->reference.base.ops->mark(&play->reference.base, lsns, fates, count, &play->f->error),
        &play->f->error);
}

static void both_clean(struct play *play)
{
    delivery_lsn to = pawl__prng_below(&play->prng, play->last + 2);

    clean_up(play->f, to);
    assert_ok(play->reference.base.ops->clean_up(&play->reference.base, to, &play->f->error),
              &play->f->error);
}

static void both_reindex(struct play *play)
{
    struct delivery_key key = wal_key_of(1 + pawl__prng_below(&play->prng, play->last + 1));

    play->epoch++;
    assert_ok(play->f->wal->ops->put_index(play->f->wal, &key, 1, play->epoch, &play->f->error),
              &play->f->error);
    assert_ok(play->reference.base.ops->put_index(
                  &play->reference.base, &key, 1, play->epoch, &play->f->error),
              &play->f->error);
    assert_ok(play->f->wal->ops->reindex(play->f->wal, play->epoch, &play->f->error),
              &play->f->error);
    assert_ok(
        play->reference.base.ops->reindex(&play->reference.base, play->epoch, &play->f->error),
        &play->f->error);
    play->f->meta.epoch = play->epoch;
    assert_ok(play->f->wal->ops->write_meta(play->f->wal, &play->f->meta, &play->f->error),
              &play->f->error);
    assert_ok(play->reference.base.ops->write_meta(
                  &play->reference.base, &play->f->meta, &play->f->error),
              &play->f->error);
}

static void compare_pages(struct play *play)
{
    struct delivery_page expected = { .count = 0 };
    struct wal_fixture *f = play->f;
    struct delivery_range range = {
        .from = pawl__prng_below(&play->prng, play->last + 2),
        .to = pawl__prng_below(&play->prng, 3) == 0 ? pawl__prng_below(&play->prng, play->last + 2)
                                                    : UINT64_MAX,
        .states = (unsigned)pawl__prng_between(&play->prng, 1, 7),
        .entries_max = (size_t)pawl__prng_between(&play->prng, 1, 400),
        .bytes_max = (size_t)pawl__prng_between(&play->prng, 1, 100000),
    };

    assert_ok(f->wal->ops->read(f->wal, &range, &f->page, &f->error), &f->error);
    assert_ok(play->reference.base.ops->read(&play->reference.base, &range, &expected, &f->error),
              &f->error);
    assert_int_equal(f->page.count, expected.count);
    assert_int_equal(f->page.bytes, expected.bytes);
    for (size_t i = 0; i < expected.count; i++) {
        wal_assert_entry(&f->page.entries[i], expected.entries[i].lsn, expected.entries[i].lsn);
        assert_int_equal(f->page.entries[i].by_place, expected.entries[i].by_place);
        assert_int_equal(f->page.entries[i].fate.state, expected.entries[i].fate.state);
        assert_int_equal(f->page.entries[i].fate.attempts, expected.entries[i].fate.attempts);
        assert_string_equal(f->page.entries[i].fate.last_error,
                            expected.entries[i].fate.last_error);
    }
    pawl__delivery_page_done(&expected);
}

static void compare_hits(struct play *play)
{
    struct delivery_key keys[20];
    struct delivery_hit hits[20];
    struct delivery_hit expected[20];

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        keys[i] = wal_key_of(1 + pawl__prng_below(&play->prng, play->last + 60));
    }
    assert_ok(play->f->wal->ops->lookup(play->f->wal, keys, COUNT_OF(keys), hits, &play->f->error),
              &play->f->error);
    assert_ok(play->reference.base.ops->lookup(
                  &play->reference.base, keys, COUNT_OF(keys), expected, &play->f->error),
              &play->f->error);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        /* An older epoch counts for nothing, and may be forgotten. */
        bool counts = hits[i].found && hits[i].epoch >= play->epoch;
        assert_int_equal(counts, expected[i].found && expected[i].epoch >= play->epoch);
        if (counts) {
            assert_int_equal(hits[i].epoch, expected[i].epoch);
            assert_int_equal(hits[i].lsn, expected[i].lsn);
            assert_true(
                pawl__delivery_hash_equal(&hits[i].payload_hash, &expected[i].payload_hash));
        }
    }
}

static void compare_stats(struct play *play)
{
    struct delivery_wal_stats stats = wal_stats(play->f);
    struct delivery_wal_stats expected;

    assert_ok(play->reference.base.ops->stats(&play->reference.base, &expected, &play->f->error),
              &play->f->error);
    assert_int_equal(stats.first, expected.first);
    assert_int_equal(stats.last, expected.last);
    assert_int_equal(stats.cleaned, expected.cleaned);
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++) {
        assert_int_equal(stats.entries[i], expected.entries[i]);
        assert_int_equal(stats.bytes[i], expected.bytes[i]);
    }
}

static void play_step(struct play *play)
{
    uint64_t kind = pawl__prng_below(&play->prng, 1000);

    if (kind < 150) {
        both_append(play);
    } else if (kind < 500) {
        both_mark(play);
    } else if (kind < 530) {
        both_clean(play);
    } else if (kind < 533) {
        both_reindex(play);
    } else if (kind < 540) {
        wal_reopen(play->f);
    } else if (kind < 750) {
        compare_pages(play);
    } else if (kind < 900) {
        compare_hits(play);
    } else {
        compare_stats(play);
    }
}

static void test_a_random_play_agrees_with_the_reference(void **state)
{
    struct play play = {
        .f = *state,
        .reference = pawl__delivery_memory_wal(),
        .prng = pawl__prng_seeded(20261117),
        .epoch = 1,
    };

    for (int i = 0; i < STEPS; i++) {
        play_step(&play);
    }
    compare_stats(&play);
    assert_true(wal_stats(play.f).entries[DELIVERY_PENDING] > 0);
    if (!in_memory) {
        assert_ok(pawl__delivery_rocksdb_wal_verify(play.f->wal, &play.f->error), &play.f->error);
    }
    pawl__delivery_memory_wal_done(&play.reference);
}

#define wal_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void decide(struct wal_fixture *f, delivery_lsn lsn, const char *who, const char *edited)
{
    const struct delivery_decision decision = {
        .lsn = lsn,
        .status = DELIVERY_FAILED_RESOLVED,
        .resolution = DELIVERY_RESOLVED_DELIVERED,
        .at_us = -5,
        .who = pawl_view_of(who),
        .notes = pawl_view_of("why"),
        .edited_payload = pawl_view_of(edited),
    };

    assert_ok(f->wal->ops->decide(f->wal, &decision, 1, &f->error), &f->error);
}

static const char *decided(struct wal_fixture *f, delivery_lsn after, size_t room)
{
    static char text[64];
    delivery_lsn lsns[8];
    size_t count = 0;
    int len = 0;

    assert_ok(f->wal->ops->decided(f->wal, after, lsns, room, &count, &f->error), &f->error);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        len += snprintf(
            &text[len], sizeof(text) - (size_t)len, "%s%d", i == 0 ? "" : " ", (int)lsns[i]);
    }
    return text;
}

static void test_a_decision_is_kept_with_its_entry_and_confirms_it(void **state)
{
    struct wal_fixture *f = *state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_decision read;
    bool found = false;

    wal_append(f, 1, 5);
    for (delivery_lsn lsn = 1; lsn <= 5; lsn++) {
        wal_mark(f, lsn, DELIVERY_FAILED);
    }
    assert_ok(f->wal->ops->read_decision(f->wal, 2, &arena, &read, &found, &f->error), &f->error);
    assert_false(found);
    decide(f, 2, "kim", "");
    decide(f, 4, "kim", "{}");
    decide(f, 2, "lou", "[1]"); /* on second thoughts */
    decide(f, 9, "kim", "");    /* there is no such entry */
    for (int round = 0; round < 2; round++) {
        assert_string_equal(decided(f, 0, 8), "2 4");
        assert_string_equal(decided(f, 2, 8), "4");
        assert_string_equal(decided(f, 0, 1), "2");
        assert_string_equal(decided(f, UINT64_MAX, 8), "");
        assert_string_equal(wal_lsns(f, 0, UINT64_MAX, CONFIRMED), "2c 4c");
        assert_int_equal(wal_stats(f).entries[DELIVERY_FAILED], 3);
        wal_reopen(f);
    }
    assert_ok(f->wal->ops->read_decision(f->wal, 2, &arena, &read, &found, &f->error), &f->error);
    assert_true(found);
    assert_int_equal(read.lsn, 2);
    assert_int_equal(read.status, DELIVERY_FAILED_RESOLVED);
    assert_int_equal(read.resolution, DELIVERY_RESOLVED_DELIVERED);
    assert_int_equal(read.at_us, -5);
    assert_true(pawl__view_is(read.who, "lou"));
    assert_true(pawl__view_is(read.notes, "why"));
    assert_true(pawl__view_is(read.edited_payload, "[1]"));
}

static void test_decisions_on_absent_entries_are_left_out(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_decision decisions[5] = {
        { .lsn = 7 }, { .lsn = 1 }, { .lsn = 3 }, { .lsn = 8 }, { .lsn = 9 }
    };

    wal_append(f, 1, 3);
    assert_ok(f->wal->ops->decide(f->wal, decisions, 5, &f->error), &f->error);
    wal_reopen(f);
    assert_string_equal(decided(f, 0, 8), "1 3");
    assert_string_equal(wal_lsns(f, 0, UINT64_MAX, DELIVERY_STATES_ALL), "1c 2 3c");
    assert_ok(f->wal->ops->decide(f->wal, decisions, 0, &f->error), &f->error);
}

static void test_a_decision_is_forgotten_with_its_entry(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 5);
    for (delivery_lsn lsn = 1; lsn <= 5; lsn++) {
        wal_mark(f, lsn, DELIVERY_FAILED);
        decide(f, lsn, "kim", "");
    }
    wal_mark(f, 2, DELIVERY_PENDING); /* its sink was lost: the decision has to be made again */
    clean_up(f, 3);
    wal_reopen(f);
    assert_string_equal(decided(f, 0, 8), "2 4 5");
    assert_string_equal(wal_lsns(f, 0, UINT64_MAX, DELIVERY_STATES_ALL), "2 4c 5c");
    wal_mark(f, 2, DELIVERY_CONFIRMED);
    clean_up(f, 5);
    assert_string_equal(decided(f, 0, 8), "");
    assert_string_equal(wal_lsns(f, 0, UINT64_MAX, DELIVERY_STATES_ALL), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        wal_test(test_a_new_wal_knows_nothing),
        wal_test(test_metadata_is_read_back_as_it_was_written),
        wal_test(test_entries_are_read_back_byte_for_byte),
        wal_test(test_a_payload_may_hold_any_byte_or_none),
        wal_test(test_lsns_may_leave_gaps),
        wal_test(test_append_writes_metadata_too),
        wal_test(test_a_read_keeps_its_range_and_limits),
        wal_test(test_a_mark_moves_an_entry_to_another_state),
        wal_test(test_a_fate_is_kept_whole),
        wal_test(test_marks_of_absent_entries_are_left_out_and_the_last_of_two_counts),
        wal_test(test_many_are_marked_and_looked_up_at_once),
        wal_test(test_the_index_names_epoch_lsn_and_payload),
        wal_test(test_reindexing_puts_what_is_there_under_a_new_epoch),
        wal_test(test_an_entry_by_place_is_found_while_it_is_there),
        wal_test(test_cleaning_up_forgets_confirmed_entries_and_keeps_their_keys),
        wal_test(test_cleaning_up_reaches_any_lsn),
        wal_test(test_statistics_count_entries_and_bytes_of_each_state),
        wal_test(test_without_memory_a_call_changes_nothing),
        wal_test(test_a_random_play_agrees_with_the_reference),
        wal_test(test_a_decision_is_kept_with_its_entry_and_confirms_it),
        wal_test(test_decisions_on_absent_entries_are_left_out),
        wal_test(test_a_decision_is_forgotten_with_its_entry),
    };

    if (argc != 2 || (strcmp(argv[1], "memory") != 0 && strcmp(argv[1], "rocksdb") != 0)) {
        fprintf(stderr, "usage: test_delivery_wal memory|rocksdb\n");
        return 2;
    }
    in_memory = strcmp(argv[1], "memory") == 0;
    return cmocka_run_group_tests_name("delivery_wal", tests, NULL, NULL);
}
