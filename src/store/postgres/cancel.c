/* Stopping a statement. libpq's own way (PQcancel) blocks for as long as the server does not answer,
 * which is for ever when it has stalled. So this is a connection like any other, with a deadline,
 * that calls pg_cancel_backend; it does not come back before the statement's process was told, so
 * the request cannot hit a later statement.
 *
 * Nor another's: it goes to the address of the link, as the name may mean another server by now (a
 * failover, several addresses), and to a process that started when ours did, as an address may have
 * moved too. */
#include "base/log/log.h"
#include "base/os/clock.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

static pawl_status ask_about(const struct pawl__pg *pg,
                             const struct pawl__pg_statement *statement,
                             struct pawl__pg *messenger,
                             struct pawl__pg_rows *ret_rows,
                             pawl_error *reterr)
{
    return pawl__pg_query(messenger,
                          statement,
                          PG_ARGS(pawl__pg_i64(pg->session), pawl__pg_i64(pg->started_us)),
                          ret_rows,
                          reterr);
}

/* Empty for a socket file, which is its own address. */
static const char *address_of(const PGconn *conn)
{
    const char *address = PQhostaddr(conn);

    return address == NULL || address[0] == '\0' ? NULL : address;
}

/* A second connection to the same server. Its own waits end with our patience, and nobody cancels
 * them. */
static struct pawl__pg messenger_of(const struct pawl__pg *pg, pawl_status why, int64_t patience_ns)
{
    return (struct pawl__pg){
        .wake_fd = -1,
        .probe = { .fd = -1 },
        .target = pg->target,
        .application_name = pg->application_name,
        .options = pg->options,
        .address = address_of(pg->conn),
        .gave_up = why,
        .patience_ns = patience_ns,
    };
}

bool pawl__pg_is_unread(const struct pawl__pg *pg, int64_t deadline_ns)
{
    struct pawl__pg messenger = messenger_of(pg, PAWL_TIMEOUT, deadline_ns);
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    bool unread =
        pg->session != 0
        && pawl__pg_connect_host(&messenger, pg->host, deadline_ns, NULL) == PAWL_OK
        && ask_about(
               pg, &pawl__store_pg_statements[STORE_PG_SESSION_IS_IDLE], &messenger, &rows, NULL)
               == PAWL_OK
        && rows.count == 1 && pawl__pg_get_bool(&rows, 0, 0);

    pawl__pg_drop(&messenger);
    return unread;
}

void pawl__pg_cancel_running(struct pawl__pg *pg, pawl_status why)
{
    pawl_error error = PAWL_ERROR_INIT;
    int64_t patience_ns = pawl__pg_now_ns(pg) + PG_GRACE_MS * NS_PER_MS;
    struct pawl__pg messenger = messenger_of(pg, why, patience_ns);

    pg->gave_up = why;
    pg->patience_ns = patience_ns;
    pawl_status status = pawl__pg_connect_host(&messenger, pg->host, patience_ns, &error);
    if (status == PAWL_OK) {
        status = ask_about(
            pg, &pawl__store_pg_statements[STORE_PG_CANCEL_SESSION], &messenger, NULL, &error);
    }
    if (status != PAWL_OK) {
        LOG_INFO("the PostgreSQL server could not be asked to stop a statement: it ends at its "
                 "statement_timeout",
                 LOG_TEXT("server", pg->server.location),
                 LOG_TEXT("error", error.message));
    }
    pawl__pg_drop(&messenger);
}
