#include "base/decide/cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/crc32c.h"
#include "base/core/error.h"

enum { FIRST_HOLE_CAP = 8 };

void pawl__cursor_done(struct pawl__cursor *cursor)
{
    free(cursor->holes);
    *cursor = (struct pawl__cursor)CURSOR_INIT;
}

/* Index of the first hole that ends at or after `seq`; hole_count when there is none. */
static size_t hole_at(const struct pawl__cursor *cursor, uint64_t seq)
{
    size_t low = 0;
    size_t high = cursor->hole_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cursor->holes[middle].last < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static pawl_status check_range(uint64_t first, uint64_t last, pawl_error *reterr)
{
    if (first < 1 || first > last || last > PAWL__CURSOR_SEQ_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%" PRIu64 "-%" PRIu64 " is no range of numbers from 1 to %" PRIu64,
                          first,
                          last,
                          PAWL__CURSOR_SEQ_MAX);
    }
    return PAWL_OK;
}

/* Room for `count` holes, so that what follows cannot fail. */
static pawl_status reserve(struct pawl__cursor *cursor, size_t count, pawl_error *reterr)
{
    if (count > PAWL__CURSOR_HOLES_MAX) {
        return pawl__fail(reterr,
                          PAWL_BUSY,
                          "the cursor has %d holes, the limit: fill or give up some first",
                          PAWL__CURSOR_HOLES_MAX);
    }
    if (count <= cursor->hole_cap) {
        return PAWL_OK;
    }
    size_t cap = MIN(MAX(cursor->hole_cap * 2, count), (size_t)PAWL__CURSOR_HOLES_MAX);
    cap = MAX(cap, (size_t)FIRST_HOLE_CAP);
    struct pawl__hole *holes = realloc(cursor->holes, cap * sizeof(*holes));
    if (holes == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu holes", cap);
    }
    cursor->holes = holes;
    cursor->hole_cap = cap;
    return PAWL_OK;
}

/* Replaces the holes [begin, end) by `count` others. There is room. */
static void splice(struct pawl__cursor *cursor,
                   size_t begin,
                   size_t end,
                   const struct pawl__hole *pieces,
                   size_t count)
{
    size_t behind = cursor->hole_count - end;

    if (behind > 0) {
        memmove(&cursor->holes[begin + count], &cursor->holes[end], behind * sizeof(*pieces));
    }
    for (size_t i = 0; i < count; i++) {
        cursor->holes[begin + i] = pieces[i];
    }
    cursor->hole_count = begin + count + behind;
}

/* Takes first..last out of all holes. What sticks out on either side stays, with its age. */
static pawl_status punch(struct pawl__cursor *cursor,
                         uint64_t first,
                         uint64_t last,
                         uint64_t *ret_taken,
                         pawl_error *reterr)
{
    size_t begin = hole_at(cursor, first);
    size_t end = begin;
    uint64_t taken = 0;
    struct pawl__hole pieces[2];
    size_t count = 0;

    for (; end < cursor->hole_count && cursor->holes[end].first <= last; end++) {
        struct pawl__hole hole = cursor->holes[end];
        taken += MIN(hole.last, last) - MAX(hole.first, first) + 1;
        if (hole.first < first) {
            pieces[count++] = (struct pawl__hole){ hole.first, first - 1, hole.found_us };
        }
        if (hole.last > last) {
            pieces[count++] = (struct pawl__hole){ last + 1, hole.last, hole.found_us };
        }
        REQUIRE(count <= COUNT_OF(pieces));
    }
    TRY(reserve(cursor, cursor->hole_count - (end - begin) + count, reterr));
    splice(cursor, begin, end, pieces, count);
    *ret_taken = taken;
    return PAWL_OK;
}

/* first..last lies behind the watermark: what it jumps over becomes a hole. */
static pawl_status advance(
    struct pawl__cursor *cursor, uint64_t first, uint64_t last, int64_t now_us, pawl_error *reterr)
{
    if (first > cursor->watermark + 1) {
        struct pawl__hole hole = { cursor->watermark + 1, first - 1, now_us };
        TRY(reserve(cursor, cursor->hole_count + 1, reterr));
        splice(cursor, cursor->hole_count, cursor->hole_count, &hole, 1);
    }
    cursor->watermark = last;
    return PAWL_OK;
}

