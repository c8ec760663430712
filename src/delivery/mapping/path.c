#include "delivery/mapping/path.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/json/json.h"
#include "delivery/mapping/mapping.h"

/* --- the path's text --- */

struct step {
    bool is_index;
    pawl_view key;
    uint64_t index;
};

static bool take_char(pawl_view *in, char c)
{
    pawl_view taken;

    return in->len > 0 && in->data[0] == c && pawl__view_take(in, 1, &taken);
}

static bool take_index(pawl_view *in, struct step *step)
{
    pawl_view digit;
    uint64_t index = 0;
    size_t digits = 0;

    while (in->len > 0 && in->data[0] >= '0' && in->data[0] <= '9' && digits < 9
           && pawl__view_take(in, 1, &digit)) {
        index = index * 10 + (uint64_t)(digit.data[0] - '0');
        digits++;
    }
    *step = (struct step){ .is_index = true, .index = index };
    return digits > 0 && take_char(in, ']');
}

static bool take_key(pawl_view *in, struct step *step)
{
    size_t len = 0;

    *step = (struct step){ .is_index = false };
    if (take_char(in, '"')) {
        const char *end = in->len == 0 ? NULL : memchr(in->data, '"', in->len);
        return end != NULL && pawl__view_take(in, (size_t)(end - in->data), &step->key)
               && take_char(in, '"');
    }
    while (len < in->len && strchr(".[]\"$ ", in->data[len]) == NULL) {
        len++;
    }
    return len > 0 && pawl__view_take(in, len, &step->key);
}

/* False at the end, and at what is no step. */
static bool take_step(pawl_view *path, struct step *ret_step)
{
    pawl_view in = *path;

    if (take_char(&in, '[') ? take_index(&in, ret_step)
                            : take_char(&in, '.') && take_key(&in, ret_step)) {
        *path = in;
        return true;
    }
    return false;
}

pawl_status pawl__delivery_path_check(const char *path, pawl_error *reterr)
{
    pawl_view rest = pawl_view_of(path);
    struct step step;
    size_t depth = 0;

    if (rest.len > DELIVERY_PATH_BYTES_MAX || !pawl__view_is_utf8(rest)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "path '%.40s...' is over %d bytes or not UTF-8",
                          path,
                          DELIVERY_PATH_BYTES_MAX);
    }
    bool has_root = take_char(&rest, '$');
    while (has_root && take_step(&rest, &step)) {
        depth++;
    }
    if (!has_root || rest.len > 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is not a path: write $.key, $.\"any key\" or $.list[0]",
                          path);
    }
    if (depth > DELIVERY_PATHS_DEPTH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "path '%s' has %zu steps, the limit is %d",
                          path,
                          depth,
                          DELIVERY_PATHS_DEPTH_MAX);
    }
    return PAWL_OK;
}

/* --- the JSON: it is known to be well-formed --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(pawl_view *in)
{
    while (in->len > 0 && is_blank(in->data[0])) {
        (void)take_char(in, in->data[0]);
    }
}

/* The whole text without the blanks around it. */
static pawl_view trim(pawl_view json)
{
    skip_blanks(&json);
    while (json.len > 0 && is_blank(json.data[json.len - 1])) {
        json.len--;
    }
    return json;
}

static bool take_scalar(pawl_view *in, pawl_view *ret_token)
{
    size_t len = 0;

    while (len < in->len && in->data[len] != ',' && in->data[len] != ']' && in->data[len] != '}'
           && !is_blank(in->data[len])) {
        len++;
    }
    return len > 0 && pawl__view_take(in, len, ret_token);
}

/* How many bytes a string at `at` has, with its quotes; 0: it does not end. */
static size_t string_len(pawl_view in, size_t at)
{
    size_t end = at + 1;

    while (end < in.len && in.data[end] != '"') {
        end += in.data[end] == '\\' ? 2 : 1;
    }
    return end < in.len ? end + 1 - at : 0;
}

