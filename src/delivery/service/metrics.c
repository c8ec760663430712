/* Numbers about all pipelines, for Prometheus. */
#include "base/log/metrics.h"
#include <stdio.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "delivery/service/internal.h"

enum { TEXT_BYTES_MAX = 16 << 20, SERIES_MAX = 8 * PAWL_PIPELINES_MAX };

/* What is counted of one pipeline, copied at one moment. */
struct numbers {
    char name[PAWL_PIPELINE_NAME_BYTES_MAX + 1];
    pawl_pipeline_state state;
    struct delivery_report report;
    struct delivery_wal_stats wal;
    bool has_wal;
    int64_t now_ns;
};

typedef double value_fn(const struct numbers *numbers);

#define VALUE(name_, expression_)                      \
    static double name_(const struct numbers *numbers) \
    {                                                  \
        return (double)(expression_);                  \
    }
VALUE(writes, numbers->report.totals.writes)
VALUE(confirms, numbers->report.totals.confirms)
VALUE(retries, numbers->report.totals.retries)
VALUE(failures, numbers->report.totals.failures)
VALUE(recoveries, numbers->report.totals.recoveries)
VALUE(pending, pawl__delivery_pending(&numbers->report.counters))
VALUE(accepted, numbers->report.counters.accepted)
VALUE(delivered, numbers->report.counters.delivered)
VALUE(filtered, numbers->report.counters.filtered)
VALUE(failed, numbers->report.counters.failed)
VALUE(duplicates, numbers->report.totals.duplicates)
VALUE(conflicts, numbers->report.totals.conflicts)
VALUE(losses, numbers->report.totals.losses)
VALUE(outages, numbers->report.totals.outages)
VALUE(checkpoints, numbers->report.totals.checkpoints)
VALUE(breaker, numbers->report.breaker_is_open)
VALUE(running, numbers->state == PAWL_PIPELINE_RUNNING)
VALUE(applied, numbers->report.applied)
VALUE(checkpoint_age,
      (double)(numbers->now_ns - numbers->report.checkpointed_ns) / (double)NS_PER_S)
VALUE(index_entries, numbers->wal.index_entries)
VALUE(index_bytes, numbers->wal.index_bytes)
VALUE(pending_bytes, numbers->wal.bytes[DELIVERY_PENDING])
VALUE(confirmed_bytes, numbers->wal.bytes[DELIVERY_CONFIRMED])
VALUE(failed_bytes, numbers->wal.bytes[DELIVERY_FAILED])

/* When a pipeline has the number. */
enum need { ALWAYS, REPORTED, RUNS, OPEN_WAL };

struct number {
    struct pawl__metric_def def;
    const char *label; /* the value of the second one; NULL: there is none */
    value_fn *value;
    enum need need;
};

#define COUNTER(name_, help_, value_)        \
    {                                        \
        .def = { .name = (name_),            \
                 .help = (help_),            \
                 .type = PAWL__COUNTER,      \
                 .labels = { "pipeline" },   \
                 .series_max = SERIES_MAX }, \
        .value = (value_), .need = REPORTED  \
    }
#define GAUGE(name_, help_, value_, need_)   \
    {                                        \
        .def = { .name = (name_),            \
                 .help = (help_),            \
                 .type = PAWL__GAUGE,        \
                 .labels = { "pipeline" },   \
                 .series_max = SERIES_MAX }, \
        .value = (value_), .need = (need_)   \
    }
#define PART(name_, help_, label_, what_, value_, need_)     \
    {                                                        \
        .def = { .name = (name_),                            \
                 .help = (help_),                            \
                 .type = PAWL__GAUGE,                        \
                 .labels = { "pipeline", (label_) },         \
                 .series_max = SERIES_MAX },                 \
        .label = (what_), .value = (value_), .need = (need_) \
    }

#define EVENTS "pawl_delivery_events"
#define EVENTS_HELP "Events by what became of them; accepted is the sum of the others."
#define WAL_BYTES "pawl_delivery_wal_bytes"
#define WAL_BYTES_HELP "Bytes of entries in the write-ahead log."

static const struct number numbers_of_pipelines[] = {
    COUNTER("consumer_wal_writes_total", "Entries written to the write-ahead log.", writes),
    COUNTER("consumer_wal_confirms_total", "Entries that the sink has committed.", confirms),
    COUNTER("consumer_wal_retries_total", "Attempts after the first.", retries),
    COUNTER("consumer_wal_failures_total", "Events that went to failed_events.", failures),
    COUNTER("consumer_wal_recoveries_total", "Entries that a start recovered.", recoveries),
    GAUGE("consumer_wal_pending_entries", "Entries that are in no table yet.", pending, REPORTED),
    PART(EVENTS, EVENTS_HELP, "state", "accepted", accepted, REPORTED),
    PART(EVENTS, EVENTS_HELP, "state", "delivered", delivered, REPORTED),
    PART(EVENTS, EVENTS_HELP, "state", "filtered", filtered, REPORTED),
    PART(EVENTS, EVENTS_HELP, "state", "failed", failed, REPORTED),
    PART(EVENTS, EVENTS_HELP, "state", "pending", pending, REPORTED),
    COUNTER("pawl_delivery_duplicates_total", "Messages that were known already.", duplicates),
    COUNTER("pawl_delivery_conflicts_total", "Ids that came with another payload.", conflicts),
    COUNTER("pawl_delivery_losses_total", "Rows of delivery_losses: what a source lost.", losses),
    COUNTER("pawl_delivery_outages_total", "Outages of the sink.", outages),
    COUNTER("pawl_delivery_checkpoints_total", "Checkpoints of the DuckDB file.", checkpoints),
    GAUGE("pawl_delivery_running", "1 while the pipeline runs.", running, ALWAYS),
    GAUGE("pawl_delivery_breaker_open", "1 while the sink is away.", breaker, REPORTED),
    GAUGE("pawl_delivery_applied_lsn", "The last entry that the sink has.", applied, REPORTED),
    GAUGE("pawl_delivery_checkpoint_age_seconds",
          "Since the last checkpoint, or the start.",
          checkpoint_age,
          RUNS),
    GAUGE("pawl_delivery_index_entries",
          "Ids that duplicates are found by.",
          index_entries,
          OPEN_WAL),
    GAUGE("pawl_delivery_index_bytes", "Bytes of those ids.", index_bytes, OPEN_WAL),
    PART(WAL_BYTES, WAL_BYTES_HELP, "state", "pending", pending_bytes, OPEN_WAL),
    PART(WAL_BYTES, WAL_BYTES_HELP, "state", "confirmed", confirmed_bytes, OPEN_WAL),
    PART(WAL_BYTES, WAL_BYTES_HELP, "state", "failed", failed_bytes, OPEN_WAL),
};

