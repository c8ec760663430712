/* Appending on every backend: idempotency, conflicts, batches, and what may be an event at all. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"

static void test_the_same_event_again_has_its_first_offset(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("x", 3, "{\"b\":[1,2],\"a\":1}");
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    append_one(f, "before", 0, "0");
    assert_ok(pawl_ledger_append(f->ledger, &event, &result, &f->err), &f->err);
    assert_int_equal(result.offset, 2);
    assert_false(result.duplicate);
    assert_string_equal(result.derived_id, "");
    append_one(f, "after", 0, "0");

    /* Not what was written, but what it says, and when it was said does not count. */
    event.payload = pawl_view_of(" { \"a\" : 1.0, \"b\" : [ 1, 2e0 ] } ");
    event.created_at_us = 77;
    event.schema_version = 1;
    assert_ok(pawl_ledger_append(f->ledger, &event, &result, &f->err), &f->err);
    assert_int_equal(result.offset, 2);
    assert_true(result.duplicate);
    assert_int_equal(append_one(f, "next", 0, "0"), 4);
    assert_reads(f, NULL, "1 r/0 k 0\n2 r/3 k {\"b\":[1,2],\"a\":1}\n3 r/0 k 0\n4 r/0 k 0\nat 4\n");
}

static void test_other_content_under_an_id_is_a_conflict_that_changes_nothing(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("x", 1, "{\"a\":1}");
    pawl_event others[6];
    static const char *const fields[] = { "run_id", "turn",    "kind",
                                          "actor",  "payload", "schema_version" };
    pawl_append_result result = {
        .size = sizeof(pawl_append_result), .offset = 99, .duplicate = true, .derived_id = "kept"
    };

    append_one(f, "x", 1, "{\"a\":1}");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = event;
    }
    others[0].run_id = pawl_view_of("R");
    others[1].turn = 2;
    others[2].kind = pawl_view_of("kk");
    others[3].actor = pawl_view_of("b");
    others[4].payload = pawl_view_of("{\"a\":1,\"b\":null}");
    others[5].schema_version = 2;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_status(
            pawl_ledger_append(f->ledger, &others[i], &result, &f->err), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "id 'x' is taken by offset 1");
        assert_message(&f->err, fields[i]);
        assert_int_equal(result.offset, 99);
        assert_true(result.duplicate);
        assert_string_equal(result.derived_id, "kept");
    }
    assert_int_equal(append_one(f, "y", 0, "0"), 2); /* no offset was burnt */
    assert_reads(f, NULL, "1 r/1 k {\"a\":1}\n2 r/0 k 0\nat 2\n");
}

/* Ids as they come, one for each letter; the payload is the letter's place in the text. */
static pawl_status append_letters(struct ledger_fixture *f,
                                  const char *letters,
                                  pawl_append_result *ret_results)
{
    static char texts[32][4];
    pawl_event events[16];
    size_t count = strlen(letters);

    assert_true(count <= COUNT_OF(events));
    for (size_t i = 0; i < count; i++) {
        texts[2 * i][0] = letters[i];
        texts[2 * i][1] = '\0';
        texts[2 * i + 1][0] = letters[i] >= 'a' ? '1' : '2'; /* upper case: other content */
        texts[2 * i + 1][1] = '\0';
        texts[2 * i][0] = (char)(letters[i] | 0x20);
        events[i] = event_of(texts[2 * i], 0, texts[2 * i + 1]);
    }
    if (ret_results != NULL) {
        ret_results->size = sizeof(*ret_results);
    }
    return pawl_ledger_append_many(f->ledger, events, count, ret_results, &f->err);
}

static void test_a_batch_gives_consecutive_offsets_to_what_is_new(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_append_result results[16] = { PAWL_APPEND_RESULT_INIT };
    static const uint64_t offsets[] = { 4, 2, 5, 5, 1, 6 };
    static const bool duplicates[] = { false, true, false, true, true, false };

    assert_ok(append_letters(f, "abc", results), &f->err);
    assert_int_equal(results[2].offset, 3);
    assert_ok(append_letters(f, "dbeeaf", results), &f->err);
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        assert_int_equal(results[i].offset, offsets[i]);
        assert_int_equal(results[i].duplicate, duplicates[i]);
    }
    assert_int_equal(latest_offset(f), 6);
    assert_ok(append_letters(f, "abcdef", NULL), &f->err);
    assert_ok(append_letters(f, "", NULL), &f->err);
    assert_int_equal(latest_offset(f), 6);
}

