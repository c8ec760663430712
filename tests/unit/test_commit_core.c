#include "lib/check.h"

#include "base/core/error.h"
#include "base/decide/group_commit.h"
#include "lib/trace.h"

enum { PEOPLE = 8 };

static const char *const names[PEOPLE] = { "ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal" };
enum { ANN, BOB, CAT, DAN, EVE, FAY };

struct fixture {
    struct trace trace;
    struct pawl__commit_core core;
    struct pawl__commit_item items[PEOPLE];
    struct pawl__commit_item *batch[PEOPLE];
    size_t batch_count;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .trace = trace_start() };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    trace_done(&f->trace);
    return 0;
}

static void start(struct fixture *f, struct pawl__commit_limits limits)
{
    assert_ok(pawl__commit_core_init(&f->core, &limits, &f->error), &f->error);
}

static const char *name_of(struct fixture *f, const struct pawl__commit_item *item)
{
    return names[item - f->items];
}

static void submits(struct fixture *f, int64_t at, int who, size_t bytes)
{
    bool wake = false;

    trace_at(&f->trace, at);
    f->items[who].bytes = bytes;
    pawl_status status = pawl__commit_core_submit(
        &f->core, &f->items[who], trace_now_ns(&f->trace), &wake, &f->error);
    trace_add(&f->trace,
              "%s submits%s%s",
              names[who],
              status == PAWL_OK ? "" : " -> ",
              status == PAWL_OK ? (wake ? ", wakes the committer" : "") : pawl_status_name(status));
}

/* The committer looks, and takes what is ready. */
static void looks(struct fixture *f, int64_t at)
{
    char text[128] = "";
    struct pawl__buf line = BUF_OVER(text);
    int64_t until_ns = 0;

    trace_at(&f->trace, at);
    switch (pawl__commit_core_next(&f->core, trace_now_ns(&f->trace), &until_ns)) {
    case PAWL__COMMIT_WAIT:
        pawl__buf_add_text(&line, " waits");
        break;
    case PAWL__COMMIT_WAIT_UNTIL:
        pawl__buf_add_format(&line, " waits until %d", (int)(until_ns / NS_PER_S));
        break;
    case PAWL__COMMIT_STOP:
        pawl__buf_add_text(&line, " stops");
        break;
    case PAWL__COMMIT_TAKE:
        pawl__buf_add_text(&line, " takes");
        f->batch_count = pawl__commit_core_begin_batch(&f->core, f->batch);
        for (size_t i = 0; i < f->batch_count; i++) {
            pawl__buf_add_format(&line, " %s", name_of(f, f->batch[i]));
        }
        break;
    }
    trace_add(&f->trace, "committer%s", text);
}

static void answers(struct fixture *f, int64_t at, const pawl_error *failure)
{
    char text[128] = "";
    struct pawl__buf line = BUF_OVER(text);

    trace_at(&f->trace, at);
    pawl__commit_core_answer(&f->core, f->batch, f->batch_count, trace_now_ns(&f->trace), failure);
    for (size_t i = 0; i < f->batch_count; i++) {
        pawl__buf_add_format(&line,
                             " %s %s%s",
                             name_of(f, f->batch[i]),
                             pawl_status_name(f->batch[i]->outcome.status),
                             f->batch[i]->given_up ? " (freed)" : "");
    }
    trace_add(&f->trace, "answers%s", text);
}

static void gives_up(struct fixture *f, int64_t at, int who)
{
    static const char *const meaning[] = {
        [PAWL__COMMIT_WAITING] = "nothing happened",
        [PAWL__COMMIT_IN_FLIGHT] = "outcome unknown",
        [PAWL__COMMIT_ANSWERED] = "the answer is there",
    };

    trace_at(&f->trace, at);
    enum pawl__commit_state was = pawl__commit_core_give_up(&f->core, &f->items[who]);
    trace_add(&f->trace, "%s gives up -> %s", names[who], meaning[was]);
}

