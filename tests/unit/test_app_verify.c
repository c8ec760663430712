/* The certificate: gaps and numbers that were used twice are found, in numbers alone and in the log of
 * an application that somebody has changed. */
#include "lib/app_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/verify/gapless.h"
#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/core/random.h"

/* --- numbers alone --- */

/* "1 2 3" into a gapless from 1; what is missing as "4-6 9-9", doubles as "x3". */
static void expect(const char *numbers, const char *expected)
{
    struct app_gapless gapless;
    pawl_error error = PAWL_ERROR_INIT;
    char space[256] = "";
    struct pawl__buf text = BUF_OVER(space);
    char *rest = NULL;

    pawl__app_gapless_init(&gapless, 1);
    for (const char *at = numbers; *at != '\0'; at = rest) {
        uint64_t number = strtoull(at, &rest, 10);
        bool fresh = false;
        assert_ok(pawl__app_gapless_use(&gapless, number, &fresh, &error), &error);
        if (!fresh) {
            pawl__buf_add_format(&text, "x%" PRIu64 " ", number);
        }
    }
    for (size_t i = 0; i < gapless.missing_count; i++) {
        pawl__buf_add_format(
            &text, "%" PRIu64 "-%" PRIu64 " ", gapless.missing[i].first, gapless.missing[i].last);
    }
    assert_string_equal(space, expected);
    pawl__app_gapless_done(&gapless);
}

static void test_gaps_and_doubles_of_numbers_are_found(void **state)
{
    (void)state;
    expect("", "");
    expect("1 2 3", "");
    expect("3", "1-2 ");
    expect("1 5 9", "2-4 6-8 ");
    expect("1 5 9 7", "2-4 6-6 8-8 ");
    expect("1 5 2 4 3", "");
    expect("1 5 2 2", "x2 3-4 ");
    expect("1 1 2 2", "x1 x2 ");
    expect("1 5 4 3 2 6 3", "x3 ");
    expect("0 1", "x0 ");
    expect("18446744073709551615 1", "2-18446744073709551614 ");
}

/* Any order of any numbers, against counting. */
static void test_any_order_gives_what_counting_gives(void **state)
{
    enum { TOP = 40, DRAWS = 60, ROUNDS = 300 };
    struct pawl__prng random = pawl__prng_seeded(5);

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct app_gapless gapless;
        pawl_error error = PAWL_ERROR_INIT;
        int counts[TOP + 1] = { 0 };
        uint64_t top = 0;
        uint64_t missing = 0;
        pawl__app_gapless_init(&gapless, 1);
        for (int i = 0; i < DRAWS; i++) {
            uint64_t number = 1 + pawl__prng_below(&random, TOP);
            bool fresh = false;
            assert_ok(pawl__app_gapless_use(&gapless, number, &fresh, &error), &error);
            assert_int_equal(fresh, counts[number]++ == 0);
            top = MAX(top, number);
        }
        for (size_t i = 0; i < gapless.missing_count; i++) {
            assert_true(i == 0 || gapless.missing[i - 1].last + 1 < gapless.missing[i].first);
            for (uint64_t n = gapless.missing[i].first; n <= gapless.missing[i].last; n++) {
                assert_int_equal(counts[n], 0);
                missing++;
            }
        }
        for (uint64_t n = 1; n <= top; n++) {
            missing -= counts[n] == 0;
        }
        assert_int_equal(missing, 0);
        assert_int_equal(gapless.last, top);
        pawl__app_gapless_done(&gapless);
    }
}

/* --- an application --- */

static bool add_finding(void *context, const pawl_app_finding *finding)
{
    static const char *const names[] = { "missing", "doubled",  "ahead",
                                         "behind",  "no event", "damaged" };

    pawl__buf_add_format(context,
                         "%s %" PRIu64 "-%" PRIu64 " at %" PRIu64 "\n",
                         names[finding->fault],
                         finding->first,
                         finding->last,
                         finding->plog_offset);
    return true;
}

static void expect_certificate_of(struct app_fixture *f,
                                  uint16_t sequence,
                                  uint64_t events,
                                  const char *findings)
{
    pawl_app_certificate certificate = { .size = sizeof(pawl_app_certificate) };
    char space[512] = "";
    struct pawl__buf text = BUF_OVER(space);
    pawl_status status = pawl_app_verify_sequence(
        f->app, 7, sequence, add_finding, &text, NULL, &certificate, &f->error);

    assert_string_equal(space, findings);
    assert_status(status, findings[0] == '\0' ? PAWL_OK : PAWL_CORRUPT, &f->error);
    assert_int_equal(certificate.findings != 0, findings[0] != '\0');
    assert_int_equal(certificate.events, events);
}

