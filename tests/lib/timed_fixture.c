#include "lib/timed_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "lib/work_path.h"
#include "model/model.h"
#include "work/core/internal.h"

static const char *suite_backend;
static bool suite_plain; /* PostgreSQL without its short way */
static struct pg_fixture postgres;

#define FIRST_BOOT "00000000-0000-4000-8000-000000000001"
#define SECOND_BOOT "00000000-0000-4000-8000-000000000002"

int timed_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (argc != 2) {
        fprintf(stderr, "usage: %s model|memory|sqlite|postgres|postgres-plain\n", argv[0]);
        return 2;
    }
    work_model_register();
    suite_plain = strcmp(argv[1], "postgres-plain") == 0;
    suite_backend = suite_plain ? "postgres" : argv[1];
    if (strcmp(suite_backend, "postgres") == 0
        && pg_server_start(
               &(struct pg_server_options){ .settings = NULL }, &postgres.server, &error)
               != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = postgres.server == NULL
                     ? _cmocka_run_group_tests(suite_backend, tests, count, NULL, NULL)
                     : work_path_run(argv[1], suite_plain, tests, count);
    pg_server_free(postgres.server);
    return failed;
}

/* --- The clock --- */

static struct moved_clock *moved(struct pawl__clock *clock)
{
    return (struct moved_clock *)clock;
}

static int64_t moved_wall_us(struct pawl__clock *clock)
{
    return pawl__wall_us(pawl__clock_real()) + moved(clock)->ahead_ns / NS_PER_US
           + moved(clock)->wall_step_us;
}

static int64_t moved_monotonic_ns(struct pawl__clock *clock)
{
    (void)clock;
    return pawl__monotonic_ns(pawl__clock_real());
}

static int64_t moved_boot_ns(struct pawl__clock *clock)
{
    return pawl__boot_ns(pawl__clock_real()) + moved(clock)->ahead_ns;
}

static void moved_sleep_until(struct pawl__clock *clock, int64_t until_ns)
{
    (void)clock;
    pawl__sleep_until(pawl__clock_real(), until_ns);
}

static const struct pawl__clock_ops moved_ops = {
    .wall_us = moved_wall_us,
    .monotonic_ns = moved_monotonic_ns,
    .boot_ns = moved_boot_ns,
    .sleep_until = moved_sleep_until,
};

/* --- The store --- */

static bool is(const struct timed_fixture *f, const char *backend)
{
    return strcmp(f->backend, backend) == 0;
}

bool timed_forgets(const struct timed_fixture *f)
{
    return is(f, "model") || is(f, "memory");
}

static pawl_work *open_one(struct timed_fixture *f, const char *boot_id)
{
    pawl_work *work = NULL;

    assert_ok(pawl__work_open_at(f->location, NULL, &f->clock.base, boot_id, &work, &f->err),
              &f->err);
    work->backend->without_fast_path = suite_plain;
    return work;
}

int timed_fixture_setup(void **state)
{
    struct timed_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    *state = f;
    f->backend = suite_backend;
    f->clock.base.ops = &moved_ops;
    assert_ok(tempdir_make(f->dir, "work", &f->err), &f->err);
    if (timed_forgets(f)) {
        snprintf(f->location, sizeof(f->location), "%s:", f->backend);
    } else if (is(f, "sqlite")) {
        snprintf(f->location, sizeof(f->location), "%s/work.sqlite", f->dir);
    } else if (is(f, "postgres")) {
        pg_admin(&postgres, "DROP SCHEMA IF EXISTS pawl CASCADE");
        snprintf(f->location, sizeof(f->location), "%s", pg_server_url(postgres.server));
    } else {
        fail_msg("no backend '%s'", f->backend);
    }
    f->work = open_one(f, FIRST_BOOT);
    return 0;
}

int timed_fixture_teardown(void **state)
{
    struct timed_fixture *f = *state;

    if (is(f, "postgres")) {
        work_path_count(&postgres);
    }
    pawl_work_close(f->work, 0, NULL);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

pawl_work *timed_fixture_second(struct timed_fixture *f)
{
    return timed_forgets(f) ? NULL : open_one(f, FIRST_BOOT);
}

bool timed_fixture_reboot(struct timed_fixture *f)
{
    if (timed_forgets(f)) {
        return false;
    }
    pawl_work_close(f->work, 0, NULL);
    f->work = open_one(f, SECOND_BOOT);
    return true;
}

bool timed_fixture_wait(struct timed_fixture *f, int64_t seconds)
{
    f->clock.ahead_ns += seconds * NS_PER_S;
    return true;
}

void timed_fixture_step_wall(struct timed_fixture *f, int64_t seconds)
{
    f->clock.wall_step_us += seconds * US_PER_S;
}

bool timed_fixture_sql(struct timed_fixture *f, const char *sql)
{
    char *message = NULL;
    sqlite3 *db = NULL;

    if (is(f, "postgres")) {
        pg_admin(&postgres, sql);
        return true;
    }
    if (!is(f, "sqlite")) {
        return false;
    }
    assert_int_equal(sqlite3_open(f->location, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_exec(db, "PRAGMA foreign_keys=ON", NULL, NULL, NULL) != SQLITE_OK
        || sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    sqlite3_close(db);
    return true;
}

void timed_task(struct timed_fixture *f, const char *id)
{
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of(id),
                       .title = pawl_view_of("a task") };

    assert_ok(pawl_task_create(f->work, &task, NULL, 0, &f->err), &f->err);
}

void timed_submit(struct timed_fixture *f, const char *task_id, const char *id)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of(task_id);
    submission.work_type = pawl_view_of("type");
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

pawl_lease timed_claim(struct timed_fixture *f, const char *id, uint32_t lease_ms)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("worker");
    claim.lease_ms = lease_ms;
    assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, id));
    pawl_lease lease = { sizeof(pawl_lease), pawl_view_of(id), claimed->items[0].token };
    pawl_claimed_free(claimed);
    return lease;
}

int64_t timed_checkpoint(struct timed_fixture *f,
                         const char *task_id,
                         pawl_checkpoint_type type,
                         const char *snapshot)
{
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of(task_id),
        .type = type,
        .snapshot_data = pawl_view_of(snapshot),
    };
    int64_t sequence = 0;

    assert_ok(pawl_checkpoint_add(f->work, &checkpoint, NULL, &sequence, NULL, 0, &f->err),
              &f->err);
    return sequence;
}

void timed_finish(struct timed_fixture *f, const char *task_id, const char *id)
{
    timed_submit(f, task_id, id);
    pawl_lease lease = timed_claim(f, id, 0);
    assert_ok(pawl_work_complete(f->work, &lease, pawl_view_of(NULL), &f->err), &f->err);
}

void timed_answer(struct timed_fixture *f,
                  const char *key,
                  const char *task_id,
                  const char *response)
{
    pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    pawl_idem *idem = NULL;

    assert_ok(pawl_request_hash(pawl_view_of("1"), hash, PAWL_REQUEST_HASH_SIZE, &f->err), &f->err);
    request.key = pawl_view_of(key);
    request.request_hash = pawl_view_of(hash);
    request.task_id = pawl_view_of(task_id);
    request.ttl_ms = INT64_C(365) * 24 * 3600 * 1000;
    assert_ok(pawl_idem_begin(f->work, &request, &idem, &f->err), &f->err);
    assert_int_equal(idem->answer, PAWL_IDEM_NEW);
    assert_ok(pawl_idem_complete(
                  f->work, request.key, idem->owner_token, pawl_view_of(response), &f->err),
              &f->err);
    pawl_idem_free(idem);
}