static void test_what_arrives_during_a_commit_is_the_next_batch(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 8, 100, 8, 0, false, 0, 0 });
    looks(f, 0);
    submits(f, 1, ANN, 1);
    submits(f, 1, BOB, 1);
    looks(f, 1);
    submits(f, 2, CAT, 1);
    submits(f, 3, DAN, 1);
    answers(f, 4, NULL);
    looks(f, 4);
    answers(f, 5, NULL);
    looks(f, 5);
    assert_trace(&f->trace,
                 "[  0] committer waits\n"
                 "[  1] ann submits, wakes the committer\n"
                 "[  1] bob submits\n"
                 "[  1] committer takes ann bob\n"
                 "[  2] cat submits\n"
                 "[  3] dan submits\n"
                 "[  4] answers ann OK bob OK\n"
                 "[  4] committer takes cat dan\n"
                 "[  5] answers cat OK dan OK\n"
                 "[  5] committer waits\n");
    assert_int_equal(f->core.batches, 2);
    assert_int_equal(f->core.items, 4);
}

static void test_limits_cut_a_batch_and_keep_the_order(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 3, 10, 5, 0, false, 0, 0 });
    submits(f, 0, ANN, 6);
    submits(f, 0, BOB, 5); /* does not fit behind ann; cat would, but must not overtake */
    submits(f, 0, CAT, 1);
    submits(f, 0, DAN, 1);
    submits(f, 0, EVE, 1);
    submits(f, 0, FAY, 1); /* one past waiting_max */
    looks(f, 0);
    answers(f, 1, NULL);
    looks(f, 1);
    submits(f, 1, FAY, 11); /* one past batch_bytes_max */
    submits(f, 1, FAY, 10);
    answers(f, 2, NULL);
    looks(f, 2);
    answers(f, 3, NULL);
    looks(f, 3);
    assert_trace(&f->trace,
                 "[  0] ann submits, wakes the committer\n"
                 "[  0] bob submits, wakes the committer\n"
                 "[  0] cat submits\n"
                 "[  0] dan submits\n"
                 "[  0] eve submits\n"
                 "[  0] fay submits -> BUSY\n"
                 "[  0] committer takes ann\n"
                 "[  1] answers ann OK\n"
                 "[  1] committer takes bob cat dan\n"
                 "[  1] fay submits -> INVALID\n"
                 "[  1] fay submits\n"
                 "[  2] answers bob OK cat OK dan OK\n"
                 "[  2] committer takes eve\n"
                 "[  3] answers eve OK\n"
                 "[  3] committer takes fay\n");
}

static void test_lingering_ends_with_time_or_with_a_full_batch(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 3, 100, 8, 5 * NS_PER_S, false, 0, 0 });
    submits(f, 10, ANN, 1);
    looks(f, 10);
    submits(f, 12, BOB, 1);
    looks(f, 14);
    looks(f, 15);
    answers(f, 16, NULL);
    submits(f, 20, CAT, 1);
    submits(f, 21, DAN, 1);
    gives_up(f, 22, CAT); /* the next oldest decides how long it is waited */
    looks(f, 25);
    submits(f, 25, EVE, 1);
    submits(f, 25, FAY, 1);
    looks(f, 25);
    assert_trace(&f->trace,
                 "[ 10] ann submits, wakes the committer\n"
                 "[ 10] committer waits until 15\n"
                 "[ 12] bob submits\n"
                 "[ 14] committer waits until 15\n"
                 "[ 15] committer takes ann bob\n"
                 "[ 16] answers ann OK bob OK\n"
                 "[ 20] cat submits, wakes the committer\n"
                 "[ 21] dan submits\n"
                 "[ 22] cat gives up -> nothing happened\n"
                 "[ 25] committer waits until 26\n"
                 "[ 25] eve submits\n"
                 "[ 25] fay submits, wakes the committer\n"
                 "[ 25] committer takes dan eve fay\n");
}

