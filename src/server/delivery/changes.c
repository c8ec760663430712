/* GET /v1/pipelines/changes. Each pipeline has the number of its last change; a follower gets those with a higher number than
 * the last it saw. So nothing has to be kept for who comes late, and who is slow gets the newest state. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/delivery/delivery.h"
#include "server/follow.h"

enum { CHANGE_BYTES_MAX = 1 << 20 };

/* --- looking --- */

static struct node_pipeline *slot_of(struct node_delivery *node, pawl_view name)
{
    struct node_pipeline *oldest = NULL;
    struct node_pipeline *unused = NULL;

    for (size_t i = 0; i < COUNT_OF(node->pipelines); i++) {
        struct node_pipeline *slot = &node->pipelines[i];

        if (slot->version > 0 && pawl__view_is(name, slot->name)) {
            return slot;
        }
        unused = unused == NULL && slot->version == 0 ? slot : unused;
        if (slot->is_removed && (oldest == NULL || slot->version < oldest->version)) {
            oldest = slot;
        }
    }
    return unused != NULL ? unused : oldest;
}

static char *json_of(const pawl_pipeline_status *status, bool is_removed)
{
    const struct pipeline_change change = { .removed = is_removed, .pipeline = status };
    struct pawl__buf json = BUF_INIT(CHANGE_BYTES_MAX);

    pawl__record_write(&pawl__serve_pipeline_change_record, &change, &json);
    return pawl__buf_steal(&json);
}

static void change_locked(struct node_delivery *node,
                          struct node_pipeline *slot,
                          char *json,
                          bool is_removed) REQUIRES_LOCK(node->lock)
{
    free(slot->json);
    slot->json = json;
    slot->is_removed = is_removed;
    slot->version = ++node->version;
}

static bool see(void *context, const pawl_pipeline_status *status)
{
    struct node_delivery *node = context;
    char *json = json_of(status, false);

    pawl__lock(&node->lock);
    struct node_pipeline *slot = json == NULL ? NULL : slot_of(node, status->name);
    if (slot != NULL) {
        slot->is_seen = true;
        if (slot->version == 0 || slot->is_removed || !pawl__view_is(status->name, slot->name)
            || strcmp(slot->json, json) != 0) {
            struct pawl__buf name = BUF_OVER(slot->name);
            pawl__buf_add(&name, status->name);
            change_locked(node, slot, STEAL(json), false);
        }
    }
    pawl__unlock(&node->lock);
    free(json);
    return true;
}

static void notice_removed(struct node_delivery *node)
{
    pawl__lock(&node->lock);
    for (size_t i = 0; i < COUNT_OF(node->pipelines); i++) {
        struct node_pipeline *slot = &node->pipelines[i];
        const pawl_pipeline_status gone = { .size = sizeof(gone),
                                            .name = pawl_view_of(slot->name) };
        bool is_new = slot->version > 0 && !slot->is_seen && !slot->is_removed;
        char *json = is_new ? json_of(&gone, true) : NULL;

        if (json != NULL) {
            change_locked(node, slot, json, true);
        }
        slot->is_seen = false;
    }
    pawl__unlock(&node->lock);
}

void pawl__serve_delivery_look(struct node_delivery *node, pawl_delivery *delivery)
{
    pawl__lock(&node->lock);
    uint64_t before = node->version;
    pawl__unlock(&node->lock);
    if (pawl_pipeline_peek(delivery, see, node, NULL) == PAWL_OK) {
        notice_removed(node);
    }
    pawl__lock(&node->lock);
    bool is_new = node->version != before;
    pawl__unlock(&node->lock);
    if (is_new) {
        pawl__watch_bump(&node->watch);
    }
}

void pawl__serve_delivery_forget(struct node_delivery *node)
{
    for (size_t i = 0; i < COUNT_OF(node->pipelines); i++) {
        free(node->pipelines[i].json);
    }
}

/* --- following --- */

static bool next_change(void *part, uint64_t *position, struct pawl__buf *data)
{
    struct node_delivery *node = part;
    const struct node_pipeline *next = NULL;

    pawl__lock(&node->lock);
    for (size_t i = 0; i < COUNT_OF(node->pipelines); i++) {
        const struct node_pipeline *slot = &node->pipelines[i];

        if (slot->version > *position && (next == NULL || slot->version < next->version)) {
            next = slot;
        }
    }
    if (next != NULL) {
        pawl__buf_add_text(data, next->json);
        *position = next->version;
    }
    pawl__unlock(&node->lock);
    return next != NULL;
}

pawl_status pawl__serve_pipeline_changes(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct node_delivery *node = call->part;

    return pawl__serve_follow(call, &node->watch, "pipeline", next_change, reterr);
}
