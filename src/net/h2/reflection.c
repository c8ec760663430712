/* grpc.reflection.v1 and v1alpha. */
#include "net/h2/server.h"

#include "base/core/error.h"
#include <stdlib.h>

struct h2_reflection {
    int later;
};
pawl_status pawl__h2_reflection_add(struct pawl__h2 *server,
                                    const struct pawl__h2_options *options,
                                    pawl_error *reterr)
{
    (void)server;
    (void)options;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "reflection follows");
}
void pawl__h2_reflection_free(struct h2_reflection *reflection)
{
    free(reflection);
}
