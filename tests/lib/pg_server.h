/* A real PostgreSQL cluster for one test program: its own directory, its own free port on loopback,
 * an unprivileged user, fsync on. It ends with the program, however that ends.
 *
 *     struct pg_server *server = NULL;
 *     assert_ok(pg_server_start(&(struct pg_server_options){ 0 }, &server, &error), &error);
 *     ... pg_server_url(server) ...
 *     pg_server_free(server);
 *
 * PAWL_UNSUPPORTED means that no PostgreSQL is installed: skip(). A start takes half a
 * second: start one server per program (group setup) and give each test its own schema or tables.
 *
 * Call it from the main thread only: the server dies with the thread that started it. */
#ifndef TESTS_PG_SERVER_H
#define TESTS_PG_SERVER_H

#include <sys/types.h>

#include <pawl/pawl.h>

struct pg_server;

struct pg_server_options {
    const char *parent;   /* where the cluster's directory is made; NULL: $TMPDIR, memory or /tmp */
    bool sync_initdb;     /* for power cuts: what initdb wrote must not be lost with the rest */
    const char *settings; /* more lines for postgresql.conf, each ended by a newline; or NULL */
};

PAWL_MUST_USE pawl_status pg_server_start(const struct pg_server_options *options,
                                          struct pg_server **ret_server,
                                          pawl_error *reterr);

void pg_server_free(struct pg_server *server); /* stops it and removes its directory */

/* "postgresql://pawl@127.0.0.1:PORT/postgres": a superuser without a password. Also over
 * 127.0.0.1: the role `guarded`, which must give the password `s3cret pass%word`. */
const char *pg_server_url(const struct pg_server *server);
int pg_server_port(const struct pg_server *server);
pid_t pg_server_pid(const struct pg_server *server);
const char *pg_server_directory(
    const struct pg_server *server); /* holds data/, log and the socket */

/* Ends the server and waits for it. SIGINT: fast, sessions are thrown out; SIGTERM: waits for them;
 * SIGQUIT: at once, recovery at the next start. */
PAWL_MUST_USE pawl_status pg_server_stop(struct pg_server *server, int signal, pawl_error *reterr);

/* kill -9 of every process of the cluster at once; nothing gets to write a last word. */
PAWL_MUST_USE pawl_status pg_server_kill(struct pg_server *server, pawl_error *reterr);

/* SIGSTOP for every process of the cluster: it accepts connections and answers nothing. It goes on
 * with pg_server_resume, or when it is stopped, killed or freed. */
void pg_server_stall(struct pg_server *server);
void pg_server_resume(struct pg_server *server);

/* Starts a server that was stopped or killed, on the same port and data. */
PAWL_MUST_USE pawl_status pg_server_restart(struct pg_server *server, pawl_error *reterr);

#endif
