/* Ends that nobody waits for, and items that are leased before they are asked for. */
#include "lib/work_fixture.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "work/core/internal.h"

enum { MANY = 300, WORKERS = 8, WAIT_MS_MAX = 30000 };

/* The clock of these tests is the real one: leases are given back when they have got old. */
static void open_ahead(struct work_fixture *f, uint32_t ahead)
{
    f->options.claim_ahead = ahead;
    pawl_work_close(f->work, 0, NULL);
    f->work = work_open_real(f, &f->options);
}

static void submit_items(struct work_fixture *f, int count)
{
    static pawl_submission submissions[MANY];
    static char ids[MANY][16];

    make_task(f, "T");
    for (int i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "i%03d", i);
        submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        submissions[i].work_item_id = pawl_view_of(ids[i]);
        submissions[i].task_id = pawl_view_of("T");
        submissions[i].work_type = pawl_view_of("t");
    }
    assert_ok(pawl_work_submit(f->work, submissions, (size_t)count, NULL, &f->err), &f->err);
}

static pawl_claim claim_by(const char *holder)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of(holder);
    return claim;
}

static bool is_now(struct work_fixture *f, const char *id, pawl_item_status status)
{
    pawl_item *item = NULL;

    assert_ok(pawl_work_get(f->work, pawl_view_of(id), &item, &f->err), &f->err);
    bool is = item->status == status;
    pawl_item_free(item);
    return is;
}

static void wait_until(struct work_fixture *f, const char *id, pawl_item_status status)
{
    for (int ms = 0; !is_now(f, id, status); ms += 10) {
        assert_true(ms < WAIT_MS_MAX);
        poll(NULL, 0, 10);
    }
}

/* --- ends that nobody waits for --- */

struct answers {
    atomic_int count;
    atomic_int refused;
    pawl_error last; /* only with one answer under way */
};

static void take_answer(void *context, const pawl_error *outcome)
{
    struct answers *answers = context;

    answers->last = *outcome;
    atomic_fetch_add(&answers->refused, outcome->status != PAWL_OK);
    atomic_fetch_add(&answers->count, 1);
}

static pawl_status complete_async(struct work_fixture *f,
                                  const char *id,
                                  uint64_t token,
                                  const char *output,
                                  struct answers *answers)
{
    char copy_of_id[32];
    char copy_of_output[64];

    snprintf(copy_of_id, sizeof(copy_of_id), "%s", id);
    snprintf(copy_of_output, sizeof(copy_of_output), "%s", output);
    pawl_lease lease = lease_of(copy_of_id, token);
    pawl_status status = pawl_work_complete_async(
        f->work, &lease, pawl_view_of(copy_of_output), take_answer, answers, &f->err);
    memset(copy_of_id, 'x', sizeof(copy_of_id)); /* it was copied */
    memset(copy_of_output, 'x', sizeof(copy_of_output));
    return status;
}

static void wait_for(struct answers *answers, int count)
{
    for (int ms = 0; atomic_load(&answers->count) < count; ms++) {
        assert_true(ms < WAIT_MS_MAX);
        poll(NULL, 0, 1);
    }
}

static void test_an_end_is_answered_when_it_is_stored(void **state)
{
    struct work_fixture *f = *state;
    struct answers answers = { 0 };
    pawl_item *item = NULL;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_ok(complete_async(f, "a", token, "{\"n\":1}", &answers), &f->err);
    wait_for(&answers, 1);
    assert_int_equal(answers.last.status, PAWL_OK);
    assert_ok(pawl_work_get(f->work, pawl_view_of("a"), &item, &f->err), &f->err);
    assert_int_equal(item->status, PAWL_ITEM_COMPLETED);
    assert_true(pawl__view_is(item->output_data, "{\"n\":1}"));
    pawl_item_free(item);
    assert_task(f, "T", "succeeded w0 p0 r0 c1 f0");
}

static void test_an_end_that_is_refused_is_answered_with_the_reason(void **state)
{
    struct work_fixture *f = *state;
    struct answers answers = { 0 };

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_ok(complete_async(f, "a", token + 1, "1", &answers), &f->err);
    wait_for(&answers, 1);
    assert_int_equal(answers.last.status, PAWL_LEASE_LOST);
    assert_ok(complete_async(f, "nobody", token, "1", &answers), &f->err);
    wait_for(&answers, 2);
    assert_int_equal(answers.last.status, PAWL_NOT_FOUND);
    assert_non_null(strstr(answers.last.message, "nobody"));
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
}

