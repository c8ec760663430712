/* How a sequencer recovers, told as it happens: what is stored may be older than the log and never newer, so
 * the log from the stored offset on is read again, and no number of a written event comes twice. Only
 * core.c decides here; the log and the storage are a few lines below. */
#include "lib/check.h"

#include "lib/trace.h"
#include "sequencer/core.h"

enum { KIND = 1, WORKSPACE = 7, INVOICE = 3, FIRST = 100, LOG_MAX = 16 };

struct story {
    struct trace trace;
    struct seq_core core;
    uint64_t offset;       /* of the transaction */
    uint64_t number;       /* that it has taken; 0: none */
    uint64_t log[LOG_MAX]; /* the invoice of each event, the first at offset 1 */
    uint64_t log_count;
    uint64_t stored; /* the last invoice, ... */
    uint64_t stored_offset;
};

static const pawl_seq_storage no_storage;

static void open_core(struct story *story)
{
    static const pawl_seq_type type = { sizeof(pawl_seq_type), KIND, INVOICE, FIRST };
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    options.types = &type;
    options.type_count = 1;
    options.storage = &no_storage;
    options.unflushed_max = 2;
    assert_ok(pawl__seq_core_init(&story->core, &options, &error), &error);
}

/* Reads the log from where the stored numbers end. */
static void recovers(struct story *story, int64_t at)
{
    pawl_error error = PAWL_ERROR_INIT;

    trace_at(&story->trace, at);
    pawl__seq_core_forget(&story->core);
    uint64_t from = pawl__seq_core_read_from(&story->core, story->stored_offset);
    trace_add(&story->trace,
              "stored: invoice %llu; the log is read from offset %llu, it has %llu",
              (unsigned long long)story->stored,
              (unsigned long long)from,
              (unsigned long long)story->log_count);
    for (uint64_t offset = from; offset <= story->log_count; offset++) {
        pawl_seq_value value = { WORKSPACE, INVOICE, story->log[offset - 1] };

        assert_ok(pawl__seq_core_event(&story->core, &value, 1, offset, &error), &error);
    }
    pawl__seq_core_actualized(&story->core);
}

static int start(void **state)
{
    struct story *story = test_calloc(1, sizeof(*story));

    story->trace = trace_start();
    open_core(story);
    recovers(story, 0);
    *state = story;
    return 0;
}

static int end(void **state)
{
    struct story *story = *state;

    pawl__seq_core_done(&story->core);
    trace_done(&story->trace);
    test_free(story);
    return 0;
}

static void starts(struct story *story, int64_t at)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__seq_core_start(&story->core, KIND, WORKSPACE, &story->offset, &error);

    trace_at(&story->trace, at);
    if (status != PAWL_OK) {
        trace_add(&story->trace, "start -> %s", pawl_status_name(status));
        return;
    }
    bool known = false;
    assert_ok(pawl__seq_core_next(&story->core, INVOICE, &known, &story->number, &error), &error);
    if (!known) {
        uint64_t pending = 0;

        pawl__seq_core_read_pending(&story->core, &pending);
        pawl__seq_core_supply(&story->core, INVOICE, &pending, &story->stored);
        assert_ok(pawl__seq_core_next(&story->core, INVOICE, &known, &story->number, &error),
                  &error);
    }
    trace_add(&story->trace,
              "start -> event %llu, invoice %llu%s",
              (unsigned long long)story->offset,
              (unsigned long long)story->number,
              known ? "" : ", unknown");
}

static void event_written(struct story *story, int64_t at)
{
    bool forgotten = false;

    trace_at(&story->trace, at);
    assert_int_equal(story->offset, story->log_count + 1);
    story->log[story->log_count++] = story->number;
    bool full = pawl__seq_core_flush(&story->core, &forgotten);
    trace_add(&story->trace,
              "event %llu is written%s",
              (unsigned long long)story->offset,
              full ? ", time to store numbers" : "");
}

static void event_refused(struct story *story, int64_t at)
{
    trace_at(&story->trace, at);
    pawl__seq_core_actualize(&story->core);
    trace_add(&story->trace, "event %llu is not written", (unsigned long long)story->offset);
}

static void numbers_stored(struct story *story, int64_t at)
{
    const pawl_seq_value *values = NULL;
    size_t count = 0;
    uint64_t offset = 0;

    trace_at(&story->trace, at);
    assert_true(pawl__seq_core_begin_write(&story->core, &values, &count, &offset));
    assert_int_equal(count, 1);
    story->stored = values[0].value;
    story->stored_offset = offset;
    pawl__seq_core_written(&story->core);
    trace_add(&story->trace,
              "invoice %llu is stored, covers the log before offset %llu",
              (unsigned long long)story->stored,
              (unsigned long long)offset);
}

