#include "base/core/buf.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { FIRST_CAP = 64 };

void pawl__buf_done(struct pawl__buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->cap = 0;
    pawl__buf_clear(buf);
}

void pawl__buf_clear(struct pawl__buf *buf)
{
    buf->len = 0;
    buf->broken = false;
    buf->nomem = false;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

void pawl__buf_cut(struct pawl__buf *buf, size_t len)
{
    REQUIRE(len <= buf->len);
    buf->len = len;
    buf->broken = false;
    buf->nomem = false;
    if (buf->data != NULL) {
        buf->data[len] = '\0';
    }
}

/* Room for `len` more bytes and the NUL, or broken. Doubling stops at the ceiling, so a buffer
 * never holds more than its owner allowed. */
static bool make_room(struct pawl__buf *buf, size_t len)
{
    if (buf->broken) {
        return false;
    }
    if (len > buf->max - buf->len) {
        buf->broken = true;
        return false;
    }
    size_t needed = buf->len + len + 1;
    if (needed <= buf->cap) {
        return true;
    }
    size_t cap = buf->cap > buf->max / 2 ? buf->max + 1 : MAX(buf->cap * 2, (size_t)FIRST_CAP);
    cap = MAX(cap, needed);
    char *data = realloc(buf->data, cap);
    if (data == NULL) {
        buf->broken = true;
        buf->nomem = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

char *pawl__buf_extend(struct pawl__buf *buf, size_t len)
{
    if (!make_room(buf, len)) {
        return NULL;
    }
    char *start = buf->data + buf->len;
    buf->len += len;
    buf->data[buf->len] = '\0';
    return start;
}

void pawl__buf_add(struct pawl__buf *buf, pawl_view bytes)
{
    char *start = pawl__buf_extend(buf, bytes.len);

    if (start != NULL && bytes.len > 0) {
        memcpy(start, bytes.data, bytes.len);
    }
}

void pawl__buf_add_text(struct pawl__buf *buf, const char *text)
{
    pawl__buf_add(buf, pawl_view_of(text));
}

void pawl__buf_add_char(struct pawl__buf *buf, char c)
{
    pawl__buf_add(buf, (pawl_view){ &c, 1 });
}

void pawl__buf_add_format(struct pawl__buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (needed < 0) {
        buf->broken = true;
        return;
    }
    char *start = pawl__buf_extend(buf, (size_t)needed);
    if (start != NULL) {
        va_start(args, format);
        vsnprintf(start, (size_t)needed + 1, format, args);
        va_end(args);
    }
}

void pawl__buf_add_real(struct pawl__buf *buf, double value)
{
    char text[32];

    REQUIRE(isfinite(value));
    for (int digits = 15; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    /* printf writes the decimal point of the process's locale, which may be several bytes. */
    size_t len = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool plain = strchr("0123456789+-e", text[i]) != NULL;
        if (plain || len == 0 || text[len - 1] != '.') {
            text[len++] = plain ? text[i] : '.';
        }
    }
    pawl__buf_add(buf, (pawl_view){ text, len });
}

void pawl__buf_add_u8(struct pawl__buf *buf, uint8_t value)
{
    pawl__buf_add_char(buf, (char)value);
}

static void add_le(struct pawl__buf *buf, uint64_t value, size_t bytes)
{
    char *start = pawl__buf_extend(buf, bytes);

    for (size_t i = 0; start != NULL && i < bytes; i++) {
        start[i] = (char)(value >> (8 * i));
    }
}

static void add_be(struct pawl__buf *buf, uint64_t value, size_t bytes)
{
    char *start = pawl__buf_extend(buf, bytes);

    for (size_t i = 0; start != NULL && i < bytes; i++) {
        start[i] = (char)(value >> (8 * (bytes - 1 - i)));
    }
}

void pawl__buf_add_u32le(struct pawl__buf *buf, uint32_t value)
{
    add_le(buf, value, 4);
}

void pawl__buf_add_u64le(struct pawl__buf *buf, uint64_t value)
{
    add_le(buf, value, 8);
}

void pawl__buf_add_u16be(struct pawl__buf *buf, uint16_t value)
{
    add_be(buf, value, 2);
}

void pawl__buf_add_u32be(struct pawl__buf *buf, uint32_t value)
{
    add_be(buf, value, 4);
}

void pawl__buf_add_u64be(struct pawl__buf *buf, uint64_t value)
{
    add_be(buf, value, 8);
}

pawl_view pawl__buf_view(const struct pawl__buf *buf)
{
    return (pawl_view){ buf->data, buf->len };
}

pawl_status pawl__buf_check(const struct pawl__buf *buf, const char *what, pawl_error *reterr)
{
    if (!buf->broken) {
        return PAWL_OK;
    }
    if (buf->nomem) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %s", what);
    }
    return pawl__fail(reterr, PAWL_INVALID, "%s over %zu bytes", what, buf->max);
}

char *pawl__buf_steal(struct pawl__buf *buf)
{
    if (buf->broken || !make_room(buf, 0)) {
        return NULL;
    }
    buf->data[buf->len] = '\0';
    char *data = STEAL(buf->data);
    buf->len = 0;
    buf->cap = 0;
    return data;
}

pawl_status pawl__buf_hand_out(
    struct pawl__buf *buf, const char *what, char **ret_text, size_t *ret_len, pawl_error *reterr)
{
    size_t len = buf->len;
    TRY(pawl__buf_check(buf, what, reterr));
    char *text = pawl__buf_steal(buf);
    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %s", what);
    }
    *ret_text = text;
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return PAWL_OK;
}

bool pawl__view_take(pawl_view *in, size_t len, pawl_view *ret_bytes)
{
    if (len > in->len) {
        return false;
    }
    *ret_bytes = (pawl_view){ in->data, len };
    if (len > 0) {
        in->data += len;
        in->len -= len;
    }
    return true;
}

static bool take_number(pawl_view *in, size_t bytes, bool big_endian, uint64_t *ret_value)
{
    pawl_view raw;

    if (!pawl__view_take(in, bytes, &raw)) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | (uint8_t)raw.data[big_endian ? i : bytes - 1 - i];
    }
    *ret_value = value;
    return true;
}

