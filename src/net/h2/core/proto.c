#include "net/h2/core/proto.h"

#include <string.h>

#include "base/core/error.h"

enum { VARINT_MAX = 10, NUMBER_MAX = (1 << 29) - 1, PATH_SIZE = 200 };

/* --- fields --- */

static bool take_varint(pawl_view *in, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < VARINT_MAX && i < in->len; i++) {
        uint8_t byte = (uint8_t)in->data[i];
        if (i == VARINT_MAX - 1 && byte > 1) {
            return false; /* over 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            pawl_view taken = { 0 };
            *ret_value = value;
            return pawl__view_take(in, i + 1, &taken);
        }
    }
    return false;
}

static bool take_value(pawl_view *in, struct pawl__h2_proto_field *field)
{
    uint32_t narrow = 0;
    uint64_t len = 0;

    switch (field->wire) {
    case 0:
        return take_varint(in, &field->value);
    case 1:
        return pawl__view_take_u64le(in, &field->value);
    case 2:
        return take_varint(in, &len) && len <= in->len
               && pawl__view_take(in, (size_t)len, &field->bytes);
    case 5:
        if (!pawl__view_take_u32le(in, &narrow)) {
            return false;
        }
        field->value = narrow;
        return true;
    default:
        return false;
    }
}

bool pawl__h2_proto_take(pawl_view *in, struct pawl__h2_proto_field *ret_field)
{
    struct pawl__h2_proto_field field = { .number = 0 };
    pawl_view rest = *in;
    uint64_t tag = 0;

    if (!take_varint(&rest, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX) {
        return false;
    }
    field.number = (uint32_t)(tag >> 3);
    field.wire = (unsigned)(tag & 7);
    if (!take_value(&rest, &field)) {
        return false;
    }
    *in = rest;
    *ret_field = field;
    return true;
}

/* --- the walk --- */

struct walk {
    const struct pawl__h2_proto_limits *limits;
    size_t messages;
    size_t elements;
    size_t unknown;
    char path[PATH_SIZE]; /* of the field that is looked at */
    size_t path_len;
    pawl_error *reterr;
};

static pawl_status walk_message(struct walk *walk,
                                const ProtobufCMessageDescriptor *type,
                                pawl_view bytes,
                                unsigned depth);

static pawl_status bad(struct walk *walk, const char *what)
{
    return pawl__fail(walk->reterr,
                      PAWL_INVALID,
                      "protobuf: %s%s%s",
                      walk->path,
                      walk->path[0] == '\0' ? "" : " ",
                      what);
}

static void push(struct walk *walk, const char *name)
{
    size_t len = strlen(name);

    if (walk->path_len + len + 2 < PATH_SIZE) {
        if (walk->path_len > 0) {
            walk->path[walk->path_len++] = '.';
        }
        memcpy(&walk->path[walk->path_len], name, len + 1);
        walk->path_len += len;
    }
}

static void pop(struct walk *walk, size_t len)
{
    walk->path_len = len;
    walk->path[len] = '\0';
}

/* Which wire type the elements of a type have. */
static unsigned wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 5;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 1;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 2;
    default:
        return 0;
    }
}

static pawl_status count_elements(struct walk *walk, size_t more)
{
    walk->elements += more;
    return walk->elements <= walk->limits->elements_max ? PAWL_OK
                                                        : bad(walk, "has too many elements");
}

static pawl_status walk_packed(struct walk *walk, unsigned wire, pawl_view bytes)
{
    size_t width = wire == 1 ? 8 : 4;
    uint64_t value = 0;

    if (wire != 0) {
        TRY(count_elements(walk, bytes.len / width));
        return bytes.len % width == 0 ? PAWL_OK : bad(walk, "is cut off");
    }
    while (bytes.len > 0) {
        if (!take_varint(&bytes, &value)) {
            return bad(walk, "is cut off");
        }
        TRY(count_elements(walk, 1));
    }
    return PAWL_OK;
}

static pawl_status walk_bytes(struct walk *walk,
                              const ProtobufCFieldDescriptor *field,
                              pawl_view bytes,
                              unsigned depth)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return walk_message(walk, field->descriptor, bytes, depth + 1);
    }
    if (field->type != PROTOBUF_C_TYPE_STRING) {
        return PAWL_OK;
    }
    if (!pawl__view_is_plain(bytes) && !pawl__view_is_utf8(bytes)) {
        return bad(walk, "is not UTF-8");
    }
    /* protobuf-c's strings end at the first one */
    return bytes.len > 0 && memchr(bytes.data, '\0', bytes.len) != NULL ? bad(walk, "has a NUL")
                                                                        : PAWL_OK;
}

