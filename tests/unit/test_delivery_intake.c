/* Events that are handed to a pipeline by calls: accepted after the fsync, told apart from duplicates and conflicts, refused
 * while nobody can write them, and asked for by SQL while the pipeline runs. */
#include "lib/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/delivery.h>

#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/promtool.h"
#include "lib/tempdir.h"

enum { WAIT_MS = 240000, THREADS = 8, EACH = 50 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    pawl_delivery *delivery;
    pawl_error error;
    pawl_pipeline_status seen;
    int64_t number;
    char text[4096];
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_ok(tempdir_make(f->dir, "intake", &f->error), &f->error);
    assert_ok(pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), &f->error);
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pawl_delivery_close(f->delivery, 0, NULL), PAWL_OK);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

/* --- steps --- */

static void add(struct fixture *f, const char *json)
{
    assert_ok(pawl_pipeline_add(f->delivery, pawl_view_of(json), &f->error), &f->error);
}

static void start_orders(struct fixture *f)
{
    add(f, "{\"name\": \"orders\", \"from\": \"http\", \"into\": \"orders\"}");
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
}

static pawl_incoming event_of(const char *id, const char *payload)
{
    pawl_incoming event = PAWL_INCOMING_INIT;

    event.event_id = pawl_view_of(id);
    event.payload = pawl_view_of(payload);
    return event;
}

static pawl_submit_outcome submit(struct fixture *f, const char *id, const char *payload)
{
    const pawl_incoming event = event_of(id, payload);
    pawl_submit_outcome outcome = PAWL_SUBMIT_CONFLICT;

    assert_ok(pawl_pipeline_submit(f->delivery, "orders", &event, 1, &outcome, &f->error),
              &f->error);
    return outcome;
}

static pawl_status try_submit(struct fixture *f, const char *id, const char *payload)
{
    const pawl_incoming event = event_of(id, payload);
    pawl_submit_outcome outcome = PAWL_SUBMIT_ACCEPTED;

    return pawl_pipeline_submit(f->delivery, "orders", &event, 1, &outcome, &f->error);
}

static void drain(struct fixture *f)
{
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
}

static bool see(void *context, const pawl_pipeline_status *status)
{
    struct fixture *f = context;

    f->seen = *status;
    return true;
}

static const pawl_pipeline_status *look(struct fixture *f)
{
    assert_ok(pawl_pipeline_get(f->delivery, "orders", see, f, &f->error), &f->error);
    assert_true(f->seen.accepted
                == f->seen.delivered + f->seen.filtered + f->seen.failed + f->seen.pending);
    return &f->seen;
}

static void await_failed(struct fixture *f)
{
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline_ns = pawl__monotonic_ns(clock) + WAIT_MS * NS_PER_MS;

    while (look(f)->failed == 0) {
        assert_true(pawl__monotonic_ns(clock) < deadline_ns);
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + 20 * NS_PER_MS);
    }
}

static bool read_number(void *context, const pawl_query_row *row)
{
    struct fixture *f = context;

    assert_int_equal(row->count, 1);
    f->number = strtoll(row->cells[0].text.data, NULL, 10);
    return true;
}

static int64_t number(struct fixture *f, const char *sql)
{
    f->number = -1;
    assert_ok(pawl_delivery_select(f->delivery, sql, NULL, read_number, f, &f->error), &f->error);
    return f->number;
}

/* --- what it is --- */

