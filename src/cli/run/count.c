/* How many items of a run there are, and what is left to do. */
#include "base/core/error.h"
#include "cli/run/internal.h"

pawl_status pawl__cli_runner_list(struct runner *runner,
                                  uint32_t statuses,
                                  pawl_item_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;

    filter.task_id = runner->options->task_id;
    filter.statuses = statuses;
    for (size_t i = 0; i < runner->options->type_count; i++) {
        filter.work_type = runner->options->types[i];
        TRY(pawl_work_list(runner->work, &filter, NULL, visit, context, reterr));
    }
    return PAWL_OK;
}

static bool visit_left(void *context, const pawl_item *item)
{
    enum { ENOUGH = 1000 };
    struct runner_left *left = context;

    switch (item->status) {
    case PAWL_ITEM_PENDING:
        left->pending++;
        return false;
    case PAWL_ITEM_WAITING:
        if (item->due_at_us != 0) {
            left->delayed++;
            return false;
        }
        return ++left->held_back < ENOUGH;
    default:
        left->in_progress++;
        return false;
    }
}

pawl_status pawl__cli_runner_left(struct runner *runner,
                                  struct runner_left *ret_left,
                                  pawl_error *reterr)
{
    *ret_left = (struct runner_left){ 0 };
    return pawl__cli_runner_list(runner,
                                 1U << PAWL_ITEM_PENDING | 1U << PAWL_ITEM_IN_PROGRESS
                                     | 1U << PAWL_ITEM_EXPIRED | 1U << PAWL_ITEM_WAITING,
                                 visit_left,
                                 ret_left,
                                 reterr);
}

static bool visit_count(void *context, const pawl_item *item)
{
    (void)item;
    (*(uint64_t *)context)++;
    return true;
}

pawl_status pawl__cli_runner_count(struct runner *runner,
                                   uint32_t statuses,
                                   uint64_t *ret_count,
                                   pawl_error *reterr)
{
    *ret_count = 0;
    return pawl__cli_runner_list(runner, statuses, visit_count, ret_count, reterr);
}
