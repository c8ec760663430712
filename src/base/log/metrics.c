#include "base/log/metrics_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* Eight labels with every byte escaped. */
enum {
    LABELS_BYTES_MAX =
        PAWL__METRIC_LABELS_MAX * (PAWL__METRIC_NAME_MAX + 2 * PAWL__METRIC_VALUE_MAX + 4)
};

pawl_status pawl__metrics_new(struct pawl__metrics **ret_metrics, pawl_error *reterr)
{
    struct pawl__metrics *metrics = calloc(1, sizeof(*metrics));

    TRY(pawl__check_memory(metrics, "the metrics", reterr));
    pawl__lock_init(&metrics->lock);
    *ret_metrics = metrics;
    return PAWL_OK;
}

static void metric_free(struct pawl__metric *metric)
{
    for (struct pawl__series *series = metric->first, *next; series != NULL; series = next) {
        next = series->next;
        free(series->labels);
        free(series);
    }
    free(metric);
}

void pawl__metrics_free(struct pawl__metrics *metrics)
{
    if (metrics == NULL) {
        return;
    }
    for (struct pawl__metric *metric = metrics->first, *next; metric != NULL; metric = next) {
        next = metric->next;
        metric_free(metric);
    }
    pawl__lock_done(&metrics->lock);
    free(metrics);
}

/* Backslash, quote and newline, as the text format wants them. */
static void add_label(struct pawl__buf *buf, const char *name, const char *value)
{
    pawl__buf_add_format(buf, "%s%s=\"", buf->len == 0 ? "" : ",", name);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\n') {
            pawl__buf_add_text(buf, "\\n");
        } else {
            pawl__buf_add_text(buf, *c == '\\' || *c == '"' ? "\\" : "");
            pawl__buf_add_char(buf, *c);
        }
    }
    pawl__buf_add_char(buf, '"');
}

/* The values as they will be written: equal values, equal text. */
static pawl_status render_labels(const struct pawl__metric *metric,
                                 const char *const *values,
                                 struct pawl__buf *buf,
                                 pawl_error *reterr)
{
    const struct pawl__metric_def *def = metric->def;

    for (size_t i = 0; i < metric->label_count; i++) {
        pawl_view value = pawl_view_of(values[i]);
        if (values[i] == NULL || value.len > PAWL__METRIC_VALUE_MAX || !pawl__view_is_utf8(value)) {
            return pawl__fail(
                reterr,
                PAWL_INVALID,
                "metric '%s': the value of label '%s' is not UTF-8 of at most %d bytes",
                def->name,
                def->labels[i],
                PAWL__METRIC_VALUE_MAX);
        }
        add_label(buf, def->labels[i], values[i]);
    }
    return pawl__buf_check(buf, "labels", reterr);
}

static pawl_status add_series_locked(struct pawl__metric *metric,
                                     struct pawl__buf *labels,
                                     struct pawl__series **ret_series,
                                     pawl_error *reterr) REQUIRES_LOCK(metric->metrics->lock)
{
    const struct pawl__metric_def *def = metric->def;
    size_t limit = def->series_max == 0 ? PAWL__METRIC_SERIES_DEFAULT : def->series_max;

    if (metric->series_count >= limit) {
        return pawl__fail(reterr,
                          PAWL_NO_SPACE,
                          "metric '%s' has %zu combinations of labels, the limit",
                          def->name,
                          limit);
    }
    size_t hits = def->type == PAWL__HISTOGRAM ? def->bucket_count + 1 : 0;
    struct pawl__series *series = calloc(1, sizeof(*series) + hits * sizeof(series->hits[0]));
    char *text = series == NULL ? NULL : pawl__buf_steal(labels);
    if (text == NULL) {
        free(series);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a series of '%s'", def->name);
    }
    series->metric = metric;
    series->labels = text;
    if (metric->last != NULL) {
        metric->last->next = series;
    } else {
        metric->first = series;
    }
    metric->last = series;
    metric->series_count++;
    *ret_series = series;
    return PAWL_OK;
}

static pawl_status find_or_add_locked(struct pawl__metric *metric,
                                      struct pawl__buf *labels,
                                      struct pawl__series **ret_series,
                                      pawl_error *reterr) REQUIRES_LOCK(metric->metrics->lock)
{
    for (struct pawl__series *series = metric->first; series != NULL; series = series->next) {
        if (pawl__view_is(pawl__buf_view(labels), series->labels)) {
            *ret_series = series;
            return PAWL_OK;
        }
    }
    return add_series_locked(metric, labels, ret_series, reterr);
}

