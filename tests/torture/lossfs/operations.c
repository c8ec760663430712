/* The FUSE operations: refuse or do it live, then tell the image. */
#include "torture/lossfs/lossfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/macros.h"

/* An open file or directory; fuse_file_info.fh. */
struct handle {
    int fd;
    struct loss_node *node; /* holds a reference */
    bool synced;            /* O_SYNC or O_DSYNC */
};

static struct lossfs *enter(void) NO_LOCK_ANALYSIS
{
    struct lossfs *fs = fuse_get_context()->private_data;

    pawl__lock(&fs->lock);
    return fs;
}

static void leave(struct lossfs **fs) NO_LOCK_ANALYSIS
{
    pawl__unlock(&(*fs)->lock);
}

/* AUTO(leave): the lock is held until the function ends, whichever way. */
#define ENTER(fs) AUTO(leave) struct lossfs *fs = enter()

static struct handle *handle_of(const struct fuse_file_info *info)
{
    return (struct handle *)(uintptr_t)info->fh;
}

/* Paths are absolute within the mount; live ones are relative to the live directory. */
static const char *live_path(const char *path)
{
    return path[1] == '\0' ? "." : &path[1];
}

static int result_of(int failed)
{
    return failed ? -errno : 0;
}

void lossfs_cut_locked(struct lossfs *fs)
{
    if (!fs->faults.cut_done) {
        fs->faults.cut_done = true;
        fs->lost = loss_names_cut(&fs->names, fs->faults.cut, fs->faults.seed);
    }
}

/* The gate before every change. 0 or a negative errno. */
static int begin_change(struct lossfs *fs) NO_LOCK_ANALYSIS
{
    int error = 0;
    enum loss_verdict verdict = loss_faults_change(&fs->faults, &error);

    if (verdict == LOSS_CUT_NOW) {
        lossfs_cut_locked(fs);
    }
    return -error;
}

static int begin_growth(struct lossfs *fs, const struct loss_node *node, uint64_t len_after)
{
    uint64_t len = node->file.live_len;
    uint64_t bytes = fs->names.live_bytes;

    return -loss_faults_grow(&fs->faults, bytes, bytes + MAX(len_after, len) - len);
}

static int powered(const struct lossfs *fs)
{
    return fs->faults.cut_done ? -EIO : 0;
}

static struct loss_node *node_of(const struct lossfs *fs,
                                 const char *path,
                                 const struct fuse_file_info *info)
{
    return info != NULL ? handle_of(info)->node : loss_names_find(&fs->names, path);
}

/* Looking. */

static int op_getattr(const char *path, struct stat *ret_stat, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = powered(fs);

    if (result != 0) {
        return result;
    }
    return result_of(info != NULL
                         ? fstat(handle_of(info)->fd, ret_stat)
                         : fstatat(fs->live, live_path(path), ret_stat, AT_SYMLINK_NOFOLLOW));
}

static int op_readlink(const char *path, char *ret_target, size_t size)
{
    ENTER(fs);
    ssize_t len = readlinkat(fs->live, live_path(path), ret_target, size - 1);

    if (len < 0) {
        return -errno;
    }
    ret_target[len] = '\0';
    return 0;
}

static int op_readdir(const char *path,
                      void *buffer,
                      fuse_fill_dir_t fill,
                      off_t offset,
                      struct fuse_file_info *info,
                      enum fuse_readdir_flags flags)
{
    ENTER(fs);
    int result = powered(fs);

    (void)path;
    (void)offset;
    (void)flags;
    if (result != 0) {
        return result;
    }
    int fd = openat(handle_of(info)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory == NULL) {
        result = -errno;
        pawl__fs_close(&fd);
        return result;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(directory)) != NULL) {
        fill(buffer, entry->d_name, NULL, 0, 0);
    }
    closedir(directory);
    return 0;
}

