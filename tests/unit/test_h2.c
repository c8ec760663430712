/* gRPC over HTTP/2 by real sockets, with our own client: calls of every kind, statuses, deadlines, gzip, TLS, stopping. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "lib/h2_fixture.h"
#include "lib/port.h"

enum { PATIENCE_MS = 30000 };

static int set_up(void **state)
{
    static struct h2_fixture fixture;

    h2_fixture_init(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    h2_fixture_done(*state);
    return 0;
}

static void start(struct h2_fixture *fixture)
{
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(h2_fixture_connect(fixture, NULL, &fixture->client, &fixture->error),
              &fixture->error);
}

static pawl_status call_with(struct pawl__h2_client *client,
                             const char *path,
                             pawl_view request,
                             struct pawl__buf *ret_answer,
                             pawl_error *error)
{
    return pawl__h2_client_call(
        client, path, request, h2_fixture_in_ms(PATIENCE_MS), ret_answer, error);
}

static void assert_answer(struct h2_fixture *fixture,
                          const char *path,
                          const char *request,
                          const char *expected)
{
    struct pawl__buf answer = BUF_INIT(0);

    assert_ok(call_with(fixture->client, path, pawl_view_of(request), &answer, &fixture->error),
              &fixture->error);
    assert_int_equal(answer.len, strlen(expected));
    assert_memory_equal(answer.data == NULL ? "" : answer.data, expected, answer.len);
    pawl__buf_done(&answer);
}

/* --- unary --- */

static void test_a_call_gets_its_answer(void **state)
{
    struct h2_fixture *fixture = *state;

    start(fixture);
    assert_answer(fixture, "/test.Echo/Unary", "hello", "hello");
    assert_answer(fixture, "/test.Echo/Unary", "", "");
    assert_answer(fixture, "/test.Echo/Later", "later", "later");
    assert_answer(fixture, "/test.Echo/Blocks", "blocks", "blocks");
    assert_int_equal(pawl__h2_client_connects(fixture->client), 1);
}

static void test_a_failure_has_code_message_and_details(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);
    pawl_error error = PAWL_ERROR_INIT;

    start(fixture);
    assert_status(call_with(fixture->client, "/test.Echo/Fail", pawl_view_of("x"), &answer, &error),
                  PAWL_CONFLICT,
                  &error);
    assert_int_equal(error.native, PAWL__H2_FAILED_PRECONDITION);
    assert_message(&error, "what 100% \xc3\xbc");
    assert_status(
        call_with(fixture->client, "/test.Echo/Nothing", pawl_view_of("x"), &answer, &error),
        PAWL_UNSUPPORTED,
        &error);
    assert_message(&error, "no method '/test.Echo/Nothing'");
    assert_status(call_with(fixture->client, "test", pawl_view_of("x"), &answer, &error),
                  PAWL_INVALID,
                  &error);
}

static void test_large_messages_pass_and_larger_ones_do_not(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);
    struct pawl__buf request = BUF_INIT(20 << 20);
    pawl_error error = PAWL_ERROR_INIT;

    fixture->options.limits.message_bytes_max = 16 << 20;
    start(fixture);
    memset(pawl__buf_extend(&request, 16 << 20), 'q', 16 << 20);
    assert_ok(
        call_with(fixture->client, "/test.Echo/Unary", pawl__buf_view(&request), &answer, &error),
        &error);
    assert_int_equal(answer.len, 16 << 20);
    assert_memory_equal(answer.data, request.data, answer.len);
    pawl__buf_add_char(&request, 'q');
    assert_status(
        call_with(fixture->client, "/test.Echo/Unary", pawl__buf_view(&request), &answer, &error),
        PAWL_NO_SPACE,
        &error);
    assert_message(&error, "the limit is 16777216");
    /* an answer over the client's limit */
    assert_status(
        call_with(fixture->client, "/test.Echo/Big", pawl_view_of("16900000"), &answer, &error),
        PAWL_NO_SPACE,
        &error);
    assert_message(&error, "the answer: a message of 16900000 bytes");
    assert_answer(fixture, "/test.Echo/Unary", "still there", "still there");
    pawl__buf_done(&answer);
    pawl__buf_done(&request);
}

