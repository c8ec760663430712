/* JetStream as the broker of an outbox. */
#ifndef PAWL_DELIVERY_OUTBOX_NATS_H
#define PAWL_DELIVERY_OUTBOX_NATS_H

#include "delivery/outbox/broker.h"
#include "net/nats/nats.h"

struct outbox_nats_options {
    const char *url; /* both are borrowed until the broker is closed */
    const struct pawl__nats_options *connection;
};

/* Connects with the first call of link. INVALID: a URL or options that can never work are found there. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_nats_new(const struct outbox_nats_options *options,
                                                         struct outbox_broker **ret_broker,
                                                         pawl_error *reterr);

#endif
