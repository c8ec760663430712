/* A bounded set of connections for threads that come and go.
 *
 *     struct pawl__pg *pg = NULL;
 *     status = pawl__pg_pool_borrow(pool, deadline_ns, &pg, reterr);
 *     ...
 *     pawl__pg_pool_return(pool, pg);
 *
 * Threads: any, at the same time. A connection belongs to its borrower until it is returned. */
#ifndef PAWL_STORE_POSTGRES_POOL_H
#define PAWL_STORE_POSTGRES_POOL_H

#include "store/postgres/postgres.h"

#define PAWL__PG_POOL_MAX 256

struct pawl__pg_pool;

/* Opens the first connection at once, so that a wrong URL or schema fails here; the others, up to
 * `size_max`, when they are first needed. What `options` points to must outlive the pool. */
PAWL_MUST_USE pawl_status pawl__pg_pool_open(const char *url,
                                             const struct pawl__pg_options *options,
                                             size_t size_max,
                                             struct pawl__pg_pool **ret_pool,
                                             pawl_error *reterr);

/* all connections have been given back */
DEFINE_AUTO(struct pawl__pg_pool *, pawl__pg_pool_close)

/* The connection that was used last, a new one, or the next that is given back before the monotonic
 * deadline: else TIMEOUT. A connection that broke in the pool connects again at its first call. */
PAWL_MUST_USE pawl_status pawl__pg_pool_borrow(struct pawl__pg_pool *pool,
                                               int64_t deadline_ns,
                                               struct pawl__pg **ret_pg,
                                               pawl_error *reterr);

/* Rolls back what is still open and resets interrupt and deadline. A connection that listens is not
 * for a pool. NULL is nothing. */
void pawl__pg_pool_return(struct pawl__pg_pool *pool, struct pawl__pg *pg);

#endif
