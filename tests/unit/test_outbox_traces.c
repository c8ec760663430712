/* The rules of the outbox, told as traces on the virtual clock: the loop on a store in memory and a modelled broker. */
#include "lib/outbox_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delivery/outbox/loop.h"
#include "lib/outbox_broker.h"
#include "lib/trace.h"

struct fixture {
    struct outbox_fixture outbox;
    struct trace trace;
    struct outbox_broker_model broker;
    struct outbox_loop_options options;
    struct outbox_loop *loop;
};

static void open_loop(struct fixture *f)
{
    assert_ok(pawl__delivery_outbox_loop_new(f->outbox.store,
                                             &f->broker.base,
                                             &f->trace.clock.base,
                                             &f->options,
                                             &f->loop,
                                             &f->outbox.error),
              &f->outbox.error);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    outbox_fixture_open(&f->outbox, true);
    f->trace = trace_start();
    outbox_broker_init(&f->broker, &f->trace);
    f->options = (struct outbox_loop_options){
        .limits = { .backoff = { 10 * NS_PER_S, 10 * NS_PER_S }, .attempts_max = 3 },
        .keep_ns = 180 * NS_PER_S,
        .check_ns = 30 * NS_PER_S,
        .horizon_ns = INT64_C(48) * 3600 * NS_PER_S,
        .ids_max = 1000,
    };
    open_loop(f);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pawl__delivery_outbox_loop_free(f->loop);
    outbox_fixture_close(&f->outbox);
    trace_done(&f->trace);
    free(f);
    return 0;
}

/* Steps until nothing more happens at this time. */
static void run(struct fixture *f)
{
    for (int i = 0; i < 64; i++) {
        assert_ok(pawl__delivery_outbox_loop_step(f->loop, 0, &f->outbox.error), &f->outbox.error);
    }
}

static void run_at(struct fixture *f, int64_t seconds)
{
    trace_at(&f->trace, seconds);
    run(f);
}

/* The process ends and starts again. */
static void restart(struct fixture *f)
{
    pawl__delivery_outbox_loop_free(f->loop);
    outbox_reopen(&f->outbox);
    open_loop(f);
}

static void append(struct fixture *f, uint64_t last, const char *subject)
{
    outbox_append(&f->outbox, last, subject);
}

static const struct outbox_progress *progress(struct fixture *f)
{
    return pawl__delivery_outbox_loop_progress(f->loop);
}

static void test_a_subject_has_one_message_under_way(void **state)
{
    struct fixture *f = *state;

    append(f, 2, "a");
    append(f, 3, "b");
    append(f, 4, "a");
    run(f);
    assert_trace(&f->trace,
                 "[  0] s:e1:7 to a -> 1\n"
                 "[  0] s:e3:7 to b -> 2\n"
                 "[  0] s:e2:7 to a -> 3\n"
                 "[  0] s:e4:7 to a -> 4\n");
    assert_int_equal(outbox_stats(&f->outbox).pending, 0);
    assert_int_equal(outbox_stats(&f->outbox).kept, 4);
    assert_int_equal(progress(f)->published, 4);
}

static void test_hours_without_a_broker_are_fine(void **state)
{
    struct fixture *f = *state;

    f->broker.down = true;
    append(f, 1, "a");
    run(f);
    assert_false(progress(f)->connected);
    assert_int_equal(progress(f)->error.status, PAWL_UNAVAILABLE);
    run_at(f, 20);
    append(f, 2, "a");
    run_at(f, 7200);
    f->broker.down = false;
    run_at(f, 7220);
    assert_trace(&f->trace,
                 "[  0] no broker\n"
                 "[ 20] no broker\n"
                 "[7200] no broker\n"
                 "[7220] s:e1:7 to a -> 1\n"
                 "[7220] s:e2:7 to a -> 2\n");
    assert_true(progress(f)->connected);
    assert_int_equal(progress(f)->error.status, PAWL_OK);
}

