/* What delivery decides, each rule by itself. */
#include "lib/check.h"

#include "base/os/clock.h"
#include "delivery/core/admission.h"
#include "delivery/core/apply.h"
#include "delivery/core/reconcile.h"
#include "delivery/core/recovery.h"

static struct delivery_hash hash_of(uint8_t first)
{
    return (struct delivery_hash){ { first } };
}

/* --- admission --- */

static struct delivery_question question(void)
{
    return (struct delivery_question){ .key = { hash_of(1), hash_of(2) }, .epoch = 3 };
}

static void test_an_unknown_message_is_admitted(void **state)
{
    struct delivery_question asked = question();

    (void)state;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ADMIT);
}

static void test_a_known_id_is_a_duplicate_or_a_conflict(void **state)
{
    struct delivery_question asked = question();

    (void)state;
    asked.hit = (struct delivery_hit){ true, 3, 7, hash_of(2) };
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_DUPLICATE);
    asked.hit.payload_hash = hash_of(9);
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ASK_CONFLICT);
    asked.conflict_asked = true;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ADMIT_CONFLICT);
    asked.conflict_known = true;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_DUPLICATE);
}

static void test_an_index_entry_of_an_older_epoch_counts_for_nothing(void **state)
{
    struct delivery_question asked = question();

    (void)state;
    asked.hit = (struct delivery_hit){ true, 2, 7, hash_of(2) };
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ADMIT);
}

static void test_what_may_be_older_than_the_index_is_asked_for_in_the_sink(void **state)
{
    struct delivery_question asked = question();

    (void)state;
    asked.may_be_older = true;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ASK_SINK);
    asked.sink_asked = true;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ASK_CONFLICT);
    asked.conflict_asked = true;
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ADMIT);
    asked.known = (struct delivery_known){ true, DELIVERY_ROW, hash_of(2) };
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_DUPLICATE);
    asked.known.payload_hash = hash_of(9);
    assert_int_equal(pawl__delivery_admit(&asked), DELIVERY_ADMIT_CONFLICT);
}

static void test_a_batch_knows_its_own_keys(void **state)
{
    struct delivery_batch_keys keys = { .slots = NULL };
    struct delivery_hit hit = { .found = false };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (int round = 0; round < 2; round++) { /* the second one begins empty */
        assert_ok(pawl__delivery_batch_keys_begin(&keys, 200, &error), &error);
        for (uint8_t i = 1; i <= 200; i++) {
            struct delivery_key key = { hash_of(i), hash_of(0) };
            assert_false(pawl__delivery_batch_keys_find(&keys, &key.key, 1, &hit));
            pawl__delivery_batch_keys_add(&keys, &key, i);
            assert_true(pawl__delivery_batch_keys_find(&keys, &key.key, 1, &hit));
            assert_int_equal(hit.lsn, i);
        }
    }
    pawl__delivery_batch_keys_done(&keys);
}

/* --- faults of the sink --- */

static void test_each_status_has_somebody_to_blame(void **state)
{
    (void)state;
    assert_int_equal(pawl__delivery_blame(PAWL_INVALID), DELIVERY_BLAME_EVENT);
    assert_int_equal(pawl__delivery_blame(PAWL_CONFLICT), DELIVERY_BLAME_EVENT);
    assert_int_equal(pawl__delivery_blame(PAWL_FAILED), DELIVERY_BLAME_RETRY);
    assert_int_equal(pawl__delivery_blame(PAWL_NOMEM), DELIVERY_BLAME_OUTAGE);
    assert_int_equal(pawl__delivery_blame(PAWL_IO), DELIVERY_BLAME_OUTAGE);
    assert_int_equal(pawl__delivery_blame(PAWL_CORRUPT), DELIVERY_BLAME_OUTAGE);
    assert_int_equal(pawl__delivery_blame(PAWL_BUSY), DELIVERY_BLAME_OUTAGE);
    assert_int_equal(pawl__delivery_blame(PAWL_LEASE_LOST), DELIVERY_BLAME_FENCED);
    assert_int_equal(pawl__delivery_blame(PAWL_CANCELLED), DELIVERY_BLAME_STOP);
    assert_true(pawl__delivery_commit_in_doubt(DELIVERY_BLAME_OUTAGE));
    assert_false(pawl__delivery_commit_in_doubt(DELIVERY_BLAME_EVENT));
}

/* One bad event at `bad` of `count`: how many transactions until all is settled. */
static size_t transactions_for(size_t count, size_t bad)
{
    struct delivery_window window = pawl__delivery_window(count);
    size_t tried = 0;

    for (size_t at = 0; at < count;) {
        size_t size = window.size < count - at ? window.size : count - at;
        tried++;
        if (size > 1 && bad >= at && bad < at + size) {
            pawl__delivery_window_halve(&window, size);
        } else {
            at += size;
            pawl__delivery_window_grow(&window);
        }
    }
    return tried;
}

