/* What only work on PostgreSQL has to do: many nodes on one queue, links that are lost, the server's
 * clock. */
#include "lib/pg_fixture.h"

#include <stdatomic.h>
#include <stdio.h>

#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"

enum { NODES = 4, ITEMS = 300, ROUNDS = 20, WAIT_MS = 60000 };

static pawl_work *open_node(struct pg_fixture *f)
{
    pawl_work *work = NULL;

    assert_ok(pawl_work_open(pg_server_url(f->server), NULL, &work, &f->err), &f->err);
    return work;
}

static pawl_work *new_store(struct pg_fixture *f)
{
    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    return open_node(f);
}

static void make_task(struct pg_fixture *f, pawl_work *work, const char *id)
{
    pawl_task task = { .size = sizeof(pawl_task), .task_id = pawl_view_of(id) };

    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->err), &f->err);
}

static void submit(struct pg_fixture *f, pawl_work *work, const char *task, size_t count)
{
    static pawl_submission submissions[ITEMS];

    for (size_t i = 0; i < count; i++) {
        submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        submissions[i].task_id = pawl_view_of(task);
        submissions[i].work_type = pawl_view_of("t");
    }
    assert_ok(pawl_work_submit(work, submissions, count, NULL, &f->err), &f->err);
}

static pawl_task_status status_of(struct pg_fixture *f, pawl_work *work, const char *id)
{
    pawl_task *task = NULL;

    assert_ok(pawl_task_get(work, pawl_view_of(id), &task, &f->err), &f->err);
    pawl_task_status status = task->status;
    pawl_task_free(task);
    return status;
}

static pawl_claimed *claim_one(struct pg_fixture *f, pawl_work *work, uint32_t lease_ms)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("w");
    claim.lease_ms = lease_ms;
    assert_ok(pawl_work_claim(work, &claim, &claimed, &f->err), &f->err);
    assert_int_equal(claimed->count, 1);
    return claimed;
}

static pawl_lease lease_of(const pawl_claimed *claimed)
{
    return (
        pawl_lease){ sizeof(pawl_lease), claimed->items[0].work_item_id, claimed->items[0].token };
}

static pawl_status complete(pawl_work *work, const pawl_claimed *claimed, pawl_error *reterr)
{
    pawl_lease lease = lease_of(claimed);

    return pawl_work_complete(work, &lease, (pawl_view){ NULL, 0 }, reterr);
}

static pawl_status fail_for_good(pawl_work *work, const pawl_claimed *claimed, pawl_error *reterr)
{
    pawl_lease lease = lease_of(claimed);

    return pawl_work_fail(
        work, &lease, pawl_view_of("no"), (pawl_view){ NULL, 0 }, false, NULL, reterr);
}

static void throw_out_all(struct pg_fixture *f)
{
    assert_true(pg_number(f,
                          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                          " WHERE application_name LIKE 'pawl work%'")
                > 0);
}

/* --- many nodes --- */

struct node {
    pawl_work *work;
    atomic_int *wrong;
};

static void drain(void *context)
{
    struct node *node = context;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("w");
    claim.count_max = 2;
    while (pawl_work_claim(node->work, &claim, &claimed, NULL) == PAWL_OK) {
        for (size_t i = 0; i < claimed->count; i++) {
            pawl_lease lease = { sizeof(pawl_lease),
                                 claimed->items[i].work_item_id,
                                 claimed->items[i].token };
            if (pawl_work_complete(node->work, &lease, (pawl_view){ NULL, 0 }, NULL) != PAWL_OK) {
                atomic_fetch_add(node->wrong, 1);
            }
        }
        pawl_claimed_free(claimed);
    }
}

