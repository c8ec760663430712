#include "play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "work/core/internal.h"

enum { TRIES_MAX = 5, TASKS_MAX = 1000 };

static void cut(struct play *play, enum play_cut kind)
{
    static const char *const points[PLAY_CUTS] = {
        [PLAY_CUT_EXEC_BEFORE] = "postgres.exec.before=error:UNAVAILABLE*1",
        [PLAY_CUT_EXEC_AFTER] = "postgres.exec.after=error:UNAVAILABLE*1",
        [PLAY_CUT_COMMIT_BEFORE] = "postgres.commit.before=error:UNAVAILABLE*1",
        [PLAY_CUT_COMMIT_AFTER] = "postgres.commit.after=error:UNAVAILABLE*1",
    };

    if (kind == PLAY_CUT_IDLE) {
        (void)pg_number(&play->postgres,
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE application_name LIKE 'pawl work%'");
    } else if (kind != PLAY_WHOLE) {
        assert_ok(pawl__failpoint_set(points[kind], &play->err), &play->err);
    }
}

/* --- claims --- */

/* What a holder has, which is what all its tries have leased. */
struct held {
    struct play *play;
    struct pawl__buf *answer;
    uint32_t count;
};

static bool add_held(void *context, const pawl_item *item)
{
    struct held *held = context;

    play_add_named(held->play, PLAY_POSTGRES, held->answer, item->work_item_id);
    pawl__buf_add_format(held->answer,
                         " token %llu try %lld retry %d until %lld,",
                         (unsigned long long)item->token,
                         (long long)item->attempts,
                         item->retry_count,
                         (long long)item->lease_expires_at_us);
    held->count++;
    return true;
}

static bool claims(const struct play_command *command)
{
    return command->kind == PLAY_CLAIM || command->kind == PLAY_COMPLETE_AND_CLAIM;
}

/* The lost tries of a claim have leased before the last one: together they are what one claim for so
 * many gets, and that is what the others are asked for. */
static void tell_all_leases(struct play *play, struct play_command *command)
{
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    struct held held = { .play = play, .answer = &play->answers[PLAY_POSTGRES] };
    bool refused =
        command->kind == PLAY_COMPLETE_AND_CLAIM && strstr(held.answer->data, "-> OK") == NULL;

    if (refused) {
        return;
    }
    filter.lease_holder = pawl_view_of(command->who);
    pawl__buf_clear(held.answer);
    assert_ok(pawl_work_list(play->work[PLAY_POSTGRES], &filter, NULL, add_held, &held, &play->err),
              &play->err);
    pawl__buf_add_text(held.answer,
                       held.count > 0 || command->kind != PLAY_CLAIM ? " -> OK" : " -> NOT_FOUND");
    command->count = MAX(held.count, UINT32_C(1));
}

static pawl_status settle(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    uint64_t settled = 0;

    (void)request;
    return tx->backend->items->settle(tx->backend, &tx->now, TASKS_MAX, &settled, reterr);
}

/* The status of tasks is derived behind a commit. What a cut has left behind is found by the next sweep,
 * which would do more than that: only its part for tasks is done here. */
static void derive_tasks(struct play *play)
{
    struct work_request request = { .kind = WORK_RUN, .run = settle };

    assert_ok(pawl__work_submit_request(play->work[PLAY_POSTGRES], &request, &play->err),
              &play->err);
}

void play_postgres(struct play *play, struct play_command *command)
{
    int tries = 0;

    cut(play, command->cut);
    pawl_status status = PAWL_UNAVAILABLE;
    while (status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT || status == PAWL_IO) {
        assert_true(tries++ < TRIES_MAX);
        status = play_act(play, PLAY_POSTGRES, command);
        assert_ok(pawl__failpoint_set(NULL, &play->err), &play->err);
    }
    play->cuts += command->cut != PLAY_WHOLE;
    play->repeated += tries > 1;
    if (command->cut != PLAY_WHOLE) {
        derive_tasks(play);
        if (claims(command)) {
            tell_all_leases(play, command);
        }
    }
}
