#include "engine/metrics.h"

enum { BATCHES, CALLS, WAITING, METRIC_COUNT };

static const struct pawl__metric_def defs[METRIC_COUNT] = {
    [BATCHES] = { .name = "pawl_commit_batches_total",
                  .help = "Transactions of the group commit.",
                  .type = PAWL__COUNTER,
                  .labels = { "store" } },
    [CALLS] = { .name = "pawl_commit_calls_total",
                .help = "Calls that these transactions served.",
                .type = PAWL__COUNTER,
                .labels = { "store" } },
    [WAITING] = { .name = "pawl_commit_waiting",
                  .help = "Calls that wait for their transaction.",
                  .type = PAWL__GAUGE,
                  .labels = { "store" } },
};

pawl_status pawl__commit_metrics_add(struct pawl__commit *commit,
                                     const char *store,
                                     struct pawl__metrics *registry,
                                     pawl_error *reterr)
{
    struct pawl__series *series[METRIC_COUNT];
    uint64_t batches;
    uint64_t calls;

    if (commit == NULL) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct pawl__metric *metric;

        TRY(pawl__metrics_register(registry, &defs[i], &metric, reterr));
        TRY(pawl__metric_series(metric, &store, &series[i], reterr));
    }
    pawl__commit_counts(commit, &batches, &calls);
    pawl__counter_add(series[BATCHES], batches);
    pawl__counter_add(series[CALLS], calls);
    pawl__gauge_set(series[WAITING], (double)pawl__commit_waiting(commit));
    return PAWL_OK;
}
