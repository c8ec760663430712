#include "store/sqlite/pool.h"

#include "base/core/error.h"
#include "store/sqlite/internal.h"

void pawl__sqlite_pool_init(struct pawl__sqlite_pool *pool,
                            const struct pawl__sqlite_options *options,
                            enum pawl__sqlite_mode mode)
{
    *pool = (struct pawl__sqlite_pool){ .options = *options, .watch = PAWL__SQLITE_WATCH_INIT };
    pool->options.mode = mode;
    pool->options.schema_unchecked = true;
    pawl__lock_init(&pool->lock);
}

void pawl__sqlite_pool_done(struct pawl__sqlite_pool *pool)
{
    for (size_t i = 0; i < pool->kept_count; i++) {
        pawl__sqlite_close(pool->kept[i]);
    }
    pawl__sqlite_watch_done(&pool->watch);
    pawl__lock_done(&pool->lock);
}

pawl_status pawl__sqlite_borrow(struct pawl__sqlite_pool *pool,
                                struct pawl__sqlite_borrowed *ret_borrowed,
                                pawl_error *reterr)
{
    struct pawl__sqlite *db = NULL;

    pawl__lock(&pool->lock);
    if (pool->kept_count > 0) {
        db = pool->kept[--pool->kept_count];
    }
    pawl__unlock(&pool->lock);
    if (db == NULL) {
        pawl_status status = pawl__sqlite_open(pool->path, &pool->options, &db, reterr);
        if (status != PAWL_OK) { /* it was there when the pool was made */
            return status == PAWL_NOT_FOUND ? pawl__sqlite_fail_moved(pool->path, reterr) : status;
        }
    }
    *ret_borrowed = (struct pawl__sqlite_borrowed){ pool, db };
    return PAWL_OK;
}

void pawl__sqlite_pool_add(struct pawl__sqlite_pool *pool, struct pawl__sqlite *db)
{
    pawl__lock(&pool->lock);
    if (pool->kept_count < PAWL__SQLITE_KEPT) {
        pool->kept[pool->kept_count++] = STEAL(db);
    }
    pawl__unlock(&pool->lock);
    pawl__sqlite_close(db);
}

void pawl__sqlite_return(struct pawl__sqlite_borrowed *borrowed)
{
    if (borrowed->db != NULL) {
        pawl__sqlite_pool_add(borrowed->pool, STEAL(borrowed->db));
    }
}

pawl_status pawl__sqlite_ask(struct pawl__sqlite_pool *pool,
                             size_t statement,
                             struct pawl__sqlite_question *ret_question,
                             pawl_error *reterr)
{
    TRY(pawl__sqlite_borrow(pool, &ret_question->reader, reterr));
    ret_question->stmt = pawl__sqlite_use(ret_question->reader.db, statement);
    return PAWL_OK;
}

void pawl__sqlite_asked(struct pawl__sqlite_question *question)
{
    pawl__sqlite_reset(&question->stmt);
    pawl__sqlite_return(&question->reader);
}

pawl_status pawl__sqlite_pool_watch(struct pawl__sqlite_pool *pool,
                                    int64_t deadline_ns,
                                    struct pawl__cancel *cancel,
                                    pawl_error *reterr)
{
    if (pool->watch.db == NULL) {
        struct pawl__sqlite_borrowed reader = { NULL, NULL };
        TRY(pawl__sqlite_borrow(pool, &reader, reterr));
        pawl__sqlite_watch_start(&pool->watch, pool->path, reader.db);
    }
    return pawl__sqlite_watch(&pool->watch, deadline_ns, cancel, reterr);
}
