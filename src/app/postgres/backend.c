/* An application in a PostgreSQL database: who owns it. sql/postgres/app/0001_app.sql says how the server records it.
 *
 * Commands use connections of one pool; the lease is renewed on one of its own. Each connection holds the owner's
 * lock from its first moment on. So a connection that was lost and made again either has the lock or learns that
 * another process took the application over: from then on every call is LEASE_LOST until it is opened again. What
 * happens to an owner that stands still is in lease.h. */
#include "app/postgres/backend.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/location.h"
#include "store/schemas.h"

enum {
    BORROW_MS_MAX = 10000, /* for a connection that others have */
    /* After a crash of the process that had it, the server needs a moment to notice. */
    OWNER_MS_MAX = 2000,
    CONNECT_MS_MAX = 3000, /* less than an application gives its threads to end */
    NAMES_MAX = 8,
};

/* One plan whatever the statistics say, which are those of an empty table. And a client whose machine
 * is gone must not own anything for hours. */
#define SESSION_SETTINGS                                                                   \
    "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off;"   \
    " SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;" \
    " SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10;"                     \
    " SET tcp_keepalives_count = 3"

#define TAKEN_OVER "PW001" /* app_hold */

/* --- connections --- */

static pawl_status fail_lost(pawl_error *reterr)
{
    return pawl__fail(
        reterr, PAWL_LEASE_LOST, "another process has taken the application over: open it again");
}

pawl_status pawl__app_pg_failed(struct app_postgres *self, pawl_status status, pawl_error *reterr)
{
    if (reterr != NULL && strcmp(reterr->sqlstate, TAKEN_OVER) == 0) {
        atomic_store(&self->lost, true);
    }
    return atomic_load(&self->lost) ? fail_lost(reterr) : status;
}

void pawl__app_pg_add_orphan(struct app_postgres *self, int64_t session)
{
    pawl__lock(&self->lock);
    REQUIRE(self->orphan_count
            < COUNT_OF(self->orphans)); /* one a connection, see end_orphans_locked */
    self->orphans[self->orphan_count++] = session;
    pawl__unlock(&self->lock);
}

/* An AFTER trigger can delete the rows of a write that reports success, so what is answered meanwhile is at risk:
 * until the next renewal of the lease. */
pawl_status pawl__app_pg_check_schema(struct app_postgres *self,
                                      struct pawl__pg *pg,
                                      pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__pg_check_schema(pg, &pawl__schema_postgres_app, &error);

    if (status != PAWL_OK && status != PAWL_CORRUPT) {
        return pawl__fail_with(reterr, status, &error);
    }
    pawl__lock(&self->lock);
    bool is_news = status != self->altered.status;
    self->altered = error;
    pawl__unlock(&self->lock);
    return is_news && status == PAWL_CORRUPT ? pawl__fail_with(reterr, status, &error) : PAWL_OK;
}

pawl_status pawl__app_pg_unaltered(struct app_postgres *self, pawl_error *reterr)
{
    pawl__lock(&self->lock);
    pawl_status status = self->altered.status;
    status = status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &self->altered);
    pawl__unlock(&self->lock);
    return status;
}

static pawl_status end_orphans_locked(struct app_postgres *self,
                                      struct pawl__pg *pg,
                                      pawl_error *reterr) REQUIRES_LOCK(self->lock)
{
    while (self->orphan_count > 0) {
        AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
        int64_t session = self->orphans[self->orphan_count - 1];
        TRY(pawl__pg_exec(pg,
                          APP_PG_END_SESSION,
                          PG_ARGS(pawl__pg_i64(self->app), pawl__pg_i64(session)),
                          &rows,
                          reterr));
        if (!pawl__pg_get_bool(&rows, 0, 0)) {
            return pawl__fail(reterr,
                              PAWL_UNAVAILABLE,
                              "server process %" PRId64 " has an unfinished write and does not end",
                              session);
        }
        self->orphan_count--;
    }
    return PAWL_OK;
}

