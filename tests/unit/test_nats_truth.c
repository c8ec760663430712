/* Whether a stream is still the one we know: the pure comparison, and what a real server makes of it. */
#include "lib/nats_fixture.h"

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fault.h"
#include "net/nats/internal.h"
#include "net/nats/url.h"

enum { NOW_S = 1000000 };

/* --- pure --- */

struct scene {
    struct pawl__nats_stream stream;
    struct pawl__nats_consumer consumer;
    struct pawl__nats_anchor anchors[2];
    enum pawl__nats_match matches[2];
    struct pawl__nats_known known;
    struct pawl__nats_seen seen;
};

/* We have all up to 50 of 1 to 100; anchors at 40 and 50, which are still so. */
static void set_scene(struct scene *s)
{
    *s = (struct scene){
        .stream = { .created_ns = 7,
                    .messages = 100,
                    .bytes = 10000,
                    .first_seq = 1,
                    .last_seq = 100 },
        .consumer = { .created_ns = 8, .delivered_seq = 60 },
        .anchors = { { .sequence = 40, .stored_ns = (NOW_S - 60) * NS_PER_S, .id = "m40" },
                     { .sequence = 50, .stored_ns = (NOW_S - 50) * NS_PER_S, .id = "m50" } },
        .matches = { PAWL__NATS_MATCHES, PAWL__NATS_MATCHES },
    };
    s->known = (struct pawl__nats_known){ .stream_created_ns = 7,
                                          .consumer_created_ns = 8,
                                          .applied_seq = 50,
                                          .anchors = s->anchors,
                                          .anchor_count = 2 };
    s->seen = (struct pawl__nats_seen){ .stream = &s->stream,
                                        .consumer = &s->consumer,
                                        .matches = s->matches,
                                        .now_ns = NOW_S * NS_PER_S };
}

static void expect(const struct scene *s, const char *verdict, bool renew, uint64_t resume)
{
    struct pawl__nats_finding found = pawl__nats_compare_stream(&s->known, &s->seen);

    assert_string_equal(pawl__nats_verdict_name(found.verdict), verdict);
    assert_int_equal(found.renew_consumer, renew);
    assert_int_equal(found.resume_seq, resume);
}

static void expect_lost(const struct scene *s, uint64_t from, uint64_t to)
{
    struct pawl__nats_finding found = pawl__nats_compare_stream(&s->known, &s->seen);

    assert_int_equal(found.lost_from, from);
    assert_int_equal(found.lost_to, to);
}

static void test_an_unchanged_stream_is_the_same(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    expect(&s, "same", false, 51);
    expect_lost(&s, 0, 0);
    s.matches[0] = PAWL__NATS_GONE; /* what we have may go */
    s.matches[1] = PAWL__NATS_GONE;
    s.stream.first_seq = 51;
    expect(&s, "same", false, 51);
    s.stream = (struct pawl__nats_stream){ .created_ns = 7, .last_seq = 50 }; /* purged after us */
    s.consumer.delivered_seq = 50;
    expect(&s, "same", false, 51);
    s.known = (struct pawl__nats_known){ 0 }; /* the first time */
    expect(&s, "same", false, 51);
}

static void test_another_creation_is_a_recreated_stream(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    s.stream.created_ns = 9;
    s.stream.first_seq = 3;
    expect(&s, "recreated", true, 3);
}

static void test_a_lost_tail_is_a_rollback(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    s.stream.last_seq = 45;
    s.matches[1] = PAWL__NATS_GONE;
    expect(&s, "rolled_back", true, 41);
    s.stream.last_seq = 49; /* one below what we have */
    expect(&s, "rolled_back", true, 41);

    set_scene(&s); /* the sequences were used again */
    s.matches[1] = PAWL__NATS_DIFFERS;
    expect(&s, "rolled_back", true, 41);
    s.matches[0] = PAWL__NATS_DIFFERS;
    expect(&s, "rolled_back", true, 1);

    set_scene(&s); /* no anchor fell into it, but the consumer is beyond the end */
    s.stream.last_seq = 59;
    expect(&s, "rolled_back", true, 51);
}

