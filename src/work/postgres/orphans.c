/* What foreign SQL leaves undone, in PostgreSQL: who was left waiting, and for what. */
#include "base/core/error.h"
#include "work/postgres/backend.h"

struct id_list {
    struct pawl__arena *arena;
    pawl_view *ids;
    size_t room;
    size_t count;
    bool nomem;
};

static bool keep_id(struct id_list *list, const struct pawl__pg_rows *rows, size_t row)
{
    if (list->count == list->room) {
        return false;
    }
    list->nomem =
        !pawl__arena_copy(list->arena, pawl__pg_get_text(rows, row, 0), &list->ids[list->count]);
    list->count += !list->nomem;
    return !list->nomem;
}

static pawl_status answer(const struct id_list *list, size_t *ret_count, pawl_error *reterr)
{
    *ret_count = list->count;
    return list->nomem ? pawl__fail(reterr, PAWL_NOMEM, "no memory for items") : PAWL_OK;
}

static pawl_status keep_all(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct id_list *list = context;

    (void)reterr; /* answer() says it */
    for (size_t i = 0; i < rows->count && keep_id(list, rows, i); i++) {
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_comes_after(struct work_backend *base,
                                      pawl_view id,
                                      struct pawl__arena *arena,
                                      pawl_view *ret_ids,
                                      size_t room,
                                      size_t *ret_count,
                                      pawl_error *reterr)
{
    struct id_list list = { .arena = arena, .ids = ret_ids, .room = room };

    TRY(pawl__work_pg_ask(pawl__work_pg_of(base),
                          WORK_PG_COMES_AFTER,
                          PG_ARGS(pawl__pg_text(id)),
                          keep_all,
                          &list,
                          reterr));
    return answer(&list, ret_count, reterr);
}

static bool keep_one(void *context, const struct pawl__pg_rows *rows)
{
    return keep_id(context, rows, 0);
}

pawl_status pawl__work_pg_orphans(struct work_backend *base,
                                  size_t count,
                                  struct pawl__arena *arena,
                                  pawl_view *ret_ids,
                                  size_t *ret_count,
                                  pawl_error *reterr)
{
    struct id_list list = { .arena = arena, .ids = ret_ids, .room = count };

    TRY(pawl__work_pg_walk(
        base, WORK_PG_STRANDED, PG_ARGS(pawl__pg_i64((int64_t)count)), keep_one, &list, reterr));
    return answer(&list, ret_count, reterr);
}
