/* Streams, consumers, fetching and acknowledging, on a real nats-server. */
#include "lib/nats_fixture.h"

#include <nats/nats.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/cancel.h"
#include "net/nats/internal.h"

static const struct pawl__nats_request one_second = { .batch_max = 100, .expires_ms = 1000 };

static struct pawl__nats_fetcher *open_fetcher(struct nats_fixture *f)
{
    struct pawl__nats_fetcher *fetcher = NULL;

    assert_ok(pawl__nats_fetcher_open(f->nats, f->stream, "c", &fetcher, &f->error), &f->error);
    return fetcher;
}

static struct pawl__nats_batch fetch(struct nats_fixture *f,
                                     struct pawl__nats_fetcher *fetcher,
                                     struct pawl__nats_request request)
{
    struct pawl__nats_batch batch = { 0 };

    assert_ok(pawl__nats_fetch(fetcher, &request, &batch, &f->error), &f->error);
    return batch;
}

static struct pawl__nats_consumer consumer_now(struct nats_fixture *f)
{
    struct pawl__nats_consumer consumer;

    assert_ok(pawl__nats_consumer_info(f->nats, f->stream, "c", &consumer, &f->error), &f->error);
    return consumer;
}

static void test_a_stream_is_made_with_our_defaults(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stream stream = nats_fixture_stream(f);
    char all[48];

    snprintf(all, sizeof(all), "%s.>", f->stream);
    assert_string_equal(stream.name, f->stream);
    assert_string_equal(stream.subjects, all);
    assert_true(stream.created_ns > 0);
    assert_int_equal(stream.max_age_ns, PAWL__NATS_MAX_AGE_NS);
    assert_int_equal(stream.duplicates_ns, PAWL__NATS_DUPLICATES_NS);
    assert_false(stream.in_memory);
    assert_int_equal(stream.replicas, 1);
    assert_int_equal(stream.last_seq, 0);
    assert_int_equal(pawl__nats_check_stream(&stream).count, 0);

    nats_fixture_publish(f, "e", 1, 3);
    stream = nats_fixture_stream(f);
    assert_int_equal(stream.messages, 3);
    assert_int_equal(stream.first_seq, 1);
    assert_int_equal(stream.last_seq, 3);
    assert_true(stream.last_ns >= stream.first_ns && stream.first_ns > 0);
}

