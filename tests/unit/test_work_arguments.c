/* What a caller may do wrong with <pawl/work.h>: each is a status with the name of the argument, and
 * nothing crashes, aborts, hangs or prints. Calls from inside of callbacks are told what they may do. */
#include "lib/work_fixture.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/core/macros.h"
#include "lib/header.h"

enum { PATIENCE_S = 60 };

#define NOWHERE ((pawl_view){ NULL, 5 }) /* a view of bytes that are not there */
#define EMPTY ((pawl_view){ NULL, 0 })
#define ID pawl_view_of("a")
#define HASH pawl_view_of("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")

/* The call is INVALID and names the argument, with `err` as the place for an error and without one. */
static pawl_error error;
static pawl_error *err;
#define REFUSED(name, call)                                                          \
    do {                                                                             \
        error = (pawl_error)PAWL_ERROR_INIT;                                         \
        err = &error;                                                                \
        pawl_status told_ = (call);                                                  \
        if (told_ != PAWL_INVALID || strstr(error.message, name) == NULL) {          \
            fail_msg("%s: %s, '%s'", #call, pawl_status_name(told_), error.message); \
        }                                                                            \
        err = NULL;                                                                  \
        assert_int_equal((call), PAWL_INVALID);                                      \
    } while (0)

static bool never(void *context, const void *what)
{
    (void)context;
    (void)what;
    fail_msg("nothing is visited");
    return false;
}

static bool task_never(void *context, const pawl_task *task)
{
    return never(context, task);
}

static bool item_never(void *context, const pawl_item *item)
{
    return never(context, item);
}

static bool event_never(void *context, const pawl_item_event *event)
{
    return never(context, event);
}

static bool checkpoint_never(void *context, const pawl_checkpoint *checkpoint)
{
    return never(context, checkpoint);
}

static bool diff_never(void *context, const pawl_difference *difference)
{
    return never(context, difference->path.data);
}

static bool schedule_never(void *context, const pawl_schedule *schedule)
{
    return never(context, schedule);
}

static bool type_never(void *context, const pawl_type_stats *stats)
{
    return never(context, stats);
}

static bool growth_never(void *context, const pawl_checkpoint_growth *growth)
{
    return never(context, growth);
}

static void answer_never(void *context, const pawl_error *outcome)
{
    (void)never(context, outcome);
}

static void claim_never(void *context, pawl_claimed *claimed, const pawl_error *outcome)
{
    (void)never(context, outcome);
    pawl_claimed_free(claimed);
}

static bool change_never(void *context, const pawl_work_change *change)
{
    return never(context, change);
}

static void subscriber_never(void *context)
{
    (void)never(context, NULL);
}

static pawl_status work_never(void *context, char **ret_response, pawl_error *reterr)
{
    (void)ret_response;
    (void)reterr;
    (void)never(context, NULL);
    return PAWL_FAILED;
}

static void test_opening_and_ending_take_nothing_amiss(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;
    pawl_work *work = NULL;

    (void)f;
    options.lease_ms = 0;
    REFUSED("ret_work", pawl_work_open("memory:", NULL, NULL, err));
    REFUSED("location", pawl_work_open("", NULL, &work, err));
    REFUSED("lease_ms", pawl_work_open("memory:", &options, &work, err));
    assert_null(work);
    pawl_work_close(NULL, 0, NULL);
    pawl_work_cancel_waits(NULL);
    pawl_work_interrupt(NULL);
    pawl_task_free(NULL);
    pawl_item_free(NULL);
    pawl_claimed_free(NULL);
    pawl_checkpoint_free(NULL);
    pawl_idem_free(NULL);
    pawl_recovery_free(NULL);
}

static pawl_page page_from(const char *from_id)
{
    pawl_page page = PAWL_PAGE_INIT;

    (void)snprintf(page.from_id, sizeof(page.from_id), "%s", from_id);
    return page;
}

static void test_tasks_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_page no_page = { .size = 0 };
    pawl_page wrong = page_from("\001");
    pawl_page endless = PAWL_PAGE_INIT;
    pawl_work *work = f->work;
    pawl_task task = { .size = sizeof(pawl_task), .task_id = ID };
    pawl_task *got = NULL;
    const pawl_task_status none = (pawl_task_status)77;

    memset(endless.from_id, 'a', sizeof(endless.from_id));
    REFUSED("work", pawl_task_create(NULL, &task, NULL, 0, err));
    REFUSED("task", pawl_task_create(work, NULL, NULL, 0, err));
    task.task_id = NOWHERE;
    REFUSED("task_id", pawl_task_create(work, &task, NULL, 0, err));
    task = (pawl_task){ .size = sizeof(pawl_task), .task_id = ID, .title = NOWHERE };
    REFUSED("title", pawl_task_create(work, &task, NULL, 0, err));
    task = (pawl_task){ .size = sizeof(pawl_task), .task_id = ID, .metadata = NOWHERE };
    REFUSED("metadata", pawl_task_create(work, &task, NULL, 0, err));
    REFUSED("work", pawl_task_get(NULL, ID, &got, err));
    REFUSED("task_id", pawl_task_get(work, NOWHERE, &got, err));
    REFUSED("ret_task", pawl_task_get(work, ID, NULL, err));
    REFUSED("work", pawl_task_list(NULL, NULL, NULL, task_never, NULL, err));
    REFUSED("visit", pawl_task_list(work, NULL, NULL, NULL, NULL, err));
    REFUSED("status", pawl_task_list(work, &none, NULL, task_never, NULL, err));
    REFUSED("page: size", pawl_task_list(work, NULL, &no_page, task_never, NULL, err));
    REFUSED("page: from_id", pawl_task_list(work, NULL, &endless, task_never, NULL, err));
    REFUSED("page: from_id", pawl_task_list(work, NULL, &wrong, task_never, NULL, err));
    REFUSED("work", pawl_task_set_status(NULL, ID, PAWL_TASK_RUNNING, err));
    REFUSED("task_id", pawl_task_set_status(work, NOWHERE, PAWL_TASK_RUNNING, err));
    REFUSED("status", pawl_task_set_status(work, ID, none, err));
    REFUSED("work", pawl_task_cancel(NULL, ID, NULL, err));
    REFUSED("task_id", pawl_task_cancel(work, NOWHERE, NULL, err));
    assert_null(got);
}

