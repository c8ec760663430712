/* A pipeline on stores in memory: the walk of events through it. */
#include "lib/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/core/random.h"
#include "delivery/memory/sink.h"
#include "delivery/memory/source.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"
#include "lib/virtual_clock.h"

struct fixture {
    struct pawl__clock_virtual clock;
    struct pawl__random_seeded random;
    struct delivery_memory_source source;
    struct delivery_memory_wal wal;
    struct delivery_memory_sink sink;
    struct delivery_settings settings;
    struct delivery_pipeline pipeline;
    pawl_status outage; /* what the sink answers; PAWL_OK: it works */
    size_t commits;
    pawl_error error;
};

/* "bad" is refused for good, "odd" for no reason that the sink names. */
static pawl_status refuse(void *context,
                          const struct delivery_transaction *transaction,
                          pawl_error *reterr)
{
    struct fixture *f = context;

    f->commits++;
    if (f->outage != PAWL_OK) {
        *reterr = (pawl_error){ .status = f->outage, .message = "the disk is gone" };
        return f->outage;
    }
    for (size_t i = 0; i < transaction->count; i++) {
        const struct delivery_outcome *outcome = &transaction->outcomes[i];
        bool is_bad = pawl__view_is(outcome->entry->payload, "\"bad\"");
        if (outcome->kind == DELIVERY_ROW
            && (is_bad || pawl__view_is(outcome->entry->payload, "\"odd\""))) {
            *reterr =
                (pawl_error){ .status = is_bad ? PAWL_INVALID : PAWL_FAILED, .message = "no" };
            return reterr->status;
        }
    }
    return PAWL_OK;
}

static int setup(void **state)
{
    static struct fixture f;
    const struct delivery_memory_rules rules = { .refuse = refuse, .context = &f };
    const struct delivery_uuid sink_id = { { 7 } };

    f = (struct fixture){
        .clock = pawl__clock_virtual_at(0, NS_PER_S),
        .random = pawl__random_seeded_with(1),
        .wal = pawl__delivery_memory_wal(),
        .sink = pawl__delivery_memory_sink(&sink_id, &rules),
        .settings = pawl__delivery_settings_default(),
    };
    f.source = pawl__delivery_memory_source(&f.clock.base, 1, 30 * NS_PER_S);
    f.settings.identity =
        (struct delivery_identity_rule){ pawl_view_of("test"), pawl_view_of("S"), { NULL, 0 } };
    f.settings.fetch.messages_max = 10;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__delivery_pipeline_close(&f->pipeline);
    pawl__delivery_memory_source_done(&f->source);
    pawl__delivery_memory_wal_done(&f->wal);
    pawl__delivery_memory_sink_done(&f->sink);
    return 0;
}

static void publish(struct fixture *f, const char *id, const char *payload)
{
    struct delivery_header header = { pawl_view_of("Nats-Msg-Id"), pawl_view_of(id) };
    struct delivery_message message = {
        .place = { .stored_ns = (int64_t)f->source.last + 100 },
        .subject = pawl_view_of("events"),
        .headers = &header,
        .header_count = 1,
        .payload = pawl_view_of(payload),
    };
    uint64_t sequence = 0;

    assert_ok(pawl__delivery_memory_publish(&f->source, &message, &sequence, &f->error), &f->error);
}

static void open_pipeline(struct fixture *f)
{
    const struct delivery_parts parts = {
        &f->source.base, &f->wal.base, &f->sink.base, &f->clock.base, &f->random.base
    };

    pawl__delivery_pipeline_close(&f->pipeline);
    assert_ok(pawl__delivery_pipeline_open(&f->pipeline, &f->settings, &parts, &f->error),
              &f->error);
}

static void take_in(struct fixture *f)
{
    size_t moved = 0;

    assert_ok(pawl__delivery_intake(&f->pipeline, &moved, &f->error), &f->error);
}

static void apply_all(struct fixture *f)
{
    size_t moved = 1;

    while (moved > 0) {
        assert_ok(pawl__delivery_apply(&f->pipeline, &moved, &f->error), &f->error);
    }
}

/* "accepted delivered filtered failed pending" */
static const char *counts(struct fixture *f)
{
    static char text[64];
    struct delivery_counters c = pawl__delivery_pipeline_counters(&f->pipeline);

    snprintf(text,
             sizeof(text),
             "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             c.accepted,
             c.delivered,
             c.filtered,
             c.failed,
             pawl__delivery_pending(&c));
    return text;
}

