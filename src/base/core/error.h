/* Failing is one statement; each caller that knows more adds context on the way up.
 *
 *     return pawl__fail(reterr, PAWL_INVALID, "id has %zu bytes, the limit is 200", id.len);
 *     ...
 *     return pawl__fail_context(reterr, status, "open '%s'", path);    "open 'x.db': database is locked"
 */
#ifndef PAWL_BASE_CORE_ERROR_H
#define PAWL_BASE_CORE_ERROR_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

/* Fills `reterr` (which may be NULL) and returns `status`. All else is reset;
 * retryable is true for BUSY, UNAVAILABLE and TIMEOUT. A message that does not fit ends
 * in "...". */
PRINTF_LIKE(3, 4)
pawl_status pawl__fail(pawl_error *reterr, pawl_status status, const char *format, ...);

/* The same for a failed system call: the status that `error_number` means, ": <strerror>" behind
 * the message, native = error_number. */
PRINTF_LIKE(3, 4)
pawl_status pawl__fail_errno(pawl_error *reterr, int error_number, const char *format, ...);

/* Puts "context: " before the message that is there and returns `status`, which is that of the error
 * from then on: with another one than it had, `retryable` follows and `detail` is gone. All else is kept. */
PRINTF_LIKE(3, 4)
pawl_status pawl__fail_context(pawl_error *reterr, pawl_status status, const char *format, ...);

/* After a callback: returns its status, or FAILED if it is not a pawl_status, and makes the error agree. When
 * the callback filled none in, or returned no status at all, the message says who returned what. PAWL_OK is returned
 * as it is. Every callback of a caller's goes through this, so the library never returns an invalid status. */
PRINTF_LIKE(3, 4)
pawl_status pawl__fail_settled(pawl_error *reterr, pawl_status status, const char *format, ...);

/* Puts "; advice" behind the message that is there, whole: should both not fit, the message is cut
 * and ends in "...". Sets the status like pawl__fail_context. */
PRINTF_LIKE(3, 4)
pawl_status pawl__fail_advise(pawl_error *reterr, pawl_status status, const char *format, ...);

/* The same, for a caller that knows only the general advice: it gives way to what the message says
 * to do already, because two pieces of advice contradict each other sooner or later. */
pawl_status pawl__fail_advise_default(pawl_error *reterr, pawl_status status, const char *advice);

/* pawl__fail with a message that ends with its advice. */
#define pawl__fail_advised(reterr, status, ...) \
    pawl__mark_advised(reterr, pawl__fail(reterr, status, __VA_ARGS__))
pawl_status pawl__mark_advised(pawl_error *reterr, pawl_status status);

/* pawl__fail with the sub-code that programs branch on. */
#define pawl__fail_detail(reterr, status, detail, ...) \
    pawl__mark_detail(reterr, detail, pawl__fail(reterr, status, __VA_ARGS__))
pawl_status pawl__mark_detail(pawl_error *reterr, pawl_detail detail, pawl_status status);

/* Which element of a batch the error is about. */
pawl_status pawl__mark_index(pawl_error *reterr, size_t index, pawl_status status);

/* NOMEM, "no memory for a store", when an allocation returned NULL. Inline, so that an analyzer sees it. */
static inline pawl_status pawl__check_memory(const void *memory,
                                             const char *what,
                                             pawl_error *reterr)
{
    if (memory != NULL) {
        return PAWL_OK;
    }
    pawl__fail(reterr, PAWL_NOMEM, "no memory for %s", what);
    return PAWL_NOMEM;
}

/* Hands on an error that was kept aside, because a call that returns PAWL_OK leaves `reterr` alone
 * and this one might still have. Returns `status`; an error that says something else (a callback
 * did not fill it) is replaced by the text of the status. */
pawl_status pawl__fail_with(pawl_error *reterr, pawl_status status, const pawl_error *error);

/* BUSY, UNAVAILABLE and TIMEOUT: the same call may succeed in a moment, unchanged. */
bool pawl__status_may_pass(pawl_status status);

/* ENOSPC and EDQUOT are NO_SPACE, EACCES, EPERM and EROFS are DENIED, and so on; else IO. */
pawl_status pawl__status_of_errno(int error_number);

#endif
