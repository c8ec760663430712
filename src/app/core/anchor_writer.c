/* The anchor of an open application: compared with the logs when it is opened, written by a thread of its own
 * after the partitions have written.
 *
 * A write that fails is repeated with the next events, which are durable whatever becomes of the anchor. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/core/format.h"
#include "app/core/internal.h"
#include "base/core/error.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"

#define WRITE_EVERY_NS (500 * NS_PER_MS) /* promised: within a second */
enum { READ_MS_MAX = 2000 };

/* --- reading --- */

static void start_anchor(struct pawl_app *app, bool found)
{
    const pawl_app_descriptor *descriptor = &app->definition.descriptor;
    struct app_anchor *anchor = &app->anchor_writer.anchor;
    bool older = found && app->format == APP_FORMAT_BARE;

    memset(anchor, 0, sizeof(*anchor));
    snprintf(anchor->name, sizeof(anchor->name), "%s", descriptor->name);
    anchor->id = descriptor->id;
    anchor->partitions = descriptor->partitions;
    anchor->born_us = older ? 0 : (uint64_t)pawl__wall_us(app->clock);
    anchor->has_descriptor = true;
    anchor->descriptor = app->stored_descriptor;
}

static pawl_status parse_anchor(const pawl_app_descriptor *descriptor,
                                pawl_view text,
                                struct app_anchor *ret_anchor,
                                pawl_error *reterr)
{
    TRY(pawl__app_anchor_parse(text, ret_anchor, reterr));
    if ((ret_anchor->id != descriptor->id || strcmp(ret_anchor->name, descriptor->name) != 0
         || ret_anchor->partitions != descriptor->partitions)) {
        TRY(pawl__fail(reterr,
                       PAWL_CORRUPT,
                       "it is that of application '%s' with id %" PRIu32,
                       ret_anchor->name,
                       ret_anchor->id));
    }
    return PAWL_OK;
}

pawl_status pawl__app_anchor_read(const struct pawl_app *app,
                                  struct app_anchor *ret_anchor,
                                  bool *ret_known,
                                  pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    pawl_status status = app->store->ops->read_anchor(app->store, &text, reterr);

    *ret_known = status == PAWL_OK && text.len > 0;
    if (*ret_known) {
        status =
            parse_anchor(&app->definition.descriptor, pawl__buf_view(&text), ret_anchor, reterr);
    }
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    pawl__fail_context(reterr, status, "the anchor (%s)", app->store->anchor_name);
    return status == PAWL_CORRUPT
               ? pawl__fail_advise_default(reterr,
                                           status,
                                           "restore it from a backup; or check the application "
                                           "with 'pawl seq verify --all', then remove the anchor, "
                                           "which is written anew")
               : status;
}

/* An anchor that cannot be read is reported later, when the application is known. */
pawl_status pawl__app_anchor_compare_descriptor(struct app_store *store,
                                                const struct pawl__sha256 *stored,
                                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor;
    pawl_status status = store->ops->read_anchor(store, &text, NULL);

    return status == PAWL_OK && text.len > 0
                   && pawl__app_anchor_parse(pawl__buf_view(&text), &anchor, NULL) == PAWL_OK
               ? pawl__app_anchor_check_descriptor(&anchor, stored, store->anchor_name, reterr)
               : PAWL_OK;
}

/* The event at an offset, its hash. *ret_found false: there is none. */
static pawl_status hash_event(const struct pawl_app *app,
                              uint16_t partition,
                              uint64_t offset,
                              bool *ret_found,
                              struct pawl__sha256 *ret_hash,
                              pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_store *store = app->store;
    struct app_key key = pawl__app_key_plog(app->definition.descriptor.id, partition, offset);
    pawl_view view = pawl__app_key_view(&key);
    struct app_value value = { .found = false };
    const struct app_lookup lookup = {
        .family = APP_PLOG,
        .keys = &view,
        .count = 1,
        .deadline_ns = pawl__monotonic_ns(app->wait_clock) + READ_MS_MAX * NS_PER_MS,
    };

    TRY(store->ops->get_many(store, &lookup, &arena, &value, reterr));
    *ret_found = value.found;
    return value.found ? pawl__sha256(value.bytes, ret_hash, reterr) : PAWL_OK;
}

