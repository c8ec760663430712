/* Pipelines of pawl.yaml: a map from their names to what 'pawl pipeline add' takes as flags. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/settings.h"
#include "config/config.h"

enum { COLUMNS_MAX = 128 };

#define TEXT_FIELD(key_)                                                  \
    {                                                                     \
        .key = (key_), .value = {.type = PAWL__SETTING_TEXT, .text = "" } \
    }
#define SWITCH_FIELD(key_)                                                     \
    {                                                                          \
        .key = (key_), .value = {.type = PAWL__SETTING_BOOL, .text = "false" } \
    }

static const struct pawl__section_field column_fields[] = {
    { .key = "name", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "type",
      .value = { .type = PAWL__SETTING_CHOICE,
                 .text = "VARCHAR",
                 .one_of = "BIGINT|INTEGER|DOUBLE|BOOLEAN|VARCHAR|TIMESTAMP|JSON" } },
    { .key = "from",
      .value = { .type = PAWL__SETTING_CHOICE,
                 .text = "path",
                 .one_of = "path|transaction_id|source|event_id|subject|headers|received" } },
    TEXT_FIELD("path"),
    TEXT_FIELD("expression"),
    SWITCH_FIELD("required"),
    SWITCH_FIELD("lenient"),
    { .key = NULL },
};

static const struct pawl__section_field pipeline_fields[] = {
    { .key = "from", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    TEXT_FIELD("into"),
    TEXT_FIELD("source"),
    TEXT_FIELD("id_field"),
    TEXT_FIELD("generation"),
    TEXT_FIELD("stream"),
    TEXT_FIELD("consumer"),
    TEXT_FIELD("subject"),
    SWITCH_FIELD("create_stream"),
    TEXT_FIELD("nkey_file"),
    TEXT_FIELD("creds_file"),
    TEXT_FIELD("tls_ca"),
    TEXT_FIELD("tls_certificate"),
    TEXT_FIELD("tls_key"),
    SWITCH_FIELD("complete_turns"),
    { .key = "columns",
      .shape = PAWL__SHAPE_LIST,
      .count_max = COLUMNS_MAX,
      .fields = column_fields },
    TEXT_FIELD("filter"),
    SWITCH_FIELD("unique_index"),
    { .key = NULL },
};

const struct pawl__section_field pawl__cli_sections[] = {
    { .key = "pipelines",
      .shape = PAWL__SHAPE_MAP,
      .count_max = PAWL_PIPELINES_MAX,
      .fields = pipeline_fields },
    { .key = NULL },
};

/* What was written; defaults are the library's. NULL without memory. */
static json_t *object_of(const struct pawl__section *section,
                         const struct pawl__section_field *fields);

static json_t *list_of(const struct pawl__section *section,
                       const struct pawl__section_field *fields)
{
    json_t *list = json_array();

    for (size_t i = 0; i < section->count; i++) {
        json_array_append_new(list, object_of(&section->entries[i], fields));
    }
    return list;
}

static json_t *object_of(const struct pawl__section *section,
                         const struct pawl__section_field *fields)
{
    json_t *object = json_object();

    for (const struct pawl__section_field *field = fields; field->key != NULL; field++) {
        const struct pawl__section *entry = pawl__section_field(section, field->key);
        if (entry->line == 0) {
            continue;
        }
        json_object_set_new(object,
                            field->key,
                            field->shape == PAWL__SHAPE_LIST ? list_of(entry, field->fields)
                            : field->value.type == PAWL__SETTING_BOOL ? json_boolean(entry->number)
                                                                      : json_string(entry->text));
    }
    return object;
}

static pawl_status add_one(struct pawl__cli_delivery *delivery,
                           const struct pawl__section *section,
                           pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(PAWL_DECLARATION_BYTES_MAX);
    json_auto_t *object = object_of(section, pipeline_fields);

    json_object_set_new(object, "name", json_string(section->name));
    TRY(pawl__json_dump(object, &json, reterr));
    return pawl__cli_pipeline_add(delivery, pawl__buf_view(&json), reterr);
}

bool pawl__cli_delivery_is_configured(const struct pawl__cli_run *run)
{
    return pawl__config_section(run->config, "pipelines")->count > 0;
}

pawl_status pawl__cli_delivery_add_configured(const struct pawl__cli_run *run,
                                              struct pawl__cli_delivery *delivery,
                                              pawl_error *reterr)
{
    const struct pawl__section *pipelines = pawl__config_section(run->config, "pipelines");

    for (size_t i = 0; i < pipelines->count; i++) {
        const struct pawl__section *section = &pipelines->entries[i];
        pawl_status status = add_one(delivery, section, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr,
                                      status,
                                      "%s:%zu: pipelines.%s",
                                      pawl__config_file(run->config),
                                      section->line,
                                      section->name);
        }
    }
    return PAWL_OK;
}
