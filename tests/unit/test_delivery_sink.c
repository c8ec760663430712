/* What every sink promises (delivery/core/sink.h). The argument says which one. */
#include "lib/sink_fixture.h"

#include <string.h>

static void assert_cursor(struct sink_fixture *f, const struct delivery_cursor *expected)
{
    struct delivery_cursor stored = sink_cursor(f);

    assert_memory_equal(&stored.wal_id, &expected->wal_id, sizeof(stored.wal_id));
    assert_int_equal(stored.epoch, expected->epoch);
    assert_int_equal(stored.fence, expected->fence);
    assert_int_equal(stored.version, expected->version);
    assert_int_equal(stored.applied, expected->applied);
    assert_int_equal(stored.stream.created_ns, expected->stream.created_ns);
    assert_int_equal(stored.stream.sequence, expected->stream.sequence);
    assert_int_equal(stored.stream.stored_ns, expected->stream.stored_ns);
    assert_int_equal(stored.running_ns, expected->running_ns);
    assert_int_equal(stored.counters.accepted, expected->counters.accepted);
    assert_int_equal(stored.counters.delivered, expected->counters.delivered);
    assert_int_equal(stored.counters.filtered, expected->counters.filtered);
    assert_int_equal(stored.counters.failed, expected->counters.failed);
}

static void test_a_new_sink_has_an_id_and_no_cursor(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_uuid nobody = { { 0 } };
    struct delivery_cursor first;
    struct delivery_cursor again;
    bool is_found = true;

    assert_ok(f->sink->ops->read_cursor(f->sink, &first, &is_found, &f->error), &f->error);
    assert_false(is_found);
    assert_memory_not_equal(&first.sink_id, &nobody, sizeof(nobody));
    sink_close(f);
    sink_open(f);
    assert_ok(f->sink->ops->read_cursor(f->sink, &again, &is_found, &f->error), &f->error);
    assert_memory_equal(&first.sink_id, &again.sink_id, sizeof(nobody));
}

static void test_the_cursor_comes_back_as_it_was_committed(void **state)
{
    struct sink_fixture *f = *state;

    f->cursor.epoch = UINT64_MAX; /* all 64 bits of every number */
    f->cursor.fence = UINT64_MAX - 1;
    sink_add(f, UINT64_MAX - 7, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_cursor(f, &f->cursor);
    sink_close(f);
    sink_open(f);
    assert_cursor(f, &f->cursor);
    sink_commit(f); /* nothing but the row */
    assert_cursor(f, &f->cursor);
}

static void test_every_outcome_is_found_by_its_key(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, "{\"n\":1}");
    sink_add(f, 2, DELIVERY_FILTERED, "{\"n\":2}");
    sink_add(f, 3, DELIVERY_TO_FAILED, "{\"n\":3}");
    sink_add(f, 4, DELIVERY_DEFERRED, "{\"n\":4}");
    sink_commit(f);
    for (int round = 0; round < 2; round++) {
        assert_true(sink_find(f, 1).found);
        assert_int_equal(sink_find(f, 1).kind, DELIVERY_ROW);
        assert_true(sink_find(f, 2).found);
        assert_int_equal(sink_find(f, 2).kind, DELIVERY_FILTERED);
        assert_true(sink_find(f, 3).found);
        assert_int_equal(sink_find(f, 3).kind, DELIVERY_TO_FAILED);
        assert_false(sink_find(f, 4).found);
        assert_false(sink_find(f, 5).found);
        assert_int_equal(sink_count_keys(f), 3);
        sink_close(f);
        sink_open(f);
    }
}

static void test_a_lookup_answers_each_key_in_its_place(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_key keys[2000];
    struct delivery_known known[2000];

    for (uint64_t n = 1; n <= 1000; n++) {
        sink_add(f, n * 2, DELIVERY_ROW, "{}");
    }
    sink_commit(f);
    for (uint64_t i = 0; i < 2000; i++) {
        keys[i] = sink_key(2000 - i);
    }
    keys[1] = keys[0]; /* asked twice */
    assert_ok(f->sink->ops->lookup(f->sink, keys, 2000, known, &f->error), &f->error);
    for (size_t i = 2; i < 2000; i++) {
        assert_int_equal(known[i].found, (2000 - i) % 2 == 0);
    }
    assert_true(known[0].found && known[1].found);
    assert_ok(f->sink->ops->lookup(f->sink, keys, 0, known, &f->error), &f->error);
}

static void test_a_lower_fence_changes_nothing(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    struct delivery_cursor committed = f->cursor;
    f->cursor.fence--;
    sink_add(f, 2, DELIVERY_ROW, "{}");
    sink_add(f, 3, DELIVERY_TO_FAILED, "{}");
    sink_add(f, 4, DELIVERY_DEFERRED, "{}");
    assert_status(sink_try(f), PAWL_LEASE_LOST, &f->error);
    assert_cursor(f, &committed);
    assert_int_equal(sink_count_keys(f), 1);
    f->cursor.fence += 2; /* a newer opener may go on */
    sink_commit(f);
    assert_int_equal(sink_count_keys(f), 3);
}

static void test_a_transaction_that_arrives_twice_counts_once(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    struct delivery_cursor before = f->cursor;
    assert_ok(sink_try(f), &f->error);
    struct delivery_cursor committed = f->cursor;
    f->cursor = before;
    assert_status(sink_try(f), PAWL_LEASE_LOST, &f->error);
    assert_cursor(f, &committed);
    assert_int_equal(sink_count_keys(f), 1);
}

static size_t read_exceptions(struct sink_fixture *f,
                              delivery_lsn after,
                              struct delivery_exception *ret_exceptions,
                              size_t room)
{
    size_t count = 99;

    assert_ok(f->sink->ops->exceptions(f->sink, after, ret_exceptions, room, &count, &f->error),
              &f->error);
    return count;
}

