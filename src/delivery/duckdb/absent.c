/* Instead of all other files here, in a build without DuckDB. */
#include <pawl/delivery.h>

#include "base/core/argument.h"
#include "base/core/macros.h"
#include "delivery/duckdb/dry_run.h"
#include "delivery/duckdb/inspect.h"
#include "delivery/duckdb/sink.h"
#include "store/absent.h"

pawl_status pawl__delivery_duckdb_open(const struct delivery_duckdb_options *options,
                                       struct delivery_duckdb_file **ret_file,
                                       struct delivery_duckdb_opened *ret_opened,
                                       pawl_error *reterr)
{
    (void)options;
    (void)ret_file;
    (void)ret_opened;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

void pawl__delivery_duckdb_close(struct delivery_duckdb_file *file)
{
    REQUIRE(file == NULL);
}

pawl_status pawl__delivery_duckdb_sink(struct delivery_duckdb_file *file,
                                       const char *pipeline,
                                       const struct delivery_mapping *mapping,
                                       struct delivery_sink **ret_sink,
                                       pawl_error *reterr)
{
    (void)file;
    (void)pipeline;
    (void)mapping;
    (void)ret_sink;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__delivery_duckdb_inventory(struct delivery_sink *sink,
                                            struct delivery_inventory *ret_inventory,
                                            pawl_error *reterr)
{
    (void)sink;
    (void)ret_inventory;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__delivery_duckdb_duplicates(struct delivery_sink *sink,
                                             delivery_duplicate_visitor *visitor,
                                             void *context,
                                             pawl_error *reterr)
{
    (void)sink;
    (void)visitor;
    (void)context;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__delivery_duckdb_find(struct delivery_sink *sink,
                                       pawl_view id,
                                       delivery_found_visitor *visitor,
                                       void *context,
                                       pawl_error *reterr)
{
    (void)sink;
    (void)id;
    (void)visitor;
    (void)context;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__delivery_dry_run(const struct delivery_mapping *mapping,
                                   struct pawl__clock *clock,
                                   const struct delivery_entry *entries,
                                   size_t count,
                                   delivery_dry_visitor *visit,
                                   void *context,
                                   pawl_error *reterr)
{
    (void)mapping;
    (void)clock;
    (void)entries;
    (void)count;
    (void)visit;
    (void)context;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl_delivery_query(const char *dir,
                                const char *sql,
                                const pawl_query_options *options,
                                pawl_query_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    NEED_TEXT(dir, reterr);
    NEED_TEXT(sql, reterr);
    NEED(visit, reterr);
    (void)options;
    (void)context;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}

pawl_status pawl__delivery_duckdb_query(struct delivery_duckdb_file *file,
                                        const char *sql,
                                        const pawl_query_options *options,
                                        pawl_query_visit visit,
                                        void *context,
                                        pawl_error *reterr)
{
    (void)file;
    (void)sql;
    (void)options;
    (void)visit;
    (void)context;
    return pawl__fail_absent(reterr, "DuckDB", "duckdb");
}
