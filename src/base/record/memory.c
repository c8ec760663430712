/* Records in memory: what is in a field, checks and copies. */
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/record/internal.h"

const struct pawl__field *pawl__record_field(const struct pawl__record *record, const char *name)
{
    for (size_t i = 0; i < record->count; i++) {
        if (strcmp(record->fields[i].name, name) == 0) {
            return &record->fields[i];
        }
    }
    return NULL;
}

int64_t pawl__field_number(const struct pawl__field *field, const void *value)
{
    const void *at = pawl__field_at(field, value);

    switch (field->kind) {
    case FIELD_INT32:
        return *(const int32_t *)at;
    case FIELD_UINT64:
        return (int64_t)MIN(*(const uint64_t *)at, (uint64_t)INT64_MAX);
    default:
        return *(const int64_t *)at;
    }
}

void pawl__field_range(const struct pawl__field *field, int64_t ret_range[2])
{
    bool limited = field->min != 0 || field->max != 0;
    int64_t widest = field->kind == FIELD_INT32 ? INT32_MAX : INT64_MAX;
    int64_t least = field->kind == FIELD_UINT64 ? 0 : -widest - 1;

    ret_range[0] = limited ? field->min : least;
    ret_range[1] = limited ? field->max : widest;
}

void pawl__field_set_number(const struct pawl__field *field, int64_t number, void *value)
{
    if (field->kind == FIELD_INT32) {
        *(int32_t *)pawl__field_in(field, value) = (int32_t)number;
    } else {
        memcpy(pawl__field_in(field, value), &number, sizeof(number));
    }
}

bool pawl__field_set_enum(const struct pawl__field *field, pawl_view text, void *value)
{
    for (unsigned i = 0; field->names[i] != NULL; i++) {
        if (pawl__view_is(text, field->names[i])) {
            *(unsigned *)pawl__field_in(field, value) = i;
            return true;
        }
    }
    return false;
}

void pawl__field_add_names(const struct pawl__field *field, struct pawl__buf *list)
{
    for (size_t i = 0; field->names[i] != NULL; i++) {
        pawl__buf_add_text(list, i == 0 ? "" : ", ");
        pawl__buf_add_text(list, field->names[i]);
    }
}

void pawl__record_start(const struct pawl__record *record, void *ret_value)
{
    if (record->initial != NULL) {
        memcpy(ret_value, record->initial, record->size);
    } else {
        memset(ret_value, 0, record->size);
    }
}

const char *pawl__field_enum_name(const struct pawl__field *field, const void *value)
{
    unsigned number = *(const unsigned *)pawl__field_at(field, value);

    for (unsigned i = 0; field->names[i] != NULL; i++) {
        if (i == number) {
            return field->names[i];
        }
    }
    return "unknown";
}

static pawl_status check_field(const struct pawl__field *field,
                               const void *value,
                               pawl_error *reterr)
{
    if (pawl__field_is_text(field)) {
        return pawl__check_view(pawl__field_text(field, value), field->name, reterr);
    }
    if (field->kind == FIELD_RECORD && pawl__field_pointer(field, value) != NULL) {
        return pawl__record_check(field->record, pawl__field_pointer(field, value), reterr);
    }
    bool is_list = field->kind == FIELD_RECORDS || field->kind == FIELD_TEXTS;
    size_t count = is_list ? pawl__field_count(field, value) : 0;
    if (count > 0 && pawl__field_pointer(field, value) == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is NULL", field->name);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(field->kind == FIELD_TEXTS
                ? pawl__check_view(pawl__field_item(field, value, i), field->name, reterr)
                : pawl__record_check(field->record, pawl__field_record(field, value, i), reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__record_check(const struct pawl__record *record,
                               const void *value,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < record->count; i++) {
        TRY(check_field(&record->fields[i], value, reterr));
    }
    return PAWL_OK;
}

/* --- copies --- */

static bool copy_text(struct pawl__arena *arena, pawl_view *text)
{
    if (text->len == 0) {
        *text = (pawl_view){ "", 0 };
        return true;
    }
    return pawl__arena_copy(arena, *text, text);
}

/* Of `count` records that the field of the copy still shares with its original. */
static bool copy_records(const struct pawl__field *field,
                         struct pawl__arena *arena,
                         size_t count,
                         const void **pointer)
{
    const char *from = *pointer;

    *pointer = NULL;
    if (from == NULL || count == 0) {
        return true;
    }
    char *to = pawl__arena_take(arena, count * field->record->size);
    for (size_t i = 0; i < count; i++) {
        size_t at = i * field->record->size;
        if (to == NULL || !pawl__record_copy(field->record, arena, from + at, to + at)) {
            return false;
        }
    }
    *pointer = to;
    return true;
}

static bool copy_texts(struct pawl__arena *arena, size_t count, const void **pointer)
{
    const pawl_view *from = *pointer;

    *pointer = NULL;
    if (from == NULL || count == 0) {
        return true;
    }
    pawl_view *to = pawl__arena_take(arena, count * sizeof(*to));
    for (size_t i = 0; to != NULL && i < count; i++) {
        to[i] = from[i];
        if (!copy_text(arena, &to[i])) {
            return false;
        }
    }
    *pointer = to;
    return to != NULL;
}

static void set_size(const struct pawl__record *record, void *value)
{
    if (record->sized) {
        memcpy(value, &record->size, sizeof(record->size));
    }
}

bool pawl__record_copy(const struct pawl__record *record,
                       struct pawl__arena *arena,
                       const void *from,
                       void *ret_copy)
{
    bool copied = true;

    memcpy(ret_copy, from, record->size);
    set_size(record, ret_copy);
    for (size_t i = 0; i < record->count && copied; i++) {
        const struct pawl__field *field = &record->fields[i];
        void *at = pawl__field_in(field, ret_copy);

        if (pawl__field_is_text(field)) {
            copied = copy_text(arena, at);
        } else if (field->kind == FIELD_RECORD) {
            copied = copy_records(field, arena, 1, at);
        } else if (field->kind == FIELD_RECORDS) {
            copied = copy_records(field, arena, pawl__field_count(field, from), at);
        } else if (field->kind == FIELD_TEXTS) {
            copied = copy_texts(arena, pawl__field_count(field, from), at);
        }
    }
    return copied;
}

size_t pawl__record_text_bytes(const struct pawl__record *record, const void *value)
{
    size_t bytes = 0;

    for (size_t i = 0; i < record->count; i++) {
        if (pawl__field_is_text(&record->fields[i])) {
            bytes += pawl__field_text(&record->fields[i], value).len + 1;
        }
    }
    return bytes;
}

char *pawl__record_move_texts(const struct pawl__record *record, void *value, char *to)
{
    set_size(record, value);
    for (size_t i = 0; i < record->count; i++) {
        pawl_view *text = pawl__field_in(&record->fields[i], value);

        if (!pawl__field_is_text(&record->fields[i])) {
            continue;
        }
        if (text->len > 0) {
            memcpy(to, text->data, text->len);
        }
        to[text->len] = '\0';
        text->data = to;
        to += text->len + 1;
    }
    return to;
}
