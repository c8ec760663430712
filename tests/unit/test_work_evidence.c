#include "lib/check.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tempdir.h"
#include "work/checkpoints/evidence.h"

/* SHA-256 of "abc\n" */
#define ABC "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"

static pawl_status fake_row(void *context, pawl_view select, bool *ret_exists, pawl_error *reterr)
{
    (void)reterr;
    assert_int_equal(select.len, strlen("SELECT 1"));
    *ret_exists = *(bool *)context;
    return PAWL_OK;
}

static pawl_evidence evidence_of(pawl_evidence_kind kind, const char *subject, const char *expected)
{
    return (pawl_evidence){
        sizeof(pawl_evidence), kind, pawl_view_of(subject), pawl_view_of(expected)
    };
}

static void assert_look(pawl_evidence evidence, bool row, bool expected, const char *detail)
{
    struct work_evidence_context world = { fake_row, &row, 10000, NULL };
    char said[EVIDENCE_DETAIL_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    bool holds = !expected;

    assert_ok(pawl__work_evidence_check_form(&evidence, &error), &error);
    assert_ok(pawl__work_evidence_check(&evidence, &world, &holds, said, &error), &error);
    assert_int_equal(holds, expected);
    if (strstr(said, detail) == NULL) {
        fail_msg("'%s' is not in '%s'", detail, said);
    }
}

static void test_files_are_there_or_not(void **state)
{
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 20];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(tempdir_make(dir, "evidence", &error), &error);
    snprintf(path, sizeof(path), "%s/result", dir);
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_EXISTS, path, ""), false, false, "No such file");
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_SHA256, path, ABC), false, false, "No such file");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("abc\n", file);
    fclose(file);
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_EXISTS, path, ""), false, true, "");
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_SHA256, path, "sha256:" ABC), false, true, "");
    file = fopen(path, "a");
    assert_non_null(file);
    fputs("d", file);
    fclose(file);
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_SHA256, path, ABC), false, false, "has sha256:");
    tempdir_remove(dir);
}

static void test_what_is_no_regular_file_has_no_hash(void **state)
{
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 20];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(tempdir_make(dir, "evidence", &error), &error);
    snprintf(path, sizeof(path), "%s/pipe", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_SHA256, path, ABC), false, false, "not a regular");
    assert_look(evidence_of(PAWL_EVIDENCE_FILE_SHA256, dir, ABC), false, false, "not a regular");
    tempdir_remove(dir);
}

static void test_a_command_holds_by_its_exit_code(void **state)
{
    (void)state;
    assert_look(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "true", "0"), false, true, "");
    assert_look(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "exit 7", "7"), false, true, "");
    assert_look(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "exit 7", "0"),
                false,
                false,
                "exit code 7 instead of 0");
    assert_look(
        evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "kill -9 $$", "0"), false, false, "signal 9");
    assert_look(
        evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "/no/such/command", "127"), false, true, "");
    /* It has nothing to read, and prints nowhere. */
    assert_look(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "cat; echo loud", "0"), false, true, "");
}

static void test_a_command_that_does_not_end_is_killed_with_its_children(void **state)
{
    pawl_evidence evidence =
        evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "sleep 1000 & sleep 1000; wait", "0");
    struct work_evidence_context world = { fake_row, NULL, 50, NULL };
    char said[EVIDENCE_DETAIL_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    bool holds = true;

    (void)state;
    assert_ok(pawl__work_evidence_check(&evidence, &world, &holds, said, &error), &error);
    assert_false(holds);
    assert_string_equal(said, "not ended within 50 ms");
}

static void test_a_row_is_asked_for(void **state)
{
    (void)state;
    assert_look(evidence_of(PAWL_EVIDENCE_ROW_EXISTS, "SELECT 1", ""), true, true, "");
    assert_look(evidence_of(PAWL_EVIDENCE_ROW_EXISTS, "SELECT 1", ""), false, false, "no such row");
}

static void assert_refused(pawl_evidence evidence, const char *message)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(pawl__work_evidence_check_form(&evidence, &error), PAWL_INVALID, &error);
    assert_message(&error, message);
}

static void test_a_wrong_form_is_refused_by_name(void **state)
{
    char long_path[PAWL_EVIDENCE_BYTES_MAX + 1];
    pawl_error error = PAWL_ERROR_INIT;
    pawl_evidence longest = { sizeof(pawl_evidence),
                              PAWL_EVIDENCE_FILE_EXISTS,
                              { long_path, PAWL_EVIDENCE_BYTES_MAX },
                              { NULL, 0 } };

    (void)state;
    memset(long_path, 'x', sizeof(long_path));
    assert_ok(pawl__work_evidence_check_form(&longest, &error), &error);
    longest.subject.len++;
    assert_refused(longest, "subject: 4097 bytes, must be 1 to 4096");
    assert_refused(evidence_of(PAWL_EVIDENCE_FILE_EXISTS, "", ""), "subject: 0 bytes");
    assert_refused(evidence_of(PAWL_EVIDENCE_FILE_EXISTS, "\xff", ""), "subject: not UTF-8");
    assert_refused(evidence_of(PAWL_EVIDENCE_FILE_EXISTS, "a", "b"), "file_exists has none");
    assert_refused(evidence_of(PAWL_EVIDENCE_FILE_SHA256, "a", "sha256:12"), "expected: ");
    assert_refused(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "a", "256"), "'256' is no exit code");
    assert_refused(evidence_of(PAWL_EVIDENCE_COMMAND_EXIT, "a", ""), "'' is no exit code");
    assert_refused(evidence_of((pawl_evidence_kind)9, "a", ""), "kind: 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_there_or_not),
        cmocka_unit_test(test_what_is_no_regular_file_has_no_hash),
        cmocka_unit_test(test_a_command_holds_by_its_exit_code),
        cmocka_unit_test(test_a_command_that_does_not_end_is_killed_with_its_children),
        cmocka_unit_test(test_a_row_is_asked_for),
        cmocka_unit_test(test_a_wrong_form_is_refused_by_name),
    };

    return cmocka_run_group_tests_name("work_evidence", tests, NULL, NULL);
}
