#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/postgres/internal.h"

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

#define LOOK_NS (100 * NS_PER_MS) /* at a flag that wakes nobody */

/* By a call, or by the flag of the options. */
static bool is_interrupted(const struct pawl__pg *pg)
{
    return atomic_load(&pg->interrupted)
           || (pg->options.interrupted != NULL && atomic_load(pg->options.interrupted));
}

/* Until when to sleep in one piece. */
static int64_t nap_until(const struct pawl__pg *pg, int64_t deadline_ns)
{
    return pg->options.interrupted == NULL || pg->gave_up != PAWL_OK
               ? deadline_ns
               : MIN(deadline_ns, pawl__pg_now_ns(pg) + LOOK_NS);
}

/* False: the deadline passed. */
static bool poll_until(const struct pawl__pg *pg,
                       struct pollfd *fds,
                       size_t count,
                       int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ns = MAX(deadline_ns - pawl__pg_now_ns(pg), 0);
        struct timespec timeout = { .tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S };
        int ready = ppoll(fds, count, &timeout, NULL);

        if (ready >= 0) {
            return ready > 0;
        }
        REQUIRE(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
    }
}

pawl_status pawl__pg_poll(struct pawl__pg *pg, int socket, short events, int64_t deadline_ns)
{
    /* Once a statement is being cancelled the interrupt has done its work. */
    struct pollfd fds[] = {
        { .fd = socket, .events = events },
        { .fd = pg->gave_up == PAWL_OK ? pg->wake_fd : -1, .events = POLLIN },
    };

    while (!poll_until(pg, fds, COUNT_OF(fds), nap_until(pg, deadline_ns))) {
        if (pg->gave_up == PAWL_OK && is_interrupted(pg)) {
            return PAWL_CANCELLED;
        }
        if (pawl__pg_now_ns(pg) >= deadline_ns) {
            return PAWL_TIMEOUT;
        }
    }
    return fds[1].revents != 0 ? PAWL_CANCELLED : PAWL_OK;
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
    if (is_interrupted(pg)) {
        return pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
    }
    if (pg->deadline_ns != 0 && pawl__pg_now_ns(pg) >= pg->deadline_ns) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "the deadline has passed");
    }
    return PAWL_OK;
}

/* The server did not answer for `ms`, or refused: what the next call should know. */
static void note_failure(struct pawl__pg *pg, pawl_status status, int ms)
{
    pg->failed_ms = ms;
    pg->failed = status;
    pg->failed_ns = pawl__pg_now_ns(pg);
}

/* A call that tries twice, and the calls that queue behind it, must not wait twice. So for a moment
 * after a server did not answer nothing is tried, and after it refused only once. */
static pawl_status connect_again(struct pawl__pg *pg, pawl_error *reterr)
{
    int64_t start_ns = pawl__pg_now_ns(pg);
    bool failed_lately = pg->failed != PAWL_OK && start_ns - pg->failed_ns < PG_REST_MS * NS_PER_MS;
    int ms_max = MAX(pg->options.connect_ms_max, pg->options.reconnect_ms_max);
    int64_t limit_ns = start_ns + ms_max * NS_PER_MS;
    int64_t deadline_ns = pg->deadline_ns == 0 ? limit_ns : MIN(limit_ns, pg->deadline_ns);

    if (failed_lately && pg->failed == PAWL_TIMEOUT) {
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "the database server '%s' has stalled: no answer within %d ms "
                          "a moment ago",
                          pg->server.location,
                          pg->failed_ms);
    }
    pawl_status status = pawl__pg_reconnect_until(
        pg,
        failed_lately ? start_ns : start_ns + pg->options.reconnect_ms_max * NS_PER_MS,
        deadline_ns,
        reterr);
    bool cut_short = status == PAWL_TIMEOUT && deadline_ns < limit_ns; /* that says nothing */
    note_failure(pg, cut_short ? PAWL_OK : status, pg->options.connect_ms_max);
    return status;
}

static int64_t answer_ns(const struct pawl__pg *pg)
{
    return pg->options.answer_ms_max * NS_PER_MS;
}

static void hear(struct pawl__pg *pg)
{
    pg->heard_ns = pawl__pg_now_ns(pg);
    pg->probe_ns = pg->heard_ns + answer_ns(pg) / 2;
    pg->unread = false;
    pawl__pg_probe_stop(&pg->probe);
}

pawl_status pawl__pg_ready(struct pawl__pg *pg, pawl_error *reterr)
{
    REQUIRE(!pg->pipeline.open);
    pg->gave_up = PAWL_OK;
    TRY(check_stopped(pg, reterr));
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
    return connect_again(pg, reterr);
}

int64_t pawl__pg_answer_deadline(struct pawl__pg *pg)
{
    hear(pg);
    if (pg->gave_up != PAWL_OK) {
        return pg->patience_ns;
    }
    int64_t deadline_ns = pg->heard_ns + (pg->options.statement_ms_max + PG_GRACE_MS) * NS_PER_MS;
    return pg->deadline_ns == 0 ? deadline_ns : MIN(deadline_ns, pg->deadline_ns);
}

/* Whether what we sent is still moving, over a slow network. */
static bool is_on_its_way(struct pawl__pg *pg)
{
    int before = pg->queued;

    if (ioctl(PQsocket(pg->conn), SIOCOUTQ, &pg->queued) != 0) {
        pg->queued = 0;
    }
    return pg->queued != 0 && pg->queued != before;
}

