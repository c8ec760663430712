/* The libraries that pawl stands on, as they are linked in this process: for `pawl version` and
 * `pawl doctor`. */
#ifndef PAWL_STORE_PARTS_H
#define PAWL_STORE_PARTS_H

#include <stddef.h>

#define PAWL__PART_VERSION_SIZE 64

struct pawl__part {
    const char *name;
    char version[PAWL__PART_VERSION_SIZE];
};

enum { PAWL__PARTS_COUNT = 8 };

/* Fills all of `ret_parts`: engines and libraries first, then the compiler. */
void pawl__parts(struct pawl__part ret_parts[PAWL__PARTS_COUNT]);

/* "release"; "debugoptimized, failpoints, sanitizers address,undefined" in builds for tests. */
const char *pawl__build_kind(void);

#endif
