/* What every outbox store promises (delivery/outbox/store.h). The argument says which one: memory, rocksdb. Memory is
 * the reference, and the last test plays both against each other. */
#include "lib/outbox_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/random.h"
#include "base/os/clock.h"

static bool in_memory;

static int set_up(void **state)
{
    struct outbox_fixture *f = calloc(1, sizeof(*f));

    *state = f;
    outbox_fixture_open(f, in_memory);
    return 0;
}

static int tear_down(void **state)
{
    outbox_fixture_close(*state);
    free(*state);
    return 0;
}

static struct outbox_hit lookup(struct outbox_fixture *f, uint64_t number)
{
    struct outbox_sample sample;
    struct outbox_hit hit;

    outbox_sample(&sample, number, "a");
    assert_ok(f->store->ops->lookup(f->store, &sample.entry.key, 1, &hit, &f->error), &f->error);
    return hit;
}

static void forget(struct outbox_fixture *f, const char *stream, uint64_t sequence, uint64_t count)
{
    uint64_t forgotten = 0;

    assert_ok(
        f->store->ops->forget(f->store, pawl_view_of(stream), sequence, &forgotten, &f->error),
        &f->error);
    assert_int_equal(forgotten, count);
}

static const char *next_subject(struct outbox_fixture *f, const char *after)
{
    static char room[64];
    struct pawl__buf name = BUF_OVER(room);
    bool found = false;

    assert_ok(f->store->ops->next_subject(f->store, pawl_view_of(after), &name, &found, &f->error),
              &f->error);
    return found ? room : "none";
}

static void test_a_new_outbox_is_empty(void **state)
{
    struct outbox_fixture *f = *state;
    struct outbox_stats stats = outbox_stats(f);
    struct outbox_failed failed;
    bool found = true;

    assert_int_equal(stats.last, 0);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(stats.ids, 0);
    assert_string_equal(next_subject(f, ""), "none");
    assert_false(lookup(f, 1).found);
    assert_ok(f->store->ops->next_failed(f->store, 0, &failed, &found, &f->error), &f->error);
    assert_false(found);
}

static void test_an_entry_is_read_back_as_it_was_appended(void **state)
{
    struct outbox_fixture *f = *state;
    struct outbox_sample sample;
    bool found = false;

    outbox_append(f, 3, "orders.eu");
    outbox_reopen(f);
    outbox_sample(&sample, 2, "orders.eu");
    assert_ok(f->store->ops->read(f->store, 2, &f->read, &found, &f->error), &f->error);
    assert_true(found);
    const struct outbox_entry *entry = &f->read.entry;
    assert_int_equal(entry->number, 2);
    assert_int_equal(entry->created_us, 1000);
    assert_int_equal(entry->sequence, 7);
    assert_true(pawl__view_is(entry->source, "s"));
    assert_true(pawl__view_is(entry->event_id, "e2"));
    assert_true(pawl__view_is(entry->subject, "orders.eu"));
    assert_true(pawl__view_is(entry->payload, "{\"n\":2}"));
    assert_int_equal(entry->header_count, 1);
    assert_true(pawl__view_is(entry->headers[0].name, "Kind"));
    assert_true(pawl__view_is(entry->headers[0].value, "test"));
    assert_true(pawl__delivery_hash_equal(&entry->key, &sample.entry.key));
    assert_true(pawl__delivery_hash_equal(&entry->payload_hash, &sample.entry.payload_hash));
    assert_ok(f->store->ops->read(f->store, 4, &f->read, &found, &f->error), &f->error);
    assert_false(found);
}

static void test_pending_entries_are_found_by_subject_in_order(void **state)
{
    struct outbox_fixture *f = *state;

    outbox_append(f, 2, "b");
    outbox_append(f, 3, "a");
    outbox_append(f, 5, "b");
    outbox_append(f, 6, "b.c"); /* begins like another, and is another */
    assert_string_equal(next_subject(f, ""), "a");
    assert_string_equal(next_subject(f, "a"), "b");
    assert_string_equal(next_subject(f, "b"), "b.c");
    assert_string_equal(next_subject(f, "b.c"), "none");
    assert_string_equal(outbox_pending(f, "b", 0), "1 2 4 5");
    assert_string_equal(outbox_pending(f, "b", 4), "4 5");
    assert_string_equal(outbox_pending(f, "b", 6), "");
    outbox_keep(f, "S", 3, 1);
    assert_string_equal(next_subject(f, ""), "b");
}

