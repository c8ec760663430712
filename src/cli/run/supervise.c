/* The threads beside the commands: heartbeats, Ctrl-C, progress, and leases of dead runs. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "cli/frame/interrupt.h"
#include "cli/run/internal.h"

void pawl__cli_runner_wake(int eventfd)
{
    const uint64_t one = 1;
    ssize_t put = write(eventfd, &one, sizeof(one)); /* fit for a signal handler */

    (void)put; /* it is readable already */
}

static void stop_locked(struct runner *runner) REQUIRES_LOCK(runner->lock)
{
    if (!runner->plan.stopping) {
        runner->quiet_ns = runner_now(runner);
        pawl__cli_runner_wake(runner->stop_fd);
    }
    runner->plan.stopping = true;
    for (size_t i = 0; i < runner->slot_count; i++) {
        struct runner_slot *slot = &runner->slots[i];
        if (slot->state == RUNNER_ASSIGNED || slot->state == RUNNER_RUNNING) {
            slot->stop = true;
            pawl__cli_runner_wake(slot->wake_fd);
        }
    }
    pawl__cond_signal(&runner->changed);
}

void pawl__cli_runner_fail_locked(struct runner *runner,
                                  pawl_status status,
                                  const pawl_error *error)
{
    if (runner->status == PAWL_OK) {
        runner->status = status;
        runner->error = *error;
    }
    stop_locked(runner);
}

void pawl__cli_runner_fail(struct runner *runner, pawl_status status, const pawl_error *error)
{
    pawl__lock(&runner->lock);
    pawl__cli_runner_fail_locked(runner, status, error);
    pawl__unlock(&runner->lock);
}

void pawl__cli_runner_stop(struct runner *runner)
{
    pawl__lock(&runner->lock);
    stop_locked(runner);
    pawl__unlock(&runner->lock);
}

/* --- the heart --- */

/* The slot whose heartbeat is due first; NULL: none runs. */
static struct runner_slot *next_beat_locked(struct runner *runner) REQUIRES_LOCK(runner->lock)
{
    struct runner_slot *next = NULL;

    for (size_t i = 0; i < runner->slot_count; i++) {
        struct runner_slot *slot = &runner->slots[i];
        bool beats =
            (slot->state == RUNNER_ASSIGNED || slot->state == RUNNER_RUNNING) && !slot->lost;
        if (beats && (next == NULL || slot->beat.next_ns < next->beat.next_ns)) {
            next = slot;
        }
    }
    return next;
}

static void beat(struct runner *runner, struct runner_slot *slot) REQUIRES_LOCK(runner->lock)
{
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    struct pawl__buf copy = BUF_OVER(id);
    uint64_t token = slot->item->token;
    uint64_t number = slot->number;

    pawl__buf_add(&copy, slot->item->work_item_id);
    pawl__unlock(&runner->lock);
    const pawl_lease lease = { sizeof(pawl_lease), pawl__buf_view(&copy), token };
    int64_t asked_at_ns = runner_now(runner);
    pawl_status status =
        pawl_work_heartbeat(runner->work, &lease, (uint32_t)runner->options->lease_ms, NULL, NULL);
    pawl__lock(&runner->lock);
    bool same = slot->item != NULL && slot->number == number
                && (slot->state == RUNNER_ASSIGNED || slot->state == RUNNER_RUNNING);
    if (same
        && pawl__cli_beat_answered(&slot->beat, status, asked_at_ns, runner_now(runner))
               == RUNNER_BEAT_LOST) {
        slot->lost = true;
        pawl__cli_runner_wake(slot->wake_fd);
    }
}

void pawl__cli_runner_heart(void *context)
{
    struct runner *runner = context;

    pawl__lock(&runner->lock);
    while (!runner->quit) {
        struct runner_slot *slot = next_beat_locked(runner);
        if (slot == NULL) {
            pawl__cond_wait(&runner->beats, &runner->lock);
        } else if (slot->beat.next_ns > runner_now(runner)) {
            (void)pawl__cond_wait_until(&runner->beats, &runner->lock, slot->beat.next_ns);
        } else {
            beat(runner, slot);
        }
    }
    pawl__unlock(&runner->lock);
}

