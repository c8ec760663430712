/* The thread of one pipeline: opens it, applies what intake (take_in.c) took in, and opens it again after what passes by
 * itself.
 *
 *     open, start intake ──► wait for a transaction's worth ──► apply ──► retry, maintain ──► report ──┐
 *       ▲                        ▲                                                                     │
 *       │                        └─────────────────────────────────────────────────────────────────────┤
 *       └── broken, or could not be opened: after a pause                                              │
 *                                                                  cancelled: stop intake, checkpoint, close */
#include "base/core/error.h"
#include "base/decide/backoff.h"
#include "delivery/service/internal.h"

enum {
    LINGER_NS = 100 * NS_PER_MS, /* for a transaction to fill up: DuckDB wants large ones */
    IDLE_NS = NS_PER_S,          /* between two looks at what is due, when nothing comes */
    PAUSE_NS = 200 * NS_PER_MS,  /* after a sink that is away */
};
static const struct pawl__backoff reopening = { NS_PER_S, 60 * NS_PER_S };

/* --- what others see --- */

static void note(struct delivery_runner *runner, pawl_pipeline_state state, const pawl_error *error)
{
    struct pawl_delivery *delivery = runner->delivery;

    pawl__lock(&delivery->lock);
    runner->state = state;
    runner->error = error == NULL ? (pawl_error)PAWL_ERROR_INIT : *error;
    pawl__cond_broadcast(&delivery->changed);
    pawl__unlock(&delivery->lock);
}

uint64_t pawl__delivery_drains_asked(struct delivery_runner *runner)
{
    pawl__lock(&runner->delivery->lock);
    uint64_t asked = runner->drains_asked;
    pawl__unlock(&runner->delivery->lock);
    return asked;
}

static struct delivery_report report_of(struct delivery_runner *runner)
{
    struct delivery_pipeline *pipeline = &runner->pipeline;

    pawl__lock(&pipeline->shared.lock);
    struct delivery_totals totals = pipeline->shared.totals;
    pawl__unlock(&pipeline->shared.lock);
    return (struct delivery_report){
        .counters = pawl__delivery_pipeline_counters(pipeline),
        .totals = totals,
        .recovery = pipeline->recovery,
        .pairing = pawl__delivery_pairing_name(pipeline->pairing),
        .sequence = pipeline->cursor.stream.sequence,
        .applied = pipeline->cursor.applied,
        .breaker_is_open = pawl__delivery_breaker_is_open(&pipeline->breaker),
        .checkpointed_ns = pipeline->checkpointed_ns,
    };
}

struct round {
    size_t applied; /* entries */
    pawl_error error;
    struct {
        bool is_idle;
        uint64_t idle_for;
        size_t rest_bytes;
        uint64_t taken;
        pawl_error error;
    } intake; /* what it had told before the round began */
};

/* Also that what the source lost is on record. */
static bool is_settled(struct delivery_pipeline *pipeline, const struct delivery_report *report)
{
    pawl__lock(&pipeline->shared.lock);
    bool has_losses = pipeline->shared.losses.count > 0;
    pawl__unlock(&pipeline->shared.lock);
    return !has_losses && pawl__delivery_pending(&report->counters) == 0;
}

static void publish(struct delivery_runner *runner, const struct round *round)
{
    struct pawl_delivery *delivery = runner->delivery;
    struct delivery_report report = report_of(runner);
    bool drained = round->intake.is_idle && is_settled(&runner->pipeline, &report);
    const pawl_error *error = round->error.status != PAWL_OK ? &round->error : &round->intake.error;

    pawl__lock(&delivery->lock);
    runner->report = report;
    if (error->status != PAWL_OK || round->intake.taken + round->applied > 0) {
        runner->error = *error;
    }
    if (drained) {
        runner->drained_for = round->intake.idle_for;
        runner->rest_bytes = round->intake.rest_bytes;
    }
    pawl__cond_broadcast(&delivery->changed);
    pawl__unlock(&delivery->lock);
}

/* --- a round --- */

bool pawl__delivery_may_pass(pawl_status status)
{
    return pawl__status_may_pass(status) || status == PAWL_NO_SPACE || status == PAWL_IO
           || status == PAWL_NOMEM;
}

