#include "cli/run/runner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/random.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "cli/frame/interrupt.h"
#include "cli/run/internal.h"
#include "cli/work/work.h"

/* --- claiming --- */

static void assign_locked(struct runner *runner,
                          struct runner_slot *slot,
                          struct runner_batch *batch,
                          const pawl_item *item,
                          int64_t asked_at_ns) REQUIRES_LOCK(runner->lock)
{
    REQUIRE(slot->state == RUNNER_IDLE);
    slot->batch = batch;
    slot->item = item;
    slot->number = runner->plan.taken++;
    slot->beat = pawl__cli_beat_start(asked_at_ns,
                                      runner->options->lease_ms * NS_PER_MS,
                                      runner->options->heartbeat_ms * NS_PER_MS);
    slot->lost = false;
    slot->stop = runner->plan.stopping; /* claimed while Ctrl-C came: it is released */
    slot->state = RUNNER_ASSIGNED;
    if (slot->stop) {
        pawl__cli_runner_wake(slot->wake_fd);
    }
    runner->plan.running++;
    pawl__cond_signal(&slot->cond);
}

/* There are enough idle slots: the claim asked for that many, and only this thread fills them. */
static void hand_out(struct runner *runner, struct runner_batch *batch, int64_t asked_at_ns)
{
    size_t next = 0;

    pawl__lock(&runner->lock);
    for (size_t i = 0; i < runner->slot_count && next < batch->claimed->count; i++) {
        struct runner_slot *slot = &runner->slots[i];
        if (slot->state == RUNNER_IDLE) {
            assign_locked(runner, slot, batch, &batch->claimed->items[next++], asked_at_ns);
        }
    }
    REQUIRE(next == batch->claimed->count);
    pawl__cond_signal(&runner->beats);
    pawl__unlock(&runner->lock);
}

static pawl_status claim(struct runner *runner, uint64_t want, uint32_t wait_ms, pawl_error *reterr)
{
    pawl_claim request = PAWL_CLAIM_INIT;
    struct runner_batch *batch = calloc(1, sizeof(*batch));
    int64_t asked_at_ns = runner_now(runner);

    if (batch == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
    }
    request.holder = pawl_view_of(runner->holder);
    request.work_types = runner->options->types;
    request.work_type_count = runner->options->type_count;
    request.task_id = runner->options->task_id;
    request.count_max = (uint32_t)want;
    request.lease_ms = (uint32_t)runner->options->lease_ms;
    request.wait_ms = wait_ms;
    pawl_status status = pawl_work_claim(runner->work, &request, &batch->claimed, reterr);
    if (status != PAWL_OK) {
        free(batch);
        return status;
    }
    batch->left = batch->claimed->count;
    hand_out(runner, batch, asked_at_ns);
    return PAWL_OK;
}

/* --- the main loop --- */

enum { LOOK_MS = 250, WAIT_MS = 1000 };

static void wait_for_change(struct runner *runner, int64_t ms)
{
    pawl__lock(&runner->lock);
    (void)pawl__cond_wait_until(
        &runner->changed, &runner->lock, runner_now(runner) + ms * NS_PER_MS);
    pawl__unlock(&runner->lock);
}

/* Nothing may be claimed now: waits until that changes, or a sweep is due. False: it never will. */
static bool wait_for_room(struct runner *runner)
{
    const struct runner_left nothing = { 0 };
    int64_t sweep_at_ns = pawl__cli_runner_sweep_at_ns(runner);

    pawl__lock(&runner->lock);
    while (pawl__cli_plan_want(&runner->plan) == 0
           && pawl__cli_plan_next(&runner->plan, &nothing) == RUNNER_GO_ON
           && (runner->plan.stopping || runner_now(runner) < sweep_at_ns)) {
        (void)pawl__cond_wait_until(
            &runner->changed, &runner->lock, runner->plan.stopping ? INT64_MAX : sweep_at_ns);
    }
    bool goes_on = pawl__cli_plan_want(&runner->plan) > 0
                   || pawl__cli_plan_next(&runner->plan, &nothing) == RUNNER_GO_ON;
    pawl__unlock(&runner->lock);
    return goes_on;
}

