/* What keeps a work store in shape and in sight, on every backend. */
#include "lib/timed_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/core/error.h"
#include "lib/fault.h"
#include "lib/promtool.h"
#include "work/checkpoints/backend.h"
#include "work/core/backend_maintenance.h"
#include "work/core/group.h"
#include "work/core/internal.h"
#include "work/keys/backend.h"
#include "work/schedules/backend.h"

/* --- Statistics --- */

/* A handle with `stale_ms`, and one more lease; in memory a store of its own. */
static pawl_work *open_with_stale(struct timed_fixture *f, uint32_t stale_ms, const char *item)
{
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;
    pawl_work *before = f->work;
    pawl_work *work = NULL;

    options.stale_ms = stale_ms;
    assert_ok(pawl_work_open(f->location, &options, &work, &f->err), &f->err);
    f->work = work;
    timed_task(f, "t");
    timed_submit(f, "t", item);
    (void)timed_claim(f, item, 3600000);
    f->work = before;
    return work;
}

static void test_a_lease_is_stale_by_the_options(void **state)
{
    struct timed_fixture *f = *state;
    pawl_work_stats stats = { .size = sizeof(pawl_work_stats), .stale_leases = 42 };
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
    pawl_work *work = open_with_stale(f, 3600000, "a");

    assert_ok(pawl_work_get_stats(work, &stats, &f->err), &f->err);
    assert_int_equal(stats.active_leases, 1);
    assert_int_equal(stats.stale_leases, 0);
    pawl_work_close(work, 0, NULL);
    work = open_with_stale(f, 1, "b");
    do { /* a millisecond passes */
        assert_ok(pawl_work_get_stats(work, &stats, &f->err), &f->err);
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    } while (stats.stale_leases < stats.active_leases);
    assert_true(stats.stale_leases > 0);
    pawl_work_close(work, 0, NULL);
}

static void test_no_time_at_all_is_refused_by_its_name(void **state)
{
    struct timed_fixture *f = *state;
    const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        { "lease_ms", offsetof(pawl_work_options, lease_ms) },
        { "retry_first_ms", offsetof(pawl_work_options, retry_first_ms) },
        { "stale_ms", offsetof(pawl_work_options, stale_ms) },
    };

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        pawl_work_options options = PAWL_WORK_OPTIONS_INIT;
        pawl_work *work = NULL;

        memset((char *)&options + fields[i].offset, 0, sizeof(uint32_t));
        assert_status(pawl_work_open(f->location, &options, &work, &f->err), PAWL_INVALID, &f->err);
        assert_message(&f->err, fields[i].name);
        assert_null(work);
    }
}

static void test_the_numbers_are_a_text_for_prometheus(void **state)
{
    static const char *const lines[] = {
        "\npawl_work_items{work_type=\"type\",status=\"pending\"} 1\n",
        "\npawl_work_items{work_type=\"type\",status=\"in_progress\"} 1\n",
        "\npawl_work_active_leases 1\n",
        "\npawl_work_stale_leases 0\n",
        "\npawl_work_idempotency_keys{status=\"completed\"} 0\n",
    };
    struct timed_fixture *f = *state;
    char *text = NULL;
    size_t len = 0;

    timed_task(f, "t");
    timed_submit(f, "t", "a");
    (void)timed_claim(f, "a", 0);
    timed_submit(f, "t", "b");
    assert_ok(pawl_work_get_metrics(f->work, &text, NULL, &f->err), &f->err);
    free(text);
    assert_ok(pawl_work_get_metrics(f->work, &text, &len, &f->err), &f->err);
    assert_int_equal(strlen(text), len);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (strstr(text, lines[i]) == NULL) {
            fail_msg("'%s' is not in\n%s", lines[i], text);
        }
    }
    const char *said = promtool_says((pawl_view){ text, len });
    if (said != NULL) {
        assert_string_equal(said, "");
    }
    free(text);
}

static void test_metrics_without_memory_leave_nothing_behind(void **state)
{
    struct timed_fixture *f = *state;
    char mark;

    timed_task(f, "t");
    timed_submit(f, "t", "a");
    FAULT_WALK (walk) {
        char *text = &mark;
        pawl_status status = pawl_work_get_metrics(f->work, &text, NULL, &f->err);
        bool failed = fault_fired();

        fault_disarm();
        if (status == PAWL_OK) {
            free(text); /* one series less than there are, at the worst */
        } else {
            assert_true(failed);
            assert_int_equal(status, PAWL_NOMEM);
            assert_ptr_equal(text, &mark);
        }
    }
}

/* --- Slots that have fired --- */

