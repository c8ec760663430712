/* Claims that wait without a thread each: who gets which item, what it costs, and how a wait ends. */
#include "lib/work_fixture.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "engine/committer.h"
#include "lib/check.h"
#include "lib/fault.h"
#include "work/core/internal.h"

enum { MANY = 1000, PATIENCE_MS = 60000 };

struct waiting {
    pawl_work *work;
    atomic_int answers;
    pawl_status status;
    bool waited;
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    uint64_t token;
    atomic_int *order; /* the number of the answer among all; NULL: nobody asks */
    int number;
    bool releases;
};

static void on_released(void *context, const pawl_error *outcome)
{
    (void)context;
    (void)outcome;
}

static void on_done(void *context, pawl_claimed *claimed, const pawl_error *outcome)
{
    struct waiting *waiting = context;

    waiting->status = outcome->status;
    if (waiting->order != NULL) {
        waiting->number = atomic_fetch_add(waiting->order, 1);
    }
    if (claimed != NULL) {
        const pawl_item *item = &claimed->items[0];
        pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };

        waiting->waited = claimed->waited;
        waiting->token = item->token;
        memcpy(waiting->id, item->work_item_id.data, item->work_item_id.len);
        waiting->id[item->work_item_id.len] = '\0';
        if (waiting->releases) {
            (void)!pawl_work_release_async(waiting->work, &lease, on_released, NULL, NULL);
        }
        pawl_claimed_free(claimed);
    }
    atomic_fetch_add(&waiting->answers, 1);
}

static void wait_for_item(struct work_fixture *f,
                          struct waiting *waiting,
                          const char *type,
                          uint32_t wait_ms)
{
    pawl_view types[] = { pawl_view_of(type) };
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("w");
    claim.work_types = types;
    claim.work_type_count = type == NULL ? 0 : 1;
    claim.wait_ms = wait_ms;
    waiting->work = f->work;
    assert_ok(pawl_work_claim_async(f->work, &claim, on_done, waiting, &f->err), &f->err);
}

static bool in_time(bool (*holds)(void *context), void *context)
{
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (holds(context)) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

static bool is_answered(void *context)
{
    struct waiting *waiting = context;

    return atomic_load(&waiting->answers) > 0;
}

static void await(struct waiting *waiting, pawl_status status)
{
    assert_true(in_time(is_answered, waiting));
    assert_int_equal(waiting->status, status);
    assert_int_equal(atomic_load(&waiting->answers), 1);
}

static void submit_typed(struct work_fixture *f, const char *id, const char *type)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of(type);
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

static bool is_quiet(void *context)
{
    struct work_waiters *waiters = &((struct work_fixture *)context)->work->waiters;

    pawl__lock(&waiters->lock);
    bool quiet = waiters->asking == 0;
    pawl__unlock(&waiters->lock);
    return quiet;
}

static size_t thread_count(void)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");

    assert_non_null(tasks);
    while (readdir(tasks) != NULL) {
        count++;
    }
    closedir(tasks);
    return count;
}

/* --- many --- */

struct crowd {
    struct waiting waiting[MANY];
    int wanted;
};

static int answered_of(const struct crowd *crowd)
{
    int answered = 0;

    for (size_t i = 0; i < MANY; i++) {
        answered += atomic_load(&crowd->waiting[i].answers);
    }
    return answered;
}

static bool has_as_many(void *context)
{
    const struct crowd *crowd = context;

    return answered_of(crowd) >= crowd->wanted;
}

static struct crowd *start_crowd(struct work_fixture *f)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));

    assert_non_null(crowd);
    for (size_t i = 0; i < MANY; i++) {
        wait_for_item(f, &crowd->waiting[i], NULL, 10 * PATIENCE_MS);
    }
    return crowd;
}

static uint64_t calls_so_far(struct work_fixture *f)
{
    uint64_t batches = 0;
    uint64_t calls = 0;

    pawl__commit_counts(f->work->engine.commit, &batches, &calls);
    return calls;
}

static void test_a_thousand_wait_without_a_thread_each(void **state)
{
    struct work_fixture *f = *state;

    use_real_clock(f);
    make_task(f, "T");
    struct waiting first = { 0 };
    wait_for_item(f, &first, "never", 10 * PATIENCE_MS); /* starts what all of them share */
    size_t threads = thread_count();
    uint64_t calls = calls_so_far(f);
    struct crowd *crowd = start_crowd(f);
    assert_int_equal(thread_count(), threads);
    assert_true(calls_so_far(f) - calls < 100); /* they did not all ask */

    pawl_work_close(f->work, 0, NULL);
    f->work = NULL;
    assert_int_equal(answered_of(crowd), MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(crowd->waiting[i].status, PAWL_CANCELLED);
    }
    await(&first, PAWL_CANCELLED);
    free(crowd);
}