static void test_a_wrong_end_is_refused_at_once_and_not_answered(void **state)
{
    struct work_fixture *f = *state;
    struct answers answers = { 0 };

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    pawl_lease lease = lease_of("a", token);
    assert_int_equal(complete_async(f, "a", token, "{no json", &answers), PAWL_INVALID);
    assert_non_null(strstr(f->err.message, "output_data"));
    assert_int_equal(complete_async(f, "", token, "1", &answers), PAWL_INVALID);
    assert_int_equal(
        pawl_work_complete_async(f->work, &lease, (pawl_view){ NULL, 0 }, NULL, NULL, &f->err),
        PAWL_INVALID);
    assert_non_null(strstr(f->err.message, "done"));
    assert_int_equal(pawl_work_complete_async(
                         f->work, NULL, (pawl_view){ NULL, 0 }, take_answer, &answers, &f->err),
                     PAWL_INVALID);
    pawl_work_close(f->work, 0, NULL); /* whoever waited for an answer would have got it now */
    f->work = NULL;
    assert_int_equal(atomic_load(&answers.count), 0);
}

static void test_closing_waits_for_the_answers(void **state)
{
    struct work_fixture *f = *state;
    struct answers answers = { 0 };
    pawl_claim claim = claim_by("w");
    pawl_claimed *claimed = NULL;

    submit_items(f, MANY);
    claim.count_max = MANY;
    assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
    assert_int_equal(claimed->count, MANY);
    for (size_t i = 0; i < claimed->count; i++) {
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[i].work_item_id,
                             claimed->items[i].token };
        assert_ok(pawl_work_complete_async(
                      f->work, &lease, (pawl_view){ NULL, 0 }, take_answer, &answers, &f->err),
                  &f->err);
    }
    pawl_claimed_free(claimed);
    pawl_work_close(f->work, 0, NULL);
    f->work = NULL;
    assert_int_equal(atomic_load(&answers.count), MANY);
    assert_int_equal(atomic_load(&answers.refused), 0);
    if (work_reopen(f, WORK_BOOT)) {
        assert_task(f, "T", "succeeded w0 p0 r0 c300 f0");
    }
}

/* --- leased ahead --- */

static const char *id_of(int number)
{
    static char ids[4][16];
    static size_t turn;

    turn = (turn + 1) % COUNT_OF(ids);
    snprintf(ids[turn], sizeof(ids[turn]), "i%03d", number);
    return ids[turn];
}

/* Claims item after item, from `first` on, until `count` behind the last one are leased ahead, which
 * takes as many claims as this machine is slow; the number of the first of them. */
static int claim_until_ahead(struct work_fixture *f, const char *holder, int first, int count)
{
    for (int number = first; number < MANY - count; number++) {
        int ahead = 0;
        claim_it(f, holder, id_of(number));
        while (ahead < count && is_now(f, id_of(number + 1 + ahead), PAWL_ITEM_IN_PROGRESS)) {
            ahead++;
        }
        if (ahead == count) {
            return number + 1;
        }
    }
    fail_msg("%d items are never leased ahead", count);
    return -1;
}

static void test_a_holder_that_comes_back_soon_gets_what_was_leased_ahead(void **state)
{
    struct work_fixture *f = *state;

    open_ahead(f, 100);
    submit_items(f, MANY);
    claim_it(f, "w", "i000"); /* nobody knows yet how quick it is */
    assert_item(f, "i001", "pending 0/3 token 0 attempts 0 ''");
    int ahead = claim_until_ahead(f, "w", 1, 5);
    claim_it(f, "w", id_of(ahead));
    claim_it(f, "w", id_of(ahead + 1));
}

static void test_what_one_holder_has_ahead_is_not_given_to_another(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim other = claim_by("w");

    other.lease_ms = 60000; /* than what is ahead was leased for */
    open_ahead(f, 1);
    submit_items(f, MANY);
    for (int number = 0;; number++) {
        number = claim_until_ahead(f, "w", number, 1);
        const char *got = claim_ids(f, &other);
        if (strncmp(got, id_of(number + 1), 4) == 0) {
            claim_it(f, "w", id_of(number));
            return;
        }
        assert_true(strncmp(got, id_of(number), 4) == 0); /* it was given back just before */
    }
}