pawl_status pawl__cursor_observe(struct pawl__cursor *cursor,
                                 uint64_t first,
                                 uint64_t last,
                                 int64_t now_us,
                                 uint64_t *ret_new,
                                 pawl_error *reterr)
{
    uint64_t filled = 0;
    uint64_t ahead = 0;

    TRY(check_range(first, last, reterr));
    /* A range that begins at or before the watermark makes no hole, and one that begins behind it
     * meets none: of the two steps at most one can fail, and then it is the first. */
    if (first <= cursor->watermark) {
        TRY(punch(cursor, first, last, &filled, reterr));
    }
    if (last > cursor->watermark) {
        uint64_t from = MAX(first, cursor->watermark + 1);
        ahead = last - from + 1;
        TRY(advance(cursor, from, last, now_us, reterr));
    }
    if (ret_new != NULL) {
        *ret_new = filled + ahead;
    }
    return PAWL_OK;
}

pawl_status pawl__cursor_resolve(struct pawl__cursor *cursor,
                                 uint64_t first,
                                 uint64_t last,
                                 uint64_t *ret_filled,
                                 pawl_error *reterr)
{
    uint64_t filled = 0;

    TRY(check_range(first, last, reterr));
    TRY(punch(cursor, first, last, &filled, reterr));
    if (ret_filled != NULL) {
        *ret_filled = filled;
    }
    return PAWL_OK;
}

pawl_status pawl__cursor_declare_lost(struct pawl__cursor *cursor,
                                      uint64_t first,
                                      uint64_t last,
                                      uint64_t *ret_lost,
                                      pawl_error *reterr)
{
    uint64_t lost = 0;

    TRY(pawl__cursor_resolve(cursor, first, last, &lost, reterr));
    cursor->lost += lost; /* no number is lost twice, so the sum stays within SEQ_MAX */
    REQUIRE(cursor->lost <= cursor->watermark);
    if (ret_lost != NULL) {
        *ret_lost = lost;
    }
    return PAWL_OK;
}

bool pawl__cursor_has(const struct pawl__cursor *cursor, uint64_t seq)
{
    if (seq < 1 || seq > cursor->watermark) {
        return false;
    }
    size_t at = hole_at(cursor, seq);
    return at == cursor->hole_count || cursor->holes[at].first > seq;
}

uint64_t pawl__cursor_complete_to(const struct pawl__cursor *cursor)
{
    return cursor->hole_count == 0 ? cursor->watermark : cursor->holes[0].first - 1;
}

uint64_t pawl__cursor_missing(const struct pawl__cursor *cursor)
{
    uint64_t missing = 0;

    for (size_t i = 0; i < cursor->hole_count; i++) {
        missing += cursor->holes[i].last - cursor->holes[i].first + 1;
    }
    return missing;
}

const struct pawl__hole *pawl__cursor_next_due(const struct pawl__cursor *cursor,
                                               uint64_t after,
                                               int64_t now_us,
                                               int64_t grace_us)
{
    int64_t found_max_us;

    REQUIRE(after <= PAWL__CURSOR_SEQ_MAX);
    REQUIRE(grace_us >= 0);
    if (__builtin_sub_overflow(now_us, grace_us, &found_max_us)) {
        return NULL;
    }
    for (size_t i = hole_at(cursor, after + 1); i < cursor->hole_count; i++) {
        if (cursor->holes[i].found_us <= found_max_us) {
            return &cursor->holes[i];
        }
    }
    return NULL;
}

void pawl__cursor_restamp(struct pawl__cursor *cursor, int64_t now_us)
{
    for (size_t i = 0; i < cursor->hole_count; i++) {
        cursor->holes[i].found_us = now_us;
    }
}

/* CURSOR, version 1. All integers little-endian.
 *
 *    0  4 bytes  "PCUR"
 *    4  u32      version, 1
 *    8  u64      watermark, 0 .. 2^63 - 1
 *   16  u64      lost, at most the watermark
 *   24  u32      number of holes, 0 .. 4096
 *   28  holes, 24 bytes each: u64 first, u64 last, i64 microsecond at which it was found
 *  end  u32      crc32c of everything before
 *
 * Holes ascend, with at least one number between two, and end before the watermark. There is
 * exactly one encoding of a cursor, and nothing may follow it. It is stored whole or not at all, so
 * whatever does not fit this is damage. To change it: write version 2, keep reading 1. */
