/* Bytes that are not JSON, as JSON. */
#include <string.h>

#include "base/core/error.h"
#include "base/json/json.h"
#include "delivery/mapping/mapping.h"

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
