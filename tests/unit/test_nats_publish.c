/* Publishing, one by one and many at once: what is stored, what may be, what is not. */
#include "lib/nats_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl__nats_outgoing text_message(struct nats_fixture *f, const char *text)
{
    return (struct pawl__nats_outgoing){ .subject = f->subject,
                                         .payload = pawl_view_of(text),
                                         .id = pawl_view_of(text) };
}

static struct pawl__nats_publisher *open_publisher(struct nats_fixture *f, size_t pending_max)
{
    struct pawl__nats_publisher *publisher = NULL;

    assert_ok(pawl__nats_publisher_open(f->nats, pending_max, &publisher, &f->error), &f->error);
    return publisher;
}

static void test_a_stored_message_has_its_place(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = text_message(f, "a");

    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    assert_int_equal(published.fate, PAWL__NATS_STORED);
    assert_int_equal(published.sequence, 1);
    assert_string_equal(published.stream, f->stream);
    assert_false(published.duplicate);

    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    assert_true(published.duplicate);
    assert_int_equal(published.sequence, 1);
    assert_int_equal(nats_fixture_stream(f).last_seq, 1);
}

static void test_expectations_keep_the_order_of_a_subject(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = text_message(f, "a");

    message.expect_last = true;
    message.expect_stream = f->stream;
    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    message.id = pawl_view_of("b");
    assert_status(
        pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_CONFLICT, &f->error);
    assert_int_equal(f->error.native, 10071);
    assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    message.last_subject_seq = 1;
    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    message.expect_stream = "other";
    message.id = pawl_view_of("c");
    assert_status(
        pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_CONFLICT, &f->error);
    assert_int_equal(f->error.native, 10060);
}

static void test_a_message_that_nobody_takes_is_not_stored(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = { .subject = "nobody.listens" };
    static const char *const bad[] = { "", "a b", "a.*", "a.>", ".a", "a.", "a..b" };

    assert_status(
        pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_message(&f->error, "publish to 'nobody.listens': no stream takes the subject");
    assert_true(f->error.retryable);
    assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        message.subject = bad[i];
        assert_status(
            pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_INVALID, &f->error);
    }
}

static void test_a_message_above_the_servers_limit_is_refused(void **state)
{
    struct nats_fixture *f = *state;
    int64_t limit = pawl__nats_payload_max(f->nats);
    struct pawl__nats_published published;
    char *bytes = calloc(1, (size_t)limit + 1);
    struct pawl__nats_outgoing message = { .subject = f->subject,
                                           .payload = { bytes, (size_t)limit } };

    assert_int_equal(limit, 65536);
    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    message.payload.len++;
    assert_status(
        pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "message has 65537 bytes, the server's limit is 65536");
    assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    message.payload.len--;
    message.id = pawl_view_of("with a header it is too large");
    assert_status(
        pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    free(bytes);
}

static void test_silence_means_maybe_stored(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = text_message(f, "a");

    nats_server_stall(f->server);
    int64_t begin_ms = nats_fixture_now_ms();
    pawl_status status = pawl__nats_publish(f->nats, &message, &published, &f->error);
    assert_true(status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE);
    assert_true(f->error.retryable);
    assert_int_equal(published.fate, PAWL__NATS_MAYBE_STORED);
    assert_true(nats_fixture_now_ms() - begin_ms < 5000);
    nats_server_resume(f->server);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
}

static size_t collect_all(struct nats_fixture *f,
                          struct pawl__nats_publisher *publisher,
                          struct pawl__nats_published *results,
                          size_t max)
{
    int64_t until_ms = nats_fixture_now_ms() + 20000;
    size_t count = 0;

    while (pawl__nats_publisher_pending(publisher, NULL, 0) > 0) {
        size_t more = 0;
        assert_true(nats_fixture_now_ms() < until_ms);
        assert_ok(pawl__nats_publisher_collect(
                      publisher, 200, NULL, &results[count], max - count, &more, &f->error),
                  &f->error);
        count += more;
    }
    return count;
}

static void test_many_are_sent_before_the_first_answer(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_publisher *publisher = open_publisher(f, 100);
    struct pawl__nats_published results[101];
    uint64_t tokens[100];

    for (uint64_t i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof(text), "e%d", (int)i);
        struct pawl__nats_outgoing message = text_message(f, text);
        assert_ok(pawl__nats_publisher_send(publisher, &message, 1000 + i, &f->error), &f->error);
    }
    struct pawl__nats_outgoing message = text_message(f, "one more");
    assert_status(
        pawl__nats_publisher_send(publisher, &message, 0, &f->error), PAWL_BUSY, &f->error);
    assert_int_equal(pawl__nats_publisher_pending(publisher, tokens, 100), 100);
    assert_int_equal(tokens[0], 1000);
    assert_int_equal(tokens[99], 1099);
    assert_int_equal(collect_all(f, publisher, results, 101), 100);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(results[i].fate, PAWL__NATS_STORED);
        assert_int_equal(results[i].token, 1000 + i);
        assert_int_equal(results[i].sequence, i + 1);
    }
    size_t none = 7;
    assert_ok(pawl__nats_publisher_collect(publisher, 10000, NULL, results, 1, &none, &f->error),
              &f->error); /* nothing is pending: it does not wait */
    assert_int_equal(none, 0);
    pawl__nats_publisher_close(publisher);
}

