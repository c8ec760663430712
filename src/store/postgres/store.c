#include "store/postgres/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

enum {
    CONNECTIONS_DEFAULT = 8,
    BORROW_MS_MAX = 30000, /* all connections are in use for this long: something hangs */
};

int64_t pawl__pg_store_now_ns(const struct pawl__pg_store *store)
{
    return pawl__monotonic_ns(pawl__clock_or_real(store->options.clock));
}

struct pawl__pg_options pawl__pg_store_options(const struct pawl__location *location,
                                               uint32_t answer_ms_max,
                                               uint32_t busy_ms_max)
{
    return (struct pawl__pg_options){
        .interrupted = location->interrupted,
        .answer_ms_max = (int)MIN(answer_ms_max, (uint32_t)INT32_MAX),
        /* 0 would be the wrapper's default, and the server's "for ever". */
        .lock_ms_max = (int)MIN(MAX(busy_ms_max, 1U), (uint32_t)INT32_MAX),
    };
}

pawl_status pawl__pg_store_check_bytes(const char *option,
                                       uint32_t bytes_max,
                                       uint32_t spare,
                                       pawl_error *reterr)
{
    uint32_t limit = PAWL__PG_VALUE_BYTES_MAX - spare;

    return bytes_max <= limit ? PAWL_OK
                              : pawl__fail(reterr,
                                           PAWL_INVALID,
                                           "%s: is %u, on PostgreSQL the limit is %u",
                                           option,
                                           bytes_max,
                                           limit);
}

pawl_status pawl__pg_store_init(struct pawl__pg_store *store,
                                const struct pawl__location *location,
                                const struct pawl__pg_options *options,
                                pawl_error *reterr)
{
    store->options = *options;
    store->connections_max =
        location->connections == 0 ? CONNECTIONS_DEFAULT : location->connections;
    store->url = strdup(location->path);
    TRY(pawl__check_memory(store->url, "a URL", reterr));
    pawl__cancel_init(&store->stop, NULL);
    store->stop_ready = true;
    return PAWL_OK;
}

void pawl__pg_store_done(struct pawl__pg_store *store)
{
    pawl__pg_close(store->listener);
    if (store->stop_ready) {
        pawl__cancel_done(&store->stop);
    }
    if (store->writer_is_apart) {
        pawl__pg_close(store->writer);
    } else {
        pawl__pg_pool_return(store->pool, store->writer);
    }
    pawl__pg_pool_close(store->pool);
    free(store->url);
}

/* --- set-up --- */

/* In another encoding the server would refuse some texts and change others. */
static pawl_status check_encoding(struct pawl__pg *pg, const char *who, pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_query(
        pg, &pawl__store_pg_statements[STORE_PG_ENCODING], PG_NO_ARGS, &rows, reterr));
    pawl_view encoding = pawl__pg_get_text(&rows, 0, 0);
    return pawl__view_is(encoding, "UTF8") ? PAWL_OK
                                           : pawl__fail(reterr,
                                                        PAWL_UNSUPPORTED,
                                                        "the database's encoding is '%.*s', %s "
                                                        "needs UTF8",
                                                        VIEW_ARGS(encoding),
                                                        who);
}

static pawl_status migrate(struct pawl__pg *pg,
                           const struct pawl__pg_setup *setup,
                           pawl_error *reterr)
{
    const struct pawl__schema *schema = setup->schema;
    size_t pending = 0;

    TRY(pawl__pg_pending(pg, schema, &pending, reterr));
    if (pending == 0) {
        return PAWL_OK;
    }
    if (pending == schema->count && (setup->must_exist || setup->read_only)) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "%s", setup->missing);
    }
    if (setup->read_only) {
        return pawl__fail(
            reterr, PAWL_UNSUPPORTED, "made by an older pawl: open it for writing once");
    }
    return pawl__migrate(&pawl__pg_migrate_ops, pg, schema, reterr);
}

/* A server that does not sync loses what it acknowledged when its machine stops. That is the
 * administrator's choice, but nobody should make it without knowing. */
static void warn_of_losses(const struct pawl__pg_server *server, const char *warning)
{
    if (!server->fsync || !server->full_page_writes
        || strcmp(server->synchronous_commit, "off") == 0) {
        LOG_WARNING(warning,
                    LOG_TEXT("server", server->location),
                    LOG_BOOLEAN("fsync", server->fsync),
                    LOG_BOOLEAN("full_page_writes", server->full_page_writes),
                    LOG_TEXT("synchronous_commit", server->synchronous_commit));
    }
}

pawl_status pawl__pg_store_set_up(struct pawl__pg_store *store,
                                  const struct pawl__pg_setup *setup,
                                  struct pawl__pg **ret_pg,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    struct pawl__pg_options options = store->options;

    options.statements = NULL; /* the tables that they name may not be there yet */
    options.statement_count = 0;
    TRY(pawl__pg_open(store->url, &options, &pg, reterr));
    if (setup->warning != NULL) {
        warn_of_losses(pawl__pg_server_of(pg), setup->warning);
    }
    if (setup->needs_utf8 != NULL) {
        TRY(check_encoding(pg, setup->needs_utf8, reterr));
    }
    TRY(migrate(pg, setup, reterr));
    if (!setup->unchecked) {
        TRY(pawl__pg_check_schema(pg, setup->schema, reterr));
    }
    if (ret_pg != NULL) {
        *ret_pg = STEAL(pg);
    }
    return PAWL_OK;
}

/* --- connections --- */

pawl_status pawl__pg_store_open_pool(struct pawl__pg_store *store, size_t size, pawl_error *reterr)
{
    return pawl__pg_pool_open(store->url, &store->options, size, &store->pool, reterr);
}

pawl_status pawl__pg_store_borrow_writer(struct pawl__pg_store *store, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__pg_store_now_ns(store) + store->options.lock_ms_max * NS_PER_MS;

    return store->writer != NULL
               ? PAWL_OK
               : pawl__pg_pool_borrow(store->pool, deadline_ns, &store->writer, reterr);
}

void pawl__pg_store_release_writer(struct pawl__pg_store *store)
{
    if (store->connections_max == 1) {
        pawl__pg_pool_return(store->pool, STEAL(store->writer));
    }
}

pawl_status pawl__pg_store_borrow(struct pawl__pg_store *store,
                                  struct pawl__pg_borrowed *ret_borrowed,
                                  pawl_error *reterr)
{
    return pawl__pg_store_borrow_until(
        store, pawl__pg_store_now_ns(store) + BORROW_MS_MAX * NS_PER_MS, ret_borrowed, reterr);
}

pawl_status pawl__pg_store_borrow_until(struct pawl__pg_store *store,
                                        int64_t deadline_ns,
                                        struct pawl__pg_borrowed *ret_borrowed,
                                        pawl_error *reterr)
{
    ret_borrowed->pool = store->pool;
    return pawl__pg_pool_borrow(store->pool, deadline_ns, &ret_borrowed->pg, reterr);
}

void pawl__pg_return(struct pawl__pg_borrowed *borrowed)
{
    if (borrowed->pg != NULL) {
        pawl__pg_pool_return(borrowed->pool, borrowed->pg);
    }
}
