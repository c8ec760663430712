#include "store/rocksdb/rocksdb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/rocksdb/internal.h"
#include "store/rocksdb/shim.h"

#define MEMTABLE_FILTER_RATIO \
    0.02 /* of the write buffer: 10 bits for each of the smallest entries */

enum {
    OPEN_FILES_MAX = 512,
    ROCKS_NATIVE = -1, /* the code of every error of the engine, which tells whose it is */
    BLOOM_BITS = 10,   /* one lookup in a hundred of an absent key reads a block in vain */
    ARENA_BYTES_MAX =
        32 << 10, /* what the first entry of a memtable takes; 1 MiB unless it is set */
};

/* The engine's texts begin with the name of a code; what follows may carry strerror's words. */
static const struct {
    const char *start;
    const char *within; /* NULL: any */
    pawl_status status;
} error_texts[] = {
    { "IO error: ", "No space left on device", PAWL_NO_SPACE },
    { "IO error: ", "Disk quota exceeded", PAWL_NO_SPACE },
    { "IO error: ", "lock hold by current process", PAWL_BUSY },
    { "IO error: While lock file", NULL, PAWL_BUSY },
    { "IO error: ", "Permission denied", PAWL_DENIED },
    { "IO error: ", "Read-only file system", PAWL_DENIED },
    /* A file that the store's own records name and that is gone. */
    { "IO error: ", "No such file or directory", PAWL_CORRUPT },
    { "IO error: ", NULL, PAWL_IO },
    { "Corruption: ", NULL, PAWL_CORRUPT },
    { "NotFound: ", NULL, PAWL_NOT_FOUND },
    { "Not implemented: ", NULL, PAWL_UNSUPPORTED },
    { "Invalid argument: ", "Directory exists", PAWL_CONFLICT },
    { "Invalid argument: ", NULL, PAWL_INVALID },
    { "Operation timed out: ", NULL, PAWL_TIMEOUT },
    { "Resource busy: ", NULL, PAWL_BUSY },
    { "Operation failed. Try again.: ", NULL, PAWL_BUSY },
    { "Shutdown in progress: ", NULL, PAWL_CLOSED },
};

static pawl_status status_of_text(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(error_texts); i++) {
        if (strncmp(text, error_texts[i].start, strlen(error_texts[i].start)) == 0
            && (error_texts[i].within == NULL || strstr(text, error_texts[i].within) != NULL)) {
            return error_texts[i].status;
        }
    }
    return PAWL_FAILED;
}

pawl_status pawl__rocks_fail(char *text, pawl_error *reterr)
{
    pawl_status status = pawl__fail(reterr, status_of_text(text), "%s", text);

    if (reterr != NULL) {
        reterr->native = ROCKS_NATIVE; /* the C API has texts, no codes */
    }
    rocksdb_free(text);
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t name_len = strlen(name);
    size_t end_len = strlen(end);

    return name_len > end_len && strcmp(name + name_len - end_len, end) == 0;
}

struct dir_content {
    bool current;       /* the file CURRENT: a store is here */
    bool data;          /* files that only a finished store has */
    uint64_t log_bytes; /* what recovery will read and may write out again */
};

static void close_dir(DIR **stream)
{
    if (*stream != NULL) {
        closedir(*stream);
    }
}

static pawl_status read_content(const char *dir,
                                struct dir_content *ret_content,
                                pawl_error *reterr)
{
    AUTO(close_dir) DIR *stream = opendir(dir);
    struct dir_content content = { 0 };

    if (stream == NULL) {
        return pawl__fail_errno(reterr, errno, "read directory '%s'", dir);
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat info;

        content.current |= strcmp(entry->d_name, "CURRENT") == 0;
        content.data |= ends_with(entry->d_name, ".sst") || ends_with(entry->d_name, ".log");
        if (ends_with(entry->d_name, ".log")
            && fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            content.log_bytes += (uint64_t)info.st_size;
        }
    }
    *ret_content = content;
    return PAWL_OK;
}

