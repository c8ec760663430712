/* POST /v1/work/claims: leases items, and waits for the first if the request asks for that.
 *
 * No claim has a thread while it waits: the store calls on_claimed. Items leased for a client that is gone are
 * released: otherwise nobody could claim them until the lease ends. So are items that do not fit into the answer. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "server/work/records.h"
#include "server/work/work.h"

enum {
    SMALL_BYTES = 64 << 10, /* as much is written on a thread that serves other connections */
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
    pawl_claim claim;
    uint32_t count_max;
    pawl_work *store;
    pawl_claimed *claimed[STEPS_MAX];
    size_t steps;
    size_t held[STEPS_MAX]; /* how many of each are in the answer; the others were released */
    size_t largest;         /* bytes of an item in the answer */
    bool waited;            /* nothing was there at once */
    bool may_block;         /* so what does not fit is back when the answer goes out */
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

/* --- what is leased --- */

static size_t held_count(const struct claiming *claiming)
{
    size_t count = 0;

    for (size_t i = 0; i < claiming->steps; i++) {
        count += claiming->held[i];
    }
    return count;
}

static void on_released(void *context, const pawl_error *outcome)
{
    (void)context;
    if (outcome->status != PAWL_OK) {
        LOG_WARNING("an item that was claimed for nobody waits for the end of its lease",
                    LOG_TEXT("error", outcome->message));
    }
}

