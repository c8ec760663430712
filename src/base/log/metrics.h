/* Numbers about the program for Prometheus: counters, gauges and histograms, with labels.
 *
 * A metric is registered once, from a static description; a series is one combination of its
 * labels' values. Both may fail, allocate and take the registry's lock, so code that counts asks for
 * its series when it is set up and keeps the pointer. Counting itself is atomic: no lock, no
 * allocation, no failure, and NULL (a series that was refused) is counted nowhere.
 *
 *     static const struct pawl__metric_def writes_def = {
 *         .name = "consumer_wal_writes_total", .help = "Entries written to the WAL.",
 *         .type = PAWL__COUNTER, .labels = { "stream" },
 *     };
 *     pawl__metrics_register(registry, &writes_def, &writes, reterr);
 *     pawl__metric_series(writes, (const char *[]){ "orders" }, &orders, reterr);
 *     pawl__counter_add(orders, 1);
 *
 * Threads: any. The registry owns its metrics and series; free it last. */
#ifndef PAWL_BASE_LOG_METRICS_H
#define PAWL_BASE_LOG_METRICS_H

#include "base/core/buf.h"
#include "base/core/macros.h"

#define PAWL__METRICS_MAX 512          /* metrics in a registry */
#define PAWL__METRIC_LABELS_MAX 8      /* labels of a metric */
#define PAWL__METRIC_NAME_MAX 128      /* bytes of its name, and of a label's */
#define PAWL__METRIC_VALUE_MAX 200     /* bytes of a label's value */
#define PAWL__METRIC_BUCKETS_MAX 32    /* of a histogram, besides +Inf */
#define PAWL__METRIC_SERIES_MAX 100000 /* the highest series_max */
#define PAWL__METRIC_SERIES_DEFAULT 1000

enum pawl__metric_type {
    PAWL__COUNTER,
    PAWL__GAUGE,
    PAWL__HISTOGRAM,
};

/* Must outlive the registry, with everything it points to. */
struct pawl__metric_def {
    const char *name; /* lower case; counters end in _total, others must not */
    const char *help; /* a sentence */
    enum pawl__metric_type type;
    const char *labels[PAWL__METRIC_LABELS_MAX]; /* up to the first NULL */
    const double *buckets;                       /* histograms: upper bounds, ascending */
    size_t bucket_count;
    size_t series_max; /* 0: PAWL__METRIC_SERIES_DEFAULT */
};

struct pawl__metrics;
struct pawl__metric;
struct pawl__series;

PAWL_MUST_USE pawl_status pawl__metrics_new(struct pawl__metrics **ret_metrics, pawl_error *reterr);
DEFINE_AUTO(struct pawl__metrics *, pawl__metrics_free)

/* INVALID names what is wrong with the description, CONFLICT the metric that is there already,
 * NO_SPACE the limit; nothing changes then. A metric without labels has its one series, at zero,
 * from the start. */
PAWL_MUST_USE pawl_status pawl__metrics_register(struct pawl__metrics *metrics,
                                                 const struct pawl__metric_def *def,
                                                 struct pawl__metric **ret_metric,
                                                 pawl_error *reterr);

/* The series with these values, one for each label; made when there is none. `values` may be NULL
 * without labels. INVALID for a value that is not UTF-8 or too long, NO_SPACE at series_max: labels
 * must not come from what strangers send without end. */
PAWL_MUST_USE pawl_status pawl__metric_series(struct pawl__metric *metric,
                                              const char *const *values,
                                              struct pawl__series **ret_series,
                                              pawl_error *reterr);

void pawl__counter_add(struct pawl__series *series, uint64_t by);
void pawl__gauge_set(struct pawl__series *series, double value);
void pawl__gauge_add(struct pawl__series *series, double by);            /* negative: subtracts */
void pawl__histogram_observe(struct pawl__series *series, double value); /* NaN is not counted */

/* Appends everything in Prometheus' text format, in the order of registration. INVALID when `out`
 * is too small, NOMEM. */
PAWL_MUST_USE pawl_status pawl__metrics_write(struct pawl__metrics *metrics,
                                              struct pawl__buf *out,
                                              pawl_error *reterr);

/* Appends the texts of several registries as one: a metric that more than one of them has gets one head, and
 * the series of all. */
void pawl__metrics_join(const pawl_view *texts, size_t count, struct pawl__buf *out);

#endif
