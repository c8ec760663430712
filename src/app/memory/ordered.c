#include "app/memory/ordered.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

int pawl__ordered_compare(pawl_view a, pawl_view b)
{
    size_t len = MIN(a.len, b.len);
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare(struct ordered *ordered, pawl_view a, pawl_view b)
{
    ordered->compared++;
    return pawl__ordered_compare(a, b);
}

void pawl__ordered_init(struct ordered *ordered)
{
    *ordered = (struct ordered){ .random = pawl__prng_seeded(1) };
}

void pawl__ordered_done(struct ordered *ordered)
{
    for (struct ordered_cell *cell = ordered->first[0]; cell != NULL;) {
        struct ordered_cell *after = cell->after[0];
        free(cell);
        cell = after;
    }
    pawl__ordered_init(ordered);
}

/* The links, by level, that lead to the first cell whose key is not below this one. */
static void find_links(struct ordered *ordered,
                       pawl_view key,
                       struct ordered_cell **ret_links[ORDERED_HEIGHT_MAX],
                       struct ordered_cell **ret_before)
{
    struct ordered_cell *before = NULL;

    for (unsigned level = ORDERED_HEIGHT_MAX; level-- > 0;) {
        struct ordered_cell **link =
            before == NULL ? &ordered->first[level] : &before->after[level];
        while (*link != NULL && compare(ordered, (*link)->key, key) < 0) {
            before = *link;
            link = &before->after[level];
        }
        ret_links[level] = link;
    }
    *ret_before = before;
}

struct ordered_cell *pawl__ordered_from(struct ordered *ordered, pawl_view key)
{
    struct ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct ordered_cell *before = NULL;

    find_links(ordered, key, links, &before);
    return *links[0];
}

struct ordered_cell *pawl__ordered_find(struct ordered *ordered, pawl_view key)
{
    struct ordered_cell *cell = pawl__ordered_from(ordered, key);

    return cell != NULL && compare(ordered, cell->key, key) == 0 ? cell : NULL;
}

/* One in four is a level higher than the others. */
static unsigned draw_height(struct ordered *ordered)
{
    unsigned height = 1;

    for (uint64_t bits = pawl__prng_next(&ordered->random);
         height < ORDERED_HEIGHT_MAX && (bits & 3) == 0;
         bits >>= 2) {
        height++;
    }
    return height;
}

struct ordered_cell *pawl__ordered_cell(struct ordered *ordered, pawl_view key, pawl_view value)
{
    unsigned height = draw_height(ordered);
    struct ordered_cell *cell = NULL;
    size_t links = height * sizeof(struct ordered_cell *);

    cell = malloc(sizeof(*cell) + links + key.len + value.len);
    if (cell == NULL) {
        return NULL;
    }
    char *bytes = (char *)&cell->after[height];
    if (key.len > 0) {
        memcpy(bytes, key.data, key.len);
    }
    if (value.len > 0) {
        memcpy(&bytes[key.len], value.data, value.len);
    }
    *cell = (struct ordered_cell){ .key = { bytes, key.len },
                                   .value = { &bytes[key.len], value.len },
                                   .height = height };
    return cell;
}

static void set_before(struct ordered *ordered,
                       struct ordered_cell *cell,
                       struct ordered_cell *before)
{
    if (cell == NULL) {
        ordered->last = before;
    } else {
        cell->before = before;
    }
}

static void take_out(struct ordered *ordered,
                     struct ordered_cell **links[ORDERED_HEIGHT_MAX],
                     struct ordered_cell *before)
{
    struct ordered_cell *cell = *links[0];

    for (unsigned level = 0; level < cell->height; level++) {
        *links[level] = cell->after[level];
    }
    set_before(ordered, cell->after[0], before);
    ordered->count--;
    free(cell);
}

void pawl__ordered_put(struct ordered *ordered, struct ordered_cell *cell)
{
    struct ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct ordered_cell *before = NULL;

    find_links(ordered, cell->key, links, &before);
    if (*links[0] != NULL && compare(ordered, (*links[0])->key, cell->key) == 0) {
        take_out(ordered, links, before);
    }
    for (unsigned level = 0; level < cell->height; level++) {
        cell->after[level] = *links[level];
        *links[level] = cell;
    }
    cell->before = before;
    set_before(ordered, cell->after[0], cell);
    ordered->count++;
}

void pawl__ordered_delete(struct ordered *ordered, pawl_view key)
{
    struct ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct ordered_cell *before = NULL;

    find_links(ordered, key, links, &before);
    if (*links[0] != NULL && compare(ordered, (*links[0])->key, key) == 0) {
        take_out(ordered, links, before);
    }
}
