#include "lib/check.h"

#include <inttypes.h>

#include "base/decide/lease.h"
#include "lib/trace.h"

enum { ANN = 1, BOB = 2 };

struct fixture {
    struct trace trace;
    struct pawl__lease lease;
    pawl_error error;
};

static const char *name_of(uint64_t owner)
{
    return owner == ANN ? "ann" : "bob";
}

static int64_t deadline_s(const struct fixture *f)
{
    return f->lease.deadline_ns / NS_PER_S;
}

static const char *result_of(pawl_status status)
{
    return status == PAWL_OK           ? "ok"
           : status == PAWL_LEASE_LOST ? "lease lost"
                                       : pawl_status_name(status);
}

static void claims(struct fixture *f, int64_t at, uint64_t owner)
{
    trace_at(&f->trace, at);
    struct pawl__lease before = f->lease;
    pawl_status status =
        pawl__lease_claim(&f->lease, owner, trace_now_ns(&f->trace), 30 * NS_PER_S, &f->error);
    if (status == PAWL_OK) {
        trace_add(&f->trace,
                  "%s claims -> token %" PRIu64 ", until %" PRId64,
                  name_of(owner),
                  f->lease.token,
                  deadline_s(f));
    } else {
        assert_memory_equal(&before, &f->lease, sizeof(before));
        trace_add(&f->trace, "%s claims -> %s", name_of(owner), result_of(status));
    }
}

static void renews(struct fixture *f, int64_t at, uint64_t token, int64_t ttl_s)
{
    trace_at(&f->trace, at);
    struct pawl__lease before = f->lease;
    pawl_status status =
        pawl__lease_renew(&f->lease, token, trace_now_ns(&f->trace), ttl_s * NS_PER_S, &f->error);
    if (status == PAWL_OK) {
        trace_add(&f->trace, "token %" PRIu64 " renews -> until %" PRId64, token, deadline_s(f));
    } else {
        assert_memory_equal(&before, &f->lease, sizeof(before));
        trace_add(&f->trace, "token %" PRIu64 " renews -> %s", token, result_of(status));
    }
}

static void finishes(struct fixture *f, int64_t at, uint64_t token)
{
    trace_at(&f->trace, at);
    pawl_status status = pawl__lease_check(&f->lease, token, trace_now_ns(&f->trace), &f->error);
    trace_add(&f->trace, "token %" PRIu64 " finishes -> %s", token, result_of(status));
}

static void releases(struct fixture *f, int64_t at, uint64_t token)
{
    trace_at(&f->trace, at);
    pawl_status status = pawl__lease_release(&f->lease, token, trace_now_ns(&f->trace), &f->error);
    trace_add(&f->trace, "token %" PRIu64 " releases -> %s", token, result_of(status));
}

static void sweeps(struct fixture *f, int64_t at)
{
    trace_at(&f->trace, at);
    bool expired = pawl__lease_expire(&f->lease, trace_now_ns(&f->trace));
    trace_add(&f->trace, "watchdog sweeps -> %s", expired ? "expired" : "nothing");
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .trace = trace_start() };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    trace_done(&f->trace);
    return 0;
}

static void test_the_deadline_is_the_first_moment_without_the_lease(void **state)
{
    struct fixture *f = *state;

    claims(f, 0, ANN);
    claims(f, 29, BOB);
    finishes(f, 29, 1);
    finishes(f, 30, 1);
    renews(f, 30, 1, 30);
    claims(f, 30, BOB);
    finishes(f, 31, 1);
    finishes(f, 31, 2);
    assert_trace(&f->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[ 29] bob claims -> BUSY\n"
                 "[ 29] token 1 finishes -> ok\n"
                 "[ 30] token 1 finishes -> lease lost\n"
                 "[ 30] token 1 renews -> lease lost\n"
                 "[ 30] bob claims -> token 2, until 60\n"
                 "[ 31] token 1 finishes -> lease lost\n"
                 "[ 31] token 2 finishes -> ok\n");
}

static void test_one_nanosecond_before_the_deadline_still_counts(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl__lease_claim(&f->lease, ANN, 100, 50, &f->error), &f->error);
    assert_true(pawl__lease_is_live(&f->lease, 149));
    assert_ok(pawl__lease_check(&f->lease, 1, 149, &f->error), &f->error);
    assert_false(pawl__lease_is_live(&f->lease, 150));
    assert_status(pawl__lease_check(&f->lease, 1, 150, &f->error), PAWL_LEASE_LOST, &f->error);
    assert_message(&f->error, "the lease of token 1 has expired");
}

