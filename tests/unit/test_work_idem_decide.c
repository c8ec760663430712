#include "lib/check.h"

#include "base/decide/lease.h"
#include "base/os/clock.h"
#include "work/keys/decide.h"

#define FIRST_TOKEN UINT64_C(1)

#define LEASE_NS (30 * NS_PER_S)
#define TTL_US (100 * US_PER_S)

static struct work_now at(int64_t seconds)
{
    return (struct work_now){ .wall_us = (1000 + seconds) * US_PER_S, .ns = seconds * NS_PER_S };
}

static struct work_key_begin wish_of(const char *hash, bool take_over)
{
    return (struct work_key_begin){
        .key = pawl_view_of("pay-1"),
        .request_hash = pawl_view_of(hash),
        .owner = pawl_view_of("ann"),
        .lease_ns = LEASE_NS,
        .ttl_us = TTL_US,
        .take_over = take_over,
    };
}

/* Begins; an answer that is not NEW must have left the row alone. */
static pawl_idem_answer begins(struct work_key_row *row,
                               int64_t second,
                               const char *hash,
                               bool take_over)
{
    struct work_key_begin wish = wish_of(hash, take_over);
    struct work_now now = at(second);
    struct work_key_row before = *row;
    pawl_idem_answer answer = PAWL_IDEM_NEW;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__work_key_decide_begin(row, &wish, &now, &answer, &error), &error);
    if (answer == PAWL_IDEM_NEW) {
        row->known = true; /* as the store would have it */
    } else {
        assert_memory_equal(&before, row, sizeof(before));
    }
    return answer;
}

static pawl_status ends(struct work_key_row *row,
                        int64_t second,
                        uint64_t token,
                        enum work_key_state end,
                        const char *response,
                        bool *ret_changed)
{
    struct work_now now = at(second);
    struct work_key_row before = *row;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__work_key_decide_end(
        row, token, end, pawl_view_of(response), &now, ret_changed, &error);

    if (status != PAWL_OK || !*ret_changed) {
        assert_memory_equal(&before, row, sizeof(before));
    }
    return status;
}

static void test_the_first_is_new_and_the_second_in_flight(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, FIRST_TOKEN);
    assert_int_equal(row.created_at_us, 1000 * US_PER_S);
    assert_int_equal(row.lease_expires_at_us, 1030 * US_PER_S);
    assert_int_equal(row.expires_at_us, 1100 * US_PER_S);
    assert_int_equal(begins(&row, 1, "h", false), PAWL_IDEM_IN_FLIGHT);
    assert_int_equal(begins(&row, 1, "h", true), PAWL_IDEM_IN_FLIGHT);
}

static void test_another_request_is_a_conflict_in_every_state(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(begins(&row, 1, "other", false), PAWL_IDEM_HASH_CONFLICT);
    assert_int_equal(begins(&row, 50, "other", true), PAWL_IDEM_HASH_CONFLICT);
    assert_int_equal(ends(&row, 51, FIRST_TOKEN, WORK_KEY_FAILED, "{}", &changed), PAWL_OK);
    assert_int_equal(begins(&row, 52, "other", true), PAWL_IDEM_HASH_CONFLICT);
}

static void test_a_lease_that_ran_out_is_in_doubt_until_somebody_decides(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(begins(&row, 29, "h", true), PAWL_IDEM_IN_FLIGHT);
    assert_int_equal(begins(&row, 30, "h", false), PAWL_IDEM_IN_DOUBT);
    assert_int_equal(begins(&row, 30, "h", true), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, FIRST_TOKEN + 1);
    assert_int_equal(ends(&row, 31, FIRST_TOKEN, WORK_KEY_COMPLETED, "1", &changed),
                     PAWL_LEASE_LOST);
    assert_int_equal(ends(&row, 31, FIRST_TOKEN + 1, WORK_KEY_COMPLETED, "2", &changed), PAWL_OK);
}

static void test_a_late_owner_may_end_what_nobody_took_over(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(ends(&row, 60, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed), PAWL_OK);
    assert_true(changed);
    assert_int_equal(begins(&row, 61, "h", true), PAWL_IDEM_DONE);
}

static void test_an_end_is_terminal_and_repeatable(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(ends(&row, 0, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed), PAWL_NOT_FOUND);
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(ends(&row, 1, 0, WORK_KEY_COMPLETED, "7", &changed), PAWL_LEASE_LOST);
    assert_int_equal(ends(&row, 1, FIRST_TOKEN + 1, WORK_KEY_COMPLETED, "7", &changed),
                     PAWL_LEASE_LOST);
    assert_int_equal(ends(&row, 1, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed), PAWL_OK);
    assert_int_equal(row.completed_at_us, 1001 * US_PER_S);
    assert_int_equal(ends(&row, 2, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed), PAWL_OK);
    assert_false(changed);
    assert_int_equal(ends(&row, 2, FIRST_TOKEN, WORK_KEY_COMPLETED, "8", &changed),
                     PAWL_LEASE_LOST);
    assert_int_equal(ends(&row, 2, FIRST_TOKEN, WORK_KEY_FAILED, "7", &changed), PAWL_LEASE_LOST);
}

static void test_what_failed_for_good_can_be_taken_over(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(ends(&row, 1, FIRST_TOKEN, WORK_KEY_FAILED, "{}", &changed), PAWL_OK);
    assert_int_equal(begins(&row, 2, "h", false), PAWL_IDEM_FAILED);
    assert_int_equal(begins(&row, 2, "h", true), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, FIRST_TOKEN + 1);
    assert_int_equal(row.response.len, 0);
    assert_int_equal(row.completed_at_us, 0);
}

