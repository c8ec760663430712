/* One piece of work under an idempotency key: begin, do it, store the response. */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "base/thread/inside.h"
#include "work/core/internal.h"

DEFINE_AUTO(pawl_idem *, pawl_idem_free)

static bool is_final(pawl_status status)
{
    return status == PAWL_INVALID || status == PAWL_CONFLICT || status == PAWL_FAILED;
}

/* The work was begun, and how it ended is not known: the unknown outcomes of docs/errors.md. */
static bool may_have_happened(pawl_status status)
{
    return status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE || status == PAWL_IO;
}

/* {"error": "...", "status": "INVALID"} */
static pawl_status describe(pawl_status status,
                            const pawl_error *error,
                            struct pawl__buf *text,
                            pawl_error *reterr)
{
    json_auto_t *json = json_object();
    const char *message = error->message[0] != '\0' ? error->message : pawl_status_text(status);

    /* A message cut in the middle of a character is no JSON text. */
    if (json == NULL
        || json_object_set_new(json, "status", json_string(pawl_status_name(status))) != 0
        || (json_object_set_new(json, "error", json_string(message)) != 0
            && json_object_set_new(json, "error", json_string(pawl_status_text(status))) != 0)) {
        return pawl__fail(reterr, PAWL_NOMEM, "response");
    }
    return pawl__json_dump(json, text, reterr);
}

/* The work failed with `status` and `error`, which the caller gets. The status decides what becomes of the
 * key. */
static void end_failed(pawl_work *work,
                       pawl_view key,
                       uint64_t owner_token,
                       pawl_status status,
                       const pawl_error *error)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT((size_t)8 * PAWL_ERROR_MESSAGE_SIZE);

    /* If ending it fails too, the key stays as it is, and is in doubt once its lease expires. */
    if (may_have_happened(status)) {
        return;
    }
    if (!is_final(status)) {
        (void)!pawl_idem_release(work, key, owner_token, NULL);
    } else if (describe(status, error, &text, NULL) == PAWL_OK) {
        (void)!pawl_idem_fail(work, key, owner_token, pawl__buf_view(&text), NULL);
    }
}

static pawl_status do_it(pawl_work *work,
                         pawl_view key,
                         uint64_t owner_token,
                         pawl_idem_work fn,
                         void *context,
                         char **ret_response,
                         pawl_error *reterr)
{
    AUTO(pawl__text_free) char *response = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;

    pawl__inside_enter(&inside, work);
    pawl_status status = fn(context, &response, &error);
    pawl__inside_leave(&inside);

    status = pawl__fail_settled(&error, status, "the work under key '%.*s'", VIEW_ARGS(key));
    if (status != PAWL_OK) {
        end_failed(work, key, owner_token, status, &error);
        return pawl__fail_with(reterr, status, &error);
    }
    if (response == NULL) {
        response = strdup("null");
    }
    if (response == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "response");
    }
    status = pawl_idem_complete(work, key, owner_token, pawl_view_of(response), reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "it was done, but its response is not stored");
    }
    *ret_response = STEAL(response);
    return PAWL_OK;
}

/* Why nothing was done. */
static pawl_status explain(const pawl_idem *idem, pawl_view key, pawl_error *reterr)
{
    switch (idem->answer) {
    case PAWL_IDEM_IN_FLIGHT:
        return pawl__fail_detail(reterr,
                                 PAWL_BUSY,
                                 PAWL_DETAIL_KEY_IN_FLIGHT,
                                 "key '%.*s' is in flight, by '%.*s'",
                                 VIEW_ARGS(key),
                                 VIEW_ARGS(idem->owner));
    case PAWL_IDEM_FAILED:
        return pawl__fail_detail(reterr,
                                 PAWL_FAILED,
                                 PAWL_DETAIL_KEY_FAILED,
                                 "key '%.*s' failed for good: %.*s",
                                 VIEW_ARGS(key),
                                 (int)MIN(idem->response.len, (size_t)200),
                                 idem->response.data);
    case PAWL_IDEM_HASH_CONFLICT:
        return pawl__fail_detail(reterr,
                                 PAWL_CONFLICT,
                                 PAWL_DETAIL_KEY_REUSED,
                                 "key '%.*s' stands for another request",
                                 VIEW_ARGS(key));
    default:
        return pawl__fail_detail(
            reterr,
            PAWL_CONFLICT,
            PAWL_DETAIL_KEY_IN_DOUBT,
            "key '%.*s' is in doubt: its owner '%.*s' has not ended it in time, and "
            "it may have happened; look, then take it over",
            VIEW_ARGS(key),
            VIEW_ARGS(idem->owner));
    }
}

pawl_status pawl_execute_with_idempotency(pawl_work *work,
                                          const pawl_idem_request *request,
                                          pawl_idem_work fn,
                                          void *context,
                                          char **ret_response,
                                          bool *ret_cached,
                                          pawl_error *reterr)
{
    NEED(work, request, fn, reterr);
    NEED(ret_response, reterr);
    pawl_idem_request whole = PAWL_IDEM_REQUEST_INIT;
    AUTO(pawl_idem_free_p) pawl_idem *idem = NULL;
    TRY(pawl__take_sized("request", request, &whole, sizeof(whole), reterr));
    TRY(pawl_idem_begin(work, request, &idem, reterr));
    bool cached = idem->answer == PAWL_IDEM_DONE;
    if (cached) {
        char *response = pawl__view_dup(idem->response);
        if (response == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "response");
        }
        *ret_response = response;
    } else {
        TRY(idem->answer == PAWL_IDEM_NEW
                ? do_it(work, whole.key, idem->owner_token, fn, context, ret_response, reterr)
                : explain(idem, whole.key, reterr));
    }
    if (ret_cached != NULL) {
        *ret_cached = cached;
    }
    return PAWL_OK;
}
