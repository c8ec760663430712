/* Lists of the work store, a page at a time, by ids or numbers: {"items":[...],"next":"..."}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/display.h"
#include "records/work.h"
#include "server/node_internal.h"
#include "server/work/work.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 1000,
    PAGE_BYTES = 8 << 20 /* a page ends after the item that exceeds it */
};
#define BODY_BYTES_MAX ((size_t)64 << 20)

struct page {
    pawl_view from; /* empty: the first */
    uint64_t limit;
    uint64_t count;
    char next[PAWL_WORK_NAME_BYTES_MAX + 1]; /* empty: there is none */
    struct pawl__buf body;
};

static void page_done(struct page *page)
{
    pawl__buf_done(&page->body);
}

static pawl_status start(struct page *page,
                         const struct pawl__http_request *request,
                         pawl_error *reterr)
{
    static const uint64_t limits[2] = { 1, LIMIT_MAX };
    const pawl_view *from = pawl__http_query(request, "from");

    *page = (struct page){ .limit = LIMIT_DEFAULT };
    page->body = (struct pawl__buf)BUF_INIT(BODY_BYTES_MAX);
    pawl__buf_add_text(&page->body, "{\"items\":[");
    if (from != NULL && from->len > PAWL_WORK_NAME_BYTES_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "from: is no 'next' of a page");
    }
    page->from = from == NULL ? (pawl_view){ NULL, 0 } : *from;
    return pawl__http_query_number(request, "limit", limits, &page->limit, reterr);
}

/* True when there is room for one more; else `position` is where the next page begins. */
static bool has_room(struct page *page, pawl_view position)
{
    if (page->count < page->limit && page->body.len <= PAGE_BYTES) {
        return true;
    }
    struct pawl__buf next = BUF_OVER(page->next);
    pawl__buf_add(&next, position);
    return false;
}

static bool add(struct page *page, const struct pawl__record *record, const void *value)
{
    pawl__buf_add_text(&page->body, page->count++ == 0 ? "" : ",");
    pawl__record_write(record, value, &page->body);
    return !page->body.broken;
}

/* After the walk. */
static pawl_status answer(struct page *page, struct pawl__http_request *request)
{
    pawl__buf_add_text(&page->body, "],\"next\":");
    if (page->next[0] == '\0') {
        pawl__buf_add_text(&page->body, "null");
    } else {
        pawl__display_add_json(&page->body, pawl_view_of(page->next));
    }
    pawl__buf_add_text(&page->body, "}\n");
    pawl__http_answer_buf(request, 200, HTTP_JSON, &page->body);
    return PAWL_OK;
}

/* The store to read from; NULL with PAWL_OK: no store yet, so nothing is listed. */
static pawl_status find(struct node_work *work, pawl_work **ret_store, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, ret_store, &error);

    if (status == PAWL_NOT_FOUND) {
        *ret_store = NULL;
        return PAWL_OK;
    }
    *reterr = error;
    return status;
}

static pawl_status wrong_parameter(const char *name, pawl_status status, pawl_error *reterr)
{
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "%s", name);
}

/* NOT_FOUND instead of an empty first page: a misspelt task is not an empty one. */
static pawl_status check_task(pawl_work *store,
                              pawl_view task_id,
                              const struct page *page,
                              pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *task = NULL;

    return task_id.len == 0 || page->count > 0 || page->from.len > 0
               ? PAWL_OK
               : pawl_task_get(store, task_id, &task, reterr);
}

/* --- tasks --- */

static bool add_task(void *context, const pawl_task *task)
{
    return has_room(context, task->task_id) && add(context, &pawl__task_record, task);
}

