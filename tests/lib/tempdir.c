#include "lib/tempdir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/os/fs.h"

static pawl_status make_below(const char *base,
                              const char *name,
                              char ret_path[TEMPDIR_SIZE],
                              pawl_error *reterr)
{
    char path[TEMPDIR_SIZE];
    int len = snprintf(path, sizeof(path), "%s/%s-XXXXXX", base, name);

    if (len < 0 || len >= TEMPDIR_SIZE) {
        return pawl__fail(reterr, PAWL_INVALID, "TMPDIR is too long: '%s'", base);
    }
    if (mkdtemp(path) == NULL) {
        return pawl__fail_errno(reterr, errno, "make '%s'", path);
    }
    snprintf(ret_path, TEMPDIR_SIZE, "%s", path);
    return PAWL_OK;
}

pawl_status tempdir_make(char ret_path[TEMPDIR_SIZE], const char *name, pawl_error *reterr)
{
    const char *base = getenv("TMPDIR");

    return make_below(base == NULL ? "/tmp" : base, name, ret_path, reterr);
}

pawl_status tempdir_make_in_memory(char ret_path[TEMPDIR_SIZE],
                                   const char *name,
                                   uint64_t bytes,
                                   pawl_error *reterr)
{
    uint64_t room = 0;

    if (pawl__fs_free_bytes("/dev/shm", &room, NULL) == PAWL_OK && room >= bytes
        && make_below("/dev/shm", name, ret_path, NULL) == PAWL_OK) {
        return PAWL_OK;
    }
    return tempdir_make(ret_path, name, reterr);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

void tempdir_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
