#include "lib/check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "engine/committer.h"
#include "lib/fault.h"

static int64_t in_seconds(int64_t seconds)
{
    return pawl__monotonic_ns(pawl__clock_real()) + seconds * NS_PER_S;
}

/* What is committed: who, and which of theirs. */
struct entry {
    struct pawl__commit_item item; /* first: an item is an entry */
    int who;
    int number;
    int position; /* the result: where it stands in the log */
    atomic_int *freed;
};

enum { WHO_MAX = 64, LOG_MAX = 100000 };

/* A store that keeps a log, and a gate before its commit. */
struct store {
    struct pawl__lock lock; /* covers the gate: everything up to `entered` */
    struct pawl__cond changed;
    bool shut;
    int entered; /* batches that reached the gate */

    /* The committer's own until it has stopped. */
    int log_count;
    int last[WHO_MAX];
    int out_of_order;
    int log[LOG_MAX];
    size_t largest;
    pawl_status fail_batch;
    int refuse_number; /* items with this number fail by their own; 0: none */
};

static struct store *store_new(void)
{
    struct store *store = calloc(1, sizeof(*store));

    assert_non_null(store);
    pawl__lock_init(&store->lock);
    pawl__cond_init(&store->changed);
    return store;
}

static void store_free(struct store *store)
{
    pawl__cond_done(&store->changed);
    pawl__lock_done(&store->lock);
    free(store);
}

static void gate_set(struct store *store, bool shut)
{
    pawl__lock(&store->lock);
    store->shut = shut;
    pawl__cond_broadcast(&store->changed);
    pawl__unlock(&store->lock);
}

static void gate_pass(struct store *store)
{
    pawl__lock(&store->lock);
    store->entered++;
    pawl__cond_broadcast(&store->changed);
    while (store->shut) {
        pawl__cond_wait(&store->changed, &store->lock);
    }
    pawl__unlock(&store->lock);
}

static void wait_for_entered(struct store *store, int batches)
{
    int64_t deadline_ns = in_seconds(60);
    bool in_time = true;

    pawl__lock(&store->lock);
    while (in_time && store->entered < batches) {
        in_time = pawl__cond_wait_until(&store->changed, &store->lock, deadline_ns);
    }
    pawl__unlock(&store->lock);
    assert_true(in_time);
}

static void append(struct store *store, struct entry *entry)
{
    if (store->refuse_number != 0 && entry->number == store->refuse_number) {
        pawl__fail(&entry->item.outcome, PAWL_CONFLICT, "number %d is refused", entry->number);
        return;
    }
    store->out_of_order += entry->number != store->last[entry->who] + 1;
    store->last[entry->who] = entry->number;
    entry->position = store->log_count;
    store->log[store->log_count++] = entry->who;
}

static pawl_status store_commit(void *context,
                                struct pawl__commit_item *const *items,
                                size_t count,
                                pawl_error *reterr)
{
    struct store *store = context;

    gate_pass(store);
    if (store->fail_batch != PAWL_OK) {
        return pawl__fail(reterr, store->fail_batch, "the disk is gone");
    }
    store->largest = count > store->largest ? count : store->largest;
    for (size_t i = 0; i < count; i++) {
        append(store, (struct entry *)items[i]);
    }
    return PAWL_OK;
}

static struct pawl__commit *start(struct store *store, size_t waiting_max)
{
    struct pawl__commit_options options = {
        "test", store_commit, store, PAWL__COMMIT_LIMITS_DEFAULT, NULL
    };
    struct pawl__commit *commit = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    options.limits.waiting_max = waiting_max;
    assert_ok(pawl__commit_new(&options, &commit, &error), &error);
    return commit;
}

static void entry_free(struct pawl__commit_item *item)
{
    struct entry *entry = (struct entry *)item;

    atomic_fetch_add(entry->freed, 1);
    free(entry);
}

