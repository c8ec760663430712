/* Followers of complete turns and folds that go on, while turns begin, end and are given up around
 * them: in the end they have seen what somebody sees who comes when all is over. */
#include <stdio.h>
#include <stdlib.h>

#include "base/thread/thread.h"
#include "ledger/core/internal.h"
#include "lib/ledger_fixture.h"

enum {
    CONDUCTORS = 3,
    TURNS = 25,
    FOLLOWERS = 2,
    SEEN_MAX = 8192,
    LONG_MS = 60000,
};

/* Offsets in the order in which they came. */
struct seen {
    uint64_t offsets[SEEN_MAX];
    size_t count;
};

struct helper {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    int number;
    struct seen seen;
    pawl_status status;
    pawl_error err;
};

static bool is_last(const pawl_event *event)
{
    return event->id.len == 4 && memcmp(event->id.data, "last", 4) == 0;
}

static pawl_status see(struct seen *seen, const pawl_event *event)
{
    if (seen->count == SEEN_MAX) {
        return PAWL_NO_SPACE;
    }
    seen->offsets[seen->count++] = event->offset;
    return PAWL_OK;
}

/* --- who writes --- */

/* What becomes of an attempt: left open for the next one to find, given up, or what it was for. */
enum fate { LEFT, GIVEN_UP, COMMITTED };

static enum fate fate_of(int conductor, int64_t turn, uint32_t attempt)
{
    return attempt > 3
               ? COMMITTED
               : (enum fate)(((int64_t)conductor + (int64_t)turn * 5 + (int64_t)attempt * 2) % 3);
}

static pawl_status play_attempt(struct helper *helper, pawl_view run, int64_t turn, bool *ret_done)
{
    const pawl_event events[] = {
        { .size = sizeof(pawl_event),
          .kind = pawl_view_of("k"),
          .actor = pawl_view_of("a"),
          .payload = pawl_view_of("1") },
        { .size = sizeof(pawl_event),
          .kind = pawl_view_of("k"),
          .actor = pawl_view_of("b"),
          .payload = pawl_view_of("2") },
    };
    pawl_turn *handle = NULL;
    pawl_status status = pawl_turn_begin(helper->ledger, run, turn, &handle, &helper->err);

    for (size_t i = 0; i < COUNT_OF(events) && status == PAWL_OK; i++) {
        status = pawl_turn_append(handle, &events[i], 1, NULL, &helper->err);
    }
    if (status == PAWL_OK) {
        enum fate fate = fate_of(helper->number, turn, pawl_turn_attempt(handle));
        *ret_done = fate == COMMITTED;
        if (fate != LEFT) {
            status = fate == COMMITTED
                         ? pawl_turn_commit(handle, &helper->err)
                         : pawl_turn_abandon(handle, pawl_view_of("fate"), &helper->err);
        }
    }
    pawl_turn_free(handle);
    return status;
}

static void run_conductor(void *context)
{
    struct helper *helper = context;
    char run[16];
    char id[32];

    snprintf(run, sizeof(run), "c%d", helper->number);
    for (int64_t turn = 0; turn < TURNS && helper->status == PAWL_OK; turn++) {
        for (bool done = false; !done && helper->status == PAWL_OK;) {
            helper->status = play_attempt(helper, pawl_view_of(run), turn, &done);
        }
        if (helper->status == PAWL_OK) { /* and something outside of turns */
            snprintf(id, sizeof(id), "%s-%lld", run, (long long)turn);
            pawl_event event = event_of(id, turn, "0");
            helper->status = pawl_ledger_append(helper->ledger, &event, NULL, &helper->err);
        }
    }
}

/* --- who reads --- */

static void run_follower(void *context)
{
    struct helper *helper = context;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    const pawl_event *event;
    pawl_reader *reader = NULL;

    options.complete_turns = true;
    helper->status = pawl_reader_open(helper->ledger, &options, &reader, &helper->err);
    for (bool last = false; !last && helper->status == PAWL_OK;) {
        helper->status = pawl_reader_next(reader, &event, &helper->err);
        if (helper->status == PAWL_NOT_FOUND) {
            helper->status = pawl_reader_wait(reader, LONG_MS, &helper->err);
        } else if (helper->status == PAWL_OK) {
            last = is_last(event);
            helper->status = see(&helper->seen, event);
        }
    }
    pawl_reader_free(reader);
}

struct folding {
    struct seen *seen;
    bool last;
};

static pawl_status fold_step(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct folding *folding = context;

    (void)reterr;
    folding->last = is_last(event);
    return see(folding->seen, event);
}

/* Goes on from what it covered, again and again. */
static void run_folder(void *context)
{
    struct helper *helper = context;
    struct folding folding = { .seen = &helper->seen };
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;

    while (!folding.last && helper->status == PAWL_OK) {
        helper->status = pawl_ledger_fold(
            helper->ledger, &options, fold_step, &folding, &options.from, &helper->err);
    }
}

/* --- all of them --- */

static void start(struct helper *helper, void (*main)(void *context))
{
    pawl_error err = PAWL_ERROR_INIT; /* the helper's own is the thread's from here on */

    assert_ok(pawl__thread_start(&helper->thread, "helper", main, helper, &err), &err);
}

