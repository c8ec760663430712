/* Making a lost or damaged DuckDB file anew. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

pawl_status pawl_delivery_rebuild(pawl_delivery *delivery,
                                  bool replace,
                                  const pawl_delivery_watch *watch,
                                  pawl_rebuilt_visit visit,
                                  void *context,
                                  pawl_rebuild_result *ret_result,
                                  pawl_error *reterr)
{
    NEED(delivery, ret_result, reterr);
    (void)replace;
    (void)watch;
    (void)visit;
    (void)context;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "rebuild is not there yet");
}