static void test_a_subject_without_a_stream_holds_up_no_other(void **state)
{
    struct fixture *f = *state;

    f->broker.no_stream = true;
    append(f, 1, "a");
    run(f);
    f->broker.no_stream = false;
    append(f, 2, "b");
    run_at(f, 1);
    run_at(f, 11);
    assert_trace(&f->trace,
                 "[  0] no stream takes 'a'\n"
                 "[  1] s:e2:7 to b -> 1\n"
                 "[ 11] s:e1:7 to a -> 2\n");
}

static void test_a_message_without_an_answer_is_looked_for_before_it_is_sent_again(void **state)
{
    struct fixture *f = *state;

    append(f, 2, "a");
    f->broker.silent = true;
    run(f);
    assert_int_equal(outbox_stats(&f->outbox).pending, 2);
    f->broker.silent = false;
    run_at(f, 600); /* the duplicate window is over */
    assert_trace(&f->trace,
                 "[  0] s:e1:7 to a -> 1\n"
                 "[  0] ... and says nothing\n"
                 "[600] s:e2:7 to a -> 2\n");
    assert_string_equal(outbox_kept(&f->outbox, "S"), "1@1 2@2");
}

static void test_a_process_that_died_finds_its_messages_in_the_stream(void **state)
{
    struct fixture *f = *state;

    append(
        f, 3, "a"); /* 1 and 2 were published, and the acknowledgements were lost with the power */
    outbox_broker_publish_as(&f->broker, "a", "s:e1:7", (struct outbox_origin){ 1, 1 });
    outbox_broker_publish_as(&f->broker, "a", "s:e2:7", (struct outbox_origin){ 1, 2 });
    trace_at(&f->trace, 600);
    restart(f);
    run(f);
    assert_trace(&f->trace, "[600] s:e3:7 to a -> 3\n");
    assert_int_equal(outbox_stats(&f->outbox).kept, 3);
    assert_string_equal(outbox_broker_messages(&f->broker), "a:s:e1:7 a:s:e2:7 a:s:e3:7");
}

/* The outbox was lost and made anew, or is an older copy, and the input has changed: a later event in the stream says
 * nothing about what is before it now. */
static void test_messages_of_another_outbox_prove_nothing(void **state)
{
    static const struct outbox_origin others[] = { { 2, 3 }, { 1, 2 }, { 0, 0 } };
    struct fixture *f = *state;

    append(f, 3, "a");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        outbox_broker_init(&f->broker, &f->trace);
        outbox_broker_publish_as(&f->broker, "a", "s:e3:7", others[i]);
        trace_at(&f->trace, 600 * (int64_t)(i + 1)); /* after the duplicate window */
        pawl__delivery_outbox_loop_free(f->loop);
        outbox_fixture_close(&f->outbox);
        outbox_fixture_open(&f->outbox, true);
        append(f, 3, "a");
        open_loop(f);
        run(f);
        assert_string_equal(outbox_broker_messages(&f->broker),
                            "a:s:e3:7 a:s:e1:7 a:s:e2:7 a:s:e3:7");
    }
}

static void test_a_lost_tail_is_published_again_in_order(void **state)
{
    struct fixture *f = *state;

    append(f, 5, "a");
    run(f);
    outbox_broker_restart(&f->broker, 2);
    append(f, 6, "a");
    run_at(f, 1);
    assert_trace(&f->trace,
                 "[  0] s:e1:7 to a -> 1\n"
                 "[  0] s:e2:7 to a -> 2\n"
                 "[  0] s:e3:7 to a -> 3\n"
                 "[  0] s:e4:7 to a -> 4\n"
                 "[  0] s:e5:7 to a -> 5\n"
                 "[  0] the server restarts with 2 messages\n"
                 "[  1] s:e3:7 to a -> 3\n"
                 "[  1] s:e4:7 to a -> 4\n"
                 "[  1] s:e5:7 to a -> 5\n"
                 "[  1] s:e6:7 to a -> 6\n");
    assert_int_equal(progress(f)->republished, 3);
}