/* The next item that is claimed; its token. */
static uint64_t claim_any(struct work_fixture *f, char ret_id[16])
{
    pawl_claim claim = claim_by("w");
    pawl_claimed *claimed = NULL;

    assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
    snprintf(ret_id, 16, "%.*s", VIEW_ARGS(claimed->items[0].work_item_id));
    uint64_t token = claimed->items[0].token;
    pawl_claimed_free(claimed);
    return token;
}

static void test_what_is_cancelled_here_is_not_handed_out(void **state)
{
    struct work_fixture *f = *state;
    char id[16];

    open_ahead(f, 100);
    submit_items(f, MANY);
    int ahead = claim_until_ahead(f, "w", 0, 3);
    assert_ok(pawl_work_cancel(f->work, pawl_view_of(id_of(ahead + 1)), &f->err), &f->err);
    for (int i = 0; i < 10; i++) {
        claim_any(f, id);
        assert_string_not_equal(id, id_of(ahead + 1));
    }
    (void)claim_until_ahead(f, "w", atoi(id + 1) + 1, 3); /* NOLINT(cert-err34-c) */
    assert_ok(pawl_task_cancel(f->work, pawl_view_of("T"), NULL, &f->err), &f->err);
    assert_true(nothing_to_claim(f));
}

/* Another process has cancelled it: whoever is given it is told by its next call. */
static void test_an_item_ahead_is_a_lease_like_any_other(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *other = NULL;
    bool was_ahead = work_forgets(f); /* which is this process's alone */

    open_ahead(f, 100);
    submit_items(f, MANY);
    if (!was_ahead) {
        other = work_open_real(f, NULL);
    }
    for (int number = 0; !was_ahead; number++) {
        char id[16];
        number = claim_until_ahead(f, "w", number, 1);
        assert_ok(pawl_work_cancel(other, pawl_view_of(id_of(number)), &f->err), &f->err);
        uint64_t token = claim_any(f, id);
        was_ahead = strcmp(id, id_of(number)) == 0; /* and not given back just before */
        if (was_ahead) {
            assert_int_equal(complete(f, id, token), PAWL_LEASE_LOST);
        }
    }
    pawl_work_close(other, 0, NULL);
}

static void test_what_nobody_wanted_is_given_back(void **state)
{
    struct work_fixture *f = *state;

    f->options.lease_ms = 4000; /* young for half a second */
    open_ahead(f, 1);
    submit_items(f, MANY);
    int ahead = claim_until_ahead(f, "w", 0, 1);
    wait_until(f, id_of(ahead), PAWL_ITEM_PENDING);
    assert_history(
        f, id_of(ahead), ">pending 0|pending>in_progress 1 by w|in_progress>pending 1 by w");
    assert_item(f, id_of(ahead), "pending 0/3 token 1 attempts 1 ''"); /* no retry was counted */
    claim_it(f, "w", id_of(ahead)); /* it took long: nothing is leased ahead */
    assert_item(f, id_of(ahead + 1), "pending 0/3 token 0 attempts 0 ''");
}

/* A store that is away for a moment: what could not be given back is given back later. */
static void test_giving_back_is_tried_again(void **state)
{
    struct work_fixture *f = *state;

    f->options.lease_ms = 20000; /* young for a second */
    open_ahead(f, 1);
    submit_items(f, MANY);
    int ahead = claim_until_ahead(f, "w", 0, 1);
    assert_ok(pawl__failpoint_set("work.commit.before=error:BUSY*1", &f->err), &f->err);
    wait_until(f, id_of(ahead), PAWL_ITEM_PENDING);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    assert_item(f, id_of(ahead), "pending 0/3 token 1 attempts 1 ''");
}

struct claimer {
    pawl_work *work;
    uint32_t
        wait_ms; /* 0: the store has something, and closing does not cancel what does not wait */
    char holder[16];
    pawl_status status;
    atomic_bool returned;
    struct pawl__thread thread;
};