static void test_a_deadline_ends_a_call_on_both_sides(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);
    pawl_error error = PAWL_ERROR_INIT;

    start(fixture);
    assert_status(pawl__h2_client_call(fixture->client,
                                       "/test.Echo/Hold",
                                       pawl_view_of("x"),
                                       h2_fixture_in_ms(50),
                                       &answer,
                                       &error),
                  PAWL_TIMEOUT,
                  &error);
    assert_int_equal(error.native, PAWL__H2_DEADLINE_EXCEEDED);
    assert_true(h2_fixture_await(&fixture->gone, 1));
    assert_answer(fixture, "/test.Echo/Unary", "after", "after");
}

struct outcome {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond changed;
    bool done;
    int code;
    bool sent;
    size_t messages;
    struct pawl__buf bytes;
    struct pawl__buf details;
    char text[256];
};

static void outcome_init(struct outcome *outcome)
{
    *outcome = (struct outcome){ .bytes = BUF_INIT(64 << 20), .details = BUF_INIT(4096) };
    pawl__lock_cond_init(&outcome->lock, &outcome->changed);
}

static void outcome_done(struct outcome *outcome)
{
    pawl__buf_done(&outcome->bytes);
    pawl__buf_done(&outcome->details);
    pawl__lock_cond_done(&outcome->lock, &outcome->changed);
}

static void on_message(void *context, pawl_view message)
{
    struct outcome *outcome = context;

    pawl__lock(&outcome->lock);
    outcome->messages++;
    pawl__buf_add(&outcome->bytes, message);
    pawl__cond_broadcast(&outcome->changed);
    pawl__unlock(&outcome->lock);
}

static void on_done(void *context, const struct pawl__h2_outcome *got)
{
    struct outcome *outcome = context;

    pawl__lock(&outcome->lock);
    outcome->done = true;
    outcome->code = got->code;
    outcome->sent = got->sent;
    pawl__buf_add(&outcome->details, got->details);
    (void)snprintf(outcome->text, sizeof(outcome->text), "%.*s", VIEW_ARGS(got->message));
    pawl__cond_broadcast(&outcome->changed);
    pawl__unlock(&outcome->lock);
}

static void await_done(struct outcome *outcome)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    bool in_time = true;

    pawl__lock(&outcome->lock);
    while (!outcome->done && in_time) {
        in_time = pawl__cond_wait_until(&outcome->changed, &outcome->lock, deadline_ns);
    }
    bool done = outcome->done;
    pawl__unlock(&outcome->lock);
    assert_true(done);
}

static void await_messages(struct outcome *outcome, size_t count)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    bool in_time = true;

    pawl__lock(&outcome->lock);
    while (outcome->messages < count && in_time) {
        in_time = pawl__cond_wait_until(&outcome->changed, &outcome->lock, deadline_ns);
    }
    size_t messages = outcome->messages;
    pawl__unlock(&outcome->lock);
    assert_int_equal(messages, count);
}

static struct pawl__h2_client_ask ask_for(const char *path, struct outcome *outcome)
{
    return (struct pawl__h2_client_ask){
        .path = path,
        .deadline_ns = h2_fixture_in_ms(PATIENCE_MS),
        .message = on_message,
        .done = on_done,
        .context = outcome,
    };
}

/* --- streams --- */

static void test_a_server_stream_brings_all_messages(void **state)
{
    struct h2_fixture *fixture = *state;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Count", &outcome);
    ask.request =
        pawl_view_of("5000"); /* five times what waits before the handler is told to stop */
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_OK);
    assert_int_equal(outcome.messages, 5000);
    assert_int_equal(outcome.bytes.len, 5000 * 1000);
    outcome_done(&outcome);
}

