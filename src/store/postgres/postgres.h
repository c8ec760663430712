/* PostgreSQL, thin and typed, over libpq.
 *
 * Statements   Constant SQL in one table per user of this file, prepared when the connection opens
 *              and again after every reconnect. The table names the types of parameters and
 *              columns; both are checked against the server then, so a typo or a foreign schema
 *              fails at open and not in the middle of the night.
 * Durability   PAWL_OK from a commit, from a statement outside a transaction and from the end of a
 *              pipeline means: on the server's disk. The session keeps synchronous_commit on even
 *              where the server's default is off; what else the server promises (fsync,
 *              full_page_writes) is in pawl__pg_server_of, for `doctor`.
 * Lost links   A call that meets a dead connection returns UNAVAILABLE. Outside a transaction the
 *              next call connects again by itself, and a link that died while it was idle is
 *              replaced before anything is sent. Inside a transaction nothing is replaced: every
 *              call fails with UNAVAILABLE until pawl__pg_rollback, and nothing of it is stored.
 *              Only when the link dies between sending the last word (COMMIT, a statement on its
 *              own, the end of a pipeline outside a transaction) and hearing the answer is the
 *              outcome unknown: UNAVAILABLE with sqlstate "08007". Ask the store, or repeat what is
 *              idempotent.
 * Time         Every call ends: by the server's statement_timeout, else by our deadline (a cancel
 *              request, then the connection is dropped). A server that is silent for answer_ms_max
 *              and does not answer on a new connection either has stalled: the call ends with
 *              TIMEOUT (as the last word of a transaction: UNAVAILABLE, the outcome is unknown), and
 *              for a second after it calls fail at once. So it ends when the server answers but
 *              the process behind this connection has not read what was sent (it was stopped);
 *              the next call connects again. A slow statement on a server that does answer has
 *              until its statement_timeout.
 * Threads      A connection belongs to one thread at a time, except for pawl__pg_interrupt. Threads
 *              that come and go share a struct pawl__pg_pool (store/postgres/pool.h). */
#ifndef PAWL_STORE_POSTGRES_POSTGRES_H
#define PAWL_STORE_POSTGRES_POSTGRES_H

#include <pawl/pawl.h>

#include <stdatomic.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "store/migrate.h"

#define PAWL__PG_PARAMS_MAX 32
#define PAWL__PG_VALUE_BYTES_MAX (64 << 20) /* one parameter */
#define PAWL__PG_NAME_BYTES_MAX 63          /* the server cuts longer names silently; we refuse */
#define PAWL__PG_CHANNELS_MAX 16

/* One letter a parameter or column:
 *
 *   i  int64_t             bigint; as a column also integer and smallint
 *   d  double              double precision; as a column also real
 *   t  text as a view      text; as a column also varchar, char, name, json, jsonb
 *   x  bytes as a view     bytea; as a column also uuid (16 bytes)
 *   b  bool                boolean
 *   z  time                timestamptz, microseconds since 1970 UTC
 *   I T X Z                arrays of i, t, x, z; parameters only, see struct pawl__pg_array
 *
 * A jsonb or uuid parameter is text with a cast: `$1::jsonb`. */
struct pawl__pg_statement {
    const char *sql;
    const char *params;  /* "itx"; NULL or "": none */
    const char *columns; /* "iz"; NULL or "": returns no rows */
};

