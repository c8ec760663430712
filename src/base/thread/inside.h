/* Which objects' callbacks a thread is in. A callback that calls back into its object would wait for itself
 * or take away what its caller still uses: the object asks, and refuses with a status.
 *
 *     INSIDE(app);
 *     return visitor(context, &record, reterr); */
#ifndef PAWL_BASE_THREAD_INSIDE_H
#define PAWL_BASE_THREAD_INSIDE_H

#include <stdbool.h>

#include "base/core/macros.h"

struct pawl__inside {
    const void *object;
    struct pawl__inside *outer;
};

/* On the stack of the caller; the last one entered is the first one left. */
void pawl__inside_enter(struct pawl__inside *inside, const void *object);
void pawl__inside_leave(struct pawl__inside *inside);

/* From here to the end of the scope. */
#define INSIDE(object_)                                   \
    AUTO(pawl__inside_leave) struct pawl__inside inside_; \
    pawl__inside_enter(&inside_, (object_))

/* Whether this thread is in a callback of the object. */
bool pawl__is_inside(const void *object);

#endif