static void test_a_kept_entry_is_pending_no_more(void **state)
{
    struct outbox_fixture *f = *state;
    struct outbox_kept kept;
    bool found = false;

    outbox_append(f, 3, "a");
    outbox_keep(f, "S", 1, 10);
    outbox_keep(f, "S", 2, 11);
    outbox_keep(f, "S", 2, 12); /* it is not pending: left out */
    outbox_keep(f, "S", 9, 13); /* never was */
    outbox_reopen(f);
    assert_string_equal(outbox_pending(f, "a", 0), "3");
    assert_string_equal(outbox_kept(f, "S"), "1@10 2@11");
    assert_string_equal(outbox_kept(f, "T"), "");
    assert_ok(
        f->store->ops->last_kept(f->store, pawl_view_of("S"), UINT64_MAX, &kept, &found, &f->error),
        &f->error);
    assert_true(found);
    assert_int_equal(kept.created_ns, 3);
    assert_int_equal(kept.session, 4);
    assert_int_equal(kept.acked_ns, 5);
    struct outbox_stats stats = outbox_stats(f);
    assert_int_equal(stats.pending, 1);
    assert_int_equal(stats.kept, 2);
    assert_int_equal(stats.kept_bytes, 2 * stats.pending_bytes);
}

static void test_the_last_of_a_shared_sequence_is_the_message_there(void **state)
{
    struct outbox_fixture *f = *state;

    outbox_append(f, 4, "a");
    outbox_keep(f, "S", 3, 10);
    outbox_keep(f, "S", 1, 10);
    outbox_keep(f, "S", 2, 10);
    outbox_keep(f, "S", 4, 11);
    assert_string_equal(outbox_kept(f, "S"), "3@10 4@11");
    forget(f, "S", 10, 3);
    assert_string_equal(outbox_kept(f, "S"), "4@11");
}

static void test_what_a_stream_lost_is_pending_again_in_its_old_order(void **state)
{
    struct outbox_fixture *f = *state;
    uint64_t count = 0;

    outbox_append(f, 4, "a");
    outbox_append(f, 5, "b");
    for (uint64_t i = 1; i <= 4; i++) {
        outbox_keep(f, "S", i, 10 + i);
    }
    outbox_keep(f, "S2", 5, 1);
    assert_ok(f->store->ops->requeue(f->store, pawl_view_of("S"), 13, &count, &f->error),
              &f->error);
    assert_int_equal(count, 2);
    outbox_append(f, 6, "a");
    outbox_reopen(f);
    assert_string_equal(outbox_pending(f, "a", 0), "3 4 6");
    assert_string_equal(outbox_pending(f, "b", 0), "");
    assert_string_equal(outbox_kept(f, "S"), "1@11 2@12");
    assert_int_equal(outbox_stats(f).pending, 3);
}

static void test_only_entries_of_another_session_are_adopted(void **state)
{
    struct outbox_fixture *f = *state;
    struct outbox_kept kept = { .number = 2, .sequence = 11, .session = 9, .acked_ns = 50 };
    bool found = false;

    outbox_append(f, 2, "a");
    outbox_keep(f, "S", 1, 10);
    assert_ok(f->store->ops->keep(f->store, pawl_view_of("S"), &kept, 1, &f->error), &f->error);
    assert_ok(f->store->ops->adopt(f->store, pawl_view_of("S"), 9, 80, &f->error), &f->error);
    assert_ok(f->store->ops->first_kept(f->store, pawl_view_of("S"), 0, &kept, &found, &f->error),
              &f->error);
    assert_int_equal(kept.session, 9);
    assert_int_equal(kept.acked_ns, 80);
    assert_int_equal(kept.created_ns, 3);
    assert_ok(f->store->ops->first_kept(f->store, pawl_view_of("S"), 11, &kept, &found, &f->error),
              &f->error);
    assert_int_equal(kept.acked_ns, 50);
}

static void test_a_forgotten_entry_is_still_found_by_its_id(void **state)
{
    struct outbox_fixture *f = *state;
    bool found = true;

    outbox_append(f, 3, "a");
    outbox_keep(f, "S", 1, 1);
    outbox_keep(f, "S", 2, 2);
    forget(f, "S", 1, 1);
    assert_ok(f->store->ops->read(f->store, 1, &f->read, &found, &f->error), &f->error);
    assert_false(found);
    assert_true(lookup(f, 1).found);
    assert_int_equal(lookup(f, 1).number, 1);
    assert_false(lookup(f, 4).found);
    assert_int_equal(outbox_stats(f).kept, 1);
    assert_int_equal(outbox_stats(f).ids, 3);
}

