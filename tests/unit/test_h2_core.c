/* The pure parts of net/h2: gRPC's words, framing, gzip, buckets, timers, services and Connect, the protobuf guard. */
#include "lib/check.h"

#include <stdlib.h>

#include <proto/grpc_reflection_v1.pb-c.h>

#include "base/os/clock.h"
#include "lib/fault.h"
#include "net/h2/core/bucket.h"
#include "net/h2/core/frame.h"
#include "net/h2/core/grpc.h"
#include "net/h2/core/gzip.h"
#include "net/h2/core/proto.h"
#include "net/h2/core/timer.h"
#include "net/h2/service.h"

/* --- words --- */

static void assert_text(const struct pawl__buf *buf, const char *expected)
{
    assert_int_equal(buf->len, strlen(expected));
    assert_memory_equal(buf->data == NULL ? "" : buf->data, expected, buf->len);
}

static void test_messages_are_percent_encoded(void **state)
{
    char bytes[64];
    struct pawl__buf out = BUF_OVER(bytes);

    (void)state;
    pawl__h2_percent_encode(pawl_view_of("a 100% \xc3\xbc\n~"), &out);
    assert_text(&out, "a 100%25 %C3%BC%0A~");
    pawl__buf_clear(&out);
    pawl__h2_percent_decode(pawl_view_of("a 100%25 %c3%BC%0A~"), &out);
    assert_text(&out, "a 100% \xc3\xbc\n~");
    pawl__buf_clear(&out);
    pawl__h2_percent_decode(pawl_view_of("%zz %2 %"), &out); /* stays as it is */
    assert_text(&out, "%zz %2 %");
}

static void test_timeouts_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        { "1n", 1 },
        { "20u", 20000 },
        { "100m", 100 * NS_PER_MS },
        { "3S", 3 * NS_PER_S },
        { "2M", 120 * NS_PER_S },
        { "1H", 3600 * NS_PER_S },
        { "99999999H", INT64_MAX },
        { "0m", 0 },
    };
    static const char *const bad[] = {
        "", "m", "5", "123456789m", "1x", "-1m", " 1m", "1.5S", "1mm"
    };
    char text[PAWL__H2_TIMEOUT_SIZE];
    int64_t ns = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(pawl__h2_timeout_parse(pawl_view_of(good[i].text), &ns));
        assert_int_equal(ns, good[i].ns);
    }
    ns = 7;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(pawl__h2_timeout_parse(pawl_view_of(bad[i]), &ns));
        assert_int_equal(ns, 7);
    }
    pawl__h2_timeout_format(99999999, text);
    assert_string_equal(text, "99999999n");
    pawl__h2_timeout_format(100000001, text); /* never shorter than it is */
    assert_string_equal(text, "100001u");
    pawl__h2_timeout_format(INT64_MAX, text);
    assert_true(pawl__h2_timeout_parse(pawl_view_of(text), &ns));
    assert_true(ns > INT64_MAX / 2);
}

static void test_binary_headers_are_base64(void **state)
{
    char bytes[64];
    struct pawl__buf out = BUF_OVER(bytes);
    static const char *const pairs[][2] = {
        { "", "" }, { "f", "Zg" }, { "fo", "Zm8" }, { "foo", "Zm9v" }, { "\xff\xfe", "//4" }
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        pawl__buf_clear(&out);
        pawl__h2_base64_encode(pawl_view_of(pairs[i][0]), &out);
        assert_text(&out, pairs[i][1]);
        pawl__buf_clear(&out);
        assert_true(pawl__h2_base64_decode(pawl_view_of(pairs[i][1]), &out));
        assert_text(&out, pairs[i][0]);
    }
    pawl__buf_clear(&out);
    assert_true(pawl__h2_base64_decode(pawl_view_of("Zg=="), &out));
    assert_false(pawl__h2_base64_decode(pawl_view_of("Zg="), &out));
    assert_false(pawl__h2_base64_decode(pawl_view_of("Z"), &out));
    assert_false(pawl__h2_base64_decode(pawl_view_of("Zh"), &out)); /* bits that are none */
    assert_false(pawl__h2_base64_decode(pawl_view_of("Z g="), &out));
}