static bool has_number(const struct numbers *of, enum need need)
{
    switch (need) {
    case ALWAYS:
        return true;
    case REPORTED:
        return of->report.pairing != NULL;
    case RUNS:
        return of->report.pairing != NULL && of->state == PAWL_PIPELINE_RUNNING;
    case OPEN_WAL:
        break;
    }
    return of->has_wal;
}

/* --- copying them --- */

/* Held while it is looked at: whoever closes a log waits for its reader, which waits for nobody. */
static void read_wal(struct delivery_runner *runner, struct numbers *numbers)
{
    pawl__lock(&runner->wal_lock);
    struct delivery_wal *wal = runner->wal;
    numbers->has_wal = wal != NULL && wal->ops->stats(wal, &numbers->wal, NULL) == PAWL_OK;
    pawl__unlock(&runner->wal_lock);
}

static void read_report(struct delivery_runner *runner, struct numbers *numbers)
{
    pawl__lock(&runner->delivery->lock);
    (void)snprintf(numbers->name, sizeof(numbers->name), "%s", runner->declared.is.name.data);
    numbers->state = runner->state;
    numbers->report = runner->report;
    pawl__unlock(&runner->delivery->lock);
    numbers->now_ns = pawl__monotonic_ns(runner->delivery->clock);
}

/* The next one after `before` (NULL: the first), held; the other one is let go. */
static struct delivery_runner *step(struct pawl_delivery *delivery, struct delivery_runner *before)
{
    pawl__lock(&delivery->lock);
    struct delivery_runner *next = before == NULL ? delivery->runners : before->next;
    if (before != NULL) {
        before->waiting--;
        pawl__cond_broadcast(&delivery->changed);
        next = before->is_gone ? NULL : next; /* the list went on without it */
    }
    if (next != NULL) {
        next->waiting++;
    }
    pawl__unlock(&delivery->lock);
    return next;
}

/* --- writing them --- */

struct writer {
    struct pawl__metrics *registry;
    struct pawl__metric *metrics[COUNT_OF(numbers_of_pipelines)];
};

/* Consecutive rows of one name are one metric. */
static pawl_status register_all(struct writer *writer, pawl_error *reterr)
{
    for (size_t i = 0; i < COUNT_OF(numbers_of_pipelines); i++) {
        const struct number *number = &numbers_of_pipelines[i];
        const struct number *before = i == 0 ? NULL : number - 1;

        if (before != NULL && number->label != NULL && before->label != NULL
            && number->def.name == before->def.name) {
            writer->metrics[i] = writer->metrics[i - 1];
            continue;
        }
        TRY(pawl__metrics_register(writer->registry, &number->def, &writer->metrics[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status add_numbers(struct writer *writer, const struct numbers *of, pawl_error *reterr)
{
    for (size_t i = 0; i < COUNT_OF(numbers_of_pipelines); i++) {
        const struct number *number = &numbers_of_pipelines[i];
        const char *labels[] = { of->name, number->label };
        struct pawl__series *series = NULL;

        if (!has_number(of, number->need)) {
            continue;
        }
        TRY(pawl__metric_series(writer->metrics[i], labels, &series, reterr));
        if (number->def.type == PAWL__COUNTER) {
            pawl__counter_add(series, (uint64_t)number->value(of));
        } else {
            pawl__gauge_set(series, number->value(of));
        }
    }
    return PAWL_OK;
}

static pawl_status add_all(struct pawl_delivery *delivery,
                           struct writer *writer,
                           pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    struct delivery_runner *runner = step(delivery, NULL);

    while (runner != NULL) {
        struct numbers numbers = { .has_wal = false };

        read_report(runner, &numbers);
        read_wal(runner, &numbers);
        status = status == PAWL_OK ? add_numbers(writer, &numbers, reterr) : status;
        runner = step(delivery, runner);
    }
    return status;
}

pawl_status pawl_delivery_get_metrics(pawl_delivery *delivery,
                                      char **ret_text,
                                      size_t *ret_len,
                                      pawl_error *reterr)
{
    NEED(delivery, ret_text, reterr);
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(TEXT_BYTES_MAX);
    AUTO(pawl__metrics_free_p) struct pawl__metrics *registry = NULL;
    struct writer writer;

    TRY(pawl__metrics_new(&registry, reterr));
    writer.registry = registry;
    TRY(register_all(&writer, reterr));
    pawl__calls_enter(&delivery->calls);
    pawl_status status = add_all(delivery, &writer, reterr);
    pawl__calls_leave(&delivery->calls);
    TRY(status);
    TRY(pawl__metrics_write(registry, &text, reterr));
    return pawl__buf_hand_out(&text, "the metrics", ret_text, ret_len, reterr);
}
