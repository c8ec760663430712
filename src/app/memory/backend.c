/* An application in memory: the reference for the others. */
#include "app/memory/backend.h"

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
    struct ordered families[APP_FAMILY_COUNT];
};

static void close_memory(struct app_store *store)
{
    struct memory *memory = (struct memory *)store;

    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        pawl__ordered_done(&memory->families[i]);
    }
    free(memory->anchor);
    pawl__lock_done(&memory->lock);
    free(memory);
}

uint64_t pawl__app_memory_compared(struct app_store *store)
{
    struct memory *memory = (struct memory *)store;
    uint64_t compared = 0;

    pawl__lock(&memory->lock);
    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        compared += memory->families[i].compared;
    }
    pawl__unlock(&memory->lock);
    return compared;
}

/* --- reading --- */

static pawl_status get_many_locked(struct memory *memory,
                                   const struct app_lookup *lookup,
                                   struct pawl__arena *arena,
                                   struct app_value *ret_values,
                                   pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    for (size_t i = 0; i < lookup->count; i++) {
        const struct ordered_cell *cell =
            pawl__ordered_find(&memory->families[lookup->family], lookup->keys[i]);
        ret_values[i] = (struct app_value){ .found = cell != NULL };
        if (cell != NULL && !pawl__arena_copy(arena, cell->value, &ret_values[i].bytes)) {
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
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl_status status = get_many_locked(memory, lookup, arena, ret_values, reterr);
    pawl__unlock(&memory->lock);
    return status;
}

/* Where a walk of the range begins; NULL: the range is empty. *ret_end: behind the last one of the walk. */
static struct ordered_cell *begin_walk(struct ordered *family,
                                       const struct app_range *range,
                                       struct ordered_cell **ret_end)
{
    struct ordered_cell *first = pawl__ordered_from(family, range->from);
    bool bound = range->until.len > 0;

    if (first == NULL || (bound && pawl__ordered_compare(first->key, range->until) >= 0)) {
        return NULL;
    }
    struct ordered_cell *behind = bound ? pawl__ordered_from(family, range->until) : NULL;
    *ret_end = range->backwards ? first->before : behind;
    if (!range->backwards) {
        return first;
    }
    return behind == NULL ? family->last : behind->before;
}

static pawl_status scan_locked(struct memory *memory,
                               const struct app_range *range,
                               struct pawl__arena *arena,
                               struct app_entry *ret_entries,
                               size_t *ret_count,
                               pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    struct ordered_cell *end = NULL;
    struct ordered_cell *cell = begin_walk(&memory->families[range->family], range, &end);
    size_t bytes = 0;
    size_t count = 0;

    while (cell != NULL && cell != end && count < range->limit && bytes <= range->bytes_max) {
        struct app_entry *entry = &ret_entries[count++];
        *entry = (struct app_entry){ .family = range->family };
        if (!pawl__arena_copy(arena, cell->key, &entry->key)
            || !pawl__arena_copy(arena, cell->value, &entry->value)) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
        }
        bytes += cell->key.len + cell->value.len;
        cell = range->backwards ? cell->before : cell->after[0];
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status scan(struct app_store *store,
                        const struct app_range *range,
                        struct pawl__arena *arena,
                        struct app_entry *ret_entries,
                        size_t *ret_count,
                        pawl_error *reterr)
{
    struct memory *memory = (struct memory *)store;

    pawl__lock(&memory->lock);
    pawl_status status = scan_locked(memory, range, arena, ret_entries, ret_count, reterr);
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
            && pawl__ordered_find(&memory->families[entries[i].family], entries[i].key) != NULL) {
            return pawl__app_store_conflict(&entries[i], reterr);
        }
    }
    return PAWL_OK;
}

static void free_cells(struct ordered_cell **cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(cells[i]);
    }
    free(cells);
}

/* A cell for each entry, but for those that delete. */
static struct ordered_cell **make_cells_locked(struct memory *memory,
                                               const struct app_entry *entries,
                                               size_t count) REQUIRES_LOCK(memory->lock)
{
    struct ordered_cell **cells = calloc(count + 1, sizeof(*cells));

    for (size_t i = 0; i < count && cells != NULL; i++) {
        if (entries[i].mode != APP_DELETE) {
            cells[i] = pawl__ordered_cell(
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
    struct ordered_cell **cells = make_cells_locked(memory, entries, count);
    if (cells == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", count);
    }
    for (size_t i = 0; i < count; i++) {
        struct ordered *family = &memory->families[entries[i].family];
        if (cells[i] == NULL) {
            pawl__ordered_delete(family, entries[i].key);
        } else {
            pawl__ordered_put(family, cells[i]);
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

pawl_status pawl__app_memory_open(const struct pawl__location *location,
                                  const void *setup,
                                  void *ret_store,
                                  pawl_error *reterr)
{
    static const struct app_store_ops ops = {
        .close = close_memory,
        .get_many = get_many,
        .scan = scan,
        .write = write_batch,
        .read_anchor = read_anchor,
        .write_anchor = write_anchor,
    };
    struct memory *memory = calloc(1, sizeof(*memory));

    (void)location;
    (void)setup;
    if (memory == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a store");
    }
    pawl_status status = pawl__lock_init(&memory->lock, reterr);
    if (status != PAWL_OK) {
        free(memory);
        return status;
    }
    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        pawl__ordered_init(&memory->families[i]);
    }
    memory->base.ops = &ops;
    memory->base.anchor_name = "memory";
    *(struct app_store **)ret_store = &memory->base;
    return PAWL_OK;
}
