/* What a descriptor and a command may say, and what becomes of the references in its data. */
#include "lib/check.h"

#include <stdlib.h>

#include "app/core/command.h"
#include "app/definition/descriptor.h"
#include "base/core/error.h"
#include "lib/fault.h"

#define V(text) ((pawl_view){ (text), sizeof(text) - 1 })

static const pawl_app_sequence own[] = { { sizeof(pawl_app_sequence), "invoice", 17, 1000 },
                                         { sizeof(pawl_app_sequence), "ticket", 16, 1 } };
static const pawl_app_kind kinds[] = { { sizeof(pawl_app_kind), "shop", 2, own, 2 },
                                       { sizeof(pawl_app_kind), "office", 1, NULL, 0 } };

static pawl_app_descriptor sample(void)
{
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;

    descriptor.name = "orders";
    descriptor.id = 1;
    descriptor.partitions = 4;
    descriptor.kinds = kinds;
    descriptor.kind_count = COUNT_OF(kinds);
    return descriptor;
}

/* --- descriptors --- */

static void expect_bad(pawl_app_descriptor descriptor, const char *message)
{
    struct app_definition definition = { .arena = ARENA_INIT };
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(
        pawl__app_definition_copy(&descriptor, &definition, &error), PAWL_INVALID, &error);
    assert_message(&error, message);
    pawl__app_definition_done(&definition);
}

#define EXPECT_BAD(change, message)                \
    do {                                           \
        pawl_app_descriptor descriptor = sample(); \
        change;                                    \
        expect_bad(descriptor, message);           \
    } while (0)

static void expect_bad_sequences(const pawl_app_sequence *a,
                                 const pawl_app_sequence *b,
                                 const char *message)
{
    pawl_app_sequence both[2] = { *a, *b };
    pawl_app_kind one[] = { { sizeof(pawl_app_kind), "shop", 1, both, 2 } };
    pawl_app_kind two[] = { { sizeof(pawl_app_kind), "shop", 1, &both[0], 1 },
                            { sizeof(pawl_app_kind), "office", 2, &both[1], 1 } };

    EXPECT_BAD(((void)(descriptor.kinds = one), descriptor.kind_count = 1), message);
    if (strstr(message, "twice") == NULL) {
        EXPECT_BAD(((void)(descriptor.kinds = two), descriptor.kind_count = 2), message);
    }
}

static void test_a_bad_descriptor_is_refused_by_name(void **state)
{
    static const pawl_app_kind twice[] = { { sizeof(pawl_app_kind), "shop", 1, NULL, 0 },
                                           { sizeof(pawl_app_kind), "shop", 2, NULL, 0 } };
    static const pawl_app_kind same_id[] = { { sizeof(pawl_app_kind), "shop", 1, NULL, 0 },
                                             { sizeof(pawl_app_kind), "cafe", 1, NULL, 0 } };
    static const pawl_app_kind unnamed[] = { { sizeof(pawl_app_kind), "", 1, NULL, 0 } };
    static const pawl_app_sequence good = { sizeof(pawl_app_sequence), "good", 30, 1 };
    char name[PAWL_APP_NAME_BYTES_MAX + 2];

    (void)state;
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    EXPECT_BAD(descriptor.size = 1, "_INIT");
    EXPECT_BAD(descriptor.name = NULL, "the application's name: empty");
    EXPECT_BAD(descriptor.name = "Orders", "'Orders' may contain only a-z");
    EXPECT_BAD(descriptor.name = "a/b", "may contain only a-z");
    EXPECT_BAD(descriptor.name = name, "has 129 bytes, the limit is 128");
    EXPECT_BAD(descriptor.id = 0, "id is 0");
    EXPECT_BAD(descriptor.partitions = 0, "0 partitions are not in 1-256");
    EXPECT_BAD(descriptor.partitions = 257, "257 partitions");
    EXPECT_BAD(descriptor.trust = (pawl_app_trust)3, "trust level 3 is not in 0-2");
    EXPECT_BAD(descriptor.kind_count = 0, "0 kinds of workspaces");
    EXPECT_BAD(((void)(descriptor.kinds = twice), descriptor.kind_count = 2), "kind 'shop' (2)");
    EXPECT_BAD(((void)(descriptor.kinds = same_id), descriptor.kind_count = 2), "twice");
    EXPECT_BAD(((void)(descriptor.kinds = unnamed), descriptor.kind_count = 1), "kind's name");
    expect_bad_sequences(
        &good, &(pawl_app_sequence){ sizeof(pawl_app_sequence), "x", 15, 1 }, "id 15 is reserved");
    expect_bad_sequences(
        &good, &(pawl_app_sequence){ sizeof(pawl_app_sequence), "x", 16, 0 }, "initial value 0");
    expect_bad_sequences(&good,
                         &(pawl_app_sequence){ sizeof(pawl_app_sequence), "c_record", 16, 1 },
                         "every kind has one");
    expect_bad_sequences(&good,
                         &(pawl_app_sequence){ sizeof(pawl_app_sequence), "ow_record", 16, 1 },
                         "every kind has one");
    expect_bad_sequences(&good,
                         &(pawl_app_sequence){ sizeof(pawl_app_sequence), "wlog_offset", 16, 1 },
                         "every kind has one");
    expect_bad_sequences(&good,
                         &(pawl_app_sequence){ sizeof(pawl_app_sequence), "x", 16, UINT64_MAX },
                         "initial value 18446744073709551615");
    expect_bad_sequences(&good, &good, "twice");
    expect_bad_sequences(
        &good, &(pawl_app_sequence){ sizeof(pawl_app_sequence), "good", 31, 1 }, "good");
}

