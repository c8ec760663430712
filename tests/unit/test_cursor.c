#include "lib/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/crc32c.h"
#include "base/decide/cursor.h"
#include "lib/fault.h"
#include "lib/trace.h"

struct fixture {
    struct trace trace;
    struct pawl__cursor cursor;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .trace = trace_start(), .cursor = CURSOR_INIT };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__cursor_done(&f->cursor);
    trace_done(&f->trace);
    return 0;
}

static int64_t now_us(struct fixture *f)
{
    return trace_now_ns(&f->trace) / NS_PER_US;
}

/* "at 9, holes 5-7@3" with the second in which each was found. */
static void add_state(struct fixture *f, const char *what)
{
    char text[256];
    struct pawl__buf line = BUF_OVER(text);

    pawl__buf_add_format(&line, "%s -> at %" PRIu64, what, f->cursor.watermark);
    for (size_t i = 0; i < f->cursor.hole_count; i++) {
        const struct pawl__hole *hole = &f->cursor.holes[i];
        pawl__buf_add_format(&line,
                             "%s%" PRIu64 "-%" PRIu64 "@%" PRId64,
                             i == 0 ? ", holes " : " ",
                             hole->first,
                             hole->last,
                             hole->found_us / US_PER_S);
    }
    if (f->cursor.lost > 0) {
        pawl__buf_add_format(&line, ", lost %" PRIu64, f->cursor.lost);
    }
    trace_add(&f->trace, "%s", text);
}

static void sees(struct fixture *f, int64_t at, uint64_t first, uint64_t last)
{
    char what[64];
    uint64_t new = 0;

    trace_at(&f->trace, at);
    assert_ok(pawl__cursor_observe(&f->cursor, first, last, now_us(f), &new, &f->error), &f->error);
    snprintf(
        what, sizeof(what), "sees %" PRIu64 "-%" PRIu64 " (%" PRIu64 " new)", first, last, new);
    add_state(f, what);
}

static void fills(struct fixture *f, int64_t at, uint64_t first, uint64_t last)
{
    char what[64];
    uint64_t filled = 0;

    trace_at(&f->trace, at);
    assert_ok(pawl__cursor_resolve(&f->cursor, first, last, &filled, &f->error), &f->error);
    snprintf(
        what, sizeof(what), "fills %" PRIu64 "-%" PRIu64 " (%" PRIu64 ")", first, last, filled);
    add_state(f, what);
}

static void gives_up(struct fixture *f, int64_t at, uint64_t first, uint64_t last)
{
    char what[64];
    uint64_t lost = 0;

    trace_at(&f->trace, at);
    assert_ok(pawl__cursor_declare_lost(&f->cursor, first, last, &lost, &f->error), &f->error);
    snprintf(
        what, sizeof(what), "gives up %" PRIu64 "-%" PRIu64 " (%" PRIu64 ")", first, last, lost);
    add_state(f, what);
}

static void asks(struct fixture *f, int64_t at)
{
    const struct pawl__hole *hole = NULL;

    trace_at(&f->trace, at);
    for (uint64_t after = 0;; after = hole->last) {
        hole = pawl__cursor_next_due(&f->cursor, after, now_us(f), 10 * US_PER_S);
        if (hole == NULL) {
            break;
        }
        trace_add(&f->trace, "asks again for %" PRIu64 "-%" PRIu64, hole->first, hole->last);
    }
}

static void test_a_hole_is_on_record_before_the_watermark_passes_it(void **state)
{
    struct fixture *f = *state;

    sees(f, 0, 1, 4);
    sees(f, 3, 8, 9);
    sees(f, 4, 8, 9);
    sees(f, 5, 6, 6);
    sees(f, 6, 20, 20);
    asks(f, 12);
    asks(f, 13);
    fills(f, 14, 7, 7);
    asks(f, 16);
    fills(f, 17, 12, 13);
    gives_up(f, 18, 1, 11);
    sees(f, 19, 10, 25);
    fills(f, 20, 24, 30);
    assert_trace(&f->trace,
                 "[  0] sees 1-4 (4 new) -> at 4\n"
                 "[  3] sees 8-9 (2 new) -> at 9, holes 5-7@3\n"
                 "[  4] sees 8-9 (0 new) -> at 9, holes 5-7@3\n"
                 "[  5] sees 6-6 (1 new) -> at 9, holes 5-5@3 7-7@3\n"
                 "[  6] sees 20-20 (1 new) -> at 20, holes 5-5@3 7-7@3 10-19@6\n"
                 "[ 13] asks again for 5-5\n"
                 "[ 13] asks again for 7-7\n"
                 "[ 14] fills 7-7 (1) -> at 20, holes 5-5@3 10-19@6\n"
                 "[ 16] asks again for 5-5\n"
                 "[ 16] asks again for 10-19\n"
                 "[ 17] fills 12-13 (2) -> at 20, holes 5-5@3 10-11@6 14-19@6\n"
                 "[ 18] gives up 1-11 (3) -> at 20, holes 14-19@6, lost 3\n"
                 "[ 19] sees 10-25 (11 new) -> at 25, lost 3\n"
                 "[ 20] fills 24-30 (0) -> at 25, lost 3\n");
    assert_true(pawl__cursor_has(&f->cursor, 5)); /* given up is decided, too */
    assert_int_equal(pawl__cursor_complete_to(&f->cursor), 25);
}

