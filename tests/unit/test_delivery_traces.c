/* Delivery where time and order matter, as traces. */
#include "lib/check.h"

#include <inttypes.h>

#include "delivery/core/breaker.h"
#include "delivery/core/running.h"
#include "delivery/core/stream.h"
#include "delivery/memory/sink.h"
#include "delivery/memory/source.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"
#include "lib/trace.h"

/* --- the breaker and the running clock --- */

static void test_the_breaker_waits_longer_each_time_and_closes_on_success(void **state)
{
    const struct pawl__backoff backoff = { 8 * NS_PER_S, 16 * NS_PER_S };
    struct delivery_breaker breaker = { 0 };
    struct trace trace = trace_start();

    (void)state;
    for (int64_t s = 0; s <= 20; s++) {
        trace_at(&trace, s);
        if (!pawl__delivery_breaker_allows(&breaker, trace_now_ns(&trace))) {
            continue;
        }
        if (s < 12) {
            pawl__delivery_breaker_outage(&breaker, &backoff, trace_now_ns(&trace), 0);
            trace_add(&trace, "tried, outage");
        } else {
            pawl__delivery_breaker_success(&breaker);
            trace_add(&trace, "tried, ok");
        }
    }
    assert_trace(&trace,
                 "[  0] tried, outage\n"
                 "[  4] tried, outage\n"
                 "[ 12] tried, ok\n"
                 "[ 13] tried, ok\n"
                 "[ 14] tried, ok\n"
                 "[ 15] tried, ok\n"
                 "[ 16] tried, ok\n"
                 "[ 17] tried, ok\n"
                 "[ 18] tried, ok\n"
                 "[ 19] tried, ok\n"
                 "[ 20] tried, ok\n");
    assert_false(pawl__delivery_breaker_is_open(&breaker));
    trace_done(&trace);
}

static void add_running(struct trace *trace, const struct delivery_running *running)
{
    trace_add(trace,
              "has run %" PRId64 " s",
              pawl__delivery_running_ns(running, trace_now_ns(trace)) / NS_PER_S);
}

static void test_only_time_in_which_events_could_be_tried_counts(void **state)
{
    struct trace trace = trace_start();
    struct delivery_running running =
        pawl__delivery_running_start(100 * NS_PER_S, trace_now_ns(&trace));

    (void)state;
    trace_at(&trace, 10);
    add_running(&trace, &running);
    pawl__delivery_running_stop(&running, trace_now_ns(&trace)); /* an outage */
    trace_at(&trace, 500);
    pawl__delivery_running_stop(&running, trace_now_ns(&trace));
    add_running(&trace, &running);
    pawl__delivery_running_resume(&running, trace_now_ns(&trace));
    trace_at(&trace, 505);
    pawl__clock_step_wall(&trace.clock, 3600 * US_PER_S);
    add_running(&trace, &running);
    running = pawl__delivery_running_start(running.total_ns + 5 * NS_PER_S, 0); /* another boot */
    trace_at(&trace, 510);
    trace_add(
        &trace, "has run %" PRId64 " s", pawl__delivery_running_ns(&running, NS_PER_S) / NS_PER_S);
    assert_trace(&trace,
                 "[ 10] has run 110 s\n"
                 "[500] has run 110 s\n"
                 "[505] has run 115 s\n"
                 "[510] has run 116 s\n");
    trace_done(&trace);
}

/* --- the position --- */

struct walk {
    struct trace trace;
    struct delivery_position position;
    struct delivery_losses losses;
    struct delivery_stream_state stream;
    pawl_error error;
};

static struct walk walk_start(void)
{
    struct walk walk = {
        .trace = trace_start(),
        .position = DELIVERY_POSITION_INIT,
        .stream = { .created_ns = 1, .first = 1, .consumer_found = true },
        .error = PAWL_ERROR_INIT,
    };
    struct delivery_place start = { 1, 0, 0 };

    assert_ok(pawl__delivery_position_start(&walk.position, &start, &walk.error), &walk.error);
    return walk;
}

static void walk_done(struct walk *walk)
{
    trace_done(&walk->trace);
    pawl__delivery_position_done(&walk->position);
    pawl__delivery_losses_done(&walk->losses);
}

static struct delivery_place at(uint64_t sequence)
{
    return (struct delivery_place){ 1, sequence, (int64_t)sequence * 10 };
}

static void append(struct walk *walk, delivery_lsn lsn, uint64_t sequence)
{
    struct delivery_place place = at(sequence);

    assert_ok(pawl__delivery_position_appended(&walk->position, lsn, &place, &walk->error),
              &walk->error);
    trace_add(&walk->trace,
              "LSN %" PRIu64 " from %" PRIu64 " -> floor %" PRIu64,
              lsn,
              sequence,
              pawl__delivery_position_floor(&walk->position));
}