static void test_only_ids_of_forgotten_entries_are_trimmed(void **state)
{
    struct outbox_fixture *f = *state;
    uint64_t count = 0;

    outbox_append(f, 5, "a");
    for (uint64_t i = 1; i <= 4; i++) {
        outbox_keep(f, "S", i, i);
    }
    forget(f, "S", 3, 3);
    assert_ok(f->store->ops->trim(f->store, UINT64_MAX, 2, &count, &f->error), &f->error);
    assert_int_equal(count, 2);
    assert_false(lookup(f, 1).found);
    assert_false(lookup(f, 2).found);
    assert_true(lookup(f, 3).found);
    assert_ok(f->store->ops->trim(f->store, 3, UINT64_MAX, &count, &f->error), &f->error);
    assert_int_equal(count, 0);
    assert_ok(f->store->ops->trim(f->store, UINT64_MAX, UINT64_MAX, &count, &f->error), &f->error);
    assert_int_equal(count, 1);
    assert_true(lookup(f, 4).found);
    assert_true(lookup(f, 5).found);
    assert_int_equal(outbox_stats(f).ids, 2);
}

static void test_ages_are_known_by_the_hour_of_running_time(void **state)
{
    struct outbox_fixture *f = *state;
    const int64_t hour = 3600 * NS_PER_S;
    struct outbox_sample sample;
    uint64_t number = 0;

    for (uint64_t i = 1; i <= 6; i++) { /* two in each of the hours 0, 1 and 2 */
        outbox_sample(&sample, i, "a");
        assert_ok(
            f->store->ops->append(
                f->store, &sample.entry, 1, (int64_t)(i - 1) / 2 * hour + (int64_t)i, &f->error),
            &f->error);
    }
    outbox_reopen(f);
    assert_ok(f->store->ops->accepted_before(f->store, hour - 1, &number, &f->error), &f->error);
    assert_int_equal(number, 1);
    assert_ok(f->store->ops->accepted_before(f->store, hour, &number, &f->error), &f->error);
    assert_int_equal(number, 3);
    assert_ok(f->store->ops->accepted_before(f->store, 9 * hour, &number, &f->error), &f->error);
    assert_int_equal(number, 7);
    assert_int_equal(outbox_stats(f).running_ns, 2 * hour + 6);
}

static void test_a_failed_entry_waits_with_its_reason(void **state)
{
    struct outbox_fixture *f = *state;
    const struct outbox_failed failed = { .number = 2, .failed_us = 77, .reason = "too large" };
    struct outbox_failed read;
    uint64_t count = 0;
    bool found = false;

    outbox_append(f, 3, "a");
    assert_ok(f->store->ops->set_aside(f->store, &failed, &f->error), &f->error);
    outbox_reopen(f);
    assert_string_equal(outbox_pending(f, "a", 0), "1 3");
    assert_ok(f->store->ops->next_failed(f->store, 1, &read, &found, &f->error), &f->error);
    assert_true(found);
    assert_int_equal(read.number, 2);
    assert_int_equal(read.failed_us, 77);
    assert_string_equal(read.reason, "too large");
    assert_ok(f->store->ops->next_failed(f->store, 3, &read, &found, &f->error), &f->error);
    assert_false(found);
    assert_int_equal(outbox_stats(f).failed, 1);
    assert_int_equal(outbox_stats(f).pending, 2);
    assert_ok(f->store->ops->retry(f->store, &count, &f->error), &f->error);
    assert_int_equal(count, 1);
    outbox_reopen(f);
    assert_string_equal(outbox_pending(f, "a", 0),
                        "1 3 4"); /* behind what may be in the stream already */
    assert_true(pawl__view_is(f->read.entry.event_id, "e2"));
    assert_int_equal(lookup(f, 2).number, 4);
    assert_int_equal(outbox_stats(f).ids, 3);
    assert_int_equal(outbox_stats(f).failed, 0);
    assert_int_equal(outbox_stats(f).failed_bytes, 0);
}

/* --- both against each other --- */

