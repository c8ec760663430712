/* SQLite, set up the one way we use it: WAL, synchronous FULL, one statement table a store.
 *
 *     enum { SQL_HEAD, SQL_APPEND, SQL_COUNT };
 *     static const char *const sql_text[SQL_COUNT] = { [SQL_HEAD] = "SELECT ...", ... };
 *
 *     AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt append = pawl__sqlite_use(db, SQL_APPEND);
 *     pawl__sqlite_bind_text(&append, 1, id);
 *     pawl__sqlite_bind_i64(&append, 2, turn);
 *     pawl_status status = pawl__sqlite_run(&append, reterr);
 *
 * Threads: a handle, its statements and what they return belong to one thread at a time; only
 * pawl__sqlite_interrupt may be called from another. Open a handle for each thread. A handle does
 * not survive a fork: the child must neither use nor close it.
 *
 * Processes: any number may have a store open. Writers take turns; a writer that waits longer than
 * `busy_ms_max` gets BUSY with the time waited in the message.
 *
 * Failed fsync: the kernel may have dropped the pages and will not say so twice. The handle is then
 * spoilt: every later call fails with IO until it is closed and the store opened (and recovered)
 * again. Whether the transaction that failed is stored is unknown until then.
 *
 * Do not open the file of a store by any other means in the same process: closing any descriptor of
 * it drops the locks that SQLite holds (POSIX). */
#ifndef PAWL_STORE_SQLITE_SQLITE_H
#define PAWL_STORE_SQLITE_SQLITE_H

#include <stdatomic.h>

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "store/migrate.h"

struct pawl__sqlite;
struct sqlite3_stmt;

enum pawl__sqlite_mode {
    PAWL__SQLITE_CREATE,     /* created when missing, mode 0600 */
    PAWL__SQLITE_MUST_EXIST, /* NOT_FOUND when missing or empty */
    PAWL__SQLITE_READ_ONLY,  /* must exist; its directory must be writable all the same, because
                              * readers of a WAL database share a memory file beside it */
    PAWL__SQLITE_AT_REST,    /* must exist, and nobody writes to it: read-only without a lock, and
                              * without a file beside it. A log that is there is not read. */
};

/* The mark of files that nobody marked: to read somebody else's, read-only. */
#define PAWL__SQLITE_UNMARKED 0

struct pawl__sqlite_options {
    enum pawl__sqlite_mode mode;
    /* The path is a name that only this process knows: the store is in memory, shared by all handles with
     * that name and gone with the last one. */
    bool in_memory;
    int32_t application_id;            /* marks our files; another one is refused */
    const struct pawl__schema *schema; /* migrated at open; NULL: none */
    /* The objects of the store are not compared with the schema: another handle of the same owner
     * did, or its opener checks what there is. */
    bool schema_unchecked;
    const char *temp_schema;       /* tables of this handle alone, for its statements; or NULL */
    const char *const *statements; /* each one statement; prepared at open */
    size_t statement_count;
    int64_t busy_ms_max;
    int64_t busy_nap_ms_max; /* between two tries to get the lock; 0: 50 */
    int wal_pages_max;  /* a commit that leaves the log longer moves it into the file; 0: never */
    int64_t cache_kib;  /* 0: SQLite's own choice */
    int64_t mmap_bytes; /* 0: none, the default: a failing disk under a map is a SIGBUS */
    /* Space of deleted rows can be given back (PRAGMA incremental_vacuum). Decided when the file is
     * created; later it changes nothing. */
    bool incremental_vacuum;
    /* What a statement needs to be taken back alone, and sorts, are kept in memory. Without it every
     * page that a statement with triggers touches is also written to a temporary file. */
    bool temp_in_memory;
    bool sync_normal; /* commits survive a crash of the process, the last ones not a power cut */
    bool unsafe_skip_sync;     /* no fsync at all; for tests of power loss */
    struct pawl__clock *clock; /* NULL: the real one */
    /* Once it is true, by a signal handler too, it is as if pawl__sqlite_interrupt had been called:
     * for good. Must outlive the handle. NULL: none. */
    const atomic_bool *interrupted;
};

#define PAWL__SQLITE_OPTIONS_INIT                   \
    {                                               \
        .busy_ms_max = 5000, .wal_pages_max = 1000, \
    }

/* A file that is not ours is INVALID and stays as it is, a newer schema UNSUPPORTED, damage, a foreign
 * trigger or a changed table CORRUPT, a file or directory that may not be written DENIED. */