static bool take_string(pawl_view *in, pawl_view *ret_token)
{
    size_t len = string_len(*in, 0);

    return len > 0 && pawl__view_take(in, len, ret_token);
}

/* Most of a payload is passed over here: no call per byte. */
static bool take_nested(pawl_view *in, pawl_view *ret_token)
{
    size_t depth = 0;
    size_t at = 0;

    do {
        if (at >= in->len) {
            return false;
        }
        char c = in->data[at];
        size_t len = c == '"' ? string_len(*in, at) : 1;
        if (len == 0) {
            return false;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at += len;
    } while (depth > 0);
    return pawl__view_take(in, at, ret_token);
}

static bool take_value(pawl_view *in, pawl_view *ret_token)
{
    skip_blanks(in);
    if (in->len == 0) {
        return false;
    }
    return in->data[0] == '"'                         ? take_string(in, ret_token)
           : in->data[0] == '{' || in->data[0] == '[' ? take_nested(in, ret_token)
                                                      : take_scalar(in, ret_token);
}

/* A key with escapes is rare; it is decoded to be compared. */
static pawl_status is_key(pawl_view token, pawl_view key, bool *ret_is, pawl_error *reterr)
{
    json_auto_t *string = NULL;

    if (memchr(token.data, '\\', token.len) == NULL) {
        *ret_is = token.len == key.len + 2
                  && (key.len == 0 || memcmp(token.data + 1, key.data, key.len) == 0);
        return PAWL_OK;
    }
    TRY(pawl__json_parse(token, token.len, &string, reterr));
    *ret_is =
        pawl__view_equal((pawl_view){ json_string_value(string), json_string_length(string) }, key);
    return PAWL_OK;
}

static pawl_status find_key(
    pawl_view object, pawl_view key, bool *ret_found, pawl_view *ret_value, pawl_error *reterr)
{
    pawl_view name;

    *ret_found = false;
    if (!take_char(&object, '{')) {
        return PAWL_OK;
    }
    for (skip_blanks(&object); object.len > 0 && object.data[0] == '"'; skip_blanks(&object)) {
        bool is_it = false;
        pawl_view value;
        if (!take_string(&object, &name)) {
            return PAWL_OK;
        }
        skip_blanks(&object);
        if (!take_char(&object, ':') || !take_value(&object, &value)) {
            return PAWL_OK;
        }
        TRY(is_key(name, key, &is_it, reterr));
        if (is_it) {
            *ret_found = true;
            *ret_value = value;
            return PAWL_OK;
        }
        skip_blanks(&object);
        (void)take_char(&object, ',');
    }
    return PAWL_OK;
}

static bool find_index(pawl_view array, uint64_t index, pawl_view *ret_value)
{
    if (!take_char(&array, '[')) {
        return false;
    }
    skip_blanks(&array);
    if (array.len == 0 || array.data[0] == ']') {
        return false;
    }
    for (uint64_t i = 0; take_value(&array, ret_value); i++) {
        if (i == index) {
            return true;
        }
        skip_blanks(&array);
        if (!take_char(&array, ',')) {
            return false;
        }
    }
    return false;
}

pawl_status pawl__delivery_path_find(
    pawl_view json, const char *path, bool *ret_found, pawl_view *ret_value, pawl_error *reterr)
{
    pawl_view steps = pawl_view_of(path);
    pawl_view value = trim(json);
    struct step step;
    bool is_found = value.len > 0;

    (void)take_char(&steps, '$');
    while (is_found && take_step(&steps, &step)) {
        if (step.is_index) {
            is_found = find_index(value, step.index, &value);
        } else {
            TRY(find_key(value, step.key, &is_found, &value, reterr));
        }
    }
    *ret_found = is_found;
    if (is_found) {
        *ret_value = value;
    }
    return PAWL_OK;
}
