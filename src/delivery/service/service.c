/* The handle: a data directory, opened, with its pipelines; what runs, and what is waited for. */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"

enum { WATCH_NS = 100 * NS_PER_MS };

/* --- runners --- */

static void runner_free(struct delivery_runner *runner)
{
    if (runner == NULL) {
        return;
    }
    pawl__delivery_declared_done(&runner->declared);
    pawl__cancel_done(&runner->cancel);
    pawl__delivery_inbox_done(&runner->inbox);
    pawl__lock_cond_done(&runner->meeting.lock, &runner->meeting.changed);
    pawl__lock_done(&runner->wal_lock);
    free(runner);
}

/* In the order of the names. */
static void insert_runner(struct pawl_delivery *delivery, struct delivery_runner *runner)
{
    struct delivery_runner **link = &delivery->runners;

    pawl__lock(&delivery->lock);
    while (*link != NULL
           && strcmp((*link)->declared.is.name.data, runner->declared.is.name.data) < 0) {
        link = &(*link)->next;
    }
    runner->next = *link;
    *link = runner;
    delivery->runner_count++;
    pawl__unlock(&delivery->lock);
}

/* Takes the declaration over, also when it fails. */
static pawl_status add_runner(struct pawl_delivery *delivery,
                              struct delivery_declared *declared,
                              pawl_error *reterr)
{
    struct delivery_runner *runner = calloc(1, sizeof(*runner));

    if (runner == NULL) {
        pawl__delivery_declared_done(declared);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a pipeline");
    }
    runner->delivery = delivery;
    runner->declared = *declared;
    runner->state = declared->paused ? PAWL_PIPELINE_PAUSED : PAWL_PIPELINE_STOPPED;
    runner->error = (pawl_error)PAWL_ERROR_INIT;
    pawl__cancel_init(&runner->cancel, NULL);
    pawl__delivery_inbox_init(&runner->inbox);
    pawl__lock_init(&runner->wal_lock);
    pawl__lock_cond_init(&runner->meeting.lock, &runner->meeting.changed);
    insert_runner(delivery, runner);
    return PAWL_OK;
}

pawl_status pawl__delivery_find(struct pawl_delivery *delivery,
                                const char *name,
                                struct delivery_runner **ret_runner,
                                pawl_error *reterr)
{
    pawl__lock(&delivery->lock);
    struct delivery_runner *runner = delivery->runners;
    while (runner != NULL && strcmp(runner->declared.is.name.data, name) != 0) {
        runner = runner->next;
    }
    pawl__unlock(&delivery->lock);
    if (runner == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no pipeline '%s'", name);
    }
    *ret_runner = runner;
    return PAWL_OK;
}

/* --- starting and stopping; the caller holds `manage` --- */

static void set_state(struct delivery_runner *runner, pawl_pipeline_state state)
{
    pawl__lock(&runner->delivery->lock);
    runner->state = state;
    pawl__cond_broadcast(&runner->delivery->changed);
    pawl__unlock(&runner->delivery->lock);
}

pawl_status pawl__delivery_check_free(const struct delivery_runner *runner, pawl_error *reterr)
{
    return runner->held_for == NULL ? PAWL_OK
                                    : pawl__fail(reterr,
                                                 PAWL_BUSY,
                                                 "pipeline '%s' is being %s: try again later",
                                                 runner->declared.is.name.data,
                                                 runner->held_for);
}

/* A thread that has ended by itself is joined here. */
static pawl_status stop_runner(struct delivery_runner *runner, pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;
    int64_t deadline_ns =
        pawl__monotonic_ns(delivery->clock) + delivery->options.close_ms_max * NS_PER_MS;

    TRY(pawl__delivery_check_free(runner, reterr));
    if (!runner->has_thread) {
        return PAWL_OK;
    }
    pawl__cancel_now(&runner->cancel);
    if (!pawl__thread_join_until(&runner->thread, deadline_ns)) {
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "pipeline '%s' does not stop: its store does not come back",
                          runner->declared.is.name.data);
    }
    runner->has_thread = false;
    pawl__lock(&delivery->lock); /* a close under way cancels everybody */
    pawl__cancel_done(&runner->cancel);
    pawl__cancel_init(&runner->cancel, NULL);
    pawl__unlock(&delivery->lock);
    return PAWL_OK;
}

