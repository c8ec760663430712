/* A server for the program (group setup), and for each test a connection and a stream of its own. */
#ifndef TESTS_NATS_FIXTURE_H
#define TESTS_NATS_FIXTURE_H

#include "lib/check.h"
#include "lib/nats_server.h"
#include "net/nats/fetch.h"
#include "net/nats/nats.h"
#include "net/nats/publish.h"
#include "net/nats/stream.h"
#include "net/nats/truth.h"

struct nats_fixture {
    struct nats_server *server;
    struct pawl__nats *nats;
    char stream[32];  /* takes "<stream>.>" */
    char subject[48]; /* "<stream>.a" */
    struct pawl__nats_consumer_need need;
    pawl_error error;
};

/* Group: starts the server, or skips every test. */
int nats_fixture_start(void **state);
int nats_fixture_end(void **state);

/* Test: connects and makes stream and consumer "c". */
int nats_fixture_open(void **state);
int nats_fixture_close(void **state);

#define nats_test(function) \
    cmocka_unit_test_setup_teardown(function, nats_fixture_open, nats_fixture_close)

void nats_fixture_connect(struct nats_fixture *f); /* again, after the server was another */
void nats_fixture_make_consumer(struct nats_fixture *f, uint64_t start_seq);

/* Publishes "<prefix><number>" with the same id, numbers from `from` to `to`. */
void nats_fixture_publish(struct nats_fixture *f, const char *prefix, int from, int to);

/* Fetches until there are `count` messages, acknowledging each; at most 10 s. Returns the last one's anchor. */
struct pawl__nats_anchor nats_fixture_drain(struct nats_fixture *f,
                                            struct pawl__nats_fetcher *fetcher,
                                            size_t count);

struct pawl__nats_stream nats_fixture_stream(struct nats_fixture *f);

/* Waits until the connection is in this state. */
void nats_fixture_await(struct nats_fixture *f, enum pawl__nats_state state);

int64_t nats_fixture_now_ms(void);

#endif
