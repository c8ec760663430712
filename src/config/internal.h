/* What the files of the config share: config.c is the object, load.c fills it from its sources,
 * file.c reads pawl.yaml, section.c those sections of it that hold more than single values. */
#ifndef PAWL_CONFIG_INTERNAL_H
#define PAWL_CONFIG_INTERNAL_H

#include <pawl/pawl.h>

#include "base/core/arena.h"
#include "config/config.h"
#include "config/yaml.h"

struct pawl__config_entry {
    char *text; /* NULL: not set yet */
    int64_t number;
    enum pawl__origin_kind origin;
    char *name; /* of the origin */
    size_t line;
};

struct pawl__config {
    char *file;
    struct pawl__config_entry entries[PAWL__SETTING_COUNT];
    struct pawl__arena arena;
    struct pawl__section sections; /* one entry for each that was declared */
};

void pawl__config_entry_done(struct pawl__config_entry *entry);

/* "pawl.yaml:3", "environment variable PAWL_DATA", ... */
void pawl__config_entry_add_origin(const struct pawl__config_entry *entry, struct pawl__buf *buf);

/* What one load needs; nothing of it outlives the call. */
struct pawl__loader {
    const struct pawl__config_sources *sources;
    struct pawl__config *config;
    size_t problems;
    pawl_error first; /* of the problems */
};

/* Passes a problem on. Returns PAWL_OK so that the search for others goes on, or NOMEM when that is
 * what the problem is. */
PAWL_MUST_USE pawl_status pawl__loader_add(struct pawl__loader *loader, const pawl_error *problem);

/* "FILE:LINE: message". */
PRINTF_LIKE(3, 4)
PAWL_MUST_USE pawl_status pawl__loader_refuse(struct pawl__loader *loader,
                                              size_t line,
                                              const char *format,
                                              ...);

/* Checks a value and puts it into `entry`, whose origin says where it comes from and where a relative
 * path starts. A bad value becomes a problem of `key` and leaves entry->text NULL. */
PAWL_MUST_USE pawl_status pawl__loader_check(struct pawl__loader *loader,
                                             const struct pawl__setting *setting,
                                             const char *key,
                                             pawl_view text,
                                             struct pawl__config_entry *entry);

/* Sets a value from one source: what a weaker one had put there is gone. A bad value becomes a problem
 * and changes nothing. */
PAWL_MUST_USE pawl_status pawl__loader_set(struct pawl__loader *loader,
                                           size_t id,
                                           pawl_view text,
                                           const struct pawl__config_entry *origin);

/* Makes every declared section, empty: what the file says of one comes later and replaces it. */
PAWL_MUST_USE pawl_status pawl__loader_declare(struct pawl__loader *loader);

/* Reads the whole of pawl.yaml, whose path is in the config. */
PAWL_MUST_USE pawl_status pawl__loader_read(struct pawl__loader *loader, pawl_view text);

/* Reads what a declared section says into it: `node` is the value of its key, NULL for its defaults. */
PAWL_MUST_USE pawl_status pawl__loader_read_section(struct pawl__loader *loader,
                                                    const struct pawl__section_field *field,
                                                    const struct pawl__yaml_node *node,
                                                    struct pawl__section *ret_section);

/* A key that is text, without an anchor or tag. */
bool pawl__key_is_text(const struct pawl__yaml_node *key);

/* "a key is a list or has ..." */
PAWL_MUST_USE pawl_status pawl__loader_refuse_key(struct pawl__loader *loader,
                                                  const struct pawl__yaml_node *key);

#endif