/* The server runs; its process for this connection may all the same have been stopped. That has to
 * be so until the time for an answer is over: one that has answered meanwhile, or reads late, is
 * heard. */
static bool is_unread(struct pawl__pg *pg)
{
    int64_t ask_ns = MIN(answer_ns(pg) / 4, PG_GRACE_MS * NS_PER_MS);

    pg->unread = !is_on_its_way(pg) && pawl__pg_is_unread(pg, pawl__pg_now_ns(pg) + ask_ns);
    return pg->unread;
}

/* The probe has something to say, or it is time for one. */
static void move_probe(struct pawl__pg *pg, bool ready)
{
    bool runs = pg->probe.fd >= 0;

    if (ready) {
        enum pg_probed probed = pawl__pg_probe_step(&pg->probe);
        if (probed == PG_PROBE_ANSWERED && !is_unread(pg)) {
            hear(pg); /* it is slow, not stalled */
            return;
        }
        runs = probed == PG_PROBE_WAITS;
    } else if (!runs && pawl__pg_now_ns(pg) >= pg->probe_ns) {
        runs = pawl__pg_probe_start(&pg->probe, PQsocket(pg->conn));
    } else {
        return;
    }
    if (!runs) {
        pawl__pg_probe_stop(&pg->probe);
        pg->probe_ns = pawl__pg_now_ns(pg) + answer_ns(pg) / 8;
    }
}

/* OK: the socket is ready. UNAVAILABLE: the server has stalled. CANCELLED and TIMEOUT as for poll. */
static pawl_status await_server(struct pawl__pg *pg, short events, int64_t deadline_ns)
{
    if (pg->gave_up != PAWL_OK) {
        return pawl__pg_poll(pg, PQsocket(pg->conn), events, pg->patience_ns);
    }
    for (;;) {
        int64_t stalled_ns = pg->heard_ns + answer_ns(pg);
        int64_t until_ns = pg->probe.fd >= 0 ? stalled_ns : MIN(stalled_ns, pg->probe_ns);
        struct pollfd fds[] = {
            { .fd = PQsocket(pg->conn), .events = events },
            { .fd = pg->wake_fd, .events = POLLIN },
            { .fd = pg->probe.fd, .events = pawl__pg_probe_events(&pg->probe) },
        };
        bool ready = poll_until(pg, fds, COUNT_OF(fds), nap_until(pg, MIN(until_ns, deadline_ns)));

        if (ready ? fds[1].revents != 0 : is_interrupted(pg)) {
            return PAWL_CANCELLED;
        }
        if (ready && fds[0].revents != 0) {
            hear(pg);
            return PAWL_OK;
        }
        if (!ready && pawl__pg_now_ns(pg) >= deadline_ns) {
            return PAWL_TIMEOUT;
        }
        if (!ready && pawl__pg_now_ns(pg) >= stalled_ns) {
            return PAWL_UNAVAILABLE;
        }
        move_probe(pg, ready);
    }
}

static pawl_status fail_unread(struct pawl__pg *pg, pawl_error *reterr)
{
    int process = pg->session;

    pawl__pg_drop(pg);
    return pawl__fail(reterr,
                      PAWL_TIMEOUT,
                      "process %d of the database server '%s' has stalled: it has not read what "
                      "was sent %d ms ago (store.answer_timeout), though the server answers on a "
                      "new connection",
                      process,
                      pg->server.location,
                      pg->options.answer_ms_max);
}

static pawl_status fail_stalled(struct pawl__pg *pg, pawl_error *reterr)
{
    if (pg->unread) {
        return fail_unread(pg, reterr);
    }
    pawl__pg_drop(pg);
    note_failure(pg, PAWL_TIMEOUT, pg->options.answer_ms_max);
    return pawl__fail(reterr,
                      PAWL_TIMEOUT,
                      "the database server '%s' has stalled: no answer within %d ms "
                      "(store.answer_timeout), neither here nor on a new connection",
                      pg->server.location,
                      pg->options.answer_ms_max);
}

static pawl_status give_up(struct pawl__pg *pg, pawl_status why, pawl_error *reterr)
{
    if (why == PAWL_UNAVAILABLE) {
        return fail_stalled(pg, reterr);
    }
    if (pg->gave_up == PAWL_OK && pg->session != 0) {
        pawl__pg_cancel_running(pg, why);
        return PAWL_OK;
    }
    bool asked = pg->session != 0;
    pawl_status first = pg->gave_up != PAWL_OK ? pg->gave_up : why;
    pawl__pg_drop(pg);
    return pawl__fail(reterr,
                      first,
                      "'%s' does not answer%s; the connection is closed",
                      pg->server.location,
                      asked ? ", not even to a cancel request" : "");
}

pawl_status pawl__pg_step(struct pawl__pg *pg, bool unsent, int64_t deadline_ns, pawl_error *reterr)
{
    pawl_status status = await_server(pg, (short)(unsent ? POLLIN | POLLOUT : POLLIN), deadline_ns);
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
        TRY(pawl__pg_step(pg, unsent > 0, deadline_ns, reterr));
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
        TRY(pawl__pg_next(pg, &result, reterr));
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

    pg->answers_table = false;
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
    /* Nothing here waits: libpq is in its nonblocking mode once it is connected, and says no
     * goodbye before. */
    pawl__pg_probe_stop(&pg->probe);
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->session = 0;
    pg->broken = true;
}
