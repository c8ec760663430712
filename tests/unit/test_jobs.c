/* Jobs: what may become of one, running, cancelling, the end of the node, and the process that comes after it. */
#include "lib/check.h"

#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "lib/tempdir.h"
#include "server/jobs/jobs.h"

enum { PATIENCE_MS = 30000 };

/* --- the table --- */

static void test_the_table_says_what_may_become_of_a_job(void **state)
{
    static const char *const rows[PAWL__JOB_STATES] = {
        [PAWL__JOB_QUEUED] = "running cancelled - - - interrupted",
        [PAWL__JOB_RUNNING] = "- cancelling done failed interrupted interrupted",
        [PAWL__JOB_CANCELLING] = "- cancelling done failed cancelled interrupted",
        [PAWL__JOB_DONE] = "- - - - - -",
        [PAWL__JOB_FAILED] = "- - - - - -",
        [PAWL__JOB_CANCELLED] = "- - - - - -",
        [PAWL__JOB_INTERRUPTED] = "- - - - - -",
    };

    (void)state;
    for (int from = 0; from < PAWL__JOB_STATES; from++) {
        char space[128] = "";
        struct pawl__buf row = BUF_OVER(space);

        for (int command = 0; command < PAWL__JOB_COMMANDS; command++) {
            enum pawl__job_state next = PAWL__JOB_STATES;
            bool allowed = pawl__serve_job_next(
                (enum pawl__job_state)from, (enum pawl__job_command)command, &next);

            pawl__buf_add_text(&row, command == 0 ? "" : " ");
            pawl__buf_add_text(&row, allowed ? pawl__serve_job_states[next] : "-");
        }
        assert_string_equal(space, rows[from]);
    }
}

/* --- a kind --- */

struct parameters {
    uint64_t count;
    pawl_view word;
};
static const struct pawl__field parameter_fields[] = {
    { FIELD(struct parameters, count, FIELD_UINT64), .max = 10 },
    { FIELD(struct parameters, word, FIELD_TEXT), .flags = FIELD_REQUIRED },
};
static const struct pawl__record parameter_record =
    RECORD("TestParameters", struct parameters, parameter_fields);

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__jobs *jobs;
    sem_t began;
    sem_t let_go; /* of those that hang */
    pawl_error error;
};

static pawl_status check_word(void *state, const void *parameters, pawl_error *reterr)
{
    (void)state;
    return pawl__view_is(((const struct parameters *)parameters)->word, "nowhere")
               ? pawl__fail(reterr, PAWL_NOT_FOUND, "there is no nowhere")
               : PAWL_OK;
}

static pawl_status count_up(void *state,
                            struct pawl__job_run *run,
                            const void *parameters,
                            struct pawl__buf *result,
                            pawl_error *reterr)
{
    const struct parameters *given = parameters;
    struct fixture *f = state;

    pawl__serve_job_progress(run, given->count, 10);
    sem_post(&f->began);
    if (pawl__view_is(given->word, "fail")) {
        return pawl__fail_advised(reterr, PAWL_CORRUPT, "it is broken: mend it");
    }
    if (pawl__view_is(given->word, "wait")
        && pawl__cancel_wait_until(pawl__serve_job_cancelled(run), INT64_MAX)) {
        return pawl__fail(reterr, PAWL_CANCELLED, "it was told to stop");
    }
    if (pawl__view_is(given->word, "hang")) {
        sem_wait(&f->let_go);
    }
    pawl__buf_add_format(result, "{\"word\":\"%.*s\"}", VIEW_ARGS(given->word));
    return PAWL_OK;
}

static const struct pawl__job_kind counting = {
    .name = "test.count",
    .about = "Counts",
    .parameters = &parameter_record,
    .scope = PAWL__SCOPE_READ,
    .check = check_word,
    .run = count_up,
};

static void *part_state;
static const struct pawl__job_binding bindings[] = { { &counting, &part_state } };

static void open_jobs(struct fixture *f)
{
    struct pawl__job_store *store = NULL;

    part_state = f;
    assert_ok(pawl__serve_job_store_open(f->path, NULL, &store, &f->error), &f->error);
    assert_ok(pawl__serve_jobs_open(store, bindings, COUNT_OF(bindings), NULL, &f->jobs, &f->error),
              &f->error);
}

static int64_t in_ms(int64_t ms)
{
    return pawl__monotonic_ns(pawl__clock_real()) + ms * NS_PER_MS;
}