static void test_a_sequence_is_the_same_in_all_kinds(void **state)
{
    static const pawl_app_sequence a = { sizeof(pawl_app_sequence), "invoice", 16, 1 };
    static const pawl_app_sequence b = { sizeof(pawl_app_sequence), "invoice", 16, 2 };
    static const pawl_app_kind two[] = { { sizeof(pawl_app_kind), "shop", 1, &a, 1 },
                                         { sizeof(pawl_app_kind), "office", 2, &b, 1 } };

    (void)state;
    EXPECT_BAD(((void)(descriptor.kinds = two), descriptor.kind_count = 2),
               "must have the same id, name and initial value");
}

static void test_a_definition_comes_back_from_its_json(void **state)
{
    struct app_definition a = { .arena = ARENA_INIT };
    struct app_definition b = { .arena = ARENA_INIT };
    AUTO(pawl__buf_done) struct pawl__buf one = BUF_INIT(4096);
    AUTO(pawl__buf_done) struct pawl__buf other = BUF_INIT(4096);
    pawl_app_descriptor descriptor = sample();
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    descriptor.trust = PAWL_APP_TRUST_2;
    assert_ok(pawl__app_definition_copy(&descriptor, &a, &error), &error);
    assert_ok(pawl__app_definition_write(&a, &one, &error), &error);
    assert_ok(pawl__app_definition_read(pawl__buf_view(&one), &b, &error), &error);
    assert_ok(pawl__app_definition_write(&b, &other, &error), &error);
    assert_string_equal(one.data, other.data);
    assert_string_equal(
        one.data,
        "{\"id\":1,\"kinds\":[{\"id\":1,\"name\":\"office\",\"sequences\":[]},{\"id\":2,\"name\":"
        "\"shop\",\"sequences\":[{\"id\":16,\"initial\":1,\"name\":\"ticket\"},{\"id\":17,"
        "\"initial\":1000,\"name\":\"invoice\"}]}],\"name\":\"orders\",\"partitions\":4,\"trust\":"
        "2}");
    assert_int_equal(b.descriptor.trust, PAWL_APP_TRUST_2);
    assert_int_equal(pawl__app_initial_of(&b.descriptor, 17), 1000);
    assert_int_equal(pawl__app_initial_of(&b.descriptor, PAWL_APP_SEQ_OW_RECORD), 200001);
    assert_int_equal(pawl__app_initial_of(&b.descriptor, 18), 0);
    pawl__app_definition_done(&a);
    pawl__app_definition_done(&b);
}