static void test_submissions_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    const pawl_view nowhere[] = { NOWHERE };
    pawl_submission good = PAWL_SUBMISSION_INIT;
    good.work_item_id = ID;
    good.task_id = ID;
    good.work_type = ID;
    pawl_submission bad = good;

    REFUSED("work", pawl_work_submit(NULL, &good, 1, NULL, err));
    REFUSED("submissions", pawl_work_submit(work, NULL, 1, NULL, err));
    bad.work_item_id = NOWHERE;
    REFUSED("work_item_id", pawl_work_submit(work, &bad, 1, NULL, err));
    bad = good;
    bad.task_id = NOWHERE;
    REFUSED("task_id", pawl_work_submit(work, &bad, 1, NULL, err));
    bad = good;
    bad.work_type = NOWHERE;
    REFUSED("work_type", pawl_work_submit(work, &bad, 1, NULL, err));
    bad = good;
    bad.input_data = NOWHERE;
    REFUSED("input_data", pawl_work_submit(work, &bad, 1, NULL, err));
    bad = good;
    bad.after_count = 1;
    REFUSED("after", pawl_work_submit(work, &bad, 1, NULL, err));
    bad.after = nowhere;
    REFUSED("after", pawl_work_submit(work, &bad, 1, NULL, err));
}

static void test_claims_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    const pawl_view nowhere[] = { NOWHERE };
    pawl_lease lease = { sizeof(pawl_lease), ID, 1 };
    pawl_claimed *claimed = NULL;
    pawl_claim good = PAWL_CLAIM_INIT;
    good.holder = ID;
    pawl_claim bad = good;

    REFUSED("work", pawl_work_claim(NULL, &good, &claimed, err));
    REFUSED("claim", pawl_work_claim(work, NULL, &claimed, err));
    REFUSED("ret_claimed", pawl_work_claim(work, &good, NULL, err));
    bad.holder = NOWHERE;
    REFUSED("holder", pawl_work_claim(work, &bad, &claimed, err));
    bad = good;
    bad.task_id = NOWHERE;
    REFUSED("task", pawl_work_claim(work, &bad, &claimed, err));
    bad = good;
    bad.work_type_count = 1;
    REFUSED("types", pawl_work_claim(work, &bad, &claimed, err));
    bad.work_types = nowhere;
    REFUSED("types", pawl_work_claim(work, &bad, &claimed, err));
    bad = good;
    bad.size = 0;
    REFUSED("claim", pawl_work_claim(work, &bad, &claimed, err));
    REFUSED("claim", pawl_work_claim_async(work, &bad, claim_never, NULL, err));
    REFUSED("work", pawl_work_claim_async(NULL, &good, claim_never, NULL, err));
    REFUSED("claim", pawl_work_claim_async(work, NULL, claim_never, NULL, err));
    REFUSED("done", pawl_work_claim_async(work, &good, NULL, NULL, err));
    pawl_work_cancel_claim(NULL, claim_never, NULL);
    pawl_work_cancel_claim(work, NULL, NULL);
    REFUSED("work", pawl_work_complete_and_claim(NULL, &lease, EMPTY, &good, &claimed, err));
    REFUSED("lease", pawl_work_complete_and_claim(work, NULL, EMPTY, &good, &claimed, err));
    REFUSED("output", pawl_work_complete_and_claim(work, &lease, NOWHERE, &good, &claimed, err));
    REFUSED("claim", pawl_work_complete_and_claim(work, &lease, EMPTY, NULL, &claimed, err));
    REFUSED("ret_claimed", pawl_work_complete_and_claim(work, &lease, EMPTY, &good, NULL, err));
    assert_null(claimed);
}

static void test_calls_with_a_token_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    pawl_lease lease = { sizeof(pawl_lease), ID, 1 };
    pawl_lease bad = { sizeof(pawl_lease), NOWHERE, 1 };

    REFUSED("work", pawl_work_heartbeat(NULL, &lease, 0, NULL, err));
    REFUSED("lease", pawl_work_heartbeat(work, NULL, 0, NULL, err));
    REFUSED("work_item_id", pawl_work_heartbeat(work, &bad, 0, NULL, err));
    REFUSED("work", pawl_work_complete(NULL, &lease, EMPTY, err));
    REFUSED("lease", pawl_work_complete(work, NULL, EMPTY, err));
    REFUSED("work_item_id", pawl_work_complete(work, &bad, EMPTY, err));
    REFUSED("output_data", pawl_work_complete(work, &lease, NOWHERE, err));
    REFUSED("work", pawl_work_complete_async(NULL, &lease, EMPTY, answer_never, NULL, err));
    REFUSED("lease", pawl_work_complete_async(work, NULL, EMPTY, answer_never, NULL, err));
    REFUSED("work_item_id", pawl_work_complete_async(work, &bad, EMPTY, answer_never, NULL, err));
    REFUSED("output_data",
            pawl_work_complete_async(work, &lease, NOWHERE, answer_never, NULL, err));
    REFUSED("done", pawl_work_complete_async(work, &lease, EMPTY, NULL, NULL, err));
    REFUSED("work", pawl_work_release_async(NULL, &lease, answer_never, NULL, err));
    REFUSED("lease", pawl_work_release_async(work, NULL, answer_never, NULL, err));
    REFUSED("work_item_id", pawl_work_release_async(work, &bad, answer_never, NULL, err));
    REFUSED("done", pawl_work_release_async(work, &lease, NULL, NULL, err));
    REFUSED("work", pawl_work_fail(NULL, &lease, ID, EMPTY, true, NULL, err));
    REFUSED("lease", pawl_work_fail(work, NULL, ID, EMPTY, true, NULL, err));
    REFUSED("work_item_id", pawl_work_fail(work, &bad, ID, EMPTY, true, NULL, err));
    REFUSED("error_message", pawl_work_fail(work, &lease, NOWHERE, EMPTY, true, NULL, err));
    REFUSED("output_data", pawl_work_fail(work, &lease, ID, NOWHERE, true, NULL, err));
    REFUSED("work", pawl_work_release(NULL, &lease, err));
    REFUSED("lease", pawl_work_release(work, NULL, err));
    REFUSED("work_item_id", pawl_work_release(work, &bad, err));
    REFUSED("work", pawl_work_cancel(NULL, ID, err));
    REFUSED("work_item_id", pawl_work_cancel(work, NOWHERE, err));
}

