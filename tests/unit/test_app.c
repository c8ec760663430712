/* Commands of an application: what they leave behind, who refuses them, what happens when many come at
 * once and when a write fails. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "lib/promtool.h"

#define V(text) ((pawl_view){ (text), sizeof(text) - 1 })

enum { THREADS = 8, COMMANDS = 40 };

static pawl_app_command shop(uint64_t workspace)
{
    return (pawl_app_command){ .size = sizeof(pawl_app_command),
                               .workspace = workspace,
                               .kind = V("shop") };
}

static bool refuse(void *context, const pawl_app_record *record)
{
    (void)context;
    fail_msg("no record is expected, and there is %llu", (unsigned long long)record->id);
    return false;
}

static void test_a_command_becomes_events_and_records_with_real_ids(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create),
          PAWL_APP_C_RECORD,
          5,
          0,
          V("order"),
          V("{\"no\":{\"$next\":\"invoice\"}}") },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, V("line"), V("{\"of\":{\"$raw\":5}}") },
        { sizeof(pawl_app_create), PAWL_APP_O_RECORD, 3, 0, V("paper"), V("{}") },
        { sizeof(pawl_app_create),
          PAWL_APP_SINGLETON,
          0,
          65540,
          V("shop"),
          V("{\"last\":{\"$raw\":3}}") },
    };
    pawl_app_command command = shop(7);

    command.creates = creates;
    command.create_count = COUNT_OF(creates);
    app_open(f);
    app_exec(f, &command);
    assert_int_equal(f->response->partition, 1);
    assert_int_equal(f->response->plog_offset, 1);
    assert_int_equal(f->response->wlog_offset, 1);
    assert_false(f->response->duplicate);
    assert_int_equal(f->response->id_count, 3);
    assert_int_equal(f->response->ids[0].raw, 5);
    assert_true(f->response->ids[0].id == PAWL_APP_C_ID_MIN);
    assert_int_equal(f->response->ids[1].raw, 2);
    assert_int_equal(f->response->ids[1].id, 200001);
    assert_int_equal(f->response->ids[2].id, 200002);
    assert_int_equal(f->response->number_count, 1);
    assert_int_equal(f->response->numbers[0].sequence, APP_INVOICE);
    assert_int_equal(f->response->numbers[0].number, 1000);
    app_assert_text(app_wlog(f, 7, 0, 0),
                    "p1 w1 of 7: 1099511627776 order {\"no\":1000}, 200001 line "
                    "{\"of\":1099511627776}, 200002 paper {}, 65540 shop {\"last\":200002}\n");
    app_assert_text(app_plog(f, 1, 0, 0),
                    "p1 w1 of 7: 1099511627776 order {\"no\":1000}, 200001 line "
                    "{\"of\":1099511627776}, 200002 paper {}, 65540 shop {\"last\":200002}\n");
    app_assert_text(app_record(f, 7, 200001), "200001 line {\"of\":1099511627776}\n");
    app_assert_text(app_record(f, 7, 65540), "65540 shop {\"last\":200002}\n");
    assert_status(pawl_app_read_record(f->app, 9, 200001, refuse, NULL, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_status(
        pawl_app_read_record(f->app, 7, 5, refuse, NULL, &f->error), PAWL_INVALID, &f->error);
}

static void test_only_c_records_are_listed_and_in_pages(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    for (int i = 0; i < 3; i++) {
        app_create(f, 7, PAWL_APP_C_RECORD);
        app_create(f, 7, PAWL_APP_W_RECORD);
        app_create(f, 9, PAWL_APP_C_RECORD);
    }
    app_assert_text(app_c_records(f, 7, 0, 0),
                    "1099511627776 order {\"self\":1099511627776}\n"
                    "1099511627777 order {\"self\":1099511627777}\n"
                    "1099511627778 order {\"self\":1099511627778}\n");
    app_assert_text(app_c_records(f, 7, PAWL_APP_C_ID_MIN + 1, 1),
                    "1099511627777 order {\"self\":1099511627777}\n");
    app_assert_text(app_c_records(f, 8, 0, 0), "");
    app_assert_text(app_wlog(f, 9, 2, 1),
                    "p6 w2 of 9: 1099511627777 order {\"self\":1099511627777}\n");
    app_assert_text(app_plog(f, 1, 9, 0),
                    "p9 w3 of 9: 1099511627778 order {\"self\":1099511627778}\n");
    app_assert_text(app_plog(f, 1, 2, 1), "p2 w2 of 7: 200001 order {\"self\":200001}\n");
    app_assert_text(app_plog(f, 0, 0, 0), "");
    assert_status(
        pawl_app_read_plog(f->app, 2, NULL, NULL, NULL, &f->error), PAWL_INVALID, &f->error);
}

/* More than a page of anything. */
static void test_long_logs_are_read_in_pages(void **state)
{
    struct app_fixture *f = *state;
    enum { MANY = 600 };

    f->options.unsafe_no_sync = true; /* this is about reading */
    app_open(f);
    for (int i = 0; i < MANY; i++) {
        app_create(f, 7, PAWL_APP_C_RECORD);
    }
    char *texts[] = { app_wlog(f, 7, 0, 0),
                      app_plog(f, 1, 0, 0),
                      app_c_records(f, 7, 0, 0),
                      app_wlog(f, 7, 0, MANY - 1) };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int lines = 0;
        for (const char *c = texts[i]; *c != '\0'; c++) {
            lines += *c == '\n';
        }
        assert_int_equal(lines, i == 3 ? MANY - 1 : MANY);
        free(texts[i]);
    }
}

