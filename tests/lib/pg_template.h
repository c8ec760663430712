/* initdb takes a second of a core, a copy of what it made a tenth. Programs that run in a build directory
 * ($PAWL_BUILD) keep one new cluster there and copy it. */
#ifndef TESTS_PG_TEMPLATE_H
#define TESTS_PG_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Where the template of this server's binaries belongs. False: nowhere, run initdb. */
bool pg_template_path(const char *bindir, char *ret_path, size_t size);

/* Held while a template is made, so that programs that start together make one. -1: it could not be had. */
int pg_template_lock(const char *path);
void pg_template_unlock(int lock);

/* Copies a directory with its owners and modes, in whole or not at all. */
bool pg_template_copy(const char *from, const char *to);

#endif
