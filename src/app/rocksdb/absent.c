/* Instead of all other files here, in a build without RocksDB. */
#include "store/absent.h"
#include "app/core/backend.h"

pawl_status pawl__app_rocksdb_open(const char *dir,
                                   const struct app_store_options *options,
                                   struct app_store **ret_store,
                                   pawl_error *reterr)
{
    (void)dir;
    (void)options;
    (void)ret_store;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}