static struct entry *entry_new(int who, int number, atomic_int *freed)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    assert_non_null(entry);
    *entry =
        (struct entry){ .item.free = entry_free, .who = who, .number = number, .freed = freed };
    return entry;
}

/* Submits from another thread and remembers how it ended. */
struct caller {
    struct pawl__thread thread;
    struct pawl__commit *commit;
    struct pawl__commit_item *item;
    int64_t deadline_ns;
    pawl_status status;
};

static void run_caller(void *context)
{
    struct caller *caller = context;

    caller->status = pawl__commit_submit(caller->commit, &caller->item, caller->deadline_ns, NULL);
}

static void call(struct caller *caller, struct pawl__commit *commit, struct entry *entry)
{
    pawl_error error = PAWL_ERROR_INIT;

    *caller =
        (struct caller){ .commit = commit, .item = &entry->item, .deadline_ns = in_seconds(60) };
    assert_ok(pawl__thread_start(&caller->thread, "caller", run_caller, caller, &error), &error);
}

static void assert_answer(struct caller *caller, pawl_status expected)
{
    assert_true(pawl__thread_join_until(&caller->thread, in_seconds(60)));
    assert_int_equal(caller->status, expected);
}

enum { THREADS = 16, EACH = 300 };

struct appender {
    struct pawl__thread thread;
    struct pawl__commit *commit;
    int who;
    int failures;
    int not_increasing;
};

static void run_appender(void *context)
{
    struct appender *appender = context;
    struct entry entry = { .who = appender->who }; /* on the stack: it waits for ever */
    struct pawl__commit_item *item = &entry.item;
    int before = -1;

    for (int i = 1; i <= EACH; i++) {
        entry.number = i;
        appender->failures +=
            pawl__commit_submit(appender->commit, &item, INT64_MAX, NULL) != PAWL_OK;
        appender->not_increasing += entry.position <= before;
        before = entry.position;
    }
}

static void test_many_callers_each_item_once_in_order(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    struct appender appenders[THREADS];
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t batches;
    uint64_t items;

    for (int i = 0; i < THREADS; i++) {
        appenders[i] = (struct appender){ .commit = commit, .who = i };
        assert_ok(pawl__thread_start(
                      &appenders[i].thread, "appender", run_appender, &appenders[i], &error),
                  &error);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(pawl__thread_join_until(&appenders[i].thread, in_seconds(60)));
        assert_int_equal(appenders[i].failures, 0);
        assert_int_equal(appenders[i].not_increasing, 0);
    }
    pawl__commit_counts(commit, &batches, &items);
    assert_ok(pawl__commit_stop(commit, true, in_seconds(60), &error), &error);
    pawl__commit_free(commit);
    assert_int_equal(items, THREADS * EACH);
    assert_true(batches <= items);
    assert_int_equal(store->log_count, THREADS * EACH);
    assert_int_equal(store->out_of_order, 0); /* each next number once: none lost, none twice */
    store_free(store);
}

static void test_one_commit_answers_all_who_came_meanwhile(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    struct entry first = { .who = 0, .number = 1 };
    struct entry entries[8];
    struct caller caller;
    struct caller callers[8];
    pawl_error error = PAWL_ERROR_INIT;
    atomic_int freed = 0;

    first.item.free = entry_free;
    first.freed = &freed;
    store->refuse_number = 7;
    gate_set(store, true);
    call(&caller, commit, &first);
    wait_for_entered(store, 1);
    for (int i = 0; i < 8; i++) {
        entries[i] = (struct entry){ .item.free = entry_free, .who = i + 1, .freed = &freed };
        entries[i].number = i == 3 ? 7 : 1;
        call(&callers[i], commit, &entries[i]);
    }
    gate_set(store, false);
    assert_answer(&caller, PAWL_OK);
    for (int i = 0; i < 8; i++) {
        assert_answer(&callers[i], i == 3 ? PAWL_CONFLICT : PAWL_OK);
    }
    assert_string_equal(entries[3].item.outcome.message, "number 7 is refused");
    assert_ok(pawl__commit_stop(commit, true, in_seconds(60), &error), &error);
    pawl__commit_free(commit);
    assert_int_equal(store->log_count, 8);
    assert_int_equal(atomic_load(&freed), 0);
    store_free(store);
}

