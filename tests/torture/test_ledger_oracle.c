/* The judge of tortured ledgers: it has to see every kind of wrong. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "torture/ledger/oracle.h"
#include "torture/ledger/plan.h"

/* A call that appends a batch. */
static uint64_t find_batch(uint64_t from)
{
    while (ledger_call_of(from, 1).kind != CALL_APPEND || ledger_call_of(from, 1).count < 3) {
        from++;
    }
    return from;
}

static struct ledger_oracle *asked(uint64_t calls)
{
    struct ledger_oracle *oracle = ledger_oracle_new();

    ledger_oracle_ask(oracle, calls);
    return oracle;
}

static void see_all(struct ledger_oracle *oracle, uint64_t call, uint64_t offset)
{
    for (uint32_t place = 0; place < ledger_call_of(call, 1).count; place++) {
        ledger_oracle_see(oracle, call, place, offset + place);
    }
}

static void assert_finding(struct ledger_oracle *oracle,
                           uint64_t lost,
                           uint64_t duplicated,
                           uint64_t invented,
                           uint64_t torn)
{
    struct ledger_finding finding = ledger_oracle_compare(oracle);

    assert_int_equal(finding.lost, lost);
    assert_int_equal(finding.duplicated, duplicated);
    assert_int_equal(finding.invented, invented);
    assert_int_equal(finding.torn, torn);
}

static void test_what_is_as_it_was_acknowledged_is_fine(void **state)
{
    struct ledger_oracle *oracle = asked(100);
    uint64_t call = find_batch(1);

    (void)state;
    assert_true(ledger_oracle_acknowledge(oracle, call, 0, 7));
    see_all(oracle, call, 7);
    see_all(oracle, find_batch(call + 1), 50); /* under way: whole is as good as not at all */
    assert_finding(oracle, 0, 0, 0, 0);
    ledger_oracle_ask(oracle, 10);
    see_all(oracle, call, 7);
    see_all(oracle, find_batch(call + 1), 50);
    assert_finding(oracle, 0, 0, 0, 0);
    ledger_oracle_free(oracle);
}

static void test_a_missing_or_moved_event_is_lost(void **state)
{
    struct ledger_oracle *oracle = asked(100);
    uint64_t call = find_batch(1);

    (void)state;
    assert_true(ledger_oracle_acknowledge(oracle, call, 0, 7));
    assert_true(ledger_oracle_acknowledge(oracle, call, CALL_COMMITTED, 1));
    assert_finding(oracle, 2, 0, 0, 0);
    ledger_oracle_ask(oracle, 10);
    assert_finding(oracle, 0, 0, 0, 0); /* a loss is found once */

    uint64_t other = find_batch(120);
    ledger_oracle_ask(oracle, 100);
    assert_true(ledger_oracle_acknowledge(oracle, other, 0, 7));
    see_all(oracle, other, 8);
    assert_finding(oracle, 1, 0, 0, 0);
    ledger_oracle_free(oracle);
}

static void test_an_event_at_two_offsets_is_there_twice(void **state)
{
    struct ledger_oracle *oracle = asked(100);
    uint64_t call = find_batch(1);
    uint64_t other = find_batch(call + 1);

    (void)state;
    see_all(oracle, call, 7);
    ledger_oracle_see(oracle, call, 1, 99);
    assert_true(ledger_oracle_acknowledge(oracle, other, 0, 50));
    assert_true(ledger_oracle_acknowledge(oracle, other, 0, 51)); /* two answers for one event */
    see_all(oracle, other, 51);
    assert_finding(oracle, 0, 2, 0, 0);
    ledger_oracle_free(oracle);
}

static void test_what_nobody_wrote_is_invented(void **state)
{
    struct ledger_oracle *oracle = asked(100);
    uint64_t call = find_batch(1);

    (void)state;
    ledger_oracle_see(oracle, 1000, 0, 3); /* nobody was asked for it */
    assert_finding(oracle, 0, 0, 1, 0);
    ledger_oracle_ask(oracle, 10);
    ledger_oracle_see(oracle, call, 0, 4); /* was not there when its writer was dead */
    assert_finding(oracle, 0, 0, 1, 0);
    ledger_oracle_free(oracle);
}

static void test_half_an_append_is_torn(void **state)
{
    struct ledger_oracle *oracle = asked(100);

    (void)state;
    ledger_oracle_see(oracle, find_batch(1), 1, 3);
    assert_finding(oracle, 0, 0, 0, 1);
    ledger_oracle_free(oracle);
}

static void test_an_anchor_that_goes_back_is_a_loss(void **state)
{
    struct ledger_oracle *oracle = asked(100);

    (void)state;
    ledger_oracle_see_anchor(oracle, 30);
    ledger_oracle_see_anchor(oracle, 30);
    assert_finding(oracle, 0, 0, 0, 0);
    ledger_oracle_see_anchor(oracle, 29);
    assert_finding(oracle, 1, 0, 0, 0);
    ledger_oracle_free(oracle);
}

static void test_an_answer_to_what_nobody_asked_is_refused(void **state)
{
    struct ledger_oracle *oracle = asked(100);

    (void)state;
    assert_false(ledger_oracle_acknowledge(oracle, 101, 0, 1));
    assert_false(ledger_oracle_acknowledge(oracle, 0, 0, 1));
    assert_false(ledger_oracle_acknowledge(oracle, 5, CALL_PLACES, 1));
    assert_false(ledger_oracle_acknowledge(oracle, 5, 0, 0));
    ledger_oracle_free(oracle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_as_it_was_acknowledged_is_fine),
        cmocka_unit_test(test_a_missing_or_moved_event_is_lost),
        cmocka_unit_test(test_an_event_at_two_offsets_is_there_twice),
        cmocka_unit_test(test_what_nobody_wrote_is_invented),
        cmocka_unit_test(test_half_an_append_is_torn),
        cmocka_unit_test(test_an_anchor_that_goes_back_is_a_loss),
        cmocka_unit_test(test_an_answer_to_what_nobody_asked_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
