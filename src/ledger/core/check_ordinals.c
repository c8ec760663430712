/* An event without an id gets one from its ordinal: its number among those of its actor and kind in the
 * attempt. A resumed handle is given the ordinal by a caller that may have lost count. A wrong one would
 * make a new event look like a repetition, so it must fit what is stored:
 *
 *   the next one       new events
 *   a lower one        a repetition; other content is a conflict, as with any id
 *   a higher one       refused: something is missing before it
 *   none given         only the first call of its actor and kind may leave it out */
#include <stdio.h>

#include "base/core/error.h"
#include "ledger/core/event.h"
#include "ledger/core/plan.h"

/* How many are there: those that are stored, and those of requests planned before this one. */
static pawl_status count(const struct ledger_plan *plan,
                         const struct ledger_request *request,
                         const struct ledger_ordinal *ordinal,
                         uint64_t *ret_count,
                         pawl_error *reterr)
{
    for (uint64_t next = ordinal->stored;; next++) {
        char id[PAWL__EVENT_ID_SIZE];

        TRY(pawl__ledger_event_derive_id(
            &request->events[ordinal->event], request->attempt, next, id, reterr));
        if (pawl__map_get(plan->known, pawl_view_of(id)) == NULL) {
            *ret_count = next;
            return PAWL_OK;
        }
    }
}

static pawl_status refuse(const struct ledger_request *request,
                          const struct ledger_ordinal *ordinal,
                          uint64_t next,
                          pawl_error *reterr)
{
    const pawl_event *event = &request->events[ordinal->event];
    char given[48] = "missing";

    if (ordinal->given != PAWL_ORDINAL_FIRST) {
        snprintf(given, sizeof(given), "is %llu", (unsigned long long)ordinal->given);
    }
    pawl_status status = pawl__fail(reterr,
                                    PAWL_CONFLICT,
                                    "ordinal: %s, but the next of actor '%.*s' and kind '%.*s' in "
                                    "attempt %u at turn %lld is %llu; a lower one repeats",
                                    given,
                                    VIEW_ARGS(event->actor),
                                    VIEW_ARGS(event->kind),
                                    request->attempt,
                                    (long long)request->turn,
                                    (unsigned long long)next);
    return pawl__ledger_event_name(reterr, request->count, ordinal->event, status);
}

pawl_status pawl__ledger_plan_check_ordinals(const struct ledger_plan *plan,
                                             const struct ledger_request *request,
                                             pawl_error *reterr)
{
    REQUIRE(request->ordinal_count == 0 || plan->known != NULL);
    for (size_t i = 0; i < request->ordinal_count; i++) {
        const struct ledger_ordinal *ordinal = &request->ordinals[i];
        uint64_t next;

        TRY(count(plan, request, ordinal, &next, reterr));
        bool fits = ordinal->given == PAWL_ORDINAL_FIRST ? next == 0 : ordinal->given <= next;
        if (!fits) {
            return refuse(request, ordinal, next, reterr);
        }
    }
    return PAWL_OK;
}
