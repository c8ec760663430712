/* The description of the API (OpenAPI 3.1), made of the declared routes. */
#ifndef PAWL_SERVER_OPENAPI_H
#define PAWL_SERVER_OPENAPI_H

#include "base/core/buf.h"
#include "server/part.h"

/* Adds the document of `count` parts. NOMEM. */
PAWL_MUST_USE pawl_status pawl__serve_openapi_write(const struct pawl__serve_part *const *parts,
                                                    size_t count,
                                                    struct pawl__buf *buf,
                                                    pawl_error *reterr);

#endif
