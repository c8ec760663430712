#include "config/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/core/error.h"
#include "base/core/nearest.h"
#include "base/os/display.h"

enum { SECTION_DEPTH_MAX = 4 }; /* of the table; a deeper mapping is below an unknown key */

struct outline {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; its type is YAML_NO_EVENT before the first */
    pawl_view text;
    const char *file;
    struct pawl__problems *problems;
    size_t *lines; /* by setting; 0: not seen yet */
    /* The same for sections, at the first setting below them and how deep they are. */
    size_t section_lines[PAWL__SETTING_COUNT][SECTION_DEPTH_MAX + 1];
    char path[PAWL__SETTING_NAME_SIZE]; /* of the key whose value is looked at, "log.level" */
};

static void outline_done(struct outline *outline)
{
    yaml_event_delete(&outline->event);
    yaml_parser_delete(&outline->parser);
}

static size_t line_of(const struct outline *outline)
{
    return outline->event.start_mark.line + 1;
}

/* Adds "FILE:LINE: message". */
PRINTF_LIKE(3, 4)
static pawl_status add_problem(struct outline *outline, size_t line, const char *format, ...)
{
    char text[PAWL_ERROR_MESSAGE_SIZE];
    pawl_error problem = PAWL_ERROR_INIT;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pawl__fail(&problem, PAWL_INVALID, "%s:%zu: %s", outline->file, line, text);
    return pawl__problems_add(outline->problems, &problem);
}

/* libyaml marks the place of a syntax error, but gives only an offset for a bad character. */
static size_t error_line(const struct outline *outline)
{
    const yaml_parser_t *parser = &outline->parser;
    size_t line = 1;

    if (parser->error != YAML_READER_ERROR) {
        return parser->problem_mark.line + 1;
    }
    for (size_t i = 0; i < MIN(parser->problem_offset, outline->text.len); i++) {
        line += outline->text.data[i] == '\n';
    }
    return line;
}

/* A text that is no YAML has no more events: the problem is noted and the walk ends. */
static pawl_status fail_syntax(struct outline *outline)
{
    const char *problem = outline->parser.problem;

    if (outline->parser.error == YAML_MEMORY_ERROR) {
        return PAWL_NOMEM;
    }
    pawl_status status = add_problem(outline,
                                     error_line(outline),
                                     "is not YAML: %s",
                                     problem == NULL ? "unknown error" : problem);
    return status == PAWL_OK ? PAWL_INVALID : status;
}

static pawl_status next(struct outline *outline)
{
    yaml_event_delete(&outline->event);
    if (!yaml_parser_parse(&outline->parser, &outline->event)) {
        return fail_syntax(outline);
    }
    return PAWL_OK;
}

/* From the first event of a node to its last. libyaml bounds how deep a node may be. */
static pawl_status skip_node(struct outline *outline)
{
    for (size_t depth = 0;;) {
        yaml_event_type_t type = outline->event.type;

        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (depth == 0) {
            return PAWL_OK;
        }
        pawl_status status = next(outline);
        if (status != PAWL_OK) {
            return status;
        }
    }
}

static const char *event_word(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_MAPPING_START_EVENT:
        return "a section";
    case YAML_ALIAS_EVENT:
        return "an alias";
    default:
        return "a value";
    }
}

/* Anchors and aliases can make a small file huge, a tag promises a meaning it would not get. */
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

static pawl_view scalar_view(const yaml_event_t *event)
{
    return (pawl_view){ (const char *)event->data.scalar.value, event->data.scalar.length };
}

static bool has_byte(pawl_view text, char byte)
{
    return text.len > 0 && memchr(text.data, byte, text.len) != NULL;
}

static bool find_setting(const char *path, size_t *ret_id)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        if (strcmp(pawl__settings[i].key, path) == 0) {
            *ret_id = i;
            return true;
        }
    }
    return false;
}

