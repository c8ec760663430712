/* NATS and JetStream, thin and typed, over cnats.
 *
 *   Threads     A connection serves any number of threads at once. A fetcher (fetch.h) and a publisher
 *               (publish.h) belong to one thread at a time and end before their connection.
 *   Time        Every call ends by its own deadline, also when the server is stopped and answers nothing.
 *               (Names are resolved by the system: give addresses where its resolver may hang.)
 *   Lost links  The connection reconnects by itself, for ever, with backoff. While it does, calls return
 *               UNAVAILABLE at once. Only a server that refuses our credentials twice ends it: the state
 *               is then CLOSED and every call returns DENIED; open a new one.
 *   Secrets     Passwords, tokens and seeds are in no message and no log line: `shown` of a URL has none.
 *   Errors      error.c alone turns cnats' codes into ours. `native` is JetStream's code (10059) where the
 *               server gave one, else that of cnats. */
#ifndef PAWL_NET_NATS_NATS_H
#define PAWL_NET_NATS_NATS_H

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

enum {
    PAWL__NATS_NAME_SIZE = 256,    /* of streams and consumers, with a NUL */
    PAWL__NATS_SUBJECT_SIZE = 512, /* of a subject, with a NUL */
    PAWL__NATS_SERVERS_MAX = 16,   /* in one URL */
};

struct pawl__nats;

struct pawl__nats_tls {
    bool required;         /* also without the scheme tls:// */
    const char *ca_file;   /* whom to trust; NULL: whom this machine trusts */
    const char *cert_file; /* ours, with its chain; together with key_file */
    const char *key_file;
    const char *server_name; /* in the server's certificate, when it is not the host of the URL */
};

/* Zero is a default everywhere. What is in the URL (user:password@ or token@) wins over the fields. At most
 * one way to say who we are: user and password, token, nkey_seed_file or creds_file. */
struct pawl__nats_options {
    const char *name; /* of this client, for the server's monitoring; NULL: "pawl" */
    const char *user;
    const char *password;
    const char *token;
    const char *nkey_seed_file; /* a file that holds the seed, "SU..." */
    const char *creds_file;     /* as nsc writes it: JWT and seed */
    struct pawl__nats_tls tls;
    int connect_ms_max;        /* of one server; 5 s */
    int answer_ms_max;         /* of one call; 5 s */
    int ping_ms;               /* a silent server is given up after three of these; 5 s */
    int reconnect_ms_min;      /* ceiling of the first wait; 100 ms */
    int reconnect_ms_max;      /* 5 s */
    struct pawl__clock *clock; /* NULL: the real one */
};

/* "nats://host:4222", "tls://host:4222", or several behind commas. Connects before it returns: UNAVAILABLE
 * when no server answers, DENIED when one refuses us, INVALID for what can never work. */
PAWL_MUST_USE pawl_status pawl__nats_open(const char *url,
                                          const struct pawl__nats_options *options,
                                          struct pawl__nats **ret_nats,
                                          pawl_error *reterr);

/* Ends in bounded time: what a stuck handshake still holds is left behind. */
DEFINE_AUTO(struct pawl__nats *, pawl__nats_close)

enum pawl__nats_state { PAWL__NATS_CONNECTED, PAWL__NATS_RECONNECTING, PAWL__NATS_CLOSED };

enum pawl__nats_state pawl__nats_state(struct pawl__nats *nats);
const char *pawl__nats_state_name(enum pawl__nats_state state);

/* How often the connection came back. When it changed, what was asked for on the old one is lost and the
 * stream may be another: look again. */
uint64_t pawl__nats_reconnects(struct pawl__nats *nats);

/* "nats://host:4222,nats://other:4222": no secrets. Lives as long as the connection. */
const char *pawl__nats_shown(const struct pawl__nats *nats);

/* Names the process of the server that we are connected to: another one after its restart. UNAVAILABLE. */
enum { PAWL__NATS_SERVER_ID_SIZE = 128 };
PAWL_MUST_USE pawl_status pawl__nats_server_id(struct pawl__nats *nats,
                                               char ret_id[PAWL__NATS_SERVER_ID_SIZE],
                                               pawl_error *reterr);

/* The largest message the server takes, headers included; 0 before it said so. */
int64_t pawl__nats_payload_max(struct pawl__nats *nats);

/* A round trip to the server. */
PAWL_MUST_USE pawl_status pawl__nats_ping(struct pawl__nats *nats, pawl_error *reterr);

#endif
