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

/* What one load needs; nothing of it outlives the call. */
struct loader {
    const struct pawl__config_sources *sources;
    struct pawl__config *config;
    struct pawl__problems problems;
};

static pawl_status fail_nomem(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for the config");
}

/* "~/x" at home, and "x" of a file beside that file. */
static pawl_status resolve_path(const struct loader *loader,
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

static pawl_status check_value(const struct loader *loader,
                               size_t id,
                               const char *text,
                               struct pawl__config_entry *entry,
                               pawl_error *reterr)
{
    const struct pawl__setting *setting = &pawl__settings[id];
    pawl_status status = pawl__setting_parse(setting, pawl_view_of(text), &entry->number, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    if (setting->type == PAWL__SETTING_PATH) {
        return resolve_path(loader, entry, text, &entry->text, reterr);
    }
    entry->text = strdup(text);
    return entry->text == NULL ? fail_nomem(reterr) : PAWL_OK;
}

/* Puts "pawl.yaml:3: log.level: " before the problem and notes it. */
static pawl_status note_problem(struct loader *loader,
                                size_t id,
                                const struct pawl__config_entry *entry,
                                pawl_error *problem)
{
    char place_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf place = BUF_OVER(place_text);

    pawl__config_entry_add_origin(entry, &place);
    if (entry->origin == PAWL__ORIGIN_FILE || entry->origin == PAWL__ORIGIN_DEFAULT) {
        pawl__fail_context(problem, problem->status, "%s", pawl__settings[id].key);
    }
    pawl__fail_context(problem, problem->status, "%s", place_text);
    return pawl__problems_add(&loader->problems, problem);
}

/* Takes a value from one source; what a weaker one had put there is gone. A bad value is noted and
 * changes nothing. */
static pawl_status set_value(struct loader *loader,
                             size_t id,
                             const char *text,
                             const struct pawl__config_entry *from)
{
    pawl_error problem = PAWL_ERROR_INIT;
    struct pawl__config_entry entry = { .origin = from->origin, .line = from->line };

    if (from->name != NULL) {
        entry.name = strdup(from->name);
        if (entry.name == NULL) {
            return PAWL_NOMEM;
        }
    }
    pawl_status status = check_value(loader, id, text, &entry, &problem);
    if (status == PAWL_OK) {
        pawl__config_entry_done(&loader->config->entries[id]);
        loader->config->entries[id] = entry;
        return PAWL_OK;
    }
    status = note_problem(loader, id, &entry, &problem);
    pawl__config_entry_done(&entry);
    return status;
}

/* The whole file; *ret_text stays NULL when there is none that must be, or none that can be read.
 */
static pawl_status read_file(
    struct loader *loader, const char *path, bool named, char **ret_text, size_t *ret_len)
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
    return pawl__problems_add(&loader->problems, &problem);
}

/* UTF-8 and without NUL, or a problem with the line it is on. */
static pawl_status check_text(struct loader *loader, const char *file, pawl_view text)
{
    pawl_error problem = PAWL_ERROR_INIT;
    pawl_view rest = text;
    uint32_t code = 1;
    size_t line = 1;

    while (code != 0 && pawl__view_take_utf8(&rest, &code)) {
        line += code == '\n';
    }
    if (code != 0 && rest.len == 0) {
        return PAWL_OK;
    }
    pawl__fail(&problem,
               PAWL_INVALID,
               "%s:%zu: %s",
               file,
               line,
               code == 0 ? "has a NUL character in it" : "is not UTF-8");
    return pawl__problems_add(&loader->problems, &problem);
}

static pawl_status take_values(struct loader *loader, const size_t *lines, char *const *values)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        const struct pawl__config_entry from = {
            .origin = PAWL__ORIGIN_FILE,
            .name = loader->config->file,
            .line = lines[i],
        };
        pawl_status status = values[i] == NULL ? PAWL_OK : set_value(loader, i, values[i], &from);

        if (status != PAWL_OK) {
            return status;
        }
    }
    return PAWL_OK;
}

static pawl_status load_values(struct loader *loader, pawl_view text, const size_t *lines)
{
    pawl_error problem = PAWL_ERROR_INIT;
    char *values[PAWL__SETTING_COUNT] = { NULL };
    pawl_status status = pawl__config_values(text, values, &problem);

    if (status == PAWL_OK) {
        status = take_values(loader, lines, values);
    } else {
        pawl__fail_context(&problem, status, "%s", loader->config->file);
        status = pawl__problems_add(&loader->problems, &problem);
    }
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        free(values[i]);
    }
    return status;
}

static bool any_line(const size_t *lines)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        if (lines[i] != 0) {
            return true;
        }
    }
    return false;
}

static pawl_status take_text(struct loader *loader, pawl_view text, pawl_error *reterr)
{
    size_t lines[PAWL__SETTING_COUNT];
    const char *file = loader->config->file;
    pawl_status status = check_text(loader, file, text);

    if (status == PAWL_OK && loader->problems.count == 0) {
        status = pawl__config_outline(text, file, &loader->problems, lines, reterr);
        /* An empty mapping, or none, is nothing to load. */
        if (status == PAWL_OK && loader->problems.count == 0 && any_line(lines)) {
            status = load_values(loader, text, lines);
        }
    }
    return status;
}

