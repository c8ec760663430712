/* POST /v1/work/claims: leases items, and waits for the first if that is asked.
 *
 * Whoever waits does so on a thread of its own (work_waits.c). What is leased for somebody who is gone
 * meanwhile is given back: nobody would hear of it before its lease ends. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "server/node_internal.h"
#include "server/work.h"

enum {
    TYPES_MAX = 100,
    LOOK_MS = 2000 /* how often whoever waits is looked for */
};
#define ITEMS_BYTES_MAX ((size_t)256 << 20)

struct claiming {
    struct pawl__http_request *request;
    struct node_work *work;
    struct node_body body; /* what the claim points into */
    pawl_claim claim;
    pawl_view types[TYPES_MAX];
    int64_t wait_ms;
    pawl_work *store;
    pawl_claimed *claimed; /* NULL: nothing */
    struct pawl__buf answer;
    pawl_error error;
};

static void claiming_free(struct claiming *claiming)
{
    pawl_claimed_free(claiming->claimed);
    pawl__buf_done(&claiming->answer);
    pawl__work_body_done(&claiming->body);
    free(claiming);
}

/* --- what is asked --- */

static pawl_status read_types(struct claiming *claiming, pawl_error *reterr)
{
    struct pawl__json_node given = pawl__json_optional(&claiming->body.root, "types");
    struct pawl__json_node list = { .value = NULL };
    pawl_status status = pawl__json_array(given, &list, reterr);
    size_t count = status == PAWL_OK && list.value != NULL ? pawl__json_count(&list) : 0;

    if (count > TYPES_MAX) {
        return pawl__json_fail(&given, reterr, "more than %d types", TYPES_MAX);
    }
    if (status == PAWL_OK && list.value != NULL && count == 0) {
        return pawl__json_fail(&given, reterr, "is empty: leave it out to claim all types");
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = pawl__work_read_name(pawl__json_item(&list, i), &claiming->types[i], reterr);
    }
    claiming->claim.work_types = claiming->types;
    claiming->claim.work_type_count = count;
    return status;
}

static pawl_status read_times(struct claiming *claiming, pawl_error *reterr)
{
    static const int64_t leases[2] = { 1, WORK_MS_MAX };
    static const int64_t waits[2] = { 0, WORK_MS_MAX };
    const struct pawl__json_node *root = &claiming->body.root;
    int64_t lease_ms = 0;
    pawl_status status = pawl__work_read_ms(root, "lease", leases, &lease_ms, reterr);

    if (status == PAWL_OK) {
        status = pawl__work_read_ms(root, "wait", waits, &claiming->wait_ms, reterr);
    }
    claiming->claim.lease_ms = (uint32_t)lease_ms;
    claiming->wait_ms = MIN(claiming->wait_ms, pawl__node_work_wait_ms_max(claiming->work));
    return status;
}

