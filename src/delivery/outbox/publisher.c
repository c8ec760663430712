#include "delivery/outbox/publisher.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "delivery/outbox/nats.h"
#include "delivery/outbox/rocksdb.h"

enum {
    ANSWER_WAIT_MS =
        200, /* how long a step waits for answers before it looks whether it shall stop */
    BACKOFF_GROWS = 60, /* the longest wait is so many times the first */
    ID_BYTES = 128,     /* of the rows of an id */
};

/* --- ending --- */

static void publisher_free(struct pawl_publisher *publisher)
{
    pawl__delivery_outbox_loop_free(publisher->loop);
    if (publisher->broker != NULL) {
        publisher->broker->ops->close(publisher->broker);
    }
    if (publisher->store != NULL) {
        publisher->store->ops->close(publisher->store);
    }
    pawl__arena_done(&publisher->texts);
    pawl__lock_done(&publisher->append_lock);
    pawl__lock_cond_done(&publisher->lock, &publisher->changed);
    free(publisher);
}

/* The last owner ends it. */
static void publisher_leave(struct pawl_publisher *publisher)
{
    pawl__lock(&publisher->lock);
    bool last = --publisher->owners == 0;
    pawl__unlock(&publisher->lock);
    if (last) {
        publisher_free(publisher);
    }
}

static void publisher_free_p(struct pawl_publisher **publisher)
{
    if (*publisher != NULL) {
        publisher_free(*publisher);
    }
}

/* --- the thread --- */

/* False: it shall stop. */
static bool report_step(struct pawl_publisher *publisher,
                        pawl_status status,
                        const pawl_error *error)
{
    pawl__lock(&publisher->lock);
    publisher->progress = *pawl__delivery_outbox_loop_progress(publisher->loop);
    bool passes = status == PAWL_OK || status == PAWL_NOMEM || status == PAWL_NO_SPACE;
    if (status != PAWL_OK) {
        publisher->progress.error = *error;
        publisher->broken = passes ? publisher->broken : *error;
    }
    bool goes_on = passes && !publisher->stop;
    pawl__cond_broadcast(&publisher->changed);
    pawl__unlock(&publisher->lock);
    return goes_on;
}

/* Until something is due, an event was appended, or it shall stop. */
static void wait_for_work(struct pawl_publisher *publisher, uint64_t *appends, int64_t due_ns)
{
    pawl__lock(&publisher->lock);
    while (!publisher->stop && !publisher->hurry && publisher->appends == *appends
           && pawl__monotonic_ns(publisher->clock) < due_ns) {
        pawl__cond_wait_on(publisher->clock, &publisher->changed, &publisher->lock, due_ns);
    }
    bool hurry = publisher->hurry;
    publisher->hurry = false;
    *appends = publisher->appends;
    pawl__unlock(&publisher->lock);
    if (hurry) {
        pawl__delivery_outbox_loop_hurry(publisher->loop);
    }
}

static void run(void *context)
{
    struct pawl_publisher *publisher = context;
    uint64_t appends = 0;
    bool goes_on = true;

    while (goes_on) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl__delivery_outbox_loop_step(publisher->loop, ANSWER_WAIT_MS, &error);
        int64_t due_ns = pawl__delivery_outbox_loop_due_ns(publisher->loop);
        if (status != PAWL_OK) { /* no memory, or no space: it may pass */
            due_ns = pawl__monotonic_ns(publisher->clock) + NS_PER_S;
        }
        goes_on = report_step(publisher, status, &error);
        if (goes_on) {
            wait_for_work(publisher, &appends, due_ns);
        }
    }
    pawl_status synced = publisher->store->ops->sync(publisher->store, NULL);
    (void)synced; /* lost, acknowledgements are found out again */
    publisher_leave(publisher);
}

/* --- opening --- */

