/* Failed events through <pawl/delivery.h>: of pipelines that run and of those that do not. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include <pawl/delivery.h>

#include "base/core/macros.h"
#include "base/json/json.h"
#include "lib/file.h"
#include "lib/tempdir.h"

enum { WAIT_MS = 240000 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char lines[TEMPDIR_SIZE + 16];
    pawl_delivery *delivery;
    pawl_failed_result result;
    char ids[8][40];
    size_t count;
    char status[16]; /* of the last one that was visited */
    char json[2048]; /* of the same */
    uint64_t delivered;
    uint64_t failed;
    pawl_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    static const char lines[] = "{\"n\":1}\nbroken\n{\"n\":\"two\"}\n{\"n\":3}\n";
    char json[2048];

    *state = f;
    assert_ok(tempdir_make(f->dir, "failed", &f->error), &f->error);
    snprintf(f->lines, sizeof(f->lines), "%s/events.jsonl", f->dir);
    file_write(f->lines, lines, sizeof(lines) - 1);
    assert_ok(pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), &f->error);
    snprintf(json,
             sizeof(json),
             "{\"name\": \"orders\", \"from\": \"file:%s\", \"into\": \"orders\", \"columns\": "
             "[{\"name\": \"n\", \"type\": \"BIGINT\", \"required\": true}]}",
             f->lines);
    assert_ok(pawl_pipeline_add(f->delivery, pawl_view_of(json), &f->error), &f->error);
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pawl_delivery_close(f->delivery, 0, NULL), PAWL_OK);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static bool see(void *context, const pawl_failed_event *event)
{
    struct fixture *f = context;
    char *json = NULL;

    assert_ok(pawl_failed_to_json(event, &json, NULL, &f->error), &f->error);
    snprintf(f->json, sizeof(f->json), "%s", json);
    pawl_free(json);
    snprintf(f->status, sizeof(f->status), "%s", pawl_failed_status_name(event->status));
    snprintf(f->ids[f->count++ % 8], sizeof(f->ids[0]), "%.*s", (int)event->id.len, event->id.data);
    return f->count < 8;
}

static size_t list(struct fixture *f, const pawl_failed_filter *filter)
{
    f->count = 0;
    assert_ok(pawl_failed_list(f->delivery, "orders", filter, NULL, see, f, &f->error), &f->error);
    return f->count;
}

static bool see_counts(void *context, const pawl_pipeline_status *status)
{
    struct fixture *f = context;

    f->delivered = status->delivered;
    f->failed = status->failed;
    return true;
}

static void look(struct fixture *f)
{
    assert_ok(pawl_pipeline_get(f->delivery, "orders", see_counts, f, &f->error), &f->error);
}

static pawl_status act(struct fixture *f,
                       pawl_failed_action action,
                       const char *id,
                       const char *edited,
                       uint64_t expected)
{
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;

    filter.id = pawl_view_of(id);
    decision.by = pawl_view_of("kim");
    decision.notes = pawl_view_of("seen");
    decision.edited_payload = pawl_view_of(edited);
    decision.expected = expected;
    return pawl_failed_act(
        f->delivery, "orders", action, &filter, &decision, &f->result, &f->error);
}

/* Two events, a page each: in both orders every one comes once. */
static void test_failed_events_are_listed_in_pages(void **state)
{
    struct fixture *f = *state;

    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
        pawl_page page = PAWL_PAGE_INIT;
        uint64_t first = 0;

        filter.newest_first = newest_first == 1;
        page.limit = 1;
        for (int i = 0; i < 2; i++) {
            f->count = 0;
            assert_ok(pawl_failed_list(f->delivery, "orders", &filter, &page, see, f, &f->error),
                      &f->error);
            assert_int_equal(f->count, 1);
            assert_int_equal(page.more, i == 0);
            first = i == 0 ? page.from : first;
        }
        assert_int_equal(first, newest_first == 1 ? 2 : 3);
    }
}

