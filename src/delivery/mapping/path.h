/* JSON paths over the bytes of a JSON text: $, $.key, $."any key", $.list[0]. */
#ifndef PAWL_DELIVERY_MAPPING_PATH_H
#define PAWL_DELIVERY_MAPPING_PATH_H

#include <pawl/pawl.h>

/* INVALID: no path, too long or too deep. */
PAWL_MUST_USE pawl_status pawl__delivery_path_check(const char *path, pawl_error *reterr);

/* The bytes of the value, without blanks around it. `json` must be JSON that pawl__json_check has accepted, `path`
 * one that the check above has. *ret_found false: there is none. NOMEM, for keys with escapes. */
PAWL_MUST_USE pawl_status pawl__delivery_path_find(
    pawl_view json, const char *path, bool *ret_found, pawl_view *ret_value, pawl_error *reterr);

#endif
