/* The format of an application's store, and the way from an older one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/core/apply.h"
#include "app/core/format.h"
#include "app/core/internal.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"

enum { BATCH_ENTRIES = 4096, FORMAT_BYTES_MAX = 9 };

/* The format is written before the anchor. So with an anchor a missing format was removed, and the store must not be
 * taken for one of format 1, whose numbers have no checksums. */
static pawl_status check_format_may_be_absent(struct app_store *store, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf anchor = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    pawl_status status = store->ops->read_anchor(store, &anchor, reterr);

    return status == PAWL_OK && anchor.len > 0 ? pawl__fail_advised(
               reterr, PAWL_CORRUPT, "the stored format is missing: restore it from a backup")
                                               : status;
}

pawl_status pawl__app_format_read(struct app_store *store,
                                  uint32_t app,
                                  int *ret_format,
                                  bool *ret_rebuilding,
                                  pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_format(app);
    struct app_value value;
    uint64_t format = APP_FORMAT_BARE;

    TRY(pawl__app_store_get(store, APP_META, pawl__app_key_view(&key), &arena, &value, reterr));
    if (!value.found) {
        TRY(check_format_may_be_absent(store, reterr));
    }
    if (value.found && value.bytes.len == 0) {
        return pawl__fail_advised(
            reterr, PAWL_CORRUPT, "the stored format is empty: restore it from a backup");
    }
    for (size_t i = 0; value.found && i < value.bytes.len; i++) {
        char digit = value.bytes.data[i];
        if (digit < '0' || digit > '9' || value.bytes.len > FORMAT_BYTES_MAX) {
            return pawl__fail_advised(
                reterr, PAWL_CORRUPT, "the stored format is no number: restore it from a backup");
        }
        format = (i == 0 ? 0 : format * 10) + (uint64_t)(digit - '0');
    }
    if (format > APP_FORMAT) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "the application has format %" PRIu64 ", this is made for %d",
                          format,
                          APP_FORMAT);
    }
    *ret_format = (int)format;
    /* Stores of format 1 never said so: only a rebuild writes that. */
    *ret_rebuilding = value.found && format == APP_FORMAT_BARE;
    return PAWL_OK;
}

pawl_status pawl__app_format_add(struct app_batch *batch,
                                 uint32_t app,
                                 int format,
                                 pawl_error *reterr)
{
    struct app_key key = pawl__app_key_format(app);
    char text[FORMAT_BYTES_MAX + 3];

    snprintf(text, sizeof(text), "%d", format);
    return pawl__app_batch_add(batch, APP_META, APP_PUT, &key, pawl_view_of(text), reterr);
}

/* --- from bare numbers --- */

struct upgrade {
    struct pawl_app *app;
    struct app_batch batch;
    uint64_t *offsets; /* by partition: up to which the numbers are stored */
};

static void upgrade_done(struct upgrade *upgrade)
{
    pawl__app_batch_done(&upgrade->batch);
    free(upgrade->offsets);
}

/* So that memory has a bound. */
static pawl_status write_full(struct upgrade *upgrade, size_t entries, pawl_error *reterr)
{
    struct app_store *store = upgrade->app->store;

    if (upgrade->batch.count < entries) {
        return PAWL_OK;
    }
    FAILPOINT("app.format.write.before", reterr);
    pawl_status status =
        store->ops->write(store, upgrade->batch.entries, upgrade->batch.count, reterr);
    pawl__app_batch_clear(&upgrade->batch);
    return status;
}

/* What cannot be read stays as it is, and fails when it is used. */
static pawl_status rewrite_number(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct upgrade *upgrade = context;
    struct app_key_parts parts;
    struct app_stored stored;
    char bytes[APP_STORED_BYTES];

    if (!pawl__app_key_parse(entry->family, entry->key, &parts)
        || parts.partition >= upgrade->app->definition.descriptor.partitions
        || pawl__app_stored_decode(
               entry->family, entry->key, entry->value, true, NULL, &stored, NULL)
               != PAWL_OK
        || entry->value.len == APP_STORED_BYTES) {
        return PAWL_OK;
    }
    struct app_key key =
        entry->family == APP_SEQ
            ? pawl__app_key_seq(parts.app, parts.partition, parts.workspace, parts.sequence)
            : pawl__app_key_offset(parts.app, parts.partition);
    stored.offset = upgrade->offsets[parts.partition];
    pawl__app_stored_encode(&key, &stored, bytes);
    TRY(pawl__app_batch_add(&upgrade->batch,
                            entry->family,
                            APP_PUT,
                            &key,
                            (pawl_view){ bytes, sizeof(bytes) },
                            reterr));
    return write_full(upgrade, BATCH_ENTRIES, reterr);
}