static void show_applied(struct walk *walk, delivery_lsn applied)
{
    struct delivery_place place = pawl__delivery_position_applied(&walk->position, applied);

    trace_add(&walk->trace,
              "applied %" PRIu64 " -> place %" PRIu64 " stored %" PRId64,
              applied,
              place.sequence,
              place.stored_ns);
}

static void test_the_cursor_row_stays_below_everything_that_is_open(void **state)
{
    struct walk walk = walk_start();
    struct delivery_place third = at(3);

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 2);
    append(&walk, 3, 4); /* 3 was lost on the way */
    append(&walk, 4, 5);
    show_applied(&walk, 4);
    append(&walk, 5, 3);
    show_applied(&walk, 4); /* 3 is in the WAL, and not applied: its stretch of LSNs began at 1 */
    show_applied(&walk, 5);
    pawl__delivery_position_exception(&walk.position, &third);
    show_applied(&walk, 5);
    pawl__delivery_position_exceptions(&walk.position, NULL, 0);
    show_applied(&walk, 5);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] LSN 2 from 2 -> floor 2\n"
                 "[  0] LSN 3 from 4 -> floor 2\n"
                 "[  0] LSN 4 from 5 -> floor 2\n"
                 "[  0] applied 4 -> place 2 stored 20\n"
                 "[  0] LSN 5 from 3 -> floor 5\n"
                 "[  0] applied 4 -> place 0 stored 0\n"
                 "[  0] applied 5 -> place 5 stored 50\n"
                 "[  0] applied 5 -> place 2 stored 20\n"
                 "[  0] applied 5 -> place 5 stored 50\n");
    walk_done(&walk);
}

/* The WAL has forgotten what is below it: a message without an id that came again would be new. */
static void test_the_place_of_a_committed_row_never_falls(void **state)
{
    struct walk walk = walk_start();
    struct delivery_place second = at(2);

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 2);
    append(&walk, 3, 3);
    show_applied(&walk, 3);
    pawl__delivery_position_committed(&walk.position);
    append(&walk, 4, 4);
    assert_ok(pawl__delivery_position_duplicate(&walk.position, 2, &second, &walk.error),
              &walk.error); /* a redelivery, in the span of what is pending */
    show_applied(&walk, 3);
    show_applied(&walk, 4);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] LSN 2 from 2 -> floor 2\n"
                 "[  0] LSN 3 from 3 -> floor 3\n"
                 "[  0] applied 3 -> place 3 stored 30\n"
                 "[  0] LSN 4 from 4 -> floor 4\n"
                 "[  0] applied 3 -> place 3 stored 30\n"
                 "[  0] applied 4 -> place 4 stored 40\n");
    walk_done(&walk);
}

/* An entry of a stream that the cursor row did not know at the start is in no span. */
static void test_a_duplicate_of_a_pending_entry_keeps_its_place_open(void **state)
{
    struct walk walk = walk_start();
    struct delivery_place first = at(1);

    (void)state;
    assert_ok(pawl__delivery_position_duplicate(&walk.position, 12, &first, &walk.error),
              &walk.error);
    show_applied(&walk, 3);
    show_applied(&walk, 12);
    assert_trace(&walk.trace,
                 "[  0] applied 3 -> place 0 stored 0\n"
                 "[  0] applied 12 -> place 1 stored 10\n");
    walk_done(&walk);
}

static void test_a_duplicate_of_an_exception_keeps_its_place_open(void **state)
{
    struct walk walk = walk_start();
    struct delivery_place first = at(1);
    struct delivery_place repeated = at(3);
    struct delivery_exception exception = { .lsn = 1, .sequence = 9 };

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 2);
    pawl__delivery_position_exception(&walk.position, &first);
    assert_ok(pawl__delivery_position_duplicate(&walk.position, 1, &repeated, &walk.error),
              &walk.error);
    pawl__delivery_position_exceptions(&walk.position, &exception, 1);
    show_applied(&walk, 2);
    pawl__delivery_position_exceptions(&walk.position, NULL, 0);
    show_applied(&walk, 2);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] LSN 2 from 2 -> floor 2\n"
                 "[  0] applied 2 -> place 2 stored 20\n"
                 "[  0] applied 2 -> place 3 stored 30\n");
    walk_done(&walk);
}

static void test_the_wal_keeps_what_a_checkpoint_or_the_floor_does_not_cover(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 3);
    assert_int_equal(pawl__delivery_position_clean_to(&walk.position, 1, 1), 0);
    assert_int_equal(pawl__delivery_position_clean_to(&walk.position, 2, 1),
                     0); /* 3 is above the floor */
    append(&walk, 3, 2);
    assert_int_equal(pawl__delivery_position_clean_to(&walk.position, 3, 3), 3);
    walk_done(&walk);
}