static struct runner_plan plan_of(struct runner *runner)
{
    pawl__lock(&runner->lock);
    struct runner_plan plan = runner->plan;
    pawl__unlock(&runner->lock);
    return plan;
}

/* Nothing could be claimed. *ret_end: nothing will. */
static pawl_status on_nothing(struct runner *runner, bool *ret_end, pawl_error *reterr)
{
    struct runner_plan plan = plan_of(runner);
    struct runner_left left = { 0 };
    pawl_status status;

    TRY(pawl__cli_runner_supervise(runner, reterr));
    if (plan.running + plan.finishing == 0) {
        TRY(pawl__cli_runner_left(runner, &left, reterr));
    }
    switch (pawl__cli_plan_next(&plan, &left)) {
    case RUNNER_GO_ON:
        wait_for_change(runner, LOOK_MS);
        return PAWL_OK;
    case RUNNER_WAIT:
        status = claim(runner, pawl__cli_plan_want(&plan), WAIT_MS, reterr);
        return status == PAWL_NOT_FOUND ? PAWL_OK : status;
    case RUNNER_STUCK:
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          left.held_back == 1
                              ? "%llu item is left that waits for items of other types, which "
                                "nobody here runs"
                              : "%llu items are left that wait for items of other types, which "
                                "nobody here runs",
                          (unsigned long long)left.held_back);
    case RUNNER_END:
        break;
    }
    *ret_end = true;
    return PAWL_OK;
}

/* When it returns, every claimed item is finished or released. */
static void run_all(struct runner *runner)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool end = false;
    int64_t answered_ns = runner_now(runner);

    while (!end && wait_for_room(runner)) {
        struct runner_plan plan = plan_of(runner);
        uint64_t want = pawl__cli_plan_want(&plan);
        pawl_status status = plan.stopping ? PAWL_OK : pawl__cli_runner_sweep(runner, &error);
        if (status == PAWL_OK && want > 0) {
            status = claim(runner, want, 0, &error);
        }
        if (status == PAWL_NOT_FOUND) {
            status = on_nothing(runner, &end, &error);
        }
        if (status == PAWL_CANCELLED) {
            pawl__cli_runner_stop(runner); /* the watcher knows why */
        } else if (pawl__status_may_pass(status)
                   && pawl__cli_plan_outlasts(&plan, runner_now(runner) - answered_ns)) {
            LOG_WARNING("the store cannot be asked now", LOG_TEXT("error", error.message));
            wait_for_change(runner, WAIT_MS);
        } else if (status != PAWL_OK) {
            pawl__cli_runner_fail(runner, status, &error);
        } else {
            answered_ns = runner_now(runner);
        }
    }
    pawl__lock(&runner->lock);
    while (runner->plan.running + runner->plan.finishing > 0) {
        pawl__cond_wait(&runner->changed, &runner->lock);
    }
    pawl__unlock(&runner->lock);
}

/* --- starting and ending --- */

static pawl_status open_slots(struct runner *runner, pawl_error *reterr)
{
    runner->slots = calloc(runner->plan.threads, sizeof(*runner->slots));
    if (runner->slots == NULL) {
        return pawl__fail(
            reterr, PAWL_NOMEM, "no memory for %llu jobs", (unsigned long long)runner->plan.jobs);
    }
    while (runner->slot_count < runner->plan.threads) {
        struct runner_slot *slot = &runner->slots[runner->slot_count];
        slot->runner = runner;
        pawl__cond_init(&slot->cond);
        runner->slot_count++;
        slot->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        TRY(slot->wake_fd < 0 ? pawl__fail_errno(
                reterr, errno, "make room for %llu jobs", (unsigned long long)runner->plan.jobs)
                              : pawl__thread_start(
                                  &slot->thread, "pawl-run", pawl__cli_runner_slot, slot, reterr));
    }
    return PAWL_OK;
}

