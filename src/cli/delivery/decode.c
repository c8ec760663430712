#include "cli/delivery/decode.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

/* --- parts --- */

static pawl_view drop(pawl_view text, size_t count)
{
    return (pawl_view){ text.data + count, text.len - count };
}

static pawl_view skip_space(pawl_view text)
{
    while (text.len > 0 && strchr(" \t\r\n,:", text.data[0]) != NULL && text.data[0] != '\0') {
        text = drop(text, 1);
    }
    return text;
}

static size_t string_len(pawl_view text)
{
    size_t i = 1;

    while (i < text.len && text.data[i] != '"') {
        i += text.data[i] == '\\' ? 2 : 1;
    }
    return MIN(i + 1, text.len);
}

/* Of the value that the text begins with. */
static size_t value_len(pawl_view text)
{
    size_t depth = 0;
    size_t i = 0;

    if (text.len > 0 && text.data[0] != '{' && text.data[0] != '[' && text.data[0] != '"') {
        while (i < text.len && strchr(",]} \t\r\n", text.data[i]) == NULL) {
            i++;
        }
        return i;
    }
    while (i < text.len) {
        char c = text.data[i];
        i += c == '"' ? string_len(drop(text, i)) : 1;
        depth += c == '{' || c == '[' ? 1 : 0;
        depth -= c == '}' || c == ']' ? 1 : 0;
        if (depth == 0) {
            break;
        }
    }
    return MIN(i, text.len);
}

pawl_view pawl__cli_json_inside(pawl_view json)
{
    json = skip_space(json);
    return json.len >= 2 && (json.data[0] == '[' || json.data[0] == '{')
               ? (pawl_view){ json.data + 1, value_len(json) - 2 }
               : (pawl_view){ "", 0 };
}

bool pawl__cli_json_next_item(pawl_view *rest, pawl_view *ret_item)
{
    pawl_view text = skip_space(*rest);
    size_t len = value_len(text);

    if (len == 0) {
        return false;
    }
    *ret_item = (pawl_view){ text.data, len };
    *rest = drop(text, len);
    return true;
}

bool pawl__cli_json_next_member(pawl_view *rest, pawl_view *ret_key, pawl_view *ret_value)
{
    pawl_view key;

    if (!pawl__cli_json_next_item(rest, &key) || key.len < 2
        || !pawl__cli_json_next_item(rest, ret_value)) {
        return false;
    }
    *ret_key = (pawl_view){ key.data + 1, key.len - 2 };
    return true;
}

pawl_view pawl__cli_json_member(pawl_view object, const char *key)
{
    pawl_view rest = pawl__cli_json_inside(object);
    pawl_view found;
    pawl_view value;

    while (pawl__cli_json_next_member(&rest, &found, &value)) {
        if (pawl__view_is(found, key)) {
            return value;
        }
    }
    return (pawl_view){ NULL, 0 };
}

/* --- values --- */

static pawl_status decode_text(pawl_view json,
                               struct pawl__arena *arena,
                               pawl_view *ret_text,
                               pawl_error *reterr)
{
    json_auto_t *value = NULL;

    TRY(pawl__json_parse(json, json.len, &value, reterr));
    const pawl_view text = { json_string_value(value), json_string_length(value) };
    if (!json_is_string(value)) {
        return pawl__fail(reterr, PAWL_INVALID, "the node answers something else than a text");
    }
    return pawl__arena_copy(arena, text, ret_text)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for an answer");
}

static pawl_status decode_number(pawl_view json, int64_t *ret_number, pawl_error *reterr)
{
    json_auto_t *value = NULL;

    TRY(pawl__json_parse(json, json.len, &value, reterr));
    *ret_number = json_integer_value(value);
    return json_is_integer(value)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "the node answers something else than a number");
}

static pawl_status set_number(const struct pawl__field *field,
                              pawl_view json,
                              void *at,
                              pawl_error *reterr)
{
    int64_t number = 0;

    TRY(decode_number(json, &number, reterr));
    if (field->kind == FIELD_INT32) {
        *(int32_t *)at = (int32_t)number;
    } else {
        *(int64_t *)at = number; /* or as large, without a sign */
    }
    return PAWL_OK;
}

static void set_enum(const struct pawl__field *field, pawl_view name, void *at)
{
    for (unsigned i = 0; field->names[i] != NULL; i++) {
        if (pawl__view_is(name, field->names[i])) {
            *(unsigned *)at = i;
        }
    }
}

static pawl_status set_text(const struct pawl__field *field,
                            pawl_view json,
                            size_t chars_size,
                            struct pawl__arena *arena,
                            void *at,
                            pawl_error *reterr)
{
    pawl_view text;

    TRY(decode_text(json, arena, &text, reterr));
    switch (field->kind) {
    case FIELD_ENUM:
        set_enum(field, text, at);
        return PAWL_OK;
    case FIELD_NAME:
        *(const char **)at = text.data;
        return PAWL_OK;
    case FIELD_CHARS:
        (void)snprintf(at, chars_size, "%s", text.data);
        return PAWL_OK;
    case FIELD_TIME:
        return pawl__time_parse(text, at, reterr);
    default:
        *(pawl_view *)at = text;
        return PAWL_OK;
    }
}

static pawl_status set_record(const struct pawl__field *field,
                              pawl_view json,
                              size_t chars_size,
                              struct pawl__arena *arena,
                              void *at,
                              pawl_error *reterr)
{
    void *value = pawl__arena_take(arena, field->record->size);

    TRY(pawl__check_memory(value, "an answer", reterr));
    memset(value, 0, field->record->size);
    *(const void **)at = value;
    return pawl__cli_decode(field->record, json, chars_size, arena, value, reterr);
}

static pawl_status set_field(const struct pawl__field *field,
                             pawl_view json,
                             size_t chars_size,
                             struct pawl__arena *arena,
                             void *at,
                             pawl_error *reterr)
{
    if (json.len > 0 && json.data[0] == 'n') { /* null */
        return PAWL_OK;
    }
    switch (field->kind) {
    case FIELD_JSON:
        *(pawl_view *)at = json;
        return PAWL_OK;
    case FIELD_BOOL:
        *(bool *)at = json.data[0] == 't';
        return PAWL_OK;
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
        return set_number(field, json, at, reterr);
    case FIELD_RECORD:
        return set_record(field, json, chars_size, arena, at, reterr);
    case FIELD_TEXT:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_CHARS:
    case FIELD_TIME:
        return set_text(field, json, chars_size, arena, at, reterr);
    default:
        return PAWL_OK; /* no record that is read here has others */
    }
}

pawl_status pawl__cli_decode(const struct pawl__record *record,
                             pawl_view json,
                             size_t chars_size,
                             struct pawl__arena *arena,
                             void *ret_value,
                             pawl_error *reterr)
{
    pawl_view rest = pawl__cli_json_inside(json);
    pawl_view key;
    pawl_view value;

    if (record->sized) {
        *(size_t *)ret_value = record->size;
    }
    while (pawl__cli_json_next_member(&rest, &key, &value)) {
        for (size_t i = 0; i < record->count; i++) {
            const struct pawl__field *field = &record->fields[i];
            if (pawl__view_is(key, field->name)) {
                TRY(set_field(
                    field, value, chars_size, arena, (char *)ret_value + field->offset, reterr));
            }
        }
    }
    return PAWL_OK;
}
