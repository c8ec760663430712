/* How whoever has many sequencers ends them by one deadline. */
#ifndef PAWL_SEQUENCER_SEQUENCER_END_H
#define PAWL_SEQUENCER_SEQUENCER_END_H

#include <pawl/sequencer.h>

#include "base/macros.h"

/* Closes and frees. False: its storage has not come back by then; the threads that wait for it go on
 * alone, and use it until they end. NULL is fine. */
PAWL_MUST_USE bool pawl__sequencer_end(pawl_sequencer *seq, int64_t deadline_ns);

#endif
