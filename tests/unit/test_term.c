#include "lib/check.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "base/terminal/display.h"
#include "base/terminal/term.h"
#include "lib/fault.h"
#include "lib/virtual_clock.h"

struct fixture {
    struct pawl__clock_virtual clock;
    struct pawl__buf screen;
    struct pawl__progress_options options;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){
        .clock = pawl__clock_virtual_at(0, 5 * NS_PER_S),
        .screen = BUF_INIT(100000),
    };
    fixture.options = (struct pawl__progress_options){
        .term = { .is_terminal = true, .unicode = true, .width = 60 },
        .fd = -1,
        .sink = pawl__sink_buf(&fixture.screen),
        .clock = &fixture.clock.base,
        .label = "import",
        .total = 1000,
    };
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pawl__buf_done(&f->screen);
    return 0;
}

static void after(struct fixture *f, struct pawl__progress *progress, int64_t ms, uint64_t done)
{
    pawl__clock_advance(&f->clock, ms * NS_PER_MS);
    pawl__progress_update(progress, done);
}

/* What was written since the last look, a frame a line: '<' goes to the start of the line and '>'
 * clears what is behind. */
static void assert_screen(struct fixture *f, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf seen = BUF_INIT(100000);
    pawl_view in = pawl__buf_view(&f->screen);
    pawl_view taken;

    while (in.len > 0) {
        if (in.data[0] == '\r' && pawl__view_take(&in, 1, &taken)) {
            pawl__buf_add_text(&seen, "<");
        } else if (strncmp(in.data, "\x1b[K", 3) == 0 && pawl__view_take(&in, 3, &taken)) {
            pawl__buf_add_text(&seen, ">\n");
        } else if (pawl__view_take(&in, 1, &taken)) {
            pawl__buf_add(&seen, taken);
        }
    }
    assert_string_equal(seen.data == NULL ? "" : seen.data, expected);
    pawl__buf_clear(&f->screen);
}

static void test_nothing_appears_within_a_second(void **state)
{
    struct fixture *f = *state;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 500, 400);
    after(f, &progress, 499, 900);
    pawl__progress_done(&progress);
    assert_screen(f, "");
}

static void test_frames_follow_the_clock_and_are_cleared(void **state)
{
    struct fixture *f = *state;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 1000, 100);
    after(f, &progress, 50, 105); /* too soon for another */
    after(f, &progress, 49, 109);
    after(f, &progress, 901, 200);
    after(f, &progress, 3000, 500);
    after(f, &progress, 3000, 500); /* stalled: slower, and longer to go */
    after(f, &progress, 5000, 1000);
    pawl__progress_done(&progress);
    after(f, &progress, 5000, 1000);
    assert_screen(f,
                  "<import  ━━───────────────────   10%  100/s  0:09 left>\n"
                  "<import  ━━━━─────────────────   20%  100/s  0:08 left>\n"
                  "<import  ━━━━━━━━━━───────────   50%  100/s  0:05 left>\n"
                  "<import  ━━━━━━━━━━───────────   50%  50/s  0:10 left>\n"
                  "<import  ━━━━━━━━━━━━━━━━━━━━━  100%  81/s  0:00 left>\n"
                  "<>\n");
}

static void test_an_unknown_total_shows_count_rate_and_time(void **state)
{
    struct fixture *f = *state;
    f->options.total = 0;
    f->options.bytes = true;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 2000, 3 << 20);
    pawl__progress_clear(&progress);
    pawl__progress_clear(&progress); /* once is enough */
    after(f, &progress, 2000, 3 << 20);
    pawl__progress_done(&progress);
    assert_screen(f,
                  "<import  3.0 MiB  1.5 MiB/s  0:02>\n"
                  "<>\n"
                  "<import  3.0 MiB  921.6 KiB/s  0:04>\n"
                  "<>\n");
}

static void test_ascii_and_colours_follow_the_terminal(void **state)
{
    struct fixture *f = *state;
    f->options.term.unicode = false;
    f->options.term.colour = true;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 1000, 500);
    assert_screen(f, "<import  \x1b[32m##########\x1b[0m-----------   50%  500/s  0:01 left>\n");
}

static void test_resumed_work_does_not_count_as_speed(void **state)
{
    struct fixture *f = *state;
    f->options.already = 900;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 1000, 910);
    assert_screen(f, "<import  ━━━━━━━━━━━━━━━━━━━──   91%  10/s  0:09 left>\n");
}

static void test_odd_numbers_do_no_harm(void **state)
{
    struct fixture *f = *state;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 1000, 0);    /* no speed, no end in sight */
    after(f, &progress, 1000, 2000); /* more than there is */
    after(f, &progress, 1000, 10);   /* backwards */
    assert_screen(f,
                  "<import  ─────────────────────    0%  0/s  --:-- left>\n"
                  "<import  ━━━━━━━━━━━━━━━━━━━━━  100%  2.0 k/s  0:00 left>\n"
                  "<import  ─────────────────────    1%  1.5 k/s  0:00 left>\n");
}

