#include "base/core/sized.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

static size_t size_of(const void *sized)
{
    size_t size = 0;

    memcpy(&size, sized, sizeof(size));
    return size;
}

/* Every struct begins with a size_t, so any version of it ends at a multiple of one. Anything else would end in the
 * middle of a pointer. */
static bool is_possible(size_t size)
{
    return size >= sizeof(size) && size % sizeof(size) == 0;
}

static pawl_status refuse(const char *what, size_t given, pawl_error *reterr)
{
    return pawl__fail_detail(reterr,
                             PAWL_INVALID,
                             PAWL_DETAIL_STRUCT_SIZE,
                             "%s: size is %zu; start from the header's _INIT",
                             what,
                             given);
}

pawl_status pawl__take_sized(
    const char *what, const void *given, void *taken, size_t size, pawl_error *reterr)
{
    if (given == NULL) {
        return PAWL_OK;
    }
    size_t given_size = size_of(given);
    if (!is_possible(given_size) || given_size > size) {
        return refuse(what, given_size, reterr);
    }
    memcpy(taken, given, given_size);
    memcpy(taken, &size, sizeof(size));
    return PAWL_OK;
}

pawl_status pawl__take_sized_array(const char *what,
                                   const void *given,
                                   size_t count,
                                   const void *defaults,
                                   void *taken,
                                   size_t size,
                                   pawl_error *reterr)
{
    size_t step = count == 0 ? 0 : size_of(given);

    for (size_t i = 0; i < count; i++) {
        const char *from = (const char *)given + i * step;
        char *to = (char *)taken + i * size;

        if (size_of(from) != step) {
            return pawl__mark_index(reterr, i, refuse(what, size_of(from), reterr));
        }
        if (step < size) {
            memcpy(to, defaults, size);
        }
        pawl_status status = pawl__take_sized(what, from, to, size, reterr);
        if (status != PAWL_OK) {
            return pawl__mark_index(reterr, i, status);
        }
    }
    return PAWL_OK;
}

static bool all_of_size(const char *array, size_t count, size_t size)
{
    size_t i = 0;

    while (i < count && size_of(array + i * size) == size) {
        i++;
    }
    return i == count;
}

pawl_status pawl__widen_sized(const char *what,
                              const void **array,
                              size_t count,
                              const void *defaults,
                              size_t size,
                              struct pawl__arena *arena,
                              pawl_error *reterr)
{
    if (count == 0 || all_of_size(*array, count, size)) {
        return PAWL_OK;
    }
    void *wide = count > SIZE_MAX / size ? NULL : pawl__arena_take(arena, count * size);
    if (wide == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %s", what);
    }
    pawl_status status = pawl__take_sized_array(what, *array, count, defaults, wide, size, reterr);
    *array = wide;
    return status;
}

pawl_status pawl__check_sized(const char *what, const void *ret, pawl_error *reterr)
{
    return ret == NULL || is_possible(size_of(ret)) ? PAWL_OK : refuse(what, size_of(ret), reterr);
}

void pawl__give_sized(const void *made, size_t size, void *ret)
{
    if (ret != NULL) {
        size_t filled = MIN(size, size_of(ret));

        memcpy(ret, made, filled);
        memcpy(ret, &filled, sizeof(filled));
    }
}

void pawl__give_sized_array(const void *made, size_t count, size_t size, void *ret)
{
    size_t step = ret == NULL || count == 0 ? 0 : size_of(ret);

    for (size_t i = 0; ret != NULL && i < count; i++) {
        char *to = (char *)ret + i * step;

        memcpy(to, &step, sizeof(step));
        pawl__give_sized((const char *)made + i * size, size, to);
    }
}
