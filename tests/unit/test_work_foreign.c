/* Foreign SQL changes items without us: the sweep does what it leaves undone. */
#include "lib/work_fixture.h"

#include "base/macros.h"

#define CLAIM_A                                                         \
    "UPDATE work_items SET status = 'in_progress', lease_holder = 'w'," \
    " lease_expires_at = CURRENT_TIMESTAMP WHERE work_item_id = 'a';"
#define END_A(status)                                                                \
    "UPDATE work_items SET status = '" status "', completed_at = CURRENT_TIMESTAMP," \
    " lease_holder = NULL, lease_expires_at = NULL, updated_at = CURRENT_TIMESTAMP"  \
    " WHERE work_item_id = 'a';"

static pawl_sweep_report sweep(struct work_fixture *f)
{
    pawl_sweep_report report = { 0 };

    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    return report;
}

static void test_what_it_completes_frees_what_comes_after(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "c", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "d", "T", "a c"), &f->err);
    assert_int_equal(sweep(f).due, 0);
    work_sql(f, CLAIM_A END_A("completed"));
    assert_int_equal(sweep(f).due, 1);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
    assert_item(f, "d", "waiting 0/3 token 0 attempts 0 ''");
    assert_int_equal(sweep(f).due, 0);
    /* The half that it did is not done again. */
    pawl_claim claim = PAWL_CLAIM_INIT;
    claim.holder = pawl_view_of("w");
    claim.count_max = 10;
    assert_string_equal(claim_ids(f, &claim), "c b ");
    assert_ok(complete(f, "c", 1), &f->err);
    assert_item(f, "d", "pending 0/3 token 0 attempts 0 ''");
}

static void test_a_completed_item_that_it_deletes_was_completed(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    work_sql(f, CLAIM_A END_A("completed") "DELETE FROM work_items WHERE work_item_id = 'a'");
    assert_int_equal(sweep(f).due, 1);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
}

static void test_what_it_fails_or_deletes_fails_what_comes_after(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "c", "T", "b"), &f->err);
    work_sql(f, CLAIM_A END_A("failed"));
    assert_int_equal(sweep(f).due, 0);
    assert_item(f, "b", "failed 0/3 token 0 attempts 0 'item 'a', which it comes after, failed'");
    assert_item(f, "c", "failed 0/3 token 0 attempts 0 'item 'b', which it comes after, failed'");
    assert_task(f, "T", "failed w0 p0 r0 c0 f3");

    make_task(f, "U");
    submit(f, "e", "U", 0);
    assert_ok(submit_after(f, "g", "U", "e"), &f->err);
    work_sql(f, "DELETE FROM work_items WHERE work_item_id = 'e'");
    assert_int_equal(sweep(f).due, 0);
    assert_item(f, "g", "failed 0/3 token 0 attempts 0 'item 'e', which it comes after, failed'");
}

static void test_what_it_left_expired_goes_on(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    work_sql(f,
             CLAIM_A "UPDATE work_items SET status = 'expired', lease_holder = NULL,"
                     " lease_expires_at = NULL WHERE work_item_id = 'a'");
    pawl_sweep_report report = sweep(f);
    assert_int_equal(report.expired, 1);
    assert_int_equal(report.retried, 1);
    assert_item(f, "a", "pending 1/3 token 1 attempts 1 'Lease expired - no heartbeat received'");
    assert_history(f,
                   "a",
                   ">pending 0|pending>in_progress 1 by w|in_progress>expired 1 by w|"
                   "expired>pending 1 'Lease expired - no heartbeat received'");
    pawl_checkpoint *boundary = NULL;
    assert_ok(pawl_checkpoint_latest(f->work, pawl_view_of("T"), NULL, true, &boundary, &f->err),
              &f->err);
    assert_int_equal(boundary->type, PAWL_CHECKPOINT_ERROR_BOUNDARY);
    pawl_checkpoint_free(boundary);
    assert_int_equal(sweep(f).expired, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_what_it_completes_frees_what_comes_after),
        work_test(test_a_completed_item_that_it_deletes_was_completed),
        work_test(test_what_it_fails_or_deletes_fails_what_comes_after),
        work_test(test_what_it_left_expired_goes_on),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