static void test_codes_and_statuses_are_mapped(void **state)
{
    (void)state;
    assert_int_equal(pawl__h2_code_of(PAWL_OK), PAWL__H2_OK);
    assert_int_equal(pawl__h2_code_of(PAWL_NO_SPACE), PAWL__H2_UNAVAILABLE); /* OTLP: try later */
    assert_int_equal(pawl__h2_code_of(PAWL_BUSY), PAWL__H2_UNAVAILABLE);
    assert_int_equal(pawl__h2_code_of(PAWL_INVALID), PAWL__H2_INVALID_ARGUMENT);
    assert_int_equal(pawl__h2_status_of(PAWL__H2_DEADLINE_EXCEEDED), PAWL_TIMEOUT);
    assert_int_equal(pawl__h2_status_of(PAWL__H2_UNAUTHENTICATED), PAWL_DENIED);
    assert_int_equal(pawl__h2_status_of(99), PAWL_FAILED);
    assert_string_equal(pawl__h2_code_name(14), "UNAVAILABLE");
    assert_string_equal(pawl__h2_code_name(-1), "UNKNOWN");
    assert_int_equal(pawl__h2_code_of_http(503), PAWL__H2_UNAVAILABLE);
    assert_int_equal(pawl__h2_code_of_http(404), PAWL__H2_UNIMPLEMENTED);
    assert_int_equal(pawl__h2_connect_status(PAWL__H2_NOT_FOUND), 404);
    assert_string_equal(pawl__h2_connect_name(PAWL__H2_CANCELLED), "canceled");
}

/* --- framing --- */

static enum pawl__h2_deframed deframe(struct pawl__h2_deframer *deframer,
                                      pawl_view *in,
                                      pawl_view *message)
{
    enum pawl__h2_code code = PAWL__H2_OK;
    pawl_error error = PAWL_ERROR_INIT;
    enum pawl__h2_deframed found = pawl__h2_deframe(deframer, in, message, &code, &error);

    assert_true((found == PAWL__H2_BAD) == (code != PAWL__H2_OK));
    assert_true((found == PAWL__H2_BAD) == (error.status != PAWL_OK));
    return found;
}

static void test_messages_are_found_however_they_are_cut(void **state)
{
    static const char stream[] = "\0\0\0\0\5hello\0\0\0\0\0\0\0\0\0\2yo";
    const size_t len = sizeof(stream) - 1;

    (void)state;
    for (size_t cut = 0; cut <= len; cut++) {
        struct pawl__h2_deframer deframer = PAWL__H2_DEFRAMER_INIT(100, false);
        pawl_view parts[2] = { { stream, cut }, { stream + cut, len - cut } };
        struct pawl__buf seen = BUF_INIT(100);
        size_t messages = 0;
        for (size_t i = 0; i < 2; i++) {
            pawl_view message = { 0 };
            while (parts[i].len > 0) {
                if (deframe(&deframer, &parts[i], &message) == PAWL__H2_MESSAGE) {
                    messages++;
                    pawl__buf_add(&seen, message);
                }
            }
        }
        assert_int_equal(messages, 3);
        assert_text(&seen, "helloyo");
        assert_false(pawl__h2_deframer_is_open(&deframer));
        pawl__buf_done(&seen);
        pawl__h2_deframer_done(&deframer);
    }
}

