/* A small SQLite store in a temporary directory: tests/sql/sqlite/probe and a statement table. */
#ifndef TESTS_SQLITE_PROBE_H
#define TESTS_SQLITE_PROBE_H

#include "lib/file.h"
#include "store/sqlite/sqlite.h"

enum {
    PROBE_PUT,       /* name */
    PROBE_PUT_ALL,   /* id, name, body, size */
    PROBE_GET,       /* id -> name, body, size */
    PROBE_ROWS,      /* -> how many */
    PROBE_PUT_CHILD, /* probe id */
    PROBE_DROP_CHILDREN,
    PROBE_FOREVER, /* -> one row after a very long time */
    PROBE_COUNT
};

enum { PROBE_APPLICATION_ID = 0x7061776c };

struct probe {
    char dir[64];
    char path[96];
    struct pawl__sqlite_options options;
};

int probe_setup(void **state);           /* *state is a struct probe * */
int probe_setup_in_memory(void **state); /* for what opens it thousands of times */
int probe_teardown(void **state);

/* These return what the wrapper returns, so that a child of fork can use them too. */
pawl_status probe_put(struct pawl__sqlite *db, const char *name, pawl_error *reterr);
pawl_status probe_put_committed(struct pawl__sqlite *db, const char *name, pawl_error *reterr);
pawl_status probe_rows(struct pawl__sqlite *db, int64_t *ret_rows, pawl_error *reterr);

/* Asserts. The first migration brings one row along. */
struct pawl__sqlite *probe_open(struct probe *probe);
void assert_rows(struct pawl__sqlite *db, int64_t expected);
int64_t probe_pragma(struct probe *probe, const char *sql); /* through a handle of its own */

/* A file's bytes, malloc'ed. */

#endif
