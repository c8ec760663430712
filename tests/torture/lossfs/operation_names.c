/* FUSE operations that make, move and remove names, or change what stands beside them. */
#include "torture/lossfs/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int lossfs_mkdir(const char *path, mode_t mode)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(mkdirat(fs->live, lossfs_live_path(path), mode));
    }
    return result != 0 ? result : lossfs_adopt(fs, path, S_IFDIR | (mode & 07777), &node);
}

/* Sockets and FIFOs: a server may put one beside its data. */
int lossfs_mknod(const char *path, mode_t mode, dev_t device)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(mknodat(fs->live, lossfs_live_path(path), mode, device));
    }
    return result != 0 ? result : lossfs_adopt(fs, path, mode, &node);
}

int lossfs_symlink(const char *target, const char *path)
{
    ENTER(fs);
    struct loss_node *node = NULL;
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(symlinkat(target, fs->live, lossfs_live_path(path)));
    }
    if (result == 0) {
        result = lossfs_adopt(fs, path, S_IFLNK | 0777, &node);
    }
    if (result == 0) {
        node->target = strdup(target);
        REQUIRE(node->target != NULL);
    }
    return result;
}

int lossfs_link(const char *from, const char *to)
{
    ENTER(fs);
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(
            linkat(fs->live, lossfs_live_path(from), fs->live, lossfs_live_path(to), 0));
    }
    if (result == 0) {
        loss_names_link(&fs->names, to, loss_names_find(&fs->names, from));
    }
    return result;
}

static int remove_name(const char *path, int flags)
{
    ENTER(fs);
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(unlinkat(fs->live, lossfs_live_path(path), flags));
    }
    if (result == 0) {
        loss_names_unlink(&fs->names, path);
    }
    return result;
}

int lossfs_unlink(const char *path)
{
    return remove_name(path, 0);
}

int lossfs_rmdir(const char *path)
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

int lossfs_rename(const char *from, const char *to, unsigned flags)
{
    ENTER(fs);
    int result = (flags & ~(unsigned)RENAME_NOREPLACE) != 0 ? -EINVAL : lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(
            renameat2(fs->live, lossfs_live_path(from), fs->live, lossfs_live_path(to), flags));
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

int lossfs_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result =
            lossfs_result_of(info != NULL ? fchmod(lossfs_handle_of(info)->fd, mode)
                                          : fchmodat(fs->live, lossfs_live_path(path), mode, 0));
    }
    if (result == 0) {
        struct loss_node *node = lossfs_node_of(fs, path, info);
        node->mode = (node->mode & S_IFMT) | (mode & 07777);
    }
    return result;
}

int lossfs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_begin_change(fs);

    if (result == 0) {
        result = lossfs_result_of(
            info != NULL
                ? fchown(lossfs_handle_of(info)->fd, uid, gid)
                : fchownat(fs->live, lossfs_live_path(path), uid, gid, AT_SYMLINK_NOFOLLOW));
    }
    if (result == 0) {
        struct loss_node *node = lossfs_node_of(fs, path, info);
        node->uid = uid == (uid_t)-1 ? node->uid : uid;
        node->gid = gid == (gid_t)-1 ? node->gid : gid;
    }
    return result;
}

int lossfs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    ENTER(fs);
    int result = lossfs_powered(fs);

    if (result != 0) {
        return result;
    }
    return lossfs_result_of(
        info != NULL ? futimens(lossfs_handle_of(info)->fd, times)
                     : utimensat(fs->live, lossfs_live_path(path), times, AT_SYMLINK_NOFOLLOW));
}
