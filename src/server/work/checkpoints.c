/* Checkpoints: adding one, the newest; and where a task goes on. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

static struct node_work *work_of(void *context)
{
    return ((struct pawl__serve_node *)context)->work;
}

/* --- adding --- */

struct adding {
    struct node_body body;
    struct pawl__buf snapshot;
    struct pawl__buf metadata;
    pawl_checkpoint checkpoint;
    pawl_lease lease; /* token 0: none is shown */
};

static void adding_done(struct adding *adding)
{
    pawl__serve_work_body_done(&adding->body);
    pawl__buf_done(&adding->snapshot);
    pawl__buf_done(&adding->metadata);
}

static pawl_status read_lease(struct adding *adding, pawl_error *reterr)
{
    const struct pawl__json_node *root = &adding->body.root;
    struct pawl__json_node item = pawl__json_optional(root, "work_item_id");
    int64_t token = 0;
    pawl_status status = pawl__serve_work_read_name(item, &adding->lease.work_item_id, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_int(pawl__json_optional(root, "token"), 1, INT64_MAX, &token, reterr);
    }
    adding->lease.token = (uint64_t)token;
    adding->checkpoint.work_item_id = adding->lease.work_item_id;
    if (status == PAWL_OK && (token != 0) != (adding->lease.work_item_id.len > 0)) {
        status = pawl__fail(reterr,
                            PAWL_INVALID,
                            "a checkpoint is of a task, or of an item that you hold: work_item_id "
                            "and token go together");
    }
    return status;
}

static pawl_status read_type(struct adding *adding, pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(&adding->body.root, "checkpoint_type");
    pawl_error wrong = PAWL_ERROR_INIT;
    pawl_view name = { NULL, 0 };
    pawl_status status = pawl__json_text(node, &name, reterr);

    adding->checkpoint.type = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;
    if (status != PAWL_OK || name.data == NULL) {
        return status;
    }
    return pawl_checkpoint_type_parse(name, &adding->checkpoint.type, &wrong) == PAWL_OK
               ? PAWL_OK
               : pawl__json_fail(&node, reterr, "%s", wrong.message);
}

static pawl_status read_snapshot(struct adding *adding, pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_key(&adding->body.root, "snapshot_data");

    if (node.value == NULL) {
        return pawl__json_fail(&node, reterr, "missing");
    }
    pawl_status status = pawl__json_dump(node.value, &adding->snapshot, reterr);
    adding->checkpoint.snapshot_data = pawl__buf_view(&adding->snapshot);
    return status;
}

/* Looking at evidence runs commands and reads files with the rights of the node, which whoever reaches
 * its port need not have. */
static pawl_status refuse_evidence(const struct adding *adding, pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(&adding->body.root, "evidence");

    return node.value == NULL || json_is_null(node.value)
               ? PAWL_OK
               : pawl__json_fail(&node, reterr, "not taken over HTTP: add it with 'pawl work'");
}

