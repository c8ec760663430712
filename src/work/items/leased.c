/* Calls of the holder of an item: heartbeat, complete, fail, release. */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "work/core/group.h"
#include "work/core/internal.h"
#include "work/items/item.h"

/* --- on the committer's thread --- */

struct position {
    pawl_view id;
    size_t call;
};

static int by_id_then_arrival(const void *a, const void *b)
{
    const struct position *one = a;
    const struct position *other = b;
    int order = pawl__work_view_order(one->id, other->id);

    return order != 0 ? order : (one->call > other->call) - (one->call < other->call);
}

static bool decide_one(struct work_tx *tx, struct work_leased *call, struct work_row *row)
{
    bool changed = false;

    if (row == NULL) {
        pawl__work_refuse(
            &call->request, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(call->lease.work_item_id));
        return false;
    }
    call->command.random = pawl__prng_next(tx->prng);
    if (pawl__work_decide_leased(
            row, &call->command, &tx->now, &changed, &call->request.item.outcome)
        == PAWL_OK) {
        call->status = row->item.status == PAWL_ITEM_PENDING ? PAWL_ITEM_WAITING : row->item.status;
        call->expires_at_us = row->item.lease_expires_at_us;
    }
    return changed;
}

pawl_status pawl__work_group_leased(struct work_tx *tx,
                                    struct work_leased *const *calls,
                                    size_t count,
                                    pawl_error *reterr)
{
    struct work_backend *backend = tx->backend;
    struct position *positions = TX_ALLOC(tx, count, sizeof(*positions), reterr);
    pawl_view *ids = TX_ALLOC(tx, count, sizeof(*ids), reterr);
    struct work_row **rows = TX_ALLOC(tx, count, sizeof(struct work_row *), reterr);
    size_t distinct = 0;
    size_t changed_count = 0;

    for (size_t i = 0; i < count; i++) {
        positions[i] = (struct position){ .id = calls[i]->lease.work_item_id, .call = i };
    }
    qsort(positions, count, sizeof(*positions), by_id_then_arrival);
    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 || !pawl__view_equal(ids[distinct - 1], positions[i].id)) {
            ids[distinct++] = positions[i].id;
        }
    }
    TRY(backend->items->load(backend, ids, distinct, tx->arena, rows, reterr));
    TRY(pawl__work_tx_refresh_now(tx, reterr));
    for (size_t i = 0, at = 0; i < distinct; i++) {
        bool changed = false;
        REQUIRE(rows[i] == NULL || pawl__view_equal(rows[i]->item.work_item_id, ids[i]));
        for (; at < count && pawl__view_equal(positions[at].id, ids[i]); at++) {
            changed |= decide_one(tx, calls[positions[at].call], rows[i]);
        }
        if (changed) {
            rows[changed_count++] = rows[i]; /* changed_count <= i */
        }
    }
    return pawl__work_tx_put(tx, rows, changed_count, reterr);
}

pawl_status pawl__work_tx_lease(struct work_tx *tx,
                                struct work_request *request,
                                const pawl_lease *lease,
                                struct work_row **ret_row,
                                pawl_error *reterr)
{
    struct work_row *row = NULL;

    *ret_row = NULL;
    TRY(pawl__work_tx_item(tx, request, lease->work_item_id, &row, reterr));
    TRY(pawl__work_tx_refresh_now(tx, reterr));
    if (row != NULL
        && pawl__work_decide_held(row, lease->token, &tx->now, &request->item.outcome) == PAWL_OK) {
        *ret_row = row;
    }
    return PAWL_OK;
}

/* --- on the caller's --- */

static pawl_status set_lease(const pawl_lease *lease, struct work_leased *call, pawl_error *reterr)
{
    NEED(lease, reterr);
    call->request.kind = WORK_LEASED;
    TRY(pawl__take_sized("lease", lease, &call->lease, sizeof(call->lease), reterr));
    call->command.token = call->lease.token;
    return pawl__work_check_name("work_item_id", call->lease.work_item_id, reterr);
}

pawl_status pawl_work_heartbeat(pawl_work *work,
                                const pawl_lease *lease,
                                uint32_t lease_ms,
                                int64_t *ret_expires_at_us,
                                pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = { .command.kind = WORK_HEARTBEAT };
    TRY(set_lease(lease, &call, reterr));
    call.command.lease_ns =
        (int64_t)(lease_ms == 0 ? work->options.lease_ms : lease_ms) * NS_PER_MS;
    TRY(pawl__work_submit_request(work, &call.request, reterr));
    if (ret_expires_at_us != NULL) {
        *ret_expires_at_us = call.expires_at_us;
    }
    return PAWL_OK;
}

static pawl_status set_output(pawl_work *work,
                              pawl_view output_data,
                              struct work_leased *call,
                              pawl_error *reterr)
{
    call->command.output_data = output_data;
    call->request.item.bytes += output_data.len;
    return pawl__work_check_json("output_data", output_data, work->options.data_bytes_max, reterr);
}

pawl_status pawl_work_complete(pawl_work *work,
                               const pawl_lease *lease,
                               pawl_view output_data,
                               pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = { .command.kind = WORK_COMPLETE };
    TRY(set_lease(lease, &call, reterr));
    TRY(set_output(work, output_data, &call, reterr));
    return pawl__work_submit_request(work, &call.request, reterr);
}

