/* Events and records as bytes: they come back the same, and damage is found. */
#include "lib/check.h"

#include <stdlib.h>

#include "app/core/event.h"
#include "base/core/crc32c.h"
#include "base/core/macros.h"

static const pawl_app_record records[] = {
    { sizeof(pawl_app_record),
      PAWL_APP_C_RECORD,
      false,
      1,
      UINT64_C(1) << 40,
      { "order", 5 },
      { "{\"a\":1}", 7 } },
    { sizeof(pawl_app_record),
      PAWL_APP_W_RECORD,
      false,
      65535,
      200001,
      { "line", 4 },
      { "{}", 2 } },
    { sizeof(pawl_app_record),
      PAWL_APP_SINGLETON,
      true,
      0,
      65536,
      { "shop", 4 },
      { "{\"b\":2}", 7 } },
};
static const pawl_app_number numbers[] = {
    { PAWL_APP_SEQ_WLOG_OFFSET, 3 },
    { PAWL_APP_SEQ_C_RECORD, UINT64_C(1) << 40 },
    { 16, UINT64_MAX },
};

static pawl_app_event sample(void)
{
    pawl_app_event event = {
        .size = sizeof(pawl_app_event),
        .workspace = 7,
        .plog_offset = 5,
        .wlog_offset = 3,
        .kind = 2,
        .key = { "pay-1", 5 },
        .records = records,
        .record_count = COUNT_OF(records),
        .numbers = numbers,
        .number_count = COUNT_OF(numbers),
    };

    memset(event.request_hash, 0xAB, sizeof(event.request_hash));
    return event;
}

static void expect_same(pawl_view a, pawl_view b)
{
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
}

static void test_an_event_comes_back_the_same(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_event event = sample();
    pawl_app_event back;

    (void)state;
    pawl__app_event_encode(&event, &buf);
    assert_ok(pawl__app_event_decode(pawl__buf_view(&buf), &arena, &back, &error), &error);
    assert_int_equal(back.workspace, 7);
    assert_int_equal(back.plog_offset, 5);
    assert_int_equal(back.wlog_offset, 3);
    assert_int_equal(back.kind, 2);
    expect_same(back.key, event.key);
    assert_memory_equal(back.request_hash, event.request_hash, 32);
    assert_int_equal(back.record_count, COUNT_OF(records));
    for (size_t i = 0; i < back.record_count; i++) {
        assert_int_equal(back.records[i].record_class, records[i].record_class);
        assert_int_equal(back.records[i].update, records[i].update);
        assert_int_equal(back.records[i].raw_id, records[i].raw_id);
        assert_true(back.records[i].id == records[i].id);
        expect_same(back.records[i].table, records[i].table);
        expect_same(back.records[i].data, records[i].data);
    }
    assert_int_equal(back.number_count, COUNT_OF(numbers));
    for (size_t i = 0; i < back.number_count; i++) {
        assert_int_equal(back.numbers[i].sequence, numbers[i].sequence);
        assert_true(back.numbers[i].number == numbers[i].number);
    }
}

static void test_an_event_without_anything_comes_back(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_event event = {
        .size = sizeof(pawl_app_event), .workspace = 1, .plog_offset = 1, .wlog_offset = 1
    };
    pawl_app_event back;

    (void)state;
    pawl__app_event_encode(&event, &buf);
    assert_ok(pawl__app_event_decode(pawl__buf_view(&buf), &arena, &back, &error), &error);
    assert_int_equal(back.record_count, 0);
    assert_int_equal(back.number_count, 0);
    assert_int_equal(back.key.len, 0);
}

/* Every bit and every length. */
static void test_each_flipped_bit_and_each_cut_is_found(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_event event = sample();
    pawl_app_event back;

    (void)state;
    pawl__app_event_encode(&event, &buf);
    for (size_t bit = 0; bit < buf.len * 8; bit++) {
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ (1 << (bit % 8)));
        pawl_status status = pawl__app_event_decode(pawl__buf_view(&buf), &arena, &back, &error);
        assert_true(status == PAWL_CORRUPT || (bit < 8 && status == PAWL_UNSUPPORTED));
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ (1 << (bit % 8)));
    }
    for (size_t len = 0; len < buf.len; len++) {
        assert_status(pawl__app_event_decode((pawl_view){ buf.data, len }, &arena, &back, &error),
                      PAWL_CORRUPT,
                      &error);
    }
}

