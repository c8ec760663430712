/* Manual pages (man(7) roff), made from the table: pawl.1, and one page for each command directly
 * below the root, which also describes the commands below it. */
#ifndef PAWL_CLI_FRAME_MAN_H
#define PAWL_CLI_FRAME_MAN_H

#include "base/core/buf.h"
#include "cli/frame/command.h"

#define MAN_BYTES_MAX (1u << 20)

/* The page of `command`, which is the root or a command directly below it. */
void pawl__cli_man_page(struct pawl__buf *buf,
                        const struct pawl__cli *cli,
                        const struct pawl__cli_command *command);

/* Writes every page into the directory `dir`, which is created when it is missing, in place of the
 * pages of pawl that are there. */
PAWL_MUST_USE pawl_status pawl__cli_man_write(const struct pawl__cli *cli,
                                              const char *dir,
                                              pawl_error *reterr);

#endif
