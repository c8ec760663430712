#include "engine/open.h"

#include <stdlib.h>

#include "base/core/error.h"

pawl_status pawl__open_location(const char *what, const char **location, pawl_error *reterr)
{
    if (*location == NULL) {
        *location = getenv("DATABASE_URL");
    }
    return *location != NULL && (*location)[0] != '\0'
               ? PAWL_OK
               : pawl__fail(
                   reterr, PAWL_INVALID, "no %s named: give a location or set DATABASE_URL", what);
}

pawl_status pawl__open_failed(const char *what,
                              const char *location,
                              pawl_status status,
                              pawl_error *reterr)
{
    return pawl__fail_context(reterr,
                              status,
                              "open %s '%s'",
                              what,
                              pawl__location_is_postgres(location) ? "postgres" : location);
}
