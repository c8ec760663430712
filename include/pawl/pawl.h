/* pawl: what every part of the library shares.
 *
 * Conventions of all <pawl/...> headers
 *
 *   Status      A call that can fail returns pawl_status. On anything but PAWL_OK it leaves its
 *               `ret_` outputs alone and fills `reterr`, unless that is NULL.
 *   Arguments   Object, inputs, `ret_` outputs, `reterr`, in this order.
 *   Ownership   A pawl_view is borrowed for the call. What a function hands out through `ret_`
 *               belongs to the caller, who ends it with the type's _close or _free. Texts and JSON
 *               (char **ret_...) end with a NUL and are ended with pawl_free. All of these take NULL.
 *   Growth      A struct begins with `size`, and only ever grows at its end. Whoever makes it sets the
 *               size: a caller with the type's _INIT (0 is INVALID, PAWL_DETAIL_STRUCT_SIZE), the
 *               library for what it hands out. A member beyond `size` is not there. The library takes
 *               the default for one that a caller's struct lacks, and fills in no more than a caller
 *               has room for: it sets `size` of a `ret_` struct to what it has filled in.
 *               In an array all elements have the size of the first one. Of a `ret_` array only the
 *               first needs it set. PAWL_AT(type, array, i) is element i of an array that the library
 *               handed out, whatever version it is of; with array[i] a program must be compiled again
 *               for a new minor version.
 *               Complete, and without a size: pawl_view, pawl_error (it has a reserve),
 *               pawl_log_field, pawl_ledger_head, pawl_recalled, pawl_work_position, pawl_seq_value,
 *               pawl_app_id, pawl_app_number and pawl_query_cell.
 *   Closing     pawl_X_close(x, timeout_ms, reterr) ends a handle that has threads or a store, in
 *               bounded time; 0 is the handle's own bound. PAWL_OK: it is gone. TIMEOUT: the store
 *               hangs; the handle is gone for the caller, and what still uses the store stays behind.
 *               PAWL_DETAIL_WRONG_THREAD, from inside a callback of the handle: it stays open.
 *               Everything else has a _free, which cannot fail. All of them take NULL.
 *   Visitors    bool (*pawl_T_visit)(void *context, const T *): called in order on the thread of the
 *               call, until it returns false, which is no error. What it gets is borrowed for the
 *               call. It may call anything except close on the same handle.
 *   Pages       A list that may be long takes a pawl_page, or NULL for all of it: `limit` is the most to
 *               visit, `from` (numbers) or `from_id` (ids) the first one. The call sets `more`, and
 *               moves `from` or `from_id` to where the next page begins:
 *
 *                   pawl_page page = PAWL_PAGE_INIT;
 *                   page.limit = 100;
 *                   do {
 *                       status = pawl_task_list(work, NULL, &page, visit, context, &error);
 *                   } while (status == PAWL_OK && page.more);
 *
 *               A visitor that returns false ends the page as the limit does.
 *   Progress    A call that may take long takes a `const pawl_watch *`, or NULL: `progress` is called now and
 *               then on the thread of the call with how much is done, of about how much (0: nobody knows
 *               yet). Returning false ends the call: CANCELLED. It may call what a visitor may.
 *   Durability  PAWL_OK from a call that writes means: on disk, survives a power cut. A weaker
 *               mode exists only where its header names it.
 *   Threads     Any function may be called from any thread unless its header says otherwise.
 *   Async       pawl_X_async does what pawl_X does without waiting for it. It takes the same inputs,
 *               which it copies, then `done` and `context` in place of the `ret_` outputs:
 *
 *                   typedef void (*pawl_X_done)(void *context, RESULT *result, const pawl_error *outcome);
 *
 *               PAWL_OK: the call is under way, and `done` is called exactly once. `outcome` is what
 *               pawl_X would have returned and filled in; `result` is NULL unless outcome->status is
 *               PAWL_OK. A result that has a _free belongs to `done`, any other is borrowed for the
 *               call; a call without a result has a pawl_done. Any other status: the call was
 *               refused, and `done` is never called.
 *
 *               `done` runs on a thread of the handle that serves others, too: return quickly, never
 *               block. It may come before pawl_X_async has returned. Inside it, on the same handle,
 *               reads that do not wait and other _async calls are fine; a call that would wait for
 *               this thread, and close, are refused with PAWL_DETAIL_WRONG_THREAD. Close waits for
 *               every `done` that is outstanding, within its bound.
 *   Process     The library never exits, aborts on bad input, prints, or touches signals. */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_MUST_USE __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_MUST_USE
