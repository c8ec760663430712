#include "net/h2/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "net/h2/conn.h"

enum { EVENTS_MAX = 64 };

bool pawl__h2_loop_is_mine(const struct pawl__h2_loop *loop)
{
    return atomic_load(&loop->thread_number) == pawl__thread_number();
}

int64_t pawl__h2_loop_now(struct pawl__h2_loop *loop)
{
    return pawl__monotonic_ns(loop->clock);
}

static void wake(struct pawl__h2_loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->event_fd, &one, sizeof(one));
    (void)written; /* full: it is awake */
}

bool pawl__h2_loop_post(struct pawl__h2_loop *loop, struct pawl__h2_post *post)
{
    post->next = NULL;
    pawl__lock(&loop->lock);
    bool taken = !loop->ended;
    bool first = loop->first == NULL;
    if (taken) {
        *loop->last = post;
        loop->last = &post->next;
    }
    pawl__unlock(&loop->lock);
    if (taken && first) {
        wake(loop);
    }
    return taken;
}

void pawl__h2_loop_stop(struct pawl__h2_loop *loop)
{
    pawl__lock(&loop->lock);
    loop->stop = true;
    pawl__unlock(&loop->lock);
    wake(loop);
}

struct loop_call {
    struct pawl__h2_post post;
    struct pawl__lock lock;
    struct pawl__cond done_cond;
    bool done;
    void (*run)(void *context);
    void *context;
};

static void run_call(struct pawl__h2_post *post)
{
    struct loop_call *call = (struct loop_call *)post;

    call->run(call->context);
    pawl__lock(&call->lock);
    call->done = true;
    pawl__cond_signal(&call->done_cond);
    pawl__unlock(&call->lock);
}

bool pawl__h2_loop_call(struct pawl__h2_loop *loop, void (*run)(void *context), void *context)
{
    struct loop_call call = { .post.run = run_call, .run = run, .context = context };

    REQUIRE(!pawl__h2_loop_is_mine(loop));
    pawl__lock_cond_init(&call.lock, &call.done_cond);
    bool taken = pawl__h2_loop_post(loop, &call.post);
    if (taken) {
        pawl__lock(&call.lock);
        while (!call.done) {
            pawl__cond_wait(&call.done_cond, &call.lock);
        }
        pawl__unlock(&call.lock);
    }
    pawl__lock_cond_done(&call.lock, &call.done_cond);
    return taken;
}

/* What other threads have posted; false: the loop is to end. */
static bool run_posts(struct pawl__h2_loop *loop)
{
    pawl__lock(&loop->lock);
    struct pawl__h2_post *post = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    loop->ended = loop->stop && post == NULL;
    bool ended = loop->ended;
    pawl__unlock(&loop->lock);
    while (post != NULL) {
        struct pawl__h2_post *next = post->next;
        post->run(post); /* may free it */
        post = next;
    }
    return !ended;
}

bool pawl__h2_loop_adopt(struct pawl__h2_loop *loop)
{
    if (!pawl__h2_timers_reserve(&loop->timers, loop->timer_owners + 1)) {
        return false;
    }
    loop->timer_owners++;
    return true;
}

void pawl__h2_loop_release(struct pawl__h2_loop *loop, struct pawl__h2_timer *timer)
{
    pawl__h2_timer_remove(&loop->timers, timer);
    loop->timer_owners--;
}

static void run_timers(struct pawl__h2_loop *loop)
{
    int64_t now_ns = pawl__h2_loop_now(loop);
    struct pawl__h2_timer *timer = NULL;

    while ((timer = pawl__h2_timers_pop(&loop->timers, now_ns)) != NULL) {
        timer->fire(timer, now_ns);
    }
}

static int wait_ms(struct pawl__h2_loop *loop)
{
    int64_t next_ns = pawl__h2_timers_next(&loop->timers);
    if (loop->dirty != NULL) {
        return 0; /* a connection has more to read than one round takes */
    }
    if (next_ns == INT64_MAX) {
        return -1;
    }
    int64_t left_ns = next_ns - pawl__h2_loop_now(loop);
    if (left_ns <= 0) {
        return 0;
    }
    /* Rounded up: waking too early would only wait again. */
    return (int)MIN((left_ns + NS_PER_MS - 1) / NS_PER_MS, (int64_t)60000);
}

static void run_events(struct pawl__h2_loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t count = 0;

    int found = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, wait_ms(loop));
    for (int i = 0; i < found; i++) {
        struct pawl__h2_source *source = events[i].data.ptr;
        if (source == NULL) {
            ssize_t got = read(loop->event_fd, &count, sizeof(count));
            (void)got;
        } else {
            source->ready(source, events[i].events);
        }
    }
}

/* Connections are freed at the end of a round only (pawl__h2_conn_flush_dirty): an event of this round may name one. */
static void run_loop(void *context)
{
    struct pawl__h2_loop *loop = context;

    atomic_store(&loop->thread_number, pawl__thread_number());
    while (run_posts(loop)) {
        run_events(loop);
        run_timers(loop);
        pawl__h2_conn_flush_dirty(loop);
    }
}

static pawl_status open_fds(struct pawl__h2_loop *loop, pawl_error *reterr)
{
    struct epoll_event event = { .events = EPOLLIN };

    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0
        || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &event) != 0) {
        return pawl__fail_errno(reterr, errno, "wait for sockets");
    }
    return PAWL_OK;
}

pawl_status pawl__h2_loop_start(struct pawl__h2_loop *loop,
                                const char *name,
                                struct pawl__clock *clock,
                                pawl_error *reterr)
{
    *loop = (struct pawl__h2_loop){ .epoll_fd = -1,
                                    .event_fd = -1,
                                    .clock = pawl__clock_or_real(clock) };
    loop->last = &loop->first;
    pawl__lock_init(&loop->lock);
    pawl_status status = open_fds(loop, reterr);
    loop->in = status == PAWL_OK ? malloc(PAWL__H2_IN_SIZE) : NULL;
    if (status == PAWL_OK) {
        status = pawl__check_memory(loop->in, "an HTTP/2 thread", reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__thread_start(&loop->thread, name, run_loop, loop, reterr);
    }
    if (status != PAWL_OK) {
        pawl__h2_loop_done(loop);
    }
    return status;
}

bool pawl__h2_loop_join(struct pawl__h2_loop *loop, int64_t deadline_ns)
{
    return !loop->thread.started || pawl__thread_join_until(&loop->thread, deadline_ns);
}

void pawl__h2_loop_done(struct pawl__h2_loop *loop)
{
    if (loop->clock == NULL) {
        return; /* never began */
    }
    pawl__fs_close(&loop->epoll_fd);
    pawl__fs_close(&loop->event_fd);
    pawl__h2_timers_done(&loop->timers);
    free(loop->in);
    free(loop->spare_out);
    pawl__lock_done(&loop->lock);
    loop->clock = NULL;
}
