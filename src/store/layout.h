/* What a data directory holds:
 *
 *   ledger.sqlite  work.sqlite  tokens.sqlite  jobs.sqlite  analytics.duckdb  pipelines/  wal/consumer/<pipeline>/
 *   wal/producer/  apps/<app>/  snapshots/  pawl.sock
 *
 * One table, for the capabilities that open the stores and for `doctor` that inspects them all. */
#ifndef PAWL_STORE_LAYOUT_H
#define PAWL_STORE_LAYOUT_H

#include <pawl/pawl.h>

#include "store/migrate.h"

/* Marks our SQLite files (PRAGMA application_id): "PawJ", "PawL", "PawT" and "PawW". */
#define PAWL__JOBS_APPLICATION_ID 0x5061774A
#define PAWL__LEDGER_APPLICATION_ID 0x5061774C
#define PAWL__TOKENS_APPLICATION_ID 0x50617754
#define PAWL__WORK_APPLICATION_ID 0x50617757

enum pawl__place_kind {
    PAWL__PLACE_SQLITE,  /* any number of processes */
    PAWL__PLACE_DUCKDB,  /* one process */
    PAWL__PLACE_ROCKSDB, /* one process */
    PAWL__PLACE_APPS,    /* a RocksDB store in each directory below */
};

struct pawl__place {
    const char *name; /* below the data directory */
    enum pawl__place_kind kind;
    int32_t application_id;            /* SQLite */
    const struct pawl__schema *schema; /* SQLite */
};

enum { PAWL__PLACES_COUNT = 8 };
extern const struct pawl__place pawl__places[PAWL__PLACES_COUNT];

#endif