static void test_the_feed_of_changes_refuses_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    pawl_work_position position = { 0, 0 };
    pawl_change_filter changes = PAWL_CHANGE_FILTER_INIT;
    pawl_work_subscription *followed = NULL;
    const pawl_work_change change = { .size = sizeof(change), .from = "", .to = "pending" };
    char written[PAWL_WORK_POSITION_SIZE];
    char *text = NULL;

    REFUSED("work", pawl_work_changes(NULL, NULL, 1, &position, change_never, NULL, NULL, err));
    REFUSED("position", pawl_work_changes(work, NULL, 1, NULL, change_never, NULL, NULL, err));
    REFUSED("visit", pawl_work_changes(work, NULL, 1, &position, NULL, NULL, NULL, err));
    REFUSED("limit", pawl_work_changes(work, NULL, 0, &position, change_never, NULL, NULL, err));
    REFUSED("limit",
            pawl_work_changes(work, NULL, 10001, &position, change_never, NULL, NULL, err));
    changes.task_id = NOWHERE;
    REFUSED("task_id",
            pawl_work_changes(work, &changes, 1, &position, change_never, NULL, NULL, err));
    changes = (pawl_change_filter)PAWL_CHANGE_FILTER_INIT;
    changes.statuses = 1U << 20;
    REFUSED("statuses",
            pawl_work_changes(work, &changes, 1, &position, change_never, NULL, NULL, err));
    changes.size = 0;
    REFUSED("filter",
            pawl_work_changes(work, &changes, 1, &position, change_never, NULL, NULL, err));
    REFUSED("work", pawl_work_changes_end(NULL, &position, err));
    REFUSED("ret_position", pawl_work_changes_end(work, NULL, err));
    REFUSED("work", pawl_work_changes_subscribe(NULL, subscriber_never, NULL, &followed, err));
    REFUSED("notify", pawl_work_changes_subscribe(work, NULL, NULL, &followed, err));
    REFUSED("ret_subscription",
            pawl_work_changes_subscribe(work, subscriber_never, NULL, NULL, err));
    pawl_work_changes_unsubscribe(followed);
    REFUSED("text", pawl_work_position_parse(NOWHERE, &position, err));
    REFUSED("ret_position", pawl_work_position_parse(ID, NULL, err));
    REFUSED("position", pawl_work_position_format(NULL, written, sizeof(written), err));
    REFUSED("ret_text", pawl_work_position_format(&position, NULL, 0, err));
    REFUSED("ret_text", pawl_work_position_format(&position, written, 3, err)); /* "0-0" and NUL */
    assert_ok(pawl_work_position_format(&position, written, 4, &f->err), &f->err);
    assert_string_equal(written, "0-0");
    REFUSED("change", pawl_work_change_to_json(NULL, &text, NULL, err));
    REFUSED("ret_json", pawl_work_change_to_json(&change, NULL, NULL, err));
    assert_null(text);
}

