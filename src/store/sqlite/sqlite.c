/* Opening and closing. A file is inspected before anything is written to it: one that is not ours,
 * or newer than we are, stays as it was, byte for byte. */
#include "store/sqlite/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "base/thread/thread.h"
#include "store/sqlite/statements.h"

#define BUSY_NAP_NS_MAX (50 * NS_PER_MS)

enum {
    PROGRESS_INSTRUCTIONS = 1000, /* between two checks of the interrupt flag */
    LOG_BYTES_KEPT = 64 << 20,    /* a longer log is cut when it has been moved into the file */
    PRAGMA_SIZE = 80,
};

static const char *const own_sql[OWN_COUNT] = {
    /* The write lock before the first read: two writers cannot both decide on the same state. */
    [OWN_BEGIN_IMMEDIATE] = "BEGIN IMMEDIATE",
    [OWN_BEGIN_DEFERRED] = "BEGIN DEFERRED",
    [OWN_COMMIT] = "COMMIT",
    [OWN_ROLLBACK] = "ROLLBACK",
    [OWN_DATA_VERSION] = "PRAGMA data_version",
    [OWN_SCHEMA_VERSION] = "PRAGMA schema_version",
};

/* Every open passes here before SQLite gets to see the file. A thread that creates it has closed
 * its descriptor by then: a close later would drop the locks of another thread's connection. */
static struct pawl__lock creating = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* SQLite itself would create the file readable for everybody the umask lets. */
static pawl_status create_locked(const char *path, pawl_error *reterr) REQUIRES_LOCK(creating)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno != EEXIST) {
        return pawl__fail_errno(reterr, errno, "create '%s'", path);
    }
    pawl__fs_close(&fd);
    return PAWL_OK;
}

static bool has_log(const char *path)
{
    char name[PATH_MAX];
    struct stat info;

    return snprintf(name, sizeof(name), "%s-wal", path) < (int)sizeof(name)
           && stat(name, &info) == 0 && info.st_size > 0;
}

/* SQLite takes a file of 0 or 1 bytes for a new database, and deletes a log that lies beside one.
 */
static pawl_status check_file(const char *path, pawl_error *reterr)
{
    bool log =
        has_log(path); /* before the file: a store that is being created gets its log later */
    struct stat info;

    if (stat(path, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' is not a file", path);
    }
    if (info.st_size == 1) {
        return pawl__fail(reterr, PAWL_CORRUPT, "'%s': file is not a database", path);
    }
    if (info.st_size == 0 && log) {
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "'%s' is empty, but '%s-wal' is not: the store was cut off; restore it "
            "from a copy, or move both away",
            path,
            path);
    }
    return PAWL_OK;
}

static pawl_status prepare_file(const char *path, enum pawl__sqlite_mode mode, pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    pawl__lock(&creating);
    if (mode == PAWL__SQLITE_CREATE) {
        status = create_locked(path, reterr);
    }
    pawl__unlock(&creating);
    return status == PAWL_OK ? check_file(path, reterr) : status;
}

static int on_progress(void *context)
{
    struct pawl__sqlite *db = context;

    if (db->ask_until_ns != 0 && pawl__monotonic_ns(db->clock) >= db->ask_until_ns) {
        return 1;
    }
    return !db->shielded && pawl__sqlite_is_interrupted(db);
}

static int on_commit(void *context, sqlite3 *native, const char *name, int pages)
{
    struct pawl__sqlite *db = context;

    (void)native;
    (void)name;
    db->wal_pages = pages;
    return SQLITE_OK;
}

static bool is_read_only(enum pawl__sqlite_mode mode)
{
    return mode == PAWL__SQLITE_READ_ONLY || mode == PAWL__SQLITE_AT_REST;
}