static void test_a_batch_is_all_or_nothing(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_append_result results[16] = { { .size = sizeof(pawl_append_result), .offset = 99 } };

    assert_ok(append_letters(f, "b", NULL), &f->err);
    assert_status(append_letters(f, "axBc", results), PAWL_CONFLICT, &f->err); /* with stored */
    assert_message(&f->err, "event 2: id 'b' is taken by offset 1");
    assert_int_equal(f->err.detail, PAWL_DETAIL_ID_TAKEN);
    assert_int_equal(f->err.index, 2);
    assert_status(append_letters(f, "axA", results), PAWL_CONFLICT, &f->err); /* with itself */
    assert_message(&f->err,
                   "event 2: id 'a' is taken by an earlier event of the same batch, which has "
                   "another payload");
    assert_int_equal(results[0].offset, 99);

    pawl_event events[] = { event_of("a", 0, "1"), event_of("c", -1, "1") };
    assert_status(
        pawl_ledger_append_many(f->ledger, events, 2, results, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "event 1: turn: is -1");
    assert_int_equal(latest_offset(f), 1);
    assert_ok(append_letters(f, "axc", results), &f->err);
    assert_int_equal(results[0].offset, 2);
    assert_false(results[0].duplicate);
    assert_int_equal(latest_offset(f), 4);
}

static void test_a_batch_has_a_limit(void **state)
{
    struct ledger_fixture *f = *state;
    size_t count = PAWL_LEDGER_BATCH_MAX + 1;
    pawl_event *events = calloc(count, sizeof(*events));
    char(*ids)[8] = calloc(count, sizeof(*ids));

    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(*ids), "%zu", i);
        events[i] = event_of(ids[i], 0, "0");
    }
    assert_status(
        pawl_ledger_append_many(f->ledger, events, count, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "a batch of 100001 events, the limit is 100000");
    assert_ok(pawl_ledger_append_many(f->ledger, events, count - 1, NULL, &f->err), &f->err);
    assert_int_equal(latest_offset(f), count - 1);
    free(events);
    free(ids);
}

/* --- what may be an event --- */

static void assert_refused(struct ledger_fixture *f, const pawl_event *event, const char *message)
{
    assert_status(pawl_ledger_append(f->ledger, event, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, message);
}

static pawl_view *text_field(pawl_event *event, size_t i)
{
    pawl_view *const fields[] = { &event->id, &event->run_id, &event->kind, &event->actor };

    return fields[i];
}

static void test_a_text_field_is_utf8_of_1_to_200_bytes(void **state)
{
    struct ledger_fixture *f = *state;
    static const char *const names[] = { "id", "run_id", "kind", "actor" };
    char text[PAWL_LEDGER_NAME_BYTES_MAX + 1];
    char message[64];

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        pawl_event event = event_of(names[i], 0, "0");
        pawl_view *field = text_field(&event, i);

        memset(text, 'x', sizeof(text));
        text[0] = (char)('a' + i);
        *field = (pawl_view){ NULL, 0 };
        snprintf(message, sizeof(message), "%s: missing", names[i]);
        assert_refused(f, &event, message);
        *field = (pawl_view){ text, sizeof(text) };
        snprintf(message, sizeof(message), "%s: has 201 bytes, the limit is 200", names[i]);
        assert_refused(f, &event, message);
        *field = (pawl_view){ "a\0b", 3 };
        snprintf(message, sizeof(message), "%s: has a NUL byte in it", names[i]);
        assert_refused(f, &event, message);
        *field = (pawl_view){ "a\xC3", 2 };
        snprintf(message, sizeof(message), "%s: is not UTF-8", names[i]);
        assert_refused(f, &event, message);
        *field = (pawl_view){ text, sizeof(text) - 1 };
        assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    }
    assert_int_equal(latest_offset(f), COUNT_OF(names));
}

static void test_numbers_have_their_ranges(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("1", 0, "0");

    event.turn = -1;
    assert_refused(f, &event, "turn: is -1, must be 0 or more");
    event.turn = INT64_MAX;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);

    event = event_of("2", 0, "0");
    event.schema_version = -1;
    assert_refused(f, &event, "schema_version: is -1, must be 1 to 2147483647");
    event.schema_version = INT64_C(1) << 31;
    assert_refused(f, &event, "schema_version: is 2147483648");
    event.schema_version = INT32_MAX;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);

    event = event_of("3", 0, "0");
    event.created_at_us = PAWL__WALL_US_MIN - 1;
    assert_refused(f, &event, "created_at: is outside the years 1 to 9999");
    event.created_at_us = PAWL__WALL_US_MAX + 1;
    assert_refused(f, &event, "created_at: is outside the years 1 to 9999");
    event.created_at_us = PAWL__WALL_US_MIN;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    event.id = pawl_view_of("4");
    event.created_at_us = PAWL__WALL_US_MAX;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);

    static const int64_t times[] = { PAWL__WALL_US_MIN, PAWL__WALL_US_MAX };
    for (uint64_t i = 0; i < COUNT_OF(times); i++) {
        pawl_event *found;
        assert_ok(pawl_ledger_get(f->ledger, (pawl_view){ NULL, 0 }, i + 3, &found, &f->err),
                  &f->err);
        assert_int_equal(found->created_at_us, times[i]);
        pawl_event_free(found);
    }
}

