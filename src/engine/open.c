#include "engine/open.h"

#include <stdlib.h>

#include "base/core/error.h"

pawl_status pawl__open_backend(const struct pawl__backends *backends,
                               const char *location,
                               const atomic_bool *interrupted,
                               const void *setup,
                               void *ret_backend,
                               pawl_error *reterr)
{
    AUTO(pawl__location_done) struct pawl__location parsed = { 0 };

    TRY(backends->parse(location, &parsed, reterr));
    if (backends->at[parsed.scheme] == NULL) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "%s cannot be stored there", backends->what);
    }
    parsed.interrupted = interrupted;
    return backends->at[parsed.scheme](&parsed, setup, ret_backend, reterr);
}

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

pawl_status pawl__check_option(const char *name, uint32_t value, uint32_t max, pawl_error *reterr)
{
    return value >= 1 && value <= max
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "%s: is %u, must be 1 to %u", name, value, max);
}

pawl_status pawl__fail_read_only(const char *what, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_DENIED, "%s was opened for reading", what);
}
