#include "play/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

enum { LINES_MAX = 20000 };

struct look {
    struct play *play;
    enum play_store store;
    struct pawl__buf *text;
    pawl_work *work;
    pawl_view id; /* of the item or task at hand, as the store has it */
    struct pawl__buf ids;
    uint64_t events; /* of that item so far */
};

static void add(struct look *look, pawl_view text)
{
    play_add_named(look->play, look->store, look->text, text);
    pawl__buf_add_char(look->text, ' ');
}

static void add_times(struct look *look, const int64_t *times_us, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(look->text, "%" PRId64 " ", times_us[i] / PLAY_TICK_US);
    }
    pawl__buf_add_char(look->text, '\n');
}

/* Ids are kept until the walk has ended: a store is not asked while it shows something. */
static void keep_id(struct look *look, pawl_view id)
{
    pawl__buf_add(&look->ids, id);
    pawl__buf_add_char(&look->ids, '\0');
}

/* --- items --- */

static bool add_item(void *context, const pawl_item *item)
{
    struct look *look = context;
    const int64_t times_us[] = { item->created_at_us,        item->started_at_us,
                                 item->completed_at_us,      item->updated_at_us,
                                 item->lease_acquired_at_us, item->lease_expires_at_us,
                                 item->heartbeat_at_us,      item->due_at_us };

    keep_id(look, item->work_item_id);
    pawl__buf_add_text(look->text, "item ");
    add(look, item->work_item_id);
    add(look, item->task_id);
    add(look, item->work_type);
    pawl__buf_add_format(look->text,
                         "%s p%d %d/%d token %" PRIu64 " tries %" PRId64 " ",
                         pawl_item_status_name(item->status),
                         item->priority,
                         item->retry_count,
                         item->max_retries,
                         item->token,
                         item->attempts);
    add(look, item->lease_holder);
    add(look, item->input_data);
    add(look, item->output_data);
    add(look, item->error_message);
    add_times(look, times_us, COUNT_OF(times_us));
    return true;
}

static bool add_event(void *context, const pawl_item_event *event)
{
    struct look *look = context;

    pawl__buf_add_text(look->text, "history ");
    add(look, look->id);
    pawl__buf_add_format(look->text,
                         "%04" PRIu64 " %s>%s token %" PRIu64 " retry %d ",
                         look->events++,
                         event->from,
                         event->to,
                         event->token,
                         event->retry_count);
    add(look, event->lease_holder);
    add(look, event->message);
    add_times(look, &event->at_us, 1);
    return true;
}

static void add_items(struct look *look)
{
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_error *err = &look->play->err;

    pawl__buf_clear(&look->ids);
    assert_ok(pawl_work_list(look->work, &filter, NULL, add_item, look, err), err);
    for (size_t at = 0; at < look->ids.len; at += look->id.len + 1) {
        look->id = pawl_view_of(look->ids.data + at);
        look->events = 0;
        assert_ok(pawl_work_history(look->work, look->id, NULL, add_event, look, err), err);
    }
}

/* --- tasks and their checkpoints --- */

static bool add_task(void *context, const pawl_task *task)
{
    struct look *look = context;
    const int64_t times_us[] = { task->created_at_us, task->updated_at_us };

    keep_id(look, task->task_id);
    pawl__buf_add_text(look->text, "task ");
    add(look, task->task_id);
    add(look, task->title);
    pawl__buf_add_format(look->text,
                         "%s%s w%" PRIu64 " p%" PRIu64 " r%" PRIu64 " c%" PRIu64 " f%" PRIu64 " ",
                         pawl_task_status_name(task->status),
                         task->set_by_user ? "!" : "",
                         task->waiting,
                         task->pending,
                         task->in_progress,
                         task->completed,
                         task->failed);
    add_times(look, times_us, COUNT_OF(times_us));
    return true;
}

