/* A server that is stopped (SIGSTOP) accepts connections and answers nothing, for ever: every wait has
 * a deadline of its own. */
#include "lib/pg_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "store/postgres/internal.h"
#include "store/postgres/pool.h"

enum {
    ADD,
    SLEEP,
    ANSWER_MS = 1000,
    ENDS_MS = 20000, /* generous: the machine may be busy; without a deadline it is for ever */
};

static const struct pawl__pg_statement statements[] = {
    [ADD] = { "INSERT INTO item (id) VALUES ($1) ON CONFLICT DO NOTHING", "i", NULL },
    [SLEEP] = { "SELECT true FROM pg_sleep($1)", "d", "b" },
};

static const struct pawl__pg_options impatient = { .statements = statements,
                                                   .statement_count = COUNT_OF(statements),
                                                   .answer_ms_max = ANSWER_MS };

static int prepare(void **state)
{
    pg_admin(pg_fixture(state), "CREATE TABLE IF NOT EXISTS item (id bigint PRIMARY KEY)");
    return 0;
}

static int resume(void **state)
{
    struct pg_fixture *f = *state;

    if (f->server != NULL && pg_server_pid(f->server) != 0) {
        pg_server_resume(f->server);
    }
    return 0;
}

static pawl_status add(struct pawl__pg *pg, int64_t id, pawl_error *reterr)
{
    return pawl__pg_exec(pg, ADD, PG_ARGS(pawl__pg_i64(id)), NULL, reterr);
}

static void assert_in_time(int64_t deadline_ns)
{
    assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
}

static void add_when_it_is_back(struct pg_fixture *f, struct pawl__pg *pg)
{
    int64_t deadline_ns = in_ms(ENDS_MS);

    pg_server_resume(f->server);
    while (add(pg, 1, &f->err) != PAWL_OK) {
        assert_in_time(deadline_ns);
        pawl__sleep_until(pawl__clock_real(), in_ms(20)); /* it rests for a second */
    }
}

static void test_a_stalled_server_is_named_within_the_answer_timeout(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &impatient);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pg_server_stall(f->server);
    int64_t deadline_ns = in_ms(ENDS_MS);
    assert_status(add(pg, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "has stalled");
    assert_message(&f->err, "pawl@127.0.0.1:");
    assert_message(&f->err, "store.answer_timeout");
    assert_in_time(deadline_ns);
    pawl__pg_rollback(pg);

    /* Whoever tries at once does not wait again, however long this machine takes for "at once". */
    assert_int_equal(pg->failed, PAWL_TIMEOUT);
    pg->failed_ns = in_ms(ENDS_MS);
    assert_status(add(pg, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "no answer within 1000 ms a moment ago");
    pg->failed_ns = 0;
    add_when_it_is_back(f, pg);
    pawl__pg_close(pg);
}

static void test_a_last_word_to_a_stalled_server_has_an_unknown_outcome(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &impatient);
    int64_t deadline_ns = in_ms(ENDS_MS);

    pg_server_stall(f->server);
    assert_status(add(pg, 1, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007");
    assert_message(&f->err, "has stalled");
    assert_in_time(deadline_ns);
    add_when_it_is_back(f, pg);
    pawl__pg_close(pg);
}

static void test_a_slow_statement_of_a_server_that_answers_is_waited_for(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options options = impatient;

    options.answer_ms_max = 2 * ANSWER_MS;
    struct pawl__pg *pg = pg_connect(f, &options);
    assert_ok(pawl__pg_exec(pg, SLEEP, PG_ARGS(pawl__pg_double(3)), NULL, &f->err), &f->err);
    pawl__pg_close(pg);
}

/* --- one process of a server that runs --- */

static pid_t stopped; /* 0: none */

static pid_t stop_process(const struct pawl__pg *pg)
{
    stopped = pawl__pg_session(pg);
    assert_int_equal(kill(stopped, SIGSTOP), 0);
    return stopped;
}

/* Until the process has done what the pipeline brought so far, and waits for more. */
static void await_more(struct pg_fixture *f, const struct pawl__pg *pg)
{
    int64_t deadline_ns = in_ms(ENDS_MS);
    char sql[160];

    snprintf(sql,
             sizeof(sql),
             "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND state = 'active'"
             " AND wait_event = 'ClientRead'",
             pawl__pg_session(pg));
    while (pg_number(f, sql) == 0) {
        assert_in_time(deadline_ns);
    }
}

static int resume_process(void **state)
{
    (void)state;
    if (stopped != 0) {
        kill(stopped, SIGCONT);
    }
    stopped = 0;
    return 0;
}

static void assert_names_the_process(struct pg_fixture *f, pid_t process)
{
    char text[64];

    snprintf(text, sizeof(text), "process %d of the database server", (int)process);
    assert_message(&f->err, text);
    assert_message(&f->err, "pawl@127.0.0.1:");
    assert_message(&f->err, "store.answer_timeout");
}

static void test_a_stopped_process_of_a_running_server_is_named(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &impatient);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pid_t process = stop_process(pg);
    int64_t deadline_ns = in_ms(ENDS_MS);
    assert_status(add(pg, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_names_the_process(f, process);
    pawl__pg_rollback(pg);
    assert_ok(add(pg, 1, &f->err), &f->err); /* at once, over a new connection */
    assert_in_time(deadline_ns);
    pawl__pg_close(pg);
}

static void test_a_commit_to_a_stopped_process_has_an_unknown_outcome(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &impatient);
    int64_t deadline_ns = in_ms(ENDS_MS);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, 2, &f->err), &f->err);
    pid_t process = stop_process(pg);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007");
    assert_names_the_process(f, process);
    assert_in_time(deadline_ns);
    pawl__pg_close(pg);
}

