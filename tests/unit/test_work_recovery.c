/* Recovery, schedules, statistics and retention: the contract that every backend keeps. */
#include "lib/timed_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const pawl_view none;

/* --- Recovery --- */

static void test_recovery_names_where_a_task_goes_on(void **state)
{
    struct timed_fixture *f = *state;
    pawl_recovery *recovery = NULL;

    assert_status(
        pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), PAWL_NOT_FOUND, &f->err);
    timed_task(f, "t");
    timed_task(f, "other");
    assert_ok(pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), &f->err);
    assert_null(recovery->resume);
    assert_null(recovery->iteration_end);
    assert_int_equal(recovery->item_count + recovery->key_count, 0);
    assert_int_equal(recovery->size, sizeof(pawl_recovery));
    char *json = NULL;
    size_t len = 0;
    assert_ok(pawl_recovery_to_json(recovery, &json, &len, &f->err), &f->err);
    assert_non_null(strstr(json, "\"resume\":null"));
    pawl_free(json);
    pawl_recovery_free(recovery);

    timed_finish(f, "t", "i1");
    timed_submit(f, "t", "i2");
    timed_submit(f, "t", "i3");
    (void)timed_claim(f, "i2", 0);
    timed_submit(f, "other", "i4");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "{\"iteration\":1}");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "{\"tool\":1}");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ERROR_BOUNDARY, "{\"error\":1}");
    timed_answer(f, "k2", "t", "[2]");
    timed_answer(f, "k1", "t", "null");
    timed_answer(f, "k3", "other", "3");
    assert_ok(pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), &f->err);
    assert_true(pawl__view_is(recovery->task->task_id, "t"));
    assert_int_equal(recovery->resume->sequence_number, 2);
    assert_int_equal(recovery->iteration_end->sequence_number, 1);
    assert_int_equal(recovery->passed_over, 0);
    assert_int_equal(recovery->item_count, 2);
    assert_true(pawl__view_is(recovery->items[0].work_item_id, "i2"));
    assert_int_equal(recovery->items[0].status, PAWL_ITEM_IN_PROGRESS);
    assert_true(pawl__view_is(recovery->items[1].work_item_id, "i3"));
    assert_int_equal(recovery->key_count, 2);
    assert_true(pawl__view_is(recovery->keys[0], "k1"));
    assert_true(pawl__view_is(recovery->responses[0], "null"));
    assert_true(pawl__view_is(recovery->responses[1], "[2]"));
    assert_false(recovery->more);
    pawl_recovery_free(recovery);
}

static pawl_recovery *recover_with(struct timed_fixture *f, pawl_recover_options options)
{
    pawl_recovery *recovery = NULL;

    options.size = sizeof(options);
    assert_ok(pawl_work_recover_with(f->work, pawl_view_of("t"), &options, &recovery, &f->err),
              &f->err);
    return recovery;
}

static pawl_recovery *recover_as_recorded(struct timed_fixture *f)
{
    return recover_with(f, (pawl_recover_options){ .as_recorded = true });
}

static void submit_long(struct timed_fixture *f, const char *id)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of("t");
    submission.work_type = pawl_view_of("type");
    submission.input_data = pawl_view_of("\"0123456789\""); /* 12 bytes */
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

static void test_recovery_lists_as_much_as_is_wanted(void **state)
{
    struct timed_fixture *f = *state;
    static const struct {
        pawl_recover_options options;
        size_t items;
        size_t keys;
        bool more;
    } cases[] = {
        { { .list_max = 0 }, 3, 2, false },  { { .list_max = 1 }, 1, 1, true },
        { { .list_max = 2 }, 2, 2, true },   { { .list_max = 3 }, 3, 2, false },
        { { .bytes_max = 1 }, 1, 1, true },  { { .bytes_max = 24 }, 2, 2, true },
        { { .bytes_max = 35 }, 2, 2, true }, { { .bytes_max = 36 }, 3, 2, false },
    };

    timed_task(f, "t");
    submit_long(f, "i1");
    submit_long(f, "i2");
    submit_long(f, "i3");
    timed_answer(f, "k1", "t", "1");
    timed_answer(f, "k2", "t", "2");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_recovery *recovery = recover_with(f, cases[i].options);
        assert_int_equal(recovery->item_count, cases[i].items);
        assert_int_equal(recovery->key_count, cases[i].keys);
        assert_int_equal(recovery->more, cases[i].more);
        assert_int_equal(recovery->task->pending, 3);
        pawl_recovery_free(recovery);
    }
}