static void expect_certificate(struct app_fixture *f, uint16_t sequence, const char *findings)
{
    expect_certificate_of(f, sequence, 4, findings);
}

/* An event of partition 1 as if it had used that WLog offset. */
static void put_event(struct app_fixture *f, uint64_t plog_offset, uint64_t wlog_offset)
{
    pawl_app_number numbers[] = { { PAWL_APP_SEQ_WLOG_OFFSET, wlog_offset },
                                  { PAWL_APP_SEQ_C_RECORD, PAWL_APP_C_ID_MIN + plog_offset - 1 } };
    pawl_app_event event = { .size = sizeof(pawl_app_event),
                             .workspace = 7,
                             .plog_offset = plog_offset,
                             .wlog_offset = wlog_offset,
                             .kind = 1,
                             .numbers = numbers,
                             .number_count = 2 };
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(4096);

    pawl__app_event_encode(&event, &bytes);
    app_sabotage(f, APP_PLOG, pawl__app_key_plog(1, 1, plog_offset), pawl__buf_view(&bytes));
}

/* Stored numbers are what a test makes them: nothing is flushed meanwhile. */
static void fill(struct app_fixture *f)
{
    f->options.flush_interval_ms = 3600 * 1000;
    app_open(f);
    for (int i = 0; i < 4; i++) {
        app_create(f, 7, PAWL_APP_C_RECORD);
    }
}

static void test_a_good_log_has_a_certificate(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;

    fill(f);
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "");
    expect_certificate(f, PAWL_APP_SEQ_C_RECORD, "");
    expect_certificate(f, APP_INVOICE, "");
    assert_ok(pawl_app_verify_sequence(
                  f->app, 7, PAWL_APP_SEQ_C_RECORD, NULL, NULL, NULL, &certificate, &f->error),
              &f->error);
    assert_true(certificate.initial == PAWL_APP_C_ID_MIN);
    assert_true(certificate.last == PAWL_APP_C_ID_MIN + 3);
    assert_int_equal(certificate.used, 4);
    assert_detail(
        pawl_app_verify_sequence(f->app, 7, 99, NULL, NULL, NULL, &certificate, &f->error),
        PAWL_DETAIL_UNKNOWN_SEQUENCE,
        &f->error);
}

static void test_a_number_that_is_missing_is_named(void **state)
{
    struct app_fixture *f = *state;

    fill(f);
    put_event(f, 3, 9);
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "missing 3-3 at 0\nmissing 5-8 at 0\n");
    expect_certificate(f, PAWL_APP_SEQ_C_RECORD, "");
}

static void test_a_number_that_was_used_twice_is_named(void **state)
{
    struct app_fixture *f = *state;

    fill(f);
    put_event(f, 3, 2);
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "doubled 2-2 at 3\nmissing 3-3 at 0\n");
}

static void test_a_stored_number_ahead_of_the_log_is_named(void **state)
{
    struct app_fixture *f = *state;

    fill(f);
    app_sabotage_number(f, APP_SEQ, pawl__app_key_seq(1, 1, 7, PAWL_APP_SEQ_WLOG_OFFSET), 9, 5);
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "ahead 9-4 at 0\n");
}

static void store_offset(struct app_fixture *f, uint64_t offset)
{
    app_sabotage_number(f, APP_OFFSETS, pawl__app_key_offset(1, 1), offset, offset);
}

/* The rest of what there is to say is said all the same. */
static void test_a_damaged_row_is_a_finding_beside_others(void **state)
{
    struct app_fixture *f = *state;
    const struct app_key key = pawl__app_key_seq(1, 1, 7, PAWL_APP_SEQ_WLOG_OFFSET);

    fill(f);
    put_event(f, 3, 9);
    app_sabotage(f, APP_SEQ, key, pawl_view_of("junk"));
    expect_certificate(
        f, PAWL_APP_SEQ_WLOG_OFFSET, "damaged 0-0 at 0\nmissing 3-3 at 0\nmissing 5-8 at 0\n");
    assert_message(&f->error, "sequence 'wlog_offset' of workspace 7: 3 things are wrong");
    expect_certificate(f, PAWL_APP_SEQ_C_RECORD, "");
    app_sabotage(f, APP_OFFSETS, pawl__app_key_offset(1, 1), pawl_view_of("junk"));
    expect_certificate(f, PAWL_APP_SEQ_C_RECORD, "damaged 0-0 at 0\n");
}

