#include "play/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "model/model.h"
#include "work/core/internal.h"

#define PLAY_BOOT "33333333-3333-4333-8333-333333333333"

const char *const play_store_names[PLAY_STORES] = { "model", "sqlite", "postgres" };

static const char *const types[PLAY_TYPES] = { "build", "mail", "scan" };
static const char *const texts[] = { "{\"n\":1}", "[1,2]", "" };
static const pawl_view nothing = { NULL, 0 };

/* Who carries out what. */
struct hand {
    struct play *play;
    enum play_store store;
    pawl_work *work;
    struct pawl__buf *answer;
    pawl_error err;
};

pawl_status play_open(struct play *play, enum play_store store)
{
    char location[TEMPDIR_SIZE + 64];
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;

    work_model_register();
    options.retry_first_ms = 2000;
    options.retry_max_ms = 20000;
    if (store == PLAY_SQLITE) {
        snprintf(location, sizeof(location), "%s/work.sqlite", play->dir);
    } else {
        snprintf(location,
                 sizeof(location),
                 "%s",
                 store == PLAY_MODEL ? WORK_MODEL : pg_server_url(play->postgres.server));
    }
    return pawl__work_open_at(
        location, &options, &play->clock.base, PLAY_BOOT, &play->work[store], &play->err);
}

static pawl_view text_of(const struct play_command *command)
{
    return pawl_view_of(texts[(size_t)command->number % COUNT_OF(texts)]);
}

static pawl_view actual(struct hand *hand, const char *name)
{
    return play_actual(hand->play, hand->store, name);
}

static void add_named(struct hand *hand, pawl_view text)
{
    play_add_named(hand->play, hand->store, hand->answer, text);
}

static bool is_unknown(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT || status == PAWL_IO;
}

/* --- tasks --- */

static pawl_status act_task(struct hand *hand, const struct play_command *command)
{
    pawl_task task = {
        .size = sizeof(pawl_task),
        .task_id = pawl_view_of(command->task),
        .title = pawl_view_of(command->number == 0 ? "a task" : "another title"),
    };

    return pawl_task_create(hand->work, &task, NULL, 0, &hand->err);
}

static pawl_status act_set_status(struct hand *hand, const struct play_command *command)
{
    return pawl_task_set_status(
        hand->work, pawl_view_of(command->task), (pawl_task_status)command->number, &hand->err);
}

static pawl_status act_cancel_task(struct hand *hand, const struct play_command *command)
{
    uint64_t items = 0;
    pawl_status status =
        pawl_task_cancel(hand->work, pawl_view_of(command->task), &items, &hand->err);

    pawl__buf_add_format(hand->answer, "%" PRIu64 " items", items);
    return status;
}

/* --- items --- */

static void fill(struct hand *hand,
                 const struct play_command *command,
                 const struct play_item *item,
                 pawl_view *after,
                 pawl_submission *ret_submission)
{
    uint64_t hash = play_hash(item->id);
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = item->made ? nothing : actual(hand, item->id);
    submission.task_id = pawl_view_of(command->task);
    submission.work_type = pawl_view_of(types[hash % PLAY_TYPES]);
    submission.priority = hash % 5 == 0 ? (int32_t)(hash % 7) - 3 : 0;
    submission.max_retries = (int32_t)(hash % 4) - 1;
    submission.input_data = pawl_view_of(texts[hash % COUNT_OF(texts)]);
    submission.delay_ms = item->delay_ms;
    for (size_t i = 0; i < item->after_count; i++) {
        after[i] = actual(hand, item->after[i]);
    }
    submission.after = after;
    submission.after_count = item->after_count;
    *ret_submission = submission;
}

static pawl_status act_submit(struct hand *hand, const struct play_command *command)
{
    pawl_submission submissions[PLAY_ITEMS_MAX];
    pawl_submit_result results[PLAY_ITEMS_MAX] = { PAWL_SUBMIT_RESULT_INIT };
    pawl_view after[PLAY_ITEMS_MAX][PLAY_AFTER_MAX];

    for (size_t i = 0; i < command->item_count; i++) {
        fill(hand, command, &command->items[i], after[i], &submissions[i]);
    }
    pawl_status status =
        pawl_work_submit(hand->work, submissions, command->item_count, results, &hand->err);
    for (size_t i = 0; i < command->item_count && status == PAWL_OK; i++) {
        if (command->items[i].made) {
            play_alias(hand->play, command->items[i].id, hand->store, results[i].work_item_id);
        }
        add_named(hand, pawl_view_of(results[i].work_item_id));
        pawl__buf_add_text(hand->answer, results[i].duplicate ? " again," : ",");
        if (hand->store == PLAY_MODEL) {
            play_saw_item(hand->play, command->items[i].id, command->task);
        }
    }
    return status;
}

