/* cmocka with what every test here needs.
 *
 * Assert only on the test's own thread: a failure is a longjmp, which also skips AUTO. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

/* cmocka needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <pawl/pawl.h>

/* A call that succeeds leaves the error as it was: a caller may look at it alone. */
static inline bool check_untouched(const pawl_error *before, const pawl_error *after)
{
    return before->status == after->status && before->detail == after->detail
           && before->index == after->index && before->retryable == after->retryable
           && before->native == after->native && strcmp(before->sqlstate, after->sqlstate) == 0
           && strcmp(before->message, after->message) == 0;
}

/* Fails with the error's own message instead of "4 != 0". */
#define assert_ok(status, error) assert_status(status, PAWL_OK, error)

/* Expects exactly this status, from the call and in the error; prints what came with its message.
 * With PAWL_OK the call must not have touched the error. */
#define assert_status(call, expected, error)                                              \
    do {                                                                                  \
        pawl_error before_;                                                               \
        memcpy(&before_, (error), sizeof(before_));                                       \
        pawl_status checked_ = (call);                                                    \
        if (checked_ != (expected)) {                                                     \
            fail_msg("%s: %s instead of %s: %s",                                          \
                     #call,                                                               \
                     pawl_status_name(checked_),                                          \
                     pawl_status_name(expected),                                          \
                     (error)->message);                                                   \
        }                                                                                 \
        if (checked_ != PAWL_OK && (error)->status != checked_) {                         \
            fail_msg("%s: %s, and the error says %s: %s",                                 \
                     #call,                                                               \
                     pawl_status_name(checked_),                                          \
                     pawl_status_name((error)->status),                                   \
                     (error)->message);                                                   \
        }                                                                                 \
        if (checked_ == PAWL_OK && !check_untouched(&before_, (error))) {                 \
            fail_msg("%s: OK, and yet it filled the error: %s", #call, (error)->message); \
        }                                                                                 \
    } while (0)

/* The sub-code of a call's error; NONE when it succeeded. */
static inline pawl_detail detail_of(pawl_status status, const pawl_error *error)
{
    return status == PAWL_OK ? PAWL_DETAIL_NONE : error->detail;
}

/* Expects the sub-code `expected` in the error of a call that fails. */
#define assert_detail(call, expected, error)                         \
    do {                                                             \
        pawl_status detailed_ = (call);                              \
        if (detailed_ == PAWL_OK || (error)->detail != (expected)) { \
            fail_msg("%s: %s with %s instead of %s: %s",             \
                     #call,                                          \
                     pawl_status_name(detailed_),                    \
                     pawl_detail_name((error)->detail),              \
                     pawl_detail_name(expected),                     \
                     (error)->message);                              \
        }                                                            \
        assert_int_equal((error)->status, detailed_);                \
    } while (0)

/* The message is part of the contract: `text` must stand somewhere in it. */
#define assert_message(error, text)                                    \
    do {                                                               \
        if (strstr((error)->message, (text)) == NULL) {                \
            fail_msg("'%s' is not in '%s'", (text), (error)->message); \
        }                                                              \
    } while (0)

#endif