/* Its thread runs; one that ended by itself does not. */
static bool is_alive(struct delivery_runner *runner)
{
    pawl__lock(&runner->delivery->lock);
    bool alive = runner->state == PAWL_PIPELINE_STARTING || runner->state == PAWL_PIPELINE_RUNNING;
    pawl__unlock(&runner->delivery->lock);
    return runner->has_thread && alive;
}

static pawl_status start_runner(struct delivery_runner *runner, bool must_open, pawl_error *reterr)
{
    if (is_alive(runner)) {
        return PAWL_OK;
    }
    TRY(stop_runner(runner, reterr));
    pawl__lock(&runner->delivery->lock);
    runner->state = PAWL_PIPELINE_STARTING;
    runner->error = (pawl_error)PAWL_ERROR_INIT;
    pawl__unlock(&runner->delivery->lock);
    runner->must_open = must_open;
    pawl_status status = pawl__thread_start(
        &runner->thread, "pawl-pipeline", pawl__delivery_runner_run, runner, reterr);
    runner->has_thread = status == PAWL_OK;
    if (status != PAWL_OK) {
        set_state(runner, PAWL_PIPELINE_STOPPED);
    }
    return status;
}

static pawl_status await_running(struct delivery_runner *runner, pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__lock(&delivery->lock);
    while (runner->state == PAWL_PIPELINE_STARTING && !delivery->is_closing) {
        pawl__cond_wait(&delivery->changed, &delivery->lock);
    }
    pawl_pipeline_state state = runner->state;
    error = runner->error;
    pawl__unlock(&delivery->lock);
    if (state == PAWL_PIPELINE_RUNNING) {
        return PAWL_OK;
    }
    return state == PAWL_PIPELINE_FAILED
               ? pawl__fail_with(reterr, error.status, &error)
               : pawl__fail(reterr, PAWL_CLOSED, "closed before the pipeline was open");
}

static bool starts_by_itself(const struct delivery_runner *runner)
{
    return runner->delivery->is_started && !runner->declared.paused && runner->held_for == NULL
           && runner->declared.kind != DELIVERY_KIND_STDIN;
}

/* --- calls --- */

struct call {
    struct pawl_delivery *delivery;
};

static void enter(struct call *call, pawl_delivery *delivery) NO_LOCK_ANALYSIS
{
    pawl__calls_enter(&delivery->calls);
    pawl__lock(&delivery->manage);
    call->delivery = delivery;
}

static void leave(struct call *call) NO_LOCK_ANALYSIS
{
    pawl__unlock(&call->delivery->manage);
    pawl__calls_leave(&call->delivery->calls);
}

/* One change at a time, from here to the end of the scope. */
#define MANAGE(delivery_)          \
    AUTO(leave) struct call call_; \
    enter(&call_, (delivery_))

/* --- held by somebody else --- */

pawl_status pawl__delivery_hold(struct pawl_delivery *delivery,
                                const char *name,
                                const char *why,
                                struct delivery_runner **ret_runner,
                                bool *ret_was_running,
                                pawl_error *reterr)
{
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    bool was_running = is_alive(runner);
    TRY(stop_runner(runner, reterr));
    runner->held_for = why;
    set_state(runner, PAWL_PIPELINE_STARTING);
    *ret_runner = runner;
    *ret_was_running = was_running;
    return PAWL_OK;
}

/* What it cannot start with it says in its status. */
void pawl__delivery_let_go(struct delivery_runner *runner, bool start)
{
    MANAGE(runner->delivery);

    runner->held_for = NULL;
    set_state(runner, runner->declared.paused ? PAWL_PIPELINE_PAUSED : PAWL_PIPELINE_STOPPED);
    if (start && !runner->declared.paused) {
        (void)!start_runner(runner, false, NULL);
    }
}

