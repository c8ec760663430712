/* Structs that grow: those of a program that was compiled against an older header are smaller. */
#include "lib/check.h"

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "base/core/sized.h"

struct today {
    size_t size;
    int32_t first;
    int32_t second;
    int64_t added; /* a later version has it */
};

struct yesterday {
    size_t size;
    int32_t first;
    int32_t second;
};

static const struct today defaults = { sizeof(defaults), 1, 2, 7 };

static void test_an_old_struct_gets_the_defaults_of_what_it_lacks(void **state)
{
    const struct yesterday given = { sizeof(given), 10, 20 };
    struct today taken = defaults;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__take_sized("it", &given, &taken, sizeof(taken), &error), &error);
    assert_int_equal(taken.size, sizeof(taken));
    assert_int_equal(taken.second, 20);
    assert_int_equal(taken.added, 7);
}

static void test_a_size_that_is_missing_or_too_great_is_refused(void **state)
{
    struct today given = defaults;
    struct today taken = defaults;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    given.size = 0;
    assert_detail(pawl__take_sized("it", &given, &taken, sizeof(taken), &error),
                  PAWL_DETAIL_STRUCT_SIZE,
                  &error);
    assert_message(&error, "it: size is 0");
    assert_detail(pawl__check_sized("it", &given, &error), PAWL_DETAIL_STRUCT_SIZE, &error);
    assert_int_equal(pawl__check_sized("it", NULL, &error), PAWL_OK);
    given.size = sizeof(given) + 1;
    assert_detail(pawl__take_sized("it", &given, &taken, sizeof(taken), &error),
                  PAWL_DETAIL_STRUCT_SIZE,
                  &error);
}

static void test_a_size_that_no_version_has_is_refused(void **state)
{
    struct today given = defaults;
    struct today taken = defaults;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (given.size = 1; given.size < sizeof(given); given.size++) {
        if (given.size % sizeof(size_t) == 0) {
            continue; /* the others would end in the middle of a pointer */
        }
        assert_detail(pawl__take_sized("it", &given, &taken, sizeof(taken), &error),
                      PAWL_DETAIL_STRUCT_SIZE,
                      &error);
        assert_detail(pawl__check_sized("it", &given, &error), PAWL_DETAIL_STRUCT_SIZE, &error);
    }
}

static void test_an_array_is_stepped_through_by_the_callers_size(void **state)
{
    const struct yesterday given[] = { { sizeof(given[0]), 1, 2 }, { sizeof(given[0]), 3, 4 } };
    struct today taken[2];
    struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__take_sized_array("it", given, 2, &defaults, taken, sizeof(taken[0]), &error),
              &error);
    assert_int_equal(taken[1].first, 3);
    assert_int_equal(taken[1].added, 7);
    const void *array = given;
    assert_ok(pawl__widen_sized("it", &array, 2, &defaults, sizeof(defaults), &arena, &error),
              &error);
    assert_int_equal(((const struct today *)array)[1].second, 4);
    const void *same = taken;
    assert_ok(pawl__widen_sized("it", &same, 2, &defaults, sizeof(defaults), &arena, &error),
              &error);
    assert_ptr_equal(same, taken); /* nothing to widen */
    taken[1].size = sizeof(struct yesterday);
    assert_detail(pawl__widen_sized("it", &same, 2, &defaults, sizeof(defaults), &arena, &error),
                  PAWL_DETAIL_STRUCT_SIZE,
                  &error);
    assert_int_equal(error.index, 1);
    pawl__arena_done(&arena);
}

static void test_no_more_is_filled_in_than_there_is_room_for(void **state)
{
    const struct today made[] = { { sizeof(made[0]), 1, 2, 3 }, { sizeof(made[0]), 4, 5, 6 } };
    struct {
        struct yesterday two[2];
        int64_t after;
    } ret = { { { .size = sizeof(struct yesterday) } }, -1 };
    struct {
        struct today known;
        int64_t beyond;
    } newer = { { .size = sizeof(newer) }, -1 };

    (void)state;
    pawl__give_sized_array(made, 2, sizeof(made[0]), ret.two);
    assert_int_equal(ret.two[1].size, sizeof(struct yesterday));
    assert_int_equal(ret.two[1].second, 5);
    assert_int_equal(ret.after, -1);
    pawl__give_sized(&made[1], sizeof(made[1]), &newer);
    assert_int_equal(newer.known.added, 6);
    assert_int_equal(newer.known.size, sizeof(struct today)); /* so much was filled in */
    assert_int_equal(newer.beyond, -1);
    pawl__give_sized(&made[0], sizeof(made[0]), NULL);
    pawl__give_sized_array(made, 2, sizeof(made[0]), NULL);
}

/* The event of a header that ended with created_at_us. */
struct old_event {
    size_t size;
    uint64_t offset;
    pawl_view id;
    pawl_view run_id;
    int64_t turn;
    pawl_view kind;
    pawl_view actor;
    pawl_view payload;
    int64_t created_at_us;
};

static void test_a_program_with_smaller_structs_still_appends(void **state)
{
    struct old_event events[2];
    struct {
        size_t size;
        uint64_t offset;
    } results[2] = { { .size = sizeof(results[0]) } };
    static const char *const ids[] = { "a", "b" };
    pawl_ledger *ledger = NULL;
    pawl_event *stored = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    _Static_assert(sizeof(struct old_event) == offsetof(pawl_event, schema_version), "a prefix");
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        events[i] = (struct old_event){ .size = sizeof(events[i]),
                                        .id = pawl_view_of(ids[i]),
                                        .run_id = pawl_view_of("r"),
                                        .kind = pawl_view_of("k"),
                                        .actor = pawl_view_of("a"),
                                        .payload = pawl_view_of("1") };
    }
    assert_ok(pawl_ledger_open("memory:", NULL, &ledger, &error), &error);
    assert_ok(pawl_ledger_append_many(
                  ledger, (const pawl_event *)events, 2, (pawl_append_result *)results, &error),
              &error);
    assert_int_equal(results[1].offset, 2);
    assert_ok(pawl_ledger_get(ledger, pawl_view_of("b"), 0, &stored, &error), &error);
    assert_int_equal(stored->size, sizeof(*stored));
    assert_int_equal(stored->schema_version, 1);
    assert_ptr_equal(PAWL_AT(pawl_event, stored, 0), stored);
    pawl_event_free(stored);
    assert_int_equal(pawl_ledger_close(ledger, 0, &error), PAWL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_old_struct_gets_the_defaults_of_what_it_lacks),
        cmocka_unit_test(test_a_size_that_is_missing_or_too_great_is_refused),
        cmocka_unit_test(test_a_size_that_no_version_has_is_refused),
        cmocka_unit_test(test_an_array_is_stepped_through_by_the_callers_size),
        cmocka_unit_test(test_no_more_is_filled_in_than_there_is_room_for),
        cmocka_unit_test(test_a_program_with_smaller_structs_still_appends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
