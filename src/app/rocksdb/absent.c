/* Instead of all other files here, in a build without RocksDB. */
#include "app/core/backend.h"

const struct app_store_ops pawl__app_rocksdb_ops = { .absent = { "RocksDB", "rocksdb" } };
