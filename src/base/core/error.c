#include "base/core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"

static const struct {
    const char *name;
    const char *text;
    int exit_code;
} statuses[] = {
#define STATUS_ROW(name, exit_code, text) { #name, text, exit_code },
    PAWL_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const struct {
    const char *name;
    const char *text;
} details[] = {
#define DETAIL_ROW(name, text) { #name, text },
    PAWL_DETAIL_MAP(DETAIL_ROW)
#undef DETAIL_ROW
};

enum { CONTEXT_BYTES_MIN = 64 }; /* that stay of a context, however long the message is */

static bool is_status(pawl_status status)
{
    return (size_t)status < COUNT_OF(statuses);
}

const char *pawl_status_name(pawl_status status)
{
    return is_status(status) ? statuses[status].name : "UNKNOWN";
}

const char *pawl_status_text(pawl_status status)
{
    return is_status(status) ? statuses[status].text : "unknown status";
}

int pawl_status_exit_code(pawl_status status)
{
    return is_status(status) ? statuses[status].exit_code : 1;
}

static bool is_detail(pawl_detail detail)
{
    return (size_t)detail < COUNT_OF(details);
}

const char *pawl_detail_name(pawl_detail detail)
{
    return is_detail(detail) ? details[detail].name : "UNKNOWN";
}

const char *pawl_detail_text(pawl_detail detail)
{
    return is_detail(detail) ? details[detail].text : "unknown detail";
}

bool pawl__status_may_pass(pawl_status status)
{
    return status == PAWL_BUSY || status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT;
}

/* Shows that a text was cut, without splitting a UTF-8 character. */
static void mark_cut(char *message, size_t size)
{
    size_t end = size - sizeof("...");

    while (end > 0 && ((unsigned char)message[end] & 0xC0) == 0x80) {
        end--;
    }
    memcpy(message + end, "...", sizeof("..."));
}

PRINTF_LIKE(3, 0)
static void format_message(char *message, size_t size, const char *format, va_list args)
{
    int needed = vsnprintf(message, size, format, args);

    if (needed < 0) {
        message[0] = '\0';
    } else if ((size_t)needed >= size) {
        mark_cut(message, size);
    }
}

static void error_reset(pawl_error *error, pawl_status status)
{
    error->status = status;
    error->detail = PAWL_DETAIL_NONE;
    error->index = -1;
    error->retryable = pawl__status_may_pass(status);
    error->advised = false;
    error->native = 0;
    error->sqlstate[0] = '\0';
    memset(error->reserved, 0, sizeof(error->reserved));
}

pawl_status pawl__fail(pawl_error *reterr, pawl_status status, const char *format, ...)
{
    REQUIRE(status != PAWL_OK);
    if (reterr != NULL) {
        va_list args;

        error_reset(reterr, status);
        va_start(args, format);
        format_message(reterr->message, sizeof(reterr->message), format, args);
        va_end(args);
    }
    return status;
}

pawl_status pawl__status_of_errno(int error_number)
{
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
        return PAWL_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return PAWL_DENIED;
    case ENOENT:
        return PAWL_NOT_FOUND;
    case ENOMEM:
        return PAWL_NOMEM;
    case EAGAIN:
    case EBUSY:
        return PAWL_BUSY;
    case ETIMEDOUT:
        return PAWL_TIMEOUT;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
        return PAWL_UNAVAILABLE;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return PAWL_INVALID;
    default:
        return PAWL_IO;
    }
}

pawl_status pawl__fail_errno(pawl_error *reterr, int error_number, const char *format, ...)
{
    pawl_status status = pawl__status_of_errno(error_number);

    if (reterr != NULL) {
        char what[PAWL_ERROR_MESSAGE_SIZE];
        va_list args;

        va_start(args, format);
        format_message(what, sizeof(what), format, args);
        va_end(args);
        /* Static and untranslated: no lock, no locale, no buffer. */
        const char *reason = strerrordesc_np(error_number);
        pawl__fail(reterr, status, "%s: %s", what, reason == NULL ? "unknown error" : reason);
        reterr->native = error_number;
    }
    return status;
}

pawl_status pawl__fail_with(pawl_error *reterr, pawl_status status, const pawl_error *error)
{
    if (error->status != status) {
        return pawl__fail(reterr, status, "%s", pawl_status_text(status));
    }
    if (reterr != NULL) {
        *reterr = *error;
    }
    return status;
}

/* What went wrong, and what to do about it, stands at the end: a long path gives way to it. */
static void shorten_context(char *context, size_t inner_len)
{
    size_t room = PAWL_ERROR_MESSAGE_SIZE - MIN(inner_len + strlen(": "), PAWL_ERROR_MESSAGE_SIZE);

    room = MAX(room, (size_t)CONTEXT_BYTES_MIN);
    if (strlen(context) >= room) {
        mark_cut(context, room);
    }
}

static void set_status(pawl_error *error, pawl_status status)
{
    if (error->status != status) {
        error->status = status;
        error->detail = PAWL_DETAIL_NONE; /* it was one of the other status */
        error->retryable = pawl__status_may_pass(status);
    }
}

