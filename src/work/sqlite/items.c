/* Items in SQLite: what is claimed next, and what is due. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

/* Adds rows of a statement to `found`. */
static pawl_status find(struct work_backend *base,
                        size_t statement,
                        const struct work_value *values,
                        size_t value_count,
                        struct work_rows *found,
                        pawl_error *reterr)
{
    struct work_found context = { .sql = pawl__work_sql_of(base), .rows = found };

    return pawl__work_sqlite_run(pawl__work_sqlite_of(base)->writer,
                                 statement,
                                 values,
                                 value_count,
                                 pawl__work_sql_add_item,
                                 &context,
                                 reterr);
}

/* --- picking --- */

static int by_claim_order(const void *a, const void *b)
{
    return pawl__work_claim_order(*(struct work_row *const *)a, *(struct work_row *const *)b);
}

static pawl_status pick_type(struct work_backend *base,
                             const struct work_filter *filter,
                             const pawl_view *work_type,
                             struct work_rows *found,
                             pawl_error *reterr)
{
    const struct work_value wanted = sql_int((int64_t)found->room);
    const struct work_value task = sql_text(filter->task_id);

    if (work_type == NULL) {
        return filter->task_id.len > 0
                   ? find(base, WORK_SQL_PICK_TASK, SQL_ARGS(wanted, task), found, reterr)
                   : find(base, WORK_SQL_PICK, SQL_ARGS(wanted), found, reterr);
    }
    const struct work_value type = sql_text(*work_type);
    return filter->task_id.len > 0
               ? find(base, WORK_SQL_PICK_TASK_TYPE, SQL_ARGS(wanted, task, type), found, reterr)
               : find(base, WORK_SQL_PICK_TYPE, SQL_ARGS(wanted, type), found, reterr);
}

static bool named_before(const struct work_filter *filter, size_t type)
{
    for (size_t i = 0; i < type; i++) {
        if (pawl__view_equal(filter->work_types[i], filter->work_types[type])) {
            return true;
        }
    }
    return false;
}

/* A walk for each type, and the best of what they found. */
static pawl_status pick_types(struct work_backend *base,
                              const struct work_filter *filter,
                              struct work_rows *found,
                              pawl_error *reterr)
{
    struct work_row **best =
        pawl__arena_take(found->arena, 2 * found->room * sizeof(struct work_row *));
    size_t kept = 0;

    if (best == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
    }
    for (size_t i = 0; i < filter->work_type_count; i++) {
        struct work_rows more = { .arena = found->arena, .rows = best + kept, .room = found->room };
        if (named_before(filter, i)) {
            continue;
        }
        TRY(pick_type(base, filter, &filter->work_types[i], &more, reterr));
        qsort(best, kept + more.count, sizeof(*best), by_claim_order);
        kept = MIN(kept + more.count, found->room);
    }
    memcpy(found->rows, best, kept * sizeof(*best));
    found->count = kept;
    return PAWL_OK;
}

static pawl_status sqlite_pick(struct work_backend *base,
                               const struct work_filter *filter,
                               struct work_rows *found,
                               pawl_error *reterr)
{
    return filter->work_type_count > 1
               ? pick_types(base, filter, found, reterr)
               : pick_type(base,
                           filter,
                           filter->work_type_count == 1 ? &filter->work_types[0] : NULL,
                           found,
                           reterr);
}

/* --- what is due --- */

struct next_due {
    const struct work_sql_backend *sql;
    const struct work_now *now;
    int64_t ns;
};

static pawl_status note_next(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct next_due *next = context;

    (void)reterr;
    next->ns = MIN(next->ns,
                   next->sql->ops->deadline(next->sql, next->now, row, 1, col_time(row, 0), true));
    return PAWL_OK;
}

static pawl_status sqlite_due(struct work_backend *base,
                              const struct work_now *now,
                              struct work_rows *found,
                              int64_t *ret_next_ns,
                              pawl_error *reterr)
{
    struct next_due next = { .sql = pawl__work_sql_of(base), .now = now, .ns = INT64_MAX };
    const struct work_value boot = sql_name(next.sql->boot_id);

    TRY(pawl__work_sqlite_run(pawl__work_sqlite_of(base)->writer,
                              WORK_SQL_NEXT_DUE,
                              SQL_ARGS(boot),
                              note_next,
                              &next,
                              reterr));
    *ret_next_ns = next.ns;
    if (next.ns > now->ns) {
        return PAWL_OK; /* the usual case */
    }
    TRY(find(base,
             WORK_SQL_DUE,
             SQL_ARGS(sql_int((int64_t)found->room), boot, sql_int(now->ns)),
             found,
             reterr));
    return found->count == found->room
               ? PAWL_OK
               : find(base,
                      WORK_SQL_DUE_WALL,
                      SQL_ARGS(sql_int((int64_t)(found->room - found->count)),
                               boot,
                               sql_time(now->wall_us)),
                      found,
                      reterr);
}

const struct work_item_ops pawl__work_sqlite_items = {
    WORK_SQL_ITEM_OPS,
    .load = pawl__work_sql_load,
    .pick = sqlite_pick,
    .due = sqlite_due,
    .put = pawl__work_sqlite_put,
    .edges = pawl__work_sql_edges,
    .add_edges = pawl__work_sql_add_edges,
    .derive = pawl__work_sqlite_derive,
    .settle = pawl__work_sqlite_settle,
};
