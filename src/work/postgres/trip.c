/* Round trips on the writer's connection, and how values travel. */
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

pawl_status pawl__work_pg_trip_start(struct work_pg_trip *trip,
                                     struct work_postgres *backend,
                                     pawl_error *reterr)
{
    *trip = (struct work_pg_trip){ .backend = backend };
    pawl_status status =
        pawl__pg_in_transaction(backend->pg.writer)
            ? pawl__pg_pipeline_begin(backend->pg.writer, on_step, trip, reterr)
            : pawl__pg_pipeline_begin_transaction(backend->pg.writer, on_step, trip, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    trip->open = true;
    /* Rows of what is put are nobody's: `first` may grow while they arrive. */
    trip->first = SIZE_MAX;
    size_t puts = 0;
    status = pawl__work_pg_add_puts(backend, &puts, reterr);
    trip->first = puts;
    return status;
}

pawl_status pawl__work_pg_trip_add(struct work_pg_trip *trip,
                                   size_t statement,
                                   const struct pawl__pg_value *values,
                                   size_t value_count,
                                   work_pg_on_rows *on_rows,
                                   void *context,
                                   pawl_error *reterr)
{
    REQUIRE(trip->count < WORK_PG_STEPS_MAX);
    trip->steps[trip->count].on_rows = on_rows;
    trip->steps[trip->count].context = context;
    trip->count++;
    return pawl__pg_pipeline_add(trip->backend->pg.writer, statement, values, value_count, reterr);
}

pawl_status pawl__work_pg_trip_end(struct work_pg_trip *trip,
                                   pawl_status status,
                                   pawl_error *reterr)
{
    if (status != PAWL_OK) {
        if (trip->open) {
            pawl__pg_pipeline_abandon(trip->backend->pg.writer);
        }
    } else {
        status = pawl__pg_pipeline_end(trip->backend->pg.writer, reterr);
    }
    trip->open = false;
    return pawl__work_pg_outcome(status, reterr);
}

pawl_status pawl__work_pg_ask(struct work_postgres *backend,
                              size_t statement,
                              const struct pawl__pg_value *values,
                              size_t value_count,
                              work_pg_on_rows *on_rows,
                              void *context,
                              pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    if (status == PAWL_OK) {
        status =
            pawl__work_pg_trip_add(&trip, statement, values, value_count, on_rows, context, reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

static pawl_status on_clock(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_postgres *backend = context;

    (void)reterr;
    if (rows->count == 1) {
        backend->now = pawl__work_pg_now(pawl__pg_get_time(rows, 0, 0));
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_add_clock(struct work_pg_trip *trip, pawl_error *reterr)
{
    return pawl__work_pg_trip_add(trip,
                                  WORK_PG_CLOCK,
                                  PG_ARGS(pawl__work_pg_given_time(trip->backend)),
                                  on_clock,
                                  trip->backend,
                                  reterr);
}

pawl_status pawl__work_pg_ask_and_clock(struct work_postgres *backend,
                                        size_t statement,
                                        const struct pawl__pg_value *values,
                                        size_t value_count,
                                        work_pg_on_rows *on_rows,
                                        void *context,
                                        pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    if (status == PAWL_OK) {
        status =
            pawl__work_pg_trip_add(&trip, statement, values, value_count, on_rows, context, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_clock(&trip, reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

struct pawl__pg_value pawl__work_pg_ids(struct work_postgres *backend,
                                        size_t which,
                                        const pawl_view *ids,
                                        size_t count)
{
    REQUIRE(which < WORK_PG_ASKED);
    struct pawl__pg_array *array = &backend->asked[which];
    pawl__pg_array_start(array, 'T', count);
    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_add_view(array, ids[i]);
    }
    return pawl__pg_array_value(array);
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

/* --- values --- */

struct pawl__pg_value pawl__work_pg_optional(pawl_view text)
{
    return text.len == 0 ? pawl__pg_null() : pawl__pg_text(text);
}

struct pawl__pg_value pawl__work_pg_time(int64_t wall_us)
{
    return wall_us == 0 ? pawl__pg_null() : pawl__pg_time(wall_us);
}

void pawl__work_pg_add_optional(struct pawl__pg_array *array, pawl_view text)
{
    if (text.len == 0) {
        pawl__pg_array_add_null(array);
    } else {
        pawl__pg_array_add_view(array, text);
    }
}

void pawl__work_pg_add_time(struct pawl__pg_array *array, int64_t wall_us)
{
    if (wall_us == 0) {
        pawl__pg_array_add_null(array);
    } else {
        pawl__pg_array_add_time(array, wall_us);
    }
}

struct pawl__pg_value pawl__work_pg_given_time(const struct work_postgres *backend)
{
    return pawl__clock_is_real(backend->clock)
               ? pawl__pg_null()
               : pawl__pg_time(backend->clock_zero_us + pawl__boot_ns(backend->clock) / NS_PER_US);
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
