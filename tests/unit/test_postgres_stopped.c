/* One process of a PostgreSQL server is stopped (SIGSTOP), the others run: what a store asks it for
 * ends with an error that names it, and the next call gets a process that works. */
#include "lib/pg_fixture.h"

#include <pawl/ledger.h>
#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

enum {
    ANSWER_MS = 1000,
    ENDS_MS = 30000, /* generous: the machine may be busy; without a bound it is 60 s and more */
};

static int resume(void **state)
{
    (void)state;
    pg_resume_sessions();
    return 0;
}

static int empty(void **state)
{
    struct pg_fixture *f = *state;

    if (f->server != NULL) {
        pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    }
    return 0;
}

/* Whether it was stored may be unknown. */
static void assert_stalled(struct pg_fixture *f, pawl_status status, int64_t deadline_ns)
{
    assert_true(status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE);
    assert_int_equal(status, f->err.status);
    assert_message(&f->err, "of the database server 'pawl@127.0.0.1:");
    assert_message(&f->err, "store.answer_timeout");
    assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
}

/* Work repeats what may be repeated, over a new connection. */
static void assert_repeated_or_stalled(struct pg_fixture *f,
                                       pawl_status status,
                                       int64_t deadline_ns)
{
    if (status != PAWL_OK) {
        assert_stalled(f, status, deadline_ns);
    }
    assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
}

static pawl_status append(struct pg_fixture *f, pawl_ledger *ledger, const char *id)
{
    pawl_event event = { .size = sizeof(pawl_event),
                         .id = pawl_view_of(id),
                         .run_id = pawl_view_of("r"),
                         .turn = 1,
                         .kind = pawl_view_of("k"),
                         .actor = pawl_view_of("a"),
                         .payload = pawl_view_of("{}") };

    return pawl_ledger_append(ledger, &event, NULL, &f->err);
}

static void test_an_append_to_a_stopped_process_ends_in_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    options.answer_ms_max = ANSWER_MS;
    assert_ok(pawl_ledger_open(pg_server_url(f->server), &options, &ledger, &f->err), &f->err);
    assert_ok(append(f, ledger, "1"), &f->err);
    pg_stop_sessions(f);
    int64_t deadline_ns = in_ms(ENDS_MS);
    assert_stalled(f, append(f, ledger, "2"), deadline_ns);
    assert_ok(append(f, ledger, "2"), &f->err); /* the others of the server are well */
    pg_resume_sessions();
    pawl_ledger_close(ledger, 0, NULL);
}

static pawl_work *open_work(struct pg_fixture *f)
{
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;
    pawl_submission item = PAWL_SUBMISSION_INIT;
    pawl_task task = { .size = sizeof(pawl_task), .task_id = pawl_view_of("task") };
    pawl_work *work = NULL;

    options.answer_ms_max = ANSWER_MS;
    item.task_id = task.task_id;
    item.work_type = pawl_view_of("t");
    assert_ok(pawl_work_open(pg_server_url(f->server), &options, &work, &f->err), &f->err);
    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_submit(work, &item, 1, NULL, &f->err), &f->err);
    return work;
}

static pawl_status claim(struct pg_fixture *f, pawl_work *work, pawl_claimed **ret_claimed)
{
    pawl_claim wanted = PAWL_CLAIM_INIT;

    wanted.holder = pawl_view_of("ada");
    return pawl_work_claim(work, &wanted, ret_claimed, &f->err);
}

static void test_a_claim_from_a_stopped_process_ends_in_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = open_work(f);
    pawl_claimed *claimed = NULL;

    pg_stop_sessions(f);
    int64_t deadline_ns = in_ms(ENDS_MS);
    assert_repeated_or_stalled(f, claim(f, work, &claimed), deadline_ns);
    pg_resume_sessions();
    pawl_claimed_free(claimed);
    pawl_work_close(work, 0, NULL);
}

static void test_completing_by_a_stopped_process_ends_in_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = open_work(f);
    pawl_claimed *claimed = NULL;

    assert_ok(claim(f, work, &claimed), &f->err);
    pawl_lease lease = { sizeof(pawl_lease),
                         claimed->items[0].work_item_id,
                         claimed->items[0].token };
    pg_stop_sessions(f);
    int64_t deadline_ns = in_ms(ENDS_MS);
    assert_repeated_or_stalled(
        f, pawl_work_complete(work, &lease, pawl_view_of("1"), &f->err), deadline_ns);
    pg_resume_sessions();
    assert_ok(pawl_work_complete(work, &lease, pawl_view_of("1"), &f->err), &f->err);
    pawl_claimed_free(claimed);
    pawl_work_close(work, 0, NULL);
}

#define STOP_TEST(test) cmocka_unit_test_setup_teardown(test, empty, resume)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STOP_TEST(test_an_append_to_a_stopped_process_ends_in_time),
        STOP_TEST(test_a_claim_from_a_stopped_process_ends_in_time),
        STOP_TEST(test_completing_by_a_stopped_process_ends_in_time),
    };
    return cmocka_run_group_tests_name(
        "postgres_stopped", tests, pg_fixture_start, pg_fixture_stop);
}
