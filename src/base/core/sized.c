#include "base/core/sized.h"

#include <string.h>

#include "base/core/error.h"

pawl_status pawl__take_sized(
    const char *what, const void *given, void *taken, size_t size, pawl_error *reterr)
{
    size_t given_size = size;

    if (given == NULL) {
        return PAWL_OK;
    }
    memcpy(&given_size, given, sizeof(given_size));
    if (given_size < sizeof(given_size) || given_size > size) {
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_STRUCT_SIZE,
                                 "%s: size is %zu; start from the header's _INIT",
                                 what,
                                 given_size);
    }
    memcpy(taken, given, given_size);
    memcpy(taken, &size, sizeof(size));
    return PAWL_OK;
}
