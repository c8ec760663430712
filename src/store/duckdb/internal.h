/* What the files of the DuckDB wrapper share; for nobody else. */
#ifndef PAWL_STORE_DUCKDB_INTERNAL_H
#define PAWL_STORE_DUCKDB_INTERNAL_H

#include <duckdb.h>

#include <stdatomic.h>

#include "base/thread/thread.h"
#include "store/duckdb/duckdb.h"
#include "store/lock.h"

/* Ends what runs too long. DuckDB's interrupt is a flag that the start of a statement clears, so
 * one that comes a moment early is lost: the watcher repeats it until the call has returned. */
struct duck_watch {
    struct pawl__lock lock; /* covers all below, and a connection's `watched` */
    struct pawl__cond cond;
    struct pawl__thread thread;
    struct pawl__duck_conn *connections;
    bool stop;
    struct pawl__clock *clock;
};

struct pawl__duck {
    char *path;
    char *wal_path;
    struct pawl__store_lock *lock;
    bool read_only;
    bool unsafe_no_sync;
    uint64_t cut_bytes; /* of the log, when it was opened */
    duckdb_database native;
    atomic_int streams; /* open rows; each holds a lock on its tables that a checkpoint waits for */
    struct duck_watch watch;
    bool watching;              /* the lock, condition and thread of `watch` are there */
    struct pawl__lock wal_lock; /* covers wal_fd */
    int wal_fd;                 /* the log whose name is known to be durable; -1: none */
    atomic_bool spoilt; /* a directory sync failed: what was acknowledged cannot be told any more */
};

/* What to execute: a statement of the table, the caller's text, or one of a script. */
struct duck_source {
    const char *sql;
    duckdb_prepared_statement kept; /* NULL: plan it now */
    duckdb_extracted_statements script;
    idx_t index;
};

struct pawl__duck_conn {
    struct pawl__duck *db;
    duckdb_connection native;
    struct duck_source *statements;
    size_t statement_count;
    struct pawl__duck_rows *rows; /* at most one result is open */
    struct pawl__duck_appender *appenders;

    bool in_transaction;
    enum pawl__duck_mode mode;
    pawl_error failure; /* the first of this transaction; PAWL_OK: none yet */

    struct { /* under db->watch.lock */
        struct pawl__duck_conn *next;
        bool running;
        bool interrupted;
        int64_t deadline_ns;
    } watched;
};

/* The one place where DuckDB's errors become ours. `type` is DUCKDB_ERROR_INVALID where the engine
 * gives only text. */
pawl_status pawl__duck_fail(duckdb_error_type type, const char *text, pawl_error *reterr);

/* The same for a call on a connection: an interrupt gets its reason, and the transaction fails. */
pawl_status pawl__duck_conn_fail(struct pawl__duck_conn *conn,
                                 duckdb_error_type type,
                                 const char *text,
                                 pawl_error *reterr);

/* Remembers a failure of our own as the transaction's first, and returns `status`. */
pawl_status pawl__duck_note(struct pawl__duck_conn *conn, pawl_status status, pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__duck_watch_start(struct pawl__duck *db, pawl_error *reterr);
void pawl__duck_watch_end(struct pawl__duck *db);
void pawl__duck_watch_add(struct pawl__duck_conn *conn);
void pawl__duck_watch_remove(struct pawl__duck_conn *conn);

/* Around every call that may take long. CANCELLED or TIMEOUT when it should not even begin. */
PAWL_MUST_USE pawl_status pawl__duck_enter(struct pawl__duck_conn *conn, pawl_error *reterr);
void pawl__duck_leave(struct pawl__duck_conn *conn);

/* The name of the log that the last commit went to is durable when this returns. */
PAWL_MUST_USE pawl_status pawl__duck_sync_wal_name(struct pawl__duck *db, pawl_error *reterr);

/* The log of a file that does not open: takes away its last transaction when a power cut left holes
 * in it. *ret_bytes 0: that is not what is wrong with it. Otherwise pawl__duck_end_cut must follow
 * the next attempt to open it. */
PAWL_MUST_USE pawl_status pawl__duck_cut_log(const struct pawl__duck *db,
                                             uint64_t *ret_bytes,
                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__duck_end_cut(const struct pawl__duck *db,
                                             bool undo,
                                             pawl_error *reterr);

/* Runs constant text and ignores its rows. */
PAWL_MUST_USE pawl_status pawl__duck_command(struct pawl__duck_conn *conn,
                                             const char *sql,
                                             pawl_error *reterr);

/* The same without an answer, whether the connection was interrupted or not. */
void pawl__duck_run_quietly(struct pawl__duck_conn *conn, const char *sql);

PAWL_MUST_USE pawl_status pawl__duck_plan(struct pawl__duck_conn *conn,
                                          const struct duck_source *source,
                                          duckdb_prepared_statement *ret_statement,
                                          pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__duck_check_size(pawl_view value, pawl_error *reterr);

/* A statement that was executed, with what has to end after it. */
struct duck_exec {
    duckdb_prepared_statement statement;
    duckdb_result result;
    bool owns_statement;
    bool has_result;
    bool alone; /* in a transaction that exists only for it */
    bool streams;
    bool at_end; /* of the stream: all was read */
};

/* Binds, executes and, outside a transaction, commits; everything is undone when it fails. With
 * `stream` the rows of a query come while it runs, and the transaction it is alone in stays open
 * until _end. */
PAWL_MUST_USE pawl_status pawl__duck_exec(struct pawl__duck_conn *conn,
                                          const struct duck_source *source,
                                          const struct pawl__duck_value *values,
                                          size_t value_count,
                                          bool stream,
                                          struct duck_exec *ret_exec,
                                          pawl_error *reterr);
void pawl__duck_exec_end(struct pawl__duck_conn *conn, struct duck_exec *exec);

/* After a COMMIT that succeeded. */
PAWL_MUST_USE pawl_status pawl__duck_after_commit(struct pawl__duck *db, pawl_error *reterr);

/* Ends the connection's rows; what is left of them says CLOSED until it is freed. */
void pawl__duck_kill_rows(struct pawl__duck_conn *conn);

/* Flushes every appender of the connection and ends it. */
PAWL_MUST_USE pawl_status pawl__duck_finish_appenders(struct pawl__duck_conn *conn,
                                                      pawl_error *reterr);

/* Throws away what they hold. Must come before ROLLBACK: DuckDB flushes an appender when it is
 * destroyed, and after the transaction that would be a commit of its own. */
void pawl__duck_kill_appenders(struct pawl__duck_conn *conn);

#endif
