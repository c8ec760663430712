#include "config/section.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/nearest.h"
#include "base/terminal/display.h"
#include "config/internal.h"

struct reader {
    struct pawl__loader *loader;
    struct pawl__buf path; /* of what is being read: "pipelines.orders.columns[0].name" */
};

const struct pawl__section *pawl__section_field(const struct pawl__section *object, const char *key)
{
    size_t i = 0;

    while (i < object->count && strcmp(object->entries[i].name, key) != 0) {
        i++;
    }
    REQUIRE(i < object->count); /* only declared fields are asked for */
    return &object->entries[i];
}

static pawl_status read_field(struct reader *reader,
                              const struct pawl__section_field *field,
                              const struct pawl__yaml_node *node,
                              struct pawl__section *section);

static pawl_status refuse_shape(struct reader *reader,
                                const struct pawl__section_field *field,
                                const struct pawl__yaml_node *node)
{
    char wanted_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf wanted = BUF_OVER(wanted_text);

    switch (field->shape) {
    case PAWL__SHAPE_VALUE:
        pawl__buf_add_text(&wanted, "one value belongs; allowed: ");
        pawl__setting_add_allowed(&field->value, &wanted);
        break;
    case PAWL__SHAPE_OBJECT:
        pawl__buf_add_format(
            &wanted, "a section belongs; write '%s: ...' indented below it", field->fields[0].key);
        break;
    case PAWL__SHAPE_LIST:
        pawl__buf_add_text(&wanted, "a list belongs; write '- ...' lines below it, or []");
        break;
    case PAWL__SHAPE_MAP:
        pawl__buf_add_text(&wanted, "names belong; write 'NAME:' lines indented below it, or {}");
        break;
    }
    return pawl__loader_refuse(reader->loader,
                               node->line,
                               "%s: is %s where %s",
                               reader->path.data,
                               pawl__yaml_word(node),
                               wanted_text);
}

static void *take_zeroed(struct pawl__loader *loader, size_t size)
{
    void *memory = pawl__arena_take(&loader->config->arena, size);

    return memory == NULL ? NULL : memset(memory, 0, size);
}

/* `node` is NULL for a default. */
static pawl_status read_value(struct reader *reader,
                              const struct pawl__section_field *field,
                              const struct pawl__yaml_node *node,
                              struct pawl__section *section)
{
    struct pawl__loader *loader = reader->loader;
    struct pawl__config_entry entry = {
        .origin = node == NULL ? PAWL__ORIGIN_DEFAULT : PAWL__ORIGIN_FILE,
        .name = loader->config->file,
        .line = section->line,
    };
    struct pawl__setting value = field->value;
    pawl_view text = node == NULL ? pawl_view_of(value.text) : node->text;
    pawl_view stored = { NULL, 0 };

    if (field->required) {
        value.text = "set"; /* what has a default is never empty */
    }
    TRY(pawl__loader_check(loader, &value, reader->path.data, text, &entry));
    if (entry.text == NULL) {
        return PAWL_OK; /* a problem by now */
    }
    AUTO(pawl__text_free) char *checked = entry.text;
    if (!pawl__arena_copy(&loader->config->arena, pawl_view_of(checked), &stored)) {
        return PAWL_NOMEM;
    }
    section->text = stored.data;
    section->number = entry.number;
    return PAWL_OK;
}

static size_t field_count(const struct pawl__section_field *fields)
{
    size_t count = 0;

    while (fields[count].key != NULL) {
        count++;
    }
    return count;
}

static pawl_status refuse_field(struct reader *reader,
                                const struct pawl__section_field *fields,
                                const struct pawl__yaml_node *node)
{
    char message_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf message = BUF_OVER(message_text);
    struct pawl__nearest nearest = pawl__nearest_to(node->key->text);

    pawl__display_add_quoted(&message, node->key->text);
    for (; fields->key != NULL; fields++) {
        pawl__nearest_offer(&nearest, fields->key);
    }
    pawl__nearest_add_hint(&nearest, &message);
    return pawl__loader_refuse(
        reader->loader, node->line, "%s: unknown key %s", reader->path.data, message_text);
}

