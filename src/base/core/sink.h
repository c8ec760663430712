/* Where bytes go: a file descriptor, a buffer, whatever the caller has. */
#ifndef PAWL_BASE_CORE_SINK_H
#define PAWL_BASE_CORE_SINK_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

struct pawl__sink {
    /* Takes all of the bytes, or fails. */
    pawl_status (*write)(void *context, pawl_view bytes, pawl_error *reterr);
    void *context;
};

PAWL_MUST_USE pawl_status pawl__sink_write(const struct pawl__sink *sink,
                                           pawl_view bytes,
                                           pawl_error *reterr);

struct pawl__sink pawl__sink_fd(int *fd);                /* borrows `fd` */
struct pawl__sink pawl__sink_buf(struct pawl__buf *buf); /* borrows `buf` */

#endif
