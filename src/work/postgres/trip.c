/* Round trips on the writer's connection, and the time that they bring. */
#include <string.h>

#include "base/core/error.h"
#include "work/postgres/backend.h"

/* --- trips --- */

static pawl_status on_step(void *context,
                           size_t index,
                           const struct pawl__pg_rows *rows,
                           pawl_error *reterr)
{
    struct work_pg_trip *trip = context;

    if (index < trip->first || trip->steps[index - trip->first].on_rows == NULL) {
        return PAWL_OK;
    }
    return trip->steps[index - trip->first].on_rows(
        trip->steps[index - trip->first].context, rows, reterr);
}

void pawl__work_pg_trip_start(struct work_pg_trip *trip,
                              struct work_postgres *backend,
                              pawl_error *reterr)
{
    struct pawl__pg *pg = backend->pg.writer;

    *trip = (struct work_pg_trip){ .backend = backend, .reterr = reterr };
    trip->status = pawl__pg_in_transaction(pg)
                       ? pawl__pg_pipeline_begin(pg, on_step, trip, reterr)
                       : pawl__pg_pipeline_begin_transaction(pg, on_step, trip, reterr);
    if (trip->status != PAWL_OK) {
        return;
    }
    trip->open = true;
    /* Nobody reads the rows of what is stored: they may arrive before `first` is known. */
    trip->first = SIZE_MAX;
    size_t writes = 0;
    trip->status = pawl__work_pg_add_writes(backend, &writes, reterr);
    trip->first = writes;
}

void pawl__work_pg_trip_add(struct work_pg_trip *trip,
                            size_t statement,
                            const struct pawl__pg_value *values,
                            size_t value_count,
                            work_pg_on_rows *on_rows,
                            void *context)
{
    if (trip->status != PAWL_OK) {
        return;
    }
    REQUIRE(trip->count < WORK_PG_STEPS_MAX);
    trip->steps[trip->count].on_rows = on_rows;
    trip->steps[trip->count].context = context;
    trip->count++;
    trip->status = pawl__pg_pipeline_add(
        trip->backend->pg.writer, statement, values, value_count, trip->reterr);
}

static pawl_status on_clock(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_postgres *backend = context;

    (void)reterr;
    if (rows->count == 1) {
        backend->sql.now = pawl__work_pg_now(pawl__pg_get_time(rows, 0, 0));
    }
    return PAWL_OK;
}

void pawl__work_pg_trip_add_clock(struct work_pg_trip *trip)
{
    pawl__work_pg_trip_add(trip,
                           WORK_PG_CLOCK,
                           PG_ARGS(pawl__work_pg_given_time(trip->backend)),
                           on_clock,
                           trip->backend);
}

pawl_status pawl__work_pg_trip_end(struct work_pg_trip *trip)
{
    if (trip->status == PAWL_OK) {
        trip->status = pawl__pg_pipeline_end(trip->backend->pg.writer, trip->reterr);
    } else if (trip->open) {
        pawl__pg_pipeline_abandon(trip->backend->pg.writer);
    }
    trip->open = false;
    return pawl__work_pg_outcome(trip->status, trip->reterr);
}

/* Class 40, and nothing of the transaction is stored: somebody else was quicker. */
pawl_status pawl__work_pg_outcome(pawl_status status, pawl_error *reterr)
{
    if (status != PAWL_BUSY || reterr == NULL || strncmp(reterr->sqlstate, "40", 2) != 0) {
        return status;
    }
    reterr->status = PAWL_CONFLICT;
    reterr->retryable = true;
    return PAWL_CONFLICT;
}

/* --- the time --- */

struct pawl__pg_value pawl__work_pg_given_time(const struct work_postgres *backend)
{
    struct pawl__clock *clock = backend->sql.clock;

    return pawl__clock_is_real(clock)
               ? pawl__pg_null()
               : pawl__pg_time(backend->clock_zero_us + pawl__boot_ns(clock) / NS_PER_US);
}

struct work_now pawl__work_pg_now(int64_t server_us)
{
    return (struct work_now){ .wall_us = server_us,
                              .ns = pawl__work_pg_ns(server_us),
                              .age_us = server_us };
}

int64_t pawl__work_pg_ns(int64_t wall_us)
{
    int64_t ns;

    return __builtin_mul_overflow(wall_us, NS_PER_US, &ns) ? wall_us > 0 ? INT64_MAX : INT64_MIN
                                                           : ns;
}
