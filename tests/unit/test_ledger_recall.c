/* Recall on every backend: the same embeddings give the same answer. */
#include "lib/ledger_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger/core/internal.h"
#include "ledger/recall/recall.h"
#include "lib/fault.h"

static void embed(struct ledger_fixture *f, uint64_t offset, float x, float y)
{
    assert_ok(pawl_ledger_embed(f->ledger, offset, (float[]){ x, y }, 2, &f->err), &f->err);
}

static void add_recalled_line(struct pawl__buf *text, const pawl_recalled *recalled)
{
    pawl__buf_add_format(
        text, "%llu %.4f\n", (unsigned long long)recalled->offset, recalled->similarity);
}

/* "offset similarity" of the nearest `count`, a line each. */
static void assert_recalls(struct ledger_fixture *f,
                           const float query[2],
                           const pawl_event_filter *filter,
                           size_t count,
                           const char *expected)
{
    struct pawl__buf text = BUF_INIT(4096);
    pawl_recalled found[16];
    size_t found_count = 99;

    assert_true(count <= COUNT_OF(found));
    assert_ok(pawl_ledger_recall(f->ledger, query, 2, filter, found, count, &found_count, &f->err),
              &f->err);
    for (size_t i = 0; i < found_count; i++) {
        add_recalled_line(&text, &found[i]);
    }
    assert_text(&text, expected);
    pawl__buf_done(&text);
}

static void append_some(struct ledger_fixture *f, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "e%u", i);
        append_one(f, id, i, "1");
    }
}

static void test_the_nearest_come_first_whatever_their_length(void **state)
{
    struct ledger_fixture *f = *state;

    append_some(f, 5);
    embed(f, 1, 0, 3);
    embed(f, 2, 100, 0);
    embed(f, 3, 0.001F, 0.001F);
    embed(f, 4, -7, 0);
    assert_recalls(f, (float[]){ 2, 0 }, NULL, 3, "2 1.0000\n3 0.7071\n1 0.0000\n");
    assert_recalls(f, (float[]){ 2, 0 }, NULL, 16, "2 1.0000\n3 0.7071\n1 0.0000\n4 -1.0000\n");
}

static void test_equal_ones_come_in_order_of_their_offsets(void **state)
{
    struct ledger_fixture *f = *state;

    append_some(f, 6);
    for (uint64_t offset = 6; offset >= 1; offset--) {
        embed(f, offset, 1, offset == 4 ? 2 : 1);
    }
    assert_recalls(f, (float[]){ 1, 1 }, NULL, 3, "1 1.0000\n2 1.0000\n3 1.0000\n");
    assert_recalls(f,
                   (float[]){ 1, 1 },
                   NULL,
                   6,
                   "1 1.0000\n2 1.0000\n3 1.0000\n5 1.0000\n6 1.0000\n4 0.9487\n");
}

static void test_a_filter_leaves_others_out(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_event other = event_of("other", 9, "1");

    append_some(f, 3);
    other.kind = pawl_view_of("other");
    other.created_at_us = 1000;
    assert_ok(pawl_ledger_append(f->ledger, &other, NULL, &f->err), &f->err);
    for (uint64_t offset = 1; offset <= 4; offset++) {
        embed(f, offset, 1, 0);
    }
    filter.kind = pawl_view_of("other");
    assert_recalls(f, (float[]){ 1, 0 }, &filter, 9, "4 1.0000\n");
    filter.kind = pawl_view_of("k");
    filter.turn_min = 2;
    assert_recalls(f, (float[]){ 1, 0 }, &filter, 9, "2 1.0000\n3 1.0000\n");
    filter = (pawl_event_filter)PAWL_EVENT_FILTER_INIT;
    filter.time_max_us = 1001;
    assert_recalls(f, (float[]){ 1, 0 }, &filter, 9, "4 1.0000\n");
    filter.run_id = pawl_view_of("nobody's");
    assert_recalls(f, (float[]){ 1, 0 }, &filter, 9, "");
}

static void test_an_embedding_replaces_the_one_before(void **state)
{
    struct ledger_fixture *f = *state;

    append_some(f, 2);
    embed(f, 1, 1, 0);
    embed(f, 2, 1, 1);
    embed(f, 1, 0, 1);
    assert_recalls(f, (float[]){ 0, 1 }, NULL, 9, "1 1.0000\n2 0.7071\n");
    if (ledger_fixture_close(f)) {
        ledger_fixture_open(f, NULL);
        assert_recalls(f, (float[]){ 0, 1 }, NULL, 9, "1 1.0000\n2 0.7071\n");
    }
}

static void test_embeddings_are_not_part_of_the_chain(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_head before;
    pawl_ledger_head after;

    append_some(f, 1);
    assert_ok(pawl_ledger_get_head(f->ledger, &before, &f->err), &f->err);
    embed(f, 1, 1, 0);
    assert_ok(pawl_ledger_get_head(f->ledger, &after, &f->err), &f->err);
    assert_memory_equal(&before, &after, sizeof(before));
}

