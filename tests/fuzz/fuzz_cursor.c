/* Any bytes: no crash, and nothing but CORRUPT or UNSUPPORTED. What decodes encodes to the same
 * bytes. A checksum keeps random bytes out, so each input is tried again with the right one. */
#include "fuzz/fuzz.h"

#include "base/core/crc32c.h"
#include "base/decide/cursor.h"

static void check_usable(struct pawl__cursor *cursor)
{
    uint64_t missing = pawl__cursor_missing(cursor);
    uint64_t lost = 0;

    CHECK(pawl__cursor_complete_to(cursor) <= cursor->watermark);
    for (const struct pawl__hole *hole = cursor->holes;
         hole != NULL && hole < cursor->holes + cursor->hole_count;
         hole++) {
        CHECK(!pawl__cursor_has(cursor, hole->first));
        CHECK(!pawl__cursor_has(cursor, hole->last));
        CHECK(pawl__cursor_has(cursor, hole->last + 1));
    }
    CHECK(pawl__cursor_declare_lost(cursor, 1, PAWL__CURSOR_SEQ_MAX, &lost, NULL) == PAWL_OK);
    CHECK(lost == missing);
    CHECK(pawl__cursor_complete_to(cursor) == cursor->watermark);
}

static void try_bytes(pawl_view bytes)
{
    struct pawl__cursor cursor = CURSOR_INIT;
    pawl_status status = pawl__cursor_decode(&cursor, bytes, NULL);

    if (status == PAWL_OK) {
        AUTO(pawl__buf_done) struct pawl__buf again = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
        pawl__cursor_encode(&cursor, &again);
        CHECK(pawl__view_equal(bytes, pawl__buf_view(&again)));
        check_usable(&cursor);
    } else {
        CHECK(status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
    }
    pawl__cursor_done(&cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pawl__buf_done) struct pawl__buf fixed = BUF_INIT(PAWL__CURSOR_BYTES_MAX);
    pawl_view all = { (const char *)data, size };
    pawl_view body = all;

    try_bytes(all);
    if (size < sizeof(uint32_t) || !pawl__view_take(&all, size - sizeof(uint32_t), &body)) {
        return 0;
    }
    pawl__buf_add(&fixed, body);
    pawl__buf_add_u32le(&fixed, pawl__crc32c(body));
    if (!fixed.broken) {
        try_bytes(pawl__buf_view(&fixed));
    }
    return 0;
}
