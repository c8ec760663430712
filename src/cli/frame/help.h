/* Help for a terminal, made from the table. */
#ifndef PAWL_CLI_FRAME_HELP_H
#define PAWL_CLI_FRAME_HELP_H

#include "base/core/buf.h"
#include "cli/frame/command.h"

#define HELP_BYTES_MAX (1u << 20)
#define HELP_WIDTH_MIN 40
#define HELP_WIDTH_MAX 100 /* longer lines are hard to read, however wide the terminal is */

/* Everything about one command: usage, what it does, arguments, flags, examples. */
void pawl__cli_help_full(struct pawl__buf *buf,
                         const struct pawl__cli *cli,
                         const struct pawl__cli_path *path,
                         size_t width);

/* Usage and the list of commands, for somebody who typed too little. */
void pawl__cli_help_short(struct pawl__buf *buf, const struct pawl__cli_path *path, size_t width);

/* The settings: every flag of `cli->settings`. */
void pawl__cli_help_settings(struct pawl__buf *buf, const struct pawl__cli *cli, size_t width);

/* "pawl config show [flags] [NAME...]" */
void pawl__cli_help_usage(struct pawl__buf *buf, const struct pawl__cli_path *path);

/* What the table says beyond the text, as sentences: allowed values, bounds, required, default. */
void pawl__cli_help_flag_notes(struct pawl__buf *buf, const struct pawl__cli_flag *flag);
void pawl__cli_help_operand_notes(struct pawl__buf *buf, const struct pawl__cli_operand *operand);

#endif
