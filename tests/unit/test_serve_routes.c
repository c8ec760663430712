/* What the declared routes have in common, and what a new one must not forget. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "server/node_internal.h"

typedef void check_fn(const struct pawl__serve_part *part, const struct pawl__serve_route *route);

static void each_route(check_fn *check)
{
    const struct pawl__serve_part *parts[NODE_PARTS_MAX];
    size_t count = pawl__serve_list_parts(NULL, parts);

    for (size_t i = 0; i < count; i++) {
        assert_true(parts[i]->route_count > 0);
        for (size_t r = 0; r < parts[i]->route_count; r++) {
            check(parts[i], &parts[i]->routes[r]);
        }
    }
}

static bool is_problem(pawl_view code)
{
    const struct pawl__http_problem *problem = NULL;

    for (size_t i = 0; (problem = pawl__http_problem_at(i)) != NULL; i++) {
        if (pawl__view_is(code, problem->code)) {
            return true;
        }
    }
    return false;
}

static void check_problems(const struct pawl__serve_part *part,
                           const struct pawl__serve_route *route)
{
    pawl_view rest = pawl_view_of(route->problems == NULL ? "" : route->problems);
    pawl_view code;

    (void)part;
    while (rest.len > 0 && pawl__view_split(&rest, ' ', &code)) {
        if (!is_problem(code)) {
            fail_msg("%s: '%.*s' is no problem", route->pattern, VIEW_ARGS(code));
        }
    }
}

static void test_declared_problems_are_known(void **state)
{
    (void)state;
    each_route(check_problems);
    assert_false(is_problem(pawl_view_of("NO_SUCH_PROBLEM")));
}

static void check_write(const struct pawl__serve_part *part, const struct pawl__serve_route *route)
{
    bool writes = route->method != PAWL__HTTP_GET;

    (void)part;
    if (writes && route->takes_key == (route->no_key != NULL)) {
        fail_msg("%s: a write takes an Idempotency-Key or says why not", route->pattern);
    }
    if (writes && route->method != PAWL__HTTP_DELETE && route->body == NULL) {
        fail_msg("%s: a write has a body, so that no other web page can send it", route->pattern);
    }
    if (!writes && (route->body != NULL || route->scope > PAWL__SCOPE_READ)
        && route->scope != PAWL__SCOPE_PUBLIC && route->scope != PAWL__SCOPE_ADMIN) {
        fail_msg("%s: a GET only reads", route->pattern);
    }
}

static void test_writes_say_how_they_are_repeated(void **state)
{
    (void)state;
    each_route(check_write);
}

static void check_answers(const struct pawl__serve_part *part,
                          const struct pawl__serve_route *route)
{
    (void)part;
    assert_true(route->answers[0].code >= 200 && route->answers[0].code < 300);
    assert_non_null(route->id);
    assert_non_null(route->summary);
    assert_int_not_equal(route->scope, PAWL__SCOPE_UNDECLARED);
    if (route->summary[strlen(route->summary) - 1] == '.') {
        fail_msg("%s: a summary is no sentence", route->pattern);
    }
}

static void test_every_route_has_an_answer_a_name_and_a_scope(void **state)
{
    (void)state;
    each_route(check_answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_problems_are_known),
        cmocka_unit_test(test_writes_say_how_they_are_repeated),
        cmocka_unit_test(test_every_route_has_an_answer_a_name_and_a_scope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
