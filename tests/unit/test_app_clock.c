/* An application on a given clock, told as it happens: its numbers are stored when an interval of that clock is
 * over, and its anchor has the time of that clock. */
#include "lib/app_fixture.h"

#include "lib/shared_clock.h"
#include "lib/trace.h"

enum { WORKSPACE = 7, THREADS = 2, INTERVAL_S = 5 }; /* two threads a partition */

static void look_at(struct app_fixture *f,
                    struct trace *trace,
                    struct shared_clock *clock,
                    int64_t second)
{
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;

    shared_clock_advance(clock, (second * NS_PER_S) - clock->now_ns);
    trace_at(trace, second);
    assert_ok(pawl_app_get_status(f->app, 0, &status, &f->error), &f->error);
    trace_add(trace,
              "the log is stored before offset %llu of %llu",
              (unsigned long long)status.stored_offset,
              (unsigned long long)status.next_offset);
}

static void test_an_application_stores_its_numbers_by_the_given_clock(void **state)
{
    struct app_fixture *f = *state;
    AUTO(trace_done) struct trace trace = trace_start();
    struct shared_clock clock;

    shared_clock_init(&clock, THREADS);
    f->descriptor.partitions = 1;
    f->options.flush_interval_ms = INTERVAL_S * 1000;
    clock.now_ns = NS_PER_S;
    assert_ok(pawl__app_open_at(
                  f->location, &f->descriptor, &f->options, &clock.base, &f->app, &f->error),
              &f->error);
    assert_int_equal(app_invoice(f, WORKSPACE), 1000);
    look_at(f, &trace, &clock, 5);
    look_at(f, &trace, &clock, 6);
    assert_int_equal(app_invoice(f, WORKSPACE), 1001);
    assert_int_equal(app_invoice(f, WORKSPACE), 1002);
    look_at(f, &trace, &clock, 10);
    look_at(f, &trace, &clock, 11);
    trace_add(&trace,
              "the anchor is of second %llu",
              (unsigned long long)(f->app->anchor_writer.anchor.born_us / US_PER_S));
    assert_trace(&trace,
                 "[  5] the log is stored before offset 0 of 2\n"
                 "[  6] the log is stored before offset 2 of 2\n"
                 "[ 10] the log is stored before offset 2 of 4\n"
                 "[ 11] the log is stored before offset 4 of 4\n"
                 "[ 11] the anchor is of second 1\n");
    pawl_app_close(f->app, 0, NULL);
    f->app = NULL;
    shared_clock_done(&clock);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_an_application_stores_its_numbers_by_the_given_clock, app_setup, app_teardown),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
