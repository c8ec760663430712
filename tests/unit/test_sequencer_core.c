/* What a sequencer decides, without threads and time: as a play with a model, and where it is
 * narrow. */
#include "lib/check.h"

#include <stdlib.h>

#include "base/core/random.h"
#include "sequencer/core.h"

enum { KIND = 1, WIDE = 2, FIRST = 10, WORKSPACES = 9, SMALL = 5 };
#define SEQUENCES ((uint16_t)3)       /* of KIND, and ... */
#define WIDE_SEQUENCES ((uint16_t)24) /* ... of WIDE */

static const pawl_seq_storage no_storage;

static void open_core(struct seq_core *core, uint32_t cache, uint32_t unflushed)
{
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_seq_type types[SEQUENCES + WIDE_SEQUENCES];

    for (uint16_t i = 0; i < SEQUENCES; i++) {
        types[i] = (pawl_seq_type){ sizeof(pawl_seq_type), KIND, i, FIRST };
    }
    for (uint16_t i = 0; i < WIDE_SEQUENCES; i++) {
        types[SEQUENCES + i] = (pawl_seq_type){ sizeof(pawl_seq_type), WIDE, i, FIRST };
    }
    options.types = types;
    options.type_count = COUNT_OF(types);
    options.storage = &no_storage;
    options.cache_size = cache;
    options.unflushed_max = unflushed;
    assert_ok(pawl__seq_core_init(core, &options, &error), &error);
}

static void end_event(struct seq_core *core)
{
    bool forgotten = false;

    (void)pawl__seq_core_flush(core, &forgotten);
    assert_false(forgotten);
}

/* --- the model: a log, and what a storage has of it --- */

struct event {
    uint64_t workspace;
    uint64_t last[WIDE_SEQUENCES]; /* 0: took none */
};

struct play {
    struct seq_core core;
    struct pawl__prng random;
    struct event log[2000];
    uint64_t log_count;
    uint64_t stored[WORKSPACES][WIDE_SEQUENCES];
    uint64_t stored_offset;
    /* A write that was begun: its numbers may or may not be there until it is answered. */
    bool writing;
    pawl_seq_value written[WORKSPACES * WIDE_SEQUENCES];
    size_t written_count;
    uint64_t written_offset;
};

static uint16_t kind_of(uint64_t workspace)
{
    return workspace <= SMALL ? KIND : WIDE;
}

static uint16_t sequences_of(uint64_t workspace)
{
    return kind_of(workspace) == KIND ? SEQUENCES : WIDE_SEQUENCES;
}

static uint64_t last_in_log(const struct play *play, uint64_t workspace, size_t sequence)
{
    uint64_t last = FIRST - 1;

    for (uint64_t i = 0; i < play->log_count; i++) {
        if (play->log[i].workspace == workspace && play->log[i].last[sequence] > last) {
            last = play->log[i].last[sequence];
        }
    }
    return last;
}

static uint64_t take_number(struct play *play, uint64_t workspace, uint16_t sequence)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t number = 0;
    bool known = false;

    assert_ok(pawl__seq_core_next(&play->core, sequence, &known, &number, &error), &error);
    if (!known) {
        pawl__seq_core_read_pending(&play->core, play->core.pending);
        for (size_t i = 0; i < sequences_of(workspace); i++) {
            play->core.stored[i] = play->stored[workspace - 1][i];
        }
        pawl__seq_core_supply(&play->core, sequence, play->core.pending, play->core.stored);
        assert_ok(pawl__seq_core_next(&play->core, sequence, &known, &number, &error), &error);
    }
    assert_true(known);
    return number;
}

static void read_log(struct play *play)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__seq_core_forget(&play->core);
    uint64_t offset = pawl__seq_core_read_from(&play->core, play->stored_offset);
    for (; offset <= play->log_count; offset++) {
        const struct event *event = &play->log[offset - 1];
        pawl_seq_value values[WIDE_SEQUENCES];
        size_t count = 0;
        for (uint16_t i = 0; i < WIDE_SEQUENCES; i++) {
            if (event->last[i] != 0) {
                values[count++] = (pawl_seq_value){ event->workspace, i, event->last[i] };
            }
        }
        assert_ok(pawl__seq_core_event(&play->core, values, count, offset, &error), &error);
    }
    pawl__seq_core_actualized(&play->core);
}