static void test_past_its_ttl_a_key_is_new_unless_its_owner_is_at_it(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(ends(&row, 1, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed), PAWL_OK);
    assert_int_equal(begins(&row, 99, "h", false), PAWL_IDEM_DONE);
    assert_int_equal(begins(&row, 100, "other", false), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, FIRST_TOKEN + 1);
    row.over_ns = at(110).ns;
    assert_int_equal(begins(&row, 120, "other", false), PAWL_IDEM_IN_FLIGHT);
    assert_int_equal(begins(&row, 130, "other", false), PAWL_IDEM_NEW);
    assert_int_equal(ends(&row, 131, FIRST_TOKEN + 1, WORK_KEY_COMPLETED, "7", &changed),
                     PAWL_LEASE_LOST);
}

static void test_a_new_key_begins_above_every_key_that_was_removed(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1"), .owner_token = 41 };

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, 42);
}

static void test_a_step_of_the_wall_takes_no_lease_away(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    struct work_key_begin wish = wish_of("h", true);
    struct work_now now = at(5);
    pawl_idem_answer answer = PAWL_IDEM_NEW;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    now.wall_us += 3600 * US_PER_S;
    assert_ok(pawl__work_key_decide_begin(&row, &wish, &now, &answer, &error), &error);
    assert_int_equal(answer, PAWL_IDEM_IN_FLIGHT);
}

static void test_what_was_given_up_is_new(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    pawl_error error = PAWL_ERROR_INIT;
    bool changed = false;

    (void)state;
    assert_status(
        pawl__work_key_decide_release(&row, FIRST_TOKEN, &changed, &error), PAWL_NOT_FOUND, &error);
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    assert_status(pawl__work_key_decide_release(&row, FIRST_TOKEN + 1, &changed, &error),
                  PAWL_LEASE_LOST,
                  &error);
    assert_ok(pawl__work_key_decide_release(&row, FIRST_TOKEN, &changed, &error), &error);
    assert_true(changed);
    assert_ok(pawl__work_key_decide_release(&row, FIRST_TOKEN, &changed, &error), &error);
    assert_false(changed);
    assert_int_equal(ends(&row, 1, FIRST_TOKEN, WORK_KEY_COMPLETED, "7", &changed),
                     PAWL_LEASE_LOST);
    assert_int_equal(begins(&row, 1, "other", false), PAWL_IDEM_NEW);
    assert_int_equal(row.owner_token, FIRST_TOKEN + 1);
    assert_int_equal(ends(&row, 2, FIRST_TOKEN + 1, WORK_KEY_COMPLETED, "7", &changed), PAWL_OK);
    assert_status(pawl__work_key_decide_release(&row, FIRST_TOKEN + 1, &changed, &error),
                  PAWL_LEASE_LOST,
                  &error);
}

static void test_a_key_of_foreign_sql_is_in_doubt(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1"),
                                .known = true,
                                .over_ns = INT64_MAX,
                                .request_hash = pawl_view_of("h") };
    bool changed = false;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_IN_DOUBT);
    assert_int_equal(ends(&row, 0, 0, WORK_KEY_COMPLETED, "7", &changed), PAWL_LEASE_LOST);
    assert_int_equal(begins(&row, 0, "h", true), PAWL_IDEM_NEW);
}

static void test_after_the_last_token_nothing_is_granted(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    struct work_key_begin wish = wish_of("h", true);
    struct work_now now = at(40);
    pawl_idem_answer answer = PAWL_IDEM_DONE;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_int_equal(begins(&row, 0, "h", false), PAWL_IDEM_NEW);
    row.owner_token = PAWL__LEASE_TOKEN_MAX;
    assert_status(
        pawl__work_key_decide_begin(&row, &wish, &now, &answer, &error), PAWL_FAILED, &error);
    assert_int_equal(answer, PAWL_IDEM_DONE);
}

static void test_times_beyond_the_clock_are_its_last_moment(void **state)
{
    struct work_key_row row = { .key = pawl_view_of("pay-1") };
    struct work_key_begin wish = wish_of("h", true);
    struct work_now now = at(40);
    pawl_idem_answer answer = PAWL_IDEM_DONE;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    wish.lease_ns = INT64_MAX;
    wish.ttl_us = INT64_MAX;
    assert_ok(pawl__work_key_decide_begin(&row, &wish, &now, &answer, &error), &error);
    assert_int_equal(row.deadline_ns, INT64_MAX);
    assert_int_equal(row.expires_at_us, PAWL__WALL_US_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_new_and_the_second_in_flight),
        cmocka_unit_test(test_another_request_is_a_conflict_in_every_state),
        cmocka_unit_test(test_a_lease_that_ran_out_is_in_doubt_until_somebody_decides),
        cmocka_unit_test(test_a_late_owner_may_end_what_nobody_took_over),
        cmocka_unit_test(test_an_end_is_terminal_and_repeatable),
        cmocka_unit_test(test_what_failed_for_good_can_be_taken_over),
        cmocka_unit_test(test_past_its_ttl_a_key_is_new_unless_its_owner_is_at_it),
        cmocka_unit_test(test_a_new_key_begins_above_every_key_that_was_removed),
        cmocka_unit_test(test_a_step_of_the_wall_takes_no_lease_away),
        cmocka_unit_test(test_what_was_given_up_is_new),
        cmocka_unit_test(test_a_key_of_foreign_sql_is_in_doubt),
        cmocka_unit_test(test_after_the_last_token_nothing_is_granted),
        cmocka_unit_test(test_times_beyond_the_clock_are_its_last_moment),
    };

    return cmocka_run_group_tests_name("work_idem_decide", tests, NULL, NULL);
}
