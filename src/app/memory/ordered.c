#include "app/memory/ordered.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

int pawl__app_ordered_compare(pawl_view a, pawl_view b)
{
    size_t len = MIN(a.len, b.len);
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare(struct app_ordered *ordered, pawl_view a, pawl_view b)
{
    ordered->compared++;
    return pawl__app_ordered_compare(a, b);
}

void pawl__app_ordered_init(struct app_ordered *ordered)
{
    *ordered = (struct app_ordered){ .random = pawl__prng_seeded(1) };
}

void pawl__app_ordered_done(struct app_ordered *ordered)
{
    for (struct app_ordered_cell *cell = ordered->first[0]; cell != NULL;) {
        struct app_ordered_cell *after = cell->after[0];
        free(cell);
        cell = after;
    }
    pawl__app_ordered_init(ordered);
}

/* The links, by level, that lead to the first cell whose key is not below this one. */
static void find_links(struct app_ordered *ordered,
                       pawl_view key,
                       struct app_ordered_cell **ret_links[ORDERED_HEIGHT_MAX],
                       struct app_ordered_cell **ret_before)
{
    struct app_ordered_cell *before = NULL;

    for (unsigned level = ORDERED_HEIGHT_MAX; level-- > 0;) {
        struct app_ordered_cell **link =
            before == NULL ? &ordered->first[level] : &before->after[level];
        while (*link != NULL && compare(ordered, (*link)->key, key) < 0) {
            before = *link;
            link = &before->after[level];
        }
        ret_links[level] = link;
    }
    *ret_before = before;
}

struct app_ordered_cell *pawl__app_ordered_from(struct app_ordered *ordered, pawl_view key)
{
    struct app_ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct app_ordered_cell *before = NULL;

    find_links(ordered, key, links, &before);
    return *links[0];
}

struct app_ordered_cell *pawl__app_ordered_find(struct app_ordered *ordered, pawl_view key)
{
    struct app_ordered_cell *cell = pawl__app_ordered_from(ordered, key);

    return cell != NULL && compare(ordered, cell->key, key) == 0 ? cell : NULL;
}

/* One in four is a level higher than the others. */
static unsigned draw_height(struct app_ordered *ordered)
{
    unsigned height = 1;

    for (uint64_t bits = pawl__prng_next(&ordered->random);
         height < ORDERED_HEIGHT_MAX && (bits & 3) == 0;
         bits >>= 2) {
        height++;
    }
    return height;
}

struct app_ordered_cell *pawl__app_ordered_cell(struct app_ordered *ordered,
                                                pawl_view key,
                                                pawl_view value)
{
    unsigned height = draw_height(ordered);
    struct app_ordered_cell *cell = NULL;
    size_t links = height * sizeof(struct app_ordered_cell *);

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
    *cell = (struct app_ordered_cell){ .key = { bytes, key.len },
                                       .value = { &bytes[key.len], value.len },
                                       .height = height };
    return cell;
}

static void set_before(struct app_ordered *ordered,
                       struct app_ordered_cell *cell,
                       struct app_ordered_cell *before)
{
    if (cell == NULL) {
        ordered->last = before;
    } else {
        cell->before = before;
    }
}

static void remove_cell(struct app_ordered *ordered,
                        struct app_ordered_cell **links[ORDERED_HEIGHT_MAX],
                        struct app_ordered_cell *before)
{
    struct app_ordered_cell *cell = *links[0];

    for (unsigned level = 0; level < cell->height; level++) {
        *links[level] = cell->after[level];
    }
    set_before(ordered, cell->after[0], before);
    ordered->count--;
    free(cell);
}

void pawl__app_ordered_put(struct app_ordered *ordered, struct app_ordered_cell *cell)
{
    struct app_ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct app_ordered_cell *before = NULL;

    find_links(ordered, cell->key, links, &before);
    if (*links[0] != NULL && compare(ordered, (*links[0])->key, cell->key) == 0) {
        remove_cell(ordered, links, before);
    }
    for (unsigned level = 0; level < cell->height; level++) {
        cell->after[level] = *links[level];
        *links[level] = cell;
    }
    cell->before = before;
    set_before(ordered, cell->after[0], cell);
    ordered->count++;
}

void pawl__app_ordered_delete(struct app_ordered *ordered, pawl_view key)
{
    struct app_ordered_cell **links[ORDERED_HEIGHT_MAX];
    struct app_ordered_cell *before = NULL;

    find_links(ordered, key, links, &before);
    if (*links[0] != NULL && compare(ordered, (*links[0])->key, key) == 0) {
        remove_cell(ordered, links, before);
    }
}
