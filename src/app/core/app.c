/* Opening an application, waiting for it, closing it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/core/apply.h"
#include "app/core/format.h"
#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/os/clock.h"
#include "engine/calls.h"

struct app_partition *pawl__app_partition(pawl_app *app, uint64_t workspace)
{
    return &app->partitions[workspace % app->partition_count];
}

const pawl_app_descriptor *pawl_app_get_descriptor(const pawl_app *app)
{
    return app == NULL ? NULL : &app->definition.descriptor;
}

uint16_t pawl_app_partition_of(const pawl_app *app, uint64_t workspace)
{
    return (uint16_t)(app == NULL ? 0 : workspace % app->partition_count);
}

pawl_status pawl__app_refuse_reader(const pawl_app *app, pawl_error *reterr)
{
    return app->options.read_only ? pawl__fail_read_only("the application", reterr) : PAWL_OK;
}

pawl_status pawl_app_wait(pawl_app *app, uint32_t timeout_ms, pawl_error *reterr)
{
    NEED(app, reterr);
    struct pawl__clock *clock = app->wait_clock;
    int64_t deadline_ns = pawl__monotonic_ns(clock) + timeout_ms * NS_PER_MS;
    size_t count = app->options.read_only ? 0 : app->partition_count; /* nothing is under way */

    for (size_t i = 0; i < count; i++) {
        int64_t left_ms = (deadline_ns - pawl__monotonic_ns(clock)) / NS_PER_MS;
        pawl_status status =
            pawl_sequencer_wait(app->partitions[i].sequencer, (uint32_t)MAX(left_ms, 0), reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "partition %zu", i);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__app_check_partition(const pawl_app *app, uint16_t partition, pawl_error *reterr)
{
    if (partition < app->partition_count) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "there is no partition %u, the last one is %zu",
                      partition,
                      app->partition_count - 1);
}

pawl_status pawl_app_get_log_end(pawl_app *app,
                                 uint16_t partition,
                                 uint64_t *ret_offset,
                                 pawl_error *reterr)
{
    NEED(app, ret_offset, reterr);
    TRY(pawl__app_check_partition(app, partition, reterr));
    return pawl__app_seq_end(&app->partitions[partition].seq, ret_offset, reterr);
}

pawl_status pawl_app_get_status(pawl_app *app,
                                uint16_t partition,
                                pawl_sequencer_status *ret_status,
                                pawl_error *reterr)
{
    NEED(app, ret_status, reterr);
    TRY(pawl__app_check_partition(app, partition, reterr));
    TRY(pawl__app_refuse_reader(app, reterr));
    TRY(pawl_sequencer_get_status(app->partitions[partition].sequencer, ret_status, reterr));
    return PAWL_OK;
}

/* --- the descriptor --- */

static pawl_status write_meta(struct app_store *store,
                              const struct app_definition *definition,
                              pawl_error *reterr)
{
    AUTO(pawl__app_batch_done) struct app_batch batch = { .count = 0 };
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(APP_DESCRIPTOR_BYTES_MAX);
    uint32_t app = definition->descriptor.id;
    struct app_key key = pawl__app_key_meta(app);

    TRY(pawl__app_definition_write(definition, &json, reterr));
    TRY(pawl__app_batch_add(&batch, APP_META, APP_INSERT, &key, pawl__buf_view(&json), reterr));
    TRY(pawl__app_format_add(&batch, app, APP_FORMAT, reterr));
    return store->ops->write(store, batch.entries, batch.count, reterr);
}

static pawl_status compare_definition(const struct pawl_app *app,
                                      pawl_view json,
                                      pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf mine = BUF_INIT(APP_DESCRIPTOR_BYTES_MAX);

    TRY(pawl__app_definition_write(&app->definition, &mine, reterr));
    if (!pawl__view_equal(json, pawl__buf_view(&mine))) {
        pawl_view shown = { json.data, MIN(json.len, 300) };
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "there is an application with another descriptor: %.*s",
                          VIEW_ARGS(shown));
    }
    return PAWL_OK;
}

