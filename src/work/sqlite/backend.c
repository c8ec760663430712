/* Work in one SQLite file, open in any number of processes; or in memory, for one handle alone.
 *
 * One handle writes and belongs to the committer. Readers take a handle of their own from a small
 * pool, so that in WAL mode nobody waits for anybody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/layout.h"
#include "store/location.h"
#include "store/schemas.h"
#include "work/core/age.h"
#include "work/sqlite/backend.h"

/* Items are written all over their indexes: the cache that SQLite has by default is too small. */
enum { WRITER_CACHE_KIB = 32 << 10, WAL_PAGES_MAX = 4000 };
/* A group writes and syncs some thirty pages, however small it is: it is worth the time that the
 * threads of this machine need to wake up. */
#define GATHER_NS (200 * NS_PER_US)

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* --- transactions --- */

static pawl_status sqlite_read_now(struct work_backend *base,
                                   struct work_now *ret_now,
                                   pawl_error *reterr)
{
    (void)reterr;
    *ret_now = pawl__work_now(of(base)->sql.clock, &of(base)->lowest_us);
    return PAWL_OK;
}

static pawl_status sqlite_begin(struct work_backend *base,
                                struct work_now *ret_now,
                                pawl_error *reterr)
{
    /* IMMEDIATE: the write lock before the time is read and anything decided by it. */
    TRY(pawl__sqlite_begin(of(base)->writer, PAWL__SQLITE_IMMEDIATE, reterr));
    of(base)->numbers = false;
    TRY(sqlite_read_now(base, &of(base)->sql.now, reterr));
    *ret_now = of(base)->sql.now;
    return PAWL_OK;
}

static pawl_status sqlite_commit(struct work_backend *base, pawl_error *reterr)
{
    TRY(pawl__work_sqlite_store_numbers(of(base), reterr));
    return pawl__sqlite_commit(of(base)->writer, reterr);
}

static void sqlite_rollback(struct work_backend *base)
{
    pawl__sqlite_rollback(of(base)->writer);
}

static pawl_status sqlite_watch(struct work_backend *base,
                                int64_t deadline_ns,
                                struct pawl__cancel *cancel,
                                pawl_error *reterr)
{
    return pawl__sqlite_pool_watch(&of(base)->pool, deadline_ns, cancel, reterr);
}

static pawl_status sqlite_give_back(struct work_backend *base,
                                    size_t pages,
                                    uint64_t *ret_bytes,
                                    pawl_error *reterr)
{
    return pawl__sqlite_give_back(of(base)->writer, (int)pages, ret_bytes, reterr);
}

static pawl_status sqlite_free_bytes(struct work_backend *base,
                                     uint64_t *ret_bytes,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return pawl__sqlite_free_bytes(reader.db, ret_bytes, reterr);
}

static pawl_status sqlite_row_exists(struct work_backend *base,
                                     pawl_view select,
                                     bool *ret_exists,
                                     pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = pawl__view_dup(select);
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for evidence");
    }
    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return pawl__sqlite_row_exists(reader.db, text, WORK_ROW_EXISTS_MS_MAX, ret_exists, reterr);
}

static void sqlite_close(struct work_backend *base)
{
    struct work_sqlite *backend = of(base);

    pawl__sqlite_pool_done(&backend->pool);
    pawl__sqlite_close(backend->writer);
    free(backend->path);
    free(backend);
}

#define SQLITE_STORE_OPS                                                                     \
    .close = sqlite_close, .begin = sqlite_begin, .commit = sqlite_commit,                   \
    .rollback = sqlite_rollback, .read_now = sqlite_read_now, .give_back = sqlite_give_back, \
    .free_bytes = sqlite_free_bytes, .row_exists = sqlite_row_exists

static const struct work_store_ops sqlite_store = {
    SQLITE_STORE_OPS,
    .name = "sqlite",
    .gather_ns = GATHER_NS,
    .watch = sqlite_watch,
};

/* Nobody else writes to it, and nothing is synced. */
static const struct work_store_ops memory_store = { SQLITE_STORE_OPS, .name = "memory" };

/* --- opening --- */

#define CLOCK_SLACK_US US_PER_S /* what the wall clock may drift before it is worth a write */

static pawl_status read_clock(struct work_sqlite *backend, int64_t *ret_lowest_us)
{
    *ret_lowest_us = WORK_AGE_UNKNOWN;
    return pawl__work_sqlite_run(backend->writer,
                                 WORK_SQL_CLOCK,
                                 SQL_ARGS(sql_name(backend->sql.boot_id)),
                                 pawl__work_sql_read_int,
                                 ret_lowest_us,
                                 NULL);
}