/* What SQLite would read out of a name (":memory:", "file:x?y", "") means a file here. */
static int open_native(const char *path,
                       const struct pawl__sqlite_options *options,
                       sqlite3 **ret_native)
{
    enum pawl__sqlite_mode mode = options->mode;
    const int flags = (is_read_only(mode) ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
                      | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    bool at_rest = mode == PAWL__SQLITE_AT_REST;
    AUTO(pawl__buf_done) struct pawl__buf name = BUF_INIT(4 * strlen(path) + 64);

    if (options->in_memory) {
        int rc = pawl__sqlite_register_memory();
        int create = mode == PAWL__SQLITE_CREATE ? SQLITE_OPEN_CREATE : 0;
        return rc == SQLITE_OK
                   ? sqlite3_open_v2(path, ret_native, flags | create, PAWL__SQLITE_MEMORY_VFS)
                   : rc;
    }
    if (at_rest) {
        pawl__sqlite_add_uri(&name, path, true);
    } else {
        pawl__buf_add_format(&name, "%s%s", path[0] == '/' ? "" : "./", path);
    }
    if (name.broken) {
        return SQLITE_NOMEM;
    }
    return sqlite3_open_v2(name.data, ret_native, flags | (at_rest ? SQLITE_OPEN_URI : 0), NULL);
}

pawl_status pawl__sqlite_query_i64(struct pawl__sqlite *db,
                                   const char *sql,
                                   int64_t *ret_value,
                                   pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    bool row = false;

    TRY(pawl__sqlite_prepare_once(db, sql, &stmt, reterr));
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    REQUIRE(row);
    *ret_value = pawl__sqlite_i64(&stmt, 0);
    return PAWL_OK;
}

static pawl_status set_pragma(struct pawl__sqlite *db,
                              const char *name,
                              int64_t value,
                              pawl_error *reterr)
{
    char sql[PRAGMA_SIZE];

    snprintf(sql, sizeof(sql), "PRAGMA %s=%lld", name, (long long)value);
    return pawl__sqlite_exec(db, sql, reterr);
}

/* What holds for the connection alone and touches no file. */
static pawl_status configure(struct pawl__sqlite *db, pawl_error *reterr)
{
    static const struct {
        int option;
        int value;
    } settings[] = {
        { SQLITE_DBCONFIG_ENABLE_FKEY, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 }, /* a planted view or trigger calls no function */
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_DQS_DML, 0 }, /* "x" is a column, never a text: a typo fails */
        { SQLITE_DBCONFIG_DQS_DDL, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        int rc = sqlite3_db_config(db->native, settings[i].option, settings[i].value, NULL);
        if (rc != SQLITE_OK) {
            return pawl__sqlite_fail(db, rc, reterr);
        }
    }
    sqlite3_busy_handler(db->native, pawl__sqlite_busy, db);
    sqlite3_progress_handler(db->native, PROGRESS_INSTRUCTIONS, on_progress, db);
    sqlite3_wal_hook(db->native, on_commit, db); /* instead of SQLite's own checkpoints */
    return pawl__sqlite_exec(db, "PRAGMA cell_size_check=ON", reterr);
}

/* Is it ours? *ret_new when it is still empty and may become ours. */
static pawl_status identify(struct pawl__sqlite *db,
                            const struct pawl__sqlite_options *options,
                            bool *ret_new,
                            int64_t *ret_objects,
                            pawl_error *reterr)
{
    int64_t id = 0;
    int64_t objects = 0;

    *ret_new = false;
    /* In this order: another process that is creating the store sets the mark before it makes the
     * first table, so a table is never seen without the mark. */
    TRY(pawl__sqlite_query_i64(
        db, pawl__store_sql_statements[STORE_SQL_COUNT_OBJECTS], &objects, reterr));
    TRY(pawl__sqlite_query_i64(db, "PRAGMA application_id", &id, reterr));
    *ret_objects = objects;
    if (id == options->application_id) {
        return PAWL_OK;
    }
    if (id != 0 || objects != 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is an SQLite database, but not this store (application id "
                          "0x%08x instead of 0x%08x): choose another path",
                          db->path,
                          (unsigned)id,
                          (unsigned)options->application_id);
    }
    if (options->mode != PAWL__SQLITE_CREATE) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "'%s' is empty: no store yet", db->path);
    }
    *ret_new = true;
    return PAWL_OK;
}

static pawl_status switch_to_wal(struct pawl__sqlite *db, pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    bool row = false;

    TRY(pawl__sqlite_prepare_once(db, "PRAGMA journal_mode=WAL", &stmt, reterr));
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (!pawl__view_is(pawl__sqlite_text(&stmt, 0), "wal")) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "'%s': the file system cannot share memory between processes, which "
                          "SQLite's write-ahead log needs",
                          db->path);
    }
    return PAWL_OK;
}

/* The switch needs the file for itself, and SQLite does not always ask the busy handler on the way:
 * two processes that create a store together would see BUSY at once. */
static pawl_status ensure_wal(struct pawl__sqlite *db, pawl_error *reterr)
{
    int64_t deadline = pawl__monotonic_ns(db->clock) + db->busy_ns_max;

    for (;;) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = switch_to_wal(db, &error);
        int64_t now = pawl__monotonic_ns(db->clock);

        if (status == PAWL_OK) {
            return PAWL_OK;
        }
        if (status != PAWL_BUSY || now >= deadline || pawl__sqlite_is_interrupted(db)) {
            return pawl__fail_with(reterr, status, &error);
        }
        pawl__sleep_until(db->clock, MIN(now + 2 * NS_PER_MS, deadline));
    }
}

