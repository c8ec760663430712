/* Engines that a build leaves out (meson_options.txt). Where one would be opened, absent.c of its folder
 * stands in for it and fails with this: nothing else knows which engines there are. */
#ifndef PAWL_STORE_ABSENT_H
#define PAWL_STORE_ABSENT_H

#include <pawl/pawl.h>

/* UNSUPPORTED: "this build has no PostgreSQL; build pawl with -Dpostgres=enabled". */
pawl_status pawl__fail_absent(pawl_error *reterr, const char *engine, const char *option);

#endif