pawl_status pawl__metric_series(struct pawl__metric *metric,
                                const char *const *values,
                                struct pawl__series **ret_series,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf labels = BUF_INIT(LABELS_BYTES_MAX);
    pawl_status status = render_labels(metric, values, &labels, reterr);

    if (status == PAWL_OK) {
        pawl__lock(&metric->metrics->lock);
        status = find_or_add_locked(metric, &labels, ret_series, reterr);
        pawl__unlock(&metric->metrics->lock);
    }
    return status;
}

static pawl_status add_metric_locked(struct pawl__metrics *metrics,
                                     struct pawl__metric *metric,
                                     pawl_error *reterr) REQUIRES_LOCK(metrics->lock)
{
    for (struct pawl__metric *other = metrics->first; other != NULL; other = other->next) {
        /* No name ends in a histogram's suffix, so only equal names write equal samples. */
        if (strcmp(other->def->name, metric->def->name) == 0) {
            return pawl__fail(
                reterr, PAWL_CONFLICT, "metric '%s' is registered already", metric->def->name);
        }
    }
    if (metrics->count >= PAWL__METRICS_MAX) {
        return pawl__fail(reterr,
                          PAWL_NO_SPACE,
                          "metric '%s': %d are registered, the limit",
                          metric->def->name,
                          PAWL__METRICS_MAX);
    }
    if (metrics->last != NULL) {
        metrics->last->next = metric;
    } else {
        metrics->first = metric;
    }
    metrics->last = metric;
    metrics->count++;
    return PAWL_OK;
}

pawl_status pawl__metrics_register(struct pawl__metrics *metrics,
                                   const struct pawl__metric_def *def,
                                   struct pawl__metric **ret_metric,
                                   pawl_error *reterr)
{
    pawl_status status = pawl__metric_check(def, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    struct pawl__metric *metric = calloc(1, sizeof(*metric));
    if (metric == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for metric '%s'", def->name);
    }
    metric->def = def;
    metric->metrics = metrics;
    while (metric->label_count < PAWL__METRIC_LABELS_MAX
           && def->labels[metric->label_count] != NULL) {
        metric->label_count++;
    }
    /* The one series of a metric without labels is made before the metric is in the list, so that a
     * failure leaves nothing behind. */
    if (metric->label_count == 0) {
        struct pawl__series *only;
        status = pawl__metric_series(metric, NULL, &only, reterr);
    }
    if (status == PAWL_OK) {
        pawl__lock(&metrics->lock);
        status = add_metric_locked(metrics, metric, reterr);
        pawl__unlock(&metrics->lock);
    }
    if (status != PAWL_OK) {
        metric_free(metric);
        return status;
    }
    *ret_metric = metric;
    return PAWL_OK;
}

/* Counting. Nothing is ordered by these numbers, so nothing is paid for order. */

void pawl__counter_add(struct pawl__series *series, uint64_t by)
{
    if (series != NULL) {
        REQUIRE(series->metric->def->type == PAWL__COUNTER);
        atomic_fetch_add_explicit(&series->count, by, memory_order_relaxed);
    }
}

static void add_to_value(struct pawl__series *series, double by)
{
    double before = atomic_load_explicit(&series->value, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(
        &series->value, &before, before + by, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void pawl__gauge_set(struct pawl__series *series, double value)
{
    if (series != NULL) {
        REQUIRE(series->metric->def->type == PAWL__GAUGE);
        atomic_store_explicit(&series->value, value, memory_order_relaxed);
    }
}

void pawl__gauge_add(struct pawl__series *series, double by)
{
    if (series != NULL) {
        REQUIRE(series->metric->def->type == PAWL__GAUGE);
        add_to_value(series, by);
    }
}

void pawl__histogram_observe(struct pawl__series *series, double value)
{
    if (series == NULL || isnan(value)) {
        return;
    }
    const struct pawl__metric_def *def = series->metric->def;
    REQUIRE(def->type == PAWL__HISTOGRAM);
    size_t at = 0;
    while (at < def->bucket_count && value > def->buckets[at]) {
        at++;
    }
    atomic_fetch_add_explicit(&series->hits[at], 1, memory_order_relaxed);
    add_to_value(series, value);
}
