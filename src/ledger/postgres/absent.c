/* Instead of all other files here, in a build without PostgreSQL. */
#include "store/absent.h"
#include "ledger/core/backend.h"

pawl_status pawl__ledger_postgres_open(const struct pawl__location *location,
                                       const pawl_ledger_options *options,
                                       struct ledger_backend **ret_backend,
                                       pawl_error *reterr)
{
    (void)location;
    (void)options;
    (void)ret_backend;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}
