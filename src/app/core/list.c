/* Which applications a location has: a directory of directories, or a database. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/decide/page.h"
#include "base/os/fs.h"
#include "store/location.h"

enum { LOCATION_BYTES_MAX = 1 << 16 };

static int may_be_name(const struct dirent *entry)
{
    return pawl_app_check_name(entry->d_name, NULL) == PAWL_OK;
}

/* By bytes, whatever the locale of the program says. */
static int in_order(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
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
                                  app_name_visit *visit,
                                  void *context,
                                  pawl_error *reterr)
{
    struct dirent **entries = NULL;
    pawl_status status = PAWL_OK;
    bool wanted = true;
    int count = scandir(place, &entries, may_be_name, in_order);

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

struct list_walk {
    struct pawl__page page;
    char from_id[PAWL_PAGE_ID_SIZE];
    pawl_app_entry_visit visit;
    void *context;
};

static bool show_name(void *context, const char *name)
{
    struct list_walk *walk = context;
    const pawl_app_entry entry = { .size = sizeof(entry), .name = pawl_view_of(name) };

    return strcmp(name, walk->from_id) < 0
           || (pawl__page_admits_id(&walk->page, entry.name)
               && pawl__page_show(&walk->page, walk->visit(walk->context, &entry)));
}

pawl_status pawl_app_list(const char *place,
                          pawl_page *page,
                          pawl_app_entry_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    NEED(place, visit, reterr);
    struct list_walk walk = { .visit = visit, .context = context };

    TRY(pawl__page_take(page, &walk.page, reterr));
    memcpy(walk.from_id, walk.page.page.from_id, sizeof(walk.from_id));
    TRY(pawl__location_is_postgres(place) ? pawl__app_postgres_list(place, show_name, &walk, reterr)
                                          : list_directory(place, show_name, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
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