static void test_one_item_does_not_make_all_of_them_ask(void **state)
{
    struct work_fixture *f = *state;

    use_real_clock(f);
    make_task(f, "T");
    struct crowd *crowd = start_crowd(f);
    assert_true(in_time(is_quiet, f));
    uint64_t calls = calls_so_far(f);
    submit(f, "a", "T", 0);
    crowd->wanted = 1;
    assert_true(in_time(has_as_many, crowd));
    assert_string_equal(crowd->waiting[0].id, "a"); /* the oldest */
    assert_true(crowd->waiting[0].waited);
    assert_true(calls_so_far(f) - calls < 200);
    pawl_work_cancel_waits(f->work);
    crowd->wanted = MANY;
    assert_true(in_time(has_as_many, crowd));
    free(crowd);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct waiting *)a)->id, ((const struct waiting *)b)->id);
}

static void test_a_thousand_items_answer_each_of_a_thousand_once(void **state)
{
    struct work_fixture *f = *state;
    static char ids[MANY][16];
    static pawl_submission submissions[MANY];

    use_real_clock(f);
    make_task(f, "T");
    struct crowd *crowd = start_crowd(f);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "i%04zu", i);
        submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        submissions[i].work_item_id = pawl_view_of(ids[i]);
        submissions[i].task_id = pawl_view_of("T");
        submissions[i].work_type = pawl_view_of("mail");
    }
    assert_ok(pawl_work_submit(f->work, submissions, MANY, NULL, &f->err), &f->err);
    crowd->wanted = MANY;
    assert_true(in_time(has_as_many, crowd));
    assert_int_equal(answered_of(crowd), MANY);
    qsort(crowd->waiting, MANY, sizeof(crowd->waiting[0]), by_id);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(crowd->waiting[i].status, PAWL_OK);
        assert_string_equal(crowd->waiting[i].id, ids[i]);
        assert_int_equal(crowd->waiting[i].token, 1);
    }
    free(crowd);
}

/* --- who gets it --- */

static void test_the_oldest_of_each_type_is_first(void **state)
{
    struct work_fixture *f = *state;
    struct waiting mail[2] = { { 0 }, { 0 } };
    struct waiting any = { 0 };
    struct waiting print = { 0 };

    use_real_clock(f);
    make_task(f, "T");
    wait_for_item(f, &mail[0], "mail", PATIENCE_MS);
    wait_for_item(f, &mail[1], "mail", PATIENCE_MS);
    wait_for_item(f, &print, "print", PATIENCE_MS);
    assert_true(in_time(is_quiet, f)); /* a first question may come together with an item */
    submit_typed(f, "1", "mail");
    await(&mail[0], PAWL_OK);
    assert_string_equal(mail[0].id, "1");
    /* Of claims for other types nothing is promised: whoever asks while an item is stored gets it. */
    wait_for_item(f, &any, NULL, PATIENCE_MS);
    submit_typed(f, "2", "post");
    await(&any, PAWL_OK);
    assert_string_equal(any.id, "2");
    submit_typed(f, "3", "print");
    await(&print, PAWL_OK);
    assert_int_equal(atomic_load(&mail[1].answers), 0);
    submit_typed(f, "4", "mail");
    await(&mail[1], PAWL_OK);
    assert_string_equal(mail[1].id, "4");
}

static void test_what_is_there_is_answered_without_waiting(void **state)
{
    struct work_fixture *f = *state;
    struct waiting waiting = { 0 };
    struct waiting none = { 0 };

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    wait_for_item(f, &waiting, NULL, PATIENCE_MS);
    await(&waiting, PAWL_OK);
    assert_false(waiting.waited);
    wait_for_item(f, &none, NULL, 0);
    await(&none, PAWL_NOT_FOUND);
}

static void test_an_answer_may_release_what_it_got(void **state)
{
    struct work_fixture *f = *state;
    struct waiting first = { .releases = true };
    struct waiting second = { 0 };

    use_real_clock(f);
    make_task(f, "T");
    wait_for_item(f, &first, NULL, PATIENCE_MS);
    wait_for_item(f, &second, NULL, PATIENCE_MS);
    submit(f, "a", "T", 0);
    await(&first, PAWL_OK);
    await(&second, PAWL_OK);
    assert_int_equal(second.token, 2);
    assert_item(f, "a", "in_progress 0/3 token 2 attempts 2 ''");
}

/* --- the end of a wait --- */

static void test_a_wait_ends_when_its_time_is_over(void **state)
{
    struct work_fixture *f = *state;
    struct waiting late = { 0 };
    struct waiting soon = { 0 };

    use_real_clock(f);
    wait_for_item(f, &late, NULL, PATIENCE_MS);
    wait_for_item(f, &soon, NULL, 20);
    await(&soon, PAWL_NOT_FOUND);
    assert_int_equal(atomic_load(&late.answers), 0);
    pawl_work_cancel_waits(f->work);
    await(&late, PAWL_CANCELLED);
}