static void test_after_a_restart_every_hole_gets_its_grace_again(void **state)
{
    struct fixture *f = *state;

    sees(f, 500, 3, 3);
    pawl__cursor_restamp(&f->cursor, 0);
    add_state(f, "restarts at 0");
    assert_trace(&f->trace,
                 "[500] sees 3-3 (1 new) -> at 3, holes 1-2@500\n"
                 "[500] restarts at 0 -> at 3, holes 1-2@0\n");
    assert_null(pawl__cursor_next_due(&f->cursor, 0, 9, 10));
    assert_non_null(pawl__cursor_next_due(&f->cursor, 0, 10, 10));
    assert_null(pawl__cursor_next_due(&f->cursor, 2, 10, 10));
    assert_null(pawl__cursor_next_due(&f->cursor, 0, INT64_MIN, 10));
    assert_null(pawl__cursor_next_due(&f->cursor, PAWL__CURSOR_SEQ_MAX, 10, 10));
}

static void test_what_is_no_range_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t new = 42;

    assert_status(
        pawl__cursor_observe(&f->cursor, 0, 1, 0, &new, &f->error), PAWL_INVALID, &f->error);
    assert_status(
        pawl__cursor_observe(&f->cursor, 2, 1, 0, &new, &f->error), PAWL_INVALID, &f->error);
    assert_status(pawl__cursor_observe(&f->cursor, 1, PAWL__CURSOR_SEQ_MAX + 1, 0, &new, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "1-9223372036854775808 is no range");
    assert_int_equal(new, 42);
    assert_ok(pawl__cursor_observe(
                  &f->cursor, PAWL__CURSOR_SEQ_MAX, PAWL__CURSOR_SEQ_MAX, 0, &new, &f->error),
              &f->error);
    assert_int_equal(new, 1);
    assert_true(pawl__cursor_missing(&f->cursor) == PAWL__CURSOR_SEQ_MAX - 1);
    assert_ok(pawl__cursor_declare_lost(&f->cursor, 1, PAWL__CURSOR_SEQ_MAX, &new, &f->error),
              &f->error);
    assert_true(f->cursor.lost == PAWL__CURSOR_SEQ_MAX - 1);
}

static void test_at_the_limit_of_holes_the_watermark_waits(void **state)
{
    struct fixture *f = *state;
    uint64_t seq = 0;

    for (int i = 0; i < PAWL__CURSOR_HOLES_MAX; i++) { /* holes of three numbers each */
        seq += 4;
        assert_ok(pawl__cursor_observe(&f->cursor, seq, seq, 0, NULL, &f->error), &f->error);
    }
    assert_int_equal(f->cursor.hole_count, PAWL__CURSOR_HOLES_MAX);
    assert_status(pawl__cursor_observe(&f->cursor, seq + 2, seq + 2, 0, NULL, &f->error),
                  PAWL_BUSY,
                  &f->error);
    assert_message(&f->error, "4096 holes, the limit");
    assert_int_equal(f->cursor.watermark, seq);
    /* A split needs one more, from the edge it does not; and the next number still comes in. */
    assert_status(pawl__cursor_resolve(&f->cursor, 2, 2, NULL, &f->error), PAWL_BUSY, &f->error);
    assert_ok(pawl__cursor_resolve(&f->cursor, 1, 1, NULL, &f->error), &f->error);
    assert_ok(pawl__cursor_observe(&f->cursor, seq + 1, seq + 1, 0, NULL, &f->error), &f->error);
    assert_ok(pawl__cursor_declare_lost(&f->cursor, 2, 3, NULL, &f->error), &f->error);
    assert_ok(pawl__cursor_observe(&f->cursor, seq + 3, seq + 3, 0, NULL, &f->error), &f->error);
    assert_int_equal(f->cursor.hole_count, PAWL__CURSOR_HOLES_MAX);

    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
    pawl__cursor_encode(&f->cursor, &bytes);
    assert_ok(pawl__buf_check(&bytes, "cursor", &f->error), &f->error);
    assert_int_equal(bytes.len, PAWL__CURSOR_BYTES_MAX);
    assert_ok(pawl__cursor_decode(&f->cursor, pawl__buf_view(&bytes), &f->error), &f->error);
    assert_int_equal(f->cursor.hole_count, PAWL__CURSOR_HOLES_MAX);
}