static void close_jobs(struct fixture *f)
{
    assert_ok(pawl__serve_jobs_close(STEAL(f->jobs), in_ms(PATIENCE_MS), &f->error), &f->error);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(sem_init(&f->began, 0, 0), 0);
    assert_int_equal(sem_init(&f->let_go, 0, 0), 0);
    assert_ok(tempdir_make(f->dir, "jobs", &f->error), &f->error);
    (void)snprintf(f->path, sizeof(f->path), "%s/jobs.sqlite", f->dir);
    open_jobs(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close_jobs(f);
    sem_destroy(&f->began);
    sem_destroy(&f->let_go);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static pawl_status try_start(struct fixture *f,
                             const char *kind,
                             const char *json,
                             char id[JOB_ID_SIZE])
{
    json_auto_t *parameters = json_loads(json, JSON_DECODE_ANY, NULL);

    assert_non_null(parameters);
    return pawl__serve_jobs_start(
        f->jobs, pawl_view_of(kind), pawl__json_root(parameters, "parameters"), id, &f->error);
}

static void start(struct fixture *f, const char *json, char id[JOB_ID_SIZE])
{
    assert_ok(try_start(f, "test.count", json, id), &f->error);
}

static void await_begin(struct fixture *f)
{
    assert_int_equal(sem_wait(&f->began), 0);
}

/* "done 10/10 {"word":"x"} CODE detail" */
static pawl_status describe(void *context, const struct pawl__job *job, pawl_error *reterr)
{
    struct pawl__buf *text = context;

    (void)reterr;
    pawl__buf_clear(text);
    pawl__buf_add_format(text,
                         "%s %d/%d %.*s %.*s %.*s",
                         pawl__serve_job_states[job->state],
                         (int)job->done,
                         (int)job->total,
                         VIEW_ARGS(job->result),
                         VIEW_ARGS(job->code),
                         VIEW_ARGS(job->detail));
    assert_true(job->created_at_us > 0);
    assert_int_equal(job->ended_at_us > 0, pawl__serve_job_has_ended(job->state));
    return PAWL_OK;
}

static void expect(struct fixture *f, const char *id, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);

    assert_ok(pawl__serve_jobs_get(f->jobs, pawl_view_of(id), describe, &text, &f->error),
              &f->error);
    assert_string_equal(text.data, expected);
}

/* Asks until it has ended. */
static void expect_end(struct fixture *f, const char *id, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    int64_t deadline_ns = in_ms(PATIENCE_MS);

    do {
        assert_ok(pawl__serve_jobs_get(f->jobs, pawl_view_of(id), describe, &text, &f->error),
                  &f->error);
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    } while (strncmp(text.data, "queued", 6) == 0 || strncmp(text.data, "running", 7) == 0
             || strncmp(text.data, "cancelling", 10) == 0);
    assert_string_equal(text.data, expected);
}

/* --- what becomes of them --- */

static void test_a_job_runs_and_its_result_outlives_the_node(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];

    start(f, "{\"word\":\"x\",\"count\":3}", id);
    expect_end(f, id, "done 10/10 {\"word\":\"x\"}  ");
    close_jobs(f);
    open_jobs(f);
    expect(f, id, "done 10/10 {\"word\":\"x\"}  ");
}

static void test_a_job_that_fails_says_why(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];

    start(f, "{\"word\":\"fail\"}", id);
    expect_end(f, id, "failed 0/10  CORRUPT it is broken: mend it");
}

static void test_what_cannot_be_asked_is_refused_at_once(void **state)
{
    static const struct {
        const char *kind;
        const char *json;
        pawl_status status;
        const char *says;
    } rows[] = {
        { "test.nothing", "{}", PAWL_INVALID, "there are test.count" },
        { "", "{}", PAWL_INVALID, "there is no kind of job ''" },
        { "test.count", "{}", PAWL_INVALID, "parameters.word: missing" },
        { "test.count", "[]", PAWL_INVALID, "expected an object" },
        { "test.count", "{\"word\":1}", PAWL_INVALID, "parameters.word: expected a string" },
        { "test.count", "{\"word\":\"x\",\"count\":11}", PAWL_INVALID, "parameters.count" },
        { "test.count", "{\"word\":\"x\",\"more\":1}", PAWL_INVALID, "more" },
        { "test.count", "{\"word\":\"nowhere\"}", PAWL_NOT_FOUND, "there is no nowhere" },
    };
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_status(try_start(f, rows[i].kind, rows[i].json, id), rows[i].status, &f->error);
        assert_message(&f->error, rows[i].says);
    }
}