static void test_a_client_stream_is_joined(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_stream *stream = NULL;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Join", &outcome);
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, &stream, &fixture->error),
              &fixture->error);
    assert_ok(pawl__h2_client_send(stream, pawl_view_of("one "), &fixture->error), &fixture->error);
    assert_ok(pawl__h2_client_send(stream, pawl_view_of(""), &fixture->error), &fixture->error);
    assert_ok(pawl__h2_client_send(stream, pawl_view_of("two"), &fixture->error), &fixture->error);
    pawl__h2_client_half_close(stream);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_OK);
    assert_int_equal(outcome.bytes.len, 7);
    assert_memory_equal(outcome.bytes.data, "one two", 7);
    pawl_error error = PAWL_ERROR_INIT;
    assert_status(pawl__h2_client_send(stream, pawl_view_of("x"), &error), PAWL_CLOSED, &error);
    pawl__h2_client_release(stream);
    outcome_done(&outcome);
}

static void test_both_sides_talk_in_turns(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_stream *stream = NULL;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Chat", &outcome);
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, &stream, &fixture->error),
              &fixture->error);
    for (size_t i = 0; i < 20; i++) {
        assert_ok(pawl__h2_client_send(stream, pawl_view_of("m"), &fixture->error),
                  &fixture->error);
        await_messages(&outcome, i + 1);
    }
    pawl__h2_client_half_close(stream);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_OK);
    assert_int_equal(outcome.messages, 21);
    pawl__h2_client_release(stream);
    outcome_done(&outcome);
}

/* What the client sends waits while it does not read: the server holds one window of it, not all. */
static void test_a_bidi_stream_is_read_as_fast_as_its_answers_leave(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_stream *stream = NULL;
    struct outcome outcome;
    char bytes[10000];

    fixture->options.limits.answer_bytes_max = 65536;
    start(fixture);
    outcome_init(&outcome);
    memset(bytes, 'b', sizeof(bytes));
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Chat", &outcome);
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, &stream, &fixture->error),
              &fixture->error);
    for (size_t sent = 0; sent < 1000;) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl__h2_client_send(stream, (pawl_view){ bytes, sizeof(bytes) }, &error);
        assert_true(status == PAWL_OK || status == PAWL_BUSY);
        sent += status == PAWL_OK ? 1 : 0;
        if (status == PAWL_BUSY) {
            pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(1));
        }
    }
    pawl__h2_client_half_close(stream);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_OK);
    assert_int_equal(outcome.messages, 1001);
    assert_int_equal(outcome.bytes.len, 1000 * sizeof(bytes) + 3);
    pawl__h2_client_release(stream);
    outcome_done(&outcome);
}

static void test_a_cancelled_call_is_told_to_its_handler(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_stream *stream = NULL;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Join", &outcome);
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, &stream, &fixture->error),
              &fixture->error);
    assert_true(h2_fixture_await(&fixture->opened, 1));
    pawl__h2_client_cancel(stream);
    pawl__h2_client_cancel(stream);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_CANCELLED);
    assert_true(h2_fixture_await(&fixture->gone, 1));
    pawl__h2_client_release(stream);
    outcome_done(&outcome);
}

static void test_details_arrive_as_bytes(void **state)
{
    struct h2_fixture *fixture = *state;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Fail", &outcome);
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_FAILED_PRECONDITION);
    assert_string_equal(outcome.text, "what 100% \xc3\xbc");
    assert_int_equal(outcome.details.len, 3);
    assert_memory_equal(outcome.details.data, "\1\2\3", 3);
    outcome_done(&outcome);
}

/* --- many --- */

struct caller {
    struct h2_fixture *fixture;
    struct pawl__thread thread;
    size_t good;
};

static void call_many(void *context)
{
    struct caller *caller = context;

    for (int i = 0; i < 200; i++) {
        struct pawl__buf answer = BUF_INIT(0);
        const char *path = i % 3 == 0 ? "/test.Echo/Later" : "/test.Echo/Unary";
        if (call_with(caller->fixture->client, path, pawl_view_of("many"), &answer, NULL) == PAWL_OK
            && pawl__view_is(pawl__buf_view(&answer), "many")) {
            caller->good++;
        }
        pawl__buf_done(&answer);
    }
}