static void test_a_failed_batch_fails_everybody_in_it_with_its_message(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    struct entry entry = { .number = 1 };
    struct pawl__commit_item *item = &entry.item;
    pawl_error error = PAWL_ERROR_INIT;

    store->fail_batch = PAWL_NO_SPACE;
    assert_status(pawl__commit_submit(commit, &item, INT64_MAX, &error), PAWL_NO_SPACE, &error);
    assert_message(&error, "the disk is gone");
    assert_ptr_equal(item, &entry.item);
    pawl__commit_free(commit); /* stops by itself */
    store_free(store);
}

/* Submits until the deadline happens to pass in flight: on a slow machine it may pass earlier, and
 * then the item comes back and is tried with more time. */
static pawl_status submit_into_shut_gate(struct pawl__commit *commit,
                                         struct pawl__commit_item **item)
{
    pawl_status status = PAWL_BUSY;

    for (int64_t ms = 5; status == PAWL_BUSY; ms *= 2) {
        assert_non_null(*item);
        int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + ms * NS_PER_MS;
        status = pawl__commit_submit(commit, item, deadline_ns, NULL);
    }
    return status;
}

static void test_a_deadline_in_flight_leaves_the_item_to_the_committer(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    atomic_int freed = 0;
    pawl_error error = PAWL_ERROR_INIT;

    gate_set(store, true);
    struct pawl__commit_item *item = &entry_new(0, 1, &freed)->item;
    assert_int_equal(submit_into_shut_gate(commit, &item), PAWL_TIMEOUT);
    assert_null(item);
    assert_int_equal(atomic_load(&freed), 0); /* commit_fn may still be reading it */

    /* Behind it nothing moves: the next one is withdrawn and stays its caller's. */
    struct entry *waiting = entry_new(0, 2, &freed);
    item = &waiting->item;
    assert_status(pawl__commit_submit(commit, &item, 0, &error), PAWL_BUSY, &error);
    assert_message(&error, "nothing was committed");
    assert_ptr_equal(item, &waiting->item);

    gate_set(store, false);
    assert_ok(pawl__commit_submit(commit, &item, in_seconds(60), &error), &error);
    assert_int_equal(waiting->position, 1); /* the one with the unknown outcome did arrive */
    assert_ok(pawl__commit_stop(commit, true, in_seconds(60), &error), &error);
    assert_int_equal(atomic_load(&freed), 1);
    free(waiting);
    pawl__commit_free(commit);
    store_free(store);
}

/* Short deadlines against a quick store: answers and deadlines meet at every possible moment. */
static void run_impatient(void *context)
{
    struct appender *appender = context;
    atomic_int freed = 0;
    int left_behind = 0;
    struct pawl__commit_item *item = NULL;

    for (int i = 0; i < EACH; i++) {
        if (item == NULL) {
            struct entry *entry = calloc(1, sizeof(*entry));
            *entry = (struct entry){ .item.free = entry_free, .freed = &freed };
            item = &entry->item;
        }
        int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + i % 50 * NS_PER_US;
        pawl_status status = pawl__commit_submit(appender->commit, &item, deadline_ns, NULL);
        left_behind += status == PAWL_TIMEOUT;
        appender->failures += (status == PAWL_TIMEOUT) != (item == NULL);
        appender->failures += status != PAWL_OK && status != PAWL_TIMEOUT && status != PAWL_BUSY;
    }
    free(item);
    /* This answer comes after all that was left behind has been freed, so `freed` may go. */
    struct entry last = { .who = 0 };
    item = &last.item;
    appender->failures += pawl__commit_submit(appender->commit, &item, INT64_MAX, NULL) != PAWL_OK;
    appender->failures += atomic_load(&freed) != left_behind;
}

