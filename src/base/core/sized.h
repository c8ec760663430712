/* What callers hand in: structs that grow from version to version. */
#ifndef PAWL_BASE_CORE_SIZED_H
#define PAWL_BASE_CORE_SIZED_H

#include <pawl/pawl.h>

/* Copies a caller's struct that begins with its size over `taken`, which holds the defaults: one
 * compiled against an older header has fewer fields, and the rest stay as they are. NULL leaves all
 * of them. */
PAWL_MUST_USE pawl_status
pawl__take_sized(const char *what, const void *given, void *taken, size_t size, pawl_error *reterr);

#endif
