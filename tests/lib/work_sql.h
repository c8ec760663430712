/* Foreign SQL on a work store: a file or schema that our migration made, and a connection that is
 * not ours. One program runs on either store, which is its argument. */
#ifndef TESTS_WORK_SQL_H
#define TESTS_WORK_SQL_H

#include "lib/check.h"

#include "base/core/buf.h"
#include "lib/tempdir.h"

struct work_sql {
    bool is_postgres;
    char dir[TEMPDIR_SIZE];
    void *db; /* sqlite3 * or PGconn * */
    struct pawl__buf answer;
    char error[1024];
};

#define WORK_SQL_TEST(name) cmocka_unit_test_setup_teardown(name, work_sql_setup, work_sql_teardown)

int work_sql_setup(void **state); /* *state is a struct work_sql * on an empty store */
int work_sql_teardown(void **state);

/* Runs the tests on the store of argv[1]: "sqlite" or "postgres". */
int work_sql_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* False when a statement is refused; why is in `error`. */
bool work_sql_try(struct work_sql *store, const char *sql);
void work_sql_must(struct work_sql *store, const char *sql);

/* The rows of one statement: columns '|', rows '\n', NULL empty. Lives until the next. */
const char *work_sql_answer(struct work_sql *store, const char *sql);
void work_sql_is(struct work_sql *store, const char *sql, const char *expected);

#endif
