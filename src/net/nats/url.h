/* The URL of a NATS server, taken apart: addresses for cnats, and who we say we are. Pure.
 *
 * cnats would take user and password out of the URL itself, but decodes nothing and repeats the whole URL in
 * places that are logged. So it only ever sees addresses. */
#ifndef PAWL_NET_NATS_URL_H
#define PAWL_NET_NATS_URL_H

#include "net/nats/nats.h"

struct pawl__nats_url {
    char *servers[PAWL__NATS_SERVERS_MAX]; /* "nats://host:4222" */
    size_t server_count;
    char *shown; /* the same, behind commas */
    char *user;  /* NULL: none */
    char *password;
    char *token;
    bool tls;
};

/* INVALID shows nothing of the URL: a password with a raw '@' may be anywhere in it. */
PAWL_MUST_USE pawl_status pawl__nats_url_parse(const char *text,
                                               struct pawl__nats_url *ret_url,
                                               pawl_error *reterr);
void pawl__nats_url_done(struct pawl__nats_url *url);

#endif
