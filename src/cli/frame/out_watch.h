/* Notices that nobody reads standard output any more while a command waits for something else: without
 * it, `tail --follow | head -1` would live until the next event. */
#ifndef PAWL_CLI_FRAME_OUT_WATCH_H
#define PAWL_CLI_FRAME_OUT_WATCH_H

#include <stdatomic.h>

#include "base/thread/thread.h"
#include "cli/frame/interrupt.h"

struct pawl__cli_out_watch {
    struct pawl__thread thread;
    int stop_fd; /* ends the thread */
    const struct pawl__cli_wakeable *woken;
    atomic_bool gone;
};

/* Around a call that waits: calls woken->wake on an interrupt, and on a thread of its own when the reader
 * of standard output goes away. What keeps the thread from starting is no failure: then the next write
 * notices. `watch` must not move. */
void pawl__cli_out_watch_start(struct pawl__cli_out_watch *watch,
                               const struct pawl__cli_wakeable *woken);
/* What the command returns after a call that returned `status`. */
pawl_status pawl__cli_out_watch_end(struct pawl__cli_out_watch *watch,
                                    pawl_status status,
                                    pawl_error *reterr);

#endif
