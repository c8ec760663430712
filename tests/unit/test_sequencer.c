/* The sequencer with its threads, on a storage that can be told to fail. The tests by the names of
 * the original design are the ones in capitals: FlushByTimer and so on. With --rounds N only those run,
 * N times, each time with another seed. */
#include "lib/repeat.h"

#include <stdlib.h>

#include <pawl/sequencer.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/seq_memory.h"

enum { SHOP = 1, OFFICE = 2 };          /* kinds */
enum { WLOG = 1, ORDER = 2, ITEM = 3 }; /* sequences */
enum { PATIENCE_MS = 60000, NEVER_MS = 3600000 };

static const pawl_seq_type types[] = {
    { sizeof(pawl_seq_type), SHOP, ORDER, 200001 },
    { sizeof(pawl_seq_type), SHOP, WLOG, 1 },
    { sizeof(pawl_seq_type), OFFICE, WLOG, 1 },
    { sizeof(pawl_seq_type), SHOP, ITEM, UINT64_C(1) << 40 },
};

struct fixture {
    struct seq_memory *memory;
    pawl_seq_storage storage;
    pawl_sequencer_options options;
    pawl_sequencer *seq;
    pawl_error error;
};

static int64_t patience(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_MS * NS_PER_MS;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(seq_memory_new(&f->memory, &f->error), &f->error);
    f->storage = seq_memory_storage(f->memory);
    f->options = (pawl_sequencer_options)PAWL_SEQUENCER_OPTIONS_INIT;
    f->options.types = types;
    f->options.type_count = COUNT_OF(types);
    f->options.storage = &f->storage;
    f->options.retry_ms = 5;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl_sequencer_close(f->seq, 0, NULL);
    seq_memory_free(f->memory);
    free(f);
    return 0;
}

static void open_sequencer(struct fixture *f)
{
    assert_ok(pawl_sequencer_open(&f->options, &f->seq, &f->error), &f->error);
}

static void reopen_sequencer(struct fixture *f)
{
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    pawl_sequencer_close(STEAL(f->seq), 0, NULL);
    open_sequencer(f);
}

/* Busy is an answer that a caller waits out. */
static uint64_t start(struct fixture *f, uint16_t kind, uint64_t workspace)
{
    int64_t deadline_ns = patience();
    uint64_t offset = 0;
    pawl_status status = PAWL_BUSY;

    while (status == PAWL_BUSY && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
        status = pawl_sequencer_start(f->seq, kind, workspace, &offset, &f->error);
    }
    assert_ok(status, &f->error);
    return offset;
}

static uint64_t next(struct fixture *f, uint16_t sequence)
{
    uint64_t number = 0;

    assert_ok(pawl_sequencer_next(f->seq, sequence, &number, &f->error), &f->error);
    return number;
}

static void flush(struct fixture *f)
{
    assert_ok(pawl_sequencer_flush(f->seq, &f->error), &f->error);
}

static void append(struct fixture *f, const pawl_seq_value *values, size_t count, uint64_t offset)
{
    assert_ok(seq_memory_append(f->memory, values, count, offset, &f->error), &f->error);
}

/* A command that takes one number and writes its event. */
static uint64_t command(struct fixture *f, uint64_t workspace, uint64_t expected_offset)
{
    uint64_t offset = start(f, SHOP, workspace);
    uint64_t number = next(f, ORDER);

    assert_int_equal(offset, expected_offset);
    append(f, &(pawl_seq_value){ workspace, ORDER, number }, 1, offset);
    flush(f);
    return number;
}

static void test_numbers_begin_at_their_first_and_go_up_by_one(void **state)
{
    struct fixture *f = *state;

    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 7), 1);
    assert_int_equal(next(f, ORDER), 200001);
    assert_int_equal(next(f, ORDER), 200002);
    assert_int_equal(next(f, WLOG), 1);
    assert_int_equal(next(f, ITEM), UINT64_C(1) << 40);
    flush(f);
    assert_int_equal(start(f, SHOP, 8), 2);
    assert_int_equal(next(f, ORDER), 200001);
    flush(f);
    assert_int_equal(start(f, OFFICE, 9), 3);
    assert_int_equal(next(f, WLOG), 1);
    flush(f);
    assert_int_equal(start(f, SHOP, 7), 4);
    assert_int_equal(next(f, ORDER), 200003);
    assert_int_equal(next(f, WLOG), 2);
    flush(f);
    assert_int_equal(start(f, SHOP, 7), 5);
    flush(f); /* no number was taken, and the offset moves all the same */
    assert_int_equal(start(f, SHOP, 7), 6);
    flush(f);
}

