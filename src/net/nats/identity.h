/* Who we are to a server: user and password, a token, an nkey, or a creds file. */
#ifndef PAWL_NET_NATS_IDENTITY_H
#define PAWL_NET_NATS_IDENTITY_H

#include <stdatomic.h>

#include <nats/nats.h>

#include "net/nats/nats.h"
#include "net/nats/url.h"

/* What the callbacks of a connection need, as long as it may reconnect. */
struct nats_identity {
    char *path;
    atomic_bool
        unsendable; /* a connect failed for the signature's sake: the next one has another */
};

void pawl__nats_identity_done(struct nats_identity *identity);

/* INVALID, NOT_FOUND: names the file that is wrong, and nothing of what is in it. */
PAWL_MUST_USE pawl_status pawl__nats_set_identity(natsOptions *native,
                                                  const struct pawl__nats_options *options,
                                                  const struct pawl__nats_url *url,
                                                  struct nats_identity *identity,
                                                  pawl_error *reterr);

#endif
