/* Any bytes as gRPC's framing, percent-encoding, base64, a timeout or protobuf (the first byte says which): no crash, no
 * memory beyond the limits, and what is decoded reads back. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <proto/grpc_reflection_v1.pb-c.h>

#include "net/h2/core/frame.h"
#include "net/h2/core/gzip.h"
#include "net/h2/core/proto.h"

enum { MESSAGE_MAX = 65536 };

/* Cut in two at a place that the input names. */
static void try_frames(pawl_view bytes, bool gzip)
{
    struct pawl__h2_deframer deframer = PAWL__H2_DEFRAMER_INIT(MESSAGE_MAX, gzip);
    pawl_view message = { 0 };
    enum pawl__h2_code code = PAWL__H2_OK;
    pawl_view parts[2] = { { 0 }, bytes };
    size_t cut = bytes.len == 0 ? 0 : (unsigned char)bytes.data[bytes.len - 1] % bytes.len;

    CHECK(pawl__view_take(&parts[1], cut, &parts[0]));
    for (size_t i = 0; i < 2 && code == PAWL__H2_OK; i++) {
        while (parts[i].len > 0 && code == PAWL__H2_OK) {
            size_t before = parts[i].len;
            enum pawl__h2_deframed found =
                pawl__h2_deframe(&deframer, &parts[i], &message, &code, NULL);
            CHECK((found == PAWL__H2_BAD) == (code != PAWL__H2_OK));
            CHECK(found != PAWL__H2_MESSAGE || message.len <= MESSAGE_MAX);
            CHECK(found != PAWL__H2_MORE || parts[i].len == 0);
            CHECK(parts[i].len <= before);
            CHECK(pawl__h2_deframer_bytes(&deframer) <= (size_t)2 * (MESSAGE_MAX + 2));
        }
    }
    pawl__h2_deframer_done(&deframer);
}

static void try_words(pawl_view bytes)
{
    struct pawl__buf encoded = BUF_INIT(3 * bytes.len + 1);
    struct pawl__buf decoded = BUF_INIT(bytes.len + 1);
    int64_t ns = -1;

    pawl__h2_percent_encode(bytes, &encoded);
    pawl__h2_percent_decode(pawl__buf_view(&encoded), &decoded);
    CHECK(pawl__view_equal(pawl__buf_view(&decoded), bytes));
    pawl__buf_clear(&decoded);
    pawl__h2_percent_decode(bytes, &decoded);
    CHECK(!decoded.broken);
    pawl__buf_clear(&encoded);
    pawl__buf_clear(&decoded);
    pawl__h2_base64_encode(bytes, &encoded);
    CHECK(pawl__h2_base64_decode(pawl__buf_view(&encoded), &decoded));
    CHECK(pawl__view_equal(pawl__buf_view(&decoded), bytes));
    pawl__buf_clear(&decoded);
    bool good = pawl__h2_base64_decode(bytes, &decoded);
    CHECK(!good || !decoded.broken);
    CHECK(pawl__h2_timeout_parse(bytes, &ns) == (ns >= 0));
    pawl__buf_done(&encoded);
    pawl__buf_done(&decoded);
}

static void try_protobuf(pawl_view bytes, const ProtobufCMessageDescriptor *type)
{
    static const struct pawl__h2_proto_limits limits = { .depth_max = 8,
                                                         .messages_max = 1000,
                                                         .elements_max = 10000,
                                                         .unknown_max = 100,
                                                         .memory_max = 1 << 20 };
    struct pawl__h2_proto_arena arena = { .used = 0 };
    ProtobufCMessage *message = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    pawl_status status = pawl__h2_proto_unpack(type, bytes, &limits, &arena, &message, &error);
    CHECK(status == PAWL_OK || status == PAWL_INVALID || status == PAWL_NO_SPACE);
    CHECK(arena.used <= limits.memory_max);
    if (status == PAWL_OK) {
        struct pawl__buf packed = BUF_INIT(16 << 20);
        ProtobufCMessage *again = NULL;
        pawl__h2_proto_pack(message, &packed);
        CHECK(!packed.broken);
        status =
            pawl__h2_proto_unpack(type, pawl__buf_view(&packed), &limits, &arena, &again, &error);
        CHECK(status == PAWL_OK || status == PAWL_NO_SPACE || status == PAWL_INVALID);
        pawl__buf_done(&packed);
    }
    pawl__h2_proto_arena_done(&arena);
}

static void try_gzip(pawl_view bytes)
{
    struct pawl__buf out = BUF_INIT(MESSAGE_MAX);
    struct pawl__buf packed = BUF_INIT(2 * bytes.len + 1024);

    pawl_status status = pawl__h2_gunzip(bytes, &out, NULL);
    CHECK(status == PAWL_OK || status == PAWL_INVALID || status == PAWL_NO_SPACE);
    CHECK(out.cap <= MESSAGE_MAX + 1);
    pawl__buf_clear(&out);
    if (bytes.len <= MESSAGE_MAX) {
        CHECK(pawl__h2_gzip(bytes, &packed, NULL) == PAWL_OK);
        CHECK(pawl__h2_gunzip(pawl__buf_view(&packed), &out, NULL) == PAWL_OK);
        CHECK(pawl__view_equal(pawl__buf_view(&out), bytes));
    }
    pawl__buf_done(&out);
    pawl__buf_done(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return -1;
    }
    pawl_view rest = { (const char *)&data[1], size - 1 };
    switch (data[0] % 6) {
    case 0:
        try_frames(rest, false);
        break;
    case 1:
        try_frames(rest, true);
        break;
    case 2:
        try_words(rest);
        break;
    case 3:
        try_protobuf(rest,
                     &pawl__proto_grpc__reflection__v1__server_reflection_request__descriptor);
        break;
    case 4:
        try_protobuf(rest,
                     &pawl__proto_grpc__reflection__v1__server_reflection_response__descriptor);
        break;
    default:
        try_gzip(rest);
        break;
    }
    return 0;
}