static void test_bad_frames_are_refused(void **state)
{
    static const struct {
        pawl_view bytes;
        bool gzip;
    } bad[] = {
        { { "\2\0\0\0\1x", 6 }, false },        /* a flag that is none */
        { { "\1\0\0\0\1x", 6 }, false },        /* compressed without an encoding */
        { { "\0\0\0\0\x65", 5 }, false },       /* 101 bytes, the limit is 100 */
        { { "\1\0\0\0\1x", 6 }, true },         /* not gzip */
        { { "\0\xff\xff\xff\xff", 5 }, false }, /* 4 GiB */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct pawl__h2_deframer deframer = PAWL__H2_DEFRAMER_INIT(100, bad[i].gzip);
        pawl_view in = bad[i].bytes;
        pawl_view message = { 0 };
        assert_int_equal(deframe(&deframer, &in, &message), PAWL__H2_BAD);
        assert_int_equal(pawl__h2_deframer_bytes(&deframer) < 8192, true);
        pawl__h2_deframer_done(&deframer);
    }
}

static void test_an_announced_length_allocates_nothing(void **state)
{
    struct pawl__h2_deframer deframer = PAWL__H2_DEFRAMER_INIT(16 << 20, false);
    pawl_view in = { "\0\1\0\0\0xyz", 8 };
    pawl_view message = { 0 };

    (void)state;
    assert_int_equal(deframe(&deframer, &in, &message), PAWL__H2_MORE);
    assert_true(pawl__h2_deframer_bytes(&deframer) < 1024);
    assert_true(pawl__h2_deframer_is_open(&deframer));
    pawl__h2_deframer_done(&deframer);
}

/* --- gzip --- */

static void test_gzip_has_a_bound(void **state)
{
    struct pawl__buf packed = BUF_INIT(2 << 20);
    struct pawl__buf zeros = BUF_INIT(1 << 20);
    struct pawl__buf out = BUF_INIT(1 << 20);
    struct pawl__buf small = BUF_INIT((1 << 20) - 1);
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    memset(pawl__buf_extend(&zeros, 1 << 20), 0, 1 << 20);
    assert_ok(pawl__h2_gzip(pawl__buf_view(&zeros), &packed, &error), &error);
    assert_true(packed.len < 8192);
    assert_ok(pawl__h2_gunzip(pawl__buf_view(&packed), &out, &error), &error);
    assert_int_equal(out.len, 1 << 20);
    assert_status(pawl__h2_gunzip(pawl__buf_view(&packed), &small, &error), PAWL_NO_SPACE, &error);
    assert_message(&error, "over 1048575 bytes");
    assert_true(small.cap <= 1 << 20);

    pawl_view cut = { packed.data, packed.len - 1 };
    pawl__buf_clear(&out);
    assert_status(pawl__h2_gunzip(cut, &out, &error), PAWL_INVALID, &error);
    pawl__buf_clear(&out);
    assert_status(pawl__h2_gunzip((pawl_view){ "", 0 }, &out, &error), PAWL_INVALID, &error);
    pawl__buf_add_char(&packed, 'x');
    pawl__buf_clear(&out);
    assert_status(pawl__h2_gunzip(pawl__buf_view(&packed), &out, &error), PAWL_INVALID, &error);
    assert_message(&error, "1 bytes after the gzip member");
    pawl__buf_done(&packed);
    pawl__buf_done(&zeros);
    pawl__buf_done(&out);
    pawl__buf_done(&small);
}

/* --- buckets, pace, timers --- */

static void test_a_bucket_fills_with_time(void **state)
{
    struct pawl__h2_bucket bucket = PAWL__H2_BUCKET_INIT(3, 10);

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S));
    }
    assert_false(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S));
    assert_false(pawl__h2_bucket_take(&bucket, 999 * NS_PER_S)); /* a time before gives nothing */
    assert_false(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S + 99 * NS_PER_MS));
    assert_true(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S + 100 * NS_PER_MS));
    assert_false(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S + 199 * NS_PER_MS));
    assert_true(pawl__h2_bucket_take(&bucket, 1000 * NS_PER_S + 201 * NS_PER_MS));
    for (int i = 0; i < 3; i++) {
        assert_true(pawl__h2_bucket_take(&bucket, 2000 * NS_PER_S)); /* never more than it holds */
    }
    assert_false(pawl__h2_bucket_take(&bucket, 2000 * NS_PER_S));
}

