/* Who an event is: by header, by field, by place. */
#include "lib/check.h"

#include "delivery/core/entry.h"
#include "delivery/core/identity.h"

struct fixture {
    struct delivery_identity_rule rule;
    struct delivery_header headers[4];
    struct delivery_message message;
    char text[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct delivery_identity identity;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){
        .rule = { pawl_view_of("tautulli"), pawl_view_of("MEDIA"), { NULL, 0 } },
        .message = { .place = { 1700, 42, 1800 },
                     .payload = pawl_view_of("{\"id\":\"e7\",\"n\":12}") },
    };
    f.message.headers = f.headers;
    *state = &f;
    return 0;
}

static void add_header(struct fixture *f, const char *name, const char *value)
{
    f->headers[f->message.header_count++] =
        (struct delivery_header){ pawl_view_of(name), pawl_view_of(value) };
}

static const char *identify(struct fixture *f)
{
    struct pawl__buf text = BUF_OVER(f->text);

    assert_ok(pawl__delivery_identify(&f->rule, &f->message, &text, &f->identity, &f->error),
              &f->error);
    assert_true(pawl__view_is(f->identity.transaction_id, f->text));
    return f->text;
}

static void test_a_message_without_an_id_is_named_by_its_place(void **state)
{
    assert_string_equal(identify(*state), "tautulli:MEDIA@1700@1800:42");
    assert_int_equal(((struct fixture *)*state)->identity.kind, DELIVERY_ID_BY_PLACE);
}

static void test_the_message_id_of_nats_names_it(void **state)
{
    struct fixture *f = *state;

    add_header(f, "nats-msg-id", "abc");
    assert_string_equal(identify(f), "tautulli:abc:0");
    assert_true(pawl__view_is(f->identity.source, "tautulli"));
    assert_true(pawl__view_is(f->identity.event_id, "abc"));
}

static void test_the_field_of_the_payload_wins_over_the_message_id(void **state)
{
    struct fixture *f = *state;

    add_header(f, "Nats-Msg-Id", "abc");
    f->rule.id_field = pawl_view_of("id");
    assert_string_equal(identify(f), "tautulli:e7:0");
    f->rule.id_field = pawl_view_of("n");
    assert_string_equal(identify(f), "tautulli:12:0");
    f->rule.id_field = pawl_view_of("missing");
    assert_string_equal(identify(f), "tautulli:abc:0");
}

static void test_what_pawl_published_keeps_its_own_id(void **state)
{
    struct fixture *f = *state;

    add_header(f, "Nats-Msg-Id", "plex:e9:3");
    add_header(f, "Pawl-Source", "plex");
    add_header(f, "Pawl-Event-Id", "e9");
    add_header(f, "Pawl-Sequence", "3");
    f->rule.id_field = pawl_view_of("id");
    assert_string_equal(identify(f), "plex:e9:3");
}

static void expect_bad(struct fixture *f)
{
    identify(f);
    assert_int_equal(f->identity.kind, DELIVERY_ID_BAD);
    assert_string_equal(f->text, "tautulli:MEDIA@1700@1800:42");
}

static void test_an_id_that_is_none_is_marked_and_named_by_place(void **state)
{
    struct fixture *f = *state;
    char long_id[DELIVERY_ID_BYTES_MAX + 2];

    memset(long_id, 'x', sizeof(long_id));
    long_id[DELIVERY_ID_BYTES_MAX + 1] = '\0';
    add_header(f, "Nats-Msg-Id", long_id);
    expect_bad(f);
    long_id[DELIVERY_ID_BYTES_MAX] = '\0';
    f->headers[0].value = pawl_view_of(long_id);
    identify(f);
    assert_int_equal(f->identity.kind, DELIVERY_ID_GIVEN);
    f->headers[0].value = pawl_view_of("\xff");
    expect_bad(f);
    add_header(f, "Pawl-Event-Id", "e9");
    add_header(f, "Pawl-Sequence", "-3");
    expect_bad(f);
    f->headers[2].value = pawl_view_of("9223372036854775808");
    expect_bad(f);
    f->headers[2].value = pawl_view_of("9223372036854775807");
    assert_string_equal(identify(f), "tautulli:e9:9223372036854775807");
    add_header(f, "Pawl-Source", "a:b");
    expect_bad(f);
}

