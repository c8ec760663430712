/* Numbers that never come twice, and depend on no clock: fencing tokens of an id that comes back after
 * its item was removed, and the order in which items are claimed. */
#include "lib/work_fixture.h"

#include "base/core/macros.h"

#define DAY_MS (INT64_C(86400) * 1000)
#define HOUR_US (INT64_C(3600) * US_PER_S)

/* Removes every ended item by its age. */
static void remove_ended(struct work_fixture *f)
{
    pawl_retention retention = PAWL_RETENTION_INIT;

    work_pass(f, 31 * DAY_MS);
    assert_ok(pawl_work_retention(f->work, &retention, NULL, &f->err), &f->err);
}

static bool is_there(struct work_fixture *f, const char *id)
{
    pawl_item *item = NULL;
    pawl_status status = pawl_work_get(f->work, pawl_view_of(id), &item, &f->err);

    pawl_item_free(item);
    return status == PAWL_OK;
}

/* The id comes back, and whoever held it before can do nothing to it. */
static void assert_fenced(struct work_fixture *f, const char *id, uint64_t zombie)
{
    assert_false(is_there(f, id));
    submit(f, id, "again", 9);
    uint64_t token = claim_it(f, "new", id);
    assert_true(token > zombie);
    assert_status(complete(f, id, zombie), PAWL_LEASE_LOST, &f->err);
    pawl_lease lease = lease_of(id, zombie);
    assert_status(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_ok(complete(f, id, token), &f->err);
}

static void test_the_token_of_a_completed_item_does_not_repeat_after_retention(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    make_task(f, "again");
    submit(f, "a", "T", 0);
    uint64_t zombie = claim_it(f, "old", "a");
    work_pass(f, 1);
    assert_ok(complete(f, "a", zombie), &f->err);
    remove_ended(f);
    assert_fenced(f, "a", zombie);
}

static void test_the_token_of_a_cancelled_item_does_not_repeat_after_retention(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    make_task(f, "again");
    submit(f, "a", "T", 0);
    uint64_t zombie = claim_it(f, "old", "a");
    assert_ok(pawl_task_cancel(f->work, pawl_view_of("T"), NULL, &f->err), &f->err);
    remove_ended(f);
    assert_fenced(f, "a", zombie);
}

static void test_tokens_do_not_repeat_after_a_foreign_delete(void **state)
{
    struct work_fixture *f = *state;

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    make_task(f, "again");
    submit(f, "running", "T", 0);
    uint64_t running = claim_it(f, "old", "running");
    submit(f, "waiting", "T", 0);
    uint64_t waiting = claim_it(f, "old", "waiting");
    assert_ok(fail_with(f, "waiting", waiting, "no", true), &f->err);
    submit(f, "released", "T", 0);
    pawl_lease lease = lease_of("released", claim_it(f, "old", "released"));
    assert_ok(pawl_work_release(f->work, &lease, &f->err), &f->err);

    work_sql(f, "DELETE FROM work_items WHERE work_item_id = 'running'");
    assert_fenced(f, "running", running);
    work_sql(f, "DELETE FROM work_waiting WHERE work_item_id = 'waiting'");
    assert_fenced(f, "waiting", waiting);
    work_sql(f, "DELETE FROM work_items WHERE work_item_id = 'released'");
    assert_fenced(f, "released", lease.token);
}

static void test_tokens_do_not_repeat_after_their_task_was_deleted(void **state)
{
    struct work_fixture *f = *state;

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    make_task(f, "again");
    submit(f, "a", "T", 0);
    uint64_t zombie = claim_it(f, "old", "a");
    work_sql(f,
             work_is(f, "sqlite")
                 ? "PRAGMA foreign_keys = ON; DELETE FROM tasks WHERE task_id = 'T'"
                 : "DELETE FROM tasks WHERE task_id = 'T'");
    assert_fenced(f, "a", zombie);
}

static void test_tokens_do_not_repeat_after_a_row_was_replaced_or_truncated(void **state)
{
    struct work_fixture *f = *state;

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t zombie = claim_it(f, "old", "a");
    work_sql(f,
             work_is(f, "sqlite")
                 ? "INSERT OR REPLACE INTO work_items (work_item_id, task_id, work_type)"
                   " VALUES ('a', 'T', 't')"
                 : "TRUNCATE work_items CASCADE; INSERT INTO work_items"
                   " (work_item_id, task_id, work_type) VALUES ('a', 'T', 't')");
    assert_true(claim_it(f, "new", "a") > zombie);
    assert_status(complete(f, "a", zombie), PAWL_LEASE_LOST, &f->err);
}

static void test_a_lease_that_foreign_sql_takes_is_above_the_floor(void **state)
{
    struct work_fixture *f = *state;

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t zombie = claim_it(f, "old", "a");
    work_sql(f,
             "DELETE FROM work_items; INSERT INTO work_items (work_item_id, task_id, work_type)"
             " VALUES ('a', 'T', 't')");
    work_sql(f,
             "UPDATE work_items SET status = 'in_progress', lease_holder = 'sql',"
             " lease_expires_at = '2999-01-01 00:00:00' WHERE work_item_id = 'a'");
    assert_status(complete(f, "a", zombie), PAWL_LEASE_LOST, &f->err);
    assert_item(f, "a", "in_progress 0/3 token 2 attempts 1 ''");
    assert_history(
        f, "a", ">pending 0|pending>in_progress 1 by old|>pending 0|pending>in_progress 2 by sql");
}

/* A retry moves an item out of work_items and back; that removes nothing. */
static void test_an_item_that_waits_and_comes_back_leaves_other_tokens_alone(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    for (uint64_t token = 1; token <= 3; token++) {
        assert_int_equal(claim_it(f, "w", "a"), token);
        assert_ok(fail_with(f, "a", token, "again", true), &f->err);
        work_pass(f, 600000);
    }
    submit(f, "b", "T", 9);
    assert_int_equal(claim_it(f, "w", "b"), 1);
}

static void test_the_floor_and_the_numbers_do_not_go_down(void **state)
{
    struct work_fixture *f = *state;
    static const char *const refused[] = {
        "UPDATE work_counters SET token_floor = -1 + token_floor",
        "UPDATE work_counters SET owner_token_floor = -1 + owner_token_floor",
        "DELETE FROM work_counters",
        "UPDATE work_items SET submission = submission + 1",
    };

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    submit(f, "a", "T", 0);
    work_sql(f, "UPDATE work_counters SET token_floor = 7, owner_token_floor = 7");
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_true(work_refuses(f, refused[i]));
    }
    assert_int_equal(claim_it(f, "w", "a"), 8);
}

