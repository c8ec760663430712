/* The queue's head: the last item that was claimed. A claim walks along an index whose first pages still
 * hold entries of items that were claimed before, until a vacuum removes them. So while a handle claims
 * many items, a walk starts after the head, and only now and then at the first item. An item that this
 * handle stores before the head resets it; items of other nodes are seen by the next whole walk.
 *
 * It is for servers that cannot vacuum: beside a transaction that a backup holds open, a drain takes 1.75
 * times as long without it, and more the longer the queue (bench/work/README.md). */
#include <string.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum { BUSY_ITEMS_MIN = 512 }; /* that a handle has claimed in a row before it uses the head */
#define HEAD_NS_MAX (50 * NS_PER_MS) /* between two whole walks */

bool pawl__work_pg_copy_name(char *to, pawl_view name, pawl_view *ret_copy)
{
    if (name.len > PAWL_WORK_NAME_BYTES_MAX) {
        return false;
    }
    if (name.len > 0) {
        memcpy(to, name.data, name.len);
    }
    *ret_copy = (pawl_view){ to, name.len };
    return true;
}

static pawl_view type_of(const struct work_filter *filter)
{
    return filter->work_type_count == 1 ? filter->work_types[0] : (pawl_view){ NULL, 0 };
}

static bool has_head(const struct work_filter *filter)
{
    return filter->task_id.len == 0 && filter->work_type_count <= 1;
}

bool pawl__work_pg_is_before(const struct work_row *row, const struct work_pg_queue_head *head)
{
    if (row->item.priority != head->priority) {
        return row->item.priority > head->priority;
    }
    return row->submission != 0 && row->submission < head->submission;
}

void pawl__work_pg_move_head(struct work_pg_queue_head *head, const struct work_row *row)
{
    head->priority = row->item.priority;
    head->submission = row->submission;
}

void pawl__work_pg_walked(struct work_postgres *backend,
                          const struct work_filter *filter,
                          size_t wanted,
                          const struct work_rows *found)
{
    struct work_pg_queue_head *head = &backend->queue_head;

    /* A walk for several types locks more than it returns, and others may have passed over the rest. */
    backend->notify |=
        filter->work_type_count > 1 && filter->task_id.len == 0 && found->count == wanted;
    if (!has_head(filter) || found->count < wanted || found->count == 0) {
        head->known = false;
        head->claimed = 0;
        return;
    }
    if (!pawl__view_equal(head->type, type_of(filter))) {
        head->claimed = 0;
    }
    head->known = pawl__work_pg_copy_name(head->type_text, type_of(filter), &head->type);
    head->walked_ns = pawl__pg_store_now_ns(&backend->pg);
    head->claimed += found->count;
    pawl__work_pg_move_head(head, found->rows[found->count - 1]);
}

void pawl__work_pg_came_in(struct work_postgres *backend, const struct work_row *row)
{
    struct work_pg_queue_head *head = &backend->queue_head;

    if (head->known && pawl__work_pg_is_before(row, head)) {
        head->known = false;
    }
}

bool pawl__work_pg_has_more(const struct work_pg_queue_head *head, const struct work_filter *filter)
{
    return head->known && has_head(filter) && pawl__view_equal(head->type, type_of(filter));
}

void pawl__work_pg_prepare_walk(struct work_pg_queue_head *head, int64_t now_ns)
{
    head->walks_whole = head->claimed < BUSY_ITEMS_MIN || now_ns - head->walked_ns >= HEAD_NS_MAX;
    if (head->walks_whole) {
        head->walked_ns = now_ns;
    }
}
