/* Instead of all other files here, in a build without RocksDB. */
#include "store/absent.h"
#include "delivery/rocksdb/wal.h"

pawl_status pawl__delivery_rocksdb_wal_open(const char *dir,
                                            const struct delivery_rocksdb_options *options,
                                            struct delivery_wal **ret_wal,
                                            pawl_error *reterr)
{
    (void)dir;
    (void)options;
    (void)ret_wal;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}

pawl_status pawl__delivery_rocksdb_wal_verify(struct delivery_wal *wal, pawl_error *reterr)
{
    (void)wal;
    return pawl__fail_absent(reterr, "RocksDB", "rocksdb");
}
