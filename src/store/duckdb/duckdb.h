/* DuckDB: columns for analysis, as a projection that can be rebuilt.
 *
 *   Owner         One process owns a file, and in it one handle; another one gets BUSY.
 *   Threads       A database serves any thread. A connection, and its rows and appenders, belong to
 *                 one thread at a time, except for pawl__duck_interrupt. All of them end before the
 *                 database is closed.
 *   Durability    PAWL_OK from a commit, or from a statement outside a transaction, means: in the
 *                 log, on disk, and the log's name in its directory too (DuckDB syncs only the
 *                 file, and a new log is lost with its name). After a sync of the directory that
 *                 failed, every later call fails with IO until the file is closed and opened again.
 *   Checkpoints   Only pawl__duck_checkpoint moves the log into the file. DuckDB's own moments (a
 *                 log over 16 MiB, the close) are off: cut short by a power loss they left a file
 *                 that does not open. Keep what fed this store until a checkpoint has covered it.
 *   Power cuts    A transaction that was under way may leave holes at the end of the log, which
 *                 DuckDB refuses to read. Opening takes that transaction away, as it does one that
 *                 is merely too short; pawl__duck_cut_bytes says so.
 *   Damage        A file that does not open is CORRUPT: pawl__duck_quarantine moves it aside, and
 *                 the caller rebuilds, loudly. Damage to the length of an entry of the log looks
 *                 like its torn end, and what follows is gone: rows and the cursors beside them are
 *                 then older together.
 *   Transactions  The first failed call fails the transaction. DuckDB would still answer COMMIT
 *                 with success and roll back; here the commit returns that first error.
 *   Writers       Two that change one row: BUSY, roll back and try again. An index on a column that
 *                 is updated makes that happen whenever a snapshot is open elsewhere: have none.
 *                 A key that is deleted and inserted again in a later transaction is a CONFLICT as
 *                 long as an older snapshot is open, ON CONFLICT included: update it instead, or
 *                 delete and insert in one transaction.
 *   Plans         A statement without parameters is planned at every execution: a plan that DuckDB
 *                 keeps gives wrong rows once its table has grown (see exec.c).
 *   SQL           Sees no files and no network, loads nothing, changes no settings. In it,
 *                 `ON CONFLICT DO UPDATE SET x = now()`: CURRENT_TIMESTAMP does not bind there.
 *
 * Failpoints: duckdb.{commit,checkpoint}.{before,after}, duckdb.{cut,execute,quarantine,sync}.before.
 */
#ifndef PAWL_STORE_DUCKDB_DUCKDB_H
#define PAWL_STORE_DUCKDB_DUCKDB_H

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "store/migrate.h"

#define PAWL__DUCK_VALUE_BYTES_MAX ((size_t)64 << 20)
#define PAWL__DUCK_COLUMNS_MAX 1024       /* of a result */
#define PAWL__DUCK_APPEND_COLUMNS_MAX 128 /* of rows handed to a query */

struct pawl__duck;
struct pawl__duck_conn;
struct pawl__duck_rows;
struct pawl__duck_appender;

struct pawl__duck_options {
    int threads;               /* 0: one for each processor */
    uint64_t memory_bytes_max; /* beyond it DuckDB uses files in PATH.tmp, then NOMEM; 0: 1 GiB */
    bool read_only;            /* the file must be there; for SQL consoles */
    const char *const *allowed_dirs; /* where SQL may read and write files; absolute paths */
    size_t allowed_dir_count;        /* 0: nowhere */
    bool unsafe_no_sync;       /* leaves out our directory syncs: control of the power-loss test */
    struct pawl__clock *clock; /* of deadlines, so one that runs. NULL: the real one */
};

/* `options` may be NULL. BUSY names who has the file; UNSUPPORTED: a newer DuckDB wrote it;
 * CORRUPT: it does not open. Nothing is changed in any of these cases. */
PAWL_MUST_USE pawl_status pawl__duck_open(const char *path,
                                          const struct pawl__duck_options *options,
                                          struct pawl__duck **ret_db,
                                          pawl_error *reterr);

/* A database of this process alone, gone when it is closed: to compute, not to keep. Of the options only threads,
 * memory and clock count. */
