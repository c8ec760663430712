/* JetStream as a source: binding, and what happens to servers and consumers meanwhile. */
#include "lib/nats_fixture.h"

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>

#include "delivery/sources/jetstream.h"
#include "net/nats/internal.h"

static const struct delivery_fetch many = { .messages_max = 100,
                                            .bytes_max = 1 << 20,
                                            .wait_ns = 300 * NS_PER_MS };

static const struct pawl__nats_options connection = {
    .connect_ms_max = 2000, .answer_ms_max = 2000, .reconnect_ms_min = 20, .reconnect_ms_max = 100
};

static struct delivery_jetstream_options options_of(struct nats_fixture *f)
{
    return (struct delivery_jetstream_options){ .url = nats_server_url(f->server),
                                                .connection = &connection,
                                                .stream = f->stream,
                                                .consumer = "p" };
}

static struct delivery_source *open_source(struct nats_fixture *f,
                                           const struct delivery_jetstream_options *options)
{
    struct delivery_source *source = NULL;

    assert_ok(pawl__delivery_jetstream_open(options, &source, &f->error), &f->error);
    return source;
}

static struct delivery_batch fetch(struct nats_fixture *f, struct delivery_source *source)
{
    struct delivery_batch batch = { 0 };

    assert_ok(source->ops->fetch(source, &many, &batch, &f->error), &f->error);
    return batch;
}