/* --- open and close --- */

static void delivery_free(struct pawl_delivery *delivery)
{
    while (delivery->runners != NULL) {
        struct delivery_runner *runner = delivery->runners;
        delivery->runners = runner->next;
        runner_free(runner);
    }
    pawl__delivery_duckdb_close(delivery->file);
    pawl__store_lock_release(delivery->store_lock);
    pawl__lock_done(&delivery->file_lock);
    pawl__lock_done(&delivery->manage);
    pawl__lock_cond_done(&delivery->lock, &delivery->changed);
    pawl__calls_done(&delivery->calls);
    free(delivery->dir);
    free(delivery->pipelines_dir);
    free(delivery->wal_dir);
    free(delivery);
}

static void delivery_free_p(struct pawl_delivery **delivery)
{
    if (*delivery != NULL) {
        delivery_free(*delivery);
    }
}

static pawl_status check_options(const pawl_delivery_options *options, pawl_error *reterr)
{
    const struct {
        const char *name;
        uint64_t value;
        int64_t min;
        int64_t max;
    } checks[] = {
        { "close_ms_max", options->close_ms_max, 1, 3600000 },
        { "memory_max", options->memory_max, 16 << 20, INT64_C(1) << 44 },
        { "free_space_min", options->free_space_min, 0, INT64_MAX },
        { "batch_max", options->batch_max, 1, 1000000 },
        { "compactors", options->compactors, 2, 64 },
        { "memtable_bytes", options->memtable_bytes, 1 << 20, INT64_C(1) << 32 },
        { "blob_file_bytes", options->blob_file_bytes, 1 << 20, INT64_C(1) << 40 },
        { "retry_interval_ms", options->retry_interval_ms, 1, 86400000 },
        { "retry_backoff_ms", options->retry_backoff_ms, 1, 86400000 },
        { "retries_max", options->retries_max, 1, 1000000 },
        { "lease_ms", options->lease_ms, 1000, 86400000 },
        { "entry_ttl_ms", options->entry_ttl_ms, 1000, INT64_C(100) * 366 * 86400000 },
        { "pending_bytes_max", options->pending_bytes_max, 1 << 20, INT64_MAX },
        { "failed_bytes_max", options->failed_bytes_max, 1 << 20, INT64_MAX },
    };

    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        TRY(pawl__check_range(checks[i].name,
                              (int64_t)MIN(checks[i].value, (uint64_t)INT64_MAX),
                              checks[i].min,
                              checks[i].max,
                              reterr));
    }
    return PAWL_OK;
}

static pawl_status open_at(const char *dir,
                           const pawl_delivery_options *options,
                           struct pawl__clock *clock,
                           pawl_delivery **ret_delivery,
                           pawl_error *reterr)
{
    AUTO(delivery_free_p) struct pawl_delivery *delivery = NULL;
    pawl_delivery_options taken = PAWL_DELIVERY_OPTIONS_INIT;

    TRY(pawl__take_sized("options", options, &taken, sizeof(taken), reterr));
    TRY(check_options(&taken, reterr));
    delivery = calloc(1, sizeof(*delivery));
    TRY(pawl__check_memory(delivery, "a delivery", reterr));
    delivery->clock = pawl__clock_or_real(clock);
    delivery->options = taken;
    pawl__calls_init(&delivery->calls, delivery->clock);
    pawl__lock_init(&delivery->manage);
    pawl__lock_init(&delivery->file_lock);
    pawl__lock_cond_init(&delivery->lock, &delivery->changed);
    delivery->dir = strdup(dir);
    TRY(pawl__check_memory(delivery->dir, "a path", reterr));
    TRY(pawl__delivery_directory_open(delivery, reterr));
    TRY(pawl__delivery_directory_load(delivery, add_runner, reterr));
    *ret_delivery = STEAL(delivery);
    return PAWL_OK;
}

