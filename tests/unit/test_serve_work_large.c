/* Claims over HTTP whose answers are large: their own suite, because ThreadSanitizer needs minutes for 40 MB of JSON. */
#include "lib/node_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/macros.h"

static void make_task(struct node_fixture *f)
{
    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"t\",\"title\":\"T\"}", 201));
}

/* "PREFIX-0" and so on, `each` at a time, with an input of so many bytes. */
static void submit_many(
    struct node_fixture *f, const char *prefix, int count, int each, size_t bytes)
{
    char *input = calloc(1, bytes + 1);

    assert_non_null(input);
    memset(input, 'x', bytes);
    for (int i = 0; i < count; i += each) {
        AUTO(pawl__buf_done) struct pawl__buf items = BUF_INIT((size_t)64 << 20);

        for (int k = i; k < MIN(i + each, count); k++) {
            pawl__buf_add_format(&items,
                                 "%s{\"work_item_id\":\"%s-%d\",\"task_id\":\"t\","
                                 "\"work_type\":\"%s\",\"input_data\":\"%s\"}",
                                 k == i ? "{\"items\":[" : ",",
                                 prefix,
                                 k,
                                 prefix,
                                 input);
        }
        pawl__buf_add_text(&items, "]}");
        free(node_ask(f, "POST /v1/work/items", items.data, 201));
    }
    free(input);
}

/* How many items the answer has. */
static size_t claim_many(struct node_fixture *f, const char *body, size_t *ret_bytes)
{
    char *text = node_ask(f, "POST /v1/work/claims", body, 200);
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, "\"token\":")) != NULL; at++) {
        count++;
    }
    *ret_bytes = strlen(text);
    free(text);
    return count;
}

static void test_a_claim_has_as_many_items_as_fit_the_answer(void **state)
{
    enum { ITEMS = 40, FIT = 32, BYTES = 1040000 };
    struct node_fixture *f = *state;
    size_t bytes = 0;

    make_task(f);
    submit_many(f, "big", ITEMS, 7, BYTES);
    assert_int_equal(claim_many(f, "{\"holder\":\"ada\",\"count\":1000}", &bytes), FIT);
    assert_in_range(bytes, (size_t)FIT * BYTES, 32 << 20);
    node_expect(f, "GET /v1/work/stats", NULL, 200, "\"pending\":8,\"in_progress\":32,");
    node_expect(f, "GET /v1/work/items/big-39", NULL, 200, "\"retry_count\":0");
    assert_int_equal(claim_many(f, "{\"holder\":\"bob\",\"count\":1000}", &bytes), ITEMS - FIT);
    assert_int_equal(claim_many(f, "{\"holder\":\"bob\",\"count\":1000}", &bytes), 0);
}

static void test_a_claim_of_many_has_all_that_fit_and_no_more(void **state)
{
    struct node_fixture *f = *state;
    size_t bytes = 0;

    make_task(f);
    submit_many(f, "small", 1100, 1100, 1);
    assert_int_equal(claim_many(f, "{\"holder\":\"ada\",\"count\":65}", &bytes), 65);
    assert_int_equal(claim_many(f, "{\"holder\":\"ada\",\"count\":1000}", &bytes), 1000);
    assert_int_equal(claim_many(f, "{\"holder\":\"ada\",\"count\":1000}", &bytes), 35);
    node_expect(f, "GET /v1/work/stats", NULL, 200, "\"pending\":0,\"in_progress\":1100,");
}

static void test_small_items_before_large_ones_fill_the_answer(void **state)
{
    struct node_fixture *f = *state;
    size_t bytes = 0;

    make_task(f);
    submit_many(f, "small", 64, 64, 1);
    submit_many(f, "big", 40, 7, 1040000);
    assert_int_equal(claim_many(f, "{\"holder\":\"ada\",\"count\":200}", &bytes), 64 + 32);
    node_expect(f, "GET /v1/work/stats", NULL, 200, "\"pending\":8,\"in_progress\":96,");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        node_test(test_a_claim_has_as_many_items_as_fit_the_answer),
        node_test(test_a_claim_of_many_has_all_that_fit_and_no_more),
        node_test(test_small_items_before_large_ones_fill_the_answer),
    };

    return node_suite(argc, argv, tests, COUNT_OF(tests));
}