static void test_events_are_acknowledged_once_appended_and_applied_once(void **state)
{
    struct fixture *f = *state;

    publish(f, "a", "1");
    publish(f, "b", "2");
    publish(f, "a", "1"); /* a producer's retry */
    open_pipeline(f);
    take_in(f);
    assert_true(f->source.messages[0].is_acked && f->source.messages[2].is_acked);
    assert_string_equal(counts(f), "2 0 0 0 2");
    apply_all(f);
    assert_string_equal(counts(f), "2 2 0 0 0");
    assert_int_equal(f->pipeline.shared.totals.duplicates, 1);
    assert_int_equal(f->sink.cursor.stream.sequence, 3);
    assert_int_equal(f->commits, 2); /* the claim, and both events in one */
}

static void test_the_same_id_with_another_payload_fails_as_a_conflict_once(void **state)
{
    struct fixture *f = *state;

    publish(f, "a", "1");
    publish(f, "a", "2");
    publish(f, "a", "2");
    open_pipeline(f);
    take_in(f);
    apply_all(f);
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_string_equal(f->sink.rows[1].reason, "conflict");
    assert_int_equal(f->wal.entries[1].fate.state, DELIVERY_FAILED);
}

static void test_bad_events_are_found_among_good_ones(void **state)
{
    struct fixture *f = *state;
    char id[8];

    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "%d", i);
        publish(f, id, i == 3 ? "\"bad\"" : i == 6 ? "\"odd\"" : i == 8 ? "not json" : "1");
    }
    open_pipeline(f);
    take_in(f);
    apply_all(f);
    assert_string_equal(counts(f), "10 7 0 2 1");
    assert_int_equal(f->sink.exception_count, 1);
    assert_int_equal(f->sink.exceptions[0].lsn, 7);
    assert_int_equal(f->sink.exceptions[0].attempts, 1);
    assert_int_equal(f->sink.cursor.applied, 10);
    assert_int_equal(f->sink.cursor.stream.sequence, 6); /* below the exception */
}

static void test_an_exception_is_retried_when_it_is_due_and_given_up_in_the_end(void **state)
{
    struct fixture *f = *state;
    size_t moved = 0;

    publish(f, "a", "\"odd\"");
    f->settings.retry.attempts_max = 2;
    f->settings.retry.backoff = (struct pawl__backoff){ 10 * NS_PER_S, 10 * NS_PER_S };
    open_pipeline(f);
    take_in(f);
    apply_all(f);
    assert_ok(pawl__delivery_retry(&f->pipeline, &moved, &f->error), &f->error);
    assert_int_equal(moved, 0); /* not due */
    for (int i = 0; i < 2; i++) {
        pawl__clock_advance(&f->clock, 60 * NS_PER_S);
        assert_ok(pawl__delivery_retry(&f->pipeline, &moved, &f->error), &f->error);
        assert_int_equal(moved, 1);
    }
    assert_string_equal(counts(f), "1 0 0 1 0");
    assert_string_equal(f->sink.rows[0].reason, "max_retries_exceeded");
    assert_int_equal(f->sink.exception_count, 0);
    assert_int_equal(f->sink.rows[0].tries.attempts, 3);
}

static void test_an_outage_opens_the_breaker_and_costs_no_attempt(void **state)
{
    struct fixture *f = *state;
    size_t moved = 0;

    publish(f, "a", "1");
    open_pipeline(f);
    take_in(f);
    f->outage = PAWL_IO;
    assert_status(pawl__delivery_apply(&f->pipeline, &moved, &f->error), PAWL_IO, &f->error);
    size_t commits = f->commits;
    assert_ok(pawl__delivery_apply(&f->pipeline, &moved, &f->error), &f->error);
    assert_int_equal(f->commits, commits); /* not even asked */
    f->outage = PAWL_OK;
    pawl__clock_advance(&f->clock, 6 * NS_PER_S);
    apply_all(f);
    assert_string_equal(counts(f), "1 1 0 0 0");
    assert_int_equal(f->pipeline.shared.totals.outages, 1);
    assert_int_equal(f->pipeline.recovery.failed, 0);
}

