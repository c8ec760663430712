/* What every FUSE operation does first, the ones that only look, and the table of all. */
#include "torture/lossfs/operations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/os/fs.h"

struct lossfs *lossfs_enter(void) NO_LOCK_ANALYSIS
{
    struct lossfs *fs = fuse_get_context()->private_data;

    pawl__lock(&fs->lock);
    return fs;
}

void lossfs_leave(struct lossfs **fs) NO_LOCK_ANALYSIS
{
    pawl__unlock(&(*fs)->lock);
}

struct lossfs_handle *lossfs_handle_of(const struct fuse_file_info *info)
{
    return (struct lossfs_handle *)(uintptr_t)info->fh;
}

const char *lossfs_live_path(const char *path)
{
    return path[1] == '\0' ? "." : &path[1];
}

int lossfs_result_of(int failed)
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

int lossfs_begin_change(struct lossfs *fs) NO_LOCK_ANALYSIS
{
    int error = 0;
    enum loss_verdict verdict = loss_faults_change(&fs->faults, &error);

    if (verdict == LOSS_CUT_NOW) {
        lossfs_cut_locked(fs);
    }
    return -error;
}

int lossfs_powered(const struct lossfs *fs)
{
    return fs->faults.cut_done ? -EIO : 0;
}

struct loss_node *lossfs_node_of(const struct lossfs *fs,
                                 const char *path,
                                 const struct fuse_file_info *info)
{
    return info != NULL ? lossfs_handle_of(info)->node : loss_names_find(&fs->names, path);
}

int lossfs_adopt(struct lossfs *fs, const char *path, mode_t mode, struct loss_node **ret_node)
{
    const struct fuse_context *caller = fuse_get_context();

    if (fchownat(fs->live, lossfs_live_path(path), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW)
        != 0) {
        return -errno;
    }
    struct loss_node *node = loss_names_create(&fs->names, path, mode);
    node->uid = caller->uid;
    node->gid = caller->gid;
    *ret_node = node;
    return 0;
}

static int op_getattr(const char *path, struct stat *ret_stat, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_powered(fs);

    if (result != 0) {
        return result;
    }
    return lossfs_result_of(
        info != NULL ? fstat(lossfs_handle_of(info)->fd, ret_stat)
                     : fstatat(fs->live, lossfs_live_path(path), ret_stat, AT_SYMLINK_NOFOLLOW));
}

static int op_readlink(const char *path, char *ret_target, size_t size)
{
    ENTER(fs);
    ssize_t len = readlinkat(fs->live, lossfs_live_path(path), ret_target, size - 1);

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
    int result = lossfs_powered(fs);

    (void)path;
    (void)offset;
    (void)flags;
    if (result != 0) {
        return result;
    }
    int fd = openat(lossfs_handle_of(info)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

static void *op_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    struct lossfs *fs = fuse_get_context()->private_data;

    /* As on a disk, a page stays as long as it is mapped. Otherwise the kernel drops all pages of a file, also
     * those locked in memory, when it learns of a new time or size; nobody changes files but us. */
    connection->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
    connection->want |= connection->capable & FUSE_CAP_EXPLICIT_INVAL_DATA;
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
    .read = lossfs_read,
    .statfs = op_statfs,
    .mkdir = lossfs_mkdir,
    .mknod = lossfs_mknod,
    .symlink = lossfs_symlink,
    .link = lossfs_link,
    .unlink = lossfs_unlink,
    .rmdir = lossfs_rmdir,
    .rename = lossfs_rename,
    .chmod = lossfs_chmod,
    .chown = lossfs_chown,
    .utimens = lossfs_utimens,
    .open = lossfs_open,
    .create = lossfs_create,
    .opendir = lossfs_opendir,
    .release = lossfs_release,
    .releasedir = lossfs_release,
    .write = lossfs_write,
    .truncate = lossfs_truncate,
    .fallocate = lossfs_fallocate,
    .fsync = lossfs_fsync,
    .fsyncdir = lossfs_fsync,
};
