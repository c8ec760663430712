/* What the parts of the JSON reader share: parse.c (values), string.c, number.c. */
#ifndef PAWL_BASE_JSON_PARSER_H
#define PAWL_BASE_JSON_PARSER_H

#include "base/json/json.h"

struct pawl__json_parser {
    pawl_view text;
    size_t at;
    struct pawl__buf scratch; /* a string without its escapes, a real without its point */
    pawl_error *reterr;
};

/* INVALID at a byte of the text, with its line and column; at where the parser is; or NOMEM. */
pawl_status pawl__json_fail_at(const struct pawl__json_parser *parser, size_t at, const char *what);
pawl_status pawl__json_fail_here(const struct pawl__json_parser *parser, const char *what);
pawl_status pawl__json_fail_memory(const struct pawl__json_parser *parser);

/* The string at the opening quote. The view is good until the next string is read. */
PAWL_MUST_USE pawl_status pawl__json_parse_text(struct pawl__json_parser *parser,
                                                pawl_view *ret_text);

/* `ret_json` may be NULL: then it is only checked. */
PAWL_MUST_USE pawl_status pawl__json_parse_number(struct pawl__json_parser *parser,
                                                  json_t **ret_json);

/* The next byte; 0 at the end, since NUL bytes were refused before. */
static inline char parser_peek(const struct pawl__json_parser *parser)
{
    return parser->at < parser->text.len ? parser->text.data[parser->at] : '\0';
}

static inline bool parser_accept(struct pawl__json_parser *parser, char c)
{
    if (parser_peek(parser) != c) {
        return false;
    }
    parser->at++;
    return true;
}

static inline void parser_skip_space(struct pawl__json_parser *parser)
{
    for (char c = parser_peek(parser); c == ' ' || c == '\t' || c == '\n' || c == '\r';
         c = parser_peek(parser)) {
        parser->at++;
    }
}

static inline bool is_json_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The bytes from `start` to here. */
static inline pawl_view parser_since(const struct pawl__json_parser *parser, size_t start)
{
    return (pawl_view){ &parser->text.data[start], parser->at - start };
}

#endif
