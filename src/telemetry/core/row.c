#include "telemetry/core/row.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/sha256.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "telemetry/core/wire.h"

/* --- what may be stored --- */

static pawl_status fail_in(const struct telemetry_column *column,
                           pawl_status status,
                           pawl_error *reterr)
{
    return pawl__fail_context(reterr, status, "%s", column->name);
}

static pawl_status check_text(const struct telemetry_column *column,
                              pawl_view text,
                              pawl_error *reterr)
{
    const struct telemetry_field field = { .wire = TELEMETRY_BYTES, .bytes = text };
    pawl_view same;

    if (text.len > TELEMETRY_ROW_BYTES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: over 8 MiB", column->name);
    }
    return pawl__telemetry_field_text(&field, column->name, &same, reterr);
}

static pawl_status check_strings(const struct telemetry_column *column,
                                 json_t *json,
                                 pawl_error *reterr)
{
    const char *key;
    json_t *value;
    size_t i;

    if (column->kind == 'm' ? !json_is_object(json) : !json_is_array(json)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: not a JSON %s",
                          column->name,
                          column->kind == 'm' ? "object" : "array");
    }
    if (json_object_size(json) > TELEMETRY_ATTRIBUTES_MAX
        || json_array_size(json) > TELEMETRY_FRAMES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: more than 1024", column->name);
    }
    json_object_foreach(json, key, value)
    {
        if (!json_is_string(value)) {
            return pawl__fail(reterr, PAWL_INVALID, "%s: '%s' is not a string", column->name, key);
        }
    }
    json_array_foreach(json, i, value)
    {
        if (!json_is_string(value)) {
            return pawl__fail(
                reterr, PAWL_INVALID, "%s: item %zu is not a string", column->name, i);
        }
    }
    return PAWL_OK;
}

/* The strings of a map or list; "" is an empty one. */
static pawl_status parse_strings(const struct telemetry_column *column,
                                 pawl_view text,
                                 json_t **ret_json,
                                 pawl_error *reterr)
{
    json_auto_t *json = NULL;

    if (text.len == 0) {
        text = pawl_view_of(column->kind == 'm' ? "{}" : "[]");
    }
    pawl_status status = pawl__json_parse(text, TELEMETRY_ROW_BYTES_MAX, &json, reterr);
    if (status != PAWL_OK) {
        return fail_in(column, status, reterr);
    }
    TRY(check_strings(column, json, reterr));
    *ret_json = STEAL(json);
    return PAWL_OK;
}

static pawl_status check_value(const struct telemetry_column *column,
                               const struct telemetry_value *value,
                               pawl_error *reterr)
{
    json_auto_t *json = NULL;

    switch (column->kind) {
    case 'z':
        return value->as.i64 >= PAWL__WALL_US_MIN && value->as.i64 <= PAWL__WALL_US_MAX
                   ? PAWL_OK
                   : pawl__fail(
                       reterr, PAWL_INVALID, "%s: outside of the years 1 to 9999", column->name);
    case 'd':
        return isfinite(value->as.real)
                   ? PAWL_OK
                   : pawl__fail(reterr, PAWL_INVALID, "%s: not a finite number", column->name);
    case 't':
        return check_text(column, value->as.text, reterr);
    case 'm':
    case 'l':
        TRY(check_text(column, value->as.text, reterr));
        return parse_strings(column, value->as.text, &json, reterr);
    default:
        return PAWL_OK;
    }
}

static size_t row_size(const struct telemetry_type_info *info,
                       const struct telemetry_values *values)
{
    size_t size = 0;

    for (size_t i = 0; i < info->column_count; i++) {
        size += strchr("tml", info->columns[i].kind) != NULL ? values->at[i].as.text.len + 16 : 16;
    }
    return size;
}

pawl_status pawl__telemetry_row_check(enum telemetry_type type,
                                      const struct telemetry_values *values,
                                      pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    for (size_t i = 0; i < info->column_count; i++) {
        TRY(check_value(&info->columns[i], &values->at[i], reterr));
    }
    size_t size = row_size(info, values);
    return size <= TELEMETRY_ROW_BYTES_MAX
               ? PAWL_OK
               : pawl__fail(
                   reterr, PAWL_INVALID, "a row of about %zu bytes, the limit is 8 MiB", size);
}