/* The server restarts and the link is back before anybody looks: the expected sequence does not fit. */
static void test_a_loss_that_nobody_noticed_keeps_the_order(void **state)
{
    struct fixture *f = *state;

    append(f, 3, "a");
    run(f);
    outbox_broker_restart(&f->broker, 1);
    f->broker.link = (struct outbox_link){ .number = 1, .session = 100 };
    append(f, 4, "a");
    run_at(f, 1);
    assert_trace(&f->trace,
                 "[  0] s:e1:7 to a -> 1\n"
                 "[  0] s:e2:7 to a -> 2\n"
                 "[  0] s:e3:7 to a -> 3\n"
                 "[  0] the server restarts with 1 messages\n"
                 "[  1] s:e4:7 to a after 3 -> the last is 1\n"
                 "[  1] s:e2:7 to a -> 2\n"
                 "[  1] s:e3:7 to a -> 3\n"
                 "[  1] s:e4:7 to a -> 4\n");
}

static void test_a_reused_sequence_is_known_by_its_id(void **state)
{
    struct fixture *f = *state;

    append(f, 3, "a");
    run(f);
    outbox_broker_restart(&f->broker, 1);
    outbox_broker_publish(&f->broker, "z", "other:1:0");
    outbox_broker_publish(&f->broker, "z", "other:2:0");
    run_at(f, 1);
    assert_string_equal(outbox_broker_messages(&f->broker),
                        "a:s:e1:7 z:other:1:0 z:other:2:0 a:s:e2:7 a:s:e3:7");
}

static void test_a_recreated_stream_gets_everything_that_is_kept(void **state)
{
    struct fixture *f = *state;

    append(f, 3, "a");
    run(f);
    outbox_broker_restart(&f->broker, 0);
    f->broker.stream.created_ns = 2;
    run_at(f, 1);
    assert_string_equal(outbox_broker_messages(&f->broker), "a:s:e1:7 a:s:e2:7 a:s:e3:7");
    assert_int_equal(progress(f)->republished, 3);
}

static void test_what_a_purge_removed_is_not_published_again(void **state)
{
    struct fixture *f = *state;

    append(f, 3, "a");
    run(f);
    f->broker.count = 0; /* sequences go on */
    f->broker.link.number++;
    append(f, 4, "a");
    run_at(f, 1);
    assert_string_equal(outbox_broker_messages(&f->broker), "a:s:e4:7");
    assert_int_equal(f->broker.messages[0].sequence, 4);
    assert_int_equal(progress(f)->republished, 0);
}

static void test_an_acknowledged_entry_is_kept_for_longer_than_the_server_takes_to_sync(
    void **state)
{
    struct fixture *f = *state;

    append(f, 1, "a");
    run(f);
    append(f, 2, "a");
    run_at(f, 100);
    run_at(f, 179);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "1@1 2@2");
    run_at(f, 210);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "2@2");
    run_at(f, 300);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "");
    assert_int_equal(outbox_stats(&f->outbox).ids, 2);
}

static void test_another_process_of_the_server_begins_the_wait_again(void **state)
{
    struct fixture *f = *state;

    append(f, 1, "a");
    run(f);
    run_at(f, 170);
    outbox_broker_restart(&f->broker, 1);
    run_at(f, 171);
    run_at(f, 340);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "1@1");
    run_at(f, 375);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "");
}

static void test_a_producer_that_restarts_does_not_begin_the_wait_again(void **state)
{
    struct fixture *f = *state;

    append(f, 1, "a");
    run(f);
    restart(f);
    run_at(f, 100);
    restart(f);
    run_at(f, 200);
    run_at(f, 230);
    assert_string_equal(outbox_kept(&f->outbox, "S"), "");
}

static void test_a_message_that_nobody_takes_goes_out_of_the_way(void **state)
{
    struct fixture *f = *state;
    struct outbox_failed failed;
    bool found = false;

    f->broker.refuse_bytes = strlen("{\"n\":10}");
    append(f, 11, "a");
    run(f);
    assert_int_equal(outbox_stats(&f->outbox).kept, 9);
    assert_int_equal(outbox_stats(&f->outbox).failed, 2);
    assert_int_equal(progress(f)->failed, 2);
    assert_ok(
        f->outbox.store->ops->next_failed(f->outbox.store, 0, &failed, &found, &f->outbox.error),
        &f->outbox.error);
    assert_int_equal(failed.number, 10);
    assert_string_equal(failed.reason, "too large");
}

