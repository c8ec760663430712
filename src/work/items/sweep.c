/* The watchdog: takes back expired leases. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "work/core/group.h"
#include "work/core/internal.h"
#include "work/items/item.h"

enum { SWEEP_AT_ONCE = 1000, SETTLE_AT_ONCE = 1000 };

/* One transaction of a sweep. */
struct sweep_request {
    struct work_request request;
    pawl_sweep_report report; /* answer: what this one did */
    bool more;                /* answer: there may be another thousand */
};

/* What the error_boundary checkpoint of an expiry says. `row` is as it was while it was leased. */
static pawl_status snapshot_of(struct work_tx *tx,
                               const struct work_row *row,
                               pawl_view *ret_snapshot,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(65536);
    pawl_view holder = row->item.lease_holder.len > 0 ? row->item.lease_holder : pawl_view_of("");
    json_auto_t *json = json_pack("{s:s, s:s%, s:s%, s:I, s:I, s:i, s:i}",
                                  "error",
                                  WORK_EXPIRED_MESSAGE,
                                  "work_item_id",
                                  row->item.work_item_id.data,
                                  row->item.work_item_id.len,
                                  "lease_holder",
                                  holder.data,
                                  holder.len,
                                  "token",
                                  (json_int_t)row->item.token,
                                  "attempts",
                                  (json_int_t)row->item.attempts,
                                  "retry_count",
                                  (int)row->item.retry_count,
                                  "max_retries",
                                  (int)row->item.max_retries);

    if (json == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a checkpoint");
    }
    TRY(pawl__json_dump(json, &buf, reterr));
    if (!pawl__arena_copy(tx->arena, pawl__buf_view(&buf), ret_snapshot)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a checkpoint");
    }
    return PAWL_OK;
}

/* The checkpoint of a row that is about to expire, without its id. */
static pawl_status boundary_of(struct work_tx *tx,
                               const struct work_row *row,
                               struct work_boundary *ret_boundary,
                               pawl_error *reterr)
{
    ret_boundary->task_id = row->item.task_id;
    ret_boundary->work_item_id = row->item.work_item_id;
    return snapshot_of(tx, row, &ret_boundary->snapshot, reterr);
}

static pawl_status write_boundaries(struct work_tx *tx,
                                    struct work_boundary *boundaries,
                                    size_t count,
                                    pawl_error *reterr)
{
    char(*texts)[PAWL_WORK_NAME_BYTES_MAX + 1] = TX_ALLOC(tx, count, sizeof(*texts), reterr);

    for (size_t i = 0; i < count; i++) {
        TRY(pawl__work_id((pawl_view){ NULL, 0 }, texts[i], reterr));
        boundaries[i].checkpoint_id = pawl_view_of(texts[i]);
    }
    return tx->backend->items->boundaries(tx->backend, &tx->now, boundaries, count, reterr);
}

static int by_deadline(const void *a, const void *b)
{
    const struct work_row *left = *(struct work_row *const *)a;
    const struct work_row *right = *(struct work_row *const *)b;

    return left->deadline_ns != right->deadline_ns
               ? (left->deadline_ns > right->deadline_ns) - (left->deadline_ns < right->deadline_ns)
               : pawl__work_view_order(left->item.work_item_id, right->item.work_item_id);
}

/* Both steps of each row: expired, then what becomes of it. */
static pawl_status expire_rows(struct work_tx *tx,
                               struct work_row **rows,
                               size_t count,
                               pawl_sweep_report *report,
                               pawl_error *reterr)
{
    struct work_boundary *boundaries = TX_ALLOC(tx, count, sizeof(*boundaries), reterr);
    size_t expired = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(boundary_of(tx, rows[i], &boundaries[expired], reterr));
        if (pawl__work_decide_expire(rows[i], &tx->now)) {
            rows[expired++] = rows[i];
        }
    }
    TRY(tx->backend->items->put(tx->backend, rows, expired, reterr));
    TRY(write_boundaries(tx, boundaries, expired, reterr));
    for (size_t i = 0; i < expired; i++) {
        pawl__work_decide_after_expiry(rows[i], &tx->now);
        report->retried += rows[i]->item.status == PAWL_ITEM_PENDING;
        report->failed += rows[i]->item.status == PAWL_ITEM_FAILED;
    }
    report->expired += expired;
    return pawl__work_tx_put(tx, rows, expired, reterr);
}

static pawl_status run_sweep(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct sweep_request *sweep = (struct sweep_request *)request;
    struct work_backend *backend = tx->backend;
    struct work_row **rows = TX_ALLOC(tx, SWEEP_AT_ONCE, sizeof(struct work_row *), reterr);
    struct work_rows found = { .arena = tx->arena, .rows = rows, .room = SWEEP_AT_ONCE };
    int64_t next_ns;

    sweep->report = (pawl_sweep_report){ .size = sizeof(pawl_sweep_report) };
    TRY(backend->items->expired(backend, &tx->now, &found, reterr));
    TRY(pawl__work_tx_refresh_now(tx, reterr));
    if (found.count > 0) {
        /* Checkpoints are numbered in an order that does not depend on the store. */
        qsort(rows, found.count, sizeof(rows[0]), by_deadline);
        TRY(expire_rows(tx, rows, found.count, &sweep->report, reterr));
    }
    TRY(pawl__work_tx_admit_due(tx, &sweep->report.due, &next_ns, reterr));
    TRY(backend->items->settle(backend, &tx->now, SETTLE_AT_ONCE, &sweep->report.settled, reterr));
    sweep->more = found.count == SWEEP_AT_ONCE || sweep->report.settled == SETTLE_AT_ONCE;
    return PAWL_OK;
}

pawl_status pawl_work_sweep(pawl_work *work, pawl_sweep_report *ret_report, pawl_error *reterr)
{
    NEED(work, reterr);
    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    pawl_sweep_report sum = { .size = sizeof(pawl_sweep_report) };
    bool more = true;

    TRY(work->backend->store->check_schema == NULL
            ? PAWL_OK
            : work->backend->store->check_schema(work->backend, reterr));
    TRY(pawl__work_free_orphans(work, &sum.due, reterr));
    while (more) {
        struct sweep_request sweep = { .request.run = run_sweep };
        TRY(pawl__work_submit_request(work, &sweep.request, reterr));
        sum.expired += sweep.report.expired;
        sum.retried += sweep.report.retried;
        sum.failed += sweep.report.failed;
        sum.due += sweep.report.due;
        sum.settled += sweep.report.settled;
        more = sweep.more;
    }
    pawl__give_sized(&sum, sizeof(sum), ret_report);
    return PAWL_OK;
}
