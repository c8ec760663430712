/* Tasks: create, read, set their status, cancel. */
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/json/json.h"
#include "base/thread/inside.h"
#include "work/core/copy.h"
#include "work/core/group.h"
#include "work/core/internal.h"
#include "work/items/item.h"

enum { CANCEL_AT_ONCE = 1000 };

/* --- making --- */

struct create_request {
    struct work_request request;
    pawl_task task;
};

static pawl_status run_create(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    pawl_task *task = &((struct create_request *)request)->task;
    struct work_task stored = { .known = false };
    TRY(tx->backend->items->tasks(tx->backend, &task->task_id, 1, tx->arena, &stored, reterr));
    if (!stored.known) {
        return tx->backend->items->task_insert(tx->backend, &tx->now, task, reterr);
    }
    bool same_title = pawl__view_equal(stored.task.title, task->title);
    bool same_metadata = false;
    TRY(pawl__json_same(stored.task.metadata, task->metadata, &same_metadata, reterr));
    if (!(same_title && same_metadata)) {
        pawl__work_refuse_detail(request,
                                 PAWL_CONFLICT,
                                 ID_TAKEN,
                                 "task '%.*s' is there with another %s",
                                 VIEW_ARGS(task->task_id),
                                 same_title ? "metadata" : "title");
    }
    return PAWL_OK;
}

static pawl_status check_task(const pawl_work *work, const pawl_task *task, pawl_error *reterr)
{
    json_auto_t *metadata = NULL;

    TRY(pawl__check_bytes("title", task->title.len, PAWL_WORK_TITLE_BYTES_MAX, reterr));
    if (!pawl__view_is_utf8(task->title)
        || (task->title.len > 0 && memchr(task->title.data, '\0', task->title.len) != NULL)) {
        return pawl__fail(reterr, PAWL_INVALID, "title: is not UTF-8 without NUL bytes");
    }
    if (task->metadata.len == 0) {
        return PAWL_OK;
    }
    pawl_status status =
        pawl__json_parse(task->metadata, work->options.data_bytes_max, &metadata, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "metadata");
    }
    return json_is_object(metadata)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "metadata: must be a JSON object");
}

pawl_status pawl_task_create(
    pawl_work *work, const pawl_task *task, char *ret_id, size_t room, pawl_error *reterr)
{
    pawl_task whole = PAWL_TASK_INIT;

    NEED(work, task, reterr);
    TRY(pawl__take_sized("task", task, &whole, sizeof(whole), reterr));
    task = &whole;
    NEED_VIEW(task->task_id, reterr);
    NEED_VIEW(task->title, reterr);
    NEED_VIEW(task->metadata, reterr);
    struct create_request create = { .request.run = run_create };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_status status = pawl__work_id(task->task_id, id, reterr);

    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "task_id");
    }
    create.task = (pawl_task){ .size = sizeof(pawl_task),
                               .task_id = pawl_view_of(id),
                               .title = task->title,
                               .metadata = task->metadata,
                               .status = PAWL_TASK_PENDING };
    create.request.item.bytes = task->title.len + task->metadata.len;
    TRY(check_task(work, task, reterr));
    TRY(pawl__check_room("ret_id", ret_id, room, strlen(id) + 1, reterr));
    TRY(pawl__work_submit_request(work, &create.request, reterr));
    if (ret_id != NULL) {
        memcpy(ret_id, id, strlen(id) + 1);
    }
    return PAWL_OK;
}

/* --- looking --- */

struct task_copy {
    pawl_task *task;
    pawl_status status;
    pawl_error *reterr;
};

static bool copy_task(void *context, const pawl_task *task)
{
    struct task_copy *copy = context;

    copy->status = pawl__work_copy_out_task(task, &copy->task, copy->reterr);
    return false;
}

pawl_status pawl_task_get(pawl_work *work,
                          pawl_view task_id,
                          pawl_task **ret_task,
                          pawl_error *reterr)
{
    NEED(work, ret_task, reterr);
    struct task_copy copy = { .reterr = reterr };
    TRY(pawl__work_check_name("task_id", task_id, reterr));
    const struct work_task_query query = { .id = task_id };
    TRY(work->backend->items->task_read(work->backend, &query, copy_task, &copy, reterr));
    TRY(copy.status);
    if (copy.task == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no task '%.*s'", VIEW_ARGS(task_id));
    }
    *ret_task = copy.task;
    return PAWL_OK;
}

struct task_walk {
    pawl_task_visit visit;
    void *context;
    struct pawl__page page;
};

static bool list_task(void *context, const pawl_task *task)
{
    struct task_walk *walk = context;

    return pawl__page_admits_id(&walk->page, task->task_id)
           && pawl__page_show(&walk->page, walk->visit(walk->context, task));
}