pawl_status pawl__app_pg_borrow(struct app_postgres *self,
                                int64_t deadline_ns,
                                struct pawl__pg_borrowed *ret_borrowed,
                                pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    int64_t borrow_ns = pawl__pg_store_now_ns(&self->pg) + BORROW_MS_MAX * NS_PER_MS;
    pawl_status status = PAWL_LEASE_LOST;

    if (!atomic_load(&self->lost)) {
        status = pawl__pg_store_borrow_until(
            &self->pg, MIN(borrow_ns, deadline_ns), ret_borrowed, &error);
    }
    if (status == PAWL_OK) {
        pawl__pg_set_deadline(ret_borrowed->pg, deadline_ns == INT64_MAX ? 0 : deadline_ns);
        pawl__lock(&self->lock);
        status = end_orphans_locked(self, ret_borrowed->pg, &error);
        pawl__unlock(&self->lock);
    } else if (status == PAWL_TIMEOUT) {
        status = pawl__fail(&error, PAWL_BUSY, "all connections to the database are in use");
    }
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (reterr != NULL) {
        *reterr = error;
    }
    return pawl__app_pg_failed(self, status, reterr);
}

/* --- which application --- */

/* Names and ids of a database's applications are unique, each. */
static pawl_status define(struct pawl__pg *pg,
                          const struct app_store_options *options,
                          pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    const struct pawl__pg_value values[] = { pawl__pg_i64(options->app_id),
                                             pawl__pg_text(pawl_view_of(options->app_name)) };
    TRY(pawl__pg_exec(pg, APP_PG_DEFINE, values, 2, NULL, reterr));
    TRY(pawl__pg_exec(pg, APP_PG_OF_ID, values, 2, &rows, reterr));
    for (size_t i = 0; i < rows.count; i++) {
        pawl_view name = pawl__pg_get_text(&rows, i, 1);
        if (pawl__pg_get_i64(&rows, i, 0) != options->app_id
            || !pawl__view_is(name, options->app_name)) {
            TRY(pawl__fail(reterr,
                           PAWL_CONFLICT,
                           "the database has an application '%.*s' with id %" PRId64,
                           VIEW_ARGS(name),
                           pawl__pg_get_i64(&rows, i, 0)));
        }
    }
    return PAWL_OK;
}

/* The one of that name, or the only one. */
static pawl_status find(struct app_postgres *self,
                        struct pawl__pg *pg,
                        const char *name,
                        pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    AUTO(pawl__buf_done) struct pawl__buf names = BUF_INIT(4096);

    TRY(pawl__pg_exec(pg,
                      APP_PG_FIND,
                      PG_ARGS(pawl__pg_text(pawl_view_of(name)), pawl__pg_i64(NAMES_MAX)),
                      &rows,
                      reterr));
    if (rows.count == 0) {
        return name[0] == '\0'
                   ? pawl__fail(reterr, PAWL_NOT_FOUND, "there is no application")
                   : pawl__fail(reterr, PAWL_NOT_FOUND, "there is no application '%s'", name);
    }
    if (rows.count > 1) {
        for (size_t i = 0; i < rows.count; i++) {
            pawl__buf_add_format(
                &names, "%s%.*s", i == 0 ? "" : ", ", VIEW_ARGS(pawl__pg_get_text(&rows, i, 1)));
        }
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the database has several applications (%.*s): which one is said by "
                          "'?app=NAME' after the URL",
                          VIEW_ARGS(pawl__buf_view(&names)));
    }
    self->app = (uint32_t)pawl__pg_get_i64(&rows, 0, 0);
    snprintf(self->name, sizeof(self->name), "%.*s", VIEW_ARGS(pawl__pg_get_text(&rows, 0, 1)));
    return PAWL_OK;
}

/* --- ownership --- */

static pawl_status fail_owned(struct app_postgres *self, struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_status status =
        pawl__pg_exec(pg, APP_PG_OWNER, PG_ARGS(pawl__pg_i64(self->app)), &rows, reterr);

    if (status != PAWL_OK || rows.count != 1) {
        return pawl__fail(reterr, PAWL_BUSY, "another process has the application");
    }
    char lease[64] = "";
    if (pawl__pg_get_i64(&rows, 0, 2) > 0) {
        snprintf(lease,
                 sizeof(lease),
                 "; its lease expires in %" PRId64 " s unless renewed",
                 pawl__pg_get_i64(&rows, 0, 2));
    }
    return pawl__fail(reterr,
                      PAWL_BUSY,
                      "another process has the application: %.*s, since %.*s UTC%s",
                      VIEW_ARGS(pawl__pg_get_text(&rows, 0, 0)),
                      VIEW_ARGS(pawl__pg_get_text(&rows, 0, 1)),
                      lease);
}

