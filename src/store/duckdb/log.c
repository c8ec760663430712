/* The end of DuckDB's log after a power cut.
 *
 * A commit appends its transaction in several writes and then calls fsync once. Cut in between, any
 * of those writes may have reached the disk: a later one without an earlier one, whose place then
 * reads as zeros. DuckDB cuts a log that merely ends too early but refuses one with such a hole,
 * although nothing behind its last fsync was ever acknowledged. So we take that transaction away.
 *
 * Only the last transaction can have holes: the one before it was synced before it began. And only
 * a transaction with a sector of zeros in it looks like lost writes; a flipped bit is damage, and
 * stays CORRUPT. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "store/duckdb/internal.h"

enum { CHUNK_BYTES = 64 << 10, SECTOR_BYTES = 512 };

/* How every transaction in the log ends: an entry of 5 bytes (length and checksum, 64 bits each,
 * little-endian) that says "flush". */
static const char mark[] = "\x05\0\0\0\0\0\0\0"
                           "\xe7\xfe\x7d\x72\x2f\xed\x3d\x5e"
                           "\x64\0\x64\xff\xff";
enum { MARK_BYTES = sizeof(mark) - 1 };

static void free_text(char **text)
{
    free(*text);
}

static char *add_suffix(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = malloc(size);

    if (name != NULL) {
        snprintf(name, size, "%s%s", path, suffix);
    }
    return name;
}

static pawl_status read_at(int fd, char *ret_data, size_t len, uint64_t at, pawl_error *reterr)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(fd, &ret_data[done], len - done, (off_t)(at + done));
        if (got < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "read the log");
        }
        if (got == 0) {
            return pawl__fail(reterr, PAWL_IO, "the log became shorter");
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return PAWL_OK;
}

/* The end of the last mark in `data`; 0: there is none. */
static size_t last_mark(const char *data, size_t len)
{
    size_t end = 0;

    while (len - end >= MARK_BYTES) {
        const char *found = memmem(&data[end], len - end, mark, MARK_BYTES);
        if (found == NULL) {
            break;
        }
        end = (size_t)(found - data) + MARK_BYTES;
    }
    return end;
}

/* Where the last transaction begins: behind the last mark that does not end the log itself.
 * Backwards, because logs may be long and transactions rarely are. */
static pawl_status find_last_transaction(
    int fd, uint64_t len, char *chunk, uint64_t *ret_start, pawl_error *reterr)
{
    uint64_t end = len > 0 ? len - 1 : 0; /* a mark at the very end is cut short by this */

    while (end >= MARK_BYTES) {
        size_t size = (size_t)MIN(end, CHUNK_BYTES);
        uint64_t start = end - size;
        TRY(read_at(fd, chunk, size, start, reterr));
        size_t found = last_mark(chunk, size);
        if (found > 0) {
            *ret_start = start + found;
            return PAWL_OK;
        }
        end = start == 0 ? 0 : start + MARK_BYTES - 1; /* one may lie across the border */
    }
    *ret_start = 0;
    return PAWL_OK;
}

static bool is_zero(const char *data, size_t len)
{
    return data[0] == '\0' && memcmp(data, &data[1], len - 1) == 0;
}

static pawl_status find_hole(
    int fd, uint64_t start, uint64_t len, char *chunk, bool *ret_hole, pawl_error *reterr)
{
    uint64_t at = (start + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;

    *ret_hole = false;
    while (!*ret_hole && at + SECTOR_BYTES <= len) {
        size_t size = (size_t)MIN((len - at) / SECTOR_BYTES * SECTOR_BYTES, CHUNK_BYTES);
        TRY(read_at(fd, chunk, size, at, reterr));
        for (size_t i = 0; i < size && !*ret_hole; i += SECTOR_BYTES) {
            *ret_hole = is_zero(&chunk[i], SECTOR_BYTES);
        }
        at += size;
    }
    return PAWL_OK;
}

static pawl_status copy_start(int from, int to, uint64_t len, pawl_error *reterr)
{
    off_t at = 0;

    while ((uint64_t)at < len) {
        ssize_t copied = copy_file_range(from, &at, to, NULL, (size_t)(len - (uint64_t)at), 0);
        if (copied < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "copy the log");
        }
        if (copied == 0) {
            return pawl__fail(reterr, PAWL_IO, "the log became shorter");
        }
    }
    return fsync(to) == 0 ? PAWL_OK : pawl__fail_errno(reterr, errno, "fsync the copy of the log");
}

static pawl_status shorten(const struct pawl__duck *db, int fd, uint64_t len, pawl_error *reterr)
{
    AUTO(free_text) char *shorter = add_suffix(db->wal_path, ".shorter");
    AUTO(free_text) char *torn = add_suffix(db->wal_path, ".torn");

    if (shorter == NULL || torn == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    AUTO(pawl__fs_close) int to = open(shorter, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0) {
        return pawl__fail_errno(reterr, errno, "make '%s'", shorter);
    }
    pawl_status status = copy_start(fd, to, len, reterr);
    /* At every moment the log's name stands for the old one or the new one. */
    unlink(torn);
    if (status == PAWL_OK && link(db->wal_path, torn) != 0) {
        status = pawl__fail_errno(reterr, errno, "link '%s'", torn);
    }
    if (status == PAWL_OK && rename(shorter, db->wal_path) != 0) {
        status = pawl__fail_errno(reterr, errno, "rename '%s'", shorter);
    }
    if (status != PAWL_OK) {
        unlink(shorter);
        return status;
    }
    return PAWL_OK;
}

static pawl_status cut_open_log(const struct pawl__duck *db,
                                int fd,
                                uint64_t *ret_bytes,
                                pawl_error *reterr)
{
    char chunk[CHUNK_BYTES];
    struct stat info;
    uint64_t start = 0;
    bool hole = false;

    if (fstat(fd, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "inspect the log");
    }
    uint64_t len = (uint64_t)info.st_size;

    TRY(find_last_transaction(fd, len, chunk, &start, reterr));
    TRY(find_hole(fd, start, len, chunk, &hole, reterr));
    if (hole) {
        FAILPOINT("duckdb.cut.before", reterr);
        TRY(shorten(db, fd, start, reterr));
    }
    *ret_bytes = hole ? len - start : 0;
    return PAWL_OK;
}

pawl_status pawl__duck_cut_log(const struct pawl__duck *db, uint64_t *ret_bytes, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(db->wal_path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        *ret_bytes = 0;
        return PAWL_OK;
    }
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", db->wal_path);
    }
    return cut_open_log(db, fd, ret_bytes, reterr);
}

pawl_status pawl__duck_end_cut(const struct pawl__duck *db, bool undo, pawl_error *reterr)
{
    AUTO(free_text) char *torn = add_suffix(db->wal_path, ".torn");

    TRY(pawl__check_memory(torn, "a path", reterr));
    if ((undo ? rename(torn, db->wal_path) : unlink(torn)) != 0) {
        return pawl__fail_errno(reterr, errno, "end the cut of '%s'", db->wal_path);
    }
    return pawl__fs_sync_parent(db->wal_path, reterr);
}