#define US_PER_DAY (INT64_C(86400) * US_PER_S)

/* Asks the backend itself, inside of a transaction: callers cannot see which slots have fired. */
struct slot_request {
    struct work_request request; /* first */
    const char *schedule_id;
    int64_t slot_us;
    bool fired;
};

static pawl_status run_note(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    const struct slot_request *slot = (struct slot_request *)request;

    return tx->backend->schedules->fire(tx->backend,
                                        pawl_view_of(slot->schedule_id),
                                        slot->slot_us,
                                        pawl_view_of("an item"),
                                        reterr);
}

static pawl_status run_look(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct slot_request *slot = (struct slot_request *)request;

    return tx->backend->schedules->fired(
        tx->backend, pawl_view_of(slot->schedule_id), slot->slot_us, &slot->fired, reterr);
}

static void note_fired(struct timed_fixture *f, const char *schedule_id, int64_t slot_us)
{
    struct slot_request slot = { .request = { .kind = WORK_RUN, .run = run_note },
                                 .schedule_id = schedule_id,
                                 .slot_us = slot_us };

    assert_ok(pawl__work_submit_request(f->work, &slot.request, &f->err), &f->err);
}

static bool has_fired(struct timed_fixture *f, const char *schedule_id, int64_t slot_us)
{
    struct slot_request slot = { .request = { .kind = WORK_RUN, .run = run_look },
                                 .schedule_id = schedule_id,
                                 .slot_us = slot_us };

    assert_ok(pawl__work_submit_request(f->work, &slot.request, &f->err), &f->err);
    return slot.fired;
}

static void put_schedule(struct timed_fixture *f, const char *id, const char *cron)
{
    const pawl_schedule schedule = {
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl_view_of(id),
        .cron = pawl_view_of(cron),
        .task_id = pawl_view_of("t"),
        .work_type = pawl_view_of("type"),
        .max_retries = -1,
    };

    assert_ok(pawl_schedule_put(f->work, &schedule, &f->err), &f->err);
}

static void test_slots_that_fired_400_days_ago_are_forgotten(void **state)
{
    struct timed_fixture *f = *state;
    int64_t now_us = pawl__wall_us(&f->clock.base);
    int64_t today_us = now_us - now_us % US_PER_DAY;
    time_t seconds = (time_t)(now_us / US_PER_S);
    struct tm utc;
    char half_a_year_away[20];
    uint64_t fired = 0;

    gmtime_r(&seconds, &utc);
    snprintf(half_a_year_away, sizeof(half_a_year_away), "0 0 1 %d *", (utc.tm_mon + 6) % 12 + 1);
    timed_task(f, "t");
    put_schedule(f, "daily", "@daily");
    put_schedule(f, "later", half_a_year_away);
    note_fired(f, "daily", today_us - 402 * US_PER_DAY);
    note_fired(f, "daily", today_us - 398 * US_PER_DAY);
    note_fired(f, "later", today_us - 402 * US_PER_DAY);
    assert_ok(pawl_schedule_fire(f->work, &fired, &f->err), &f->err);
    assert_int_equal(fired, 0);
    assert_true(
        has_fired(f, "daily", today_us - 402 * US_PER_DAY)); /* it has not fired again yet */
    assert_true(timed_fixture_wait(f, 86400));
    assert_ok(pawl_schedule_fire(f->work, &fired, &f->err), &f->err);
    assert_int_equal(fired, 1);
    assert_false(has_fired(f, "daily", today_us - 402 * US_PER_DAY));
    assert_true(has_fired(f, "daily", today_us - 398 * US_PER_DAY));
    assert_true(has_fired(f, "daily", today_us + US_PER_DAY));
    assert_true(has_fired(f, "later", today_us - 402 * US_PER_DAY)); /* another schedule's */
}

/* --- Retention beside workers --- */

enum {
    OLD_ITEMS = 10,
    OLD_ROWS = 9, /* checkpoints, keys */
    BATCH = 2,
    LOOKS = OLD_ITEMS / BATCH + 1,
    HISTORY_OF_ONE = 3, /* pending, in progress, completed */
    TURNS_MAX = 40,
};

/* Stands between retention and the store: whenever it looks for the next batch, the batch before must
 * be over, and a worker gets its turn. */
static struct between {
    struct timed_fixture *f; /* `work` is the worker's handle */
    const struct work_maintenance_ops *maintenance;
    uint64_t looks;
} between;