static pawl_status copy_text(struct pawl__arena *arena, const char **text, pawl_error *reterr)
{
    pawl_view copy;

    if (*text == NULL || (*text)[0] == '\0') {
        *text = NULL;
        return PAWL_OK;
    }
    if (!pawl__arena_copy(arena, pawl_view_of(*text), &copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for options");
    }
    *text = copy.data;
    return PAWL_OK;
}

static pawl_status copy_texts(struct pawl_publisher *publisher, pawl_error *reterr)
{
    pawl_publisher_options *options = &publisher->options;
    const char **const texts[] = {
        &options->servers,      &options->source,      &options->user,
        &options->password,     &options->token,       &options->nkey_seed_file,
        &options->creds_file,   &options->tls_ca_file, &options->tls_cert_file,
        &options->tls_key_file,
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(copy_text(&publisher->texts, texts[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status check_options(const pawl_publisher_options *o, pawl_error *reterr)
{
    const struct {
        const char *name;
        uint64_t value;
        uint64_t min;
        uint64_t max;
    } ranges[] = {
        { "partitions", o->partitions, 0, PAWL_PUBLISHER_PARTITIONS_MAX },
        { "payload_max", o->payload_max, 1, PAWL_PUBLISHER_PAYLOAD_MAX },
        { "bytes_max", o->bytes_max, 1 << 20, INT64_MAX },
        { "keep_ms", o->keep_ms, 1, UINT32_MAX },
        { "check_ms", o->check_ms, 10, UINT32_MAX },
        { "retry_ms", o->retry_ms, 1, 3600000 },
        { "attempts_max", o->attempts_max, 1, UINT32_MAX },
        { "dedupe_ms", o->dedupe_ms, 0, INT64_MAX / NS_PER_MS },
        { "dedupe_bytes_max", o->dedupe_bytes_max, 1 << 20, INT64_MAX },
        { "close_ms_max", o->close_ms_max, 1, 3600000 },
        { "memtable_bytes", o->memtable_bytes, 64 << 10, INT64_C(1) << 32 },
        { "blob_file_bytes", o->blob_file_bytes, 1 << 20, INT64_C(1) << 40 },
        { "background_jobs", o->background_jobs, 1, 64 },
        { "free_space_min", o->free_space_min, 0, INT64_MAX },
    };

    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        TRY(pawl__check_range(ranges[i].name,
                              (int64_t)MIN(ranges[i].value, (uint64_t)INT64_MAX),
                              (int64_t)ranges[i].min,
                              (int64_t)ranges[i].max,
                              reterr));
    }
    if (o->read_only && o->servers != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "servers: must be NULL with read_only");
    }
    return o->source == NULL
               ? PAWL_OK
               : pawl__delivery_publisher_check_source(pawl_view_of(o->source), reterr);
}

static pawl_status open_store(struct pawl_publisher *publisher,
                              const char *directory,
                              pawl_error *reterr)
{
    const pawl_publisher_options *options = &publisher->options;
    const struct delivery_rocksdb_options native = {
        .memtable_bytes = options->memtable_bytes,
        .background_jobs = (int)options->background_jobs,
        .blob_file_bytes = options->blob_file_bytes,
        .no_compression = options->no_compression,
        .unsafe_no_sync = options->unsafe_no_sync,
        .read_only = options->read_only,
        .free_space_min = options->free_space_min,
        .close_timeout_ns = options->close_ms_max * NS_PER_MS,
        .clock = publisher->clock,
    };
    struct outbox_stats stats;

    TRY(pawl__delivery_outbox_rocksdb_open(directory, &native, &publisher->store, reterr));
    TRY(publisher->store->ops->stats(publisher->store, &stats, reterr));
    publisher->ran_ns = stats.running_ns;
    return PAWL_OK;
}

static pawl_status open_loop(struct pawl_publisher *publisher, pawl_error *reterr)
{
    const pawl_publisher_options *options = &publisher->options;
    const struct outbox_nats_options nats = { options->servers, &publisher->connection };
    int64_t retry_ns = options->retry_ms * NS_PER_MS;
    const struct outbox_loop_options loop = {
        .limits = { .backoff = { retry_ns, BACKOFF_GROWS * retry_ns },
                    .attempts_max = options->attempts_max },
        .keep_ns = options->keep_ms * NS_PER_MS,
        .check_ns = options->check_ms * NS_PER_MS,
        .horizon_ns = (int64_t)options->dedupe_ms * NS_PER_MS,
        .ids_max = options->dedupe_bytes_max / ID_BYTES,
        .seed = (uint64_t)publisher->opened_ns,
    };

    publisher->connection = (struct pawl__nats_options){
        .name = "pawl publish",
        .user = options->user,
        .password = options->password,
        .token = options->token,
        .nkey_seed_file = options->nkey_seed_file,
        .creds_file = options->creds_file,
        .tls = { .ca_file = options->tls_ca_file,
                 .cert_file = options->tls_cert_file,
                 .key_file = options->tls_key_file },
        .clock = publisher->clock,
    };
    TRY(pawl__delivery_outbox_nats_new(&nats, &publisher->broker, reterr));
    return pawl__delivery_outbox_loop_new(
        publisher->store, publisher->broker, publisher->clock, &loop, &publisher->loop, reterr);
}

static struct pawl_publisher *publisher_new(void)
{
    struct pawl_publisher *publisher = calloc(1, sizeof(*publisher));

    if (publisher != NULL) {
        pawl__lock_init(&publisher->append_lock);
        pawl__lock_cond_init(&publisher->lock, &publisher->changed);
        publisher->owners = 1;
        publisher->progress.error = (pawl_error)PAWL_ERROR_INIT;
        publisher->broken = (pawl_error)PAWL_ERROR_INIT;
        publisher->options = (pawl_publisher_options)PAWL_PUBLISHER_OPTIONS_INIT;
        publisher->clock = pawl__clock_or_real(NULL);
        publisher->opened_ns = pawl__monotonic_ns(publisher->clock);
    }
    return publisher;
}

static pawl_status start_thread(struct pawl_publisher *publisher, pawl_error *reterr)
{
    TRY(open_loop(publisher, reterr));
    publisher->owners = 2; /* nobody else knows it yet */
    pawl_status status =
        pawl__thread_start(&publisher->thread, "pawl-outbox", run, publisher, reterr);
    publisher->owners = status == PAWL_OK ? 2 : 1;
    return status;
}

pawl_status pawl_publisher_open(const char *directory,
                                const pawl_publisher_options *options,
                                pawl_publisher **ret_publisher,
                                pawl_error *reterr)
{
    AUTO(publisher_free_p) struct pawl_publisher *publisher = publisher_new();

    NEED_TEXT(directory, reterr);
    NEED(ret_publisher, reterr);
    TRY(pawl__check_memory(publisher, "a publisher", reterr));
    TRY(pawl__take_sized(
        "options", options, &publisher->options, sizeof(publisher->options), reterr));
    TRY(copy_texts(publisher, reterr));
    TRY(check_options(&publisher->options, reterr));
    TRY(open_store(publisher, directory, reterr));
    TRY(publisher->options.servers == NULL ? PAWL_OK : start_thread(publisher, reterr));
    *ret_publisher = STEAL(publisher);
    return PAWL_OK;
}

/* --- calls --- */

static void wake(struct pawl_publisher *publisher, bool hurry)
{
    pawl__lock(&publisher->lock);
    publisher->appends++;
    publisher->hurry = publisher->hurry || hurry;
    pawl__cond_broadcast(&publisher->changed);
    pawl__unlock(&publisher->lock);
}

static pawl_status publish(struct pawl_publisher *publisher,
                           const pawl_outgoing *events,
                           size_t count,
                           pawl_published *ret_results,
                           pawl_error *reterr)
{
    static const pawl_outgoing none = PAWL_OUTGOING_INIT;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    const void *wide = events;

    TRY(pawl__widen_sized("events", &wide, count, &none, sizeof(none), &arena, reterr));
    pawl_published *results = pawl__arena_take(&arena, count * sizeof(*results));
    TRY(pawl__check_memory(results, "results", reterr));
    TRY(pawl__delivery_publisher_accept(publisher, wide, count, results, reterr));
    pawl__give_sized_array(results, count, sizeof(*results), ret_results);
    return PAWL_OK;
}

pawl_status pawl_publisher_publish(pawl_publisher *publisher,
                                   const pawl_outgoing *events,
                                   size_t count,
                                   pawl_published *ret_results,
                                   pawl_error *reterr)
{
    NEED(publisher, reterr);
    NEED_ARRAY(events, count, reterr);
    TRY(pawl__check_limit("events: there are", count, "", PAWL_PUBLISHER_BATCH_MAX, reterr));
    TRY(pawl__check_sized("ret_results", count == 0 ? NULL : ret_results, reterr));
    if (count == 0) {
        return PAWL_OK;
    }
    if (publisher->options.read_only) {
        return pawl__fail(reterr, PAWL_DENIED, "the outbox was opened to be read");
    }
    TRY(publish(publisher, events, count, ret_results, reterr));
    wake(publisher, false);
    return PAWL_OK;
}

static pawl_status fail_waiting(uint64_t pending, const pawl_error *why, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_TIMEOUT,
                      "%llu events still wait in the outbox%s%s",
                      (unsigned long long)pending,
                      why->status == PAWL_OK ? "" : ": ",
                      why->status == PAWL_OK ? "" : why->message);
}

/* *ret_done: nothing is pending. A failure ends the wait. */
static pawl_status is_flushed(struct pawl_publisher *publisher,
                              uint64_t *ret_pending,
                              pawl_error *reterr)
{
    struct outbox_stats stats;

    TRY(publisher->store->ops->stats(publisher->store, &stats, reterr));
    *ret_pending = stats.pending;
    if (stats.pending == 0) {
        return PAWL_OK;
    }
    if (publisher->broken.status != PAWL_OK) {
        return pawl__fail_with(reterr, publisher->broken.status, &publisher->broken);
    }
    return publisher->broker != NULL
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_UNAVAILABLE,
                            "%llu events wait in the outbox, and no servers were named",
                            (unsigned long long)stats.pending);
}

pawl_status pawl_publisher_flush(pawl_publisher *publisher, uint32_t timeout_ms, pawl_error *reterr)
{
    NEED(publisher, reterr);
    int64_t deadline_ns = pawl__monotonic_ns(publisher->clock) + timeout_ms * NS_PER_MS;
    uint64_t pending = 0;

    pawl__lock(&publisher->lock);
    pawl_status status = is_flushed(publisher, &pending, reterr);
    while (status == PAWL_OK && pending > 0
           && pawl__cond_wait_until(&publisher->changed, &publisher->lock, deadline_ns)) {
        status = is_flushed(publisher, &pending, reterr);
    }
    pawl_error why = publisher->progress.error;
    pawl__unlock(&publisher->lock);
    return status != PAWL_OK || pending == 0 ? status : fail_waiting(pending, &why, reterr);
}

pawl_status pawl_publisher_get_status(pawl_publisher *publisher,
                                      pawl_publisher_status *ret_status,
                                      pawl_error *reterr)
{
    struct outbox_stats stats;
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;

    NEED(publisher, reterr);
    NEED(ret_status, reterr);
    TRY(pawl__check_sized("ret_status", ret_status, reterr));
    TRY(publisher->store->ops->stats(publisher->store, &stats, reterr));
    pawl__lock(&publisher->lock);
    struct outbox_progress progress = publisher->progress;
    pawl__unlock(&publisher->lock);
    status.connected = progress.connected;
    status.accepted = stats.last;
    status.pending = stats.pending;
    status.pending_bytes = stats.pending_bytes;
    status.kept = stats.kept;
    status.kept_bytes = stats.kept_bytes;
    status.failed = stats.failed;
    status.failed_bytes = stats.failed_bytes;
    status.ids = stats.ids;
    status.published = progress.published;
    status.republished = progress.republished;
    status.last_error = progress.error;
    pawl__give_sized(&status, sizeof(status), ret_status);
    return PAWL_OK;
}

static pawl_failed_outgoing describe_failed(const struct outbox_failed *failed,
                                            const struct outbox_entry *entry)
{
    return (pawl_failed_outgoing){ .size = sizeof(pawl_failed_outgoing),
                                   .number = failed->number,
                                   .failed_us = failed->failed_us,
                                   .subject = entry->subject,
                                   .source = entry->source,
                                   .event_id = entry->event_id,
                                   .sequence = entry->sequence,
                                   .payload = entry->payload,
                                   .reason = pawl_view_of(failed->reason) };
}

pawl_status pawl_publisher_list_failed(pawl_publisher *publisher,
                                       pawl_page *page,
                                       pawl_failed_outgoing_visit visit,
                                       void *context,
                                       pawl_error *reterr)
{
    NEED(publisher, visit, reterr);
    struct pawl__page walk;
    struct outbox_store *store = publisher->store;
    AUTO(pawl__delivery_outbox_read_done) struct outbox_read read = OUTBOX_READ_INIT;
    struct outbox_failed failed;
    bool found = true;
    bool goes_on = true;

    TRY(pawl__page_take(page, &walk, reterr));
    uint64_t from = walk.page.from;
    while (goes_on) {
        TRY(store->ops->next_failed(store, from, &failed, &found, reterr));
        if (!found) {
            break;
        }
        from = failed.number + 1;
        TRY(store->ops->read(store, failed.number, &read, &found, reterr));
        if (found) {
            pawl_failed_outgoing shown = describe_failed(&failed, &read.entry);
            goes_on = pawl__page_admits(&walk, failed.number)
                      && pawl__page_show(&walk, visit(context, &shown));
        }
    }
    pawl__page_answer(&walk, page);
    return PAWL_OK;
}

pawl_status pawl_publisher_retry_failed(pawl_publisher *publisher,
                                        uint64_t *ret_count,
                                        pawl_error *reterr)
{
    uint64_t count = 0;

    NEED(publisher, reterr);
    if (publisher->options.read_only) {
        return pawl__fail(reterr, PAWL_DENIED, "the outbox was opened to be read");
    }
    pawl__lock(&publisher->append_lock);
    pawl_status status = publisher->store->ops->retry(publisher->store, &count, reterr);
    pawl__unlock(&publisher->append_lock);
    TRY(status);
    if (ret_count != NULL) {
        *ret_count = count;
    }
    wake(publisher, true);
    return PAWL_OK;
}

pawl_status pawl_publisher_close(pawl_publisher *publisher, uint32_t timeout_ms, pawl_error *reterr)
{
    if (publisher == NULL) {
        return PAWL_OK;
    }
    uint32_t bound_ms = timeout_ms == 0 ? publisher->options.close_ms_max : timeout_ms;
    int64_t deadline_ns = pawl__monotonic_ns(publisher->clock) + bound_ms * NS_PER_MS;
    pawl__lock(&publisher->lock);
    publisher->stop = true;
    pawl__cond_broadcast(&publisher->changed);
    pawl__unlock(&publisher->lock);
    bool ended = pawl__thread_join_until(&publisher->thread, deadline_ns);
    if (!ended) {
        pthread_detach(publisher->thread.id);
    }
    publisher_leave(publisher); /* a thread that still waits for the broker ends it later */
    return ended
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_TIMEOUT,
                            "the publisher did not end within %u ms; what it held is in the outbox",
                            bound_ms);
}
