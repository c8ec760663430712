/* Routes for the holder of a lease: heartbeat, complete, fail, release. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

static const int64_t lease_range[2] = { 1, WORK_MS_MAX };

/* --- heartbeat --- */

static pawl_status heartbeat(struct pawl__http_request *request,
                             struct node_work *work,
                             pawl_error *reterr)
{
    static const char *const names[] = { "lease", "token" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    struct pawl__buf answer = BUF_INIT(NODE_SHORT_ANSWER);
    pawl_work *store = NULL;
    pawl_lease lease;
    int64_t lease_ms = 0;
    int64_t expires_at_us = 0;

    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &body, reterr));
    TRY(pawl__serve_work_read_lease(request, &body.root, &lease, reterr));
    TRY(pawl__serve_work_read_ms(&body.root, "lease", lease_range, &lease_ms, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_heartbeat(store, &lease, (uint32_t)lease_ms, &expires_at_us, reterr));
    struct pawl__object object = pawl__object_start(&answer);
    pawl__object_text(&object, "work_item_id", lease.work_item_id);
    pawl__object_time(&object, "lease_expires_at", expires_at_us);
    pawl__object_end(&object);
    pawl__buf_add_char(&answer, '\n');
    pawl__http_answer_buf(request, 200, HTTP_JSON, &answer);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_heartbeat, heartbeat)

/* --- complete: the connection is suspended until the group commit is on disk --- */

enum { LARGE = 256 << 10 }; /* bytes that would hold up the connections of a thread */

struct completion {
    struct pawl__http_request *request;
    struct node_work *work;
    pawl_error error;
};

/* On a thread of the server's. */
static void finish(struct pawl__http_request *request, void *context)
{
    struct completion *completion = context;

    if (completion->error.status == PAWL_OK) {
        pawl__serve_work_status(request, PAWL_ITEM_COMPLETED);
    } else {
        pawl__serve_work_fail(request, &completion->error);
    }
    free(completion);
}

/* On the thread that commits: only hands it on. */
static void on_answer(void *context, const pawl_error *outcome)
{
    struct completion *completion = context;

    completion->error = *outcome;
    pawl__http_resume(completion->request, finish, completion);
}

static pawl_status submit(struct completion *completion, pawl_error *reterr)
{
    static const char *const names[] = { "output_data", "token" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SIZE_MAX / 2);
    struct pawl__http_request *request = completion->request;
    pawl_work *store = NULL;
    pawl_view output;
    pawl_lease lease;

    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &body, reterr));
    TRY(pawl__serve_work_read_lease(request, &body.root, &lease, reterr));
    TRY(pawl__serve_work_read_json(&body.root, "output_data", &text, &output, reterr));
    TRY(pawl__serve_work_find(completion->work, NODE_WORK_THAT_EXISTS, &store, reterr));
    pawl__http_drop_body(request); /* nobody may touch it once the answer can come */
    return pawl_work_complete_async(store, &lease, output, on_answer, completion, reterr);
}

/* With a request that is kept. */
static void submit_kept(struct pawl__http_request *request, void *context)
{
    struct completion *completion = context;
    pawl_error error = PAWL_ERROR_INIT;

    if (submit(completion, &error) != PAWL_OK) { /* else it is the store's now */
        pawl__serve_work_fail(request, &error);
        free(completion);
        pawl__http_resume(request, NULL, NULL);
    }
}

static void submit_unless_gone(struct pawl__http_request *request, void *context)
{
    if (pawl__http_is_gone(request)) {
        free(context);
        pawl__http_resume(request, NULL, NULL);
    } else {
        submit_kept(request, context);
    }
}

void pawl__serve_work_complete(struct pawl__http_request *request, void *context)
{
    struct completion *completion = calloc(1, sizeof(*completion));
    pawl_error error = PAWL_ERROR_INIT;

    if (completion == NULL) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a request");
        pawl__http_fail(request, &error);
        return;
    }
    completion->request = request;
    completion->work = ((struct pawl__serve_node *)context)->work;
    if (!pawl__http_keep(request)) { /* before: the answer may be quicker than this thread */
        free(completion);
    } else if (pawl__http_body(request).len <= LARGE
               && pawl__serve_work_open_one(completion->work) != NULL) {
        submit_kept(request, completion);
    } else if (!pawl__http_hand_over(request, submit_unless_gone, completion)) {
        free(completion);
        pawl__http_refuse(request, pawl__http_problem_of(PAWL_BUSY), "");
        pawl__http_resume(request, NULL, NULL);
    }
}

/* --- fail --- */

static pawl_status fail_item(struct pawl__http_request *request,
                             struct node_work *work,
                             pawl_error *reterr)
{
    static const char *const names[] = { "error_message", "output_data", "permanent", "token" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SIZE_MAX / 2);
    pawl_work *store = NULL;
    pawl_view message = { NULL, 0 };
    pawl_view output = { NULL, 0 };
    pawl_item_status status = PAWL_ITEM_FAILED;
    bool permanent = false;
    pawl_lease lease;

    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &body, reterr));
    TRY(pawl__serve_work_read_lease(request, &body.root, &lease, reterr));
    TRY(pawl__serve_work_read_name(pawl__json_key(&body.root, "error_message"), &message, reterr));
    TRY(pawl__json_bool(pawl__json_optional(&body.root, "permanent"), &permanent, reterr));
    TRY(pawl__serve_work_read_json(&body.root, "output_data", &text, &output, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_fail(store, &lease, message, output, !permanent, &status, reterr));
    pawl__serve_work_status(request, status);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_fail_item, fail_item)

/* --- release --- */

static pawl_status release(struct pawl__http_request *request,
                           struct node_work *work,
                           pawl_error *reterr)
{
    static const char *const names[] = { "token" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    pawl_work *store = NULL;
    pawl_lease lease;

    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &body, reterr));
    TRY(pawl__serve_work_read_lease(request, &body.root, &lease, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_release(store, &lease, reterr));
    pawl__serve_work_status(request, PAWL_ITEM_PENDING);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_release, release)
