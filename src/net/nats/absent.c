/* Stands in for the rest of this folder in a build without cnats. */
#include "base/core/error.h"
#include "net/nats/nats.h"

pawl_status pawl__nats_open(const char *url,
                            const struct pawl__nats_options *options,
                            struct pawl__nats **ret_nats,
                            pawl_error *reterr)
{
    (void)url;
    (void)options;
    (void)ret_nats;
    return pawl__fail(
        reterr, PAWL_UNSUPPORTED, "this build has no NATS; build pawl with -Dnats=enabled");
}

void pawl__nats_close(struct pawl__nats *nats)
{
    REQUIRE(nats == NULL);
}
