/* Reading JSON (json.h), into values or, where `ret_json` is NULL, for nothing but the errors.
 * jansson's own reader is not used: where memory runs out while it collects a token it goes on
 * without the missing bytes and may return another value than was written, and it takes a NUL byte
 * behind the value for the end. */
#include "base/json/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/json/keys.h"

enum {
    EXPONENT_MAX = 1000000, /* so far beyond any double that more digits change nothing */
    DIGITS_IN_RANGE = DBL_MAX_10_EXP,
};

struct parser {
    pawl_view text;
    size_t at;
    struct pawl__buf scratch; /* a string without its escapes, a real without its point */
    pawl_error *reterr;
};

static pawl_status parse_value(struct parser *parser, int depth, json_t **ret_json);

/* Line and column from 1, the column in characters. */
static pawl_status fail_at(const struct parser *parser, size_t at, const char *what)
{
    size_t line = 1;
    size_t column = 1;

    for (size_t i = 0; i < at; i++) {
        if (parser->text.data[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)parser->text.data[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    return pawl__fail(parser->reterr, PAWL_INVALID, "line %zu, column %zu: %s", line, column, what);
}

static pawl_status fail_here(const struct parser *parser, const char *what)
{
    return fail_at(parser, parser->at, parser->at < parser->text.len ? what : "the text ends here");
}

static pawl_status fail_memory(const struct parser *parser)
{
    return pawl__fail(parser->reterr, PAWL_NOMEM, "no memory for JSON");
}

/* The next byte; 0 at the end, since NUL bytes were refused before. */
static char peek(const struct parser *parser)
{
    return parser->at < parser->text.len ? parser->text.data[parser->at] : '\0';
}

static bool take(struct parser *parser, char c)
{
    if (peek(parser) != c) {
        return false;
    }
    parser->at++;
    return true;
}

static void skip_space(struct parser *parser)
{
    for (char c = peek(parser); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(parser)) {
        parser->at++;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_digits(struct parser *parser)
{
    size_t start = parser->at;

    while (is_digit(peek(parser))) {
        parser->at++;
    }
    return parser->at > start;
}

/* The bytes from `start` to here. */
static pawl_view since(const struct parser *parser, size_t start)
{
    return (pawl_view){ &parser->text.data[start], parser->at - start };
}

/* Four hex digits behind "\u". */
static bool take_unit(struct parser *parser, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        int value = pawl__hex_value(peek(parser));
        if (value < 0) {
            return false;
        }
        unit = unit << 4 | (uint32_t)value;
        parser->at++;
    }
    *ret_unit = unit;
    return true;
}

static void add_utf8(struct pawl__buf *buf, uint32_t code)
{
    if (code < 0x80) {
        pawl__buf_add_u8(buf, (uint8_t)code);
        return;
    }
    if (code < 0x800) {
        pawl__buf_add_u8(buf, (uint8_t)(0xC0 | code >> 6));
    } else if (code < 0x10000) {
        pawl__buf_add_u8(buf, (uint8_t)(0xE0 | code >> 12));
        pawl__buf_add_u8(buf, (uint8_t)(0x80 | (code >> 6 & 0x3F)));
    } else {
        pawl__buf_add_u8(buf, (uint8_t)(0xF0 | code >> 18));
        pawl__buf_add_u8(buf, (uint8_t)(0x80 | (code >> 12 & 0x3F)));
        pawl__buf_add_u8(buf, (uint8_t)(0x80 | (code >> 6 & 0x3F)));
    }
    pawl__buf_add_u8(buf, (uint8_t)(0x80 | (code & 0x3F)));
}

/* Behind "\u"; `start` is where the backslash stands. */
static pawl_status parse_unicode(struct parser *parser, size_t start)
{
    uint32_t unit;
    uint32_t low;

    if (!take_unit(parser, &unit)) {
        return fail_here(parser, "expected four hex digits behind \\u");
    }
    if (unit == 0) {
        return fail_at(parser, start, "\\u0000 is not allowed");
    }
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        if (unit > 0xDBFF || !take(parser, '\\') || !take(parser, 'u') || !take_unit(parser, &low)
            || low < 0xDC00 || low > 0xDFFF) {
            return fail_at(parser, start, "half a surrogate pair");
        }
        unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF));
    }
    add_utf8(&parser->scratch, unit);
    return PAWL_OK;
}

static pawl_status parse_escape(struct parser *parser)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    size_t start = parser->at++; /* the backslash */
    char letter = peek(parser);
    const char *found = letter == '\0' ? NULL : strchr(letters, letter);

    if (found != NULL) {
        parser->at++;
        pawl__buf_add_char(&parser->scratch, meanings[found - letters]);
        return PAWL_OK;
    }
    if (take(parser, 'u')) {
        return parse_unicode(parser, start);
    }
    return fail_here(parser, "no such escape");
}