static void test_an_empty_ledger_recalls_nothing(void **state)
{
    assert_recalls(*state, (float[]){ 1, 0 }, NULL, 9, "");
}

static void assert_refused(struct ledger_fixture *f,
                           const float *values,
                           size_t dimensions,
                           const char *message)
{
    pawl_recalled found = { 7, 7 };
    size_t count = 7;

    assert_status(
        pawl_ledger_embed(f->ledger, 1, values, dimensions, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, message);
    assert_status(
        pawl_ledger_recall(f->ledger, values, dimensions, NULL, &found, 1, &count, &f->err),
        PAWL_INVALID,
        &f->err);
    assert_message(&f->err, message);
    assert_true(found.offset == 7 && count == 7);
}

static void test_what_is_no_direction_is_refused_by_name(void **state)
{
    struct ledger_fixture *f = *state;

    append_some(f, 1);
    embed(f, 1, 1, 0);
    assert_refused(f, (float[]){ 1, NAN }, 2, "embedding: value 1 is not finite");
    assert_refused(f, (float[]){ -INFINITY, 1 }, 2, "embedding: value 0 is not finite");
    assert_refused(f, (float[]){ 0, -0.0F }, 2, "embedding: all values are zero");
    assert_refused(f, (float[]){ 1, 2, 3 }, 3, "has 3 dimensions, those of this ledger have 2");
    assert_refused(f, (float[]){ 1 }, 0, "embedding: has no dimensions");
    assert_refused(f, NULL, 2, "embedding: has no dimensions");
    assert_recalls(f, (float[]){ 1, 0 }, NULL, 9, "1 1.0000\n");
}

/* The first two embeddings of a ledger, in one transaction. */
static void test_the_first_of_a_group_decides_on_the_dimensions(void **state)
{
    struct ledger_fixture *f = *state;
    struct ledger_backend *backend = f->ledger->backend;
    const float values[] = { 0.6F, 0.8F, 0 };
    pawl_ledger_head head;

    append_some(f, 2);
    assert_ok(backend->ops->begin(backend, &head, &f->err), &f->err);
    pawl_view two = { (const char *)values, 2 * sizeof(float) };
    pawl_view three = { (const char *)values, 3 * sizeof(float) };
    assert_ok(backend->ops->embed(backend, 1, two, &f->err), &f->err);
    assert_status(backend->ops->embed(backend, 2, three, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "has 3 dimensions, those of this ledger have 2");
    assert_ok(backend->ops->commit(backend, &f->err), &f->err);
    assert_recalls(f, values, NULL, 9, "1 1.0000\n");
}

static void test_the_smallest_and_the_largest_floats_have_a_direction(void **state)
{
    struct ledger_fixture *f = *state;

    append_some(f, 2);
    embed(f, 1, 1e-45F, 0);
    embed(f, 2, 3.4e38F, 3.4e38F);
    assert_recalls(f, (float[]){ 3.4e38F, 0 }, NULL, 9, "1 1.0000\n2 0.7071\n");
}

static void test_dimensions_and_counts_end_at_their_limits(void **state)
{
    struct ledger_fixture *f = *state;
    size_t most = PAWL_EMBEDDING_DIMENSIONS_MAX;
    float *values = calloc(most + 1, sizeof(*values));
    pawl_recalled *found = calloc(PAWL_RECALL_COUNT_MAX, sizeof(*found));
    size_t count = 7;

    assert_non_null(values);
    assert_non_null(found);
    append_some(f, 1);
    for (size_t i = 0; i <= most; i++) {
        values[i] = (float)i / 3;
    }
    assert_refused(f, values, most + 1, "has 16001 dimensions, the limit is 16000");
    assert_ok(pawl_ledger_embed(f->ledger, 1, values, most, &f->err), &f->err);
    assert_ok(pawl_ledger_recall(
                  f->ledger, values, most, NULL, found, PAWL_RECALL_COUNT_MAX, &count, &f->err),
              &f->err);
    assert_int_equal(count, 1);
    assert_true(fabs(found[0].similarity - 1) < 1e-6);
    const size_t wrong[] = { 0, PAWL_RECALL_COUNT_MAX + 1 };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(
            pawl_ledger_recall(f->ledger, values, most, NULL, found, wrong[i], &count, &f->err),
            PAWL_INVALID,
            &f->err);
        assert_message(&f->err, "must be 1 to 10000");
    }
    free(found);
    free(values);
}

static void test_an_offset_without_event_has_no_embedding(void **state)
{
    struct ledger_fixture *f = *state;
    const uint64_t missing[] = { 0, 3, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX };
    float values[] = { 1, 0 };

    append_some(f, 2);
    for (size_t i = 0; i < COUNT_OF(missing); i++) {
        assert_status(
            pawl_ledger_embed(f->ledger, missing[i], values, 2, &f->err), PAWL_NOT_FOUND, &f->err);
        assert_message(&f->err, "no event at offset");
    }
    assert_recalls(f, values, NULL, 9, "");
    assert_int_equal(append_one(f, "e3", 0, "1"), 3); /* the writer goes on */
}

/* A small generator of its own, so that every backend and every run has the same vectors. */
static float next_value(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return (float)(int32_t)*seed / 2147483648.0F;
}

enum { MANY = 300, DIMENSIONS = 131 };

static void fill_values(float *values, uint32_t seed)
{
    for (size_t i = 0; i < DIMENSIONS; i++) {
        values[i] = next_value(&seed);
    }
}

/* By hand, in long double, from the values as they were given. */
static double cosine(const float *a, const float *b)
{
    long double ab = 0;
    long double aa = 0;
    long double bb = 0;

    for (size_t i = 0; i < DIMENSIONS; i++) {
        ab += (long double)a[i] * (long double)b[i];
        aa += (long double)a[i] * (long double)a[i];
        bb += (long double)b[i] * (long double)b[i];
    }
    return (double)(ab / (sqrtl(aa) * sqrtl(bb)));
}

static int by_similarity(const void *a, const void *b)
{
    const pawl_recalled *x = a;
    const pawl_recalled *y = b;

    return (x->similarity < y->similarity) - (x->similarity > y->similarity);
}

static void test_many_of_odd_length_are_ranked_as_by_hand(void **state)
{
    struct ledger_fixture *f = *state;
    static pawl_recalled expected[MANY];
    pawl_recalled found[25];
    float query[DIMENSIONS];
    float values[DIMENSIONS];
    size_t count;

    append_some(f, MANY);
    fill_values(query, 4711);
    for (uint32_t i = 0; i < MANY; i++) {
        fill_values(values, i);
        expected[i] = (pawl_recalled){ i + 1, cosine(query, values) };
        assert_ok(pawl_ledger_embed(f->ledger, i + 1, values, DIMENSIONS, &f->err), &f->err);
    }
    qsort(expected, MANY, sizeof(expected[0]), by_similarity);
    assert_ok(pawl_ledger_recall(
                  f->ledger, query, DIMENSIONS, NULL, found, COUNT_OF(found), &count, &f->err),
              &f->err);
    assert_int_equal(count, COUNT_OF(found));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].offset, expected[i].offset);
        assert_true(fabs(found[i].similarity - expected[i].similarity) < 1e-6);
    }
}

