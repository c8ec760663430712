/* Keys sort like their numbers and can be read by people; ids say what they are. */
#include "lib/check.h"

#include "app/core/ids.h"
#include "app/core/keys.h"
#include "base/core/macros.h"

static int compare(struct app_key a, struct app_key b)
{
    int order = memcmp(a.bytes, b.bytes, MIN(a.len, b.len));

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static void test_keys_sort_like_their_numbers(void **state)
{
    static const uint64_t numbers[] = { 1,         2,     255,        256,
                                        65535,     65536, UINT32_MAX, UINT64_C(1) << 40,
                                        UINT64_MAX };

    (void)state;
    for (size_t i = 1; i < COUNT_OF(numbers); i++) {
        uint64_t a = numbers[i - 1];
        uint64_t b = numbers[i];
        assert_true(compare(pawl__app_key_plog(1, 3, a), pawl__app_key_plog(1, 3, b)) < 0);
        assert_true(compare(pawl__app_key_wlog(1, 9, a), pawl__app_key_wlog(1, 9, b)) < 0);
        assert_true(compare(pawl__app_key_record(1, a, 9), pawl__app_key_record(1, b, 1)) < 0);
        assert_true(compare(pawl__app_key_seq(1, 1, a, 7), pawl__app_key_seq(1, 1, b, 1)) < 0);
    }
    assert_true(compare(pawl__app_key_plog(1, 9, 9), pawl__app_key_plog(2, 1, 1)) < 0);
    assert_true(compare(pawl__app_key_plog(1, 1, 9), pawl__app_key_plog(1, 2, 1)) < 0);
}

static void test_the_application_stands_first_in_every_key(void **state)
{
    struct app_key keys[] = {
        pawl__app_key_meta(0x01020304),
        pawl__app_key_plog(0x01020304, 1, 1),
        pawl__app_key_wlog(0x01020304, 1, 1),
        pawl__app_key_record(0x01020304, 1, 1),
        pawl__app_key_seq(0x01020304, 1, 1, 1),
        pawl__app_key_offset(0x01020304, 1),
        pawl__app_key_idempotency(0x01020304, 1, pawl_view_of("k")),
    };
    static const size_t lens[] = { 4, 14, 20, 20, 16, 6, 13 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_memory_equal(keys[i].bytes, "\x01\x02\x03\x04", 4);
        assert_int_equal(keys[i].len, lens[i]);
    }
}

static void expect_description(enum app_family family, struct app_key key, const char *text)
{
    char space[700];
    struct pawl__buf buf = BUF_OVER(space);

    pawl__app_key_describe(family, pawl__app_key_view(&key), &buf);
    assert_false(buf.broken);
    assert_string_equal(buf.data, text);
}

static void test_keys_can_be_read_by_people(void **state)
{
    (void)state;
    expect_description(APP_PLOG,
                       pawl__app_key_plog(1, 2, 5),
                       "offset 5 of the PLog of partition 2 (application 1)");
    expect_description(APP_WLOG,
                       pawl__app_key_wlog(1, 7, 5),
                       "offset 5 of the WLog of workspace 7 (application 1)");
    expect_description(APP_RECORDS,
                       pawl__app_key_record(1, 7, 200001),
                       "record 200001 of workspace 7 (application 1)");
    expect_description(APP_SEQ,
                       pawl__app_key_seq(1, 2, 7, 3),
                       "sequence 3 of workspace 7 in partition 2 (application 1)");
    expect_description(APP_OFFSETS,
                       pawl__app_key_offset(1, 2),
                       "the sequences' offset of partition 2 (application 1)");
    expect_description(APP_META, pawl__app_key_meta(9), "the descriptor (application 9)");
    expect_description(APP_META, pawl__app_key_format(9), "the format (application 9)");
    expect_description(APP_NUMBERS,
                       pawl__app_key_used(1, 7, 16, 1000),
                       "number 1000 of sequence 16 of workspace 7 (application 1)");
    expect_description(APP_KEYS,
                       pawl__app_key_idempotency(1, 7, pawl_view_of("pay-1")),
                       "key 'pay-1' of workspace 7 (application 1)");
    expect_description(APP_KEYS,
                       pawl__app_key_idempotency(1, 7, pawl_view_of("\x01")),
                       "key 00000001000000000000000701 of 'keys'");
    expect_description(APP_PLOG, pawl__app_key_meta(1), "key 00000001 of 'plog'");
}

static void test_the_number_of_a_key_comes_back(void **state)
{
    struct app_key plog = pawl__app_key_plog(1, 2, UINT64_MAX);
    struct app_key record = pawl__app_key_record(1, 2, 77);
    struct app_key offset = pawl__app_key_offset(1, 2);
    uint64_t number = 0;

    (void)state;
    assert_true(pawl__app_key_number(APP_PLOG, pawl__app_key_view(&plog), &number));
    assert_true(number == UINT64_MAX);
    assert_true(pawl__app_key_number(APP_RECORDS, pawl__app_key_view(&record), &number));
    assert_int_equal(number, 77);
    assert_false(pawl__app_key_number(APP_PLOG, pawl__app_key_view(&record), &number));
    assert_false(pawl__app_key_number(APP_OFFSETS, pawl__app_key_view(&offset), &number));
    assert_int_equal(number, 77);
}

static bool is_record_id(uint64_t id)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__app_check_id(id, &error);

    assert_true(status == PAWL_OK || status == PAWL_INVALID);
    if (status != PAWL_OK) {
        assert_message(&error, "is reserved");
    }
    return status == PAWL_OK;
}

