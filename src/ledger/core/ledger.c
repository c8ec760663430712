#include "ledger/core/internal.h"

#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/inside.h"
#include "ledger/verify/verify.h"

const struct pawl__backends pawl__ledger_backends = {
    .what = "a ledger",
    .parse = pawl__location_parse,
    .at = { [PAWL__AT_MEMORY] = pawl__ledger_memory_open,
            [PAWL__AT_SQLITE] = pawl__ledger_sqlite_open,
            [PAWL__AT_POSTGRES] = pawl__ledger_postgres_open },
};

/* --- the group commit --- */

static struct ledger_request *request_of(struct pawl__commit_item *item)
{
    return (struct ledger_request *)((char *)item - offsetof(struct ledger_request, item));
}

/* Runs on the committer thread. What it was told to write is durable, or it says otherwise. */
static pawl_status commit_group(void *context,
                                struct pawl__commit_item *const *items,
                                size_t count,
                                pawl_error *reterr)
{
    pawl_ledger *ledger = context;
    struct ledger_request *requests[LEDGER_GROUP_MAX];

    REQUIRE(count <= LEDGER_GROUP_MAX);
    for (size_t i = 0; i < count; i++) {
        requests[i] = request_of(items[i]);
    }
    TRY(pawl__ledger_write_group(&ledger->writer, requests, count, reterr));
    pawl__watch_bump(&ledger->engine.watch);
    return PAWL_OK;
}

pawl_status pawl__ledger_check_may_wait(const pawl_ledger *ledger, pawl_error *reterr)
{
    return pawl__is_inside(ledger->engine.commit)
               ? pawl__fail_detail(reterr,
                                   PAWL_INVALID,
                                   PAWL_DETAIL_WRONG_THREAD,
                                   "called from inside a `done`, which must not wait")
               : PAWL_OK;
}

pawl_status pawl__ledger_submit(pawl_ledger *ledger,
                                struct ledger_request *request,
                                pawl_error *reterr)
{
    TRY(pawl__ledger_check_may_wait(ledger, reterr));
    return pawl__engine_submit(&ledger->engine, &request->item, reterr);
}

/* --- the anchor --- */

#define ANCHOR_EVERY_NS (500 * NS_PER_MS) /* promised: within a second */

/* Waits for a commit, lets more come for a while, then writes the anchor once for all of them. A failed
 * write is tried again: the events are durable whatever becomes of the anchor. */
static void anchor_main(void *context)
{
    pawl_ledger *ledger = context;
    struct ledger_backend *backend = ledger->backend;
    struct pawl__watch *watch = &ledger->engine.watch;
    uint32_t anchored = 0;

    while (!pawl__cancelled(&ledger->anchor_cancel)) {
        pawl__watch_wait(watch, anchored, INT64_MAX);
        uint32_t generation = pawl__watch_generation(watch);
        int64_t next_ns = pawl__calls_now_ns(&ledger->engine.calls) + ANCHOR_EVERY_NS;
        if (!pawl__cancel_wait_until(&ledger->anchor_cancel, next_ns)
            && backend->ops->write_anchor(backend, NULL) == PAWL_OK) {
            anchored = generation;
        }
    }
}

static pawl_status start_anchor_thread(pawl_ledger *ledger, pawl_error *reterr)
{
    pawl__cancel_init(&ledger->anchor_cancel, NULL);
    ledger->anchor_ready = true;
    return pawl__thread_start(&ledger->anchor_thread, "pawl-anchor", anchor_main, ledger, reterr);
}

static void stop_anchor_thread(pawl_ledger *ledger)
{
    if (ledger->anchor_ready) {
        pawl__cancel_now(&ledger->anchor_cancel);
        pawl__watch_bump(&ledger->engine.watch);
        pawl__thread_join(&ledger->anchor_thread);
        pawl__cancel_done(&ledger->anchor_cancel);
        /* The thread's connection has no other user any more. */
        (void)!ledger->backend->ops->write_anchor(ledger->backend, NULL);
    }
}

/* --- open and close --- */

static pawl_status start_writing(pawl_ledger *ledger, pawl_error *reterr)
{
    struct pawl__commit_options options = {
        .name = "ledger",
        .commit = commit_group,
        .context = ledger,
        .limits = PAWL__COMMIT_LIMITS_DEFAULT,
    };

    options.limits.batch_items_max = LEDGER_GROUP_MAX;
    options.limits.batch_bytes_max = LEDGER_GROUP_BYTES_MAX;
    options.limits.async_max = options.limits.waiting_max / 2;
    options.limits.async_bytes_max = LEDGER_ASYNC_BYTES_MAX;
    TRY(pawl__engine_start(&ledger->engine, &options, reterr));
    return ledger->backend->ops->write_anchor == NULL ? PAWL_OK
                                                      : start_anchor_thread(ledger, reterr);
}