struct pawl__pg_options {
    const char *namespace; /* our schema of the database, alone in search_path. NULL: "pawl" */
    const char *application_name;      /* what pg_stat_activity shows. NULL: "pawl" */
    const struct pawl__schema *schema; /* migrated at open, which also creates it. NULL: none */
    const struct pawl__pg_statement *statements; /* must outlive the connection */
    size_t statement_count;
    int answer_ms_max;    /* a server silent for longer has stalled, see Time above. 0: 10 s */
    int connect_ms_max;   /* all hosts of the URL together. 0: as answer_ms_max */
    int reconnect_ms_max; /* how long a refused reconnect is tried again, with backoff. 0: 1 s */
    int statement_ms_max; /* statement_timeout. 0: 60 s */
    int lock_ms_max;      /* lock_timeout, then BUSY. 0: 10 s */
    int idle_ms_max;      /* idle_in_transaction_session_timeout. 0: 5 min */
    struct pawl__cancel *cancel; /* interrupts the connection; must outlive it. NULL: none */
    /* The same for what can only set a flag, as a signal handler: it is looked at every 100 ms while
     * something is waited for, but notifications. Must outlive the connection. NULL: none. */
    const atomic_bool *interrupted;
    const char *settings; /* SET ...; SET ...: after every connect, before anything is prepared */
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs. NULL: the real one */
    bool unsafe_async_commit;  /* synchronous_commit=off: a power cut loses acknowledged commits */
};

struct pawl__pg;

/* Connects, migrates, prepares. `url` is postgresql://... or libpq's "key=value ..."; what it
 * leaves out comes from libpq's environment. It may name several hosts (host=a,b): they are tried
 * in turn, each with its share of the time. `options` may be NULL.
 *
 * INVALID: the URL cannot be read. DENIED: wrong user or password. NOT_FOUND: no such database.
 * UNAVAILABLE, TIMEOUT: nobody there. UNSUPPORTED: a newer pawl made the schema. CORRUPT: a statement
 * names a table or a column that is not there, though the schema is up to date. FAILED: it does not
 * fit in another way, or a migration does not; its number and text are in the message. No message ever holds
 * the password or the URL. */
PAWL_MUST_USE pawl_status pawl__pg_open(const char *url,
                                        const struct pawl__pg_options *options,
                                        struct pawl__pg **ret_pg,
                                        pawl_error *reterr);

/* an open transaction is rolled back by the server */
DEFINE_AUTO(struct pawl__pg *, pawl__pg_close)

/* Makes sure that the connection works, by a new one if need be. INVALID inside a transaction. */
PAWL_MUST_USE pawl_status pawl__pg_reconnect(struct pawl__pg *pg, pawl_error *reterr);

/* For pawl__migrate and pawl__migrate_pending; the store is a struct pawl__pg. Two processes that
 * migrate one database at the same time take turns (an advisory lock). */
extern const struct pawl__migrate_ops pawl__pg_migrate_ops;

/* CORRUPT names a trigger, rule or row security on one of the schema's tables that the migrations did
 * not make, or one of their triggers or unique indexes that is gone. */
PAWL_MUST_USE pawl_status pawl__pg_check_schema(struct pawl__pg *pg,
                                                const struct pawl__schema *schema,
                                                pawl_error *reterr);

/* How many migrations are missing. CORRUPT: none is recorded, but their tables are there. */
PAWL_MUST_USE pawl_status pawl__pg_pending(struct pawl__pg *pg,
                                           const struct pawl__schema *schema,
                                           size_t *ret_pending,
                                           pawl_error *reterr);

bool pawl__pg_is_broken(const struct pawl__pg *pg);

/* The server's process behind this connection: who pg_locks and pg_stat_activity mean. 0: there is no
 * connection. */
int pawl__pg_session(const struct pawl__pg *pg);

/* What the server promises, read when the connection was made. */
struct pawl__pg_server {
    int version; /* 150012 is 15.12 */
    bool fsync;
    bool full_page_writes;
    bool read_only;              /* a standby, or default_transaction_read_only */
    char synchronous_commit[16]; /* what this session runs with */
    char default_commit[16];     /* what the server would have given it */
    char location[128];          /* "user@host:port/database" */
};
const struct pawl__pg_server *pawl__pg_server_of(const struct pawl__pg *pg);

/* From any thread while the connection is open: what it waits for (a statement, a notification, a
 * reconnect) ends with CANCELLED, and so does every later call but close and rollback, until
 * _resume (which a cancelled token does not allow). A statement that was running is cancelled on
 * the server. */
