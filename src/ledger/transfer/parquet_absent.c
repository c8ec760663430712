/* Instead of parquet.c, in a build without DuckDB. */
#include "ledger/transfer/transfer.h"
#include "store/absent.h"

pawl_status pawl__ledger_import_parquet(struct ledger_import *import,
                                        const char *path,
                                        pawl_error *reterr)
{
    (void)import;
    (void)path;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__ledger_export_parquet(struct ledger_export *export,
                                        const char *path,
                                        pawl_error *reterr)
{
    (void)export;
    (void)path;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}
