/* GET /v1/work/stats: counts and health. */
#include "base/core/error.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

#define BODY_BYTES_MAX ((size_t)64 << 20)

struct rows {
    struct pawl__buf *body;
    bool any;
};

static struct pawl__object start_row(struct rows *rows)
{
    pawl__buf_add_text(rows->body, rows->any ? "," : "");
    rows->any = true;
    return pawl__object_start(rows->body);
}

static bool add_type(void *context, const pawl_type_stats *stats)
{
    struct rows *rows = context;
    struct pawl__object object = start_row(rows);

    pawl__object_text(&object, "work_type", stats->work_type);
    pawl__object_text(&object, "status", pawl_view_of(pawl_item_status_name(stats->status)));
    pawl__object_integer(&object, "count", (int64_t)stats->count);
    pawl__object_real(&object, "avg_age_hours", stats->avg_age_hours);
    pawl__object_end(&object);
    return !rows->body->broken;
}

static bool add_growth(void *context, const pawl_checkpoint_growth *growth)
{
    struct rows *rows = context;
    struct pawl__object object = start_row(rows);

    pawl__object_text(&object, "task_id", growth->task_id);
    pawl__object_integer(&object, "checkpoint_count", (int64_t)growth->checkpoint_count);
    pawl__object_integer(&object, "max_sequence", growth->max_sequence);
    pawl__object_time(&object, "first_at", growth->first_at_us);
    pawl__object_time(&object, "last_at", growth->last_at_us);
    pawl__object_end(&object);
    return !rows->body->broken;
}

static void add_counts(struct pawl__object *object, const pawl_work_stats *stats)
{
    pawl__object_integer(object, "waiting", (int64_t)stats->waiting);
    pawl__object_integer(object, "pending", (int64_t)stats->pending);
    pawl__object_integer(object, "in_progress", (int64_t)stats->in_progress);
    pawl__object_integer(object, "completed", (int64_t)stats->completed);
    pawl__object_integer(object, "failed", (int64_t)stats->failed);
    pawl__object_integer(object, "active_leases", (int64_t)stats->active_leases);
    pawl__object_integer(object, "stale_leases", (int64_t)stats->stale_leases);
    pawl__object_real(object, "avg_minutes_since_heartbeat", stats->avg_minutes_since_heartbeat);
    pawl__object_integer(object, "checkpoints", (int64_t)stats->checkpoints);
    pawl__object_integer(object, "keys_pending", (int64_t)stats->keys_pending);
    pawl__object_integer(object, "keys_completed", (int64_t)stats->keys_completed);
    pawl__object_integer(object, "keys_failed", (int64_t)stats->keys_failed);
    pawl__object_time(object, "oldest_pending_at", stats->oldest_pending_us);
}

/* Without a store (NULL) all counts are 0. */
static pawl_status write_stats(pawl_work *store, struct pawl__buf *body, pawl_error *reterr)
{
    struct rows types = { .body = body };
    struct rows tasks = { .body = body };
    pawl_work_stats stats = { 0 };

    if (store != NULL) {
        TRY(pawl_work_get_stats(store, &stats, reterr));
    }
    struct pawl__object object = pawl__object_start(body);
    add_counts(&object, &stats);
    pawl__object_key(&object, "types");
    pawl__buf_add_char(body, '[');
    if (store != NULL) {
        TRY(pawl_work_type_stats(store, add_type, &types, reterr));
    }
    pawl__buf_add_char(body, ']');
    pawl__object_key(&object, "checkpoints_of_tasks");
    pawl__buf_add_char(body, '[');
    if (store != NULL) {
        TRY(pawl_work_checkpoint_growth(store, add_growth, &tasks, reterr));
    }
    pawl__buf_add_char(body, ']');
    pawl__object_end(&object);
    pawl__buf_add_char(body, '\n');
    return PAWL_OK;
}

static pawl_status show_stats(struct pawl__http_request *request,
                              struct node_work *work,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(BODY_BYTES_MAX);
    pawl_work *store = NULL;
    pawl_status status = pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr);

    TRY(status == PAWL_NOT_FOUND ? PAWL_OK : status);
    TRY(write_stats(store, &body, reterr));
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_stats, show_stats)
