/* How far claims have come. They walk along an index whose first pages hold what was claimed before,
 * until a vacuum. So while a handle claims a lot, a walk begins where the last one ended, and only now
 * and then at the beginning. What this handle puts before the front takes it back; what another node
 * does is seen at the next whole walk. */
#include <string.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum { BUSY_ITEMS_MIN = 512 }; /* that a handle has claimed in a row before it uses the front */
#define FRONT_NS_MAX (50 * NS_PER_MS) /* between two whole walks */

bool pawl__work_pg_fits(pawl_view name)
{
    return name.len <= PAWL_WORK_NAME_BYTES_MAX;
}

pawl_view pawl__work_pg_keep_name(char *to, pawl_view name)
{
    if (name.len > 0) {
        memcpy(to, name.data, name.len);
    }
    return (pawl_view){ to, name.len };
}

static pawl_view type_of(const struct work_filter *filter)
{
    return filter->work_type_count == 1 ? filter->work_types[0] : (pawl_view){ NULL, 0 };
}

static bool has_front(const struct work_filter *filter)
{
    return filter->task_id.len == 0 && filter->work_type_count <= 1;
}

bool pawl__work_pg_is_before(const struct work_row *row, const struct work_pg_front *front)
{
    if (row->item.priority != front->priority) {
        return row->item.priority > front->priority;
    }
    return row->submission != 0 && row->submission < front->submission;
}

void pawl__work_pg_move_front(struct work_pg_front *front, const struct work_row *row)
{
    front->priority = row->item.priority;
    front->submission = row->submission;
}

void pawl__work_pg_walked(struct work_postgres *backend,
                          const struct work_filter *filter,
                          size_t wanted,
                          struct work_row *const *rows,
                          size_t count)
{
    struct work_pg_front *front = &backend->front;

    if (!has_front(filter) || count < wanted || count == 0) {
        front->known = false;
        front->claimed = 0;
        return;
    }
    if (!pawl__view_equal(front->type, type_of(filter))) {
        front->claimed = 0;
    }
    front->known = true;
    front->type = pawl__work_pg_keep_name(front->type_text, type_of(filter));
    front->walked_ns = pawl__pg_store_now_ns(&backend->pg);
    front->claimed += count;
    pawl__work_pg_move_front(front, rows[count - 1]);
}

void pawl__work_pg_came_in(struct work_postgres *backend, const struct work_row *row)
{
    struct work_pg_front *front = &backend->front;

    if (front->known && pawl__work_pg_is_before(row, front)) {
        front->known = false;
    }
}

bool pawl__work_pg_has_more(const struct work_pg_front *front, const struct work_filter *filter)
{
    return front->known && has_front(filter) && pawl__view_equal(front->type, type_of(filter));
}

void pawl__work_pg_prepare_walk(struct work_pg_front *front, int64_t now_ns)
{
    front->walks_whole =
        front->claimed < BUSY_ITEMS_MIN || now_ns - front->walked_ns >= FRONT_NS_MAX;
    if (front->walks_whole) {
        front->walked_ns = now_ns;
    }
}
