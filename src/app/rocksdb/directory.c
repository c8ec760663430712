#include "app/rocksdb/directory.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/core/backend.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "store/rocksdb/rocksdb.h"

pawl_status pawl__app_anchor_read_file(const char *path, struct pawl__buf *text, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *space = malloc(APP_ANCHOR_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    size_t len = 0;

    if (space == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an anchor");
    }
    pawl_status status = pawl__fs_read_small(path, space, APP_ANCHOR_BYTES_MAX, &len, &error);
    if (status == PAWL_NOT_FOUND) {
        return PAWL_OK;
    }
    if (status != PAWL_OK) {
        return pawl__fail(
            reterr, status == PAWL_INVALID ? PAWL_CORRUPT : status, "%s", error.message);
    }
    if (len == 0) { /* pawl replaces it as a whole and never leaves it empty */
        return pawl__fail(reterr, PAWL_CORRUPT, "'%s' is empty", path);
    }
    pawl__buf_add(text, (pawl_view){ space, len });
    return pawl__buf_check(text, "the anchor", reterr);
}

pawl_status pawl__app_directory_check_new(const char *anchor_path, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor;
    pawl_status status = pawl__app_anchor_read_file(anchor_path, &text, reterr);

    return status == PAWL_OK
                   && pawl__app_anchor_parse(pawl__buf_view(&text), &anchor, NULL) == PAWL_OK
               ? pawl__app_anchor_check_new(&anchor, anchor_path, reterr)
               : status;
}

/* "orders" of "orders.anchor", when there is a directory of that name. */
static bool is_neighbour(const char *directory, const char *file, char *ret_name, size_t size)
{
    size_t len = strlen(file);
    size_t suffix = strlen(APP_ANCHOR_SUFFIX);
    struct stat info;

    if (len <= suffix || len - suffix >= size
        || strcmp(&file[len - suffix], APP_ANCHOR_SUFFIX) != 0) {
        return false;
    }
    memcpy(ret_name, file, len - suffix);
    ret_name[len - suffix] = '\0';
    AUTO(pawl__text_free) char *path = pawl__fs_join(directory, ret_name);
    return path != NULL && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static pawl_status fail_id_in_use(const struct app_anchor *mine,
                                  const char *name,
                                  pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_CONFLICT,
                      "application '%s' has id %" PRIu32 ", which application '%s' in the same "
                      "directory has already",
                      mine->name,
                      mine->id,
                      name);
}

static bool was_before(const struct app_anchor *a, const struct app_anchor *b)
{
    return a->born_us != b->born_us ? a->born_us < b->born_us : strcmp(a->name, b->name) < 0;
}

/* --- by their anchors --- */

/* An anchor that cannot be read is for its own application to complain about. */
static pawl_status check_neighbour(const char *directory,
                                   const char *file,
                                   const struct app_anchor *mine,
                                   pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = pawl__fs_join(directory, file);
    struct app_anchor other;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    char name[PAWL_APP_NAME_BYTES_MAX + 1];

    if (path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an anchor");
    }
    if (!is_neighbour(directory, file, name, sizeof(name)) || strcmp(name, mine->name) == 0
        || pawl__app_anchor_read_file(path, &text, NULL) != PAWL_OK
        || pawl__app_anchor_parse(pawl__buf_view(&text), &other, NULL) != PAWL_OK
        || other.id != mine->id || !was_before(&other, mine)) {
        return PAWL_OK;
    }
    return fail_id_in_use(mine, name, reterr);
}

/* --- without an anchor --- */

/* *ret_id 0: creating it was interrupted. */
static pawl_status read_id(const char *path, uint32_t *ret_id, pawl_error *reterr)
{
    const struct app_store_options options = { .must_exist = true, .read_only = true };
    const struct app_range range = { .family = APP_META, .limit = 1, .bytes_max = SIZE_MAX };
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    AUTO(pawl__app_store_close_p) struct app_store *store = NULL;
    const struct pawl__location location = {
        .scheme = PAWL__AT_DIRECTORY, .path = (char *)(uintptr_t)path, /* only read */
    };
    struct app_key_parts parts = { .app = 0 };

    TRY(pawl__app_store_make(&location, &options, &store, reterr));
    TRY(pawl__app_store_scan(store, &range, &page, reterr));
    if (page.count > 0 && !pawl__app_key_parse(APP_META, page.entries[0].key, &parts)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the key of its descriptor is none");
    }
    *ret_id = parts.app;
    return PAWL_OK;
}

static bool has_anchor(const char *path)
{
    AUTO(pawl__text_free) char *anchor_path = pawl__fs_with_suffix(path, APP_ANCHOR_SUFFIX);
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor;

    return anchor_path != NULL && pawl__app_anchor_read_file(anchor_path, &text, NULL) == PAWL_OK
           && pawl__app_anchor_parse(pawl__buf_view(&text), &anchor, NULL) == PAWL_OK;
}

/* What cannot be read may have the id. */
static pawl_status check_unanchored(const char *directory,
                                    const char *file,
                                    const struct app_anchor *mine,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = pawl__fs_join(directory, file);
    bool exists = false;
    uint32_t id = 0;

    if (path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    if (strcmp(file, mine->name) == 0 || pawl_app_check_name(file, NULL) != PAWL_OK
        || has_anchor(path)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__rocks_inspect(path, &exists, reterr);
    if (status == PAWL_INVALID || (status == PAWL_OK && !exists)) { /* a file, another directory */
        return PAWL_OK;
    }
    status = status == PAWL_OK ? read_id(path, &id, reterr) : status;
    if (status == PAWL_OK) {
        return id == mine->id ? fail_id_in_use(mine, file, reterr) : PAWL_OK;
    }
    pawl__fail_context(reterr, status, "whether '%s' has id %" PRIu32 " already", file, mine->id);
    return pawl__fail_advise(
        reterr, status, "it has no anchor to ask: repair it, or move it out of the directory");
}

/* --- all of a directory --- */

typedef pawl_status (*neighbour_check)(const char *directory,
                                       const char *file,
                                       const struct app_anchor *mine,
                                       pawl_error *reterr);

static pawl_status check_neighbours(const char *path,
                                    const struct app_anchor *anchor,
                                    neighbour_check check,
                                    pawl_error *reterr)
{
    const char *slash = strrchr(path, '/');
    AUTO(pawl__text_free)
    char *directory =
        slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    struct dirent **entries = NULL;
    pawl_status status = PAWL_OK;

    if (directory == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    int count = anchor->born_us == 0 ? 0 : scandir(directory, &entries, NULL, alphasort);
    if (count < 0) {
        return errno == ENOENT ? PAWL_OK
                               : pawl__fail_errno(reterr, errno, "list directory '%s'", directory);
    }
    for (int i = 0; i < count; i++) {
        if (status == PAWL_OK) {
            status = check(directory, entries[i]->d_name, anchor, reterr);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

pawl_status pawl__app_directory_check_neighbours(const char *path,
                                                 const struct app_anchor *anchor,
                                                 pawl_error *reterr)
{
    return check_neighbours(path, anchor, check_neighbour, reterr);
}

pawl_status pawl__app_directory_check_unanchored(const char *path,
                                                 const struct app_anchor *anchor,
                                                 pawl_error *reterr)
{
    return check_neighbours(path, anchor, check_unanchored, reterr);
}
