#include "work/core/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"

enum { WORK_CLAIM_AHEAD_MAX = 1000 };
#define UNAWAITED_BYTES_MAX ((size_t)64 << 20) /* of asynchronous calls: more are BUSY */
#define WORK_DATA_BYTES_LIMIT (256U << 20)

static const struct pawl__backends backends = {
    .what = "work",
    .parse = pawl__location_parse,
    .at = { [PAWL__AT_MEMORY] = pawl__work_sqlite_open,
            [PAWL__AT_SQLITE] = pawl__work_sqlite_open,
            [PAWL__AT_POSTGRES] = pawl__work_postgres_open },
};

static pawl__backend_open *model_open;

void pawl__work_register_model(pawl__backend_open *open)
{
    model_open = open;
}

/* --- the group commit --- */

static struct work_request *request_of(struct pawl__commit_item *item)
{
    return (struct work_request *)((char *)item - offsetof(struct work_request, item));
}

/* Runs on the committer thread. */
static pawl_status commit_group(void *context,
                                struct pawl__commit_item *const *items,
                                size_t count,
                                pawl_error *reterr)
{
    pawl_work *work = context;
    struct work_request *requests[WORK_GROUP_MAX];
    bool wake;

    REQUIRE(count <= WORK_GROUP_MAX);
    for (size_t i = 0; i < count; i++) {
        requests[i] = request_of(items[i]);
    }
    TRY(pawl__work_group_run(work->group, requests, count, &wake, reterr));
    if (wake) {
        pawl__watch_bump(&work->engine.watch);
    }
    if (atomic_load(&work->followers) > 0) {
        pawl__watch_bump(&work->changes);
    }
    return PAWL_OK;
}

static void set_share(struct pawl__commit_item *item)
{
    item->bytes = MIN(MAX(item->bytes, (size_t)1), WORK_GROUP_BYTES_MAX);
}

pawl_status pawl__work_check_thread(const pawl_work *work, pawl_error *reterr)
{
    return pawl__is_inside(work->engine.commit)
               ? pawl__fail_detail(reterr,
                                   PAWL_INVALID,
                                   PAWL_DETAIL_WRONG_THREAD,
                                   "called from inside an answer, which must not wait")
               : PAWL_OK;
}

pawl_status pawl__work_submit_inside(pawl_work *work,
                                     struct work_request *request,
                                     pawl_error *reterr)
{
    TRY(pawl__work_check_thread(work, reterr));
    set_share(&request->item);
    return pawl__engine_submit(&work->engine, &request->item, reterr);
}

pawl_status pawl__work_submit_request(pawl_work *work,
                                      struct work_request *request,
                                      pawl_error *reterr)
{
    pawl__calls_enter(&work->engine.calls);
    pawl_status status = pawl__work_submit_inside(work, request, reterr);
    pawl__calls_leave(&work->engine.calls);
    return status;
}

pawl_status pawl__work_submit_request_async(pawl_work *work,
                                            struct work_request *request,
                                            pawl_error *reterr)
{
    set_share(&request->item);
    pawl__calls_enter(&work->engine.calls);
    pawl_status status = pawl__commit_submit_async(work->engine.commit, &request->item, reterr);
    pawl__calls_leave(&work->engine.calls);
    return status;
}

/* --- open and close --- */

static pawl_status open_backend(pawl_work *work, const char *location, pawl_error *reterr)
{
    const struct work_setup setup = {
        .options = &work->options,
        .clock = work->engine.clock,
        .boot_id = work->boot_id,
    };

    return model_open != NULL && strcmp(location, "model:") == 0
               ? model_open(NULL, &setup, &work->backend, reterr)
               : pawl__open_backend(
                   &backends, location, &work->engine.interrupted, &setup, &work->backend, reterr);
}

static pawl_status watch_outside(void *context,
                                 int64_t deadline_ns,
                                 struct pawl__cancel *cancel,
                                 pawl_error *reterr)
{
    struct work_backend *backend = context;

    return backend->store->watch(backend, deadline_ns, cancel, reterr);
}

static pawl_status start(pawl_work *work, pawl_error *reterr)
{
    struct pawl__commit_options options = {
        .name = "work",
        .commit = commit_group,
        .context = work,
        .limits = PAWL__COMMIT_LIMITS_DEFAULT,
    };
    pawl__engine_watch(
        &work->engine, work->backend->store->watch == NULL ? NULL : watch_outside, work->backend);
    TRY(pawl__work_group_new(work->backend, &work->options, &work->group, reterr));
    options.limits.linger_ns = work->backend->store->gather_ns;
    options.limits.only_for_recent_callers = work->backend->store->gather_ns > 0;
    options.limits.batch_items_max = WORK_GROUP_MAX;
    options.limits.batch_bytes_max = WORK_GROUP_BYTES_MAX;
    options.limits.async_max = options.limits.waiting_max / 2;
    options.limits.async_bytes_max = UNAWAITED_BYTES_MAX;
    TRY(pawl__engine_start(&work->engine, &options, reterr));
    return work->options.claim_ahead == 0 ? PAWL_OK
                                          : pawl__work_prefetch_new(work->options.claim_ahead,
                                                                    work->engine.calls.clock,
                                                                    pawl__work_release_async,
                                                                    work,
                                                                    &work->prefetch,
                                                                    reterr);
}

