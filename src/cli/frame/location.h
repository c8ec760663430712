/* Where a capability's store is: what its flag says, else its file in the directory of --data, else
 * the database of DATABASE_URL, else its file in the data directory of the settings. */
#ifndef PAWL_CLI_FRAME_LOCATION_H
#define PAWL_CLI_FRAME_LOCATION_H

#include "cli/frame/run.h"

struct pawl__cli_location {
    const char *flag; /* "ledger" for --ledger */
    const char *file; /* "ledger.sqlite" */
};

/* As the capability's open takes it; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_location_of(const struct pawl__cli_run *run,
                                                const struct pawl__cli_location *location,
                                                char **ret_location,
                                                pawl_error *reterr);

/* Makes the data directory when the store is in it. */
PAWL_MUST_USE pawl_status pawl__cli_location_make(const struct pawl__cli_run *run,
                                                  const struct pawl__cli_location *location,
                                                  pawl_error *reterr);

/* How long to wait for another process's lock, as the settings say. */
uint32_t pawl__cli_busy_ms(const struct pawl__cli_run *run);

/* How long a server may be silent, as the settings say. */
uint32_t pawl__cli_answer_ms(const struct pawl__cli_run *run);

#endif
