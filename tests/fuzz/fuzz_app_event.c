/* Any bytes as an event of a log: no crash, and what is refused says why. What is read gives the same
 * bytes when it is written. The input stands behind a version and a checksum that fit, so that it is
 * not refused for these; and once as it is. */
#include "fuzz/fuzz.h"

#include "app/core/event.h"
#include "base/core/crc32c.h"

static void decode(pawl_view bytes)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(pawl__buf_done) struct pawl__buf again = BUF_INIT(APP_EVENT_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_event event;
    pawl_app_record record;

    pawl_status status = pawl__app_record_decode(bytes, &record, &error);
    if (status == PAWL_OK) {
        pawl__app_record_encode(&record, &again);
        CHECK(pawl__view_equal(pawl__buf_view(&again), bytes));
        pawl__buf_clear(&again);
    }
    status = pawl__app_event_decode(bytes, &arena, &event, &error);
    if (status != PAWL_OK) {
        CHECK(status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
        CHECK(error.message[0] != '\0');
        return;
    }
    pawl__app_event_encode(&event, &again);
    CHECK(pawl__view_equal(pawl__buf_view(&again), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(APP_EVENT_BYTES_MAX);
    pawl_view body = { (const char *)data, size };

    decode(body);
    pawl__buf_add_u8(&buf, 1);
    pawl__buf_add_u32be(&buf, pawl__crc32c(body));
    pawl__buf_add(&buf, body);
    if (!buf.broken) {
        decode(pawl__buf_view(&buf));
    }
    return 0;
}
