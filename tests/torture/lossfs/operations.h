/* What the files of FUSE operations share. Each operation refuses, or does it live, and then tells the
 * image. They return 0 (or a count) or a negative errno, as FUSE wants it. */
#ifndef TESTS_LOSSFS_OPERATIONS_H
#define TESTS_LOSSFS_OPERATIONS_H

#include "torture/lossfs/lossfs.h"

#include "base/core/macros.h"

/* An open file or directory; fuse_file_info.fh. */
struct lossfs_handle {
    int fd;
    struct loss_node *node; /* holds a reference */
    bool synced;            /* O_SYNC or O_DSYNC */
};

struct lossfs *lossfs_enter(void);
void lossfs_leave(struct lossfs **fs);

/* The lock is held until the function ends, whichever way. */
#define ENTER(fs) AUTO(lossfs_leave) struct lossfs *fs = lossfs_enter()

/* Before everything that only looks: -EIO when the power is gone. */
int lossfs_powered(const struct lossfs *fs);

/* Before every change. */
int lossfs_begin_change(struct lossfs *fs);

struct lossfs_handle *lossfs_handle_of(const struct fuse_file_info *info);
struct loss_node *lossfs_node_of(const struct lossfs *fs,
                                 const char *path,
                                 const struct fuse_file_info *info);

/* Paths are absolute within the mount; live ones are relative to the live directory. */
const char *lossfs_live_path(const char *path);

int lossfs_result_of(int failed); /* of a system call */

/* Takes what was just made live into the image. Live files are made by whoever runs lossfs; they shall
 * belong to whoever asked. */
int lossfs_adopt(struct lossfs *fs, const char *path, mode_t mode, struct loss_node **ret_node);

/* names: operation_names.c */
int lossfs_mkdir(const char *path, mode_t mode);
int lossfs_mknod(const char *path, mode_t mode, dev_t device);
int lossfs_symlink(const char *target, const char *path);
int lossfs_link(const char *from, const char *to);
int lossfs_unlink(const char *path);
int lossfs_rmdir(const char *path);
int lossfs_rename(const char *from, const char *to, unsigned flags);
int lossfs_chmod(const char *path, mode_t mode, struct fuse_file_info *info);
int lossfs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *info);
int lossfs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info);

/* open files and their contents: operation_files.c */
int lossfs_open(const char *path, struct fuse_file_info *info);
int lossfs_create(const char *path, mode_t mode, struct fuse_file_info *info);
int lossfs_opendir(const char *path, struct fuse_file_info *info);
int lossfs_release(const char *path, struct fuse_file_info *info);
int lossfs_read(
    const char *path, char *ret_data, size_t len, off_t offset, struct fuse_file_info *info);
int lossfs_write(
    const char *path, const char *data, size_t len, off_t offset, struct fuse_file_info *info);
int lossfs_truncate(const char *path, off_t len, struct fuse_file_info *info);
int lossfs_fallocate(
    const char *path, int mode, off_t offset, off_t len, struct fuse_file_info *info);
int lossfs_fsync(const char *path, int datasync, struct fuse_file_info *info);

#endif