static void test_after_actualize_the_same_offset_and_numbers_come_again(void **state)
{
    struct fixture *f = *state;

    open_sequencer(f);
    assert_int_equal(command(f, 7, 1), 200001);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(start(f, SHOP, 7), 2);
        assert_int_equal(next(f, ORDER), 200002);
        assert_int_equal(next(f, WLOG), 1);
        assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
    }
    assert_int_equal(command(f, 7, 2), 200002);
}

static void test_events_of_one_write_end_together(void **state)
{
    struct fixture *f = *state;
    pawl_seq_value values[4];
    uint64_t offset = 0;

    f->options.cache_size = 1;
    f->options.unflushed_max = 12;
    open_sequencer(f);
    for (int written = 0; written < 2; written++) {
        assert_int_equal(start(f, SHOP, 7), 1);
        values[0] = (pawl_seq_value){ 7, ORDER, next(f, ORDER) };
        for (uint64_t i = 1; i < 4; i++) { /* 8, 7, 8 */
            assert_ok(pawl_sequencer_also(f->seq, SHOP, 7 + i % 2, &offset, &f->error), &f->error);
            assert_int_equal(offset, 1 + i);
            values[i] = (pawl_seq_value){ 7 + i % 2, ORDER, next(f, ORDER) };
        }
        assert_int_equal(values[0].value, 200001);
        assert_int_equal(values[1].value, 200001);
        assert_int_equal(values[2].value, 200002);
        assert_int_equal(values[3].value, 200002);
        if (written == 0) {
            assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
        }
    }
    for (uint64_t i = 0; i < 4; i++) {
        append(f, &values[i], 1, i + 1);
    }
    assert_detail(pawl_sequencer_also(f->seq, 77, 1, &offset, &f->error),
                  PAWL_DETAIL_UNKNOWN_KIND,
                  &f->error);
    flush(f);
    assert_detail(pawl_sequencer_also(f->seq, SHOP, 1, &offset, &f->error),
                  PAWL_DETAIL_NO_TRANSACTION,
                  &f->error);
    assert_int_equal(command(f, 8, 5), 200003);

    start(f, SHOP, 100); /* a write that grows too large is told so, and goes on with what it has */
    uint64_t events = 1;
    next(f, ORDER);
    while (pawl_sequencer_also(f->seq, SHOP, 100 + events, &offset, &f->error) == PAWL_OK) {
        next(f, ORDER);
        events++;
    }
    assert_status(f->error.status, PAWL_BUSY, &f->error);
    assert_in_range(events, 2, 12);
    flush(f);
    assert_int_equal(start(f, SHOP, 7), 6 + events);
    flush(f);
}

/* The storage is asked in the middle of an event: what it brings into the cache knows nothing of the
 * numbers that the event took before. */
static void test_a_dropped_event_leaves_its_numbers_and_its_offset(void **state)
{
    struct fixture *f = *state;
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    uint64_t out = 0;

    f->options.cache_size = 1;
    open_sequencer(f);
    assert_detail(pawl_sequencer_drop(f->seq, &f->error), PAWL_DETAIL_NO_TRANSACTION, &f->error);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(start(f, SHOP, 7), 1);
        assert_int_equal(next(f, ORDER), 200001);
        assert_int_equal(next(f, ORDER), 200002);
        assert_int_equal(next(f, WLOG), 1);
        assert_ok(pawl_sequencer_drop(f->seq, &f->error), &f->error);
        assert_detail(pawl_sequencer_next(f->seq, ORDER, &out, &f->error),
                      PAWL_DETAIL_NO_TRANSACTION,
                      &f->error);
    }
    assert_int_equal(start(f, SHOP, 7), 1);
    assert_int_equal(next(f, ORDER), 200001);
    for (int round = 0; round < 3; round++) {
        assert_ok(pawl_sequencer_also(f->seq, SHOP, 7, &out, &f->error), &f->error);
        assert_int_equal(out, 2);
        assert_int_equal(next(f, ORDER), 200002);
        if (round == 0) {
            assert_ok(pawl_sequencer_drop(f->seq, &f->error), &f->error);
            assert_ok(pawl_sequencer_drop(f->seq, &f->error), &f->error); /* once is enough */
            assert_detail(pawl_sequencer_next(f->seq, ORDER, &out, &f->error),
                          PAWL_DETAIL_NO_TRANSACTION,
                          &f->error);
            assert_message(&f->error, "dropped");
        } else if (round == 1) {
            assert_ok(pawl_sequencer_drop(f->seq, &f->error), &f->error);
        }
    }
    append(f, &(pawl_seq_value){ 7, ORDER, 200001 }, 1, 1);
    append(f, &(pawl_seq_value){ 7, ORDER, 200002 }, 1, 2);
    flush(f);
    assert_int_equal(command(f, 7, 3), 200003);
    (void)!pawl_sequencer_get_status(f->seq, &status, NULL);
    assert_int_equal(status.actualizations, 1);
}