static pawl_status look_between(struct work_backend *base,
                                int64_t ended_before_us,
                                pawl_view after_id,
                                size_t count,
                                bool (*visit)(void *context, pawl_view id, uint64_t history),
                                void *context,
                                pawl_error *reterr)
{
    struct timed_fixture *f = between.f;
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    char id[20];

    /* What the batches so far have removed is gone for everybody; what the worker did is there. */
    assert_ok(pawl_work_get_stats(f->work, &stats, &f->err), &f->err);
    assert_int_equal(stats.completed, OLD_ITEMS - between.looks * BATCH + between.looks);
    snprintf(id, sizeof(id), "w%llu", (unsigned long long)between.looks);
    pawl_lease lease = timed_claim(f, id, 0);
    assert_ok(pawl_work_complete(f->work, &lease, pawl_view_of(NULL), &f->err), &f->err);
    between.looks++;
    return between.maintenance->old_items(
        base, ended_before_us, after_id, count, visit, context, reterr);
}

static void test_workers_get_through_between_the_batches_of_a_retention(void **state)
{
    struct timed_fixture *f = *state;
    struct timed_fixture worker = *f;
    struct work_maintenance_ops maintenance = *f->work->backend->maintenance;
    pawl_retention rules = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    char id[20];

    timed_task(f, "t");
    for (int i = 0; i < OLD_ITEMS; i++) {
        snprintf(id, sizeof(id), "old%d", i);
        timed_finish(f, "t", id);
    }
    for (int i = 0; i < LOOKS; i++) {
        snprintf(id, sizeof(id), "w%d", i);
        timed_submit(f, "t", id);
    }
    assert_true(timed_fixture_wait(f, 172800));
    pawl_work *second = timed_fixture_second(f); /* none in memory: the same handle then */
    worker.work = second == NULL ? f->work : second;
    between = (struct between){ .f = &worker, .maintenance = f->work->backend->maintenance };
    maintenance.old_items = look_between;
    f->work->backend->maintenance = &maintenance;
    rules.item_days = 1;
    rules.batch = BATCH;
    assert_ok(pawl_work_retention(f->work, &rules, &report, &f->err), &f->err);
    f->work->backend->maintenance = between.maintenance;
    assert_int_equal(between.looks, LOOKS);
    assert_int_equal(report.items, OLD_ITEMS);
    assert_int_equal(report.history, OLD_ITEMS * HISTORY_OF_ONE);
    pawl_work_close(second, 0, NULL);
}

/* Between any two transactions of a retention: another handle gets its turn, and sees that what was
 * removed is gone. On the committer's thread, which asserts nothing. */
static struct turns {
    pawl_work
        *worker; /* NULL in memory, where there is no other handle: transactions are counted */
    struct work_backend real;
    uint64_t begun;
    uint64_t removed_in; /* the transaction that removed last */
    uint64_t items, history, checkpoints, keys;
    bool too_much; /* in one transaction */
    pawl_status status;
    pawl_error err;
} turns;

static pawl_status work_a_turn(pawl_work *work, pawl_error *reterr)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    pawl_status status = pawl_work_get_stats(work, &stats, reterr);

    if (status == PAWL_OK
        && (stats.completed != OLD_ITEMS - turns.items + turns.begun
            || stats.checkpoints != OLD_ROWS - turns.checkpoints
            || stats.keys_completed != OLD_ROWS - turns.keys)) {
        return pawl__fail(reterr, PAWL_FAILED, "what was removed is not gone for others");
    }
    claim.holder = pawl_view_of("worker");
    if (status == PAWL_OK) {
        status = pawl_work_claim(work, &claim, &claimed, reterr);
    }
    if (status == PAWL_OK) {
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[0].work_item_id,
                             claimed->items[0].token };
        status = pawl_work_complete(work, &lease, pawl_view_of(NULL), reterr);
    }
    pawl_claimed_free(claimed);
    return status;
}

static pawl_status begin_behind_a_worker(struct work_backend *base,
                                         struct work_now *ret_now,
                                         pawl_error *reterr)
{
    if (turns.worker != NULL && turns.status == PAWL_OK) {
        turns.status = work_a_turn(turns.worker, &turns.err);
    }
    turns.begun++;
    return turns.real.store->begin(base, ret_now, reterr);
}

static void note_removed(uint64_t rows, uint64_t *total)
{
    turns.too_much = turns.too_much || rows > BATCH || turns.removed_in == turns.begun;
    turns.removed_in = rows > 0 ? turns.begun : turns.removed_in;
    *total += rows;
}