PAWL_MUST_USE pawl_status pawl__duck_open_memory(const struct pawl__duck_options *options,
                                                 struct pawl__duck **ret_db,
                                                 pawl_error *reterr);

/* How much of an unfinished transaction was cut off the log when it was opened; 0 as a rule. Worth a
 * line in the program's log. */
uint64_t pawl__duck_cut_bytes(const struct pawl__duck *db);

/* Leaves the log as it is; the next open reads it. To leave none: checkpoint first. */
DEFINE_AUTO(struct pawl__duck *, pawl__duck_close)

enum pawl__duck_checkpoint_mode {
    PAWL__DUCK_CHECKPOINT_TRY,   /* BUSY while rows or a transaction that writes are open */
    PAWL__DUCK_CHECKPOINT_FORCE, /* waits for them; none may be the caller's own */
};

/* Moves the log into the file and makes both durable. Snapshots stay as they are. */
PAWL_MUST_USE pawl_status pawl__duck_checkpoint(struct pawl__duck *db,
                                                enum pawl__duck_checkpoint_mode mode,
                                                pawl_error *reterr);

/* Renames a file that does not open, and its log, to PATH.quarantined-N and PATH.wal.quarantined-N
 * with the first free N, so that the next open makes a new one. BUSY when somebody has it open,
 * NOT_FOUND when there is nothing to move. */
PAWL_MUST_USE pawl_status pawl__duck_quarantine(const char *path,
                                                int *ret_number,
                                                pawl_error *reterr);

/* A connection with no statements prepared. */
PAWL_MUST_USE pawl_status pawl__duck_connect(struct pawl__duck *db,
                                             struct pawl__duck_conn **ret_conn,
                                             pawl_error *reterr);

/* Rolls back an open transaction. Rows and appenders that are left are dead, but still to be freed.
 */
DEFINE_AUTO(struct pawl__duck_conn *, pawl__duck_disconnect)

/* Prepares a table of statements, in place of the one there was; calls name one by its index. The
 * texts outlive the connection. A typo fails here, with the statement's number. */
PAWL_MUST_USE pawl_status pawl__duck_prepare(struct pawl__duck_conn *conn,
                                             const char *const *statements,
                                             size_t count,
                                             pawl_error *reterr);

/* From any thread while the connection is open: what it runs ends with CANCELLED, and so does every
 * later call but rollback and disconnect, until _resume. */
void pawl__duck_interrupt(struct pawl__duck_conn *conn);
void pawl__duck_resume(struct pawl__duck_conn *conn);

/* A monotonic time after which calls end with TIMEOUT; 0: none. It stays until it is set again. */
void pawl__duck_set_deadline(struct pawl__duck_conn *conn, int64_t deadline_ns);

/* A parameter, one letter a type. Text and bytes are borrowed for the call.
 *
 *   i int64_t    u uint64_t    d double    b bool    t text    x bytes (BLOB)
 *   z TIMESTAMP, microseconds since 1970 UTC          0 NULL */
struct pawl__duck_value {
    char type;
    union {
        int64_t i64;
        uint64_t u64;
        double d;
        bool b;
        pawl_view view;
    } as;
};

static inline struct pawl__duck_value pawl__duck_null(void)
{
    return (struct pawl__duck_value){ .type = 0 };
}

#define DUCK_VALUE(name, c_type, letter, member)                             \
    static inline struct pawl__duck_value name(c_type value)                 \
    {                                                                        \
        return (struct pawl__duck_value){ .type = letter, .member = value }; \
    }
DUCK_VALUE(pawl__duck_i64, int64_t, 'i', as.i64)
DUCK_VALUE(pawl__duck_u64, uint64_t, 'u', as.u64)
DUCK_VALUE(pawl__duck_double, double, 'd', as.d)
DUCK_VALUE(pawl__duck_bool, bool, 'b', as.b)
DUCK_VALUE(pawl__duck_text, pawl_view, 't', as.view)
DUCK_VALUE(pawl__duck_bytes, pawl_view, 'x', as.view)
DUCK_VALUE(pawl__duck_time, int64_t, 'z', as.i64)