static void test_json_that_is_no_descriptor_is_refused(void **state)
{
    static const char *const texts[][2] = {
        { "", "" },
        { "[]", "expected an object" },
        { "{}", "name: missing" },
        { "{\"name\": \"a\", \"id\": 1, \"kinds\": 5}", "kinds" },
        { "{\"name\": \"a\", \"id\": 1, \"kinds\": [], \"more\": 1}", "more" },
        { "{\"name\": \"a\", \"id\": 1, \"trust\": 3, \"kinds\": []}", "trust" },
        { "{\"name\": \"a\", \"id\": 1, \"kinds\": [{\"name\": \"k\"}]}", "kinds[0].id: missing" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct app_definition definition = { .arena = ARENA_INIT };
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(pawl__app_definition_read(pawl_view_of(texts[i][0]), &definition, &error),
                      PAWL_INVALID,
                      &error);
        assert_message(&error, texts[i][1]);
        pawl__app_definition_done(&definition);
    }
}

/* --- commands --- */

static pawl_status make(const pawl_app_command *command,
                        struct app_request *request,
                        pawl_error *reterr)
{
    static pawl_app_descriptor descriptor;

    descriptor = sample();
    return pawl__app_request_make(&descriptor, command, request, reterr);
}

static void expect_refused(pawl_app_command command, pawl_status expected, const char *message)
{
    struct app_request request = { .arena = ARENA_INIT };
    pawl_error error = PAWL_ERROR_INIT;

    command.workspace = command.workspace == 0 ? 7 : command.workspace;
    command.kind = command.kind.len == 0 ? V("shop") : command.kind;
    assert_status(make(&command, &request, &error), expected, &error);
    assert_message(&error, message);
    pawl__app_request_done(&request);
}

static void expect_create_refused(pawl_app_create create, const char *message)
{
    create.table = create.table.len == 0 ? V("order") : create.table;
    create.data = create.data.len == 0 ? V("{}") : create.data;
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .creates = &create,
                                       .create_count = 1 },
                   PAWL_INVALID,
                   message);
}

static void test_a_record_that_cannot_be_created_is_refused_by_name(void **state)
{
    char table[PAWL_APP_NAME_BYTES_MAX + 1];

    (void)state;
    memset(table, 't', sizeof(table));
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = (pawl_app_class)9,
                                             .raw_id = 1 },
                          "creates[0]: 9 is no class");
    expect_create_refused(
        (pawl_app_create){ .size = sizeof(pawl_app_create), .record_class = PAWL_APP_C_RECORD },
        "raw id 0 is not in 1-65535");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_O_RECORD,
                                             .raw_id = 65536 },
                          "raw id 65536");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_O_RECORD,
                                             .raw_id = 1,
                                             .singleton = 65536 },
                          "gets its id from a sequence");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_SINGLETON,
                                             .singleton = 66048 },
                          "singleton id 66048 is not in 65536-66047");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .table = { table, sizeof(table) } },
                          "table has 129 bytes");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .table = V("a\nb") },
                          "control character");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V("{\"a\":}") },
                          "creates[0]: data");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V(" [1]") },
                          "no JSON object");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V("{\"a\": {\"$raw\": 2}}") },
                          "no record with the raw id 2");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V("{\"a\": {\"$raw\": 1, \"b\": 2}}") },
                          "has nothing else in it");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V("{\"a\": {\"$raw\": \"1\"}}") },
                          "wants a number");
    expect_create_refused((pawl_app_create){ .size = sizeof(pawl_app_create),
                                             .record_class = PAWL_APP_C_RECORD,
                                             .raw_id = 1,
                                             .data = V("{\"$raw\": 1}") },
                          "a reference alone");
}

