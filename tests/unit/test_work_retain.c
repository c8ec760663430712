#include "lib/check.h"

#include "work/core/retain.h"

/* One letter a checkpoint, newest first: its type, in capitals when it is verified. The answer has a
 * dot where one may go. */
static void assert_kept(uint64_t keep_last, const char *given, const char *expected)
{
    struct work_retain retain = { .keep_last = keep_last };
    char kept[64];
    size_t i = 0;

    for (; given[i] != '\0'; i++) {
        bool verified = given[i] >= 'A' && given[i] <= 'Z';
        pawl_checkpoint_type type = (pawl_checkpoint_type)(given[i] - (verified ? 'A' : 'a'));
        kept[i] = '.';
        if (pawl__work_retain_keeps(&retain, type, verified)) {
            kept[i] = given[i];
        }
    }
    kept[i] = '\0';
    assert_string_equal(kept, expected);
}

static void test_the_last_ones_stay(void **state)
{
    (void)state;
    assert_kept(3, "AAAAAA", "AAA...");
    assert_kept(100, "AAAAAA", "AAAAAA");
    assert_kept(0, "AAA", "A..");
    assert_kept(3, "", "");
}

static void test_the_newest_of_each_type_stays(void **state)
{
    (void)state;
    assert_kept(2, "AAABABHCH", "AA.B..HC.");
    assert_kept(1, "HGFEDCBA", "HGFEDCBA");
}

static void test_the_newest_verified_one_stays(void **state)
{
    (void)state;
    assert_kept(2, "aaaaAAaA", "aa..A...");
    assert_kept(2, "aaaabBaA", "aa..bB..");
    assert_kept(2, "aaaa", "aa..");
}

/* H is an error boundary: a task cannot go on from it. */
static void test_an_error_boundary_does_not_stand_for_the_verified_one(void **state)
{
    (void)state;
    assert_kept(2, "HHHaaaAA", "HH.a..A.");
    assert_kept(1, "HaHaA", "Ha..A");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_ones_stay),
        cmocka_unit_test(test_the_newest_of_each_type_stays),
        cmocka_unit_test(test_the_newest_verified_one_stays),
        cmocka_unit_test(test_an_error_boundary_does_not_stand_for_the_verified_one),
    };

    return cmocka_run_group_tests_name("work_retain", tests, NULL, NULL);
}