/* The parameters of one call: DUCK_ARGS(pawl__duck_i64(1), pawl__duck_null()). */
#define DUCK_ARGS(...)                                \
    (const struct pawl__duck_value[]){ __VA_ARGS__ }, \
        sizeof((const struct pawl__duck_value[]){ __VA_ARGS__ }) / sizeof(struct pawl__duck_value)
#define DUCK_NO_ARGS NULL, 0

/* INVALID when DuckDB must not see this text: not UTF-8, a NUL inside, or over the limit. The calls
 * below check by themselves; who fills an appender checks before, because a bad value there costs
 * the whole transaction. */
PAWL_MUST_USE pawl_status pawl__duck_check_text(pawl_view text, pawl_error *reterr);

/* Runs statement number `statement`. `ret_changed` may be NULL.
 *
 * INVALID: a value does not fit its column (what is no JSON in a JSON column, say) or its number.
 * CONFLICT: a key or another constraint. BUSY: another transaction changed the row. */
PAWL_MUST_USE pawl_status pawl__duck_run(struct pawl__duck_conn *conn,
                                         size_t statement,
                                         const struct pawl__duck_value *values,
                                         size_t value_count,
                                         int64_t *ret_changed,
                                         pawl_error *reterr);

/* Any number of statements without parameters, up to the first error: set-up and migrations.
 * BEGIN, COMMIT and ROLLBACK in it are INVALID: transactions are begun and ended below. */
PAWL_MUST_USE pawl_status pawl__duck_script(struct pawl__duck_conn *conn,
                                            const char *sql,
                                            pawl_error *reterr);

enum pawl__duck_mode {
    PAWL__DUCK_WRITE,
    PAWL__DUCK_READ_ONLY, /* one snapshot; whatever would write is DENIED. For foreign SQL */
};

PAWL_MUST_USE pawl_status pawl__duck_begin(struct pawl__duck_conn *conn,
                                           enum pawl__duck_mode mode,
                                           pawl_error *reterr);

/* Flushes what appenders still hold, then commits. After a failed call in the transaction it rolls
 * back and returns that call's error. Whatever it returns, the transaction is over and its
 * appenders are dead. IO from a commit alone means that its outcome is unknown. */
PAWL_MUST_USE pawl_status pawl__duck_commit(struct pawl__duck_conn *conn, pawl_error *reterr);

/* Ends open rows and appenders, too. Nothing to do without a transaction, so a guard may stand
 * above a commit:
 *
 *     AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = conn; */
DEFINE_AUTO(struct pawl__duck_conn *, pawl__duck_rollback)

bool pawl__duck_in_transaction(const struct pawl__duck_conn *conn);

/* Rows come a chunk at a time while the query runs; they are never all in memory. Until they are
 * freed the connection runs nothing else, and outside a transaction they hold a snapshot open.
 *
 *     status = pawl__duck_query(conn, SQL_PAGE, DUCK_ARGS(...), &rows, reterr);
 *     while (status == PAWL_OK && (status = pawl__duck_next(rows, reterr)) == PAWL_OK
 *            && pawl__duck_has_row(rows)) { ... }
 *     if (status != PAWL_OK) { return status; }      it stopped on an error, not at the end */
PAWL_MUST_USE pawl_status pawl__duck_query(struct pawl__duck_conn *conn,
                                           size_t statement,
                                           const struct pawl__duck_value *values,
                                           size_t value_count,
                                           struct pawl__duck_rows **ret_rows,
                                           pawl_error *reterr);

/* The same for one statement of text that is not in the table. */
PAWL_MUST_USE pawl_status pawl__duck_query_text(struct pawl__duck_conn *conn,
                                                const char *sql,
                                                const struct pawl__duck_value *values,
                                                size_t value_count,
                                                struct pawl__duck_rows **ret_rows,
                                                pawl_error *reterr);

DEFINE_AUTO(struct pawl__duck_rows *, pawl__duck_rows_free)

/* Goes to the next row, at first to the first. PAWL_OK with has_row false is the end. */
PAWL_MUST_USE pawl_status pawl__duck_next(struct pawl__duck_rows *rows, pawl_error *reterr);
bool pawl__duck_has_row(const struct pawl__duck_rows *rows);

