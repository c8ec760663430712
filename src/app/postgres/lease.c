#include "app/postgres/lease.h"

#include "app/postgres/backend.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"

enum {
    TERM_MS_DEFAULT = 15000,
    RENEWALS_PER_TERM = 3, /* one may come late, and one may fail */
    RETRY_FACTOR = 10,     /* renewals are so much more frequent while the server is away */
};

void pawl__app_lease_init(struct app_lease *lease, uint32_t term_ms)
{
    lease->term_ms = term_ms == 0 ? TERM_MS_DEFAULT : term_ms;
    pawl__cancel_init(&lease->stop, NULL);
}

/* No other process can take the application while a session of ours lives, so an expired lease may be renewed. */
static pawl_status renew(struct app_postgres *self, int64_t deadline_ns, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    pawl__pg_set_deadline(self->lease.pg, deadline_ns);
    pawl_status status = pawl__pg_exec(self->lease.pg,
                                       APP_PG_RENEW,
                                       PG_ARGS(pawl__pg_i64(self->app),
                                               pawl__pg_i64(self->lease.epoch),
                                               pawl__pg_i64(self->lease.term_ms)),
                                       &rows,
                                       reterr);
    if (status == PAWL_OK && rows.affected == 0) {
        atomic_store(&self->lost, true);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__app_pg_failed(self, status, reterr);
}

/* One that failed is tried again at once, then more often than usual. */
static int64_t pause_ns(const struct app_lease *lease, int failed)
{
    int64_t every_ns = lease->term_ms * NS_PER_MS / RENEWALS_PER_TERM;

    return failed == 0 ? every_ns : failed == 1 ? 0 : every_ns / RETRY_FACTOR;
}

static void renew_main(void *context)
{
    struct app_postgres *self = context;
    int64_t every_ns = pause_ns(&self->lease, 0);
    int failed = 0; /* in a row, and no more than 2 are counted */

    while (!pawl__cancel_wait_until(
        &self->lease.stop, pawl__pg_store_now_ns(&self->pg) + pause_ns(&self->lease, failed))) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = renew(self, pawl__pg_store_now_ns(&self->pg) + every_ns, &error);

        if (atomic_load(&self->lost)) {
            LOG_WARNING("another process has taken the application over",
                        LOG_INTEGER("application", self->app));
            return;
        }
        if (status != PAWL_OK && status != PAWL_CANCELLED && failed == 1) {
            LOG_WARNING("the lease of an application cannot be renewed now",
                        LOG_INTEGER("application", self->app),
                        LOG_TEXT("error", error.message));
        }
        failed = status == PAWL_OK ? 0 : MIN(failed + 1, 2);
        if (status == PAWL_OK
            && pawl__app_pg_check_schema(self, self->lease.pg, &error) == PAWL_CORRUPT) {
            LOG_ERROR("an application takes no commands: its tables were altered",
                      LOG_INTEGER("application", self->app),
                      LOG_TEXT("error", error.message));
        }
    }
}

pawl_status pawl__app_lease_start(struct app_postgres *self, pawl_error *reterr)
{
    TRY(pawl__pg_open(self->pg.url, &self->pg.options, &self->lease.pg, reterr));
    return pawl__thread_start(&self->lease.thread, "pawl-lease", renew_main, self, reterr);
}

void pawl__app_lease_stop(struct app_lease *lease)
{
    pawl__cancel_now(&lease->stop);
    pawl__thread_join(&lease->thread);
    pawl__pg_close(STEAL(lease->pg));
}

void pawl__app_lease_done(struct app_lease *lease)
{
    pawl__cancel_done(&lease->stop);
}