pawl_status pawl_delivery_open(const char *dir,
                               const pawl_delivery_options *options,
                               pawl_delivery **ret_delivery,
                               pawl_error *reterr)
{
    NEED_TEXT(dir, reterr);
    NEED(ret_delivery, reterr);
    return open_at(dir, options, NULL, ret_delivery, reterr);
}

/* Everybody is told before anybody is waited for. */
static bool stop_all(struct pawl_delivery *delivery, int64_t deadline_ns)
{
    bool has_ended = true;

    pawl__lock(&delivery->lock);
    delivery->is_closing = true;
    pawl__cond_broadcast(&delivery->changed);
    for (struct delivery_runner *runner = delivery->runners; runner != NULL;
         runner = runner->next) {
        pawl__cancel_now(&runner->cancel);
    }
    pawl__unlock(&delivery->lock);
    if (!pawl__calls_await(&delivery->calls, deadline_ns)) {
        return false;
    }
    for (struct delivery_runner *runner = delivery->runners; runner != NULL;
         runner = runner->next) {
        pawl__cancel_now(&runner->cancel); /* a call that has just left may have started it */
        has_ended = (!runner->has_thread || pawl__thread_join_until(&runner->thread, deadline_ns))
                    && has_ended;
    }
    return has_ended;
}

pawl_status pawl_delivery_close(pawl_delivery *delivery, uint32_t timeout_ms, pawl_error *reterr)
{
    if (delivery == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__calls_check_outside(delivery, "the delivery", reterr));
    int64_t bound_ms = timeout_ms == 0 ? delivery->options.close_ms_max : timeout_ms;
    int64_t deadline_ns = pawl__monotonic_ns(delivery->clock) + bound_ms * NS_PER_MS;

    if (!stop_all(delivery,
                  deadline_ns)) { /* a thread hangs in a store, and may still use all of this */
        return pawl__fail(
            reterr, PAWL_TIMEOUT, "delivery in '%s': a store does not come back", delivery->dir);
    }
    delivery_free(delivery);
    return PAWL_OK;
}

pawl_status pawl_delivery_start(pawl_delivery *delivery, pawl_error *reterr)
{
    NEED(delivery, reterr);
    MANAGE(delivery);

    delivery->is_started = true;
    for (struct delivery_runner *runner = delivery->runners; runner != NULL;
         runner = runner->next) {
        if (starts_by_itself(runner)) {
            TRY(start_runner(runner, false, reterr));
        }
    }
    return PAWL_OK;
}

/* --- add and remove --- */

/* A table that cannot be had is found before anything is stored. */
static pawl_status check_table(struct pawl_delivery *delivery,
                               const struct delivery_declared *declared,
                               pawl_error *reterr)
{
    struct delivery_sink *sink = NULL;

    TRY(pawl__delivery_open_sink(delivery, declared, &sink, reterr));
    sink->ops->close(sink);
    return PAWL_OK;
}

static pawl_status check_count(const struct pawl_delivery *delivery, pawl_error *reterr)
{
    return delivery->runner_count < PAWL_PIPELINES_MAX
               ? PAWL_OK
               : pawl__fail(
                   reterr, PAWL_INVALID, "there are %d pipelines, the limit", PAWL_PIPELINES_MAX);
}

static pawl_status add_new(struct pawl_delivery *delivery,
                           struct delivery_declared *declared,
                           pawl_error *reterr)
{
    struct delivery_declared next = *declared;
    struct delivery_runner *runner = NULL;

    TRY(check_count(delivery, reterr));
    TRY(check_table(delivery, &next, reterr));
    TRY(pawl__delivery_directory_save(delivery, &next, reterr));
    declared->arena = (struct pawl__arena)ARENA_INIT; /* the runner's now */
    TRY(add_runner(delivery, &next, reterr));
    TRY(pawl__delivery_find(delivery, next.is.name.data, &runner, reterr));
    return starts_by_itself(runner) ? start_runner(runner, false, reterr) : PAWL_OK;
}