static pawl_status read_claim(struct claiming *claiming, pawl_error *reterr)
{
    static const char *const names[] = { "count", "holder", "lease", "task", "types", "wait" };
    const struct pawl__json_node *root = &claiming->body.root;
    pawl_claim *claim = &claiming->claim;
    int64_t count = 1;
    pawl_status status =
        pawl__work_body(claiming->request, names, COUNT_OF(names), &claiming->body, reterr);

    if (status == PAWL_OK) {
        status = pawl__work_read_name(pawl__json_key(root, "holder"), &claim->holder, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_read_name(pawl__json_optional(root, "task"), &claim->task_id, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__json_int(
            pawl__json_optional(root, "count"), 1, PAWL_WORK_BATCH_MAX, &count, reterr);
    }
    claim->count_max = (uint32_t)count;
    if (status == PAWL_OK) {
        status = read_types(claiming, reterr);
    }
    return status == PAWL_OK ? read_times(claiming, reterr) : status;
}

/* --- claiming --- */

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

/* In short waits: one that left takes up no thread for long. */
static pawl_status claim_or_wait(struct claiming *claiming, pawl_error *reterr)
{
    int64_t deadline_ms = now_ms() + claiming->wait_ms;
    pawl_status status;

    do {
        int64_t left_ms = MAX(deadline_ms - now_ms(), 0);

        claiming->claim.wait_ms = (uint32_t)MIN(left_ms, LOOK_MS);
        status = pawl_work_claim(claiming->store, &claiming->claim, &claiming->claimed, reterr);
    } while (status == PAWL_NOT_FOUND && now_ms() < deadline_ms
             && !pawl__http_has_left(claiming->request));
    return status;
}

static bool is_nothing(pawl_status status, const pawl_error *error)
{
    return status == PAWL_NOT_FOUND && pawl__http_problem_of_error(error)->http == 404;
}

static pawl_status write_items(struct claiming *claiming, pawl_error *reterr)
{
    size_t count = claiming->claimed == NULL ? 0 : claiming->claimed->count;
    struct pawl__buf *answer = &claiming->answer;
    pawl_status status = PAWL_OK;

    pawl__buf_add_text(answer, "{\"items\":[");
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        AUTO(pawl__text_free) char *json = NULL;
        size_t len = 0;

        status = pawl_item_to_json(&claiming->claimed->items[i], &json, &len, reterr);
        pawl__buf_add_text(answer, i == 0 ? "" : ",");
        pawl__buf_add(answer, (pawl_view){ json, len });
    }
    pawl__buf_add_text(answer, "]}\n");
    if (status == PAWL_OK && pawl__buf_check(answer, "the answer", reterr) != PAWL_OK) {
        status = answer->nomem ? PAWL_NOMEM
                               : pawl__fail(reterr,
                                            PAWL_INVALID,
                                            "count: %zu items are more than %zu bytes: claim fewer",
                                            count,
                                            ITEMS_BYTES_MAX);
    }
    return status;
}

/* What nobody hears of. */
static void give_back(struct claiming *claiming)
{
    size_t count = claiming->claimed == NULL ? 0 : claiming->claimed->count;

    for (size_t i = 0; i < count; i++) {
        const pawl_item *item = &claiming->claimed->items[i];
        const pawl_lease lease = { item->work_item_id, item->token };
        pawl_error error = PAWL_ERROR_INIT;

        if (pawl_work_release(claiming->store, &lease, &error) != PAWL_OK) {
            LOG_WARNING("an item that was claimed for nobody waits for the end of its lease",
                        LOG_VIEW("work_item_id", item->work_item_id),
                        LOG_TEXT("error", error.message));
        }
    }
    pawl_claimed_free(STEAL(claiming->claimed));
}

/* On a thread of the server's; but when the request was given up, on the one that claimed. */
static void finish(struct pawl__http_request *request, void *context)
{
    struct claiming *claiming = context;

    if (pawl__http_is_gone(request)) {
        give_back(claiming);
    } else if (claiming->error.status != PAWL_OK) {
        pawl__serve_work_fail(request, &claiming->error);
    } else {
        pawl__http_answer_buf(request, 200, HTTP_JSON, &claiming->answer);
    }
    claiming_free(claiming);
}

/* With a request that is kept, on a thread that may wait. */
static void claim(struct claiming *claiming)
{
    struct pawl__http_request *request = claiming->request;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__node_work_find(claiming->work, NODE_WORK_TO_CREATE, &claiming->store, &error);

    if (status == PAWL_OK) {
        status = claim_or_wait(claiming, &error);
        status = is_nothing(status, &error) ? PAWL_OK : status;
    }
    if (status == PAWL_OK && pawl__http_has_left(request)) {
        give_back(claiming);
    }
    if (status == PAWL_OK) {
        status = write_items(claiming, &error);
    }
    if (status != PAWL_OK) {
        give_back(claiming);
        claiming->error = error;
        claiming->error.status = status;
    }
    pawl__http_resume(request, finish, claiming);
}

static void claim_waiting(void *context)
{
    claim(context);
}

static void claim_now(struct pawl__http_request *request, void *context)
{
    if (pawl__http_is_gone(request)) {
        claiming_free(context);
        pawl__http_resume(request, NULL, NULL);
    } else {
        claim(context);
    }
}

static void keep_and_claim(struct claiming *claiming)
{
    struct pawl__http_request *request = claiming->request;

    if (!pawl__http_keep(request)) {
        claiming_free(claiming);
        return;
    }
    bool taken = claiming->wait_ms > 0
                     ? pawl__node_work_wait(claiming->work, claim_waiting, claiming)
                     : pawl__http_hand_over(request, claim_now, claiming);
    if (!taken) {
        claiming_free(claiming);
        pawl__http_refuse(request, pawl__http_problem_of(PAWL_BUSY), "");
        pawl__http_resume(request, NULL, NULL);
    }
}

void pawl__serve_work_claim(struct pawl__http_request *request, void *context)
{
    struct claiming *claiming = calloc(1, sizeof(*claiming));
    pawl_error error = PAWL_ERROR_INIT;

    if (claiming == NULL) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a request");
        pawl__http_fail(request, &error);
        return;
    }
    claiming->request = request;
    claiming->work = ((struct pawl__node *)context)->work;
    claiming->claim = (pawl_claim)PAWL_CLAIM_INIT;
    claiming->answer = (struct pawl__buf)BUF_INIT(ITEMS_BYTES_MAX);
    if (read_claim(claiming, &error) == PAWL_OK) {
        keep_and_claim(claiming);
    } else {
        claiming_free(claiming);
        pawl__http_fail(request, &error);
    }
}
