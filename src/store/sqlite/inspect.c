#include "store/sqlite/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/sqlite/internal.h"

/* The database header (https://www.sqlite.org/fileformat2.html): what can be known without opening
 * it. */
enum { HEADER_BYTES = 100, WRITE_VERSION_AT = 18, WRITE_VERSION_WAL = 2 };
enum { PATH_BYTES_MAX = 16384 };

static pawl_status read_header(const char *path,
                               struct pawl__sqlite_facts *facts,
                               pawl_error *reterr)
{
    unsigned char header[HEADER_BYTES] = { 0 };
    struct stat info;
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' is not a regular file", path);
    }
    facts->bytes = (uint64_t)info.st_size;
    if (facts->bytes == 0) {
        return PAWL_OK;
    }
    ssize_t got = pread(fd, header, sizeof(header), 0);
    if (got < 0) {
        return pawl__fail_errno(reterr, errno, "read '%s'", path);
    }
    if (got < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) != 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "'%s' is not an SQLite database", path);
    }
    facts->wal = header[WRITE_VERSION_AT] == WRITE_VERSION_WAL;
    return PAWL_OK;
}

static uint64_t size_of_log(const char *path, bool *ret_exists)
{
    struct pawl__buf name = BUF_INIT(PATH_BYTES_MAX);
    struct stat info = { 0 };

    pawl__buf_add_format(&name, "%s-wal", path);
    *ret_exists = !name.broken && stat(name.data, &info) == 0;
    pawl__buf_done(&name);
    return *ret_exists ? (uint64_t)info.st_size : 0;
}

void pawl__sqlite_add_uri(struct pawl__buf *uri, const char *path, bool immutable)
{
    /* An absolute path stands behind an empty host: "//x" alone would be a host called x. */
    pawl__buf_add_text(uri, path[0] == '/' ? "file://" : "file:");
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '?' || *c == '#' || *c == '%') {
            pawl__buf_add_format(uri, "%%%02X", (unsigned char)*c);
        } else {
            pawl__buf_add_char(uri, *c);
        }
    }
    pawl__buf_add_text(uri, immutable ? "?immutable=1" : "?mode=ro");
}

static pawl_status check_owner(struct pawl__sqlite *db, int32_t application_id, pawl_error *reterr)
{
    int64_t found = 0;

    TRY(pawl__sqlite_query_i64(db, "PRAGMA application_id", &found, reterr));
    if (found != application_id) {
        return pawl__fail(
            reterr, PAWL_INVALID, "'%s' is an SQLite database, but not made by pawl", db->path);
    }
    return PAWL_OK;
}

static pawl_status inspect(struct pawl__sqlite *db,
                           const struct pawl__sqlite_inspection *expected,
                           struct pawl__sqlite_facts *facts,
                           pawl_error *reterr)
{
    TRY(check_owner(db, expected->application_id, reterr));
    /* Damage first: what a damaged file says about its schema counts for nothing. */
    if (facts->bytes <= expected->check_bytes_max) {
        TRY(pawl__sqlite_quick_check(db, reterr));
        facts->checked = true;
    }
    return pawl__migrate_pending(
        &pawl__sqlite_migrate_ops, db, expected->schema, &facts->pending, reterr);
}

static void close_inspected(struct pawl__sqlite **db)
{
    if (*db != NULL) {
        sqlite3_close((*db)->native);
        free((*db)->path);
        free(*db);
    }
}

static pawl_status open_to_inspect(const char *path,
                                   bool immutable,
                                   struct pawl__sqlite **ret_db,
                                   pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf uri = BUF_INIT(PATH_BYTES_MAX);
    AUTO(close_inspected) struct pawl__sqlite *db = calloc(1, sizeof(*db));

    pawl__sqlite_add_uri(&uri, path, immutable);
    if (db == NULL || uri.broken || (db->path = strdup(path)) == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to inspect '%s'", path);
    }
    db->clock = pawl__clock_or_real(NULL);
    int rc = sqlite3_open_v2(uri.data,
                             &db->native,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE,
                             NULL);
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    pawl__sqlite_guard_index(db);
    *ret_db = STEAL(db);
    return PAWL_OK;
}

static pawl_status open_and_inspect(const char *path,
                                    bool immutable,
                                    const struct pawl__sqlite_inspection *expected,
                                    struct pawl__sqlite_facts *facts,
                                    pawl_error *reterr)
{
    AUTO(close_inspected) struct pawl__sqlite *db = NULL;

    TRY(open_to_inspect(path, immutable, &db, reterr));
    return inspect(db, expected, facts, reterr);
}

bool pawl__sqlite_answers(const char *path, const char *sql)
{
    AUTO(close_inspected) struct pawl__sqlite *db = NULL;
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    struct pawl__sqlite_facts facts = { 0 };
    bool log = false;

    (void)size_of_log(path, &log);
    return read_header(path, &facts, NULL) == PAWL_OK
           && open_to_inspect(path, !log, &db, NULL) == PAWL_OK
           && pawl__sqlite_prepare_once(db, sql, &stmt, NULL) == PAWL_OK;
}

pawl_status pawl__sqlite_inspect(const char *path,
                                 const struct pawl__sqlite_inspection *expected,
                                 struct pawl__sqlite_facts *ret_facts,
                                 pawl_error *reterr)
{
    struct pawl__sqlite_facts facts = { 0 };
    bool log = false;
    pawl_status status = read_header(path, &facts, reterr);

    facts.log_bytes = size_of_log(path, &log);
    if (status == PAWL_OK && facts.bytes > 0) {
        status = open_and_inspect(path, !log, expected, &facts, reterr);
    }
    /* Another process may have begun to write while we read without a lock: then read again, with. */
    if (status == PAWL_CORRUPT && !log && (size_of_log(path, &log), log)) {
        status = open_and_inspect(path, false, expected, &facts, reterr);
    }
    if (status == PAWL_OK) {
        *ret_facts = facts;
    }
    return status;
}
