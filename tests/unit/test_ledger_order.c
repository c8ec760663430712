/* No reader of a ledger on PostgreSQL is shown offset n + 1 before n, whatever writers do.
 *
 * Many writers, in threads and in processes, with transactions of different sizes and lengths;
 * followers that must see 1, 2, 3, ... each exactly once. The same harness over a table with a
 * sequence, written and read the way most programs do it, loses rows: the control that shows that
 * the test could fail. */
#include "lib/pg_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/ledger.h>

#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "ledger/core/chain.h"
#include "lib/child.h"

enum {
    WRITERS = 6,
    FOLLOWERS = 3,
    PROCESSES = 4,
    PROCESS_THREADS = 3,
    PROCESS_EVENTS = 400, /* of each thread of each process; half of them are everybody's */
    BATCH_MAX = 40,
    DEADLINE_MS = 120000,
    WAIT_MS = 200,
};

/* --- what a writer and a follower do, on a ledger or on a table --- */

struct worker {
    struct pawl__thread thread;
    const char *url;
    unsigned number;
    uint64_t events;           /* a writer's goal; a follower's is in `total` */
    atomic_uint_fast64_t done; /* written or seen so far */
    uint64_t last;
    uint64_t skipped; /* offsets that a follower jumped over */
    bool failed;
    pawl_error err;
    uint64_t *acknowledged; /* the offset of each of a writer's events; NULL: nobody asks */
};

static atomic_uint_fast64_t total; /* 0 while nobody knows how many there will be */
static atomic_bool stopped;

static bool in_time(int64_t deadline_ns)
{
    return pawl__monotonic_ns(pawl__clock_real()) < deadline_ns && !atomic_load(&stopped);
}

/* A server that is away comes back; until then the answer is to ask again. */
static bool is_passing(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT || status == PAWL_BUSY;
}

static bool fail_worker(struct worker *worker, pawl_status status)
{
    worker->failed = worker->failed || status != PAWL_OK;
    return status == PAWL_OK;
}

/* 1, 7, 3, ...: different for every writer and every batch, the same in every run. */
static uint64_t batch_size(const struct worker *worker)
{
    uint64_t mixed = (worker->done + 1) * (2 * worker->number + 3);
    return MIN(mixed % BATCH_MAX + 1, worker->events - worker->done);
}

/* A transaction stays open for as many milliseconds as its writer's number says. */
static void dawdle(const struct worker *worker)
{
    struct pawl__clock *clock = pawl__clock_real();

    pawl__sleep_until(clock,
                      pawl__monotonic_ns(clock) + (int64_t)(worker->number % 4) * 2 * NS_PER_MS);
}

static void see(struct worker *worker, uint64_t offset)
{
    if (offset != worker->last + 1) {
        worker->skipped += offset > worker->last ? offset - worker->last - 1 : 1;
    }
    worker->last = offset;
    atomic_fetch_add(&worker->done, 1);
}

/* --- on a ledger --- */

struct named_events {
    char ids[BATCH_MAX][32];
    pawl_event events[BATCH_MAX];
};

static void name_events(struct named_events *named, const struct worker *worker, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        snprintf(named->ids[i],
                 sizeof(named->ids[i]),
                 "w%u-%llu",
                 worker->number,
                 (unsigned long long)(worker->done + i));
        named->events[i] = (pawl_event){
            .size = sizeof(pawl_event),
            .id = pawl_view_of(named->ids[i]),
            .run_id = pawl_view_of("r"),
            .kind = pawl_view_of("k"),
            .actor = pawl_view_of("a"),
            .payload = pawl_view_of("{\"n\": 1}"),
        };
    }
}

/* A lost answer is asked for again, as the ledger's contract says. */
static bool append_until_acknowledged(struct worker *worker,
                                      pawl_ledger *ledger,
                                      const struct named_events *named,
                                      size_t count,
                                      pawl_append_result *results)
{
    int64_t deadline_ns = in_ms(DEADLINE_MS);
    pawl_status status;

    do {
        status = pawl_ledger_append_many(ledger, named->events, count, results, &worker->err);
    } while (is_passing(status) && in_time(deadline_ns));
    return fail_worker(worker, status);
}

