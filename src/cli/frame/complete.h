/* What may come next on a command line, for the shells. The scripts that a shell loads are a few
 * lines (completion.c); they hand the words to `pawl __complete` and show what it prints, so that
 * completion never knows less than the table of commands. */
#ifndef PAWL_CLI_FRAME_COMPLETE_H
#define PAWL_CLI_FRAME_COMPLETE_H

#include "base/core/buf.h"
#include "cli/frame/command.h"

#define COMPLETE_BYTES_MAX (1u << 20)

/* Adds a line "WORD<TAB>what it is" for everything that may replace the last of `words` (which
 * stand behind the program's name, and may be empty), then a line of what the shell should add by
 * itself: ":none", ":file" or ":dir". Wrong words before the last are passed over. */
void pawl__cli_complete(struct pawl__buf *buf,
                        const struct pawl__cli *cli,
                        size_t count,
                        const char *const *words);

/* The script for "bash", "zsh" or "fish"; NULL for another name. */
const char *pawl__cli_completion_script(const char *shell);

#endif
