/* What opening a handle shares, whatever it is: which location is meant, and how messages show it. */
#ifndef PAWL_ENGINE_OPEN_H
#define PAWL_ENGINE_OPEN_H

#include "store/location.h"

/* NULL: DATABASE_URL of the environment. INVALID without any; `what` names it: "ledger". */
PAWL_MUST_USE pawl_status pawl__open_location(const char *what,
                                              const char **location,
                                              pawl_error *reterr);

/* Says which handle could not be opened. A password in a URL is nobody's business. */
pawl_status pawl__open_failed(const char *what,
                              const char *location,
                              pawl_status status,
                              pawl_error *reterr);

#endif
