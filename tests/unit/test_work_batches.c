/* Large groups on PostgreSQL: items completed on one connection while others are leased on a second,
 * and links that are lost meanwhile. */
#include "lib/pg_fixture.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"

enum { WORKERS = 6, ITEMS = 3000, BATCH = 500, AHEAD = 100, THROWN_OUT = 15, WAIT_MS = 120000 };

static pawl_work *open_new(struct pg_fixture *f, const pawl_work_options *options)
{
    pawl_task task = { .size = sizeof(pawl_task), .task_id = pawl_view_of("T") };
    pawl_work *work = NULL;

    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    assert_ok(pawl_work_open(pg_server_url(f->server), options, &work, &f->err), &f->err);
    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->err), &f->err);
    return work;
}

static void submit_items(struct pg_fixture *f, pawl_work *work)
{
    static pawl_submission submissions[BATCH];
    static char ids[BATCH][16];

    for (int from = 0; from < ITEMS; from += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%d", from + i);
            submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
            submissions[i].work_item_id = pawl_view_of(ids[i]);
            submissions[i].task_id = pawl_view_of("T");
            submissions[i].work_type = pawl_view_of("t");
            submissions[i].max_retries = 1000;
        }
        assert_ok(pawl_work_submit(work, submissions, BATCH, NULL, &f->err), &f->err);
    }
}

/* --- a crew --- */

static struct crew {
    pawl_work *work;
    struct pawl__thread threads[WORKERS];
    atomic_int next_worker;
    atomic_int wrong;
    atomic_int done;                /* items */
    atomic_int lost;                /* leases that were not worth anything */
    atomic_uint_fast64_t by[ITEMS]; /* the token that has completed it; 0: none has */
} team;

/* An end that is under way. */
struct ending {
    struct crew *crew;
    int number;
    uint64_t token;
    atomic_bool *under_way;
    pawl_status status;
};

static void note_done(struct crew *crew, int number, uint64_t token)
{
    uint_fast64_t before = 0;

    if (atomic_compare_exchange_strong(&crew->by[number], &before, token)) {
        atomic_fetch_add(&crew->done, 1);
    } else if (before != token) {
        atomic_fetch_add(&crew->wrong, 1); /* two holders were told that they had completed it */
    }
}

static void take_answer(void *context, const pawl_error *outcome)
{
    struct ending *ending = context;

    ending->status = outcome->status;
    if (outcome->status == PAWL_OK) {
        note_done(ending->crew, ending->number, ending->token);
    }
    atomic_store(ending->under_way, false);
}

static bool may_be_repeated(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT || status == PAWL_IO
           || status == PAWL_BUSY;
}

/* Whether it happened is not known: the same call says. */
static void make_sure(const struct ending *ending)
{
    char id[16];
    pawl_status status = ending->status;

    snprintf(id, sizeof(id), "%d", ending->number);
    pawl_lease lease = { sizeof(pawl_lease), pawl_view_of(id), ending->token };
    while (may_be_repeated(status)) {
        status = pawl_work_complete(ending->crew->work, &lease, (pawl_view){ NULL, 0 }, NULL);
    }
    if (status == PAWL_OK) {
        note_done(ending->crew, ending->number, ending->token);
    } else {
        atomic_fetch_add(status == PAWL_LEASE_LOST ? &ending->crew->lost : &ending->crew->wrong, 1);
    }
}

enum { UNDER_WAY_MAX = 200 };

/* Ends of one worker, in the order in which they were sent. */
struct endings {
    struct ending all[UNDER_WAY_MAX];
    atomic_bool under_way[UNDER_WAY_MAX];
    size_t sent;
    size_t sure; /* of what became of so many */
};

static void make_sure_of(struct endings *endings, size_t count)
{
    for (; endings->sure < count; endings->sure++) {
        size_t at = endings->sure % UNDER_WAY_MAX;
        while (atomic_load(&endings->under_way[at])) {
            poll(NULL, 0, 1);
        }
        if (endings->all[at].status != PAWL_OK) {
            make_sure(&endings->all[at]);
        }
    }
}