/* A copy in another directory is not another application: both would give out the same numbers. */
static pawl_status check_name(const struct pawl_app *app, pawl_error *reterr)
{
    const char *name = app->definition.descriptor.name;
    const char *place = app->store->name;

    return place == NULL || strcmp(place, name) == 0
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CONFLICT,
                            "'%s' holds application '%s': an application lives under its own name, "
                            "and a copy would give out its numbers again; to use this one, put it "
                            "in the place of '%s'",
                            place,
                            name,
                            name);
}

/* With an anchor there was an application, and its descriptor is lost. */
static pawl_status fail_without_definition(struct app_store *store, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf anchor = BUF_INIT(APP_ANCHOR_BYTES_MAX);

    TRY(store->ops->read_anchor(store, &anchor, reterr));
    return anchor.len > 0 ? pawl__fail_advised(
               reterr,
               PAWL_CORRUPT,
               "the stored descriptor is missing, its anchor is not: restore it from a backup")
                          : pawl__fail(reterr, PAWL_NOT_FOUND, "there is no application");
}

/* All other keys begin with the id: with another one nothing would be found. */
static pawl_status check_id(const struct pawl_app *app, pawl_view stored_key, pawl_error *reterr)
{
    struct app_key key = pawl__app_key_meta(app->definition.descriptor.id);

    return pawl__view_equal(pawl__app_key_view(&key), stored_key)
               ? PAWL_OK
               : pawl__fail_advised(reterr,
                                    PAWL_CORRUPT,
                                    "the stored descriptor has id %" PRIu32
                                    ", which is not that of its key: restore it from a backup",
                                    app->definition.descriptor.id);
}

static pawl_status read_definition(struct pawl_app *app,
                                   const struct app_entry *stored,
                                   pawl_error *reterr)
{
    pawl_status status = pawl__app_definition_read(stored->value, &app->definition, reterr);

    if (status == PAWL_INVALID) {
        pawl__fail_context(reterr, PAWL_CORRUPT, "the stored descriptor");
        return pawl__fail_advise(reterr, PAWL_CORRUPT, "restore it from a backup");
    }
    return status == PAWL_OK ? check_id(app, stored->key, reterr) : status;
}

/* An altered descriptor is not used, though it may be read: by its rules numbers could be given out that the
 * old ones would not. */
static pawl_status adopt_stored(struct pawl_app *app,
                                bool given,
                                const struct app_entry *stored,
                                pawl_error *reterr)
{
    pawl_error altered = PAWL_ERROR_INIT;

    TRY(pawl__sha256(stored->value, &app->stored_descriptor, reterr));
    pawl_status known =
        pawl__app_anchor_compare_descriptor(app->store, &app->stored_descriptor, &altered);
    if (known != PAWL_OK && !app->options.read_only) {
        return pawl__fail_with(reterr, known, &altered);
    }
    pawl_status status = given ? compare_definition(app, stored->value, reterr)
                               : read_definition(app, stored, reterr);
    status = status == PAWL_OK ? check_name(app, reterr) : status;
    return status != PAWL_OK && known != PAWL_OK ? pawl__fail_with(reterr, known, &altered)
                                                 : status;
}

static pawl_status adopt_given(struct pawl_app *app, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(APP_DESCRIPTOR_BYTES_MAX);

    TRY(pawl__app_definition_write(&app->definition, &json, reterr));
    TRY(pawl__sha256(pawl__buf_view(&json), &app->stored_descriptor, reterr));
    return check_name(app, reterr);
}

/* *ret_found: whether it is there; else it is to be created. */
static pawl_status load_definition(struct pawl_app *app,
                                   bool given,
                                   bool *ret_found,
                                   pawl_error *reterr)
{
    static const struct app_range range = { .family = APP_META, .limit = 1, .bytes_max = SIZE_MAX };
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };

    TRY(pawl__app_store_scan(app->store, &range, &page, reterr));
    *ret_found = page.count > 0;
    if (*ret_found) {
        return adopt_stored(app, given, page.entries, reterr);
    }
    return given ? adopt_given(app, reterr) : fail_without_definition(app->store, reterr);
}

