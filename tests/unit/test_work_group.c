/* Many callers at once: every item goes to one of them, who waits is woken, close ends it. */
#include "lib/work_fixture.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "work/core/internal.h"

enum { WORKERS = 8, ITEMS = 400 };

struct crew {
    pawl_work *work;
    atomic_int taken[ITEMS];
    atomic_int done;
    atomic_int wrong;
};

static void note_wrong(struct crew *crew, bool wrong)
{
    if (wrong) {
        atomic_fetch_add(&crew->wrong, 1);
    }
}

/* Claims, now and then gives back or fails, and completes. */
static void work_on(struct crew *crew, const pawl_item *item, unsigned *turn)
{
    pawl_lease lease = { .size = sizeof(pawl_lease),
                         .work_item_id = item->work_item_id,
                         .token = item->token };
    pawl_lease old = { .size = sizeof(pawl_lease),
                       .work_item_id = item->work_item_id,
                       .token = item->token - 1 };
    char text[PAWL_WORK_NAME_BYTES_MAX + 1];
    int number = 0;

    snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(item->work_item_id));
    note_wrong(crew, sscanf(text, "i%d", &number) != 1); /* NOLINT(cert-err34-c) */
    note_wrong(crew, atomic_fetch_add(&crew->taken[number], 1) != 0);
    note_wrong(crew, pawl_work_heartbeat(crew->work, &lease, 0, NULL, NULL) != PAWL_OK);
    note_wrong(crew,
               pawl_work_complete(crew->work, &old, (pawl_view){ NULL, 0 }, NULL)
                   != PAWL_LEASE_LOST);
    atomic_fetch_sub(&crew->taken[number], 1);
    if (item->attempts == 1 && ++*turn % 4 == 0) {
        note_wrong(crew, pawl_work_release(crew->work, &lease, NULL) != PAWL_OK);
        return;
    }
    note_wrong(crew,
               pawl_work_complete(crew->work, &lease, (pawl_view){ NULL, 0 }, NULL) != PAWL_OK);
    atomic_fetch_add(&crew->done, 1);
}

static void run_worker(void *context)
{
    struct crew *crew = context;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed;
    unsigned turn = 0;

    claim.holder = pawl_view_of("w");
    claim.count_max = 3;
    while (pawl_work_claim(crew->work, &claim, &claimed, NULL) == PAWL_OK) {
        for (size_t i = 0; i < claimed->count; i++) {
            work_on(crew, &claimed->items[i], &turn);
        }
        pawl_claimed_free(claimed);
    }
}

static void submit_numbered(struct work_fixture *f)
{
    static pawl_submission submissions[ITEMS];
    static char ids[ITEMS][16];

    make_task(f, "T");
    for (int i = 0; i < ITEMS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "i%d", i);
        submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        submissions[i].work_item_id = pawl_view_of(ids[i]);
        submissions[i].task_id = pawl_view_of("T");
        submissions[i].work_type = pawl_view_of("t");
    }
    assert_ok(pawl_work_submit(f->work, submissions, ITEMS, NULL, &f->err), &f->err);
}

/* All items, by all workers at once, until each has stopped. */
static void work_through(struct work_fixture *f, struct crew *crew, void (*worker)(void *))
{
    struct pawl__thread threads[WORKERS] = { 0 };

    use_real_clock(f);
    submit_numbered(f);
    memset(crew, 0, sizeof(*crew));
    crew->work = f->work;
    for (size_t i = 0; i < WORKERS; i++) {
        assert_ok(pawl__thread_start(&threads[i], "worker", worker, crew, &f->err), &f->err);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pawl__thread_join(&threads[i]);
    }
}

static void test_each_item_is_held_by_one_and_completed_once(void **state)
{
    struct work_fixture *f = *state;
    static struct crew crew;

    work_through(f, &crew, run_worker);
    /* A worker stops when it finds nothing, though another one gives something back after that. */
    run_worker(&crew);
    assert_int_equal(atomic_load(&crew.wrong), 0);
    assert_int_equal(atomic_load(&crew.done), ITEMS);
    assert_task(f, "T", "succeeded w0 p0 r0 c400 f0");
}

