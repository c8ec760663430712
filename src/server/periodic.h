/* A thread that does something again and again until it is stopped. */
#ifndef PAWL_SERVER_PERIODIC_H
#define PAWL_SERVER_PERIODIC_H

#include "base/thread/cancel.h"

struct node_periodic {
    const char *name; /* for the message of a thread that does not end */
    /* Returns the monotonic time of the next call. May take as long as a store does. */
    int64_t (*run)(void *context);
    void *context;

    struct pawl__cancel stop;
    struct pawl__thread thread;
};

/* The first three fields are set. Calls `run` at once. */
PAWL_MUST_USE pawl_status pawl__serve_periodic_start(struct node_periodic *periodic,
                                                     const char *thread_name,
                                                     pawl_error *reterr);

/* No further call begins. Does not wait. */
void pawl__serve_periodic_cancel(struct node_periodic *periodic);

/* TIMEOUT: a call does not come back; the thread and what it uses stay. */
PAWL_MUST_USE pawl_status pawl__serve_periodic_stop(struct node_periodic *periodic,
                                                    int64_t deadline_ns,
                                                    pawl_error *reterr);
/* When it is stopped, and after a start that failed. */
void pawl__serve_periodic_done(struct node_periodic *periodic);

#endif