static void test_a_consumer_is_made_by_the_pipeline_and_kept(void **state)
{
    struct nats_fixture *f = *state;
    struct delivery_jetstream_options options = options_of(f);
    struct delivery_source *source = open_source(f, &options);
    struct delivery_stream_state now;
    struct delivery_batch batch = { 0 };

    nats_fixture_publish(f, "e", 1, 4);
    assert_ok(source->ops->state(source, 0, &now, &f->error), &f->error);
    assert_false(now.consumer_found);
    assert_status(
        source->ops->fetch(source, &many, &batch, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_true(f->error.retryable);
    assert_ok(source->ops->restart_at(source, 3, &f->error), &f->error);
    batch = fetch(f, source);
    assert_int_equal(batch.count, 2);
    assert_int_equal(batch.messages[0].place.sequence, 3);
    assert_int_equal(batch.messages[0].header_count, 1);
    assert_true(pawl__view_is(pawl__delivery_header(&batch.messages[1], "nats-msg-id"), "e4"));
    assert_ok(source->ops->ack(source, batch.messages, 2, &f->error), &f->error);
    source->ops->close(source);

    source = open_source(f, &options);
    assert_ok(source->ops->state(source, 4, &now, &f->error), &f->error);
    assert_true(now.consumer_found);
    assert_int_equal(now.delivered, 4);
    assert_true(now.age_max_ns == PAWL__NATS_MAX_AGE_NS && now.oldest_age_ns > 0);
    assert_int_equal(fetch(f, source).count, 0);
    source->ops->close(source);
}

static void test_what_is_not_fit_is_refused_on_bind(void **state)
{
    struct nats_fixture *f = *state;
    struct delivery_jetstream_options options = options_of(f);
    struct delivery_source *source = NULL;
    jsConsumerConfig config;
    jsStreamConfig stream;
    const char *subjects[] = { "memory.>" };

    options.stream = "nosuch";
    assert_status(
        pawl__delivery_jetstream_open(&options, &source, &f->error), PAWL_NOT_FOUND, &f->error);
    options.stream = f->stream;
    jsConsumerConfig_Init(&config);
    config.Durable = "p";
    config.AckPolicy = js_AckAll;
    config.MaxAckPending = 50000;
    assert_int_equal(js_AddConsumer(NULL, f->nats->js, f->stream, &config, NULL, NULL), NATS_OK);
    assert_status(
        pawl__delivery_jetstream_open(&options, &source, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "consumer 'p': ack_policy is all, must be explicit");

    jsStreamConfig_Init(&stream);
    stream.Name = "MEMORY";
    stream.Subjects = subjects;
    stream.SubjectsLen = 1;
    stream.Storage = js_MemoryStorage;
    assert_int_equal(js_AddStream(NULL, f->nats->js, &stream, NULL, NULL), NATS_OK);
    options.stream = "MEMORY";
    assert_status(
        pawl__delivery_jetstream_open(&options, &source, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "stream 'MEMORY': storage is memory, must be file");
    options.url = "nats://127.0.0.1:9";
    assert_status(
        pawl__delivery_jetstream_open(&options, &source, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_null(source);
}

static void test_no_more_is_on_its_way_than_allowed(void **state)
{
    struct nats_fixture *f = *state;
    struct delivery_jetstream_options options = options_of(f);
    struct delivery_message first[4];

    options.max_ack_pending = 4;
    struct delivery_source *source = open_source(f, &options);
    nats_fixture_publish(f, "e", 1, 6);
    assert_ok(source->ops->restart_at(source, 1, &f->error), &f->error);
    struct delivery_batch batch = fetch(f, source);
    assert_int_equal(batch.count, 4);
    memcpy(first, batch.messages, sizeof(first));
    int64_t begin_ms = nats_fixture_now_ms();
    assert_int_equal(fetch(f, source).count, 0);
    assert_true(nats_fixture_now_ms() - begin_ms < 2000);
    assert_ok(source->ops->ack(source, first, 4, &f->error), &f->error);
    assert_int_equal(fetch(f, source).count, 2);
    source->ops->close(source);
}

static void test_a_broken_connection_is_told_and_mended(void **state)
{
    struct nats_fixture *f = *state;
    struct delivery_jetstream_options options = options_of(f);
    struct delivery_source *source = open_source(f, &options);
    struct delivery_stream_state now;
    struct delivery_batch batch = { 0 };

    nats_fixture_publish(f, "e", 1, 3);
    assert_ok(source->ops->restart_at(source, 1, &f->error), &f->error);
    assert_int_equal(fetch(f, source).count, 3);
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    pawl_status status;
    int64_t until_ms = nats_fixture_now_ms() + 10000;
    do {
        status = source->ops->fetch(source, &many, &batch, &f->error);
        assert_true(nats_fixture_now_ms() < until_ms);
    } while (status == PAWL_OK);
    assert_int_equal(status, PAWL_UNAVAILABLE);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    do {
        status = source->ops->state(source, 3, &now, &f->error);
        assert_true(nats_fixture_now_ms() < until_ms);
    } while (status != PAWL_OK);
    assert_true(now.probe_found);
    assert_ok(source->ops->restart_at(source, 1, &f->error), &f->error);
    assert_int_equal(fetch(f, source).count, 3);
    source->ops->close(source);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
}

static void test_a_consumer_deleted_meanwhile_is_told_as_a_broken_connection(void **state)
{
    struct nats_fixture *f = *state;
    struct delivery_jetstream_options options = options_of(f);
    struct delivery_source *source = open_source(f, &options);
    struct delivery_fetch patient = { .messages_max = 10,
                                      .bytes_max = 1 << 20,
                                      .wait_ns = NS_PER_S };
    struct delivery_batch batch = { 0 };

    assert_ok(source->ops->restart_at(source, 1, &f->error), &f->error);
    assert_int_equal(fetch(f, source).count, 0);
    assert_ok(pawl__nats_consumer_delete(f->nats, f->stream, "p", &f->error), &f->error);
    assert_status(
        source->ops->fetch(source, &patient, &batch, &f->error), PAWL_UNAVAILABLE, &f->error);
    assert_message(&f->error, "the consumer is gone");
    assert_ok(source->ops->restart_at(source, 1, &f->error), &f->error);
    nats_fixture_publish(f, "e", 1, 1);
    assert_int_equal(fetch(f, source).count, 1);
    source->ops->close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        nats_test(test_a_consumer_is_made_by_the_pipeline_and_kept),
        nats_test(test_what_is_not_fit_is_refused_on_bind),
        nats_test(test_no_more_is_on_its_way_than_allowed),
        nats_test(test_a_broken_connection_is_told_and_mended),
        nats_test(test_a_consumer_deleted_meanwhile_is_told_as_a_broken_connection),
    };

    return cmocka_run_group_tests_name(
        "delivery_jetstream", tests, nats_fixture_start, nats_fixture_end);
}
