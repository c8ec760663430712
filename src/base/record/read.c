/* Records out of JSON objects: bodies of requests. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/record/internal.h"

enum { FIELDS_MAX = 64 };

static pawl_status read_text(const struct pawl__field *field,
                             struct pawl__json_node node,
                             pawl_view *ret_text,
                             pawl_error *reterr)
{
    pawl_view text = { NULL, 0 };

    TRY(pawl__json_text(node, &text, reterr));
    if (text.data == NULL) {
        return PAWL_OK;
    }
    if (text.len == 0) {
        return pawl__json_fail(&node, reterr, "is empty%s", node.optional ? ": leave it out" : "");
    }
    if (field->max > 0 && (text.len < (size_t)field->min || text.len > (size_t)field->max)) {
        return pawl__json_fail(
            &node, reterr, "has %zu bytes, the limit is %lld", text.len, (long long)field->max);
    }
    *ret_text = text;
    return PAWL_OK;
}

static pawl_status read_json(struct pawl__json_node node,
                             struct pawl__arena *arena,
                             pawl_view *ret_json,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(SIZE_MAX / 2);

    if (node.value == NULL || json_is_null(node.value)) {
        return PAWL_OK;
    }
    TRY(pawl__json_dump(node.value, &buf, reterr));
    return pawl__arena_copy(arena, pawl__buf_view(&buf), ret_json)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", node.name);
}

static pawl_status read_number(const struct pawl__field *field,
                               struct pawl__json_node node,
                               void *value,
                               pawl_error *reterr)
{
    int64_t widest = field->kind == FIELD_INT32 ? INT32_MAX : INT64_MAX;
    int64_t least = field->kind == FIELD_UINT64 ? 0 : -widest - 1;
    bool limited = field->min != 0 || field->max != 0;
    int64_t number = pawl__field_number(field, value);

    TRY(pawl__json_int(
        node, limited ? field->min : least, limited ? field->max : widest, &number, reterr));
    if (field->kind == FIELD_INT32) {
        *(int32_t *)pawl__field_in(field, value) = (int32_t)number;
    } else {
        memcpy(pawl__field_in(field, value), &number, sizeof(number));
    }
    return PAWL_OK;
}

static pawl_status read_enum(const struct pawl__field *field,
                             struct pawl__json_node node,
                             unsigned *ret_number,
                             pawl_error *reterr)
{
    char known[PAWL_ERROR_MESSAGE_SIZE / 2] = "";
    struct pawl__buf list = BUF_OVER(known);
    pawl_view text = { NULL, 0 };

    TRY(pawl__json_text(node, &text, reterr));
    if (text.data == NULL) {
        return PAWL_OK;
    }
    for (unsigned i = 0; field->names[i] != NULL; i++) {
        if (pawl__view_is(text, field->names[i])) {
            *ret_number = i;
            return PAWL_OK;
        }
        pawl__buf_add_text(&list, i == 0 ? "" : ", ");
        pawl__buf_add_text(&list, field->names[i]);
    }
    return pawl__json_fail(&node, reterr, "is none of %s", known);
}

static pawl_status read_records(const struct pawl__field *field,
                                struct pawl__json_node node,
                                struct pawl__arena *arena,
                                void *value,
                                pawl_error *reterr)
{
    struct pawl__json_node array = node;

    if (node.optional && (node.value == NULL || json_is_null(node.value))) {
        return PAWL_OK;
    }
    TRY(pawl__json_array(node, &array, reterr));
    size_t count = pawl__json_count(&array);
    if (field->max > 0 && count > (size_t)field->max) {
        return pawl__json_fail(
            &node, reterr, "has %zu, the limit is %lld", count, (long long)field->max);
    }
    char *records = pawl__arena_take(arena, MAX(count, 1) * field->record->size);
    if (records == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", field->name);
    }
    memset(records, 0, count * field->record->size);
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__record_read(field->record,
                              pawl__json_item(&array, i),
                              arena,
                              records + i * field->record->size,
                              reterr));
    }
    *(const void **)pawl__field_in(field, value) = records;
    *(size_t *)((char *)value + field->count_offset) = count;
    return PAWL_OK;
}

static pawl_status read_field(const struct pawl__field *field,
                              struct pawl__json_node node,
                              struct pawl__arena *arena,
                              void *value,
                              pawl_error *reterr)
{
    void *at = pawl__field_in(field, value);

    switch (field->kind) {
    case FIELD_TEXT:
        return read_text(field, node, at, reterr);
    case FIELD_JSON:
        return read_json(node, arena, at, reterr);
    case FIELD_BOOL:
        return pawl__json_bool(node, at, reterr);
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
        return read_number(field, node, value, reterr);
    case FIELD_DURATION:
        return pawl__json_duration(node, (const int64_t[2]){ field->min, field->max }, at, reterr);
    case FIELD_ENUM:
        return read_enum(field, node, at, reterr);
    case FIELD_RECORDS:
        return read_records(field, node, arena, value, reterr);
    case FIELD_TIME:
    case FIELD_NAME:
    case FIELD_RECORD:
        break;
    }
    const bool read = false; /* fields of this kind are written only */
    REQUIRE(read);
    return PAWL_FAILED;
}

pawl_status pawl__record_read(const struct pawl__record *record,
                              struct pawl__json_node node,
                              struct pawl__arena *arena,
                              void *ret_value,
                              pawl_error *reterr)
{
    struct pawl__json_node object = node;
    const char *names[FIELDS_MAX];

    REQUIRE(record->count <= FIELDS_MAX);
    for (size_t i = 0; i < record->count; i++) {
        names[i] = record->fields[i].name;
    }
    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, record->count, reterr));
    for (size_t i = 0; i < record->count; i++) {
        const struct pawl__field *field = &record->fields[i];
        bool required = (field->flags & FIELD_REQUIRED) != 0;

        TRY(read_field(field,
                       required ? pawl__json_key(&object, field->name)
                                : pawl__json_optional(&object, field->name),
                       arena,
                       ret_value,
                       reterr));
    }
    return PAWL_OK;
}
