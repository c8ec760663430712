#include "delivery/core/failed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/hex.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "delivery/core/encode.h"

static const char *const status_names[DELIVERY_FAILED_STATUS_COUNT] = {
    [DELIVERY_FAILED_PENDING] = "pending",
    [DELIVERY_FAILED_RETRYING] = "retrying",
    [DELIVERY_FAILED_RESOLVED] = "resolved",
    [DELIVERY_FAILED_ABANDONED] = "abandoned",
};

const char *pawl__delivery_failed_status_name(enum delivery_failed_status status)
{
    REQUIRE((size_t)status < COUNT_OF(status_names));
    return status_names[status];
}

pawl_status pawl__delivery_failed_status_parse(pawl_view name,
                                               enum delivery_failed_status *ret_status,
                                               pawl_error *reterr)
{
    size_t i = pawl__view_index(name, status_names, COUNT_OF(status_names));

    if (i == COUNT_OF(status_names)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "status '%.*s' is none of pending, retrying, resolved, abandoned",
                          VIEW_ARGS(name));
    }
    *ret_status = (enum delivery_failed_status)i;
    return PAWL_OK;
}

const char *pawl__delivery_resolution_name(enum delivery_resolution resolution)
{
    static const char *const names[DELIVERY_RESOLUTION_COUNT] = {
        [DELIVERY_NOT_RESOLVED] = "",
        [DELIVERY_RESOLVED_DELIVERED] = "delivered",
        [DELIVERY_RESOLVED_FILTERED] = "filtered",
        [DELIVERY_RESOLVED_BY_HAND] = "by_hand",
    };
    REQUIRE((size_t)resolution < COUNT_OF(names));
    return names[resolution];
}

const char *pawl__delivery_failed_action_name(enum delivery_failed_action action)
{
    static const char *const names[] = {
        [DELIVERY_FAILED_RETRY] = "retry",
        [DELIVERY_FAILED_RESOLVE] = "resolve",
        [DELIVERY_FAILED_ABANDON] = "abandon",
    };
    REQUIRE((size_t)action < COUNT_OF(names));
    return names[action];
}

/* One action at a time works on a pipeline: what is still `retrying` then was left by one that broke off. */
unsigned pawl__delivery_failed_from(enum delivery_failed_action action)
{
    unsigned open = 1U << DELIVERY_FAILED_PENDING | 1U << DELIVERY_FAILED_RETRYING;

    return action == DELIVERY_FAILED_ABANDON ? open : open | 1U << DELIVERY_FAILED_ABANDONED;
}

/* --- decisions --- */

static pawl_status check_text(pawl_view text,
                              const char *what,
                              size_t bytes_max,
                              pawl_error *reterr)
{
    if (text.len > bytes_max) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%s: has %zu bytes, the limit is %zu", what, text.len, bytes_max);
    }
    bool has_nul = text.len > 0 && memchr(text.data, '\0', text.len) != NULL;
    return has_nul || !pawl__view_is_utf8(text)
               ? pawl__fail(reterr, PAWL_INVALID, "%s: is not UTF-8 text", what)
               : PAWL_OK;
}

pawl_status pawl__delivery_decision_check(pawl_view who, pawl_view notes, pawl_error *reterr)
{
    TRY(check_text(who, "by", DELIVERY_WHO_BYTES_MAX, reterr));
    return check_text(notes, "notes", DELIVERY_NOTES_BYTES_MAX, reterr);
}

static bool copy_texts(struct pawl__arena *arena, pawl_view *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (texts[i]->len > 0 && !pawl__arena_copy(arena, *texts[i], texts[i])) {
            return false;
        }
    }
    return true;
}

pawl_status pawl__delivery_decision_copy(const struct delivery_decision *decision,
                                         struct pawl__arena *arena,
                                         struct delivery_decision *ret_copy,
                                         pawl_error *reterr)
{
    struct delivery_decision copy = *decision;
    pawl_view *texts[] = { &copy.who, &copy.notes, &copy.edited_payload };

    if (!copy_texts(arena, texts, COUNT_OF(texts))) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a decision");
    }
    *ret_copy = copy;
    return PAWL_OK;
}