/* Makes `node` the value of its field; one that is unknown or there twice is a problem. */
static pawl_status place_pair(struct reader *reader,
                              const struct pawl__section_field *fields,
                              const struct pawl__yaml_node *node,
                              const struct pawl__yaml_node **nodes)
{
    if (!pawl__key_is_text(node->key)) {
        return pawl__loader_refuse_key(reader->loader, node->key);
    }
    for (size_t i = 0; fields[i].key != NULL; i++) {
        if (!pawl__view_is(node->key->text, fields[i].key)) {
            continue;
        }
        if (nodes[i] != NULL) {
            return pawl__loader_refuse(reader->loader,
                                       node->line,
                                       "%s.%s: is set already, on line %zu",
                                       reader->path.data,
                                       fields[i].key,
                                       nodes[i]->line);
        }
        nodes[i] = node;
        return PAWL_OK;
    }
    return refuse_field(reader, fields, node);
}

static pawl_status read_fields(struct reader *reader,
                               const struct pawl__section_field *fields,
                               const struct pawl__yaml_node *const *nodes,
                               struct pawl__section *object)
{
    size_t len = reader->path.len;

    for (size_t i = 0; i < object->count; i++) {
        struct pawl__section *entry = &object->entries[i];

        entry->name = fields[i].key;
        if (nodes[i] == NULL && fields[i].required) {
            TRY(pawl__loader_refuse(reader->loader,
                                    object->line,
                                    "%s: '%s' is missing",
                                    reader->path.data,
                                    fields[i].key));
            continue;
        }
        pawl__buf_add_format(&reader->path, ".%s", fields[i].key);
        pawl_status status = read_field(reader, &fields[i], nodes[i], entry);
        pawl__buf_cut(&reader->path, len);
        TRY(status);
    }
    return PAWL_OK;
}

static pawl_status read_object(struct reader *reader,
                               const struct pawl__section_field *fields,
                               const struct pawl__yaml_node *node,
                               struct pawl__section *object)
{
    size_t count = field_count(fields);
    struct pawl__section *entries = take_zeroed(reader->loader, count * sizeof(*entries));
    const struct pawl__yaml_node **nodes = take_zeroed(reader->loader, count * sizeof(*nodes));

    if (entries == NULL || nodes == NULL) {
        return PAWL_NOMEM;
    }
    for (const struct pawl__yaml_node *i = node->first; i != NULL; i = i->next) {
        TRY(place_pair(reader, fields, i, nodes));
    }
    object->entries = entries;
    object->count = count;
    return read_fields(reader, fields, nodes, object);
}

/* It may become the name of a directory, a metric's label, a part of a path. */
static bool is_name(pawl_view text)
{
    if (text.len == 0 || text.len > PAWL__SECTION_NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && (i == 0 || (c != '.' && c != '_' && c != '-'))) {
            return false;
        }
    }
    return true;
}

static pawl_status refuse_name(struct reader *reader, const struct pawl__yaml_node *node)
{
    char name_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf name = BUF_OVER(name_text);

    pawl__display_add_quoted(&name, node->key->text);
    return pawl__loader_refuse(
        reader->loader,
        node->line,
        "%s: %s is no name; allowed: up to %d letters, digits, '.', '_' and '-',"
        " the first a letter or digit",
        reader->path.data,
        name_text,
        PAWL__SECTION_NAME_BYTES_MAX);
}

/* An entry of a map has a name, and the file must not have it twice. */
static pawl_status check_name(struct reader *reader,
                              const struct pawl__yaml_node *node,
                              bool *ret_good)
{
    if (!pawl__key_is_text(node->key)) {
        return pawl__loader_refuse_key(reader->loader, node->key);
    }
    if (!is_name(node->key->text)) {
        return refuse_name(reader, node);
    }
    const struct pawl__yaml_node *earlier = pawl__yaml_earlier(node);
    if (earlier != NULL) {
        return pawl__loader_refuse(reader->loader,
                                   node->line,
                                   "%s.%s: is there already, on line %zu",
                                   reader->path.data,
                                   node->key->text.data,
                                   earlier->line);
    }
    *ret_good = true;
    return PAWL_OK;
}

