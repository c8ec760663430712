/* What the files of the SQLite wrapper share. Nobody else includes this. */
#ifndef PAWL_STORE_SQLITE_INTERNAL_H
#define PAWL_STORE_SQLITE_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "base/core/buf.h"
#include "store/sqlite/sqlite.h"

/* Why no statement may run. */
enum {
    STOP_INTERRUPTED = 1, /* set by any thread */
    STOP_POISONED = 2,    /* an fsync failed; for good */
    STOP_ABORTED = 4,     /* SQLite took our transaction back; until we do */
};

/* Statements of the wrapper itself. */
enum {
    OWN_BEGIN_IMMEDIATE,
    OWN_BEGIN_DEFERRED,
    OWN_COMMIT,
    OWN_ROLLBACK,
    OWN_DATA_VERSION,
    OWN_SCHEMA_VERSION,
    OWN_COUNT
};

/* A file beside the store: its log (-wal) or the log's index (-shm). */
struct sqlite_side {
    char *path;
    bool known;
    dev_t device;
    ino_t inode;
};

enum {
    SQLITE_SIDES = 2,
    SQLITE_REGIONS_GUARDED = 8, /* of 32 KiB, for 4,096 pages of the log each: 128 MiB of it */
};

/* What stands between SQLite and the log's index; see guard_index.c. */
struct sqlite_index_guard {
    sqlite3_io_methods methods; /* those of the file, with ours in between; first: found by it */
    const sqlite3_io_methods *real;
    void *regions[SQLITE_REGIONS_GUARDED]; /* mapped by this handle; NULL: not yet */
    size_t region_bytes;
};

struct pawl__sqlite {
    sqlite3 *native;
    char *path;
    struct pawl__clock *clock;
    atomic_uint stop;
    const atomic_bool *interrupted; /* of the options */
    bool in_transaction;            /* between our begin and our commit or rollback */
    bool writes;                    /* that transaction took the write lock at its begin */
    bool shielded;                  /* COMMIT or ROLLBACK runs: an interrupt waits */
    int wal_pages;                  /* in the log after the last commit */
    int wal_pages_max;
    int64_t busy_ns_max;
    int64_t busy_nap_ns_max;
    int64_t busy_since_ns;
    int64_t busy_waited_ns; /* of the call that runs */
    int64_t ask_until_ns;   /* a question of somebody else's ends here; 0: none runs */
    const struct pawl__schema *schema;
    bool schema_checked;    /* and every transaction that writes compares the version */
    int64_t schema_version; /* SQLite's own count of changes, as of the check */
    struct sqlite_side sides[SQLITE_SIDES];
    struct sqlite_index_guard index_guard; /* used by the file until `native` is closed */
    sqlite3_stmt *own[OWN_COUNT];
    size_t statement_count;
    sqlite3_stmt *statements[]; /* the store's table */
};

/* The one place where SQLite's codes become ours. Keeps the extended code in `native`, names the
 * store, and notes what the failure means for the handle. */
pawl_status pawl__sqlite_fail(struct pawl__sqlite *db, int rc, pawl_error *reterr);

/* Spoils the handle when `rc` is a failed fsync; nothing else. */
void pawl__sqlite_note_sync(struct pawl__sqlite *db, int rc);

/* By a call, or by the flag that the options brought. */
bool pawl__sqlite_is_interrupted(struct pawl__sqlite *db);

/* PAWL_OK, or why this handle runs nothing now. */
pawl_status pawl__sqlite_check_stop(struct pawl__sqlite *db, pawl_error *reterr);

/* Prepares one statement; nothing may stand behind it. `lasting` when it is kept. */
pawl_status pawl__sqlite_prepare(struct pawl__sqlite *db,
                                 const char *sql,
                                 bool lasting,
                                 sqlite3_stmt **ret_stmt,
                                 pawl_error *reterr);

/* A statement for one use; ends in the finalizer below. */
pawl_status pawl__sqlite_prepare_once(struct pawl__sqlite *db,
                                      const char *sql,
                                      struct pawl__sqlite_stmt *ret_stmt,
                                      pawl_error *reterr);
void pawl__sqlite_finalize(struct pawl__sqlite_stmt *stmt); /* for AUTO */

/* The number in the first row of a statement that has one. */
PAWL_MUST_USE pawl_status pawl__sqlite_query_i64(struct pawl__sqlite *db,
                                                 const char *sql,
                                                 int64_t *ret_value,
                                                 pawl_error *reterr);

/* SQLite's busy callback; `context` is the handle. */
int pawl__sqlite_busy(void *context, int count);

extern const struct pawl__migrate_ops pawl__sqlite_migrate_ops;

/* CORRUPT, for a store with tables and no record of the migrations of `schema`. */
PAWL_MUST_USE pawl_status pawl__sqlite_refuse_unrecorded(struct pawl__sqlite *db,
                                                         const struct pawl__schema *schema,
                                                         pawl_error *reterr);

/* --- schema_check.c --- */

/* True: the store has the objects of its schema and no others. False says nothing: they are then
 * compared one by one. */
PAWL_MUST_USE pawl_status pawl__sqlite_has_fingerprint(struct pawl__sqlite *db,
                                                       bool *ret_has,
                                                       pawl_error *reterr);

/* Checks the schema again when it has changed since the last check. Under the write lock: then it
 * holds until the end of the transaction. */
PAWL_MUST_USE pawl_status pawl__sqlite_check_schema_change(struct pawl__sqlite *db,
                                                           pawl_error *reterr);

/* --- memory.c --- */

#define PAWL__SQLITE_MEMORY_VFS "pawl-memory"

/* Makes that VFS known to SQLite. Returns SQLite's code. */
int pawl__sqlite_register_memory(void);

/* --- guard_index.c --- */

/* Right after the open, before SQLite maps anything. */
void pawl__sqlite_guard_index(struct pawl__sqlite *db);

/* --- place.c --- */

void pawl__sqlite_note_sides(struct pawl__sqlite *db); /* at open, when SQLite has opened them */
void pawl__sqlite_forget_sides(struct pawl__sqlite *db);

/* IO when the log or its index is not in its place any more. */
PAWL_MUST_USE pawl_status pawl__sqlite_check_sides(const struct pawl__sqlite *db,
                                                   pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__sqlite_fail_moved(const char *path, pawl_error *reterr);

/* --- extend.c --- */

/* Of two CREATE TABLE without comments and white space: `found` has every column and constraint of
 * `expected`, in this order, and *ret_more others. */
bool pawl__sqlite_has_pieces(pawl_view expected, pawl_view found, size_t *ret_more);

/* Then whether these are columns that an INSERT may leave out and that are no key and refer to nothing.
 * Returns SQLite's code. */
int pawl__sqlite_only_columns(
    sqlite3 *expected, sqlite3 *found, pawl_view table, size_t more, bool *ret_only);

/* file:PATH?immutable=1, where the path may hold anything. Immutable: SQLite takes no lock and
 * makes no file; otherwise it only reads. */
void pawl__sqlite_add_uri(struct pawl__buf *uri, const char *path, bool immutable);

#endif
