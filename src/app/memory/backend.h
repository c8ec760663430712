/* What a test may ask the store in memory. */
#ifndef PAWL_APP_MEMORY_BACKEND_H
#define PAWL_APP_MEMORY_BACKEND_H

#include "app/core/backend.h"

/* Keys that were compared so far: what its work is, whatever the machine. */
uint64_t pawl__app_memory_compared(struct app_store *store);

#endif