static void test_ranges_end_where_they_say_and_never_meet(void **state)
{
    static const struct {
        uint64_t id;
        bool fits[4]; /* by class */
    } ids[] = {
        { 0, { 0 } },
        { 1, { 0 } },
        { 65535, { 0 } },
        { 65536, { [PAWL_APP_SINGLETON] = true } },
        { 66047, { [PAWL_APP_SINGLETON] = true } },
        { 66048, { 0 } },
        { 200000, { 0 } },
        { 200001, { [PAWL_APP_O_RECORD] = true, [PAWL_APP_W_RECORD] = true } },
        { (UINT64_C(1) << 40) - 1, { [PAWL_APP_O_RECORD] = true, [PAWL_APP_W_RECORD] = true } },
        { UINT64_C(1) << 40, { [PAWL_APP_C_RECORD] = true } },
        { UINT64_MAX >> 1, { [PAWL_APP_C_RECORD] = true } },
        { (UINT64_MAX >> 1) + 1, { 0 } },
        { UINT64_MAX, { 0 } },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        bool any = false;
        for (int class = 0; class < 4; class ++) {
            assert_int_equal(pawl__app_id_fits((pawl_app_class) class, ids[i].id),
                             ids[i].fits[class]);
            any = any || ids[i].fits[class];
        }
        assert_int_equal(is_record_id(ids[i].id), any);
    }
}

static void test_raw_ids_have_both_their_ends(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__app_check_raw_id(1, &error), &error);
    assert_ok(pawl__app_check_raw_id(65535, &error), &error);
    assert_status(pawl__app_check_raw_id(0, &error), PAWL_INVALID, &error);
    assert_status(pawl__app_check_raw_id(65536, &error), PAWL_INVALID, &error);
    assert_message(&error, "raw id 65536 is not in 1-65535");
}

static void test_classes_have_words_and_sequences(void **state)
{
    pawl_app_class class = PAWL_APP_SINGLETON;

    (void)state;
    assert_true(pawl__app_class_parse(pawl_view_of("w"), &class));
    assert_int_equal(class, PAWL_APP_W_RECORD);
    assert_false(pawl__app_class_parse(pawl_view_of("x"), &class));
    assert_int_equal(pawl__app_sequence_of(PAWL_APP_C_RECORD), PAWL_APP_SEQ_C_RECORD);
    assert_int_equal(pawl__app_sequence_of(PAWL_APP_O_RECORD), PAWL_APP_SEQ_OW_RECORD);
    assert_int_equal(pawl__app_sequence_of(PAWL_APP_W_RECORD), PAWL_APP_SEQ_OW_RECORD);
    assert_int_equal(pawl__app_sequence_of(PAWL_APP_SINGLETON), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_sort_like_their_numbers),
        cmocka_unit_test(test_the_application_stands_first_in_every_key),
        cmocka_unit_test(test_keys_can_be_read_by_people),
        cmocka_unit_test(test_the_number_of_a_key_comes_back),
        cmocka_unit_test(test_ranges_end_where_they_say_and_never_meet),
        cmocka_unit_test(test_raw_ids_have_both_their_ends),
        cmocka_unit_test(test_classes_have_words_and_sequences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
