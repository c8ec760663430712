/* Which applications a location has: a directory of directories, or a database. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/location.h"

enum { LOCATION_BYTES_MAX = 1 << 16 };

static int may_be_name(const struct dirent *entry)
{
    return pawl_app_check_name(entry->d_name, NULL) == PAWL_OK;
}

static pawl_status is_directory(const char *place,
                                const char *name,
                                bool *ret_is,
                                pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = pawl__fs_join(place, name);
    struct stat info = { 0 };

    if (path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    /* Gone meanwhile, or a link that leads nowhere: no directory. */
    if (stat(path, &info) != 0 && errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "look at '%s'", path);
    }
    *ret_is = S_ISDIR(info.st_mode);
    return PAWL_OK;
}

static pawl_status list_directory(const char *place,
                                  pawl_app_name_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    struct dirent **entries = NULL;
    pawl_status status = PAWL_OK;
    bool wanted = true;
    int count = scandir(place, &entries, may_be_name, alphasort);

    if (count < 0) {
        return errno == ENOENT ? PAWL_OK
                               : pawl__fail_errno(reterr, errno, "list directory '%s'", place);
    }
    for (int i = 0; i < count; i++) {
        bool is = false;

        if (status == PAWL_OK && wanted) {
            status = is_directory(place, entries[i]->d_name, &is, reterr);
        }
        wanted = wanted && (!is || visit(context, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    return status;
}

pawl_status pawl_app_list(const char *place,
                          pawl_app_name_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    NEED(place, visit, reterr);
    return pawl__location_is_postgres(place)
               ? pawl__app_postgres_list(place, visit, context, reterr)
               : list_directory(place, visit, context, reterr);
}

pawl_status pawl_app_locate(const char *place,
                            const char *name,
                            char **ret_location,
                            pawl_error *reterr)
{
    NEED(place, name, ret_location, reterr);
    AUTO(pawl__buf_done) struct pawl__buf location = BUF_INIT(LOCATION_BYTES_MAX);

    TRY(pawl_app_check_name(name, reterr));
    if (pawl__location_is_postgres(place)) {
        char before = strchr(place, '?') == NULL ? '?' : '&';
        pawl__buf_add_format(&location, "%s%capp=%s", place, before, name);
    } else {
        pawl__buf_add_format(&location, "%s/%s", place, name);
    }
    return pawl__buf_hand_out(&location, "the location", ret_location, NULL, reterr);
}
