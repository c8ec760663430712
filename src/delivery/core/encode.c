#include "delivery/core/encode.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"

const char *pawl__delivery_encoding_name(enum delivery_encoding encoding)
{
    static const char *const names[] = {
        [DELIVERY_AS_JSON] = "json",
        [DELIVERY_AS_BASE64] = "base64",
        [DELIVERY_AS_BASE64_CUT] = "base64_cut",
    };
    REQUIRE((size_t)encoding < COUNT_OF(names));
    return names[encoding];
}

enum {
    KEPT_BYTES_MAX = 32 << 20, /* base64 of it fits a value of DuckDB */
    JSON_BYTES_MAX = 48 << 20,
};

static void add_base64(struct pawl__buf *buf, pawl_view bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = pawl__buf_extend(buf, (bytes.len + 2) / 3 * 4);

    for (size_t i = 0; out != NULL && i < bytes.len; i += 3) {
        uint32_t group = 0;
        size_t have = MIN(bytes.len - i, (size_t)3);
        for (size_t j = 0; j < 3; j++) {
            group = group << 8 | (j < have ? (uint8_t)bytes.data[i + j] : 0);
        }
        for (size_t j = 0; j < 4; j++) {
            out[i / 3 * 4 + j] = j <= have ? digits[group >> (18 - 6 * j) & 63] : '=';
        }
    }
}

static pawl_status keep(const struct pawl__buf *buf,
                        struct pawl__arena *arena,
                        pawl_view *ret_text,
                        pawl_error *reterr)
{
    TRY(pawl__buf_check(buf, "a payload", reterr));
    return pawl__arena_copy(arena, pawl__buf_view(buf), ret_text)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a payload");
}

pawl_status pawl__delivery_payload_json(pawl_view payload,
                                        struct pawl__arena *arena,
                                        enum delivery_encoding *ret_encoding,
                                        pawl_view *ret_json,
                                        pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(JSON_BYTES_MAX);
    bool is_cut = payload.len > KEPT_BYTES_MAX;

    if (!is_cut && pawl__json_check(payload, payload.len, NULL) == PAWL_OK) {
        *ret_encoding = DELIVERY_AS_JSON;
        *ret_json = payload;
        return PAWL_OK;
    }
    pawl__buf_add_text(&text, "{\"base64\":\"");
    add_base64(&text, (pawl_view){ payload.data, is_cut ? (size_t)KEPT_BYTES_MAX : payload.len });
    if (is_cut) {
        pawl__buf_add_format(&text, "\",\"bytes\":%zu}", payload.len);
    } else {
        pawl__buf_add_text(&text, "\"}");
    }
    TRY(keep(&text, arena, ret_json, reterr));
    *ret_encoding = is_cut ? DELIVERY_AS_BASE64_CUT : DELIVERY_AS_BASE64;
    return PAWL_OK;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Groups of four, '=' at the end. */
static bool decode_base64(pawl_view text, struct pawl__buf *bytes)
{
    uint32_t group = 0;
    size_t len = text.len;

    if (len % 4 != 0) {
        return false;
    }
    for (int cut = 0; cut < 2 && len > 0 && text.data[len - 1] == '='; cut++) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0) {
            return false;
        }
        group = group << 6 | (uint32_t)value;
        if (i % 4 > 0) { /* 8 bits more are whole: 12, 18 and 24 were read */
            pawl__buf_add_u8(bytes, (uint8_t)(group >> (4 - 2 * (i % 4 - 1))));
        }
    }
    return len % 4 != 1;
}

static pawl_status read_base64(pawl_view json,
                               struct pawl__arena *arena,
                               pawl_view *ret_payload,
                               pawl_error *reterr)
{
    json_auto_t *parsed = NULL;
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(json.len + 1);

    TRY(pawl__json_parse(json, json.len, &parsed, reterr) == PAWL_OK
            ? PAWL_OK
            : pawl__fail_context(reterr, PAWL_CORRUPT, "the payload"));
    json_t *text = json_object_get(parsed, "base64");
    if (!json_is_string(text)
        || !decode_base64((pawl_view){ json_string_value(text), json_string_length(text) },
                          &bytes)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the payload is not base64");
    }
    return keep(&bytes, arena, ret_payload, reterr);
}