static pawl_status take_file(struct loader *loader,
                             const char *path,
                             bool named,
                             pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = NULL;
    size_t len = 0;
    pawl_status status = read_file(loader, path, named, &text, &len);

    if (status != PAWL_OK || text == NULL) {
        return status;
    }
    loader->config->file = strdup(path);
    if (loader->config->file == NULL) {
        return PAWL_NOMEM;
    }
    return take_text(loader, (pawl_view){ text, len }, reterr);
}

static pawl_status find_file(struct loader *loader, pawl_error *reterr)
{
    static const char *const places[] = { "pawl.yaml", "/etc/pawl/pawl.yaml", NULL };
    const struct pawl__config_sources *sources = loader->sources;
    const char *named = sources->file;

    if (named == NULL) {
        named = pawl__environment_get(sources->environment, "PAWL_CONFIG");
    }
    if (named != NULL) {
        return take_file(loader, named, true, reterr);
    }
    const char *const *place = sources->search == NULL ? places : sources->search;
    pawl_status status = PAWL_OK;
    for (; status == PAWL_OK && loader->config->file == NULL && *place != NULL; place++) {
        status = take_file(loader, *place, false, reterr);
    }
    return status;
}

static pawl_status take_variable(struct loader *loader, size_t id, char *name)
{
    const char *value = pawl__environment_get(loader->sources->environment, name);
    const struct pawl__config_entry from = { .origin = PAWL__ORIGIN_ENVIRONMENT, .name = name };

    return value == NULL ? PAWL_OK : set_value(loader, id, value, &from);
}

/* The name people know already is the weaker one: ours was set for pawl alone. */
static pawl_status take_variables(struct loader *loader)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; status == PAWL_OK && i < PAWL__SETTING_COUNT; i++) {
        char name[PAWL__SETTING_NAME_SIZE];

        if (pawl__settings[i].also != NULL) {
            snprintf(name, sizeof(name), "%s", pawl__settings[i].also);
            status = take_variable(loader, i, name);
        }
        if (status == PAWL_OK) {
            pawl__setting_variable(&pawl__settings[i], name);
            status = take_variable(loader, i, name);
        }
    }
    return status;
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

static pawl_status check_variables(struct loader *loader)
{
    const char *const *variable = loader->sources->environment;
    pawl_status status = PAWL_OK;

    for (; status == PAWL_OK && variable != NULL && *variable != NULL; variable++) {
        char intended[PAWL__SETTING_NAME_SIZE];
        pawl_view name = { *variable, strcspn(*variable, "=") };

        if (strncmp(*variable, "PAWL_", 5) == 0 && find_intended(name, intended)) {
            pawl_error problem = PAWL_ERROR_INIT;

            pawl__fail(&problem,
                       PAWL_INVALID,
                       "environment variable %.*s: is unknown; did you mean '%s'?",
                       VIEW_ARGS(name),
                       intended);
            status = pawl__problems_add(&loader->problems, &problem);
        }
    }
    return status;
}

static pawl_status take_flags(struct loader *loader)
{
    const struct pawl__config_sources *sources = loader->sources;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; status == PAWL_OK && i < sources->flags_count; i++) {
        char name[PAWL__SETTING_NAME_SIZE];
        const struct pawl__config_entry from = { .origin = PAWL__ORIGIN_FLAG, .name = name };

        pawl__setting_flag(&pawl__settings[sources->flags[i].id], name);
        status = set_value(loader, sources->flags[i].id, sources->flags[i].value, &from);
    }
    return status;
}

/* Last, so that a default which cannot be had here harms nobody who does not need it. */
static pawl_status take_defaults(struct loader *loader)
{
    const struct pawl__config_entry from = { .origin = PAWL__ORIGIN_DEFAULT };
    pawl_status status = PAWL_OK;

    for (size_t i = 0; status == PAWL_OK && i < PAWL__SETTING_COUNT; i++) {
        if (loader->config->entries[i].text == NULL) {
            status = set_value(loader, i, pawl__settings[i].text, &from);
        }
    }
    return status;
}

static pawl_status take_all(struct loader *loader, pawl_error *reterr)
{
    pawl_status status = find_file(loader, reterr);

    if (status == PAWL_OK) {
        status = take_variables(loader);
    }
    if (status == PAWL_OK) {
        status = check_variables(loader);
    }
    if (status == PAWL_OK) {
        status = take_flags(loader);
    }
    if (status == PAWL_OK && loader->problems.count == 0) {
        status = take_defaults(loader);
    }
    return status == PAWL_NOMEM ? fail_nomem(reterr) : status;
}

pawl_status pawl__config_load(const struct pawl__config_sources *sources,
                              struct pawl__config **ret_config,
                              pawl_error *reterr)
{
    AUTO(pawl__config_free_p) struct pawl__config *config = calloc(1, sizeof(*config));
    struct loader loader = {
        .sources = sources,
        .config = config,
        .problems = { .report = sources->problem, .context = sources->problem_context },
    };

    if (config == NULL) {
        return fail_nomem(reterr);
    }
    pawl_status status = take_all(&loader, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (loader.problems.count > 0) {
        if (reterr != NULL) {
            *reterr = loader.problems.first;
        }
        return loader.problems.first.status;
    }
    *ret_config = STEAL(config);
    return PAWL_OK;
}
