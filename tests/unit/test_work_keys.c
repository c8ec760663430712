/* Idempotency keys: the contract that every backend keeps. */
#include "lib/timed_fixture.h"

#include <stdlib.h>

#include "base/core/error.h"

#define HASH_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static pawl_idem_request request_of(const char *key, const char *hash)
{
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;

    request.key = pawl_view_of(key);
    request.request_hash = pawl_view_of(hash);
    request.owner = pawl_view_of("ann");
    return request;
}

/* The answer; with NEW its token in *ret_token, which may be NULL. */
static pawl_idem_answer begin(struct timed_fixture *f,
                              const pawl_idem_request *request,
                              uint64_t *ret_token)
{
    pawl_idem *idem = NULL;

    assert_ok(pawl_idem_begin(f->work, request, &idem, &f->err), &f->err);
    pawl_idem_answer answer = idem->answer;
    if (ret_token != NULL) {
        *ret_token = idem->owner_token;
    }
    pawl_idem_free(idem);
    return answer;
}

static void complete(struct timed_fixture *f, const char *key, uint64_t token, const char *response)
{
    assert_ok(
        pawl_idem_complete(f->work, pawl_view_of(key), token, pawl_view_of(response), &f->err),
        &f->err);
}

static void assert_stored(struct timed_fixture *f,
                          const char *key,
                          pawl_idem_answer answer,
                          const char *response)
{
    pawl_idem *idem = NULL;

    assert_ok(pawl_idem_get(f->work, pawl_view_of(key), &idem, &f->err), &f->err);
    assert_int_equal(idem->answer, answer);
    assert_string_equal(idem->response.data, response);
    assert_true(idem->expires_at_us > idem->created_at_us);
    assert_int_equal(idem->completed_at_us > 0,
                     answer == PAWL_IDEM_DONE || answer == PAWL_IDEM_FAILED);
    pawl_idem_free(idem);
}