static void test_many_nodes_take_every_item_once(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct node nodes[NODES];
    struct pawl__thread threads[2 * NODES] = { 0 };
    atomic_int wrong = 0;
    pawl_work *work = new_store(f);

    make_task(f, work, "T");
    submit(f, work, "T", ITEMS);
    for (size_t i = 0; i < NODES; i++) {
        nodes[i] = (struct node){ .work = open_node(f), .wrong = &wrong };
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_ok(pawl__thread_start(&threads[i], "node", drain, &nodes[i % NODES], &f->err),
                  &f->err);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pawl__thread_join(&threads[i]);
    }
    /* A node that found all that was left locked by others has gone: one of them took it. */
    drain(&(struct node){ .work = work, .wrong = &wrong });
    assert_int_equal(wrong, 0);
    assert_int_equal(
        pg_number(f, "SELECT count(*) FROM work_items WHERE status = 'completed' AND token = 1"),
        ITEMS);
    assert_int_equal(
        pg_number(f, "SELECT count(*) FROM work_history WHERE to_status = 'completed'"), ITEMS);
    assert_int_equal(status_of(f, work, "T"), PAWL_TASK_SUCCEEDED);
    for (size_t i = 0; i < NODES; i++) {
        pawl_work_close(nodes[i].work, 0, NULL);
    }
    pawl_work_close(work, 0, NULL);
}

struct last_item {
    pawl_work *work;
    pawl_claimed *claimed;
    atomic_int *ready;
    pawl_status status;
};

static void complete_together(void *context)
{
    struct last_item *last = context;

    atomic_fetch_add(last->ready, 1);
    while (atomic_load(last->ready) < 2) {
    }
    last->status = complete(last->work, last->claimed, NULL);
}

static void test_a_task_ends_when_two_nodes_complete_its_last_items(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *works[2] = { new_store(f), open_node(f) };

    for (int round = 0; round < ROUNDS; round++) {
        struct last_item last[2];
        struct pawl__thread threads[2] = { 0 };
        atomic_int ready = 0;
        char task[16];
        snprintf(task, sizeof(task), "T%d", round);
        make_task(f, works[0], task);
        submit(f, works[0], task, 2);
        for (size_t i = 0; i < 2; i++) {
            last[i] = (struct last_item){ .work = works[i],
                                          .claimed = claim_one(f, works[i], 0),
                                          .ready = &ready };
        }
        assert_int_equal(status_of(f, works[0], task), PAWL_TASK_RUNNING);
        for (size_t i = 0; i < 2; i++) {
            assert_ok(pawl__thread_start(&threads[i], "node", complete_together, &last[i], &f->err),
                      &f->err);
        }
        for (size_t i = 0; i < 2; i++) {
            pawl__thread_join(&threads[i]);
            assert_int_equal(last[i].status, PAWL_OK);
            pawl_claimed_free(last[i].claimed);
        }
        assert_int_equal(status_of(f, works[0], task), PAWL_TASK_SUCCEEDED);
    }
    pawl_work_close(works[0], 0, NULL);
    pawl_work_close(works[1], 0, NULL);
}

static void test_a_submit_tells_other_nodes(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    struct pawl__pg *listener = pg_connect(f, NULL);
    struct pawl__pg_notification notification;

    make_task(f, work, "T");
    assert_ok(pawl__pg_listen(listener, "pawl_work", &f->err), &f->err);
    submit(f, work, "T", 1);
    assert_ok(pawl__pg_wait(listener, in_ms(WAIT_MS), &notification, &f->err), &f->err);
    assert_false(notification.missed);
    pawl__pg_close(listener);
    pawl_work_close(work, 0, NULL);
}

static void wait_for_item(void *context)
{
    struct last_item *waiting = context;
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("w");
    claim.wait_ms = WAIT_MS;
    waiting->status = pawl_work_claim(waiting->work, &claim, &waiting->claimed, NULL);
}

static void test_a_claim_that_waits_gets_what_another_node_submits(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    struct last_item waiting = { .work = open_node(f) };
    struct pawl__thread thread = { 0 };

    make_task(f, work, "T");
    assert_ok(pawl__thread_start(&thread, "node", wait_for_item, &waiting, &f->err), &f->err);
    submit(f, work, "T", 1);
    pawl__thread_join(&thread);
    assert_int_equal(waiting.status, PAWL_OK);
    pawl_claimed_free(waiting.claimed);
    pawl_work_close(waiting.work, 0, NULL);
    pawl_work_close(work, 0, NULL);
}