static void send_ending(struct crew *crew, struct endings *endings, const pawl_item *item)
{
    size_t at = endings->sent % UNDER_WAY_MAX;
    struct ending *ending = &endings->all[at];
    pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };
    char id[16];

    if (endings->sent >= UNDER_WAY_MAX) {
        make_sure_of(endings, endings->sent - UNDER_WAY_MAX + 1);
    }
    snprintf(id, sizeof(id), "%.*s", VIEW_ARGS(item->work_item_id));
    *ending = (struct ending){ .crew = crew,
                               .number = atoi(id), /* NOLINT(cert-err34-c) */
                               .token = item->token,
                               .under_way = &endings->under_way[at] };
    atomic_store(&endings->under_way[at], true);
    if (pawl_work_complete_async(
            crew->work, &lease, (pawl_view){ NULL, 0 }, take_answer, ending, NULL)
        != PAWL_OK) {
        atomic_fetch_add(&crew->wrong, 1);
        atomic_store(&endings->under_way[at], false);
    }
    endings->sent++;
}

static void run_worker(void *context)
{
    struct crew *crew = context;
    struct endings *endings = calloc(1, sizeof(*endings));
    pawl_claim claim = PAWL_CLAIM_INIT;
    char holder[16];

    snprintf(holder, sizeof(holder), "w%d", atomic_fetch_add(&crew->next_worker, 1));
    claim.holder = pawl_view_of(holder);
    claim.wait_ms = 100;
    while (atomic_load(&crew->done) < ITEMS) {
        pawl_claimed *claimed = NULL;
        pawl_status status = pawl_work_claim(crew->work, &claim, &claimed, NULL);
        if (status == PAWL_OK) {
            send_ending(crew, endings, &claimed->items[0]);
            pawl_claimed_free(claimed);
        } else if (status == PAWL_NOT_FOUND) {
            make_sure_of(endings, endings->sent);
            (void)!pawl_work_sweep(
                crew->work, NULL, NULL); /* what was leased to nobody's knowledge */
        } else if (!may_be_repeated(status)) {
            atomic_fetch_add(&crew->wrong, 1);
        }
    }
    make_sure_of(endings, endings->sent);
    free(endings);
}

/* Items for a new crew at `work`, which begins. */
static void start_crew(struct pg_fixture *f, pawl_work *work)
{
    memset(&team, 0, sizeof(team));
    team.work = work;
    submit_items(f, work);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_ok(pawl__thread_start(&team.threads[i], "worker", run_worker, &team, &f->err),
                  &f->err);
    }
}

/* Waits until it has done everything, and nothing that is wrong. Its handle is still open. */
static void join_crew(struct pg_fixture *f)
{
    for (size_t i = 0; i < WORKERS; i++) {
        pawl__thread_join(&team.threads[i]);
    }
    assert_int_equal(team.wrong, 0);
    assert_int_equal(team.done, ITEMS);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM work_items WHERE status = 'completed'"),
                     ITEMS);
}

static pawl_work_options ahead_options(void)
{
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;

    options.claim_ahead = AHEAD;
    return options;
}

/* --- */

static void test_a_large_group_is_split_over_two_connections(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work_options options = ahead_options();

    start_crew(f, open_new(f, &options));
    join_crew(f);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM pg_stat_activity WHERE application_name ="
                               " 'pawl work, leasing'"),
                     1);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM work_items WHERE status = 'completed' AND"
                               " attempts = token AND lease_holder IS NULL"),
                     ITEMS);
    assert_int_equal(
        pg_number(f, "SELECT count(*) FROM work_history WHERE to_status = 'completed'"), ITEMS);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM work_history AS h JOIN work_items USING"
                               " (work_item_id) WHERE to_status = 'completed' AND h.token <>"
                               " work_items.token"),
                     0);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM tasks WHERE status = 'succeeded'"), 1);
    pawl_work_close(team.work, 0, NULL);
}

static void test_few_connections_are_not_exceeded(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work_options options = ahead_options();
    pawl_work *work = NULL;
    char url[512];

    pawl_work_close(open_new(f, &options), 0, NULL);
    snprintf(url,
             sizeof(url),
             "%s%cconnections=3",
             pg_server_url(f->server),
             strchr(pg_server_url(f->server), '?') == NULL ? '?' : '&');
    assert_ok(pawl_work_open(url, &options, &work, &f->err), &f->err);
    start_crew(f, work);
    join_crew(f);
    assert_true(pg_number(f,
                          "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE"
                          " 'pawl work%'")
                <= 3);
    pawl_work_close(team.work, 0, NULL);
}