/* --- the watcher --- */

/* A store that does not answer must not delay the end. Recording outcomes of commands is worth some seconds;
 * without any to record, the run waits less. */
#define TELL_NS (5 * NS_PER_S)
#define IDLE_NS NS_PER_S

static void abandon_if_late(struct runner *runner)
{
    int64_t now_ns = runner_now(runner);

    pawl__lock(&runner->lock);
    if (runner->plan.running > 0) {
        runner->quiet_ns = now_ns; /* they are being ended, with their grace */
    }
    int64_t limit_ns = runner->plan.finishing > 0 ? TELL_NS : IDLE_NS;
    bool late = runner->plan.stopping && now_ns - runner->quiet_ns >= limit_ns;
    if (late && !runner->abandoned) {
        runner->abandoned = true;
        runner->untold = runner->plan.finishing;
        pawl_work_interrupt(runner->work);
        for (size_t i = 0; i < runner->slot_count; i++) {
            pawl__cond_signal(&runner->slots[i].cond);
        }
    }
    pawl__unlock(&runner->lock);
}

static void draw(struct runner *runner)
{
    pawl__lock(&runner->lock);
    uint64_t done = runner->completed + runner->failed;
    uint64_t total = runner->total == 0 ? 0 : MAX(runner->total, done + runner->plan.running);
    pawl__unlock(&runner->lock);
    pawl__cli_output_progress(&runner->output, done, total);
}

void pawl__cli_runner_watcher(void *context)
{
    struct runner *runner = context;
    int wait_ms = runner->output.progress == NULL ? -1 : 200;
    struct pollfd fds[] = {
        { .fd = runner->quit_fd, .events = POLLIN },
        { .fd = runner->signal_fd, .events = POLLIN },
        { .fd = runner->guard.fd }, /* POLLERR alone */
        { .fd = runner->stop_fd, .events = POLLIN },
    };

    for (;;) {
        int ready = poll(fds, COUNT_OF(fds), wait_ms);
        if (ready > 0 && fds[0].revents != 0) {
            return;
        }
        if (ready > 0 && fds[1].revents != 0) {
            fds[1].fd = -1;
            pawl__cli_runner_stop(runner);
        }
        if (ready > 0 && fds[2].revents != 0) {
            pawl_error error = PAWL_ERROR_INIT;
            fds[2].fd = -1;
            pawl__fail(&error,
                       PAWL_FAILED,
                       "the guard, process %d, was ended: nobody would end the commands with us",
                       (int)runner->guard.pid);
            pawl__cli_runner_fail(runner, PAWL_FAILED, &error);
        }
        if (ready > 0 && fds[3].revents != 0) {
            fds[3].fd = -1;
            wait_ms = 100;
        }
        abandon_if_late(runner);
        draw(runner);
    }
}

/* --- leases of dead runs --- */

enum { ORPHANS_MAX = 1000 };

struct orphan {
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    uint64_t token;
    int64_t attempts;
    bool ours; /* claimed by us without our hearing of it */
};

struct orphans {
    struct runner *runner;
    struct orphan *found;
    size_t count;
};

static void free_orphans(struct orphans *orphans)
{
    free(orphans->found);
}

static bool is_in_a_slot(struct runner *runner, const pawl_item *item)
{
    bool found = false;

    pawl__lock(&runner->lock);
    for (size_t i = 0; i < runner->slot_count && !found; i++) {
        const pawl_item *other = runner->slots[i].item;
        found = other != NULL && pawl__view_equal(other->work_item_id, item->work_item_id);
    }
    pawl__unlock(&runner->lock);
    return found;
}