#endif

/* Element i of an array of structs that begin with their size. See Growth. */
#define PAWL_AT(type, array, i) \
    ((const type *)(const void *)((const char *)(array) + (size_t)(i) * (array)->size))

/* The version of these headers. Until 1.0 a minor version may change anything: CHANGELOG.md says what a
 * program must change. The shared library is named for major and minor version. */
#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0
#define PAWL_VERSION_NUMBER \
    (PAWL_VERSION_MAJOR * 1000000 + PAWL_VERSION_MINOR * 1000 + PAWL_VERSION_PATCH)

/* Every status, the exit code the `pawl` command ends with, and its text.
 *
 * There is one status for each thing a caller would do differently, and no more. Add new ones at
 * the end: the numbers are part of the ABI. */
#define PAWL_STATUS_MAP(X)                                              \
    X(OK, 0, "ok")                                                      \
    X(FAILED, 1, "failed")                                              \
    X(INVALID, 2, "bad usage or input")                                 \
    X(NOT_FOUND, 3, "not found")                                        \
    X(CONFLICT, 4, "conflicts with what is stored")                     \
    X(LEASE_LOST, 4, "lease expired or taken by another owner")         \
    X(BUSY, 5, "busy or locked by another process")                     \
    X(UNAVAILABLE, 5, "a server or peer cannot be reached")             \
    X(TIMEOUT, 5, "deadline passed")                                    \
    X(NO_SPACE, 5, "no space left")                                     \
    X(CORRUPT, 6, "stored data is damaged")                             \
    X(UNSUPPORTED, 2, "made by a newer version, or not supported here") \
    X(DENIED, 1, "permission denied or read-only")                      \
    X(IO, 1, "input or output failed")                                  \
    X(NOMEM, 1, "out of memory")                                        \
    X(CANCELLED, 1, "cancelled")                                        \
    X(CLOSED, 1, "already closed")

typedef enum pawl_status {
#define PAWL_STATUS_ENUM_(name, exit_code, text) PAWL_##name,
    PAWL_STATUS_MAP(PAWL_STATUS_ENUM_)
#undef PAWL_STATUS_ENUM_
} pawl_status;

/* What exactly is behind a status, where a caller may want to tell cases apart that it handles alike as
 * a rule. Numbers to switch on, and not texts: a misspelt one does not compile, and an error stays free of
 * pointers. Add new ones at the end: the numbers are part of the ABI. A program must expect details that it
 * does not know, and then go by the status. */
