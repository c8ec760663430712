/* A sequencer whose storage is an application's store. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/core/seq.h"
#include "base/core/error.h"

enum { SHOP = 1, PATIENCE_MS = 60000, MANY = 700 };
enum { WLOG = PAWL_APP_SEQ_WLOG_OFFSET, ORDER = PAWL_APP_SEQ_OW_RECORD };

static const pawl_seq_type types[] = { { sizeof(pawl_seq_type), SHOP, WLOG, 1 },
                                       { sizeof(pawl_seq_type), SHOP, ORDER, 200001 } };

struct fixture {
    char dir[TEMPDIR_SIZE];
    struct app_store *store;
    struct app_seq seq;
    pawl_seq_storage storage;
    pawl_sequencer *sequencer;
    pawl_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct app_store_options options = { .app_id = 1, .app_name = "orders" };
    char location[APP_LOCATION_SIZE];

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "app-seq", &f->error), &f->error);
    app_new_location(f->dir, location);
    assert_ok(pawl__app_store_open(location, &options, &f->store, &f->error), &f->error);
    f->seq = (struct app_seq){ .store = f->store, .app = 1, .partition = 3 };
    f->storage = pawl__app_seq_storage(&f->seq);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl_sequencer_close(f->sequencer, 0, NULL);
    pawl__app_store_close(f->store);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void open_sequencer(struct fixture *f)
{
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;

    pawl_sequencer_close(f->sequencer, 0, NULL);
    f->sequencer = NULL;
    options.types = types;
    options.type_count = COUNT_OF(types);
    options.storage = &f->storage;
    options.unflushed_max = 5;
    options.retry_ms = 5;
    assert_ok(pawl_sequencer_open(&options, &f->sequencer, &f->error), &f->error);
}

static void put_bytes(struct fixture *f, uint16_t partition, uint64_t offset, pawl_view value)
{
    struct app_key key = pawl__app_key_plog(1, partition, offset);
    struct app_entry entry = { APP_PLOG, APP_PUT, pawl__app_key_view(&key), value };

    assert_ok(f->store->ops->write(f->store, &entry, 1, &f->error), &f->error);
}

/* Puts an event into the log that used these numbers. */
static void append(struct fixture *f, uint64_t offset, uint64_t workspace, uint64_t wlog)
{
    pawl_app_number numbers[] = { { WLOG, wlog }, { ORDER, 200000 + wlog } };
    pawl_app_event event = { .size = sizeof(pawl_app_event),
                             .workspace = workspace,
                             .plog_offset = offset,
                             .wlog_offset = wlog,
                             .kind = SHOP,
                             .numbers = numbers,
                             .number_count = COUNT_OF(numbers) };
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);

    pawl__app_event_encode(&event, &buf);
    put_bytes(f, 3, offset, pawl__buf_view(&buf));
}

static uint64_t start(struct fixture *f, uint64_t workspace)
{
    pawl_status status = PAWL_BUSY;
    uint64_t offset = 0;

    while (status == PAWL_BUSY) {
        assert_ok(pawl_sequencer_wait(f->sequencer, PATIENCE_MS, &f->error), &f->error);
        status = pawl_sequencer_start(f->sequencer, SHOP, workspace, &offset, &f->error);
    }
    assert_ok(status, &f->error);
    return offset;
}

static void expect_next(struct fixture *f, uint64_t workspace, uint64_t offset, uint64_t wlog)
{
    uint64_t number = 0;

    assert_int_equal(start(f, workspace), offset);
    assert_ok(pawl_sequencer_next(f->sequencer, WLOG, &number, &f->error), &f->error);
    assert_int_equal(number, wlog);
    assert_ok(pawl_sequencer_next(f->sequencer, ORDER, &number, &f->error), &f->error);
    assert_int_equal(number, 200000 + wlog);
    assert_ok(pawl_sequencer_actualize(f->sequencer, &f->error), &f->error);
}

static void test_an_empty_log_begins_at_one(void **state)
{
    struct fixture *f = *state;

    open_sequencer(f);
    expect_next(f, 7, 1, 1);
}

static void test_numbers_are_rebuilt_from_a_log_of_several_pages(void **state)
{
    struct fixture *f = *state;

    for (uint64_t i = 1; i <= MANY; i++) {
        append(f, i, 1 + i % 10, 1 + (i - 1) / 10);
    }
    open_sequencer(f);
    expect_next(f, 5, MANY + 1, MANY / 10 + 1);
    expect_next(f, 11, MANY + 1, 1);
    append(f, MANY + 1, 5, MANY / 10 + 1);
    open_sequencer(f);
    expect_next(f, 5, MANY + 2, MANY / 10 + 2);
}

