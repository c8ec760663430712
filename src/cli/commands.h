/* Every command directly below `pawl`. A new one: its table in cmd_NAME.c, a line here, a line in
 * commands.c. */
#ifndef PAWL_CLI_COMMANDS_H
#define PAWL_CLI_COMMANDS_H

#include "cli/frame/command.h"

extern const struct pawl__command pawl__cmd_app;
extern const struct pawl__command pawl__cmd_complete;
extern const struct pawl__command pawl__cmd_completion;
extern const struct pawl__command pawl__cmd_config;
extern const struct pawl__command pawl__cmd_doctor;
extern const struct pawl__command pawl__cmd_examples;
extern const struct pawl__command pawl__cmd_help;
extern const struct pawl__command pawl__cmd_idem;
extern const struct pawl__command pawl__cmd_ledger;
extern const struct pawl__command pawl__cmd_man;
extern const struct pawl__command pawl__cmd_seq;
extern const struct pawl__command pawl__cmd_serve;
extern const struct pawl__command pawl__cmd_version;
extern const struct pawl__command pawl__cmd_work;

#endif
