/* One event on its way: outbox, source, write-ahead log, table. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

const char *pawl_trace_place_name(pawl_trace_place place)
{
    return (unsigned)place <= PAWL_TRACE_FAILED ? pawl__trace_place_names[place] : "unknown";
}

pawl_status pawl_delivery_trace(pawl_delivery *delivery,
                                pawl_view id,
                                const pawl_trace_options *options,
                                pawl_trace_visit visit,
                                void *context,
                                uint64_t *ret_skipped,
                                pawl_error *reterr)
{
    NEED(delivery, visit, reterr);
    NEED_VIEW(id, reterr);
    (void)options;
    (void)context;
    (void)ret_skipped;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "trace is not there yet");
}
