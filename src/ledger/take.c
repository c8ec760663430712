/* What callers hand in: structs that grow from version to version. */
#include <string.h>

#include "base/error.h"
#include "ledger/event.h"
#include "ledger/ledger_internal.h"

pawl_status pawl__take_sized(
    const char *what, const void *given, void *taken, size_t size, pawl_error *reterr)
{
    size_t given_size = size;

    if (given == NULL) {
        return PAWL_OK;
    }
    memcpy(&given_size, given, sizeof(given_size));
    if (given_size < sizeof(given_size) || given_size > size) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: size is %zu; start from the header's _INIT",
                          what,
                          given_size);
    }
    memcpy(taken, given, given_size);
    memcpy(taken, &size, sizeof(size));
    return PAWL_OK;
}

static pawl_status check_name(const char *field, pawl_view text, pawl_error *reterr)
{
    return text.len == 0 ? PAWL_OK : pawl__event_check_name(field, text, reterr);
}

pawl_status pawl__take_filter(const pawl_event_filter *given,
                              pawl_event_filter *ret_filter,
                              pawl_error *reterr)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;

    pawl_status status = pawl__take_sized("filter", given, &filter, sizeof(filter), reterr);
    if (status == PAWL_OK) {
        status = check_name("filter: run_id", filter.run_id, reterr);
    }
    if (status == PAWL_OK) {
        status = check_name("filter: kind", filter.kind, reterr);
    }
    if (status == PAWL_OK) {
        status = check_name("filter: actor", filter.actor, reterr);
    }
    if (status == PAWL_OK) {
        *ret_filter = filter;
    }
    return status;
}
