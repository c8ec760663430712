/* Events as lines of JSON: what is read, what is refused, and that the payload stays as it was. */
#include "lib/check.h"

#include <stdlib.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "lib/fault.h"

#define REST "\"run_id\":\"r\",\"turn\":0,\"kind\":\"k\",\"actor\":\"a\""

static pawl_event *read_good(const char *json, const pawl_event *defaults)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_event *event = NULL;

    assert_ok(pawl_event_from_json(pawl_view_of(json), defaults, &event, &error), &error);
    return event;
}

static void test_every_field_is_read(void **state)
{
    (void)state;
    pawl_event *event = read_good(
        " { \"hash\" : "
        "\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\",\"offset\":9,"
        "\"id\":\"e\\u00e9\",\"run_id\":\"r\",\"turn\":7,\"kind\":\"k\",\"actor\":\"\\\"\","
        "\"payload\" : {\"a\" : [1, \"}\\\"]\"]} ,\"created_at\":\"1970-01-01T00:00:01Z\","
        "\"schema_version\":3}\t\r\n",
        NULL);

    assert_int_equal(event->offset, 9);
    assert_true(pawl__view_is(event->id, "e\xC3\xA9"));
    assert_true(pawl__view_is(event->run_id, "r"));
    assert_int_equal(event->turn, 7);
    assert_true(pawl__view_is(event->actor, "\""));
    assert_true(pawl__view_is(event->payload, "{\"a\" : [1, \"}\\\"]\"]}"));
    assert_int_equal(event->created_at_us, 1000000);
    assert_int_equal(event->schema_version, 3);
    assert_int_equal(event->hash[0], 0x2c);
    assert_int_equal(event->hash[31], 0xae);
    pawl_event_free(event);
}

static void test_what_is_left_out_or_null_comes_from_the_defaults(void **state)
{
    (void)state;
    pawl_event defaults = {
        .size = sizeof(pawl_event),
        .id = pawl_view_of("D"),
        .run_id = pawl_view_of("R"),
        .turn = 5,
        .kind = pawl_view_of("K"),
        .actor = pawl_view_of("A"),
        .payload = pawl_view_of("0"),
        .created_at_us = 77,
        .schema_version = 8,
    };
    pawl_event *event = read_good("{\"kind\":null,\"actor\":\"own\",\"payload\":null}", &defaults);

    assert_true(pawl__view_is(event->id, "D"));
    assert_true(pawl__view_is(event->kind, "K"));
    assert_true(pawl__view_is(event->actor, "own"));
    assert_true(pawl__view_is(event->payload, "null")); /* which is a value */
    assert_int_equal(event->turn, 5);
    assert_int_equal(event->created_at_us, 77);
    assert_int_equal(event->schema_version, 8);
    pawl_event_free(event);
    event = read_good("{\"turn\":1}", NULL); /* the rest is for append to miss */
    assert_int_equal(event->id.len + event->payload.len, 0);
    assert_int_equal(event->schema_version, 0);
    pawl_event_free(event);
}

static void test_a_bad_line_is_refused_with_place_or_field(void **state)
{
    static const struct {
        const char *json;
        const char *message;
    } cases[] = {
        { "", "column 1: it ends here" },
        { "[]", "column 1: expected an object" },
        { "{", "column 2: it ends here" },
        { "{}x", "column 3: nothing may follow" },
        { "{\"id\"}", "column 6: expected ':'" },
        { "{\"id\":}", "id: has no value" },
        { "{\"id\":\"a\"", "it ends here" },
        { "{\"id\":\"a}", "it ends here" },
        { "{\"id\":\"a\" \"turn\":1}", "id:" },
        { "{id:1}", "column 2: expected a name in quotes" },
        { "{\"idd\":1}", "'idd' is no field of an event; did you mean 'id'" },
        { "{\"\\u0069d\":1}", "is no field" },
        { "{\"id\":\"a\",\"id\":\"a\"}", "id: is there twice" },
        { "{\"id\":[]}", "id: expected a string" },
        { "{\"turn\":1.5}", "turn: expected" },
        { "{\"turn\":01}", "turn:" },
        { "{\"turn\":99999999999999999999}", "turn:" },
        { "{\"id\":\"a\"}", "turn: missing" },
        { "{\"turn\":1,\"offset\":-1}", "offset: is -1" },
        { "{\"turn\":1,\"schema_version\":0}", "schema_version: is 0" },
        { "{\"turn\":1,\"hash\":\"12\"}", "hash:" },
        { "{\"turn\":1,\"created_at\":\"now\"}", "created_at: 'now' is no time" },
        { "{\"turn\":1,\"created_at\":5}", "created_at: expected a string" },
        { "{\"turn\":1,\"payload\":1,\"payload_text\":\"2\"}",
          "payload_text: is not what payload" },
        { "{\"turn\":1,\"payload_text\":2}", "payload_text: expected a string" },
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_event *event = NULL;

        assert_status(pawl_event_from_json(pawl_view_of(cases[i].json), NULL, &event, &error),
                      PAWL_INVALID,
                      &error);
        assert_message(&error, cases[i].message);
        assert_null(event);
    }
}