static void test_many_threads_share_a_client(void **state)
{
    struct h2_fixture *fixture = *state;
    struct caller callers[8] = { 0 };

    start(fixture);
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        callers[i].fixture = fixture;
        assert_ok(pawl__thread_start(
                      &callers[i].thread, "caller", call_many, &callers[i], &fixture->error),
                  &fixture->error);
    }
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        pawl__thread_join(&callers[i].thread);
        assert_int_equal(callers[i].good, 200);
    }
}

static void test_more_calls_than_streams_wait_their_turn(void **state)
{
    struct h2_fixture *fixture = *state;
    struct outcome outcomes[20];

    fixture->options.limits.streams_max = 4;
    start(fixture);
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        outcome_init(&outcomes[i]);
        struct pawl__h2_client_ask ask = ask_for("/test.Echo/Hold", &outcomes[i]);
        ask.single = true;
        assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error),
                  &fixture->error);
    }
    for (size_t left = COUNT_OF(outcomes); left > 0; left -= h2_fixture_release(fixture)) {
        assert_true(h2_fixture_await(&fixture->held, MIN(left, 4)));
    }
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        await_done(&outcomes[i]);
        assert_int_equal(outcomes[i].code, PAWL__H2_OK);
        outcome_done(&outcomes[i]);
    }
}

static void test_compressed_messages_pass_both_ways(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_options options = { .gzip = true };
    struct pawl__buf answer = BUF_INIT(0);
    char bytes[100000];

    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(h2_fixture_connect(fixture, &options, &fixture->client, &fixture->error),
              &fixture->error);
    memset(bytes, 'z', sizeof(bytes));
    assert_ok(call_with(fixture->client,
                        "/test.Echo/Unary",
                        (pawl_view){ bytes, sizeof(bytes) },
                        &answer,
                        &fixture->error),
              &fixture->error);
    assert_int_equal(answer.len, sizeof(bytes));
    assert_memory_equal(answer.data, bytes, sizeof(bytes));
    pawl__buf_done(&answer);
}

/* 32 MiB of zeros in 32 KiB: refused at the limit. */
static void test_a_message_that_inflates_is_refused(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__h2_client_options options = { .gzip = true };
    struct pawl__buf answer = BUF_INIT(0);
    struct pawl__buf zeros = BUF_INIT(32 << 20);
    pawl_error error = PAWL_ERROR_INIT;

    fixture->options.limits.message_bytes_max = 1 << 20;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(h2_fixture_connect(fixture, &options, &fixture->client, &fixture->error),
              &fixture->error);
    memset(pawl__buf_extend(&zeros, 32 << 20), 0, 32 << 20);
    assert_status(
        call_with(fixture->client, "/test.Echo/Unary", pawl__buf_view(&zeros), &answer, &error),
        PAWL_NO_SPACE,
        &error);
    assert_message(&error, "over 1048576 bytes when decompressed");
    assert_answer(fixture, "/test.Echo/Unary", "after", "after");
    pawl__buf_done(&zeros);
}

/* --- TLS --- */

static char *in_directory(struct h2_fixture *fixture, const char *name)
{
    static char paths[8][128];
    static size_t next;
    char *path = paths[next++ % COUNT_OF(paths)];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", fixture->directory, name);
    return path;
}

static void make_certificates(struct h2_fixture *fixture)
{
    assert_ok(tempdir_make(fixture->directory, "pawl-h2", &fixture->error), &fixture->error);
    assert_true(h2_fixture_certificates(fixture->directory));
}

static pawl_status who_am_i(struct h2_fixture *fixture,
                            const struct pawl__h2_tls *tls,
                            struct pawl__buf *ret_answer,
                            pawl_error *error)
{
    struct pawl__h2_client_options options = { .tls = tls };
    AUTO(pawl__h2_client_close_p) struct pawl__h2_client *client = NULL;

    assert_ok(h2_fixture_connect(fixture, &options, &client, &fixture->error), &fixture->error);
    return call_with(client, "/test.Echo/Who", pawl_view_of(""), ret_answer, error);
}

