/* Records and logs, a page at a time. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/apps/apps.h"
#include "server/page.h"

#define RECORD_BYTES_MAX ((size_t)64 << 20)

struct walk {
    pawl_app *app;
    struct pawl__serve_page page;
};

static void walk_done(struct walk *walk)
{
    pawl__serve_page_done(&walk->page);
}

static pawl_status add_record(void *context, const pawl_app_record *record, pawl_error *reterr)
{
    struct walk *walk = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (!pawl__serve_page_has_room_at(&walk->page, record->id)) {
        return PAWL_CANCELLED;
    }
    TRY(pawl_app_record_to_json(record, &json, &len, reterr));
    (void)pawl__serve_page_add_json(&walk->page, (pawl_view){ json, len });
    return PAWL_OK;
}

static pawl_status add_event(struct walk *walk,
                             const pawl_app_event *event,
                             uint64_t offset,
                             pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (!pawl__serve_page_has_room_at(&walk->page, offset)) {
        return PAWL_CANCELLED;
    }
    TRY(pawl_app_event_to_json(walk->app, event, &json, &len, reterr));
    (void)pawl__serve_page_add_json(&walk->page, (pawl_view){ json, len });
    return PAWL_OK;
}

static pawl_status add_wlog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    return add_event(context, event, event->wlog_offset, reterr);
}

static pawl_status add_plog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    return add_event(context, event, event->plog_offset, reterr);
}

/* CANCELLED with a next item is a full page. */
static pawl_status answer(struct walk *walk, struct pawl__serve_call *call, pawl_status status)
{
    if (status != PAWL_OK && !(status == PAWL_CANCELLED && walk->page.next[0] != '\0')) {
        return status;
    }
    pawl__serve_page_answer(&walk->page, call);
    return PAWL_OK;
}

static pawl_status start(struct walk *walk,
                         struct pawl__serve_call *call,
                         pawl_view name,
                         uint64_t limit,
                         pawl_error *reterr)
{
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, name, &found, reterr));
    walk->app = found.app;
    pawl__serve_page_start(&walk->page, limit);
    return PAWL_OK;
}

/* --- records --- */

pawl_status pawl__serve_records(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct workspace_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .app = NULL };

    TRY(start(&walk, call, asked->app, asked->limit, reterr));
    return answer(
        &walk,
        call,
        pawl_app_read_c_records(
            walk.app, asked->wsid, asked->from, asked->limit + 1, add_record, &walk, reterr));
}

static pawl_status on_record(void *context, const pawl_app_record *record, pawl_error *reterr)
{
    struct pawl__buf *body = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    TRY(pawl_app_record_to_json(record, &json, &len, reterr));
    pawl__buf_add(body, (pawl_view){ json, len });
    pawl__buf_add_char(body, '\n');
    return PAWL_OK;
}

pawl_status pawl__serve_record(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct record_path *path = call->parameters;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(RECORD_BYTES_MAX);
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, path->app, &found, reterr));
    TRY(pawl_app_read_record(found.app, path->wsid, path->id, on_record, &body, reterr));
    pawl__serve_answer_buf(call, 200, &body);
    return PAWL_OK;
}

/* --- logs --- */

pawl_status pawl__serve_wlog(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct workspace_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .app = NULL };

    TRY(start(&walk, call, asked->app, asked->limit, reterr));
    return answer(
        &walk,
        call,
        pawl_app_read_wlog(
            walk.app, asked->wsid, asked->from, asked->limit + 1, add_wlog_event, &walk, reterr));
}

pawl_status pawl__serve_plog(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct partition_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .app = NULL };

    TRY(start(&walk, call, asked->app, asked->limit, reterr));
    unsigned count = pawl_app_get_descriptor(walk.app)->partitions;
    if (asked->p >= count) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "there is no partition %" PRIu64 ", the last one is %u",
                          asked->p,
                          count - 1);
    }
    return answer(&walk,
                  call,
                  pawl_app_read_plog(walk.app,
                                     (uint16_t)asked->p,
                                     asked->from,
                                     asked->limit + 1,
                                     add_plog_event,
                                     &walk,
                                     reterr));
}
