#include "store/absent.h"

#include "base/core/error.h"

pawl_status pawl__fail_absent(pawl_error *reterr, const char *engine, const char *option)
{
    return pawl__fail(reterr,
                      PAWL_UNSUPPORTED,
                      "this build has no %s; build pawl with -D%s=enabled",
                      engine,
                      option);
}