static void test_regulars_are_waited_for_and_nobody_else(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 8, 100, 8, 5 * NS_PER_S, true, 0, 0 });
    submits(f, 10, ANN, 1); /* alone: nobody is waited for */
    looks(f, 10);
    submits(f, 11, BOB, 1);
    submits(f, 11, CAT, 1);
    answers(f, 12, NULL); /* three are about */
    looks(f, 12);
    submits(f, 13, ANN, 1);
    looks(f, 13);
    answers(f, 14, NULL);
    submits(f, 15, BOB, 1); /* three again, and one of them does not come */
    looks(f, 16);
    looks(f, 20);
    answers(f, 21, NULL);
    submits(f, 22, DAN, 1);
    looks(f, 22);
    assert_trace(&f->trace,
                 "[ 10] ann submits, wakes the committer\n"
                 "[ 10] committer takes ann\n"
                 "[ 11] bob submits\n"
                 "[ 11] cat submits\n"
                 "[ 12] answers ann OK\n"
                 "[ 12] committer waits until 17\n"
                 "[ 13] ann submits, wakes the committer\n"
                 "[ 13] committer takes bob cat ann\n"
                 "[ 14] answers bob OK cat OK ann OK\n"
                 "[ 15] bob submits, wakes the committer\n"
                 "[ 16] committer waits until 20\n"
                 "[ 20] committer takes bob\n"
                 "[ 21] answers bob OK\n"
                 "[ 22] dan submits, wakes the committer\n"
                 "[ 22] committer takes dan\n");
}

static void test_each_gets_its_own_answer_and_a_failed_batch_is_everybodys(void **state)
{
    struct fixture *f = *state;
    pawl_error disk = PAWL_ERROR_INIT;

    start(f, (struct pawl__commit_limits){ 8, 100, 8, 0, false, 0, 0 });
    for (int who = ANN; who <= CAT; who++) {
        submits(f, 0, who, 1);
    }
    looks(f, 0);
    pawl__fail(&f->items[BOB].outcome, PAWL_CONFLICT, "bob's id is there with other content");
    answers(f, 1, NULL);
    for (int who = ANN; who <= CAT; who++) {
        submits(f, 1, who, 1);
    }
    looks(f, 1);
    pawl__fail(&f->items[BOB].outcome, PAWL_CONFLICT, "undone with the rest");
    pawl__fail(&disk, PAWL_IO, "fsync 'x': Input/output error");
    answers(f, 2, &disk);
    assert_trace(&f->trace,
                 "[  0] ann submits, wakes the committer\n"
                 "[  0] bob submits\n"
                 "[  0] cat submits\n"
                 "[  0] committer takes ann bob cat\n"
                 "[  1] answers ann OK bob CONFLICT cat OK\n"
                 "[  1] ann submits, wakes the committer\n"
                 "[  1] bob submits\n"
                 "[  1] cat submits\n"
                 "[  1] committer takes ann bob cat\n"
                 "[  2] answers ann IO bob IO cat IO\n");
    assert_message(&f->items[CAT].outcome, "fsync 'x'");
}

static void test_who_gives_up_learns_what_is_known(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 2, 100, 8, 0, false, 0, 0 });
    submits(f, 0, ANN, 1);
    submits(f, 0, BOB, 1);
    submits(f, 0, CAT, 1);
    submits(f, 0, DAN, 1);
    looks(f, 0);
    gives_up(f, 1, ANN);
    gives_up(f, 1, CAT);
    answers(f, 2, NULL);
    gives_up(f, 2, BOB);
    looks(f, 2);
    submits(f, 3, CAT, 1); /* free to try again */
    answers(f, 4, NULL);
    looks(f, 4);
    assert_trace(&f->trace,
                 "[  0] ann submits, wakes the committer\n"
                 "[  0] bob submits, wakes the committer\n"
                 "[  0] cat submits\n"
                 "[  0] dan submits\n"
                 "[  0] committer takes ann bob\n"
                 "[  1] ann gives up -> outcome unknown\n"
                 "[  1] cat gives up -> nothing happened\n"
                 "[  2] answers ann OK (freed) bob OK\n"
                 "[  2] bob gives up -> the answer is there\n"
                 "[  2] committer takes dan\n"
                 "[  3] cat submits\n"
                 "[  4] answers dan OK\n"
                 "[  4] committer takes cat\n");
}