static pawl_status write_clock(struct work_sqlite *backend, int64_t lowest_us)
{
    return pawl__work_sqlite_run(backend->writer,
                                 WORK_SQL_CLOCK_SET,
                                 SQL_ARGS(sql_name(backend->sql.boot_id), sql_int(lowest_us)),
                                 NULL,
                                 NULL,
                                 NULL);
}

/* Learns what other processes of this boot saw of the clocks, and tells them. A store that is busy or
 * cannot be written is opened all the same: it is only the next step that may go unnoticed. */
static void share_clock(struct work_sqlite *backend)
{
    int64_t stored_us;

    (void)pawl__work_now(backend->sql.clock, &backend->lowest_us);
    int64_t seen_us = atomic_load(&backend->lowest_us);
    if (read_clock(backend, &stored_us) != PAWL_OK) {
        return;
    }
    if (seen_us > stored_us) {
        atomic_store(&backend->lowest_us, stored_us);
    } else if (stored_us == WORK_AGE_UNKNOWN || stored_us - seen_us > CLOCK_SLACK_US) {
        (void)!write_clock(backend, seen_us);
    }
}

/* Every store in memory has a name of its own. */
static char *memory_name(void)
{
    static atomic_uint stores;
    char *name = NULL;

    return asprintf(&name, "memory:%u", atomic_fetch_add(&stores, 1)) < 0 ? NULL : name;
}

static pawl_status open_at(struct work_sqlite *backend,
                           const char *given,
                           const struct pawl__sqlite_options *options,
                           pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = options->in_memory ? memory_name() : strdup(given);

    if (path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    TRY(pawl__sqlite_open(path, options, &backend->writer, reterr));
    share_clock(backend);
    backend->path = options->in_memory ? STEAL(path) : realpath(path, NULL);
    backend->pool.path = backend->path;
    return backend->path != NULL ? PAWL_OK
                                 : pawl__fail(reterr, PAWL_IO, "'%s' cannot be found again", given);
}

/* Those of the readers; the writer has more. */
static struct pawl__sqlite_options options_of(const struct pawl__location *location,
                                              const struct work_setup *setup)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    options.in_memory = location->scheme == PAWL__AT_MEMORY;
    options.application_id = PAWL__WORK_APPLICATION_ID;
    options.schema = &pawl__schema_sqlite_work;
    options.temp_schema = pawl__work_sql_temp_schema;
    options.temp_in_memory = true; /* every statement that fires triggers has a journal */
    options.statements = pawl__work_sql_statements;
    options.statement_count = WORK_SQL_COUNT;
    options.busy_ms_max = setup->options->busy_ms_max;
    options.sync_normal = location->durability_normal;
    options.interrupted = location->interrupted;
    options.wal_pages_max = WAL_PAGES_MAX;
    options.incremental_vacuum = true;
    return options;
}

pawl_status pawl__work_sqlite_open(const struct pawl__location *location,
                                   const void *given,
                                   void *ret_backend,
                                   pawl_error *reterr)
{
    const struct work_setup *setup = given;
    struct pawl__sqlite_options options = options_of(location, setup);
    struct work_sqlite *backend = calloc(1, sizeof(*backend));

    if (backend == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    backend->sql = (struct work_sql_backend){
        .base = { .store = options.in_memory ? &memory_store : &sqlite_store,
                  .items = &pawl__work_sqlite_items,
                  WORK_SQL_SUBJECT_OPS },
        .ops = &pawl__work_sqlite_sql,
        .clock = setup->clock,
        .boot_id = setup->boot_id,
    };
    atomic_init(&backend->lowest_us, WORK_AGE_UNKNOWN);
    pawl__sqlite_pool_init(&backend->pool, &options, PAWL__SQLITE_READ_ONLY);
    options.mode = setup->options->must_exist && !options.in_memory ? PAWL__SQLITE_MUST_EXIST
                                                                    : PAWL__SQLITE_CREATE;
    options.cache_kib = WRITER_CACHE_KIB;
    pawl_status status = open_at(backend, location->path, &options, reterr);
    if (status != PAWL_OK) {
        sqlite_close(&backend->sql.base);
        return status;
    }
    *(struct work_backend **)ret_backend = &backend->sql.base;
    return PAWL_OK;
}
