/* What a caller may do wrong with <pawl/app.h>, in arguments and from within callbacks: each is a status, and
 * nothing aborts, hangs or prints. Argument: the backend. */
#include "lib/app_fixture.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "lib/header.h"

#define V(text) pawl_view_of(text)

static const pawl_view nowhere = { NULL, 5 };

static bool see_record(void *context, const pawl_app_record *record)
{
    (void)context;
    (void)record;
    return true;
}

static bool see_event(void *context, const pawl_app_event *event)
{
    (void)context;
    (void)event;
    return true;
}

static bool see_name(void *context, const pawl_app_entry *entry)
{
    (void)context;
    (void)entry;
    return true;
}

static void see_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    (void)context;
    (void)error;
    pawl_app_response_free(response);
}

/* The message names what is wrong. A caller that does not want to read it may pass no error. */
#define REFUSED(call, words)                         \
    do {                                             \
        pawl_error error = PAWL_ERROR_INIT;          \
        assert_status((call), PAWL_INVALID, &error); \
        assert_message(&error, words);               \
    } while (0)

static bool see_sequence(void *context, const pawl_app_sequence *sequence)
{
    (void)context;
    (void)sequence;
    return true;
}

static void test_a_null_argument_is_invalid_by_its_name(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    pawl_app_response *response = NULL;
    uint64_t offset = 0;
    char *text = NULL;

    app_open(f);
    pawl_app *app = f->app;
    REFUSED(pawl_app_check_name(NULL, &error), "name");
    REFUSED(pawl_app_wait(NULL, 1, &error), "app: is NULL");
    REFUSED(pawl_app_get_status(NULL, 0, &status, &error), "app: is NULL");
    REFUSED(pawl_app_get_status(app, 0, NULL, &error), "ret_status: is NULL");
    REFUSED(pawl_app_get_status(app, 2, &status, &error), "there is no partition 2");
    REFUSED(pawl_app_get_metrics(NULL, &text, NULL, &error), "app: is NULL");
    REFUSED(pawl_app_get_metrics(app, NULL, NULL, &error), "ret_text: is NULL");
    REFUSED(pawl_app_visit_sequences(NULL, see_sequence, NULL, &error), "app: is NULL");
    REFUSED(pawl_app_visit_sequences(app, NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_app_get_log_end(NULL, 0, &offset, &error), "app: is NULL");
    REFUSED(pawl_app_get_log_end(app, 0, NULL, &error), "ret_offset: is NULL");
    REFUSED(pawl_app_get_log_end(app, UINT16_MAX, &offset, &error), "there is no partition");
    REFUSED(pawl_app_exec(NULL, &command, &response, &error), "app: is NULL");
    REFUSED(pawl_app_exec(app, NULL, &response, &error), "command: is NULL");
    REFUSED(pawl_app_exec(app, &command, NULL, &error), "ret_response: is NULL");
    REFUSED(pawl_app_exec_async(NULL, &command, see_answer, NULL, &error), "app: is NULL");
    REFUSED(pawl_app_exec_async(app, NULL, see_answer, NULL, &error), "command: is NULL");
    REFUSED(pawl_app_exec_async(app, &command, NULL, NULL, &error), "done: is NULL");
    assert_int_equal(pawl_app_exec(NULL, NULL, NULL, NULL), PAWL_INVALID);
    assert_null(pawl_app_get_descriptor(NULL));
    assert_string_equal(pawl_app_sequence_name(NULL, APP_INVOICE), "");
    assert_string_equal(pawl_app_sequence_name(NULL, PAWL_APP_SEQ_WLOG_OFFSET), "wlog_offset");
    assert_int_equal(pawl_app_partition_of(NULL, 7), 0);
    assert_string_equal(pawl_app_class_word((pawl_app_class)99), "unknown");
    assert_string_equal(pawl_app_fault_word((pawl_app_fault)99), "unknown");
    pawl_app_response_free(NULL);
    pawl_app_close(NULL, 0, NULL);
    assert_int_equal(pawl_app_close(NULL, 1, NULL), PAWL_OK);
}

static void test_a_reader_without_its_arguments_is_invalid(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_page no_page = { .size = 0 };
    const pawl_watch no_watch = { .size = 0 };

    app_open(f);
    pawl_app *app = f->app;
    REFUSED(pawl_app_read_record(NULL, 7, 65540, see_record, NULL, &error), "app");
    REFUSED(pawl_app_read_record(app, 7, 65540, NULL, NULL, &error), "visit");
    REFUSED(pawl_app_read_c_records(NULL, 7, NULL, see_record, NULL, &error), "app");
    REFUSED(pawl_app_read_c_records(app, 7, NULL, NULL, NULL, &error), "visit");
    REFUSED(pawl_app_read_wlog(NULL, 7, NULL, see_event, NULL, &error), "app");
    REFUSED(pawl_app_read_wlog(app, 7, NULL, NULL, NULL, &error), "visit");
    REFUSED(pawl_app_read_plog(NULL, 0, NULL, see_event, NULL, &error), "app");
    REFUSED(pawl_app_read_plog(app, 0, NULL, NULL, NULL, &error), "visit");
    REFUSED(pawl_app_read_plog(app, 2, NULL, see_event, NULL, &error), "partition 2");
    REFUSED(pawl_app_read_c_records(app, 7, &no_page, see_record, NULL, &error), "page: size is 0");
    REFUSED(pawl_app_read_wlog(app, 7, &no_page, see_event, NULL, &error), "page: size is 0");
    REFUSED(pawl_app_read_plog(app, 0, &no_page, see_event, NULL, &error), "page: size is 0");
    REFUSED(pawl_app_verify_sequence(NULL, 7, 1, NULL, NULL, NULL, &certificate, &error), "app");
    REFUSED(pawl_app_verify_sequence(app, 7, 1, NULL, NULL, NULL, NULL, &error), "ret_certificate");
    REFUSED(pawl_app_verify_sequence(app, 7, 1, NULL, NULL, &no_watch, &certificate, &error),
            "watch: size is 0");
    REFUSED(pawl_app_verify(app, 7, NULL, NULL, &no_watch, &report, &error), "watch: size is 0");
    REFUSED(pawl_app_verify(NULL, 7, NULL, NULL, NULL, &report, &error), "app: is NULL");
    REFUSED(pawl_app_verify(app, 7, NULL, NULL, NULL, NULL, &error), "ret_report: is NULL");
    REFUSED(pawl_app_verify(app, UINT64_MAX, NULL, NULL, NULL, &report, &error),
            "there is no workspace");
    assert_string_equal(pawl_app_part_word(PAWL_APP_PART_WLOG), "wlog");
    assert_string_equal(pawl_app_part_word((pawl_app_part)-1), "unknown");
}

static void test_places_and_openings_need_their_arguments(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *app = NULL;
    char *text = NULL;
    size_t len = 0;
    pawl_app_options options = f->options;

    REFUSED(pawl_app_list(NULL, NULL, see_name, NULL, &error), "place: is NULL");
    REFUSED(pawl_app_list(f->dir, NULL, NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_app_list(f->dir, &(pawl_page){ .size = 0 }, see_name, NULL, &error),
            "page: size is 0");
    REFUSED(pawl_app_locate(NULL, "orders", &text, &error), "place: is NULL");
    REFUSED(pawl_app_locate(f->dir, NULL, &text, &error), "name: is NULL");
    REFUSED(pawl_app_locate(f->dir, "orders", NULL, &error), "ret_location: is NULL");
    REFUSED(pawl_app_open(NULL, &f->descriptor, NULL, &app, &error), "location: is NULL");
    REFUSED(pawl_app_open("", &f->descriptor, NULL, &app, &error), "location is empty");
    REFUSED(pawl_app_open(f->location, &f->descriptor, NULL, NULL, &error), "ret_app: is NULL");
    options.size = 3;
    REFUSED(pawl_app_open(f->location, &f->descriptor, &options, &app, &error), "options: size");
    REFUSED(pawl_app_open_json(f->location, nowhere, NULL, &app, &error), "descriptor: is NULL");
    REFUSED(pawl_app_descriptor_normalize(nowhere, &text, &len, &error), "descriptor: is NULL");
    REFUSED(pawl_app_descriptor_normalize(V("{}"), NULL, &len, &error), "ret_json: is NULL");
    REFUSED(pawl_app_descriptor_normalize(V("{}"), &text, NULL, &error), "ret_len: is NULL");
    REFUSED(pawl_app_descriptor_to_json(NULL, &text, &len, &error), "app: is NULL");
    assert_null(app);
    assert_null(text);
}

static void expect_no_descriptor(struct app_fixture *f,
                                 pawl_app_descriptor descriptor,
                                 const char *words)
{
    pawl_app *app = NULL;

    REFUSED(pawl_app_open(f->location, &descriptor, &f->options, &app, &error), words);
    assert_null(app);
}

static void test_what_is_wrong_inside_a_descriptor_is_named(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_descriptor bad = f->descriptor;
    pawl_app_sequence sequence = { sizeof(pawl_app_sequence), NULL, APP_INVOICE, 1 };
    pawl_app_kind kind = { sizeof(pawl_app_kind), "shop", 1, &sequence, 1 };

    bad.name = NULL;
    expect_no_descriptor(f, bad, "name");
    bad = f->descriptor;
    bad.size++;
    expect_no_descriptor(f, bad, "_INIT");
    bad = f->descriptor;
    bad.kinds = NULL;
    expect_no_descriptor(f, bad, "kinds: is NULL");
    bad = f->descriptor;
    bad.trust = (pawl_app_trust)-1;
    expect_no_descriptor(f, bad, "trust");
    bad = f->descriptor;
    bad.kinds = &kind;
    bad.kind_count = 1;
    expect_no_descriptor(f, bad, "a sequence's name");
    kind.sequences = NULL;
    expect_no_descriptor(f, bad, "sequences: is NULL");
    kind.sequences = &sequence;
    kind.sequence_count = SIZE_MAX;
    expect_no_descriptor(f, bad, "sequences, the limit is");
    kind.sequence_count = 0;
    kind.name = NULL;
    expect_no_descriptor(f, bad, "a kind's name");
}

static void expect_no_command(struct app_fixture *f, pawl_app_command command, const char *words)
{
    pawl_app_response *response = NULL;

    REFUSED(pawl_app_exec(f->app, &command, &response, &error), words);
    REFUSED(pawl_app_exec_async(f->app, &command, see_answer, NULL, &error), words);
    assert_null(response);
}

static void test_what_is_wrong_inside_a_command_is_named(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_create good = {
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("order"), V("{}")
    };
    pawl_app_create creates[2] = { good, good };
    pawl_app_update update = { .size = sizeof(pawl_app_update), .id = 65540, .data = nowhere };
    pawl_app_command command = { .size = sizeof(pawl_app_command),
                                 .workspace = 7,
                                 .kind = V("shop"),
                                 .creates = creates,
                                 .create_count = 2 };
    pawl_app_command bad = command;

    app_open(f);
    creates[1].raw_id = 2;
    bad.kind = nowhere;
    expect_no_command(f, bad, "kind: is NULL");
    bad = command;
    bad.key = nowhere;
    expect_no_command(f, bad, "key: is NULL");
    bad = command;
    bad.creates = NULL;
    expect_no_command(f, bad, "creates: is NULL");
    bad = command;
    bad.create_count = SIZE_MAX;
    expect_no_command(f, bad, "more than 1000 records");
    bad = command;
    bad.update_count = 1;
    expect_no_command(f, bad, "updates: is NULL");
    bad.updates = &update;
    expect_no_command(f, bad, "data: is NULL");
    creates[1].data = nowhere;
    expect_no_command(f, command, "data: is NULL");
    creates[1] =
        (pawl_app_create){ sizeof(pawl_app_create), (pawl_app_class)-1, 2, 0, V("order"), V("{}") };
    expect_no_command(f, command, "no class of records");
    creates[1] =
        (pawl_app_create){ sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, nowhere, V("{}") };
    expect_no_command(f, command, "table: is NULL");
    creates[1] =
        (pawl_app_create){ sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, { NULL, 0 }, V("{}") };
    expect_no_command(f, command, "table: empty");
    creates[1] = (pawl_app_create){
        sizeof(pawl_app_create), PAWL_APP_W_RECORD, 2, 0, V("order"), { NULL, 0 }
    };
    expect_no_command(f, command, "creates[1]: data");
}

static void test_json_needs_its_arguments_and_what_is_inside_them(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_response response = { .size = sizeof(pawl_app_response), .id_count = 1 };
    pawl_app_record record = { .size = sizeof(pawl_app_record), .table = nowhere };
    pawl_app_event event = { .size = sizeof(pawl_app_event), .key = nowhere };
    char *text = NULL;
    size_t len = 0;

    app_open(f);
    pawl_app *app = f->app;
    REFUSED(pawl_app_exec_json(NULL, 7, V("{}"), &text, &len, &error), "app: is NULL");
    REFUSED(pawl_app_exec_json(app, 7, nowhere, &text, &len, &error), "command: is NULL");
    REFUSED(pawl_app_exec_json(app, 7, V("{}"), NULL, &len, &error), "ret_json: is NULL");
    REFUSED(pawl_app_exec_json(app, 7, V("{}"), &text, NULL, &error), "ret_len: is NULL");
    REFUSED(pawl_app_exec_json_async(
                NULL, 7, (pawl_view){ NULL, 0 }, V("{}"), see_answer, NULL, &error),
            "app: is NULL");
    REFUSED(
        pawl_app_exec_json_async(app, 7, (pawl_view){ NULL, 0 }, nowhere, see_answer, NULL, &error),
        "command: is NULL");
    REFUSED(pawl_app_exec_json_async(app, 7, (pawl_view){ NULL, 0 }, V("{}"), NULL, NULL, &error),
            "done: is NULL");
    REFUSED(pawl_app_exec_json_async(app, 7, nowhere, V("{}"), see_answer, NULL, &error),
            "key: is NULL");
    REFUSED(pawl_app_response_to_json(app, NULL, &text, &len, &error), "response: is NULL");
    REFUSED(pawl_app_response_to_json(NULL, &response, &text, &len, &error), "app: is NULL");
    REFUSED(pawl_app_response_to_json(app, &response, &text, &len, &error), "ids: is NULL");
    response = (pawl_app_response){ .size = sizeof(pawl_app_response), .number_count = 1 };
    REFUSED(pawl_app_response_to_json(app, &response, &text, &len, &error), "numbers: is NULL");
    REFUSED(pawl_app_record_to_json(NULL, &text, &len, &error), "record: is NULL");
    REFUSED(pawl_app_record_to_json(&record, &text, &len, &error), "table: is NULL");
    record = (pawl_app_record){ .size = sizeof(pawl_app_record), .data = nowhere };
    REFUSED(pawl_app_record_to_json(&record, &text, &len, &error), "data: is NULL");
    REFUSED(pawl_app_event_to_json(app, NULL, &text, &len, &error), "event: is NULL");
    REFUSED(pawl_app_event_to_json(NULL, &event, &text, &len, &error), "app: is NULL");
    REFUSED(pawl_app_event_to_json(app, &event, &text, &len, &error), "key: is NULL");
    event = (pawl_app_event){ .size = sizeof(pawl_app_event), .record_count = 1 };
    REFUSED(pawl_app_event_to_json(app, &event, &text, &len, &error), "records: is NULL");
    event.records = &record;
    REFUSED(pawl_app_event_to_json(app, &event, &text, &len, &error), "data: is NULL");
    event = (pawl_app_event){ .size = sizeof(pawl_app_event), .number_count = 1 };
    REFUSED(pawl_app_event_to_json(app, &event, &text, &len, &error), "numbers: is NULL");
    assert_null(text);
}

/* Of a program that was compiled against a header without the members after `size`: garbage follows. */
static void test_json_of_an_older_struct_reads_no_further_than_its_size(void **state)
{
    struct app_fixture *f = *state;
    static const size_t sizes[] = { 0, 7, sizeof(size_t), SIZE_MAX };
    pawl_app_response response;
    pawl_app_record record;
    pawl_app_event event;

    app_open(f);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const pawl_status expected = sizes[i] == sizeof(size_t) ? PAWL_OK : PAWL_INVALID;
        char *texts[3] = { NULL };
        size_t len = 0;

        memset(&response, 0xa5, sizeof(response));
        memset(&record, 0xa5, sizeof(record));
        memset(&event, 0xa5, sizeof(event));
        response.size = record.size = event.size = sizes[i];
        assert_int_equal(pawl_app_response_to_json(f->app, &response, &texts[0], &len, NULL),
                         expected);
        assert_int_equal(pawl_app_record_to_json(&record, &texts[1], &len, NULL), expected);
        assert_int_equal(pawl_app_event_to_json(f->app, &event, &texts[2], &len, NULL), expected);
        for (size_t k = 0; k < COUNT_OF(texts); k++) {
            assert_int_equal(texts[k] != NULL, expected == PAWL_OK);
            pawl_free(texts[k]);
        }
    }
}

static void test_an_application_that_only_reads_denies_what_is_submitted(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };

    if (f->in_memory) {
        return;
    }
    app_open(f);
    pawl_app_close(STEAL(f->app), 0, NULL);
    pawl_app_options options = f->options;
    options.read_only = true;
    assert_ok(pawl_app_open(f->location, NULL, &options, &f->app, &f->error), &f->error);
    assert_status(
        pawl_app_exec_async(f->app, &command, see_answer, NULL, &f->error), PAWL_DENIED, &f->error);
    assert_message(&f->error, "opened for reading");
    assert_status(pawl_app_exec_json_async(f->app,
                                           7,
                                           (pawl_view){ NULL, 0 },
                                           V("{\"kind\":\"shop\"}"),
                                           see_answer,
                                           NULL,
                                           &f->error),
                  PAWL_DENIED,
                  &f->error);
}