static pawl_status walk_field(struct walk *walk,
                              const ProtobufCFieldDescriptor *field,
                              const struct pawl__h2_proto_field *found,
                              unsigned depth)
{
    unsigned wire = wire_of(field->type);

    if (found->wire == 2 && wire != 2 && field->label == PROTOBUF_C_LABEL_REPEATED) {
        return walk_packed(walk, wire, found->bytes);
    }
    if (found->wire != wire) {
        return bad(walk, "has another type");
    }
    TRY(count_elements(walk, 1));
    return wire == 2 ? walk_bytes(walk, field, found->bytes, depth) : PAWL_OK;
}

static pawl_status walk_message(struct walk *walk,
                                const ProtobufCMessageDescriptor *type,
                                pawl_view bytes,
                                unsigned depth)
{
    struct pawl__h2_proto_field found = { .number = 0 };
    size_t path_len = walk->path_len;

    if (depth > walk->limits->depth_max) {
        return bad(walk, "is nested too deeply");
    }
    if (++walk->messages > walk->limits->messages_max) {
        return bad(walk, "is one message too many");
    }
    while (bytes.len > 0) {
        if (!pawl__h2_proto_take(&bytes, &found)) {
            return bad(walk, "is cut off, or no protobuf");
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, found.number);
        if (field == NULL && ++walk->unknown > walk->limits->unknown_max) {
            return bad(walk, "has too many unknown fields");
        }
        if (field != NULL) {
            push(walk, field->name);
            TRY(walk_field(walk, field, &found, depth));
            pop(walk, path_len);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__h2_proto_check(const ProtobufCMessageDescriptor *type,
                                 pawl_view bytes,
                                 const struct pawl__h2_proto_limits *limits,
                                 pawl_error *reterr)
{
    struct walk walk = { .limits = limits, .reterr = reterr };

    return walk_message(&walk, type, bytes, 1);
}

/* --- structs --- */

void pawl__h2_proto_arena_done(struct pawl__h2_proto_arena *arena)
{
    pawl__arena_done(&arena->arena);
    arena->used = 0;
}

void pawl__h2_proto_arena_clear(struct pawl__h2_proto_arena *arena)
{
    pawl__arena_clear(&arena->arena);
    arena->used = 0;
}

static void *arena_alloc(void *data, size_t size)
{
    struct pawl__h2_proto_arena *arena = data;

    arena->full = arena->full || size > arena->max - arena->used;
    if (arena->full) {
        return NULL;
    }
    arena->used += size;
    void *memory = pawl__arena_take(&arena->arena, size);
    arena->full = arena->nomem = memory == NULL;
    return memory;
}

static void arena_free(void *data, void *memory)
{
    (void)data;
    (void)memory; /* all of it ends together */
}

pawl_status pawl__h2_proto_unpack(const ProtobufCMessageDescriptor *type,
                                  pawl_view bytes,
                                  const struct pawl__h2_proto_limits *limits,
                                  struct pawl__h2_proto_arena *arena,
                                  ProtobufCMessage **ret_message,
                                  pawl_error *reterr)
{
    ProtobufCAllocator allocator = { .alloc = arena_alloc,
                                     .free = arena_free,
                                     .allocator_data = arena };

    TRY(pawl__h2_proto_check(type, bytes, limits, reterr));
    arena->max = arena->used + MIN(limits->memory_max, SIZE_MAX - arena->used);
    arena->full = arena->nomem = false;
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &allocator, bytes.len, (const uint8_t *)bytes.data);
    if (message == NULL && arena->nomem) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a '%s'", type->name);
    }
    if (message == NULL && arena->full) {
        return pawl__fail(
            reterr, PAWL_NO_SPACE, "protobuf: over %zu bytes when decoded", limits->memory_max);
    }
    if (message == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "protobuf: not a '%s'", type->name);
    }
    *ret_message = message;
    return PAWL_OK;
}

void pawl__h2_proto_pack(const ProtobufCMessage *message, struct pawl__buf *out)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    char *room = pawl__buf_extend(out, len);

    if (room != NULL) {
        (void)protobuf_c_message_pack(message, (uint8_t *)room);
    }
}