static pawl_status set_up_writing(struct pawl__sqlite *db,
                                  const struct pawl__sqlite_options *options,
                                  pawl_error *reterr)
{
    const char *sync = "PRAGMA synchronous=FULL"; /* COMMIT returns when the log is on disk */

    TRY(ensure_wal(db, reterr));
    if (options->unsafe_skip_sync || options->in_memory) {
        sync = "PRAGMA synchronous=OFF";
    } else if (options->sync_normal) {
        sync = "PRAGMA synchronous=NORMAL";
    }
    TRY(pawl__sqlite_exec(db, sync, reterr));
    return set_pragma(db, "journal_size_limit", LOG_BYTES_KEPT, reterr);
}

static pawl_status set_up_reading(struct pawl__sqlite *db,
                                  const struct pawl__sqlite_options *options,
                                  pawl_error *reterr)
{
    if (options->cache_kib > 0) {
        TRY(set_pragma(db, "cache_size", -options->cache_kib, reterr));
    }
    TRY(set_pragma(db, "mmap_size", options->mmap_bytes, reterr));
    if (options->temp_in_memory) {
        TRY(pawl__sqlite_exec(db, "PRAGMA temp_store=MEMORY", reterr));
    }
    return PAWL_OK;
}

static pawl_status prepare_own(struct pawl__sqlite *db, pawl_error *reterr)
{
    for (size_t i = 0; i < OWN_COUNT; i++) {
        TRY(pawl__sqlite_prepare(db, own_sql[i], true, &db->own[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status prepare_table(struct pawl__sqlite *db,
                                 const struct pawl__sqlite_options *options,
                                 pawl_error *reterr)
{
    if (options->temp_schema != NULL) {
        pawl_status status = pawl__sqlite_exec(db, options->temp_schema, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "temporary tables");
        }
    }
    for (size_t i = 0; i < options->statement_count; i++) {
        if (options->statements[i] == NULL) {
            return pawl__fail(reterr, PAWL_FAILED, "statement %zu has no text", i);
        }
        pawl_status status =
            pawl__sqlite_prepare(db, options->statements[i], true, &db->statements[i], reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "statement %zu", i);
        }
    }
    return PAWL_OK;
}

/* Makes an empty file ours. Another process may be doing the same, so check again under the lock. */
static pawl_status claim(struct pawl__sqlite *db,
                         const struct pawl__sqlite_options *options,
                         pawl_error *reterr)
{
    int64_t id = 0;

    TRY(options->in_memory ? PAWL_OK : pawl__fs_sync_parent(db->path, reterr));
    TRY(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, reterr));
    pawl_status status = pawl__sqlite_query_i64(db, "PRAGMA application_id", &id, reterr);
    if (status == PAWL_OK && id == 0) {
        status = set_pragma(db, "application_id", options->application_id, reterr);
    }
    if (status != PAWL_OK) {
        pawl__sqlite_rollback(db);
        return status;
    }
    return pawl__sqlite_commit(db, reterr);
}

/* Tables and the record of what made them come in one transaction. `objects` were counted before. */
static pawl_status check_recorded(struct pawl__sqlite *db,
                                  const struct pawl__schema *schema,
                                  int64_t objects,
                                  size_t *ret_pending,
                                  pawl_error *reterr)
{
    TRY(pawl__migrate_pending(&pawl__sqlite_migrate_ops, db, schema, ret_pending, reterr));
    return objects == 0 || *ret_pending < schema->count
               ? PAWL_OK
               : pawl__sqlite_refuse_unrecorded(db, schema, reterr);
}

static pawl_status migrate(struct pawl__sqlite *db,
                           const struct pawl__sqlite_options *options,
                           int64_t objects,
                           pawl_error *reterr)
{
    const struct pawl__schema *schema = options->schema;
    size_t pending = 0;

    if (schema == NULL) {
        return PAWL_OK;
    }
    TRY(check_recorded(db, schema, objects, &pending, reterr));
    if (pending > 0 && !is_read_only(options->mode)) {
        return pawl__migrate(&pawl__sqlite_migrate_ops, db, schema, reterr);
    }
    if (objects == 0 && pending == schema->count) {
        return pawl__fail(
            reterr,
            PAWL_NOT_FOUND,
            "'%s' is empty: its creation was cut short, nothing was stored in it; the "
            "next write completes it",
            db->path);
    }
    if (pending > 0) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the schema of '%s' is %zu migrations behind version %s and cannot be "
                          "changed read-only: open the store for writing once",
                          schema->component,
                          pending,
                          pawl__schema_version(schema));
    }
    return PAWL_OK;
}