static pawl_status refuse_headless(const struct dir_content *content, pawl_error *reterr)
{
    /* The engine would take this for a new store and remove the files it does not know. */
    return !content->current && content->data
               ? pawl__fail(reterr, PAWL_CORRUPT, "data files but no file 'CURRENT'")
               : PAWL_OK;
}

pawl_status pawl__rocks_inspect(const char *dir, bool *ret_exists, pawl_error *reterr)
{
    struct dir_content content = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = read_content(dir, &content, &error);

    if (status == PAWL_OK) {
        status = refuse_headless(&content, &error);
    }
    if (status == PAWL_OK || status == PAWL_NOT_FOUND) {
        *ret_exists = content.current;
        return PAWL_OK;
    }
    if (reterr != NULL) {
        *reterr = error;
    }
    return status;
}

static pawl_status refuse_without_room(uint64_t free_bytes, uint64_t needed, pawl_error *reterr)
{
    return free_bytes >= needed
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_NO_SPACE,
                            "%llu MiB free, opening needs %llu: make room or lower "
                            "store.free_space_min",
                            (unsigned long long)(free_bytes >> 20),
                            (unsigned long long)((needed + (1 << 20) - 1) >> 20));
}

/* Everything that would make the engine abort, or do harm, is asked for before it sees the
 * directory. */
static pawl_status check_dir(const struct pawl__rocks *db, bool *ret_exists, pawl_error *reterr)
{
    struct dir_content content = { 0 };
    uint64_t free_bytes = 0;

    if (faccessat(AT_FDCWD, db->dir, W_OK | X_OK, AT_EACCESS) != 0) {
        return pawl__fail_errno(reterr, errno, "write into '%s'", db->dir);
    }
    TRY(read_content(db->dir, &content, reterr));
    TRY(pawl__fs_free_bytes(db->dir, &free_bytes, reterr));
    TRY(refuse_headless(&content, reterr));
    /* Recovery writes the logs' content out; a quarter of the reserve is for its own files. The
     * guard of the writes leaves more than that. */
    uint64_t needed = content.log_bytes + db->free_space_min / 4;

    TRY(db->read_only ? PAWL_OK : refuse_without_room(free_bytes, needed, reterr));
    *ret_exists = content.current;
    return PAWL_OK;
}

/* Indexes and filters live in the cache like any block, in parts of a block's size: outside of it they
 * would grow with the number of keys, and whole they would push everything else out. */
static void set_tables(rocksdb_options_t *native, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom(BLOOM_BITS));
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_options_set_block_based_table_factory(native, table);
    rocksdb_block_based_options_destroy(table);
}

/* A log takes a memtable's size of the disk in advance otherwise, 70 MiB, which the guard of the writes
 * would then miss. Only a text can say so in C. */
static rocksdb_options_t *options_without_preallocation(void)
{
    rocksdb_options_t *defaults = rocksdb_options_create();
    rocksdb_options_t *native = rocksdb_options_create();
    char *text = NULL;

    rocksdb_get_options_from_string(defaults, "allow_fallocate=false", native, &text);
    REQUIRE(text == NULL);
    rocksdb_options_destroy(defaults);
    return native;
}

/* An insert-if-not-exists reads first, and "no" should not cost a search. */
static void set_memtables(rocksdb_options_t *native,
                          struct pawl__rocks *db,
                          const struct pawl__rocks_options *options,
                          size_t bytes)
{
    size_t filters = (size_t)((double)bytes * MEMTABLE_FILTER_RATIO) * (options->family_count + 1);

    rocksdb_options_set_write_buffer_size(native, bytes);
    rocksdb_options_set_arena_block_size(native, MIN(bytes / 8, (size_t)ARENA_BYTES_MAX));
    if (!options->read_only && pawl__rocks_memory_reserve_filters(db, filters)) {
        rocksdb_options_set_memtable_prefix_bloom_size_ratio(native, MEMTABLE_FILTER_RATIO);
        rocksdb_options_set_memtable_whole_key_filtering(native, 1);
    }
}

