#include "lib/tempdir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

pawl_status tempdir_make(char ret_path[TEMPDIR_SIZE], const char *name, pawl_error *reterr)
{
    const char *base = getenv("TMPDIR");
    char path[TEMPDIR_SIZE];
    int len = snprintf(path, sizeof(path), "%s/%s-XXXXXX", base == NULL ? "/tmp" : base, name);

    if (len < 0 || len >= TEMPDIR_SIZE) {
        return pawl__fail(reterr, PAWL_INVALID, "TMPDIR is too long: '%s'", base);
    }
    if (mkdtemp(path) == NULL) {
        return pawl__fail_errno(reterr, errno, "make '%s'", path);
    }
    snprintf(ret_path, TEMPDIR_SIZE, "%s", path);
    return PAWL_OK;
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