/* --- the stream's truth --- */

static enum delivery_truth ask(struct walk *walk)
{
    size_t count = walk->position.anchor_count;
    const struct delivery_place *anchor = count == 0 ? NULL : &walk->position.anchors[count - 1];

    return pawl__delivery_truth(&walk->position, anchor, &walk->stream);
}

static void follow(struct walk *walk, uint64_t common)
{
    enum delivery_truth truth = ask(walk);

    walk->losses.count = 0;
    assert_ok(
        pawl__delivery_follow(
            &walk->position, truth, common, &walk->stream, false, &walk->losses, &walk->error),
        &walk->error);
    trace_add(&walk->trace,
              "truth %d -> floor %" PRIu64,
              (int)truth,
              pawl__delivery_position_floor(&walk->position));
    for (size_t i = 0; i < walk->losses.count; i++) {
        const struct delivery_loss *loss = &walk->losses.items[i];
        trace_add(&walk->trace,
                  "lost %" PRIu64 "-%" PRId64 " of %" PRId64 ": %s",
                  loss->from,
                  (int64_t)loss->to,
                  loss->created_ns,
                  pawl__delivery_loss_reason_name(loss->reason));
    }
}

static void test_a_purge_loses_exactly_what_was_not_seen(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 4);
    walk.stream.last = 8;
    walk.stream.first = 7;
    walk.stream.probe_found = false; /* 4 is purged, too */
    follow(&walk, 0);
    walk.stream.first = 9;
    follow(&walk, 0);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] LSN 2 from 4 -> floor 1\n"
                 "[  0] truth 0 -> floor 6\n"
                 "[  0] lost 2-3 of 1: retention\n"
                 "[  0] lost 5-6 of 1: retention\n"
                 "[  0] truth 0 -> floor 8\n"
                 "[  0] lost 7-8 of 1: purged\n");
    walk_done(&walk);
}

static void test_a_lost_tail_is_followed_down_to_what_is_still_the_same(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 2);
    append(&walk, 3, 3);
    walk.stream.last = 2;
    follow(&walk, 2);
    append(&walk, 4, 3); /* another message under the same sequence */
    walk.stream.last = 9;
    walk.stream.probe_found = true;
    walk.stream.probe_stored_ns = 31; /* it grew again: 3 is not the 3 that we know */
    follow(&walk, 1);
    assert_true(
        pawl__delivery_position_may_know(&walk.position, &(struct delivery_place){ 1, 3, 31 }));
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] LSN 2 from 2 -> floor 2\n"
                 "[  0] LSN 3 from 3 -> floor 3\n"
                 "[  0] truth 2 -> floor 2\n"
                 "[  0] lost 4--1 of 1: rolled_back\n"
                 "[  0] LSN 4 from 3 -> floor 3\n"
                 "[  0] truth 2 -> floor 1\n"
                 "[  0] lost 4--1 of 1: rolled_back\n");
    walk_done(&walk);
}

static void test_a_lost_tail_opens_no_place_that_waits_for_an_exception(void **state)
{
    struct walk walk = walk_start();
    struct delivery_place repeated = at(1);
    struct delivery_exception exception = { .lsn = 1, .sequence = 9 }; /* of an older stream */

    (void)state;
    pawl__delivery_position_exceptions(&walk.position, &exception, 1);
    assert_ok(pawl__delivery_position_duplicate(&walk.position, 1, &repeated, &walk.error),
              &walk.error);
    append(&walk, 2, 2);
    append(&walk, 3, 3);
    walk.stream.last = 2;
    follow(&walk, 2);
    pawl__delivery_position_exceptions(&walk.position, &exception, 1);
    show_applied(&walk, 3);
    assert_trace(&walk.trace,
                 "[  0] LSN 2 from 2 -> floor 2\n"
                 "[  0] LSN 3 from 3 -> floor 3\n"
                 "[  0] truth 2 -> floor 2\n"
                 "[  0] lost 4--1 of 1: rolled_back\n"
                 "[  0] applied 3 -> place 0 stored 0\n");
    walk_done(&walk);
}

static void test_a_message_at_a_place_that_was_purged_is_of_a_new_tail(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    walk.stream.first = 3; /* 1 and 2 were purged, and 2 was never seen */
    walk.stream.last = 2;
    follow(&walk, 0);
    struct delivery_place row = pawl__delivery_position_applied(&walk.position, 1);
    assert_int_equal(row.sequence, 2);
    assert_ok(pawl__delivery_position_start(&walk.position, &row, &walk.error), &walk.error);
    trace_add(&walk.trace, "all but the row is lost");
    walk.stream.first = 2; /* the server lost its tail and got another 2 */
    walk.stream.probe_found = true;
    walk.stream.probe_stored_ns = 21;
    follow(&walk, 0);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] truth 0 -> floor 2\n"
                 "[  0] lost 2-2 of 1: purged\n"
                 "[  0] all but the row is lost\n"
                 "[  0] truth 2 -> floor 1\n"
                 "[  0] lost 3--1 of 1: rolled_back\n"
                 "[  0] lost 1-1 of 1: retention\n");
    walk_done(&walk);
}

