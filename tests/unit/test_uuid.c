#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/macros.h"
#include "base/core/uuid.h"
#include "lib/virtual_clock.h"

struct fixture {
    struct pawl__clock_virtual clock;
    struct pawl__random_seeded random;
    struct pawl__uuid_source source;
    pawl_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->clock = pawl__clock_virtual_at(1769682030123456, 0);
    f->random = pawl__random_seeded_with(1);
    pawl__uuid_source_init(&f->source, &f->clock.base, &f->random.base);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__uuid_source_done(&f->source);
    free(f);
    return 0;
}

static struct pawl__uuid next(struct fixture *f)
{
    struct pawl__uuid uuid;

    assert_ok(pawl__uuid_next(&f->source, &uuid, &f->error), &f->error);
    return uuid;
}

static unsigned version(const struct pawl__uuid *uuid)
{
    return uuid->bytes[6] >> 4;
}

static int64_t unix_ms(const struct pawl__uuid *uuid)
{
    int64_t ms = 0;

    for (size_t i = 0; i < 6; i++) {
        ms = ms << 8 | uuid->bytes[i];
    }
    return ms;
}

static int compare(const struct pawl__uuid *a, const struct pawl__uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void test_version_variant_and_time_stand_where_the_rfc_says(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 1000; i++) {
        struct pawl__uuid uuid = next(f);
        assert_int_equal(version(&uuid), 7);
        assert_int_equal(uuid.bytes[8] >> 6, 2);
        assert_true(unix_ms(&uuid) == pawl__wall_us(&f->clock.base) / 1000);
        pawl__clock_advance(&f->clock, 7 * NS_PER_MS / 2);
    }
}

static void test_ids_grow_whatever_the_clock_does(void **state)
{
    struct fixture *f = *state;
    struct pawl__prng prng = pawl__prng_seeded(5);
    struct pawl__uuid last = next(f);
    char last_text[PAWL__UUID_TEXT_SIZE];

    pawl__uuid_text(&last, last_text);
    for (int i = 0; i < 20000; i++) {
        switch (pawl__prng_below(&prng, 4)) {
        case 0: /* within the millisecond, or into the next */
            pawl__clock_advance(&f->clock, pawl__prng_between(&prng, 0, 2 * NS_PER_MS));
            break;
        case 1: /* an administrator sets the clock, by up to a day */
            pawl__clock_step_wall(&f->clock,
                                  pawl__prng_between(&prng, -86400 * US_PER_S, 86400 * US_PER_S));
            break;
        default: /* stands still */
            break;
        }
        struct pawl__uuid uuid = next(f);
        char text[PAWL__UUID_TEXT_SIZE];
        pawl__uuid_text(&uuid, text);
        assert_true(compare(&last, &uuid) < 0);
        assert_true(strcmp(last_text, text) < 0);
        last = uuid;
        memcpy(last_text, text, sizeof(text));
    }
}

static void test_the_time_stays_while_the_clock_is_behind(void **state)
{
    struct fixture *f = *state;
    struct pawl__uuid before = next(f);

    pawl__clock_step_wall(&f->clock, -US_PER_S);
    struct pawl__uuid behind = next(f);
    assert_true(unix_ms(&behind) == unix_ms(&before));
    pawl__clock_step_wall(&f->clock, 2 * US_PER_S);
    struct pawl__uuid ahead = next(f);
    assert_true(unix_ms(&ahead) == unix_ms(&before) + 1000);
}

static void test_a_full_millisecond_borrows_from_the_next(void **state)
{
    struct fixture *f = *state;
    struct pawl__uuid first = next(f);

    f->source.rand_a = (1U << 12) - 1;
    f->source.rand_b = (UINT64_C(1) << 62) - 1;
    struct pawl__uuid full = next(f);
    assert_true(compare(&first, &full) < 0);
    assert_true(unix_ms(&full) == unix_ms(&first) + 1);
    assert_int_equal(version(&full), 7);
    assert_int_equal(full.bytes[8] >> 6, 2);
}