static pawl_status read_offsets(struct upgrade *upgrade, pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = &upgrade->app->definition.descriptor;

    upgrade->offsets = calloc(descriptor->partitions, sizeof(*upgrade->offsets));
    if (upgrade->offsets == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for offsets");
    }
    for (uint16_t i = 0; i < descriptor->partitions; i++) {
        const struct app_seq seq = { .store = upgrade->app->store, .accepts_short = true };
        struct app_key key = pawl__app_key_offset(descriptor->id, i);
        struct app_stored stored = { 0, 0 };
        TRY(pawl__app_seq_stored(&seq, APP_OFFSETS, &key, &stored, reterr));
        upgrade->offsets[i] = stored.number;
    }
    return PAWL_OK;
}

static pawl_status rewrite_numbers(struct upgrade *upgrade, pawl_error *reterr)
{
    static const enum app_family families[] = { APP_SEQ, APP_OFFSETS };

    TRY(read_offsets(upgrade, reterr));
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        const struct app_range range = { .family = families[i] };
        TRY(pawl__app_store_walk(upgrade->app->store, &range, rewrite_number, upgrade, reterr));
    }
    return PAWL_OK;
}

static pawl_status index_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct upgrade *upgrade = context;

    TRY(pawl__app_apply_numbers(
        &upgrade->batch, upgrade->app->definition.descriptor.id, event, APP_PUT, reterr));
    return write_full(upgrade, BATCH_ENTRIES, reterr);
}

static pawl_status index_numbers(struct upgrade *upgrade, pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = &upgrade->app->definition.descriptor;
    if (!pawl__app_is_numbered(descriptor->trust)) {
        return PAWL_OK;
    }
    for (uint16_t i = 0; i < descriptor->partitions; i++) {
        const struct app_seq seq = { .store = upgrade->app->store,
                                     .app = descriptor->id,
                                     .partition = i };
        TRY(pawl__app_seq_walk(&seq, 1, 0, index_event, upgrade, reterr));
    }
    return PAWL_OK;
}

static pawl_status upgrade_all(struct pawl_app *app, pawl_error *reterr)
{
    AUTO(upgrade_done) struct upgrade upgrade = { .app = app };

    TRY(rewrite_numbers(&upgrade, reterr));
    TRY(index_numbers(&upgrade, reterr));
    TRY(pawl__app_format_add(&upgrade.batch, app->definition.descriptor.id, APP_FORMAT, reterr));
    return write_full(&upgrade, 1, reterr); /* the format last, with all that it promises */
}

pawl_status pawl__app_format_upgrade(struct pawl_app *app, pawl_error *reterr)
{
    if (app->format == APP_FORMAT) {
        return PAWL_OK;
    }
    pawl_status status = upgrade_all(app, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "from format %d to %d", app->format, APP_FORMAT);
    }
    app->format = APP_FORMAT;
    app->rebuilding = false;
    return PAWL_OK;
}

/* --- anew --- */

/* Numbers of a log that lost its end would be given out again. */
static pawl_status check_logs(struct pawl_app *app, pawl_error *reterr)
{
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_app_verify(app, 0, NULL, NULL, NULL, &report, &error);

    if (status != PAWL_OK && status != PAWL_CORRUPT) {
        return pawl__fail(reterr, status, "%s", error.message);
    }
    return report.wrong[PAWL_APP_PART_PLOG] == 0 && report.wrong[PAWL_APP_PART_ANCHOR] == 0
                   && report.unaccounted == 0
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "the logs themselves are not whole, and numbers made from them could be "
                   "given out again: restore them from a backup; 'pawl seq verify --all' names "
                   "them");
}

static pawl_status delete_entry(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct upgrade *upgrade = context;
    struct app_key key = { .len = MIN(entry->key.len, sizeof(key.bytes)) };

    memcpy(key.bytes, entry->key.data, key.len);
    TRY(pawl__app_batch_add(
        &upgrade->batch, entry->family, APP_DELETE, &key, (pawl_view){ NULL, 0 }, reterr));
    return write_full(upgrade, BATCH_ENTRIES, reterr);
}

static pawl_status delete_family(struct upgrade *upgrade,
                                 enum app_family family,
                                 pawl_error *reterr)
{
    const struct app_range range = { .family = family };

    return pawl__app_store_walk(upgrade->app->store, &range, delete_entry, upgrade, reterr);
}

/* Deletes the offsets first, together with the format, which says that a rebuild has begun: from then on an open to
 * write repeats it, and verification reports it. */
pawl_status pawl__app_format_rebuild(struct pawl_app *app, pawl_error *reterr)
{
    AUTO(upgrade_done) struct upgrade upgrade = { .app = app };
    uint32_t id = app->definition.descriptor.id;

    TRY(check_logs(app, reterr));
    TRY(pawl__app_format_add(&upgrade.batch, id, APP_FORMAT_BARE, reterr));
    TRY(delete_family(&upgrade, APP_OFFSETS, reterr));
    TRY(write_full(&upgrade, 1, reterr));
    TRY(delete_family(&upgrade, APP_SEQ, reterr));
    TRY(delete_family(&upgrade, APP_NUMBERS, reterr));
    TRY(write_full(&upgrade, 1, reterr));
    app->format = APP_FORMAT_BARE;
    return pawl__app_format_upgrade(app, reterr);
}
