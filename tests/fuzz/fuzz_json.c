/* Any bytes: no crash, and what is refused says why. What parses has a canonical form that parses
 * to itself, and a plain form with the same canonical form. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/json.h"

enum { INPUT_BYTES_MAX = 1 << 16, OUTPUT_BYTES_MAX = 1 << 20 };

static void canonical_of(pawl_view text, struct pawl__buf *ret_buf)
{
    json_t *json = NULL;

    CHECK(pawl__json_parse(text, OUTPUT_BYTES_MAX, &json, NULL) == PAWL_OK);
    CHECK(pawl__json_canonical(json, ret_buf, NULL) == PAWL_OK);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_view text = { (const char *)data, size };
    struct pawl__buf first = BUF_INIT(OUTPUT_BYTES_MAX);
    struct pawl__buf plain = BUF_INIT(OUTPUT_BYTES_MAX);
    struct pawl__buf again = BUF_INIT(OUTPUT_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    json_t *json = NULL;

    if (pawl__json_parse(text, INPUT_BYTES_MAX, &json, &error) != PAWL_OK) {
        CHECK(json == NULL);
        CHECK(error.status == PAWL_INVALID);
        CHECK(error.message[0] != '\0');
        return 0;
    }
    CHECK(pawl__view_is_utf8(text));
    CHECK(pawl__json_canonical(json, &first, &error) == PAWL_OK);
    CHECK(pawl__json_dump(json, &plain, &error) == PAWL_OK);
    json_decref(json);
    canonical_of(pawl__buf_view(&first), &again);
    CHECK(pawl__view_equal(pawl__buf_view(&first), pawl__buf_view(&again)));
    pawl__buf_clear(&again);
    canonical_of(pawl__buf_view(&plain), &again);
    CHECK(pawl__view_equal(pawl__buf_view(&first), pawl__buf_view(&again)));
    pawl__buf_done(&first);
    pawl__buf_done(&plain);
    pawl__buf_done(&again);
    return 0;
}
