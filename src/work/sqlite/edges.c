/* Who comes after whom, in SQLite. */
#include "base/core/error.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

pawl_status pawl__work_sqlite_edges(struct work_backend *base,
                                    const pawl_view *after_ids,
                                    size_t count,
                                    void (*visit)(void *context, const struct work_edge *edge),
                                    void *context,
                                    pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_EDGES);
        bool row = true;
        pawl__sqlite_bind_text(&stmt, 1, after_ids[i]);
        while (row) {
            TRY(pawl__sqlite_next(&stmt, &row, reterr));
            if (row) {
                struct work_edge edge = { .work_item_id = pawl__sqlite_text(&stmt, 0),
                                          .after_id = after_ids[i] };
                visit(context, &edge);
            }
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_add_edges(struct work_backend *base,
                                        const struct work_edge *edges,
                                        size_t count,
                                        pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_EDGE_INSERT);
        pawl__sqlite_bind_text(&stmt, 1, edges[i].work_item_id);
        pawl__sqlite_bind_text(&stmt, 2, edges[i].after_id);
        TRY(pawl__sqlite_run(&stmt, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_comes_after(struct work_backend *base,
                                          pawl_view id,
                                          struct pawl__arena *arena,
                                          pawl_view *ret_ids,
                                          size_t room,
                                          size_t *ret_count,
                                          pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_COMES_AFTER);
    size_t count = 0;
    bool row = true;

    pawl__sqlite_bind_text(&stmt, 1, id);
    while (count < room) {
        TRY(pawl__sqlite_next(&stmt, &row, reterr));
        if (!row) {
            break;
        }
        if (!pawl__arena_copy(arena, pawl__sqlite_text(&stmt, 0), &ret_ids[count++])) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
        }
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status orphans_in(struct pawl__sqlite *db,
                              size_t count,
                              struct pawl__arena *arena,
                              pawl_view *ret_ids,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_STRANDED);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)count);
    for (*ret_count = 0; *ret_count < count; (*ret_count)++) {
        bool row = false;
        pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
        if (status != PAWL_OK || !row) {
            return status;
        }
        if (!pawl__arena_copy(arena, pawl__sqlite_text(&stmt, 0), &ret_ids[*ret_count])) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_orphans(struct work_backend *base,
                                      size_t count,
                                      struct pawl__arena *arena,
                                      pawl_view *ret_ids,
                                      size_t *ret_count,
                                      pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return orphans_in(reader.db, count, arena, ret_ids, ret_count, reterr);
}