/* While it does not run. What it was is given back in `next`, for its end. */
static pawl_status replace_stopped(struct delivery_runner *runner,
                                   struct delivery_declared *next,
                                   pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;

    TRY(check_table(delivery, next, reterr));
    TRY(pawl__delivery_directory_save(delivery, next, reterr));
    pawl__lock(&delivery->lock);
    struct delivery_declared before = runner->declared;
    runner->declared = *next;
    *next = before;
    pawl__unlock(&delivery->lock);
    return PAWL_OK;
}

/* Nothing has come of it yet: it may become anything. */
static bool is_untouched(struct delivery_runner *runner)
{
    struct delivery_report report;

    return pawl__delivery_read_report(runner, &report, NULL) == PAWL_OK
           && report.counters.accepted == 0 && report.sequence == 0;
}

static pawl_status check_follows(struct delivery_runner *runner,
                                 struct delivery_declared *next,
                                 pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__delivery_declared_follow(&runner->declared, next, &error);

    if (status == PAWL_OK
        || (status == PAWL_CONFLICT && !is_alive(runner) && is_untouched(runner))) {
        return PAWL_OK;
    }
    return pawl__fail_with(reterr, status, &error);
}

static pawl_status add_again(struct delivery_runner *runner,
                             struct delivery_declared *next,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    TRY(check_follows(runner, next, reterr));
    bool was_running = is_alive(runner);
    TRY(stop_runner(runner, reterr));
    pawl_status status = replace_stopped(runner, next, &error);
    pawl_status started =
        was_running || starts_by_itself(runner) ? start_runner(runner, false, reterr) : PAWL_OK;
    return status == PAWL_OK ? started : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl_pipeline_add(pawl_delivery *delivery, pawl_view declaration, pawl_error *reterr)
{
    NEED(delivery, reterr);
    NEED_VIEW(declaration, reterr);
    AUTO(pawl__delivery_declared_done) struct delivery_declared next = { .paused = false };
    struct delivery_runner *runner = NULL;

    TRY(pawl__delivery_declare(declaration, &next, reterr));
    MANAGE(delivery);
    pawl_status status = pawl__delivery_find(delivery, next.is.name.data, &runner, NULL);
    return status == PAWL_OK ? add_again(runner, &next, reterr) : add_new(delivery, &next, reterr);
}

static pawl_status check_pending(struct delivery_runner *runner, pawl_error *reterr)
{
    struct delivery_report report;

    TRY(pawl__delivery_read_report(runner, &report, reterr));
    uint64_t pending = pawl__delivery_pending(&report.counters);
    return pending == 0
               ? PAWL_OK
               : pawl__fail_advised(reterr,
                                    PAWL_CONFLICT,
                                    "pipeline '%s' has %llu events that are only in its "
                                    "write-ahead log; run it until they are delivered, or drop "
                                    "them with --unsafe-drop-pending",
                                    runner->declared.is.name.data,
                                    (unsigned long long)pending);
}

/* Calls that wait for it leave first. */
static void unlink_runner(struct delivery_runner *runner)
{
    struct pawl_delivery *delivery = runner->delivery;
    struct delivery_runner **link = &delivery->runners;

    pawl__lock(&delivery->lock);
    while (*link != runner) {
        link = &(*link)->next;
    }
    *link = runner->next;
    delivery->runner_count--;
    runner->is_gone = true;
    pawl__cond_broadcast(&delivery->changed);
    while (runner->waiting > 0) {
        pawl__cond_wait(&delivery->changed, &delivery->lock);
    }
    pawl__unlock(&delivery->lock);
}

static pawl_status remove_stopped(struct delivery_runner *runner,
                                  bool unsafe_drop_pending,
                                  pawl_error *reterr)
{
    TRY(unsafe_drop_pending ? PAWL_OK : check_pending(runner, reterr));
    return pawl__delivery_directory_forget(runner->delivery, runner->declared.is.name.data, reterr);
}

pawl_status pawl_pipeline_remove(pawl_delivery *delivery,
                                 const char *name,
                                 bool unsafe_drop_pending,
                                 pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    bool was_running = is_alive(runner);
    TRY(stop_runner(runner, reterr));
    pawl_status status = remove_stopped(runner, unsafe_drop_pending, &error);
    if (status != PAWL_OK) {
        (void)!(was_running ? start_runner(runner, false, NULL) : PAWL_OK);
        return pawl__fail_with(reterr, status, &error);
    }
    unlink_runner(runner);
    runner_free(runner);
    return PAWL_OK;
}

/* --- start, pause, resume --- */

pawl_status pawl_pipeline_start(pawl_delivery *delivery, const char *name, pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    if (runner->declared.paused) {
        return pawl__fail_advised(reterr,
                                  PAWL_CONFLICT,
                                  "pipeline '%s' is paused; run `pawl pipeline resume %s` first",
                                  name,
                                  name);
    }
    TRY(start_runner(runner, true, reterr));
    return await_running(runner, reterr);
}

static pawl_status save_paused(struct delivery_runner *runner, bool paused, pawl_error *reterr)
{
    struct delivery_declared next = runner->declared; /* its arena stays the runner's */

    next.paused = paused;
    TRY(pawl__delivery_directory_save(runner->delivery, &next, reterr));
    pawl__lock(&runner->delivery->lock);
    runner->declared.paused = paused;
    pawl__unlock(&runner->delivery->lock);
    return PAWL_OK;
}

pawl_status pawl_pipeline_pause(pawl_delivery *delivery, const char *name, pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    TRY(pawl__delivery_check_free(runner, reterr));
    TRY(save_paused(runner, true, reterr));
    TRY(stop_runner(runner, reterr));
    set_state(runner, PAWL_PIPELINE_PAUSED);
    return PAWL_OK;
}

pawl_status pawl_pipeline_resume(pawl_delivery *delivery, const char *name, pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    TRY(pawl__delivery_check_free(runner, reterr));
    if (runner->declared.paused) {
        TRY(save_paused(runner, false, reterr));
        set_state(runner, PAWL_PIPELINE_STOPPED);
    }
    return starts_by_itself(runner) ? start_runner(runner, false, reterr) : PAWL_OK;
}

/* --- looking at them --- */

static pawl_status read_statuses(pawl_delivery *delivery,
                                 const char *name,
                                 struct delivery_statuses *statuses,
                                 pawl_error *reterr)
{
    MANAGE(delivery);
    struct delivery_runner *runner = NULL;

    TRY(name == NULL ? PAWL_OK : pawl__delivery_find(delivery, name, &runner, reterr));
    return pawl__delivery_statuses_read(delivery, runner, statuses, reterr);
}

static bool visit_all(pawl_delivery *delivery,
                      const struct delivery_statuses *statuses,
                      pawl_pipeline_visit visit,
                      void *context)
{
    INSIDE(delivery);
    bool goes_on = true;

    for (size_t i = 0; goes_on && i < statuses->count; i++) {
        goes_on = visit(context, &statuses->items[i]);
    }
    return goes_on;
}

pawl_status pawl_pipeline_get(pawl_delivery *delivery,
                              const char *name,
                              pawl_pipeline_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    NEED(delivery, name, visit, reterr);
    AUTO(pawl__delivery_statuses_done) struct delivery_statuses statuses = { .count = 0 };

    TRY(read_statuses(delivery, name, &statuses, reterr));
    visit_all(delivery, &statuses, visit, context);
    return PAWL_OK;
}

struct pipeline_walk {
    struct pawl__page page;
    char from_id[PAWL_PAGE_ID_SIZE];
    pawl_pipeline_visit visit;
    void *context;
};

static bool show_pipeline(void *context, const pawl_pipeline_status *status)
{
    struct pipeline_walk *walk = context;

    return pawl__view_compare(status->name, pawl_view_of(walk->from_id)) < 0
           || (pawl__page_admits_id(&walk->page, status->name)
               && pawl__page_show(&walk->page, walk->visit(walk->context, status)));
}

pawl_status pawl_pipeline_list(pawl_delivery *delivery,
                               pawl_page *page,
                               pawl_pipeline_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    NEED(delivery, visit, reterr);
    AUTO(pawl__delivery_statuses_done) struct delivery_statuses statuses = { .count = 0 };
    struct pipeline_walk walk = { .visit = visit, .context = context };

    TRY(pawl__page_take(page, &walk.page, reterr));
    memcpy(walk.from_id, walk.page.page.from_id, sizeof(walk.from_id));
    TRY(read_statuses(delivery, NULL, &statuses, reterr));
    visit_all(delivery, &statuses, show_pipeline, &walk);
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

pawl_status pawl_pipeline_peek(pawl_delivery *delivery,
                               pawl_pipeline_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    NEED(delivery, visit, reterr);
    AUTO(pawl__delivery_statuses_done) struct delivery_statuses statuses = { .count = 0 };

    pawl__calls_enter(&delivery->calls);
    pawl_status status = pawl__delivery_statuses_seen(delivery, &statuses, reterr);
    if (status == PAWL_OK) {
        visit_all(delivery, &statuses, visit, context);
    }
    pawl__calls_leave(&delivery->calls);
    return status;
}

/* --- SQL --- */

static pawl_status find_file(pawl_delivery *delivery,
                             struct delivery_duckdb_file **ret_file,
                             pawl_error *reterr)
{
    if (!pawl__delivery_directory_has_file(delivery)) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "'%s/analytics.duckdb' is not there: nothing was delivered yet",
                          delivery->dir);
    }
    return pawl__delivery_directory_file(delivery, ret_file, reterr);
}