static void test_a_nul_byte_is_refused_wherever_it_is(void **state)
{
    static const char json[] = "{\"id\":\"a\0b\"}";
    pawl_error error = PAWL_ERROR_INIT;
    pawl_event *event = NULL;
    (void)state;

    assert_status(pawl_event_from_json((pawl_view){ json, sizeof(json) - 1 }, NULL, &event, &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "column 9: a NUL byte");
}

static void test_what_is_written_reads_back_the_same(void **state)
{
    static const char *const payloads[] = {
        "1", " 1", "1 ", "{\n}", "[1,\r\n\t2]", "\"\\n\"", "\"\xE2\x80\xA8\"", "1.50e1", "{ }",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_event event = {
            .size = sizeof(pawl_event),
            .offset = 3,
            .id = pawl_view_of("i\"\\\n\x01\xC2\x9B\xF0\x9F\x8E\x89"),
            .run_id = pawl_view_of("r"),
            .turn = INT64_MAX,
            .kind = pawl_view_of("k"),
            .actor = pawl_view_of("\xE2\x80\xAE"),
            .payload = pawl_view_of(payloads[i]),
            .created_at_us = -1,
            .schema_version = INT32_MAX,
            .hash = { 1, 2, 0xFF },
        };
        char *json = NULL;
        size_t len = 0;

        assert_ok(pawl_event_to_json(&event, &json, &len, &error), &error);
        assert_int_equal(len, strlen(json));
        assert_null(strpbrk(json, "\r\n\x01"));
        assert_null(strstr(json, "\xC2\x9B")); /* nothing a terminal acts on, outside payloads */
        assert_null(strstr(json, "\xE2\x80\xAE"));
        pawl_event *again = read_good(json, NULL);
        assert_int_equal(again->offset, 3);
        assert_true(pawl__view_equal(again->id, event.id));
        assert_true(pawl__view_equal(again->actor, event.actor));
        assert_true(pawl__view_equal(again->payload, event.payload));
        assert_int_equal(again->turn, INT64_MAX);
        assert_int_equal(again->created_at_us, -1);
        assert_int_equal(again->schema_version, INT32_MAX);
        assert_memory_equal(again->hash, event.hash, sizeof(event.hash));
        pawl_event_free(again);
        free(json);
    }
}

static void test_a_payload_that_is_not_json_is_not_written(void **state)
{
    static const char *const payloads[] = { "", "{\"n\":1}x", "\xFF\xFE", "{" };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_event event = { .size = sizeof(pawl_event),
                             .offset = 7,
                             .payload = pawl_view_of(payloads[i]) };
        char *json = NULL;

        assert_status(pawl_event_to_json(&event, &json, NULL, &error), PAWL_CORRUPT, &error);
        assert_message(&error, "payload of offset 7");
        event.offset = 0;
        assert_status(pawl_event_to_json(&event, &json, NULL, &error), PAWL_INVALID, &error);
        assert_null(json);
    }
}

static void test_memory_that_runs_out_is_an_error(void **state)
{
    static const char json[] =
        "{\"id\":\"\\u0041\"," REST ",\"payload\":[1],\"payload_text\":\"[1 ]\"}";
    (void)state;

    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_event *event = NULL;
        char *text = NULL;
        pawl_status status = pawl_event_from_json(pawl_view_of(json), NULL, &event, &error);

        if (status == PAWL_OK) {
            status = pawl_event_to_json(event, &text, NULL, &error);
        }
        assert_true(status == PAWL_OK || status == PAWL_NOMEM);
        assert_true(status == PAWL_NOMEM || !fault_fired());
        pawl_event_free(event);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_is_read),
        cmocka_unit_test(test_what_is_left_out_or_null_comes_from_the_defaults),
        cmocka_unit_test(test_a_bad_line_is_refused_with_place_or_field),
        cmocka_unit_test(test_a_nul_byte_is_refused_wherever_it_is),
        cmocka_unit_test(test_what_is_written_reads_back_the_same),
        cmocka_unit_test(test_a_payload_that_is_not_json_is_not_written),
        cmocka_unit_test(test_memory_that_runs_out_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
