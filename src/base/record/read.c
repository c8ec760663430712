/* Records out of JSON objects: bodies of requests. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/record/internal.h"

enum { FIELDS_MAX = 64 };

static bool is_absent(const struct pawl__json_node *node)
{
    return node->value == NULL || json_is_null(node->value);
}

static pawl_status no_memory(const char *name, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", name);
}

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
    if (text.len == 0 && (field->flags & FIELD_BLANK) == 0) {
        return pawl__json_fail(&node, reterr, "is empty%s", node.optional ? ": leave it out" : "");
    }
    if (field->kind == FIELD_TEXT && field->max > 0
        && (text.len < (size_t)field->min || text.len > (size_t)field->max)) {
        return pawl__json_fail(
            &node, reterr, "has %zu bytes, the limit is %lld", text.len, (long long)field->max);
    }
    *ret_text = text;
    return PAWL_OK;
}

static pawl_status read_json(const struct pawl__field *field,
                             struct pawl__json_node node,
                             struct pawl__arena *arena,
                             pawl_view *ret_json,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(SIZE_MAX / 2);

    if (node.value == NULL && !node.optional) {
        return pawl__json_fail(&node, reterr, "missing");
    }
    if (node.optional && is_absent(&node)) {
        return PAWL_OK;
    }
    if ((field->flags & FIELD_OBJECT) != 0) {
        TRY(pawl__json_object(node, &node, reterr));
    }
    TRY(pawl__json_dump(node.value, &buf, reterr));
    return pawl__arena_copy(arena, pawl__buf_view(&buf), ret_json) ? PAWL_OK
                                                                   : no_memory(node.name, reterr);
}

static pawl_status read_number(const struct pawl__field *field,
                               struct pawl__json_node node,
                               void *value,
                               pawl_error *reterr)
{
    int64_t number = pawl__field_number(field, value);
    int64_t range[2];

    pawl__field_range(field, range);
    TRY(pawl__json_int(node, range[0], range[1], &number, reterr));
    pawl__field_set_number(field, number, value);
    return PAWL_OK;
}

static pawl_status read_enum(const struct pawl__field *field,
                             struct pawl__json_node node,
                             void *value,
                             pawl_error *reterr)
{
    char known[PAWL_ERROR_MESSAGE_SIZE / 2] = "";
    struct pawl__buf list = BUF_OVER(known);
    pawl_view text = { NULL, 0 };

    TRY(pawl__json_text(node, &text, reterr));
    if (text.data == NULL || pawl__field_set_enum(field, text, value)) {
        return PAWL_OK;
    }
    pawl__field_add_names(field, &list);
    return pawl__json_fail(&node, reterr, "is none of %s", known);
}

/* --- lists --- */

static pawl_status check_count(const struct pawl__field *field,
                               const struct pawl__json_node *array,
                               size_t count,
                               pawl_error *reterr)
{
    if (count == 0 && field->min > 0 && array->optional) {
        return pawl__json_fail(array, reterr, "is empty: leave it out");
    }
    return field->max == 0 || (count >= (size_t)field->min && count <= (size_t)field->max)
               ? PAWL_OK
               : pawl__json_fail(array,
                                 reterr,
                                 "has %zu items, %lld to %lld are allowed",
                                 count,
                                 (long long)field->min,
                                 (long long)field->max);
}

/* *ret_items: room for as many as the array has, each of `size` bytes; NULL: the list was left out. */
static pawl_status start_list(const struct pawl__field *field,
                              struct pawl__json_node *array,
                              size_t size,
                              struct pawl__arena *arena,
                              char **ret_items,
                              pawl_error *reterr)
{
    *ret_items = NULL;
    if (array->optional && is_absent(array)) {
        return PAWL_OK;
    }
    TRY(pawl__json_array(*array, array, reterr));
    size_t count = pawl__json_count(array);
    TRY(check_count(field, array, count, reterr));
    *ret_items = pawl__arena_take(arena, MAX(count, 1) * size);
    return *ret_items == NULL ? no_memory(field->name, reterr) : PAWL_OK;
}

static void set_list(const struct pawl__field *field, const void *items, size_t count, void *value)
{
    *(const void **)pawl__field_in(field, value) = items;
    *(size_t *)((char *)value + field->count_offset) = count;
}