static void test_tls_checks_both_sides_and_names_the_client(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);
    pawl_error error = PAWL_ERROR_INIT;

    make_certificates(fixture);
    const struct pawl__h2_tls server = { .certificate_file = in_directory(fixture, "server.pem"),
                                         .key_file = in_directory(fixture, "server.key"),
                                         .ca_file = in_directory(fixture, "ca.pem") };
    struct pawl__h2_tls client = { .certificate_file = in_directory(fixture, "client.pem"),
                                   .key_file = in_directory(fixture, "client.key"),
                                   .ca_file = server.ca_file };
    fixture->options.tls = &server;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(who_am_i(fixture, &client, &answer, &error), &error);
    assert_memory_equal(answer.data, "peer=agent-7 metadata=", 22);
    /* a certificate for another name, a CA that did not sign it, no certificate, one of a stranger */
    client.server_name = "elsewhere.example";
    assert_status(who_am_i(fixture, &client, &answer, &error), PAWL_UNAVAILABLE, &error);
    client.server_name = "localhost";
    assert_ok(who_am_i(fixture, &client, &answer, &fixture->error), &fixture->error);
    client.ca_file = in_directory(fixture, "other-ca.pem");
    assert_status(who_am_i(fixture, &client, &answer, &error), PAWL_UNAVAILABLE, &error);
    assert_message(&error, "certificate");
    const struct pawl__h2_tls nobody = { .ca_file = server.ca_file };
    assert_status(who_am_i(fixture, &nobody, &answer, &error), PAWL_UNAVAILABLE, &error);
    const struct pawl__h2_tls stranger = { .certificate_file =
                                               in_directory(fixture, "stranger.pem"),
                                           .key_file = in_directory(fixture, "stranger.key"),
                                           .ca_file = server.ca_file };
    assert_status(who_am_i(fixture, &stranger, &answer, &error), PAWL_UNAVAILABLE, &error);
    /* plain text to a server with TLS */
    assert_status(who_am_i(fixture, NULL, &answer, &error), PAWL_UNAVAILABLE, &error);
    pawl__buf_done(&answer);
}

static void test_tls_carries_large_messages(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);

    make_certificates(fixture);
    const struct pawl__h2_tls server = { .certificate_file = in_directory(fixture, "server.pem"),
                                         .key_file = in_directory(fixture, "server.key") };
    const struct pawl__h2_tls client = { .ca_file = in_directory(fixture, "ca.pem") };
    const struct pawl__h2_client_options options = { .tls = &client };
    fixture->options.tls = &server;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(h2_fixture_connect(fixture, &options, &fixture->client, &fixture->error),
              &fixture->error);
    assert_ok(
        call_with(
            fixture->client, "/test.Echo/Big", pawl_view_of("16000000"), &answer, &fixture->error),
        &fixture->error);
    assert_int_equal(answer.len, 16000000);
    for (size_t i = 0; i < answer.len; i += 997) {
        assert_int_equal(answer.data[i], (char)('a' + i * 7 % 23));
    }
    pawl__buf_done(&answer);
}

static void test_wrong_files_are_named(void **state)
{
    struct h2_fixture *fixture = *state;
    const struct pawl__h2_tls missing = { .certificate_file = "/nonexistent.pem",
                                          .key_file = "/nonexistent.key" };
    pawl_error error = PAWL_ERROR_INIT;

    fixture->options.tls = &missing;
    assert_status(h2_fixture_start(fixture, &error), PAWL_INVALID, &error);
    assert_message(&error, "certificate '/nonexistent.pem'");
    fixture->options.tls = NULL;
    fixture->options.listen = "0.0.0.0:0";
    assert_status(h2_fixture_start(fixture, &error), PAWL_INVALID, &error);
    assert_message(&error, "is not loopback");
    static const struct pawl__h2_client_options nowhere = { .address = "nowhere" };
    assert_status(pawl__h2_client_open(&nowhere, &fixture->client, &error), PAWL_INVALID, &error);
}

/* --- tokens --- */