static void change(struct outbox_fixture *f, struct pawl__prng *random)
{
    static const char *const subjects[] = { "a", "a.b", "c" };
    struct outbox_stats stats = outbox_stats(f);
    const char *subject = subjects[pawl__prng_below(random, 3)];
    uint64_t number = stats.last == 0 ? 1 : 1 + pawl__prng_below(random, stats.last);
    const struct outbox_failed failed = { .number = number, .reason = "why" };
    uint64_t count = 0;

    switch (pawl__prng_below(random, 8)) {
    case 0:
        outbox_append(f, stats.last + 1 + pawl__prng_below(random, 3), subject);
        break;
    case 1:
    case 2:
    case 3:
        outbox_keep(f, number % 2 == 0 ? "S" : "T", number, number / 2);
        break;
    case 4:
        assert_ok(
            f->store->ops->requeue(f->store, pawl_view_of("S"), number / 2, &count, &f->error),
            &f->error);
        break;
    case 5:
        assert_ok(f->store->ops->forget(f->store, pawl_view_of("T"), number / 8, &count, &f->error),
                  &f->error);
        break;
    case 6:
        assert_ok(f->store->ops->set_aside(f->store, &failed, &f->error), &f->error);
        break;
    default:
        assert_ok(number % 3 == 0 ? f->store->ops->retry(f->store, &count, &f->error)
                                  : f->store->ops->trim(f->store, number, 2, &count, &f->error),
                  &f->error);
    }
}

static void describe(struct outbox_fixture *f, struct pawl__buf *text)
{
    struct outbox_stats s = outbox_stats(f);

    pawl__buf_add_format(text, "a: %s\n", outbox_pending(f, "a", 0));
    pawl__buf_add_format(text, "a.b: %s\n", outbox_pending(f, "a.b", 0));
    pawl__buf_add_format(text, "c: %s\n", outbox_pending(f, "c", 0));
    pawl__buf_add_format(text, "S: %s\n", outbox_kept(f, "S"));
    pawl__buf_add_format(text, "T: %s\n", outbox_kept(f, "T"));
    pawl__buf_add_format(text,
                         "%d: %d %d, %d %d, %d %d, %d\n",
                         (int)s.last,
                         (int)s.pending,
                         (int)s.pending_bytes,
                         (int)s.kept,
                         (int)s.kept_bytes,
                         (int)s.failed,
                         (int)s.failed_bytes,
                         (int)s.ids);
    for (uint64_t i = 1; i <= s.last; i++) {
        pawl__buf_add_char(text, lookup(f, i).found ? '+' : '-');
    }
}

static void test_it_does_what_the_reference_does(void **state)
{
    struct outbox_fixture *f = *state;
    struct outbox_fixture reference = { .in_memory = true };
    char mine[4096];
    char its[4096];

    outbox_fixture_open(&reference, true);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct pawl__prng random = pawl__prng_seeded(seed);
        struct pawl__prng again = random;
        struct pawl__buf mine_text = BUF_OVER(mine);
        struct pawl__buf its_text = BUF_OVER(its);
        change(f, &random);
        change(&reference, &again);
        if (seed % 50 == 0) {
            outbox_reopen(f);
        }
        describe(f, &mine_text);
        describe(&reference, &its_text);
        assert_string_equal(mine, its);
    }
    outbox_fixture_close(&reference);
}

int main(int argc, char **argv)
{
#define outbox_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        outbox_test(test_a_new_outbox_is_empty),
        outbox_test(test_an_entry_is_read_back_as_it_was_appended),
        outbox_test(test_pending_entries_are_found_by_subject_in_order),
        outbox_test(test_a_kept_entry_is_pending_no_more),
        outbox_test(test_the_last_of_a_shared_sequence_is_the_message_there),
        outbox_test(test_what_a_stream_lost_is_pending_again_in_its_old_order),
        outbox_test(test_only_entries_of_another_session_are_adopted),
        outbox_test(test_a_forgotten_entry_is_still_found_by_its_id),
        outbox_test(test_only_ids_of_forgotten_entries_are_trimmed),
        outbox_test(test_ages_are_known_by_the_hour_of_running_time),
        outbox_test(test_a_failed_entry_waits_with_its_reason),
        outbox_test(test_it_does_what_the_reference_does),
    };

    in_memory = argc < 2 || strcmp(argv[1], "rocksdb") != 0;
    return cmocka_run_group_tests_name(
        in_memory ? "outbox_memory" : "outbox_rocksdb", tests, NULL, NULL);
}