pawl_status pawl_delivery_select(pawl_delivery *delivery,
                                 const char *sql,
                                 const pawl_query_options *options,
                                 pawl_query_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    NEED(delivery, visit, reterr);
    NEED_TEXT(sql, reterr);
    pawl_query_options taken = PAWL_QUERY_OPTIONS_INIT;
    struct delivery_duckdb_file *file = NULL;

    TRY(pawl__take_sized("options", options, &taken, sizeof(taken), reterr));
    pawl__calls_enter(&delivery->calls);
    pawl_status status = pawl__delivery_enter_file(delivery, reterr);
    if (status == PAWL_OK) {
        status = find_file(delivery, &file, reterr);
        if (status == PAWL_OK) {
            INSIDE(delivery);
            status = pawl__delivery_duckdb_query(file, sql, &taken, visit, context, reterr);
        }
        pawl__delivery_leave_file(delivery);
    }
    pawl__calls_leave(&delivery->calls);
    return status;
}

/* --- drain --- */

struct drain {
    struct delivery_runner *runner;
    uint64_t ticket;
    int64_t deadline_ns; /* INT64_MAX: none */
    pawl_watch watch;
};

static pawl_status begin_drain(pawl_delivery *delivery,
                               const char *name,
                               struct drain *drain,
                               pawl_error *reterr)
{
    MANAGE(delivery);

    TRY(pawl__delivery_find(delivery, name, &drain->runner, reterr));
    pawl__lock(&delivery->lock);
    drain->runner->waiting++;
    drain->ticket = ++drain->runner->drains_asked;
    pawl__unlock(&delivery->lock);
    return PAWL_OK;
}

