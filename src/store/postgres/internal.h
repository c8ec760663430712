/* What the files of the PostgreSQL wrapper share; nobody else includes it.
 *
 *   error.c     SQLSTATE and lost links become ours
 *   wire.c      waiting: sockets, deadlines, interrupts
 *   probe.c     whether a silent server has stalled
 *   cancel.c    asking the server to stop a statement, or whether it was read at all
 *   value.c     parameters and columns in binary form
 *   connect.c   connect, session settings, reconnect
 *   prepare.c   the table of statements
 *   postgres.c  statements and transactions
 *   pipeline.c  pipelines
 *   listen.c    LISTEN and NOTIFY
 *   migrate.c   the migration runner's methods
 *
 * The socket never blocks: libpq runs in its nonblocking mode, and all waiting is in one function.
 */
#ifndef PAWL_STORE_POSTGRES_INTERNAL_H
#define PAWL_STORE_POSTGRES_INTERNAL_H

#include <libpq-fe.h>
#include <stdatomic.h>

#include "store/postgres/postgres.h"

enum {
    PG_STATEMENTS_MAX = 256,
    PG_WINDOW = 2048, /* statements of a pipeline that were sent and not answered */
    PG_UNSENT_MAX =
        64 << 10, /* bytes that may wait in libpq before a pipeline stops to send them */
    PG_REST_BYTES_MAX = 1 << 20, /* of an answer that nobody wants, before it is cancelled */
    PG_OWN_WORD = UINT16_MAX,    /* in the window: BEGIN or COMMIT, no statement of the table */
    PG_GRACE_MS = 2000,          /* how much longer than the server's own timeout we wait for it */
    PG_REST_MS = 1000, /* after a server did not answer, so long the next call does not try */
};

/* A second connection that asks whether the server is there at all. */
struct pg_probe {
    int fd; /* -1: none */
    bool asked;
};

enum pg_probed { PG_PROBE_WAITS, PG_PROBE_ANSWERED, PG_PROBE_FAILED };

struct pg_prepared {
    char name[24];
    size_t param_count;
};

struct pg_pipeline {
    bool open;
    bool server_failed; /* the server skips everything up to the sync */
    bool refused;       /* ... because it refused a statement, and has not gone away */
    bool synced;        /* the sync was sent, which commits */
    size_t begun;       /* 1: it began with a BEGIN of its own, which no on_rows sees */
    size_t commit_at;   /* the number of its COMMIT; SIZE_MAX: none */
    bool committed;     /* which was answered */
    pawl__pg_on_rows *on_rows;
    void *context;
    size_t added;
    size_t answered;
    size_t unsent;              /* bytes since the output was last known to be empty */
    pawl_error failure;         /* the first; status OK: none yet */
    uint16_t window[PG_WINDOW]; /* the statement of number n is in window[n % PG_WINDOW] */
};

struct pawl__pg {
    PGconn *conn; /* NULL: none */
    bool broken;  /* conn is NULL or of no more use */
    bool in_transaction;
    bool answers_table; /* what was sent last is a statement of the table, and no other text */
    int wake_fd;        /* readable after an interrupt */
    struct pawl__cancel_link cancel_link;
    atomic_bool interrupted;
    int64_t deadline_ns;
    pawl_status gave_up; /* why the running statement was cancelled; OK: it was not */
    int64_t patience_ns; /* when a cancelled statement must have answered */
    int64_t heard_ns;    /* when the server last gave a sign of life, or the wait for it began */
    int64_t probe_ns;    /* when a silent server is asked (again) whether it is there */
    struct pg_probe probe;
    bool unread;        /* the server is there, but its process has not read what we sent */
    int queued;         /* bytes that the kernel had not delivered when that was last asked */
    int session;        /* the server's process; 0: not connected, or not yet set up */
    int64_t started_us; /* when that process did: a pid alone may be anybody's */
    size_t host;        /* of the URL's: where the connection is */
    const char
        *address;      /* connects there, whatever the host's name means now; NULL: asks the name */
    int64_t failed_ns; /* when connecting again, or waiting, last failed, ... */
    pawl_status failed; /* ... and how; OK: it did not */
    int failed_ms;      /* ... after how long without an answer */

    PQconninfoOption *target; /* the URL in pieces; holds the password */
    char *namespace;
    char *application_name;
    bool opened;                     /* migrated and prepared once: a reconnect prepares again */
    struct pawl__pg_options options; /* defaults filled in; the texts are those above */
    struct pawl__pg_server server;
    struct pg_prepared *prepared; /* options.statement_count of them */
    struct pg_pipeline pipeline;

    char *channels[PAWL__PG_CHANNELS_MAX];
    size_t channel_count;
    bool missed;
    PGnotify *notification; /* the one the caller is looking at */
};

/* error.c          */

/* The server ends the session after it has said this. */
bool pawl__pg_is_fatal(const PGresult *result);

/* A failed result: the server's message and the constraint it names; a lost link when there is
 * none. Marks the connection broken where the server has ended it. */
pawl_status pawl__pg_fail_result(struct pawl__pg *pg, const PGresult *result, pawl_error *reterr);

/* The connection is of no more use; says why as far as libpq knows. */
pawl_status pawl__pg_fail_link(struct pawl__pg *pg, pawl_error *reterr);

/* A connection that could not be made. */
pawl_status pawl__pg_fail_connect(const PGconn *conn, pawl_error *reterr);

/* After a failure of the last word of a transaction: whether it was stored is not known. */
pawl_status pawl__pg_fail_unknown(pawl_error *reterr, const char *what);