static rocksdb_options_t *make_options(struct pawl__rocks *db,
                                       const struct pawl__rocks_options *options)
{
    rocksdb_options_t *native = options_without_preallocation();
    size_t memtable_bytes = 0;

    set_tables(native, pawl__rocks_memory_share(native, &memtable_bytes));
    set_memtables(native,
                  db,
                  options,
                  options->memtable_bytes != 0 ? options->memtable_bytes : memtable_bytes);
    rocksdb_options_set_create_if_missing(native, 1);
    rocksdb_options_set_create_missing_column_families(native, 1);
    rocksdb_options_set_wal_recovery_mode(native, rocksdb_tolerate_corrupted_tail_records_recovery);
    rocksdb_options_set_max_background_jobs(
        native, options->background_jobs != 0 ? options->background_jobs : 2);
    rocksdb_options_set_compression(
        native, options->no_compression ? rocksdb_no_compression : rocksdb_snappy_compression);
    if (options->blob_bytes_min > 0) {
        rocksdb_options_set_enable_blob_files(native, 1);
        rocksdb_options_set_min_blob_size(native, options->blob_bytes_min);
        if (options->blob_file_bytes > 0) {
            rocksdb_options_set_blob_file_size(native, options->blob_file_bytes);
        }
        rocksdb_options_set_enable_blob_gc(native, 1);
        rocksdb_options_set_blob_compression_type(
            native, options->no_compression ? rocksdb_no_compression : rocksdb_snappy_compression);
    }
    rocksdb_options_set_max_open_files(native, OPEN_FILES_MAX);
    return native;
}

