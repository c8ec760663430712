/* A gRPC server with methods of every kind, for the tests of net/h2. Messages are plain bytes.
 *
 *   /test.Echo/Unary     the request
 *   /test.Echo/Later     the same, from another thread
 *   /test.Echo/Blocks    the same, from a thread that may block
 *   /test.Echo/Hold      nothing, until h2_fixture_release or the caller is gone
 *   /test.Echo/Fail      FAILED_PRECONDITION, "what 100% ü", details "\1\2\3"
 *   /test.Echo/Who       "peer=NAME metadata=VALUE" of the header x-test
 *   /test.Echo/Count     server stream: as many messages as the request says, each of 1000 bytes
 *   /test.Echo/Join      client stream: all messages, one after the other
 *   /test.Echo/Chat      bidi: each message as it came, and "end" at the end
 *   /test.Echo/Big       as many bytes as the request says */
#ifndef TESTS_H2_FIXTURE_H
#define TESTS_H2_FIXTURE_H

#include <stdatomic.h>

#include "lib/tempdir.h"
#include "net/h2/client.h"
#include "net/h2/h2.h"

struct h2_fixture {
    struct pawl__h2_options options;
    struct pawl__h2 *server;
    struct pawl__h2_client *client;
    atomic_size_t held;   /* calls of Hold that wait */
    atomic_size_t gone;   /* calls that ended before they were finished */
    atomic_size_t opened; /* streams that read */
    char directory[TEMPDIR_SIZE];
    pawl_error error;
};

/* Options with the methods, to be changed before h2_fixture_start. */
void h2_fixture_init(struct h2_fixture *fixture);
PAWL_MUST_USE pawl_status h2_fixture_start(struct h2_fixture *fixture, pawl_error *reterr);
PAWL_MUST_USE pawl_status h2_fixture_connect(struct h2_fixture *fixture,
                                             const struct pawl__h2_client_options *options,
                                             struct pawl__h2_client **ret_client,
                                             pawl_error *reterr);
/* Ends everything that is there; within 30 s. */
void h2_fixture_done(struct h2_fixture *fixture);

/* Answers the calls that Hold holds, and says how many: a call that an answer made room for may be among them. */
size_t h2_fixture_release(struct h2_fixture *fixture);

int64_t h2_fixture_in_ms(int64_t ms); /* monotonic */

/* Waits until the counter has the value, 30 s at most. */
bool h2_fixture_await(atomic_size_t *counter, size_t value);

/* Certificates in the directory: ca.pem, server.pem/.key for localhost and 127.0.0.1, client.pem/.key for
 * "agent-7", other-ca.pem, stranger.pem/.key of that one. False: openssl is not there. */
bool h2_fixture_certificates(const char *directory);

#endif
