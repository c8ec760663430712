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

/* Calls woken->wake on a thread of its own when the reader of standard output goes away. What keeps it
 * from starting is no failure: then the next write notices. `watch` must not move. */
void pawl__cli_out_watch_start(struct pawl__cli_out_watch *watch,
                               const struct pawl__cli_wakeable *woken);
void pawl__cli_out_watch_stop(struct pawl__cli_out_watch *watch); /* for AUTO, too */

bool pawl__cli_out_watch_gone(struct pawl__cli_out_watch *watch);

#endif
