/* Idempotency keys in memory. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/list.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/keys/backend.h"

struct model_key {
    struct work_key_row row;
    struct pawl__arena arena;
};

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a key");
}

static void free_key(void *row)
{
    struct model_key *key = row;

    pawl__arena_done(&key->arena);
    free(key);
}

static size_t place_of(const struct work_model *backend, pawl_view key)
{
    const struct work_model_list *list = &backend->keys;

    for (size_t i = 0; i < list->count; i++) {
        const struct model_key *row = list->rows[i];
        if (row != NULL && pawl__view_equal(row->row.key, key)) {
            return i;
        }
    }
    return list->count;
}

static pawl_status model_load(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view key,
                              struct pawl__arena *arena,
                              struct work_key_row *ret_row,
                              pawl_error *reterr)
{
    size_t place = place_of(of(base), key);

    (void)now;
    if (place == of(base)->keys.count) {
        *ret_row = (struct work_key_row){ .key = key, .owner_token = of(base)->owner_token_floor };
        return PAWL_OK;
    }
    const struct model_key *row = of(base)->keys.rows[place];
    return pawl__work_copy_key(arena, &row->row, ret_row) ? PAWL_OK : no_memory(reterr);
}

static pawl_status model_put(struct work_backend *base,
                             const struct work_key_row *row,
                             pawl_error *reterr)
{
    struct work_model_list *list = &of(base)->keys;
    size_t place = place_of(of(base), row->key);
    struct model_key *key = calloc(1, sizeof(*key));

    if (key == NULL || !pawl__work_copy_key(&key->arena, row, &key->row)) {
        if (key != NULL) {
            free_key(key);
        }
        return no_memory(reterr);
    }
    key->row.known = true;
    return place < list->count ? work_model_replace(of(base), list, place, key, reterr)
                               : work_model_add(of(base), list, key, reterr);
}

static bool may_go(const struct work_key_row *row,
                   const struct work_now *now,
                   int64_t completed_before_us)
{
    return pawl__work_key_is_over(row, now)
           || (row->state == WORK_KEY_COMPLETED && row->completed_at_us < completed_before_us);
}

static pawl_status model_prune(struct work_backend *base,
                               const struct work_now *now,
                               int64_t completed_before_us,
                               size_t count,
                               uint64_t *ret_removed,
                               pawl_error *reterr)
{
    struct work_model_list *list = &of(base)->keys;
    uint64_t removed = 0;

    for (size_t i = 0; i < list->count && removed < count; i++) {
        const struct model_key *key = list->rows[i];
        if (key != NULL && may_go(&key->row, now, completed_before_us)) {
            uint64_t token = key->row.owner_token;
            pawl_status status = work_model_remove(of(base), list, i, reterr);
            if (status != PAWL_OK) {
                return status;
            }
            /* A rollback leaves it as it is: tokens have gaps. */
            of(base)->owner_token_floor = MAX(of(base)->owner_token_floor, token);
            removed++;
        }
    }
    *ret_removed = removed;
    return PAWL_OK;
}

/* --- Reading: copies, so that `visit` may call whatever it likes --- */

static pawl_status model_get(struct work_backend *base,
                             const struct work_now *now,
                             pawl_view key,
                             work_key_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    struct work_key_row row;

    pawl__lock(&of(base)->lock);
    pawl_status status = model_load(base, now, key, &arena, &row, reterr);
    pawl__unlock(&of(base)->lock);
    if (status == PAWL_OK && !row.known) {
        status = pawl__fail(reterr, PAWL_NOT_FOUND, "no key '%.*s'", VIEW_ARGS(key));
    }
    if (status == PAWL_OK) {
        (void)visit(context, &row);
    }
    pawl__arena_done(&arena);
    return status;
}

static int by_key(const void *a, const void *b)
{
    return pawl__work_view_order(((const struct work_key_row *)a)->key,
                                 ((const struct work_key_row *)b)->key);
}

static bool is_cached(const struct work_key_row *row, const struct work_now *now, pawl_view task_id)
{
    return pawl__view_equal(row->task_id, task_id) && row->state == WORK_KEY_COMPLETED
           && row->over_ns > now->ns;
}

static pawl_status copy_cached(struct work_model *backend,
                               const struct work_now *now,
                               pawl_view task_id,
                               struct pawl__arena *arena,
                               struct work_key_row **ret_rows,
                               size_t *ret_count,
                               pawl_error *reterr)
{
    struct work_model_list *list = &backend->keys;
    struct work_key_row *rows = pawl__arena_take(arena, (list->count + 1) * sizeof(*rows));
    size_t count = 0;

    for (size_t i = 0; rows != NULL && i < list->count; i++) {
        const struct model_key *key = list->rows[i];
        if (key != NULL && is_cached(&key->row, now, task_id)
            && !pawl__work_copy_key(arena, &key->row, &rows[count++])) {
            rows = NULL;
        }
    }
    *ret_rows = rows;
    *ret_count = count;
    return rows == NULL ? no_memory(reterr) : PAWL_OK;
}

static pawl_status model_cached(struct work_backend *base,
                                const struct work_now *now,
                                pawl_view task_id,
                                work_key_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    struct work_key_row *rows;
    size_t count;

    pawl__lock(&of(base)->lock);
    pawl_status status = copy_cached(of(base), now, task_id, &arena, &rows, &count, reterr);
    pawl__unlock(&of(base)->lock);
    if (status == PAWL_OK) {
        qsort(rows, count, sizeof(*rows), by_key);
        for (size_t i = 0; i < count && visit(context, &rows[i]); i++) {
        }
    }
    pawl__arena_done(&arena);
    return status;
}

static pawl_status model_prunable(struct work_backend *base,
                                  const struct work_now *now,
                                  int64_t completed_before_us,
                                  uint64_t *ret_count,
                                  pawl_error *reterr)
{
    struct work_model *backend = of(base);
    uint64_t count = 0;

    (void)reterr;
    pawl__lock(&backend->lock);
    for (size_t i = 0; i < backend->keys.count; i++) {
        const struct model_key *key = backend->keys.rows[i];
        count += key != NULL && may_go(&key->row, now, completed_before_us);
    }
    pawl__unlock(&backend->lock);
    *ret_count = count;
    return PAWL_OK;
}

static const struct work_key_ops model_keys = {
    .load = model_load,
    .put = model_put,
    .prune = model_prune,
    .get = model_get,
    .cached = model_cached,
    .prunable = model_prunable,
};

void work_model_keys_set_up(struct work_model *backend)
{
    backend->base.keys = &model_keys;
    backend->keys.free_row = free_key;
}
