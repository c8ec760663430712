#include "delivery/sources/jetstream.h"

pawl_status pawl__delivery_jetstream_open(const struct delivery_jetstream_options *options,
                                          struct delivery_source **ret_source,
                                          pawl_error *reterr)
{
    struct pawl__nats *nats = NULL;

    (void)ret_source;
    return pawl__nats_open(options->url, options->connection, &nats, reterr); /* UNSUPPORTED */
}
