/* pawl.yaml against the table of settings and the declared sections.
 *
 * First every key gets its place. Values and sections are read only when each has one: what stands
 * in a file that is not YAML, or under a key that is there twice, is not what its author meant. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/nearest.h"
#include "base/terminal/display.h"
#include "config/internal.h"

struct reader {
    struct pawl__loader *loader;
    struct pawl__buf path; /* of the key that is placed, "log.level"; broken: too long for any */
    const struct pawl__yaml_node *values[PAWL__SETTING_COUNT];
    const struct pawl__yaml_node **sections; /* in declared order */
};

pawl_status pawl__loader_refuse(struct pawl__loader *loader, size_t line, const char *format, ...)
{
    char text[PAWL_ERROR_MESSAGE_SIZE];
    pawl_error problem = PAWL_ERROR_INIT;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pawl__fail(&problem, PAWL_INVALID, "%s:%zu: %s", loader->config->file, line, text);
    return pawl__loader_add(loader, &problem);
}

bool pawl__key_is_text(const struct pawl__yaml_node *key)
{
    return key->kind == PAWL__YAML_VALUE && !key->decorated;
}

pawl_status pawl__loader_refuse_key(struct pawl__loader *loader, const struct pawl__yaml_node *key)
{
    return pawl__loader_refuse(loader,
                               key->line,
                               "a key is %s or has an anchor or tag; write plain text",
                               pawl__yaml_word(key));
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

static bool find_section(const struct reader *reader, const char *path, size_t *ret_at)
{
    const struct pawl__section *sections = &reader->loader->config->sections;

    for (size_t i = 0; i < sections->count; i++) {
        if (strcmp(sections->entries[i].name, path) == 0) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

/* What stands behind "group." in `key`, or NULL. */
static const char *below(const char *key, const char *group)
{
    size_t len = strlen(group);

    return strncmp(key, group, len) == 0 && key[len] == '.' ? key + len + 1 : NULL;
}

/* The first key below a group: "level" below "log". */
static const char *find_below(const struct reader *reader, const char *group)
{
    const struct pawl__section *sections = &reader->loader->config->sections;
    const char *found = NULL;

    for (size_t i = 0; found == NULL && i < PAWL__SETTING_COUNT; i++) {
        found = below(pawl__settings[i].key, group);
    }
    for (size_t i = 0; found == NULL && i < sections->count; i++) {
        found = below(sections->entries[i].name, group);
    }
    return found;
}

static bool is_known(const struct reader *reader, const char *path)
{
    size_t at;

    return find_setting(path, &at) || find_section(reader, path, &at)
           || find_below(reader, path) != NULL;
}

static pawl_status refuse_unknown(struct reader *reader, const struct pawl__yaml_node *node)
{
    const struct pawl__section *sections = &reader->loader->config->sections;
    char message_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf message = BUF_OVER(message_text);
    struct pawl__nearest nearest = pawl__nearest_to(pawl__buf_view(&reader->path));

    pawl__buf_add_text(&message, "unknown key ");
    pawl__display_add_quoted(&message, node->key->text);
    if (!reader->path.broken && is_known(reader, reader->path.data)) {
        pawl__buf_add_text(&message,
                           "; a key has no dots: write the second part indented below the first");
    } else if (!reader->path.broken) {
        for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
            pawl__nearest_offer(&nearest, pawl__settings[i].key);
        }
        for (size_t i = 0; i < sections->count; i++) {
            pawl__nearest_offer(&nearest, sections->entries[i].name);
        }
        pawl__nearest_add_hint(&nearest, &message);
    }
    return pawl__loader_refuse(reader->loader, node->line, "%s", message_text);
}

static pawl_status place_value(struct reader *reader, size_t id, const struct pawl__yaml_node *node)
{
    char allowed_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf allowed = BUF_OVER(allowed_text);

    if (node->kind == PAWL__YAML_VALUE) {
        reader->values[id] = node;
        return PAWL_OK;
    }
    pawl__setting_add_allowed(&pawl__settings[id], &allowed);
    return pawl__loader_refuse(reader->loader,
                               node->line,
                               "%s: is %s where one value belongs; allowed: %s",
                               reader->path.data,
                               pawl__yaml_word(node),
                               allowed_text);
}

static pawl_status place_group(struct reader *reader, const struct pawl__yaml_node *node);

/* The value of a key that is known. */
static pawl_status place_known(struct reader *reader, const struct pawl__yaml_node *node)
{
    struct pawl__loader *loader = reader->loader;
    const char *path = reader->path.data;
    const struct pawl__yaml_node *earlier = pawl__yaml_earlier(node);
    size_t at;

    if (earlier != NULL) {
        return pawl__loader_refuse(loader,
                                   node->line,
                                   "%s: is %s already, on line %zu",
                                   path,
                                   find_setting(path, &at) ? "set" : "there",
                                   earlier->line);
    }
    if (find_setting(path, &at)) {
        return place_value(reader, at, node);
    }
    if (find_section(reader, path, &at)) {
        reader->sections[at] = node;
        return PAWL_OK;
    }
    if (node->kind != PAWL__YAML_MAP) {
        return pawl__loader_refuse(
            loader,
            node->line,
            "%s: is %s where a section belongs; write '%s: ...' indented below it",
            path,
            pawl__yaml_word(node),
            find_below(reader, path));
    }
    return place_group(reader, node);
}

static pawl_status place_pair(struct reader *reader, const struct pawl__yaml_node *node)
{
    pawl_view key = node->key->text;
    bool plain = memchr(key.data, '.', key.len) == NULL && memchr(key.data, '\0', key.len) == NULL;

    if (node->decorated) {
        return pawl__loader_refuse(reader->loader,
                                   node->line,
                                   "%s: has an anchor, alias or tag, which this file may not have",
                                   reader->path.data);
    }
    return plain && !reader->path.broken && is_known(reader, reader->path.data)
               ? place_known(reader, node)
               : refuse_unknown(reader, node);
}

/* The pairs of the file itself, or below a key that only groups others. */
static pawl_status place_group(struct reader *reader, const struct pawl__yaml_node *node)
{
    size_t len = reader->path.len;

    for (const struct pawl__yaml_node *i = node->first; i != NULL; i = i->next) {
        if (!pawl__key_is_text(i->key)) {
            TRY(pawl__loader_refuse_key(reader->loader, i->key));
            continue;
        }
        pawl__buf_add_text(&reader->path, len == 0 ? "" : ".");
        pawl__buf_add(&reader->path, i->key->text);
        pawl_status status = place_pair(reader, i);
        pawl__buf_cut(&reader->path, len);
        TRY(status);
    }
    return PAWL_OK;
}

static pawl_status place_root(struct reader *reader, const struct pawl__yaml_node *root)
{
    if (root->decorated) {
        return pawl__loader_refuse(
            reader->loader, root->line, "has an anchor, alias or tag at its top");
    }
    if (root->kind == PAWL__YAML_MAP) {
        return place_group(reader, root);
    }
    if (root->kind == PAWL__YAML_VALUE && root->text.len == 0) {
        return PAWL_OK; /* "---" and nothing */
    }
    return pawl__loader_refuse(
        reader->loader, root->line, "is %s; write 'key: value' lines", pawl__yaml_word(root));
}

/* UTF-8 and without NUL, or a problem with the line it is on. */
static pawl_status check_text(struct pawl__loader *loader, pawl_view text, bool *ret_good)
{
    pawl_view rest = text;
    uint32_t code = 1;
    size_t line = 1;

    while (code != 0 && pawl__view_take_utf8(&rest, &code)) {
        line += code == '\n';
    }
    *ret_good = code != 0 && rest.len == 0;
    return *ret_good ? PAWL_OK
                     : pawl__loader_refuse(
                         loader, line, code == 0 ? "has a NUL character in it" : "is not UTF-8");
}

static pawl_status place_all(struct reader *reader, const struct pawl__yaml *yaml)
{
    if (yaml->root != NULL) {
        TRY(place_root(reader, yaml->root));
    }
    if (yaml->second_line > 0) {
        TRY(pawl__loader_refuse(
            reader->loader, yaml->second_line, "has a second document; one is read"));
    }
    return yaml->error == NULL
               ? PAWL_OK
               : pawl__loader_refuse(
                   reader->loader, yaml->error_line, "is not YAML: %s", yaml->error);
}

static pawl_status read_all(const struct reader *reader)
{
    struct pawl__loader *loader = reader->loader;
    struct pawl__section *sections = &loader->config->sections;

    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        const struct pawl__yaml_node *node = reader->values[i];
        const struct pawl__config_entry origin = { .origin = PAWL__ORIGIN_FILE,
                                                   .name = loader->config->file,
                                                   .line = node == NULL ? 0 : node->line };

        if (node != NULL) {
            TRY(pawl__loader_set(loader, i, node->text, &origin));
        }
    }
    for (size_t i = 0; i < sections->count; i++) {
        if (reader->sections[i] != NULL) {
            TRY(pawl__loader_read_section(
                loader, &loader->sources->sections[i], reader->sections[i], &sections->entries[i]));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__loader_read(struct pawl__loader *loader, pawl_view text)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char path_text[PAWL__SETTING_NAME_SIZE] = "";
    struct reader reader = { .loader = loader, .path = BUF_OVER(path_text) };
    size_t sections_size = loader->config->sections.count * sizeof(*reader.sections);
    struct pawl__yaml yaml;
    bool good = false;

    TRY(check_text(loader, text, &good));
    if (!good) {
        return PAWL_OK;
    }
    reader.sections = pawl__arena_take(&arena, sections_size);
    if (reader.sections == NULL) {
        return PAWL_NOMEM;
    }
    memset(reader.sections, 0, sections_size);
    TRY(pawl__yaml_parse(text, &arena, &yaml));
    TRY(place_all(&reader, &yaml));
    return loader->problems == 0 ? read_all(&reader) : PAWL_OK;
}
