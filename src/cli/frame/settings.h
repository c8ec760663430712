/* A flag for every setting, made from the table of config/settings.h. */
#ifndef PAWL_CLI_FRAME_SETTINGS_H
#define PAWL_CLI_FRAME_SETTINGS_H

#include "cli/frame/args.h"
#include "cli/frame/command.h"
#include "config/config.h"
#include "config/settings.h"

/* The flags of all settings, in their order, ended as the list of a table. */
struct pawl__cli_setting_flags {
    struct pawl__cli_flag flags[PAWL__SETTING_COUNT + 1];
    const char *const *choices[PAWL__SETTING_COUNT]; /* what the flags point to */
    char *texts[PAWL__SETTING_COUNT];
};

PAWL_MUST_USE pawl_status pawl__cli_setting_flags_init(struct pawl__cli_setting_flags *flags,
                                                       pawl_error *reterr);
void pawl__cli_setting_flags_done(struct pawl__cli_setting_flags *flags);

/* The lists and maps of pawl.yaml that commands read, each declared beside its command. */
extern const struct pawl__section_field pawl__cli_sections[];

/* Loads the configuration: the file, the environment and the settings among `args`. `problem` as in
 * config/config.h; NULL: none. */
struct pawl__cli_problem_sink {
    void (*problem)(void *context, const pawl_error *problem);
    void *context;
};
PAWL_MUST_USE pawl_status pawl__cli_settings_load(const struct pawl__cli_args *args,
                                                  struct pawl__cli_problem_sink sink,
                                                  struct pawl__config **ret_config,
                                                  pawl_error *reterr);

/* Whether ledger and work live in PostgreSQL: it is configured, and no --data says otherwise. */
bool pawl__cli_settings_use_database(const struct pawl__config *config);

#endif