static void test_cancelling_ends_what_runs_and_what_waits(void **state)
{
    struct fixture *f = *state;
    char running[2][JOB_ID_SIZE];
    char queued[JOB_ID_SIZE];

    start(f, "{\"word\":\"wait\",\"count\":1}", running[0]);
    start(f, "{\"word\":\"wait\",\"count\":1}", running[1]);
    await_begin(f);
    await_begin(f); /* two at once */
    start(f, "{\"word\":\"x\"}", queued);
    expect(f, running[0], "running 1/10   ");
    expect(f, running[1], "running 1/10   ");
    expect(f, queued, "queued 0/0   ");
    assert_ok(pawl__serve_jobs_stop(f->jobs, pawl_view_of(queued), &f->error), &f->error);
    expect(f, queued, "cancelled 0/0   ");
    assert_ok(pawl__serve_jobs_stop(f->jobs, pawl_view_of(running[0]), &f->error), &f->error);
    expect_end(f, running[0], "cancelled 1/10  CANCELLED it was told to stop");
    expect(f, running[1], "running 1/10   ");
    assert_status(
        pawl__serve_jobs_stop(f->jobs, pawl_view_of(queued), &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "it is cancelled");
    assert_status(pawl__serve_jobs_stop(f->jobs, pawl_view_of("nobody"), &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_a_job_that_does_not_listen_is_cancelling_until_it_ends(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];

    start(f, "{\"word\":\"hang\"}", id);
    await_begin(f);
    assert_ok(pawl__serve_jobs_stop(f->jobs, pawl_view_of(id), &f->error), &f->error);
    expect(f, id, "cancelling 0/10   ");
    assert_ok(pawl__serve_jobs_stop(f->jobs, pawl_view_of(id), &f->error), &f->error);
    sem_post(&f->let_go);
    expect_end(f, id, "done 10/10 {\"word\":\"hang\"}  ");
}

static void test_the_end_of_the_node_interrupts_jobs(void **state)
{
    struct fixture *f = *state;
    char ids[3][JOB_ID_SIZE];

    start(f, "{\"word\":\"wait\"}", ids[0]);
    start(f, "{\"word\":\"wait\"}", ids[1]);
    await_begin(f);
    await_begin(f);
    start(f, "{\"word\":\"x\"}", ids[2]);
    close_jobs(f);
    open_jobs(f);
    expect(f, ids[0], "interrupted 0/10  INTERRUPTED the node stopped while the job ran");
    expect(f, ids[2], "interrupted 0/0  INTERRUPTED the node stopped while the job ran");
}

static void test_a_job_that_hangs_does_not_hold_up_the_end(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];

    start(f, "{\"word\":\"hang\"}", id);
    await_begin(f);
    int64_t before = pawl__monotonic_ns(pawl__clock_real());
    assert_status(pawl__serve_jobs_close(f->jobs, in_ms(100), &f->error), PAWL_TIMEOUT, &f->error);
    assert_message(&f->error, "a job");
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - before < 10 * INT64_C(1000) * NS_PER_MS);
    sem_post(&f->let_go); /* so that the process can be used again */
}

/* A process that is killed in the middle; the next one finds its job interrupted, and runs others. */
static void test_a_killed_process_leaves_interrupted_jobs(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];
    int ends[2];

    close_jobs(f);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        open_jobs(f);
        start(f, "{\"word\":\"wait\",\"count\":1}", id);
        await_begin(f);
        expect(f, id, "running 1/10   ");
        _exit(write(ends[1], id, sizeof(id)) == sizeof(id) && pause() == 0 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(read(ends[0], id, sizeof(id)), (int)sizeof(id));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    open_jobs(f);
    expect(f, id, "interrupted 0/0  INTERRUPTED the node ended while the job ran");
    start(f, "{\"word\":\"x\"}", id);
    expect_end(f, id, "done 10/10 {\"word\":\"x\"}  ");
}

static void test_two_nodes_do_not_share_jobs(void **state)
{
    struct fixture *f = *state;
    struct pawl__job_store *store = NULL;

    assert_status(
        pawl__serve_job_store_open(f->path, NULL, &store, &f->error), PAWL_BUSY, &f->error);
}

static pawl_status count(void *context, const struct pawl__job *job, pawl_error *reterr)
{
    (void)job;
    (void)reterr;
    ++*(size_t *)context;
    return PAWL_OK;
}

static void test_so_many_may_wait_and_no_more(void **state)
{
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];
    size_t listed = 0;

    for (int i = 0; i < JOBS_RUNNING_MAX + JOBS_QUEUED_MAX; i++) {
        start(f, "{\"word\":\"wait\"}", id);
    }
    assert_status(try_start(f, "test.count", "{\"word\":\"x\"}", id), PAWL_BUSY, &f->error);
    assert_message(&f->error, "64 jobs wait already");
    assert_ok(
        pawl__serve_jobs_list(f->jobs, (pawl_view){ NULL, 0 }, 1000, count, &listed, &f->error),
        &f->error);
    assert_int_equal(listed, JOBS_RUNNING_MAX + JOBS_QUEUED_MAX);
}

