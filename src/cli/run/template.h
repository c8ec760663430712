/* The command of `pawl work run`, with an item's input put in where the mark stands.
 *
 * Whatever the input holds, it stays one word of the shell's: it is put in single quotes. That is
 * true only where the shell reads words, so a mark inside of quotes, backquotes, a comment or after
 * a here-document is refused instead of opening a way for the input to become a command. Pure. */
#ifndef PAWL_CLI_RUN_TEMPLATE_H
#define PAWL_CLI_RUN_TEMPLATE_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

/* What the kernel takes as one argument or one variable of the environment, with its NUL. */
enum { RUNNER_TEXT_MAX = 128 << 10 };

/* INVALID says where the mark must not stand. An empty mark: nothing is put in. */
PAWL_MUST_USE pawl_status pawl__cli_template_check(pawl_view command,
                                                   pawl_view mark,
                                                   pawl_error *reterr);

/* Adds the command of one item; both must have been checked. */
void pawl__cli_template_fill(struct pawl__buf *buf,
                             pawl_view command,
                             pawl_view mark,
                             pawl_view input);

/* Adds the text as one word of the shell's, whatever it holds. */
void pawl__cli_shell_quote(struct pawl__buf *buf, pawl_view text);

#endif
