/* The feed of changes: each change once, in an order that can be resumed, until retention removes it. */
#include "lib/work_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/thread/thread.h"
#include "lib/check.h"

enum { PATIENCE_MS = 60000 };

static bool add_change(void *context, const pawl_work_change *change)
{
    struct pawl__buf *text = context;

    pawl__buf_add_format(
        text, "%.*s:%s>%s ", VIEW_ARGS(change->work_item_id), change->from, change->to);
    return true;
}

/* What comes after a position, "a:>pending a:pending>in_progress ", and moves it. PostgreSQL shows a change when
 * all older transactions have ended, also those of its own background workers: so with some patience. */
static const char *read_on(struct work_fixture *f,
                           const pawl_change_filter *filter,
                           pawl_work_position *position,
                           const char *expected)
{
    static char space[4096];
    struct pawl__buf text = BUF_OVER(space);

    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        assert_ok(
            pawl_work_changes(f->work, filter, 100, position, add_change, &text, NULL, &f->err),
            &f->err);
        if (text.len >= strlen(expected)) {
            break;
        }
        usleep(1000);
    }
    space[text.len] = '\0';
    return space;
}

#define assert_changes(f, filter, position, expected) \
    assert_string_equal(read_on(f, filter, position, expected), expected)

static void submit_typed(struct work_fixture *f, const char *id, const char *task, const char *type)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of(task);
    submission.work_type = pawl_view_of(type);
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

static void test_each_change_comes_once_and_in_order(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_position position = { 0, 0 };

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_changes(f, NULL, &position, "a:>pending a:pending>in_progress ");
    assert_ok(complete(f, "a", token), &f->err);
    submit(f, "b", "T", 0);
    assert_changes(f, NULL, &position, "a:in_progress>completed b:>pending ");
    assert_changes(f, NULL, &position, "");
}

static void test_a_reader_at_the_end_sees_only_what_follows(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_position seen = { 0, 0 };
    pawl_work_position end = { 0, 0 };

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_changes(f, NULL, &seen, "a:>pending ");
    assert_ok(pawl_work_changes_end(f->work, &end, &f->err), &f->err);
    submit(f, "b", "T", 0);
    assert_changes(f, NULL, &end, "b:>pending ");
}

static void test_a_filter_leaves_out_and_the_position_moves_on(void **state)
{
    struct work_fixture *f = *state;
    pawl_change_filter filter = PAWL_CHANGE_FILTER_INIT;
    pawl_work_position position = { 0, 0 };

    make_task(f, "T");
    make_task(f, "U");
    submit_typed(f, "a", "T", "mail");
    submit_typed(f, "b", "U", "mail");
    submit_typed(f, "c", "U", "print");
    filter.work_type = pawl_view_of("mail");
    assert_changes(f, &filter, &position, "a:>pending b:>pending ");
    position = (pawl_work_position){ 0, 0 };
    filter.task_id = pawl_view_of("U");
    assert_changes(f, &filter, &position, "b:>pending ");
    filter = (pawl_change_filter)PAWL_CHANGE_FILTER_INIT;
    filter.statuses = 1U << PAWL_ITEM_IN_PROGRESS;
    position = (pawl_work_position){ 0, 0 };
    assert_changes(f, &filter, &position, "");
    uint64_t count = 7;
    assert_ok(
        pawl_work_changes(f->work, &filter, 100, &position, add_change, NULL, &count, &f->err),
        &f->err);
    assert_true(count == 0 || work_is(f, "postgres")); /* it has read them already */
    claim_it(f, "w", "a");
    assert_changes(f, &filter, &position, "a:pending>in_progress ");
}

static bool see_first(void *context, const pawl_work_change *change)
{
    (void)snprintf(context, 32, "%.*s", VIEW_ARGS(change->work_item_id));
    return false;
}

static void test_a_reader_may_stop_at_any_change_and_resume(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_position position = { 0, 0 };
    pawl_work_position all = { 0, 0 };
    char text[PAWL_WORK_POSITION_SIZE];
    char id[32] = "";

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    submit(f, "c", "T", 0);
    assert_changes(f, NULL, &all, "a:>pending b:>pending c:>pending ");
    assert_ok(pawl_work_changes(f->work, NULL, 100, &position, see_first, id, NULL, &f->err),
              &f->err);
    assert_string_equal(id, "a");
    assert_ok(pawl_work_position_format(&position, text, sizeof(text), &f->err), &f->err);
    position = (pawl_work_position){ 0, 0 };
    assert_ok(pawl_work_position_parse(pawl_view_of(text), &position, &f->err), &f->err);
    assert_changes(f, NULL, &position, "b:>pending c:>pending ");
}