#define PAWL_DETAIL_MAP(X)                                                                       \
    X(NONE, "nothing more is known")                                                             \
    /* INVALID */                                                                                \
    X(NULL_ARGUMENT, "a required argument is NULL or empty")                                     \
    X(STRUCT_SIZE, "the size of a struct is not set, or is of a newer version")                  \
    X(OUT_OF_RANGE, "a number is out of its range")                                              \
    X(TOO_LARGE, "there are more bytes or elements than the limit")                              \
    X(TRANSACTION_OPEN, "a transaction is open already")                                         \
    X(NO_TRANSACTION, "no transaction is open")                                                  \
    X(WRONG_THREAD,                                                                              \
      "the thread must not make this call: the object is another thread's, or it is a callback") \
    X(UNKNOWN_KIND, "unknown kind of workspace")                                                 \
    X(UNKNOWN_SEQUENCE, "unknown sequence")                                                      \
    X(DEPENDENCY_CYCLE, "an item would wait for itself")                                         \
    X(EVIDENCE_FAILED, "a piece of evidence does not hold")                                      \
    /* FAILED */                                                                                 \
    X(EXHAUSTED, "no number is left")                                                            \
    X(KEY_FAILED, "what the idempotency key stands for failed for good")                         \
    /* CONFLICT */                                                                               \
    X(ID_TAKEN, "the id is that of something with other content")                                \
    X(KEY_REUSED, "the idempotency key was used by another command")                             \
    X(KEY_IN_DOUBT, "what the idempotency key stands for may have happened")                     \
    X(TASK_ENDED, "the task has ended")                                                          \
    X(ITEM_ENDED, "the item has ended")                                                          \
    X(TURN_OPEN, "the turn is open: its events come through its handle")                         \
    X(TURN_COMMITTED, "the turn is committed already")                                           \
    X(FILE_EXISTS, "the file exists already")                                                    \
    /* BUSY */                                                                                   \
    X(KEY_IN_FLIGHT, "another caller does what the idempotency key stands for")                  \
    X(QUEUE_FULL, "too many calls wait")                                                         \
    /* NOT_FOUND */                                                                              \
    X(NO_TASK, "no such task")                                                                   \
    X(NO_ITEM, "no such item")

typedef enum pawl_detail {
#define PAWL_DETAIL_ENUM_(name, text) PAWL_DETAIL_##name,
    PAWL_DETAIL_MAP(PAWL_DETAIL_ENUM_)
#undef PAWL_DETAIL_ENUM_
} pawl_detail;

#define PAWL_ERROR_MESSAGE_SIZE 512

/* What went wrong. `status`, `detail` and `index` are for programs, the message is for people: its words
 * change. It holds no pointers, so it can be copied, needs no free and works when memory is what ran out.
 * Start with PAWL_ERROR_INIT. Its size never changes: new members are taken out of `reserved`. */
typedef struct pawl_error {
    pawl_status status;
    pawl_detail detail;
    int64_t index;    /* of the element of a batch that it is about, from 0 on; -1: of none */
    bool retryable;   /* the same call may succeed later, unchanged */
    bool advised;     /* the message ends with what to do next */
    int native;       /* errno, sqlite3 extended code, ...; 0: none */
    char sqlstate[6]; /* NUL-terminated; empty when the store has none */
    char reserved[34];
    char message[PAWL_ERROR_MESSAGE_SIZE];
} pawl_error;

#define PAWL_ERROR_INIT                                            \
    {                                                              \
        PAWL_OK, PAWL_DETAIL_NONE, -1, false, false, 0, "", "", "" \
    }

/* Bytes that belong to somebody else; not NUL-terminated. An empty view may have NULL data. */
typedef struct pawl_view {
    const char *data;
    size_t len;
} pawl_view;

/* The view of a NUL-terminated string; NULL gives the empty view. */
PAWL_API pawl_view pawl_view_of(const char *text);

#define PAWL_PAGE_ID_SIZE 256 /* of from_id, with the NUL */

/* One page of a list. See Pages above. */
typedef struct pawl_page {
    size_t size;    /* PAWL_PAGE_INIT sets it */
    uint64_t limit; /* the most to visit; 0: all */
    uint64_t
        from; /* the first number; 0: the beginning. At the end of a log, the number of its next entry */
    char from_id[PAWL_PAGE_ID_SIZE]; /* the first id; empty: the beginning */
    bool more; /* set by the call: entries follow, and from or from_id is the next */
} pawl_page;

#define PAWL_PAGE_INIT                     \
    {                                      \
        sizeof(pawl_page), 0, 0, "", false \
    }