/* A later message of the subject is in the stream: that must not be taken for a sign that this one is, too. */
static void test_a_message_that_is_retried_comes_after_what_is_in_the_stream(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;

    append(f, 9, "b");
    f->broker.refuse_bytes = strlen("{\"n\":10}");
    append(f, 10, "a");
    run(f);
    f->broker.refuse_bytes = 0;
    outbox_broker_publish(&f->broker, "a", "other:1:0");
    assert_int_equal(outbox_stats(&f->outbox).failed, 1);
    append(f, 11, "a");
    run_at(f, 1);
    assert_ok(f->outbox.store->ops->retry(f->outbox.store, &count, &f->outbox.error),
              &f->outbox.error);
    assert_int_equal(count, 1);
    restart(f); /* and nothing is known of the subject */
    run_at(f, 600);
    assert_int_equal(outbox_stats(&f->outbox).pending, 0);
    assert_non_null(strstr(outbox_broker_messages(&f->broker), "a:s:e11:7 a:s:e10:7"));
}

static void test_others_may_write_to_the_subject(void **state)
{
    struct fixture *f = *state;

    append(f, 1, "a");
    run(f);
    outbox_broker_publish(&f->broker, "a", "other:1:0");
    append(f, 3, "a");
    run_at(f, 1);
    outbox_broker_publish(&f->broker, "a", "other:2:0");
    append(f, 4, "a");
    run_at(f, 2);
    assert_trace(&f->trace,
                 "[  0] s:e1:7 to a -> 1\n"
                 "[  1] s:e2:7 to a after 1 -> the last is 2\n"
                 "[  1] s:e2:7 to a -> 3\n"
                 "[  1] s:e3:7 to a -> 4\n"
                 "[  2] s:e4:7 to a -> 6\n");
}

static void test_the_lost_part_of_many_is_found_by_halving(void **state)
{
    struct fixture *f = *state;

    append(f, 200, "a");
    run(f);
    run(f);
    run(f);
    run(f);
    assert_int_equal(f->broker.count, 200);
    size_t before = f->broker.reads;
    outbox_broker_restart(&f->broker, 77);
    run_at(f, 1);
    run(f);
    run(f);
    assert_int_equal(f->broker.count, 200);
    assert_int_equal(progress(f)->republished, 123);
    assert_true(f->broker.reads - before <= 12);
}

static void test_ids_are_forgotten_beyond_the_horizon_and_beyond_their_number(void **state)
{
    struct fixture *f = *state;
    const int64_t hour = 3600 * NS_PER_S;
    struct outbox_sample sample;

    for (uint64_t i = 1; i <= 4; i++) {
        outbox_sample(&sample, i, "a");
        assert_ok(f->outbox.store->ops->append(
                      f->outbox.store, &sample.entry, 1, (int64_t)i * 20 * hour, &f->outbox.error),
                  &f->outbox.error);
    }
    run(f);
    run_at(
        f,
        200); /* forgotten entries, running for 80 hours: those of the first 32 have no id any more */
    run_at(f, 240);
    assert_int_equal(outbox_stats(&f->outbox).kept, 0);
    assert_int_equal(outbox_stats(&f->outbox).ids, 3);
    assert_int_equal(progress(f)->trimmed, 0);
    pawl__delivery_outbox_loop_free(f->loop);
    f->options.ids_max = 1;
    open_loop(f);
    run_at(f, 300);
    run_at(f, 340);
    assert_int_equal(outbox_stats(&f->outbox).ids, 1);
    assert_int_equal(progress(f)->trimmed, 2);
}

/* --- pure decisions --- */

