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
    pawl_page listed;
    pawl_error error; /* of an item; PAWL_OK: none */
};

static void walk_done(struct walk *walk)
{
    pawl__serve_page_done(&walk->page);
}

/* False: no more of them, or there is no such item. */
static bool add_item(struct walk *walk, pawl_status status, const char *json, size_t len)
{
    return status == PAWL_OK && pawl__serve_page_add_json(&walk->page, (pawl_view){ json, len });
}

static bool add_record(void *context, const pawl_app_record *record)
{
    struct walk *walk = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    pawl_status status = pawl_app_record_to_json(record, &json, &len, &walk->error);
    return add_item(walk, status, json, len);
}

static bool add_event(void *context, const pawl_app_event *event)
{
    struct walk *walk = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    pawl_status status = pawl_app_event_to_json(walk->app, event, &json, &len, &walk->error);
    return add_item(walk, status, json, len);
}

static pawl_status answer(struct walk *walk,
                          struct pawl__serve_call *call,
                          pawl_status status,
                          pawl_error *reterr)
{
    if (status == PAWL_OK && walk->error.status != PAWL_OK) {
        return pawl__fail_with(reterr, walk->error.status, &walk->error);
    }
    if (status == PAWL_OK) {
        pawl__serve_page_follow_at(&walk->page, &walk->listed);
        pawl__serve_page_answer(&walk->page, call);
    }
    return status;
}

static pawl_page page_of(uint64_t from, uint64_t limit)
{
    pawl_page page = PAWL_PAGE_INIT;

    page.from = from;
    page.limit = limit;
    return page;
}

static pawl_status start(struct walk *walk,
                         struct pawl__serve_call *call,
                         pawl_view name,
                         pawl_page listed,
                         pawl_error *reterr)
{
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, name, &found, reterr));
    walk->app = found.app;
    walk->listed = listed;
    pawl__serve_page_start(&walk->page, listed.limit);
    return PAWL_OK;
}

/* --- records --- */

pawl_status pawl__serve_records(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct workspace_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .error = PAWL_ERROR_INIT };

    TRY(start(&walk, call, asked->app, page_of(asked->from, asked->limit), reterr));
    return answer(
        &walk,
        call,
        pawl_app_read_c_records(walk.app, asked->wsid, &walk.listed, add_record, &walk, reterr),
        reterr);
}

struct one_record {
    struct pawl__buf body;
    pawl_error error; /* PAWL_OK: none */
};

static void one_record_done(struct one_record *one)
{
    pawl__buf_done(&one->body);
}

static bool on_record(void *context, const pawl_app_record *record)
{
    struct one_record *one = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_app_record_to_json(record, &json, &len, &one->error) == PAWL_OK) {
        pawl__buf_add(&one->body, (pawl_view){ json, len });
        pawl__buf_add_char(&one->body, '\n');
    }
    return true;
}

pawl_status pawl__serve_record(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct record_path *path = call->parameters;
    AUTO(one_record_done)
    struct one_record one = { BUF_INIT(RECORD_BYTES_MAX), PAWL_ERROR_INIT };
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, path->app, &found, reterr));
    TRY(pawl_app_read_record(found.app, path->wsid, path->id, on_record, &one, reterr));
    if (one.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, one.error.status, &one.error);
    }
    pawl__serve_answer_buf(call, 200, &one.body);
    return PAWL_OK;
}

/* --- logs --- */

pawl_status pawl__serve_wlog(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct workspace_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .error = PAWL_ERROR_INIT };

    TRY(start(&walk, call, asked->app, page_of(asked->from, asked->limit), reterr));
    return answer(&walk,
                  call,
                  pawl_app_read_wlog(walk.app, asked->wsid, &walk.listed, add_event, &walk, reterr),
                  reterr);
}

pawl_status pawl__serve_plog(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct partition_page *asked = call->parameters;
    AUTO(walk_done) struct walk walk = { .error = PAWL_ERROR_INIT };

    TRY(start(&walk, call, asked->app, page_of(asked->from, asked->limit), reterr));
    unsigned count = pawl_app_get_descriptor(walk.app)->partitions;
    if (asked->p >= count) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "there is no partition %" PRIu64 ", the last one is %u",
                          asked->p,
                          count - 1);
    }
    return answer(
        &walk,
        call,
        pawl_app_read_plog(walk.app, (uint16_t)asked->p, &walk.listed, add_event, &walk, reterr),
        reterr);
}