static int op_read(
    const char *path, char *ret_data, size_t len, off_t offset, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = powered(fs);

    (void)path;
    if (result != 0) {
        return result;
    }
    ssize_t got = pread(handle_of(info)->fd, ret_data, len, offset);
    return got < 0 ? -errno : (int)got;
}

static int op_statfs(const char *path, struct statvfs *ret_stat)
{
    ENTER(fs);

    (void)path;
    if (fstatvfs(fs->live, ret_stat) != 0) {
        return -errno;
    }
    if (fs->faults.quota != LOSS_NO_QUOTA) {
        uint64_t used = MIN(fs->names.live_bytes, fs->faults.quota);
        ret_stat->f_blocks = fs->faults.quota / ret_stat->f_frsize;
        ret_stat->f_bfree = (fs->faults.quota - used) / ret_stat->f_frsize;
        ret_stat->f_bavail = ret_stat->f_bfree;
    }
    return 0;
}

/* Names. */

/* Live files are made by whoever runs lossfs; they shall belong to whoever asked. */
static int adopt(struct lossfs *fs, const char *path, mode_t mode, struct loss_node **ret_node)
{
    const struct fuse_context *caller = fuse_get_context();

    if (fchownat(fs->live, live_path(path), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return -errno;
    }
    struct loss_node *node = loss_names_create(&fs->names, path, mode);
    node->uid = caller->uid;
    node->gid = caller->gid;
    *ret_node = node;
    return 0;
}

static int op_mkdir(const char *path, mode_t mode)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(mkdirat(fs->live, live_path(path), mode));
    }
    return result != 0 ? result : adopt(fs, path, S_IFDIR | (mode & 07777), &node);
}

/* Sockets and FIFOs: a server may put one beside its data. */
static int op_mknod(const char *path, mode_t mode, dev_t device)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(mknodat(fs->live, live_path(path), mode, device));
    }
    return result != 0 ? result : adopt(fs, path, mode, &node);
}

static int op_symlink(const char *target, const char *path)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(symlinkat(target, fs->live, live_path(path)));
    }
    if (result == 0) {
        result = adopt(fs, path, S_IFLNK | 0777, &node);
    }
    if (result == 0) {
        node->target = strdup(target);
        REQUIRE(node->target != NULL);
    }
    return result;
}

static int op_link(const char *from, const char *to)
{
    ENTER(fs);
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(linkat(fs->live, live_path(from), fs->live, live_path(to), 0));
    }
    if (result == 0) {
        loss_names_link(&fs->names, to, loss_names_find(&fs->names, from));
    }
    return result;
}

static int remove_name(const char *path, int flags)
{
    ENTER(fs);
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(unlinkat(fs->live, live_path(path), flags));
    }
    if (result == 0) {
        loss_names_unlink(&fs->names, path);
    }
    return result;
}

static int op_unlink(const char *path)
{
    return remove_name(path, 0);
}

static int op_rmdir(const char *path)
{
    return remove_name(path, AT_REMOVEDIR);
}

/* The name that libfuse gives to an open file that was unlinked or replaced. (Its hard_remove would
 * do without, but then fstat of such a file fails: the kernel does not say through which handle.)
 */
static bool is_hidden(const char *path)
{
    return strstr(path, "/.fuse_hidden") != NULL;
}

static int op_rename(const char *from, const char *to, unsigned flags)
{
    ENTER(fs);
    int result = (flags & ~(unsigned)RENAME_NOREPLACE) != 0 ? -EINVAL : begin_change(fs);

    if (result == 0) {
        result = result_of(renameat2(fs->live, live_path(from), fs->live, live_path(to), flags));
    }
    if (result == 0 && is_hidden(to)) {
        loss_names_hide(&fs->names, from, to);
        return 0;
    }
    /* Two names of one file: POSIX says that nothing happens. */
    if (result == 0 && loss_names_find(&fs->names, from) != loss_names_find(&fs->names, to)) {
        loss_names_rename(&fs->names, from, to);
    }
    return result;
}

