/* The settings of this process: pawl.yaml < environment < flags, each value with where it came
 * from.
 *
 * Which file    --config FILE, else PAWL_CONFIG, else ./pawl.yaml, else /etc/pawl/pawl.yaml. The
 *               first of them is read, alone. A file that was named must exist; the other two may
 *               be missing.
 * Its form      YAML: plain values below sections, and the lists and maps that the parts of a node
 *               declare (config/section.h); no anchors, aliases, tags or second documents. UTF-8, at
 *               most PAWL__CONFIG_BYTES_MAX bytes. An empty file is fine.
 * Environment   PAWL_<KEY>, then the name people know already (DATABASE_URL). An empty variable is
 *               one that is not set. A PAWL_ variable that is no setting, but nearly one, is an
 *               error; others are left alone, since a container platform may set PAWL_SERVICE_HOST.
 * Flags         The last of several for one setting wins.
 *
 * Every value is checked, even one that a stronger source replaces. A message names file, line and
 * key, or the variable, or the flag, and says what is allowed:
 *
 *     pawl.yaml:3: log.level: 'loud' is unknown; allowed: one of debug, info, ...
 *     environment variable PAWL_LOG_LEVEL: ...
 *     --log-level: ...
 *
 * Threads: a config never changes, so any number of threads may read it. */
#ifndef PAWL_CONFIG_CONFIG_H
#define PAWL_CONFIG_CONFIG_H

#include <pawl/pawl.h>

#include "config/section.h"
#include "config/settings.h"

struct pawl__config;

enum { PAWL__CONFIG_BYTES_MAX = 65536 };

struct pawl__config_flag {
    enum pawl__setting_id id;
    const char *value;
};

struct pawl__config_sources {
    const char *file;               /* --config, or NULL */
    const char *const *search;      /* where else a file may be, NULL-terminated; NULL: as above */
    const char *const *environment; /* like environ (cast it); NULL: none */
    const struct pawl__config_flag *flags;
    size_t flags_count;
    const struct pawl__section_field
        *sections; /* lists and maps, ended by one without key; NULL: none */
    /* Called for every problem found, in order, when it is not NULL; `reterr` has the first. */
    void (*problem)(void *context, const pawl_error *problem);
    void *problem_context;
};

/* Bad values, unknown keys, broken YAML and a named file that is missing are INVALID, a file that
 * may not be read is DENIED. Reads that one file, writes nothing. */
PAWL_MUST_USE pawl_status pawl__config_load(const struct pawl__config_sources *sources,
                                            struct pawl__config **ret_config,
                                            pawl_error *reterr);
DEFINE_AUTO(struct pawl__config *, pawl__config_free)

/* "" when it is not set. For a PATH resolved, else as it was written. Borrowed. */
const char *pawl__config_text(const struct pawl__config *config, enum pawl__setting_id id);

/* The number of pawl__setting_parse. Only for types that have one. */
int64_t pawl__config_number(const struct pawl__config *config, enum pawl__setting_id id);

enum pawl__origin_kind {
    PAWL__ORIGIN_DEFAULT,
    PAWL__ORIGIN_FILE,
    PAWL__ORIGIN_ENVIRONMENT,
    PAWL__ORIGIN_FLAG,
};

struct pawl__origin {
    enum pawl__origin_kind kind;
    const char *name; /* file, variable or flag; NULL for a default. Borrowed from the config. */
    size_t line;      /* in the file, from 1 */
};

struct pawl__origin pawl__config_origin(const struct pawl__config *config,
                                        enum pawl__setting_id id);

/* For `pawl config show`. The value is safe to print: secrets hidden, control characters escaped.
 * The origin is "default", "pawl.yaml:3", "environment variable PAWL_DATA" or "--data". */
void pawl__config_add_shown(const struct pawl__config *config,
                            enum pawl__setting_id id,
                            struct pawl__buf *buf);
void pawl__config_add_origin(const struct pawl__config *config,
                             enum pawl__setting_id id,
                             struct pawl__buf *buf);

/* What the file says of a section, which must have been declared; without it, of an empty one. Borrowed. */
const struct pawl__section *pawl__config_section(const struct pawl__config *config,
                                                 const char *key);

/* The file that was read, or NULL. Borrowed. */
const char *pawl__config_file(const struct pawl__config *config);

#endif
