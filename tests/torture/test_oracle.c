/* The judge of the torture tests is itself seen to find each kind of mistake. */
#include "lib/check.h"

#include "torture/oracle.h"

static uint64_t acknowledge_batches(struct oracle *oracle, int count)
{
    uint64_t last = 0;

    for (int i = 0; i < count; i++) {
        last = oracle->next + batch_len(oracle->next) - 1;
        assert_true(oracle_acknowledge(oracle, last));
    }
    return last;
}

static void see_range(struct oracle *oracle, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last; n++) {
        oracle_see(oracle, n);
    }
}

static void assert_clean(struct oracle_finding finding)
{
    assert_int_equal(finding.lost, 0);
    assert_int_equal(finding.duplicated, 0);
    assert_int_equal(finding.invented, 0);
    assert_false(finding.torn);
}

static void test_what_was_acknowledged_and_is_there_is_fine(void **state)
{
    struct oracle oracle;

    (void)state;
    oracle_init(&oracle);
    uint64_t last = acknowledge_batches(&oracle, 500);
    see_range(&oracle, 1, last);
    struct oracle_finding finding = oracle_compare(&oracle);
    assert_clean(finding);
    assert_int_equal(finding.acknowledged, last);
    oracle_done(&oracle);
}

static void test_a_missing_number_is_lost_once(void **state)
{
    struct oracle oracle;

    (void)state;
    oracle_init(&oracle);
    uint64_t last = acknowledge_batches(&oracle, 10);
    see_range(&oracle, 1, 4);
    see_range(&oracle, 6, last);
    struct oracle_finding finding = oracle_compare(&oracle);
    assert_int_equal(finding.lost, 1);
    assert_int_equal(finding.first_lost, 5);
    see_range(&oracle, 1, 4);
    see_range(&oracle, 6, last);
    assert_clean(oracle_compare(&oracle));
    oracle_done(&oracle);
}

static void test_a_number_seen_twice_is_duplicated(void **state)
{
    struct oracle oracle;

    (void)state;
    oracle_init(&oracle);
    uint64_t last = acknowledge_batches(&oracle, 10);
    see_range(&oracle, 1, last);
    oracle_see(&oracle, 3);
    assert_int_equal(oracle_compare(&oracle).duplicated, 1);
    oracle_done(&oracle);
}

static void test_the_batch_under_way_may_be_there_whole_or_not_at_all(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct oracle oracle;
        oracle_init(&oracle);
        uint64_t last = acknowledge_batches(&oracle, 10);
        uint64_t end = last + (whole ? batch_len(last + 1) : 0);
        see_range(&oracle, 1, end);
        struct oracle_finding finding = oracle_compare(&oracle);
        assert_clean(finding);
        assert_int_equal(finding.acknowledged, end); /* seen once, it has to stay */
        assert_int_equal(oracle.next, last + 1 + batch_len(last + 1));
        see_range(&oracle, 1, last);
        assert_int_equal(oracle_compare(&oracle).lost, end - last);
        oracle_done(&oracle);
    }
}

static void test_half_a_batch_is_torn(void **state)
{
    struct oracle oracle;
    uint64_t last = 0;

    (void)state;
    oracle_init(&oracle);
    do {
        last = acknowledge_batches(&oracle, 1);
    } while (batch_len(oracle.next) < 2);
    see_range(&oracle, 1, last + 1);
    assert_true(oracle_compare(&oracle).torn);
    oracle_done(&oracle);
}

static void test_what_nobody_wrote_is_invented(void **state)
{
    struct oracle oracle;

    (void)state;
    oracle_init(&oracle);
    uint64_t last = acknowledge_batches(&oracle, 3);
    see_range(&oracle, 1, last);
    oracle_see(&oracle, last + 1 + BATCH_LEN_MAX); /* behind the batch under way */
    oracle_see(&oracle, UINT64_MAX);
    oracle_see(&oracle, 0);
    assert_int_equal(oracle_compare(&oracle).invented, 3);

    see_range(&oracle, 1, last + 1); /* and what came back from the dead */
    assert_int_equal(oracle_compare(&oracle).invented, 1);
    oracle_done(&oracle);
}

static void test_an_acknowledgement_out_of_order_is_refused(void **state)
{
    struct oracle oracle;

    (void)state;
    oracle_init(&oracle);
    assert_false(oracle_acknowledge(&oracle, 99));
    assert_int_equal(oracle.next, 1);
    oracle_done(&oracle);
}

static void test_records_differ_in_text_and_length(void **state)
{
    char one[RECORD_BYTES_MAX];
    char two[RECORD_BYTES_MAX];

    (void)state;
    for (uint64_t n = 1; n < 2000; n++) {
        size_t len = record_text(n, one);
        assert_int_equal(strlen(one), len);
        record_text(n + 1, two);
        assert_string_not_equal(one, two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_acknowledged_and_is_there_is_fine),
        cmocka_unit_test(test_a_missing_number_is_lost_once),
        cmocka_unit_test(test_a_number_seen_twice_is_duplicated),
        cmocka_unit_test(test_the_batch_under_way_may_be_there_whole_or_not_at_all),
        cmocka_unit_test(test_half_a_batch_is_torn),
        cmocka_unit_test(test_what_nobody_wrote_is_invented),
        cmocka_unit_test(test_an_acknowledgement_out_of_order_is_refused),
        cmocka_unit_test(test_records_differ_in_text_and_length),
    };

    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