static bool open_ledger(struct worker *worker, pawl_ledger **ret_ledger)
{
    int64_t deadline_ns = in_ms(DEADLINE_MS);
    pawl_status status;

    do {
        status = pawl_ledger_open(worker->url, NULL, ret_ledger, &worker->err);
    } while (is_passing(status) && in_time(deadline_ns));
    return fail_worker(worker, status);
}

static void write_ledger(void *context)
{
    struct worker *worker = context;
    struct named_events *named = calloc(1, sizeof(*named));
    pawl_append_result results[BATCH_MAX] = { PAWL_APPEND_RESULT_INIT };
    pawl_ledger *ledger = NULL;

    if (named != NULL && open_ledger(worker, &ledger)) {
        while (worker->done < worker->events) {
            uint64_t count = batch_size(worker);
            name_events(named, worker, count);
            if (!append_until_acknowledged(worker, ledger, named, count, results)) {
                break;
            }
            for (uint64_t i = 0; i < count && worker->acknowledged != NULL; i++) {
                worker->acknowledged[worker->done + i] = results[i].offset;
            }
            atomic_fetch_add(&worker->done, count);
            dawdle(worker);
        }
    }
    pawl_ledger_close(ledger, 0, NULL);
    free(named);
}

static bool has_seen_all(const struct worker *worker)
{
    uint64_t goal = atomic_load(&total);

    return goal > 0 && worker->last >= goal;
}

/* A server that is away is waited for; what was read stays read. */
static pawl_status follow_once(struct worker *worker, pawl_reader *reader)
{
    const pawl_event *event;
    pawl_status status = pawl_reader_next(reader, &event, &worker->err);

    if (status == PAWL_OK) {
        see(worker, event->offset);
        return PAWL_OK;
    }
    if (status == PAWL_NOT_FOUND) {
        status = pawl_reader_wait(reader, WAIT_MS, &worker->err);
    }
    return is_passing(status) ? PAWL_OK : status;
}

static void follow_ledger(void *context)
{
    struct worker *worker = context;
    int64_t deadline_ns = in_ms(DEADLINE_MS);
    pawl_ledger *ledger = NULL;
    pawl_reader *reader = NULL;

    if (open_ledger(worker, &ledger)
        && fail_worker(worker, pawl_reader_open(ledger, NULL, &reader, &worker->err))) {
        while (!has_seen_all(worker) && in_time(deadline_ns)
               && fail_worker(worker, follow_once(worker, reader))) {
        }
    }
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- on a table with a sequence --- */

enum { NAIVE_ADD, NAIVE_READ };

static const struct pawl__pg_statement naive_statements[] = {
    [NAIVE_ADD] = { "INSERT INTO naive (writer) VALUES ($1)", "i", NULL },
    [NAIVE_READ] = { "SELECT n FROM naive WHERE n > $1 ORDER BY n LIMIT 500", "i", "i" },
};

static const struct pawl__pg_options naive_options = { .statements = naive_statements,
                                                       .statement_count =
                                                           COUNT_OF(naive_statements) };

static bool add_naive(struct worker *worker, struct pawl__pg *pg, uint64_t count)
{
    pawl_status status = pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &worker->err);

    for (uint64_t i = 0; i < count && status == PAWL_OK; i++) {
        status =
            pawl__pg_exec(pg, NAIVE_ADD, PG_ARGS(pawl__pg_i64(worker->number)), NULL, &worker->err);
    }
    dawdle(worker);
    return fail_worker(worker, status == PAWL_OK ? pawl__pg_commit(pg, &worker->err) : status);
}