static void test_missing_messages_are_purged_or_overtaken_by_retention(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    s.matches[0] = s.matches[1] = PAWL__NATS_GONE;
    s.stream.first_seq = 52;
    expect(&s, "purged", false, 52);
    expect_lost(&s, 51, 51);
    s.stream.max_age_ns = 50 * NS_PER_S;
    expect(&s, "overtaken", false, 52);
    s.stream.max_age_ns = 51 * NS_PER_S;
    expect(&s, "purged", false, 52);
    s.stream.max_messages = 100;
    expect(&s, "overtaken", false, 52);
    s.stream.max_messages = 0;
    s.stream.max_bytes = 10100;
    expect(&s, "overtaken", false, 52);
    s.stream.max_bytes = 20000;
    expect(&s, "purged", false, 52);
    s.stream = (struct pawl__nats_stream){ .created_ns = 7, .last_seq = 100 }; /* all of it */
    expect(&s, "purged", false, 101);
    expect_lost(&s, 51, 100);
}

static void test_a_consumer_that_forgot_is_made_anew_where_we_are(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    s.seen.consumer = NULL;
    expect(&s, "consumer_lost", true, 51);
    set_scene(&s);
    s.consumer.created_ns = 80;
    expect(&s, "consumer_lost", true, 51);
    set_scene(&s);
    s.consumer.delivered_seq = 0;
    expect(&s, "consumer_lost", true, 51);
    s.stream.first_seq = 61; /* and more is gone: both are told */
    expect(&s, "purged", true, 61);
    expect_lost(&s, 51, 60);
}

static void test_the_margin_says_when_retention_reaches_us(void **state)
{
    struct scene s;

    (void)state;
    set_scene(&s);
    assert_int_equal(pawl__nats_compare_stream(&s.known, &s.seen).margin_ns, INT64_MAX);
    s.stream.max_age_ns = 60 * NS_PER_S;
    assert_int_equal(pawl__nats_compare_stream(&s.known, &s.seen).margin_ns, 10 * NS_PER_S);
    s.stream.last_seq = 50; /* nothing is left to lose */
    s.consumer.delivered_seq = 50;
    assert_int_equal(pawl__nats_compare_stream(&s.known, &s.seen).margin_ns, INT64_MAX);
}

static void test_each_unfit_field_of_a_consumer_is_named(void **state)
{
    static const struct pawl__nats_consumer fit = { .durable = true,
                                                    .max_deliver = -1,
                                                    .max_ack_pending = 20000,
                                                    .ack_wait_ns = 30 * NS_PER_S,
                                                    .filter = "a.b" };
    const struct pawl__nats_consumer_need need = { .name = "c",
                                                   .filter = "a.b",
                                                   .batch_max = 1000 };
    struct {
        struct pawl__nats_consumer consumer;
        const char *field;
        bool dangerous;
    } cases[] = {
        { fit, "durable_name", true },
        { fit, "deliver_subject", true },
        { fit, "ack_policy", true },
        { fit, "max_deliver", true },
        { fit, "headers_only", true },
        { fit, "replay_policy", false },
        { fit, "inactive_threshold", true },
        { fit, "ack_wait", false },
        { fit, "backoff", false },
        { fit, "max_ack_pending", false },
        { fit, "max_ack_pending", true },
        { fit, "max_request_batch", true },
        { fit, "filter_subject", true },
        { fit, "mem_storage", false },
        { fit, "max_request_max_bytes", false },
        { fit, "max_request_expires", false },
    };

    (void)state;
    cases[0].consumer.durable = false;
    cases[1].consumer.push = true;
    cases[2].consumer.ack_policy = PAWL__NATS_ACK_NONE;
    cases[3].consumer.max_deliver = 1;
    cases[4].consumer.headers_only = true;
    cases[5].consumer.replays_slowly = true;
    cases[6].consumer.inactive_ns = 1;
    cases[7].consumer.ack_wait_ns--;
    cases[8].consumer.backoff_count = 2;
    cases[9].consumer.max_ack_pending = 1000;
    cases[10].consumer.max_ack_pending = 999;
    cases[11].consumer.max_request_batch = 999;
    cases[12].consumer.filter[0] = 'x';
    cases[13].consumer.in_memory = true;
    cases[14].consumer.max_request_bytes = 1;
    cases[15].consumer.max_request_expires_ns = 1;
    assert_int_equal(pawl__nats_compare_consumer(&fit, &need).count, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pawl__nats_differences found =
            pawl__nats_compare_consumer(&cases[i].consumer, &need);
        assert_int_equal(found.count, 1);
        assert_string_equal(found.at[0].field, cases[i].field);
        assert_int_equal(found.at[0].dangerous, cases[i].dangerous);
        assert_int_equal(found.dangerous_count, cases[i].dangerous);
        assert_int_equal(pawl__nats_refuse(&found, "consumer", "c", NULL),
                         cases[i].dangerous ? PAWL_CONFLICT : PAWL_OK);
    }
}

