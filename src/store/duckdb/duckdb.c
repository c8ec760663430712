#include "store/duckdb/duckdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "store/duckdb/internal.h"

static const uint64_t memory_bytes_default = UINT64_C(1) << 30;
enum { QUARANTINE_MAX = 10000, SETTINGS_BYTES_MAX = 1 << 20 };

/* Settings that a new database starts with. Checkpoints happen when we say so and not by the size
 * of the log; what DuckDB would fetch or load by itself stays away. */
static const struct {
    const char *name;
    const char *value;
} fixed_settings[] = {
    { "checkpoint_threshold", "1000TB" },
    { "autoload_known_extensions", "false" },
    { "autoinstall_known_extensions", "false" },
};

static void free_config(duckdb_config *config)
{
    duckdb_destroy_config(config);
}

static pawl_status set_config(duckdb_config config,
                              const char *name,
                              const char *value,
                              pawl_error *reterr)
{
    if (duckdb_set_config(config, name, value) != DuckDBSuccess) {
        return pawl__fail(reterr, PAWL_INVALID, "DuckDB refuses %s = '%s'", name, value);
    }
    return PAWL_OK;
}

static pawl_status set_all(duckdb_config config,
                           const struct pawl__duck_options *options,
                           pawl_error *reterr)
{
    char number[32];
    for (size_t i = 0; i < COUNT_OF(fixed_settings); i++) {
        TRY(set_config(config, fixed_settings[i].name, fixed_settings[i].value, reterr));
    }
    uint64_t bytes =
        options->memory_bytes_max != 0 ? options->memory_bytes_max : memory_bytes_default;

    snprintf(number, sizeof(number), "%lluB", (unsigned long long)bytes);
    TRY(set_config(config, "memory_limit", number, reterr));
    if (options->threads != 0) {
        snprintf(number, sizeof(number), "%d", options->threads);
        TRY(set_config(config, "threads", number, reterr));
    }
    TRY(set_config(config, "access_mode", options->read_only ? "READ_ONLY" : "READ_WRITE", reterr));
    return PAWL_OK;
}

/* What the file is must be known before DuckDB's words about it can be: it calls a file of zero
 * bytes new, and anything else that does not open is damaged. */
static pawl_status open_native(struct pawl__duck *db,
                               const struct pawl__duck_options *options,
                               pawl_error *reterr)
{
    AUTO(free_config) duckdb_config config = NULL;
    char *text = NULL;

    if (duckdb_create_config(&config) != DuckDBSuccess) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the settings");
    }
    TRY(set_all(config, options, reterr));
    if (duckdb_open_ext(db->path, &db->native, config, &text) == DuckDBSuccess) {
        return PAWL_OK;
    }
    db->native = NULL;
    pawl_status status = pawl__duck_fail(DUCKDB_ERROR_INVALID, text, reterr);
    duckdb_free(text);
    /* A file with the right beginning and nonsense behind it fails in a dozen ways. */
    if (status == PAWL_INVALID || status == PAWL_FAILED || status == PAWL_CONFLICT) {
        status = PAWL_CORRUPT;
        if (reterr != NULL) {
            reterr->status = status;
        }
    }
    return status;
}

static void add_quoted(struct pawl__buf *sql, const char *text)
{
    pawl__buf_add_char(sql, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            pawl__buf_add_char(sql, '\'');
        }
        pawl__buf_add_char(sql, *text);
    }
    pawl__buf_add_char(sql, '\'');
}

/* SET takes no parameters, and the list of directories no configuration text: it is the one piece
 * of SQL that is built, from what the program itself was configured with. */
static pawl_status allow_dirs(struct pawl__duck_conn *conn,
                              const struct pawl__duck_options *options,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(SETTINGS_BYTES_MAX);

    pawl__buf_add_text(&sql, "SET allowed_directories = [");
    for (size_t i = 0; i < options->allowed_dir_count; i++) {
        if (options->allowed_dirs[i][0] != '/') {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "allowed directory '%s' is not an absolute path",
                              options->allowed_dirs[i]);
        }
        pawl__buf_add_text(&sql, i == 0 ? "" : ", ");
        add_quoted(&sql, options->allowed_dirs[i]);
    }
    pawl__buf_add_char(&sql, ']');
    TRY(pawl__buf_check(&sql, "the list of allowed directories", reterr));
    return pawl__duck_command(conn, sql.data, reterr);
}