static void write_naive(void *context)
{
    struct worker *worker = context;
    struct pawl__pg *pg = NULL;

    if (fail_worker(worker, pawl__pg_open(worker->url, &naive_options, &pg, &worker->err))) {
        while (worker->done < worker->events && !atomic_load(&stopped)) {
            uint64_t count = batch_size(worker);
            if (!add_naive(worker, pg, count)) {
                break;
            }
            atomic_fetch_add(&worker->done, count);
        }
    }
    pawl__pg_close(pg);
}

static void follow_naive(void *context)
{
    struct worker *worker = context;
    int64_t deadline_ns = in_ms(DEADLINE_MS);
    struct pawl__pg_rows rows = { 0 };
    struct pawl__pg *pg = NULL;

    fail_worker(worker, pawl__pg_open(worker->url, &naive_options, &pg, &worker->err));
    while (!worker->failed && !has_seen_all(worker) && in_time(deadline_ns)) {
        struct pawl__pg_value last = pawl__pg_i64((int64_t)worker->last);
        fail_worker(worker, pawl__pg_exec(pg, NAIVE_READ, &last, 1, &rows, &worker->err));
        for (size_t i = 0; i < rows.count && !worker->failed; i++) {
            see(worker, (uint64_t)pawl__pg_get_i64(&rows, i, 0));
        }
        if (worker->skipped > 0) {
            atomic_store(&stopped, true); /* that is what it was to show */
        }
    }
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

/* --- the harness --- */

struct crew {
    struct worker writers[WRITERS];
    struct worker followers[FOLLOWERS];
};

static void start_crew(struct pg_fixture *f,
                       struct crew *crew,
                       void (*write)(void *context),
                       void (*follow)(void *context),
                       uint64_t events)
{
    atomic_store(&total, 0);
    atomic_store(&stopped, false);
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        crew->followers[i].url = pg_server_url(f->server);
        assert_ok(pawl__thread_start(
                      &crew->followers[i].thread, "follow", follow, &crew->followers[i], &f->err),
                  &f->err);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        crew->writers[i].url = pg_server_url(f->server);
        crew->writers[i].number = i;
        crew->writers[i].events = events;
        assert_ok(pawl__thread_start(
                      &crew->writers[i].thread, "write", write, &crew->writers[i], &f->err),
                  &f->err);
    }
}

static void check_workers(const struct worker *workers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (workers[i].failed) {
            fail_msg("worker %zu: %s", i, workers[i].err.message);
        }
    }
}

static void join_all(struct worker *workers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl__thread_join(&workers[i].thread);
        if (workers[i].failed) {
            atomic_store(&stopped, true); /* nobody waits for what will not come */
        }
    }
}

/* No thread is left when the first assertion is made. */
static void end_crew(struct crew *crew, uint64_t events)
{
    join_all(crew->writers, WRITERS);
    atomic_store(&total, events);
    join_all(crew->followers, FOLLOWERS);
    check_workers(crew->writers, WRITERS);
    check_workers(crew->followers, FOLLOWERS);
}

static void assert_saw_all(const struct worker *followers, size_t count, uint64_t events)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(followers[i].skipped, 0);
        assert_int_equal(followers[i].last, events);
        assert_int_equal(followers[i].done, events);
    }
}

static void assert_chain(struct pg_fixture *f, uint64_t events)
{
    pawl_ledger_head head = { 0 };
    pawl_ledger *ledger = NULL;
    pawl_reader *reader = NULL;
    const pawl_event *event;

    assert_ok(pawl_ledger_open(pg_server_url(f->server), NULL, &ledger, &f->err), &f->err);
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &f->err), &f->err);
    while (pawl_reader_next(reader, &event, &f->err) == PAWL_OK) {
        assert_int_equal(event->offset, head.offset + 1);
        assert_ok(pawl__ledger_chain_extend(&head, event, &f->err), &f->err);
        assert_memory_equal(head.hash, event->hash, sizeof(head.hash));
    }
    assert_int_equal(head.offset, events);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
}

