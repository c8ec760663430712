#include "net/h2/core/grpc.h"

#include <stdio.h>
#include <string.h>

#include "base/os/clock.h"

/* Code, name, Connect's name, Connect's HTTP status, what a client of ours returns. */
#define CODES(X)                                                 \
    X(OK, "ok", 200, OK)                                         \
    X(CANCELLED, "canceled", 499, CANCELLED)                     \
    X(UNKNOWN, "unknown", 500, FAILED)                           \
    X(INVALID_ARGUMENT, "invalid_argument", 400, INVALID)        \
    X(DEADLINE_EXCEEDED, "deadline_exceeded", 504, TIMEOUT)      \
    X(NOT_FOUND, "not_found", 404, NOT_FOUND)                    \
    X(ALREADY_EXISTS, "already_exists", 409, CONFLICT)           \
    X(PERMISSION_DENIED, "permission_denied", 403, DENIED)       \
    X(RESOURCE_EXHAUSTED, "resource_exhausted", 429, NO_SPACE)   \
    X(FAILED_PRECONDITION, "failed_precondition", 400, CONFLICT) \
    X(ABORTED, "aborted", 409, BUSY)                             \
    X(OUT_OF_RANGE, "out_of_range", 400, INVALID)                \
    X(UNIMPLEMENTED, "unimplemented", 501, UNSUPPORTED)          \
    X(INTERNAL, "internal", 500, FAILED)                         \
    X(UNAVAILABLE, "unavailable", 503, UNAVAILABLE)              \
    X(DATA_LOSS, "data_loss", 500, CORRUPT)                      \
    X(UNAUTHENTICATED, "unauthenticated", 401, DENIED)

static const struct {
    const char *name;
    const char *connect;
    unsigned http;
    pawl_status status;
} codes[] = {
#define CODE_ROW(code, connect_name, http_status, ours) \
    [PAWL__H2_##code] = { #code, connect_name, http_status, PAWL_##ours },
    CODES(CODE_ROW)
#undef CODE_ROW
};

static size_t known(int code)
{
    return code >= 0 && (size_t)code < COUNT_OF(codes) ? (size_t)code : PAWL__H2_UNKNOWN;
}

const char *pawl__h2_code_name(int code)
{
    return codes[known(code)].name;
}

const char *pawl__h2_connect_name(int code)
{
    return codes[known(code)].connect;
}

unsigned pawl__h2_connect_status(int code)
{
    return codes[known(code)].http;
}

pawl_status pawl__h2_status_of(int code)
{
    return codes[known(code)].status;
}

enum pawl__h2_code pawl__h2_code_of(pawl_status status)
{
    switch (status) {
    case PAWL_OK:
        return PAWL__H2_OK;
    case PAWL_INVALID:
        return PAWL__H2_INVALID_ARGUMENT;
    case PAWL_NOT_FOUND:
        return PAWL__H2_NOT_FOUND;
    case PAWL_CONFLICT:
        return PAWL__H2_FAILED_PRECONDITION;
    case PAWL_UNSUPPORTED:
        return PAWL__H2_UNIMPLEMENTED;
    case PAWL_CORRUPT:
        return PAWL__H2_DATA_LOSS;
    case PAWL_TIMEOUT:
    case PAWL_BUSY:
    case PAWL_UNAVAILABLE:
    case PAWL_NO_SPACE: /* an OTLP client gives a batch up on other codes */
    case PAWL_IO:
    case PAWL_CLOSED:
        return PAWL__H2_UNAVAILABLE;
    case PAWL_DENIED:
        return PAWL__H2_PERMISSION_DENIED;
    case PAWL_NOMEM:
        return PAWL__H2_RESOURCE_EXHAUSTED;
    case PAWL_CANCELLED:
        return PAWL__H2_CANCELLED;
    default:
        return PAWL__H2_INTERNAL;
    }
}

enum pawl__h2_code pawl__h2_code_of_http(unsigned http_status)
{
    switch (http_status) {
    case 400:
        return PAWL__H2_INTERNAL;
    case 401:
        return PAWL__H2_UNAUTHENTICATED;
    case 403:
        return PAWL__H2_PERMISSION_DENIED;
    case 404:
        return PAWL__H2_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return PAWL__H2_UNAVAILABLE;
    default:
        return PAWL__H2_UNKNOWN;
    }
}

/* --- percent-encoding --- */

void pawl__h2_percent_encode(pawl_view text, struct pawl__buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x20 && c <= 0x7e && c != '%') {
            pawl__buf_add_char(out, (char)c);
        } else {
            pawl__buf_add_char(out, '%');
            pawl__buf_add_char(out, digits[c >> 4]);
            pawl__buf_add_char(out, digits[c & 15]);
        }
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void pawl__h2_percent_decode(pawl_view text, struct pawl__buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        bool whole = text.data[i] == '%' && text.len - i > 2;
        int high = whole ? hex_value(text.data[i + 1]) : -1;
        int low = whole ? hex_value(text.data[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            pawl__buf_add_char(out, (char)(high * 16 + low));
            i += 2;
        } else {
            pawl__buf_add_char(out, text.data[i]);
        }
    }
}

/* --- deadlines --- */

enum { TIMEOUT_DIGITS_MAX = 8 };

static const struct {
    char letter;
    int64_t ns;
} units[] = {
    { 'n', 1 },        { 'u', NS_PER_US },     { 'm', NS_PER_MS },
    { 'S', NS_PER_S }, { 'M', 60 * NS_PER_S }, { 'H', 3600 * NS_PER_S },
};

bool pawl__h2_timeout_parse(pawl_view text, int64_t *ret_ns)
{
    int64_t value = 0;

    if (text.len < 2 || text.len > TIMEOUT_DIGITS_MAX + 1) {
        return false;
    }
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = value * 10 + (text.data[i] - '0');
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (units[i].letter == text.data[text.len - 1]) {
            *ret_ns = value > INT64_MAX / units[i].ns ? INT64_MAX : value * units[i].ns;
            return true;
        }
    }
    return false;
}