static void close_all(struct runner *runner)
{
    pawl__lock(&runner->lock);
    runner->quit = true;
    for (size_t i = 0; i < runner->slot_count; i++) {
        pawl__cond_signal(&runner->slots[i].cond);
    }
    pawl__cond_broadcast(&runner->beats);
    pawl__unlock(&runner->lock);
    for (size_t i = 0; i < runner->slot_count; i++) {
        pawl__thread_join(&runner->slots[i].thread);
        pawl__cond_done(&runner->slots[i].cond);
        pawl__fs_close(&runner->slots[i].wake_fd);
    }
    if (!pawl__thread_join_until(&runner->heart, runner_now(runner) + NS_PER_S)) {
        pawl_work_interrupt(runner->work); /* a heartbeat is worth no more */
        pawl__thread_join(&runner->heart);
    }
    if (runner->quit_fd >= 0) {
        pawl__cli_runner_wake(runner->quit_fd);
    }
    pawl__thread_join(&runner->watcher);
    free(runner->slots);
    pawl__fs_close(&runner->signal_fd);
    pawl__fs_close(&runner->stop_fd);
    pawl__fs_close(&runner->quit_fd);
}

static pawl_status start(struct runner *runner, pawl_error *reterr)
{
    runner->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    runner->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    runner->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (runner->signal_fd < 0 || runner->stop_fd < 0 || runner->quit_fd < 0) {
        return pawl__fail_errno(reterr, errno, "make an eventfd");
    }
    TRY(open_slots(runner, reterr));
    TRY(pawl__thread_start(&runner->heart, "pawl-heart", pawl__cli_runner_heart, runner, reterr));
    return pawl__thread_start(
        &runner->watcher, "pawl-watcher", pawl__cli_runner_watcher, runner, reterr);
}

static void on_interrupt(void *context)
{
    const struct runner *runner = context;

    pawl__cli_runner_wake(runner->signal_fd);
    pawl_work_cancel_waits(runner->work);
}

static pawl_status name_us(struct runner *runner, pawl_error *reterr)
{
    uint64_t number = 0;

    TRY(pawl__cli_holder_inspect(runner->guard.pid, &runner->we, reterr));
    TRY(pawl__random_bytes(pawl__random_real(), &number, sizeof(number), reterr));
    pawl__cli_holder_text(&runner->we, number, runner->holder);
    return PAWL_OK;
}

/* --- the outcome --- */

static pawl_status judge(struct runner *runner, pawl_error *reterr)
{
    uint64_t failed = runner->failed;

    if (runner->status != PAWL_OK) {
        *reterr = runner->error;
        return runner->status;
    }
    if (runner->abandoned && runner->untold > 0) {
        return pawl__fail(
            reterr,
            PAWL_UNAVAILABLE,
            "the store did not answer: %llu item%s given back when the lease runs out",
            (unsigned long long)runner->untold,
            runner->untold == 1 ? " is" : "s are");
    }
    if (pawl__cli_interrupted() && !runner->plan.stays) { /* with --wait that is how it ends */
        return pawl__fail(
            reterr,
            PAWL_CANCELLED,
            "interrupted: %llu completed, %llu given back; the same command continues "
            "from here",
            (unsigned long long)runner->completed,
            (unsigned long long)runner->released);
    }
    if (runner->options->task_id.len > 0
        && !runner->abandoned) { /* a whole task: earlier runs count */
        TRY(pawl__cli_runner_count(runner, 1U << PAWL_ITEM_FAILED, &failed, reterr));
    }
    if (failed > 0) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          failed == 1
                              ? "%llu item has failed; 'pawl work list --status failed' shows it"
                              : "%llu items have failed; 'pawl work list --status failed' shows "
                                "them",
                          (unsigned long long)failed);
    }
    return PAWL_OK;
}

