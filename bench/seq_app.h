/* An application on RocksDB and the command that benchmarks give it. */
#ifndef BENCH_SEQ_APP_H
#define BENCH_SEQ_APP_H

#include <pawl/app.h>

enum { SEQ_APP_NUMBERS = 2 }; /* that a command takes */

/* Open and actualized. */
pawl_app *seq_app_open(const char *path, pawl_app_trust trust);

/* One event and one record of a workspace: an offset in its log and a record's id. Until it is not
 * busy; any other failure ends the program. */
void seq_app_exec(pawl_app *app, uint64_t workspace);

/* The same with a number of the application's own sequence. */
void seq_app_invoice(pawl_app *app, uint64_t workspace);

#endif
