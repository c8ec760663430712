/* The second thread of a pipeline takes in while the first one applies. They meet in struct delivery_meeting. */
#include "base/core/error.h"
#include "delivery/service/internal.h"
#include "delivery/sources/file.h"

enum {
    IDLE_NS = NS_PER_S,  /* how long an empty fetch waits */
    PAUSE_NS = NS_PER_S, /* after a source that is away, and while the WAL is full */
    BATCHES_AHEAD = 4,   /* of apply, in transactions: what it reads next is then still in memory */
};

static void wake(void *context)
{
    struct delivery_meeting *meeting = context;

    pawl__lock(&meeting->lock);
    meeting->is_called = true;
    pawl__cond_broadcast(&meeting->changed);
    pawl__unlock(&meeting->lock);
}

void pawl__delivery_call(struct delivery_runner *runner)
{
    wake(&runner->meeting);
}

static bool is_file(const struct delivery_runner *runner)
{
    return runner->declared.kind == DELIVERY_KIND_FILE
           || runner->declared.kind == DELIVERY_KIND_STDIN;
}

/* --- waiting for apply --- */

static uint64_t room_ahead(const struct delivery_runner *runner)
{
    return (uint64_t)BATCHES_AHEAD * runner->pipeline.settings.apply_entries_max;
}

/* False: cancelled meanwhile. A sink that is away stops nobody: the log takes what the source has. */
static bool await_apply(struct delivery_runner *runner)
{
    struct delivery_meeting *meeting = &runner->meeting;

    pawl__lock(&meeting->lock);
    while (!pawl__cancelled(&runner->stop_intake) && !meeting->sink_is_away
           && meeting->appended > meeting->applied + room_ahead(runner)) {
        pawl__cond_wait(&meeting->changed, &meeting->lock);
    }
    pawl__unlock(&meeting->lock);
    return !pawl__cancelled(&runner->stop_intake);
}

/* --- telling apply --- */

static delivery_lsn last_appended(struct delivery_runner *runner)
{
    struct delivery_shared *shared = &runner->pipeline.shared;

    pawl__lock(&shared->lock);
    delivery_lsn last = shared->next_lsn - 1;
    pawl__unlock(&shared->lock);
    return last;
}

static void tell_taken(struct delivery_runner *runner, size_t taken)
{
    struct delivery_meeting *meeting = &runner->meeting;
    delivery_lsn last = last_appended(runner);

    pawl__lock(&meeting->lock);
    if (meeting->appended <= meeting->applied && last > meeting->applied) {
        meeting->waiting_since_ns = pawl__monotonic_ns(runner->delivery->clock);
    }
    meeting->appended = last;
    meeting->taken += taken;
    meeting->is_idle = false;
    meeting->error = (pawl_error)PAWL_ERROR_INIT;
    pawl__cond_broadcast(&meeting->changed);
    pawl__unlock(&meeting->lock);
}

/* Everything that the source has is in the log. A broker is believed only after a fetch that waited: one that does not
 * may come back empty while messages are on their way. */
static void tell_idle(struct delivery_runner *runner, uint64_t drains_asked)
{
    struct delivery_meeting *meeting = &runner->meeting;
    bool has_waited =
        runner->declared.kind != DELIVERY_KIND_NATS || runner->pipeline.settings.fetch.wait_ns > 0;
    size_t rest = 0;
    bool is_at_end =
        !is_file(runner) || pawl__delivery_file_is_at_end(runner->opened.source, &rest);

    pawl__lock(&meeting->lock);
    meeting->is_idle = has_waited && is_at_end;
    meeting->idle_for = drains_asked;
    meeting->rest_bytes = rest;
    pawl__cond_broadcast(&meeting->changed);
    pawl__unlock(&meeting->lock);
}

static void tell_error(struct delivery_runner *runner, const pawl_error *error)
{
    struct delivery_meeting *meeting = &runner->meeting;

    pawl__lock(&meeting->lock);
    meeting->error = *error;
    meeting->is_idle = false;
    pawl__cond_broadcast(&meeting->changed);
    pawl__unlock(&meeting->lock);
}

static void tell_ended(struct delivery_runner *runner, pawl_status status, const pawl_error *error)
{
    struct delivery_meeting *meeting = &runner->meeting;

    pawl__lock(&meeting->lock);
    meeting->ended = status;
    meeting->ended_why = *error;
    pawl__cond_broadcast(&meeting->changed);
    pawl__unlock(&meeting->lock);
}

