/* lossfs LIVE MOUNTPOINT journal|strict CONTROL_FD [FUSE OPTIONS]
 *
 * Stays in the foreground and unmounts when the control socket closes. */
#include "torture/lossfs/lossfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/core/macros.h"
#include "torture/lossfs/disk.h"

static int serve(struct fuse *fuse, struct lossfs *fs)
{
    struct pawl__thread control = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    /* The control thread ends us by SIGTERM, so it starts after the handler is there. */
    if (fuse_set_signal_handlers(fuse_get_session(fuse)) != 0) {
        return 1;
    }
    if (pawl__thread_start(&control, "control", lossfs_control_run, fs, &error) != PAWL_OK) {
        fprintf(stderr, "lossfs: %s\n", error.message);
        return 1;
    }
    int result = fuse_loop_mt(fuse, 0);
    shutdown(fs->control, SHUT_RDWR);
    fuse_remove_signal_handlers(fuse_get_session(fuse));
    signal(SIGTERM, SIG_IGN);
    pawl__thread_join(&control);
    return result < 0 ? 1 : 0;
}

static int mount_and_serve(struct lossfs *fs, const char *mountpoint, int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    int result = 1;
    struct fuse *fuse = fuse_new(&args, &lossfs_operations, sizeof(lossfs_operations), fs);

    if (fuse != NULL && fuse_mount(fuse, mountpoint) == 0) {
        result = serve(fuse, fs);
        fuse_unmount(fuse);
    }
    if (fuse != NULL) {
        fuse_destroy(fuse);
    }
    fuse_opt_free_args(&args);
    return result;
}

int main(int argc, char **argv)
{
    struct lossfs fs = { .faults.quota = LOSS_NO_QUOTA };

    if (argc < 5) {
        fprintf(stderr, "usage: lossfs LIVE MOUNTPOINT journal|strict CONTROL_FD [FUSE OPTIONS]\n");
        return 2;
    }
    bool strict = strcmp(argv[3], "strict") == 0;
    umask(0);
    fs.live = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fs.control = (int)strtol(argv[4], NULL, 10);
    pawl__lock_init(&fs.lock);
    if (fs.live < 0) {
        fprintf(stderr, "lossfs: '%s': %s\n", argv[1], strerror(errno));
        return 1;
    }
    loss_names_init(&fs.names, strict ? LOSS_METADATA_STRICT : LOSS_METADATA_JOURNAL);
    int result = loss_disk_import(&fs.names, fs.live);
    if (result != 0) {
        fprintf(stderr, "lossfs: read '%s': %s\n", argv[1], strerror(-result));
        return 1;
    }
    const char *mountpoint = argv[2];
    argv[4] = argv[0]; /* what libfuse sees: the name, then its own options */
    result = mount_and_serve(&fs, mountpoint, argc - 4, &argv[4]);
    loss_names_done(&fs.names);
    pawl__lock_done(&fs.lock);
    return result;
}