static pawl_status run_with_progress(struct runner *runner, pawl_error *reterr)
{
    int fd = STDERR_FILENO;
    struct pawl__progress progress;
    struct pawl__progress_options options = {
        .term = pawl__term_detect(STDERR_FILENO, (const char *const *)environ),
        .fd = fd,
        .sink = pawl__sink_fd(&fd),
        .clock = runner->run->clock,
        .label = "run",
    };
    const struct pawl__cli_wakeable woken = { on_interrupt, runner };
    pawl_status status = PAWL_OK;

    if (options.term.is_terminal) {
        status = pawl__cli_runner_count(runner,
                                        1U << PAWL_ITEM_PENDING | 1U << PAWL_ITEM_IN_PROGRESS
                                            | 1U << PAWL_ITEM_WAITING,
                                        &runner->total,
                                        reterr);
        options.total = runner->total;
        progress = pawl__progress_start(&options);
        runner->output.progress = &progress;
    }
    if (status == PAWL_OK) {
        status = start(runner, reterr);
    }
    if (status == PAWL_OK) {
        pawl__cli_interrupt_catch(&woken);
        run_all(runner);
        pawl__cli_interrupt_release();
    }
    close_all(runner);
    if (runner->output.progress != NULL) {
        pawl__progress_done(&progress);
    }
    return status == PAWL_OK ? judge(runner, reterr) : status;
}

/* Before the first claim. May be repeated. */
static pawl_status begin(struct runner *runner, pawl_error *reterr)
{
    if (runner->work == NULL) {
        pawl_status status =
            pawl__cli_work_open(runner->run, WORK_THAT_EXISTS, &runner->work, reterr);
        pawl__cli_interrupt_escalates(NULL); /* the watcher decides when */
        TRY(status);
    }
    TRY(pawl__cli_work_check_task(runner->work, runner->options->task_id, reterr));
    runner->looked_after_ns = runner_now(runner) - 2 * NS_PER_S;
    runner->swept_ns = runner_now(runner) - runner->options->sweep_ms * NS_PER_MS;
    TRY(pawl__cli_runner_supervise(runner, reterr));
    return pawl__cli_runner_sweep(runner, reterr);
}

/* With the locks made: opens the store and runs. */
static pawl_status run_opened(struct runner *runner, pawl_error *reterr)
{
    pawl__cli_output_init(&runner->output, runner->options->keep_order);
    pawl_status status = begin(runner, reterr);
    while (runner->plan.stays && pawl__status_may_pass(status)) {
        LOG_WARNING("the store cannot be asked now", LOG_TEXT("error", reterr->message));
        pawl__sleep_until(runner->run->clock, runner_now(runner) + WAIT_MS * NS_PER_MS);
        status = begin(runner, reterr);
    }
    if (status == PAWL_OK) {
        status = run_with_progress(runner, reterr);
    }
    pawl_work_close(runner->work, 0, NULL);
    pawl__cli_output_done(&runner->output);
    return status;
}

pawl_status pawl__cli_runner_run(struct pawl__cli_run *run,
                                 const struct runner_options *options,
                                 pawl_error *reterr)
{
    AUTO(pawl__cli_guard_done) struct runner_guard guard = { 0 };
    struct runner runner = {
        .run = run,
        .options = options,
        .signal_fd = -1,
        .stop_fd = -1,
        .quit_fd = -1,
        .plan = { .jobs = options->jobs,
                  .threads = 2 * options->jobs,
                  .limit = options->limit,
                  .stays = options->stays },
    };

    if (options->logs != NULL) {
        TRY(pawl__fs_make_dir(options->logs, reterr));
    }
    TRY(pawl__cli_guard_start(&guard, reterr)); /* before any thread */
    runner.guard = guard;
    TRY(name_us(&runner, reterr));
    pawl__lock_cond_init(&runner.lock, &runner.changed);
    pawl__cond_init(&runner.beats);
    pawl_status status = run_opened(&runner, reterr);
    pawl__cond_done(&runner.beats);
    pawl__lock_cond_done(&runner.lock, &runner.changed);
    return status;
}
