/* Items in memory: what readers see. Copies, so that `visit` may call whatever it likes. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/backend.h"
#include "work/core/copy.h"
#include "work/items/item.h"

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
}

pawl_status work_model_get(struct work_backend *base,
                           pawl_view id,
                           work_row_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct work_row row = { .home = WORK_NOWHERE };
    pawl_item *copy = NULL;

    pawl__lock(&of(base)->lock);
    const struct work_model_item *item = pawl__map_get(of(base)->items, id);
    pawl_status status = item == NULL
                             ? pawl__fail(reterr, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(id))
                             : pawl__work_copy_out_item(&item->row.item, &copy, reterr);
    if (status == PAWL_OK) {
        row = item->row;
    }
    pawl__unlock(&of(base)->lock);
    if (status == PAWL_OK) {
        row.item = *copy;
        (void)visit(context, &row);
        pawl_item_free(copy);
    }
    return status;
}

static int by_creation(const void *a, const void *b)
{
    const pawl_item *one = *(pawl_item *const *)a;
    const pawl_item *other = *(pawl_item *const *)b;

    if (one->created_at_us != other->created_at_us) {
        return one->created_at_us < other->created_at_us ? -1 : 1;
    }
    return pawl__work_view_order(one->work_item_id, other->work_item_id);
}

static int by_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(pawl_item *const *)a)->work_item_id,
                                 (*(pawl_item *const *)b)->work_item_id);
}

static bool matches(const struct work_item_query *query, const pawl_item *item)
{
    const pawl_item_filter *filter = &query->filter;

    return (filter->task_id.len == 0 || pawl__view_equal(filter->task_id, item->task_id))
           && (filter->work_type.len == 0 || pawl__view_equal(filter->work_type, item->work_type))
           && (filter->lease_holder.len == 0
               || pawl__view_equal(filter->lease_holder, item->lease_holder))
           && (filter->statuses == 0 || (filter->statuses >> item->status & 1) != 0)
           && (!filter->by_id || pawl__work_view_order(query->from_id, item->work_item_id) <= 0);
}

static pawl_status copy_items(struct work_model *backend,
                              const struct work_item_query *query,
                              pawl_item ***ret_items,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    pawl_item **copies = calloc(pawl__map_count(backend->items) + 1, sizeof(*copies));
    pawl_status status = copies == NULL ? no_memory(reterr) : PAWL_OK;
    size_t count = 0;
    size_t cursor = 0;
    void *found;

    while (status == PAWL_OK && pawl__map_next(backend->items, &cursor, NULL, &found)) {
        const pawl_item *item = &((struct work_model_item *)found)->row.item;
        if (matches(query, item)) {
            status = pawl__work_copy_out_item(item, &copies[count], reterr);
            count += status == PAWL_OK;
        }
    }
    *ret_items = copies;
    *ret_count = count;
    return status;
}

pawl_status work_model_list(struct work_backend *base,
                            const struct work_item_query *query,
                            work_row_visit visit,
                            void *context,
                            pawl_error *reterr)
{
    pawl_item **items = NULL;
    size_t count = 0;

    pawl__lock(&of(base)->lock);
    pawl_status status = copy_items(of(base), query, &items, &count, reterr);
    pawl__unlock(&of(base)->lock);
    bool more = status == PAWL_OK;
    if (count > 1) {
        qsort(items, count, sizeof(*items), query->filter.by_id ? by_id : by_creation);
    }
    for (size_t i = 0; i < count; i++) {
        struct work_row row = { .item = *items[i] };
        more = more && (query->limit == 0 || i < query->limit) && visit(context, &row);
        pawl_item_free(items[i]);
    }
    free(items);
    return status;
}

/* The events of an item, its texts copied. */
static pawl_status copy_events(const struct work_model *backend,
                               pawl_view id,
                               struct work_model_event **ret_events,
                               uint64_t **ret_seqs,
                               size_t *ret_count,
                               pawl_error *reterr)
{
    struct work_model_event *events = calloc(backend->history_count + 1, sizeof(*events));
    uint64_t *seqs = calloc(backend->history_count + 1, sizeof(*seqs));
    pawl_status status = events == NULL || seqs == NULL ? no_memory(reterr) : PAWL_OK;
    size_t count = 0;

    for (size_t i = 0; i < backend->history_count && status == PAWL_OK; i++) {
        const struct work_model_event *event = &backend->history[i];
        if (pawl__view_equal(event->item->work_item_id, id)) {
            events[count] = *event;
            seqs[count] = i + 1;
            status = pawl__work_copy_out_item(event->item, &events[count].item, reterr);
            count += status == PAWL_OK;
        }
    }
    *ret_events = events;
    *ret_seqs = seqs;
    *ret_count = count;
    return status;
}

pawl_status work_model_history(struct work_backend *base,
                               pawl_view id,
                               pawl_item_event_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    struct work_model_event *events = NULL;
    uint64_t *seqs = NULL;
    size_t count = 0;

    pawl__lock(&of(base)->lock);
    pawl_status status = copy_events(of(base), id, &events, &seqs, &count, reterr);
    pawl__unlock(&of(base)->lock);
    bool more = status == PAWL_OK;
    for (size_t i = 0; i < count; i++) {
        const pawl_item *item = events[i].item;
        pawl_item_event event = {
            .size = sizeof(pawl_item_event),
            .seq = seqs[i],
            .from = events[i].from,
            .to = events[i].to,
            .token = item->token,
            .lease_holder = item->lease_holder,
            .retry_count = item->retry_count,
            .message = item->error_message,
            .at_us = events[i].at_us,
        };
        more = more && visit(context, &event);
        pawl_item_free(events[i].item);
    }
    free(events);
    free(seqs);
    return status;
}
