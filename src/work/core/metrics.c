#include "work/core/metrics.h"

#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"

/* Types and tasks are users' names: what is beyond this many is not shown. */
enum { SERIES_MAX = 1000, TASKS_MAX = 200, TEXT_BYTES_MAX = 16 << 20 };

/* Without labels, in the order of their definitions. */
enum { ACTIVE_LEASES, STALE_LEASES, HEARTBEAT_AGE, CHECKPOINTS, OLDEST_PENDING, PLAIN_COUNT };

static const struct pawl__metric_def plain_defs[PLAIN_COUNT] = {
    [ACTIVE_LEASES] = { .name = "pawl_work_active_leases",
                        .help = "Items that are leased.",
                        .type = PAWL__GAUGE },
    [STALE_LEASES] = { .name = "pawl_work_stale_leases",
                       .help = "Leases without a heartbeat for longer than work.stale.",
                       .type = PAWL__GAUGE },
    [HEARTBEAT_AGE] = { .name = "pawl_work_heartbeat_age_seconds",
                        .help = "Average time since the last heartbeat of a lease.",
                        .type = PAWL__GAUGE },
    [CHECKPOINTS] = { .name = "pawl_work_checkpoints",
                      .help = "Checkpoints of all tasks.",
                      .type = PAWL__GAUGE },
    [OLDEST_PENDING] = { .name = "pawl_work_oldest_pending_timestamp_seconds",
                         .help = "When the oldest pending item was submitted; 0 without one.",
                         .type = PAWL__GAUGE },
};

enum { ITEMS, ITEM_AGE, KEYS, TASK_CHECKPOINTS, LABELLED_COUNT };

static const struct pawl__metric_def labelled_defs[LABELLED_COUNT] = {
    [ITEMS] = { .name = "pawl_work_items",
                .help = "Items by type and status.",
                .type = PAWL__GAUGE,
                .labels = { "work_type", "status" },
                .series_max = SERIES_MAX },
    [ITEM_AGE] = { .name = "pawl_work_item_age_seconds",
                   .help = "Average age of items by type and status.",
                   .type = PAWL__GAUGE,
                   .labels = { "work_type", "status" },
                   .series_max = SERIES_MAX },
    [KEYS] = { .name = "pawl_work_idempotency_keys",
               .help = "Idempotency keys by status.",
               .type = PAWL__GAUGE,
               .labels = { "status" } },
    [TASK_CHECKPOINTS] = { .name = "pawl_work_task_checkpoints",
                           .help = "Checkpoints of the ten tasks that have most.",
                           .type = PAWL__GAUGE,
                           .labels = { "task_id" },
                           .series_max = TASKS_MAX },
};

struct work_metrics {
    struct pawl__series *plain[PLAIN_COUNT];
    struct pawl__metric *labelled[LABELLED_COUNT];
    struct pawl__series *shown[2 * SERIES_MAX + TASKS_MAX]; /* those that may have to be 0 again */
    size_t shown_count;
};

void pawl__work_metrics_free(struct work_metrics *metrics)
{
    free(metrics);
}

