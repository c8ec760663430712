/* Any bytes: no crash. What parses comes back the same from both written forms. */
#include "fuzz/fuzz.h"

#include "base/os/clock.h"

static void check_round_trip(const char *text, int64_t expected_us)
{
    int64_t wall_us = 0;

    CHECK(pawl__time_parse(pawl_view_of(text), &wall_us, NULL) == PAWL_OK);
    CHECK(wall_us == expected_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_view text = { (const char *)data, size };
    pawl_error error = PAWL_ERROR_INIT;
    int64_t wall_us = INT64_MIN;
    char written[PAWL__TIME_SIZE];

    if (pawl__time_parse(text, &wall_us, &error) != PAWL_OK) {
        CHECK(wall_us == INT64_MIN);
        CHECK(error.status == PAWL_INVALID);
        return 0;
    }
    pawl__time_store(wall_us, written);
    check_round_trip(written, wall_us);
    pawl__time_rfc3339(wall_us, written);
    check_round_trip(written, wall_us);
    return 0;
}
