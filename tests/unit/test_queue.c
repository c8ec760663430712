#include "lib/check.h"

#include <stdatomic.h>

#include "base/os/clock.h"
#include "base/thread/queue.h"
#include "lib/fault.h"

static int64_t in_seconds(int64_t seconds)
{
    return pawl__monotonic_ns(pawl__clock_real()) + seconds * NS_PER_S;
}

static struct pawl__queue *new_queue(size_t capacity)
{
    struct pawl__queue *queue = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__queue_new(capacity, &queue, &error), &error);
    return queue;
}

static void test_items_come_out_in_order_and_the_bound_holds(void **state)
{
    (void)state;
    AUTO(pawl__queue_free_p) struct pawl__queue *queue = new_queue(3);
    pawl_error error = PAWL_ERROR_INIT;
    int items[5];
    void *item = &error;

    for (int round = 0; round < 5; round++) { /* the ring turns */
        for (int i = 0; i < 3; i++) {
            assert_ok(pawl__queue_push(queue, &items[i], 0, NULL, &error), &error);
        }
        assert_status(pawl__queue_push(queue, &items[3], 0, NULL, &error), PAWL_TIMEOUT, &error);
        assert_message(&error, "stayed full");
        for (int i = 0; i < 3; i++) {
            assert_ok(pawl__queue_pop(queue, 0, NULL, &item, &error), &error);
            assert_ptr_equal(item, &items[i]);
        }
        assert_status(pawl__queue_pop(queue, 0, NULL, &item, &error), PAWL_TIMEOUT, &error);
        assert_ptr_equal(item, &items[2]); /* a failed call leaves its outputs alone */
    }
}

static void test_a_closed_queue_refuses_and_drains(void **state)
{
    (void)state;
    AUTO(pawl__queue_free_p) struct pawl__queue *queue = new_queue(2);
    pawl_error error = PAWL_ERROR_INIT;
    int items[2];
    void *item = NULL;

    assert_ok(pawl__queue_push(queue, &items[0], 0, NULL, &error), &error);
    pawl__queue_close(queue);
    pawl__queue_close(queue);
    assert_status(pawl__queue_push(queue, &items[1], INT64_MAX, NULL, &error), PAWL_CLOSED, &error);
    assert_ok(pawl__queue_pop(queue, INT64_MAX, NULL, &item, &error), &error);
    assert_ptr_equal(item, &items[0]);
    assert_status(pawl__queue_pop(queue, INT64_MAX, NULL, &item, &error), PAWL_CLOSED, &error);
}

static void test_a_cancelled_call_moves_nothing(void **state)
{
    (void)state;
    AUTO(pawl__queue_free_p) struct pawl__queue *queue = new_queue(2);
    struct pawl__cancel cancel;
    pawl_error error = PAWL_ERROR_INIT;
    int one;
    void *item = NULL;

    pawl__cancel_init(&cancel, NULL);
    assert_ok(pawl__queue_push(queue, &one, 0, &cancel, &error), &error);
    pawl__cancel_now(&cancel);
    assert_status(pawl__queue_push(queue, &one, 0, &cancel, &error), PAWL_CANCELLED, &error);
    assert_status(
        pawl__queue_pop(queue, INT64_MAX, &cancel, &item, &error), PAWL_CANCELLED, &error);
    assert_ok(pawl__queue_pop(queue, 0, NULL, &item, &error), &error); /* it is still there */
    pawl__cancel_done(&cancel);
}

static void test_a_queue_without_memory_is_none(void **state)
{
    (void)state;
    struct pawl__queue *queue = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    FAULT_WALK (walk) {
        pawl_status status = pawl__queue_new(4, &queue, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    pawl__queue_free(queue);
    pawl__queue_free(NULL);
}

struct blocked {
    struct pawl__queue *queue;
    struct pawl__cancel *cancel;
    void *push; /* NULL: pop */
    void *item;
    pawl_status status;
};

static void run_blocked(void *context)
{
    struct blocked *blocked = context;
    int64_t deadline_ns = in_seconds(60);

    blocked->status =
        blocked->push != NULL
            ? pawl__queue_push(blocked->queue, blocked->push, deadline_ns, blocked->cancel, NULL)
            : pawl__queue_pop(blocked->queue, deadline_ns, blocked->cancel, &blocked->item, NULL);
}

static void start_blocked(struct pawl__thread *thread, struct blocked *blocked)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__thread_start(thread, "blocked", run_blocked, blocked, &error), &error);
}

static void test_closing_and_cancelling_wake_who_waits(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    int one;

    for (int round = 0; round < 200; round++) {
        AUTO(pawl__queue_free_p) struct pawl__queue *full = new_queue(1);
        AUTO(pawl__queue_free_p) struct pawl__queue *empty = new_queue(1);
        struct pawl__cancel cancel;
        pawl__cancel_init(&cancel, NULL);
        assert_ok(pawl__queue_push(full, &one, 0, NULL, &error), &error);
        struct blocked blocked[] = {
            { .queue = full, .push = &one },
            { .queue = empty },
            { .queue = full, .push = &one, .cancel = &cancel },
            { .queue = empty, .cancel = &cancel },
        };
        struct pawl__thread threads[4] = { 0 };
        for (int i = 0; i < 4; i++) {
            start_blocked(&threads[i], &blocked[i]);
        }
        pawl__cancel_now(&cancel);
        for (int i = 2; i < 4; i++) {
            assert_true(pawl__thread_join_until(&threads[i], in_seconds(30)));
            assert_int_equal(blocked[i].status, PAWL_CANCELLED);
        }
        pawl__queue_close(full);
        pawl__queue_close(empty);
        for (int i = 0; i < 2; i++) {
            assert_true(pawl__thread_join_until(&threads[i], in_seconds(30)));
            assert_int_equal(blocked[i].status, PAWL_CLOSED);
        }
        pawl__cancel_done(&cancel);
    }
}