static void test_what_retention_removed_is_reported(void **state)
{
    struct work_fixture *f = *state;
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_work_position early = { 0, 0 };
    pawl_work_position late = { 0, 0 };
    pawl_work_position start = { 0, 0 };

    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_changes(f, NULL, &early, "a:>pending ");
    late = early;
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    assert_changes(f, NULL, &late, "a:pending>in_progress a:in_progress>completed ");
    usleep(5000); /* older than a moment ago */
    retention.item_days = 0;
    assert_ok(pawl_work_retention(f->work, &retention, NULL, &f->err), &f->err);
    assert_status(pawl_work_changes(f->work, NULL, 100, &early, add_change, NULL, NULL, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    assert_message(&f->err, "changes after this position were removed");
    submit(f, "b", "T", 0); /* its number is a new one, though all others are gone */
    assert_changes(f, NULL, &late, "b:>pending ");
    assert_changes(f, NULL, &start, "b:>pending ");
    assert_history(f, "a", "");
}

static void test_a_position_of_another_store_is_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_position position = { 0, 0 };

    assert_ok(pawl_work_changes_end(f->work, &position, &f->err), &f->err);
    position.transaction += 1000000;
    assert_status(pawl_work_changes(f->work, NULL, 100, &position, add_change, NULL, NULL, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    assert_message(&f->err, "has not reached this position");
}

/* --- being told --- */

static void count_news(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static void await_news(atomic_int *news, int more_than)
{
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(news) <= more_than; ms++) {
        usleep(1000);
    }
    assert_true(atomic_load(news) > more_than);
}

static void test_a_subscriber_is_told_of_every_kind_of_change(void **state)
{
    struct work_fixture *f = *state;
    pawl_work_subscription *subscription = NULL;
    static atomic_int news;

    atomic_store(&news, 0);
    use_real_clock(f);
    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(pawl_work_changes_subscribe(f->work, count_news, &news, &subscription, &f->err),
              &f->err);
    uint64_t token = claim_it(f, "w", "a");
    await_news(&news, 0);
    int before = atomic_load(&news);
    assert_ok(complete(f, "a", token), &f->err);
    await_news(&news, before);
    pawl_work_changes_unsubscribe(subscription);
    before = atomic_load(&news);
    submit(f, "b", "T", 0);
    assert_int_equal(atomic_load(&news), before);
    pawl_work_changes_unsubscribe(NULL);
}

/* --- many writers --- */

enum { WRITERS = 6, EACH = 60 };

struct writer {
    pawl_work *work;
    int number;
    struct pawl__thread thread;
    atomic_int failed;
};

static void run_writer(void *context)
{
    struct writer *writer = context;

    for (int i = 0; i < EACH; i++) {
        char id[32];
        pawl_submission submission = PAWL_SUBMISSION_INIT;
        (void)snprintf(id, sizeof(id), "w%d-%d", writer->number, i);
        submission.work_item_id = pawl_view_of(id);
        submission.task_id = pawl_view_of("T");
        submission.work_type = pawl_view_of("mail");
        if (pawl_work_submit(writer->work, &submission, 1, NULL, NULL) != PAWL_OK) {
            atomic_fetch_add(&writer->failed, 1);
        }
    }
}

static bool note_seen(void *context, const pawl_work_change *change)
{
    int(*seen)[EACH] = context;
    char *end = NULL;

    if (change->work_item_id.data[0] == 'w') { /* w4-17 */
        long writer = strtol(change->work_item_id.data + 1, &end, 10);
        long item = strtol(end + 1, NULL, 10);
        seen[writer][item]++;
    }
    return true;
}

static void test_a_reader_beside_many_writers_misses_nothing(void **state)
{
    struct work_fixture *f = *state;
    struct writer writers[WRITERS];
    static int seen[WRITERS][EACH];
    pawl_work_position position = { 0, 0 };
    uint64_t total = 0;

    memset(seen, 0, sizeof(seen));
    use_real_clock(f);
    make_task(f, "T");
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .work = work_forgets(f) ? f->work : work_open_real(f, NULL),
                                      .number = i };
        assert_ok(
            pawl__thread_start(&writers[i].thread, "writer", run_writer, &writers[i], &f->err),
            &f->err);
    }
    for (int ms = 0; ms < PATIENCE_MS && total < (uint64_t)WRITERS * EACH; ms++) {
        uint64_t count = 0;
        assert_ok(pawl_work_changes(f->work, NULL, 7, &position, note_seen, seen, &count, &f->err),
                  &f->err);
        total += count;
        usleep(count == 0 ? 1000 : 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pawl__thread_join(&writers[i].thread);
        assert_int_equal(atomic_load(&writers[i].failed), 0);
        for (int item = 0; item < EACH; item++) {
            assert_int_equal(seen[i][item], 1);
        }
        if (writers[i].work != f->work) {
            pawl_work_close(writers[i].work, 0, NULL);
        }
    }
}

static void test_what_is_no_position_is_refused(void **state)
{
    static const char *const texts[] = { "",    "-",   "1",     "1-",   "-1",
                                         "a-1", "1-b", "1-2-3", " 1-2", "1-99999999999999999999" };
    struct work_fixture *f = *state;
    pawl_work_position position = { 3, 4 };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_status(pawl_work_position_parse(pawl_view_of(texts[i]), &position, &f->err),
                      PAWL_INVALID,
                      &f->err);
    }
    assert_int_equal(position.seq, 4);
    assert_status(pawl_work_changes(f->work, NULL, 0, &position, add_change, NULL, NULL, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "limit");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_each_change_comes_once_and_in_order),
        work_test(test_a_reader_at_the_end_sees_only_what_follows),
        work_test(test_a_filter_leaves_out_and_the_position_moves_on),
        work_test(test_a_reader_may_stop_at_any_change_and_resume),
        work_test(test_what_retention_removed_is_reported),
        work_test(test_a_position_of_another_store_is_refused),
        work_test(test_a_subscriber_is_told_of_every_kind_of_change),
        work_test(test_a_reader_beside_many_writers_misses_nothing),
        work_test(test_what_is_no_position_is_refused),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
