/* POST /v1/work/claims: leases items, and waits for the first if the request asks for that.
 *
 * A claim that waits has a thread of its own (waits.c). Items leased for a client that is gone are released:
 * otherwise nobody could claim them until the lease ends. So are items that do not fit into the answer. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "server/work/records.h"
#include "server/work/work.h"

enum {
    LOOK_MS = 2000,         /* how often a waiting claim checks that its client is still there */
    ANSWER_BYTES = 32 << 20 /* except the first item, which may be larger */
};
#define NOTHING "{\"items\":[]}\n"
#define ITEM_BYTES_MAX ((size_t)256 << 20)

/* Items are leased in steps: their sizes are unknown before, and those that do not fit are released again. */
enum { STEP_FIRST = 64, STEP_FACTOR = 4, STEPS_MAX = 3 };
_Static_assert(STEP_FIRST *(1 + STEP_FACTOR + STEP_FACTOR * STEP_FACTOR) >= WORK_CLAIM_COUNT_MAX,
               "the steps reach the count");

struct claiming {
    struct pawl__serve_call *call; /* what the claim points into */
    struct pawl__http_request *request;
    struct node_work *work;
    pawl_claim claim;
    uint32_t count_max;
    int64_t wait_ms;
    pawl_work *store;
    pawl_claimed *claimed[STEPS_MAX];
    size_t steps;
    size_t held[STEPS_MAX]; /* how many of each are in the answer; the others were released */
    size_t largest;         /* bytes of an item in the answer */
    int64_t began_ms;
    bool waited; /* nothing was there at once */
    struct pawl__buf answer;
    pawl_error error;
};

static void claiming_free(struct claiming *claiming)
{
    for (size_t i = 0; i < claiming->steps; i++) {
        pawl_claimed_free(claiming->claimed[i]);
    }
    pawl__buf_done(&claiming->answer);
    free(claiming);
}

/* --- claiming --- */

static size_t held_count(const struct claiming *claiming)
{
    size_t count = 0;

    for (size_t i = 0; i < claiming->steps; i++) {
        count += claiming->held[i];
    }
    return count;
}

/* An item that no client learns of. */
static void release_item(struct claiming *claiming, const pawl_item *item)
{
    const pawl_lease lease = { item->work_item_id, item->token };
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl_work_release(claiming->store, &lease, &error) != PAWL_OK) {
        LOG_WARNING("an item that was claimed for nobody waits for the end of its lease",
                    LOG_VIEW("work_item_id", item->work_item_id),
                    LOG_TEXT("error", error.message));
    }
}

static void release_all(struct claiming *claiming)
{
    for (size_t step = 0; step < claiming->steps; step++) {
        for (size_t i = 0; i < claiming->held[step]; i++) {
            release_item(claiming, &claiming->claimed[step]->items[i]);
        }
        claiming->held[step] = 0;
    }
}

/* Whether nobody would read the answer. A client that has closed its side may only mean that it sends no more:
 * it gets items that are there at once, but the claim does not wait for it any longer. */
static bool has_left(struct claiming *claiming)
{
    bool at_once =
        !claiming->waited && pawl__serve_work_now_ms(claiming->work) - claiming->began_ms < LOOK_MS;

    return at_once ? pawl__http_is_gone(claiming->request) : pawl__http_has_left(claiming->request);
}

/* Waits for the first step only, and in short waits, so that a client that left occupies no thread for long. */
static pawl_status claim_step(struct claiming *claiming, uint32_t count, pawl_error *reterr)
{
    int64_t deadline_ms = claiming->began_ms + (claiming->steps == 0 ? claiming->wait_ms : 0);
    pawl_claimed *claimed = NULL;

    claiming->claim.count_max = count;
    claiming->claim.wait_ms = 0;
    pawl_status status = pawl_work_claim(claiming->store, &claiming->claim, &claimed, reterr);
    while (status == PAWL_NOT_FOUND) {
        int64_t left_ms = deadline_ms - pawl__serve_work_now_ms(claiming->work);
        if (left_ms <= 0) {
            break;
        }
        claiming->waited = true;
        if (has_left(claiming)) {
            break;
        }
        claiming->claim.wait_ms = (uint32_t)MIN(left_ms, LOOK_MS);
        status = pawl_work_claim(claiming->store, &claiming->claim, &claimed, reterr);
    }
    if (status == PAWL_OK) {
        claiming->held[claiming->steps] = claimed->count;
        claiming->claimed[claiming->steps++] = claimed;
    }
    return status;
}

/* Writes the items of the latest step. *ret_full: some did not fit and were released. */
static pawl_status write_step(struct claiming *claiming, bool *ret_full, pawl_error *reterr)
{
    size_t step = claiming->steps - 1;
    size_t before = held_count(claiming) - claiming->held[step];
    const pawl_claimed *claimed = claiming->claimed[step];
    size_t i = 0;

    for (; i < claimed->count; i++) {
        AUTO(pawl__text_free) char *json = NULL;
        size_t len = 0;
        TRY(pawl_item_to_json(&claimed->items[i], &json, &len, reterr));
        *ret_full = before + i > 0 && claiming->answer.len + len > ANSWER_BYTES;
        if (*ret_full) {
            break;
        }
        pawl__buf_add_text(&claiming->answer, before + i == 0 ? "" : ",");
        pawl__buf_add(&claiming->answer, (pawl_view){ json, len });
        claiming->largest = MAX(claiming->largest, len);
    }
    claiming->held[step] = i;
    for (; i < claimed->count; i++) {
        release_item(claiming, &claimed->items[i]);
    }
    return pawl__buf_check(&claiming->answer, "the answer", reterr);
}