static pawl_status read_adding(const struct pawl__http_request *request,
                               struct adding *adding,
                               pawl_error *reterr)
{
    static const char *const names[] = { "checkpoint_id", "checkpoint_type", "evidence",
                                         "metadata",      "snapshot_data",   "token",
                                         "work_item_id" };
    pawl_checkpoint *checkpoint = &adding->checkpoint;
    const struct pawl__json_node *root = &adding->body.root;
    pawl_status status =
        pawl__serve_work_body(request, names, COUNT_OF(names), &adding->body, reterr);

    checkpoint->task_id = pawl__http_part(request, "task");
    if (status == PAWL_OK) {
        status = refuse_evidence(adding, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__serve_work_read_name(
            pawl__json_optional(root, "checkpoint_id"), &checkpoint->checkpoint_id, reterr);
    }
    if (status == PAWL_OK) {
        status = read_lease(adding, reterr);
    }
    if (status == PAWL_OK) {
        status = read_type(adding, reterr);
    }
    if (status == PAWL_OK) {
        status = read_snapshot(adding, reterr);
    }
    return status == PAWL_OK ? pawl__serve_work_read_json(
               root, "metadata", &adding->metadata, &checkpoint->metadata, reterr)
                             : status;
}

struct added {
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    int64_t sequence;
    bool is_new;
};

/* Two who add it at the same time are both told that it is new. */
static pawl_status add(pawl_work *store,
                       const struct adding *adding,
                       struct added *ret_added,
                       pawl_error *reterr)
{
    const pawl_checkpoint *checkpoint = &adding->checkpoint;
    pawl_checkpoint *there = NULL;
    pawl_status status =
        checkpoint->checkpoint_id.len == 0
            ? PAWL_NOT_FOUND
            : pawl_checkpoint_get(
                store, checkpoint->checkpoint_id, (pawl_view){ NULL, 0 }, 0, &there, reterr);

    pawl_checkpoint_free(there);
    ret_added->is_new = status == PAWL_NOT_FOUND;
    return status == PAWL_OK || status == PAWL_NOT_FOUND
               ? pawl_checkpoint_add(store,
                                     checkpoint,
                                     adding->lease.token == 0 ? NULL : &adding->lease,
                                     &ret_added->sequence,
                                     ret_added->id,
                                     reterr)
               : status;
}

static void answer_added(struct pawl__http_request *request, const struct added *added)
{
    struct pawl__buf body = BUF_INIT(NODE_SHORT_ANSWER);
    struct pawl__object object = pawl__object_start(&body);

    pawl__object_text(&object, "checkpoint_id", pawl_view_of(added->id));
    pawl__object_integer(&object, "sequence_number", added->sequence);
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    pawl__http_answer_buf(request, added->is_new ? 201 : 200, HTTP_JSON, &body);
}

void pawl__serve_work_checkpoint_add(struct pawl__http_request *request, void *context)
{
    AUTO(adding_done)
    struct adding adding = { .snapshot = BUF_INIT(SIZE_MAX / 2),
                             .metadata = BUF_INIT(SIZE_MAX / 2) };
    struct added added = { .sequence = 0 };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;
    pawl_status status = read_adding(request, &adding, &error);

    if (status == PAWL_OK) {
        status = pawl__serve_work_find(work_of(context), NODE_WORK_THAT_EXISTS, &store, &error);
    }
    if (status == PAWL_OK) {
        status = add(store, &adding, &added, &error);
    }
    if (status == PAWL_OK) {
        answer_added(request, &added);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}

/* --- the newest --- */

static pawl_status newest(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_checkpoint **ret_checkpoint,
                          pawl_error *reterr)
{
    pawl_checkpoint_type wanted = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;
    const pawl_checkpoint_type *type = NULL;
    pawl_view task_id = pawl__http_part(request, "task");
    pawl_error error = PAWL_ERROR_INIT;
    pawl_task *task = NULL;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_query_type(request, &wanted, &type, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    pawl_status status =
        pawl_checkpoint_latest(store, task_id, type, false, ret_checkpoint, reterr);
    if (status == PAWL_NOT_FOUND) { /* the task may be what is not there */
        pawl_status found = pawl_task_get(store, task_id, &task, &error);

        pawl_task_free(task);
        if (found != PAWL_OK) {
            *reterr = error;
            return found;
        }
    }
    return status;
}

void pawl__serve_work_checkpoint_latest(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_checkpoint *checkpoint = NULL;
    char *json = NULL;
    size_t len = 0;
    pawl_status status = newest(request, work_of(context), &checkpoint, &error);

    if (status == PAWL_OK) {
        status = pawl_checkpoint_to_json(checkpoint, &json, &len, &error);
    }
    pawl_checkpoint_free(checkpoint);
    if (status == PAWL_OK) {
        pawl__http_answer_json(request, 200, json, len);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}

/* --- where a task goes on ---
 *
 * As it was seen last: looking at evidence runs commands, and a page that somebody reads is no reason
 * to. */

enum { RECOVERY_LIST_MAX = 1000, RECOVERY_BYTES_MAX = 8 << 20 };

void pawl__serve_work_recovery(struct pawl__http_request *request, void *context)
{
    pawl_recover_options options = PAWL_RECOVER_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_recovery *recovery = NULL;
    pawl_work *store = NULL;
    char *json = NULL;
    size_t len = 0;
    pawl_status status =
        pawl__serve_work_find(work_of(context), NODE_WORK_THAT_EXISTS, &store, &error);

    options.as_recorded = true;
    options.list_max = RECOVERY_LIST_MAX;
    options.bytes_max = RECOVERY_BYTES_MAX;
    if (status == PAWL_OK) {
        status = pawl_work_recover_with(
            store, pawl__http_part(request, "task"), &options, &recovery, &error);
    }
    if (status == PAWL_OK) {
        status = pawl_recovery_to_json(recovery, &json, &len, &error);
    }
    pawl_recovery_free(recovery);
    if (status == PAWL_OK) {
        pawl__http_answer_json(request, 200, json, len);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}
