/* What the HTTP server decides without a socket: addresses, routes, problems. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/route.h"

static void nothing(struct pawl__http_request *request, void *context)
{
    (void)request;
    (void)context;
}

static const char *const paging[] = { "from", "limit", NULL };
static const struct pawl__http_route table[] = {
    { .method = PAWL__HTTP_GET, .pattern = "/", .handle = nothing },
    { .method = PAWL__HTTP_GET, .pattern = "/apps/{app}", .handle = nothing },
    { .method = PAWL__HTTP_PUT, .pattern = "/apps/{app}", .handle = nothing, .takes_json = true },
    { .method = PAWL__HTTP_GET,
      .pattern = "/apps/{app}/records/{id}",
      .handle = nothing,
      .parameters = paging },
};
static const struct pawl__http_routes routes = { table, COUNT_OF(table) };

static struct pawl__http_url parsed(const char *target)
{
    struct pawl__http_url url = { .text = NULL };
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__http_url_parse(target, &url, &error), &error);
    return url;
}

static void assert_view(pawl_view view, const char *text)
{
    assert_int_equal(view.len, strlen(text));
    assert_memory_equal(view.data, text, view.len);
}

static void test_an_address_is_split_before_it_is_decoded(void **state)
{
    struct pawl__http_url url = parsed("/a%2Fb/%c3%A4/?x=1+2&y=%26%3d&z");

    (void)state;
    assert_int_equal(url.part_count, 3);
    assert_view(url.parts[0], "a/b");
    assert_view(url.parts[1], "\xc3\xa4");
    assert_view(url.parts[2], "");
    assert_int_equal(url.query_count, 3);
    assert_view(*pawl__http_url_query(&url, "x"), "1 2");
    assert_view(*pawl__http_url_query(&url, "y"), "&=");
    assert_view(*pawl__http_url_query(&url, "z"), "");
    assert_null(pawl__http_url_query(&url, "w"));
    pawl__http_url_done(&url);
}

static void test_a_proxys_address_is_its_path(void **state)
{
    struct pawl__http_url url = parsed("HTTP://elsewhere:80/a?b=c");

    (void)state;
    assert_int_equal(url.part_count, 1);
    assert_view(url.parts[0], "a");
    assert_view(*pawl__http_url_query(&url, "b"), "c");
    pawl__http_url_done(&url);
    url = parsed("http://elsewhere");
    assert_view(url.parts[0], "");
    pawl__http_url_done(&url);
}

static void test_bad_addresses_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *target;
        const char *says;
    } bad[] = {
        { "", "begin" },
        { "*", "begin" },
        { "x", "begin" },
        { "/%", "two hexadecimal" },
        { "/%4", "two hexadecimal" },
        { "/%4g", "two hexadecimal" },
        { "/%00", "%00" },
        { "/a?b=%00", "%00" },
        { "/%ff", "UTF-8" },
        { "/%ed%a0%80", "UTF-8" },
        { "/\xc3", "UTF-8" },
        { "/a?%ff=1", "UTF-8" },
        { "/a?b=1&b=2", "more than once" },
        { "/a?b=1&%62=2", "more than once" },
        { "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "16 parts" },
        { "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q", "16 parameters" },
    };
    struct pawl__http_url url = { .text = NULL };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl__http_url_parse(bad[i].target, &url, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i].says);
        assert_null(url.text); /* a failed call leaves its outputs alone */
    }
}

static enum pawl__http_found find(const char *method, const char *target, size_t *ret_index)
{
    struct pawl__http_url url = parsed(target);
    enum pawl__http_found found = pawl__http_find_route(&routes, method, &url, ret_index);

    pawl__http_url_done(&url);
    return found;
}

static void test_a_route_has_method_and_pattern(void **state)
{
    size_t index = 99;

    (void)state;
    assert_int_equal(find("GET", "/", &index), HTTP_FOUND);
    assert_int_equal(index, 0);
    assert_int_equal(find("GET", "/apps/x", &index), HTTP_FOUND);
    assert_int_equal(index, 1);
    assert_int_equal(find("PUT", "/apps/x", &index), HTTP_FOUND);
    assert_int_equal(index, 2);
    assert_int_equal(find("HEAD", "/%61pps/x/records/5", &index), HTTP_FOUND);
    assert_int_equal(index, 3);
    assert_int_equal(find("POST", "/apps/x", &index), HTTP_NO_METHOD);
    assert_int_equal(find("get", "/apps/x", &index), HTTP_NO_METHOD);
    assert_int_equal(find("HEAD", "/apps", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "/apps/", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "/apps/x/", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "//apps/x", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "/apps/x/records", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "/apps/x/records/5/6", &index), HTTP_NO_PATH);
    assert_int_equal(find("GET", "/apps%2Fx", &index), HTTP_NO_PATH);
    assert_int_equal(index, 3);
}

