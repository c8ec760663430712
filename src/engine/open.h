/* How a capability opens a handle: the location says which backend, and the options of the caller are
 * checked. */
#ifndef PAWL_ENGINE_OPEN_H
#define PAWL_ENGINE_OPEN_H

#include "base/core/sized.h"
#include "store/location.h"

/* Opens a backend. `setup` is what the capability hands to each of its backends; `ret_backend` points to
 * a pointer of the capability's own type. */
typedef pawl_status pawl__backend_open(const struct pawl__location *location,
                                       const void *setup,
                                       void *ret_backend,
                                       pawl_error *reterr);

/* The backends of a capability, by kind of location; NULL: it cannot be stored there. */
struct pawl__backends {
    const char *what; /* for messages: "ledger" */
    pawl__location_parser *parse;
    pawl__backend_open *at[PAWL__SCHEMES];
};

/* Reads the location and opens the backend that it names. Calls on the store end soon once `interrupted`
 * is true; NULL: never. */
PAWL_MUST_USE pawl_status pawl__open_backend(const struct pawl__backends *backends,
                                             const char *location,
                                             const atomic_bool *interrupted,
                                             const void *setup,
                                             void *ret_backend,
                                             pawl_error *reterr);

/* NULL: DATABASE_URL of the environment. INVALID without any; `what` names it: "ledger". */
PAWL_MUST_USE pawl_status pawl__open_location(const char *what,
                                              const char **location,
                                              pawl_error *reterr);

/* Says which handle could not be opened. The message never shows a URL: it may hold a password. */
pawl_status pawl__open_failed(const char *what,
                              const char *location,
                              pawl_status status,
                              pawl_error *reterr);

/* INVALID unless it is 1 to `max`. `name` is the option's. */
PAWL_MUST_USE pawl_status pawl__check_option(const char *name,
                                             uint32_t value,
                                             uint32_t max,
                                             pawl_error *reterr);

/* DENIED: what a handle answers that was opened only to read. `what` names it: "the ledger". */
pawl_status pawl__fail_read_only(const char *what, pawl_error *reterr);

#endif