static void test_a_heartbeat_extends_and_never_shortens(void **state)
{
    struct fixture *f = *state;

    claims(f, 0, ANN);
    renews(f, 29, 1, 30);
    renews(f, 40, 1, 5);
    claims(f, 58, BOB);
    renews(f, 58, 1, 30);
    sweeps(f, 87);
    sweeps(f, 88);
    sweeps(f, 88);
    assert_trace(&f->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[ 29] token 1 renews -> until 59\n"
                 "[ 40] token 1 renews -> until 59\n"
                 "[ 58] bob claims -> BUSY\n"
                 "[ 58] token 1 renews -> until 88\n"
                 "[ 87] watchdog sweeps -> nothing\n"
                 "[ 88] watchdog sweeps -> expired\n"
                 "[ 88] watchdog sweeps -> nothing\n");
}

static void test_a_zombie_with_an_old_token_changes_nothing(void **state)
{
    struct fixture *f = *state;

    claims(f, 0, ANN);
    sweeps(f, 100);
    renews(f, 101, 1, 30);
    claims(f, 102, ANN); /* the same owner comes back: a new grant, a new token */
    renews(f, 103, 1, 30);
    releases(f, 104, 1);
    finishes(f, 105, 2);
    finishes(f, 105, 3);
    finishes(f, 105, 0);
    assert_trace(&f->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[100] watchdog sweeps -> expired\n"
                 "[101] token 1 renews -> lease lost\n"
                 "[102] ann claims -> token 2, until 132\n"
                 "[103] token 1 renews -> lease lost\n"
                 "[104] token 1 releases -> lease lost\n"
                 "[105] token 2 finishes -> ok\n"
                 "[105] token 3 finishes -> lease lost\n"
                 "[105] token 0 finishes -> lease lost\n");
    assert_message(&f->error, "token 0 does not hold the lease, the newest is 2");
}

static void test_a_release_frees_at_once_and_keeps_the_token_counting(void **state)
{
    struct fixture *f = *state;

    finishes(f, 0, 0);
    claims(f, 0, ANN);
    claims(f, 1, ANN);
    releases(f, 2, 1);
    releases(f, 2, 1);
    renews(f, 2, 1, 30);
    sweeps(f, 2);
    claims(f, 2, BOB);
    assert_trace(&f->trace,
                 "[  0] token 0 finishes -> lease lost\n"
                 "[  0] ann claims -> token 1, until 30\n"
                 "[  1] ann claims -> BUSY\n"
                 "[  2] token 1 releases -> ok\n"
                 "[  2] token 1 releases -> lease lost\n"
                 "[  2] token 1 renews -> lease lost\n"
                 "[  2] watchdog sweeps -> nothing\n"
                 "[  2] bob claims -> token 2, until 32\n");
}

static void test_the_ends_of_clock_and_tokens_do_not_wrap(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl__lease_claim(&f->lease, ANN, INT64_MAX - 5, INT64_MAX, &f->error), &f->error);
    assert_int_equal(f->lease.deadline_ns, INT64_MAX);
    assert_ok(pawl__lease_renew(&f->lease, 1, INT64_MAX - 1, 60, &f->error), &f->error);
    assert_ok(pawl__lease_release(&f->lease, 1, INT64_MAX - 1, &f->error), &f->error);

    f->lease.token = PAWL__LEASE_TOKEN_MAX - 1;
    assert_ok(pawl__lease_claim(&f->lease, ANN, 0, 10, &f->error), &f->error);
    assert_true(f->lease.token == PAWL__LEASE_TOKEN_MAX);
    assert_status(pawl__lease_claim(&f->lease, BOB, 10, 10, &f->error), PAWL_FAILED, &f->error);
    assert_message(&f->error, "tokens are used up");
    assert_true(f->lease.token == PAWL__LEASE_TOKEN_MAX);
}

static void test_a_lease_without_length_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_status(pawl__lease_claim(&f->lease, ANN, 0, 0, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(f->lease.token, 0);
    assert_ok(pawl__lease_claim(&f->lease, ANN, 0, 1, &f->error), &f->error);
    assert_status(pawl__lease_renew(&f->lease, 1, 0, -1, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(f->lease.deadline_ns, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_deadline_is_the_first_moment_without_the_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_one_nanosecond_before_the_deadline_still_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_heartbeat_extends_and_never_shortens, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_zombie_with_an_old_token_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_release_frees_at_once_and_keeps_the_token_counting, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_the_ends_of_clock_and_tokens_do_not_wrap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lease_without_length_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
