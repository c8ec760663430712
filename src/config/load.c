#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/nearest.h"
#include "base/os/environment.h"
#include "base/os/fs.h"
#include "config/internal.h"

static pawl_status fail_nomem(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for the config");
}

/* "~/x" at home, and "x" of a file beside that file. */
static pawl_status resolve_path(const struct pawl__loader *loader,
                                const struct pawl__config_entry *entry,
                                const char *path,
                                char **ret_path,
                                pawl_error *reterr)
{
    char *resolved = NULL;

    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        const char *home = pawl__environment_get(loader->sources->environment, "HOME");
        if (home == NULL) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "'%s' needs the environment variable HOME, which is not set;"
                              " name another directory",
                              path);
        }
        resolved = pawl__fs_join(home, path[1] == '\0' ? "" : path + 2);
    } else if (entry->origin == PAWL__ORIGIN_FILE && path[0] != '/' && path[0] != '\0'
               && strchr(entry->name, '/') != NULL) {
        AUTO(pawl__text_free)
        char *directory = pawl__view_dup(
            (pawl_view){ entry->name, (size_t)(strrchr(entry->name, '/') - entry->name) + 1 });
        resolved = directory == NULL ? NULL : pawl__fs_join(directory, path);
    } else {
        resolved = strdup(path);
    }
    if (resolved == NULL) {
        return fail_nomem(reterr);
    }
    *ret_path = resolved;
    return PAWL_OK;
}

static pawl_status check_value(const struct pawl__loader *loader,
                               const struct pawl__setting *setting,
                               pawl_view text,
                               struct pawl__config_entry *entry,
                               pawl_error *reterr)
{
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "the value has a NUL character in it");
    }
    TRY(pawl__setting_parse(setting, text, &entry->number, reterr));
    if (setting->type == PAWL__SETTING_PATH) {
        return resolve_path(loader, entry, text.data, &entry->text, reterr);
    }
    entry->text = pawl__view_dup(text);
    return entry->text == NULL ? fail_nomem(reterr) : PAWL_OK;
}

pawl_status pawl__loader_check(struct pawl__loader *loader,
                               const struct pawl__setting *setting,
                               const char *key,
                               pawl_view text,
                               struct pawl__config_entry *entry)
{
    char origin_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf origin = BUF_OVER(origin_text);
    pawl_error problem = PAWL_ERROR_INIT;
    pawl_status status = check_value(loader, setting, text, entry, &problem);

    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    /* "pawl.yaml:3: log.level: ", but "--log-level: ": a flag and a variable name the setting. */
    pawl__config_entry_add_origin(entry, &origin);
    if (entry->origin == PAWL__ORIGIN_FILE || entry->origin == PAWL__ORIGIN_DEFAULT) {
        pawl__fail_context(&problem, status, "%s", key);
    }
    pawl__fail_context(&problem, status, "%s", origin_text);
    return pawl__loader_add(loader, &problem);
}

pawl_status pawl__loader_set(struct pawl__loader *loader,
                             size_t id,
                             pawl_view text,
                             const struct pawl__config_entry *origin)
{
    const struct pawl__setting *setting = &pawl__settings[id];
    AUTO(pawl__config_entry_done)
    struct pawl__config_entry entry = { .origin = origin->origin, .line = origin->line };

    if (origin->name != NULL) {
        entry.name = strdup(origin->name);
        if (entry.name == NULL) {
            return PAWL_NOMEM;
        }
    }
    TRY(pawl__loader_check(loader, setting, setting->key, text, &entry));
    if (entry.text != NULL) {
        struct pawl__config_entry weaker = loader->config->entries[id];

        loader->config->entries[id] = entry;
        entry = weaker;
    }
    return PAWL_OK;
}

pawl_status pawl__loader_add(struct pawl__loader *loader, const pawl_error *problem)
{
    if (problem->status == PAWL_NOMEM) {
        return PAWL_NOMEM;
    }
    if (loader->problems++ == 0) {
        loader->first = *problem;
    }
    if (loader->sources->problem != NULL) {
        loader->sources->problem(loader->sources->problem_context, problem);
    }
    return PAWL_OK;
}

/* The whole file; *ret_text stays NULL when there is none that must be, or none that can be read.
 */
static pawl_status read_file(
    struct pawl__loader *loader, const char *path, bool named, char **ret_text, size_t *ret_len)
{
    AUTO(pawl__text_free) char *text = malloc(PAWL__CONFIG_BYTES_MAX + 1);
    pawl_error problem = PAWL_ERROR_INIT;

    if (text == NULL) {
        return PAWL_NOMEM;
    }
    pawl_status status =
        pawl__fs_read_given(path, text, PAWL__CONFIG_BYTES_MAX + 1, ret_len, &problem);
    if (status == PAWL_OK) {
        *ret_text = STEAL(text);
        return PAWL_OK;
    }
    if (!named && (problem.native == ENOENT || problem.native == ENOTDIR)) {
        return PAWL_OK;
    }
    if (status == PAWL_NOT_FOUND) {
        problem.status = PAWL_INVALID; /* bad usage by whoever named it, not 'nothing found' */
    }
    pawl__fail_context(&problem, problem.status, "config");
    return pawl__loader_add(loader, &problem);
}

static pawl_status load_file(struct pawl__loader *loader, const char *path, bool named)
{
    AUTO(pawl__text_free) char *text = NULL;
    size_t len = 0;

    TRY(read_file(loader, path, named, &text, &len));
    if (text == NULL) {
        return PAWL_OK;
    }
    loader->config->file = strdup(path);
    return loader->config->file == NULL ? PAWL_NOMEM
                                        : pawl__loader_read(loader, (pawl_view){ text, len });
}

