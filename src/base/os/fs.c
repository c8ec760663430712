#include "base/os/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sha256.h"
#include "base/os/failpoint.h"

void pawl__fs_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

char *pawl__fs_join(const char *dir, const char *name)
{
    size_t dir_len = strlen(dir);

    while (dir_len > 1 && dir[dir_len - 1] == '/') {
        dir_len--;
    }
    const char *slash = dir_len == 0 || dir[dir_len - 1] == '/' ? "" : "/";
    size_t size = dir_len + strlen(slash) + strlen(name) + 1;
    char *path = malloc(size);
    if (path != NULL) {
        snprintf(path, size, "%.*s%s%s", (int)dir_len, dir, slash, name);
    }
    return path;
}

pawl_status pawl__fs_named(const char *path, char **ret_path, pawl_error *reterr)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    char *named = strndup(path, len);
    const char *slash = named == NULL ? NULL : strrchr(named, '/');
    const char *last = slash == NULL ? named : slash + 1;
    if (named != NULL && (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)) {
        free(named);
        named = realpath(path, NULL);
        if (named == NULL) {
            return pawl__fail_errno(reterr, errno, "inspect '%s'", path);
        }
    }
    TRY(pawl__check_memory(named, "a path", reterr));
    *ret_path = named;
    return PAWL_OK;
}

pawl_status pawl__fs_check_path(const char *path, pawl_error *reterr)
{
    return path != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
}

char *pawl__fs_with_suffix(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *whole = malloc(size);

    if (whole != NULL) {
        snprintf(whole, size, "%s%s", path, suffix);
    }
    return whole;
}

/* The directory that holds `path`, malloc'ed: "." for a bare name, "/" for what stands in the root.
 */
static char *parent_of(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    return pawl__view_dup(len == 0 ? pawl_view_of(".") : (pawl_view){ path, len });
}

pawl_status pawl__fs_sync_dir(const char *path, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open directory '%s'", path);
    }
    FAILPOINT("fs.sync_dir.before", reterr);
    if (fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "fsync of directory '%s'", path);
    }
    FAILPOINT("fs.sync_dir.after", reterr);
    return PAWL_OK;
}

pawl_status pawl__fs_sync_parent(const char *path, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *parent = parent_of(path);

    TRY(pawl__check_memory(parent, "a path", reterr));
    return pawl__fs_sync_dir(parent, reterr);
}

/* The process that made it may have died before its name was durable. A process that cannot read or change
 * the parent directory has made nothing in it. */
static pawl_status sync_name_of_old(const char *path, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__fs_sync_parent(path, &error);

    if (status == PAWL_OK || status == PAWL_DENIED) {
        return PAWL_OK;
    }
    if (reterr != NULL) {
        *reterr = error;
    }
    return status;
}

pawl_status pawl__fs_make_dir(const char *path, pawl_error *reterr)
{
    struct stat info;

    if (stat(path, &info) == 0) {
        return S_ISDIR(info.st_mode) ? sync_name_of_old(path, reterr)
                                     : pawl__fail_errno(reterr, ENOTDIR, "'%s'", path);
    }
    if (errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "inspect '%s'", path);
    }
    AUTO(pawl__text_free) char *parent = parent_of(path);
    TRY(pawl__check_memory(parent, "a path", reterr));
    /* Every level is one component shorter, so the depth is bounded by PATH_MAX. */
    TRY(pawl__fs_make_dir(parent, reterr));
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return pawl__fail_errno(reterr, errno, "create directory '%s'", path);
    }
    /* There already: by another process just now, or as a link that leads nowhere. */
    if (stat(path, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "create directory '%s'", path);
    }
    if (!S_ISDIR(info.st_mode)) {
        return pawl__fail_errno(reterr, ENOTDIR, "'%s'", path);
    }
    return pawl__fs_sync_dir(parent, reterr);
}

static pawl_status write_all(int fd, pawl_view content, const char *path, pawl_error *reterr)
{
    for (size_t done = 0; done < content.len;) {
        ssize_t written = write(fd, content.data + done, content.len - done);
        if (written < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "write '%s'", path);
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return PAWL_OK;
}

static pawl_status write_durably(int fd, pawl_view content, const char *path, pawl_error *reterr)
{
    TRY(write_all(fd, content, path, reterr));
    FAILPOINT("fs.replace.sync.before", reterr);
    if (fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "fsync '%s'", path);
    }
    return PAWL_OK;
}

static pawl_status rename_over(const char *from, const char *to, pawl_error *reterr)
{
    FAILPOINT("fs.replace.rename.before", reterr);
    if (rename(from, to) != 0) {
        return pawl__fail_errno(reterr, errno, "rename '%s' to '%s'", from, to);
    }
    FAILPOINT("fs.replace.rename.after", reterr);
    return pawl__fs_sync_parent(to, reterr);
}

