/* Reading an application: records, and the logs of workspaces and partitions. */
#include <inttypes.h>

#include "app/core/ids.h"
#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"

/* What is read, and whose code gets it. A visitor runs inside of the application, which cannot be closed
 * meanwhile. */
struct reading {
    const pawl_app *app;
    uint64_t workspace;
    pawl_app_record_visit record_visit;
    pawl_app_event_visit event_visit;
    void *context;
    bool enough; /* the visitor said so, or the page is full */
    struct pawl__page page;
    pawl_error error;
    struct pawl__arena arena; /* of an event */
};

/* Ends a walk when the visitor has seen enough. */
static pawl_status go_on(struct reading *reading, bool wanted)
{
    reading->enough = !wanted;
    return wanted ? PAWL_OK : PAWL_CANCELLED;
}

static pawl_status conclude(const struct reading *reading, pawl_status status, pawl_error *reterr)
{
    return status == PAWL_OK || reading->enough ? PAWL_OK
                                                : pawl__fail_with(reterr, status, &reading->error);
}

/* Calls `visit` with the entries of the workspace whose number is `from` or more. */
static pawl_status walk(struct reading *reading,
                        enum app_family family,
                        uint64_t from,
                        app_entry_visitor visit,
                        pawl_error *reterr)
{
    uint32_t app = reading->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_record(app, reading->workspace, from);
    struct app_key last = pawl__app_key_record(app, reading->workspace, UINT64_MAX);
    const struct app_range range = {
        .family = family,
        .from = pawl__app_key_view(&first),
        .until = pawl__app_key_view(&last), /* which is no id and no offset of an event */
        .limit = pawl__page_reads(&reading->page),
    };

    return pawl__app_store_walk(reading->app->store, &range, visit, reading, reterr);
}

static pawl_status number_of(const struct app_entry *entry,
                             uint64_t *ret_number,
                             pawl_error *reterr)
{
    return pawl__app_key_number(entry->family, entry->key, ret_number)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "a key of '%s' has %zu bytes",
                            pawl__app_family_name(entry->family),
                            entry->key.len);
}

/* --- records --- */

static pawl_status decode_record(pawl_view bytes,
                                 uint64_t id,
                                 pawl_app_record *ret_record,
                                 pawl_error *reterr)
{
    TRY(pawl__app_record_decode(bytes, ret_record, reterr));
    ret_record->id = id;
    return pawl__app_id_fits(ret_record->record_class, id)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "it is stored as a %s",
                            pawl__app_class_name(ret_record->record_class));
}

static pawl_status visit_record(struct reading *reading,
                                pawl_view bytes,
                                uint64_t id,
                                pawl_error *reterr)
{
    INSIDE(reading->app);
    pawl_app_record record;

    pawl_status status = decode_record(bytes, id, &record, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(
            reterr, status, "record %" PRIu64 " of workspace %" PRIu64, id, reading->workspace);
    }
    return go_on(reading,
                 pawl__page_show(&reading->page, reading->record_visit(reading->context, &record)));
}

static pawl_status visit_record_entry(void *context,
                                      const struct app_entry *entry,
                                      pawl_error *reterr)
{
    struct reading *reading = context;
    uint64_t id = 0;

    TRY(number_of(entry, &id, reterr));
    return pawl__page_admits(&reading->page, id) ? visit_record(reading, entry->value, id, reterr)
                                                 : go_on(reading, false);
}

pawl_status pawl_app_read_record(pawl_app *app,
                                 uint64_t workspace,
                                 uint64_t id,
                                 pawl_app_record_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    NEED(app, visit, reterr);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct reading reading = {
        .app = app,
        .workspace = workspace,
        .record_visit = visit,
        .context = context,
        .error = PAWL_ERROR_INIT,
    };
    struct app_key key = pawl__app_key_record(app->definition.descriptor.id, workspace, id);
    struct app_value value;

    TRY(pawl__app_check_id(id, reterr));
    TRY(pawl__app_store_get(
        app->store, APP_RECORDS, pawl__app_key_view(&key), &arena, &value, reterr));
    return value.found
               ? conclude(&reading, visit_record(&reading, value.bytes, id, &reading.error), reterr)
               : pawl__fail(reterr,
                            PAWL_NOT_FOUND,
                            "record %" PRIu64 " is not in workspace %" PRIu64,
                            id,
                            workspace);
}