static void crashes(struct story *story, int64_t at)
{
    trace_at(&story->trace, at);
    trace_add(&story->trace, "crash");
    pawl__seq_core_done(&story->core);
    story->core = (struct seq_core){ 0 };
    open_core(story);
    recovers(story, at);
}

static void test_what_was_not_stored_comes_back_from_the_log(void **state)
{
    struct story *story = *state;

    starts(story, 1);
    event_written(story, 1);
    numbers_stored(story, 2);
    starts(story, 3);
    event_written(story, 3);
    starts(story, 4);
    event_written(story, 4);
    crashes(story, 5);
    starts(story, 6);
    assert_trace(&story->trace,
                 "[  0] stored: invoice 0; the log is read from offset 1, it has 0\n"
                 "[  1] start -> event 1, invoice 100\n"
                 "[  1] event 1 is written\n"
                 "[  2] invoice 100 is stored, covers the log before offset 2\n"
                 "[  3] start -> event 2, invoice 101\n"
                 "[  3] event 2 is written\n"
                 "[  4] start -> event 3, invoice 102\n"
                 "[  4] event 3 is written\n"
                 "[  5] crash\n"
                 "[  5] stored: invoice 100; the log is read from offset 2, it has 3\n"
                 "[  6] start -> event 4, invoice 103\n");
}

static void test_the_number_of_an_event_that_was_not_written_is_given_again(void **state)
{
    struct story *story = *state;

    starts(story, 1);
    event_written(story, 1);
    starts(story, 2);
    event_refused(story, 3);
    starts(story, 3);
    recovers(story, 4);
    starts(story, 5);
    assert_trace(&story->trace,
                 "[  0] stored: invoice 0; the log is read from offset 1, it has 0\n"
                 "[  1] start -> event 1, invoice 100\n"
                 "[  1] event 1 is written\n"
                 "[  2] start -> event 2, invoice 101\n"
                 "[  3] event 2 is not written\n"
                 "[  3] start -> BUSY\n"
                 "[  4] stored: invoice 0; the log is read from offset 1, it has 1\n"
                 "[  5] start -> event 2, invoice 101\n");
}

/* The transaction was lost with the process, its event with it: nobody has seen the number. */
static void test_a_crash_before_the_event_is_written_gives_its_number_again(void **state)
{
    struct story *story = *state;

    starts(story, 1);
    crashes(story, 2);
    starts(story, 3);
    event_written(story, 3);
    assert_trace(&story->trace,
                 "[  0] stored: invoice 0; the log is read from offset 1, it has 0\n"
                 "[  1] start -> event 1, invoice 100\n"
                 "[  2] crash\n"
                 "[  2] stored: invoice 0; the log is read from offset 1, it has 0\n"
                 "[  3] start -> event 1, invoice 100\n"
                 "[  3] event 1 is written\n");
}

/* Replay merges by maximum: reading what is stored already lowers nothing. */
static void test_reading_the_log_again_lowers_no_number(void **state)
{
    struct story *story = *state;

    starts(story, 1);
    event_written(story, 1);
    starts(story, 2);
    event_written(story, 2);
    numbers_stored(story, 3);
    story->stored_offset = 1; /* as if only the number had been stored, without its offset */
    crashes(story, 4);
    starts(story, 5);
    assert_trace(&story->trace,
                 "[  0] stored: invoice 0; the log is read from offset 1, it has 0\n"
                 "[  1] start -> event 1, invoice 100\n"
                 "[  1] event 1 is written\n"
                 "[  2] start -> event 2, invoice 101\n"
                 "[  2] event 2 is written\n"
                 "[  3] invoice 101 is stored, covers the log before offset 3\n"
                 "[  4] crash\n"
                 "[  4] stored: invoice 101; the log is read from offset 1, it has 2\n"
                 "[  5] start -> event 3, invoice 102\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_was_not_stored_comes_back_from_the_log, start, end),
        cmocka_unit_test_setup_teardown(
            test_the_number_of_an_event_that_was_not_written_is_given_again, start, end),
        cmocka_unit_test_setup_teardown(
            test_a_crash_before_the_event_is_written_gives_its_number_again, start, end),
        cmocka_unit_test_setup_teardown(test_reading_the_log_again_lowers_no_number, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