static void test_a_stream_that_ends_below_the_row_has_lost_its_tail(void **state)
{
    struct walk walk = walk_start();
    const struct delivery_place row = { 1, 5, 0 }; /* nobody knows when 5 was stored */

    (void)state;
    assert_ok(pawl__delivery_position_start(&walk.position, &row, &walk.error), &walk.error);
    walk.stream.last = 5;
    follow(&walk, 0);
    walk.stream.last = 4;
    follow(&walk, 0);
    assert_trace(&walk.trace,
                 "[  0] truth 0 -> floor 5\n"
                 "[  0] truth 2 -> floor 0\n"
                 "[  0] lost 6--1 of 1: rolled_back\n");
    walk_done(&walk);
}

static void test_a_recreated_stream_begins_anew(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    walk.stream = (struct delivery_stream_state){ .created_ns = 2, .first = 3, .last = 5 };
    follow(&walk, 0);
    assert_int_equal(walk.position.created_ns, 2);
    assert_trace(&walk.trace,
                 "[  0] LSN 1 from 1 -> floor 1\n"
                 "[  0] truth 1 -> floor 2\n"
                 "[  0] lost 2--1 of 1: recreated\n"
                 "[  0] lost 1-2 of 2: retention\n");
    walk_done(&walk);
}

static void test_a_consumer_is_kept_only_if_it_knows_no_more_than_we_do(void **state)
{
    struct walk walk = walk_start();

    (void)state;
    append(&walk, 1, 1);
    append(&walk, 2, 2);
    walk.stream.delivered = 2;
    walk.stream.acked_to = 2;
    assert_true(pawl__delivery_consumer_fits(&walk.position, &walk.stream));
    walk.stream.delivered = 3;
    assert_false(pawl__delivery_consumer_fits(&walk.position, &walk.stream));
    append(&walk, 3, 4); /* 3 may be acknowledged, and not here */
    walk.stream.delivered = 4;
    assert_false(pawl__delivery_consumer_fits(&walk.position, &walk.stream));
    walk.stream.acked_to = 4;
    assert_ok(pawl__delivery_settle(&walk.position, &walk.stream, &walk.error), &walk.error);
    assert_int_equal(pawl__delivery_position_floor(&walk.position), 4);
    walk_done(&walk);
}

static void test_a_row_from_before_a_rollback_is_known_by_its_version(void **state)
{
    struct walk walk = walk_start();
    struct delivery_cursor cursor = { .fence = 3, .version = 7, .stream = { 1, 9, 90 } };

    (void)state;
    append(&walk, 1, 1);
    struct delivery_rewound rewound = pawl__delivery_rewind(&walk.position, 2, &cursor);
    assert_int_equal(rewound.lsn, 1);
    assert_int_equal(rewound.sequence, 1);
    assert_true(pawl__delivery_is_rewound(&rewound, &cursor));
    cursor.version = 8; /* may have been under way */
    assert_true(pawl__delivery_is_rewound(&rewound, &cursor));
    cursor.version = 9;
    assert_false(pawl__delivery_is_rewound(&rewound, &cursor));
    cursor = (struct delivery_cursor){ .fence = 4, .version = 1, .stream = { 1, 9, 90 } };
    assert_false(pawl__delivery_is_rewound(&rewound, &cursor));
    walk_done(&walk);
}

static void test_retention_that_comes_near_is_seen_in_time(void **state)
{
    struct delivery_stream_state stream = {
        .first = 5, .last = 9, .oldest_age_ns = 75, .age_max_ns = 100
    };

    (void)state;
    assert_int_equal(pawl__delivery_retention_left(&stream, 9), 100); /* all of it is read */
    stream.age_max_ns = 100 * NS_PER_S;
    stream.oldest_age_ns = 75 * NS_PER_S;
    assert_int_equal(pawl__delivery_retention_left(&stream, 4), 24);
    stream.oldest_age_ns = 200 * NS_PER_S;
    assert_int_equal(pawl__delivery_retention_left(&stream, 4), 0);
    stream.age_max_ns = 0;
    assert_int_equal(pawl__delivery_retention_left(&stream, 4), 100);
}

/* --- stores that are lost, and older ones that come back --- */

struct story {
    struct trace trace;
    struct pawl__random_seeded random;
    struct delivery_memory_source source;
    struct delivery_memory_wal wal;
    struct delivery_memory_sink sink;
    struct delivery_wal_ops wal_ops; /* of a WAL that cannot finish its index */
    struct delivery_settings settings;
    struct delivery_pipeline pipeline;
    int64_t published;
    pawl_error error;
};

