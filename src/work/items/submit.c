/* Submitting: decides everything before it writes the first row, so that a call is all or nothing and a refusal
 * does not affect the other calls of the group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "work/core/internal.h"
#include "work/items/item.h"
#include "work/items/steps.h"
#include "work/items/submit.h"

enum { MAX_RETRIES_DEFAULT = 3 };

static int32_t max_retries_of(const pawl_submission *given)
{
    return given->max_retries < 0 ? MAX_RETRIES_DEFAULT : given->max_retries;
}

static int by_coming_id(const void *a, const void *b)
{
    const struct work_new_item *one = *(struct work_new_item *const *)a;
    const struct work_new_item *other = *(struct work_new_item *const *)b;
    int order = pawl__work_view_order(one->given->work_item_id, other->given->work_item_id);

    return order != 0 ? order : (one->index > other->index) - (one->index < other->index);
}

/* Which item an error is about. */
static pawl_status name_item(pawl_error *reterr, size_t count, size_t index, pawl_status status)
{
    if (count > 1) {
        pawl__fail_context(reterr, status, "item %zu", index);
    }
    return pawl__mark_index(reterr, index, status);
}

void pawl__work_submit_refuse(const struct work_submit *submit,
                              pawl_status status,
                              pawl_detail detail,
                              size_t index,
                              const char *format,
                              ...)
{
    pawl_error *outcome = &submit->request->item.outcome;
    char message[PAWL_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    pawl__fail_detail(outcome, status, detail, "%s", message);
    (void)name_item(outcome, submit->count, index, status);
}

/* --- what is compared --- */

static pawl_status compare(const struct work_submit *submit,
                           const struct work_new_item *coming,
                           const pawl_item *stored,
                           pawl_error *reterr)
{
    const pawl_submission *given = coming->given;
    const char *other = NULL;
    bool same_input = false;
    TRY(pawl__json_same(given->input_data, stored->input_data, &same_input, reterr));
    if (!pawl__view_equal(given->task_id, stored->task_id)) {
        other = "task_id";
    } else if (!pawl__view_equal(given->work_type, stored->work_type)) {
        other = "work_type";
    } else if (given->priority != stored->priority) {
        other = "priority";
    } else if (max_retries_of(given) != stored->max_retries) {
        other = "max_retries";
    } else if (!same_input) {
        other = "input_data";
    }
    if (other != NULL) {
        pawl__work_submit_refuse(submit,
                                 PAWL_CONFLICT,
                                 PAWL_DETAIL_ID_TAKEN,
                                 coming->index,
                                 "'%.*s' is there with another %s",
                                 VIEW_ARGS(given->work_item_id),
                                 other);
    }
    return PAWL_OK;
}

/* --- looking --- */

struct work_row *pawl__work_submit_find_stored(const struct work_submit *submit, pawl_view id)
{
    const pawl_view *found =
        submit->known_count == 0
            ? NULL
            : bsearch(&id, submit->known_ids, submit->known_count, sizeof(id), pawl__work_by_view);

    return found == NULL ? NULL : submit->known[found - submit->known_ids];
}

struct work_new_item *pawl__work_submit_find_new(const struct work_submit *submit, pawl_view id)
{
    size_t low = 0;
    size_t high = submit->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pawl__work_view_order(submit->by_id[middle]->given->work_item_id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < submit->count && pawl__view_equal(submit->by_id[low]->given->work_item_id, id)
               ? submit->by_id[low]
               : NULL;
}

static pawl_status load_known(struct work_submit *submit, pawl_error *reterr)
{
    struct work_tx *tx = submit->tx;
    size_t room = 0;

    for (size_t i = 0; i < submit->count; i++) {
        room += submit->coming[i].given->after_count + !submit->coming[i].fresh;
    }
    if (room == 0) {
        return PAWL_OK;
    }
    submit->known_ids = TX_ALLOC(tx, room, sizeof(pawl_view), reterr);
    submit->known = TX_ALLOC(tx, room, sizeof(struct work_row *), reterr);
    room = 0;
    for (size_t i = 0; i < submit->count; i++) {
        const pawl_submission *given = submit->coming[i].given;
        if (!submit->coming[i].fresh) {
            submit->known_ids[room++] = given->work_item_id;
        }
        for (size_t k = 0; k < given->after_count; k++) {
            submit->known_ids[room++] = given->after[k];
        }
    }
    submit->known_count = pawl__work_views_distinct(submit->known_ids, room);
    return tx->backend->items->load(
        tx->backend, submit->known_ids, submit->known_count, tx->arena, submit->known, reterr);
}

/* Of several items, the first one of the task is named. */
static void refuse_task(struct work_submit *submit, pawl_status status, pawl_view task_id)
{
    bool ended = status == PAWL_CONFLICT;
    size_t i = 0;

    while (i + 1 < submit->count && !pawl__view_equal(submit->coming[i].given->task_id, task_id)) {
        i++;
    }
    pawl__work_submit_refuse(submit,
                             status,
                             ended ? PAWL_DETAIL_TASK_ENDED : PAWL_DETAIL_NO_TASK,
                             submit->coming[i].index,
                             ended ? "task '%.*s' is cancelled" : "no task '%.*s'",
                             VIEW_ARGS(task_id));
}

static pawl_status check_tasks(struct work_submit *submit, pawl_error *reterr)
{
    struct work_tx *tx = submit->tx;
    pawl_view *ids = TX_ALLOC(tx, submit->count, sizeof(*ids), reterr);

    for (size_t i = 0; i < submit->count; i++) {
        ids[i] = submit->coming[i].given->task_id;
    }
    size_t count = pawl__work_views_distinct(ids, submit->count);
    struct work_task *tasks = TX_ALLOC(tx, count, sizeof(*tasks), reterr);
    TRY(tx->backend->items->tasks(tx->backend, ids, count, tx->arena, tasks, reterr));
    for (size_t i = 0; i < count && !pawl__work_submit_refused(submit); i++) {
        if (!tasks[i].known) {
            refuse_task(submit, PAWL_NOT_FOUND, ids[i]);
        } else if (tasks[i].task.status == PAWL_TASK_CANCELLED) {
            refuse_task(submit, PAWL_CONFLICT, ids[i]);
        }
    }
    return PAWL_OK;
}

static pawl_status find_duplicates(struct work_submit *submit, pawl_error *reterr)
{
    for (size_t i = 0; i < submit->count && !pawl__work_submit_refused(submit); i++) {
        struct work_new_item *coming = &submit->coming[i];
        const struct work_row *known =
            coming->fresh ? NULL
                          : pawl__work_submit_find_stored(submit, coming->given->work_item_id);
        const struct work_new_item *first =
            pawl__work_submit_find_new(submit, coming->given->work_item_id);
        if (known != NULL) {
            coming->duplicate = true;
            TRY(compare(submit, coming, &known->item, reterr));
        } else if (first != coming) {
            coming->duplicate = true;
            TRY(compare(submit, coming, &first->row.item, reterr));
        }
    }
    return PAWL_OK;
}

/* --- rows --- */

static void make_row(struct work_new_item *coming, const struct work_now *now)
{
    const pawl_submission *given = coming->given;

    coming->row = (struct work_row){
        .item = { .work_item_id = given->work_item_id,
                  .task_id = given->task_id,
                  .work_type = given->work_type,
                  .status = PAWL_ITEM_PENDING,
                  .priority = given->priority,
                  .max_retries = max_retries_of(given),
                  .input_data = given->input_data,
                  .created_at_us = now->wall_us,
                  .updated_at_us = now->wall_us },
        .home = WORK_NOWHERE,
        .due_ns = INT64_MIN,
    };
    if (given->delay_ms > 0) {
        coming->row.due_ns = now->ns + given->delay_ms * NS_PER_MS;
        coming->row.item.due_at_us = now->wall_us + given->delay_ms * (NS_PER_MS / NS_PER_US);
    }
}

static void begin_as(struct work_new_item *coming, enum work_step step)
{
    bool there = pawl__work_step(WORK_NO_ITEM, step, &coming->row.item.status);

    REQUIRE(there);
}

static void set_waiting(struct work_new_item *coming)
{
    begin_as(coming, WORK_STEP_SUBMIT);
    if (coming->failed_after.len > 0) {
        /* Fails as soon as it is stored; what it would have waited for does not matter. */
        coming->row.waits_for = 0;
        coming->row.due_ns = INT64_MIN;
        coming->row.item.due_at_us = 0;
    } else if (coming->row.waits_for > 0) {
        begin_as(coming, WORK_STEP_SUBMIT_LATER);
        coming->row.reason = WORK_DEPENDENCY;
    } else if (coming->row.due_ns != INT64_MIN) {
        begin_as(coming, WORK_STEP_SUBMIT_LATER);
        coming->row.reason = WORK_DELAY;
    }
}

static pawl_status fail_doomed(struct work_submit *submit, pawl_error *reterr)
{
    struct work_tx *tx = submit->tx;

    for (size_t i = 0; i < submit->count; i++) {
        struct work_new_item *coming = &submit->coming[i];
        bool changed = false;
        if (coming->failed_after.len == 0 || coming->duplicate) {
            continue;
        }
        struct work_row *row = &coming->row;
        TRY(pawl__work_tx_fail_after(tx, row, coming->failed_after, &changed, reterr));
        TRY(pawl__work_tx_put(tx, &row, 1, reterr));
    }
    return PAWL_OK;
}

static pawl_status store(struct work_submit *submit, pawl_error *reterr)
{
    struct work_tx *tx = submit->tx;
    struct work_row **rows = TX_ALLOC(tx, submit->count, sizeof(struct work_row *), reterr);
    size_t count = 0;

    /* In the order of the ids: ends of b-trees stay warm, and nodes lock in the same order. */
    for (size_t i = 0; i < submit->count; i++) {
        if (!submit->by_id[i]->duplicate) {
            REQUIRE(submit->by_id[i]->row.home == WORK_NOWHERE);
            set_waiting(submit->by_id[i]);
            submit->by_id[i]->row.submission = (int64_t)submit->by_id[i]->index;
            rows[count++] = &submit->by_id[i]->row;
        }
    }
    TRY(pawl__work_tx_put(tx, rows, count, reterr));
    if (submit->edge_count > 0) {
        TRY(tx->backend->items->add_edges(tx->backend, submit->edges, submit->edge_count, reterr));
    }
    return fail_doomed(submit, reterr);
}

static void hand_out(const struct work_submit *submit, pawl_submit_result *ret_results)
{
    for (size_t i = 0; i < submit->count && ret_results != NULL; i++) {
        pawl_view id = submit->coming[i].given->work_item_id;
        memcpy(ret_results[i].work_item_id, id.data, id.len);
        ret_results[i].work_item_id[id.len] = '\0';
        ret_results[i].duplicate = submit->coming[i].duplicate;
    }
}

pawl_status pawl__work_tx_submit(struct work_tx *tx,
                                 struct work_request *request,
                                 const pawl_submission *submissions,
                                 const bool *fresh,
                                 size_t count,
                                 pawl_submit_result *ret_results,
                                 pawl_error *reterr)
{
    struct work_submit submit = { .tx = tx, .request = request, .count = count };
    static pawl_status (*const steps[])(struct work_submit *, pawl_error *) = {
        load_known,
        check_tasks,
        find_duplicates,
        pawl__work_submit_compare_edges,
        pawl__work_submit_add_edges,
        store,
    };

    if (count == 0) {
        return PAWL_OK;
    }
    submit.coming = TX_ALLOC(tx, count, sizeof(struct work_new_item), reterr);
    submit.by_id = TX_ALLOC(tx, count, sizeof(struct work_new_item *), reterr);
    for (size_t i = 0; i < count; i++) {
        submit.coming[i] = (struct work_new_item){ .given = &submissions[i],
                                                   .index = i,
                                                   .fresh = fresh != NULL && fresh[i] };
        make_row(&submit.coming[i], &tx->now);
        submit.by_id[i] = &submit.coming[i];
    }
    qsort(submit.by_id, count, sizeof(*submit.by_id), by_coming_id);
    for (size_t i = 0; i < COUNT_OF(steps) && !pawl__work_submit_refused(&submit); i++) {
        TRY(steps[i](&submit, reterr));
    }
    if (!pawl__work_submit_refused(&submit)) {
        hand_out(&submit, ret_results);
    }
    return PAWL_OK;
}

/* --- on the caller's thread --- */

struct submit_request {
    struct work_request request;
    pawl_submission *submissions;
    bool *fresh;
    size_t count;
    pawl_submit_result *results;
};

static pawl_status run_submit(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct submit_request *submit = (struct submit_request *)request;

    return pawl__work_tx_submit(
        tx, request, submit->submissions, submit->fresh, submit->count, submit->results, reterr);
}

static pawl_status prepare_one(const pawl_work *work,
                               struct submit_request *submit,
                               size_t i,
                               char *ret_id,
                               pawl_error *reterr)
{
    pawl_submission *given = &submit->submissions[i];

    submit->fresh[i] = given->work_item_id.len == 0;
    if (submit->fresh[i]) {
        TRY(pawl__work_id((pawl_view){ NULL, 0 }, ret_id, reterr));
        given->work_item_id = pawl_view_of(ret_id);
    }
    submit->request.item.bytes += given->input_data.len + given->work_item_id.len;
    pawl_status status = pawl__work_submission_check(given, &work->options, reterr);
    return status == PAWL_OK ? PAWL_OK : name_item(reterr, submit->count, i, status);
}

pawl_status pawl_work_submit(pawl_work *work,
                             const pawl_submission *submissions,
                             size_t count,
                             pawl_submit_result *ret_results,
                             pawl_error *reterr)
{
    NEED(work, reterr);
    if (count > PAWL_WORK_BATCH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%zu items in one submit, the limit is %d",
                          count,
                          PAWL_WORK_BATCH_MAX);
    }
    if (count == 0) {
        return PAWL_OK;
    }
    NEED(submissions, reterr);
    TRY(pawl__check_sized("ret_results", ret_results, reterr));
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char(*ids)[PAWL_WORK_NAME_BYTES_MAX + 1] = pawl__arena_take(&arena, count * sizeof(*ids));
    struct submit_request submit = {
        .request.run = run_submit,
        .submissions = pawl__arena_take(&arena, count * sizeof(*submissions)),
        .fresh = pawl__arena_take(&arena, count * sizeof(bool)),
        .count = count,
        .results = pawl__arena_take(&arena, count * sizeof(*ret_results)),
    };
    if (ids == NULL || submit.submissions == NULL || submit.fresh == NULL
        || submit.results == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a submit");
    }
    static const pawl_submission defaults = PAWL_SUBMISSION_INIT;
    TRY(pawl__take_sized_array(
        "item", submissions, count, &defaults, submit.submissions, sizeof(defaults), reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(prepare_one(work, &submit, i, ids[i], reterr));
    }
    TRY(pawl__work_submit_request(work, &submit.request, reterr));
    pawl__give_sized_array(submit.results, count, sizeof(*submit.results), ret_results);
    return PAWL_OK;
}