/* One entry of a list or map, as if it were a field of its own. */
static pawl_status read_entry(struct reader *reader,
                              const struct pawl__section_field *field,
                              const struct pawl__yaml_node *node,
                              struct pawl__section *section)
{
    struct pawl__section_field one = *field;
    size_t len = reader->path.len;
    struct pawl__section *entry = &section->entries[section->count];
    bool good = field->shape == PAWL__SHAPE_LIST;

    if (!good) {
        TRY(check_name(reader, node, &good));
    }
    if (!good) {
        return PAWL_OK;
    }
    if (field->shape == PAWL__SHAPE_MAP) {
        pawl_view name;

        if (!pawl__arena_copy(&reader->loader->config->arena, node->key->text, &name)) {
            return PAWL_NOMEM;
        }
        entry->name = name.data;
        pawl__buf_add_format(&reader->path, ".%s", entry->name);
    } else {
        pawl__buf_add_format(&reader->path, "[%zu]", section->count);
    }
    section->count++;
    one.shape = field->fields == NULL ? PAWL__SHAPE_VALUE : PAWL__SHAPE_OBJECT;
    one.required = true;
    pawl_status status = read_field(reader, &one, node, entry);
    pawl__buf_cut(&reader->path, len);
    return status;
}

static pawl_status read_entries(struct reader *reader,
                                const struct pawl__section_field *field,
                                const struct pawl__yaml_node *node,
                                struct pawl__section *section)
{
    size_t count = 0;

    for (const struct pawl__yaml_node *i = node->first; i != NULL; i = i->next) {
        if (++count > field->count_max) {
            return pawl__loader_refuse(reader->loader,
                                       i->line,
                                       "%s: has more than %zu entries",
                                       reader->path.data,
                                       field->count_max);
        }
    }
    section->entries = take_zeroed(reader->loader, count * sizeof(*section->entries));
    if (section->entries == NULL) {
        return PAWL_NOMEM;
    }
    for (const struct pawl__yaml_node *i = node->first; i != NULL; i = i->next) {
        TRY(read_entry(reader, field, i, section));
    }
    return PAWL_OK;
}

static bool fits(enum pawl__shape shape, enum pawl__yaml_kind kind)
{
    switch (shape) {
    case PAWL__SHAPE_VALUE:
        return kind == PAWL__YAML_VALUE;
    case PAWL__SHAPE_LIST:
        return kind == PAWL__YAML_LIST;
    case PAWL__SHAPE_OBJECT:
    case PAWL__SHAPE_MAP:
        return kind == PAWL__YAML_MAP;
    }
    return false;
}

/* `node` is NULL when the file does not have it. */
static pawl_status read_field(struct reader *reader,
                              const struct pawl__section_field *field,
                              const struct pawl__yaml_node *node,
                              struct pawl__section *section)
{
    static const struct pawl__yaml_node nothing = { .kind = PAWL__YAML_MAP };

    section->line = node == NULL ? 0 : node->line;
    if (node != NULL && node->decorated) {
        return pawl__loader_refuse(reader->loader,
                                   node->line,
                                   "%s: has an anchor, alias or tag, which this file may not have",
                                   reader->path.data);
    }
    if (node != NULL && !fits(field->shape, node->kind)) {
        return refuse_shape(reader, field, node);
    }
    switch (field->shape) {
    case PAWL__SHAPE_VALUE:
        return read_value(reader, field, node, section);
    case PAWL__SHAPE_OBJECT:
        return read_object(reader, field->fields, node == NULL ? &nothing : node, section);
    case PAWL__SHAPE_LIST:
    case PAWL__SHAPE_MAP:
        return read_entries(reader, field, node == NULL ? &nothing : node, section);
    }
    return PAWL_OK;
}

pawl_status pawl__loader_read_section(struct pawl__loader *loader,
                                      const struct pawl__section_field *field,
                                      const struct pawl__yaml_node *node,
                                      struct pawl__section *ret_section)
{
    char path_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct reader reader = { .loader = loader, .path = BUF_OVER(path_text) };

    pawl__buf_add_text(&reader.path, field->key);
    *ret_section = (struct pawl__section){ .name = field->key };
    return read_field(&reader, field, node, ret_section);
}
