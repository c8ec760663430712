#include "telemetry/core/dedupe.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* A ring of names in their order, and a table of places in the ring with linear probing. */
struct telemetry_window {
    size_t max;
    size_t oldest;
    size_t count;
    size_t slots; /* a power of two, at least twice `max` */
    struct telemetry_row_key *ring;
    uint32_t *table; /* a place in the ring + 1; 0: free */
};

pawl_status pawl__telemetry_window_new(size_t names_max,
                                       struct telemetry_window **ret_window,
                                       pawl_error *reterr)
{
    AUTO(pawl__telemetry_window_free_p)
    struct telemetry_window *window = calloc(1, sizeof(*window));

    TRY(pawl__check_memory(window, "a window of names", reterr));
    REQUIRE(names_max > 0 && names_max < UINT32_MAX / 4);
    window->max = names_max;
    window->slots = 16;
    while (window->slots < names_max * 2) {
        window->slots *= 2;
    }
    window->ring = calloc(names_max, sizeof(*window->ring));
    window->table = calloc(window->slots, sizeof(*window->table));
    TRY(pawl__check_memory(window->ring, "a window of names", reterr));
    TRY(pawl__check_memory(window->table, "a window of names", reterr));
    *ret_window = STEAL(window);
    return PAWL_OK;
}

void pawl__telemetry_window_free(struct telemetry_window *window)
{
    if (window != NULL) {
        free(window->ring);
        free(window->table);
        free(window);
    }
}

static size_t home(const struct telemetry_window *window, const struct telemetry_row_key *key)
{
    uint64_t word;

    memcpy(&word, key->bytes, sizeof(word)); /* of a SHA-256: as good as random */
    return (size_t)word & (window->slots - 1);
}

/* Its slot, or the free one where it would stand. */
static size_t find(const struct telemetry_window *window, const struct telemetry_row_key *key)
{
    size_t i = home(window, key);

    while (window->table[i] != 0
           && memcmp(&window->ring[window->table[i] - 1], key, sizeof(*key)) != 0) {
        i = (i + 1) & (window->slots - 1);
    }
    return i;
}

/* Those behind a slot that becomes free move up, as long as they may. */
static void free_slot(struct telemetry_window *window, size_t hole)
{
    const size_t mask = window->slots - 1;

    for (size_t i = (hole + 1) & mask; window->table[i] != 0; i = (i + 1) & mask) {
        size_t wanted = home(window, &window->ring[window->table[i] - 1]);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            window->table[hole] = window->table[i];
            hole = i;
        }
    }
    window->table[hole] = 0;
}

bool pawl__telemetry_window_has(const struct telemetry_window *window,
                                const struct telemetry_row_key *key)
{
    return window->table[find(window, key)] != 0;
}

void pawl__telemetry_window_add(struct telemetry_window *window,
                                const struct telemetry_row_key *key)
{
    if (window->count == window->max) {
        free_slot(window, find(window, &window->ring[window->oldest]));
        window->oldest = (window->oldest + 1) % window->max;
        window->count--;
    }
    size_t place = (window->oldest + window->count) % window->max;
    size_t slot = find(window, key);
    REQUIRE(window->table[slot] == 0);
    window->ring[place] = *key;
    window->table[slot] = (uint32_t)place + 1;
    window->count++;
}

void pawl__telemetry_window_undo(struct telemetry_window *window, size_t count)
{
    for (; count > 0 && window->count > 0; count--) {
        size_t place = (window->oldest + window->count - 1) % window->max;
        free_slot(window, find(window, &window->ring[place]));
        window->count--;
    }
}

size_t pawl__telemetry_window_count(const struct telemetry_window *window)
{
    return window->count;
}
