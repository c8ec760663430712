#include "cli/node/open_files.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/core/error.h"

uint32_t pawl__cli_connections_that_fit(uint64_t open_files_max, uint32_t wanted)
{
    return (uint32_t)MIN(open_files_max / 2, wanted);
}

pawl_status pawl__cli_open_files_raise(uint64_t *ret_max, pawl_error *reterr)
{
    struct rlimit limit = { 0 };

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return pawl__fail_errno(reterr, errno, "look at the limit of open files");
    }
    struct rlimit raised = { .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        limit = raised; /* else it stays as it is: a container may forbid it */
    }
    *ret_max = limit.rlim_cur;
    return PAWL_OK;
}
