#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres_internal.h"

static int64_t now_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real());
}

void pawl__pg_interrupt(struct pawl__pg *pg)
{
    atomic_store(&pg->interrupted, true);
    eventfd_write(pg->wake_fd, 1); /* fails only when it is readable already */
}

void pawl__pg_resume(struct pawl__pg *pg)
{
    eventfd_t count;

    atomic_store(&pg->interrupted, false);
    eventfd_read(pg->wake_fd, &count);
    if (pawl__cancelled(pg->options.cancel)) {
        pawl__pg_interrupt(pg); /* a token is final */
    }
}

void pawl__pg_set_deadline(struct pawl__pg *pg, int64_t deadline_ns)
{
    pg->deadline_ns = deadline_ns;
}

pawl_status pawl__pg_poll(struct pawl__pg *pg, int socket, short events, int64_t deadline_ns)
{
    /* Once a statement is being cancelled the interrupt has done its work. */
    struct pollfd fds[] = {
        { .fd = socket, .events = events },
        { .fd = pg->gave_up == PAWL_OK ? pg->wake_fd : -1, .events = POLLIN },
    };

    for (;;) {
        int64_t left_ns = MAX(deadline_ns - now_ns(), 0);
        struct timespec timeout = { .tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S };
        int ready = ppoll(fds, COUNT_OF(fds), &timeout, NULL);

        if (ready > 0) {
            return fds[1].revents != 0 ? PAWL_CANCELLED : PAWL_OK;
        }
        if (ready == 0) {
            return PAWL_TIMEOUT;
        }
        REQUIRE(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
    }
}

/* A link that died while nobody looked is better found before something is sent on it. */
static void notice_hang_up(struct pawl__pg *pg)
{
    struct pollfd fd = { .fd = PQsocket(pg->conn), .events = POLLIN };

    while (!pg->broken && poll(&fd, 1, 0) > 0) {
        if (PQconsumeInput(pg->conn) == 0) {
            pg->broken = true;
            return;
        }
        (void)PQisBusy(pg->conn); /* reads: a server that shuts down says so in a notice */
    }
}

static pawl_status check_stopped(struct pawl__pg *pg, pawl_error *reterr)
{
    if (atomic_load(&pg->interrupted)) {
        return pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
    }
    if (pg->deadline_ns != 0 && now_ns() >= pg->deadline_ns) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "the deadline has passed");
    }
    return PAWL_OK;
}

