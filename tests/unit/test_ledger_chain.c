/* The hash chain against hashes that another program computed from the format's description. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "base/core/sha256.h"
#include "ledger/core/chain.h"

static pawl_event first_event(void)
{
    return (pawl_event){
        .size = sizeof(pawl_event),
        .offset = 1,
        .id = { "a", 1 },
        .run_id = { "r", 1 },
        .kind = { "k", 1 },
        .actor = { "x", 1 },
        .payload = { "{}", 2 },
        .schema_version = 1,
    };
}

static void assert_head(const pawl_ledger_head *head, uint64_t offset, const char *hex)
{
    struct pawl__sha256 hash;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sha256_parse(pawl_view_of(hex), &hash, &error), &error);
    assert_int_equal(head->offset, offset);
    assert_true(pawl__ledger_chain_hash_equal(head->hash, hash.bytes));
}

static void extend(pawl_ledger_head *head, const pawl_event *event)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__ledger_chain_extend(head, event, &error), &error);
}

static void test_hashes_are_those_of_the_format(void **state)
{
    (void)state;
    pawl_ledger_head head = { 0 };
    pawl_event event = first_event();

    extend(&head, &event);
    assert_head(&head, 1, "703170f10178b2a70ee8c3766e71938926ad7f20512a33749d32e86303703ea4");

    event = (pawl_event){
        .size = sizeof(pawl_event),
        .offset = 2,
        .turn = INT64_MAX,
        .created_at_us = INT64_C(-62135596800000000),
        .schema_version = INT32_MAX,
        .id = pawl_view_of("\xC3\xA4\xF0\x9F\x90\x93"),
        .run_id = pawl_view_of("run 1"),
        .kind = pawl_view_of("say"),
        .actor = pawl_view_of("ada"),
        .payload = pawl_view_of(" {\"n\" : [1, 2.50, null]}\n"),
    };
    extend(&head, &event);
    assert_head(&head, 2, "be0e0e4546c59f55d42b657806875de918c8c1959d499db9b328e84248a5464f");

    static char names[4][PAWL_LEDGER_NAME_BYTES_MAX];
    static char payload[70002];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        memset(names[i], "irka"[i], sizeof(names[i]));
    }
    memset(payload, 'x', sizeof(payload));
    payload[0] = payload[sizeof(payload) - 1] = '"';
    event = (pawl_event){
        .size = sizeof(pawl_event),
        .offset = 3,
        .turn = 7,
        .created_at_us = INT64_C(1769682030123456),
        .schema_version = 3,
        .id = { names[0], sizeof(names[0]) },
        .run_id = { names[1], sizeof(names[1]) },
        .kind = { names[2], sizeof(names[2]) },
        .actor = { names[3], sizeof(names[3]) },
        .payload = { payload, sizeof(payload) },
    };
    extend(&head, &event);
    assert_head(&head, 3, "6484b6b3d7ad3c7ed5c73b4bdabde6c93fb19c0f03b092892ebf1b84c171d664");
}

static void test_every_field_is_in_the_hash(void **state)
{
    (void)state;
    pawl_event events[12];
    pawl_ledger_head heads[COUNT_OF(events)] = { { 0 } };

    for (size_t i = 0; i < COUNT_OF(events); i++) {
        events[i] = first_event();
    }
    events[1].id = pawl_view_of("b");
    events[2].run_id = pawl_view_of("q");
    events[3].kind = pawl_view_of("l");
    events[4].actor = pawl_view_of("y");
    events[5].payload = pawl_view_of("[]");
    events[6].payload = pawl_view_of("{} ");
    events[7].turn = 1;
    events[8].created_at_us = 1;
    events[9].schema_version = 2;
    events[10].id = pawl_view_of("ar"); /* a byte moves from one field to the next */
    events[10].run_id = pawl_view_of("");
    heads[11].hash[31] = 1; /* another past */
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        extend(&heads[i], &events[i]);
        for (size_t j = 0; j < i; j++) {
            assert_false(pawl__ledger_chain_hash_equal(heads[i].hash, heads[j].hash));
        }
    }
    /* What an event carries does not count: only what it says. */
    pawl_ledger_head again = { 0 };
    events[0].hash[0] = 77;
    extend(&again, &events[0]);
    assert_memory_equal(&again, &heads[0], sizeof(again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_are_those_of_the_format),
        cmocka_unit_test(test_every_field_is_in_the_hash),
    };

    return cmocka_run_group_tests_name("ledger_chain", tests, NULL, NULL);
}
