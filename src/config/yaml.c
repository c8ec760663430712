#include "config/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/core/buf.h"

struct builder {
    yaml_parser_t parser;
    struct pawl__arena *arena;
    struct pawl__yaml *yaml;
    struct pawl__yaml_node *open; /* the list or map that is being filled, or NULL */
    size_t documents;
};

const char *pawl__yaml_word(const struct pawl__yaml_node *node)
{
    switch (node->kind) {
    case PAWL__YAML_LIST:
        return "a list";
    case PAWL__YAML_MAP:
        return "a section";
    case PAWL__YAML_ALIAS:
        return "an alias";
    case PAWL__YAML_VALUE:
        break;
    }
    return "a value";
}

static bool is_plain_key(const struct pawl__yaml_node *key)
{
    return key->kind == PAWL__YAML_VALUE && !key->decorated;
}

const struct pawl__yaml_node *pawl__yaml_earlier(const struct pawl__yaml_node *node)
{
    REQUIRE(is_plain_key(node->key));
    for (const struct pawl__yaml_node *i = node->parent->first; i != node; i = i->next) {
        if (is_plain_key(i->key) && pawl__view_equal(i->key->text, node->key->text)) {
            return i;
        }
    }
    return NULL;
}

/* libyaml marks the line of a syntax error, but gives only an offset for a bad character. */
static size_t error_line(const yaml_parser_t *parser, pawl_view text)
{
    size_t line = 1;

    if (parser->error != YAML_READER_ERROR) {
        return parser->problem_mark.line + 1;
    }
    for (size_t i = 0; i < MIN(parser->problem_offset, text.len); i++) {
        line += text.data[i] == '\n';
    }
    return line;
}

/* Puts a node where it belongs: the root, an item of a list, or key and value of a map in turn. */
static void attach(struct builder *builder, struct pawl__yaml_node *node)
{
    struct pawl__yaml_node *open = builder->open;

    node->parent = open;
    if (open == NULL) {
        builder->yaml->root = node;
        return;
    }
    if (open->kind == PAWL__YAML_MAP) {
        if (open->pending == NULL) {
            open->pending = node;
            return;
        }
        node->key = STEAL(open->pending);
        node->line = node->key->line;
    }
    if (open->last == NULL) {
        open->first = node;
    } else {
        open->last->next = node;
    }
    open->last = node;
}

static bool is_decorated(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static pawl_status add_node(struct builder *builder,
                            const yaml_event_t *event,
                            enum pawl__yaml_kind kind)
{
    struct pawl__yaml_node *node = pawl__arena_take(builder->arena, sizeof(*node));

    if (node == NULL) {
        return PAWL_NOMEM;
    }
    *node = (struct pawl__yaml_node){
        .kind = kind,
        .decorated = is_decorated(event),
        .line = event->start_mark.line + 1,
    };
    if (kind == PAWL__YAML_VALUE) {
        pawl_view text = { (const char *)event->data.scalar.value, event->data.scalar.length };

        if (!pawl__arena_copy(builder->arena, text, &node->text)) {
            return PAWL_NOMEM;
        }
    }
    attach(builder, node);
    if (kind == PAWL__YAML_LIST || kind == PAWL__YAML_MAP) {
        builder->open = node;
    }
    return PAWL_OK;
}

/* *ret_more becomes false at the end of what is read. */
static pawl_status add_event(struct builder *builder, const yaml_event_t *event, bool *ret_more)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->documents++ > 0) {
            builder->yaml->second_line = event->start_mark.line + 1;
            *ret_more = false;
        }
        return PAWL_OK;
    case YAML_STREAM_END_EVENT:
        *ret_more = false;
        return PAWL_OK;
    case YAML_SCALAR_EVENT:
        return add_node(builder, event, PAWL__YAML_VALUE);
    case YAML_ALIAS_EVENT:
        return add_node(builder, event, PAWL__YAML_ALIAS);
    case YAML_SEQUENCE_START_EVENT:
        return add_node(builder, event, PAWL__YAML_LIST);
    case YAML_MAPPING_START_EVENT:
        return add_node(builder, event, PAWL__YAML_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->open = builder->open->parent;
        return PAWL_OK;
    default:
        return PAWL_OK;
    }
}

static pawl_status build(struct builder *builder, pawl_view text)
{
    for (bool more = true; more;) {
        AUTO(yaml_event_delete) yaml_event_t event;

        if (!yaml_parser_parse(&builder->parser, &event)) {
            const yaml_parser_t *parser = &builder->parser;

            if (parser->error == YAML_MEMORY_ERROR) {
                return PAWL_NOMEM;
            }
            builder->yaml->error = parser->problem == NULL ? "unknown error" : parser->problem;
            builder->yaml->error_line = error_line(parser, text);
            return PAWL_OK;
        }
        TRY(add_event(builder, &event, &more));
    }
    return PAWL_OK;
}

pawl_status pawl__yaml_parse(pawl_view text, struct pawl__arena *arena, struct pawl__yaml *ret_yaml)
{
    struct builder builder = { .arena = arena, .yaml = ret_yaml };

    *ret_yaml = (struct pawl__yaml){ .root = NULL };
    if (!yaml_parser_initialize(&builder.parser)) {
        return PAWL_NOMEM;
    }
    yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &builder.parser, (const unsigned char *)(text.len == 0 ? "" : text.data), text.len);
    pawl_status status = build(&builder, text);
    yaml_parser_delete(&builder.parser);
    return status;
}