#define DEFINE_TAKE(name, type, big_endian)                             \
    bool name(pawl_view *in, type *ret_value)                           \
    {                                                                   \
        uint64_t value;                                                 \
                                                                        \
        if (!take_number(in, sizeof(*ret_value), big_endian, &value)) { \
            return false;                                               \
        }                                                               \
        *ret_value = (type)value;                                       \
        return true;                                                    \
    }

DEFINE_TAKE(pawl__view_take_u8, uint8_t, false)
DEFINE_TAKE(pawl__view_take_u32le, uint32_t, false)
DEFINE_TAKE(pawl__view_take_u64le, uint64_t, false)
DEFINE_TAKE(pawl__view_take_u16be, uint16_t, true)
DEFINE_TAKE(pawl__view_take_u32be, uint32_t, true)
DEFINE_TAKE(pawl__view_take_u64be, uint64_t, true)

bool pawl__view_split(pawl_view *in, char separator, pawl_view *ret_part)
{
    if (in->len == 0) {
        return false;
    }
    const char *at = memchr(in->data, separator, in->len);
    if (at == NULL) {
        return pawl__view_take(in, in->len, ret_part);
    }
    pawl_view skipped;
    return pawl__view_take(in, (size_t)(at - in->data), ret_part)
           && pawl__view_take(in, 1, &skipped);
}

bool pawl__view_equal(pawl_view a, pawl_view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

int pawl__view_compare(pawl_view a, pawl_view b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool pawl__view_is(pawl_view view, const char *text)
{
    return pawl__view_equal(view, pawl_view_of(text));
}

size_t pawl__view_index(pawl_view view, const char *const *names, size_t count)
{
    size_t i = 0;

    while (i < count && !pawl__view_is(view, names[i])) {
        i++;
    }
    return i;
}

char *pawl__view_dup(pawl_view view)
{
    char *copy = malloc(view.len + 1);

    if (copy != NULL) {
        if (view.len > 0) {
            memcpy(copy, view.data, view.len);
        }
        copy[view.len] = '\0';
    }
    return copy;
}

void pawl__text_free(char **text)
{
    free(*text);
}

/* How many continuation bytes follow a leading byte, and the lowest code point that may be written
 * with that many; 0 for ASCII, -1 for a byte that cannot lead. */
static int utf8_tail(unsigned char lead, uint32_t *ret_bits, uint32_t *ret_lowest)
{
    if (lead < 0x80) {
        *ret_bits = lead;
        *ret_lowest = 0;
        return 0;
    }
    if ((lead & 0xE0) == 0xC0) {
        *ret_bits = lead & 0x1FU;
        *ret_lowest = 0x80;
        return 1;
    }
    if ((lead & 0xF0) == 0xE0) {
        *ret_bits = lead & 0x0FU;
        *ret_lowest = 0x800;
        return 2;
    }
    if ((lead & 0xF8) == 0xF0) {
        *ret_bits = lead & 0x07U;
        *ret_lowest = 0x10000;
        return 3;
    }
    return -1;
}

bool pawl__view_take_utf8(pawl_view *in, uint32_t *ret_code)
{
    uint32_t code;
    uint32_t lowest;
    pawl_view taken;

    if (in->len == 0) {
        return false;
    }
    int tail = utf8_tail((unsigned char)in->data[0], &code, &lowest);
    if (tail < 0 || (size_t)tail >= in->len) {
        return false;
    }
    for (int i = 1; i <= tail; i++) {
        unsigned char byte = (unsigned char)in->data[i];
        if ((byte & 0xC0) != 0x80) {
            return false;
        }
        code = code << 6 | (byte & 0x3FU);
    }
    if (code < lowest || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        return false;
    }
    *ret_code = code;
    return pawl__view_take(in, (size_t)tail + 1, &taken);
}

size_t pawl__view_ascii_run(pawl_view view)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones << 7;
    size_t run = 0;
    uint64_t eight;

    for (; view.len - run >= sizeof(eight); run += sizeof(eight)) {
        memcpy(&eight, &view.data[run], sizeof(eight));
        /* A byte that is 0 borrows from its top bit, one above 127 has it set. */
        if (((eight | (eight - ones)) & tops) != 0) {
            break;
        }
    }
    while (run < view.len && view.data[run] != 0 && ((unsigned char)view.data[run] & 0x80) == 0) {
        run++;
    }
    return run;
}

bool pawl__view_is_plain(pawl_view view)
{
    return pawl__view_ascii_run(view) == view.len;
}

bool pawl__view_is_utf8(pawl_view view)
{
    pawl_view ascii;
    uint32_t code;

    do {
        if (!pawl__view_take(&view, pawl__view_ascii_run(view), &ascii)) {
            return false;
        }
    } while (pawl__view_take_utf8(&view, &code));
    return view.len == 0;
}