static void test_new_in_flight_done(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_idem *idem = NULL;
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    assert_true(token > 0);
    assert_ok(pawl_idem_begin(f->work, &request, &idem, &f->err), &f->err);
    assert_int_equal(idem->answer, PAWL_IDEM_IN_FLIGHT);
    assert_true(pawl__view_is(idem->owner, "ann"));
    assert_true(idem->lease_expires_at_us > idem->created_at_us);
    assert_int_equal(idem->owner_token, 0); /* others do not get it */
    pawl_idem_free(idem);
    complete(f, "k", token, "{\"paid\": true}");
    complete(f, "k", token, "{\"paid\": true}");
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_DONE);
    assert_stored(f, "k", PAWL_IDEM_DONE, "{\"paid\": true}");
    assert_status(pawl_idem_complete(f->work, pawl_view_of("k"), token, pawl_view_of("1"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
    assert_status(pawl_idem_fail(f->work, pawl_view_of("k"), token, pawl_view_of("1"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
    assert_stored(f, "k", PAWL_IDEM_DONE, "{\"paid\": true}");
}

static void test_another_request_is_a_conflict(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request a = request_of("k", HASH_A);
    pawl_idem_request b = request_of("k", HASH_B);
    pawl_idem *idem = NULL;

    assert_int_equal(begin(f, &a, NULL), PAWL_IDEM_NEW);
    b.take_over = true;
    assert_ok(pawl_idem_begin(f->work, &b, &idem, &f->err), &f->err);
    assert_int_equal(idem->answer, PAWL_IDEM_HASH_CONFLICT);
    assert_true(pawl__view_is(idem->request_hash, HASH_A));
    pawl_idem_free(idem);
}

static void test_null_is_a_response(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    complete(f, "k", token, "");
    assert_stored(f, "k", PAWL_IDEM_DONE, "null");
    complete(f, "k", token, "null"); /* the same end */
}

static void test_a_failure_is_kept_until_somebody_decides(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_view key = pawl_view_of("k");
    uint64_t first = 0;
    uint64_t second = 0;

    assert_int_equal(begin(f, &request, &first), PAWL_IDEM_NEW);
    assert_ok(pawl_idem_fail(f->work, key, first, pawl_view_of("\"no\""), &f->err), &f->err);
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_FAILED);
    assert_stored(f, "k", PAWL_IDEM_FAILED, "\"no\"");
    request.take_over = true;
    assert_int_equal(begin(f, &request, &second), PAWL_IDEM_NEW);
    assert_true(second > first);
    assert_status(pawl_idem_complete(f->work, key, first, pawl_view_of("1"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
    complete(f, "k", second, "2");
    assert_stored(f, "k", PAWL_IDEM_DONE, "2");
}

static void test_a_lease_that_ran_out_is_in_doubt(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    uint64_t first = 0;
    uint64_t second = 0;

    request.lease_ms = 60000;
    assert_int_equal(begin(f, &request, &first), PAWL_IDEM_NEW);
    timed_fixture_step_wall(f, 3600);
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_IN_FLIGHT);
    if (!timed_fixture_wait(f, 61)) {
        return;
    }
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_IN_DOUBT);
    assert_stored(f, "k", PAWL_IDEM_IN_DOUBT, "");
    request.take_over = true;
    assert_int_equal(begin(f, &request, &second), PAWL_IDEM_NEW);
    assert_status(pawl_idem_complete(f->work, pawl_view_of("k"), first, pawl_view_of("1"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
    complete(f, "k", second, "2");
}

static void test_a_lease_does_not_survive_the_machine(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    bool servers_clock = strcmp(f->backend, "postgres") == 0;

    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_NEW);
    if (timed_fixture_reboot(f)) {
        assert_int_equal(begin(f, &request, NULL),
                         servers_clock ? PAWL_IDEM_IN_FLIGHT : PAWL_IDEM_IN_DOUBT);
    }
}

static void test_an_expired_key_is_new(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request a = request_of("k", HASH_A);
    pawl_idem_request b = request_of("k", HASH_B);
    uint64_t first = 0;
    uint64_t second = 0;

    assert_int_equal(begin(f, &a, &first), PAWL_IDEM_NEW);
    complete(f, "k", first, "1");
    if (!timed_fixture_wait(f, 24 * 3600 - 10)) {
        return;
    }
    assert_int_equal(begin(f, &a, NULL), PAWL_IDEM_DONE);
    assert_true(timed_fixture_wait(f, 11));
    assert_int_equal(begin(f, &b, &second), PAWL_IDEM_NEW);
    assert_true(second > first);
    assert_stored(f, "k", PAWL_IDEM_IN_FLIGHT, "");
    assert_status(pawl_idem_complete(f->work, pawl_view_of("k"), first, pawl_view_of("1"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
}

static void test_what_was_given_up_is_new(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_view key = pawl_view_of("k");
    uint64_t first = 0;
    uint64_t second = 0;

    assert_int_equal(begin(f, &request, &first), PAWL_IDEM_NEW);
    assert_ok(pawl_idem_release(f->work, key, first, &f->err), &f->err);
    assert_ok(pawl_idem_release(f->work, key, first, &f->err), &f->err);
    assert_int_equal(begin(f, &request, &second), PAWL_IDEM_NEW);
    assert_true(second > first);
    assert_status(pawl_idem_release(f->work, key, first, &f->err), PAWL_LEASE_LOST, &f->err);
}

/* Nothing happened under it, so it stands for no request any more. */
static void test_what_was_given_up_is_new_for_another_request(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request a = request_of("k", HASH_A);
    pawl_idem_request b = request_of("k", HASH_B);
    uint64_t first = 0;
    uint64_t second = 0;

    assert_int_equal(begin(f, &a, &first), PAWL_IDEM_NEW);
    assert_int_equal(begin(f, &b, NULL), PAWL_IDEM_HASH_CONFLICT);
    assert_ok(pawl_idem_release(f->work, pawl_view_of("k"), first, &f->err), &f->err);
    assert_int_equal(begin(f, &b, &second), PAWL_IDEM_NEW);
    assert_true(second > first);
    complete(f, "k", second, "1");
    assert_int_equal(begin(f, &a, NULL), PAWL_IDEM_HASH_CONFLICT);
    assert_int_equal(begin(f, &b, NULL), PAWL_IDEM_DONE);
}

static void test_the_same_response_in_another_spelling_is_the_same(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_view key = pawl_view_of("k");
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    complete(f, "k", token, "{\"a\":1,\"b\":\"\u00e9\"}");
    complete(f, "k", token, "{ \"b\": \"\\u00e9\", \"a\": 1.0 }");
    assert_stored(f, "k", PAWL_IDEM_DONE, "{\"a\":1,\"b\":\"\u00e9\"}");
    assert_status(pawl_idem_complete(f->work, key, token, pawl_view_of("{\"a\":1}"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
}

static void test_a_ttl_does_not_follow_the_wall_clock(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    complete(f, "k", token, "1");
    timed_fixture_step_wall(f, INT64_C(48) * 3600);
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_DONE);
    assert_ok(pawl_work_retention(f->work, &retention, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 0);
    timed_fixture_step_wall(f, INT64_C(-96) * 3600);
    assert_true(timed_fixture_wait(f, 24 * 3600 - 10));
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_DONE);
    assert_true(timed_fixture_wait(f, 11));
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_NEW);
}

/* Another boot has another boot clock: the date decides, and nothing is over because of the boot. */
static void test_a_key_outlives_a_reboot_by_its_date(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    complete(f, "k", token, "1");
    if (!timed_fixture_reboot(f)) {
        return;
    }
    assert_ok(pawl_work_retention(f->work, &retention, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 0);
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_DONE);
    assert_true(timed_fixture_wait(f, 24 * 3600 - 10));
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_DONE);
    assert_true(timed_fixture_wait(f, 11));
    assert_ok(pawl_work_retention(f->work, &retention, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 1);
}

static void test_the_token_of_a_removed_key_does_not_repeat(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    uint64_t zombie = 0;
    uint64_t token = 0;

    assert_int_equal(begin(f, &request, &zombie), PAWL_IDEM_NEW);
    assert_true(timed_fixture_wait(f, INT64_C(25) * 3600));
    assert_ok(pawl_work_retention(f->work, &retention, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 1);
    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    assert_true(token > zombie);
    assert_status(
        pawl_idem_complete(f->work, pawl_view_of("k"), zombie, pawl_view_of("1"), &f->err),
        PAWL_LEASE_LOST,
        &f->err);
    if (timed_fixture_sql(f,
                          strcmp(f->backend, "postgres") == 0 ? "DELETE FROM pawl.idempotency_keys"
                                                              : "DELETE FROM idempotency_keys")) {
        zombie = token;
        assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
        assert_true(token > zombie);
    }
}

static void test_a_key_of_foreign_sql_is_in_doubt(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);

    if (timed_fixture_sql(f,
                          strcmp(f->backend, "postgres") == 0
                              ? "INSERT INTO pawl.idempotency_keys (idempotency_key, request_hash) "
                                "VALUES ('k', '" HASH_A "')"
                              : "INSERT INTO idempotency_keys (idempotency_key, request_hash) "
                                "VALUES ('k', '" HASH_A "')")) {
        assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_IN_DOUBT);
        request.take_over = true;
        assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_NEW);
    }
}

static void test_keys_point_to_what_is_there(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_idem *idem = NULL;

    timed_task(f, "t");
    timed_submit(f, "t", "i");
    request.task_id = pawl_view_of("none");
    assert_status(pawl_idem_begin(f->work, &request, &idem, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_message(&f->err, "no task 'none'");
    request.task_id = pawl_view_of("t");
    request.work_item_id = pawl_view_of("none");
    assert_status(pawl_idem_begin(f->work, &request, &idem, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_null(idem);
    request.work_item_id = pawl_view_of("i");
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_NEW);
}

static void assert_refused(struct timed_fixture *f,
                           const pawl_idem_request *request,
                           const char *message)
{
    pawl_idem *idem = NULL;

    assert_status(pawl_idem_begin(f->work, request, &idem, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, message);
    assert_null(idem);
}

static void test_bad_input_is_refused_by_name(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("", HASH_A);
    pawl_view key = pawl_view_of("k");
    pawl_idem *idem = NULL;
    uint64_t token = 0;

    assert_refused(f, &request, "key");
    request = request_of("k", "sha256:12");
    assert_refused(f, &request, "request_hash");
    request = request_of("k", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_refused(f, &request, "request_hash: must be sha256:");
    request = request_of("k", HASH_A);
    request.ttl_ms = -1;
    assert_refused(f, &request, "ttl_ms: -1");
    assert_status(pawl_idem_get(f->work, key, &idem, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(pawl_idem_complete(f->work, key, 1, key, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "response");
    assert_status(
        pawl_idem_complete(f->work, key, 1, pawl_view_of("1"), &f->err), PAWL_NOT_FOUND, &f->err);
    request.ttl_ms = 0;
    assert_int_equal(begin(f, &request, &token), PAWL_IDEM_NEW);
    assert_status(
        pawl_idem_complete(f->work, key, token, pawl_view_of("{"), &f->err), PAWL_INVALID, &f->err);
    assert_stored(f, "k", PAWL_IDEM_IN_FLIGHT, "");
}

static void test_a_hash_is_that_of_the_value(void **state)
{
    char a[PAWL_REQUEST_HASH_SIZE];
    char b[PAWL_REQUEST_HASH_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(
        pawl_request_hash(pawl_view_of("{\"b\":1.0,\"a\":[]}"), a, PAWL_REQUEST_HASH_SIZE, &error),
        &error);
    assert_ok(pawl_request_hash(
                  pawl_view_of(" {\"a\": [], \"b\": 1}"), b, PAWL_REQUEST_HASH_SIZE, &error),
              &error);
    assert_string_equal(a, b);
    /* printf '{}' | sha256sum */
    assert_ok(pawl_request_hash(pawl_view_of("{ }"), a, PAWL_REQUEST_HASH_SIZE, &error), &error);
    assert_string_equal(a,
                        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    assert_status(pawl_request_hash(pawl_view_of("{"), a, PAWL_REQUEST_HASH_SIZE, &error),
                  PAWL_INVALID,
                  &error);
}

/* --- Execute --- */

struct errand {
    int runs;
    pawl_status status;
    const char *response; /* NULL: none */
};

static pawl_status run_errand(void *context, char **ret_response, pawl_error *reterr)
{
    struct errand *errand = context;

    errand->runs++;
    if (errand->status != PAWL_OK) {
        return pawl__fail(reterr, errand->status, "the shop is closed");
    }
    *ret_response = errand->response == NULL ? NULL : strdup(errand->response);
    return PAWL_OK;
}

static pawl_status execute(struct timed_fixture *f,
                           const pawl_idem_request *request,
                           struct errand *errand,
                           const char *expected,
                           bool expected_cached)
{
    char *response = NULL;
    bool cached = !expected_cached;
    pawl_status status = pawl_execute_with_idempotency(
        f->work, request, run_errand, errand, &response, &cached, &f->err);

    if (status == PAWL_OK) {
        assert_string_equal(response, expected);
        assert_int_equal(cached, expected_cached);
    } else {
        assert_null(response);
    }
    free(response);
    return status;
}

static void test_work_is_done_once(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    pawl_idem_request other = request_of("k", HASH_B);
    pawl_idem_request empty = request_of("k2", HASH_A);
    struct errand errand = { .response = "[1, 2]" };
    struct errand silent = { .runs = 0 };

    assert_ok(execute(f, &request, &errand, "[1, 2]", false), &f->err);
    assert_ok(execute(f, &request, &errand, "[1, 2]", true), &f->err);
    assert_int_equal(errand.runs, 1);
    assert_status(execute(f, &other, &errand, "", false), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "another request");
    assert_ok(execute(f, &empty, &silent, "null", false), &f->err);
    assert_ok(execute(f, &empty, &silent, "null", true), &f->err);
    assert_int_equal(errand.runs + silent.runs, 2);
}

static void test_work_that_fails_for_good_is_not_repeated(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    struct errand errand = { .status = PAWL_INVALID, .response = "1" };

    assert_status(execute(f, &request, &errand, "", false), PAWL_INVALID, &f->err);
    assert_message(&f->err, "the shop is closed");
    assert_status(execute(f, &request, &errand, "", false), PAWL_FAILED, &f->err);
    assert_message(&f->err, "the shop is closed");
    assert_int_equal(errand.runs, 1);
    request.take_over = true;
    errand.status = PAWL_OK;
    assert_ok(execute(f, &request, &errand, "1", false), &f->err);
}

static void test_work_that_returns_no_status_has_failed_for_good(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    struct errand errand = { .status = (pawl_status)9999, .response = "1" };

    assert_status(execute(f, &request, &errand, "", false), PAWL_FAILED, &f->err);
    assert_message(&f->err, "the work under key 'k' returned 9999, which is no pawl_status");
    assert_status(execute(f, &request, &errand, "", false), PAWL_FAILED, &f->err);
    assert_message(&f->err, "returned 9999");
    assert_int_equal(errand.runs, 1);
}

static void test_work_that_did_not_happen_is_done_again(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    struct errand errand = { .status = PAWL_BUSY, .response = "1" };

    assert_status(execute(f, &request, &errand, "", false), PAWL_BUSY, &f->err);
    errand.status = PAWL_OK;
    assert_ok(execute(f, &request, &errand, "1", false), &f->err);
    assert_int_equal(errand.runs, 2);
}

static void test_work_that_may_have_happened_is_in_doubt(void **state)
{
    static const pawl_status unknown[] = { PAWL_TIMEOUT, PAWL_UNAVAILABLE, PAWL_IO };
    static const char *const keys[] = { "k1", "k2", "k3" };
    struct timed_fixture *f = *state;
    struct errand errand = { .response = "1" };

    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        pawl_idem_request request = request_of(keys[i], HASH_A);
        request.lease_ms = 60000;
        errand.status = unknown[i];
        assert_status(execute(f, &request, &errand, "", false), unknown[i], &f->err);
        assert_message(&f->err, "the shop is closed");
        assert_stored(f, keys[i], PAWL_IDEM_IN_FLIGHT, "");
    }
    if (timed_fixture_wait(f, 61)) {
        pawl_idem_request request = request_of(keys[0], HASH_A);
        assert_status(execute(f, &request, &errand, "", false), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "in doubt");
        assert_int_equal(f->err.detail, PAWL_DETAIL_KEY_IN_DOUBT);
    }
    assert_int_equal(errand.runs, 3);
}

static void test_work_in_flight_or_in_doubt_is_not_done(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    struct errand errand = { .response = "1" };

    request.lease_ms = 60000;
    assert_int_equal(begin(f, &request, NULL), PAWL_IDEM_NEW);
    assert_status(execute(f, &request, &errand, "", false), PAWL_BUSY, &f->err);
    if (timed_fixture_wait(f, 61)) {
        assert_status(execute(f, &request, &errand, "", false), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "in doubt");
    }
    assert_int_equal(errand.runs, 0);
}

static void test_a_response_that_is_no_json_leaves_the_key_to_its_owner(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = request_of("k", HASH_A);
    struct errand errand = { .response = "{" };

    assert_status(execute(f, &request, &errand, "", false), PAWL_INVALID, &f->err);
    assert_message(&f->err, "it was done, but its response is not stored");
    assert_stored(f, "k", PAWL_IDEM_IN_FLIGHT, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(test_new_in_flight_done),
        TIMED_TEST(test_another_request_is_a_conflict),
        TIMED_TEST(test_null_is_a_response),
        TIMED_TEST(test_a_failure_is_kept_until_somebody_decides),
        TIMED_TEST(test_a_lease_that_ran_out_is_in_doubt),
        TIMED_TEST(test_a_lease_does_not_survive_the_machine),
        TIMED_TEST(test_an_expired_key_is_new),
        TIMED_TEST(test_what_was_given_up_is_new),
        TIMED_TEST(test_what_was_given_up_is_new_for_another_request),
        TIMED_TEST(test_the_same_response_in_another_spelling_is_the_same),
        TIMED_TEST(test_a_ttl_does_not_follow_the_wall_clock),
        TIMED_TEST(test_a_key_outlives_a_reboot_by_its_date),
        TIMED_TEST(test_the_token_of_a_removed_key_does_not_repeat),
        TIMED_TEST(test_a_key_of_foreign_sql_is_in_doubt),
        TIMED_TEST(test_keys_point_to_what_is_there),
        TIMED_TEST(test_bad_input_is_refused_by_name),
        TIMED_TEST(test_a_hash_is_that_of_the_value),
        TIMED_TEST(test_work_is_done_once),
        TIMED_TEST(test_work_that_fails_for_good_is_not_repeated),
        TIMED_TEST(test_work_that_returns_no_status_has_failed_for_good),
        TIMED_TEST(test_work_that_did_not_happen_is_done_again),
        TIMED_TEST(test_work_that_may_have_happened_is_in_doubt),
        TIMED_TEST(test_work_in_flight_or_in_doubt_is_not_done),
        TIMED_TEST(test_a_response_that_is_no_json_leaves_the_key_to_its_owner),
    };

    return timed_suite(argc, argv, tests, COUNT_OF(tests));
}