/* How many to lease next, of `wanted`, after a step that was found whole and fits into the answer. */
static uint32_t next_step(const struct claiming *claiming, uint32_t wanted)
{
    size_t room = ANSWER_BYTES - MIN(claiming->answer.len, (size_t)ANSWER_BYTES);
    size_t most = claiming->held[claiming->steps - 1] * STEP_FACTOR;

    return (uint32_t)MIN(wanted, MIN(most, room / MAX(claiming->largest, 1)));
}

static bool is_nothing(pawl_status status, const pawl_error *error)
{
    return status == PAWL_NOT_FOUND && pawl__http_problem_of_error(error)->http == 404;
}

/* Leases up to the number wanted, as many as fit. A failure after the first step ends the claim as if there were
 * no more items: the answer has those that are leased already. */
static pawl_status claim_and_write(struct claiming *claiming, pawl_error *reterr)
{
    uint32_t step = MIN(claiming->count_max, STEP_FIRST);
    uint32_t wanted = claiming->count_max;
    bool full = false;
    pawl_status status = PAWL_OK;

    pawl__buf_add_text(&claiming->answer, "{\"items\":[");
    while (step > 0 && !full && status == PAWL_OK) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status found = claim_step(claiming, step, &error);

        if (found != PAWL_OK && claiming->steps == 0 && !is_nothing(found, &error)) {
            *reterr = error;
            return found;
        }
        if (found != PAWL_OK || has_left(claiming)) {
            break;
        }
        status = write_step(claiming, &full, reterr);
        wanted -= (uint32_t)claiming->claimed[claiming->steps - 1]->count;
        bool more = claiming->claimed[claiming->steps - 1]->count == step;
        step = more && claiming->steps < STEPS_MAX ? next_step(claiming, wanted) : 0;
    }
    pawl__buf_add_text(&claiming->answer, "]}\n");
    return status;
}

/* Runs on a thread of the server; if the request was given up, on the one that claimed. */
static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct claiming *claiming = *(struct claiming **)call->state;
    pawl_status status = claiming->error.status;

    if (pawl__http_is_gone(call->request)) {
        release_all(claiming);
        status = PAWL_OK;
    } else if (status != PAWL_OK) {
        *reterr = claiming->error;
    } else {
        pawl__serve_answer_buf(call, 200, &claiming->answer);
    }
    claiming_free(claiming);
    return status;
}

/* On a thread that may wait. */
static void claim(void *context)
{
    struct claiming *claiming = context;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__serve_work_find(claiming->work, NODE_WORK_TO_CREATE, &claiming->store, &error);

    if (status == PAWL_OK) {
        status = claim_and_write(claiming, &error);
    }
    if (status != PAWL_OK || has_left(claiming)) {
        release_all(claiming);
        pawl__buf_clear(&claiming->answer);
        pawl__buf_add_text(&claiming->answer, NOTHING);
    }
    if (status != PAWL_OK) {
        claiming->error = error;
        claiming->error.status = status;
    }
    pawl__serve_resume(claiming->call, finish);
}

static struct claiming *claiming_new(struct pawl__serve_call *call)
{
    const struct claim_body *body = call->body;
    struct claiming *claiming = calloc(1, sizeof(*claiming));

    if (claiming == NULL) {
        return NULL;
    }
    claiming->call = call;
    claiming->request = call->request;
    claiming->work = call->part;
    claiming->began_ms = pawl__serve_work_now_ms(call->part);
    claiming->answer = (struct pawl__buf)BUF_INIT(ITEM_BYTES_MAX);
    claiming->claim = (pawl_claim)PAWL_CLAIM_INIT;
    claiming->claim.holder = body->holder;
    claiming->claim.task_id = body->task;
    claiming->claim.work_types = body->types;
    claiming->claim.work_type_count = body->type_count;
    claiming->claim.lease_ms = (uint32_t)body->lease_ms;
    claiming->count_max = (uint32_t)body->count;
    claiming->wait_ms = MIN(body->wait_ms, pawl__serve_work_wait_ms_max(call->part));
    return claiming;
}

static pawl_status claim_now(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct claiming *claiming = claiming_new(call);

    *(struct claiming **)call->state = claiming;
    if (claiming == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    claim(claiming);
    return PAWL_OK;
}

static pawl_status claim_waiting(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct claiming *claiming = claiming_new(call);

    *(struct claiming **)call->state = claiming;
    if (claiming == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    if (!pawl__serve_work_wait(call->part, claim, claiming)) {
        claiming_free(claiming);
        return pawl__serve_refuse(call,
                                  pawl__serve_work_is_stopping(call->part)
                                      ? &pawl__http_stopping
                                      : pawl__http_problem_of(PAWL_BUSY),
                                  reterr,
                                  "nothing was claimed");
    }
    return PAWL_OK;
}

pawl_status pawl__serve_work_claim(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct claim_body *body = call->body;

    if (body->wait_ms > 0) {
        return claim_waiting(call, reterr);
    }
    pawl__serve_hand_over(call, claim_now);
    return PAWL_OK;
}
