/* What a capability keeps in a PostgreSQL database: how it is set up, and who uses which connection.
 *
 *   set-up     a connection of its own warns of a server that loses commits, migrates and compares the
 *              schema, before any statement is prepared
 *   pool       readers borrow a connection for one question at a time
 *   writer     one thread's. Kept from its first use on, but with a single connection in all it is
 *              borrowed for each transaction
 *   listener   one thread's: a connection that waits for notifications of other processes */
#ifndef PAWL_STORE_POSTGRES_STORE_H
#define PAWL_STORE_POSTGRES_STORE_H

#include "base/thread/cancel.h"
#include "store/location.h"
#include "store/postgres/pool.h"
#include "store/postgres/postgres.h"

struct pawl__pg_store {
    char *url; /* holds the password: never shown */
    size_t connections_max;
    struct pawl__pg_options options; /* of all connections */
    struct pawl__pg_pool *pool;

    struct pawl__pg *writer;
    bool writer_is_apart; /* it is not one of the pool */

    const char *listener_name; /* what the server shows as its application */
    const char *channel;       /* what it listens to */
    const char *own_payload;   /* of our own notifications, which are no news; NULL: all are */
    struct pawl__pg *listener; /* NULL: not connected yet */
    struct pawl__cancel stop;  /* ends what the listener waits for, also a connection being made */
    bool stop_ready;
};

/* What has to be there before statements can be prepared. */
struct pawl__pg_setup {
    const struct pawl__schema *schema;
    const char *missing; /* the message of NOT_FOUND */
    const char
        *warning; /* what to log of a server that loses commits in a power cut; NULL: nothing */
    const char *needs_utf8; /* who stores texts and so needs that encoding; NULL: nobody */
    bool must_exist;
    bool read_only; /* nothing is migrated */
    bool unchecked; /* the schema is not compared */
};

/* What all capabilities set in the same way: how long the server may take to answer, and others may hold
 * a lock. */
struct pawl__pg_options pawl__pg_store_options(const struct pawl__location *location,
                                               uint32_t answer_ms_max,
                                               uint32_t busy_ms_max);

/* INVALID when values of so many bytes, and `spare` bytes beside them, are too long for the server.
 * `option` names the setting. */
PAWL_MUST_USE pawl_status pawl__pg_store_check_bytes(const char *option,
                                                     uint32_t bytes_max,
                                                     uint32_t spare,
                                                     pawl_error *reterr);

/* Takes URL and number of connections from the location; `options` are those of all connections.
 * Ended with _done, also when it failed. */
PAWL_MUST_USE pawl_status pawl__pg_store_init(struct pawl__pg_store *store,
                                              const struct pawl__location *location,
                                              const struct pawl__pg_options *options,
                                              pawl_error *reterr);

/* All borrowed connections were returned. */
void pawl__pg_store_done(struct pawl__pg_store *store);

/* Monotonic, on the clock of the connections. */
int64_t pawl__pg_store_now_ns(const struct pawl__pg_store *store);

/* *ret_pg: the connection that did it, without statements, for what else is to be set up. May be NULL. */
PAWL_MUST_USE pawl_status pawl__pg_store_set_up(struct pawl__pg_store *store,
                                                const struct pawl__pg_setup *setup,
                                                struct pawl__pg **ret_pg,
                                                pawl_error *reterr);

/* Opens the pool, of `size` connections at the most. */
PAWL_MUST_USE pawl_status pawl__pg_store_open_pool(struct pawl__pg_store *store,
                                                   size_t size,
                                                   pawl_error *reterr);

/* The writer's connection is there afterwards; TIMEOUT: others have all of them. */
PAWL_MUST_USE pawl_status pawl__pg_store_borrow_writer(struct pawl__pg_store *store,
                                                       pawl_error *reterr);
/* After each transaction: others may need the only connection. */
void pawl__pg_store_release_writer(struct pawl__pg_store *store);

/* A connection of the pool for one function:
 *
 *     AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
 *     TRY(pawl__pg_store_borrow(store, &borrowed, reterr)); */
struct pawl__pg_borrowed {
    struct pawl__pg_pool *pool;
    struct pawl__pg *pg;
};

/* TIMEOUT: all connections were in use until the deadline, or for half a minute, so something hangs. */
PAWL_MUST_USE pawl_status pawl__pg_store_borrow(struct pawl__pg_store *store,
                                                struct pawl__pg_borrowed *ret_borrowed,
                                                pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__pg_store_borrow_until(struct pawl__pg_store *store,
                                                      int64_t deadline_ns,
                                                      struct pawl__pg_borrowed *ret_borrowed,
                                                      pawl_error *reterr);
void pawl__pg_return(
    struct pawl__pg_borrowed *borrowed); /* for AUTO; nothing when none was borrowed */

/* A pawl__watch_fn: waits for news from other processes. A notification is only a hint to read; one
 * that was lost with a connection is made up for by the reading after the reconnect, and by the one
 * that the watcher does once a second in any case. With a single connection it polls. */
PAWL_MUST_USE pawl_status pawl__pg_store_watch(struct pawl__pg_store *store,
                                               int64_t deadline_ns,
                                               struct pawl__cancel *cancel,
                                               pawl_error *reterr);

#endif
