/* Routes of checkpoints: add one, the newest; and where a task resumes. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

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
    int64_t token = 0;

    TRY(pawl__serve_work_read_name(
        pawl__json_optional(root, "work_item_id"), &adding->lease.work_item_id, reterr));
    TRY(pawl__json_int(pawl__json_optional(root, "token"), 1, INT64_MAX, &token, reterr));
    adding->lease.token = (uint64_t)token;
    adding->checkpoint.work_item_id = adding->lease.work_item_id;
    return (token != 0) == (adding->lease.work_item_id.len > 0)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "a checkpoint is of a task, or of an item that you hold: work_item_id "
                            "and token go together");
}

static pawl_status read_type(struct adding *adding, pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(&adding->body.root, "checkpoint_type");
    pawl_error wrong = PAWL_ERROR_INIT;
    pawl_view name = { NULL, 0 };

    adding->checkpoint.type = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;
    TRY(pawl__json_text(node, &name, reterr));
    return name.data == NULL
                   || pawl_checkpoint_type_parse(name, &adding->checkpoint.type, &wrong) == PAWL_OK
               ? PAWL_OK
               : pawl__json_fail(&node, reterr, "%s", wrong.message);
}

static pawl_status read_snapshot(struct adding *adding, pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_key(&adding->body.root, "snapshot_data");

    if (node.value == NULL) {
        return pawl__json_fail(&node, reterr, "missing");
    }
    TRY(pawl__json_dump(node.value, &adding->snapshot, reterr));
    adding->checkpoint.snapshot_data = pawl__buf_view(&adding->snapshot);
    return PAWL_OK;
}

/* Checking evidence runs commands and reads files with the rights of the node, which its clients need not
 * have. */
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

    checkpoint->task_id = pawl__http_part(request, "task");
    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &adding->body, reterr));
    TRY(refuse_evidence(adding, reterr));
    TRY(pawl__serve_work_read_name(
        pawl__json_optional(root, "checkpoint_id"), &checkpoint->checkpoint_id, reterr));
    TRY(read_lease(adding, reterr));
    TRY(read_type(adding, reterr));
    TRY(read_snapshot(adding, reterr));
    return pawl__serve_work_read_json(
        root, "metadata", &adding->metadata, &checkpoint->metadata, reterr);
}

struct added {
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    int64_t sequence;
    bool is_new;
};

/* Two requests that add it at the same time may both get 201. */
static pawl_status add(pawl_work *store,
                       const struct adding *adding,
                       struct added *ret_added,
                       pawl_error *reterr)
{
    const pawl_checkpoint *checkpoint = &adding->checkpoint;
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *there = NULL;

    if (checkpoint->checkpoint_id.len > 0) {
        pawl_status status = pawl_checkpoint_get(
            store, checkpoint->checkpoint_id, (pawl_view){ NULL, 0 }, 0, &there, reterr);
        TRY(status == PAWL_NOT_FOUND ? PAWL_OK : status);
    }
    ret_added->is_new = there == NULL;
    return pawl_checkpoint_add(store,
                               checkpoint,
                               adding->lease.token == 0 ? NULL : &adding->lease,
                               &ret_added->sequence,
                               ret_added->id,
                               reterr);
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

static pawl_status add_checkpoint(struct pawl__http_request *request,
                                  struct node_work *work,
                                  pawl_error *reterr)
{
    AUTO(adding_done)
    struct adding adding = { .snapshot = BUF_INIT(SIZE_MAX / 2),
                             .metadata = BUF_INIT(SIZE_MAX / 2) };
    struct added added = { .sequence = 0 };
    pawl_work *store = NULL;

    TRY(read_adding(request, &adding, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(add(store, &adding, &added, reterr));
    answer_added(request, &added);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_checkpoint_add, add_checkpoint)

/* --- the newest --- */

static pawl_status newest(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_checkpoint **ret_checkpoint,
                          pawl_error *reterr)
{
    pawl_checkpoint_type wanted = PAWL_CHECKPOINT_MANUAL_CHECKPOINT;
    const pawl_checkpoint_type *type = NULL;
    pawl_view task_id = pawl__http_part(request, "task");
    AUTO(pawl_task_free_p) pawl_task *task = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_query_type(request, &wanted, &type, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    pawl_status status =
        pawl_checkpoint_latest(store, task_id, type, false, ret_checkpoint, reterr);
    if (status == PAWL_NOT_FOUND && pawl_task_get(store, task_id, &task, &error) != PAWL_OK) {
        *reterr = error; /* the task does not exist */
        return error.status;
    }
    return status;
}

static pawl_status show_latest(struct pawl__http_request *request,
                               struct node_work *work,
                               pawl_error *reterr)
{
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *checkpoint = NULL;
    char *json = NULL;
    size_t len = 0;

    TRY(newest(request, work, &checkpoint, reterr));
    TRY(pawl_checkpoint_to_json(checkpoint, &json, &len, reterr));
    pawl__http_answer_json(request, 200, json, len);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_checkpoint_latest, show_latest)

/* --- where a task resumes ---
 *
 * By the latest recorded verification: checking evidence runs commands, which a GET must not do. */

enum { RECOVERY_LIST_MAX = 1000, RECOVERY_BYTES_MAX = 8 << 20 };

static pawl_status show_recovery(struct pawl__http_request *request,
                                 struct node_work *work,
                                 pawl_error *reterr)
{
    AUTO(pawl_recovery_free_p) pawl_recovery *recovery = NULL;
    pawl_recover_options options = PAWL_RECOVER_OPTIONS_INIT;
    pawl_view task_id = pawl__http_part(request, "task");
    pawl_work *store = NULL;
    char *json = NULL;
    size_t len = 0;

    options.as_recorded = true;
    options.list_max = RECOVERY_LIST_MAX;
    options.bytes_max = RECOVERY_BYTES_MAX;
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_recover_with(store, task_id, &options, &recovery, reterr));
    TRY(pawl_recovery_to_json(recovery, &json, &len, reterr));
    pawl__http_answer_json(request, 200, json, len);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_recovery, show_recovery)