/* The cosine in plain C, one multiplication after the other: what the fast one is compared with. */
static double similarity_plain(const float *query, pawl_view vector, size_t dimensions)
{
    double total = 0;

    for (size_t i = 0; i < dimensions; i++) {
        float y;
        memcpy(&y, &vector.data[i * sizeof(float)], sizeof(y));
        total += (double)query[i] * (double)y;
    }
    return total;
}

static void test_vectorised_and_plain_arithmetic_agree(void **state)
{
    float values[DIMENSIONS * 2];
    char unaligned[sizeof(values) + 1];
    float query[DIMENSIONS * 2];
    uint32_t seed = 42;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        values[i] = next_value(&seed) / 20;
        query[i] = next_value(&seed) / 20;
    }
    memcpy(unaligned + 1, values, sizeof(values));
    for (size_t length = 1; length <= COUNT_OF(values); length++) {
        pawl_view vector = { unaligned + 1, length * sizeof(float) };
        double fast = pawl__ledger_recall_similarity(query, vector, length);
        double plain = similarity_plain(query, vector, length);
        assert_true(fabs(fast - plain) < 1e-6);
    }
}

static void test_without_memory_nothing_changes(void **state)
{
    struct ledger_fixture *f = *state;
    float values[] = { 1, 0 };
    pawl_recalled found;
    size_t count;

    append_some(f, 1);
    embed(f, 1, 0, 1);
    FAULT_WALK (walk) {
        pawl_status status =
            pawl_ledger_recall(f->ledger, values, 2, NULL, &found, 1, &count, &f->err);
        fault_disarm();
        assert_true(status == PAWL_OK || status == PAWL_NOMEM);
    }
    FAULT_WALK (walk) {
        pawl_status status = pawl_ledger_embed(f->ledger, 1, values, 2, &f->err);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    assert_recalls(f, values, NULL, 9, "1 1.0000\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_the_nearest_come_first_whatever_their_length),
        LEDGER_TEST(test_equal_ones_come_in_order_of_their_offsets),
        LEDGER_TEST(test_a_filter_leaves_others_out),
        LEDGER_TEST(test_an_embedding_replaces_the_one_before),
        LEDGER_TEST(test_embeddings_are_not_part_of_the_chain),
        LEDGER_TEST(test_an_empty_ledger_recalls_nothing),
        LEDGER_TEST(test_what_is_no_direction_is_refused_by_name),
        LEDGER_TEST(test_the_first_of_a_group_decides_on_the_dimensions),
        LEDGER_TEST(test_the_smallest_and_the_largest_floats_have_a_direction),
        LEDGER_TEST(test_dimensions_and_counts_end_at_their_limits),
        LEDGER_TEST(test_an_offset_without_event_has_no_embedding),
        LEDGER_TEST(test_many_of_odd_length_are_ranked_as_by_hand),
        LEDGER_TEST(test_vectorised_and_plain_arithmetic_agree),
        LEDGER_TEST(test_without_memory_nothing_changes),
    };
    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