static pawl_status check_token(void *context,
                               const struct pawl__h2_caller *caller,
                               pawl_error *reterr)
{
    (void)context;
    if (pawl__view_is(caller->authorization, "Bearer good")) {
        return PAWL_OK;
    }
    if (pawl__view_is(caller->authorization, "Bearer reader") && caller->scope == 1) {
        return PAWL_OK;
    }
    return pawl__fail(reterr, PAWL_DENIED, "this token must not call it");
}

static pawl_status call_as(struct h2_fixture *fixture,
                           const char *token,
                           const char *path,
                           pawl_error *error)
{
    struct pawl__h2_client_options options = { .token = token };
    AUTO(pawl__h2_client_close_p) struct pawl__h2_client *client = NULL;
    AUTO(pawl__buf_done) struct pawl__buf answer = BUF_INIT(0);

    assert_ok(h2_fixture_connect(fixture, &options, &client, &fixture->error), &fixture->error);
    return call_with(client, path, pawl_view_of(""), &answer, error);
}

static void test_a_token_decides_what_may_be_called(void **state)
{
    struct h2_fixture *fixture = *state;
    pawl_error error = PAWL_ERROR_INIT;

    fixture->options.authorize = check_token;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(call_as(fixture, "good", "/test.Echo/Later", &fixture->error), &fixture->error);
    assert_ok(call_as(fixture, "reader", "/test.Echo/Unary", &fixture->error), &fixture->error);
    assert_status(call_as(fixture, "reader", "/test.Echo/Later", &error), PAWL_DENIED, &error);
    assert_int_equal(error.native, PAWL__H2_PERMISSION_DENIED);
    assert_message(&error, "this token must not call it");
    assert_status(call_as(fixture, NULL, "/test.Echo/Unary", &error), PAWL_DENIED, &error);
    assert_int_equal(error.native, PAWL__H2_UNAUTHENTICATED);
    assert_ok(call_as(fixture, NULL, "/grpc.health.v1.Health/Check", &fixture->error),
              &fixture->error);
}

/* --- health --- */

static void test_health_is_checked_and_watched(void **state)
{
    struct h2_fixture *fixture = *state;
    struct pawl__buf answer = BUF_INIT(0);
    struct outcome outcome;
    pawl_error error = PAWL_ERROR_INIT;

    start(fixture);
    assert_answer(fixture, "/grpc.health.v1.Health/Check", "\x0a\x09test.Echo", "\x08\x01");
    assert_answer(fixture, "/grpc.health.v1.Health/Check", "", "\x08\x01");
    assert_status(call_with(fixture->client,
                            "/grpc.health.v1.Health/Check",
                            pawl_view_of("\x0a\x04none"),
                            &answer,
                            &error),
                  PAWL_NOT_FOUND,
                  &error);
    assert_status(call_with(fixture->client,
                            "/grpc.health.v1.Health/Check",
                            pawl_view_of("\x0a\x02\xff\xff"),
                            &answer,
                            &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "service is not UTF-8");

    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/grpc.health.v1.Health/Watch", &outcome);
    ask.request = pawl_view_of("\x0a\x09test.Echo");
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    await_messages(&outcome, 1);
    assert_ok(pawl__h2_set_serving(fixture->server, "test.Echo", false, &fixture->error),
              &fixture->error);
    assert_ok(pawl__h2_set_serving(fixture->server, "test.Echo", false, &fixture->error),
              &fixture->error);
    await_messages(&outcome, 2);
    assert_ok(pawl__h2_set_serving(fixture->server, "test.Echo", true, &fixture->error),
              &fixture->error);
    await_messages(&outcome, 3);
    assert_memory_equal(outcome.bytes.data, "\x08\x01\x08\x02\x08\x01", 6);
    /* stopping ends watches, so they hold nothing up */
    assert_ok(pawl__h2_stop(fixture->server, h2_fixture_in_ms(PATIENCE_MS), &fixture->error),
              &fixture->error);
    fixture->server = NULL;
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_UNAVAILABLE);
    outcome_done(&outcome);
}

/* --- stopping, and coming back --- */

struct stopper {
    struct h2_fixture *fixture;
    struct pawl__thread thread;
    pawl_status status;
    atomic_size_t done;
};