static void test_deadlines_and_answers_may_meet_at_any_moment(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    struct appender appenders[4];
    pawl_error error = PAWL_ERROR_INIT;

    for (int i = 0; i < 4; i++) {
        appenders[i] = (struct appender){ .commit = commit, .who = i };
        assert_ok(pawl__thread_start(
                      &appenders[i].thread, "impatient", run_impatient, &appenders[i], &error),
                  &error);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(pawl__thread_join_until(&appenders[i].thread, in_seconds(60)));
        assert_int_equal(appenders[i].failures, 0);
    }
    pawl__commit_free(commit);
    store_free(store);
}

/* Asynchronous items: a chain that submits its next from its own callback. */
struct chain {
    struct entry entry;
    struct pawl__commit *commit;
    atomic_int *left;
    int refused;
};

static void chain_next(struct pawl__commit_item *item)
{
    struct chain *chain = (struct chain *)item;

    if (item->outcome.status == PAWL_OK && chain->entry.number < EACH) {
        chain->entry.number++;
        if (pawl__commit_submit_async(chain->commit, item, NULL) == PAWL_OK) {
            return;
        }
        chain->refused++;
    }
    atomic_fetch_sub(chain->left, 1);
}

static void test_callbacks_come_once_and_may_submit_again(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 1000);
    struct chain chains[8];
    atomic_int left = 8;
    pawl_error error = PAWL_ERROR_INIT;

    for (int i = 0; i < 8; i++) {
        chains[i] = (struct chain){ .commit = commit, .left = &left };
        chains[i].entry = (struct entry){ .item.done = chain_next, .who = i, .number = 1 };
        assert_ok(pawl__commit_submit_async(commit, &chains[i].entry.item, &error), &error);
    }
    struct entry last = { .who = 8 };
    struct pawl__commit_item *item = &last.item;
    while (atomic_load(&left) > 0) { /* each answer is an event: no sleep */
        last.number++;
        assert_ok(pawl__commit_submit(commit, &item, INT64_MAX, &error), &error);
    }
    pawl__commit_free(commit);
    assert_int_equal(store->out_of_order, 0);
    assert_int_equal(store->log_count, 8 * EACH + last.number);
    store_free(store);
}

static void count_done(struct pawl__commit_item *item)
{
    struct entry *entry = (struct entry *)item;

    atomic_fetch_add(entry->freed, 1);
}

static void test_stopping_ends_in_time_though_the_store_hangs(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 3);
    atomic_int done = 0;
    struct entry stuck = { .number = 1 };
    struct entry queued[3];
    struct caller hanging;
    struct caller waiting;
    pawl_error error = PAWL_ERROR_INIT;

    stuck.item.free = entry_free;
    gate_set(store, true);
    call(&hanging, commit, &stuck);
    wait_for_entered(store, 1);
    for (int i = 0; i < 3; i++) {
        queued[i] = (struct entry){ .item.done = count_done, .freed = &done };
        assert_ok(pawl__commit_submit_async(commit, &queued[i].item, &error), &error);
    }
    struct entry refused = { .item.done = count_done, .freed = &done };
    assert_status(pawl__commit_submit_async(commit, &refused.item, &error), PAWL_BUSY, &error);

    /* The deadline has passed already: what waits is answered, what is in flight is reported. */
    assert_status(pawl__commit_stop(commit, true, 0, &error), PAWL_TIMEOUT, &error);
    assert_message(&error, "a commit of 'test' did not come back");
    assert_int_equal(atomic_load(&done), 3);
    assert_int_equal(queued[2].item.outcome.status, PAWL_CLOSED);
    assert_status(pawl__commit_submit_async(commit, &refused.item, &error), PAWL_CLOSED, &error);
    struct entry late = { .item.free = entry_free };
    call(&waiting, commit, &late); /* blocking ones are refused as well */
    assert_answer(&waiting, PAWL_CLOSED);

    gate_set(store, false); /* it comes back after all */
    assert_answer(&hanging, PAWL_OK);
    assert_ok(pawl__commit_stop(commit, true, in_seconds(60), &error), &error);
    pawl__commit_free(commit);
    store_free(store);
}