/* --- the loop --- */

/* A file is compared when it is opened. Of standard input only its end shows that there is less of it than before. */
static pawl_status check_input(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_source *source = runner->opened.source;
    struct delivery_pipeline *pipeline = &runner->pipeline;
    struct delivery_stream_state state = { .last = 0 };
    size_t rest = 0;

    if (runner->declared.kind != DELIVERY_KIND_STDIN
        || !pawl__delivery_file_is_at_end(source, &rest)) {
        return PAWL_OK;
    }
    pawl__lock(&pipeline->turn);
    uint64_t delivered = pipeline->cursor.stream.sequence;
    pawl__unlock(&pipeline->turn);
    TRY(source->ops->state(source, 0, &state, reterr));
    return state.last >= delivered
               ? PAWL_OK
               : pawl__fail_advised(reterr,
                                    PAWL_CONFLICT,
                                    "standard input ended after line %llu, and %llu were delivered "
                                    "before; to deliver other lines, name another --generation",
                                    (unsigned long long)state.last,
                                    (unsigned long long)delivered);
}

/* *ret_failed: it passes by itself. */
static pawl_status take_in(struct delivery_runner *runner,
                           pawl_error *ret_passes,
                           pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &runner->pipeline;
    uint64_t drains_asked = pawl__delivery_drains_asked(runner);
    pawl_error error = PAWL_ERROR_INIT;
    size_t moved = 0;
    pawl_status status = pawl__delivery_intake(pipeline, &moved, &error);

    if (status != PAWL_OK) { /* who waits for an answer does not wait for better times */
        pawl__delivery_inbox_refuse(&runner->inbox, &error);
        *ret_passes = error;
        return status == PAWL_CANCELLED || pawl__delivery_must_reopen(pipeline)
                       || !pawl__delivery_may_pass(status)
                   ? pawl__fail_with(reterr, status, &error)
                   : PAWL_OK;
    }
    if (moved > 0) {
        tell_taken(runner, moved);
        pipeline->settings.fetch.wait_ns = 0;
        return PAWL_OK;
    }
    TRY(check_input(runner, reterr));
    tell_idle(runner, drains_asked);
    pipeline->settings.fetch.wait_ns = IDLE_NS;
    return PAWL_OK;
}

static void run(void *context)
{
    struct delivery_runner *runner = context;
    pawl_status status = PAWL_OK;
    pawl_error error = PAWL_ERROR_INIT;

    while (status == PAWL_OK && await_apply(runner)) {
        pawl_error passes = PAWL_ERROR_INIT;
        status = take_in(runner, &passes, &error);
        if (status == PAWL_OK && passes.status != PAWL_OK) {
            tell_error(runner, &passes);
            pawl__cancel_wait_until(&runner->stop_intake,
                                    pawl__monotonic_ns(runner->delivery->clock) + PAUSE_NS);
        }
    }
    tell_ended(runner, status, &error);
}

pawl_status pawl__delivery_intake_start(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_meeting *meeting = &runner->meeting;

    pawl__lock(&meeting->lock);
    meeting->appended = last_appended(runner);
    meeting->applied = runner->pipeline.cursor.applied;
    meeting->waiting_since_ns = 0;
    meeting->taken = 0;
    meeting->is_idle = false;
    meeting->sink_is_away = false;
    meeting->error = (pawl_error)PAWL_ERROR_INIT;
    meeting->ended = PAWL_OK;
    meeting->ended_why = (pawl_error)PAWL_ERROR_INIT;
    pawl__unlock(&meeting->lock);
    runner->pipeline.settings.fetch.wait_ns = 0;
    pawl__cancel_link(&runner->stop_intake, &meeting->link, wake, meeting);
    pawl_status status =
        pawl__thread_start(&runner->intake_thread, "pawl-intake", run, runner, reterr);
    if (status != PAWL_OK) {
        pawl__cancel_unlink(&runner->stop_intake, &meeting->link);
    }
    return status;
}

void pawl__delivery_intake_stop(struct delivery_runner *runner)
{
    pawl__cancel_now(&runner->stop_intake);
    pawl__thread_join(&runner->intake_thread);
    pawl__cancel_unlink(&runner->stop_intake, &runner->meeting.link);
}
