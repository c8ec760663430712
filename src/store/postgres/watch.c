/* News from other processes: a connection of its own that listens. */
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/postgres/store.h"

enum { DRAIN_MAX = 1000 };
#define POLL_NS (50 * NS_PER_MS)

static pawl_status connect_listener(struct pawl__pg_store *store, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    struct pawl__pg_options options = store->options;

    options.application_name = store->listener_name;
    options.statement_count = 0;
    options.cancel = &store->stop;
    options.interrupted = NULL; /* it sleeps for long, and `stop` wakes it */
    TRY(pawl__pg_open(store->url, &options, &pg, reterr));
    TRY(pawl__pg_listen(pg, store->channel, reterr));
    store->listener = STEAL(pg);
    return PAWL_OK;
}

static void stop_waiting(void *context)
{
    struct pawl__pg_store *store = context;

    pawl__cancel_now(&store->stop);
}

/* Waiting threads of this process were woken by its commit. */
static bool is_news(const struct pawl__pg_store *store,
                    const struct pawl__pg_notification *notification)
{
    return notification->missed || store->own_payload == NULL
           || strcmp(notification->payload, store->own_payload) != 0;
}

/* Many commits are one reason to read. */
static void drain(struct pawl__pg *pg)
{
    struct pawl__pg_notification notification;

    for (int i = 0; i < DRAIN_MAX && pawl__pg_wait(pg, 0, &notification, NULL) == PAWL_OK; i++) {
    }
}

static pawl_status wait_for_news(struct pawl__pg_store *store,
                                 int64_t deadline_ns,
                                 pawl_error *reterr)
{
    struct pawl__pg_notification notification;
    pawl_status status;

    if (store->listener == NULL) {
        /* What was committed before this brings no notification: waiting threads read at once. */
        return connect_listener(store, reterr);
    }
    do {
        status = pawl__pg_wait(store->listener, deadline_ns, &notification, reterr);
    } while (status == PAWL_OK && !is_news(store, &notification));
    if (status == PAWL_OK) {
        drain(store->listener);
    }
    return status == PAWL_TIMEOUT || status == PAWL_CANCELLED ? PAWL_OK : status;
}

pawl_status pawl__pg_store_watch(struct pawl__pg_store *store,
                                 int64_t deadline_ns,
                                 struct pawl__cancel *cancel,
                                 pawl_error *reterr)
{
    struct pawl__cancel_link link;

    if (store->connections_max == 1) {
        /* There is no second connection to listen on. */
        int64_t poll_ns = pawl__pg_store_now_ns(store) + POLL_NS;
        pawl__cancel_wait_until(cancel, MIN(deadline_ns, poll_ns));
        return PAWL_OK;
    }
    pawl__cancel_link(cancel, &link, stop_waiting, store);
    pawl_status status = wait_for_news(store, deadline_ns, reterr);
    pawl__cancel_unlink(cancel, &link);
    return status;
}
