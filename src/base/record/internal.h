/* A field's value inside a record. */
#ifndef PAWL_BASE_RECORD_INTERNAL_H
#define PAWL_BASE_RECORD_INTERNAL_H

#include "base/record/record.h"

static inline const void *pawl__field_at(const struct pawl__field *field, const void *value)
{
    return (const char *)value + field->offset;
}

static inline void *pawl__field_in(const struct pawl__field *field, void *value)
{
    return (char *)value + field->offset;
}

static inline bool pawl__field_is_text(const struct pawl__field *field)
{
    return field->kind == FIELD_TEXT || field->kind == FIELD_JSON;
}

static inline pawl_view pawl__field_text(const struct pawl__field *field, const void *value)
{
    return *(const pawl_view *)pawl__field_at(field, value);
}

static inline const void *pawl__field_pointer(const struct pawl__field *field, const void *value)
{
    return *(const void *const *)pawl__field_at(field, value);
}

static inline size_t pawl__field_count(const struct pawl__field *field, const void *value)
{
    return *(const size_t *)((const char *)value + field->count_offset);
}

static inline pawl_view pawl__field_name(const struct pawl__field *field, const void *value)
{
    const char *name = *(const char *const *)pawl__field_at(field, value);

    return pawl_view_of(name == NULL ? "" : name);
}

/* The record `index` of those that a FIELD_RECORDS points to. */
static inline const void *pawl__field_record(const struct pawl__field *field,
                                             const void *value,
                                             size_t index)
{
    return (const char *)pawl__field_pointer(field, value) + index * field->record->size;
}

static inline pawl_view pawl__field_item(const struct pawl__field *field,
                                         const void *value,
                                         size_t index)
{
    return ((const pawl_view *)pawl__field_pointer(field, value))[index];
}

static inline bool pawl__field_is_number(const struct pawl__field *field)
{
    return field->kind == FIELD_INT32 || field->kind == FIELD_INT64 || field->kind == FIELD_UINT64;
}

/* The values that a number may have when it is read. */
void pawl__field_range(const struct pawl__field *field, int64_t ret_range[2]);
void pawl__field_set_number(const struct pawl__field *field, int64_t number, void *value);
/* False: none of the names is `text`. */
bool pawl__field_set_enum(const struct pawl__field *field, pawl_view text, void *value);
/* "a, b, c". */
void pawl__field_add_names(const struct pawl__field *field, struct pawl__buf *list);

/* Of the kinds that are numbers. */
int64_t pawl__field_number(const struct pawl__field *field, const void *value);
/* "unknown" for a value that the enum does not have. */
const char *pawl__field_enum_name(const struct pawl__field *field, const void *value);

#endif
