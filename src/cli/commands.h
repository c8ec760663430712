/* Every command directly below `pawl`. A new one is a constant table in a file of its capability's folder
 * (ledger/commands.c, node/cmd_serve.c), a line here and a line in commands.c. */
#ifndef PAWL_CLI_COMMANDS_H
#define PAWL_CLI_COMMANDS_H

#include "cli/frame/command.h"

extern const struct pawl__cli_command pawl__cli_cmd_app;
extern const struct pawl__cli_command pawl__cli_cmd_audit;
extern const struct pawl__cli_command pawl__cli_cmd_complete;
extern const struct pawl__cli_command pawl__cli_cmd_completion;
extern const struct pawl__cli_command pawl__cli_cmd_config;
extern const struct pawl__cli_command pawl__cli_cmd_deliver;
extern const struct pawl__cli_command pawl__cli_cmd_failed;
extern const struct pawl__cli_command pawl__cli_cmd_publish;
extern const struct pawl__cli_command pawl__cli_cmd_outbox;
extern const struct pawl__cli_command pawl__cli_cmd_doctor;
extern const struct pawl__cli_command pawl__cli_cmd_examples;
extern const struct pawl__cli_command pawl__cli_cmd_help;
extern const struct pawl__cli_command pawl__cli_cmd_idem;
extern const struct pawl__cli_command pawl__cli_cmd_ledger;
extern const struct pawl__cli_command pawl__cli_cmd_man;
extern const struct pawl__cli_command pawl__cli_cmd_pipeline;
extern const struct pawl__cli_command pawl__cli_cmd_rebuild;
extern const struct pawl__cli_command pawl__cli_cmd_seq;
extern const struct pawl__cli_command pawl__cli_cmd_sim;
extern const struct pawl__cli_command pawl__cli_cmd_serve;
extern const struct pawl__cli_command pawl__cli_cmd_sql;
extern const struct pawl__cli_command pawl__cli_cmd_token;
extern const struct pawl__cli_command pawl__cli_cmd_trace;
extern const struct pawl__cli_command pawl__cli_cmd_version;
extern const struct pawl__cli_command pawl__cli_cmd_wal;
extern const struct pawl__cli_command pawl__cli_cmd_work;

#endif