static pawl_status register_all(struct work_metrics *metrics,
                                struct pawl__metrics *registry,
                                pawl_error *reterr)
{
    for (size_t i = 0; i < PLAIN_COUNT; i++) {
        struct pawl__metric *metric;
        TRY(pawl__metrics_register(registry, &plain_defs[i], &metric, reterr));
        TRY(pawl__metric_series(metric, NULL, &metrics->plain[i], reterr));
    }
    for (size_t i = 0; i < LABELLED_COUNT; i++) {
        TRY(pawl__metrics_register(registry, &labelled_defs[i], &metrics->labelled[i], reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__work_metrics_new(struct pawl__metrics *registry,
                                   struct work_metrics **ret_metrics,
                                   pawl_error *reterr)
{
    AUTO(pawl__work_metrics_free_p) struct work_metrics *metrics = calloc(1, sizeof(*metrics));

    if (metrics == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics");
    }
    TRY(register_all(metrics, registry, reterr));
    *ret_metrics = STEAL(metrics);
    return PAWL_OK;
}

/* A series that cannot be had (too many) is left out; the numbers without labels are still there. */
static void set(struct work_metrics *metrics, size_t which, const char *const *labels, double value)
{
    struct pawl__series *series = NULL;

    if (pawl__metric_series(metrics->labelled[which], labels, &series, NULL) != PAWL_OK) {
        return;
    }
    pawl__gauge_set(series, value);
    for (size_t i = 0; i < metrics->shown_count; i++) {
        if (metrics->shown[i] == series) {
            return;
        }
    }
    if (which != KEYS && metrics->shown_count < COUNT_OF(metrics->shown)) {
        metrics->shown[metrics->shown_count++] = series;
    }
}

static bool set_type(void *context, const pawl_type_stats *stats)
{
    char type[PAWL_WORK_NAME_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(type);
    const char *labels[] = { type, pawl__work_item_status_text(stats->status) };

    type[0] = '\0';
    pawl__buf_add(&text, stats->work_type);
    set(context, ITEMS, labels, (double)stats->count);
    set(context, ITEM_AGE, labels, stats->avg_age_hours * 3600);
    return true;
}

static bool set_growth(void *context, const pawl_checkpoint_growth *growth)
{
    char task[PAWL_WORK_NAME_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(task);

    task[0] = '\0';
    pawl__buf_add(&text, growth->task_id);
    set(context, TASK_CHECKPOINTS, (const char *const[]){ task }, (double)growth->checkpoint_count);
    return true;
}

static void set_plain(struct work_metrics *metrics, const pawl_work_stats *stats)
{
    const double values[PLAIN_COUNT] = {
        [ACTIVE_LEASES] = (double)stats->active_leases,
        [STALE_LEASES] = (double)stats->stale_leases,
        [HEARTBEAT_AGE] = stats->avg_minutes_since_heartbeat * 60,
        [CHECKPOINTS] = (double)stats->checkpoints,
        [OLDEST_PENDING] = (double)stats->oldest_pending_us / 1e6,
    };

    for (size_t i = 0; i < PLAIN_COUNT; i++) {
        pawl__gauge_set(metrics->plain[i], values[i]);
    }
    set(metrics, KEYS, (const char *const[]){ "pending" }, (double)stats->keys_pending);
    set(metrics, KEYS, (const char *const[]){ "completed" }, (double)stats->keys_completed);
    set(metrics, KEYS, (const char *const[]){ "failed" }, (double)stats->keys_failed);
}

pawl_status pawl__work_metrics_update(struct work_metrics *metrics,
                                      pawl_work *work,
                                      pawl_error *reterr)
{
    pawl_work_stats stats;
    TRY(pawl_work_get_stats(work, &stats, reterr));
    set_plain(metrics, &stats);
    for (size_t i = 0; i < metrics->shown_count; i++) {
        pawl__gauge_set(metrics->shown[i], 0);
    }
    TRY(pawl_work_type_stats(work, set_type, metrics, reterr));
    return pawl_work_checkpoint_growth(work, set_growth, metrics, reterr);
}

pawl_status pawl_work_get_metrics(pawl_work *work,
                                  char **ret_text,
                                  size_t *ret_len,
                                  pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(ret_text, reterr);
    AUTO(pawl__metrics_free_p) struct pawl__metrics *registry = NULL;
    AUTO(pawl__work_metrics_free_p) struct work_metrics *metrics = NULL;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(TEXT_BYTES_MAX);
    TRY(pawl__metrics_new(&registry, reterr));
    TRY(pawl__work_metrics_new(registry, &metrics, reterr));
    TRY(pawl__work_metrics_update(metrics, work, reterr));
    TRY(pawl__metrics_write(registry, &text, reterr));
    size_t len = text.len;
    char *stolen = pawl__buf_steal(&text);
    if (stolen == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for metrics");
    }
    *ret_text = stolen;
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return PAWL_OK;
}