static void test_numbers_are_merged_by_maximum(void **state)
{
    struct fixture *f = *state;
    const pawl_seq_value high = { 7, WLOG, 9 };
    const pawl_seq_value low[] = { { 7, WLOG, 5 }, { 8, WLOG, 2 } };
    const uint16_t sequences[] = { ORDER, WLOG };
    uint64_t numbers[2] = { 1, 1 };
    uint64_t offset = 1;

    assert_ok(f->storage.read_next_offset(&f->seq, &offset, &f->error), &f->error);
    assert_int_equal(offset, 0);
    assert_ok(f->storage.write(&f->seq, &high, 1, 4, &f->error), &f->error);
    assert_ok(f->storage.write(&f->seq, low, 2, 6, &f->error), &f->error);
    assert_ok(f->storage.write(&f->seq, NULL, 0, 8, &f->error), &f->error);
    assert_ok(f->storage.read_numbers(&f->seq, 7, sequences, 2, INT64_MAX, numbers, &f->error),
              &f->error);
    assert_int_equal(numbers[0], 0);
    assert_int_equal(numbers[1], 9);
    assert_ok(f->storage.read_numbers(&f->seq, 8, sequences, 2, INT64_MAX, numbers, &f->error),
              &f->error);
    assert_int_equal(numbers[1], 2);
    assert_ok(f->storage.read_next_offset(&f->seq, &offset, &f->error), &f->error);
    assert_int_equal(offset, 8);
}

static void test_another_partition_is_another_log(void **state)
{
    struct fixture *f = *state;
    struct app_seq other = { .store = f->store, .app = 1, .partition = 4 };
    struct app_seq stranger = { .store = f->store, .app = 2, .partition = 3 };

    append(f, 1, 3, 1);
    put_bytes(f, 4, 9, pawl_view_of("of partition 4"));
    open_sequencer(f);
    expect_next(f, 3, 2, 2);
    f->storage = pawl__app_seq_storage(&stranger);
    open_sequencer(f);
    expect_next(f, 3, 1, 1);
    pawl_sequencer_close(f->sequencer, 0, NULL);
    f->sequencer = NULL;
    f->storage = pawl__app_seq_storage(&other);
    open_sequencer(f);
    assert_status(
        pawl_sequencer_wait(f->sequencer, PATIENCE_MS, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset 9 of the PLog of partition 4");
    pawl_sequencer_close(f->sequencer, 0, NULL);
    f->sequencer = NULL;
}

static void test_a_hole_in_the_log_is_found(void **state)
{
    struct fixture *f = *state;

    append(f, 1, 3, 1);
    append(f, 3, 3, 2);
    open_sequencer(f);
    assert_status(
        pawl_sequencer_wait(f->sequencer, PATIENCE_MS, &f->error), PAWL_CORRUPT, &f->error);
}

static void test_an_event_of_a_newer_version_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    /* Version 2, and the checksum of nothing. */
    append(f, 1, 3, 1);
    put_bytes(f, 3, 2, (pawl_view){ "\x02\0\0\0\0", 5 });
    open_sequencer(f);
    assert_status(
        pawl_sequencer_wait(f->sequencer, PATIENCE_MS, &f->error), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "has version 2");
}

static void test_an_event_at_the_wrong_offset_is_found(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    struct app_key key = pawl__app_key_plog(1, 3, 1);
    struct app_value value;
    bool found = false;
    pawl_app_event event;

    assert_ok(pawl__app_seq_last(&f->seq, &page, &found, &event, &f->error), &f->error);
    assert_false(found);
    append(f, 1, 3, 1);
    assert_ok(pawl__app_seq_last(&f->seq, &page, &found, &event, &f->error), &f->error);
    assert_true(found);
    assert_int_equal(event.workspace, 3);
    assert_ok(pawl__app_store_get(
                  f->store, APP_PLOG, pawl__app_key_view(&key), &arena, &value, &f->error),
              &f->error);
    put_bytes(f, 3, 2, value.bytes);
    assert_status(
        pawl__app_seq_last(&f->seq, &page, &found, &event, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset 2 of the PLog of partition 3");
    assert_message(&f->error, "belongs at offset 1");
}

static void test_a_stored_number_that_is_none_is_corrupt(void **state)
{
    struct fixture *f = *state;
    struct app_key key = pawl__app_key_offset(1, 3);
    struct app_entry entry = { APP_OFFSETS, APP_PUT, pawl__app_key_view(&key), { "123", 3 } };
    uint64_t offset = 0;

    assert_ok(f->store->ops->write(f->store, &entry, 1, &f->error), &f->error);
    assert_status(
        f->storage.read_next_offset(&f->seq, &offset, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset of partition 3");
    assert_message(&f->error, "is too short or too long");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_log_begins_at_one, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_numbers_are_rebuilt_from_a_log_of_several_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_are_merged_by_maximum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_partition_is_another_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_hole_in_the_log_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_event_of_a_newer_version_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_event_at_the_wrong_offset_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_stored_number_that_is_none_is_corrupt, setup, teardown),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