void pawl__h2_timeout_format(int64_t ns, char ret_text[PAWL__H2_TIMEOUT_SIZE])
{
    enum { VALUE_MAX = 99999999 };

    for (size_t i = 0; i < COUNT_OF(units); i++) {
        int64_t value = ns / units[i].ns + (ns % units[i].ns != 0 ? 1 : 0);
        if (value <= VALUE_MAX) {
            (void)snprintf(ret_text, PAWL__H2_TIMEOUT_SIZE, "%d%c", (int)value, units[i].letter);
            return;
        }
    }
    (void)snprintf(ret_text, PAWL__H2_TIMEOUT_SIZE, "%dH", VALUE_MAX);
}

/* --- binary headers --- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pawl__h2_base64_encode(pawl_view bytes, struct pawl__buf *out)
{
    uint32_t bits = 0;
    unsigned held = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        bits = (bits << 8 | (unsigned char)bytes.data[i]) & 0xffffU;
        for (held += 8; held >= 6; held -= 6) {
            pawl__buf_add_char(out, base64_digits[(bits >> (held - 6)) & 63]);
        }
    }
    if (held > 0) {
        pawl__buf_add_char(out, base64_digits[(bits << (6 - held)) & 63]);
    }
}

static int base64_value(char c)
{
    const char *found = c == '\0' ? NULL : strchr(base64_digits, c);
    return found == NULL ? -1 : (int)(found - base64_digits);
}

bool pawl__h2_base64_decode(pawl_view text, struct pawl__buf *out)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t len = text.len;

    while (len > 0 && text.len - len < 2 && text.data[len - 1] == '=') {
        len--;
    }
    if (len % 4 == 1 || (len != text.len && text.len % 4 != 0)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0) {
            return false;
        }
        bits = (bits << 6 | (uint32_t)value) & 0xffffU;
        held += 6;
        if (held >= 8) {
            held -= 8;
            pawl__buf_add_char(out, (char)((bits >> held) & 0xff));
        }
    }
    return (bits & ((1U << held) - 1)) == 0;
}

/* --- paths --- */

static bool is_name(pawl_view name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                    || c == '_' || c == '.';
        if (!good) {
            return false;
        }
    }
    return name.len > 0;
}

bool pawl__h2_path_split(pawl_view path, pawl_view *ret_service, pawl_view *ret_method)
{
    pawl_view nothing = { 0 };
    pawl_view service = { 0 };

    if (!pawl__view_split(&path, '/', &nothing) || nothing.len != 0
        || !pawl__view_split(&path, '/', &service) || !is_name(service) || !is_name(path)) {
        return false;
    }
    *ret_service = service;
    *ret_method = path;
    return true;
}