/* The first setting below the section `path`. */
static bool find_section(const char *path, size_t *ret_first)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        if (strncmp(pawl__settings[i].key, path, len) == 0 && pawl__settings[i].key[len] == '.') {
            *ret_first = i;
            return true;
        }
    }
    return false;
}

static pawl_status refuse_key(struct outline *outline, size_t line, pawl_view key)
{
    char message_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf message = BUF_OVER(message_text);
    struct pawl__nearest nearest = pawl__nearest_to(pawl_view_of(outline->path));
    size_t id;

    pawl__buf_add_text(&message, "unknown key ");
    pawl__display_add_quoted(&message, key);
    if (find_setting(outline->path, &id) || find_section(outline->path, &id)) {
        pawl__buf_add_text(&message,
                           "; a key has no dots: write the second part indented below"
                           " the first");
    } else {
        for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
            pawl__nearest_offer(&nearest, pawl__settings[i].key);
        }
        pawl__nearest_add_hint(&nearest, &message);
    }
    return add_problem(outline, line, "%s", message_text);
}

/* Notes a problem with the current node and goes on behind it. */
#define SKIP_WITH(outline, line, ...) skip_after(outline, add_problem(outline, line, __VA_ARGS__))

static pawl_status skip_after(struct outline *outline, pawl_status status)
{
    return status == PAWL_OK ? skip_node(outline) : status;
}

static pawl_status note_value(struct outline *outline, size_t id, size_t line)
{
    char allowed_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf allowed = BUF_OVER(allowed_text);
    const char *key = pawl__settings[id].key;

    if (outline->lines[id] != 0) {
        return SKIP_WITH(outline, line, "%s: is set already, on line %zu", key, outline->lines[id]);
    }
    outline->lines[id] = line;
    if (outline->event.type == YAML_SCALAR_EVENT) {
        /* What libcyaml loads ends at the first NUL, which "\0" puts into a quoted text. */
        return has_byte(scalar_view(&outline->event), '\0')
                   ? add_problem(outline, line, "%s: the value has a NUL character in it", key)
                   : PAWL_OK;
    }
    pawl__setting_add_allowed(&pawl__settings[id], &allowed);
    return SKIP_WITH(outline,
                     line,
                     "%s: is %s where one value belongs; allowed: %s",
                     key,
                     event_word(&outline->event),
                     allowed_text);
}

static pawl_status walk_section(struct outline *outline, size_t depth);

static pawl_status note_section(struct outline *outline, size_t first, size_t line, size_t depth)
{
    size_t *seen = &outline->section_lines[first][depth];

    if (*seen != 0) {
        return SKIP_WITH(outline, line, "%s: is there already, on line %zu", outline->path, *seen);
    }
    *seen = line;
    if (outline->event.type != YAML_MAPPING_START_EVENT) {
        return SKIP_WITH(outline,
                         line,
                         "%s: is %s where a section belongs; write '%s: ...' indented below it",
                         outline->path,
                         event_word(&outline->event),
                         pawl__settings[first].key + strlen(outline->path) + 1);
    }
    return walk_section(outline, depth);
}

/* The current event is the value behind `key`, whose path is in outline->path. */
static pawl_status note_pair(struct outline *outline, pawl_view key, size_t line, size_t depth)
{
    bool plain = !has_byte(key, '.') && !has_byte(key, '\0');
    size_t id;

    if (is_decorated(&outline->event)) {
        return SKIP_WITH(outline,
                         line,
                         "%s: has an anchor, alias or tag, which this file may not have",
                         outline->path);
    }
    if (plain && find_setting(outline->path, &id)) {
        return note_value(outline, id, line);
    }
    if (plain && depth < SECTION_DEPTH_MAX && find_section(outline->path, &id)) {
        return note_section(outline, id, line, depth + 1);
    }
    return skip_after(outline, refuse_key(outline, line, key));
}

