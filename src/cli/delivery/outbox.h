/* What `pawl publish` and `pawl outbox` share: the open outbox and how it is shown. */
#ifndef PAWL_CLI_DELIVERY_OUTBOX_H
#define PAWL_CLI_DELIVERY_OUTBOX_H

#include <pawl/publisher.h>

#include "cli/frame/command.h"
#include "cli/frame/run.h"

/* Options from the settings; `servers` and `source` are the caller's to set. */
pawl_publisher_options pawl__cli_outbox_options(const struct pawl__cli_run *run);

/* Opens the outbox of the settings, or of the data directory. */
PAWL_MUST_USE pawl_status pawl__cli_outbox_open(const struct pawl__cli_run *run,
                                                const pawl_publisher_options *options,
                                                pawl_publisher **ret_publisher,
                                                pawl_error *reterr);

/* Closes it and returns `status`, or what closing failed with when that is PAWL_OK. */
PAWL_MUST_USE pawl_status pawl__cli_outbox_close(pawl_publisher *publisher,
                                                 pawl_status status,
                                                 pawl_error *reterr);

#endif
