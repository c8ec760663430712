/* Instead of all other files here, in a build without RocksDB. */
#include "store/absent.h"
#include "app/core/backend.h"

static pawl_status open_absent(struct app_store *store,
                               const struct pawl__location *location,
                               const struct app_store_options *options,
                               pawl_error *reterr)
{
    (void)store;
    (void)location;
    (void)options;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}

const struct app_store_ops pawl__app_rocksdb_ops = { .size = sizeof(struct app_store),
                                                     .open = open_absent };
