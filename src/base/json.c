#include "base/json.h"

#include <assert.h>
#include <limits.h>

#include "base/error.h"

/* Where a byte stands, for people: both from 1, the column in characters. */
struct place {
    size_t line;
    size_t column;
};

static struct place place_of(pawl_view text, size_t at)
{
    struct place place = { 1, 1 };

    for (size_t i = 0; i < at; i++) {
        if (text.data[i] == '\n') {
            place = (struct place){ place.line + 1, 1 };
        } else if (((unsigned char)text.data[i] & 0xC0) != 0x80) {
            place.column++;
        }
    }
    return place;
}

static pawl_status fail_at(pawl_view text, size_t at, const char *what, pawl_error *reterr)
{
    struct place place = place_of(text, at);

    return pawl__fail(
        reterr, PAWL_INVALID, "line %zu, column %zu: %s", place.line, place.column, what);
}

/* What jansson lets through. It takes a NUL byte behind a value for the end and ignores the rest;
 * and its limit of 2,048 levels is deeper than a stack should be asked for. Whether the brackets
 * match is jansson's to say: here they are only counted, outside of strings. */
static pawl_status check_text(pawl_view text, pawl_error *reterr)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\0') {
            return fail_at(text, i, "NUL byte", reterr);
        }
        if (in_string) {
            i += c == '\\' && i + 1 < text.len && text.data[i + 1] != '\0'; /* ends nothing */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > PAWL__JSON_DEPTH_MAX) {
                return fail_at(text, i, "more than 64 levels of arrays and objects", reterr);
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return PAWL_OK;
}

static_assert(PAWL__JSON_DEPTH_MAX == 64, "the message above says 64");

/* The one place where jansson's errors become ours. */
static pawl_status fail_jansson(const json_error_t *error, pawl_error *reterr)
{
    /* It says nothing where an allocation failed while it built a value. */
    if (json_error_code(error) == json_error_out_of_memory || error->text[0] == '\0') {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for JSON");
    }
    return pawl__fail(
        reterr, PAWL_INVALID, "line %d, column %d: %s", error->line, error->column, error->text);
}

pawl_status pawl__json_parse(pawl_view text,
                             size_t bytes_max,
                             json_t **ret_json,
                             pawl_error *reterr)
{
    json_error_t error = { 0 };

    REQUIRE(bytes_max <= INT_MAX); /* jansson counts in int */
    if (text.len > bytes_max) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%zu bytes of JSON, the limit is %zu", text.len, bytes_max);
    }
    pawl_status status = check_text(text, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    json_t *json = json_loadb(text.data == NULL ? "" : text.data,
                              text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                              &error);
    if (json == NULL) {
        return fail_jansson(&error, reterr);
    }
    *ret_json = json;
    return PAWL_OK;
}
