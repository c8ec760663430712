/* Moving events between a ledger and files: what the formats share.
 *
 *   export.c          walks the events, writes JSONL
 *   import.c          collects events into batches, reads JSONL
 *   import_seed.c     databases of the original schema
 *   parquet.c         both ways, through DuckDB */
#ifndef PAWL_LEDGER_TRANSFER_TRANSFER_H
#define PAWL_LEDGER_TRANSFER_TRANSFER_H

#include "base/core/arena.h"
#include "ledger/core/backend.h"

/* CANCELLED when the caller wants it to end. */
PAWL_MUST_USE pawl_status pawl__ledger_progress_tell(const pawl_watch *watch,
                                                     uint64_t done,
                                                     uint64_t total,
                                                     pawl_error *reterr);

struct ledger_export {
    pawl_ledger *ledger;
    const pawl_event_filter *filter;
    pawl_watch watch;
    uint64_t count;
};

/* Every event that matches, as of now, in order; counts them. */
PAWL_MUST_USE pawl_status pawl__ledger_export_each(struct ledger_export *export,
                                                   ledger_event_sink sink,
                                                   void *context,
                                                   pawl_error *reterr);

enum { IMPORT_EVENTS_MAX = 2000 };
#define IMPORT_BYTES_MAX ((size_t)4 << 20)

/* Events on their way in, a batch at a time. */
struct ledger_import {
    pawl_ledger *ledger;
    pawl_watch watch;
    const char *unit; /* "line", "row": what an error calls a place */
    pawl_import_report report;

    struct pawl__arena texts;
    size_t count;
    size_t bytes;
    pawl_event events[IMPORT_EVENTS_MAX];
    uint64_t places[IMPORT_EVENTS_MAX]; /* where each came from */
    pawl_append_result results[IMPORT_EVENTS_MAX];
};

/* Adds a copy of the event; a full batch is appended. */
PAWL_MUST_USE pawl_status pawl__ledger_import_add(struct ledger_import *import,
                                                  const pawl_event *event,
                                                  uint64_t place,
                                                  pawl_error *reterr);

/* Appends what is still held. When an event is refused, all those before it are appended first. */
PAWL_MUST_USE pawl_status pawl__ledger_import_flush(struct ledger_import *import,
                                                    pawl_error *reterr);

/* What could not be read at `place`: appends what came before, then fails with `status`, whose
 * message is in `reterr`. */
PAWL_MUST_USE pawl_status pawl__ledger_import_stop(struct ledger_import *import,
                                                   uint64_t place,
                                                   pawl_status status,
                                                   pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__ledger_import_seed(struct ledger_import *import,
                                                   const char *path,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__ledger_import_parquet(struct ledger_import *import,
                                                      const char *path,
                                                      pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__ledger_export_parquet(struct ledger_export *export,
                                                      const char *path,
                                                      pawl_error *reterr);

/* False for a file that was never SQLite's. Only for one that SQLite refused: opening and closing
 * it drops the locks of connections that have it open. */
bool pawl__ledger_begins_like_sqlite(const char *path);

/* Whether it holds events of the original schema, without hashes. */
bool pawl__ledger_is_seed(const char *path);

#endif
