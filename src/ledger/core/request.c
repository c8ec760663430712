/* What callers hand in. */
#include "base/core/error.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"

static pawl_status check_name(const char *field, pawl_view text, pawl_error *reterr)
{
    return text.len == 0 ? PAWL_OK : pawl__ledger_event_check_name(field, text, reterr);
}

pawl_status pawl__ledger_check_filter(const pawl_event_filter *given,
                                      pawl_event_filter *ret_filter,
                                      pawl_error *reterr)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;

    TRY(pawl__take_sized("filter", given, &filter, sizeof(filter), reterr));
    TRY(check_name("filter: run_id", filter.run_id, reterr));
    TRY(check_name("filter: kind", filter.kind, reterr));
    TRY(check_name("filter: actor", filter.actor, reterr));
    *ret_filter = filter;
    return PAWL_OK;
}
