#include "lib/check.h"

#include "base/core/buf.h"
#include "work/checkpoints/diff.h"

struct seen {
    struct pawl__buf text;
    int left; /* how many calls until it says no; -1: never */
};

static bool note(void *context, const pawl_difference *difference)
{
    struct seen *seen = context;

    pawl__buf_add_format(&seen->text,
                         "%.*s: %.*s -> %.*s\n",
                         VIEW_ARGS(difference->path),
                         VIEW_ARGS(difference->from),
                         VIEW_ARGS(difference->to));
    return --seen->left != 0;
}

static void assert_diff(const char *from, const char *to, const char *expected)
{
    char room[1000];
    struct seen seen = { .text = BUF_OVER(room), .left = -1 };
    pawl_error error = PAWL_ERROR_INIT;

    room[0] = '\0';
    assert_ok(pawl__work_json_diff(pawl_view_of(from), pawl_view_of(to), note, &seen, &error),
              &error);
    assert_string_equal(room, expected);
}

static void test_equal_values_differ_nowhere(void **state)
{
    (void)state;
    assert_diff("{\"a\":[1,2,{\"b\":null}]}", " {\"a\" : [1.0, 2, {\"b\":null}]} ", "");
    assert_diff("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "");
    assert_diff("\"\\u0041\"", "\"A\"", "");
}

static void test_every_change_has_its_path(void **state)
{
    (void)state;
    assert_diff("{\"step\":1,\"gone\":true,\"same\":[]}",
                "{\"step\":2,\"same\":[],\"new\":{\"x\":null}}",
                "/step: 1 -> 2\n/gone: true -> \n/new:  -> {\"x\":null}\n");
    assert_diff("[1,2,3]", "[1,5]", "/1: 2 -> 5\n/2: 3 -> \n");
    assert_diff("[]", "[[1]]", "/0:  -> [1]\n");
    assert_diff("{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":2}]}", "/a/0/b: 1 -> 2\n");
    assert_diff("1", "\"1\"", ": 1 -> \"1\"\n");
    assert_diff("{\"a\":{}}", "{\"a\":[]}", "/a: {} -> []\n");
    assert_diff("{\"a\":null}", "{}", "/a: null -> \n");
}

static void test_keys_are_escaped(void **state)
{
    (void)state;
    assert_diff("{\"a/b\":1,\"m~n\":1,\"\":1}",
                "{\"a/b\":2,\"m~n\":2,\"\":2}",
                "/a~1b: 1 -> 2\n/m~0n: 1 -> 2\n/: 1 -> 2\n");
}

static void test_a_visitor_ends_the_walk(void **state)
{
    char room[1000];
    struct seen seen = { .text = BUF_OVER(room), .left = 2 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__work_json_diff(pawl_view_of("{\"a\":[1,2,3],\"b\":1}"),
                                   pawl_view_of("{\"a\":[4,5,6],\"b\":2,\"c\":0}"),
                                   note,
                                   &seen,
                                   &error),
              &error);
    assert_string_equal(room, "/a/0: 1 -> 4\n/a/1: 2 -> 5\n");
}

static void test_what_is_no_json_is_named(void **state)
{
    struct seen seen = { .left = -1 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_status(pawl__work_json_diff(pawl_view_of("{"), pawl_view_of("1"), note, &seen, &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "from: ");
    assert_status(pawl__work_json_diff(pawl_view_of("1"), pawl_view_of(""), note, &seen, &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "to: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_values_differ_nowhere),
        cmocka_unit_test(test_every_change_has_its_path),
        cmocka_unit_test(test_keys_are_escaped),
        cmocka_unit_test(test_a_visitor_ends_the_walk),
        cmocka_unit_test(test_what_is_no_json_is_named),
    };

    return cmocka_run_group_tests_name("work_diff", tests, NULL, NULL);
}