/* True when one of the eight bytes may be a quote, a backslash or a control character: subtracting
 * borrows from the top bit of the bytes that are too small. Bytes above 127 are taken for it, too,
 * and looked at one by one. */
static bool may_end(uint64_t eight)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quotes = eight ^ (ones * '"');
    uint64_t escapes = eight ^ (ones * '\\');

    return (((eight - ones * 0x20) | (quotes - ones) | (escapes - ones) | eight) & ones << 7) != 0;
}

/* Where a run of plain characters of a string ends. */
static void skip_plain(struct parser *parser)
{
    uint64_t eight;

    for (; parser->text.len - parser->at >= sizeof(eight); parser->at += sizeof(eight)) {
        memcpy(&eight, &parser->text.data[parser->at], sizeof(eight));
        if (may_end(eight)) {
            break;
        }
    }
    for (unsigned char c = (unsigned char)peek(parser); c >= 0x20 && c != '"' && c != '\\';
         c = (unsigned char)peek(parser)) {
        parser->at++;
    }
}

/* The string at the opening quote. The view is good until the next string is read. */
static pawl_status parse_text(struct parser *parser, pawl_view *ret_text)
{
    size_t start = ++parser->at;

    skip_plain(parser);
    if (peek(parser) == '"') { /* nothing escaped: it stands in the text as it is */
        *ret_text = since(parser, start);
        parser->at++;
        return PAWL_OK;
    }
    pawl__buf_clear(&parser->scratch);
    pawl__buf_add(&parser->scratch, since(parser, start));
    while (!take(parser, '"')) {
        if (peek(parser) != '\\') {
            return fail_here(parser, "control character in a string");
        }
        TRY(parse_escape(parser));
        start = parser->at;
        skip_plain(parser);
        pawl__buf_add(&parser->scratch, since(parser, start));
    }
    *ret_text = pawl__buf_view(&parser->scratch);
    return parser->scratch.broken ? fail_memory(parser) : PAWL_OK;
}

static pawl_status parse_string(struct parser *parser, json_t **ret_json)
{
    pawl_view text;
    pawl_status status = parse_text(parser, &text);

    if (status != PAWL_OK || ret_json == NULL) {
        return status;
    }
    *ret_json = json_stringn_nocheck(text.len == 0 ? "" : text.data, text.len);
    return *ret_json == NULL ? fail_memory(parser) : PAWL_OK;
}