/* The order matters: directories can be allowed only while access is on, it cannot be turned on
 * again, and the lock of the settings comes last. */
static pawl_status restrict_sql(struct pawl__duck *db,
                                const struct pawl__duck_options *options,
                                pawl_error *reterr)
{
    AUTO(pawl__duck_disconnect_p) struct pawl__duck_conn *conn = NULL;
    static const char *const last[] = {
        "PRAGMA disable_checkpoint_on_shutdown",
        "SET GLOBAL TimeZone = 'UTC'", /* a TIMESTAMP in a TIMESTAMPTZ column would be local time */
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    };
    TRY(pawl__duck_connect(db, &conn, reterr));
    if (options->allowed_dir_count > 0) {
        TRY(allow_dirs(conn, options, reterr));
    }
    for (size_t i = 0; i < COUNT_OF(last); i++) {
        TRY(pawl__duck_command(conn, last[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status duck_new(const char *path,
                            const struct pawl__duck_options *options,
                            struct pawl__duck **ret_db,
                            pawl_error *reterr)
{
    AUTO(pawl__duck_close_p) struct pawl__duck *db = calloc(1, sizeof(*db));
    size_t size = strlen(path) + sizeof(".wal");

    TRY(pawl__check_memory(db, "a database", reterr));
    pawl__lock_init(&db->wal_lock);
    db->wal_fd = -1;
    db->read_only = options->read_only;
    db->unsafe_no_sync = options->unsafe_no_sync;
    db->watch.clock = pawl__clock_or_real(options->clock);
    db->path = strdup(path);
    db->wal_path = malloc(size);
    if (db->path == NULL || db->wal_path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a database");
    }
    snprintf(db->wal_path, size, "%s.wal", path);
    TRY(pawl__duck_watch_start(db, reterr));
    *ret_db = STEAL(db);
    return PAWL_OK;
}

static bool exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

static pawl_status check_file(const struct pawl__duck *db, pawl_error *reterr)
{
    struct stat info;

    if (stat(db->path, &info) != 0) {
        if (errno != ENOENT || db->read_only) {
            return pawl__fail_errno(reterr, errno, "inspect the file");
        }
        /* DuckDB would make a new file and replay the log of another into it. */
        return exists(db->wal_path)
                   ? pawl__fail(reterr, PAWL_CORRUPT, "its log is there, the file itself is not")
                   : PAWL_OK;
    }
    if (!S_ISREG(info.st_mode)) {
        return pawl__fail(reterr, PAWL_INVALID, "not a file");
    }
    if (faccessat(AT_FDCWD, db->path, db->read_only ? R_OK : R_OK | W_OK, AT_EACCESS) != 0) {
        return pawl__fail_errno(reterr, errno, "use the file");
    }
    return PAWL_OK;
}

/* A file that does not open because of an unfinished transaction at the end of its log opens without
 * it. Whatever else is wrong stays as it was, and so does the first error. */
static pawl_status open_or_cut(struct pawl__duck *db,
                               const struct pawl__duck_options *options,
                               pawl_error *reterr)
{
    uint64_t cut_bytes = 0;
    pawl_error first = PAWL_ERROR_INIT;
    pawl_error why = PAWL_ERROR_INIT;
    pawl_status status = open_native(db, options, &first);

    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (status != PAWL_CORRUPT || db->read_only) {
        return pawl__fail_with(reterr, status, &first);
    }
    /* Without memory or space we do not know; CORRUPT would have it thrown away. */
    pawl_status looked = pawl__duck_cut_log(db, &cut_bytes, &why);
    if (looked == PAWL_OK && cut_bytes == 0) {
        return pawl__fail_with(reterr, status, &first);
    }
    bool opened = looked == PAWL_OK && open_native(db, options, NULL) == PAWL_OK;
    if (looked == PAWL_OK) {
        looked = pawl__duck_end_cut(db, !opened, &why);
    }
    db->cut_bytes = opened ? cut_bytes : 0;
    if (looked != PAWL_OK) {
        return pawl__fail_with(reterr, looked, &why);
    }
    return opened ? PAWL_OK : pawl__fail_with(reterr, status, &first);
}

static pawl_status open_locked(struct pawl__duck *db,
                               const struct pawl__duck_options *options,
                               pawl_error *reterr)
{
    TRY(pawl__store_lock_beside(db->path, &db->lock, reterr));
    TRY(check_file(db, reterr));
    TRY(open_or_cut(db, options, reterr));
    TRY(restrict_sql(db, options, reterr));
    return db->read_only || db->unsafe_no_sync
               ? PAWL_OK
               : pawl__fs_sync_parent(db->path, reterr); /* the file may be new */
}

pawl_status pawl__duck_open(const char *path,
                            const struct pawl__duck_options *options,
                            struct pawl__duck **ret_db,
                            pawl_error *reterr)
{
    static const struct pawl__duck_options defaults = { 0 };
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;

    options = options != NULL ? options : &defaults;
    TRY(duck_new(path, options, &db, reterr));
    REQUIRE(db != NULL);
    pawl_status status = open_locked(db, options, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "open DuckDB file '%s'", path);
    }
    *ret_db = STEAL(db);
    return PAWL_OK;
}

pawl_status pawl__duck_open_memory(const struct pawl__duck_options *options,
                                   struct pawl__duck **ret_db,
                                   pawl_error *reterr)
{
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    struct pawl__duck_options own = { .unsafe_no_sync = true }; /* it has no directory */

    if (options != NULL) {
        own.threads = options->threads;
        own.memory_bytes_max = options->memory_bytes_max;
        own.clock = options->clock;
    }
    TRY(duck_new(":memory:", &own, &db, reterr));
    TRY(open_native(db, &own, reterr));
    TRY(restrict_sql(db, &own, reterr));
    *ret_db = STEAL(db);
    return PAWL_OK;
}

uint64_t pawl__duck_cut_bytes(const struct pawl__duck *db)
{
    return db->cut_bytes;
}

void pawl__duck_close(struct pawl__duck *db)
{
    if (db == NULL) {
        return;
    }
    pawl__duck_watch_end(db);
    if (db->native != NULL) {
        duckdb_close(&db->native);
    }
    pawl__fs_close(&db->wal_fd);
    pawl__lock_done(&db->wal_lock);
    pawl__store_lock_release(db->lock);
    free(db->wal_path);
    free(db->path);
    free(db);
}

/* Is the log that we hold still the one behind the name? While we hold it its number is not given
 * to another file. */
static bool wal_is_known_locked(const struct pawl__duck *db) REQUIRES_LOCK(db->wal_lock)
{
    struct stat held;
    struct stat named;

    return db->wal_fd >= 0 && fstat(db->wal_fd, &held) == 0 && stat(db->wal_path, &named) == 0
           && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* The log stands beside the file. */
static pawl_status sync_directory(const struct pawl__duck *db, pawl_error *reterr)
{
    FAILPOINT("duckdb.sync.before", reterr);
    return pawl__fs_sync_parent(db->path, reterr);
}

/* After a sync that failed the kernel may have forgotten the change, and a second one would say
 * that all is well. So nothing more is done with this handle. */
static pawl_status sync_names(struct pawl__duck *db, pawl_error *reterr)
{
    pawl_status status = sync_directory(db, reterr);

    if (status != PAWL_OK) {
        atomic_store(&db->spoilt, true);
    }
    return status;
}

static pawl_status sync_wal_name_locked(struct pawl__duck *db, pawl_error *reterr)
    REQUIRES_LOCK(db->wal_lock)
{
    if (wal_is_known_locked(db)) {
        return PAWL_OK;
    }
    pawl__fs_close(&db->wal_fd);
    db->wal_fd = open(db->wal_path, O_RDONLY | O_CLOEXEC);
    if (db->wal_fd < 0 && errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "open '%s'", db->wal_path);
    }
    if (db->wal_fd < 0) {
        return PAWL_OK; /* nothing was written, or a checkpoint has it already */
    }
    return sync_names(db, reterr);
}

pawl_status pawl__duck_sync_wal_name(struct pawl__duck *db, pawl_error *reterr)
{
    if (db->read_only || db->unsafe_no_sync) {
        return PAWL_OK;
    }
    pawl__lock(&db->wal_lock);
    pawl_status status = sync_wal_name_locked(db, reterr);
    pawl__unlock(&db->wal_lock);
    return status;
}

pawl_status pawl__duck_checkpoint(struct pawl__duck *db,
                                  enum pawl__duck_checkpoint_mode mode,
                                  pawl_error *reterr)
{
    AUTO(pawl__duck_disconnect_p) struct pawl__duck_conn *conn = NULL;

    if (mode == PAWL__DUCK_CHECKPOINT_TRY && atomic_load(&db->streams) > 0) {
        return pawl__fail(reterr, PAWL_BUSY, "checkpoint '%s': rows are being read", db->path);
    }
    TRY(pawl__duck_connect(db, &conn, reterr));
    FAILPOINT("duckdb.checkpoint.before", reterr);
    pawl_status status = pawl__duck_command(
        conn, mode == PAWL__DUCK_CHECKPOINT_FORCE ? "FORCE CHECKPOINT" : "CHECKPOINT", reterr);
    if (status == PAWL_OK && !db->unsafe_no_sync) {
        status = sync_names(db, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "checkpoint '%s'", db->path);
    }
    FAILPOINT("duckdb.checkpoint.after", reterr);
    return PAWL_OK;
}

static pawl_status move_aside(const char *path, const char *to, pawl_error *reterr)
{
    if (rename(path, to) != 0) {
        return pawl__fail_errno(reterr, errno, "rename '%s' to '%s'", path, to);
    }
    return PAWL_OK;
}

/* The log goes first. A crash between the two leaves a file without log: damaged as before, or an
 * older state whose cursors are older too. The other way round a new file would replay a log that
 * is not its own. */
static pawl_status quarantine_as(const char *path, int number, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf wal = BUF_INIT(SETTINGS_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf wal_to = BUF_INIT(SETTINGS_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf to = BUF_INIT(SETTINGS_BYTES_MAX);
    pawl__buf_add_format(&wal, "%s.wal", path);
    pawl__buf_add_format(&wal_to, "%s.wal.quarantined-%d", path, number);
    pawl__buf_add_format(&to, "%s.quarantined-%d", path, number);
    if (wal.broken || wal_to.broken || to.broken) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    if (exists(wal_to.data) || exists(to.data)) {
        return pawl__fail(reterr, PAWL_CONFLICT, "'%s' is taken", to.data);
    }
    if (!exists(wal.data) && !exists(path)) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "there is nothing to move");
    }
    FAILPOINT("duckdb.quarantine.before", reterr);
    if (exists(wal.data)) {
        TRY(move_aside(wal.data, wal_to.data, reterr));
    }
    if (exists(path)) {
        TRY(move_aside(path, to.data, reterr));
    }
    return pawl__fs_sync_parent(path, reterr);
}

pawl_status pawl__duck_quarantine(const char *path, int *ret_number, pawl_error *reterr)
{
    AUTO(pawl__store_lock_release_p) struct pawl__store_lock *lock = NULL;
    int number = 1;

    pawl_status status = pawl__store_lock_beside(path, &lock, reterr);

    if (status == PAWL_OK) {
        pawl_error error = PAWL_ERROR_INIT;
        do {
            status = quarantine_as(path, number, &error);
        } while (status == PAWL_CONFLICT && number++ < QUARANTINE_MAX);
        status = status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "quarantine '%s'", path);
    }
    *ret_number = number;
    return PAWL_OK;
}
