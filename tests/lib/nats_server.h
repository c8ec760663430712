/* A real nats-server with JetStream for one test program: its own directory, its own free port on loopback. It
 * ends with the program, however that ends.
 *
 *     struct nats_server *server = NULL;
 *     assert_ok(nats_server_start(&(struct nats_server_options){ 0 }, &server, &error), &error);
 *     ... nats_server_url(server) ...
 *     nats_server_free(server);
 *
 * PAWL_UNSUPPORTED means that no nats-server is installed: skip(). It starts in about 50 ms. PAWL_NATS_SERVER
 * names another program than the one on the PATH. Main thread only: the server dies with the thread that started
 * it. */
#ifndef TESTS_NATS_SERVER_H
#define TESTS_NATS_SERVER_H

#include <sys/types.h>

#include <pawl/pawl.h>

struct nats_server;

struct nats_server_options {
    /* More lines of the configuration, or NULL. "DIR" in it is the server's directory. */
    const char *settings;
    bool no_jetstream;
    const char *name; /* NULL: "pawl-test" */
};

PAWL_MUST_USE pawl_status nats_server_start(const struct nats_server_options *options,
                                            struct nats_server **ret_server,
                                            pawl_error *reterr);
void nats_server_free(
    struct nats_server *server); /* stops it and removes its directory; NULL is nothing */

const char *nats_server_url(const struct nats_server *server);
int nats_server_port(const struct nats_server *server);
const char *nats_server_directory(const struct nats_server *server);

PAWL_MUST_USE pawl_status nats_server_kill(struct nats_server *server,
                                           pawl_error *reterr); /* kill -9 */
PAWL_MUST_USE pawl_status nats_server_stop(struct nats_server *server,
                                           pawl_error *reterr); /* SIGTERM */
void nats_server_stall(
    struct nats_server *server); /* SIGSTOP: accepts connections, answers nothing */
void nats_server_resume(struct nats_server *server); /* SIGCONT */

/* Starts one that was stopped or killed, on the same port and store. */
PAWL_MUST_USE pawl_status nats_server_restart(struct nats_server *server, pawl_error *reterr);

/* Of a server that does not run: copies its store aside, and puts that copy back. */
PAWL_MUST_USE pawl_status nats_server_save(struct nats_server *server, pawl_error *reterr);
PAWL_MUST_USE pawl_status nats_server_put_back(struct nats_server *server, pawl_error *reterr);

#endif
