/* A ledger as a source: what becomes of an event, and whose ledger it is. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "delivery/core/identity.h"
#include "delivery/sources/ledger.h"
#include "lib/tempdir.h"

static const struct delivery_fetch many = { .messages_max = 100, .bytes_max = 1 << 20 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    pawl_ledger *ledger;
    struct delivery_ledger_options options;
    struct delivery_source *source;
    pawl_error error;
};

static pawl_ledger *open_ledger(struct fixture *f, const char *name)
{
    char path[TEMPDIR_SIZE + 16];
    pawl_ledger *ledger = NULL;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_ok(pawl_ledger_open(path, NULL, &ledger, &f->error), &f->error);
    return ledger;
}

static void open_source(struct fixture *f)
{
    f->options.ledger = f->ledger;
    assert_ok(pawl__delivery_ledger_open(&f->options, &f->source, &f->error), &f->error);
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_ok(tempdir_make(f->dir, "ledger-source", &f->error), &f->error);
    f->ledger = open_ledger(f, "a.db");
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    if (f->source != NULL) {
        f->source->ops->close(f->source);
    }
    pawl_ledger_close(f->ledger, 0, NULL);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void append(struct fixture *f, pawl_ledger *ledger, const char *id, const char *payload)
{
    pawl_event event = { .size = sizeof(pawl_event),
                         .id = pawl_view_of(id),
                         .run_id = pawl_view_of("nightly"),
                         .turn = 7,
                         .kind = pawl_view_of("order"),
                         .actor = pawl_view_of("ann"),
                         .payload = pawl_view_of(payload) };

    assert_ok(pawl_ledger_append(ledger, &event, NULL, &f->error), &f->error);
}

static struct delivery_batch fetch(struct fixture *f)
{
    struct delivery_batch batch = { 0 };

    assert_ok(f->source->ops->fetch(f->source, &many, &batch, &f->error), &f->error);
    return batch;
}

static void test_an_event_brings_its_id_and_where_it_is_from(void **state)
{
    struct fixture *f = *state;

    append(f, f->ledger, "e1", "{\"n\": 1}");
    open_source(f);
    struct delivery_batch batch = fetch(f);
    assert_int_equal(batch.count, 1);
    const struct delivery_message *message = &batch.messages[0];
    assert_int_equal(message->place.sequence, 1);
    assert_true(pawl__view_is(message->subject, "order"));
    assert_true(pawl__view_is(message->payload, "{\"n\": 1}"));
    assert_true(pawl__view_is(pawl__delivery_header(message, DELIVERY_HEADER_MESSAGE_ID), "e1"));
    assert_true(pawl__view_is(pawl__delivery_header(message, DELIVERY_HEADER_RUN), "nightly"));
    assert_true(pawl__view_is(pawl__delivery_header(message, DELIVERY_HEADER_TURN), "7"));
    assert_true(pawl__view_is(pawl__delivery_header(message, DELIVERY_HEADER_ACTOR), "ann"));
}

static void test_the_ledgers_own_events_are_passed_over(void **state)
{
    struct fixture *f = *state;
    pawl_turn *turn = NULL;
    struct delivery_stream_state now;
    pawl_event event = { .size = sizeof(pawl_event),
                         .id = pawl_view_of("t1"),
                         .kind = pawl_view_of("order"),
                         .actor = pawl_view_of("ann"),
                         .payload = pawl_view_of("1") };

    assert_ok(pawl_turn_begin(f->ledger, pawl_view_of("r"), 1, &turn, &f->error), &f->error);
    assert_ok(pawl_turn_append(turn, &event, 1, NULL, &f->error), &f->error);
    f->options.complete_turns = true;
    open_source(f);
    assert_int_equal(fetch(f).count, 0); /* the turn is open */
    assert_ok(pawl_turn_commit(turn, &f->error), &f->error);
    pawl_turn_free(turn);
    struct delivery_batch batch = fetch(f);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.messages[0].place.sequence, 2); /* its begin is 1, its commit 3 */
    assert_ok(f->source->ops->ack(f->source, batch.messages, 1, &f->error), &f->error);
    assert_int_equal(fetch(f).count, 0);
    assert_ok(f->source->ops->state(f->source, 0, &now, &f->error), &f->error);
    assert_int_equal(now.acked_to, 3);
    assert_int_equal(now.last, 3);
}

static void test_another_ledger_in_its_place_shows_by_its_hashes(void **state)
{
    struct fixture *f = *state;
    struct delivery_stream_state mine;
    struct delivery_stream_state others;
    pawl_ledger *other = open_ledger(f, "b.db");

    append(f, f->ledger, "e1", "1");
    append(f, f->ledger, "e2", "2");
    append(f, other, "e1", "\"other\"");
    append(f, other, "e2", "2"); /* the same event after another one */
    open_source(f);
    assert_ok(f->source->ops->state(f->source, 2, &mine, &f->error), &f->error);
    f->source->ops->close(f->source);
    f->options.ledger = other;
    assert_ok(pawl__delivery_ledger_open(&f->options, &f->source, &f->error), &f->error);
    assert_ok(f->source->ops->state(f->source, 2, &others, &f->error), &f->error);
    assert_true(mine.probe_found && others.probe_found);
    assert_int_not_equal(mine.probe_stored_ns, others.probe_stored_ns);
    f->source->ops->close(f->source);
    f->source = NULL;
    pawl_ledger_close(other, 0, NULL);
}

static void wait_then_cancel(void *context)
{
    pawl__sleep_until(pawl__clock_real(), pawl__monotonic_ns(pawl__clock_real()) + 100 * NS_PER_MS);
    pawl__cancel_now(context);
}

static void test_a_fetch_that_waits_is_cancelled_also_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct pawl__cancel cancel;
    struct pawl__thread thread = { 0 };
    struct delivery_fetch patient = many;
    struct delivery_batch batch = { 0 };

    patient.wait_ns = 60 * NS_PER_S;
    pawl__cancel_init(&cancel, NULL);
    f->options.cancel = &cancel;
    open_source(f);
    assert_ok(f->source->ops->restart_at(f->source, 1, &f->error), &f->error);
    assert_ok(pawl__thread_start(&thread, "canceller", wait_then_cancel, &cancel, &f->error),
              &f->error);
    assert_status(
        f->source->ops->fetch(f->source, &patient, &batch, &f->error), PAWL_CANCELLED, &f->error);
    pawl__thread_join(&thread);
    f->source->ops->close(f->source);
    f->source = NULL;
    pawl__cancel_done(&cancel);
}

#define ledger_test(function) cmocka_unit_test_setup_teardown(function, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ledger_test(test_an_event_brings_its_id_and_where_it_is_from),
        ledger_test(test_the_ledgers_own_events_are_passed_over),
        ledger_test(test_another_ledger_in_its_place_shows_by_its_hashes),
        ledger_test(test_a_fetch_that_waits_is_cancelled_also_after_a_restart),
    };

    return cmocka_run_group_tests_name("delivery_ledger", tests, NULL, NULL);
}