/* One signal for an item, two who wait, and the one it wakes is cancelled at that moment: the item
 * must still reach the other. */
static void test_a_cancelled_consumer_does_not_swallow_the_wake_up(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    int one;

    for (int round = 0; round < 1000; round++) {
        AUTO(pawl__queue_free_p) struct pawl__queue *queue = new_queue(4);
        struct pawl__cancel cancel;
        pawl__cancel_init(&cancel, NULL);
        struct blocked fickle = { .queue = queue, .cancel = &cancel };
        struct blocked steady = { .queue = queue };
        struct pawl__thread threads[2] = { 0 };
        start_blocked(&threads[0], &fickle);
        start_blocked(&threads[1], &steady);
        assert_ok(pawl__queue_push(queue, &one, 0, NULL, &error), &error);
        pawl__cancel_now(&cancel);
        assert_true(pawl__thread_join_until(&threads[0], in_seconds(30)));
        if (fickle.status == PAWL_OK) { /* it was quicker than the cancellation: feed the other */
            assert_ok(pawl__queue_push(queue, &one, 0, NULL, &error), &error);
        }
        assert_true(pawl__thread_join_until(&threads[1], in_seconds(30)));
        assert_int_equal(steady.status, PAWL_OK);
        pawl__cancel_done(&cancel);
    }
}

enum { PRODUCERS = 4, CONSUMERS = 4, EACH = 5000 };

struct parcel {
    int producer;
    int number;
    atomic_int seen;
};

static struct parcel parcels[PRODUCERS][EACH];

struct producer {
    struct pawl__queue *queue;
    int index;
    int refused;
};

static void produce(void *context)
{
    struct producer *producer = context;

    for (int i = 0; i < EACH; i++) {
        struct parcel *parcel = &parcels[producer->index][i];
        parcel->producer = producer->index;
        parcel->number = i;
        /* Every other push tries with a deadline that is over, as a busy caller would. */
        pawl_status status = PAWL_TIMEOUT;
        for (int try = 0; status == PAWL_TIMEOUT; try++) {
            status = pawl__queue_push(
                producer->queue, parcel, try % 2 == 0 ? 0 : in_seconds(60), NULL, NULL);
        }
        producer->refused += status != PAWL_OK;
    }
}

struct consumer {
    struct pawl__queue *queue;
    int last[PRODUCERS];
    int out_of_order;
    pawl_status end;
};

static void consume(void *context)
{
    struct consumer *consumer = context;
    void *item = NULL;

    for (int i = 0; i < PRODUCERS; i++) {
        consumer->last[i] = -1;
    }
    while ((consumer->end = pawl__queue_pop(consumer->queue, in_seconds(60), NULL, &item, NULL))
           == PAWL_OK) {
        struct parcel *parcel = item;
        atomic_fetch_add(&parcel->seen, 1);
        consumer->out_of_order += parcel->number <= consumer->last[parcel->producer];
        consumer->last[parcel->producer] = parcel->number;
    }
}

static void test_many_threads_lose_nothing_and_see_nothing_twice(void **state)
{
    (void)state;
    AUTO(pawl__queue_free_p) struct pawl__queue *queue = new_queue(7);
    struct pawl__thread threads[PRODUCERS + CONSUMERS] = { 0 };
    struct producer producers[PRODUCERS];
    struct consumer consumers[CONSUMERS];
    pawl_error error = PAWL_ERROR_INIT;

    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ .queue = queue, .index = i };
        assert_ok(pawl__thread_start(&threads[i], "producer", produce, &producers[i], &error),
                  &error);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i] = (struct consumer){ .queue = queue };
        assert_ok(
            pawl__thread_start(&threads[PRODUCERS + i], "consumer", consume, &consumers[i], &error),
            &error);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        assert_true(pawl__thread_join_until(&threads[i], in_seconds(60)));
        assert_int_equal(producers[i].refused, 0);
    }
    pawl__queue_close(queue);
    for (int i = 0; i < CONSUMERS; i++) {
        assert_true(pawl__thread_join_until(&threads[PRODUCERS + i], in_seconds(60)));
        assert_int_equal(consumers[i].end, PAWL_CLOSED);
        assert_int_equal(consumers[i].out_of_order, 0);
    }
    for (int p = 0; p < PRODUCERS; p++) {
        for (int i = 0; i < EACH; i++) {
            assert_int_equal(atomic_load(&parcels[p][i].seen), 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_come_out_in_order_and_the_bound_holds),
        cmocka_unit_test(test_a_closed_queue_refuses_and_drains),
        cmocka_unit_test(test_a_cancelled_call_moves_nothing),
        cmocka_unit_test(test_a_queue_without_memory_is_none),
        cmocka_unit_test(test_closing_and_cancelling_wake_who_waits),
        cmocka_unit_test(test_a_cancelled_consumer_does_not_swallow_the_wake_up),
        cmocka_unit_test(test_many_threads_lose_nothing_and_see_nothing_twice),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
