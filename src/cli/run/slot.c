/* A slot runs one command after the other, each for one item. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/decide/backoff.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "base/terminal/display.h"
#include "cli/run/internal.h"
#include "cli/run/job.h"
#include "cli/work/work.h"

/* What is known when a command has ended. */
struct ended {
    struct runner_step step;
    struct runner_exit exit;
    struct runner_capture captures[2];
    struct pawl__buf output; /* for output_data */
    char message[PAWL_ERROR_MESSAGE_SIZE];
    enum runner_verdict verdict;
    pawl_item_status status; /* of the item, as the store has it now */
};

static void ended_done(struct ended *ended)
{
    pawl__cli_capture_done(&ended->captures[0]);
    pawl__cli_capture_done(&ended->captures[1]);
    pawl__buf_done(&ended->output);
}

/* --- while it runs --- */

/* Reads what the heart and the watcher have set. */
static enum runner_action hear(struct runner_slot *slot, struct runner_step *step)
{
    struct runner *runner = slot->runner;
    uint64_t ignored;
    ssize_t got = read(slot->wake_fd, &ignored, sizeof(ignored));
    enum runner_action action = RUNNER_NOTHING;

    (void)got; /* it was readable, or is empty already */
    pawl__lock(&runner->lock);
    bool lost = slot->lost;
    bool stop = slot->stop;
    pawl__unlock(&runner->lock);
    if (lost) {
        action = pawl__cli_step(step, RUNNER_LOST, runner_now(runner));
    }
    if (stop) {
        enum runner_action other = pawl__cli_step(step, RUNNER_STOP, runner_now(runner));
        action = action == RUNNER_NOTHING ? other : action;
    }
    return action;
}

static int wait_ms(const struct runner_step *step, int64_t now_ns)
{
    int64_t wake_ns = pawl__cli_step_wake_ns(step);
    int64_t left_ns = wake_ns - now_ns;

    if (wake_ns == INT64_MAX) {
        return -1;
    }
    return left_ns <= 0 ? 0 : (int)MIN(left_ns / NS_PER_MS + 1, 60000);
}

/* The shell often ends at once when it is asked to, while its children still clean up: they have the grace
 * period, too. The kernel does not report when a process group becomes empty, so it is polled. */
struct linger {
    bool shell_ended;
    int64_t pause_ns;
    int64_t check_at_ns;
};

static bool is_over(struct linger *linger,
                    const struct runner_child *child,
                    const struct runner_step *step,
                    int64_t now_ns)
{
    if (!linger->shell_ended || now_ns < linger->check_at_ns) {
        return false;
    }
    linger->pause_ns = MIN(MAX(2 * linger->pause_ns, 2 * NS_PER_MS), 100 * NS_PER_MS);
    linger->check_at_ns = now_ns + linger->pause_ns;
    return step->reason == RUNNER_RUNS || step->killed || !pawl__cli_group_runs(child->pid);
}

static int linger_ms(const struct linger *linger, int until_ms)
{
    int pause_ms = (int)(linger->pause_ns / NS_PER_MS);

    return !linger->shell_ended || (until_ms >= 0 && until_ms < pause_ms) ? until_ms : pause_ms;
}

static void watch(struct runner_slot *slot, struct runner_child *child, struct ended *ended)
{
    const struct runner *runner = slot->runner;
    struct linger linger = { .shell_ended = false };

    while (!is_over(&linger, child, &ended->step, runner_now(runner))) {
        struct pollfd fds[] = {
            { .fd = linger.shell_ended ? -1 : child->pidfd, .events = POLLIN },
            { .fd = child->streams[0], .events = POLLIN },
            { .fd = child->streams[1], .events = POLLIN },
            { .fd = slot->wake_fd, .events = POLLIN },
        };
        int ready =
            poll(fds, COUNT_OF(fds), linger_ms(&linger, wait_ms(&ended->step, runner_now(runner))));
        for (int i = 0; i < 2 && ready > 0; i++) {
            if (fds[i + 1].revents != 0) {
                pawl__cli_child_read(child, i, &ended->captures[i]);
            }
        }
        if (ready > 0 && fds[0].revents != 0) {
            linger.shell_ended = true;
            continue;
        }
        if (ready > 0 && fds[3].revents != 0) {
            pawl__cli_child_signal(child, hear(slot, &ended->step));
        }
        pawl__cli_child_signal(child,
                               pawl__cli_step(&ended->step, RUNNER_TICK, runner_now(runner)));
    }
}