struct delivery_failed_row pawl__delivery_failed_changed(
    const struct delivery_failed_row *row, const struct delivery_failed_change *change)
{
    const struct delivery_decision *decision = &change->decision;
    struct delivery_failed_row next = *row;

    next.status = decision->status;
    next.updated_us = decision->at_us;
    if (change->is_attempt) {
        next.retry_count++;
        next.last_retry_us = decision->at_us;
    }
    if (change->error.len > 0) {
        next.last_error = change->error;
    }
    if (decision->status == DELIVERY_FAILED_RESOLVED
        || decision->status == DELIVERY_FAILED_ABANDONED) {
        next.resolution = decision->resolution;
        next.resolved_us = decision->at_us;
        next.resolved_by = decision->who;
        next.notes = decision->notes;
        next.edited_payload = decision->edited_payload;
    }
    return next;
}

/* --- pages --- */

void pawl__delivery_failed_page_clear(struct delivery_failed_page *page)
{
    pawl__arena_clear(&page->arena);
    page->count = 0;
    page->bytes = 0;
}

void pawl__delivery_failed_page_done(struct delivery_failed_page *page)
{
    pawl__arena_done(&page->arena);
    free(page->rows);
    *page = (struct delivery_failed_page){ .rows = NULL };
}

pawl_status pawl__delivery_failed_page_add(struct delivery_failed_page *page,
                                           const struct delivery_failed_row *row,
                                           pawl_error *reterr)
{
    struct delivery_failed_row copy = *row;
    pawl_view *texts[] = {
        &copy.transaction_id, &copy.event_id,        &copy.source,         &copy.subject,
        &copy.session_key,    &copy.correlation_key, &copy.reason,         &copy.layer,
        &copy.last_error,     &copy.resolved_by,     &copy.notes,          &copy.headers,
        &copy.payload,        &copy.encoding,        &copy.edited_payload,
    };
    struct delivery_failed_row *rows =
        pawl__grow(page->rows, page->count, &page->room, sizeof(*rows));

    TRY(pawl__check_memory(rows, "failed events", reterr));
    page->rows = rows;
    if (!copy_texts(&page->arena, texts, COUNT_OF(texts))) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a failed event");
    }
    rows[page->count++] = copy;
    page->bytes += sizeof(copy);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        page->bytes += texts[i]->len;
    }
    return PAWL_OK;
}

bool pawl__delivery_failed_page_is_full(const struct delivery_failed_page *page,
                                        const struct delivery_failed_query *query)
{
    return page->count >= query->rows_max || page->bytes > query->bytes_max;
}

static bool is_behind(const struct delivery_failed_query *query, delivery_lsn lsn)
{
    if (query->after == 0) {
        return true;
    }
    return query->newest_first ? lsn < query->after : lsn > query->after;
}

static bool is_this(pawl_view wanted, pawl_view text)
{
    return wanted.len == 0 || pawl__view_equal(wanted, text);
}

bool pawl__delivery_failed_matches(const struct delivery_failed_query *query,
                                   const struct delivery_failed_row *row)
{
    return (query->id == NULL || memcmp(query->id, &row->id, sizeof(row->id)) == 0)
           && (query->statuses == 0 || (query->statuses & 1U << (unsigned)row->status) != 0)
           && is_this(query->reason, row->reason) && is_this(query->source, row->source)
           && is_this(query->transaction_id, row->transaction_id)
           && (query->since_us == 0 || row->failed_us >= query->since_us)
           && (query->until_us == 0 || row->failed_us < query->until_us)
           && is_behind(query, row->lsn);
}

/* --- a row as an event again --- */

pawl_status pawl__delivery_failed_entry(const struct delivery_failed_row *row,
                                        struct pawl__arena *arena,
                                        struct delivery_entry *ret_entry,
                                        pawl_error *reterr)
{
    struct delivery_entry entry = {
        .lsn = row->lsn,
        .key = row->key,
        .payload_hash = row->payload_hash,
        .created_us = row->received_us,
        .transaction_id = row->transaction_id,
        .source = row->source,
        .event_id = row->event_id,
        .subject = row->subject,
        .fate = { .state = DELIVERY_FAILED },
    };

    pawl_status status =
        pawl__delivery_payload_bytes(row->payload, row->encoding, arena, &entry.payload, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "failed event LSN %" PRIu64, row->lsn);
    }
    if (row->headers.len > 0) {
        TRY(pawl__delivery_headers_read(
            row->headers, arena, &entry.headers, &entry.header_count, reterr));
    }
    *ret_entry = entry;
    return PAWL_OK;
}

/* --- for people --- */