static void test_closing_drains_or_fails_what_waits(void **state)
{
    struct fixture *f = *state;

    start(f, (struct pawl__commit_limits){ 2, 100, 8, 60 * NS_PER_S, false, 0, 0 });
    submits(f, 0, ANN, 1);
    submits(f, 0, BOB, 1);
    submits(f, 0, CAT, 1);
    submits(f, 0, DAN, 1);
    submits(f, 0, EVE, 1);
    pawl__commit_core_close(&f->core);
    submits(f, 1, FAY, 1);
    looks(f, 1);
    struct pawl__commit_item *failed = pawl__commit_core_fail_waiting(&f->core);
    for (; failed != NULL; failed = failed->next) {
        trace_add(&f->trace, "%s %s", name_of(f, failed), pawl_status_name(failed->outcome.status));
    }
    answers(f, 2, NULL);
    looks(f, 2);
    assert_trace(&f->trace,
                 "[  0] ann submits, wakes the committer\n"
                 "[  0] bob submits, wakes the committer\n"
                 "[  0] cat submits\n"
                 "[  0] dan submits\n"
                 "[  0] eve submits\n"
                 "[  1] fay submits -> CLOSED\n"
                 "[  1] committer takes ann bob\n"
                 "[  1] cat CLOSED\n"
                 "[  1] dan CLOSED\n"
                 "[  1] eve CLOSED\n"
                 "[  2] answers ann OK bob OK\n"
                 "[  2] committer stops\n");
}

static void never_called(struct pawl__commit_item *item)
{
    (void)item;
    fail();
}

static void test_items_that_nobody_waits_for_leave_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct pawl__commit_item items[6] = { 0 };
    bool wake;

    start(f,
          (struct pawl__commit_limits){ .batch_items_max = 8,
                                        .batch_bytes_max = 100,
                                        .waiting_max = 5,
                                        .async_max = 3,
                                        .async_bytes_max = 10 });
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        items[i].bytes = 4;
        items[i].done = i < 4 ? never_called : NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        assert_ok(pawl__commit_core_submit(&f->core, &items[i], 0, &wake, &f->error), &f->error);
    }
    assert_status(
        pawl__commit_core_submit(&f->core, &items[2], 0, &wake, &f->error), PAWL_BUSY, &f->error);
    assert_message(&f->error, "8 bytes wait already");
    items[2].bytes = 2;
    assert_ok(pawl__commit_core_submit(&f->core, &items[2], 0, &wake, &f->error), &f->error);
    items[3].bytes = 0;
    assert_status(
        pawl__commit_core_submit(&f->core, &items[3], 0, &wake, &f->error), PAWL_BUSY, &f->error);
    assert_message(&f->error, "3 items wait already");
    for (size_t i = 4; i < 6; i++) {
        assert_ok(pawl__commit_core_submit(&f->core, &items[i], 0, &wake, &f->error), &f->error);
    }
}

static void test_limits_are_checked_by_name(void **state)
{
    struct fixture *f = *state;
    static const struct {
        struct pawl__commit_limits limits;
        const char *name;
    } wrong[] = {
        { { 0, 1, 1, 0, false, 0, 0 }, "batch_items_max is 0" },
        { { PAWL__COMMIT_BATCH_MAX + 1, 1, 1, 0, false, 0, 0 }, "batch_items_max is 65537" },
        { { 1, 0, 1, 0, false, 0, 0 }, "batch_bytes_max" },
        { { 1, 1, 0, 0, false, 0, 0 }, "waiting_max" },
        { { 1, 1, 1, -1, false, 0, 0 }, "linger_ns is -1" },
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(
            pawl__commit_core_init(&f->core, &wrong[i].limits, &f->error), PAWL_INVALID, &f->error);
        assert_message(&f->error, wrong[i].name);
    }
    start(f, (struct pawl__commit_limits){ PAWL__COMMIT_BATCH_MAX, 1, 1, INT64_MAX, false, 0, 0 });
    submits(f, 5, ANN, 1); /* five seconds and for ever do not wrap around */
    int64_t until_ns = 0;
    f->core.limits.batch_bytes_max = 2;
    assert_int_equal(pawl__commit_core_next(&f->core, trace_now_ns(&f->trace), &until_ns),
                     PAWL__COMMIT_WAIT_UNTIL);
    assert_true(until_ns == INT64_MAX);
}

/* Any order of events: an item that is submitted is committed once, in the order of submission,
 * unless it was withdrawn before its turn. */
enum { SEEDS = 200, EVENTS = 400, ITEMS = 24 };

struct walk {
    struct pawl__commit_core core;
    struct pawl__commit_item items[ITEMS];
    unsigned submitted[ITEMS]; /* number of the submission, 0: not under way */
    struct pawl__commit_item *batch[ITEMS];
    size_t batch_count;
    unsigned submissions;
    unsigned last_taken;
    unsigned taken;
    unsigned withdrawn;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return *seed >> 33;
}

