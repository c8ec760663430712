#include "store/postgres/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/thread/thread.h"
#include "store/postgres/internal.h"

struct pawl__pg_pool {
    struct pawl__lock lock; /* covers idle, idle_count and size */
    struct pawl__cond given;
    char *url;
    struct pawl__pg_options options;
    size_t size_max;
    size_t size; /* open or being opened */
    size_t idle_count;
    struct pawl__pg *idle[PAWL__PG_POOL_MAX]; /* a stack: what was used last is warm */
};

/* Opens the connection that `size` already counts. Without the lock: it takes a while. */
static pawl_status open_counted(struct pawl__pg_pool *pool,
                                struct pawl__pg **ret_pg,
                                pawl_error *reterr)
{
    pawl_status status = pawl__pg_open(pool->url, &pool->options, ret_pg, reterr);

    if (status != PAWL_OK) {
        pawl__lock(&pool->lock);
        pool->size--;
        pawl__cond_signal(&pool->given); /* somebody who waits may try */
        pawl__unlock(&pool->lock);
    }
    return status;
}

static pawl_status open_first(struct pawl__pg_pool *pool, pawl_error *reterr)
{
    struct pawl__pg *pg = NULL;

    pool->size = 1;
    TRY(open_counted(pool, &pg, reterr));
    pawl__pg_pool_return(pool, pg);
    return PAWL_OK;
}

pawl_status pawl__pg_pool_open(const char *url,
                               const struct pawl__pg_options *options,
                               size_t size_max,
                               struct pawl__pg_pool **ret_pool,
                               pawl_error *reterr)
{
    REQUIRE(size_max >= 1);
    REQUIRE(size_max <= PAWL__PG_POOL_MAX);
    struct pawl__pg_pool *made = calloc(1, sizeof(*made));
    TRY(pawl__check_memory(made, "a connection pool", reterr));
    pawl__lock_cond_init(&made->lock, &made->given);
    AUTO(pawl__pg_pool_close_p) struct pawl__pg_pool *pool = made;
    pool->url = strdup(url);
    TRY(pawl__check_memory(pool->url, "a connection pool", reterr));
    pool->size_max = size_max;
    if (options != NULL) {
        pool->options = *options;
    }
    TRY(open_first(pool, reterr));
    *ret_pool = STEAL(pool);
    return PAWL_OK;
}

void pawl__pg_pool_close(struct pawl__pg_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    REQUIRE(pool->size == pool->idle_count);
    for (size_t i = 0; i < pool->idle_count; i++) {
        pawl__pg_close(pool->idle[i]);
    }
    pawl__lock_cond_done(&pool->lock, &pool->given);
    free(pool->url);
    free(pool);
}

pawl_status pawl__pg_pool_borrow(struct pawl__pg_pool *pool,
                                 int64_t deadline_ns,
                                 struct pawl__pg **ret_pg,
                                 pawl_error *reterr)
{
    struct pawl__pg *idle = NULL;
    bool in_time = true;

    pawl__lock(&pool->lock);
    while (pool->idle_count == 0 && pool->size == pool->size_max && in_time) {
        in_time = pawl__cond_wait_until(&pool->given, &pool->lock, deadline_ns);
    }
    if (pool->idle_count > 0) {
        idle = pool->idle[--pool->idle_count];
    }
    bool may_open = idle == NULL && pool->size < pool->size_max;
    pool->size += may_open;
    pawl__unlock(&pool->lock);
    if (idle != NULL) {
        *ret_pg = idle;
        return PAWL_OK;
    }
    return may_open ? open_counted(pool, ret_pg, reterr)
                    : pawl__fail(reterr,
                                 PAWL_TIMEOUT,
                                 "all %zu connections of the pool are in use",
                                 pool->size_max);
}

void pawl__pg_pool_return(struct pawl__pg_pool *pool, struct pawl__pg *pg)
{
    if (pg == NULL) {
        return;
    }
    REQUIRE(pg->channel_count == 0);
    pawl__pg_pipeline_abandon(pg);
    pawl__pg_rollback(pg);
    pawl__pg_set_deadline(pg, 0);
    pawl__pg_resume(pg);
    pawl__lock(&pool->lock);
    REQUIRE(pool->idle_count < pool->size);
    pool->idle[pool->idle_count++] = pg;
    pawl__cond_signal(&pool->given);
    pawl__unlock(&pool->lock);
}