/* Events that are not read again have numbers that are not stored: they would be given out twice. */
static void test_a_stored_number_behind_the_log_is_named(void **state)
{
    struct app_fixture *f = *state;
    const struct app_key key = pawl__app_key_seq(1, 1, 7, PAWL_APP_SEQ_WLOG_OFFSET);

    fill(f);
    app_sabotage_number(f, APP_SEQ, key, 2, 3);
    store_offset(f, 3); /* events 3 and 4 are read again */
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "");
    store_offset(f, 5);
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "behind 2-4 at 0\n");
}

static void test_events_that_the_log_lacks_are_named(void **state)
{
    struct app_fixture *f = *state;

    fill(f);
    put_event(f, 7, 5);
    expect_certificate_of(f, PAWL_APP_SEQ_WLOG_OFFSET, 5, "no event 5-6 at 0\n");
}

static void store_offset_of_a_closed_one(struct app_fixture *f, uint64_t offset)
{
    AUTO(pawl__app_store_close_p) struct app_store *store = NULL;
    const struct app_store_options options = { .must_exist = true,
                                               .app_id = f->descriptor.id,
                                               .app_name = f->descriptor.name };
    struct app_key key = pawl__app_key_offset(1, 1);
    const struct app_stored stored = { offset, offset };
    char bytes[APP_STORED_BYTES];
    const struct app_entry entry = {
        APP_OFFSETS, APP_PUT, pawl__app_key_view(&key), { bytes, sizeof(bytes) }
    };

    pawl__app_stored_encode(&key, &stored, bytes);
    assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
    assert_ok(store->ops->write(store, &entry, 1, &f->error), &f->error);
}

/* Numbers were stored for events 5 to 8, and these are gone. */
static void test_a_log_that_lost_its_end_is_not_gone_on_with(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f);
    pawl_app_close(STEAL(f->app), 0, NULL); /* and nobody stores an offset any more */
    store_offset_of_a_closed_one(f, 9);
    app_open(f);
    assert_status(app_try_create(f, 7, PAWL_APP_C_RECORD, NULL), PAWL_CORRUPT, &f->error);
    assert_message(&f->error,
                   "numbers are stored up to offset 8, the log of partition 1 ends at 4");
    assert_ok(app_try_create(f, 8, PAWL_APP_C_RECORD, NULL), &f->error); /* another partition */
    expect_certificate(f, PAWL_APP_SEQ_WLOG_OFFSET, "no event 5-8 at 0\n");
}

