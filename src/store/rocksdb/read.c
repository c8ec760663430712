#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "store/rocksdb/internal.h"

/* Keys of one call into the engine; it sorts and looks them up together. */
enum { GET_MANY_STEP = 64 };

pawl_status pawl__rocks_snapshot_open(struct pawl__rocks *db,
                                      struct pawl__rocks_snapshot **ret_snapshot,
                                      pawl_error *reterr)
{
    struct pawl__rocks_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    TRY(pawl__check_memory(snapshot, "a snapshot", reterr));
    snapshot->db = db;
    snapshot->native = rocksdb_create_snapshot(db->native);
    snapshot->read_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(snapshot->read_options, snapshot->native);
    *ret_snapshot = snapshot;
    return PAWL_OK;
}

void pawl__rocks_snapshot_close(struct pawl__rocks_snapshot *snapshot)
{
    if (snapshot != NULL) {
        rocksdb_readoptions_destroy(snapshot->read_options);
        rocksdb_release_snapshot(snapshot->db->native, snapshot->native);
        free(snapshot);
    }
}

static const rocksdb_readoptions_t *read_options(const struct pawl__rocks *db,
                                                 const struct pawl__rocks_snapshot *snapshot)
{
    return snapshot == NULL ? db->read_options : snapshot->read_options;
}

static struct pawl__rocks_value value_of(rocksdb_pinnableslice_t *pin)
{
    struct pawl__rocks_value value = { .found = true, .pin = pin };

    value.view.data = rocksdb_pinnableslice_value(pin, &value.view.len);
    return value;
}

void pawl__rocks_value_done(struct pawl__rocks_value *value)
{
    if (value->pin != NULL) {
        rocksdb_pinnableslice_destroy(value->pin);
    }
    *value = (struct pawl__rocks_value){ 0 };
}

pawl_status pawl__rocks_get(struct pawl__rocks *db,
                            const struct pawl__rocks_snapshot *snapshot,
                            size_t family,
                            pawl_view key,
                            struct pawl__rocks_value *ret_value,
                            pawl_error *reterr)
{
    char *text = NULL;

    REQUIRE(family < db->family_count);
    rocksdb_pinnableslice_t *pin = rocksdb_get_pinned_cf(db->native,
                                                         read_options(db, snapshot),
                                                         db->families[family],
                                                         rocks_bytes(key),
                                                         key.len,
                                                         &text);
    if (text != NULL) {
        return pawl__rocks_fail(text, reterr);
    }
    if (pin == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "key is not there");
    }
    *ret_value = value_of(pin);
    return PAWL_OK;
}

/* Takes over what the engine found, all of it even after an error. */
static pawl_status take_values(rocksdb_pinnableslice_t **pins,
                               char **texts,
                               size_t count,
                               struct pawl__rocks_value *ret_values,
                               pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < count; i++) {
        ret_values[i] = (struct pawl__rocks_value){ 0 };
        if (pins[i] != NULL) {
            ret_values[i] = value_of(pins[i]);
        }
        if (texts[i] != NULL && status == PAWL_OK) {
            status = pawl__rocks_fail(texts[i], reterr);
        } else if (texts[i] != NULL) {
            rocksdb_free(texts[i]);
        }
    }
    return status;
}

static pawl_status get_step(struct pawl__rocks *db,
                            const rocksdb_readoptions_t *options,
                            rocksdb_column_family_handle_t *family,
                            const pawl_view *keys,
                            size_t count,
                            struct pawl__rocks_value *ret_values,
                            pawl_error *reterr)
{
    const char *data[GET_MANY_STEP];
    size_t lens[GET_MANY_STEP];
    rocksdb_pinnableslice_t *pins[GET_MANY_STEP] = { NULL };
    char *texts[GET_MANY_STEP] = { NULL };

    for (size_t i = 0; i < count; i++) {
        data[i] = rocks_bytes(keys[i]);
        lens[i] = keys[i].len;
    }
    rocksdb_batched_multi_get_cf(
        db->native, options, family, count, data, lens, pins, texts, false);
    return take_values(pins, texts, count, ret_values, reterr);
}

pawl_status pawl__rocks_get_many(struct pawl__rocks *db,
                                 const struct pawl__rocks_snapshot *snapshot,
                                 size_t family,
                                 const pawl_view *keys,
                                 size_t count,
                                 struct pawl__rocks_value *ret_values,
                                 pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    size_t done = 0;

    REQUIRE(family < db->family_count);
    while (done < count && status == PAWL_OK) {
        size_t step = MIN(count - done, (size_t)GET_MANY_STEP);

        status = get_step(db,
                          read_options(db, snapshot),
                          db->families[family],
                          &keys[done],
                          step,
                          &ret_values[done],
                          reterr);
        done += step;
    }
    if (status != PAWL_OK) {
        for (size_t i = 0; i < done; i++) {
            pawl__rocks_value_done(&ret_values[i]);
        }
    }
    return status;
}

