/* Stopping a statement. libpq's own way (PQcancel) blocks for as long as the server does not answer,
 * which is for ever when it has stalled. So this is a connection like any other, with a deadline,
 * that calls pg_cancel_backend; it does not come back before the statement's process was told, so
 * the request cannot hit a later statement. */
#include "base/clock.h"
#include "store/postgres_internal.h"

static int64_t now_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real());
}

static void ask_for_cancel(struct pawl__pg *messenger, int session)
{
    static const struct pawl__pg_statement statement = {
        .sql = "SELECT pg_cancel_backend($1::integer)",
        .params = "i",
        .columns = "b",
    };

    (void)!pawl__pg_query(messenger, &statement, PG_ARGS(pawl__pg_i64(session)), NULL, NULL);
}

void pawl__pg_cancel_running(struct pawl__pg *pg, pawl_status why)
{
    int64_t patience_ns = now_ns() + PG_GRACE_MS * NS_PER_MS;
    /* Its own waits end with our patience, and nobody cancels them. */
    struct pawl__pg messenger = {
        .wake_fd = -1,
        .probe = { .fd = -1 },
        .target = pg->target,
        .application_name = pg->application_name,
        .options = pg->options,
        .gave_up = why,
        .patience_ns = patience_ns,
    };

    pg->gave_up = why;
    pg->patience_ns = patience_ns;
    if (pawl__pg_connect_host(&messenger, pg->host, patience_ns, NULL) == PAWL_OK) {
        ask_for_cancel(&messenger, pg->session);
    }
    pawl__pg_drop(&messenger);
}