static void claim_once(void *context)
{
    struct claimer *claimer = context;
    pawl_claim claim = claim_by(claimer->holder);
    pawl_claimed *claimed = NULL;

    claim.wait_ms = claimer->wait_ms;
    claimer->status = pawl_work_claim(claimer->work, &claim, &claimed, NULL);
    pawl_claimed_free(claimed);
    atomic_store(&claimer->returned, true);
}

/* Claims that have returned or that closing waits for; the others must not meet a closed handle. A claim that returns
 * between the two counts is missed, none is counted twice. */
static size_t claims_begun(struct work_fixture *f, struct claimer claimers[WORKERS])
{
    size_t begun = 0;

    for (int i = 0; i < WORKERS; i++) {
        begun += atomic_load(&claimers[i].returned);
    }
    pawl__lock(&f->work->waiters.lock);
    begun += f->work->waiters.count;
    pawl__unlock(&f->work->waiters.lock);
    return begun;
}

/* Closes while so many claims are under way. */
static void close_under(struct work_fixture *f, uint32_t wait_ms, struct claimer claimers[WORKERS])
{
    for (int i = 0; i < WORKERS; i++) {
        snprintf(claimers[i].holder, sizeof(claimers[i].holder), "w%d", i % 2);
        claimers[i].work = f->work;
        claimers[i].wait_ms = wait_ms;
        assert_ok(
            pawl__thread_start(&claimers[i].thread, "claimer", claim_once, &claimers[i], &f->err),
            &f->err);
    }
    for (int ms = 0; claims_begun(f, claimers) < WORKERS; ms++) {
        assert_true(ms < WAIT_MS_MAX);
        poll(NULL, 0, 1);
    }
    pawl_work_close(f->work, 0, NULL);
    f->work = NULL;
    for (int i = 0; i < WORKERS; i++) {
        pawl__thread_join(&claimers[i].thread);
    }
}

static void test_closing_ends_claims_that_wait(void **state)
{
    struct work_fixture *f = *state;

    for (uint32_t ahead = 0; ahead <= 50; ahead += 50) {
        struct claimer claimers[WORKERS] = { 0 };
        open_ahead(f, ahead);
        close_under(f, 2 * WAIT_MS_MAX, claimers);
        for (int i = 0; i < WORKERS; i++) {
            assert_int_equal(claimers[i].status, PAWL_CANCELLED);
        }
    }
}

static void test_closing_waits_for_claims_in_the_store(void **state)
{
    struct work_fixture *f = *state;

    for (uint32_t ahead = 0; ahead <= 50; ahead += 50) {
        struct claimer claimers[WORKERS] = { 0 };
        open_ahead(f, ahead);
        if (ahead == 0 || work_forgets(f)) {
            submit_items(f, MANY);
        }
        claim_it(f, "w0", id_of(work_forgets(f) ? 0 : ahead == 0 ? 0 : 1 + WORKERS));
        assert_ok(pawl__failpoint_set("work.commit.before=delay:200*2", &f->err), &f->err);
        close_under(f, 0, claimers);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        for (int i = 0; i < WORKERS; i++) {
            assert_int_equal(claimers[i].status, PAWL_OK);
        }
    }
    if (work_reopen(f, WORK_BOOT)) { /* what was leased ahead is given back */
        assert_task(f, "T", "running w0 p282 r18 c0 f0");
    }
}

static void test_closing_gives_back_what_is_ahead(void **state)
{
    struct work_fixture *f = *state;

    open_ahead(f, 100);
    submit_items(f, MANY);
    int ahead = claim_until_ahead(f, "w", 0, 5);
    open_ahead(f, 0);
    if (!work_forgets(f)) {
        assert_item(f, id_of(ahead - 1), "in_progress 0/3 token 1 attempts 1 ''");
        assert_item(f, id_of(ahead), "pending 0/3 token 1 attempts 1 ''");
        assert_item(f, id_of(ahead + 4), "pending 0/3 token 1 attempts 1 ''");
    }
}

