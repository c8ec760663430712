/* An application in memory: the reference for the others. Each family is a sorted array. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "sequencer/app_store.h"

struct cell {
    char *key;
    size_t key_len;
    char *value;
    size_t value_len;
};

struct family {
    struct cell *cells; /* by ascending key */
    size_t count;
    size_t room;
};

struct memory {
    struct app_store base;
    struct pawl__lock lock; /* covers the families */
    struct family families[APP_FAMILY_COUNT];
};

static void close_memory(struct app_store *store)
{
    struct memory *memory = (struct memory *)store;

    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        struct family *family = &memory->families[i];
        for (size_t k = 0; k < family->count; k++) {
            free(family->cells[k].key);
            free(family->cells[k].value);
        }
        free(family->cells);
    }
    pawl__lock_done(&memory->lock);
    free(memory);
}

static int compare(pawl_view a, pawl_view b)
{
    size_t len = MIN(a.len, b.len);
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The first place whose key is not below this one. */
static size_t place_of(const struct family *family, pawl_view key)
{
    size_t low = 0;
    size_t high = family->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cell *cell = &family->cells[middle];
        if (compare((pawl_view){ cell->key, cell->key_len }, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct cell *find(const struct family *family, pawl_view key)
{
    size_t place = place_of(family, key);

    if (place == family->count) {
        return NULL;
    }
    struct cell *cell = &family->cells[place];
    return compare((pawl_view){ cell->key, cell->key_len }, key) == 0 ? cell : NULL;
}

/* --- reading --- */

static pawl_status get_many_locked(struct memory *memory,
                                   const struct app_lookup *lookup,
                                   struct pawl__arena *arena,
                                   struct app_value *ret_values,
                                   pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    for (size_t i = 0; i < lookup->count; i++) {
        const struct cell *cell = find(&memory->families[lookup->family], lookup->keys[i]);
        ret_values[i] = (struct app_value){ .found = cell != NULL };
        if (cell != NULL
            && !pawl__arena_copy(
                arena, (pawl_view){ cell->value, cell->value_len }, &ret_values[i].bytes)) {
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

static pawl_status scan_locked(struct memory *memory,
                               const struct app_range *range,
                               struct pawl__arena *arena,
                               struct app_entry *ret_entries,
                               size_t *ret_count,
                               pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    const struct family *family = &memory->families[range->family];
    size_t first = place_of(family, range->from);
    size_t end = range->until.len == 0 ? family->count : place_of(family, range->until);
    size_t there = end > first ? end - first : 0;
    size_t bytes = 0;
    size_t count = 0;

    for (; count < MIN(there, range->limit) && bytes <= range->bytes_max; count++) {
        const struct cell *cell =
            &family->cells[range->backwards ? end - 1 - count : first + count];
        struct app_entry *entry = &ret_entries[count];
        *entry = (struct app_entry){ .family = range->family };
        if (!pawl__arena_copy(arena, (pawl_view){ cell->key, cell->key_len }, &entry->key)
            || !pawl__arena_copy(
                arena, (pawl_view){ cell->value, cell->value_len }, &entry->value)) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
        }
        bytes += cell->key_len + cell->value_len;
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

static pawl_status check_inserts_locked(const struct memory *memory,
                                        const struct app_entry *entries,
                                        size_t count,
                                        pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mode == APP_INSERT
            && find(&memory->families[entries[i].family], entries[i].key) != NULL) {
            return pawl__app_store_conflict(&entries[i], reterr);
        }
    }
    return PAWL_OK;
}

static bool reserve_locked(struct memory *memory, const struct app_entry *entries, size_t count)
{
    size_t more[APP_FAMILY_COUNT] = { 0 };

    for (size_t i = 0; i < count; i++) {
        more[entries[i].family]++;
    }
    for (size_t i = 0; i < APP_FAMILY_COUNT; i++) {
        struct family *family = &memory->families[i];
        if (family->count + more[i] > family->room) {
            size_t room = MAX(family->count + more[i], family->room * 2);
            struct cell *cells = realloc(family->cells, room * sizeof(*cells));
            if (cells == NULL) {
                return false;
            }
            family->cells = cells;
            family->room = room;
        }
    }
    return true;
}

static void free_cells(struct cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(cells[i].key);
        free(cells[i].value);
    }
    free(cells);
}

static struct cell *copy_cells(const struct app_entry *entries, size_t count)
{
    struct cell *cells = calloc(count + 1, sizeof(*cells));

    for (size_t i = 0; i < count && cells != NULL; i++) {
        cells[i] = (struct cell){ .key = pawl__view_dup(entries[i].key),
                                  .key_len = entries[i].key.len,
                                  .value = pawl__view_dup(entries[i].value),
                                  .value_len = entries[i].value.len };
        if (cells[i].key == NULL || cells[i].value == NULL) {
            free_cells(cells, i + 1);
            return NULL;
        }
    }
    return cells;
}

static void delete_locked(struct family *family, pawl_view key)
{
    struct cell *found = find(family, key);

    if (found != NULL) {
        size_t place = (size_t)(found - family->cells);
        free(found->key);
        free(found->value);
        family->count--;
        memmove(found, found + 1, (family->count - place) * sizeof(*found));
    }
}

/* Takes the bytes of the cell over. */
static void put_locked(struct family *family, struct cell *cell)
{
    pawl_view key = { cell->key, cell->key_len };
    struct cell *found = find(family, key);

    if (found != NULL) {
        free(found->value);
        found->value = STEAL(cell->value);
        found->value_len = cell->value_len;
        return;
    }
    size_t place = place_of(family, key);
    memmove(&family->cells[place + 1],
            &family->cells[place],
            (family->count - place) * sizeof(*family->cells));
    family->cells[place] = *cell;
    family->count++;
    *cell = (struct cell){ .key = NULL };
}

static pawl_status write_locked(struct memory *memory,
                                const struct app_entry *entries,
                                size_t count,
                                pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    pawl_status status = check_inserts_locked(memory, entries, count, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    struct cell *cells = copy_cells(entries, count);
    if (cells == NULL || !reserve_locked(memory, entries, count)) {
        if (cells != NULL) {
            free_cells(cells, count);
        }
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mode == APP_DELETE) {
            delete_locked(&memory->families[entries[i].family], entries[i].key);
        } else {
            put_locked(&memory->families[entries[i].family], &cells[i]);
        }
    }
    free_cells(cells, count);
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

pawl_status pawl__app_memory_open(struct app_store **ret_store, pawl_error *reterr)
{
    static const struct app_store_ops ops = {
        .close = close_memory,
        .get_many = get_many,
        .scan = scan,
        .write = write_batch,
    };
    struct memory *memory = calloc(1, sizeof(*memory));

    if (memory == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a store");
    }
    pawl_status status = pawl__lock_init(&memory->lock, reterr);
    if (status != PAWL_OK) {
        free(memory);
        return status;
    }
    memory->base.ops = &ops;
    *ret_store = &memory->base;
    return PAWL_OK;
}