/* The naive model: one entry a number. */
enum { NUMBERS = 120, STEPS = 300, SEEDS = 300 };

struct model {
    enum { UNKNOWN, MISSING, SEEN, LOST } of[NUMBERS + 1];
    int64_t found_us[NUMBERS + 1];
    uint64_t watermark;
};

static uint64_t model_set(struct model *model, uint64_t first, uint64_t last, int to)
{
    uint64_t changed = 0;

    for (uint64_t seq = first; seq <= last; seq++) {
        if (model->of[seq] == MISSING || (to == SEEN && model->of[seq] == UNKNOWN)) {
            model->of[seq] = (unsigned)to;
            changed++;
        }
    }
    return changed;
}

static uint64_t model_observe(struct model *model, uint64_t first, uint64_t last, int64_t now)
{
    for (uint64_t seq = model->watermark + 1; seq < first; seq++) {
        model->of[seq] = MISSING;
        model->found_us[seq] = now;
    }
    model->watermark = last > model->watermark ? last : model->watermark;
    return model_set(model, first, last, SEEN);
}

static void assert_same(const struct pawl__cursor *cursor, const struct model *model)
{
    uint64_t missing = 0;
    uint64_t lost = 0;

    assert_int_equal(cursor->watermark, model->watermark);
    for (uint64_t seq = 1; seq <= NUMBERS; seq++) {
        bool decided = model->of[seq] == SEEN || model->of[seq] == LOST;
        assert_int_equal(pawl__cursor_has(cursor, seq), decided);
        missing += model->of[seq] == MISSING;
        lost += model->of[seq] == LOST;
    }
    assert_int_equal(pawl__cursor_missing(cursor), missing);
    assert_int_equal(cursor->lost, lost);
    for (size_t i = 0; i < cursor->hole_count; i++) {
        for (uint64_t seq = cursor->holes[i].first; seq <= cursor->holes[i].last; seq++) {
            assert_int_equal(model->of[seq], MISSING);
            assert_int_equal(cursor->holes[i].found_us, model->found_us[seq]);
        }
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return *seed >> 33;
}

static void step(struct pawl__cursor *cursor, struct model *model, uint64_t *seed, int64_t now)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t first = 1 + next_random(seed) % NUMBERS;
    uint64_t last = MIN(first + next_random(seed) % 6, (uint64_t)NUMBERS);
    uint64_t kind = next_random(seed) % 8;
    uint64_t changed = 0;
    uint64_t expected = 0;

    if (kind == 0) {
        assert_ok(pawl__cursor_declare_lost(cursor, first, last, &changed, &error), &error);
        expected = model_set(model, first, MIN(last, model->watermark), LOST);
    } else if (kind < 4) {
        assert_ok(pawl__cursor_resolve(cursor, first, last, &changed, &error), &error);
        if (first <= model->watermark) {
            expected = model_set(model, first, MIN(last, model->watermark), SEEN);
        }
    } else {
        first = MIN(first, model->watermark + 1 + next_random(seed) % 8);
        last = MAX(first, MIN(last, first + 5));
        if (last > NUMBERS) {
            return;
        }
        assert_ok(pawl__cursor_observe(cursor, first, last, now, &changed, &error), &error);
        expected = model_observe(model, first, last, now);
    }
    assert_int_equal(changed, expected);
}

static void assert_round_trip(struct pawl__cursor *cursor)
{
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf again = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    pawl__cursor_encode(cursor, &bytes);
    assert_ok(pawl__cursor_decode(cursor, pawl__buf_view(&bytes), &error), &error);
    pawl__cursor_encode(cursor, &again);
    assert_true(pawl__view_equal(pawl__buf_view(&bytes), pawl__buf_view(&again)));
}

static void test_it_agrees_with_a_list_of_every_number(void **state)
{
    (void)state;
    for (uint64_t start = 1; start <= SEEDS; start++) {
        struct pawl__cursor cursor = CURSOR_INIT;
        struct model model = { 0 };
        uint64_t seed = start;
        for (int i = 0; i < STEPS && model.watermark < NUMBERS; i++) {
            step(&cursor, &model, &seed, i);
            assert_same(&cursor, &model);
        }
        assert_round_trip(&cursor);
        assert_same(&cursor, &model);
        pawl__cursor_done(&cursor);
    }
}