static pawl_claim claim_of(const struct play_command *command, pawl_view *ret_types)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of(command->who);
    claim.task_id = pawl_view_of(command->task);
    claim.work_types = ret_types;
    for (uint32_t i = 0; i < PLAY_TYPES; i++) {
        if ((command->types & (1U << i)) != 0) {
            ret_types[claim.work_type_count++] = pawl_view_of(types[i]);
        }
    }
    claim.count_max = command->count;
    claim.lease_ms = command->lease_ms;
    return claim;
}

static void add_claimed(struct hand *hand, const pawl_claimed *claimed)
{
    for (size_t i = 0; claimed != NULL && i < claimed->count; i++) {
        const pawl_item *item = &claimed->items[i];
        struct pawl__buf name = BUF_INIT(PLAY_NAME);
        play_add_named(hand->play, hand->store, &name, item->work_item_id);
        pawl__buf_add_format(hand->answer,
                             "%.*s token %" PRIu64 " try %" PRId64 " retry %d until %" PRId64 ",",
                             VIEW_ARGS(pawl__buf_view(&name)),
                             item->token,
                             item->attempts,
                             item->retry_count,
                             item->lease_expires_at_us);
        if (hand->store == PLAY_MODEL) {
            play_saw_lease(hand->play, pawl__buf_view(&name), item->token);
        }
        pawl__buf_done(&name);
    }
}

static pawl_status act_claim(struct hand *hand, const struct play_command *command)
{
    pawl_view wanted[PLAY_TYPES];
    pawl_claim claim = claim_of(command, wanted);
    pawl_claimed *claimed = NULL;
    pawl_status status = pawl_work_claim(hand->work, &claim, &claimed, &hand->err);

    add_claimed(hand, claimed);
    pawl_claimed_free(claimed);
    return status;
}

static pawl_lease lease_of(struct hand *hand, const struct play_command *command)
{
    return (pawl_lease){ .size = sizeof(pawl_lease),
                         .work_item_id = actual(hand, command->id),
                         .token = command->token };
}

static pawl_status act_heartbeat(struct hand *hand, const struct play_command *command)
{
    pawl_lease lease = lease_of(hand, command);
    int64_t until_us = 0;
    pawl_status status =
        pawl_work_heartbeat(hand->work, &lease, command->lease_ms, &until_us, &hand->err);

    pawl__buf_add_format(hand->answer, "until %" PRId64, until_us);
    return status;
}

static pawl_status act_complete(struct hand *hand, const struct play_command *command)
{
    pawl_lease lease = lease_of(hand, command);

    return pawl_work_complete(hand->work, &lease, text_of(command), &hand->err);
}

static pawl_status act_complete_and_claim(struct hand *hand, const struct play_command *command)
{
    pawl_lease lease = lease_of(hand, command);
    pawl_view wanted[PLAY_TYPES];
    pawl_claim claim = claim_of(command, wanted);
    pawl_claimed *claimed = NULL;
    pawl_status status = pawl_work_complete_and_claim(
        hand->work, &lease, text_of(command), &claim, &claimed, &hand->err);

    add_claimed(hand, claimed);
    pawl_claimed_free(claimed);
    return status;
}

static pawl_status act_fail(struct hand *hand, const struct play_command *command)
{
    static const char *const messages[] = { "disk full", "no route", "" };
    pawl_lease lease = lease_of(hand, command);
    pawl_item_status now = PAWL_ITEM_PENDING;
    pawl_status status = pawl_work_fail(hand->work,
                                        &lease,
                                        pawl_view_of(messages[command->number]),
                                        text_of(command),
                                        command->yes,
                                        &now,
                                        &hand->err);

    pawl__buf_add_text(hand->answer, status == PAWL_OK ? pawl_item_status_name(now) : "");
    return status;
}

static pawl_status act_release(struct hand *hand, const struct play_command *command)
{
    pawl_lease lease = lease_of(hand, command);

    return pawl_work_release(hand->work, &lease, &hand->err);
}

