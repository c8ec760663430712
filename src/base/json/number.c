/* Numbers of JSON: integers of 64 bits, reals that a double holds. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/json/parser.h"

enum {
    EXPONENT_MAX = 1000000, /* so far beyond any double that more digits change nothing */
    DIGITS_IN_RANGE = DBL_MAX_10_EXP,
};

static bool take_digits(struct pawl__json_parser *parser)
{
    size_t start = parser->at;

    while (is_json_digit(parser_peek(parser))) {
        parser->at++;
    }
    return parser->at > start;
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
        if (is_json_digit(text.data[i])) {
            exponent = MIN(exponent * 10 + (text.data[i] - '0'), (long)EXPONENT_MAX);
        }
    }
    return minus ? -exponent : exponent;
}

/* strtod reads the decimal point of the process's locale: give it digits and an exponent only. */
static pawl_status parse_real(struct pawl__json_parser *parser, size_t start, json_t **ret_json)
{
    pawl_view rest = parser_since(parser, start);
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
        return pawl__json_fail_memory(parser);
    }
    double value = strtod(parser->scratch.data, NULL);
    if (!isfinite(value)) {
        return pawl__json_fail_at(parser, start, "real number out of range");
    }
    if (ret_json == NULL) {
        return PAWL_OK;
    }
    *ret_json = json_real(value);
    return *ret_json == NULL ? pawl__json_fail_memory(parser) : PAWL_OK;
}

pawl_status pawl__json_parse_number(struct pawl__json_parser *parser, json_t **ret_json)
{
    size_t start = parser->at;
    json_int_t value;

    parser_accept(parser, '-');
    if (!parser_accept(parser, '0') && !take_digits(parser)) {
        return pawl__json_fail_here(parser, "expected a digit");
    }
    if (is_json_digit(parser_peek(parser))) {
        return pawl__json_fail_at(parser, start, "a number starts with 0 only before a point");
    }
    bool is_real = parser_accept(parser, '.');
    if (is_real && !take_digits(parser)) {
        return pawl__json_fail_here(parser, "expected a digit");
    }
    bool has_exponent = parser_accept(parser, 'e') || parser_accept(parser, 'E');
    if (has_exponent) {
        is_real = true;
        if (!parser_accept(parser, '+')) {
            parser_accept(parser, '-');
        }
        if (!take_digits(parser)) {
            return pawl__json_fail_here(parser, "expected a digit");
        }
    }
    if (is_real) {
        /* Without an exponent it takes more digits than these to leave the range. */
        bool is_small = !has_exponent && parser->at - start < DIGITS_IN_RANGE;
        return ret_json == NULL && is_small ? PAWL_OK : parse_real(parser, start, ret_json);
    }
    if (!integer_of(parser_since(parser, start), &value)) {
        return pawl__json_fail_at(parser, start, "integer out of range (64 bits)");
    }
    if (ret_json == NULL) {
        return PAWL_OK;
    }
    *ret_json = json_integer(value);
    return *ret_json == NULL ? pawl__json_fail_memory(parser) : PAWL_OK;
}
