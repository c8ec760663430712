/* gRPC's words on the wire: status codes, deadlines, percent-encoding, binary headers. Pure.
 *
 * A code of gRPC becomes a pawl_status, and the other way round, here and nowhere else. */
#ifndef PAWL_NET_H2_CORE_GRPC_H
#define PAWL_NET_H2_CORE_GRPC_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

enum pawl__h2_code {
    PAWL__H2_OK = 0,
    PAWL__H2_CANCELLED = 1,
    PAWL__H2_UNKNOWN = 2,
    PAWL__H2_INVALID_ARGUMENT = 3,
    PAWL__H2_DEADLINE_EXCEEDED = 4,
    PAWL__H2_NOT_FOUND = 5,
    PAWL__H2_ALREADY_EXISTS = 6,
    PAWL__H2_PERMISSION_DENIED = 7,
    PAWL__H2_RESOURCE_EXHAUSTED = 8,
    PAWL__H2_FAILED_PRECONDITION = 9,
    PAWL__H2_ABORTED = 10,
    PAWL__H2_OUT_OF_RANGE = 11,
    PAWL__H2_UNIMPLEMENTED = 12,
    PAWL__H2_INTERNAL = 13,
    PAWL__H2_UNAVAILABLE = 14,
    PAWL__H2_DATA_LOSS = 15,
    PAWL__H2_UNAUTHENTICATED = 16,
};

/* "NOT_FOUND"; a number that is no code: "UNKNOWN". */
const char *pawl__h2_code_name(int code);

/* "not_found", as Connect spells it, and the HTTP status that it has there. */
const char *pawl__h2_connect_name(int code);
unsigned pawl__h2_connect_status(int code);

/* What a server says when one of our calls failed so, and what a client understands by it. */
enum pawl__h2_code pawl__h2_code_of(pawl_status status);
pawl_status pawl__h2_status_of(int code);

/* What an HTTP status without grpc-status means: gRPC's own table. */
enum pawl__h2_code pawl__h2_code_of_http(unsigned http_status);

/* grpc-message: every byte but printable ASCII without '%' as %XX. */
void pawl__h2_percent_encode(pawl_view text, struct pawl__buf *out);
/* Never fails, as gRPC wants it: a '%' without two hex digits stays as it is. */
void pawl__h2_percent_decode(pawl_view text, struct pawl__buf *out);

/* grpc-timeout: "100m" is 100 ms. At most 8 digits and a unit of H M S m u n. A time that nanoseconds in 63 bits
 * cannot hold is the longest one that they can. */
PAWL_MUST_USE bool pawl__h2_timeout_parse(pawl_view text, int64_t *ret_ns);
#define PAWL__H2_TIMEOUT_SIZE 16
/* The shortest time that is not below `ns`, which is at least 0. */
void pawl__h2_timeout_format(int64_t ns, char ret_text[PAWL__H2_TIMEOUT_SIZE]);

/* Headers that end in -bin: base64, without padding when we write, with or without when we read. */
void pawl__h2_base64_encode(pawl_view bytes, struct pawl__buf *out);
PAWL_MUST_USE bool pawl__h2_base64_decode(pawl_view text, struct pawl__buf *out);

/* "/package.Service/Method": two names, each of letters, digits, '.' and '_'. */
PAWL_MUST_USE bool pawl__h2_path_split(pawl_view path,
                                       pawl_view *ret_service,
                                       pawl_view *ret_method);

#endif