static bool add_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    struct look *look = context;

    pawl__buf_add_text(look->text, "checkpoint ");
    add(look, checkpoint->task_id);
    pawl__buf_add_format(look->text,
                         "%05" PRId64 " %s %s ",
                         checkpoint->sequence_number,
                         pawl_checkpoint_type_name(checkpoint->type),
                         checkpoint->verified ? "holds" : "does not hold");
    /* Those of the watchdog have ids of the store's own. */
    if (checkpoint->type != PAWL_CHECKPOINT_ERROR_BOUNDARY) {
        add(look, checkpoint->checkpoint_id);
    }
    add(look, checkpoint->work_item_id);
    add(look, checkpoint->snapshot_data);
    add_times(look, &checkpoint->created_at_us, 1);
    return true;
}

static void add_tasks(struct look *look)
{
    pawl_error *err = &look->play->err;

    pawl__buf_clear(&look->ids);
    assert_ok(pawl_task_list(look->work, NULL, NULL, add_task, look, err), err);
    for (size_t at = 0; at < look->ids.len; at += look->id.len + 1) {
        look->id = pawl_view_of(look->ids.data + at);
        assert_ok(pawl_checkpoint_list(look->work,
                                       look->id,
                                       (pawl_view){ NULL, 0 },
                                       NULL,
                                       NULL,
                                       add_checkpoint,
                                       look,
                                       err),
                  err);
    }
}

/* --- keys, schedules --- */

static void add_key(struct look *look, int number)
{
    char key[PLAY_NAME];
    pawl_idem *idem = NULL;

    snprintf(key, sizeof(key), "k%d", number);
    pawl_status status = pawl_idem_get(look->work, pawl_view_of(key), &idem, &look->play->err);
    pawl__buf_add_format(look->text, "key %s ", key);
    if (status != PAWL_OK) {
        assert_int_equal(status, PAWL_NOT_FOUND);
        pawl__buf_add_text(look->text, "none\n");
        return;
    }
    const int64_t times_us[] = {
        idem->created_at_us, idem->completed_at_us, idem->lease_expires_at_us, idem->expires_at_us
    };
    pawl__buf_add_format(look->text, "answer %d ", (int)idem->answer);
    add(look, idem->owner);
    add(look, idem->request_hash);
    add(look, idem->response);
    add_times(look, times_us, COUNT_OF(times_us));
    pawl_idem_free(idem);
}

static bool add_schedule(void *context, const pawl_schedule *schedule)
{
    struct look *look = context;
    const int64_t times_us[] = { schedule->next_slot_us, schedule->last_slot_us };

    pawl__buf_add_text(look->text, "schedule ");
    add(look, schedule->schedule_id);
    add(look, schedule->cron);
    add(look, schedule->task_id);
    add_times(look, times_us, COUNT_OF(times_us));
    return true;
}

/* --- all of it --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In an order that does not depend on ids that a store made. */
static void sort_lines(struct pawl__buf *text)
{
    static char *lines[LINES_MAX];
    size_t count = 0;
    char *whole = pawl__buf_steal(text);
    char *rest = NULL;

    assert_non_null(whole);
    for (char *line = strtok_r(whole, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_true(count < LINES_MAX);
        lines[count++] = line;
    }
    qsort(lines, count, sizeof(lines[0]), by_text);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_text(text, lines[i]);
        pawl__buf_add_char(text, '\n');
    }
    free(whole);
}

void play_state(struct play *play, enum play_store store)
{
    struct look look = {
        .play = play,
        .store = store,
        .text = &play->states[store],
        .work = play->work[store],
        .ids = BUF_INIT(1 << 24),
    };

    pawl__buf_clear(look.text);
    add_items(&look);
    add_tasks(&look);
    for (int i = 0; i < PLAY_KEYS; i++) {
        add_key(&look, i);
    }
    assert_ok(pawl_schedule_list(look.work, NULL, add_schedule, &look, &play->err), &play->err);
    pawl__buf_done(&look.ids);
    sort_lines(look.text);
}