typedef bool (*pawl_progress)(void *context, uint64_t done, uint64_t total);

/* Who watches a call that may take long. See Progress above. */
typedef struct pawl_watch {
    size_t size;            /* PAWL_WATCH_INIT sets it */
    pawl_progress progress; /* NULL: nobody */
    void *context;
} pawl_watch;

#define PAWL_WATCH_INIT                \
    {                                  \
        sizeof(pawl_watch), NULL, NULL \
    }

/* What became of an asynchronous call without a result. See Async above. */
typedef void (*pawl_done)(void *context, const pawl_error *outcome);

/* Ends a text that the library handed out. NULL is fine. */
PAWL_API void pawl_free(void *memory);

/* A copy that ends with a NUL, for pawl_free: of texts that a callback hands to the library. NULL: no memory. */
PAWL_API PAWL_MUST_USE char *pawl_copy_text(pawl_view text);

/* "CONFLICT"; "UNKNOWN" for a number that is no status. Static. */
PAWL_API const char *pawl_status_name(pawl_status status);

/* "conflicts with what is stored". Static. */
PAWL_API const char *pawl_status_text(pawl_status status);

/* "KEY_REUSED" and "the idempotency key was used by another command"; "UNKNOWN" and "unknown detail" for a
 * number that is no detail. Static. */
PAWL_API const char *pawl_detail_name(pawl_detail detail);
PAWL_API const char *pawl_detail_text(pawl_detail detail);

/* The exit code of the `pawl` command for a status: 0 done, 1 failed, 2 bad usage or input,
 * 3 nothing found, 4 conflict or lease lost, 5 busy or unavailable, 6 checked and found wrong. */
PAWL_API int pawl_status_exit_code(pawl_status status);

/* Log lines. The library itself says nothing unless it is given somewhere to say it: what fails is
 * returned, and debug lines go to the sink that the program sets, or nowhere.
 *
 * One event is a constant message and fields with its particulars. Everything in it is borrowed for
 * the call of the sink. New members go to the end of pawl_log_event; `size` says which there are.
 */
typedef enum pawl_log_level {
    PAWL_LOG_DEBUG,
    PAWL_LOG_INFO,
    PAWL_LOG_WARNING,
    PAWL_LOG_ERROR
} pawl_log_level;

typedef enum pawl_log_kind {
    PAWL_LOG_TEXT,
    PAWL_LOG_INTEGER,
    PAWL_LOG_NATURAL,
    PAWL_LOG_REAL,
    PAWL_LOG_BOOLEAN
} pawl_log_kind;

typedef struct pawl_log_field {
    const char *key;
    pawl_log_kind kind; /* which of these is set */
    union {
        pawl_view text; /* any bytes */
        int64_t integer;
        uint64_t natural;
        double real;
        bool boolean;
    } value;
} pawl_log_field;

typedef struct pawl_log_event {
    size_t size; /* of this struct */
    pawl_log_level level;
    int64_t wall_us; /* microseconds since 1970, UTC */
    const char *message;
    const pawl_log_field *fields;
    size_t field_count;
} pawl_log_event;

typedef void (*pawl_log_sink)(void *context, const pawl_log_event *event);

/* Sends every event of `least` or above to `sink`; NULL is silence, and how it starts.
 *
 * The sink is called on the thread that logs, by several at once, and must neither log nor set a
 * sink itself. When this returns the sink that was set before is no longer running and its context
 * may go. */
PAWL_API void pawl_set_log_sink(pawl_log_sink sink, void *context, pawl_log_level least);

/* "debug", "info", "warning", "error"; "unknown" for a number that is no level. Static. */
PAWL_API const char *pawl_log_level_name(pawl_log_level level);

/* The version of the library that is running, "0.1.0". Static. */
PAWL_API const char *pawl_version(void);

/* PAWL_VERSION_NUMBER of the library that is running. */
PAWL_API uint32_t pawl_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
