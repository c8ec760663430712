/* A work store as metrics: what pawl_work_get_stats, _type_stats and _checkpoint_growth say. */
#ifndef PAWL_WORK_CORE_METRICS_H
#define PAWL_WORK_CORE_METRICS_H

#include <pawl/work.h>

#include "base/log/metrics.h"

struct work_metrics;

/* Registers the metrics. Freed before the registry, or after it. */
PAWL_MUST_USE pawl_status pawl__work_metrics_new(struct pawl__metrics *registry,
                                                 struct work_metrics **ret_metrics,
                                                 pawl_error *reterr);
void pawl__work_metrics_free(struct work_metrics *metrics);
DEFINE_AUTO(struct work_metrics *, pawl__work_metrics_free)

/* Sets all of them to what the store holds now. A type, status or task that is gone is 0. One thread
 * at a time. */
PAWL_MUST_USE pawl_status pawl__work_metrics_update(struct work_metrics *metrics,
                                                    pawl_work *work,
                                                    pawl_error *reterr);

#endif