static void test_a_byte_now_and_then_is_no_progress(void **state)
{
    struct pawl__h2_pace pace = PAWL__H2_PACE_INIT;
    int64_t now_ns = 0;

    (void)state;
    pawl__h2_pace_begin(&pace, now_ns, 10 * NS_PER_S);
    while (now_ns < pace.by_ns) { /* a byte every 100 ms */
        now_ns += 100 * NS_PER_MS;
        pawl__h2_pace_more(&pace, now_ns, 10 * NS_PER_S, 1);
    }
    assert_true(now_ns < 11 * NS_PER_S);
    pawl__h2_pace_end(&pace);
    pawl__h2_pace_begin(&pace, 0, 10 * NS_PER_S);
    for (now_ns = 0; now_ns < 100 * NS_PER_S; now_ns += NS_PER_S) { /* 2 KiB a second */
        pawl__h2_pace_more(&pace, now_ns, 10 * NS_PER_S, 2048);
        assert_true(now_ns < pace.by_ns);
    }
}

static void fire_nothing(struct pawl__h2_timer *timer, int64_t now_ns)
{
    (void)timer;
    (void)now_ns;
}

static void test_timers_come_in_order(void **state)
{
    enum { COUNT = 500 };
    static struct pawl__h2_timer timers[COUNT];
    struct pawl__h2_timers heap = { 0 };
    uint32_t random = 12345;

    (void)state;
    assert_true(pawl__h2_timers_reserve(&heap, COUNT));
    for (size_t round = 0; round < 4; round++) { /* each is set four times */
        for (size_t i = 0; i < COUNT; i++) {
            random = random * 1103515245 + 12345;
            timers[i].fire = fire_nothing;
            pawl__h2_timer_set(&heap, &timers[i], random >> 8);
        }
    }
    for (size_t i = 0; i < COUNT; i += 3) {
        pawl__h2_timer_set(&heap, &timers[i], INT64_MAX); /* removed */
    }
    int64_t last = -1;
    size_t popped = 0;
    assert_null(pawl__h2_timers_pop(&heap, pawl__h2_timers_next(&heap) - 1));
    for (struct pawl__h2_timer *timer = NULL;
         (timer = pawl__h2_timers_pop(&heap, INT64_MAX - 1)) != NULL;
         popped++) {
        assert_true(timer->at_ns >= last);
        assert_int_equal(timer->slot, 0);
        last = timer->at_ns;
    }
    assert_int_equal(popped, COUNT - (COUNT + 2) / 3);
    assert_int_equal(pawl__h2_timers_next(&heap), INT64_MAX);
    pawl__h2_timers_done(&heap);
}

/* --- services and Connect --- */

