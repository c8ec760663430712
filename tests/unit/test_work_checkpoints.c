/* Checkpoints: the contract that every backend keeps. */
#include "lib/timed_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static pawl_checkpoint checkpoint_of(const char *task_id,
                                     pawl_checkpoint_type type,
                                     const char *snapshot)
{
    return (pawl_checkpoint){
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of(task_id),
        .type = type,
        .snapshot_data = pawl_view_of(snapshot),
    };
}

static int64_t add(struct timed_fixture *f, const pawl_checkpoint *checkpoint)
{
    int64_t sequence = 0;

    assert_ok(pawl_checkpoint_add(f->work, checkpoint, NULL, &sequence, NULL, 0, &f->err), &f->err);
    return sequence;
}

static void assert_refused(struct timed_fixture *f,
                           const pawl_checkpoint *checkpoint,
                           const pawl_lease *lease,
                           pawl_status expected,
                           const char *message)
{
    char id[PAWL_WORK_NAME_BYTES_MAX + 1] = "untouched";
    int64_t sequence = 42;

    assert_status(
        pawl_checkpoint_add(
            f->work, checkpoint, lease, &sequence, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err),
        expected,
        &f->err);
    assert_message(&f->err, message);
    assert_int_equal(sequence, 42);
    assert_string_equal(id, "untouched");
}

static bool note(void *context, const pawl_checkpoint *checkpoint)
{
    pawl__buf_add_format(context,
                         "%lld %.*s%s ",
                         (long long)checkpoint->sequence_number,
                         VIEW_ARGS(checkpoint->snapshot_data),
                         checkpoint->verified ? "" : "!");
    return true;
}

static void assert_list(struct timed_fixture *f,
                        const char *task_id,
                        const char *item_id,
                        const pawl_checkpoint_type *type,
                        const char *expected)
{
    char text[1000];
    struct pawl__buf buf = BUF_OVER(text);

    text[0] = '\0';
    assert_ok(
        pawl_checkpoint_list(
            f->work, pawl_view_of(task_id), pawl_view_of(item_id), type, NULL, note, &buf, &f->err),
        &f->err);
    assert_string_equal(text, expected);
}

static void test_checkpoints_are_listed_in_pages(void **state)
{
    struct timed_fixture *f = *state;
    pawl_page page = PAWL_PAGE_INIT;
    char text[100] = "";
    struct pawl__buf buf = BUF_OVER(text);

    timed_task(f, "t");
    for (int i = 0; i < 3; i++) {
        timed_checkpoint(f, "t", PAWL_CHECKPOINT_TOOL_EXECUTED, "0");
    }
    page.limit = 2;
    for (int i = 0; i < 2; i++) {
        assert_ok(
            pawl_checkpoint_list(
                f->work, pawl_view_of("t"), pawl_view_of(""), NULL, &page, note, &buf, &f->err),
            &f->err);
        assert_int_equal(page.more, i == 0);
        assert_int_equal(page.from, i == 0 ? 3 : 4);
    }
}

static void test_numbers_count_within_a_task(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint_type end = PAWL_CHECKPOINT_ITERATION_END;
    pawl_checkpoint a = checkpoint_of("t1", PAWL_CHECKPOINT_ITERATION_START, "1");
    pawl_checkpoint b = checkpoint_of("t1", PAWL_CHECKPOINT_ITERATION_END, "2");
    pawl_checkpoint c = checkpoint_of("t2", PAWL_CHECKPOINT_ITERATION_END, "3");

    timed_task(f, "t1");
    timed_task(f, "t2");
    assert_int_equal(add(f, &a), 1);
    assert_int_equal(add(f, &b), 2);
    assert_int_equal(add(f, &c), 1);
    assert_int_equal(add(f, &a), 3);
    assert_list(f, "t1", "", NULL, "1 1 2 2 3 1 ");
    assert_list(f, "t1", "", &end, "2 2 ");
    assert_list(f, "t2", "", NULL, "1 3 ");
    assert_list(f, "none", "", NULL, "");
}