static void test_every_flipped_or_missing_byte_is_noticed(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(256);
    struct pawl__cursor copy = CURSOR_INIT;

    sees(f, 1, 3, 4);
    sees(f, 2, 9, 9);
    pawl__cursor_encode(&f->cursor, &bytes);
    assert_int_equal(bytes.len, 32 + 2 * 24);
    copy.watermark = 77;
    for (size_t i = 0; i < bytes.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] = (char)(bytes.data[i] ^ (1 << bit));
            pawl_status status = pawl__cursor_decode(&copy, pawl__buf_view(&bytes), &f->error);
            assert_int_equal(status, i >= 4 && i < 8 ? PAWL_UNSUPPORTED : PAWL_CORRUPT);
            bytes.data[i] = (char)(bytes.data[i] ^ (1 << bit));
        }
        pawl_view cut = { bytes.data, i };
        assert_status(pawl__cursor_decode(&copy, cut, &f->error), PAWL_CORRUPT, &f->error);
    }
    assert_int_equal(copy.watermark, 77); /* a failed call leaves its outputs alone */
    pawl__buf_add_char(&bytes, 'x');
    assert_status(
        pawl__cursor_decode(&copy, pawl__buf_view(&bytes), &f->error), PAWL_CORRUPT, &f->error);
    assert_int_equal(pawl__crc32c(pawl_view_of("123456789")), 0xE3069283); /* the standard check */
}

static void test_the_checksum_is_the_same_with_and_without_the_instruction(void **state)
{
    char bytes[64];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 37);
    }
    for (size_t from = 0; from < 8; from++) {
        for (size_t len = 0; from + len <= sizeof(bytes); len++) {
            pawl_view part = { &bytes[from], len };
            assert_int_equal(pawl__crc32c(part), pawl__crc32c_by_table(part));
        }
    }
    assert_int_equal(pawl__crc32c_by_table(pawl_view_of("123456789")), 0xE3069283);
}

/* Encodes whatever the cursor says, also what no cursor could say. */
static void assert_nonsense(struct fixture *f, struct pawl__cursor *cursor)
{
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(256);
    struct pawl__cursor copy = CURSOR_INIT;

    pawl__cursor_encode(cursor, &bytes);
    assert_status(
        pawl__cursor_decode(&copy, pawl__buf_view(&bytes), &f->error), PAWL_CORRUPT, &f->error);
}

static void test_a_right_checksum_does_not_excuse_nonsense(void **state)
{
    struct fixture *f = *state;
    struct pawl__hole backward[] = { { 5, 4, 0 } };
    struct pawl__hole zero[] = { { 0, 4, 0 } };
    struct pawl__hole at_the_end[] = { { 5, 10, 0 } };
    struct pawl__hole touching[] = { { 2, 3, 0 }, { 4, 5, 0 } };
    struct pawl__hole descending[] = { { 6, 7, 0 }, { 2, 3, 0 } };
    struct pawl__hole fine[] = { { 2, 3, 0 } };

    assert_nonsense(f, &(struct pawl__cursor){ 10, 0, 1, 1, backward });
    assert_nonsense(f, &(struct pawl__cursor){ 10, 0, 1, 1, zero });
    assert_nonsense(f, &(struct pawl__cursor){ 10, 0, 1, 1, at_the_end });
    assert_nonsense(f, &(struct pawl__cursor){ 10, 0, 2, 2, touching });
    assert_nonsense(f, &(struct pawl__cursor){ 10, 0, 2, 2, descending });
    assert_nonsense(f, &(struct pawl__cursor){ 10, 9, 1, 1, fine }); /* more lost than decided */
    assert_nonsense(f, &(struct pawl__cursor){ .watermark = PAWL__CURSOR_SEQ_MAX + 1 });
}

static void test_without_memory_nothing_changes(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        pawl__cursor_done(&f->cursor);
        pawl_status status = PAWL_OK;
        uint64_t good = 0;
        for (uint64_t seq = 2; seq <= 60 && status == PAWL_OK; seq += 2) {
            status = pawl__cursor_observe(&f->cursor, seq, seq, 0, NULL, &f->error);
            good = status == PAWL_OK ? seq : good;
        }
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_int_equal(f->cursor.watermark, good);
        assert_int_equal(f->cursor.hole_count, good / 2);
    }
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
    pawl__cursor_encode(&f->cursor, &bytes);
    FAULT_WALK (walk) {
        struct pawl__cursor copy = { .watermark = 5 };
        pawl_status status = pawl__cursor_decode(&copy, pawl__buf_view(&bytes), &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_int_equal(copy.watermark, fault_fired() ? 5 : 60);
        pawl__cursor_done(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_hole_is_on_record_before_the_watermark_passes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_after_a_restart_every_hole_gets_its_grace_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_range_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_at_the_limit_of_holes_the_watermark_waits, setup, teardown),
        cmocka_unit_test(test_it_agrees_with_a_list_of_every_number),
        cmocka_unit_test(test_the_checksum_is_the_same_with_and_without_the_instruction),
        cmocka_unit_test_setup_teardown(
            test_every_flipped_or_missing_byte_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_right_checksum_does_not_excuse_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory_nothing_changes, setup, teardown),
    };
    return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