static void walk_submit(struct walk *walk, size_t who, int64_t now)
{
    bool wake;

    if (walk->submitted[who] == 0
        && pawl__commit_core_submit(&walk->core, &walk->items[who], now, &wake, NULL) == PAWL_OK) {
        walk->submitted[who] = ++walk->submissions;
    }
}

static void walk_take(struct walk *walk, int64_t now)
{
    int64_t until_ns;

    if (walk->batch_count > 0
        || pawl__commit_core_next(&walk->core, now, &until_ns) != PAWL__COMMIT_TAKE) {
        return;
    }
    walk->batch_count = pawl__commit_core_begin_batch(&walk->core, walk->batch);
    size_t bytes = 0;
    for (size_t i = 0; i < walk->batch_count; i++) {
        unsigned number = walk->submitted[walk->batch[i] - walk->items];
        assert_true(number > walk->last_taken); /* in order, so also: never twice */
        walk->last_taken = number;
        bytes += walk->batch[i]->bytes;
    }
    walk->taken += (unsigned)walk->batch_count;
    assert_true(walk->batch_count <= walk->core.limits.batch_items_max);
    assert_true(bytes <= walk->core.limits.batch_bytes_max);
}

static void walk_answer(struct walk *walk)
{
    if (walk->batch_count > 0) {
        pawl__commit_core_answer(&walk->core, walk->batch, walk->batch_count, 0, NULL);
        for (size_t i = 0; i < walk->batch_count; i++) {
            walk->submitted[walk->batch[i] - walk->items] = 0;
        }
        walk->batch_count = 0;
    }
}

static void walk_give_up(struct walk *walk, size_t who)
{
    if (walk->submitted[who] != 0
        && pawl__commit_core_give_up(&walk->core, &walk->items[who]) == PAWL__COMMIT_WAITING) {
        walk->submitted[who] = 0;
        walk->withdrawn++;
    }
}

static void walk_event(struct walk *walk, uint64_t *seed, int64_t now)
{
    size_t who = next_random(seed) % ITEMS;

    switch (next_random(seed) % 8) {
    case 0:
        walk_give_up(walk, who);
        break;
    case 1:
        walk_answer(walk);
        break;
    case 2:
    case 3:
        walk_take(walk, now);
        break;
    default:
        walk_submit(walk, who, now);
    }
}

static void test_in_any_order_of_events_each_item_is_taken_once(void **state)
{
    (void)state;
    for (uint64_t start_seed = 1; start_seed <= SEEDS; start_seed++) {
        uint64_t seed = start_seed;
        struct pawl__commit_limits limits = { 1 + next_random(&seed) % 6,
                                              8 + next_random(&seed) % 20,
                                              4 + next_random(&seed) % 30,
                                              (int64_t)(next_random(&seed) % 5),
                                              next_random(&seed) % 2 == 0,
                                              0,
                                              0 };
        struct walk walk = { 0 };
        assert_int_equal(pawl__commit_core_init(&walk.core, &limits, NULL), PAWL_OK);
        for (size_t i = 0; i < ITEMS; i++) {
            walk.items[i].bytes = next_random(&seed) % 9;
        }
        for (int64_t now = 0; now < EVENTS; now++) {
            walk_event(&walk, &seed, now);
        }
        pawl__commit_core_close(&walk.core);
        do { /* drained: nothing may be left behind */
            walk_answer(&walk);
            walk_take(&walk, EVENTS);
        } while (walk.batch_count > 0);
        assert_int_equal(walk.taken + walk.withdrawn, walk.submissions);
        assert_int_equal(walk.core.waiting_bytes, 0);
        assert_int_equal(walk.core.items, walk.taken);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_arrives_during_a_commit_is_the_next_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_limits_cut_a_batch_and_keep_the_order, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_lingering_ends_with_time_or_with_a_full_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_regulars_are_waited_for_and_nobody_else, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_each_gets_its_own_answer_and_a_failed_batch_is_everybodys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_gives_up_learns_what_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closing_drains_or_fails_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_items_that_nobody_waits_for_leave_room_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits_are_checked_by_name, setup, teardown),
        cmocka_unit_test(test_in_any_order_of_events_each_item_is_taken_once),
    };
    return cmocka_run_group_tests_name("commit_core", tests, NULL, NULL);
}
