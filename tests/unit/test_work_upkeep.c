/* What keeps a work store in shape and in sight, on every backend. */
#include "lib/care_fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Statistics --- */

/* A handle with `stale_ms`, and one more lease; in memory a store of its own. */
static pawl_work *open_with_stale(struct care_fixture *f, uint32_t stale_ms, const char *item)
{
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;
    pawl_work *before = f->work;
    pawl_work *work = NULL;

    options.stale_ms = stale_ms;
    assert_ok(pawl_work_open(f->location, &options, &work, &f->err), &f->err);
    f->work = work;
    care_task(f, "t");
    care_submit(f, "t", item);
    (void)care_claim(f, item, 3600000);
    f->work = before;
    return work;
}

static void test_a_lease_is_stale_by_the_options(void **state)
{
    struct care_fixture *f = *state;
    pawl_work_stats stats = { .stale_leases = 42 };
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
    pawl_work *work = open_with_stale(f, 3600000, "a");

    assert_ok(pawl_work_get_stats(work, &stats, &f->err), &f->err);
    assert_int_equal(stats.active_leases, 1);
    assert_int_equal(stats.stale_leases, 0);
    pawl_work_close(work);
    work = open_with_stale(f, 1, "b");
    do { /* a millisecond passes */
        assert_ok(pawl_work_get_stats(work, &stats, &f->err), &f->err);
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    } while (stats.stale_leases < stats.active_leases);
    assert_true(stats.stale_leases > 0);
    pawl_work_close(work);
    work = open_with_stale(f, 0, "c");
    stats.stale_leases = 42;
    assert_status(pawl_work_get_stats(work, &stats, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "stale_ms");
    assert_int_equal(stats.stale_leases, 42);
    pawl_work_close(work);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CARE_TEST(test_a_lease_is_stale_by_the_options),
    };

    return care_suite(argc, argv, tests, COUNT_OF(tests));
}