static pawl_status act_cancel(struct hand *hand, const struct play_command *command)
{
    return pawl_work_cancel(hand->work, actual(hand, command->id), &hand->err);
}

/* --- what looks after them --- */

static pawl_status act_sweep(struct hand *hand, const struct play_command *command)
{
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };
    pawl_status status = pawl_work_sweep(hand->work, &report, &hand->err);

    (void)command;
    pawl__buf_add_format(hand->answer,
                         "expired %" PRIu64 " retried %" PRIu64 " failed %" PRIu64 " due %" PRIu64,
                         report.expired,
                         report.retried,
                         report.failed,
                         report.due);
    return status;
}

static pawl_status act_retention(struct hand *hand, const struct play_command *command)
{
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = { .size = sizeof(pawl_retention_report) };

    retention.item_days = (uint32_t)command->number;
    retention.key_days = 1;
    retention.checkpoints_per_task = 5;
    retention.batch = command->count;
    retention.archive = command->yes;
    pawl_status status = pawl_work_retention(hand->work, &retention, &report, &hand->err);
    pawl__buf_add_format(hand->answer,
                         "items %" PRIu64 " history %" PRIu64 " checkpoints %" PRIu64
                         " archived %" PRIu64 " keys %" PRIu64,
                         report.items,
                         report.history,
                         report.checkpoints,
                         report.archived,
                         report.keys);
    return status;
}

static pawl_status act_checkpoint(struct hand *hand, const struct play_command *command)
{
    uint64_t hash = play_hash(command->key);
    pawl_lease lease = lease_of(hand, command);
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .checkpoint_id = pawl_view_of(command->key),
        .task_id = pawl_view_of(command->task),
        .work_item_id = command->yes ? lease.work_item_id : nothing,
        .type = (pawl_checkpoint_type)command->types,
        .snapshot_data = pawl_view_of(texts[hash % 2]),
    };
    pawl_item *item = NULL;
    int64_t sequence = 0;

    /* A lease names the task as well. */
    pawl_status status =
        command->yes ? pawl_work_get(hand->work, lease.work_item_id, &item, &hand->err) : PAWL_OK;
    if (is_unknown(status)) {
        return status;
    }
    if (item != NULL) {
        checkpoint.task_id = item->task_id;
    }
    status = pawl_checkpoint_add(
        hand->work, &checkpoint, command->yes ? &lease : NULL, &sequence, NULL, 0, &hand->err);
    pawl__buf_add_format(hand->answer, "number %" PRId64, sequence);
    pawl_item_free(item);
    return status;
}

/* --- keys --- */

static void add_begun(struct hand *hand, const struct play_command *command, const pawl_idem *idem)
{
    static const char *const answers[] = { "new",    "in flight",     "done",
                                           "failed", "hash conflict", "in doubt" };
    /* The answer that told of it was lost, and the owner finds itself. */
    bool mine = idem->answer == PAWL_IDEM_IN_FLIGHT && pawl__view_is(idem->owner, command->who);
    pawl_idem_answer answer = mine ? PAWL_IDEM_NEW : idem->answer;

    pawl__buf_add_format(hand->answer,
                         "%s %.*s until %" PRId64 " kept until %" PRId64,
                         answers[answer],
                         VIEW_ARGS(idem->response),
                         idem->lease_expires_at_us,
                         idem->expires_at_us);
    if (hand->store == PLAY_MODEL && answer == PAWL_IDEM_NEW) {
        hand->play->key_tokens[command->key[1] - '0'] = idem->owner_token;
    }
}

static pawl_status act_begin(struct hand *hand, const struct play_command *command)
{
    static const int64_t ttls_ms[] = { 0, 2000, 3600000 };
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    pawl_idem *idem = NULL;

    assert_ok(pawl_request_hash(
                  pawl_view_of(texts[command->number]), hash, PAWL_REQUEST_HASH_SIZE, &hand->err),
              &hand->err);
    request.key = pawl_view_of(command->key);
    request.request_hash = pawl_view_of(hash);
    request.owner = pawl_view_of(command->who);
    request.task_id = pawl_view_of(command->task);
    request.lease_ms = command->lease_ms;
    request.ttl_ms = ttls_ms[command->count];
    request.take_over = command->yes;
    pawl_status status = pawl_idem_begin(hand->work, &request, &idem, &hand->err);
    if (status == PAWL_OK) {
        add_begun(hand, command, idem);
    }
    pawl_idem_free(idem);
    return status;
}