/* No frame may reach the last column, or the terminal wraps and the next one starts a line lower.
 */
static void test_a_frame_fits_any_width(void **state)
{
    struct fixture *f = *state;
    f->options.label = "\x1b[2J导入事件 e\xCC\x81v\xC3\xA9nements of a long name";

    for (size_t width = 0; width < 200; width++) {
        f->options.term.width = width;
        struct pawl__progress progress = pawl__progress_start(&f->options);

        after(f, &progress, 1000, 500);
        pawl_view frame = pawl__buf_view(&f->screen);
        assert_int_equal(frame.data[0], '\r');
        assert_memory_equal(frame.data + frame.len - 3, "\x1b[K", 3);
        pawl_view line = { frame.data + 1, frame.len - 4 };
        assert_true(pawl__view_is_utf8(line));
        assert_true(pawl__display_width(line) < MAX(width, (size_t)1));
        assert_null(memchr(line.data, '\x1b', line.len)); /* the label's is escaped */
        pawl__buf_clear(&f->screen);
    }
}

static void test_without_a_terminal_nothing_is_written(void **state)
{
    struct fixture *f = *state;
    f->options.term.is_terminal = false;
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 5000, 500);
    pawl__progress_clear(&progress);
    pawl__progress_done(&progress);
    assert_screen(f, "");
}

static pawl_status refuse_write(void *context, pawl_view bytes, pawl_error *reterr)
{
    int *count = context;

    (void)bytes;
    (void)reterr;
    (*count)++;
    return PAWL_IO;
}

static void test_a_terminal_that_went_away_is_left_alone(void **state)
{
    struct fixture *f = *state;
    int count = 0;
    f->options.sink = (struct pawl__sink){ refuse_write, &count };
    struct pawl__progress progress = pawl__progress_start(&f->options);

    after(f, &progress, 1000, 100);
    after(f, &progress, 1000, 200);
    pawl__progress_done(&progress);
    assert_int_equal(count, 1);
}

static void test_running_out_of_memory_costs_a_frame(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        struct pawl__progress progress = pawl__progress_start(&f->options);

        after(f, &progress, 1000, 100);
        pawl__progress_done(&progress);
    }
}

static void test_a_file_is_no_terminal(void **state)
{
    const char *environment[] = { "TERM=xterm", "COLUMNS=123", "LANG=de_DE.UTF-8", NULL };
    const char *odd[] = { "TERM=xterm", "COLUMNS=-5", "LC_ALL=C", "LANG=de_DE.UTF-8", NULL };
    AUTO(pawl__fs_close) int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)state;
    struct pawl__term term = pawl__term_detect(fd, environment);
    assert_false(term.is_terminal);
    assert_false(term.colour);
    assert_true(term.unicode);
    assert_int_equal(term.width, 123);
    term = pawl__term_detect(fd, odd);
    assert_false(term.unicode);
    assert_int_equal(term.width, 80);
    assert_int_equal(pawl__term_detect(-1, NULL).width, 80);
}

static void test_a_terminal_is_known_with_its_width(void **state)
{
    const char *plain[] = { "TERM=xterm", "COLUMNS=20", "NO_COLOR=", NULL };
    const char *no_colour[] = { "TERM=xterm", "NO_COLOR=1", NULL };
    const char *dumb[] = { "TERM=dumb", NULL };
    struct winsize size = { .ws_col = 97, .ws_row = 10 };
    AUTO(pawl__fs_close) int master = -1;
    AUTO(pawl__fs_close) int terminal = -1;

    (void)state;
    assert_int_equal(openpty(&master, &terminal, NULL, NULL, &size), 0);
    struct pawl__term term = pawl__term_detect(terminal, plain);
    assert_true(term.is_terminal);
    assert_true(term.colour); /* an empty NO_COLOR is none */
    assert_int_equal(term.width, 97);
    term = pawl__term_detect(terminal, no_colour);
    assert_true(term.is_terminal);
    assert_false(term.colour);
    assert_false(pawl__term_detect(terminal, dumb).is_terminal);
    size.ws_col = 31;
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    assert_int_equal(pawl__term_width(terminal, 80), 31);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_appears_within_a_second),
        TEST(test_frames_follow_the_clock_and_are_cleared),
        TEST(test_an_unknown_total_shows_count_rate_and_time),
        TEST(test_ascii_and_colours_follow_the_terminal),
        TEST(test_resumed_work_does_not_count_as_speed),
        TEST(test_odd_numbers_do_no_harm),
        TEST(test_a_frame_fits_any_width),
        TEST(test_without_a_terminal_nothing_is_written),
        TEST(test_a_terminal_that_went_away_is_left_alone),
        TEST(test_running_out_of_memory_costs_a_frame),
        TEST(test_a_file_is_no_terminal),
        TEST(test_a_terminal_is_known_with_its_width),
    };
    return cmocka_run_group_tests_name("term", tests, NULL, NULL);
}