static void test_the_oldest_are_forgotten(void **state)
{
    struct fixture *f = *state;
    struct pawl__job_store *store = NULL;
    char id[JOB_ID_SIZE] = "";
    size_t listed = 0;

    close_jobs(f);
    assert_ok(pawl__serve_job_store_open(f->path, NULL, &store, &f->error), &f->error);
    for (int i = 0; i < 8; i++) {
        struct pawl__job job = { .kind = pawl_view_of("k"),
                                 .parameters = pawl_view_of("{}"),
                                 .created_at_us = 1,
                                 .ended_at_us = 2 };

        (void)snprintf(id, sizeof(id), "00000000-0000-7000-8000-%012d", i);
        job.job_id = pawl_view_of(id);
        assert_ok(pawl__serve_job_store_add(store, &job, &f->error), &f->error);
        job.state = PAWL__JOB_DONE;
        assert_ok(pawl__serve_job_store_end(store, &job, 5, &f->error), &f->error);
    }
    assert_ok(
        pawl__serve_job_store_list(store, (pawl_view){ NULL, 0 }, 1000, count, &listed, &f->error),
        &f->error);
    assert_int_equal(listed, 5);
    assert_ok(pawl__serve_job_store_get(store, pawl_view_of(id), count, &listed, &f->error),
              &f->error);
    pawl__serve_job_store_close(store);
    open_jobs(f);
}

/* What a program that is not ours does to the file. */
static void edit(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 60000), SQLITE_OK); /* the jobs write, too */
    assert_int_equal(sqlite3_exec(db, "PRAGMA ignore_check_constraints = on", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_a_damaged_state_is_named_by_every_call(void **state)
{
    static const char *const states[] = { "99", "7", "-1", "4294967296" };
    struct fixture *f = *state;
    char id[JOB_ID_SIZE];
    char sql[64];
    size_t listed = 0;

    start(f, "{\"word\":\"x\"}", id);
    expect_end(f, id, "done 10/10 {\"word\":\"x\"}  ");
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        (void)snprintf(sql, sizeof(sql), "UPDATE jobs SET state = %s", states[i]);
        edit(f, sql);
        assert_status(
            pawl__serve_jobs_stop(f->jobs, pawl_view_of(id), &f->error), PAWL_CORRUPT, &f->error);
        assert_message(&f->error, states[i]);
        assert_status(pawl__serve_jobs_get(f->jobs, pawl_view_of(id), count, &listed, &f->error),
                      PAWL_CORRUPT,
                      &f->error);
        assert_status(
            pawl__serve_jobs_list(f->jobs, (pawl_view){ NULL, 0 }, 10, count, &listed, &f->error),
            PAWL_CORRUPT,
            &f->error);
    }
    assert_int_equal(listed, 0);
    edit(f, "UPDATE jobs SET state = 1, ended_at = 0");
    assert_status(
        pawl__serve_jobs_stop(f->jobs, pawl_view_of(id), &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "stored as running, and this node does not run it");
}

#define job_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_says_what_may_become_of_a_job),
        job_test(test_a_killed_process_leaves_interrupted_jobs), /* first: it forks */
        job_test(test_a_job_runs_and_its_result_outlives_the_node),
        job_test(test_a_job_that_fails_says_why),
        job_test(test_what_cannot_be_asked_is_refused_at_once),
        job_test(test_cancelling_ends_what_runs_and_what_waits),
        job_test(test_a_job_that_does_not_listen_is_cancelling_until_it_ends),
        job_test(test_the_end_of_the_node_interrupts_jobs),
        job_test(test_a_job_that_hangs_does_not_hold_up_the_end),
        job_test(test_two_nodes_do_not_share_jobs),
        job_test(test_so_many_may_wait_and_no_more),
        job_test(test_the_oldest_are_forgotten),
        job_test(test_a_damaged_state_is_named_by_every_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