void pawl__pg_interrupt(struct pawl__pg *pg);
void pawl__pg_resume(struct pawl__pg *pg);

/* A monotonic time after which calls end with TIMEOUT, a running statement by a cancel request.
 * 0: none (statement_ms_max still holds). It stays until it is set again. */
void pawl__pg_set_deadline(struct pawl__pg *pg, int64_t deadline_ns);

/* A parameter. Text and bytes are borrowed for the call. */
struct pawl__pg_value {
    char type; /* a letter as above; 0: null */
    union {
        int64_t i64;
        double d;
        pawl_view view;
        bool b;
        const struct pawl__buf *array;
    } as;
};

static inline struct pawl__pg_value pawl__pg_null(void)
{
    return (struct pawl__pg_value){ .type = 0 };
}

/* PAWL__PG_TIME_INFINITY and its negative are SQL's infinity and -infinity. */
#define PAWL__PG_TIME_INFINITY INT64_MAX
#define PAWL__PG_TIME_MINUS_INFINITY INT64_MIN
#define PG_VALUE(name, c_type, letter, member)                             \
    static inline struct pawl__pg_value name(c_type value)                 \
    {                                                                      \
        return (struct pawl__pg_value){ .type = letter, .member = value }; \
    }
PG_VALUE(pawl__pg_i64, int64_t, 'i', as.i64)
PG_VALUE(pawl__pg_double, double, 'd', as.d)
PG_VALUE(pawl__pg_text, pawl_view, 't', as.view)
PG_VALUE(pawl__pg_bytes, pawl_view, 'x', as.view)
PG_VALUE(pawl__pg_bool, bool, 'b', as.b)
PG_VALUE(pawl__pg_time, int64_t, 'z', as.i64)

/* An array as one parameter: many rows in one statement (`unnest`), many keys in one look-up (`=
 * ANY`). Start it with the number of elements, add exactly that many, pass its value, end it with
 * _done. It may be started again, which keeps its memory. Too many bytes or no memory is found out
 * when the value is bound. */
struct pawl__pg_array {
    struct pawl__buf bytes;
    char letter;
};

#define PG_ARRAY_INIT                                \
    {                                                \
        .bytes = BUF_INIT(PAWL__PG_VALUE_BYTES_MAX), \
    }

void pawl__pg_array_start(struct pawl__pg_array *array, char letter, size_t count);
void pawl__pg_array_add_i64(struct pawl__pg_array *array, int64_t value);
void pawl__pg_array_add_null(struct pawl__pg_array *array);
void pawl__pg_array_add_view(struct pawl__pg_array *array, pawl_view value); /* text or bytes */
void pawl__pg_array_add_time(struct pawl__pg_array *array, int64_t wall_us);
void pawl__pg_array_done(struct pawl__pg_array *array); /* for AUTO, too */

static inline struct pawl__pg_value pawl__pg_array_value(const struct pawl__pg_array *array)
{
    return (struct pawl__pg_value){ .type = array->letter, .as.array = &array->bytes };
}

/* The parameters of one statement, in order: PG_ARGS(pawl__pg_i64(1), pawl__pg_null()). */
#define PG_ARGS(...)                                \
    (const struct pawl__pg_value[]){ __VA_ARGS__ }, \
        sizeof((const struct pawl__pg_value[]){ __VA_ARGS__ }) / sizeof(struct pawl__pg_value)
#define PG_NO_ARGS NULL, 0

/* The rows of one statement. They belong to their holder and outlive the connection; views
 * into them live as long as they do. Start with { 0 }. */
struct pawl__pg_rows {
    void *result;
    const char *columns;
    size_t count;
    int64_t affected; /* rows inserted, changed, deleted or returned */
};

void pawl__pg_rows_done(struct pawl__pg_rows *rows); /* for AUTO, too */

/* The letter in the table says which of these fits; another one is our mistake. NULL reads as 0,
 * false or the empty view: ask is_null where that matters. */
