/* A work store of one backend for each test, on a clock that the test moves. */
#ifndef TESTS_WORK_FIXTURE_H
#define TESTS_WORK_FIXTURE_H

#include "lib/check.h"

#include <pawl/work.h>

#include "lib/tempdir.h"
#include "lib/virtual_clock.h"

struct work_fixture {
    const char *backend; /* "model", "memory", "sqlite", ... */
    char dir[TEMPDIR_SIZE];
    char location[TEMPDIR_SIZE + 64];
    struct pawl__clock_virtual clock;
    pawl_work_options options;
    pawl_work *work;
    pawl_error err;
    char text[8192]; /* of the last text that was made */
};

#define WORK_BOOT "11111111-1111-4111-8111-111111111111"

/* The program's one argument is the backend; "postgres-plain" is PostgreSQL without its fast path. */
int work_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);
int work_fixture_setup(void **state);
int work_fixture_teardown(void **state);
#define work_test(fn) cmocka_unit_test_setup_teardown(fn, work_fixture_setup, work_fixture_teardown)

bool work_is(const struct work_fixture *f, const char *backend);
bool work_forgets(
    const struct work_fixture *f); /* model and memory: one handle, gone when it is closed */

/* Opens the store again, as after a crash of the process. False: it forgets. */
bool work_reopen(struct work_fixture *f, const char *boot_id);

/* Another handle on the store, on the real clock: a virtual one is not for several threads. */
pawl_work *work_open_real(struct work_fixture *f, const pawl_work_options *options);

/* f->work on the real clock, with f->options: for tests with threads. */
void use_real_clock(struct work_fixture *f);

/* What foreign SQL does, on SQLite and PostgreSQL. */
void work_sql(struct work_fixture *f, const char *sql);
bool work_refuses(struct work_fixture *f, const char *sql);

/* Time passes for leases, delays and backoffs. */
void work_pass(struct work_fixture *f, int64_t ms);

/* --- doing things, all of which must succeed --- */

void make_task(struct work_fixture *f, const char *task_id);
void submit(struct work_fixture *f, const char *id, const char *task_id, int32_t priority);
/* `after`: ids with a space between; NULL: none. */
pawl_status submit_after(struct work_fixture *f,
                         const char *id,
                         const char *task_id,
                         const char *after);
/* One item, which must be `id`; its token. */
uint64_t claim_it(struct work_fixture *f, const char *holder, const char *id);
bool nothing_to_claim(struct work_fixture *f);
/* Up to 100 items: "a b c ". */
const char *claim_ids(struct work_fixture *f, const pawl_claim *claim);

pawl_lease lease_of(const char *id, uint64_t token);
pawl_status complete(struct work_fixture *f, const char *id, uint64_t token);
pawl_status fail_with(
    struct work_fixture *f, const char *id, uint64_t token, const char *message, bool retryable);

/* --- looking --- */

/* "pending 2/3 token 1 attempts 1 'message'": status, retries of how many, and so on. */
const char *item_text(struct work_fixture *f, const char *id);
/* ">pending 0|pending>in_progress 1 by w|...": from, to, token, holder, message. */
const char *history_text(struct work_fixture *f, const char *id);
/* "running w0 p1 r2 c3 f4" */
const char *task_text(struct work_fixture *f, const char *task_id);

#define assert_item(f, id, expected) assert_string_equal(item_text(f, id), expected)
#define assert_history(f, id, expected) assert_string_equal(history_text(f, id), expected)
#define assert_task(f, id, expected) assert_string_equal(task_text(f, id), expected)

#endif
