/* Jobs as a part of the node. */
#ifndef PAWL_SERVER_JOBS_PART_H
#define PAWL_SERVER_JOBS_PART_H

#include "server/part.h"

extern const struct pawl__serve_part pawl__serve_jobs_part;

#endif