/* wire.c          */

/* Waits for the socket (`events` as for poll), the interrupt or the deadline: OK, CANCELLED or
 * TIMEOUT without a message. A socket of -1 waits for the other two. */
pawl_status pawl__pg_poll(struct pawl__pg *pg, int socket, short events, int64_t deadline_ns);

/* Monotonic, on the clock of the options. */
static inline int64_t pawl__pg_now_ns(const struct pawl__pg *pg)
{
    return pawl__monotonic_ns(pg->options.clock);
}

/* Before anything is sent: not interrupted, not too late, connected (again, outside a transaction).
 */
pawl_status pawl__pg_ready(struct pawl__pg *pg, pawl_error *reterr);

/* A wait for an answer begins: when it has to be there. */
int64_t pawl__pg_answer_deadline(struct pawl__pg *pg);

/* Waits until there is something to read, or until the socket takes what its caller could not send
 * (`unsent`), and reads. It sends nothing itself: a caller that waits only for its output to go out
 * would sleep through the flush that emptied it, and a server that owes no answer never wakes it.
 * At the deadline or an interrupt it cancels the statement and gives it a moment to say so; then
 * the link is lost. It is lost at once when the server is silent for options.answer_ms_max and does
 * not answer the probe either. */
pawl_status pawl__pg_step(struct pawl__pg *pg,
                          bool unsent,
                          int64_t deadline_ns,
                          pawl_error *reterr);

/* The next result of libpq, which is NULL at the end of each statement. */
pawl_status pawl__pg_next(struct pawl__pg *pg, PGresult **ret_result, pawl_error *reterr);

/* The only result of a statement that was sent outside a pipeline; it succeeded. */
pawl_status pawl__pg_answer(struct pawl__pg *pg, PGresult **ret_result, pawl_error *reterr);

/* Runs one of our own texts, or several without results. Connects nothing. */
pawl_status pawl__pg_simple(struct pawl__pg *pg, const char *sql, pawl_error *reterr);

void pawl__pg_drop(struct pawl__pg *pg); /* closes the link; what was open on it is gone */

/* probe.c          */

/* To the server at the other end of this socket. False: that failed, which says nothing yet. */
bool pawl__pg_probe_start(struct pg_probe *probe, int socket_of_link);
short pawl__pg_probe_events(const struct pg_probe *probe);  /* what to poll for */
enum pg_probed pawl__pg_probe_step(struct pg_probe *probe); /* after poll said that it is ready */
void pawl__pg_probe_stop(struct pg_probe *probe);

/* cancel.c          */

/* Asks the server to stop the running statement, whose answer is still to be read: within
 * PG_GRACE_MS from now, asking included, or the link is lost. A server that has no connection left to
 * be asked on (max_connections) is not asked: the link is lost then, and the server ends the statement
 * at its statement_timeout. */
void pawl__pg_cancel_running(struct pawl__pg *pg, pawl_status why);

/* For a connection that waits for an answer: whether its process on the server waits for us instead,
 * as one that was stopped does. False also where that cannot be asked by the deadline. */
bool pawl__pg_is_unread(const struct pawl__pg *pg, int64_t deadline_ns);

/* value.c          */

struct pg_bound {
    const char *data[PAWL__PG_PARAMS_MAX];
    int lengths[PAWL__PG_PARAMS_MAX];
    int formats[PAWL__PG_PARAMS_MAX];
    uint64_t words[PAWL__PG_PARAMS_MAX]; /* what `data` of fixed-width values points to */
    size_t bytes;
};

pawl_status pawl__pg_bind(const char *types,
                          const struct pawl__pg_value *values,
                          size_t count,
                          struct pg_bound *bound,
                          pawl_error *reterr);
Oid pawl__pg_param_type(char letter);
bool pawl__pg_column_fits(char letter, Oid type);

/* Takes the result over. */
struct pawl__pg_rows pawl__pg_rows_of(PGresult *result, const char *columns);

/* connect.c          */

/* Connects again and sets the session up, by the deadline; an attempt that failed quickly is repeated
 * until `again_ns`. */
pawl_status pawl__pg_reconnect_until(struct pawl__pg *pg,
                                     int64_t again_ns,
                                     int64_t deadline_ns,
                                     pawl_error *reterr);

/* Connects to host number `host` of the URL, without setting the session up. */
pawl_status pawl__pg_connect_host(struct pawl__pg *pg,
                                  size_t host,
                                  int64_t deadline_ns,
                                  pawl_error *reterr);

/* prepare.c          */

/* Prepares the whole table in one round trip and checks its types. */
pawl_status pawl__pg_prepare_all(struct pawl__pg *pg, pawl_error *reterr);

/* postgres.c */

/* Sends a prepared statement; `statement` is not of the table and not prepared when `name` is NULL.
 */
pawl_status pawl__pg_send(struct pawl__pg *pg,
                          const struct pawl__pg_statement *statement,
                          const char *name,
                          const struct pg_bound *bound,
                          size_t count);

/* Sends one of our own texts and waits for its rows; outside the table, connects nothing. */
pawl_status pawl__pg_query(struct pawl__pg *pg,
                           const struct pawl__pg_statement *statement,
                           const struct pawl__pg_value *values,
                           size_t count,
                           struct pawl__pg_rows *ret_rows,
                           pawl_error *reterr);

/* listen.c          */
pawl_status pawl__pg_listen_again(struct pawl__pg *pg, pawl_error *reterr);

static inline void pawl__pg_result_clear(PGresult **result) /* for AUTO */
{
    PQclear(*result);
}

#endif