/* --- links that are lost --- */

static void test_a_link_that_died_while_it_was_idle_is_replaced(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);

    make_task(f, work, "T");
    submit(f, work, "T", 1);
    throw_out_all(f);
    pawl_claimed *claimed = claim_one(f, work, 0);
    throw_out_all(f);
    assert_ok(complete(work, claimed, &f->err), &f->err);
    assert_int_equal(status_of(f, work, "T"), PAWL_TASK_SUCCEEDED);
    pawl_claimed_free(claimed);
    pawl_work_close(work, 0, NULL);
}

static void test_a_lost_answer_is_given_when_the_call_is_repeated(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const char *const points[] = { "postgres.commit.before=error:UNAVAILABLE*1",
                                          "postgres.commit.after=error:UNAVAILABLE*1" };
    pawl_work *work = new_store(f);

    make_task(f, work, "T");
    submit(f, work, "T", COUNT_OF(points));
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        pawl_claimed *claimed = claim_one(f, work, 0);
        assert_ok(pawl__failpoint_set(points[i], &f->err), &f->err);
        assert_status(fail_for_good(work, claimed, &f->err), PAWL_UNAVAILABLE, &f->err);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_int_equal(pg_number(f, "SELECT count(*) FROM work_items WHERE status = 'failed'"),
                         2 * i);
        assert_ok(fail_for_good(work, claimed, &f->err), &f->err);
        assert_ok(fail_for_good(work, claimed, &f->err), &f->err);
        assert_int_equal(
            pg_number(f, "SELECT count(*) FROM work_history WHERE to_status = 'failed'"), i + 1);
        pawl_claimed_free(claimed);
    }
    pawl_work_close(work, 0, NULL);
}

static void test_a_completion_whose_answer_is_lost_is_made_sure_of(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const char *const points[] = { "postgres.exec.before=error:UNAVAILABLE*1",
                                          "postgres.exec.after=error:UNAVAILABLE*1" };
    pawl_work *work = new_store(f);

    make_task(f, work, "T");
    submit(f, work, "T", COUNT_OF(points));
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        pawl_claimed *claimed = claim_one(f, work, 0);
        assert_ok(pawl__failpoint_set(points[i], &f->err), &f->err);
        assert_ok(complete(work, claimed, &f->err), &f->err);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_int_equal(
            pg_number(f, "SELECT count(*) FROM work_history WHERE to_status = 'completed'"), i + 1);
        pawl_claimed_free(claimed);
    }
    pawl_work_close(work, 0, NULL);
}

/* --- the fast path --- */

enum { MANY = 6 * ITEMS };

static void chain(void *context)
{
    struct node *node = context;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("w");
    if (pawl_work_claim(node->work, &claim, &claimed, NULL) != PAWL_OK) {
        return;
    }
    while (claimed != NULL) {
        pawl_claimed *next = NULL;
        pawl_lease lease = lease_of(claimed);
        if (pawl_work_complete_and_claim(
                node->work, &lease, (pawl_view){ NULL, 0 }, &claim, &next, NULL)
            != PAWL_OK) {
            atomic_fetch_add(node->wrong, 1);
        }
        pawl_claimed_free(claimed);
        claimed = next;
    }
}

