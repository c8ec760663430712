/* The libraries that the command stands on: those of libpawl, and what only the command links. */
#ifndef PAWL_CLI_NODE_VERSIONS_H
#define PAWL_CLI_NODE_VERSIONS_H

#include "store/parts.h"

enum { VERSIONS_COUNT = PAWL__PARTS_COUNT + 1 };

/* Fills all of `ret_parts`; the compiler is the last one. */
void pawl__cli_versions(struct pawl__part ret_parts[VERSIONS_COUNT]);

#endif