static bool count_record(void *context, const pawl_app_record *record)
{
    (void)record;
    ++*(int *)context;
    return true;
}

static bool count_logged(void *context, const pawl_app_event *event)
{
    (void)event;
    ++*(int *)context;
    return true;
}

static bool count_one(void *context, const pawl_app_event *event)
{
    (void)count_logged(context, event);
    return false;
}

static void assert_page(const pawl_page *page, bool more, uint64_t from)
{
    assert_int_equal(page->more, more);
    assert_int_equal(page->from, from);
}

/* Five events and records: two, two, one. At its end a log's page is where the next event will be. */
static void test_a_page_says_where_the_next_one_begins(void **state)
{
    enum { EVENTS = 5 };
    struct app_fixture *f = *state;
    pawl_page records = PAWL_PAGE_INIT;
    pawl_page wlog = PAWL_PAGE_INIT;
    pawl_page plog = PAWL_PAGE_INIT;
    int seen[3] = { 0 };

    app_open(f);
    for (int i = 0; i < EVENTS; i++) {
        app_create(f, 7, PAWL_APP_C_RECORD);
    }
    records.limit = wlog.limit = plog.limit = 2;
    for (uint64_t first = 1; first <= EVENTS; first += 2) {
        bool more = first + 2 <= EVENTS;
        uint64_t next = more ? first + 2 : EVENTS + 1;

        assert_ok(pawl_app_read_c_records(f->app, 7, &records, count_record, &seen[0], &f->error),
                  &f->error);
        assert_page(&records, more, PAWL_APP_C_ID_MIN + next - 1);
        assert_ok(pawl_app_read_wlog(f->app, 7, &wlog, count_logged, &seen[1], &f->error),
                  &f->error);
        assert_page(&wlog, more, next);
        assert_ok(pawl_app_read_plog(f->app, 1, &plog, count_logged, &seen[2], &f->error),
                  &f->error);
        assert_page(&plog, more, next);
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        assert_int_equal(seen[i], EVENTS);
    }
    app_create(f, 7, PAWL_APP_C_RECORD);
    assert_ok(pawl_app_read_plog(f->app, 1, &plog, count_logged, &seen[2], &f->error), &f->error);
    assert_page(&plog, false, EVENTS + 2);
    assert_int_equal(seen[2], EVENTS + 1);
    plog.from = wlog.from = 2;
    assert_ok(pawl_app_read_plog(f->app, 1, &plog, count_one, &seen[2], &f->error), &f->error);
    assert_page(&plog, true, 3);
    assert_ok(pawl_app_read_wlog(f->app, 7, &wlog, count_one, &seen[1], &f->error), &f->error);
    assert_page(&wlog, true, 3);
}