static void test_the_latest_is_found_by_type_and_number(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint_type start = PAWL_CHECKPOINT_ITERATION_START;
    pawl_checkpoint_type other = PAWL_CHECKPOINT_APPROVAL_POINT;
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_ITERATION_START, "{\"step\": 1}");
    pawl_checkpoint b = checkpoint_of("t", PAWL_CHECKPOINT_ITERATION_END, "2");
    pawl_view task = pawl_view_of("t");
    pawl_view none = { NULL, 0 };
    pawl_checkpoint *found = NULL;

    timed_task(f, "t");
    a.metadata = pawl_view_of("{\"by\":\"me\"}");
    add(f, &a);
    add(f, &b);
    assert_ok(pawl_checkpoint_latest(f->work, task, NULL, false, &found, &f->err), &f->err);
    assert_int_equal(found->sequence_number, 2);
    pawl_checkpoint_free(found);
    assert_ok(pawl_checkpoint_latest(f->work, task, &start, true, &found, &f->err), &f->err);
    assert_int_equal(found->sequence_number, 1);
    assert_int_equal(found->type, PAWL_CHECKPOINT_ITERATION_START);
    assert_true(pawl__view_is(found->snapshot_data, "{\"step\": 1}"));
    assert_true(pawl__view_is(found->metadata, "{\"by\":\"me\"}"));
    assert_true(found->verified);
    assert_true(found->created_at_us > 0);
    pawl_checkpoint *again = NULL;
    assert_ok(pawl_checkpoint_get(f->work, found->checkpoint_id, none, 0, &again, &f->err),
              &f->err);
    assert_int_equal(again->sequence_number, 1);
    pawl_checkpoint_free(again);
    assert_ok(pawl_checkpoint_get(f->work, none, task, 1, &again, &f->err), &f->err);
    assert_true(pawl__view_equal(again->checkpoint_id, found->checkpoint_id));
    pawl_checkpoint_free(again);
    pawl_checkpoint_free(found);
    found = NULL;
    assert_status(pawl_checkpoint_latest(f->work, task, &other, false, &found, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    assert_status(
        pawl_checkpoint_get(f->work, none, task, 3, &found, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(pawl_checkpoint_get(f->work, pawl_view_of("x"), none, 0, &found, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    assert_null(found);
}

static void test_the_same_id_again_gives_its_number(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_TOOL_EXECUTED, "{\"a\":1,\"b\":2}");

    timed_task(f, "t");
    a.checkpoint_id = pawl_view_of("c1");
    assert_int_equal(add(f, &a), 1);
    a.snapshot_data = pawl_view_of("{ \"b\": 2, \"a\": 1.0 }");
    assert_int_equal(add(f, &a), 1);
    a.snapshot_data = pawl_view_of("{\"a\":2,\"b\":2}");
    assert_refused(f, &a, NULL, PAWL_CONFLICT, "'c1' is there with other content");
    assert_list(f, "t", "", NULL, "1 {\"a\":1,\"b\":2} ");
}

static void test_a_checkpoint_with_a_lease_is_fenced(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint a = checkpoint_of("", PAWL_CHECKPOINT_TOOL_EXECUTED, "1");
    int64_t sequence = 0;

    timed_task(f, "t");
    timed_task(f, "other");
    timed_submit(f, "t", "i1");
    pawl_lease lease = timed_claim(f, "i1", 0);
    assert_ok(pawl_checkpoint_add(f->work, &a, &lease, &sequence, NULL, 0, &f->err), &f->err);
    assert_int_equal(sequence, 1);
    assert_list(f, "t", "i1", NULL, "1 1 ");
    assert_list(f, "t", "i2", NULL, "");
    pawl_lease wrong = { sizeof(pawl_lease), lease.work_item_id, lease.token + 1 };
    assert_refused(f, &a, &wrong, PAWL_LEASE_LOST, "");
    pawl_lease unknown = { sizeof(pawl_lease), pawl_view_of("nothing"), 1 };
    assert_refused(f, &a, &unknown, PAWL_NOT_FOUND, "nothing");
    a.task_id = pawl_view_of("other");
    assert_refused(f, &a, &lease, PAWL_INVALID, "item 'i1' is one of task 't'");
    a.task_id = pawl_view_of("t");
    a.work_item_id = pawl_view_of("i2");
    assert_refused(f, &a, &lease, PAWL_INVALID, "work_item_id: is not the lease's");
    a.work_item_id = pawl_view_of("i1");
    assert_ok(pawl_work_complete(f->work, &lease, (pawl_view){ NULL, 0 }, &f->err), &f->err);
    assert_refused(f, &a, &lease, PAWL_LEASE_LOST, "");
    assert_list(f, "t", "", NULL, "1 1 ");
}

static void test_an_expired_lease_adds_nothing(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_TOOL_EXECUTED, "1");

    timed_task(f, "t");
    timed_submit(f, "t", "i1");
    pawl_lease lease = timed_claim(f, "i1", 60000);
    timed_fixture_step_wall(f, 3600);
    assert_ok(pawl_checkpoint_add(f->work, &a, &lease, NULL, NULL, 0, &f->err), &f->err);
    if (timed_fixture_wait(f, 61)) {
        assert_refused(f, &a, &lease, PAWL_LEASE_LOST, "");
    }
}

/* An item that waits for its backoff has left work_items; its checkpoints have not left it. */
static void test_a_checkpoint_stays_with_an_item_that_waits(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_TOOL_EXECUTED, "1");
    pawl_view none = { NULL, 0 };

    timed_task(f, "t");
    timed_submit(f, "t", "i1");
    pawl_lease lease = timed_claim(f, "i1", 0);
    assert_ok(pawl_checkpoint_add(f->work, &a, &lease, NULL, NULL, 0, &f->err), &f->err);
    assert_ok(pawl_work_fail(f->work, &lease, pawl_view_of("no"), none, true, NULL, &f->err),
              &f->err);
    assert_list(f, "t", "i1", NULL, "1 1 ");
    a.work_item_id = pawl_view_of("i1");
    a.snapshot_data = pawl_view_of("2");
    assert_int_equal(add(f, &a), 2);
    assert_list(f, "t", "i1", NULL, "1 1 2 2 ");
}

static void test_bad_input_is_refused_by_name(void **state)
{
    struct timed_fixture *f = *state;
    char long_name[PAWL_WORK_NAME_BYTES_MAX + 2];
    pawl_checkpoint good = checkpoint_of("t", PAWL_CHECKPOINT_MANUAL_CHECKPOINT, "1");

    timed_task(f, "t");
    timed_submit(f, "t", "i1");
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    pawl_checkpoint bad = good;
    bad.snapshot_data = pawl_view_of("{");
    assert_refused(f, &bad, NULL, PAWL_INVALID, "snapshot_data");
    bad.snapshot_data = pawl_view_of("");
    assert_refused(f, &bad, NULL, PAWL_INVALID, "snapshot_data: is empty");
    bad = good;
    bad.metadata = pawl_view_of("nope");
    assert_refused(f, &bad, NULL, PAWL_INVALID, "metadata");
    bad = good;
    bad.type = (pawl_checkpoint_type)8;
    assert_refused(f, &bad, NULL, PAWL_INVALID, "type: 8");
    bad = good;
    bad.task_id = pawl_view_of("");
    assert_refused(f, &bad, NULL, PAWL_INVALID, "task_id");
    bad.task_id = pawl_view_of("none");
    assert_refused(f, &bad, NULL, PAWL_NOT_FOUND, "no task 'none'");
    bad = good;
    bad.work_item_id = pawl_view_of("none");
    assert_refused(f, &bad, NULL, PAWL_NOT_FOUND, "no item 'none'");
    bad = good;
    bad.checkpoint_id = pawl_view_of(long_name);
    assert_refused(f, &bad, NULL, PAWL_INVALID, "checkpoint_id");
    assert_int_equal(add(f, &good), 1); /* no number was lost on the way */
}

static void test_what_does_not_hold_is_not_stored(void **state)
{
    struct timed_fixture *f = *state;
    char path[TEMPDIR_SIZE + 20];
    pawl_evidence evidence[PAWL_EVIDENCE_MAX + 1];
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_TOOL_EXECUTED, "1");
    char what[512] = "";
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    bool verified = false;

    timed_task(f, "t");
    snprintf(path, sizeof(path), "%s/result", f->dir);
    evidence[0] = (pawl_evidence){
        sizeof(pawl_evidence), PAWL_EVIDENCE_COMMAND_EXIT, pawl_view_of("true"), pawl_view_of("0")
    };
    evidence[1] = (pawl_evidence){
        sizeof(pawl_evidence), PAWL_EVIDENCE_FILE_EXISTS, pawl_view_of(path), { NULL, 0 }
    };
    a.evidence = evidence;
    a.evidence_count = 2;
    assert_refused(f, &a, NULL, PAWL_INVALID, "evidence 1 (file_exists '");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_ok(
        pawl_checkpoint_add(f->work, &a, NULL, NULL, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err),
        &f->err);
    pawl_checkpoint *stored = NULL;
    assert_ok(
        pawl_checkpoint_get(f->work, pawl_view_of(id), (pawl_view){ NULL, 0 }, 0, &stored, &f->err),
        &f->err);
    assert_int_equal(stored->evidence_count, 2);
    assert_int_equal(stored->evidence[1].kind, PAWL_EVIDENCE_FILE_EXISTS);
    assert_true(pawl__view_is(stored->evidence[1].subject, path));
    assert_true(pawl__view_is(stored->evidence[0].expected, "0"));
    pawl_checkpoint_free(stored);

    assert_ok(pawl_checkpoint_verify(f->work, pawl_view_of(id), &verified, what, 512, &f->err),
              &f->err);
    assert_true(verified);
    assert_string_equal(what, "");
    assert_int_equal(remove(path), 0);
    assert_ok(pawl_checkpoint_verify(f->work, pawl_view_of(id), &verified, what, 512, &f->err),
              &f->err);
    assert_false(verified);
    assert_non_null(strstr(what, "evidence 1 (file_exists"));
    assert_list(f, "t", "", NULL, "1 1! ");
    assert_status(pawl_checkpoint_latest(f->work, pawl_view_of("t"), NULL, true, &stored, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    for (size_t i = 0; i < COUNT_OF(evidence); i++) {
        evidence[i] = evidence[0];
    }
    a.evidence_count = PAWL_EVIDENCE_MAX + 1;
    assert_refused(f, &a, NULL, PAWL_INVALID, "evidence: 101 pieces, the limit is 100");
}

static void test_a_row_of_the_store_is_evidence(void **state)
{
    struct timed_fixture *f = *state;
    pawl_evidence evidence = { sizeof(pawl_evidence),
                               PAWL_EVIDENCE_ROW_EXISTS,
                               pawl_view_of("SELECT 1 FROM tasks WHERE task_id = 't'"),
                               { NULL, 0 } };
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_STATE_TRANSITION, "1");

    timed_task(f, "t");
    a.evidence = &evidence;
    a.evidence_count = 1;
    if (strcmp(f->backend, "model") == 0) {
        assert_refused(f, &a, NULL, PAWL_UNSUPPORTED, "SQL");
        return;
    }
    assert_int_equal(add(f, &a), 1);
    evidence.subject = pawl_view_of("SELECT 1 FROM tasks WHERE task_id = 'other'");
    assert_refused(f, &a, NULL, PAWL_INVALID, "does not hold: no such row");
    assert_int_equal(f->err.detail, PAWL_DETAIL_EVIDENCE_FAILED);
    evidence.subject = pawl_view_of("DELETE FROM tasks");
    assert_refused(f, &a, NULL, PAWL_INVALID, "evidence 0");
    evidence.subject = pawl_view_of("SELECT 1; DELETE FROM tasks");
    assert_refused(f, &a, NULL, PAWL_INVALID, "evidence 0");
    evidence.subject = pawl_view_of("SELECT 1 FROM nosuch"); /* who asks is wrong, not the store */
    assert_refused(f, &a, NULL, PAWL_INVALID, "nosuch");
    evidence.subject = pawl_view_of("SELECT nosuch FROM tasks");
    assert_refused(f, &a, NULL, PAWL_INVALID, "nosuch");
    assert_list(f, "t", "", NULL, "1 1 ");
}

static bool note_difference(void *context, const pawl_difference *difference)
{
    pawl__buf_add_format(context,
                         "%.*s %.*s %.*s;",
                         VIEW_ARGS(difference->path),
                         VIEW_ARGS(difference->from),
                         VIEW_ARGS(difference->to));
    return true;
}

static void test_two_checkpoints_are_compared(void **state)
{
    struct timed_fixture *f = *state;
    pawl_checkpoint a = checkpoint_of("t", PAWL_CHECKPOINT_ITERATION_END, "{\"n\":1,\"old\":0}");
    pawl_checkpoint b = checkpoint_of("t", PAWL_CHECKPOINT_ITERATION_END, "{\"n\":2,\"new\":[]}");
    char text[200] = "";
    struct pawl__buf buf = BUF_OVER(text);

    assert_ok(pawl_checkpoint_diff(&a, &b, note_difference, &buf, &f->err), &f->err);
    assert_string_equal(text, "/n 1 2;/old 0 ;/new  [];");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(test_checkpoints_are_listed_in_pages),
        TIMED_TEST(test_numbers_count_within_a_task),
        TIMED_TEST(test_the_latest_is_found_by_type_and_number),
        TIMED_TEST(test_the_same_id_again_gives_its_number),
        TIMED_TEST(test_a_checkpoint_with_a_lease_is_fenced),
        TIMED_TEST(test_an_expired_lease_adds_nothing),
        TIMED_TEST(test_a_checkpoint_stays_with_an_item_that_waits),
        TIMED_TEST(test_bad_input_is_refused_by_name),
        TIMED_TEST(test_what_does_not_hold_is_not_stored),
        TIMED_TEST(test_a_row_of_the_store_is_evidence),
        TIMED_TEST(test_two_checkpoints_are_compared),
    };

    return timed_suite(argc, argv, tests, COUNT_OF(tests));
}