/* What no checksum finds: a writer that was wrong. */
static void expect_refused(const struct pawl__buf *body)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_event back;

    pawl__buf_add_u8(&buf, 1);
    pawl__buf_add_u32be(&buf, pawl__crc32c(pawl__buf_view(body)));
    pawl__buf_add(&buf, pawl__buf_view(body));
    assert_status(
        pawl__app_event_decode(pawl__buf_view(&buf), &arena, &back, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "of an event is cut off or wrong");
}

static void add_head(struct pawl__buf *buf, uint64_t workspace)
{
    pawl__buf_clear(buf);
    pawl__buf_add_u64be(buf, workspace);
    pawl__buf_add_u64be(buf, 1);
    pawl__buf_add_u64be(buf, 1);
    pawl__buf_add_u16be(buf, 1);
    pawl__buf_add_u8(buf, 0);
}

static void test_counts_and_ids_that_cannot_be_are_refused(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(4096);

    (void)state;
    add_head(&body, 0); /* no workspace */
    pawl__buf_add_u64be(&body, 0);
    expect_refused(&body);

    add_head(&body, 1); /* more records than bytes */
    pawl__buf_add_u32be(&body, UINT32_MAX);
    pawl__buf_add_u32be(&body, 0);
    expect_refused(&body);

    add_head(&body, 1); /* more numbers than bytes */
    pawl__buf_add_u32be(&body, 0);
    pawl__buf_add_u32be(&body, UINT32_MAX);
    expect_refused(&body);

    add_head(&body, 1); /* a C-record with the id of an O-record */
    pawl__buf_add_u32be(&body, 1);
    pawl__buf_add_u8(&body, PAWL_APP_C_RECORD);
    pawl__buf_add_u8(&body, 0);
    pawl__buf_add_u16be(&body, 1);
    pawl__buf_add_u64be(&body, 200001);
    pawl__buf_add_u8(&body, 1);
    pawl__buf_add_char(&body, 't');
    pawl__buf_add_u32be(&body, 0);
    pawl__buf_add_u32be(&body, 0);
    expect_refused(&body);

    add_head(&body, 1); /* a number that no sequence gives out */
    pawl__buf_add_u32be(&body, 0);
    pawl__buf_add_u32be(&body, 1);
    pawl__buf_add_u16be(&body, 1);
    pawl__buf_add_u64be(&body, 0);
    expect_refused(&body);

    add_head(&body, 1); /* something behind the end */
    pawl__buf_add_u64be(&body, 0);
    pawl__buf_add_u8(&body, 0);
    expect_refused(&body);
}

static void test_a_record_comes_back_and_damage_is_found(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(4096);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_app_record back;

    (void)state;
    pawl__app_record_encode(&records[0], &buf);
    assert_ok(pawl__app_record_decode(pawl__buf_view(&buf), &back, &error), &error);
    assert_int_equal(back.record_class, PAWL_APP_C_RECORD);
    expect_same(back.table, records[0].table);
    expect_same(back.data, records[0].data);
    for (size_t bit = 0; bit < buf.len * 8; bit++) {
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ (1 << (bit % 8)));
        assert_int_not_equal(pawl__app_record_decode(pawl__buf_view(&buf), &back, &error), PAWL_OK);
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ (1 << (bit % 8)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_comes_back_the_same),
        cmocka_unit_test(test_an_event_without_anything_comes_back),
        cmocka_unit_test(test_each_flipped_bit_and_each_cut_is_found),
        cmocka_unit_test(test_counts_and_ids_that_cannot_be_are_refused),
        cmocka_unit_test(test_a_record_comes_back_and_damage_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