static void echo(struct pawl__h2_call *call, void *context)
{
    struct pawl__buf answer = BUF_INIT(1000);

    (void)context;
    pawl__buf_add(&answer, pawl__h2_request(call));
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static void refuse(struct pawl__h2_call *call, void *context)
{
    (void)context;
    pawl__h2_refuse(call, PAWL__H2_NOT_FOUND, "not here", (pawl_view){ 0 });
}

static pawl_status copy_json(pawl_view in, struct pawl__buf *out, pawl_error *reterr)
{
    pawl__buf_add(out, in);
    return pawl__buf_check(out, "a message", reterr);
}

static const struct pawl__h2_json json = { .to_request = copy_json, .of_answer = copy_json };
static const struct pawl__h2_method methods[] = {
    { .path = "/b.Service/Two", .handle = refuse },
    { .path = "/a.Service/One", .handle = echo, .json = &json },
    { .path = "/b.Service/Stream", .kind = PAWL__H2_SERVER_STREAM, .handle = echo },
};

static void test_connect_finds_methods_by_path_and_type(void **state)
{
    static const struct {
        const char *method;
        const char *path;
        const char *type;
        unsigned status;
    } asked[] = {
        { "POST", "/a.Service/One", "application/json", 200 },
        { "POST", "/a.Service/One", "application/json; charset=utf-8", 200 },
        { "POST", "/a.Service/One", "application/proto", 200 },
        { "POST", "/b.Service/Two", "application/proto", 200 },
        { "POST", "/b.Service/Two", "application/json", 415 }, /* it has no JSON */
        { "POST", "/b.Service/Stream", "application/proto", 415 },
        { "POST", "/a.Service/One", "text/plain", 415 },
        { "POST", "/a.Service/One", "", 415 },
        { "GET", "/a.Service/One", "application/proto", 405 },
        { "POST", "/a.Service/None", "application/proto", 404 },
        { "POST", "/a.Service/One/", "application/proto", 404 },
        { "POST", "", "application/proto", 404 },
    };
    struct pawl__h2_services services = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__h2_services_add(&services, methods, COUNT_OF(methods), &error), &error);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        struct pawl__h2_connect connect = { 0 };
        assert_int_equal(pawl__h2_connect_route(&services,
                                                pawl_view_of(asked[i].method),
                                                pawl_view_of(asked[i].path),
                                                pawl_view_of(asked[i].type),
                                                &connect),
                         asked[i].status);
        if (asked[i].status == 200) {
            assert_string_equal(connect.method->path, asked[i].path);
            assert_int_equal(connect.codec == PAWL__H2_JSON, strstr(asked[i].type, "json") != NULL);
        } else {
            assert_null(connect.method);
        }
    }
    assert_true(pawl__h2_services_has(&services, pawl_view_of("b.Service")));
    assert_false(pawl__h2_services_has(&services, pawl_view_of("b.Serv")));
    pawl__h2_services_done(&services);
}

static void test_methods_are_checked(void **state)
{
    static const struct pawl__h2_method bad[] = {
        { .path = "a.Service/One", .handle = echo },
        { .path = "/a.Service", .handle = echo },
        { .path = "/a.Service/One/Two", .handle = echo },
        { .path = "/a Service/One", .handle = echo },
        { .path = "/a.Service/One" },
        { .path = "/a.Service/One", .kind = PAWL__H2_BIDI, .handle = echo },
    };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct pawl__h2_services services = { 0 };
        assert_status(pawl__h2_services_add(&services, &bad[i], 1, &error), PAWL_INVALID, &error);
        pawl__h2_services_done(&services);
    }
    struct pawl__h2_services services = { 0 };
    error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl__h2_services_add(&services, methods, 1, &error), &error);
    assert_status(pawl__h2_services_add(&services, methods, 1, &error), PAWL_CONFLICT, &error);
    pawl__h2_services_done(&services);
}

struct local {
    int code;
    size_t times;
    struct pawl__buf answer;
    char message[64];
};

static void local_done(void *context, int code, pawl_view message, pawl_view answer)
{
    struct local *local = context;

    local->code = code;
    local->times++;
    pawl__buf_add(&local->answer, answer);
    memcpy(local->message, message.data, MIN(message.len, sizeof(local->message) - 1));
}

