#include "torture/lossfs/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/fs.h"

#define COPY_BYTES 65536

static void close_directory(DIR **directory)
{
    if (*directory != NULL) {
        closedir(*directory);
    }
}

static int import_file(struct loss_node *node, int directory, const char *name)
{
    AUTO(pawl__fs_close) int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    char chunk[COPY_BYTES];
    ssize_t got = 0;

    if (fd < 0) {
        return -errno;
    }
    while ((got = read(fd, chunk, sizeof(chunk))) > 0) {
        loss_file_write(&node->file, node->file.live_len, chunk, (size_t)got, true);
    }
    return got < 0 ? -errno : 0;
}

static int import_link(struct loss_node *node, int directory, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(directory, name, target, sizeof(target) - 1);

    if (len < 0) {
        return -errno;
    }
    target[len] = '\0';
    node->target = strdup(target);
    return node->target == NULL ? -ENOMEM : 0;
}

/* Sockets and FIFOs mean nothing after a restart. */
static bool is_kept(mode_t mode)
{
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

static int import_directory(struct loss_names *names, int fd, const char *path);

static int import_entry(struct loss_names *names,
                        int directory,
                        const char *parent,
                        const char *name)
{
    char path[PATH_MAX];
    struct stat info;

    if (snprintf(path, sizeof(path), "%s/%s", parent, name) >= (int)sizeof(path)) {
        return -ENAMETOOLONG;
    }
    if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return -errno;
    }
    if (!is_kept(info.st_mode)) {
        return 0;
    }
    struct loss_node *node = loss_names_create(names, path, info.st_mode);
    node->uid = info.st_uid;
    node->gid = info.st_gid;
    if (S_ISDIR(info.st_mode)) {
        return import_directory(names, openat(directory, name, O_RDONLY | O_CLOEXEC), path);
    }
    int result = S_ISLNK(info.st_mode) ? import_link(node, directory, name)
                                       : import_file(node, directory, name);
    names->live_bytes += node->file.live_len;
    return result;
}

/* Owns `fd`. */
static int import_directory(struct loss_names *names, int fd, const char *path)
{
    if (fd < 0) {
        return -errno;
    }
    AUTO(close_directory) DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        close(fd);
        return -ENOMEM;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int result = import_entry(names, fd, path, entry->d_name);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int loss_disk_import(struct loss_names *names, int live)
{
    struct stat info;

    if (fstat(live, &info) != 0) {
        return -errno;
    }
    names->root->mode = info.st_mode;
    names->root->uid = info.st_uid;
    names->root->gid = info.st_gid;
    int result = import_directory(names, openat(live, ".", O_RDONLY | O_CLOEXEC), "");
    loss_names_sync_all(names);
    return result;
}

static int save_bytes(const struct loss_node *node, int directory, const char *name)
{
    AUTO(pawl__fs_close)
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return -errno;
    }
    for (size_t done = 0; done < node->file.durable_len;) {
        ssize_t put = write(fd, &node->file.durable[done], node->file.durable_len - done);
        if (put < 0) {
            return -errno;
        }
        done += (size_t)put;
    }
    return 0;
}

static int save_directory(const struct loss_node *node, int fd);

static int save_node(const struct loss_node *node, int directory, const char *name)
{
    int result = 0;

    if (S_ISDIR(node->mode)) {
        result = mkdirat(directory, name, 0700) != 0
                     ? -errno
                     : save_directory(node, openat(directory, name, O_RDONLY | O_CLOEXEC));
    } else if (S_ISLNK(node->mode)) {
        result = symlinkat(node->target, directory, name) != 0 ? -errno : 0;
    } else {
        result = save_bytes(node, directory, name);
    }
    if (result != 0) {
        return result;
    }
    if (fchownat(directory, name, node->uid, node->gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return -errno;
    }
    bool has_mode = !S_ISLNK(node->mode);
    return has_mode && fchmodat(directory, name, node->mode & 07777, 0) != 0 ? -errno : 0;
}

/* Owns `fd`. */
static int save_directory(const struct loss_node *node, int fd)
{
    AUTO(pawl__fs_close) int owned = fd;

    if (owned < 0) {
        return -errno;
    }
    for (const struct loss_entry *entry = node->durable; entry != NULL; entry = entry->next) {
        int result = is_kept(entry->node->mode) ? save_node(entry->node, owned, entry->name) : 0;
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int loss_disk_save(const struct loss_names *names, const char *path)
{
    int result = save_directory(names->root, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    if (result != 0) {
        return result;
    }
    if (chown(path, names->root->uid, names->root->gid) != 0
        || chmod(path, names->root->mode & 07777) != 0) {
        return -errno;
    }
    return 0;
}
