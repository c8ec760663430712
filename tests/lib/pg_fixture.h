/* One PostgreSQL server for a test program, and what its tests do with it all the time.
 *
 *     int main(void) { ... cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop); }
 *
 * Every test begins with `struct pg_fixture *f = pg_fixture(state);`, which skips it where no
 * PostgreSQL is installed. */
#ifndef TESTS_PG_FIXTURE_H
#define TESTS_PG_FIXTURE_H

#include "lib/check.h"
#include "lib/pg_server.h"

#include "store/postgres/postgres.h"

struct pg_fixture {
    struct pg_server *server; /* NULL: none installed */
    pawl_error err;
};

int pg_fixture_start(void **state);
int pg_fixture_stop(void **state);
struct pg_fixture *pg_fixture(void **state);

/* Opens a connection or fails the test. */
struct pawl__pg *pg_connect(struct pg_fixture *f, const struct pawl__pg_options *options);

/* Runs a script on a connection of its own, in schema `pawl`; the server's administrator. */
void pg_admin(struct pg_fixture *f, const char *sql);

/* The first column of the first row, a bigint, over a connection of its own. */
int64_t pg_number(struct pg_fixture *f, const char *sql);

/* Stops (SIGSTOP) every process of the server that serves a store of ours, by its application_name
 * ("pawl ..."), while the server itself goes on. To be resumed in the test's teardown. */
void pg_stop_sessions(struct pg_fixture *f);
void pg_resume_sessions(void); /* nothing without any */

int64_t in_ms(int ms); /* a monotonic deadline */

#endif
