/* What a test may ask the store in memory. */
#ifndef PAWL_SEQUENCER_APP_MEMORY_H
#define PAWL_SEQUENCER_APP_MEMORY_H

#include "sequencer/app_store.h"

/* Keys that were compared so far: what its work is, whatever the machine. */
uint64_t pawl__app_memory_compared(struct app_store *store);

#endif
