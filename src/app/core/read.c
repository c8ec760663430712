/* Reading an application: records, and the logs of workspaces and partitions. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/core/ids.h"
#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/thread/inside.h"

/* A walk through the numbers of a workspace, in WLOG or RECORDS, page by page. */
struct walk {
    pawl_app *app;
    enum app_family family;
    uint64_t workspace;
    uint64_t from;
    uint64_t left; /* entries that are wanted */
    struct pawl__arena arena;
    struct app_entry *entries;
    size_t count;

    /* Takes an entry and its number; the arena may be used. */
    pawl_status (*take)(struct walk *walk,
                        const struct app_entry *entry,
                        uint64_t number,
                        pawl_error *reterr);
    pawl_app_record_visitor record_visitor;
    pawl_app_event_visitor event_visitor;
    void *context;
};

static pawl_status read_page(struct walk *walk, pawl_error *reterr)
{
    struct app_store *store = walk->app->store;
    uint32_t app = walk->app->definition.descriptor.id;
    struct app_key first = pawl__app_key_record(app, walk->workspace, walk->from);
    struct app_key last = pawl__app_key_record(app, walk->workspace, UINT64_MAX);
    const struct app_range range = {
        .family = walk->family,
        .from = pawl__app_key_view(&first),
        .until = pawl__app_key_view(&last), /* which is no id and no offset of an event */
        .limit = (size_t)MIN(walk->left, (uint64_t)APP_PAGE_ENTRIES),
        .bytes_max = APP_PAGE_BYTES_MAX,
    };

    pawl__arena_clear(&walk->arena);
    return store->ops->scan(store, &range, &walk->arena, walk->entries, &walk->count, reterr);
}

static pawl_status take_page(struct walk *walk, pawl_error *reterr)
{
    for (size_t i = 0; i < walk->count; i++) {
        uint64_t number = 0;
        if (!pawl__app_key_number(walk->family, walk->entries[i].key, &number)) {
            return pawl__fail(reterr,
                              PAWL_CORRUPT,
                              "a key of '%s' has %zu bytes",
                              pawl__app_family_name(walk->family),
                              walk->entries[i].key.len);
        }
        TRY(walk->take(walk, &walk->entries[i], number, reterr));
        walk->from = number + 1;
        walk->left--;
    }
    return PAWL_OK;
}

static pawl_status run(struct walk *walk, uint64_t limit, pawl_error *reterr)
{
    walk->entries = malloc(APP_PAGE_ENTRIES * sizeof(*walk->entries));
    walk->left = limit == 0 ? UINT64_MAX : limit;
    walk->count = 1;
    pawl_status status =
        walk->entries == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a page") : PAWL_OK;

    while (status == PAWL_OK && walk->count > 0 && walk->left > 0) {
        status = read_page(walk, reterr);
        if (status == PAWL_OK) {
            status = take_page(walk, reterr);
        }
    }
    free(walk->entries);
    pawl__arena_done(&walk->arena);
    return status;
}

/* --- visitors --- */

pawl_status pawl__app_visit_record(const pawl_app *app,
                                   pawl_app_record_visitor visitor,
                                   void *context,
                                   const pawl_app_record *record,
                                   pawl_error *reterr)
{
    struct pawl__inside inside;

    pawl__inside_enter(&inside, app);
    pawl_status status = visitor(context, record, reterr);
    pawl__inside_leave(&inside);
    return pawl__fail_settled(reterr, status, "the visitor");
}

pawl_status pawl__app_visit_event(const pawl_app *app,
                                  pawl_app_event_visitor visitor,
                                  void *context,
                                  const pawl_app_event *event,
                                  pawl_error *reterr)
{
    struct pawl__inside inside;

    pawl__inside_enter(&inside, app);
    pawl_status status = visitor(context, event, reterr);
    pawl__inside_leave(&inside);
    return pawl__fail_settled(reterr, status, "the visitor");
}

/* --- records --- */

static pawl_status visit_record(const pawl_app *app,
                                pawl_view bytes,
                                uint64_t workspace,
                                uint64_t id,
                                pawl_app_record_visitor visitor,
                                void *context,
                                pawl_error *reterr)
{
    pawl_app_record record;
    pawl_status status = pawl__app_record_decode(bytes, &record, reterr);

    if (status == PAWL_OK && !pawl__app_id_fits(record.record_class, id)) {
        status = pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "it is stored as a %s",
                            pawl__app_class_name(record.record_class));
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(
            reterr, status, "record %" PRIu64 " of workspace %" PRIu64, id, workspace);
    }
    record.id = id;
    return pawl__app_visit_record(app, visitor, context, &record, reterr);
}