static void test_a_method_runs_without_http2(void **state)
{
    struct local local = { .answer = BUF_INIT(100) };
    struct pawl__buf request = BUF_INIT(100);
    pawl_error error = PAWL_ERROR_INIT;
    char bytes[100];
    struct pawl__buf body = BUF_OVER(bytes);

    (void)state;
    pawl__buf_add_text(&request, "hi");
    assert_ok(pawl__h2_call_local(&methods[1], &request, INT64_MAX, local_done, &local, &error),
              &error);
    assert_int_equal(local.code, PAWL__H2_OK);
    assert_text(&local.answer, "hi");
    assert_ok(pawl__h2_call_local(&methods[0], &request, INT64_MAX, local_done, &local, &error),
              &error);
    assert_int_equal(local.code, PAWL__H2_NOT_FOUND);
    assert_int_equal(local.times, 2);
    pawl__h2_connect_error(local.code, pawl_view_of(local.message), &body);
    assert_text(&body, "{\"code\":\"not_found\",\"message\":\"not here\"}");
    pawl__buf_done(&local.answer);
    pawl__buf_done(&request);
}

/* --- protobuf --- */

#define REQUEST_TYPE (&pawl__proto_grpc__reflection__v1__server_reflection_request__descriptor)
#define RESPONSE_TYPE (&pawl__proto_grpc__reflection__v1__server_reflection_response__descriptor)

static const struct pawl__h2_proto_limits limits = {
    .depth_max = 3, .messages_max = 5, .elements_max = 20, .unknown_max = 3, .memory_max = 65536
};

static pawl_status check(const ProtobufCMessageDescriptor *type, pawl_view bytes, pawl_error *error)
{
    return pawl__h2_proto_check(type, bytes, &limits, error);
}

static void test_the_guard_refuses_what_protobuf_c_would_take(void **state)
{
    static const struct {
        pawl_view bytes;
        const char *message;
    } bad[] = {
        { { "\x0a\x02\xc3\x28", 4 }, "host is not UTF-8" },
        { { "\x0a\x03"
            "a\0b",
            5 },
          "host has a NUL" },
        { { "\x08\x01", 2 }, "host has another type" },
        { { "\x0a\x05"
            "ab",
            4 },
          "is cut off" },
        { { "\x00\x01", 2 }, "is cut off, or no protobuf" }, /* field 0 */
        { { "\x0b", 1 }, "is cut off, or no protobuf" },     /* a group */
        { { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10 }, "no protobuf" },
        { { "\x40\1\x40\1\x40\1\x40\1", 8 }, "too many unknown fields" },
        { { "\x2a\x04\x0a\x02\xff\xff", 6 },
          "file_containing_extension.containing_type is not UTF-8" },
    };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(check(REQUEST_TYPE, bad[i].bytes, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i].message);
    }
    error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(check(REQUEST_TYPE,
                    (pawl_view){ "\x0a\x03"
                                 "a\xc3\xbc\x3a\x01*",
                                 8 },
                    &error),
              &error);
    assert_ok(check(REQUEST_TYPE, (pawl_view){ 0 }, &error), &error);
}

static void test_the_guard_counts_depth_messages_and_elements(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    char bytes[256];
    struct pawl__buf list = BUF_OVER(bytes);

    (void)state;
    /* response > list_services_response > service: three deep, and six messages in all */
    assert_ok(check(RESPONSE_TYPE, (pawl_view){ "\x32\x02\x0a\x00", 4 }, &error), &error);
    struct pawl__h2_proto_limits shallow = limits;
    shallow.depth_max = 2;
    assert_status(
        pawl__h2_proto_check(RESPONSE_TYPE, (pawl_view){ "\x32\x02\x0a\x00", 4 }, &shallow, &error),
        PAWL_INVALID,
        &error);
    assert_message(&error, "nested too deeply");
    assert_status(
        check(RESPONSE_TYPE, (pawl_view){ "\x32\x08\x0a\0\x0a\0\x0a\0\x0a\0", 10 }, &error),
        PAWL_INVALID,
        &error);
    assert_message(&error, "one message too many");
    pawl__buf_add(&list, (pawl_view){ "\x2a\x17\x12\x15", 4 }); /* 21 packed numbers */
    for (int i = 0; i < 21; i++) {
        pawl__buf_add_u8(&list, 1);
    }
    assert_status(check(RESPONSE_TYPE, pawl__buf_view(&list), &error), PAWL_INVALID, &error);
    assert_message(&error, "has too many elements");
}