/* A reader uses an older format as it is. A rebuild upgrades it itself: what it repairs must not be in its way. */
static pawl_status load_store(struct pawl_app *app, bool found, pawl_error *reterr)
{
    app->format = APP_FORMAT;
    if (found) {
        TRY(pawl__app_format_read(
            app->store, app->definition.descriptor.id, &app->format, &app->rebuilding, reterr));
    }
    if (app->rebuilding && !app->options.read_only) {
        app->options.rebuild = true; /* it was interrupted, and is done again */
    }
    TRY(pawl__app_anchor_load(app, found, reterr));
    if (app->options.read_only) {
        return PAWL_OK;
    }
    if (!found) {
        return write_meta(app->store, &app->definition, reterr);
    }
    return app->options.rebuild ? PAWL_OK : pawl__app_format_upgrade(app, reterr);
}

/* --- open and close --- */

static pawl_status make_partitions(struct pawl_app *app, pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = &app->definition.descriptor;

    TRY(pawl__app_definition_types(&app->definition, &app->types, &app->type_count, reterr));
    app->partitions = calloc(descriptor->partitions, sizeof(*app->partitions));
    if (app->partitions == NULL) {
        return pawl__fail(
            reterr, PAWL_NOMEM, "no memory for %u partitions", descriptor->partitions);
    }
    app->partition_count = descriptor->partitions;
    for (uint16_t i = 0; i < descriptor->partitions; i++) {
        app->partitions[i].app = app;
        app->partitions[i].seq =
            (struct app_seq){ .store = app->store,
                              .app = descriptor->id,
                              .partition = i,
                              .descriptor = descriptor,
                              .accepts_short =
                                  app->format == APP_FORMAT_BARE, /* only read, or to be rebuilt */
                              .numbered = pawl__app_is_numbered(descriptor->trust) };
    }
    return PAWL_OK;
}

static pawl_status start_partitions(struct pawl_app *app, pawl_error *reterr)
{
    TRY(make_partitions(app, reterr));
    TRY(app->options.rebuild ? pawl__app_format_rebuild(app, reterr) : PAWL_OK);
    for (size_t i = 0; i < app->partition_count; i++) {
        app->partitions[i].seq.accepts_short = app->format == APP_FORMAT_BARE;
    }
    for (size_t i = 0; i < app->partition_count && !app->options.read_only; i++) {
        TRY(pawl__app_partition_init(&app->partitions[i], reterr));
    }
    return PAWL_OK;
}

/* The commands end first, then the anchor, which so covers all of them. */
static bool stop(void *context, bool drain, int64_t deadline_ns)
{
    struct pawl_app *app = context;
    bool ended = true;

    for (size_t i = 0; i < app->partition_count; i++) {
        ended = pawl__app_partition_stop(&app->partitions[i], drain, deadline_ns) && ended;
    }
    return ended && pawl__app_anchor_writer_stop(app, deadline_ns);
}

static void interrupt(void *context)
{
    struct app_store *store = ((struct pawl_app *)context)->store;

    store->ops->interrupt(store);
}

static pawl_status check_outside(const pawl_app *app, pawl_error *reterr)
{
    char name[sizeof("application ''") + PAWL_APP_NAME_BYTES_MAX];

    snprintf(name, sizeof(name), "application '%s'", app->definition.descriptor.name);
    return pawl__calls_check_outside(app, name, reterr);
}

