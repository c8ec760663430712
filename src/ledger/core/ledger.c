#include "ledger/core/internal.h"

#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "engine/open.h"
#include "ledger/verify/verify.h"

typedef pawl_status (*backend_open)(const struct pawl__location *location,
                                    const pawl_ledger_options *options,
                                    struct ledger_backend **ret_backend,
                                    pawl_error *reterr);

static const backend_open backends[] = {
    [PAWL__AT_MEMORY] = pawl__ledger_memory_open,
    [PAWL__AT_SQLITE] = pawl__ledger_sqlite_open,
    [PAWL__AT_POSTGRES] = pawl__ledger_postgres_open,
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
    pawl__watch_bump(&ledger->watch);
    return PAWL_OK;
}

pawl_status pawl__ledger_submit(pawl_ledger *ledger,
                                struct ledger_request *request,
                                pawl_error *reterr)
{
    struct pawl__commit_item *item = &request->item;

    if (ledger->commit == NULL) {
        return pawl__fail(reterr, PAWL_DENIED, "the ledger was opened read-only");
    }
    /* The committer's own waits are bounded (busy_ms_max, the server's timeouts), so this is too.
     */
    return pawl__commit_submit(ledger->commit, &item, INT64_MAX, reterr);
}

/* --- the anchor --- */

#define SETTLE_EVERY_NS (500 * NS_PER_MS) /* promised: within a second */

/* Waits for commits, lets some more come, then settles all of them at once. What fails is tried
 * again: the events themselves are durable whatever becomes of the anchor. */
static void settle_main(void *context)
{
    pawl_ledger *ledger = context;
    struct ledger_backend *backend = ledger->backend;
    uint32_t settled = 0;

    while (!pawl__cancelled(&ledger->settler_cancel)) {
        pawl__watch_wait(&ledger->watch, settled, INT64_MAX);
        uint32_t generation = pawl__watch_generation(&ledger->watch);
        int64_t next_ns = pawl__calls_now_ns(&ledger->calls) + SETTLE_EVERY_NS;
        if (!pawl__cancel_wait_until(&ledger->settler_cancel, next_ns)
            && backend->ops->write_anchor(backend, NULL) == PAWL_OK) {
            settled = generation;
        }
    }
}

static pawl_status start_settler(pawl_ledger *ledger, pawl_error *reterr)
{
    TRY(pawl__cancel_init(&ledger->settler_cancel, NULL, reterr));
    ledger->settler_ready = true;
    return pawl__thread_start(&ledger->settler, "pawl-settle", settle_main, ledger, reterr);
}

static void stop_settler(pawl_ledger *ledger)
{
    if (ledger->settler_ready) {
        pawl__cancel_now(&ledger->settler_cancel);
        pawl__watch_bump(&ledger->watch);
        pawl__thread_join(&ledger->settler);
        pawl__cancel_done(&ledger->settler_cancel);
        /* On the closing thread: the settler's handle has no other user any more. */
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
        .clock = ledger->calls.clock,
    };

    options.limits.batch_items_max = LEDGER_GROUP_MAX;
    options.limits.batch_bytes_max = LEDGER_GROUP_BYTES_MAX;
    TRY(pawl__commit_new(&options, &ledger->commit, reterr));
    return ledger->backend->ops->write_anchor == NULL ? PAWL_OK : start_settler(ledger, reterr);
}

pawl_status pawl__ledger_backend_open(const char *location,
                                      const atomic_bool *interrupted,
                                      const pawl_ledger_options *options,
                                      struct ledger_backend **ret_backend,
                                      pawl_error *reterr)
{
    AUTO(pawl__location_done) struct pawl__location parsed = { 0 };

    TRY(pawl__location_parse(location, &parsed, reterr));
    parsed.interrupted = interrupted;
    return backends[parsed.scheme](&parsed, options, ret_backend, reterr);
}

static pawl_status watch_outside(void *context,
                                 int64_t deadline_ns,
                                 struct pawl__cancel *cancel,
                                 pawl_error *reterr)
{
    struct ledger_backend *backend = context;

    return backend->ops->watch(backend, deadline_ns, cancel, reterr);
}

