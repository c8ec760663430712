#include "base/thread/inside.h"

#include <stddef.h>

static _Thread_local struct pawl__inside *innermost;

void pawl__inside_enter(struct pawl__inside *inside, const void *object)
{
    inside->object = object;
    inside->outer = innermost;
    innermost = inside;
}

void pawl__inside_leave(struct pawl__inside *inside)
{
    innermost = inside->outer;
}

bool pawl__is_inside(const void *object)
{
    for (const struct pawl__inside *at = innermost; at != NULL; at = at->outer) {
        if (at->object == object) {
            return true;
        }
    }
    return false;
}
