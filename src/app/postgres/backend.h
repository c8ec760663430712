/* An application in a PostgreSQL database, between opening it (backend.c) and using it
 * (rows.c). */
#ifndef PAWL_APP_POSTGRES_BACKEND_H
#define PAWL_APP_POSTGRES_BACKEND_H

#include <stdatomic.h>

#include "app/core/backend.h"
#include "app/postgres/lease.h"
#include "app/postgres/statements.h"
#include "base/thread/thread.h"
#include "store/postgres/store.h"

struct app_postgres {
    struct app_store base;
    struct pawl__lock lock;             /* covers orphans and altered */
    int64_t orphans[PAWL__PG_POOL_MAX]; /* sessions that may still commit what we lost sight of */
    size_t orphan_count;
    pawl_error
        altered; /* what the schema has that is not ours, as of the last renewal of the lease */
    atomic_bool lost; /* another process has it now */
    struct app_lease lease;
    uint32_t app;
    char name[PAWL_APP_NAME_BYTES_MAX + 1];
    char settings[512];
    struct pawl__pg_store pg; /* its options hold the owner's lock, once the application is taken */
};

/* A connection for one question or one write. Sessions of ours whose outcome is unknown are ended first, so what is
 * read stays true. BUSY: all are in use. LEASE_LOST once another process has taken the application over. For
 * AUTO(pawl__pg_return). */
PAWL_MUST_USE pawl_status pawl__app_pg_borrow(struct app_postgres *self,
                                              int64_t deadline_ns,
                                              struct pawl__pg_borrowed *ret_borrowed,
                                              pawl_error *reterr);

/* What a failed call with a connection means: LEASE_LOST where the server said so, else `status`. */
pawl_status pawl__app_pg_failed(struct app_postgres *self, pawl_status status, pawl_error *reterr);

/* This session was writing when the link to it was lost. */
void pawl__app_pg_add_orphan(struct app_postgres *self, int64_t session);

/* Compares the schema; from here on writes fail as long as somebody has put a trigger or rule on our tables.
 * CORRUPT names it when that is news. */
PAWL_MUST_USE pawl_status pawl__app_pg_check_schema(struct app_postgres *self,
                                                    struct pawl__pg *pg,
                                                    pawl_error *reterr);

/* What that found last. */
PAWL_MUST_USE pawl_status pawl__app_pg_unaltered(struct app_postgres *self, pawl_error *reterr);

/* rows.c */
app_get_many_fn pawl__app_pg_get_many;
app_scan_fn pawl__app_pg_scan;
app_write_fn pawl__app_pg_write;
app_read_anchor_fn pawl__app_pg_read_anchor;
app_write_anchor_fn pawl__app_pg_write_anchor;

#endif
