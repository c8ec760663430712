/* Reading a part of a source, or of a write-ahead log, once more. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

pawl_status pawl_pipeline_replay(pawl_delivery *delivery,
                                 const char *name,
                                 const pawl_replay_range *range,
                                 const pawl_delivery_watch *watch,
                                 pawl_replay_result *ret_result,
                                 pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    NEED(range, ret_result, reterr);
    (void)watch;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "replay is not there yet");
}