static pawl_status read_one(const struct pawl__record *record,
                            struct pawl__json_node node,
                            struct pawl__arena *arena,
                            void *ret_value,
                            pawl_error *reterr)
{
    pawl__record_start(record, ret_value);
    return pawl__record_read(record, node, arena, ret_value, reterr);
}

static pawl_status read_records(const struct pawl__field *field,
                                struct pawl__json_node node,
                                struct pawl__arena *arena,
                                void *value,
                                pawl_error *reterr)
{
    const struct pawl__record *record = field->record;
    struct pawl__json_node array = node;
    char *items = NULL;

    TRY(start_list(field, &array, record->size, arena, &items, reterr));
    if (items == NULL) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < pawl__json_count(&array); i++) {
        TRY(read_one(record, pawl__json_item(&array, i), arena, items + i * record->size, reterr));
    }
    set_list(field, items, pawl__json_count(&array), value);
    return PAWL_OK;
}

static pawl_status read_texts(const struct pawl__field *field,
                              struct pawl__json_node node,
                              struct pawl__arena *arena,
                              void *value,
                              pawl_error *reterr)
{
    struct pawl__json_node array = node;
    char *room = NULL;

    TRY(start_list(field, &array, sizeof(pawl_view), arena, &room, reterr));
    pawl_view *items = (pawl_view *)(void *)room;
    if (items == NULL) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < pawl__json_count(&array); i++) {
        items[i] = (pawl_view){ NULL, 0 };
        TRY(read_text(field, pawl__json_item(&array, i), &items[i], reterr));
    }
    set_list(field, items, pawl__json_count(&array), value);
    return PAWL_OK;
}

static pawl_status read_record(const struct pawl__field *field,
                               struct pawl__json_node node,
                               struct pawl__arena *arena,
                               const void **ret_pointer,
                               pawl_error *reterr)
{
    if (node.optional && is_absent(&node)) {
        return PAWL_OK;
    }
    void *record = pawl__arena_take(arena, field->record->size);
    if (record == NULL) {
        return no_memory(field->name, reterr);
    }
    TRY(read_one(field->record, node, arena, record, reterr));
    *ret_pointer = record;
    return PAWL_OK;
}

/* --- objects --- */

static pawl_status read_field(const struct pawl__field *field,
                              struct pawl__json_node node,
                              struct pawl__arena *arena,
                              void *value,
                              pawl_error *reterr)
{
    void *at = pawl__field_in(field, value);

    if (field->refused != NULL) {
        return is_absent(&node) ? PAWL_OK : pawl__json_fail(&node, reterr, "%s", field->refused);
    }
    switch (field->kind) {
    case FIELD_TEXT:
        return read_text(field, node, at, reterr);
    case FIELD_JSON:
        return read_json(field, node, arena, at, reterr);
    case FIELD_BOOL:
        return pawl__json_bool(node, at, reterr);
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
        return read_number(field, node, value, reterr);
    case FIELD_DURATION:
        return pawl__json_duration(node, (const int64_t[2]){ field->min, field->max }, at, reterr);
    case FIELD_ENUM:
        return read_enum(field, node, value, reterr);
    case FIELD_TEXTS:
        return read_texts(field, node, arena, value, reterr);
    case FIELD_RECORD:
        return read_record(field, node, arena, at, reterr);
    case FIELD_RECORDS:
        return read_records(field, node, arena, value, reterr);
    case FIELD_TIME:
    case FIELD_NAME:
    case FIELD_CHARS:
    case FIELD_REAL:
        break;
    }
    const bool read = false; /* fields of this kind are written only */
    REQUIRE(read);
    return PAWL_FAILED;
}

static pawl_status read_fields(const struct pawl__record *record,
                               const struct pawl__json_node *object,
                               struct pawl__arena *arena,
                               void *ret_value,
                               pawl_error *reterr)
{
    const char *names[FIELDS_MAX];

    REQUIRE(record->count <= FIELDS_MAX);
    for (size_t i = 0; i < record->count; i++) {
        names[i] = record->fields[i].name;
    }
    TRY(pawl__json_only(object, names, record->count, reterr));
    for (size_t i = 0; i < record->count; i++) {
        const struct pawl__field *field = &record->fields[i];
        bool required = (field->flags & FIELD_REQUIRED) != 0;

        TRY(read_field(field,
                       required ? pawl__json_key(object, field->name)
                                : pawl__json_optional(object, field->name),
                       arena,
                       ret_value,
                       reterr));
    }
    return PAWL_OK;
}

