/* A sequencer on a given clock, told as it happens: numbers are stored when an interval of that clock is over,
 * and a failed write is repeated when its time has come, however fast the real one runs. */
#include "lib/check.h"

#include "lib/seq_memory.h"
#include "lib/shared_clock.h"
#include "lib/trace.h"
#include "sequencer/internal.h"

enum {
    KIND = 1,
    WORKSPACE = 7,
    INVOICE = 3,
    FIRST = 100,
    THREADS = 2,
    INTERVAL_S = 5,
    RETRY_S = 4
};

struct story {
    struct trace trace;
    struct shared_clock clock;
    struct seq_memory *memory;
    pawl_sequencer *seq;
    pawl_error error;
};

static int start(void **state)
{
    static const pawl_seq_type type = { sizeof(pawl_seq_type), KIND, INVOICE, FIRST };
    struct story *story = test_calloc(1, sizeof(*story));
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;

    story->trace = trace_start();
    shared_clock_init(&story->clock, THREADS);
    assert_ok(seq_memory_new(&story->memory, &story->error), &story->error);
    pawl_seq_storage storage = seq_memory_storage(story->memory);
    options.types = &type;
    options.type_count = 1;
    options.storage = &storage;
    options.flush_interval_ms = INTERVAL_S * 1000;
    options.retry_ms = RETRY_S * 1000;
    assert_ok(pawl__sequencer_new_at(&options, &story->clock.base, &story->seq, &story->error),
              &story->error);
    assert_ok(pawl_sequencer_wait(story->seq, 60000, &story->error), &story->error);
    *state = story;
    return 0;
}

static int end(void **state)
{
    struct story *story = *state;

    pawl_sequencer_close(story->seq, 0, NULL);
    seq_memory_free(story->memory);
    shared_clock_done(&story->clock);
    trace_done(&story->trace);
    test_free(story);
    return 0;
}

static void move_to(struct story *story, int64_t second)
{
    shared_clock_advance(&story->clock, (second * NS_PER_S) - story->clock.now_ns);
    trace_at(&story->trace, second);
}

static void invoice_at(struct story *story, int64_t second)
{
    pawl_seq_value value = { WORKSPACE, INVOICE, 0 };
    uint64_t offset = 0;

    move_to(story, second);
    assert_ok(pawl_sequencer_start(story->seq, KIND, WORKSPACE, &offset, &story->error),
              &story->error);
    assert_ok(pawl_sequencer_next(story->seq, INVOICE, &value.value, &story->error), &story->error);
    assert_ok(seq_memory_append(story->memory, &value, 1, offset, &story->error), &story->error);
    assert_ok(pawl_sequencer_flush(story->seq, &story->error), &story->error);
    trace_add(&story->trace,
              "event %llu takes invoice %llu",
              (unsigned long long)offset,
              (unsigned long long)value.value);
}

static void look_at(struct story *story, int64_t second)
{
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;

    move_to(story, second);
    (void)!pawl_sequencer_get_status(story->seq, &status, NULL);
    trace_add(&story->trace,
              "stored: invoice %llu; %llu waits, %llu writes failed",
              (unsigned long long)seq_memory_number(story->memory, WORKSPACE, INVOICE),
              (unsigned long long)status.unflushed,
              (unsigned long long)status.flush_failures);
}

static void test_numbers_are_stored_when_the_interval_is_over(void **state)
{
    struct story *story = *state;

    invoice_at(story, 1);
    look_at(story, 4);
    look_at(story, 5);
    invoice_at(story, 6);
    invoice_at(story, 7);
    look_at(story, 9);
    look_at(story, 10);
    assert_trace(&story->trace,
                 "[  1] event 1 takes invoice 100\n"
                 "[  4] stored: invoice 0; 1 waits, 0 writes failed\n"
                 "[  5] stored: invoice 100; 0 waits, 0 writes failed\n"
                 "[  6] event 2 takes invoice 101\n"
                 "[  7] event 3 takes invoice 102\n"
                 "[  9] stored: invoice 100; 1 waits, 0 writes failed\n"
                 "[ 10] stored: invoice 102; 0 waits, 0 writes failed\n");
}

/* The pause before the next attempt is drawn between half of `retry_ms` and all of it. */
static void test_a_failed_write_is_repeated_after_its_pause(void **state)
{
    struct story *story = *state;

    invoice_at(story, 1);
    seq_memory_fail(story->memory, SEQ_MEMORY_WRITE, PAWL_IO);
    look_at(story, 5);
    look_at(story, 6);
    look_at(story, 9);
    seq_memory_fail(story->memory, SEQ_MEMORY_WRITE, PAWL_OK);
    look_at(story, 10);
    look_at(story, 13);
    assert_trace(&story->trace,
                 "[  1] event 1 takes invoice 100\n"
                 "[  5] stored: invoice 0; 1 waits, 1 writes failed\n"
                 "[  6] stored: invoice 0; 1 waits, 1 writes failed\n"
                 "[  9] stored: invoice 0; 1 waits, 2 writes failed\n"
                 "[ 10] stored: invoice 0; 1 waits, 2 writes failed\n"
                 "[ 13] stored: invoice 100; 0 waits, 2 writes failed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_numbers_are_stored_when_the_interval_is_over, start, end),
        cmocka_unit_test_setup_teardown(
            test_a_failed_write_is_repeated_after_its_pause, start, end),
    };

    return cmocka_run_group_tests_name("sequencer_clock", tests, NULL, NULL);
}