/* SQLite opens a file that may not be written as read-only and says nothing until the first write.
 */
static pawl_status check_writable(struct pawl__sqlite *db, bool read_only, pawl_error *reterr)
{
    if (!read_only && sqlite3_db_readonly(db->native, "main") == 1) {
        return pawl__fail(reterr, PAWL_DENIED, "'%s' may not be written by this user", db->path);
    }
    return PAWL_OK;
}

/* From a connection to a store that is ours, current and ready. */
static pawl_status set_up(struct pawl__sqlite *db,
                          const struct pawl__sqlite_options *options,
                          pawl_error *reterr)
{
    bool read_only = is_read_only(options->mode);
    bool is_new = false;
    int64_t objects = 0;

    TRY(configure(db, reterr));
    TRY(check_writable(db, read_only, reterr));
    pawl_status status = identify(db, options, &is_new, &objects, reterr);
    if (status == PAWL_DENIED && read_only) {
        return pawl__fail_context(
            reterr, status, "reading needs a directory that may be written; copy the file to one");
    }
    TRY(status);
    TRY(set_up_reading(db, options, reterr));
    if (is_new && options->incremental_vacuum) {
        /* Before anything is written: SQLite ignores it from the first page on. */
        TRY(pawl__sqlite_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", reterr));
    }
    TRY(read_only ? PAWL_OK : set_up_writing(db, options, reterr));
    TRY(prepare_own(db, reterr));
    TRY(is_new ? claim(db, options, reterr) : PAWL_OK);
    TRY(migrate(db, options, objects, reterr));
    TRY(options->schema_unchecked ? PAWL_OK : pawl__sqlite_check_schema(db, reterr));
    return prepare_table(db, options, reterr);
}

static struct pawl__sqlite *allocate(const char *path, const struct pawl__sqlite_options *options)
{
    size_t count = options->statement_count;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what the array holds */
    struct pawl__sqlite *db = calloc(1, sizeof(*db) + count * sizeof(db->statements[0]));

    if (db == NULL) {
        return NULL;
    }
    db->path = strdup(path);
    db->statement_count = count;
    db->schema = options->schema;
    db->clock = pawl__clock_or_real(options->clock);
    db->busy_ns_max = options->busy_ms_max * NS_PER_MS;
    db->busy_nap_ns_max =
        options->busy_nap_ms_max == 0 ? BUSY_NAP_NS_MAX : options->busy_nap_ms_max * NS_PER_MS;
    db->wal_pages_max = options->wal_pages_max;
    atomic_init(&db->stop, 0);
    db->interrupted = options->interrupted;
    return db;
}

pawl_status pawl__sqlite_open(const char *path,
                              const struct pawl__sqlite_options *options,
                              struct pawl__sqlite **ret_db,
                              pawl_error *reterr)
{
    REQUIRE(options->application_id != PAWL__SQLITE_UNMARKED
            || options->mode == PAWL__SQLITE_READ_ONLY);
    REQUIRE(options->busy_ms_max >= 0);
    if (path[0] == '\0') {
        return pawl__fail(reterr, PAWL_INVALID, "the path of an SQLite store is empty");
    }
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *db = allocate(path, options);
    if (db == NULL || db->path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an SQLite handle");
    }
    TRY(options->in_memory ? PAWL_OK : prepare_file(path, options->mode, reterr));
    int rc = open_native(path, options, &db->native);
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    if (!options->in_memory) {
        pawl__sqlite_guard_index(db);
    }
    pawl_status status = set_up(db, options, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "open '%s'", path);
    }
    if (!options->in_memory) {
        pawl__sqlite_note_sides(db);
    }
    *ret_db = STEAL(db);
    return PAWL_OK;
}

void pawl__sqlite_close(struct pawl__sqlite *db)
{
    if (db == NULL) {
        return;
    }
    for (size_t i = 0; i < OWN_COUNT; i++) {
        sqlite3_finalize(db->own[i]);
    }
    for (size_t i = 0; i < db->statement_count; i++) {
        sqlite3_finalize(db->statements[i]);
    }
    if (db->native != NULL
        && ((atomic_load(&db->stop) & STOP_POISONED)
            || pawl__sqlite_check_sides(db, NULL) != PAWL_OK)) {
        /* The last one to close moves the log into the file and removes it. After a failed fsync
         * the log is what the next open recovers from, and a log that is not in its place any more
         * must not be written over what others have stored since. */
        sqlite3_db_config(db->native, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    REQUIRE(sqlite3_close(db->native) == SQLITE_OK); /* a statement in use would keep it open */
    pawl__sqlite_forget_sides(db);
    free(db->path);
    free(db);
}
