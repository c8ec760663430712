/* News from other nodes: a connection of its own that listens. A notification is only a hint to
 * look; one that was lost with a connection is made up for by the look after the reconnect, and by
 * the one that the watcher takes once a second in any case. */
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "work/postgres/backend.h"

enum { DRAIN_MAX = 1000 };
#define POLL_NS (50 * NS_PER_MS)

static pawl_status open_watcher(struct work_postgres *backend, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    struct pawl__pg_options options = backend->options;

    options.application_name = "pawl work watch";
    options.statement_count = 0;
    options.cancel = &backend->stop;
    options.interrupted = NULL; /* it sleeps for long, and `stop` wakes it */
    pawl_status status = pawl__pg_open(backend->url, &options, &pg, reterr);
    if (status == PAWL_OK) {
        status = pawl__pg_listen(pg, WORK_CHANNEL, reterr);
    }
    if (status == PAWL_OK) {
        backend->watcher = STEAL(pg);
    }
    return status;
}

static void stop_watching(void *context)
{
    struct work_postgres *backend = context;

    pawl__cancel_now(&backend->stop);
}

/* Ours are no news: who waits here was woken when we committed. */
static bool is_news(const struct work_postgres *backend,
                    const struct pawl__pg_notification *notification)
{
    return notification->missed || strcmp(notification->payload, backend->sender) != 0;
}

/* Many commits are one reason to look. */
static void drain(struct pawl__pg *pg)
{
    struct pawl__pg_notification notification;

    for (int i = 0; i < DRAIN_MAX && pawl__pg_wait(pg, 0, &notification, NULL) == PAWL_OK; i++) {
    }
}

static pawl_status wait_for_news(struct work_postgres *backend,
                                 int64_t deadline_ns,
                                 pawl_error *reterr)
{
    struct pawl__pg_notification notification;
    pawl_status status;

    if (backend->watcher == NULL) {
        /* What was committed before this is no news any more: let those who wait look at once. */
        return open_watcher(backend, reterr);
    }
    do {
        status = pawl__pg_wait(backend->watcher, deadline_ns, &notification, reterr);
    } while (status == PAWL_OK && !is_news(backend, &notification));
    if (status == PAWL_OK) {
        drain(backend->watcher);
    }
    return status == PAWL_TIMEOUT || status == PAWL_CANCELLED ? PAWL_OK : status;
}

pawl_status pawl__work_pg_watch(struct work_backend *base,
                                int64_t deadline_ns,
                                struct pawl__cancel *cancel,
                                pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);
    struct pawl__cancel_link link;

    if (backend->connections_max == 1) {
        /* No second connection to listen on: look often instead. */
        int64_t poll_ns = pawl__monotonic_ns(pawl__clock_real()) + POLL_NS;
        pawl__cancel_wait_until(cancel, MIN(deadline_ns, poll_ns));
        return PAWL_OK;
    }
    pawl__cancel_link(cancel, &link, stop_watching, backend);
    pawl_status status = wait_for_news(backend, deadline_ns, reterr);
    pawl__cancel_unlink(cancel, &link);
    return status;
}