/* PAWL_OK: continue, `error` is noted. */
static pawl_status weigh(struct delivery_runner *runner,
                         struct round *round,
                         pawl_status status,
                         const pawl_error *error,
                         pawl_error *reterr)
{
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (status == PAWL_CANCELLED || pawl__delivery_must_reopen(&runner->pipeline)
        || !pawl__delivery_may_pass(status)) {
        return pawl__fail_with(reterr, status, error);
    }
    round->error = *error;
    return PAWL_OK;
}

/* A sink that is away opens the breaker: what it refuses is no reason to stop. *ret_moved 0: that, or nothing to do. */
static pawl_status step(struct delivery_runner *runner,
                        struct round *round,
                        pawl_status (*run)(struct delivery_pipeline *, size_t *, pawl_error *),
                        size_t *ret_moved,
                        pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = run(&runner->pipeline, ret_moved, &error);

    TRY(weigh(runner, round, status, &error, reterr));
    *ret_moved = status == PAWL_OK ? *ret_moved : 0;
    round->applied += *ret_moved;
    return PAWL_OK;
}

/* Full transactions one after another; what is left waits for more. While one event is looked for that the sink
 * refuses, transactions are smaller and nothing waits. */
static pawl_status apply_all(struct delivery_runner *runner,
                             struct round *round,
                             pawl_error *reterr)
{
    const struct delivery_pipeline *pipeline = &runner->pipeline;
    size_t moved = 1;
    bool is_full = true;

    while (is_full && !pawl__cancelled(&runner->cancel)) {
        size_t size = pipeline->window.size;
        TRY(step(runner, round, pawl__delivery_apply, &moved, reterr));
        is_full =
            moved > 0
            && (moved >= size || pipeline->window.size < pipeline->settings.apply_entries_max);
    }
    for (moved = 1; moved > 0 && !pawl__cancelled(&runner->cancel);) {
        TRY(step(runner, round, pawl__delivery_retry, &moved, reterr));
    }
    return PAWL_OK;
}

/* Until when to wait for more; 0: not at all. `has_stalled`: the last round applied nothing. */
static int64_t wait_until_locked(const struct delivery_runner *runner, bool has_stalled)
    REQUIRES_LOCK(runner->meeting.lock)
{
    const struct delivery_meeting *meeting = &runner->meeting;
    uint64_t waiting = meeting->appended - MIN(meeting->applied, meeting->appended);
    int64_t now_ns = pawl__monotonic_ns(runner->delivery->clock);

    if (meeting->ended != PAWL_OK || meeting->is_called || pawl__cancelled(&runner->cancel)) {
        return 0;
    }
    if (waiting == 0) {
        return now_ns + IDLE_NS;
    }
    if (has_stalled) { /* the sink is away, or an error passes */
        return now_ns + PAUSE_NS;
    }
    bool is_worth_it = meeting->is_idle || waiting >= runner->pipeline.settings.apply_entries_max
                       || now_ns >= meeting->waiting_since_ns + LINGER_NS;
    return is_worth_it ? 0 : meeting->waiting_since_ns + LINGER_NS;
}

/* Waits for a transaction's worth of entries, or for anything else that is to be done; then reads what intake told. */
static void meet(struct delivery_runner *runner, bool has_stalled, struct round *round)
{
    struct delivery_meeting *meeting = &runner->meeting;
    delivery_lsn applied = runner->pipeline.cursor.applied;

    pawl__lock(&runner->meeting.lock);
    if (applied > meeting->applied) {
        meeting->applied = applied;
        meeting->waiting_since_ns = pawl__monotonic_ns(runner->delivery->clock);
    }
    meeting->sink_is_away = pawl__delivery_breaker_is_open(&runner->pipeline.breaker);
    pawl__cond_broadcast(&meeting->changed);
    for (int64_t until_ns = wait_until_locked(runner, has_stalled); until_ns > 0;
         until_ns = wait_until_locked(runner, has_stalled)) {
        if (!pawl__cond_wait_until(&meeting->changed, &runner->meeting.lock, until_ns)) {
            break;
        }
        has_stalled = has_stalled && meeting->taken == 0;
    }
    meeting->is_called = false;
    round->intake.is_idle = meeting->is_idle;
    round->intake.idle_for = meeting->idle_for;
    round->intake.rest_bytes = meeting->rest_bytes;
    round->intake.taken = meeting->taken;
    meeting->taken = 0;
    round->intake.error = meeting->error;
    pawl__unlock(&runner->meeting.lock);
}