static pawl_status open_logs(const struct runner_slot *slot,
                             struct ended *ended,
                             pawl_error *reterr)
{
    static const char *const suffixes[] = { "out", "err" };
    const char *dir = slot->runner->options->logs;

    for (int i = 0; i < 2 && dir != NULL; i++) {
        AUTO(pawl__text_free)
        char *name =
            pawl__cli_capture_name(slot->item->work_item_id, slot->item->attempts, suffixes[i]);
        AUTO(pawl__text_free) char *path = name == NULL ? NULL : pawl__fs_join(dir, name);
        TRY(path == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a log's name")
                         : pawl__cli_capture_log(&ended->captures[i], path, reterr));
    }
    return PAWL_OK;
}

static void start_and_watch(struct runner_slot *slot,
                            const struct runner_job *job,
                            struct ended *ended)
{
    const struct runner_command command = {
        .script = job->script.data,
        .environment = job->environment,
        .input = pawl__buf_view(&job->input),
        .guard_fd = slot->runner->guard.fd,
    };
    struct runner_child child;

    ended->exit = (struct runner_exit){ .code = E2BIG };
    if (job->too_long || !pawl__cli_child_start(&command, &child, &ended->exit.code)) {
        return;
    }
    watch(slot, &child, ended);
    pawl__cli_step(&ended->step, RUNNER_EXITED, runner_now(slot->runner));
    ended->exit = pawl__cli_child_end(&child, ended->captures);
}

/* An item whose input makes no command fails for good. A log that cannot be written, or a process that cannot be
 * started, ends the run. */
static void execute(struct runner_slot *slot, struct ended *ended)
{
    struct runner *runner = slot->runner;
    const struct runner_options *options = runner->options;
    int64_t started_ns = runner_now(runner);
    bool may_retry = options->retries < 0 || slot->item->retry_count < options->retries;
    AUTO(pawl__cli_job_done) struct runner_job job = { .environment = NULL };
    pawl_error error = PAWL_ERROR_INIT;

    ended->step = pawl__cli_step_start(started_ns, options->timeout_ns, options->grace_ns);
    pawl_status status =
        pawl__cli_job_make(&job, options->command, options->mark, slot->item, &error);
    bool bad_item = status == PAWL_INVALID;
    if (status == PAWL_OK) {
        status = open_logs(slot, ended, &error);
    }
    if (status != PAWL_OK) {
        ended->verdict = bad_item ? RUNNER_FAIL : RUNNER_RELEASE;
        snprintf(ended->message, sizeof(ended->message), "%s", error.message);
    } else {
        start_and_watch(slot, &job, ended);
        ended->verdict = pawl__cli_step_verdict(&ended->step, &ended->exit, may_retry);
        pawl__cli_step_message(&ended->step, &ended->exit, ended->message);
        if (ended->exit.started) {
            pawl__cli_job_output(
                &ended->output, &ended->exit, ended->captures, runner_now(runner) - started_ns);
        }
        if (ended->verdict == RUNNER_RELEASE && !ended->exit.started) {
            status = pawl__fail(&error, PAWL_FAILED, "%s", ended->message);
        }
    }
    pawl__lock(&runner->lock);
    if (status != PAWL_OK && !bad_item) {
        pawl__cli_runner_fail_locked(runner, status, &error);
    }
    if (slot->lost) { /* after the command had ended */
        ended->verdict = RUNNER_FORGET;
    }
    pawl__unlock(&runner->lock);
}

/* --- telling the store --- */

static pawl_status tell(struct runner_slot *slot, struct ended *ended, pawl_error *reterr)
{
    pawl_work *work = slot->runner->work;
    const pawl_lease lease = { sizeof(pawl_lease), slot->item->work_item_id, slot->item->token };
    pawl_view output = pawl__buf_view(&ended->output);

    switch (ended->verdict) {
    case RUNNER_COMPLETE:
        ended->status = PAWL_ITEM_COMPLETED;
        return pawl_work_complete(work, &lease, output, reterr);
    case RUNNER_RETRY:
    case RUNNER_FAIL:
        return pawl_work_fail(work,
                              &lease,
                              pawl_view_of(ended->message),
                              output,
                              ended->verdict == RUNNER_RETRY,
                              &ended->status,
                              reterr);
    case RUNNER_RELEASE:
        ended->status = PAWL_ITEM_PENDING;
        return pawl_work_release(work, &lease, reterr);
    case RUNNER_FORGET:
        return PAWL_LEASE_LOST;
    }
    return PAWL_OK;
}