/* `pg` keeps the lock until the pool has a connection that holds it. */
static pawl_status claim_ownership(struct app_postgres *self,
                                   struct pawl__pg *pg,
                                   pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    char host[HOST_NAME_MAX + 1] = "";
    char who[HOST_NAME_MAX + 64];

    (void)gethostname(host, sizeof(host) - 1);
    snprintf(who, sizeof(who), "process %ld on %s", (long)getpid(), host);
    TRY(pawl__pg_exec(pg,
                      APP_PG_TAKE,
                      PG_ARGS(pawl__pg_i64(self->app),
                              pawl__pg_text(pawl_view_of(who)),
                              pawl__pg_i64(OWNER_MS_MAX),
                              pawl__pg_i64(self->lease.term_ms)),
                      &rows,
                      reterr));
    self->lease.epoch = pawl__pg_get_i64(&rows, 0, 0);
    return self->lease.epoch == 0 ? fail_owned(self, pg, reterr) : PAWL_OK;
}

/* --- open and close --- */

static pawl_status connect_all(struct app_postgres *self,
                               const struct app_store_options *options,
                               pawl_error *reterr)
{
    const struct pawl__pg_setup setup = {
        .schema = &pawl__schema_postgres_app,
        .missing = "there is no application",
        .warning = options->unsafe_no_sync
                       ? NULL
                       : "this PostgreSQL server may lose answered commands in a power cut",
        .must_exist = options->must_exist,
    };
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    struct pawl__pg_options owning = self->pg.options;

    TRY(pawl__pg_store_set_up(&self->pg, &setup, NULL, reterr));
    TRY(pawl__pg_open(self->pg.url, &owning, &pg, reterr));
    if (options->app_id != 0) {
        self->app = options->app_id;
        snprintf(self->name, sizeof(self->name), "%s", options->app_name);
        TRY(define(pg, options, reterr));
    } else {
        TRY(find(self, pg, options->app_name == NULL ? "" : options->app_name, reterr));
    }
    TRY(claim_ownership(self, pg, reterr));
    snprintf(self->settings,
             sizeof(self->settings),
             SESSION_SETTINGS "; SELECT app_hold(%" PRIu32 ", %" PRId64 ")",
             self->app,
             self->lease.epoch);
    self->pg.options.settings = self->settings;
    TRY(pawl__pg_store_open_pool(&self->pg, self->pg.connections_max, reterr));
    return pawl__app_lease_start(self, reterr);
}

static void interrupt_store(struct app_store *store)
{
    pawl__cancel_now(&((struct app_postgres *)store)->lease.stop);
}

static void close_store(struct app_store *store)
{
    struct app_postgres *self = (struct app_postgres *)store;

    pawl__app_lease_stop(&self->lease);
    pawl__pg_store_done(&self->pg);
    pawl__app_lease_done(&self->lease);
    pawl__lock_done(&self->lock);
    free(self);
}

/* The location and the descriptor may both name the application. */
static pawl_status check_app_name(const struct pawl__location *location,
                                  const struct app_store_options *options,
                                  pawl_error *reterr)
{
    return location->app == NULL || options->app_name == NULL
                   || strcmp(location->app, options->app_name) == 0
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "the location says 'app=%.64s', the descriptor '%s'",
                            location->app,
                            options->app_name);
}

static pawl_status open_store(struct app_store *store,
                              const struct pawl__location *location,
                              const struct app_store_options *given,
                              pawl_error *reterr)
{
    struct app_postgres *self = (struct app_postgres *)store;
    const struct pawl__pg_options connections = {
        .application_name = "pawl app",
        .statements = pawl__app_pg_statements,
        .statement_count = APP_PG_COUNT,
        .answer_ms_max = (int)MIN(given->answer_ms_max, (uint32_t)INT32_MAX),
        .connect_ms_max = CONNECT_MS_MAX,
        .unsafe_async_commit = given->unsafe_no_sync,
        .cancel = &self->lease.stop,
    };
    struct app_store_options options = *given;

    self->base.name = self->name;
    self->base.anchor_name = "column 'anchor' of table pawl.apps";
    pawl__app_lease_init(&self->lease, options.lease_ms);
    pawl__lock_init(&self->lock);
    TRY(pawl__pg_store_init(&self->pg, location, &connections, reterr));
    TRY(check_app_name(location, &options, reterr));
    options.app_name = options.app_name == NULL ? location->app : options.app_name;
    return connect_all(self, &options, reterr);
}

const struct app_store_ops pawl__app_postgres_ops = {
    .size = sizeof(struct app_postgres),
    .open = open_store,
    .close = close_store,
    .interrupt = interrupt_store,
    .get_many = pawl__app_pg_get_many,
    .scan = pawl__app_pg_scan,
    .write = pawl__app_pg_write,
    .read_anchor = pawl__app_pg_read_anchor,
    .write_anchor = pawl__app_pg_write_anchor,
};
