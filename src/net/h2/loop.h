/* A thread that waits for sockets, timers and work from other threads. What it owns, only it touches. */
#ifndef PAWL_NET_H2_LOOP_H
#define PAWL_NET_H2_LOOP_H

#include <stdatomic.h>

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "net/h2/core/timer.h"

/* A socket that is waited for. */
struct pawl__h2_source {
    void (*ready)(struct pawl__h2_source *source, uint32_t events);
};

/* Work of another thread, run in the order in which it was posted. Belongs to who posts it. */
struct pawl__h2_post {
    struct pawl__h2_post *next;
    void (*run)(struct pawl__h2_post *post);
};

struct pawl__h2_conn;

struct pawl__h2_loop {
    struct pawl__lock lock; /* covers first, last, stop and ended */
    struct pawl__h2_post *first;
    struct pawl__h2_post **last;
    bool stop;
    bool ended; /* nothing runs posts any more */
    /* the thread's own */
    int epoll_fd;
    int event_fd;
    struct pawl__h2_timers timers;
    size_t timer_owners;         /* that may set one each: there is room for so many */
    struct pawl__h2_conn *dirty; /* have something to send at the end of the round */
    char *in;                    /* what was read last; PAWL__H2_IN_SIZE bytes */
    char *spare_out;             /* a buffer for output that no connection uses; NULL: none */
    struct pawl__clock *clock;
    atomic_uint_fast64_t thread_number; /* 0: it has not begun */
    struct pawl__thread thread;
};

enum { PAWL__H2_IN_SIZE = 64 * 1024 };

PAWL_MUST_USE pawl_status pawl__h2_loop_start(struct pawl__h2_loop *loop,
                                              const char *name,
                                              struct pawl__clock *clock,
                                              pawl_error *reterr);
/* Asks it to end after the posts that are there. */
void pawl__h2_loop_stop(struct pawl__h2_loop *loop);
/* Waits for its end; false: it still runs at the monotonic deadline. */
PAWL_MUST_USE bool pawl__h2_loop_join(struct pawl__h2_loop *loop, int64_t deadline_ns);
void pawl__h2_loop_done(struct pawl__h2_loop *loop); /* it has ended, or never began */

/* False: it has ended, and `post` will not be run. */
PAWL_MUST_USE bool pawl__h2_loop_post(struct pawl__h2_loop *loop, struct pawl__h2_post *post);
bool pawl__h2_loop_is_mine(const struct pawl__h2_loop *loop);
int64_t pawl__h2_loop_now(struct pawl__h2_loop *loop);

/* On the loop's thread: somebody who has a timer comes, false without memory, and goes. */
PAWL_MUST_USE bool pawl__h2_loop_adopt(struct pawl__h2_loop *loop);
void pawl__h2_loop_release(struct pawl__h2_loop *loop, struct pawl__h2_timer *timer);

/* Runs `run(context)` on the loop and waits for it; not from the loop itself. False: it has ended. */
PAWL_MUST_USE bool pawl__h2_loop_call(struct pawl__h2_loop *loop,
                                      void (*run)(void *context),
                                      void *context);

#endif
