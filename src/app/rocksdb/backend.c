#include "app/rocksdb/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/core/backend.h"
#include "app/rocksdb/directory.h"
#include "base/core/error.h"
#include "base/os/fs.h"

struct rocksdb_store {
    struct app_store base;
    struct pawl__rocks *db;
    struct pawl__rocks_snapshot *snapshot; /* of one that is frozen; NULL: it reads the latest */
    char *path;                            /* its last part is a name */
    char *anchor_path;                     /* beside it */
};

static void close_store(struct app_store *store)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;

    pawl__rocks_close(self->db);
    free(self->path);
    free(self->anchor_path);
    free(self);
}

static pawl_status flush_last(struct app_store *store, int64_t deadline_ns, pawl_error *reterr)
{
    return pawl__rocks_flush_last(((struct rocksdb_store *)store)->db, deadline_ns, reterr);
}

/* --- reading --- */

struct values {
    struct pawl__rocks_value *list;
    size_t count;
};

static void values_done(struct values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        pawl__rocks_value_done(&values->list[i]);
    }
    free(values->list);
}

static pawl_status read_values(struct rocksdb_store *self,
                               enum app_family family,
                               const pawl_view *keys,
                               size_t count,
                               struct values *values,
                               pawl_error *reterr)
{
    values->list = calloc(count + 1, sizeof(*values->list));
    if (values->list == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu values", count);
    }
    TRY(pawl__rocks_get_many(self->db, self->snapshot, family, keys, count, values->list, reterr));
    values->count = count;
    return PAWL_OK;
}

static pawl_status get_many(struct app_store *store,
                            const struct app_lookup *lookup,
                            struct pawl__arena *arena,
                            struct app_value *ret_values,
                            pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(values_done) struct values found = { NULL, 0 };

    TRY(read_values(self, lookup->family, lookup->keys, lookup->count, &found, reterr));
    for (size_t i = 0; i < found.count; i++) {
        TRY(pawl__app_value_copy(
            &ret_values[i], found.list[i].found ? &found.list[i].view : NULL, arena, reterr));
    }
    return PAWL_OK;
}

static pawl_status scan(struct app_store *store,
                        const struct app_range *range,
                        struct app_page *page,
                        pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct pawl__rocks_range keys = { .from = range->from, .until = range->until };

    TRY(pawl__rocks_iter_open(self->db, self->snapshot, range->family, keys, &iter, reterr));
    TRY(range->backwards ? pawl__rocks_iter_last(iter, reterr)
                         : pawl__rocks_iter_first(iter, reterr));
    while (iter->valid) {
        TRY(pawl__app_page_add(page, range->family, iter->key, iter->value, reterr));
        if (!pawl__app_page_has_room(page, range)) {
            break;
        }
        TRY(range->backwards ? pawl__rocks_iter_prev(iter, reterr)
                             : pawl__rocks_iter_next(iter, reterr));
    }
    return PAWL_OK;
}

/* --- as it is now --- */

static void close_frozen(struct app_store *store)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;

    pawl__rocks_snapshot_close(self->snapshot);
    free(self);
}

static pawl_status freeze(struct app_store *store,
                          struct app_store **ret_frozen,
                          pawl_error *reterr)
{
    static const struct app_store_ops frozen_ops = {
        .size = sizeof(struct rocksdb_store),
        .close = close_frozen,
        .get_many = get_many,
        .scan = scan,
    };
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__app_store_close_p) struct app_store *base = calloc(1, sizeof(*self));

    TRY(pawl__check_memory(base, "a snapshot", reterr));
    struct rocksdb_store *frozen = (struct rocksdb_store *)base;
    base->ops = &frozen_ops;
    frozen->db = self->db;
    TRY(pawl__rocks_snapshot_open(self->db, &frozen->snapshot, reterr));
    *ret_frozen = STEAL(base);
    return PAWL_OK;
}

/* --- writing --- */

/* Whether those of a family are new. */
static pawl_status check_family(struct rocksdb_store *self,
                                enum app_family family,
                                const struct app_entry *entries,
                                size_t count,
                                pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(values_done) struct values found = { NULL, 0 };
    pawl_view *keys = pawl__arena_take(&arena, (count + 1) * sizeof(*keys));
    const struct app_entry **inserts = pawl__arena_take(&arena, (count + 1) * sizeof(*inserts));
    size_t key_count = 0;

    if (keys == NULL || inserts == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu keys", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mode == APP_INSERT && entries[i].family == family) {
            inserts[key_count] = &entries[i];
            keys[key_count++] = entries[i].key;
        }
    }
    if (key_count > 0) {
        TRY(read_values(self, family, keys, key_count, &found, reterr));
    }
    for (size_t i = 0; i < found.count; i++) {
        if (found.list[i].found) {
            return pawl__app_store_conflict(inserts[i], reterr);
        }
    }
    return PAWL_OK;
}