/* --- encode --- */

static void put_entry(struct pawl__buf *buf, uint32_t field, pawl_view key, pawl_view value)
{
    size_t size = 2 + pawl__telemetry_varint_size(key.len) + key.len
                  + pawl__telemetry_varint_size(value.len) + value.len;

    pawl__telemetry_put_varint(buf, (uint64_t)field << 3 | TELEMETRY_BYTES);
    pawl__telemetry_put_varint(buf, size);
    pawl__telemetry_put_bytes(buf, 1, key);
    pawl__telemetry_put_bytes(buf, 2, value);
}

static pawl_view string_of(const json_t *json)
{
    return (pawl_view){ json_string_value(json), json_string_length(json) };
}

static pawl_status put_strings(const struct telemetry_column *column,
                               pawl_view text,
                               struct pawl__buf *buf,
                               pawl_error *reterr)
{
    json_auto_t *json = NULL;
    const char *key;
    json_t *value;
    size_t i;

    TRY(parse_strings(column, text, &json, reterr));
    json_object_foreach(json, key, value)
    {
        put_entry(buf, column->field, pawl_view_of(key), string_of(value));
    }
    json_array_foreach(json, i, value)
    {
        pawl__telemetry_put_bytes(buf, column->field, string_of(value));
    }
    return PAWL_OK;
}

static pawl_status put_value(const struct telemetry_column *column,
                             const struct telemetry_value *value,
                             struct pawl__buf *buf,
                             pawl_error *reterr)
{
    switch (column->kind) {
    case 'd':
        if (value->as.real != 0) {
            pawl__telemetry_put_double(buf, column->field, value->as.real);
        }
        return PAWL_OK;
    case 'b':
        if (value->as.flag) {
            pawl__telemetry_put_number(buf, column->field, 1);
        }
        return PAWL_OK;
    case 't':
        if (value->as.text.len > 0) {
            pawl__telemetry_put_bytes(buf, column->field, value->as.text);
        }
        return PAWL_OK;
    case 'm':
    case 'l':
        /* Most rows have none: spares the parser. */
        return value->as.text.len <= 2 ? PAWL_OK : put_strings(column, value->as.text, buf, reterr);
    default:
        if (value->as.i64 != 0) {
            pawl__telemetry_put_number(buf, column->field, (uint64_t)value->as.i64);
        }
        return PAWL_OK;
    }
}

pawl_status pawl__telemetry_row_encode(enum telemetry_type type,
                                       uint64_t seq_id,
                                       const struct telemetry_values *values,
                                       struct pawl__buf *buf,
                                       pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    for (size_t i = 0; i < info->column_count; i++) {
        TRY(put_value(&info->columns[i], &values->at[i], buf, reterr));
    }
    if (seq_id != 0) {
        pawl__telemetry_put_number(buf, info->seq_field, seq_id);
    }
    return pawl__buf_check(buf, "a row", reterr);
}

/* --- decode --- */

struct decoding {
    const struct telemetry_type_info *info;
    struct pawl__arena *arena;
    struct telemetry_values *values;
    json_t *strings[TELEMETRY_COLUMNS_MAX]; /* maps and lists */
    uint64_t seq_id;
};

static void decoding_done(struct decoding *decoding)
{
    for (size_t i = 0; i < TELEMETRY_COLUMNS_MAX; i++) {
        json_decref(decoding->strings[i]);
    }
}

static pawl_status take_entry(
    pawl_view in, const char *what, pawl_view *ret_key, pawl_view *ret_value, pawl_error *reterr)
{
    struct telemetry_field field;
    bool more = false;

    *ret_key = *ret_value = (pawl_view){ "", 0 };
    TRY(pawl__telemetry_field_next(&in, &field, &more, reterr));
    while (more) {
        if (field.number <= 2) {
            TRY(pawl__telemetry_field_text(
                &field, what, field.number == 1 ? ret_key : ret_value, reterr));
        }
        TRY(pawl__telemetry_field_next(&in, &field, &more, reterr));
    }
    return PAWL_OK;
}

