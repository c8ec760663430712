/* Instead of all other files here, in a build without RocksDB. */
#include "store/absent.h"
#include "app/core/backend.h"

pawl_status pawl__app_rocksdb_open(const struct pawl__location *location,
                                   const void *setup,
                                   void *ret_store,
                                   pawl_error *reterr)
{
    (void)location;
    (void)setup;
    (void)ret_store;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}