static const char magic[4] = { 'P', 'C', 'U', 'R' };
enum { VERSION = 1, CRC_BYTES = 4 };

void pawl__cursor_encode(const struct pawl__cursor *cursor, struct pawl__buf *out)
{
    size_t start = out->len;

    pawl__buf_add(out, (pawl_view){ magic, sizeof(magic) });
    pawl__buf_add_u32le(out, VERSION);
    pawl__buf_add_u64le(out, cursor->watermark);
    pawl__buf_add_u64le(out, cursor->lost);
    pawl__buf_add_u32le(out, (uint32_t)cursor->hole_count);
    for (size_t i = 0; i < cursor->hole_count; i++) {
        pawl__buf_add_u64le(out, cursor->holes[i].first);
        pawl__buf_add_u64le(out, cursor->holes[i].last);
        pawl__buf_add_u64le(out, (uint64_t)cursor->holes[i].found_us);
    }
    if (!out->broken) {
        pawl_view all = pawl__buf_view(out);
        pawl_view before;
        REQUIRE(pawl__view_take(&all, start, &before));
        pawl__buf_add_u32le(out, pawl__crc32c(all));
    }
}

static bool take_holes(pawl_view *in, struct pawl__cursor *cursor, size_t count)
{
    uint64_t free_from = 1; /* the next hole starts here or later */

    for (size_t i = 0; i < count; i++) {
        struct pawl__hole hole;
        uint64_t found;
        if (!pawl__view_take_u64le(in, &hole.first) || !pawl__view_take_u64le(in, &hole.last)
            || !pawl__view_take_u64le(in, &found)) {
            return false;
        }
        if (hole.first < free_from || hole.last < hole.first || hole.last >= cursor->watermark) {
            return false;
        }
        hole.found_us = (int64_t)found;
        cursor->holes[cursor->hole_count++] = hole;
        free_from = hole.last + 2;
    }
    return in->len == 0;
}

/* The part between the version and the checksum. */
static pawl_status take_body(pawl_view in, struct pawl__cursor *cursor, pawl_error *reterr)
{
    uint32_t count;

    if (!pawl__view_take_u64le(&in, &cursor->watermark)
        || !pawl__view_take_u64le(&in, &cursor->lost) || !pawl__view_take_u32le(&in, &count)
        || cursor->watermark > PAWL__CURSOR_SEQ_MAX || count > PAWL__CURSOR_HOLES_MAX) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a cursor's head is damaged");
    }
    TRY(reserve(cursor, count, reterr));
    if (!take_holes(&in, cursor, count)
        || cursor->lost > cursor->watermark - pawl__cursor_missing(cursor)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a cursor's holes contradict each other");
    }
    return PAWL_OK;
}

/* Everything between the version and a checksum that holds. */
static pawl_status open_frame(pawl_view in, pawl_view *ret_body, pawl_error *reterr)
{
    pawl_view all = in;
    pawl_view checked;
    pawl_view mark;
    uint32_t version;
    uint32_t crc;

    if (!pawl__view_take(&in, sizeof(magic), &mark) || memcmp(mark.data, magic, sizeof(magic)) != 0
        || !pawl__view_take_u32le(&in, &version) || in.len < CRC_BYTES) {
        return pawl__fail(reterr, PAWL_CORRUPT, "%zu bytes that are no cursor", all.len);
    }
    if (version != VERSION) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "a cursor of version %" PRIu32 "; this program reads %d",
                          version,
                          VERSION);
    }
    if (!pawl__view_take(&all, all.len - CRC_BYTES, &checked) || !pawl__view_take_u32le(&all, &crc)
        || crc != pawl__crc32c(checked)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "a cursor's checksum does not match");
    }
    REQUIRE(pawl__view_take(&in, in.len - CRC_BYTES, ret_body));
    return PAWL_OK;
}

pawl_status pawl__cursor_decode(struct pawl__cursor *cursor, pawl_view bytes, pawl_error *reterr)
{
    AUTO(pawl__cursor_done) struct pawl__cursor decoded = CURSOR_INIT;
    pawl_view body;

    TRY(open_frame(bytes, &body, reterr));
    TRY(take_body(body, &decoded, reterr));
    pawl__cursor_done(cursor);
    *cursor = decoded;
    decoded = (struct pawl__cursor)CURSOR_INIT;
    return PAWL_OK;
}
