#include "store/layout.h"

#include "store/schemas.h"

const struct pawl__place pawl__places[PAWL__PLACES_COUNT] = {
    { "ledger.sqlite",
      PAWL__PLACE_SQLITE,
      PAWL__LEDGER_APPLICATION_ID,
      &pawl__schema_sqlite_ledger },
    { "work.sqlite", PAWL__PLACE_SQLITE, PAWL__WORK_APPLICATION_ID, &pawl__schema_sqlite_work },
    { "tokens.sqlite",
      PAWL__PLACE_SQLITE,
      PAWL__TOKENS_APPLICATION_ID,
      &pawl__schema_sqlite_tokens },
    { "jobs.sqlite", PAWL__PLACE_SQLITE, PAWL__JOBS_APPLICATION_ID, &pawl__schema_sqlite_jobs },
    { "analytics.duckdb", PAWL__PLACE_DUCKDB, 0, NULL },
    { "wal/consumer", PAWL__PLACE_APPS, 0, NULL },
    { "wal/producer", PAWL__PLACE_ROCKSDB, 0, NULL },
    { "apps", PAWL__PLACE_APPS, 0, NULL },
};