static pawl_status take_options(const pawl_ledger_options *given,
                                pawl_ledger_options *options,
                                pawl_error *reterr)
{
    *options = (pawl_ledger_options)PAWL_LEDGER_OPTIONS_INIT;
    TRY(pawl__take_sized("options", given, options, sizeof(*options), reterr));
    if (options->accept_damage && !options->read_only) {
        return pawl__fail(reterr, PAWL_INVALID, "accept_damage: needs read_only");
    }
    if (options->payload_bytes_max == 0
        || options->payload_bytes_max > LEDGER_PAYLOAD_BYTES_LIMIT) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "payload_bytes_max: is %u, must be 1 to %u",
                          options->payload_bytes_max,
                          LEDGER_PAYLOAD_BYTES_LIMIT);
    }
    return PAWL_OK;
}

static pawl_status open_ledger(pawl_ledger *ledger,
                               const char *location,
                               const pawl_ledger_options *options,
                               pawl_error *reterr)
{
    TRY(take_options(options, &ledger->options, reterr));
    TRY(pawl__calls_init(&ledger->calls, NULL, reterr));
    TRY(pawl__ledger_backend_open(
        location, &ledger->interrupted, &ledger->options, &ledger->backend, reterr));
    if (!ledger->options.accept_damage) {
        TRY(pawl__ledger_verify_ends(ledger->backend, reterr));
    }
    ledger->writer = (struct ledger_writer)LEDGER_WRITER_INIT(ledger->backend);
    TRY(pawl__watch_init(&ledger->watch,
                         ledger->backend->ops->watch == NULL ? NULL : watch_outside,
                         ledger->backend,
                         reterr));
    ledger->watch_ready = true;
    return ledger->options.read_only ? PAWL_OK : start_writing(ledger, reterr);
}

pawl_status pawl_ledger_open(const char *location,
                             const pawl_ledger_options *options,
                             pawl_ledger **ret_ledger,
                             pawl_error *reterr)
{
    NEED(ret_ledger, reterr);
    TRY(pawl__open_location("ledger", &location, reterr));
    pawl_ledger *ledger = calloc(1, sizeof(*ledger));
    if (ledger == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a ledger");
    }
    pawl_status status = open_ledger(ledger, location, options, reterr);
    if (status != PAWL_OK) {
        pawl_ledger_close(ledger);
        return pawl__open_failed("ledger", location, status, reterr);
    }
    *ret_ledger = ledger;
    return PAWL_OK;
}

void pawl_ledger_interrupt(pawl_ledger *ledger)
{
    if (ledger != NULL) {
        atomic_store(&ledger->interrupted, true);
        if (ledger->watch_ready) {
            pawl__watch_bump(&ledger->watch); /* for those who wait for an event */
        }
    }
}

/* All that writes waits for the committer, which answers everybody before it ends: the calls need no
 * count of their own, at whose lock all appending threads would meet. */
static bool stop(void *context, bool drain, int64_t deadline_ns)
{
    pawl_ledger *ledger = context;

    return pawl__commit_stop(ledger->commit, drain, deadline_ns, NULL) == PAWL_OK;
}

static void interrupt(void *context)
{
    pawl_ledger_interrupt(context);
}

void pawl_ledger_close(pawl_ledger *ledger)
{
    const struct pawl__closing closing = {
        .stop = stop, .interrupt = interrupt, .context = ledger, PAWL__CLOSING_DEFAULT
    };

    if (ledger == NULL || pawl__calls_check_outside(ledger, "the ledger", NULL) != PAWL_OK) {
        return;
    }
    if (ledger->commit != NULL && !pawl__close_bounded(&closing, ledger->calls.clock)) {
        return; /* left behind: what was acknowledged is on disk */
    }
    pawl__commit_free(ledger->commit);
    stop_settler(ledger);
    if (ledger->watch_ready) {
        pawl__watch_done(&ledger->watch);
    }
    pawl__ledger_writer_done(&ledger->writer);
    if (ledger->backend != NULL) {
        ledger->backend->ops->close(ledger->backend);
    }
    pawl__calls_done(&ledger->calls);
    free(ledger);
}