bool pawl__pg_is_null(const struct pawl__pg_rows *rows, size_t row, size_t column);
int64_t pawl__pg_get_i64(const struct pawl__pg_rows *rows, size_t row, size_t column);
double pawl__pg_get_double(const struct pawl__pg_rows *rows, size_t row, size_t column);
bool pawl__pg_get_bool(const struct pawl__pg_rows *rows, size_t row, size_t column);
int64_t pawl__pg_get_time(const struct pawl__pg_rows *rows, size_t row, size_t column);
pawl_view pawl__pg_get_text(const struct pawl__pg_rows *rows, size_t row, size_t column);
pawl_view pawl__pg_get_bytes(const struct pawl__pg_rows *rows, size_t row, size_t column);

/* Runs statement number `statement` of the table. `ret_rows` may be NULL; it is replaced on
 * success.
 *
 * INVALID: a value is too long, holds a NUL in text, or the server refused it (class 22).
 * CONFLICT: a constraint, named in the message. BUSY: serialization failure, deadlock or lock
 * timeout; roll back and try again. TIMEOUT, CANCELLED: stopped while it ran. */
PAWL_MUST_USE pawl_status pawl__pg_exec(struct pawl__pg *pg,
                                        size_t statement,
                                        const struct pawl__pg_value *values,
                                        size_t value_count,
                                        struct pawl__pg_rows *ret_rows,
                                        pawl_error *reterr);

/* Sees rows; what it returns but OK ends the call with it. */
typedef pawl_status pawl__pg_on_rows(void *context,
                                     size_t index,
                                     const struct pawl__pg_rows *rows,
                                     pawl_error *reterr);

/* Runs a statement and shows its rows one after the other as they arrive, so that memory does not
 * grow with their number. `on_row` gets rows with one row each (row 0) and their index; it must not
 * touch the connection and should be quick: the server waits, and its statement_timeout goes on.
 * Another status than OK from it ends the statement (by a cancel request) and is returned. */
PAWL_MUST_USE pawl_status pawl__pg_each(struct pawl__pg *pg,
                                        size_t statement,
                                        const struct pawl__pg_value *values,
                                        size_t value_count,
                                        pawl__pg_on_rows *on_row,
                                        void *context,
                                        pawl_error *reterr);

/* Runs a script of any number of statements without parameters: migrations and set-up. Outside a
 * transaction the script is one of its own. */
PAWL_MUST_USE pawl_status pawl__pg_script(struct pawl__pg *pg, const char *sql, pawl_error *reterr);

enum pawl__pg_isolation {
    PAWL__PG_READ_COMMITTED,
    PAWL__PG_REPEATABLE_READ, /* one snapshot; a concurrent change of the same row is BUSY */
    PAWL__PG_SERIALIZABLE, /* as if one after the other; any statement or the commit may be BUSY */
    PAWL__PG_READ_ONLY,    /* repeatable read that writes nothing */
};

PAWL_MUST_USE pawl_status pawl__pg_begin(struct pawl__pg *pg,
                                         enum pawl__pg_isolation isolation,
                                         pawl_error *reterr);

/* Ends the transaction. A statement in it that failed makes this FAILED (PostgreSQL itself would
 * answer COMMIT by a silent rollback). Whatever it returns, the transaction is over. */
PAWL_MUST_USE pawl_status pawl__pg_commit(struct pawl__pg *pg, pawl_error *reterr);

/* Cannot fail: a connection that does not answer is dropped, which rolls back too. Nothing to do
 * without a transaction, so a guard may stand above a commit:
 *
 *     AUTO(pawl__pg_rollback_p) struct pawl__pg *guard = pg; */
DEFINE_AUTO(struct pawl__pg *, pawl__pg_rollback)

bool pawl__pg_in_transaction(const struct pawl__pg *pg);

