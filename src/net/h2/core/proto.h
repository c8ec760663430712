/* Bytes from outside to protobuf-c's structs, with the limits that protobuf-c lacks.
 *
 * The bytes are walked by the descriptors first: depth, number of messages and of unknown fields, UTF-8, NULs. Only then
 * does protobuf-c decode them, into an arena with a ceiling. The structs live as long as the arena. */
#ifndef PAWL_NET_H2_CORE_PROTO_H
#define PAWL_NET_H2_CORE_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "base/core/arena.h"
#include "base/core/buf.h"

struct pawl__h2_proto_limits {
    unsigned depth_max;  /* messages in messages: 1 is none in the outermost */
    size_t messages_max; /* all of them */
    size_t elements_max; /* of repeated fields, and fields set, all together */
    size_t unknown_max;  /* fields that the descriptors do not know: they are kept, which costs */
    size_t memory_max;   /* bytes of the decoded structs */
};

#define PAWL__H2_PROTO_LIMITS_INIT                                                                \
    {                                                                                             \
        .depth_max = 32, .messages_max = 1000000, .elements_max = 10000000, .unknown_max = 10000, \
        .memory_max = (size_t)256 << 20,                                                          \
    }

/* INVALID names the field, by its path: "resource_spans.scope_spans.name is not UTF-8". Pure. */
PAWL_MUST_USE pawl_status pawl__h2_proto_check(const ProtobufCMessageDescriptor *type,
                                               pawl_view bytes,
                                               const struct pawl__h2_proto_limits *limits,
                                               pawl_error *reterr);

/* Where decoded structs live. */
struct pawl__h2_proto_arena {
    struct pawl__arena arena;
    size_t used;
    size_t max;
    bool full;  /* something did not fit */
    bool nomem; /* because memory ran out */
};
void pawl__h2_proto_arena_done(struct pawl__h2_proto_arena *arena); /* for AUTO */
void pawl__h2_proto_arena_clear(
    struct pawl__h2_proto_arena *arena); /* keeps memory for the next message */

/* Checks and decodes. INVALID as above; NO_SPACE: over limits->memory_max; NOMEM. */
PAWL_MUST_USE pawl_status pawl__h2_proto_unpack(const ProtobufCMessageDescriptor *type,
                                                pawl_view bytes,
                                                const struct pawl__h2_proto_limits *limits,
                                                struct pawl__h2_proto_arena *arena,
                                                ProtobufCMessage **ret_message,
                                                pawl_error *reterr);

/* Appends the message's bytes. A buffer that is too small is broken. */
void pawl__h2_proto_pack(const ProtobufCMessage *message, struct pawl__buf *out);

/* --- reading without structs --- */

/* One field at the front of a message. */
struct pawl__h2_proto_field {
    uint32_t number;
    unsigned wire;   /* 0 varint, 1 64 bits, 2 bytes, 5 32 bits */
    uint64_t value;  /* of wire 0, 1 and 5 */
    pawl_view bytes; /* of wire 2 */
};

/* Takes it; false, `in` unmoved, when there is no whole one. Groups are none. */
PAWL_MUST_USE bool pawl__h2_proto_take(pawl_view *in, struct pawl__h2_proto_field *ret_field);

#endif