static pawl_status add_attribute(json_t *object,
                                 pawl_view entry,
                                 const char *what,
                                 pawl_error *reterr)
{
    pawl_view key;
    pawl_view value;

    TRY(take_entry(entry, what, &key, &value, reterr));
    if (json_object_size(object) >= TELEMETRY_ATTRIBUTES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: more than 1024", what);
    }
    AUTO(pawl__text_free) char *name = pawl__view_dup(key);
    TRY(pawl__check_memory(name, "an attribute", reterr));
    json_t *string = json_stringn_nocheck(value.data, value.len);
    return json_object_set_new_nocheck(object, name, string) == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for an attribute");
}

static pawl_status add_frame(json_t *array,
                             const struct telemetry_field *field,
                             const char *what,
                             pawl_error *reterr)
{
    pawl_view text;

    TRY(pawl__telemetry_field_text(field, what, &text, reterr));
    if (json_array_size(array) >= TELEMETRY_FRAMES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: more than 1024", what);
    }
    return json_array_append_new(array, json_stringn_nocheck(text.data, text.len)) == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a frame");
}

static pawl_status take_string(struct decoding *decoding,
                               size_t i,
                               const struct telemetry_field *field,
                               pawl_error *reterr)
{
    const struct telemetry_column *column = &decoding->info->columns[i];

    if (decoding->strings[i] == NULL) {
        decoding->strings[i] = column->kind == 'm' ? json_object() : json_array();
        TRY(pawl__check_memory(decoding->strings[i], "attributes", reterr));
    }
    TRY(pawl__telemetry_field_expect(field, TELEMETRY_BYTES, column->name, reterr));
    return column->kind == 'm'
               ? add_attribute(decoding->strings[i], field->bytes, column->name, reterr)
               : add_frame(decoding->strings[i], field, column->name, reterr);
}

static pawl_status take_column(struct decoding *decoding,
                               size_t i,
                               const struct telemetry_field *field,
                               pawl_error *reterr)
{
    const struct telemetry_column *column = &decoding->info->columns[i];
    struct telemetry_value *value = &decoding->values->at[i];

    switch (column->kind) {
    case 'd':
        TRY(pawl__telemetry_field_expect(field, TELEMETRY_FIXED64, column->name, reterr));
        value->as.real = pawl__telemetry_field_double(field);
        return PAWL_OK;
    case 't':
        return pawl__telemetry_field_text(field, column->name, &value->as.text, reterr);
    case 'm':
    case 'l':
        return take_string(decoding, i, field, reterr);
    case 'b':
        TRY(pawl__telemetry_field_expect(field, TELEMETRY_VARINT, column->name, reterr));
        value->as.flag = field->number_value != 0;
        return PAWL_OK;
    default:
        TRY(pawl__telemetry_field_expect(field, TELEMETRY_VARINT, column->name, reterr));
        value->as.i64 = (int64_t)field->number_value;
        return PAWL_OK;
    }
}

static pawl_status take_field(struct decoding *decoding,
                              const struct telemetry_field *field,
                              pawl_error *reterr)
{
    if (field->number == decoding->info->seq_field) {
        decoding->seq_id = field->number_value;
        return pawl__telemetry_field_expect(field, TELEMETRY_VARINT, "seq_id", reterr);
    }
    for (size_t i = 0; i < decoding->info->column_count; i++) {
        if (decoding->info->columns[i].field == field->number) {
            return take_column(decoding, i, field, reterr);
        }
    }
    return PAWL_OK;
}

static pawl_status write_strings(struct decoding *decoding, size_t i, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(TELEMETRY_ROW_BYTES_MAX);

    if (decoding->strings[i] == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__json_canonical(decoding->strings[i], &buf, reterr));
    TRY(pawl__buf_check(&buf, decoding->info->columns[i].name, reterr));
    return pawl__arena_copy(decoding->arena, pawl__buf_view(&buf), &decoding->values->at[i].as.text)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a row");
}