static void test_exceptions_are_read_in_pages_and_in_order(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_exception page[8];

    for (uint64_t n = 5; n > 0; n--) {
        struct delivery_outcome *outcome = sink_add(f, n * 10, DELIVERY_DEFERRED, "{}");
        outcome->exception.attempts = (uint32_t)n;
        outcome->exception.first_failed_running_ns = (int64_t)n - 2;
        outcome->exception.due_running_ns = 77;
    }
    sink_commit(f);
    assert_int_equal(read_exceptions(f, 0, page, 2), 2);
    assert_int_equal(page[0].lsn, 10);
    assert_int_equal(page[0].attempts, 1);
    assert_int_equal(page[0].first_failed_running_ns, -1);
    assert_int_equal(page[0].due_running_ns, 77);
    assert_int_equal(page[1].sequence, 20);
    assert_int_equal(read_exceptions(f, 20, page, 8), 3);
    assert_int_equal(page[0].lsn, 30);
    assert_int_equal(page[2].lsn, 50);
    assert_int_equal(read_exceptions(f, 50, page, 8), 0);
}

static void test_an_exception_ends_with_its_outcome(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_exception page[8];

    for (uint64_t n = 1; n <= 3; n++) {
        sink_add(f, n, DELIVERY_DEFERRED, "{}");
    }
    sink_commit(f);
    sink_add(f, 1, DELIVERY_ROW, "{}")->was_exception = true;
    struct delivery_outcome *again = sink_add(f, 2, DELIVERY_DEFERRED, "{}");
    again->was_exception = true;
    again->exception.attempts = 4;
    sink_commit(f);
    assert_int_equal(read_exceptions(f, 0, page, 8), 2);
    assert_int_equal(page[0].lsn, 2);
    assert_int_equal(page[0].attempts, 4);
    assert_int_equal(page[1].lsn, 3);
    const struct delivery_exception all[] = { { .lsn = 8, .first_failed_running_ns = -1 } };
    f->transaction.exceptions = all;
    f->transaction.exception_count = 1;
    f->transaction.replace_exceptions = true;
    sink_commit(f);
    assert_int_equal(read_exceptions(f, 0, page, 8), 1);
    assert_int_equal(page[0].lsn, 8);
    assert_int_equal(page[0].first_failed_running_ns, -1);
}

static void test_what_is_not_json_is_judged_before_it_is_applied(void **state)
{
    struct sink_fixture *f = *state;
    static const pawl_view bad[] = {
        { "", 0 },         { "{", 1 },    { "{} x", 4 },
        { "\"\xff\"", 3 }, { "{\0}", 3 }, { "\"\\u0000\"", 8 },
    };

    assert_int_equal(sink_judge(f, pawl_view_of(" {\"a\":[1,2.5,null,\"\\u00e9\"]}\n")).kind,
                     DELIVERY_ROW);
    assert_int_equal(sink_judge(f, pawl_view_of("null")).kind, DELIVERY_ROW);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct delivery_verdict verdict = sink_judge(f, bad[i]);
        assert_int_equal(verdict.kind, DELIVERY_TO_FAILED);
        assert_string_equal(verdict.reason, "not_json");
        assert_true(verdict.error[0] != '\0');
    }
}

static void test_a_checkpoint_tells_the_cursor_that_the_file_has(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_cursor cursor;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_ok(f->sink->ops->checkpoint(f->sink, &cursor, &f->error), &f->error);
    assert_int_equal(cursor.applied, 1);
    assert_int_equal(cursor.version, f->cursor.version);
    sink_add(f, 2, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_ok(f->sink->ops->checkpoint(f->sink, &cursor, &f->error), &f->error);
    assert_int_equal(cursor.applied, 2);
    sink_close(f);
    sink_open(f);
    assert_cursor(f, &f->cursor);
    assert_int_equal(sink_count_keys(f), 2);
}

static pawl_status stop_at_second(void *context, const struct delivery_key *key, pawl_error *reterr)
{
    (void)key;
    (void)reterr;
    return ++*(int *)context == 2 ? PAWL_CANCELLED : PAWL_OK;
}

static void test_a_visitor_can_stop_and_the_sink_goes_on(void **state)
{
    struct sink_fixture *f = *state;
    int seen = 0;

    for (uint64_t n = 1; n <= 5; n++) {
        sink_add(f, n, DELIVERY_ROW, "{}");
    }
    sink_commit(f);
    assert_int_equal(f->sink->ops->each_key(f->sink, stop_at_second, &seen, &f->error),
                     PAWL_CANCELLED);
    assert_int_equal(seen, 2);
    sink_add(f, 6, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_int_equal(sink_count_keys(f), 6);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        sink_test(test_a_new_sink_has_an_id_and_no_cursor),
        sink_test(test_the_cursor_comes_back_as_it_was_committed),
        sink_test(test_every_outcome_is_found_by_its_key),
        sink_test(test_a_lookup_answers_each_key_in_its_place),
        sink_test(test_a_lower_fence_changes_nothing),
        sink_test(test_a_transaction_that_arrives_twice_counts_once),
        sink_test(test_exceptions_are_read_in_pages_and_in_order),
        sink_test(test_an_exception_ends_with_its_outcome),
        sink_test(test_what_is_not_json_is_judged_before_it_is_applied),
        sink_test(test_a_checkpoint_tells_the_cursor_that_the_file_has),
        sink_test(test_a_visitor_can_stop_and_the_sink_goes_on),
    };

    sink_fixture_choose(argc > 1 ? argv[1] : "memory");
    return cmocka_run_group_tests_name("delivery_sink", tests, NULL, NULL);
}