static void end(struct helper *helper)
{
    pawl__thread_join(&helper->thread);
    assert_ok(helper->status, &helper->err);
}

static void assert_saw(const struct helper *helper, const struct seen *expected)
{
    for (size_t i = 0; i < helper->seen.count && i < expected->count; i++) {
        assert_int_equal(helper->seen.offsets[i], expected->offsets[i]);
    }
    assert_int_equal(helper->seen.count, expected->count);
}

/* Readers have a handle of their own, as in another process, where there can be one. */
static pawl_ledger *open_beside(struct ledger_fixture *f, bool read_only)
{
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = f->ledger;

    options.read_only = read_only;
    if (strcmp(f->backend, "memory") != 0) {
        assert_ok(pawl_ledger_open(f->location, &options, &ledger, &f->err), &f->err);
    }
    return ledger;
}

static void close_beside(struct ledger_fixture *f, pawl_ledger *beside)
{
    if (beside != f->ledger) {
        pawl_ledger_close(beside, 0, NULL);
    }
}

static void test_what_counts_is_seen_once_and_whole_while_turns_come_and_go(void **state)
{
    struct ledger_fixture *f = *state;
    static struct helper conductors[CONDUCTORS];
    static struct helper readers[FOLLOWERS + 1];
    static struct helper late[2];
    pawl_ledger *beside = open_beside(f, false);

    for (int i = 0; i <= FOLLOWERS; i++) {
        readers[i] = (struct helper){ .ledger = beside };
        start(&readers[i], i < FOLLOWERS ? run_follower : run_folder);
    }
    for (int i = 0; i < CONDUCTORS; i++) {
        conductors[i] = (struct helper){ .ledger = f->ledger, .number = i };
        start(&conductors[i], run_conductor);
    }
    for (int i = 0; i < CONDUCTORS; i++) {
        end(&conductors[i]);
    }
    append_one(f, "last", 0, "0");
    for (int i = 0; i < 2; i++) { /* who comes when all is over */
        late[i] = (struct helper){ .ledger = f->ledger };
    }
    run_follower(&late[0]);
    run_folder(&late[1]);
    assert_ok(late[0].status, &late[0].err);
    assert_ok(late[1].status, &late[1].err);
    /* Begin, two events, commit; one outside; and the last. */
    assert_int_equal(late[0].seen.count, CONDUCTORS * TURNS * 5 + 1);
    assert_int_equal(late[1].seen.count, CONDUCTORS * TURNS * 3 + 1);
    for (int i = 0; i <= FOLLOWERS; i++) {
        end(&readers[i]);
        assert_saw(&readers[i], i < FOLLOWERS ? &late[0].seen : &late[1].seen);
    }
    close_beside(f, beside);
}

/* --- the order of two questions --- */

/* A reader asks how far the log reaches and which turns are open. Behind this backend a turn begins
 * and writes between the two, whichever comes first. */
struct between {
    struct ledger_backend base;
    struct ledger_backend *real;
    struct ledger_fixture *f;
    pawl_turn *turn; /* NULL: nothing has happened yet */
};

static void something_happens(struct ledger_backend *base)
{
    struct between *between = (struct between *)base; /* its first member */

    if (between->turn == NULL) {
        between->turn = begin_turn(between->f, "r", 7);
        turn_says(between->f, between->turn, "1 2");
    }
}

static pawl_status head_then_something(struct ledger_backend *base,
                                       pawl_ledger_head *ret_head,
                                       pawl_error *reterr)
{
    struct ledger_backend *real = ((struct between *)base)->real;
    pawl_status status = real->ops->head(real, ret_head, reterr);

    something_happens(base);
    return status;
}

static pawl_status turns_then_something(struct ledger_backend *base,
                                        uint64_t since,
                                        pawl_turn_visit visit,
                                        void *context,
                                        pawl_error *reterr)
{
    struct ledger_backend *real = ((struct between *)base)->real;
    pawl_status status = real->ops->unfinished(real, since, visit, context, reterr);

    something_happens(base);
    return status;
}

static pawl_status just_read(struct ledger_backend *base,
                             const struct ledger_query *query,
                             ledger_event_sink sink,
                             void *context,
                             pawl_error *reterr)
{
    struct ledger_backend *real = ((struct between *)base)->real;

    return real->ops->read(real, query, sink, context, reterr);
}

static void test_a_turn_that_begins_between_two_questions_is_not_shown(void **state)
{
    static const struct ledger_backend_ops ops = {
        .name = "between",
        .head = head_then_something,
        .unfinished = turns_then_something,
        .read = just_read,
    };
    struct ledger_fixture *f = *state;
    struct ledger_fixture reading = *f;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;

    append_one(f, "1", 0, "1");
    reading.ledger = open_beside(f, true);
    struct between between = { { &ops }, reading.ledger->backend, f, NULL };
    reading.ledger->backend = &between.base;
    options.complete_turns = true;
    assert_reads(&reading, &options, "1 r/0 k 1\nat 1\n");
    reading.ledger->backend = between.real;
    assert_int_equal(latest_offset(f), 4); /* it was there all the same */
    pawl_turn_free(between.turn);
    close_beside(f, reading.ledger);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_a_turn_that_begins_between_two_questions_is_not_shown),
        LEDGER_TEST(test_what_counts_is_seen_once_and_whole_while_turns_come_and_go),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