static const struct delivery_uuid first_sink_id = { { 1 } };

static int begin_story(void **state)
{
    static struct story story;

    story = (struct story){
        .trace = trace_start(),
        .random = pawl__random_seeded_with(1),
        .wal = pawl__delivery_memory_wal(),
        .sink = pawl__delivery_memory_sink(&first_sink_id, NULL),
        .settings = pawl__delivery_settings_default(),
        .error = PAWL_ERROR_INIT,
    };
    story.source = pawl__delivery_memory_source(&story.trace.clock.base, 1, 30 * NS_PER_S);
    story.settings.identity =
        (struct delivery_identity_rule){ pawl_view_of("test"), pawl_view_of("S"), { NULL, 0 } };
    *state = &story;
    return 0;
}

static int end_story(void **state)
{
    struct story *story = *state;

    pawl__delivery_pipeline_close(&story->pipeline);
    pawl__delivery_memory_source_done(&story->source);
    pawl__delivery_memory_wal_done(&story->wal);
    pawl__delivery_memory_sink_done(&story->sink);
    trace_done(&story->trace);
    return 0;
}

/* `id` "": it has none. */
static void publish(struct story *story, const char *id, const char *payload)
{
    struct delivery_header header = { pawl_view_of("Nats-Msg-Id"), pawl_view_of(id) };
    struct delivery_message message = {
        .place = { .stored_ns = 100 + ++story->published },
        .subject = pawl_view_of("events"),
        .headers = &header,
        .header_count = id[0] == '\0' ? 0 : 1,
        .payload = pawl_view_of(payload),
    };
    uint64_t sequence = 0;

    assert_ok(pawl__delivery_memory_publish(&story->source, &message, &sequence, &story->error),
              &story->error);
    trace_add(&story->trace, "%s%s%s is published", id, id[0] == '\0' ? "" : " = ", payload);
}

static pawl_status try_to_open(struct story *story)
{
    const struct delivery_parts parts = { &story->source.base,
                                          &story->wal.base,
                                          &story->sink.base,
                                          &story->trace.clock.base,
                                          &story->random.base };

    pawl__delivery_pipeline_close(&story->pipeline);
    return pawl__delivery_pipeline_open(&story->pipeline, &story->settings, &parts, &story->error);
}

static void open_again(struct story *story)
{
    assert_ok(try_to_open(story), &story->error);
    trace_add(&story->trace, "opened: %s", pawl__delivery_pairing_name(story->pipeline.pairing));
}

/* What the sink has, in the order in which it came: "a = 1, a = 2 (conflict), 3". */
static void show_sink(struct story *story)
{
    char text[200];
    struct pawl__buf line = BUF_OVER(text);

    for (size_t i = 0; i < story->sink.count; i++) {
        const struct delivery_memory_row *row = &story->sink.rows[i];
        const struct delivery_entry *entry = &row->stored->entry;
        pawl__buf_add_text(&line, i == 0 ? "" : ", ");
        if (!entry->by_place) {
            pawl__buf_add_format(&line, "%.*s = ", VIEW_ARGS(entry->event_id));
        }
        pawl__buf_add(&line, entry->payload);
        if (row->kind == DELIVERY_TO_FAILED) {
            pawl__buf_add_format(&line, " (%s)", row->reason);
        }
    }
    trace_add(&story->trace,
              "sink: %.*s; applied %" PRIu64,
              (int)line.len,
              text,
              story->sink.cursor.applied);
}

static void deliver(struct story *story)
{
    size_t moved = 0;

    assert_ok(pawl__delivery_intake(&story->pipeline, &moved, &story->error), &story->error);
    assert_ok(pawl__delivery_apply(&story->pipeline, &moved, &story->error), &story->error);
    assert_ok(pawl__delivery_retry(&story->pipeline, &moved, &story->error), &story->error);
    show_sink(story);
}

static struct delivery_memory_wal copy_wal(struct story *story)
{
    struct delivery_memory_wal copy = pawl__delivery_memory_wal();

    assert_ok(pawl__delivery_memory_wal_copy(&copy, &story->wal, &story->error), &story->error);
    return copy;
}

static void lose_wal(struct story *story)
{
    pawl__delivery_memory_wal_done(&story->wal);
    trace_add(&story->trace, "the WAL is lost");
}

static void lose_sink(struct story *story)
{
    pawl__delivery_memory_sink_done(&story->sink);
    trace_add(&story->trace, "the sink is lost");
}