static void test_each_of_many_has_its_own_fate(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_publisher *publisher = open_publisher(f, 10);
    struct pawl__nats_published results[4];
    struct pawl__nats_outgoing message = text_message(f, "a");

    assert_ok(pawl__nats_publisher_send(publisher, &message, 1, &f->error), &f->error);
    assert_ok(pawl__nats_publisher_send(publisher, &message, 2, &f->error), &f->error);
    message.id = pawl_view_of("b");
    message.expect_last = true;
    assert_ok(pawl__nats_publisher_send(publisher, &message, 3, &f->error), &f->error);
    assert_int_equal(collect_all(f, publisher, results, 4), 3);
    assert_int_equal(results[0].fate, PAWL__NATS_STORED);
    assert_int_equal(results[1].fate, PAWL__NATS_STORED);
    assert_true(results[1].duplicate);
    assert_int_equal(results[2].fate, PAWL__NATS_NOT_STORED);
    assert_int_equal(results[2].status, PAWL_CONFLICT);
    assert_int_equal(results[2].native, 10071);
    message = (struct pawl__nats_outgoing){ .subject = "nobody.listens" };
    assert_ok(pawl__nats_publisher_send(publisher, &message, 4, &f->error), &f->error);
    assert_int_equal(collect_all(f, publisher, results, 4), 1);
    assert_int_equal(results[0].status, PAWL_NOT_FOUND);
    assert_int_equal(results[0].fate, PAWL__NATS_NOT_STORED);
    pawl__nats_publisher_close(publisher);
}

static void test_a_kill_leaves_the_unanswered_as_maybe_stored(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_publisher *publisher = open_publisher(f, 100);
    struct pawl__nats_published results[100];
    size_t maybe = 0;

    nats_server_stall(f->server); /* sent, not answered */
    for (uint64_t i = 0; i < 10; i++) {
        char text[16];
        snprintf(text, sizeof(text), "e%d", (int)i);
        struct pawl__nats_outgoing message = text_message(f, text);
        assert_ok(pawl__nats_publisher_send(publisher, &message, i, &f->error), &f->error);
    }
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    assert_int_equal(collect_all(f, publisher, results, 100), 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(results[i].token, i);
        maybe += results[i].fate == PAWL__NATS_MAYBE_STORED && results[i].retryable;
    }
    assert_int_equal(maybe, 10);
    nats_fixture_await(f, PAWL__NATS_RECONNECTING);
    struct pawl__nats_outgoing message = text_message(f, "later");
    assert_status(
        pawl__nats_publisher_send(publisher, &message, 1, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_int_equal(pawl__nats_publisher_pending(publisher, NULL, 0), 0);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    assert_ok(pawl__nats_publisher_send(publisher, &message, 1, &f->error), &f->error);
    assert_int_equal(collect_all(f, publisher, results, 100), 1);
    assert_int_equal(results[0].fate, PAWL__NATS_STORED);
    pawl__nats_publisher_close(publisher);
}

static void test_answers_are_read_strictly(void **state)
{
    static const char *const bad[] = { "",
                                       "x",
                                       "[]",
                                       "{}",
                                       "{\"stream\":\"S\"}",
                                       "{\"seq\":0,\"stream\":\"S\"}",
                                       "{\"seq\":-1,\"stream\":\"S\"}",
                                       "{\"seq\":\"1\",\"stream\":\"S\"}",
                                       "{\"error\":7}",
                                       "{\"seq\":1,\"stream\":\"S\",\"duplicate\":1}" };
    struct pawl__nats_published published = { .fate = PAWL__NATS_NOT_STORED };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(pawl__nats_parse_answer(pawl_view_of(bad[i]), &published));
        assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    }
    assert_true(pawl__nats_parse_answer(
        pawl_view_of("{\"stream\":\"S\",\"domain\":\"d\",\"seq\":9,\"duplicate\":true}"),
        &published));
    assert_int_equal(published.sequence, 9);
    assert_true(pawl__nats_parse_answer(
        pawl_view_of(
            "{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"wait\"},\"seq\":0}"),
        &published));
    assert_int_equal(published.status, PAWL_UNAVAILABLE);
    assert_true(published.retryable);
    assert_string_equal(published.why, "wait");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        nats_test(test_a_stored_message_has_its_place),
        nats_test(test_expectations_keep_the_order_of_a_subject),
        nats_test(test_a_message_that_nobody_takes_is_not_stored),
        nats_test(test_a_message_above_the_servers_limit_is_refused),
        nats_test(test_silence_means_maybe_stored),
        nats_test(test_many_are_sent_before_the_first_answer),
        nats_test(test_each_of_many_has_its_own_fate),
        nats_test(test_a_kill_leaves_the_unanswered_as_maybe_stored),
        cmocka_unit_test(test_answers_are_read_strictly),
    };

    return cmocka_run_group_tests_name("nats_publish", tests, nats_fixture_start, nats_fixture_end);
}