/* A key that is no text: the pair is skipped. */
static pawl_status skip_pair(struct outline *outline)
{
    pawl_status status = SKIP_WITH(outline,
                                   line_of(outline),
                                   "a key is %s or has an anchor or tag; write plain text",
                                   event_word(&outline->event));
    if (status == PAWL_OK) {
        status = next(outline);
    }
    return skip_after(outline, status);
}

static pawl_status walk_pair(struct outline *outline, size_t depth)
{
    char key[PAWL__SETTING_NAME_SIZE];
    size_t line = line_of(outline);
    size_t path_len = strlen(outline->path);

    if (outline->event.type != YAML_SCALAR_EVENT || is_decorated(&outline->event)) {
        return skip_pair(outline);
    }
    /* A key that is too long is cut: no setting has a name of that length. */
    pawl_view scalar = scalar_view(&outline->event);
    pawl_view name = { key, MIN(scalar.len, sizeof(key) - 1) };
    memcpy(key, scalar.data, name.len);
    key[name.len] = '\0';
    snprintf(outline->path + path_len,
             sizeof(outline->path) - path_len,
             "%s%s",
             path_len == 0 ? "" : ".",
             key);
    pawl_status status = next(outline);
    if (status == PAWL_OK) {
        status = note_pair(outline, name, line, depth);
    }
    outline->path[path_len] = '\0';
    return status;
}

/* The current event is the start of the mapping; on return it is its end. */
static pawl_status walk_section(struct outline *outline, size_t depth)
{
    for (;;) {
        pawl_status status = next(outline);

        if (status != PAWL_OK || outline->event.type == YAML_MAPPING_END_EVENT) {
            return status;
        }
        status = walk_pair(outline, depth);
        if (status != PAWL_OK) {
            return status;
        }
    }
}

static pawl_status walk_root(struct outline *outline)
{
    const yaml_event_t *event = &outline->event;

    if (is_decorated(event)) {
        return SKIP_WITH(outline, line_of(outline), "has an anchor, alias or tag at its top");
    }
    if (event->type == YAML_MAPPING_START_EVENT) {
        return walk_section(outline, 0);
    }
    if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0) {
        return PAWL_OK; /* "---" and nothing */
    }
    return SKIP_WITH(
        outline, line_of(outline), "is %s; write 'key: value' lines", event_word(event));
}

static pawl_status walk_stream(struct outline *outline)
{
    for (size_t documents = 0;;) {
        pawl_status status = next(outline);

        if (status == PAWL_OK && outline->event.type == YAML_DOCUMENT_START_EVENT) {
            if (documents++ > 0) {
                return add_problem(outline, line_of(outline), "has a second document; one is read");
            }
            status = next(outline);
            if (status == PAWL_OK) {
                status = walk_root(outline);
            }
        }
        if (status != PAWL_OK || outline->event.type == YAML_STREAM_END_EVENT) {
            return status;
        }
    }
}

pawl_status pawl__problems_add(struct pawl__problems *problems, const pawl_error *problem)
{
    if (problem->status == PAWL_NOMEM) {
        return PAWL_NOMEM;
    }
    if (problems->count++ == 0) {
        problems->first = *problem;
    }
    if (problems->report != NULL) {
        problems->report(problems->context, problem);
    }
    return PAWL_OK;
}

pawl_status pawl__config_outline(pawl_view text,
                                 const char *file,
                                 struct pawl__problems *problems,
                                 size_t ret_lines[PAWL__SETTING_COUNT],
                                 pawl_error *reterr)
{
    AUTO(outline_done)
    struct outline outline = { .text = text, .file = file, .problems = problems };

    memset(ret_lines, 0, PAWL__SETTING_COUNT * sizeof(*ret_lines));
    outline.lines = ret_lines;
    if (!yaml_parser_initialize(&outline.parser)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", file);
    }
    yaml_parser_set_encoding(&outline.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &outline.parser, (const unsigned char *)(text.len == 0 ? "" : text.data), text.len);
    if (walk_stream(&outline) == PAWL_NOMEM) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", file);
    }
    return PAWL_OK; /* what is not YAML is among the problems */
}