static void test_FlushByTimer(void **state)
{
    struct fixture *f = *state;

    f->options.flush_interval_ms = (uint32_t)(repeat_seed() % 8 + 1);
    open_sequencer(f);
    for (uint64_t offset = 1; offset <= 3; offset++) { /* far below the size that would wake it */
        command(f, 7, offset);
        assert_true(seq_memory_await_offset(f->memory, offset + 1, patience()));
        assert_int_equal(seq_memory_number(f->memory, 7, ORDER), 200000 + offset);
    }
}

static void test_FlushBySize(void **state)
{
    struct fixture *f = *state;

    uint64_t size = 2 + repeat_seed() % 7;

    f->options.flush_interval_ms = NEVER_MS;
    f->options.unflushed_max = (uint32_t)size;
    open_sequencer(f);
    for (uint64_t offset = 1; offset < size; offset++) {
        command(f, offset, offset);
    }
    assert_int_equal(seq_memory_next_offset(f->memory), 0);
    command(f, size, size);
    assert_true(seq_memory_await_offset(f->memory, size + 1, patience()));
    for (uint64_t workspace = 1; workspace <= size; workspace++) {
        assert_int_equal(seq_memory_number(f->memory, workspace, ORDER), 200001);
    }
}

/* An event with numbers of its own workspace, in no order, some twice. */
static void append_event(struct fixture *f, struct seq_memory *memory, uint64_t offset)
{
    const pawl_seq_value values[] = { { offset, ORDER, 300000 + offset },
                                      { 1, WLOG, offset },
                                      { offset, ORDER, 250000 } };

    assert_ok(seq_memory_append(memory, values, COUNT_OF(values), offset, &f->error), &f->error);
}

/* From a log of `count` events of which nothing is stored yet. */
static void recover(struct fixture *f, uint64_t count)
{
    struct seq_memory *log = NULL;

    assert_ok(seq_memory_new(&log, &f->error), &f->error);
    pawl_seq_storage storage = seq_memory_storage(log);
    for (uint64_t offset = 1; offset <= count; offset++) {
        append_event(f, log, offset);
    }
    f->options.storage = &storage;
    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 1), count + 1);
    assert_int_equal(next(f, WLOG), count + 1);
    assert_int_equal(next(f, ORDER), count == 0 ? 200001 : 300002);
    flush(f);
    if (count > 1) {
        assert_int_equal(start(f, SHOP, count), count + 2);
        assert_int_equal(next(f, ORDER), 300001 + count);
        flush(f);
    }
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    pawl_sequencer_close(STEAL(f->seq), 0, NULL);
    seq_memory_free(log);
    f->options.storage = &f->storage;
}

/* 0 to 10 times as many events as may be unflushed; in rounds, every fifth of them, and all in five. */
static void test_LongRecovery(void **state)
{
    struct fixture *f = *state;
    uint64_t step = repeat_rounds() > 1 ? 5 : 1;
    enum { UNFLUSHED_MAX = 5, EVENTS_MAX = 10 * UNFLUSHED_MAX };

    f->options.unflushed_max = UNFLUSHED_MAX;
    f->options.batcher_delay_ms = 1;
    f->options.flush_interval_ms = NEVER_MS; /* only the batcher's signals bring it on */
    for (uint64_t count = repeat_seed() % step; count <= EVENTS_MAX; count += step) {
        recover(f, count);
    }
}