static void test_what_is_no_object_is_refused_not_shown(void **state)
{
    struct timed_fixture *f = *state;
    pawl_item item = { .size = sizeof(pawl_item), .status = (pawl_item_status)77 };
    char *json = NULL;

    assert_string_equal(pawl_item_status_name((pawl_item_status)77), "unknown");
    assert_string_equal(pawl_task_status_name((pawl_task_status)77), "unknown");
    assert_string_equal(pawl_checkpoint_type_name((pawl_checkpoint_type)77), "unknown");
    assert_string_equal(pawl_item_status_name(PAWL_ITEM_WAITING), "waiting");
    assert_string_equal(pawl_task_status_name(PAWL_TASK_CANCELLED), "cancelled");
    assert_string_equal(pawl_checkpoint_type_name(PAWL_CHECKPOINT_ERROR_BOUNDARY),
                        "error_boundary");
    assert_ok(pawl_item_to_json(&item, &json, NULL, &f->err), &f->err);
    assert_non_null(strstr(json, "\"status\":\"unknown\""));
    free(json);
    assert_status(pawl_item_to_json(NULL, &json, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl_task_to_json(NULL, &json, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl_checkpoint_to_json(NULL, &json, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl_recovery_to_json(NULL, &json, NULL, &f->err), PAWL_INVALID, &f->err);
}

static void test_recovery_passes_over_what_does_not_hold(void **state)
{
    struct timed_fixture *f = *state;
    char path[TEMPDIR_SIZE + 20];
    pawl_evidence evidence = {
        sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_EXISTS, { NULL, 0 }, { NULL, 0 }
    };
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of("t"),
        .type = PAWL_CHECKPOINT_TOOL_EXECUTED,
        .snapshot_data = pawl_view_of("2"),
        .evidence = &evidence,
        .evidence_count = 1,
    };
    pawl_recovery *recovery = NULL;

    timed_task(f, "t");
    snprintf(path, sizeof(path), "%s/result", f->dir);
    evidence.subject = pawl_view_of(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_START, "1");
    assert_ok(pawl_checkpoint_add(f->work, &checkpoint, NULL, NULL, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), &f->err);
    assert_int_equal(recovery->resume->sequence_number, 2);
    pawl_recovery_free(recovery);
    assert_int_equal(remove(path), 0);
    recovery = recover_as_recorded(f); /* nobody looks: it held the last time */
    assert_int_equal(recovery->resume->sequence_number, 2);
    pawl_recovery_free(recovery);
    assert_ok(pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), &f->err);
    assert_int_equal(recovery->resume->sequence_number, 1);
    assert_int_equal(recovery->passed_over, 1);
    pawl_recovery_free(recovery);
    recovery = recover_as_recorded(f); /* what was found now is on record */
    assert_int_equal(recovery->resume->sequence_number, 1);
    assert_int_equal(recovery->passed_over, 1);
    pawl_recovery_free(recovery);
}

static void test_recovery_passes_over_a_question_that_cannot_be_asked_any_more(void **state)
{
    struct timed_fixture *f = *state;
    pawl_evidence evidence = { sizeof(pawl_evidence),
                               PAWL_EVIDENCE_ROW_EXISTS,
                               pawl_view_of("SELECT 1 FROM done"),
                               { NULL, 0 } };
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of("t"),
        .type = PAWL_CHECKPOINT_TOOL_EXECUTED,
        .snapshot_data = pawl_view_of("2"),
        .evidence = &evidence,
        .evidence_count = 1,
    };
    pawl_recovery *recovery = NULL;

    if (strcmp(f->backend, "sqlite") != 0) {
        return;
    }
    assert_true(timed_fixture_sql(f, "CREATE TABLE done (id); INSERT INTO done VALUES (1)"));
    timed_task(f, "t");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_START, "1");
    assert_ok(pawl_checkpoint_add(f->work, &checkpoint, NULL, NULL, NULL, 0, &f->err), &f->err);
    assert_true(timed_fixture_sql(f, "DROP TABLE done"));
    assert_ok(pawl_work_recover(f->work, pawl_view_of("t"), &recovery, &f->err), &f->err);
    assert_int_equal(recovery->resume->sequence_number, 1);
    assert_int_equal(recovery->passed_over, 1);
    pawl_recovery_free(recovery);
}

