/* Looking after a store: moving the log, checking, copying. */
#include "store/sqlite/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "store/sqlite/statements.h"

enum { BACKUP_STEP_PAGES = 256 };

pawl_status pawl__sqlite_checkpoint(struct pawl__sqlite *db,
                                    enum pawl__sqlite_checkpoint kind,
                                    int *ret_left,
                                    pawl_error *reterr)
{
    int mode =
        kind == PAWL__SQLITE_TRUNCATE ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
    int pages = 0;
    int moved = 0;

    TRY(pawl__sqlite_check_stop(db, reterr));
    FAILPOINT("sqlite.checkpoint.before", reterr);
    db->busy_waited_ns = 0;
    int rc = sqlite3_wal_checkpoint_v2(db->native, NULL, mode, &pages, &moved);
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    FAILPOINT("sqlite.checkpoint.after", reterr);
    db->wal_pages = 0;
    if (ret_left != NULL) {
        *ret_left = pages - moved;
    }
    return PAWL_OK;
}

pawl_status pawl__sqlite_quick_check(struct pawl__sqlite *db, pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    bool row = false;

    TRY(pawl__sqlite_prepare_once(db, "PRAGMA quick_check(1)", &stmt, reterr));
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    pawl_view found = pawl__sqlite_text(&stmt, 0);
    if (!pawl__view_is(found, "ok")) {
        return pawl__fail(reterr, PAWL_CORRUPT, "'%s': %.*s", db->path, VIEW_ARGS(found));
    }
    return PAWL_OK;
}

pawl_status pawl__sqlite_free_bytes(struct pawl__sqlite *db,
                                    uint64_t *ret_bytes,
                                    pawl_error *reterr)
{
    int64_t pages = 0;
    int64_t page_bytes = 0;

    TRY(pawl__sqlite_query_i64(db, "PRAGMA freelist_count", &pages, reterr));
    TRY(pawl__sqlite_query_i64(db, "PRAGMA page_size", &page_bytes, reterr));
    *ret_bytes = (uint64_t)(pages * page_bytes);
    return PAWL_OK;
}

pawl_status pawl__sqlite_give_back(struct pawl__sqlite *db,
                                   int pages_max,
                                   uint64_t *ret_bytes,
                                   pawl_error *reterr)
{
    char sql[sizeof("PRAGMA incremental_vacuum(-2147483648)")];
    uint64_t before = 0;
    uint64_t after = 0;

    TRY(pawl__sqlite_free_bytes(db, &before, reterr));
    (void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", pages_max);
    TRY(before > 0 ? pawl__sqlite_exec(db, sql, reterr) : PAWL_OK); /* which runs it to its end */
    TRY(pawl__sqlite_free_bytes(db, &after, reterr));
    *ret_bytes = before > after ? before - after : 0;
    return PAWL_OK;
}

static void close_native(sqlite3 **native)
{
    sqlite3_close(*native);
}

/* Copies page by page from the snapshot that the caller's transaction holds, so that writers
 * elsewhere neither wait nor make it start again. */
static pawl_status copy_pages(struct pawl__sqlite *db,
                              sqlite3_backup *backup,
                              const struct pawl__sqlite_backup_options *options,
                              pawl_error *reterr)
{
    int step_pages = options->step_pages > 0 ? options->step_pages : BACKUP_STEP_PAGES;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK) {
        TRY(pawl__sqlite_check_stop(db, reterr));
        rc = sqlite3_backup_step(backup, step_pages);
        uint64_t all = (uint64_t)sqlite3_backup_pagecount(backup);
        uint64_t done = all - (uint64_t)sqlite3_backup_remaining(backup);
        if ((rc == SQLITE_OK || rc == SQLITE_DONE) && options->progress != NULL
            && !options->progress(options->context, done, all)) {
            return pawl__fail(reterr, PAWL_CANCELLED, "the copy of '%s' was cancelled", db->path);
        }
    }
    return rc == SQLITE_DONE ? PAWL_OK : pawl__sqlite_fail(db, rc, reterr);
}

/* `target` exists and is empty. Its own syncs and journal are off: it counts for nothing until the
 * fsync and the rename that follow. */
static pawl_status copy_into(struct pawl__sqlite *db,
                             const char *target,
                             const struct pawl__sqlite_backup_options *options,
                             pawl_error *reterr)
{
    AUTO(close_native) sqlite3 *native = NULL;
    int rc = sqlite3_open_v2(
        target, &native, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(
            native, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    sqlite3_backup *backup = sqlite3_backup_init(native, "main", db->native, "main");
    if (backup == NULL) {
        return pawl__sqlite_fail(db, sqlite3_extended_errcode(native), reterr);
    }
    pawl_status status = copy_pages(db, backup, options, reterr);
    rc = sqlite3_backup_finish(backup);
    if (status == PAWL_OK && rc != SQLITE_OK) {
        status = pawl__sqlite_fail(db, rc, reterr);
    }
    return status;
}

/* Copies inside a read transaction of its own. */
static pawl_status copy_snapshot(struct pawl__sqlite *db,
                                 const char *target,
                                 const struct pawl__sqlite_backup_options *options,
                                 pawl_error *reterr)
{
    TRY(pawl__sqlite_begin(db, PAWL__SQLITE_DEFERRED, reterr));
    /* BEGIN alone takes no snapshot; the first read does. */
    pawl_status status =
        pawl__sqlite_exec(db, pawl__store_sql_statements[STORE_SQL_COUNT_OBJECTS], reterr);
    if (status == PAWL_OK) {
        status = copy_into(db, target, options, reterr);
    }
    pawl__sqlite_rollback(db);
    return status;
}

static pawl_status make_durable(const char *temporary, const char *path, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(temporary, O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", temporary);
    }
    FAILPOINT("sqlite.backup.sync.before", reterr);
    if (fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "fsync '%s'", temporary);
    }
    FAILPOINT("sqlite.backup.rename.before", reterr);
    if (rename(temporary, path) != 0) {
        return pawl__fail_errno(reterr, errno, "rename '%s' to '%s'", temporary, path);
    }
    FAILPOINT("sqlite.backup.rename.after", reterr);
    return pawl__fs_sync_parent(path, reterr);
}

pawl_status pawl__sqlite_backup(struct pawl__sqlite *db,
                                const char *path,
                                const struct pawl__sqlite_backup_options *options,
                                pawl_error *reterr)
{
    static const struct pawl__sqlite_backup_options none;
    size_t size = strlen(path) + sizeof("./.XXXXXX");
    AUTO(pawl__text_free) char *temporary = malloc(size);

    TRY(pawl__check_memory(temporary, "a path", reterr));
    snprintf(temporary, size, "%s%s.XXXXXX", path[0] == '/' ? "" : "./", path);
    AUTO(pawl__fs_close) int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "create a file beside '%s'", path);
    }
    pawl__fs_close(&fd); /* before SQLite locks the file: see sqlite.h */
    pawl_status status = copy_snapshot(db, temporary, options == NULL ? &none : options, reterr);
    if (status == PAWL_OK) {
        status = make_durable(temporary, path, reterr);
    }
    if (status != PAWL_OK) {
        unlink(temporary);
        return pawl__fail_context(reterr, status, "copy to '%s'", path);
    }
    return PAWL_OK;
}
