/* The header Idempotency-Key. Pure. */
#ifndef PAWL_SERVER_IDEMPOTENCY_H
#define PAWL_SERVER_IDEMPOTENCY_H

#include "base/core/buf.h"

enum { IDEMPOTENCY_KEY_MAX = 255, IDEMPOTENCY_HEADER_SIZE = 2 * IDEMPOTENCY_KEY_MAX + 4 };

/* The key of a header: visible ASCII as it is, or a string of structured fields, "..." with \" and \\.
 * 1 to IDEMPOTENCY_KEY_MAX bytes; INVALID says what is wrong. */
PAWL_MUST_USE pawl_status pawl__serve_idempotency_key(const char *header,
                                                      struct pawl__buf *ret_key,
                                                      pawl_error *reterr);

#endif
