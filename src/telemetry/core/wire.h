/* Protobuf's wire format: fields in and out, no messages. Nothing here allocates or recurses, so a message cannot
 * cost more than its bytes; a reader bounds its own depth. */
#ifndef PAWL_TELEMETRY_CORE_WIRE_H
#define PAWL_TELEMETRY_CORE_WIRE_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

enum telemetry_wire {
    TELEMETRY_VARINT = 0,
    TELEMETRY_FIXED64 = 1,
    TELEMETRY_BYTES = 2,
    TELEMETRY_FIXED32 = 5,
};

struct telemetry_field {
    uint32_t number;
    enum telemetry_wire wire;
    uint64_t number_value; /* VARINT, FIXED64, FIXED32 */
    pawl_view bytes;       /* BYTES */
};

/* The next field of `in`, which moves past it. *ret_more false: `in` was empty. INVALID: not protobuf (a cut field, a
 * group, field number 0, a varint over 64 bits). */
PAWL_MUST_USE pawl_status pawl__telemetry_field_next(pawl_view *in,
                                                     struct telemetry_field *ret_field,
                                                     bool *ret_more,
                                                     pawl_error *reterr);

/* INVALID unless the field is of this wire type. */
PAWL_MUST_USE pawl_status pawl__telemetry_field_expect(const struct telemetry_field *field,
                                                       enum telemetry_wire wire,
                                                       const char *what,
                                                       pawl_error *reterr);

/* The text of a string field: INVALID when it is not UTF-8 or has a NUL inside. */
PAWL_MUST_USE pawl_status pawl__telemetry_field_text(const struct telemetry_field *field,
                                                     const char *what,
                                                     pawl_view *ret_text,
                                                     pawl_error *reterr);

double pawl__telemetry_field_double(const struct telemetry_field *field); /* FIXED64 */

/* Writing. Values that proto3 leaves out (0, "", false) are the caller's to leave out. */
void pawl__telemetry_put_varint(struct pawl__buf *buf, uint64_t value);
void pawl__telemetry_put_number(struct pawl__buf *buf, uint32_t field, uint64_t value);
void pawl__telemetry_put_double(struct pawl__buf *buf, uint32_t field, double value);
void pawl__telemetry_put_bytes(struct pawl__buf *buf, uint32_t field, pawl_view bytes);
size_t pawl__telemetry_varint_size(uint64_t value);

#endif