pawl_status pawl_app_read_record(pawl_app *app,
                                 uint64_t workspace,
                                 uint64_t id,
                                 pawl_app_record_visitor visitor,
                                 void *context,
                                 pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(visitor, reterr);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_record(app->definition.descriptor.id, workspace, id);
    struct app_value value;

    TRY(pawl__app_check_id(id, reterr));
    TRY(pawl__app_store_get(
        app->store, APP_RECORDS, pawl__app_key_view(&key), &arena, &value, reterr));
    return value.found ? visit_record(app, value.bytes, workspace, id, visitor, context, reterr)
                       : pawl__fail(reterr,
                                    PAWL_NOT_FOUND,
                                    "record %" PRIu64 " is not in workspace %" PRIu64,
                                    id,
                                    workspace);
}

static pawl_status take_record(struct walk *walk,
                               const struct app_entry *entry,
                               uint64_t number,
                               pawl_error *reterr)
{
    return visit_record(walk->app,
                        entry->value,
                        walk->workspace,
                        number,
                        walk->record_visitor,
                        walk->context,
                        reterr);
}

pawl_status pawl_app_read_c_records(pawl_app *app,
                                    uint64_t workspace,
                                    uint64_t from,
                                    uint64_t limit,
                                    pawl_app_record_visitor visitor,
                                    void *context,
                                    pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(visitor, reterr);
    struct walk walk = {
        .app = app,
        .family = APP_RECORDS,
        .workspace = workspace,
        .from = MAX(from, PAWL_APP_C_ID_MIN),
        .take = take_record,
        .record_visitor = visitor,
        .context = context,
    };

    return run(&walk, limit, reterr);
}

/* --- logs --- */

static pawl_status take_wlog_event(struct walk *walk,
                                   const struct app_entry *entry,
                                   uint64_t number,
                                   pawl_error *reterr)
{
    pawl_view bytes = entry->value;
    uint64_t plog_offset = 0;
    pawl_app_event event;
    pawl_status status = pawl__view_take_u64be(&bytes, &plog_offset)
                             ? pawl__app_event_decode(bytes, &walk->arena, &event, reterr)
                             : pawl__fail(reterr, PAWL_CORRUPT, "the event is cut off");

    if (status == PAWL_OK
        && (event.workspace != walk->workspace || event.wlog_offset != number
            || event.plog_offset != plog_offset)) {
        status = pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "the event belongs at offset %" PRIu64 " of workspace %" PRIu64,
                            event.wlog_offset,
                            event.workspace);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr,
                                  status,
                                  "offset %" PRIu64 " of the WLog of workspace %" PRIu64,
                                  number,
                                  walk->workspace);
    }
    return pawl__app_visit_event(walk->app, walk->event_visitor, walk->context, &event, reterr);
}

pawl_status pawl_app_read_wlog(pawl_app *app,
                               uint64_t workspace,
                               uint64_t from,
                               uint64_t limit,
                               pawl_app_event_visitor visitor,
                               void *context,
                               pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(visitor, reterr);
    struct walk walk = {
        .app = app,
        .family = APP_WLOG,
        .workspace = workspace,
        .from = from,
        .take = take_wlog_event,
        .event_visitor = visitor,
        .context = context,
    };

    return run(&walk, limit, reterr);
}

struct plog_walk {
    const pawl_app *app;
    uint64_t left;
    pawl_app_event_visitor visitor;
    void *context;
    bool full; /* enough was seen: no error */
};

static pawl_status take_plog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct plog_walk *walk = context;

    TRY(pawl__app_visit_event(walk->app, walk->visitor, walk->context, event, reterr));
    if (--walk->left == 0) {
        walk->full = true;
        return PAWL_CANCELLED;
    }
    return PAWL_OK;
}

pawl_status pawl_app_read_plog(pawl_app *app,
                               uint16_t partition,
                               uint64_t from,
                               uint64_t limit,
                               pawl_app_event_visitor visitor,
                               void *context,
                               pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(visitor, reterr);
    struct plog_walk walk = {
        .app = app, .left = limit == 0 ? UINT64_MAX : limit, .visitor = visitor, .context = context
    };

    if (partition >= app->partition_count) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "there is no partition %u, the last one is %zu",
                          partition,
                          app->partition_count - 1);
    }
    pawl_status status =
        pawl__app_seq_walk(&app->partitions[partition].seq, from, take_plog_event, &walk, reterr);
    return walk.full ? PAWL_OK : status;
}