/* --- Schedules --- */

static pawl_schedule schedule_of(const char *id, const char *cron)
{
    return (pawl_schedule){
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl_view_of(id),
        .cron = pawl_view_of(cron),
        .task_id = pawl_view_of("t"),
        .work_type = pawl_view_of("type"),
        .input_data = pawl_view_of("{\"n\":1}"),
        .max_retries = -1,
    };
}

static void put(struct timed_fixture *f, const pawl_schedule *schedule)
{
    assert_ok(pawl_schedule_put(f->work, schedule, &f->err), &f->err);
}

static uint64_t fire(struct timed_fixture *f)
{
    uint64_t fired = 0;

    assert_ok(pawl_schedule_fire(f->work, &fired, &f->err), &f->err);
    return fired;
}

static bool count_item(void *context, const pawl_item *item)
{
    (void)item;
    (*(int *)context)++;
    return true;
}

static int count_items(struct timed_fixture *f)
{
    int count = 0;

    assert_ok(pawl_work_list(f->work, NULL, NULL, count_item, &count, &f->err), &f->err);
    return count;
}

static bool keep_slots(void *context, const pawl_schedule *schedule)
{
    *(pawl_schedule *)context = *schedule;
    return true;
}

static pawl_schedule look(struct timed_fixture *f)
{
    pawl_schedule schedule = { .size = sizeof(pawl_schedule), .priority = -1 };

    assert_ok(pawl_schedule_list(f->work, NULL, keep_slots, &schedule, &f->err), &f->err);
    return schedule;
}

static bool add_schedule_id(void *context, const pawl_schedule *schedule)
{
    strncat(context, schedule->schedule_id.data, schedule->schedule_id.len);
    strcat(context, " ");
    return true;
}

static void test_schedules_are_listed_in_pages(void **state)
{
    struct timed_fixture *f = *state;
    static const char *const ids[] = { "b", "B", "a", "\xc3\xa9", "aa" };
    pawl_page page = PAWL_PAGE_INIT;
    char seen[60] = "";

    timed_task(f, "t");
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        pawl_schedule schedule = schedule_of(ids[i], "@hourly");
        put(f, &schedule);
    }
    page.limit = 2;
    do {
        assert_ok(pawl_schedule_list(f->work, &page, add_schedule_id, seen, &f->err), &f->err);
        strcat(seen, page.more ? "| " : "");
    } while (page.more);
    assert_string_equal(seen, "B a | aa b | \xc3\xa9 ");
}

static bool count_event(void *context, const pawl_item_event *event)
{
    (void)event;
    ++*(uint64_t *)context;
    return true;
}

static void test_the_history_of_an_item_is_read_in_pages(void **state)
{
    struct timed_fixture *f = *state;
    pawl_page page = PAWL_PAGE_INIT;
    pawl_submission item = PAWL_SUBMISSION_INIT;
    pawl_claim claim = PAWL_CLAIM_INIT;
    uint64_t events = 0;

    timed_task(f, "t");
    item.work_item_id = pawl_view_of("i");
    item.task_id = pawl_view_of("t");
    item.work_type = pawl_view_of("mail");
    assert_ok(pawl_work_submit(f->work, &item, 1, NULL, &f->err), &f->err);
    claim.holder = pawl_view_of("w");
    for (int i = 0; i < 2; i++) { /* submitted, then twice: claimed, released */
        pawl_claimed *claimed = NULL;
        assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
        pawl_lease lease = PAWL_LEASE_INIT;
        lease.work_item_id = pawl_view_of("i");
        lease.token = claimed->items[0].token;
        assert_ok(pawl_work_release(f->work, &lease, &f->err), &f->err);
        pawl_claimed_free(claimed);
    }
    page.limit = 2;
    for (uint64_t pages = 1; pages <= 3; pages++) {
        assert_ok(
            pawl_work_history(f->work, pawl_view_of("i"), &page, count_event, &events, &f->err),
            &f->err);
        assert_int_equal(page.more, pages < 3);
        assert_int_equal(events, MIN(2 * pages, UINT64_C(5)));
    }
}

