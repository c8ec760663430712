#include "lib/check.h"

#include <string.h>

#include "base/core/nearest.h"

static size_t distance(const char *a, const char *b, size_t max)
{
    return pawl__edit_distance(pawl_view_of(a), pawl_view_of(b), max);
}

static void test_each_kind_of_slip_is_one_edit(void **state)
{
    (void)state;
    assert_int_equal(distance("ledger", "ledger", 9), 0);
    assert_int_equal(distance("leger", "ledger", 9), 1);   /* left out */
    assert_int_equal(distance("leddger", "ledger", 9), 1); /* once too often */
    assert_int_equal(distance("lefger", "ledger", 9), 1);  /* the key beside it */
    assert_int_equal(distance("ldeger", "ledger", 9), 1);  /* swapped */
    assert_int_equal(distance("LEDGER", "ledger", 9), 0);
    assert_int_equal(distance("", "abc", 9), 3);
    assert_int_equal(distance("abc", "", 9), 3);
    assert_int_equal(distance("", "", 9), 0);
    assert_int_equal(distance("kitten", "sitting", 9), 3);
    assert_int_equal(distance("ca", "abc", 9), 3); /* a swapped pair is not edited again */
}

static void test_distance_stops_at_its_bound(void **state)
{
    char longest[PAWL__NEAREST_BYTES_MAX + 2];

    (void)state;
    assert_int_equal(distance("kitten", "sitting", 3), 3);
    assert_int_equal(distance("kitten", "sitting", 2), 3);
    assert_int_equal(distance("abcdef", "uvwxyz", 1), 2);
    memset(longest, 'x', sizeof(longest));
    longest[PAWL__NEAREST_BYTES_MAX] = '\0';
    assert_int_equal(distance(longest, longest, 5), 0);
    longest[PAWL__NEAREST_BYTES_MAX] = 'x';
    longest[PAWL__NEAREST_BYTES_MAX + 1] = '\0';
    assert_int_equal(distance(longest, longest, 5), 6);
}

static void assert_hint(const char *word, const char *expected)
{
    static const char *const names[] = { "ledger", "work",   "lease", "level", "format",
                                         "data",   "doctor", "dates", "date",  "delivery" };
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(256);
    struct pawl__nearest nearest = pawl__nearest_to(pawl_view_of(word));

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        pawl__nearest_offer(&nearest, names[i]);
    }
    pawl__nearest_add_hint(&nearest, &buf);
    pawl__buf_add_text(&buf, "");
    assert_string_equal(buf.data == NULL ? "" : buf.data, expected);
}

static void test_the_hint_names_the_nearest_first(void **state)
{
    (void)state;
    assert_hint("leger", "; did you mean 'ledger' or 'level'?");
    assert_hint("wrok", "; did you mean 'work'?");
    assert_hint("date", "; did you mean 'date', 'data' or 'dates'?");
    assert_hint("fo", "; did you mean 'format'?"); /* how a name begins */
    assert_hint("f", "");
    assert_hint("", "");
    assert_hint("entirely-different", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_of_slip_is_one_edit),
        cmocka_unit_test(test_distance_stops_at_its_bound),
        cmocka_unit_test(test_the_hint_names_the_nearest_first),
    };
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