static pawl_status fail_rest(const struct delivery_runner *runner, pawl_error *reterr)
{
    return pawl__fail_advised(reterr,
                              PAWL_INVALID,
                              "the last line of '%.*s' (%zu bytes) has no line feed and is not "
                              "delivered; end it with one and run the command again",
                              VIEW_ARGS(runner->declared.shown),
                              runner->rest_bytes);
}

/* TIMEOUT: look again when something changed. */
static pawl_status judge_locked(struct pawl_delivery *delivery,
                                const struct drain *drain,
                                pawl_error *reterr) REQUIRES_LOCK(delivery->lock);
static pawl_status judge_locked(struct pawl_delivery *delivery,
                                const struct drain *drain,
                                pawl_error *reterr)
{
    const struct delivery_runner *runner = drain->runner;
    const char *name = runner->declared.is.name.data;

    if (delivery->is_closing) {
        return pawl__fail(reterr, PAWL_CLOSED, "closed while pipeline '%s' was drained", name);
    }
    if (runner->is_gone) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "pipeline '%s' was removed", name);
    }
    if (runner->drained_for >= drain->ticket) {
        return runner->rest_bytes > 0 ? fail_rest(runner, reterr) : PAWL_OK;
    }
    if (runner->state == PAWL_PIPELINE_FAILED) {
        return pawl__fail_with(reterr, runner->error.status, &runner->error);
    }
    return runner->state == PAWL_PIPELINE_STARTING || runner->state == PAWL_PIPELINE_RUNNING
               ? pawl__fail(reterr, PAWL_TIMEOUT, "pipeline '%s' is not drained yet", name)
               : pawl__fail(reterr, PAWL_CONFLICT, "pipeline '%s' does not run", name);
}