static void test_a_pipeline_to_a_stopped_process_ends_in_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &impatient);
    int64_t deadline_ns = in_ms(ENDS_MS);

    assert_ok(pawl__pg_pipeline_begin_transaction(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_add(pg, ADD, PG_ARGS(pawl__pg_i64(3)), &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_push(pg, &f->err), &f->err);
    await_more(f, pg);
    pid_t process = stop_process(pg);
    assert_ok(pawl__pg_pipeline_add(pg, ADD, PG_ARGS(pawl__pg_i64(4)), &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_commit(pg, &f->err), &f->err);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_names_the_process(f, process);
    assert_in_time(deadline_ns);
    pawl__pg_close(pg);
}

static void test_connecting_to_a_stalled_server_ends_in_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = NULL;
    int64_t deadline_ns = in_ms(ENDS_MS);

    pg_server_stall(f->server);
    assert_status(
        pawl__pg_open(pg_server_url(f->server), &impatient, &pg, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "127.0.0.1:");
    assert_in_time(deadline_ns);
}

static void test_a_deadline_holds_though_the_server_has_stalled(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options patient = impatient;

    patient.answer_ms_max = 2 * ENDS_MS;
    struct pawl__pg *pg = pg_connect(f, &patient);
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pg_server_stall(f->server);
    int64_t deadline_ns = in_ms(ENDS_MS);
    pawl__pg_set_deadline(pg, in_ms(50));
    assert_status(add(pg, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_in_time(deadline_ns);
    pawl__pg_close(pg);
}

struct interrupter {
    struct pawl__pg *pg;
    long thread; /* to interrupt once it waits */
    bool in_time;
};

/* In ppoll, which is where all waiting is. */
static bool is_waiting(long thread)
{
    char path[64];
    char line[64] = "";

    snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool is = fgets(line, sizeof(line), file) != NULL && strtol(line, NULL, 10) == SYS_ppoll;
    (void)fclose(file);
    return is;
}

static void *interrupt_when_it_waits(void *context)
{
    struct interrupter *interrupter = context;
    int64_t deadline_ns = in_ms(ENDS_MS);

    while (!interrupter->in_time && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        interrupter->in_time = is_waiting(interrupter->thread);
    }
    pawl__pg_interrupt(interrupter->pg);
    return NULL;
}

static void test_an_interrupt_ends_a_call_though_the_server_has_stalled(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options patient = impatient;
    pthread_t thread;

    patient.answer_ms_max = 2 * ENDS_MS;
    struct pawl__pg *pg = pg_connect(f, &patient);
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pg_server_stall(f->server);
    struct interrupter interrupter = { .pg = pg, .thread = syscall(SYS_gettid) };
    int64_t deadline_ns = in_ms(2 * ENDS_MS);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_when_it_waits, &interrupter), 0);
    assert_status(add(pg, 1, &f->err), PAWL_CANCELLED, &f->err);
    assert_message(&f->err, "not even to a cancel request"); /* it had begun */
    assert_in_time(deadline_ns);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(interrupter.in_time);
    pawl__pg_close(pg);
}

static void test_a_pool_closes_though_the_server_has_stalled(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_pool *pool = NULL;
    struct pawl__pg *taken[2];

    assert_ok(pawl__pg_pool_open(pg_server_url(f->server), &impatient, 2, &pool, &f->err), &f->err);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(pawl__pg_pool_borrow(pool, in_ms(ENDS_MS), &taken[i], &f->err), &f->err);
    }
    assert_ok(pawl__pg_begin(taken[0], PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pg_server_stall(f->server);
    int64_t deadline_ns = in_ms(ENDS_MS);
    pawl__pg_pool_return(pool, taken[0]);
    pawl__pg_pool_return(pool, taken[1]);
    pawl__pg_pool_close(pool);
    assert_in_time(deadline_ns);
}

/* The last: it leaves no server behind. */
static void test_a_server_that_refuses_fails_each_call_soon(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options patient = impatient;

    patient.answer_ms_max = 4 * ENDS_MS;
    struct pawl__pg *pg = pg_connect(f, &patient);
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    int64_t deadline_ns = in_ms(ENDS_MS);
    for (int i = 0; i < 20; i++) {
        assert_status(add(pg, 1, &f->err), PAWL_UNAVAILABLE, &f->err);
        assert_message(&f->err, "Connection refused");
    }
    assert_in_time(deadline_ns); /* only the first of them tried for a second */
    pawl__pg_close(pg);
}

#define STALL_TEST(test) cmocka_unit_test_setup_teardown(test, prepare, resume)
#define STOP_TEST(test) cmocka_unit_test_setup_teardown(test, prepare, resume_process)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STALL_TEST(test_a_stalled_server_is_named_within_the_answer_timeout),
        STALL_TEST(test_a_last_word_to_a_stalled_server_has_an_unknown_outcome),
        STALL_TEST(test_a_slow_statement_of_a_server_that_answers_is_waited_for),
        STOP_TEST(test_a_stopped_process_of_a_running_server_is_named),
        STOP_TEST(test_a_commit_to_a_stopped_process_has_an_unknown_outcome),
        STOP_TEST(test_a_pipeline_to_a_stopped_process_ends_in_time),
        STALL_TEST(test_connecting_to_a_stalled_server_ends_in_time),
        STALL_TEST(test_a_deadline_holds_though_the_server_has_stalled),
        STALL_TEST(test_an_interrupt_ends_a_call_though_the_server_has_stalled),
        STALL_TEST(test_a_pool_closes_though_the_server_has_stalled),
        STALL_TEST(test_a_server_that_refuses_fails_each_call_soon),
    };
    return cmocka_run_group_tests_name(
        "postgres_stalled", tests, pg_fixture_start, pg_fixture_stop);
}