struct pawl__rocks_range pawl__rocks_prefix(pawl_view prefix, char *space)
{
    struct pawl__rocks_range range = { .from = prefix };

    if (prefix.len > 0) {
        memcpy(space, prefix.data, prefix.len);
    }
    /* The first key behind all that begin with it: drop trailing 0xff, add one to what is left.
     * Nothing left means that no key is behind. */
    for (size_t len = prefix.len; len > 0; len--) {
        unsigned char last = (unsigned char)space[len - 1];

        if (last != 0xFF) {
            space[len - 1] = (char)(last + 1);
            range.until = (pawl_view){ .data = space, .len = len };
            break;
        }
    }
    return range;
}

struct rocks_iter {
    struct pawl__rocks_iter base; /* first member: what the caller sees */
    rocksdb_iterator_t *native;
    rocksdb_readoptions_t *options;
    char bounds[]; /* the engine keeps pointers to them */
};

static rocksdb_readoptions_t *iter_options(struct rocks_iter *iter,
                                           const struct pawl__rocks_snapshot *snapshot,
                                           struct pawl__rocks_range range)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();

    if (snapshot != NULL) {
        rocksdb_readoptions_set_snapshot(options, snapshot->native);
    }
    if (range.from.len > 0) {
        memcpy(iter->bounds, range.from.data, range.from.len);
        rocksdb_readoptions_set_iterate_lower_bound(options, iter->bounds, range.from.len);
    }
    if (range.until.len > 0) {
        memcpy(&iter->bounds[range.from.len], range.until.data, range.until.len);
        rocksdb_readoptions_set_iterate_upper_bound(
            options, &iter->bounds[range.from.len], range.until.len);
    }
    return options;
}

pawl_status pawl__rocks_iter_open(struct pawl__rocks *db,
                                  const struct pawl__rocks_snapshot *snapshot,
                                  size_t family,
                                  struct pawl__rocks_range range,
                                  struct pawl__rocks_iter **ret_iter,
                                  pawl_error *reterr)
{
    REQUIRE(family < db->family_count);
    struct rocks_iter *iter = calloc(1, sizeof(*iter) + range.from.len + range.until.len);
    TRY(pawl__check_memory(iter, "an iterator", reterr));
    iter->options = iter_options(iter, snapshot, range);
    iter->native = rocksdb_create_iterator_cf(db->native, iter->options, db->families[family]);
    *ret_iter = &iter->base;
    return PAWL_OK;
}

void pawl__rocks_iter_close(struct pawl__rocks_iter *iter)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    if (self != NULL) {
        rocksdb_iter_destroy(self->native);
        rocksdb_readoptions_destroy(self->options);
        free(self);
    }
}

/* Where did the step lead? The engine says "not valid" at the end and after an error alike. */
static pawl_status arrive(struct rocks_iter *self, pawl_error *reterr)
{
    struct pawl__rocks_iter *iter = &self->base;
    char *text = NULL;

    *iter = (struct pawl__rocks_iter){ .valid = rocksdb_iter_valid(self->native) != 0 };
    if (iter->valid) {
        iter->key.data = rocksdb_iter_key(self->native, &iter->key.len);
        iter->value.data = rocksdb_iter_value(self->native, &iter->value.len);
        return PAWL_OK;
    }
    rocksdb_iter_get_error(self->native, &text);
    return text != NULL ? pawl__rocks_fail(text, reterr) : PAWL_OK;
}

pawl_status pawl__rocks_iter_first(struct pawl__rocks_iter *iter, pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    rocksdb_iter_seek_to_first(self->native);
    return arrive(self, reterr);
}

pawl_status pawl__rocks_iter_last(struct pawl__rocks_iter *iter, pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    rocksdb_iter_seek_to_last(self->native);
    return arrive(self, reterr);
}

pawl_status pawl__rocks_iter_next(struct pawl__rocks_iter *iter, pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    REQUIRE(iter->valid);
    rocksdb_iter_next(self->native);
    return arrive(self, reterr);
}

pawl_status pawl__rocks_iter_prev(struct pawl__rocks_iter *iter, pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    REQUIRE(iter->valid);
    rocksdb_iter_prev(self->native);
    return arrive(self, reterr);
}

pawl_status pawl__rocks_iter_seek(struct pawl__rocks_iter *iter, pawl_view key, pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    rocksdb_iter_seek(self->native, rocks_bytes(key), key.len);
    return arrive(self, reterr);
}

pawl_status pawl__rocks_iter_seek_back(struct pawl__rocks_iter *iter,
                                       pawl_view key,
                                       pawl_error *reterr)
{
    struct rocks_iter *self = (struct rocks_iter *)iter;

    rocksdb_iter_seek_for_prev(self->native, rocks_bytes(key), key.len);
    return arrive(self, reterr);
}
