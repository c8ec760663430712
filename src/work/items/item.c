#include "work/items/item.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/uuid.h"
#include "base/json/json.h"

bool pawl__work_item_has_ended(pawl_item_status status)
{
    return status == PAWL_ITEM_COMPLETED || status == PAWL_ITEM_FAILED;
}

int pawl__work_claim_order(const struct work_row *a, const struct work_row *b)
{
    if (a->item.priority != b->item.priority) {
        return a->item.priority > b->item.priority ? -1 : 1;
    }
    if (a->submission != b->submission) {
        return a->submission < b->submission ? -1 : 1;
    }
    return pawl__work_view_order(a->item.work_item_id, b->item.work_item_id);
}

int64_t pawl__work_number_rows(struct work_row *const *rows, size_t count, int64_t last)
{
    int64_t newest = last;

    for (size_t i = 0; i < count; i++) {
        if (rows[i]->home == WORK_NOWHERE) {
            rows[i]->submission += last + 1;
            newest = MAX(newest, rows[i]->submission);
        }
    }
    return newest;
}

bool pawl__work_filter_is_open(const pawl_item_filter *filter)
{
    const uint32_t ended = 1U << PAWL_ITEM_COMPLETED | 1U << PAWL_ITEM_FAILED;

    return filter->statuses != 0 && (filter->statuses & ended) == 0;
}

bool pawl__work_filter_is_busy(const pawl_item_filter *filter)
{
    return pawl__work_filter_is_open(filter) && (filter->statuses & 1U << PAWL_ITEM_PENDING) == 0;
}

int pawl__work_view_order(pawl_view a, pawl_view b)
{
    size_t len = MIN(a.len, b.len);
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

int pawl__work_by_view(const void *a, const void *b)
{
    return pawl__work_view_order(*(const pawl_view *)a, *(const pawl_view *)b);
}

size_t pawl__work_views_distinct(pawl_view *views, size_t count)
{
    size_t distinct = 0;

    if (count > 0) {
        qsort(views, count, sizeof(*views), pawl__work_by_view);
    }
    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 || !pawl__view_equal(views[distinct - 1], views[i])) {
            views[distinct++] = views[i];
        }
    }
    return distinct;
}

static bool has_control_character(pawl_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f) {
            return true;
        }
    }
    return false;
}

pawl_status pawl__work_check_name(const char *field, pawl_view text, pawl_error *reterr)
{
    if (text.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is empty", field);
    }
    TRY(pawl__check_view(text, field, reterr));
    TRY(pawl__check_bytes(field, text.len, PAWL_WORK_NAME_BYTES_MAX, reterr));
    if (!pawl__view_is_utf8(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is not UTF-8", field);
    }
    if (has_control_character(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: has a control character", field);
    }
    return PAWL_OK;
}

pawl_status pawl__work_check_optional_name(const char *field, pawl_view text, pawl_error *reterr)
{
    return text.len == 0 ? PAWL_OK : pawl__work_check_name(field, text, reterr);
}

pawl_status pawl__work_check_json(const char *field,
                                  pawl_view text,
                                  size_t bytes_max,
                                  pawl_error *reterr)
{
    TRY(pawl__check_view(text, field, reterr));
    pawl_status status = text.len == 0 ? PAWL_OK : pawl__json_check(text, bytes_max, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "%s", field);
}

pawl_status pawl__work_check_message(const char *field,
                                     pawl_view text,
                                     pawl_view *ret_text,
                                     pawl_error *reterr)
{
    TRY(pawl__check_view(text, field, reterr));
    if (text.len > PAWL_WORK_ERROR_BYTES_MAX) {
        text.len = PAWL_WORK_ERROR_BYTES_MAX;
        /* Not in the middle of a character: back over its continuation bytes and its first. */
        while (text.len > 0 && ((unsigned char)text.data[text.len] & 0xC0) == 0x80) {
            text.len--;
        }
    }
    if (!pawl__view_is_utf8(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is not UTF-8", field);
    }
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: has a NUL byte", field);
    }
    *ret_text = text;
    return PAWL_OK;
}

static pawl_status check_after(const pawl_submission *submission, pawl_error *reterr)
{
    TRY(pawl__check_limit(
        "after: names", submission->after_count, " items", PAWL_WORK_AFTER_MAX, reterr));
    if (submission->after_count > 0 && submission->after == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "after: is NULL");
    }
    for (size_t i = 0; i < submission->after_count; i++) {
        TRY(pawl__work_check_name("after", submission->after[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status check_numbers(const pawl_submission *submission, pawl_error *reterr)
{
    TRY(pawl__check_range(
        "priority", submission->priority, PAWL_WORK_PRIORITY_MIN, PAWL_WORK_PRIORITY_MAX, reterr));
    if (submission->max_retries > 0) { /* negative: the default */
        uint64_t retries = (uint64_t)submission->max_retries;
        TRY(pawl__check_limit("max_retries: is", retries, "", PAWL_WORK_RETRIES_MAX, reterr));
    }
    return pawl__check_range("delay_ms", submission->delay_ms, 0, WORK_DELAY_MS_MAX, reterr);
}

pawl_status pawl__work_submission_check(const pawl_submission *submission,
                                        const pawl_work_options *options,
                                        pawl_error *reterr)
{
    TRY(pawl__work_check_name("work_item_id", submission->work_item_id, reterr));
    TRY(pawl__work_check_name("task_id", submission->task_id, reterr));
    TRY(pawl__work_check_name("work_type", submission->work_type, reterr));
    TRY(pawl__work_check_json(
        "input_data", submission->input_data, options->data_bytes_max, reterr));
    TRY(check_numbers(submission, reterr));
    return check_after(submission, reterr);
}

pawl_status pawl__work_id(pawl_view given,
                          char ret_id[PAWL_WORK_NAME_BYTES_MAX + 1],
                          pawl_error *reterr)
{
    struct pawl__uuid uuid;

    if (given.len > 0) {
        TRY(pawl__work_check_name("id", given, reterr));
        memcpy(ret_id, given.data, given.len);
        ret_id[given.len] = '\0';
        return PAWL_OK;
    }
    TRY(pawl__uuid_next(pawl__uuid_process(), &uuid, reterr));
    pawl__uuid_text(&uuid, ret_id);
    return PAWL_OK;
}
