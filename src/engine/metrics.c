#include "engine/metrics.h"

#include "base/core/error.h"

enum { BATCHES, CALLS, WAITING, METRIC_COUNT };
enum { TEXT_BYTES_MAX = 16 << 10 };

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

void pawl__commit_totals_add(struct pawl__commit_totals *totals, struct pawl__commit *commit)
{
    uint64_t batches = 0;
    uint64_t calls = 0;

    if (commit == NULL) {
        return;
    }
    pawl__commit_counts(commit, &batches, &calls);
    totals->batches += batches;
    totals->calls += calls;
    totals->waiting += pawl__commit_waiting(commit);
}

pawl_status pawl__commit_metrics_add(const struct pawl__commit_totals *totals,
                                     const char *store,
                                     struct pawl__metrics *registry,
                                     pawl_error *reterr)
{
    struct pawl__series *series[METRIC_COUNT];

    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct pawl__metric *metric;

        TRY(pawl__metrics_register(registry, &defs[i], &metric, reterr));
        TRY(pawl__metric_series(metric, &store, &series[i], reterr));
    }
    pawl__counter_add(series[BATCHES], totals->batches);
    pawl__counter_add(series[CALLS], totals->calls);
    pawl__gauge_set(series[WAITING], (double)totals->waiting);
    return PAWL_OK;
}

pawl_status pawl__commit_metrics_text(const struct pawl__commit_totals *totals,
                                      const char *store,
                                      char **ret_text,
                                      size_t *ret_len,
                                      pawl_error *reterr)
{
    AUTO(pawl__metrics_free_p) struct pawl__metrics *registry = NULL;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(TEXT_BYTES_MAX);

    TRY(pawl__metrics_new(&registry, reterr));
    TRY(pawl__commit_metrics_add(totals, store, registry, reterr));
    TRY(pawl__metrics_write(registry, &text, reterr));
    return pawl__buf_hand_out(&text, "metrics", ret_text, ret_len, reterr);
}
