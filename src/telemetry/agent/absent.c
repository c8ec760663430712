/* Instead of the files duckdb*.c, in a build without DuckDB. */
#include "store/absent.h"
#include "telemetry/agent/duckdb.h"

pawl_status pawl__telemetry_duckdb_agent(const struct telemetry_duckdb_agent_options *options,
                                         struct telemetry_agent_store **ret_store,
                                         struct telemetry_duckdb_agent_opened *ret_opened,
                                         pawl_error *reterr)
{
    (void)options;
    (void)ret_store;
    (void)ret_opened;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}