static void test_an_id_stays_with_the_payload_that_the_sink_has(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    deliver(story);
    struct delivery_memory_wal old = copy_wal(story);
    lose_wal(story);
    lose_sink(story);
    pawl__delivery_memory_purge(&story->source, 1);
    publish(story, "a", "2");
    open_again(story);
    deliver(story);
    pawl__delivery_memory_wal_done(&story->wal);
    story->wal = old;
    trace_add(&story->trace, "the old WAL is restored");
    open_again(story);
    publish(story, "a", "2");
    deliver(story);
    open_again(story); /* and after both have an end, whatever is lost next */
    lose_wal(story);
    open_again(story);
    publish(story, "a", "1");
    publish(story, "a", "2");
    deliver(story);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] sink: a = 1; applied 1\n"
                 "[  0] the WAL is lost\n"
                 "[  0] the sink is lost\n"
                 "[  0] a = 2 is published\n"
                 "[  0] opened: first\n"
                 "[  0] sink: a = 2; applied 1\n"
                 "[  0] the old WAL is restored\n"
                 "[  0] opened: adopt\n"
                 "[  0] a = 2 is published\n"
                 "[  0] sink: a = 2, a = 1 (conflict); applied 1\n"
                 "[  0] opened: resume\n"
                 "[  0] the WAL is lost\n"
                 "[  0] opened: adopt\n"
                 "[  0] a = 1 is published\n"
                 "[  0] a = 2 is published\n"
                 "[  0] sink: a = 2, a = 1 (conflict); applied 1\n");
}

static void test_a_conflict_of_an_old_wal_is_known_as_the_owner_of_its_id(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    publish(story, "a", "2");
    deliver(story);
    struct delivery_memory_wal old = copy_wal(story);
    lose_wal(story);
    lose_sink(story);
    pawl__delivery_memory_purge(&story->source, 1);
    open_again(story);
    deliver(story);
    pawl__delivery_memory_wal_done(&story->wal);
    story->wal = old;
    trace_add(&story->trace, "the old WAL is restored");
    open_again(story);
    deliver(story);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] a = 2 is published\n"
                 "[  0] sink: a = 1, a = 2 (conflict); applied 2\n"
                 "[  0] the WAL is lost\n"
                 "[  0] the sink is lost\n"
                 "[  0] opened: first\n"
                 "[  0] sink: a = 2; applied 1\n"
                 "[  0] the old WAL is restored\n"
                 "[  0] opened: adopt\n"
                 "[  0] sink: a = 2, a = 1 (conflict); applied 2\n");
}

static void test_what_the_wal_forgot_is_not_waited_for_after_a_rebuild(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    publish(story, "b", "not json");
    publish(story, "c", "1");
    deliver(story);
    trace_at(&story->trace, 61);
    assert_ok(pawl__delivery_maintain(&story->pipeline, &story->error), &story->error);
    lose_sink(story);
    pawl__delivery_memory_purge(&story->source, 3);
    open_again(story);
    deliver(story);
    open_again(story); /* not another rebuild */
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] b = not json is published\n"
                 "[  0] c = 1 is published\n"
                 "[  0] sink: a = 1, b = not json (not_json), c = 1; applied 3\n"
                 "[ 61] the sink is lost\n"
                 "[ 61] opened: rebuild\n"
                 "[ 61] sink: b = not json (not_json); applied 3\n"
                 "[ 61] opened: resume\n");
}

static pawl_status die_in_reindex(struct delivery_wal *wal, uint64_t epoch, pawl_error *reterr)
{
    (void)wal;
    (void)epoch;
    *reterr = (pawl_error){ .status = PAWL_IO, .message = "the process dies" };
    return PAWL_IO;
}

static void fail_to_open(struct story *story)
{
    const struct delivery_wal_ops *good = story->wal.base.ops;

    story->wal_ops = *good;
    story->wal_ops.reindex = die_in_reindex;
    story->wal.base.ops = &story->wal_ops;
    assert_status(try_to_open(story), PAWL_IO, &story->error);
    story->wal.base.ops = good;
    trace_add(&story->trace, "dies while it makes the index");
}

static void test_an_index_that_was_not_finished_counts_for_nothing(void **state)
{
    struct story *story = *state;
    struct delivery_memory_sink old = pawl__delivery_memory_sink(&first_sink_id, NULL);

    open_again(story);
    publish(story, "a", "1");
    deliver(story);
    assert_ok(pawl__delivery_memory_sink_copy(&old, &story->sink, &story->error), &story->error);
    publish(story, "b", "1");
    deliver(story);
    lose_wal(story);
    fail_to_open(story);
    pawl__delivery_memory_sink_done(&story->sink);
    story->sink = old;
    trace_add(&story->trace, "an older sink is restored");
    open_again(story);
    deliver(story);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] sink: a = 1; applied 1\n"
                 "[  0] b = 1 is published\n"
                 "[  0] sink: a = 1, b = 1; applied 2\n"
                 "[  0] the WAL is lost\n"
                 "[  0] dies while it makes the index\n"
                 "[  0] an older sink is restored\n"
                 "[  0] opened: adopt\n"
                 "[  0] sink: a = 1, b = 1; applied 2\n");
}