static pawl_status write_batch(struct app_store *store,
                               const struct app_entry *entries,
                               size_t count,
                               pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    for (int family = 0; family < APP_FAMILY_COUNT; family++) {
        TRY(check_family(self, (enum app_family)family, entries, count, reterr));
    }
    TRY(pawl__rocks_batch_new(self->db, &batch, reterr));
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mode == APP_DELETE) {
            pawl__rocks_delete(batch, entries[i].family, entries[i].key);
        } else {
            pawl__rocks_put(batch, entries[i].family, entries[i].key, entries[i].value);
        }
    }
    return pawl__rocks_write(self->db, batch, reterr);
}

/* --- the anchor --- */

static pawl_status read_anchor(struct app_store *store, struct pawl__buf *text, pawl_error *reterr)
{
    return pawl__app_anchor_read_file(((struct rocksdb_store *)store)->anchor_path, text, reterr);
}

static pawl_status write_anchor(struct app_store *store, pawl_view text, pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;

    TRY(pawl__rocks_check_place(self->db, reterr)); /* else it is another application's anchor */
    return pawl__fs_replace(self->anchor_path, text, reterr);
}

static pawl_status check_neighbours(struct app_store *store,
                                    const struct app_anchor *anchor,
                                    pawl_error *reterr)
{
    return pawl__app_directory_check_neighbours(
        ((struct rocksdb_store *)store)->path, anchor, reterr);
}

/* --- opening --- */

struct pawl__rocks_options pawl__app_rocksdb_options(const char *families[APP_FAMILY_COUNT])
{
    for (int i = 0; i < APP_FAMILY_COUNT; i++) {
        families[i] = pawl__app_family_name((enum app_family)i);
    }
    return (struct pawl__rocks_options){
        .families = families,
        .family_count = APP_FAMILY_COUNT,
        /* Most numbers are looked up for workspaces that have been here before. */
        .sure_families = UINT64_C(1) << APP_SEQ,
        .later_families = UINT64_C(1) << APP_NUMBERS, /* since format 2 */
    };
}

/* Before the engine makes one. */
static pawl_status check_exists(const struct rocksdb_store *self, pawl_error *reterr)
{
    bool exists = false;

    TRY(pawl__rocks_inspect(self->path, &exists, reterr));
    if (exists) {
        return PAWL_OK;
    }
    TRY(pawl__app_directory_check_new(self->anchor_path, reterr));
    return pawl__fail(reterr, PAWL_NOT_FOUND, "there is no application");
}

/* An application lives in the directory of its name; another name is refused before anything is made. */
static pawl_status set_name(struct rocksdb_store *self,
                            const char *dir,
                            const char *wanted,
                            pawl_error *reterr)
{
    TRY(pawl__fs_named(dir, &self->path, reterr));
    const char *slash = strrchr(self->path, '/');
    self->base.name = slash == NULL ? self->path : slash + 1;
    self->anchor_path = pawl__fs_with_suffix(self->path, APP_ANCHOR_SUFFIX);
    self->base.anchor_name = self->anchor_path;
    if (self->anchor_path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    return wanted == NULL || strcmp(wanted, self->base.name) == 0
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "application '%s' lives in a directory of its name, not in '%s'",
                            wanted,
                            self->base.name);
}

/* A new application must not have the id of another one or the anchor of one that is lost. Checked before
 * anything is made. */
static pawl_status check_new(struct rocksdb_store *self,
                             const struct app_store_options *options,
                             pawl_error *reterr)
{
    struct app_anchor anchor = { .id = options->app_id, .born_us = UINT64_MAX };
    bool exists = options->app_id == 0;

    TRY(exists ? PAWL_OK : pawl__rocks_inspect(self->path, &exists, reterr));
    if (exists) {
        return PAWL_OK;
    }
    snprintf(anchor.name, sizeof(anchor.name), "%s", options->app_name);
    TRY(pawl__app_directory_check_neighbours(self->path, &anchor, reterr));
    TRY(pawl__app_directory_check_new(self->anchor_path, reterr));
    return pawl__app_directory_check_unanchored(self->path, &anchor, reterr);
}

static pawl_status open_engine(struct rocksdb_store *self,
                               const struct app_store_options *options,
                               pawl_error *reterr)
{
    const char *families[APP_FAMILY_COUNT];
    struct pawl__rocks_options native = pawl__app_rocksdb_options(families);

    native.read_only = options->read_only;
    native.unsafe_no_sync = options->unsafe_no_sync;
    native.free_space_min = options->free_space_min;
    if (options->memory_max != 0) {
        pawl__rocks_set_memory_max(options->memory_max);
    }
    return pawl__rocks_open(self->path, &native, &self->db, reterr);
}

static pawl_status open_store(struct app_store *store,
                              const struct pawl__location *location,
                              const struct app_store_options *options,
                              pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;

    TRY(set_name(self, location->path, options->app_name, reterr));
    TRY(options->must_exist ? check_exists(self, reterr) : PAWL_OK);
    TRY(check_new(self, options, reterr));
    return open_engine(self, options, reterr);
}

const struct app_store_ops pawl__app_rocksdb_ops = {
    .size = sizeof(struct rocksdb_store),
    .open = open_store,
    .close = close_store,
    .flush_last = flush_last,
    .freeze = freeze,
    .get_many = get_many,
    .scan = scan,
    .write = write_batch,
    .read_anchor = read_anchor,
    .write_anchor = write_anchor,
    .check_neighbours = check_neighbours,
};