PAWL_MUST_USE pawl_status pawl__sqlite_open(const char *path,
                                            const struct pawl__sqlite_options *options,
                                            struct pawl__sqlite **ret_db,
                                            pawl_error *reterr);
/* an open transaction is taken back */
DEFINE_AUTO(struct pawl__sqlite *, pawl__sqlite_close)

/* One use of a prepared statement. A failed bind is remembered and reported by the next step. */
struct pawl__sqlite_stmt {
    struct pawl__sqlite *db;
    struct sqlite3_stmt *native;
    int rc;
};

/* The statement `id` of the table, free of values. It must not be in use. */
struct pawl__sqlite_stmt pawl__sqlite_use(struct pawl__sqlite *db, size_t id);
void pawl__sqlite_reset(struct pawl__sqlite_stmt *stmt); /* for AUTO; ends the use */

/* Parameters count from 1. Text and bytes are borrowed until the reset; an empty view is an empty
 * text, not NULL. */
void pawl__sqlite_bind_i64(struct pawl__sqlite_stmt *stmt, int parameter, int64_t value);
void pawl__sqlite_bind_double(struct pawl__sqlite_stmt *stmt, int parameter, double value);
void pawl__sqlite_bind_text(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view text);
void pawl__sqlite_bind_blob(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view bytes);
/* Text that may go away before the reset. */
void pawl__sqlite_bind_copy(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view text);
void pawl__sqlite_bind_null(struct pawl__sqlite_stmt *stmt, int parameter);

/* Runs to the next row; *ret_row is false behind the last one. */
PAWL_MUST_USE pawl_status pawl__sqlite_next(struct pawl__sqlite_stmt *stmt,
                                            bool *ret_row,
                                            pawl_error *reterr);

/* The same as a condition: false after the last row, and when *status is not PAWL_OK.
 *
 *     while (pawl__sqlite_more(&stmt, &status, reterr)) { ... }
 *     return status; */
static inline bool pawl__sqlite_more(struct pawl__sqlite_stmt *stmt,
                                     pawl_status *status,
                                     pawl_error *reterr)
{
    bool row = false;

    *status = *status == PAWL_OK ? pawl__sqlite_next(stmt, &row, reterr) : *status;
    return *status == PAWL_OK && row;
}

/* Runs a statement that gives no rows. */
PAWL_MUST_USE pawl_status pawl__sqlite_run(struct pawl__sqlite_stmt *stmt, pawl_error *reterr);

/* Columns of the current row count from 0. Views live until the next step or reset. NULL reads as 0
 * and as the empty view. A number read as text is converted, which needs memory: without it the
 * view is empty and the next step fails with NOMEM. */
int64_t pawl__sqlite_i64(struct pawl__sqlite_stmt *stmt, int column);
double pawl__sqlite_double(struct pawl__sqlite_stmt *stmt, int column);
pawl_view pawl__sqlite_text(struct pawl__sqlite_stmt *stmt, int column);
pawl_view pawl__sqlite_blob(struct pawl__sqlite_stmt *stmt, int column);
bool pawl__sqlite_is_null(struct pawl__sqlite_stmt *stmt, int column);
/* The same where nothing may be converted: false when it is stored as another type. */
bool pawl__sqlite_as_text(struct pawl__sqlite_stmt *stmt, int column, pawl_view *ret_text);
bool pawl__sqlite_as_i64(struct pawl__sqlite_stmt *stmt, int column, int64_t *ret_number);

int64_t pawl__sqlite_changes(struct pawl__sqlite *db); /* rows of the last INSERT, UPDATE, DELETE */

/* Changes whenever another connection has committed; equal values mean nothing is new. */
PAWL_MUST_USE pawl_status pawl__sqlite_data_version(struct pawl__sqlite *db,
                                                    int64_t *ret_version,
                                                    pawl_error *reterr);

enum pawl__sqlite_begin {
    PAWL__SQLITE_IMMEDIATE, /* takes the write lock now: what is read next cannot change */
    PAWL__SQLITE_DEFERRED, /* a snapshot to read from; a write in it is BUSY when the store moved on
                            */
};

/* IO when the file, its log or the log's index is not in its place any more: moved, replaced or
 * deleted. CORRUPT when the schema was changed to one that is not ours. Nothing was done then.
 * Transactions do not nest. An error that made SQLite take the transaction back (no space, no
 * memory, I/O, interrupt) fails every later statement until pawl__sqlite_rollback: nothing slips
 * out of it one by one. */
PAWL_MUST_USE pawl_status pawl__sqlite_begin(struct pawl__sqlite *db,
                                             enum pawl__sqlite_begin kind,
                                             pawl_error *reterr);

