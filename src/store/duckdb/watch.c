#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/duckdb/internal.h"

static const int64_t repeat_ns = 10 * NS_PER_MS;

/* Interrupts what has to end; returns when to check again, 0 for "when somebody says so". */
static int64_t interrupt_due_locked(struct duck_watch *watch, int64_t now_ns)
    REQUIRES_LOCK(watch->lock)
{
    int64_t next_ns = 0;

    for (struct pawl__duck_conn *conn = watch->connections; conn != NULL;
         conn = conn->watched.next) {
        int64_t due_ns = conn->watched.interrupted ? now_ns : conn->watched.deadline_ns;

        if (!conn->watched.running || due_ns == 0) {
            continue;
        }
        if (due_ns <= now_ns) {
            duckdb_interrupt(conn->native);
            due_ns = now_ns + repeat_ns;
        }
        next_ns = next_ns == 0 ? due_ns : MIN(next_ns, due_ns);
    }
    return next_ns;
}

static void watch_run(void *context)
{
    struct duck_watch *watch = context;

    pawl__lock(&watch->lock);
    while (!watch->stop) {
        int64_t next_ns = interrupt_due_locked(watch, pawl__monotonic_ns(watch->clock));

        if (next_ns == 0) {
            pawl__cond_wait(&watch->cond, &watch->lock);
        } else {
            (void)pawl__cond_wait_until(&watch->cond, &watch->lock, next_ns);
        }
    }
    pawl__unlock(&watch->lock);
}

pawl_status pawl__duck_watch_start(struct pawl__duck *db, pawl_error *reterr)
{
    struct duck_watch *watch = &db->watch;

    pawl__lock_cond_init(&watch->lock, &watch->cond);
    pawl_status status =
        pawl__thread_start(&watch->thread, "duckdb-watch", watch_run, watch, reterr);
    db->watching = status == PAWL_OK;
    if (!db->watching) {
        pawl__lock_cond_done(&watch->lock, &watch->cond);
    }
    return status;
}

void pawl__duck_watch_end(struct pawl__duck *db)
{
    struct duck_watch *watch = &db->watch;

    if (!db->watching) {
        return;
    }
    REQUIRE(watch->connections == NULL); /* a connection outlives its database: our bug */
    pawl__lock(&watch->lock);
    watch->stop = true;
    pawl__cond_signal(&watch->cond);
    pawl__unlock(&watch->lock);
    pawl__thread_join(&watch->thread);
    pawl__lock_cond_done(&watch->lock, &watch->cond);
    db->watching = false;
}

void pawl__duck_watch_add(struct pawl__duck_conn *conn)
{
    struct duck_watch *watch = &conn->db->watch;

    pawl__lock(&watch->lock);
    conn->watched.next = watch->connections;
    watch->connections = conn;
    pawl__unlock(&watch->lock);
}

void pawl__duck_watch_remove(struct pawl__duck_conn *conn)
{
    struct duck_watch *watch = &conn->db->watch;

    pawl__lock(&watch->lock);
    struct pawl__duck_conn **link = &watch->connections;
    while (*link != NULL && *link != conn) {
        link = &(*link)->watched.next;
    }
    if (*link != NULL) {
        *link = conn->watched.next;
    }
    pawl__unlock(&watch->lock);
}

void pawl__duck_interrupt(struct pawl__duck_conn *conn)
{
    struct duck_watch *watch = &conn->db->watch;

    pawl__lock(&watch->lock);
    conn->watched.interrupted = true;
    pawl__cond_signal(&watch->cond);
    pawl__unlock(&watch->lock);
}

void pawl__duck_resume(struct pawl__duck_conn *conn)
{
    pawl__lock(&conn->db->watch.lock);
    conn->watched.interrupted = false;
    pawl__unlock(&conn->db->watch.lock);
}

void pawl__duck_set_deadline(struct pawl__duck_conn *conn, int64_t deadline_ns)
{
    pawl__lock(&conn->db->watch.lock);
    conn->watched.deadline_ns = deadline_ns;
    pawl__unlock(&conn->db->watch.lock);
}

static pawl_status enter_locked(struct pawl__duck_conn *conn, pawl_error *reterr)
    REQUIRES_LOCK(conn->db->watch.lock)
{
    int64_t deadline_ns = conn->watched.deadline_ns;

    if (atomic_load(&conn->db->spoilt)) {
        return pawl__fail(reterr,
                          PAWL_IO,
                          "a sync of the directory of '%s' has failed: close and open it again",
                          conn->db->path);
    }
    if (conn->watched.interrupted) {
        return pawl__fail(reterr, PAWL_CANCELLED, "the connection was interrupted");
    }
    if (deadline_ns != 0 && deadline_ns <= pawl__monotonic_ns(conn->db->watch.clock)) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "the deadline of the statement passed");
    }
    conn->watched.running = true;
    if (deadline_ns != 0) {
        pawl__cond_signal(&conn->db->watch.cond);
    }
    return PAWL_OK;
}

pawl_status pawl__duck_enter(struct pawl__duck_conn *conn, pawl_error *reterr)
{
    pawl__lock(&conn->db->watch.lock);
    pawl_status status = enter_locked(conn, reterr);
    pawl__unlock(&conn->db->watch.lock);
    return pawl__duck_note(conn, status, reterr);
}

void pawl__duck_leave(struct pawl__duck_conn *conn)
{
    pawl__lock(&conn->db->watch.lock);
    conn->watched.running = false;
    pawl__unlock(&conn->db->watch.lock);
}