size_t pawl__duck_column_count(const struct pawl__duck_rows *rows);
const char *pawl__duck_column_name(const struct pawl__duck_rows *rows, size_t column);

/* The letter of the getter that fits; '?' for types that SQL has to cast first (HUGEINT, which
 * sum() gives, DECIMAL, DATE, LIST, ...). */
char pawl__duck_column_type(const struct pawl__duck_rows *rows, size_t column);

/* Of the row it stands on. The type must fit (smaller integers widen; JSON and enums are cast to
 * text in SQL where need be); another one is our mistake. NULL reads as 0, false or the empty view.
 * Views live until the next pawl__duck_next. */
bool pawl__duck_is_null(const struct pawl__duck_rows *rows, size_t column);
int64_t pawl__duck_get_i64(const struct pawl__duck_rows *rows, size_t column);
uint64_t pawl__duck_get_u64(const struct pawl__duck_rows *rows, size_t column);
double pawl__duck_get_double(const struct pawl__duck_rows *rows, size_t column);
bool pawl__duck_get_bool(const struct pawl__duck_rows *rows, size_t column);
int64_t pawl__duck_get_time(const struct pawl__duck_rows *rows, size_t column);
pawl_view pawl__duck_get_text(const struct pawl__duck_rows *rows, size_t column);
pawl_view pawl__duck_get_bytes(const struct pawl__duck_rows *rows, size_t column);

/* Appends rows to a table, quicker than any INSERT, inside an open transaction. A value that cannot
 * be appended is reported when its row ends. A duplicate key is found only when the buffer is
 * flushed: at a row's end after many rows, at finish or at commit; it is a CONFLICT. Any failure
 * loses the whole buffer, kills the appender and fails the transaction: that is DuckDB's way, and
 * so it is the contract. Freed before it is finished, an appender fails its transaction too. */
PAWL_MUST_USE pawl_status pawl__duck_appender_open(struct pawl__duck_conn *conn,
                                                   const char *table,
                                                   struct pawl__duck_appender **ret_appender,
                                                   pawl_error *reterr);

struct pawl__duck_column {
    const char *name;
    char type; /* a letter of struct pawl__duck_value */
};

/* Hands the rows to `sql` instead, which reads them from the table `appended`. Upserts of many rows
 * at once: "INSERT INTO t SELECT * FROM appended ON CONFLICT DO NOTHING". It wants large
 * transactions: 10,000 rows are four times as fast as 1,000. */
PAWL_MUST_USE pawl_status pawl__duck_appender_open_query(struct pawl__duck_conn *conn,
                                                         const char *sql,
                                                         const struct pawl__duck_column *columns,
                                                         size_t column_count,
                                                         struct pawl__duck_appender **ret_appender,
                                                         pawl_error *reterr);

DEFINE_AUTO(struct pawl__duck_appender *, pawl__duck_appender_free)

void pawl__duck_append_null(struct pawl__duck_appender *appender);
void pawl__duck_append_default(struct pawl__duck_appender *appender);
void pawl__duck_append_i64(struct pawl__duck_appender *appender, int64_t value);
void pawl__duck_append_u64(struct pawl__duck_appender *appender, uint64_t value);
void pawl__duck_append_double(struct pawl__duck_appender *appender, double value);
void pawl__duck_append_bool(struct pawl__duck_appender *appender, bool value);
void pawl__duck_append_text(struct pawl__duck_appender *appender, pawl_view value);
void pawl__duck_append_bytes(struct pawl__duck_appender *appender, pawl_view value);
void pawl__duck_append_time(struct pawl__duck_appender *appender, int64_t value); /* wall_us */

PAWL_MUST_USE pawl_status pawl__duck_append_row_end(struct pawl__duck_appender *appender,
                                                    pawl_error *reterr);

/* Flushes; the rows are then part of the transaction and the appender is done. */
PAWL_MUST_USE pawl_status pawl__duck_appender_finish(struct pawl__duck_appender *appender,
                                                     pawl_error *reterr);

/* For pawl__migrate; the store is a struct pawl__duck_conn. */
extern const struct pawl__migrate_ops pawl__duck_migrate_ops;

#endif