/* A log that grew between the starts: what was stored of it is not read again. */
static void test_a_log_that_grows_is_read_on(void **state)
{
    struct fixture *f = *state;

    f->options.unflushed_max = 5;
    for (uint64_t count = 1; count <= 20; count++) {
        append_event(f, f->memory, count);
        open_sequencer(f);
        assert_int_equal(start(f, SHOP, count), count + 1);
        assert_int_equal(next(f, ORDER), 300001 + count);
        assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
        assert_true(seq_memory_await_offset(f->memory, count + 1, patience()));
        assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
        pawl_sequencer_close(STEAL(f->seq), 0, NULL);
    }
}

/* A walk that goes on only when what it has read is written. */
static struct {
    pawl_seq_storage real;
    struct seq_memory *memory;
    pawl_seq_batcher batcher;
    void *batcher_context;
} stepwise;

static pawl_status take_stepwise(
    void *context, const pawl_seq_value *values, size_t count, uint64_t offset, pawl_error *reterr)
{
    (void)context;
    pawl_status status = stepwise.batcher(stepwise.batcher_context, values, count, offset, reterr);

    return status != PAWL_OK || seq_memory_await_offset(stepwise.memory, offset + 1, patience())
               ? status
               : pawl__fail(reterr, PAWL_CORRUPT, "offset %u is not written", (unsigned)offset);
}

static pawl_status walk_stepwise(void *context,
                                 uint64_t offset,
                                 pawl_seq_batcher batcher,
                                 void *batcher_context,
                                 pawl_error *reterr)
{
    stepwise.batcher = batcher;
    stepwise.batcher_context = batcher_context;
    return stepwise.real.actualize(context, offset, take_stepwise, NULL, reterr);
}

static void test_the_timer_writes_while_the_log_is_being_read(void **state)
{
    struct fixture *f = *state;

    stepwise.real = f->storage;
    stepwise.memory = f->memory;
    f->storage.actualize = walk_stepwise;
    f->options.flush_interval_ms = 1;
    open_sequencer(f);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(start(f, SHOP, 7), 1 + 2 * i);
        for (uint64_t k = 0; k < 2; k++) { /* somebody else's */
            append(f, &(pawl_seq_value){ 7, ORDER, 200001 + 2 * i + k }, 1, 1 + 2 * i + k);
        }
        assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
        assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    }
}

static void test_MultipleActualizes(void **state)
{
    struct fixture *f = *state;
    struct pawl__prng random = pawl__prng_seeded(repeat_seed());
    uint64_t last[4] = { 200000, 200000, 200000, 200000 };
    uint64_t offset = 1;

    f->options.unflushed_max = 3;
    f->options.flush_interval_ms = 1;
    f->options.cache_size = 1;
    open_sequencer(f);
    for (int cycle = 0; cycle < 100; cycle++) {
        uint64_t workspace = 1 + pawl__prng_below(&random, 4);
        uint64_t taken = pawl__prng_below(&random, 4);
        bool written = pawl__prng_below(&random, 2) == 0;
        pawl_seq_value values[3];

        assert_int_equal(start(f, SHOP, workspace), offset);
        for (uint64_t i = 0; i < taken; i++) {
            uint64_t number = next(f, ORDER);
            assert_int_equal(number, last[workspace - 1] + 1 + i);
            values[i] = (pawl_seq_value){ workspace, ORDER, number };
        }
        if (written) {
            append(f, values, taken, offset++);
            last[workspace - 1] += taken;
            flush(f);
        } else {
            assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
        }
    }
    reopen_sequencer(f);
    for (uint64_t workspace = 1; workspace <= 4; workspace++) {
        assert_int_equal(start(f, SHOP, workspace), offset + workspace - 1);
        assert_int_equal(next(f, ORDER), last[workspace - 1] + 1);
        flush(f);
    }
}

