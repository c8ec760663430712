#include <string.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "cli/work.h"

/* --- names --- */

static const char *const item_statuses[] = {
    [PAWL_ITEM_PENDING] = "pending",     [PAWL_ITEM_IN_PROGRESS] = "in_progress",
    [PAWL_ITEM_COMPLETED] = "completed", [PAWL_ITEM_FAILED] = "failed",
    [PAWL_ITEM_EXPIRED] = "expired",     [PAWL_ITEM_WAITING] = "waiting",
};

static const char *const task_statuses[] = {
    [PAWL_TASK_PENDING] = "pending",     [PAWL_TASK_RUNNING] = "running",
    [PAWL_TASK_SUCCEEDED] = "succeeded", [PAWL_TASK_FAILED] = "failed",
    [PAWL_TASK_CANCELLED] = "cancelled",
};

static const char *const checkpoint_types[] = {
#define TYPE_NAME(name, text) [PAWL_CHECKPOINT_##name] = #text,
    PAWL_CHECKPOINT_TYPES(TYPE_NAME)
#undef TYPE_NAME
};

const char *pawl__item_status_name(pawl_item_status status)
{
    return item_statuses[status];
}

const char *pawl__task_status_name(pawl_task_status status)
{
    return task_statuses[status];
}

const char *pawl__checkpoint_type_name(pawl_checkpoint_type type)
{
    return checkpoint_types[type];
}