static void test_a_slot_fires_once(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule schedule = schedule_of("nightly", "@hourly");
    pawl_work *second = timed_fixture_second(f);
    uint64_t fired = 0;

    timed_task(f, "t");
    put(f, &schedule);
    assert_int_equal(fire(f), 0);
    int64_t next_us = look(f).next_slot_us;
    assert_int_equal(next_us % (3600 * US_PER_S), 0);
    assert_int_equal(look(f).last_slot_us, 0);
    if (timed_fixture_wait(f, 3600)) {
        assert_int_equal(fire(f), 1);
        assert_int_equal(fire(f), 0);
        if (second != NULL) {
            assert_ok(pawl_schedule_fire(second, &fired, &f->err), &f->err);
            assert_int_equal(fired, 0);
        }
        assert_int_equal(look(f).last_slot_us, next_us);
        assert_int_equal(count_items(f), 1);
        char id[60];
        char time[PAWL__TIME_SIZE];
        pawl_item *item = NULL;
        pawl__time_rfc3339(next_us, time);
        snprintf(id, sizeof(id), "nightly@%.16sZ", time);
        assert_ok(pawl_work_get(f->work, pawl_view_of(id), &item, &f->err), &f->err);
        assert_true(pawl__view_is(item->input_data, "{\"n\":1}"));
        assert_int_equal(item->max_retries, 3);
        pawl_item_free(item);
    }
    pawl_work_close(second, 0, NULL);
}

static void test_of_missed_slots_the_newest_fires(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule schedule = schedule_of("s", "*/10 * * * *");

    timed_task(f, "t");
    put(f, &schedule);
    if (timed_fixture_wait(f, INT64_C(24) * 3600)) {
        assert_int_equal(fire(f), 1);
        int64_t last_us = look(f).last_slot_us;
        assert_int_equal(look(f).next_slot_us, last_us + 600 * US_PER_S);
        assert_int_equal(count_items(f), 1);
    }
}

static void test_a_clock_that_is_set_back_fires_nothing_twice(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule schedule = schedule_of("s", "@hourly");

    if (strcmp(f->backend, "postgres") == 0) {
        return; /* the server's clock does not step with this machine's */
    }
    timed_task(f, "t");
    put(f, &schedule);
    if (!timed_fixture_wait(f, 3600)) {
        return;
    }
    assert_int_equal(fire(f), 1);
    timed_fixture_step_wall(f, -3600);
    assert_int_equal(fire(f), 0);
    assert_true(timed_fixture_wait(f, 3600)); /* the same slot again */
    assert_int_equal(fire(f), 0);
    assert_true(timed_fixture_wait(f, 3600));
    assert_int_equal(fire(f), 1);
    /* A year ahead and back: it does not wait for that year. */
    timed_fixture_step_wall(f, INT64_C(365) * 24 * 3600);
    assert_int_equal(fire(f), 1);
    timed_fixture_step_wall(f, -INT64_C(365) * 24 * 3600);
    assert_int_equal(fire(f), 0);
    assert_true(timed_fixture_wait(f, 3600));
    assert_int_equal(fire(f), 1);
}

static void test_putting_a_schedule_again_keeps_its_place(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule schedule = schedule_of("s", "@hourly");

    timed_task(f, "t");
    put(f, &schedule);
    int64_t next_us = look(f).next_slot_us;
    if (!timed_fixture_wait(f, 3600)) {
        return;
    }
    schedule.priority = 5;
    put(f, &schedule);
    assert_int_equal(look(f).next_slot_us, next_us);
    assert_int_equal(look(f).priority, 5);
    assert_int_equal(fire(f), 1);
    schedule.cron = pawl_view_of("@yearly");
    put(f, &schedule);
    assert_int_equal(fire(f), 0);
    assert_ok(pawl_schedule_remove(f->work, pawl_view_of("s"), &f->err), &f->err);
    assert_status(
        pawl_schedule_remove(f->work, pawl_view_of("s"), &f->err), PAWL_NOT_FOUND, &f->err);
    assert_int_equal(look(f).priority, -1);
    schedule.cron = pawl_view_of("@hourly");
    put(f, &schedule);
    assert_int_equal(count_items(f), 1);
}

