/* What the ledger's benchmarks share: events as an agent makes them, and a place for files. */
#ifndef BENCH_LEDGER_EVENTS_H
#define BENCH_LEDGER_EVENTS_H

#include <pawl/ledger.h>

enum { EVENTS_PATH_SIZE = 256, EVENTS_BATCH = 1000 };

/* Ends the benchmark with a message. */
void events_stop(const char *what, const char *message);
void events_check(pawl_status status, const pawl_error *error);

/* The path of a file in a new directory under $TMPDIR or /tmp, removed with all of it at exit. */
void events_path(const char *name, char ret_path[EVENTS_PATH_SIZE]);

/* 1,000 new events with UUIDv7 ids, of 4 runs, 8 kinds and 16 actors, with 200 bytes of JSON. Valid
 * until the next call. */
const pawl_event *events_batch(uint64_t first_number);

/* Fills a ledger with `count` (whole batches of them). */
void events_fill(const char *location, uint64_t count);

#endif
