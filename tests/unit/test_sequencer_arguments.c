/* What a caller or a storage may do wrong: each is a status, and nothing aborts. */
#include "lib/check.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pawl/sequencer.h>

#include "base/core/error.h"
#include "base/thread/thread.h"
#include "lib/header.h"

enum { CALLS = 8 };
enum { SHOP = 1, ORDER = 2, PATIENCE_MS = 60000, PATIENCE_S = 60 };

static const pawl_seq_type types[] = { { sizeof(pawl_seq_type), SHOP, ORDER, 1 } };

/* Where a storage is asked. */
enum place { READ_NUMBERS, READ_OFFSET, WRITE, ACTUALIZE, PLACE_COUNT };

/* A storage without a log that answers what it is told to, and may call its sequencer from within. */
struct odd {
    pawl_seq_storage storage;
    pawl_sequencer_options options;
    pawl_sequencer *seq;
    pawl_error error;

    pawl_status answers[PLACE_COUNT]; /* without a word */
    atomic_int meddles_at;            /* a place; -1: at none */
    void (*meddle)(struct odd *odd);
    sem_t meddled;
    bool stays;
    pawl_detail came_back[CALLS]; /* of what it called */
    pawl_error first_error;
    pawl_error inner_error;
    pawl_status batched[2]; /* of a batcher that got what is wrong */
    pawl_seq_value written;
    uint64_t written_offset;
};

static pawl_status ask(struct odd *odd, enum place place)
{
    if (odd->meddles_at == (int)place) {
        odd->meddles_at = -1;
        odd->meddle(odd);
        sem_post(&odd->meddled);
    }
    return odd->answers[place];
}

static pawl_status read_numbers(void *context,
                                uint64_t workspace,
                                const uint16_t *sequences,
                                size_t count,
                                int64_t deadline_ns,
                                uint64_t *ret_numbers,
                                pawl_error *reterr)
{
    (void)workspace;
    (void)sequences;
    (void)deadline_ns;
    (void)reterr;
    memset(ret_numbers, 0, count * sizeof(*ret_numbers));
    return ask(context, READ_NUMBERS);
}

static pawl_status read_next_offset(void *context, uint64_t *ret_offset, pawl_error *reterr)
{
    (void)reterr;
    *ret_offset = 0;
    return ask(context, READ_OFFSET);
}

static pawl_status write_numbers(void *context,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 uint64_t next_offset,
                                 pawl_error *reterr)
{
    struct odd *odd = context;
    pawl_status status = ask(odd, WRITE);

    (void)reterr;
    if (status == PAWL_OK && count == 1) {
        odd->written = values[0];
        odd->written_offset = next_offset;
    }
    return status;
}

static pawl_status actualize(void *context,
                             uint64_t offset,
                             pawl_seq_batcher batcher,
                             void *batcher_context,
                             pawl_error *reterr)
{
    struct odd *odd = context;

    (void)offset;
    (void)reterr;
    odd->batched[0] = batcher(batcher_context, NULL, 5, 1, NULL);
    odd->batched[1] = batcher(NULL, NULL, 0, 1, NULL);
    return ask(odd, ACTUALIZE);
}

static int setup(void **state)
{
    struct odd *odd = calloc(1, sizeof(*odd));

    assert_non_null(odd);
    odd->storage = (pawl_seq_storage){ sizeof(pawl_seq_storage), odd,           read_numbers,
                                       read_next_offset,         write_numbers, actualize };
    odd->options = (pawl_sequencer_options)PAWL_SEQUENCER_OPTIONS_INIT;
    odd->options.types = types;
    odd->options.type_count = COUNT_OF(types);
    odd->options.storage = &odd->storage;
    odd->options.retry_ms = 5;
    odd->options.flush_interval_ms = 3600000;
    odd->meddles_at = -1;
    assert_int_equal(sem_init(&odd->meddled, 0, 0), 0);
    *state = odd;
    return 0;
}

