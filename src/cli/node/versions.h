/* The libraries that the command stands on, as they are linked in this process: for `pawl version` and
 * `pawl doctor`. */
#ifndef PAWL_CLI_NODE_VERSIONS_H
#define PAWL_CLI_NODE_VERSIONS_H

#include <stddef.h>

enum { VERSION_SIZE = 64, VERSIONS_COUNT = 9 };

struct pawl__cli_part {
    const char *name;
    char version[VERSION_SIZE]; /* "not in this build" of one that was left out */
};

/* Fills all of `ret_parts`; the compiler is the last one. */
void pawl__cli_versions(struct pawl__cli_part ret_parts[VERSIONS_COUNT]);

/* "release"; "debugoptimized, failpoints, sanitizers address,undefined" in builds for tests. */
const char *pawl__cli_build_kind(void);

#endif