/* --- the next item with the end of the last --- */

static pawl_status complete_and_claim(struct work_fixture *f,
                                      const char *id,
                                      uint64_t token,
                                      pawl_claimed **ret_claimed)
{
    pawl_lease lease = lease_of(id, token);
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("w");
    return pawl_work_complete_and_claim(
        f->work, &lease, pawl_view_of("{}"), &claim, ret_claimed, &f->err);
}

static void test_a_completion_brings_the_next_item(void **state)
{
    struct work_fixture *f = *state;
    pawl_claimed *claimed = NULL;

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 2);
    submit(f, "b", "T", 1);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    assert_ok(complete_and_claim(f, "a", 1, &claimed), &f->err);
    assert_int_equal(claimed->count, 1);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, "b"));
    assert_int_equal(claimed->items[0].token, 1);
    pawl_claimed_free(claimed);
    assert_task(f, "T", "running w0 p0 r1 c1 f0");
    assert_ok(complete_and_claim(f, "b", 1, &claimed), &f->err);
    assert_null(claimed);
    assert_task(f, "T", "succeeded w0 p0 r0 c2 f0");
}

static void test_who_could_not_complete_gets_no_other_item(void **state)
{
    struct work_fixture *f = *state;
    pawl_claimed *claimed = NULL;

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 2);
    submit(f, "b", "T", 1);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    assert_status(complete_and_claim(f, "a", 2, &claimed), PAWL_LEASE_LOST, &f->err);
    assert_status(complete_and_claim(f, "none", 1, &claimed), PAWL_NOT_FOUND, &f->err);
    assert_null(claimed);
    assert_task(f, "T", "running w0 p1 r1 c0 f0");
    assert_ok(complete(f, "a", 1), &f->err);
    assert_status(complete_and_claim(f, "a", 1, &claimed), PAWL_LEASE_LOST, &f->err);
    assert_task(f, "T", "running w0 p1 r0 c1 f0");
}

static void test_a_completion_frees_what_it_then_claims(void **state)
{
    struct work_fixture *f = *state;
    pawl_claimed *claimed = NULL;

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    assert_ok(complete_and_claim(f, "a", 1, &claimed), &f->err);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, "b"));
    pawl_claimed_free(claimed);
}

static void run_chain(void *context)
{
    struct crew *crew = context;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("w");
    note_wrong(crew, pawl_work_claim(crew->work, &claim, &claimed, NULL) != PAWL_OK);
    while (claimed != NULL) {
        pawl_claimed *next = NULL;
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[0].work_item_id,
                             claimed->items[0].token };
        note_wrong(crew,
                   pawl_work_complete_and_claim(
                       crew->work, &lease, (pawl_view){ NULL, 0 }, &claim, &next, NULL)
                       != PAWL_OK);
        pawl_claimed_free(claimed);
        claimed = next;
        atomic_fetch_add(&crew->done, 1);
    }
}

static void test_chains_of_items_complete_each_once(void **state)
{
    struct work_fixture *f = *state;
    static struct crew crew;

    work_through(f, &crew, run_chain);
    assert_int_equal(atomic_load(&crew.wrong), 0);
    assert_int_equal(atomic_load(&crew.done), ITEMS);
    assert_task(f, "T", "succeeded w0 p0 r0 c400 f0");
}

/* --- waiting --- */

struct waiter {
    pawl_work *work;
    pawl_status status;
    struct pawl__thread thread;
};

static void run_waiter(void *context)
{
    struct waiter *waiter = context;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("w");
    claim.wait_ms = 120000;
    waiter->status = pawl_work_claim(waiter->work, &claim, &claimed, NULL);
    pawl_claimed_free(claimed);
}

static void start_waiter(struct work_fixture *f, struct waiter *waiter, pawl_work *work)
{
    *waiter = (struct waiter){ .work = work };
    assert_ok(pawl__thread_start(&waiter->thread, "waiter", run_waiter, waiter, &f->err), &f->err);
}

static void test_a_submit_ends_a_wait(void **state)
{
    struct work_fixture *f = *state;
    struct waiter waiter;

    use_real_clock(f);
    make_task(f, "T");
    start_waiter(f, &waiter, f->work);
    submit(f, "a", "T", 0);
    pawl__thread_join(&waiter.thread);
    assert_int_equal(waiter.status, PAWL_OK);
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
}