pawl_status pawl_app_close(pawl_app *app, uint32_t timeout_ms, pawl_error *reterr)
{
    if (app == NULL) {
        return PAWL_OK;
    }
    TRY(check_outside(app, reterr));
    int64_t all_ns = (timeout_ms == 0 ? app->options.close_ms_max : timeout_ms) * NS_PER_MS;
    int64_t deadline_ns = pawl__monotonic_ns(app->wait_clock) + all_ns;
    bool interrupts = app->store != NULL && app->store->ops->interrupt != NULL;
    const struct pawl__closing closing = { .stop = stop,
                                           .interrupt = interrupts ? interrupt : NULL,
                                           .context = app,
                                           .drain_ns = all_ns / 3,
                                           .interrupted_ns = all_ns - all_ns / 3 };
    bool ended = pawl__close_bounded(&closing, app->wait_clock);
    for (size_t i = 0; i < app->partition_count; i++) {
        ended = pawl__app_partition_done(&app->partitions[i], deadline_ns) && ended;
    }
    if (!ended) { /* a thread hangs in the store and may still use all of this: it stays */
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "application '%s': its store does not come back",
                          app->definition.descriptor.name);
    }
    pawl_status status = pawl__app_store_flush_last(app->store, deadline_ns, reterr);
    if (status != PAWL_OK) {
        return status; /* the same */
    }
    pawl__app_store_close(app->store);
    pawl__app_definition_done(&app->definition);
    free(app->partitions);
    free(app);
    return PAWL_OK;
}

static void close_p(pawl_app **app)
{
    (void)!pawl_app_close(*app, 0, NULL);
}

static pawl_status check_options(const pawl_app_options *options, bool given, pawl_error *reterr)
{
    if (given && options->read_only) {
        return pawl__fail(
            reterr, PAWL_INVALID, "'read_only' and a descriptor: what is only read is not created");
    }
    if (options->rebuild && options->read_only) {
        return pawl__fail(
            reterr, PAWL_INVALID, "'read_only' and 'rebuild': what is only read is not changed");
    }
    return options->exec_ms_max > 0 /* the others are checked by a sequencer */
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "exec_ms_max is 0");
}

static pawl_status open_store(struct pawl_app *app,
                              const char *location,
                              bool given,
                              pawl_error *reterr)
{
    const struct app_store_options options = {
        .must_exist = !given,
        .read_only = app->options.read_only,
        .unsafe_no_sync = app->options.unsafe_no_sync,
        .free_space_min = app->options.free_space_min,
        .memory_max = app->options.memory_max,
        .answer_ms_max = app->options.answer_ms_max,
        .app_id = given ? app->definition.descriptor.id : 0,
        .app_name = given ? app->definition.descriptor.name : NULL,
    };

    return pawl__app_store_open(location, &options, &app->store, reterr);
}

pawl_status pawl__app_open_at(const char *location,
                              const pawl_app_descriptor *descriptor,
                              const pawl_app_options *options,
                              struct pawl__clock *clock,
                              pawl_app **ret_app,
                              pawl_error *reterr)
{
    AUTO(close_p) pawl_app *app = calloc(1, sizeof(*app));
    bool given = descriptor != NULL;
    bool found = false;

    if (app == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an application");
    }
    app->clock = pawl__clock_or_real(clock);
    app->wait_clock = pawl__clock_or_real(NULL);
    app->options = (pawl_app_options)PAWL_APP_OPTIONS_INIT;
    TRY(pawl__take_sized("options", options, &app->options, sizeof(app->options), reterr));
    TRY(check_options(&app->options, given, reterr));
    TRY(given ? pawl__app_definition_copy(descriptor, &app->definition, reterr) : PAWL_OK);
    TRY(open_store(app, location, given, reterr));
    TRY(load_definition(app, given, &found, reterr));
    TRY(load_store(app, found, reterr));
    pawl__app_anchor_writer_init(app);
    TRY(start_partitions(app, reterr));
    TRY(pawl__app_anchor_writer_start(app, reterr));
    *ret_app = STEAL(app);
    return PAWL_OK;
}

pawl_status pawl_app_open(const char *location,
                          const pawl_app_descriptor *descriptor,
                          const pawl_app_options *options,
                          pawl_app **ret_app,
                          pawl_error *reterr)
{
    NEED(location, ret_app, reterr);
    return pawl__app_open_at(location, descriptor, options, NULL, ret_app, reterr);
}
