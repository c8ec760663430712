/* What every source promises (delivery/core/source.h). The argument says which one. */
#include "lib/source_fixture.h"

#include <string.h>

#include "delivery/memory/sink.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"

static const struct delivery_fetch many = { .messages_max = 100, .bytes_max = 1 << 20 };

static void test_messages_arrive_in_order_with_their_places(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_stream_state now;

    source_publish(f, 1, 5);
    source_restart(f, 1);
    struct delivery_batch batch = source_fetch_all(f, 5);
    source_state(f, 0, &now);
    for (size_t i = 0; i < batch.count; i++) {
        const struct delivery_message *message = &batch.messages[i];
        assert_int_equal(message->place.sequence, i + 1);
        assert_int_equal(message->place.created_ns, now.created_ns);
        assert_true(message->place.stored_ns > 0);
        assert_true(source_is(message, (int)i + 1));
    }
    assert_true(now.created_ns != 0);
    assert_int_equal(now.first, 1);
    assert_int_equal(now.last, 5);
    assert_true(now.consumer_found);
}

/* So the pipeline says where it is, instead of reading all of it again. */
static void test_a_source_just_opened_has_no_consumer(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_stream_state now;

    source_publish(f, 1, 2);
    source_state(f, 0, &now);
    assert_false(now.consumer_found);
    source_restart(f, 3);
    source_state(f, 0, &now);
    assert_true(now.consumer_found);
    assert_int_equal(now.delivered, 2);
    assert_int_equal(now.acked_to, 2);
    source_expect_none(f);
}

static void test_nothing_is_no_failure(void **state)
{
    struct source_fixture *f = *state;

    source_restart(f, 1);
    for (int i = 0; i < 3; i++) {
        struct delivery_batch batch = { NULL, 7 };
        assert_ok(f->source->ops->fetch(f->source, &many, &batch, &f->error), &f->error);
        assert_int_equal(batch.count, 0);
    }
    source_publish(f, 1, 1);
    source_fetch_all(f, 1);
}

static void test_a_fetch_waits_for_the_first_message_and_no_longer(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_fetch patient = many;
    struct delivery_batch batch = { 0 };

    patient.wait_ns = 200 * NS_PER_MS;
    source_restart(f, 1);
    int64_t begin_ns = pawl__monotonic_ns(pawl__clock_real());
    assert_ok(f->source->ops->fetch(f->source, &patient, &batch, &f->error), &f->error);
    int64_t took_ns = pawl__monotonic_ns(pawl__clock_real()) - begin_ns;
    assert_int_equal(batch.count, 0);
    assert_true(took_ns < 5 * NS_PER_S);
    patient.wait_ns = 60 * NS_PER_S;
    source_publish(f, 1, 2);
    begin_ns = pawl__monotonic_ns(pawl__clock_real());
    assert_ok(f->source->ops->fetch(f->source, &patient, &batch, &f->error), &f->error);
    assert_true(batch.count > 0);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - begin_ns < 10 * NS_PER_S);
}