static pawl_status act_key_complete(struct hand *hand, const struct play_command *command)
{
    return pawl_idem_complete(
        hand->work, pawl_view_of(command->key), command->token, text_of(command), &hand->err);
}

static pawl_status act_key_fail(struct hand *hand, const struct play_command *command)
{
    return pawl_idem_fail(
        hand->work, pawl_view_of(command->key), command->token, text_of(command), &hand->err);
}

static pawl_status act_key_release(struct hand *hand, const struct play_command *command)
{
    return pawl_idem_release(hand->work, pawl_view_of(command->key), command->token, &hand->err);
}

/* --- schedules --- */

static pawl_status act_schedule_put(struct hand *hand, const struct play_command *command)
{
    static const char *const crons[] = { "*/5 * * * *", "@hourly", "30 4 * * *" };
    pawl_schedule schedule = {
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl_view_of(command->id),
        .cron = pawl_view_of(crons[command->number]),
        .task_id = pawl_view_of(command->task),
        .work_type = pawl_view_of(types[0]),
        /* One that cannot fire keeps no other from it, and comes behind it: not in the same line. */
        .priority = command->id[1] - '0',
        .max_retries = 1,
    };

    return pawl_schedule_put(hand->work, &schedule, &hand->err);
}

static pawl_status act_schedule_remove(struct hand *hand, const struct play_command *command)
{
    return pawl_schedule_remove(hand->work, pawl_view_of(command->id), &hand->err);
}

static pawl_status act_schedule_fire(struct hand *hand, const struct play_command *command)
{
    uint64_t fired = 0;
    pawl_status status = pawl_schedule_fire(hand->work, &fired, &hand->err);

    (void)command;
    pawl__buf_add_format(hand->answer, "%" PRIu64 " fired", fired);
    return status;
}

static pawl_status act_reopen(struct hand *hand, const struct play_command *command)
{
    (void)command;
    if (hand->store == PLAY_MODEL) {
        return PAWL_OK; /* which forgets */
    }
    pawl_work_close(hand->work, 0, NULL);
    hand->play->work[hand->store] = NULL;
    return play_open(hand->play, hand->store);
}

/* --- all of them --- */

static pawl_status (*const acts[PLAY_KINDS])(struct hand *hand,
                                             const struct play_command *command) = {
    [PLAY_TASK] = act_task,
    [PLAY_SET_STATUS] = act_set_status,
    [PLAY_CANCEL_TASK] = act_cancel_task,
    [PLAY_SUBMIT] = act_submit,
    [PLAY_CLAIM] = act_claim,
    [PLAY_HEARTBEAT] = act_heartbeat,
    [PLAY_COMPLETE] = act_complete,
    [PLAY_COMPLETE_AND_CLAIM] = act_complete_and_claim,
    [PLAY_FAIL] = act_fail,
    [PLAY_RELEASE] = act_release,
    [PLAY_CANCEL] = act_cancel,
    [PLAY_SWEEP] = act_sweep,
    [PLAY_RETENTION] = act_retention,
    [PLAY_CHECKPOINT] = act_checkpoint,
    [PLAY_BEGIN] = act_begin,
    [PLAY_KEY_COMPLETE] = act_key_complete,
    [PLAY_KEY_FAIL] = act_key_fail,
    [PLAY_KEY_RELEASE] = act_key_release,
    [PLAY_SCHEDULE_PUT] = act_schedule_put,
    [PLAY_SCHEDULE_REMOVE] = act_schedule_remove,
    [PLAY_SCHEDULE_FIRE] = act_schedule_fire,
    [PLAY_REOPEN] = act_reopen,
};

pawl_status play_act(struct play *play, enum play_store store, const struct play_command *command)
{
    struct hand hand = {
        .play = play,
        .store = store,
        .work = play->work[store],
        .answer = &play->answers[store],
        .err = PAWL_ERROR_INIT,
    };
    size_t before = hand.answer->len;

    /* The same jitter for all, also when a call is repeated. */
    pawl__work_group_seed(hand.work->group, play->seed ^ (play->step << 20));
    pawl_status status = acts[command->kind](&hand, command);
    if (is_unknown(status)) {
        pawl__buf_cut(hand.answer, before);
        return status;
    }
    pawl__buf_add_format(hand.answer, " -> %s", pawl_status_name(status));
    return status;
}
