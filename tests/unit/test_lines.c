/* Lines from files and pipes, however they arrive. */
#include "lib/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os/lines.h"
#include "lib/fault.h"

struct fixture {
    int ends[2];
    struct pawl__lines lines;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    if (pipe2(f.ends, O_CLOEXEC) != 0) {
        return -1;
    }
    f.lines = pawl__lines_of(f.ends[0], 10);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__lines_done(&f->lines);
    close(f->ends[0]);
    if (f->ends[1] >= 0) {
        close(f->ends[1]);
    }
    return 0;
}

static void feed(struct fixture *f, const char *text)
{
    assert_int_equal(write(f->ends[1], text, strlen(text)), strlen(text));
}

static void end(struct fixture *f)
{
    close(f->ends[1]);
    f->ends[1] = -1;
}

static void expect(struct fixture *f, const char *text)
{
    pawl_view line;

    assert_ok(pawl__lines_next(&f->lines, &line, &f->error), &f->error);
    if (!pawl__view_is(line, text)) {
        fail_msg("'%.*s' instead of '%s'", VIEW_ARGS(line), text);
    }
}

static void expect_end(struct fixture *f)
{
    pawl_view line = { "kept", 4 };

    assert_status(pawl__lines_next(&f->lines, &line, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_true(pawl__view_is(line, "kept"));
}

static void test_lines_come_one_by_one_and_are_numbered(void **state)
{
    struct fixture *f = *state;

    feed(f, "one\n\ntwo\r\nthree");
    end(f);
    expect(f, "one");
    assert_int_equal(f->lines.number, 1);
    assert_int_equal(f->lines.bytes, 4);
    expect(f, "");
    expect(f, "two\r");
    expect(f, "three");
    assert_int_equal(f->lines.number, 4);
    assert_int_equal(f->lines.bytes, 15);
    expect_end(f);
    expect_end(f);
}

static void test_a_line_feed_at_the_end_is_no_line_of_its_own(void **state)
{
    struct fixture *f = *state;

    feed(f, "one\n");
    end(f);
    expect(f, "one");
    expect_end(f);
}

static void test_nothing_is_no_line(void **state)
{
    struct fixture *f = *state;

    end(f);
    expect_end(f);
}

static void test_a_byte_order_mark_is_dropped_at_the_start_alone(void **state)
{
    struct fixture *f = *state;

    feed(f, "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n");
    end(f);
    expect(f, "one");
    expect(f, "\xEF\xBB\xBFtwo");
}

static void test_a_line_at_the_limit_passes_and_one_byte_more_is_refused(void **state)
{
    struct fixture *f = *state;
    pawl_view line;

    feed(f, "0123456789\n0123456789a\n");
    expect(f, "0123456789");
    assert_status(pawl__lines_next(&f->lines, &line, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "line 2: over 10 bytes");
}

static void test_neither_line_ends_nor_the_mark_count(void **state)
{
    struct fixture *f = *state;
    pawl_view line;

    feed(f,
         "\xEF\xBB\xBF"
         "0123456789\r\n0123456789\r");
    expect(f, "0123456789\r");
    assert_false(pawl__lines_ready(&f->lines)); /* a line feed may come */
    feed(f, "\n0123456789\r\r\n");
    expect(f, "0123456789\r");
    assert_true(pawl__lines_ready(&f->lines));
    assert_status(pawl__lines_next(&f->lines, &line, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "line 3: over 10 bytes");
}

static void test_with_a_mark_in_front_one_byte_more_is_refused(void **state)
{
    struct fixture *f = *state;
    pawl_view line;

    feed(f,
         "\xEF\xBB\xBF"
         "0123456789a\n");
    assert_status(pawl__lines_next(&f->lines, &line, &f->error), PAWL_INVALID, &f->error);
}

static void test_a_long_line_is_refused_before_it_ends(void **state)
{
    struct fixture *f = *state;
    pawl_view line;

    feed(f, "0123456789abc");
    assert_true(pawl__lines_ready(&f->lines));
    assert_status(pawl__lines_next(&f->lines, &line, &f->error), PAWL_INVALID, &f->error);
}

static void test_ready_means_that_nobody_is_waited_for(void **state)
{
    struct fixture *f = *state;

    assert_false(pawl__lines_ready(&f->lines));
    feed(f, "hal");
    assert_false(pawl__lines_ready(&f->lines));
    feed(f, "f\nnext");
    assert_true(pawl__lines_ready(&f->lines));
    expect(f, "half");
    assert_false(pawl__lines_ready(&f->lines));
    end(f);
    assert_true(pawl__lines_ready(&f->lines));
    expect(f, "next");
    assert_true(pawl__lines_ready(&f->lines));
    expect_end(f);
}

static void test_what_cannot_be_read_is_an_error(void **state)
{
    struct fixture *f = *state;
    int directory = open("/", O_RDONLY | O_CLOEXEC);
    struct pawl__lines lines = pawl__lines_of(directory, 10);
    pawl_view line;

    assert_true(pawl__lines_ready(&lines));
    pawl_status status = pawl__lines_next(&lines, &line, &f->error);
    assert_true(status != PAWL_OK && status != PAWL_NOT_FOUND);
    assert_message(&f->error, "directory");
    pawl__lines_done(&lines);
    close(directory);
}

static void test_memory_that_runs_out_is_an_error(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        int ends[2];
        pawl_view line;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], "a\nb", 3), 3);
        close(ends[1]);
        struct pawl__lines lines = pawl__lines_of(ends[0], 10);
        pawl_status status = pawl__lines_next(&lines, &line, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__lines_done(&lines);
        close(ends[0]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lines_come_one_by_one_and_are_numbered),
        TEST(test_a_line_feed_at_the_end_is_no_line_of_its_own),
        TEST(test_nothing_is_no_line),
        TEST(test_a_byte_order_mark_is_dropped_at_the_start_alone),
        TEST(test_a_line_at_the_limit_passes_and_one_byte_more_is_refused),
        TEST(test_neither_line_ends_nor_the_mark_count),
        TEST(test_with_a_mark_in_front_one_byte_more_is_refused),
        TEST(test_a_long_line_is_refused_before_it_ends),
        TEST(test_ready_means_that_nobody_is_waited_for),
        TEST(test_what_cannot_be_read_is_an_error),
        TEST(test_memory_that_runs_out_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