pawl_status pawl__app_anchor_compare(const struct pawl_app *app,
                                     const struct app_anchor *anchor,
                                     uint16_t partition,
                                     pawl_error *reterr)
{
    const struct app_log_end *end = &anchor->ends[partition];
    uint32_t id = app->definition.descriptor.id;
    const struct app_seq seq = { .store = app->store, .app = id, .partition = partition };
    struct pawl__sha256 hash;
    uint64_t last = 0;
    bool found = false;

    if (end->offset == 0) {
        return PAWL_OK;
    }
    TRY(hash_event(app, partition, end->offset, &found, &hash, reterr));
    if (found) {
        return pawl__sha256_equal(&hash, &end->hash)
                   ? PAWL_OK
                   : pawl__fail_advised(
                       reterr,
                       PAWL_CORRUPT,
                       "the event at offset %" PRIu64 " of the log of partition %u is not "
                       "the one that the anchor knows; restore it, or to continue with this "
                       "one remove the anchor (%s)",
                       end->offset,
                       partition,
                       app->store->anchor_name);
    }
    TRY(pawl__app_seq_end(&seq, &last, reterr));
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "cut off: the log of partition %u ends at offset %" PRIu64 ", its anchor is at %" PRIu64
        "; restore it, or to continue with what is left remove the anchor (%s)",
        partition,
        last,
        end->offset,
        app->store->anchor_name);
}