pawl_status pawl__fs_create_beside(
    const char *path, const char *suffix, char **ret_temporary, int *ret_fd, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *temporary = NULL;

    if (asprintf(&temporary, "%s%sXXXXXX", path, suffix) < 0) {
        temporary = NULL;
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    *ret_fd = mkostemp(temporary, O_CLOEXEC);
    if (*ret_fd < 0) {
        return pawl__fail_errno(reterr, errno, "create a file beside '%s'", path);
    }
    *ret_temporary = STEAL(temporary);
    return PAWL_OK;
}

pawl_status pawl__fs_replace(const char *path, pawl_view content, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *temporary = NULL;
    AUTO(pawl__fs_close) int fd = -1;

    TRY(pawl__fs_create_beside(path, ".", &temporary, &fd, reterr));
    pawl_status status = write_durably(fd, content, temporary, reterr);
    if (status == PAWL_OK) {
        status = rename_over(temporary, path, reterr);
    }
    if (status != PAWL_OK) {
        unlink(temporary);
    }
    return status;
}

/* Some file systems know no rename that keeps what is there; a second name does the same. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return -1;
    }
    return link(from, to) == 0 ? unlink(from) : -1;
}

pawl_status pawl__fs_publish(const char *temporary, const char *path, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(temporary, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", temporary);
    }
    FAILPOINT("fs.publish.sync.before", reterr);
    if (fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "fsync '%s'", temporary);
    }
    FAILPOINT("fs.publish.rename.before", reterr);
    if (rename_new(temporary, path) != 0) {
        return errno == EEXIST
                   ? pawl__fail(reterr, PAWL_CONFLICT, "'%s' exists", path)
                   : pawl__fail_errno(reterr, errno, "rename '%s' to '%s'", temporary, path);
    }
    pawl_status status = pawl__fs_sync_parent(path, reterr);
    if (status != PAWL_OK) {
        unlink(path); /* a failed call leaves no file behind */
    }
    return status;
}

static pawl_status read_all(
    int fd, const char *path, char *ret_text, size_t size, size_t *ret_len, pawl_error *reterr)
{
    size_t len = 0;

    REQUIRE(size > 0);
    for (ssize_t got = 1; got != 0 && len < size;) {
        got = read(fd, ret_text + len, size - len);
        if (got < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "read '%s'", path);
        }
        len += got > 0 ? (size_t)got : 0;
    }
    if (len == size) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' has more than %zu bytes", path, size - 1);
    }
    ret_text[len] = '\0';
    *ret_len = len;
    return PAWL_OK;
}

pawl_status pawl__fs_read_small(
    const char *path, char *ret_text, size_t size, size_t *ret_len, pawl_error *reterr)
{
    /* Opening a FIFO waits for a writer, which may never come. */
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    return S_ISREG(info.st_mode) ? read_all(fd, path, ret_text, size, ret_len, reterr)
                                 : pawl__fail(reterr, PAWL_INVALID, "'%s' is not a file", path);
}

pawl_status pawl__fs_read_given(
    const char *path, char *ret_text, size_t size, size_t *ret_len, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? pawl__fail_errno(reterr, errno, "open '%s'", path)
                  : read_all(fd, path, ret_text, size, ret_len, reterr);
}

pawl_status pawl__fs_free_bytes(const char *path, uint64_t *ret_bytes, pawl_error *reterr)
{
    struct statvfs info;

    if (statvfs(path, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "inspect the file system of '%s'", path);
    }
    *ret_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    return PAWL_OK;
}

pawl_status pawl__fs_free_bytes_for(const char *path, uint64_t *ret_bytes, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *place = strdup(path);
    struct stat info;

    /* "." and "/" are always there, so it ends. */
    while (place != NULL && stat(place, &info) != 0 && errno == ENOENT) {
        char *above = parent_of(place);
        free(place);
        place = above;
    }
    return place == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path")
                         : pawl__fs_free_bytes(place, ret_bytes, reterr);
}

pawl_status pawl__fs_hash(int fd, struct pawl__sha256 *ret_hash, int *ret_errno, pawl_error *reterr)
{
    AUTO(pawl__sha256_close_p) struct pawl__sha256_stream *stream = NULL;
    char chunk[32 << 10];
    ssize_t got = 1;

    *ret_errno = 0;
    TRY(pawl__sha256_open(&stream, reterr));
    while (got != 0) {
        got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno != EINTR) {
            *ret_errno = errno;
            return PAWL_OK;
        }
        TRY(pawl__sha256_add(stream, (pawl_view){ chunk, got > 0 ? (size_t)got : 0 }, reterr));
    }
    return pawl__sha256_finish(stream, ret_hash, reterr);
}
