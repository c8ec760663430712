/* Records as JSON objects, and their fields as cells of a table. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/record/internal.h"
#include "base/terminal/display.h"

static void write_records(const struct pawl__field *field, const void *value, struct pawl__buf *buf)
{
    pawl__buf_add_char(buf, '[');
    for (size_t i = 0; i < pawl__field_count(field, value); i++) {
        pawl__buf_add_text(buf, i == 0 ? "" : ",");
        pawl__record_write(field->record, pawl__field_record(field, value, i), buf);
    }
    pawl__buf_add_char(buf, ']');
}

static void write_texts(const struct pawl__field *field, const void *value, struct pawl__buf *buf)
{
    pawl__buf_add_char(buf, '[');
    for (size_t i = 0; i < pawl__field_count(field, value); i++) {
        pawl__buf_add_text(buf, i == 0 ? "" : ",");
        pawl__display_add_json(buf, pawl__field_item(field, value, i));
    }
    pawl__buf_add_char(buf, ']');
}

static bool is_missing(const struct pawl__field *field, const void *value)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_JSON:
        return pawl__field_text(field, value).len == 0;
    case FIELD_NAME:
    case FIELD_RECORD:
        return pawl__field_pointer(field, value) == NULL;
    case FIELD_TIME:
        return pawl__field_number(field, value) == 0;
    case FIELD_INT32:
    case FIELD_INT64:
        return pawl__field_number(field, value) < 0;
    default:
        return false;
    }
}

static void write_duration(struct pawl__object *object, const char *name, int64_t ms)
{
    char text[PAWL__QUANTITY_SIZE];

    pawl__duration_format(ms * NS_PER_MS, text);
    pawl__object_text(object, name, pawl_view_of(text));
}

static void write_field(const struct pawl__field *field,
                        const void *value,
                        struct pawl__object *object)
{
    if ((field->flags & FIELD_OMITTED) != 0 && is_missing(field, value)) {
        return;
    }
    switch (field->kind) {
    case FIELD_TEXT:
        pawl__object_text(object, field->name, pawl__field_text(field, value));
        break;
    case FIELD_JSON:
        pawl__object_json(object, field->name, pawl__field_text(field, value));
        break;
    case FIELD_BOOL:
        pawl__object_bool(object, field->name, *(const bool *)pawl__field_at(field, value));
        break;
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
        pawl__object_integer(object, field->name, pawl__field_number(field, value));
        break;
    case FIELD_DURATION:
        write_duration(object, field->name, pawl__field_number(field, value));
        break;
    case FIELD_TIME:
        pawl__object_time(object, field->name, pawl__field_number(field, value));
        break;
    case FIELD_ENUM:
        pawl__object_text(object, field->name, pawl_view_of(pawl__field_enum_name(field, value)));
        break;
    case FIELD_NAME:
        pawl__object_text(object, field->name, pawl__field_name(field, value));
        break;
    case FIELD_CHARS:
        pawl__object_text(object, field->name, pawl_view_of(pawl__field_at(field, value)));
        break;
    case FIELD_REAL:
        pawl__object_real(object, field->name, *(const double *)pawl__field_at(field, value));
        break;
    case FIELD_TEXTS:
        pawl__object_key(object, field->name);
        write_texts(field, value, object->buf);
        break;
    case FIELD_RECORD:
        pawl__object_key(object, field->name);
        pawl__record_write(field->record, pawl__field_pointer(field, value), object->buf);
        break;
    case FIELD_RECORDS:
        pawl__object_key(object, field->name);
        write_records(field, value, object->buf);
        break;
    }
}

void pawl__record_write_fields(const struct pawl__record *record,
                               const void *value,
                               struct pawl__object *object)
{
    if (record->extends != NULL) {
        pawl__record_write_fields(record->extends, value, object);
    }
    for (size_t i = 0; i < record->count; i++) {
        write_field(&record->fields[i], value, object);
    }
}

void pawl__record_write(const struct pawl__record *record, const void *value, struct pawl__buf *buf)
{
    if (value == NULL) {
        pawl__buf_add_text(buf, "null");
        return;
    }
    struct pawl__object object = pawl__object_start(buf);
    pawl__record_write_fields(record, value, &object);
    pawl__object_end(&object);
}

/* --- cells --- */

static struct pawl__cell text_cell(pawl_view text)
{
    return text.len == 0 ? pawl__cell_none() : pawl__cell_text(text);
}

static struct pawl__cell time_cell(int64_t us, char time[PAWL__TIME_SIZE])
{
    if (us == 0) {
        return pawl__cell_none();
    }
    pawl__time_rfc3339(us, time);
    return pawl__cell_text(pawl_view_of(time));
}

/* What foreign SQL has stored may be no JSON: then it is a text. */
static struct pawl__cell json_cell(pawl_view json)
{
    return json.len > 0 && pawl__json_check(json, SIZE_MAX / 2, NULL) == PAWL_OK
               ? pawl__cell_json(json)
               : text_cell(json);
}

struct pawl__cell pawl__record_cell(const struct pawl__field *field,
                                    const void *value,
                                    char time[PAWL__TIME_SIZE])
{
    switch (field->kind) {
    case FIELD_TEXT:
        return text_cell(pawl__field_text(field, value));
    case FIELD_JSON:
        return json_cell(pawl__field_text(field, value));
    case FIELD_BOOL:
        return pawl__cell_bool(*(const bool *)pawl__field_at(field, value));
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
    case FIELD_DURATION:
        return pawl__cell_integer(pawl__field_number(field, value));
    case FIELD_TIME:
        return time_cell(pawl__field_number(field, value), time);
    case FIELD_ENUM:
        return pawl__cell_text(pawl_view_of(pawl__field_enum_name(field, value)));
    case FIELD_NAME:
        return text_cell(pawl__field_name(field, value));
    case FIELD_CHARS:
    case FIELD_REAL:
    case FIELD_TEXTS:
    case FIELD_RECORD:
    case FIELD_RECORDS:
        break;
    }
    const bool is_cell = false;
    REQUIRE(is_cell);
    return pawl__cell_none();
}