/* --- from within callbacks --- */

struct inner {
    struct app_fixture *f;
    pawl_detail closed;
    pawl_detail executed;
    pawl_status submitted;
    pawl_status read;
    sem_t done;
};

static void await(sem_t *done)
{
    struct timespec deadline;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += APP_PATIENCE_MS / 1000;
    assert_int_equal(sem_timedwait(done, &deadline), 0);
}

static void note_inner_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct inner *inner = context;

    (void)error;
    pawl_app_response_free(response);
    sem_post(&inner->done);
}

static void call_from_within(struct inner *inner)
{
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };
    pawl_app_response *response = NULL;

    pawl_error error = PAWL_ERROR_INIT;

    inner->closed = detail_of(pawl_app_close(inner->f->app, 1000, &error), &error);
    pawl_app_close(inner->f->app, 0, NULL);
    inner->executed = detail_of(pawl_app_exec(inner->f->app, &command, &response, &error), &error);
    pawl_app_response_free(response);
    inner->submitted = pawl_app_exec_async(inner->f->app, &command, note_inner_answer, inner, NULL);
    inner->read = pawl_app_read_plog(inner->f->app, 0, NULL, see_event, NULL, NULL);
}

static void call_in_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    (void)error;
    pawl_app_response_free(response);
    call_from_within(context);
}

