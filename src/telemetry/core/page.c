#include "telemetry/core/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/hex.h"
#include "telemetry/core/wire.h"

bool pawl__telemetry_id_equal(const struct telemetry_id *a, const struct telemetry_id *b)
{
    return strcmp(a->text, b->text) == 0;
}

bool pawl__telemetry_id_is_none(const struct telemetry_id *id)
{
    return id->text[0] == '\0';
}

pawl_status pawl__telemetry_id_parse(pawl_view text,
                                     struct telemetry_id *ret_id,
                                     pawl_error *reterr)
{
    struct telemetry_id id = { "" };

    if (text.len >= sizeof(id.text)) {
        return pawl__fail(reterr, PAWL_INVALID, "an id of %zu bytes, a UUID has 36", text.len);
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~') {
            return pawl__fail(reterr, PAWL_INVALID, "an id that is not printable");
        }
        id.text[i] = text.data[i];
    }
    *ret_id = id;
    return PAWL_OK;
}

/* A UUID of version 4. */
struct telemetry_id pawl__telemetry_id_of(const uint8_t random[16])
{
    struct telemetry_id id = { "" };
    uint8_t bytes[16];
    size_t at = 0;

    memcpy(bytes, random, sizeof(bytes));
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            id.text[at++] = '-';
        }
        pawl__hex_byte(bytes[i], &id.text[at]);
        at += 2;
    }
    return id;
}

pawl_status pawl__telemetry_query_check(const struct telemetry_query *query, pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(query->type);

    if (query->start > TELEMETRY_SEQ_MAX || query->end > TELEMETRY_SEQ_MAX
        || query->ack > TELEMETRY_SEQ_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "a sequence id above 2^63 - 1");
    }
    if (query->end != 0 && query->end < query->start) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "end_seq_id %" PRIu64 " is below start_seq_id %" PRIu64,
                          query->end,
                          query->start);
    }
    if (query->rows_max == 0 || query->rows_max > info->batch_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%u rows of %s, the limit is %u",
                          query->rows_max,
                          info->name,
                          info->batch_max);
    }
    return PAWL_OK;
}

/* --- a page --- */

void pawl__telemetry_page_clear(struct telemetry_page *page)
{
    page->session = (struct telemetry_id){ "" };
    page->epoch_count = 0;
    page->min_available = 0;
    page->high_water = 0;
    page->scanned_to = 0;
    page->count = 0;
    page->bytes = 0;
    pawl__arena_clear(&page->arena);
}

void pawl__telemetry_page_done(struct telemetry_page *page)
{
    free(page->epochs);
    free(page->rows);
    pawl__arena_done(&page->arena);
    *page = (struct telemetry_page){ .count = 0 };
}

pawl_status pawl__telemetry_page_add_epoch(struct telemetry_page *page,
                                           const struct telemetry_epoch *epoch,
                                           pawl_error *reterr)
{
    struct telemetry_epoch *epochs =
        pawl__grow(page->epochs, page->epoch_count, &page->epoch_room, sizeof(*epochs));

    TRY(pawl__check_memory(epochs, "an epoch", reterr));
    page->epochs = epochs;
    epochs[page->epoch_count++] = *epoch;
    return PAWL_OK;
}

pawl_status pawl__telemetry_page_add(struct telemetry_page *page,
                                     uint64_t seq_id,
                                     pawl_view bytes,
                                     bool *ret_fits,
                                     pawl_error *reterr)
{
    struct telemetry_row *rows = pawl__grow(page->rows, page->count, &page->room, sizeof(*rows));
    size_t cost = bytes.len + 1 + pawl__telemetry_varint_size(bytes.len);
    struct telemetry_row row = { .seq_id = seq_id };

    TRY(pawl__check_memory(rows, "a page", reterr));
    page->rows = rows;
    *ret_fits = page->count == 0 || page->bytes + cost <= TELEMETRY_PAGE_BYTES_MAX;
    if (!*ret_fits) {
        return PAWL_OK;
    }
    if (!pawl__arena_copy(&page->arena, bytes, &row.bytes)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
    }
    rows[page->count++] = row;
    page->bytes += cost;
    return PAWL_OK;
}

uint64_t pawl__telemetry_page_max(const struct telemetry_page *page)
{
    return page->count == 0 ? 0 : page->rows[page->count - 1].seq_id;
}

/* --- an honest one --- */