static void test_a_schedule_without_a_task_makes_one_a_slot(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule schedule = schedule_of("s", "@daily");

    schedule.task_id = none;
    put(f, &schedule);
    if (timed_fixture_wait(f, INT64_C(24) * 3600)) {
        assert_int_equal(fire(f), 1);
        assert_true(timed_fixture_wait(f, INT64_C(24) * 3600));
        assert_int_equal(fire(f), 1);
        assert_int_equal(count_items(f), 2);
    }
}

static void test_one_that_cannot_fire_stops_no_other(void **state)
{
    struct timed_fixture *f = *state;
    pawl_schedule bad = schedule_of("a", "@hourly");
    pawl_schedule good = schedule_of("b", "@hourly");
    uint64_t fired = 42;

    timed_task(f, "t");
    timed_task(f, "gone");
    bad.task_id = pawl_view_of("gone");
    put(f, &bad);
    put(f, &good);
    assert_ok(pawl_task_cancel(f->work, pawl_view_of("gone"), NULL, &f->err), &f->err);
    if (timed_fixture_wait(f, 3600)) {
        assert_status(pawl_schedule_fire(f->work, &fired, &f->err), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "schedule 'a'");
        assert_int_equal(fired, 42);
        assert_int_equal(count_items(f), 1);
    }
}

static void assert_bad_schedule(struct timed_fixture *f,
                                const pawl_schedule *schedule,
                                pawl_status expected,
                                const char *message)
{
    assert_status(pawl_schedule_put(f->work, schedule, &f->err), expected, &f->err);
    assert_message(&f->err, message);
}

static void test_bad_schedules_are_refused_by_name(void **state)
{
    struct timed_fixture *f = *state;
    char long_id[PAWL_SCHEDULE_ID_BYTES_MAX + 2];
    pawl_schedule schedule = schedule_of("s", "61 * * * *");

    timed_task(f, "t");
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    assert_bad_schedule(f, &schedule, PAWL_INVALID, "cron: minute: 61");
    schedule = schedule_of("s", "0 0 30 2 *");
    assert_bad_schedule(f, &schedule, PAWL_INVALID, "never comes");
    schedule = schedule_of(long_id, "@daily");
    assert_bad_schedule(f, &schedule, PAWL_INVALID, "schedule_id: 181 bytes, the limit is 180");
    schedule = schedule_of("s", "@daily");
    schedule.task_id = pawl_view_of("none");
    assert_bad_schedule(f, &schedule, PAWL_NOT_FOUND, "no task 'none'");
    schedule = schedule_of("s", "@daily");
    schedule.input_data = pawl_view_of("{");
    assert_bad_schedule(f, &schedule, PAWL_INVALID, "input_data");
    schedule = schedule_of("s", "@daily");
    schedule.priority = PAWL_WORK_PRIORITY_MAX + 1;
    assert_bad_schedule(f, &schedule, PAWL_INVALID, "priority");
    assert_int_equal(look(f).priority, -1);
}

/* --- Statistics --- */

static bool note_type(void *context, const pawl_type_stats *stats)
{
    pawl__buf_add_format(context,
                         "%.*s/%d=%llu ",
                         VIEW_ARGS(stats->work_type),
                         (int)stats->status,
                         (unsigned long long)stats->count);
    assert_true(stats->avg_age_hours >= 0);
    return true;
}

static bool note_growth(void *context, const pawl_checkpoint_growth *growth)
{
    pawl__buf_add_format(context,
                         "%.*s %llu up to %lld ",
                         VIEW_ARGS(growth->task_id),
                         (unsigned long long)growth->checkpoint_count,
                         (long long)growth->max_sequence);
    assert_true(growth->first_at_us > 0 && growth->first_at_us <= growth->last_at_us);
    return true;
}