static void empty_database(struct pg_fixture *f)
{
    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE; CREATE SCHEMA pawl");
}

/* --- tests --- */

static void test_followers_see_every_event_once_and_in_order(void **state)
{
    enum { EVENTS = 400 };
    struct pg_fixture *f = pg_fixture(state);
    struct crew crew = { 0 };

    empty_database(f);
    /* Every third commit or so waits before it is sent, with its offsets given already. */
    assert_ok(pawl__failpoint_set("postgres.commit.before=delay:3*60", &f->err), &f->err);
    start_crew(f, &crew, write_ledger, follow_ledger, EVENTS);
    end_crew(&crew, (uint64_t)WRITERS * EVENTS);
    assert_saw_all(crew.followers, FOLLOWERS, (uint64_t)WRITERS * EVENTS);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    assert_chain(f, (uint64_t)WRITERS * EVENTS);
}

static void test_the_control_a_reader_of_a_sequence_skips_rows(void **state)
{
    enum { EVENTS = 1000000 }; /* it ends with the first row that is lost */
    struct pg_fixture *f = pg_fixture(state);
    struct crew crew = { 0 };
    uint64_t skipped = 0;

    empty_database(f);
    pg_admin(f, "CREATE TABLE naive (n bigserial PRIMARY KEY, writer bigint)");
    start_crew(f, &crew, write_naive, follow_naive, EVENTS);
    end_crew(&crew, 0);
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        skipped += crew.followers[i].skipped;
    }
    assert_true(skipped > 0);
}

