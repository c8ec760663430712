/* How an application is kept in a RocksDB directory. */
#ifndef PAWL_APP_ROCKSDB_BACKEND_H
#define PAWL_APP_ROCKSDB_BACKEND_H

#include "app/core/keys.h"
#include "store/rocksdb/rocksdb.h"

/* A column family for each of ours, by the same index; `families` is filled and pointed to. */
struct pawl__rocks_options pawl__app_rocksdb_options(const char *families[APP_FAMILY_COUNT]);

#endif
