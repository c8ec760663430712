#include "lib/check.h"

#include <stdlib.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "base/core/sha256.h"
#include "base/thread/thread.h"
#include "lib/fault.h"

static const char *hex_of(pawl_view bytes)
{
    static char hex[PAWL__SHA256_HEX_SIZE];
    struct pawl__sha256 hash;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sha256(bytes, &hash, &error), &error);
    pawl__sha256_hex(&hash, hex);
    return hex;
}

static void test_the_published_vectors_come_out(void **state)
{
    (void)state;
    char *million = malloc(1000000);

    assert_string_equal(hex_of(pawl_view_of("")),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hex_of((pawl_view){ NULL, 0 }),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hex_of(pawl_view_of("abc")),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(
        hex_of(pawl_view_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_non_null(million);
    memset(million, 'a', 1000000);
    assert_string_equal(hex_of((pawl_view){ million, 1000000 }),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* One-shot, in parts and streamed are three ways to one hash, wherever the cuts are. */
static void test_cuts_do_not_change_the_hash(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(9);
    pawl_error error = PAWL_ERROR_INIT;
    AUTO(pawl__sha256_close_p) struct pawl__sha256_stream *stream = NULL;
    char bytes[300];

    assert_ok(pawl__sha256_open(&stream, &error), &error);
    for (int round = 0; round < 500; round++) {
        struct pawl__sha256 whole;
        struct pawl__sha256 other;
        size_t len = pawl__prng_below(&prng, sizeof(bytes) + 1);
        size_t cut = pawl__prng_below(&prng, len + 1);
        pawl_view parts[2] = { { bytes, cut }, { bytes + cut, len - cut } };

        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)pawl__prng_next(&prng);
        }
        assert_ok(pawl__sha256((pawl_view){ bytes, len }, &whole, &error), &error);
        assert_ok(pawl__sha256_parts(parts, 2, &other, &error), &error);
        assert_true(pawl__sha256_equal(&whole, &other));
        assert_ok(pawl__sha256_add(stream, parts[0], &error), &error);
        assert_ok(pawl__sha256_add(stream, parts[1], &error), &error);
        assert_ok(pawl__sha256_finish(stream, &other, &error), &error); /* and starts anew */
        assert_true(pawl__sha256_equal(&whole, &other));
    }
}

static void test_equal_sees_every_single_bit(void **state)
{
    (void)state;
    struct pawl__sha256 a = { { 0 } };

    for (size_t bit = 0; bit < 256; bit++) {
        struct pawl__sha256 b = a;
        b.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_false(pawl__sha256_equal(&a, &b));
    }
    assert_true(pawl__sha256_equal(&a, &a));
}

static void test_both_written_forms_come_back(void **state)
{
    (void)state;
    struct pawl__sha256 hash;
    struct pawl__sha256 parsed;
    char hex[PAWL__SHA256_HEX_SIZE];
    char text[PAWL__SHA256_TEXT_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sha256(pawl_view_of("abc"), &hash, &error), &error);
    pawl__sha256_hex(&hash, hex);
    pawl__sha256_text(&hash, text);
    assert_string_equal(text,
                        "sha256:ba7816bf8f01cfea414140de5dae2223"
                        "b00361a396177a9cb410ff61f20015ad");
    assert_ok(pawl__sha256_parse(pawl_view_of(hex), &parsed, &error), &error);
    assert_true(pawl__sha256_equal(&hash, &parsed));
    assert_ok(pawl__sha256_parse(pawl_view_of(text), &parsed, &error), &error);
    assert_true(pawl__sha256_equal(&hash, &parsed));
}

static void test_bad_text_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        { "", "here are 0 bytes" },
        { "sha256:", "here are 0 bytes" },
        { "sha256:ba78", "here are 4 bytes" },
        { "SHA256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
          "here are 71 bytes" },
        { "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ax",
          "at digit 64" },
        { "sha256:xa7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "at digit 1" },
        { "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0",
          "here are 65 bytes" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pawl__sha256 hash = { { 42 } };
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(
            pawl__sha256_parse(pawl_view_of(rows[i].text), &hash, &error), PAWL_INVALID, &error);
        assert_message(&error, rows[i].message);
        assert_int_equal(hash.bytes[0], 42);
    }
}

static void test_opening_survives_every_failed_allocation(void **state)
{
    (void)state;

    FAULT_WALK (walk) {
        struct pawl__sha256_stream *stream = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__sha256_open(&stream, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_true((stream != NULL) == (status == PAWL_OK));
        pawl__sha256_close(stream);
    }
}

static void hash_often(void *context)
{
    bool *good = context;
    struct pawl__sha256 expected;
    struct pawl__sha256 hash;

    *good = pawl__sha256(pawl_view_of("abc"), &expected, NULL) == PAWL_OK;
    for (int i = 0; i < 1000; i++) {
        *good &= pawl__sha256(pawl_view_of("abcd"), &hash, NULL) == PAWL_OK
                 && !pawl__sha256_equal(&hash, &expected)
                 && pawl__sha256(pawl_view_of("abc"), &hash, NULL) == PAWL_OK
                 && pawl__sha256_equal(&hash, &expected);
    }
}

static void test_threads_do_not_share_a_context(void **state)
{
    (void)state;
    struct pawl__thread threads[4] = { 0 };
    bool good[4] = { false };
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_ok(pawl__thread_start(&threads[i], "hash", hash_often, &good[i], &error), &error);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pawl__thread_join(&threads[i]);
        assert_true(good[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_published_vectors_come_out),
        cmocka_unit_test(test_cuts_do_not_change_the_hash),
        cmocka_unit_test(test_equal_sees_every_single_bit),
        cmocka_unit_test(test_both_written_forms_come_back),
        cmocka_unit_test(test_bad_text_is_refused),
        cmocka_unit_test(test_opening_survives_every_failed_allocation),
        cmocka_unit_test(test_threads_do_not_share_a_context),
    };
    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
