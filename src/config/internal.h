/* What the files of the config share: config.c is the object, config_load.c fills it from its
 * sources, config_outline.c and config_schema.c read pawl.yaml.
 *
 * libcyaml loads the values, by a schema made from the table of settings. It stops at the first
 * thing it does not like and then names a line near it, or none; a value it likes has no line at
 * all. So libyaml, on which it stands, goes through the same text first and notes where everything
 * is and all that is wrong with it. */
#ifndef PAWL_CONFIG_INTERNAL_H
#define PAWL_CONFIG_INTERNAL_H

#include <pawl/pawl.h>

#include "config/config.h"

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
};

void pawl__config_entry_done(struct pawl__config_entry *entry);

/* "pawl.yaml:3", "environment variable PAWL_DATA", ... */
void pawl__config_entry_add_origin(const struct pawl__config_entry *entry, struct pawl__buf *buf);

/* The first problem is kept, every one is passed on. */
struct pawl__problems {
    size_t count;
    pawl_error first;
    void (*report)(void *context, const pawl_error *problem);
    void *context;
};

/* Returns PAWL_OK so that the search goes on, or NOMEM when that is what the problem is. */
pawl_status pawl__problems_add(struct pawl__problems *problems, const pawl_error *problem);

/* Lines from 1, by setting; 0 for one that is not in the text. `text` must be UTF-8 without NUL. */
PAWL_MUST_USE pawl_status pawl__config_outline(pawl_view text,
                                               const char *file,
                                               struct pawl__problems *problems,
                                               size_t ret_lines[PAWL__SETTING_COUNT],
                                               pawl_error *reterr);

/* The values, malloc'ed, by setting; NULL for one that is not in the text. */
PAWL_MUST_USE pawl_status pawl__config_values(pawl_view text,
                                              char *ret_values[PAWL__SETTING_COUNT],
                                              pawl_error *reterr);

#endif
