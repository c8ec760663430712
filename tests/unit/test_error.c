#include "lib/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"

static void test_every_status_has_name_text_and_exit_code(void **state)
{
    (void)state;
    assert_string_equal(pawl_status_name(PAWL_LEASE_LOST), "LEASE_LOST");
    assert_int_equal(pawl_status_exit_code(PAWL_OK), 0);
    assert_int_equal(pawl_status_exit_code(PAWL_INVALID), 2);
    assert_int_equal(pawl_status_exit_code(PAWL_NOT_FOUND), 3);
    assert_int_equal(pawl_status_exit_code(PAWL_LEASE_LOST), 4);
    assert_int_equal(pawl_status_exit_code(PAWL_BUSY), 5);
    assert_int_equal(pawl_status_exit_code(PAWL_CORRUPT), 6);
    assert_string_equal(pawl_status_name((pawl_status)1000), "UNKNOWN");
    assert_int_equal(pawl_status_exit_code((pawl_status)1000), 1);
}

static void test_fail_resets_what_an_earlier_failure_left(void **state)
{
    (void)state;
    pawl_error error = { .status = PAWL_BUSY, .retryable = true, .native = 5, .sqlstate = "40001" };

    assert_int_equal(pawl__fail(&error, PAWL_INVALID, "id has %d bytes", 201), PAWL_INVALID);
    assert_int_equal(error.status, PAWL_INVALID);
    assert_false(error.retryable);
    assert_int_equal(error.native, 0);
    assert_string_equal(error.sqlstate, "");
    assert_string_equal(error.message, "id has 201 bytes");
    assert_int_equal(pawl__fail(NULL, PAWL_BUSY, "nobody listens"), PAWL_BUSY);
}

static void test_every_detail_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(pawl_detail_name(PAWL_DETAIL_KEY_REUSED), "KEY_REUSED");
    for (int detail = PAWL_DETAIL_NONE; detail <= PAWL_DETAIL_NO_ITEM; detail++) {
        assert_true(strlen(pawl_detail_text((pawl_detail)detail)) > 0);
    }
    assert_string_equal(pawl_detail_name((pawl_detail)1000), "UNKNOWN");
    assert_string_equal(pawl_detail_text((pawl_detail)1000), "unknown detail");
}

static void test_detail_and_index_stay_until_the_status_is_another(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__fail_detail(&error, PAWL_CONFLICT, PAWL_DETAIL_ID_TAKEN, "id '%s'", "a");

    assert_int_equal(pawl__mark_index(&error, 17, status), PAWL_CONFLICT);
    assert_int_equal(pawl__fail_context(&error, PAWL_CONFLICT, "append"), PAWL_CONFLICT);
    assert_int_equal(error.detail, PAWL_DETAIL_ID_TAKEN);
    assert_int_equal(error.index, 17);
    (void)pawl__fail_context(&error, PAWL_CORRUPT, "verify");
    assert_int_equal(error.detail, PAWL_DETAIL_NONE);
    (void)pawl__fail(&error, PAWL_IO, "write");
    assert_int_equal(error.index, -1);
    assert_int_equal(pawl__mark_detail(NULL, PAWL_DETAIL_ID_TAKEN, PAWL_IO), PAWL_IO);
    assert_int_equal(pawl__mark_index(NULL, 1, PAWL_IO), PAWL_IO);
}

/* Programs have them on their stacks: they never grow. */
static void test_the_fixed_structs_have_their_size(void **state)
{
    (void)state;
    assert_int_equal(sizeof(pawl_error), 576);
    assert_int_equal(sizeof(pawl_view), 2 * sizeof(void *));
}

static void test_the_version_is_that_of_the_headers(void **state)
{
    char text[32];

    (void)state;
    (void)snprintf(
        text, sizeof(text), "%d.%d.%d", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR, PAWL_VERSION_PATCH);
    assert_string_equal(pawl_version(), text);
    assert_string_equal(pawl_version(), PROJECT_VERSION); /* of the build */
    assert_int_equal(pawl_version_number(), PAWL_VERSION_NUMBER);
}

static void test_texts_are_copied_and_freed(void **state)
{
    char *copy = pawl_copy_text((pawl_view){ "abc", 2 });

    (void)state;
    assert_string_equal(copy, "ab");
    pawl_free(copy);
    copy = pawl_copy_text((pawl_view){ NULL, 0 });
    assert_string_equal(copy, "");
    pawl_free(copy);
    assert_null(pawl_copy_text((pawl_view){ NULL, 5 }));
    pawl_free(NULL);
}

static void test_errno_becomes_a_status_with_its_text(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_int_equal(pawl__fail_errno(&error, ENOSPC, "write '%s'", "x"), PAWL_NO_SPACE);
    assert_string_equal(error.message, "write 'x': No space left on device");
    assert_int_equal(error.native, ENOSPC);
    assert_int_equal(pawl__fail_errno(&error, EROFS, "open"), PAWL_DENIED);
    assert_int_equal(pawl__fail_errno(&error, EIO, "read"), PAWL_IO);
}

