/* What the files of the loop share; for nobody else. */
#ifndef PAWL_DELIVERY_OUTBOX_LOOP_INTERNAL_H
#define PAWL_DELIVERY_OUTBOX_LOOP_INTERNAL_H

#include "base/core/map.h"
#include "base/core/random.h"
#include "delivery/outbox/loop.h"

struct outbox_slot {
    char subject[OUTBOX_SUBJECT_SIZE]; /* empty: free */
    char stream[OUTBOX_STREAM_SIZE];
    int64_t created_ns; /* of the stream */
    bool idle;          /* had nothing pending when it was looked at last */
    struct outbox_subject state;
};

struct outbox_loop {
    struct outbox_store *store;
    struct outbox_broker *broker;
    struct pawl__clock *clock;
    struct outbox_loop_options options;
    struct pawl__prng random;
    struct outbox_progress progress;
    uint64_t outbox; /* its name in messages */

    struct outbox_link link; /* number 0: none */
    bool compared;           /* the streams, on this link */
    uint32_t link_attempts;
    int64_t wait_until_ns; /* for the broker */
    int64_t check_at_ns;
    int64_t sync_at_ns;

    struct outbox_slot *slots; /* OUTBOX_SUBJECTS_MAX */
    struct pawl__map *by_subject;
    size_t used; /* slots below it have been used */
    size_t hand; /* the slot that is given up next */
    size_t under_way;
    uint64_t scanned; /* the last number when subjects were looked for */
    bool rescan;

    struct outbox_read read;
    struct pawl__buf text;
    struct outbox_answer answers[OUTBOX_ANSWERS_MAX];
};

int64_t pawl__delivery_outbox_loop_now(const struct outbox_loop *loop);

/* The broker failed: noted, and asked again later. Statuses that are not its own (NOMEM) are returned. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_loop_suffer(struct outbox_loop *loop,
                                                            const pawl_error *error,
                                                            pawl_error *reterr);

/* --- loop_compare.c --- */

/* Compares every stream with what is kept of it and requeues what it lost. *ret_done false: the broker failed. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_loop_compare(struct outbox_loop *loop,
                                                             bool *ret_done,
                                                             pawl_error *reterr);

/* Forgets what is ripe and read back, and ids beyond the horizon. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_loop_forget(struct outbox_loop *loop,
                                                            bool *ret_done,
                                                            pawl_error *reterr);

#endif
