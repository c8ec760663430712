/* Handles to read one SQLite store with, for threads that come and go: in WAL mode nobody waits for
 * anybody. And news from other processes that have the same store open.
 *
 *     AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };
 *     TRY(pawl__sqlite_borrow(&backend->pool, &reader, reterr));
 *     ... reader.db ...
 *
 * Threads: borrow and return from any; watch from one. */
#ifndef PAWL_STORE_SQLITE_POOL_H
#define PAWL_STORE_SQLITE_POOL_H

#include "base/thread/thread.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/watch.h"

enum { PAWL__SQLITE_KEPT = 8 }; /* more are opened when needed, and closed when returned */

struct pawl__sqlite_pool {
    const char *path;                    /* of the file; the owner's */
    struct pawl__sqlite_options options; /* of every reader */
    struct pawl__lock lock;              /* covers the handles that are kept */
    struct pawl__sqlite *kept[PAWL__SQLITE_KEPT];
    size_t kept_count;
    struct pawl__sqlite_watch watch; /* the watcher thread's */
};

struct pawl__sqlite_borrowed {
    struct pawl__sqlite_pool *pool;
    struct pawl__sqlite *db;
};

/* `options` are those of the writer: readers open with `mode`, and trust its check of the schema. The
 * path is set before anybody borrows. */
void pawl__sqlite_pool_init(struct pawl__sqlite_pool *pool,
                            const struct pawl__sqlite_options *options,
                            enum pawl__sqlite_mode mode);
void pawl__sqlite_pool_done(struct pawl__sqlite_pool *pool); /* all handles were returned */

PAWL_MUST_USE pawl_status pawl__sqlite_borrow(struct pawl__sqlite_pool *pool,
                                              struct pawl__sqlite_borrowed *ret_borrowed,
                                              pawl_error *reterr);
void pawl__sqlite_return(
    struct pawl__sqlite_borrowed *borrowed); /* for AUTO; nothing without one */

/* A handle with one of its statements, for one question:
 *
 *     AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
 *     TRY(pawl__sqlite_ask(&backend->pool, STATEMENT, &asked, reterr));
 *     ... asked.stmt ... */
struct pawl__sqlite_question {
    struct pawl__sqlite_borrowed reader;
    struct pawl__sqlite_stmt stmt;
};

PAWL_MUST_USE pawl_status pawl__sqlite_ask(struct pawl__sqlite_pool *pool,
                                           size_t statement,
                                           struct pawl__sqlite_question *ret_question,
                                           pawl_error *reterr);
void pawl__sqlite_asked(struct pawl__sqlite_question *question); /* for AUTO */

/* A handle that somebody else opened, for the next one who borrows. */
void pawl__sqlite_pool_add(struct pawl__sqlite_pool *pool, struct pawl__sqlite *db);

/* As pawl__watch_fn says. */
PAWL_MUST_USE pawl_status pawl__sqlite_pool_watch(struct pawl__sqlite_pool *pool,
                                                  int64_t deadline_ns,
                                                  struct pawl__cancel *cancel,
                                                  pawl_error *reterr);

#endif