pawl_status pawl__delivery_payload_bytes(pawl_view json,
                                         pawl_view encoding,
                                         struct pawl__arena *arena,
                                         pawl_view *ret_payload,
                                         pawl_error *reterr)
{
    if (pawl__view_is(encoding, "json")) {
        *ret_payload = json;
        return PAWL_OK;
    }
    if (pawl__view_is(encoding, "base64")) {
        return read_base64(json, arena, ret_payload, reterr);
    }
    return pawl__view_is(encoding, "base64_cut")
               ? pawl__fail_advised(
                   reterr,
                   PAWL_INVALID,
                   "only the beginning of the payload was kept: publish the event again")
               : pawl__fail(reterr, PAWL_CORRUPT, "the payload has an unknown encoding");
}

pawl_status pawl__delivery_clean_text(pawl_view text,
                                      struct pawl__arena *arena,
                                      pawl_view *ret_text,
                                      pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf clean = BUF_INIT(JSON_BYTES_MAX);

    if (text.len == 0 || pawl__view_is_plain(text)) {
        *ret_text = text;
        return PAWL_OK;
    }
    while (text.len > 0) {
        pawl_view rest = text;
        pawl_view bytes;
        uint32_t code = 0;
        bool is_good = pawl__view_take_utf8(&rest, &code) && code != 0;
        size_t len = is_good ? text.len - rest.len : 1;
        if (!pawl__view_take(&text, len, &bytes)) {
            break;
        }
        if (is_good) {
            pawl__buf_add(&clean, bytes);
        } else {
            pawl__buf_add_text(&clean, "\xEF\xBF\xBD");
        }
    }
    return keep(&clean, arena, ret_text, reterr);
}

/* --- headers --- */

/* No header fails an event: a value that JSON cannot hold is stored as {"base64": "..."}. */
static json_t *header_json(pawl_view value, struct pawl__arena *arena)
{
    enum delivery_encoding encoding = DELIVERY_AS_JSON;
    pawl_view encoded;
    json_t *json = NULL;

    if (value.len == 0
        || (pawl__view_is_utf8(value) && memchr(value.data, '\0', value.len) == NULL)) {
        return json_stringn(value.len == 0 ? "" : value.data, value.len);
    }
    if (pawl__delivery_payload_json(value, arena, &encoding, &encoded, NULL) == PAWL_OK
        && pawl__json_parse(encoded, encoded.len, &json, NULL) == PAWL_OK) {
        return json;
    }
    return NULL;
}

pawl_status pawl__delivery_headers_json(const struct delivery_header *headers,
                                        size_t count,
                                        struct pawl__arena *arena,
                                        pawl_view *ret_json,
                                        pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(JSON_BYTES_MAX);
    json_auto_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *pair = json_array();
        if (json_array_append_new(pair, header_json(headers[i].name, arena)) != 0
            || json_array_append_new(pair, header_json(headers[i].value, arena)) != 0
            || json_array_append(list, pair) != 0) {
            json_decref(pair);
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for headers");
        }
        json_decref(pair);
    }
    TRY(pawl__json_dump(list, &text, reterr));
    return keep(&text, arena, ret_json, reterr);
}

static pawl_status read_header(json_t *json,
                               struct pawl__arena *arena,
                               pawl_view *ret_text,
                               pawl_error *reterr)
{
    json_t *text = json_is_object(json) ? json_object_get(json, "base64") : json;
    pawl_view view = { json_string_value(text), json_string_length(text) };
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(view.len + 1);

    if (view.data == NULL || (json_is_object(json) && !decode_base64(view, &bytes))) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a header is neither text nor base64");
    }
    if (json_is_string(json)) {
        pawl__buf_add(&bytes, view);
    }
    return keep(&bytes, arena, ret_text, reterr);
}

pawl_status pawl__delivery_headers_read(pawl_view json,
                                        struct pawl__arena *arena,
                                        const struct delivery_header **ret_headers,
                                        size_t *ret_count,
                                        pawl_error *reterr)
{
    json_auto_t *list = NULL;

    TRY(pawl__json_parse(json, json.len, &list, reterr) == PAWL_OK
            ? PAWL_OK
            : pawl__fail_context(reterr, PAWL_CORRUPT, "the headers"));
    size_t count = json_array_size(list);
    if (count > DELIVERY_HEADERS_MAX) {
        return pawl__fail(reterr, PAWL_CORRUPT, "%zu headers", count);
    }
    struct delivery_header *headers =
        pawl__arena_take(arena, MAX(count, (size_t)1) * sizeof(*headers));
    TRY(pawl__check_memory(headers, "headers", reterr));
    for (size_t i = 0; i < count; i++) {
        json_t *pair = json_array_get(list, i);
        TRY(read_header(json_array_get(pair, 0), arena, &headers[i].name, reterr));
        TRY(read_header(json_array_get(pair, 1), arena, &headers[i].value, reterr));
    }
    *ret_headers = headers;
    *ret_count = count;
    return PAWL_OK;
}
