/* What registering, counting and writing share; nobody else includes it. */
#ifndef PAWL_BASE_LOG_METRICS_INTERNAL_H
#define PAWL_BASE_LOG_METRICS_INTERNAL_H

#include <stdatomic.h>

#include "base/log/metrics.h"
#include "base/thread/thread.h"

struct pawl__series {
    const struct pawl__metric *metric;
    struct pawl__series *next;
    char *labels;                /* a="x",b="y" as it is written; "" without labels */
    atomic_uint_fast64_t count;  /* counter */
    _Atomic double value;        /* gauge; sum of a histogram */
    atomic_uint_fast64_t hits[]; /* histogram: one a bucket, and +Inf last; not cumulative */
};

struct pawl__metric {
    const struct pawl__metric_def *def;
    struct pawl__metrics *metrics;
    struct pawl__metric *next;
    size_t label_count;
    struct pawl__series *first; /* under the registry's lock */
    struct pawl__series *last;
    size_t series_count;
};

struct pawl__metrics {
    struct pawl__lock lock; /* covers the lists of metrics and of their series, not the numbers */
    struct pawl__metric *first;
    struct pawl__metric *last;
    size_t count;
};

PAWL_MUST_USE pawl_status pawl__metric_check(const struct pawl__metric_def *def,
                                             pawl_error *reterr);

#endif