static int teardown(void **state)
{
    struct odd *odd = *state;

    if (odd->stays) { /* a storage outlives threads that nobody waits for */
        static struct odd *kept[4];
        static size_t count;
        kept[count++ % COUNT_OF(kept)] = odd;
        return kept[0] == NULL ? -1 : 0;
    }
    pawl_sequencer_close(odd->seq, 0, NULL);
    sem_destroy(&odd->meddled);
    free(odd);
    return 0;
}

static void open_sequencer(struct odd *odd)
{
    assert_ok(pawl_sequencer_open(&odd->options, &odd->seq, &odd->error), &odd->error);
}

static void await_meddling(struct odd *odd)
{
    struct timespec deadline;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    assert_int_equal(sem_timedwait(&odd->meddled, &deadline), 0);
}

static void start(struct odd *odd)
{
    uint64_t offset = 0;

    assert_ok(pawl_sequencer_wait(odd->seq, PATIENCE_MS, &odd->error), &odd->error);
    assert_ok(pawl_sequencer_start(odd->seq, SHOP, 1, &offset, &odd->error), &odd->error);
}

/* One number is given out and waits to be written. */
static void leave_a_number(struct odd *odd)
{
    uint64_t number = 0;

    start(odd);
    assert_ok(pawl_sequencer_next(odd->seq, ORDER, &number, &odd->error), &odd->error);
    assert_ok(pawl_sequencer_flush(odd->seq, &odd->error), &odd->error);
}

/* --- arguments --- */

#define REFUSED(call, words)                         \
    do {                                             \
        pawl_error error = PAWL_ERROR_INIT;          \
        assert_status((call), PAWL_INVALID, &error); \
        assert_message(&error, words);               \
    } while (0)

static void test_a_null_argument_is_invalid_by_its_name(void **state)
{
    struct odd *odd = *state;
    pawl_sequencer *seq = NULL;
    uint64_t number = 7;

    open_sequencer(odd);
    REFUSED(pawl_sequencer_open(NULL, &seq, &error), "options");
    REFUSED(pawl_sequencer_open(&odd->options, NULL, &error), "ret_sequencer");
    REFUSED(pawl_sequencer_start(NULL, SHOP, 1, &number, &error), "sequencer");
    REFUSED(pawl_sequencer_start(odd->seq, SHOP, 1, NULL, &error), "ret_offset");
    REFUSED(pawl_sequencer_also(NULL, SHOP, 1, &number, &error), "sequencer");
    REFUSED(pawl_sequencer_also(odd->seq, SHOP, 1, NULL, &error), "ret_offset");
    REFUSED(pawl_sequencer_next(NULL, ORDER, &number, &error), "sequencer");
    REFUSED(pawl_sequencer_next(odd->seq, ORDER, NULL, &error), "ret_number");
    REFUSED(pawl_sequencer_drop(NULL, &error), "sequencer");
    REFUSED(pawl_sequencer_flush(NULL, &error), "sequencer");
    REFUSED(pawl_sequencer_actualize(NULL, &error), "sequencer");
    REFUSED(pawl_sequencer_wait(NULL, 1, &error), "sequencer");
    REFUSED(pawl_sequencer_stop(NULL, 0, &error), "sequencer");
    (void)!pawl_sequencer_get_status(NULL, NULL, NULL);
    (void)!pawl_sequencer_get_status(odd->seq, NULL, NULL);
    pawl_sequencer_close(NULL, 0, NULL);
    assert_null(seq);
    assert_int_equal(number, 7);
    assert_int_equal(pawl_sequencer_start(NULL, SHOP, 1, NULL, NULL), PAWL_INVALID);
}