static pawl_status lie(pawl_error *reterr, const char *what, uint64_t number)
{
    return pawl__fail(
        reterr, PAWL_INVALID, "the agent's answer cannot be true: %s (%" PRIu64 ")", what, number);
}

static pawl_status check_epochs(const struct telemetry_page *page, pawl_error *reterr)
{
    for (size_t i = 0; i < page->epoch_count; i++) {
        const struct telemetry_epoch *epoch = &page->epochs[i];
        if (pawl__telemetry_id_is_none(&epoch->id) || epoch->first == 0) {
            return lie(reterr, "an epoch without an id or a first sequence id", epoch->first);
        }
        if (epoch->first > page->high_water + 1) {
            return lie(reterr, "an epoch begins above the high-water mark", epoch->first);
        }
        if (i > 0 && epoch->first < page->epochs[i - 1].first) {
            return lie(reterr, "an epoch begins before the one before it", epoch->first);
        }
    }
    return PAWL_OK;
}

static pawl_status check_rows(const struct telemetry_query *query,
                              const struct telemetry_page *page,
                              pawl_error *reterr)
{
    uint64_t before = query->start;

    for (size_t i = 0; i < page->count; i++) {
        uint64_t seq_id = page->rows[i].seq_id;
        if (seq_id <= before) {
            return lie(reterr,
                       i == 0 ? "a row at or below start_seq_id" : "rows out of order or twice",
                       seq_id);
        }
        if (query->end != 0 && seq_id > query->end) {
            return lie(reterr, "a row above end_seq_id", seq_id);
        }
        if (seq_id > page->high_water || seq_id < page->min_available) {
            return lie(reterr, "a row outside of what the agent says it has", seq_id);
        }
        before = seq_id;
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_page_check(const struct telemetry_query *query,
                                       const struct telemetry_page *page,
                                       pawl_error *reterr)
{
    if (pawl__telemetry_id_is_none(&page->session)) {
        return pawl__fail(reterr, PAWL_INVALID, "the agent's answer names no session");
    }
    if (page->high_water > TELEMETRY_SEQ_MAX) {
        return lie(reterr, "a high-water mark above 2^63 - 1", page->high_water);
    }
    if (page->min_available == 0 || page->min_available > page->high_water + 1) {
        return lie(
            reterr, "min_available_seq_id is 0 or above the high-water mark", page->min_available);
    }
    if (page->count > query->rows_max) {
        return lie(reterr, "more rows than were asked for", page->count);
    }
    if (page->scanned_to < pawl__telemetry_page_max(page)) {
        return lie(reterr, "rows above where the scan ended", page->scanned_to);
    }
    TRY(check_epochs(page, reterr));
    return check_rows(query, page, reterr);
}

/* --- decode --- */

static pawl_status reject(struct telemetry_page *page,
                          struct telemetry_row *row,
                          const pawl_error *why,
                          pawl_error *reterr)
{
    pawl_view copy;

    row->values = NULL;
    if (!pawl__arena_copy(&page->arena, pawl_view_of(why->message), &copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page");
    }
    row->reason = copy.data;
    return PAWL_OK;
}

static pawl_status decode_row(enum telemetry_type type,
                              struct telemetry_page *page,
                              struct telemetry_row *row,
                              pawl_error *reterr)
{
    struct telemetry_values *values = pawl__arena_take(&page->arena, sizeof(*values));
    pawl_error why = PAWL_ERROR_INIT;
    uint64_t seq_id = 0;

    TRY(pawl__check_memory(values, "a page", reterr));
    pawl_status status =
        pawl__telemetry_row_decode(type, row->bytes, &page->arena, &seq_id, values, &why);
    if (status == PAWL_NOMEM) {
        return pawl__fail_with(reterr, status, &why);
    }
    if (status == PAWL_OK && seq_id != row->seq_id) {
        status = pawl__fail(&why, PAWL_INVALID, "the row's own sequence id is %" PRIu64, seq_id);
    }
    if (status != PAWL_OK) {
        return reject(page, row, &why, reterr);
    }
    row->values = values;
    row->reason = NULL;
    return PAWL_OK;
}

pawl_status pawl__telemetry_page_decode(enum telemetry_type type,
                                        struct telemetry_page *page,
                                        pawl_error *reterr)
{
    for (size_t i = 0; i < page->count; i++) {
        TRY(decode_row(type, page, &page->rows[i], reterr));
    }
    return PAWL_OK;
}