static void test_each_unfit_field_of_a_stream_is_named(void **state)
{
    struct pawl__nats_stream fit = { .duplicates_ns = NS_PER_S };
    struct pawl__nats_stream bad = { .in_memory = true,
                                     .no_ack = true,
                                     .retention = PAWL__NATS_KEEPS_UNTIL_ACK,
                                     .max_messages = 10 };
    struct pawl__nats_differences found;

    (void)state;
    assert_int_equal(pawl__nats_check_stream(&fit).count, 0);
    found = pawl__nats_check_stream(&bad);
    assert_int_equal(found.count, 5);
    assert_int_equal(found.dangerous_count, 2);
    bad.discards_new = true;
    assert_int_equal(pawl__nats_check_stream(&bad).count, 4);
}

static void test_a_reply_subject_is_read_strictly(void **state)
{
    static const char *const bad[] = {
        "",
        "$JS.ACK.S.c.1.2.3.4",
        "$JS.ACK.S.c.1.2.3.4.5.6",
        "$JS.NAK.S.c.1.2.3.4.5",
        "$JS.ACK.S.c.0.2.3.4.5",
        "$JS.ACK.S.c.1.x.3.4.5",
        "$JS.ACK.S.c.1.-2.3.4.5",
        "$JS.ACK.S.c.1..3.4.5",
        "$JS.ACK.S.c.1.2.3.9223372036854775808.5",
        "$JS.ACK.S.c.1.18446744073709551616.3.4.5",
        "$JS.ACK.d.a.S.c.1.2.3.4.5.r.s.t.u.v.w.x",
    };
    static const char *const good[] = {
        "$JS.ACK.S.c.4.18446744073709551615.3.9223372036854775807.5",
        "$JS.ACK.d.a.S.c.4.18446744073709551615.3.9223372036854775807.5",
        "$JS.ACK._.a.S.c.4.18446744073709551615.3.9223372036854775807.5.r"
    };
    struct pawl__nats_message message = { .sequence = 77 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(pawl__nats_parse_reply(bad[i], &message));
        assert_int_equal(message.sequence, 77);
    }
    assert_false(pawl__nats_parse_reply(NULL, &message));
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        message = (struct pawl__nats_message){ 0 };
        assert_true(pawl__nats_parse_reply(good[i], &message));
        assert_int_equal(message.redelivered, 3);
        assert_true(message.sequence == UINT64_MAX);
        assert_int_equal(message.consumer_sequence, 3);
        assert_int_equal(message.stored_ns, INT64_MAX);
        assert_int_equal(message.pending, 5);
    }
}

static void test_a_url_is_taken_apart_without_showing_its_secrets(void **state)
{
    static const char *const bad[] = { "",
                                       ",",
                                       "nats://",
                                       "nats://:4222",
                                       "http://a b",
                                       "nats://h:0",
                                       "nats://h:65536",
                                       "nats://h:x",
                                       "nats://h/path",
                                       "nats://hunter2%@h",
                                       "nats://hunter2%4@h",
                                       "nats://u:hunter2%00@h",
                                       "nats://u:hunter2:x@h",
                                       "nats://@h",
                                       "nats://:hunter2@h",
                                       "nats://a:hunter2@h,nats://b:c@i",
                                       "nats://u:hunter2/x@h?y",
                                       "nats://[::1" };
    struct pawl__nats_url url = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl__nats_url_parse(bad[i], &url, &error), PAWL_INVALID, &error);
        assert_null(strstr(error.message, "hunter2"));
        assert_null(url.shown);
    }
    assert_ok(pawl__nats_url_parse("tls://a%40b:p%2Fw%25@h1,h2:5000/,nats://[::1]:6", &url, &error),
              &error);
    assert_int_equal(url.server_count, 3);
    assert_string_equal(url.shown, "nats://h1:4222,nats://h2:5000,nats://[::1]:6");
    assert_string_equal(url.user, "a@b");
    assert_string_equal(url.password, "p/w%");
    assert_true(url.tls);
    pawl__nats_url_done(&url);
    assert_ok(pawl__nats_url_parse("nats://t%3Ak@h", &url, &error), &error);
    assert_string_equal(url.token, "t:k");
    assert_false(url.tls);
    pawl__nats_url_done(&url);
}

