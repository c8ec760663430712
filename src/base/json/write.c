/* Writing JSON, plain and canonical (json.h). jansson's own writer is not used: it writes reals
 * with 17 digits and sorts keys by their bytes. */
#include "base/json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"

enum {
    DIGITS_MAX = 17,   /* enough for every double */
    DIGITS_SAFE = 15,  /* so few survive the way into a double and back */
    KEYS_ON_STACK = 32 /* objects with more have their keys sorted on the heap */
};

#define EXACT_MAX 9007199254740992.0 /* 2^53: below it every integer is a double */

struct writer {
    struct pawl__buf *buf;
    bool canonical;
    pawl_error *reterr;
};

static pawl_status write_value(struct writer *writer, json_t *json, int depth);

/* 0.digits times ten to the power of `point`. */
struct decimal {
    char digits[DIGITS_MAX + 2];
    int point;
};

/* Without a decimal point the text means the same in every locale. */
static bool reads_back(const struct decimal *decimal, double value)
{
    char text[DIGITS_MAX + 16];

    snprintf(text,
             sizeof(text),
             "%se%d",
             decimal->digits,
             decimal->point - (int)strlen(decimal->digits));
    return strtod(text, NULL) == value;
}

static struct decimal round_to(double value, int digits)
{
    struct decimal decimal = { "", 0 };
    char text[DIGITS_MAX + 16];
    char *exponent;
    size_t len = 0;

    snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    exponent = strchr(text, 'e');
    for (const char *c = text; c < exponent; c++) { /* past the point, whatever the locale has */
        if (*c >= '0' && *c <= '9') {
            decimal.digits[len++] = *c;
        }
    }
    decimal.point = (int)strtol(exponent + 1, NULL, 10) + 1;
    return decimal;
}

/* The next larger decimal with as many digits. */
static struct decimal next_up(struct decimal decimal)
{
    size_t i = strlen(decimal.digits);

    while (i > 0 && decimal.digits[i - 1] == '9') {
        decimal.digits[--i] = '0';
    }
    if (i > 0) {
        decimal.digits[i - 1]++;
    } else {
        decimal.digits[0] = '1'; /* 999 became 000: now 100, ten times as much */
        decimal.point++;
    }
    return decimal;
}

/* The shortest decimal that reads back as `value` (above 0), and of those the nearest.
 *
 * A normal double keeps 15 digits, so no shorter search is needed: trailing zeros are cut. At a
 * power of two the doubles below are closer than those above, and the nearest decimal may miss
 * while its upper neighbour reads back. Subnormal doubles keep fewer digits: search from one. */
static struct decimal shortest(double value)
{
    struct decimal decimal = { "", 0 };

    for (int digits = isnormal(value) ? DIGITS_SAFE : 1; digits <= DIGITS_MAX; digits++) {
        decimal = round_to(value, digits);
        if (reads_back(&decimal, value)) {
            break;
        }
        struct decimal up = next_up(decimal);
        if (reads_back(&up, value)) {
            decimal = up;
            break;
        }
    }
    for (size_t len = strlen(decimal.digits); len > 1 && decimal.digits[len - 1] == '0'; len--) {
        decimal.digits[len - 1] = '\0';
    }
    return decimal;
}

/* As ECMAScript's Number::toString, but with an exponent from 2^53 on. */
static void add_decimal(struct pawl__buf *buf, const struct decimal *decimal, bool large)
{
    const char *digits = decimal->digits;
    int count = (int)strlen(digits);
    int point = decimal->point;

    if (!large && point > 0) {
        REQUIRE(point < count); /* integers were written as such */
        pawl__buf_add_format(buf, "%.*s.%s", point, digits, digits + point);
    } else if (!large && point > -6) {
        pawl__buf_add_format(buf, "0.%.*s%s", -point, "00000", digits);
    } else if (count == 1) {
        pawl__buf_add_format(buf, "%se%+d", digits, point - 1);
    } else {
        pawl__buf_add_format(buf, "%c.%se%+d", digits[0], digits + 1, point - 1);
    }
}

static void write_real(struct writer *writer, double value)
{
    double size = fabs(value);

    REQUIRE(isfinite(value)); /* jansson makes no others */
    if (size < EXACT_MAX && (double)(long long)size == size) {
        bool minus = signbit(value) && (size > 0 || !writer->canonical);
        pawl__buf_add_format(writer->buf,
                             "%s%lld%s",
                             minus ? "-" : "",
                             (long long)size,
                             writer->canonical ? "" : ".0");
        return;
    }
    struct decimal decimal = shortest(size);
    pawl__buf_add_text(writer->buf, value < 0 ? "-" : "");
    add_decimal(writer->buf, &decimal, size >= EXACT_MAX);
}

static void write_escape(struct pawl__buf *buf, unsigned char c)
{
    static const char short_forms[] =
        "\"\"\\\\\bb\tt\nn\ff\rr"; /* what, letter, what, letter ... */

    for (size_t i = 0; i + 1 < sizeof(short_forms); i += 2) {
        if ((unsigned char)short_forms[i] == c) {
            pawl__buf_add_char(buf, '\\');
            pawl__buf_add_char(buf, short_forms[i + 1]);
            return;
        }
    }
    char digits[2];
    pawl__hex_byte(c, digits);
    pawl__buf_add_text(buf, "\\u00");
    pawl__buf_add(buf, (pawl_view){ digits, sizeof(digits) });
}

static void write_string(struct pawl__buf *buf, pawl_view text)
{
    size_t plain = 0; /* start of what needs no escape and is not written yet */

    pawl__buf_add_char(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            pawl__buf_add(buf, (pawl_view){ &text.data[plain], i - plain });
            write_escape(buf, c);
            plain = i + 1;
        }
    }
    pawl__buf_add(buf, (pawl_view){ &text.data[plain], text.len - plain });
    pawl__buf_add_char(buf, '"');
}

