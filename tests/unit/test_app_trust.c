/* The trust levels of the original design, by its names, on a store that somebody has written to: what
 * the next record, the next event of the PLog and the next one of the WLog will use is taken already.
 * Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdlib.h>

#include "base/core/macros.h"

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

/* --- the numbers of the application's own sequences --- */

static struct app_key invoice_key(const struct app_fixture *f)
{
    return pawl__app_key_seq(f->descriptor.id, PARTITION, WORKSPACE, APP_INVOICE);
}

static void lower(struct app_fixture *f)
{
    app_sabotage_number(f, APP_SEQ, invoice_key(f), 1000, 2);
}

static void delete_row(struct app_fixture *f)
{
    app_delete(f, APP_SEQ, invoice_key(f));
}

static void flip_a_bit(struct app_fixture *f)
{
    char bytes[APP_STORED_BYTES];
    struct app_key key = invoice_key(f);
    const struct app_stored stored = { 1002, 4 };

    pawl__app_stored_encode(&key, &stored, bytes);
    bytes[7] ^= 1;
    app_sabotage(f, APP_SEQ, key, (pawl_view){ bytes, sizeof(bytes) });
}

static void shorten(struct app_fixture *f)
{
    app_sabotage(f, APP_SEQ, invoice_key(f), (pawl_view){ "\0\0\0\0\0\0\x03\xEA", 8 });
}

/* The row of another sequence is no row of this one. */
static void copy_from_another(struct app_fixture *f)
{
    char bytes[APP_STORED_BYTES];
    struct app_key other = pawl__app_key_seq(f->descriptor.id, PARTITION, NEIGHBOUR, APP_INVOICE);
    const struct app_stored stored = { 1000, 5 };

    pawl__app_stored_encode(&other, &stored, bytes);
    app_sabotage(f, APP_SEQ, invoice_key(f), (pawl_view){ bytes, sizeof(bytes) });
}

/* Three invoices; what is stored of the sequence is edited and read again; then a fourth one. */
static pawl_status invoice_after(struct app_fixture *f,
                                 pawl_app_trust trust,
                                 void (*edit)(struct app_fixture *f))
{
    f->descriptor.trust = trust;
    app_forget_quickly(f);
    app_open(f);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(app_invoice(f, WORKSPACE), 1000 + i);
    }
    assert_int_equal(app_invoice(f, NEIGHBOUR), 1000); /* in place of the others in the cache */
    app_await_written(f, PARTITION);
    edit(f);
    return app_try_invoice(f, WORKSPACE);
}

static void expect_refused(struct app_fixture *f,
                           pawl_app_trust trust,
                           void (*edit)(struct app_fixture *f),
                           pawl_status status,
                           const char *message)
{
    assert_status(invoice_after(f, trust, edit), status, &f->error);
    assert_message(&f->error, message);
    assert_message(&f->error, "pawl seq rebuild");
    assert_status(app_try_invoice(f, WORKSPACE), status, &f->error);
    assert_int_equal(app_invoice(f, NEIGHBOUR), 1001); /* nobody else suffers */
}

#define SECOND_USED \
    "number 1001 of sequence 'invoice' of workspace 7 is used already, at PLog offset 2"
#define FIRST_USED \
    "number 1000 of sequence 'invoice' of workspace 7 is used already, at PLog offset 1"

static void test_SequencesTrustLevel0_gives_no_number_twice_from_a_lowered_row(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_0, lower, PAWL_CONFLICT, SECOND_USED);
}

static void test_SequencesTrustLevel0_gives_no_number_twice_from_a_deleted_row(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_0, delete_row, PAWL_CONFLICT, FIRST_USED);
}

static void test_SequencesTrustLevel1_gives_no_number_twice_from_a_lowered_row(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_1, lower, PAWL_CONFLICT, SECOND_USED);
}

static void test_SequencesTrustLevel1_gives_no_number_twice_from_a_deleted_row(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_1, delete_row, PAWL_CONFLICT, FIRST_USED);
}

/* By definition: level 2 believes what is stored. */
static void test_SequencesTrustLevel2_believes_a_lowered_row(void **state)
{
    struct app_fixture *f = *state;

    assert_ok(invoice_after(f, PAWL_APP_TRUST_2, lower), &f->error);
    assert_int_equal(f->response->numbers[0].number, 1001);
}

#define DAMAGED "sequence 'invoice' of workspace 7: what is stored is"

static void test_a_stored_number_with_a_flipped_bit_is_not_used(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_2, flip_a_bit, PAWL_CORRUPT, DAMAGED " damaged");
}

static void test_a_stored_number_without_a_checksum_is_not_used(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_2, shorten, PAWL_CORRUPT, DAMAGED " too short");
}

static void test_a_stored_number_of_another_sequence_is_not_used(void **state)
{
    expect_refused(*state, PAWL_APP_TRUST_2, copy_from_another, PAWL_CORRUPT, DAMAGED " damaged");
}

/* One bad row must not keep the others from being stored, and the log knows better. */
static void test_a_damaged_number_is_stored_anew_with_the_next_one(void **state)
{
    struct app_fixture *f = *state;

    f->options.flush_interval_ms = 1;
    f->descriptor.trust = PAWL_APP_TRUST_2;
    app_open(f);
    app_invoice(f, WORKSPACE);
    app_await_written(f, PARTITION);
    flip_a_bit(f);
    assert_int_equal(app_invoice(f, WORKSPACE), 1001); /* from memory */
    app_await_written(f, PARTITION);
    struct app_key key = invoice_key(f);
    struct app_stored stored;
    assert_ok(
        pawl__app_seq_stored(&f->app->partitions[PARTITION].seq, APP_SEQ, &key, &stored, &f->error),
        &f->error);
    assert_int_equal(stored.number, 1001);
    assert_int_equal(stored.offset, 3);
}

