/* The trust levels of the original design, by its names, on a store that somebody has written to: what
 * the next record, the next event of the PLog and the next one of the WLog will use is taken already.
 * Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdlib.h>

#include "base/macros.h"

enum { WORKSPACE = 7, NEIGHBOUR = 9, PARTITION = 1 }; /* 7 and 9 modulo 2 */
enum place { RECORD, PLOG, WLOG };

static const pawl_view junk = { "\x01", 1 };

static struct app_key next_key(const struct app_fixture *f, enum place place, uint64_t id)
{
    switch (place) {
    case RECORD:
        return pawl__app_key_record(f->descriptor.id, WORKSPACE, id + 1);
    case PLOG:
        return pawl__app_key_plog(f->descriptor.id, PARTITION, f->response->plog_offset + 1);
    default:
        return pawl__app_key_wlog(f->descriptor.id, WORKSPACE, f->response->wlog_offset + 1);
    }
}

static bool is_junk(struct app_fixture *f, enum app_family family, const struct app_key *key)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_value value;

    assert_ok(pawl__app_store_get(
                  f->app->store, family, pawl__app_key_view(key), &arena, &value, &f->error),
              &f->error);
    assert_true(value.found);
    return pawl__view_equal(value.bytes, junk);
}

/* Creates a record, sabotages what the next one will use, creates the next one. */
static void walk(struct app_fixture *f,
                 enum place place,
                 pawl_app_class record_class,
                 const char *refused /* the message; NULL: it is overwritten */)
{
    static const enum app_family families[] = { APP_RECORDS, APP_PLOG, APP_WLOG };
    uint64_t id = app_create(f, WORKSPACE, record_class);
    struct app_key key = next_key(f, place, id);
    uint64_t offset = f->response->plog_offset;

    app_sabotage(f, families[place], key, junk);
    pawl_status status = app_try_create(f, WORKSPACE, record_class, NULL);
    if (refused == NULL) {
        assert_ok(status, &f->error);
        assert_true(f->response->ids[0].id == id + 1);
        assert_int_equal(f->response->plog_offset, offset + 1);
        assert_false(is_junk(f, families[place], &key));
        return;
    }
    assert_status(status, PAWL_CONFLICT, &f->error);
    assert_message(&f->error, refused);
    assert_true(is_junk(f, families[place], &key));
}

/* Nothing of the refused command is there, and it is refused again; other workspaces go on. */
static void expect_nothing_applied(struct app_fixture *f, uint64_t id)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key keys[] = { pawl__app_key_record(f->descriptor.id, WORKSPACE, id + 1),
                              pawl__app_key_plog(f->descriptor.id, PARTITION, 2) };
    static const enum app_family families[] = { APP_RECORDS, APP_PLOG };
    struct app_value value;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_ok(pawl__app_store_get(f->app->store,
                                      families[i],
                                      pawl__app_key_view(&keys[i]),
                                      &arena,
                                      &value,
                                      &f->error),
                  &f->error);
        assert_true(!value.found || pawl__view_equal(value.bytes, junk));
    }
    assert_status(app_try_create(f, WORKSPACE, PAWL_APP_W_RECORD, NULL), PAWL_CONFLICT, &f->error);
    assert_ok(app_try_create(f, NEIGHBOUR, PAWL_APP_W_RECORD, NULL), &f->error);
    assert_int_equal(f->response->plog_offset, 2);
    assert_int_equal(f->response->wlog_offset, 1);
}

/* A log with something in it that is no event is for a person to look at. */
static void expect_corrupt_log(struct app_fixture *f)
{
    assert_status(app_try_create(f, NEIGHBOUR, PAWL_APP_W_RECORD, NULL), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset 2 of the PLog of partition 1");
}

#define OW_TAKEN "record 200002 of workspace 7 (application 1) is there already"
#define C_TAKEN "record 1099511627777 of workspace 7 (application 1) is there already"
#define PLOG_TAKEN "offset 2 of the PLog of partition 1 (application 1) is there already"
#define WLOG_TAKEN "offset 2 of the WLog of workspace 7 (application 1) is there already"

static void sabotage(void **state, pawl_app_trust trust, enum place place, const char *refused)
{
    struct app_fixture *f = *state;

    f->descriptor.trust = trust;
    app_open(f);
    walk(f, place, PAWL_APP_W_RECORD, refused);
    if (refused != NULL && place == PLOG) {
        expect_corrupt_log(f);
    } else if (refused != NULL) {
        expect_nothing_applied(f, 200001);
    }
}

static void test_SequencesTrustLevel0_finds_a_taken_record(void **state)
{
    sabotage(state, PAWL_APP_TRUST_0, RECORD, OW_TAKEN);
}

static void test_SequencesTrustLevel0_finds_a_taken_c_record(void **state)
{
    struct app_fixture *f = *state;

    f->descriptor.trust = PAWL_APP_TRUST_0;
    app_open(f);
    walk(f, RECORD, PAWL_APP_C_RECORD, C_TAKEN);
}

static void test_SequencesTrustLevel0_finds_a_taken_plog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_0, PLOG, PLOG_TAKEN);
}

