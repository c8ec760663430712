/* The JSON schema (draft 2020-12, as OpenAPI 3.1 uses it) of a record. */
#include "base/core/macros.h"
#include "base/os/display.h"
#include "base/record/internal.h"

/* What may be missing is null when it is written; read, it may be left out or null. */
static bool is_nullable(const struct pawl__field *field, enum pawl__record_use use)
{
    if (use == RECORD_READ) {
        return (field->flags & FIELD_REQUIRED) == 0;
    }
    bool may_miss = pawl__field_is_text(field) || field->kind == FIELD_TIME
                    || field->kind == FIELD_NAME || field->kind == FIELD_RECORD;
    return may_miss && (field->flags & FIELD_SET) == 0;
}

static void add_type(struct pawl__object *schema, const char *type, bool nullable)
{
    pawl__object_key(schema, "type");
    pawl__buf_add_format(schema->buf, nullable ? "[\"%s\",\"null\"]" : "\"%s\"", type);
}

static void add_names(const struct pawl__field *field, struct pawl__object *schema, bool nullable)
{
    pawl__object_key(schema, "enum");
    for (size_t i = 0; field->names[i] != NULL; i++) {
        pawl__buf_add_format(schema->buf, "%s\"%s\"", i == 0 ? "[" : ",", field->names[i]);
    }
    pawl__buf_add_text(schema->buf, nullable ? ",null]" : "]");
}

static void add_reference(const struct pawl__field *field, struct pawl__buf *buf)
{
    pawl__buf_add_format(buf, "{\"$ref\":\"#/components/schemas/%s\"}", field->record->name);
}

/* The limits of what is read. What is written may be older than they are. */
static void add_limits(const struct pawl__field *field,
                       enum pawl__record_use use,
                       struct pawl__object *schema)
{
    bool limited = use == RECORD_READ && (field->min != 0 || field->max != 0);

    if (use == RECORD_READ && field->kind == FIELD_TEXT) {
        pawl__object_integer(schema, "minLength", MAX(field->min, 1));
    }
    if (limited && field->kind == FIELD_TEXT) {
        pawl__object_integer(schema, "maxLength", field->max);
    } else if (limited
               && (field->kind == FIELD_INT32 || field->kind == FIELD_INT64
                   || field->kind == FIELD_UINT64)) {
        pawl__object_integer(schema, "minimum", field->min);
        pawl__object_integer(schema, "maximum", field->max);
    } else if (limited && field->kind == FIELD_RECORDS) {
        pawl__object_integer(schema, "maxItems", field->max);
    }
}

static void add_kind(const struct pawl__field *field,
                     enum pawl__record_use use,
                     struct pawl__object *schema)
{
    bool nullable = is_nullable(field, use);

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_NAME:
    case FIELD_DURATION:
        add_type(schema, "string", nullable);
        break;
    case FIELD_JSON:
        break; /* anything */
    case FIELD_BOOL:
        add_type(schema, "boolean", nullable);
        break;
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_UINT64:
        add_type(schema, "integer", nullable);
        break;
    case FIELD_TIME:
        add_type(schema, "string", nullable);
        pawl__object_text(schema, "format", pawl_view_of("date-time"));
        break;
    case FIELD_ENUM:
        add_names(field, schema, nullable);
        break;
    case FIELD_RECORD:
        pawl__object_key(schema, "anyOf");
        pawl__buf_add_char(schema->buf, '[');
        add_reference(field, schema->buf);
        pawl__buf_add_text(schema->buf, nullable ? ",{\"type\":\"null\"}]" : "]");
        break;
    case FIELD_RECORDS:
        add_type(schema, "array", nullable);
        pawl__object_key(schema, "items");
        add_reference(field, schema->buf);
        break;
    }
}

static void add_field(const struct pawl__field *field,
                      enum pawl__record_use use,
                      struct pawl__object *properties)
{
    pawl__object_key(properties, field->name);
    struct pawl__object schema = pawl__object_start(properties->buf);
    add_kind(field, use, &schema);
    add_limits(field, use, &schema);
    if (field->about != NULL) {
        pawl__object_text(&schema, "description", pawl_view_of(field->about));
    }
    pawl__object_end(&schema);
}

static void add_required(const struct pawl__record *record,
                         enum pawl__record_use use,
                         struct pawl__object *schema)
{
    bool any = false;

    pawl__object_key(schema, "required");
    pawl__buf_add_char(schema->buf, '[');
    for (size_t i = 0; i < record->count; i++) {
        if (use == RECORD_WRITTEN || (record->fields[i].flags & FIELD_REQUIRED) != 0) {
            pawl__buf_add_format(schema->buf, "%s\"%s\"", any ? "," : "", record->fields[i].name);
            any = true;
        }
    }
    pawl__buf_add_char(schema->buf, ']');
}

void pawl__record_schema(const struct pawl__record *record,
                         enum pawl__record_use use,
                         struct pawl__buf *buf)
{
    struct pawl__object schema = pawl__object_start(buf);

    add_type(&schema, "object", false);
    pawl__object_key(&schema, "properties");
    struct pawl__object properties = pawl__object_start(buf);
    for (size_t i = 0; i < record->count; i++) {
        add_field(&record->fields[i], use, &properties);
    }
    pawl__object_end(&properties);
    add_required(record, use, &schema);
    if (use == RECORD_READ) { /* an answer may get new fields; what is asked is checked */
        pawl__object_bool(&schema, "additionalProperties", false);
    }
    pawl__object_end(&schema);
}
