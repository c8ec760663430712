/* Publishes what the outbox holds. It runs in steps on one thread, and decides by the clock it is given.
 *
 *     link ─► compare the stream with what is kept ─► send, one message a subject ─► collect ─► keep
 *                  └► requeue what was lost                                            read back, forget, trim
 *
 * A broker that cannot be reached is no failure: it is asked again, for ever. */
#ifndef PAWL_DELIVERY_OUTBOX_LOOP_H
#define PAWL_DELIVERY_OUTBOX_LOOP_H

#include "base/os/clock.h"
#include "delivery/outbox/decide.h"

enum {
    OUTBOX_SUBJECTS_MAX = 1024, /* under way at the same time; more take turns */
    OUTBOX_ANSWERS_MAX = 256,   /* of one step */
};

struct outbox_loop_options {
    struct outbox_limits limits;
    int64_t keep_ns;    /* longer than the server takes to sync */
    int64_t check_ns;   /* how often the stream is compared when nothing else asks for it */
    int64_t horizon_ns; /* ids are kept for so long, in running time */
    uint64_t ids_max;   /* and never more of them */
    uint64_t seed;      /* spreads waits */
};

struct outbox_progress {
    bool connected;
    uint64_t published;   /* acknowledged, each entry once per acknowledgement */
    uint64_t duplicates;  /* of these, known to the stream already */
    uint64_t republished; /* lost by the stream, and pending again */
    uint64_t failed;
    uint64_t trimmed; /* ids that were forgotten before the horizon, because there were too many */
    pawl_error error; /* the last thing that went wrong; OK: it is over */
};

struct outbox_loop;

/* Store and broker outlive it. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_loop_new(struct outbox_store *store,
                                                         struct outbox_broker *broker,
                                                         struct pawl__clock *clock,
                                                         const struct outbox_loop_options *options,
                                                         struct outbox_loop **ret_loop,
                                                         pawl_error *reterr);
DEFINE_AUTO(struct outbox_loop *, pawl__delivery_outbox_loop_free)

/* Does what can be done now; waits up to wait_ms for answers when some are missing. A failure is the store's: the
 * broker's are in the progress. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_loop_step(struct outbox_loop *loop,
                                                          int wait_ms,
                                                          pawl_error *reterr);

/* When the next step has something to do, unless an entry is appended before; monotonic. */
int64_t pawl__delivery_outbox_loop_due_ns(const struct outbox_loop *loop);

/* Waits for the broker end: for one who knows that something has changed. */
void pawl__delivery_outbox_loop_hurry(struct outbox_loop *loop);

const struct outbox_progress *pawl__delivery_outbox_loop_progress(const struct outbox_loop *loop);

#endif
