/* Prometheus' text exposition format, version 0.0.4. */
#include "base/log/metrics_internal.h"

#include <inttypes.h>
#include <math.h>

static void add_number(struct pawl__buf *out, double value)
{
    if (isfinite(value)) {
        pawl__buf_add_real(out, value);
    } else {
        pawl__buf_add_text(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    }
}

/* name{labels} or name{labels,le="0.5"}, and the space before the number. */
static void add_sample_name(struct pawl__buf *out,
                            const struct pawl__series *series,
                            const char *suffix,
                            const double *le)
{
    bool labels = series->labels[0] != '\0';

    pawl__buf_add_format(out, "%s%s", series->metric->def->name, suffix);
    if (labels || le != NULL) {
        pawl__buf_add_format(out, "{%s", series->labels);
        if (le != NULL) {
            pawl__buf_add_text(out, labels ? ",le=\"" : "le=\"");
            add_number(out, *le);
            pawl__buf_add_char(out, '"');
        }
        pawl__buf_add_char(out, '}');
    }
    pawl__buf_add_char(out, ' ');
}

static void add_natural(struct pawl__buf *out, uint64_t value)
{
    pawl__buf_add_format(out, "%" PRIu64 "\n", value);
}

static void add_real(struct pawl__buf *out, double value)
{
    add_number(out, value);
    pawl__buf_add_char(out, '\n');
}

/* The count is the sum of what was read, so that it always agrees with the +Inf bucket. */
static void add_histogram(struct pawl__buf *out, const struct pawl__series *series)
{
    const struct pawl__metric_def *def = series->metric->def;
    const double infinite = HUGE_VAL;
    uint64_t count = 0;

    for (size_t i = 0; i <= def->bucket_count; i++) {
        count += atomic_load_explicit(&series->hits[i], memory_order_relaxed);
        add_sample_name(
            out, series, "_bucket", i < def->bucket_count ? &def->buckets[i] : &infinite);
        add_natural(out, count);
    }
    add_sample_name(out, series, "_sum", NULL);
    add_real(out, atomic_load_explicit(&series->value, memory_order_relaxed));
    add_sample_name(out, series, "_count", NULL);
    add_natural(out, count);
}

static void add_series(struct pawl__buf *out, const struct pawl__series *series)
{
    switch (series->metric->def->type) {
    case PAWL__COUNTER:
        add_sample_name(out, series, "", NULL);
        add_natural(out, atomic_load_explicit(&series->count, memory_order_relaxed));
        break;
    case PAWL__GAUGE:
        add_sample_name(out, series, "", NULL);
        add_real(out, atomic_load_explicit(&series->value, memory_order_relaxed));
        break;
    case PAWL__HISTOGRAM:
        add_histogram(out, series);
        break;
    }
}

static void add_head(struct pawl__buf *out, const struct pawl__metric_def *def)
{
    static const char *const types[] = { "counter", "gauge", "histogram" };

    pawl__buf_add_format(out, "# HELP %s ", def->name);
    for (const char *c = def->help; *c != '\0'; c++) {
        if (*c == '\n') {
            pawl__buf_add_text(out, "\\n");
        } else {
            pawl__buf_add_text(out, *c == '\\' ? "\\" : "");
            pawl__buf_add_char(out, *c);
        }
    }
    pawl__buf_add_format(out, "\n# TYPE %s %s\n", def->name, types[def->type]);
}

pawl_status pawl__metrics_write(struct pawl__metrics *metrics,
                                struct pawl__buf *out,
                                pawl_error *reterr)
{
    pawl__lock(&metrics->lock);
    for (const struct pawl__metric *metric = metrics->first; metric != NULL;
         metric = metric->next) {
        if (metric->first != NULL) { /* a head without samples says nothing */
            add_head(out, metric->def);
        }
        for (const struct pawl__series *series = metric->first; series != NULL;
             series = series->next) {
            add_series(out, series);
        }
    }
    pawl__unlock(&metrics->lock);
    return pawl__buf_check(out, "metrics", reterr);
}