static void test_no_memory_for_a_url_is_told(void **state)
{
    (void)state;
    FAULT_WALK (walk) {
        struct pawl__nats_url url = { 0 };
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl__nats_url_parse("nats://user:pass@one:1,two:2,three", &url, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__nats_url_done(&url);
    }
}

/* --- with a server --- */

struct story {
    struct nats_fixture *f;
    struct pawl__nats_fetcher *fetcher;
    struct pawl__nats_anchor anchors[2];
    struct pawl__nats_known known;
};

/* Twenty messages; we have ten of them, with anchors at 5 and 10. */
static void begin(struct story *s, struct nats_fixture *f)
{
    struct pawl__nats_consumer consumer;

    *s = (struct story){ .f = f };
    nats_fixture_publish(f, "e", 1, 5);
    assert_ok(pawl__nats_fetcher_open(f->nats, f->stream, "c", &s->fetcher, &f->error), &f->error);
    s->anchors[0] = nats_fixture_drain(f, s->fetcher, 5);
    nats_fixture_publish(f, "e", 6, 10);
    s->anchors[1] = nats_fixture_drain(f, s->fetcher, 5);
    assert_ok(pawl__nats_consumer_info(f->nats, f->stream, "c", &consumer, &f->error), &f->error);
    s->known = (struct pawl__nats_known){ .stream_created_ns = nats_fixture_stream(f).created_ns,
                                          .consumer_created_ns = consumer.created_ns,
                                          .applied_seq = 10,
                                          .anchors = s->anchors,
                                          .anchor_count = 2 };
}

static void finish(struct story *s)
{
    pawl__nats_fetcher_close(s->fetcher);
}

static struct pawl__nats_finding look(struct story *s)
{
    struct nats_fixture *f = s->f;
    struct pawl__nats_stream stream = nats_fixture_stream(f);
    struct pawl__nats_consumer consumer;
    enum pawl__nats_match matches[2];
    pawl_status status = pawl__nats_consumer_info(f->nats, f->stream, "c", &consumer, &f->error);

    assert_true(status == PAWL_OK || status == PAWL_NOT_FOUND);
    assert_ok(pawl__nats_match_anchors(f->nats, &stream, &s->known, matches, &f->error), &f->error);
    struct pawl__nats_seen seen = { .stream = &stream,
                                    .consumer = status == PAWL_OK ? &consumer : NULL,
                                    .matches = matches,
                                    .now_ns = pawl__wall_us(pawl__clock_real()) * NS_PER_US };
    return pawl__nats_compare_stream(&s->known, &seen);
}

static void expect_story(struct story *s, const char *verdict, uint64_t resume)
{
    struct pawl__nats_finding found = look(s);

    assert_string_equal(pawl__nats_verdict_name(found.verdict), verdict);
    assert_int_equal(found.resume_seq, resume);
}

static void test_a_kill_alone_changes_nothing(void **state)
{
    struct story s;
    struct nats_fixture *f = *state;

    begin(&s, f);
    expect_story(&s, "same", 11);
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    assert_int_equal(look(&s).lost_from, 0);
    finish(&s);
}

static void test_a_recreated_stream_is_noticed(void **state)
{
    struct story s;
    struct nats_fixture *f = *state;
    char all[48];
    const char *subjects[] = { all };
    struct pawl__nats_stream_options options = { .subjects = subjects, .subject_count = 1 };

    begin(&s, f);
    snprintf(all, sizeof(all), "%s.>", f->stream);
    assert_int_equal(js_DeleteStream(f->nats->js, f->stream, NULL, NULL), NATS_OK);
    assert_ok(pawl__nats_stream_create(f->nats, f->stream, &options, NULL, &f->error), &f->error);
    nats_fixture_publish(f, "n", 1, 20);
    expect_story(&s, "recreated", 1);
    assert_true(look(&s).renew_consumer);
    finish(&s);
}

static void test_a_purged_stream_is_noticed(void **state)
{
    struct story s;
    struct nats_fixture *f = *state;
    jsOptions options;

    begin(&s, f);
    nats_fixture_publish(f, "e", 11, 20);
    jsOptions_Init(&options);
    options.Stream.Purge.Sequence = 11;
    assert_int_equal(js_PurgeStream(f->nats->js, f->stream, &options, NULL), NATS_OK);
    expect_story(&s, "same", 11); /* only what we have */
    options.Stream.Purge.Sequence = 15;
    assert_int_equal(js_PurgeStream(f->nats->js, f->stream, &options, NULL), NATS_OK);
    expect_story(&s, "purged", 15);
    assert_int_equal(look(&s).lost_from, 11);
    assert_int_equal(look(&s).lost_to, 14);
    assert_int_equal(js_PurgeStream(f->nats->js, f->stream, NULL, NULL), NATS_OK);
    expect_story(&s, "purged", 21);
    finish(&s);
}

static void test_a_stream_whose_retention_overtook_us_is_noticed(void **state)
{
    struct story s;
    struct nats_fixture *f = *state;
    jsStreamInfo *info = NULL;

    begin(&s, f);
    nats_fixture_publish(f, "e", 11, 20);
    assert_int_equal(js_GetStreamInfo(&info, f->nats->js, f->stream, NULL, NULL), NATS_OK);
    info->Config->MaxMsgs = 5;
    assert_int_equal(js_UpdateStream(NULL, f->nats->js, info->Config, NULL, NULL), NATS_OK);
    jsStreamInfo_Destroy(info);
    expect_story(&s, "overtaken", 16);
    assert_int_equal(look(&s).lost_to, 15);
    finish(&s);
}

static void test_a_lost_consumer_is_noticed_and_made_anew(void **state)
{
    struct story s;
    struct nats_fixture *f = *state;

    begin(&s, f);
    nats_fixture_publish(f, "e", 11, 12);
    assert_ok(pawl__nats_consumer_delete(f->nats, f->stream, "c", &f->error), &f->error);
    expect_story(&s, "consumer_lost", 11);
    nats_fixture_make_consumer(f, 0); /* somebody made it anew under the same name */
    expect_story(&s, "consumer_lost", 11);
    nats_fixture_make_consumer(f, look(&s).resume_seq);
    nats_fixture_drain(f, s.fetcher, 2);
    s.known.consumer_created_ns = 0;
    expect_story(&s, "same", 11);
    finish(&s);
}

/* The store as it was after five messages, as a server has it that lost its tail in a power cut; then it takes
 * other messages under the same sequences. */
static void test_a_rolled_back_stream_is_noticed_and_its_new_messages_arrive(void **state)
{
    struct nats_fixture *f = *state;
    struct story s = { .f = f };
    struct pawl__nats_consumer consumer;

    nats_fixture_publish(f, "e", 1, 5);
    assert_ok(pawl__nats_fetcher_open(f->nats, f->stream, "c", &s.fetcher, &f->error), &f->error);
    s.anchors[0] = nats_fixture_drain(f, s.fetcher, 5);
    assert_ok(nats_server_stop(f->server, &f->error), &f->error);
    assert_ok(nats_server_save(f->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    nats_fixture_publish(f, "e", 6, 10);
    s.anchors[1] = nats_fixture_drain(f, s.fetcher, 5);
    assert_ok(pawl__nats_consumer_info(f->nats, f->stream, "c", &consumer, &f->error), &f->error);
    s.known = (struct pawl__nats_known){ .stream_created_ns = nats_fixture_stream(f).created_ns,
                                         .consumer_created_ns = consumer.created_ns,
                                         .applied_seq = 10,
                                         .anchors = s.anchors,
                                         .anchor_count = 2 };
    assert_ok(nats_server_stop(f->server, &f->error), &f->error);
    assert_ok(nats_server_put_back(f->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    expect_story(&s, "rolled_back", 6); /* shorter than what we have */
    nats_fixture_publish(f, "other", 6, 12);
    expect_story(&s, "rolled_back", 6); /* and with the sequences used again */
    nats_fixture_make_consumer(f, look(&s).resume_seq);
    nats_fixture_drain(f, s.fetcher, 7);
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unchanged_stream_is_the_same),
        cmocka_unit_test(test_another_creation_is_a_recreated_stream),
        cmocka_unit_test(test_a_lost_tail_is_a_rollback),
        cmocka_unit_test(test_missing_messages_are_purged_or_overtaken_by_retention),
        cmocka_unit_test(test_a_consumer_that_forgot_is_made_anew_where_we_are),
        cmocka_unit_test(test_the_margin_says_when_retention_reaches_us),
        cmocka_unit_test(test_each_unfit_field_of_a_consumer_is_named),
        cmocka_unit_test(test_each_unfit_field_of_a_stream_is_named),
        cmocka_unit_test(test_a_reply_subject_is_read_strictly),
        cmocka_unit_test(test_a_url_is_taken_apart_without_showing_its_secrets),
        cmocka_unit_test(test_no_memory_for_a_url_is_told),
        nats_test(test_a_kill_alone_changes_nothing),
        nats_test(test_a_recreated_stream_is_noticed),
        nats_test(test_a_purged_stream_is_noticed),
        nats_test(test_a_stream_whose_retention_overtook_us_is_noticed),
        nats_test(test_a_lost_consumer_is_noticed_and_made_anew),
        nats_test(test_a_rolled_back_stream_is_noticed_and_its_new_messages_arrive),
    };

    return cmocka_run_group_tests_name("nats_truth", tests, nats_fixture_start, nats_fixture_end);
}
