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
    char *path;        /* its last part is a name */
    char *anchor_path; /* beside it */
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

static void done_values(struct pawl__rocks_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl__rocks_value_done(&values[i]);
    }
    free(values);
}

static pawl_status copy_values(const struct pawl__rocks_value *values,
                               size_t count,
                               struct pawl__arena *arena,
                               struct app_value *ret_values,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        ret_values[i] = (struct app_value){ .found = values[i].found };
        if (values[i].found && !pawl__arena_copy(arena, values[i].view, &ret_values[i].bytes)) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for a value");
        }
    }
    return PAWL_OK;
}

static pawl_status get_many(struct app_store *store,
                            const struct app_lookup *lookup,
                            struct pawl__arena *arena,
                            struct app_value *ret_values,
                            pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    size_t count = lookup->count;
    struct pawl__rocks_value *values = calloc(count + 1, sizeof(*values));

    if (values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu values", count);
    }
    pawl_status status =
        pawl__rocks_get_many(self->db, NULL, lookup->family, lookup->keys, count, values, reterr);
    if (status == PAWL_OK) {
        status = copy_values(values, count, arena, ret_values, reterr);
        done_values(values, count);
    } else {
        free(values);
    }
    return status;
}

static pawl_status step(struct pawl__rocks_iter *iter, bool backwards, pawl_error *reterr)
{
    return backwards ? pawl__rocks_iter_prev(iter, reterr) : pawl__rocks_iter_next(iter, reterr);
}

static pawl_status scan(struct app_store *store,
                        const struct app_range *range,
                        struct pawl__arena *arena,
                        struct app_entry *ret_entries,
                        size_t *ret_count,
                        pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct pawl__rocks_range keys = { .from = range->from, .until = range->until };
    pawl_status status = pawl__rocks_iter_open(self->db, NULL, range->family, keys, &iter, reterr);
    size_t bytes = 0;
    size_t count = 0;

    if (status == PAWL_OK) {
        status = range->backwards ? pawl__rocks_iter_last(iter, reterr)
                                  : pawl__rocks_iter_first(iter, reterr);
    }
    while (status == PAWL_OK && iter->valid) {
        struct app_entry *entry = &ret_entries[count++];
        *entry = (struct app_entry){ .family = range->family };
        if (!pawl__arena_copy(arena, iter->key, &entry->key)
            || !pawl__arena_copy(arena, iter->value, &entry->value)) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
        }
        bytes += entry->key.len + entry->value.len;
        if (count == range->limit || bytes > range->bytes_max) {
            break;
        }
        status = step(iter, range->backwards, reterr);
    }
    if (status == PAWL_OK) {
        *ret_count = count;
    }
    return status;
}

/* --- writing --- */

/* The first of the keys that is there; they are the entries `which`. */
static pawl_status look_for_keys(struct rocksdb_store *self,
                                 enum app_family family,
                                 const struct app_entry *entries,
                                 const size_t *which,
                                 const pawl_view *keys,
                                 size_t count,
                                 pawl_error *reterr)
{
    struct pawl__rocks_value *values = calloc(count + 1, sizeof(*values));

    if (values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu values", count);
    }
    pawl_status status = pawl__rocks_get_many(self->db, NULL, family, keys, count, values, reterr);
    if (status != PAWL_OK) {
        free(values);
        return status;
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        if (values[i].found) {
            status = pawl__app_store_conflict(&entries[which[i]], reterr);
        }
    }
    done_values(values, count);
    return status;
}