pawl_status pawl_app_read_c_records(pawl_app *app,
                                    uint64_t workspace,
                                    pawl_page *page,
                                    pawl_app_record_visit visit,
                                    void *context,
                                    pawl_error *reterr)
{
    NEED(app, visit, reterr);
    struct reading reading = {
        .app = app,
        .workspace = workspace,
        .record_visit = visit,
        .context = context,
        .error = PAWL_ERROR_INIT,
    };

    TRY(pawl__page_take(page, &reading.page, reterr));
    pawl_status status = walk(&reading,
                              APP_RECORDS,
                              MAX(reading.page.page.from, PAWL_APP_C_ID_MIN),
                              visit_record_entry,
                              &reading.error);
    TRY(conclude(&reading, status, reterr));
    pawl__page_answer(&reading.page, page);
    return PAWL_OK;
}

/* --- logs --- */

static pawl_status visit_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct reading *reading = context;
    INSIDE(reading->app);

    (void)reterr;
    return go_on(reading,
                 pawl__page_show(&reading->page, reading->event_visit(reading->context, event)));
}

static pawl_status decode_wlog_entry(struct reading *reading,
                                     pawl_view bytes,
                                     uint64_t offset,
                                     pawl_app_event *ret_event,
                                     pawl_error *reterr)
{
    uint64_t plog_offset = 0;

    if (!pawl__view_take_u64be(&bytes, &plog_offset)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the event is cut off");
    }
    pawl__arena_clear(&reading->arena);
    TRY(pawl__app_event_decode(bytes, &reading->arena, ret_event, reterr));
    return ret_event->workspace == reading->workspace && ret_event->wlog_offset == offset
                   && ret_event->plog_offset == plog_offset
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "the event belongs at offset %" PRIu64 " of workspace %" PRIu64,
                            ret_event->wlog_offset,
                            ret_event->workspace);
}

static pawl_status visit_wlog_entry(void *context,
                                    const struct app_entry *entry,
                                    pawl_error *reterr)
{
    struct reading *reading = context;
    pawl_app_event event;
    uint64_t offset = 0;

    TRY(number_of(entry, &offset, reterr));
    if (!pawl__page_admits(&reading->page, offset)) {
        return go_on(reading, false);
    }
    pawl_status status = decode_wlog_entry(reading, entry->value, offset, &event, reterr);
    return status == PAWL_OK
               ? visit_event(reading, &event, reterr)
               : pawl__fail_context(reterr,
                                    status,
                                    "offset %" PRIu64 " of the WLog of workspace %" PRIu64,
                                    offset,
                                    reading->workspace);
}

pawl_status pawl_app_read_wlog(pawl_app *app,
                               uint64_t workspace,
                               pawl_page *page,
                               pawl_app_event_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    NEED(app, visit, reterr);
    struct reading reading = {
        .app = app,
        .workspace = workspace,
        .event_visit = visit,
        .context = context,
        .error = PAWL_ERROR_INIT,
    };

    TRY(pawl__page_take(page, &reading.page, reterr));
    pawl_status status =
        walk(&reading, APP_WLOG, reading.page.page.from, visit_wlog_entry, &reading.error);
    pawl__arena_done(&reading.arena);
    TRY(conclude(&reading, status, reterr));
    pawl__page_answer(&reading.page, page);
    return PAWL_OK;
}

/* Reads no event beyond the page: it may be damaged, and the end of the log says whether there is one. */
static pawl_status visit_plog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct reading *reading = context;

    (void)pawl__page_admits(&reading->page, event->plog_offset);
    TRY(visit_event(reading, event, reterr));
    return go_on(reading, !reading->page.is_full);
}

static pawl_status answer_plog_page(struct pawl__page *page,
                                    struct app_seq *seq,
                                    pawl_error *reterr)
{
    uint64_t end = 0;

    TRY(pawl__app_seq_end(seq, &end, reterr));
    page->page.more = page->shown > 0 && page->page.from <= end;
    return PAWL_OK;
}

pawl_status pawl_app_read_plog(pawl_app *app,
                               uint16_t partition,
                               pawl_page *page,
                               pawl_app_event_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    NEED(app, visit, reterr);
    struct reading reading = {
        .app = app, .event_visit = visit, .context = context, .error = PAWL_ERROR_INIT
    };

    TRY(pawl__app_check_partition(app, partition, reterr));
    TRY(pawl__page_take(page, &reading.page, reterr));
    struct app_seq *seq = &app->partitions[partition].seq;
    pawl_status status = pawl__app_seq_walk(seq,
                                            reading.page.page.from,
                                            reading.page.page.limit,
                                            visit_plog_event,
                                            &reading,
                                            &reading.error);
    TRY(conclude(&reading, status, reterr));
    if (page != NULL) {
        TRY(answer_plog_page(&reading.page, seq, reterr));
        pawl__page_answer(&reading.page, page);
    }
    return PAWL_OK;
}
