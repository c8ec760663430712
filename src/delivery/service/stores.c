/* What is done with the stores of a pipeline that does not run: its thread's steps, without a source. */
#include "base/core/error.h"
#include "delivery/service/internal.h"

pawl_status pawl__delivery_settle_all(struct delivery_runner *runner, pawl_error *reterr)
{
    static pawl_status (*const steps[])(struct delivery_pipeline *, size_t *, pawl_error *) = {
        pawl__delivery_apply, pawl__delivery_retry
    };

    runner->pipeline.settings.retry_interval_ns = 0; /* what is due is tried now */
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        size_t moved = 1;
        while (moved > 0) {
            if (pawl__cancelled(&runner->cancel)) {
                return pawl__fail(reterr, PAWL_CLOSED, "closed meanwhile");
            }
            TRY(steps[i](&runner->pipeline, &moved, reterr));
        }
    }
    return PAWL_OK;
}

void pawl__delivery_checkpoint_now(struct delivery_runner *runner)
{
    runner->pipeline.settings.checkpoint_age_ns = 0;
    (void)!pawl__delivery_maintain(&runner->pipeline, NULL); /* else the next run makes it */
}