static void test_looking_refuses_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    pawl_item *item = NULL;
    pawl_recovery *recovery = NULL;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_page no_page = { .size = 0 };
    pawl_page wrong = page_from("\001");
    pawl_page middle = page_from("i");
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    char *text = NULL;

    REFUSED("work", pawl_work_get(NULL, ID, &item, err));
    REFUSED("work_item_id", pawl_work_get(work, NOWHERE, &item, err));
    REFUSED("ret_item", pawl_work_get(work, ID, NULL, err));
    REFUSED("work", pawl_work_list(NULL, NULL, NULL, item_never, NULL, err));
    REFUSED("visit", pawl_work_list(work, NULL, NULL, NULL, NULL, err));
    filter.task_id = NOWHERE;
    REFUSED("task_id", pawl_work_list(work, &filter, NULL, item_never, NULL, err));
    filter = (pawl_item_filter)PAWL_ITEM_FILTER_INIT;
    filter.work_type = NOWHERE;
    REFUSED("work_type", pawl_work_list(work, &filter, NULL, item_never, NULL, err));
    filter = (pawl_item_filter)PAWL_ITEM_FILTER_INIT;
    filter.lease_holder = NOWHERE;
    REFUSED("lease_holder", pawl_work_list(work, &filter, NULL, item_never, NULL, err));
    filter = (pawl_item_filter)PAWL_ITEM_FILTER_INIT;
    REFUSED("page: size", pawl_work_list(work, NULL, &no_page, item_never, NULL, err));
    REFUSED("by_id", pawl_work_list(work, NULL, &middle, item_never, NULL, err));
    filter.by_id = true;
    REFUSED("page: from_id", pawl_work_list(work, &filter, &wrong, item_never, NULL, err));
    filter = (pawl_item_filter)PAWL_ITEM_FILTER_INIT;
    filter.statuses = 1U << 20;
    REFUSED("statuses", pawl_work_list(work, &filter, NULL, item_never, NULL, err));
    REFUSED("work", pawl_work_history(NULL, ID, NULL, event_never, NULL, err));
    REFUSED("work_item_id", pawl_work_history(work, NOWHERE, NULL, event_never, NULL, err));
    REFUSED("visit", pawl_work_history(work, ID, NULL, NULL, NULL, err));
    REFUSED("work", pawl_work_sweep(NULL, NULL, err));
    REFUSED("work", pawl_work_recover(NULL, ID, &recovery, err));
    REFUSED("task_id", pawl_work_recover(work, NOWHERE, &recovery, err));
    REFUSED("ret_recovery", pawl_work_recover(work, ID, NULL, err));
    REFUSED("work", pawl_work_recover_with(NULL, ID, NULL, &recovery, err));
    REFUSED("task_id", pawl_work_recover_with(work, NOWHERE, NULL, &recovery, err));
    REFUSED("ret_recovery", pawl_work_recover_with(work, ID, NULL, NULL, err));
    REFUSED("work", pawl_work_show_json(NULL, ID, &text, NULL, err));
    REFUSED("work_item_id", pawl_work_show_json(work, NOWHERE, &text, NULL, err));
    REFUSED("ret_json", pawl_work_show_json(work, ID, NULL, NULL, err));
    REFUSED("work", pawl_work_get_stats(NULL, &stats, err));
    REFUSED("ret_stats", pawl_work_get_stats(work, NULL, err));
    REFUSED("work", pawl_work_type_stats(NULL, type_never, NULL, err));
    REFUSED("visit", pawl_work_type_stats(work, NULL, NULL, err));
    REFUSED("work", pawl_work_checkpoint_growth(NULL, growth_never, NULL, err));
    REFUSED("visit", pawl_work_checkpoint_growth(work, NULL, NULL, err));
    REFUSED("work", pawl_work_get_metrics(NULL, &text, NULL, err));
    REFUSED("ret_text", pawl_work_get_metrics(work, NULL, NULL, err));
    REFUSED("work", pawl_work_retention(NULL, NULL, NULL, err));
    pawl_retention retention = PAWL_RETENTION_INIT;
    retention.batch = 0;
    REFUSED("batch", pawl_work_retention(work, &retention, NULL, err));
    assert_null(item);
    assert_null(recovery);
    assert_null(text);
}