static void test_failed_events_are_listed_while_the_pipeline_runs(void **state)
{
    struct fixture *f = *state;
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;

    assert_int_equal(list(f, NULL), 2);
    json_auto_t *json = NULL;
    assert_ok(pawl__json_parse(pawl_view_of(f->json), sizeof(f->json), &json, &f->error),
              &f->error);
    assert_string_equal(json_string_value(json_object_get(json, "failure_reason")), "unmappable");
    assert_string_equal(json_string_value(json_object_get(json, "pipeline")), "orders");
    assert_string_equal(json_string_value(json_object_get(json, "status")), "pending");
    assert_true(json_is_object(json_object_get(json, "event_payload")));
    assert_true(json_is_null(json_object_get(json, "resolved_at")));
    filter.reason = pawl_view_of("not_json");
    assert_int_equal(list(f, &filter), 1);
    filter.reason = pawl_view_of("");
    filter.statuses = 1U << PAWL_FAILED_ABANDONED;
    assert_int_equal(list(f, &filter), 0);
    assert_status(pawl_failed_list(f->delivery, "nosuch", NULL, NULL, see, f, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_actions_work_whether_the_pipeline_runs_or_not(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 2; round++) {
        assert_int_equal(list(f, NULL), 2);
        assert_ok(act(f, PAWL_FAILED_RETRY, f->ids[round], "{\"n\":2}", 0), &f->error);
        assert_int_equal(f->result.delivered, 1);
        assert_ok(pawl_pipeline_pause(f->delivery, "orders", &f->error), &f->error);
    }
    look(f);
    assert_int_equal(f->delivered, 4);
    assert_int_equal(f->failed, 0);
    assert_int_equal(list(f, NULL), 2);
    assert_string_equal(f->status, "resolved");
    assert_status(act(f, PAWL_FAILED_RETRY, f->ids[0], "", 0), PAWL_CONFLICT, &f->error);
    assert_ok(pawl_pipeline_resume(f->delivery, "orders", &f->error), &f->error);
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
    look(f);
    assert_int_equal(f->delivered, 4);
}

static void test_many_are_counted_before_they_are_decided(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;

    assert_ok(
        pawl_failed_count(f->delivery, "orders", PAWL_FAILED_ABANDON, NULL, &count, &f->error),
        &f->error);
    assert_int_equal(count, 2);
    assert_status(act(f, PAWL_FAILED_ABANDON, "", "", 1), PAWL_CONFLICT, &f->error);
    assert_int_equal(f->result.matched, 2);
    assert_ok(act(f, PAWL_FAILED_ABANDON, "", "", 2), &f->error);
    assert_int_equal(f->result.closed, 2);
    assert_int_equal(list(f, NULL), 2);
    assert_string_equal(f->status, "abandoned");
    assert_ok(act(f, PAWL_FAILED_RETRY, "", "", 2), &f->error);
    assert_int_equal(f->result.refused, 2);
    assert_true(f->result.error[0] != '\0');
}

static void test_bad_arguments_are_named(void **state)
{
    struct fixture *f = *state;
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;
    uint64_t count = 0;

    assert_status(act(f, PAWL_FAILED_RETRY, "no uuid", "", 0), PAWL_INVALID, &f->error);
    assert_status(act(f, (pawl_failed_action)7, "", "", 2), PAWL_INVALID, &f->error);
    assert_status(act(f, PAWL_FAILED_RETRY, "0198f0a0-5c2e-8000-8000-000000000000", "", 0),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_status(
        pawl_failed_act(
            f->delivery, "orders", PAWL_FAILED_RESOLVE, NULL, &decision, &f->result, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_status(
        pawl_failed_act(
            f->delivery, "orders", PAWL_FAILED_RESOLVE, NULL, NULL, &f->result, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_status(
        pawl_failed_act(
            f->delivery, NULL, PAWL_FAILED_RESOLVE, NULL, &decision, &f->result, &f->error),
        PAWL_INVALID,
        &f->error);
    filter.source = (pawl_view){ NULL, 3 };
    assert_status(pawl_failed_list(f->delivery, "orders", &filter, NULL, see, f, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_status(
        pawl_failed_list(NULL, "orders", NULL, NULL, see, f, &f->error), PAWL_INVALID, &f->error);
    assert_status(pawl_failed_list(f->delivery, "orders", NULL, NULL, NULL, f, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_status(
        pawl_failed_count(f->delivery, "orders", (pawl_failed_action)9, NULL, &count, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_status(pawl_failed_to_json(NULL, NULL, NULL, &f->error), PAWL_INVALID, &f->error);
    assert_string_equal(pawl_failed_status_name((pawl_failed_status)9), "unknown");
    assert_int_equal(list(f, NULL), 2);
    assert_string_equal(f->status, "pending");
}

#define failed_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        failed_test(test_failed_events_are_listed_while_the_pipeline_runs),
        failed_test(test_failed_events_are_listed_in_pages),
        failed_test(test_actions_work_whether_the_pipeline_runs_or_not),
        failed_test(test_many_are_counted_before_they_are_decided),
        failed_test(test_bad_arguments_are_named),
    };

    return cmocka_run_group_tests_name("delivery_failed_calls", tests, NULL, NULL);
}
