/* How a committer is doing, as metrics that any capability can add (work does); the label `store` tells them apart:
 *
 *   pawl_commit_batches_total   transactions of the committer, whether they succeeded or not
 *   pawl_commit_calls_total     calls that they served: divided by the batches, how many share a commit
 *   pawl_commit_waiting         calls whose turn has not come */
#ifndef PAWL_ENGINE_METRICS_H
#define PAWL_ENGINE_METRICS_H

#include "base/log/metrics.h"
#include "engine/committer.h"

/* Adds them as they are now. `store` is the label's value: "work". NULL, a handle that only reads, adds
 * nothing. */
PAWL_MUST_USE pawl_status pawl__commit_metrics_add(struct pawl__commit *commit,
                                                   const char *store,
                                                   struct pawl__metrics *registry,
                                                   pawl_error *reterr);

#endif
