/* Idempotency keys as callers see them: begin, end, read. */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sha256.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "work/core/copy.h"
#include "work/core/internal.h"
#include "work/items/item.h"
#include "work/keys/backend.h"

#define TTL_MS_DEFAULT (INT64_C(24) * 3600 * 1000)
#define TTL_MS_MAX (INT64_C(100) * 366 * 24 * 3600 * 1000) /* a hundred years */
#define REQUEST_BYTES_MAX ((size_t)256 << 20)

pawl_status pawl_request_hash(pawl_view request, char *ret_hash, size_t room, pawl_error *reterr)
{
    NEED(ret_hash, reterr);
    TRY(pawl__check_room("ret_hash", ret_hash, room, PAWL_REQUEST_HASH_SIZE, reterr));
    NEED_VIEW(request, reterr);
    json_auto_t *json = NULL;
    struct pawl__sha256 hash;
    /* A canonical form can be longer: \u escapes of two bytes become six at the most. */
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(8 * REQUEST_BYTES_MAX);
    pawl_status status = pawl__json_parse(request, REQUEST_BYTES_MAX, &json, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_canonical(json, &text, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__sha256(pawl__buf_view(&text), &hash, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "request");
    }
    pawl__sha256_text(&hash, ret_hash);
    return PAWL_OK;
}

/* --- What callers hold --- */

void pawl_idem_free(pawl_idem *idem)
{
    pawl__work_record_free(idem);
}

static pawl_status copy_row(const struct work_key_row *row,
                            pawl_idem_answer answer,
                            pawl_idem **ret_idem,
                            pawl_error *reterr)
{
    struct pawl__arena *arena = NULL;
    pawl_idem *idem = pawl__work_record_new(sizeof(*idem), &arena);
    struct work_key_row copy;

    if (idem == NULL || !pawl__work_copy_key(arena, row, &copy)) {
        pawl_idem_free(idem);
        return pawl__fail(reterr, PAWL_NOMEM, "idempotency key");
    }
    bool ended = answer == PAWL_IDEM_DONE || answer == PAWL_IDEM_FAILED;
    *idem = (pawl_idem){
        .size = sizeof(pawl_idem),
        .answer = answer,
        .owner_token = answer == PAWL_IDEM_NEW ? copy.owner_token : 0,
        .owner = copy.owner,
        .request_hash = copy.request_hash,
        /* Foreign SQL may end a key without a response. */
        .response = ended && copy.response.len == 0 ? pawl_view_of("null") : copy.response,
        .created_at_us = copy.created_at_us,
        .completed_at_us = copy.completed_at_us,
        .lease_expires_at_us = copy.leased ? copy.lease_expires_at_us : 0,
        .expires_at_us = copy.expires_at_us,
    };
    *ret_idem = idem;
    return PAWL_OK;
}

/* --- Begin --- */

struct begin_request {
    struct work_request request; /* first */
    struct work_key_begin given;
    pawl_idem *idem; /* answer */
};

/* A key may point to a task and an item; both must be there. */
static pawl_status check_links(struct work_tx *tx, struct begin_request *begin, pawl_error *reterr)
{
    const struct work_key_begin *given = &begin->given;
    pawl_task task;
    struct work_row *row = NULL;

    if (given->task_id.len > 0) {
        TRY(pawl__work_tx_task(tx, &begin->request, given->task_id, &task, reterr));
    }
    if (given->work_item_id.len > 0 && !pawl__work_is_refused(&begin->request)) {
        TRY(pawl__work_tx_item(tx, &begin->request, given->work_item_id, &row, reterr));
    }
    return PAWL_OK;
}

static pawl_status run_begin(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct begin_request *begin = (struct begin_request *)request;
    const struct work_key_ops *keys = tx->backend->keys;
    struct work_key_row row;
    pawl_idem_answer answer = PAWL_IDEM_NEW;

    pawl_idem_free(STEAL(begin->idem)); /* of an attempt that failed */
    TRY(keys->load(tx->backend, &tx->now, begin->given.key, tx->arena, &row, reterr));
    if (pawl__work_key_decide_begin(&row, &begin->given, &tx->now, &answer, &request->item.outcome)
        != PAWL_OK) {
        return PAWL_OK; /* refused */
    }
    if (answer == PAWL_IDEM_NEW) {
        TRY(check_links(tx, begin, reterr));
        if (pawl__work_is_refused(request)) {
            return PAWL_OK;
        }
        TRY(keys->put(tx->backend, &row, reterr));
    }
    return copy_row(&row, answer, &begin->idem, reterr);
}

static pawl_status check_texts(const pawl_idem_request *request, pawl_error *reterr)
{
    TRY(pawl__work_check_name("key", request->key, reterr));
    TRY(pawl__work_check_optional_name("owner", request->owner, reterr));
    TRY(pawl__work_check_optional_name("task_id", request->task_id, reterr));
    return pawl__work_check_optional_name("work_item_id", request->work_item_id, reterr);
}

/* In one form: digits in capitals are the same hash. */
static pawl_status check_hash(pawl_view given,
                              char ret_hash[PAWL_REQUEST_HASH_SIZE],
                              pawl_error *reterr)
{
    struct pawl__sha256 hash;
    pawl_view rest = given;
    pawl_view prefix = { NULL, 0 };

    TRY(pawl__check_view(given, "request_hash", reterr));
    if (!pawl__view_take(&rest, strlen("sha256:"), &prefix) || !pawl__view_is(prefix, "sha256:")) {
        return pawl__fail(
            reterr, PAWL_INVALID, "request_hash: must be sha256: and 64 hexadecimal digits");
    }
    pawl_status status = pawl__sha256_parse(given, &hash, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "request_hash");
    }
    pawl__sha256_text(&hash, ret_hash);
    return PAWL_OK;
}