static void test_a_batch_keeps_its_limits(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_batch batch = { 0 };

    source_publish(f, 1, 10);
    source_restart(f, 1);
    struct delivery_fetch few = { .messages_max = 3, .bytes_max = 1 << 20, .wait_ns = NS_PER_S };
    assert_ok(f->source->ops->fetch(f->source, &few, &batch, &f->error), &f->error);
    assert_in_range(batch.count, 1, 3);
    size_t got = batch.count;
    struct delivery_fetch small = { .messages_max = 100, .bytes_max = 1, .wait_ns = NS_PER_S };
    assert_ok(f->source->ops->fetch(f->source, &small, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 1); /* larger than the limit, and alone */
    source_fetch_all(f, 9 - got);
}

static void test_each_message_is_acknowledged_by_itself(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_message second;
    struct delivery_message others[2];

    source_publish(f, 1, 3);
    source_restart(f, 1);
    struct delivery_batch batch = source_fetch_all(f, 3);
    others[0] = batch.messages[0];
    second = batch.messages[1];
    others[1] = batch.messages[2];
    assert_ok(f->source->ops->ack(f->source, &second, 1, &f->error), &f->error);
    assert_ok(f->source->ops->nak(f->source, others, 2, 0, &f->error), &f->error);
    batch = source_fetch_all(f, 2);
    assert_true(source_is(&batch.messages[0], 1));
    assert_true(source_is(&batch.messages[1], 3));
    assert_ok(f->source->ops->ack(f->source, batch.messages, 2, &f->error), &f->error);
    source_expect_none(f);
}

static void test_a_nak_comes_again_after_its_delay(void **state)
{
    struct source_fixture *f = *state;

    source_publish(f, 1, 1);
    source_restart(f, 1);
    struct delivery_batch batch = source_fetch_all(f, 1);
    assert_ok(f->source->ops->nak(f->source, batch.messages, 1, 300 * NS_PER_MS, &f->error),
              &f->error);
    source_expect_none(f);
    batch = source_fetch_all(f, 1);
    assert_int_equal(batch.messages[0].place.sequence, 1);
}

static void test_restarting_delivers_again_what_was_acknowledged(void **state)
{
    struct source_fixture *f = *state;

    source_publish(f, 1, 6);
    source_restart(f, 1);
    struct delivery_batch batch = source_fetch_all(f, 6);
    assert_ok(f->source->ops->ack(f->source, batch.messages, 6, &f->error), &f->error);
    source_restart(f, 4);
    batch = source_fetch_all(f, 3);
    assert_int_equal(batch.messages[0].place.sequence, 4);
    source_restart(f, 7);
    source_expect_none(f);
    source_publish(f, 7, 7);
    batch = source_fetch_all(f, 1);
    assert_int_equal(batch.messages[0].place.sequence, 7);
}

static void test_an_answer_from_before_a_restart_means_nothing(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_message old;

    source_publish(f, 1, 1);
    source_restart(f, 1);
    old = source_fetch_all(f, 1).messages[0];
    source_restart(f, 1);
    assert_ok(f->source->ops->ack(f->source, &old, 1, &f->error), &f->error);
    source_fetch_all(f, 1);
}

static void test_the_state_tells_places_and_acknowledgements(void **state)
{
    struct source_fixture *f = *state;
    struct delivery_stream_state now;
    struct delivery_place places[4];

    source_publish(f, 1, 4);
    source_restart(f, 1);
    struct delivery_batch batch = source_fetch_all(f, 4);
    for (size_t i = 0; i < 4; i++) {
        places[i] = batch.messages[i].place;
    }
    assert_ok(f->source->ops->ack(f->source, batch.messages, 2, &f->error), &f->error);
    source_await_acked(f, 2);
    for (size_t i = 0; i < 4; i++) {
        source_state(f, places[i].sequence, &now);
        assert_true(now.probe_found);
        assert_int_equal(now.probe_stored_ns, places[i].stored_ns);
        assert_int_equal(now.delivered, 4);
        assert_int_equal(now.acked_to, 2);
    }
    source_state(f, 5, &now);
    assert_false(now.probe_found);
    assert_true(now.last < 5);
}

static void test_a_source_closes_with_messages_on_their_way(void **state)
{
    struct source_fixture *f = *state;

    source_publish(f, 1, 4);
    source_restart(f, 1);
    source_fetch_all(f, 4);
    source_reopen(f);
    source_restart(f, 1);
    source_fetch_all(f, 4);
}

struct stores {
    struct delivery_memory_wal wal;
    struct delivery_memory_sink sink;
    struct delivery_settings settings;
};

/* Opens a pipeline on the source and runs it until the sink has so many rows. */
static void deliver(struct source_fixture *f, struct stores *stores, uint64_t rows)
{
    struct delivery_pipeline pipeline;
    const struct delivery_parts parts = { .source = f->source,
                                          .wal = &stores->wal.base,
                                          .sink = &stores->sink.base,
                                          .clock = pawl__clock_real(),
                                          .random = pawl__random_real() };
    int64_t until_ns = pawl__monotonic_ns(pawl__clock_real()) + 20 * NS_PER_S;

    assert_ok(pawl__delivery_pipeline_open(&pipeline, &stores->settings, &parts, &f->error),
              &f->error);
    while (pawl__delivery_pipeline_counters(&pipeline).delivered < rows) {
        size_t moved = 0;
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < until_ns);
        assert_ok(pawl__delivery_intake(&pipeline, &moved, &f->error), &f->error);
        assert_ok(pawl__delivery_apply(&pipeline, &moved, &f->error), &f->error);
    }
    assert_int_equal(pipeline.shared.totals.duplicates, 0);
    assert_int_equal(pipeline.shared.totals.losses, 0);
    pawl__delivery_pipeline_close(&pipeline);
}

static void test_a_pipeline_goes_on_where_it_was_after_a_restart(void **state)
{
    struct source_fixture *f = *state;
    const struct delivery_uuid sink_id = { { 1 } };
    const struct delivery_memory_rules rules = { 0 };
    struct stores stores = { .wal = pawl__delivery_memory_wal(),
                             .sink = pawl__delivery_memory_sink(&sink_id, &rules),
                             .settings = pawl__delivery_settings_default() };

    stores.settings.identity = (struct delivery_identity_rule){ .source = pawl_view_of("orders"),
                                                                .stream = pawl_view_of("s") };
    stores.settings.fetch = (struct delivery_fetch){ 10, 1 << 20, 100 * NS_PER_MS };
    source_publish(f, 1, 50);
    deliver(f, &stores, 50);
    source_reopen(f);
    source_publish(f, 51, 60);
    deliver(f, &stores, 60);
    assert_int_equal(stores.sink.count, 60);
    pawl__delivery_memory_sink_done(&stores.sink);
    pawl__delivery_memory_wal_done(&stores.wal);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        source_test(test_messages_arrive_in_order_with_their_places),
        source_test(test_a_source_just_opened_has_no_consumer),
        source_test(test_nothing_is_no_failure),
        source_test(test_a_fetch_waits_for_the_first_message_and_no_longer),
        source_test(test_a_batch_keeps_its_limits),
        source_test(test_each_message_is_acknowledged_by_itself),
        source_test(test_a_nak_comes_again_after_its_delay),
        source_test(test_restarting_delivers_again_what_was_acknowledged),
        source_test(test_an_answer_from_before_a_restart_means_nothing),
        source_test(test_the_state_tells_places_and_acknowledgements),
        source_test(test_a_pipeline_goes_on_where_it_was_after_a_restart),
        source_test(test_a_source_closes_with_messages_on_their_way),
    };

    source_fixture_choose(argc, argv);
    return cmocka_run_group_tests_name(
        "delivery_source", tests, source_fixture_start, source_fixture_end);
}
