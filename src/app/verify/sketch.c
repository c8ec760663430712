#include "app/verify/sketch.h"

#include <stdlib.h>

#include "base/core/error.h"

/* Each item is in one cell of each table. */
enum { TABLES = 3, TABLE_BITS = 14, TABLE_CELLS = 1 << TABLE_BITS };

struct cell {
    int64_t count;
    uint64_t sums[SKETCH_WORDS];
    uint64_t checks;
};

struct app_sketch {
    struct pawl__hash_seed seed;
    struct cell cells[TABLES * TABLE_CELLS];
};

pawl_status pawl__app_sketch_new(struct app_sketch **ret_sketch, pawl_error *reterr)
{
    AUTO(pawl__app_sketch_free_p) struct app_sketch *sketch = calloc(1, sizeof(*sketch));

    if (sketch == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to compare entries");
    }
    TRY(pawl__hash_seed(&sketch->seed, reterr));
    *ret_sketch = STEAL(sketch);
    return PAWL_OK;
}

void pawl__app_sketch_free(struct app_sketch *sketch)
{
    free(sketch);
}

uint64_t pawl__app_sketch_hash(const struct app_sketch *sketch, pawl_view bytes)
{
    return pawl__hash_bytes(&sketch->seed, bytes);
}

static uint64_t hash_item(const struct app_sketch *sketch, const struct app_sketch_item *item)
{
    return pawl__hash_bytes(&sketch->seed,
                            (pawl_view){ (const char *)item->words, sizeof(item->words) });
}

static struct cell *cell_of(struct app_sketch *sketch, uint64_t hash, unsigned table)
{
    /* Bits of its own for each table: items that fall together in one must not do so in the next. */
    return &sketch->cells[(size_t)table * TABLE_CELLS + (hash >> table * TABLE_BITS) % TABLE_CELLS];
}

static void change(struct app_sketch *sketch, const struct app_sketch_item *item, int sign)
{
    uint64_t hash = hash_item(sketch, item);
    uint64_t factor = sign > 0 ? 1 : UINT64_MAX; /* modulo 2^64 */

    for (unsigned i = 0; i < TABLES; i++) {
        struct cell *cell = cell_of(sketch, hash, i);
        cell->count += sign;
        cell->checks += hash * factor;
        for (size_t k = 0; k < SKETCH_WORDS; k++) {
            cell->sums[k] += item->words[k] * factor;
        }
    }
}

void pawl__app_sketch_add(struct app_sketch *sketch, const struct app_sketch_item *item)
{
    change(sketch, item, 1);
}

void pawl__app_sketch_remove(struct app_sketch *sketch, const struct app_sketch_item *item)
{
    change(sketch, item, -1);
}

/* A cell with one item in it tells which. */
static bool is_pure(const struct app_sketch *sketch,
                    const struct cell *cell,
                    struct app_sketch_item *ret_item)
{
    uint64_t factor = cell->count > 0 ? 1 : UINT64_MAX;

    if (cell->count != 1 && cell->count != -1) {
        return false;
    }
    for (size_t i = 0; i < SKETCH_WORDS; i++) {
        ret_item->words[i] = cell->sums[i] * factor;
    }
    return cell->checks * factor == hash_item(sketch, ret_item);
}

bool pawl__app_sketch_name(struct app_sketch *sketch, app_sketch_visitor visitor, void *context)
{
    bool progress = true;
    bool left = false;

    while (progress) {
        progress = false;
        for (size_t i = 0; i < COUNT_OF(sketch->cells); i++) {
            struct app_sketch_item item;
            if (is_pure(sketch, &sketch->cells[i], &item)) {
                int sign = (int)sketch->cells[i].count;
                change(sketch, &item, -sign);
                visitor(context, &item, sign > 0);
                progress = true;
            }
        }
    }
    for (size_t i = 0; i < COUNT_OF(sketch->cells); i++) {
        left = left || sketch->cells[i].count != 0 || sketch->cells[i].checks != 0;
    }
    return !left;
}
