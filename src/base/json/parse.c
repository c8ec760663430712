/* Reading JSON (json.h), into values or, where `ret_json` is NULL, for nothing but the errors.
 * jansson's own reader is not used: where memory runs out while it collects a token it goes on
 * without the missing bytes and may return another value than was written, and it takes a NUL byte
 * behind the value for the end. */
#include <assert.h>
#include <string.h>

#include "base/core/error.h"
#include "base/json/keys.h"
#include "base/json/parser.h"

static pawl_status parse_value(struct pawl__json_parser *parser, int depth, json_t **ret_json);

/* Line and column from 1, the column in characters. */
pawl_status pawl__json_fail_at(const struct pawl__json_parser *parser, size_t at, const char *what)
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

pawl_status pawl__json_fail_here(const struct pawl__json_parser *parser, const char *what)
{
    if (parser->at < parser->text.len) {
        return pawl__json_fail_at(parser, parser->at, what);
    }
    return pawl__json_fail_at(
        parser, parser->at, parser->text.len == 0 ? "the text is empty" : "the text ends here");
}

pawl_status pawl__json_fail_memory(const struct pawl__json_parser *parser)
{
    return pawl__fail(parser->reterr, PAWL_NOMEM, "no memory for JSON");
}

static pawl_status parse_string(struct pawl__json_parser *parser, json_t **ret_json)
{
    pawl_view text;
    pawl_status status = pawl__json_parse_text(parser, &text);

    if (status != PAWL_OK || ret_json == NULL) {
        return status;
    }
    *ret_json = json_stringn_nocheck(text.len == 0 ? "" : text.data, text.len);
    return *ret_json == NULL ? pawl__json_fail_memory(parser) : PAWL_OK;
}

static bool begins_with_byte_order_mark(const struct pawl__json_parser *parser)
{
    static const char mark[] = { '\xEF', '\xBB', '\xBF' };

    return parser->at == 0 && parser->text.len >= sizeof(mark)
           && memcmp(parser->text.data, mark, sizeof(mark)) == 0;
}

static pawl_status parse_word(struct pawl__json_parser *parser, json_t **ret_json)
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
    return pawl__json_fail_here(parser,
                                begins_with_byte_order_mark(parser)
                                    ? "a byte order mark is not allowed"
                                    : "expected a value");
}

/* --- arrays and objects --- */