static int op_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(info != NULL ? fchmod(handle_of(info)->fd, mode)
                                        : fchmodat(fs->live, live_path(path), mode, 0));
    }
    if (result == 0) {
        struct loss_node *node = node_of(fs, path, info);
        node->mode = (node->mode & S_IFMT) | (mode & 07777);
    }
    return result;
}

static int op_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = begin_change(fs);

    if (result == 0) {
        result = result_of(
            info != NULL ? fchown(handle_of(info)->fd, uid, gid)
                         : fchownat(fs->live, live_path(path), uid, gid, AT_SYMLINK_NOFOLLOW));
    }
    if (result == 0) {
        struct loss_node *node = node_of(fs, path, info);
        node->uid = uid == (uid_t)-1 ? node->uid : uid;
        node->gid = gid == (gid_t)-1 ? node->gid : gid;
    }
    return result;
}

static int op_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    ENTER(fs);
    int result = powered(fs);

    if (result != 0) {
        return result;
    }
    return result_of(info != NULL
                         ? futimens(handle_of(info)->fd, times)
                         : utimensat(fs->live, live_path(path), times, AT_SYMLINK_NOFOLLOW));
}

/* Open files. */

static int open_handle(int fd, struct loss_node *node, struct fuse_file_info *info)
{
    struct handle *handle = malloc(sizeof(*handle));

    REQUIRE(handle != NULL);
    *handle = (struct handle){
        .fd = fd,
        .node = loss_node_ref(node),
        .synced = (info->flags & O_DSYNC) != 0, /* O_SYNC contains it */
    };
    info->fh = (uintptr_t)handle;
    return 0;
}

/* The kernel has resolved the offset and the cache: these would only disturb the live file. */
static int live_flags(const struct fuse_file_info *info)
{
    return (info->flags & ~(O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)) | O_CLOEXEC;
}

static int op_open(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    bool truncate = (info->flags & O_TRUNC) != 0;
    int result = truncate ? begin_change(fs) : powered(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, live_path(path), live_flags(info));
    if (fd < 0) {
        return -errno;
    }
    struct loss_node *node = loss_names_find(&fs->names, path);
    if (truncate) {
        loss_names_resize(&fs->names, node, 0);
    }
    return open_handle(fd, node, info);
}

static int op_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = begin_change(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, live_path(path), live_flags(info) | O_CREAT, mode);
    if (fd < 0) {
        return -errno;
    }
    result = adopt(fs, path, S_IFREG | (mode & 07777), &node);
    if (result != 0) {
        close(fd);
        return result;
    }
    return open_handle(fd, node, info);
}

