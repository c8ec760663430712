/* Records and logs, a page at a time: {"items":[...],"next":"..."}. A client passes `next` as `from` to get the next
 * page; it is null on the last one. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/node_internal.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
    PAGE_BYTES = 8 << 20 /* a page ends after the item that exceeds it */
};
#define BODY_BYTES_MAX ((size_t)64 << 20)

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

static void page_done(struct page *page)
{
    pawl__buf_done(&page->body);
}

/* Adds the items of a workspace or partition to a page. */
typedef pawl_status read_page_fn(struct page *page, uint64_t of, pawl_error *reterr);

/* Reads the query, calls `read` and answers. */
static pawl_status answer_page(struct pawl__http_request *request,
                               pawl_app *app,
                               read_page_fn *read,
                               uint64_t of,
                               pawl_error *reterr)
{
    AUTO(page_done)
    struct page page = { .app = app, .limit = LIMIT_DEFAULT, .body = BUF_INIT(BODY_BYTES_MAX) };

    pawl__buf_add_text(&page.body, "{\"items\":[");
    TRY(pawl__http_query_number(request, "from", from_range, &page.from, reterr));
    TRY(pawl__http_query_number(request, "limit", limit_range, &page.limit, reterr));
    pawl_status status = read(&page, of, reterr);
    if (status != PAWL_OK && !(status == PAWL_CANCELLED && page.next != 0)) {
        return status; /* CANCELLED with a next item is a full page */
    }
    if (page.next == 0) {
        pawl__buf_add_text(&page.body, "],\"next\":null}\n");
    } else {
        pawl__buf_add_format(&page.body, "],\"next\":\"%" PRIu64 "\"}\n", page.next);
    }
    pawl__http_answer_buf(request, 200, HTTP_JSON, &page.body);
    return PAWL_OK;
}

static pawl_status find_workspace(const struct pawl__http_request *request,
                                  uint64_t *ret_workspace,
                                  pawl_error *reterr)
{
    static const uint64_t range[2] = { 1, PAWL_APP_WORKSPACE_MAX };

    return pawl__http_part_number(request, "wsid", range, ret_workspace, reterr);
}

/* A page of what `read` finds in the workspace that the address names. */
static pawl_status answer_workspace(struct pawl__http_request *request,
                                    const struct node_app_state *found,
                                    read_page_fn *read,
                                    pawl_error *reterr)
{
    uint64_t workspace = 0;

    TRY(find_workspace(request, &workspace, reterr));
    return answer_page(request, found->app, read, workspace, reterr);
}

/* --- records --- */

static pawl_status read_records(struct page *page, uint64_t workspace, pawl_error *reterr)
{
    return pawl_app_read_c_records(
        page->app, workspace, page->from, page->limit + 1, add_record, page, reterr);
}

static pawl_status records(struct pawl__http_request *request,
                           const struct node_app_state *found,
                           pawl_error *reterr)
{
    return answer_workspace(request, found, read_records, reterr);
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

static pawl_status one_record(struct pawl__http_request *request,
                              const struct node_app_state *found,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(BODY_BYTES_MAX);
    uint64_t workspace = 0;
    uint64_t id = 0;

    TRY(find_workspace(request, &workspace, reterr));
    TRY(pawl__http_part_number(request, "id", id_range, &id, reterr));
    TRY(pawl_app_read_record(found->app, workspace, id, on_record, &body, reterr));
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
    return PAWL_OK;
}

/* --- logs --- */

static pawl_status read_wlog(struct page *page, uint64_t workspace, pawl_error *reterr)
{
    return pawl_app_read_wlog(
        page->app, workspace, page->from, page->limit + 1, add_wlog_event, page, reterr);
}

static pawl_status wlog(struct pawl__http_request *request,
                        const struct node_app_state *found,
                        pawl_error *reterr)
{
    return answer_workspace(request, found, read_wlog, reterr);
}

static pawl_status read_plog(struct page *page, uint64_t partition, pawl_error *reterr)
{
    return pawl_app_read_plog(
        page->app, (uint16_t)partition, page->from, page->limit + 1, add_plog_event, page, reterr);
}

static pawl_status plog(struct pawl__http_request *request,
                        const struct node_app_state *found,
                        pawl_error *reterr)
{
    static const uint64_t range[2] = { 0, PAWL_APP_PARTITIONS_MAX - 1 };
    unsigned count = pawl_app_get_descriptor(found->app)->partitions;
    uint64_t partition = 0;

    TRY(pawl__http_part_number(request, "p", range, &partition, reterr));
    return partition < count ? answer_page(request, found->app, read_plog, partition, reterr)
                             : pawl__fail(reterr,
                                          PAWL_NOT_FOUND,
                                          "there is no partition %" PRIu64 ", the last one is %u",
                                          partition,
                                          count - 1);
}

DEFINE_APP_HANDLER(pawl__serve_records, records)
DEFINE_APP_HANDLER(pawl__serve_record, one_record)
DEFINE_APP_HANDLER(pawl__serve_wlog, wlog)
DEFINE_APP_HANDLER(pawl__serve_plog, plog)