static pawl_status complete_and_claim(pawl_work *work,
                                      struct work_leased *call,
                                      struct work_claiming *next,
                                      const pawl_claim *claim,
                                      pawl_claimed **ret_claimed,
                                      pawl_error *reterr)
{
    bool prefetches = work->prefetch != NULL; /* then the cache may have the next one */

    call->next = prefetches ? NULL : next;
    TRY(pawl__work_submit_inside(work, &call->request, reterr));
    *ret_claimed = next->claimed;
    /* The item is completed: a failure from here on is reported by the next claim. */
    if (next->claimed == NULL && (next->claim.wait_ms > 0 || prefetches)
        && pawl_work_claim(work, claim, ret_claimed, NULL) != PAWL_OK) {
        *ret_claimed = NULL;
    }
    return PAWL_OK;
}

pawl_status pawl_work_complete_and_claim(pawl_work *work,
                                         const pawl_lease *lease,
                                         pawl_view output_data,
                                         const pawl_claim *claim,
                                         pawl_claimed **ret_claimed,
                                         pawl_error *reterr)
{
    NEED(work, claim, ret_claimed, reterr);
    struct work_claiming next = { 0 };
    struct work_leased call = { .command.kind = WORK_COMPLETE };
    TRY(set_lease(lease, &call, reterr));
    TRY(set_output(work, output_data, &call, reterr));
    TRY(pawl__work_claim_parse(work, claim, &next, reterr));
    pawl__calls_enter(&work->engine.calls);
    pawl_status status = complete_and_claim(work, &call, &next, claim, ret_claimed, reterr);
    pawl__calls_leave(&work->engine.calls);
    return status;
}

pawl_status pawl_work_fail(pawl_work *work,
                           const pawl_lease *lease,
                           pawl_view error_message,
                           pawl_view output_data,
                           bool retryable,
                           pawl_item_status *ret_status,
                           pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = {
        .command = { .kind = WORK_FAIL,
                     .retryable = retryable,
                     .backoff = { .first_ns = work->options.retry_first_ms * NS_PER_MS,
                                  .max_ns = work->options.retry_max_ms * NS_PER_MS } },
    };
    TRY(set_lease(lease, &call, reterr));
    TRY(pawl__work_check_message(
        "error_message", error_message, &call.command.error_message, reterr));
    call.request.item.bytes = call.command.error_message.len;
    TRY(set_output(work, output_data, &call, reterr));
    TRY(pawl__work_submit_request(work, &call.request, reterr));
    if (ret_status != NULL) {
        *ret_status = call.status;
    }
    return PAWL_OK;
}

pawl_status pawl_work_release(pawl_work *work, const pawl_lease *lease, pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = { .command.kind = WORK_RELEASE };
    TRY(set_lease(lease, &call, reterr));
    return pawl__work_submit_request(work, &call.request, reterr);
}

/* --- asynchronous calls --- */

struct async_call {
    struct work_leased call;
    const struct pawl__commit *commit; /* whose thread answers */
    pawl_done done;
    void *context;
    char text[]; /* the id, then the output */
};

static void answer_async(struct pawl__commit_item *item)
{
    struct async_call *async =
        (struct async_call *)((char *)item - offsetof(struct async_call, call.request.item));
    struct pawl__inside inside;

    pawl__inside_enter(&inside, async->commit);
    async->done(async->context, &item->outcome);
    pawl__inside_leave(&inside);
    free(async);
}

static pawl_view copy_text(char *to, pawl_view text)
{
    if (text.len > 0) {
        memcpy(to, text.data, text.len);
    }
    return (pawl_view){ to, text.len };
}

static pawl_status send_async(pawl_work *work,
                              const struct work_leased *call,
                              pawl_done done,
                              void *context,
                              pawl_error *reterr)
{
    pawl_view id = call->lease.work_item_id;
    pawl_view output = call->command.output_data;
    struct async_call *async = malloc(sizeof(*async) + id.len + output.len);

    if (async == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a call");
    }
    *async = (struct async_call){
        .call = *call,
        .commit = work->engine.commit,
        .done = done,
        .context = context,
    };
    async->call.lease.work_item_id = copy_text(async->text, id);
    async->call.command.output_data = copy_text(async->text + id.len, output);
    async->call.request.item.done = answer_async;
    pawl_status status = pawl__work_submit_request_async(work, &async->call.request, reterr);
    if (status != PAWL_OK) {
        free(async);
    }
    return status;
}

pawl_status pawl_work_complete_async(pawl_work *work,
                                     const pawl_lease *lease,
                                     pawl_view output_data,
                                     pawl_done done,
                                     void *context,
                                     pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = { .command.kind = WORK_COMPLETE };
    TRY(set_lease(lease, &call, reterr));
    TRY(set_output(work, output_data, &call, reterr));
    NEED(done, reterr);
    return send_async(work, &call, done, context, reterr);
}

pawl_status pawl_work_release_async(
    pawl_work *work, const pawl_lease *lease, pawl_done done, void *context, pawl_error *reterr)
{
    NEED(work, reterr);
    struct work_leased call = { .command.kind = WORK_RELEASE };
    TRY(set_lease(lease, &call, reterr));
    NEED(done, reterr);
    return send_async(work, &call, done, context, reterr);
}

pawl_status pawl__work_release_async(
    void *work, const pawl_lease *lease, pawl_done done, void *context, pawl_error *reterr)
{
    return pawl_work_release_async(work, lease, done, context, reterr);
}
