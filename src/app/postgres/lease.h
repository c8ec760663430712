/* The lease of an application on PostgreSQL, renewed in the background (sql/postgres/app/0003_lease.sql). */
#ifndef PAWL_APP_POSTGRES_LEASE_H
#define PAWL_APP_POSTGRES_LEASE_H

#include "base/thread/cancel.h"
#include "base/thread/thread.h"
#include "store/postgres/postgres.h"

struct app_postgres;

struct app_lease {
    int64_t term_ms;
    int64_t epoch;            /* of this owner */
    struct pawl__cancel stop; /* ends the renewal, and what connections wait for */
    struct pawl__thread thread;
    struct pawl__pg *pg; /* the renewal's own: commands may have all of the pool for a long time */
};

/* Before anything connects. `term_ms` 0: 15 s. */
void pawl__app_lease_init(struct app_lease *lease, uint32_t term_ms);

/* The application was taken with this lease; `options` hold its lock. Connects. */
PAWL_MUST_USE pawl_status pawl__app_lease_start(struct app_postgres *self, pawl_error *reterr);

/* In bounded time, whatever the server does. Connections end every call from here on. */
void pawl__app_lease_stop(struct app_lease *lease);
void pawl__app_lease_done(struct app_lease *lease); /* after the connections */

#endif
