/* What somebody typed, checked against the table of commands. Pure: arguments in, a struct or an
 * error out, so that tests and the fuzzer run it without a process.
 *
 *   Flags may stand anywhere behind the command they belong to; common flags and settings anywhere.
 *   --flag VALUE and --flag=VALUE mean the same, so do -j 4 and -j4; switches bundle (-qf). A value
 *   that itself starts with a dash is written --flag=-VALUE, except "-" and negative numbers.
 *   "--" ends the flags; "-" is an ordinary argument. A flag given twice: the last one wins, unless
 *   it repeats. */
#ifndef PAWL_CLI_FRAME_ARGS_H
#define PAWL_CLI_FRAME_ARGS_H

#include <pawl/pawl.h>

#include "cli/frame/command.h"

#define ARGS_COUNT_MAX 100000

struct pawl__cli_given {
    const struct pawl__cli_flag *flag;
    const char *value; /* NULL for a switch */
};

struct pawl__cli_args {
    const struct pawl__cli *cli;
    struct pawl__cli_path path;
    struct pawl__cli_given *given; /* in the order they were typed */
    size_t given_count;
    const char **operands;
    size_t operand_count;
    bool help; /* --help or -h: nothing was checked for completeness */
};

/* argv as main() gets it, the program's name first. The strings are borrowed and must outlive the
 * result. INVALID says what is wrong and what would be right. */
PAWL_MUST_USE pawl_status pawl__cli_args_parse(const struct pawl__cli *cli,
                                               int argc,
                                               const char *const *argv,
                                               struct pawl__cli_args *ret_args,
                                               pawl_error *reterr);
void pawl__cli_args_done(struct pawl__cli_args *args);

/* The last value given for a flag, its fallback, or NULL. Asking for a flag that the command does
 * not have is our mistake. A switch gives "" when it was given. */
const char *pawl__cli_args_value(const struct pawl__cli_args *args, const char *name);
bool pawl__cli_args_has(const struct pawl__cli_args *args, const char *name);

/* The value of a VALUE_NUMBER flag that was given or has a fallback. */
int64_t pawl__cli_args_number(const struct pawl__cli_args *args, const char *name);

/* Every value of a flag that repeats: NULL behind the last. Start with *index = 0. */
const char *pawl__cli_args_next(const struct pawl__cli_args *args, const char *name, size_t *index);

/* The operand at `index`, or NULL. */
const char *pawl__cli_args_operand(const struct pawl__cli_args *args, size_t index);

/* A whole decimal number with optional minus; false for anything else or beyond int64_t. */
PAWL_MUST_USE bool pawl__cli_parse_number(const char *text, int64_t *ret_number);

#endif
