/* Which path the calls of a suite took on PostgreSQL: the fast path of production, one statement for a
 * completion and the next claim, or transactions alone ("postgres-plain"). */
#ifndef TESTS_WORK_PATH_H
#define TESTS_WORK_PATH_H

#include "lib/pg_fixture.h"

/* After each test, while its tables still stand. */
void work_path_count(struct pg_fixture *postgres);

/* Runs the tests, and behind them one that fails when they took the wrong path. */
int work_path_run(const char *name, bool plain, const struct CMUnitTest *tests, size_t count);

#endif