static void test_a_command_that_cannot_be_is_refused_by_name(void **state)
{
    const pawl_app_create two[] = {
        { sizeof(pawl_app_create), PAWL_APP_C_RECORD, 5, 0, V("a"), V("{}") },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 5, 0, V("b"), V("{}") },
    };
    const pawl_app_create singletons[] = {
        { sizeof(pawl_app_create), PAWL_APP_SINGLETON, 1, 65536, V("a"), V("{}") },
        { sizeof(pawl_app_create), PAWL_APP_SINGLETON, 0, 65537, V("b"), V("{}") },
        { sizeof(pawl_app_create), PAWL_APP_SINGLETON, 2, 65536, V("c"), V("{}") },
    };
    const pawl_app_create unknown = { sizeof(pawl_app_create),
                                      PAWL_APP_C_RECORD,
                                      5,
                                      0,
                                      V("a"),
                                      V("{\"n\": {\"$next\": \"nothing\"}}") };
    const pawl_app_update raw = { sizeof(pawl_app_update), 65535, V("{}") };
    const pawl_app_update between = { sizeof(pawl_app_update), 200000, V("{}") };
    const pawl_app_update again[] = { { sizeof(pawl_app_update), 200001, V("{}") },
                                      { sizeof(pawl_app_update), 200001, V("{}") } };
    char key[PAWL_APP_KEY_BYTES_MAX + 1] = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    struct app_request request = { .arena = ARENA_INIT };

    (void)state;
    assert_status(make(&(pawl_app_command){ .size = sizeof(pawl_app_command), .kind = V("shop") },
                       &request,
                       &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "0 is no workspace");
    pawl__app_request_done(&request);
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command), .kind = V("cafe") },
                   PAWL_INVALID,
                   "of kind 'cafe'");
    expect_refused(
        (pawl_app_command){ .size = sizeof(pawl_app_command), .key = { key, sizeof(key) } },
        PAWL_INVALID,
        "key has 256 bytes, the limit is 255");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command), .key = V("a\xFF") },
                   PAWL_INVALID,
                   "key is not UTF-8");
    expect_refused(
        (pawl_app_command){ .size = sizeof(pawl_app_command), .creates = two, .create_count = 2 },
        PAWL_INVALID,
        "two records of the command have the raw id 5");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .creates = singletons,
                                       .create_count = 3 },
                   PAWL_INVALID,
                   "creates singleton 65536 twice");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .creates = &unknown,
                                       .create_count = 1 },
                   PAWL_INVALID,
                   "have no sequence 'nothing'");
    expect_refused(
        (pawl_app_command){ .size = sizeof(pawl_app_command), .updates = &raw, .update_count = 1 },
        PAWL_INVALID,
        "updates[0]: record id 65535 is reserved");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .updates = &between,
                                       .update_count = 1 },
                   PAWL_INVALID,
                   "record id 200000 is reserved");
    expect_refused(
        (pawl_app_command){ .size = sizeof(pawl_app_command), .updates = again, .update_count = 2 },
        PAWL_INVALID,
        "updates record 200001 twice");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .create_count = PAWL_APP_RECORDS_MAX + 1 },
                   PAWL_INVALID,
                   "more than 1000 records");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .workspace = PAWL_APP_WORKSPACE_MAX + 1 },
                   PAWL_INVALID,
                   "workspace 9223372036854775808 is over the last one, 9223372036854775807");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command), .create_count = 1 },
                   PAWL_INVALID,
                   "command->creates: is NULL");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .creates = two,
                                       .create_count = 1,
                                       .update_count = 1 },
                   PAWL_INVALID,
                   "command->updates: is NULL");
    expect_refused((pawl_app_command){ .size = sizeof(pawl_app_command),
                                       .create_count = SIZE_MAX,
                                       .update_count = 2 },
                   PAWL_INVALID,
                   "more than 1000 records");
}

static void test_data_over_the_limit_is_refused_and_at_the_limit_taken(void **state)
{
    size_t len = PAWL_APP_COMMAND_BYTES_MAX + 1;
    char *data = malloc(len);
    pawl_app_create create = {
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("a"), { data, len }
    };
    pawl_app_command command = { .size = sizeof(pawl_app_command),
                                 .workspace = 1,
                                 .kind = V("shop"),
                                 .creates = &create,
                                 .create_count = 1 };
    struct app_request request = { .arena = ARENA_INIT };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_non_null(data);
    memset(data, ' ', len);
    data[0] = '{';
    data[1] = '}';
    assert_status(make(&command, &request, &error), PAWL_INVALID, &error);
    assert_message(&error, "data is over 4194304 bytes");
    pawl__app_request_done(&request);
    create.data.len--;
    assert_ok(make(&command, &request, &error), &error);
    pawl__app_request_done(&request);
    free(data);
}