static void test_statistics_count_what_is_there(void **state)
{
    struct timed_fixture *f = *state;
    pawl_submission later = PAWL_SUBMISSION_INIT;
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    char text[300] = "";
    struct pawl__buf buf = BUF_OVER(text);

    assert_ok(pawl_work_get_stats(f->work, &stats, &f->err), &f->err);
    assert_int_equal(stats.pending + stats.checkpoints, 0);
    assert_int_equal(stats.oldest_pending_us, 0);
    timed_task(f, "t");
    timed_task(f, "u");
    timed_finish(f, "t", "i1");
    timed_submit(f, "t", "i2");
    (void)timed_claim(f, "i2", 3600000);
    timed_submit(f, "t", "i3");
    later.task_id = pawl_view_of("t");
    later.work_type = pawl_view_of("later");
    later.delay_ms = INT64_C(1000) * 3600 * 24;
    assert_ok(pawl_work_submit(f->work, &later, 1, NULL, &f->err), &f->err);
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "1");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "2");
    timed_checkpoint(f, "u", PAWL_CHECKPOINT_ITERATION_END, "2");
    timed_answer(f, "k", "t", "1");
    bool travelled = timed_fixture_wait(f, 180);
    assert_ok(pawl_work_get_stats(f->work, &stats, &f->err), &f->err);
    assert_int_equal(stats.completed, 1);
    assert_int_equal(stats.in_progress, 1);
    assert_int_equal(stats.pending, 1);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(stats.failed, 0);
    assert_int_equal(stats.active_leases, 1);
    assert_int_equal(stats.checkpoints, 3);
    assert_int_equal(stats.keys_completed, 1);
    assert_true(stats.oldest_pending_us > 0);
    if (travelled) {
        assert_int_equal(stats.stale_leases, 1);
        assert_true(stats.avg_minutes_since_heartbeat >= 2.9
                    && stats.avg_minutes_since_heartbeat < 4);
    }
    assert_ok(pawl_work_type_stats(f->work, note_type, &buf, &f->err), &f->err);
    assert_string_equal(text, "later/5=1 type/2=1 type/1=1 type/0=1 ");
    pawl__buf_clear(&buf);
    assert_ok(pawl_work_checkpoint_growth(f->work, note_growth, &buf, &f->err), &f->err);
    assert_string_equal(text, "t 2 up to 2 u 1 up to 1 ");
}

static void assert_metrics(struct timed_fixture *f, const char *const *lines)
{
    char *text = NULL;

    assert_ok(pawl_work_get_metrics(f->work, &text, NULL, &f->err), &f->err);
    for (; *lines != NULL; lines++) {
        if (strstr(text, *lines) == NULL) {
            fail_msg("'%s' is not in\n%s", *lines, text);
        }
    }
    free(text);
}

static void test_statistics_are_metrics(void **state)
{
    struct timed_fixture *f = *state;
    const char *const before[] = { "\npawl_work_items{work_type=\"type\",status=\"pending\"} 1\n",
                                   "\npawl_work_active_leases 0\n",
                                   "\npawl_work_checkpoints 1\n",
                                   "\npawl_commit_calls_total{store=\"work\"} ",
                                   "\npawl_commit_waiting{store=\"work\"} 0\n",
                                   "\npawl_work_task_checkpoints{task_id=\"t\"} 1\n",
                                   "\npawl_work_idempotency_keys{status=\"completed\"} 1\n",
                                   NULL };
    const char *const after[] = {
        "\npawl_work_items{work_type=\"type\",status=\"in_progress\"} 1\n",
        "\npawl_work_active_leases 1\n",
        "\npawl_work_oldest_pending_timestamp_seconds 0\n",
        NULL,
    };

    timed_task(f, "t");
    timed_submit(f, "t", "i");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "1");
    timed_answer(f, "k", "t", "1");
    assert_metrics(f, before);
    (void)timed_claim(f, "i", 0);
    assert_metrics(f, after);
}

/* --- Retention --- */

static void test_retention_removes_what_is_old(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention rules = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    pawl_retention_report planned = PAWL_RETENTION_REPORT_INIT;
    char id[20];

    timed_task(f, "t");
    for (int i = 0; i < 25; i++) {
        snprintf(id, sizeof(id), "old%02d", i);
        timed_finish(f, "t", id);
        timed_answer(f, id, "t", "1");
    }
    if (!timed_fixture_wait(f, INT64_C(31) * 24 * 3600)) {
        return;
    }
    timed_finish(f, "t", "new");
    timed_submit(f, "t", "open");
    timed_answer(f, "new", "t", "1");
    rules.batch = 10;
    rules.dry_run = true;
    assert_ok(pawl_work_retention(f->work, &rules, &planned, &f->err), &f->err);
    assert_int_equal(count_items(f), 27);
    rules.dry_run = false;
    assert_ok(pawl_work_retention(f->work, &rules, &report, &f->err), &f->err);
    assert_int_equal(report.items, 25);
    assert_int_equal(report.history, 75); /* submitted, claimed, completed */
    assert_int_equal(report.keys, 25);
    assert_int_equal(planned.items, report.items);
    assert_int_equal(planned.history, report.history);
    assert_int_equal(planned.keys, report.keys);
    assert_int_equal(count_items(f), 2);
    assert_ok(pawl_work_retention(f->work, NULL, &report, &f->err), &f->err);
    assert_int_equal(report.items + report.history + report.keys + report.checkpoints, 0);
}

