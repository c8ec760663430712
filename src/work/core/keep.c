#include "work/core/keep.h"

#include "base/core/macros.h"

static bool keep_texts(struct pawl__arena *arena, pawl_view *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (texts[i]->len == 0) {
            *texts[i] = (pawl_view){ "", 0 };
        } else if (!pawl__arena_copy(arena, *texts[i], texts[i])) {
            return false;
        }
    }
    return true;
}

static bool keep_evidence(struct pawl__arena *arena, pawl_checkpoint *copy)
{
    size_t count = copy->evidence_count;
    const pawl_evidence *from = copy->evidence;

    copy->evidence = NULL;
    if (count == 0) {
        return true;
    }
    pawl_evidence *pieces = pawl__arena_take(arena, count * sizeof(*pieces));
    if (pieces == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        pieces[i] = from[i];
        pawl_view *texts[] = { &pieces[i].subject, &pieces[i].expected };
        if (!keep_texts(arena, texts, COUNT_OF(texts))) {
            return false;
        }
    }
    copy->evidence = pieces;
    return true;
}

bool pawl__work_copy_checkpoint(struct pawl__arena *arena,
                                const pawl_checkpoint *from,
                                pawl_checkpoint *ret_copy)
{
    pawl_checkpoint copy = *from;
    pawl_view *texts[] = {
        &copy.checkpoint_id, &copy.task_id, &copy.work_item_id, &copy.snapshot_data, &copy.metadata
    };

    if (!keep_texts(arena, texts, COUNT_OF(texts)) || !keep_evidence(arena, &copy)) {
        return false;
    }
    *ret_copy = copy;
    return true;
}

bool pawl__work_copy_item(struct pawl__arena *arena, const pawl_item *from, pawl_item *ret_copy)
{
    pawl_item copy = *from;
    pawl_view *texts[] = {
        &copy.work_item_id, &copy.task_id,     &copy.work_type,     &copy.lease_holder,
        &copy.input_data,   &copy.output_data, &copy.error_message,
    };

    if (!keep_texts(arena, texts, COUNT_OF(texts))) {
        return false;
    }
    *ret_copy = copy;
    return true;
}

bool pawl__work_copy_task(struct pawl__arena *arena, const pawl_task *from, pawl_task *ret_copy)
{
    pawl_task copy = *from;
    pawl_view *texts[] = { &copy.task_id, &copy.title, &copy.metadata };

    if (!keep_texts(arena, texts, COUNT_OF(texts))) {
        return false;
    }
    *ret_copy = copy;
    return true;
}

bool pawl__work_copy_schedule(struct pawl__arena *arena,
                              const pawl_schedule *from,
                              pawl_schedule *ret_copy)
{
    pawl_schedule copy = *from;
    pawl_view *texts[] = {
        &copy.schedule_id, &copy.cron, &copy.task_id, &copy.work_type, &copy.input_data
    };

    if (!keep_texts(arena, texts, COUNT_OF(texts))) {
        return false;
    }
    *ret_copy = copy;
    return true;
}

bool pawl__work_copy_key(struct pawl__arena *arena,
                         const struct work_key_row *from,
                         struct work_key_row *ret_copy)
{
    struct work_key_row copy = *from;
    pawl_view *texts[] = { &copy.key,          &copy.request_hash, &copy.task_id,
                           &copy.work_item_id, &copy.response,     &copy.owner };

    if (!keep_texts(arena, texts, COUNT_OF(texts))) {
        return false;
    }
    *ret_copy = copy;
    return true;
}