/* What comes after a page may be damaged: the page is whole all the same. */
static void test_a_page_ends_before_what_is_damaged(void **state)
{
    struct app_fixture *f = *state;
    pawl_page plog = PAWL_PAGE_INIT;
    pawl_page wlog = PAWL_PAGE_INIT;
    int seen = 0;

    app_open(f);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_sabotage(f, APP_PLOG, pawl__app_key_plog(1, 1, 2), V("x"));
    app_sabotage(f, APP_WLOG, pawl__app_key_record(1, 7, 2), V("x"));
    plog.limit = wlog.limit = 1;
    assert_ok(pawl_app_read_plog(f->app, 1, &plog, count_logged, &seen, &f->error), &f->error);
    assert_page(&plog, true, 2);
    assert_ok(pawl_app_read_wlog(f->app, 7, &wlog, count_logged, &seen, &f->error), &f->error);
    assert_page(&wlog, true, 2);
    assert_status(pawl_app_read_plog(f->app, 1, &plog, count_logged, &seen, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    assert_page(&plog, true, 2); /* a failed call leaves it alone */
}

static void test_an_update_replaces_the_data_and_keeps_the_table(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    uint64_t id = app_create(f, 7, PAWL_APP_W_RECORD);
    const pawl_app_create create = {
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("note"), V("{}")
    };
    const pawl_app_update updates[] = {
        { sizeof(pawl_app_update), id, V("{\"note\":{\"$raw\":1}}") },
        { sizeof(pawl_app_update), id + 1, V("{}") }
    };
    pawl_app_command command = shop(7);
    command.creates = &create;
    command.create_count = 1;
    command.updates = updates;
    command.update_count = 2;
    assert_status(app_try(f, &command), PAWL_NOT_FOUND, &f->error);
    assert_message(&f->error, "record 200002 is not in workspace 7");
    command.update_count = 1;
    app_exec(f, &command);
    assert_int_equal(f->response->wlog_offset, 2); /* what was refused took no number */
    assert_true(f->response->ids[0].id == PAWL_APP_C_ID_MIN);
    app_assert_text(app_record(f, 7, id), "200001 order {\"note\":1099511627776}\n");
    app_assert_text(app_wlog(f, 7, 2, 0),
                    "p2 w2 of 7: 1099511627776 note {}, ~200001 order {\"note\":1099511627776}\n");
}

static void test_a_singleton_is_created_once_whatever_the_level(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create create = {
        sizeof(pawl_app_create), PAWL_APP_SINGLETON, 0, 65536, V("shop"), V("{}")
    };
    pawl_app_command command = shop(7);

    f->descriptor.trust = PAWL_APP_TRUST_2;
    command.creates = &create;
    command.create_count = 1;
    app_open(f);
    app_exec(f, &command);
    assert_status(app_try(f, &command), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "workspace 7 has its singleton 65536 already");
    assert_int_equal(f->error.native, 0); /* not about a key */
    command.workspace = 9;
    app_exec(f, &command);
}

static void test_a_key_is_used_once_and_answers_the_same_again(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create),
          PAWL_APP_C_RECORD,
          5,
          0,
          V("order"),
          V("{\"no\": {\"$next\": \"invoice\"}}") },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, V("line"), V("{}") },
    };
    pawl_app_command command = shop(7);

    command.key = V("pay-1");
    command.creates = creates;
    command.create_count = 2;
    app_open(f);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_exec(f, &command);
    assert_false(f->response->duplicate);
    for (int i = 0; i < 2; i++) {
        app_exec(f, &command);
        assert_true(f->response->duplicate);
        assert_int_equal(f->response->plog_offset, 2);
        assert_int_equal(f->response->wlog_offset, 2);
        assert_int_equal(f->response->id_count, 2);
        assert_int_equal(f->response->ids[0].raw, 5);
        assert_true(f->response->ids[0].id == PAWL_APP_C_ID_MIN + 1);
        assert_int_equal(f->response->ids[1].id, 200001);
        assert_int_equal(f->response->number_count, 1);
        assert_int_equal(f->response->numbers[0].number, 1000);
        if (i == 0 && !f->in_memory) {
            app_reopen(f);
        }
    }
    command.create_count = 1;
    assert_status(app_try(f, &command), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "was used in workspace 7 by another command, at PLog offset 2");
    assert_int_equal(f->error.detail, PAWL_DETAIL_KEY_REUSED);
    command.workspace = 9;
    app_exec(f, &command);
    assert_false(f->response->duplicate);
    assert_int_equal(f->response->plog_offset, 3);
}