static pawl_status compare_all(const struct pawl_app *app, bool found, pawl_error *reterr)
{
    const struct app_anchor *anchor = &app->anchor_writer.anchor;

    TRY(found ? PAWL_OK : pawl__app_anchor_check_new(anchor, app->store->anchor_name, reterr));
    for (uint16_t i = 0; found && i < anchor->partitions; i++) {
        TRY(pawl__app_anchor_compare(app, anchor, i, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__app_anchor_load(struct pawl_app *app, bool found, pawl_error *reterr)
{
    const struct app_store_ops *ops = app->store->ops;

    start_anchor(app, found);
    if (app->options.read_only) { /* pawl_app_verify compares it */
        return PAWL_OK;
    }
    struct app_anchor stored;
    bool known = false;

    TRY(pawl__app_anchor_read(app, &stored, &known, reterr));
    if (known) {
        app->anchor_writer.known = stored.has_descriptor; /* an older one is written anew */
        stored.has_descriptor = true;
        stored.descriptor = app->stored_descriptor; /* which was compared */
        app->anchor_writer.anchor = stored;
    }
    if (ops->check_neighbours != NULL) {
        TRY(ops->check_neighbours(app->store, &app->anchor_writer.anchor, reterr));
    }
    return compare_all(app, found, reterr);
}

/* --- writing --- */

void pawl__app_anchor_writer_note(struct app_partition *partition, uint64_t offset)
{
    atomic_store_explicit(&partition->written, offset, memory_order_release);
    pawl__watch_bump(&partition->app->anchor_writer.watch);
}

/* *ret_moved when there is something to write. */
static pawl_status advance(struct pawl_app *app,
                           struct app_anchor *anchor,
                           bool *ret_moved,
                           pawl_error *reterr)
{
    for (uint16_t i = 0; i < anchor->partitions; i++) {
        struct app_log_end *end = &anchor->ends[i];
        uint64_t offset = atomic_load_explicit(&app->partitions[i].written, memory_order_acquire);
        bool found = false;
        if (offset <= end->offset) {
            continue;
        }
        TRY(hash_event(app, i, offset, &found, &end->hash, reterr));
        if (!found) {
            return PAWL_OK;
        }
        end->offset = offset;
        *ret_moved = true;
    }
    return PAWL_OK;
}

static pawl_status write_anchor(struct pawl_app *app, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor = app->anchor_writer.anchor;
    bool moved = !app->anchor_writer.known;

    TRY(advance(app, &anchor, &moved, reterr));
    if (!moved) {
        return PAWL_OK;
    }
    pawl__app_anchor_write(&anchor, &text);
    TRY(pawl__buf_check(&text, "the anchor", reterr));
    FAILPOINT("app.anchor.write.before", reterr);
    TRY(app->store->ops->write_anchor(app->store, pawl__buf_view(&text), reterr));
    app->anchor_writer.anchor = anchor;
    app->anchor_writer.known = true;
    return PAWL_OK;
}

/* No caller learns of it: logs a line when it begins to fail, and one when it no longer does. */
static pawl_status write_and_log(struct pawl_app *app)
{
    struct app_anchor_writer *writer = &app->anchor_writer;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = write_anchor(app, &error);
    bool failed = status != PAWL_OK;
    bool ours =
        status != PAWL_LEASE_LOST && status != PAWL_CANCELLED; /* else it is logged elsewhere */

    if (failed && !writer->failing && ours) {
        LOG_WARNING(
            "the anchor of an application cannot be written now: a cut of its log would not be "
            "noticed",
            LOG_TEXT("application", app->definition.descriptor.name),
            LOG_TEXT("anchor", app->store->anchor_name),
            LOG_TEXT("error", error.message));
    } else if (!failed && writer->failing) {
        LOG_INFO("the anchor of an application is written again",
                 LOG_TEXT("application", app->definition.descriptor.name));
    }
    writer->failing = failed;
    return status;
}

/* Writes once more when it is told to end: on this thread, so that closing waits for a disk that hangs no longer
 * than its caller allows. */
static void run_writer(void *context)
{
    struct pawl_app *app = context;
    struct app_anchor_writer *writer = &app->anchor_writer;
    uint32_t settled = pawl__watch_generation(&writer->watch);

    while (!pawl__cancelled(&writer->cancel)) {
        pawl__watch_wait(&writer->watch, settled, INT64_MAX);
        uint32_t generation = pawl__watch_generation(&writer->watch);
        int64_t next_ns = pawl__monotonic_ns(app->wait_clock) + WRITE_EVERY_NS;
        if (!pawl__cancel_wait_until(&writer->cancel, next_ns) && write_and_log(app) == PAWL_OK) {
            settled = generation;
        }
    }
    if (writer->started) {
        (void)write_and_log(app);
    }
}

void pawl__app_anchor_writer_init(struct pawl_app *app)
{
    pawl__watch_init(&app->anchor_writer.watch, NULL, NULL);
    pawl__cancel_init(&app->anchor_writer.cancel, NULL);
    app->anchor_writer.ready = true;
}

/* An anchor that says more than a power cut leaves would be a false alarm. */
static bool writes_anchor(const struct pawl_app *app)
{
    return !app->options.read_only && !app->options.unsafe_no_sync;
}

pawl_status pawl__app_anchor_writer_start(struct pawl_app *app, pawl_error *reterr)
{
    if (!writes_anchor(app)) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < app->partition_count; i++) {
        uint64_t offset = 0;
        TRY(pawl__app_seq_end(&app->partitions[i].seq, &offset, reterr));
        atomic_store(&app->partitions[i].written, offset);
    }
    /* So that others see it. A full disk is reported by the commands. */
    if (write_and_log(app) == PAWL_NOMEM) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an anchor");
    }
    app->anchor_writer.started = true;
    return pawl__thread_start(&app->anchor_writer.thread, "pawl-anchor", run_writer, app, reterr);
}

bool pawl__app_anchor_writer_stop(struct pawl_app *app, int64_t deadline_ns)
{
    struct app_anchor_writer *writer = &app->anchor_writer;

    if (writer->ready) {
        pawl__cancel_now(&writer->cancel);
        pawl__watch_bump(&writer->watch);
    }
    if (!pawl__thread_join_until(&writer->thread, deadline_ns)) {
        return false;
    }
    if (writer->ready) {
        pawl__cancel_done(&writer->cancel);
        pawl__watch_done(&writer->watch);
    }
    return true;
}