/* A pipeline sends many statements without waiting for answers: one round trip for thousands of
 * inserts. It is all or nothing: inside a transaction a failure aborts the transaction, outside it
 * is a transaction of its own that `end` commits.
 *
 * Between begin and end only add is allowed. `on_rows` (may be NULL) sees the rows of every
 * statement in order, during add or end and before anything is committed; it must not touch the
 * connection. When it returns another status than OK the pipeline fails with it. */

PAWL_MUST_USE pawl_status pawl__pg_pipeline_begin(struct pawl__pg *pg,
                                                  pawl__pg_on_rows *on_rows,
                                                  void *context,
                                                  pawl_error *reterr);

/* The same, and its first word is a BEGIN: a transaction for the price of no round trip. It is open
 * when the pipeline has ended. When it has failed, roll back. */
PAWL_MUST_USE pawl_status pawl__pg_pipeline_begin_transaction(struct pawl__pg *pg,
                                                              pawl__pg_on_rows *on_rows,
                                                              void *context,
                                                              pawl_error *reterr);

/* Adds a COMMIT of the transaction around the pipeline. What is added behind it are questions that
 * run by themselves, on what is committed then; the pipeline's end is the transaction's, and that a
 * question failed is only to be seen by its rows not being shown. What stands before the COMMIT
 * cannot be refused by on_rows any more. Lost links and unknown outcomes as in pawl__pg_commit. */
PAWL_MUST_USE pawl_status pawl__pg_pipeline_commit(struct pawl__pg *pg, pawl_error *reterr);

/* A failed add has failed the pipeline; go to the end, which repeats that error. */
PAWL_MUST_USE pawl_status pawl__pg_pipeline_add(struct pawl__pg *pg,
                                                size_t statement,
                                                const struct pawl__pg_value *values,
                                                size_t value_count,
                                                pawl_error *reterr);

/* Sends what was added, without waiting for answers: the server works on it while the caller does
 * something else. A failure is the pipeline's, and told again by its end. */
PAWL_MUST_USE pawl_status pawl__pg_pipeline_push(struct pawl__pg *pg, pawl_error *reterr);

/* Sends the rest, waits for all answers and leaves the pipeline. The error is that of the first
 * statement that failed, "statement 17 of 200: ...". */
PAWL_MUST_USE pawl_status pawl__pg_pipeline_end(struct pawl__pg *pg, pawl_error *reterr);

/* Leaves a pipeline without its work: everything since begin is undone (inside a transaction, that
 * transaction is aborted). Nothing to do without one, so it may stand in a guard. */
DEFINE_AUTO(struct pawl__pg *, pawl__pg_pipeline_abandon)

/* Whether one SELECT, written by anybody, returns a row: in a transaction that can change nothing,
 * for at most `ms_max`. INVALID: it is no SELECT, or SQL refused it. Outside a transaction only. */
PAWL_MUST_USE pawl_status pawl__pg_row_exists(
    struct pawl__pg *pg, pawl_view select, int64_t ms_max, bool *ret_exists, pawl_error *reterr);

/* Subscribes to a channel; again after every reconnect. Any bytes but NUL, 63 at most. */
PAWL_MUST_USE pawl_status pawl__pg_listen(struct pawl__pg *pg,
                                          const char *channel,
                                          pawl_error *reterr);

/* A notification. The texts live until the next call with this connection. */
struct pawl__pg_notification {
    const char *channel; /* NULL when `missed` */
    const char *payload;
    bool own; /* sent by this connection */
    bool
        missed; /* the connection was replaced: notifications may have been lost, so read the tables
                  */
};

/* Waits for the next notification until a monotonic deadline: TIMEOUT, or CANCELLED after an
 * interrupt. A lost connection is replaced (with backoff, until the deadline) and reported as a
 * notification with `missed`; a wake-up is a hint, the data is in the tables. */
PAWL_MUST_USE pawl_status pawl__pg_wait(struct pawl__pg *pg,
                                        int64_t deadline_ns,
                                        struct pawl__pg_notification *ret_notification,
                                        pawl_error *reterr);

#endif