static bool is_listed(const struct pawl__rocks_options *options, const char *name)
{
    for (size_t i = 0; i < options->family_count; i++) {
        if (strcmp(options->families[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* One that writes makes those that are missing, as after a kill in the middle of creating a store. */
static pawl_status refuse_missing_families(struct pawl__rocks *db,
                                           const struct pawl__rocks_options *options,
                                           char *const *names,
                                           size_t count,
                                           pawl_error *reterr)
{
    for (size_t i = 0; i < options->family_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(names[at], options->families[i]) != 0) {
            at++;
        }
        if (at == count && (options->later_families >> i & 1) != 0) {
            db->absent_families |= UINT64_C(1) << i;
        } else if (at == count) {
            return pawl__fail(reterr,
                              PAWL_NOT_FOUND,
                              "column family '%s' was not made yet",
                              options->families[i]);
        }
    }
    return PAWL_OK;
}

/* The engine refuses a family that is not opened as well, but it names only the first problem of
 * its own order, and after it has begun to write. */
static pawl_status refuse_unknown_families(struct pawl__rocks *db,
                                           const struct pawl__rocks_options *options,
                                           pawl_error *reterr)
{
    size_t count = 0;
    char *text = NULL;
    char **names = rocksdb_list_column_families(db->options, db->dir, &count, &text);
    pawl_status status = PAWL_OK;

    if (text != NULL) {
        status = pawl__rocks_fail(text, reterr); /* and names is an empty list to be freed */
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        if (strcmp(names[i], "default") != 0 && !is_listed(options, names[i])) {
            status = pawl__fail(reterr,
                                PAWL_UNSUPPORTED,
                                "column family '%s' is not known to this version",
                                names[i]);
        }
    }
    if (status == PAWL_OK && db->read_only) {
        status = refuse_missing_families(db, options, names, count, reterr);
    }
    rocksdb_list_column_families_destroy(names, count);
    return status;
}

static bool is_sure(const struct pawl__rocks_options *options, int family)
{
    return family < (int)options->family_count && (options->sure_families >> family & 1) != 0;
}

/* The engine wants "default" among the families; the caller need not. */
static pawl_status open_native(struct pawl__rocks *db,
                               const struct pawl__rocks_options *options,
                               pawl_error *reterr)
{
    const char *names[PAWL__ROCKS_FAMILIES_MAX + 1];
    const rocksdb_options_t *family_options[PAWL__ROCKS_FAMILIES_MAX + 1];
    rocksdb_column_family_handle_t *handles[PAWL__ROCKS_FAMILIES_MAX + 1];
    bool add_default = !is_listed(options, "default");
    int count = (int)options->family_count + (add_default ? 1 : 0);
    char *text = NULL;

    for (int i = 0; i < count; i++) {
        bool listed = i < (int)options->family_count && (db->absent_families >> i & 1) == 0;
        names[i] = listed ? options->families[i] : "default";
        family_options[i] = is_sure(options, i) ? db->sure_options : db->options;
    }
    db->native = db->read_only
                     ? rocksdb_open_for_read_only_column_families(
                         db->options, db->dir, count, names, family_options, handles, 0, &text)
                     : rocksdb_open_column_families(
                         db->options, db->dir, count, names, family_options, handles, &text);
    if (text != NULL) {
        return pawl__rocks_fail(text, reterr);
    }
    for (size_t i = 0; i < options->family_count; i++) {
        db->families[i] = handles[i];
    }
    db->family_count = options->family_count;
    db->default_family = add_default ? handles[count - 1] : NULL;
    return PAWL_OK;
}

/* A log whose last write was torn is cut and opened again. */
static pawl_status open_or_mend(struct pawl__rocks *db,
                                const struct pawl__rocks_options *options,
                                bool exists,
                                pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool mended = false;
    pawl_status status = open_native(db, options, &error);

    if (status == PAWL_CORRUPT && exists && pawl__rocks_mend_log(db->dir, &mended, NULL) == PAWL_OK
        && mended) {
        status = open_native(db, options, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static pawl_status open_checked(struct pawl__rocks *db,
                                const struct pawl__rocks_options *options,
                                pawl_error *reterr)
{
    bool exists = false;

    TRY(check_dir(db, &exists, reterr));
    if (!pawl__rocks_shim_fits()) {
        TRY(pawl__fail(reterr, PAWL_UNSUPPORTED, "this version of RocksDB is not known"));
    }
    db->options = make_options(db, options);
    db->sure_options = rocksdb_options_create_copy(db->options); /* and with it the cache */
    rocksdb_options_set_optimize_filters_for_hits(db->sure_options, 1);
    if (exists) {
        TRY(refuse_unknown_families(db, options, reterr));
    }
    TRY(open_or_mend(db, options, exists, reterr));
    db->read_options = rocksdb_readoptions_create();
    db->write_options = rocksdb_writeoptions_create();
    db->syncs = !options->unsafe_no_sync;
    rocksdb_writeoptions_set_sync(db->write_options, db->syncs);
    db->unsynced_options = rocksdb_writeoptions_create();
    pawl__rocks_memory_join(db);
    return PAWL_OK;
}

static pawl_status check_options(const struct pawl__rocks_options *options, pawl_error *reterr)
{
    if (options->family_count == 0 || options->family_count > PAWL__ROCKS_FAMILIES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%zu column families, 1 to %d are possible",
                          options->family_count,
                          PAWL__ROCKS_FAMILIES_MAX);
    }
    if (options->background_jobs < 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%d background jobs", options->background_jobs);
    }
    return PAWL_OK;
}

static pawl_status rocks_new(const char *dir,
                             const struct pawl__rocks_options *options,
                             struct pawl__rocks **ret_db,
                             pawl_error *reterr)
{
    AUTO(pawl__rocks_close_p) struct pawl__rocks *db = calloc(1, sizeof(*db));

    TRY(pawl__check_memory(db, "a store", reterr));
    pawl__lock_init(&db->space.lock);
    db->dir = strdup(dir);
    TRY(pawl__check_memory(db->dir, "a store", reterr));
    db->clock = pawl__clock_or_real(options->clock);
    db->free_space_min = options->free_space_min;
    db->read_only = options->read_only;
    *ret_db = STEAL(db);
    return PAWL_OK;
}

/* What there is no room for is refused while there is nothing to take away again: a lock file that
 * another process may have open cannot be removed. The guard of the writes keeps the whole reserve. */
static pawl_status make_dir(const char *dir, uint64_t reserve, pawl_error *reterr)
{
    uint64_t free_bytes = 0;

    if (access(dir, F_OK) != 0 && errno == ENOENT) {
        TRY(pawl__fs_free_bytes_for(dir, &free_bytes, reterr));
        TRY(refuse_without_room(free_bytes, reserve, reterr));
    }
    return pawl__fs_make_dir(dir, reterr);
}

/* What only reads makes nothing. */
static pawl_status find_dir(const char *dir,
                            const struct pawl__rocks_options *options,
                            pawl_error *reterr)
{
    bool exists = false;

    if (!options->read_only) {
        return make_dir(dir, options->free_space_min, reterr);
    }
    pawl_status status = pawl__rocks_inspect(dir, &exists, reterr);
    return status == PAWL_OK && !exists ? pawl__fail(reterr, PAWL_NOT_FOUND, "there is no store")
                                        : status;
}

static pawl_status open_store(const char *dir,
                              const struct pawl__rocks_options *options,
                              struct pawl__rocks **ret_db,
                              pawl_error *reterr)
{
    AUTO(pawl__rocks_close_p) struct pawl__rocks *db = NULL;

    TRY(check_options(options, reterr));
    TRY(rocks_new(dir, options, &db, reterr));
    TRY(find_dir(dir, options, reterr));
    TRY(pawl__store_lock_inside(dir, &db->lock, reterr));
    TRY(open_checked(db, options, reterr));
    *ret_db = STEAL(db);
    return PAWL_OK;
}

pawl_status pawl__rocks_open(const char *dir,
                             const struct pawl__rocks_options *options,
                             struct pawl__rocks **ret_db,
                             pawl_error *reterr)
{
    pawl_status status = open_store(dir, options, ret_db, reterr);

    return status == PAWL_OK ? PAWL_OK
                             : pawl__fail_context(reterr, status, "open RocksDB store '%s'", dir);
}

static void close_native(struct pawl__rocks *db)
{
    for (size_t i = 0; i < db->family_count; i++) {
        rocksdb_column_family_handle_destroy(db->families[i]);
    }
    if (db->default_family != NULL) {
        rocksdb_column_family_handle_destroy(db->default_family);
    }
    rocksdb_close(db->native);
}

void pawl__rocks_close(struct pawl__rocks *db)
{
    if (db == NULL) {
        return;
    }
    pawl__rocks_memory_leave(db);
    if (atomic_load(&db->share.flushing)) {
        rocksdb_cancel_all_background_work(db->native,
                                           0); /* as the close does: nothing to wait for */
    }
    pawl__thread_join(&db->share.flusher);
    if (db->native != NULL) {
        (void)!pawl__rocks_check_place(db, NULL);
        close_native(db);
    }
    if (db->write_options != NULL) {
        rocksdb_writeoptions_destroy(db->write_options);
        rocksdb_writeoptions_destroy(db->unsynced_options);
    }
    if (db->read_options != NULL) {
        rocksdb_readoptions_destroy(db->read_options);
    }
    if (db->options != NULL) {
        rocksdb_options_destroy(db->options);
        rocksdb_options_destroy(db->sure_options);
    }
    pawl__store_lock_release(db->lock);
    pawl__lock_done(&db->space.lock);
    free(db->dir);
    free(db);
}