static pawl_status read_options(const pawl_work_options *given,
                                pawl_work_options *options,
                                pawl_error *reterr)
{
    *options = (pawl_work_options)PAWL_WORK_OPTIONS_INIT;
    TRY(pawl__take_sized("options", given, options, sizeof(*options), reterr));
    TRY(pawl__check_option(
        "data_bytes_max", options->data_bytes_max, WORK_DATA_BYTES_LIMIT, reterr));
    const char *nothing = options->lease_ms == 0         ? "lease_ms"
                          : options->retry_first_ms == 0 ? "retry_first_ms"
                          : options->stale_ms == 0       ? "stale_ms"
                                                         : NULL;
    if (nothing != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is 0, must be 1 or more", nothing);
    }
    if (options->retry_max_ms < options->retry_first_ms) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "retry_max_ms: is %u, less than retry_first_ms, which is %u",
                          options->retry_max_ms,
                          options->retry_first_ms);
    }
    return pawl__check_limit(
        "claim_ahead: is", options->claim_ahead, "", WORK_CLAIM_AHEAD_MAX, reterr);
}

static pawl_status open_work(pawl_work *work,
                             const char *location,
                             const pawl_work_options *options,
                             struct pawl__clock *clock,
                             pawl_error *reterr)
{
    TRY(read_options(options, &work->options, reterr));
    pawl__engine_init(&work->engine, "work", clock);
    pawl__work_waiters_init(&work->waiters, work);
    pawl__work_changes_init(work);
    TRY(open_backend(work, location, reterr));
    return start(work, reterr);
}

pawl_status pawl__work_open_at(const char *location,
                               const pawl_work_options *options,
                               struct pawl__clock *clock,
                               const char *boot_id,
                               pawl_work **ret_work,
                               pawl_error *reterr)
{
    pawl_work *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    snprintf(work->boot_id, sizeof(work->boot_id), "%s", boot_id);
    pawl_status status = open_work(work, location, options, clock, reterr);
    if (status != PAWL_OK) {
        pawl_work_close(work, 0, NULL);
        return pawl__open_failed("work", location, status, reterr);
    }
    *ret_work = work;
    return PAWL_OK;
}

pawl_status pawl_work_open(const char *location,
                           const pawl_work_options *options,
                           pawl_work **ret_work,
                           pawl_error *reterr)
{
    char boot_id[PAWL__BOOT_ID_SIZE];

    NEED(ret_work, reterr);
    TRY(pawl__open_location("work store", &location, reterr));
    TRY(pawl__clock_boot_id(boot_id, reterr));
    return pawl__work_open_at(location, options, NULL, boot_id, ret_work, reterr);
}

void pawl_work_interrupt(pawl_work *work)
{
    if (work != NULL) {
        pawl__engine_interrupt(&work->engine);
        pawl_work_cancel_waits(work);
    }
}

/* What was prefetched is given back before the committer ends. */
static void return_prefetched(void *work)
{
    pawl__work_prefetch_stop(((pawl_work *)work)->prefetch);
}

pawl_status pawl_work_close(pawl_work *work, uint32_t timeout_ms, pawl_error *reterr)
{
    if (work == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__calls_check_outside(work, "work", reterr));
    TRY(pawl__work_check_thread(work, reterr));
    if (work->waiters.ready && pawl__watch_has_subscribers(&work->changes)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a subscription to changes is open: end it before the store");
    }
    if (work->engine.watch_ready) {
        pawl_work_cancel_waits(work);
    }
    pawl_status closed =
        pawl__engine_close(&work->engine, timeout_ms, return_prefetched, work, reterr);
    pawl__work_waiters_stop(&work->waiters);
    TRY(closed); /* after TIMEOUT it is leaked: everything acknowledged is on disk */
    if (work->waiters.ready) {
        pawl__work_changes_done(work);
    }
    pawl__work_waiters_done(&work->waiters);
    pawl__engine_done(&work->engine);
    pawl__work_prefetch_free(work->prefetch);
    pawl__work_group_free(work->group);
    if (work->backend != NULL) {
        work->backend->store->close(work->backend);
    }
    free(work);
    return PAWL_OK;
}