pawl_status pawl_task_list(pawl_work *work,
                           const pawl_task_status *status,
                           pawl_page *page,
                           pawl_task_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct task_walk walk = { .visit = visit, .context = context };
    TRY(pawl__page_take(page, &walk.page, reterr));
    const pawl_page asked = walk.page.page; /* the walk's own copy changes on the way */
    const struct work_task_query query = {
        .status = status,
        .by_id = page != NULL,
        .from_id = pawl_view_of(asked.from_id),
        .limit = pawl__page_reads(&walk.page),
    };

    TRY(pawl__work_check_optional_name("page: from_id", query.from_id, reterr));
    if (status != NULL && (unsigned)*status > PAWL_TASK_CANCELLED) {
        return pawl__fail(reterr, PAWL_INVALID, "status: %d is none", (int)*status);
    }
    INSIDE(work);
    TRY(work->backend->items->task_read(work->backend, &query, list_task, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

/* --- setting --- */

struct task_request {
    struct work_request request;
    pawl_view task_id;
    pawl_task_status status;
    uint64_t items; /* answer: how many were cancelled */
};

static pawl_status run_set(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct task_request *set = (struct task_request *)request;
    pawl_task stored;
    TRY(pawl__work_tx_task(tx, request, set->task_id, &stored, reterr));
    if (pawl__work_is_refused(request)) {
        return PAWL_OK;
    }
    if (stored.status == PAWL_TASK_CANCELLED) {
        return pawl__work_refuse_detail(request,
                                        PAWL_CONFLICT,
                                        TASK_ENDED,
                                        "task '%.*s' is cancelled",
                                        VIEW_ARGS(set->task_id));
    }
    return tx->backend->items->task_set(
        tx->backend, &tx->now, set->task_id, set->status, true, reterr);
}

pawl_status pawl_task_set_status(pawl_work *work,
                                 pawl_view task_id,
                                 pawl_task_status status,
                                 pawl_error *reterr)
{
    NEED(work, reterr);
    struct task_request set = {
        .request.run = run_set,
        .task_id = task_id,
        .status = status,
    };
    TRY(pawl__work_check_name("task_id", task_id, reterr));
    if ((unsigned)status >= PAWL_TASK_CANCELLED) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          status == PAWL_TASK_CANCELLED
                              ? "status: a task is cancelled with pawl_task_cancel"
                              : "status: is none");
    }
    return pawl__work_submit_request(work, &set.request, reterr);
}

/* --- cancelling --- */

static pawl_status cancel_items(struct work_tx *tx,
                                pawl_view task_id,
                                uint64_t *ret_items,
                                pawl_error *reterr)
{
    struct work_backend *backend = tx->backend;
    struct work_row **rows = TX_ALLOC(tx, CANCEL_AT_ONCE, sizeof(struct work_row *), reterr);
    struct work_rows found = { .arena = tx->arena, .rows = rows, .room = CANCEL_AT_ONCE };

    *ret_items = 0;
    do {
        found.count = 0;
        TRY(backend->items->unfinished(backend, task_id, &found, reterr));
        for (size_t i = 0; i < found.count; i++) {
            (void)pawl__work_decide_cancel(rows[i], pawl_view_of(WORK_CANCELLED_MESSAGE), &tx->now);
        }
        /* Straight to the store: all that could follow is cancelled here, too. */
        TRY(backend->items->put(backend, rows, found.count, reterr));
        *ret_items += found.count;
    } while (found.count > 0);
    return PAWL_OK;
}

static pawl_status run_task_cancel(struct work_tx *tx,
                                   struct work_request *request,
                                   pawl_error *reterr)
{
    struct task_request *cancel = (struct task_request *)request;
    pawl_task stored;

    cancel->items = 0;
    TRY(pawl__work_tx_task(tx, request, cancel->task_id, &stored, reterr));
    if (pawl__work_is_refused(request)) {
        return PAWL_OK;
    }
    if (stored.status == PAWL_TASK_SUCCEEDED || stored.status == PAWL_TASK_FAILED) {
        return pawl__work_refuse_detail(request,
                                        PAWL_CONFLICT,
                                        TASK_ENDED,
                                        "task '%.*s' has %s already",
                                        VIEW_ARGS(cancel->task_id),
                                        pawl__work_task_status_text(stored.status));
    }
    if (stored.status != PAWL_TASK_CANCELLED) {
        TRY(tx->backend->items->task_set(
            tx->backend, &tx->now, cancel->task_id, PAWL_TASK_CANCELLED, true, reterr));
    }
    return cancel_items(tx, cancel->task_id, &cancel->items, reterr);
}

pawl_status pawl_task_cancel(pawl_work *work,
                             pawl_view task_id,
                             uint64_t *ret_items,
                             pawl_error *reterr)
{
    NEED(work, reterr);
    struct task_request cancel = {
        .request.run = run_task_cancel,
        .task_id = task_id,
    };
    TRY(pawl__work_check_name("task_id", task_id, reterr));
    TRY(pawl__work_submit_request(work, &cancel.request, reterr));
    pawl__work_prefetch_withdraw(work->prefetch, task_id, (pawl_view){ NULL, 0 });
    if (ret_items != NULL) {
        *ret_items = cancel.items;
    }
    return PAWL_OK;
}

struct item_request {
    struct work_request request;
    pawl_view work_item_id;
};

static pawl_status run_item_cancel(struct work_tx *tx,
                                   struct work_request *request,
                                   pawl_error *reterr)
{
    pawl_view id = ((struct item_request *)request)->work_item_id;
    struct work_row *row = NULL;
    TRY(pawl__work_tx_item(tx, request, id, &row, reterr));
    if (row == NULL) {
        return PAWL_OK;
    }
    if (!pawl__work_decide_cancel(row, pawl_view_of(WORK_CANCELLED_MESSAGE), &tx->now)) {
        return pawl__work_refuse_detail(request,
                                        PAWL_CONFLICT,
                                        ITEM_ENDED,
                                        "item '%.*s' is %s already",
                                        VIEW_ARGS(id),
                                        pawl__work_item_status_text(row->item.status));
    }
    return pawl__work_tx_put(tx, &row, 1, reterr);
}

pawl_status pawl_work_cancel(pawl_work *work, pawl_view work_item_id, pawl_error *reterr)
{
    NEED(work, reterr);
    struct item_request cancel = {
        .request.run = run_item_cancel,
        .work_item_id = work_item_id,
    };
    TRY(pawl__work_check_name("work_item_id", work_item_id, reterr));
    TRY(pawl__work_submit_request(work, &cancel.request, reterr));
    pawl__work_prefetch_withdraw(work->prefetch, (pawl_view){ NULL, 0 }, work_item_id);
    return PAWL_OK;
}
