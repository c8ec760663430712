/* gzip with a bound on what comes out. Pure. */
#ifndef PAWL_NET_H2_CORE_GZIP_H
#define PAWL_NET_H2_CORE_GZIP_H

#include "base/core/buf.h"

/* Appends what `packed` holds. INVALID: it is not one whole gzip member, or bytes follow it. NO_SPACE: it would pass the
 * buffer's ceiling; at most a ceiling of memory was used to find out. NOMEM. */
PAWL_MUST_USE pawl_status pawl__h2_gunzip(pawl_view packed,
                                          struct pawl__buf *out,
                                          pawl_error *reterr);

/* Appends `bytes` packed, by the fastest level. NOMEM; NO_SPACE: the buffer is too small. */
PAWL_MUST_USE pawl_status pawl__h2_gzip(pawl_view bytes, struct pawl__buf *out, pawl_error *reterr);

#endif