/* Behind an item or a member: true when another one follows, false at the end. */
static pawl_status next_or_end(struct pawl__json_parser *parser, char end, bool *ret_next)
{
    parser_skip_space(parser);
    *ret_next = parser_accept(parser, ',');
    if (*ret_next || parser_accept(parser, end)) {
        return PAWL_OK;
    }
    return pawl__json_fail_here(parser, end == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
}

static pawl_status parse_item(struct pawl__json_parser *parser, int depth, json_t *array)
{
    json_t *item = NULL;
    pawl_status status = parse_value(parser, depth, array == NULL ? NULL : &item);

    if (status != PAWL_OK || array == NULL) {
        return status;
    }
    /* Frees the item, too, when it fails. */
    return json_array_append_new(array, item) == 0 ? PAWL_OK : pawl__json_fail_memory(parser);
}

static pawl_status parse_array(struct pawl__json_parser *parser, int depth, json_t **ret_json)
{
    json_auto_t *array = ret_json == NULL ? NULL : json_array();

    if (ret_json != NULL && array == NULL) {
        return pawl__json_fail_memory(parser);
    }
    parser->at++;
    parser_skip_space(parser);
    for (bool more = !parser_accept(parser, ']'); more;) {
        TRY(parse_item(parser, depth, array));
        TRY(next_or_end(parser, ']', &more));
    }
    if (ret_json != NULL) {
        *ret_json = STEAL(array);
    }
    return PAWL_OK;
}

/* The keys of an object read so far: in the object, or in `separate` when none is made. */
struct keys {
    json_t *object;
    struct pawl__json_keys separate;
};

static void keys_done(struct keys *keys)
{
    pawl__json_keys_done(&keys->separate);
}

static bool has_key(const struct keys *keys, pawl_view key)
{
    return keys->object != NULL ? json_object_getn(keys->object, key.data, key.len) != NULL
                                : pawl__json_keys_has(&keys->separate, key);
}

static pawl_status put_aside(struct pawl__json_parser *parser, struct keys *keys, pawl_view key)
{
    bool in_text = key.data != parser->scratch.data;

    return pawl__json_keys_add(&keys->separate, key, in_text) ? PAWL_OK
                                                              : pawl__json_fail_memory(parser);
}

static pawl_status parse_key(struct pawl__json_parser *parser,
                             const struct keys *keys,
                             pawl_view *ret_key)
{
    parser_skip_space(parser);
    size_t start = parser->at;
    if (parser_peek(parser) != '"') {
        return pawl__json_fail_here(parser, "expected a key in double quotes");
    }
    TRY(pawl__json_parse_text(parser, ret_key));
    if (has_key(keys, *ret_key)) {
        return pawl__json_fail_at(parser, start, "the same key again in one object");
    }
    return PAWL_OK;
}

static pawl_status take_colon(struct pawl__json_parser *parser)
{
    parser_skip_space(parser);
    return parser_accept(parser, ':') ? PAWL_OK : pawl__json_fail_here(parser, "expected ':'");
}

static pawl_status check_member(struct pawl__json_parser *parser, int depth, struct keys *keys)
{
    pawl_view key;

    TRY(parse_key(parser, keys, &key));
    TRY(put_aside(parser, keys, key));
    TRY(take_colon(parser));
    return parse_value(parser, depth, NULL);
}

/* One `"key": value` into the object. */
static pawl_status parse_member(struct pawl__json_parser *parser, int depth, struct keys *keys)
{
    AUTO(pawl__text_free) char *copy = NULL;
    json_t *value = NULL;
    pawl_view key;

    TRY(parse_key(parser, keys, &key));
    if (key.data == parser->scratch.data) { /* the value may need the scratch itself */
        copy = pawl__view_dup(key);
        if (copy == NULL) {
            return pawl__json_fail_memory(parser);
        }
        key.data = copy;
    }
    TRY(take_colon(parser));
    TRY(parse_value(parser, depth, &value));
    /* Frees the value, too, when it fails. */
    return json_object_setn_new_nocheck(keys->object, key.data, key.len, value) == 0
               ? PAWL_OK
               : pawl__json_fail_memory(parser);
}

static pawl_status parse_object(struct pawl__json_parser *parser, int depth, json_t **ret_json)
{
    json_auto_t *object = ret_json == NULL ? NULL : json_object();

    if (ret_json != NULL && object == NULL) {
        return pawl__json_fail_memory(parser);
    }
    AUTO(keys_done) struct keys keys;
    keys.object = object;
    pawl__json_keys_init(&keys.separate);
    parser->at++;
    parser_skip_space(parser);
    for (bool more = !parser_accept(parser, '}'); more;) {
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
static pawl_status parse_value(struct pawl__json_parser *parser, int depth, json_t **ret_json)
{
    parser_skip_space(parser);
    char c = parser_peek(parser);
    if ((c == '[' || c == '{') && depth == PAWL__JSON_DEPTH_MAX) {
        return pawl__json_fail_here(parser, "more than 64 levels of arrays and objects");
    }
    switch (c) {
    case '{':
        return parse_object(parser, depth + 1, ret_json);
    case '[':
        return parse_array(parser, depth + 1, ret_json);
    case '"':
        return parse_string(parser, ret_json);
    default:
        return c == '-' || is_json_digit(c) ? pawl__json_parse_number(parser, ret_json)
                                            : parse_word(parser, ret_json);
    }
}

static_assert(PAWL__JSON_DEPTH_MAX == 64, "the message above says 64");

/* Bytes that stand nowhere in good JSON, so that the rest need not think of them. */
static pawl_status check_bytes(const struct pawl__json_parser *parser)
{
    pawl_view rest = parser->text;
    pawl_view ascii;
    uint32_t code = 1;

    do {
        if (code == 0) {
            return pawl__json_fail_at(parser, parser->text.len - rest.len - 1, "NUL byte");
        }
        REQUIRE(pawl__view_take(&rest, pawl__view_ascii_run(rest), &ascii));
    } while (pawl__view_take_utf8(&rest, &code));
    return rest.len == 0 ? PAWL_OK
                         : pawl__json_fail_at(parser, parser->text.len - rest.len, "not UTF-8");
}

static pawl_status parse_whole(struct pawl__json_parser *parser, json_t **ret_json)
{
    json_auto_t *json = NULL;

    TRY(check_bytes(parser));
    TRY(parse_value(parser, 0, ret_json == NULL ? NULL : &json));
    parser_skip_space(parser);
    if (parser->at < parser->text.len) {
        return pawl__json_fail_here(parser, "nothing expected after the value");
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
    struct pawl__json_parser parser = {
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
