/* Instead of the files duckdb*.c, in a build without DuckDB. */
#include "store/absent.h"
#include "telemetry/colony/duckdb.h"

pawl_status pawl__telemetry_duckdb_colony(const struct telemetry_duckdb_colony_options *options,
                                          struct telemetry_colony_store **ret_store,
                                          pawl_error *reterr)
{
    (void)options;
    (void)ret_store;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}