/* PAWL_OK: survives a power cut (unless the options say otherwise). Anything else has taken the
 * transaction back; after IO it may yet be there when the store is opened again. IO also when the log
 * was removed meanwhile: nobody else sees then what was written to it. */
PAWL_MUST_USE pawl_status pawl__sqlite_commit(struct pawl__sqlite *db, pawl_error *reterr);
void pawl__sqlite_rollback(struct pawl__sqlite *db); /* nothing without a transaction */
bool pawl__sqlite_in_transaction(const struct pawl__sqlite *db);

/* Runs a script of several statements. For schemas and tests: values are bound elsewhere. */
PAWL_MUST_USE pawl_status pawl__sqlite_exec(struct pawl__sqlite *db,
                                            const char *sql,
                                            pawl_error *reterr);

/* From any thread while the handle is open: the running call and every later one, except rollback
 * and close, fail with CANCELLED until pawl__sqlite_interrupt_clear. A commit under way is not cut
 * in two: it happens or it does not. */
void pawl__sqlite_interrupt(struct pawl__sqlite *db);
void pawl__sqlite_interrupt_clear(struct pawl__sqlite *db);

/* --- maintenance.c --- */

enum pawl__sqlite_checkpoint {
    PAWL__SQLITE_PASSIVE,  /* what can be moved without waiting for anybody */
    PAWL__SQLITE_TRUNCATE, /* everything, and the log is empty afterwards; BUSY when readers stay */
};

/* Moves the log into the file. Afterwards `*ret_left` pages of it are still to be moved; may be
 * NULL. */
PAWL_MUST_USE pawl_status pawl__sqlite_checkpoint(struct pawl__sqlite *db,
                                                  enum pawl__sqlite_checkpoint kind,
                                                  int *ret_left,
                                                  pawl_error *reterr);

/* CORRUPT with the first problem found. Reads the whole file; a changed bit inside a value is not
 * noticed. */
PAWL_MUST_USE pawl_status pawl__sqlite_quick_check(struct pawl__sqlite *db, pawl_error *reterr);

/* Bytes of the file that hold nothing any more. */
PAWL_MUST_USE pawl_status pawl__sqlite_free_bytes(struct pawl__sqlite *db,
                                                  uint64_t *ret_bytes,
                                                  pawl_error *reterr);

/* Gives up to `pages_max` free pages back to the file system, in the transaction that is open or in
 * one of its own; the file shrinks when the log is moved next. *ret_bytes is 0 when there is nothing
 * to give, or when the file was made without incremental_vacuum. */
PAWL_MUST_USE pawl_status pawl__sqlite_give_back(struct pawl__sqlite *db,
                                                 int pages_max,
                                                 uint64_t *ret_bytes,
                                                 pawl_error *reterr);

struct pawl__sqlite_backup_options {
    int step_pages; /* between two calls of `progress`; 0: 256 */
    /* False cancels. NULL: none. */
    bool (*progress)(void *context, uint64_t done_pages, uint64_t all_pages);
    void *context;
};

/* Copies the store as it is now to `path`, replacing what is there, all or nothing: a file beside
 * it, fsync, rename, fsync of the directory. Writers are not held up and do not disturb the copy.
 * Outside of a transaction. `options` may be NULL. */
PAWL_MUST_USE pawl_status pawl__sqlite_backup(struct pawl__sqlite *db,
                                              const char *path,
                                              const struct pawl__sqlite_backup_options *options,
                                              pawl_error *reterr);

/* --- schema_check.c --- */

/* CORRUPT names a trigger that the migrations did not make, or an object that is missing or different.
 * Columns that somebody added, nullable or with a default, are no difference.
 * Done at open and when a writer finds the schema changed. */
PAWL_MUST_USE pawl_status pawl__sqlite_check_schema(struct pawl__sqlite *db, pawl_error *reterr);

/* --- place.c --- */

/* IO when the file, its log or the log's index is not in its place any more: moved, replaced or
 * deleted. */
PAWL_MUST_USE pawl_status pawl__sqlite_check_place(struct pawl__sqlite *db, pawl_error *reterr);

/* --- ask.c --- */

/* Whether a SELECT that somebody else wrote gives a row. It can read and nothing else. INVALID: it is
 * not one such statement, or it fails. TIMEOUT after `ms_max`. Outside of a transaction. */
PAWL_MUST_USE pawl_status pawl__sqlite_row_exists(struct pawl__sqlite *db,
                                                  const char *select,
                                                  int64_t ms_max,
                                                  bool *ret_exists,
                                                  pawl_error *reterr);

#endif