static size_t find(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;

    while (i + 1 < count && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

pawl_item_status pawl__item_status_named(const char *name)
{
    return (pawl_item_status)find(item_statuses, COUNT_OF(item_statuses), name);
}

pawl_task_status pawl__task_status_named(const char *name)
{
    return (pawl_task_status)find(task_statuses, COUNT_OF(task_statuses), name);
}

pawl_checkpoint_type pawl__checkpoint_type_named(const char *name)
{
    return (pawl_checkpoint_type)find(checkpoint_types, COUNT_OF(checkpoint_types), name);
}

/* --- objects --- */

struct pawl__object pawl__object_start(const struct pawl__run *run, struct pawl__buf *buf)
{
    pawl__buf_add_char(buf, '{');
    return (struct pawl__object){ .run = run, .buf = buf };
}

void pawl__object_key(struct pawl__object *object, const char *key)
{
    pawl__buf_add_format(object->buf, "%s\"%s\":", object->any ? "," : "", key);
    object->any = true;
}

void pawl__object_text(struct pawl__object *object, const char *key, pawl_view text)
{
    pawl__object_key(object, key);
    if (text.len == 0) {
        pawl__buf_add_text(object->buf, "null");
    } else {
        pawl__display_add_json(object->buf, text);
    }
}

void pawl__object_integer(struct pawl__object *object, const char *key, int64_t value)
{
    pawl__object_key(object, key);
    pawl__buf_add_format(object->buf, "%lld", (long long)value);
}

void pawl__object_bool(struct pawl__object *object, const char *key, bool value)
{
    pawl__object_key(object, key);
    pawl__buf_add_text(object->buf, value ? "true" : "false");
}

void pawl__object_real(struct pawl__object *object, const char *key, double value)
{
    pawl__object_key(object, key);
    pawl__buf_add_real(object->buf, value);
}

void pawl__object_time(struct pawl__object *object, const char *key, int64_t us)
{
    char text[PAWL__TIME_SIZE] = "";

    if (us != 0) {
        pawl__time_rfc3339(us, text);
    }
    pawl__object_text(object, key, pawl_view_of(text));
}

/* Line breaks in JSON stand between values: a blank means the same, and the object stays a line. */
static void add_on_one_line(const struct pawl__run *run, struct pawl__buf *buf, pawl_view json)
{
    pawl_view part;

    while (json.len > 0 && pawl__view_split(&json, '\n', &part)) {
        pawl__out_add_value(run, buf, part);
        pawl__buf_add_text(buf, json.len > 0 ? " " : "");
    }
}

void pawl__object_json(struct pawl__object *object, const char *key, pawl_view json)
{
    if (json.len == 0 || pawl__json_check(json, SIZE_MAX / 2, NULL) != PAWL_OK) {
        pawl__object_text(object, key, json);
        return;
    }
    pawl__object_key(object, key);
    add_on_one_line(object->run, object->buf, json);
}

void pawl__object_end(struct pawl__object *object)
{
    pawl__buf_add_char(object->buf, '}');
}

/* --- items, tasks, checkpoints --- */

void pawl__item_add_json(const struct pawl__run *run, struct pawl__buf *buf, const pawl_item *item)
{
    struct pawl__object object = pawl__object_start(run, buf);

    pawl__object_text(&object, "work_item_id", item->work_item_id);
    pawl__object_text(&object, "task_id", item->task_id);
    pawl__object_text(&object, "work_type", item->work_type);
    pawl__object_text(&object, "status", pawl_view_of(pawl__item_status_name(item->status)));
    pawl__object_integer(&object, "priority", item->priority);
    pawl__object_integer(&object, "retry_count", item->retry_count);
    pawl__object_integer(&object, "max_retries", item->max_retries);
    pawl__object_integer(&object, "attempts", item->attempts);
    pawl__object_integer(&object, "token", (int64_t)item->token);
    pawl__object_text(&object, "lease_holder", item->lease_holder);
    pawl__object_json(&object, "input_data", item->input_data);
    pawl__object_json(&object, "output_data", item->output_data);
    pawl__object_text(&object, "error_message", item->error_message);
    pawl__object_time(&object, "created_at", item->created_at_us);
    pawl__object_time(&object, "started_at", item->started_at_us);
    pawl__object_time(&object, "completed_at", item->completed_at_us);
    pawl__object_time(&object, "updated_at", item->updated_at_us);
    pawl__object_time(&object, "lease_acquired_at", item->lease_acquired_at_us);
    pawl__object_time(&object, "lease_expires_at", item->lease_expires_at_us);
    pawl__object_time(&object, "heartbeat_at", item->heartbeat_at_us);
    pawl__object_time(&object, "due_at", item->due_at_us);
    pawl__object_end(&object);
}

void pawl__task_add_json(const struct pawl__run *run, struct pawl__buf *buf, const pawl_task *task)
{
    struct pawl__object object = pawl__object_start(run, buf);

    pawl__object_text(&object, "task_id", task->task_id);
    pawl__object_text(&object, "title", task->title);
    pawl__object_text(&object, "status", pawl_view_of(pawl__task_status_name(task->status)));
    pawl__object_bool(&object, "set_by_user", task->set_by_user);
    pawl__object_integer(&object, "waiting", (int64_t)task->waiting);
    pawl__object_integer(&object, "pending", (int64_t)task->pending);
    pawl__object_integer(&object, "in_progress", (int64_t)task->in_progress);
    pawl__object_integer(&object, "completed", (int64_t)task->completed);
    pawl__object_integer(&object, "failed", (int64_t)task->failed);
    pawl__object_json(&object, "metadata", task->metadata);
    pawl__object_time(&object, "created_at", task->created_at_us);
    pawl__object_time(&object, "updated_at", task->updated_at_us);
    pawl__object_end(&object);
}

static const char *const evidence_names[] = {
    [PAWL_EVIDENCE_FILE_EXISTS] = "file_exists",
    [PAWL_EVIDENCE_FILE_SHA256] = "file_sha256",
    [PAWL_EVIDENCE_COMMAND_EXIT] = "command_exit",
    [PAWL_EVIDENCE_ROW_EXISTS] = "row_exists",
};

static void add_evidence(const struct pawl__run *run,
                         struct pawl__buf *buf,
                         const pawl_checkpoint *checkpoint)
{
    pawl__buf_add_char(buf, '[');
    for (size_t i = 0; i < checkpoint->evidence_count; i++) {
        const pawl_evidence *evidence = &checkpoint->evidence[i];
        pawl__buf_add_text(buf, i == 0 ? "" : ",");
        struct pawl__object object = pawl__object_start(run, buf);
        pawl__object_text(&object, "kind", pawl_view_of(evidence_names[evidence->kind]));
        pawl__object_text(&object, "subject", evidence->subject);
        pawl__object_text(&object, "expected", evidence->expected);
        pawl__object_end(&object);
    }
    pawl__buf_add_char(buf, ']');
}

void pawl__checkpoint_add_json(const struct pawl__run *run,
                               struct pawl__buf *buf,
                               const pawl_checkpoint *checkpoint)
{
    struct pawl__object object = pawl__object_start(run, buf);

    pawl__object_text(&object, "checkpoint_id", checkpoint->checkpoint_id);
    pawl__object_text(&object, "task_id", checkpoint->task_id);
    pawl__object_text(&object, "work_item_id", checkpoint->work_item_id);
    pawl__object_text(
        &object, "checkpoint_type", pawl_view_of(pawl__checkpoint_type_name(checkpoint->type)));
    pawl__object_integer(&object, "sequence_number", checkpoint->sequence_number);
    pawl__object_json(&object, "snapshot_data", checkpoint->snapshot_data);
    pawl__object_json(&object, "metadata", checkpoint->metadata);
    pawl__object_bool(&object, "verified", checkpoint->verified);
    pawl__object_key(&object, "evidence");
    add_evidence(run, buf, checkpoint);
    pawl__object_time(&object, "created_at", checkpoint->created_at_us);
    pawl__object_end(&object);
}

/* --- rows --- */

struct pawl__cell pawl__cell_of(pawl_view text)
{
    return text.len == 0 ? pawl__cell_none() : pawl__cell_text(text);
}

struct pawl__cell pawl__cell_value(pawl_view json)
{
    return json.len > 0 && pawl__json_check(json, SIZE_MAX / 2, NULL) == PAWL_OK
               ? pawl__cell_json(json)
               : pawl__cell_of(json);
}

struct pawl__cell pawl__cell_time(int64_t us, char ret_text[WORK_TIME_SIZE])
{
    if (us == 0) {
        return pawl__cell_none();
    }
    pawl__time_rfc3339(us, ret_text);
    return pawl__cell_text(pawl_view_of(ret_text));
}

void pawl__rows_start(struct pawl__rows *rows,
                      const struct pawl__run *run,
                      const struct pawl__column *columns,
                      size_t count,
                      pawl_error *reterr)
{
    struct pawl__table_options options = pawl__out_table(run);

    *rows = (struct pawl__rows){
        .run = run,
        .line = BUF_INIT(SIZE_MAX / 2),
        .reterr = reterr,
    };
    pawl__table_init(&rows->table, columns, count, &options);
}

void pawl__rows_done(struct pawl__rows *rows)
{
    pawl__table_done(&rows->table);
    pawl__buf_done(&rows->line);
}

bool pawl__rows_add(struct pawl__rows *rows, const struct pawl__cell *cells)
{
    rows->status = pawl__table_add(&rows->table, cells, rows->reterr);
    return rows->status == PAWL_OK;
}

bool pawl__rows_add_line(struct pawl__rows *rows)
{
    pawl__buf_add_char(&rows->line, '\n');
    rows->status = pawl__out_add(&rows->line, rows->reterr);
    pawl__buf_clear(&rows->line);
    return rows->status == PAWL_OK;
}

pawl_status pawl__rows_end(struct pawl__rows *rows, pawl_status status)
{
    if (rows->status != PAWL_OK) {
        return rows->status;
    }
    return status == PAWL_OK ? pawl__table_end(&rows->table, rows->reterr) : status;
}

const struct pawl__column pawl__item_columns[] = {
    { "work_item_id", true }, { "task_id", true },     { "work_type", false },
    { "status", true },       { "priority", false },   { "attempts", false },
    { "created_at", true },   { "input_data", false }, { "error_message", false },
};
const size_t pawl__item_columns_count = COUNT_OF(pawl__item_columns);

bool pawl__item_row(void *context, const pawl_item *item)
{
    struct pawl__rows *rows = context;
    char time[WORK_TIME_SIZE];

    if (rows->run->json) {
        pawl__item_add_json(rows->run, &rows->line, item);
        return pawl__rows_add_line(rows);
    }
    const struct pawl__cell cells[] = {
        pawl__cell_of(item->work_item_id),
        pawl__cell_of(item->task_id),
        pawl__cell_of(item->work_type),
        pawl__cell_text(pawl_view_of(pawl__item_status_name(item->status))),
        pawl__cell_integer(item->priority),
        pawl__cell_integer(item->attempts),
        pawl__cell_time(item->created_at_us, time),
        pawl__cell_value(item->input_data),
        pawl__cell_of(item->error_message),
    };
    return pawl__rows_add(rows, cells);
}

const struct pawl__column pawl__checkpoint_columns[] = {
    { "sequence_number", false }, { "checkpoint_id", true }, { "checkpoint_type", false },
    { "work_item_id", false },    { "verified", false },     { "created_at", true },
    { "snapshot_data", false },
};
const size_t pawl__checkpoint_columns_count = COUNT_OF(pawl__checkpoint_columns);

bool pawl__checkpoint_row(void *context, const pawl_checkpoint *checkpoint)
{
    struct pawl__rows *rows = context;
    char time[WORK_TIME_SIZE];

    if (rows->run->json) {
        pawl__checkpoint_add_json(rows->run, &rows->line, checkpoint);
        return pawl__rows_add_line(rows);
    }
    const struct pawl__cell cells[] = {
        pawl__cell_integer(checkpoint->sequence_number),
        pawl__cell_of(checkpoint->checkpoint_id),
        pawl__cell_text(pawl_view_of(pawl__checkpoint_type_name(checkpoint->type))),
        pawl__cell_of(checkpoint->work_item_id),
        pawl__cell_bool(checkpoint->verified),
        pawl__cell_time(checkpoint->created_at_us, time),
        pawl__cell_value(checkpoint->snapshot_data),
    };
    return pawl__rows_add(rows, cells);
}

pawl_status pawl__work_answer(const struct pawl__run *run,
                              const struct pawl__column *columns,
                              const struct pawl__cell *cells,
                              size_t count,
                              pawl_error *reterr)
{
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__out_table(run);

    pawl__table_init(&table, columns, count, &options);
    pawl_status status = pawl__table_add(&table, cells, reterr);
    return status == PAWL_OK ? pawl__table_end(&table, reterr) : status;
}