/* The answer of another command is worse than none. */
static void test_a_key_that_does_not_fit_its_event_is_corrupt(void **state)
{
    struct app_fixture *f = *state;
    struct app_key key = pawl__app_key_idempotency(1, 7, V("pay"));
    struct app_value value = { .found = false };
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char bytes[40];

    app_open(f);
    assert_ok(app_try_create(f, 7, PAWL_APP_C_RECORD, "other"), &f->error);
    assert_ok(app_try_create(f, 7, PAWL_APP_C_RECORD, "pay"), &f->error);
    assert_ok(pawl__app_store_get(
                  f->app->store, APP_KEYS, pawl__app_key_view(&key), &arena, &value, &f->error),
              &f->error);
    assert_int_equal(value.bytes.len, sizeof(bytes));
    memcpy(bytes, value.bytes.data, sizeof(bytes));
    bytes[39] = 1; /* the offset of the other one */
    app_sabotage(f, APP_KEYS, key, (pawl_view){ bytes, sizeof(bytes) });
    assert_status(app_try_create(f, 7, PAWL_APP_C_RECORD, "pay"), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the key belongs to PLog offset 1, where another command is");
    bytes[39] = 9;
    app_sabotage(f, APP_KEYS, key, (pawl_view){ bytes, sizeof(bytes) });
    assert_status(app_try_create(f, 7, PAWL_APP_C_RECORD, "pay"), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the key belongs to PLog offset 9, where nothing is");
}

static void test_a_stored_descriptor_that_is_damaged_is_corrupt(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *app = NULL;

    app_open(f);
    if (f->in_memory) {
        return; /* nothing is opened again */
    }
    app_sabotage(f, APP_META, pawl__app_key_meta(f->descriptor.id), V("{\"name\":7}"));
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(
        pawl_app_open(f->location, NULL, &f->options, &app, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the stored descriptor of application 'orders' was altered");
    f->options.read_only = true; /* what cannot be read is not looked at either */
    assert_status(
        pawl_app_open(f->location, NULL, &f->options, &app, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "was altered");
    assert_null(app);
}

static void test_bad_commands_change_nothing(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create unknown = { sizeof(pawl_app_create),
                                      PAWL_APP_C_RECORD,
                                      5,
                                      0,
                                      V("order"),
                                      V("{\"no\":{\"$next\":\"invoice\"}}") };
    pawl_app_command command = shop(7);

    app_open(f);
    command.kind = V("cafe");
    assert_detail(app_try(f, &command), PAWL_DETAIL_UNKNOWN_KIND, &f->error);
    command.kind = V("office");
    command.creates = &unknown;
    command.create_count = 1;
    assert_detail(app_try(f, &command), PAWL_DETAIL_UNKNOWN_SEQUENCE, &f->error);
    command.workspace = 0;
    assert_status(app_try(f, &command), PAWL_INVALID, &f->error);
    command = shop(7);
    assert_status(pawl_app_exec(f->app, &command, NULL, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "ret_response: is NULL");
    assert_status(pawl_app_exec(f->app, NULL, &f->response, &f->error), PAWL_INVALID, &f->error);
    app_exec(f, &command); /* nothing to create is fine: an event is an event */
    assert_int_equal(f->response->plog_offset, 1);
    app_assert_text(app_wlog(f, 7, 0, 0), "p1 w1 of 7\n");
}

static void test_an_application_goes_on_where_it_was(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    app_open(f);
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN + 2 * i);
        app_reopen(f);
        assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN + 2 * i + 1);
        assert_int_equal(f->response->plog_offset, 2 * i + 2);
    }
}

/* Nobody needs a new number to hear what became of an old command. */
static void test_a_key_is_answered_while_nothing_can_be_written(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    app_open(f);
    assert_ok(app_try_create(f, 7, PAWL_APP_C_RECORD, "k"), &f->error);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_ok(pawl__failpoint_set("rocksdb.write.before=error:NO_SPACE", &f->error), &f->error);
    pawl_status opened = pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error);
    if (opened == PAWL_OK) {
        opened = pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error);
    }
    if (opened == PAWL_OK) {
        opened = app_try_create(f, 7, PAWL_APP_C_RECORD, "k");
    }
    pawl_error error = f->error;
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_ok(opened, &error);
    assert_true(f->response->duplicate);
}

static void test_one_that_only_reads_changes_nothing_and_needs_no_space(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_options options = PAWL_APP_OPTIONS_INIT;
    pawl_app_command command = shop(7);
    pawl_sequencer_status sequences = PAWL_SEQUENCER_STATUS_INIT;
    pawl_app *app = NULL;

    options.read_only = true;
    options.free_space_min = UINT64_MAX;
    assert_status(
        pawl_app_open(f->location, NULL, &options, &app, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_status(pawl_app_open(f->location, &f->descriptor, &options, &app, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "'read_only' and a descriptor");
    if (f->in_memory) {
        return;
    }
    app_open(f);
    app_exec(f, &command);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_ok(pawl_app_open(f->location, NULL, &options, &f->app, &f->error), &f->error);
    assert_ok(pawl_app_wait(f->app, 0, &f->error), &f->error);
    app_assert_text(app_wlog(f, 7, 0, 0), "p1 w1 of 7\n");
    assert_status(app_try(f, &command), PAWL_DENIED, &f->error);
    assert_message(&f->error, "opened for reading");
    assert_status(pawl_app_get_status(f->app, 0, &sequences, &f->error), PAWL_DENIED, &f->error);
    assert_status(pawl_app_open(f->location, NULL, NULL, &app, &f->error), PAWL_BUSY, &f->error);
    app_reopen(f);
    app_exec(f, &command);
    assert_int_equal(f->response->plog_offset, 2);
}

static void test_a_descriptor_is_settled_when_the_application_is_created(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *app = NULL;

    assert_status(
        pawl_app_open(f->location, NULL, NULL, &app, &f->error), PAWL_NOT_FOUND, &f->error);
    f->descriptor.partitions = 0;
    assert_status(
        pawl_app_open(f->location, &f->descriptor, NULL, &app, &f->error), PAWL_INVALID, &f->error);
    f->descriptor.partitions = 2;
    f->options.exec_ms_max = 0;
    assert_status(pawl_app_open(f->location, &f->descriptor, &f->options, &app, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "exec_ms_max is 0");
    f->options = (pawl_app_options)PAWL_APP_OPTIONS_INIT;
    if (f->in_memory) {
        return;
    }
    app_open(f);
    assert_status(pawl_app_open(f->location, NULL, NULL, &app, &f->error), PAWL_BUSY, &f->error);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_reopen(f);
    pawl_app_close(f->app, 0, NULL);
    f->app = NULL;
    f->descriptor.trust = PAWL_APP_TRUST_1;
    assert_status(pawl_app_open(f->location, &f->descriptor, NULL, &f->app, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_message(&f->error, "another descriptor: {\"id\":1,");
    assert_ok(pawl_app_open(f->location, NULL, NULL, &f->app, &f->error), &f->error);
    const pawl_app_descriptor *stored = pawl_app_get_descriptor(f->app);
    assert_string_equal(stored->name, "orders");
    assert_int_equal(stored->partitions, 2);
    assert_int_equal(stored->trust, PAWL_APP_TRUST_0);
    assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN + 1);
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    assert_ok(pawl_app_get_status(f->app, 1, &status, &f->error), &f->error);
    assert_int_equal(status.next_offset, 3);
    assert_status(pawl_app_get_status(f->app, 2, &status, &f->error), PAWL_INVALID, &f->error);
    uint64_t end = 99;
    assert_ok(pawl_app_get_log_end(f->app, 1, &end, &f->error), &f->error);
    assert_int_equal(end, 2);
    assert_ok(pawl_app_get_log_end(f->app, 0, &end, &f->error), &f->error);
    assert_int_equal(end, 0);
    assert_status(pawl_app_get_log_end(f->app, 2, &end, &f->error), PAWL_INVALID, &f->error);
}

static void test_the_last_number_of_a_range_is_exhausted_and_others_go_on(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    app_sabotage_number(
        f, APP_SEQ, pawl__app_key_seq(1, 1, 7, PAWL_APP_SEQ_OW_RECORD), PAWL_APP_OW_ID_MAX - 1, 1);
    assert_true(app_create(f, 7, PAWL_APP_W_RECORD) == PAWL_APP_OW_ID_MAX);
    assert_detail(app_try_create(f, 7, PAWL_APP_W_RECORD, NULL), PAWL_DETAIL_EXHAUSTED, &f->error);
    assert_message(&f->error, "is no id of a W-record any more");
    assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN);
    assert_int_equal(f->response->wlog_offset, 2);
    assert_int_equal(app_create(f, 9, PAWL_APP_W_RECORD), 200001);
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    assert_ok(pawl_app_get_status(f->app, 1, &status, &f->error), &f->error);
    assert_int_equal(status.actualizations,
                     1); /* the first one: nothing was written, nothing differs */
}

/* On this thread: validation and opening. What the committer lacks memory for is refused by it. */
static void test_opening_and_preparing_survive_every_failed_allocation(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create create = { sizeof(pawl_app_create),  PAWL_APP_C_RECORD, 1, 0, V("t"),
                                     V("{\"a\":{\"$raw\":1}}") };
    pawl_app_command command = shop(7);

    command.key = V("once");
    command.creates = &create;
    command.create_count = 1;
    if (f->in_memory) {
        FAULT_WALK (opening) {
            pawl_app *app = NULL;
            pawl_status status =
                pawl_app_open(f->location, &f->descriptor, &f->options, &app, &f->error);
            assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
            pawl_app_close(app, 0, NULL);
        }
    }
    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    FAULT_WALK (preparing) {
        pawl_app_response *response = NULL;
        pawl_status status = pawl_app_exec(f->app, &command, &response, &f->error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl_app_response_free(response);
    }
    assert_int_equal(app_create(f, 7, PAWL_APP_C_RECORD), PAWL_APP_C_ID_MIN + 1);
}

/* --- many at once --- */

struct crowd {
    struct app_fixture *f;
    struct pawl__thread thread;
    uint64_t workspace;
    const char *key;
    atomic_int *bad; /* answers that are not as they should be */
    uint64_t done;
    uint64_t refused;
    uint64_t duplicates;
};

static pawl_status exec_patiently(struct crowd *c, const pawl_app_command *command)
{
    pawl_app_response *response = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_BUSY;

    while (status == PAWL_BUSY) {
        (void)!pawl_app_wait(c->f->app, APP_PATIENCE_MS, &error);
        status = pawl_app_exec(c->f->app, command, &response, &error);
    }
    c->duplicates += response != NULL && response->duplicate;
    c->done += status == PAWL_OK;
    c->refused += status == PAWL_CONFLICT;
    pawl_app_response_free(response);
    return status;
}

static void run_crowd(void *context)
{
    struct crowd *c = context;
    const pawl_app_create creates[] = {
        { sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("order"), V("{}") },
        { sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, V("line"), V("{\"of\":{\"$raw\":1}}") },
    };
    pawl_app_command command = shop(c->workspace);

    command.creates = creates;
    command.create_count = 2;
    for (int i = 0; i < COMMANDS; i++) {
        char key[32];
        if (c->key != NULL) {
            snprintf(key, sizeof(key), "%s-%d", c->key, i);
            command.key = pawl_view_of(key);
        }
        pawl_status status = exec_patiently(c, &command);
        atomic_fetch_add(c->bad, status != PAWL_OK && status != PAWL_CONFLICT);
    }
}

static void run_threads(struct crowd *crowd, size_t count)
{
    atomic_int bad = 0;

    for (size_t i = 0; i < count; i++) {
        crowd[i].bad = &bad;
        pawl_error error = PAWL_ERROR_INIT;
        assert_ok(pawl__thread_start(&crowd[i].thread, "crowd", run_crowd, &crowd[i], &error),
                  &error);
    }
    for (size_t i = 0; i < count; i++) {
        pawl__thread_join(&crowd[i].thread);
    }
    assert_int_equal(atomic_load(&bad), 0);
}

struct count {
    uint64_t events;
    uint64_t next;
};

static bool count_event(void *context, const pawl_app_event *event)
{
    struct count *count = context;

    count->events++;
    assert_int_equal(event->plog_offset, ++count->next);
    return true;
}

static uint64_t events_of(struct app_fixture *f, uint16_t partition)
{
    struct count count = { 0 };

    assert_ok(pawl_app_read_plog(f->app, partition, NULL, count_event, &count, &f->error),
              &f->error);
    return count.events;
}

static void expect_gapless(struct app_fixture *f, uint64_t workspace, uint64_t used)
{
    static const uint16_t sequences[] = { PAWL_APP_SEQ_WLOG_OFFSET,
                                          PAWL_APP_SEQ_C_RECORD,
                                          PAWL_APP_SEQ_OW_RECORD };

    for (size_t i = 0; i < COUNT_OF(sequences); i++) {
        pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
        assert_ok(pawl_app_verify_sequence(
                      f->app, workspace, sequences[i], NULL, NULL, NULL, &certificate, &f->error),
                  &f->error);
        assert_int_equal(certificate.used, used);
        assert_int_equal(certificate.last - certificate.initial + 1, used);
    }
}

static void test_many_threads_get_numbers_without_a_gap(void **state)
{
    struct app_fixture *f = *state;
    struct crowd crowd[THREADS] = { 0 };

    f->options.unflushed_max = 50; /* busy now and then */
    f->options.cache_size = 2;
    app_open(f);
    for (size_t i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){ .f = f, .workspace = 1 + i % 4 };
    }
    run_threads(crowd, THREADS);
    for (uint64_t workspace = 1; workspace <= 4; workspace++) {
        expect_gapless(f, workspace, (uint64_t)THREADS / 4 * COMMANDS);
    }
    assert_int_equal(events_of(f, 0) + events_of(f, 1), THREADS * COMMANDS);
}

static void test_of_commands_with_one_key_one_is_done(void **state)
{
    struct app_fixture *f = *state;
    struct crowd crowd[THREADS] = { 0 };
    uint64_t duplicates = 0;

    app_open(f);
    for (size_t i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){ .f = f, .workspace = 7, .key = "same" };
    }
    run_threads(crowd, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(crowd[i].done, COMMANDS);
        duplicates += crowd[i].duplicates;
    }
    assert_int_equal(duplicates, (THREADS - 1) * COMMANDS);
    assert_int_equal(events_of(f, 1), COMMANDS);
    expect_gapless(f, 7, COMMANDS);
}

/* Workspace 1 has a WLog that somebody wrote to: its commands fail, those that were in a group with
 * them do not. */
static void test_a_command_that_is_refused_takes_nobody_along(void **state)
{
    struct app_fixture *f = *state;
    struct crowd crowd[THREADS] = { 0 };

    app_open(f);
    app_sabotage(f, APP_WLOG, pawl__app_key_wlog(1, 1, 3), V("taken"));
    for (size_t i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){ .f = f, .workspace = i == 0 ? 1 : 3 };
    }
    run_threads(crowd, THREADS);
    assert_int_equal(crowd[0].done, 2);
    assert_int_equal(crowd[0].refused, COMMANDS - 2);
    for (size_t i = 1; i < THREADS; i++) {
        assert_int_equal(crowd[i].done, COMMANDS);
    }
    expect_gapless(f, 3, (uint64_t)(THREADS - 1) * COMMANDS);
    expect_gapless(f, 1, 2);
    assert_int_equal(events_of(f, 1), (THREADS - 1) * COMMANDS + 2);
}

/* --- without waiting --- */

struct answers {
    struct pawl__lock lock;
    struct pawl__cond changed;
    size_t count;
    size_t failed;
    uint64_t last[5]; /* of each workspace */
    bool in_order;
};

struct submission {
    struct answers *answers;
    uint64_t workspace;
};

static void take_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    const struct submission *submission = context;
    struct answers *answers = submission->answers;

    pawl__lock(&answers->lock);
    answers->count++;
    answers->failed += error->status != PAWL_OK;
    if (response != NULL) {
        answers->in_order =
            answers->in_order && response->wlog_offset == ++answers->last[submission->workspace];
    }
    pawl__cond_signal(&answers->changed);
    pawl__unlock(&answers->lock);
    pawl_app_response_free(response);
}

static void await_answers(struct answers *answers, size_t count)
{
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);

    pawl__lock(&answers->lock);
    while (answers->count < count
           && pawl__cond_wait_until(&answers->changed, &answers->lock, deadline_ns)) {
    }
    assert_int_equal(answers->count, count);
    pawl__unlock(&answers->lock);
}

/* More than may be unflushed: the queue waits, nobody is busy, nobody overtakes. */
static void test_commands_are_submitted_and_answered_in_order(void **state)
{
    enum { MANY = 400 };
    struct app_fixture *f = *state;
    struct answers answers = { .in_order = true };
    struct submission submissions[5];
    const pawl_app_create create = {
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("order"), V("{}")
    };

    pawl__lock_init(&answers.lock);
    pawl__cond_init(&answers.changed);
    f->options.unflushed_max = 10;
    f->options.busy_ms_max = APP_PATIENCE_MS;
    app_open(f);
    for (uint64_t i = 0; i < COUNT_OF(submissions); i++) {
        submissions[i] = (struct submission){ &answers, i };
    }
    for (uint64_t i = 0; i < MANY; i++) {
        pawl_app_command command = shop(1 + i % 4);
        command.creates = &create;
        command.create_count = 1;
        assert_ok(
            pawl_app_exec_async(f->app, &command, take_answer, &submissions[1 + i % 4], &f->error),
            &f->error);
    }
    await_answers(&answers, MANY);
    assert_int_equal(answers.failed, 0);
    assert_true(answers.in_order);

    pawl_app_command bad = shop(0);
    assert_status(pawl_app_exec_async(f->app, &bad, take_answer, &submissions[1], &f->error),
                  PAWL_INVALID,
                  &f->error);
    const pawl_app_update update = { sizeof(pawl_app_update), 200001, V("{}") };
    bad = shop(1);
    bad.updates = &update;
    bad.update_count = 1;
    assert_ok(pawl_app_exec_async(f->app, &bad, take_answer, &submissions[1], &f->error),
              &f->error);
    await_answers(&answers, MANY + 1); /* not for the one that was refused at once */
    assert_int_equal(answers.failed, 1);
    pawl__cond_done(&answers.changed);
    pawl__lock_done(&answers.lock);
}

/* --- when a write fails --- */

static void test_a_write_that_did_not_happen_gives_its_numbers_back(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    app_create(f, 7, PAWL_APP_C_RECORD);
    assert_ok(pawl__failpoint_set("app.write.before=error:NO_SPACE*1", &f->error), &f->error);
    assert_status(app_try_create(f, 7, PAWL_APP_C_RECORD, NULL), PAWL_NO_SPACE, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN + 1);
    assert_int_equal(f->response->plog_offset, 2);
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
    assert_ok(pawl_app_verify_sequence(
                  f->app, 7, PAWL_APP_SEQ_C_RECORD, NULL, NULL, NULL, &certificate, &f->error),
              &f->error);
    assert_int_equal(certificate.used, 2);
}

/* The answer is lost, the command is not: its key says so, and no number is given out again. */
static void test_a_write_whose_answer_was_lost_is_found_by_its_key(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    assert_ok(pawl__failpoint_set("app.write.after=error:IO*1", &f->error), &f->error);
    assert_status(app_try_create(f, 7, PAWL_APP_C_RECORD, "pay"), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_ok(app_try_create(f, 7, PAWL_APP_C_RECORD, "pay"), &f->error);
    assert_true(f->response->duplicate);
    assert_true(f->response->ids[0].id == PAWL_APP_C_ID_MIN);
    assert_true(app_create(f, 7, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN + 1);
    assert_int_equal(f->response->plog_offset, 2);
}

/* Every partition hangs in its store: closing them takes one time limit, not one for each. */
static void test_a_close_beside_a_store_that_hangs_is_bounded(void **state)
{
    enum { PARTITIONS = 20, HANGS_MS = 8000, CLOSE_MS = 500 };
    static pawl_app *left_behind; /* it stays, as the header says, and is no leak for a checker */
    struct app_fixture *f = *state;

    f->descriptor.partitions = PARTITIONS;
    f->options.close_ms_max = CLOSE_MS;
    f->options.exec_ms_max = 20;
    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    assert_ok(pawl__failpoint_set("app.write.before=delay:8000", &f->error), &f->error);
    int64_t hangs_until_ns = pawl__monotonic_ns(pawl__clock_real()) + HANGS_MS * NS_PER_MS;
    for (uint64_t workspace = 1; workspace <= PARTITIONS; workspace++) {
        pawl_app_command command = shop(workspace);
        pawl_status status = pawl_app_exec(f->app, &command, &f->response, &f->error);
        assert_true(status == PAWL_TIMEOUT || status == PAWL_BUSY);
    }
    left_behind = STEAL(f->app);
    pawl_app_close(left_behind, 0, NULL);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) < hangs_until_ns);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
}

static void expect_metrics(struct app_fixture *f, const char *line)
{
    char *text = NULL;
    size_t len = 0;

    assert_ok(pawl_app_get_metrics(f->app, &text, &len, &f->error), &f->error);
    assert_int_equal(len, strlen(text));
    if (strstr(text, line) == NULL) {
        fail_msg("'%s' is not in\n%s", line, text);
    }
    const char *said = promtool_says((pawl_view){ text, len });
    if (said != NULL) {
        assert_string_equal(said, "");
    }
    free(text);
}

static void test_commands_of_all_partitions_are_counted_as_metrics(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    expect_metrics(f, "\npawl_commit_calls_total{store=\"app/orders\"} 0\n");
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_create(f, 7, PAWL_APP_C_RECORD);
    app_create(f, 8, PAWL_APP_C_RECORD); /* the other partition */
    expect_metrics(f, "\npawl_commit_batches_total{store=\"app/orders\"} 3\n");
    expect_metrics(f, "\npawl_commit_calls_total{store=\"app/orders\"} 3\n");
    expect_metrics(f, "\npawl_commit_waiting{store=\"app/orders\"} 0\n");
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        APP_TEST(test_a_command_becomes_events_and_records_with_real_ids),
        APP_TEST(test_only_c_records_are_listed_and_in_pages),
        APP_TEST(test_long_logs_are_read_in_pages),
        APP_TEST(test_a_page_says_where_the_next_one_begins),
        APP_TEST(test_a_page_ends_before_what_is_damaged),
        APP_TEST(test_an_update_replaces_the_data_and_keeps_the_table),
        APP_TEST(test_a_singleton_is_created_once_whatever_the_level),
        APP_TEST(test_a_key_is_used_once_and_answers_the_same_again),
        APP_TEST(test_a_key_that_does_not_fit_its_event_is_corrupt),
        APP_TEST(test_a_stored_descriptor_that_is_damaged_is_corrupt),
        APP_TEST(test_bad_commands_change_nothing),
        APP_TEST(test_an_application_goes_on_where_it_was),
        APP_TEST(test_a_key_is_answered_while_nothing_can_be_written),
        APP_TEST(test_one_that_only_reads_changes_nothing_and_needs_no_space),
        APP_TEST(test_a_descriptor_is_settled_when_the_application_is_created),
        APP_TEST(test_the_last_number_of_a_range_is_exhausted_and_others_go_on),
        APP_TEST(test_opening_and_preparing_survive_every_failed_allocation),
        APP_TEST(test_many_threads_get_numbers_without_a_gap),
        APP_TEST(test_of_commands_with_one_key_one_is_done),
        APP_TEST(test_a_command_that_is_refused_takes_nobody_along),
        APP_TEST(test_commands_are_submitted_and_answered_in_order),
        APP_TEST(test_a_write_that_did_not_happen_gives_its_numbers_back),
        APP_TEST(test_a_write_whose_answer_was_lost_is_found_by_its_key),
        APP_TEST(test_commands_of_all_partitions_are_counted_as_metrics),
        APP_TEST(test_a_close_beside_a_store_that_hangs_is_bounded),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