static pawl_status check_inserts(struct rocksdb_store *self,
                                 const struct app_entry *entries,
                                 size_t count,
                                 pawl_error *reterr)
{
    pawl_view *keys = malloc((count + 1) * sizeof(*keys));
    size_t *which = malloc((count + 1) * sizeof(*which));
    pawl_status status = PAWL_OK;

    if (keys == NULL || which == NULL) {
        status = pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu keys", count);
    }
    for (int family = 0; family < APP_FAMILY_COUNT && status == PAWL_OK; family++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            if (entries[i].mode == APP_INSERT && (int)entries[i].family == family) {
                which[found] = i;
                keys[found++] = entries[i].key;
            }
        }
        if (found > 0) {
            status =
                look_for_keys(self, (enum app_family)family, entries, which, keys, found, reterr);
        }
    }
    free(keys);
    free(which);
    return status;
}

static pawl_status write_batch(struct app_store *store,
                               const struct app_entry *entries,
                               size_t count,
                               pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    TRY(check_inserts(self, entries, count, reterr));
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
    return pawl__app_anchor_file(((struct rocksdb_store *)store)->anchor_path, text, reterr);
}

static pawl_status write_anchor(struct app_store *store, pawl_view text, pawl_error *reterr)
{
    struct rocksdb_store *self = (struct rocksdb_store *)store;
    pawl_status status =
        pawl__rocks_check_place(self->db, reterr); /* else it is another's anchor */

    return status == PAWL_OK ? pawl__fs_replace(self->anchor_path, text, reterr) : status;
}

static pawl_status check_place(struct app_store *store,
                               const struct app_anchor *anchor,
                               pawl_error *reterr)
{
    return pawl__app_place_check(((struct rocksdb_store *)store)->path, anchor, reterr);
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
    pawl_status status = pawl__rocks_look(self->path, &exists, reterr);

    if (status != PAWL_OK || exists) {
        return status;
    }
    status = pawl__app_place_check_new(self->anchor_path, reterr);
    return status == PAWL_OK ? pawl__fail(reterr, PAWL_NOT_FOUND, "there is no application")
                             : status;
}

/* An application lives in the directory of its name. What is to be created there is refused before anything
 * is made. */
static pawl_status take_name(struct rocksdb_store *self,
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

/* What is new must not have the id of another one, nor be one that is gone; before anything is made. */
static pawl_status check_new(struct rocksdb_store *self,
                             const struct app_store_options *options,
                             pawl_error *reterr)
{
    struct app_anchor anchor = { .id = options->app_id, .born_us = UINT64_MAX };
    bool exists = false;
    pawl_status status =
        options->app_id == 0 ? PAWL_OK : pawl__rocks_look(self->path, &exists, reterr);

    if (status != PAWL_OK || exists || options->app_id == 0) {
        return status;
    }
    snprintf(anchor.name, sizeof(anchor.name), "%s", options->app_name);
    status = pawl__app_place_check(self->path, &anchor, reterr);
    if (status == PAWL_OK) {
        status = pawl__app_place_check_new(self->anchor_path, reterr);
    }
    return status == PAWL_OK ? pawl__app_place_check_unanchored(self->path, &anchor, reterr)
                             : status;
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

pawl_status pawl__app_rocksdb_open(const struct pawl__location *location,
                                   const void *setup,
                                   void *ret_store,
                                   pawl_error *reterr)
{
    static const struct app_store_ops ops = {
        .close = close_store,
        .flush_last = flush_last,
        .get_many = get_many,
        .scan = scan,
        .write = write_batch,
        .read_anchor = read_anchor,
        .write_anchor = write_anchor,
        .check_place = check_place,
    };
    const struct app_store_options *options = setup;
    struct rocksdb_store *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a store");
    }
    self->base.ops = &ops;
    pawl_status status = take_name(self, location->path, options->app_name, reterr);
    if (status == PAWL_OK && options->must_exist) {
        status = check_exists(self, reterr);
    }
    if (status == PAWL_OK) {
        status = check_new(self, options, reterr);
    }
    if (status == PAWL_OK) {
        status = open_engine(self, options, reterr);
    }
    if (status != PAWL_OK) {
        close_store(&self->base);
        return status;
    }
    *(struct app_store **)ret_store = &self->base;
    return PAWL_OK;
}
