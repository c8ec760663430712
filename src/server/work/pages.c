/* Lists of the work store, a page at a time, by ids or numbers. */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "server/page.h"
#include "server/work/records.h"
#include "server/work/work.h"

/* The store to read from; NULL with PAWL_OK: no store yet, so nothing is listed. */
static pawl_status find(struct pawl__serve_call *call, pawl_work **ret_store, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, ret_store, &error);

    if (status == PAWL_NOT_FOUND) {
        *ret_store = NULL;
        return PAWL_OK;
    }
    *reterr = error;
    return status;
}

/* NOT_FOUND instead of an empty first page: a misspelt task is not an empty one. */
static pawl_status check_task(pawl_work *store,
                              pawl_view task_id,
                              const struct pawl__serve_page *page,
                              bool is_first,
                              pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *task = NULL;

    return task_id.len == 0 || page->count > 0 || !is_first
               ? PAWL_OK
               : pawl_task_get(store, task_id, &task, reterr);
}

static pawl_status set_from_id(pawl_page *page, pawl_view from, pawl_error *reterr)
{
    struct pawl__buf id = BUF_OVER(page->from_id);

    pawl__buf_add(&id, from);
    return !id.broken && strlen(page->from_id) == from.len
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "from: is not the id of anything");
}

/* --- tasks --- */

static bool add_task(void *context, const pawl_task *task)
{
    return pawl__serve_page_add(context, &pawl__task_record, task);
}

pawl_status pawl__serve_work_task_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct task_list *asked = call->parameters;
    const pawl_task_status status = (pawl_task_status)asked->status;
    pawl_work *store = NULL;
    AUTO(pawl__serve_page_done) struct pawl__serve_page page = { .count = 0 };
    pawl_page listed = PAWL_PAGE_INIT;

    TRY(find(call, &store, reterr));
    pawl__serve_page_start(&page, asked->limit);
    listed.limit = asked->limit;
    if (store != NULL) {
        TRY(set_from_id(&listed, asked->from, reterr));
        TRY(pawl_task_list(store,
                           asked->status == FIELD_ENUM_NONE ? NULL : &status,
                           &listed,
                           add_task,
                           &page,
                           reterr));
        pawl__serve_page_follow(&page, &listed);
    }
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}

/* --- items --- */

static bool add_item(void *context, const pawl_item *item)
{
    return pawl__serve_page_add(context, &pawl__item_record, item);
}

pawl_status pawl__serve_work_item_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct item_list *asked = call->parameters;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_work *store = NULL;
    AUTO(pawl__serve_page_done) struct pawl__serve_page page = { .count = 0 };
    pawl_page listed = PAWL_PAGE_INIT;

    filter.statuses = asked->status == FIELD_ENUM_NONE ? 0 : 1U << asked->status;
    filter.task_id = asked->task;
    filter.work_type = asked->type;
    filter.by_id = true;
    TRY(find(call, &store, reterr));
    pawl__serve_page_start(&page, asked->limit);
    listed.limit = asked->limit;
    if (store != NULL) {
        TRY(set_from_id(&listed, asked->from, reterr));
        TRY(pawl_work_list(store, &filter, &listed, add_item, &page, reterr));
        pawl__serve_page_follow(&page, &listed);
        TRY(check_task(store, asked->task, &page, asked->from.len == 0, reterr));
    }
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}

/* --- checkpoints --- */

static bool add_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    return pawl__serve_page_add(context, &pawl__checkpoint_record, checkpoint);
}

pawl_status pawl__serve_work_checkpoint_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct checkpoint_list *asked = call->parameters;
    const pawl_checkpoint_type type = (pawl_checkpoint_type)asked->type;
    pawl_work *store = NULL;
    AUTO(pawl__serve_page_done) struct pawl__serve_page page = { .count = 0 };
    pawl_page listed = PAWL_PAGE_INIT;

    /* Of a task: without a store there is none. */
    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    pawl__serve_page_start(&page, asked->limit);
    listed.limit = asked->limit;
    listed.from = asked->from;
    TRY(pawl_checkpoint_list(store,
                             asked->task,
                             (pawl_view){ NULL, 0 },
                             asked->type == FIELD_ENUM_NONE ? NULL : &type,
                             &listed,
                             add_checkpoint,
                             &page,
                             reterr));
    pawl__serve_page_follow_at(&page, &listed);
    TRY(check_task(store, asked->task, &page, asked->from == 0, reterr));
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}