/* "-123", which the grammar has already accepted. False outside int64. */
static bool integer_of(pawl_view text, json_int_t *ret_value)
{
    bool minus = text.data[0] == '-';
    json_int_t value = 0;

    for (size_t i = minus; i < text.len; i++) {
        int digit = text.data[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value)
            || __builtin_add_overflow(value, minus ? -digit : digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static long exponent_of(pawl_view text)
{
    bool minus = text.len > 0 && text.data[0] == '-';
    long exponent = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (is_digit(text.data[i])) {
            exponent = MIN(exponent * 10 + (text.data[i] - '0'), (long)EXPONENT_MAX);
        }
    }
    return minus ? -exponent : exponent;
}

/* strtod reads the decimal point of the process's locale: give it digits and an exponent only. */
static pawl_status parse_real(struct parser *parser, size_t start, json_t **ret_json)
{
    pawl_view rest = since(parser, start);
    size_t len = 0;
    long decimals = 0;
    bool behind_point = false;

    pawl__buf_clear(&parser->scratch);
    for (; len < rest.len && rest.data[len] != 'e' && rest.data[len] != 'E'; len++) {
        if (rest.data[len] == '.') {
            behind_point = true;
        } else {
            pawl__buf_add_char(&parser->scratch, rest.data[len]);
            decimals += behind_point;
        }
    }
    pawl_view mantissa;
    pawl_view sign;
    REQUIRE(pawl__view_take(&rest, len, &mantissa));
    long exponent = pawl__view_take(&rest, 1, &sign) ? exponent_of(rest) : 0;
    pawl__buf_add_format(&parser->scratch, "e%ld", exponent - decimals);
    if (parser->scratch.broken) {
        return fail_memory(parser);
    }
    double value = strtod(parser->scratch.data, NULL);
    if (!isfinite(value)) {
        return fail_at(parser, start, "real number out of range");
    }
    if (ret_json == NULL) {
        return PAWL_OK;
    }
    *ret_json = json_real(value);
    return *ret_json == NULL ? fail_memory(parser) : PAWL_OK;
}

static pawl_status parse_number(struct parser *parser, json_t **ret_json)
{
    size_t start = parser->at;
    json_int_t value;

    take(parser, '-');
    if (!take(parser, '0') && !take_digits(parser)) {
        return fail_here(parser, "expected a digit");
    }
    if (is_digit(peek(parser))) {
        return fail_at(parser, start, "a number starts with 0 only before a point");
    }
    bool is_real = take(parser, '.');
    if (is_real && !take_digits(parser)) {
        return fail_here(parser, "expected a digit");
    }
    bool has_exponent = take(parser, 'e') || take(parser, 'E');
    if (has_exponent) {
        is_real = true;
        if (!take(parser, '+')) {
            take(parser, '-');
        }
        if (!take_digits(parser)) {
            return fail_here(parser, "expected a digit");
        }
    }
    if (is_real) {
        /* Without an exponent it takes more digits than these to leave the range. */
        bool is_small = !has_exponent && parser->at - start < DIGITS_IN_RANGE;
        return ret_json == NULL && is_small ? PAWL_OK : parse_real(parser, start, ret_json);
    }
    if (!integer_of(since(parser, start), &value)) {
        return fail_at(parser, start, "integer out of range (64 bits)");
    }
    if (ret_json == NULL) {
        return PAWL_OK;
    }
    *ret_json = json_integer(value);
    return *ret_json == NULL ? fail_memory(parser) : PAWL_OK;
}

static pawl_status parse_word(struct parser *parser, json_t **ret_json)
{
    static const struct {
        const char *word;
        json_t *(*make)(void);
    } words[] = { { "true", json_true }, { "false", json_false }, { "null", json_null } };

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t len = strlen(words[i].word);
        if (parser->text.len - parser->at >= len
            && memcmp(&parser->text.data[parser->at], words[i].word, len) == 0) {
            parser->at += len;
            if (ret_json != NULL) {
                *ret_json = words[i].make();
            }
            return PAWL_OK;
        }
    }
    return fail_here(parser, "expected a value");
}

/* --- arrays and objects --- */

/* Behind an item or a member: true when another one follows, false at the end. */
static pawl_status next_or_end(struct parser *parser, char end, bool *ret_next)
{
    skip_space(parser);
    *ret_next = take(parser, ',');
    if (*ret_next || take(parser, end)) {
        return PAWL_OK;
    }
    return fail_here(parser, end == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
}

static pawl_status parse_item(struct parser *parser, int depth, json_t *array)
{
    json_t *item = NULL;
    pawl_status status = parse_value(parser, depth, array == NULL ? NULL : &item);

    if (status != PAWL_OK || array == NULL) {
        return status;
    }
    /* Frees the item, too, when it fails. */
    return json_array_append_new(array, item) == 0 ? PAWL_OK : fail_memory(parser);
}

static pawl_status parse_array(struct parser *parser, int depth, json_t **ret_json)
{
    json_auto_t *array = ret_json == NULL ? NULL : json_array();

    if (ret_json != NULL && array == NULL) {
        return fail_memory(parser);
    }
    parser->at++;
    skip_space(parser);
    for (bool more = !take(parser, ']'); more;) {
        TRY(parse_item(parser, depth, array));
        TRY(next_or_end(parser, ']', &more));
    }
    if (ret_json != NULL) {
        *ret_json = STEAL(array);
    }
    return PAWL_OK;
}

/* Where the keys of an object are that were read so far: in it, or where none is made, aside. */
struct keys {
    json_t *object;
    struct pawl__json_keys aside;
};

static void keys_done(struct keys *keys)
{
    pawl__json_keys_done(&keys->aside);
}

static bool has_key(const struct keys *keys, pawl_view key)
{
    return keys->object != NULL ? json_object_getn(keys->object, key.data, key.len) != NULL
                                : pawl__json_keys_has(&keys->aside, key);
}

static pawl_status put_aside(struct parser *parser, struct keys *keys, pawl_view key)
{
    bool in_text = key.data != parser->scratch.data;

    return pawl__json_keys_add(&keys->aside, key, in_text) ? PAWL_OK : fail_memory(parser);
}

static pawl_status parse_key(struct parser *parser, const struct keys *keys, pawl_view *ret_key)
{
    skip_space(parser);
    size_t start = parser->at;
    if (peek(parser) != '"') {
        return fail_here(parser, "expected a key in double quotes");
    }
    TRY(parse_text(parser, ret_key));
    if (has_key(keys, *ret_key)) {
        return fail_at(parser, start, "the same key again in one object");
    }
    return PAWL_OK;
}

static pawl_status take_colon(struct parser *parser)
{
    skip_space(parser);
    return take(parser, ':') ? PAWL_OK : fail_here(parser, "expected ':'");
}

static pawl_status check_member(struct parser *parser, int depth, struct keys *keys)
{
    pawl_view key;

    TRY(parse_key(parser, keys, &key));
    TRY(put_aside(parser, keys, key));
    TRY(take_colon(parser));
    return parse_value(parser, depth, NULL);
}

/* One `"key": value` into the object. */
static pawl_status parse_member(struct parser *parser, int depth, struct keys *keys)
{
    AUTO(pawl__text_free) char *copy = NULL;
    json_t *value = NULL;
    pawl_view key;

    TRY(parse_key(parser, keys, &key));
    if (key.data == parser->scratch.data) { /* the value may need the scratch itself */
        copy = pawl__view_dup(key);
        if (copy == NULL) {
            return fail_memory(parser);
        }
        key.data = copy;
    }
    TRY(take_colon(parser));
    TRY(parse_value(parser, depth, &value));
    /* Frees the value, too, when it fails. */
    return json_object_setn_new_nocheck(keys->object, key.data, key.len, value) == 0
               ? PAWL_OK
               : fail_memory(parser);
}

static pawl_status parse_object(struct parser *parser, int depth, json_t **ret_json)
{
    json_auto_t *object = ret_json == NULL ? NULL : json_object();

    if (ret_json != NULL && object == NULL) {
        return fail_memory(parser);
    }
    AUTO(keys_done) struct keys keys;
    keys.object = object;
    pawl__json_keys_init(&keys.aside);
    parser->at++;
    skip_space(parser);
    for (bool more = !take(parser, '}'); more;) {
        TRY(object == NULL ? check_member(parser, depth, &keys)
                           : parse_member(parser, depth, &keys));
        TRY(next_or_end(parser, '}', &more));
    }
    if (ret_json != NULL) {
        *ret_json = STEAL(object);
    }
    return PAWL_OK;
}

/* `depth` is that of the arrays and objects around the value. */
static pawl_status parse_value(struct parser *parser, int depth, json_t **ret_json)
{
    skip_space(parser);
    char c = peek(parser);
    if ((c == '[' || c == '{') && depth == PAWL__JSON_DEPTH_MAX) {
        return fail_here(parser, "more than 64 levels of arrays and objects");
    }
    switch (c) {
    case '{':
        return parse_object(parser, depth + 1, ret_json);
    case '[':
        return parse_array(parser, depth + 1, ret_json);
    case '"':
        return parse_string(parser, ret_json);
    default:
        return c == '-' || is_digit(c) ? parse_number(parser, ret_json)
                                       : parse_word(parser, ret_json);
    }
}

static_assert(PAWL__JSON_DEPTH_MAX == 64, "the message above says 64");

/* Bytes that stand nowhere in good JSON, so that the rest need not think of them. */
static pawl_status check_bytes(const struct parser *parser)
{
    pawl_view rest = parser->text;
    pawl_view ascii;
    uint32_t code = 1;

    do {
        if (code == 0) {
            return fail_at(parser, parser->text.len - rest.len - 1, "NUL byte");
        }
        REQUIRE(pawl__view_take(&rest, pawl__view_ascii_run(rest), &ascii));
    } while (pawl__view_take_utf8(&rest, &code));
    return rest.len == 0 ? PAWL_OK : fail_at(parser, parser->text.len - rest.len, "not UTF-8");
}

static pawl_status parse_whole(struct parser *parser, json_t **ret_json)
{
    json_auto_t *json = NULL;

    TRY(check_bytes(parser));
    TRY(parse_value(parser, 0, ret_json == NULL ? NULL : &json));
    skip_space(parser);
    if (parser->at < parser->text.len) {
        return fail_here(parser, "expected nothing behind the value");
    }
    if (ret_json != NULL) {
        *ret_json = STEAL(json);
    }
    return PAWL_OK;
}

static pawl_status parse(pawl_view text, size_t bytes_max, json_t **ret_json, pawl_error *reterr)
{
    if (text.len > bytes_max) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%zu bytes of JSON, the limit is %zu", text.len, bytes_max);
    }
    struct parser parser = {
        .text = text,
        .scratch = BUF_INIT(text.len + 32), /* an exponent comes on top */
        .reterr = reterr,
    };
    pawl_status status = parse_whole(&parser, ret_json);
    pawl__buf_done(&parser.scratch);
    return status;
}

pawl_status pawl__json_parse(pawl_view text,
                             size_t bytes_max,
                             json_t **ret_json,
                             pawl_error *reterr)
{
    REQUIRE(ret_json != NULL);
    return parse(text, bytes_max, ret_json, reterr);
}

pawl_status pawl__json_check(pawl_view text, size_t bytes_max, pawl_error *reterr)
{
    return parse(text, bytes_max, NULL, reterr);
}