static void test_a_clock_before_1970_gives_the_first_millisecond(void **state)
{
    struct fixture *f = *state;

    f->clock = pawl__clock_virtual_at(-5 * US_PER_S, 0);
    struct pawl__uuid first = next(f);
    struct pawl__uuid second = next(f);
    assert_true(unix_ms(&first) == 0);
    assert_true(compare(&first, &second) < 0);
}

static pawl_status no_bytes(struct pawl__random *random,
                            void *ret_bytes,
                            size_t len,
                            pawl_error *reterr)
{
    (void)random;
    (void)ret_bytes;
    (void)len;
    reterr->status = PAWL_DENIED;
    return PAWL_DENIED;
}

static void test_without_randomness_there_is_no_id(void **state)
{
    struct fixture *f = *state;
    struct pawl__random broken = { no_bytes };
    struct pawl__uuid uuid = { { 42 } };

    f->source.random = &broken;
    assert_status(pawl__uuid_next(&f->source, &uuid, &f->error), PAWL_DENIED, &f->error);
    assert_message(&f->error, "make an id");
    assert_int_equal(uuid.bytes[0], 42);
}

static void test_text_is_lower_case_hex_with_hyphens(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 1000; i++) {
        struct pawl__uuid uuid = next(f);
        char text[PAWL__UUID_TEXT_SIZE];
        pawl__uuid_text(&uuid, text);
        assert_int_equal(strlen(text), 36);
        char expected[PAWL__UUID_TEXT_SIZE];
        size_t at = 0;
        for (size_t byte = 0; byte < sizeof(uuid.bytes); byte++) {
            const char *hyphen = byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-" : "";
            at += (size_t)snprintf(
                &expected[at], sizeof(expected) - at, "%s%02x", hyphen, uuid.bytes[byte]);
        }
        assert_string_equal(text, expected);
    }
}

enum { THREADS = 4, IDS_A_THREAD = 5000 };

struct worker {
    struct pawl__thread thread;
    struct pawl__uuid ids[IDS_A_THREAD];
    bool failed;
};

static void make_ids(void *context)
{
    struct worker *worker = context;

    for (size_t i = 0; i < IDS_A_THREAD; i++) {
        worker->failed |= pawl__uuid_next(pawl__uuid_process(), &worker->ids[i], NULL) != PAWL_OK;
    }
}

static int compare_for_sort(const void *a, const void *b)
{
    return compare(a, b);
}

static void test_threads_never_get_the_same_id_and_each_sees_them_grow(void **state)
{
    struct fixture *f = *state;
    struct worker *workers = calloc(THREADS, sizeof(*workers));
    struct pawl__uuid *all = calloc((size_t)THREADS * IDS_A_THREAD, sizeof(*all));

    assert_non_null(workers);
    assert_non_null(all);
    for (size_t i = 0; i < THREADS; i++) {
        assert_ok(pawl__thread_start(&workers[i].thread, "ids", make_ids, &workers[i], &f->error),
                  &f->error);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&workers[i].thread);
        assert_false(workers[i].failed);
        for (size_t k = 1; k < IDS_A_THREAD; k++) {
            assert_true(compare(&workers[i].ids[k - 1], &workers[i].ids[k]) < 0);
        }
        memcpy(&all[i * IDS_A_THREAD], workers[i].ids, sizeof(workers[i].ids));
    }
    qsort(all, (size_t)THREADS * IDS_A_THREAD, sizeof(*all), compare_for_sort);
    for (size_t i = 1; i < (size_t)THREADS * IDS_A_THREAD; i++) {
        assert_true(compare(&all[i - 1], &all[i]) < 0);
    }
    free(all);
    free(workers);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_version_variant_and_time_stand_where_the_rfc_says),
        TEST(test_ids_grow_whatever_the_clock_does),
        TEST(test_the_time_stays_while_the_clock_is_behind),
        TEST(test_a_full_millisecond_borrows_from_the_next),
        TEST(test_a_clock_before_1970_gives_the_first_millisecond),
        TEST(test_without_randomness_there_is_no_id),
        TEST(test_text_is_lower_case_hex_with_hyphens),
        TEST(test_threads_never_get_the_same_id_and_each_sees_them_grow),
    };
    return cmocka_run_group_tests_name("uuid", tests, NULL, NULL);
}