pawl_status pawl__fail_context(pawl_error *reterr, pawl_status status, const char *format, ...)
{
    REQUIRE(status != PAWL_OK);
    if (reterr != NULL) {
        char inner[PAWL_ERROR_MESSAGE_SIZE];
        char context[PAWL_ERROR_MESSAGE_SIZE];
        va_list args;

        memcpy(inner, reterr->message, sizeof(inner));
        va_start(args, format);
        format_message(context, sizeof(context), format, args);
        va_end(args);
        shorten_context(context, strlen(inner));
        if (snprintf(reterr->message, sizeof(reterr->message), "%s: %s", context, inner)
            >= (int)sizeof(reterr->message)) {
            mark_cut(reterr->message, sizeof(reterr->message));
        }
        set_status(reterr, status);
    }
    return status;
}

static void add_advice(pawl_error *error, pawl_status status, const char *advice)
{
    size_t room = sizeof(error->message) - strlen(advice) - strlen("; ");
    size_t len = strlen(error->message);

    if (len >= room) {
        mark_cut(error->message, room);
        len = strlen(error->message);
    }
    snprintf(error->message + len, sizeof(error->message) - len, "; %s", advice);
    set_status(error, status);
    error->advised = true;
}

pawl_status pawl__fail_advise(pawl_error *reterr, pawl_status status, const char *format, ...)
{
    REQUIRE(status != PAWL_OK);
    if (reterr != NULL) {
        char advice[PAWL_ERROR_MESSAGE_SIZE / 2];
        va_list args;

        va_start(args, format);
        format_message(advice, sizeof(advice), format, args);
        va_end(args);
        add_advice(reterr, status, advice);
    }
    return status;
}

pawl_status pawl__fail_advise_default(pawl_error *reterr, pawl_status status, const char *advice)
{
    if (reterr == NULL || !reterr->advised) {
        return pawl__fail_advise(reterr, status, "%s", advice);
    }
    set_status(reterr, status);
    return status;
}

pawl_status pawl__mark_advised(pawl_error *reterr, pawl_status status)
{
    if (reterr != NULL) {
        reterr->advised = true;
    }
    return status;
}

pawl_status pawl__mark_detail(pawl_error *reterr, pawl_detail detail, pawl_status status)
{
    if (reterr != NULL) {
        reterr->detail = detail;
    }
    return status;
}

pawl_status pawl__mark_index(pawl_error *reterr, size_t index, pawl_status status)
{
    if (reterr != NULL) {
        reterr->index = (int64_t)index;
    }
    return status;
}

pawl_status pawl__fail_settled(pawl_error *reterr, pawl_status status, const char *format, ...)
{
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    pawl_status settled = is_status(status) ? status : PAWL_FAILED;
    if (reterr != NULL && (reterr->status != settled || settled != status)) {
        char who[PAWL_ERROR_MESSAGE_SIZE];
        va_list args;

        va_start(args, format);
        format_message(who, sizeof(who), format, args);
        va_end(args);
        if (settled != status) {
            return pawl__fail(
                reterr, settled, "%s returned %d, which is no pawl_status", who, (int)status);
        }
        pawl__fail(reterr,
                   settled,
                   "%s returned %s (%d) and did not say why",
                   who,
                   pawl_status_name(status),
                   (int)status);
    } else if (reterr != NULL) {
        reterr->sqlstate[sizeof(reterr->sqlstate) - 1] = '\0';
        reterr->message[sizeof(reterr->message) - 1] = '\0';
    }
    return settled;
}

pawl_status pawl__check_view(pawl_view view, const char *name, pawl_error *reterr)
{
    if (view.data == NULL && view.len > 0) {
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_NULL_ARGUMENT,
                                 "%s: is NULL and has %zu bytes",
                                 name,
                                 view.len);
    }
    return PAWL_OK;
}

pawl_status pawl__check_range(
    const char *name, int64_t value, int64_t min, int64_t max, pawl_error *reterr)
{
    return value >= min && value <= max ? PAWL_OK
                                        : pawl__fail_detail(reterr,
                                                            PAWL_INVALID,
                                                            PAWL_DETAIL_OUT_OF_RANGE,
                                                            "%s: is %lld, must be %lld to %lld",
                                                            name,
                                                            (long long)value,
                                                            (long long)min,
                                                            (long long)max);
}

pawl_status pawl__check_bytes(const char *name, size_t len, size_t max, pawl_error *reterr)
{
    return len <= max ? PAWL_OK
                      : pawl__fail_detail(reterr,
                                          PAWL_INVALID,
                                          PAWL_DETAIL_TOO_LARGE,
                                          "%s: has %zu bytes, the limit is %zu",
                                          name,
                                          len,
                                          max);
}

pawl_status pawl__check_room(
    const char *name, const void *buffer, size_t room, size_t needed, pawl_error *reterr)
{
    return buffer == NULL || room >= needed
               ? PAWL_OK
               : pawl__fail_detail(reterr,
                                   PAWL_INVALID,
                                   PAWL_DETAIL_TOO_LARGE,
                                   "%s: has room for %zu bytes, needs %zu",
                                   name,
                                   room,
                                   needed);
}

pawl_status pawl__check_limit(
    const char *before, uint64_t count, const char *after, uint64_t max, pawl_error *reterr)
{
    return count <= max ? PAWL_OK
                        : pawl__fail_detail(reterr,
                                            PAWL_INVALID,
                                            PAWL_DETAIL_TOO_LARGE,
                                            "%s %llu%s, the limit is %llu",
                                            before,
                                            (unsigned long long)count,
                                            after,
                                            (unsigned long long)max);
}

void pawl__require_failed(const char *condition, const char *file, int line, const char *function)
{
    /* The one place that ends the process: going on would write what is known to be wrong. */
    fprintf(stderr, "pawl: broken invariant: %s, in %s (%s:%d)\n", condition, function, file, line);
    abort();
}
