/* GET /v1/work/changes: the feed of changes as server-sent events. Where a request begins, and its filter; the rest is
 * change_feed.c. */
#include <string.h>

#include "base/core/error.h"
#include "server/work/change_feed.h"
#include "server/work/records.h"

static pawl_status copy_name_of(pawl_view name, char **ret_copy, pawl_error *reterr)
{
    if (name.len == 0) {
        return PAWL_OK;
    }
    *ret_copy = pawl__view_dup(name);
    return *ret_copy == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a filter") : PAWL_OK;
}

static pawl_status read_statuses(pawl_view rest, uint32_t *ret_statuses, pawl_error *reterr)
{
    while (rest.len > 0) {
        const char *comma = memchr(rest.data, ',', rest.len);
        size_t len = comma == NULL ? rest.len : (size_t)(comma - rest.data);
        pawl_item_status status = PAWL_ITEM_PENDING;

        TRY(pawl_item_status_parse((pawl_view){ rest.data, len }, &status, reterr));
        if (status == PAWL_ITEM_WAITING) { /* its followers would wait for ever */
            return pawl__fail(
                reterr,
                PAWL_INVALID,
                "status: no change is to waiting: an item that waits changes to pending");
        }
        *ret_statuses |= 1U << status;
        len += comma != NULL;
        rest = (pawl_view){ rest.data + len, rest.len - len };
    }
    return PAWL_OK;
}

static pawl_status set_filter(struct change_follower *follower,
                              const struct change_list *asked,
                              pawl_error *reterr)
{
    TRY(copy_name_of(asked->task, &follower->task_id, reterr));
    TRY(copy_name_of(asked->type, &follower->work_type, reterr));
    return read_statuses(asked->status, &follower->statuses, reterr);
}

static bool see_one(void *context, const pawl_work_change *change)
{
    (void)context;
    (void)change;
    return false;
}

static pawl_status find_position(struct pawl__serve_call *call,
                                 pawl_work_position *ret_at,
                                 pawl_error *reterr)
{
    const struct changes_start *start = call->state;
    pawl_work_position at = start->at;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    if (start->at_end) {
        return pawl_work_changes_end(store, ret_at, reterr);
    }
    pawl_status status = pawl_work_changes(store, NULL, 1, &at, see_one, NULL, NULL, reterr);
    if (status == PAWL_NOT_FOUND) {
        return pawl__serve_refuse(
            call, &pawl__http_gone, reterr, "%s", "begin anew, at start or end");
    }
    *ret_at = start->at;
    return status;
}

static pawl_status make_follower(struct pawl__serve_call *call,
                                 struct change_follower **ret_follower,
                                 pawl_error *reterr)
{
    struct change_follower *follower = pawl__serve_follower_new();

    *ret_follower = follower;
    if (follower == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a follower");
    }
    TRY(set_filter(follower, call->parameters, reterr));
    TRY(find_position(call, &follower->at, reterr));
    follower->stream = pawl__http_stream_new(call->request);
    if (follower->stream == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a stream");
    }
    pawl_status status =
        pawl__serve_follower_join(pawl__serve_work_changes_of(call->part), follower, reterr);
    if (status != PAWL_OK) {
        pawl__http_stream_release(follower->stream);
    }
    return status;
}

/* On a thread that may block. */
static pawl_status start_following(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct change_follower *follower = NULL;
    pawl_status status = make_follower(call, &follower, reterr);

    if (status != PAWL_OK) {
        pawl__serve_follower_free(follower);
        return status;
    }
    /* The stream's from here on, which closes it in any case. */
    const struct pawl__http_event_source source = { .next = pawl__serve_follower_next,
                                                    .close = pawl__serve_follower_leave,
                                                    .context = follower };
    pawl__http_answer_events(call->request, &source, follower->stream);
    pawl__serve_resume(call, NULL);
    return PAWL_OK;
}

/* The header says more than the query: a client that comes back sends both. */
pawl_status pawl__serve_work_changes(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct change_list *asked = call->parameters;
    const char *header = pawl__http_header(call->request, "Last-Event-ID");
    bool in_header = header != NULL && header[0] != '\0';
    pawl_view from = in_header ? pawl_view_of(header) : asked->from;
    struct changes_start *start = call->state;

    start->at_end = from.len == 0 || pawl__view_is(from, "end");
    if (!start->at_end && !pawl__view_is(from, "start")
        && pawl_work_position_parse(from, &start->at, NULL) != PAWL_OK) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: is no id of an event, as 0-17 is; 'from' may be start or end, too",
                          in_header ? "Last-Event-ID" : "from");
    }
    pawl__serve_hand_over(call, start_following);
    return PAWL_OK;
}
