/* What `app` needs of a sequencer beyond <pawl/sequencer.h>. */
#ifndef PAWL_SEQUENCER_INTERNAL_H
#define PAWL_SEQUENCER_INTERNAL_H

#include <pawl/sequencer.h>

#include "base/core/macros.h"

struct pawl__clock;

/* pawl_sequencer_open on a given clock: of a test, or a simulation. NULL: the real one. It decides when numbers
 * are stored and what failed is tried again; calls wait on the real one. */
PAWL_MUST_USE pawl_status pawl__sequencer_new_at(const pawl_sequencer_options *options,
                                                 struct pawl__clock *clock,
                                                 pawl_sequencer **ret_sequencer,
                                                 pawl_error *reterr);

/* Waits until a start would not be busy: nothing is actualized, and not too much waits to be written.
 * TIMEOUT; CLOSED; CORRUPT and others as pawl_sequencer_start. From any thread. */
PAWL_MUST_USE pawl_status pawl__sequencer_await(pawl_sequencer *sequencer,
                                                uint32_t timeout_ms,
                                                pawl_error *reterr);

/* Ends its threads. False: the storage has not come back by then; the call may be repeated. NULL is fine. */
PAWL_MUST_USE bool pawl__sequencer_close_until(pawl_sequencer *sequencer, int64_t deadline_ns);

/* Closes and frees. False: its storage has not returned by then; the threads that wait for it use it until they
 * end by themselves. The owner of many sequencers ends them all by one deadline. NULL is fine. */
PAWL_MUST_USE bool pawl__sequencer_end(pawl_sequencer *sequencer, int64_t deadline_ns);

#endif