void pawl__delivery_failed_id_text(const struct delivery_uuid *id, char ret_text[37])
{
    char *out = ret_text;

    for (size_t i = 0; i < sizeof(id->bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *out++ = '-';
        }
        pawl__hex_byte(id->bytes[i], out);
        out += 2;
    }
    *out = '\0';
}

pawl_status pawl__delivery_failed_id_parse(pawl_view text,
                                           struct delivery_uuid *ret_id,
                                           pawl_error *reterr)
{
    struct delivery_uuid id = { { 0 } };
    size_t digits = 0;
    bool is_good = text.len == 36;

    for (size_t i = 0; is_good && i < text.len; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        int value = pawl__hex_value(text.data[i]);
        is_good = is_dash ? text.data[i] == '-' : value >= 0;
        if (is_good && !is_dash) {
            id.bytes[digits / 2] = (uint8_t)(id.bytes[digits / 2] << 4 | value);
            digits++;
        }
    }
    if (!is_good) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%.*s' is not the id of a failed event: expected a UUID",
                          (int)MIN(text.len, (size_t)64),
                          text.data == NULL ? "" : text.data);
    }
    *ret_id = id;
    return PAWL_OK;
}

static pawl_status add_text(struct pawl__buf *buf,
                            const char *name,
                            pawl_view text,
                            pawl_error *reterr)
{
    json_auto_t *json = text.len == 0 ? json_null() : json_stringn(text.data, text.len);

    TRY(pawl__check_memory(json, "a failed event", reterr));
    pawl__buf_add_format(buf, ",\"%s\":", name);
    return pawl__json_dump(json, buf, reterr);
}

static void add_time(struct pawl__buf *buf, const char *name, int64_t wall_us)
{
    char text[PAWL__TIME_SIZE];

    if (wall_us == 0) {
        pawl__buf_add_format(buf, ",\"%s\":null", name);
        return;
    }
    pawl__time_rfc3339(wall_us, text);
    pawl__buf_add_format(buf, ",\"%s\":\"%s\"", name, text);
}

static void add_json(struct pawl__buf *buf, const char *name, pawl_view json)
{
    pawl__buf_add_format(buf, ",\"%s\":", name);
    pawl__buf_add(buf, json.len == 0 ? pawl_view_of("null") : json);
}

pawl_status pawl__delivery_failed_json(const struct delivery_failed_row *row,
                                       struct pawl__buf *buf,
                                       pawl_error *reterr)
{
    char id[37];

    pawl__delivery_failed_id_text(&row->id, id);
    pawl__buf_add_format(buf, "{\"id\":\"%s\",\"lsn\":%" PRIu64, id, row->lsn);
    TRY(add_text(buf, "transaction_id", row->transaction_id, reterr));
    TRY(add_text(buf, "event_id", row->event_id, reterr));
    TRY(add_text(buf, "source", row->source, reterr));
    TRY(add_text(buf, "subject", row->subject, reterr));
    TRY(add_text(buf, "session_key", row->session_key, reterr));
    TRY(add_text(buf, "correlation_key", row->correlation_key, reterr));
    pawl__buf_add_format(buf, ",\"status\":\"%s\"", pawl__delivery_failed_status_name(row->status));
    TRY(add_text(buf, "failure_reason", row->reason, reterr));
    TRY(add_text(buf, "failure_layer", row->layer, reterr));
    TRY(add_text(buf, "last_error", row->last_error, reterr));
    pawl__buf_add_format(buf,
                         ",\"retry_count\":%" PRIu32 ",\"max_retries_exceeded\":%s",
                         row->retry_count,
                         row->retries_exceeded ? "true" : "false");
    add_time(buf, "received_at", row->received_us);
    add_time(buf, "failed_at", row->failed_us);
    add_time(buf, "last_retry_at", row->last_retry_us);
    TRY(add_text(
        buf, "resolution", pawl_view_of(pawl__delivery_resolution_name(row->resolution)), reterr));
    add_time(buf, "resolved_at", row->resolved_us);
    TRY(add_text(buf, "resolved_by", row->resolved_by, reterr));
    TRY(add_text(buf, "resolution_notes", row->notes, reterr));
    TRY(add_text(buf, "payload_encoding", row->encoding, reterr));
    add_json(buf, "headers", row->headers);
    add_json(buf, "event_payload", row->payload);
    add_json(buf, "edited_payload", row->edited_payload);
    pawl__buf_add_char(buf, '}');
    return pawl__buf_check(buf, "a failed event", reterr);
}