/* The object is one of those that the record has a list of. */
static pawl_status read_alone(const struct pawl__field *field,
                              struct pawl__json_node object,
                              struct pawl__arena *arena,
                              void *ret_value,
                              pawl_error *reterr)
{
    void *one = pawl__arena_take(arena, field->record->size);

    if (one == NULL) {
        return no_memory(field->name, reterr);
    }
    TRY(read_one(field->record, object, arena, one, reterr));
    set_list(field, one, 1, ret_value);
    return PAWL_OK;
}

pawl_status pawl__record_read(const struct pawl__record *record,
                              struct pawl__json_node node,
                              struct pawl__arena *arena,
                              void *ret_value,
                              pawl_error *reterr)
{
    const struct pawl__field *first = record->count == 0 ? NULL : &record->fields[0];
    struct pawl__json_node object = node;

    TRY(pawl__json_object(node, &object, reterr));
    return first != NULL && (first->flags & FIELD_OR_ONE) != 0
                   && pawl__json_optional(&object, first->name).value == NULL
               ? read_alone(first, object, arena, ret_value, reterr)
               : read_fields(record, &object, arena, ret_value, reterr);
}

/* --- fields out of texts --- */

static pawl_status parse_text(const struct pawl__field *field,
                              pawl_view text,
                              pawl_view *ret_text,
                              pawl_error *reterr)
{
    if (text.len == 0 && (field->flags & FIELD_BLANK) == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is empty: leave it out", field->name);
    }
    if (field->max > 0 && text.len > (size_t)field->max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: has %zu bytes, the limit is %lld",
                          field->name,
                          text.len,
                          (long long)field->max);
    }
    *ret_text = text;
    return PAWL_OK;
}

static pawl_status parse_number(const struct pawl__field *field,
                                pawl_view text,
                                void *value,
                                pawl_error *reterr)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    int64_t number = 0;
    int64_t range[2];
    bool good = text.len > (negative ? 1 : 0);

    for (size_t i = negative ? 1 : 0; i < text.len && good; i++) {
        int64_t digit = (int64_t)(unsigned char)text.data[i] - '0';
        good = digit >= 0 && digit <= 9 && !__builtin_mul_overflow(number, 10, &number)
               && !__builtin_add_overflow(number, digit, &number);
    }
    number = negative ? -number : number;
    pawl__field_range(field, range);
    if (!good || number < range[0] || number > range[1]) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is not a whole number from %lld to %lld",
                          field->name,
                          (long long)range[0],
                          (long long)range[1]);
    }
    pawl__field_set_number(field, number, value);
    return PAWL_OK;
}

static pawl_status parse_bool(const struct pawl__field *field,
                              pawl_view text,
                              bool *ret_value,
                              pawl_error *reterr)
{
    *ret_value = pawl__view_is(text, "true");
    return *ret_value || pawl__view_is(text, "false")
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "%s: is neither true nor false", field->name);
}

/* As the same text is read out of JSON. */
static pawl_status parse_as_json(const struct pawl__field *field,
                                 pawl_view text,
                                 void *value,
                                 pawl_error *reterr)
{
    json_auto_t *string = json_stringn(text.data, text.len);

    return string == NULL
               ? no_memory(field->name, reterr)
               : read_field(field, pawl__json_root(string, field->name), NULL, value, reterr);
}

pawl_status pawl__record_read_text(const struct pawl__field *field,
                                   pawl_view text,
                                   void *value,
                                   pawl_error *reterr)
{
    void *at = pawl__field_in(field, value);

    if (pawl__field_is_number(field)) {
        return parse_number(field, text, value, reterr);
    }
    if (field->kind == FIELD_TEXT) {
        return parse_text(field, text, at, reterr);
    }
    if (field->kind == FIELD_BOOL) {
        return parse_bool(field, text, at, reterr);
    }
    REQUIRE(field->kind == FIELD_ENUM || field->kind == FIELD_DURATION);
    return parse_as_json(field, text, value, reterr);
}