static void test_checkpoints_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_page no_page = { .size = 0 };
    pawl_work *work = f->work;
    const pawl_checkpoint_type none = (pawl_checkpoint_type)99;
    const pawl_lease nowhere = { sizeof(pawl_lease), NOWHERE, 1 };
    pawl_evidence evidence = { sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_EXISTS, NOWHERE, EMPTY };
    pawl_checkpoint good = { .size = sizeof(pawl_checkpoint),
                             .task_id = ID,
                             .snapshot_data = pawl_view_of("{}") };
    pawl_checkpoint bad = good;
    pawl_checkpoint *got = NULL;
    bool verified;

    REFUSED("work", pawl_checkpoint_add(NULL, &good, NULL, NULL, NULL, 0, err));
    REFUSED("checkpoint", pawl_checkpoint_add(work, NULL, NULL, NULL, NULL, 0, err));
    REFUSED("work_item_id", pawl_checkpoint_add(work, &good, &nowhere, NULL, NULL, 0, err));
    bad.checkpoint_id = NOWHERE;
    REFUSED("checkpoint_id", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.task_id = NOWHERE;
    REFUSED("task_id", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.work_item_id = NOWHERE;
    REFUSED("work_item_id", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.snapshot_data = NOWHERE;
    REFUSED("snapshot_data", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.metadata = NOWHERE;
    REFUSED("metadata", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.type = none;
    REFUSED("type", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad = good;
    bad.evidence_count = 1;
    REFUSED("evidence", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    bad.evidence = &evidence;
    REFUSED("subject", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    evidence = (pawl_evidence){ sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_SHA256, ID, NOWHERE };
    REFUSED("expected", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    evidence = (pawl_evidence){ sizeof(pawl_evidence), (pawl_evidence_kind)9, ID, EMPTY };
    REFUSED("evidence", pawl_checkpoint_add(work, &bad, NULL, NULL, NULL, 0, err));
    REFUSED("work", pawl_checkpoint_get(NULL, ID, EMPTY, 0, &got, err));
    REFUSED("checkpoint_id", pawl_checkpoint_get(work, NOWHERE, EMPTY, 0, &got, err));
    REFUSED("task_id", pawl_checkpoint_get(work, EMPTY, NOWHERE, 1, &got, err));
    REFUSED("task_id", pawl_checkpoint_get(work, ID, NOWHERE, 1, &got, err));
    REFUSED("ret_checkpoint", pawl_checkpoint_get(work, ID, EMPTY, 0, NULL, err));
    REFUSED("work", pawl_checkpoint_latest(NULL, ID, NULL, false, &got, err));
    REFUSED("task_id", pawl_checkpoint_latest(work, NOWHERE, NULL, false, &got, err));
    REFUSED("type", pawl_checkpoint_latest(work, ID, &none, false, &got, err));
    REFUSED("ret_checkpoint", pawl_checkpoint_latest(work, ID, NULL, false, NULL, err));
    REFUSED("work", pawl_checkpoint_list(NULL, ID, EMPTY, NULL, NULL, checkpoint_never, NULL, err));
    REFUSED("task_id",
            pawl_checkpoint_list(work, NOWHERE, EMPTY, NULL, NULL, checkpoint_never, NULL, err));
    REFUSED("work_item_id",
            pawl_checkpoint_list(work, ID, NOWHERE, NULL, NULL, checkpoint_never, NULL, err));
    REFUSED("type",
            pawl_checkpoint_list(work, ID, EMPTY, &none, NULL, checkpoint_never, NULL, err));
    REFUSED("visit", pawl_checkpoint_list(work, ID, EMPTY, NULL, NULL, NULL, NULL, err));
    REFUSED("page: size",
            pawl_checkpoint_list(work, ID, EMPTY, NULL, &no_page, checkpoint_never, NULL, err));
    REFUSED("from", pawl_checkpoint_diff(NULL, &good, diff_never, NULL, err));
    REFUSED("to", pawl_checkpoint_diff(&good, NULL, diff_never, NULL, err));
    REFUSED("visit", pawl_checkpoint_diff(&good, &good, NULL, NULL, err));
    bad = good;
    bad.snapshot_data = NOWHERE;
    REFUSED("snapshot_data", pawl_checkpoint_diff(&bad, &good, diff_never, NULL, err));
    REFUSED("snapshot_data", pawl_checkpoint_diff(&good, &bad, diff_never, NULL, err));
    REFUSED("work", pawl_checkpoint_verify(NULL, ID, &verified, NULL, 0, err));
    REFUSED("checkpoint_id", pawl_checkpoint_verify(work, NOWHERE, &verified, NULL, 0, err));
    REFUSED("ret_verified", pawl_checkpoint_verify(work, ID, NULL, NULL, 0, err));
    assert_null(got);
}

static void test_keys_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    char hash[PAWL_REQUEST_HASH_SIZE];
    char *response = NULL;
    pawl_idem *idem = NULL;
    pawl_idem_request good = PAWL_IDEM_REQUEST_INIT;
    good.key = ID;
    good.request_hash = HASH;
    pawl_idem_request bad = good;

    REFUSED("request", pawl_request_hash(NOWHERE, hash, PAWL_REQUEST_HASH_SIZE, err));
    REFUSED("ret_hash", pawl_request_hash(pawl_view_of("1"), NULL, 0, err));
    REFUSED("work", pawl_idem_begin(NULL, &good, &idem, err));
    REFUSED("request", pawl_idem_begin(work, NULL, &idem, err));
    REFUSED("ret_idem", pawl_idem_begin(work, &good, NULL, err));
    bad.key = NOWHERE;
    REFUSED("key", pawl_idem_begin(work, &bad, &idem, err));
    bad = good;
    bad.request_hash = NOWHERE;
    REFUSED("request_hash", pawl_idem_begin(work, &bad, &idem, err));
    bad = good;
    bad.owner = NOWHERE;
    REFUSED("owner", pawl_idem_begin(work, &bad, &idem, err));
    bad = good;
    bad.task_id = NOWHERE;
    REFUSED("task_id", pawl_idem_begin(work, &bad, &idem, err));
    bad = good;
    bad.work_item_id = NOWHERE;
    REFUSED("work_item_id", pawl_idem_begin(work, &bad, &idem, err));
    bad = good;
    bad.ttl_ms = -1;
    REFUSED("ttl_ms", pawl_idem_begin(work, &bad, &idem, err));
    REFUSED("work", pawl_idem_complete(NULL, ID, 1, EMPTY, err));
    REFUSED("key", pawl_idem_complete(work, NOWHERE, 1, EMPTY, err));
    REFUSED("response", pawl_idem_complete(work, ID, 1, NOWHERE, err));
    REFUSED("work", pawl_idem_fail(NULL, ID, 1, EMPTY, err));
    REFUSED("key", pawl_idem_fail(work, NOWHERE, 1, EMPTY, err));
    REFUSED("response", pawl_idem_fail(work, ID, 1, NOWHERE, err));
    REFUSED("work", pawl_idem_release(NULL, ID, 1, err));
    REFUSED("key", pawl_idem_release(work, NOWHERE, 1, err));
    REFUSED("work", pawl_idem_get(NULL, ID, &idem, err));
    REFUSED("key", pawl_idem_get(work, NOWHERE, &idem, err));
    REFUSED("ret_idem", pawl_idem_get(work, ID, NULL, err));
    REFUSED("work",
            pawl_execute_with_idempotency(NULL, &good, work_never, NULL, &response, NULL, err));
    REFUSED("request",
            pawl_execute_with_idempotency(work, NULL, work_never, NULL, &response, NULL, err));
    REFUSED("fn", pawl_execute_with_idempotency(work, &good, NULL, NULL, &response, NULL, err));
    REFUSED("ret_response",
            pawl_execute_with_idempotency(work, &good, work_never, NULL, NULL, NULL, err));
    assert_null(idem);
    assert_null(response);
}

static void test_names_and_json_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    char *json = NULL;
    pawl_item item = { .size = sizeof(pawl_item), .work_item_id = NOWHERE };
    pawl_task task = { .size = sizeof(pawl_task), .task_id = ID, .title = NOWHERE };
    pawl_evidence evidence = { sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_EXISTS, NOWHERE, EMPTY };
    pawl_checkpoint checkpoint = { .size = sizeof(pawl_checkpoint), .metadata = NOWHERE };
    pawl_recovery recovery = { .size = sizeof(pawl_recovery), .task = NULL };
    pawl_item_status item_status;
    pawl_task_status task_status;
    pawl_checkpoint_type type;

    (void)f;
    REFUSED("item", pawl_item_to_json(NULL, &json, NULL, err));
    REFUSED("ret_json", pawl_item_to_json(&item, NULL, NULL, err));
    REFUSED("work_item_id", pawl_item_to_json(&item, &json, NULL, err));
    REFUSED("task", pawl_task_to_json(NULL, &json, NULL, err));
    REFUSED("ret_json", pawl_task_to_json(&task, NULL, NULL, err));
    REFUSED("title", pawl_task_to_json(&task, &json, NULL, err));
    REFUSED("checkpoint", pawl_checkpoint_to_json(NULL, &json, NULL, err));
    REFUSED("ret_json", pawl_checkpoint_to_json(&checkpoint, NULL, NULL, err));
    REFUSED("metadata", pawl_checkpoint_to_json(&checkpoint, &json, NULL, err));
    checkpoint = (pawl_checkpoint){ .size = sizeof(pawl_checkpoint), .evidence_count = 1 };
    REFUSED("evidence", pawl_checkpoint_to_json(&checkpoint, &json, NULL, err));
    checkpoint.evidence = &evidence;
    REFUSED("subject", pawl_checkpoint_to_json(&checkpoint, &json, NULL, err));
    REFUSED("recovery", pawl_recovery_to_json(NULL, &json, NULL, err));
    REFUSED("ret_json", pawl_recovery_to_json(&recovery, NULL, NULL, err));
    REFUSED("task", pawl_recovery_to_json(&recovery, &json, NULL, err));
    recovery = (pawl_recovery){ .size = sizeof(pawl_recovery),
                                .task = &(pawl_task){ .size = sizeof(pawl_task), .task_id = ID },
                                .item_count = 1 };
    REFUSED("items", pawl_recovery_to_json(&recovery, &json, NULL, err));
    recovery.items = &item;
    REFUSED("work_item_id", pawl_recovery_to_json(&recovery, &json, NULL, err));
    recovery =
        (pawl_recovery){ .size = sizeof(pawl_recovery), .task = recovery.task, .key_count = 1 };
    REFUSED("keys", pawl_recovery_to_json(&recovery, &json, NULL, err));
    assert_null(json);
    REFUSED("name", pawl_item_status_parse(NOWHERE, &item_status, err));
    REFUSED("ret_status", pawl_item_status_parse(pawl_view_of("failed"), NULL, err));
    REFUSED("name", pawl_task_status_parse(NOWHERE, &task_status, err));
    REFUSED("ret_status", pawl_task_status_parse(pawl_view_of("failed"), NULL, err));
    REFUSED("name", pawl_checkpoint_type_parse(NOWHERE, &type, err));
    REFUSED("ret_type", pawl_checkpoint_type_parse(pawl_view_of("iteration_end"), NULL, err));
    assert_string_equal(pawl_item_status_name((pawl_item_status)99), "unknown");
    assert_string_equal(pawl_task_status_name((pawl_task_status)99), "unknown");
    assert_string_equal(pawl_checkpoint_type_name((pawl_checkpoint_type)99), "unknown");
}

static void test_schedules_refuse_bad_arguments(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = f->work;
    const pawl_schedule good = { .size = sizeof(pawl_schedule),
                                 .schedule_id = ID,
                                 .cron = pawl_view_of("@daily"),
                                 .work_type = ID };
    pawl_schedule bad = good;

    REFUSED("work", pawl_schedule_put(NULL, &good, err));
    REFUSED("schedule", pawl_schedule_put(work, NULL, err));
    bad.schedule_id = NOWHERE;
    REFUSED("schedule_id", pawl_schedule_put(work, &bad, err));
    bad = good;
    bad.cron = NOWHERE;
    REFUSED("cron", pawl_schedule_put(work, &bad, err));
    bad = good;
    bad.task_id = NOWHERE;
    REFUSED("task_id", pawl_schedule_put(work, &bad, err));
    bad = good;
    bad.work_type = NOWHERE;
    REFUSED("work_type", pawl_schedule_put(work, &bad, err));
    bad = good;
    bad.input_data = NOWHERE;
    REFUSED("input_data", pawl_schedule_put(work, &bad, err));
    REFUSED("work", pawl_schedule_remove(NULL, ID, err));
    REFUSED("schedule_id", pawl_schedule_remove(work, NOWHERE, err));
    REFUSED("work", pawl_schedule_list(NULL, NULL, schedule_never, NULL, err));
    REFUSED("visit", pawl_schedule_list(work, NULL, NULL, NULL, err));
    REFUSED("work", pawl_schedule_fire(NULL, NULL, err));
}

/* --- calls from inside of callbacks --- */

struct meddler {
    struct work_fixture *f;
    int seen;
};

/* A visitor may write, read and close: the last one does nothing while it is visited. */
static bool meddle_with_items(void *context, const pawl_item *item)
{
    struct meddler *meddler = context;
    struct work_fixture *f = meddler->f;
    pawl_lease lease = lease_of("a", 1);
    char id[24];

    (void)item;
    pawl_work_close(f->work, 0, NULL);
    snprintf(id, sizeof(id), "new-%d", meddler->seen++);
    submit(f, id, "T", 0);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), &f->err);
    assert_string_equal(item_text(f, "a"), "in_progress 0/3 token 1 attempts 1 ''");
    return true;
}

static bool meddle_with_tasks(void *context, const pawl_task *task)
{
    struct meddler *meddler = context;

    (void)task;
    pawl_work_close(meddler->f->work, 0, NULL);
    make_task(meddler->f, "more");
    meddler->seen++;
    return false;
}

static void test_a_visitor_may_call_and_its_close_does_nothing(void **state)
{
    struct work_fixture *f = *state;
    pawl_page page = PAWL_PAGE_INIT;
    struct meddler meddler = { .f = f };

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    page.limit = 1;
    assert_ok(pawl_work_list(f->work, NULL, &page, meddle_with_items, &meddler, &f->err), &f->err);
    assert_int_equal(meddler.seen, 1);
    assert_ok(pawl_task_list(f->work, NULL, NULL, meddle_with_tasks, &meddler, &f->err), &f->err);
    assert_int_equal(meddler.seen, 2);
    assert_string_equal(item_text(f, "new-0"), "pending 0/3 token 0 attempts 0 ''");
}

struct answered {
    struct work_fixture *f;
    sem_t done;
    pawl_detail told[5];
    int again; /* how often the answer sends another call that nobody waits for */
};

static void meddle_in_answer(void *context, const pawl_error *outcome)
{
    struct answered *answered = context;
    pawl_work *work = answered->f->work;
    pawl_lease lease = lease_of("a", 1);
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_item *item = NULL;

    pawl_error inner = PAWL_ERROR_INIT;

    (void)outcome;
    pawl_work_close(work, 0, NULL);
    claim.holder = pawl_view_of("w");
    claim.wait_ms = 60000;
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    answered->told[0] = detail_of(pawl_work_complete(work, &lease, EMPTY, &inner), &inner);
    answered->told[1] = detail_of(pawl_work_claim(work, &claim, &claimed, &inner), &inner);
    answered->told[2] = detail_of(pawl_work_submit(work, &submission, 1, NULL, &inner), &inner);
    answered->told[3] = detail_of(pawl_work_sweep(work, NULL, &inner), &inner);
    answered->told[4] = detail_of(pawl_work_get(work, pawl_view_of("a"), &item, &inner), &inner);
    pawl_item_free(item);
    if (answered->again-- > 0
        && pawl_work_complete_async(work, &lease, EMPTY, meddle_in_answer, answered, NULL)
               == PAWL_OK) {
        return;
    }
    sem_post(&answered->done);
}

static void test_an_answer_may_read_and_is_told_that_it_must_not_wait(void **state)
{
    struct work_fixture *f = *state;
    struct answered answered = { .f = f, .again = 2 };
    struct timespec deadline;
    pawl_lease lease = lease_of("a", 1);

    assert_int_equal(sem_init(&answered.done, 0, 0), 0);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    assert_ok(
        pawl_work_complete_async(f->work, &lease, EMPTY, meddle_in_answer, &answered, &f->err),
        &f->err);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    assert_int_equal(sem_timedwait(&answered.done, &deadline), 0);
    for (size_t i = 0; i + 1 < COUNT_OF(answered.told); i++) {
        assert_int_equal(answered.told[i], PAWL_DETAIL_WRONG_THREAD);
    }
    assert_int_equal(answered.told[COUNT_OF(answered.told) - 1], PAWL_DETAIL_NONE);
    assert_string_equal(item_text(f, "a"), "completed 0/3 token 1 attempts 1 ''");
    sem_destroy(&answered.done);
}

static pawl_status close_at_work(void *context, char **ret_response, pawl_error *reterr)
{
    struct work_fixture *f = context;

    (void)reterr;
    pawl_work_close(f->work, 0, NULL);
    make_task(f, "made");
    *ret_response = strdup("1");
    return PAWL_OK;
}

static void test_work_under_a_key_may_call_and_its_close_does_nothing(void **state)
{
    struct work_fixture *f = *state;
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char *response = NULL;

    request.key = ID;
    request.request_hash = HASH;
    assert_ok(pawl_execute_with_idempotency(
                  f->work, &request, close_at_work, f, &response, NULL, &f->err),
              &f->err);
    assert_string_equal(response, "1");
    free(response);
    assert_string_equal(task_text(f, "made"), "pending w0 p0 r0 c0 f0");
}

/* --- nothing is left out --- */

static void test_every_function_of_the_header_is_called_here(void **state)
{
    (void)state;
    assert_header_is_called("include/pawl/work.h", "tests/unit/test_work_arguments.c", 60);
}

/* --- claims and subscriptions at the end of a store --- */

enum { CLAIMS_MAX = 100000 }; /* far more than fit on a stack, one within the other */

struct claimer {
    pawl_work *work;
    atomic_int begun;
    atomic_int answered;
};

static void claim_again(void *context, pawl_claimed *claimed, const pawl_error *outcome);

static void claim_once_more(struct claimer *claimer)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("h");
    claim.wait_ms = PATIENCE_S * 1000;
    if (atomic_fetch_add(&claimer->begun, 1) >= CLAIMS_MAX
        || pawl_work_claim_async(claimer->work, &claim, claim_again, claimer, NULL) != PAWL_OK) {
        atomic_fetch_sub(&claimer->begun, 1);
    }
}

static void claim_again(void *context, pawl_claimed *claimed, const pawl_error *outcome)
{
    struct claimer *claimer = context;

    assert_int_not_equal(outcome->status, PAWL_OK);
    pawl_claimed_free(claimed);
    claim_once_more(claimer);
    atomic_fetch_add(&claimer->answered, 1);
}

static void test_an_answer_that_claims_again_does_not_keep_the_store_from_closing(void **state)
{
    struct work_fixture *f = *state;
    struct claimer claimer = { .work = NULL };

    assert_ok(pawl_work_open("memory:", NULL, &claimer.work, &f->err), &f->err);
    for (int i = 0; i < 100; i++) {
        claim_once_more(&claimer);
    }
    assert_ok(pawl_work_close(claimer.work, PATIENCE_S * 1000, &f->err), &f->err);
    assert_true(claimer.begun >= 100);
    assert_int_equal(claimer.begun, claimer.answered);
}

struct subscriber {
    pawl_work *work;
    pawl_status closed;
    pawl_error error;
    sem_t told;
};

static void close_when_told(void *context)
{
    struct subscriber *subscriber = context;

    subscriber->closed = pawl_work_close(subscriber->work, 0, &subscriber->error);
    sem_post(&subscriber->told);
}

static void test_a_store_stays_open_for_its_subscribers(void **state)
{
    struct work_fixture *f = *state;
    struct subscriber subscriber = { .closed = PAWL_OK };
    pawl_work_subscription *subscription = NULL;
    pawl_task task = PAWL_TASK_INIT;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    struct timespec deadline;

    assert_int_equal(sem_init(&subscriber.told, 0, 0), 0);
    assert_ok(pawl_work_open("memory:", NULL, &subscriber.work, &f->err), &f->err);
    pawl_work *work = subscriber.work;
    assert_ok(
        pawl_work_changes_subscribe(work, close_when_told, &subscriber, &subscription, &f->err),
        &f->err);
    task.task_id = ID;
    submission.task_id = ID;
    submission.work_type = ID;
    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_submit(work, &submission, 1, NULL, &f->err), &f->err);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    assert_int_equal(sem_timedwait(&subscriber.told, &deadline), 0);
    assert_status(pawl_work_close(work, 0, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "a subscription to changes is open");
    pawl_work_changes_unsubscribe(subscription); /* it does not run any more */
    assert_int_equal(subscriber.closed, PAWL_INVALID);
    assert_int_equal(subscriber.error.detail, PAWL_DETAIL_WRONG_THREAD);
    assert_ok(pawl_work_close(work, 0, &f->err), &f->err);
    sem_destroy(&subscriber.told);
}

static bool write_item(void *context, const pawl_item *item)
{
    char *json = NULL;

    assert_int_equal(item->size, sizeof(*item));
    assert_int_equal(pawl_item_to_json(item, &json, NULL, NULL), PAWL_OK);
    pawl_free(json);
    ++*(int *)context;
    return true;
}

static bool write_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    char *json = NULL;

    assert_int_equal(checkpoint->size, sizeof(*checkpoint));
    assert_int_equal(checkpoint->evidence->size, sizeof(*checkpoint->evidence));
    assert_int_equal(pawl_checkpoint_to_json(checkpoint, &json, NULL, NULL), PAWL_OK);
    pawl_free(json);
    ++*(int *)context;
    return true;
}

static void test_what_a_visitor_gets_has_its_size(void **state)
{
    struct work_fixture *f = *state;
    pawl_task task = PAWL_TASK_INIT;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_evidence evidence = PAWL_EVIDENCE_INIT;
    pawl_checkpoint checkpoint = PAWL_CHECKPOINT_INIT;
    pawl_work *work = NULL;
    int visited = 0;

    assert_ok(pawl_work_open("memory:", NULL, &work, &f->err), &f->err);
    task.task_id = submission.task_id = submission.work_type = checkpoint.task_id = ID;
    evidence.subject = pawl_view_of("/");
    checkpoint.evidence = &evidence;
    checkpoint.evidence_count = 1;
    checkpoint.snapshot_data = pawl_view_of("{}");
    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_submit(work, &submission, 1, NULL, &f->err), &f->err);
    assert_ok(pawl_checkpoint_add(work, &checkpoint, NULL, NULL, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_list(work, NULL, NULL, write_item, &visited, &f->err), &f->err);
    assert_ok(
        pawl_checkpoint_list(work, ID, EMPTY, NULL, NULL, write_checkpoint, &visited, &f->err),
        &f->err);
    assert_int_equal(visited, 2);
    assert_ok(pawl_work_close(work, 0, &f->err), &f->err);
}

static bool any_difference(void *context, const pawl_difference *difference)
{
    (void)context;
    return difference != NULL;
}

/* Of a program that was compiled against a header without the members after `size`: garbage follows. */
static void test_json_of_an_older_struct_reads_no_further_than_its_size(void **state)
{
    static const size_t sizes[] = { 0, 7, sizeof(size_t), SIZE_MAX };
    union {
        size_t size;
        pawl_item item;
        pawl_task task;
        pawl_checkpoint checkpoint;
        pawl_work_change change;
        pawl_recovery recovery;
    } cut;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const pawl_status expected = sizes[i] == sizeof(size_t) ? PAWL_OK : PAWL_INVALID;
        char *texts[4] = { NULL };
        char *none = NULL;

        memset(&cut, 0xa5, sizeof(cut));
        cut.size = sizes[i];
        assert_int_equal(pawl_item_to_json(&cut.item, &texts[0], NULL, NULL), expected);
        assert_int_equal(pawl_task_to_json(&cut.task, &texts[1], NULL, NULL), expected);
        assert_int_equal(pawl_checkpoint_to_json(&cut.checkpoint, &texts[2], NULL, NULL), expected);
        assert_int_equal(pawl_work_change_to_json(&cut.change, &texts[3], NULL, NULL), expected);
        for (size_t k = 0; k < COUNT_OF(texts); k++) {
            assert_int_equal(texts[k] != NULL, expected == PAWL_OK);
            pawl_free(texts[k]);
        }
        /* These need what is not there. */
        REFUSED("", pawl_recovery_to_json(&cut.recovery, &none, NULL, err));
        REFUSED("",
                pawl_checkpoint_diff(&cut.checkpoint, &cut.checkpoint, any_difference, NULL, err));
        assert_null(none);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_opening_and_ending_take_nothing_amiss),
        work_test(test_tasks_refuse_bad_arguments),
        work_test(test_submissions_refuse_bad_arguments),
        work_test(test_claims_refuse_bad_arguments),
        work_test(test_calls_with_a_token_refuse_bad_arguments),
        work_test(test_the_feed_of_changes_refuses_bad_arguments),
        work_test(test_looking_refuses_bad_arguments),
        work_test(test_checkpoints_refuse_bad_arguments),
        work_test(test_json_of_an_older_struct_reads_no_further_than_its_size),
        work_test(test_keys_refuse_bad_arguments),
        work_test(test_names_and_json_refuse_bad_arguments),
        work_test(test_schedules_refuse_bad_arguments),
        work_test(test_a_visitor_may_call_and_its_close_does_nothing),
        work_test(test_an_answer_may_read_and_is_told_that_it_must_not_wait),
        work_test(test_work_under_a_key_may_call_and_its_close_does_nothing),
        work_test(test_an_answer_that_claims_again_does_not_keep_the_store_from_closing),
        work_test(test_a_store_stays_open_for_its_subscribers),
        work_test(test_what_a_visitor_gets_has_its_size),
        work_test(test_every_function_of_the_header_is_called_here),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