static pawl_status parse_begin(const pawl_work *work,
                               const pawl_idem_request *request,
                               char hash[PAWL_REQUEST_HASH_SIZE],
                               struct work_key_begin *ret_begin,
                               pawl_error *reterr)
{
    int64_t ttl_ms = request->ttl_ms == 0 ? TTL_MS_DEFAULT : request->ttl_ms;
    uint32_t lease_ms = request->lease_ms == 0 ? work->options.lease_ms : request->lease_ms;
    TRY(check_texts(request, reterr));
    TRY(check_hash(request->request_hash, hash, reterr));
    if (ttl_ms < 1 || ttl_ms > TTL_MS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "ttl_ms: %lld is not within 1 to %lld",
                          (long long)ttl_ms,
                          (long long)TTL_MS_MAX);
    }
    *ret_begin = (struct work_key_begin){
        .key = request->key,
        .request_hash = pawl_view_of(hash),
        .owner = request->owner,
        .task_id = request->task_id,
        .work_item_id = request->work_item_id,
        .lease_ns = lease_ms * NS_PER_MS,
        .ttl_us = ttl_ms * 1000,
        .take_over = request->take_over,
    };
    return PAWL_OK;
}

pawl_status pawl_idem_begin(pawl_work *work,
                            const pawl_idem_request *request,
                            pawl_idem **ret_idem,
                            pawl_error *reterr)
{
    NEED(work, request, ret_idem, reterr);
    pawl_idem_request whole = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    struct begin_request begin = { .request.run = run_begin };

    TRY(pawl__take_sized("request", request, &whole, sizeof(whole), reterr));
    TRY(parse_begin(work, &whole, hash, &begin.given, reterr));
    pawl_status status = pawl__work_submit_request(work, &begin.request, reterr);
    if (status != PAWL_OK) {
        pawl_idem_free(begin.idem);
        return status;
    }
    *ret_idem = begin.idem;
    return PAWL_OK;
}

/* --- Ending --- */