static void test_a_payload_that_is_no_json_falls_back(void **state)
{
    struct fixture *f = *state;

    f->rule.id_field = pawl_view_of("id");
    f->message.payload = pawl_view_of("not json");
    assert_string_equal(identify(f), "tautulli:MEDIA@1700@1800:42");
    f->message.payload = pawl_view_of("{\"id\":[1]}");
    expect_bad(f);
}

static void test_the_same_text_by_place_and_by_header_has_other_hashes(void **state)
{
    struct fixture *f = *state;

    identify(f);
    struct delivery_hash by_place = f->identity.id;
    add_header(f, "Pawl-Event-Id", "MEDIA@1700@1800");
    add_header(f, "Pawl-Sequence", "42");
    assert_string_equal(identify(f), "tautulli:MEDIA@1700@1800:42");
    assert_false(pawl__delivery_hash_equal(&by_place, &f->identity.id));
}

static void test_conflicts_of_one_id_have_keys_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct delivery_hash keys[2];

    identify(f);
    assert_ok(
        pawl__delivery_conflict_key(&f->identity.id, &f->identity.payload, &keys[0], &f->error),
        &f->error);
    f->message.payload = pawl_view_of("{}");
    identify(f);
    assert_ok(
        pawl__delivery_conflict_key(&f->identity.id, &f->identity.payload, &keys[1], &f->error),
        &f->error);
    assert_false(pawl__delivery_hash_equal(&keys[0], &keys[1]));
    assert_false(pawl__delivery_hash_equal(&keys[0], &f->identity.id));
}

static void test_a_source_has_no_colon(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl__delivery_check_rule(&f->rule, &f->error), &f->error);
    f->rule.source = pawl_view_of("a:b");
    assert_status(pawl__delivery_check_rule(&f->rule, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "source 'a:b'");
    f->rule.source = pawl_view_of("");
    assert_status(pawl__delivery_check_rule(&f->rule, &f->error), PAWL_INVALID, &f->error);
}

static void test_an_entry_has_the_same_id_on_every_read(void **state)
{
    struct fixture *f = *state;
    struct delivery_uuid wal = { { 1 } };
    struct delivery_uuid ids[3];

    assert_ok(pawl__delivery_entry_id(&wal, 7, &ids[0], &f->error), &f->error);
    assert_ok(pawl__delivery_entry_id(&wal, 7, &ids[1], &f->error), &f->error);
    assert_ok(pawl__delivery_entry_id(&wal, 8, &ids[2], &f->error), &f->error);
    assert_memory_equal(&ids[0], &ids[1], sizeof(ids[0]));
    assert_memory_not_equal(&ids[0], &ids[2], sizeof(ids[0]));
    assert_int_equal(ids[0].bytes[6] >> 4, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_message_without_an_id_is_named_by_its_place, setup),
        cmocka_unit_test_setup(test_the_message_id_of_nats_names_it, setup),
        cmocka_unit_test_setup(test_the_field_of_the_payload_wins_over_the_message_id, setup),
        cmocka_unit_test_setup(test_what_pawl_published_keeps_its_own_id, setup),
        cmocka_unit_test_setup(test_an_id_that_is_none_is_marked_and_named_by_place, setup),
        cmocka_unit_test_setup(test_a_payload_that_is_no_json_falls_back, setup),
        cmocka_unit_test_setup(test_the_same_text_by_place_and_by_header_has_other_hashes, setup),
        cmocka_unit_test_setup(test_conflicts_of_one_id_have_keys_of_their_own, setup),
        cmocka_unit_test_setup(test_a_source_has_no_colon, setup),
        cmocka_unit_test_setup(test_an_entry_has_the_same_id_on_every_read, setup),
    };
    return cmocka_run_group_tests_name("delivery_identity", tests, NULL, NULL);
}