static void stop_server(void *context)
{
    struct stopper *stopper = context;

    stopper->status = pawl__h2_stop(stopper->fixture->server, h2_fixture_in_ms(PATIENCE_MS), NULL);
    atomic_store(&stopper->done, 1);
}

static void test_stopping_lets_running_calls_end(void **state)
{
    struct h2_fixture *fixture = *state;
    struct stopper stopper = { .fixture = fixture };
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Hold", &outcome);
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    assert_true(h2_fixture_await(&fixture->held, 1));
    assert_ok(pawl__thread_start(&stopper.thread, "stop", stop_server, &stopper, &fixture->error),
              &fixture->error);
    /* a call that comes now is refused: it finds no server any more, and says so */
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__buf answer = BUF_INIT(0);
    pawl_status status = PAWL_OK;
    while (status == PAWL_OK) { /* until the client knows of the end */
        status = call_with(fixture->client, "/test.Echo/Unary", pawl_view_of("x"), &answer, &error);
    }
    assert_status(status, PAWL_UNAVAILABLE, &error);
    pawl__buf_done(&answer);
    assert_int_equal(atomic_load(&stopper.done), 0);
    h2_fixture_release(fixture);
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_OK);
    pawl__thread_join(&stopper.thread);
    assert_int_equal(stopper.status, PAWL_OK);
    fixture->server = NULL;
    outcome_done(&outcome);
}

static void test_stopping_does_not_wait_for_ever(void **state)
{
    struct h2_fixture *fixture = *state;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Hold", &outcome);
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    assert_true(h2_fixture_await(&fixture->held, 1));
    assert_ok(pawl__h2_stop(fixture->server, h2_fixture_in_ms(100), &fixture->error),
              &fixture->error);
    fixture->server = NULL;
    await_done(&outcome);
    assert_int_equal(outcome.code, PAWL__H2_UNAVAILABLE);
    assert_true(outcome.sent);
    assert_int_equal(atomic_load(&fixture->gone), 1);
    outcome_done(&outcome);
}

static void test_a_client_finds_a_server_that_came_back(void **state)
{
    struct h2_fixture *fixture = *state;
    char address[64] = "";
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__buf answer = BUF_INIT(0);

    start(fixture);
    assert_answer(fixture, "/test.Echo/Unary", "one", "one");
    (void)snprintf(address, sizeof(address), "%s", pawl__h2_listens_on(fixture->server));
    assert_ok(pawl__h2_stop(fixture->server, h2_fixture_in_ms(PATIENCE_MS), &fixture->error),
              &fixture->error);
    fixture->server = NULL;
    assert_status(
        call_with(fixture->client, "/test.Echo/Unary", pawl_view_of("two"), &answer, &error),
        PAWL_UNAVAILABLE,
        &error);
    assert_message(&error, "no connection to '127.0.0.1:");
    fixture->options.listen = address;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    pawl_status status = PAWL_UNAVAILABLE;
    while (status == PAWL_UNAVAILABLE && h2_fixture_in_ms(0) < deadline_ns) {
        status = call_with(fixture->client, "/test.Echo/Unary", pawl_view_of("x"), &answer, &error);
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(5));
    }
    assert_int_equal(status, PAWL_OK);
    assert_int_equal(pawl__h2_client_connects(fixture->client), 2);
    pawl__buf_done(&answer);
}

static void test_closing_a_client_ends_its_calls(void **state)
{
    struct h2_fixture *fixture = *state;
    struct outcome outcome;

    start(fixture);
    outcome_init(&outcome);
    struct pawl__h2_client_ask ask = ask_for("/test.Echo/Hold", &outcome);
    ask.single = true;
    assert_ok(pawl__h2_client_begin(fixture->client, &ask, NULL, &fixture->error), &fixture->error);
    assert_true(h2_fixture_await(&fixture->held, 1));
    pawl__h2_client_close(STEAL(fixture->client));
    assert_true(outcome.done);
    assert_int_equal(outcome.code, PAWL__H2_CANCELLED);
    assert_true(h2_fixture_await(&fixture->gone, 1));
    outcome_done(&outcome);
}