static void test_a_stream_that_exists_otherwise_is_a_conflict(void **state)
{
    struct nats_fixture *f = *state;
    char all[48];
    const char *subjects[] = { all };
    struct pawl__nats_stream_options options = { .subjects = subjects, .subject_count = 1 };

    snprintf(all, sizeof(all), "%s.>", f->stream);
    assert_ok(pawl__nats_stream_create(f->nats, f->stream, &options, NULL, &f->error), &f->error);
    options.max_age_ns = NS_PER_S;
    assert_status(pawl__nats_stream_create(f->nats, f->stream, &options, NULL, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_int_equal(f->error.native, 10058);
    assert_status(pawl__nats_stream_create(f->nats, "other", &options, NULL, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_int_equal(f->error.native, 10065);
    options.replicas = 3;
    assert_status(pawl__nats_stream_create(f->nats, "other", &options, NULL, &f->error),
                  PAWL_UNSUPPORTED,
                  &f->error);
}

static void test_arguments_are_checked_before_anything_is_sent(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stream stream;
    struct pawl__nats_batch batch;
    struct pawl__nats_stream_options options = { .subject_count = 1 };
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    static const struct pawl__nats_request bad[] = {
        { .batch_max = 0, .expires_ms = 100 },
        { .batch_max = PAWL__NATS_BATCH_MAX + 1, .expires_ms = 100 },
        { .batch_max = 1, .expires_ms = -1 },
        { .batch_max = 1, .expires_ms = 0, .heartbeat_ms = 1 },
        { .batch_max = 1, .expires_ms = PAWL__NATS_EXPIRES_MS_MAX + 1 },
        { .batch_max = 1, .expires_ms = 100, .heartbeat_ms = 51 },
        { .batch_max = 1, .expires_ms = 100, .bytes_max = -1 },
    };
    static const char *const names[] = { "", "a.b", "a b", "a*", "a>", "a/b" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_status(
            pawl__nats_stream_info(f->nats, names[i], &stream, &f->error), PAWL_INVALID, &f->error);
    }
    assert_status(
        pawl__nats_stream_info(f->nats, NULL, &stream, &f->error), PAWL_INVALID, &f->error);
    assert_status(pawl__nats_stream_info(NULL, "S", &stream, &f->error), PAWL_INVALID, &f->error);
    assert_status(
        pawl__nats_stream_create(f->nats, "T", &options, NULL, &f->error), PAWL_INVALID, &f->error);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(
            pawl__nats_fetch(fetcher, &bad[i], &batch, &f->error), PAWL_INVALID, &f->error);
    }
    pawl__nats_fetcher_close(fetcher);
}

static void test_an_unknown_stream_or_consumer_is_not_found(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stream stream;
    struct pawl__nats_consumer consumer;
    struct pawl__nats_stored stored;
    struct pawl__nats_fetcher *fetcher = NULL;

    assert_status(
        pawl__nats_stream_info(f->nats, "nosuch", &stream, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_int_equal(f->error.native, 10059);
    assert_message(&f->error, "stream 'nosuch'");
    assert_status(pawl__nats_consumer_info(f->nats, f->stream, "nosuch", &consumer, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_int_equal(f->error.native, 10014);
    assert_status(pawl__nats_fetcher_open(f->nats, f->stream, "nosuch", &fetcher, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_status(pawl__nats_stream_get(f->nats, f->stream, 7, &stored, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_int_equal(f->error.native, 10037);
    assert_ok(pawl__nats_consumer_delete(f->nats, f->stream, "nosuch", &f->error), &f->error);
}

static void test_a_message_is_read_by_its_sequence(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stored stored;

    nats_fixture_publish(f, "e", 1, 2);
    assert_ok(pawl__nats_stream_get(f->nats, f->stream, 2, &stored, &f->error), &f->error);
    assert_int_equal(stored.sequence, 2);
    assert_int_equal(stored.stored_ns, nats_fixture_stream(f).last_ns);
    assert_string_equal(stored.subject, f->subject);
    assert_true(pawl__view_is(pawl__buf_view(&stored.id), "e2"));
    assert_true(pawl__view_is(pawl__buf_view(&stored.payload), "e2"));
    pawl__nats_stored_done(&stored);
}

static void test_a_consumer_is_what_we_need_and_is_never_changed_silently(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_consumer consumer = consumer_now(f);

    assert_int_equal(pawl__nats_compare_consumer(&consumer, &f->need).count, 0);
    assert_int_equal(consumer.max_deliver, -1);
    assert_int_equal(consumer.ack_policy, PAWL__NATS_ACK_EXPLICIT);
    assert_true(consumer.durable);
    f->need.max_ack_pending = 5;
    assert_status(pawl__nats_consumer_create(f->nats, f->stream, &f->need, 0, NULL, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_message(&f->error, "is there already");
    assert_int_equal(consumer_now(f).max_ack_pending, PAWL__NATS_ACK_PENDING_MAX);
}

static void test_a_foreign_consumer_is_refused_with_every_danger_named(void **state)
{
    struct nats_fixture *f = *state;
    jsConsumerConfig config;
    jsErrCode code = 0;
    struct pawl__nats_consumer consumer;
    struct pawl__nats_differences found;

    jsConsumerConfig_Init(&config);
    config.Durable = "foreign";
    config.AckPolicy = js_AckAll;
    config.MaxDeliver = 5;
    config.AckWait = NS_PER_S;
    config.MaxAckPending = 10;
    config.FilterSubject = f->subject;
    assert_int_equal(js_AddConsumer(NULL, f->nats->js, f->stream, &config, NULL, &code), NATS_OK);
    assert_ok(pawl__nats_consumer_info(f->nats, f->stream, "foreign", &consumer, &f->error),
              &f->error);
    found = pawl__nats_compare_consumer(&consumer, &f->need);
    assert_int_equal(found.count, 5);
    assert_int_equal(found.dangerous_count, 4);
    assert_status(
        pawl__nats_refuse(&found, "consumer", "foreign", &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "consumer 'foreign': ack_policy is all, must be explicit");
    assert_message(&f->error, "max_deliver is 5, must be -1");
    assert_message(&f->error, "max_ack_pending is 10");
    assert_message(&f->error, "filter_subject is");
}

static void test_a_batch_brings_everything_about_its_messages(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);

    nats_fixture_publish(f, "e", 1, 3);
    int64_t begin_ms = nats_fixture_now_ms();
    struct pawl__nats_batch batch = fetch(f, fetcher, one_second);
    assert_int_equal(batch.count, 3);
    assert_true(nats_fixture_now_ms() - begin_ms < 900); /* what is there comes at once */
    for (size_t i = 0; i < batch.count; i++) {
        const struct pawl__nats_message *message = &batch.messages[i];
        char text[24];
        snprintf(text, sizeof(text), "e%zu", i + 1);
        assert_true(pawl__view_is(message->subject, f->subject));
        assert_true(pawl__view_is(message->payload, text));
        assert_true(pawl__view_is(message->id, text));
        assert_int_equal(message->sequence, i + 1);
        assert_int_equal(message->consumer_sequence, i + 1);
        assert_int_equal(message->redelivered, 0);
        assert_int_equal(message->pending, 2 - i);
        assert_false(message->headers_unreadable);
        assert_ok(pawl__nats_ack(fetcher, message, &f->error), &f->error);
    }
    assert_int_equal(batch.messages[2].stored_ns, nats_fixture_stream(f).last_ns);
    pawl__nats_batch_done(&batch);
    assert_ok(pawl__nats_ping(f->nats, &f->error), &f->error);
    assert_int_equal(consumer_now(f).ack_floor_seq, 3);
    pawl__nats_fetcher_close(fetcher);
}

static void test_an_idle_stream_gives_an_empty_batch_in_time(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);

    for (int i = 0; i < 3; i++) {
        int64_t begin_ms = nats_fixture_now_ms();
        struct pawl__nats_batch batch =
            fetch(f, fetcher, (struct pawl__nats_request){ .batch_max = 10, .expires_ms = 300 });
        assert_int_equal(batch.count, 0);
        assert_true(nats_fixture_now_ms() - begin_ms < 1500);
        pawl__nats_batch_done(&batch);
    }
    nats_fixture_publish(
        f, "e", 1, 1); /* and a late word about those says nothing about this one */
    nats_fixture_drain(f, fetcher, 1);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_fetch_that_must_not_wait_returns_at_once(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    const struct pawl__nats_request now = { .batch_max = 10 };

    int64_t begin_ms = nats_fixture_now_ms();
    struct pawl__nats_batch batch = fetch(f, fetcher, now);
    assert_int_equal(batch.count, 0);
    nats_fixture_publish(f, "e", 1, 3);
    batch = fetch(f, fetcher, now);
    assert_int_equal(batch.count, 3);
    assert_true(nats_fixture_now_ms() - begin_ms < 1000);
    pawl__nats_batch_done(&batch);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_batch_is_bounded_by_messages_and_bytes(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    char large[4000];
    struct pawl__nats_published published;

    nats_fixture_publish(f, "e", 1, 10);
    struct pawl__nats_batch batch =
        fetch(f, fetcher, (struct pawl__nats_request){ .batch_max = 4, .expires_ms = 500 });
    assert_int_equal(batch.count, 4);
    pawl__nats_batch_done(&batch);
    batch =
        fetch(f,
              fetcher,
              (struct pawl__nats_request){ .batch_max = 6, .expires_ms = 500, .bytes_max = 250 });
    assert_in_range(batch.count, 1, 5);
    size_t rest = 6 - batch.count;
    pawl__nats_batch_done(&batch);
    nats_fixture_drain(f, fetcher, rest);

    memset(large, 'x', sizeof(large)); /* one that is larger than the limit comes alone */
    struct pawl__nats_outgoing message = { .subject = f->subject,
                                           .payload = { large, sizeof(large) } };
    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    batch =
        fetch(f,
              fetcher,
              (struct pawl__nats_request){ .batch_max = 6, .expires_ms = 500, .bytes_max = 1000 });
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.messages[0].payload.len, sizeof(large));
    pawl__nats_batch_done(&batch);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_nak_with_delay_brings_a_message_again_later(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);

    nats_fixture_publish(f, "e", 1, 1);
    struct pawl__nats_batch batch = fetch(f, fetcher, one_second);
    assert_int_equal(batch.count, 1);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_ok(pawl__nats_in_progress(fetcher, &batch.messages[0], &f->error), &f->error);
    assert_ok(pawl__nats_nak(fetcher, &batch.messages[0], 400 * NS_PER_MS, &f->error), &f->error);
    pawl__nats_batch_done(&batch);
    while (batch.count == 0) {
        assert_true(nats_fixture_now_ms() - begin_ms < 10000);
        batch = fetch(f, fetcher, one_second);
    }
    assert_true(nats_fixture_now_ms() - begin_ms >= 350);
    assert_int_equal(batch.messages[0].redelivered, 1);
    assert_int_equal(batch.messages[0].sequence, 1);
    assert_status(
        pawl__nats_nak(fetcher, &batch.messages[0], -1, &f->error), PAWL_INVALID, &f->error);
    assert_ok(pawl__nats_nak(fetcher, &batch.messages[0], 0, &f->error), &f->error);
    pawl__nats_batch_done(&batch);
    nats_fixture_drain(f, fetcher, 1);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_consumer_is_made_anew_at_a_position(void **state)
{
    struct nats_fixture *f = *state;

    nats_fixture_publish(f, "e", 1, 10);
    nats_fixture_make_consumer(f, 8);
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_batch batch = fetch(f, fetcher, one_second);
    assert_int_equal(batch.count, 3);
    assert_int_equal(batch.messages[0].sequence, 8);
    pawl__nats_batch_done(&batch);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_consumer_deleted_under_a_fetch_is_noticed(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_batch batch = { 0 };
    struct pawl__nats_request request = { .batch_max = 10,
                                          .expires_ms = 2000,
                                          .heartbeat_ms = 200 };

    assert_ok(pawl__nats_consumer_delete(f->nats, f->stream, "c", &f->error), &f->error);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(
        pawl__nats_fetch(fetcher, &request, &batch, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_true(nats_fixture_now_ms() - begin_ms < 1500);
    assert_int_equal(f->error.native, 10014);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_server_stalled_in_mid_fetch_is_noticed_by_its_heartbeat(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_batch batch = { 0 };
    struct pawl__nats_request request = { .batch_max = 10,
                                          .expires_ms = 60000,
                                          .heartbeat_ms = 200 };

    nats_server_stall(f->server);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(
        pawl__nats_fetch(fetcher, &request, &batch, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_true(f->error.retryable);
    assert_true(nats_fixture_now_ms() - begin_ms < 5000);
    nats_server_resume(f->server);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    pawl__nats_fetcher_close(fetcher);
}

static void wait_then_kill(void *context)
{
    poll(NULL, 0, 200);
    pawl_status killed = nats_server_kill(context, NULL);
    (void)killed; /* the test sees it by the server */
}

static void test_a_server_killed_in_mid_fetch_ends_it(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_batch batch = { 0 };
    struct pawl__thread thread = { 0 };
    struct pawl__nats_request request = { .batch_max = 10, .expires_ms = 60000 };

    assert_ok(pawl__thread_start(&thread, "killer", wait_then_kill, f->server, &f->error),
              &f->error);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(
        pawl__nats_fetch(fetcher, &request, &batch, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_true(f->error.retryable);
    assert_true(nats_fixture_now_ms() - begin_ms < 3000);
    pawl__thread_join(&thread);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    nats_fixture_publish(f, "e", 1, 2);
    nats_fixture_drain(f, fetcher, 2); /* the same fetcher goes on */
    pawl__nats_fetcher_close(fetcher);
}

static void wait_then_cancel(void *context)
{
    poll(NULL, 0, 100);
    pawl__cancel_now(context);
}

static void test_a_fetch_can_be_cancelled(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_batch batch = { 0 };
    struct pawl__cancel cancel;
    struct pawl__thread thread = { 0 };
    struct pawl__nats_request request = { .batch_max = 10, .expires_ms = 60000, .cancel = &cancel };

    pawl__cancel_init(&cancel, NULL);
    assert_ok(pawl__thread_start(&thread, "canceller", wait_then_cancel, &cancel, &f->error),
              &f->error);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(
        pawl__nats_fetch(fetcher, &request, &batch, &f->error), PAWL_CANCELLED, &f->error);
    assert_true(nats_fixture_now_ms() - begin_ms < 2000);
    pawl__thread_join(&thread);
    pawl__cancel_done(&cancel);
    pawl__nats_fetcher_close(fetcher);
}

static void test_a_server_killed_between_fetch_and_ack_brings_it_all_again(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);

    nats_fixture_publish(f, "e", 1, 5);
    struct pawl__nats_batch batch = fetch(f, fetcher, one_second);
    assert_int_equal(batch.count, 5);
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_RECONNECTING);
    assert_status(
        pawl__nats_ack(fetcher, &batch.messages[0], &f->error), PAWL_UNAVAILABLE, &f->error);
    pawl__nats_batch_done(&batch);
    assert_status(
        pawl__nats_fetch(fetcher, &one_second, &batch, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    nats_fixture_make_consumer(f, 1);
    nats_fixture_drain(f, fetcher, 5);
    pawl__nats_fetcher_close(fetcher);
}

struct headers {
    char text[512];
};

static pawl_status see_header(void *context, pawl_view name, pawl_view value, pawl_error *reterr)
{
    struct headers *headers = context;
    size_t len = strlen(headers->text);

    (void)reterr;
    snprintf(&headers->text[len],
             sizeof(headers->text) - len,
             "%.*s=%.*s;",
             VIEW_ARGS(name),
             VIEW_ARGS(value));
    return PAWL_OK;
}

static void test_headers_with_odd_bytes_arrive_or_are_refused(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = open_fetcher(f);
    struct pawl__nats_published published;
    struct headers headers = { "" };
    struct pawl__nats_header odd = { pawl_view_of("X-Name"),
                                     pawl_view_of("t\xc3\xa4g \x01\xff: =") };
    struct pawl__nats_outgoing message = { .subject = f->subject,
                                           .headers = &odd,
                                           .header_count = 1 };
    static const struct pawl__nats_header bad[] = {
        { { "X", 1 }, { "a\r\nNats-Msg-Id: evil", 20 } },
        { { "X", 1 }, { "a\0b", 3 } },
        { { "X:Y", 3 }, { "a", 1 } },
        { { "", 0 }, { "a", 1 } },
        { { "X Y", 3 }, { "a", 1 } },
    };

    assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
    struct pawl__nats_batch batch = fetch(f, fetcher, one_second);
    assert_int_equal(batch.count, 1);
    assert_ok(pawl__nats_message_headers(&batch.messages[0], see_header, &headers, &f->error),
              &f->error);
    assert_string_equal(headers.text, "X-Name=t\xc3\xa4g \x01\xff: =;");
    pawl__nats_batch_done(&batch);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        message.headers = &bad[i];
        assert_status(
            pawl__nats_publish(f->nats, &message, &published, &f->error), PAWL_INVALID, &f->error);
        assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
    }
    pawl__nats_fetcher_close(fetcher);
}

static void test_the_stream_of_a_subject_and_its_last_message_are_found(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stored stored;
    char name[PAWL__NATS_NAME_SIZE] = "";

    assert_ok(pawl__nats_stream_of(f->nats, f->subject, name, &f->error), &f->error);
    assert_string_equal(name, f->stream);
    assert_status(pawl__nats_stream_of(f->nats, "nobody.listens", name, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_message(&f->error, "no stream takes the subject 'nobody.listens'");
    assert_status(pawl__nats_stream_last(f->nats, f->stream, f->subject, &stored, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    nats_fixture_publish(f, "e", 1, 3);
    assert_ok(pawl__nats_stream_last(f->nats, f->stream, f->subject, &stored, &f->error),
              &f->error);
    assert_int_equal(stored.sequence, 3);
    assert_true(pawl__view_is(pawl__buf_view(&stored.id), "e3"));
    pawl__nats_stored_done(&stored);
    assert_status(pawl__nats_stream_last(f->nats, "no_such", f->subject, &stored, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_a_restarted_server_has_another_id(void **state)
{
    struct nats_fixture *f = *state;
    char before[PAWL__NATS_SERVER_ID_SIZE] = "";
    char after[PAWL__NATS_SERVER_ID_SIZE] = "";

    assert_ok(pawl__nats_server_id(f->nats, before, &f->error), &f->error);
    assert_ok(pawl__nats_server_id(f->nats, after, &f->error), &f->error);
    assert_string_equal(before, after);
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_RECONNECTING);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    assert_ok(pawl__nats_server_id(f->nats, after, &f->error), &f->error);
    assert_string_not_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        nats_test(test_a_stream_is_made_with_our_defaults),
        nats_test(test_the_stream_of_a_subject_and_its_last_message_are_found),
        nats_test(test_a_restarted_server_has_another_id),
        nats_test(test_a_stream_that_exists_otherwise_is_a_conflict),
        nats_test(test_arguments_are_checked_before_anything_is_sent),
        nats_test(test_an_unknown_stream_or_consumer_is_not_found),
        nats_test(test_a_message_is_read_by_its_sequence),
        nats_test(test_a_consumer_is_what_we_need_and_is_never_changed_silently),
        nats_test(test_a_foreign_consumer_is_refused_with_every_danger_named),
        nats_test(test_a_batch_brings_everything_about_its_messages),
        nats_test(test_an_idle_stream_gives_an_empty_batch_in_time),
        nats_test(test_a_fetch_that_must_not_wait_returns_at_once),
        nats_test(test_a_batch_is_bounded_by_messages_and_bytes),
        nats_test(test_a_nak_with_delay_brings_a_message_again_later),
        nats_test(test_a_consumer_is_made_anew_at_a_position),
        nats_test(test_a_consumer_deleted_under_a_fetch_is_noticed),
        nats_test(test_a_server_stalled_in_mid_fetch_is_noticed_by_its_heartbeat),
        nats_test(test_a_server_killed_in_mid_fetch_ends_it),
        nats_test(test_a_fetch_can_be_cancelled),
        nats_test(test_a_server_killed_between_fetch_and_ack_brings_it_all_again),
        nats_test(test_headers_with_odd_bytes_arrive_or_are_refused),
    };

    return cmocka_run_group_tests_name("nats_stream", tests, nats_fixture_start, nats_fixture_end);
}