/* Until it is settled, or the time has come to show how far it is. */
static pawl_status wait_some(const struct drain *drain, pawl_error *reterr)
{
    struct pawl_delivery *delivery = drain->runner->delivery;
    int64_t until_ns =
        MIN(drain->deadline_ns, pawl__monotonic_ns(delivery->clock) + (int64_t)WATCH_NS);
    bool in_time = true;

    pawl__lock(&delivery->lock);
    pawl_status status = judge_locked(delivery, drain, reterr);
    while (status == PAWL_TIMEOUT && in_time) {
        in_time = pawl__cond_wait_until(&delivery->changed, &delivery->lock, until_ns);
        status = judge_locked(delivery, drain, reterr);
    }
    pawl__unlock(&delivery->lock);
    return status;
}

static pawl_status show_progress(const struct drain *drain, pawl_error *reterr)
{
    AUTO(pawl__delivery_statuses_done) struct delivery_statuses statuses = { .count = 0 };
    struct pawl_delivery *delivery = drain->runner->delivery;

    if (drain->watch.progress == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_status_seen(drain->runner, &statuses, reterr));
    INSIDE(delivery);
    const pawl_pipeline_status *seen = &statuses.items[0];
    return drain->watch.progress(drain->watch.context,
                                 seen->delivered + seen->filtered + seen->failed,
                                 seen->accepted)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
}

static pawl_status wait_drained(const struct drain *drain, pawl_error *reterr)
{
    struct pawl__clock *clock = drain->runner->delivery->clock;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_TIMEOUT;
    bool in_time = true;

    while (status == PAWL_TIMEOUT && in_time) {
        status = wait_some(drain, &error);
        in_time = pawl__monotonic_ns(clock) < drain->deadline_ns;
        TRY(show_progress(drain, reterr));
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl_pipeline_drain(pawl_delivery *delivery,
                                const char *name,
                                uint32_t timeout_ms,
                                const pawl_watch *watch,
                                pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    struct drain drain = {
        .watch = PAWL_WATCH_INIT,
        .deadline_ns = timeout_ms == 0
                           ? INT64_MAX
                           : pawl__monotonic_ns(delivery->clock) + timeout_ms * NS_PER_MS,
    };

    TRY(pawl__take_sized("watch", watch, &drain.watch, sizeof(drain.watch), reterr));
    pawl__calls_enter(&delivery->calls);
    pawl_status status = begin_drain(delivery, name, &drain, reterr);
    if (status == PAWL_OK) {
        status = wait_drained(&drain, reterr);
        pawl__lock(&delivery->lock);
        drain.runner->waiting--;
        pawl__cond_broadcast(&delivery->changed);
        pawl__unlock(&delivery->lock);
    }
    pawl__calls_leave(&delivery->calls);
    return status;
}
