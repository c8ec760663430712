/* Requests and answers of the routes of work: fields, durations, values, errors. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "base/os/clock.h"
#include "base/os/display.h"
#include "server/node_internal.h"
#include "server/work/work.h"

pawl_status pawl__serve_work_body(const struct pawl__http_request *request,
                                  const char *const *names,
                                  size_t name_count,
                                  struct node_body *ret_body,
                                  pawl_error *reterr)
{
    TRY(pawl__json_parse(pawl__http_body(request), SIZE_MAX / 2, &ret_body->json, reterr));
    TRY(pawl__json_object(pawl__json_root(ret_body->json, ""), &ret_body->root, reterr));
    return pawl__json_only(&ret_body->root, names, name_count, reterr);
}

void pawl__serve_work_body_done(struct node_body *body)
{
    json_decref(body->json);
    body->json = NULL;
}

pawl_status pawl__serve_work_empty_body(const struct pawl__http_request *request,
                                        pawl_error *reterr)
{
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };

    return pawl__serve_work_body(request, NULL, 0, &body, reterr);
}

pawl_status pawl__serve_work_read_ms(const struct pawl__json_node *object,
                                     const char *key,
                                     const int64_t range[2],
                                     int64_t *ret_ms,
                                     pawl_error *reterr)
{
    return pawl__json_duration(pawl__json_optional(object, key), range, ret_ms, reterr);
}

pawl_status pawl__serve_work_read_name(struct pawl__json_node node,
                                       pawl_view *ret_name,
                                       pawl_error *reterr)
{
    pawl_view name = { NULL, 0 };

    TRY(pawl__json_text(node, &name, reterr));
    if (name.data == NULL) {
        return PAWL_OK;
    }
    if (name.len == 0) {
        return pawl__json_fail(&node, reterr, "is empty%s", node.optional ? ": leave it out" : "");
    }
    *ret_name = name;
    return PAWL_OK;
}

pawl_status pawl__serve_work_query_name(const struct pawl__http_request *request,
                                        const char *key,
                                        pawl_view *ret_name,
                                        pawl_error *reterr)
{
    const pawl_view *given = pawl__http_query(request, key);

    if (given == NULL) {
        return PAWL_OK;
    }
    if (given->len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is empty: leave it out", key);
    }
    TRY(pawl__check_bytes(key, given->len, PAWL_WORK_NAME_BYTES_MAX, reterr));
    *ret_name = *given;
    return PAWL_OK;
}

pawl_status pawl__serve_work_read_json(const struct pawl__json_node *object,
                                       const char *key,
                                       struct pawl__buf *buf,
                                       pawl_view *ret_json,
                                       pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(object, key);

    *ret_json = (pawl_view){ NULL, 0 };
    if (node.value == NULL || json_is_null(node.value)) {
        return PAWL_OK;
    }
    TRY(pawl__json_dump(node.value, buf, reterr));
    TRY(pawl__buf_check(buf, key, reterr));
    *ret_json = pawl__buf_view(buf);
    return PAWL_OK;
}

pawl_status pawl__serve_work_read_lease(const struct pawl__http_request *request,
                                        const struct pawl__json_node *object,
                                        pawl_lease *ret_lease,
                                        pawl_error *reterr)
{
    int64_t token = 0;

    TRY(pawl__json_int(pawl__json_key(object, "token"), 1, INT64_MAX, &token, reterr));
    *ret_lease = (pawl_lease){ pawl__http_part(request, "item"), (uint64_t)token };
    return PAWL_OK;
}

void pawl__serve_work_fail(struct pawl__http_request *request, const pawl_error *error)
{
    bool ours = error->native == 0 && error->sqlstate[0] == '\0';

    if (error->status == PAWL_LEASE_LOST && ours) {
        pawl__http_refuse(request, &pawl__http_lease_lost, error->message);
    } else if (error->status == PAWL_CANCELLED && ours) { /* the node stops */
        pawl__http_refuse(request, &pawl__http_stopping, "nothing was claimed");
    } else {
        pawl__http_fail(request, error);
    }
}

void pawl__serve_work_run(struct pawl__http_request *request, void *node, serve_work_fn *fn)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (fn(request, ((struct pawl__serve_node *)node)->work, &error) != PAWL_OK) {
        pawl__serve_work_fail(request, &error);
    }
}

void pawl__serve_work_status(struct pawl__http_request *request, pawl_item_status status)
{
    struct pawl__buf body = BUF_INIT(NODE_SHORT_ANSWER);
    struct pawl__object object = pawl__object_start(&body);

    pawl__object_text(&object, "work_item_id", pawl__http_part(request, "item"));
    pawl__object_text(&object, "status", pawl_view_of(pawl_item_status_name(status)));
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}
