/* The JSON schema (draft 2020-12, as OpenAPI 3.1 uses it) of a record. */
#include "base/core/macros.h"
#include "base/record/internal.h"
#include "base/terminal/display.h"

/* What may be missing is null when it is written; read, it may be left out or null. */
static bool is_nullable(const struct pawl__field *field, enum pawl__record_use use)
{
    if (use == RECORD_READ) {
        return (field->flags & FIELD_REQUIRED) == 0;
    }
    if ((field->flags & FIELD_OMITTED) != 0) {
        return false;
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

void pawl__record_reference(const struct pawl__record *record,
                            enum pawl__record_use use,
                            struct pawl__buf *buf)
{
    pawl__buf_add_format(
        buf, "{\"$ref\":\"#/components/schemas/%s%s\"}", record->name, pawl__record_suffix(use));
}

const char *pawl__record_suffix(enum pawl__record_use use)
{
    return use == RECORD_READ ? "Input" : "";
}

/* The limits of what is read. What is written may be older than they are. */
static void add_limits(const struct pawl__field *field,
                       enum pawl__record_use use,
                       struct pawl__object *schema)
{
    bool limited = use == RECORD_READ && (field->min != 0 || field->max != 0);

    if (use == RECORD_READ && field->kind == FIELD_TEXT && (field->flags & FIELD_BLANK) == 0) {
        pawl__object_integer(schema, "minLength", MAX(field->min, 1));
    }
    if (limited && field->kind == FIELD_TEXT) {
        pawl__object_integer(schema, "maxLength", field->max);
    } else if (limited && pawl__field_is_number(field)) {
        pawl__object_integer(schema, "minimum", field->min);
        pawl__object_integer(schema, "maximum", field->max);
    } else if (limited && (field->kind == FIELD_RECORDS || field->kind == FIELD_TEXTS)) {
        pawl__object_integer(schema, "minItems", field->min);
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
    case FIELD_CHARS:
    case FIELD_DURATION:
        add_type(schema, "string", nullable);
        break;
    case FIELD_JSON:
        if ((field->flags & FIELD_OBJECT) != 0) {
            add_type(schema, "object", nullable);
            pawl__object_bool(schema, "additionalProperties", true);
        } /* else anything */
        break;
    case FIELD_REAL:
        add_type(schema, "number", nullable);
        break;
    case FIELD_TEXTS:
        add_type(schema, "array", nullable);
        pawl__object_key(schema, "items");
        pawl__buf_add_text(schema->buf, "{\"type\":\"string\"}");
        break;
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
        pawl__record_reference(field->record, use, schema->buf);
        pawl__buf_add_text(schema->buf, nullable ? ",{\"type\":\"null\"}]" : "]");
        break;
    case FIELD_RECORDS:
        add_type(schema, "array", nullable);
        pawl__object_key(schema, "items");
        pawl__record_reference(field->record, use, schema->buf);
        break;
    }
}

static void add_default(const struct pawl__field *field,
                        const void *initial,
                        struct pawl__object *schema)
{
    int64_t range[2];

    pawl__field_range(field, range);
    if (pawl__field_is_number(field) && pawl__field_number(field, initial) >= range[0]) {
        pawl__object_integer(schema, "default", pawl__field_number(field, initial));
    } else if (field->kind == FIELD_ENUM
               && *(const unsigned *)pawl__field_at(field, initial) != FIELD_ENUM_NONE) {
        pawl__object_text(schema, "default", pawl_view_of(pawl__field_enum_name(field, initial)));
    }
}

void pawl__field_schema(const struct pawl__field *field,
                        enum pawl__record_use use,
                        const void *initial,
                        struct pawl__buf *buf)
{
    struct pawl__object schema = pawl__object_start(buf);

    add_kind(field, use, &schema);
    add_limits(field, use, &schema);
    if (initial != NULL && (field->flags & FIELD_REQUIRED) == 0) {
        add_default(field, initial, &schema);
    }
    if (field->about != NULL) {
        pawl__object_text(&schema, "description", pawl_view_of(field->about));
    }
    pawl__object_end(&schema);
}

static bool is_shown(const struct pawl__field *field, enum pawl__record_use use)
{
    return use == RECORD_WRITTEN || field->refused == NULL;
}

static void add_required(const struct pawl__record *record,
                         enum pawl__record_use use,
                         const char **before,
                         struct pawl__buf *buf)
{
    if (record->extends != NULL) {
        add_required(record->extends, use, before, buf);
    }
    for (size_t i = 0; i < record->count; i++) {
        unsigned flags = record->fields[i].flags;

        if (use == RECORD_WRITTEN ? (flags & FIELD_OMITTED) == 0 : (flags & FIELD_REQUIRED) != 0) {
            pawl__buf_add_format(buf, "%s\"%s\"", *before, record->fields[i].name);
            *before = ",";
        }
    }
}

static void add_properties(const struct pawl__record *record,
                           enum pawl__record_use use,
                           struct pawl__object *properties)
{
    const void *initial = use == RECORD_READ ? record->initial : NULL;

    if (record->extends != NULL) {
        add_properties(record->extends, use, properties);
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct pawl__field *field = &record->fields[i];

        if (is_shown(field, use)) {
            pawl__object_key(properties, field->name);
            pawl__field_schema(field, use, initial, properties->buf);
        }
    }
}

static void add_object(const struct pawl__record *record,
                       enum pawl__record_use use,
                       struct pawl__buf *buf)
{
    struct pawl__object schema = pawl__object_start(buf);
    const char *before = "";

    add_type(&schema, "object", false);
    if (record->about != NULL) {
        pawl__object_text(&schema, "description", pawl_view_of(record->about));
    }
    pawl__object_key(&schema, "properties");
    struct pawl__object properties = pawl__object_start(buf);
    add_properties(record, use, &properties);
    pawl__object_end(&properties);
    pawl__object_key(&schema, "required");
    pawl__buf_add_char(buf, '[');
    add_required(record, use, &before, buf);
    pawl__buf_add_char(buf, ']');
    if (use == RECORD_READ) { /* an answer may get new fields; what is asked is checked */
        pawl__object_bool(&schema, "additionalProperties", false);
    }
    pawl__object_end(&schema);
}

void pawl__record_schema(const struct pawl__record *record,
                         enum pawl__record_use use,
                         struct pawl__buf *buf)
{
    const struct pawl__field *first = record->count == 0 ? NULL : &record->fields[0];

    if (use == RECORD_WRITTEN || first == NULL || (first->flags & FIELD_OR_ONE) == 0) {
        add_object(record, use, buf);
        return;
    }
    pawl__buf_add_text(buf, "{\"anyOf\":[");
    add_object(record, use, buf);
    pawl__buf_add_char(buf, ',');
    pawl__record_reference(first->record, use, buf);
    pawl__buf_add_text(buf, "]}");
}
