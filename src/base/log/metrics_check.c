/* What a metric may be called (metrics.h). The rules are Prometheus' and, beyond them, what
 * `promtool check metrics` complains about. */
#include "base/log/metrics_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"

static const char *const histogram_suffixes[] = { "_bucket", "_sum", "_count" };

static bool ends_with(const char *text, const char *end)
{
    size_t text_len = strlen(text);
    size_t end_len = strlen(end);

    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

static bool is_name(const char *name)
{
    if (name == NULL || name[0] == '\0' || (name[0] >= '0' && name[0] <= '9')
        || strnlen(name, PAWL__METRIC_NAME_MAX + 1) > PAWL__METRIC_NAME_MAX) {
        return false;
    }
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static pawl_status check_name(const struct pawl__metric_def *def, pawl_error *reterr)
{
    if (!is_name(def->name)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "metric name '%s': 1 to %d of a-z, 0-9 and '_', no digit first",
                          def->name == NULL ? "" : def->name,
                          PAWL__METRIC_NAME_MAX);
    }
    if (ends_with(def->name, "_total") != (def->type == PAWL__COUNTER)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "metric '%s': counters end in '_total', and nothing else does",
                          def->name);
    }
    for (size_t i = 0; i < COUNT_OF(histogram_suffixes); i++) {
        if (ends_with(def->name, histogram_suffixes[i])) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "metric '%s': '%s' is what histograms add",
                              def->name,
                              histogram_suffixes[i]);
        }
    }
    if (def->help == NULL || def->help[0] == '\0' || !pawl__view_is_utf8(pawl_view_of(def->help))) {
        return pawl__fail(reterr, PAWL_INVALID, "metric '%s': no help text", def->name);
    }
    return PAWL_OK;
}

static pawl_status check_label(const struct pawl__metric_def *def, size_t at, pawl_error *reterr)
{
    const char *label = def->labels[at];

    if (!is_name(label) || strncmp(label, "__", 2) == 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "metric '%s': label '%s': a-z, 0-9 and '_', no digit or '__' first",
                          def->name,
                          label);
    }
    if (def->type == PAWL__HISTOGRAM && strcmp(label, "le") == 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "metric '%s': label 'le' is the histogram's own", def->name);
    }
    for (size_t i = 0; i < at; i++) {
        if (strcmp(def->labels[i], label) == 0) {
            return pawl__fail(
                reterr, PAWL_INVALID, "metric '%s': label '%s' twice", def->name, label);
        }
    }
    return PAWL_OK;
}

static pawl_status check_buckets(const struct pawl__metric_def *def, pawl_error *reterr)
{
    size_t count_min = def->type == PAWL__HISTOGRAM ? 1 : 0;
    size_t count_max = def->type == PAWL__HISTOGRAM ? PAWL__METRIC_BUCKETS_MAX : 0;

    if (def->bucket_count < count_min || def->bucket_count > count_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "metric '%s': %zu buckets; allowed are %zu to %zu",
                          def->name,
                          def->bucket_count,
                          count_min,
                          count_max);
    }
    for (size_t i = 0; i < def->bucket_count; i++) {
        if (!isfinite(def->buckets[i]) || (i > 0 && def->buckets[i] <= def->buckets[i - 1])) {
            return pawl__fail(
                reterr,
                PAWL_INVALID,
                "metric '%s': bucket %zu is not above the one before it, or no number",
                def->name,
                i + 1);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__metric_check(const struct pawl__metric_def *def, pawl_error *reterr)
{
    TRY(check_name(def, reterr));
    for (size_t i = 0; i < PAWL__METRIC_LABELS_MAX && def->labels[i] != NULL; i++) {
        TRY(check_label(def, i, reterr));
    }
    if (def->series_max > PAWL__METRIC_SERIES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "metric '%s': series_max is %zu; the limit is %d",
                          def->name,
                          def->series_max,
                          PAWL__METRIC_SERIES_MAX);
    }
    return check_buckets(def, reterr);
}