/* --- an older format --- */

/* As a version before this one left it. */
static void make_old(struct app_fixture *f)
{
    shorten(f);
    app_sabotage(f,
                 APP_SEQ,
                 pawl__app_key_seq(1, PARTITION, WORKSPACE, PAWL_APP_SEQ_WLOG_OFFSET),
                 (pawl_view){ "\0\0\0\0\0\0\0\x03", 8 });
    app_sabotage(
        f, APP_OFFSETS, pawl__app_key_offset(1, PARTITION), (pawl_view){ "\0\0\0\0\0\0\0\x05", 8 });
    for (uint64_t i = 0; i < 3; i++) {
        app_delete(f, APP_NUMBERS, pawl__app_key_used(1, WORKSPACE, APP_INVOICE, 1000 + i));
    }
    app_delete(f, APP_NUMBERS, pawl__app_key_used(1, NEIGHBOUR, APP_INVOICE, 1000));
    app_delete(f, APP_META, pawl__app_key_format(1));
    app_remove_anchor(f);
    f->app->anchor_writer.started = false; /* which would write it again */
    pawl_app_close(STEAL(f->app), 0, NULL);
}

static void expect_number_key(struct app_fixture *f, uint64_t number, bool expected)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_used(1, WORKSPACE, APP_INVOICE, number);
    struct app_value value;

    assert_ok(pawl__app_store_get(
                  f->app->store, APP_NUMBERS, pawl__app_key_view(&key), &arena, &value, &f->error),
              &f->error);
    assert_int_equal(value.found, expected);
}

static void keep(struct app_fixture *f)
{
    (void)f;
}

static void test_an_older_format_is_brought_up_to_date_and_its_numbers_are_keys(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return; /* none is older than its handle */
    }
    f->descriptor.partitions = 2;
    assert_ok(invoice_after(f, PAWL_APP_TRUST_1, keep), &f->error);
    app_reopen(f);
    app_await_written(f, PARTITION);
    make_old(f);
    f->options.read_only = true; /* which takes it as it is */
    assert_ok(pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error), &f->error);
    expect_number_key(f, 1001, false);
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
    assert_ok(pawl_app_verify_sequence(
                  f->app, WORKSPACE, APP_INVOICE, NULL, NULL, NULL, &certificate, &f->error),
              &f->error);
    f->options.read_only = false;
    app_reopen(f);
    expect_number_key(f, 1000, true);
    expect_number_key(f, 1001, true);
    expect_number_key(f, 1003, true);
    struct app_key key = invoice_key(f);
    struct app_stored stored;
    assert_ok(
        pawl__app_seq_stored(&f->app->partitions[PARTITION].seq, APP_SEQ, &key, &stored, &f->error),
        &f->error);
    assert_true(stored.number >= 1002 && stored.offset >= 5); /* the log is read from there on */
    assert_int_equal(app_invoice(f, WORKSPACE), 1004);
    app_await_written(f, PARTITION);
    shorten(f); /* from now on it is damage */
    app_reopen(f);
    assert_status(app_try_invoice(f, WORKSPACE), PAWL_CORRUPT, &f->error);
}

static void test_a_newer_format_is_refused(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    app_open(f);
    app_sabotage(f, APP_META, pawl__app_key_format(1), pawl_view_of("3"));
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error),
                  PAWL_UNSUPPORTED,
                  &f->error);
    assert_message(&f->error, "format 3, this is made for 2");
}

/* An update is no new number: whatever the level, it overwrites. */
static void test_updates_have_nothing_to_do_with_trust(void **state)
{
    struct app_fixture *f = *state;

    f->descriptor.trust = PAWL_APP_TRUST_0;
    app_open(f);
    uint64_t id = app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    const pawl_app_update update = { .size = sizeof(pawl_app_update),
                                     .id = id,
                                     .data = pawl_view_of("{\"a\":1}") };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = WORKSPACE,
                                       .kind = pawl_view_of("shop"),
                                       .updates = &update,
                                       .update_count = 1 };
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
    pawl_app_close(f->app, 0, NULL);
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
        APP_TEST(test_SequencesTrustLevel0_gives_no_number_twice_from_a_lowered_row),
        APP_TEST(test_SequencesTrustLevel0_gives_no_number_twice_from_a_deleted_row),
        APP_TEST(test_SequencesTrustLevel1_gives_no_number_twice_from_a_lowered_row),
        APP_TEST(test_SequencesTrustLevel1_gives_no_number_twice_from_a_deleted_row),
        APP_TEST(test_SequencesTrustLevel2_believes_a_lowered_row),
        APP_TEST(test_a_stored_number_with_a_flipped_bit_is_not_used),
        APP_TEST(test_a_stored_number_without_a_checksum_is_not_used),
        APP_TEST(test_a_stored_number_of_another_sequence_is_not_used),
        APP_TEST(test_a_damaged_number_is_stored_anew_with_the_next_one),
        APP_TEST(test_an_older_format_is_brought_up_to_date_and_its_numbers_are_keys),
        APP_TEST(test_a_newer_format_is_refused),
        APP_TEST(test_updates_have_nothing_to_do_with_trust),
        APP_TEST(test_the_last_event_is_applied_again_at_the_start_whatever_the_level),
        APP_TEST(test_a_damaged_last_event_does_not_open),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