static bool visit_held(void *context, const pawl_item *item)
{
    struct orphans *orphans = context;
    struct runner *runner = orphans->runner;
    struct runner_holder holder;
    bool ours = pawl__view_is(item->lease_holder, runner->holder);
    bool orphan = ours ? !is_in_a_slot(runner, item)
                       : pawl__cli_holder_parse(item->lease_holder, &holder)
                             && pawl__cli_holder_is_gone(&holder, &runner->we);

    if (orphan && item->work_item_id.len < sizeof(orphans->found->id)) {
        struct orphan *found = &orphans->found[orphans->count++];
        *found = (struct orphan){ .token = item->token, .attempts = item->attempts, .ours = ours };
        memcpy(found->id, item->work_item_id.data, item->work_item_id.len);
    }
    return orphans->count < ORPHANS_MAX;
}

#define KILLED_MESSAGE "the process that ran it was killed"

/* It had no retry left: this run counts and reports it as failed, as any other. */
static pawl_status say_failed(struct runner *runner,
                              const struct orphan *orphan,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(SIZE_MAX / 2);
    AUTO(pawl__cli_capture_done) struct runner_capture capture = RUNNER_CAPTURE_INIT;

    pawl__lock(&runner->lock);
    runner->failed++;
    pawl__unlock(&runner->lock);
    LOG_WARNING("item failed",
                LOG_TEXT("work_item_id", orphan->id),
                LOG_INTEGER("attempt", orphan->attempts),
                LOG_TEXT("reason", KILLED_MESSAGE));
    if (!runner->run->json) {
        return PAWL_OK;
    }
    const struct runner_told told = { .work_item_id = pawl_view_of(orphan->id),
                                      .status = "failed",
                                      .attempt = orphan->attempts,
                                      .message = KILLED_MESSAGE };
    pawl__cli_runner_add_json(runner, &told, &line);
    pawl__cli_capture_add(&capture, pawl__buf_view(&line));
    return pawl__cli_output_say(&runner->output, &capture, reterr);
}

/* The token proves that it is still the lease that we saw. An item whose runner died counts a retry, as one whose
 * lease expired: the item may have caused the death. */
static pawl_status reclaim(struct runner *runner, const struct orphan *orphan, pawl_error *reterr)
{
    const pawl_lease lease = { sizeof(pawl_lease), pawl_view_of(orphan->id), orphan->token };
    pawl_item_status item = PAWL_ITEM_PENDING;
    pawl_status status = orphan->ours ? pawl_work_release(runner->work, &lease, reterr)
                                      : pawl_work_fail(runner->work,
                                                       &lease,
                                                       pawl_view_of(KILLED_MESSAGE),
                                                       pawl_view_of(NULL),
                                                       true,
                                                       &item,
                                                       reterr);
    if (status == PAWL_OK && item == PAWL_ITEM_FAILED) {
        return say_failed(runner, orphan, reterr);
    }
    if (status == PAWL_OK) {
        LOG_INFO("took an item back from a run that is gone", LOG_TEXT("work_item_id", orphan->id));
    }
    return status == PAWL_LEASE_LOST || status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

pawl_status pawl__cli_runner_supervise(struct runner *runner, pawl_error *reterr)
{
    AUTO(free_orphans) struct orphans orphans = { .runner = runner };
    int64_t now_ns = runner_now(runner);

    if (now_ns - runner->looked_after_ns < NS_PER_S) {
        return PAWL_OK;
    }
    runner->looked_after_ns = now_ns;
    orphans.found = calloc(ORPHANS_MAX, sizeof(*orphans.found));
    if (orphans.found == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for leases");
    }
    TRY(pawl__cli_runner_list(runner, 1U << PAWL_ITEM_IN_PROGRESS, visit_held, &orphans, reterr));
    for (size_t i = 0; i < orphans.count; i++) {
        TRY(reclaim(runner, &orphans.found[i], reterr));
    }
    return PAWL_OK;
}

int64_t pawl__cli_runner_sweep_at_ns(const struct runner *runner)
{
    return runner->swept_ns + runner->options->sweep_ms * NS_PER_MS;
}

pawl_status pawl__cli_runner_sweep(struct runner *runner, pawl_error *reterr)
{
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
    int64_t now_ns = runner_now(runner);

    if (now_ns < pawl__cli_runner_sweep_at_ns(runner)) {
        return PAWL_OK;
    }
    runner->swept_ns = now_ns;
    return pawl_work_sweep(runner->work, &report, reterr);
}
