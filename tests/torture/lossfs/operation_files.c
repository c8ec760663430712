/* FUSE operations on open files: their contents, and what makes those durable. */
#include "torture/lossfs/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/fs.h"

static int open_handle(int fd, struct loss_node *node, struct fuse_file_info *info)
{
    struct lossfs_handle *handle = malloc(sizeof(*handle));

    REQUIRE(handle != NULL);
    *handle = (struct lossfs_handle){
        .fd = fd,
        .node = loss_node_ref(node),
        .synced = (info->flags & O_DSYNC) != 0, /* O_SYNC contains it */
    };
    info->fh = (uintptr_t)handle;
    /* Otherwise the kernel drops every page of the file at each open, also those that another process
     * has mapped and locked in memory: no disk file system does that. Nobody changes files but us. */
    info->keep_cache = 1;
    return 0;
}

/* The kernel has resolved the offset and the cache: these would only disturb the live file. */
static int live_flags(const struct fuse_file_info *info)
{
    return (info->flags & ~(O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)) | O_CLOEXEC;
}

int lossfs_open(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    bool truncate = (info->flags & O_TRUNC) != 0;
    int result = truncate ? lossfs_begin_change(fs) : lossfs_powered(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, lossfs_live_path(path), live_flags(info));
    if (fd < 0) {
        return -errno;
    }
    struct loss_node *node = loss_names_find(&fs->names, path);
    if (truncate) {
        loss_names_resize(&fs->names, node, 0);
    }
    return open_handle(fd, node, info);
}

int lossfs_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = lossfs_begin_change(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, lossfs_live_path(path), live_flags(info) | O_CREAT, mode);
    if (fd < 0) {
        return -errno;
    }
    result = lossfs_adopt(fs, path, S_IFREG | (mode & 07777), &node);
    if (result != 0) {
        close(fd);
        return result;
    }
    return open_handle(fd, node, info);
}

int lossfs_opendir(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_powered(fs);

    if (result != 0) {
        return result;
    }
    int fd = openat(fs->live, lossfs_live_path(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : open_handle(fd, loss_names_find(&fs->names, path), info);
}

int lossfs_release(const char *path, struct fuse_file_info *info)
{
    ENTER(fs);
    struct lossfs_handle *handle = lossfs_handle_of(info);

    (void)path;
    close(handle->fd);
    loss_names_unref(&fs->names, handle->node);
    free(handle);
    return 0;
}

int lossfs_read(
    const char *path, char *ret_data, size_t len, off_t offset, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_powered(fs);

    (void)path;
    if (result != 0) {
        return result;
    }
    ssize_t got = pread(lossfs_handle_of(info)->fd, ret_data, len, offset);
    return got < 0 ? -errno : (int)got;
}

static int begin_growth(struct lossfs *fs, const struct loss_node *node, uint64_t len_after)
{
    uint64_t len = node->file.live_len;
    uint64_t bytes = fs->names.live_bytes;

    return -loss_faults_grow(&fs->faults, bytes, bytes + MAX(len_after, len) - len);
}

int lossfs_write(
    const char *path, const char *data, size_t len, off_t offset, struct fuse_file_info *info)
{
    ENTER(fs);
    struct lossfs_handle *handle = lossfs_handle_of(info);
    int result = lossfs_begin_change(fs);

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

int lossfs_truncate(const char *path, off_t len, struct fuse_file_info *info)
{
    ENTER(fs);
    struct loss_node *node = lossfs_node_of(fs, path, info);
    int result = lossfs_begin_change(fs);

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
    int fd = info != NULL ? -1 : openat(fs->live, lossfs_live_path(path), O_WRONLY | O_CLOEXEC);
    result = lossfs_result_of(ftruncate(info != NULL ? lossfs_handle_of(info)->fd : fd, len));
    if (result == 0) {
        loss_names_resize(&fs->names, node, (uint64_t)len);
    }
    return result;
}

/* Plain allocation only; for holes and the like a program has to know another way, as on file
 * systems that lack them. */
int lossfs_fallocate(
    const char *path, int mode, off_t offset, off_t len, struct fuse_file_info *info)
{
    ENTER(fs);
    struct lossfs_handle *handle = lossfs_handle_of(info);
    uint64_t end = (uint64_t)offset + (uint64_t)len;
    int result = (mode & ~FALLOC_FL_KEEP_SIZE) != 0 ? -EOPNOTSUPP : lossfs_begin_change(fs);

    (void)path;
    if (result == 0) {
        result = begin_growth(fs, handle->node, end);
    }
    if (result == 0) {
        result = lossfs_result_of(fallocate(handle->fd, mode, offset, len));
    }
    if (result == 0 && mode == 0 && end > handle->node->file.live_len) {
        loss_names_resize(&fs->names, handle->node, end);
    }
    return result;
}

/* Without the lock: the others go on while a disk is slow. */
static void wait_for_disk(void)
{
    struct lossfs *fs = lossfs_enter();
    int64_t us = (int64_t)fs->faults.slow_fsync_us;

    lossfs_leave(&fs);
    if (us > 0) {
        struct pawl__clock *clock = pawl__clock_real();
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + us * NS_PER_US);
    }
}

int lossfs_fsync(const char *path, int datasync, struct fuse_file_info *info)
{
    wait_for_disk();
    ENTER(fs);
    struct loss_node *node = lossfs_handle_of(info)->node;
    int result = lossfs_begin_change(fs);

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