/* False: the run has abandoned the store. */
static bool rest_until(struct runner_slot *slot, int64_t until_ns)
{
    struct runner *runner = slot->runner;
    bool early = true;

    pawl__lock(&runner->lock);
    while (early && !runner->abandoned) {
        early = pawl__cond_wait_until(&slot->cond, &runner->lock, until_ns);
    }
    bool goes_on = !runner->abandoned;
    pawl__unlock(&runner->lock);
    return goes_on;
}

/* Retries until the lease must have expired: a command may have run for hours. */
static pawl_status tell_until(struct runner_slot *slot, struct ended *ended, pawl_error *reterr)
{
    static const struct pawl__backoff backoff = { .first_ns = 50 * NS_PER_MS,
                                                  .max_ns = 5 * NS_PER_S };
    pawl_status status = tell(slot, ended, reterr);

    for (uint64_t attempt = 1; pawl__status_may_pass(status); attempt++) {
        int64_t until_ns = runner_now(slot->runner) + pawl__backoff_ceiling_ns(&backoff, attempt);
        if (until_ns >= slot->beat.until_ns || !rest_until(slot, until_ns)) {
            break;
        }
        status = tell(slot, ended, reterr);
    }
    return status;
}

static void count_locked(struct runner *runner, const struct ended *ended)
    REQUIRES_LOCK(runner->lock)
{
    uint64_t *counts[] = {
        [PAWL_ITEM_PENDING] = &runner->released,    [PAWL_ITEM_IN_PROGRESS] = &runner->lost,
        [PAWL_ITEM_COMPLETED] = &runner->completed, [PAWL_ITEM_FAILED] = &runner->failed,
        [PAWL_ITEM_EXPIRED] = &runner->lost,        [PAWL_ITEM_WAITING] = &runner->retried
    };

    (*counts[ended->verdict == RUNNER_FORGET ? PAWL_ITEM_IN_PROGRESS : ended->status])++;
}

static void finish(struct runner_slot *slot, struct ended *ended)
{
    struct runner *runner = slot->runner;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = tell_until(slot, ended, &error);

    pawl__lock(&runner->lock);
    if (status == PAWL_LEASE_LOST || status == PAWL_NOT_FOUND) {
        ended->verdict = RUNNER_FORGET;
        status = PAWL_OK;
    }
    if (status == PAWL_OK) {
        count_locked(runner, ended);
    } else if (runner->abandoned) {
        ended->verdict = RUNNER_FORGET; /* the end of the run says so */
    } else {
        pawl__cli_runner_fail_locked(runner, status, &error);
    }
    pawl__unlock(&runner->lock);
}

/* --- saying what happened --- */

/* Cancelled, or expired while this machine stood still. */
static const char *lost_how(const struct ended *ended)
{
    return ended->step.reason == RUNNER_WAS_LOST
               ? "lease lost; the command was ended"
               : "lease lost; the command had ended by itself, its result is not stored";
}

static void log_end(const struct runner_slot *slot, const struct ended *ended)
{
    const char *what = ended->verdict == RUNNER_FORGET     ? lost_how(ended)
                       : ended->status == PAWL_ITEM_FAILED ? "item failed"
                                                           : "item failed, to be tried again";

    if (ended->verdict == RUNNER_COMPLETE || ended->verdict == RUNNER_RELEASE) {
        return;
    }
    LOG_WARNING(what,
                LOG_VIEW("work_item_id", slot->item->work_item_id),
                LOG_INTEGER("attempt", slot->item->attempts),
                LOG_TEXT("reason", ended->message));
}

void pawl__cli_runner_add_json(const struct runner *runner,
                               const struct runner_told *told,
                               struct pawl__buf *line)
{
    AUTO(pawl__buf_done) struct pawl__buf raw = BUF_INIT(SIZE_MAX / 2);
    struct pawl__object object = pawl__object_start(&raw);

