/* How an application is kept in a RocksDB directory. */
#ifndef PAWL_SEQUENCER_APP_ROCKSDB_H
#define PAWL_SEQUENCER_APP_ROCKSDB_H

#include "sequencer/keys.h"
#include "store/rocksdb.h"

/* A column family for each of ours, by the same index; `families` is filled and pointed to. */
struct pawl__rocks_options pawl__app_rocksdb_options(const char *families[APP_FAMILY_COUNT]);

#endif
