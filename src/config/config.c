#include "config/config.h"

#include <stdlib.h>

#include "base/terminal/display.h"
#include "config/internal.h"

void pawl__config_entry_done(struct pawl__config_entry *entry)
{
    free(entry->text);
    free(entry->name);
}

void pawl__config_free(struct pawl__config *config)
{
    if (config == NULL) {
        return;
    }
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        pawl__config_entry_done(&config->entries[i]);
    }
    pawl__arena_done(&config->arena);
    free(config->file);
    free(config);
}

void pawl__config_entry_add_origin(const struct pawl__config_entry *entry, struct pawl__buf *buf)
{
    switch (entry->origin) {
    case PAWL__ORIGIN_DEFAULT:
        pawl__buf_add_text(buf, "default");
        break;
    case PAWL__ORIGIN_FILE:
        pawl__display_add(buf, pawl_view_of(entry->name));
        pawl__buf_add_format(buf, ":%zu", entry->line);
        break;
    case PAWL__ORIGIN_ENVIRONMENT:
        pawl__buf_add_text(buf, "environment variable ");
        pawl__buf_add_text(buf, entry->name);
        break;
    case PAWL__ORIGIN_FLAG:
        pawl__buf_add_text(buf, entry->name);
        break;
    }
}

const char *pawl__config_text(const struct pawl__config *config, enum pawl__setting_id id)
{
    return config->entries[id].text;
}

int64_t pawl__config_number(const struct pawl__config *config, enum pawl__setting_id id)
{
    enum pawl__setting_type type = pawl__settings[id].type;

    REQUIRE(type == PAWL__SETTING_BOOL || type == PAWL__SETTING_INTEGER
            || type == PAWL__SETTING_DURATION || type == PAWL__SETTING_SIZE
            || type == PAWL__SETTING_CHOICE);
    return config->entries[id].number;
}

struct pawl__origin pawl__config_origin(const struct pawl__config *config, enum pawl__setting_id id)
{
    const struct pawl__config_entry *entry = &config->entries[id];

    return (struct pawl__origin){ entry->origin, entry->name, entry->line };
}

void pawl__config_add_shown(const struct pawl__config *config,
                            enum pawl__setting_id id,
                            struct pawl__buf *buf)
{
    pawl__setting_add_shown(&pawl__settings[id], pawl_view_of(config->entries[id].text), buf);
}

void pawl__config_add_origin(const struct pawl__config *config,
                             enum pawl__setting_id id,
                             struct pawl__buf *buf)
{
    pawl__config_entry_add_origin(&config->entries[id], buf);
}

const struct pawl__section *pawl__config_section(const struct pawl__config *config, const char *key)
{
    return pawl__section_field(&config->sections, key);
}

const char *pawl__config_file(const struct pawl__config *config)
{
    return config->file;
}