struct end_request {
    struct work_request request; /* first */
    pawl_view key;
    uint64_t owner_token;
    enum work_key_state state; /* PENDING: it is released */
    pawl_view response;
};

static pawl_status decide_end(const struct end_request *end,
                              struct work_key_row *row,
                              const struct work_now *now,
                              bool *ret_changed,
                              pawl_error *reterr)
{
    return end->state == WORK_KEY_PENDING
               ? pawl__work_key_decide_release(row, end->owner_token, ret_changed, reterr)
               : pawl__work_key_decide_end(
                   row, end->owner_token, end->state, end->response, now, ret_changed, reterr);
}

static pawl_status run_end(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct end_request *end = (struct end_request *)request;
    struct work_key_row row;
    bool changed = false;
    TRY(tx->backend->keys->load(tx->backend, &tx->now, end->key, tx->arena, &row, reterr));
    row.key = end->key;
    if (decide_end(end, &row, &tx->now, &changed, &request->item.outcome) != PAWL_OK || !changed) {
        return PAWL_OK;
    }
    return tx->backend->keys->put(tx->backend, &row, reterr);
}

static pawl_status end_key(pawl_work *work,
                           pawl_view key,
                           uint64_t owner_token,
                           enum work_key_state state,
                           pawl_view response,
                           pawl_error *reterr)
{
    struct end_request end = {
        .request = { .item = { .bytes = response.len }, .run = run_end },
        .key = key,
        .owner_token = owner_token,
        .state = state,
        .response =
            response.len == 0 && state != WORK_KEY_PENDING ? pawl_view_of("null") : response,
    };
    TRY(pawl__work_check_name("key", key, reterr));
    TRY(pawl__work_check_json("response", response, work->options.data_bytes_max, reterr));
    return pawl__work_submit_request(work, &end.request, reterr);
}

pawl_status pawl_idem_complete(
    pawl_work *work, pawl_view key, uint64_t owner_token, pawl_view response, pawl_error *reterr)
{
    NEED(work, reterr);
    NEED_VIEW(key, reterr);
    NEED_VIEW(response, reterr);
    return end_key(work, key, owner_token, WORK_KEY_COMPLETED, response, reterr);
}

pawl_status pawl_idem_fail(
    pawl_work *work, pawl_view key, uint64_t owner_token, pawl_view response, pawl_error *reterr)
{
    NEED(work, reterr);
    NEED_VIEW(key, reterr);
    NEED_VIEW(response, reterr);
    return end_key(work, key, owner_token, WORK_KEY_FAILED, response, reterr);
}

pawl_status pawl_idem_release(pawl_work *work,
                              pawl_view key,
                              uint64_t owner_token,
                              pawl_error *reterr)
{
    NEED(work, reterr);
    NEED_VIEW(key, reterr);
    return end_key(work, key, owner_token, WORK_KEY_PENDING, (pawl_view){ NULL, 0 }, reterr);
}

/* --- Reading --- */

struct reading {
    struct work_now now;
    pawl_idem *idem;
    pawl_status status;
    pawl_error *reterr;
};

static bool copy_found(void *context, const struct work_key_row *row)
{
    struct reading *reading = context;

    reading->status =
        copy_row(row, pawl__work_key_inspect(row, &reading->now), &reading->idem, reading->reterr);
    return false;
}

pawl_status pawl_idem_get(pawl_work *work, pawl_view key, pawl_idem **ret_idem, pawl_error *reterr)
{
    NEED(work, ret_idem, reterr);
    NEED_VIEW(key, reterr);
    struct work_backend *backend = work->backend;
    struct reading reading = { .reterr = reterr };
    TRY(pawl__work_check_name("key", key, reterr));
    TRY(backend->store->read_now(backend, &reading.now, reterr));
    TRY(backend->keys->get(backend, &reading.now, key, copy_found, &reading, reterr));
    TRY(reading.status);
    *ret_idem = reading.idem;
    return PAWL_OK;
}