static void test_context_goes_before_and_keeps_the_rest(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail_errno(&error, EAGAIN, "lock");
    assert_int_equal(pawl__fail_context(&error, PAWL_BUSY, "open '%s'", "a.db"), PAWL_BUSY);
    assert_string_equal(error.message, "open 'a.db': lock: Resource temporarily unavailable");
    assert_int_equal(error.native, EAGAIN);
    assert_true(error.retryable);
}

static void test_context_with_another_status_changes_that_of_the_error(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail_errno(&error, ETIMEDOUT, "read");
    assert_true(error.retryable);
    assert_int_equal(pawl__fail_context(&error, PAWL_CORRUPT, "no proof"), PAWL_CORRUPT);
    assert_int_equal(error.status, PAWL_CORRUPT);
    assert_false(error.retryable);
    assert_int_equal(error.native, ETIMEDOUT);
    assert_string_equal(error.message, "no proof: read: Connection timed out");

    pawl__fail_context(&error, PAWL_BUSY, "later");
    assert_int_equal(error.status, PAWL_BUSY);
    assert_true(error.retryable);
}

static void test_context_with_the_same_status_keeps_what_the_backend_said(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail(&error, PAWL_CONFLICT, "deadlock");
    error.retryable = true; /* as a backend does that knows better than the status */
    pawl__fail_context(&error, PAWL_CONFLICT, "statement 1");
    assert_true(error.retryable);
    assert_int_equal(pawl__fail_context(NULL, PAWL_BUSY, "nobody listens"), PAWL_BUSY);
}

static void test_a_long_message_ends_in_dots_on_a_whole_character(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    char text[PAWL_ERROR_MESSAGE_SIZE * 2];

    for (size_t i = 0; i + 2 < sizeof(text); i += 2) {
        memcpy(text + i, "é", 2);
    }
    text[sizeof(text) - 2] = '\0';
    pawl__fail(&error, PAWL_INVALID, "%s", text);
    assert_int_equal(strlen(error.message) % 2, 1); /* whole two-byte characters, then "..." */
    assert_string_equal(error.message + strlen(error.message) - 3, "...");
}

static pawl_status needs(const void *handle, pawl_view name, pawl_error *reterr)
{
    NEED(handle, reterr);
    NEED_VIEW(name, reterr);
    return PAWL_OK;
}

static void test_a_missing_argument_is_refused_by_its_name(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_int_equal(needs(state, (pawl_view){ NULL, 0 }, &error), PAWL_OK);
    assert_int_equal(needs(NULL, pawl_view_of("x"), &error), PAWL_INVALID);
    assert_string_equal(error.message, "handle: is NULL");
    assert_int_equal(needs(state, (pawl_view){ NULL, 5 }, &error), PAWL_INVALID);
    assert_string_equal(error.message, "name: is NULL and has 5 bytes");
}

static int read_clock(int *reads)
{
    return *reads += 1;
}

static void test_min_and_max_evaluate_each_argument_once(void **state)
{
    (void)state;
    int reads = 0;

    assert_int_equal(MAX(read_clock(&reads), 0), 1);
    assert_int_equal(MIN(100, MAX(read_clock(&reads), 0)), 2);
    assert_int_equal(reads, 2);
}