static void test_a_log_that_cannot_be_read_has_none(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;

    fill(f);
    app_sabotage(f, APP_PLOG, pawl__app_key_plog(1, 1, 2), (pawl_view){ "\x01", 1 });
    assert_status(
        pawl_app_verify_sequence(
            f->app, 7, PAWL_APP_SEQ_WLOG_OFFSET, NULL, NULL, NULL, &certificate, &f->error),
        PAWL_CORRUPT,
        &f->error);
    assert_message(&f->error, "offset 2 of the PLog of partition 1");
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

/* An event as a later version might write it: the first byte is the version, and the checksum is right. */
static pawl_status add_newer(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct app_store *store = context;
    struct app_entry newer = *entry;
    char *bytes = pawl__view_dup(entry->value);

    assert_non_null(bytes);
    bytes[0] = 99;
    newer.value.data = bytes;
    pawl_status status = store->ops->write(store, &newer, 1, reterr);
    free(bytes);
    return status;
}

static int exit_code_of_verify(const char *dir)
{
    char command[512];

    snprintf(command,
             sizeof(command),
             "\"$PAWL_BUILD/pawl\" seq verify --apps '%s' orders --workspace 7 >'%s/said' 2>&1",
             dir,
             dir);
    return WEXITSTATUS(system(command));
}

static void test_a_log_of_a_newer_version_could_not_be_checked(void **state)
{
    struct app_fixture *f = *state;
    struct app_range plog = { .family = APP_PLOG };

    if (f->in_memory || strcmp(app_backend, "rocksdb") != 0 || getenv("PAWL_BUILD") == NULL) {
        return; /* the command is asked about a directory */
    }
    fill(f);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_int_equal(exit_code_of_verify(f->dir), 0);
    app_open(f);
    assert_ok(pawl__app_store_walk(f->app->store, &plog, add_newer, f->app->store, &f->error),
              &f->error);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_int_equal(exit_code_of_verify(f->dir), 5);
}

/* --- while others use it --- */

struct intruder {
    struct app_fixture *f;
    uint64_t calls;
    uint64_t acts_at; /* 0: never */
    uint64_t ends_at;
    uint64_t done;
    uint64_t total;
};

static bool intrude(void *context, uint64_t done, uint64_t total)
{
    struct intruder *intruder = context;

    assert_true(done <= total);
    assert_true(done >= intruder->done);
    intruder->done = done;
    intruder->total = total;
    intruder->calls++;
    if (intruder->calls == intruder->acts_at) {
        (void)app_create(intruder->f, 1, PAWL_APP_C_RECORD);
    }
    return intruder->calls != intruder->ends_at;
}

static pawl_status verify_with(struct app_fixture *f, struct intruder *intruder)
{
    pawl_watch watch = PAWL_WATCH_INIT;
    pawl_app_report report = PAWL_APP_REPORT_INIT;

    watch.progress = intrude;
    watch.context = intruder;
    return pawl_app_verify(f->app, 0, NULL, NULL, &watch, &report, &f->error);
}

enum { MANY = 400 };

static void test_commands_meanwhile_are_no_damage(void **state)
{
    struct app_fixture *f = *state;
    struct intruder intruder = { .f = f, .acts_at = 2 };

    app_open(f);
    for (int i = 0; i < MANY; i++) {
        (void)app_create(f, 1, PAWL_APP_C_RECORD);
    }
    if (strcmp(app_backend, "rocksdb") == 0) { /* it reads a snapshot */
        assert_ok(verify_with(f, &intruder), &f->error);
    } else {
        assert_status(verify_with(f, &intruder), PAWL_BUSY, &f->error);
        assert_message(&f->error, "while commands are executed");
    }
    assert_true(intruder.calls > 2);
    intruder = (struct intruder){ .f = f };
    pawl_error quiet = PAWL_ERROR_INIT;
    f->error = quiet;
    assert_ok(verify_with(f, &intruder), &f->error);
    assert_int_equal(intruder.total, 2 * (MANY + 1));
}

static void test_a_verification_ends_when_it_is_told_to(void **state)
{
    struct app_fixture *f = *state;
    pawl_watch watch = PAWL_WATCH_INIT;
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;

    app_open(f);
    for (int i = 0; i < MANY; i++) {
        (void)app_create(f, 1, PAWL_APP_C_RECORD);
    }
    for (uint64_t at = 1; at <= 3; at++) {
        struct intruder intruder = { .f = f, .ends_at = at };

        assert_status(verify_with(f, &intruder), PAWL_CANCELLED, &f->error);
        assert_int_equal(intruder.calls, at);
    }
    struct intruder intruder = { .f = f, .ends_at = 2 };
    watch.progress = intrude;
    watch.context = &intruder;
    assert_status(
        pawl_app_verify_sequence(
            f->app, 1, PAWL_APP_SEQ_WLOG_OFFSET, NULL, NULL, &watch, &certificate, &f->error),
        PAWL_CANCELLED,
        &f->error);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps_and_doubles_of_numbers_are_found),
        cmocka_unit_test(test_any_order_gives_what_counting_gives),
        APP_TEST(test_a_good_log_has_a_certificate),
        APP_TEST(test_a_number_that_is_missing_is_named),
        APP_TEST(test_a_number_that_was_used_twice_is_named),
        APP_TEST(test_a_stored_number_ahead_of_the_log_is_named),
        APP_TEST(test_a_stored_number_behind_the_log_is_named),
        APP_TEST(test_a_damaged_row_is_a_finding_beside_others),
        APP_TEST(test_events_that_the_log_lacks_are_named),
        APP_TEST(test_a_log_that_lost_its_end_is_not_gone_on_with),
        APP_TEST(test_a_log_that_cannot_be_read_has_none),
        APP_TEST(test_a_log_of_a_newer_version_could_not_be_checked),
        APP_TEST(test_commands_meanwhile_are_no_damage),
        APP_TEST(test_a_verification_ends_when_it_is_told_to),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
