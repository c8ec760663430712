/* An application in memory: the reference for the others. */
#include <stdlib.h>

#include "app/core/backend.h"
#include "app/memory/ordered.h"
#include "base/core/error.h"
#include "base/thread/thread.h"

struct memory {
    struct app_store base;
    struct pawl__lock lock; /* covers the families and the anchor */
    char *anchor;
    size_t anchor_len;
    struct app_ordered families[APP_FAMILY_COUNT];
};

static void close_memory(struct app_store *store)
{
    struct memory *memory = (struct memory *)store;

    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        pawl__app_ordered_done(&memory->families[i]);
    }
    free(memory->anchor);
    pawl__lock_done(&memory->lock);
    free(memory);
}

/* --- reading --- */

static pawl_status get_many_locked(struct memory *memory,
                                   const struct app_lookup *lookup,
                                   struct pawl__arena *arena,
                                   struct app_value *ret_values,
                                   pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    for (size_t i = 0; i < lookup->count; i++) {
        const struct app_ordered_cell *cell =
            pawl__app_ordered_find(&memory->families[lookup->family], lookup->keys[i]);
        TRY(pawl__app_value_copy(
            &ret_values[i], cell == NULL ? NULL : &cell->value, arena, reterr));
    }
    return PAWL_OK;
}

static pawl_status get_many(struct app_store *store,
                            const struct app_lookup *lookup,
                            struct pawl__arena *arena,
                            struct app_value *ret_values,
                            pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl_status status = get_many_locked(memory, lookup, arena, ret_values, reterr);
    pawl__unlock(&memory->lock);
    return status;
}

/* Where a walk of the range begins; NULL: the range is empty. *ret_end: after the last one of the walk. */
static struct app_ordered_cell *begin_walk(struct app_ordered *family,
                                           const struct app_range *range,
                                           struct app_ordered_cell **ret_end)
{
    struct app_ordered_cell *first = pawl__app_ordered_from(family, range->from);
    bool bound = range->until.len > 0;

    if (first == NULL || (bound && pawl__app_ordered_compare(first->key, range->until) >= 0)) {
        return NULL;
    }
    struct app_ordered_cell *after = bound ? pawl__app_ordered_from(family, range->until) : NULL;
    *ret_end = range->backwards ? first->before : after;
    if (!range->backwards) {
        return first;
    }
    return after == NULL ? family->last : after->before;
}

static pawl_status scan_locked(struct memory *memory,
                               const struct app_range *range,
                               struct app_page *page,
                               pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    struct app_ordered_cell *end = NULL;
    struct app_ordered_cell *cell = begin_walk(&memory->families[range->family], range, &end);

    while (cell != NULL && cell != end && pawl__app_page_has_room(page, range)) {
        TRY(pawl__app_page_add(page, range->family, cell->key, cell->value, reterr));
        cell = range->backwards ? cell->before : cell->after[0];
    }
    return PAWL_OK;
}

static pawl_status scan(struct app_store *store,
                        const struct app_range *range,
                        struct app_page *page,
                        pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl_status status = scan_locked(memory, range, page, reterr);
    pawl__unlock(&memory->lock);
    return status;
}

/* --- writing: first all that may fail, then what cannot --- */

static pawl_status check_inserts_locked(struct memory *memory,
                                        const struct app_entry *entries,
                                        size_t count,
                                        pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mode == APP_INSERT
            && pawl__app_ordered_find(&memory->families[entries[i].family], entries[i].key)
                   != NULL) {
            return pawl__app_store_conflict(&entries[i], reterr);
        }
    }
    return PAWL_OK;
}

static void free_cells(struct app_ordered_cell **cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(cells[i]);
    }
    free(cells);
}

/* A cell for each entry, but for those that delete. */
static struct app_ordered_cell **make_cells_locked(struct memory *memory,
                                                   const struct app_entry *entries,
                                                   size_t count) REQUIRES_LOCK(memory->lock)
{
    struct app_ordered_cell **cells = calloc(count + 1, sizeof(*cells));

    for (size_t i = 0; i < count && cells != NULL; i++) {
        if (entries[i].mode != APP_DELETE) {
            cells[i] = pawl__app_ordered_cell(
                &memory->families[entries[i].family], entries[i].key, entries[i].value);
            if (cells[i] == NULL) {
                free_cells(cells, i);
                return NULL;
            }
        }
    }
    return cells;
}

static pawl_status write_locked(struct memory *memory,
                                const struct app_entry *entries,
                                size_t count,
                                pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    TRY(check_inserts_locked(memory, entries, count, reterr));
    struct app_ordered_cell **cells = make_cells_locked(memory, entries, count);
    if (cells == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", count);
    }
    for (size_t i = 0; i < count; i++) {
        struct app_ordered *family = &memory->families[entries[i].family];
        if (cells[i] == NULL) {
            pawl__app_ordered_delete(family, entries[i].key);
        } else {
            pawl__app_ordered_put(family, cells[i]);
        }
    }
    free(cells);
    return PAWL_OK;
}

static pawl_status write_batch(struct app_store *store,
                               const struct app_entry *entries,
                               size_t count,
                               pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl_status status = write_locked(memory, entries, count, reterr);
    pawl__unlock(&memory->lock);
    return status;
}

static pawl_status read_anchor(struct app_store *store, struct pawl__buf *text, pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl__buf_add(text, (pawl_view){ memory->anchor, memory->anchor_len });
    pawl__unlock(&memory->lock);
    return pawl__buf_check(text, "the anchor", reterr);
}

static pawl_status write_anchor(struct app_store *store, pawl_view text, pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;
    char *copy = pawl__view_dup(text);

    if (copy == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an anchor");
    }
    pawl__lock(&memory->lock);
    free(memory->anchor);
    memory->anchor = copy;
    memory->anchor_len = text.len;
    pawl__unlock(&memory->lock);
    return PAWL_OK;
}

static pawl_status open_memory(struct app_store *store,
                               const struct pawl__location *location,
                               const struct app_store_options *options,
                               pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    (void)location;
    (void)options;
    (void)reterr;
    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        pawl__app_ordered_init(&memory->families[i]);
    }
    pawl__lock_init(&memory->lock);
    memory->base.anchor_name = "memory";
    return PAWL_OK;
}

const struct app_store_ops pawl__app_memory_ops = {
    .size = sizeof(struct memory),
    .open = open_memory,
    .close = close_memory,
    .get_many = get_many,
    .scan = scan,
    .write = write_batch,
    .read_anchor = read_anchor,
    .write_anchor = write_anchor,
};