static void test_each_option_out_of_range_is_invalid_by_its_name(void **state)
{
    struct odd *odd = *state;
    pawl_sequencer *seq = NULL;
    pawl_sequencer_options options = odd->options;
    pawl_seq_storage storage = odd->storage;

#define REFUSED_OPTION(change, words) \
    options = odd->options;           \
    storage = odd->storage;           \
    options.storage = &storage;       \
    change;                           \
    REFUSED(pawl_sequencer_open(&options, &seq, &error), words);

    REFUSED_OPTION(options.size = 0, "_INIT")
    REFUSED_OPTION(options.size++, "_INIT")
    REFUSED_OPTION(options.types = NULL, "types")
    REFUSED_OPTION(options.type_count = 0, "types")
    REFUSED_OPTION(options.type_count = SIZE_MAX, "types")
    REFUSED_OPTION(options.storage = NULL, "storage")
    REFUSED_OPTION(storage.read_numbers = NULL, "read_numbers")
    REFUSED_OPTION(storage.read_next_offset = NULL, "read_next_offset")
    REFUSED_OPTION(storage.write = NULL, "write")
    REFUSED_OPTION(storage.actualize = NULL, "actualize")
    REFUSED_OPTION(options.unflushed_max = 0, "unflushed_max")
    REFUSED_OPTION(options.flush_interval_ms = 0, "flush_interval_ms")
    REFUSED_OPTION(options.cache_size = 0, "cache_size")
    REFUSED_OPTION(options.cache_size = UINT32_MAX, "")
    REFUSED_OPTION(options.batcher_delay_ms = 0, "batcher_delay_ms")
    REFUSED_OPTION(options.retry_ms = 0, "retry_ms")
    REFUSED_OPTION(options.read_ms_max = 0, "read_ms_max")
    REFUSED_OPTION(options.close_ms_max = 0, "close_ms_max")
    assert_null(seq);
}

/* --- a storage that comes back --- */