static void test_a_payload_is_one_json_value_within_the_limit(void **state)
{
    struct ledger_fixture *f = *state;
    static const struct {
        pawl_view text;
        const char *message;
    } bad[] = {
        { { "", 0 }, "payload: missing" },
        { { "{", 1 }, "payload: line 1, column 2" },
        { { "{} {}", 5 }, "payload: line 1, column 4" },
        { { "nul", 3 }, "payload: line 1, column 1: expected a value" },
        { { "\"a\0b\"", 5 }, "payload: line 1, column 3: NUL byte" },
        { { "\"\\u0000\"", 8 }, "payload: line 1, column 2: \\u0000" },
        { { "\"\xFF\"", 3 }, "payload: line 1, column 2: not UTF-8" },
        { { "{\"a\":1,\"a\":1}", 13 }, "payload: line 1, column 8: the same key again" },
        { { "9223372036854775808", 19 }, "payload: line 1, column 1: integer out of range" },
        { { "1e999", 5 }, "payload: line 1, column 1: real number out of range" },
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_event event = event_of("x", 0, "");
        event.payload = bad[i].text;
        assert_refused(f, &event, bad[i].message);
    }
    assert_int_equal(latest_offset(f), 0);
}

static void test_a_payload_may_have_as_many_bytes_as_the_options_say(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    size_t limit = 1 << 20;
    char *text = malloc(limit + 1);

    memset(text, 'x', limit + 1);
    text[0] = '"';
    text[limit] = '"';
    pawl_event event = event_of("x", 0, "");
    event.payload = (pawl_view){ text, limit + 1 };
    assert_refused(f, &event, "payload: has 1048577 bytes, the limit is 1048576");
    text[limit - 1] = '"';
    event.payload.len = limit;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    pawl_event *found;
    assert_ok(pawl_ledger_get(f->ledger, event.id, 0, &found, &f->err), &f->err);
    assert_int_equal(found->payload.len, limit);
    assert_memory_equal(found->payload.data, text, limit);
    pawl_event_free(found);
    free(text);

    if (!ledger_fixture_close(f)) {
        return;
    }
    options.payload_bytes_max = 3;
    ledger_fixture_open(f, &options);
    event = event_of("y", 0, "1234");
    assert_refused(f, &event, "payload: has 4 bytes, the limit is 3");
    append_one(f, "y", 0, "123");
}

static void test_kinds_of_the_ledgers_own_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("x", 0, "0");

    event.kind = pawl_view_of("pawl.turn.begin");
    assert_refused(f, &event, "kind: 'pawl.turn.begin' is reserved");
    event.kind = pawl_view_of("pawl.");
    assert_refused(f, &event, "kind: 'pawl.' is reserved");
    event.kind = pawl_view_of("pawl");
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
}

static void test_appends_are_counted_as_metrics(void **state)
{
    struct ledger_fixture *f = *state;
    char *text = NULL;
    size_t len = 0;

    append_one(f, "a", 0, "0");
    append_one(f, "b", 0, "0");
    assert_ok(pawl_ledger_get_metrics(f->ledger, &text, &len, &f->err), &f->err);
    assert_int_equal(len, strlen(text));
    assert_string_equal(text,
                        "# HELP pawl_commit_batches_total Transactions of the group commit.\n"
                        "# TYPE pawl_commit_batches_total counter\n"
                        "pawl_commit_batches_total{store=\"ledger\"} 2\n"
                        "# HELP pawl_commit_calls_total Calls that these transactions served.\n"
                        "# TYPE pawl_commit_calls_total counter\n"
                        "pawl_commit_calls_total{store=\"ledger\"} 2\n"
                        "# HELP pawl_commit_waiting Calls that wait for their transaction.\n"
                        "# TYPE pawl_commit_waiting gauge\n"
                        "pawl_commit_waiting{store=\"ledger\"} 0\n");
    free(text);
}

static void test_missing_arguments_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("x", 0, "0");

    assert_status(pawl_ledger_append(NULL, &event, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl_ledger_append(f->ledger, NULL, NULL, &f->err), PAWL_INVALID, &f->err);
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, NULL), &f->err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_the_same_event_again_has_its_first_offset),
        LEDGER_TEST(test_other_content_under_an_id_is_a_conflict_that_changes_nothing),
        LEDGER_TEST(test_a_batch_gives_consecutive_offsets_to_what_is_new),
        LEDGER_TEST(test_a_batch_is_all_or_nothing),
        LEDGER_TEST(test_a_batch_has_a_limit),
        LEDGER_TEST(test_a_text_field_is_utf8_of_1_to_200_bytes),
        LEDGER_TEST(test_numbers_have_their_ranges),
        LEDGER_TEST(test_a_payload_is_one_json_value_within_the_limit),
        LEDGER_TEST(test_a_payload_may_have_as_many_bytes_as_the_options_say),
        LEDGER_TEST(test_kinds_of_the_ledgers_own_are_refused),
        LEDGER_TEST(test_appends_are_counted_as_metrics),
        LEDGER_TEST(test_missing_arguments_are_refused),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