static void test_FlushPermanentlyFails(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 0;
    uint64_t commands = 0;
    uint64_t size = 1 + repeat_seed() % 8;

    f->options.unflushed_max = (uint32_t)size;
    f->options.flush_interval_ms = 1;
    f->options.retry_ms = 1;
    seq_memory_fail(f->memory, SEQ_MEMORY_WRITE, PAWL_IO);
    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    /* Numbers are given out until as many wait as may; then it is busy, again and again. */
    while (pawl_sequencer_start(f->seq, SHOP, commands + 1, &offset, &f->error) == PAWL_OK) {
        append(f, &(pawl_seq_value){ commands + 1, ORDER, next(f, ORDER) }, 1, offset);
        flush(f);
        commands++;
    }
    assert_status(f->error.status, PAWL_BUSY, &f->error);
    assert_int_equal(commands, size + 1);
    assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_WRITE, 10, patience()));
    assert_status(pawl_sequencer_start(f->seq, SHOP, 9, &offset, &f->error), PAWL_BUSY, &f->error);

    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    (void)!pawl_sequencer_get_status(f->seq, &status, NULL);
    assert_true(status.flush_failures >= 9);
    assert_int_equal(status.last_error.status, PAWL_IO);
    assert_int_equal(status.unflushed, size + 1);

    /* It closes all the same, and the log brings everything back. */
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    assert_int_equal(seq_memory_next_offset(f->memory), 0);
    pawl_sequencer_close(STEAL(f->seq), 0, NULL);
    seq_memory_fail(f->memory, SEQ_MEMORY_WRITE, PAWL_OK);
    open_sequencer(f);
    for (uint64_t workspace = 1; workspace <= commands; workspace++) {
        assert_int_equal(start(f, SHOP, workspace), commands + workspace);
        assert_int_equal(next(f, ORDER), 200002);
        flush(f);
    }
}

/* An actualization that runs into a full queue is busy, not lost: it goes on when writes do. */
static void test_a_recovery_waits_for_a_storage_that_comes_back(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 0;

    f->options.unflushed_max = 3;
    for (uint64_t i = 1; i <= 20; i++) {
        append(f, &(pawl_seq_value){ i, WLOG, i }, 1, i);
    }
    seq_memory_fail(f->memory, SEQ_MEMORY_WRITE, PAWL_UNAVAILABLE);
    open_sequencer(f);
    assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_WRITE, 2, patience()));
    assert_status(pawl_sequencer_start(f->seq, SHOP, 9, &offset, &f->error), PAWL_BUSY, &f->error);
    assert_true(f->error.retryable);
    seq_memory_fail(f->memory, SEQ_MEMORY_WRITE, PAWL_OK);
    assert_int_equal(start(f, SHOP, 20), 21);
    assert_int_equal(next(f, WLOG), 21);
    flush(f);
}

static void test_a_log_that_cannot_be_read_is_tried_again(void **state)
{
    struct fixture *f = *state;

    append(f, &(pawl_seq_value){ 7, WLOG, 41 }, 1, 1);
    seq_memory_fail(f->memory, SEQ_MEMORY_LOG, PAWL_IO);
    open_sequencer(f);
    assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_LOG, 3, patience()));
    seq_memory_fail(f->memory, SEQ_MEMORY_LOG, PAWL_OK);
    assert_int_equal(start(f, SHOP, 7), 2);
    assert_int_equal(next(f, WLOG), 42);
    flush(f);
}

static void test_a_hole_in_the_log_is_named_until_it_is_mended(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 0;

    for (uint64_t i = 1; i <= 5; i++) {
        append(f, &(pawl_seq_value){ 7, WLOG, i }, 1, i);
    }
    seq_memory_hide(f->memory, 3, true);
    open_sequencer(f);
    assert_status(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), PAWL_CORRUPT, &f->error);
    assert_status(
        pawl_sequencer_start(f->seq, SHOP, 7, &offset, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset 4 follows where 3 should stand");
    seq_memory_hide(f->memory, 3, false);
    for (int64_t deadline_ns = patience();
         pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error) == PAWL_CORRUPT;) {
        int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());
        assert_true(now_ns < deadline_ns);
        pawl__sleep_until(pawl__clock_real(), now_ns + NS_PER_MS);
    }
    assert_int_equal(start(f, SHOP, 7), 6);
    assert_int_equal(next(f, WLOG), 6);
    flush(f);
}

