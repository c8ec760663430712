/* Any bytes: no crash, and what is refused says why. jansson's own reader accepts the same texts,
 * but for our limits, and reads the same values. What parses has a canonical form that parses to
 * itself, and a plain form with the same canonical form. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/json/json.h"

enum { INPUT_BYTES_MAX = 1 << 16, OUTPUT_BYTES_MAX = 1 << 20 };

static void canonical_of(pawl_view text, struct pawl__buf *ret_buf)
{
    json_t *json = NULL;

    CHECK(pawl__json_parse(text, OUTPUT_BYTES_MAX, &json, NULL) == PAWL_OK);
    CHECK(pawl__json_canonical(json, ret_buf, NULL) == PAWL_OK);
    json_decref(json);
}

/* NULL where jansson refuses. */
static json_t *read_by_jansson(pawl_view text)
{
    return json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
}

static bool is_our_limit(pawl_view text, const pawl_error *error)
{
    return text.len > INPUT_BYTES_MAX || memchr(text.data, 0, text.len) != NULL
           || strstr(error->message, "more than 64 levels") != NULL;
}

static void check_against_jansson(pawl_view text, json_t *json, const pawl_error *error)
{
    if (json == NULL && (text.len == 0 || is_our_limit(text, error))) {
        return;
    }
    json_t *other = read_by_jansson(text);
    CHECK((json == NULL) == (other == NULL));
    CHECK(json == NULL || json_equal(json, other));
    json_decref(other);
}

/* Checking says what reading says, to the letter. */
static void check_alike(pawl_view text, const pawl_error *error)
{
    pawl_error checked = PAWL_ERROR_INIT;

    CHECK(pawl__json_check(text, INPUT_BYTES_MAX, &checked) == error->status);
    CHECK(strcmp(checked.message, error->message) == 0);
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
        check_alike(text, &error);
        check_against_jansson(text, NULL, &error);
        return 0;
    }
    check_alike(text, &error);
    check_against_jansson(text, json, &error);
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
