/* Files that must be there after a power cut. */
#ifndef PAWL_BASE_OS_FS_H
#define PAWL_BASE_OS_FS_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

void pawl__fs_close(int *fd); /* for AUTO; -1 is nothing */

/* Creates a directory and its missing parents, mode 0700, each made durable in its parent. A
 * directory that is there is fine. */
PAWL_MUST_USE pawl_status pawl__fs_make_dir(const char *path, pawl_error *reterr);

/* fsync of the directory itself: names that were created, renamed or removed in it. */
PAWL_MUST_USE pawl_status pawl__fs_sync_dir(const char *path, pawl_error *reterr);

/* fsync of the directory that holds `path`. */
PAWL_MUST_USE pawl_status pawl__fs_sync_parent(const char *path, pawl_error *reterr);

/* Creates "<path><suffix>XXXXXX", mode 0600, for a file that gets its name when it is whole. */
PAWL_MUST_USE pawl_status pawl__fs_create_beside(
    const char *path, const char *suffix, char **ret_temporary, int *ret_fd, pawl_error *reterr);

/* Replaces a file by new content, all or nothing: temporary file beside it, fsync, rename, fsync of
 * the directory. Mode 0600. A call that failed has left the old content or the new one, whole, and
 * nothing beside it. */
PAWL_MUST_USE pawl_status pawl__fs_replace(const char *path, pawl_view content, pawl_error *reterr);

/* Gives a finished file its name, unless that is taken (CONFLICT): fsync, rename, fsync of the
 * directory. Both are on the same file system. */
PAWL_MUST_USE pawl_status pawl__fs_publish(const char *temporary,
                                           const char *path,
                                           pawl_error *reterr);

/* Reads a whole file of at most size - 1 bytes and ends it with a NUL; a larger one is INVALID, and so
 * is what is no file. Waits for nobody. What is in `ret_text` after a failure means nothing. */
PAWL_MUST_USE pawl_status pawl__fs_read_small(
    const char *path, char *ret_text, size_t size, size_t *ret_len, pawl_error *reterr);

/* The same of a path that a person gave, which may be a pipe or a terminal: waits for its end. */
PAWL_MUST_USE pawl_status pawl__fs_read_given(
    const char *path, char *ret_text, size_t size, size_t *ret_len, pawl_error *reterr);

/* The hash of the rest of a file. *ret_errno: why it could not be read, 0 when it could. */
struct pawl__sha256;
PAWL_MUST_USE pawl_status pawl__fs_hash(int fd,
                                        struct pawl__sha256 *ret_hash,
                                        int *ret_errno,
                                        pawl_error *reterr);

/* Bytes that an unprivileged process may still write on the file system that holds `path`. */
PAWL_MUST_USE pawl_status pawl__fs_free_bytes(const char *path,
                                              uint64_t *ret_bytes,
                                              pawl_error *reterr);

/* The same for what may not be there yet: of the nearest directory above it that is. */
PAWL_MUST_USE pawl_status pawl__fs_free_bytes_for(const char *path,
                                                  uint64_t *ret_bytes,
                                                  pawl_error *reterr);

/* "dir/name" in malloc'ed memory, with exactly one slash between; NULL without memory. An empty
 * `dir` is the current directory, never the root. */
char *pawl__fs_join(const char *dir, const char *name);

/* The path without trailing slashes. A last part that is ".", ".." or missing is resolved, so that the result
 * ends in a name. malloc'ed. */
PAWL_MUST_USE pawl_status pawl__fs_named(const char *path, char **ret_path, pawl_error *reterr);

/* "path" with something after it, as in "x.db-wal"; malloc'ed, NULL without memory. */
char *pawl__fs_with_suffix(const char *path, const char *suffix);

/* NOMEM when a function above could not make the path. */
PAWL_MUST_USE pawl_status pawl__fs_check_path(const char *path, pawl_error *reterr);

#endif