static void test_clients_share_threads(void **state)
{
    struct h2_fixture *fixture = *state;
    AUTO(pawl__h2_dialer_stop_p) struct pawl__h2_dialer *dialer = NULL;
    struct pawl__h2_client *clients[5] = { NULL };
    struct pawl__buf answer = BUF_INIT(0);

    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(pawl__h2_dialer_start(2, NULL, &dialer, &fixture->error), &fixture->error);
    const struct pawl__h2_client_options options = { .dialer = dialer };
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        assert_ok(h2_fixture_connect(fixture, &options, &clients[i], &fixture->error),
                  &fixture->error);
        assert_ok(
            call_with(clients[i], "/test.Echo/Unary", pawl_view_of("d"), &answer, &fixture->error),
            &fixture->error);
    }
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        pawl__h2_client_close(clients[i]);
    }
    pawl__buf_done(&answer);
}

static void test_a_name_is_looked_up(void **state)
{
    struct h2_fixture *fixture = *state;
    char address[64] = "";
    struct pawl__h2_client_options options = { .address = address };

    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    (void)snprintf(address,
                   sizeof(address),
                   "localhost:%s",
                   strrchr(pawl__h2_listens_on(fixture->server), ':') + 1);
    assert_ok(h2_fixture_connect(fixture, &options, &fixture->client, &fixture->error),
              &fixture->error);
    assert_answer(fixture, "/test.Echo/Unary", "by name", "by name");
}

static void test_memory_that_runs_out_is_told(void **state)
{
    struct h2_fixture *fixture = *state;

    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        struct pawl__h2_client *client = NULL;
        struct pawl__buf answer = BUF_INIT(0);
        pawl_status status = h2_fixture_connect(fixture, NULL, &client, &error);
        if (status == PAWL_OK) {
            status = call_with(client, "/test.Echo/Unary", pawl_view_of("x"), &answer, &error);
        }
        bool fired = fault_fired();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        pawl__h2_client_close(client);
        pawl__buf_done(&answer);
    }
    FAULT_WALK (walk) {
        struct pawl__h2 *other = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__h2_start(&fixture->options, &other, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_int_equal(pawl__h2_stop(other, h2_fixture_in_ms(PATIENCE_MS), NULL), PAWL_OK);
    }
}

#define H2_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        H2_TEST(test_a_call_gets_its_answer),
        H2_TEST(test_a_failure_has_code_message_and_details),
        H2_TEST(test_large_messages_pass_and_larger_ones_do_not),
        H2_TEST(test_a_deadline_ends_a_call_on_both_sides),
        H2_TEST(test_a_server_stream_brings_all_messages),
        H2_TEST(test_a_client_stream_is_joined),
        H2_TEST(test_both_sides_talk_in_turns),
        H2_TEST(test_a_bidi_stream_is_read_as_fast_as_its_answers_leave),
        H2_TEST(test_a_cancelled_call_is_told_to_its_handler),
        H2_TEST(test_details_arrive_as_bytes),
        H2_TEST(test_many_threads_share_a_client),
        H2_TEST(test_more_calls_than_streams_wait_their_turn),
        H2_TEST(test_compressed_messages_pass_both_ways),
        H2_TEST(test_a_message_that_inflates_is_refused),
        H2_TEST(test_tls_checks_both_sides_and_names_the_client),
        H2_TEST(test_tls_carries_large_messages),
        H2_TEST(test_wrong_files_are_named),
        H2_TEST(test_a_token_decides_what_may_be_called),
        H2_TEST(test_health_is_checked_and_watched),
        H2_TEST(test_stopping_lets_running_calls_end),
        H2_TEST(test_stopping_does_not_wait_for_ever),
        H2_TEST(test_a_client_finds_a_server_that_came_back),
        H2_TEST(test_closing_a_client_ends_its_calls),
        H2_TEST(test_clients_share_threads),
        H2_TEST(test_a_name_is_looked_up),
        H2_TEST(test_memory_that_runs_out_is_told),
    };

    return cmocka_run_group_tests_name("h2", tests, NULL, NULL);
}