static void test_one_wait_is_cancelled_and_the_others_go_on(void **state)
{
    struct work_fixture *f = *state;
    struct waiting waiting[3] = { { 0 }, { 0 }, { 0 } };

    use_real_clock(f);
    make_task(f, "T");
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        wait_for_item(f, &waiting[i], NULL, PATIENCE_MS);
    }
    pawl_work_cancel_claim(f->work, on_done, &waiting[1]);
    await(&waiting[1], PAWL_CANCELLED);
    pawl_work_cancel_claim(f->work, on_done, &waiting[1]); /* it is answered already */
    submit(f, "a", "T", 0);
    await(&waiting[0], PAWL_OK);
    submit(f, "b", "T", 0);
    await(&waiting[2], PAWL_OK);
    assert_int_equal(atomic_load(&waiting[1].answers), 1);
}

static void test_a_store_that_hangs_does_not_keep_a_claim(void **state)
{
    struct work_fixture *f = *state;
    struct waiting waiting = { 0 };
    struct waiting next = { 0 };

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    f->work->waiters.late_ns = 0;
    assert_ok(pawl__failpoint_set("work.commit.before=delay:2000*1", &f->err), &f->err);
    wait_for_item(f, &waiting, NULL, 50);
    await(&waiting, PAWL_TIMEOUT);
    f->work->waiters.late_ns = PATIENCE_MS * NS_PER_MS;
    wait_for_item(f, &next, NULL, PATIENCE_MS); /* gets what the first one leased for nobody */
    await(&next, PAWL_OK);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    assert_int_equal(atomic_load(&waiting.answers), 1);
    assert_int_equal(next.token, 2);
}

static void test_an_interrupted_store_ends_its_claims(void **state)
{
    struct work_fixture *f = *state;
    struct waiting waiting = { 0 };

    use_real_clock(f);
    wait_for_item(f, &waiting, NULL, PATIENCE_MS);
    pawl_work_interrupt(f->work);
    await(&waiting, PAWL_CANCELLED);
}

/* --- what is wrong --- */

static void test_a_claim_that_is_wrong_is_refused(void **state)
{
    struct work_fixture *f = *state;
    struct waiting waiting = { 0 };
    pawl_claim claim = PAWL_CLAIM_INIT;

    assert_status(
        pawl_work_claim_async(NULL, &claim, on_done, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "work: is NULL");
    assert_status(
        pawl_work_claim_async(f->work, NULL, on_done, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "claim: is NULL");
    assert_status(
        pawl_work_claim_async(f->work, &claim, NULL, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "done: is NULL");
    assert_status(
        pawl_work_claim_async(f->work, &claim, on_done, &waiting, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "holder");
    assert_status(
        pawl_work_release_async(f->work, NULL, on_released, NULL, &f->err), PAWL_INVALID, &f->err);
    pawl_work_cancel_claim(NULL, on_done, NULL);
    pawl_work_cancel_claim(f->work, on_done, &waiting);
    assert_int_equal(atomic_load(&waiting.answers), 0);
}

static void test_without_memory_a_claim_is_refused_and_leaves_nothing(void **state)
{
    struct work_fixture *f = *state;
    pawl_view types[] = { { "mail", 4 } };
    pawl_claim claim = PAWL_CLAIM_INIT;
    int accepted = 0;
    struct waiting first = { 0 };
    struct waiting waiting = { 0 };

    use_real_clock(f);
    wait_for_item(f, &first, "x", PATIENCE_MS);
    claim.holder = pawl_view_of("w");
    claim.work_types = types;
    claim.work_type_count = 1;
    claim.wait_ms = PATIENCE_MS;
    FAULT_WALK (walk) {
        pawl_status status = pawl_work_claim_async(f->work, &claim, on_done, &waiting, &f->err);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        accepted += status == PAWL_OK;
    }
    assert_int_equal(accepted, 1);
    pawl_work_cancel_waits(f->work);
    await(&waiting, PAWL_CANCELLED);
    await(&first, PAWL_CANCELLED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_a_thousand_wait_without_a_thread_each),
        work_test(test_one_item_does_not_make_all_of_them_ask),
        work_test(test_a_thousand_items_answer_each_of_a_thousand_once),
        work_test(test_the_oldest_of_each_type_is_first),
        work_test(test_what_is_there_is_answered_without_waiting),
        work_test(test_an_answer_may_release_what_it_got),
        work_test(test_a_wait_ends_when_its_time_is_over),
        work_test(test_one_wait_is_cancelled_and_the_others_go_on),
        work_test(test_a_store_that_hangs_does_not_keep_a_claim),
        work_test(test_an_interrupted_store_ends_its_claims),
        work_test(test_a_claim_that_is_wrong_is_refused),
        work_test(test_without_memory_a_claim_is_refused_and_leaves_nothing),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
