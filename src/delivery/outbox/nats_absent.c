/* Instead of nats.c, in a build without cnats. */
#include "delivery/outbox/nats.h"

pawl_status pawl__delivery_outbox_nats_new(const struct outbox_nats_options *options,
                                           struct outbox_broker **ret_broker,
                                           pawl_error *reterr)
{
    struct pawl__nats *nats = NULL;

    (void)ret_broker;
    return pawl__nats_open(options->url, options->connection, &nats, reterr); /* UNSUPPORTED */
}