static uint64_t begin_for_a_second(struct timed_fixture *f)
{
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    pawl_idem *idem = NULL;

    assert_ok(pawl_request_hash(pawl_view_of("1"), hash, PAWL_REQUEST_HASH_SIZE, &f->err), &f->err);
    request.key = pawl_view_of("k");
    request.request_hash = pawl_view_of(hash);
    request.ttl_ms = 1000;
    request.lease_ms = 1000;
    assert_ok(pawl_idem_begin(f->work, &request, &idem, &f->err), &f->err);
    assert_int_equal(idem->answer, PAWL_IDEM_NEW);
    uint64_t token = idem->owner_token;
    pawl_idem_free(idem);
    return token;
}

/* Whoever began a key that retention has removed does not own the one that was begun after it. */
static void test_a_removed_key_does_not_give_its_token_again(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    uint64_t zombie = begin_for_a_second(f);

    if (!timed_fixture_wait(f, 30)) {
        return;
    }
    assert_ok(pawl_work_retention(f->work, NULL, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 1);
    uint64_t owner = begin_for_a_second(f);
    assert_status(
        pawl_idem_complete(f->work, pawl_view_of("k"), zombie, pawl_view_of("1"), &f->err),
        PAWL_LEASE_LOST,
        &f->err);
    assert_ok(pawl_idem_complete(f->work, pawl_view_of("k"), owner, pawl_view_of("2"), &f->err),
              &f->err);
}

static void test_retention_spares_a_key_whose_owner_is_at_it(void **state)
{
    struct timed_fixture *f = *state;
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    pawl_idem *idem = NULL;

    assert_ok(pawl_request_hash(pawl_view_of("1"), hash, PAWL_REQUEST_HASH_SIZE, &f->err), &f->err);
    request.key = pawl_view_of("k");
    request.request_hash = pawl_view_of(hash);
    request.ttl_ms = 1000;
    request.lease_ms = 60000;
    assert_ok(pawl_idem_begin(f->work, &request, &idem, &f->err), &f->err);
    pawl_idem_free(idem);
    if (!timed_fixture_wait(f, 30)) {
        return;
    }
    assert_ok(pawl_work_retention(f->work, NULL, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 0);
    assert_true(timed_fixture_wait(f, 31));
    assert_ok(pawl_work_retention(f->work, NULL, &report, &f->err), &f->err);
    assert_int_equal(report.keys, 1);
}

static bool note_number(void *context, const pawl_checkpoint *checkpoint)
{
    pawl__buf_add_format(context, "%lld ", (long long)checkpoint->sequence_number);
    return true;
}

static void test_retention_keeps_what_a_task_needs_to_go_on(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention rules = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    pawl_retention_report planned = PAWL_RETENTION_REPORT_INIT;
    char text[300] = "";
    struct pawl__buf buf = BUF_OVER(text);

    timed_task(f, "t");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_APPROVAL_POINT, "1");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "2");
    timed_checkpoint(f, "t", PAWL_CHECKPOINT_ITERATION_END, "3");
    for (int i = 4; i <= 30; i++) {
        timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "0");
    }
    rules.checkpoints_per_task = 5;
    rules.batch = 7;
    rules.archive = true;
    rules.dry_run = true;
    assert_ok(pawl_work_retention(f->work, &rules, &planned, &f->err), &f->err);
    rules.dry_run = false;
    assert_ok(pawl_work_retention(f->work, &rules, &report, &f->err), &f->err);
    assert_int_equal(report.checkpoints, 23);
    assert_int_equal(report.archived, 23);
    assert_int_equal(planned.checkpoints, 23);
    assert_int_equal(planned.archived, 23);
    assert_ok(pawl_checkpoint_list(
                  f->work, pawl_view_of("t"), none, NULL, NULL, note_number, &buf, &f->err),
              &f->err);
    assert_string_equal(text, "1 3 26 27 28 29 30 ");
    assert_int_equal(timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "0"), 31);
    rules.checkpoints_per_task = 0;
    assert_ok(pawl_work_retention(f->work, &rules, &report, &f->err), &f->err);
    assert_int_equal(timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "0"),
                     32); /* never given again */
}