static void test_parts_have_names(void **state)
{
    struct pawl__http_url url = parsed("/apps/or%64ers/records/5");

    (void)state;
    assert_view(pawl__http_part_of(table[3].pattern, &url, "app"), "orders");
    assert_view(pawl__http_part_of(table[3].pattern, &url, "id"), "5");
    pawl__http_url_done(&url);
}

static void test_what_is_allowed_is_listed(void **state)
{
    char text[64] = "";
    struct pawl__buf list = BUF_OVER(text);
    struct pawl__http_url url = parsed("/apps/x");

    (void)state;
    pawl__http_add_allowed(&routes, &url, &list);
    assert_string_equal(text, "GET, HEAD, PUT");
    pawl__http_url_done(&url);
}

static void test_an_unknown_parameter_is_named(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__http_url url = parsed("/apps/x/records/5?from=1&limt=2");

    (void)state;
    assert_status(pawl__http_check_query(&table[3], &url, &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "the parameter 'limt' is unknown; known: from, limit");
    assert_status(pawl__http_check_query(&table[1], &url, &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "the parameter 'from' is unknown: none is known here");
    pawl__http_url_done(&url);
}

static void test_numbers_are_digits_in_a_range(void **state)
{
    static const char *const bad[] = { "",   "-1",  "+1",  " 1",
                                       "1 ", "0x1", "1e2", "18446744073709551616",
                                       "0",  "11",  "1.0", "99999999999999999999999999" };
    const uint64_t range[2] = { 1, 10 };
    const uint64_t all[2] = { 0, UINT64_MAX };
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t number = 42;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl__http_number("limit", pawl_view_of(bad[i]), range, &number, &error),
                      PAWL_INVALID,
                      &error);
        assert_string_equal(error.message, "'limit' is not a whole number from 1 to 10");
        assert_int_equal(number, 42);
    }
    assert_ok(pawl__http_number("limit", pawl_view_of("010"), range, &number, &error), &error);
    assert_int_equal(number, 10);
    assert_ok(pawl__http_number("n", pawl_view_of("18446744073709551615"), all, &number, &error),
              &error);
    assert_true(number == UINT64_MAX);
}

static void test_addresses_to_listen_on(void **state)
{
    static const char *const bad[] = { "",
                                       "8470",
                                       ":8470",
                                       "127.0.0.1",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:x",
                                       "[::1]",
                                       "::1:80",
                                       "[127.0.0.1]:80",
                                       "example.org:80",
                                       "[]:80" };
    struct pawl__http_address address = { .port = 1 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl__http_address_parse(bad[i], &address, &error), PAWL_INVALID, &error);
        assert_message(&error, "127.0.0.1:8470");
        assert_int_equal(address.port, 1);
    }
    assert_ok(pawl__http_address_parse("localhost:80", &address, &error), &error);
    assert_true(address.loopback);
    assert_ok(pawl__http_address_parse("127.9.9.9:80", &address, &error), &error);
    assert_true(address.loopback);
    assert_ok(pawl__http_address_parse("[::1]:0", &address, &error), &error);
    assert_true(address.loopback);
    assert_ok(pawl__http_address_parse("[::]:80", &address, &error), &error);
    assert_false(address.loopback);
    assert_ok(pawl__http_address_parse("0.0.0.0:80", &address, &error), &error);
    assert_false(address.loopback);
}