static void test_completing_and_claiming_takes_from_what_is_ahead(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = claim_by("w");
    pawl_claimed *claimed = NULL;

    open_ahead(f, 100);
    submit_items(f, MANY);
    int ahead = claim_until_ahead(f, "w", 0, 2);
    pawl_lease lease = lease_of(id_of(ahead - 1), 1);
    pawl_lease wrong = lease_of(id_of(ahead - 1), 2);
    assert_int_equal(pawl_work_complete_and_claim(
                         f->work, &wrong, (pawl_view){ NULL, 0 }, &claim, &claimed, &f->err),
                     PAWL_LEASE_LOST);
    assert_ok(pawl_work_complete_and_claim(
                  f->work, &lease, (pawl_view){ NULL, 0 }, &claim, &claimed, &f->err),
              &f->err);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, id_of(ahead)));
    pawl_claimed_free(claimed);
    assert_true(is_now(f, id_of(ahead - 1), PAWL_ITEM_COMPLETED));
}

static void test_more_than_the_limit_is_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = NULL;

    f->options.claim_ahead = 1001;
    assert_int_equal(pawl_work_open(f->location, &f->options, &work, &f->err), PAWL_INVALID);
    assert_non_null(strstr(f->err.message, "claim_ahead: is 1001, the limit is 1000"));
}

/* --- many at once --- */

struct crew {
    struct work_fixture *f;
    struct answers answers;
    atomic_int taken[MANY];
    atomic_int next_worker;
    atomic_int wrong;
};

static void run_worker(void *context)
{
    struct crew *crew = context;
    char holder[16];
    pawl_claimed *claimed;

    snprintf(holder, sizeof(holder), "w%d", atomic_fetch_add(&crew->next_worker, 1));
    pawl_claim claim = claim_by(holder);
    claim.wait_ms = 3000; /* others may give something back */
    while (pawl_work_claim(crew->f->work, &claim, &claimed, NULL) == PAWL_OK) {
        const pawl_item *item = &claimed->items[0];
        pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };
        char text[32];
        int number = -1;

        snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(item->work_item_id));
        bool wrong = sscanf(text, "i%d", &number) != 1 /* NOLINT(cert-err34-c) */
                     || atomic_fetch_add(&crew->taken[number], 1) != 0
                     || !pawl__view_is(item->lease_holder, holder) || claimed->count != 1;
        wrong |=
            pawl_work_complete_async(
                crew->f->work, &lease, (pawl_view){ NULL, 0 }, take_answer, &crew->answers, NULL)
            != PAWL_OK;
        atomic_fetch_add(&crew->wrong, wrong);
        pawl_claimed_free(claimed);
        if (atomic_load(&crew->answers.count) == MANY) {
            pawl_work_cancel_waits(crew->f->work);
        }
    }
}

static void test_many_workers_take_each_item_once(void **state)
{
    struct work_fixture *f = *state;
    struct pawl__thread threads[WORKERS] = { 0 };
    static struct crew crew;

    open_ahead(f, 20);
    submit_items(f, MANY);
    memset(&crew, 0, sizeof(crew));
    crew.f = f;
    for (size_t i = 0; i < WORKERS; i++) {
        assert_ok(pawl__thread_start(&threads[i], "worker", run_worker, &crew, &f->err), &f->err);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pawl__thread_join(&threads[i]);
    }
    wait_for(&crew.answers, MANY);
    assert_int_equal(atomic_load(&crew.wrong), 0);
    assert_int_equal(atomic_load(&crew.answers.refused), 0);
    assert_task(f, "T", "succeeded w0 p0 r0 c300 f0");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        work_test(test_an_end_is_answered_when_it_is_stored),
        work_test(test_an_end_that_is_refused_is_answered_with_the_reason),
        work_test(test_a_wrong_end_is_refused_at_once_and_not_answered),
        work_test(test_closing_waits_for_the_answers),
        work_test(test_a_holder_that_comes_back_soon_gets_what_was_leased_ahead),
        work_test(test_what_one_holder_has_ahead_is_not_given_to_another),
        work_test(test_what_is_cancelled_here_is_not_handed_out),
        work_test(test_an_item_ahead_is_a_lease_like_any_other),
        work_test(test_what_nobody_wanted_is_given_back),
        work_test(test_giving_back_is_tried_again),
        work_test(test_closing_ends_claims_that_wait),
        work_test(test_closing_waits_for_claims_in_the_store),
        work_test(test_closing_gives_back_what_is_ahead),
        work_test(test_completing_and_claiming_takes_from_what_is_ahead),
        work_test(test_more_than_the_limit_is_refused),
        work_test(test_many_workers_take_each_item_once),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
