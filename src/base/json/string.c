/* Strings of JSON: escapes, surrogate pairs, and the runs of plain characters between them. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/json/parser.h"

/* Four hex digits behind "\u". */
static bool take_unit(struct pawl__json_parser *parser, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        int value = pawl__hex_value(parser_peek(parser));
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
static pawl_status parse_unicode(struct pawl__json_parser *parser, size_t start)
{
    uint32_t unit;
    uint32_t low;

    if (!take_unit(parser, &unit)) {
        return pawl__json_fail_here(parser, "expected four hex digits after \\u");
    }
    if (unit == 0) {
        return pawl__json_fail_at(parser, start, "\\u0000 is not allowed");
    }
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        if (unit > 0xDBFF || !parser_accept(parser, '\\') || !parser_accept(parser, 'u')
            || !take_unit(parser, &low) || low < 0xDC00 || low > 0xDFFF) {
            return pawl__json_fail_at(parser, start, "half a surrogate pair");
        }
        unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF));
    }
    add_utf8(&parser->scratch, unit);
    return PAWL_OK;
}

static pawl_status parse_escape(struct pawl__json_parser *parser)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    size_t start = parser->at++; /* the backslash */
    char letter = parser_peek(parser);
    const char *found = letter == '\0' ? NULL : strchr(letters, letter);

    if (found != NULL) {
        parser->at++;
        pawl__buf_add_char(&parser->scratch, meanings[found - letters]);
        return PAWL_OK;
    }
    if (parser_accept(parser, 'u')) {
        return parse_unicode(parser, start);
    }
    return pawl__json_fail_here(parser, "no such escape");
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
static void skip_plain(struct pawl__json_parser *parser)
{
    uint64_t eight;

    for (; parser->text.len - parser->at >= sizeof(eight); parser->at += sizeof(eight)) {
        memcpy(&eight, &parser->text.data[parser->at], sizeof(eight));
        if (may_end(eight)) {
            break;
        }
    }
    for (unsigned char c = (unsigned char)parser_peek(parser); c >= 0x20 && c != '"' && c != '\\';
         c = (unsigned char)parser_peek(parser)) {
        parser->at++;
    }
}

pawl_status pawl__json_parse_text(struct pawl__json_parser *parser, pawl_view *ret_text)
{
    size_t start = ++parser->at;

    skip_plain(parser);
    if (parser_peek(parser) == '"') { /* nothing escaped: it stands in the text as it is */
        *ret_text = parser_since(parser, start);
        parser->at++;
        return PAWL_OK;
    }
    pawl__buf_clear(&parser->scratch);
    pawl__buf_add(&parser->scratch, parser_since(parser, start));
    while (!parser_accept(parser, '"')) {
        if (parser_peek(parser) != '\\') {
            return pawl__json_fail_here(parser, "control character in a string");
        }
        TRY(parse_escape(parser));
        start = parser->at;
        skip_plain(parser);
        pawl__buf_add(&parser->scratch, parser_since(parser, start));
    }
    *ret_text = pawl__buf_view(&parser->scratch);
    return parser->scratch.broken ? pawl__json_fail_memory(parser) : PAWL_OK;
}
