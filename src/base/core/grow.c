#include "base/core/grow.h"

#include <stdint.h>
#include <stdlib.h>

enum { ROOM_MIN = 8 };

void *pawl__grow(void *array, size_t count, size_t *room, size_t element_size)
{
    if (count < *room) {
        return array;
    }
    size_t wanted = *room == 0 ? ROOM_MIN : *room * 2;
    void *moved = wanted > SIZE_MAX / element_size ? NULL : realloc(array, wanted * element_size);
    *room = moved == NULL ? *room : wanted;
    return moved;
}
