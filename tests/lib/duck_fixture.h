/* A DuckDB file of a test's own with one connection, and the few calls its tests repeat. */
#ifndef TESTS_DUCK_FIXTURE_H
#define TESTS_DUCK_FIXTURE_H

#include "lib/check.h"
#include "lib/tempdir.h"
#include "store/duckdb/duckdb.h"

struct duck_fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    char wal[TEMPDIR_SIZE + 40];
    struct pawl__duck_options options;
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
    struct pawl__duck_conn *other;
    pawl_error error;
};

int duck_setup(void **state); /* for cmocka; *state is a struct duck_fixture */
int duck_teardown(void **state);

void duck_open(struct duck_fixture *f); /* with both connections */
void duck_close(struct duck_fixture *f);

/* On a connection of the fixture; they fail the test unless all is well. */
void duck_script(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql);
void duck_begin(struct duck_fixture *f, struct pawl__duck_conn *conn);
void duck_commit(struct duck_fixture *f, struct pawl__duck_conn *conn);
int64_t duck_number(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql);

/* Runs a query to its end and returns how it ended. */
pawl_status duck_drain(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql);

int64_t duck_file_size(const char *path); /* -1: not there */

#endif