static void test_an_answer_cannot_close_nor_wait_for_a_command(void **state)
{
    struct app_fixture *f = *state;
    struct inner inner = { .f = f };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };

    app_open(f);
    assert_int_equal(sem_init(&inner.done, 0, 0), 0);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    assert_ok(pawl_app_exec_async(f->app, &command, call_in_answer, &inner, &f->error), &f->error);
    await(&inner.done);
    assert_int_equal(inner.closed, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(inner.executed, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(inner.submitted, PAWL_OK);
    app_exec(f, &command); /* it is still open */
    sem_destroy(&inner.done);
}

static bool call_in_visitor(void *context, const pawl_app_event *event)
{
    (void)event;
    call_from_within(context);
    return true;
}

static void test_a_visitor_cannot_close_and_may_do_all_else(void **state)
{
    struct app_fixture *f = *state;
    struct inner inner = { .f = f };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };
    pawl_page first = PAWL_PAGE_INIT;

    first.limit = 1;
    app_open(f);
    assert_int_equal(sem_init(&inner.done, 0, 0), 0);
    app_exec(f, &command);
    assert_ok(pawl_app_read_plog(f->app, 1, &first, call_in_visitor, &inner, &f->error), &f->error);
    await(&inner.done);
    assert_int_equal(inner.closed, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(inner.executed, PAWL_DETAIL_NONE);
    assert_int_equal(inner.submitted, PAWL_OK);
    assert_int_equal(inner.read, PAWL_OK);
    sem_destroy(&inner.done);
}

static void call_once(struct inner *inner)
{
    if (inner->closed == PAWL_DETAIL_NONE) {
        call_from_within(inner);
    }
}

static bool call_at_a_fault(void *context, const pawl_app_damage *damage)
{
    (void)damage;
    call_once(context);
    return true;
}

static bool call_at_a_finding(void *context, const pawl_app_finding *finding)
{
    (void)finding;
    call_once(context);
    return true;
}

static void assert_was_inside(struct inner *inner)
{
    await(&inner->done);
    assert_int_equal(inner->closed, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(inner->executed, PAWL_DETAIL_NONE);
    assert_int_equal(inner->submitted, PAWL_OK);
    assert_int_equal(inner->read, PAWL_OK);
    inner->closed = PAWL_DETAIL_NONE;
}

static void test_whoever_is_told_what_is_wrong_cannot_close(void **state)
{
    struct app_fixture *f = *state;
    struct inner inner = { .f = f };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
    pawl_app_report report = PAWL_APP_REPORT_INIT;

    app_open(f);
    assert_int_equal(sem_init(&inner.done, 0, 0), 0);
    app_exec(f, &command);
    app_exec(f, &command);
    app_exec(f, &command);
    app_delete(f, APP_PLOG, pawl__app_key_plog(1, 1, 2));
    assert_status(
        pawl_app_verify_sequence(
            f->app, 7, APP_INVOICE, call_at_a_finding, &inner, NULL, &certificate, &f->error),
        PAWL_CORRUPT,
        &f->error);
    assert_was_inside(&inner);
    /* RocksDB verifies a snapshot. The others cannot tell a fault from what the visitor has just executed. */
    assert_status(pawl_app_verify(f->app, 0, call_at_a_fault, &inner, NULL, &report, &f->error),
                  strcmp(app_backend, "rocksdb") == 0 ? PAWL_CORRUPT : PAWL_BUSY,
                  &f->error);
    assert_was_inside(&inner);
    app_exec(f, &command); /* it is still open */
    sem_destroy(&inner.done);
}

static bool see_one(void *context, const pawl_app_event *event)
{
    (void)event;
    ++*(int *)context;
    return false;
}

static bool see_invoice(void *context, const pawl_app_sequence *sequence)
{
    ++*(int *)context;
    return sequence->id != APP_INVOICE;
}

static void test_a_visitor_that_has_seen_enough_ends_the_walk(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop") };
    int seen = 0;

    app_open(f);
    app_exec(f, &command);
    app_exec(f, &command);
    assert_ok(pawl_app_read_plog(f->app, 1, NULL, see_one, &seen, &f->error), &f->error);
    assert_int_equal(seen, 1);
    assert_ok(pawl_app_read_wlog(f->app, 7, NULL, see_one, &seen, &f->error), &f->error);
    assert_int_equal(seen, 2);
    seen = 0;
    assert_ok(pawl_app_visit_sequences(f->app, see_invoice, &seen, &f->error), &f->error);
    assert_int_equal(seen, 4); /* those of every kind, and the first of its own */
}

static void test_the_last_number_of_an_own_sequence_is_named(void **state)
{
    struct app_fixture *f = *state;
    const pawl_app_sequence sequence = {
        sizeof(pawl_app_sequence), "inv", APP_INVOICE, PAWL_APP_C_ID_MAX
    };
    const pawl_app_kind kind = { sizeof(pawl_app_kind), "shop", 1, &sequence, 1 };
    const pawl_app_create create = {
        sizeof(pawl_app_create),          PAWL_APP_C_RECORD, 1, 0, V("order"),
        V("{\"no\":{\"$next\":\"inv\"}}")
    };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = V("shop"),
                                       .creates = &create,
                                       .create_count = 1 };

    f->descriptor.kinds = &kind;
    f->descriptor.kind_count = 1;
    app_open(f);
    app_exec(f, &command);
    assert_detail(app_try(f, &command), PAWL_DETAIL_EXHAUSTED, &f->error);
    assert_message(&f->error, "workspace 7: the last number of sequence 'inv' is used");
}

/* --- nothing is left out --- */

static void test_every_function_of_the_header_is_called_here(void **state)
{
    (void)state;
    assert_header_is_called("include/pawl/app.h", "tests/unit/test_app_arguments.c", 30);
}

int main(int argc, char **argv)
{
#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)
    const struct CMUnitTest tests[] = {
        APP_TEST(test_a_null_argument_is_invalid_by_its_name),
        APP_TEST(test_a_reader_without_its_arguments_is_invalid),
        APP_TEST(test_places_and_openings_need_their_arguments),
        APP_TEST(test_what_is_wrong_inside_a_descriptor_is_named),
        APP_TEST(test_what_is_wrong_inside_a_command_is_named),
        APP_TEST(test_json_needs_its_arguments_and_what_is_inside_them),
        APP_TEST(test_json_of_an_older_struct_reads_no_further_than_its_size),
        APP_TEST(test_an_application_that_only_reads_denies_what_is_submitted),
        APP_TEST(test_an_answer_cannot_close_nor_wait_for_a_command),
        APP_TEST(test_a_visitor_cannot_close_and_may_do_all_else),
        APP_TEST(test_whoever_is_told_what_is_wrong_cannot_close),
        APP_TEST(test_a_visitor_that_has_seen_enough_ends_the_walk),
        APP_TEST(test_the_last_number_of_an_own_sequence_is_named),
        cmocka_unit_test(test_every_function_of_the_header_is_called_here),
    };
    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
