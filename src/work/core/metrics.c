/* A work store as metrics: what pawl_work_get_stats, _type_stats and _checkpoint_growth say. */
#include "base/log/metrics.h"
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "engine/metrics.h"
#include "work/core/internal.h"
#include "work/items/item.h"

/* Types and tasks are users' names: those beyond this many are not shown. */
enum { SERIES_MAX = 1000, TASKS_MAX = 200, TEXT_BYTES_MAX = 16 << 20 };

enum {
    ACTIVE_LEASES,
    STALE_LEASES,
    HEARTBEAT_AGE,
    CHECKPOINTS,
    OLDEST_PENDING,
    ITEMS,
    ITEM_AGE,
    KEYS,
    TASK_CHECKPOINTS,
    METRIC_COUNT
};

#define GAUGE(what, text, ...)                                                                \
    {                                                                                         \
        .name = "pawl_work_" what, .help = (text), .type = PAWL__GAUGE, .labels = __VA_ARGS__ \
    }

static const struct pawl__metric_def defs[METRIC_COUNT] = {
    [ACTIVE_LEASES] = GAUGE("active_leases", "Items that are leased.", { NULL }),
    [STALE_LEASES] =
        GAUGE("stale_leases", "Leases without a heartbeat for longer than work.stale.", { NULL }),
    [HEARTBEAT_AGE] = GAUGE(
        "heartbeat_age_seconds", "Average time since the last heartbeat of a lease.", { NULL }),
    [CHECKPOINTS] = GAUGE("checkpoints", "Checkpoints of all tasks.", { NULL }),
    [OLDEST_PENDING] = GAUGE("oldest_pending_timestamp_seconds",
                             "When the oldest pending item was submitted; 0 without one.",
                             { NULL }),
    [ITEMS] = GAUGE(
        "items", "Items by type and status.", { "work_type", "status" }, .series_max = SERIES_MAX),
    [ITEM_AGE] = GAUGE("item_age_seconds",
                       "Average age of items by type and status.",
                       { "work_type", "status" },
                       .series_max = SERIES_MAX),
    [KEYS] = GAUGE("idempotency_keys", "Idempotency keys by status.", { "status" }),
    [TASK_CHECKPOINTS] = GAUGE("task_checkpoints",
                               "Checkpoints of the ten tasks that have most.",
                               { "task_id" },
                               .series_max = TASKS_MAX),
};

struct metrics {
    struct pawl__metric *by_id[METRIC_COUNT];
};

/* A series beyond the limit is left out; the others are still shown. */
static void set(struct metrics *metrics, size_t which, const char *const *labels, double value)
{
    struct pawl__series *series = NULL;

    if (pawl__metric_series(metrics->by_id[which], labels, &series, NULL) == PAWL_OK) {
        pawl__gauge_set(series, value);
    }
}

static bool set_type(void *context, const pawl_type_stats *stats)
{
    char type[PAWL_WORK_NAME_BYTES_MAX + 1] = "";
    struct pawl__buf text = BUF_OVER(type);
    const char *labels[] = { type, pawl__work_item_status_text(stats->status) };

    pawl__buf_add(&text, stats->work_type);
    set(context, ITEMS, labels, (double)stats->count);
    set(context, ITEM_AGE, labels, stats->avg_age_hours * 3600);
    return true;
}

static bool set_growth(void *context, const pawl_checkpoint_growth *growth)
{
    char task[PAWL_WORK_NAME_BYTES_MAX + 1] = "";
    struct pawl__buf text = BUF_OVER(task);

    pawl__buf_add(&text, growth->task_id);
    set(context, TASK_CHECKPOINTS, (const char *const[]){ task }, (double)growth->checkpoint_count);
    return true;
}

static void set_stats(struct metrics *metrics, const pawl_work_stats *stats)
{
    set(metrics, ACTIVE_LEASES, NULL, (double)stats->active_leases);
    set(metrics, STALE_LEASES, NULL, (double)stats->stale_leases);
    set(metrics, HEARTBEAT_AGE, NULL, stats->avg_minutes_since_heartbeat * 60);
    set(metrics, CHECKPOINTS, NULL, (double)stats->checkpoints);
    set(metrics, OLDEST_PENDING, NULL, (double)stats->oldest_pending_us / 1e6);
    set(metrics, KEYS, (const char *const[]){ "pending" }, (double)stats->keys_pending);
    set(metrics, KEYS, (const char *const[]){ "completed" }, (double)stats->keys_completed);
    set(metrics, KEYS, (const char *const[]){ "failed" }, (double)stats->keys_failed);
}

pawl_status pawl_work_get_metrics(pawl_work *work,
                                  char **ret_text,
                                  size_t *ret_len,
                                  pawl_error *reterr)
{
    NEED(work, ret_text, reterr);
    AUTO(pawl__metrics_free_p) struct pawl__metrics *registry = NULL;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(TEXT_BYTES_MAX);
    struct metrics metrics;
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    TRY(pawl__metrics_new(&registry, reterr));
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        TRY(pawl__metrics_register(registry, &defs[i], &metrics.by_id[i], reterr));
    }
    if (work->engine.commit != NULL) {
        struct pawl__commit_totals totals = { 0 };

        pawl__commit_totals_add(&totals, work->engine.commit);
        TRY(pawl__commit_metrics_add(&totals, "work", registry, reterr));
    }
    TRY(pawl_work_get_stats(work, &stats, reterr));
    set_stats(&metrics, &stats);
    TRY(pawl_work_type_stats(work, set_type, &metrics, reterr));
    TRY(pawl_work_checkpoint_growth(work, set_growth, &metrics, reterr));
    TRY(pawl__metrics_write(registry, &text, reterr));
    return pawl__buf_hand_out(&text, "metrics", ret_text, ret_len, reterr);
}