static void test_an_event_is_accepted_once_and_delivered(void **state)
{
    struct fixture *f = *state;

    start_orders(f);
    assert_int_equal(submit(f, "17", "{\"euro\": 5}"), PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(submit(f, "17", "{\"euro\": 5}"), PAWL_SUBMIT_DUPLICATE);
    drain(f);
    assert_int_equal(number(f, "SELECT count(*) FROM orders"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM orders WHERE transaction_id = 'orders:17:0'"),
                     1);
    assert_int_equal(look(f)->delivered, 1);
    assert_int_equal(f->seen.duplicates, 1);
}

static void test_another_payload_under_the_same_id_is_a_conflict_each_time(void **state)
{
    struct fixture *f = *state;

    start_orders(f);
    assert_int_equal(submit(f, "17", "{\"euro\": 5}"), PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(submit(f, "17", "{\"euro\": 6}"), PAWL_SUBMIT_CONFLICT);
    assert_int_equal(submit(f, "17", "{\"euro\": 6}"), PAWL_SUBMIT_CONFLICT);
    drain(f);
    assert_int_equal(number(f, "SELECT count(*) FROM orders"), 1);
    assert_int_equal(
        number(f, "SELECT count(*) FROM failed_events WHERE failure_reason = 'conflict'"), 1);
    assert_int_equal(look(f)->failed, 1);
}

static void test_a_batch_tells_of_each_event(void **state)
{
    struct fixture *f = *state;
    const pawl_incoming events[] = {
        event_of("1", "{}"),
        event_of("2", "{\"a\": 1}"),
        event_of("1", "{}"),
        event_of("2", "{\"a\": 2}"),
    };
    pawl_submit_outcome outcomes[4];

    start_orders(f);
    assert_ok(pawl_pipeline_submit(f->delivery, "orders", events, 4, outcomes, &f->error),
              &f->error);
    assert_int_equal(outcomes[0], PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(outcomes[1], PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(outcomes[2], PAWL_SUBMIT_DUPLICATE);
    assert_int_equal(outcomes[3], PAWL_SUBMIT_CONFLICT);
}

static void test_the_id_may_be_a_field_of_the_payload(void **state)
{
    struct fixture *f = *state;

    add(f,
        "{\"name\": \"orders\", \"from\": \"http\", \"into\": \"orders\", \"id_field\": \"nr\"}");
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    assert_int_equal(submit(f, "", "{\"nr\": 17}"), PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(submit(f, "17", "{\"nr\": 17}"), PAWL_SUBMIT_DUPLICATE);
    assert_status(try_submit(f, "", "{\"other\": 17}"), PAWL_INVALID, &f->error);
    assert_message(&f->error, "has no key 'nr'");
}

/* --- what is refused --- */

static void test_an_event_without_an_id_is_refused_and_nothing_is_taken(void **state)
{
    struct fixture *f = *state;
    const pawl_incoming events[] = { event_of("1", "{}"), event_of("", "{}") };
    pawl_submit_outcome outcomes[2];

    start_orders(f);
    assert_status(pawl_pipeline_submit(f->delivery, "orders", events, 2, outcomes, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_int_equal(f->error.index, 1);
    assert_message(&f->error, "event_id: missing");
    char text[256];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_status(try_submit(f, text, "{}"), PAWL_INVALID, &f->error);
    drain(f);
    assert_int_equal(look(f)->accepted, 0);
}

static void test_what_cannot_be_taken_now_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_status(try_submit(f, "1", "{}"), PAWL_NOT_FOUND, &f->error);
    start_orders(f);
    assert_ok(pawl_pipeline_pause(f->delivery, "orders", &f->error), &f->error);
    assert_status(try_submit(f, "1", "{}"), PAWL_UNAVAILABLE, &f->error);
    assert_message(&f->error, "is paused");
    assert_ok(pawl_pipeline_resume(f->delivery, "orders", &f->error), &f->error);
    assert_status(try_submit(f, "1", "{}"), PAWL_UNAVAILABLE, &f->error);
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    assert_int_equal(submit(f, "1", "{}"), PAWL_SUBMIT_ACCEPTED);
}

static void test_a_pipeline_that_reads_a_file_takes_no_events(void **state)
{
    struct fixture *f = *state;

    add(f, "{\"name\": \"orders\", \"from\": \"file:/nowhere.jsonl\", \"into\": \"orders\"}");
    assert_status(try_submit(f, "1", "{}"), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "--from http");
}

static void test_a_full_log_refuses_and_takes_again(void **state)
{
    struct fixture *f = *state;
    pawl_delivery_options options = PAWL_DELIVERY_OPTIONS_INIT;
    size_t large = (size_t)2 << 20;
    char *payload = malloc(large + 1);

    assert_non_null(payload);
    memset(payload, 'x', large); /* no JSON: it goes to failed_events and stays in the log */
    payload[large] = '\0';
    assert_ok(pawl_delivery_close(f->delivery, 0, &f->error), &f->error);
    options.failed_bytes_max = 1 << 20;
    assert_ok(pawl_delivery_open(f->dir, &options, &f->delivery, &f->error), &f->error);
    start_orders(f);
    assert_int_equal(submit(f, "1", payload), PAWL_SUBMIT_ACCEPTED);
    await_failed(f);
    /* A fetch that was waiting already takes one batch more. */
    pawl_status status = try_submit(f, "2", "{}");
    if (status == PAWL_OK) {
        status = try_submit(f, "3", "{}");
    }
    assert_status(status, PAWL_BUSY, &f->error);
    assert_message(&f->error, "max_failed_bytes");
    free(payload);

    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_failed_result result = PAWL_FAILED_RESULT_INIT;
    decision.by = pawl_view_of("ann");
    decision.expected = 1;
    assert_ok(
        pawl_failed_act(
            f->delivery, "orders", PAWL_FAILED_ABANDON, &filter, &decision, &result, &f->error),
        &f->error);
}

/* --- many at once, and across restarts --- */

struct sender {
    struct fixture *f;
    struct pawl__thread thread;
    int number;
    atomic_int accepted;
};

static void send(void *context)
{
    struct sender *sender = context;

    for (int i = 0; i < EACH; i++) {
        char id[32];
        snprintf(id, sizeof(id), "%d-%d", sender->number, i);
        const pawl_incoming event = event_of(id, "{\"n\": 1}");
        pawl_submit_outcome outcome = PAWL_SUBMIT_CONFLICT;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl_pipeline_submit(sender->f->delivery, "orders", &event, 1, &outcome, &error);
        if (status == PAWL_OK && outcome == PAWL_SUBMIT_ACCEPTED) {
            atomic_fetch_add(&sender->accepted, 1);
        }
    }
}

static void test_many_callers_at_once_lose_nothing(void **state)
{
    struct fixture *f = *state;
    struct sender senders[THREADS];
    int accepted = 0;

    start_orders(f);
    for (int i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){ .f = f, .number = i };
        assert_ok(pawl__thread_start(&senders[i].thread, "sender", send, &senders[i], &f->error),
                  &f->error);
    }
    for (int i = 0; i < THREADS; i++) {
        pawl__thread_join(&senders[i].thread);
        accepted += atomic_load(&senders[i].accepted);
    }
    assert_int_equal(accepted, THREADS * EACH);
    drain(f);
    assert_int_equal(number(f, "SELECT count(DISTINCT transaction_id) FROM orders"),
                     THREADS * EACH);
    assert_int_equal(number(f, "SELECT count(*) FROM orders"), THREADS * EACH);
}

/* Places of duplicates are nowhere on disk: a start must neither stumble over them nor give a place twice. */
static void test_a_restart_between_duplicates_keeps_counting(void **state)
{
    struct fixture *f = *state;

    start_orders(f);
    for (int round = 0; round < 3; round++) {
        char id[16];
        snprintf(id, sizeof(id), "%d", round);
        assert_int_equal(submit(f, id, "{}"), PAWL_SUBMIT_ACCEPTED);
        assert_int_equal(submit(f, "0", "{}"), PAWL_SUBMIT_DUPLICATE);
        assert_int_equal(submit(f, "0", "{}"), PAWL_SUBMIT_DUPLICATE);
        snprintf(id, sizeof(id), "%d-b", round);
        assert_int_equal(submit(f, id, "{}"), PAWL_SUBMIT_ACCEPTED);
        assert_ok(pawl_delivery_close(f->delivery, 0, &f->error), &f->error);
        assert_ok(pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), &f->error);
        assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    }
    drain(f);
    assert_int_equal(look(f)->delivered, 6);
    assert_int_equal(f->seen.losses, 0);
    assert_int_equal(number(f, "SELECT count(*) FROM delivery_losses"), 0);
    assert_int_equal(number(f, "SELECT count(*) FROM orders"), 6);
}

/* --- SQL and metrics beside it --- */

static bool see_any(void *context, const pawl_query_row *row)
{
    (void)context;
    (void)row;
    return true;
}

static void test_sql_only_reads(void **state)
{
    struct fixture *f = *state;

    assert_status(pawl_delivery_select(f->delivery, "SELECT 1", NULL, see_any, NULL, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    start_orders(f);
    assert_status(
        pawl_delivery_select(f->delivery, "DELETE FROM orders", NULL, see_any, NULL, &f->error),
        PAWL_DENIED,
        &f->error);
    assert_status(pawl_delivery_select(f->delivery, "SELEKT", NULL, see_any, NULL, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_status(
        pawl_delivery_select(
            f->delivery, "SELECT * FROM read_csv('/etc/passwd')", NULL, see_any, NULL, &f->error),
        PAWL_DENIED,
        &f->error);
    pawl_query_options options = PAWL_QUERY_OPTIONS_INIT;
    options.timeout_ms = 50;
    assert_status(pawl_delivery_select(f->delivery,
                                       "SELECT count(*) FROM range(100000000) a, range(1000) b",
                                       &options,
                                       see_any,
                                       NULL,
                                       &f->error),
                  PAWL_TIMEOUT,
                  &f->error);
    assert_int_equal(submit(f, "1", "{}"), PAWL_SUBMIT_ACCEPTED); /* it harmed nobody */
}

static void test_metrics_have_the_names_of_the_seed(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[] = {
        "consumer_wal_writes_total{pipeline=\"orders\"} 2\n",
        "consumer_wal_confirms_total{pipeline=\"orders\"} ",
        "consumer_wal_retries_total{pipeline=\"orders\"} 0\n",
        "consumer_wal_failures_total{pipeline=\"orders\"} 1\n",
        "consumer_wal_recoveries_total{pipeline=\"orders\"} 0\n",
        "consumer_wal_pending_entries{pipeline=\"orders\"} 0\n",
        "pawl_delivery_events{pipeline=\"orders\",state=\"accepted\"} 2\n",
        "pawl_delivery_events{pipeline=\"orders\",state=\"delivered\"} 1\n",
        "pawl_delivery_events{pipeline=\"orders\",state=\"filtered\"} 0\n",
        "pawl_delivery_events{pipeline=\"orders\",state=\"failed\"} 1\n",
        "pawl_delivery_events{pipeline=\"orders\",state=\"pending\"} 0\n",
        "pawl_delivery_conflicts_total{pipeline=\"orders\"} 1\n",
        "pawl_delivery_breaker_open{pipeline=\"orders\"} 0\n",
        "pawl_delivery_checkpoint_age_seconds{pipeline=\"orders\"} ",
        "pawl_delivery_index_entries{pipeline=\"orders\"} ",
        "pawl_delivery_running{pipeline=\"orders\"} 1\n",
    };
    char *text = NULL;
    size_t len = 0;

    start_orders(f);
    assert_int_equal(submit(f, "17", "{\"euro\": 5}"), PAWL_SUBMIT_ACCEPTED);
    assert_int_equal(submit(f, "17", "{\"euro\": 6}"), PAWL_SUBMIT_CONFLICT);
    drain(f);
    assert_ok(pawl_delivery_get_metrics(f->delivery, &text, &len, &f->error), &f->error);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (strstr(text, lines[i]) == NULL) {
            fail_msg("no '%s' in:\n%s", lines[i], text);
        }
    }
    const char *said = promtool_says((pawl_view){ text, len });
    if (said != NULL) {
        assert_string_equal(said, "");
    }
    pawl_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_an_event_is_accepted_once_and_delivered, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_another_payload_under_the_same_id_is_a_conflict_each_time,
            open_fixture,
            close_fixture),
        cmocka_unit_test_setup_teardown(
            test_a_batch_tells_of_each_event, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_the_id_may_be_a_field_of_the_payload, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_an_event_without_an_id_is_refused_and_nothing_is_taken,
                                        open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(
            test_what_cannot_be_taken_now_is_refused, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_a_pipeline_that_reads_a_file_takes_no_events, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_a_full_log_refuses_and_takes_again, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_many_callers_at_once_lose_nothing, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_a_restart_between_duplicates_keeps_counting, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_sql_only_reads, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(
            test_metrics_have_the_names_of_the_seed, open_fixture, close_fixture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