static void test_a_read_that_takes_too_long_is_busy(void **state)
{
    struct fixture *f = *state;
    uint64_t number = 0;

    f->options.read_ms_max = 1;
    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 7), 1);
    seq_memory_fail(f->memory, SEQ_MEMORY_READ, PAWL_TIMEOUT);
    assert_status(pawl_sequencer_next(f->seq, ORDER, &number, &f->error), PAWL_BUSY, &f->error);
    assert_true(f->error.retryable);
    seq_memory_fail(f->memory, SEQ_MEMORY_READ, PAWL_IO);
    assert_status(pawl_sequencer_next(f->seq, ORDER, &number, &f->error), PAWL_IO, &f->error);
    seq_memory_fail(f->memory, SEQ_MEMORY_READ, PAWL_OK);
    assert_int_equal(next(f, ORDER),
                     200001); /* the transaction goes on, and no number is missing */
    flush(f);
}

static void test_each_misuse_has_its_status_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t out = 99;

    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    assert_detail(
        pawl_sequencer_next(f->seq, ORDER, &out, &f->error), PAWL_DETAIL_NO_TRANSACTION, &f->error);
    assert_detail(pawl_sequencer_flush(f->seq, &f->error), PAWL_DETAIL_NO_TRANSACTION, &f->error);
    assert_detail(
        pawl_sequencer_actualize(f->seq, &f->error), PAWL_DETAIL_NO_TRANSACTION, &f->error);
    assert_detail(
        pawl_sequencer_start(f->seq, 77, 1, &out, &f->error), PAWL_DETAIL_UNKNOWN_KIND, &f->error);
    assert_status(pawl_sequencer_start(f->seq, SHOP, 0, &out, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(out, 99);
    assert_int_equal(start(f, OFFICE, 5), 1);
    assert_detail(pawl_sequencer_start(f->seq, OFFICE, 5, &out, &f->error),
                  PAWL_DETAIL_TRANSACTION_OPEN,
                  &f->error);
    assert_detail(pawl_sequencer_next(f->seq, ORDER, &out, &f->error),
                  PAWL_DETAIL_UNKNOWN_SEQUENCE,
                  &f->error);
    assert_int_equal(out, 99);
    assert_int_equal(next(f, WLOG), 1);
    flush(f);
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    assert_status(pawl_sequencer_start(f->seq, SHOP, 1, &out, &f->error), PAWL_CLOSED, &f->error);
    assert_status(pawl_sequencer_next(f->seq, ORDER, &out, &f->error), PAWL_CLOSED, &f->error);
    assert_status(pawl_sequencer_flush(f->seq, &f->error), PAWL_CLOSED, &f->error);
    assert_status(pawl_sequencer_actualize(f->seq, &f->error), PAWL_CLOSED, &f->error);
    assert_status(pawl_sequencer_wait(f->seq, 1, &f->error), PAWL_CLOSED, &f->error);
}

static void test_options_that_are_wrong_are_named(void **state)
{
    struct fixture *f = *state;
    static const pawl_seq_type zero[] = { { sizeof(pawl_seq_type), 1, 1, 0 } };
    static const pawl_seq_type twice[] = { { sizeof(pawl_seq_type), 1, 1, 1 },
                                           { sizeof(pawl_seq_type), 1, 2, 1 },
                                           { sizeof(pawl_seq_type), 1, 1, 9 } };
    const pawl_sequencer_options good = f->options;
    pawl_seq_storage halves[] = { f->storage, f->storage, f->storage, f->storage };
    struct {
        pawl_sequencer_options options;
        const char *says;
    } wrong[] = { { good, "initial value is 0" },
                  { good, "has sequence 1 twice" },
                  { good, "types" },
                  { good, "storage" },
                  { good, "cache_size" },
                  { good, "unflushed_max" },
                  { good, "flush_interval_ms" },
                  { good, "_INIT" },
                  { good, "read_numbers is NULL" },
                  { good, "read_next_offset is NULL" },
                  { good, "write is NULL" },
                  { good, "actualize is NULL" } };

    wrong[0].options.types = zero;
    wrong[0].options.type_count = 1;
    wrong[1].options.types = twice;
    wrong[1].options.type_count = 3;
    wrong[2].options.type_count = 0;
    wrong[3].options.storage = NULL;
    wrong[4].options.cache_size = 0;
    wrong[5].options.unflushed_max = 0;
    wrong[6].options.flush_interval_ms = 0;
    wrong[7].options.size = 0;
    halves[0].read_numbers = NULL;
    halves[1].read_next_offset = NULL;
    halves[2].write = NULL;
    halves[3].actualize = NULL;
    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        wrong[8 + i].options.storage = &halves[i];
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(
            pawl_sequencer_open(&wrong[i].options, &f->seq, &f->error), PAWL_INVALID, &f->error);
        assert_message(&f->error, wrong[i].says);
        assert_null(f->seq);
    }
}

