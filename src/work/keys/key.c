/* Idempotency keys as callers see them: begin, end, look. */
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

pawl_status pawl_request_hash(pawl_view request,
                              char ret_hash[PAWL_REQUEST_HASH_SIZE],
                              pawl_error *reterr)
{
    NEED(ret_hash, reterr);
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

struct copy {
    pawl_idem idem; /* first */
    struct pawl__arena arena;
};

void pawl_idem_free(pawl_idem *idem)
{
    struct copy *copy = (struct copy *)idem;

    if (copy != NULL) {
        pawl__arena_done(&copy->arena);
        free(copy);
    }
}

static pawl_status copy_row(const struct work_key_row *row,
                            pawl_idem_answer answer,
                            pawl_idem **ret_idem,
                            pawl_error *reterr)
{
    struct copy *copy = calloc(1, sizeof(*copy));
    struct work_key_row kept;

    if (copy == NULL || !pawl__work_copy_key(&copy->arena, row, &kept)) {
        pawl_idem_free((pawl_idem *)copy);
        return pawl__fail(reterr, PAWL_NOMEM, "idempotency key");
    }
    bool ended = answer == PAWL_IDEM_DONE || answer == PAWL_IDEM_FAILED;
    copy->idem = (pawl_idem){
        .answer = answer,
        .owner_token = answer == PAWL_IDEM_NEW ? kept.owner_token : 0,
        .owner = kept.owner,
        .request_hash = kept.request_hash,
        /* Foreign SQL may end a key without a response. */
        .response = ended && kept.response.len == 0 ? pawl_view_of("null") : kept.response,
        .created_at_us = kept.created_at_us,
        .completed_at_us = kept.completed_at_us,
        .lease_expires_at_us = kept.leased ? kept.lease_expires_at_us : 0,
        .expires_at_us = kept.expires_at_us,
    };
    *ret_idem = &copy->idem;
    return PAWL_OK;
}

/* --- Begin --- */

struct begin_request {
    struct work_request request; /* first */
    struct work_key_begin given;
    pawl_idem *idem; /* answer */
};

static bool is_refused(const struct work_request *request)
{
    return request->item.outcome.status != PAWL_OK;
}

/* A key may point to a task and an item; both must be there. */
static pawl_status check_links(struct work_tx *tx, struct begin_request *begin, pawl_error *reterr)
{
    const struct work_key_begin *given = &begin->given;
    const struct work_item_ops *items = tx->backend->items;
    struct work_task task = { .known = true };
    struct work_row *row = NULL;
    if (given->task_id.len > 0) {
        TRY(items->tasks(tx->backend, &given->task_id, 1, tx->arena, &task, reterr));
    }
    if (!task.known) {
        return pawl__work_refuse(
            &begin->request, PAWL_NOT_FOUND, "no task '%.*s'", VIEW_ARGS(given->task_id));
    }
    if (given->work_item_id.len > 0) {
        TRY(items->load(tx->backend, &given->work_item_id, 1, tx->arena, &row, reterr));
        if (row == NULL) {
            return pawl__work_refuse(
                &begin->request, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(given->work_item_id));
        }
    }
    return PAWL_OK;
}

static pawl_status run_begin(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct begin_request *begin = (struct begin_request *)request;
    const struct work_key_ops *keys = tx->backend->keys;
    struct work_key_row row;
    pawl_idem_answer answer = PAWL_IDEM_NEW;

    pawl_idem_free(STEAL(begin->idem)); /* of an attempt that came to nothing */
    pawl_status status =
        keys->load(tx->backend, &tx->now, begin->given.key, tx->arena, &row, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (pawl__work_key_decide_begin(&row, &begin->given, &tx->now, &answer, &request->item.outcome)
        != PAWL_OK) {
        return PAWL_OK; /* refused */
    }
    if (answer == PAWL_IDEM_NEW) {
        status = check_links(tx, begin, reterr);
        if (status == PAWL_OK && !is_refused(request)) {
            status = keys->put(tx->backend, &tx->now, &row, reterr);
        }
    }
    return status == PAWL_OK && !is_refused(request) ? copy_row(&row, answer, &begin->idem, reterr)
                                                     : status;
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
    pawl_status there = pawl__check_view(given, "request_hash", reterr);

    if (there != PAWL_OK) {
        return there;
    }

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
    NEED(work, reterr);
    NEED(request, reterr);
    NEED(ret_idem, reterr);
    pawl_idem_request taken = PAWL_IDEM_REQUEST_INIT;
    char hash[PAWL_REQUEST_HASH_SIZE];
    struct begin_request begin = { .request = { .kind = WORK_RUN, .run = run_begin } };

    TRY(pawl__take_sized("request", request, &taken, sizeof(taken), reterr));
    TRY(parse_begin(work, &taken, hash, &begin.given, reterr));
    pawl_status status = pawl__work_submit_request(work, &begin.request, reterr);
    if (status != PAWL_OK) {
        pawl_idem_free(begin.idem);
        return status;
    }
    *ret_idem = begin.idem;
    return PAWL_OK;
}

/* --- Ending --- */

enum end_kind { END_COMPLETE, END_FAIL, END_RELEASE };

struct end_request {
    struct work_request request; /* first */
    pawl_view key;
    uint64_t owner_token;
    enum end_kind kind;
    pawl_view response;
};

static pawl_status decide_end(const struct end_request *end,
                              struct work_key_row *row,
                              const struct work_now *now,
                              bool *ret_changed,
                              pawl_error *reterr)
{
    if (end->kind == END_RELEASE) {
        return pawl__work_key_decide_release(row, end->owner_token, ret_changed, reterr);
    }
    return pawl__work_key_decide_end(row,
                                     end->owner_token,
                                     end->kind == END_COMPLETE ? WORK_KEY_COMPLETED
                                                               : WORK_KEY_FAILED,
                                     end->response,
                                     now,
                                     ret_changed,
                                     reterr);
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
    return tx->backend->keys->put(tx->backend, &tx->now, &row, reterr);
}

static pawl_status end_key(pawl_work *work,
                           pawl_view key,
                           uint64_t owner_token,
                           enum end_kind kind,
                           pawl_view response,
                           pawl_error *reterr)
{
    struct end_request end = {
        .request = { .item = { .bytes = response.len }, .kind = WORK_RUN, .run = run_end },
        .key = key,
        .owner_token = owner_token,
        .kind = kind,
        .response = response.len == 0 && kind != END_RELEASE ? pawl_view_of("null") : response,
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
    return end_key(work, key, owner_token, END_COMPLETE, response, reterr);
}

pawl_status pawl_idem_fail(
    pawl_work *work, pawl_view key, uint64_t owner_token, pawl_view response, pawl_error *reterr)
{
    NEED(work, reterr);
    NEED_VIEW(key, reterr);
    NEED_VIEW(response, reterr);
    return end_key(work, key, owner_token, END_FAIL, response, reterr);
}

pawl_status pawl_idem_release(pawl_work *work,
                              pawl_view key,
                              uint64_t owner_token,
                              pawl_error *reterr)
{
    NEED(work, reterr);
    NEED_VIEW(key, reterr);
    return end_key(work, key, owner_token, END_RELEASE, (pawl_view){ NULL, 0 }, reterr);
}

/* --- Looking --- */

struct looking {
    struct work_now now;
    pawl_idem *idem;
    pawl_status status;
    pawl_error *reterr;
};

static bool take_look(void *context, const struct work_key_row *row)
{
    struct looking *looking = context;

    looking->status =
        copy_row(row, pawl__work_key_inspect(row, &looking->now), &looking->idem, looking->reterr);
    return false;
}

pawl_status pawl_idem_get(pawl_work *work, pawl_view key, pawl_idem **ret_idem, pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(ret_idem, reterr);
    NEED_VIEW(key, reterr);
    struct work_backend *backend = work->backend;
    struct looking looking = { .reterr = reterr };
    TRY(pawl__work_check_name("key", key, reterr));
    TRY(backend->store->read_now(backend, &looking.now, reterr));
    TRY(backend->keys->get(backend, &looking.now, key, take_look, &looking, reterr));
    TRY(looking.status);
    *ret_idem = looking.idem;
    return PAWL_OK;
}