static void test_the_same_id_with_another_payload_is_a_conflict(void **state)
{
    struct delivery_hash one = { { 1 } };
    struct delivery_hash two = { { 2 } };
    struct outbox_hit hit = { .found = false };

    (void)state;
    assert_int_equal(pawl__delivery_outbox_admit(&hit, &one), OUTBOX_NEW);
    hit = (struct outbox_hit){ .found = true, .number = 3, .payload_hash = one };
    assert_int_equal(pawl__delivery_outbox_admit(&hit, &one), OUTBOX_DUPLICATE);
    assert_int_equal(pawl__delivery_outbox_admit(&hit, &two), OUTBOX_CONFLICT);
}

static void test_a_key_has_its_partition_for_ever(void **state)
{
    static const struct {
        const char *key;
        uint32_t of_8;
    } known[] = { { "customer-1", 7 }, { "customer-2", 0 }, { "", 4 } };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        uint32_t partition = 99;
        assert_ok(
            pawl__delivery_outbox_partition(pawl_view_of(known[i].key), 8, &partition, &error),
            &error);
        assert_int_equal(partition, known[i].of_8);
    }
}

/* A refusal that says nothing about the message is tried so often, an outage for ever. */
static void test_only_refusals_of_its_own_use_up_attempts(void **state)
{
    const struct outbox_limits limits = { .backoff = { 1, 1 }, .attempts_max = 3 };
    struct outbox_answer answer = { .fate = OUTBOX_FATE_REFUSED,
                                    .status = PAWL_NO_SPACE,
                                    .retryable = true };
    struct outbox_subject subject = { .number = 5 };

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pawl__delivery_outbox_answered(&subject, &answer, &limits, 0, 0),
                         OUTBOX_AGAIN);
    }
    subject = (struct outbox_subject){ .number = 5 };
    answer = (struct outbox_answer){ .fate = OUTBOX_FATE_REFUSED, .status = PAWL_FAILED };
    assert_int_equal(pawl__delivery_outbox_answered(&subject, &answer, &limits, 0, 0),
                     OUTBOX_AGAIN);
    assert_int_equal(pawl__delivery_outbox_answered(&subject, &answer, &limits, 0, 0),
                     OUTBOX_AGAIN);
    assert_int_equal(pawl__delivery_outbox_answered(&subject, &answer, &limits, 0, 0), OUTBOX_FAIL);
    assert_int_equal(subject.from, 6);
}

int main(void)
{
#define outbox_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        outbox_test(test_a_subject_has_one_message_under_way),
        outbox_test(test_hours_without_a_broker_are_fine),
        outbox_test(test_a_subject_without_a_stream_holds_up_no_other),
        outbox_test(test_a_message_without_an_answer_is_looked_for_before_it_is_sent_again),
        outbox_test(test_a_process_that_died_finds_its_messages_in_the_stream),
        outbox_test(test_messages_of_another_outbox_prove_nothing),
        outbox_test(test_a_lost_tail_is_published_again_in_order),
        outbox_test(test_a_loss_that_nobody_noticed_keeps_the_order),
        outbox_test(test_a_reused_sequence_is_known_by_its_id),
        outbox_test(test_a_recreated_stream_gets_everything_that_is_kept),
        outbox_test(test_what_a_purge_removed_is_not_published_again),
        outbox_test(test_an_acknowledged_entry_is_kept_for_longer_than_the_server_takes_to_sync),
        outbox_test(test_another_process_of_the_server_begins_the_wait_again),
        outbox_test(test_a_producer_that_restarts_does_not_begin_the_wait_again),
        outbox_test(test_a_message_that_nobody_takes_goes_out_of_the_way),
        outbox_test(test_a_message_that_is_retried_comes_after_what_is_in_the_stream),
        outbox_test(test_others_may_write_to_the_subject),
        outbox_test(test_the_lost_part_of_many_is_found_by_halving),
        outbox_test(test_ids_are_forgotten_beyond_the_horizon_and_beyond_their_number),
        cmocka_unit_test(test_the_same_id_with_another_payload_is_a_conflict),
        cmocka_unit_test(test_a_key_has_its_partition_for_ever),
        cmocka_unit_test(test_only_refusals_of_its_own_use_up_attempts),
    };

    return cmocka_run_group_tests_name("outbox_traces", tests, NULL, NULL);
}