static void apply_and_forget(struct story *story, int64_t seconds)
{
    size_t moved = 0;

    assert_ok(pawl__delivery_apply(&story->pipeline, &moved, &story->error), &story->error);
    trace_at(&story->trace, seconds);
    assert_ok(pawl__delivery_maintain(&story->pipeline, &story->error), &story->error);
    trace_add(&story->trace, "the WAL holds %zu entries", story->wal.count);
}

static void test_a_wal_that_was_adopted_stays_the_one(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    deliver(story);
    lose_wal(story);
    open_again(story);
    open_again(story); /* it is empty still */
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] sink: a = 1; applied 1\n"
                 "[  0] the WAL is lost\n"
                 "[  0] opened: adopt\n"
                 "[  0] opened: resume\n");
}

static void test_a_second_life_is_known_after_another_start(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    deliver(story);
    lose_wal(story);
    lose_sink(story);
    pawl__delivery_memory_purge(&story->source, 1);
    open_again(story);
    open_again(story); /* killed before it asked the stream */
    deliver(story);
    assert_int_equal(story->sink.loss_count, 1);
    trace_add(&story->trace,
              "lost: %" PRIu64 " to %" PRIu64 ", %s",
              story->sink.losses[0].from,
              story->sink.losses[0].to,
              pawl__delivery_loss_reason_name(story->sink.losses[0].reason));
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] sink: a = 1; applied 1\n"
                 "[  0] the WAL is lost\n"
                 "[  0] the sink is lost\n"
                 "[  0] opened: first\n"
                 "[  0] opened: resume\n"
                 "[  0] sink: ; applied 0\n"
                 "[  0] lost: 1 to 1, rebuild\n");
}

static void test_an_older_sink_does_not_know_the_stream_that_was_recreated(void **state)
{
    struct story *story = *state;
    struct delivery_memory_sink old = pawl__delivery_memory_sink(&first_sink_id, NULL);

    open_again(story);
    publish(story, "", "1");
    deliver(story);
    assert_ok(pawl__delivery_memory_sink_copy(&old, &story->sink, &story->error), &story->error);
    pawl__delivery_memory_recreate(&story->source, 2);
    open_again(story);
    publish(story, "", "2");
    deliver(story);
    pawl__delivery_memory_sink_done(&story->sink);
    story->sink = old;
    trace_add(&story->trace, "an older sink is restored");
    open_again(story);
    apply_and_forget(story, 61); /* before the stream was asked */
    deliver(story);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] 1 is published\n"
                 "[  0] sink: 1; applied 1\n"
                 "[  0] opened: resume\n"
                 "[  0] 2 is published\n"
                 "[  0] sink: 1, 2; applied 2\n"
                 "[  0] an older sink is restored\n"
                 "[  0] opened: resume\n"
                 "[ 61] the WAL holds 0 entries\n"
                 "[ 61] sink: 1, 2; applied 2\n");
}

static void test_the_first_row_after_a_rollback_may_be_followed_too_far_back(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "", "1");
    publish(story, "", "2");
    deliver(story);
    pawl__delivery_memory_roll_back(&story->source, 1, true);
    publish(story, "", "3");
    publish(story, "", "4");
    open_again(story);
    deliver(story);
    apply_and_forget(story, 61);
    open_again(story);
    deliver(story);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] 1 is published\n"
                 "[  0] 2 is published\n"
                 "[  0] sink: 1, 2; applied 2\n"
                 "[  0] 3 is published\n"
                 "[  0] 4 is published\n"
                 "[  0] opened: resume\n"
                 "[  0] sink: 1, 2, 3, 4; applied 4\n"
                 "[ 61] the WAL holds 0 entries\n"
                 "[ 61] opened: resume\n"
                 "[ 61] sink: 1, 2, 3, 4; applied 4\n");
}

static const struct delivery_wal_ops *good_ops;

static pawl_status lose_the_answer(struct delivery_wal *wal,
                                   const struct delivery_wal_meta *meta,
                                   pawl_error *reterr)
{
    pawl_status status = good_ops->write_meta(wal, meta, reterr);

    assert_int_equal(status, PAWL_OK);
    *reterr = (pawl_error){ .status = PAWL_IO, .message = "the answer was lost" };
    return PAWL_IO;
}

