/* Where the tokens of a node are. */
#ifndef PAWL_CLI_NODE_TOKENS_H
#define PAWL_CLI_NODE_TOKENS_H

#include "cli/frame/run.h"

/* Adds the path of their file in the data directory. */
PAWL_MUST_USE pawl_status pawl__cli_tokens_path(const struct pawl__cli_run *run,
                                                struct pawl__buf *path,
                                                pawl_error *reterr);

#endif