static void test_a_server_that_is_killed_loses_nothing_that_was_acknowledged(void **state)
{
    enum { EVENTS = 600, KILLS = 2 };
    struct pg_fixture *f = pg_fixture(state);
    struct crew crew = { 0 };
    static uint64_t acknowledged[WRITERS][EVENTS];

    empty_database(f);
    for (unsigned i = 0; i < WRITERS; i++) {
        crew.writers[i].acknowledged = acknowledged[i];
    }
    start_crew(f, &crew, write_ledger, follow_ledger, EVENTS);
    for (unsigned kills = 1; kills <= KILLS; kills++) {
        /* In the middle: when some more of the first writer's events are there. */
        int64_t deadline_ns = in_ms(DEADLINE_MS);
        while (atomic_load(&crew.writers[0].done) < kills * EVENTS / (KILLS + 1)
               && in_time(deadline_ns)) {
            pawl__sleep_until(pawl__clock_real(), in_ms(1));
        }
        assert_ok(pg_server_kill(f->server, &f->err), &f->err);
        assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    }
    end_crew(&crew, (uint64_t)WRITERS * EVENTS);
    assert_saw_all(crew.followers, FOLLOWERS, (uint64_t)WRITERS * EVENTS);
    assert_chain(f, (uint64_t)WRITERS * EVENTS);

    pawl_ledger *ledger = NULL;
    assert_ok(pawl_ledger_open(pg_server_url(f->server), NULL, &ledger, &f->err), &f->err);
    for (unsigned i = 0; i < WRITERS; i++) {
        for (unsigned j = 0; j < EVENTS; j++) {
            char id[32];
            pawl_event *event = NULL;
            snprintf(id, sizeof(id), "w%u-%u", i, j);
            assert_ok(pawl_ledger_get(ledger, pawl_view_of(id), 0, &event, &f->err), &f->err);
            assert_int_equal(event->offset, acknowledged[i][j]);
            pawl_event_free(event);
        }
    }
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- processes --- */

/* Half of the events have the same ids in every process: whoever comes first writes them. */
static void write_shared(void *context)
{
    struct worker *worker = context;
    unsigned process = worker->number / PROCESS_THREADS;
    unsigned thread = worker->number % PROCESS_THREADS;

    worker->number = thread;
    write_ledger(worker);
    worker->number = 1000 + process * PROCESS_THREADS + thread;
    atomic_store(&worker->done, 0);
    if (!worker->failed) {
        write_ledger(worker);
    }
}

static int run_writers(const char *url, unsigned process)
{
    struct worker workers[PROCESS_THREADS] = { 0 };
    char points[64];
    bool failed = false;

    snprintf(points, sizeof(points), "postgres.commit.before=delay:%u*40", process * 2 + 1);
    failed = pawl__failpoint_set(points, NULL) != PAWL_OK;
    for (unsigned i = 0; i < PROCESS_THREADS; i++) {
        workers[i].url = url;
        workers[i].number = process * PROCESS_THREADS + i;
        workers[i].events = PROCESS_EVENTS / 2;
        failed |= pawl__thread_start(&workers[i].thread, "write", write_shared, &workers[i], NULL)
                  != PAWL_OK;
    }
    for (unsigned i = 0; i < PROCESS_THREADS; i++) {
        pawl__thread_join(&workers[i].thread);
        if (workers[i].failed) {
            child_say("%s", workers[i].err.message);
            failed = true;
        }
    }
    child_say(failed ? "failed" : "written");
    return failed;
}

static int run_follower(const char *url, const char *goal)
{
    struct worker worker = { .url = url };

    atomic_store(&total, strtoull(goal, NULL, 10));
    child_say("following");
    follow_ledger(&worker);
    child_say("%s last %llu done %llu skipped %llu",
              worker.failed ? worker.err.message : "saw",
              (unsigned long long)worker.last,
              (unsigned long long)worker.done,
              (unsigned long long)worker.skipped);
    return 0;
}

static void test_processes_with_the_same_ids_and_followers_agree(void **state)
{
    enum { ALL = (PROCESSES + 1) * PROCESS_THREADS * PROCESS_EVENTS / 2 };
    struct pg_fixture *f = pg_fixture(state);
    struct child writers[PROCESSES];
    struct child follower;
    struct worker here = { .url = pg_server_url(f->server) };
    char goal[16];
    char number[16];
    char line[512];
    char expected[128];

    empty_database(f);
    atomic_store(&total, ALL);
    atomic_store(&stopped, false);
    snprintf(goal, sizeof(goal), "%d", ALL);
    child_start(&follower, (const char *const[]){ "follow", here.url, goal, NULL });
    assert_ok(pawl__thread_start(&here.thread, "follow", follow_ledger, &here, &f->err), &f->err);
    for (unsigned i = 0; i < PROCESSES; i++) {
        snprintf(number, sizeof(number), "%u", i);
        child_start(&writers[i], (const char *const[]){ "write", here.url, number, NULL });
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        assert_true(child_line(&writers[i], line, sizeof(line)));
        assert_string_equal(line, "written");
        assert_int_equal(child_end(&writers[i], 0), 0);
    }
    join_all(&here, 1);
    check_workers(&here, 1);
    assert_saw_all(&here, 1, ALL);
    assert_true(child_line(&follower, line, sizeof(line)));
    assert_string_equal(line, "following");
    assert_true(child_line(&follower, line, sizeof(line)));
    snprintf(expected, sizeof(expected), "saw last %d done %d skipped 0", ALL, ALL);
    assert_string_equal(line, expected);
    assert_int_equal(child_end(&follower, 0), 0);
    assert_chain(f, ALL);
}

int main(int argc, char **argv)
{
    if (child_is_one(argc, argv)) {
        return strcmp(argv[2], "write") == 0
                   ? run_writers(argv[3], (unsigned)strtoul(argv[4], NULL, 10))
                   : run_follower(argv[3], argv[4]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followers_see_every_event_once_and_in_order),
        cmocka_unit_test(test_the_control_a_reader_of_a_sequence_skips_rows),
        cmocka_unit_test(test_processes_with_the_same_ids_and_followers_agree),
        cmocka_unit_test(test_a_server_that_is_killed_loses_nothing_that_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop);
}