static void test_the_last_number_and_the_last_offset_do_not_wrap(void **state)
{
    struct fixture *f = *state;
    uint64_t out = 0;
    const pawl_seq_value top = { 7, WLOG, PAWL_SEQ_NUMBER_MAX - 1 };

    assert_ok(f->storage.write(f->storage.context, &top, 1, 1, &f->error), &f->error);
    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 7), 1);
    assert_int_equal(next(f, WLOG), PAWL_SEQ_NUMBER_MAX);
    for (int i = 0; i < 2; i++) {
        assert_detail(
            pawl_sequencer_next(f->seq, WLOG, &out, &f->error), PAWL_DETAIL_EXHAUSTED, &f->error);
    }
    assert_int_equal(next(f, ORDER), 200001); /* the others go on */
    flush(f);
    assert_ok(pawl_sequencer_stop(f->seq, 0, &f->error), &f->error);
    pawl_sequencer_close(STEAL(f->seq), 0, NULL);

    assert_ok(f->storage.write(f->storage.context, NULL, 0, PAWL_SEQ_NUMBER_MAX, &f->error),
              &f->error);
    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    assert_detail(
        pawl_sequencer_start(f->seq, SHOP, 7, &out, &f->error), PAWL_DETAIL_EXHAUSTED, &f->error);
}

static void test_a_stored_number_below_the_first_is_lifted(void **state)
{
    struct fixture *f = *state;
    const pawl_seq_value low = { 7, ORDER, 5 };

    assert_ok(f->storage.write(f->storage.context, &low, 1, 1, &f->error), &f->error);
    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 7), 1);
    assert_int_equal(next(f, ORDER), 200001);
    flush(f);
}

/* --- threads --- */

struct intruder {
    struct fixture *f;
    pawl_error start;
    pawl_error next;
    pawl_error flush;
    pawl_error actualize;
};

static void intrude(void *context)
{
    struct intruder *intruder = context;
    pawl_sequencer *seq = intruder->f->seq;
    uint64_t out = 0;

    (void)!pawl_sequencer_start(seq, SHOP, 7, &out, &intruder->start);
    (void)!pawl_sequencer_next(seq, ORDER, &out, &intruder->next);
    (void)!pawl_sequencer_flush(seq, &intruder->flush);
    (void)!pawl_sequencer_actualize(seq, &intruder->actualize);
}

static void test_another_thread_gets_a_status_and_not_a_race(void **state)
{
    struct fixture *f = *state;
    struct intruder intruder = { .f = f };
    struct pawl__thread thread = { 0 };

    open_sequencer(f);
    assert_int_equal(start(f, SHOP, 7), 1);
    assert_int_equal(next(f, ORDER), 200001);
    assert_ok(pawl__thread_start(&thread, "intruder", intrude, &intruder, &f->error), &f->error);
    assert_int_equal(next(f, ORDER), 200002);
    pawl__thread_join(&thread);
    assert_int_equal(intruder.start.detail, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(intruder.next.detail, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(intruder.flush.detail, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(intruder.actualize.detail, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(next(f, ORDER), 200003);
    flush(f);
}

/* A number that is on its way to the storage is found: in the queue, in the write under way, or
 * there. With a cache of one nothing else would remember it. */
static void test_numbers_on_their_way_are_not_given_out_twice(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 1;

    f->options.cache_size = 1;
    f->options.flush_interval_ms = 1;
    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, true);
    for (uint64_t round = 1; round <= 20; round++) {
        for (uint64_t workspace = 1; workspace <= 3; workspace++) {
            assert_int_equal(command(f, workspace, offset++), 200000 + round);
        }
        if (round == 7) { /* the write is held with older numbers; newer ones wait behind it */
            assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_WRITE, 1, patience()));
        }
        if (round == 14) {
            seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, false);
        }
    }
    assert_true(seq_memory_await_offset(f->memory, offset, patience()));
    assert_int_equal(seq_memory_number(f->memory, 2, ORDER), 200020);
}