static void test_every_status_has_a_problem(void **state)
{
    (void)state;
    for (int status = PAWL_FAILED; status <= PAWL_CLOSED; status++) {
        const struct pawl__http_problem *problem = pawl__http_problem_of((pawl_status)status);

        assert_string_equal(problem->code, pawl_status_name((pawl_status)status));
        assert_in_range(problem->http, 400, 599);
        /* Whatever is the server's fault tells the client nothing of its inside. */
        assert_true(problem->http < 500 || problem->inner);
    }
    assert_int_equal(pawl__http_problem_of(PAWL_INVALID)->http, 400);
    assert_int_equal(pawl__http_problem_of(PAWL_NOT_FOUND)->http, 404);
    assert_int_equal(pawl__http_problem_of(PAWL_CONFLICT)->http, 409);
    assert_int_equal(pawl__http_problem_of(PAWL_BUSY)->http, 503);
    assert_int_equal(pawl__http_problem_of((pawl_status)999)->http, 500);
    assert_int_equal(pawl__http_problem_of(PAWL_OK)->http, 500);
}

static void assert_problem(pawl_status status, const char *detail, const char *expected)
{
    struct pawl__buf text = BUF_INIT(4096);

    pawl__http_problem_write(pawl__http_problem_of(status), detail, NULL, &text);
    assert_view(pawl__buf_view(&text), expected);
    pawl__buf_done(&text);
}

static void test_a_problem_is_json_and_leaks_nothing(void **state)
{
    (void)state;
    assert_problem(PAWL_CONFLICT,
                   "a \"b\"\n\xff",
                   "{\"type\":\"urn:pawl:problem:CONFLICT\",\"title\":\"conflicts with what is "
                   "stored\",\"status\":409,\"detail\":\"a \\\"b\\\"\\n\xef\xbf\xbd\",\"code\":"
                   "\"CONFLICT\"}\n");
    assert_problem(PAWL_IO,
                   "write '/var/lib/pawl/apps/x': SELECT",
                   "{\"type\":\"urn:pawl:problem:IO\",\"title\":\"input or output failed\","
                   "\"status\":500,\"detail\":\"input or output failed\",\"code\":\"IO\"}\n");
    assert_problem(
        PAWL_BUSY,
        "/secret",
        "{\"type\":\"urn:pawl:problem:BUSY\",\"title\":\"server is busy\",\"status\":503,"
        "\"detail\":\"server is busy\",\"code\":\"BUSY\"}\n");
}

static void test_a_problem_says_what_exactly_and_where(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__buf text = BUF_INIT(4096);

    (void)state;
    pawl__mark_index(
        &error, 3, pawl__fail_detail(&error, PAWL_CONFLICT, PAWL_DETAIL_ID_TAKEN, "taken"));
    pawl__http_problem_write(pawl__http_problem_of_error(&error), error.message, &error, &text);
    assert_view(pawl__buf_view(&text),
                "{\"type\":\"urn:pawl:problem:CONFLICT\",\"title\":\"conflicts with what is "
                "stored\",\"status\":409,\"detail\":\"taken\",\"code\":\"CONFLICT\",\"reason\":"
                "\"ID_TAKEN\",\"index\":3}\n");
    pawl__buf_done(&text);
    (void)pawl__fail_detail(&error, PAWL_FAILED, PAWL_DETAIL_EXHAUSTED, "used");
    assert_int_equal(pawl__http_problem_of_error(&error)->http, 409);
    assert_string_equal(pawl__http_problem_of_error(&error)->code, "EXHAUSTED");
    (void)pawl__fail_detail(&error, PAWL_INVALID, PAWL_DETAIL_UNKNOWN_KIND, "cafe");
    assert_int_equal(pawl__http_problem_of_error(&error)->http, 400);
    (void)pawl__fail_detail(&error, PAWL_INVALID, PAWL_DETAIL_WRONG_THREAD, "inside");
    assert_int_equal(pawl__http_problem_of_error(&error)->http, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_is_split_before_it_is_decoded),
        cmocka_unit_test(test_a_proxys_address_is_its_path),
        cmocka_unit_test(test_bad_addresses_are_refused_with_a_reason),
        cmocka_unit_test(test_a_route_has_method_and_pattern),
        cmocka_unit_test(test_parts_have_names),
        cmocka_unit_test(test_what_is_allowed_is_listed),
        cmocka_unit_test(test_an_unknown_parameter_is_named),
        cmocka_unit_test(test_numbers_are_digits_in_a_range),
        cmocka_unit_test(test_addresses_to_listen_on),
        cmocka_unit_test(test_every_status_has_a_problem),
        cmocka_unit_test(test_a_problem_is_json_and_leaks_nothing),
        cmocka_unit_test(test_a_problem_says_what_exactly_and_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
