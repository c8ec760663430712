/* Reading items and their history, on the caller's thread. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "work/core/copy.h"
#include "work/core/internal.h"
#include "work/items/item.h"

struct item_copy {
    pawl_item *item;
    pawl_status status;
    pawl_error *reterr;
};

static bool copy_item(void *context, const struct work_row *row)
{
    struct item_copy *copy = context;

    copy->status = pawl__work_copy_out_item(&row->item, &copy->item, copy->reterr);
    return false;
}

pawl_status pawl_work_get(pawl_work *work,
                          pawl_view work_item_id,
                          pawl_item **ret_item,
                          pawl_error *reterr)
{
    NEED(work, ret_item, reterr);
    struct item_copy copy = { .reterr = reterr };
    TRY(pawl__work_check_name("work_item_id", work_item_id, reterr));
    TRY(work->backend->items->get(work->backend, work_item_id, copy_item, &copy, reterr));
    TRY(copy.status);
    *ret_item = copy.item;
    return PAWL_OK;
}

struct item_walk {
    pawl_item_visit visit;
    void *context;
    struct pawl__page page;
};

static bool show_item(void *context, const struct work_row *row)
{
    struct item_walk *walk = context;
    pawl_item item = row->item;

    item.size = sizeof(item); /* a row has none */
    return pawl__page_admits_id(&walk->page, item.work_item_id)
           && pawl__page_show(&walk->page, walk->visit(walk->context, &item));
}

static pawl_status check_query(const struct work_item_query *query, pawl_error *reterr)
{
    const pawl_item_filter *filter = &query->filter;
    const struct {
        const char *field;
        pawl_view text;
    } texts[] = {
        { "filter: task_id", filter->task_id },
        { "filter: work_type", filter->work_type },
        { "filter: lease_holder", filter->lease_holder },
        { "page: from_id", query->from_id },
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(pawl__work_check_optional_name(texts[i].field, texts[i].text, reterr));
    }
    if (filter->statuses >> (PAWL_ITEM_WAITING + 1) != 0) {
        return pawl__fail(reterr, PAWL_INVALID, "filter: statuses: has bits of no status");
    }
    return filter->by_id || query->from_id.len == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "page: from_id: needs the filter's by_id");
}

pawl_status pawl_work_list(pawl_work *work,
                           const pawl_item_filter *filter,
                           pawl_page *page,
                           pawl_item_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct work_item_query query = { .filter = PAWL_ITEM_FILTER_INIT };
    struct item_walk walk = { .visit = visit, .context = context };
    TRY(pawl__take_sized("filter", filter, &query.filter, sizeof(query.filter), reterr));
    TRY(pawl__page_take(page, &walk.page, reterr));
    const pawl_page asked = walk.page.page; /* the walk's own copy changes on the way */
    query.from_id = pawl_view_of(asked.from_id);
    query.limit = pawl__page_reads(&walk.page);
    TRY(check_query(&query, reterr));
    INSIDE(work);
    TRY(work->backend->items->list(work->backend, &query, show_item, &walk, reterr));
    if (!query.filter.by_id) {
        walk.page.page.from_id[0] = '\0';
    }
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

struct history_walk {
    struct pawl__page page;
    uint64_t from;
    pawl_item_event_visit visit;
    void *context;
};

/* The history of one item is short: what comes before the page is read and passed over. */
static bool show_event(void *context, const pawl_item_event *event)
{
    struct history_walk *walk = context;

    return event->seq < walk->from
           || (pawl__page_admits(&walk->page, event->seq)
               && pawl__page_show(&walk->page, walk->visit(walk->context, event)));
}

pawl_status pawl_work_history(pawl_work *work,
                              pawl_view work_item_id,
                              pawl_page *page,
                              pawl_item_event_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct history_walk walk = { .visit = visit, .context = context };

    TRY(pawl__work_check_name("work_item_id", work_item_id, reterr));
    TRY(pawl__page_take(page, &walk.page, reterr));
    walk.from = walk.page.page.from;
    INSIDE(work);
    TRY(work->backend->items->history(work->backend, work_item_id, show_event, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}