static void test_retention_gives_space_back(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention rules = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;
    struct stat before;
    struct stat after;

    if (strcmp(f->backend, "sqlite") != 0) {
        return;
    }
    char *snapshot = malloc(20001);
    assert_non_null(snapshot);
    memset(snapshot, '1', 20000);
    snapshot[0] = '"';
    snapshot[19999] = '"';
    snapshot[20000] = '\0';
    timed_task(f, "t");
    for (int i = 0; i < 100; i++) {
        timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, snapshot);
    }
    free(snapshot);
    assert_true(timed_fixture_sql(f, "PRAGMA wal_checkpoint(TRUNCATE)"));
    assert_int_equal(stat(f->location, &before), 0);
    rules.checkpoints_per_task = 1;
    assert_ok(pawl_work_retention(f->work, &rules, &report, &f->err), &f->err);
    assert_true(report.bytes_freed > 1500000);
    assert_true(timed_fixture_sql(f, "PRAGMA wal_checkpoint(TRUNCATE)"));
    assert_int_equal(stat(f->location, &after), 0);
    assert_true(after.st_size <= before.st_size - 1500000);
}

static void test_bad_rules_are_refused_by_name(void **state)
{
    struct timed_fixture *f = *state;
    pawl_retention rules = PAWL_RETENTION_INIT;
    pawl_retention_report report = { .size = sizeof(pawl_retention_report), .items = 42 };

    rules.batch = 0;
    assert_status(pawl_work_retention(f->work, &rules, &report, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "batch: 0");
    rules.batch = 10001;
    assert_status(pawl_work_retention(f->work, &rules, &report, &f->err), PAWL_INVALID, &f->err);
    rules.batch = 10000;
    rules.key_days = 36501;
    assert_status(pawl_work_retention(f->work, &rules, &report, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "key_days: more than 36500 days");
    assert_int_equal(report.items, 42);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(test_recovery_names_where_a_task_goes_on),
        TIMED_TEST(test_recovery_lists_as_much_as_is_wanted),
        TIMED_TEST(test_what_is_no_object_is_refused_not_shown),
        TIMED_TEST(test_recovery_passes_over_what_does_not_hold),
        TIMED_TEST(test_recovery_passes_over_a_question_that_cannot_be_asked_any_more),
        TIMED_TEST(test_schedules_are_listed_in_pages),
        TIMED_TEST(test_the_history_of_an_item_is_read_in_pages),
        TIMED_TEST(test_a_slot_fires_once),
        TIMED_TEST(test_of_missed_slots_the_newest_fires),
        TIMED_TEST(test_a_clock_that_is_set_back_fires_nothing_twice),
        TIMED_TEST(test_putting_a_schedule_again_keeps_its_place),
        TIMED_TEST(test_a_schedule_without_a_task_makes_one_a_slot),
        TIMED_TEST(test_one_that_cannot_fire_stops_no_other),
        TIMED_TEST(test_bad_schedules_are_refused_by_name),
        TIMED_TEST(test_statistics_count_what_is_there),
        TIMED_TEST(test_statistics_are_metrics),
        TIMED_TEST(test_retention_removes_what_is_old),
        TIMED_TEST(test_a_removed_key_does_not_give_its_token_again),
        TIMED_TEST(test_retention_spares_a_key_whose_owner_is_at_it),
        TIMED_TEST(test_retention_keeps_what_a_task_needs_to_go_on),
        TIMED_TEST(test_retention_gives_space_back),
        TIMED_TEST(test_bad_rules_are_refused_by_name),
    };

    return timed_suite(argc, argv, tests, COUNT_OF(tests));
}
