/* The sequences and commits of the applications as metrics: set when somebody asks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "server/apps/apps.h"

enum gauge {
    GAUGE_NEXT_OFFSET,
    GAUGE_STORED_OFFSET,
    GAUGE_UNFLUSHED,
    GAUGE_ACTUALIZING,
    GAUGE_CACHE_HITS,
    GAUGE_CACHE_MISSES,
    GAUGE_FLUSH_FAILURES,
    GAUGE_COUNT
};

/* The counts begin again when the process does, and are read, not counted, here: gauges. */
#define SEQUENCER_GAUGE(suffix, says)                                           \
    {                                                                           \
        .name = "pawl_sequencer_" suffix, .help = says, .type = PAWL__GAUGE,    \
        .labels = { "app", "partition" }, .series_max = PAWL__METRIC_SERIES_MAX \
    }

static const struct pawl__metric_def defs[GAUGE_COUNT] = {
    [GAUGE_NEXT_OFFSET] = SEQUENCER_GAUGE("next_offset", "Offset of the next event of the PLog."),
    [GAUGE_STORED_OFFSET] =
        SEQUENCER_GAUGE("stored_offset", "Offset of the PLog up to which numbers are stored."),
    [GAUGE_UNFLUSHED] = SEQUENCER_GAUGE("unflushed", "Numbers that wait to be written."),
    [GAUGE_ACTUALIZING] = SEQUENCER_GAUGE(
        "actualizing", "1 while numbers are read from the log and commands are refused."),
    [GAUGE_CACHE_HITS] = SEQUENCER_GAUGE("cache_hits", "Numbers found in memory since the start."),
    [GAUGE_CACHE_MISSES] =
        SEQUENCER_GAUGE("cache_misses", "Numbers read from the store since the start."),
    [GAUGE_FLUSH_FAILURES] =
        SEQUENCER_GAUGE("flush_failures", "Failed writes of numbers since the start."),
};

struct node_gauges {
    struct pawl__metric *metrics[GAUGE_COUNT];
};

pawl_status pawl__serve_gauges_new(struct pawl__metrics *metrics,
                                   struct node_gauges **ret_gauges,
                                   pawl_error *reterr)
{
    struct node_gauges *gauges = calloc(1, sizeof(*gauges));
    pawl_status status =
        gauges == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics") : PAWL_OK;

    for (size_t i = 0; i < GAUGE_COUNT && status == PAWL_OK; i++) {
        status = pawl__metrics_register(metrics, &defs[i], &gauges->metrics[i], reterr);
    }
    if (status != PAWL_OK) {
        free(gauges);
        return status;
    }
    *ret_gauges = gauges;
    return PAWL_OK;
}

void pawl__serve_gauges_free(struct node_gauges *gauges)
{
    free(gauges);
}

static pawl_status update_partition(struct node_gauges *gauges,
                                    pawl_app *app,
                                    uint16_t partition,
                                    pawl_error *reterr)
{
    pawl_sequencer_status of = PAWL_SEQUENCER_STATUS_INIT;
    char number[8];
    const char *labels[] = { pawl_app_get_descriptor(app)->name, number };

    TRY(pawl_app_get_status(app, partition, &of, reterr));
    const double values[GAUGE_COUNT] = {
        [GAUGE_NEXT_OFFSET] = (double)of.next_offset,
        [GAUGE_STORED_OFFSET] = (double)of.stored_offset,
        [GAUGE_UNFLUSHED] = (double)of.unflushed,
        [GAUGE_ACTUALIZING] = of.actualizing ? 1 : 0,
        [GAUGE_CACHE_HITS] = (double)of.hits,
        [GAUGE_CACHE_MISSES] = (double)of.misses,
        [GAUGE_FLUSH_FAILURES] = (double)of.flush_failures,
    };
    (void)snprintf(number, sizeof(number), "%u", partition);
    for (size_t i = 0; i < GAUGE_COUNT; i++) {
        struct pawl__series *series = NULL;

        TRY(pawl__metric_series(gauges->metrics[i], labels, &series, reterr));
        pawl__gauge_set(series, values[i]);
    }
    return PAWL_OK;
}

pawl_status pawl__serve_gauges_update(struct apps_part *part, pawl_error *reterr)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(part, false, &count);
    pawl_status status =
        apps == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics") : PAWL_OK;

    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        uint16_t partitions =
            apps[i].app == NULL ? 0 : pawl_app_get_descriptor(apps[i].app)->partitions;

        for (uint16_t p = 0; p < partitions && status == PAWL_OK; p++) {
            status = update_partition(part->gauges, apps[i].app, p, reterr);
        }
    }
    pawl__serve_app_states_free(apps, count);
    return status;
}

static pawl_status add_commits(const struct node_app_state *apps,
                               size_t count,
                               struct pawl__buf *out,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__text_free) char *text = NULL;
        struct pawl__buf all = BUF_INIT(out->max);

        if (apps[i].app == NULL) {
            continue;
        }
        TRY(pawl_app_get_metrics(apps[i].app, &text, NULL, reterr));
        const pawl_view both[] = { pawl__buf_view(out), pawl_view_of(text) };
        pawl__metrics_join(both, COUNT_OF(both), &all);
        pawl__buf_done(out);
        *out = all;
    }
    return PAWL_OK;
}

pawl_status pawl__serve_commits_add(struct apps_part *part,
                                    struct pawl__buf *out,
                                    pawl_error *reterr)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(part, false, &count);
    pawl_status status = apps == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics")
                                      : add_commits(apps, count, out, reterr);

    free(apps);
    return status;
}
