/* One work store for each test of a contract suite, on the backend that the program was started for,
 * with a clock that a test can move.
 *
 *     return timed_suite(argc, argv, tests, COUNT_OF(tests)); */
#ifndef TESTS_TIMED_FIXTURE_H
#define TESTS_TIMED_FIXTURE_H

#include "lib/check.h"

#include <stdatomic.h>

#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "lib/tempdir.h"

/* The real clock, ahead by what the test says. Any thread. */
struct moved_clock {
    struct pawl__clock base;
    _Atomic int64_t ahead_ns;
    _Atomic int64_t wall_step_us;
};

struct timed_fixture {
    const char *backend;
    char dir[TEMPDIR_SIZE];
    char location[TEMPDIR_SIZE + 128];
    struct moved_clock clock;
    pawl_work *work;
    pawl_error err;
};

#define TIMED_TEST(name) \
    cmocka_unit_test_setup_teardown(name, timed_fixture_setup, timed_fixture_teardown)

bool timed_forgets(const struct timed_fixture *f); /* model and memory: gone when closed */
int timed_fixture_setup(void **state);
int timed_fixture_teardown(void **state);

/* Runs the tests on the backend of argv[1]; "postgres-plain" is PostgreSQL without its short way. */
int timed_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Another handle on the same store; NULL on a backend where there can be none. */
pawl_work *timed_fixture_second(struct timed_fixture *f);

/* Closes and opens again as after a restart of the machine; false where everything would be gone. */
bool timed_fixture_reboot(struct timed_fixture *f);

/* Lets time pass; false where the server's clock decides, and the test has to do without. */
bool timed_fixture_wait(struct timed_fixture *f, int64_t seconds);
void timed_fixture_step_wall(struct timed_fixture *f, int64_t seconds);

/* Runs SQL on the store behind its back; false where there is none. */
bool timed_fixture_sql(struct timed_fixture *f, const char *sql);

void timed_task(struct timed_fixture *f, const char *id);
void timed_submit(struct timed_fixture *f, const char *task_id, const char *id);

/* Claims one item, which must be there, for `lease_ms` (0: the default); its lease. The id is the
 * argument's. */
pawl_lease timed_claim(struct timed_fixture *f, const char *id, uint32_t lease_ms);

/* Submits, claims and completes one. */
void timed_finish(struct timed_fixture *f, const char *task_id, const char *id);

/* Adds a checkpoint without a lease; its number. */
int64_t timed_checkpoint(struct timed_fixture *f,
                         const char *task_id,
                         pawl_checkpoint_type type,
                         const char *snapshot);

/* An answered key of a task, for a year. */
void timed_answer(struct timed_fixture *f,
                  const char *key,
                  const char *task_id,
                  const char *response);

#endif
