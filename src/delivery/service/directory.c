/* What a data directory holds of delivery: declarations, write-ahead logs, the DuckDB file. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "delivery/service/internal.h"

#define SUFFIX ".json"

enum {
    RETRY_NS = 20 * NS_PER_MS,
    STORED_BYTES_MAX = (int)(2 * PAWL_DECLARATION_BYTES_MAX)
                       + 2 * 128 * PAWL_PIPELINE_GENERATIONS_MAX, /* with every name escaped */
};

static pawl_status join(const char *dir, const char *name, char **ret_path, pawl_error *reterr)
{
    *ret_path = pawl__fs_join(dir, name);
    return pawl__fs_check_path(*ret_path, reterr);
}

/* Commands of a script run one after the other: the one before may not have ended yet. */
static pawl_status lock_patiently(struct pawl_delivery *delivery, pawl_error *reterr)
{
    int64_t deadline_ns =
        pawl__monotonic_ns(delivery->clock) + delivery->options.busy_ms_max * NS_PER_MS;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__store_lock_inside(delivery->pipelines_dir, &delivery->store_lock, &error);

    while (status == PAWL_BUSY && pawl__monotonic_ns(delivery->clock) < deadline_ns) {
        pawl__sleep_until(delivery->clock, pawl__monotonic_ns(delivery->clock) + RETRY_NS);
        status = pawl__store_lock_inside(delivery->pipelines_dir, &delivery->store_lock, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__delivery_directory_open(struct pawl_delivery *delivery, pawl_error *reterr)
{
    TRY(join(delivery->dir, "pipelines", &delivery->pipelines_dir, reterr));
    const char *given = delivery->options.wal_dir;
    delivery->options.wal_dir = NULL; /* it is the caller's */
    delivery->wal_dir =
        given == NULL ? pawl__fs_join(delivery->dir, "wal/consumer") : strdup(given);
    TRY(pawl__fs_check_path(delivery->wal_dir, reterr));
    TRY(pawl__fs_make_dir(delivery->pipelines_dir, reterr));
    return lock_patiently(delivery, reterr);
}

/* --- declarations --- */

static pawl_status declaration_path(const struct pawl_delivery *delivery,
                                    const char *name,
                                    char **ret_path,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *file = pawl__fs_with_suffix(name, SUFFIX);

    TRY(pawl__fs_check_path(file, reterr));
    return join(delivery->pipelines_dir, file, ret_path, reterr);
}

static int is_declaration(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    size_t suffix_len = strlen(SUFFIX);

    return len > suffix_len && strcmp(&entry->d_name[len - suffix_len], SUFFIX) == 0;
}

static pawl_status read_declaration(const struct pawl_delivery *delivery,
                                    const char *file,
                                    struct delivery_declared *ret_declared,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    AUTO(pawl__text_free) char *text = malloc(STORED_BYTES_MAX);
    size_t len = 0;

    TRY(pawl__check_memory(text, "a declaration", reterr));
    TRY(join(delivery->pipelines_dir, file, &path, reterr));
    pawl_status status = pawl__fs_read_small(path, text, STORED_BYTES_MAX, &len, reterr);
    if (status == PAWL_OK) {
        status = pawl__delivery_declared_read((pawl_view){ text, len }, ret_declared, reterr);
    }
    if (status == PAWL_CORRUPT) {
        pawl__fail_context(reterr, status, "'%s'", path);
        return pawl__fail_advise(
            reterr,
            status,
            "restore it from a backup, or remove it and declare the pipeline again");
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "'%s'", path);
}

pawl_status pawl__delivery_directory_load(struct pawl_delivery *delivery,
                                          pawl_status (*add)(struct pawl_delivery *,
                                                             struct delivery_declared *,
                                                             pawl_error *),
                                          pawl_error *reterr)
{
    struct dirent **entries = NULL;
    int count = scandir(delivery->pipelines_dir, &entries, is_declaration, alphasort);
    pawl_status status = PAWL_OK;

    if (count < 0) {
        return pawl__fail_errno(reterr, errno, "list directory '%s'", delivery->pipelines_dir);
    }
    for (int i = 0; i < count; i++) {
        struct delivery_declared declared;
        if (status == PAWL_OK) {
            status = read_declaration(delivery, entries[i]->d_name, &declared, reterr);
        }
        if (status == PAWL_OK) {
            status = add(delivery, &declared, reterr);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

pawl_status pawl__delivery_directory_save(const struct pawl_delivery *delivery,
                                          const struct delivery_declared *declared,
                                          pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(STORED_BYTES_MAX - 1);
    AUTO(pawl__text_free) char *path = NULL;

    TRY(declaration_path(delivery, declared->is.name.data, &path, reterr));
    pawl__delivery_declared_write(declared, &json);
    TRY(pawl__buf_check(&json, "a declaration", reterr));
    return pawl__fs_replace(path, pawl__buf_view(&json), reterr);
}

/* A write-ahead log is a directory of plain files. */
static pawl_status remove_files(const char *dir, pawl_error *reterr)
{
    DIR *open_dir = opendir(dir);
    pawl_status status = PAWL_OK;

    if (open_dir == NULL) {
        return errno == ENOENT ? PAWL_OK
                               : pawl__fail_errno(reterr, errno, "list directory '%s'", dir);
    }
    for (struct dirent *entry; status == PAWL_OK && (entry = readdir(open_dir)) != NULL;) {
        bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_dots && unlinkat(dirfd(open_dir), entry->d_name, 0) != 0) {
            status = pawl__fail_errno(reterr, errno, "remove '%s/%s'", dir, entry->d_name);
        }
    }
    closedir(open_dir);
    if (status == PAWL_OK && rmdir(dir) != 0) {
        status = pawl__fail_errno(reterr, errno, "remove '%s'", dir);
    }
    return status;
}

pawl_status pawl__delivery_directory_forget(const struct pawl_delivery *delivery,
                                            const char *name,
                                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    AUTO(pawl__text_free) char *wal = NULL;

    TRY(declaration_path(delivery, name, &path, reterr));
    TRY(join(delivery->wal_dir, name, &wal, reterr));
    if (unlink(path) != 0 && errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "remove '%s'", path);
    }
    TRY(pawl__fs_sync_parent(path, reterr));
    return remove_files(wal, reterr);
}

/* --- the DuckDB file --- */

static pawl_status open_file_locked(struct pawl_delivery *delivery,
                                    const struct delivery_duckdb_options *given,
                                    struct delivery_duckdb_opened *ret_opened,
                                    pawl_error *reterr) REQUIRES_LOCK(delivery->file_lock);
static pawl_status open_file_locked(struct pawl_delivery *delivery,
                                    const struct delivery_duckdb_options *given,
                                    struct delivery_duckdb_opened *ret_opened,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    struct delivery_duckdb_options options = *given;

    TRY(join(delivery->dir, DELIVERY_FILE_NAME, &path, reterr));
    options.path = path;
    options.duck = (struct pawl__duck_options){ .memory_bytes_max = delivery->options.memory_max,
                                                .clock = delivery->clock };
    return pawl__delivery_duckdb_open(&options, &delivery->file, ret_opened, reterr);
}

pawl_status pawl__delivery_directory_file(struct pawl_delivery *delivery,
                                          struct delivery_duckdb_file **ret_file,
                                          pawl_error *reterr)
{
    const struct delivery_duckdb_options options = { .quarantine = false };
    pawl_status status = PAWL_OK;

    pawl__lock(&delivery->file_lock);
    if (delivery->file == NULL) {
        status = open_file_locked(delivery, &options, NULL, reterr);
    }
    *ret_file = delivery->file;
    pawl__unlock(&delivery->file_lock);
    return status == PAWL_CORRUPT
               ? pawl__fail_advise(reterr,
                                   status,
                                   "stop whoever uses it and run `pawl rebuild`, which moves it "
                                   "aside and makes it anew from logs and sources")
               : status;
}

pawl_status pawl__delivery_directory_replace_file(struct pawl_delivery *delivery,
                                                  bool replace,
                                                  struct delivery_duckdb_opened *ret_opened,
                                                  pawl_error *reterr)
{
    const struct delivery_duckdb_options options = { .quarantine = true, .replace = replace };

    pawl__lock(&delivery->file_lock);
    pawl__delivery_duckdb_close(STEAL(delivery->file));
    pawl_status status = open_file_locked(delivery, &options, ret_opened, reterr);
    pawl__unlock(&delivery->file_lock);
    return status;
}

bool pawl__delivery_directory_has_file(struct pawl_delivery *delivery)
{
    AUTO(pawl__text_free) char *path = NULL;

    return join(delivery->dir, DELIVERY_FILE_NAME, &path, NULL) == PAWL_OK
           && access(path, F_OK) == 0;
}
