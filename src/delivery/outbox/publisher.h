/* What the files of pawl_publisher share; for nobody else. */
#ifndef PAWL_DELIVERY_OUTBOX_PUBLISHER_H
#define PAWL_DELIVERY_OUTBOX_PUBLISHER_H

#include <pawl/publisher.h>

#include "base/thread/thread.h"
#include "delivery/core/admission.h"
#include "delivery/outbox/loop.h"
#include "delivery/outbox/store.h"
#include "net/nats/nats.h"

/* The thread of the loop and the caller's handle own it together, because a close that times out leaves the thread
 * behind. Locks are taken in this order. */
struct pawl_publisher {
    struct pawl__lock
        append_lock;        /* one publish at a time: what is new is looked up and appended */
    struct pawl__lock lock; /* covers everything up to the empty line */
    struct pawl__cond changed;
    int owners;
    bool stop;
    bool hurry; /* what failed was put back */
    uint64_t appends;
    struct outbox_progress progress;
    pawl_error broken; /* the loop ended, because the store failed; OK: it did not */

    pawl_publisher_options options; /* set once, like all below; texts are in the arena */
    struct pawl__arena texts;
    struct pawl__nats_options connection;
    struct pawl__clock *clock;
    int64_t opened_ns;
    int64_t ran_ns; /* before it was opened */
    struct outbox_store *store;
    struct outbox_broker *broker; /* NULL: nothing is sent */
    struct outbox_loop *loop;     /* the thread's alone */
    struct pawl__thread thread;
};

/* --- accept.c --- */

PAWL_MUST_USE pawl_status pawl__delivery_publisher_accept(struct pawl_publisher *publisher,
                                                          const pawl_outgoing *events,
                                                          size_t count,
                                                          pawl_published *results,
                                                          pawl_error *reterr);

/* INVALID: it is no source. */
PAWL_MUST_USE pawl_status pawl__delivery_publisher_check_source(pawl_view source,
                                                                pawl_error *reterr);

#endif