static void test_a_restart_recovers_what_was_pending(void **state)
{
    struct fixture *f = *state;

    publish(f, "a", "1");
    publish(f, "b", "not json");
    open_pipeline(f);
    take_in(f);
    open_pipeline(f);
    assert_int_equal(f->pipeline.pairing, DELIVERY_RESUME);
    assert_int_equal(f->pipeline.recovery.total_pending, 2);
    apply_all(f);
    assert_int_equal(f->pipeline.recovery.recovered, 1);
    assert_int_equal(f->pipeline.recovery.failed, 1);
    for (size_t i = 0; i < f->wal.count; i++) { /* the marks were lost with a power cut */
        f->wal.entries[i].fate = (struct delivery_fate){ .state = DELIVERY_PENDING };
    }
    open_pipeline(f);
    assert_int_equal(f->pipeline.recovery.total_pending, 2);
    assert_int_equal(f->pipeline.recovery.already_committed, 2);
    assert_int_equal(f->wal.entries[0].fate.state, DELIVERY_CONFIRMED);
    assert_int_equal(f->wal.entries[1].fate.state, DELIVERY_FAILED);
    assert_string_equal(counts(f), "2 1 0 1 0");
}

static void test_the_wal_forgets_behind_a_checkpoint_and_keeps_failures(void **state)
{
    struct fixture *f = *state;

    publish(f, "a", "1");
    publish(f, "b", "not json");
    open_pipeline(f);
    take_in(f);
    apply_all(f);
    assert_ok(pawl__delivery_maintain(&f->pipeline, &f->error), &f->error);
    assert_int_equal(f->wal.count, 2); /* too early */
    pawl__clock_advance(&f->clock, 61 * NS_PER_S);
    assert_ok(pawl__delivery_maintain(&f->pipeline, &f->error), &f->error);
    assert_int_equal(f->wal.count, 1);
    assert_int_equal(f->wal.entries[0].fate.state, DELIVERY_FAILED);
    assert_int_equal(f->wal.cleaned, 2);
}

static void test_a_full_wal_stops_fetching(void **state)
{
    struct fixture *f = *state;
    size_t moved = 0;

    publish(f, "a", "1");
    f->settings.pending_bytes_max = 1;
    open_pipeline(f);
    take_in(f);
    publish(f, "b", "2");
    assert_status(pawl__delivery_intake(&f->pipeline, &moved, &f->error), PAWL_BUSY, &f->error);
    assert_message(&f->error, "max_pending_bytes");
    apply_all(f);
    take_in(f);
    assert_string_equal(counts(f), "2 1 0 0 1");
}

static void test_a_payload_over_the_limit_fails_in_the_wal_layer(void **state)
{
    struct fixture *f = *state;

    publish(f, "a", "12345");
    publish(f, "b", "1234");
    f->settings.payload_bytes_max = 4;
    open_pipeline(f);
    take_in(f);
    apply_all(f);
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_string_equal(f->sink.rows[0].reason, "too_large");
}

static void test_a_lease_that_ran_out_is_lost_and_a_new_one_recovers(void **state)
{
    struct fixture *f = *state;
    size_t moved = 0;

    publish(f, "a", "1");
    open_pipeline(f);
    take_in(f);
    pawl__clock_advance(&f->clock, f->settings.lease_ns); /* the process stood still */
    assert_status(
        pawl__delivery_apply(&f->pipeline, &moved, &f->error), PAWL_LEASE_LOST, &f->error);
    assert_true(pawl__delivery_must_reopen(&f->pipeline));
    open_pipeline(f);
    apply_all(f);
    assert_string_equal(counts(f), "1 1 0 0 0");
    assert_int_equal(f->sink.cursor.fence, 2);
}

#define PIPELINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PIPELINE_TEST(test_events_are_acknowledged_once_appended_and_applied_once),
        PIPELINE_TEST(test_the_same_id_with_another_payload_fails_as_a_conflict_once),
        PIPELINE_TEST(test_bad_events_are_found_among_good_ones),
        PIPELINE_TEST(test_an_exception_is_retried_when_it_is_due_and_given_up_in_the_end),
        PIPELINE_TEST(test_an_outage_opens_the_breaker_and_costs_no_attempt),
        PIPELINE_TEST(test_a_restart_recovers_what_was_pending),
        PIPELINE_TEST(test_the_wal_forgets_behind_a_checkpoint_and_keeps_failures),
        PIPELINE_TEST(test_a_full_wal_stops_fetching),
        PIPELINE_TEST(test_a_payload_over_the_limit_fails_in_the_wal_layer),
        PIPELINE_TEST(test_a_lease_that_ran_out_is_lost_and_a_new_one_recovers),
    };
    return cmocka_run_group_tests_name("delivery_pipeline", tests, NULL, NULL);
}