static pawl_status remove_some_items(struct work_backend *base,
                                     int64_t ended_before_us,
                                     const pawl_view *ids,
                                     size_t count,
                                     uint64_t *ret_items,
                                     uint64_t *ret_history,
                                     pawl_error *reterr)
{
    pawl_status status = turns.real.maintenance->remove_items(
        base, ended_before_us, ids, count, ret_items, ret_history, reterr);

    note_removed(*ret_items, &turns.items);
    turns.too_much = turns.too_much || *ret_history > (uint64_t)BATCH * HISTORY_OF_ONE;
    turns.history += *ret_history;
    return status;
}

static pawl_status remove_some_checkpoints(struct work_backend *base,
                                           const struct work_now *now,
                                           pawl_view task_id,
                                           const pawl_view *ids,
                                           size_t count,
                                           bool archive,
                                           pawl_error *reterr)
{
    note_removed(count, &turns.checkpoints);
    return turns.real.checkpoints->remove(base, now, task_id, ids, count, archive, reterr);
}

static pawl_status remove_some_keys(struct work_backend *base,
                                    const struct work_now *now,
                                    int64_t completed_before_us,
                                    size_t count,
                                    uint64_t *ret_removed,
                                    pawl_error *reterr)
{
    pawl_status status =
        turns.real.keys->prune(base, now, completed_before_us, count, ret_removed, reterr);

    note_removed(*ret_removed, &turns.keys);
    return status;
}

static void fill_with_old_rows(struct timed_fixture *f)
{
    char id[20];

    timed_task(f, "t");
    for (int i = 0; i < OLD_ITEMS; i++) {
        snprintf(id, sizeof(id), "old%d", i);
        timed_finish(f, "t", id);
    }
    for (int i = 0; i < OLD_ROWS; i++) {
        snprintf(id, sizeof(id), "key%d", i);
        timed_answer(f, id, "t", "1");
        timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "0");
    }
    assert_true(timed_fixture_wait(f, INT64_C(2) * 86400));
    for (int i = 0; i < TURNS_MAX; i++) {
        snprintf(id, sizeof(id), "w%d", i);
        timed_submit(f, "t", id);
    }
}

static void retain_with_turns(struct timed_fixture *f, pawl_retention_report *ret_report)
{
    struct work_backend *backend = f->work->backend;
    struct work_store_ops store = *backend->store;
    struct work_maintenance_ops maintenance = *backend->maintenance;
    struct work_checkpoint_ops checkpoints = *backend->checkpoints;
    struct work_key_ops keys = *backend->keys;
    pawl_retention rules = PAWL_RETENTION_INIT;

    turns = (struct turns){ .worker = timed_fixture_second(f), .real = *backend };
    store.begin = begin_behind_a_worker;
    maintenance.remove_items = remove_some_items;
    checkpoints.remove = remove_some_checkpoints;
    keys.prune = remove_some_keys;
    backend->store = &store;
    backend->maintenance = &maintenance;
    backend->checkpoints = &checkpoints;
    backend->keys = &keys;
    rules.item_days = 1;
    rules.key_days = 1;
    rules.checkpoints_per_task = 1;
    rules.batch = BATCH;
    pawl_status status = pawl_work_retention(f->work, &rules, ret_report, &f->err);
    *backend = turns.real;
    pawl_work_close(turns.worker, 0, NULL);
    assert_ok(status, &f->err);
}

static void test_everything_that_retention_removes_goes_in_small_transactions(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;

    fill_with_old_rows(f);
    retain_with_turns(f, &report);
    assert_ok(turns.status, &turns.err);
    assert_false(turns.too_much);
    assert_in_range(turns.begun, (OLD_ITEMS + 2 * OLD_ROWS) / BATCH, TURNS_MAX);
    assert_int_equal(report.items, OLD_ITEMS);
    assert_int_equal(report.history, OLD_ITEMS * HISTORY_OF_ONE);
    assert_int_equal(report.checkpoints, OLD_ROWS - 1); /* the newest stays */
    assert_int_equal(report.keys, OLD_ROWS);
    assert_int_equal(turns.items, report.items);
    assert_int_equal(turns.history, report.history);
    assert_int_equal(turns.checkpoints, report.checkpoints);
    assert_int_equal(turns.keys, report.keys);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(test_a_lease_is_stale_by_the_options),
        TIMED_TEST(test_no_time_at_all_is_refused_by_its_name),
        TIMED_TEST(test_the_numbers_are_a_text_for_prometheus),
        TIMED_TEST(test_metrics_without_memory_leave_nothing_behind),
        TIMED_TEST(test_slots_that_fired_400_days_ago_are_forgotten),
        TIMED_TEST(test_workers_get_through_between_the_batches_of_a_retention),
        TIMED_TEST(test_everything_that_retention_removes_goes_in_small_transactions),
    };

    return timed_suite(argc, argv, tests, COUNT_OF(tests));
}