static int op_opendir(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = powered(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, live_path(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : open_handle(fd, loss_names_find(&fs->names, path), info);
}

static int op_release(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    struct handle *handle = handle_of(info);

    (void)path;
    close(handle->fd);
    loss_names_unref(&fs->names, handle->node);
    free(handle);
    return 0;
}

/* Contents. */

static int op_write(
    const char *path, const char *data, size_t len, off_t offset, struct fuse_file_info *info)
{
    ENTER(fs);
    struct handle *handle = handle_of(info);
    int result = begin_change(fs);

    (void)path;
    if (result == 0) {
        result = -loss_faults_write(&fs->faults);
    }
    if (result == 0) {
        result = begin_growth(fs, handle->node, (uint64_t)offset + len);
    }
    if (result != 0) {
        return result;
    }
    ssize_t put = pwrite(handle->fd, data, len, offset);
    if (put < 0) {
        return -errno;
    }
    bool synced = handle->synced && !fs->faults.lying_fsync;
    loss_names_write(&fs->names, handle->node, (uint64_t)offset, data, (size_t)put, synced);
    return (int)put;
}

static int op_truncate(const char *path, off_t len, struct fuse_file_info *info)
{
    ENTER(fs);
    struct loss_node *node = node_of(fs, path, info);
    int result = begin_change(fs);

    if (result == 0 && node == NULL) {
        result = -ENOENT;
    }
    if (result == 0) {
        result = begin_growth(fs, node, (uint64_t)len);
    }
    if (result != 0) {
        return result;
    }
    AUTO(pawl__fs_close)
    int fd = info != NULL ? -1 : openat(fs->live, live_path(path), O_WRONLY | O_CLOEXEC);
    result = result_of(ftruncate(info != NULL ? handle_of(info)->fd : fd, len));
    if (result == 0) {
        loss_names_resize(&fs->names, node, (uint64_t)len);
    }
    return result;
}

/* Plain allocation only; for holes and the like a program has to know another way, as on file
 * systems that lack them. */
static int op_fallocate(
    const char *path, int mode, off_t offset, off_t len, struct fuse_file_info *info)
{
    ENTER(fs);
    struct handle *handle = handle_of(info);
    uint64_t end = (uint64_t)offset + (uint64_t)len;
    int result = (mode & ~FALLOC_FL_KEEP_SIZE) != 0 ? -EOPNOTSUPP : begin_change(fs);

    (void)path;
    if (result == 0) {
        result = begin_growth(fs, handle->node, end);
    }
    if (result == 0) {
        result = result_of(fallocate(handle->fd, mode, offset, len));
    }
    if (result == 0 && mode == 0 && end > handle->node->file.live_len) {
        loss_names_resize(&fs->names, handle->node, end);
    }
    return result;
}

/* Without the lock: the others go on while a disk is slow. */
static void wait_for_disk(void)
{
    struct lossfs *fs = enter();
    int64_t us = (int64_t)fs->faults.slow_fsync_us;

    leave(&fs);
    if (us > 0) {
        struct pawl__clock *clock = pawl__clock_real();
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + us * NS_PER_US);
    }
}

static int op_fsync(const char *path, int datasync, struct fuse_file_info *info)
{
    wait_for_disk();
    ENTER(fs);
    struct loss_node *node = handle_of(info)->node;
    int result = begin_change(fs);

    (void)path;
    (void)datasync; /* keeps everything needed to read the data back; only times may differ */
    if (result != 0) {
        return result;
    }
    result = -loss_faults_fsync(&fs->faults);
    if (result != 0) {
        loss_file_forget(&node->file);
    } else if (!fs->faults.lying_fsync) {
        loss_file_sync(&node->file);
        loss_names_sync(&fs->names, node);
    }
    return result;
}

static void *op_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    struct lossfs *fs = fuse_get_context()->private_data;

    (void)connection;
    config->use_ino = 1;     /* SQLite and others tell files apart by them */
    config->nullpath_ok = 1; /* open files are reached through their handles */
    /* Nobody changes the live directory but us, so the kernel may remember what it was told; asking
     * again for every path costs a PostgreSQL start seconds. */
    config->entry_timeout = 3600;
    config->attr_timeout = 3600;
    if (send(fs->control, "ready", strlen("ready"), MSG_NOSIGNAL) < 0) {
        perror("lossfs: control");
    }
    return fs;
}

const struct fuse_operations lossfs_operations = {
    .init = op_init,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .readdir = op_readdir,
    .read = op_read,
    .statfs = op_statfs,
    .mkdir = op_mkdir,
    .mknod = op_mknod,
    .symlink = op_symlink,
    .link = op_link,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = op_rename,
    .chmod = op_chmod,
    .chown = op_chown,
    .utimens = op_utimens,
    .open = op_open,
    .create = op_create,
    .opendir = op_opendir,
    .release = op_release,
    .releasedir = op_release,
    .write = op_write,
    .truncate = op_truncate,
    .fallocate = op_fallocate,
    .fsync = op_fsync,
    .fsyncdir = op_fsync,
};