static pawl_status list_tasks(struct pawl__http_request *request,
                              struct node_work *work,
                              pawl_error *reterr)
{
    const pawl_view *name = pawl__http_query(request, "status");
    pawl_task_status wanted = PAWL_TASK_PENDING;
    pawl_work *store = NULL;
    AUTO(page_done) struct page page;

    TRY(start(&page, request, reterr));
    if (name != NULL) {
        TRY(wrong_parameter("status", pawl_task_status_parse(*name, &wanted, reterr), reterr));
    }
    TRY(find(work, &store, reterr));
    if (store != NULL) {
        TRY(pawl_task_page(store,
                           name == NULL ? NULL : &wanted,
                           page.from,
                           page.limit + 1,
                           add_task,
                           &page,
                           reterr));
    }
    return answer(&page, request);
}
DEFINE_HANDLER(pawl__serve_work_task_list, list_tasks)

/* --- items --- */

static bool add_item(void *context, const pawl_item *item)
{
    return has_room(context, item->work_item_id) && add(context, &pawl__item_record, item);
}

static pawl_status read_filter(const struct pawl__http_request *request,
                               const struct page *page,
                               pawl_item_filter *filter,
                               pawl_error *reterr)
{
    const pawl_view *status_name = pawl__http_query(request, "status");
    pawl_item_status wanted = PAWL_ITEM_PENDING;

    if (status_name != NULL) {
        TRY(wrong_parameter(
            "status", pawl_item_status_parse(*status_name, &wanted, reterr), reterr));
        filter->statuses = 1U << wanted;
    }
    filter->by_id = true;
    filter->from_id = page->from;
    filter->limit = page->limit + 1;
    TRY(pawl__serve_work_query_name(request, "type", &filter->work_type, reterr));
    return pawl__serve_work_query_name(request, "task", &filter->task_id, reterr);
}

static pawl_status list_items(struct pawl__http_request *request,
                              struct node_work *work,
                              pawl_error *reterr)
{
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_work *store = NULL;
    AUTO(page_done) struct page page;

    TRY(start(&page, request, reterr));
    TRY(read_filter(request, &page, &filter, reterr));
    TRY(find(work, &store, reterr));
    if (store != NULL) {
        TRY(pawl_work_list(store, &filter, add_item, &page, reterr));
        TRY(check_task(store, filter.task_id, &page, reterr));
    }
    return answer(&page, request);
}
DEFINE_HANDLER(pawl__serve_work_item_list, list_items)

/* --- checkpoints --- */

static bool add_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    char position[32];

    (void)snprintf(position, sizeof(position), "%lld", (long long)checkpoint->sequence_number);
    return has_room(context, pawl_view_of(position))
           && add(context, &pawl__checkpoint_record, checkpoint);
}

pawl_status pawl__serve_work_query_type(const struct pawl__http_request *request,
                                        pawl_checkpoint_type *type,
                                        const pawl_checkpoint_type **ret_type,
                                        pawl_error *reterr)
{
    const pawl_view *name = pawl__http_query(request, "type");

    *ret_type = name == NULL ? NULL : type;
    return name == NULL
               ? PAWL_OK
               : wrong_parameter("type", pawl_checkpoint_type_parse(*name, type, reterr), reterr);
}

static pawl_status list_checkpoints(struct pawl__http_request *request,
                                    struct node_work *work,
                                    pawl_error *reterr)
{
    static const uint64_t numbers[2] = { 0, INT64_MAX };
    pawl_view task_id = pawl__http_part(request, "task");
    pawl_checkpoint_type wanted = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;
    const pawl_checkpoint_type *type = NULL;
    pawl_work *store = NULL;
    uint64_t from = 0;
    AUTO(page_done) struct page page;

    TRY(start(&page, request, reterr));
    TRY(pawl__http_query_number(request, "from", numbers, &from, reterr));
    TRY(pawl__serve_work_query_type(request, &wanted, &type, reterr));
    /* Of a task: without a store there is none. */
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_checkpoint_page(
        store, task_id, type, (int64_t)from, page.limit + 1, add_checkpoint, &page, reterr));
    TRY(check_task(store, task_id, &page, reterr));
    return answer(&page, request);
}
DEFINE_HANDLER(pawl__serve_work_checkpoint_list, list_checkpoints)