/* Both connections are ended again and again, at any moment of a group. */
static void test_lost_links_lose_no_end_and_give_no_item_twice(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work_options options = ahead_options();
    int64_t deadline_ns = in_ms(WAIT_MS);

    options.lease_ms = 2000; /* a lease whose taker was not told of it runs out soon */
    start_crew(f, open_new(f, &options));
    for (int i = 1; i <= THROWN_OUT; i++) {
        while (atomic_load(&team.done) < ITEMS * i / (THROWN_OUT + 1)
               && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
            poll(NULL, 0, 1);
        }
        (void)pg_number(f,
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE application_name LIKE 'pawl work%'");
    }
    join_crew(f);
    for (int i = 0; i < ITEMS; i++) {
        assert_true(team.by[i] > 0);
    }
    assert_int_equal(
        pg_number(f, "SELECT count(*) FROM work_history WHERE to_status = 'completed'"), ITEMS);
    pawl_work_close(team.work, 0, NULL);
}

/* The second connection fails while the first one completes. What was leased and could not be committed
 * is not handed out; of what may have been committed nobody knows, and it is taken back. */
static void test_a_lease_that_could_not_be_committed_is_not_handed_out(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const struct {
        const char *point;
        uint32_t lease_ms;
    } cases[] = { { "postgres.commit.before=error:IO*3", 600000 },
                  { "postgres.commit.after=error:UNAVAILABLE*3", 2000 },
                  { "postgres.pipeline.wait=error:UNAVAILABLE*3", 2000 } };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_work_options options = ahead_options();

        options.lease_ms = cases[i].lease_ms;
        start_crew(f, open_new(f, &options));
        while (atomic_load(&team.done) < ITEMS / 4) {
            poll(NULL, 0, 1);
        }
        assert_ok(pawl__failpoint_set(cases[i].point, &f->err), &f->err);
        join_crew(f);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_true(team.lost == 0 || cases[i].lease_ms == 2000);
        pawl_work_close(team.work, 0, NULL);
    }
}

/* Somebody else has locked an item that is to be completed, for longer than we wait: those ends are
 * refused, and what was leased at the same time is handed out all the same. */
static void test_ends_that_are_held_up_take_no_lease_with_them(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work_options options = ahead_options();

    options.busy_ms_max = 50;
    start_crew(f, open_new(f, &options));
    for (int i = 1; i <= 5; i++) {
        while (atomic_load(&team.done) < ITEMS * i / 8) {
            poll(NULL, 0, 1);
        }
        pg_admin(f,
                 "DO $$ BEGIN PERFORM 1 FROM work_items WHERE status = 'in_progress' FOR UPDATE;"
                 " PERFORM pg_sleep(0.2); END $$");
    }
    join_crew(f);
    assert_int_equal(team.lost, 0);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM work_items WHERE retry_count > 0"), 0);
    pawl_work_close(team.work, 0, NULL);
}

/* The server refuses what the second connection commits, after it has shown the items. */
static void test_a_lease_that_the_server_takes_back_is_not_handed_out(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work_options options = ahead_options();
    pawl_work *work = open_new(f, &options);

    pg_admin(f,
             "CREATE SEQUENCE refusals;"
             "CREATE FUNCTION refuse_leasing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF current_setting('application_name') = 'pawl work, leasing' THEN"
             " PERFORM nextval('pawl.refusals'); RAISE EXCEPTION 'not today'; END IF;"
             " RETURN NULL; END $$;"
             "CREATE CONSTRAINT TRIGGER refuse_leasing AFTER UPDATE ON work_items"
             " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'in_progress')"
             " EXECUTE FUNCTION refuse_leasing()");
    start_crew(f, work);
    join_crew(f);
    assert_int_equal(team.lost, 0);
    assert_true(pg_number(f, "SELECT last_value FROM refusals WHERE is_called") > 0);
    pawl_work_close(team.work, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_group_is_split_over_two_connections),
        cmocka_unit_test(test_few_connections_are_not_exceeded),
        cmocka_unit_test(test_lost_links_lose_no_end_and_give_no_item_twice),
        cmocka_unit_test(test_a_lease_that_could_not_be_committed_is_not_handed_out),
        cmocka_unit_test(test_ends_that_are_held_up_take_no_lease_with_them),
        cmocka_unit_test(test_a_lease_that_the_server_takes_back_is_not_handed_out),
    };

    return cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop);
}