pawl_status pawl__pg_ready(struct pawl__pg *pg, pawl_error *reterr)
{
    REQUIRE(!pg->pipeline.open);
    pg->gave_up = PAWL_OK;
    pawl_status status = check_stopped(pg, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (pg->in_transaction) {
        return !pg->broken ? PAWL_OK
                           : pawl__fail(reterr,
                                        PAWL_UNAVAILABLE,
                                        "the connection to '%s' was lost in this transaction: "
                                        "nothing of it is stored, start it again",
                                        pg->server.location);
    }
    if (!pg->broken) {
        notice_hang_up(pg);
    }
    if (!pg->broken) {
        return PAWL_OK;
    }
    int64_t deadline_ns = now_ns() + pg->options.reconnect_ms_max * NS_PER_MS;
    return pawl__pg_reconnect_until(
        pg, pg->deadline_ns == 0 ? deadline_ns : MIN(deadline_ns, pg->deadline_ns), reterr);
}

int64_t pawl__pg_answer_deadline(const struct pawl__pg *pg)
{
    if (pg->gave_up != PAWL_OK) {
        return pg->patience_ns;
    }
    int64_t deadline_ns = now_ns() + (pg->options.statement_ms_max + PG_GRACE_MS) * NS_PER_MS;
    return pg->deadline_ns == 0 ? deadline_ns : MIN(deadline_ns, pg->deadline_ns);
}

/* Asks the server to stop the running statement, over a second connection. That is bounded by
 * tcp_user_timeout, which we set; it does not come back before the server has been told, so the
 * request cannot hit a later statement. */
static void request_cancel(struct pawl__pg *pg, pawl_status why)
{
    char ignored[256];
    PGcancel *cancel = PQgetCancel(pg->conn);

    pg->gave_up = why;
    if (cancel != NULL) {
        PQcancel(cancel, ignored, sizeof(ignored));
        PQfreeCancel(cancel);
    }
    pg->patience_ns = now_ns() + PG_GRACE_MS * NS_PER_MS;
}

void pawl__pg_cancel_running(struct pawl__pg *pg)
{
    request_cancel(pg, PAWL_CANCELLED);
}

static pawl_status give_up(struct pawl__pg *pg, pawl_status why, pawl_error *reterr)
{
    if (pg->gave_up == PAWL_OK) {
        request_cancel(pg, why);
        return PAWL_OK;
    }
    pawl_status first = pg->gave_up;
    pawl__pg_drop(pg);
    return pawl__fail(
        reterr,
        first,
        "'%s' does not answer, not even to a cancel request; the connection is closed",
        pg->server.location);
}

pawl_status pawl__pg_step(struct pawl__pg *pg, bool unsent, int64_t deadline_ns, pawl_error *reterr)
{
    short events = (short)(unsent ? POLLIN | POLLOUT : POLLIN);
    pawl_status status = pawl__pg_poll(
        pg, PQsocket(pg->conn), events, pg->gave_up == PAWL_OK ? deadline_ns : pg->patience_ns);
    if (status != PAWL_OK) {
        return give_up(pg, status, reterr);
    }
    if (PQconsumeInput(pg->conn) == 0) {
        pg->broken = true; /* what was received before may still be read */
    }
    return PAWL_OK;
}

pawl_status pawl__pg_next(struct pawl__pg *pg, PGresult **ret_result, pawl_error *reterr)
{
    int64_t deadline_ns = 0;

    while (PQisBusy(pg->conn)) {
        if (deadline_ns == 0) {
            deadline_ns = pawl__pg_answer_deadline(pg);
        }
        int unsent = PQflush(pg->conn);
        if (unsent < 0) {
            return pawl__pg_fail_link(pg, reterr);
        }
        pawl_status status = pawl__pg_step(pg, unsent > 0, deadline_ns, reterr);
        if (status != PAWL_OK) {
            return status;
        }
    }
    *ret_result = PQgetResult(pg->conn);
    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        pg->broken = true;
    }
    return PAWL_OK;
}

pawl_status pawl__pg_answer(struct pawl__pg *pg, PGresult **ret_result, pawl_error *reterr)
{
    AUTO(pawl__pg_result_clear) PGresult *kept = NULL;
    pawl_status outcome = PAWL_OK;

    for (;;) {
        AUTO(pawl__pg_result_clear) PGresult *result = NULL;
        pawl_status status = pawl__pg_next(pg, &result, reterr);
        if (status != PAWL_OK) {
            return status;
        }
        if (result == NULL) {
            break;
        }
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COPY_IN || kind == PGRES_COPY_OUT || kind == PGRES_COPY_BOTH) {
            pawl__pg_drop(pg); /* it would wait for data for ever */
            return pawl__fail(reterr, PAWL_FAILED, "COPY is not for this interface");
        }
        if (outcome == PAWL_OK && kind != PGRES_TUPLES_OK && kind != PGRES_COMMAND_OK
            && kind != PGRES_EMPTY_QUERY) {
            outcome = pawl__pg_fail_result(pg, result, reterr); /* the first is the cause */
        }
        PQclear(kept);
        kept = STEAL(result);
    }
    if (outcome != PAWL_OK) {
        return outcome;
    }
    if (kept == NULL || pg->broken) {
        return pawl__pg_fail_link(pg, reterr);
    }
    *ret_result = STEAL(kept);
    return PAWL_OK;
}

pawl_status pawl__pg_simple(struct pawl__pg *pg, const char *sql, pawl_error *reterr)
{
    AUTO(pawl__pg_result_clear) PGresult *result = NULL;

    if (PQsendQuery(pg->conn, sql) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    return pawl__pg_answer(pg, &result, reterr);
}

void pawl__pg_drop(struct pawl__pg *pg)
{
    if (pg->notification != NULL) {
        PQfreemem(pg->notification);
        pg->notification = NULL;
    }
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->broken = true;
}