/* An item that no client learns of. */
static void release_item(struct claiming *claiming, const pawl_item *item)
{
    const pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        claiming->may_block
            ? pawl_work_release(claiming->store, &lease, &error)
            : pawl_work_release_async(claiming->store, &lease, on_released, NULL, &error);

    if (status != PAWL_OK) {
        on_released(NULL, &error);
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
 * it gets items that are there at once, but the claim does not wait for it. */
static bool has_left(struct claiming *claiming)
{
    return claiming->waited ? pawl__http_has_left(claiming->request)
                            : pawl__http_is_gone(claiming->request);
}

static void add_step(struct claiming *claiming, pawl_claimed *claimed)
{
    claiming->held[claiming->steps] = claimed->count;
    claiming->claimed[claiming->steps++] = claimed;
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

static bool is_nothing(const pawl_error *error)
{
    return error->status == PAWL_NOT_FOUND && pawl__http_problem_of_error(error)->http == 404;
}

/* How many more items the claim could lease, after its latest step. */
static uint32_t more_wanted(const struct claiming *claiming)
{
    size_t last = claiming->steps - 1;
    uint32_t wanted = claiming->count_max;

    for (size_t i = 0; i < claiming->steps; i++) {
        wanted -= (uint32_t)MIN(claiming->claimed[i]->count, (size_t)wanted);
    }
    bool found_all = claiming->claimed[last]->count == claiming->claim.count_max;
    return found_all && claiming->steps < STEPS_MAX ? wanted : 0;
}

/* Writes the first step, and leases and writes the next ones. A failure after the first step ends the claim as if
 * there were no more items: the answer has those that are leased already. */
static pawl_status write_steps(struct claiming *claiming, pawl_error *reterr)
{
    bool full = false;

    pawl__buf_add_text(&claiming->answer, "{\"items\":[");
    TRY(write_step(claiming, &full, reterr));
    while (claiming->may_block && !full && more_wanted(claiming) > 0) {
        pawl_claimed *claimed = NULL;

        claiming->claim.count_max = next_step(claiming, more_wanted(claiming));
        claiming->claim.wait_ms = 0;
        if (claiming->claim.count_max == 0
            || pawl_work_claim(claiming->store, &claiming->claim, &claimed, NULL) != PAWL_OK) {
            break;
        }
        add_step(claiming, claimed);
        TRY(write_step(claiming, &full, reterr));
    }
    pawl__buf_add_text(&claiming->answer, "]}\n");
    return PAWL_OK;
}

/* --- answering --- */

static void write_answer(struct claiming *claiming)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (claiming->steps > 0 && write_steps(claiming, &error) != PAWL_OK) {
        release_all(claiming);
        claiming->error = error;
    }
}

/* Runs on a thread of the server; if the request was given up, on the one that resumed it. */
static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct claiming *claiming = *(struct claiming **)call->state;
    bool gone = pawl__http_is_gone(call->request);

    if (!gone && claiming->answer.len == 0) {
        write_answer(claiming);
    }
    pawl_status status = gone ? PAWL_OK : claiming->error.status;
    if (gone) {
        release_all(claiming);
    } else if (status != PAWL_OK) {
        *reterr = claiming->error;
    } else {
        pawl__buf_add_text(&claiming->answer, claiming->steps == 0 ? NOTHING : "");
        pawl__serve_answer_buf(call, 200, &claiming->answer);
    }
    claiming_free(claiming);
    return status;
}

static void drop_steps(struct claiming *claiming)
{
    release_all(claiming);
    for (size_t i = 0; i < claiming->steps; i++) {
        pawl_claimed_free(claiming->claimed[i]);
    }
    claiming->steps = 0;
}

/* The rest of a claim that is long or large, on a thread that may block. */
static void write_more(struct pawl__http_request *request, void *context)
{
    (void)request;
    struct claiming *claiming = context;

    claiming->may_block = true;
    write_answer(claiming);
    if (has_left(claiming)) {
        drop_steps(claiming);
        pawl__buf_clear(&claiming->answer);
    }
    claiming->may_block = false; /* what finishes it does not */
    pawl__serve_resume(claiming->call, finish);
}

static bool is_small(const struct claiming *claiming)
{
    const pawl_claimed *claimed = claiming->claimed[0];
    size_t bytes = 0;

    for (size_t i = 0; i < claimed->count; i++) {
        bytes += claimed->items[i].input_data.len + claimed->items[i].error_message.len;
    }
    return bytes <= SMALL_BYTES && more_wanted(claiming) == 0;
}

/* On a thread of the store: only hands it on. */
static void on_claimed(void *context, pawl_claimed *claimed, const pawl_error *outcome)
{
    struct claiming *claiming = context;
    struct pawl__http_request *request = claiming->request;

    if (claimed != NULL) {
        claiming->waited = claimed->waited;
        add_step(claiming, claimed);
    } else if (!is_nothing(outcome)
               && !(outcome->status == PAWL_CANCELLED && pawl__http_has_left(request))) {
        claiming->error = *outcome;
    }
    if (claimed != NULL && has_left(claiming)) {
        drop_steps(claiming);
    }
    bool whole = claiming->steps == 0 || is_small(claiming);
    if (whole || !pawl__http_hand_over(request, write_more, claiming)) {
        pawl__serve_resume(claiming->call, finish);
    }
}

/* Its client has left, while the claim may wait. */
static void on_left(void *context)
{
    struct claiming *claiming = context;

    pawl_work_cancel_claim(claiming->store, on_claimed, claiming);
}

/* --- claiming --- */

static struct claiming *claiming_new(struct pawl__serve_call *call)
{
    const struct claim_body *body = call->body;
    struct claiming *claiming = calloc(1, sizeof(*claiming));

    if (claiming == NULL) {
        return NULL;
    }
    claiming->call = call;
    claiming->request = call->request;
    claiming->answer = (struct pawl__buf)BUF_INIT(ITEM_BYTES_MAX);
    claiming->claim = (pawl_claim)PAWL_CLAIM_INIT;
    claiming->claim.holder = body->holder;
    claiming->claim.task_id = body->task;
    claiming->claim.work_types = body->types;
    claiming->claim.work_type_count = body->type_count;
    claiming->claim.lease_ms = (uint32_t)body->lease_ms;
    claiming->count_max = (uint32_t)body->count;
    claiming->claim.count_max = MIN(claiming->count_max, (uint32_t)STEP_FIRST);
    claiming->claim.wait_ms =
        (uint32_t)MIN(body->wait_ms, (int64_t)pawl__serve_work_wait_ms_max(call->part));
    return claiming;
}

static pawl_status start(struct pawl__serve_call *call, pawl_error *reterr)
{
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_TO_CREATE, &store, reterr));
    struct claiming *claiming = claiming_new(call);
    if (claiming == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    claiming->store = store;
    *(struct claiming **)call->state = claiming;
    pawl__http_drop_body(call->request); /* nobody may touch it once the answer can come */
    if (claiming->claim.wait_ms > 0) {
        pawl__http_watch_leaving(call->request, on_left, claiming);
    }
    pawl_status status =
        pawl_work_claim_async(store, &claiming->claim, on_claimed, claiming, reterr);
    if (status != PAWL_OK) { /* else it is the store's now */
        pawl__http_watch_leaving(call->request, NULL, NULL);
        claiming_free(claiming);
    }
    return status;
}

/* A store that is not open yet may take its time. */
pawl_status pawl__serve_work_claim(struct pawl__serve_call *call, pawl_error *reterr)
{
    if (pawl__serve_work_open_one(call->part) != NULL) {
        return start(call, reterr);
    }
    pawl__serve_hand_over(call, start);
    return PAWL_OK;
}
