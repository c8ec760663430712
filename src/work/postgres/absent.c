/* Instead of all other files here, in a build without PostgreSQL. */
#include "store/absent.h"
#include "work/core/backend.h"

pawl_status pawl__work_postgres_open(const struct pawl__location *location,
                                     const void *setup,
                                     void *ret_backend,
                                     pawl_error *reterr)
{
    (void)location;
    (void)setup;
    (void)ret_backend;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}
