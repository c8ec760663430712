/* Arrays of malloc that grow by doubling.
 *
 *     struct hole *holes = pawl__grow(writer->holes, writer->count, &writer->room, sizeof(*holes));
 *     if (holes == NULL) {
 *         return pawl__fail(reterr, PAWL_NOMEM, "no memory for a reference");
 *     }
 *     writer->holes = holes;
 *     holes[writer->count++] = hole; */
#ifndef PAWL_BASE_CORE_GROW_H
#define PAWL_BASE_CORE_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* The array with room for an element after the first `count`: moved and *room raised where there was none.
 * NULL without memory: the array stays as it was. */
static inline void *pawl__grow(void *array, size_t count, size_t *room, size_t element_size)
{
    if (count < *room) {
        return array;
    }
    size_t wanted = *room == 0 ? 8 : *room * 2;
    void *moved = wanted > SIZE_MAX / element_size ? NULL : realloc(array, wanted * element_size);
    *room = moved == NULL ? *room : wanted;
    return moved;
}

#endif