static void test_a_bad_event_costs_a_few_small_transactions(void **state)
{
    (void)state;
    assert_int_equal(transactions_for(1024, 2000), 1);
    for (size_t bad = 0; bad < 1024; bad += 31) {
        size_t tried = transactions_for(1024, bad);
        assert_true(tried > 10);
        assert_true(tried < 80);
    }
    assert_int_equal(pawl__delivery_window(0).size, 1);
}

struct pinned {
    struct delivery_retry_rule rule;
    struct delivery_entry entry;
    struct delivery_outcome outcome;
};

static struct pinned pinned(void)
{
    return (struct pinned){
        .rule = { .attempts_max = 3, .ttl_ns = 100 * NS_PER_S, .backoff = { NS_PER_S, NS_PER_S } },
        .entry = { .lsn = 5, .place = { 1, 50, 1 } },
    };
}

static void pin(struct pinned *p,
                const struct delivery_exception *known,
                enum delivery_blame blame,
                int64_t s)
{
    p->outcome = (struct delivery_outcome){ .entry = &p->entry };
    pawl__delivery_pin(&p->rule, known, blame, s * NS_PER_S, 0, &p->outcome);
}

static void test_a_fault_of_the_event_fails_it_at_once(void **state)
{
    struct pinned p = pinned();
    struct delivery_exception unknown = { .first_failed_running_ns = -1 };

    (void)state;
    pin(&p, &unknown, DELIVERY_BLAME_EVENT, 0);
    assert_int_equal(p.outcome.kind, DELIVERY_TO_FAILED);
    assert_int_equal(p.outcome.layer, DELIVERY_LAYER_INSERT);
    assert_string_equal(p.outcome.reason, DELIVERY_REASON_REJECTED);
    assert_string_equal(pawl__delivery_layer_name(p.outcome.layer), "duckdb_insert");
}

static void test_any_other_fault_is_retried_until_its_attempts_or_its_time_end(void **state)
{
    struct pinned p = pinned();
    struct delivery_exception known = { .first_failed_running_ns = -1 };

    (void)state;
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        pin(&p, &known, DELIVERY_BLAME_RETRY, 10 + (int64_t)attempt);
        assert_int_equal(p.outcome.kind, DELIVERY_DEFERRED);
        assert_int_equal(p.outcome.exception.attempts, attempt);
        assert_true(p.outcome.exception.first_failed_running_ns == 11 * NS_PER_S);
        assert_true(p.outcome.exception.due_running_ns > (10 + attempt) * NS_PER_S);
        assert_int_equal(p.outcome.exception.lsn, 5);
        assert_int_equal(p.outcome.exception.sequence, 50);
        known = p.outcome.exception;
    }
    pin(&p, &known, DELIVERY_BLAME_RETRY, 14);
    assert_string_equal(p.outcome.reason, DELIVERY_REASON_RETRIES);
    assert_true(p.outcome.retries_exceeded);

    known.attempts = 1;
    pin(&p, &known, DELIVERY_BLAME_RETRY, 110);
    assert_int_equal(p.outcome.kind, DELIVERY_DEFERRED);
    pin(&p, &known, DELIVERY_BLAME_RETRY, 111);
    assert_string_equal(p.outcome.reason, DELIVERY_REASON_EXPIRED);
    assert_false(p.outcome.retries_exceeded);
}

static void test_conflicts_and_bad_ids_fail_whatever_the_mapping_says(void **state)
{
    struct delivery_entry entry = { .admitted = DELIVERY_AS_CONFLICT };
    struct delivery_verdict verdict = { .kind = DELIVERY_ROW };
    struct delivery_outcome outcome;

    (void)state;
    pawl__delivery_outcome_of(&entry, &verdict, &outcome);
    assert_int_equal(outcome.kind, DELIVERY_TO_FAILED);
    assert_string_equal(outcome.reason, "conflict");
    entry.admitted = DELIVERY_AS_BAD_ID;
    pawl__delivery_outcome_of(&entry, &verdict, &outcome);
    assert_string_equal(outcome.reason, "bad_id");
    entry.admitted = DELIVERY_AS_EVENT;
    pawl__delivery_outcome_of(&entry, &verdict, &outcome);
    assert_int_equal(outcome.kind, DELIVERY_ROW);
}

/* --- the cursor row --- */

