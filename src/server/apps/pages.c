/* Records and logs, a page at a time: {"items":[...],"next":"..."}, where `next` is what `from` of the
 * next page is, and null behind the last. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/node_internal.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
    PAGE_BYTES = 8 << 20 /* a page ends behind the item that goes over it */
};
#define BODY_BYTES_MAX ((size_t)64 << 20)

static const uint64_t workspace_range[2] = { 1, PAWL_APP_WORKSPACE_MAX };
static const uint64_t id_range[2] = { 1, PAWL_APP_C_ID_MAX };
static const uint64_t from_range[2] = { 0, INT64_MAX };
static const uint64_t limit_range[2] = { 1, LIMIT_MAX };

struct page {
    pawl_app *app;
    uint64_t from;
    uint64_t limit;
    struct pawl__buf body;
    uint64_t count;
    uint64_t next; /* 0: there is none */
};

/* True when there is room for the item that stands at `position`. */
static bool has_room(struct page *page, uint64_t position)
{
    if (page->count == page->limit || page->body.len > PAGE_BYTES) {
        page->next = position;
        return false;
    }
    return true;
}

static pawl_status add_item(struct page *page, const char *json, size_t len)
{
    pawl__buf_add_text(&page->body, page->count++ == 0 ? "" : ",");
    pawl__buf_add(&page->body, (pawl_view){ json, len });
    return PAWL_OK;
}

static pawl_status add_record(void *context, const pawl_app_record *record, pawl_error *reterr)
{
    struct page *page = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (!has_room(page, record->id)) {
        return PAWL_CANCELLED;
    }
    TRY(pawl_app_record_to_json(record, &json, &len, reterr));
    return add_item(page, json, len);
}

static pawl_status add_event(struct page *page,
                             const pawl_app_event *event,
                             uint64_t offset,
                             pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (!has_room(page, offset)) {
        return PAWL_CANCELLED;
    }
    TRY(pawl_app_event_to_json(page->app, event, &json, &len, reterr));
    return add_item(page, json, len);
}

static pawl_status add_wlog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    return add_event(context, event, event->wlog_offset, reterr);
}

static pawl_status add_plog_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    return add_event(context, event, event->plog_offset, reterr);
}

static pawl_status start(struct page *page,
                         const struct pawl__http_request *request,
                         pawl_error *reterr)
{
    page->limit = LIMIT_DEFAULT;
    page->body = (struct pawl__buf)BUF_INIT(BODY_BYTES_MAX);
    pawl__buf_add_text(&page->body, "{\"items\":[");
    TRY(pawl__http_query_number(request, "from", from_range, &page->from, reterr));
    return pawl__http_query_number(request, "limit", limit_range, &page->limit, reterr);
}

/* Frees the page. CANCELLED with a next item is a full page. */
static void answer(struct page *page,
                   struct pawl__http_request *request,
                   pawl_status status,
                   const pawl_error *error)
{
    if (status != PAWL_OK && !(status == PAWL_CANCELLED && page->next != 0)) {
        pawl__buf_done(&page->body);
        pawl__http_fail(request, error);
        return;
    }
    if (page->next == 0) {
        pawl__buf_add_text(&page->body, "],\"next\":null}\n");
    } else {
        pawl__buf_add_format(&page->body, "],\"next\":\"%" PRIu64 "\"}\n", page->next);
    }
    pawl__http_answer_buf(request, 200, HTTP_JSON, &page->body);
}

static pawl_status read_records(struct page *page, uint64_t workspace, pawl_error *reterr)
{
    return pawl_app_read_c_records(
        page->app, workspace, page->from, page->limit + 1, add_record, page, reterr);
}

static pawl_status read_wlog(struct page *page, uint64_t workspace, pawl_error *reterr)
{
    return pawl_app_read_wlog(
        page->app, workspace, page->from, page->limit + 1, add_wlog_event, page, reterr);
}

/* A page of what `read` finds in the workspace that the path names. */
static void serve_workspace(struct pawl__http_request *request,
                            void *context,
                            pawl_status (*read)(struct page *page,
                                                uint64_t workspace,
                                                pawl_error *reterr))
{
    struct page page = { .app = pawl__serve_find(request, context) };
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t workspace = 0;

    if (page.app == NULL) {
        return;
    }
    pawl_status status =
        pawl__http_part_number(request, "wsid", workspace_range, &workspace, &error);
    if (status == PAWL_OK) {
        status = start(&page, request, &error);
    }
    if (status == PAWL_OK) {
        status = read(&page, workspace, &error);
    }
    answer(&page, request, status, &error);
}

void pawl__serve_records(struct pawl__http_request *request, void *context)
{
    serve_workspace(request, context, read_records);
}

void pawl__serve_wlog(struct pawl__http_request *request, void *context)
{
    serve_workspace(request, context, read_wlog);
}

static pawl_status find_partition(const struct pawl__http_request *request,
                                  const pawl_app *app,
                                  uint64_t *ret_partition,
                                  pawl_error *reterr)
{
    static const uint64_t range[2] = { 0, PAWL_APP_PARTITIONS_MAX - 1 };
    unsigned count = pawl_app_get_descriptor(app)->partitions;

    TRY(pawl__http_part_number(request, "p", range, ret_partition, reterr));
    return *ret_partition >= count
               ? pawl__fail(reterr,
                            PAWL_NOT_FOUND,
                            "there is no partition %" PRIu64 ", the last one is %u",
                            *ret_partition,
                            count - 1)
               : PAWL_OK;
}

void pawl__serve_plog(struct pawl__http_request *request, void *context)
{
    struct page page = { .app = pawl__serve_find(request, context) };
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t partition = 0;

    if (page.app == NULL) {
        return;
    }
    pawl_status status = find_partition(request, page.app, &partition, &error);
    if (status == PAWL_OK) {
        status = start(&page, request, &error);
    }
    if (status == PAWL_OK) {
        status = pawl_app_read_plog(page.app,
                                    (uint16_t)partition,
                                    page.from,
                                    page.limit + 1,
                                    add_plog_event,
                                    &page,
                                    &error);
    }
    answer(&page, request, status, &error);
}

/* --- one record --- */

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

void pawl__serve_record(struct pawl__http_request *request, void *context)
{
    pawl_app *app = pawl__serve_find(request, context);
    struct pawl__buf body = BUF_INIT(BODY_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t workspace = 0;
    uint64_t id = 0;

    if (app == NULL) {
        return;
    }
    pawl_status status =
        pawl__http_part_number(request, "wsid", workspace_range, &workspace, &error);
    if (status == PAWL_OK) {
        status = pawl__http_part_number(request, "id", id_range, &id, &error);
    }
    if (status == PAWL_OK) {
        status = pawl_app_read_record(app, workspace, id, on_record, &body, &error);
    }
    if (status != PAWL_OK) {
        pawl__buf_done(&body);
        pawl__http_fail(request, &error);
        return;
    }
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}