/* Every kind of moment at which a write may begin, succeed or fail. */
static void move_writer(struct play *play)
{
    const pawl_seq_value *values = NULL;

    if (!play->writing) {
        play->writing = pawl__seq_core_begin_write(
            &play->core, &values, &play->written_count, &play->written_offset);
        for (size_t i = 0; play->writing && i < play->written_count; i++) {
            play->written[i] = values[i];
        }
        return;
    }
    play->writing = false;
    if (pawl__prng_below(&play->random, 3) == 0) {
        return; /* failed: the next take brings it again */
    }
    for (size_t i = 0; i < play->written_count; i++) {
        uint64_t *stored = &play->stored[play->written[i].workspace - 1][play->written[i].sequence];
        assert_true(*stored <= play->written[i].value); /* replay never lowers one */
        *stored = play->written[i].value;
    }
    play->stored_offset = play->written_offset;
    pawl__seq_core_written(&play->core);
}

/* One event: takes numbers and says what it took. The log does not have it yet, but the events of
 * the same write before it count. */
static struct event take_numbers(struct play *play, uint64_t workspace)
{
    uint16_t sequences = sequences_of(workspace);
    uint64_t takes = pawl__prng_below(&play->random, 2 + sequences);
    struct event event = { .workspace = workspace };

    for (uint64_t i = 0; i < takes; i++) {
        uint16_t sequence = (uint16_t)pawl__prng_below(&play->random, sequences);
        uint64_t before = event.last[sequence] != 0 ? event.last[sequence]
                                                    : last_in_log(play, workspace, sequence);
        event.last[sequence] = take_number(play, workspace, sequence);
        assert_int_equal(event.last[sequence], before + 1);
        if (pawl__prng_below(&play->random, 3) == 0) {
            move_writer(play);
        }
    }
    return event;
}

/* A write of up to four events, some of which are dropped, which then is in the log or is not. */
static void transact(struct play *play)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t before = play->log_count;
    uint64_t events = 1 + pawl__prng_below(&play->random, 4);
    uint64_t offset = 0;
    bool open = false;

    for (uint64_t i = 0; i < events; i++) {
        uint64_t workspace = 1 + pawl__prng_below(&play->random, WORKSPACES);
        uint16_t kind = kind_of(workspace);
        assert_ok(open ? pawl__seq_core_also(&play->core, kind, workspace, &offset, &error)
                       : pawl__seq_core_start(&play->core, kind, workspace, &offset, &error),
                  &error);
        open = true;
        assert_int_equal(offset, play->log_count + 1);
        struct event event = take_numbers(play, workspace);
        if (pawl__prng_below(&play->random, 4) == 0) {
            open = pawl__seq_core_drop(&play->core);
            assert_int_equal(open, play->log_count > before);
        } else {
            play->log[play->log_count++] = event;
        }
    }
    if (!open) {
        return;
    }
    if (pawl__prng_below(&play->random, 8) == 0) {
        play->log_count = before;
        pawl__seq_core_actualize(&play->core);
        while (play->writing) {
            move_writer(play);
        }
        read_log(play);
        return;
    }
    end_event(&play->core);
}

static void test_numbers_follow_the_log_whatever_is_written_when(void **state)
{
    static struct play play;

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        play = (struct play){ .random = pawl__prng_seeded(seed) };
        open_core(&play.core, 1 + (uint32_t)(seed % 5), 1000);
        read_log(&play);
        for (int step = 0; step < 300; step++) {
            transact(&play);
            if (pawl__prng_below(&play.random, 2) == 0) {
                move_writer(&play);
            }
            if (pawl__prng_below(&play.random, 50) == 0) { /* the process dies */
                play.writing = false;
                pawl__seq_core_done(&play.core);
                open_core(&play.core, 1 + (uint32_t)(seed % 5), 1000);
                read_log(&play);
            }
        }
        pawl__seq_core_done(&play.core);
    }
}

/* The tables change places while a transaction is open; its numbers must find room in the other. */
static void test_a_write_that_begins_inside_a_transaction_leaves_it_room(void **state)
{
    struct seq_core core;
    pawl_error error = PAWL_ERROR_INIT;
    const pawl_seq_value *values = NULL;
    uint64_t out = 0;
    size_t count = 0;
    bool known = false;
    const uint64_t none[SEQUENCES] = { 0 };

    (void)state;
    open_core(&core, 8, 1000);
    (void)pawl__seq_core_read_from(&core, 0);
    pawl__seq_core_actualized(&core);
    for (uint64_t offset = 1; offset <= 4; offset++) {
        assert_ok(pawl__seq_core_start(&core, KIND, offset, &out, &error), &error);
        for (uint16_t i = 0; i < SEQUENCES; i++) {
            pawl__seq_core_supply(&core, i, none, none);
            assert_ok(pawl__seq_core_next(&core, i, &known, &out, &error), &error);
        }
        bool some = pawl__seq_core_begin_write(&core, &values, &count, &out);
        assert_int_equal(some, offset > 1);
        end_event(&core);
        if (some) {
            assert_int_equal(out, offset);
            pawl__seq_core_written(&core);
        }
    }
    assert_true(pawl__seq_core_begin_write(&core, &values, &count, &out));
    assert_int_equal(count, SEQUENCES);
    assert_int_equal(out, 5);
    pawl__seq_core_done(&core);
}