static void test_freeing_a_hanging_commit_waits_for_nothing(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 8);
    atomic_int freed = 0;
    pawl_error error = PAWL_ERROR_INIT;

    gate_set(store, true);
    struct pawl__commit_item *item = &entry_new(0, 1, &freed)->item;
    assert_int_equal(submit_into_shut_gate(commit, &item), PAWL_TIMEOUT);
    assert_status(pawl__commit_stop(commit, true, 0, &error), PAWL_TIMEOUT, &error);
    pawl__commit_free(commit);
    assert_int_equal(atomic_load(&freed), 0);

    /* The thread comes back, frees the item that was left behind and then the rest. The leak
     * checker of the sanitizer build sees whether it did; `store` has to stay for it. */
    gate_set(store, false);
    for (int64_t deadline_ns = in_seconds(60); atomic_load(&freed) == 0;) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
        sched_yield();
    }
    store_free(store);
}

static void test_an_answer_that_gets_lost_is_an_error_though_it_is_committed(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct pawl__commit *commit = start(store, 8);
    struct entry entry = { .number = 1 };
    struct pawl__commit_item *item = &entry.item;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__failpoint_set("commit.batch.after=error:IO*1", &error), &error);
    assert_status(pawl__commit_submit(commit, &item, INT64_MAX, &error), PAWL_IO, &error);
    assert_ok(pawl__failpoint_set(NULL, &error), &error);
    entry.number = 2;
    assert_ok(pawl__commit_submit(commit, &item, INT64_MAX, &error), &error);
    pawl__commit_free(commit);
    assert_int_equal(store->log_count, 2);
    store_free(store);
}

static void test_without_memory_there_is_no_commit(void **state)
{
    (void)state;
    struct store *store = store_new();
    pawl_error error = PAWL_ERROR_INIT;
    const struct pawl__commit_options options = {
        "test", store_commit, store, PAWL__COMMIT_LIMITS_DEFAULT, NULL
    };
    struct pawl__commit_options wrong = options;

    FAULT_WALK (walk) {
        struct pawl__commit *commit = NULL;
        pawl_status status = pawl__commit_new(&options, &commit, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__commit_free(commit);
    }
    wrong.limits.waiting_max = 0;
    struct pawl__commit *commit = NULL;
    assert_status(pawl__commit_new(&wrong, &commit, &error), PAWL_INVALID, &error);
    assert_message(&error, "group commit 'test': waiting_max");
    store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_callers_each_item_once_in_order),
        cmocka_unit_test(test_one_commit_answers_all_who_came_meanwhile),
        cmocka_unit_test(test_a_failed_batch_fails_everybody_in_it_with_its_message),
        cmocka_unit_test(test_a_deadline_in_flight_leaves_the_item_to_the_committer),
        cmocka_unit_test(test_deadlines_and_answers_may_meet_at_any_moment),
        cmocka_unit_test(test_callbacks_come_once_and_may_submit_again),
        cmocka_unit_test(test_stopping_ends_in_time_though_the_store_hangs),
        cmocka_unit_test(test_freeing_a_hanging_commit_waits_for_nothing),
        cmocka_unit_test(test_an_answer_that_gets_lost_is_an_error_though_it_is_committed),
        cmocka_unit_test(test_without_memory_there_is_no_commit),
    };
    return cmocka_run_group_tests_name("commit", tests, NULL, NULL);
}
