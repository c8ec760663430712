#include "base/failpoint.h"

#include "base/error.h"

pawl_status pawl__failpoint_hit(const char *name, pawl_error *reterr)
{
    (void)name;
    (void)reterr;
    return PAWL_OK;
}
