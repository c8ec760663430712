/* Stands in for the rest of this folder in a build without nghttp2. */
#include "base/core/error.h"
#include "net/h2/client.h"
#include "net/h2/h2.h"

static pawl_status absent(pawl_error *reterr)
{
    return pawl__fail(
        reterr, PAWL_UNSUPPORTED, "this build has no gRPC; build pawl with -Dh2=enabled");
}

pawl_status pawl__h2_start(const struct pawl__h2_options *options,
                           struct pawl__h2 **ret_server,
                           pawl_error *reterr)
{
    (void)options;
    (void)ret_server;
    return absent(reterr);
}

pawl_status pawl__h2_stop(struct pawl__h2 *server, int64_t deadline_ns, pawl_error *reterr)
{
    (void)deadline_ns;
    (void)reterr;
    REQUIRE(server == NULL);
    return PAWL_OK;
}

pawl_status pawl__h2_client_open(const struct pawl__h2_client_options *options,
                                 struct pawl__h2_client **ret_client,
                                 pawl_error *reterr)
{
    (void)options;
    (void)ret_client;
    return absent(reterr);
}

void pawl__h2_client_close(struct pawl__h2_client *client)
{
    REQUIRE(client == NULL);
}
