/* What each trust level finds, told side by side: somebody has written what the next command will use, and
 * has lowered a stored number. Level 0 checks everything it writes, level 1 logs and numbers, level 2 believes
 * what is stored. */
#include "lib/app_fixture.h"

#include "base/core/macros.h"
#include "lib/trace.h"

enum { WORKSPACE = 7, NEIGHBOUR = 9, PARTITION = 1 }; /* 7 and 9 modulo 2 */

static const pawl_view junk = { "\x01", 1 };

/* A command after an edit, in one line of the story. */
static void tell(struct trace *trace, struct app_fixture *f, const char *edit, pawl_status status)
{
    if (status == PAWL_OK) {
        trace_add(trace, "%s -> accepted", edit);
        return;
    }
    trace_add(trace, "%s -> %s", edit, pawl_status_name(status));
    assert_true(f->error.message[0] != '\0');
}

static struct app_fixture *open_at(pawl_app_trust trust)
{
    void *state = NULL;

    assert_int_equal(app_setup(&state), 0);
    struct app_fixture *f = state;
    f->descriptor.trust = trust;
    app_forget_quickly(f);
    app_open(f);
    return f;
}

static void close_it(struct app_fixture *f)
{
    void *state = f;

    assert_int_equal(app_teardown(&state), 0);
}

static void record_taken(struct trace *trace, pawl_app_trust trust)
{
    struct app_fixture *f = open_at(trust);
    uint64_t id = app_create(f, WORKSPACE, PAWL_APP_W_RECORD);

    app_sabotage(f, APP_RECORDS, pawl__app_key_record(f->descriptor.id, WORKSPACE, id + 1), junk);
    tell(trace,
         f,
         "the next record is there",
         app_try_create(f, WORKSPACE, PAWL_APP_W_RECORD, NULL));
    close_it(f);
}

static void wlog_taken(struct trace *trace, pawl_app_trust trust)
{
    struct app_fixture *f = open_at(trust);

    app_create(f, WORKSPACE, PAWL_APP_W_RECORD);
    app_sabotage(f,
                 APP_WLOG,
                 pawl__app_key_wlog(f->descriptor.id, WORKSPACE, f->response->wlog_offset + 1),
                 junk);
    tell(trace,
         f,
         "the next event of the WLog is there",
         app_try_create(f, WORKSPACE, PAWL_APP_W_RECORD, NULL));
    close_it(f);
}

static void plog_taken(struct trace *trace, pawl_app_trust trust)
{
    struct app_fixture *f = open_at(trust);

    app_create(f, WORKSPACE, PAWL_APP_W_RECORD);
    app_sabotage(f,
                 APP_PLOG,
                 pawl__app_key_plog(f->descriptor.id, PARTITION, f->response->plog_offset + 1),
                 junk);
    tell(trace,
         f,
         "the next event of the PLog is there",
         app_try_create(f, WORKSPACE, PAWL_APP_W_RECORD, NULL));
    close_it(f);
}

static void number_lowered(struct trace *trace, pawl_app_trust trust)
{
    struct app_fixture *f = open_at(trust);

    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(app_invoice(f, WORKSPACE), 1000 + i);
    }
    assert_int_equal(app_invoice(f, NEIGHBOUR), 1000); /* in place of the others in the cache */
    app_await_written(f, PARTITION);
    app_sabotage_number(f,
                        APP_SEQ,
                        pawl__app_key_seq(f->descriptor.id, PARTITION, WORKSPACE, APP_INVOICE),
                        1000,
                        2);
    pawl_status status = app_try_invoice(f, WORKSPACE);
    tell(trace, f, "invoice 1002 is given out, 1000 is stored", status);
    if (status == PAWL_OK) {
        trace_add(trace,
                  "  invoice %llu is given out twice",
                  (unsigned long long)f->response->numbers[0].number);
    }
    close_it(f);
}

static void expect_story(pawl_app_trust trust, const char *expected)
{
    AUTO(trace_done) struct trace trace = trace_start();

    record_taken(&trace, trust);
    wlog_taken(&trace, trust);
    plog_taken(&trace, trust);
    number_lowered(&trace, trust);
    assert_trace(&trace, expected);
}

static void test_level_0_overwrites_nothing_and_gives_no_number_twice(void **state)
{
    (void)state;
    expect_story(PAWL_APP_TRUST_0,
                 "[  0] the next record is there -> CONFLICT\n"
                 "[  0] the next event of the WLog is there -> CONFLICT\n"
                 "[  0] the next event of the PLog is there -> CONFLICT\n"
                 "[  0] invoice 1002 is given out, 1000 is stored -> CONFLICT\n");
}

static void test_level_1_checks_logs_and_numbers_but_not_records(void **state)
{
    (void)state;
    expect_story(PAWL_APP_TRUST_1,
                 "[  0] the next record is there -> accepted\n"
                 "[  0] the next event of the WLog is there -> CONFLICT\n"
                 "[  0] the next event of the PLog is there -> CONFLICT\n"
                 "[  0] invoice 1002 is given out, 1000 is stored -> CONFLICT\n");
}

static void test_level_2_believes_what_is_stored(void **state)
{
    (void)state;
    expect_story(PAWL_APP_TRUST_2,
                 "[  0] the next record is there -> accepted\n"
                 "[  0] the next event of the WLog is there -> accepted\n"
                 "[  0] the next event of the PLog is there -> accepted\n"
                 "[  0] invoice 1002 is given out, 1000 is stored -> accepted\n"
                 "[  0]   invoice 1001 is given out twice\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_0_overwrites_nothing_and_gives_no_number_twice),
        cmocka_unit_test(test_level_1_checks_logs_and_numbers_but_not_records),
        cmocka_unit_test(test_level_2_believes_what_is_stored),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
