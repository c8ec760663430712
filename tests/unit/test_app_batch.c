/* What a batch finds again, after any adding and cutting, and how far it has to look. */
#include "lib/check.h"

#include "app/core/batch.h"
#include "base/core/random.h"
#include "lib/fault.h"

enum { KEYS = 50, STEPS = 20000, MANY = 4096 };

static const enum app_family families[] = { APP_RECORDS, APP_KEYS };

static void add(struct app_batch *batch, enum app_family family, uint64_t id, uint64_t value)
{
    struct app_key key = pawl__app_key_record(1, 7, id);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view bytes = { (const char *)&value, sizeof(value) };

    assert_ok(pawl__app_batch_add(batch, family, APP_PUT, &key, bytes, &error), &error);
}

static const struct app_entry *find(struct app_batch *batch, enum app_family family, uint64_t id)
{
    struct app_key key = pawl__app_key_record(1, 7, id);
    const struct app_entry *entry = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__app_batch_find(batch, family, pawl__app_key_view(&key), &entry, &error),
              &error);
    return entry;
}

/* The slow way. */
static const struct app_entry *look(const struct app_batch *batch,
                                    enum app_family family,
                                    uint64_t id)
{
    struct app_key key = pawl__app_key_record(1, 7, id);

    for (size_t i = batch->count; i > 0; i--) {
        const struct app_entry *entry = &batch->entries[i - 1];
        if (entry->family == family && pawl__view_equal(entry->key, pawl__app_key_view(&key))) {
            return entry;
        }
    }
    return NULL;
}

static void test_the_last_entry_of_a_key_is_found_after_any_change(void **state)
{
    struct app_batch batch = { .count = 0 };
    struct pawl__prng random = pawl__prng_seeded(7);

    (void)state;
    for (uint64_t step = 0; step < STEPS; step++) {
        enum app_family family = families[pawl__prng_below(&random, COUNT_OF(families))];
        uint64_t id = 1 + pawl__prng_below(&random, KEYS);
        uint64_t move = pawl__prng_below(&random, 1000);
        if (move == 0) {
            pawl__app_batch_clear(&batch);
        } else if (move < 20) {
            pawl__app_batch_cut(&batch, pawl__prng_below(&random, batch.count + 1));
        } else if (move < 500) {
            add(&batch, family, id, step);
        } else {
            assert_ptr_equal(find(&batch, family, id), look(&batch, family, id));
        }
    }
    pawl__app_batch_done(&batch);
}

/* A group of commands may update a million records: nothing may look at all of them for each. */
static void test_a_search_looks_at_a_few_entries_of_many(void **state)
{
    struct app_batch batch = { .count = 0 };
    size_t longest = 0;

    (void)state;
    for (uint64_t id = 1; id <= MANY; id++) {
        assert_null(find(&batch, APP_RECORDS, id));
        add(&batch, APP_RECORDS, id, id);
    }
    assert_non_null(find(&batch, APP_RECORDS, MANY));
    for (size_t i = 0; i < batch.link_room; i++) {
        size_t length = 0;
        for (uint32_t at = batch.heads[i]; at != 0; at = batch.links[at - 1].before) {
            length++;
        }
        longest = MAX(longest, length);
    }
    assert_in_range(longest, 1, 24);
    pawl__app_batch_done(&batch);
}

static void test_a_search_without_memory_says_so_and_changes_nothing(void **state)
{
    struct app_batch batch = { .count = 0 };
    struct app_key key = pawl__app_key_record(1, 7, 3);
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    add(&batch, APP_RECORDS, 3, 3);
    FAULT_WALK (walk) {
        const struct app_entry *entry = NULL;
        pawl_status status =
            pawl__app_batch_find(&batch, APP_RECORDS, pawl__app_key_view(&key), &entry, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_int_equal(entry == NULL, fault_fired());
    }
    assert_ptr_equal(find(&batch, APP_RECORDS, 3), &batch.entries[0]);
    pawl__app_batch_done(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_entry_of_a_key_is_found_after_any_change),
        cmocka_unit_test(test_a_search_looks_at_a_few_entries_of_many),
        cmocka_unit_test(test_a_search_without_memory_says_so_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