static pawl_status find_file(struct pawl__loader *loader)
{
    static const char *const usual[] = { "pawl.yaml", "/etc/pawl/pawl.yaml", NULL };
    const struct pawl__config_sources *sources = loader->sources;
    const char *named = sources->file;

    if (named == NULL) {
        named = pawl__environment_get(sources->environment, "PAWL_CONFIG");
    }
    if (named != NULL) {
        return load_file(loader, named, true);
    }
    const char *const *path = sources->search == NULL ? usual : sources->search;
    for (; loader->config->file == NULL && *path != NULL; path++) {
        TRY(load_file(loader, *path, false));
    }
    return PAWL_OK;
}

static pawl_status load_variable(struct pawl__loader *loader, size_t id, char *name)
{
    const char *value = pawl__environment_get(loader->sources->environment, name);
    const struct pawl__config_entry origin = { .origin = PAWL__ORIGIN_ENVIRONMENT, .name = name };

    return value == NULL ? PAWL_OK : pawl__loader_set(loader, id, pawl_view_of(value), &origin);
}

/* The name people know already is the weaker one: ours was set for pawl alone. */
static pawl_status load_variables(struct pawl__loader *loader)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        char name[PAWL__SETTING_NAME_SIZE];

        if (pawl__settings[i].also != NULL) {
            snprintf(name, sizeof(name), "%s", pawl__settings[i].also);
            TRY(load_variable(loader, i, name));
        }
        pawl__setting_variable(&pawl__settings[i], name);
        TRY(load_variable(loader, i, name));
    }
    return PAWL_OK;
}

/* A setting's variable that differs from `name` by a slip of the hand; false when `name` is one. */
static bool find_intended(pawl_view name, char ret_intended[PAWL__SETTING_NAME_SIZE])
{
    size_t slips_max = name.len < sizeof("PAWL_123456") ? 1 : 2;
    bool found = false;

    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        char known[PAWL__SETTING_NAME_SIZE];

        pawl__setting_variable(&pawl__settings[i], known);
        if (pawl__view_is(name, known)) {
            return false;
        }
        if (pawl__edit_distance(name, pawl_view_of(known), slips_max) <= slips_max) {
            memcpy(ret_intended, known, sizeof(known));
            found = true;
        }
    }
    return found;
}

static pawl_status check_variables(struct pawl__loader *loader)
{
    const char *const *variable = loader->sources->environment;

    for (; variable != NULL && *variable != NULL; variable++) {
        char intended[PAWL__SETTING_NAME_SIZE];
        pawl_view name = { *variable, strcspn(*variable, "=") };

        if (strncmp(*variable, "PAWL_", 5) == 0 && find_intended(name, intended)) {
            pawl_error problem = PAWL_ERROR_INIT;

            pawl__fail(&problem,
                       PAWL_INVALID,
                       "environment variable %.*s: is unknown; did you mean '%s'?",
                       VIEW_ARGS(name),
                       intended);
            TRY(pawl__loader_add(loader, &problem));
        }
    }
    return PAWL_OK;
}

static pawl_status load_flags(struct pawl__loader *loader)
{
    const struct pawl__config_sources *sources = loader->sources;

    for (size_t i = 0; i < sources->flags_count; i++) {
        const struct pawl__config_flag *flag = &sources->flags[i];
        char name[PAWL__SETTING_NAME_SIZE];
        const struct pawl__config_entry origin = { .origin = PAWL__ORIGIN_FLAG, .name = name };

        pawl__setting_flag(&pawl__settings[flag->id], name);
        TRY(pawl__loader_set(loader, flag->id, pawl_view_of(flag->value), &origin));
    }
    return PAWL_OK;
}

/* Last, so that a default which cannot be had here harms nobody who does not need it. */
static pawl_status load_defaults(struct pawl__loader *loader)
{
    const struct pawl__config_entry origin = { .origin = PAWL__ORIGIN_DEFAULT };

    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        if (loader->config->entries[i].text == NULL) {
            TRY(pawl__loader_set(loader, i, pawl_view_of(pawl__settings[i].text), &origin));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__loader_declare(struct pawl__loader *loader)
{
    const struct pawl__section_field *declared = loader->sources->sections;
    struct pawl__section *sections = &loader->config->sections;
    size_t count = 0;

    while (declared != NULL && declared[count].key != NULL) {
        count++;
    }
    sections->entries =
        pawl__arena_take(&loader->config->arena, count * sizeof(*sections->entries));
    if (sections->entries == NULL) {
        return PAWL_NOMEM;
    }
    for (; sections->count < count; sections->count++) {
        TRY(pawl__loader_read_section(
            loader, &declared[sections->count], NULL, &sections->entries[sections->count]));
    }
    return PAWL_OK;
}

static pawl_status load_all(struct pawl__loader *loader)
{
    TRY(pawl__loader_declare(loader));
    TRY(find_file(loader));
    TRY(load_variables(loader));
    TRY(check_variables(loader));
    TRY(load_flags(loader));
    return loader->problems == 0 ? load_defaults(loader) : PAWL_OK;
}

pawl_status pawl__config_load(const struct pawl__config_sources *sources,
                              struct pawl__config **ret_config,
                              pawl_error *reterr)
{
    AUTO(pawl__config_free_p) struct pawl__config *config = calloc(1, sizeof(*config));
    struct pawl__loader loader = { .sources = sources, .config = config };

    if (config == NULL || load_all(&loader) != PAWL_OK) {
        return fail_nomem(reterr);
    }
    if (loader.problems > 0) {
        return pawl__fail_with(reterr, loader.first.status, &loader.first);
    }
    *ret_config = STEAL(config);
    return PAWL_OK;
}
