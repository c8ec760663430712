/* Single questions to a ledger. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"

static pawl_status check_run(pawl_view run_id, bool may_be_empty, pawl_error *reterr)
{
    return may_be_empty && run_id.len == 0
               ? PAWL_OK
               : pawl__ledger_event_check_name("run_id", run_id, reterr);
}

pawl_status pawl_ledger_get_head(pawl_ledger *ledger,
                                 pawl_ledger_head *ret_head,
                                 pawl_error *reterr)
{
    NEED(ledger, ret_head, reterr);
    return ledger->backend->ops->head(ledger->backend, ret_head, reterr);
}

pawl_status pawl_ledger_latest_offset(pawl_ledger *ledger, uint64_t *ret_offset, pawl_error *reterr)
{
    pawl_ledger_head head;

    NEED(ret_offset, reterr);
    TRY(pawl_ledger_get_head(ledger, &head, reterr));
    *ret_offset = head.offset;
    return PAWL_OK;
}

static pawl_status turn_of(pawl_ledger *ledger,
                           enum ledger_which_turn which,
                           pawl_view run_id,
                           int64_t *ret_turn,
                           pawl_error *reterr)
{
    NEED(ledger, ret_turn, reterr);
    TRY(check_run(run_id, which == LEDGER_TURN_HIGHEST, reterr));
    return ledger->backend->ops->turn_of(ledger->backend, which, run_id, ret_turn, reterr);
}

pawl_status pawl_ledger_max_turn(pawl_ledger *ledger,
                                 pawl_view run_id,
                                 int64_t *ret_turn,
                                 pawl_error *reterr)
{
    return turn_of(ledger, LEDGER_TURN_HIGHEST, run_id, ret_turn, reterr);
}

pawl_status pawl_ledger_last_complete_turn(pawl_ledger *ledger,
                                           pawl_view run_id,
                                           int64_t *ret_turn,
                                           pawl_error *reterr)
{
    return turn_of(ledger, LEDGER_TURN_LAST_COMPLETE, run_id, ret_turn, reterr);
}

struct turn_walk {
    struct pawl__page page;
    pawl_turn_visit visit;
    void *context;
};

static bool show_turn(void *context, const pawl_turn_info *info)
{
    struct turn_walk *walk = context;

    return pawl__page_admits(&walk->page, info->begin_offset)
           && pawl__page_show(&walk->page, walk->visit(walk->context, info));
}

pawl_status pawl_ledger_turns(pawl_ledger *ledger,
                              pawl_view run_id,
                              pawl_page *page,
                              pawl_turn_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    NEED(ledger, visit, reterr);
    struct turn_walk walk = { .visit = visit, .context = context };

    INSIDE(ledger);
    TRY(check_run(run_id, true, reterr));
    TRY(pawl__page_take(page, &walk.page, reterr));
    TRY(ledger->backend->ops->turns(
        ledger->backend, run_id, walk.page.page.from, show_turn, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

pawl_status pawl_ledger_counts(pawl_ledger *ledger,
                               pawl_count_by by,
                               const pawl_event_filter *filter,
                               pawl_count_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    pawl_event_filter checked;

    NEED(ledger, visit, reterr);
    if (by != PAWL_COUNT_BY_RUN && by != PAWL_COUNT_BY_KIND && by != PAWL_COUNT_BY_ACTOR) {
        return pawl__fail(reterr, PAWL_INVALID, "by: is %d, which is nothing to count by", (int)by);
    }
    INSIDE(ledger);
    TRY(pawl__ledger_check_filter(filter, &checked, reterr));
    return ledger->backend->ops->counts(
        ledger->backend, by, filter == NULL ? NULL : &checked, visit, context, reterr);
}

/* --- one event --- */

static void free_event(pawl_event **event)
{
    pawl_event_free(*event);
}

static pawl_status copy_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    return pawl__ledger_event_copy_out(event, context, reterr);
}

pawl_status pawl_ledger_get(
    pawl_ledger *ledger, pawl_view id, uint64_t offset, pawl_event **ret_event, pawl_error *reterr)
{
    AUTO(free_event) pawl_event *event = NULL;

    NEED(ledger, ret_event, reterr);
    if ((id.len == 0) == (offset == 0)) {
        return pawl__fail(reterr, PAWL_INVALID, "give an id or an offset, not both");
    }
    if (id.len > 0) {
        TRY(pawl__ledger_event_check_name("id", id, reterr));
    }
    TRY(ledger->backend->ops->get(ledger->backend, id, offset, copy_event, &event, reterr));
    *ret_event = STEAL(event);
    return PAWL_OK;
}