static void test_the_equation_holds_or_is_found_broken(void **state)
{
    struct delivery_counters counters = { .accepted = 6 };
    const struct delivery_outcome outcomes[] = {
        { .kind = DELIVERY_ROW },      { .kind = DELIVERY_ROW },
        { .kind = DELIVERY_FILTERED }, { .kind = DELIVERY_TO_FAILED },
        { .kind = DELIVERY_DEFERRED },
    };

    (void)state;
    pawl__delivery_count(&counters, outcomes, COUNT_OF(outcomes));
    assert_int_equal(counters.delivered, 2);
    assert_int_equal(counters.filtered, 1);
    assert_int_equal(counters.failed, 1);
    assert_int_equal(pawl__delivery_pending(&counters), 2);
    counters.accepted = 3;
    assert_false(pawl__delivery_counters_hold(&counters));
}

static void test_only_the_newest_opener_writes_the_next_version(void **state)
{
    struct delivery_cursor stored = { .fence = 4, .version = 10 };
    struct delivery_cursor next = { .fence = 4, .version = 11 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__delivery_cursor_check(NULL, &next, &error), &error);
    assert_ok(pawl__delivery_cursor_check(&stored, &next, &error), &error);
    next.fence = 5; /* somebody opens it */
    assert_ok(pawl__delivery_cursor_check(&stored, &next, &error), &error);
    next.fence = 3;
    assert_status(pawl__delivery_cursor_check(&stored, &next, &error), PAWL_LEASE_LOST, &error);
    assert_message(&error, "held under token 4, this writer has 3");
    next = stored; /* a commit that arrives a second time */
    assert_status(pawl__delivery_cursor_check(&stored, &next, &error), PAWL_LEASE_LOST, &error);
    assert_message(&error, "at version 10");
}

/* --- WAL and sink --- */

/* They agree: WAL 1, epoch 2, fence 5, entries 1-100, applied and confirmed 60. */
static struct delivery_sides sides(void)
{
    return (struct delivery_sides){
        .wal_found = true,
        .meta = { .wal_id = { { 1 } }, .epoch = 2, .fence = 5, .applied = 60 },
        .stats = { .first = 1, .last = 100 },
        .sink_found = true,
        .cursor = { .wal_id = { { 1 } }, .epoch = 2, .fence = 5, .applied = 60 },
    };
}

static void expect_plan(const struct delivery_sides *both,
                        enum delivery_pairing pairing,
                        delivery_lsn applied,
                        delivery_lsn next)
{
    struct delivery_plan plan = pawl__delivery_reconcile(both);
    bool repairs = pairing == DELIVERY_REBUILD || pairing == DELIVERY_ADOPT;

    assert_string_equal(pawl__delivery_pairing_name(plan.pairing),
                        pawl__delivery_pairing_name(pairing));
    assert_int_equal(plan.applied, applied);
    assert_int_equal(plan.next_lsn, next);
    assert_int_equal(plan.make_index, repairs);
    assert_int_equal(plan.look_up, repairs && both->sink_found);
    assert_int_equal(plan.new_wal_id, pairing == DELIVERY_FIRST || pairing == DELIVERY_ADOPT);
    assert_true(!repairs || plan.restart_source);
    assert_true(!repairs || (plan.epoch > both->meta.epoch && plan.epoch > both->cursor.epoch));
    assert_true(plan.fence > both->meta.fence && plan.fence > both->cursor.fence);
}

static void test_wal_and_sink_that_agree_resume(void **state)
{
    struct delivery_sides both = sides();

    (void)state;
    expect_plan(&both, DELIVERY_RESUME, 60, 101);
    both.cursor.applied = 70; /* committed, and the WAL's record is older */
    expect_plan(&both, DELIVERY_RESUME, 70, 101);
    both.meta.restart_source = true;
    assert_true(pawl__delivery_reconcile(&both).restart_source);
}

static void test_neither_with_a_record_is_a_first_start(void **state)
{
    struct delivery_sides both = { .wal_found = false };

    (void)state;
    expect_plan(&both, DELIVERY_FIRST, 0, 1);
    assert_int_equal(pawl__delivery_reconcile(&both).epoch, 1);
}

static void test_a_lost_sink_is_rebuilt_from_the_first_entry(void **state)
{
    struct delivery_sides both = sides();

    (void)state;
    both.sink_found = false;
    both.cursor = (struct delivery_cursor){ .sink_id = { { 9 } } };
    expect_plan(&both, DELIVERY_REBUILD, 0, 101);
}

