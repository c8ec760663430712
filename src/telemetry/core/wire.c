#include "telemetry/core/wire.h"

#include <string.h>

#include "base/core/error.h"

enum { FIELD_MAX = (1 << 29) - 1 };

static pawl_status take_varint(pawl_view *in, uint64_t *ret_value, pawl_error *reterr)
{
    uint64_t value = 0;
    uint8_t byte = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (!pawl__view_take_u8(in, &byte)) {
            return pawl__fail(reterr, PAWL_INVALID, "not protobuf: a number is cut off");
        }
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr, PAWL_INVALID, "not protobuf: a number has more than 64 bits");
}

static pawl_status take_value(pawl_view *in, struct telemetry_field *field, pawl_error *reterr)
{
    uint64_t len = 0;
    uint32_t small = 0;
    bool is_whole = true;

    switch (field->wire) {
    case TELEMETRY_VARINT:
        return take_varint(in, &field->number_value, reterr);
    case TELEMETRY_FIXED64:
        is_whole = pawl__view_take_u64le(in, &field->number_value);
        break;
    case TELEMETRY_FIXED32:
        is_whole = pawl__view_take_u32le(in, &small);
        field->number_value = small;
        break;
    case TELEMETRY_BYTES:
        TRY(take_varint(in, &len, reterr));
        is_whole = len <= in->len && pawl__view_take(in, (size_t)len, &field->bytes);
        break;
    default:
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "not protobuf: field %u has wire type %d",
                          field->number,
                          (int)field->wire);
    }
    return is_whole ? PAWL_OK
                    : pawl__fail(
                        reterr, PAWL_INVALID, "not protobuf: field %u is cut off", field->number);
}

pawl_status pawl__telemetry_field_next(pawl_view *in,
                                       struct telemetry_field *ret_field,
                                       bool *ret_more,
                                       pawl_error *reterr)
{
    struct telemetry_field field = { .number = 0 };
    uint64_t tag = 0;

    *ret_more = in->len > 0;
    if (!*ret_more) {
        return PAWL_OK;
    }
    TRY(take_varint(in, &tag, reterr));
    if (tag >> 3 == 0 || tag >> 3 > FIELD_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "not protobuf: no field has this number");
    }
    field.number = (uint32_t)(tag >> 3);
    field.wire = (enum telemetry_wire)(tag & 7);
    TRY(take_value(in, &field, reterr));
    *ret_field = field;
    return PAWL_OK;
}

pawl_status pawl__telemetry_field_expect(const struct telemetry_field *field,
                                         enum telemetry_wire wire,
                                         const char *what,
                                         pawl_error *reterr)
{
    return field->wire == wire ? PAWL_OK
                               : pawl__fail(reterr,
                                            PAWL_INVALID,
                                            "%s: wire type %d instead of %d",
                                            what,
                                            (int)field->wire,
                                            (int)wire);
}

pawl_status pawl__telemetry_field_text(const struct telemetry_field *field,
                                       const char *what,
                                       pawl_view *ret_text,
                                       pawl_error *reterr)
{
    TRY(pawl__telemetry_field_expect(field, TELEMETRY_BYTES, what, reterr));
    if (!pawl__view_is_plain(field->bytes)
        && (!pawl__view_is_utf8(field->bytes)
            || memchr(field->bytes.data, '\0', field->bytes.len) != NULL)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: not UTF-8, or a NUL inside", what);
    }
    *ret_text = field->bytes;
    return PAWL_OK;
}

double pawl__telemetry_field_double(const struct telemetry_field *field)
{
    double value;

    memcpy(&value, &field->number_value, sizeof(value));
    return value;
}

void pawl__telemetry_put_varint(struct pawl__buf *buf, uint64_t value)
{
    while (value >= 0x80) {
        pawl__buf_add_u8(buf, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    pawl__buf_add_u8(buf, (uint8_t)value);
}

void pawl__telemetry_put_number(struct pawl__buf *buf, uint32_t field, uint64_t value)
{
    pawl__telemetry_put_varint(buf, (uint64_t)field << 3 | TELEMETRY_VARINT);
    pawl__telemetry_put_varint(buf, value);
}

void pawl__telemetry_put_double(struct pawl__buf *buf, uint32_t field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    pawl__telemetry_put_varint(buf, (uint64_t)field << 3 | TELEMETRY_FIXED64);
    pawl__buf_add_u64le(buf, bits);
}

void pawl__telemetry_put_bytes(struct pawl__buf *buf, uint32_t field, pawl_view bytes)
{
    pawl__telemetry_put_varint(buf, (uint64_t)field << 3 | TELEMETRY_BYTES);
    pawl__telemetry_put_varint(buf, bytes.len);
    pawl__buf_add(buf, bytes);
}

size_t pawl__telemetry_varint_size(uint64_t value)
{
    size_t size = 1;

    for (; value >= 0x80; value >>= 7) {
        size++;
    }
    return size;
}