static void test_numbers_fill_the_holes_of_the_data(void **state)
{
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create),
          PAWL_APP_C_RECORD,
          9,
          0,
          V("order"),
          V("{\"no\": {\"$next\": \"invoice\"}, \"x\": 1}") },
        { sizeof(pawl_app_create),
          PAWL_APP_W_RECORD,
          3,
          0,
          V("line"),
          V("{\"of\": {\"$raw\": 9}, \"list\": [{\"\\u0024raw\": 3}, {\"$next\": \"ticket\"}, "
            "\"$raw\", {}]}") },
        { sizeof(pawl_app_create),
          PAWL_APP_SINGLETON,
          0,
          65536,
          V("shop"),
          V("{\"as\": \"it is\",  \"b\":[ ]}") },
    };
    static const uint64_t ids[] = { 1099511627776, 200001, 65536 };
    static const pawl_app_number numbers[] = { { 17, 1000 }, { 16, 1 } };
    pawl_app_command command = { .size = sizeof(pawl_app_command),
                                 .workspace = 1,
                                 .kind = V("shop"),
                                 .creates = creates,
                                 .create_count = 3 };
    struct app_request request = { .arena = ARENA_INIT };
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(make(&command, &request, &error), &error);
    assert_int_equal(request.raw_count, 2);
    assert_int_equal(request.next_count, 2);
    assert_int_equal(pawl__app_text_fill(&request.creates[0].data, ids, numbers, &buf), 1);
    assert_string_equal(buf.data, "{\"no\":1000,\"x\":1}");
    pawl__buf_clear(&buf);
    assert_int_equal(pawl__app_text_fill(&request.creates[1].data, ids, &numbers[1], &buf), 1);
    assert_string_equal(buf.data, "{\"of\":1099511627776,\"list\":[200001,1,\"$raw\",{}]}");
    pawl__buf_clear(&buf);
    assert_int_equal(pawl__app_text_fill(&request.creates[2].data, ids, NULL, &buf), 0);
    assert_string_equal(buf.data, "{\"as\": \"it is\",  \"b\":[ ]}");
    pawl__app_request_done(&request);
}

static void hash_of(const char *table, const char *data, struct pawl__sha256 *ret_hash)
{
    pawl_app_create create = { sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0,
                               pawl_view_of(table),     pawl_view_of(data) };
    pawl_app_command command = { .size = sizeof(pawl_app_command),
                                 .workspace = 1,
                                 .kind = V("shop"),
                                 .key = V("k"),
                                 .creates = &create,
                                 .create_count = 1 };
    struct app_request request = { .arena = ARENA_INIT };
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(make(&command, &request, &error), &error);
    *ret_hash = request.hash;
    pawl__app_request_done(&request);
}

static void test_equal_commands_have_equal_hashes_and_others_not(void **state)
{
    struct pawl__sha256 a;
    struct pawl__sha256 b;

    (void)state;
    hash_of("t", "{\"a\": 1, \"b\": 2}", &a);
    hash_of("t", "{\"b\":2,\"a\":1}", &b);
    assert_true(pawl__sha256_equal(&a, &b));
    hash_of("t", "{\"b\":2,\"a\":2}", &b);
    assert_false(pawl__sha256_equal(&a, &b));
    hash_of("u", "{\"b\":2,\"a\":1}", &b);
    assert_false(pawl__sha256_equal(&a, &b));
}

static void test_a_command_survives_every_failed_allocation(void **state)
{
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create),
          PAWL_APP_C_RECORD,
          9,
          0,
          V("order"),
          V("{\"no\": {\"$next\": \"invoice\"}}") },
        { sizeof(pawl_app_create),
          PAWL_APP_W_RECORD,
          3,
          0,
          V("line"),
          V("{\"of\": [{\"$raw\": 9}]}") },
    };
    const pawl_app_update update = { sizeof(pawl_app_update), 200001, V("{}") };
    pawl_app_command command = { .size = sizeof(pawl_app_command),
                                 .workspace = 1,
                                 .kind = V("shop"),
                                 .key = V("k"),
                                 .creates = creates,
                                 .create_count = 2,
                                 .updates = &update,
                                 .update_count = 1 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    FAULT_WALK (walk) {
        struct app_request request = { .arena = ARENA_INIT };
        pawl_status status = make(&command, &request, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__app_request_done(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bad_descriptor_is_refused_by_name),
        cmocka_unit_test(test_a_sequence_is_the_same_in_all_kinds),
        cmocka_unit_test(test_a_definition_comes_back_from_its_json),
        cmocka_unit_test(test_json_that_is_no_descriptor_is_refused),
        cmocka_unit_test(test_a_record_that_cannot_be_created_is_refused_by_name),
        cmocka_unit_test(test_a_command_that_cannot_be_is_refused_by_name),
        cmocka_unit_test(test_data_over_the_limit_is_refused_and_at_the_limit_taken),
        cmocka_unit_test(test_numbers_fill_the_holes_of_the_data),
        cmocka_unit_test(test_equal_commands_have_equal_hashes_and_others_not),
        cmocka_unit_test(test_a_command_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
