/* Connections and how long a request may take to arrive, and its answer to be read.
 *
 * libmicrohttpd ends a connection on which nothing moves. One that sends or reads a byte now and then it
 * would keep for ever, so a thread looks at them and shuts down the sockets of those that are late. */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/core/macros.h"
#include "net/http/internal.h"

static int64_t now_ns(const struct http_watch *watch)
{
    return pawl__monotonic_ns(watch->clock);
}

/* Shuts down who is late; when to look again. What begins meanwhile cannot be late before the shortest
 * of the times has passed. */
static int64_t look_locked(struct http_watch *watch, int64_t now) REQUIRES_LOCK(watch->lock)
{
    int64_t next = now + MIN(watch->read_ns, watch->answer_ns);

    for (struct http_conn *conn = watch->conns; conn != NULL; conn = conn->next) {
        if (conn->deadline_ns <= now) {
            (void)shutdown(conn->fd, SHUT_RDWR);
            conn->deadline_ns = INT64_MAX;
        }
        next = MIN(next, conn->deadline_ns);
    }
    return next;
}

static void watch_run(void *context)
{
    struct http_watch *watch = context;

    pawl__lock(&watch->lock);
    while (!watch->stop) {
        int64_t now = now_ns(watch);
        int64_t next = look_locked(watch, now);

        pawl__unlock(&watch->lock);
        next = MIN(next, watch->also(watch->context, now));
        pawl__lock(&watch->lock);
        watch->sleeps_until_ns = MIN(next, watch->sleeps_until_ns);
        if (!watch->stop) {
            (void)pawl__cond_wait_until(&watch->changed, &watch->lock, watch->sleeps_until_ns);
        }
        watch->sleeps_until_ns = INT64_MAX;
    }
    pawl__unlock(&watch->lock);
}

pawl_status pawl__http_watch_start(struct http_watch *watch,
                                   const struct pawl__http_options *options,
                                   pawl_error *reterr)
{
    watch->clock = options->clock;
    watch->sleeps_until_ns = INT64_MAX;
    watch->idle_ns = options->idle_ms_max * NS_PER_MS;
    watch->read_ns = options->read_ms_max * NS_PER_MS;
    watch->answer_ns = options->answer_ms_max * NS_PER_MS;
    pawl__lock_cond_init(&watch->lock, &watch->changed);
    pawl_status status =
        pawl__thread_start(&watch->thread, "pawl-http-watch", watch_run, watch, reterr);
    if (status != PAWL_OK) {
        pawl__http_watch_done(watch);
    }
    return status;
}

void pawl__http_watch_stop(struct http_watch *watch)
{
    pawl__lock(&watch->lock);
    watch->stop = true;
    pawl__cond_broadcast(&watch->changed);
    pawl__unlock(&watch->lock);
    pawl__thread_join(&watch->thread);
}

void pawl__http_watch_done(struct http_watch *watch)
{
    pawl__lock_cond_done(&watch->lock, &watch->changed);
}

struct http_conn *pawl__http_conn_open(struct http_watch *watch, int fd)
{
    struct http_conn *conn = calloc(1, sizeof(*conn));

    if (conn == NULL) {
        return NULL;
    }
    pawl__lock(&watch->lock);
    conn->fd = fd;
    conn->deadline_ns = now_ns(watch) + watch->read_ns;
    conn->next = watch->conns;
    if (conn->next != NULL) {
        conn->next->before = conn;
    }
    watch->conns = conn;
    pawl__unlock(&watch->lock);
    return conn;
}

/* The socket is closed behind this, so that nobody shuts down another one of its number. */
void pawl__http_conn_close(struct http_watch *watch, struct http_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    pawl__lock(&watch->lock);
    if (conn->before != NULL) {
        conn->before->next = conn->next;
    } else {
        watch->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->before = conn->before;
    }
    pawl__unlock(&watch->lock);
    free(conn);
}

void pawl__http_conn_begins(struct http_watch *watch,
                            struct http_conn *conn,
                            struct pawl__http_request *request)
{
    pawl__lock(&watch->lock);
    if (conn != NULL) {
        conn->request = request;
        conn->thread = pthread_self();
        conn->deadline_ns = MIN(conn->deadline_ns, now_ns(watch) + watch->read_ns);
    }
    pawl__unlock(&watch->lock);
}

void pawl__http_conn_has_it(struct http_watch *watch, struct http_conn *conn)
{
    pawl__lock(&watch->lock);
    watch->requests++;
    if (conn != NULL) {
        conn->deadline_ns = INT64_MAX;
    }
    pawl__unlock(&watch->lock);
}

void pawl__http_conn_answers(struct http_watch *watch, struct http_conn *conn)
{
    pawl__lock(&watch->lock);
    if (conn != NULL) {
        conn->deadline_ns = now_ns(watch) + watch->answer_ns;
    }
    pawl__unlock(&watch->lock);
}

void pawl__http_conn_waits(struct http_watch *watch, struct http_conn *conn)
{
    pawl__lock(&watch->lock);
    if (conn != NULL) {
        conn->deadline_ns = INT64_MAX;
    }
    pawl__unlock(&watch->lock);
}

void pawl__http_watch_by(struct http_watch *watch, int64_t at_ns)
{
    pawl__lock(&watch->lock);
    if (at_ns < watch->sleeps_until_ns) {
        watch->sleeps_until_ns = at_ns;
        pawl__cond_broadcast(&watch->changed);
    }
    pawl__unlock(&watch->lock);
}

/* The next request may begin when the connection was idle, and is then read. */
void pawl__http_conn_ends(struct http_watch *watch, struct http_conn *conn, bool had_it)
{
    pawl__lock(&watch->lock);
    watch->requests -= had_it;
    if (conn != NULL) {
        conn->request = NULL;
        conn->deadline_ns = now_ns(watch) + watch->idle_ns + watch->read_ns;
    }
    if (watch->requests == 0) {
        pawl__cond_broadcast(&watch->changed);
    }
    pawl__unlock(&watch->lock);
}

bool pawl__http_watch_wait(struct http_watch *watch, int64_t deadline_ns)
{
    bool in_time = true;

    pawl__lock(&watch->lock);
    while (watch->requests > 0 && in_time) {
        in_time = pawl__cond_wait_until(&watch->changed, &watch->lock, deadline_ns);
    }
    in_time = watch->requests == 0;
    pawl__unlock(&watch->lock);
    return in_time;
}