static void test_SequencesTrustLevel0_finds_a_taken_wlog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_0, WLOG, WLOG_TAKEN);
}

static void test_SequencesTrustLevel1_overwrites_a_taken_record(void **state)
{
    sabotage(state, PAWL_APP_TRUST_1, RECORD, NULL);
}

static void test_SequencesTrustLevel1_finds_a_taken_plog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_1, PLOG, PLOG_TAKEN);
}

static void test_SequencesTrustLevel1_finds_a_taken_wlog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_1, WLOG, WLOG_TAKEN);
}

static void test_SequencesTrustLevel2_overwrites_a_taken_record(void **state)
{
    sabotage(state, PAWL_APP_TRUST_2, RECORD, NULL);
}

static void test_SequencesTrustLevel2_overwrites_a_taken_plog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_2, PLOG, NULL);
}

static void test_SequencesTrustLevel2_overwrites_a_taken_wlog_offset(void **state)
{
    sabotage(state, PAWL_APP_TRUST_2, WLOG, NULL);
}

/* An update is no new number: whatever the level, it overwrites. */
static void test_updates_have_nothing_to_do_with_trust(void **state)
{
    struct app_fixture *f = *state;

    f->descriptor.trust = PAWL_APP_TRUST_0;
    app_open(f);
    uint64_t id = app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    const pawl_app_update update = { .id = id, .data = pawl_view_of("{\"a\":1}") };
    const pawl_app_command command = {
        .workspace = WORKSPACE, .kind = pawl_view_of("shop"), .updates = &update, .update_count = 1
    };
    app_exec(f, &command);
    app_assert_text(app_record(f, WORKSPACE, id), "1099511627776 order {\"a\":1}\n");
}

static void test_the_last_event_is_applied_again_at_the_start_whatever_the_level(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return; /* it has no second start */
    }
    f->descriptor.trust = PAWL_APP_TRUST_0;
    app_open(f);
    uint64_t first = app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    assert_ok(app_try_create(f, WORKSPACE, PAWL_APP_C_RECORD, "pay"), &f->error);
    uint64_t last = f->response->ids[0].id;
    app_sabotage(f, APP_RECORDS, pawl__app_key_record(1, WORKSPACE, first), junk);
    app_sabotage(f, APP_RECORDS, pawl__app_key_record(1, WORKSPACE, last), junk);
    app_sabotage(f, APP_WLOG, pawl__app_key_wlog(1, WORKSPACE, 2), junk);
    app_sabotage(f, APP_KEYS, pawl__app_key_idempotency(1, WORKSPACE, pawl_view_of("pay")), junk);
    app_reopen(f);
    app_assert_text(app_record(f, WORKSPACE, last),
                    "1099511627777 order {\"self\":1099511627777}\n");
    app_assert_text(app_wlog(f, WORKSPACE, 2, 0),
                    "p2 w2 of 7: 1099511627777 order {\"self\":1099511627777}\n");
    assert_ok(app_try_create(f, WORKSPACE, PAWL_APP_C_RECORD, "pay"), &f->error);
    assert_true(f->response->duplicate);
    struct app_key key = pawl__app_key_record(1, WORKSPACE, first);
    assert_true(is_junk(f, APP_RECORDS, &key)); /* only the last one is */
}

static void test_a_damaged_last_event_does_not_open(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    app_sabotage(f, APP_PLOG, pawl__app_key_plog(1, PARTITION, 1), junk);
    pawl_app_close(f->app);
    f->app = NULL;
    assert_status(pawl_app_open(f->location, &f->descriptor, &f->options, &f->app, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    assert_message(&f->error, "offset 1 of the PLog of partition 1");
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        APP_TEST(test_SequencesTrustLevel0_finds_a_taken_record),
        APP_TEST(test_SequencesTrustLevel0_finds_a_taken_c_record),
        APP_TEST(test_SequencesTrustLevel0_finds_a_taken_plog_offset),
        APP_TEST(test_SequencesTrustLevel0_finds_a_taken_wlog_offset),
        APP_TEST(test_SequencesTrustLevel1_overwrites_a_taken_record),
        APP_TEST(test_SequencesTrustLevel1_finds_a_taken_plog_offset),
        APP_TEST(test_SequencesTrustLevel1_finds_a_taken_wlog_offset),
        APP_TEST(test_SequencesTrustLevel2_overwrites_a_taken_record),
        APP_TEST(test_SequencesTrustLevel2_overwrites_a_taken_plog_offset),
        APP_TEST(test_SequencesTrustLevel2_overwrites_a_taken_wlog_offset),
        APP_TEST(test_updates_have_nothing_to_do_with_trust),
        APP_TEST(test_the_last_event_is_applied_again_at_the_start_whatever_the_level),
        APP_TEST(test_a_damaged_last_event_does_not_open),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