static void test_advice_stays_whole_behind_a_long_message_and_a_long_context(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    char path[1000];
    static const char advice[] = "; to accept the loss, add --accept-older";

    (void)state;
    memset(path, 'p', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    pawl__fail(&error, PAWL_CORRUPT, "%s", path);
    assert_int_equal(pawl__fail_advise(&error, PAWL_CORRUPT, "%s", advice + 2), PAWL_CORRUPT);
    pawl__fail_context(&error, PAWL_CORRUPT, "x");
    pawl__fail(&error, PAWL_CORRUPT, "damaged");
    pawl__fail_advise(&error, PAWL_CORRUPT, "%s", advice + 2);
    pawl__fail_context(&error, PAWL_CORRUPT, "restore '%s'", path);
    size_t len = strlen(error.message);
    assert_true(len < sizeof(error.message));
    assert_string_equal(error.message + len - strlen(advice), advice);
    assert_message(&error, "...: damaged; ");
    assert_int_equal(pawl__fail_advise(NULL, PAWL_CORRUPT, "x"), PAWL_CORRUPT);
}

static void test_general_advice_gives_way_to_what_the_message_says_already(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    pawl__fail(&error, PAWL_CORRUPT, "cut off");
    assert_false(error.advised);
    pawl__fail_advise_default(&error, PAWL_CORRUPT, "restore a copy");
    assert_string_equal(error.message, "cut off; restore a copy");
    assert_true(error.advised);
    pawl__fail_advise_default(&error, PAWL_CORRUPT, "remove it");
    assert_string_equal(error.message, "cut off; restore a copy");
    pawl__fail_advised(&error, PAWL_CORRUPT, "a trigger; drop %s", "it");
    pawl__fail_context(&error, PAWL_CORRUPT, "open 'x'");
    pawl__fail_advise_default(&error, PAWL_CORRUPT, "restore a copy");
    assert_string_equal(error.message, "open 'x': a trigger; drop it");
    pawl__fail(&error, PAWL_CORRUPT, "cut off"); /* another error begins without */
    assert_false(error.advised);
    assert_int_equal(pawl__fail_advise_default(NULL, PAWL_CORRUPT, "x"), PAWL_CORRUPT);
    assert_int_equal(pawl__fail_advised(NULL, PAWL_CORRUPT, "x"), PAWL_CORRUPT);
}

static void test_an_error_that_was_kept_aside_is_handed_on_with_its_status(void **state)
{
    pawl_error kept = PAWL_ERROR_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_int_equal(pawl__fail_with(&error, PAWL_CANCELLED, &kept), PAWL_CANCELLED); /* no word */
    assert_int_equal(error.status, PAWL_CANCELLED);
    assert_string_equal(error.message, pawl_status_text(PAWL_CANCELLED));
    pawl__fail(&kept, PAWL_BUSY, "locked by %d", 7);
    assert_int_equal(pawl__fail_with(&error, PAWL_BUSY, &kept), PAWL_BUSY);
    assert_string_equal(error.message, "locked by 7");
    assert_true(error.retryable);
    assert_int_equal(pawl__fail_with(NULL, PAWL_BUSY, &kept), PAWL_BUSY);
}

static void test_what_a_callback_returns_is_settled_to_a_status_with_a_message(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_int_equal(pawl__fail_settled(&error, PAWL_OK, "it"), PAWL_OK);
    assert_int_equal(pawl__fail_settled(&error, PAWL_BUSY, "step %d", 7), PAWL_BUSY);
    assert_string_equal(error.message, "step 7 returned BUSY (6) and did not say why");
    pawl__fail(&error, PAWL_BUSY, "later");
    assert_int_equal(pawl__fail_settled(&error, PAWL_BUSY, "it"), PAWL_BUSY);
    assert_string_equal(error.message, "later");
    error.status = (pawl_status)9999;
    assert_int_equal(pawl__fail_settled(&error, (pawl_status)9999, "it"), PAWL_FAILED);
    assert_string_equal(error.message, "it returned 9999, which is no pawl_status");
    assert_int_equal(pawl__fail_settled(&error, (pawl_status)-1, "it"), PAWL_FAILED);
    assert_int_equal(error.status, PAWL_FAILED);
    assert_int_equal(pawl__fail_settled(NULL, (pawl_status)9999, "it"), PAWL_FAILED);
    assert_true(pawl__status_may_pass(PAWL_BUSY) && pawl__status_may_pass(PAWL_UNAVAILABLE)
                && pawl__status_may_pass(PAWL_TIMEOUT));
    assert_false(pawl__status_may_pass(PAWL_OK) || pawl__status_may_pass(PAWL_IO)
                 || pawl__status_may_pass((pawl_status)9999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_name_text_and_exit_code),
        cmocka_unit_test(test_fail_resets_what_an_earlier_failure_left),
        cmocka_unit_test(test_every_detail_has_a_name_and_a_text),
        cmocka_unit_test(test_detail_and_index_stay_until_the_status_is_another),
        cmocka_unit_test(test_the_fixed_structs_have_their_size),
        cmocka_unit_test(test_the_version_is_that_of_the_headers),
        cmocka_unit_test(test_texts_are_copied_and_freed),
        cmocka_unit_test(test_errno_becomes_a_status_with_its_text),
        cmocka_unit_test(test_context_goes_before_and_keeps_the_rest),
        cmocka_unit_test(test_context_with_another_status_changes_that_of_the_error),
        cmocka_unit_test(test_context_with_the_same_status_keeps_what_the_backend_said),
        cmocka_unit_test(test_a_long_message_ends_in_dots_on_a_whole_character),
        cmocka_unit_test(test_a_missing_argument_is_refused_by_its_name),
        cmocka_unit_test(test_advice_stays_whole_behind_a_long_message_and_a_long_context),
        cmocka_unit_test(test_general_advice_gives_way_to_what_the_message_says_already),
        cmocka_unit_test(test_an_error_that_was_kept_aside_is_handed_on_with_its_status),
        cmocka_unit_test(test_what_a_callback_returns_is_settled_to_a_status_with_a_message),
        cmocka_unit_test(test_min_and_max_evaluate_each_argument_once),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