static void test_the_short_way_does_what_the_long_way_does(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__thread threads[2 * NODES] = { 0 };
    atomic_int wrong = 0;
    pawl_work *work = new_store(f);
    struct node nodes[] = { { .work = work, .wrong = &wrong },
                            { .work = open_node(f), .wrong = &wrong } };

    make_task(f, work, "T");
    for (int i = 0; i < MANY / ITEMS; i++) {
        submit(f, work, "T", ITEMS);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_ok(pawl__thread_start(&threads[i], "node", chain, &nodes[i % 2], &f->err), &f->err);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pawl__thread_join(&threads[i]);
    }
    chain(&nodes[0]); /* what was locked when others looked */
    assert_int_equal(wrong, 0);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM work_items WHERE status = 'completed' AND"
                               " token = 1 AND attempts = 1 AND lease_holder IS NULL AND"
                               " started_at <= completed_at AND updated_at = completed_at"),
                     MANY);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM (SELECT work_item_id FROM work_history WHERE"
                               " token = (to_status <> 'pending')::int AND (lease_holder = 'w')"
                               " IS NOT DISTINCT FROM CASE WHEN to_status <> 'pending' THEN true"
                               " END GROUP BY work_item_id HAVING array_agg(to_status ORDER BY seq)"
                               " = '{pending,in_progress,completed}') AS whole"),
                     MANY);
    /* Both ends of many of them were written by the statement that made them. */
    assert_true(pg_number(f, "SELECT count(*) FROM work_items WHERE steps = 2") > 0);
    assert_int_equal(status_of(f, work, "T"), PAWL_TASK_SUCCEEDED);
    pawl_work_close(nodes[1].work, 0, NULL);
    pawl_work_close(work, 0, NULL);
}

static void test_a_busy_handle_takes_its_own_urgent_item_first(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    pawl_submission urgent = PAWL_SUBMISSION_INIT;

    make_task(f, work, "T");
    for (int i = 0; i < MANY / ITEMS; i++) {
        submit(f, work, "T", ITEMS);
    }
    for (int i = 0; i < MANY / 2; i++) {
        pawl_claimed_free(claim_one(f, work, 0));
    }
    urgent.work_item_id = pawl_view_of("urgent");
    urgent.task_id = pawl_view_of("T");
    urgent.work_type = pawl_view_of("t");
    urgent.priority = 1;
    assert_ok(pawl_work_submit(work, &urgent, 1, NULL, &f->err), &f->err);
    pawl_claimed *claimed = claim_one(f, work, 0);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, "urgent"));
    pawl_claimed_free(claimed);
    pawl_work_close(work, 0, NULL);
}

static void test_a_busy_handle_sees_what_becomes_due(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    pawl_submission later = PAWL_SUBMISSION_INIT;
    bool seen = false;

    make_task(f, work, "T");
    for (int i = 0; i < MANY / ITEMS; i++) {
        submit(f, work, "T", ITEMS);
    }
    later.work_item_id = pawl_view_of("later");
    later.task_id = pawl_view_of("T");
    later.work_type = pawl_view_of("t");
    later.priority = 1;
    later.delay_ms = 1;
    assert_ok(pawl_work_submit(work, &later, 1, NULL, &f->err), &f->err);
    for (int i = 0; i < MANY && !seen; i++) {
        pawl_claimed *claimed = claim_one(f, work, 0);
        seen = pawl__view_is(claimed->items[0].work_item_id, "later");
        pawl_claimed_free(claimed);
    }
    assert_true(seen);
    pawl_work_close(work, 0, NULL);
}

static void test_the_short_way_takes_tokens_above_the_floor(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("w");
    make_task(f, work, "T");
    for (int i = 0; i < MANY / ITEMS; i++) {
        submit(f, work, "T", ITEMS);
    }
    pawl_claimed *claimed = claim_one(f, work, 0);
    pg_admin(f, "UPDATE pawl.work_counters SET token_floor = 41");
    for (int i = 0; i < MANY / 2; i++) {
        pawl_lease lease = lease_of(claimed);
        pawl_claimed *next = NULL;
        assert_ok(pawl_work_complete_and_claim(
                      work, &lease, (pawl_view){ NULL, 0 }, &claim, &next, &f->err),
                  &f->err);
        pawl_claimed_free(claimed);
        claimed = next;
        assert_int_equal(claimed->items[0].token, 42);
    }
    pawl_claimed_free(claimed);
    assert_true(pg_number(f, "SELECT count(*) FROM work_items WHERE steps = 2 AND token = 42") > 0);
    pawl_work_close(work, 0, NULL);
}