static void set_defaults(const struct telemetry_type_info *info, struct telemetry_values *values)
{
    *values = (struct telemetry_values){ .at = { { .as = { .i64 = 0 } } } };
    for (size_t i = 0; i < info->column_count; i++) {
        char kind = info->columns[i].kind;
        if (kind == 'm' || kind == 'l') {
            values->at[i].as.text = pawl_view_of(kind == 'm' ? "{}" : "[]");
        } else if (kind == 't') {
            values->at[i].as.text = pawl_view_of("");
        }
    }
}

static pawl_status check_numbers(const struct telemetry_type_info *info,
                                 const struct telemetry_values *values,
                                 pawl_error *reterr)
{
    for (size_t i = 0; i < info->column_count; i++) {
        if (strchr("zd", info->columns[i].kind) != NULL) {
            TRY(check_value(&info->columns[i], &values->at[i], reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_row_decode(enum telemetry_type type,
                                       pawl_view bytes,
                                       struct pawl__arena *arena,
                                       uint64_t *ret_seq_id,
                                       struct telemetry_values *ret_values,
                                       pawl_error *reterr)
{
    struct telemetry_values values;
    AUTO(decoding_done)
    struct decoding decoding = { .info = pawl__telemetry_type(type),
                                 .arena = arena,
                                 .values = &values };
    struct telemetry_field field;
    bool more = false;

    if (bytes.len > TELEMETRY_ROW_BYTES_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a row of %zu bytes, the limit is 8 MiB", bytes.len);
    }
    set_defaults(decoding.info, &values);
    TRY(pawl__telemetry_field_next(&bytes, &field, &more, reterr));
    while (more) {
        TRY(take_field(&decoding, &field, reterr));
        TRY(pawl__telemetry_field_next(&bytes, &field, &more, reterr));
    }
    for (size_t i = 0; i < decoding.info->column_count; i++) {
        TRY(write_strings(&decoding, i, reterr));
    }
    TRY(check_numbers(decoding.info, &values, reterr));
    *ret_values = values;
    *ret_seq_id = decoding.seq_id;
    return PAWL_OK;
}

bool pawl__telemetry_row_seq(enum telemetry_type type, pawl_view bytes, uint64_t *ret_seq_id)
{
    const uint8_t seq_field = pawl__telemetry_type(type)->seq_field;
    struct telemetry_field field;
    pawl_error error = PAWL_ERROR_INIT;
    bool is_found = false;
    bool more = false;

    while (pawl__telemetry_field_next(&bytes, &field, &more, &error) == PAWL_OK && more) {
        if (field.number == seq_field && field.wire == TELEMETRY_VARINT) {
            *ret_seq_id = field.number_value;
            is_found = true;
        }
    }
    return is_found;
}

/* --- a retry --- */

pawl_status pawl__telemetry_row_key(enum telemetry_type type,
                                    const struct telemetry_values *values,
                                    struct telemetry_row_key *ret_key,
                                    bool *ret_has_key,
                                    pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);
    struct telemetry_values named = { .at = { { .as = { .i64 = 0 } } } };
    pawl_view parts[TELEMETRY_COLUMNS_MAX * 2];
    uint64_t lens[TELEMETRY_COLUMNS_MAX];
    struct pawl__sha256 hash;
    size_t count = 0;

    for (size_t i = 0; i < info->column_count; i++) {
        if (!info->columns[i].names_row) {
            continue;
        }
        bool is_text = strchr("tml", info->columns[i].kind) != NULL;
        named.at[i] = values->at[i];
        if (info->columns[i].kind != 't' && is_text && named.at[i].as.text.len <= 2) {
            named.at[i].as.text = pawl_view_of(""); /* "{}" is the same as nothing */
        }
        lens[i] = is_text ? named.at[i].as.text.len : sizeof(int64_t);
        parts[count++] = (pawl_view){ (const char *)&lens[i], sizeof(lens[i]) };
        parts[count++] = is_text
                             ? named.at[i].as.text
                             : (pawl_view){ (const char *)&named.at[i].as.i64, sizeof(int64_t) };
    }
    *ret_has_key = count > 0;
    if (count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__sha256_parts(parts, count, &hash, reterr));
    memcpy(ret_key->bytes, hash.bytes, sizeof(ret_key->bytes));
    return PAWL_OK;
}
