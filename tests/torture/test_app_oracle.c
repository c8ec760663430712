/* The judge of applications: it finds what is lost, doubled and invented. */
#include "lib/check.h"

#include "torture/app/oracle.h"

static int setup(void **state)
{
    *state = app_oracle_new();
    return 0;
}

static int teardown(void **state)
{
    app_oracle_free(*state);
    return 0;
}

static void expect(struct app_oracle *oracle,
                   uint64_t acknowledged,
                   uint64_t lost,
                   uint64_t duplicated,
                   uint64_t invented)
{
    struct app_finding found = app_oracle_compare(oracle);

    assert_int_equal(found.acknowledged, acknowledged);
    assert_int_equal(found.lost, lost);
    assert_int_equal(found.duplicated, duplicated);
    assert_int_equal(found.invented, invented);
}

static void test_what_was_acknowledged_must_be_there_at_its_place(void **state)
{
    struct app_oracle *oracle = *state;

    assert_int_equal(app_oracle_ask(oracle, 10), 1);
    assert_true(app_oracle_acknowledge(oracle, "1 7 1 1 5"));
    assert_true(app_oracle_acknowledge(oracle, "2 7 2 2 6"));
    app_oracle_see(oracle, "1 7 1 1 5");
    app_oracle_see(oracle, "2 7 2 2 9"); /* another id */
    app_oracle_see(oracle, "3 7 3 3 7"); /* it may be there */
    expect(oracle, 2, 1, 0, 0);
    app_oracle_see(oracle, "1 7 1 1 5");
    app_oracle_see(oracle, "2 7 2 2 9");
    expect(oracle, 3, 1, 0, 0); /* the third must be from now on */
}

static void test_twice_is_found(void **state)
{
    struct app_oracle *oracle = *state;

    app_oracle_ask(oracle, 10);
    assert_true(app_oracle_acknowledge(oracle, "1 7 1 1 5"));
    app_oracle_see(oracle, "1 7 1 1 5");
    app_oracle_see(oracle, "1 7 2 2 6");
    expect(oracle, 1, 1, 1, 0);
    app_oracle_ask(oracle, 10);
    assert_true(app_oracle_acknowledge(oracle, "12 7 3 3 7"));
    assert_true(app_oracle_acknowledge(oracle, "12 7 4 4 8")); /* the key did not hold */
    app_oracle_see(oracle, "1 7 2 2 6");
    app_oracle_see(oracle, "12 7 4 4 8");
    expect(oracle, 2, 0, 1, 0);
}

static void test_what_nobody_asked_for_is_invented(void **state)
{
    struct app_oracle *oracle = *state;

    app_oracle_ask(oracle, 10);
    assert_false(app_oracle_acknowledge(oracle, "11 7 1 1 5"));
    assert_false(app_oracle_acknowledge(oracle, "junk"));
    app_oracle_see(oracle, "11 7 1 1 5");
    expect(oracle, 0, 0, 0, 1);
}

static void test_what_was_gone_stays_gone_and_what_was_there_stays_in_its_place(void **state)
{
    struct app_oracle *oracle = *state;

    app_oracle_ask(oracle, 10);
    app_oracle_see(oracle, "5 7 1 1 5");
    expect(oracle, 0, 0, 0, 0);
    assert_int_equal(app_oracle_ask(oracle, 10), 11);
    assert_true(app_oracle_acknowledge(oracle, "5 7 1 1 5")); /* asked again by its key */
    assert_false(app_oracle_acknowledge(oracle, "6 7 2 2 6"));
    app_oracle_see(oracle, "5 7 1 1 5");
    app_oracle_see(oracle, "7 7 2 2 6");
    expect(oracle, 1, 0, 0, 1);
    app_oracle_ask(oracle, 10);
    assert_true(app_oracle_acknowledge(oracle, "5 7 3 3 7")); /* the key did not hold */
    app_oracle_see(oracle, "5 7 1 1 5");
    app_oracle_see(oracle, "5 7 3 3 7");
    app_oracle_see(oracle, "7 7 2 2 6");
    expect(oracle, 2, 0, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_was_acknowledged_must_be_there_at_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twice_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_nobody_asked_for_is_invented, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_what_was_gone_stays_gone_and_what_was_there_stays_in_its_place, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