static void test_claims_go_by_submission_whatever_the_clock_shows(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = PAWL_CLAIM_INIT;

    make_task(f, "T");
    submit(f, "first", "T", 0);
    pawl__clock_step_wall(&f->clock, -HOUR_US);
    submit(f, "second", "T", 0);
    pawl__clock_step_wall(&f->clock, 2 * HOUR_US);
    submit(f, "third", "T", 0);
    pawl__clock_step_wall(&f->clock, -24 * HOUR_US);
    submit(f, "a-fourth", "T", 0);
    claim.holder = pawl_view_of("w");
    claim.count_max = 10;
    assert_string_equal(claim_ids(f, &claim), "first second third a-fourth ");
}

/* What comes back has the place it had, also among what one call submitted in any order of ids. */
static void test_an_item_keeps_its_place_while_it_waits(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_submission batch[4];
    static const char *const ids[] = { "d", "c", "b", "a" };

    make_task(f, "T");
    for (size_t i = 0; i < COUNT_OF(batch); i++) {
        batch[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        batch[i].work_item_id = pawl_view_of(ids[i]);
        batch[i].task_id = pawl_view_of("T");
        batch[i].work_type = pawl_view_of("t");
        batch[i].delay_ms = i == 1 || i == 3 ? 60000 : 0;
    }
    assert_ok(pawl_work_submit(f->work, batch, COUNT_OF(batch), NULL, &f->err), &f->err);
    submit(f, "e", "T", 0);
    pawl_lease lease = lease_of("d", claim_it(f, "w", "d"));
    assert_ok(fail_with(f, "d", lease.token, "again", true), &f->err);
    work_pass(f, 600000);
    claim.holder = pawl_view_of("w");
    claim.count_max = 10;
    assert_string_equal(claim_ids(f, &claim), "d c b a e ");
}

static void test_foreign_sql_gets_a_number_too(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = PAWL_CLAIM_INIT;

    if (work_forgets(f)) {
        return;
    }
    make_task(f, "T");
    submit(f, "first", "T", 0);
    work_sql(f,
             "INSERT INTO work_items (work_item_id, task_id, work_type, created_at)"
             " VALUES ('b-second', 'T', 't', '2001-01-01 00:00:00')");
    work_sql(f,
             "INSERT INTO work_items (work_item_id, task_id, work_type, created_at)"
             " VALUES ('a-third', 'T', 't', '2000-01-01 00:00:00')");
    submit(f, "fourth", "T", 0);
    claim.holder = pawl_view_of("w");
    claim.count_max = 10;
    assert_string_equal(claim_ids(f, &claim), "first b-second a-third fourth ");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_the_token_of_a_completed_item_does_not_repeat_after_retention),
        work_test(test_the_token_of_a_cancelled_item_does_not_repeat_after_retention),
        work_test(test_tokens_do_not_repeat_after_a_foreign_delete),
        work_test(test_tokens_do_not_repeat_after_their_task_was_deleted),
        work_test(test_tokens_do_not_repeat_after_a_row_was_replaced_or_truncated),
        work_test(test_a_lease_that_foreign_sql_takes_is_above_the_floor),
        work_test(test_an_item_that_waits_and_comes_back_leaves_other_tokens_alone),
        work_test(test_the_floor_and_the_numbers_do_not_go_down),
        work_test(test_claims_go_by_submission_whatever_the_clock_shows),
        work_test(test_an_item_keeps_its_place_while_it_waits),
        work_test(test_foreign_sql_gets_a_number_too),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