static void test_an_item_that_becomes_due_ends_a_wait(void **state)
{
    struct work_fixture *f = *state;
    struct waiter waiter;

    f->options.retry_first_ms = 1;
    f->options.retry_max_ms = 20;
    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    start_waiter(f, &waiter, f->work);
    assert_ok(fail_with(f, "a", token, "x", true), &f->err);
    pawl__thread_join(&waiter.thread);
    assert_int_equal(waiter.status, PAWL_OK);
    assert_item(f, "a", "in_progress 1/3 token 2 attempts 2 'x'");
}

static void test_another_handle_ends_a_wait(void **state)
{
    struct work_fixture *f = *state;
    struct waiter waiter;
    pawl_work *other;

    if (work_forgets(f)) {
        return; /* has no other handle */
    }
    use_real_clock(f);
    other = work_open_real(f, NULL);
    make_task(f, "T");
    start_waiter(f, &waiter, other);
    submit(f, "a", "T", 0);
    pawl__thread_join(&waiter.thread);
    pawl_work_close(other, 0, NULL);
    assert_int_equal(waiter.status, PAWL_OK);
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
}

static void test_cancelled_waits_end_at_once_and_for_ever(void **state)
{
    struct work_fixture *f = *state;
    struct waiter waiters[3];

    use_real_clock(f);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        start_waiter(f, &waiters[i], f->work);
    }
    pawl_work_cancel_waits(f->work);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        pawl__thread_join(&waiters[i].thread);
        assert_int_equal(waiters[i].status, PAWL_CANCELLED);
    }
    start_waiter(f, &waiters[0], f->work);
    pawl__thread_join(&waiters[0].thread);
    assert_int_equal(waiters[0].status, PAWL_CANCELLED);
    assert_true(nothing_to_claim(f));
}

/* Claims both items of a store that is slow, and leaves while it is at it. */
static void give_up_a_claim(struct work_fixture *f)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    claim.holder = pawl_view_of("gone");
    claim.count_max = 2;
    claim.wait_ms = 50;
    f->work->waiters.late_ns = 0;
    assert_ok(pawl__failpoint_set("work.commit.before=delay:1000*1", &f->err), &f->err);
    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_TIMEOUT, &f->err);
    assert_null(claimed);
}

static void test_a_claim_that_was_given_up_gives_its_items_back(void **state)
{
    struct work_fixture *f = *state;
    struct waiter waiters[2];

    give_up_a_claim(f);
    start_waiter(f, &waiters[0], f->work);
    start_waiter(f, &waiters[1], f->work);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        pawl__thread_join(&waiters[i].thread);
        assert_int_equal(waiters[i].status, PAWL_OK);
    }
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    assert_item(f, "a", "in_progress 0/3 token 2 attempts 2 ''");
    assert_item(f, "b", "in_progress 0/3 token 2 attempts 2 ''");
}

static void test_closing_gives_back_what_a_claim_that_was_given_up_has_leased(void **state)
{
    struct work_fixture *f = *state;

    give_up_a_claim(f);
    bool kept = work_reopen(f, WORK_BOOT);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    if (kept) {
        assert_item(f, "a", "pending 0/3 token 1 attempts 1 ''");
        assert_item(f, "b", "pending 0/3 token 1 attempts 1 ''");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_each_item_is_held_by_one_and_completed_once),
        work_test(test_a_completion_brings_the_next_item),
        work_test(test_who_could_not_complete_gets_no_other_item),
        work_test(test_a_completion_frees_what_it_then_claims),
        work_test(test_chains_of_items_complete_each_once),
        work_test(test_a_submit_ends_a_wait),
        work_test(test_an_item_that_becomes_due_ends_a_wait),
        work_test(test_another_handle_ends_a_wait),
        work_test(test_cancelled_waits_end_at_once_and_for_ever),
        work_test(test_a_claim_that_was_given_up_gives_its_items_back),
        work_test(test_closing_gives_back_what_a_claim_that_was_given_up_has_leased),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
