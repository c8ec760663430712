/* Any bytes as JSON, for failed_events, and back. */
#ifndef PAWL_DELIVERY_CORE_ENCODE_H
#define PAWL_DELIVERY_CORE_ENCODE_H

#include "base/core/arena.h"
#include "delivery/core/message.h"

/* What is not JSON becomes {"base64": "..."}; what no column could hold is cut, and says how long it was:
 * {"base64": "...", "bytes": 70000000}. */
enum delivery_encoding {
    DELIVERY_AS_JSON,
    DELIVERY_AS_BASE64,
    DELIVERY_AS_BASE64_CUT,
};
const char *pawl__delivery_encoding_name(enum delivery_encoding encoding);

/* The payload as JSON in any case. */
PAWL_MUST_USE pawl_status pawl__delivery_payload_json(pawl_view payload,
                                                      struct pawl__arena *arena,
                                                      enum delivery_encoding *ret_encoding,
                                                      pawl_view *ret_json,
                                                      pawl_error *reterr);

/* The payload again. INVALID: only its beginning was kept. CORRUPT: nobody wrote this. */
PAWL_MUST_USE pawl_status pawl__delivery_payload_bytes(pawl_view json,
                                                       pawl_view encoding,
                                                       struct pawl__arena *arena,
                                                       pawl_view *ret_payload,
                                                       pawl_error *reterr);

/* The text with U+FFFD in place of NULs and of what is not UTF-8. */
PAWL_MUST_USE pawl_status pawl__delivery_clean_text(pawl_view text,
                                                    struct pawl__arena *arena,
                                                    pawl_view *ret_text,
                                                    pawl_error *reterr);

/* A list of [name, value]: a name may be there more than once. */
PAWL_MUST_USE pawl_status pawl__delivery_headers_json(const struct delivery_header *headers,
                                                      size_t count,
                                                      struct pawl__arena *arena,
                                                      pawl_view *ret_json,
                                                      pawl_error *reterr);
/* CORRUPT: it is no such list. */
PAWL_MUST_USE pawl_status pawl__delivery_headers_read(pawl_view json,
                                                      struct pawl__arena *arena,
                                                      const struct delivery_header **ret_headers,
                                                      size_t *ret_count,
                                                      pawl_error *reterr);

#endif