/* Each of them; asserting is for the test's own thread. */
static void meddle(struct odd *odd)
{
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    uint64_t number = 0;
    size_t count = 0;

    odd->came_back[count++] = detail_of(
        pawl_sequencer_start(odd->seq, SHOP, 1, &number, &odd->inner_error), &odd->inner_error);
    odd->first_error = odd->inner_error;
    odd->came_back[count++] =
        detail_of(pawl_sequencer_wait(odd->seq, PATIENCE_MS, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] =
        detail_of(pawl_sequencer_stop(odd->seq, 0, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] = detail_of(
        pawl_sequencer_also(odd->seq, SHOP, 1, &number, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] = detail_of(
        pawl_sequencer_next(odd->seq, ORDER, &number, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] =
        detail_of(pawl_sequencer_drop(odd->seq, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] =
        detail_of(pawl_sequencer_flush(odd->seq, &odd->inner_error), &odd->inner_error);
    odd->came_back[count++] =
        detail_of(pawl_sequencer_actualize(odd->seq, &odd->inner_error), &odd->inner_error);
    (void)!pawl_sequencer_get_status(odd->seq, &status, NULL);
}

static void expect_refusals(struct odd *odd)
{
    await_meddling(odd);
    assert_message(&odd->first_error, "within the sequencer's own storage");
    for (size_t i = 0; i < CALLS; i++) {
        pawl_detail detail = odd->came_back[i];
        assert_true(detail == PAWL_DETAIL_WRONG_THREAD
                    || (i >= 3 && detail == PAWL_DETAIL_NO_TRANSACTION));
    }
}

/* The first walk of the log may begin before the caller has the handle, so these two come with the second. */
static void meddle_in_the_second_walk(struct odd *odd, enum place place)
{
    odd->meddle = meddle;
    open_sequencer(odd);
    start(odd);
    odd->meddles_at = (int)place;
    assert_ok(pawl_sequencer_actualize(odd->seq, &odd->error), &odd->error);
    expect_refusals(odd);
    leave_a_number(odd);
}

static void test_reading_the_offset_cannot_call_the_sequencer(void **state)
{
    meddle_in_the_second_walk(*state, READ_OFFSET);
}

static void test_reading_the_log_cannot_call_the_sequencer(void **state)
{
    meddle_in_the_second_walk(*state, ACTUALIZE);
}

static void test_reading_numbers_cannot_end_the_transaction(void **state)
{
    struct odd *odd = *state;

    odd->meddle = meddle;
    odd->meddles_at = READ_NUMBERS;
    open_sequencer(odd);
    leave_a_number(odd);
    expect_refusals(odd);
}

static void test_writing_cannot_close_the_sequencer(void **state)
{
    struct odd *odd = *state;

    odd->meddle = meddle;
    odd->meddles_at = WRITE;
    odd->options.unflushed_max = 1;
    open_sequencer(odd);
    leave_a_number(odd);
    expect_refusals(odd);
    assert_ok(pawl_sequencer_stop(odd->seq, 0, &odd->error), &odd->error);
}

static void free_it(struct odd *odd)
{
    odd->stays = true;
    pawl_sequencer_close(STEAL(odd->seq), 0, NULL);
}

static void test_a_storage_may_free_its_sequencer_while_it_writes(void **state)
{
    struct odd *odd = *state;

    odd->meddle = free_it;
    odd->answers[WRITE] = PAWL_IO; /* tried again and again */
    odd->options.unflushed_max = 1;
    open_sequencer(odd);
    leave_a_number(odd);
    odd->meddles_at = WRITE; /* when no other call is under way */
    await_meddling(odd);
}

static void test_a_storage_may_free_its_sequencer_while_it_reads(void **state)
{
    struct odd *odd = *state;
    uint64_t number = 0;

    odd->meddle = free_it;
    odd->meddles_at = READ_NUMBERS;
    open_sequencer(odd);
    start(odd);
    assert_status(
        pawl_sequencer_next(odd->seq, ORDER, &number, &odd->error), PAWL_CLOSED, &odd->error);
}

/* --- a storage that fails without a word --- */

static void test_a_log_that_fails_without_a_word_is_not_busy_for_ever(void **state)
{
    static const pawl_status answers[] = { PAWL_CORRUPT, PAWL_UNSUPPORTED, PAWL_LEASE_LOST };
    struct odd *odd = *state;
    uint64_t offset = 0;

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        odd->answers[ACTUALIZE] = answers[i];
        open_sequencer(odd);
        assert_status(
            pawl_sequencer_wait(odd->seq, PATIENCE_MS, &odd->error), answers[i], &odd->error);
        assert_status(
            pawl_sequencer_start(odd->seq, SHOP, 1, &offset, &odd->error), answers[i], &odd->error);
        assert_message(&odd->error, "the storage's actualize returned");
        pawl_sequencer_close(STEAL(odd->seq), 0, NULL);
    }
}

static void test_numbers_that_fail_without_a_word_are_that_failure(void **state)
{
    struct odd *odd = *state;
    uint64_t number = 0;

    open_sequencer(odd);
    start(odd);
    odd->answers[READ_NUMBERS] = PAWL_IO;
    odd->error = (pawl_error)PAWL_ERROR_INIT;
    assert_status(pawl_sequencer_next(odd->seq, ORDER, &number, &odd->error), PAWL_IO, &odd->error);
    assert_message(&odd->error, "read_numbers returned IO");
    odd->answers[READ_NUMBERS] = (pawl_status)4711;
    assert_status(
        pawl_sequencer_next(odd->seq, ORDER, &number, &odd->error), PAWL_FAILED, &odd->error);
    odd->answers[READ_NUMBERS] = PAWL_OK;
    assert_ok(pawl_sequencer_next(odd->seq, ORDER, &number, &odd->error), &odd->error);
    assert_int_equal(number, 1);
}

static void do_nothing(struct odd *odd)
{
    (void)odd;
}

static void test_a_write_that_fails_without_a_word_is_in_the_status(void **state)
{
    struct odd *odd = *state;
    pawl_sequencer_status status = { .size = sizeof(pawl_sequencer_status), .flush_failures = 0 };

    odd->answers[WRITE] = PAWL_NO_SPACE;
    odd->meddle = do_nothing;
    odd->meddles_at = WRITE;
    odd->options.unflushed_max = 1;
    open_sequencer(odd);
    leave_a_number(odd);
    await_meddling(odd);
    odd->meddles_at = WRITE; /* the next one begins when the first one was noted */
    await_meddling(odd);
    (void)!pawl_sequencer_get_status(odd->seq, &status, NULL);
    assert_int_equal(status.last_error.status, PAWL_NO_SPACE);
    assert_message(&status.last_error, "the storage's write returned NO_SPACE");
}

/* --- threads and ends --- */

static void start_and_end(void *context)
{
    start(context);
}

struct
try {
    struct odd *odd;
    pawl_detail detail;
};

static void try_next(void *context)
{
    struct try *try = context;
    uint64_t number = 0;

    pawl_error error = PAWL_ERROR_INIT;

    try->detail = pawl_sequencer_next(try->odd->seq, ORDER, &number, &error) == PAWL_OK
                      ? PAWL_DETAIL_NONE
                      : error.detail;
}

static void test_the_next_thread_does_not_get_the_transaction_of_one_that_ended(void **state)
{
    struct odd *odd = *state;
    struct try try = { .odd = odd };
    struct pawl__thread thread = { .started = false };

    open_sequencer(odd);
    assert_ok(pawl__thread_start(&thread, "first", start_and_end, odd, &odd->error), &odd->error);
    pawl__thread_join(&thread);
    for (int i = 0; i < 20;
         i++) { /* its stack and its thread-locals are where the first one's were */
        assert_ok(pawl__thread_start(&thread, "next", try_next, &try, &odd->error), &odd->error);
        pawl__thread_join(&thread);
        assert_int_equal(try.detail, PAWL_DETAIL_WRONG_THREAD);
    }
}

static void test_closing_writes_what_waits(void **state)
{
    struct odd *odd = *state;

    open_sequencer(odd);
    leave_a_number(odd);
    assert_int_equal(odd->batched[0], PAWL_INVALID);
    assert_int_equal(odd->batched[1], PAWL_INVALID);
    assert_int_equal(odd->written_offset, 0);
    assert_ok(pawl_sequencer_stop(odd->seq, 0, &odd->error), &odd->error);
    assert_int_equal(odd->written_offset, 2);
    assert_int_equal(odd->written.value, 1);
}

/* --- nothing is left out --- */

static void test_every_function_of_the_header_is_called_here(void **state)
{
    (void)state;
    assert_header_is_called(
        "include/pawl/sequencer.h", "tests/unit/test_sequencer_arguments.c", 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_null_argument_is_invalid_by_its_name),
        TEST(test_each_option_out_of_range_is_invalid_by_its_name),
        TEST(test_reading_the_offset_cannot_call_the_sequencer),
        TEST(test_reading_the_log_cannot_call_the_sequencer),
        TEST(test_reading_numbers_cannot_end_the_transaction),
        TEST(test_writing_cannot_close_the_sequencer),
        TEST(test_a_storage_may_free_its_sequencer_while_it_writes),
        TEST(test_a_storage_may_free_its_sequencer_while_it_reads),
        TEST(test_a_log_that_fails_without_a_word_is_not_busy_for_ever),
        TEST(test_numbers_that_fail_without_a_word_are_that_failure),
        TEST(test_a_write_that_fails_without_a_word_is_in_the_status),
        TEST(test_the_next_thread_does_not_get_the_transaction_of_one_that_ended),
        TEST(test_closing_writes_what_waits),
        cmocka_unit_test(test_every_function_of_the_header_is_called_here),
    };
    return cmocka_run_group_tests_name("sequencer_arguments", tests, NULL, NULL);
}