/* --- the server's clock --- */

static void test_a_lease_runs_out_by_the_servers_clock(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };
    int64_t deadline_ns = in_ms(WAIT_MS);

    make_task(f, work, "T");
    submit(f, work, "T", 1);
    pawl_claimed *claimed = claim_one(f, work, 1);
    while (report.expired == 0 && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        assert_ok(pawl_work_sweep(work, &report, &f->err), &f->err);
    }
    assert_int_equal(report.retried, 1);
    assert_status(complete(work, claimed, &f->err), PAWL_LEASE_LOST, &f->err);
    pawl_claimed *again = claim_one(f, work, 0);
    assert_int_equal(again->items[0].token, 2);
    pawl_claimed_free(again);
    pawl_claimed_free(claimed);
    pawl_work_close(work, 0, NULL);
}

/* --- the tables --- */

static void test_checkpoints_alone_are_partitioned_by_their_task(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = new_store(f);

    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM pg_partitioned_table JOIN pg_class"
                               " ON pg_class.oid = partrelid"
                               " WHERE relnamespace = 'pawl'::regnamespace"),
                     1);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM pg_partitioned_table"
                               " WHERE partrelid = 'pawl.checkpoints'::regclass"
                               " AND pg_get_partkeydef(partrelid) = 'HASH (task_id)'"),
                     1);
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM pg_constraint"
                               " WHERE conrelid = 'pawl.checkpoints'::regclass AND contype = 'p'"
                               " AND pg_get_constraintdef(oid)"
                               " = 'PRIMARY KEY (task_id, checkpoint_id)'"),
                     1);
    /* Every rest of the division has a partition: no task is without one. */
    assert_int_equal(pg_number(f,
                               "SELECT count(*) FROM pg_inherits JOIN pg_class"
                               " ON pg_class.oid = inhrelid"
                               " WHERE inhparent = 'pawl.checkpoints'::regclass"
                               " AND pg_get_expr(relpartbound, pg_class.oid)"
                               " ~ 'modulus 8, remainder [0-7]'"),
                     8);
    pawl_work_close(work, 0, NULL);
}

static void test_tables_without_a_record_of_their_migrations_are_corrupt(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_work *work = NULL;

    pawl_work_close(new_store(f), 0, NULL);
    pg_admin(f, "DELETE FROM pawl.schema_version WHERE component = 'work'");
    assert_status(
        pawl_work_open(pg_server_url(f->server), NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "but schema_version has no row of 'work'");
    assert_message(&f->err, "restore the database");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_without_a_record_of_their_migrations_are_corrupt),
        cmocka_unit_test(test_many_nodes_take_every_item_once),
        cmocka_unit_test(test_a_task_ends_when_two_nodes_complete_its_last_items),
        cmocka_unit_test(test_a_submit_tells_other_nodes),
        cmocka_unit_test(test_a_claim_that_waits_gets_what_another_node_submits),
        cmocka_unit_test(test_a_link_that_died_while_it_was_idle_is_replaced),
        cmocka_unit_test(test_a_lost_answer_is_given_when_the_call_is_repeated),
        cmocka_unit_test(test_a_completion_whose_answer_is_lost_is_made_sure_of),
        cmocka_unit_test(test_the_short_way_does_what_the_long_way_does),
        cmocka_unit_test(test_the_short_way_takes_tokens_above_the_floor),
        cmocka_unit_test(test_a_busy_handle_takes_its_own_urgent_item_first),
        cmocka_unit_test(test_a_busy_handle_sees_what_becomes_due),
        cmocka_unit_test(test_a_lease_runs_out_by_the_servers_clock),
        cmocka_unit_test(test_checkpoints_alone_are_partitioned_by_their_task),
    };

    return cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop);
}