struct member {
    pawl_view key;
    json_t *value;
};

/* UTF-8 sorts by bytes as UTF-16 sorts by code units, except that UTF-16 has U+10000 and above
 * (leading bytes F0 to F4, surrogates D800 to DFFF) before U+E000 to U+FFFF (EE and EF). */
static int utf16_rank(char c)
{
    int byte = (unsigned char)c;

    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    size_t common = MIN(a->key.len, b->key.len);

    for (size_t i = 0; i < common; i++) {
        if (a->key.data[i] != b->key.data[i]) {
            return utf16_rank(a->key.data[i]) - utf16_rank(b->key.data[i]);
        }
    }
    return (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

static size_t collect_members(json_t *object, struct member *members)
{
    size_t count = 0;

    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        members[count++] = (struct member){
            .key = { json_object_iter_key(at), json_object_iter_key_len(at) },
            .value = json_object_iter_value(at),
        };
    }
    return count;
}

static pawl_status write_members(struct writer *writer,
                                 const struct member *members,
                                 size_t count,
                                 int depth)
{
    pawl__buf_add_char(writer->buf, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            pawl__buf_add_char(writer->buf, ',');
        }
        write_string(writer->buf, members[i].key);
        pawl__buf_add_char(writer->buf, ':');
        TRY(write_value(writer, members[i].value, depth));
    }
    pawl__buf_add_char(writer->buf, '}');
    return PAWL_OK;
}

static pawl_status write_object(struct writer *writer, json_t *object, int depth)
{
    struct member few[KEYS_ON_STACK];
    struct member *members = few;
    size_t size = json_object_size(object);

    if (size > COUNT_OF(few)) {
        members = calloc(size, sizeof(*members));
        if (members == NULL) {
            return pawl__fail(writer->reterr, PAWL_NOMEM, "no memory for the keys of an object");
        }
    }
    size_t count = collect_members(object, members);
    if (writer->canonical) {
        qsort(members, count, sizeof(*members), compare_members);
    }
    pawl_status status = write_members(writer, members, count, depth);
    if (members != few) {
        free(members);
    }
    return status;
}

static pawl_status write_array(struct writer *writer, json_t *array, int depth)
{
    size_t count = json_array_size(array);

    pawl__buf_add_char(writer->buf, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            pawl__buf_add_char(writer->buf, ',');
        }
        TRY(write_value(writer, json_array_get(array, i), depth));
    }
    pawl__buf_add_char(writer->buf, ']');
    return PAWL_OK;
}

/* `depth` is that of the arrays and objects around the value. */
static pawl_status write_value(struct writer *writer, json_t *json, int depth)
{
    bool nests = json_is_array(json) || json_is_object(json);

    if (nests && depth == PAWL__JSON_DEPTH_MAX) {
        return pawl__fail(writer->reterr,
                          PAWL_INVALID,
                          "more than %d levels of arrays and objects",
                          PAWL__JSON_DEPTH_MAX);
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return write_object(writer, json, depth + 1);
    case JSON_ARRAY:
        return write_array(writer, json, depth + 1);
    case JSON_STRING:
        write_string(writer->buf, (pawl_view){ json_string_value(json), json_string_length(json) });
        break;
    case JSON_INTEGER:
        pawl__buf_add_format(writer->buf, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        break;
    case JSON_REAL:
        write_real(writer, json_real_value(json));
        break;
    case JSON_TRUE:
        pawl__buf_add_text(writer->buf, "true");
        break;
    case JSON_FALSE:
        pawl__buf_add_text(writer->buf, "false");
        break;
    case JSON_NULL:
        pawl__buf_add_text(writer->buf, "null");
        break;
    }
    return PAWL_OK;
}

/* A failed call leaves the buffer as it was. */
static pawl_status write_json(struct writer *writer, json_t *json)
{
    size_t before = writer->buf->len;

    TRY(pawl__buf_check(writer->buf, "what stands before JSON", writer->reterr));
    pawl_status status = write_value(writer, json, 0);
    if (status == PAWL_OK) {
        status = pawl__buf_check(writer->buf, "JSON", writer->reterr);
    }
    if (status != PAWL_OK) {
        pawl__buf_cut(writer->buf, before);
    }
    return status;
}

pawl_status pawl__json_dump(json_t *json, struct pawl__buf *buf, pawl_error *reterr)
{
    return write_json(&(struct writer){ buf, false, reterr }, json);
}

pawl_status pawl__json_canonical(json_t *json, struct pawl__buf *buf, pawl_error *reterr)
{
    return write_json(&(struct writer){ buf, true, reterr }, json);
}

pawl_status pawl__json_same(pawl_view a, pawl_view b, bool *ret_same, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf one = BUF_INIT(SIZE_MAX / 2);
    AUTO(pawl__buf_done) struct pawl__buf other = BUF_INIT(SIZE_MAX / 2);
    json_auto_t *json_a = NULL;
    json_auto_t *json_b = NULL;

    *ret_same = pawl__view_equal(a, b);
    if (*ret_same || a.len == 0 || b.len == 0) {
        return PAWL_OK;
    }
    if (pawl__json_parse(a, a.len, &json_a, NULL) != PAWL_OK
        || pawl__json_parse(b, b.len, &json_b, NULL) != PAWL_OK) {
        return PAWL_OK;
    }
    TRY(pawl__json_canonical(json_a, &one, reterr));
    TRY(pawl__json_canonical(json_b, &other, reterr));
    *ret_same = pawl__view_equal(pawl__buf_view(&one), pawl__buf_view(&other));
    return PAWL_OK;
}