static void test_an_older_sink_is_replayed_while_the_wal_has_everything(void **state)
{
    struct delivery_sides both = sides();

    (void)state;
    both.cursor.applied = 40;
    both.stats.cleaned = 40;
    expect_plan(&both, DELIVERY_REPLAY, 40, 101);
    both.stats.cleaned = 41;
    expect_plan(&both, DELIVERY_REBUILD, 100, 101);
    both.stats.cleaned = 0;
    both.exception_missing = true;
    expect_plan(&both, DELIVERY_REBUILD, 100, 101);
    both.exception_missing = false;
    both.cursor.epoch = 1; /* from before the last rebuild */
    expect_plan(&both, DELIVERY_REBUILD, 100, 101);
}

static void test_a_lost_older_or_foreign_wal_is_adopted(void **state)
{
    struct delivery_sides both = sides();

    (void)state;
    both.cursor.fence = 6;
    expect_plan(&both, DELIVERY_ADOPT, 100, 101);
    both = sides();
    both.cursor.applied = 150;
    expect_plan(&both, DELIVERY_ADOPT, 150, 151);
    both = sides();
    both.cursor.wal_id = (struct delivery_uuid){ { 2 } };
    expect_plan(&both, DELIVERY_ADOPT, 100, 101);
    both = sides();
    both.cursor.epoch = 3;
    expect_plan(&both, DELIVERY_ADOPT, 100, 101);
    both = sides();
    both.wal_found = false;
    both.meta = (struct delivery_wal_meta){ .epoch = 0 };
    both.stats = (struct delivery_wal_stats){ .first = 1 };
    expect_plan(&both, DELIVERY_ADOPT, 60, 61);
}

/* --- recovery --- */

static void test_recovery_counts_every_entry_once(void **state)
{
    struct delivery_recovery recovery = { 0 };
    const struct delivery_entry entries[] = {
        { .lsn = 1 }, { .lsn = 2 }, { .lsn = 3 }, { .lsn = 4 }, { .lsn = 9 }
    };
    const struct delivery_outcome outcomes[] = {
        { .entry = &entries[0], .kind = DELIVERY_ROW },
        { .entry = &entries[1], .kind = DELIVERY_DEFERRED },
        { .entry = &entries[2], .kind = DELIVERY_TO_FAILED, .reason = DELIVERY_REASON_EXPIRED },
        { .entry = &entries[3], .kind = DELIVERY_TO_FAILED, .reason = "not_json" },
        { .entry = &entries[4], .kind = DELIVERY_ROW }, /* came after the start */
    };

    (void)state;
    for (int i = 0; i < 6; i++) {
        pawl__delivery_recovery_found(&recovery, i < 2);
    }
    assert_int_equal(pawl__delivery_recovery_left(&recovery), 4);
    pawl__delivery_recovery_settled(&recovery, outcomes, COUNT_OF(outcomes), 6);
    assert_int_equal(recovery.total_pending, 6);
    assert_int_equal(recovery.already_committed, 2);
    assert_int_equal(recovery.recovered, 1);
    assert_int_equal(recovery.skipped, 1);
    assert_int_equal(recovery.expired, 1);
    assert_int_equal(recovery.failed, 1);
    assert_int_equal(pawl__delivery_recovery_left(&recovery), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unknown_message_is_admitted),
        cmocka_unit_test(test_a_known_id_is_a_duplicate_or_a_conflict),
        cmocka_unit_test(test_an_index_entry_of_an_older_epoch_counts_for_nothing),
        cmocka_unit_test(test_what_may_be_older_than_the_index_is_asked_for_in_the_sink),
        cmocka_unit_test(test_a_batch_knows_its_own_keys),
        cmocka_unit_test(test_each_status_has_somebody_to_blame),
        cmocka_unit_test(test_a_bad_event_costs_a_few_small_transactions),
        cmocka_unit_test(test_a_fault_of_the_event_fails_it_at_once),
        cmocka_unit_test(test_any_other_fault_is_retried_until_its_attempts_or_its_time_end),
        cmocka_unit_test(test_conflicts_and_bad_ids_fail_whatever_the_mapping_says),
        cmocka_unit_test(test_the_equation_holds_or_is_found_broken),
        cmocka_unit_test(test_only_the_newest_opener_writes_the_next_version),
        cmocka_unit_test(test_wal_and_sink_that_agree_resume),
        cmocka_unit_test(test_neither_with_a_record_is_a_first_start),
        cmocka_unit_test(test_a_lost_sink_is_rebuilt_from_the_first_entry),
        cmocka_unit_test(test_an_older_sink_is_replayed_while_the_wal_has_everything),
        cmocka_unit_test(test_a_lost_older_or_foreign_wal_is_adopted),
        cmocka_unit_test(test_recovery_counts_every_entry_once),
    };
    return cmocka_run_group_tests_name("delivery_decide", tests, NULL, NULL);
}
