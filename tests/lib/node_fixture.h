/* A node in this process with a work store of one backend, asked over real sockets. */
#ifndef TESTS_NODE_FIXTURE_H
#define TESTS_NODE_FIXTURE_H

#include "lib/check.h"

#include "lib/http_client.h"
#include "lib/tempdir.h"
#include "server/node.h"

struct node_fixture {
    char dir[TEMPDIR_SIZE];
    char place[TEMPDIR_SIZE + 8];
    char work[TEMPDIR_SIZE + 64];
    struct pawl__serve_options options;
    struct pawl__serve_node *node;
    char address[64];
    pawl_error error;
};

/* The program's one argument is the backend: memory, sqlite or postgres. */
int node_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);
int node_fixture_setup(void **state);
int node_fixture_teardown(void **state);
#define node_test(fn) cmocka_unit_test_setup_teardown(fn, node_fixture_setup, node_fixture_teardown)

bool node_is(const char *backend);
void node_start(struct node_fixture *f);
void node_stop(struct node_fixture *f);

/* The server goes away, or the file, which is not open, is no database; and back: the server comes
 * back, the file is gone. Not of memory. */
void node_break_store(struct node_fixture *f);
void node_mend_store(struct node_fixture *f);

/* Ends all sessions of the server but its own. Of postgres. */
void node_end_sessions(void);

/* The server takes connections and answers nothing; and again. Of postgres. */
void node_stall_store(void);
void node_resume_store(void);

/* The body of an answer with that code; free it. */
char *node_ask(struct node_fixture *f, const char *what, const char *body, int code);

/* The same, and `part` stands in it. */
void node_expect(
    struct node_fixture *f, const char *what, const char *body, int code, const char *part);

/* The number behind "key": in an answer. */
int64_t node_number(const char *json, const char *key);

#endif
