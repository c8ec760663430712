/* The thread of one pipeline: opens it, runs its steps, and opens it again after what passes by itself.
 *
 *     open ──► take in some batches ──► apply all of it ──► retry, maintain ──► report ──┐
 *       ▲         ▲                                                                      │
 *       │         └──────────── (nothing moved: the next fetch waits) ◄──────────────────┤
 *       └── broken, or could not be opened: after a pause                                │
 *                                                                    cancelled: checkpoint, close */
#include "base/core/error.h"
#include "base/decide/backoff.h"
#include "delivery/service/internal.h"
#include "delivery/sources/file.h"

enum {
    IDLE_NS = NS_PER_S,  /* how long an empty fetch waits */
    PAUSE_NS = NS_PER_S, /* after a source or a sink that is away */
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

static uint64_t drains_asked(struct delivery_runner *runner)
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
    size_t taken;          /* messages */
    size_t applied;        /* entries */
    bool is_empty;         /* the source was asked and had nothing */
    uint64_t drains_asked; /* when it began */
    pawl_error error;
};

static bool is_file(const struct delivery_runner *runner)
{
    return runner->declared.kind == DELIVERY_KIND_FILE
           || runner->declared.kind == DELIVERY_KIND_STDIN;
}

/* Everything that the source has is settled. A broker is believed only after a fetch that waited: one that does not
 * may come back empty while messages are on their way. */
static bool is_drained(const struct delivery_runner *runner,
                       const struct round *round,
                       const struct delivery_report *report,
                       size_t *ret_rest)
{
    const struct delivery_pipeline *pipeline = &runner->pipeline;
    bool has_waited =
        runner->declared.kind != DELIVERY_KIND_NATS || pipeline->settings.fetch.wait_ns > 0;

    *ret_rest = 0;
    return round->is_empty && has_waited && pawl__delivery_pending(&report->counters) == 0
           && (!is_file(runner) || pawl__delivery_file_is_at_end(runner->opened.source, ret_rest));
}

static void publish(struct delivery_runner *runner, const struct round *round)
{
    struct pawl_delivery *delivery = runner->delivery;
    struct delivery_report report = report_of(runner);
    size_t rest = 0;
    bool drained = is_drained(runner, round, &report, &rest);
    bool has_failed = round->error.status != PAWL_OK;

    pawl__lock(&delivery->lock);
    runner->report = report;
    if (has_failed || round->taken + round->applied > 0) {
        runner->error = round->error;
    }
    if (drained) {
        runner->drained_for = round->drains_asked;
        runner->rest_bytes = rest;
    }
    pawl__cond_broadcast(&delivery->changed);
    pawl__unlock(&delivery->lock);
}

/* --- a round --- */

/* What passes by itself: the pipeline stays open and tries again. */
static bool may_pass(pawl_status status)
{
    return pawl__status_may_pass(status) || status == PAWL_NO_SPACE || status == PAWL_IO
           || status == PAWL_NOMEM;
}

/* PAWL_OK: go on, `error` is noted. */
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
        || !may_pass(status)) {
        return pawl__fail_with(reterr, status, error);
    }
    round->error = *error;
    return PAWL_OK;
}

/* As many batches as one transaction may have. */
static pawl_status take_in(struct delivery_runner *runner, struct round *round, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &runner->pipeline;

    while (round->taken < pipeline->settings.apply_entries_max
           && !pawl__cancelled(&runner->cancel)) {
        pawl_error error = PAWL_ERROR_INIT;
        size_t moved = 0;
        pawl_status status = pawl__delivery_intake(pipeline, &moved, &error);

        TRY(weigh(runner, round, status, &error, reterr));
        if (status != PAWL_OK) { /* who waits for an answer does not wait for better times */
            pawl__delivery_inbox_refuse(&runner->inbox, &error);
        }
        round->taken += moved;
        if (status != PAWL_OK || moved == 0) {
            round->is_empty = status == PAWL_OK && round->taken == 0;
            return PAWL_OK;
        }
        pipeline->settings.fetch.wait_ns = 0; /* there is something to apply */
    }
    return PAWL_OK;
}

/* A sink that is away opens the breaker: what it refuses is no reason to stop. */
static pawl_status apply_all(struct delivery_runner *runner,
                             struct round *round,
                             pawl_error *reterr)
{
    static pawl_status (*const steps[])(struct delivery_pipeline *, size_t *, pawl_error *) = {
        pawl__delivery_apply, pawl__delivery_retry
    };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        size_t moved = 1;
        while (moved > 0 && !pawl__cancelled(&runner->cancel)) {
            pawl_error error = PAWL_ERROR_INIT;
            pawl_status status = steps[i](&runner->pipeline, &moved, &error);
            TRY(weigh(runner, round, status, &error, reterr));
            moved = status == PAWL_OK ? moved : 0;
            round->applied += moved;
        }
    }
    return PAWL_OK;
}

/* A file is compared when it is opened. Of standard input only its end shows that there is less of it than before. */
static pawl_status check_input(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_source *source = runner->opened.source;
    uint64_t delivered = runner->pipeline.cursor.stream.sequence;
    struct delivery_stream_state state = { .last = 0 };
    size_t rest = 0;

    if (runner->declared.kind != DELIVERY_KIND_STDIN
        || !pawl__delivery_file_is_at_end(source, &rest)) {
        return PAWL_OK;
    }
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

static pawl_status do_round(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &runner->pipeline;
    struct round round = { .error = PAWL_ERROR_INIT, .drains_asked = drains_asked(runner) };
    pawl_error error = PAWL_ERROR_INIT;

    pawl__delivery_run_errand(runner);
    TRY(take_in(runner, &round, reterr));
    TRY(apply_all(runner, &round, reterr));
    TRY(weigh(runner, &round, pawl__delivery_maintain(pipeline, &error), &error, reterr));
    TRY(check_input(runner, reterr));
    publish(runner, &round);
    pipeline->settings.fetch.wait_ns = round.taken + round.applied > 0 ? 0 : IDLE_NS;
    if (round.error.status != PAWL_OK && round.taken == 0) {
        pawl__cancel_wait_until(&runner->cancel,
                                pawl__monotonic_ns(runner->delivery->clock) + PAUSE_NS);
    }
    return PAWL_OK;
}

/* A run that is shorter than the interval between checkpoints would never make one, and both logs would grow. */
static void checkpoint_last(struct delivery_runner *runner)
{
    runner->pipeline.settings.checkpoint_age_ns = 0;
    (void)!pawl__delivery_maintain(&runner->pipeline, NULL); /* else the next run makes it */
}

static pawl_status run_opened(struct delivery_runner *runner, pawl_error *reterr)
{
    struct round none = { .error = PAWL_ERROR_INIT };
    pawl_status status = PAWL_OK;

    runner->pipeline.settings.fetch.wait_ns = 0;
    publish(runner, &none);
    note(runner, PAWL_PIPELINE_RUNNING, NULL);
    while (status == PAWL_OK && !pawl__cancelled(&runner->cancel)) {
        status = do_round(runner, reterr);
    }
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
    pawl_status status = pawl__delivery_open_parts(runner, reterr);

    *ret_ran = status == PAWL_OK;
    if (status == PAWL_OK) {
        status = run_opened(runner, reterr);
    }
    pawl__delivery_close_parts(runner);
    return status;
}

static bool may_reopen(pawl_status status)
{
    return may_pass(status) || status == PAWL_LEASE_LOST;
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