static pawl_status check_intake(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_meeting *meeting = &runner->meeting;

    pawl__lock(&meeting->lock);
    pawl_status ended = meeting->ended;
    pawl_error why = meeting->ended_why;
    pawl__unlock(&meeting->lock);
    return ended == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, ended, &why);
}

static pawl_status do_round(struct delivery_runner *runner, bool *has_stalled, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &runner->pipeline;
    struct round round = { .error = PAWL_ERROR_INIT };
    pawl_error error = PAWL_ERROR_INIT;

    meet(runner, *has_stalled, &round);
    TRY(check_intake(runner, reterr));
    pawl__delivery_run_errand(runner);
    TRY(apply_all(runner, &round, reterr));
    TRY(weigh(runner, &round, pawl__delivery_maintain(pipeline, &error), &error, reterr));
    publish(runner, &round);
    *has_stalled = round.applied == 0;
    return PAWL_OK;
}

/* A run that is shorter than the interval between checkpoints would never make one, and both logs would grow. */
static void checkpoint_last(struct delivery_runner *runner)
{
    runner->pipeline.settings.checkpoint_age_ns = 0;
    (void)!pawl__delivery_maintain(&runner->pipeline, NULL); /* else the next run makes it */
}

static pawl_status run_rounds(struct delivery_runner *runner, pawl_error *reterr)
{
    bool has_stalled = false;
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && !pawl__cancelled(&runner->cancel)) {
        status = do_round(runner, &has_stalled, reterr);
    }
    return status;
}

static pawl_status run_opened(struct delivery_runner *runner, pawl_error *reterr)
{
    struct round none = { .error = PAWL_ERROR_INIT, .intake = { .error = PAWL_ERROR_INIT } };

    TRY(pawl__delivery_intake_start(runner, reterr));
    publish(runner, &none);
    note(runner, PAWL_PIPELINE_RUNNING, NULL);
    pawl_status status = run_rounds(runner, reterr);
    pawl__delivery_intake_stop(runner);
    publish(runner, &none);
    if (!pawl__delivery_must_reopen(&runner->pipeline)) {
        checkpoint_last(runner);
    }
    return status;
}

/* --- the thread --- */

/* Opened and run until it was cancelled or failed. *ret_ran: it could be opened. */
static pawl_status run_once(struct delivery_runner *runner, bool *ret_ran, pawl_error *reterr)
{
    pawl__cancel_init(&runner->stop_intake, &runner->cancel);
    pawl_status status = pawl__delivery_open_parts(runner, reterr);

    *ret_ran = status == PAWL_OK;
    if (status == PAWL_OK) {
        status = run_opened(runner, reterr);
    }
    pawl__delivery_close_parts(runner);
    pawl__cancel_done(&runner->stop_intake);
    return status;
}

static bool may_reopen(pawl_status status)
{
    return pawl__delivery_may_pass(status) || status == PAWL_LEASE_LOST;
}

/* False: cancelled meanwhile. */
static bool wait_to_reopen(struct delivery_runner *runner, uint64_t failures)
{
    int64_t now_ns = pawl__monotonic_ns(runner->delivery->clock);
    uint64_t random = 0;

    (void)!pawl__random_bytes(pawl__random_real(), &random, sizeof(random), NULL);
    return !pawl__cancel_wait_until(&runner->cancel,
                                    now_ns + pawl__backoff_ns(&reopening, failures, random));
}

void pawl__delivery_runner_run(void *context)
{
    struct delivery_runner *runner = context;
    uint64_t failures = 0;
    bool is_waiting = true;

    while (is_waiting) {
        pawl_error error = PAWL_ERROR_INIT;
        bool has_run = false;
        pawl_status status = run_once(runner, &has_run, &error);

        if (status == PAWL_OK || pawl__cancelled(&runner->cancel)) {
            note(runner, PAWL_PIPELINE_STOPPED, NULL);
            return;
        }
        failures = has_run ? 1 : failures + 1;
        if (!may_reopen(status) || (runner->must_open && !has_run)) {
            note(runner, PAWL_PIPELINE_FAILED, &error);
            return;
        }
        runner->must_open = runner->must_open && !has_run;
        note(runner, PAWL_PIPELINE_STARTING, &error);
        is_waiting = wait_to_reopen(runner, failures);
    }
    note(runner, PAWL_PIPELINE_STOPPED, NULL);
}
