/* What a caller of <pawl/publisher.h> may do wrong: each is a status that names the argument, and nothing aborts. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/publisher.h>

#include "base/core/macros.h"
#include "lib/header.h"
#include "lib/tempdir.h"

struct fixture {
    char dir[TEMPDIR_SIZE];
    char outbox[TEMPDIR_SIZE + 16];
    pawl_publisher *publisher;
    pawl_error error;
};

static pawl_publisher_options small_options(void)
{
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;

    options.source = "shop";
    options.free_space_min = 0;
    return options;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const pawl_publisher_options options = small_options();

    *state = f;
    assert_ok(tempdir_make(f->dir, "pawl-publisher", &f->error), &f->error);
    snprintf(f->outbox, sizeof(f->outbox), "%s/outbox", f->dir);
    assert_ok(pawl_publisher_open(f->outbox, &options, &f->publisher, &f->error), &f->error);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl_publisher_close(f->publisher, 0, &f->error), &f->error);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static pawl_outgoing good_event(void)
{
    pawl_outgoing event = PAWL_OUTGOING_INIT;

    event.subject = pawl_view_of("orders");
    event.event_id = pawl_view_of("e-1");
    event.payload = pawl_view_of("{}");
    return event;
}

#define assert_invalid(call, says)                      \
    do {                                                \
        assert_status((call), PAWL_INVALID, &f->error); \
        assert_message(&f->error, (says));              \
    } while (0)

static bool see_none(void *context, const pawl_failed_outgoing *failed)
{
    (void)context;
    (void)failed;
    return true;
}

static void test_a_null_argument_is_invalid_by_its_name(void **state)
{
    struct fixture *f = *state;
    pawl_publisher *publisher = NULL;
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;

    assert_invalid(pawl_publisher_open(NULL, NULL, &publisher, &f->error), "directory: is NULL");
    assert_invalid(pawl_publisher_open("", NULL, &publisher, &f->error), "directory: is empty");
    assert_invalid(pawl_publisher_open("x", NULL, NULL, &f->error), "ret_publisher: is NULL");
    assert_invalid(pawl_publisher_publish(NULL, NULL, 0, NULL, &f->error), "publisher: is NULL");
    assert_invalid(pawl_publisher_publish(f->publisher, NULL, 1, NULL, &f->error),
                   "events: is NULL, and count is not 0");
    assert_invalid(pawl_publisher_flush(NULL, 0, &f->error), "publisher: is NULL");
    assert_invalid(pawl_publisher_get_status(NULL, &status, &f->error), "publisher: is NULL");
    assert_invalid(pawl_publisher_get_status(f->publisher, NULL, &f->error), "ret_status: is NULL");
    assert_invalid(pawl_publisher_list_failed(NULL, NULL, see_none, NULL, &f->error),
                   "publisher: is NULL");
    assert_invalid(pawl_publisher_list_failed(f->publisher, NULL, NULL, NULL, &f->error),
                   "visit: is NULL");
    assert_invalid(pawl_publisher_retry_failed(NULL, NULL, &f->error), "publisher: is NULL");
    assert_ok(pawl_publisher_close(NULL, 0, &f->error), &f->error);
    assert_ok(pawl_publisher_publish(f->publisher, NULL, 0, NULL, &f->error), &f->error);
    assert_ok(pawl_publisher_flush(f->publisher, 0, NULL), &f->error);
}

static void test_each_option_out_of_range_is_invalid_by_its_name(void **state)
{
    struct fixture *f = *state;
    pawl_publisher *publisher = NULL;
    char other[TEMPDIR_SIZE + 16];

    snprintf(other, sizeof(other), "%s/other", f->dir);
#define assert_refused(set, says)                                                            \
    do {                                                                                     \
        pawl_publisher_options options = small_options();                                    \
        set;                                                                                 \
        assert_invalid(pawl_publisher_open(other, &options, &publisher, &f->error), (says)); \
        assert_null(publisher);                                                              \
    } while (0)
    assert_refused(options.size = 0, "options: size is 0");
    assert_refused(options.size = sizeof(options) + 8, "options: size is");
    assert_refused(options.partitions = PAWL_PUBLISHER_PARTITIONS_MAX + 1, "partitions: is");
    assert_refused(options.payload_max = 0, "payload_max: is 0");
    assert_refused(options.bytes_max = 1000, "bytes_max: is 1000");
    assert_refused(options.keep_ms = 0, "keep_ms: is 0");
    assert_refused(options.check_ms = 0, "check_ms: is 0");
    assert_refused(options.retry_ms = 0, "retry_ms: is 0");
    assert_refused(options.attempts_max = 0, "attempts_max: is 0");
    assert_refused(options.dedupe_ms = UINT64_MAX, "dedupe_ms: is");
    assert_refused(options.dedupe_bytes_max = 0, "dedupe_bytes_max: is 0");
    assert_refused(options.close_ms_max = 0, "close_ms_max: is 0");
    assert_refused(options.memtable_bytes = 1, "memtable_bytes: is 1");
    assert_refused(options.blob_file_bytes = 1, "blob_file_bytes: is 1");
    assert_refused(options.background_jobs = 0, "background_jobs: is 0");
    assert_refused(options.source = "a:b", "source: must not contain ':'");
    assert_refused((options.servers = "nats://x", options.read_only = true),
                   "servers: must be NULL with read_only");
}

static void test_each_part_of_an_event_is_checked(void **state)
{
    struct fixture *f = *state;
    char long_id[PAWL_PUBLISHER_ID_BYTES_MAX + 2];
    pawl_outgoing_header header = PAWL_OUTGOING_HEADER_INIT;

    memset(long_id, 'x', sizeof(long_id));
    long_id[sizeof(long_id) - 1] = '\0';
    header.name = pawl_view_of("Nats-Msg-Id");
#define assert_event(set, says)                                                                   \
    do {                                                                                          \
        pawl_outgoing event = good_event();                                                       \
        set;                                                                                      \
        assert_invalid(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), (says)); \
        assert_int_equal(f->error.index, 0);                                                      \
    } while (0)
    assert_event(event.size = 0, "events: size is 0");
    assert_event(event.subject = pawl_view_of(""), "subject: is empty");
    assert_event(event.subject = pawl_view_of("a.*"), "subject: must be 1 to 511 bytes");
    assert_event(event.subject = ((pawl_view){ "a\0b", 3 }), "subject: has a NUL in it");
    assert_event(event.subject = ((pawl_view){ NULL, 3 }), "event->subject");
    assert_event(event.source = pawl_view_of("a:b"), "source: must not contain ':'");
    assert_event(event.event_id = pawl_view_of(""), "event_id: is empty");
    assert_event(event.event_id = pawl_view_of(long_id), "event_id: has 201 bytes");
    assert_event(event.event_id = pawl_view_of("a\nb"), "event_id: has a control character");
    assert_event(event.event_id = pawl_view_of("\xff"), "event_id: is not UTF-8");
    assert_event(event.sequence = UINT64_MAX, "sequence: must be below 2^63");
    assert_event(event.payload = ((pawl_view){ NULL, 3 }), "event->payload");
    assert_event(event.payload.len = 1000001, "payload: has 1000001 bytes, the limit is 1000000");
    assert_event(event.header_count = 1, "event->headers: is NULL");
    assert_event((event.headers = &header, event.header_count = 61), "headers: there are 61");
    assert_event((event.headers = &header, event.header_count = 1),
                 "header 'Nats-Msg-Id': names of 'Nats-' and 'Pawl-' are reserved");
    header.name = pawl_view_of("a b");
    assert_event((event.headers = &header, event.header_count = 1), "the name of a header");
    header.name = pawl_view_of("a");
    header.value = pawl_view_of("a\r\nb");
    assert_event((event.headers = &header, event.header_count = 1), "a value must not contain CR");
}

static void test_a_batch_has_a_limit(void **state)
{
    struct fixture *f = *state;
    pawl_outgoing event = good_event();
    pawl_published result = { 0, 0, false };

    assert_invalid(
        pawl_publisher_publish(f->publisher, &event, PAWL_PUBLISHER_BATCH_MAX + 1, NULL, &f->error),
        "events: there are 10001, the limit is 10000");
    assert_invalid(pawl_publisher_publish(f->publisher, &event, 1, &result, &f->error),
                   "ret_results: size is 0");
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
}

/* A program of an older header, whose structs end earlier. */
static void test_smaller_structs_of_an_older_header_work(void **state)
{
    struct fixture *f = *state;
    pawl_outgoing event = good_event();
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;

    event.size = offsetof(pawl_outgoing, key);
    event.headers = (const void *)1; /* beyond its size: nobody looks there */
    event.header_count = 1;
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    status.size = offsetof(pawl_publisher_status, kept);
    status.kept = 99;
    assert_ok(pawl_publisher_get_status(f->publisher, &status, &f->error), &f->error);
    assert_int_equal(status.pending, 1);
    assert_int_equal(status.kept, 99);
}

static void test_a_directory_of_other_things_is_refused(void **state)
{
    struct fixture *f = *state;
    pawl_publisher *publisher = NULL;

    assert_status(
        pawl_publisher_open(f->dir, NULL, &publisher, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "the directory is not an outbox: it holds 'outbox'");
}

static void test_every_function_of_the_header_is_called_here(void **state)
{
    (void)state;
    assert_header_is_called("include/pawl/publisher.h", "tests/unit/test_publisher_arguments.c", 7);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_null_argument_is_invalid_by_its_name),
        TEST(test_each_option_out_of_range_is_invalid_by_its_name),
        TEST(test_each_part_of_an_event_is_checked),
        TEST(test_a_batch_has_a_limit),
        TEST(test_smaller_structs_of_an_older_header_work),
        TEST(test_a_directory_of_other_things_is_refused),
        cmocka_unit_test(test_every_function_of_the_header_is_called_here),
    };
    return cmocka_run_group_tests_name("publisher_arguments", tests, NULL, NULL);
}
