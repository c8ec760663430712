/* Instead of the other files of the outbox on RocksDB, in a build without it. */
#include "delivery/outbox/rocksdb.h"
#include "store/absent.h"

pawl_status pawl__delivery_outbox_rocksdb_open(const char *dir,
                                               const struct delivery_rocksdb_options *options,
                                               struct outbox_store **ret_store,
                                               pawl_error *reterr)
{
    (void)dir;
    (void)options;
    (void)ret_store;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}