/* The storage does not come back at all: close says so in time, and the threads end on their own. */
static void test_a_close_beside_a_storage_that_hangs_is_bounded(void **state)
{
    struct fixture *f = *state;

    f->options.flush_interval_ms = 1;
    f->options.close_ms_max = 20;
    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, true);
    command(f, 7, 1);
    assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_WRITE, 1, patience()));
    assert_status(pawl_sequencer_stop(f->seq, 0, &f->error), PAWL_TIMEOUT, &f->error);
    seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, false);
    f->options.close_ms_max = PATIENCE_MS;
    pawl_status status = PAWL_TIMEOUT;
    for (int64_t deadline_ns = patience();
         status == PAWL_TIMEOUT && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns;) {
        status = pawl_sequencer_stop(f->seq, 0, &f->error);
    }
    assert_ok(status, &f->error);
    assert_int_equal(seq_memory_next_offset(f->memory), 2);
}

static void test_an_actualization_during_a_write_waits_for_it(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 0;

    f->options.flush_interval_ms = 1;
    open_sequencer(f);
    assert_ok(pawl_sequencer_wait(f->seq, PATIENCE_MS, &f->error), &f->error);
    seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, true);
    command(f, 7, 1);
    assert_true(seq_memory_await_calls(f->memory, SEQ_MEMORY_WRITE, 1, patience()));
    start(f, SHOP, 7);
    assert_int_equal(next(f, ORDER), 200002);
    assert_ok(pawl_sequencer_actualize(f->seq, &f->error), &f->error);
    assert_status(pawl_sequencer_start(f->seq, SHOP, 7, &offset, &f->error), PAWL_BUSY, &f->error);
    seq_memory_hold(f->memory, SEQ_MEMORY_WRITE, false);
    assert_int_equal(command(f, 7, 2), 200002);
}

static void test_status_says_what_happened(void **state)
{
    struct fixture *f = *state;
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;

    f->options.flush_interval_ms = NEVER_MS;
    open_sequencer(f);
    command(f, 7, 1);
    command(f, 7, 2);
    command(f, 8, 3);
    (void)!pawl_sequencer_get_status(f->seq, &status, NULL);
    assert_int_equal(status.next_offset, 4);
    assert_int_equal(status.unflushed, 2);
    assert_int_equal(status.hits, 1);
    assert_int_equal(status.misses, 2);
    assert_int_equal(status.actualizations, 1);
    assert_false(status.actualizing);
    assert_int_equal(status.last_error.status, PAWL_OK);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest of_the_design[] = {
        TEST(test_FlushByTimer),       TEST(test_FlushBySize),           TEST(test_LongRecovery),
        TEST(test_MultipleActualizes), TEST(test_FlushPermanentlyFails),
    };
    const struct CMUnitTest tests[] = {
        TEST(test_a_dropped_event_leaves_its_numbers_and_its_offset),
        TEST(test_the_timer_writes_while_the_log_is_being_read),
        TEST(test_numbers_begin_at_their_first_and_go_up_by_one),
        TEST(test_after_actualize_the_same_offset_and_numbers_come_again),
        TEST(test_events_of_one_write_end_together),
        TEST(test_a_log_that_grows_is_read_on),
        TEST(test_a_recovery_waits_for_a_storage_that_comes_back),
        TEST(test_a_log_that_cannot_be_read_is_tried_again),
        TEST(test_a_hole_in_the_log_is_named_until_it_is_mended),
        TEST(test_a_read_that_takes_too_long_is_busy),
        TEST(test_each_misuse_has_its_status_and_changes_nothing),
        TEST(test_options_that_are_wrong_are_named),
        TEST(test_the_last_number_and_the_last_offset_do_not_wrap),
        TEST(test_a_stored_number_below_the_first_is_lifted),
        TEST(test_another_thread_gets_a_status_and_not_a_race),
        TEST(test_numbers_on_their_way_are_not_given_out_twice),
        TEST(test_a_close_beside_a_storage_that_hangs_is_bounded),
        TEST(test_an_actualization_during_a_write_waits_for_it),
        TEST(test_status_says_what_happened),
    };

    struct repeat repeat;

    if (!repeat_parse(&argc, argv, &repeat)) {
        return 2;
    }
    return repeat.rounds > 0 ? repeat_run(&repeat, of_the_design, COUNT_OF(of_the_design))
                             : cmocka_run_group_tests(tests, NULL, NULL);
}