static pawl_status watch_outside(void *context,
                                 int64_t deadline_ns,
                                 struct pawl__cancel *cancel,
                                 pawl_error *reterr)
{
    struct ledger_backend *backend = context;

    return backend->ops->watch(backend, deadline_ns, cancel, reterr);
}

pawl_status pawl__ledger_read_options(const pawl_ledger_options *given,
                                      pawl_ledger_options *ret_options,
                                      pawl_error *reterr)
{
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    TRY(pawl__take_sized("options", given, &options, sizeof(options), reterr));
    if (options.accept_damage && !options.read_only) {
        return pawl__fail(reterr, PAWL_INVALID, "accept_damage: needs read_only");
    }
    TRY(pawl__check_option(
        "payload_bytes_max", options.payload_bytes_max, LEDGER_PAYLOAD_BYTES_LIMIT, reterr));
    *ret_options = options;
    return PAWL_OK;
}

static pawl_status open_ledger(pawl_ledger *ledger,
                               const char *location,
                               const pawl_ledger_options *options,
                               struct pawl__clock *clock,
                               pawl_error *reterr)
{
    struct pawl__engine *engine = &ledger->engine;

    TRY(pawl__ledger_read_options(options, &ledger->options, reterr));
    pawl__engine_init(engine, "the ledger", clock);
    TRY(pawl__open_backend(&pawl__ledger_backends,
                           location,
                           &engine->interrupted,
                           &ledger->options,
                           &ledger->backend,
                           reterr));
    if (!ledger->options.accept_damage) {
        TRY(pawl__ledger_verify_ends(ledger->backend, reterr));
    }
    ledger->writer = (struct ledger_writer)LEDGER_WRITER_INIT(ledger->backend);
    pawl__engine_watch(
        engine, ledger->backend->ops->watch == NULL ? NULL : watch_outside, ledger->backend);
    return ledger->options.read_only ? PAWL_OK : start_writing(ledger, reterr);
}

pawl_status pawl__ledger_open_at(const char *location,
                                 const pawl_ledger_options *options,
                                 struct pawl__clock *clock,
                                 pawl_ledger **ret_ledger,
                                 pawl_error *reterr)
{
    pawl_ledger *ledger = calloc(1, sizeof(*ledger));

    if (ledger == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a ledger");
    }
    pawl_status status = open_ledger(ledger, location, options, clock, reterr);
    if (status != PAWL_OK) {
        pawl_ledger_close(ledger, 0, NULL);
        return pawl__open_failed("ledger", location, status, reterr);
    }
    *ret_ledger = ledger;
    return PAWL_OK;
}

pawl_status pawl_ledger_open(const char *location,
                             const pawl_ledger_options *options,
                             pawl_ledger **ret_ledger,
                             pawl_error *reterr)
{
    NEED(ret_ledger, reterr);
    TRY(pawl__open_location("ledger", &location, reterr));
    return pawl__ledger_open_at(location, options, NULL, ret_ledger, reterr);
}

void pawl_ledger_interrupt(pawl_ledger *ledger)
{
    if (ledger != NULL) {
        pawl__engine_interrupt(&ledger->engine);
    }
}

pawl_status pawl_ledger_close(pawl_ledger *ledger, uint32_t timeout_ms, pawl_error *reterr)
{
    if (ledger == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__calls_check_outside(ledger, "the ledger", reterr));
    TRY(pawl__calls_check_outside(ledger->engine.commit, "the ledger", reterr));
    if (ledger->engine.watch_ready && pawl__watch_has_subscribers(&ledger->engine.watch)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a reader that follows is open: free it before the ledger");
    }
    /* After TIMEOUT it is left behind: what was acknowledged is on disk. */
    TRY(pawl__engine_close(&ledger->engine, timeout_ms, NULL, NULL, reterr));
    stop_anchor_thread(ledger);
    pawl__engine_done(&ledger->engine);
    pawl__ledger_writer_done(&ledger->writer);
    if (ledger->backend != NULL) {
        ledger->backend->ops->close(ledger->backend);
    }
    free(ledger);
    return PAWL_OK;
}
