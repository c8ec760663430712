#include "net/h2/budget.h"

#include <malloc.h>
#include <stdlib.h>

static bool take(struct pawl__h2_budget *budget, size_t bytes, size_t max)
{
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);

    do {
        if (bytes > max || used > max - bytes) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &budget->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool pawl__h2_budget_take(struct pawl__h2_budget *budget, size_t bytes)
{
    return take(budget, bytes, budget->max - budget->max / 8);
}

void pawl__h2_budget_give(struct pawl__h2_budget *budget, size_t bytes)
{
    atomic_fetch_sub_explicit(&budget->used, bytes, memory_order_relaxed);
}

/* What malloc really gave is what is counted: it can be asked again when the memory is freed. */
static void *counted(struct pawl__h2_budget *budget, void *memory)
{
    if (memory != NULL && !take(budget, malloc_usable_size(memory), budget->max)) {
        free(memory);
        return NULL;
    }
    return memory;
}

static void *mem_malloc(size_t size, void *user)
{
    return counted(user, malloc(size));
}

static void *mem_calloc(size_t count, size_t size, void *user)
{
    return counted(user, calloc(count, size));
}

static void mem_free(void *memory, void *user)
{
    if (memory != NULL) {
        pawl__h2_budget_give(user, malloc_usable_size(memory));
        free(memory);
    }
}

static void *mem_realloc(void *memory, size_t size, void *user)
{
    if (memory == NULL) {
        return mem_malloc(size, user);
    }
    size_t before = malloc_usable_size(memory);
    if (size > before && !take(user, size - before, ((struct pawl__h2_budget *)user)->max)) {
        return NULL;
    }
    void *moved = realloc(memory, size);
    size_t taken = size > before ? size : before;
    if (moved == NULL) {
        pawl__h2_budget_give(user, taken - before);
        return NULL;
    }
    /* The difference may be of either sign; unsigned arithmetic wraps to the right sum. */
    atomic_fetch_add_explicit(&((struct pawl__h2_budget *)user)->used,
                              malloc_usable_size(moved) - taken,
                              memory_order_relaxed);
    return moved;
}

nghttp2_mem pawl__h2_budget_mem(struct pawl__h2_budget *budget)
{
    return (nghttp2_mem){ .mem_user_data = budget,
                          .malloc = mem_malloc,
                          .free = mem_free,
                          .calloc = mem_calloc,
                          .realloc = mem_realloc };
}