static void test_a_rollback_whose_record_is_in_doubt_is_followed_by_a_new_start(void **state)
{
    struct story *story = *state;
    size_t moved = 0;

    open_again(story);
    publish(story, "a", "1");
    publish(story, "b", "2");
    deliver(story);
    pawl__delivery_memory_roll_back(&story->source, 1, true);
    publish(story, "c", "3");
    good_ops = story->wal.base.ops;
    story->wal_ops = *good_ops;
    story->wal_ops.write_meta = lose_the_answer;
    story->wal.base.ops = &story->wal_ops;
    story->pipeline.shared.check_stream = true; /* the connection was cut */
    assert_status(
        pawl__delivery_intake(&story->pipeline, &moved, &story->error), PAWL_IO, &story->error);
    story->wal.base.ops = good_ops;
    assert_true(pawl__delivery_must_reopen(&story->pipeline));
    open_again(story);
    deliver(story);
    assert_int_equal(story->wal.meta.rewound.lsn, 2); /* b's place is c's now */
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] b = 2 is published\n"
                 "[  0] sink: a = 1, b = 2; applied 2\n"
                 "[  0] c = 3 is published\n"
                 "[  0] opened: resume\n"
                 "[  0] sink: a = 1, b = 2, c = 3; applied 3\n");
}

static const struct delivery_source_ops *good_source_ops;

/* A file that is read again knows only the lines up to the one that it was asked for. */
static pawl_status know_what_is_asked(struct delivery_source *source,
                                      uint64_t probe,
                                      struct delivery_stream_state *ret_state,
                                      pawl_error *reterr)
{
    pawl_status status = good_source_ops->state(source, probe, ret_state, reterr);

    ret_state->last = MIN(ret_state->last, probe);
    return status;
}

static void test_a_source_is_asked_about_the_row_before_it_is_thought_short(void **state)
{
    struct story *story = *state;

    open_again(story);
    publish(story, "a", "1");
    deliver(story);
    lose_wal(story);
    story->sink.cursor.stream.stored_ns = 0; /* nobody knows when it was stored */
    good_source_ops = story->source.base.ops;
    struct delivery_source_ops ops = *good_source_ops;
    ops.state = know_what_is_asked;
    story->source.base.ops = &ops;
    open_again(story);
    deliver(story);
    story->source.base.ops = good_source_ops;
    assert_int_equal(story->sink.loss_count, 0);
    assert_trace(&story->trace,
                 "[  0] opened: first\n"
                 "[  0] a = 1 is published\n"
                 "[  0] sink: a = 1; applied 1\n"
                 "[  0] the WAL is lost\n"
                 "[  0] opened: adopt\n"
                 "[  0] sink: a = 1; applied 1\n");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin_story, end_story)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_breaker_waits_longer_each_time_and_closes_on_success),
        cmocka_unit_test(test_only_time_in_which_events_could_be_tried_counts),
        cmocka_unit_test(test_the_cursor_row_stays_below_everything_that_is_open),
        cmocka_unit_test(test_the_place_of_a_committed_row_never_falls),
        cmocka_unit_test(test_a_duplicate_of_a_pending_entry_keeps_its_place_open),
        cmocka_unit_test(test_a_duplicate_of_an_exception_keeps_its_place_open),
        cmocka_unit_test(test_the_wal_keeps_what_a_checkpoint_or_the_floor_does_not_cover),
        cmocka_unit_test(test_a_purge_loses_exactly_what_was_not_seen),
        cmocka_unit_test(test_a_lost_tail_is_followed_down_to_what_is_still_the_same),
        cmocka_unit_test(test_a_lost_tail_opens_no_place_that_waits_for_an_exception),
        cmocka_unit_test(test_a_message_at_a_place_that_was_purged_is_of_a_new_tail),
        cmocka_unit_test(test_a_stream_that_ends_below_the_row_has_lost_its_tail),
        cmocka_unit_test(test_a_recreated_stream_begins_anew),
        cmocka_unit_test(test_a_consumer_is_kept_only_if_it_knows_no_more_than_we_do),
        cmocka_unit_test(test_a_row_from_before_a_rollback_is_known_by_its_version),
        cmocka_unit_test(test_retention_that_comes_near_is_seen_in_time),
        STORY(test_an_id_stays_with_the_payload_that_the_sink_has),
        STORY(test_a_conflict_of_an_old_wal_is_known_as_the_owner_of_its_id),
        STORY(test_what_the_wal_forgot_is_not_waited_for_after_a_rebuild),
        STORY(test_an_index_that_was_not_finished_counts_for_nothing),
        STORY(test_a_wal_that_was_adopted_stays_the_one),
        STORY(test_a_second_life_is_known_after_another_start),
        STORY(test_an_older_sink_does_not_know_the_stream_that_was_recreated),
        STORY(test_the_first_row_after_a_rollback_may_be_followed_too_far_back),
        STORY(test_a_rollback_whose_record_is_in_doubt_is_followed_by_a_new_start),
        STORY(test_a_source_is_asked_about_the_row_before_it_is_thought_short),
    };
    return cmocka_run_group_tests_name("delivery_traces", tests, NULL, NULL);
}