    pawl__object_text(&object, "work_item_id", told->work_item_id);
    pawl__object_text(&object, "status", pawl_view_of(told->status));
    pawl__object_integer(&object, "attempt", told->attempt);
    pawl__object_text(&object, "error_message", pawl_view_of(told->message));
    pawl__object_json(&object, "output", told->output);
    pawl__object_end(&object);
    pawl__cli_out_add_value(runner->run, line, pawl__buf_view(&raw));
    line->broken = line->broken || raw.broken;
    pawl__buf_add_char(line, '\n');
}

static void add_json(const struct runner_slot *slot,
                     const struct ended *ended,
                     struct runner_capture *capture)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(SIZE_MAX / 2);
    bool lost = ended->verdict == RUNNER_FORGET;
    const struct runner_told told = {
        .work_item_id = slot->item->work_item_id,
        .status = lost ? "lost" : pawl_item_status_name(ended->status),
        .attempt = slot->item->attempts,
        .message = ended->verdict == RUNNER_COMPLETE ? "" : ended->message,
        .output = pawl__buf_view(&ended->output),
    };

    pawl__cli_runner_add_json(slot->runner, &told, &line);
    pawl__cli_capture_add(capture, pawl__buf_view(&line));
}

static void print(struct runner_slot *slot, struct ended *ended)
{
    struct runner *runner = slot->runner;
    AUTO(pawl__cli_capture_done) struct runner_capture line = RUNNER_CAPTURE_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    bool for_good = ended->verdict != RUNNER_FORGET
                    && (ended->status == PAWL_ITEM_COMPLETED || ended->status == PAWL_ITEM_FAILED);
    const struct runner_capture *out = for_good ? &ended->captures[0] : NULL;
    const struct runner_capture *err = &ended->captures[1];

    if (runner->run->json) {
        add_json(slot, ended, &line);
        out = &line;
        err = NULL;
    }
    pawl_status status = pawl__cli_output_add(&runner->output, slot->number, out, err, &error);
    log_end(slot, ended);
    if (status != PAWL_OK) {
        pawl__cli_runner_fail(runner, status, &error);
    }
}

/* --- the thread --- */

static void give_up_item_locked(struct runner *runner, struct runner_slot *slot)
    REQUIRES_LOCK(runner->lock)
{
    REQUIRE(slot->state == RUNNER_FINISHING && slot->batch->left > 0);
    if (--slot->batch->left == 0) {
        pawl_claimed_free(slot->batch->claimed);
        free(slot->batch);
    }
    slot->batch = NULL;
    slot->item = NULL;
    slot->state = RUNNER_IDLE;
    runner->plan.finishing--;
    pawl__cond_signal(&runner->changed);
}

static void run_item(struct runner_slot *slot)
{
    struct runner *runner = slot->runner;
    AUTO(ended_done)
    struct ended ended = { .captures = { RUNNER_CAPTURE_INIT, RUNNER_CAPTURE_INIT },
                           .output = BUF_INIT(SIZE_MAX / 2),
                           .status = PAWL_ITEM_IN_PROGRESS };

    execute(slot, &ended);
    pawl__lock(&runner->lock);
    REQUIRE(slot->state == RUNNER_RUNNING);
    slot->state = RUNNER_FINISHING;
    runner->plan.running--;
    runner->plan.finishing++;
    pawl__cond_signal(&runner->changed); /* the next item may be claimed meanwhile */
    pawl__unlock(&runner->lock);
    finish(slot, &ended);
    print(slot, &ended);
    pawl__lock(&runner->lock);
    give_up_item_locked(runner, slot);
    pawl__unlock(&runner->lock);
}

void pawl__cli_runner_slot(void *context)
{
    struct runner_slot *slot = context;
    struct runner *runner = slot->runner;

    pawl__lock(&runner->lock);
    for (;;) {
        while (slot->state != RUNNER_ASSIGNED && !runner->quit) {
            pawl__cond_wait(&slot->cond, &runner->lock);
        }
        if (slot->state != RUNNER_ASSIGNED) {
            break;
        }
        slot->state = RUNNER_RUNNING;
        pawl__unlock(&runner->lock);
        run_item(slot);
        pawl__lock(&runner->lock);
    }
    pawl__unlock(&runner->lock);
}
