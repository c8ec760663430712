/* "No such thing, did you mean ...": the errors for words and flags that are not in the table. Each
 * returns PAWL_INVALID. */
#ifndef PAWL_CLI_FRAME_UNKNOWN_H
#define PAWL_CLI_FRAME_UNKNOWN_H

#include <pawl/pawl.h>

#include "cli/frame/command.h"

/* Also for a path that has no commands at all. */
pawl_status pawl__cli_unknown_command(const struct pawl__cli_path *path,
                                      const char *word,
                                      pawl_error *reterr);

/* Names the nearest flags at `path`, or the command that has a flag of exactly this name. */
pawl_status pawl__cli_unknown_flag(const struct pawl__cli *cli,
                                   const struct pawl__cli_path *path,
                                   pawl_view name,
                                   pawl_error *reterr);

/* `letter` points into `argument`, "-qx". */
pawl_status pawl__cli_unknown_letter(const struct pawl__cli_path *path,
                                     const char *letter,
                                     const char *argument,
                                     pawl_error *reterr);

#endif