static void test_decoding_has_a_ceiling(void **state)
{
    struct pawl__h2_proto_arena arena = { .used = 0 };
    struct pawl__h2_proto_limits small = PAWL__H2_PROTO_LIMITS_INIT;
    ProtobufCMessage *message = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__buf list = BUF_INIT(100000);
    struct pawl__buf inner = BUF_INIT(100000);

    (void)state;
    for (int i = 0; i < 10000; i++) {
        pawl__buf_add(&inner, (pawl_view){ "\x0a\0", 2 }); /* two bytes become a struct */
    }
    pawl__buf_add(&list, (pawl_view){ "\x32\xa0\x9c\x01", 4 });
    pawl__buf_add(&list, pawl__buf_view(&inner));
    small.memory_max = 100000;
    assert_status(pawl__h2_proto_unpack(
                      RESPONSE_TYPE, pawl__buf_view(&list), &small, &arena, &message, &error),
                  PAWL_NO_SPACE,
                  &error);
    pawl__h2_proto_arena_clear(&arena);
    error = (pawl_error)PAWL_ERROR_INIT;
    small.memory_max = 10 << 20;
    assert_ok(pawl__h2_proto_unpack(
                  RESPONSE_TYPE, pawl__buf_view(&list), &small, &arena, &message, &error),
              &error);
    Grpc__Reflection__V1__ServerReflectionResponse *response =
        (Grpc__Reflection__V1__ServerReflectionResponse *)message;
    assert_int_equal(response->list_services_response->n_service, 10000);
    pawl__buf_clear(&inner);
    pawl__h2_proto_pack(message, &inner);
    assert_int_equal(inner.len, list.len);
    assert_memory_equal(inner.data, list.data, list.len);
    pawl__h2_proto_arena_done(&arena);
    pawl__buf_done(&list);
    pawl__buf_done(&inner);
}

static void test_decoding_without_memory_is_told(void **state)
{
    const struct pawl__h2_proto_limits normal = PAWL__H2_PROTO_LIMITS_INIT;

    (void)state;
    FAULT_WALK (walk) {
        struct pawl__h2_proto_arena arena = { .used = 0 };
        ProtobufCMessage *message = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__h2_proto_unpack(REQUEST_TYPE,
                                                   (pawl_view){ "\x0a\x03"
                                                                "abc\x3a\x01*",
                                                                8 },
                                                   &normal,
                                                   &arena,
                                                   &message,
                                                   &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__h2_proto_arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_are_percent_encoded),
        cmocka_unit_test(test_timeouts_are_read_and_written),
        cmocka_unit_test(test_binary_headers_are_base64),
        cmocka_unit_test(test_codes_and_statuses_are_mapped),
        cmocka_unit_test(test_messages_are_found_however_they_are_cut),
        cmocka_unit_test(test_bad_frames_are_refused),
        cmocka_unit_test(test_an_announced_length_allocates_nothing),
        cmocka_unit_test(test_gzip_has_a_bound),
        cmocka_unit_test(test_a_bucket_fills_with_time),
        cmocka_unit_test(test_a_byte_now_and_then_is_no_progress),
        cmocka_unit_test(test_timers_come_in_order),
        cmocka_unit_test(test_connect_finds_methods_by_path_and_type),
        cmocka_unit_test(test_methods_are_checked),
        cmocka_unit_test(test_a_method_runs_without_http2),
        cmocka_unit_test(test_the_guard_refuses_what_protobuf_c_would_take),
        cmocka_unit_test(test_the_guard_counts_depth_messages_and_elements),
        cmocka_unit_test(test_decoding_has_a_ceiling),
        cmocka_unit_test(test_decoding_without_memory_is_told),
    };

    return cmocka_run_group_tests_name("h2_core", tests, NULL, NULL);
}