/* The first event of a write takes no number, and the second one belongs to a kind that has many. */
static void test_a_write_has_room_for_all_that_its_last_event_takes(void **state)
{
    struct seq_core core;
    pawl_error error = PAWL_ERROR_INIT;
    const uint64_t none[WIDE_SEQUENCES] = { 0 };
    uint64_t out = 0;
    bool known = false;

    (void)state;
    open_core(&core, 2 * WIDE_SEQUENCES, 1000);
    (void)pawl__seq_core_read_from(&core, 0);
    pawl__seq_core_actualized(&core);
    for (uint64_t workspace = 1; workspace <= 20; workspace++) {
        assert_ok(pawl__seq_core_start(&core, KIND, workspace, &out, &error), &error);
        pawl__seq_core_supply(&core, 0, none, none);
        assert_ok(pawl__seq_core_next(&core, 0, &known, &out, &error), &error);
        end_event(&core);
    }
    assert_ok(pawl__seq_core_start(&core, KIND, 21, &out, &error), &error);
    assert_ok(pawl__seq_core_also(&core, WIDE, 22, &out, &error), &error);
    for (uint16_t i = 0; i < WIDE_SEQUENCES; i++) {
        pawl__seq_core_supply(&core, i, none, none);
        assert_ok(pawl__seq_core_next(&core, i, &known, &out, &error), &error);
    }
    end_event(&core);
    assert_int_equal(pawl__seq_core_unflushed(&core), 20 + WIDE_SEQUENCES);
    pawl__seq_core_done(&core);
}

static void test_an_event_waits_while_too_much_is_unwritten(void **state)
{
    struct seq_core core;
    pawl_error error = PAWL_ERROR_INIT;
    const pawl_seq_value *values = NULL;
    uint64_t offset = 0;
    size_t count = 0;

    (void)state;
    open_core(&core, 8, 2);
    assert_int_equal(pawl__seq_core_read_from(&core, 0), 1);
    for (uint64_t i = 1; i <= 2; i++) {
        const pawl_seq_value value = { i, 0, 20 };
        assert_ok(pawl__seq_core_event(&core, &value, 1, i, &error), &error);
    }
    const pawl_seq_value third = { 3, 0, 20 };
    assert_status(pawl__seq_core_event(&core, &third, 1, 3, &error), PAWL_BUSY, &error);
    assert_true(pawl__seq_core_begin_write(&core, &values, &count, &offset));
    assert_status(pawl__seq_core_event(&core, &third, 1, 3, &error), PAWL_BUSY, &error);
    pawl__seq_core_written(&core);
    assert_ok(pawl__seq_core_event(&core, &third, 1, 3, &error), &error);
    assert_status(pawl__seq_core_event(&core, &third, 1, 3, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "goes back");
    assert_status(pawl__seq_core_event(&core, &third, 1, 5, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "hole");
    pawl__seq_core_done(&core);
}

static void test_a_table_keeps_the_highest_of_each_key(void **state)
{
    struct seq_table table;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__seq_table_init(&table, &error), &error);
    assert_int_equal(pawl__seq_table_get(&table, 1, 1), 0);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 1; i <= 5000; i++) {
            const pawl_seq_value value = { i, (uint16_t)(i % 7), 100 + i * (uint64_t)round % 13 };
            assert_ok(pawl__seq_table_reserve(&table, 1, &error), &error);
            pawl__seq_table_merge(&table, &value);
        }
    }
    assert_int_equal(table.count, 5000);
    for (uint64_t i = 1; i <= 5000; i++) {
        uint64_t expected = MAX(100 + i % 13, 100 + i * 2 % 13);
        assert_int_equal(pawl__seq_table_get(&table, i, (uint16_t)(i % 7)), expected);
        assert_int_equal(table.values[i - 1].workspace, i); /* in the order in which they came */
    }
    assert_int_equal(pawl__seq_table_get(&table, 1, 2), 0);
    pawl__seq_table_clear(&table);
    assert_int_equal(pawl__seq_table_get(&table, 1, 1), 0);
    assert_status(pawl__seq_table_reserve(&table, SIZE_MAX, &error), PAWL_NO_SPACE, &error);
    pawl__seq_table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_follow_the_log_whatever_is_written_when),
        cmocka_unit_test(test_a_write_that_begins_inside_a_transaction_leaves_it_room),
        cmocka_unit_test(test_a_write_has_room_for_all_that_its_last_event_takes),
        cmocka_unit_test(test_an_event_waits_while_too_much_is_unwritten),
        cmocka_unit_test(test_a_table_keeps_the_highest_of_each_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
